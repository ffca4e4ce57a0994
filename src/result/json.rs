//! JSON as text: cutting it into pieces without building a tree.
//!
//! Everything here but [`is_json`] and [`json_depth`] expects text that a JSON parser has already accepted, and
//! answers with slices of it. It knows no MCP and compares nothing. Nothing here recurses, so
//! nesting costs no stack.

use std::borrow::Cow;

use crate::json::{depth, plain_end, reserve, unescaped};

/// The whitespace that JSON allows around a value, in Python's `json` and in serde_json alike.
/// A byte order mark is not among it.
const WHITESPACE: [char; 4] = [' ', '\t', '\n', '\r'];

pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(WHITESPACE)
}

/// Whether `text` is one JSON value. Unlike Python's `json`, this refuses `NaN` and `Infinity`.
pub(super) fn is_json(text: &str) -> bool {
    json_depth(text).is_some()
}

/// How many levels of arrays and objects a text has that is one JSON value.
pub(super) fn json_depth(text: &str) -> Option<usize> {
    // Most texts are prose, and their first character gives them away.
    kind(text)?;
    depth(text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    pub(super) fn article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// What the JSON value in `text` is, by its first character; `None` when it cannot be one.
pub(super) fn kind(text: &str) -> Option<Kind> {
    match text.trim_start_matches(WHITESPACE).as_bytes().first()? {
        b'{' => Some(Kind::Object),
        b'[' => Some(Kind::Array),
        b'"' => Some(Kind::String),
        b'-' | b'0'..=b'9' => Some(Kind::Number),
        b't' | b'f' => Some(Kind::Bool),
        b'n' => Some(Kind::Null),
        _ => None,
    }
}

/// Whether arrays and objects nest more than `limit` levels deep.
pub(super) fn is_deeper_than(text: &str, limit: usize) -> bool {
    let mut depth = 0usize;
    outside_strings(text, |byte| {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth <= limit
    });
    depth > limit
}

/// Goes through the bytes that are no part of a string, for as long as they are wanted.
pub(super) fn outside_strings(text: &str, mut wanted: impl FnMut(u8) -> bool) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' {
            at = string_end(bytes, at);
        } else if wanted(byte) {
            at += 1;
        } else {
            return;
        }
    }
}

/// The members of the object in `text`, in order and with duplicates: key literals and values.
pub(super) fn members(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut cursor = Cursor::inside(text);
    std::iter::from_fn(move || Some((cursor.next()?, cursor.next()?)))
}

/// The literal of the first key of the object in `text`, whose value is not looked at.
pub(super) fn first_key(text: &str) -> Option<&str> {
    Cursor::inside(text).next()
}

/// The elements of the array in `text`.
pub(super) fn elements(text: &str) -> impl Iterator<Item = &str> {
    let mut cursor = Cursor::inside(text);
    std::iter::from_fn(move || cursor.next())
}

/// The value of a key in the object in `text`. Of duplicates the last one counts, as in Python.
pub(super) fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    members(text)
        .filter(|(key, _)| is_key(key, name))
        .last()
        .map(|(_, value)| value)
}

/// Whether a key literal spells `name`, with or without escapes.
pub(super) fn is_key(literal: &str, name: &str) -> bool {
    decode(literal) == name
}

/// The elements of the array in `text`, with those of arrays within it in their place and without
/// `null`.
pub(super) fn leaves(text: &str) -> impl Iterator<Item = &str> {
    let mut cursor = Cursor::new(text);
    std::iter::from_fn(move || {
        loop {
            match cursor.peek()? {
                b'[' | b']' => cursor.step(),
                _ => match cursor.next()? {
                    "null" => {}
                    leaf => return Some(leaf),
                },
            }
        }
    })
}

/// Walks over the values at one level, past commas and colons.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Of an array or an object; of anything else there is nothing inside.
    pub(super) fn inside(text: &'a str) -> Self {
        let mut cursor = Self::new(text);
        match cursor.peek() {
            Some(b'{' | b'[') => cursor.at += 1,
            _ => cursor.at = text.len(),
        }
        cursor
    }

    /// The next byte that is not whitespace or a separator.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Passes one bracket.
    pub(super) fn step(&mut self) {
        self.at += 1;
    }

    /// The scalar that begins here.
    pub(super) fn scalar(&mut self) -> &'a str {
        let end = scalar_end(self.text.as_bytes(), self.at);
        let scalar = &self.text[self.at..end];
        self.at = end;
        scalar
    }

    /// The value that begins here, or the key; `None` at the end of the array or object, which is
    /// not passed.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at = match first {
            b'}' | b']' => return None,
            b'{' | b'[' => nested_end(bytes, start),
            _ => scalar_end(bytes, start),
        };
        Some(&self.text[start..self.at])
    }
}

fn scalar_end(bytes: &[u8], start: usize) -> usize {
    if bytes.get(start) == Some(&b'"') {
        return string_end(bytes, start);
    }
    let length = bytes[start..]
        .iter()
        .position(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'}' | b']'));
    length.map_or(bytes.len(), |length| start + length)
}

/// One past the closing quote of the string that opens at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return bytes.len(),
        }
    }
}

fn nested_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The text of a string literal. A lone surrogate, which is no character, becomes U+FFFD.
pub(super) fn decode(literal: &str) -> Cow<'_, str> {
    match decode_with(literal, |_, out| {
        out.extend_from_slice("\u{fffd}".as_bytes())
    }) {
        Cow::Borrowed(_) => Cow::Borrowed(unquoted(literal)),
        Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }),
    }
}

/// The text of a string literal as bytes in which different lone surrogates stay different: each
/// is encoded as UTF-8 would encode it if it were a character.
pub(super) fn decode_exactly(literal: &str) -> Cow<'_, [u8]> {
    decode_with(literal, |unit, out| {
        out.extend_from_slice(&[
            0xe0 | (unit >> 12) as u8,
            0x80 | ((unit >> 6) & 0x3f) as u8,
            0x80 | (unit & 0x3f) as u8,
        ]);
    })
}

/// The inside of a string literal, still escaped.
pub(super) fn unquoted(literal: &str) -> &str {
    literal
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(literal)
}

fn decode_with(literal: &str, surrogate: impl Fn(u16, &mut Vec<u8>)) -> Cow<'_, [u8]> {
    let inner = unquoted(literal).as_bytes();
    let Some(first) = memchr::memchr(b'\\', inner) else {
        return Cow::Borrowed(inner);
    };
    let mut out = Vec::new();
    // The end of a run between two escapes is copied with what follows it, and then taken back.
    reserve(&mut out, inner.len() + RUN);
    out.extend_from_slice(&inner[..first]);
    let mut rest = &inner[first..];
    loop {
        while let Some(run) = rest.first_chunk::<RUN>() {
            out.extend_from_slice(run);
            let backslash = unescaped(*run);
            out.truncate(out.len() - (RUN - backslash));
            rest = &rest[backslash..];
            if backslash < RUN {
                break;
            }
        }
        if rest.first() != Some(&b'\\') {
            // Less than a run is left.
            let backslash = rest.iter().position(|byte| *byte == b'\\');
            let (run, escape) = rest.split_at(backslash.unwrap_or(rest.len()));
            out.extend_from_slice(run);
            rest = escape;
            if rest.is_empty() {
                break;
            }
        }
        if let Some(unit) = unicode_escape(rest) {
            rest = &rest[6..];
            let low = unicode_escape(rest).filter(|low| (0xdc00..0xe000).contains(low));
            let character = match (unit, low) {
                (0xd800..0xdc00, Some(low)) => {
                    rest = &rest[6..];
                    char::from_u32(
                        0x10000 + ((u32::from(unit) - 0xd800) << 10) + (u32::from(low) - 0xdc00),
                    )
                }
                _ => char::from_u32(u32::from(unit)),
            };
            match character {
                Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => surrogate(unit, &mut out),
            }
            continue;
        }
        match rest.get(1) {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(other) => out.push(*other),
            None => {}
        }
        rest = rest.get(2..).unwrap_or_default();
    }
    Cow::Owned(out)
}

/// How many bytes of a string are copied at a time where escapes are near.
const RUN: usize = 8;

/// The code unit of the `\uXXXX` with which `bytes` begins.
fn unicode_escape(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The size of a JSON text without the white space between its tokens, and how many levels of
/// arrays and objects it has.
pub(super) fn measure(json: &str) -> (usize, usize) {
    let bytes = json.as_bytes();
    let (mut at, mut white) = (0, 0);
    let (mut depth, mut deepest) = (0usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b' ' | b'\t' | b'\n' | b'\r' => white += 1,
            _ => {}
        }
        at += 1;
    }
    (bytes.len() - white, deepest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_is_what_a_parser_takes_with_its_own_whitespace_only() {
        let cases = [
            ("{}", true),
            (" \t\r\n[1] \n", true),
            ("1e999", true),
            ("-0", true),
            (r#""\ud800""#, true),
            ("", false),
            ("NaN", false),
            ("-Infinity", false),
            ("\u{feff}{}", false),
            ("\u{a0}1", false),
            ("1 2", false),
            ("None", false),
            ("true enough", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_json(text), expected, "{text:?}");
        }
        assert!(is_json(&"[".repeat(100_000).add_closing()));
    }

    trait AddClosing {
        fn add_closing(self) -> String;
    }

    impl AddClosing for String {
        fn add_closing(self) -> String {
            let closing = "]".repeat(self.len());
            self + &closing
        }
    }

    #[test]
    fn depth_counts_brackets_outside_strings() {
        let cases = [
            ("1", 0, false),
            ("[]", 0, true),
            ("[]", 1, false),
            (r#"{"[[[":"]\"[["}"#, 1, false),
            (r#"[{"a":[1]},[]]"#, 2, true),
            (r#"[{"a":[1]},[]]"#, 3, false),
        ];
        for (text, limit, expected) in cases {
            assert_eq!(is_deeper_than(text, limit), expected, "{text} over {limit}");
        }
    }

    #[test]
    fn strings_decode_as_python_reads_them() {
        let cases = [
            (r#""plain""#, "plain"),
            (r#""""#, ""),
            (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#""\u005fnotes""#, "_notes"),
            (r#""\uD83D\uDE00!""#, "😀!"),
            (r#""\ud800""#, "\u{fffd}"),
            (r#""\ud800\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ude00x""#, "\u{fffd}x"),
            (r#""\ud800\n""#, "\u{fffd}\n"),
            (r#""é\u00e9""#, "éé"),
        ];
        for (literal, expected) in cases {
            assert_eq!(decode(literal), expected, "{literal}");
        }
        assert_ne!(decode_exactly(r#""\ud800""#), decode_exactly(r#""\ud801""#));
    }

    #[test]
    fn pieces_are_slices_of_the_text() {
        let object = r#" { "a" : [1, {"b": "},"}] , "c":null,"a":-1.50e3 } "#;
        let found: Vec<_> = members(object).collect();
        assert_eq!(
            found,
            [
                (r#""a""#, r#"[1, {"b": "},"}]"#),
                (r#""c""#, "null"),
                (r#""a""#, "-1.50e3")
            ]
        );
        assert_eq!(member(object, "a"), Some("-1.50e3"));
        assert_eq!(member(object, "b"), None);
        assert_eq!(
            elements(r#"[ [], "x\"]" ,{}]"#).collect::<Vec<_>>(),
            ["[]", r#""x\"]""#, "{}"]
        );
        let list = r#"[1,[[],[2,{"a":[3]}],null],"[4]"]"#;
        assert_eq!(
            leaves(list).collect::<Vec<_>>(),
            ["1", "2", r#"{"a":[3]}"#, r#""[4]""#]
        );
        assert_eq!(elements("[]").count() + members("{ }").count(), 0);
        assert_eq!(elements("7").count() + members("\"{}\"").count(), 0);
    }

    proptest! {
        #[test]
        fn any_string_survives_its_literal(text in any::<String>()) {
            let literal = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decode(&literal), text.as_str());
            prop_assert_eq!(&*decode_exactly(&literal), text.as_bytes());
        }

        /// The caller promises JSON; a broken promise must not panic all the same.
        #[test]
        fn no_text_panics(text in r#"[\[\]{}",:\\ud8e0 1a\u{e9}]{0,40}"#) {
            let _ = members(&text).count() + elements(&text).count() + leaves(&text).count();
            let _ = is_deeper_than(&text, 3);
            let _ = (decode(&text), decode_exactly(&text));
        }
    }
}
