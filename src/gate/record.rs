//! What is known of a call afterwards, or so far. Plain data.

use std::time::Duration;

use crate::tool::ToolError;

/// What became of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Not sent: it waited for a slot when the program ended.
    Waiting,
    /// Sent, and the program ended, or stopped waiting, before the answer.
    Unanswered,
    Ok,
    Failed(ToolError),
}

/// One call as the report lists it.
#[derive(Debug, Clone)]
pub struct CallRecord {
    pub tool: String,
    /// Compact JSON, cut.
    pub arguments: String,
    /// The size of the whole arguments.
    pub argument_bytes: usize,
    /// The size of what the server answered, as a client that had called the tool itself would have
    /// shown it to its model.
    pub result_bytes: usize,
    pub outcome: Outcome,
    pub duration: Duration,
    /// The server says that the tool changes nothing.
    pub read_only: bool,
}

impl CallRecord {
    pub fn ok(&self) -> bool {
        self.outcome == Outcome::Ok
    }

    /// What the record says of a call that did not succeed.
    pub fn error(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Ok => None,
            Outcome::Failed(error) => Some(error.to_string()),
            Outcome::Waiting => Some("not sent: the program ended first".to_owned()),
            Outcome::Unanswered => {
                Some("sent, but the program ended or gave up before the answer".to_owned())
            }
        }
    }

    /// Whether the call was sent and nobody knows if it took effect.
    pub fn in_doubt(&self) -> bool {
        matches!(
            self.outcome,
            Outcome::Unanswered
                | Outcome::Failed(ToolError::TimedOut { .. } | ToolError::ConnectionLost { .. })
        )
    }

    /// Whether the server answered, with a value or with an error of its own.
    pub fn answered(&self) -> bool {
        match &self.outcome {
            Outcome::Ok => true,
            Outcome::Failed(error) => !error.is_refusal() && !self.in_doubt(),
            Outcome::Waiting | Outcome::Unanswered => false,
        }
    }
}
