//! The audit log, and secrets that servers repeat (A5, C3).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mock_servers::{At, Fault, Mock, Reply, Rule, Scenario, Tool};
use serde_json::{Value, json};

use crate::support::{Ptc, Session};

fn crm() -> Scenario {
    Scenario::new()
        .tool(Tool::echo("refund"))
        .tool(Tool::echo("close"))
        .tool(Tool::echo("get"))
        .tool(Tool::sleep("slow", 600_000))
}

fn audit(session: &Session) -> Vec<Value> {
    let text = std::fs::read_to_string(session.folder().join("audit.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object a line"))
        .collect()
}

fn audited(arguments: &str) -> Ptc {
    let ptc = Ptc::new().stdio_with("crm", crm(), json!({"env": {"KEY": "${SECRET}"}}));
    let path = ptc.folder().join("audit.jsonl");
    ptc.set("audit", "path", path.to_str().unwrap())
        .set("audit", "arguments", arguments)
        .env("SECRET", "s3cr3t-value")
}

// contract: A5 C3
#[test]
fn every_call_and_program_is_in_the_log_when_its_result_arrives() {
    let mut session = audited("full")
        .set("tools", "limits", json!({"mcp__crm__close": 1}))
        .execution("timeout_seconds", 5)
        .start();
    session.execute(
        "
await mcp__crm__get(key='s3cr3t-value', n=1)
await mcp__crm__close()
await mcp__crm__close()
",
    );
    let log = audit(&session);
    let kinds: Vec<&Value> = log.iter().map(|line| &line["kind"]).collect();
    assert_eq!(kinds, ["call", "call", "call", "program"]);
    assert_eq!(log[0]["arguments"], json!({"key": "[secret]", "n": 1}));
    assert_eq!(log[0]["client"], "test-client");
    assert_eq!(log[0]["outcome"], "ok");
    assert_eq!(
        log[0]["result_bytes"],
        r#"{"key":"s3cr3t-value","n":1}"#.len()
    );
    assert_eq!(log[2]["outcome"], "refused");
    assert!(
        log[2]["error"].as_str().unwrap().contains("tools.limits"),
        "{}",
        log[2]
    );
    assert_eq!(log[3]["outcome"], "failed");
    assert_eq!(log[3]["calls"], 3);
    for line in &log {
        assert_eq!(line["program"], log[0]["program"]);
        assert!(line["time"].as_str().unwrap().ends_with('Z'));
    }
    session.execute("await mcp__crm__slow(key='s3cr3t-value')");
    let log = audit(&session);
    assert_eq!(log[4]["outcome"], "in doubt");
    assert_eq!(log[5]["outcome"], "timed out");
    assert_ne!(log[5]["program"], log[0]["program"]);
    let path = session.folder().join("audit.jsonl");
    assert!(!std::fs::read_to_string(&path).unwrap().contains("s3cr3t"));
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

// contract: A5 C5
#[test]
fn of_arguments_the_log_keeps_a_hash_or_nothing() {
    for (setting, kept) in [("hash", true), ("none", false)] {
        let mut session = audited(setting).start();
        session.execute("await mcp__crm__get(n=12345)");
        let arguments = audit(&session)[0]["arguments"].clone();
        assert_eq!(arguments.is_string(), kept, "{setting}: {arguments}");
        assert!(!arguments.to_string().contains("12345"));
    }
}

// contract: A5
#[test]
fn without_a_log_that_can_be_written_no_program_runs() {
    let ptc = audited("hash");
    let path = ptc.folder().join("audit.jsonl");
    std::fs::create_dir(&path).unwrap();
    let mut session = ptc.start();
    let error = session.execute("await mcp__crm__refund()").error();
    assert!(error.starts_with("AuditError: the audit log "), "{error}");
    assert!(error.contains("audit.jsonl cannot be written: "), "{error}");
    assert!(session.journal("crm").calls("refund").is_empty());
    assert!(
        session.callable().contains(&"mcp__crm__refund".to_owned()),
        "listing still works"
    );
    std::fs::remove_dir(&path).unwrap();
    assert_eq!(
        session.execute("print(await mcp__crm__get(a=1))").output(),
        "{'a': 1}"
    );
}

// contract: A5
#[test]
fn a_log_that_fails_half_way_stops_the_calls_and_is_told() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let mut session = audited("hash").set("audit", "path", "/dev/full").start();
    let result = session.execute(
        "
print(await mcp__crm__get(a=1))
try:
    await mcp__crm__refund()
except ToolError as error:
    print(error)
",
    );
    let output = result.output();
    assert!(
        output.starts_with("{'a': 1}\n'mcp__crm__refund' was refused: the audit log /dev/full"),
        "{output}"
    );
    assert!(
        result.texts[1].starts_with("The audit log /dev/full cannot be written: "),
        "{:?}",
        result.texts
    );
    let next = session.execute("print(1)").error();
    assert!(next.starts_with("AuditError: "), "{next}");
    assert!(session.journal("crm").calls("refund").is_empty());
}

// contract: C3 D4
#[test]
fn a_servers_dying_words_do_not_show_what_it_was_given() {
    let mut session = Ptc::new()
        .server(json!({
            "name": "crm",
            "command": "/bin/sh",
            "args": ["-c", "echo \"bad token $TOKEN and $0\" >&2; exit 3", "--key=${OTHER}"],
            "env": {"TOKEN": "Bearer ${SECRET}"},
        }))
        .env("SECRET", "s3cr3t-value")
        .env("OTHER", "other-value")
        .start();
    let listed = session.call_tool("list_callable_tools", json!({}));
    let reason = &listed.texts[1];
    assert!(
        reason.contains("bad token [secret] and --key=[secret]"),
        "{reason}"
    );
    let status = session.execute("print(await server_status())").output();
    for text in [reason, &status, &session.log()] {
        assert!(
            !text.contains("s3cr3t-value") && !text.contains("other-value"),
            "{text}"
        );
    }
}

// contract: C3 D4
#[test]
fn a_servers_errors_and_noise_do_not_show_what_it_was_given() {
    const WORDS: &str = "bad key s3cr3t-value";
    let refused = |tool: &str| Tool::new(tool).reply(Reply::rpc_error(-32000, WORDS));
    // The cut of a log line goes through the second one.
    let noise = format!("{WORDS} {} s3cr3t-value", "x".repeat(171));
    let scenario = || Scenario::new().tool(refused("refund"));
    let unlisted = || scenario().always(At::ToolsList, Fault::error(-32000, WORDS));
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": WORDS}});
    let refusal = Fault::status_with(400, &[], &body.to_string());
    let http = Mock::http(scenario().fault(Rule::new(At::ToolsList, refusal)));
    let given = json!({"env": {"KEY": "${SECRET}"}});
    let noisy = scenario().always(At::ToolsList, Fault::noise(&[&noise]));
    let ptc = || {
        Ptc::new()
            .stdio_with("noisy", noisy.clone(), given.clone())
            .stdio_with("unlisted", unlisted(), given.clone())
            .server(json!({
                "name": "web", "transport": "http", "url": http.url(),
                "headers": {"X-Key": "${SECRET}"},
            }))
            .env("SECRET", "s3cr3t-value")
    };
    let mut session = ptc().start();
    let listed = session.call_tool("list_callable_tools", json!({}));
    for server in ["unlisted", "web"] {
        let reason = format!("{server} (tools/list: bad key [secret] (code -32000))");
        let reason = reason.replacen(' ', "' is not connected ", 1);
        assert!(listed.texts[1].contains(&reason), "{:?}", listed.texts);
    }
    let error = session.execute("await mcp__noisy__refund()").error();
    assert!(error.contains("bad key [secret]"), "{error}");
    session.wait_for_log("bad key [secret] xxx");
    let check = ptc().command().arg("check").output().unwrap();
    let check = String::from_utf8(check.stdout).unwrap();
    assert!(check.contains("bad key [secret]"), "{check}");
    for text in [&listed.texts[1], &error, &check, &session.log()] {
        assert!(!text.contains("s3cr"), "{text}");
    }
    session.close();
}
