//! What a program leaves behind, and the text that the model reads of it. Where the text is sent
//! is not known here.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::audit::AuditError;
use crate::channel::ChannelError;
use crate::config::Trace;
use crate::gate::{CallRecord, MAX_REFUSED};
use crate::sandbox::SandboxError;

/// A failed run's text fits this (contract M5): clients cut longer error texts, from the end.
const FAILURE_CHARS: usize = 10_000;

/// The most that the cause may take of a failed run's text.
const CAUSE_CHARS: usize = 5_000;

/// What is kept free for the output's head and tail, whatever else there is to say.
const OUTPUT_CHARS: usize = 500;

/// Failures that the trace lists one by one, and how much of each.
const TRACED: usize = 5;
const TRACED_CHARS: usize = 300;

/// Tools that the ledger names in one list.
const LEDGER_TOOLS: usize = 12;

/// The mark under output that was cut (contract P6).
const TRUNCATED: &str = "... (truncated)";

/// Why a program failed. The text is what the model reads first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The program's own exception, as Python tells it.
    #[error("{0}")]
    Script(String),
    #[error("TimeoutError: Execution exceeded {seconds}s limit")]
    TimedOut { seconds: String },
    #[error("{0}")]
    Died(String),
    #[error("ResourceError: {0}")]
    Exceeded(String),
    #[error(
        "the program was ended after {MAX_REFUSED} refused tool calls; the last one: {last}. Check \
         names with list_callable_tools() and stop at the first ToolError"
    )]
    Refused { last: String },
    #[error("SandboxError: {0}")]
    Sandbox(#[from] SandboxError),
    #[error("ChannelError: the program broke the channel to the server: {0}")]
    Channel(#[from] ChannelError),
    #[error("Cancelled: the request was cancelled, and the program killed")]
    Cancelled,
    #[error(
        "AuditError: the audit log {0}, and no program runs without it. Correct audit.path in the \
         configuration of ptc-mcp, or what keeps the file from being written"
    )]
    Audit(#[from] AuditError),
}

/// What a program prints, kept up to a limit in bytes.
#[derive(Debug)]
pub struct Output {
    text: String,
    limit: usize,
    truncated: bool,
}

impl Output {
    pub fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            limit,
            truncated: false,
        }
    }

    pub fn push(&mut self, text: &str) {
        if self.truncated {
            return;
        }
        let room = self.limit - self.text.len();
        let kept = text.floor_char_boundary(room);
        self.text.push_str(&text[..kept]);
        self.truncated = kept < text.len();
    }

    /// What is kept, with the mark on a line of its own when something was cut.
    pub fn finish(self) -> String {
        let mut text = self.text;
        if self.truncated {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(TRUNCATED);
        }
        text
    }
}

/// One program's end.
#[derive(Debug)]
pub struct Report {
    pub outcome: Result<(), ProgramError>,
    /// What P6 keeps, the mark included.
    pub output: String,
    /// The last emitted value.
    pub emitted: Option<Box<RawValue>>,
    pub calls: Vec<CallRecord>,
    pub elapsed: Duration,
    pub trace: Trace,
    /// What the person should know beside the outcome. No part of the text, whose form is fixed.
    pub warnings: Vec<String>,
}

impl Report {
    pub fn ok(&self) -> bool {
        self.outcome.is_ok()
    }

    pub fn error(&self) -> Option<String> {
        self.outcome.as_ref().err().map(ToString::to_string)
    }

    /// What a model can do about the cause, where the cause itself does not say (contract M4).
    fn advice(&self) -> Option<&'static str> {
        match &self.outcome {
            Err(ProgramError::TimedOut { .. }) => Some(
                "(execution.timeout_seconds is the limit: make independent calls at once with asyncio.gather, \
                 or do less in one program)",
            ),
            _ => None,
        }
    }

    /// The text block of the result (contract S5).
    pub fn text(&self) -> String {
        match self.error() {
            None => self.success(),
            Some(error) => self.failure(&error),
        }
    }

    fn success(&self) -> String {
        let output = self.output.strip_suffix('\n').unwrap_or(&self.output);
        let output = if output.is_empty() {
            "(no output)"
        } else {
            output
        };
        let mut text = format!("[Script executed successfully]\n{output}");
        if let Some(value) = &self.emitted {
            text.push_str("\n--- result ---\n");
            text.push_str(&one_line(value.get()));
        }
        if let Some(trace) = self.trace() {
            text.push('\n');
            text.push_str(&trace);
        }
        text
    }

    /// Cause first, since clients cut error texts from the end; output last, since it can be long.
    fn failure(&self, error: &str) -> String {
        let advice = self.advice().map(|advice| format!("\n{advice}"));
        let ledger = self.ledger().map(|ledger| format!("\n\n{ledger}"));
        let trace = self.trace().map(|trace| format!("\n{trace}"));
        let [advice, ledger, trace] = [advice, ledger, trace].map(Option::unwrap_or_default);
        let beside = [&advice, &ledger, &trace].map(|text| text.chars().count());
        // Names of tools are a program's invention and can make the rest long, but not this long.
        let room = FAILURE_CHARS.saturating_sub(beside.iter().sum::<usize>() + OUTPUT_CHARS);
        let cause = shorten(error, CAUSE_CHARS.min(room));
        let mut text = format!("[Script execution failed]\n{cause}{advice}{ledger}");
        let output = self.output.strip_suffix('\n').unwrap_or(&self.output);
        if !output.is_empty() {
            text.push_str("\n\n--- output before the error ---\n");
            let room = FAILURE_CHARS.saturating_sub(text.chars().count() + trace.chars().count());
            text.push_str(&shorten(output, room));
        }
        text.push_str(&trace);
        text
    }

    /// What had happened when the program failed (contract A4).
    pub fn ledger(&self) -> Option<String> {
        if self.calls.is_empty() || self.ok() {
            return None;
        }
        let answered: Vec<&CallRecord> = self.calls.iter().filter(|call| call.answered()).collect();
        let doubtful: Vec<&CallRecord> = self.calls.iter().filter(|call| call.in_doubt()).collect();
        let changing: Vec<&CallRecord> = answered
            .iter()
            .copied()
            .filter(|call| !call.read_only)
            .collect();
        let unsent = self.calls.len() - answered.len() - doubtful.len();
        let mut lines = vec![format!(
            "Tool calls before the error: {} answered, {} in doubt, {} not sent.",
            answered.len(),
            doubtful.len(),
            unsent
        )];
        if !changing.is_empty() {
            lines.push(format!("May have changed something: {}.", tally(&changing)));
        } else if !answered.is_empty() {
            lines.push("Of those answered none changes anything (read-only tools).".to_owned());
        }
        if !doubtful.is_empty() {
            lines.push(format!(
                "In doubt (sent, no answer; check before repeating): {}.",
                tally(&doubtful)
            ));
        }
        Some(lines.join("\n"))
    }

    /// The line that ends every text (contract T1).
    pub fn trace(&self) -> Option<String> {
        if self.trace == Trace::Off || self.calls.is_empty() {
            return None;
        }
        let failures: Vec<(&CallRecord, String)> = self
            .calls
            .iter()
            .filter_map(|call| Some((call, call.error()?)))
            .collect();
        let failed = match failures.len() {
            0 => String::new(),
            n => format!(", {n} failed"),
        };
        let seconds = self.elapsed.as_secs_f64();
        let mut text = format!("[tool calls: {}{failed}; {seconds:.1}s]", self.calls.len());
        for (call, error) in failures.iter().take(TRACED) {
            let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
            text.push_str(&format!(
                "\n  failed: {}: {}",
                call.tool,
                cut(&error, TRACED_CHARS)
            ));
        }
        if failures.len() > TRACED {
            text.push_str(&format!(
                "\n  ... {} more failures",
                failures.len() - TRACED
            ));
        }
        Some(text)
    }

    /// Every call, for `_meta` and for the structured content (contract S6).
    pub fn tool_calls(&self) -> Value {
        self.calls
            .iter()
            .map(|call| {
                let mut record = json!({
                    "tool": call.tool,
                    "arguments": call.arguments,
                    "ok": call.ok(),
                    "duration_ms": (call.duration.as_secs_f64() * 1e4).round() / 10.0,
                });
                if let Some(error) = call.error() {
                    record["error"] = error.into();
                }
                record
            })
            .collect()
    }

    pub fn structured(&self) -> Value {
        let result = self
            .emitted
            .as_ref()
            .map(|value| crate::result::tree(value.get()));
        json!({
            "ok": self.ok(),
            "output": self.output,
            "result": result,
            "error": self.error(),
            "tool_calls": self.tool_calls(),
        })
    }
}

/// `tool ×3, other ×1`, in the order of the first call.
fn tally(calls: &[&CallRecord]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for call in calls {
        match counts.iter_mut().find(|(tool, _)| *tool == call.tool) {
            Some((_, count)) => *count += 1,
            None => counts.push((&call.tool, 1)),
        }
    }
    let mut parts: Vec<String> = counts
        .iter()
        .take(LEDGER_TOOLS)
        .map(|(tool, count)| format!("{} ×{count}", cut(tool, 100)))
        .collect();
    if counts.len() > LEDGER_TOOLS {
        parts.push(format!("and {} more tools", counts.len() - LEDGER_TOOLS));
    }
    parts.join(", ")
}

/// At most `limit` characters, with a mark when something was cut.
fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Head and tail of a text on line boundaries, with the size of what was left out, in at most
/// `limit` characters.
fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    // Room for the mark itself, whose number is not known yet.
    let room = limit.saturating_sub(60);
    let head = take_lines(text, room / 2, false);
    let tail = take_lines(&text[head.len()..], room - room / 2, true);
    let omitted = text.len() - head.len() - tail.len();
    let separator = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{head}{separator}... ({omitted} bytes left out) ...\n{tail}")
}

/// The longest run of whole lines at one end of a text within `limit` characters; part of a line
/// when not even one fits.
fn take_lines(text: &str, limit: usize, from_end: bool) -> &str {
    let boundary = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(i, _)| i);
    if from_end {
        let start = boundary(text.chars().count().saturating_sub(limit));
        match text[start..].find('\n') {
            Some(newline) if start + newline + 1 < text.len() => &text[start + newline + 1..],
            _ => &text[start..],
        }
    } else {
        let end = boundary(limit);
        match text[..end].rfind('\n') {
            Some(newline) => &text[..=newline],
            None => &text[..end],
        }
    }
}

/// JSON on one line: line breaks can stand only between tokens.
fn one_line(json: &str) -> String {
    crate::gate::compact(json).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Outcome;
    use crate::tool::ToolError;

    fn call(tool: &str, outcome: Outcome, read_only: bool) -> CallRecord {
        CallRecord {
            tool: tool.to_owned(),
            arguments: "{}".to_owned(),
            argument_bytes: 2,
            result_bytes: 0,
            outcome,
            duration: Duration::from_micros(12_345),
            read_only,
        }
    }

    fn report(outcome: Result<(), ProgramError>, output: &str, calls: Vec<CallRecord>) -> Report {
        Report {
            outcome,
            output: output.to_owned(),
            emitted: None,
            calls,
            elapsed: Duration::from_millis(2345),
            trace: Trace::Summary,
            warnings: Vec::new(),
        }
    }

    fn script(error: &str) -> Result<(), ProgramError> {
        Err(ProgramError::Script(error.to_owned()))
    }

    fn failed(tool: &str) -> Outcome {
        Outcome::Failed(ToolError::Failed {
            tool: tool.to_owned(),
            details: "no\n such row".into(),
        })
    }

    // contract: P6
    #[test]
    fn output_is_cut_on_a_character_boundary_and_marked() {
        for (pieces, limit, expected) in [
            (&["abc"][..], 3, "abc"),
            (&["abc", "d"], 3, "abc\n... (truncated)"),
            (&["äöü"], 5, "äö\n... (truncated)"),
            (&["ab\n", "cd"], 3, "ab\n... (truncated)"),
            (&["€"], 2, "... (truncated)"),
            (&["abc", "", ""], 3, "abc"),
            (&[], 3, ""),
        ] {
            let mut output = Output::new(limit);
            pieces.iter().for_each(|piece| output.push(piece));
            assert_eq!(output.finish(), expected, "{pieces:?} within {limit}");
        }
    }

    // contract: S5
    #[test]
    fn a_success_reads_status_output_result_trace() {
        insta::assert_snapshot!(report(Ok(()), "", vec![]).text(), @r"
        [Script executed successfully]
        (no output)
        ");
        let mut whole = report(
            Ok(()),
            "a\n\nb\n\n",
            vec![call("mcp__s__t", Outcome::Ok, true)],
        );
        whole.emitted = Some(RawValue::from_string("{\"a\":\n [1, \"x y\"]}".to_owned()).unwrap());
        insta::assert_snapshot!(whole.text(), @r#"
        [Script executed successfully]
        a

        b

        --- result ---
        {"a":[1,"x y"]}
        [tool calls: 1; 2.3s]
        "#);
    }

    // contract: S5 A4 T1
    #[test]
    fn a_failure_reads_cause_ledger_output_trace() {
        insta::assert_snapshot!(report(script("ValueError: x"), "", vec![]).text(), @r"
        [Script execution failed]
        ValueError: x
        ");
        let calls = vec![
            call("mcp__crm__get", Outcome::Ok, true),
            call("mcp__crm__issue_refund", Outcome::Ok, false),
            call(
                "mcp__crm__issue_refund",
                failed("mcp__crm__issue_refund"),
                false,
            ),
            call("mcp__crm__issue_refund", Outcome::Unanswered, false),
            call("mcp__crm__get", Outcome::Waiting, true),
        ];
        insta::assert_snapshot!(report(script("ValueError: x"), "one\ntwo\n", calls).text(), @r"
        [Script execution failed]
        ValueError: x

        Tool calls before the error: 3 answered, 1 in doubt, 1 not sent.
        May have changed something: mcp__crm__issue_refund ×2.
        In doubt (sent, no answer; check before repeating): mcp__crm__issue_refund ×1.

        --- output before the error ---
        one
        two
        [tool calls: 5, 3 failed; 2.3s]
          failed: mcp__crm__issue_refund: 'mcp__crm__issue_refund' returned an error: no such row
          failed: mcp__crm__issue_refund: sent, but the program ended or gave up before the answer
          failed: mcp__crm__get: not sent: the program ended first
        ");
    }

    // contract: T1
    #[test]
    fn the_trace_names_five_failures_and_counts_the_rest() {
        let calls = (0..8).map(|_| call("t", failed("t"), true)).collect();
        let text = report(Ok(()), "", calls).trace().unwrap();
        assert!(
            text.starts_with("[tool calls: 8, 8 failed; 2.3s]\n  failed: t: "),
            "{text}"
        );
        assert_eq!(text.lines().count(), 7);
        assert!(text.ends_with("\n  ... 3 more failures"), "{text}");
        let mut off = report(Ok(()), "", vec![call("t", Outcome::Ok, true)]);
        off.trace = Trace::Off;
        assert_eq!(off.trace(), None);
    }

    // contract: M5
    #[test]
    fn a_failure_fits_its_characters_whatever_it_is_made_of() {
        let long_error = format!("{}\nValueError: the end", "é".repeat(70_000));
        let long_output: String = (0..9000).map(|i| format!("line {i}\n")).collect();
        let calls: Vec<_> = (0..300)
            .map(|i| {
                call(
                    &format!("mcp__s__{i}_{}", "x".repeat(150)),
                    failed("t"),
                    false,
                )
            })
            .collect();
        let text = report(script(&long_error), &long_output, calls).text();
        assert!(
            text.chars().count() <= FAILURE_CHARS,
            "{}",
            text.chars().count()
        );
        assert!(
            text.contains("ValueError: the end"),
            "the tail of the cause is kept"
        );
        let names = (0..40).map(|i| format!("{i:02}{}", "x".repeat(198)));
        let calls: Vec<_> = names
            .flat_map(|name| {
                [
                    call(
                        &name,
                        Outcome::Failed(ToolError::Failed {
                            tool: name.clone(),
                            details: "y".repeat(900),
                        }),
                        false,
                    ),
                    call(&name, Outcome::Unanswered, false),
                ]
            })
            .collect();
        let mut worst = report(script(&long_error), &long_output, calls);
        let characters = worst.text().chars().count();
        assert!(characters <= FAILURE_CHARS, "{characters}");
        assert!(worst.text().contains("line 0\n") && worst.text().contains("line 8999"));
        worst.outcome = Err(ProgramError::TimedOut {
            seconds: "2".to_owned(),
        });
        assert!(worst.text().chars().count() <= FAILURE_CHARS);
        insta::assert_snapshot!(report(worst.outcome, "", vec![]).text(), @r"
        [Script execution failed]
        TimeoutError: Execution exceeded 2s limit
        (execution.timeout_seconds is the limit: make independent calls at once with asyncio.gather, or do less in one program)
        ");
        let text = report(script("boom"), &long_output, vec![]).text();
        assert!(text.chars().count() <= FAILURE_CHARS);
        assert!(text.contains("line 0\nline 1\n") && text.ends_with("line 8998\nline 8999"));
        assert!(
            text.contains(" bytes left out) ...\nline "),
            "cut on line boundaries"
        );
    }

    // contract: M5
    #[test]
    fn the_longest_of_everything_fits() {
        let tool = |i: usize| format!("mcp__s__{i}_{}", "x".repeat(190));
        let calls: Vec<_> = (0..60)
            .map(|i| {
                let outcome = match i % 3 {
                    0 => Outcome::Failed(ToolError::Failed {
                        tool: tool(i),
                        details: "d".repeat(1000),
                    }),
                    1 => Outcome::Ok,
                    _ => Outcome::Unanswered,
                };
                call(&tool(i), outcome, false)
            })
            .collect();
        let error = "e".repeat(60_000);
        for output in ["", "x", &"y".repeat(60_000), &"line\n".repeat(10_000)] {
            let text = report(script(&error), output, calls.clone()).text();
            let count = text.chars().count();
            assert!(
                count <= FAILURE_CHARS,
                "{count} with {} of output",
                output.len()
            );
        }
    }

    #[test]
    fn shortening_says_exactly_how_much_is_missing() {
        let text: String = (0..100).map(|i| format!("{i:09}\n")).collect();
        let short = shorten(&text, 260);
        let omitted: usize = short
            .split_once("... (")
            .and_then(|(_, rest)| rest.split_once(" bytes"))
            .and_then(|(n, _)| n.parse().ok())
            .unwrap();
        let marks: usize = short
            .lines()
            .find(|line| line.contains("left out"))
            .map_or(0, |line| line.len() + 1);
        assert_eq!(omitted + short.len() - marks, text.len());
    }

    // contract: S6
    #[test]
    fn the_structured_form_lists_every_call() {
        let mut whole = report(
            script("ValueError: x"),
            "out\n",
            vec![call("a", Outcome::Ok, true), call("b", failed("b"), true)],
        );
        whole.emitted = Some(RawValue::from_string("12345678901234567890123".to_owned()).unwrap());
        insta::assert_snapshot!(serde_json::to_string_pretty(&whole.structured()).unwrap());
    }
}
