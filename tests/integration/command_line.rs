//! The command line: what a person, a script or a pipe gets to see, and the exit status.

use std::io::Write;
use std::process::{Command, Stdio};

use mock_servers::{At, Event, Fault, Journal, Scenario, Tool};
use serde_json::{Value, json};

use crate::support::{PATIENCE, Ptc, assert_gone, mentioning};

struct Said {
    status: i32,
    stdout: String,
    stderr: String,
}

fn run(ptc: &Ptc, arguments: &[&str]) -> Said {
    run_with(ptc.command().args(arguments), "")
}

/// Runs to the end, and checks that nothing is left.
fn run_with(command: &mut Command, input: &str) -> Said {
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = command.get_current_dir().unwrap().to_owned();
    // Who does not read its stdin may be gone by now.
    let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
    let output = process.wait_with_output().unwrap();
    assert_gone(&folder);
    assert_eq!(std::fs::read_dir(folder.join("tmp")).unwrap().count(), 0);
    Said {
        status: output.status.code().expect("it exits"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn two_servers() -> Ptc {
    let crm = Scenario::new()
        .tool(Tool::echo("find").description("Finds customers. Slowly."))
        .tool(Tool::echo("refund-all"));
    Ptc::new().stdio("crm", crm).stdio("empty", Scenario::new())
}

fn and_a_broken_one() -> Ptc {
    two_servers().server(json!({"name": "gone", "command": "/nonexistent/server"}))
}

fn program(ptc: &Ptc, code: &str) {
    std::fs::write(ptc.folder().join("program.py"), code).unwrap();
}

/// Durations differ from run to run.
fn without_times(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for word in &mut words {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        if bare.contains('.') && bare.parse::<f64>().is_ok() {
            *word = word.replace(bare, "0.0");
        }
    }
    words.join(" ")
}

// contract: S1
#[test]
fn without_a_command_it_serves_and_so_does_serve() {
    for arguments in [&[][..], &["serve"]] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let ptc = Ptc::new();
        let said = run_with(ptc.command().args(arguments), &call.to_string());
        assert_eq!(said.status, 0, "{}", said.stderr);
        let answer: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        assert!(said.stderr.contains("serves 0 configured servers"));
    }
}

// contract: S5 T1 P7
#[test]
fn run_keeps_the_programs_output_apart_from_what_is_said_of_it() {
    let ptc = two_servers();
    program(
        &ptc,
        "print('one')\nprint(await mcp__crm__find(name='x'))\nemit({'n': 2})",
    );
    let said = run(&ptc, &["run", "program.py"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    insta::assert_snapshot!(said.stdout, @r#"
    one
    {'name': 'x'}
    --- result ---
    {"n":2}
    "#);
    assert!(
        said.stderr.starts_with("[tool calls: 1; "),
        "{}",
        said.stderr
    );
    assert_eq!(said.stderr.lines().count(), 1);

    program(&ptc, "print('so far')\nawait mcp__crm__find()\n1 / 0");
    let said = run(&ptc, &["run", "program.py"]);
    assert_eq!((said.status, said.stdout.as_str()), (1, "so far\n"));
    insta::assert_snapshot!(without_times(&said.stderr), @r#"
    the program failed
    Traceback (most recent call last):
      File "<program>", line 3, in <module>
        1 / 0
        ~~^~~
    ZeroDivisionError: division by zero
    Tool calls before the error: 1 answered, 0 in doubt, 0 not sent.
    May have changed something: mcp__crm__find ×1.
    [tool calls: 1; 0.0s]
    "#);
}

// contract: S6
#[test]
fn run_gives_the_structured_result_as_json() {
    let ptc = two_servers();
    for (code, status, ok) in [
        ("emit(await mcp__crm__find(n=1))", 0, true),
        ("1 / 0", 1, false),
    ] {
        program(&ptc, code);
        let said = run(&ptc, &["run", "--json", "program.py"]);
        assert_eq!((said.status, said.stderr.as_str()), (status, ""));
        let result: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(result["ok"], ok);
        assert_eq!(
            result["result"],
            if ok { json!({"n": 1}) } else { Value::Null }
        );
        assert_eq!(said.stdout.lines().count(), 1);
    }
}

#[test]
fn run_takes_a_program_from_stdin() {
    let ptc = Ptc::new();
    let said = run_with(ptc.command().args(["run", "-"]), "print('from stdin')");
    assert_eq!((said.status, said.stdout.as_str()), (0, "from stdin\n"));
    let said = run(&ptc, &["run", "nowhere.py"]);
    assert_eq!((said.status, said.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(said.stderr, @"cannot read nowhere.py: No such file or directory (os error 2)");
    std::fs::write(ptc.folder().join("latin.py"), b"print('\xe9')").unwrap();
    let said = run(&ptc, &["run", "latin.py"]);
    assert_eq!(said.status, 2);
    assert!(said.stderr.contains("latin.py"), "{}", said.stderr);
}

// contract: S11 S12
#[test]
fn an_interrupted_run_is_cleaned_up_and_says_so() {
    let ptc = Ptc::new().stdio("s", Scenario::new().tool(Tool::sleep("sleep", 600_000)));
    program(&ptc, "print('so far')\nawait mcp__s__sleep()");
    for (signal, status) in [
        (rustix::process::Signal::INT, 130),
        (rustix::process::Signal::TERM, 130),
    ] {
        let process = ptc
            .command()
            .args(["run", "program.py"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let journal = Journal::at(ptc.folder().join("s.journal"));
        let before = journal.starts();
        journal.wait_until(
            |journal| journal.calls("sleep").len() > before.saturating_sub(1),
            PATIENCE,
        );
        let pid = rustix::process::Pid::from_raw(process.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let output = process.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(output.stdout, b"so far\n");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            stderr.contains("Cancelled") && stderr.contains("In doubt"),
            "{stderr}"
        );
        assert_gone(ptc.folder());
        std::fs::remove_file(ptc.folder().join("s.journal")).unwrap();
    }
}

// contract: S12
#[test]
fn every_command_can_be_interrupted_while_it_waits() {
    for arguments in [
        &["tools"][..],
        &["check"],
        &["inspect", "mcp__stuck__x"],
        &["run", "program.py"],
    ] {
        let stuck = Scenario::new()
            .always(At::Start, Fault::IgnoreStdinEnd(Default::default()))
            .always(At::Start, Fault::IgnoreSigterm(Default::default()))
            .always(At::Handshake, Fault::hang());
        let ptc = Ptc::new().stdio("stuck", stuck);
        program(&ptc, "await mcp__stuck__x()");
        let process = ptc
            .command()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let journal = Journal::at(ptc.folder().join("stuck.journal"));
        journal.wait_until(|journal| !journal.of(Event::Request).is_empty(), PATIENCE);
        let pid = rustix::process::Pid::from_raw(process.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let output = process.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{arguments:?}");
        assert_gone(ptc.folder());
        assert_eq!(
            std::fs::read_dir(ptc.folder().join("tmp")).unwrap().count(),
            0
        );
    }
}

// contract: S3
#[test]
fn tools_lists_every_server_and_what_it_offers() {
    let ptc = and_a_broken_one();
    let said = run(&ptc, &["tools"]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(said.stdout, @r"
    crm  2 tools
      mcp__crm__find        Finds customers
      mcp__crm__refund_all

    empty  0 tools

    gone  not connected: its command '/nonexistent/server' does not exist
    ");
    let said = run(&ptc, &["tools", "--json"]);
    let listed: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        listed["servers"][0]["tools"][1]["name"],
        "mcp__crm__refund_all"
    );
    assert_eq!(listed["servers"][2]["connected"], false);
    let said = run(&Ptc::new(), &["tools"]);
    assert_eq!(said.stdout, "no servers are configured and enabled\n");
}

// contract: S4
#[test]
fn inspect_shows_a_tool_as_a_model_sees_it() {
    let ptc = and_a_broken_one();
    let said = run(&ptc, &["inspect", "mcp__crm__find"]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    let shown: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(shown["description"], "Finds customers. Slowly.");
    for (name, hint) in [
        ("mcp__crm__fnd", "Closest: mcp__crm__find"),
        ("mcp__gone__x", "server 'gone' is not connected"),
    ] {
        let said = run(&ptc, &["inspect", name]);
        assert_eq!((said.status, said.stdout.as_str()), (1, ""));
        assert!(said.stderr.contains(hint), "{}", said.stderr);
    }
}

// contract: C6 D1
#[test]
fn check_connects_to_each_server_and_fails_if_one_does() {
    let ptc = two_servers();
    let said = run(&ptc, &["check"]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    let stuck = Scenario::new().always(At::Handshake, Fault::hang());
    let ptc =
        and_a_broken_one().stdio_with("stuck", stuck, json!({"connect_timeout_seconds": 0.5}));
    let said = run(&ptc, &["check"]);
    assert_eq!((said.status, said.stderr.as_str()), (1, ""));
    let shown = said
        .stdout
        .replace(ptc.folder().to_str().unwrap(), "[folder]");
    insta::assert_snapshot!(without_times(&shown), @r"
    ok      config: [folder]/config.yaml, 4 servers
    ok      crm    connected in 0.0 s, protocol 2025-11-25, 2 tools
    ok      empty  connected in 0.0 s, protocol 2025-11-25, 0 tools
    failed  gone   its command '/nonexistent/server' does not exist
    failed  stuck  no answer within 0.0 s
    ");
}

// contract: C5
#[test]
fn schema_describes_the_configuration_file() {
    let ptc = Ptc::new().without_config();
    let said = run(&ptc, &["schema"]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    let schema: Value = serde_json::from_str(&said.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let example = include_str!("../../config.example.yaml");
    let example: Value = serde_yaml::from_str(example).unwrap();
    let violations: Vec<String> = validator
        .iter_errors(&example)
        .map(|e| e.to_string())
        .collect();
    assert!(violations.is_empty(), "{violations:?}");
    for mistake in [
        json!({"tools": {"alow": []}}),
        json!({"servers": [{"name": "x", "transport": "websocket"}]}),
        json!({"execution": {"max_tool_calls": 0}}),
    ] {
        assert!(!validator.is_valid(&mistake), "{mistake}");
    }
}

#[test]
fn completions_version_and_help() {
    let ptc = Ptc::new().without_config();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = run(&ptc, &["completions", shell]);
        assert_eq!((said.status, said.stderr.as_str()), (0, ""));
        assert!(said.stdout.contains("inspect"), "{shell}");
    }
    let said = run(&ptc, &["--version"]);
    assert_eq!(
        said.stdout,
        format!("ptc-mcp {}\n", env!("CARGO_PKG_VERSION"))
    );
    let said = run(&ptc, &["--help"]);
    insta::assert_snapshot!(said.stdout, @r"
    An MCP server that runs a model's Python program against your other MCP servers' tools

    Usage: ptc-mcp [OPTIONS] [COMMAND]

    Commands:
      serve        Serve one MCP client over stdin and stdout
      run          Run a program as a model would
      tools        List every server and its tools
      inspect      Show one tool as a model would see it
      check        Check the configuration, then connect to each server
      doctor       Show whether programs can run here, behind which sandbox, and prove it
      schema       Print the JSON Schema of the configuration file
      completions  Print completions for a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  The configuration file [default: $PTC_MCP_CONFIG, else ./config.yaml if it exists]
      -v, --verbose...     Say more on stderr; twice: everything
      -h, --help           Print help
      -V, --version        Print version

    Without a command it serves.
    ");
    for wrong in [&["chekc"][..], &["run"], &["inspect"], &["--nonsense"]] {
        let said = run(&ptc, wrong);
        assert_eq!((said.status, said.stdout.as_str()), (2, ""), "{wrong:?}");
        assert!(said.stderr.starts_with("error: "), "{}", said.stderr);
    }
}

#[test]
fn a_reader_that_is_gone_is_no_error() {
    let ptc = two_servers();
    program(&ptc, "print('x' * 60000)");
    for arguments in [
        &["tools"][..],
        &["schema"],
        &["check"],
        &["completions", "bash"],
        &["run", "program.py"],
    ] {
        let mut process = ptc
            .command()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(process.stdout.take());
        let output = process.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(
            output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_gone(ptc.folder());
}

/// What a command writes to a terminal, both streams together.
fn on_a_terminal(ptc: &Ptc, arguments: &[&str], no_color: &str) -> String {
    let pty = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let command = ptc.command();
    let environment = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let output = Command::new("python3")
        .args(["-c", pty])
        .arg(command.get_program())
        .args(arguments)
        .current_dir(ptc.folder())
        .env_clear()
        .envs(environment)
        .env("TERM", "xterm")
        .env("NO_COLOR", no_color)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn colours_are_for_terminals_and_for_those_who_want_them() {
    let ptc = and_a_broken_one();
    program(&ptc, "await mcp__crm__find()\n1 / 0");
    for arguments in [&["check"][..], &["tools"], &["run", "program.py"]] {
        let said = run(&ptc, arguments);
        assert!(!said.stdout.contains('\x1b') && !said.stderr.contains('\x1b'));
        let coloured = on_a_terminal(&ptc, arguments, "");
        assert!(coloured.contains("\x1b[31m"), "{arguments:?}: {coloured:?}");
        let plain = on_a_terminal(&ptc, arguments, "1");
        // Erasing the live line is no colour.
        assert!(!plain.replace("\x1b[K", "").contains('\x1b'), "{plain:?}");
    }
}

#[test]
fn a_live_line_is_shown_while_servers_connect() {
    let slow = Scenario::new()
        .tool(Tool::echo("echo"))
        .always(At::Handshake, Fault::slow(400));
    let ptc = Ptc::new().stdio("slow", slow);
    let shown = on_a_terminal(&ptc, &["tools"], "1");
    assert!(
        shown.contains("0 of 1 connected; waiting for slow"),
        "{shown:?}"
    );
    let said = run(&ptc, &["tools"]);
    assert_eq!(said.stderr, "");
    assert!(mentioning(ptc.folder()).is_empty());
}
