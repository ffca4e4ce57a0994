//! Both HTTP transports, against a server that answers byte for byte as a test says.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::*;

mod listening;

struct Request {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Value,
}

impl Request {
    fn tool(&self) -> &str {
        self.body["params"]["name"].as_str().unwrap_or_default()
    }

    fn id(&self) -> String {
        self.body["id"].to_string()
    }
}

enum Reply {
    /// These bytes, then the connection is closed.
    Bytes(String),
    /// These bytes, then what comes through the channel, until that is closed.
    Stream(String, mpsc::UnboundedReceiver<String>),
}

fn with_body(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Bytes(format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    ))
}

fn status(status: &str, headers: &str) -> Reply {
    with_body(status, headers, "")
}

fn as_json(body: &str) -> Reply {
    with_body("200 OK", "content-type: application/json\r\n", body)
}

const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";

fn as_events(events: &str) -> Reply {
    Reply::Bytes(format!("{EVENTS}{events}"))
}

fn result(request: &Request, result: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        request.id()
    )
}

const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"web","version":"2"}}"#;

/// A server of one session; calls are answered by the test.
fn session(request: &Request, call: impl Fn(&Request) -> Reply) -> Reply {
    match (request.method.as_str(), request.body["method"].as_str()) {
        ("POST", Some("initialize")) => with_body(
            "200 OK",
            "content-type: application/json\r\nmcp-session-id: s1\r\n",
            &result(request, INITIALIZED),
        ),
        ("POST", Some("tools/call")) => call(request),
        ("POST", _) => status("202 Accepted", ""),
        _ => status("405 Method Not Allowed", ""),
    }
}

/// Serves until the test ends; its address.
async fn serve(handler: impl Fn(Request) -> Reply + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let handler = Arc::new(handler);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let handler = handler.clone();
            tokio::spawn(async move { answer(socket, &*handler).await });
        }
    });
    format!("http://{address}/mcp?key=hunter2")
}

async fn answer(socket: TcpStream, handler: &(dyn Fn(Request) -> Reply + Send + Sync)) {
    let mut socket = BufReader::new(socket);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let mut first = lines[0].split(' ').map(str::to_owned);
    let headers: HashMap<String, String> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.unwrap();
    let request = Request {
        method: first.next().unwrap(),
        path: first.next().unwrap(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let (bytes, stream) = match handler(request) {
        Reply::Bytes(bytes) => (bytes, None),
        Reply::Stream(bytes, stream) => (bytes, Some(stream)),
    };
    let _ = socket.write_all(bytes.as_bytes()).await;
    if let Some(mut stream) = stream {
        while let Some(bytes) = stream.recv().await {
            let _ = socket.write_all(bytes.as_bytes()).await;
            let _ = socket.flush().await;
        }
    }
    let _ = socket.shutdown().await;
}

async fn reach(transport: &str, url: &str) -> Result<Connection, ConnectError> {
    let headers = json!({"Authorization": "Bearer hunter2"});
    let server = json!({"name": "web", "transport": transport, "url": url, "headers": headers});
    connect(&config(server), LIMIT, &CancellationToken::new()).await
}

async fn http(handler: impl Fn(Request) -> Reply + Send + Sync + 'static) -> Connection {
    reach("http", &serve(handler).await).await.unwrap()
}

async fn failure(connection: &Connection, tool: &str) -> CallFailure {
    let failure = call(connection, tool, json!({})).await.unwrap_err();
    let text = failure.to_string();
    assert!(
        !text.contains("hunter2") && !text.contains("127.0.0.1"),
        "{text}"
    );
    failure
}

// contract: R8, C2
#[tokio::test]
async fn http_calls_by_json_and_by_events() {
    let connection = http(|request| {
        assert_eq!(request.headers["authorization"], "Bearer hunter2");
        session(&request, |request| {
            assert_eq!(request.headers["mcp-session-id"], "s1");
            assert_eq!(request.headers["mcp-protocol-version"], "2025-11-25");
            let raw = r#"{"n":123456789012345678901234567890,"f":1.10}"#;
            match request.tool() {
                "json" => as_json(&result(request, raw)),
                "pretty" => as_json(&result(request, "{\n \"n\":\n1}")),
                _ => as_events(&format!(
                    "id: 1\ndata:\n\n: ping\n\nevent: message\ndata: {}\n\n",
                    result(request, raw)
                )),
            }
        })
    })
    .await;
    assert_eq!(connection.server_info(), "web 2");
    for tool in ["json", "events"] {
        let result = connection.call_tool(tool, Map::new()).await.unwrap();
        assert_eq!(
            result.get(),
            r#"{"n":123456789012345678901234567890,"f":1.10}"#
        );
    }
    assert_eq!(
        call(&connection, "pretty", json!({})).await.unwrap(),
        json!({"n": 1})
    );
}

#[tokio::test]
async fn many_http_calls_at_once_are_all_answered() {
    let connection = http(|request| {
        session(&request, |request| {
            let n = request.body["params"]["arguments"]["n"].to_string();
            match request.tool() {
                "json" => as_json(&result(request, &n)),
                _ => as_events(&format!("data: {}\n\n", result(request, &n))),
            }
        })
    })
    .await;
    for tool in ["json", "events"] {
        let calls = (0..200).map(|n| call(&connection, tool, json!({"n": n})));
        for (n, result) in futures::future::join_all(calls)
            .await
            .into_iter()
            .enumerate()
        {
            assert_eq!(result.unwrap(), n);
        }
    }
}

// contract: D2, D6, R10
#[tokio::test]
async fn an_answer_of_any_kind_fails_its_call_only() {
    let connection = http(|request| {
        session(&request, |request| {
            let json = "content-type: application/json\r\n";
            let big = || result(request, &format!("\"{}\"", "x".repeat(1_000_000)));
            match request.tool() {
                "500" => status("500 Internal Server Error", ""),
                "503" => status("503 Service Unavailable", "retry-after: 7\r\n"),
                "401" => status("401 Unauthorized", "www-authenticate: Bearer realm=x\r\n"),
                "rejected" => with_body(
                    "400 Bad Request",
                    json,
                    r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}"#,
                ),
                "away" => status("307 Temporary Redirect", "location: http://other.example/\r\n"),
                "near" => status("307 Temporary Redirect", "location: /elsewhere\r\n"),
                "html" => with_body("200 OK", "content-type: text/html\r\n", "<p>"),
                "none" => as_json("{}"),
                "nan" => as_json(&result(request, "NaN")),
                "big" => as_json(&big()),
                "big event" => as_events(&format!("data: {}\n\n", big())),
                _ => as_json(&result(request, "{}")),
            }
        })
    })
    .await;
    let hint = "the server does not accept the Authorization of the scheme Bearer that is set \
                under headers of server 'web'; check that it is right and not expired";
    let away = "a redirect to another origin is not followed; if that is where the server lives \
                now, set its url to the new address";
    let status = |status, reason: &str| CallFailure::HttpStatus {
        status,
        reason: reason.to_owned(),
    };
    for (tool, expected) in [
        ("500", status(500, "Internal Server Error")),
        ("503", status(503, "Service Unavailable; retry after 7")),
        ("401", status(401, hint)),
        ("away", status(307, away)),
        ("near", status(508, "too many redirects")),
        (
            "rejected",
            CallFailure::Rejected {
                code: -32600,
                message: "no".into(),
            },
        ),
    ] {
        assert_eq!(failure(&connection, tool).await, expected);
    }
    for (tool, expected) in [
        ("html", "content of type 'text/html'"),
        ("none", "no answer"),
        ("nan", "not valid JSON"),
    ] {
        let failure = failure(&connection, tool).await;
        let CallFailure::Unreadable(reason) = &failure else {
            panic!("{failure:?}")
        };
        assert!(reason.contains(expected), "{reason}");
    }
    for tool in ["big", "big event"] {
        let failure = failure(&connection, tool).await;
        assert!(
            matches!(
                failure,
                CallFailure::TooLarge {
                    bytes: 1_000_000..,
                    limit: 20_000
                }
            ),
            "{failure:?}"
        );
    }
    assert!(call(&connection, "fine", json!({})).await.is_ok());
}

// contract: D6
#[tokio::test]
async fn redirects_within_the_origin_are_followed_with_their_body() {
    let connection = http(|request| match request.path.as_str() {
        "/moved" => session(&request, |request| as_json(&result(request, "{}"))),
        _ => status("308 Permanent Redirect", "location: /moved\r\n"),
    })
    .await;
    assert!(call(&connection, "fine", json!({})).await.is_ok());
}

// contract: D2, D3, D6
#[tokio::test]
async fn a_lost_connection_ends_it_and_the_call_is_sent_once() {
    for (tool, expected) in [
        ("404", "ended the session"),
        ("cut body", "in the middle of the answer"),
        ("cut events", "ended before the answer"),
        ("nothing", "ended before the answer"),
    ] {
        let calls = Arc::new(Mutex::new(0));
        let counted = calls.clone();
        let connection = http(move |request| {
            session(&request, |request| {
                *counted.lock().unwrap() += 1;
                match request.tool() {
                    "404" => status("404 Not Found", ""),
                    "cut body" => Reply::Bytes(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                         content-length: 99\r\n\r\n{\"jsonrpc\""
                            .into(),
                    ),
                    "cut events" => as_events("data: {\"jsonrpc\""),
                    _ => Reply::Bytes(String::new()),
                }
            })
        })
        .await;
        let failure = failure(&connection, tool).await;
        let CallFailure::Lost(reason) = &failure else {
            panic!("{tool}: {failure:?}")
        };
        assert!(reason.contains(expected), "{tool}: {reason}");
        assert_eq!(&soon(connection.closed()).await, reason);
        assert_eq!(*calls.lock().unwrap(), 1, "{tool}");
    }
}

// contract: D2
#[tokio::test]
async fn a_cut_stream_is_resumed_where_it_ended() {
    let connection = http(|request| match request.headers.get("last-event-id") {
        Some(id) => {
            assert_eq!(id, "e1");
            // The only call is the second request of the connection.
            as_events("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resumed\":true}}\n\n")
        }
        None => session(&request, |_| as_events("id: e1\nretry: 1\ndata:\n\n")),
    })
    .await;
    let result = call(&connection, "long", json!({})).await.unwrap();
    assert_eq!(result, json!({"resumed": true}));
}

// contract: D1, D4
#[tokio::test]
async fn only_so_many_replies_to_a_server_are_on_their_way() {
    let pings: String = (0..100)
        .map(|n| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"q{n}\",\"method\":\"ping\"}}\n\n"))
        .collect();
    let (hold, mut replies) = mpsc::unbounded_channel();
    let connection = http(move |request| {
        let body = &request.body;
        if body["result"].is_object() && body["method"].is_null() {
            let (held, until) = mpsc::unbounded_channel();
            hold.send(held).unwrap();
            return Reply::Stream(String::new(), until);
        }
        session(&request, |request| match request.tool() {
            "ask" => as_events(&format!("{pings}data: {}\n\n", result(request, "{}"))),
            _ => as_json(&result(request, "{}")),
        })
    })
    .await;
    let asking = call(&connection, "ask", json!({}));
    tokio::pin!(asking);
    let mut held = Vec::new();
    let holding = async {
        while held.len() < 32 {
            held.push(replies.recv().await.unwrap());
        }
        // More of them would have come by the time when these are answered.
        for _ in 0..3 {
            call(&connection, "other", json!({})).await.unwrap();
        }
        assert!(replies.try_recv().is_err());
        for reply in held {
            reply
                .send(
                    "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                        .into(),
                )
                .unwrap();
        }
        while let Some(reply) = replies.recv().await {
            reply
                .send(
                    "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                        .into(),
                )
                .unwrap();
        }
    };
    tokio::select! {
        answer = &mut asking => assert_eq!(answer.unwrap(), json!({})),
        () = holding => {}
    }
}

// contract: D2, D4
#[tokio::test]
async fn a_dropped_http_request_is_cancelled_downstream_and_no_loss_when_it_ends() {
    let (hold, mut held) = mpsc::unbounded_channel();
    let (cancelled, mut cancellations) = mpsc::unbounded_channel();
    let connection = http(move |request| {
        if request.body["method"] == "notifications/cancelled" {
            cancelled
                .send(request.body["params"]["requestId"].to_string())
                .unwrap();
        }
        let held = |request: &Request| {
            let (stream, said) = mpsc::unbounded_channel();
            hold.send((request.id(), stream)).unwrap();
            Reply::Stream(EVENTS.into(), said)
        };
        if request.body["method"] == "tools/list" {
            return held(&request);
        }
        session(&request, |request| match request.tool() {
            "hang" => held(request),
            _ => as_json(&result(request, "{}")),
        })
    })
    .await;
    for what in ["call", "list"] {
        let dropped = async {
            match what {
                "call" => drop(connection.call_tool("hang", Map::new()).await),
                _ => drop(connection.list_tools().await),
            }
        };
        let (id, stream) = tokio::select! {
            () = dropped => panic!("{what}"),
            held = held.recv() => held.unwrap(),
        };
        assert_eq!(cancellations.recv().await.unwrap(), id, "{what}");
        drop(stream);
        // What the end of the stream led to is known by the time when these are answered.
        for _ in 0..3 {
            assert!(call(&connection, "other", json!({})).await.is_ok());
        }
        assert_eq!(connection.0.exchange.loss(), None, "{what}");
    }
}

// contract: D1
#[tokio::test]
async fn a_server_of_2026_is_discovered() {
    let connection = http(|request| {
        let reject = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"]}}}"#;
        match request.body["method"].as_str() {
            Some("initialize") => with_body(
                "400 Bad Request",
                "content-type: application/json\r\n",
                &reject.replace("ID", &request.id()),
            ),
            Some("server/discover") => as_json(&result(
                &request,
                r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"3"}}}"#,
            )),
            Some("tools/call") => {
                assert_eq!(request.headers["mcp-protocol-version"], "2026-07-28");
                assert_eq!(request.headers["mcp-method"], "tools/call");
                assert_eq!(request.headers["mcp-name"], "t");
                as_json(&result(&request, r#"{"resultType":"complete","content":[]}"#))
            }
            _ => status("404 Not Found", ""),
        }
    })
    .await;
    assert_eq!(connection.protocol_version(), "2026-07-28");
    assert_eq!(connection.server_info(), "new 3");
    assert!(call(&connection, "t", json!({})).await.is_ok());
}

#[tokio::test]
async fn what_cannot_be_reached_says_why() {
    let error = async |transport: &str, url: &str| {
        let error = reach(transport, url).await.unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        error
    };
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}/?key=hunter2", closed.local_addr().unwrap());
    drop(closed);
    let html = serve(|_| with_body("200 OK", "content-type: text/html\r\n", "<p>")).await;
    let forbidden = serve(|_| status("403 Forbidden", "")).await;
    for transport in ["http", "sse"] {
        let reason = error(transport, &nobody).await;
        assert!(
            reason.starts_with("the server cannot be reached: "),
            "{reason}"
        );
        assert!(error(transport, &html).await.contains("'text/html'"));
        assert!(
            error(transport, &forbidden)
                .await
                .contains("HTTP status 403: the server does not")
        );
    }
    let old = serve(|_| status("405 Method Not Allowed", "")).await;
    assert!(error("http", &old).await.contains("needs transport: sse"));
    let foreign = serve(|_| as_events("event: endpoint\ndata: http://other.example/x\n\n")).await;
    assert!(error("sse", &foreign).await.contains("another origin"));
}

/// An HTTP+SSE server whose stream is fed by the answers to its POSTs.
async fn sse() -> Connection {
    let (say, said) = mpsc::unbounded_channel();
    let say = Mutex::new(Some(say));
    let said = Mutex::new(Some(said));
    let url = serve(move |request| {
        if request.method == "GET" {
            let start = format!("{EVENTS}event: endpoint\ndata: /messages?session=1\n\n");
            return Reply::Stream(start, said.lock().unwrap().take().unwrap());
        }
        assert_eq!(request.path, "/messages?session=1");
        assert_eq!(request.headers["authorization"], "Bearer hunter2");
        let answer = match (request.body["method"].as_str(), request.tool()) {
            (Some("initialize"), _) => INITIALIZED.to_owned(),
            (_, "500") => return status("500 Internal Server Error", ""),
            (_, "end") => {
                say.lock().unwrap().take();
                return status("202 Accepted", "");
            }
            (_, "big") => format!("\"{}\"", "x".repeat(1_000_000)),
            (Some("tools/call"), _) => r#"{"n":123456789012345678901234567890}"#.to_owned(),
            _ => return status("202 Accepted", ""),
        };
        let event = format!(
            "event: message\r\ndata: {}\r\n\r\n",
            result(&request, &answer)
        );
        if let Some(say) = &*say.lock().unwrap() {
            say.send(event).unwrap();
        }
        status("202 Accepted", "")
    })
    .await;
    reach("sse", &url).await.unwrap()
}

// contract: C2, D2, R8, R10
#[tokio::test]
async fn sse_calls_fails_and_ends() {
    let connection = sse().await;
    let result = connection.call_tool("fine", Map::new()).await.unwrap();
    assert_eq!(result.get(), r#"{"n":123456789012345678901234567890}"#);
    let refused = failure(&connection, "500").await;
    assert!(
        matches!(refused, CallFailure::HttpStatus { status: 500, .. }),
        "{refused:?}"
    );
    let big = failure(&connection, "big").await;
    assert!(
        matches!(
            big,
            CallFailure::TooLarge {
                bytes: 1_000_000..,
                ..
            }
        ),
        "{big:?}"
    );
    assert!(call(&connection, "fine", json!({})).await.is_ok());
    let ended = failure(&connection, "end").await;
    assert_eq!(
        ended,
        CallFailure::Lost("the server closed its event stream".into())
    );
}
