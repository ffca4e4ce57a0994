//! From a server's bytes to the value that a program holds, through everything in between
//! (section R).

use mock_servers::fault::{Garbage, GarbageKind, OversizedShape};
use mock_servers::{Before, Fault, Mock, Reply, Scenario, Tool, Transport};
use serde_json::json;

use crate::peer::{Peer, attempts, over_every_transport};
use crate::support::{PATIENCE, Ptc, Session, ToolResult};

/// Raw results and what `repr` gives of the value, or the `ToolError`. A line ends with `…` where
/// only its beginning matters.
const VALUES: &[(&str, &str)] = &[
    // contract: R1
    (
        r#"{"isError":true,"content":[{"type":"text","text":" no "},{"type":"text","text":""},{"type":"text","text":"such row\n"}]}"#,
        "ToolError: '$' returned an error: no such row",
    ),
    (
        r#"{"isError":true,"content":[]}"#,
        "ToolError: '$' returned an error: no details",
    ),
    (
        r#"{"isError":true,"structuredContent":{"a":1},"content":[{"type":"text","text":"no"}]}"#,
        "ToolError: '$' returned an error: no",
    ),
    // contract: R2
    (
        r#"{"structuredContent":{"a":1},"content":[{"type":"text","text":"{ \"a\" : 1.0 }"}]}"#,
        "{'a': 1}",
    ),
    (
        r#"{"structuredContent":{"a":1},"content":[{"type":"text","text":"EMPTY RESULT"}]}"#,
        "{'a': 1, '_notes': ['EMPTY RESULT']}",
    ),
    (r#"{"structuredContent":{},"content":[]}"#, "{}"),
    (
        r#"{"structuredContent":{"result":1,"more":2}}"#,
        "{'result': 1, 'more': 2}",
    ),
    // contract: R3
    (
        r#"{"structuredContent":{"result":1},"content":[{"type":"text","text":"{\"result\": 1}"}]}"#,
        "{'result': 1}",
    ),
    (
        r#"{"structuredContent":{"result":1},"content":[{"type":"text","text":"{\"result\": 1}"},{"type":"text","text":"done"}]}"#,
        "{'result': 1, '_notes': ['done']}",
    ),
    // contract: R4
    (
        r#"{"structuredContent":{"result":5},"content":[{"type":"text","text":"5"}]}"#,
        "5",
    ),
    (
        r#"{"structuredContent":{"result":"abc"},"content":[{"type":"text","text":"abc"}]}"#,
        "'abc'",
    ),
    (
        r#"{"structuredContent":{"result":"[1, null]"},"content":[{"type":"text","text":"[1, null]"}]}"#,
        "[1, None]",
    ),
    (
        r#"{"structuredContent":{"result":5},"content":[{"type":"text","text":"five"}]}"#,
        "{'data': 5, '_notes': ['five']}",
    ),
    (
        r#"{"structuredContent":{"result":[1,"b"]},"content":[{"type":"text","text":"1"},{"type":"text","text":"b"}]}"#,
        "[1, 'b']",
    ),
    (
        r#"{"structuredContent":{"result":[1,"b"]},"content":[{"type":"text","text":"1"},{"type":"text","text":"so"},{"type":"text","text":"b"}]}"#,
        "{'data': [1, 'b'], '_notes': ['so']}",
    ),
    (r#"{"structuredContent":{"result":null}}"#, "None"),
    (
        r#"{"structuredContent":{"result":{"a":1}},"_meta":{"fastmcp":{"wrap_result":true}},"content":[{"type":"text","text":"{\"result\":{\"a\":1}}"}]}"#,
        "{'a': 1, '_notes': ['{\"result\":{\"a\":1}}']}",
    ),
    // contract: R5
    (r#"{"content":[{"type":"text","text":"[1, 2]"}]}"#, "[1, 2]"),
    (r#"{"content":[{"type":"text","text":"hello"}]}"#, "'hello'"),
    (
        r#"{"content":[{"type":"text","text":"rows:"},{"type":"text","text":"[1]"}]}"#,
        "{'data': [1], '_notes': ['rows:']}",
    ),
    (
        r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
        r"'a\nb'",
    ),
    (
        r#"{"content":[{"type":"text","text":"{\"a\":"},{"type":"text","text":"1}"}]}"#,
        "{'a': 1}",
    ),
    (r#"{"content":[]}"#, "None"),
    (r#"{}"#, "None"),
    // contract: R6
    (
        r#"{"structuredContent":{"_notes":1},"content":[{"type":"text","text":"x"}]}"#,
        "{'data': {'_notes': 1}, '_notes': ['x']}",
    ),
    // contract: R7
    (
        r#"{"content":[{"type":"image","mimeType":"image/png","data":"AA=="}]}"#,
        "{'data': None, '_notes': ['[non-text content omitted: image (image/png)]']}",
    ),
    (
        r#"{"structuredContent":{"a":1},"content":[{"type":"audio","mimeType":"audio/wav","data":"AA=="}]}"#,
        "{'a': 1, '_notes': ['[non-text content omitted: audio (audio/wav)]']}",
    ),
    (
        r#"{"content":[{"type":"text","text":"t"},{"type":"resource_link","uri":"file:///b","name":"b"}]}"#,
        "{'data': 't', '_notes': ['[non-text content omitted: resource_link (file:///b)]']}",
    ),
    (
        r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"AA=="}}]}"#,
        "{'data': None, '_notes': ['[non-text content omitted: resource (file:///a)]']}",
    ),
    (
        r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"inside"}}]}"#,
        "'inside'",
    ),
    // contract: R8
    (
        r#"{"structuredContent":{"n":123456789012345678901234567890,"f":0.1,"e":1e-7,"z":-0.0,"h":1E400}}"#,
        "{'n': 123456789012345678901234567890, 'f': 0.1, 'e': 1e-07, 'z': -0.0, 'h': inf}",
    ),
    (
        r#"{"structuredContent":{"result":true},"content":[{"type":"text","text":"1"}]}"#,
        "{'data': True, '_notes': ['1']}",
    ),
    (
        r#"{"structuredContent":{"n":12345678901234567890},"content":[{"type":"text","text":"{\"n\":12345678901234567891}"}]}"#,
        "{'n': 12345678901234567890, '_notes': ['{\"n\":12345678901234567891}']}",
    ),
    (
        r#"{"structuredContent":{"b":1,"a":{"ä":"\u00e9\ud83d\ude00\u0000"}}}"#,
        r"{'b': 1, 'a': {'ä': 'é😀\x00'}}",
    ),
    // contract: R11
    (r#"{"structuredContent":{"a":1,"a":2}}"#, "{'a': 2}"),
    (
        r#"{"structuredContent":{"a":"\ud800"}}"#,
        r"{'a': '\ud800'}",
    ),
    (r#"{"content":[{"type":"text","text":"\udfff!"}]}"#, "…"),
    (
        r#"{"structuredContent":{"a":NaN}}"#,
        "ToolError: '$' returned something that is not a valid result: …",
    ),
    (r#"{"structuredContent":[1]}"#, "[1]"),
    (
        r#"{"content":"text"}"#,
        "ToolError: '$' returned something that is not a valid result: …",
    ),
    (
        r#"{"content":[7]}"#,
        "ToolError: '$' returned something that is not a valid result: …",
    ),
    (
        r#"{"isError":"yes","content":[]}"#,
        "ToolError: '$' returned something that is not a valid result: isError is …",
    ),
    (
        r#"[]"#,
        "ToolError: '$' returned something that is not a valid result: …",
    ),
    (
        r#"null"#,
        "ToolError: '$' returned something that is not a valid result: …",
    ),
    (
        r#""done""#,
        "ToolError: '$' returned something that is not a valid result: …",
    ),
];

fn assert_reads(name: &str, line: &str, expected: &str) {
    let expected = expected.replace('$', name);
    match expected.split_once('…') {
        Some((start, _)) => assert!(line.starts_with(start), "{name}: {line}"),
        None => assert_eq!(line, expected, "{name}"),
    }
}

over_every_transport! {
    // contract: R1 R2 R3 R4 R5 R6 R7 R8 R11
    fn results_become_values(transport) {
        let scenario = VALUES.iter().enumerate().fold(Scenario::new(), |scenario, (n, (raw, _))| {
            scenario.tool(Tool::new(&format!("t{n}")).reply(Reply::raw(raw)))
        });
        // A server that marks one result marks all that it wraps: the marked one is another server's.
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario.clone());
        let (ptc, marking) = Peer::join(ptc, transport, "m", scenario);
        let marked = |raw: &str| raw.contains("wrap_result");
        let mut session = ptc.start();
        let names: Vec<String> = VALUES
            .iter()
            .enumerate()
            .map(|(n, (raw, _))| format!("mcp__{}__t{n}", if marked(raw) { "m" } else { "s" }))
            .collect();
        let calls = names.iter().map(|name| format!("{name}()"));
        let output = session.execute(&attempts(calls)).output();
        assert_eq!(output.lines().count(), VALUES.len(), "{output}");
        for ((name, line), (_, expected)) in names.iter().zip(output.lines()).zip(VALUES) {
            assert_reads(name, line, expected);
        }
        assert_eq!(session.execute("print(1)").output(), "1");
        session.close();
        assert_eq!((peer.handshakes(), marking.handshakes()), (1, 1));
    }

    // contract: R11 D2
    fn garbage_is_a_value_or_a_tool_error(transport) {
        use GarbageKind as G;
        let value = "{'n': 1}";
        let odd = "ToolError: '$' returned something that is not a valid result: …";
        // Line by line, an answer over several lines is none.
        let over_lines = match transport {
            Transport::Stdio => "ToolError: '$' timed out after 2s",
            _ => value,
        };
        let nothing = match transport {
            // A stream or body that ends without the answer cannot bring it any more.
            Transport::Http => "…",
            _ => "ToolError: '$' timed out after 2s",
        };
        let cases = [
            (G::NotJson, false, value),
            (G::NotJson, true, nothing),
            (G::Literal, false, value),
            (G::Truncated, true, odd),
            (G::WrongShape, true, odd),
            (G::ResultNotObject, true, odd),
            (G::MissingJsonrpc, true, value),
            (G::InvalidUtf8, true, value),
            (G::Bom, true, value),
            (G::Nul, true, value),
            (G::Crlf, true, value),
            (G::SeveralOnALine, true, value),
            (G::OverSeveralLines, true, over_lines),
            (G::Batch, true, value),
            (G::EmptyLines, true, value),
            (G::DeepNesting, true, odd),
            (G::DuplicateKeys, true, value),
            (G::NanNumbers, true, odd),
            (G::LoneSurrogate, true, value),
        ];
        let scenario = cases.iter().enumerate().fold(Scenario::new(), |scenario, (n, (kind, instead, _))| {
            let text = (*kind == G::Literal).then(|| r#"{"jsonrpc":"2.0","id":"$ID-no","result":{}}"#.to_owned());
            let garbage = Fault::Garbage(Garbage { kind: *kind, text, instead: *instead });
            scenario.tool(Tool::new(&format!("t{n}")).reply(Reply::structured(json!({"n": 1})).with_fault(garbage)))
        });
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario.tool(Tool::echo("echo")));
        let mut session = ptc.execution("tool_call_timeout_seconds", 2).start();
        for (n, (kind, _, expected)) in cases.iter().enumerate() {
            let name = format!("mcp__s__t{n}");
            // One may have ended the connection, where the answer's end is the connection's.
            session.wait_for_tools("there", |names| names.contains(&name));
            let line = session.execute(&attempts([format!("{name}()")])).output();
            let expected = expected.replace('$', &name);
            assert!(
                line == expected || expected.split_once('…').is_some_and(|(start, _)| line.starts_with(start)),
                "{kind:?}: {line}"
            );
        }
        session.wait_for_tools("there", |names| !names.is_empty());
        assert_eq!(session.execute("print(await mcp__s__echo(n=1))").output(), value);
        session.close();
        if transport != Transport::Http {
            assert_eq!(peer.handshakes(), 1, "garbage is no loss");
        }
    }

    // contract: R11
    fn nesting_to_the_bound_is_a_value_and_beyond_an_error(transport) {
        let nested = |depth: usize| {
            // The envelope's object and the structured object are levels, too.
            let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            Reply::raw(&format!(r#"{{"content":[],"structuredContent":{{"v":{value}}}}}"#))
        };
        let scenario = Scenario::new()
            .tool(Tool::new("some").reply(nested(400)))
            .tool(Tool::new("many").reply(nested(600)))
            .tool(Tool::new("absurd").reply(nested(200_000)))
            .tool(Tool::new("text").reply(Reply::text(&format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000)))));
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.start();
        let code = "
depth, value = 0, (await mcp__s__some())['v']
while value:
    depth, value = depth + 1, value[0]
print(depth + 1)
";
        assert_eq!(session.execute(code).output(), "400");
        let output = session.execute(&attempts(["mcp__s__many()", "mcp__s__absurd()", "mcp__s__text()"])).output();
        let lines: Vec<&str> = output.lines().collect();
        for (name, line) in ["many", "absurd"].into_iter().zip(&lines) {
            let start = format!("ToolError: 'mcp__s__{name}' returned something that is not a valid result: ");
            assert!(line.starts_with(&start) && line.contains("512 levels"), "{line}");
        }
        // A text that nests too deep to be JSON for us is a text.
        let text = lines[2];
        assert!(text.starts_with("'[[[[") || text.contains("512 levels"), "{}", &text[..100]);
        session.close();
        assert_eq!(peer.handshakes(), 1);
    }
}

/// The most memory that the server ever had, in bytes.
fn peak_memory(session: &Session) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", session.pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("Linux says so");
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

fn assert_too_large(result: &ToolResult, bytes: u64, limit: u64) {
    let output = result.output();
    let (_, rest) = output
        .split_once("' returned ")
        .unwrap_or_else(|| panic!("{output}"));
    let (found, rest) = rest
        .split_once(" bytes, ")
        .unwrap_or_else(|| panic!("{output}"));
    assert!(found.parse::<u64>().unwrap() >= bytes, "{output}");
    let expected = format!(
        "more than max_tool_result_bytes={limit}; ask the tool for less (a filter, a page, a limit), or raise execution.max_tool_result_bytes"
    );
    assert_eq!(rest, expected);
}

/// A limit, and an answer a hundred times as large.
const LIMIT: u64 = 2 << 20;
const HUGE: u64 = 200 << 20;

// contract: R10 D2
#[test]
fn a_huge_answer_costs_its_call_and_little_memory() {
    let huge = |shape| Reply::fault(Fault::oversized(HUGE, shape));
    let scenario = Scenario::new()
        .tool(Tool::new("text").reply(huge(OversizedShape::Text)))
        .tool(Tool::echo("echo"));
    let web = Mock::http(scenario.clone().json_answers());
    let streaming = Mock::http(scenario.clone());
    let old = Mock::sse(scenario.clone());
    let mut session = Ptc::new()
        .execution("max_tool_result_bytes", LIMIT)
        .stdio("pipe", scenario)
        .http("web", &web.url())
        .http("streaming", &streaming.url())
        .sse("old", &old.url())
        .start();
    session.wait_for_tools("connected", |names| names.len() == 8);
    session.execute("await mcp__pipe__echo()").output();
    let before = peak_memory(&session);
    for server in ["pipe", "web", "streaming", "old"] {
        let result = session.execute(&attempts([format!("mcp__{server}__text()")]));
        assert_too_large(&result, HUGE, LIMIT);
        let echoed = session.execute(&format!("print(await mcp__{server}__echo(n=1))"));
        assert_eq!(echoed.output(), "{'n': 1}");
    }
    let grown = peak_memory(&session) - before;
    assert!(
        grown < 16 * LIMIT,
        "{} MiB for a limit of {} MiB",
        grown >> 20,
        LIMIT >> 20
    );
    assert_eq!(session.journal("pipe").starts(), 1);
    session.close();
    for mock in [&web, &streaming, &old] {
        assert_eq!(mock.journal().method("initialize").len(), 1);
    }
}

// contract: R10
#[test]
fn the_limit_is_exact_and_is_of_the_value_as_it_is_passed_in() {
    let value = |bytes: usize| format!(r#"{{"v":"{}"}}"#, "x".repeat(bytes - 8));
    let raw = |bytes| {
        Reply::raw(&format!(
            r#"{{"content":[],"structuredContent":{}}}"#,
            value(bytes)
        ))
    };
    let scenario = Scenario::new()
        .tool(Tool::new("fits").reply(raw(10_000)))
        .tool(Tool::new("exceeds").reply(raw(10_001)))
        // Twice on the wire: structured, and as text, escaped.
        .tool(
            Tool::new("twice")
                .reply(Reply::structured(json!({"v": "x".repeat(9_992)})).and_text(&value(10_000))),
        );
    let mut session = Ptc::new()
        .execution("max_tool_result_bytes", 10_000)
        .stdio("s", scenario)
        .start();
    let code = "print(len((await mcp__s__fits())['v']), len((await mcp__s__twice())['v']))";
    assert_eq!(session.execute(code).output(), "9992 9992");
    assert_eq!(
        session.execute(&attempts(["mcp__s__exceeds()"])).output(),
        "ToolError: 'mcp__s__exceeds' returned 10001 bytes, more than max_tool_result_bytes=10000; ask the \
         tool for less (a filter, a page, a limit), or raise execution.max_tool_result_bytes"
    );
    session.close();
}

// contract: R10 D2 D4
#[test]
fn a_line_without_end_times_out_and_takes_no_memory() {
    let endless = Fault::oversized(0, OversizedShape::EndlessLine);
    let scenario = Scenario::new()
        .tool(Tool::new("endless").reply(Reply::fault(endless)))
        .tool(Tool::echo("echo"));
    let mock = Mock::http(scenario.clone());
    let plain = Mock::http(scenario.clone().json_answers());
    let mut session = Ptc::new()
        .execution("max_tool_result_bytes", LIMIT)
        .execution("tool_call_timeout_seconds", 1.5)
        .http("web", &mock.url())
        .http("plain", &plain.url())
        .stdio("pipe", scenario)
        .start();
    session.wait_for_tools("connected", |names| names.len() == 6);
    let before = peak_memory(&session);
    for server in ["web", "plain", "pipe"] {
        let output = session
            .execute(&attempts([format!("mcp__{server}__endless()")]))
            .output();
        assert_eq!(
            output,
            format!("ToolError: 'mcp__{server}__endless' timed out after 1.5s")
        );
    }
    let echoed = session.execute("print(await mcp__web__echo(n=1))");
    assert_eq!(echoed.output(), "{'n': 1}");
    let grown = peak_memory(&session) - before;
    assert!(grown < 16 * LIMIT, "{} MiB", grown >> 20);
    session.close();
}

// contract: R9
#[test]
fn a_violation_names_its_place_and_a_schema_that_cannot_hold_is_not_enforced() {
    let rows = json!({
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}},
        "required": ["rows"],
    });
    let remote =
        json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}});
    let invalid = json!({"type": 17});
    let reply = || Reply::structured(json!({"rows": [{"n": 1}, {"n": "two"}]}));
    let scenario = Scenario::new()
        .tool(Tool::new("rows").output_schema(rows.clone()).reply(reply()))
        .tool(
            Tool::new("missing")
                .output_schema(rows.clone())
                .reply(Reply::text("no rows")),
        )
        .tool(
            Tool::new("refused")
                .output_schema(rows)
                .reply(Reply::tool_error("no table")),
        )
        .tool(Tool::new("remote").output_schema(remote).reply(reply()))
        .tool(Tool::new("invalid").output_schema(invalid).reply(reply()));
    let mut session = Ptc::new().stdio("s", scenario).start();
    let tools = ["rows", "missing", "refused", "remote", "invalid", "remote"];
    let output = session
        .execute(&attempts(tools.map(|tool| format!("mcp__s__{tool}()"))))
        .output();
    let lines: Vec<&str> = output.lines().collect();
    let violation = "ToolError: 'mcp__s__rows' returned a value that does not match its declared output schema: ";
    assert!(
        lines[0].starts_with(violation) && lines[0].contains("/rows/1/n"),
        "{output}"
    );
    assert!(
        lines[1].contains("'mcp__s__missing'")
            && lines[1].contains("does not match its declared output schema: "),
        "{output}"
    );
    assert_eq!(
        lines[2],
        "ToolError: 'mcp__s__refused' returned an error: no table"
    );
    assert_eq!(lines[3..], ["{'rows': [{'n': 1}, {'n': 'two'}]}"; 3]);
    let log = session.log();
    for tool in ["remote", "invalid"] {
        let noted = log
            .lines()
            .filter(|line| line.contains("not enforced") && line.contains(tool))
            .count();
        assert_eq!(noted, 1, "{tool}: once in the log\n{log}");
    }
    assert_eq!(session.journal("s").starts(), 1);
    session.close();
}

/// Values that a program sends and gets back are the same, whatever JSON can say of them.
// contract: R8 P2
#[test]
fn numbers_and_texts_survive_the_way_there_and_back() {
    let mock = Mock::http(Scenario::new().tool(Tool::echo("echo")));
    let code = "
values = [0, -1, 2**53 + 1, 2**64, -2**63, 10**300, 0.1, 1e-7, 1.5e300, 5e-324, -0.0,
          True, False, None, '', '\\x00\\x1f\\x7f', 'ä€😀', '\\u2028', '\"\\\\/', {}, [], {'': {'a': [[]]}}]
for echo in (mcp__pipe__echo, mcp__web__echo):
    back = (await echo(values=values))['values']
    print(back == values, [type(value) for value in back] == [type(value) for value in values], repr(back[10]))
";
    let output = Ptc::new()
        .stdio("pipe", Scenario::new().tool(Tool::echo("echo")))
        .http("web", &mock.url())
        .execute(code)
        .output();
    assert_eq!(output, "True True -0.0\nTrue True -0.0");
    mock.journal()
        .wait_until(|journal| journal.calls("echo").len() == 1, PATIENCE);
}

// contract: P2 R9
#[test]
fn arguments_may_nest_as_deep_as_is_said() {
    // The mock server's own parser stops at 128 levels.
    let server = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message["method"], message.get("id")
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "depth", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        value, depth = message["params"]["arguments"]["v"], 1
        while value != []:
            value, depth = value[0], depth + 1
        result = {"content": [{"type": "text", "text": str(depth)}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;
    let code = "
for depth in (127, 128, 499, 500):
    value = []
    for _ in range(depth - 1): value = [value]
    try:
        print(await mcp__py__depth(v=value))
    except TypeError as error:
        print(error)
";
    let output = Ptc::new()
        .server(json!({"name": "py", "command": "python3", "args": ["-c", server]}))
        .execute(code)
        .output();
    assert_eq!(
        output,
        "127\n128\n499\nmcp__py__depth(): the value is nested more than 500 levels deep"
    );
}

// contract: R4
#[test]
fn a_server_that_has_marked_a_result_means_what_it_does_not_mark() {
    let marked = r#"{"content":[],"structuredContent":{"result":1},"_meta":{"fastmcp":{"wrap_result":true}}}"#;
    let unmarked = r#"{"content":[],"structuredContent":{"result":1}}"#;
    let tool = Tool::new("t").replies([unmarked, marked, unmarked].map(Reply::raw));
    let result = Ptc::new()
        .stdio("s", Scenario::new().tool(tool))
        .execute("for _ in range(3): print(await mcp__s__t())");
    assert_eq!(result.output(), "1\n1\n{'result': 1}");
}

// contract: R4
#[test]
fn that_a_server_marks_is_known_after_a_change_and_a_loss_as_well() {
    let marked = r#"{"content":[],"structuredContent":{"result":1},"_meta":{"fastmcp":{"wrap_result":true}}}"#;
    let unmarked = r#"{"content":[],"structuredContent":{"result":1}}"#;
    let changing = Reply::text("ok").before(Before::ListChanged(Default::default()));
    let scenario = Scenario::new()
        .tool(Tool::new("mark").reply(Reply::raw(marked)))
        .tool(Tool::new("get").reply(Reply::raw(unmarked)))
        .tool(Tool::new("change").reply(changing))
        .tool(Tool::new("die").reply(Reply::fault(Fault::crash())));
    let mut session = Ptc::new().stdio("s", scenario).start();
    session.execute("await mcp__s__mark()").output();
    let get = "print(await mcp__s__get())";
    assert_eq!(session.execute(get).output(), "{'result': 1}");
    session.execute("await mcp__s__change()").output();
    session.wait_for_log("tools changed");
    assert_eq!(session.execute(get).output(), "{'result': 1}");
    session.execute("await mcp__s__die()").error();
    session.wait_for_tools("back", |names| names.len() == 4);
    assert_eq!(session.journal("s").starts(), 2);
    assert_eq!(session.execute(get).output(), "{'result': 1}");
    session.close();
}
