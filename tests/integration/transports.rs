//! What holds over every transport, and what stdio owes: both eras of the protocol, cancellation,
//! processes and their environment (sections D4 and D5).

use std::collections::{BTreeMap, BTreeSet};

use mock_servers::fault::{
    CloseStdin, CloseStdout, Grandchild, IgnoreSigterm, IgnoreStdinEnd, Noise, StderrFlood,
};
use mock_servers::scenario::{HANDSHAKE_VERSIONS, STATELESS_VERSION};
use mock_servers::{At, Event, Fault, Journal, Mock, Reply, Rule, Scenario, Tool, Transport};
use serde_json::json;

use crate::peer::{Peer, attempts, over_every_transport};
use crate::support::{PATIENCE, Ptc};

fn echo() -> Scenario {
    Scenario::new().tool(Tool::echo("echo"))
}

/// A tool that answers with 1, under a fault.
fn faulty(name: &str, fault: Fault) -> Tool {
    Tool::new(name).reply(Reply::structured(json!({"n": 1})).with_fault(fault))
}

// ---- both eras -------------------------------------------------------------------------------

// contract: D1 C2
#[test]
fn every_version_of_the_protocol_is_spoken() {
    let mut ptc = Ptc::new();
    let mut peers = Vec::new();
    for version in HANDSHAKE_VERSIONS
        .iter()
        .chain([&STATELESS_VERSION])
        .copied()
    {
        for transport in [Transport::Stdio, Transport::Http, Transport::Sse] {
            // The transport of 2024-11-05 is older than the era without a handshake.
            if (transport, version) == (Transport::Sse, STATELESS_VERSION) {
                continue;
            }
            let name = format!("{transport:?}-{version}").to_lowercase();
            let (next, peer) = Peer::join(ptc, transport, &name, echo().versions([version]));
            ptc = next;
            peers.push((name, version, transport, peer));
        }
    }
    let mut session = ptc.start();
    let calls = peers
        .iter()
        .map(|(name, ..)| format!("mcp__{}__echo(v='{name}')", name.replace('-', "_")));
    let output = session.execute(&attempts(calls)).output();
    for ((name, ..), line) in peers.iter().zip(output.lines()) {
        assert_eq!(line, format!("{{'v': '{name}'}}"));
    }
    assert_eq!(output.lines().count(), peers.len());
    session.close();
    for (name, version, transport, peer) in &peers {
        let journal = peer.journal();
        let discovered = journal.method("server/discover").len();
        assert_eq!(
            discovered,
            usize::from(*version == STATELESS_VERSION),
            "{name}"
        );
        if *transport == Transport::Http {
            let call = &journal.calls("echo")[0];
            assert_eq!(
                call.header("mcp-protocol-version"),
                Some(*version),
                "{name}"
            );
        }
    }
}

// ---- stdio -----------------------------------------------------------------------------------

// contract: D5 C2 C3
#[test]
fn a_server_gets_a_minimal_environment() {
    let ptc = Ptc::new()
        .env("SECRET_TOKEN", "s3cret")
        .env("LD_DEBUG_OUTPUT", "x")
        .env("SHELL", "/bin/sh");
    let seen = ptc.folder().join("environment");
    let scenario = ptc.folder().join("scenario.json");
    std::fs::write(&scenario, echo().to_json()).unwrap();
    let script = r#"env > "$SEEN"; exec "$0" --scenario "$1""#;
    let mock = mock_servers::mock_server_binary();
    let mut session = ptc
        .server(json!({
            "name": "s",
            "command": "sh",
            "args": ["-c", script, mock, scenario],
            "env": {"SEEN": seen, "TOKEN": "${SECRET_TOKEN}", "TERM": "dumb"},
            "cwd": "/",
        }))
        .start();
    session.wait_for_tools("connected", |names| !names.is_empty());
    let environment: BTreeMap<String, String> = std::fs::read_to_string(&seen)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    // What the shell itself sets.
    let own = ["PWD", "OLDPWD", "SHLVL", "_"];
    let names: BTreeSet<&str> = environment
        .keys()
        .map(String::as_str)
        .filter(|name| !own.contains(name))
        .collect();
    assert_eq!(
        names,
        BTreeSet::from(["HOME", "PATH", "SHELL", "SEEN", "TERM", "TOKEN"])
    );
    assert_eq!(environment["TOKEN"], "s3cret");
    assert_eq!(environment["TERM"], "dumb");
    assert_eq!(environment["PWD"], "/");
    assert!(!session.log().contains("s3cret"));
    session.close();
}

/// Fields of /proc/<pid>/stat behind the command's name: state, parent, group.
fn group_of(pid: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(2).map(str::to_owned)
}

fn grandchild_of(journal: &Journal) -> String {
    journal.of(Event::Grandchild)[0]
        .note
        .clone()
        .expect("its pid")
}

// contract: D5 S12
#[test]
fn a_server_is_reaped_with_its_children() {
    // It crashes while a grandchild holds its pipes: the loss is noticed all the same.
    let scenario = echo()
        .fault(Rule::new(
            At::Start,
            Fault::Grandchild(Grandchild::default()),
        ))
        .fault(Rule::new(At::Call, Fault::crash()));
    let mut session = Ptc::new().stdio("s", scenario).start();
    session.wait_for_tools("connected", |names| !names.is_empty());
    let journal = session.journal("s");
    let server = journal.of(Event::Start)[0].pid.to_string();
    let grandchild = grandchild_of(&journal);
    assert_eq!(
        group_of(&server),
        Some(server.clone()),
        "it leads its own group"
    );
    assert_eq!(group_of(&grandchild), Some(server));
    let lost = session.execute(&attempts(["mcp__s__echo()"])).output();
    assert!(lost.contains("(the server exited with status 1)"), "{lost}");
    let gone = || group_of(&grandchild).is_none();
    let deadline = std::time::Instant::now() + PATIENCE;
    while !gone() {
        assert!(
            std::time::Instant::now() < deadline,
            "the grandchild lives on"
        );
        std::thread::yield_now();
    }
    session.close();
}

// contract: D5 S12
#[test]
fn a_server_that_will_not_end_is_ended() {
    let scenario = [
        Fault::IgnoreSigterm(IgnoreSigterm {}),
        Fault::IgnoreStdinEnd(IgnoreStdinEnd {}),
        Fault::Grandchild(Grandchild::default()),
    ]
    .into_iter()
    .fold(echo(), |scenario, fault| scenario.always(At::Start, fault));
    let mut session = Ptc::new().stdio("s", scenario).start();
    assert_eq!(
        session.execute("print(await mcp__s__echo(n=1))").output(),
        "{'n': 1}"
    );
    // Which checks that nothing is left.
    session.close();
}

// contract: D4
#[test]
fn lines_that_are_no_messages_are_logged_and_skipped() {
    let noise = |lines: &[&str], glued| {
        Fault::Noise(Noise {
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            times: 3,
            glued,
        })
    };
    let scenario = Scenario::new()
        .tool(faulty(
            "plain",
            noise(
                &["Connecting to db…", "", "{\"level\":\"info\"}", "[1, 2]"],
                false,
            ),
        ))
        .tool(faulty("glued", noise(&["loading 100%"], true)))
        .always(At::Start, noise(&["Welcome to ACME server v1!"], false))
        .always(At::Handshake, noise(&["{ not json"], false))
        .always(At::ToolsList, noise(&["warming up"], false));
    let mut session = Ptc::new().stdio("s", scenario).start();
    let code = attempts(["mcp__s__plain()", "mcp__s__glued()", "mcp__s__plain()"]);
    assert_eq!(
        session.execute(&code).output(),
        "{'n': 1}\n{'n': 1}\n{'n': 1}"
    );
    let log = session.log();
    for line in [
        "Welcome to ACME server v1!",
        "warming up",
        "Connecting to db…",
        "loading 100%",
    ] {
        let logged = log
            .lines()
            .any(|logged| logged.contains(line) && logged.contains("server=s"));
        assert!(logged, "{line}\n{log}");
    }
    assert_eq!(session.journal("s").starts(), 1);
    session.close();
}

// contract: D4
#[test]
fn a_flood_on_stderr_blocks_nobody_and_goes_to_the_log_with_the_name() {
    let flood = |lines| {
        Fault::StderrFlood(StderrFlood {
            bytes: 4 << 20,
            lines,
        })
    };
    let scenario = Scenario::new()
        .tool(faulty("lines", flood(true)))
        .tool(faulty("one_line", flood(false)))
        .tool(faulty(
            "dies",
            Fault::Crash(mock_servers::fault::Crash {
                exit_code: Some(70),
                stderr: (1..=15).map(|n| format!("line {n}")).collect(),
                ..Default::default()
            }),
        ));
    let mut session = Ptc::new().stdio("s", scenario).start();
    let code = attempts(["mcp__s__lines()", "mcp__s__one_line()"]);
    assert_eq!(session.execute(&code).output(), "{'n': 1}\n{'n': 1}");
    let died = session.execute(&attempts(["mcp__s__dies()"])).output();
    let last: Vec<String> = (6..=15).map(|n| format!("line {n}")).collect();
    let reason = format!(
        "the server exited with status 70; its last words: {}",
        last.join(" | ")
    );
    assert!(died.contains(&reason), "{died}");
    let log = session.log();
    assert!(
        log.lines().any(|line| line.contains("server=s")
            && line.contains("stderr: ")
            && line.contains("nobody wants to read")),
        "no line of the flood"
    );
    session.close();
}

// contract: D1 D2 D3
#[test]
fn a_pipe_that_is_closed_is_a_loss_although_the_process_lives() {
    let closing = |fault| echo().always(At::Call, fault).healthy_on_restart();
    let mut session = Ptc::new()
        .stdio("mute", closing(Fault::CloseStdout(CloseStdout {})))
        .stdio("deaf", closing(Fault::CloseStdin(CloseStdin {})))
        .start();
    let mute = session
        .execute(&attempts(["mcp__mute__echo(n=1)"]))
        .output();
    assert!(mute.contains("lost its connection"), "{mute}");
    assert!(
        mute.contains("(the server closed its standard output)"),
        "{mute}"
    );
    // The answer still came; the next message has nowhere to go.
    let code = attempts(["mcp__deaf__echo(n=1)", "mcp__deaf__echo(n=2)"]);
    let output = session.execute(&code).output();
    let (first, second) = output.split_once('\n').unwrap();
    assert_eq!(first, "{'n': 1}");
    assert!(
        second.contains("(the server closed its standard input)"),
        "{second}"
    );
    session.wait_for_tools("both back", |names| names.len() == 2);
    let code = attempts(["mcp__mute__echo(n=3)", "mcp__deaf__echo(n=3)"]);
    assert_eq!(session.execute(&code).output(), "{'n': 3}\n{'n': 3}");
    for server in ["mute", "deaf"] {
        assert_eq!(session.journal(server).starts(), 2, "{server}");
    }
    session.close();
}

// contract: D2 D4 B1
#[test]
fn a_server_that_reads_nothing_more_costs_its_calls_only() {
    let deaf = Fault::Hang(mock_servers::fault::Hang { deaf: true });
    let mut session = Ptc::new()
        .execution("tool_call_timeout_seconds", 1.5)
        .stdio("deaf", echo().always(At::Call, deaf))
        .stdio("well", echo())
        .start();
    // More than a pipe holds.
    let code = "
import asyncio
calls = [mcp__deaf__echo(text='x' * 100_000, n=n) for n in range(5)]
errors = await asyncio.gather(*calls, return_exceptions=True)
print(set(map(str, errors)))
";
    let output = session.execute(code).output();
    assert_eq!(output, r#"{"'mcp__deaf__echo' timed out after 1.5s"}"#);
    assert_eq!(
        session
            .execute("print(await mcp__well__echo(n=1))")
            .output(),
        "{'n': 1}"
    );
    session.close();
}

// ---- cancellation ----------------------------------------------------------------------------

over_every_transport! {
    // contract: D4 S11
    fn a_cancelled_request_is_cancelled_downstream(transport) {
        let scenario = Scenario::new().tool(Tool::sleep("sleep", 600_000));
        let (ptc, peer) = Peer::join(Ptc::new(), transport, "s", scenario);
        let mut session = ptc.start();
        let running = session.send_tool_call("execute_program", json!({"code": "await mcp__s__sleep()"}));
        peer.journal().wait_until(|journal| !journal.calls("sleep").is_empty(), PATIENCE);
        session.notify("notifications/cancelled", json!({"requestId": running}));
        peer.journal().wait_until(|journal| !journal.cancelled().is_empty(), PATIENCE);
        let called = peer.journal().calls("sleep")[0].id().map(str::to_owned);
        assert_eq!(peer.journal().cancelled().first(), called.as_ref());
        session.close();
        assert_eq!(peer.handshakes(), 1);
    }
}

/// Over HTTP without a handshake, the closed response stream is the cancellation.
// contract: D4 S11
#[test]
fn a_cancelled_request_closes_its_stream_in_the_stateless_era() {
    let scenario = Scenario::new()
        .versions([STATELESS_VERSION])
        .tool(Tool::sleep("sleep", 600_000));
    let mock = Mock::http(scenario);
    let mut session = Ptc::new().http("s", &mock.url()).start();
    let running =
        session.send_tool_call("execute_program", json!({"code": "await mcp__s__sleep()"}));
    let journal = mock.journal();
    journal.wait_until(|journal| !journal.calls("sleep").is_empty(), PATIENCE);
    session.notify("notifications/cancelled", json!({"requestId": running}));
    journal.wait_until(
        |journal| !journal.of(Event::Disconnected).is_empty(),
        PATIENCE,
    );
    session.close();
}
