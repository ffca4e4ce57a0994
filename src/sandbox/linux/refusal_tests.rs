use super::*;

fn facts(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = Facts {
        root: false,
        filtered: false,
        container: false,
        chrooted: false,
        apparmor_restricts: false,
        apparmor_profile: None,
        max_user_namespaces: Some(15000),
        max_others: None,
        clone_forbidden: false,
        kernel: "6.1.0-13-amd64".to_owned(),
        binary: "/opt/my tools/ptc-mcp".to_owned(),
    };
    change(&mut facts);
    facts
}

// contract: B5
#[test]
fn a_refusal_names_step_errno_cause_and_every_way_out() {
    let clone = "clone with namespaces";
    type Case = (
        &'static str,
        &'static str,
        i32,
        Facts,
        &'static str,
        &'static str,
    );
    #[rustfmt::skip]
    let cases: Vec<Case> = vec![
        ("namespaces", clone, libc::EPERM, facts(|f| f.filtered = true), "system-call filter", "seccomp=unconfined"),
        ("namespaces", clone, libc::EPERM, facts(|f| f.container = true), "system-call filter", "as the container's root"),
        ("namespaces", clone, libc::ENOSPC, facts(|f| f.max_user_namespaces = Some(0)), "max_user_namespaces is 0", "sysctl -w user.max_user_namespaces=15000"),
        ("namespaces", clone, libc::ENOSPC, facts(|_| {}), "(15000) allows are in use", "sysctl -w user.max_user_namespaces"),
        ("namespaces", clone, libc::EUSERS, facts(|f| f.max_user_namespaces = None), "no more user namespaces", "sysctl"),
        ("namespaces", clone, libc::ENOSPC, facts(|f| f.max_others = Some("user.max_net_namespaces")), "user.max_net_namespaces is 0", "sysctl -w user.max_net_namespaces=15000"),
        ("namespaces", clone, libc::EPERM, facts(|f| f.chrooted = true), "inside a chroot", "outside the chroot"),
        ("namespaces", clone, libc::EPERM, facts(|f| f.clone_forbidden = true), "unprivileged_userns_clone is 0", "unprivileged_userns_clone=1"),
        ("namespaces", clone, libc::EINVAL, facts(|f| f.kernel = "5.4.0-150-generic".to_owned()), "kernel 5.4.0-150-generic is older than 5.14", "5.14 or newer"),
        ("namespaces", "open_tree /usr/lib", libc::ENOSYS, facts(|_| {}), "gVisor", "5.14 or newer"),
        ("namespaces", "make mounts private", libc::EACCES, facts(|f| f.apparmor_restricts = true), "AppArmor restricts user namespaces", "profile ptc-mcp \"/opt/my tools/ptc-mcp\" flags=(unconfined) { userns, }"),
        ("namespaces", "write uid_map", libc::EPERM, facts(|f| f.apparmor_restricts = true), "AppArmor restricts", "apparmor_parser -r"),
        ("namespaces", "mount a tmpfs", libc::EACCES, facts(|f| { f.root = true; f.apparmor_profile = Some("docker-default (enforce)".to_owned()) }), "'docker-default (enforce)'", "apparmor=unconfined"),
        ("namespaces", clone, libc::EPERM, facts(|_| {}), "security module", "allow this binary"),
        ("namespaces", "pivot_root", libc::EINVAL, facts(|_| {}), "unknown", "ptc-mcp doctor"),
        ("namespaces", "exec the interpreter", libc::EACCES, facts(|f| f.root = true), "not readable for every user", "chmod -R a+rX"),
        ("chroot", "exec the interpreter", libc::EACCES, facts(|f| f.root = true), "noexec", "execution.python"),
        ("namespaces", "open /opt/python3", libc::EACCES, facts(|_| {}), "noexec", "execution.python"),
        ("chroot", "chroot as an ordinary user", libc::EPERM, facts(|_| {}), "only root", "execution.sandbox: auto"),
        ("chroot", "chroot /var/cache/ptc-mcp/root-1", libc::EPERM, facts(|f| f.root = true), "CAP_SYS_CHROOT is missing", "--cap-add"),
        ("chroot", "setresuid", libc::EPERM, facts(|f| f.root = true), "CAP_SETUID", "--cap-add"),
        ("chroot", "give up supplementary groups", libc::EPERM, facts(|f| f.root = true), "CAP_SETGID", "--cap-add"),
        ("chroot", "drop the capability bounding set", libc::EPERM, facts(|f| f.root = true), "CAP_SETPCAP", "--cap-add"),
        ("chroot", "copy the interpreter to /var/tmp/ptc-mcp", libc::EROFS, facts(|f| f.root = true), "read-only or full", "writable folder"),
    ];
    for (mode, step, errno, facts, cause, fix) in cases {
        let failure = Failure {
            step: step.to_owned(),
            errno,
        };
        let text = refused(mode, &failure, &facts);
        let name = crate::sandbox::linux::plan::errno_name(errno);
        for expected in [
            mode,
            &format!("({step}: {name})"),
            cause,
            fix,
            "sandbox: none",
            STILL,
        ] {
            assert!(text.contains(expected), "'{expected}' is not in:\n{text}");
        }
        for never in ["sealed", "bubblewrap", "bwrap"] {
            assert!(!text.contains(never), "{text}");
        }
    }
}

#[test]
fn a_whole_refusal_reads_well() {
    let failure = Failure {
        step: "clone with namespaces".to_owned(),
        errno: libc::ENOSPC,
    };
    let first = refused(
        "namespaces",
        &failure,
        &facts(|facts| facts.max_user_namespaces = Some(0)),
    );
    assert_eq!(
        first,
        "sandbox 'namespaces' is not available here (clone with namespaces: ENOSPC).\n  \
         cause: user.max_user_namespaces is 0\n  \
         fix:   sudo sysctl -w user.max_user_namespaces=15000\n  \
         or:    execution.sandbox: none runs programs without a wall: for programs that you would \
         run yourself\n\
         Programs do not run until then; listing and inspecting tools still work."
    );
    let both = both(&first, "chroot: EPERM");
    assert!(both.contains("yourself\n'chroot', tried next because ptc-mcp is root, failed too: chroot: EPERM.\nPrograms"), "{both}");
    assert_eq!(both.matches(STILL).count(), 1);
}

#[test]
fn facts_can_be_gathered() {
    let facts = Facts::now();
    assert!(!facts.kernel.is_empty());
    assert!(!facts.is_old(), "the tests run on {}", facts.kernel);
}
