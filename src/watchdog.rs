//! A second process that kills process groups, and removes their scratch directories, when ptc-mcp
//! itself is killed.
//!
//! It is our own binary under a hidden first argument, and it holds the reading end of a pipe whose
//! writing end only we hold. Over the pipe it is told which groups there are, a line each: `+<id>`
//! or `+<id> <directory>`, and `-<id>`. However ptc-mcp ends, the kernel closes the pipe, and the
//! end of input is the order to kill what is left.

#![expect(
    clippy::disallowed_methods,
    reason = "one of the places where processes are spawned"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, setsid};

use crate::sandbox::scratch;

/// The first argument that turns the binary into the watchdog.
pub const ARGUMENT: &str = "__watchdog";

/// How long a killed group may go on filling its directory.
const DYING: Duration = Duration::from_millis(500);

/// With each group the directory that goes with it.
type Groups = BTreeMap<i32, Option<PathBuf>>;

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
    groups: Groups,
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
        watchdog.change(b"");
    }
}

fn watchdog() -> Option<MutexGuard<'static, Watchdog>> {
    let watchdog = WATCHDOG.get()?.lock();
    Some(watchdog.unwrap_or_else(PoisonError::into_inner))
}

/// A group under guard; released when dropped, which must be after the group's end.
#[derive(Debug)]
pub struct Guarded(i32);

/// Puts a group under guard of this process's watchdog, if it has one. A directory goes with it.
pub fn guard(group: i32, directory: Option<&Path>) -> Guarded {
    if let Some(mut watchdog) = watchdog() {
        watchdog.groups.insert(group, directory.map(Path::to_owned));
        watchdog.change(&entry(group, directory));
    }
    Guarded(group)
}

fn entry(group: i32, directory: Option<&Path>) -> Vec<u8> {
    let mut line = format!("+{group}").into_bytes();
    // No line can tell of a name with a line's end in it.
    let told = directory.map(|path| path.as_os_str().as_bytes());
    if let Some(path) = told.filter(|path| !path.contains(&b'\n')) {
        line.push(b' ');
        line.extend_from_slice(path);
    }
    line.push(b'\n');
    line
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(mut watchdog) = watchdog() {
            watchdog.groups.remove(&self.0);
            watchdog.change(format!("-{}\n", self.0).as_bytes());
        }
    }
}

impl Watchdog {
    fn change(&mut self, line: &[u8]) {
        let told = self
            .process
            .as_mut()
            .is_some_and(|process| process.lifeline.write_all(line).is_ok());
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

    fn told(mut self, groups: &Groups) -> io::Result<Self> {
        for (group, directory) in groups {
            self.lifeline
                .write_all(&entry(*group, directory.as_deref()))?;
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
    let left = left_over(io::stdin().lock());
    for group in left.keys().filter_map(|group| Pid::from_raw(*group)) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let deadline = Instant::now() + DYING;
    for directory in left.values().flatten() {
        while scratch::remove(directory).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    ExitCode::SUCCESS
}

/// What is still under guard when the input ends.
fn left_over(mut input: impl BufRead) -> Groups {
    let mut groups = Groups::new();
    let mut line = Vec::new();
    while input
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        let taken = std::mem::take(&mut line);
        // Half a number or half a path would name what is not ours.
        let Some((sign, rest)) = taken.strip_suffix(b"\n").and_then(<[u8]>::split_first) else {
            continue;
        };
        let mut parts = rest.splitn(2, |byte| *byte == b' ');
        let id = parts.next().and_then(|id| std::str::from_utf8(id).ok());
        // Group 1 is init's, and 0 would mean our own.
        let Some(group) = id.and_then(|id| id.parse().ok()).filter(|id| *id > 1) else {
            continue;
        };
        let directory = parts
            .next()
            .map(|path| PathBuf::from(OsStr::from_bytes(path)));
        match sign {
            b'+' => groups.insert(group, directory),
            b'-' => groups.remove(&group),
            _ => None,
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
            ("+20\n+3", vec![20]),
        ] {
            let groups: Vec<i32> = left_over(input.as_bytes()).into_keys().collect();
            assert_eq!(groups, expected, "{input:?}");
        }
    }

    // contract: S12 P10
    #[test]
    fn directories_are_told_as_they_are_named() {
        let odd = Path::new(OsStr::from_bytes(b"/tmp/a b\xff"));
        let told = [entry(20, Some(odd)), entry(30, None)].concat();
        let expected = Groups::from([(20, Some(odd.to_owned())), (30, None)]);
        assert_eq!(left_over(&told[..]), expected);
        let unspeakable = entry(40, Some(Path::new("/tmp/a\n-20")));
        assert_eq!(left_over(&unspeakable[..]), Groups::from([(40, None)]));
    }
}
