//! The scenarios that ship: each shows what the README says of it.

use std::collections::BTreeSet;
use std::path::Path;

use mock_servers::fault::Grandchild;
use mock_servers::{Event, Fault, Mock, Scenario};
use serde_json::{Value, json};

use crate::client::{DEADLINE, Exchange, Http, Pipes, call, cancel, request, stateless};

fn named(name: &str) -> Scenario {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Scenario::load(&root.join("scenarios").join(format!("{name}.yaml"))).expect("a scenario")
}

fn tools(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().expect("tools");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn everything_healthy() {
    let mut pipes = Pipes::handshake(&named("everything-healthy"));
    pipes.send(&request(1, "tools/list", &json!({})));
    let first = pipes.message();
    pipes.send(&request(
        2,
        "tools/list",
        &json!({ "cursor": first["result"]["nextCursor"] }),
    ));
    let names = [tools(&first), tools(&pipes.message())].concat();
    assert_eq!(names, ["echo", "sleep", "counter", "rows", "report"]);
    for (id, name) in (3..).zip(&names) {
        pipes.send(&call(id, name, &json!({ "ms": 1 })));
        let answer = loop {
            let message = pipes.message();
            if message["id"] == id {
                break message;
            }
        };
        assert!(answer["result"]["content"].is_array(), "{answer}");
    }
    pipes.send(&request(9, "server/discover", &stateless(json!({}))));
    assert_eq!(pipes.message()["result"]["resultType"], "complete");
}

#[test]
fn dies_on_the_second_call() {
    let mut pipes = Pipes::handshake(&named("dies-on-the-second-call"));
    let rows = pipes.call(1, "get_rows", &json!({}))["result"].clone();
    assert_eq!(rows["structuredContent"], json!({ "rows": [1, 2] }));
    pipes.send(&call(2, "get_rows", &json!({})));
    assert_eq!(pipes.line(), None);
    let mut pipes = pipes.restart();
    pipes.shake_hands();
    for id in [1, 2] {
        assert_eq!(pipes.call(id, "get_rows", &json!({}))["id"], id);
    }
}

#[test]
fn never_starts() {
    let mut pipes = Pipes::open(&named("never-starts"));
    for _ in 0..3 {
        assert_eq!(pipes.wait_for_exit().code(), Some(3));
        pipes = pipes.restart();
    }
    pipes.shake_hands();
}

#[test]
fn chatty() {
    let mut pipes = Pipes::open(&named("chatty"));
    assert_eq!(pipes.text(), "Server v1.0 starting\n");
    assert_eq!(pipes.message(), json!({ "level": "info" }));
    pipes.shake_hands();
    pipes.send(&call(1, "echo", &json!({})));
    assert_eq!(pipes.text(), "DEBUG: connecting to the database\n");
    assert_eq!(pipes.message()["id"], 1);
}

#[test]
fn hangs_and_answers_late() {
    let mut pipes = Pipes::handshake(&named("hangs-and-answers-late"));
    pipes.send(&call(1, "query", &json!({})));
    pipes.send(&call(2, "query", &json!({})));
    assert_eq!(pipes.call(3, "query", &json!({}))["id"], 3);
    pipes.send(&cancel(1));
    pipes.send(&cancel(2));
    assert_eq!(pipes.message()["id"], 2);
}

#[test]
fn too_large() {
    let mut pipes = Pipes::handshake(&named("too-large"));
    for id in 1..=3 {
        pipes.send(&call(id, "dump", &json!({})));
        assert!(pipes.line().expect("a line").len() > 32 << 20);
    }
    assert_eq!(pipes.call(4, "dump", &json!({}))["id"], 4);
}

#[test]
fn changes_its_tools() {
    let mut pipes = Pipes::handshake(&named("changes-its-tools"));
    pipes.call(1, "login", &json!({}));
    pipes.send(&request(2, "tools/list", &json!({})));
    assert_eq!(tools(&pipes.message()), ["login", "old_report"]);
    pipes.send(&call(3, "login", &json!({})));
    let messages = [pipes.message(), pipes.message()];
    assert!(
        messages
            .iter()
            .any(|m| m["method"] == "notifications/tools/list_changed")
    );
    pipes.send(&request(4, "tools/list", &json!({})));
    assert_eq!(tools(&pipes.message()), ["login", "new_report"]);
}

#[test]
fn will_not_die() {
    let mut scenario = named("will-not-die");
    // Here nobody reaps the grandchild: a short life is long enough.
    for rule in &mut scenario.faults {
        if let Fault::Grandchild(_) = rule.fault {
            rule.fault = Fault::Grandchild(Grandchild { seconds: 2 });
        }
    }
    let mut pipes = Pipes::handshake(&scenario);
    let kill = std::process::Command::new("kill")
        .arg(pipes.pid().to_string())
        .status();
    assert!(kill.expect("kill runs").success());
    pipes.close_stdin();
    let journal = pipes.journal();
    journal.wait_until(|journal| !journal.of(Event::StdinEnd).is_empty(), DEADLINE);
    assert!(pipes.is_alive());
    assert_eq!(journal.of(Event::Grandchild).len(), 1);
}

#[test]
fn rate_limited() {
    let mock = Mock::http(named("rate-limited"));
    let client = Http::handshake(&mock.url());
    let statuses: Vec<u16> = (1..=6)
        .map(|id| client.post(&call(id, "echo", &json!({}))).status)
        .collect();
    // The sixth never gets to the rule that would strike it: its session is gone.
    assert_eq!(statuses, [200, 200, 429, 200, 404, 404]);
}

#[test]
fn cut_streams() {
    let mock = Mock::http(named("cut-streams"));
    let client = Http::handshake(&mock.url());
    assert!(!client.post(&call(1, "echo", &json!({}))).complete);
    let cut = client.post(&call(2, "echo", &json!({})));
    let text = cut.text();
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("id: "))
        .expect("an event id");
    let rest = client
        .get(&[("Last-Event-ID", id)])
        .response()
        .expect("a response");
    assert_eq!(rest.messages()[0]["id"], 2);
    assert!(client.post(&call(3, "echo", &json!({}))).complete);
}

#[test]
fn no_tls() {
    let mock = Mock::http(named("no-tls"));
    let url = mock.url();
    assert!(url.starts_with("https://"), "{url}");
    Http::handshake(&url.replace("https", "http"));
}

#[test]
fn accepts_no_notifications() {
    let mock = Mock::http(named("accepts-no-notifications"));
    let client = Http::handshake(&mock.url());
    let statuses = [1, 2].map(|id| client.post(&cancel(id)).status);
    assert_eq!(statuses, [500, 503]);
    assert!(client.post(&call(1, "echo", &json!({}))).complete);
    let session = client.session.as_deref().expect("a session");
    let end = Exchange::open(&client.url, "DELETE", &[("Mcp-Session-Id", session)], "");
    assert_eq!(end.response().expect("a response").status, 405);
}

#[test]
fn the_readme_lists_each_and_this_file_tests_each() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    let listed: BTreeSet<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `scenarios/")?.split(".yaml`").next())
        .collect();
    let found: BTreeSet<String> = std::fs::read_dir(root.join("scenarios"))
        .expect("the scenarios")
        .map(|entry| entry.expect("an entry").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    assert!(
        found.iter().map(String::as_str).eq(listed.iter().copied()),
        "{found:?} {listed:?}"
    );
    let tests = include_str!("named.rs");
    for name in listed {
        assert!(
            tests.contains(&format!("named(\"{name}\")")),
            "no test shows {name}"
        );
    }
}

#[test]
fn starts_are_counted_by_the_journal_and_by_nothing_else() {
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let files = || {
        let files = std::fs::read_dir(scenarios).expect("it is there");
        files.count()
    };
    let before = files();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_mock-server"))
        .args(["--transport", "stdio", "--scenario"])
        .arg(format!("{scenarios}/never-starts.yaml"))
        .output()
        .expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("which takes a --journal"), "{said}");
    assert_eq!(files(), before);
}
