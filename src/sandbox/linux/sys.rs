//! The few system calls that have no safe form elsewhere: the only `unsafe` of the crate.
//!
//! Everything here is called from the launcher, a process of one thread that runs nothing else.
//! What the calls are asked for is decided by the callers.

#![allow(unsafe_code, reason = "each block says why it is sound")]

use std::ffi::{CStr, c_char, c_long};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::process::Pid;

/// One instruction of a classic BPF program, as the kernel reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u16,
    pub(super) jump_true: u8,
    pub(super) jump_false: u8,
    pub(super) k: u32,
}

fn result(value: c_long) -> Result<c_long, Errno> {
    if value == -1 {
        let code = std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO);
        return Err(Errno::from_raw_os_error(code));
    }
    Ok(value)
}

/// Forks, with the new process in new namespaces as `flags` say. `None` in the child.
pub(super) fn clone(flags: u32) -> Result<Option<Pid>, Errno> {
    let flags = flags as c_long | c_long::from(libc::SIGCHLD);
    // SAFETY: without CLONE_VM and with a null stack this is fork: the child goes on with a copy of
    // all memory. The launcher has one thread, so no lock is held by a thread that is not copied.
    let pid = result(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    Ok(i32::try_from(pid).ok().and_then(Pid::from_raw))
}

/// No propagation.
const MS_PRIVATE: u64 = 1 << 18;

/// Adds attributes to a mount, and to all below it if `recursive`, and cuts its ties to other
/// mounts: nothing that is mounted on one shows on the other.
pub(super) fn add_mount_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    recursive: bool,
) -> Result<(), Errno> {
    // `struct mount_attr`: set, clear, propagation, user namespace.
    let wanted: [u64; 4] = [attributes, 0, MS_PRIVATE, 0];
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a NUL-terminated empty string and `wanted` outlives the call, which reads
    // exactly the size that it is told.
    result(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            wanted.as_ptr(),
            size_of_val(&wanted),
        )
    })?;
    Ok(())
}

/// Marks every descriptor from `first` on as closed at the next exec.
pub(super) fn close_on_exec_from(first: u32) -> Result<(), Errno> {
    // SAFETY: marking changes no descriptor that Rust code owns before the exec.
    result(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    })?;
    Ok(())
}

/// Installs a system-call filter for this process. Takes `no_new_privs` to be set.
pub(super) fn install_filter(program: &[Instruction]) -> Result<(), Errno> {
    #[repr(C)]
    struct Program {
        length: u16,
        instructions: *const Instruction,
    }
    let length = u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?;
    let program = Program {
        length,
        instructions: program.as_ptr(),
    };
    // SAFETY: `Program` and `Instruction` have the kernel's layout, and the pointer is good for
    // `length` instructions until the call, which copies them, is over.
    result(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    })?;
    Ok(())
}

/// Becomes the program behind a descriptor. Comes back only on failure.
pub(super) fn execute(
    program: BorrowedFd<'_>,
    arguments: &[&CStr],
    environment: &[&CStr],
) -> Errno {
    let ended = |strings: &[&CStr]| -> Vec<*const c_char> {
        strings
            .iter()
            .map(|string| string.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (arguments, environment) = (ended(arguments), ended(environment));
    // SAFETY: both arrays end in a null pointer and hold pointers to strings that the caller keeps
    // until the call is over; the path is an empty string.
    let failed = result(unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    });
    failed.err().unwrap_or(Errno::IO)
}

/// Every signal back to its default action and none blocked: ignored and blocked signals outlive
/// an exec, and a client may have ignored some.
pub(super) fn reset_signals() {
    const LAST: i32 = 64;
    for signal in 1..=LAST {
        // SAFETY: the default action runs no code of ours. Signals that cannot be set are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an all-zero set is a valid empty set, and the old one is not asked for.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}
