//! What the HTTP transports owe: sessions, redirects, authorization, resumption, and a defined end to
//! every way in which HTTP can answer badly (sections D2 and D6).

use std::collections::BTreeSet;

use mock_servers::fault::{
    ContentType, CutBody, CutStream, EndlessKind, EndlessStream, LoseSession, Reset, SlowHeaders,
    TlsAbsent, TlsAnswer,
};
use mock_servers::{At, Entry, Fault, Journal, Mock, Reply, Rule, Scenario, Tool};
use serde_json::{Value, json};

use crate::peer::attempts;
use crate::support::{PATIENCE, Ptc};

fn echo() -> Scenario {
    Scenario::new().tool(Tool::echo("echo"))
}

/// A tool that answers with 1, under a fault.
fn faulty(name: &str, fault: Fault) -> Tool {
    Tool::new(name).reply(Reply::structured(json!({"n": 1})).with_fault(fault))
}

/// Requests over HTTP of one method.
fn http_requests(journal: &Journal, method: &str) -> Vec<Entry> {
    let mut entries = journal.entries();
    entries.retain(|entry| {
        entry
            .http
            .as_ref()
            .is_some_and(|http| http.method == method)
    });
    entries
}

// contract: D2 D6
#[test]
fn a_bad_http_answer_fails_its_call_only() {
    let status = |code| Fault::status(code);
    let cases: Vec<(&str, Fault, &str)> = vec![
        (
            "bad_request",
            status(400),
            "was rejected by server 's': HTTP status 400: Bad Request",
        ),
        (
            "forbidden",
            status(403),
            "HTTP status 403: the server wants an authorization; set Authorization under headers of server 's'",
        ),
        (
            "unauthorized",
            Fault::status_with(401, &[("WWW-Authenticate", "Bearer realm=\"x\"")], ""),
            "HTTP status 401: the server wants an authorization of the scheme Bearer; set Authorization under headers of server 's'",
        ),
        ("conflict", status(409), "HTTP status 409: Conflict"),
        (
            "too_many",
            Fault::status_with(429, &[("Retry-After", "30")], "slow down"),
            "HTTP status 429: Too Many Requests; retry after 30",
        ),
        (
            "broken",
            Fault::status_with(500, &[], "<h1>Oops</h1>"),
            "HTTP status 500: Internal Server Error",
        ),
        (
            "explained",
            Fault::status_with(
                500,
                &[],
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"out of memory"}}"#,
            ),
            "was rejected by server 's': out of memory (code -32603)",
        ),
        ("bad_gateway", status(502), "HTTP status 502: Bad Gateway"),
        (
            "unavailable",
            Fault::status_with(503, &[("Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT")], ""),
            "HTTP status 503: Service Unavailable; retry after Wed, 21 Oct 2026 07:28:00 GMT",
        ),
        (
            "page",
            Fault::ContentType(ContentType::default()),
            "returned something that is not a valid result: the server answered with content of type 'text/html' instead of JSON or an event stream",
        ),
        (
            "see_other",
            Fault::status_with(303, &[("Location", "/mcp")], ""),
            "HTTP status 303: See Other",
        ),
        (
            "nowhere",
            status(307),
            "HTTP status 307: a redirect to nowhere",
        ),
        (
            "dripping_head",
            Fault::SlowHeaders(SlowHeaders { ms: 300 }),
            "{'n': 1}",
        ),
        (
            "noisy",
            Fault::noise(&["no event at all", ": comment", ""]),
            "{'n': 1}",
        ),
    ];
    for scenario in [Scenario::new(), Scenario::new().json_answers()] {
        let scenario = cases
            .iter()
            .filter(|(name, ..)| *name != "noisy" || scenario.http == Scenario::new().http)
            .fold(scenario.clone(), |scenario, (name, fault, _)| {
                scenario.tool(faulty(name, fault.clone()))
            });
        let tools: BTreeSet<String> = scenario
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        let mock = Mock::http(scenario);
        let mut session = Ptc::new().http("s", &mock.url()).start();
        let cases: Vec<_> = cases
            .iter()
            .filter(|(name, ..)| tools.contains(*name))
            .collect();
        let calls = cases.iter().map(|(name, ..)| format!("mcp__s__{name}()"));
        let output = session.execute(&attempts(calls)).output();
        assert_eq!(output.lines().count(), cases.len(), "{output}");
        for ((name, _, text), line) in cases.iter().zip(output.lines()) {
            assert!(line.ends_with(text), "{name}: {line}");
        }
        session.close();
        assert_eq!(mock.journal().method("initialize").len(), 1, "no reconnect");
        for (name, ..) in cases {
            assert_eq!(mock.journal().calls(name).len(), 1, "{name} was sent once");
        }
    }
}

// contract: D2 D3 D6
#[test]
fn a_connection_that_ends_before_the_answer_is_a_loss() {
    let cut = |orderly| {
        Fault::CutStream(CutStream {
            resumable: false,
            orderly,
        })
    };
    let cases = [
        (
            "reset",
            Fault::Reset(Reset {}),
            "the connection ended before the answer",
        ),
        ("cut_body", Fault::CutBody(CutBody::default()), "ended"),
        (
            "cut_chunk",
            Fault::CutBody(CutBody { chunked: true }),
            "ended",
        ),
        (
            "cut",
            cut(false),
            "the event stream ended before the answer (",
        ),
        (
            "closed",
            cut(true),
            "the event stream ended before the answer (the server closed it)",
        ),
        (
            "session",
            Fault::LoseSession(LoseSession {}),
            "(the server ended the session (HTTP status 404))",
        ),
    ];
    for (name, fault, reason) in cases {
        for json in [false, true] {
            let scenario = Scenario::new()
                .tool(faulty("act", fault.clone()).reply(Reply::structured(json!({"n": 2}))));
            let mock = Mock::http(if json {
                scenario.json_answers()
            } else {
                scenario
            });
            let mut session = Ptc::new().http("s", &mock.url()).start();
            let lost = session.execute(&attempts(["mcp__s__act()"])).output();
            assert!(
                lost.contains("'mcp__s__act' lost its connection to server 's' ("),
                "{name}: {lost}"
            );
            assert!(lost.contains(reason), "{name}: {lost}");
            assert!(
                lost.contains("was not repeated. The server is being reconnected: retry shortly"),
                "{name}: {lost}"
            );
            mock.journal()
                .wait_until(|journal| journal.method("tools/list").len() == 2, PATIENCE);
            session.wait_for_tools("back", |names| !names.is_empty());
            assert_eq!(
                session.execute(&attempts(["mcp__s__act()"])).output(),
                "{'n': 2}",
                "{name}"
            );
            session.close();
            assert_eq!(
                mock.journal().calls("act").len(),
                2,
                "{name} was not repeated"
            );
            assert_eq!(mock.journal().method("initialize").len(), 2, "{name}");
        }
    }
}

// contract: D1 D6
#[test]
fn an_https_url_without_tls_behind_it_is_a_server_that_says_why() {
    const HINT: &str = "; its url begins with https, and no TLS is spoken there: begin it with \
                        http if that is what the server speaks)";
    let unreachable = |why: &str| format!("the server cannot be reached: {why}");
    let answers = [
        (
            "plain_http",
            TlsAnswer::PlainHttp,
            unreachable(&format!(
                "received corrupt message of type InvalidContentType{HINT}"
            )),
        ),
        (
            "garbage",
            TlsAnswer::Garbage,
            unreachable(&format!(
                "received corrupt message of type HandshakePayloadTooLarge{HINT}"
            )),
        ),
        (
            "alert",
            TlsAnswer::Alert,
            unreachable("received fatal alert: HandshakeFailure)"),
        ),
        (
            "close",
            TlsAnswer::Close,
            unreachable(&format!("tls handshake eof{HINT}")),
        ),
        (
            "silence",
            TlsAnswer::Silence,
            "no connection within connect_timeout_seconds=0.7)".to_owned(),
        ),
    ];
    let mut ptc = Ptc::new().stdio("well", echo());
    let mut mocks = Vec::new();
    for (name, answer, _) in &answers {
        let answer = *answer;
        let absent = Fault::TlsAbsent(TlsAbsent { answer });
        let scenario = echo().always(At::Start, absent);
        for (transport, mock) in [
            ("http", Mock::http(scenario.clone())),
            ("sse", Mock::sse(scenario)),
        ] {
            let mut entry = json!({"name": format!("{name}_{transport}"),
                "transport": transport, "url": mock.url()});
            if answer == TlsAnswer::Silence {
                entry["connect_timeout_seconds"] = json!(0.7);
            }
            ptc = ptc.server(entry);
            mocks.push(mock);
        }
    }
    let mut session = ptc.start();
    let listed = session.call_tool("list_callable_tools", json!({}));
    assert_eq!(listed.texts[0], r#"["mcp__well__echo"]"#);
    for (name, _, reason) in &answers {
        for transport in ["http", "sse"] {
            let start = format!("Server '{name}_{transport}' is not connected ({reason}");
            assert!(
                listed.texts[1].contains(&start),
                "{start}\n{}",
                listed.texts[1]
            );
        }
    }
    session.close();
    for mock in mocks {
        // Nothing of what ptc-mcp has to say went out unencrypted.
        let heard = http_requests(mock.journal(), "POST");
        assert!(heard.is_empty(), "{heard:?}");
        assert!(http_requests(mock.journal(), "GET").is_empty());
    }
}

// contract: D2 D4 D6
#[test]
fn a_notification_that_is_not_accepted_costs_nothing_but_itself() {
    let hang = || Fault::hang();
    for (name, fault, handshakes) in [
        ("status", Fault::status(500), 1),
        (
            "limited",
            Fault::status_with(429, &[("Retry-After", "1")], ""),
            1,
        ),
        ("page", Fault::ContentType(ContentType::default()), 1),
        ("slow", Fault::SlowHeaders(SlowHeaders { ms: 200 }), 1),
        ("hang", hang(), 1),
        // These say that the server, or its session, is gone.
        ("reset", Fault::Reset(Reset {}), 2),
        ("session", Fault::LoseSession(LoseSession {}), 2),
    ] {
        // The first notification says that the handshake is over, the second cancels the call.
        let scenario = echo()
            .tool(Tool::sleep("nap", 600_000))
            .fault(Rule::new(At::Notification, fault).nth(2).starts([1]));
        let mock = Mock::http(scenario);
        let mut session = Ptc::new()
            .execution("tool_call_timeout_seconds", 1.5)
            .http("s", &mock.url())
            .start();
        let output = session.execute(&attempts(["mcp__s__nap()"])).output();
        assert_eq!(output, "ToolError: 'mcp__s__nap' timed out after 1.5s");
        let journal = mock.journal();
        journal.wait_until(|journal| journal.faults().len() == 1, PATIENCE);
        journal.wait_until(
            |journal| journal.method("tools/list").len() == handshakes,
            PATIENCE,
        );
        session.wait_for_tools("there", |names| !names.is_empty());
        assert_eq!(
            session.execute("print(await mcp__s__echo(n=1))").output(),
            "{'n': 1}",
            "{name}"
        );
        session.close();
        assert_eq!(journal.method("initialize").len(), handshakes, "{name}");
        assert_eq!(journal.calls("nap").len(), 1, "{name}");
    }
}

// contract: D1 D6
#[test]
fn the_word_that_ends_the_handshake_may_be_refused() {
    for (name, fault, handshakes) in [
        ("status", Fault::status(500), 1),
        ("page", Fault::ContentType(ContentType::default()), 1),
        ("reset", Fault::Reset(Reset {}), 2),
        ("session", Fault::LoseSession(LoseSession {}), 2),
    ] {
        let mock = Mock::http(echo().fault(Rule::new(At::Notification, fault).nth(1)));
        let mut session = Ptc::new().http("s", &mock.url()).start();
        session.wait_for_tools("connected", |names| !names.is_empty());
        assert_eq!(
            session.execute("print(await mcp__s__echo(n=1))").output(),
            "{'n': 1}",
            "{name}"
        );
        session.close();
        assert_eq!(
            mock.journal().method("initialize").len(),
            handshakes,
            "{name}"
        );
    }
}

// contract: D1
#[test]
fn the_word_that_ends_the_handshake_may_never_be_accepted() {
    let silent = || echo().fault(Rule::new(At::Notification, Fault::hang()).nth(1));
    let (http, sse) = (Mock::http(silent()), Mock::sse(silent()));
    let mut session = Ptc::new()
        .http("http", &http.url())
        .sse("sse", &sse.url())
        .start();
    session.wait_for_tools("connected", |names| names.len() == 2);
    session.close();
    for mock in [http, sse] {
        assert_eq!(mock.journal().method("initialize").len(), 1);
    }
}

// contract: D6 S12
#[test]
fn a_session_whose_end_is_refused_holds_nobody_up() {
    for fault in [
        Fault::status(405),
        Fault::status(500),
        Fault::Reset(Reset {}),
        Fault::LoseSession(LoseSession {}),
        Fault::SlowHeaders(SlowHeaders { ms: 200 }),
        Fault::hang(),
    ] {
        let mock = Mock::http(echo().always(At::SessionEnd, fault));
        let mut session = Ptc::new().http("s", &mock.url()).start();
        session.execute("await mcp__s__echo(n=1)").output();
        // It fails unless the process ends in time and in good order.
        session.close();
        assert_eq!(http_requests(mock.journal(), "DELETE").len(), 1);
    }
}

// contract: D2
#[test]
fn a_cut_stream_is_resumed_and_the_call_not_repeated() {
    for orderly in [false, true] {
        let cut = Fault::CutStream(CutStream {
            resumable: true,
            orderly,
        });
        let mock = Mock::http(Scenario::new().tool(faulty("act", cut)));
        let mut session = Ptc::new().http("s", &mock.url()).start();
        assert_eq!(
            session.execute(&attempts(["mcp__s__act()"])).output(),
            "{'n': 1}"
        );
        session.close();
        let journal = mock.journal();
        assert_eq!(journal.calls("act").len(), 1);
        assert_eq!(journal.method("initialize").len(), 1);
        let resumed: Vec<_> = http_requests(journal, "GET")
            .into_iter()
            .filter_map(|entry| entry.header("last-event-id").map(str::to_owned))
            .collect();
        assert_eq!(resumed.len(), 1, "{resumed:?}");
        assert!(resumed[0].ends_with(".0"), "{resumed:?}");
    }
}

// contract: D2 D4 R10
#[test]
fn a_stream_without_end_costs_its_call_only() {
    let endless = |kind| Fault::EndlessStream(EndlessStream { kind });
    let scenario = Scenario::new()
        .tool(faulty("comments", endless(EndlessKind::Comments)))
        .tool(faulty("notifications", endless(EndlessKind::Notifications)))
        .tool(faulty("one_event", endless(EndlessKind::OneEvent)))
        .tool(Tool::echo("echo"));
    let mock = Mock::http(scenario);
    let mut session = Ptc::new()
        .execution("tool_call_timeout_seconds", 1.5)
        .execution("max_tool_result_bytes", 1 << 20)
        .http("s", &mock.url())
        .start();
    let tools = ["comments", "notifications", "one_event"];
    for tool in tools {
        let output = session
            .execute(&attempts([format!("mcp__s__{tool}()")]))
            .output();
        assert_eq!(
            output,
            format!("ToolError: 'mcp__s__{tool}' timed out after 1.5s")
        );
    }
    mock.journal()
        .wait_until(|journal| journal.cancelled().len() == tools.len(), PATIENCE);
    assert_eq!(
        session.execute("print(await mcp__s__echo(n=1))").output(),
        "{'n': 1}"
    );
    session.close();
    assert_eq!(mock.journal().method("initialize").len(), 1);
}

// contract: D6 D1 D4
#[test]
fn the_listening_stream_may_fail_in_any_way() {
    let refused = |fault| Rule::new(At::Stream, fault);
    let cut = |orderly| {
        let resumable = false;
        Fault::CutStream(CutStream { resumable, orderly })
    };
    let comes_back = [
        refused(Fault::status(500)).until(2),
        refused(Fault::status(429)).until(2),
        refused(cut(true)).until(2),
        refused(cut(false)).until(2),
        refused(Fault::Reset(Reset {})).until(2),
    ];
    let stays = [
        refused(Fault::status(405)),
        refused(Fault::status(404)),
        refused(Fault::status(401)),
        refused(Fault::ContentType(ContentType::default())),
        refused(Fault::EndlessStream(EndlessStream::default())),
        refused(Fault::SlowHeaders(SlowHeaders { ms: 200 })),
    ];
    let comes_back = comes_back.into_iter().map(|rule| (rule, 3));
    for (rule, openings) in comes_back.chain(stays.into_iter().map(|rule| (rule, 1))) {
        let name = rule.fault.name();
        let scenario = echo()
            .tool(Tool::echo("comes").appears_after(1))
            .fault(rule);
        let mock = Mock::http(scenario);
        let mut session = Ptc::new().http("s", &mock.url()).start();
        session.wait_for_tools("connected", |names| !names.is_empty());
        let journal = mock.journal();
        journal.wait_until(
            |journal| http_requests(journal, "GET").len() >= openings,
            PATIENCE,
        );
        assert_eq!(
            session.execute("print(await mcp__s__echo(n=1))").output(),
            "{'n': 1}",
            "{name}"
        );
        if openings > 1 {
            session.wait_for_tools("changed", |names| names.len() == 2);
        }
        session.close();
        assert_eq!(journal.method("initialize").len(), 1, "{name}");
    }
}

// contract: D6
#[test]
fn sessions_are_named_in_every_request_and_ended() {
    let mock = Mock::http(echo());
    let mut session = Ptc::new().http("s", &mock.url()).start();
    session.execute("await mcp__s__echo(n=1)").output();
    session.close();
    let posts = http_requests(mock.journal(), "POST");
    let (opening, later) = posts.split_first().unwrap();
    assert_eq!(opening.method.as_deref(), Some("initialize"));
    assert_eq!(opening.header("mcp-session-id"), None);
    let sessions: BTreeSet<_> = later
        .iter()
        .map(|entry| entry.header("mcp-session-id"))
        .collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert!(!sessions.contains(&None));
    let ended = http_requests(mock.journal(), "DELETE");
    assert_eq!(ended.len(), 1);
    assert!(sessions.contains(&ended[0].header("mcp-session-id")));
    for entry in &posts {
        assert_eq!(
            entry.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(entry.header("content-type"), Some("application/json"));
    }
}

// contract: D6 C3
#[test]
fn what_a_server_wants_for_an_authorization_is_said_and_no_secret_is() {
    for sse in [false, true] {
        let scenario = || echo().require_header("Authorization", "Bearer right-s3cret");
        let mock = |scenario| {
            if sse {
                Mock::sse(scenario)
            } else {
                Mock::http(scenario)
            }
        };
        let transport = if sse { "sse" } else { "http" };
        let (bare, wrong, right) = (mock(scenario()), mock(scenario()), mock(scenario()));
        let entry = |name: &str, mock: &Mock, headers: Value| {
            let url = format!("{}?key=url-s3cret", mock.url());
            // The mock of streamable HTTP knows one path only.
            let url = if sse { url } else { mock.url() };
            json!({"name": name, "transport": transport, "url": url, "headers": headers})
        };
        let mut session = Ptc::new()
            .env("TOKEN", "wrong-s3cret")
            .env("RIGHT", "right-s3cret")
            .server(entry("bare", &bare, json!({})))
            .server(entry(
                "wrong",
                &wrong,
                json!({"Authorization": "Bearer ${TOKEN}"}),
            ))
            .server(entry(
                "right",
                &right,
                json!({"Authorization": "Bearer ${RIGHT}"}),
            ))
            .start();
        let listed = session.call_tool("list_callable_tools", json!({}));
        assert_eq!(listed.texts[0], r#"["mcp__right__echo"]"#);
        for text in [
            "Server 'bare' is not connected (HTTP status 401: the server wants an authorization of \
             the scheme Bearer; set Authorization under headers of server 'bare')",
            "Server 'wrong' is not connected (HTTP status 401: the server does not accept the \
             Authorization of the scheme Bearer that is set under headers of server 'wrong'; check \
             that it is right and not expired)",
        ] {
            assert!(
                listed.texts[1].contains(text),
                "{text}\n{}",
                listed.texts[1]
            );
        }
        assert_eq!(
            session
                .execute("print(await mcp__right__echo(n=1))")
                .output(),
            "{'n': 1}"
        );
        let said = format!("{}\n{}", listed.texts[1], session.log());
        assert!(!said.contains("s3cret"), "{said}");
        session.close();
    }
}

// contract: D6
#[test]
fn redirects_are_followed_within_the_origin_only() {
    let elsewhere = Mock::http(echo());
    let redirect = |code, location: &str| Fault::status_with(code, &[("Location", location)], "");
    for at in [At::Handshake, At::ToolsList, At::Call] {
        let scenario = echo()
            .fault(Rule::new(at, redirect(307, "/mcp")).nth(1))
            .fault(Rule::new(at, redirect(308, "./mcp")).nth(2));
        let mock = Mock::http(scenario);
        let mut session = Ptc::new().http("s", &mock.url()).start();
        let output = session.execute(&attempts(["mcp__s__echo(n=1)"])).output();
        assert_eq!(output, "{'n': 1}", "{at:?}");
        session.close();
    }
    let mock = Mock::http(echo().always(At::Call, redirect(307, "/mcp")));
    let mut session = Ptc::new().http("s", &mock.url()).start();
    let circles = session.execute(&attempts(["mcp__s__echo(n=1)"])).output();
    assert!(
        circles.ends_with("HTTP status 508: too many redirects"),
        "{circles}"
    );
    session.close();
    let to_there = redirect(307, &elsewhere.url());
    let mock = Mock::http(echo().always(At::Call, to_there.clone()));
    let mut session = Ptc::new()
        .env("TOKEN", "s3cret")
        .server(json!({"name": "s", "transport": "http", "url": mock.url(), "headers": {"Authorization": "Bearer ${TOKEN}"}}))
        .http("t", &Mock::http(echo().always(At::Handshake, to_there)).url())
        .start();
    let output = session.execute(&attempts(["mcp__s__echo(n=1)"])).output();
    assert_eq!(
        output,
        "ToolError: 'mcp__s__echo' was rejected by server 's': HTTP status 307: a redirect to another \
         origin is not followed; if that is where the server lives now, set its url to the new address"
    );
    session.close();
    assert_eq!(mock.journal().method("initialize").len(), 1);
    assert!(
        http_requests(elsewhere.journal(), "POST").is_empty(),
        "nothing went there"
    );
}

// contract: D6 C2
#[test]
fn an_sse_server_may_not_send_messages_elsewhere() {
    let elsewhere = Mock::http(echo());
    let mut scenario = echo();
    scenario.http.endpoint = Some(elsewhere.url());
    let mock = Mock::sse(scenario);
    let mut session = Ptc::new().sse("s", &mock.url()).start();
    let listed = session.call_tool("list_callable_tools", json!({}));
    let reason =
        "the server names an address of another origin for messages, which is not followed";
    assert!(listed.texts[1].contains(reason), "{}", listed.texts[1]);
    session.close();
    assert!(http_requests(elsewhere.journal(), "POST").is_empty());
}

// contract: C2 D2
#[test]
fn bad_answers_over_sse_fail_their_call_or_end_the_connection() {
    let cut = |orderly| {
        Fault::CutStream(CutStream {
            resumable: false,
            orderly,
        })
    };
    for (name, fault, is_loss, text) in [
        (
            "status",
            Fault::status(500),
            false,
            "was rejected by server 's': HTTP status 500: Internal Server Error",
        ),
        (
            "limited",
            Fault::status_with(429, &[("Retry-After", "7")], ""),
            false,
            "HTTP status 429: Too Many Requests; retry after 7",
        ),
        (
            "slow_headers",
            Fault::SlowHeaders(SlowHeaders { ms: 200 }),
            false,
            "{'n': 1}",
        ),
        (
            "reset",
            Fault::Reset(Reset {}),
            true,
            "lost its connection to server 's' (the connection ended before the answer",
        ),
        (
            "closed",
            cut(true),
            true,
            "(the server closed its event stream)",
        ),
        ("cut", cut(false), true, "(the event stream broke: "),
    ] {
        let scenario =
            Scenario::new().tool(faulty("act", fault).reply(Reply::structured(json!({"n": 2}))));
        let mock = Mock::sse(scenario);
        let mut session = Ptc::new().sse("s", &mock.url()).start();
        let output = session.execute(&attempts(["mcp__s__act()"])).output();
        assert!(output.contains(text), "{name}: {output}");
        let handshakes = 1 + usize::from(is_loss);
        mock.journal().wait_until(
            |journal| journal.method("tools/list").len() == handshakes,
            PATIENCE,
        );
        session.wait_for_tools("there", |names| !names.is_empty());
        assert_eq!(
            session.execute(&attempts(["mcp__s__act()"])).output(),
            "{'n': 2}",
            "{name}"
        );
        session.close();
        assert_eq!(mock.journal().calls("act").len(), 2, "{name}");
        assert_eq!(
            mock.journal().method("initialize").len(),
            handshakes,
            "{name}"
        );
    }
}
