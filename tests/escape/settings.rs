//! The table of settings in which the corpus runs, and a pair of servers in one of them.
//!
//! A further way to run a program (another backend, another interpreter, another user) is a line in
//! [`SETTINGS`].

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::corpus::{Bound, Evidence, Mode, Secret};
use crate::desk::{self, Desk};
use crate::processes;
use crate::session::Session;
use crate::witness::{Court, Facts, Limits};
use crate::world::{Site, word};

const SERVER: &str = env!("CARGO_BIN_EXE_ptc-mcp");

/// An id that is nobody's: an ordinary user for whom no account is needed.
const ORDINARY: u32 = 54_321;

/// Where an interpreter lies that belongs to no home folder.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub struct Setting {
    pub name: &'static str,
    pub mode: Mode,
    pub user: User,
    pub python: Python,
    /// `execution.pool`: programs start in a fresh child, or in one that is ready.
    pub pool: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the test.
    Own,
    /// Somebody without rights: another one if root runs the test, and else whoever does.
    Ordinary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Python {
    /// The first one on `PATH`, often under a home folder.
    First,
    System,
}

#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    Setting { name: "none", mode: Mode::None, user: User::Own, python: Python::First, pool: 0 },
    Setting { name: "namespaces", mode: Mode::Namespaces, user: User::Own, python: Python::First, pool: 0 },
    Setting { name: "namespaces, ordinary user, system python, ready child", mode: Mode::Namespaces, user: User::Ordinary, python: Python::System, pool: 1 },
    Setting { name: "chroot", mode: Mode::Chroot, user: User::Own, python: Python::First, pool: 0 },
    Setting { name: "seatbelt", mode: Mode::Seatbelt, user: User::Own, python: Python::First, pool: 0 },
    Setting { name: "seatbelt, ready child", mode: Mode::Seatbelt, user: User::Own, python: Python::First, pool: 1 },
];

/// For attacks that end by themselves: far from any limit of time on a busy machine.
const PATIENT: Limits = Limits {
    timeout: Duration::from_secs(20),
    tool_calls: 10,
    concurrent_calls: 2,
    memory: 256 << 20,
    scratch: 32 << 20,
    output: 64 << 10,
};

/// For attacks that end only when they are ended.
const STRICT: Limits = Limits {
    timeout: Duration::from_secs(1),
    ..PATIENT
};

/// For attacks on the server's memory, some of which wait for ever in the end.
const WATCHED: Limits = Limits {
    timeout: Duration::from_secs(3),
    ..PATIENT
};

/// The servers of one setting.
pub struct Running {
    desk: Desk,
    patient: Server,
    others: Option<Others>,
    mode: Mode,
    folder: TempDir,
}

struct Others {
    strict: Server,
    /// Runs one program at a time, while its memory is watched.
    quiet: Server,
}

struct Server {
    session: Session,
    site: Site,
    facts: Facts,
    limits: Limits,
    /// Beside the scratch directories, and not to be counted among what is left.
    neighbour: String,
}

impl Running {
    /// Starts them, or says why this host cannot have the setting.
    pub fn start(setting: &Setting) -> Result<Self, String> {
        Self::start_some(setting, true)
    }

    /// Starts the patient one alone.
    pub fn start_one(setting: &Setting) -> Result<Self, String> {
        Self::start_some(setting, false)
    }

    fn start_some(setting: &Setting, all: bool) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("ptc-escape-")
            .tempdir()
            .unwrap();
        open_to_all(folder.path());
        let desk = Desk::open(folder.path().join("desk"));
        open_to_all(&desk.socket);
        // Where a user without rights reaches them, whatever folder they were built in.
        let own = std::env::current_exe().expect("a path of our own");
        let runner = place(&own, &folder.path().join("runner"));
        let binary = place(Path::new(SERVER), &folder.path().join("ptc-mcp"));
        let start = |limits| Server::start(setting, limits, folder.path(), &desk, &binary, &runner);
        let patient = start(PATIENT)?;
        let answer = patient.session.execute("print('stands')")?;
        if let Some(refusal) = answer.refusal() {
            return Err(refusal.lines().next().unwrap_or_default().to_owned());
        }
        if !answer.text.contains("stands") {
            return Err(format!("the first program failed: {}", answer.text));
        }
        let others = || -> Result<Others, String> {
            let (strict, quiet) = (start(STRICT)?, start(WATCHED)?);
            Ok(Others { strict, quiet })
        };
        Ok(Self {
            others: all.then(others).transpose()?,
            desk,
            patient,
            mode: setting.mode,
            folder,
        })
    }

    /// The server of programs that end by themselves.
    pub fn session(&self) -> &Session {
        &self.patient.session
    }

    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Where an attack with this evidence is tried.
    pub fn court(&self, evidence: &Evidence) -> Court<'_> {
        let others = self.others.as_ref().expect("attacks need all servers");
        let server = match evidence {
            Evidence::Bound(Bound::Time) => &others.strict,
            Evidence::Bound(Bound::ServerMemory) => &others.quiet,
            _ => &self.patient,
        };
        Court {
            session: &server.session,
            desk: &self.desk,
            site: &server.site,
            facts: &server.facts,
            limits: server.limits,
            mode: self.mode,
        }
    }

    /// Ends the servers and looks for what they should not have left.
    pub fn end(&self) -> Result<(), String> {
        let others = self.others.iter();
        let others = others.flat_map(|others| [&others.strict, &others.quiet]);
        for server in others.chain([&self.patient]) {
            server.session.close()?;
            let left: Vec<String> = fs::read_dir(&server.site.scratch)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .filter(|name| *name != server.neighbour)
                .collect();
            if !left.is_empty() {
                return Err(format!("left in its TMPDIR: {left:?}"));
            }
        }
        gone(self.folder.path())
    }

    /// Whether nothing of the patient server is left, its tool server included.
    pub fn is_gone(&self) -> Result<(), String> {
        gone(
            self.patient
                .site
                .folder
                .parent()
                .expect("the server's own folder"),
        )
    }
}

/// Whether no process mentions a folder any more.
fn gone(folder: &Path) -> Result<(), String> {
    // The watchdog sees a server's end and may take a second to see to the rest (contract S12).
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let left = processes::mentioning(folder.to_str().expect("temporary paths are text"));
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("processes left: {left:?}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Server {
    fn start(
        setting: &Setting,
        limits: Limits,
        folder: &Path,
        desk: &Desk,
        binary: &Path,
        runner: &Path,
    ) -> Result<Self, String> {
        // Each of these words is known on the host only, and only from the place it is named for.
        let (secret, argument, here, neighbour) = (word(), word(), word(), word());
        let home = folder.join(&here);
        let (scratch, site, path) = (home.join("tmp"), home.join("site"), home.join("path"));
        for folder in [&home, &scratch, &site, &path, &scratch.join(&neighbour)] {
            fs::create_dir(folder).unwrap();
            open_to_all(folder);
        }
        let module = format!("SECRET = {secret:?}\nprint(SECRET)\n");
        for name in ["sitecustomize.py", "usercustomize.py", "planted_on_path.py"] {
            fs::write(path.join(name), &module).unwrap();
        }
        fs::write(home.join("planted_here.py"), &module).unwrap();
        let other = setting.user == User::Ordinary && rustix::process::getuid().is_root();
        let system = setting.python == Python::System;
        let search = match system {
            true => SYSTEM_PATH.into(),
            false => std::env::var_os("PATH").unwrap_or_default(),
        };
        let config = home.join(format!("{argument}.yaml"));
        let text = json!({
            "servers": [{
                "name": "desk",
                "command": runner,
                "args": [desk::ARGUMENT, desk.socket],
            }],
            "tools": {"block": ["mcp__desk__hidden"]},
            "execution": {
                "sandbox": setting.mode.key(),
                "pool": setting.pool,
                "trace": "off",
                "timeout_seconds": limits.timeout.as_secs(),
                "max_tool_calls": limits.tool_calls,
                "max_concurrent_calls": limits.concurrent_calls,
                "max_memory_bytes": limits.memory,
                "max_scratch_bytes": limits.scratch,
                "max_output_bytes": limits.output,
            },
        });
        // JSON is YAML.
        fs::write(&config, text.to_string()).unwrap();
        let mut command = Command::new(binary);
        command
            .arg("--config")
            .arg(&config)
            .current_dir(&home)
            .env_clear()
            .env("PATH", &search)
            .env("HOME", &home)
            .env("TMPDIR", &scratch)
            .env("ESCAPE_SECRET", &secret)
            .env("PYTHONPATH", &path)
            .env("PYTHONSTARTUP", path.join("planted_on_path.py"));
        // A version manager's shim finds what it stands for through these.
        for name in ["PYENV_ROOT", "PYENV_VERSION"] {
            if let Some(value) = std::env::var_os(name).filter(|_| !system) {
                command.env(name, value);
            }
        }
        if other {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        let session = Session::start(command);
        let uid = if other {
            ORDINARY
        } else {
            rustix::process::getuid().as_raw()
        };
        let stdlib = stdlib(&search)?;
        let mut facts = facts(uid, &stdlib);
        facts.insert(Secret::Environment, vec![secret]);
        facts.insert(Secret::CommandLine, vec![argument]);
        facts.insert(Secret::WorkingDirectory, vec![here]);
        facts.insert(Secret::Neighbour, vec![neighbour.clone()]);
        let site = Site {
            folder: site,
            scratch,
            server: session.pid,
            uid,
            stdlib,
            runner: runner.to_owned(),
        };
        Ok(Self {
            session,
            site,
            facts,
            limits,
            neighbour,
        })
    }
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

fn place(from: &Path, to: &Path) -> PathBuf {
    fs::hard_link(from, to)
        .or_else(|_| fs::copy(from, to).map(|_| ()))
        .expect("room for a binary");
    to.to_owned()
}

/// Where the interpreter that programs run on keeps its modules.
fn stdlib(search: &std::ffi::OsStr) -> Result<PathBuf, String> {
    let output = Command::new("/usr/bin/env")
        .env("PATH", search)
        .args(["python3", "-I", "-S", "-c", "import os; print(os.__file__)"])
        .output()
        .map_err(|error| format!("no python3 on PATH: {error}"))?;
    let file = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    file.parent()
        .map(Path::to_owned)
        .filter(|_| output.status.success())
        .ok_or_else(|| {
            format!(
                "python3 does not start: {}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
}

/// What can be told of this host, each as it would read in a program's output.
fn facts(uid: u32, stdlib: &Path) -> Facts {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let first_line = |path: &str| {
        read(path)
            .lines()
            .next()
            .map(str::to_owned)
            .into_iter()
            .collect()
    };
    let names = |path: &str| -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    };
    // Folders that lead to the interpreter or to what it loads are there for everyone to see.
    let shown: Vec<String> = stdlib
        .components()
        .nth(1)
        .map(|component| component.as_os_str().to_string_lossy().into_owned())
        .into_iter()
        .chain(["usr", "lib", "lib64", "bin", "dev", "proc", "tmp"].map(str::to_owned))
        .collect();
    let address = UdpSocket::bind("0.0.0.0:0").ok().and_then(|socket| {
        // No datagram is sent: this asks the routing table.
        socket.connect("192.0.2.1:9").ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    });
    Facts::from([
        (
            Secret::HostName,
            vec![
                rustix::system::uname()
                    .nodename()
                    .to_string_lossy()
                    .into_owned(),
            ],
        ),
        (Secret::UserId, vec![uid.to_string()]),
        (Secret::Passwd, first_line("/etc/passwd")),
        (
            Secret::BootId,
            first_line("/proc/sys/kernel/random/boot_id"),
        ),
        (Secret::Mounts, first_line("/proc/self/mountinfo")),
        (Secret::Address, address.into_iter().collect()),
        (
            Secret::Interface,
            names("/sys/class/net")
                .into_iter()
                .filter(|name| name != "lo")
                .collect(),
        ),
        (
            Secret::RootNames,
            names("/")
                .into_iter()
                .filter(|name| !shown.contains(name))
                .collect(),
        ),
        (Secret::KernelLog, kernel_log().into_iter().collect()),
    ])
}

/// A line that only the kernel's log holds; who may not write there has nothing to look for.
fn kernel_log() -> Option<String> {
    let line = word();
    fs::write("/dev/kmsg", format!("{line}\n")).ok()?;
    Some(line)
}
