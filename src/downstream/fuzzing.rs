//! The laws of what servers send over a stream: lines, events and the messages in them. And a server
//! in memory, for laws about whoever calls one.

use std::sync::{Arc, Mutex};

use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::event::{Data, Event, Events};
use super::exchange::{Exchange, lock};
use super::line::{Line, Lines};
use super::wire::{self, Incoming};
use super::{Connection, Link};
use crate::config::ServerConfig;
use crate::fuzzing::cuts;
use crate::json;

/// A small limit, which inputs reach, and one that they do not.
const LIMITS: [usize; 2] = [48, 1 << 20];

/// What a stream may hold beyond its limit: the ends of what it threw away.
const ENDS: usize = 2 * 4096;

/// Takes the stdout of a server. The same bytes are the same messages in any cut, nothing is kept
/// beyond the limit, a line spoils only itself, and a spoiled response is owed to its request.
// contract: D4, R10, R11
pub(crate) fn wire(bytes: &[u8]) {
    for limit in LIMITS {
        let whole = lines(limit, &[bytes]);
        for pieces in cuts(bytes) {
            assert_eq!(lines(limit, &pieces), whole);
        }
        whole
            .into_iter()
            .flat_map(Line::into_incoming)
            .for_each(|incoming| is_usable(&incoming));
    }
    a_line_spoils_only_itself(bytes);
    a_spoiled_response_is_owed(bytes);
}

fn lines(limit: usize, pieces: &[&[u8]]) -> Vec<Line> {
    let mut lines = Lines::new(limit);
    let mut found = Vec::new();
    for piece in pieces {
        found.extend(lines.feed(piece));
        assert!(lines.buffered() <= limit.max(ENDS));
    }
    found.extend(lines.finish());
    for line in &found {
        match line {
            Line::Whole(line) => assert!(line.len() <= limit),
            Line::TooLong(discarded) => assert!(discarded.bytes() > limit as u64),
        }
    }
    found
}

fn is_usable(incoming: &Incoming) {
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    match incoming {
        Incoming::Result { result, .. } => {
            let result = result.get();
            assert!(is_json(result), "{result}");
            assert!(json::depth(result).is_some_and(|depth| depth <= crate::result::MAX_DEPTH));
        }
        Incoming::Notification { message, .. } => assert!(is_json(message), "{message}"),
        Incoming::Error { message, .. } => assert!(message.len() < 17 * 1024),
        Incoming::Broken { why: text, .. } | Incoming::Noise(text) => {
            assert!(text.len() <= 200, "{text:?}");
        }
        Incoming::Request { .. } | Incoming::Oversized { .. } => {}
    }
}

fn a_line_spoils_only_itself(bytes: &[u8]) {
    let response = br#"{"jsonrpc":"2.0","id":"next","result":{"a":1}}"#;
    let stream = [bytes, b"\n", response, b"\n"].concat();
    let last = Lines::new(1 << 20)
        .feed(&stream)
        .into_iter()
        .flat_map(Line::into_incoming)
        .last();
    let expected = Incoming::Result {
        id: RequestId::String("next".into()),
        result: r#"{"a":1}"#.to_owned().into(),
    };
    assert_eq!(last, Some(expected));
}

/// Whatever stands where a result should: the request that waits for it hears of it.
fn a_spoiled_response_is_owed(bytes: &[u8]) {
    let says = |word: &str| {
        bytes
            .windows(word.len())
            .any(|found| found == word.as_bytes())
    };
    if bytes.contains(&b'\n') || says(r#""id""#) || says(r#""method""#) {
        return;
    }
    let line = [br#"{"jsonrpc":"2.0","id":7,"result":"#, bytes, b"}\n"].concat();
    for limit in [line.len(), 8] {
        let found = Lines::new(limit).feed(&line).remove(0).into_incoming();
        match &found[0] {
            Incoming::Result { id, .. }
            | Incoming::Error { id: Some(id), .. }
            | Incoming::Broken { id: Some(id), .. }
            | Incoming::Oversized { id: Some(id), .. } => assert_eq!(*id, RequestId::Number(7)),
            other => panic!("{other:?}"),
        }
    }
}

/// Takes the body of a `text/event-stream`. The same bytes are the same events in any cut, nothing
/// is kept beyond the limit, an event leaves nothing behind, and data come out as they were put in.
// contract: R10, R11
pub(crate) fn sse_stream(bytes: &[u8]) {
    for limit in LIMITS {
        let whole = events(limit, &[bytes]);
        for pieces in cuts(bytes) {
            assert_eq!(events(limit, &pieces), whole);
        }
        for event in whole {
            assert_ne!(event, Event::default());
            if let Data::Whole(data) = &event.data {
                // An only line may be as long as a line may be.
                assert!(data.len() <= limit + super::event::FIELD);
            }
            event.data.into_incoming().iter().for_each(is_usable);
        }
    }
    an_event_leaves_nothing_behind(bytes);
    data_come_out_as_they_were_put_in(bytes);
}

fn events(limit: usize, pieces: &[&[u8]]) -> Vec<Event> {
    let mut events = Events::new(limit);
    pieces.iter().flat_map(|piece| events.feed(piece)).collect()
}

fn an_event_leaves_nothing_behind(bytes: &[u8]) {
    let stream = [bytes, b"\n\ndata: next\n\n"].concat();
    let expected = Event {
        data: Data::Whole(b"next".to_vec()),
        ..Event::default()
    };
    assert_eq!(events(1 << 20, &[&stream]).last(), Some(&expected));
}

fn data_come_out_as_they_were_put_in(bytes: &[u8]) {
    if bytes.contains(&b'\r') {
        return;
    }
    let mut stream = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        stream.extend_from_slice(b"data: ");
        stream.extend_from_slice(line);
        stream.push(b'\n');
    }
    stream.push(b'\n');
    let expected = Event {
        data: Data::Whole(bytes.to_vec()),
        ..Event::default()
    };
    assert_eq!(events(1 << 20, &[&stream]), [expected]);
}

/// A server in memory. It speaks by the wire's own bytes.
pub(crate) struct Stub {
    exchange: Arc<Exchange>,
    tools: Vec<&'static str>,
    heard: Arc<Heard>,
}

/// What a stub was called with.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Calls>);

#[derive(Clone, Default)]
pub(crate) struct Calls {
    /// Tools and arguments, in the order of arrival.
    pub(crate) all: Vec<(String, Value)>,
    /// Calls that were to be answered and are not yet.
    open: usize,
    /// The most that were open at once.
    pub(crate) most: usize,
}

impl Heard {
    pub(crate) fn calls(&self) -> Calls {
        lock(&self.0).clone()
    }
}

/// A connection to a server in memory that has these tools. What each does, its name says: `silent`
/// never answers, `wrong` fails and `told` says why, `refuses` rejects its arguments, `garbled` answers
/// in no JSON, `large` with more than anybody takes, `lost` ends the connection, and every other says
/// what it was called with: `typed` declares that it does, `marked` wraps it and says so.
pub(crate) async fn connect_in_memory(
    server: &ServerConfig,
    max_result_bytes: usize,
    tools: Vec<&'static str>,
) -> (Connection, Arc<Heard>) {
    let exchange = Arc::new(Exchange::new(server, max_result_bytes));
    let heard = Arc::<Heard>::default();
    let stub = Stub {
        exchange: exchange.clone(),
        tools,
        heard: heard.clone(),
    };
    let connection = super::establish(
        exchange,
        Link::Memory(stub),
        &tokio_util::sync::CancellationToken::new(),
    )
    .await;
    (connection.expect("it is well"), heard)
}

impl Stub {
    pub(super) fn send(&self, message: &ClientJsonRpcMessage) {
        let message = serde_json::to_value(message).expect("a message is JSON");
        let (method, params) = (&message["method"], &message["params"]);
        let result = match method.as_str() {
            Some("initialize") => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "stub", "version": "1"},
            }),
            Some("tools/list") => {
                let tools = self.tools.iter().map(|name| match *name {
                    "typed" => json!({"name": name, "outputSchema": {
                        "properties": {"said": {"required": ["said"]}},
                    }}),
                    "refuses" => json!({"name": name, "inputSchema": {"required": ["a"]}}),
                    _ => json!({"name": name}),
                });
                json!({"tools": tools.collect::<Vec<_>>()})
            }
            Some("tools/call") => {
                let (name, arguments) = (&params["name"], &params["arguments"]);
                let name = name.as_str().expect("a tool has a name");
                lock(&self.heard.0)
                    .all
                    .push((name.to_owned(), arguments.clone()));
                match name {
                    "silent" => return,
                    "lost" => return self.exchange.lose("the server is gone"),
                    "refuses" => {
                        return self.say(message["id"].to_string(), |id| {
                            let error = json!({"code": -32602, "message": "no such argument"});
                            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
                        });
                    }
                    "garbled" => {
                        return self.say(message["id"].to_string(), |id| {
                            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":"#)
                        });
                    }
                    "wrong" => json!({"content": [], "isError": true}),
                    "told" => json!({
                        "content": [{"type": "text", "text": "unexpected keyword argument"}],
                        "isError": true,
                    }),
                    "marked" => json!({
                        "content": [],
                        "structuredContent": {"result": {"said": arguments}},
                        "_meta": {"fastmcp": {"wrap_result": true}},
                    }),
                    "large" => json!({"content": [{"type": "text", "text": "x".repeat(1 << 16)}]}),
                    _ => json!({"content": [], "structuredContent": {"said": arguments}}),
                }
            }
            _ => return,
        };
        self.say(message["id"].to_string(), |id| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
        });
    }

    /// Answers a little later, so that others come in between.
    fn say(&self, id: String, line: impl Fn(&str) -> String) {
        let answer = line(&id);
        let (exchange, heard) = (self.exchange.clone(), self.heard.clone());
        let mut calls = lock(&heard.0);
        calls.open += 1;
        calls.most = calls.most.max(calls.open);
        drop(calls);
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            lock(&heard.0).open -= 1;
            for incoming in wire::decode(answer.into_bytes()) {
                exchange.receive(incoming).await;
            }
        });
    }
}
