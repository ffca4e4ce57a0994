//! Runs the real binary with a configuration of the test's, as this user and as an ordinary one.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Nothing waits longer than this; a test that gets here has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A user that nothing else on this machine runs as.
pub(crate) const ORDINARY: u32 = 54_321;

/// A folder with the binary, a configuration and room for temporary files, usable by everyone.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new(execution: &Value) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("ptc-sandbox-test-")
            .tempdir()
            .unwrap();
        let place = Self { folder };
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        open(place.path(), 0o755);
        copy_executable(Path::new(env!("CARGO_BIN_EXE_ptc-mcp")), &place.binary());
        open(&place.binary(), 0o755);
        let config = serde_json::json!({ "execution": execution });
        std::fs::write(place.path().join("config.yaml"), config.to_string()).unwrap();
        std::fs::create_dir(place.temporary()).unwrap();
        open(&place.temporary(), 0o1777);
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn binary(&self) -> PathBuf {
        self.path().join("ptc-mcp")
    }

    /// Where temporary files of the host's go.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path().join("tmp")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        path
    }

    /// `wrapper`, then the binary with `arguments`.
    pub(crate) fn command(&self, wrapper: &[String], arguments: &[&str]) -> Command {
        let binary = self.binary();
        let mut words = wrapper.to_vec();
        words.push(binary.to_str().unwrap().to_owned());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TMPDIR", self.temporary())
            .env("SECRET_OF_THE_SERVER", "1");
        command
    }

    pub(crate) fn run(&self, wrapper: &[String], program: &str) -> Ran {
        let file = self.write("program.py", program);
        let output = self
            .command(wrapper, &["run", "--json", file.to_str().unwrap()])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Ran::of(&output)
    }

    /// Runs a program and watches what memory it takes meanwhile.
    pub(crate) fn run_watched(&self, wrapper: &[String], program: &str) -> (Ran, Peaks) {
        let file = self.write("program.py", program);
        let before = held_by_kernel();
        let child = self
            .command(wrapper, &["run", "--json", file.to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let server = child.id();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let mut peaks = Peaks::default();
                while !ended.load(Ordering::Relaxed) {
                    let below = descendants(server);
                    let program: u64 = below.iter().map(|process| resident(process.pid)).sum();
                    let kernel = held_by_kernel().saturating_sub(before);
                    peaks.program = peaks.program.max(program + kernel);
                    peaks.server = peaks.server.max(resident(server));
                    std::thread::sleep(Duration::from_millis(5));
                }
                peaks
            });
            let output = child.wait_with_output().unwrap();
            ended.store(true, Ordering::Relaxed);
            (Ran::of(&output), watching.join().unwrap())
        })
    }

    /// As a person reads it.
    pub(crate) fn doctor_text(&self, wrapper: &[String]) -> (String, bool) {
        let output = self.command(wrapper, &["doctor"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (text, output.status.success())
    }

    pub(crate) fn doctor(&self, wrapper: &[String]) -> (Value, bool) {
        let output = self
            .command(wrapper, &["doctor", "--json"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let value = serde_json::from_str(&text);
        let value = value.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        (value, output.status.success())
    }
}

/// The most memory that was seen in use, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peaks {
    pub(crate) server: u64,
    /// By the server's children, and by the kernel beyond what it held before.
    pub(crate) program: u64,
}

fn kibibytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.unwrap_or_default();
    // Memory that is shared is among what the kernel holds.
    kibibytes(&status, "VmRSS:").saturating_sub(kibibytes(&status, "RssShmem:"))
}

/// All memory in use, without what processes have for themselves and what is only cached: that of
/// the kernel, buffers of pipes and sockets among it, and of files in memory.
fn held_by_kernel() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let of = |name: &str| kibibytes(&text, name);
    let cached =
        (of("Cached:") + of("Buffers:") + of("SReclaimable:")).saturating_sub(of("Shmem:"));
    of("MemTotal:").saturating_sub(of("MemFree:") + of("AnonPages:") + cached)
}

/// Not by this process: a child that another thread starts meanwhile would hold the copy open for
/// writing, and what is open for writing cannot be executed.
pub(crate) fn copy_executable(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status().unwrap();
    assert!(copied.success(), "{} to {}", from.display(), to.display());
}

/// What a program's run gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) output: String,
    pub(crate) error: Option<String>,
    pub(crate) log: String,
}

impl Ran {
    fn of(output: &Output) -> Self {
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let value: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{log}"));
        Self {
            output: value["output"].as_str().unwrap().to_owned(),
            error: value["error"].as_str().map(ToOwned::to_owned),
            log,
        }
    }

    pub(crate) fn ok(self) -> String {
        assert_eq!(self.error, None, "{}", self.log);
        self.output
    }

    pub(crate) fn failed(self) -> String {
        self.error
            .unwrap_or_else(|| panic!("it succeeded: {}", self.output))
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// The users that a test is to run as: this one, and an ordinary one where this is root.
pub(crate) fn users() -> Vec<(&'static str, Vec<String>)> {
    if !is_root() {
        println!("not root: run as this ordinary user alone");
        return vec![("this user", vec![])];
    }
    vec![("root", vec![]), ("an ordinary user", ordinary())]
}

pub(crate) fn ordinary() -> Vec<String> {
    let id = ORDINARY.to_string();
    words(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"])
}

/// As container engines start things by default: without most capabilities and without the calls
/// that make namespaces and mounts. `None`, with a reason printed, where that cannot be imitated.
pub(crate) fn container(place: &Place, user: &[String]) -> Option<Vec<String>> {
    if !is_root() || !cfg!(target_arch = "x86_64") {
        println!("skipped: imitating a container needs root, and x86-64's call numbers");
        return None;
    }
    let script = place.write("container.py", include_str!("container.py"));
    let capabilities = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,\
                        +net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap";
    let mut wrapper = words(&[
        "setpriv",
        "--bounding-set",
        capabilities,
        "--inh-caps",
        "-all",
    ]);
    wrapper.extend(words(&["python3", script.to_str().unwrap()]));
    wrapper.extend(user.iter().cloned());
    Some(wrapper)
}

/// Waits until `done` says so.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process, told from a later one with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    parent: u32,
    started: String,
}

impl Process {
    fn look(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        (fields[0] != "Z").then(|| Self {
            pid,
            parent: fields[1].parse().unwrap(),
            started: fields[19].to_owned(),
        })
    }

    pub(crate) fn is_alive(&self) -> bool {
        Self::look(self.pid)
            .as_ref()
            .is_some_and(|now| now.started == self.started)
    }

    pub(crate) fn kill(&self) {
        let pid = rustix::process::Pid::from_raw(self.pid as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

/// All processes that descend from `pid`, nearest first.
pub(crate) fn descendants(pid: u32) -> Vec<Process> {
    let all: Vec<Process> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| Process::look(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            parents.push(process.pid);
            found.push(process.clone());
        }
    }
    found
}
