//! The kinds of single values: what each accepts, and the report on what it does not.
//!
//! It does not know which key a value belongs to.

use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::mistake::{Mistakes, Place};
use super::read::{Read, inline_schema};
use super::tree::{Node, Value};

impl Read for String {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => {
                mistakes.add(
                    place,
                    node.shown(),
                    "Write a text, in quotes if it looks like a number.",
                );
                None
            }
        }
    }
}

/// A text in which variables are going to be expanded. Numbers and booleans are taken as they are
/// spelt, since an argument or a variable may well be `8080`. Not `Debug`: it may be a secret.
pub(super) struct Expandable(pub(super) String);

impl Read for Expandable {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.value {
            Value::Text(text) | Value::Plain(text) => Some(Self(text.clone())),
            _ => {
                mistakes.add(place, node.kind(), "Write a text; \"\" is an empty one.");
                None
            }
        }
    }
}

/// A path that is taken as it is written.
pub(super) struct FilePath(pub(super) PathBuf);

impl Read for FilePath {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        let path = String::read(node, place, mistakes)?;
        if path.is_empty() || path.contains('\0') {
            mistakes.add(place, node.shown(), "Write a path, or remove the key.");
            return None;
        }
        if path.contains("${") {
            mistakes.add(
                place,
                "`${...}` is not expanded in this key.",
                "Write the path itself.",
            );
            return None;
        }
        Some(Self(path.into()))
    }
}

impl Read for bool {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        match &node.value {
            Value::Plain(spelling) if spelling.eq_ignore_ascii_case("true") => Some(true),
            Value::Plain(spelling) if spelling.eq_ignore_ascii_case("false") => Some(false),
            _ => {
                mistakes.add(place, node.shown(), "Write true or false.");
                None
            }
        }
    }
}

/// The largest whole number that every JSON reader and every 64-bit counter can hold.
pub(super) const LARGEST: u64 = (1 << 53) - 1;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy)]
pub(super) struct Whole<const MIN: u64, const MAX: u64 = LARGEST>(u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    pub(super) fn get(self) -> u64 {
        self.0
    }

    /// For sizes in memory; what an address cannot reach is no limit at all.
    pub(super) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> From<u64> for Whole<MIN, MAX> {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl<const MIN: u64, const MAX: u64> Read for Whole<MIN, MAX> {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        let number = match &node.value {
            Value::Plain(spelling) => spelling.parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if (MIN..=MAX).contains(&number) => Some(Self(number)),
            _ => {
                let remedy = format!("Write a whole number from {MIN} to {MAX}, in plain digits.");
                mistakes.add(place, node.shown(), remedy);
                None
            }
        }
    }
}

/// A span of time, more than none; fractions of a second are fine.
#[derive(Clone, Copy)]
pub(super) struct Seconds(Duration);

impl Seconds {
    /// A year. Far above any use, and far below where adding to a clock overflows.
    const MAX: u64 = 31_536_000;

    pub(super) fn get(self) -> Duration {
        self.0
    }
}

impl From<u64> for Seconds {
    fn from(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl Read for Seconds {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        let duration = match &node.value {
            Value::Plain(spelling) => spelling.parse().ok(),
            _ => None,
        }
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        match duration {
            Some(duration) if !duration.is_zero() && duration <= Duration::from_secs(Self::MAX) => {
                Some(Self(duration))
            }
            _ => {
                let max = Self::MAX;
                let remedy = format!(
                    "Write a number of seconds above 0 and up to {max}; fractions are fine."
                );
                mistakes.add(place, node.shown(), remedy);
                None
            }
        }
    }
}

inline_schema!([] Expandable, _generator => json_schema!({
    "type": ["string", "number", "boolean"],
}));
inline_schema!([] FilePath, _generator => json_schema!({ "type": "string", "minLength": 1 }));
inline_schema!([const MIN: u64, const MAX: u64] Whole<MIN, MAX>, _generator => json_schema!({
    "type": "integer", "minimum": MIN, "maximum": MAX,
}));
inline_schema!([] Seconds, _generator => json_schema!({
    "type": "number", "exclusiveMinimum": 0, "maximum": Seconds::MAX,
}));
