//! A second process that kills the servers' process groups when ptc-mcp itself is killed.
//!
//! It is our own binary under a hidden first argument, and it holds the reading end of a pipe whose
//! writing end only we hold. Over the pipe it is told which groups there are, a line each: `+<id>`
//! or `-<id>`. However ptc-mcp ends, the kernel closes the pipe, and the end of input is the order
//! to kill what is left. It knows nothing of servers, only ids.

#![expect(
    clippy::disallowed_methods,
    reason = "one of the places where processes are spawned"
)]

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group, setsid};

/// The first argument that turns the binary into the watchdog.
pub const ARGUMENT: &str = "__watchdog";

/// Where to find ourselves for a further process. On Linux the file that is running, even after an
/// upgrade has put another in its place: the two need not understand each other.
pub fn own_executable() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() {
        return Ok(running.to_owned());
    }
    std::env::current_exe()
}

/// Set once by [`start`]; a library user or a unit test goes without.
static WATCHDOG: OnceLock<Watchdog> = OnceLock::new();

/// The running watchdog, seen from ptc-mcp.
#[derive(Debug)]
pub struct Watchdog {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` after a failed restart; the next change of the groups tries again.
    process: Option<Process>,
    groups: BTreeSet<i32>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    lifeline: ChildStdin,
}

/// Starts the process-wide watchdog. To be called before the first server is started.
pub fn start() {
    if WATCHDOG.get().is_some() {
        return;
    }
    match Watchdog::start() {
        Ok(watchdog) => {
            let _ = WATCHDOG.set(watchdog);
        }
        Err(error) => {
            tracing::warn!("no watchdog: should this process be killed, its servers stay ({error})")
        }
    }
}

/// A group under guard; released when dropped, which must be after the group's end.
#[derive(Debug)]
pub struct Guarded(i32);

/// Puts a group under guard of the process-wide watchdog, if it was started.
pub fn guard(group: i32) -> Guarded {
    if let Some(watchdog) = WATCHDOG.get() {
        watchdog.guard(group);
    }
    Guarded(group)
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(watchdog) = WATCHDOG.get() {
            watchdog.release(self.0);
        }
    }
}

impl Watchdog {
    pub fn start() -> io::Result<Self> {
        Ok(Self {
            state: Mutex::new(State {
                process: Some(Process::start()?),
                groups: BTreeSet::new(),
            }),
        })
    }

    pub fn guard(&self, group: i32) {
        self.change(|groups| groups.insert(group), '+', group);
    }

    pub fn release(&self, group: i32) {
        self.change(|groups| groups.remove(&group), '-', group);
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<i32>) -> bool, sign: char, group: i32) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !change(&mut state.groups) {
            return;
        }
        let told = state
            .process
            .as_mut()
            .is_some_and(|process| writeln!(process.lifeline, "{sign}{group}").is_ok());
        if !told {
            // Somebody killed it. A new one has to be told everything.
            state.process = None;
            match Process::start().and_then(|process| process.told(&state.groups)) {
                Ok(process) => state.process = Some(process),
                Err(error) => tracing::warn!("the watchdog does not start again: {error}"),
            }
        }
    }
}

impl Process {
    fn start() -> io::Result<Self> {
        let mut child = Command::new(own_executable()?)
            .arg(ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        match child.stdin.take() {
            Some(lifeline) => Ok(Self { child, lifeline }),
            None => Err(io::Error::other("no pipe to the watchdog")),
        }
    }

    fn told(mut self, groups: &BTreeSet<i32>) -> io::Result<Self> {
        for group in groups {
            writeln!(self.lifeline, "+{group}")?;
        }
        Ok(self)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Not by closing the pipe, which would be the order to kill the groups.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The watchdog's own entry: `main` calls it before anything else when the first argument is
/// [`ARGUMENT`].
pub fn main() -> ExitCode {
    // An interrupt from the terminal is meant for ptc-mcp, whose orderly end we wait for.
    let _ = setsid();
    for group in left_over(io::stdin().lock()) {
        if let Some(group) = Pid::from_raw(group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    ExitCode::SUCCESS
}

/// The groups that are still under guard when the input ends.
fn left_over(input: impl BufRead) -> BTreeSet<i32> {
    let mut groups = BTreeSet::new();
    for line in input.lines().map_while(Result::ok) {
        // Group 1 is init's, and 0 would mean our own.
        let group = line.get(1..).and_then(|id| id.parse().ok());
        match (line.as_bytes().first(), group.filter(|id| *id > 1)) {
            (Some(b'+'), Some(group)) => groups.insert(group),
            (Some(b'-'), Some(group)) => groups.remove(&group),
            _ => false,
        };
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: S12
    #[test]
    fn only_groups_still_under_guard_are_left_over() {
        for (input, expected) in [
            ("", vec![]),
            ("+20\n+30\n-20\n", vec![30]),
            ("+20\n-20\n+20\n", vec![20]),
            ("-20\n", vec![]),
            ("+0\n+1\n+-5\n+x\n\n20\n", vec![]),
            ("+20\n+3", vec![3, 20]),
        ] {
            let groups: Vec<i32> = left_over(input.as_bytes()).into_iter().collect();
            assert_eq!(groups, expected, "{input:?}");
        }
    }
}
