//! What the person decides: rules, questions, limits and the ledger (section A but for the log).

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use mock_servers::{Scenario, Tool};
use serde_json::{Value, json};

use crate::client_rules::{claude, settings};
use crate::support::{LEGACY, MODERN, PATIENCE, Ptc, Session, ToolResult};

pub fn crm() -> Scenario {
    let reads = json!({"readOnlyHint": true});
    Scenario::new()
        .tool(Tool::echo("refund"))
        .tool(Tool::echo("close"))
        .tool(Tool::echo("get").annotations(reads))
        .tool(Tool::sleep("slow", 600_000))
}

/// Calls of `refund` need a yes, and the client shows forms.
fn confirming() -> Ptc {
    Ptc::new()
        .stdio("crm", crm())
        .set("tools", "confirm", json!(["mcp__crm__refund"]))
        .capabilities(json!({"elicitation": {}}))
}

pub fn choice(word: &str) -> Value {
    json!({"action": "accept", "content": {"decision": word}})
}

/// The next request from the server, of the 2025 era.
pub fn next_request(session: &mut Session, method: &str) -> Value {
    let message = session.next_message();
    assert_eq!(message["method"], method, "{message}");
    message
}

pub fn reply(session: &mut Session, request: &Value, result: &Value) {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    session.send_line(&answer.to_string());
}

/// What a call came to: its result, or in the 2026 era a question and the state to call again with.
pub fn question_of(answer: &Value) -> Option<(Value, Value)> {
    let result = &answer["result"];
    (result["resultType"] == "input_required").then(|| {
        (
            result["inputRequests"].clone(),
            result["requestState"].clone(),
        )
    })
}

pub fn call_again(session: &mut Session, code: &str, state: &Value, responses: Value) -> Value {
    let params = json!({
        "name": "execute_program",
        "arguments": {"code": code},
        "inputResponses": responses,
        "requestState": state,
    });
    session.request("tools/call", params)
}

/// Runs a program and gives these answers to its questions. Every one must be asked for.
pub fn converse(
    session: &mut Session,
    era: &str,
    code: &str,
    answers: &[Value],
) -> (ToolResult, Vec<String>) {
    let mut asked = Vec::new();
    let id = session.send_tool_call("execute_program", json!({"code": code}));
    if era == LEGACY {
        for answer in answers {
            let request = next_request(session, "elicitation/create");
            asked.push(request["params"]["message"].as_str().unwrap().to_owned());
            reply(session, &request, answer);
        }
        return (ToolResult::of(session.answer(id)), asked);
    }
    let mut answer = session.answer(id);
    for given in answers {
        let (requests, state) = question_of(&answer).unwrap_or_else(|| panic!("asks: {answer}"));
        let request = &requests["decision"];
        assert_eq!(request["method"], "elicitation/create");
        asked.push(request["params"]["message"].as_str().unwrap().to_owned());
        answer = call_again(session, code, &state, json!({"decision": given}));
    }
    (ToolResult::of(answer), asked)
}

/// Calls `refund` three times and says what became of each.
pub const THREE_REFUNDS: &str = "
for amount in (1, 2, 3):
    try:
        print('ok', (await mcp__crm__refund(amount=amount))['amount'])
    except ToolError as error:
        print(error)
";

// contract: A2
#[test]
fn a_call_needs_the_yes_that_was_given_for_it() {
    let no = "'mcp__crm__refund' was refused: it needs the person's yes (tools.confirm in the configuration of ptc-mcp), and the person said no";
    let dismissed = no.replace("said no", "dismissed the question");
    let cases: [(&[Value], [&str; 3]); 5] = [
        (
            &[choice("once"), choice("no"), choice("once")],
            ["ok 1", no, "ok 3"],
        ),
        (&[choice("for this program")], ["ok 1", "ok 2", "ok 3"]),
        (
            &[json!({"action": "decline"}), choice("for this program")],
            [no, "ok 2", "ok 3"],
        ),
        (
            &[
                json!({"action": "cancel"}),
                json!({"action": "accept"}),
                choice("yes"),
            ],
            [&dismissed, no, no],
        ),
        (&[choice("for this session")], ["ok 1", "ok 2", "ok 3"]),
    ];
    for era in [LEGACY, MODERN] {
        let mut session = confirming().era(era).start();
        for (answers, expected) in &cases {
            let (result, asked) = converse(&mut session, era, THREE_REFUNDS, answers);
            assert_eq!(result.output(), expected.join("\n"), "{era} {answers:?}");
            assert_eq!(
                asked[0],
                "A program wants to call mcp__crm__refund with\n\n{\n  \"amount\": 1\n}\n\n\
                 You are asked because of tools.confirm in the configuration of ptc-mcp."
            );
        }
        // The session's yes holds for the programs after it, and for no other tool.
        let (result, _) = converse(&mut session, era, THREE_REFUNDS, &[]);
        assert_eq!(result.output(), "ok 1\nok 2\nok 3");
        let sent = session.journal("crm").calls("refund");
        assert_eq!(sent.len(), 2 + 3 + 2 + 3 + 3, "a no sends nothing");
    }
}

// contract: A2
#[test]
fn a_client_that_cannot_ask_gives_no_yes() {
    let cannot = [json!({}), json!({"elicitation": {"url": {}}})];
    for era in [LEGACY, MODERN] {
        for capabilities in &cannot {
            let result = confirming()
                .capabilities(capabilities.clone())
                .era(era)
                .execute("await mcp__crm__refund(amount=1)");
            let error = result.error();
            assert!(error.contains("this client cannot ask"), "{error}");
            assert_eq!(result.calls().len(), 1);
        }
    }
    // It said that it could, and then did not.
    let mut session = confirming().start();
    let program = json!({"code": "await mcp__crm__refund(amount=1)"});
    let id = session.send_tool_call("execute_program", program);
    let request = next_request(&mut session, "elicitation/create");
    let error = json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no forms"}});
    session.send_line(&error.to_string());
    let error = ToolResult::of(session.answer(id)).error();
    assert!(error.contains("the client could not ask: "), "{error}");
    assert!(error.contains("no forms"), "{error}");
    assert!(session.journal("crm").calls("refund").is_empty());
}

// contract: A2
#[test]
fn several_questions_at_once_are_put_one_at_a_time_in_order() {
    let code = "
import asyncio
calls = [mcp__crm__refund(amount=n) for n in range(3)]
print([r if isinstance(r, dict) else 'no' for r in await asyncio.gather(*calls, return_exceptions=True)])
";
    for era in [LEGACY, MODERN] {
        let mut session = confirming().era(era).start();
        let answers = [choice("no"), choice("for this program")];
        let (result, asked) = converse(&mut session, era, code, &answers);
        assert_eq!(
            result.output(),
            "['no', {'amount': 1}, {'amount': 2}]",
            "a decision answers those that wait as well"
        );
        assert!(asked[0].contains("\"amount\": 0") && asked[1].contains("\"amount\": 1"));
    }
}

// contract: A2 P8
#[test]
fn waiting_for_an_answer_does_not_count_against_the_timeout() {
    let mut session = confirming().execution("timeout_seconds", 4).start();
    let program = json!({"code": "print(await mcp__crm__refund(amount=1))"});
    let id = session.send_tool_call("execute_program", program);
    let request = next_request(&mut session, "elicitation/create");
    session.assert_silent_for(Duration::from_millis(4_500));
    reply(&mut session, &request, &choice("once"));
    assert_eq!(ToolResult::of(session.answer(id)).output(), "{'amount': 1}");
    // And the time after it does.
    let program = json!({"code": "await mcp__crm__refund(amount=1)\nwhile True: pass"});
    let id = session.send_tool_call("execute_program", program);
    let request = next_request(&mut session, "elicitation/create");
    reply(&mut session, &request, &choice("once"));
    let result = ToolResult::of(session.answer(id));
    assert_eq!(result.error(), "TimeoutError: Execution exceeded 4s limit");
}

// contract: A2 S11
#[test]
fn a_question_that_nobody_needs_any_more_is_withdrawn() {
    let mut session = confirming().start();
    // The program gives the call up.
    let code = "
import asyncio
try:
    await asyncio.wait_for(mcp__crm__refund(amount=1), 0.05)
except asyncio.TimeoutError:
    print('gave up')
";
    let id = session.send_tool_call("execute_program", json!({"code": code}));
    let request = next_request(&mut session, "elicitation/create");
    let cancelled = next_request(&mut session, "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(ToolResult::of(session.answer(id)).output(), "gave up");
    // The client gives the program up, and its person stays silent.
    let program = json!({"code": "await mcp__crm__refund(amount=1)"});
    let id = session.send_tool_call("execute_program", program);
    let request = next_request(&mut session, "elicitation/create");
    session.notify("notifications/cancelled", json!({"requestId": id}));
    let cancelled = next_request(&mut session, "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(session.execute("print(1)").output(), "1");
    assert!(session.journal("crm").calls("refund").is_empty());
}

// contract: A2
#[test]
fn a_parked_program_waits_for_its_own_state_only() {
    let mut session = confirming().modern().start();
    let code = "print(await mcp__crm__refund(amount=1))";
    let id = session.send_tool_call("execute_program", json!({"code": code}));
    let (_, state) = question_of(&session.answer(id)).expect("a question");
    let forged = call_again(
        &mut session,
        code,
        &json!("forged"),
        json!({"decision": choice("once")}),
    );
    let forged = ToolResult::of(forged);
    assert!(
        forged.is_error && forged.text().contains("Nothing was run again"),
        "{forged:?}"
    );
    let answer = call_again(&mut session, code, &state, json!({}));
    let error = ToolResult::of(answer).error();
    assert!(
        error.contains("the client came back without an answer"),
        "{error}"
    );
    let answer = call_again(
        &mut session,
        code,
        &state,
        json!({"decision": choice("once")}),
    );
    assert!(
        ToolResult::of(answer)
            .text()
            .contains("Nothing was run again"),
        "it has ended"
    );
    assert!(session.journal("crm").calls("refund").is_empty());
}

// contract: A2 S12
#[test]
fn at_most_eight_programs_are_parked_and_none_outlives_the_session() {
    let mut session = confirming().modern().execution("max_programs", 16).start();
    let code = "print(await mcp__crm__refund(amount=1))";
    let mut states = Vec::new();
    for _ in 0..8 {
        let id = session.send_tool_call("execute_program", json!({"code": code}));
        states.push(question_of(&session.answer(id)).expect("a question").1);
    }
    let ninth = session.execute(code).error();
    assert!(ninth.contains("8 programs are already waiting"), "{ninth}");
    let answer = call_again(
        &mut session,
        code,
        &states[3],
        json!({"decision": choice("once")}),
    );
    assert_eq!(ToolResult::of(answer).output(), "{'amount': 1}");
    let id = session.send_tool_call("execute_program", json!({"code": code}));
    assert!(
        question_of(&session.answer(id)).is_some(),
        "there is room again"
    );
    // Seven are still waiting.
    session.close();
}

/// Claude Code's settings of one project.
// contract: A2 B1
#[test]
fn a_program_that_goes_on_after_a_question_takes_one_place_only() {
    let mut session = confirming()
        .era(MODERN)
        .execution("max_programs", 2)
        .start();
    let code = "await mcp__crm__refund()\nawait mcp__crm__slow()";
    let id = session.send_program(code);
    let asked = session.answer(id);
    let (_, state) = question_of(&asked).unwrap_or_else(|| panic!("asks: {asked}"));
    let going_on = json!({
        "name": "execute_program",
        "arguments": {"code": code},
        "inputResponses": {"decision": choice("once")},
        "requestState": state,
    });
    let going_on = session.send("tools/call", going_on);
    let journal = session.journal("crm");
    journal.wait_until(|journal| journal.calls("slow").len() == 1, PATIENCE);
    assert_eq!(session.execute("print(1)").output(), "1");
    session.notify("notifications/cancelled", json!({"requestId": going_on}));
    session.close();
}

/// Every way in which a program may try to make a call of `refund`.
const WAYS: [(&str, &str); 6] = [
    ("name", "await mcp__crm__refund(n=1)"),
    ("alias", "f = mcp__crm__refund\nawait f(n=1)"),
    ("globals", "await globals()['mcp__crm__' + 'refund'](n=1)"),
    (
        "thread",
        "import asyncio, threading\nerrors = []\ndef work():\n    try:\n        asyncio.run(mcp__crm__refund(n=1))\n    except BaseException as error:\n        errors.append(error)\nthread = threading.Thread(target=work)\nthread.start()\nawait asyncio.to_thread(thread.join)\nraise errors[0]",
    ),
    (
        "gather",
        "import asyncio\nawait asyncio.gather(mcp__crm__refund(n=1), mcp__crm__refund(n=2))",
    ),
    (
        "frame",
        "import json, os, asyncio\nbody = json.dumps({'type': 'call', 'id': 7, 'tool': 'mcp__crm__refund', 'arguments': {'n': 1}}).encode()\nos.write(4, len(body).to_bytes(4, 'big') + body)\nawait mcp__crm__get()\nraise ToolError('forged')",
    ),
];

// contract: A1 A2 A3
#[test]
fn no_way_of_calling_goes_past_a_rule() {
    let deny = claude(LEGACY);
    settings(
        &deny,
        &json!({"permissions": {"deny": ["mcp__crm__refund"]}}),
    );
    let ask = claude(LEGACY).capabilities(json!({}));
    settings(&ask, &json!({"permissions": {"ask": ["mcp__crm__refund"]}}));
    let confirm = confirming().capabilities(json!({}));
    for (ptc, words) in [
        (deny, "forbids it"),
        (ask, "cannot ask"),
        (confirm, "cannot ask"),
    ] {
        let mut session = ptc.start();
        for (way, code) in WAYS {
            let result = session.execute(code);
            assert!(result.is_error, "{way}: {}", result.text());
            let calls = result.calls();
            let refund = calls
                .iter()
                .find(|call| call["tool"] == "mcp__crm__refund")
                .unwrap();
            let error = refund["error"].as_str().unwrap();
            assert!(error.contains(words), "{way}: {error}");
        }
        assert!(session.journal("crm").calls("refund").is_empty(), "{words}");
    }
    // The first call of each program is spent already.
    let mut session = Ptc::new()
        .stdio("crm", crm())
        .set("tools", "limits", json!({"mcp__crm__ref*": 1}))
        .start();
    for (way, code) in WAYS {
        let result = session.execute(&format!("await mcp__crm__refund(n=0)\n{code}"));
        assert!(result.is_error, "{way}: {}", result.text());
        let calls = result.calls();
        let error = calls[1]["error"].as_str().unwrap();
        assert!(
            error.contains("tools.limits allows 1 call of 'mcp__crm__ref*'"),
            "{way}: {error}"
        );
    }
    assert_eq!(session.journal("crm").calls("refund").len(), WAYS.len());
}

// contract: A3
#[test]
fn limits_count_what_was_sent_in_one_program() {
    let mut session = Ptc::new()
        .stdio("crm", crm())
        .set(
            "tools",
            "limits",
            json!({"mcp__crm__refund": 2, "mcp__crm__*": 4}),
        )
        .start();
    let code = "
async def attempt(tool, **arguments):
    try:
        await tool(**arguments)
        print('ok')
    except ToolError as error:
        print(str(error).split('refused: ')[1])
for _ in range(3):
    await attempt(mcp__crm__refund)
for _ in range(3):
    await attempt(mcp__crm__get)
";
    for _ in 0..2 {
        assert_eq!(
            session.execute(code).output(),
            "ok\nok\ntools.limits allows 2 calls of 'mcp__crm__refund' in a program\n\
             ok\nok\ntools.limits allows 4 calls of 'mcp__crm__*' in a program"
        );
    }
    session.close();
    // What the person refused was not sent, and does not count.
    let mut session = confirming()
        .set("tools", "limits", json!({"mcp__crm__refund": 1}))
        .start();
    let answers = [choice("no"), choice("once")];
    let (result, _) = converse(&mut session, LEGACY, THREE_REFUNDS, &answers);
    let output = result.output();
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].ends_with("the person said no"), "{output}");
    assert_eq!(lines[1], "ok 2");
    assert!(lines[2].contains("tools.limits allows 1 call"), "{output}");
}

// contract: A4
#[test]
fn a_run_that_timed_out_or_was_cancelled_says_what_had_happened() {
    let code = "
import asyncio
await mcp__crm__get()
await mcp__crm__refund()
await asyncio.gather(mcp__crm__slow(), mcp__crm__slow())
";
    let ledger = "Tool calls before the error: 2 answered, 2 in doubt, 0 not sent.\n\
                  May have changed something: mcp__crm__refund ×1.\n\
                  In doubt (sent, no answer; check before repeating): mcp__crm__slow ×2.";
    let text = Ptc::new()
        .stdio("crm", crm())
        .execution("timeout_seconds", 5)
        .execute(code);
    let text = text.text();
    assert!(
        text.contains("\nTimeoutError: Execution exceeded 5s limit\n"),
        "{text}"
    );
    assert!(text.contains(&format!("\n\n{ledger}")), "{text}");

    let ptc = Ptc::new().stdio("crm", crm());
    let program = ptc.folder().join("program.py");
    std::fs::write(&program, code).unwrap();
    let journal = mock_servers::Journal::at(ptc.folder().join("crm.journal"));
    let mut process = ptc
        .command()
        .arg("run")
        .arg(&program)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    journal.wait_until(|journal| journal.calls("slow").len() == 2, PATIENCE);
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &process.id().to_string()])
        .status();
    assert!(interrupted.unwrap().success());
    let mut said = String::new();
    process
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(130));
    assert!(
        said.contains("Cancelled: the request was cancelled"),
        "{said}"
    );
    assert!(said.contains(ledger), "{said}");
}

// contract: S11
#[test]
fn a_person_can_watch_a_program() {
    for era in [LEGACY, MODERN] {
        let mut session = Ptc::new().stdio("crm", crm()).era(era).start();
        let code = "await mcp__crm__get()\nawait mcp__crm__slow(ms=1500)";
        let params = json!({
            "name": "execute_program",
            "arguments": {"code": code},
            "_meta": {"progressToken": "t"},
        });
        let id = session.send("tools/call", params);
        session.answer(id);
        let messages: Vec<&str> = session
            .heard()
            .iter()
            .filter(|message| message["method"] == "notifications/progress")
            .map(|message| {
                assert_eq!(message["params"]["progressToken"], "t");
                message["params"]["message"].as_str().unwrap()
            })
            .collect();
        let last = messages.last().expect("progress");
        assert!(
            last.starts_with("2 calls · mcp__crm__slow · "),
            "{era}: {messages:?}"
        );
    }
}
