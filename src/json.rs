//! JSON as text, on its way through the server: checking it once, and carrying it with the knowledge
//! that it was checked.
//!
//! A large result is a matter of passes over its bytes, so nothing here builds a tree, and nothing
//! recurses. It knows no MCP.

use std::ops::Range;

use bytes::Bytes;
use serde_json::value::RawValue;

/// Where glibc stops adapting itself: it gives back at once what it mapped for one allocation, but
/// raises the size from which it maps to that of the largest that was freed, up to this size. From
/// then on smaller ones come out of heaps, which keep their pages.
const ALWAYS_MAPPED: usize = 32 * 1024 * 1024 + 64 * 1024;

/// From here on an allocation is worth an own mapping.
const LARGE: usize = 1024 * 1024;

/// Text that costs nothing to keep, however little of it is wanted.
const WORTH_KEEPING: usize = 64 * 1024;

/// One JSON value as text, valid, and without white space around it. Whoever makes one has checked
/// that, or has it from somebody who did.
#[derive(Debug, Clone)]
pub struct Json {
    text: String,
    range: Range<usize>,
}

impl Json {
    /// The value that is a part of a text, which is moved and not copied, unless most of it would
    /// be kept for nothing.
    pub fn part(text: String, range: Range<usize>) -> Self {
        if text.len() > WORTH_KEEPING && range.len() < text.len() / 2 {
            return Self::from(text[range].to_owned());
        }
        Self { text, range }
    }

    /// A value within this one.
    pub fn within(self, range: Range<usize>) -> Self {
        let start = self.range.start;
        Self::part(self.text, start + range.start..start + range.end)
    }

    pub fn get(&self) -> &str {
        &self.text[self.range.clone()]
    }

    /// The text around the value, and where the value is.
    pub fn into_text(self) -> (String, Range<usize>) {
        (self.text, self.range)
    }

    /// Not copied either.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from(self.text.into_bytes()).slice(self.range)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// For text that is known to be one value.
impl From<String> for Json {
    fn from(text: String) -> Self {
        let range = 0..text.len();
        Self { text, range }
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Box::<str>::from(raw).into_string().into()
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        raw.get().to_owned().into()
    }
}

/// Where `part`, a slice of `whole`, is in it.
pub fn place(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// Makes room for what may become large, in such a way that the memory goes back to the system when
/// the buffer is dropped. What is reserved and never written costs no memory.
pub fn reserve(buffer: &mut Vec<u8>, additional: usize) {
    let enough = buffer.len() + additional;
    if enough < LARGE {
        buffer.reserve(additional);
    } else if buffer.capacity() < enough {
        let wanted = enough.max(ALWAYS_MAPPED).max(2 * buffer.len());
        // A system may count what is reserved, and refuse it.
        if buffer.try_reserve_exact(wanted - buffer.len()).is_err() {
            buffer.reserve(additional);
        }
    }
}

/// How many levels of arrays and objects are in a text that is one JSON value; `None` when it is
/// not. Unlike Python's `json`, this refuses `NaN` and `Infinity`.
pub fn depth(text: &str) -> Option<usize> {
    let (end, depth) = Scanner::new(text).value_at(0)?;
    token(text.as_bytes(), end).is_none().then_some(depth)
}

/// Reads JSON and checks it on the way, as strictly as serde_json does.
#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// What closes each array and object that is open.
    open: Vec<u8>,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            open: Vec::new(),
        }
    }

    /// How much was read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The members of one object as they are read: the key's literal, the value, and how many levels
    /// the value has. `None` where the text is no object, broken members included.
    pub fn object(&mut self, mut each: impl FnMut(&'a str, &'a str, usize)) -> Option<()> {
        let bytes = self.text.as_bytes();
        let (byte, at) = token(bytes, self.at)?;
        if byte != b'{' {
            return None;
        }
        let (byte, mut at) = token(bytes, at + 1)?;
        if byte == b'}' {
            self.at = at + 1;
            return Some(());
        }
        loop {
            let (_, start) = token(bytes, at)?;
            let key = start..string(bytes, start)?;
            let (_, start) = token(bytes, colon(bytes, key.end)?)?;
            let (end, depth) = self.value_at(start)?;
            each(&self.text[key], &self.text[start..end], depth);
            let (byte, found) = token(bytes, end)?;
            at = found + 1;
            match byte {
                b',' => {}
                b'}' => {
                    self.at = at;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// The end of the value that begins at `at`, and the number of its levels.
    fn value_at(&mut self, mut at: usize) -> Option<(usize, usize)> {
        let bytes = self.text.as_bytes();
        let open = &mut self.open;
        open.clear();
        let mut deepest = 0;
        loop {
            let (byte, start) = token(bytes, at)?;
            at = match byte {
                b'"' => string(bytes, start)?,
                b'{' => {
                    open.push(b'}');
                    deepest = deepest.max(open.len());
                    match token(bytes, start + 1)? {
                        (b'}', end) => end,
                        (_, key) => {
                            at = colon(bytes, string(bytes, key)?)?;
                            continue;
                        }
                    }
                }
                b'[' => {
                    open.push(b']');
                    deepest = deepest.max(open.len());
                    match token(bytes, start + 1)? {
                        (b']', end) => end,
                        (_, element) => {
                            at = element;
                            continue;
                        }
                    }
                }
                b'-' | b'0'..=b'9' => number(bytes, start)?,
                b't' => word(bytes, start, b"true")?,
                b'f' => word(bytes, start, b"false")?,
                b'n' => word(bytes, start, b"null")?,
                _ => return None,
            };
            loop {
                let Some(&close) = open.last() else {
                    return Some((at, deepest));
                };
                let (byte, found) = token(bytes, at)?;
                at = found + 1;
                if byte == b',' {
                    if close == b'}' {
                        let (_, key) = token(bytes, at)?;
                        at = colon(bytes, string(bytes, key)?)?;
                    }
                    break;
                }
                if byte != close {
                    return None;
                }
                open.pop();
            }
        }
    }
}

/// The next byte that is not white space, and its place.
#[inline(always)]
fn token(bytes: &[u8], mut at: usize) -> Option<(u8, usize)> {
    loop {
        match *bytes.get(at)? {
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            byte => return Some((byte, at)),
        }
    }
}

/// One past the colon that comes next.
#[inline(always)]
fn colon(bytes: &[u8], at: usize) -> Option<usize> {
    let (byte, at) = token(bytes, at)?;
    (byte == b':').then_some(at + 1)
}

/// One past the closing quote of the string that opens at `at`.
#[inline(always)]
fn string(bytes: &[u8], at: usize) -> Option<usize> {
    if *bytes.get(at)? != b'"' {
        return None;
    }
    let mut at = at + 1;
    loop {
        at = plain_end(bytes, at);
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at = escape(bytes, at)?,
            // A control character.
            _ => return None,
        }
    }
}

/// One past the escape that begins with the backslash at `at`.
#[inline(always)]
fn escape(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
        b'u' => {
            let digits = bytes.get(at + 2..at + 6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 6)
        }
        _ => None,
    }
}

#[inline(always)]
fn number(bytes: &[u8], start: usize) -> Option<usize> {
    let start = start + usize::from(bytes[start] == b'-');
    let mut at = digits(bytes, start)?;
    if bytes[start] == b'0' && at > start + 1 {
        return None;
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits(bytes, at + 1 + usize::from(sign))?;
    }
    Some(at)
}

/// One past the digits that begin at `start`: at least one.
#[inline(always)]
fn digits(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > start).then_some(at)
}

#[inline(always)]
fn word(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes[at..].starts_with(word).then_some(at + word.len())
}

/// The place from `at` on of the first byte that means something in a string literal: a quote, a
/// backslash or a control character.
#[inline(always)]
pub fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    // Most strings and most runs between escapes are short.
    for _ in 0..16 {
        match bytes.get(at) {
            Some(byte) if !MEANS_SOMETHING[usize::from(*byte)] => at += 1,
            _ => return at,
        }
    }
    long_plain_end(bytes, at)
}

fn long_plain_end(bytes: &[u8], mut at: usize) -> usize {
    for word in bytes[at..].as_chunks().0 {
        let plain = plain(*word);
        at += plain;
        if plain < 8 {
            return at;
        }
    }
    while bytes
        .get(at)
        .is_some_and(|byte| !MEANS_SOMETHING[usize::from(*byte)])
    {
        at += 1;
    }
    at
}

const MEANS_SOMETHING: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8, b'"' | b'\\' | 0..0x20);
        byte += 1;
    }
    table
};

const ONES: u64 = u64::MAX / 255;

/// The sign bits of the bytes that are smaller than `limit`. What a borrow makes wrong is behind the
/// first of them.
#[inline(always)]
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & (ONES << 7)
}

/// How many of eight bytes are before the first that means something in a string literal.
#[inline(always)]
fn plain(word: [u8; 8]) -> usize {
    let word = u64::from_le_bytes(word);
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let found = below(word, 0x20) | is(b'"') | is(b'\\');
    found.trailing_zeros() as usize / 8
}

/// How many of eight bytes are before the first backslash.
#[inline(always)]
pub fn unescaped(word: [u8; 8]) -> usize {
    let found = below(u64::from_le_bytes(word) ^ (ONES * u64::from(b'\\')), 1);
    found.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    fn is_json(text: &str) -> bool {
        serde_json::from_str::<IgnoredAny>(text).is_ok()
    }

    #[test]
    fn depth_counts_levels() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let cases = [
            ("1", Some(0)),
            (" [] ", Some(1)),
            (r#"{"[[[":"]\"[["}"#, Some(1)),
            (r#"[{"a":[1]},[]]"#, Some(3)),
            (&deep, Some(5000)),
            ("[1]]", None),
            ("[1},", None),
            ("", None),
            ("NaN", None),
        ];
        for (text, expected) in cases {
            assert_eq!(depth(text), expected, "{text:.60}");
        }
    }

    #[test]
    fn a_value_keeps_no_text_that_is_mostly_something_else() {
        let large = format!("{{\"a\":\"{}\",\"b\":[1,2]}}", "x".repeat(100_000));
        let json = Json::from(large.clone());
        let place = place(json.get(), &json.get()[5..100_007]);
        let long = json.clone().within(place);
        assert_eq!(long.get(), &large[5..100_007]);
        assert_eq!(long.into_text().0.len(), large.len());
        let short = json.within(large.len() - 6..large.len() - 1);
        assert_eq!(short.into_text(), ("[1,2]".to_owned(), 0..5));
    }

    #[test]
    fn bytes_are_those_of_the_part() {
        let json = Json::part("  [1,2] ".to_owned(), 2..7);
        assert_eq!(
            (json.get(), &json.clone().into_bytes()[..]),
            ("[1,2]", &b"[1,2]"[..])
        );
        assert_eq!(json, Json::from("[1,2]".to_owned()));
    }

    #[test]
    fn every_byte_is_found_in_every_place() {
        for byte in 0..=255u8 {
            let means_something = matches!(byte, b'"' | b'\\' | 0..0x20);
            for place in 0..17 {
                let mut bytes = [0x80u8, b'a', 0xff, b' '].repeat(5);
                bytes[place] = byte;
                bytes[18] = b'"';
                let expected = if means_something { place } else { 18 };
                assert_eq!(plain_end(&bytes, 0), expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn a_backslash_is_found_in_every_place() {
        for byte in 0..=255u8 {
            for place in 0..8 {
                let mut word = [byte; 8];
                word[place..].fill(b'\\');
                let expected = if byte == b'\\' { 0 } else { place };
                assert_eq!(unescaped(word), expected, "{word:?}");
            }
            let expected = if byte == b'\\' { 0 } else { 8 };
            assert_eq!(unescaped([byte; 8]), expected);
        }
    }

    proptest! {
        #[test]
        fn what_serde_json_reads_is_json(text in r#"(\{|\}|\[|\]|,|:|"[a\\"u0é]{0,9}"|"a"|"\\ud8e0"|-|0|12|\.5|e[+-]?|true|null|fals|[ \n\t]|\x{1}){0,14}"#) {
            prop_assert_eq!(depth(&text).is_some(), is_json(&text), "{}", text);
        }

        #[test]
        fn an_object_is_what_serde_json_takes_for_one(text in r#"\{("a":(1|\[\]|"\\""|\{"b":\[1,\{\}\]\}| ?)[,:]? ?){0,4}\}?"#) {
            let mut members = String::new();
            let mut scanner = Scanner::new(&text);
            let is_object = scanner.object(|key, value, _| members += &format!("{key}:{value},"));
            prop_assert_eq!(is_object.is_some(), is_json(&text[..text.trim_end().len()]), "{}", text);
        }

        #[test]
        fn numbers_are_those_of_serde_json(text in "-?[0-9]{0,3}(\\.[0-9]{0,2})?([eE][+-]?[0-9]{0,2})?") {
            prop_assert_eq!(depth(&text).is_some(), is_json(&text), "{}", text);
        }
    }
}
