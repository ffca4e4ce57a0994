//! What a model is told about us: the three tools, and the instructions.
//!
//! Written for a model that has never seen the product; every number comes from the configuration.
//! Never in here: what servers offer. It is not known when the client asks, and a description that
//! changes voids the client's prompt cache.

use std::time::Duration;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::config::Config;

pub(crate) const EXECUTE: &str = "execute_program";
pub(crate) const INSPECT: &str = "inspect_tool";
pub(crate) const LIST: &str = "list_callable_tools";

/// Where clients begin to cut descriptions, in characters.
const MAX_DESCRIPTION: usize = 2000;

/// The most that Claude Code lets a tool claim for its results, in characters.
const MAX_RESULT_CHARS: usize = 500_000;

pub(crate) const INSTRUCTIONS: &str = "\
The tools of other MCP servers are Python functions here, named mcp__<server>__<tool>. When a task \
takes several tool calls, or large results of which you need little, write one program for \
execute_program that makes the calls, filters and computes, and prints only the answer: what tools \
return inside a program does not reach your context. Find names with list_callable_tools and \
parameters with inspect_tool first.";

/// The three tools, in the order in which they are listed. `structured`: whether results will carry
/// `structuredContent`, which the schema then declares.
pub(crate) fn tools(config: &Config, structured: bool) -> Vec<Tool> {
    let mut execute = Tool::new(
        EXECUTE,
        execute_description(config),
        object(json!({
            "type": "object",
            "properties": {"code": {
                "type": "string",
                "description": "Python source; top-level await works",
            }},
            "required": ["code"],
        })),
    )
    .with_title("Run a program that calls tools")
    .with_meta(meta(json!({
        "anthropic/alwaysLoad": true,
        "anthropic/maxResultSizeChars": max_result_chars(config.execution.max_output_bytes),
    })))
    .annotate(
        // A program can do whatever the tools it calls can do.
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(true),
    );
    if structured {
        execute = execute.with_raw_output_schema(object(output_schema()).into());
    }
    let inspect = Tool::new(
        INSPECT,
        INSPECT_DESCRIPTION,
        object(json!({
            "type": "object",
            "properties": {"tool_name": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "description": "For example mcp__github__list_issues, or several in an array",
            }},
            "required": ["tool_name"],
        })),
    )
    .with_title("Show how a tool is called")
    .with_meta(meta(json!({"anthropic/alwaysLoad": true})))
    .annotate(looks_only());
    let list = Tool::new(
        LIST,
        LIST_DESCRIPTION,
        object(json!({
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "Words to search names, descriptions and parameters for, best match first",
                },
                "server": {"type": "string", "description": "Only this server's tools"},
                "detail": {"type": "string", "enum": ["names", "summary", "signature"]},
                "limit": {"type": "integer", "minimum": 1},
            },
        })),
    )
    .with_title("List the tools that programs can call")
    .with_meta(meta(json!({"anthropic/alwaysLoad": true})))
    .annotate(looks_only());
    vec![execute, inspect, list]
}

fn looks_only() -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false)
}

fn execute_description(config: &Config) -> String {
    let execution = &config.execution;
    let text = format!(
        "\
Runs a Python program that calls the tools of other MCP servers; only what it prints or emits comes \
back to you. Use it for several calls, loops, joins, or big results of which you need little. For \
one or two small calls call the tools directly if you have them. Find tools with list_callable_tools and \
see their signatures with inspect_tool before you write the program.

In scope:
- every callable tool as a global async function mcp__<server>__<tool>, nothing to import. Await it (at top \
level too), pass keyword arguments only: rows = await mcp__db__query(sql=\"select 1\"). In parallel: import \
asyncio, then await asyncio.gather(...). A parameter named like a Python keyword takes a trailing underscore \
(from_=...).
- a tool returns parsed JSON (dict, list, str, number, None). Notes beside the data come under \"_notes\": \
in the dict itself, else as {{\"data\": value, \"_notes\": [...]}}. Print a sample before you rely on its shape.
- ToolError: raised when a call fails (bad arguments, server down, timeout, limit); catch it to go on.
- print(...): your output. emit(value): one JSON result, the last call wins.
- await list_callable_tools(), await inspect_tool(tool_name=\"...\"), await server_status().

Limits: {seconds} s in all, {calls} tool calls, {parallel} at once, {call_seconds} s a call, {result} bytes \
a tool result, {output} bytes of output (the rest is cut off).

Not there: network, files other than a scratch folder, processes, packages; only Python's standard library. \
Nothing is kept between programs.

A program is checked before it starts: for mistakes in calls, nothing has run. One that fails later reports the \
calls already made: do not repeat those that change something.

Example:
issues = await mcp__github__list_issues(repo=\"a/b\")
print(len(issues), [i[\"title\"] for i in issues if i[\"comments\"] > 9])",
        seconds = seconds(execution.timeout),
        calls = execution.max_tool_calls,
        parallel = execution.max_concurrent_calls,
        call_seconds = seconds(execution.tool_call_timeout),
        result = execution.max_tool_result_bytes,
        output = execution.max_output_bytes,
    );
    with_servers(text, config)
}

/// Adds the configured servers' names, all of them or none: half a list reads like a whole one.
fn with_servers(text: String, config: &Config) -> String {
    let names: Vec<String> = config
        .servers
        .iter()
        .map(|server| server.name.sanitized())
        .collect();
    if names.is_empty() {
        return text;
    }
    let named = format!("{text}\n\nServers: {}", names.join(", "));
    if named.chars().count() <= MAX_DESCRIPTION {
        named
    } else {
        text
    }
}

const INSPECT_DESCRIPTION: &str = "\
Shows a callable tool: a JSON object with name, description, signature (how to call it, as a Python stub), \
inputSchema and outputSchema; for an array of names, an array of these. Look here before you write a program \
that calls the tool. An outputSchema of null means that the server declares none: print a sample of the value \
in a program.";

const LIST_DESCRIPTION: &str = "\
Lists the tools that programs of execute_program can call: a JSON array of names, mcp__<server>__<tool>; \
with detail=summary of {name, summary}, with detail=signature of Python stubs that show how to call them. Narrow \
it by query or server. Further texts say what was left out and which servers are down; those are being \
reconnected. inspect_tool shows one tool in full.";

/// A duration as a person writes it: `120`, `0.5`.
fn seconds(duration: Duration) -> String {
    duration.as_secs_f64().to_string()
}

/// The longest text of a result: the output, the emitted value, which has the same limit, and what
/// stands around them. A character is at least a byte, so bytes are an upper bound.
fn max_result_chars(max_output_bytes: usize) -> usize {
    const AROUND: usize = 4096;
    max_output_bytes
        .saturating_mul(2)
        .saturating_add(AROUND)
        .min(MAX_RESULT_CHARS)
}

/// Matches `Report::structured`.
fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "output": {"type": "string"},
            "result": {"description": "The value emitted last, or null"},
            // Not a list of types, which some clients cannot read.
            "error": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tool_calls": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "tool": {"type": "string"},
                    "arguments": {"type": "string"},
                    "ok": {"type": "boolean"},
                    "duration_ms": {"type": "number"},
                    "error": {"type": "string"},
                },
                "required": ["tool", "arguments", "ok", "duration_ms"],
            }},
        },
        "required": ["ok", "output", "result", "error", "tool_calls"],
    })
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn meta(value: Value) -> MetaObject {
    MetaObject(object(value))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The largest numbers that a configuration can reasonably hold, so that the texts fit with any.
    fn wide() -> Config {
        let mut config = Config::default();
        config.execution.timeout = Duration::from_millis(86_399_999);
        config.execution.tool_call_timeout = Duration::from_millis(86_399_999);
        config.execution.max_tool_calls = 10_000_000;
        config.execution.max_concurrent_calls = 100_000;
        config.execution.max_tool_result_bytes = 10_000_000_000;
        config.execution.max_output_bytes = 10_000_000_000;
        config
    }

    // contract: S2
    #[test]
    fn descriptions_fit_what_clients_show() {
        for config in [Config::default(), wide()] {
            for structured in [true, false] {
                let tools = tools(&config, structured);
                let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
                assert_eq!(
                    names,
                    ["execute_program", "inspect_tool", "list_callable_tools"]
                );
                for tool in &tools {
                    let description = tool.description.as_deref().unwrap();
                    let length = description.chars().count();
                    assert!(length <= MAX_DESCRIPTION, "{}: {length}", tool.name);
                }
                let bytes = serde_json::to_string(&tools).unwrap().len();
                assert!(bytes <= 6000, "{bytes} bytes");
            }
        }
        assert!(INSTRUCTIONS.chars().count() <= 500);
    }

    // contract: S2
    #[test]
    fn the_text_teaches_what_is_there_what_is_not_and_the_configured_limits() {
        let mut config = Config::default();
        config.execution.timeout = Duration::from_millis(1500);
        config.execution.max_tool_calls = 37;
        let text = execute_description(&config);
        for taught in [
            "await",
            "keyword",
            "ToolError",
            "_notes",
            "emit(",
            "list_callable_tools()",
            "inspect_tool(",
            "server_status()",
            "1.5 s in all",
            "37 tool calls",
            "8 at once",
            "60 s a call",
            "16777216 bytes",
            "65536 bytes",
            "network",
            "files",
            "processes",
            "packages",
            "one or two small calls",
        ] {
            assert!(text.contains(taught), "{taught}");
        }
    }

    // contract: S2
    #[test]
    fn servers_are_named_all_or_not_at_all() {
        let servers = |number: usize| {
            let names: String = (0..number)
                .map(|index| format!("  - name: server-{index}\n    command: x\n"))
                .collect();
            let yaml = format!("servers:\n{names}");
            Config::parse(&yaml, Path::new("config.yaml"), &|_| None).unwrap()
        };
        let text = execute_description(&servers(3));
        assert!(text.ends_with("\n\nServers: server_0, server_1, server_2"));
        assert!(!execute_description(&servers(100)).contains("Servers:"));
        assert!(!execute_description(&Config::default()).contains("Servers:"));
    }

    // contract: S2, S7
    #[test]
    fn what_clients_are_told_beside_the_text() {
        let config = Config::default();
        insta::assert_snapshot!(serde_json::to_string_pretty(&tools(&config, true)).unwrap());
        assert!(tools(&config, false)[0].output_schema.is_none());
    }

    // contract: S2
    #[test]
    fn large_outputs_are_claimed_up_to_what_the_client_allows() {
        for (bytes, claimed) in [
            (1, 4098),
            (65_536, 135_168),
            (400_000, 500_000),
            (usize::MAX, 500_000),
        ] {
            assert_eq!(max_result_chars(bytes), claimed);
        }
    }
}
