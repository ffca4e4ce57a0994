//! What a client meets: three tools over stdio, in both protocol eras, whatever it sends and
//! however its servers are (section S).

use mock_servers::{At, Event, Fault, Scenario, Tool};
use serde_json::{Value, json};

use crate::processes::LINUX;
use crate::support::{LEGACY, MODERN, PATIENCE, Ptc, Session, ToolResult};

const VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    MODERN,
];

const ERAS: [&str; 2] = [LEGACY, MODERN];

fn echo() -> Scenario {
    Scenario::new().tool(Tool::echo("echo"))
}

/// A server that answers no opening, so that connecting to it goes on.
fn stuck() -> Scenario {
    echo().always(At::Handshake, Fault::hang())
}

/// Ends the attempt to connect to a mock, by killing it.
fn kill(session: &Session, server: &str) {
    let journal = session.journal(server);
    journal.wait_until(|journal| journal.starts() > 0, PATIENCE);
    let pid = journal.of(Event::Start).last().unwrap().pid;
    kill_pid(pid);
}

fn kill_pid(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn tools(session: &mut Session) -> Vec<Value> {
    let answer = session.request("tools/list", json!({}));
    answer["result"]["tools"].as_array().unwrap().clone()
}

// contract: S1 D4
#[test]
fn stdout_carries_messages_only_and_the_log_goes_to_stderr() {
    let noisy = echo().always(At::Call, Fault::noise(&["a line that is no message"]));
    let mut session = Ptc::new()
        .env("PTC_MCP_LOG", "trace")
        .stdio("noisy", noisy)
        .start();
    let result = session.execute("import sys\nsys.stderr.write('x')\nawait mcp__noisy__echo(a=1)");
    assert!(!result.is_error, "{}", result.text());
    let log = session.log();
    assert!(log.contains("a line that is no message"), "{log}");
    // The harness reads every line as JSON, and no message but the answers was owed.
    assert_eq!(session.finish(), Vec::<Value>::new());
}

// contract: S2 S8
#[test]
fn three_tools_are_offered_in_order_in_every_version() {
    for version in VERSIONS {
        let mut session = Ptc::new()
            .execution("timeout_seconds", 7.5)
            .execution("max_tool_calls", 41)
            .era(version)
            .start();
        let tools = tools(&mut session);
        let names: Vec<&str> = tools.iter().filter_map(|t| t["name"].as_str()).collect();
        assert_eq!(
            names,
            ["execute_program", "inspect_tool", "list_callable_tools"],
            "{version}"
        );
        for (tool, reads_only) in tools.iter().zip([false, true, true]) {
            let description = tool["description"].as_str().unwrap();
            assert!(description.chars().count() <= 2000);
            assert_eq!(tool["annotations"]["readOnlyHint"], reads_only);
            assert_eq!(tool["annotations"]["openWorldHint"], !reads_only);
            assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true);
        }
        let execute = &tools[0];
        let claimed = execute["_meta"]["anthropic/maxResultSizeChars"].as_u64();
        assert!(claimed.unwrap() >= 65536);
        for number in ["7.5 s", "41 tool calls"] {
            assert!(execute["description"].as_str().unwrap().contains(number));
        }
        session.close();
    }
}

// contract: S3 C7
#[test]
fn the_list_is_one_sorted_json_array() {
    for version in ERAS {
        let mut session = Ptc::new()
            .stdio(
                "zoo",
                Scenario::new().tool(Tool::echo("b")).tool(Tool::echo("a")),
            )
            .stdio("my-files", Scenario::new().tool(Tool::echo("read.all")))
            .era(version)
            .start();
        let list = session.call_tool("list_callable_tools", json!({}));
        assert_eq!(
            list.texts,
            [r#"["mcp__my_files__read_all","mcp__zoo__a","mcp__zoo__b"]"#]
        );
        assert!(!list.is_error && list.structured.is_none());
        session.close();
    }
}

// contract: S3
#[test]
fn a_second_text_names_each_server_that_is_down() {
    let mut session = Ptc::new()
        .server(json!({"name": "gone", "command": "/nonexistent/server"}))
        .server(json!({"name": "quits", "command": "/bin/sh", "args": ["-c", "echo no licence >&2; exit 3"]}))
        .stdio("up", echo())
        .start();
    let list = session.call_tool("list_callable_tools", json!({}));
    assert_eq!(list.text(), r#"["mcp__up__echo"]"#);
    assert!(!list.is_error);
    insta::assert_snapshot!(list.texts[1], @"
    Server 'gone' is not connected (its command '/nonexistent/server' does not exist); it is being reconnected.
    Server 'quits' is not connected (the server exited with status 3; its last words: no licence); it is being reconnected.
    The tools of a server that is not connected are not in the list.
    ");
    assert_eq!(list.texts.len(), 2);
    session.close();
}

// contract: S4 C7
#[test]
fn a_tool_is_shown_as_its_server_describes_it() {
    let schema =
        json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
    let scenario = Scenario::new()
        .tool(
            Tool::echo("get-user")
                .description("Finds a user.")
                .input_schema(schema.clone())
                .output_schema(schema.clone()),
        )
        .tool(Tool::echo("ping"));
    let mut session = Ptc::new().stdio("hr", scenario).start();
    let mut inspect = |name: &str| {
        let shown = session.call_tool("inspect_tool", json!({"tool_name": name}));
        assert!(!shown.is_error && shown.structured.is_none() && shown.texts.len() == 1);
        serde_json::from_str::<Value>(shown.text()).unwrap()
    };
    let user = inspect("mcp__hr__get_user");
    assert_eq!(user["name"], "mcp__hr__get_user");
    assert_eq!(user["description"], "Finds a user.");
    assert_eq!(user["inputSchema"], schema);
    assert_eq!(user["outputSchema"], schema);
    assert!(user.get("note").is_none());
    let ping = inspect("mcp__hr__ping");
    assert_eq!(ping["outputSchema"], Value::Null);
    assert!(ping["note"].as_str().unwrap().contains("script"), "{ping}");
    session.close();
}

// contract: S4
#[test]
fn an_unknown_tool_is_told_from_one_whose_server_is_down() {
    let mut session = Ptc::new()
        .server(json!({"name": "gone", "command": "/nonexistent/server"}))
        .stdio(
            "github",
            Scenario::new()
                .tool(Tool::echo("list_issues"))
                .tool(Tool::echo("list_commits")),
        )
        .start();
    let mut texts = Vec::new();
    for name in [
        "mcp__github__list_issue",
        "list_issues",
        "weather",
        "mcp__gone__anything",
    ] {
        let shown = session.call_tool("inspect_tool", json!({"tool_name": name}));
        assert!(shown.is_error);
        assert!(
            shown
                .text()
                .starts_with(&format!("[Tool not found] '{name}'"))
        );
        texts.push(shown.text().to_owned());
    }
    insta::assert_snapshot!(texts.join("\n"), @"
    [Tool not found] 'mcp__github__list_issue'. Closest: mcp__github__list_issues, mcp__github__list_commits.
    [Tool not found] 'list_issues'. Closest: mcp__github__list_issues, mcp__github__list_commits.
    [Tool not found] 'weather'. list_callable_tools gives the names that exist.
    [Tool not found] 'mcp__gone__anything': server 'gone' is not connected (its command '/nonexistent/server' does not exist); it is being reconnected, retry shortly.
    ");
    session.close();
}

/// Whether the tool declares a structured result, and whether a run carries one.
fn structure(session: &mut Session) -> (bool, bool) {
    let declared = tools(session)[0].get("outputSchema").is_some();
    let result = session.execute("await mcp__s__echo(a=1)");
    assert!(!result.is_error, "{}", result.text());
    assert_eq!(
        result.calls().len(),
        1,
        "the calls are in _meta in any case"
    );
    let failed = session.execute("await mcp__s__echo(a=1)\n1 / 0");
    assert!(failed.is_error);
    assert_eq!(failed.calls().len(), 1);
    assert_eq!(failed.structured.is_some(), result.structured.is_some());
    (declared, result.structured.is_some())
}

const SHOWING: [&str; 3] = ["claude-code", "codex-mcp-client", "Visual Studio Code"];
const OTHERS: [&str; 3] = ["claude-ai", "mcp-inspector", "not codex"];

// contract: S7 S6
#[test]
fn structure_is_kept_from_clients_that_show_it_to_the_model() {
    let settings = [
        ("auto", &SHOWING[..], false),
        ("auto", &OTHERS[..], true),
        ("always", &SHOWING[..], true),
        ("never", &OTHERS[..], false),
    ];
    for (setting, clients, sent) in settings {
        let ptc = || {
            Ptc::new()
                .execution("structured_content", setting)
                .stdio("s", echo())
        };
        // The older era knows one client a session, the newer one a client a request.
        let mut session = ptc().client(clients[0]).start();
        assert_eq!(
            structure(&mut session),
            (sent, sent),
            "{setting} {}",
            clients[0]
        );
        session.close();
        let mut session = ptc().modern().start();
        for client in clients {
            session.set_client(client);
            assert_eq!(structure(&mut session), (sent, sent), "{setting} {client}");
        }
        session.close();
    }
}

// contract: S7 S8
#[test]
fn auto_is_the_default_and_a_client_without_a_name_gets_structure() {
    let mut session = Ptc::new().stdio("s", echo()).client("codex").start();
    assert_eq!(structure(&mut session), (false, false));
    session.close();
    let mut session = Ptc::new().no_handshake().start();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let answer = session.request("tools/list", json!({"_meta": meta}));
    let execute = &answer["result"]["tools"][0];
    assert!(execute.get("outputSchema").is_some(), "{answer}");
    session.close();
}

// contract: S8
#[test]
fn every_version_is_served_with_the_same_results() {
    for version in VERSIONS {
        let mut session = Ptc::new().stdio("s", echo()).era(version).start();
        assert_eq!(session.callable(), ["mcp__s__echo"], "{version}");
        let result = session.execute("emit(await mcp__s__echo(n=1))");
        assert_eq!(result.emitted(), json!({"n": 1}), "{version}");
        let unknown = session.request("tools/call", json!({"name": "nonsense", "arguments": {}}));
        assert_eq!(unknown["error"]["code"], -32602, "{version}: {unknown}");
        session.close();
    }
}

// contract: S8
#[test]
fn a_subscription_of_the_newer_era_is_granted_and_closed_in_order() {
    let mut session = Ptc::new().modern().start();
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let id = session.send("subscriptions/listen", wanted);
    let acknowledged = session.next_message();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(tools(&mut session).len(), 3);
    let said = session.finish();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["id"], id);
}

// contract: S8
#[test]
fn whatever_a_client_sends_is_answered_and_service_goes_on() {
    for opened in [false, true] {
        for version in ERAS {
            let mut session = match opened {
                true => Ptc::new().era(version).start(),
                false => Ptc::new().no_handshake().start(),
            };
            // Notifications are owed nothing, early and unknown ones included.
            for method in [
                "notifications/initialized",
                "notifications/roots/list_changed",
                "notifications/cancelled",
                "notifications/nonsense",
            ] {
                session.notify(method, json!({"requestId": 77}));
            }
            session.send_line("");
            let long = "x".repeat(20 << 20);
            let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
            let cases: [(&[u8], i64, Value); 11] = [
                (b"nonsense", -32700, Value::Null),
                (b"{\"jsonrpc\":\"2.0\",\"id\":1,", -32700, Value::Null),
                (b"\xff\xfe\xfd", -32700, Value::Null),
                (
                    b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"\xff\"}",
                    -32700,
                    json!(2),
                ),
                (
                    br#"[{"jsonrpc":"2.0","id":3,"method":"ping"}]"#,
                    -32600,
                    Value::Null,
                ),
                (b"42", -32600, Value::Null),
                (
                    br#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#,
                    -32600,
                    json!("a"),
                ),
                (
                    br#"{"jsonrpc":"2.0","id":4,"method":"no/such"}"#,
                    -32601,
                    json!(4),
                ),
                (
                    br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7}}"#,
                    -32602,
                    json!(5),
                ),
                (
                    &format!(r#"{{"jsonrpc":"2.0","method":"ping","x":"{long}","id":6}}"#)
                        .into_bytes(),
                    -32600,
                    json!(6),
                ),
                (
                    &format!(
                        r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"x":{deep}}}}}"#
                    )
                    .into_bytes(),
                    -32600,
                    json!(7),
                ),
            ];
            for (line, code, id) in cases {
                session.send_bytes(line);
                session.send_bytes(b"\n");
                let answer = session.next_message();
                let shown = String::from_utf8_lossy(&line[..line.len().min(80)]);
                assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
                assert_eq!(answer["id"], id, "{shown}: {answer}");
            }
            session.send_line(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
            let pong = session.next_message();
            // The newer era has no ping.
            assert!(pong["id"] == "p" && (pong.get("result").is_some() || version == MODERN));
            if !opened {
                let params = json!({
                    "protocolVersion": LEGACY,
                    "capabilities": {},
                    "clientInfo": {"name": "x", "version": "1"},
                });
                let answer = session.request("initialize", params);
                assert_eq!(answer["result"]["protocolVersion"], LEGACY);
            }
            let answer = session.request("resources/list", json!({}));
            assert_eq!(answer["error"]["code"], -32601, "{answer}");
            assert_eq!(tools(&mut session).len(), 3);
            assert_eq!(session.finish(), Vec::<Value>::new());
        }
    }
}

// contract: S9 C1
#[test]
fn without_a_configuration_all_three_tools_answer() {
    let cases: [fn(Ptc) -> Ptc; 4] = [
        Ptc::without_config,
        |ptc| ptc.config_text(""),
        |ptc| ptc.config_text("# nothing yet\n"),
        |ptc| ptc.config_text("servers: []\n"),
    ];
    for configured in cases {
        let mut session = configured(Ptc::new()).start();
        let list = session.call_tool("list_callable_tools", json!({}));
        assert_eq!(list.texts, ["[]"]);
        let shown = session.call_tool("inspect_tool", json!({"tool_name": "mcp__a__b"}));
        assert!(shown.text().starts_with("[Tool not found] 'mcp__a__b'"));
        // Whether it may run is the sandbox's answer.
        let result = session.execute("print('hello')");
        assert!(result.text().starts_with("[Script "), "{}", result.text());
        session.close();
    }
}

// contract: S10 P2 P3
#[test]
fn nothing_waits_for_a_server_that_it_does_not_need() {
    for version in ERAS {
        let mut session = Ptc::new()
            .stdio("stuck", stuck())
            .stdio("up", echo())
            .era(version)
            .start();
        // The handshake is answered by now; these three wait for the stuck server, and the rest
        // does not wait for them.
        let list = session.send_tool_call("list_callable_tools", json!({}));
        let shown = session.send_tool_call("inspect_tool", json!({"tool_name": "mcp__stuck__x"}));
        let code = "try:\n    await mcp__stuck__x()\nexcept ToolError as e:\n    print(e)";
        let naming = session.send_tool_call("execute_program", json!({"code": code}));
        let reaching = "print(await server_status())";
        let reaching = session.send_tool_call("execute_program", json!({"code": reaching}));
        assert_eq!(tools(&mut session).len(), 3);
        let result = session.execute("print(await mcp__up__echo(a=1))");
        assert_eq!(result.output(), "{'a': 1}");
        assert_eq!(session.execute("print(1)").output(), "1");
        let shown_up = session.call_tool("inspect_tool", json!({"tool_name": "mcp__up__echo"}));
        assert!(!shown_up.is_error);
        for waiting in [list, shown, naming, reaching] {
            assert!(!session.is_answered(waiting));
        }
        // All of them wait for the first attempt's end, and no longer.
        kill(&session, "stuck");
        let list = session.answer(list);
        let texts = &list["result"]["content"];
        assert_eq!(texts[0]["text"], r#"["mcp__up__echo"]"#, "{list}");
        assert!(texts[1]["text"].as_str().unwrap().contains("'stuck'"));
        let shown = session.answer(shown);
        let text = shown["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("server 'stuck' is not connected"), "{text}");
        let named = session.answer(naming);
        let text = named["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("'stuck'") && text.contains("reconnect"),
            "{text}"
        );
        let reached = session.answer(reaching);
        let text = reached["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("'up': {'connected': True, 'tools': 1"),
            "{text}"
        );
        session.close();
    }
}

// contract: S10 D1 C2
#[test]
fn a_first_attempt_ends_at_connect_timeout() {
    let mut session = Ptc::new()
        .stdio_with("stuck", stuck(), json!({"connect_timeout_seconds": 0.5}))
        .start();
    let list = session.call_tool("list_callable_tools", json!({}));
    assert!(
        list.texts[1].contains("no connection within connect_timeout_seconds=0.5"),
        "{}",
        list.texts[1]
    );
    session.close();
}

// contract: S10
#[test]
fn waiting_for_servers_is_not_the_programs_time() {
    let late = echo().always(At::Handshake, Fault::slow(2_500));
    let mut session = Ptc::new()
        .execution("timeout_seconds", 2)
        .stdio("late", late)
        .start();
    let result = session.execute("print(await mcp__late__echo(a=1))");
    assert_eq!(result.output(), "{'a': 1}");
    session.close();
}

// contract: S11 D4 P8
#[test]
fn a_cancelled_request_kills_its_program_and_its_calls() {
    for version in ERAS {
        let mut session = Ptc::new()
            .execution("pool", 0)
            .stdio("s", echo().tool(Tool::sleep("sleep", 600_000)))
            .era(version)
            .start();
        let journal = session.journal("s");
        for (round, code) in [
            "await mcp__s__sleep()",
            "import asyncio\nasyncio.create_task(mcp__s__sleep())\nawait asyncio.sleep(0.2)\nwhile True: pass",
        ]
        .iter()
        .enumerate()
        {
            let id = session.send_tool_call("execute_program", json!({"code": code}));
            journal.wait_until(|journal| journal.calls("sleep").len() > round, PATIENCE);
            assert!(session.programs().len() == 1 || !LINUX);
            let request = json!({"requestId": id, "reason": "enough"});
            session.notify("notifications/cancelled", request);
            journal.wait_until(|journal| journal.cancelled().len() > round, PATIENCE);
            let call = journal.calls("sleep")[round].clone();
            assert_eq!(journal.cancelled()[round], call.id().unwrap());
            session.wait_for_no_program();
            // The server and its connection are as they were.
            assert_eq!(
                session.execute("print(await mcp__s__echo(a=1))").output(),
                "{'a': 1}"
            );
            assert!(!session.is_answered(id), "nobody waits for that answer");
        }
        assert_eq!(journal.starts(), 1);
        assert_eq!(session.finish(), Vec::<Value>::new());
    }
}

// contract: S11 S10
#[test]
fn a_request_that_waits_for_a_server_can_be_cancelled() {
    let mut session = Ptc::new()
        .execution("pool", 0)
        .stdio("stuck", stuck())
        .start();
    for (tool, arguments) in [
        ("list_callable_tools", json!({})),
        ("inspect_tool", json!({"tool_name": "mcp__stuck__x"})),
        ("execute_program", json!({"code": "await mcp__stuck__x()"})),
    ] {
        let id = session.send_tool_call(tool, arguments);
        session.notify("notifications/cancelled", json!({"requestId": id}));
    }
    assert_eq!(session.execute("print(1)").output(), "1");
    session.wait_for_no_program();
    assert_eq!(session.finish(), Vec::<Value>::new());
}

// contract: S11 B1
#[test]
fn a_program_that_waits_for_its_turn_can_be_cancelled() {
    let mut session = Ptc::new()
        .execution("max_programs", 1)
        .stdio("s", Scenario::new().tool(Tool::sleep("sleep", 600_000)))
        .start();
    let execute = |session: &mut Session, code: &str| {
        session.send_tool_call("execute_program", json!({"code": code}))
    };
    let running = execute(&mut session, "await mcp__s__sleep()");
    let journal = session.journal("s");
    journal.wait_until(|journal| !journal.calls("sleep").is_empty(), PATIENCE);
    let waiting = execute(&mut session, "print('never')");
    let next = execute(&mut session, "print('next')");
    session.notify("notifications/cancelled", json!({"requestId": waiting}));
    session.notify("notifications/cancelled", json!({"requestId": running}));
    let result = ToolResult::of(session.answer(next));
    assert_eq!(result.output(), "next");
    assert_eq!(session.finish(), Vec::<Value>::new());
}

// contract: S11
#[test]
fn progress_is_told_to_those_who_asked_and_grows() {
    for version in ERAS {
        let mut session = Ptc::new()
            .execution("pool", 0)
            .execution("max_tool_calls", 100_000)
            .stdio("s", Scenario::new().tool(Tool::sleep("sleep", 20)))
            .era(version)
            .start();
        let code = "while True:\n    await mcp__s__sleep()";
        let params = json!({
            "name": "execute_program",
            "arguments": {"code": code},
            "_meta": {"progressToken": "tok-1"},
        });
        let id = session.send("tools/call", params);
        let told: Vec<Value> = (0..4)
            .map(|_| {
                let message = session.next_message();
                assert_eq!(message["method"], "notifications/progress", "{message}");
                message["params"].clone()
            })
            .collect();
        session.notify("notifications/cancelled", json!({"requestId": id}));
        for pair in told.windows(2) {
            let [before, after] = pair else {
                unreachable!()
            };
            assert_eq!(after["progressToken"], "tok-1");
            let progress = |of: &Value| of["progress"].as_f64().unwrap();
            assert!(progress(before) < progress(after), "{told:?}");
        }
        let message = told[3]["message"].as_str().unwrap();
        assert!(message.contains("mcp__s__sleep"), "{message}");
        assert!(message.contains(" calls"), "{message}");
        // Nothing follows once the request is over; and who did not ask is told nothing.
        session.wait_for_no_program();
        let code = "for i in range(20):\n    await mcp__s__sleep()";
        let heard = session.heard().len();
        assert!(!session.execute(code).is_error);
        let late = &session.heard()[heard..];
        assert!(
            late.iter().all(|m| m["params"]["progressToken"] == "tok-1") && late.len() <= 1,
            "{late:?}"
        );
        session.close();
    }
}

// contract: S3 P5
#[test]
fn a_thousand_tools_are_listed_and_cost_a_program_nothing_that_shows() {
    let mut scenario = Scenario::new();
    for n in 0..1000 {
        scenario = scenario.tool(Tool::echo(&format!("tool_{n:04}")).description("One of many."));
    }
    let mut session = Ptc::new().stdio("big", scenario.page_size(100)).start();
    let names = session.callable();
    assert_eq!(names.len(), 1000);
    assert_eq!(names[999], "mcp__big__tool_0999");
    let code = "print(len(await list_callable_tools()), await mcp__big__tool_0500(a=1))";
    assert_eq!(session.execute(code).output(), "1000 {'a': 1}");
    session.close();
}

// contract: S8 D3
#[test]
fn answers_come_as_they_are_ready_and_none_is_lost() {
    let scenario = Scenario::new()
        .tool(Tool::sleep("sleep", 600_000))
        .tool(Tool::echo("echo"));
    let mut session = Ptc::new()
        .execution("max_programs", 4)
        .stdio("s", scenario)
        .start();
    let slow = session.send_program("await mcp__s__sleep()");
    let ids: Vec<u64> = (0..12)
        .map(|n| session.send_program(&format!("await mcp__s__echo()\nprint({n})")))
        .collect();
    for (n, id) in ids.into_iter().enumerate() {
        let result = ToolResult::of(session.answer(id));
        assert_eq!(result.output(), n.to_string());
    }
    // Who was asked first, and is not ready, held none of them up.
    assert!(!session.is_answered(slow));
    session.notify("notifications/cancelled", json!({"requestId": slow}));
    assert_eq!(session.finish(), Vec::<Value>::new());
}

// contract: S1 P1
#[cfg(target_os = "linux")]
#[test]
fn an_upgrade_underneath_a_running_server_does_not_stop_it() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("ptc-mcp");
    crate::support::copy_executable(crate::support::BINARY.as_ref(), &copy);
    let mut session = Ptc::new().binary(&copy).start();
    std::fs::remove_file(&copy).unwrap();
    std::fs::write(&copy, "another version").unwrap();
    assert_eq!(session.execute("print(1)").output(), "1");
    session.close();
}

// contract: S1 S5
#[test]
fn a_program_may_carry_megabytes_of_data() {
    let mut session = Ptc::new().start();
    let code = format!("rows = '{}'\nprint(len(rows))", "é".repeat(3 << 20));
    assert_eq!(session.execute(&code).output(), (3 << 20).to_string());
    session.close();
}
