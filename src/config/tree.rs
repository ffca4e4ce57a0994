//! The YAML text as a tree whose every node knows where it stands.
//!
//! Numbers keep the spelling they were written in, duplicate keys are kept side by side, and
//! anchors and merge keys are already resolved. It knows no key and no rule: what is asked of the
//! tree is `read`'s business.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Spanned};

/// A line and a column, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: u64,
    pub(super) column: u64,
}

/// Not `Debug`, since what it holds may be a secret.
pub(super) struct Node {
    pub(super) at: Position,
    pub(super) value: Value,
}

pub(super) enum Value {
    Null,
    /// An unquoted number or boolean, as it was spelt.
    Plain(String),
    Text(String),
    List(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
}

/// Why a text is not YAML, in the parser's words.
#[derive(Debug)]
pub(super) struct NotYaml {
    pub(super) at: Position,
    pub(super) reason: String,
}

/// Parses one YAML document; an empty one is a null node.
pub(super) fn parse(text: &str) -> Result<Node, NotYaml> {
    match serde_yaml::from_str_with_options::<Option<Spanned<Raw>>>(text, options()) {
        Ok(Some(raw)) => Ok(node(raw, text)),
        Ok(None) => Ok(Node {
            at: Position { line: 1, column: 1 },
            value: Value::Null,
        }),
        Err(error) => Err(NotYaml {
            at: error.location().map(position).unwrap_or_default(),
            reason: reason(error.without_snippet()),
        }),
    }
}

/// The parser's reason, without the position at its end, which the report gives by itself, and
/// without anything that the file holds: an unquoted `!value` is a tag to YAML, and to the person
/// perhaps a password.
fn reason(error: &serde_yaml::Error) -> String {
    use serde_yaml::Error;
    match error {
        Error::AliasError { error, .. } => reason(error),
        Error::UnsupportedTag { .. } => {
            "a value begins with `!`; put it in quotes if that is part of it".to_owned()
        }
        Error::MultipleDocuments { .. } => {
            "a second document begins after `---`, and there is room for one".to_owned()
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is larger or nested deeper than any configuration needs to be".to_owned()
        }
        _ => {
            let text = error.to_string();
            text.split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned()
        }
    }
}

fn options() -> serde_yaml::Options {
    // A configuration is a page or two. The bounds leave room for a hundred of those and none for
    // a document whose aliases multiply.
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_events: 100_000,
            max_nodes: 50_000,
            // The parser recurses, and a thread may have 2 MiB of stack. A server's headers, the
            // deepest there are, stand on the fourth level.
            max_depth: 24,
            max_aliases: 1_000,
            max_anchors: 1_000,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: 50_000,
            max_replay_stack_depth: 16,
            max_alias_expansions_per_anchor: 1_000,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // `trace: off` is the text "off"; what is only sometimes a boolean or a number stays text.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        reject_unsupported_tags: true,
    }
}

fn position(location: serde_yaml::Location) -> Position {
    Position {
        line: location.line(),
        column: location.column(),
    }
}

/// A node as serde delivers it: numbers have lost their spelling, which their span still has.
enum Raw {
    Null,
    Plain(String),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Mapping(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

fn node(raw: Spanned<Raw>, text: &str) -> Node {
    let span = raw.defined.span();
    let spelling = || {
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let length = usize::try_from(span.byte_len()?).ok()?;
        text.get(start..start.checked_add(length)?)
    };
    let value = match raw.value {
        Raw::Null => Value::Null,
        Raw::Plain(shown) => Value::Plain(spelling().map_or(shown, str::to_owned)),
        Raw::Text(text) => Value::Text(text),
        Raw::List(items) => Value::List(items.into_iter().map(|item| node(item, text)).collect()),
        Raw::Mapping(entries) => Value::Mapping(
            entries
                .into_iter()
                .map(|(key, value)| (node(key, text), node(value, text)))
                .collect(),
        ),
    };
    Node {
        at: position(raw.defined),
        value,
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Raw, E> {
        Err(E::custom("binary values have no place in a configuration"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Mapping(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree in one line: every value behind its position, a spelling bare, a text in quotes.
    fn shown(node: &Node) -> String {
        let value = match &node.value {
            Value::Null => "null".to_owned(),
            Value::Plain(spelling) => spelling.clone(),
            Value::Text(text) => format!("{text:?}"),
            Value::List(items) => {
                format!(
                    "[{}]",
                    items.iter().map(shown).collect::<Vec<_>>().join(", ")
                )
            }
            Value::Mapping(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| shown(key) + ": " + &shown(value));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        };
        format!("{}.{}={value}", node.at.line, node.at.column)
    }

    #[test]
    fn what_nests_too_deep_is_refused_before_the_stack_ends() {
        let nested = |depth: usize| parse(&("[".repeat(depth) + &"]".repeat(depth)));
        assert!(nested(20).is_ok());
        for depth in [25, 64, 100_000] {
            assert!(nested(depth).is_err(), "{depth} levels");
        }
    }

    #[test]
    fn nodes_keep_their_place_and_numbers_their_spelling() {
        for (text, tree) in [
            ("", "1.1=null"),
            ("# nothing", "1.1=null"),
            ("---", "1.1=null"),
            ("1.10", "1.1=1.10"),
            ("0x1F", "1.1=0x1F"),
            ("99999999999999999999", "1.1=99999999999999999999"),
            ("True", "1.1=True"),
            ("off", r#"1.1="off""#),
            ("010", r#"1.1="010""#),
            ("1_000", r#"1.1="1_000""#),
            ("'5'", r#"1.1="5""#),
            ("!!str 5", r#"1.7="5""#),
            ("[1, é, 2]", r#"1.1=[1.2=1, 1.5="é", 1.8=2]"#),
            ("a: é\nb: ~", r#"1.1={1.1="a": 1.4="é", 2.1="b": 2.4=null}"#),
            ("a: 1\na: 2", r#"1.1={1.1="a": 1.4=1, 2.1="a": 2.4=2}"#),
            ("- &x 5.0\n- *x", "1.1=[1.6=5.0, 1.6=5.0]"),
            ("\u{feff}a:\r\n  - 7", r#"1.1={1.1="a": 2.3=[2.5=7]}"#),
        ] {
            match parse(text) {
                Ok(node) => assert_eq!(shown(&node), tree, "{text}"),
                Err(error) => panic!("{text}: {error:?}"),
            }
        }
    }
}
