//! Why a wall cannot be had on Linux, in words: the step, the error, the likely cause, each way out.
//!
//! What is known about the system is gathered once a step has failed, and only to explain it: no
//! decision is made on a setting. The texts are pure functions of both.

use std::path::Path;

use super::plan::Failure;
use crate::sandbox::refusal::{NONE, STILL};

const OTHER_LIMITS: [&str; 6] = [
    "user.max_mnt_namespaces",
    "user.max_pid_namespaces",
    "user.max_net_namespaces",
    "user.max_ipc_namespaces",
    "user.max_uts_namespaces",
    "user.max_cgroup_namespaces",
];

/// What the system says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox) struct Facts {
    pub(in crate::sandbox) root: bool,
    /// A system-call filter is on this process.
    pub(in crate::sandbox) filtered: bool,
    pub(in crate::sandbox) container: bool,
    /// The root folder is no mount point.
    pub(in crate::sandbox) chrooted: bool,
    /// `kernel.apparmor_restrict_unprivileged_userns`.
    pub(in crate::sandbox) apparmor_restricts: bool,
    /// The AppArmor profile of this process, if it is confined.
    pub(in crate::sandbox) apparmor_profile: Option<String>,
    /// `user.max_user_namespaces`.
    pub(in crate::sandbox) max_user_namespaces: Option<u64>,
    /// A setting of the other kinds of namespaces that is 0.
    pub(in crate::sandbox) max_others: Option<&'static str>,
    /// `kernel.unprivileged_userns_clone`, which only some distributions have, is 0.
    pub(in crate::sandbox) clone_forbidden: bool,
    pub(in crate::sandbox) kernel: String,
    /// Our own binary.
    pub(in crate::sandbox) binary: String,
}

impl Facts {
    pub(in crate::sandbox) fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let sysctl = |name: &str| read(&format!("/proc/sys/{name}")).trim().to_owned();
        let status = read("/proc/self/status");
        let profile = read("/proc/self/attr/current");
        let profile = profile.trim_end_matches(['\n', '\0']);
        let mounts = read("/proc/self/mountinfo");
        Self {
            root: rustix::process::geteuid().is_root(),
            filtered: status.lines().any(|line| {
                line.strip_prefix("Seccomp:")
                    .is_some_and(|mode| mode.trim() == "2")
            }),
            container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|file| Path::new(file).exists())
                || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            chrooted: !mounts.is_empty()
                && !mounts
                    .lines()
                    .any(|line| line.split(' ').nth(4) == Some("/")),
            apparmor_restricts: sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1",
            apparmor_profile: (!profile.is_empty() && !profile.starts_with("unconfined"))
                .then(|| profile.to_owned()),
            max_user_namespaces: sysctl("user/max_user_namespaces").parse().ok(),
            max_others: OTHER_LIMITS
                .into_iter()
                .find(|name| sysctl(&name.replace('.', "/")) == "0"),
            clone_forbidden: sysctl("kernel/unprivileged_userns_clone") == "0",
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            binary: std::env::current_exe()
                .map(|path| path.display().to_string())
                .unwrap_or_default(),
        }
    }

    fn is_old(&self) -> bool {
        let mut parts = self.kernel.split(|c: char| !c.is_ascii_digit());
        let mut next = || parts.next().and_then(|part| part.parse::<u32>().ok());
        matches!((next(), next()), (Some(major), Some(minor)) if (major, minor) < (5, 14))
    }
}

/// A likely cause, and what to do about it.
struct Cause {
    what: String,
    fixes: Vec<String>,
}

fn cause(what: &str, fixes: &[&str]) -> Cause {
    Cause {
        what: what.to_owned(),
        fixes: fixes.iter().map(ToString::to_string).collect(),
    }
}

/// The wall stands, and the interpreter cannot be started behind it.
fn of_interpreter(failure: &Failure, facts: &Facts) -> Option<Cause> {
    let steps = ["exec", "open /", "hide"];
    let about = steps.iter().any(|step| failure.step.starts_with(step));
    if !about || failure.errno != libc::EACCES {
        return None;
    }
    Some(if facts.root {
        cause(
            "as root's, a program runs as nobody, and the interpreter's files are not readable for \
             every user, or lie on a file system that is mounted noexec",
            &["chmod -R a+rX the interpreter's folder, or name another one in execution.python"],
        )
    } else {
        cause(
            "the interpreter lies on a file system that is mounted noexec, or a security module \
             refuses it",
            &["name another interpreter in execution.python"],
        )
    })
}

/// A step was refused while the sandbox was built.
pub(in crate::sandbox) fn refused(mode: &str, failure: &Failure, facts: &Facts) -> String {
    let cause = of_interpreter(failure, facts).unwrap_or_else(|| match mode {
        "chroot" => of_chroot(failure, facts),
        _ => of_namespaces(failure, facts),
    });
    let mut text = format!(
        "sandbox '{mode}' is not available here ({failure}).\n  cause: {}\n",
        cause.what
    );
    for fix in &cause.fixes {
        text += &format!("  fix:   {fix}\n");
    }
    text += &format!("  or:    {NONE}\n{STILL}");
    text
}

fn of_namespaces(failure: &Failure, facts: &Facts) -> Cause {
    let Failure { step, errno } = failure;
    let denied = matches!(*errno, libc::EPERM | libc::EACCES);
    let cloning = step.starts_with("clone");
    let container_fixes: &[&str] = &[
        "run the container with --security-opt seccomp=unconfined, or with a profile that \
         allows user namespaces and mounts (Kubernetes: seccompProfile Unconfined)",
        "or run ptc-mcp as the container's root, with CAP_SYS_CHROOT, CAP_SETUID, CAP_SETGID, \
         CAP_SETPCAP, CAP_CHOWN and CAP_MKNOD, as engines give by default, and leave \
         execution.sandbox at 'auto': it then uses 'chroot'",
    ];
    if facts.is_old() {
        return cause(
            &format!("kernel {} is older than 5.14", facts.kernel),
            &["a kernel of 5.14 or newer (Debian 12, Ubuntu 22.04, RHEL 9)"],
        );
    }
    if *errno == libc::ENOSYS {
        return cause(
            &format!(
                "the kernel ({}) does not have this call: it was built without it, or it is \
                 an imitation of Linux (gVisor)",
                facts.kernel
            ),
            &["a Linux kernel of 5.14 or newer, with user namespaces"],
        );
    }
    if cloning && matches!(*errno, libc::ENOSPC | libc::EUSERS) {
        if let Some(other) = facts.max_others {
            return Cause {
                what: format!("{other} is 0"),
                fixes: vec![format!("sudo sysctl -w {other}=15000")],
            };
        }
        let limit = facts.max_user_namespaces;
        let what = match limit {
            Some(limit @ 0) => format!("user.max_user_namespaces is {limit}"),
            Some(limit) => format!(
                "all user namespaces that user.max_user_namespaces ({limit}) allows are in \
                 use, or they are nested too deep"
            ),
            None => "no more user namespaces are allowed".to_owned(),
        };
        return cause(&what, &["sudo sysctl -w user.max_user_namespaces=15000"]);
    }
    if cloning && denied && facts.chrooted {
        return cause(
            "ptc-mcp runs inside a chroot, where the kernel allows no user namespaces",
            &["run it outside the chroot, or enter that folder by pivot_root, as containers do"],
        );
    }
    if cloning && denied && facts.clone_forbidden {
        return cause(
            "kernel.unprivileged_userns_clone is 0",
            &["sudo sysctl -w kernel.unprivileged_userns_clone=1"],
        );
    }
    if denied && facts.apparmor_restricts && !facts.root {
        return Cause {
            what: "AppArmor restricts user namespaces on this system \
                   (kernel.apparmor_restrict_unprivileged_userns=1)"
                .to_owned(),
            fixes: vec![format!(
                "allow them to this binary:\n         \
                 sudo tee /etc/apparmor.d/ptc-mcp <<'EOF'\n         \
                 abi <abi/4.0>,\n         \
                 include <tunables/global>\n         \
                 profile ptc-mcp \"{}\" flags=(unconfined) {{ userns, }}\n         \
                 EOF\n         \
                 sudo apparmor_parser -r /etc/apparmor.d/ptc-mcp",
                facts.binary
            )],
        };
    }
    if denied
        && !cloning
        && let Some(profile) = &facts.apparmor_profile
    {
        return Cause {
            what: format!("the AppArmor profile '{profile}' refuses it"),
            fixes: vec![
                "run the container with --security-opt apparmor=unconfined".to_owned(),
                container_fixes[1].to_owned(),
            ],
        };
    }
    if denied && (facts.filtered || facts.container) {
        return cause("the container's system-call filter", container_fixes);
    }
    if denied {
        return cause(
            "a security module or setting of this system refuses it; `dmesg` or `journalctl \
             -k` may name it",
            &["allow this binary to create user namespaces and to mount inside them"],
        );
    }
    cause(
        "unknown",
        &["`ptc-mcp doctor` shows how far it gets; please report this with its output"],
    )
}

fn of_chroot(failure: &Failure, facts: &Facts) -> Cause {
    let step = failure.step.as_str();
    if !facts.root {
        return cause(
            "only root may change its root folder",
            &["execution.sandbox: auto, which needs no root where user namespaces are allowed"],
        );
    }
    let capability = if step.starts_with("chroot") {
        "CAP_SYS_CHROOT"
    } else if step.starts_with("setresuid") {
        "CAP_SETUID"
    } else if step.starts_with("setresgid") || step.starts_with("give up") {
        "CAP_SETGID"
    } else if step.starts_with("drop") {
        "CAP_SETPCAP"
    } else if step.starts_with("copy") || step.starts_with("scratch directory") {
        return cause(
            "the interpreter cannot be copied to /var/cache/ptc-mcp or /var/tmp/ptc-mcp: a \
             read-only or full file system, or CAP_MKNOD or CAP_CHOWN is missing",
            &[
                "make one of the two a writable folder of root's, without nodev, noexec and \
               nosuid, and give the container CAP_MKNOD and CAP_CHOWN",
            ],
        );
    } else {
        return cause(
            "unknown",
            &["`ptc-mcp doctor` shows how far it gets; please report this with its output"],
        );
    };
    Cause {
        what: format!("{capability} is missing"),
        fixes: vec![format!("give the container {capability} (--cap-add)")],
    }
}

/// `auto`, where the wall that it falls back to cannot be had either.
pub(in crate::sandbox) fn both(first: &str, second: &str) -> String {
    let end = format!("\n{STILL}");
    let first = first.strip_suffix(&end).unwrap_or(first);
    format!("{first}\n'chroot', tried next because ptc-mcp is root, failed too: {second}.{end}")
}

/// Why the smaller wall is in use.
pub(in crate::sandbox) fn fell_back(failure: &Failure) -> String {
    format!(
        "the kernel refuses namespaces here ({failure}); every guarantee holds but those that \
         only namespaces give: the host name and the system's process ids show, and scratch \
         directories lie on disk"
    )
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
