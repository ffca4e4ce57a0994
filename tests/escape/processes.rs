//! The host's process table: which processes belong to a program, and what the kernel says of them.
//!
//! A program makes itself known by keeping a file open whose name is its marker; whatever it forks
//! or becomes keeps that file. No program is asked anything.

use std::collections::BTreeMap;

/// One process that holds a marker.
#[derive(Debug, Clone)]
pub struct Seen {
    pub pid: u32,
    pub command: String,
    /// What its descriptors lead to, as the kernel names it.
    pub descriptors: Vec<String>,
    /// Attributes by the name under which a script's header asks for them.
    pub state: BTreeMap<String, String>,
    pub threads: usize,
    /// What lies in its working directory.
    pub scratch: Scratch,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Scratch {
    pub bytes: u64,
    pub files: usize,
    pub devices: usize,
}

/// Whether this platform shows what [`holding`] needs.
pub const VISIBLE: bool = cfg!(target_os = "linux");

#[cfg(target_os = "linux")]
pub fn holding(marker: &str) -> Vec<Seen> {
    // No program is older than this process, and most of a host's processes are.
    let own = linux::start(std::process::id());
    let young = linux::pids()
        .into_iter()
        .filter(|pid| linux::start(*pid) >= own);
    young.filter_map(|pid| linux::look(pid, marker)).collect()
}

#[cfg(not(target_os = "linux"))]
pub fn holding(_marker: &str) -> Vec<Seen> {
    Vec::new()
}

/// The parent of a process, if the table shows one.
#[cfg(target_os = "linux")]
pub fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')')
        .next()?
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(not(target_os = "linux"))]
pub fn parent(_pid: u32) -> Option<u32> {
    None
}

/// Resident bytes of a process, without memory that it shares: that is the kernel's.
#[cfg(target_os = "linux")]
pub fn resident(pid: u32) -> u64 {
    let of = |folder: String| {
        let status = format!("{folder}/status");
        linux::kibibytes(&status, "VmRSS:").saturating_sub(linux::kibibytes(&status, "RssShmem:"))
    };
    match of(format!("/proc/{pid}")) {
        // Nothing is told of a first thread that has ended, whatever the others hold.
        0 => {
            let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
            let threads = threads.into_iter().flatten().flatten();
            let each = threads.map(|thread| of(thread.path().display().to_string()));
            each.max().unwrap_or(0)
        }
        bytes => bytes,
    }
}

#[cfg(not(target_os = "linux"))]
pub fn resident(pid: u32) -> u64 {
    let output = std::process::Command::new("/bin/ps")
        .args(["-o", "rss=", "-p", &pid.to_string()])
        .output()
        .expect("ps runs");
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse::<u64>()
        .unwrap_or(0)
        * 1024
}

/// Resident bytes of everything that descends from a process, itself left out.
#[cfg(target_os = "linux")]
pub fn resident_below(server: u32) -> u64 {
    let descends = |pid: &u32| {
        let parents =
            std::iter::successors(parent(*pid), |pid| parent(*pid).filter(|pid| *pid > 1));
        parents.take(16).any(|pid| pid == server)
    };
    let own = linux::start(std::process::id());
    let young = linux::pids()
        .into_iter()
        .filter(|pid| linux::start(*pid) >= own);
    young.filter(descends).map(resident).sum()
}

#[cfg(not(target_os = "linux"))]
pub fn resident_below(_server: u32) -> u64 {
    0
}

/// Memory that the host's kernel holds, for whatever reason, and files that lie in memory: all that is
/// in use, without what processes have for themselves and what is only cached. So what other
/// processes of the host take and give back is left out, and the buffers of pipes and sockets, which
/// no counter names, are in. `None` where the host does not say.
#[cfg(target_os = "linux")]
pub fn held_by_kernel() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let of = |name: &str| linux::kibibytes_in(&text, name);
    let cached =
        (of("Cached:") + of("Buffers:") + of("SReclaimable:")).saturating_sub(of("Shmem:"));
    Some(of("MemTotal:").saturating_sub(of("MemFree:") + of("AnonPages:") + cached))
}

#[cfg(not(target_os = "linux"))]
pub fn held_by_kernel() -> Option<u64> {
    None
}

/// What another program could change of a process, in one text.
#[cfg(target_os = "linux")]
pub fn fingerprint(pid: u32) -> String {
    let read =
        |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let status = read("status");
    let line = |key: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .unwrap_or("gone")
            .trim()
    };
    let stands = stands(pid);
    let stat = read("stat");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    // Niceness, real-time priority and policy, counted from the state.
    let scheduling = [16, 37, 38].map(|place| fields.get(place).copied().unwrap_or_default());
    format!(
        "stands: {stands}, tracer: {}, processors: {}, scheduling: {scheduling:?}, out of memory: {}, {}",
        line("TracerPid:"),
        line("Cpus_allowed:"),
        read("oom_score_adj").trim(),
        read("limits"),
    )
}

#[cfg(not(target_os = "linux"))]
pub fn fingerprint(pid: u32) -> String {
    let output = std::process::Command::new("/bin/ps")
        .args(["-o", "pid=,nice=", "-p", &pid.to_string()])
        .output()
        .expect("ps runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether a process is there and neither stopped nor dead.
#[cfg(target_os = "linux")]
pub fn stands(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    state.is_some_and(|state| !state.trim().starts_with(['T', 't', 'Z', 'X']))
}

#[cfg(not(target_os = "linux"))]
pub fn stands(pid: u32) -> bool {
    let output = std::process::Command::new("/bin/ps")
        .args(["-o", "state=", "-p", &pid.to_string()])
        .output()
        .expect("ps runs");
    let state = String::from_utf8_lossy(&output.stdout);
    !state.trim().is_empty() && !state.trim().starts_with(['T', 'Z'])
}

/// Processes that name a text in their arguments or their environment.
#[cfg(target_os = "linux")]
pub fn mentioning(text: &str) -> Vec<String> {
    let holds = |pid: u32, name: &str| {
        std::fs::read(format!("/proc/{pid}/{name}")).is_ok_and(|bytes| {
            bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        })
    };
    linux::pids()
        .into_iter()
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| holds(*pid, "cmdline") || holds(*pid, "environ"))
        .map(|pid| {
            format!(
                "{pid} {}",
                std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
            )
        })
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub fn mentioning(text: &str) -> Vec<String> {
    let output = std::process::Command::new("/bin/ps")
        .args(["-axwwo", "command="])
        .output()
        .expect("ps runs");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| line.contains(text))
        .map(str::to_owned)
        .collect()
}

/// Kills what an unconfined program left behind.
pub fn kill(pid: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

    use super::{Scratch, Seen};

    pub(super) fn pids() -> Vec<u32> {
        let entries = fs::read_dir("/proc").expect("a process table").flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }

    /// When a process started, in ticks since the host's boot.
    pub(super) fn start(pid: u32) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let field = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().nth(19));
        field.and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
    }

    pub(super) fn look(pid: u32, marker: &str) -> Option<Seen> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let descriptors: Vec<String> = fs::read_dir(folder.join("fd"))
            .ok()?
            .flatten()
            .filter_map(|entry| {
                Some(
                    fs::read_link(entry.path())
                        .ok()?
                        .to_string_lossy()
                        .into_owned(),
                )
            })
            .collect();
        // A file that was removed, or whose mount is gone, keeps its name in the link.
        if !descriptors.iter().any(|link| link.contains(marker)) {
            return None;
        }
        let mut scratch = scratch(&folder.join("cwd/"));
        // Files without a name are in no listing, and take their room all the same.
        let mut nameless = std::collections::BTreeMap::new();
        for name in ["fd", "map_files"] {
            for entry in fs::read_dir(folder.join(name))
                .into_iter()
                .flatten()
                .flatten()
            {
                let file = fs::metadata(entry.path()).ok();
                if let Some(file) = file.filter(|file| file.is_file() && file.nlink() == 0) {
                    nameless.insert((file.dev(), file.ino()), file.blocks() * 512);
                }
            }
        }
        scratch.bytes += nameless.values().sum::<u64>();
        let command = fs::read(folder.join("cmdline")).unwrap_or_default();
        let threads = fs::read_dir(folder.join("task")).map_or(0, Iterator::count);
        Some(Seen {
            pid,
            command: String::from_utf8_lossy(&command).replace('\0', " "),
            descriptors,
            state: state(&folder, marker),
            threads,
            scratch,
        })
    }

    fn state(folder: &Path, marker: &str) -> std::collections::BTreeMap<String, String> {
        let mut state = std::collections::BTreeMap::new();
        for name in [
            "limits",
            "personality",
            "mountinfo",
            "timers",
            "oom_score_adj",
            "comm",
        ] {
            if let Ok(text) = fs::read_to_string(folder.join(name)) {
                state.insert(name.to_owned(), text);
            }
        }
        for namespace in [
            "cgroup",
            "ipc",
            "mnt",
            "net",
            "pid_for_children",
            "time_for_children",
            "user",
            "uts",
        ] {
            if let Ok(link) = fs::read_link(folder.join("ns").join(namespace)) {
                state.insert(
                    format!("ns/{namespace}"),
                    link.to_string_lossy().into_owned(),
                );
            }
        }
        if let Ok(root) = fs::metadata(folder.join("root/")) {
            state.insert("root".to_owned(), format!("{}:{}", root.dev(), root.ino()));
        }
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        for line in status.lines() {
            if let Some((key, value)) = line.split_once(':') {
                state.insert(format!("status/{key}"), value.trim().to_owned());
            }
        }
        let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        for (key, place) in [("session", 3), ("nice", 16), ("policy", 38)] {
            state.insert(
                format!("stat/{key}"),
                fields.get(place).unwrap_or(&"").to_string(),
            );
        }
        let maps = fs::read_to_string(folder.join("maps")).unwrap_or_default();
        let executable: Vec<&str> = maps
            .lines()
            .filter(|line| line.contains(marker))
            .filter_map(|line| line.split_whitespace().nth(1))
            .filter(|rights| rights.contains('x'))
            .collect();
        state.insert("maps/executable".to_owned(), executable.join(" "));
        state
    }

    fn scratch(folder: &Path) -> Scratch {
        let mut found = Scratch::default();
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(top) = rustix::fs::open(folder, flags, Mode::empty()) {
            count(&top, &mut found);
        }
        found
    }

    /// Folder by folder and not by paths, which a program can make longer than the kernel takes.
    fn count(folder: &OwnedFd, found: &mut Scratch) {
        let Ok(listing) = Dir::read_from(folder) else {
            return;
        };
        for entry in listing.flatten() {
            let name = entry.file_name();
            let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if name == c"." || name == c".." {
                continue;
            }
            found.files += 1;
            found.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
            let kind = FileType::from_raw_mode(stat.st_mode);
            let is_device = matches!(kind, FileType::BlockDevice | FileType::CharacterDevice);
            found.devices += usize::from(is_device);
            if kind == FileType::Directory && found.files < 100_000 {
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                if let Ok(inner) = openat(folder, name, flags, Mode::empty()) {
                    count(&inner, found);
                }
            }
        }
    }

    pub(super) fn kibibytes(file: &str, key: &str) -> u64 {
        kibibytes_in(&fs::read_to_string(file).unwrap_or_default(), key)
    }

    pub(super) fn kibibytes_in(text: &str, key: &str) -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or(0) * 1024
    }
}
