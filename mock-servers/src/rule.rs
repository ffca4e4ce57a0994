//! When things go wrong: the rules that place faults in a server's life.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::name_or_map::{NameOrMap, name_or_map};
use crate::scenario::Transport;

/// Where in a server's life a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// Before anything is read; the n-th occasion is the n-th start.
    Start,
    /// `initialize` and `server/discover`.
    Handshake,
    ToolsList,
    /// `tools/call`.
    Call,
    /// Any other request (`ping`, `subscriptions/listen`, …).
    Other,
    /// A notification of the client's: `notifications/initialized`, `notifications/cancelled`, …
    Notification,
    /// The opening of an event stream by GET. (HTTP only)
    Stream,
    /// The end of a session by DELETE. (Streamable HTTP only)
    SessionEnd,
}

impl At {
    /// As scenarios write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            At::Start => "start",
            At::Handshake => "handshake",
            At::ToolsList => "tools_list",
            At::Call => "call",
            At::Other => "other",
            At::Notification => "notification",
            At::Stream => "stream",
            At::SessionEnd => "session_end",
        }
    }

    /// Whether a JSON-RPC request is answered there.
    pub(crate) fn asks(self) -> bool {
        matches!(self, At::Handshake | At::ToolsList | At::Call | At::Other)
    }

    /// Whether the transport ever comes there.
    pub(crate) fn exists_over(self, transport: Transport) -> bool {
        match self {
            At::Stream => transport != Transport::Stdio,
            At::SessionEnd => transport == Transport::Http,
            _ => true,
        }
    }
}

/// A fault and the occasions on which it strikes. Its conditions all have to hold; without
/// any it strikes each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub at: At,
    #[serde(deserialize_with = "name_or_map")]
    #[schemars(with = "NameOrMap<Fault>")]
    pub fault: Fault,
    /// Only calls of this tool are counted and struck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Strikes on the n-th occasion only (from 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// Strikes from the n-th occasion on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Strikes up to and including the n-th occasion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Strikes on every k-th occasion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Strikes on one occasion in so many, as the scenario's seed has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_in: Option<u64>,
    /// Holds only in these starts of the server (from 1; `[2]` is "after the first restart").
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<u32>,
}

impl Rule {
    /// Whether it strikes on this occasion (counted from 1; at the start: which start it is). The lot
    /// decides for `one_in`.
    pub(crate) fn strikes(&self, occasion: u64, start: u32, lot: u64) -> bool {
        (self.starts.is_empty() || self.starts.contains(&start))
            && self.nth.is_none_or(|n| n == occasion)
            && self.from.is_none_or(|n| occasion >= n)
            && self.until.is_none_or(|n| occasion <= n)
            && self.every.is_none_or(|k| occasion.is_multiple_of(k))
            && self.one_in.is_none_or(|n| lot.is_multiple_of(n))
    }

    /// Whether there is an occasion on which all its conditions hold, as far as they count occasions.
    pub(crate) fn can_strike(&self) -> bool {
        let (first, last) = (self.from.unwrap_or(1), self.until.unwrap_or(u64::MAX));
        let step = self.every.unwrap_or(1);
        match self.nth {
            Some(n) => (first..=last).contains(&n) && n.is_multiple_of(step),
            None => first
                .max(1)
                .checked_next_multiple_of(step)
                .is_some_and(|n| n <= last),
        }
    }

    /// Whether the number of earlier starts makes a difference.
    pub(crate) fn counts_starts(&self) -> bool {
        let counts = [self.nth, self.from, self.until, self.every, self.one_in];
        !self.starts.is_empty() || (self.at == At::Start && counts.iter().any(Option::is_some))
    }
}
