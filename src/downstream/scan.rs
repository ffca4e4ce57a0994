//! Finding one's way in JSON text that is broken, or of which only the ends are left.
//!
//! Pure, and good for nothing but to learn whose answer was spoiled: what can be parsed is parsed.

use rmcp::model::RequestId;

use super::wire::read_id;

/// Whether broken text begins as a message does, rather than quoting one somewhere inside.
pub(super) fn looks_like_a_message(json: &[u8]) -> bool {
    Keys::new(json).any(|(key, _)| matches!(key, b"jsonrpc" | b"id" | b"result" | b"error"))
}

/// The index of the quote that closes the string opened at `open`.
fn end_of_string(json: &[u8], open: usize) -> Option<usize> {
    let mut i = open + 1;
    loop {
        match json.get(i)? {
            b'"' => return Some(i),
            b'\\' => i += 2,
            _ => i += 1,
        }
    }
}

/// The keys of an object that may be broken or cut off, each with what follows its colon.
struct Keys<'a> {
    json: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Keys<'a> {
    fn new(json: &'a [u8]) -> Self {
        Self {
            json,
            at: 0,
            depth: 0,
        }
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let byte = *self.json.get(self.at)?;
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth <= 1 => return None,
                b'}' | b']' => self.depth -= 1,
                b'"' => {
                    let close = end_of_string(self.json, self.at)?;
                    let text = &self.json[self.at + 1..close];
                    self.at = close + 1;
                    let value = skip_space(&self.json[self.at..]);
                    if self.depth == 1 && value.first() == Some(&b':') {
                        return Some((text, skip_space(&value[1..])));
                    }
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}

fn skip_space(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii_start()
}

pub(super) fn is_response(head: &[u8]) -> bool {
    !Keys::new(head).any(|(key, _)| key == b"method")
}

/// The id of a message by its beginning, whatever is broken behind it.
pub(super) fn id_from_head(head: &[u8]) -> Option<RequestId> {
    let (_, value) = Keys::new(head).filter(|(key, _)| *key == b"id").last()?;
    let end = match value.first()? {
        b'"' => end_of_string(value, 0)? + 1,
        _ => value
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'.'))?,
    };
    read_id(std::str::from_utf8(&value[..end]).ok()?)
}

/// The id of a message by its end: read backwards, where every string's bounds are certain, since
/// a complete message ends outside of all strings.
pub(super) fn id_from_tail(tail: &[u8]) -> Option<RequestId> {
    let tail = tail.trim_ascii_end();
    let mut depth = 0usize;
    let mut value_end = tail.len();
    let mut i = tail.len();
    while i > 0 {
        i -= 1;
        match tail[i] {
            b'}' | b']' => {
                depth += 1;
                if depth == 1 {
                    value_end = i;
                }
            }
            b'{' | b'[' => depth = depth.checked_sub(1)?,
            b',' if depth == 1 => value_end = i,
            b'"' => i = start_of_string(tail, i)?,
            b':' if depth == 1 => {
                let before = tail[..i].trim_ascii_end();
                if before.ends_with(b"\"id\"") {
                    let value = std::str::from_utf8(&tail[i + 1..value_end]).ok()?;
                    return read_id(value.trim());
                }
            }
            _ => {}
        }
    }
    None
}

/// The index of the quote that opens the string closed at `close`.
fn start_of_string(json: &[u8], close: usize) -> Option<usize> {
    let mut i = close;
    loop {
        i = json[..i].iter().rposition(|byte| *byte == b'"')?;
        let escapes = json[..i].iter().rev().take_while(|b| **b == b'\\').count();
        if escapes % 2 == 0 {
            return Some(i);
        }
    }
}
