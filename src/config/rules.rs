//! The person's rules about tools: which may be called, how often, and with whose consent.
//!
//! It knows names only: nothing of servers, programs or how a person is asked.

use globset::{GlobBuilder, GlobSet};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::tool::ToolName;

use super::file;
use super::mistake::{Mistakes, Place, quoted};
use super::read::{Entries, Found, Read, inline_schema};
use super::tree::Node;

/// A glob over whole tool names.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    glob: GlobSet,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    fn compile(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("an empty pattern matches no tool.".to_owned());
        }
        let explain =
            |error: globset::Error| format!("{} is not a pattern: {}.", quoted(text), error.kind());
        // Names hold no `/`, so `*` has nothing to stop at.
        let glob = GlobBuilder::new(text)
            .literal_separator(false)
            .backslash_escape(true)
            .build()
            .map_err(explain)?;
        // A set of one, because compiling a lone glob panics where a set reports.
        let glob = GlobSet::builder().add(glob).build().map_err(explain)?;
        let text = text.to_owned();
        Ok(Self { text, glob })
    }

    fn matches(&self, name: &ToolName, unsuffixed: &ToolName) -> bool {
        self.glob.is_match(name.as_str()) || self.glob.is_match(unsuffixed.as_str())
    }

    /// As the file writes it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// What a pattern looks like, for the report on one that is none.
const REMEDY: &str = "Write a glob over whole names, such as `mcp__crm__*`; it may hold `*`, `?`, `[abc]` and `{a,b}`.";

impl Read for Pattern {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        let text = String::read(node, place, mistakes)?;
        Self::compile(&text)
            .map_err(|fact| mistakes.add(place, fact, REMEDY))
            .ok()
    }
}

inline_schema!([] Pattern, _generator => json_schema!({ "type": "string", "minLength": 1 }));

/// The rules about tools, ready to be asked.
///
/// Each question takes a tool's final name and its name without the `_2`, `_3` that tells it from
/// another tool of its server; a pattern that matches either matches the tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolRules {
    /// `None` allows every tool, an empty list allows none.
    pub(super) allow: Option<Vec<Pattern>>,
    pub(super) block: Vec<Pattern>,
    pub(super) confirm: Vec<Pattern>,
    pub(super) limits: Vec<Limit>,
}

impl ToolRules {
    pub(super) fn new(written: file::Tools, mistakes: &mut Mistakes) -> Self {
        if let (Some(allow), Some(block)) = (written.allow.place(), written.block.place()) {
            mistakes.add(
                &block.at_key(),
                format!("stands beside tools.allow on line {}, and only one can hold.", allow.key.line),
                "Keep allow to name the tools that may be called, or block to name those that may not.",
            );
        }
        let patterns = |found: Vec<Found<Pattern>>| -> Vec<Pattern> {
            found.into_iter().map(|found| found.value).collect()
        };
        let mut limits = Vec::new();
        for (text, max) in written.limits.or(Entries::default()).0 {
            match Pattern::compile(&text) {
                Ok(glob) => limits.push(Limit {
                    max: max.value.get(),
                    glob,
                }),
                Err(fact) => mistakes.add(&max.place.at_key(), fact, REMEDY),
            }
        }
        Self {
            allow: written.allow.value().map(patterns),
            block: written.block.value().map(patterns).unwrap_or_default(),
            confirm: written.confirm.value().map(patterns).unwrap_or_default(),
            limits,
        }
    }

    /// Whether the tool may be called at all.
    pub fn permits(&self, name: &ToolName, unsuffixed: &ToolName) -> bool {
        let listed = |patterns: &[Pattern]| {
            patterns
                .iter()
                .any(|pattern| pattern.matches(name, unsuffixed))
        };
        self.allow.as_deref().is_none_or(listed) && !listed(&self.block)
    }

    /// Whether each call of the tool is put to the person.
    pub fn needs_confirmation(&self, name: &ToolName, unsuffixed: &ToolName) -> bool {
        self.confirm
            .iter()
            .any(|pattern| pattern.matches(name, unsuffixed))
    }

    /// The limits in the order of the file; every one that matches a tool holds for it.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }
}

/// At most `max` calls of the matching tools in one program.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    pub max: u64,
    glob: Pattern,
}

impl Limit {
    /// The glob as the file writes it.
    pub fn pattern(&self) -> &str {
        self.glob.text()
    }

    pub fn matches(&self, name: &ToolName, unsuffixed: &ToolName) -> bool {
        self.glob.matches(name, unsuffixed)
    }
}
