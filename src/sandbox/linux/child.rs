//! The child's own way from the clone to the interpreter's first instruction.
//!
//! The order matters at nearly every step; where it does, the step says why.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, Gid, Uid};

use super::plan::{Enforced, Failure, Limits, Named, Plan, SCRATCH, Wall, Word};
use super::root::Source;
use super::seccomp::{self, Architecture, Values};
use super::{chroot, landlock, launch, root, sys};

/// The user and group that a program is to itself: nobody.
pub(super) const INSIDE: u32 = 65534;

/// Threads at most, the main one included.
const THREADS: u64 = 64;
const STACK_BYTES: u64 = 8 << 20;
/// Address space beyond the memory that counts: allocators reserve far more than they use.
const SPARE_ADDRESSES: u64 = 4 << 30;

/// Prepares this process and becomes the interpreter; ends it if that fails.
pub(super) fn run(plan: &Plan, sources: Option<Vec<Source>>, go: OwnedFd) -> ! {
    let Err(failure) = become_interpreter(plan, sources, go);
    launch::say(&Word::Failed(failure).to_line());
    std::process::exit(launch::NOT_STARTED.into())
}

fn become_interpreter(
    plan: &Plan,
    sources: Option<Vec<Source>>,
    go: OwnedFd,
) -> Result<std::convert::Infallible, Failure> {
    let outer_uid = wait_for_outside(&go)?;
    rustix::process::setsid().step("setsid")?;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let scratch = match &plan.wall {
        Wall::Namespaces => {
            // Under the old user: an interpreter may lie in a folder that only this user may enter.
            let sources = sources.map_or_else(|| root::open_sources(&plan.layout), Ok)?;
            become_user(INSIDE)?;
            root::enter(&plan.layout, sources, plan.limits.scratch_bytes)?;
            rustix::system::sethostname(b"sandbox").step("sethostname")?;
            rustix::system::setdomainname(b"(none)").step("setdomainname")?;
            SCRATCH.to_owned()
        }
        Wall::Chroot { root, id, scratch } => {
            let inside = chroot::enter(root, scratch)?;
            drop_bounding_set()?;
            become_user(*id)?;
            inside
        }
    };
    rustix::process::chdir(&*scratch).step_on("chdir", Path::new(&scratch))?;

    let [interpreter, ..] = &plan.command[..] else {
        return Err(Errno::INVAL).step("read the command");
    };
    let (executable, open_files) = open_executable(interpreter, plan.limits.open_files)?;
    limit(&plan.limits, open_files)?;

    rustix::thread::set_no_new_privs(true).step("no_new_privs")?;
    if plan.wall == Wall::Namespaces {
        drop_bounding_set()?;
    }
    rustix::thread::clear_ambient_capability_set().step("clear ambient capabilities")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    rustix::thread::set_capabilities(None, sets).step("drop capabilities")?;

    // Every change of user or group clears this, so it comes after the last one.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .step("parent-death signal")?;
    if is_orphan(&go) {
        return Err(Errno::SRCH).step("the launcher is gone");
    }

    let landlock = landlock::restrict(&plan.layout, Path::new(&scratch));
    let architecture = Architecture::NATIVE
        .ok_or(Errno::OPNOTSUPP)
        .step("system-call filter for this machine")?;
    let filter = seccomp::program(
        architecture,
        Values {
            own_pid: getpid().as_raw_nonzero().get().unsigned_abs(),
            executable: executable.as_raw_fd().unsigned_abs(),
            stack: stack_from(architecture),
        },
    );
    if plan.report {
        let filter = filter.len();
        launch::say(
            &Word::Enforced(Enforced {
                landlock,
                outer_uid,
                filter,
            })
            .to_line(),
        );
    }
    let strings = |texts: &[String]| -> Result<Vec<CString>, Failure> {
        let ended = texts.iter().map(|text| CString::new(text.as_str()));
        ended
            .collect::<Result<_, _>>()
            .map_err(|_| Errno::INVAL)
            .step("read the command")
    };
    let arguments = strings(&plan.command)?;
    let environment = strings(&[format!("HOME={scratch}"), format!("TMPDIR={scratch}")])?;
    let arguments: Vec<&CStr> = arguments.iter().map(CString::as_c_str).collect();
    let environment: Vec<&CStr> = environment.iter().map(CString::as_c_str).collect();
    sys::reset_signals();
    // Last: nothing but exec and what it needs may follow.
    sys::install_filter(&filter).step("system-call filter")?;
    Err(sys::execute(executable.as_fd(), &arguments, &environment)).step("exec the interpreter")
}

/// Until the launcher has written the id maps. What comes is the user that we are to the host.
fn wait_for_outside(go: &OwnedFd) -> Result<u32, Failure> {
    let mut outer = [0; 4];
    match rustix::io::retry_on_intr(|| rustix::io::read(go, &mut outer)).step("wait")? {
        4 => Ok(u32::from_ne_bytes(outer)),
        // It failed, and has said so.
        _ => std::process::exit(launch::NOT_STARTED.into()),
    }
}

/// Whether the launcher has ended, which holds the other end of the pipe as long as it lives.
fn is_orphan(go: &OwnedFd) -> bool {
    let mut end = [PollFd::new(go, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut end, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Where the interpreter's stack will be, which is where this process has its own.
fn stack_from(architecture: Architecture) -> u64 {
    // Too large for the heap.
    let mapped = std::hint::black_box(Vec::<u8>::with_capacity(64 << 20));
    let bytes = getrlimit(Resource::Stack).current.unwrap_or(STACK_BYTES);
    seccomp::stack_from(
        architecture,
        std::ptr::from_ref(&mapped).addr() as u64,
        mapped.as_ptr().addr() as u64,
        bytes,
    )
}

fn become_user(id: u32) -> Result<(), Failure> {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    rustix::thread::set_thread_res_gid(gid, gid, gid).step("setresgid")?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).step("setresuid")
}

/// The interpreter on a descriptor just above the highest one that may be opened, and that limit.
fn open_executable(path: &str, wanted: u64) -> Result<(OwnedFd, u64), Failure> {
    let allowed = getrlimit(Resource::Nofile);
    let most = allowed.maximum.unwrap_or(u64::MAX);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: allowed.maximum,
            ..allowed
        },
    );
    let open_files = wanted.min(most.saturating_sub(1));
    let number = i32::try_from(open_files)
        .map_err(|_| Errno::INVAL)
        .step("limit of open files")?;
    let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .step_on("open", Path::new(path))?;
    let executable =
        rustix::io::fcntl_dupfd_cloexec(&file, number).step("descriptor of the interpreter")?;
    if executable.as_raw_fd() != number {
        return Err(Errno::BUSY).step("descriptor of the interpreter");
    }
    Ok((executable, open_files))
}

fn limit(limits: &Limits, open_files: u64) -> Result<(), Failure> {
    let memory = limits.memory_bytes;
    let all = [
        (Resource::Cpu, limits.cpu_seconds, "CPU time"),
        (Resource::Fsize, limits.scratch_bytes, "file size"),
        // Private writable memory; shared anonymous memory is refused by the filter, and what lies
        // in the scratch directory is bounded there.
        (Resource::Data, memory, "memory"),
        (
            Resource::As,
            memory.saturating_add(SPARE_ADDRESSES),
            "address space",
        ),
        (Resource::Stack, STACK_BYTES, "stack"),
        (Resource::Nproc, THREADS, "threads"),
        (Resource::Nofile, open_files, "open files"),
        // Not 0: that would not keep a crash from the host's core-dump handler.
        (Resource::Core, 1, "core files"),
        (Resource::Memlock, 0, "locked memory"),
        (Resource::Msgqueue, 0, "message queues"),
        (Resource::Nice, 0, "nice"),
        (Resource::Rtprio, 0, "real-time priority"),
        (Resource::Sigpending, 64, "pending signals"),
    ];
    for (resource, value, name) in all {
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let value = Some(value.min(most));
        setrlimit(
            resource,
            Rlimit {
                current: value,
                maximum: value,
            },
        )
        .step(&format!("limit of {name}"))?;
    }
    Ok(())
}

fn drop_bounding_set() -> Result<(), Failure> {
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // The kernel has no capability of this number, and none above it.
            Err(Errno::INVAL) if number > 0 => break,
            Err(errno) => return Err(errno).step("drop the capability bounding set"),
        }
    }
    Ok(())
}
