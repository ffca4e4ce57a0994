//! What can go wrong: the closed list of faults and their settings.
//!
//! Knows neither when a fault strikes nor how it is put on a wire.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::rule::At;
use crate::scenario::RpcError;

/// One way to misbehave. In a scenario either its bare name (`crash`) or its name with settings
/// (`{crash: {when: half}}`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The process ends; over HTTP in a test process, every connection and the listener do.
    Crash(Crash),
    /// No answer, ever.
    Hang(Hang),
    /// The right answer, slowly.
    Slow(Slow),
    /// An answer that is far too large.
    Oversized(Oversized),
    /// A well-formed answer that breaks the tool's declared output schema.
    SchemaViolation(SchemaViolation),
    /// Bytes that are no proper message. The right answer follows unless `instead` is set.
    Garbage(Garbage),
    /// The answer carries an id that nobody asked with.
    WrongId(WrongId),
    /// The answer comes more than once.
    Duplicate(Duplicate),
    /// The answer comes although the client has given up: after its cancellation.
    Late(Late),
    /// Lines on stdout (events or body bytes over HTTP) that are no JSON-RPC, then the answer.
    Noise(Noise),
    /// A flood on stderr, then the answer.
    StderrFlood(StderrFlood),
    /// A JSON-RPC error instead of the result.
    Error(RpcError),
    /// `tools/list` always names a next page.
    EndlessPages(EndlessPages),
    /// `tools/list` names every tool twice.
    DuplicateNames(DuplicateNames),
    /// `tools/list` gives every tool a schema that is hard or impossible to enforce.
    OddSchemas(OddSchemas),
    /// stdout is closed before the answer; the process lives on. (stdio only)
    CloseStdout(CloseStdout),
    /// stdin is closed once the request was read; the answer still comes, and the process lives on.
    /// (stdio only)
    CloseStdin(CloseStdin),
    /// SIGTERM is ignored. (stdio only, at the start)
    IgnoreSigterm(IgnoreSigterm),
    /// The end of stdin is ignored: the process lives on. (stdio only, at the start)
    IgnoreStdinEnd(IgnoreStdinEnd),
    /// A grandchild inherits stdin, stdout and stderr and outlives the server. (stdio only, at the start)
    Grandchild(Grandchild),
    /// An HTTP status with headers and body instead of the answer. (HTTP only)
    Status(Status),
    /// Every session is forgotten; this request and later ones that name one get 404. (HTTP only)
    LoseSession(LoseSession),
    /// The right body under the wrong content type. (HTTP only)
    ContentType(ContentType),
    /// The connection ends half-way through the body it announced. (HTTP only)
    CutBody(CutBody),
    /// The event stream ends before the answer. (HTTP only)
    CutStream(CutStream),
    /// The event stream goes on without ever carrying the answer. (HTTP only)
    EndlessStream(EndlessStream),
    /// The connection is reset after the request was read. (HTTP only)
    Reset(Reset),
    /// The response head is dripped. (HTTP only)
    SlowHeaders(SlowHeaders),
    /// Clients are told an https URL, and whoever opens with TLS meets none. (HTTP only, at the start)
    TlsAbsent(TlsAbsent),
}

/// Every fault's name, for tests that check that none is left unused.
pub const FAULTS: &[&str] = &[
    "crash",
    "hang",
    "slow",
    "oversized",
    "schema_violation",
    "garbage",
    "wrong_id",
    "duplicate",
    "late",
    "noise",
    "stderr_flood",
    "error",
    "endless_pages",
    "duplicate_names",
    "odd_schemas",
    "close_stdout",
    "close_stdin",
    "ignore_sigterm",
    "ignore_stdin_end",
    "grandchild",
    "status",
    "lose_session",
    "content_type",
    "cut_body",
    "cut_stream",
    "endless_stream",
    "reset",
    "slow_headers",
    "tls_absent",
];

impl Fault {
    /// The name by which scenarios and journals call it.
    pub fn name(&self) -> &'static str {
        let written = serde_json::to_value(self).expect("a fault is plain data");
        FAULTS
            .iter()
            .find(|name| written.get(name).is_some())
            .expect("every fault is in the list")
    }

    /// Whether only an HTTP transport can show it.
    pub fn needs_http(&self) -> bool {
        matches!(
            self,
            Fault::Status(_)
                | Fault::LoseSession(_)
                | Fault::ContentType(_)
                | Fault::CutBody(_)
                | Fault::CutStream(_)
                | Fault::EndlessStream(_)
                | Fault::Reset(_)
                | Fault::SlowHeaders(_)
                | Fault::TlsAbsent(_)
        )
    }

    /// Whether only a process with pipes can show it.
    pub fn needs_stdio(&self) -> bool {
        matches!(
            self,
            Fault::CloseStdout(_)
                | Fault::CloseStdin(_)
                | Fault::IgnoreSigterm(_)
                | Fault::IgnoreStdinEnd(_)
                | Fault::Grandchild(_)
        )
    }

    /// Whether it makes sense at this point.
    pub fn fits(&self, at: At) -> bool {
        match self {
            Fault::EndlessPages(_) | Fault::DuplicateNames(_) | Fault::OddSchemas(_) => {
                at == At::ToolsList
            }
            Fault::SchemaViolation(_) => at == At::Call,
            Fault::IgnoreSigterm(_)
            | Fault::IgnoreStdinEnd(_)
            | Fault::Grandchild(_)
            | Fault::TlsAbsent(_) => at == At::Start,
            Fault::Crash(_) | Fault::Hang(_) => at != At::Stream,
            Fault::Noise(_) | Fault::StderrFlood(_) | Fault::CloseStdout(_) => {
                at == At::Start || at.asks()
            }
            Fault::Status(_)
            | Fault::Reset(_)
            | Fault::SlowHeaders(_)
            | Fault::ContentType(_)
            | Fault::LoseSession(_) => at != At::Start,
            Fault::CutStream(_) | Fault::EndlessStream(_) => at == At::Stream || at.asks(),
            _ => at.asks(),
        }
    }
}

/// The moment of a crash, relative to the answer's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    #[default]
    Before,
    Half,
    After,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Crash {
    pub when: When,
    /// 1 unless said otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Dies by this signal (`KILL`, `SEGV`, `ABRT`, `TERM`) instead of exiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<CrashSignal>,
    /// Lines for stderr, last words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum CrashSignal {
    Kill,
    Segv,
    Abrt,
    Term,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hang {
    /// Also reads nothing more, so that the client's pipe fills up.
    pub deaf: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Slow {
    /// Silence before the first byte.
    pub first_byte_ms: u64,
    /// Then so many bytes a second; all at once when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Oversized {
    pub bytes: u64,
    #[serde(rename = "as")]
    pub shape: OversizedShape,
}

impl Default for Oversized {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            shape: OversizedShape::Text,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OversizedShape {
    /// One text block.
    #[default]
    Text,
    /// One string inside `structuredContent`.
    Structured,
    /// A list of many small objects inside `structuredContent`.
    Rows,
    /// One line that never ends (`bytes` is ignored).
    EndlessLine,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SchemaViolation {
    pub kind: Violation,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Violation {
    /// Every property of the structured content has another JSON type.
    #[default]
    WrongType,
    /// No structured content at all.
    MissingStructured,
    /// The structured content sits one level deeper, under `data`.
    ExtraNesting,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Garbage {
    pub kind: GarbageKind,
    /// For `literal`: the exact text; `$ID` stands for the request's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The garbage replaces the answer. Kinds that garble the answer itself always do.
    pub instead: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GarbageKind {
    #[default]
    NotJson,
    /// The text of `text`.
    Literal,
    /// The answer, its last brace missing.
    Truncated,
    /// JSON with the right id, but neither result nor error.
    WrongShape,
    /// The answer's `result` is a string.
    ResultNotObject,
    /// The answer, without `jsonrpc`.
    MissingJsonrpc,
    /// The answer, with an invalid UTF-8 byte inside a string.
    InvalidUtf8,
    /// The answer behind a byte order mark.
    Bom,
    /// The answer between NUL bytes.
    Nul,
    /// The answer, its line ending in CR LF.
    Crlf,
    /// A notification and the answer on one line.
    SeveralOnALine,
    /// The answer, indented over several lines.
    OverSeveralLines,
    /// The answer inside a batch array.
    Batch,
    /// Empty lines, then the answer.
    EmptyLines,
    /// The answer with a thousand-fold nested value.
    DeepNesting,
    /// The answer with every key twice.
    DuplicateKeys,
    /// The answer with `NaN` and `Infinity` as numbers.
    NanNumbers,
    /// The answer with a lone surrogate escape.
    LoneSurrogate,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WrongId {
    /// The id to use; `"nobody-asked-this"` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The right answer follows.
    pub then_right: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Duplicate {
    pub times: u32,
}

impl Default for Duplicate {
    fn default() -> Self {
        Self { times: 2 }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Late {
    /// Answers after this time, cancelled or not; when absent, right after the cancellation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Noise {
    pub lines: Vec<String>,
    /// The whole list so many times.
    pub times: u32,
    /// The last line has no line end: the answer follows on the same line.
    pub glued: bool,
}

impl Default for Noise {
    fn default() -> Self {
        Self {
            lines: vec!["DEBUG: connecting to the database".to_owned()],
            times: 1,
            glued: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StderrFlood {
    pub bytes: u64,
    /// Line ends in between; without them it is a single line.
    pub lines: bool,
}

impl Default for StderrFlood {
    fn default() -> Self {
        Self {
            bytes: 1 << 20,
            lines: true,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EndlessPages {
    /// The same cursor on every page instead of a fresh one.
    pub same_cursor: bool,
    /// Every page brings a new tool; otherwise pages after the first are empty.
    pub with_tools: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DuplicateNames {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OddSchemas {
    pub kind: OddSchema,
    /// The input schemas rather than the output schemas.
    pub input: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OddSchema {
    /// `$ref` to another host.
    #[default]
    RemoteRef,
    /// Refers to itself.
    Recursive,
    /// `type: 17`.
    NotASchema,
    /// `$ref` to a definition that is not there.
    DanglingRef,
    /// A regular expression that does not compile.
    BadPattern,
    /// `exclusiveMinimum: true`, as draft 4 has it.
    Draft4,
    Draft6,
    Draft7,
    #[serde(rename = "draft2019_09")]
    Draft2019,
    #[serde(rename = "draft2020_12")]
    Draft2020,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CloseStdout {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CloseStdin {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IgnoreSigterm {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IgnoreStdinEnd {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grandchild {
    /// It ends by itself after so long, lest a failed test leaves it behind.
    pub seconds: u64,
}

impl Default for Grandchild {
    fn default() -> Self {
        Self { seconds: 60 }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Status {
    pub code: u16,
    /// `Retry-After`, `WWW-Authenticate`, `Location`, …
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
}

impl Default for Status {
    fn default() -> Self {
        Self {
            code: 500,
            headers: BTreeMap::new(),
            body: String::new(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoseSession {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContentType {
    pub value: String,
}

impl Default for ContentType {
    fn default() -> Self {
        Self {
            value: "text/html".to_owned(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CutBody {
    /// Chunked, and cut in the middle of a chunk, rather than under a length that is not reached.
    pub chunked: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CutStream {
    /// The answer can still be fetched by a GET with `Last-Event-ID`.
    pub resumable: bool,
    /// The stream ends in good order (last chunk sent) rather than in the middle.
    pub orderly: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EndlessStream {
    pub kind: EndlessKind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndlessKind {
    /// Keep-alive comments, ten a second.
    #[default]
    Comments,
    /// Log notifications, ten a second.
    Notifications,
    /// One event that is never finished, as fast as the client reads.
    OneEvent,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reset {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SlowHeaders {
    /// From the first byte of the head to its last.
    pub ms: u64,
}

impl Default for SlowHeaders {
    fn default() -> Self {
        Self { ms: 1_000 }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TlsAbsent {
    pub answer: TlsAnswer,
}

/// What a client's TLS opening gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TlsAnswer {
    /// What a port of plain HTTP says to it: 400.
    #[default]
    PlainHttp,
    /// A record of the right length that holds nonsense.
    Garbage,
    /// A fatal alert: no handshake is possible.
    Alert,
    /// The end of the connection.
    Close,
    /// Nothing, ever.
    Silence,
}
