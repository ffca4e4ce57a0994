//! The downstream servers: this binary once more, as thin as an MCP server can be. The same one
//! stands behind ptc-mcp and behind the floors.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Serves `echo`, `sleep` and `rows`, and as many further tools as it takes to have `tools`.
pub(crate) const ECHO: &str = "--echo-server";

/// Reads, and never answers.
pub(crate) const SILENT: &str = "--silent-server";

/// Serves if this process was started as a server; false otherwise.
pub(crate) fn served() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(ECHO) => echo(arguments[1].parse().expect("a number of tools")),
        Some(SILENT) => _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink()),
        _ => return false,
    }
    true
}

fn echo(tools: usize) {
    let sleepers = sleepers();
    let mut rows_of = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.expect("text")).expect("JSON lines");
        let Some(id) = message.get("id") else {
            continue;
        };
        let params = &message["params"];
        let arguments = &params["arguments"];
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            })
            .to_string(),
            Some("tools/list") => json!({"tools": definitions(tools)}).to_string(),
            Some("tools/call") => match params["name"].as_str() {
                Some("sleep") => {
                    let pause = arguments["ms"].as_u64().expect("milliseconds");
                    let until = Instant::now() + Duration::from_millis(pause);
                    sleepers.send((until, id.clone())).expect("it waits");
                    continue;
                }
                Some("rows") => {
                    let bytes = arguments["bytes"].as_u64().expect("a size") as usize;
                    rows_of.entry(bytes).or_insert_with(|| rows(bytes)).clone()
                }
                _ => json!({"content": [], "structuredContent": arguments}).to_string(),
            },
            _ => "{}".to_owned(),
        };
        answer(id, &result);
    }
}

fn answer(id: &Value, result: &str) {
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
    let mut output = std::io::stdout().lock();
    let written = output.write_all(line.as_bytes());
    written
        .and_then(|()| output.flush())
        .expect("the client reads");
}

/// Answers each request when its time has come. All pauses of a bench are equal, so they end in the
/// order in which they began.
fn sleepers() -> mpsc::Sender<(Instant, Value)> {
    let (sender, waiting) = mpsc::channel::<(Instant, Value)>();
    std::thread::spawn(move || {
        for (until, id) in waiting {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            answer(&id, r#"{"content":[],"structuredContent":{"slept":true}}"#);
        }
    });
    sender
}

/// A list of records as a text of about so many bytes, as servers send what they read somewhere.
fn rows(bytes: usize) -> String {
    let mut text = String::from("[");
    for id in 0.. {
        let amount = f64::from(id) * 1.25;
        text.push_str(&format!(
            r#"{{"id":{id},"name":"row number {id}","amount":{amount},"tags":["a","b",null,true]}}"#
        ));
        if text.len() >= bytes {
            break;
        }
        text.push(',');
    }
    text.push(']');
    json!({"content": [{"type": "text", "text": text}]}).to_string()
}

fn definitions(tools: usize) -> Vec<Value> {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let text = json!({"type": "string", "description": "One of the things that it needs to know."});
    let number = json!({"type": "integer"});
    let mut definitions = vec![
        json!({"name": "echo", "inputSchema": {"type": "object"}}),
        json!({"name": "sleep", "inputSchema": object(json!({"ms": number}))}),
        json!({"name": "rows", "inputSchema": object(json!({"bytes": number}))}),
    ];
    definitions.extend((definitions.len()..tools).map(|n| {
        json!({
            "name": format!("tool_{n}"),
            "description": format!("Number {n} of many: it looks something up by what it is given, and says what it found."),
            "inputSchema": object(json!({"query": text, "limit": number, "cursor": text})),
            "outputSchema": object(json!({"found": {"type": "array", "items": object(json!({"title": text, "score": {"type": "number"}}))}})),
        })
    }));
    definitions
}
