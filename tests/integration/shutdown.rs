//! How it ends: whoever asks, in good time, and nothing stays behind (section S12).

use std::io::Write;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mock_servers::{At, Event, Fault, Journal, Mock, Reply, Scenario, Tool};
use serde_json::{Value, json};

use crate::processes::{self, Process};
use crate::support::{LEGACY, PATIENCE, Ptc, Session, assert_ended, assert_gone};

/// What the contract allows, and then as much again: the machine may be busy.
const IN_GOOD_TIME: Duration = Duration::from_secs(10);
const AT_ONCE: Duration = Duration::from_secs(10);

fn sleeping() -> Scenario {
    Scenario::new().tool(Tool::sleep("sleep", 600_000))
}

fn grandchild() -> Fault {
    Fault::Grandchild(mock_servers::fault::Grandchild::default())
}

/// Ends for nothing but SIGKILL, and has company.
fn stubborn() -> Scenario {
    sleeping()
        .always(At::Start, Fault::IgnoreStdinEnd(Default::default()))
        .always(At::Start, Fault::IgnoreSigterm(Default::default()))
        .always(At::Start, grandchild())
}

/// A session in the middle of things: two servers, a program that waits for one, and one that
/// listens to nobody.
fn busy() -> (Session, [u64; 2]) {
    let mut session = Ptc::new()
        .stdio("polite", sleeping())
        .stdio("stubborn", stubborn())
        .start();
    let waiting = "print('so far')\nawait mcp__polite__sleep()";
    let deaf = "import asyncio, signal, time\n\
                for s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except Exception: pass\n\
                asyncio.create_task(mcp__stubborn__sleep())\n\
                await asyncio.sleep(0.1)\n\
                while True: time.sleep(600)";
    let programs = [waiting, deaf]
        .map(|code| session.send_tool_call("execute_program", json!({"code": code})));
    for server in ["polite", "stubborn"] {
        let journal = session.journal(server);
        journal.wait_until(|journal| !journal.calls("sleep").is_empty(), PATIENCE);
    }
    (session, programs)
}

/// Asks for the end, by a signal or by closing stdin.
fn ask(session: &mut Session, how: &str) {
    match how {
        "EOF" => session.close_stdin(),
        signal => session.signal(signal),
    }
}

fn grandchild_of(journal: &Journal) -> Process {
    journal.wait_until(
        |journal| !journal.of(Event::Grandchild).is_empty(),
        PATIENCE,
    );
    let pid = journal.of(Event::Grandchild)[0].note.clone().unwrap();
    Process::of(pid.parse().unwrap()).expect("it is alive")
}

// contract: S12
#[test]
fn end_of_input_and_signals_end_everything_in_order() {
    for how in ["EOF", "TERM", "INT", "HUP"] {
        let (mut session, programs) = busy();
        let polite = session.journal("polite");
        let grandchild = grandchild_of(&session.journal("stubborn"));
        let asked = Instant::now();
        ask(&mut session, how);
        let said = session.said_until_the_end();
        let took = asked.elapsed();
        assert!(took < IN_GOOD_TIME, "{how}: {took:?}");
        assert_ended(&[grandchild]);
        // A server that ends when its stdin does is given the chance.
        assert_eq!(polite.of(Event::StdinEnd).len(), 1, "{how}");
        // Those who wait are told what happened.
        assert_eq!(said.len(), 2, "{how}: {said:?}");
        for (answer, id) in said.iter().zip(programs) {
            assert!(said.iter().any(|answer| answer["id"] == id));
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("Cancelled"), "{how}: {text}");
        }
    }
}

// contract: S12
#[test]
fn a_server_that_is_still_connecting_is_ended_too() {
    for how in ["EOF", "TERM"] {
        let stuck = stubborn().always(At::Handshake, Fault::hang());
        let mut session = Ptc::new().stdio("stuck", stuck).start();
        let waiting = session.send_tool_call("list_callable_tools", json!({}));
        let grandchild = grandchild_of(&session.journal("stuck"));
        let asked = Instant::now();
        ask(&mut session, how);
        let said = session.said_until_the_end();
        assert!(asked.elapsed() < IN_GOOD_TIME, "{how}");
        assert_ended(&[grandchild]);
        assert_eq!(said.len(), 1);
        assert_eq!(said[0]["id"], waiting);
    }
}

// contract: S12 D6
#[test]
fn a_session_over_http_is_ended_as_well() {
    let http = Mock::http(sleeping());
    let mut session = Ptc::new().http("remote", &http.url()).start();
    let code = json!({"code": "await mcp__remote__sleep()"});
    session.send_tool_call("execute_program", code);
    let journal = http.journal();
    journal.wait_until(|journal| !journal.calls("sleep").is_empty(), PATIENCE);
    let asked = Instant::now();
    session.close_stdin();
    assert_eq!(session.said_until_the_end().len(), 1);
    assert!(asked.elapsed() < IN_GOOD_TIME);
    let ended = journal.of(Event::Http).into_iter().any(|entry| {
        let request = entry.http.expect("a request");
        request.method == "DELETE" && request.headers.contains_key("mcp-session-id")
    });
    assert!(ended, "{:#?}", journal.entries());
}

// contract: S12
#[test]
fn a_client_that_is_gone_ends_it() {
    let ptc = Ptc::new().stdio("polite", sleeping());
    let mut process = ptc
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    drop(process.stdout.take());
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    writeln!(stdin, "{ping}").unwrap();
    // Its stdin stays open: that nobody reads the answer is enough.
    assert!(exit_of(&mut process).success());
    assert_gone(ptc.folder());
    drop(stdin);
}

fn exit_of(process: &mut Child) -> ExitStatus {
    let asked = Instant::now();
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        assert!(asked.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

// contract: S12
#[test]
fn a_client_that_does_not_read_delays_nothing() {
    let ptc = Ptc::new().stdio("stubborn", stubborn());
    let mut process = ptc
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let initialize = json!({
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    });
    let mut say = |id: u64, method: &str, params: Value| {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{line}").unwrap();
    };
    say(0, "initialize", initialize);
    // Far more than a pipe holds.
    let code = json!({"code": "print('x' * 60000)"});
    for id in 1..=8 {
        let call = json!({"name": "execute_program", "arguments": code});
        say(id, "tools/call", call);
    }
    let grandchild = grandchild_of(&Journal::at(ptc.folder().join("stubborn.journal")));
    let started = processes::descendants(process.id());
    drop(stdin);
    let asked = Instant::now();
    let status = exit_of(&mut process);
    assert!(status.success(), "{status}");
    assert!(asked.elapsed() < IN_GOOD_TIME);
    assert!(started.contains(&grandchild));
    assert_ended(&started);
    assert_gone(ptc.folder());
    let scratch = std::fs::read_dir(ptc.folder().join("tmp")).unwrap();
    assert_eq!(scratch.count(), 0);
}

// contract: S12 D1
#[test]
fn a_log_that_nobody_reads_delays_nothing_and_ends_nothing() {
    for is_held in [true, false] {
        // Dies at each call, so that there is something to log and a supervisor that must not fall.
        let dies = Tool::new("die").replies([Reply::fault(Fault::crash())]);
        let ptc = Ptc::new()
            .stdio("dies", Scenario::new().tool(dies))
            .env("PTC_MCP_LOG", "trace");
        let mut held = None;
        let mut session = ptc.start_with(|stderr, _| held = is_held.then_some(stderr));
        // More than a pipe holds goes to the log.
        let long = "x".repeat(100_000);
        session.request("tools/list", json!({ "cursor": long }));
        let died = session.execute("await mcp__dies__die()");
        assert!(died.text().contains("being reconnected"), "{died:?}");
        let journal = session.journal("dies");
        journal.wait_until(|journal| journal.starts() == 2, PATIENCE);
        let asked = Instant::now();
        session.signal("TERM");
        session.said_until_the_end();
        assert!(asked.elapsed() < IN_GOOD_TIME, "held: {is_held}");
        drop(held);
    }
}

// contract: S12
#[test]
fn the_last_words_of_the_log_are_written_before_the_end() {
    let mut session = Ptc::new().start();
    session.signal("TERM");
    session.said_until_the_end();
    session.wait_for_log("SIGTERM: shutting down");
}

// contract: S12 D5
#[test]
fn when_it_is_killed_no_program_and_no_server_outlives_it() {
    let (mut session, _) = busy();
    let grandchild = grandchild_of(&session.journal("stubborn"));
    let started = processes::descendants(session.pid());
    // Two servers with company, two programs, the watchdog.
    assert!(started.len() >= 6, "{started:?}");
    assert!(started.contains(&grandchild));
    session.signal("KILL");
    let killed = Instant::now();
    while let Some(alive) = started.iter().find(|process| process.is_alive()) {
        let command = alive.command();
        assert!(killed.elapsed() < AT_ONCE, "{alive:?} {command}");
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("all gone {:?} after SIGKILL", killed.elapsed());
    session.abandoned();
}

// contract: S12
#[test]
fn a_server_started_by_check_does_not_outlive_a_killed_ptc_mcp_either() {
    let stuck = stubborn().always(At::Handshake, Fault::hang());
    let ptc = Ptc::new().stdio("stuck", stuck);
    let mut process = ptc
        .command()
        .arg("check")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    grandchild_of(&Journal::at(ptc.folder().join("stuck.journal")));
    process.kill().unwrap();
    process.wait().unwrap();
    assert_gone(ptc.folder());
}

// contract: S12 P10
#[test]
fn when_it_is_killed_its_scratch_directories_go_as_well() {
    let ptc = Ptc::new().execution("sandbox", "none");
    let mut session = ptc.start();
    let program = "import os, time\n\
                   os.makedirs('kept/inner')\n\
                   open('kept/inner/data', 'w').close()\n\
                   os.chmod('kept/inner', 0)\n\
                   os.chmod('.', 0o500)\n\
                   time.sleep(600)";
    session.send_program(program);
    let tmp = session.folder().join("tmp");
    let deadline = Instant::now() + PATIENCE;
    let stands = || {
        let scratch = std::fs::read_dir(&tmp).unwrap().flatten();
        scratch
            .map(|entry| entry.path())
            .any(|path| path.join("kept/inner").exists())
    };
    while !stands() {
        assert!(Instant::now() < deadline, "the program made no directory");
        std::thread::sleep(Duration::from_millis(5));
    }
    session.signal("KILL");
    let left = || std::fs::read_dir(&tmp).unwrap().count();
    while left() > 0 {
        assert!(Instant::now() < deadline, "{} directories are left", left());
        std::thread::sleep(Duration::from_millis(5));
    }
    session.abandoned();
}

/// The harness's own promise, on which every other test relies.
#[cfg(target_os = "linux")]
#[test]
fn what_is_left_behind_is_seen() {
    let mut session = Ptc::new().stdio("s", sleeping()).start();
    session.wait_for_tools("connected", |names| names.len() == 1);
    let folder = session.folder().to_owned();
    let mut stray = std::process::Command::new("sleep")
        .arg("600")
        .env("LEFT_BY", &folder)
        .spawn()
        .unwrap();
    let seen = loop {
        let seen = crate::support::mentioning(&folder);
        if seen.iter().any(|line| line.contains("sleep 600")) {
            break seen;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let watchdog = processes::descendants(session.pid());
    let pid = session.pid();
    stray.kill().unwrap();
    stray.wait().unwrap();
    assert!(seen.iter().any(|line| line.starts_with(&pid.to_string())));
    assert!(
        watchdog
            .iter()
            .any(|process| process.command().contains("__watchdog"))
    );
    let litter = folder.join("tmp/litter");
    std::fs::create_dir(&litter).unwrap();
    let closed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| session.close()));
    assert!(closed.is_err(), "a directory in TMPDIR is litter");
}

// contract: S12
#[test]
fn a_server_that_has_not_answered_yet_is_closed_in_order_as_well() {
    // Takes its time over the handshake, and tidies up when its input ends.
    let server = "import pathlib, sys\n\
                  pathlib.Path('begun').touch()\n\
                  for line in sys.stdin: pass\n\
                  pathlib.Path('tidied').touch()\n";
    for how in ["EOF", "TERM", "timeout"] {
        let ptc = Ptc::new();
        let folder = ptc.folder().to_owned();
        let limit = if how == "timeout" { 5.0 } else { 60.0 };
        let mut session = ptc
            .server(json!({
                "name": "slow", "command": "python3", "args": ["-c", server], "cwd": folder,
                "connect_timeout_seconds": limit,
            }))
            .start();
        let wait_for = |name: &str| {
            let deadline = Instant::now() + PATIENCE;
            while !folder.join(name).exists() {
                assert!(Instant::now() < deadline, "{how}: never {name}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        wait_for("begun");
        if how == "timeout" {
            wait_for("tidied");
            session.close();
            continue;
        }
        ask(&mut session, how);
        session.said_until_the_end();
        assert!(folder.join("tidied").exists(), "{how}");
    }
}
