//! What a program receives for a tool's result: the text of a `CallToolResult` in, the JSON text
//! of a value or a [`ToolError`] out.
//!
//! JSON stays text on the way: what the server wrote is passed on byte for byte, so numbers of any
//! size, float texts, key order and duplicate keys survive, and a large result costs a few passes
//! over its bytes. Trees are built only where values must be compared or validated.
//! The module does no I/O and does not know who called or how the result was fetched.

mod compare;
mod content;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod json;
mod schema;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::json::{Json, place};
use crate::tool::ToolError;

use compare::Reference;
use content::{Block, Text, article, blocks};
use json::{
    Cursor, Kind, decode, elements, first_key, is_deeper_than, is_json, is_key, json_depth, kind,
    leaves, measure, member, members, outside_strings, trim, unquoted,
};

pub use schema::OutputSchema;

/// How many levels of arrays and objects a value may nest. Below what an interpreter and a thread's
/// stack can take; a note around the value adds one.
pub const MAX_DEPTH: usize = 512;

/// What is known about a tool before its result is read.
#[derive(Debug, Clone, Copy)]
pub struct Expectation<'a> {
    /// The name by which the program called it.
    pub tool: &'a str,
    /// The declared output schema, if it can be enforced.
    pub schema: Option<&'a OutputSchema>,
    /// Whether an output schema is declared, enforceable or not: then there must be structured content.
    pub declares_schema: bool,
    pub wrap: Wrap,
    /// `max_tool_result_bytes`.
    pub limit: usize,
}

/// What a server tells about `{"result": …}` objects that only wrap a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrap {
    /// The server marks nothing, so the texts beside the object decide.
    Unmarked,
    /// It marks some results, so what it does not mark is a genuine object.
    MarksSome,
    /// This tool's output schema carries `x-fastmcp-wrap-result`.
    Marked,
}

/// The tree of a JSON text, or `None` for what is no JSON or nests more than [`MAX_DEPTH`] levels.
pub fn tree(json: &str) -> Option<Value> {
    if is_deeper_than(json, MAX_DEPTH) {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.disable_recursion_limit();
    Value::deserialize(&mut deserializer).ok()
}

/// How many values a JSON text has, names of members included: what its tree costs goes by them.
pub fn values(json: &str) -> usize {
    let mut values = 1;
    outside_strings(json, |byte| {
        values += usize::from(matches!(byte, b',' | b':' | b'[' | b'{'));
        true
    });
    values
}

#[derive(Debug)]
pub struct Parsed {
    pub value: Json,
    /// Whether this result carried `_meta.fastmcp.wrap_result`.
    pub marked: bool,
    /// The size of what a client shows a model that called the tool itself: the structured content,
    /// or else the texts.
    pub shown_bytes: usize,
}

/// Turns the `result` of a `tools/call` answer into the value that the program receives. The value
/// is moved out of what the server wrote: a large one is never copied.
pub fn value_of(raw: Json, expect: &Expectation<'_>) -> Result<Parsed, ToolError> {
    let read = Read::of(raw.get(), expect)?;
    let (marked, shown_bytes) = (read.marked, read.shown_bytes);
    let value = match read.value {
        Piece::Within(value) => {
            let place = place(raw.get(), value);
            raw.within(place)
        }
        Piece::Own(value) => value,
    };
    Ok(Parsed {
        value,
        marked,
        shown_bytes,
    })
}

/// [`Parsed`], before its value is taken out of the result.
struct Read<'a> {
    value: Piece<'a>,
    marked: bool,
    shown_bytes: usize,
}

impl<'a> Read<'a> {
    fn of(result: &'a str, expect: &Expectation<'_>) -> Result<Self, ToolError> {
        let unreadable = |reason: String| ToolError::Unreadable {
            tool: expect.tool.to_owned(),
            reason,
        };
        let envelope = Envelope::read(result).map_err(unreadable)?;
        let blocks = envelope.content.map_err(unreadable)?;
        if envelope.is_error {
            return Err(ToolError::Failed {
                tool: expect.tool.to_owned(),
                details: error_details(&blocks, expect.limit),
            });
        }
        let (shown_bytes, depth) = match envelope.structured {
            Some(structured) => measure(structured),
            None => (blocks.iter().map(Block::shown_bytes).sum(), 0),
        };
        let delivery = match structured(envelope.structured, depth, expect)? {
            Some(structured) => from_structured(structured, &blocks, envelope.marked, expect.wrap),
            None => from_texts(blocks),
        };
        Ok(Self {
            value: delivery.map_err(unreadable)?.into_piece(expect)?,
            marked: envelope.marked,
            shown_bytes,
        })
    }
}

/// The members of a `CallToolResult` that matter here.
struct Envelope<'a> {
    content: Result<Vec<Block<'a>>, String>,
    structured: Option<&'a str>,
    is_error: bool,
    marked: bool,
}

impl<'a> Envelope<'a> {
    fn read(result: &'a str) -> Result<Self, String> {
        if kind(result) != Some(Kind::Object) {
            return Err(format!("the result is {}, not an object", article(result)));
        }
        let mut envelope = Self {
            content: Ok(Vec::new()),
            structured: None,
            is_error: false,
            marked: false,
        };
        let mut cursor = Cursor::inside(result);
        while let Some(key) = cursor.next() {
            let key = decode(key);
            if key == "content" {
                envelope.content = blocks(&mut cursor);
                continue;
            }
            let Some(value) = cursor.next() else { break };
            match &*key {
                "structuredContent" => envelope.structured = Some(value),
                "isError" => {
                    envelope.is_error = match value {
                        "true" => true,
                        "false" | "null" => false,
                        _ => return Err(format!("isError is {}, not a boolean", article(value))),
                    };
                }
                "_meta" => envelope.marked = has_wrap_mark(value),
                _ => {}
            }
        }
        Ok(envelope)
    }
}

fn has_wrap_mark(meta: &str) -> bool {
    member(meta, "fastmcp").and_then(|fastmcp| member(fastmcp, "wrap_result")) == Some("true")
}

/// R1. The server's own words, up to the limit for results.
fn error_details(blocks: &[Block<'_>], limit: usize) -> String {
    let mut details = String::new();
    for block in blocks {
        let Block::Text(text) = block else { continue };
        let text = text.text.trim();
        if text.is_empty() {
            continue;
        }
        if !details.is_empty() {
            details.push(' ');
        }
        details.push_str(text);
    }
    if details.is_empty() {
        return "no details".to_owned();
    }
    if details.len() > limit {
        details.truncate(details.floor_char_boundary(limit));
        details.push_str("... (truncated)");
    }
    details
}

/// R9. The structured content, which nests `depth` levels, once it is known to be what the tool
/// declared.
///
/// An explicit `null` is no structured content, as servers write it that serialize absent fields;
/// unless a declared schema allows `null`.
fn structured<'a>(
    structured: Option<&'a str>,
    depth: usize,
    expect: &Expectation<'_>,
) -> Result<Option<&'a str>, ToolError> {
    let mismatch = |violation: String| ToolError::SchemaMismatch {
        tool: expect.tool.to_owned(),
        violation,
    };
    let missing = || mismatch("structuredContent is missing".to_owned());
    let structured = match structured {
        Some(structured) => structured,
        None if expect.declares_schema => return Err(missing()),
        None => return Ok(None),
    };
    if depth > MAX_DEPTH {
        return Err(ToolError::Unreadable {
            tool: expect.tool.to_owned(),
            reason: too_deep("its structuredContent"),
        });
    }
    let violation = expect
        .schema
        .and_then(|schema| schema.violation_in(structured));
    match (structured, violation) {
        ("null", Some(_)) => Err(missing()),
        ("null", None) if expect.schema.is_some() => Ok(Some(structured)),
        ("null", None) if expect.declares_schema => Err(missing()),
        ("null", None) => Ok(None),
        (_, Some(violation)) => Err(mismatch(violation)),
        (_, None) => Ok(Some(structured)),
    }
}

fn too_deep(what: &str) -> String {
    format!("{what} nests arrays and objects more than {MAX_DEPTH} levels deep")
}

/// R2, R3, R4.
fn from_structured<'a>(
    structured: &'a str,
    blocks: &[Block<'_>],
    marked: bool,
    wrap: Wrap,
) -> Result<Delivery<'a>, String> {
    let whole = Reference::new(structured);
    let wrap = if marked { Wrap::Marked } else { wrap };
    let wrapped = sole_result(structured).filter(|_| match wrap {
        Wrap::Marked => true,
        Wrap::MarksSome => false,
        Wrap::Unmarked => !texts(blocks).any(|text| text.renders(&whole)),
    });
    let Some(wrapped) = wrapped else {
        return Ok(Delivery {
            value: Piece::Within(structured),
            notes: notes_beside(blocks, &[whole], structured),
        });
    };
    let inner = Reference::new(wrapped);
    let decoded = match kind(wrapped) {
        Some(Kind::String) => {
            let text = decode(wrapped);
            json_depth(&text).map(|depth| (text, depth))
        }
        _ => None,
    };
    let Some((decoded, depth)) = decoded else {
        return Ok(Delivery {
            value: Piece::Within(wrapped),
            notes: notes_beside(blocks, &[inner], wrapped),
        });
    };
    if depth > MAX_DEPTH {
        return Err(too_deep("the JSON in its result"));
    }
    let value = trim(&decoded);
    Ok(Delivery {
        notes: notes_beside(blocks, &[inner, Reference::new(value)], value),
        value: Piece::trimmed(decoded),
    })
}

/// The value of an object whose only key is `result`.
fn sole_result(json: &str) -> Option<&str> {
    if kind(json) != Some(Kind::Object) || !is_key(first_key(json)?, "result") {
        return None;
    }
    let mut sole = None;
    for (key, value) in members(json) {
        if !is_key(key, "result") {
            return None;
        }
        sole = Some(value);
    }
    sole
}

fn texts<'a, 'b>(blocks: &'b [Block<'a>]) -> impl Iterator<Item = &'b Text<'a>> {
    blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text),
        Block::Omitted(_) => None,
    })
}

/// What the blocks say beyond the value: all but the texts that tell it, whole or, for a list,
/// element by element.
fn notes_beside(blocks: &[Block<'_>], told: &[Reference<'_>], value: &str) -> Vec<String> {
    let mut left: Vec<&Block<'_>> = blocks
        .iter()
        .filter(|block| match block {
            Block::Text(text) => !told.iter().any(|value| text.tells(value)),
            Block::Omitted(_) => true,
        })
        .collect();
    if kind(value) == Some(Kind::Array) {
        take_out_elements(&mut left, value);
    }
    left.into_iter().map(Block::note).collect()
}

/// R4. Takes out the texts that are the elements of `list`, if every element is there, in order
/// and once. The Python SDKs flatten a list and leave out `None` when they turn it into blocks.
fn take_out_elements(blocks: &mut Vec<&Block<'_>>, list: &str) {
    if !take_out(blocks, elements(list)) {
        take_out(blocks, leaves(list));
    }
}

fn take_out<'a>(blocks: &mut Vec<&Block<'_>>, elements: impl Iterator<Item = &'a str>) -> bool {
    let mut elements = elements.map(Reference::new);
    let mut awaited = elements.next();
    let mut is_element = Vec::with_capacity(blocks.len());
    for block in blocks.iter() {
        let found = match (block, &awaited) {
            (Block::Text(text), Some(element)) => text.tells(element),
            _ => false,
        };
        is_element.push(found);
        if found {
            awaited = elements.next();
        }
    }
    let are_all_there = awaited.is_none();
    if are_all_there {
        let mut is_element = is_element.into_iter();
        blocks.retain(|_| is_element.next() != Some(true));
    }
    are_all_there
}

/// R5.
fn from_texts(blocks: Vec<Block<'_>>) -> Result<Delivery<'_>, String> {
    let is_text = |block: &Block<'_>| matches!(block, Block::Text(_));
    let omitted = |blocks: &[Block<'_>]| {
        let omitted = blocks.iter().filter(|block| !is_text(block));
        omitted.map(Block::note).collect()
    };
    let value = match texts(&blocks).count() {
        0 => Piece::Own("null".to_owned().into()),
        1 => {
            let notes = omitted(&blocks);
            let value = texts_of(blocks).next().map(json_or_literal);
            return Ok(Delivery {
                value: value.expect("it was counted")?,
                notes,
            });
        }
        _ => {
            let is_sole_json = |block: &Block<'_>| match block {
                Block::Text(text) => is_json(&text.text),
                Block::Omitted(_) => false,
            };
            let mut json = (0..blocks.len()).filter(|&index| is_sole_json(&blocks[index]));
            if let (Some(sole), None) = (json.next(), json.next()) {
                let mut blocks = blocks;
                let value = texts_of(vec![blocks.remove(sole)])
                    .next()
                    .map(json_or_literal);
                return Ok(Delivery {
                    value: value.expect("it is a text")?,
                    notes: blocks.iter().map(Block::note).collect(),
                });
            }
            let texts: Vec<_> = texts(&blocks).collect();
            let joined = texts
                .iter()
                .map(|text| &*text.text)
                .collect::<Vec<_>>()
                .join("\n");
            match json_depth(&joined) {
                None => Piece::Own(joined_literal(&texts).into()),
                Some(depth) if depth > MAX_DEPTH => return Err(too_deep("the JSON in its text")),
                Some(_) => Piece::trimmed(joined.into()),
            }
        }
    };
    Ok(Delivery {
        value,
        notes: omitted(&blocks),
    })
}

fn texts_of<'a>(blocks: Vec<Block<'a>>) -> impl Iterator<Item = Text<'a>> {
    blocks.into_iter().filter_map(|block| match block {
        Block::Text(text) => Some(text),
        Block::Omitted(_) => None,
    })
}

/// A text's JSON, else its literal.
fn json_or_literal(text: Text<'_>) -> Result<Piece<'_>, String> {
    match json_depth(&text.text) {
        None => Ok(Piece::Within(text.literal)),
        Some(depth) if depth > MAX_DEPTH => Err(too_deep("the JSON in its text")),
        Some(_) => Ok(Piece::trimmed(text.text)),
    }
}

/// The literals joined as literals, so that what cannot be decoded survives.
fn joined_literal(texts: &[&Text<'_>]) -> String {
    let inner: Vec<_> = texts.iter().map(|text| unquoted(text.literal)).collect();
    format!("\"{}\"", inner.join("\\n"))
}

/// A value's JSON and what else the server said.
struct Delivery<'a> {
    value: Piece<'a>,
    notes: Vec<String>,
}

/// JSON that stands in the result, or not.
enum Piece<'a> {
    Within(&'a str),
    Own(Json),
}

impl<'a> Piece<'a> {
    /// For text that is JSON but for the white space around it.
    fn trimmed(text: Cow<'a, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Self::Within(trim(text)),
            Cow::Owned(text) => {
                let range = place(&text, trim(&text));
                Self::Own(Json::part(text, range))
            }
        }
    }

    fn get(&self) -> &str {
        match self {
            Self::Within(json) => json,
            Self::Own(json) => json.get(),
        }
    }
}

impl<'a> Delivery<'a> {
    /// R6, R10.
    fn into_piece(self, expect: &Expectation<'_>) -> Result<Piece<'a>, ToolError> {
        let value = if self.notes.is_empty() {
            self.value
        } else {
            let notes =
                serde_json::to_string(&self.notes).map_err(|error| ToolError::Unreadable {
                    tool: expect.tool.to_owned(),
                    reason: error.to_string(),
                })?;
            Piece::Own(with_notes(self.value.get(), &notes).into())
        };
        let bytes = value.get().len();
        if bytes > expect.limit {
            return Err(ToolError::TooLarge {
                tool: expect.tool.to_owned(),
                bytes: bytes as u64,
                limit: expect.limit as u64,
            });
        }
        Ok(value)
    }
}

/// R6. The members of an object stay as they were written.
fn with_notes(value: &str, notes: &str) -> String {
    let has_own_notes = || members(value).any(|(key, _)| is_key(key, "_notes"));
    match value.strip_suffix('}') {
        Some(open) if kind(value) == Some(Kind::Object) && !has_own_notes() => {
            let comma = if members(value).next().is_some() {
                ","
            } else {
                ""
            };
            format!("{open}{comma}\"_notes\":{notes}}}")
        }
        _ => format!("{{\"data\":{value},\"_notes\":{notes}}}"),
    }
}

#[cfg(test)]
mod tests;
