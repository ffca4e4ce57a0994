//! The content blocks of a result: which of them are text, and what is said about the others.
//!
//! It reads blocks of every protocol version and of none; it does not know what a result's value
//! is made of.

use std::borrow::Cow;

use super::compare::Reference;
use super::json::{Kind, decode, elements, kind, member};

/// The longest media type, URI or block type that a note quotes, in characters.
const MAX_QUOTED: usize = 512;

pub(super) enum Block<'a> {
    Text(Text<'a>),
    /// Something that cannot enter a program, and the note that stands for it.
    Omitted(String),
}

pub(super) struct Text<'a> {
    /// As the server wrote it: a JSON string literal.
    pub(super) literal: &'a str,
    pub(super) text: Cow<'a, str>,
}

impl Block<'_> {
    pub(super) fn shown_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.text.len(),
            Self::Omitted(_) => 0,
        }
    }

    /// The block as a note.
    pub(super) fn note(&self) -> String {
        match self {
            Self::Text(text) => text.text.clone().into_owned(),
            Self::Omitted(note) => note.clone(),
        }
    }
}

impl<'a> Text<'a> {
    fn new(literal: &'a str) -> Self {
        Self {
            literal,
            text: decode(literal),
        }
    }

    pub(super) fn renders(&self, value: &Reference<'_>) -> bool {
        value.is_rendered_by(&self.text)
    }

    pub(super) fn tells(&self, value: &Reference<'_>) -> bool {
        value.is_told_by(&self.text)
    }
}

/// The blocks of `content`, in order. Absent and `null` are no blocks.
///
/// A block whose text cannot be had is an error, since leaving it out would lose text; a block
/// that is known to be something else leaves its note, however little it tells.
pub(super) fn blocks(content: Option<&str>) -> Result<Vec<Block<'_>>, String> {
    let Some(content) = content else {
        return Ok(Vec::new());
    };
    match kind(content) {
        Some(Kind::Null) => Ok(Vec::new()),
        Some(Kind::Array) => elements(content)
            .enumerate()
            .map(|(index, block)| {
                self::block(block).map_err(|what| format!("content[{index}]{what}"))
            })
            .collect(),
        _ => Err(format!("its content is {}, not a list", article(content))),
    }
}

fn block(block: &str) -> Result<Block<'_>, String> {
    if kind(block) != Some(Kind::Object) {
        return Err(format!(" is {}, not an object", article(block)));
    }
    let Some(block_type) = member(block, "type").filter(|t| is_string(t)).map(decode) else {
        return Err(".type is not a string".to_owned());
    };
    match &*block_type {
        "text" => match member(block, "text") {
            Some(literal) if is_string(literal) => Ok(Block::Text(Text::new(literal))),
            Some(other) => Err(format!(".text is {}, not a string", article(other))),
            None => Err(".text is missing".to_owned()),
        },
        "resource" => {
            let resource = member(block, "resource");
            match resource.and_then(|resource| string_member(resource, "text")) {
                Some(literal) => Ok(Block::Text(Text::new(literal))),
                None => Ok(omitted(
                    "resource",
                    resource.and_then(|resource| string_member(resource, "uri")),
                )),
            }
        }
        "resource_link" => Ok(omitted("resource_link", string_member(block, "uri"))),
        "image" | "audio" => Ok(omitted(&block_type, string_member(block, "mimeType"))),
        unknown => Ok(omitted(&quoted(unknown), None)),
    }
}

fn omitted(what: &str, detail: Option<&str>) -> Block<'static> {
    Block::Omitted(match detail {
        Some(literal) => {
            let detail = decode(literal);
            format!("[non-text content omitted: {what} ({})]", quoted(&detail))
        }
        None => format!("[non-text content omitted: {what}]"),
    })
}

fn quoted(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((cut, _)) => format!("{}...", &text[..cut]).into(),
        None => text.into(),
    }
}

fn is_string(json: &str) -> bool {
    kind(json) == Some(Kind::String)
}

fn string_member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    (kind(object) == Some(Kind::Object))
        .then(|| member(object, name))
        .flatten()
        .filter(|value| is_string(value))
}

pub(super) fn article(json: &str) -> &'static str {
    kind(json).map_or("nothing", Kind::article)
}
