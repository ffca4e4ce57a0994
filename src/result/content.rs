//! The content blocks of a result: which of them are text, and what is said about the others.
//!
//! It reads blocks of every protocol version and of none; it does not know what a result's value
//! is made of.

use std::borrow::Cow;

use super::compare::Reference;
use super::json::{Cursor, Kind, decode, kind, member};

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

/// The blocks of the `content` that begins at the cursor, in order; it is passed. `null` is no
/// blocks.
///
/// A block whose text cannot be had is an error, since leaving it out would lose text; a block
/// that is known to be something else leaves its note, however little it tells.
pub(super) fn blocks<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Block<'a>>, String> {
    if cursor.peek() != Some(b'[') {
        return match cursor.next().unwrap_or_default() {
            "null" => Ok(Vec::new()),
            other => Err(format!("its content is {}, not a list", article(other))),
        };
    }
    cursor.step();
    let mut blocks = Ok(Vec::new());
    let mut index = 0;
    while !matches!(cursor.peek(), None | Some(b']')) {
        // What is behind a block that cannot be read has to be passed all the same.
        let block = block(cursor);
        match (&mut blocks, block) {
            (Ok(blocks), Ok(block)) => blocks.push(block),
            (Ok(_), Err(what)) => blocks = Err(format!("content[{index}]{what}")),
            (Err(_), _) => {}
        }
        index += 1;
    }
    cursor.step();
    blocks
}

/// The members of a block that any type has, of duplicates the last ones.
#[derive(Default)]
struct Members<'a> {
    block_type: Option<&'a str>,
    text: Option<&'a str>,
    resource: Option<&'a str>,
    uri: Option<&'a str>,
    mime_type: Option<&'a str>,
}

impl<'a> Members<'a> {
    /// One pass, since a block may be most of a large result.
    fn read(cursor: &mut Cursor<'a>) -> Self {
        let mut members = Self::default();
        cursor.step();
        while let (Some(key), Some(value)) = (cursor.next(), cursor.next()) {
            match &*decode(key) {
                "type" => members.block_type = Some(value),
                "text" => members.text = Some(value),
                "resource" => members.resource = Some(value),
                "uri" => members.uri = Some(value),
                "mimeType" => members.mime_type = Some(value),
                _ => {}
            }
        }
        cursor.step();
        members
    }
}

fn block<'a>(cursor: &mut Cursor<'a>) -> Result<Block<'a>, String> {
    if cursor.peek() != Some(b'{') {
        let other = cursor.next().unwrap_or_default();
        return Err(format!(" is {}, not an object", article(other)));
    }
    let members = Members::read(cursor);
    let Some(block_type) = members.block_type.filter(|t| is_string(t)).map(decode) else {
        return Err(".type is not a string".to_owned());
    };
    let string = |member: Option<&'a str>| member.filter(|value| is_string(value));
    match &*block_type {
        "text" => match members.text {
            Some(literal) if is_string(literal) => Ok(Block::Text(Text::new(literal))),
            Some(other) => Err(format!(".text is {}, not a string", article(other))),
            None => Err(".text is missing".to_owned()),
        },
        "resource" => {
            let resource = members.resource;
            match resource.and_then(|resource| string_member(resource, "text")) {
                Some(literal) => Ok(Block::Text(Text::new(literal))),
                None => Ok(omitted(
                    "resource",
                    resource.and_then(|resource| string_member(resource, "uri")),
                )),
            }
        }
        "resource_link" => Ok(omitted("resource_link", string(members.uri))),
        "image" | "audio" => Ok(omitted(&block_type, string(members.mime_type))),
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
