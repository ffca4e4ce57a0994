//! What a scenario file can say, and a builder that says it from tests.
//!
//! Knows no transport: the same scenario drives all of them.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compute;
use crate::fault::{Fault, GarbageKind};
use crate::name_or_map::{self, NameOrMap};
use crate::rule::{At, Rule};

/// The handshake-era revisions, oldest first.
pub const HANDSHAKE_VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The first revision without a handshake.
pub const STATELESS_VERSION: &str = "2026-07-28";

/// One server's script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    pub server: Server,
    pub protocol: Protocol,
    pub http: Http,
    pub tools: Vec<Tool>,
    /// Tools a page of `tools/list`; all on one page when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_size: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Rule>,
    pub on_restart: OnRestart,
    /// Decides when rules with `one_in` strike.
    pub seed: u64,
}

/// How the server introduces itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    pub name: String,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Replaces the announced capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            name: "mock-server".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: None,
            capabilities: None,
        }
    }
}

/// The protocol revisions it speaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Protocol {
    /// Those before 2026-07-28 by `initialize`, the others by `server/discover`. A list without
    /// the one kind rejects that kind's opening.
    pub versions: Vec<String>,
    /// What `initialize` answers, whatever was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Serves requests that come before `initialize`.
    pub lenient: bool,
}

impl Default for Protocol {
    fn default() -> Self {
        Self {
            versions: HANDSHAKE_VERSIONS
                .iter()
                .map(|version| (*version).to_owned())
                .collect(),
            answer: None,
            lenient: false,
        }
    }
}

impl Protocol {
    pub(crate) fn newest_handshake(&self) -> Option<&str> {
        self.versions
            .iter()
            .map(String::as_str)
            .filter(|v| *v < STATELESS_VERSION)
            .max()
    }

    pub(crate) fn stateless(&self) -> Vec<&str> {
        self.versions
            .iter()
            .map(String::as_str)
            .filter(|v| *v >= STATELESS_VERSION)
            .collect()
    }

    pub(crate) fn speaks(&self, version: &str) -> bool {
        self.versions.iter().any(|v| v == version)
    }
}

/// How it behaves over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    pub answer: Answer,
    /// Hands out `Mcp-Session-Id` and insists on it. (Handshake era only.)
    pub sessions: bool,
    /// Offers an event stream by GET; 405 otherwise.
    pub stream: bool,
    /// What the `endpoint` event of HTTP+SSE says; `$SESSION` stands for the session's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Every request must carry these headers, or it gets 401.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub require_headers: BTreeMap<String, String>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            answer: Answer::Sse,
            sessions: true,
            stream: true,
            endpoint: None,
            require_headers: BTreeMap::new(),
        }
    }
}

/// The content type of an answer to a POST. Answers that messages precede are always streams.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Json,
    Sse,
}

/// What a restart changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRestart {
    /// Nothing: counting begins anew.
    #[default]
    Same,
    /// From the second start on no fault strikes.
    Healthy,
}

/// One tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `{"type": "object"}` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// Consumed in order, the last repeats. None: the tool echoes its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<Reply>,
    /// Listed only after so many calls (of any tool); `list_changed` is sent then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub appears_after: Option<u64>,
    /// No longer listed after so many calls (of any tool); `list_changed` is sent then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanishes_after: Option<u64>,
}

/// One answer to `tools/call`. `raw`, `error` and `compute` each stand for the whole answer;
/// without them it is put together from the other fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// Sent first, in this order.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "name_or_map::list"
    )]
    #[schemars(with = "Vec<NameOrMap<Before>>")]
    pub before: Vec<Before>,
    /// `structuredContent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Text blocks; they come before the blocks of `content`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<String>,
    /// Blocks as they are on the wire (`{type: image, data: …, mimeType: …}`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// The exact text of the `result` member, sent as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// A JSON-RPC error instead of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
    /// An answer that depends on the arguments.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "name_or_map::optional"
    )]
    #[schemars(with = "Option<NameOrMap<Compute>>")]
    pub compute: Option<Compute>,
    /// Strikes whenever this reply's turn comes.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "name_or_map::optional"
    )]
    #[schemars(with = "Option<NameOrMap<Fault>>")]
    pub fault: Option<Fault>,
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Default for RpcError {
    fn default() -> Self {
        Self {
            code: -32603,
            message: "internal error".to_owned(),
            data: None,
        }
    }
}

/// What a tool computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compute {
    /// The arguments, byte for byte.
    Echo(Echo),
    /// Sleeps, then says for how long; the argument `ms` has precedence.
    Sleep(Sleep),
    /// How often the server's counters were called since its start.
    Counter(Counter),
    /// Rows that depend on the seed only; the arguments `count` and `seed` have precedence.
    Rows(Rows),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Echo {
    #[serde(rename = "as")]
    pub shape: EchoShape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EchoShape {
    /// As structured content, and as text for older clients.
    #[default]
    Structured,
    /// As one text block.
    Text,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sleep {
    pub ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Counter {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rows {
    pub count: u64,
    pub seed: u64,
}

impl Default for Rows {
    fn default() -> Self {
        Self { count: 10, seed: 1 }
    }
}

/// A message towards the client (or a pause) before the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Before {
    /// `notifications/progress`, if the request carried a token.
    Progress(Progress),
    /// `notifications/message`.
    Log(Log),
    /// `elicitation/create`; the answer is awaited.
    Elicit(Elicit),
    /// `sampling/createMessage`; the answer is awaited.
    Sample(Sample),
    /// `roots/list`; the answer is awaited.
    Roots(Roots),
    /// `ping`; the answer is awaited.
    Ping(Ping),
    /// `notifications/tools/list_changed`.
    ListChanged(ListChanged),
    /// Any notification.
    Notify(Notify),
    /// Silence; a cancellation ends it and the call.
    Wait(Wait),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Progress {
    pub progress: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    pub level: String,
    pub data: Value,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            data: Value::from("working"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Elicit {
    pub message: String,
    pub schema: Value,
}

impl Default for Elicit {
    fn default() -> Self {
        Self {
            message: "Proceed?".to_owned(),
            schema: serde_json::json!({
                "type": "object",
                "properties": { "proceed": { "type": "boolean" } },
                "required": ["proceed"],
            }),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sample {
    pub prompt: String,
    pub max_tokens: u64,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            prompt: "Say hello.".to_owned(),
            max_tokens: 16,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Roots {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ping {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListChanged {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Notify {
    pub method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Wait {
    pub ms: u64,
}

/// How a server and its client are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

impl Scenario {
    /// Reads YAML, or JSON when the text begins with `{`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let scenario: Self = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| error.to_string())?
        } else {
            serde_yaml::from_str(text).map_err(|error| error.to_string())?
        };
        scenario.check()?;
        Ok(scenario)
    }

    pub fn load(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The scenario as a file that [`Scenario::parse`] reads back.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a scenario is plain data");
        text.push('\n');
        text
    }

    /// The JSON Schema of a scenario file.
    pub fn schema() -> Value {
        schemars::schema_for!(Scenario).to_value()
    }

    /// Refuses what could never strike, so that no test passes for want of its fault.
    fn check(&self) -> Result<(), String> {
        let mut names = HashSet::new();
        for tool in &self.tools {
            if !names.insert(&tool.name) {
                return Err(format!(
                    "tool '{}' is defined twice (the fault `duplicate_names` lists tools twice)",
                    tool.name
                ));
            }
            for reply in &tool.replies {
                if let Some(raw) = &reply.raw
                    && raw.contains('\n')
                {
                    return Err(format!(
                        "tool '{}': `raw` holds a line end, which would split the message",
                        tool.name
                    ));
                }
            }
        }
        for rule in &self.faults {
            if !rule.fault.fits(rule.at) {
                return Err(format!(
                    "fault `{}` cannot strike at `{}`",
                    rule.fault.name(),
                    rule.at.name()
                ));
            }
            if let Some(tool) = &rule.tool {
                if rule.at != At::Call {
                    return Err(format!("`tool: {tool}` belongs to rules at `call` only"));
                }
                if !names.contains(tool) {
                    return Err(format!(
                        "a rule names the tool '{tool}', which is not defined"
                    ));
                }
            }
            if rule.every == Some(0)
                || rule.nth == Some(0)
                || rule.one_in == Some(0)
                || rule.starts.contains(&0)
            {
                return Err("`nth`, `every`, `one_in` and `starts` count from 1".to_owned());
            }
            if !rule.can_strike() {
                return Err(format!(
                    "fault `{}` at `{}` never strikes: no occasion is within its `nth`, `from`, \
                     `until` and `every` at once",
                    rule.fault.name(),
                    rule.at.name()
                ));
            }
            let mut struck = self
                .tools
                .iter()
                .filter(|tool| rule.tool.as_ref().is_none_or(|name| *name == tool.name));
            if matches!(rule.fault, Fault::SchemaViolation(_))
                && !self.tools.is_empty()
                && struck.all(Tool::is_raw)
            {
                return Err(raw_is_sent_as_written());
            }
        }
        let garbage = |fault: &Fault| {
            let Fault::Garbage(garbage) = fault else {
                return false;
            };
            garbage.kind == GarbageKind::Literal && garbage.text.is_none()
        };
        let mut faults = self.faults.iter().map(|rule| &rule.fault);
        if faults.any(garbage) || self.reply_faults().any(garbage) {
            return Err("`garbage` of kind `literal` needs its `text`".to_owned());
        }
        let replies = self.tools.iter().flat_map(|tool| &tool.replies);
        for reply in replies.filter(|reply| reply.raw.is_some()) {
            if let Some(Fault::SchemaViolation(_)) = reply.fault {
                return Err(raw_is_sent_as_written());
            }
        }
        for fault in self.reply_faults() {
            if !fault.fits(At::Call) {
                return Err(format!("fault `{}` cannot be a reply's", fault.name()));
            }
        }
        Ok(())
    }

    /// Refuses faults that this transport cannot show.
    pub fn check_transport(&self, transport: Transport) -> Result<(), String> {
        for fault in self
            .reply_faults()
            .chain(self.faults.iter().map(|rule| &rule.fault))
        {
            if fault.needs_http() && transport == Transport::Stdio {
                return Err(format!("fault `{}` needs an HTTP transport", fault.name()));
            }
            if fault.needs_stdio() && transport != Transport::Stdio {
                return Err(format!("fault `{}` needs stdio", fault.name()));
            }
        }
        for rule in &self.faults {
            if !rule.at.exists_over(transport) {
                return Err(format!("`at: {}` needs another transport", rule.at.name()));
            }
        }
        Ok(())
    }

    /// The scheme of the URL that a client is to be given.
    pub(crate) fn scheme(&self) -> &'static str {
        let absent = |rule: &Rule| matches!(rule.fault, Fault::TlsAbsent(_));
        if self.faults.iter().any(absent) {
            "https"
        } else {
            "http"
        }
    }

    fn reply_faults(&self) -> impl Iterator<Item = &Fault> {
        self.tools
            .iter()
            .flat_map(|tool| &tool.replies)
            .filter_map(|reply| reply.fault.as_ref())
    }

    /// Whether the number of earlier starts makes a difference.
    pub fn counts_starts(&self) -> bool {
        self.on_restart != OnRestart::Same || self.faults.iter().any(Rule::counts_starts)
    }

    /// The faults that hold from the start itself.
    pub(crate) fn start_faults(&self, start: u32) -> impl Iterator<Item = &Fault> {
        let healthy = self.on_restart == OnRestart::Healthy && start > 1;
        self.faults
            .iter()
            .enumerate()
            .filter(move |(number, rule)| {
                let lot = self.lot(*number, start.into(), start);
                !healthy && rule.at == At::Start && rule.strikes(start.into(), start, lot)
            })
            .map(|(_, rule)| &rule.fault)
    }

    /// What chance says to a rule: rules draw apart from each other, starts too.
    pub(crate) fn lot(&self, rule: usize, occasion: u64, start: u32) -> u64 {
        compute::lot(self.seed, [rule as u64, start.into(), occasion])
    }
}

impl Tool {
    /// Whether nothing of its answers is put together here.
    fn is_raw(&self) -> bool {
        !self.replies.is_empty() && self.replies.iter().all(|reply| reply.raw.is_some())
    }
}

fn raw_is_sent_as_written() -> String {
    "`schema_violation` changes nothing of a `raw` reply, which is sent as written".to_owned()
}
