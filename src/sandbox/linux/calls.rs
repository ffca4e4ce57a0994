//! Which system calls a program may make, and with which arguments: data, in one place.
//!
//! Numbers of x86-64 and aarch64 stand side by side; a call that an architecture does not have
//! (aarch64 has none of the old ones) is `None` there. The reasons stand at the rules.

/// The last call number that is known to be refused; newer ones are unknown to the table.
pub(super) const NEWEST: u32 = 450;

#[derive(Debug)]
pub(super) struct Call {
    /// For the tests and for readers.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the tests speak of calls by name")
    )]
    pub(super) name: &'static str,
    pub(super) x86_64: Option<u32>,
    pub(super) aarch64: Option<u32>,
    pub(super) rule: Rule,
}

#[derive(Debug)]
pub(super) enum Rule {
    Allow,
    /// Not made. The answer is an error that callers know what to do about, or, where 0, success.
    Answer(u32),
    /// Allowed if every check of one of the ways holds, else refused.
    If(&'static [&'static [Check]]),
    /// The same, where some checks must hold on every way, and on some ways the call is not made and
    /// is said to have succeeded.
    Ways {
        always: &'static [Check],
        allowed: &'static [&'static [Check]],
        feigned: &'static [&'static [Check]],
    },
}

/// A question about one argument. The kernel reads these arguments as 32-bit numbers, and so do the
/// checks, but for pointers and lengths.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    Is(u8, u32),
    /// Argument, mask, what is left under the mask.
    Bits(u8, u32, u32),
    Null(u8),
    OwnPid(u8),
    Executable(u8),
    /// Arguments with an address and a length: whether all of it lies below the main thread's stack.
    BelowStack(u8, u8),
}

use Check::{BelowStack, Bits, Executable, Is, Null, OwnPid};

const ALLOW: Rule = Rule::Allow;
/// ENOSYS, as if the kernel did not have it.
const MISSING: Rule = Rule::Answer(38);
/// Success, where what the call is for makes no difference to a program, and does to the host.
const FEIGNED: Rule = Rule::Answer(0);
/// EOPNOTSUPP, as a file system without extended attributes answers: `shutil.copy2` asks.
const UNSUPPORTED: Rule = Rule::Answer(95);

/// No enlarging of pipes, no signals by descriptor, no leases, no seals, no notification.
///
/// Every locked byte can cost the kernel a lock, and nothing bounds how many a process has. Locks of
/// this kind never stand between two threads of one process, and a program is alone with its files:
/// what the kernel would say to one is always yes, so that is said without it. Databases ask for them.
const FILE_CONTROL: Rule = Rule::Ways {
    always: &[],
    allowed: &[
        &[Is(1, 0)],    // F_DUPFD
        &[Is(1, 1)],    // F_GETFD
        &[Is(1, 2)],    // F_SETFD
        &[Is(1, 3)],    // F_GETFL
        &[Is(1, 4)],    // F_SETFL
        &[Is(1, 5)],    // F_GETLK
        &[Is(1, 1030)], // F_DUPFD_CLOEXEC
        &[Is(1, 1032)], // F_GETPIPE_SZ
    ],
    feigned: &[
        &[Is(1, 6)], // F_SETLK
        &[Is(1, 7)], // F_SETLKW
    ],
};

/// Nothing that reaches a device or a file system.
const DEVICE_CONTROL: Rule = Rule::If(&[
    &[Is(1, 0x5401)],      // TCGETS: is it a terminal?
    &[Is(1, 0x5413)],      // TIOCGWINSZ
    &[Is(1, 0x541b)],      // FIONREAD
    &[Is(1, 0x5421)],      // FIONBIO
    &[Is(1, 0x5450)],      // FIONCLEX
    &[Is(1, 0x5451)],      // FIOCLEX
    &[Is(1, 0x4004_9409)], // FICLONE: what `Path.copy` tries first
]);

/// AF_UNIX, SOCK_STREAM with SOCK_NONBLOCK and SOCK_CLOEXEC: an event loop wakes itself through
/// one. A datagram pair could be sent to any name.
const STREAM_PAIR: Rule = Rule::If(&[&[Is(0, 1), Bits(1, !0o2_004_000, 1)]]);

/// Without an address; MSG_DONTWAIT and MSG_NOSIGNAL. Out-of-band data has been a hole.
const SEND: Rule = Rule::If(&[&[Null(4), Bits(3, !0x4040, 0)]]);

/// MSG_PEEK, MSG_DONTWAIT, MSG_WAITALL, MSG_NOSIGNAL.
const RECEIVE: Rule = Rule::If(&[&[Bits(3, !0x4142, 0)]]);

/// SOL_SOCKET's type, error, buffer sizes, protocol and domain. Setting is not allowed at all: send
/// buffers are kernel memory that no limit counts.
const SOCKET_OPTION: Rule = Rule::If(&[
    &[Is(1, 1), Is(2, 3)],
    &[Is(1, 1), Is(2, 4)],
    &[Is(1, 1), Is(2, 7)],
    &[Is(1, 1), Is(2, 8)],
    &[Is(1, 1), Is(2, 38)],
    &[Is(1, 1), Is(2, 39)],
]);

/// No memory that the limit does not count: neither shared and anonymous, nor a stack that grows, nor
/// pages that the host set apart for others. Files may be shared (they lie in the bounded scratch
/// directory); private is what counts.
const MAP: Rule = Rule::Ways {
    always: &[BelowStack(0, 1)],
    allowed: &[
        &[Bits(3, 0x4_0120, 0)], // neither MAP_ANONYMOUS, MAP_GROWSDOWN nor MAP_HUGETLB
        &[Bits(3, 0x4_010f, 2)], // MAP_PRIVATE without MAP_GROWSDOWN and MAP_HUGETLB
    ],
    feigned: &[],
};

/// What the main thread's stack takes is not counted as memory, since each piece of it is bounded.
/// But it could be cut into any number of pieces that each grow, so nothing is done to it.
const UNMAP: Rule = Rule::If(&[&[BelowStack(0, 1)]]);

/// Plain growing and shrinking, as `realloc` does: a moved stack stays one that is not counted.
const REMAP: Rule = Rule::If(&[&[Bits(3, !1, 0), BelowStack(0, 1)]]);

/// Only what can be written is counted. Memory that was filled and then locked against writing would
/// be free, so it stays as it is, and loaders, which lock what they have relocated, need not know.
/// With PROT_EXEC they would have to, and nothing that is loaded here asks for it.
const PROTECT: Rule = Rule::Ways {
    always: &[BelowStack(0, 1)],
    allowed: &[&[Bits(2, 2, 2)]],
    feigned: &[
        &[Bits(2, !1, 0)],
        // On aarch64, for code that can be executed already, to have its branches checked (PROT_BTI).
        &[Is(2, 0x15)],
    ],
};

/// What allocators ask for. No merging with other processes' pages, whose speed would tell of them.
const ADVISE: Rule = Rule::Ways {
    always: &[BelowStack(0, 1)],
    allowed: &[
        &[Bits(2, !3, 0)],   // MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED
        &[Is(2, 4)],         // MADV_DONTNEED
        &[Is(2, 8)],         // MADV_FREE
        &[Bits(2, !1, 14)],  // MADV_HUGEPAGE, MADV_NOHUGEPAGE
        &[Bits(2, !1, 102)], // MADV_GUARD_INSTALL, MADV_GUARD_REMOVE
    ],
    feigned: &[],
};

/// CLONE_THREAD and what C libraries start threads with; no new namespace, no new process. Everything
/// is shared (CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND): a thread with descriptors of its own
/// would have a limit of its own for them. Two of the free bits are CLONE_DETACHED, which musl sets,
/// and CLONE_CHILD_SETTID.
const THREAD: Rule = Rule::If(&[&[Bits(0, !0x017c_0000, 0x0001_0f00)]]);

/// CLOSE_RANGE_CLOEXEC, and not CLOSE_RANGE_UNSHARE, for the same reason.
const CLOSE_MANY: Rule = Rule::If(&[&[Bits(2, !4, 0)]]);

/// RENAME_NOREPLACE and RENAME_EXCHANGE. RENAME_WHITEOUT leaves a device node behind.
const RENAME: Rule = Rule::If(&[&[Bits(4, !3, 0)]]);

/// Without RWF_NOWAIT, which tells what of a library the host has read lately.
const READ_AT: Rule = Rule::If(&[&[Bits(5, 8, 0)]]);

/// Plain waiting and waking, private or not: no priority inheritance.
const WAKE: Rule = Rule::If(&[
    &[Bits(1, !0x180, 0)],  // FUTEX_WAIT
    &[Bits(1, !0x180, 1)],  // FUTEX_WAKE
    &[Bits(1, !0x180, 3)],  // FUTEX_REQUEUE
    &[Bits(1, !0x180, 4)],  // FUTEX_CMP_REQUEUE
    &[Bits(1, !0x180, 5)],  // FUTEX_WAKE_OP
    &[Bits(1, !0x180, 9)],  // FUTEX_WAIT_BITSET
    &[Bits(1, !0x180, 10)], // FUTEX_WAKE_BITSET
]);

/// ARCH_SET_FS, ARCH_GET_FS, and what a loader asks about shadow stacks.
const THREAD_POINTER: Rule = Rule::If(&[&[Is(0, 0x1002)], &[Is(0, 0x1003)], &[Is(0, 0x5005)]]);

/// PR_SET_NAME and PR_GET_NAME. Above all, not the parent-death signal.
const PROCESS_CONTROL: Rule = Rule::If(&[&[Is(0, 15)], &[Is(0, 16)]]);

/// By the one descriptor, with AT_EMPTY_PATH.
const EXECUTE: Rule = Rule::If(&[&[Executable(0), Is(4, 0x1000)]]);

const SIGNAL: Rule = Rule::If(&[&[OwnPid(0)]]);

/// Its own limits, and no new ones.
const READ_LIMITS: Rule = Rule::If(&[&[Is(0, 0), Null(2)]]);

const fn call(name: &'static str, x86_64: Option<u32>, aarch64: Option<u32>, rule: Rule) -> Call {
    Call {
        name,
        x86_64,
        aarch64,
        rule,
    }
}

#[rustfmt::skip]
pub(super) const TABLE: &[Call] = &[
    // Files and folders: which of them there are is the root's affair.
    call("read", Some(0), Some(63), ALLOW),
    call("write", Some(1), Some(64), ALLOW),
    call("readv", Some(19), Some(65), ALLOW),
    call("writev", Some(20), Some(66), ALLOW),
    call("pread64", Some(17), Some(67), ALLOW),
    call("pwrite64", Some(18), Some(68), ALLOW),
    call("preadv", Some(295), Some(69), ALLOW),
    call("pwritev", Some(296), Some(70), ALLOW),
    call("preadv2", Some(327), Some(286), READ_AT),
    call("pwritev2", Some(328), Some(287), ALLOW),
    call("open", Some(2), None, ALLOW),
    call("openat", Some(257), Some(56), ALLOW),
    call("creat", Some(85), None, ALLOW),
    call("close", Some(3), Some(57), ALLOW),
    call("close_range", Some(436), Some(436), CLOSE_MANY),
    call("lseek", Some(8), Some(62), ALLOW),
    call("stat", Some(4), None, ALLOW),
    call("fstat", Some(5), Some(80), ALLOW),
    call("lstat", Some(6), None, ALLOW),
    call("newfstatat", Some(262), Some(79), ALLOW),
    call("statx", Some(332), Some(291), ALLOW),
    call("access", Some(21), None, ALLOW),
    call("faccessat", Some(269), Some(48), ALLOW),
    call("faccessat2", Some(439), Some(439), ALLOW),
    call("readlink", Some(89), None, ALLOW),
    call("readlinkat", Some(267), Some(78), ALLOW),
    call("getdents", Some(78), None, ALLOW),
    call("getdents64", Some(217), Some(61), ALLOW),
    call("getcwd", Some(79), Some(17), ALLOW),
    call("chdir", Some(80), Some(49), ALLOW),
    call("fchdir", Some(81), Some(50), ALLOW),
    call("mkdir", Some(83), None, ALLOW),
    call("mkdirat", Some(258), Some(34), ALLOW),
    call("rmdir", Some(84), None, ALLOW),
    call("unlink", Some(87), None, ALLOW),
    call("unlinkat", Some(263), Some(35), ALLOW),
    call("rename", Some(82), None, ALLOW),
    call("renameat", Some(264), Some(38), ALLOW),
    call("renameat2", Some(316), Some(276), RENAME),
    call("link", Some(86), None, ALLOW),
    call("linkat", Some(265), Some(37), ALLOW),
    call("symlink", Some(88), None, ALLOW),
    call("symlinkat", Some(266), Some(36), ALLOW),
    call("chmod", Some(90), None, ALLOW),
    call("fchmod", Some(91), Some(52), ALLOW),
    call("fchmodat", Some(268), Some(53), ALLOW),
    call("utime", Some(132), None, ALLOW),
    call("utimes", Some(235), None, ALLOW),
    call("futimesat", Some(261), None, ALLOW),
    call("utimensat", Some(280), Some(88), ALLOW),
    call("truncate", Some(76), Some(45), ALLOW),
    call("ftruncate", Some(77), Some(46), ALLOW),
    call("fallocate", Some(285), Some(47), ALLOW),
    // What a program writes is gone when it ends, so nothing has to reach a disk. On a library's file
    // these would make the host's disk work, or drop what the host has read of it.
    call("fadvise64", Some(221), Some(223), FEIGNED),
    call("fsync", Some(74), Some(82), FEIGNED),
    call("fdatasync", Some(75), Some(83), FEIGNED),
    call("flock", Some(73), Some(32), ALLOW),
    call("listxattr", Some(194), Some(11), UNSUPPORTED),
    call("llistxattr", Some(195), Some(12), UNSUPPORTED),
    call("flistxattr", Some(196), Some(13), UNSUPPORTED),
    call("copy_file_range", Some(326), Some(285), ALLOW),
    call("sendfile", Some(40), Some(71), ALLOW),
    call("dup", Some(32), Some(23), ALLOW),
    call("dup2", Some(33), None, ALLOW),
    call("dup3", Some(292), Some(24), ALLOW),
    call("umask", Some(95), Some(166), ALLOW),
    call("fcntl", Some(72), Some(25), FILE_CONTROL),
    call("ioctl", Some(16), Some(29), DEVICE_CONTROL),
    // Waiting, and what an event loop is made of. No epoll: each of its watches is memory of the kernel
    // that only a budget of the whole user bounds, and event loops do with `poll` what they did with it.
    call("poll", Some(7), None, ALLOW),
    call("ppoll", Some(271), Some(73), ALLOW),
    call("select", Some(23), None, ALLOW),
    call("pselect6", Some(270), Some(72), ALLOW),
    call("eventfd", Some(284), None, ALLOW),
    call("eventfd2", Some(290), Some(19), ALLOW),
    call("pipe", Some(22), None, ALLOW),
    call("pipe2", Some(293), Some(59), ALLOW),
    call("socketpair", Some(53), Some(199), STREAM_PAIR),
    call("sendto", Some(44), Some(206), SEND),
    call("recvfrom", Some(45), Some(207), RECEIVE),
    call("getsockopt", Some(55), Some(209), SOCKET_OPTION),
    call("getsockname", Some(51), Some(204), ALLOW),
    call("getpeername", Some(52), Some(205), ALLOW),
    call("shutdown", Some(48), Some(210), ALLOW),
    // Memory.
    call("mmap", Some(9), Some(222), MAP),
    call("munmap", Some(11), Some(215), UNMAP),
    call("mprotect", Some(10), Some(226), PROTECT),
    call("mremap", Some(25), Some(216), REMAP),
    call("madvise", Some(28), Some(233), ADVISE),
    call("msync", Some(26), Some(227), FEIGNED),
    call("brk", Some(12), Some(214), ALLOW),
    // Threads, never processes.
    call("clone", Some(56), Some(220), THREAD),
    // Its flags stand in memory, where a filter cannot see them; C libraries fall back to `clone`.
    call("clone3", Some(435), Some(435), MISSING),
    call("futex", Some(202), Some(98), WAKE),
    call("set_robust_list", Some(273), Some(99), ALLOW),
    call("set_tid_address", Some(218), Some(96), ALLOW),
    call("rseq", Some(334), Some(293), ALLOW),
    call("sched_yield", Some(24), Some(124), ALLOW),
    call("sched_getaffinity", Some(204), Some(123), ALLOW),
    call("sched_getparam", Some(143), Some(121), ALLOW),
    call("sched_getscheduler", Some(145), Some(120), ALLOW),
    call("sched_get_priority_max", Some(146), Some(125), ALLOW),
    call("sched_get_priority_min", Some(147), Some(126), ALLOW),
    call("getcpu", Some(309), Some(168), ALLOW),
    call("exit", Some(60), Some(93), ALLOW),
    call("exit_group", Some(231), Some(94), ALLOW),
    call("wait4", Some(61), Some(260), ALLOW),
    call("waitid", Some(247), Some(95), ALLOW),
    call("arch_prctl", Some(158), None, THREAD_POINTER),
    call("prctl", Some(157), Some(167), PROCESS_CONTROL),
    // Once, for the interpreter.
    call("execveat", Some(322), Some(281), EXECUTE),
    // Signals, to itself only.
    call("rt_sigaction", Some(13), Some(134), ALLOW),
    call("rt_sigprocmask", Some(14), Some(135), ALLOW),
    call("rt_sigreturn", Some(15), Some(139), ALLOW),
    call("rt_sigpending", Some(127), Some(136), ALLOW),
    call("rt_sigtimedwait", Some(128), Some(137), ALLOW),
    call("rt_sigsuspend", Some(130), Some(133), ALLOW),
    call("sigaltstack", Some(131), Some(132), ALLOW),
    call("restart_syscall", Some(219), Some(128), ALLOW),
    call("pause", Some(34), None, ALLOW),
    call("alarm", Some(37), None, ALLOW),
    call("setitimer", Some(38), Some(103), ALLOW),
    call("getitimer", Some(36), Some(102), ALLOW),
    call("kill", Some(62), Some(129), SIGNAL),
    call("tgkill", Some(234), Some(131), SIGNAL),
    // Time and chance.
    call("nanosleep", Some(35), Some(101), ALLOW),
    call("clock_nanosleep", Some(230), Some(115), ALLOW),
    call("clock_gettime", Some(228), Some(113), ALLOW),
    call("clock_getres", Some(229), Some(114), ALLOW),
    call("gettimeofday", Some(96), Some(169), ALLOW),
    call("time", Some(201), None, ALLOW),
    call("times", Some(100), Some(153), ALLOW),
    call("getrandom", Some(318), Some(278), ALLOW),
    // About itself.
    call("uname", Some(63), Some(160), ALLOW),
    call("getpid", Some(39), Some(172), ALLOW),
    call("gettid", Some(186), Some(178), ALLOW),
    call("getppid", Some(110), Some(173), ALLOW),
    call("getpgrp", Some(111), None, ALLOW),
    call("getpgid", Some(121), Some(155), ALLOW),
    call("getsid", Some(124), Some(156), ALLOW),
    call("getuid", Some(102), Some(174), ALLOW),
    call("geteuid", Some(107), Some(175), ALLOW),
    call("getgid", Some(104), Some(176), ALLOW),
    call("getegid", Some(108), Some(177), ALLOW),
    call("getresuid", Some(118), Some(148), ALLOW),
    call("getresgid", Some(120), Some(150), ALLOW),
    call("getgroups", Some(115), Some(158), ALLOW),
    call("getrlimit", Some(97), Some(163), ALLOW),
    call("getrusage", Some(98), Some(165), ALLOW),
    call("getpriority", Some(140), Some(141), ALLOW),
    call("capget", Some(125), Some(90), ALLOW),
    call("prlimit64", Some(302), Some(261), READ_LIMITS),
];
