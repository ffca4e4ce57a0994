//! The report on a configuration file: every mistake, where it stands and what would be right.
//!
//! It knows no key and no rule. Whoever adds a mistake answers for its words: nothing that came
//! out of the environment may be among them.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use super::tree::Position;

/// A place in the file: where it is, and the path of keys that leads there.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// `servers[1].env.API_KEY`; empty for the whole file.
    pub(super) path: String,
    /// Where the value begins.
    pub(super) value: Position,
    /// Where its key begins; a list's item has none and counts as its own.
    pub(super) key: Position,
}

impl Place {
    /// The same path, for a mistake in the key rather than in its value.
    pub(super) fn at_key(&self) -> Self {
        Self {
            value: self.key,
            ..self.clone()
        }
    }

    /// A key that ought to be in this mapping and is not.
    pub(super) fn missing(&self, key: &str) -> Self {
        Self {
            path: self.path_to(key),
            value: self.value,
            key: self.key,
        }
    }

    pub(super) fn entry(&self, name: &str, key: Position, value: Position) -> Self {
        Self {
            path: self.path_to(name),
            value,
            key,
        }
    }

    pub(super) fn item(&self, index: usize, at: Position) -> Self {
        Self {
            path: format!("{}[{index}]", self.path),
            value: at,
            key: at,
        }
    }

    fn path_to(&self, key: &str) -> String {
        let simple = !key.is_empty()
            && key
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        match (simple, self.path.is_empty()) {
            (true, true) => key.to_owned(),
            (true, false) => format!("{}.{key}", self.path),
            (false, _) => format!("{}[{}]", self.path, quoted(key)),
        }
    }
}

#[derive(Debug, Clone)]
struct Mistake {
    place: Place,
    /// What is wrong.
    fact: String,
    /// What would be right.
    remedy: String,
}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(super) struct Mistakes(Vec<Mistake>);

impl Mistakes {
    pub(super) fn add(
        &mut self,
        place: &Place,
        fact: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.0.push(Mistake {
            place: place.clone(),
            fact: fact.into(),
            remedy: remedy.into(),
        });
    }

    /// `value` if there was no mistake, otherwise all of them in the order of the file.
    pub(super) fn or<T>(mut self, value: T, origin: &Path) -> Result<T, ConfigError> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort_by_key(|mistake| mistake.place.value);
        Err(ConfigError {
            origin: origin.to_owned(),
            mistakes: self.0,
        })
    }
}

/// Why a configuration cannot be used: the whole report, for a person.
#[derive(Debug, Clone)]
pub struct ConfigError {
    origin: PathBuf,
    mistakes: Vec<Mistake>,
}

impl ConfigError {
    /// The file as a whole is at fault.
    pub(super) fn whole_file(
        origin: &Path,
        fact: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let mistake = Mistake {
            place: Place::default(),
            fact: fact.into(),
            remedy: remedy.into(),
        };
        Self {
            origin: origin.to_owned(),
            mistakes: vec![mistake],
        }
    }

    /// How many mistakes the report lists.
    pub fn mistakes(&self) -> usize {
        self.mistakes.len()
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.origin.display();
        if self.mistakes.len() > 1 {
            write!(f, "{origin} has {} mistakes.\n\n", self.mistakes.len())?;
        }
        for (
            index,
            Mistake {
                place,
                fact,
                remedy,
            },
        ) in self.mistakes.iter().enumerate()
        {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{origin}:")?;
            let Position { line, column } = place.value;
            if line > 0 {
                write!(f, "{line}:{column}:")?;
            }
            if !place.path.is_empty() {
                write!(f, " {}:", place.path)?;
            }
            write!(f, " {fact}\n    {remedy}")?;
        }
        Ok(())
    }
}

/// A text from the file as a report may show it: escaped, and not at any length.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// As much of a text as a person needs to find it again.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}...", &text[..cut]).into(),
        None => text.into(),
    }
}

/// The name that what was written is probably meant to be.
pub(super) fn nearest<'n>(written: &str, names: &[&'n str]) -> Option<&'n str> {
    // Case, hyphens and underscores are what people get wrong first.
    let plain = |name: &str| name.to_lowercase().replace(['-', '_'], "");
    let written = plain(written);
    names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&written, &plain(name)), *name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The end of a sentence about a name that does not exist.
pub(super) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!(" Did you mean `{name}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_suggested() {
        const KEYS: &[&str] = &["allow", "block", "timeout_seconds", "sse"];
        for (written, suggestion) in [
            ("alow", Some("allow")),
            ("Allow", Some("allow")),
            ("lbock", Some("block")),
            ("timeoutSeconds", Some("timeout_seconds")),
            ("timeout-second", Some("timeout_seconds")),
            ("ssee", Some("sse")),
            ("deny", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, KEYS), suggestion, "{written}");
        }
    }

    #[test]
    fn a_path_reads_like_the_file() {
        let root = Place::default();
        let here = Position::default();
        let servers = root.entry("servers", here, here).item(1, here);
        for (place, path) in [
            (root.entry("tools", here, here), "tools"),
            (
                servers
                    .entry("env", here, here)
                    .entry("API-KEY", here, here),
                "servers[1].env.API-KEY",
            ),
            (
                servers.entry("env", here, here).entry("a.b", here, here),
                r#"servers[1].env["a.b"]"#,
            ),
            (servers.missing("command"), "servers[1].command"),
            (root.entry("", here, here), r#"[""]"#),
        ] {
            assert_eq!(place.path, path);
        }
    }

    #[test]
    fn a_long_text_is_shown_in_part() {
        assert_eq!(quoted("a\nb"), r#""a\nb""#);
        assert_eq!(
            quoted(&"é".repeat(61)),
            format!("\"{}...\"", "é".repeat(60))
        );
    }
}
