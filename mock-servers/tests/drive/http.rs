//! Streamable HTTP: sessions, both shapes of answers, and the faults that need a socket.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use mock_servers::fault::{
    ContentType, CutBody, CutStream, EndlessKind, EndlessStream, LoseSession, Reset, SlowHeaders,
    TlsAbsent, TlsAnswer,
};
use mock_servers::scenario::{Log, STATELESS_VERSION};
use mock_servers::{At, Before, Event, Fault, Mock, Reply, Rule, Scenario, Tool};
use serde_json::json;

use crate::client::{DEADLINE, Exchange, Http, call, cancel, initialize, post, request, stateless};

fn faulty(fault: Fault) -> Scenario {
    Scenario::new()
        .tool(
            Tool::new("t")
                .reply(Reply::text("right"))
                .reply(Reply::text("again")),
        )
        .fault(Rule::new(At::Call, fault).nth(1))
}

fn ask(id: u32) -> String {
    call(id, "t", &json!({}))
}

#[test]
fn answers_as_events_or_as_a_body() {
    for (scenario, content_type) in [
        (Scenario::new(), "text/event-stream"),
        (Scenario::new().json_answers(), "application/json"),
    ] {
        let mock = Mock::http(scenario.tool(Tool::new("echo")));
        let client = Http::handshake(&mock.url());
        let response = client.post(&call(1, "echo", &json!({ "a": 1 })));
        assert_eq!(response.header("content-type"), Some(content_type));
        assert!(response.complete);
        assert_eq!(
            response.messages()[0]["result"]["structuredContent"],
            json!({ "a": 1 })
        );
        let calls = mock.journal().calls("echo");
        assert_eq!(calls[0].header("Mcp-Session-Id"), client.session.as_deref());
    }
}

#[test]
fn insists_on_its_sessions() {
    let mock = Mock::http(Scenario::new());
    let mut client = Http::handshake(&mock.url());
    let list = request(1, "tools/list", &json!({}));
    assert_eq!(client.post(&list).status, 200);
    let mut stranger = Http {
        url: mock.url(),
        session: None,
    };
    assert_eq!(stranger.post(&list).status, 400);
    stranger.session = Some("no-such-session".to_owned());
    assert_eq!(stranger.post(&list).status, 404);
    let session = client.session.clone().expect("a session");
    let header = [("Mcp-Session-Id", session.as_str())];
    let deleted = Exchange::open(&mock.url(), "DELETE", &header, "").response();
    assert_eq!(deleted.expect("a response").status, 200);
    assert_eq!(client.post(&list).status, 404);
    client.session = None;

    let mock = Mock::http(Scenario::new().without_sessions());
    assert_eq!(Http::handshake(&mock.url()).session, None);
}

#[test]
fn serves_stateless_requests_without_a_session() {
    let scenario = Scenario::new()
        .tool(Tool::new("echo"))
        .versions([STATELESS_VERSION]);
    let mock = Mock::http(scenario);
    let headers = |method| {
        vec![
            ("MCP-Protocol-Version", STATELESS_VERSION),
            ("Mcp-Method", method),
        ]
    };
    let discover = request(1, "server/discover", &stateless(json!({})));
    let response = post(&mock.url(), &headers("server/discover"), &discover);
    assert_eq!(
        response.messages()[0]["result"]["supportedVersions"],
        json!([STATELESS_VERSION])
    );
    let echo = request(2, "tools/call", &stateless(json!({ "name": "echo" })));
    let mut named = headers("tools/call");
    assert_eq!(post(&mock.url(), &named, &echo).status, 400);
    named.push(("Mcp-Name", "echo"));
    assert_eq!(post(&mock.url(), &named, &echo).status, 200);
    assert_eq!(
        post(&mock.url(), &[], &initialize("2025-11-25")).messages()[0]["error"]["code"],
        -32022
    );
}

#[test]
fn messages_before_an_answer_make_it_a_stream() {
    let reply = Reply::text("done").before(Before::Log(Log::default()));
    let mock = Mock::http(
        Scenario::new()
            .tool(Tool::new("t").reply(reply))
            .json_answers(),
    );
    let messages = Http::handshake(&mock.url()).post(&ask(1)).messages();
    assert_eq!(messages[0]["method"], "notifications/message");
    assert_eq!(messages[1]["id"], 1);
}

#[test]
fn announces_on_the_stream_of_a_get() {
    let scenario = Scenario::new()
        .tool(Tool::new("t"))
        .tool(Tool::new("new").appears_after(1));
    let mock = Mock::http(scenario);
    let client = Http::handshake(&mock.url());
    let mut stream = client.get(&[]);
    assert!(stream.head().expect("a head").contains("200 OK"));
    client.post(&ask(1));
    assert!(
        stream
            .chunk()
            .expect("an event")
            .contains("notifications/tools/list_changed")
    );
}

#[test]
fn wants_the_headers_it_was_told() {
    let mock = Mock::http(Scenario::new().require_header("Authorization", "Bearer right"));
    let with = |value| {
        post(
            &mock.url(),
            &[("Authorization", value)],
            &initialize("2025-11-25"),
        )
    };
    assert_eq!(with("Bearer wrong").status, 401);
    assert_eq!(
        with("Bearer wrong").header("WWW-Authenticate"),
        Some("Bearer")
    );
    assert_eq!(with("Bearer right").status, 200);
}

#[test]
fn cancellation_and_departure_are_noted() {
    let mock = Mock::http(Scenario::new().tool(Tool::sleep("t", 60_000)));
    let client = Http::handshake(&mock.url());
    let mut open = client.open(&ask(1));
    open.head().expect("a head");
    assert_eq!(client.post(&cancel(1)).status, 202);
    let rest = open.chunk().expect("the end");
    assert_eq!(rest, "", "no answer after the cancellation");
    assert_eq!(mock.journal().cancelled(), ["1"]);

    let mut open = client.open(&ask(2));
    open.head().expect("a head");
    drop(open);
    mock.journal().wait_until(
        |journal| journal.of(Event::Disconnected).len() == 1,
        DEADLINE,
    );
}

#[test]
fn gives_any_status() {
    let fault = Fault::status_with(
        429,
        &[("Retry-After", "7"), ("Location", "http://127.0.0.2/mcp")],
        "slow down",
    );
    let mock = Mock::http(faulty(fault));
    let client = Http::handshake(&mock.url());
    let response = client.post(&ask(1));
    assert_eq!(
        (response.status, response.text().as_str()),
        (429, "slow down")
    );
    assert_eq!(response.header("retry-after"), Some("7"));
    assert_eq!(response.header("location"), Some("http://127.0.0.2/mcp"));
    assert_eq!(client.post(&ask(2)).status, 200);
    assert_eq!(mock.journal().faults(), ["status"]);
}

#[test]
fn loses_its_sessions() {
    let mock = Mock::http(faulty(Fault::LoseSession(LoseSession {})));
    let client = Http::handshake(&mock.url());
    assert_eq!(client.post(&ask(1)).status, 404);
    assert_eq!(client.post(&ask(2)).status, 404);
    assert_eq!(Http::handshake(&mock.url()).post(&ask(3)).status, 200);
    assert_eq!(
        mock.journal().calls("t").len(),
        2,
        "the second never reached the tool"
    );
}

#[test]
fn answers_under_a_wrong_content_type() {
    let mock = Mock::http(faulty(Fault::ContentType(ContentType::default())).json_answers());
    let response = Http::handshake(&mock.url()).post(&ask(1));
    assert_eq!(response.header("content-type"), Some("text/html"));
    assert!(response.text().contains("right"));
}

#[test]
fn cuts_bodies_and_streams() {
    for scenario in [
        faulty(Fault::CutBody(CutBody::default())),
        faulty(Fault::CutBody(CutBody::default())).json_answers(),
    ] {
        let mock = Mock::http(scenario);
        let client = Http::handshake(&mock.url());
        let response = client.post(&ask(1));
        assert!(
            !response.complete && !response.body.is_empty(),
            "{response:?}"
        );
        assert!(!response.text().contains("right"), "{response:?}");
        assert!(client.post(&ask(2)).complete);
    }
    let mock = Mock::http(faulty(Fault::CutBody(CutBody { chunked: true })).json_answers());
    let response = Http::handshake(&mock.url()).post(&ask(1));
    assert_eq!(response.header("transfer-encoding"), Some("chunked"));
    assert!(!response.complete, "{response:?}");
    for orderly in [false, true] {
        let cut = Fault::CutStream(CutStream {
            resumable: false,
            orderly,
        });
        let mock = Mock::http(faulty(cut));
        let response = Http::handshake(&mock.url()).post(&ask(1));
        assert_eq!((response.complete, response.messages().len()), (orderly, 0));
    }
}

#[test]
fn a_resumable_stream_is_resumed() {
    let cut = Fault::CutStream(CutStream {
        resumable: true,
        orderly: false,
    });
    let mock = Mock::http(faulty(cut));
    let client = Http::handshake(&mock.url());
    let response = client.post(&ask(1));
    assert!(!response.complete);
    let text = response.text();
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("id: "))
        .expect("an event id");
    let rest = client
        .get(&[("Last-Event-ID", id)])
        .response()
        .expect("a response");
    assert_eq!(rest.messages()[0]["result"]["content"][0]["text"], "right");
    assert!(rest.complete);
    assert_eq!(mock.journal().calls("t").len(), 1);
}

#[test]
fn streams_without_end_or_answer() {
    for (kind, piece) in [
        (EndlessKind::Comments, ": still here"),
        (EndlessKind::Notifications, "notifications/message"),
        (EndlessKind::OneEvent, "data: xxxx"),
    ] {
        let mock = Mock::http(faulty(Fault::EndlessStream(EndlessStream { kind })));
        let mut open = Http::handshake(&mock.url()).open(&ask(1));
        open.head().expect("a head");
        for _ in 0..3 {
            assert!(open.chunk().expect("a piece").contains(piece), "{kind:?}");
        }
    }
}

#[test]
fn resets_connections() {
    let mock = Mock::http(faulty(Fault::Reset(Reset {})));
    let client = Http::handshake(&mock.url());
    let error = client.open(&ask(1)).response().expect_err("a reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(client.post(&ask(2)).status, 200);
}

#[test]
fn drips_the_head() {
    let mock = Mock::http(faulty(Fault::SlowHeaders(SlowHeaders { ms: 100 })));
    let client = Http::handshake(&mock.url());
    let begin = Instant::now();
    assert_eq!(client.post(&ask(1)).status, 200);
    assert!(begin.elapsed() >= Duration::from_millis(90));
}

#[test]
fn a_crash_takes_every_connection_and_a_start_brings_it_back() {
    let mut mock = Mock::http(faulty(Fault::crash_half_way()).healthy_on_restart());
    let url = mock.url();
    let client = Http::handshake(&url);
    let response = client.post(&ask(1));
    assert!(!response.complete && !response.body.is_empty());
    assert!(std::net::TcpStream::connect(&url["http://".len()..url.len() - 4]).is_err());
    mock.start();
    assert_eq!(mock.url(), url);
    assert_eq!(client.post(&ask(2)).status, 404, "its sessions are gone");
    assert_eq!(Http::handshake(&url).post(&ask(3)).status, 200);
    assert_eq!(mock.journal().starts(), 2);
}

#[test]
fn faults_strike_in_the_handshake_and_on_the_get_stream() {
    let mock = Mock::http(Scenario::new().always(At::Handshake, Fault::status(503)));
    assert_eq!(
        post(&mock.url(), &[], &initialize("2025-11-25")).status,
        503
    );
    let mock = Mock::http(Scenario::new().always(At::Stream, Fault::status(405)));
    let client = Http::handshake(&mock.url());
    assert_eq!(client.get(&[]).response().expect("a response").status, 405);
}

#[test]
fn whoever_opens_with_tls_meets_none() {
    // The header of a record with a handshake in it, and the five bytes that it announces.
    let hello = [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0];
    for (answer, said) in [
        (TlsAnswer::PlainHttp, &b"HTTP/1.1 400 Bad Request\r\n"[..]),
        (TlsAnswer::Garbage, &[0x16, 3, 3, 0, 8]),
        (TlsAnswer::Alert, &[0x15, 3, 3, 0, 2, 2, 40]),
        (TlsAnswer::Close, b""),
    ] {
        let absent = Fault::TlsAbsent(TlsAbsent { answer });
        let mock = Mock::http(Scenario::new().always(At::Start, absent));
        let url = mock.url();
        let rest = url.strip_prefix("https://").expect("an https URL");
        let host = rest.strip_suffix("/mcp").expect("the endpoint");
        let heard = exchange_bytes(host, &hello);
        assert!(heard.starts_with(said), "{answer:?}: {heard:?}");
        assert_eq!(heard.is_empty(), said.is_empty(), "{answer:?}");
        assert_eq!(mock.journal().of(Event::Unreadable).len(), 1);
        // Who knows better is served.
        Http::handshake(&format!("http://{rest}"));
    }
    let silence = Fault::TlsAbsent(TlsAbsent {
        answer: TlsAnswer::Silence,
    });
    let mock = Mock::http(Scenario::new().always(At::Start, silence));
    let host = mock.url()["https://".len()..].replace("/mcp", "");
    let mut stream = std::net::TcpStream::connect(host).expect("it listens");
    stream.write_all(&hello).expect("it is read");
    mock.journal().wait_until(
        |journal| !journal.of(Event::Unreadable).is_empty(),
        DEADLINE,
    );
    stream.set_nonblocking(true).expect("a socket");
    let error = stream.read(&mut [0]).expect_err("nothing is said");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

fn exchange_bytes(host: &str, sent: &[u8]) -> Vec<u8> {
    let mut stream = std::net::TcpStream::connect(host).expect("it listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream.write_all(sent).expect("it is read");
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).expect("an end");
    heard
}

#[test]
fn faults_strike_notifications_and_the_end_of_a_session() {
    let refused = |at| {
        Scenario::new()
            .tool(Tool::new("t"))
            .fault(Rule::new(at, Fault::status(500)).nth(2))
    };
    let mock = Mock::http(refused(At::Notification));
    let client = Http::handshake(&mock.url());
    let statuses = [1, 2, 3].map(|id| client.post(&cancel(id)).status);
    assert_eq!(statuses, [202, 500, 202]);
    assert_eq!(mock.journal().faults(), ["status"]);

    let mock = Mock::sse(refused(At::Notification));
    let mut stream = Exchange::open(&mock.url(), "GET", &[], "");
    stream.head().expect("a head");
    let endpoint = stream.chunk().expect("the endpoint");
    let path = endpoint
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .expect("a path");
    let url = mock.url().replace("/sse", path);
    let statuses = [1, 2, 3].map(|id| post(&url, &[], &cancel(id)).status);
    assert_eq!(statuses, [202, 500, 202]);

    let mock = Mock::http(refused(At::SessionEnd));
    for expected in [200, 500, 200] {
        let client = Http::handshake(&mock.url());
        let session = client.session.as_deref().expect("a session");
        let end = Exchange::open(&client.url, "DELETE", &[("Mcp-Session-Id", session)], "");
        assert_eq!(end.response().expect("a response").status, expected);
    }

    let mock = Mock::http(
        Scenario::new().fault(Rule::new(At::Notification, Fault::Reset(Reset {})).nth(1)),
    );
    let client = Http::handshake(&mock.url());
    let error = client.open(&cancel(1)).response().expect_err("a reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(client.post(&cancel(2)).status, 202);
}

#[test]
fn a_place_that_the_transport_does_not_know_is_refused() {
    let scenario = Scenario::new().always(At::SessionEnd, Fault::status(500));
    for (transport, is_known) in [
        (mock_servers::Transport::Stdio, false),
        (mock_servers::Transport::Sse, false),
        (mock_servers::Transport::Http, true),
    ] {
        assert_eq!(scenario.check_transport(transport).is_ok(), is_known);
    }
}

#[test]
fn a_scenario_for_pipes_is_refused() {
    let scenario = Scenario::new().always(At::Start, Fault::IgnoreSigterm(Default::default()));
    let error = scenario
        .check_transport(mock_servers::Transport::Http)
        .expect_err("refused");
    assert_eq!(error, "fault `ignore_sigterm` needs stdio");
}
