//! Live connections against small scripted servers: a Python process, or a bare TCP listener.

mod web;

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::config::Config;
use wire::Incoming;

const LIMIT: usize = 20_000;

/// A server that answers `initialize` and `tools/list` as JSON says, and each call by the name of
/// the tool.
const SERVER: &str = r#"
import json, os, subprocess, sys, threading
def out(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
def reply(id, result):
    out(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))
asked = None
print("starting", file=sys.stderr)
out("a line that is no JSON")
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method")
    modern = "MODERN" in os.environ
    if modern and method == "initialize":
        out(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}}))
    elif modern and method == "server/discover":
        reply(id, {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}, "ttlMs": 0, "cacheScope": "private"})
    elif method == "subscriptions/listen":
        about = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
        accepted = {"notifications": message["params"]["notifications"]}
        out(json.dumps({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": about | accepted}))
        out(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": about}))
    elif method is None and asked is not None:
        reply(asked, message)
    elif method == "initialize":
        version = os.environ.get("VERSION", message["params"]["protocolVersion"])
        reply(id, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "py", "version": "1"}})
    elif method == "tools/list" and "NO_LIST" in os.environ:
        pass
    elif method == "tools/list":
        cursor = (message.get("params") or {}).get("cursor")
        if cursor is None:
            reply(id, {"tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"title": "bad"}], "nextCursor": "2"})
        else:
            reply(id, {"tools": [{"name": "b"}]})
    elif method == "notifications/cancelled":
        out(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    elif method == "tools/call":
        name, arguments = message["params"]["name"], message["params"].get("arguments")
        if name == "echo":
            reply(id, {"content": [{"type": "strange", "v": arguments}], "tools": []})
        elif name == "raw":
            out(arguments["line"].replace("ID", str(id)))
        elif name == "big":
            reply(id, {"content": [{"type": "text", "text": "x" * arguments["size"]}]})
        elif name == "environment":
            reply(id, {"environment": dict(os.environ), "cwd": os.getcwd(), "group": os.getpgrp()})
        elif name == "flood":
            sys.stderr.write("noise\n" * 100_000)
            reply(id, {})
        elif name == "die":
            print("out of", file=sys.stderr)
            print("cheese", file=sys.stderr, flush=True)
            # The grandchild holds the pipes open.
            subprocess.Popen(["sleep", "1000"])
            os._exit(3)
        elif name == "ask":
            asked = id
            out(json.dumps({"jsonrpc": "2.0", "id": "q1", "method": arguments["method"], "params": arguments["params"]}))
        elif name == "ask_much":
            # Only whoever reads while it asks gets on.
            asking = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(arguments["times"])]
            threading.Thread(target=lambda: [out(json.dumps(ping)) for ping in asking]).start()
            answers = [json.loads(sys.stdin.readline()) for _ in asking]
            reply(id, sorted(answer["id"] for answer in answers))
        elif name == "ask_for_ever":
            out(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
            while True:
                out('{"jsonrpc":"2.0","id":"q","method":"ping"}')
        elif name == "cut":
            sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":{"a' % id)
            sys.stdout.flush()
            os._exit(0)
        elif name == "mute":
            os.close(1)
"#;

fn config(server: Value) -> ServerConfig {
    let text = json!({"servers": [server]}).to_string();
    let mut config = Config::parse(&text, Path::new("config.yaml"), &|_| None).unwrap();
    config.servers.remove(0)
}

fn python(env: Value) -> ServerConfig {
    config(json!({"name": "py", "command": "python3", "args": ["-c", SERVER], "env": env}))
}

async fn running() -> Connection {
    connect(&python(json!({})), LIMIT, &CancellationToken::new())
        .await
        .unwrap()
}

/// What has not come about by then never will: that is a failure, and no hang.
const PATIENCE: Duration = Duration::from_secs(60);

async fn soon<T>(fact: impl Future<Output = T>) -> T {
    let fact = tokio::time::timeout(PATIENCE, fact).await;
    fact.expect("it comes about")
}

async fn call(connection: &Connection, tool: &str, arguments: Value) -> Result<Value, CallFailure> {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    let result = soon(connection.call_tool(tool, arguments)).await?;
    Ok(serde_json::from_str(result.get()).unwrap())
}

async fn raw(connection: &Connection, line: &str) -> Result<Value, CallFailure> {
    call(connection, "raw", json!({"line": line})).await
}

fn exists(group: &Value) -> bool {
    let group = rustix::process::Pid::from_raw(group.as_i64().unwrap() as i32).unwrap();
    rustix::process::test_kill_process_group(group).is_ok()
}

// contract: D1, R8
#[tokio::test]
async fn stdio_lists_and_calls() {
    let connection = running().await;
    assert_eq!(connection.protocol_version(), "2025-11-25");
    assert_eq!(connection.server_info(), "py 1");
    let tools = connection.list_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let sent: Value = serde_json::from_str(r#"{"n": 123456789012345678901234567890}"#).unwrap();
    let result = call(&connection, "echo", sent.clone()).await.unwrap();
    assert_eq!(result["content"][0]["v"], sent);
    let line = r#"{"jsonrpc":"2.0","id":ID,"result":{"z":1.10,"a":1e999}}"#;
    let result = connection.call_tool("raw", json!({"line": line}).as_object().unwrap().clone());
    assert_eq!(result.await.unwrap().get(), r#"{"z":1.10,"a":1e999}"#);
}

// contract: D2, R10, R11
#[tokio::test]
async fn bad_answers_fail_their_call_only() {
    let connection = running().await;
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":ID,"result":NaN}"#, "valid JSON"),
        (r#"{"jsonrpc":"2.0","id":ID}"#, "neither"),
        (
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no x"}}"#,
            "no x (code -32602)",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required"}}"#,
            "input",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"task"}}"#,
            "task",
        ),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "no id"),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
            "what?",
        ),
        (
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"eh?"}}"#,
            "eh?",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"my fault"}}"#,
            "my fault",
        ),
    ] {
        let failure = raw(&connection, line).await.unwrap_err();
        assert!(failure.to_string().contains(expected), "{line}: {failure}");
    }
    let failure = call(&connection, "big", json!({"size": 1_000_000})).await;
    match failure {
        Err(CallFailure::TooLarge { bytes, limit }) => {
            assert!(bytes > 1_000_000 && bytes < 1_001_000);
            assert_eq!(limit, LIMIT as u64);
        }
        other => panic!("{other:?}"),
    }
    assert!(
        call(&connection, "big", json!({"size": LIMIT}))
            .await
            .is_ok()
    );
    assert!(call(&connection, "flood", json!({})).await.is_ok());
    assert!(
        raw(&connection, r#"INFO{"id":"ID","result":{}}"#)
            .await
            .is_ok()
    );
}

// contract: D2, D4
#[tokio::test]
async fn a_refused_notification_fails_no_request() {
    let connection = running().await;
    for id in [r#""id":null,"#, ""] {
        let refusal =
            format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32601,"message":"no"}}}}"#);
        let answer = r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#;
        let answered = raw(&connection, &format!("{refusal}\n{answer}")).await;
        assert_eq!(answered.unwrap(), json!({}), "{refusal}");
    }
}

// contract: D1, D4
#[tokio::test]
async fn a_server_of_2026_is_discovered_on_the_same_stream() {
    let connection = connect(
        &python(json!({"MODERN": "1"})),
        LIMIT,
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    assert_eq!(connection.protocol_version(), "2026-07-28");
    soon(connection.tools_changed()).await;
    let result = call(&connection, "echo", json!({"a": 1})).await.unwrap();
    assert_eq!(result["content"][0]["v"], json!({"a": 1}));
    assert_eq!(connection.list_tools().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_server_that_asks_is_declined() {
    let connection = running().await;
    let elicit = json!({
        "method": "elicitation/create",
        "params": {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}},
    });
    let answer = call(&connection, "ask", elicit).await.unwrap();
    assert_eq!(answer["result"]["action"], "decline");
    for (method, expected) in [("ping", json!({})), ("roots/list", json!({"roots": []}))] {
        let answer = call(&connection, "ask", json!({"method": method, "params": {}})).await;
        assert_eq!(answer.unwrap()["result"], expected, "{method}");
    }
    for method in ["sampling/createMessage", "made/up"] {
        let answer = call(&connection, "ask", json!({"method": method, "params": {}})).await;
        assert_eq!(answer.unwrap()["error"]["code"], -32601, "{method}");
    }
}

// contract: D1
#[tokio::test]
async fn a_server_that_asks_much_is_answered_everything() {
    let connection = running().await;
    let asked = call(&connection, "ask_much", json!({"times": 20_000})).await;
    assert_eq!(asked.unwrap(), json!(Vec::from_iter(0..20_000)));
}

// contract: D1, S12
#[tokio::test]
async fn a_server_that_asks_without_end_and_reads_nothing_is_not_read_either() {
    let exchange = Exchange::new(&python(json!({})), LIMIT);
    let ping = || Incoming::Request {
        id: rmcp::model::RequestId::Number(1),
        method: "ping".into(),
    };
    assert!(exchange.receive(ping()).now_or_never().is_some());
    assert!(exchange.receive(ping()).now_or_never().is_none());
    exchange.next_reply().await;
    assert!(exchange.receive(ping()).now_or_never().is_some());

    let connection = running().await;
    let group = call(&connection, "environment", json!({})).await.unwrap()["group"].clone();
    tokio::select! {
        result = connection.call_tool("ask_for_ever", Map::new()) => panic!("{result:?}"),
        () = connection.tools_changed() => {}
    }
    connection.shutdown().await;
    assert!(!exists(&group));
}

// contract: D4
#[tokio::test]
async fn a_dropped_call_is_cancelled_downstream() {
    let connection = running().await;
    let unanswered = json!({"line": "nothing"}).as_object().unwrap().clone();
    tokio::select! {
        biased;
        result = connection.call_tool("raw", unanswered) => panic!("{result:?}"),
        () = async { call(&connection, "echo", json!({})).await.map(|_| ()).unwrap() } => {}
    }
    // The server says so by this notification.
    soon(connection.tools_changed()).await;
}

// contract: D4
#[tokio::test]
async fn a_dropped_list_is_cancelled_downstream() {
    let server = python(json!({"NO_LIST": "1"}));
    let connection = connect(&server, LIMIT, &CancellationToken::new())
        .await
        .unwrap();
    tokio::select! {
        biased;
        listed = connection.list_tools() => panic!("{listed:?}"),
        () = async { call(&connection, "echo", json!({})).await.map(|_| ()).unwrap() } => {}
    }
    soon(connection.tools_changed()).await;
}

// contract: D3, D4, D5
#[tokio::test]
async fn a_dead_server_is_lost_with_its_last_words() {
    let connection = running().await;
    let group = call(&connection, "environment", json!({})).await.unwrap()["group"].clone();
    let Err(CallFailure::Lost(reason)) = call(&connection, "die", json!({})).await else {
        panic!("not lost")
    };
    assert!(reason.contains("exited with status 3"), "{reason}");
    assert!(reason.contains("out of | cheese"), "{reason}");
    assert_eq!(soon(connection.closed()).await, reason);
    while exists(&group) {
        tokio::task::yield_now().await;
    }
}

// contract: D3
#[tokio::test]
async fn an_answer_that_is_cut_off_is_lost() {
    let failure = call(&running().await, "cut", json!({})).await.unwrap_err();
    let reason =
        CallFailure::Lost("the server exited with status 0; its last words: starting".into());
    assert_eq!(failure, reason);
}

#[tokio::test]
async fn many_calls_at_once_are_all_answered() {
    let connection = running().await;
    let calls = (0..200).map(|n| call(&connection, "echo", json!({"n": n})));
    for (n, result) in futures::future::join_all(calls)
        .await
        .into_iter()
        .enumerate()
    {
        assert_eq!(result.unwrap()["content"][0]["v"]["n"], n);
    }
}

// contract: D2
#[tokio::test]
async fn a_server_that_closes_its_output_is_lost() {
    let connection = running().await;
    let Err(CallFailure::Lost(reason)) = call(&connection, "mute", json!({})).await else {
        panic!("not lost")
    };
    assert!(reason.contains("closed its standard output"), "{reason}");
}

// contract: D5, C2
#[tokio::test]
async fn the_environment_is_minimal() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = python(json!({"TOKEN": "t"}));
    if let Transport::Stdio { cwd, .. } = &mut server.transport {
        *cwd = Some(directory.path().canonicalize().unwrap());
    }
    let connection = connect(&server, LIMIT, &CancellationToken::new())
        .await
        .unwrap();
    let seen = call(&connection, "environment", json!({})).await.unwrap();
    assert_eq!(seen["cwd"], json!(directory.path().canonicalize().unwrap()));
    // A shell that starts the interpreter sets a few again.
    let passed = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
    let set_again = ["PWD", "OLDPWD", "SHLVL", "_"];
    for (name, _) in std::env::vars().filter(|(name, _)| !name.starts_with("PYENV")) {
        let allowed = passed.contains(&&*name) || set_again.contains(&&*name);
        assert!(allowed || seen["environment"][&name].is_null(), "{name}");
    }
    assert_eq!(seen["environment"]["TOKEN"], "t");
}

// contract: S12
#[tokio::test]
async fn shutdown_and_drop_leave_no_group() {
    let connection = running().await;
    let group = call(&connection, "environment", json!({})).await.unwrap()["group"].clone();
    connection.shutdown().await;
    assert!(!exists(&group));
    assert!(call(&connection, "echo", json!({})).await.is_err());

    let connection = running().await;
    let group = call(&connection, "environment", json!({})).await.unwrap()["group"].clone();
    drop(connection);
    while exists(&group) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_cannot_be_connected_says_why() {
    let error = async |server: ServerConfig| {
        connect(&server, LIMIT, &CancellationToken::new())
            .await
            .unwrap_err()
            .to_string()
    };
    let missing =
        config(json!({"name": "x", "command": "no-such-command", "env": {"PATH": "/nowhere"}}));
    assert_eq!(
        error(missing).await,
        "its command 'no-such-command' was not found in PATH; give the full path, or set PATH in the \
         server's env"
    );
    let relative = config(json!({"name": "x", "command": "./none", "cwd": "/"}));
    assert_eq!(
        error(relative).await,
        "its command '/./none' does not exist"
    );
    let dying =
        config(json!({"name": "x", "command": "sh", "args": ["-c", "echo oops >&2; exit 4"]}));
    let reason = error(dying).await;
    assert_eq!(
        reason,
        "the server exited with status 4; its last words: oops"
    );
    // Too short to be taken for a secret, as what env holds otherwise is.
    let ancient = error(python(json!({"VERSION": "1999"}))).await;
    assert!(
        ancient.contains("'1999', which is none of 2024-11-05, "),
        "{ancient}"
    );
}
