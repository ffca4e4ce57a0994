//! How much a program may ask of its tools: calls, slots, time, and programs side by side (B1, A3).

use mock_servers::{Event, Fault, Journal, Reply, Scenario, Tool};
use serde_json::{Value, json};

use crate::support::{PATIENCE, Ptc, Session, ToolResult};

fn echo() -> Scenario {
    Scenario::new().tool(Tool::echo("echo"))
}

/// A tool that never answers.
fn hang() -> Tool {
    Tool::new("hang").reply(Reply::fault(Fault::Hang(Default::default())))
}

/// The calls of a journal in the order of their arrival, by the value of this argument.
fn arrivals(journal: &Journal, argument: &str) -> Vec<Value> {
    let calls = journal.method("tools/call");
    calls
        .iter()
        .map(|call| call.params()["arguments"][argument].clone())
        .collect()
}

/// What became of each call, as the report's records tell it.
fn outcomes(result: &ToolResult) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("ok").to_owned();
    result
        .calls()
        .iter()
        .map(|call| (text(&call["tool"]), text(&call["error"])))
        .collect()
}

// ---- the number of calls ------------------------------------------------------------------------

// contract: B1 P3
#[test]
fn the_call_after_the_last_permitted_one_is_refused() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("max_tool_calls", 3)
        .start();
    let result = session.execute(
        "
        for i in range(5):
            try:
                print(await mcp__s__echo(i=i))
            except ToolError as error:
                print(repr(error))
        ",
    );
    assert_eq!(
        result.output(),
        "{'i': 0}\n{'i': 1}\n{'i': 2}\n\
         ToolError('tool-call budget exhausted (max_tool_calls=3)')\n\
         ToolError('tool-call budget exhausted (max_tool_calls=3)')"
    );
    assert_eq!(arrivals(&session.journal("s"), "i"), [0, 1, 2]);
    assert_eq!(result.calls().len(), 5, "refused calls are on record");
    session.close();
}

// contract: B1
#[test]
fn the_budget_is_a_programs_own() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("max_tool_calls", 1)
        .start();
    for _ in 0..3 {
        assert_eq!(
            session.execute("print(await mcp__s__echo(a=1))").output(),
            "{'a': 1}"
        );
    }
    session.close();
}

// contract: B1
#[test]
fn a_burst_cannot_overdraw_the_budget() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("max_tool_calls", 10)
        .start();
    let result = session.execute(
        "
        import asyncio
        calls = [mcp__s__echo(i=i) for i in range(50)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        print([answer['i'] for answer in answers[:10]])
        print({str(answer) for answer in answers[10:]})
        ",
    );
    assert_eq!(
        result.output(),
        "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n{'tool-call budget exhausted (max_tool_calls=10)'}"
    );
    assert_eq!(session.journal("s").calls("echo").len(), 10);
    session.close();
}

// contract: B1
#[test]
fn a_failed_call_is_a_call() {
    let scenario = echo().tool(Tool::new("no").reply(Reply::tool_error("no")));
    let result = Ptc::new()
        .stdio("s", scenario)
        .execution("max_tool_calls", 1)
        .execute(
            "
        try: await mcp__s__no()
        except ToolError: pass
        await mcp__s__echo()
        ",
        );
    assert!(
        result
            .error()
            .ends_with("ToolError: tool-call budget exhausted (max_tool_calls=1)"),
        "{}",
        result.error()
    );
}

// contract: B1 S6
#[test]
fn a_refused_call_spends_nothing_and_is_recorded() {
    let scenario = echo().tool(Tool::echo("asks"));
    let ptc = Ptc::new()
        .stdio("s", scenario)
        .server(json!({"name": "down", "command": "/nonexistent/server"}))
        .set("tools", "limits", json!({"*__asks": 1}))
        .execution("max_tool_calls", 2);
    let result = ptc.execute(
        "
        async def attempt(tool, **arguments):
            try: await tool(**arguments)
            except ToolError: pass
        await attempt(mcp__s__asks)
        for _ in range(5):
            await attempt(mcp__s__asks)
            await attempt(mcp__down__x)
        await attempt(mcp__s__echo)
        await attempt(mcp__s__echo)
        ",
    );
    let outcomes = outcomes(&result);
    assert_eq!(outcomes.len(), 13);
    assert_eq!(outcomes[0].1, "ok");
    assert_eq!(
        outcomes[11],
        ("mcp__s__echo".to_owned(), "ok".to_owned()),
        "five denied and five unavailable calls were free"
    );
    assert_eq!(
        outcomes[12].1,
        "tool-call budget exhausted (max_tool_calls=2)"
    );
    assert!(
        outcomes[1].1.starts_with("'mcp__s__asks' was refused: "),
        "{:?}",
        outcomes[1]
    );
    assert!(
        outcomes[2].1.starts_with("'mcp__down__x' is unavailable: "),
        "{:?}",
        outcomes[2]
    );
}

// contract: B1
#[test]
fn a_call_that_never_was_json_is_no_call() {
    let result = Ptc::new()
        .stdio("s", echo())
        .execution("max_tool_calls", 1)
        .execute(
            "
        for _ in range(5):
            try: await mcp__s__echo(a={1})
            except TypeError: pass
        print(await mcp__s__echo(a=1))
        ",
        );
    assert_eq!(result.output(), "{'a': 1}");
    assert_eq!(result.calls().len(), 1);
}

// contract: B1
#[test]
fn a_thousand_refused_calls_end_the_run_with_the_reason() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("max_tool_calls", 1)
        .start();
    let result = session.execute(
        "
        print('begun')
        while True:
            try: await mcp__s__echo()
            except ToolError: pass
        ",
    );
    insta::assert_snapshot!(result.error(), @"the program was ended after 1000 refused tool calls; the last one: tool-call budget exhausted (max_tool_calls=1). Check names with list_callable_tools() and stop at the first ToolError");
    assert_eq!(
        result.calls().len(),
        1001,
        "one call and a thousand refused ones"
    );
    assert_eq!(result.structured()["output"], "begun\n");
    assert_eq!(session.execute("print(1)").output(), "1");
    session.close();
}

// contract: B1
#[test]
fn fewer_refused_calls_do_not() {
    let result = Ptc::new()
        .stdio("s", echo())
        .execution("max_tool_calls", 1)
        .execute(
            "
        for i in range(1000):
            try: await mcp__s__echo()
            except ToolError: pass
        print(i)
        ",
        );
    assert_eq!(result.output(), "999", "one call and 999 refused ones");
}

// contract: A3
#[test]
fn tools_limits_bounds_the_calls_of_matching_tools() {
    let scenario = echo().tool(Tool::echo("issue_refund"));
    let mut session = Ptc::new()
        .stdio("crm", scenario)
        .set(
            "tools",
            "limits",
            json!({"mcp__crm__issue_refund": 1, "mcp__crm__*": 3}),
        )
        .start();
    let result = session.execute(
        "
        async def attempt(tool):
            try: await tool(); print('ok')
            except ToolError as error: print(error)
        await attempt(mcp__crm__issue_refund)
        await attempt(mcp__crm__issue_refund)
        await attempt(mcp__crm__echo)
        await attempt(mcp__crm__echo)
        await attempt(mcp__crm__echo)
        ",
    );
    insta::assert_snapshot!(result.output(), @r"
    ok
    'mcp__crm__issue_refund' was refused: tools.limits allows 1 call of 'mcp__crm__issue_refund' in a program
    ok
    ok
    'mcp__crm__echo' was refused: tools.limits allows 3 calls of 'mcp__crm__*' in a program
    ");
    assert_eq!(session.journal("crm").method("tools/call").len(), 3);
    let again = session.execute("print(await mcp__crm__issue_refund(a=1))");
    assert_eq!(again.output(), "{'a': 1}", "the limit is a program's");
    session.close();
}

// ---- slots --------------------------------------------------------------------------------------

// contract: B1
#[test]
fn at_most_so_many_calls_are_in_flight_first_come_first_served() {
    // Every call leaves only by its timeout, and its cancellation follows it onto the same pipe.
    let mut session = Ptc::new()
        .stdio("s", Scenario::new().tool(hang()))
        .execution("max_concurrent_calls", 2)
        .execution("tool_call_timeout_seconds", 0.2)
        .start();
    let result = session.execute(
        "
        import asyncio
        calls = [mcp__s__hang(i=i) for i in range(8)]
        print({str(e) for e in await asyncio.gather(*calls, return_exceptions=True)})
        ",
    );
    // Waiting for a slot is not counted: the last one waited for three others, and was sent.
    assert_eq!(result.output(), "{\"'mcp__s__hang' timed out after 0.2s\"}");
    let journal = session.journal("s");
    journal.wait_until(|journal| journal.cancelled().len() == 8, PATIENCE);
    assert_eq!(arrivals(&journal, "i"), [0, 1, 2, 3, 4, 5, 6, 7]);
    let (mut in_flight, mut peak) = (0, 0);
    for entry in journal.entries() {
        match entry.method.as_deref() {
            Some("tools/call") => in_flight += 1,
            Some("notifications/cancelled") => in_flight -= 1,
            _ => {}
        }
        peak = peak.max(in_flight);
    }
    assert_eq!(peak, 2);
    for call in result.calls() {
        assert!(call["duration_ms"].as_f64().unwrap() >= 200.0, "{call}");
    }
    session.close();
}

// contract: B1
#[test]
fn eight_calls_fill_the_default_slots() {
    let mut session = Ptc::new().stdio("s", Scenario::new().tool(hang())).start();
    let running = session.send_program(
        "import asyncio\nawait asyncio.gather(*(mcp__s__hang(i=i) for i in range(9)))",
    );
    let journal = session.journal("s");
    journal.wait_until(|journal| journal.calls("hang").len() == 8, PATIENCE);
    // A second program has slots of its own, and a whole exchange goes by while the ninth waits.
    let other = session.send_program("await mcp__s__hang(i='other')");
    journal.wait_until(|journal| journal.calls("hang").len() == 9, PATIENCE);
    assert_eq!(arrivals(&journal, "i")[8], "other");
    for id in [running, other] {
        session.notify("notifications/cancelled", json!({"requestId": id}));
    }
    session.close();
}

// contract: B1
#[test]
fn a_slot_is_given_back_by_every_kind_of_end() {
    let scenario = echo()
        .tool(Tool::new("no").reply(Reply::tool_error("no")))
        .tool(Tool::new("rejects").reply(Reply::rpc_error(-32000, "no")))
        .tool(hang());
    let result = Ptc::new()
        .stdio("s", scenario)
        .execution("max_concurrent_calls", 1)
        .execution("tool_call_timeout_seconds", 1)
        .execute(
            "
        import asyncio
        for tool in (mcp__s__no, mcp__s__rejects, mcp__s__hang):
            try: await tool()
            except ToolError: pass
        try: await asyncio.wait_for(mcp__s__hang(), 0.1)
        except asyncio.TimeoutError: pass
        print(await mcp__s__echo(a=1))
        ",
        );
    assert_eq!(result.output(), "{'a': 1}");
}

// contract: B1
#[test]
fn a_call_given_up_while_it_waits_is_never_sent() {
    let mut session = Ptc::new()
        .stdio("s", echo().tool(hang()))
        .execution("max_concurrent_calls", 1)
        .execution("tool_call_timeout_seconds", 1)
        .start();
    let result = session.execute(
        "
        import asyncio
        first = asyncio.create_task(mcp__s__hang())
        second = asyncio.create_task(mcp__s__echo(i='given up'))
        await asyncio.sleep(0)
        second.cancel()
        try: await first
        except ToolError: pass
        print(await mcp__s__echo(i='sent'))
        ",
    );
    assert_eq!(result.output(), "{'i': 'sent'}");
    assert_eq!(session.journal("s").calls("echo").len(), 1);
    session.close();
}

// ---- time ---------------------------------------------------------------------------------------

// contract: B1 D4 P3
#[test]
fn a_call_is_bounded_in_time_and_cancelled_downstream() {
    for (limit, said) in [(json!(1.3), "1.3"), (json!(1), "1")] {
        let mut session = Ptc::new()
            .stdio("s", echo().tool(hang()))
            .execution("tool_call_timeout_seconds", limit)
            .start();
        let result = session.execute("try: await mcp__s__hang()\nexcept ToolError as error: print(error)\nprint(await mcp__s__echo(a=1))");
        assert_eq!(
            result.output(),
            format!("'mcp__s__hang' timed out after {said}s\n{{'a': 1}}")
        );
        let journal = session.journal("s");
        journal.wait_until(|journal| !journal.cancelled().is_empty(), PATIENCE);
        let id = journal.calls("hang")[0]
            .id
            .as_ref()
            .unwrap()
            .get()
            .to_owned();
        assert_eq!(journal.cancelled(), [id]);
        assert_eq!(journal.starts(), 1, "no reconnect");
        session.close();
    }
}

// contract: B1 P8
#[test]
fn the_programs_limit_cancels_its_calls_downstream() {
    let mut session = Ptc::new()
        .stdio("s", Scenario::new().tool(hang()))
        .execution("timeout_seconds", 1)
        .start();
    let result = session.execute("await mcp__s__hang()");
    assert_eq!(result.error(), "TimeoutError: Execution exceeded 1s limit");
    session
        .journal("s")
        .wait_until(|journal| journal.cancelled().len() == 1, PATIENCE);
    session.close();
}

// contract: B1
#[test]
fn a_late_answer_harms_nothing() {
    let late =
        Tool::new("late").reply(Reply::text("late").with_fault(Fault::Late(Default::default())));
    let mut session = Ptc::new()
        .stdio("s", echo().tool(late))
        .execution("tool_call_timeout_seconds", 1)
        .start();
    session
        .execute("try: await mcp__s__late()\nexcept ToolError: pass")
        .output();
    let journal = session.journal("s");
    journal.wait_until(|journal| !journal.of(Event::Answered).is_empty(), PATIENCE);
    assert_eq!(
        session.execute("print(await mcp__s__echo(a=1))").output(),
        "{'a': 1}"
    );
    assert_eq!(session.journal("s").starts(), 1);
    session.close();
}

// ---- programs side by side ----------------------------------------------------------------------

fn cancel(session: &mut Session, id: u64) {
    session.notify("notifications/cancelled", json!({"requestId": id}));
}

// contract: B1
#[test]
fn further_programs_wait_their_turn_in_order() {
    let mut session = Ptc::new()
        .stdio("s", echo().tool(hang()))
        .execution("max_programs", 1)
        .start();
    let journal = session.journal("s");
    let first = session.send_program("await mcp__s__hang(i='first')");
    journal.wait_until(|journal| journal.calls("hang").len() == 1, PATIENCE);
    let waiting: Vec<u64> = (0..8)
        .map(|i| session.send_program(&format!("print(await mcp__s__echo(i={i}))")))
        .collect();
    // Answered after the programs before it have been taken in, and before any of them ran.
    session.request("ping", json!({}));
    assert_eq!(journal.calls("echo").len(), 0);
    cancel(&mut session, first);
    for (i, id) in waiting.into_iter().enumerate() {
        assert_eq!(
            ToolResult::of(session.answer(id)).output(),
            format!("{{'i': {i}}}")
        );
    }
    assert_eq!(
        arrivals(&journal, "i"),
        [
            json!("first"),
            json!(0),
            json!(1),
            json!(2),
            json!(3),
            json!(4),
            json!(5),
            json!(6),
            json!(7)
        ]
    );
    session.close();
}

// contract: B1
#[test]
fn as_many_programs_run_at_once_as_are_allowed() {
    let mut session = Ptc::new()
        .stdio("s", echo().tool(hang()))
        .execution("max_programs", 3)
        .start();
    let journal = session.journal("s");
    let ids: Vec<u64> = (0..4)
        .map(|i| session.send_program(&format!("await mcp__s__hang(i={i})")))
        .collect();
    journal.wait_until(|journal| journal.calls("hang").len() == 3, PATIENCE);
    session.request("ping", json!({}));
    assert_eq!(arrivals(&journal, "i").len(), 3);
    for id in ids {
        cancel(&mut session, id);
    }
    // Whichever was the fourth, cancelled or not it cannot block the next one.
    assert_eq!(session.execute("print(1)").output(), "1");
    session.close();
}

// contract: B1 S11
#[test]
fn a_program_cancelled_while_it_waits_gives_up_its_turn() {
    let mut session = Ptc::new()
        .stdio("s", echo().tool(hang()))
        .execution("max_programs", 1)
        .start();
    let journal = session.journal("s");
    let first = session.send_program("await mcp__s__hang()");
    journal.wait_until(|journal| journal.calls("hang").len() == 1, PATIENCE);
    let second = session.send_program("await mcp__s__echo(i='cancelled')");
    let third = session.send_program("print(await mcp__s__echo(i='third'))");
    cancel(&mut session, second);
    cancel(&mut session, first);
    assert_eq!(
        ToolResult::of(session.answer(third)).output(),
        "{'i': 'third'}"
    );
    assert_eq!(journal.calls("echo").len(), 1);
    session.close();
}
