//! The vocabulary of a tool call: who is called, under which name, and what can go wrong.
//!
//! Everything else may import this module; it imports nothing of ours.

use std::fmt;
use std::sync::Arc;

/// The prefix of every tool's name in a program.
pub const NAMESPACE: &str = "mcp__";

/// A downstream server's name, as the configuration gives it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName(Arc<str>);

impl ServerName {
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The server's part of a tool name: every character outside `[A-Za-z0-9_]` is `_`.
    pub fn sanitized(&self) -> String {
        sanitize(&self.0)
    }

    /// What the names of this server's tools begin with, `mcp__<server>__`.
    pub fn prefix(&self) -> String {
        format!("{NAMESPACE}{}__", self.sanitized())
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// The name by which a program calls a tool: `mcp__<server>__<tool>`, a Python identifier.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(Arc<str>);

impl ToolName {
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Replaces every character outside `[A-Za-z0-9_]` by `_`.
pub fn sanitize(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// Why a tool call failed, in the words that the program reads as `ToolError`.
///
/// The variants keep culprits apart: the server said no, the server spoke nonsense, the server is
/// gone, or we refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The tool ran and reported a failure (`isError`).
    #[error("'{tool}' returned an error: {details}")]
    Failed { tool: String, details: String },
    /// The server answered with a JSON-RPC error or an HTTP status.
    #[error("'{tool}' was rejected by server '{server}': {reason}")]
    Rejected {
        tool: String,
        server: String,
        reason: String,
    },
    #[error("'{tool}' timed out after {seconds}s")]
    TimedOut { tool: String, seconds: String },
    #[error("tool-call budget exhausted (max_tool_calls={limit})")]
    BudgetExhausted { limit: u64 },
    #[error(
        "'{tool}' returned a value that does not match its declared output schema: {violation}"
    )]
    SchemaMismatch { tool: String, violation: String },
    #[error(
        "'{tool}' returned {bytes} bytes, more than max_tool_result_bytes={limit}; ask the tool for less (a filter, a page, a limit), or raise execution.max_tool_result_bytes"
    )]
    TooLarge {
        tool: String,
        bytes: u64,
        limit: u64,
    },
    /// The answer is no result at all: broken JSON, a wrong shape, nested too deep.
    #[error("'{tool}' returned something that is not a valid result: {reason}")]
    Unreadable { tool: String, reason: String },
    #[error(
        "'{tool}' lost its connection to server '{server}' ({reason}); the call may or may not have taken effect and was not repeated. The server is being reconnected: retry shortly"
    )]
    ConnectionLost {
        tool: String,
        server: String,
        reason: String,
    },
    /// The server is down or still connecting; nothing was sent.
    #[error(
        "'{tool}' is unavailable: server '{server}' is not connected ({reason}); it is being reconnected, retry shortly"
    )]
    Unavailable {
        tool: String,
        server: String,
        reason: String,
    },
    #[error("'{tool}' is not a callable tool{hint}")]
    Unknown { tool: String, hint: String },
    /// A rule of the person or the configuration forbids the call; nothing was sent.
    #[error("'{tool}' was refused: {reason}")]
    Denied { tool: String, reason: String },
}

impl ToolError {
    /// With at most so many characters of what a server said.
    pub fn cut(&self, most: usize) -> Self {
        let short = |text: &str| match text.char_indices().nth(most) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text.to_owned(),
        };
        match self {
            Self::Failed { tool, details } => Self::Failed {
                tool: tool.clone(),
                details: short(details),
            },
            Self::Rejected {
                tool,
                server,
                reason,
            } => Self::Rejected {
                tool: tool.clone(),
                server: server.clone(),
                reason: short(reason),
            },
            other => other.clone(),
        }
    }

    /// Whether the call was refused before anything was sent, so that it spends no budget.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::BudgetExhausted { .. }
                | Self::Unavailable { .. }
                | Self::Unknown { .. }
                | Self::Denied { .. }
        )
    }
}
