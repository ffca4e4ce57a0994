//! A client at the other end of two pipes, against the whole surface. No program runs here: that
//! takes an interpreter, and is the integration tests'.

use std::path::Path;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

use super::*;
use crate::config::Config;
use crate::tool::{ServerName, ToolName};

struct Client {
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    stop: CancellationToken,
    server: JoinHandle<()>,
}

impl Client {
    fn of(config: Config) -> Self {
        let (input, server_input) = duplex(1 << 20);
        let (server_output, output) = duplex(1 << 20);
        let stop = CancellationToken::new();
        let server = serve(
            Ptc::start(config),
            server_input,
            server_output,
            stop.clone(),
        );
        Self {
            input: Some(input),
            output: BufReader::new(output).lines(),
            stop,
            server: tokio::spawn(server),
        }
    }

    fn new() -> Self {
        Self::of(Config::default())
    }

    /// A session of the 2025 era, begun.
    async fn legacy(name: &str) -> Self {
        let mut client = Self::new();
        client
            .ask("initialize", initialize(name, "2025-11-25"))
            .await;
        client
            .say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        client
    }

    async fn say(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .await
            .unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = self
            .output
            .next_line()
            .await
            .unwrap()
            .expect("a line from the server");
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        self.say(&request.to_string()).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], method, "{answer}");
        answer
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// Ends the session and gives what the server still said.
    async fn end(mut self) -> Vec<Value> {
        self.input = None;
        self.rest().await
    }

    async fn rest(mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.server.await.unwrap();
        rest
    }
}

fn initialize(name: &str, version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": name, "version": "1"},
    })
}

/// The parameters of a 2026-era request.
fn modern(name: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
    });
    params
}

// contract: S1, S2, S8, S10
#[tokio::test]
async fn every_handshake_of_the_2025_era_is_served() {
    let cases = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ];
    for (asked, answered) in cases {
        let mut client = Client::new();
        let answer = client.ask("initialize", initialize("x", asked)).await;
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], answered, "{asked}");
        assert_eq!(result["serverInfo"]["name"], "ptc-mcp");
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        assert!(
            result["instructions"]
                .as_str()
                .unwrap()
                .contains("execute_program")
        );
        let tools = client.ask("tools/list", json!({})).await;
        let names: Vec<&Value> = tools["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"])
            .collect();
        assert_eq!(
            names,
            ["execute_program", "inspect_tool", "list_callable_tools"]
        );
        assert!(client.end().await.is_empty());
    }
}

// contract: S8
#[tokio::test]
async fn a_client_of_the_2026_era_needs_no_handshake() {
    let mut client = Client::new();
    let answer = client.ask("server/discover", modern("x", json!({}))).await;
    assert_eq!(answer["result"]["supportedVersions"][4], "2026-07-28");
    assert!(answer["result"]["instructions"].is_string());
    // Between the probe and the session, where rmcp would give up on us.
    client
        .say(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#)
        .await;
    let listen = modern("x", json!({"notifications": {"toolsListChanged": true}}));
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen});
    client.say(&request.to_string()).await;
    let answer = client.hear().await;
    assert_eq!(answer["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(answer["params"]["notifications"], json!({}));
    let answer = client.ask("tools/list", modern("x", json!({}))).await;
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 3);
    let answer = client.ask("tools/list", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
    let rest = client.end().await;
    assert_eq!(
        rest.len(),
        1,
        "the subscription is closed in order: {rest:?}"
    );
    assert_eq!(rest[0]["id"], 1);
}

// contract: S8
#[tokio::test]
async fn a_probe_does_not_commit_a_client_to_the_2026_era() {
    let mut client = Client::new();
    client.ask("server/discover", modern("x", json!({}))).await;
    client
        .ask("initialize", initialize("x", "2025-06-18"))
        .await;
    let answer = client.ask("tools/list", json!({})).await;
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 3);
}

// contract: S8
#[tokio::test]
async fn noise_is_answered_in_order_and_service_goes_on() {
    let mut client = Client::new();
    for opened in [false, true] {
        client
            .say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        for (line, id, code) in [
            ("nonsense", json!(null), -32700),
            ("[1]", json!(null), -32600),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"no/such"}"#,
                json!(7),
                -32601,
            ),
            (
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{}}"#,
                json!(8),
                -32602,
            ),
        ] {
            client.say(line).await;
            let answer = client.hear().await;
            let expected = (&id, &json!(code));
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                expected,
                "{opened} {line}"
            );
        }
        let answer = client
            .ask("initialize", initialize("x", "2025-11-25"))
            .await;
        assert!(answer["result"].is_object());
    }
}

// contract: S7
#[tokio::test]
async fn the_output_schema_is_declared_to_those_who_get_the_structure() {
    for (name, declared) in [
        ("claude-code", false),
        ("codex-mcp-client", false),
        ("mcp", true),
    ] {
        let mut legacy = Client::legacy(name).await;
        let answers = [
            legacy.ask("tools/list", json!({})).await,
            // In the 2026 era who asks is known from the request alone.
            Client::new()
                .ask("tools/list", modern(name, json!({})))
                .await,
        ];
        for answer in answers {
            let tools = &answer["result"]["tools"];
            assert_eq!(tools[0].get("outputSchema").is_some(), declared, "{name}");
            assert!(
                tools[1].get("outputSchema").is_none() && tools[2].get("outputSchema").is_none()
            );
        }
    }
}

// contract: S3, S4, S9
#[tokio::test]
async fn listing_and_inspecting_answer_without_any_server() {
    let mut client = Client::legacy("x").await;
    let answer = client.call("list_callable_tools", json!({})).await;
    let result = &answer["result"];
    assert_eq!(result["content"], json!([{"type": "text", "text": "[]"}]));
    assert_eq!(result.get("structuredContent"), None);
    let answer = client
        .call("inspect_tool", json!({"tool_name": "mcp__a__b"}))
        .await;
    let result = &answer["result"];
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[Tool not found] 'mcp__a__b'"), "{text}");
    assert_eq!(result.get("structuredContent"), None);
}

// contract: S7, S8
#[tokio::test]
async fn mistakes_in_calls_of_our_own_tools_reach_the_model() {
    let mut client = Client::legacy("x").await;
    let answer = client
        .call("execute_program", json!({"program": "1"}))
        .await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["_meta"]["ptc-mcp/tool_calls"], json!([]));
    let answer = client
        .call("inspect_tool", json!("{\"tool_name\": 5}"))
        .await;
    assert_eq!(answer["result"]["isError"], true);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("'tool_name'") && text.contains("got a number"),
        "{text}"
    );
    let answer = client.call("mcp__a__b", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
}

// contract: S12
#[tokio::test]
async fn the_end_of_input_and_a_signal_end_the_service_in_any_state() {
    for by_signal in [false, true] {
        let silent = Client::new();
        let opened = Client::legacy("x").await;
        let mut probing = Client::new();
        probing.ask("server/discover", modern("x", json!({}))).await;
        for client in [silent, opened, probing] {
            let rest = if by_signal {
                client.stop.cancel();
                client.rest().await
            } else {
                client.end().await
            };
            assert!(rest.is_empty(), "{rest:?}");
        }
    }
}

// contract: S12
#[tokio::test]
async fn a_client_that_hangs_up_on_the_answers_ends_the_service() {
    let mut client = Client::legacy("x").await;
    let (closed, _) = duplex(1);
    client.output = BufReader::new(closed).lines();
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    client.say(request).await;
    client.server.await.unwrap();
}

// contract: S3
#[test]
fn the_list_is_an_array_and_names_what_is_down() {
    let list = |names: &[&str], down: &[(&str, &str)]| {
        list_texts(&ToolList {
            names: names.iter().map(|name| ToolName::new(name)).collect(),
            shown: names.iter().map(|name| json!(name)).collect(),
            left_out: None,
            down: down
                .iter()
                .map(|(name, reason)| (ServerName::new(name), (*reason).to_owned()))
                .collect(),
        })
    };
    assert_eq!(list(&[], &[]), ["[]"]);
    assert_eq!(
        list(&["mcp__a__b", "mcp__a__c"], &[]),
        [r#"["mcp__a__b","mcp__a__c"]"#]
    );
    let down = [("hr", "connection refused"), ("x-y", "still connecting")];
    let texts = list(&["mcp__a__b"], &down);
    assert_eq!(texts.len(), 2);
    assert_eq!(texts[0], r#"["mcp__a__b"]"#);
    for said in [
        "hr",
        "connection refused",
        "x-y",
        "still connecting",
        "reconnected",
    ] {
        assert!(texts[1].contains(said), "{said}: {}", texts[1]);
    }
}

#[test]
fn an_unknown_tool_is_told_where_it_can_be_called() {
    insta::assert_snapshot!([unknown_tool("foo"), unknown_tool("mcp__a__b")].join("\n"));
}

// contract: S2
#[tokio::test]
async fn the_configured_servers_are_named_as_their_tools_name_them() {
    let yaml = "servers:\n  - name: my-hr\n    command: nothing-of-that-name\n";
    let config = Config::parse(yaml, Path::new("config.yaml"), &|_| None).unwrap();
    let mut client = Client::of(config);
    let answer = client.ask("tools/list", modern("x", json!({}))).await;
    let description = answer["result"]["tools"][0]["description"]
        .as_str()
        .unwrap();
    assert!(description.ends_with("\nServers: my_hr"), "{description}");
}
