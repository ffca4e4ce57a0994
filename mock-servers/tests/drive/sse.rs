//! HTTP+SSE of 2024-11-05.

use mock_servers::fault::CutStream;
use mock_servers::{At, Fault, Mock, Reply, Rule, Scenario, Tool};
use serde_json::{Value, json};

use crate::client::{DEADLINE, Exchange, call, initialize, post, request};

struct Stream {
    exchange: Exchange,
    messages: String,
}

impl Stream {
    fn open(mock: &Mock) -> Self {
        let mut exchange = Exchange::open(&mock.url(), "GET", &[], "");
        assert!(
            exchange
                .head()
                .expect("a head")
                .contains("text/event-stream")
        );
        let endpoint = exchange.chunk().expect("an event");
        let path = endpoint
            .strip_prefix("event: endpoint\ndata: ")
            .unwrap_or_else(|| panic!("no endpoint: {endpoint}"))
            .trim();
        let messages = format!("{}{path}", mock.url().trim_end_matches("/sse"));
        Self { exchange, messages }
    }

    fn post(&self, body: &str) -> u16 {
        post(&self.messages, &[], body).status
    }

    fn message(&mut self) -> Value {
        let event = self.exchange.chunk().expect("an event");
        let data = event
            .strip_prefix("event: message\ndata: ")
            .expect("a message");
        serde_json::from_str(data).expect("JSON")
    }

    fn handshake(mock: &Mock) -> Self {
        let mut stream = Self::open(mock);
        assert_eq!(stream.post(&initialize("2024-11-05")), 202);
        assert_eq!(stream.message()["result"]["protocolVersion"], "2024-11-05");
        stream
    }
}

#[test]
fn answers_on_the_stream() {
    let scenario = Scenario::new()
        .tool(Tool::new("echo"))
        .tool(Tool::new("new").appears_after(1));
    let mock = Mock::sse(scenario);
    let mut stream = Stream::handshake(&mock);
    assert_eq!(stream.post(&call(1, "echo", &json!({ "a": 1 }))), 202);
    let messages = [stream.message(), stream.message()];
    assert!(
        messages
            .iter()
            .any(|m| m["result"]["structuredContent"] == json!({ "a": 1 }))
    );
    assert!(
        messages
            .iter()
            .any(|m| m["method"] == "notifications/tools/list_changed")
    );
    assert_eq!(mock.journal().calls("echo").len(), 1);
}

#[test]
fn knows_only_its_own_sessions() {
    let mock = Mock::sse(Scenario::new());
    let url = mock.url().replace("/sse", "/messages?sessionId=other");
    assert_eq!(post(&url, &[], &initialize("2024-11-05")).status, 404);
}

#[test]
fn the_endpoint_can_be_anything() {
    let mut scenario = Scenario::new();
    scenario.http.endpoint = Some("http://127.0.0.2:1/steal?sessionId=$SESSION".to_owned());
    let mock = Mock::sse(scenario);
    let mut exchange = Exchange::open(&mock.url(), "GET", &[], "");
    exchange.head().expect("a head");
    let event = exchange.chunk().expect("an event");
    assert!(
        event.contains("data: http://127.0.0.2:1/steal?sessionId=session-1-"),
        "{event}"
    );
}

#[test]
fn the_stream_is_cut() {
    for orderly in [false, true] {
        let cut = Fault::CutStream(CutStream {
            resumable: false,
            orderly,
        });
        let scenario = Scenario::new()
            .tool(Tool::new("t").reply(Reply::text("hi")))
            .fault(Rule::new(At::Call, cut).nth(1));
        let mock = Mock::sse(scenario);
        let mut stream = Stream::handshake(&mock);
        stream.post(&call(1, "t", &json!({})));
        assert_eq!(stream.exchange.chunk().ok(), orderly.then(String::new));
        Stream::handshake(&mock);
    }
}

#[test]
fn faults_strike_posts_and_the_opening() {
    let scenario = Scenario::new()
        .tool(Tool::new("t").reply(Reply::text("hi")))
        .fault(Rule::new(At::Call, Fault::status(500)).nth(1))
        .fault(Rule::new(At::Stream, Fault::status(503)).nth(1));
    let mock = Mock::sse(scenario);
    let refused = Exchange::open(&mock.url(), "GET", &[], "")
        .response()
        .expect("a response");
    assert_eq!(refused.status, 503);
    let mut stream = Stream::handshake(&mock);
    assert_eq!(stream.post(&call(1, "t", &json!({}))), 500);
    assert_eq!(stream.post(&call(2, "t", &json!({}))), 202);
    assert_eq!(stream.message()["id"], 2);
}

#[test]
fn a_crash_ends_the_stream() {
    let scenario = Scenario::new().tool(Tool::new("t").reply(Reply::fault(Fault::crash())));
    let mut mock = Mock::sse(scenario);
    let mut stream = Stream::handshake(&mock);
    stream.post(&request(1, "ping", &json!({})));
    assert_eq!(stream.message()["id"], 1);
    let _ = Exchange::open(&stream.messages, "POST", &[], &call(2, "t", &json!({}))).response();
    assert!(stream.exchange.chunk().is_err());
    mock.journal()
        .wait_until(|journal| journal.faults() == ["crash"], DEADLINE);
    mock.start();
    Stream::handshake(&mock);
}
