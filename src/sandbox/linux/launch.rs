//! The launcher: our own binary, executed again for one child.
//!
//! It has one thread and an empty environment, so that it may go on with ordinary code after a
//! clone. Two processes come of it: the child, which prepares itself and becomes the interpreter
//! (`child.rs`), and the monitor, which stays outside, waits for the child's end or the server's,
//! and leaves nothing behind.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getegid, geteuid, getpid,
    kill_process, pidfd_open, pidfd_send_signal, set_dumpable_behavior, waitpid,
};

use super::child::{self, INSIDE};
use super::plan::{Failure, Named, Plan, Wall, Word};
use super::{root, sys};

/// The first argument by which `main` recognises this launcher.
pub const ARGUMENT: &str = "__confine";

/// Exit status of a launcher whose child was never started.
pub(super) const NOT_STARTED: u8 = 127;

/// `CLONE_NEW*` of the user, mount, process, network, IPC, host-name and cgroup namespaces.
const NAMESPACES: u32 =
    0x1000_0000 | 0x0002_0000 | 0x2000_0000 | 0x4000_0000 | 0x0800_0000 | 0x0400_0000 | 0x0200_0000;

/// Starts the child that the argument describes and comes back with its end.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let plan = arguments.first().and_then(|plan| plan.to_str());
    let Some(plan) = plan.and_then(|plan| serde_json::from_str::<Plan>(plan).ok()) else {
        say(&format!("'{ARGUMENT}' is for ptc-mcp's own use\n"));
        return ExitCode::from(NOT_STARTED);
    };
    match run(&plan) {
        Ok(status) => end_as(status),
        Err(failure) => {
            say(&Word::Failed(failure).to_line());
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// On stderr, which is a socket that the server holds the other end of.
pub(super) fn say(line: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn run(plan: &Plan) -> Result<WaitStatus, Failure> {
    sys::close_on_exec_from(3).step("close inherited descriptors")?;
    if geteuid().is_root() {
        // The child could not: in a namespace of its own that is denied.
        let given_up = rustix::thread::set_thread_groups(&[]);
        // Root of a namespace may not either; there the child's root shows nothing to a group.
        if let Wall::Chroot { .. } = plan.wall {
            given_up.step("give up supplementary groups")?;
        }
    }
    let (go, stay) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step("pipe")?;
    let (flags, step) = match plan.wall {
        Wall::Namespaces => (NAMESPACES, "clone with namespaces"),
        Wall::Chroot { .. } => (0, "clone"),
    };
    // Root reaches an interpreter under somebody else's home, but its child, root of nothing, would
    // not. Elsewhere the child takes hold itself.
    let sources = match plan.wall {
        Wall::Namespaces if geteuid().is_root() => root::open_sources(&plan.layout).ok(),
        _ => None,
    };
    let Some(child) = sys::clone(flags).step(step)? else {
        drop(stay);
        child::run(plan, sources, go);
    };
    drop((go, sources));
    let watched = pidfd_open(child, PidfdFlags::empty()).step("pidfd_open");
    let begun = watched.and_then(|watched| {
        let outer_uid = prepare_from_outside(plan, child)?;
        rustix::io::write(&stay, &outer_uid.to_ne_bytes()).step("start the child")?;
        Ok(watched)
    });
    // The channel is the child's alone from now on.
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null");
    if let Ok(null) = null {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
    let ended = match begun {
        Ok(watched) => until_the_end(child, &watched),
        Err(failure) => {
            let _ = kill_process(child, Signal::KILL);
            let _ = reap(child);
            Err(failure)
        }
    };
    drop(stay);
    if let Wall::Chroot { scratch, .. } = &plan.wall {
        // The server does so as well; but it may have been killed.
        let _ = crate::scratch::remove(scratch);
    }
    ended
}

/// What only a process outside the child's namespaces can do for it. Comes back with the user that
/// the child is to the host.
fn prepare_from_outside(plan: &Plan, child: Pid) -> Result<u32, Failure> {
    let file = |name: &str| format!("/proc/{}/{name}", child.as_raw_nonzero());
    // Should memory run out, the program goes first. Not worth a refusal.
    let _ = std::fs::write(file("oom_score_adj"), "1000");
    if let Wall::Chroot { id, .. } = plan.wall {
        return Ok(id);
    }
    let write = |name: &str, text: &str| std::fs::write(file(name), text);
    let map = |outer: u32| format!("{INSIDE} {outer} 1");
    if geteuid().is_root() {
        // So that the child is nobody to the host as well, and its threads are counted.
        if write("gid_map", &map(INSIDE)).is_ok() && write("uid_map", &map(INSIDE)).is_ok() {
            return Ok(INSIDE);
        }
        // Nested in a namespace that has no such user.
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    if std::fs::read_to_string(file("gid_map")).is_ok_and(|map| map.trim().is_empty()) {
        write("setgroups", "deny").step("write setgroups")?;
        write("gid_map", &map(gid)).step("write gid_map")?;
    }
    write("uid_map", &map(uid)).step("write uid_map")?;
    Ok(uid)
}

/// Waits for the child, or kills it once the server is gone or has let go of it.
fn until_the_end(child: Pid, watched: &OwnedFd) -> Result<WaitStatus, Failure> {
    let lifeline = rustix::stdio::stderr();
    let mut killed = false;
    loop {
        let mut both = [
            PollFd::new(watched, PollFlags::IN),
            // A hang-up is always told.
            PollFd::from_borrowed_fd(lifeline.as_fd(), PollFlags::empty()),
        ];
        let waited_for = if killed {
            &mut both[..1]
        } else {
            &mut both[..]
        };
        match poll(waited_for, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno).step("wait for the child"),
        }
        if !both[0].revents().is_empty() {
            return reap(child).step("reap the child");
        }
        if !both[1].revents().is_empty() {
            let _ = pidfd_send_signal(watched, Signal::KILL);
            killed = true;
        }
    }
}

fn reap(child: Pid) -> Result<WaitStatus, Errno> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Ends this process as the child ended, so that the server sees what it would see of the child.
fn end_as(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal().and_then(Signal::from_named_raw) {
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        sys::reset_signals();
        let _ = kill_process(getpid(), signal);
    }
    // A signal that cannot be sent to oneself: as a shell would tell it.
    let code = status
        .exit_status()
        .or(status.terminating_signal().map(|signal| 128 + signal));
    ExitCode::from(
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(NOT_STARTED),
    )
}
