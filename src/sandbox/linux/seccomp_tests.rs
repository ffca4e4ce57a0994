use super::*;

const BOTH: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];
const STACK: u64 = 0x7ffb_ff6f_8000;
const VALUES: Values = Values {
    own_pid: 1,
    executable: 256,
    stack: STACK,
};

/// What the kernel would do, as a small machine for the few instructions in use. It fails on
/// anything that the kernel's verifier would refuse.
fn verdict(program: &[Instruction], audit: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let word = |offset: u32| match offset {
        NUMBER => number,
        ARCHITECTURE => audit,
        _ => {
            let at = offset - ARGUMENTS;
            let argument = arguments[(at / 8) as usize];
            if at.is_multiple_of(8) {
                argument as u32
            } else {
                (argument >> 32) as u32
            }
        }
    };
    let (mut at, mut accumulator, mut x, mut stored) = (0, 0_u32, 0_u32, [None; 16]);
    loop {
        let Instruction {
            code,
            jump_true,
            jump_false,
            k,
        } = program[at];
        at += 1;
        match code {
            LOAD => accumulator = word(k),
            LOAD_CONSTANT => accumulator = k,
            LOAD_STORED => accumulator = stored[k as usize].expect("stored before it is loaded"),
            STORE => stored[k as usize] = Some(accumulator),
            TO_X => x = accumulator,
            AND => accumulator &= k,
            ADD_X => accumulator = accumulator.wrapping_add(x),
            JUMP => at += k as usize,
            JUMP_EQUAL | JUMP_ABOVE | JUMP_AT_LEAST | JUMP_AT_LEAST_X => {
                let holds = match code {
                    JUMP_EQUAL => accumulator == k,
                    JUMP_ABOVE => accumulator > k,
                    JUMP_AT_LEAST => accumulator >= k,
                    _ => accumulator >= x,
                };
                at += usize::from(if holds { jump_true } else { jump_false });
            }
            RETURN => return k,
            other => panic!("unknown instruction {other:#x}"),
        }
    }
}

fn ask(architecture: Architecture, number: u32, arguments: [u64; 6]) -> u32 {
    verdict(
        &program(architecture, VALUES),
        architecture.audit(),
        number,
        arguments,
    )
}

fn number(architecture: Architecture, name: &str) -> Option<u32> {
    let call = calls::TABLE.iter().find(|call| call.name == name);
    architecture.number(call.unwrap_or_else(|| panic!("{name} is not in the table")))
}

#[test]
fn the_table_is_consistent() {
    for architecture in BOTH {
        let mut seen = std::collections::BTreeMap::new();
        for call in calls::TABLE {
            let Some(number) = architecture.number(call) else {
                continue;
            };
            assert_eq!(seen.insert(number, call.name), None, "{} twice", call.name);
            let known = architecture
                .known()
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&number));
            assert!(known, "{} has a number outside the known ones", call.name);
        }
    }
    // Above 423 all architectures share their numbers.
    for call in calls::TABLE {
        if call.x86_64.is_some_and(|number| number > 423) {
            assert_eq!(call.x86_64, call.aarch64, "{}", call.name);
        }
    }
}

#[test]
fn the_program_is_one_that_a_kernel_accepts() {
    for architecture in BOTH {
        let program = program(architecture, VALUES);
        assert!(
            program.len() < 700,
            "{architecture:?}: {} instructions",
            program.len()
        );
        for (index, step) in program.iter().enumerate() {
            let over = match step.code {
                JUMP => step.k as usize,
                JUMP_EQUAL | JUMP_ABOVE | JUMP_AT_LEAST | JUMP_AT_LEAST_X => {
                    step.jump_true.max(step.jump_false).into()
                }
                _ => 0,
            };
            assert!(
                index + over < program.len(),
                "jump out of the program at {index}"
            );
        }
        assert_eq!(program.last().map(|step| step.code), Some(RETURN));
    }
}

/// Every number there is, and arguments that no rule allows: the outcome is the policy's.
#[test]
fn every_number_has_its_outcome() {
    let hostile = [u64::MAX; 6];
    for architecture in BOTH {
        let program = program(architecture, VALUES);
        let audit = architecture.audit();
        for number in (0..3000).chain([0x4000_0000, 0x4000_0029, 0x7fff_ffff, u32::MAX]) {
            let call = calls::TABLE
                .iter()
                .find(|call| architecture.number(call) == Some(number));
            let known = architecture
                .known()
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&number));
            let expected = match call.map(|call| &call.rule) {
                Some(Rule::Allow) => ALLOW,
                Some(Rule::Answer(errno)) => ERRNO | errno,
                Some(Rule::If(_) | Rule::Ways { .. }) => ERRNO | EPERM,
                None if known => ERRNO | EPERM,
                None => ERRNO | ENOSYS,
            };
            let found = verdict(&program, audit, number, hostile);
            assert_eq!(
                found,
                expected,
                "{architecture:?} {number} {:?}",
                call.map(|call| call.name)
            );
        }
    }
}

#[test]
fn another_architecture_is_the_end() {
    for architecture in BOTH {
        let program = program(architecture, VALUES);
        // i386, arm, and each other.
        for audit in [0x4000_0003, 0x4000_0028, 0, 0xc000_003e, 0xc000_00b7] {
            if audit != architecture.audit() {
                assert_eq!(verdict(&program, audit, 0, [0; 6]), KILL_PROCESS);
            }
        }
    }
}

#[test]
fn calls_are_judged_by_their_arguments() {
    const THREAD: u64 = 0x3d_0f00;
    const PAIR: u64 = 0x8_0800;
    #[rustfmt::skip]
    let cases: &[(&str, [u64; 6], bool)] = &[
        // Threads, as glibc and musl start them; fork, vfork, namespaces in any disguise.
        ("clone", [THREAD, 0, 0, 0, 0, 0], true),
        ("clone", [0x7d_0f00, 0, 0, 0, 0, 0], true),
        ("clone", [THREAD | 0x0100_0000, 0, 0, 0, 0, 0], true),
        ("clone", [17, 0, 0, 0, 0, 0], false),
        ("clone", [0x0100_0000 | 0x20_0000 | 17, 0, 0, 0, 0, 0], false),
        ("clone", [0x4111, 0, 0, 0, 0, 0], false),
        ("clone", [0, 0, 0, 0, 0, 0], false),
        ("clone", [THREAD | 0x1000_0000, 0, 0, 0, 0, 0], false),
        ("clone", [THREAD | 0x0002_0000, 0, 0, 0, 0, 0], false),
        ("clone", [THREAD | 0x4000_0000, 0, 0, 0, 0, 0], false),
        ("clone", [THREAD | 0x80, 0, 0, 0, 0, 0], false),
        ("clone", [THREAD | 0x1000, 0, 0, 0, 0, 0], false),
        ("clone", [THREAD & !0x400, 0, 0, 0, 0, 0], false),
        ("clone", [THREAD & !0x200, 0, 0, 0, 0, 0], false),
        ("close_range", [3, u64::MAX, 0, 0, 0, 0], true),
        ("close_range", [3, u64::MAX, 4, 0, 0, 0], true),
        ("close_range", [3, u64::MAX, 2, 0, 0, 0], false),
        ("close_range", [3, u64::MAX, 6, 0, 0, 0], false),
        ("renameat2", [3, 0, 3, 0, 2, 0], true),
        ("renameat2", [3, 0, 3, 0, 4, 0], false),
        ("preadv2", [3, 0, 1, 0, 0, 0], true),
        ("preadv2", [3, 0, 1, 0, 0, 8], false),
        // One exec: the descriptor, and nothing but the descriptor.
        ("execveat", [256, 0, 0, 0, 0x1000, 0], true),
        ("execveat", [256, 0, 0, 0, 0, 0], false),
        ("execveat", [256, 0, 0, 0, 0x1100, 0], false),
        ("execveat", [255, 0, 0, 0, 0x1000, 0], false),
        ("execveat", [u64::MAX - 99, 0, 0, 0, 0x1000, 0], false),
        // Memory.
        ("mmap", [0, 4096, 3, 0x22, u64::MAX, 0], true),
        ("mmap", [0, 4096, 3, 0x2_0022, u64::MAX, 0], true),
        ("mmap", [0, 4096, 3, 0x1, 5, 0], true),
        ("mmap", [0, 4096, 3, 0x2, 5, 0], true),
        ("mmap", [0, 4096, 3, 0x21, u64::MAX, 0], false),
        ("mmap", [0, 4096, 3, 0x23, u64::MAX, 0], false),
        ("mmap", [0, 4096, 3, 0x28, u64::MAX, 0], false),
        ("mmap", [0, 4096, 3, 0x122, u64::MAX, 0], false),
        ("mmap", [0, 4096, 3, 0x102, 5, 0], false),
        ("mmap", [0, 4096, 3, 0x4_0022, u64::MAX, 0], false),
        ("mmap", [STACK - 4096, 4096, 3, 0x32, u64::MAX, 0], true),
        ("mmap", [STACK - 4096, 4097, 3, 0x32, u64::MAX, 0], false),
        ("mremap", [STACK - 8192, 4096, 1 << 40, 1, 0, 0], true),
        ("mremap", [STACK, 4096, 1 << 30, 1, 0, 0], false),
        ("mremap", [0x7fff_0000_0000, 4096, 1 << 30, 1, 0, 0], false),
        ("mremap", [4096, 4096, 4096, 3, 0x7fff_0000_0000, 0], false),
        ("mremap", [4096, 4096, 4096, 5, 0, 0], false),
        ("mprotect", [4096, 4096, 3, 0, 0, 0], true),
        ("mprotect", [4096, 4096, 7, 0, 0, 0], true),
        ("mprotect", [STACK, 4096, 3, 0, 0, 0], false),
        ("mprotect", [STACK, 4096, 1, 0, 0, 0], false),
        ("mprotect", [4096, 4096, 5, 0, 0, 0], false),
        ("munmap", [4096, 1 << 32, 0, 0, 0, 0], true),
        ("munmap", [0, STACK, 0, 0, 0, 0], true),
        ("munmap", [0, STACK + 1, 0, 0, 0, 0], false),
        ("munmap", [0xffff_f000, STACK - 0xffff_f000, 0, 0, 0, 0], true),
        ("munmap", [0xffff_f000, STACK - 0xffff_efff, 0, 0, 0, 0], false),
        ("munmap", [0x7ffc_0000_0000, 4096, 0, 0, 0, 0], false),
        ("munmap", [0x7ffa_ffff_f000, 4096, 0, 0, 0, 0], true),
        ("munmap", [0x7ffa_ffff_f000, 0x2_0000_0000, 0, 0, 0, 0], false),
        ("madvise", [4096, 4096, 4, 0, 0, 0], true),
        ("madvise", [4096, 4096, 3, 0, 0, 0], true),
        ("madvise", [4096, 4096, 12, 0, 0, 0], false),
        ("madvise", [4096, 4096, 100, 0, 0, 0], false),
        ("madvise", [STACK, 4096, 4, 0, 0, 0], false),
        // Sockets: stream pairs.
        ("socketpair", [1, 1, 0, 0, 0, 0], true),
        ("socketpair", [1, 1 | PAIR, 0, 0, 0, 0], true),
        ("socketpair", [1, 2, 0, 0, 0, 0], false),
        ("socketpair", [1, 5, 0, 0, 0, 0], false),
        ("socketpair", [2, 1, 0, 0, 0, 0], false),
        ("sendto", [3, 0, 0, 0, 0, 0], true),
        ("sendto", [3, 0, 0, 0x4040, 0, 0], true),
        ("sendto", [3, 0, 0, 1, 0, 0], false),
        ("sendto", [3, 0, 0, 0, 0x1000, 16], false),
        ("sendto", [3, 0, 0, 0, 0x1_0000_0000, 16], false),
        ("recvfrom", [3, 0, 0, 2, 0, 0], true),
        ("recvfrom", [3, 0, 0, 1, 0, 0], false),
        ("recvfrom", [3, 0, 0, 0x2000, 0, 0], false),
        ("getsockopt", [3, 1, 3, 0, 0, 0], true),
        ("getsockopt", [3, 1, 77, 0, 0, 0], false),
        ("getsockopt", [3, 6, 3, 0, 0, 0], false),
        // Signals to itself.
        ("kill", [1, 9, 0, 0, 0, 0], true),
        ("kill", [0, 9, 0, 0, 0, 0], false),
        ("kill", [u64::MAX, 9, 0, 0, 0, 0], false),
        ("kill", [2, 0, 0, 0, 0, 0], false),
        ("tgkill", [1, 7, 10, 0, 0, 0], true),
        ("tgkill", [7, 7, 10, 0, 0, 0], false),
        // Limits are read.
        ("prlimit64", [0, 7, 0, 0x1000, 0, 0], true),
        ("prlimit64", [0, 7, 0x1000, 0, 0, 0], false),
        ("prlimit64", [0, 7, 0x1_0000_0000, 0, 0, 0], false),
        ("prlimit64", [1, 7, 0, 0x1000, 0, 0], false),
        // Names of threads, not the parent-death signal, filters or dumping.
        ("prctl", [15, 0, 0, 0, 0, 0], true),
        ("prctl", [1, 0, 0, 0, 0, 0], false),
        ("prctl", [22, 0, 0, 0, 0, 0], false),
        ("prctl", [4, 1, 0, 0, 0, 0], false),
        ("ioctl", [0, 0x5401, 0, 0, 0, 0], true),
        ("ioctl", [0, 0x5412, 0, 0, 0, 0], false),
        ("ioctl", [0, 0x1_0000_5412, 0, 0, 0, 0], false),
        ("fcntl", [0, 1030, 0, 0, 0, 0], true),
        ("fcntl", [0, 1031, 0, 0, 0, 0], false),
        ("fcntl", [0, 8, 0, 0, 0, 0], false),
        ("fcntl", [0, 1024, 0, 0, 0, 0], false),
        ("fcntl", [0, 37, 0, 0, 0, 0], false),
        ("futex", [0, 128, 0, 0, 0, 0], true),
        ("futex", [0, 0x189, 0, 0, 0, 0], true),
        ("futex", [0, 6, 0, 0, 0, 0], false),
        ("futex", [0, 128 | 13, 0, 0, 0, 0], false),
        ("arch_prctl", [0x1002, 0, 0, 0, 0, 0], true),
        ("arch_prctl", [0x1012, 0, 0, 0, 0, 0], false),
    ];
    for architecture in BOTH {
        for (name, arguments, allowed) in cases {
            let Some(number) = number(architecture, name) else {
                continue;
            };
            let expected = if *allowed { ALLOW } else { ERRNO | EPERM };
            let found = ask(architecture, number, *arguments);
            assert_eq!(found, expected, "{architecture:?} {name} {arguments:x?}");
        }
    }
}

/// Said to have succeeded, and not made.
#[test]
fn some_calls_are_feigned() {
    for architecture in BOTH {
        for (name, arguments) in [
            ("mprotect", [4096, 4096, 0, 0, 0, 0]),
            ("mprotect", [4096, 4096, 1, 0, 0, 0]),
            ("mprotect", [4096, 4096, 0x15, 0, 0, 0]),
            ("fcntl", [5, 6, 0x1000, 0, 0, 0]),
            ("fcntl", [5, 7, 0x1000, 0, 0, 0]),
            ("fsync", [5, 0, 0, 0, 0, 0]),
            ("fdatasync", [5, 0, 0, 0, 0, 0]),
            ("msync", [4096, 4096, 4, 0, 0, 0]),
            ("fadvise64", [5, 0, 0, 4, 0, 0]),
        ] {
            let number = number(architecture, name).unwrap();
            let found = ask(architecture, number, arguments);
            assert_eq!(found, FEIGN, "{architecture:?} {name} {arguments:x?}");
        }
    }
    assert_eq!(FEIGN & 0xffff, 0, "an error is no success");
}

/// Where a kernel puts them: a stack between `end - scattered - limit` and the end, what is mapped
/// without an address at least 1 MiB further down.
#[test]
fn stacks_are_told_from_what_is_mapped() {
    const LIMIT: u64 = 8 << 20;
    for (architecture, end) in [
        (Architecture::X86_64, 1 << 47),
        (Architecture::Aarch64, 1 << 48),
        (Architecture::Aarch64, 1 << 47),
        (Architecture::Aarch64, 1 << 39),
    ] {
        let scattered = scattered(architecture);
        for on_a_stack in [end - 4096, end - scattered, end - scattered - LIMIT] {
            let lowest_stack = end - 4096 - scattered - LIMIT;
            let highest_mapping = lowest_stack - (1 << 20);
            let from = stack_from(architecture, on_a_stack, highest_mapping - 4096, LIMIT);
            assert!(from <= lowest_stack && from > highest_mapping, "{from:x}");
        }
        // Without chance.
        let highest_mapping = end - 4096 - (128 << 20);
        let from = stack_from(architecture, end - 8192, highest_mapping - 4096, LIMIT);
        assert!(
            from <= end - 4096 - LIMIT && from > highest_mapping,
            "{from:x}"
        );
    }
}

/// Spelled out, so that no edit of the table lets one of these in unnoticed.
#[test]
fn what_reaches_beyond_the_process_is_not_in_the_table() {
    let never = "socket connect bind listen accept accept4 sendmsg sendmmsg recvmsg recvmmsg setsockopt \
        fork vfork execve ptrace process_vm_readv process_vm_writev pidfd_open pidfd_getfd \
        pidfd_send_signal kcmp memfd_create memfd_secret io_uring_setup io_uring_enter bpf \
        perf_event_open userfaultfd unshare setns mount umount2 pivot_root chroot open_tree move_mount \
        fsopen fsmount fsconfig mount_setattr keyctl add_key request_key seccomp \
        landlock_create_ruleset personality modify_ldt ioperm iopl splice vmsplice tee \
        name_to_handle_at open_by_handle_at mknod mknodat chown fchown lchown fchownat setxattr \
        getxattr statfs fstatfs inotify_init1 fanotify_init setuid setresuid setgid setgroups \
        setsid setpgid setpriority sched_setaffinity sched_setscheduler setrlimit sethostname \
        timer_create timerfd_create signalfd4 shmget semget msgget mq_open mlock mlockall \
        process_madvise quotactl reboot kexec_load init_module syslog acct swapon settimeofday \
        clock_settime adjtimex rt_sigqueueinfo rt_tgsigqueueinfo tkill set_mempolicy migrate_pages \
        openat2 epoll_create epoll_create1 sysinfo membarrier mincore remap_file_pages pkey_mprotect \
        mbind";
    for name in never.split_whitespace() {
        assert!(
            calls::TABLE.iter().all(|call| call.name != name),
            "{name} is in the table"
        );
    }
}

/// Of this machine's own numbers, as the C library's headers have them.
#[test]
fn numbers_agree_with_the_headers() {
    let native = Architecture::NATIVE.expect("a filter for this machine");
    // All that both architectures have, but for two that the crate leaves out of one.
    #[rustfmt::skip]
    let headers = [
        ("read", libc::SYS_read),
        ("write", libc::SYS_write),
        ("readv", libc::SYS_readv),
        ("writev", libc::SYS_writev),
        ("pread64", libc::SYS_pread64),
        ("pwrite64", libc::SYS_pwrite64),
        ("preadv", libc::SYS_preadv),
        ("pwritev", libc::SYS_pwritev),
        ("preadv2", libc::SYS_preadv2),
        ("pwritev2", libc::SYS_pwritev2),
        ("openat", libc::SYS_openat),
        ("close", libc::SYS_close),
        ("close_range", libc::SYS_close_range),
        ("lseek", libc::SYS_lseek),
        ("fstat", libc::SYS_fstat),
        ("newfstatat", libc::SYS_newfstatat),
        ("statx", libc::SYS_statx),
        ("faccessat", libc::SYS_faccessat),
        ("faccessat2", libc::SYS_faccessat2),
        ("readlinkat", libc::SYS_readlinkat),
        ("getdents64", libc::SYS_getdents64),
        ("getcwd", libc::SYS_getcwd),
        ("chdir", libc::SYS_chdir),
        ("fchdir", libc::SYS_fchdir),
        ("mkdirat", libc::SYS_mkdirat),
        ("unlinkat", libc::SYS_unlinkat),
        ("renameat2", libc::SYS_renameat2),
        ("linkat", libc::SYS_linkat),
        ("symlinkat", libc::SYS_symlinkat),
        ("fchmod", libc::SYS_fchmod),
        ("fchmodat", libc::SYS_fchmodat),
        ("utimensat", libc::SYS_utimensat),
        ("truncate", libc::SYS_truncate),
        ("ftruncate", libc::SYS_ftruncate),
        ("fallocate", libc::SYS_fallocate),
        ("fadvise64", libc::SYS_fadvise64),
        ("fsync", libc::SYS_fsync),
        ("fdatasync", libc::SYS_fdatasync),
        ("flock", libc::SYS_flock),
        ("listxattr", libc::SYS_listxattr),
        ("llistxattr", libc::SYS_llistxattr),
        ("flistxattr", libc::SYS_flistxattr),
        ("copy_file_range", libc::SYS_copy_file_range),
        ("sendfile", libc::SYS_sendfile),
        ("dup", libc::SYS_dup),
        ("dup3", libc::SYS_dup3),
        ("umask", libc::SYS_umask),
        ("fcntl", libc::SYS_fcntl),
        ("ioctl", libc::SYS_ioctl),
        ("ppoll", libc::SYS_ppoll),
        ("pselect6", libc::SYS_pselect6),
        ("eventfd2", libc::SYS_eventfd2),
        ("pipe2", libc::SYS_pipe2),
        ("socketpair", libc::SYS_socketpair),
        ("sendto", libc::SYS_sendto),
        ("recvfrom", libc::SYS_recvfrom),
        ("getsockopt", libc::SYS_getsockopt),
        ("getsockname", libc::SYS_getsockname),
        ("getpeername", libc::SYS_getpeername),
        ("shutdown", libc::SYS_shutdown),
        ("mmap", libc::SYS_mmap),
        ("munmap", libc::SYS_munmap),
        ("mprotect", libc::SYS_mprotect),
        ("mremap", libc::SYS_mremap),
        ("madvise", libc::SYS_madvise),
        ("msync", libc::SYS_msync),
        ("brk", libc::SYS_brk),
        ("clone", libc::SYS_clone),
        ("clone3", libc::SYS_clone3),
        ("futex", libc::SYS_futex),
        ("set_robust_list", libc::SYS_set_robust_list),
        ("set_tid_address", libc::SYS_set_tid_address),
        ("rseq", libc::SYS_rseq),
        ("sched_yield", libc::SYS_sched_yield),
        ("sched_getaffinity", libc::SYS_sched_getaffinity),
        ("sched_getparam", libc::SYS_sched_getparam),
        ("sched_getscheduler", libc::SYS_sched_getscheduler),
        ("sched_get_priority_max", libc::SYS_sched_get_priority_max),
        ("sched_get_priority_min", libc::SYS_sched_get_priority_min),
        ("getcpu", libc::SYS_getcpu),
        ("exit", libc::SYS_exit),
        ("exit_group", libc::SYS_exit_group),
        ("wait4", libc::SYS_wait4),
        ("waitid", libc::SYS_waitid),
        ("prctl", libc::SYS_prctl),
        ("execveat", libc::SYS_execveat),
        ("rt_sigaction", libc::SYS_rt_sigaction),
        ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
        ("rt_sigreturn", libc::SYS_rt_sigreturn),
        ("rt_sigpending", libc::SYS_rt_sigpending),
        ("rt_sigtimedwait", libc::SYS_rt_sigtimedwait),
        ("rt_sigsuspend", libc::SYS_rt_sigsuspend),
        ("sigaltstack", libc::SYS_sigaltstack),
        ("restart_syscall", libc::SYS_restart_syscall),
        ("setitimer", libc::SYS_setitimer),
        ("getitimer", libc::SYS_getitimer),
        ("kill", libc::SYS_kill),
        ("tgkill", libc::SYS_tgkill),
        ("nanosleep", libc::SYS_nanosleep),
        ("clock_nanosleep", libc::SYS_clock_nanosleep),
        ("clock_gettime", libc::SYS_clock_gettime),
        ("clock_getres", libc::SYS_clock_getres),
        ("gettimeofday", libc::SYS_gettimeofday),
        ("times", libc::SYS_times),
        ("getrandom", libc::SYS_getrandom),
        ("uname", libc::SYS_uname),
        ("getpid", libc::SYS_getpid),
        ("gettid", libc::SYS_gettid),
        ("getppid", libc::SYS_getppid),
        ("getpgid", libc::SYS_getpgid),
        ("getsid", libc::SYS_getsid),
        ("getuid", libc::SYS_getuid),
        ("geteuid", libc::SYS_geteuid),
        ("getgid", libc::SYS_getgid),
        ("getegid", libc::SYS_getegid),
        ("getresuid", libc::SYS_getresuid),
        ("getresgid", libc::SYS_getresgid),
        ("getgroups", libc::SYS_getgroups),
        ("getrusage", libc::SYS_getrusage),
        ("getpriority", libc::SYS_getpriority),
        ("capget", libc::SYS_capget),
        ("prlimit64", libc::SYS_prlimit64),
    ];
    for (name, expected) in headers {
        assert_eq!(
            number(native, name).map(i64::from),
            Some(expected),
            "{name}"
        );
    }
}
