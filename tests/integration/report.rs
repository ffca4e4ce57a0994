//! What comes back of a program: text, structured content, trace, ledger (S5, S6, T1, M5, A4).

use mock_servers::{Fault, Reply, Scenario, Tool};
use serde_json::json;

use crate::support::{PATIENCE, Ptc, ToolResult};

/// A server with one tool of each kind: it reads, it writes, it fails, it never answers, it dies.
fn crm() -> Scenario {
    let read_only = json!({"readOnlyHint": true});
    Scenario::new()
        .tool(Tool::echo("get").annotations(read_only.clone()))
        .tool(Tool::echo("refund"))
        .tool(Tool::new("fail").reply(Reply::tool_error("no such\n customer")))
        .tool(Tool::new("hang").reply(Reply::fault(Fault::Hang(Default::default()))))
        .tool(Tool::new("die").reply(Reply::fault(Fault::Crash(Default::default()))))
}

fn ptc() -> Ptc {
    Ptc::new().stdio("crm", crm())
}

/// The structured content with every duration replaced, since a test knows none.
fn structured(result: &ToolResult) -> String {
    let mut value = result.structured().clone();
    for call in value["tool_calls"].as_array_mut().unwrap() {
        assert!(call["duration_ms"].is_number(), "{call}");
        call["duration_ms"] = json!("[ms]");
    }
    serde_json::to_string_pretty(&value).unwrap()
}

// ---- S5: the text -------------------------------------------------------------------------------

// contract: S5
#[test]
fn a_program_without_output_says_so() {
    insta::assert_snapshot!(ptc().execute("x = 1").text(), @r"
    [Script executed successfully]
    (no output)
    ");
}

// contract: S5
#[test]
fn the_output_follows_the_status_line_and_loses_one_line_end() {
    let mut session = ptc().start();
    for (code, text) in [
        ("print('a')", "[Script executed successfully]\na"),
        ("print('a', end='')", "[Script executed successfully]\na"),
        ("print('a\\n')", "[Script executed successfully]\na\n"),
        ("print('\\na')", "[Script executed successfully]\n\na"),
        ("print('  a  ')", "[Script executed successfully]\n  a  "),
        (
            "print('--- result ---')",
            "[Script executed successfully]\n--- result ---",
        ),
    ] {
        let result = session.execute(code);
        assert_eq!(result.text(), text, "{code}");
        assert_eq!(result.texts.len(), 1);
        assert!(!result.is_error);
    }
    session.close();
}

// contract: S5 T1
#[test]
fn the_emitted_value_follows_the_output_and_the_trace_follows_both() {
    let result = ptc()
        .execute("print('found'); await mcp__crm__get(id=1); emit({'a': [1, 'x y'], 'ä': None})");
    insta::assert_snapshot!(result.timeless(), @r#"
    [Script executed successfully]
    found
    --- result ---
    {"a":[1,"x y"],"ä":null}
    [tool calls: 1; 0.0s]
    "#);
}

// contract: S5
#[test]
fn an_emitted_value_without_output() {
    insta::assert_snapshot!(ptc().execute("emit(['line\\nbreak', 1e100, 10 ** 30])").text(), @r#"
    [Script executed successfully]
    (no output)
    --- result ---
    ["line\nbreak",1e+100,1000000000000000000000000000000]
    "#);
}

// contract: S5
#[test]
fn a_failure_says_why_and_nothing_else_when_there_is_nothing_else() {
    let result = ptc().execute("raise SystemExit('no rows')");
    insta::assert_snapshot!(result.text(), @r"
    [Script execution failed]
    SystemExit: no rows
    ");
    assert!(result.is_error);
    assert_eq!(result.texts.len(), 1);
}

// contract: S5 A4 T1
#[test]
fn a_failure_reads_cause_ledger_output_trace() {
    let result = ptc().execute(
        "
        print('begin')
        await mcp__crm__get(id=1)
        await mcp__crm__refund(id=1)
        try: await mcp__crm__fail()
        except ToolError: pass
        emit('partial')
        raise SystemExit('stop here')
        ",
    );
    insta::assert_snapshot!(result.timeless(), @r"
    [Script execution failed]
    SystemExit: stop here

    Tool calls before the error: 3 answered, 0 in doubt, 0 not sent.
    May have changed something: mcp__crm__refund ×1, mcp__crm__fail ×1.

    --- output before the error ---
    begin
    [tool calls: 3, 1 failed; 0.0s]
      failed: mcp__crm__fail: 'mcp__crm__fail' returned an error: no such customer
    ");
}

// contract: S5
#[test]
fn output_before_an_error_comes_after_it_without_calls_too() {
    insta::assert_snapshot!(ptc().execute("print('a\\n\\nb')\nraise SystemExit(1)").text(), @r"
    [Script execution failed]
    SystemExit: 1

    --- output before the error ---
    a

    b
    ");
}

// contract: S5 P8
#[test]
fn a_program_out_of_time_reads_like_any_failure() {
    let result = ptc()
        .execution("timeout_seconds", 2)
        .execute("print('begin')\nawait mcp__crm__get(id=1)\nawait mcp__crm__hang(id=2)");
    insta::assert_snapshot!(result.timeless(), @r"
    [Script execution failed]
    TimeoutError: Execution exceeded 2s limit
    (execution.timeout_seconds is the limit: make independent calls at once with asyncio.gather, or do less in one program)

    Tool calls before the error: 1 answered, 1 in doubt, 0 not sent.
    Of those answered none changes anything (read-only tools).
    In doubt (sent, no answer; check before repeating): mcp__crm__hang ×1.

    --- output before the error ---
    begin
    [tool calls: 2, 1 failed; 0.0s]
      failed: mcp__crm__hang: sent, but the program ended or gave up before the answer
    ");
}

// ---- S6: structured content ---------------------------------------------------------------------

// contract: S6
#[test]
fn the_structured_form_of_a_success() {
    let result = ptc()
        .execute("print('out')\nprint((await mcp__crm__get(id=1))['id'])\nemit({'n': 10 ** 30})");
    insta::assert_snapshot!(structured(&result), @r#"
    {
      "ok": true,
      "output": "out\n1\n",
      "result": {
        "n": 1000000000000000000000000000000
      },
      "error": null,
      "tool_calls": [
        {
          "tool": "mcp__crm__get",
          "arguments": "{\"id\":1}",
          "ok": true,
          "duration_ms": "[ms]"
        }
      ]
    }
    "#);
}

// contract: S6
#[test]
fn the_structured_form_of_a_failure_keeps_the_emitted_value() {
    let result = ptc().execute(
        "
        emit([1])
        try: await mcp__crm__fail(q='x')
        except ToolError: pass
        raise SystemExit('late')
        ",
    );
    insta::assert_snapshot!(structured(&result), @r#"
    {
      "ok": false,
      "output": "",
      "result": [
        1
      ],
      "error": "SystemExit: late",
      "tool_calls": [
        {
          "tool": "mcp__crm__fail",
          "arguments": "{\"q\":\"x\"}",
          "ok": false,
          "duration_ms": "[ms]",
          "error": "'mcp__crm__fail' returned an error: no such\n customer"
        }
      ]
    }
    "#);
    assert!(
        !result.text().contains("--- result ---"),
        "the text leaves it out"
    );
}

// contract: S6
#[test]
fn the_structured_form_matches_the_declared_schema() {
    let mut session = ptc().execution("timeout_seconds", 2).start();
    let tools = session.request("tools/list", json!({}));
    let schema = &tools["result"]["tools"][0]["outputSchema"];
    let schema = jsonschema::validator_for(schema).expect("a schema is declared");
    for code in [
        "pass",
        "print(1); emit(None)",
        "emit({'a': [1, 2]})",
        "emit(1.5)",
        "1 / 0",
        "await mcp__crm__get(); await mcp__crm__fail()",
        "await mcp__crm__hang()",
        "import os; os._exit(1)",
    ] {
        let result = session.execute(code);
        let errors: Vec<String> = schema
            .iter_errors(result.structured())
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{code}: {errors:?}");
    }
    session.close();
}

// contract: S6 B1
#[test]
fn calls_are_listed_in_the_order_in_which_they_were_made_refused_ones_included() {
    let result = ptc()
        .server(json!({"name": "down", "command": "/nonexistent/server"}))
        .stdio("slow", Scenario::new().tool(Tool::sleep("nap", 300)))
        .set("tools", "limits", json!({"*__refund": 1}))
        .execution("max_tool_calls", 4)
        .execute(
            "
        import asyncio
        calls = [
            mcp__slow__nap(), mcp__crm__get(i=1), mcp__down__x(i=2), mcp__crm__refund(i=3),
            mcp__crm__refund(i=4), list_callable_tools(), mcp__crm__fail(i=5), mcp__crm__get(i=6),
        ]
        await asyncio.gather(*calls, return_exceptions=True)
        ",
        );
    let calls = result.calls();
    let listed: Vec<(&str, bool)> = calls
        .iter()
        .map(|call| {
            (
                call["tool"].as_str().unwrap(),
                call["ok"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("mcp__slow__nap", true),
            ("mcp__crm__get", true),
            ("mcp__down__x", false),
            ("mcp__crm__refund", true),
            ("mcp__crm__refund", false),
            ("mcp__crm__fail", false),
            ("mcp__crm__get", false),
        ]
    );
    assert_eq!(
        result.structured()["tool_calls"],
        json!(calls),
        "the same list in _meta"
    );
    for call in &calls {
        assert_eq!(call.get("error").is_some(), call["ok"] == false, "{call}");
    }
}

// contract: S6
#[test]
fn arguments_are_compact_json_cut_at_two_hundred_characters() {
    let mut session = ptc().start();
    for (arguments, recorded) in [
        ("a=1, b='x y'", r#"{"a":1,"b":"x y"}"#.to_owned()),
        ("", "{}".to_owned()),
        ("from_='é'", r#"{"from":"é"}"#.to_owned()),
        ("q='ä' * 500", format!(r#"{{"q":"{}"#, "ä".repeat(194))),
    ] {
        let result = session.execute(&format!("await mcp__crm__get({arguments})"));
        assert_eq!(result.calls()[0]["arguments"], recorded);
    }
    session.close();
}

// contract: S6 B1
#[test]
fn a_call_that_was_cut_short_lasted_until_then() {
    let result = ptc()
        .execution("timeout_seconds", 1)
        .execute("await mcp__crm__hang()");
    let duration = result.calls()[0]["duration_ms"].as_f64().unwrap();
    assert!(duration > 0.0, "{}", result.calls()[0]);
}

// contract: S6 S7
#[test]
fn the_call_list_travels_in_meta_of_every_result() {
    let mut session = ptc().client("claude-code").start();
    for (code, calls) in [
        ("pass", 0),
        ("await mcp__crm__get()", 1),
        ("await mcp__crm__get(); 1 / 0", 1),
    ] {
        let result = session.execute(code);
        assert_eq!(result.structured, None);
        assert_eq!(
            result.meta["ptc-mcp/tool_calls"].as_array().map(Vec::len),
            Some(calls),
            "{code}"
        );
    }
    session.close();
}

// ---- T1: the trace ------------------------------------------------------------------------------

// contract: T1
#[test]
fn the_trace_counts_calls_and_failures() {
    let mut session = ptc().start();
    for (code, trace) in [
        ("pass", None),
        ("await server_status()", None),
        ("await mcp__crm__get()", Some("[tool calls: 1; 0.0s]")),
        (
            "for i in range(12): await mcp__crm__get()",
            Some("[tool calls: 12; 0.0s]"),
        ),
    ] {
        let text = session.execute(code).timeless();
        let (_, after) = text.split_once("(no output)").unwrap();
        assert_eq!(
            after,
            trace.map(|trace| format!("\n{trace}")).unwrap_or_default(),
            "{code}"
        );
    }
    session.close();
}

// contract: T1
#[test]
fn the_trace_names_five_failures_and_counts_the_rest() {
    let result = ptc().execute(
        "
        for i in range(8):
            try: await mcp__crm__fail()
            except ToolError: pass
        await mcp__crm__get()
        ",
    );
    insta::assert_snapshot!(result.timeless(), @r"
    [Script executed successfully]
    (no output)
    [tool calls: 9, 8 failed; 0.0s]
      failed: mcp__crm__fail: 'mcp__crm__fail' returned an error: no such customer
      failed: mcp__crm__fail: 'mcp__crm__fail' returned an error: no such customer
      failed: mcp__crm__fail: 'mcp__crm__fail' returned an error: no such customer
      failed: mcp__crm__fail: 'mcp__crm__fail' returned an error: no such customer
      failed: mcp__crm__fail: 'mcp__crm__fail' returned an error: no such customer
      ... 3 more failures
    ");
}

// contract: T1
#[test]
fn the_seconds_are_the_programs_wall_clock() {
    let result = ptc().execute("import time\ntime.sleep(1)\nawait mcp__crm__get()");
    let trace = result.text().lines().last().unwrap();
    let seconds: f64 = trace
        .strip_prefix("[tool calls: 1; ")
        .and_then(|rest| rest.strip_suffix("s]"))
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or_else(|| panic!("{trace}"));
    assert!(seconds >= 1.0, "{trace}");
}

// contract: T1
#[test]
fn the_trace_can_be_switched_off() {
    let mut session = ptc().execution("trace", "off").start();
    for code in ["await mcp__crm__get()", "await mcp__crm__fail()"] {
        let result = session.execute(code);
        assert!(!result.text().contains("[tool calls:"), "{}", result.text());
        assert_eq!(result.calls().len(), 1);
    }
    session.close();
}

// ---- M5: a failure that fits --------------------------------------------------------------------

const LIMIT: usize = 10_000;

// contract: M5
#[test]
fn long_output_of_a_failure_is_shown_by_head_and_tail_on_line_boundaries() {
    let result = ptc().execute("for i in range(5000): print('line', i)\nawait mcp__crm__refund()\nraise SystemExit('stop')");
    let text = result.text();
    assert!(text.chars().count() <= LIMIT, "{}", text.chars().count());
    assert!(
        text.chars().count() > LIMIT - 200,
        "no less than fits: {}",
        text.chars().count()
    );
    let order: Vec<usize> = [
        "SystemExit: stop",
        "Tool calls before the error",
        "--- output before the error ---\nline 0\n",
        " bytes left out) ...\nline ",
        "\nline 4999\n[tool calls: 1; ",
    ]
    .iter()
    .map(|part| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part} in {text}"))
    })
    .collect();
    assert!(order.is_sorted(), "{order:?}");
    let shown: usize = text
        .lines()
        .filter(|line| line.starts_with("line "))
        .map(|line| line.len() + 1)
        .sum();
    let left_out: usize = text
        .split_once("... (")
        .unwrap()
        .1
        .split_once(' ')
        .unwrap()
        .0
        .parse()
        .unwrap();
    let whole: usize = result.structured()["output"].as_str().unwrap().len();
    assert_eq!(shown + left_out, whole);
}

// contract: M5
#[test]
fn every_failed_runs_text_fits() {
    let long = |n: usize| format!("t{n}_{}", "x".repeat(100));
    let many = (0..40).fold(Scenario::new(), |scenario, n| {
        let name = long(n);
        let tool = match n % 2 {
            0 => Tool::new(&name).reply(Reply::tool_error(&"why ".repeat(2000))),
            _ => Tool::new(&name).reply(Reply::fault(Fault::Hang(Default::default()))),
        };
        scenario.tool(tool)
    });
    let mut session = Ptc::new()
        .stdio("s", many)
        .execution("max_concurrent_calls", 64)
        .execution("tool_call_timeout_seconds", 0.3)
        .start();
    for code in [
        "raise ValueError('x' * 100_000)",
        "raise ValueError('é\\n' * 100_000)",
        "print('x' * 60_000)\n1 / 0",
        "print('y\\n' * 30_000)\nraise ValueError('z' * 60_000)",
        "raise SystemExit('😀' * 30_000)",
        "
        import asyncio
        names = await list_callable_tools()
        await asyncio.gather(*(globals()[name](q='a' * 500) for name in names), return_exceptions=True)
        print('out\\n' * 10_000)
        raise ValueError('w' * 60_000)
        ",
        "
        import asyncio
        names = await list_callable_tools()
        async with asyncio.timeout(0) if hasattr(asyncio, 'timeout') else open('x'): pass
        def f(n): return f(n - 1) if n else 1 / 0
        f(500)
        ",
        "def f(): f()\nf()",
    ] {
        let result = session.execute(code);
        assert!(result.is_error, "{code}");
        let count = result.text().chars().count();
        assert!(count <= LIMIT, "{code}: {count}");
    }
    session.close();
}

// contract: M5
#[test]
fn a_success_is_not_shortened() {
    let result = ptc().execute("print('x' * 60_000)");
    assert_eq!(result.output().len(), 60_000);
}

// ---- A4: what had happened ----------------------------------------------------------------------

/// The ledger of a failed run.
fn ledger(result: &ToolResult) -> String {
    let text = result.text();
    let start = text
        .find("Tool calls before the error")
        .unwrap_or_else(|| panic!("a ledger: {text}"));
    let end = text[start..]
        .find("\n\n")
        .or(text[start..].find("\n[tool calls"))
        .map_or(text.len(), |at| start + at);
    text[start..end].to_owned()
}

// contract: A4
#[test]
fn the_ledger_tells_what_may_have_changed_something() {
    let result = ptc().execute("await mcp__crm__get()\nfor i in range(2): await mcp__crm__refund(i=i)\nawait mcp__crm__fail()");
    insta::assert_snapshot!(ledger(&result), @r"
    Tool calls before the error: 4 answered, 0 in doubt, 0 not sent.
    May have changed something: mcp__crm__refund ×2, mcp__crm__fail ×1.
    ");
}

// contract: A4
#[test]
fn the_ledger_says_when_nothing_can_have_changed() {
    insta::assert_snapshot!(ledger(&ptc().execute("await mcp__crm__get()\n1 / 0")), @r"
    Tool calls before the error: 1 answered, 0 in doubt, 0 not sent.
    Of those answered none changes anything (read-only tools).
    ");
}

// contract: A4
#[test]
fn the_ledger_tells_what_is_in_doubt() {
    let result = ptc()
        .execution("tool_call_timeout_seconds", 1)
        .execution("max_concurrent_calls", 1)
        .execute(
            "
        import asyncio, os
        try: await mcp__crm__hang()
        except ToolError: pass
        try: await mcp__crm__die()
        except ToolError: pass
        while not (await server_status())['crm']['connected']: await asyncio.sleep(0.01)
        tasks = [asyncio.create_task(call) for call in (mcp__crm__hang(), mcp__crm__refund())]
        await asyncio.sleep(0)
        os._exit(1)
        ",
        );
    let text = ledger(&result);
    // The two tasks may or may not have left the process before its death.
    assert!(
        text.starts_with("Tool calls before the error: 0 answered, "),
        "{text}"
    );
    assert!(
        text.contains("In doubt (sent, no answer; check before repeating): mcp__crm__hang ×"),
        "{text}"
    );
    assert!(text.contains("mcp__crm__die ×1"), "{text}");
}

// contract: A4 P8
#[test]
fn a_run_out_of_time_says_what_was_in_flight_and_what_was_never_sent() {
    let mut session = ptc()
        .execution("timeout_seconds", 2)
        .execution("max_concurrent_calls", 1)
        .start();
    let result = session
        .execute("import asyncio\nawait asyncio.gather(mcp__crm__hang(), mcp__crm__refund())");
    insta::assert_snapshot!(result.timeless(), @r"
    [Script execution failed]
    TimeoutError: Execution exceeded 2s limit
    (execution.timeout_seconds is the limit: make independent calls at once with asyncio.gather, or do less in one program)

    Tool calls before the error: 0 answered, 1 in doubt, 1 not sent.
    In doubt (sent, no answer; check before repeating): mcp__crm__hang ×1.
    [tool calls: 2, 2 failed; 0.0s]
      failed: mcp__crm__hang: sent, but the program ended or gave up before the answer
      failed: mcp__crm__refund: not sent: the program ended first
    ");
    assert_eq!(session.journal("crm").calls("refund").len(), 0);
    session.close();
}

// contract: A4 B1
#[test]
fn refused_calls_were_not_sent() {
    let result = ptc()
        .execution("max_tool_calls", 1)
        .execute("await mcp__crm__refund()\nawait mcp__crm__refund()");
    insta::assert_snapshot!(ledger(&result), @r"
    Tool calls before the error: 1 answered, 0 in doubt, 1 not sent.
    May have changed something: mcp__crm__refund ×1.
    ");
}

// contract: A4
#[test]
fn a_program_that_fails_before_any_call_has_no_ledger() {
    let mut session = ptc().start();
    for code in ["1 / 0", "x = = 1", "await server_status(); 1 / 0"] {
        assert!(
            !session.execute(code).text().contains("Tool calls"),
            "{code}"
        );
    }
    session.close();
}

// contract: A4 S11
#[test]
fn a_cancelled_run_is_told_to_the_log_since_nobody_is_answered() {
    let mut session = ptc().start();
    let id = session.send_program("await mcp__crm__refund()\nawait mcp__crm__hang()");
    let journal = session.journal("crm");
    journal.wait_until(|journal| journal.calls("hang").len() == 1, PATIENCE);
    session.notify("notifications/cancelled", json!({"requestId": id}));
    let ledger = "a program was cancelled. Tool calls before the error: 1 answered, 1 in doubt, 0 not sent. \
                  May have changed something: mcp__crm__refund ×1. \
                  In doubt (sent, no answer; check before repeating): mcp__crm__hang ×1.";
    session.wait_for_log(ledger);
    session.close();
}
