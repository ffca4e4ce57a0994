//! The wire between the server and a program's process: its messages and their JSON.
//!
//! Whatever arrives from the child is hostile until parsed here; what a message leads to is
//! decided elsewhere. MCP and processes are not known here.
//!
//! | direction | `type` | members |
//! | --- | --- | --- |
//! | host → child | `start` | `code`, `helpers`, `max_output_bytes`, and the members of [`Offer`] |
//! | | `return` | `id`, `value` |
//! | | `raise` | `id`, `message` |
//! | child → host | `ready` | `version`, `python`: once, before `start` |
//! | | `output` | `text` |
//! | | `call` | `id`, `tool`, `arguments` |
//! | | `help` | `id`, `name`, `arguments` |
//! | | `cancel` | `id`: the program no longer waits for this call |
//! | | `emit` | `value` |
//! | | `done` | `error`: the last frame |

pub mod frame;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::Json;
use frame::FrameError;

/// What the interpreter is started with as `-c`: it reads the child's half, compiled, as the first
/// frame and runs it.
pub const LOADER: &str = include_str!("loader.py");

/// The child's half: one text of several files, of which each uses what those before it define.
pub const HALF: &str = concat!(
    include_str!("check.py"),
    "\n\n",
    include_str!("frames.py"),
    "\n\n",
    include_str!("calls.py"),
    "\n\n",
    include_str!("failures.py"),
    "\n\n",
    include_str!("bootstrap.py")
);

/// The version of this protocol that both halves must speak.
pub const VERSION: u64 = 1;

/// The longest frame a child may send. Arguments of a call and emitted values fit; the child's half
/// splits longer output.
pub const MAX_CHILD_FRAME: usize = 16 * 1024 * 1024 + 4096;

/// Pieces of a frame up to this length together are put into one.
const LONGEST_TOGETHER: usize = 64 * 1024;

/// Why a child's bytes are not the protocol. Only a program that writes to the channel itself, or a
/// broken interpreter, gets here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("a message that cannot be read ({0})")]
    Unreadable(String),
    #[error("a message of type '{0}', which does not exist")]
    UnknownType(String),
    #[error("a '{message}' message without '{member}'")]
    Missing {
        message: &'static str,
        member: &'static str,
    },
    #[error("version {found} of the channel, where {VERSION} is spoken")]
    Version { found: u64 },
    #[error("a '{0}' message out of turn")]
    OutOfTurn(&'static str),
    #[error("{0}")]
    Excess(&'static str),
}

/// What a child says.
#[derive(Debug)]
pub enum ChildMessage {
    Ready {
        version: u64,
        python: String,
    },
    Output {
        text: String,
    },
    Call {
        id: u64,
        tool: String,
        arguments: Box<RawValue>,
    },
    Help {
        id: u64,
        name: String,
        arguments: Box<RawValue>,
    },
    Cancel {
        id: u64,
    },
    Emit {
        value: Box<RawValue>,
    },
    Done {
        error: Option<String>,
    },
}

/// Every member that any message has; serde's tagged enums would buffer and lose raw JSON.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    id: Option<u64>,
    version: Option<u64>,
    python: Option<String>,
    text: Option<String>,
    tool: Option<String>,
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
    value: Option<Box<RawValue>>,
    error: Option<String>,
}

impl ChildMessage {
    pub fn parse(body: &[u8]) -> Result<Self, ChannelError> {
        let members: Members<'_> = serde_json::from_slice(body)
            .map_err(|error| ChannelError::Unreadable(beginning(&error.to_string())))?;
        fn need<T>(
            value: Option<T>,
            message: &'static str,
            member: &'static str,
        ) -> Result<T, ChannelError> {
            value.ok_or(ChannelError::Missing { message, member })
        }
        Ok(match &*members.kind {
            "ready" => Self::Ready {
                version: need(members.version, "ready", "version")?,
                python: need(members.python, "ready", "python")?,
            },
            "output" => Self::Output {
                text: need(members.text, "output", "text")?,
            },
            "call" => Self::Call {
                id: need(members.id, "call", "id")?,
                tool: need(members.tool, "call", "tool")?,
                arguments: need(members.arguments, "call", "arguments")?,
            },
            "help" => Self::Help {
                id: need(members.id, "help", "id")?,
                name: need(members.name, "help", "name")?,
                arguments: need(members.arguments, "help", "arguments")?,
            },
            "cancel" => Self::Cancel {
                id: need(members.id, "cancel", "id")?,
            },
            // `"value":null` reads as an absent value, and null may be emitted.
            "emit" => Self::Emit {
                value: members.value.unwrap_or_else(|| RawValue::NULL.to_owned()),
            },
            "done" => Self::Done {
                error: members.error,
            },
            other => {
                return Err(ChannelError::UnknownType(other.chars().take(40).collect()));
            }
        })
    }
}

/// serde quotes what it did not expect, and the child may have sent megabytes of it.
fn beginning(reason: &str) -> String {
    reason.chars().take(200).collect()
}

/// What a program starts with.
#[derive(Debug, Default, Serialize)]
pub struct Offer {
    /// Every name that it can call.
    pub tools: Vec<String>,
    /// Those that it may come by; `None` when that may be any.
    pub scope: Option<Vec<String>>,
    /// What is known of the tools that its text names.
    pub named: BTreeMap<String, Named>,
    /// Names that its text has and no server offers, with the nearest that one does.
    pub closest: BTreeMap<String, Vec<String>>,
    /// What the names of tools begin with whose servers are not connected.
    pub down: Vec<String>,
    /// Parameters, by tool, whose own names end like a keyword with an underscore.
    pub underscored: BTreeMap<String, Vec<String>>,
}

/// A tool as the check before the run knows it.
#[derive(Debug, Serialize)]
pub struct Named {
    pub required: Vec<String>,
    /// `None`: others are not forbidden.
    pub allowed: Option<Vec<String>>,
    /// The stub on one line.
    pub signature: String,
}

/// What the child is told.
#[derive(Debug)]
pub enum HostMessage {
    Start {
        code: String,
        offer: Offer,
        helpers: Vec<&'static str>,
        max_output_bytes: usize,
    },
    Return {
        id: u64,
        value: Json,
    },
    Raise {
        id: u64,
        message: String,
    },
}

impl HostMessage {
    /// The frame in pieces, header first. A value stands in a piece of its own, so that a large
    /// result is not copied once more on its way into the pipe.
    pub fn into_frame(self) -> Result<Vec<Bytes>, FrameError> {
        let body: Vec<Bytes> = match self {
            Self::Start {
                code,
                offer,
                helpers,
                max_output_bytes,
            } => {
                #[derive(Serialize)]
                struct Start<'a> {
                    r#type: &'a str,
                    code: &'a str,
                    #[serde(flatten)]
                    offer: &'a Offer,
                    helpers: &'a [&'a str],
                    max_output_bytes: usize,
                }
                let start = Start {
                    r#type: "start",
                    code: &code,
                    offer: &offer,
                    helpers: &helpers,
                    max_output_bytes,
                };
                let start = serde_json::to_vec(&start).expect("strings and numbers are JSON");
                vec![start.into()]
            }
            Self::Return { id, value } => {
                let prefix = format!(r#"{{"type":"return","id":{id},"value":"#);
                vec![prefix.into(), value.into_bytes(), Bytes::from_static(b"}")]
            }
            Self::Raise { id, message } => {
                let body = serde_json::json!({"type": "raise", "id": id, "message": message});
                vec![body.to_string().into()]
            }
        };
        let length = body.iter().map(Bytes::len).sum();
        let cap = u32::MAX as usize;
        let header = frame::header(length).ok_or(FrameError::TooLong { length, cap })?;
        let (mut pieces, mut small) = (Vec::new(), header.to_vec());
        for piece in body {
            // Small pieces together make one write.
            if small.len() + piece.len() <= LONGEST_TOGETHER {
                small.extend_from_slice(&piece);
            } else {
                if !small.is_empty() {
                    pieces.push(std::mem::take(&mut small).into());
                }
                pieces.push(piece);
            }
        }
        if !small.is_empty() {
            pieces.push(small.into());
        }
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Json {
        RawValue::from_string(text.to_owned()).unwrap().into()
    }

    fn body(message: HostMessage) -> String {
        let bytes = message.into_frame().unwrap().concat();
        let (header, body) = bytes.split_at(frame::HEADER);
        assert_eq!(
            u32::from_be_bytes(header.try_into().unwrap()) as usize,
            body.len()
        );
        String::from_utf8(body.to_vec()).unwrap()
    }

    // contract: R8
    #[test]
    fn a_value_is_passed_on_as_it_was_written() {
        let value = r#"{"b":123456789012345678901234567890,"a":1.10, "a":1e400}"#;
        assert_eq!(
            body(HostMessage::Return {
                id: 7,
                value: raw(value)
            }),
            format!(r#"{{"type":"return","id":7,"value":{value}}}"#),
        );
    }

    #[test]
    fn a_large_value_is_not_copied_into_the_frame() {
        let value = format!("\"{}\"", "x".repeat(100_000));
        let pieces = HostMessage::Return {
            id: 1,
            value: raw(&value),
        }
        .into_frame()
        .unwrap();
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[1], value.as_bytes());
    }

    #[test]
    fn what_is_not_the_protocol_is_named() {
        for (body, expected) in [
            (
                r#"{"type":"fork"}"#,
                "a message of type 'fork', which does not exist",
            ),
            (
                r#"{"type":"call","id":1,"tool":"t"}"#,
                "a 'call' message without 'arguments'",
            ),
            (r#"{"type":"cancel"}"#, "a 'cancel' message without 'id'"),
        ] {
            assert_eq!(
                ChildMessage::parse(body.as_bytes())
                    .unwrap_err()
                    .to_string(),
                expected
            );
        }
        for body in ["", "nonsense", "[]", r#"{"type":"call","id":-1}"#, "\u{0}"] {
            assert!(matches!(
                ChildMessage::parse(body.as_bytes()),
                Err(ChannelError::Unreadable(_))
            ));
        }
    }

    #[test]
    fn null_may_be_emitted() {
        let Ok(ChildMessage::Emit { value }) =
            ChildMessage::parse(br#"{"type":"emit","value":null}"#)
        else {
            panic!("an emit message");
        };
        assert_eq!(value.get(), "null");
    }
}
