//! The configuration file as the person meets it: where it is looked for, what it means, and what
//! is said about mistakes (section C).

use std::path::Path;
use std::process::{Command, Output, Stdio};

use mock_servers::{Mock, Scenario, StdioMock, Tool};
use serde_json::{Value, json};

use crate::processes::{self, LINUX, Process};
use crate::support::{PATIENCE, Ptc};

fn echo() -> Scenario {
    Scenario::new().tool(Tool::echo("echo"))
}

/// Runs to the end with an empty stdin, which ends a server that serves.
fn run(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

// contract: C1
#[test]
fn a_named_file_must_exist_and_the_default_may_be_absent() {
    let ptc = Ptc::new().without_config();
    let missing = ptc.folder().join("nowhere.yaml");
    let named: [fn(&mut Command, &Path); 2] = [
        |command, path| {
            command.env("PTC_MCP_CONFIG", path);
        },
        |command, path| {
            command.arg("--config").arg(path);
        },
    ];
    for name in named {
        let mut command = ptc.command();
        name(&mut command, &missing);
        let (status, stdout, stderr) = run(&mut command);
        assert_eq!((status, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains("nowhere.yaml"), "{stderr}");
    }
    // A folder is there, but is no file.
    let (status, _, stderr) = run(ptc.command().env("PTC_MCP_CONFIG", ptc.folder()));
    assert_eq!(status, 2, "{stderr}");
    let (status, _, stderr) = run(&mut ptc.command());
    assert_eq!(status, 0, "{stderr}");
    // An empty variable is how shells spell "unset".
    let (status, _, stderr) = run(ptc.command().env("PTC_MCP_CONFIG", ""));
    assert_eq!(status, 0, "{stderr}");
}

// contract: C1
#[test]
fn the_option_comes_before_the_variable_before_the_working_directory() {
    let ptc = Ptc::new().without_config();
    let file = |name: &str, server: &str| {
        let path = ptc.folder().join(name);
        let text = format!("servers: [{{name: {server}, command: /nonexistent}}]");
        std::fs::write(&path, text).unwrap();
        path
    };
    let (here, variable, option) = (
        file("config.yaml", "here"),
        file("variable.yaml", "variable"),
        file("option.yaml", "option"),
    );
    assert!(here.exists());
    let with = |command: &mut Command| run(command.arg("tools")).1;
    let found = with(&mut ptc.command());
    assert!(found.starts_with("here "), "{found}");
    let found = with(ptc.command().env("PTC_MCP_CONFIG", &variable));
    assert!(found.starts_with("variable "), "{found}");
    let found = with(
        ptc.command()
            .env("PTC_MCP_CONFIG", &variable)
            .arg("--config")
            .arg(&option),
    );
    assert!(found.starts_with("option "), "{found}");
}

// contract: C2
#[test]
fn three_transports_a_working_directory_and_a_switch() {
    let (http, sse) = (Mock::http(echo()), Mock::sse(echo()));
    let elsewhere = tempfile::tempdir().unwrap();
    let mut session = Ptc::new()
        .stdio_with("local", echo(), json!({"cwd": elsewhere.path()}))
        .stdio_with("off", echo(), json!({"enabled": false}))
        .http("remote", &http.url())
        .sse("older", &sse.url())
        .start();
    assert_eq!(
        session.callable(),
        ["mcp__local__echo", "mcp__older__echo", "mcp__remote__echo"]
    );
    let code = "for tool in mcp__local__echo, mcp__older__echo, mcp__remote__echo:\n    print(await tool(a=1))";
    assert_eq!(session.execute(code).output(), ["{'a': 1}"; 3].join("\n"));
    let local = session.journal("local").entries()[0].pid;
    if let Ok(directory) = std::fs::read_link(format!("/proc/{local}/cwd")) {
        assert_eq!(directory, elsewhere.path().canonicalize().unwrap());
    }
    assert_eq!(session.journal("off").starts(), 0);
    session.close();
}

// contract: C3
#[test]
fn variables_expand_once_wherever_they_may_stand() {
    let http = Mock::http(echo());
    let ptc = Ptc::new();
    let mock = StdioMock::new(ptc.folder(), "local", &echo());
    let mut session = ptc
        .env("PROGRAM", mock.command().to_str().unwrap())
        .env("SCENARIO", &mock.args()[0])
        .env("HOST", http.url().trim_start_matches("http://"))
        .env("TOKEN", "s3cret-tok3n")
        .env("NESTED", "${TOKEN}")
        .env("EMPTY", "")
        .env("PTC_MCP_LOG", "trace")
        .server(json!({
            "name": "local",
            "command": "${PROGRAM}",
            "args": std::iter::once("${SCENARIO}".to_owned())
                .chain(mock.args().into_iter().skip(1))
                .collect::<Vec<_>>(),
            "env": {
                "A": "${TOKEN}", "B": "${UNSET:-fallback}", "C": "${EMPTY:-default}", "D": "${NESTED}",
                "E": "$$ $x $", "F": "${EMPTY}", "G": "${UNSET:-}",
            },
            "cwd": "${NOWHERE:-/}",
        }))
        .server(json!({
            "name": "remote",
            "transport": "http",
            "url": "http://${HOST}",
            "headers": {"Authorization": "Bearer ${TOKEN}", "X-Plain": "$$1"},
        }))
        .start();
    let list = session.call_tool("list_callable_tools", json!({}));
    assert_eq!(
        list.texts,
        [r#"["mcp__local__echo","mcp__remote__echo"]"#],
        "{:#?}",
        http.journal().entries()
    );
    let environment = processes::environment(session.journal("local").entries()[0].pid);
    for variable in [
        "A=s3cret-tok3n",
        "B=fallback",
        "C=default",
        "D=${TOKEN}",
        "E=$ $x $",
        "F=",
        "G=",
    ] {
        let found = environment.iter().any(|entry| entry == variable);
        assert!(found || !LINUX, "{variable}");
    }
    let request = &http.journal().method("tools/list")[0];
    assert_eq!(request.header("authorization"), Some("Bearer s3cret-tok3n"));
    assert_eq!(request.header("x-plain"), Some("$1"));
    let log = session.log();
    assert!(!log.contains("s3cret"), "{log}");
    session.close();
}

// contract: C3
#[test]
fn secrets_are_in_no_reason_either() {
    let refusing = Mock::http(echo().require_header("authorization", "another"));
    let (host, secret) = (refusing.url(), "s3cret-tok3n");
    let mut session = Ptc::new()
        .env("TOKEN", secret)
        .env("PTC_MCP_LOG", "trace")
        .server(json!({"name": "a", "transport": "http", "url": host, "headers": {"Authorization": "${TOKEN}"}}))
        .server(json!({"name": "b", "transport": "http", "url": "http://127.0.0.1:1/${TOKEN}?key=${TOKEN}"}))
        .server(json!({"name": "c", "command": "/bin/sh", "args": ["-c", "exit 3 # ${TOKEN}"], "env": {"K": "${TOKEN}"}}))
        .server(json!({"name": "d", "transport": "sse", "url": "http://user:${TOKEN}@127.0.0.1:1/"}))
        .start();
    let list = session.call_tool("list_callable_tools", json!({}));
    assert_eq!(list.texts.len(), 2);
    let said = format!("{} {} {}", list.texts[1], list.raw, session.log());
    assert!(!said.contains(secret), "{said}");
    session.close();
}

// contract: C4 C7
#[test]
fn allow_and_block_decide_what_is_callable() {
    let scenario = || {
        ["get-x", "get_x", "set_x", "del"]
            .iter()
            .fold(Scenario::new(), |s, name| s.tool(Tool::echo(name)))
    };
    let all = [
        "mcp__a__del",
        "mcp__a__get_x",
        "mcp__a__get_x_2",
        "mcp__a__set_x",
    ];
    type Rule = Option<(&'static str, Value)>;
    let cases: [(Rule, &[&str]); 7] = [
        (None, &all),
        (Some(("allow", json!([]))), &[]),
        (Some(("allow", json!(["mcp__a__get_*"]))), &all[1..3]),
        // A rule for the name without the suffix is a rule for both.
        (Some(("block", json!(["mcp__a__get_x"]))), &[all[0], all[3]]),
        (
            Some(("block", json!(["mcp__a__get_x_2"]))),
            &[all[0], all[1], all[3]],
        ),
        (Some(("block", json!(["mcp__*"]))), &[]),
        (Some(("block", json!([]))), &all),
    ];
    for (rule, expected) in cases {
        let mut ptc = Ptc::new().stdio("a", scenario());
        if let Some((key, patterns)) = rule.clone() {
            ptc = ptc.set("tools", key, patterns);
        }
        let mut session = ptc.start();
        assert_eq!(session.callable(), expected, "{rule:?}");
        let hidden = all.iter().find(|name| !expected.contains(name));
        if let Some(hidden) = hidden {
            let shown = session.call_tool("inspect_tool", json!({"tool_name": hidden}));
            assert!(shown.text().starts_with("[Tool not found]"));
            let called = session.execute(&format!("await globals()['{hidden}'](a=1)"));
            assert!(called.is_error, "{}", called.text());
            assert!(session.journal("a").method("tools/call").is_empty());
        }
        session.close();
    }
}

// contract: C7 S4
#[test]
fn names_are_made_for_python_and_colliding_ones_stay_callable() {
    let tools = ["read file", "read-file", "read_file", "read_file_2", "été"];
    let scenario = tools
        .iter()
        .fold(Scenario::new(), |s, name| s.tool(Tool::echo(name)));
    let mut session = Ptc::new().stdio("my-server.v2", scenario).start();
    let expected = [
        ("mcp__my_server_v2___t_", "été"),
        ("mcp__my_server_v2__read_file", "read file"),
        ("mcp__my_server_v2__read_file_2", "read_file_2"),
        ("mcp__my_server_v2__read_file_3", "read-file"),
        ("mcp__my_server_v2__read_file_4", "read_file"),
    ];
    assert_eq!(session.callable(), expected.map(|(name, _)| name));
    for (name, original) in expected {
        let called = session.execute(&format!("print(await {name}(a=1))"));
        assert_eq!(called.output(), "{'a': 1}");
        let calls = session.journal("my-server.v2").calls(original).len();
        assert_eq!(calls, 1, "{name} is {original}");
        let shown = session.call_tool("inspect_tool", json!({"tool_name": name}));
        let shown: Value = serde_json::from_str(shown.text()).unwrap();
        let given = shown.get("original_name").and_then(Value::as_str);
        let own = name.trim_start_matches("mcp__my_server_v2__");
        assert_eq!(given.unwrap_or(own), original);
    }
    session.close();
}

// contract: C5
#[test]
fn the_example_file_is_a_configuration() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("config.example.yaml");
    let ptc = Ptc::new().without_config();
    let (status, stdout, stderr) = run(ptc.command().arg("--config").arg(example).arg("check"));
    assert_eq!(status, 0, "{stdout}{stderr}");
}

// contract: C5 C6
#[test]
fn numbers_out_of_range_are_mistakes() {
    for (key, value) in [
        ("timeout_seconds", json!(0)),
        ("timeout_seconds", json!(-1.5)),
        ("max_output_bytes", json!(0)),
        ("max_tool_calls", json!(0)),
        ("max_tool_calls", json!(1.5)),
        ("max_concurrent_calls", json!(0)),
        ("tool_call_timeout_seconds", json!(0)),
        ("max_tool_result_bytes", json!(0)),
        ("max_memory_bytes", json!(0)),
        ("max_scratch_bytes", json!(-1)),
        ("pool", json!(-1)),
        ("max_programs", json!(0)),
        ("max_programs", json!("8")),
        ("sandbox", json!("nonsense")),
        ("trace", json!("on")),
        ("structured_content", json!(true)),
    ] {
        let ptc = Ptc::new().execution(key, value.clone());
        let (status, stdout, stderr) = run(&mut ptc.command());
        assert_eq!((status, stdout.as_str()), (2, ""), "{key}: {value}");
        assert!(stderr.contains(&format!("execution.{key}")), "{stderr}");
    }
    let ptc = Ptc::new()
        .execution("timeout_seconds", 0.5)
        .execution("pool", 0);
    assert_eq!(run(&mut ptc.command()).0, 0);
}

// contract: C6
#[test]
fn every_mistake_is_reported_before_anything_starts() {
    let ptc = Ptc::new();
    let mock = StdioMock::new(ptc.folder(), "fine", &echo());
    let command = mock.command().display();
    let arguments = json!(mock.args());
    let ptc = ptc.config_text(&format!(
        "\
servers:
  - name: fine
    command: {command}
    args: {arguments}
  - name: my-files
    command: x
  - name: my_files
    command: y
  - name: web
    transport: websocket
  - name: bare
  - name: far
    transport: http
  - name: a__b
    command: ${{NOT_SET}}
tools:
  alow: [\"mcp__*\"]
  allow: [\"mcp__[\"]
  block: []
execution:
  timeout_seconds: soon
  max_toolcalls: 5
"
    ));
    let (status, stdout, stderr) = run(&mut ptc.command());
    assert_eq!((status, stdout.as_str()), (2, ""));
    let stderr = stderr.replace(ptc.folder().to_str().unwrap(), "[folder]");
    insta::assert_snapshot!(stderr);
    assert_eq!(mock.journal().starts(), 0);
    for command in ["serve", "run", "tools", "check"] {
        let mut given = ptc.command();
        given.arg(command);
        if command == "run" {
            given.arg("-");
        }
        let (status, _, again) = run(&mut given);
        assert_eq!(status, 2, "{command}");
        assert_eq!(again.lines().count(), stderr.lines().count(), "{command}");
    }
}

// contract: C2 D5
#[test]
fn a_server_gets_a_minimal_environment_and_its_own_group() {
    let mut session = Ptc::new()
        .env("OWN_SECRET", "x")
        .env("TERM", "dumb")
        .stdio_with("s", echo(), json!({"env": {"GIVEN": "1"}}))
        .start();
    let journal = session.journal("s");
    journal.wait_until(|journal| journal.starts() > 0, PATIENCE);
    let pid = journal.entries()[0].pid;
    let environment = processes::environment(pid);
    let mut names: Vec<&str> = environment
        .iter()
        .filter_map(|entry| Some(entry.split_once('=')?.0))
        .collect();
    names.sort_unstable();
    if LINUX {
        assert_eq!(names, ["GIVEN", "HOME", "PATH", "TERM"]);
    }
    let group = rustix::process::getpgid(rustix::process::Pid::from_raw(pid.cast_signed()));
    assert_eq!(group.unwrap().as_raw_nonzero().get(), pid.cast_signed());
    assert_eq!(Process::of(pid).unwrap().parent, session.pid());
    session.callable();
    session.close();
}

// contract: C3
#[test]
fn what_a_variable_put_into_a_command_or_a_folder_is_in_no_text() {
    const KEY: &str = "sk-live-0123456789abcdef";
    let mut session = Ptc::new()
        .env("KEY", KEY)
        .server(json!({"name": "a", "command": "/nope/${KEY}"}))
        .server(json!({"name": "b", "command": "true", "cwd": "/nope/${KEY}"}))
        .start();
    let listed = session.call_tool("list_callable_tools", json!({}));
    assert!(listed.texts[1].contains("[secret]"), "{:?}", listed.texts);
    assert!(!listed.texts[1].contains(KEY), "{:?}", listed.texts);
    assert!(!session.log().contains(KEY), "{}", session.log());
    session.close();
}
