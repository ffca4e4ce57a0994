//! Admission of tool calls: the whole policy of a call, for one program.
//!
//! [`Gate::call`] reads from top to bottom as what happens to a call: is there such a tool, may it
//! be called, is there budget, does the person agree, is there a slot, did it answer in time, is
//! the answer sound. The child and its channel are not known here, nor how a person is asked.

mod record;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::audit;
use crate::catalogue::Entry;
use crate::config::{Execution, ToolRules};
use crate::consent::{self, Consent};
use crate::downstream::CallFailure;
use crate::json::Json;
use crate::permissions::{self, Names, Verdict};
use crate::registry::{NoRoute, Registry, Route};
use crate::result::{self, Expectation, Wrap};
use crate::tool::{ToolError, ToolName};

pub use record::{CallRecord, Outcome};

/// Refused calls after which a program is ended: each is free for it and costs us a record.
pub const MAX_REFUSED: usize = 1000;

/// Characters of a call's arguments that its record keeps (contract S6).
const ARGUMENTS_KEPT: usize = 200;

/// Characters of what a server said of a failure that its record keeps. The program reads it whole.
const ERROR_KEPT: usize = 2000;

/// Values, names of members included, in the arguments of one call. Each costs the server some hundred
/// bytes while it is under way, however short it is.
pub const MAX_ARGUMENT_VALUES: usize = 150_000;

/// JSON-RPC's code for parameters that are not right.
const INVALID_PARAMS: i64 = -32602;

/// The longest result that is read where it arrives. A longer one takes milliseconds, in which no
/// other program would move: it is read on a thread of its own.
const READ_AT_ONCE: usize = 256 * 1024;

/// How far a running program has come, for those who watch.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    pub calls: u64,
    pub failed: u64,
    pub last_tool: Option<ToolName>,
    /// From the program's start to the last change.
    pub elapsed: Duration,
}

/// What the person decided about the calls of one program, and where that is written down.
#[derive(Debug)]
pub struct Policy {
    pub tools: ToolRules,
    /// The client's own rules; none where they do not hold.
    pub client: permissions::Rules,
    pub consent: Consent,
    pub log: Option<Arc<audit::Run>>,
}

/// The gate of one program; dropped with it.
#[derive(Debug)]
pub struct Gate {
    registry: Arc<Registry>,
    policy: Policy,
    execution: Execution,
    slots: Arc<Semaphore>,
    progress: Option<watch::Sender<Progress>>,
    started: Instant,
    /// Held for a few instructions at a time, never across an await.
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    records: Vec<CallRecord>,
    spent: u64,
    refused: usize,
    /// Calls per limit of `tools.limits`, in the rules' order.
    counted: Vec<u64>,
    /// What the audit log will say of each call, until it does.
    unlogged: Vec<Option<audit::Call>>,
}

/// One call's share of the budgets: the limits of `tools.limits` that counted it.
#[derive(Debug)]
struct Spent(Vec<usize>);

/// A call that was heard of: its place in the records.
#[derive(Debug, Clone, Copy)]
pub struct Ticket(usize);

/// What is on its way to the program. The slot of a call that was made is given back when it has been
/// written, so that answers which the program does not take cannot pile up.
#[derive(Debug)]
pub struct Answer {
    pub outcome: Result<Json, ToolError>,
    pub slot: Option<OwnedSemaphorePermit>,
}

impl Gate {
    pub fn new(
        registry: Arc<Registry>,
        policy: Policy,
        execution: Execution,
        progress: Option<watch::Sender<Progress>>,
    ) -> Self {
        let book = Book {
            counted: vec![0; policy.tools.limits().len()],
            ..Book::default()
        };
        Self {
            registry,
            policy,
            slots: Arc::new(Semaphore::new(
                execution.max_concurrent_calls.min(Semaphore::MAX_PERMITS),
            )),
            execution,
            progress,
            started: Instant::now(),
            book: Mutex::new(book),
        }
    }

    /// Puts a call on record, in the order in which calls are made.
    pub fn open(&self, tool: &str, arguments: &RawValue) -> Ticket {
        let argument_bytes = arguments.get().len();
        let arguments = || compact(arguments.get());
        let log = self.policy.log.as_ref();
        let unlogged = log.map(|log| log.heard(&brief(tool), &arguments().collect::<String>()));
        let mut book = self.book();
        book.unlogged.push(unlogged);
        book.records.push(CallRecord {
            tool: brief(tool),
            arguments: arguments().take(ARGUMENTS_KEPT).collect(),
            argument_bytes,
            result_bytes: 0,
            outcome: Outcome::Waiting,
            duration: Duration::ZERO,
            read_only: false,
        });
        let ticket = Ticket(book.records.len() - 1);
        drop(book);
        self.report(|progress| {
            progress.calls += 1;
            progress.last_tool = Some(ToolName::new(&brief(tool)));
        });
        ticket
    }

    /// Makes one call. Dropping the future cancels it downstream; the record then says how far it
    /// had come.
    pub async fn call(&self, ticket: Ticket, tool: &str, arguments: &RawValue) -> Answer {
        let mut slot = None;
        let outcome = self
            .admit_and_call(ticket, tool, arguments, &mut slot)
            .await;
        let mut book = self.book();
        if let Err(error) = &outcome
            && error.is_refusal()
        {
            book.refused += 1;
        }
        if let Err(ToolError::Failed { details, .. }) = &outcome {
            book.records[ticket.0].result_bytes = details.len();
        }
        book.records[ticket.0].outcome = match &outcome {
            Ok(_) => Outcome::Ok,
            Err(error) => Outcome::Failed(error.cut(ERROR_KEPT)),
        };
        drop(book);
        let bytes = outcome.as_ref().map_or(0, |value| value.get().len());
        self.log(ticket, bytes);
        if outcome.is_err() {
            self.report(|progress| progress.failed += 1);
        }
        Answer { outcome, slot }
    }

    async fn admit_and_call(
        &self,
        ticket: Ticket,
        tool: &str,
        arguments: &RawValue,
        slot: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Json, ToolError> {
        // Whether it may be made, before anything is spent: a refused call is free.
        let route = self.route(tool)?;
        let sent = arguments;
        let arguments = parse_arguments(tool, arguments)?;
        self.book().records[ticket.0].read_only = entry(&route, tool).read_only;
        let question = self.admit(tool, &route)?;
        let spent = self.spend(tool, &route)?;
        if let Some(because) = question {
            self.ask(tool, &route, &arguments, &because)
                .await
                .inspect_err(|_| self.refund(&spent))?;
        }

        let free = self.slots.clone().acquire_owned().await;
        *slot = Some(free.expect("the slots are never closed"));
        // The waits may have been long: the server may have been lost, and come back, meanwhile.
        let route = self
            .same_route(tool, &route)
            .inspect_err(|_| self.refund(&spent))?;
        self.book().records[ticket.0].outcome = Outcome::Unanswered;
        let _timing = Timing::start(self, ticket);
        let entry = entry(&route, tool);
        let answer = tokio::time::timeout(
            self.execution.tool_call_timeout,
            route.live.connection.call_tool(&entry.original, arguments),
        )
        .await;

        let raw = match answer {
            Err(_) => {
                return Err(ToolError::TimedOut {
                    tool: tool.to_owned(),
                    seconds: seconds(self.execution.tool_call_timeout),
                });
            }
            Ok(Err(failure)) => {
                let refused =
                    matches!(failure, CallFailure::Rejected { code, .. } if code == INVALID_PARAMS);
                let error = failed(tool, &route, failure);
                return Err(with_signature(error, entry, sent, refused));
            }
            Ok(Ok(raw)) => raw,
        };
        let limit = self.execution.max_tool_result_bytes;
        let parsed = if raw.get().len() <= READ_AT_ONCE {
            read(&route, tool, raw, limit)
        } else {
            let (route, tool) = (route.clone(), tool.to_owned());
            tokio::task::spawn_blocking(move || read(&route, &tool, raw, limit))
                .await
                .expect("reading a result does not panic")
        };
        let parsed = parsed.map_err(|error| with_signature(error, entry, sent, false))?;
        self.book().records[ticket.0].result_bytes = parsed.shown_bytes;
        Ok(parsed.value)
    }

    fn route(&self, tool: &str) -> Result<Route, ToolError> {
        self.registry
            .resolve(tool)
            .map_err(|no_route| match no_route {
                NoRoute::Down { server, reason } => ToolError::Unavailable {
                    tool: tool.to_owned(),
                    server: server.to_string(),
                    reason,
                },
                NoRoute::Unknown { closest } => ToolError::Unknown {
                    tool: brief(tool),
                    hint: hint(&closest),
                },
            })
    }

    /// Where the tool is now, if the name still means the tool that was admitted.
    fn same_route(&self, tool: &str, admitted: &Route) -> Result<Route, ToolError> {
        let route = self.route(tool)?;
        if entry(&route, tool).original == entry(admitted, tool).original {
            Ok(route)
        } else {
            Err(denied(
                tool,
                "its server gave the name to another tool while the call waited; nothing was sent"
                    .to_owned(),
            ))
        }
    }

    /// Whether the call may be made: no, yes, or only if the person agrees, because of what is
    /// returned.
    fn admit(&self, tool: &str, route: &Route) -> Result<Option<String>, ToolError> {
        if let Some(failure) = self.policy.log.as_ref().and_then(|log| log.failure()) {
            return Err(denied(tool, format!("the audit log {failure}")));
        }
        let entry = entry(route, tool);
        let names = Names {
            server: &route.server,
            original: &entry.original,
            name: &entry.name,
            unsuffixed: &entry.unsuffixed,
        };
        match self.policy.client.verdict(&names) {
            Verdict::Deny(rule) => Err(denied(tool, format!("{rule} forbids it"))),
            Verdict::Ask(rule) => Ok(Some(rule.to_string())),
            Verdict::Unsure(broken) => Ok(Some(format!(
                "permission rules that are not known: {broken}"
            ))),
            Verdict::Allow(_) | Verdict::Silent => {
                let confirm = self
                    .policy
                    .tools
                    .needs_confirmation(&entry.name, &entry.unsuffixed);
                Ok(confirm.then(|| "tools.confirm in the configuration of ptc-mcp".to_owned()))
            }
        }
    }

    /// Takes one call off the budgets, or refuses.
    fn spend(&self, tool: &str, route: &Route) -> Result<Spent, ToolError> {
        let entry = entry(route, tool);
        let mut book = self.book();
        let limits = self.policy.tools.limits();
        let matching: Vec<usize> = (0..limits.len())
            .filter(|&i| limits[i].matches(&entry.name, &entry.unsuffixed))
            .collect();
        if let Some(&i) = matching.iter().find(|&&i| book.counted[i] >= limits[i].max) {
            let (max, pattern) = (limits[i].max, limits[i].pattern());
            let calls = if max == 1 { "call" } else { "calls" };
            return Err(denied(
                tool,
                format!("tools.limits allows {max} {calls} of '{pattern}' in a program"),
            ));
        }
        let limit = self.execution.max_tool_calls;
        if book.spent >= limit {
            return Err(ToolError::BudgetExhausted { limit });
        }
        book.spent += 1;
        for &i in &matching {
            book.counted[i] += 1;
        }
        Ok(Spent(matching))
    }

    /// Gives back what a call took that was not sent.
    fn refund(&self, spent: &Spent) {
        let mut book = self.book();
        book.spent -= 1;
        for &i in &spent.0 {
            book.counted[i] -= 1;
        }
    }

    /// Puts the call to the person.
    async fn ask(
        &self,
        tool: &str,
        route: &Route,
        arguments: &Map<String, Value>,
        because: &str,
    ) -> Result<(), ToolError> {
        let entry = entry(route, tool);
        let call = consent::Call {
            server: &route.server,
            original: &entry.original,
            name: &entry.name,
            arguments,
            because,
        };
        let answer = self.policy.consent.to(call).await;
        answer.map_err(|no| {
            denied(
                tool,
                format!("it needs the person's yes ({because}), and {no}"),
            )
        })
    }

    /// Whether a question to the person is open, now and later.
    pub fn question_open(&self) -> watch::Receiver<bool> {
        self.policy.consent.question_open()
    }

    /// Writes a call to the audit log, once.
    fn log(&self, ticket: Ticket, bytes: usize) {
        let Some(log) = &self.policy.log else { return };
        let mut book = self.book();
        let Some(call) = book.unlogged[ticket.0].take() else {
            return;
        };
        let record = &book.records[ticket.0];
        let end = audit::End {
            outcome: match &record.outcome {
                Outcome::Ok => "ok",
                Outcome::Failed(error) if error.is_refusal() => "refused",
                Outcome::Failed(_) if record.in_doubt() => "in doubt",
                Outcome::Failed(_) => "failed",
                Outcome::Unanswered => "in doubt",
                Outcome::Waiting => "not sent",
            },
            error: record.error(),
            duration: record.duration,
            bytes,
        };
        drop(book);
        log.call(call, end);
    }

    /// Whether the program has been refused so often that it must be ended.
    pub fn exhausted_patience(&self) -> bool {
        self.book().refused >= MAX_REFUSED
    }

    /// Every call so far, in the order in which they were made.
    pub fn records(&self) -> Vec<CallRecord> {
        self.book().records.clone()
    }

    fn report(&self, change: impl FnOnce(&mut Progress)) {
        if let Some(progress) = &self.progress {
            progress.send_modify(|progress| {
                change(progress);
                progress.elapsed = self.started.elapsed();
            });
        }
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().expect("nothing panics while it is held")
    }
}

/// Puts a call's duration on record however the call ends, being dropped included.
struct Timing<'a> {
    gate: &'a Gate,
    ticket: Ticket,
    started: Instant,
}

impl<'a> Timing<'a> {
    fn start(gate: &'a Gate, ticket: Ticket) -> Self {
        Self {
            gate,
            ticket,
            started: Instant::now(),
        }
    }
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        self.gate.book().records[self.ticket.0].duration = self.started.elapsed();
    }
}

/// Calls that came to no end are logged with the program's.
impl Drop for Gate {
    fn drop(&mut self) {
        let calls = self.book().records.len();
        for call in 0..calls {
            self.log(Ticket(call), 0);
        }
    }
}

fn entry<'a>(route: &'a Route, tool: &str) -> &'a Entry {
    route
        .live
        .catalogue
        .get(tool)
        .expect("a route leads to a tool")
}

fn denied(tool: &str, reason: String) -> ToolError {
    ToolError::Denied {
        tool: tool.to_owned(),
        reason,
    }
}

/// A result as the program receives it.
fn read(route: &Route, tool: &str, raw: Json, limit: usize) -> Result<result::Parsed, ToolError> {
    let entry = entry(route, tool);
    let marks = &route.live.marks_results;
    let wrap = match entry.wrap {
        Wrap::Unmarked if marks.load(Ordering::Relaxed) => Wrap::MarksSome,
        wrap => wrap,
    };
    let expectation = Expectation {
        tool: entry.name.as_str(),
        schema: entry.enforced_schema(),
        declares_schema: entry.output_schema.is_some(),
        wrap,
        limit,
    };
    let parsed = result::value_of(raw, &expectation)?;
    if parsed.marked {
        marks.store(true, Ordering::Relaxed);
    }
    Ok(parsed)
}

fn parse_arguments(tool: &str, arguments: &RawValue) -> Result<Map<String, Value>, ToolError> {
    let values = result::values(arguments.get());
    let why = if values > MAX_ARGUMENT_VALUES {
        format!("they hold {values} values, more than {MAX_ARGUMENT_VALUES}; send them in parts")
    } else {
        match result::tree(arguments.get()) {
            Some(Value::Object(arguments)) => return Ok(arguments),
            Some(_) => "they are no JSON object".to_owned(),
            None => format!("they nest more than {} levels deep", result::MAX_DEPTH),
        }
    };
    Err(denied(tool, format!("its arguments cannot be sent: {why}")))
}

fn failed(tool: &str, route: &Route, failure: CallFailure) -> ToolError {
    let (tool, server) = (tool.to_owned(), route.server.to_string());
    match failure {
        CallFailure::TooLarge { bytes, limit } => ToolError::TooLarge { tool, bytes, limit },
        CallFailure::Unreadable(reason) => ToolError::Unreadable { tool, reason },
        CallFailure::Lost(reason) => ToolError::ConnectionLost {
            tool,
            server,
            reason,
        },
        failure => ToolError::Rejected {
            tool,
            server,
            reason: failure.to_string(),
        },
    }
}

/// Adds how the tool is called when it refused its arguments (contract M4). `refused`: the server
/// said so itself; otherwise its words and the tool's own schema tell.
fn with_signature(
    mut error: ToolError,
    entry: &Entry,
    arguments: &RawValue,
    refused: bool,
) -> ToolError {
    let (ToolError::Failed { details: text, .. } | ToolError::Rejected { reason: text, .. }) =
        &mut error
    else {
        return error;
    };
    let objection = result::tree(arguments.get()).and_then(|tree| entry.objection(&tree));
    if !refused && objection.is_none() && !speaks_of_arguments(text) {
        return error;
    }
    if let Some(objection) = objection {
        text.push_str(&format!("\nIts input schema says: {objection}"));
    }
    text.push_str(&format!("\nSignature: {}", entry.signature()));
    error
}

/// Whether an error's words are those of a server that did not like its arguments.
fn speaks_of_arguments(text: &str) -> bool {
    const WORDS: [&str; 12] = [
        "validation error",
        "invalid argument",
        "invalid param",
        "invalid input",
        "missing required",
        "required param",
        "required argument",
        "required property",
        "required positional argument",
        "unexpected keyword",
        "unknown argument",
        "unknown param",
    ];
    let text = text.to_ascii_lowercase();
    WORDS.iter().any(|words| text.contains(words))
}

fn hint(closest: &[ToolName]) -> String {
    if closest.is_empty() {
        return "; list_callable_tools() gives the names that exist".to_owned();
    }
    let names: Vec<&str> = closest.iter().map(ToolName::as_str).collect();
    format!("; closest: {}", names.join(", "))
}

/// A name as it is shown: one that no tool has is the program's invention, of any length.
fn brief(tool: &str) -> String {
    tool.chars().take(200).collect()
}

/// Whole seconds as such, fractions as they are.
pub fn seconds(duration: Duration) -> String {
    duration.as_secs_f64().to_string()
}

/// JSON text without the white space between its tokens.
pub(crate) fn compact(json: &str) -> impl Iterator<Item = char> {
    let (mut in_string, mut escaped) = (false, false);
    json.chars().filter(move |&c| {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            return true;
        }
        in_string = c == '"';
        !matches!(c, ' ' | '\n' | '\r' | '\t')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: S6
    #[test]
    fn arguments_are_compacted_outside_strings_only() {
        for (json, expected) in [
            (r#"{ "a" : 1 , "b c": "x  y" }"#, r#"{"a":1,"b c":"x  y"}"#),
            (
                r#"{"q": "a \" b \\", "n": [1, 2]}"#,
                r#"{"q":"a \" b \\","n":[1,2]}"#,
            ),
            ("{\n}", "{}"),
        ] {
            assert_eq!(compact(json).collect::<String>(), expected);
        }
    }

    // contract: M4
    #[test]
    fn a_complaint_about_arguments_is_known_by_its_words() {
        for (text, expected) in [
            (
                "1 validation error for call[get]\nid\n  Missing required argument",
                true,
            ),
            ("MCP error -32602: Invalid arguments for tool get", true),
            ("get() got an unexpected keyword argument 'x'", true),
            ("no such row", false),
            ("rate limit exceeded", false),
        ] {
            assert_eq!(speaks_of_arguments(text), expected, "{text}");
        }
    }

    #[test]
    fn seconds_are_written_as_a_person_would() {
        for (millis, expected) in [(60_000, "60"), (1_500, "1.5"), (250, "0.25")] {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
    }
}
