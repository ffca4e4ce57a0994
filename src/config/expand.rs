//! `${VAR}` and `${VAR:-default}`, and the wrapper around what comes out of them.
//!
//! It does not know which key it is expanding, nor where values come from.

use std::fmt;

/// A text that may hold a secret: it can be used, and cannot be printed by accident.
#[derive(Clone)]
pub struct Secret {
    text: String,
    /// What variables put into the text.
    variables: Vec<String>,
}

impl Secret {
    pub fn new(text: String) -> Self {
        Self::expanded(text, Vec::new())
    }

    pub(super) fn expanded(text: String, variables: Vec<String>) -> Self {
        Self { text, variables }
    }

    /// The text itself. Whoever asks for it keeps it out of logs, errors and results.
    pub fn expose(&self) -> &str {
        &self.text
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Why a reference cannot be expanded. None of them shows more of the text than a variable's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unexpanded {
    /// `${VAR}` without a default, and the variable is not set.
    Unset(String),
    /// `${` without a closing brace.
    Unterminated,
    /// `${...}` that is neither of the two forms.
    Malformed,
    /// `${VAR:-...${`: a default is a plain text.
    Nested(String),
}

impl fmt::Display for Unexpanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(name) => write!(f, "the variable {name} is not set."),
            Self::Unterminated => f.write_str("a `${` is not closed by a `}`."),
            Self::Malformed => f.write_str("what stands between `${` and `}` is no variable."),
            Self::Nested(name) => {
                write!(f, "the default of {name} holds another reference.")
            }
        }
    }
}

/// Expands `${VAR}`, `${VAR:-default}` and `$$`; every other `$` stands for itself.
///
/// As in a shell, the default stands for a variable that is unset or empty. What a variable holds
/// is never looked at again, and in a default only `$$` means something. All the references that
/// cannot be expanded are returned, not just the first.
pub fn expand(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Vec<Unexpanded>> {
    let mut expanded = String::with_capacity(text.len());
    let mut failures = Vec::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some(inside) = after.strip_prefix('{') {
            let Some((reference, after)) = inside.split_once('}') else {
                failures.push(Unexpanded::Unterminated);
                rest = "";
                break;
            };
            match value_of(reference, lookup) {
                Ok(value) => expanded.push_str(&value),
                Err(failure) => failures.push(failure),
            }
            rest = after;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    if failures.is_empty() {
        Ok(expanded)
    } else {
        Err(failures)
    }
}

/// The value of what stands between the braces.
fn value_of(
    reference: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Unexpanded> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_variable_name(name) {
        return Err(Unexpanded::Malformed);
    }
    let default = match default.map(unescape) {
        Some(None) => return Err(Unexpanded::Nested(name.to_owned())),
        Some(default) => default,
        None => None,
    };
    match (lookup(name), default) {
        (Some(value), _) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default),
        (Some(empty), None) => Ok(empty),
        (None, None) => Err(Unexpanded::Unset(name.to_owned())),
    }
}

/// A default's text, or `None` if it holds another reference, which the first brace would cut.
fn unescape(default: &str) -> Option<String> {
    let mut pieces = default.split("$$");
    let no_reference = pieces.clone().all(|piece| !piece.contains("${"));
    no_reference.then(|| {
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.fold(first, |text, piece| text + "$" + piece)
    })
}

fn is_variable_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "A" => Some("alpha".to_owned()),
            "_B2" => Some("beta".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICKY" => Some("${A} $$ $".to_owned()),
            _ => None,
        }
    }

    // contract: C3
    #[test]
    fn references_expand_once() {
        for (text, expanded) in [
            ("", ""),
            ("plain", "plain"),
            ("${A}", "alpha"),
            ("x${A}y${_B2}z", "xalphaybetaz"),
            ("${A}${A}", "alphaalpha"),
            ("${EMPTY}", ""),
            ("${EMPTY:-d}", "d"),
            ("${UNSET:-d}", "d"),
            ("${UNSET:-}", ""),
            ("${UNSET:-a:-b}", "a:-b"),
            ("${UNSET:-a b $c}", "a b $c"),
            ("${UNSET:-$$5}", "$5"),
            ("${UNSET:-$${A}", "${A"),
            ("${A:-d}", "alpha"),
            ("${TRICKY}", "${A} $$ $"),
            ("${UNSET:-é🔑}", "é🔑"),
            ("$$", "$"),
            ("$$$$", "$$"),
            ("$${A}", "${A}"),
            ("$$${A}", "$alpha"),
            ("$", "$"),
            ("a$", "a$"),
            ("$A", "$A"),
            ("$1 $( $-", "$1 $( $-"),
            ("}{", "}{"),
            ("${A}}", "alpha}"),
        ] {
            assert_eq!(
                expand(text, &environment).as_deref(),
                Ok(expanded),
                "{text}"
            );
        }
    }

    // contract: C3
    #[test]
    fn what_cannot_expand_is_named() {
        use Unexpanded::{Malformed, Nested, Unset, Unterminated};
        let name = |name: &str| name.to_owned();
        for (text, failures) in [
            ("${UNSET}", vec![Unset(name("UNSET"))]),
            ("${X} ${A} ${Y}", vec![Unset(name("X")), Unset(name("Y"))]),
            ("${", vec![Unterminated]),
            ("${A", vec![Unterminated]),
            ("${X} ${A:-b", vec![Unset(name("X")), Unterminated]),
            ("${}", vec![Malformed]),
            ("${ A }", vec![Malformed]),
            ("${1A}", vec![Malformed]),
            ("${A-b}", vec![Malformed]),
            ("${A:?b}", vec![Malformed]),
            ("${é}", vec![Malformed]),
            ("${X:-${A}}", vec![Nested(name("X"))]),
        ] {
            assert_eq!(expand(text, &environment), Err(failures), "{text}");
        }
    }

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(
            format!("{secret} {secret:?} {secret:#?}"),
            "[secret] [secret] [secret]"
        );
        assert_eq!(secret.expose(), "hunter2");
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in r"[a-zA${}:\-é]{0,24}") {
            let _ = expand(&text, &environment);
        }

        #[test]
        fn doubling_every_dollar_gives_the_text_back(text in any::<String>()) {
            prop_assert_eq!(expand(&text.replace('$', "$$"), &environment), Ok(text));
        }

        #[test]
        fn a_value_comes_out_as_it_is(value in "[^\0]+", before in "[^$]*", after in "[^$]*") {
            let text = format!("{before}${{V}}{after}");
            let expanded = expand(&text, &|_| Some(value.clone()));
            prop_assert_eq!(expanded, Ok(format!("{before}{value}{after}")));
        }
    }
}
