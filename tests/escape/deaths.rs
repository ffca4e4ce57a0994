//! What is left when a process dies that nobody asked: the server, what stands between it and the
//! interpreter, the interpreter. (contract: S12, P8)

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::processes;
use crate::settings::{Running, Setting};
use crate::world::word;

/// Far more than it takes, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(10);

/// Says that it stands by its call, and then does not end by itself.
const PROGRAM: &str = r#"
import time

marker = open("@TOKEN@", "w")
await mcp__desk__look(token="@TOKEN@")
time.sleep(1000)
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Killed {
    Interpreter,
    /// What stands between it and the server; where nothing does, the interpreter once more.
    Parent,
    Server,
}

/// How long anything was left, each time, by what was killed; the shortest first.
pub type Times = BTreeMap<Killed, Vec<Duration>>;

/// Kills each of them, this many times. Returns how long anything was left, or what went wrong.
pub fn rehearse(setting: &Setting, running: &Running, times: usize) -> Result<Times, String> {
    let mut all = Times::new();
    let mut note = |killed, left: Duration| all.entry(killed).or_default().push(left);
    for killed in [Killed::Interpreter, Killed::Parent].repeat(times) {
        note(killed, one(running, killed)?);
        let next = running.session().execute("print('served')")?;
        if !next.text.contains("served") {
            return Err(format!(
                "no program ran after the {killed:?} died: {}",
                next.text
            ));
        }
    }
    for _ in 0..times {
        let other = Running::start_one(setting)?;
        note(Killed::Server, one(&other, Killed::Server)?);
        other.is_gone()?;
    }
    all.values_mut().for_each(|times| times.sort());
    Ok(all)
}

fn one(running: &Running, killed: Killed) -> Result<Duration, String> {
    let marker = word();
    let code = PROGRAM.replace("@TOKEN@", &marker);
    let session = running.session();
    std::thread::scope(|scope| {
        // Its answer, or that there is none, is not what this is about.
        scope.spawn(|| session.execute(&code));
        wait("the program stands", || {
            !running.desk().record(&marker).looks.is_empty()
        })?;
        let seen = processes::holding(&marker);
        let interpreter = seen.first().ok_or("nobody holds the marker")?.pid;
        let parent = processes::parent(interpreter).unwrap_or(session.pid);
        let victim = match killed {
            Killed::Interpreter => interpreter,
            Killed::Parent if parent == session.pid => interpreter,
            Killed::Parent => parent,
            Killed::Server => session.pid,
        };
        let from = Instant::now();
        processes::kill(victim);
        let left = wait("nothing holds the marker", || {
            processes::holding(&marker).is_empty()
        });
        left.map_err(|error| format!("after the death of the {killed:?}: {error}"))?;
        Ok(from.elapsed())
    })
}

fn wait(what: &str, holds: impl Fn() -> bool) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > deadline {
            return Err(format!("not within {} s: {what}", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
