//! The long run: nothing grows, and every request is answered, while servers are killed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mock_servers::{Event, Scenario, Tool};
use serde_json::json;

use crate::processes::{self, Process};
use crate::support::{PATIENCE, Ptc, Session, ToolResult};

const RUNS: usize = 500;
const AT_ONCE: usize = 4;
/// No multiple of the number of servers, so that each has its turn.
const KILL_EVERY: usize = 21;
/// A server that dies often is left alone for longer and longer, so there are several.
const SERVERS: usize = 5;

/// What a leak would show in.
#[derive(Debug)]
struct Footprint {
    files: usize,
    threads: usize,
    zombies: usize,
    scratch: usize,
}

impl Footprint {
    fn of(session: &Session) -> Self {
        let pid = session.pid();
        let zombies = processes::descendants(pid);
        Self {
            files: processes::count(pid, "fd"),
            threads: processes::count(pid, "task"),
            zombies: zombies
                .iter()
                .filter(|process| process.state == 'Z')
                .count(),
            scratch: std::fs::read_dir(session.folder().join("tmp"))
                .unwrap()
                .count(),
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        self.files <= other.files
            && self.threads <= other.threads
            && self.zombies <= other.zombies
            && self.scratch <= other.scratch
    }
}

// contract: S12 D1 D3 P3 P10
#[test]
fn five_hundred_runs_with_servers_killed_leave_nothing_behind() {
    let echo = || Scenario::new().tool(Tool::echo("echo"));
    let mut ptc = Ptc::new().stdio("steady", echo());
    for server in 0..SERVERS {
        ptc = ptc.stdio(&format!("s{server}"), echo());
    }
    let mut session = ptc.start();
    assert_eq!(session.callable().len(), SERVERS + 1);
    // As many as will run at once, so that what is made once is made.
    run_all(&mut session, AT_ONCE * 2, |_, _| {});
    // One child stands ready, and its scratch directory with it; a burst leaves more for a while.
    let before = settled(&session, |now| now.scratch == 1);
    assert_eq!(before.scratch, 1, "{before:?}");

    let mut killed = 0;
    let outputs = run_all(&mut session, RUNS, |session, run| {
        if run % KILL_EVERY == 0 {
            kill(session, &called_by(run));
            killed += 1;
        }
    });
    let (mut answered, mut refused) = (0, 0);
    for output in outputs {
        // Each run calls two servers: one that never dies, and one that may have.
        let (steady, other) = output.split_once('\n').expect("two lines");
        assert_eq!(steady, "{'n': 1}");
        if other == steady {
            answered += 1;
        } else {
            assert!(other.contains("reconnect"), "{other}");
            refused += 1;
        }
    }
    assert_eq!(answered + refused, RUNS);
    assert!(answered > 0 && refused > 0, "{answered} {refused}");
    let after = settled(&session, |now| now.is_within(&before));
    println!("{answered} answered, {refused} refused, {killed} killed; {before:?}, {after:?}");
    assert!(after.is_within(&before), "{before:?} {after:?}");
    session.close();
}

/// The server that a run calls beside the one that never dies.
fn called_by(run: usize) -> String {
    format!("s{}", run % SERVERS)
}

/// Kills a server, as soon as it is up.
fn kill(session: &Session, server: &str) {
    let deadline = Instant::now() + PATIENCE;
    let process = loop {
        let starts = session.journal(server).of(Event::Start);
        let last = starts.last().and_then(|start| Process::of(start.pid));
        if let Some(process) = last.filter(Process::is_alive) {
            break process;
        }
        assert!(Instant::now() < deadline, "'{server}' does not come back");
        std::thread::sleep(Duration::from_millis(5));
    };
    let pid = rustix::process::Pid::from_raw(process.pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// What each run printed.
fn run_all(
    session: &mut Session,
    runs: usize,
    mut before: impl FnMut(&Session, usize),
) -> Vec<String> {
    let mut running = VecDeque::new();
    let mut outputs = Vec::new();
    for run in 0..runs {
        before(session, run);
        let server = called_by(run);
        let code = format!(
            "print(await mcp__steady__echo(n=1))\n\
             try:\n    print(await mcp__{server}__echo(n=1))\nexcept ToolError as e:\n    print(e)"
        );
        running.push_back(session.send_tool_call("execute_program", json!({"code": code})));
        if running.len() == AT_ONCE {
            let oldest = session.answer(running.pop_front().unwrap());
            outputs.push(ToolResult::of(oldest).output());
        }
    }
    for id in running {
        outputs.push(ToolResult::of(session.answer(id)).output());
    }
    outputs
}

/// Idle threads and what was killed take a moment to go.
fn settled(session: &Session, enough: impl Fn(&Footprint) -> bool) -> Footprint {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = Footprint::of(session);
        if enough(&now) || Instant::now() > deadline {
            return now;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
