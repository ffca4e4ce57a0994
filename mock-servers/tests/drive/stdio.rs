//! The healthy server over pipes, in both eras of the protocol.

use mock_servers::scenario::{
    Counter, Elicit, Log, Ping, Progress, Roots, Rows, STATELESS_VERSION, Sample, Wait,
};
use mock_servers::{Before, Compute, Event, Reply, Scenario, Tool};
use serde_json::{Value, json};

use crate::client::{DEADLINE, Pipes, call, cancel, initialize, request, stateless};

fn one(reply: Reply) -> Scenario {
    Scenario::new()
        .tool(Tool::new("t").reply(reply))
        .tool(Tool::new("echo"))
}

#[test]
fn answers_the_handshake_in_every_revision() {
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut pipes = Pipes::open(&Scenario::new());
        pipes.send(&initialize(asked));
        assert_eq!(
            pipes.message()["result"]["protocolVersion"],
            answered,
            "{asked}"
        );
    }
}

#[test]
fn answers_a_handshake_with_the_version_it_was_told() {
    let mut scenario = Scenario::new();
    scenario.protocol.answer = Some("2023-01-01".to_owned());
    let mut pipes = Pipes::open(&scenario);
    pipes.send(&initialize("2025-11-25"));
    assert_eq!(pipes.message()["result"]["protocolVersion"], "2023-01-01");
}

#[test]
fn refuses_tools_before_the_handshake() {
    let mut pipes = Pipes::open(&Scenario::new());
    pipes.send(&request(1, "ping", &json!({})));
    assert_eq!(pipes.message()["result"], json!({}));
    pipes.send(&request(2, "tools/list", &json!({})));
    assert_eq!(pipes.message()["error"]["code"], -32600);
}

#[test]
fn each_era_refuses_the_other() {
    let mut legacy = Pipes::open(&Scenario::new());
    legacy.send(&request(1, "server/discover", &stateless(json!({}))));
    assert_eq!(legacy.message()["error"]["code"], -32601);

    let mut modern = Pipes::open(&Scenario::new().versions([STATELESS_VERSION]));
    modern.send(&initialize("2025-11-25"));
    let error = modern.message()["error"].clone();
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"]["supported"], json!([STATELESS_VERSION]));
}

#[test]
fn serves_stateless_requests() {
    let scenario = one(Reply::text("hi")).versions([STATELESS_VERSION]);
    let mut pipes = Pipes::open(&scenario);
    pipes.send(&request(1, "server/discover", &stateless(json!({}))));
    let discovery = pipes.message()["result"].clone();
    assert_eq!(discovery["supportedVersions"], json!([STATELESS_VERSION]));
    pipes.send(&request(2, "tools/list", &stateless(json!({}))));
    assert_eq!(pipes.message()["result"]["resultType"], "complete");
    pipes.send(&request(
        3,
        "tools/call",
        &stateless(json!({ "name": "t" })),
    ));
    assert_eq!(pipes.message()["result"]["content"][0]["text"], "hi");
    pipes.send(&request(4, "tools/call", &json!({ "name": "t" })));
    assert_eq!(pipes.message()["error"]["code"], -32600);
}

#[test]
fn asks_a_stateless_client_for_input_by_its_answer() {
    let reply = Reply::text("done").before(Before::Elicit(Elicit::default()));
    let mut pipes = Pipes::open(&one(reply).versions([STATELESS_VERSION]));
    pipes.send(&request(
        1,
        "tools/call",
        &stateless(json!({ "name": "t" })),
    ));
    let result = pipes.message()["result"].clone();
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(
        result["inputRequests"]["input-1"]["method"],
        "elicitation/create"
    );
    let input = json!({ "input-1": { "action": "accept", "content": { "proceed": true } } });
    let params = json!({ "name": "t", "inputResponses": input, "requestState": "mock" });
    pipes.send(&request(2, "tools/call", &stateless(params)));
    assert_eq!(pipes.message()["result"]["content"][0]["text"], "done");
}

#[test]
fn announces_list_changes_to_a_stateless_subscription() {
    let scenario = Scenario::new()
        .tool(Tool::new("a"))
        .tool(Tool::new("b").appears_after(1))
        .versions([STATELESS_VERSION]);
    let mut pipes = Pipes::open(&scenario);
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    pipes.send(&request(7, "subscriptions/listen", &stateless(filter)));
    let acknowledged = pipes.message();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        7
    );
    pipes.send(&request(
        8,
        "tools/call",
        &stateless(json!({ "name": "a" })),
    ));
    let messages = [pipes.message(), pipes.message()];
    let changed = messages
        .iter()
        .find(|m| m["method"] == "notifications/tools/list_changed");
    let meta = &changed.expect("the announcement")["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], 7);
}

#[test]
fn describes_tools_as_told() {
    let tool = Tool::new("t")
        .title("T")
        .description("does t")
        .input_schema(json!({ "type": "object", "required": ["a"] }))
        .output_schema(json!({ "type": "object" }))
        .annotations(json!({ "readOnlyHint": true }))
        .meta(json!({ "k": 1 }));
    let mut pipes = Pipes::handshake(&Scenario::new().tool(tool));
    pipes.send(&request(1, "tools/list", &json!({})));
    let expected = json!([{
        "name": "t", "title": "T", "description": "does t",
        "inputSchema": { "type": "object", "required": ["a"] },
        "outputSchema": { "type": "object" },
        "annotations": { "readOnlyHint": true }, "_meta": { "k": 1 },
    }]);
    assert_eq!(pipes.message()["result"], json!({ "tools": expected }));
}

#[test]
fn consumes_replies_in_order_and_repeats_the_last() {
    let tool = Tool::new("t").replies([Reply::text("1"), Reply::tool_error("2")]);
    let mut pipes = Pipes::handshake(&Scenario::new().tool(tool));
    for (id, text) in [(1, "1"), (2, "2"), (3, "2")] {
        let answer = pipes.call(id, "t", &json!({}));
        assert_eq!(answer["result"]["content"][0]["text"], text);
        assert_eq!(answer["result"]["isError"] == true, id > 1);
    }
    assert_eq!(pipes.journal().calls("t").len(), 3);
}

#[test]
fn sends_every_kind_of_content() {
    let reply = Reply::structured(json!({ "a": 1 }))
        .and_text("text")
        .and_image("image/png", "AA==")
        .and_audio("audio/wav", "AA==")
        .and_text_resource("file:///a", "inside")
        .and_blob_resource("file:///b", "AA==")
        .and_resource_link("file:///c", "c")
        .meta(json!({ "m": true }));
    let result = Pipes::handshake(&one(reply)).call(1, "t", &json!({}))["result"].clone();
    let kinds: Vec<&Value> = result["content"]
        .as_array()
        .expect("blocks")
        .iter()
        .map(|block| &block["type"])
        .collect();
    let expected = [
        "text",
        "image",
        "audio",
        "resource",
        "resource",
        "resource_link",
    ];
    assert_eq!(kinds, expected.map(Value::from).iter().collect::<Vec<_>>());
    assert_eq!(result["structuredContent"], json!({ "a": 1 }));
    assert_eq!(result["_meta"], json!({ "m": true }));
}

#[test]
fn raw_results_and_echoes_keep_their_bytes() {
    let raw =
        r#"{"content":[ ],"structuredContent":{"x":1.10,"n":123456789012345678901234567890}}"#;
    let mut pipes = Pipes::handshake(&one(Reply::raw(raw)));
    pipes.send(&call(1, "t", &json!({})));
    assert_eq!(
        pipes.text(),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{raw}}}\n")
    );
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    pipes.send(&format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"echo","arguments":{{"d":{deep},"f":1.50}}}}}}"#
    ));
    assert!(
        pipes
            .text()
            .contains(&format!(r#""structuredContent":{{"d":{deep},"f":1.50}}"#))
    );
}

#[test]
fn computes() {
    let scenario = Scenario::new()
        .tool(Tool::new("count").reply(Reply::compute(Compute::Counter(Counter {}))))
        .tool(Tool::new("rows").reply(Reply::compute(Compute::Rows(Rows { count: 3, seed: 9 }))))
        .tool(Tool::sleep("sleep", 60_000));
    let mut pipes = Pipes::handshake(&scenario);
    assert_eq!(
        pipes.call(1, "count", &json!({}))["result"]["structuredContent"]["count"],
        1
    );
    assert_eq!(
        pipes.call(2, "count", &json!({}))["result"]["structuredContent"]["count"],
        2
    );
    let rows = pipes.call(3, "rows", &json!({ "count": 2 }));
    assert_eq!(
        rows["result"]["structuredContent"]["rows"]
            .as_array()
            .expect("rows")
            .len(),
        2
    );
    let slept = pipes.call(4, "sleep", &json!({ "ms": 1 }));
    assert_eq!(slept["result"]["structuredContent"]["slept_ms"], 1);
}

#[test]
fn calls_overlap_and_a_cancelled_one_is_not_answered() {
    let mut pipes = Pipes::handshake(&Scenario::new().tool(Tool::sleep("sleep", 60_000)));
    pipes.send(&call(1, "sleep", &json!({})));
    assert_eq!(pipes.call(2, "sleep", &json!({ "ms": 1 }))["id"], 2);
    pipes.send(&cancel(1));
    pipes
        .journal()
        .wait_until(|journal| journal.cancelled() == ["1"], DEADLINE);
    assert_eq!(pipes.call(3, "sleep", &json!({ "ms": 1 }))["id"], 3);
}

#[test]
fn pages_tools() {
    let scenario = (0..5).fold(Scenario::new().page_size(2), |scenario, n| {
        scenario.tool(Tool::new(&format!("t{n}")))
    });
    let mut pipes = Pipes::handshake(&scenario);
    let mut cursor = json!({});
    let mut names = Vec::new();
    for id in 1..=3 {
        pipes.send(&request(id, "tools/list", &cursor));
        let result = pipes.message()["result"].clone();
        names.extend(
            result["tools"]
                .as_array()
                .expect("tools")
                .iter()
                .map(|t| t["name"].clone()),
        );
        cursor = json!({ "cursor": result["nextCursor"] });
    }
    assert_eq!(names, ["t0", "t1", "t2", "t3", "t4"]);
    assert_eq!(cursor, json!({ "cursor": null }));
}

#[test]
fn tools_come_and_go_with_an_announcement() {
    let scenario = Scenario::new()
        .tool(Tool::new("a"))
        .tool(Tool::new("new").appears_after(2))
        .tool(Tool::new("old").vanishes_after(2));
    let mut pipes = Pipes::handshake(&scenario);
    assert_eq!(pipes.call(1, "new", &json!({}))["error"]["code"], -32602);
    pipes.call(2, "a", &json!({}));
    pipes.send(&call(3, "a", &json!({})));
    let messages = [pipes.message(), pipes.message()];
    assert!(
        messages
            .iter()
            .any(|m| m["method"] == "notifications/tools/list_changed")
    );
    pipes.send(&request(4, "tools/list", &json!({})));
    let tools = pipes.message()["result"]["tools"].clone();
    let names: Vec<&Value> = tools
        .as_array()
        .expect("tools")
        .iter()
        .map(|t| &t["name"])
        .collect();
    assert_eq!(names, ["a", "new"]);
}

#[test]
fn talks_before_it_answers() {
    let reply = Reply::text("done")
        .before(Before::Progress(Progress {
            progress: 1,
            total: Some(2),
            message: None,
        }))
        .before(Before::Log(Log::default()))
        .before(Before::Wait(Wait { ms: 1 }))
        .before(Before::Elicit(Elicit::default()))
        .before(Before::Sample(Sample::default()))
        .before(Before::Roots(Roots {}))
        .before(Before::Ping(Ping {}));
    let mut pipes = Pipes::handshake(&one(reply));
    let params = json!({ "name": "t", "_meta": { "progressToken": "p" } });
    pipes.send(&request(1, "tools/call", &params));
    let progress = pipes.message();
    assert_eq!(
        progress["params"],
        json!({ "progress": 1, "total": 2, "progressToken": "p" })
    );
    assert_eq!(pipes.message()["method"], "notifications/message");
    for method in [
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
        "ping",
    ] {
        let ask = pipes.message();
        assert_eq!(ask["method"], method);
        let answer = json!({ "jsonrpc": "2.0", "id": ask["id"], "result": { "for": method } });
        pipes.send(&answer.to_string());
    }
    assert_eq!(pipes.message()["result"]["content"][0]["text"], "done");
    let answers = pipes.journal().of(Event::Answer);
    assert_eq!(answers[0].answer(), json!({ "for": "elicitation/create" }));
    assert_eq!(answers.len(), 4);
}

#[test]
fn what_is_no_message_is_noted_and_answered() {
    let mut pipes = Pipes::handshake(&Scenario::new());
    pipes.send("nonsense");
    let answer = pipes.message();
    assert_eq!(
        (&answer["error"]["code"], &answer["id"]),
        (&json!(-32700), &Value::Null)
    );
    pipes.send(&request(1, "no/such/method", &json!({})));
    assert_eq!(pipes.message()["error"]["code"], -32601);
    assert_eq!(
        pipes.journal().of(Event::Unreadable)[0].note.as_deref(),
        Some("nonsense")
    );
}

#[test]
fn ends_with_stdin() {
    let mut pipes = Pipes::handshake(&Scenario::new());
    pipes.close_stdin();
    assert!(pipes.exit().success());
}
