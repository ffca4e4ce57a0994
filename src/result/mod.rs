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
use serde_json::value::RawValue;

use crate::tool::ToolError;

use compare::Reference;
use content::{Block, Text, article, blocks};
use json::{
    Kind, decode, elements, first_key, is_deeper_than, is_json, is_key, kind, leaves, member,
    members, trim, unquoted,
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

#[derive(Debug)]
pub struct Parsed {
    pub value: Box<RawValue>,
    /// Whether this result carried `_meta.fastmcp.wrap_result`.
    pub marked: bool,
    /// The size of what a client shows a model that called the tool itself: the structured content,
    /// or else the texts.
    pub shown_bytes: usize,
}

/// Turns the `result` of a `tools/call` answer into the value that the program receives.
pub fn value_of(raw: &RawValue, expect: &Expectation<'_>) -> Result<Parsed, ToolError> {
    let unreadable = |reason: String| ToolError::Unreadable {
        tool: expect.tool.to_owned(),
        reason,
    };
    let envelope = Envelope::read(raw.get()).map_err(unreadable)?;
    let blocks = blocks(envelope.content).map_err(unreadable)?;
    if envelope.is_error {
        return Err(ToolError::Failed {
            tool: expect.tool.to_owned(),
            details: error_details(&blocks, expect.limit),
        });
    }
    let shown_bytes = match envelope.structured {
        Some(structured) => json::compact_bytes(structured),
        None => blocks.iter().map(Block::shown_bytes).sum(),
    };
    let delivery = match structured(&envelope, expect)? {
        Some(structured) => from_structured(structured, &blocks, envelope.marked, expect.wrap),
        None => from_texts(&blocks),
    };
    let value = delivery.map_err(unreadable)?.into_json(expect)?;
    Ok(Parsed {
        value,
        marked: envelope.marked,
        shown_bytes,
    })
}

/// The members of a `CallToolResult` that matter here, as slices of its text.
struct Envelope<'a> {
    content: Option<&'a str>,
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
            content: None,
            structured: None,
            is_error: false,
            marked: false,
        };
        for (key, value) in members(result) {
            match &*decode(key) {
                "content" => envelope.content = Some(value),
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

/// R9. The structured content, once it is known to be what the tool declared.
///
/// An explicit `null` is no structured content, as servers write it that serialize absent fields;
/// unless a declared schema allows `null`.
fn structured<'a>(
    envelope: &Envelope<'a>,
    expect: &Expectation<'_>,
) -> Result<Option<&'a str>, ToolError> {
    let mismatch = |violation: String| ToolError::SchemaMismatch {
        tool: expect.tool.to_owned(),
        violation,
    };
    let missing = || mismatch("structuredContent is missing".to_owned());
    let structured = match envelope.structured {
        Some(structured) => structured,
        None if expect.declares_schema => return Err(missing()),
        None => return Ok(None),
    };
    if is_deeper_than(structured, MAX_DEPTH) {
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
            value: structured.into(),
            notes: notes_beside(blocks, &[whole], structured),
        });
    };
    let inner = Reference::new(wrapped);
    let decoded = match kind(wrapped) {
        Some(Kind::String) => Some(decode(wrapped)).filter(|text| is_json(text)),
        _ => None,
    };
    let Some(decoded) = decoded else {
        return Ok(Delivery {
            value: wrapped.into(),
            notes: notes_beside(blocks, &[inner], wrapped),
        });
    };
    if is_deeper_than(&decoded, MAX_DEPTH) {
        return Err(too_deep("the JSON in its result"));
    }
    let value = trim(&decoded);
    Ok(Delivery {
        notes: notes_beside(blocks, &[inner, Reference::new(value)], value),
        value: value.to_owned().into(),
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
fn from_texts<'a>(blocks: &'a [Block<'a>]) -> Result<Delivery<'a>, String> {
    let texts: Vec<_> = texts(blocks).collect();
    let value = match texts.as_slice() {
        [] => "null".into(),
        [text] => json_or(&text.text, || text.literal.into())?,
        _ => {
            let mut json = texts.iter().filter(|text| is_json(&text.text));
            if let (Some(sole), None) = (json.next(), json.next()) {
                return Ok(Delivery {
                    value: json_or(&sole.text, || sole.literal.into())?,
                    notes: blocks
                        .iter()
                        .filter(|block| !matches!(block, Block::Text(text) if std::ptr::eq(text, *sole)))
                        .map(Block::note)
                        .collect(),
                });
            }
            let joined = texts
                .iter()
                .map(|text| &*text.text)
                .collect::<Vec<_>>()
                .join("\n");
            json_or(&joined, || joined_literal(&texts).into())?
                .into_owned()
                .into()
        }
    };
    Ok(Delivery {
        value,
        notes: blocks
            .iter()
            .filter(|block| matches!(block, Block::Omitted(_)))
            .map(Block::note)
            .collect(),
    })
}

/// A text's JSON, else its literal.
fn json_or<'a>(
    text: &'a str,
    literal: impl FnOnce() -> Cow<'a, str>,
) -> Result<Cow<'a, str>, String> {
    if !is_json(text) {
        return Ok(literal());
    }
    if is_deeper_than(text, MAX_DEPTH) {
        return Err(too_deep("the JSON in its text"));
    }
    Ok(trim(text).into())
}

/// The literals joined as literals, so that what cannot be decoded survives.
fn joined_literal(texts: &[&Text<'_>]) -> String {
    let inner: Vec<_> = texts.iter().map(|text| unquoted(text.literal)).collect();
    format!("\"{}\"", inner.join("\\n"))
}

/// A value's JSON and what else the server said.
struct Delivery<'a> {
    value: Cow<'a, str>,
    notes: Vec<String>,
}

impl Delivery<'_> {
    /// R6, R10.
    fn into_json(self, expect: &Expectation<'_>) -> Result<Box<RawValue>, ToolError> {
        let unreadable = |error: serde_json::Error| ToolError::Unreadable {
            tool: expect.tool.to_owned(),
            reason: error.to_string(),
        };
        let json = if self.notes.is_empty() {
            self.value.into_owned()
        } else {
            let notes = serde_json::to_string(&self.notes).map_err(unreadable)?;
            with_notes(&self.value, &notes)
        };
        if json.len() > expect.limit {
            return Err(ToolError::TooLarge {
                tool: expect.tool.to_owned(),
                bytes: json.len() as u64,
                limit: expect.limit as u64,
            });
        }
        RawValue::from_string(json).map_err(unreadable)
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
