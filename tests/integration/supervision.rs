//! Servers that come, go and come back: what is listed meanwhile, what becomes of calls in flight,
//! and what is no loss at all (sections D1 to D3).

use std::time::{Duration, Instant};

use mock_servers::fault::{
    Crash, DuplicateNames, EndlessPages, OddSchema, OddSchemas, OversizedShape, Reset, Violation,
    When,
};
use mock_servers::{At, Before, Fault, Mock, Reply, Rule, Scenario, Tool, Transport};
use serde_json::json;

use crate::peer::{Peer, attempts, over_every_transport};
use crate::support::{MODERN, PATIENCE, Ptc, Session};

fn echo() -> Scenario {
    Scenario::new().tool(Tool::echo("echo"))
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|listed| listed == name)
}

/// What `list_callable_tools` says of servers that are down.
fn missing(session: &mut Session) -> String {
    let listed = session.call_tool("list_callable_tools", json!({}));
    listed.texts.get(1).cloned().unwrap_or_default()
}

/// The server's answer to its only call never comes whole. Everything else goes on.
fn lose_a_call(transport: Transport, when: When) {
    let crash = Fault::Crash(Crash {
        when,
        stderr: vec!["Segmentation fault (not really)".to_owned()],
        ..Crash::default()
    });
    let shaky = Scenario::new()
        .tool(Tool::echo("act"))
        .fault(Rule::new(At::Call, crash).starts([1]));
    let (ptc, mut peer) = Peer::join(Ptc::new(), transport, "shaky", shaky);
    let mut session = ptc.stdio("well", echo()).start();
    session.wait_for_tools("both listed", |names| {
        names == ["mcp__shaky__act", "mcp__well__echo"]
    });

    peer.keep_down();
    let code = attempts([
        "mcp__shaky__act(n=1)",
        "mcp__well__echo(n=2)",
        "mcp__shaky__act(n=3)",
    ]);
    let output = session.execute(&code).output();
    let lines: Vec<&str> = output.lines().collect();
    let [lost, well, down] = lines[..] else {
        panic!("three lines: {output}");
    };
    assert!(
        lost.starts_with("ToolError: 'mcp__shaky__act' lost its connection to server 'shaky' ("),
        "{lost}"
    );
    assert!(
        lost.ends_with(
            "); the call may or may not have taken effect and was not repeated. The server is \
             being reconnected: retry shortly"
        ),
        "{lost}"
    );
    if transport == Transport::Stdio {
        let words =
            "the server exited with status 1; its last words: Segmentation fault (not really)";
        assert!(lost.contains(words), "{lost}");
    }
    assert_eq!(well, "{'n': 2}");
    let unavailable =
        "ToolError: 'mcp__shaky__act' is unavailable: server 'shaky' is not connected (";
    assert!(down.starts_with(unavailable), "nothing was sent: {down}");
    assert!(down.contains("retry shortly"), "{down}");

    session.wait_for_tools("gone from the list", |names| names == ["mcp__well__echo"]);
    let missing = missing(&mut session);
    assert!(
        missing.starts_with("Server 'shaky' is not connected ("),
        "{missing}"
    );
    assert!(missing.contains("it is being reconnected"), "{missing}");
    let inspected = session.call_tool("inspect_tool", json!({"tool_name": "mcp__shaky__act"}));
    assert!(inspected.is_error);
    assert!(
        inspected
            .text()
            .contains("server 'shaky' is not connected (")
    );
    let status = session.execute("print((await server_status())['shaky']['connected'])");
    assert_eq!(status.output(), "False");
    // A name of a server that is down is callable, and fails in the same words (P2).
    let late = session
        .execute(&attempts(["mcp__shaky__whatever(n=4)"]))
        .output();
    assert!(
        late.starts_with(
            "ToolError: 'mcp__shaky__whatever' is unavailable: server 'shaky' is not connected ("
        ),
        "{late}"
    );

    peer.revive();
    session.wait_for_tools("back", |names| has(names, "mcp__shaky__act"));
    let again = session.execute(&attempts(["mcp__shaky__act(n=5)"]));
    assert_eq!(again.output(), "{'n': 5}");
    session.close();
    let sent: Vec<_> = peer
        .journal()
        .calls("act")
        .iter()
        .map(|call| call.arguments()["n"].as_i64())
        .collect();
    assert_eq!(sent, [Some(1), Some(5)], "the lost call was not repeated");
    assert_eq!(peer.journal().starts(), 2);
}

/// The session of a server that was lost may take seconds to end. Meanwhile nothing is sent to it.
// contract: D1 D2
#[test]
fn a_server_is_down_while_its_session_is_still_being_ended() {
    let scenario = echo()
        .tool(Tool::new("act").reply(Reply::fault(Fault::Reset(Reset {}))))
        .always(At::SessionEnd, Fault::hang());
    let mock = Mock::http(scenario);
    let mut session = Ptc::new()
        .http("stubborn", &mock.url())
        .stdio("well", echo())
        .start();
    let code = attempts([
        "mcp__stubborn__act()",
        "mcp__well__echo(n=1)",
        "mcp__stubborn__echo(n=2)",
    ]);
    let output = session.execute(&code).output();
    let [lost, well, down] = output.lines().collect::<Vec<_>>()[..] else {
        panic!("three lines: {output}");
    };
    assert!(lost.contains("lost its connection"), "{lost}");
    assert_eq!(well, "{'n': 1}");
    assert!(
        down.starts_with(
            "ToolError: 'mcp__stubborn__echo' is unavailable: server 'stubborn' is not connected ("
        ),
        "{down}"
    );
    assert!(mock.journal().calls("echo").is_empty());
    session.close();
}

over_every_transport! {
    // contract: D1 D3 P3 P2 S3 S4
    fn a_call_in_flight_at_the_loss_fails_and_is_not_repeated(transport) {
        lose_a_call(transport, When::Before);
    }

    // contract: D2 D3
    fn half_an_answer_is_a_loss(transport) {
        lose_a_call(transport, When::Half);
    }

    // contract: D1 D3
    fn a_loss_between_calls_is_noticed(transport) {
        let scenario = echo().always(At::Call, Fault::crash_after()).healthy_on_restart();
        let (ptc, mut peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.start();
        session.wait_for_tools("connected", |names| has(names, "mcp__s__echo"));
        peer.keep_down();
        assert_eq!(session.execute("print(await mcp__s__echo(n=1))").output(), "{'n': 1}");
        session.wait_for_tools("gone", <[String]>::is_empty);
        peer.revive();
        session.wait_for_tools("back", |names| has(names, "mcp__s__echo"));
        session.close();
        assert_eq!(peer.journal().calls("echo").len(), 1);
    }

    // contract: D2 P3 R1 R9 R10
    fn what_a_live_server_answers_is_no_loss(transport) {
        let schema = json!({
            "type": "object",
            "properties": {"rows": {"type": "array"}},
            "required": ["rows"],
        });
        let violating = |name: &str, kind| {
            Tool::new(name).output_schema(schema.clone()).reply(
                Reply::structured(json!({"rows": []})).with_fault(Fault::schema_violation(kind)),
            )
        };
        let faulty = |name: &str, fault| Tool::new(name).reply(Reply::fault(fault));
        let large = |shape| Fault::oversized(1 << 20, shape);
        let scenario = Scenario::new()
            .tool(Tool::new("says_no").reply(Reply::tool_error("no such row")))
            .tool(Tool::new("rejects").reply(Reply::rpc_error(-32000, "not today")))
            .tool(faulty("rejects_too", Fault::error(-32602, "n is missing")))
            .tool(violating("wrong_type", Violation::WrongType))
            .tool(violating("no_structure", Violation::MissingStructured))
            .tool(violating("too_deep", Violation::ExtraNesting))
            .tool(faulty("large_text", large(OversizedShape::Text)))
            .tool(faulty("large_value", large(OversizedShape::Structured)))
            .tool(faulty("large_rows", large(OversizedShape::Rows)))
            .tool(Tool::echo("twice").reply(
                Reply::structured(json!({"n": 1})).with_fault(Fault::duplicate()),
            ))
            .tool(Tool::echo("echo"));
        let expected = [
            ("says_no", "ToolError: 'mcp__s__says_no' returned an error: no such row"),
            ("rejects", "ToolError: 'mcp__s__rejects' was rejected by server 's': not today (code -32000)"),
            ("rejects_too", "was rejected by server 's': n is missing (code -32602)"),
            ("wrong_type", "ToolError: 'mcp__s__wrong_type' returned a value that does not match its declared output schema: "),
            ("no_structure", "does not match its declared output schema: "),
            ("too_deep", "does not match its declared output schema: "),
            ("large_text", "more than max_tool_result_bytes=100000; "),
            ("large_value", "more than max_tool_result_bytes=100000; "),
            ("large_rows", "more than max_tool_result_bytes=100000; "),
            // The first of them is spent, the second belongs to nobody.
            ("twice", "{}"),
            ("twice", "{'n': 1}"),
            ("echo", "{'n': 1}"),
        ];
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.execution("max_tool_result_bytes", 100_000).start();
        let calls = expected.map(|(tool, _)| match tool {
            "echo" => "mcp__s__echo(n=1)".to_owned(),
            _ => format!("mcp__s__{tool}()"),
        });
        let output = session.execute(&attempts(calls)).output();
        // What a tool refused its arguments for is followed by its signature.
        let said: Vec<&str> = output
            .lines()
            .filter(|line| !line.starts_with("Signature: "))
            .collect();
        assert_eq!(said.len(), expected.len(), "{output}");
        for (line, (tool, text)) in said.into_iter().zip(expected) {
            assert!(line.contains(text), "{tool}: {line}");
        }
        session.close();
        assert_eq!((peer.journal().starts(), peer.handshakes()), (1, 1));
    }

    // contract: D2 D4 B1
    fn a_timeout_is_no_loss_and_is_cancelled_downstream(transport) {
        let faulty = |name: &str, fault| {
            Tool::new(name).replies([Reply::structured(json!({"late": true})).with_fault(fault)])
        };
        let scenario = Scenario::new()
            .tool(faulty("hangs", Fault::hang()))
            .tool(faulty("too_late", Fault::late()))
            .tool(faulty("slow", Fault::slow(600_000)))
            .tool(Tool::echo("echo"));
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.execution("tool_call_timeout_seconds", 2.5).start();
        let tools = ["hangs", "too_late", "slow"];
        let gathered = tools.map(|tool| format!("mcp__s__{tool}()")).join(", ");
        let code = format!(
            "import asyncio\n\
             for error in await asyncio.gather({gathered}, return_exceptions=True): print(repr(error))\n\
             print(await mcp__s__echo(n=1))"
        );
        let output = session.execute(&code).output();
        let mut expected: Vec<String> = tools
            .map(|tool| format!("ToolError(\"'mcp__s__{tool}' timed out after 2.5s\")"))
            .into();
        expected.push("{'n': 1}".to_owned());
        assert_eq!(output.lines().collect::<Vec<_>>(), expected);
        let journal = peer.journal();
        journal.wait_until(|journal| journal.cancelled().len() == tools.len(), PATIENCE);
        let mut called: Vec<String> = tools
            .iter()
            .flat_map(|tool| journal.calls(tool))
            .filter_map(|call| call.id().map(str::to_owned))
            .collect();
        let mut cancelled = journal.cancelled();
        called.sort();
        cancelled.sort();
        assert_eq!(cancelled, called);
        session.close();
        assert_eq!((journal.starts(), peer.handshakes()), (1, 1));
    }

    // contract: D2
    fn an_answer_to_nobody_is_no_loss(transport) {
        let scenario = Scenario::new()
            .tool(Tool::new("wrong_id").reply(Reply::text("x").with_fault(Fault::wrong_id())))
            .tool(Tool::echo("echo"));
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.execution("tool_call_timeout_seconds", 2.5).start();
        let output = session.execute(&attempts(["mcp__s__wrong_id()", "mcp__s__echo(n=1)"])).output();
        let expected = match transport {
            // This stream carries the answer to one request, and no more.
            Transport::Http => "ToolError: 'mcp__s__wrong_id' returned something that is not a valid result: \
                                the event stream holds the answer to another request",
            _ => "ToolError: 'mcp__s__wrong_id' timed out after 2.5s",
        };
        assert_eq!(output, format!("{expected}\n{{'n': 1}}"));
        session.close();
        assert_eq!((peer.journal().starts(), peer.handshakes()), (1, 1));
    }

    // contract: D1
    fn every_page_is_listed(transport) {
        let tools = ["a", "b", "c", "d", "e"];
        let scenario = tools.iter().fold(Scenario::new().page_size(2), |scenario, name| {
            scenario.tool(Tool::echo(name))
        });
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.start();
        assert_eq!(session.callable(), tools.map(|name| format!("mcp__s__{name}")));
        session.close();
        assert_eq!(peer.journal().method("tools/list").len(), 3);
    }

    // contract: D4
    fn a_changed_list_is_listed_anew(transport) {
        let scenario = Scenario::new()
            .tool(Tool::echo("stays"))
            .tool(Tool::echo("comes").appears_after(1))
            .tool(Tool::echo("goes").vanishes_after(1));
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.start();
        assert_eq!(session.callable(), ["mcp__s__goes", "mcp__s__stays"]);
        if transport == Transport::Http {
            let listens = |entry: &mock_servers::Entry| entry.http.as_ref().is_some_and(|http| http.method == "GET");
            peer.journal().wait_until(|journal| journal.entries().iter().any(listens), PATIENCE);
        }
        session.execute("await mcp__s__stays()").output();
        session.wait_for_tools("changed", |names| names == ["mcp__s__comes", "mcp__s__stays"]);
        let gone = session.execute(&attempts(["mcp__s__stays(n=1)"]));
        assert_eq!(gone.output(), "{'n': 1}");
        session.close();
        assert_eq!((peer.journal().starts(), peer.handshakes()), (1, 1));
    }

    // contract: D2 D4
    fn a_changed_list_that_cannot_be_had_is_no_loss(transport) {
        let changing = Reply::text("ok").before(Before::ListChanged(Default::default()));
        let scenario = Scenario::new()
            .tool(Tool::new("act").reply(changing))
            .fault(Rule::new(At::ToolsList, Fault::error(-32000, "not now")).from(2));
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.start();
        session.wait_for_tools("listed", |names| names == ["mcp__s__act"]);
        if transport == Transport::Http {
            let listens = |entry: &mock_servers::Entry| entry.http.as_ref().is_some_and(|http| http.method == "GET");
            peer.journal().wait_until(|journal| journal.entries().iter().any(listens), PATIENCE);
        }
        // Each call announces a change, until one of them was heard.
        while peer.journal().method("tools/list").len() < 2 {
            assert_eq!(session.execute(&attempts(["mcp__s__act()"])).output(), "'ok'");
        }
        assert_eq!(session.execute(&attempts(["mcp__s__act()"])).output(), "'ok'");
        assert_eq!(session.callable(), ["mcp__s__act"], "the old list stands");
        session.close();
        assert_eq!((peer.journal().starts(), peer.handshakes()), (1, 1));
    }

    // contract: D1
    fn a_server_that_is_not_there_at_first_is_connected_later(transport) {
        let (ptc, mut peer) = Peer::join(Ptc::new(), transport, "s", echo());
        peer.leave();
        let mut session = ptc.start();
        assert_eq!(session.callable(), [""; 0]);
        let reason = match transport {
            Transport::Stdio => "the server exited with status 7; its last words: kept down by the test",
            _ => "the server cannot be reached: Connection refused",
        };
        let missing = missing(&mut session);
        assert!(missing.contains(reason), "{missing}");
        peer.revive();
        session.wait_for_tools("connected", |names| has(names, "mcp__s__echo"));
        session.close();
    }

    // contract: D1
    fn lists_that_never_end_or_repeat_themselves_are_cut(transport) {
        let pages = |endless| echo().always(At::ToolsList, Fault::EndlessPages(endless));
        let (ptc, same) = Peer::join(Ptc::new(), transport, "same", pages(EndlessPages { same_cursor: true, with_tools: false }));
        let (ptc, fresh) = Peer::join(ptc, transport, "fresh", pages(EndlessPages { same_cursor: false, with_tools: false }));
        let twice = echo().always(At::ToolsList, Fault::DuplicateNames(DuplicateNames {}));
        let (ptc, _twice) = Peer::join(ptc, transport, "twice", twice);
        let mut session = ptc.start();
        let names = session.wait_for_tools("all three", |names| names.len() == 3);
        assert_eq!(names, ["mcp__fresh__echo", "mcp__same__echo", "mcp__twice__echo"]);
        let code = attempts(["mcp__same__echo(n=1)", "mcp__fresh__echo(n=2)", "mcp__twice__echo(n=3)"]);
        assert_eq!(session.execute(&code).output(), "{'n': 1}\n{'n': 2}\n{'n': 3}");
        let log = session.log();
        assert!(log.contains("a page cursor came twice"), "{log}");
        assert!(log.contains("more than 1000 pages"), "{log}");
        session.close();
        assert_eq!((same.handshakes(), fresh.handshakes()), (1, 1));
        assert_eq!(same.journal().method("tools/list").len(), 2);
    }

    // contract: D1 R9
    fn odd_schemas_cost_neither_the_tool_nor_the_server(transport) {
        let kinds = [
            OddSchema::RemoteRef, OddSchema::Recursive, OddSchema::NotASchema, OddSchema::DanglingRef,
            OddSchema::BadPattern, OddSchema::Draft4, OddSchema::Draft6, OddSchema::Draft7,
            OddSchema::Draft2019, OddSchema::Draft2020,
        ];
        let mut ptc = Ptc::new();
        let mut peers = Vec::new();
        for (number, kind) in kinds.into_iter().enumerate() {
            let odd = |input| Fault::OddSchemas(OddSchemas { kind, input });
            // The first list has odd output schemas, a later one odd input schemas.
            let scenario = Scenario::new()
                .tool(Tool::new("get").reply(Reply::structured(json!({"n": 1})).before(Before::ListChanged(Default::default()))))
                .fault(Rule::new(At::ToolsList, odd(false)).nth(1))
                .fault(Rule::new(At::ToolsList, odd(true)).from(2));
            let (next, peer) = Peer::join(ptc, transport, &format!("s{number}"), scenario);
            ptc = next;
            peers.push(peer);
        }
        let mut session = ptc.start();
        let names = session.wait_for_tools("all listed", |names| names.len() == kinds.len());
        let inspected = names.iter().map(|name| format!("inspect_tool(tool_name='{name}')"));
        let calls = names.iter().map(|name| format!("{name}()"));
        let code = attempts(calls) + &attempts(inspected);
        let output = session.execute(&code).output();
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines[..kinds.len()], ["{'n': 1}"; 10], "{output}");
        assert!(lines[kinds.len()..].iter().all(|line| line.starts_with("{'name': ")), "{output}");
        session.close();
        for peer in &peers {
            assert_eq!(peer.handshakes(), 1);
        }
    }
}

// contract: D4
#[test]
fn a_server_that_announces_a_change_whenever_it_is_asked_is_asked_now_and_then() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let scenario = echo().always(At::ToolsList, Fault::noise(&[changed]));
    let started = Instant::now();
    let mut session = Ptc::new().stdio("s", scenario).start();
    let journal = session.journal("s");
    // The first, one at once, one after a second, one after two more.
    journal.wait_until(|journal| journal.method("tools/list").len() >= 4, PATIENCE);
    assert!(started.elapsed() >= Duration::from_secs(3));
    assert_eq!(session.callable(), ["mcp__s__echo"]);
    session.close();
}

/// Over the era without a handshake, a subscription brings the news.
// contract: D4 D1
#[test]
fn a_changed_list_is_listed_anew_in_the_stateless_era() {
    for transport in [Transport::Stdio, Transport::Http] {
        let scenario = Scenario::new()
            .versions([MODERN])
            .tool(Tool::echo("stays"))
            .tool(Tool::echo("comes").appears_after(1));
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.start();
        assert_eq!(session.callable(), ["mcp__s__stays"]);
        let subscribed =
            |journal: &mock_servers::Journal| !journal.method("subscriptions/listen").is_empty();
        peer.journal().wait_until(subscribed, PATIENCE);
        session.execute("await mcp__s__stays()").output();
        session.wait_for_tools("changed", |names| {
            names == ["mcp__s__comes", "mcp__s__stays"]
        });
        session.close();
    }
}

// contract: D1 C2 S3
#[test]
fn each_server_that_cannot_be_connected_says_why() {
    let dying = Scenario::new().always(
        At::Start,
        Fault::Crash(Crash {
            exit_code: Some(3),
            stderr: vec![
                "Traceback (most recent call last):".to_owned(),
                "ModuleNotFoundError: No module named 'psycopg'".to_owned(),
            ],
            ..Crash::default()
        }),
    );
    let ancient: Scenario = Scenario {
        protocol: mock_servers::scenario::Protocol {
            answer: Some("1999-01-01".to_owned()),
            ..Default::default()
        },
        ..echo()
    };
    let soon = json!({"connect_timeout_seconds": 0.7});
    let deaf = Fault::Hang(mock_servers::fault::Hang { deaf: true });
    let ptc = Ptc::new()
        .server(json!({"name": "absent", "command": "no-such-server"}))
        .server(json!({"name": "elsewhere", "command": "/no/such/server"}))
        .stdio("dying", dying)
        .stdio_with(
            "silent",
            echo().always(At::Handshake, Fault::hang()),
            soon.clone(),
        )
        .stdio_with("deaf", echo().always(At::Start, deaf), soon.clone())
        .stdio_with(
            "listless",
            echo().always(At::ToolsList, Fault::hang()),
            soon,
        )
        .stdio(
            "refusing",
            echo().always(At::ToolsList, Fault::error(-32000, "come back later")),
        )
        .stdio(
            "unwilling",
            echo().always(At::Handshake, Fault::error(-32000, "licence expired")),
        )
        .stdio("ancient", ancient)
        .stdio("well", echo());
    let mut session = ptc.start();
    // The others do not wait for the slow ones to fail.
    assert_eq!(
        session
            .execute("print(await mcp__well__echo(n=1))")
            .output(),
        "{'n': 1}"
    );
    let listed = session.call_tool("list_callable_tools", json!({}));
    assert_eq!(listed.texts[0], r#"["mcp__well__echo"]"#);
    for (server, reason) in [
        (
            "absent",
            "its command 'no-such-server' was not found in PATH; ",
        ),
        ("elsewhere", "its command '/no/such/server' does not exist"),
        (
            "dying",
            "the server exited with status 3; its last words: Traceback (most recent call last): | \
             ModuleNotFoundError: No module named 'psycopg'",
        ),
        ("silent", "no connection within connect_timeout_seconds=0.7"),
        ("deaf", "no connection within connect_timeout_seconds=0.7"),
        (
            "listless",
            "no connection within connect_timeout_seconds=0.7",
        ),
        ("refusing", "tools/list: come back later (code -32000)"),
        (
            "unwilling",
            "the server refused to initialize: licence expired (code -32000)",
        ),
        (
            "ancient",
            "the server speaks protocol version '1999-01-01', which is none of 2024-11-05, ",
        ),
    ] {
        let start = format!("Server '{server}' is not connected ({reason}");
        assert!(
            listed.texts[1].contains(&start),
            "{start}\n{}",
            listed.texts[1]
        );
    }
    assert!(!listed.texts[1].contains("'well'"), "{}", listed.texts[1]);
    session.close();
}

// contract: D1
#[test]
fn attempts_go_on_with_growing_pauses() {
    let scenario = echo().fault(Rule::new(At::Start, Fault::crash()).until(3));
    let mut session = Ptc::new().stdio("s", scenario).start();
    session.wait_for_tools("connected", |names| has(names, "mcp__s__echo"));
    let starts: Vec<u64> = session
        .journal("s")
        .of(mock_servers::Event::Start)
        .iter()
        .map(|entry| entry.time_ms)
        .collect();
    session.close();
    let pauses: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), 3);
    // Jitter takes off at most half, and nothing of the first second.
    for (pause, least) in pauses.into_iter().zip([1000, 1000, 2000]) {
        assert!(pause >= least, "{pause} ms where {least} are due");
    }
}

// contract: D1
#[test]
fn a_broken_server_holds_up_no_other() {
    let broken = Scenario::new()
        .tool(Tool::echo("act"))
        .always(At::Call, Fault::crash());
    let mut session = Ptc::new()
        .stdio("stuck", echo().always(At::Handshake, Fault::hang()))
        .stdio("broken", broken)
        .stdio("well", echo())
        .start();
    // Calls of the sound server run on while the other one dies under its own.
    let code = "
import asyncio
async def doomed():
    try:
        await mcp__broken__act()
    except ToolError as error:
        return 'lost its connection' in str(error) or str(error)
async def sound():
    return [(await mcp__well__echo(n=n))['n'] for n in range(50)] == list(range(50))
print(await asyncio.gather(doomed(), sound()))
";
    assert_eq!(session.execute(code).output(), "[True, True]");
    // The first attempt of the stuck one has not even ended.
    assert_eq!(session.journal("stuck").starts(), 1);
    assert!(!session.log().contains("no connection within"));
    session.close();
}

// contract: D1 D3
#[test]
fn a_web_server_that_goes_away_and_comes_back_is_connected_again() {
    for (transport, mut mock) in [
        ("http", Mock::http(echo())),
        ("http", Mock::http(echo().json_answers().without_sessions())),
        ("http", Mock::http(echo().versions([MODERN]))),
        ("sse", Mock::sse(echo())),
    ] {
        let entry = json!({"name": "s", "transport": transport, "url": mock.url()});
        let mut session = Ptc::new().server(entry).start();
        for round in 1..=2 {
            session.wait_for_tools("connected", |names| has(names, "mcp__s__echo"));
            let code = format!("print(await mcp__s__echo(n={round}))");
            assert_eq!(session.execute(&code).output(), format!("{{'n': {round}}}"));
            mock.stop();
            let lost = session.execute(&attempts(["mcp__s__echo(n=0)"])).output();
            assert!(lost.starts_with("ToolError: 'mcp__s__echo' "), "{lost}");
            assert!(lost.contains("being reconnected"), "{lost}");
            session.wait_for_tools("gone", <[String]>::is_empty);
            mock.start();
        }
        session.wait_for_tools("connected", |names| has(names, "mcp__s__echo"));
        session.close();
        assert_eq!(mock.journal().calls("echo").len(), 2, "{transport}");
    }
}

/// A process may die of a signal as well.
// contract: D1 D4
#[test]
fn the_reason_names_the_signal() {
    let killed = Fault::Crash(Crash {
        signal: Some(mock_servers::fault::CrashSignal::Kill),
        ..Crash::default()
    });
    let scenario = echo().always(At::Call, killed);
    let output = Ptc::new()
        .stdio("s", scenario)
        .execute(&attempts(["mcp__s__echo()"]))
        .output();
    assert!(
        output.contains("(the server was killed by signal 9)"),
        "{output}"
    );
}

/// The pause is short at first, so that a client need not wait long.
// contract: D1
#[test]
fn a_lost_server_is_back_within_seconds() {
    let scenario = echo().always(At::Call, Fault::crash()).healthy_on_restart();
    let mut session = Ptc::new().stdio("s", scenario).start();
    session.execute(&attempts(["mcp__s__echo()"])).output();
    let journal = session.journal("s");
    journal.wait_until(|journal| journal.starts() == 2, Duration::from_secs(20));
    session.close();
}
