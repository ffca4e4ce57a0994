//! What the kernel says of processes: `/proc` where there is one, else what `ps` makes of it.

use std::path::PathBuf;
use std::process::Command;

/// Environments, descriptors and threads of another process are seen on Linux only.
pub const LINUX: bool = cfg!(target_os = "linux");

/// One process, told apart from a later one of the same id by its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub state: char,
    started: String,
}

impl Process {
    pub fn of(pid: u32) -> Option<Self> {
        if !LINUX {
            return ps().into_iter().find(|process| process.pid == pid);
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before the last parenthesis may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            state: fields.first()?.chars().next()?,
            started: (*fields.get(19)?).to_owned(),
        })
    }

    /// Still there, and more than an entry that waits to be reaped.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now.started == self.started && now.state != 'Z')
    }

    /// Its command line, for a person.
    pub fn command(&self) -> String {
        let line = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.chars().take(120).collect()
    }
}

fn ps() -> Vec<Process> {
    let listed = Command::new("ps")
        .args(["-A", "-o", "pid=,ppid=,state=,lstart="])
        .output()
        .expect("ps runs");
    String::from_utf8_lossy(&listed.stdout)
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            Some(Process {
                pid: fields.next()?.parse().ok()?,
                parent: fields.next()?.parse().ok()?,
                state: fields.next()?.chars().next()?,
                started: fields.collect::<Vec<_>>().join(" "),
            })
        })
        .collect()
}

fn all() -> Vec<Process> {
    if !LINUX {
        return ps();
    }
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Process::of)
        .collect()
}

/// Everything that descends from a process, which itself is left out.
pub fn descendants(of: u32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            parents.push(process.pid);
            found.push(process.clone());
        }
    }
    found
}

/// The environment that a process was started with, one `NAME=value` an entry.
pub fn environment(pid: u32) -> Vec<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&environment)
        .split_terminator('\0')
        .map(str::to_owned)
        .collect()
}

/// How many entries a folder of `/proc/<pid>` has: `fd`, `task`.
pub fn count(pid: u32, folder: &str) -> usize {
    let folder = PathBuf::from(format!("/proc/{pid}/{folder}"));
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}
