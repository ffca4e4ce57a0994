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
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

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
static WATCHDOG: OnceLock<Mutex<Watchdog>> = OnceLock::new();

/// The watchdog, seen from ptc-mcp.
#[derive(Debug, Default)]
struct Watchdog {
    /// `None` until there is something to guard, and after a failed restart: the next change of the
    /// groups tries again.
    process: Option<Process>,
    groups: BTreeSet<i32>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    lifeline: ChildStdin,
}

/// Gives this process a watchdog. To be called before the first server is started.
pub fn start() {
    let _ = WATCHDOG.set(Mutex::default());
}

/// Has the watchdog be there before what it is to guard. Takes as long as starting a process does.
pub fn stand_by() {
    if let Some(mut watchdog) = watchdog() {
        watchdog.change(|_| true, "");
    }
}

fn watchdog() -> Option<MutexGuard<'static, Watchdog>> {
    let watchdog = WATCHDOG.get()?.lock();
    Some(watchdog.unwrap_or_else(PoisonError::into_inner))
}

/// A group under guard; released when dropped, which must be after the group's end.
#[derive(Debug)]
pub struct Guarded(i32);

/// Puts a group under guard of this process's watchdog, if it has one.
pub fn guard(group: i32) -> Guarded {
    if let Some(mut watchdog) = watchdog() {
        watchdog.change(|groups| groups.insert(group), &format!("+{group}\n"));
    }
    Guarded(group)
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(mut watchdog) = watchdog() {
            watchdog.change(|groups| groups.remove(&self.0), &format!("-{}\n", self.0));
        }
    }
}

impl Watchdog {
    fn change(&mut self, change: impl FnOnce(&mut BTreeSet<i32>) -> bool, line: &str) {
        if !change(&mut self.groups) {
            return;
        }
        let told = self
            .process
            .as_mut()
            .is_some_and(|process| process.lifeline.write_all(line.as_bytes()).is_ok());
        if !told {
            // Not started yet, or somebody killed it. A new one has to be told everything.
            self.process = None;
            match Process::start().and_then(|process| process.told(&self.groups)) {
                Ok(process) => self.process = Some(process),
                Err(error) => tracing::warn!(
                    "no watchdog: should this process be killed, its servers stay ({error})"
                ),
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
