//! A second process that kills process groups, and removes their scratch directories, when ptc-mcp
//! itself is killed.
//!
//! It is our own binary under a hidden first argument, and it holds the reading end of a pipe whose
//! writing end only we hold. Over the pipe it is told what there is, a line each: `+<id>` or
//! `+/<directory>`, and the same with `-`. However ptc-mcp ends, the kernel closes the pipe, and the
//! end of input is the order to kill and remove what is left.

#![expect(
    clippy::disallowed_methods,
    reason = "one of the places where processes are spawned"
)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, setsid};

use crate::scratch;

/// The first argument that turns the binary into the watchdog.
pub const ARGUMENT: &str = "__watchdog";

/// How long a killed group may go on filling its directory.
const DYING: Duration = Duration::from_millis(500);

/// What must not outlive ptc-mcp.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Charge {
    Group(i32),
    Directory(PathBuf),
}

impl Charge {
    /// As the watchdog is told of it.
    fn line(&self, sign: u8) -> Vec<u8> {
        let mut line = vec![sign];
        match self {
            Self::Group(group) => line.extend(group.to_string().as_bytes()),
            Self::Directory(path) => line.extend(path.as_os_str().as_bytes()),
        }
        line.push(b'\n');
        line
    }

    fn read(name: &[u8]) -> Option<Self> {
        if name.starts_with(b"/") {
            return Some(Self::Directory(OsStr::from_bytes(name).into()));
        }
        let group: i32 = std::str::from_utf8(name).ok()?.parse().ok()?;
        // Group 1 is init's, and 0 would mean our own.
        (group > 1).then_some(Self::Group(group))
    }
}

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
    /// `None` until there is something to guard, and after a failed restart: the next change tries
    /// again.
    process: Option<Process>,
    charges: BTreeSet<Charge>,
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

/// A charge under guard; released when dropped, which must be after its end.
#[derive(Debug)]
pub struct Guarded(Charge);

/// Puts a process group under guard of this process's watchdog, if it has one.
pub fn guard_group(group: i32) -> Guarded {
    guard(Charge::Group(group))
}

/// Puts a directory under guard, unless no line can tell of it.
pub fn guard_directory(path: &Path) -> Option<Guarded> {
    let bytes = path.as_os_str().as_bytes();
    (bytes.starts_with(b"/") && !bytes.contains(&b'\n'))
        .then(|| guard(Charge::Directory(path.to_owned())))
}

fn guard(charge: Charge) -> Guarded {
    if let Some(mut watchdog) = watchdog() {
        watchdog.charges.insert(charge.clone());
        watchdog.change(&charge.line(b'+'));
    }
    Guarded(charge)
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(mut watchdog) = watchdog() {
            watchdog.charges.remove(&self.0);
            watchdog.change(&self.0.line(b'-'));
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
            match Process::start().and_then(|process| process.told(&self.charges)) {
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

    fn told(mut self, charges: &BTreeSet<Charge>) -> io::Result<Self> {
        for charge in charges {
            self.lifeline.write_all(&charge.line(b'+'))?;
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
    let mut directories = Vec::new();
    for charge in left {
        match charge {
            Charge::Group(group) => {
                let group = Pid::from_raw(group);
                let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            }
            Charge::Directory(path) => directories.push(path),
        }
    }
    let deadline = Instant::now() + DYING;
    for directory in directories {
        while scratch::remove(&directory).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    ExitCode::SUCCESS
}

/// What is still under guard when the input ends.
fn left_over(mut input: impl BufRead) -> BTreeSet<Charge> {
    let mut charges = BTreeSet::new();
    let mut line = Vec::new();
    while input
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        let taken = std::mem::take(&mut line);
        // Half a number or half a path would name what is not ours.
        let Some((sign, name)) = taken.strip_suffix(b"\n").and_then(<[u8]>::split_first) else {
            continue;
        };
        match (sign, Charge::read(name)) {
            (b'+', Some(charge)) => charges.insert(charge),
            (b'-', Some(charge)) => charges.remove(&charge),
            _ => false,
        };
    }
    charges
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: S12 P10
    #[test]
    fn only_what_is_still_under_guard_is_left_over() {
        let group = Charge::Group;
        let directory = |name: &[u8]| Charge::Directory(OsStr::from_bytes(name).into());
        for (input, expected) in [
            (&b""[..], vec![]),
            (b"+20\n+30\n-20\n", vec![group(30)]),
            (b"+20\n-20\n+20\n", vec![group(20)]),
            (b"-20\n", vec![]),
            (b"+0\n+1\n+-5\n+x\n\n20\n", vec![]),
            (b"+20\n+3", vec![group(20)]),
            (b"+/tmp/a b\xff\n+/t", vec![directory(b"/tmp/a b\xff")]),
            (b"+20\n+/tmp/a\n-20\n", vec![directory(b"/tmp/a")]),
            (b"+20\n+/tmp/a\n-/tmp/a\n", vec![group(20)]),
        ] {
            let found: Vec<Charge> = left_over(input).into_iter().collect();
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(input));
        }
        assert!(guard_directory(Path::new("/tmp/a\n-20")).is_none());
        assert!(guard_directory(Path::new("relative")).is_none());
    }

    #[test]
    fn what_is_told_is_what_is_read() {
        for charge in [Charge::Group(20), Charge::Directory("/tmp/ä b".into())] {
            let added = charge.line(b'+');
            assert_eq!(left_over(&added[..]), BTreeSet::from([charge.clone()]));
            let removed = [added, charge.line(b'-')].concat();
            assert_eq!(left_over(&removed[..]), BTreeSet::new());
        }
    }
}
