//! When a text is the JSON rendering of a value: the two are equal as Python's `json` reads them.
//!
//! Two texts that spell the same tokens in the same order are equal without a tree; only where key
//! order or duplicate keys may matter are trees built, of slices of the texts. It knows no MCP.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::{Map, Number, Value};

use super::MAX_DEPTH;
use super::json::{Cursor, Kind, decode, decode_exactly, is_deeper_than, is_json, kind, trim};

/// A value that texts are compared with. Its JSON nests at most [`MAX_DEPTH`] levels.
pub(super) struct Reference<'a> {
    json: &'a str,
    tree: OnceCell<Tree<'a>>,
}

impl<'a> Reference<'a> {
    pub(super) fn new(json: &'a str) -> Self {
        Self {
            json,
            tree: OnceCell::new(),
        }
    }

    /// Whether `text` is a JSON rendering of the value.
    pub(super) fn is_rendered_by(&self, text: &str) -> bool {
        let text = trim(text);
        if text == self.json {
            return true;
        }
        if kind(text) != kind(self.json) || !is_json(text) {
            return false;
        }
        match in_step(self.json, text) {
            InStep::Equal => true,
            InStep::Different => false,
            // Deeper than the value can be: not equal to it.
            InStep::Undecided if is_deeper_than(text, MAX_DEPTH) => false,
            InStep::Undecided => {
                *self.tree.get_or_init(|| Tree::read(self.json)) == Tree::read(text)
            }
        }
    }

    /// Whether `text` is the value, for a string, or a JSON rendering of it.
    pub(super) fn is_told_by(&self, text: &str) -> bool {
        (kind(self.json) == Some(Kind::String) && decode(self.json) == text)
            || self.is_rendered_by(text)
    }
}

enum InStep {
    Equal,
    Different,
    /// They part inside an object, where another order or a duplicate may still make them equal.
    Undecided,
}

fn in_step(left: &str, right: &str) -> InStep {
    let (mut left, mut right) = (Cursor::new(left), Cursor::new(right));
    let mut open_objects = 0usize;
    loop {
        let equal = match (left.peek(), right.peek()) {
            (None, None) => return InStep::Equal,
            (Some(a @ (b'{' | b'}' | b'[' | b']')), Some(b)) if a == b => {
                match a {
                    b'{' => open_objects += 1,
                    b'}' => open_objects -= 1,
                    _ => {}
                }
                left.step();
                right.step();
                true
            }
            (Some(b'{' | b'}' | b'[' | b']'), _) | (_, Some(b'{' | b'}' | b'[' | b']')) => false,
            (Some(_), Some(_)) => scalars_equal(left.scalar(), right.scalar()),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !equal && open_objects == 0 {
            return InStep::Different;
        }
        if !equal {
            return InStep::Undecided;
        }
    }
}

fn scalars_equal(left: &str, right: &str) -> bool {
    if left == right {
        return true;
    }
    match (kind(left), kind(right)) {
        (Some(Kind::String), Some(Kind::String)) => decode_exactly(left) == decode_exactly(right),
        (Some(Kind::Number), Some(Kind::Number)) => numbers_equal(left, right),
        _ => false,
    }
}

/// Python's `==` on two numbers as its `json` reads them: integers of any size, the rest binary
/// doubles, and the two kinds compared exactly.
fn numbers_equal(left: &str, right: &str) -> bool {
    match (is_integer(left), is_integer(right)) {
        (true, true) => unsigned_zero(left) == unsigned_zero(right),
        (false, false) => left.parse::<f64>().ok() == right.parse::<f64>().ok(),
        (true, false) => integer_equals_float(left, right),
        (false, true) => integer_equals_float(right, left),
    }
}

fn is_integer(number: &str) -> bool {
    !number.contains(['.', 'e', 'E'])
}

fn unsigned_zero(integer: &str) -> &str {
    if integer == "-0" { "0" } else { integer }
}

fn integer_equals_float(integer: &str, float: &str) -> bool {
    // The largest double has 309 digits.
    match float.parse::<f64>() {
        Ok(float) if float.is_finite() && float.fract() == 0.0 && integer.len() <= 310 => {
            // Exact: the whole decimal expansion of the double.
            unsigned_zero(&format!("{float:.0}")) == unsigned_zero(integer)
        }
        _ => false,
    }
}

/// A value as slices of its text. Members are sorted by key, the last of duplicates kept.
pub(super) enum Tree<'a> {
    Scalar(&'a str),
    Array(Vec<Tree<'a>>),
    Object(Vec<Member<'a>>),
}

pub(super) type Member<'a> = (Cow<'a, [u8]>, Tree<'a>);

impl<'a> Tree<'a> {
    /// Recursive: `json` must nest at most [`MAX_DEPTH`] levels.
    pub(super) fn read(json: &'a str) -> Self {
        Self::read_next(&mut Cursor::new(json))
    }

    fn read_next(cursor: &mut Cursor<'a>) -> Self {
        match cursor.peek() {
            Some(b'[') => {
                cursor.step();
                let mut elements = Vec::new();
                while !matches!(cursor.peek(), None | Some(b']')) {
                    elements.push(Self::read_next(cursor));
                }
                cursor.step();
                Self::Array(elements)
            }
            Some(b'{') => {
                cursor.step();
                let mut members = Vec::new();
                while !matches!(cursor.peek(), None | Some(b'}')) {
                    let key = decode_exactly(cursor.scalar());
                    members.push((key, Self::read_next(cursor)));
                }
                cursor.step();
                // A stable sort of the reverse order puts the last of duplicates first.
                members.reverse();
                members.sort_by(|(left, _), (right, _)| left.cmp(right));
                members.dedup_by(|later, kept| later.0 == kept.0);
                Self::Object(members)
            }
            _ => Self::Scalar(cursor.scalar()),
        }
    }

    /// For those who need serde_json's form, of which its own parser refuses lone surrogates,
    /// nesting over 128 levels, and the key names that it reserves for itself.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Array(elements) => elements.iter().map(Self::to_value).collect(),
            Self::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, value)| {
                        let key = String::from_utf8_lossy(key).into_owned();
                        (key, value.to_value())
                    })
                    .collect::<Map<_, _>>(),
            ),
            Self::Scalar("null") => Value::Null,
            Self::Scalar("true") => Value::Bool(true),
            Self::Scalar("false") => Value::Bool(false),
            Self::Scalar(text) if text.starts_with('"') => Value::String(decode(text).into_owned()),
            Self::Scalar(number) => {
                serde_json::from_str::<Number>(number).map_or(Value::Null, Value::Number)
            }
        }
    }
}

impl Tree<'_> {
    /// How many values it is made of, and how many levels of arrays and objects are around the
    /// innermost of them.
    pub(super) fn size(&self) -> (u64, usize) {
        let within = |sizes: &mut dyn Iterator<Item = (u64, usize)>| {
            sizes.fold((1, 0), |(nodes, depth), (more, deep)| {
                (nodes + more, depth.max(deep + 1))
            })
        };
        match self {
            Self::Scalar(_) => (1, 0),
            Self::Array(elements) => within(&mut elements.iter().map(Self::size)),
            Self::Object(members) => within(&mut members.iter().map(|(_, value)| value.size())),
        }
    }

    /// Whether its JSON has more than `limit` bytes, give or take some punctuation.
    pub(super) fn is_larger_than(&self, limit: usize) -> bool {
        self.remainder(limit).is_none()
    }

    fn remainder(&self, limit: usize) -> Option<usize> {
        match self {
            Self::Scalar(text) => limit.checked_sub(text.len()),
            Self::Array(elements) => elements
                .iter()
                .try_fold(limit.checked_sub(2)?, |limit, element| {
                    element.remainder(limit)
                }),
            Self::Object(members) => members
                .iter()
                .try_fold(limit.checked_sub(2)?, |limit, (key, value)| {
                    value.remainder(limit.checked_sub(key.len() + 3)?)
                }),
        }
    }
}

impl PartialEq for Tree<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scalar(left), Self::Scalar(right)) => scalars_equal(left, right),
            (Self::Array(left), Self::Array(right)) => left == right,
            (Self::Object(left), Self::Object(right)) => left == right,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn renderings_compare_as_python_reads_them() {
        // contract: R8
        let big = "9".repeat(400);
        let cases: &[(&str, &str, bool)] = &[
            ("1", "1.0", true),
            ("1", "true", false),
            ("0", "false", false),
            ("0", "-0", true),
            ("0", "-0.0", true),
            ("0.1", "1e-1", true),
            ("1e2", "100", true),
            ("10000000000000000", "1e16", true),
            ("10000000000000001", "1e16", false),
            ("9007199254740993", "9007199254740992.0", false),
            ("9007199254740993.0", "9007199254740992.0", true),
            ("123456789012345678901234567890", "123456789012345678901234567890", true),
            ("123456789012345678901234567890", "123456789012345678901234567891", false),
            ("1e999", "2e999", true),
            ("1e999", "-1e999", false),
            ("1e999", &big, false),
            ("19.99", "19.990", true),
            ("1e400", "1e400", true),
            (r#""a\u0062""#, r#""ab""#, true),
            (r#""\ud800""#, r#""\ud801""#, false),
            (r#""\ud800""#, r#""\uD800""#, true),
            (r#""1""#, "1", false),
            ("null", "null", true),
            ("[1,2]", " [ 1.0 , 2 ]\n", true),
            ("[1,2]", "[2,1]", false),
            ("[1,2]", "[1,2,3]", false),
            ("[1,[2]]", "[1,2]", false),
            ("[]", "{}", false),
            ("{}", "{ }", true),
            (r#"{"a":1,"b":[{"x":1,"y":2}]}"#, r#"{"b":[{"y":2,"x":1.0}],"a":1}"#, true),
            (r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#, false),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, true),
            (r#"{"a":1,"a":2}"#, r#"{"a":1}"#, false),
            (r#"{"a":1,"a":2}"#, r#"{"a":3,"a":2}"#, true),
            (r#"[{"a":1,"a":2},5]"#, r#"[{"a":2},5.0]"#, true),
            (r#"{"a":1}"#, r#"{"\u0061":1}"#, true),
            (r#"{"a":1}"#, r#"{"a":1} and more"#, false),
            (r#"{"a":1}"#, "\u{feff}{\"a\":1}", false),
            ("[1]", "[NaN]", false),
        ];
        for (value, text, expected) in cases {
            let found = Reference::new(value).is_rendered_by(text);
            assert_eq!(found, *expected, "{value} and {text}");
        }
    }

    #[test]
    fn a_string_is_told_by_itself_and_by_its_literal() {
        // contract: R4
        let string = Reference::new(r#""a\nb""#);
        assert!(string.is_told_by("a\nb"));
        assert!(string.is_told_by(r#""a\u000ab""#));
        assert!(!string.is_told_by("a b"));
        assert!(!Reference::new("[1]").is_told_by("1"));
    }

    #[test]
    fn values_keep_numbers_and_survive_names_that_serde_json_reserves() {
        let json = r#"{"a":1e999,"b":[12345678901234567890123,true,null,"\ud800"],"$serde_json::private::Number":"1"}"#;
        let value = Tree::read(json).to_value();
        assert_eq!(value["b"][0].to_string(), "12345678901234567890123");
        assert_eq!(value["b"][3], "\u{fffd}");
        assert_eq!(value["$serde_json::private::Number"], "1");
    }
}
