//! Proof before the first program: the sandbox is built as for a program, a script attacks it from
//! inside, and what it should not have reached is looked at from outside.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::interpreter::Interpreter;
use super::status::Attack;
use super::{Child, Sandbox, SandboxError, Wall};

const SCRIPT: &str = include_str!("selftest.py");

/// A cold interpreter imports everything it has in a second; a loaded machine takes longer.
const LIMIT: Duration = Duration::from_secs(30);

/// More than the script ever says.
const ANSWER_BYTES: u64 = 1 << 16;

/// Attacks, and what stops each behind namespaces.
#[cfg(target_os = "linux")]
pub(super) fn on_namespaces() -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = [
        ("read a file of the host", "mount namespace"),
        ("read it through a link", "mount namespace"),
        ("ask whether a file exists", "mount namespace"),
        ("list the root folder", "Landlock, mount namespace"),
        (
            "write outside the scratch directory",
            "Landlock, read-only root",
        ),
        ("change the standard library", "Landlock, read-only root"),
        ("change a file's mode", "mount namespace"),
    ];
    let further = [
        ("learn the host's name", "UTS namespace"),
        ("learn the host's user", "user and process namespaces"),
    ];
    own.into_iter().chain(ON_BOTH).chain(further)
}

/// The same behind a changed root.
#[cfg(target_os = "linux")]
pub(super) fn on_chroot() -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = [
        ("read a file of the host", "chroot"),
        ("read it through a link", "chroot"),
        ("ask whether a file exists", "chroot"),
        ("list the root folder", "Landlock, chroot"),
        (
            "write outside the scratch directory",
            "Landlock, user of its own",
        ),
        ("change the standard library", "Landlock, user of its own"),
        ("change a file's mode", "chroot"),
    ];
    own.into_iter().chain(ON_BOTH)
}

/// What stops these is the same behind both.
#[cfg(target_os = "linux")]
const ON_BOTH: [(&str, &str); 13] = [
    ("read about processes", "no procfs"),
    ("connect over TCP", "system-call filter"),
    ("connect to a local socket", "system-call filter"),
    ("start a process", "system-call filter"),
    ("execute a program", "system-call filter"),
    ("signal the server", "system-call filter"),
    ("become root", "system-call filter"),
    ("raise a limit", "hard limits, system-call filter"),
    ("take memory that is not counted", "system-call filter"),
    ("change the host name", "system-call filter"),
    ("mount a file system", "system-call filter"),
    ("make a namespace", "system-call filter"),
    ("trace a process", "system-call filter"),
];

/// Attacks that a script can only try if the interpreter has `ctypes`.
const NEED_CTYPES: [&str; 3] = ["mount a file system", "make a namespace", "trace a process"];

/// What the script says.
#[derive(Debug, Deserialize)]
pub(super) struct Said {
    /// The error that each attack ended in; `None` if it got through.
    results: BTreeMap<String, Option<String>>,
    /// What should have worked.
    faults: Vec<String>,
}

/// What came of the attacks, still to be judged.
pub(super) struct Heard {
    /// Nothing where the script could not run.
    pub(super) said: Option<Said>,
    pub(super) stderr: String,
    pub(super) bait: Bait,
}

/// Has the script attack a wall. `given` is what it is told beyond the bait. An error is the end of
/// a sentence: "the self-test …".
pub(super) async fn attack(
    sandbox: &Sandbox,
    wall: &dyn Wall,
    interpreter: &Interpreter,
    mut given: Value,
) -> Result<Heard, String> {
    let bait = Bait::lay().map_err(|error| format!("cannot be set up: {error}"))?;
    given["secret"] = json!(bait.secret);
    given["folder"] = json!(bait.folder.path());
    given["marker"] = json!(bait.marker);
    given["port"] = json!(bait.port());
    given["server"] = json!(std::process::id());
    let given = given.to_string();
    let child = sandbox.start(wall, interpreter, &["-c", SCRIPT, &given], true);
    let mut child = child.map_err(|error| match error {
        SandboxError::Start { reason } => format!("did not start ({reason})"),
        other => format!("did not start: {other}"),
    })?;
    child.stdin = None;
    let heard = tokio::time::timeout(LIMIT, hear(&mut child)).await;
    child.end().await;
    let (stdout, stderr) =
        heard.map_err(|_| format!("did not end within {} s", LIMIT.as_secs()))?;
    Ok(Heard {
        said: serde_json::from_str(&stdout).ok(),
        stderr,
        bait,
    })
}

/// Of a script that said nothing that could be understood, and the last other thing that was said.
pub(super) fn silent(interpreter: &Interpreter, last: Option<&str>) -> String {
    let last: String = last
        .unwrap_or("it said nothing")
        .chars()
        .take(300)
        .collect();
    format!(
        "could not run: '{}' does not start inside the sandbox ({last})",
        interpreter.executable.display()
    )
}

async fn hear(child: &mut Child) -> (String, String) {
    let mut stdout = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        let _ = pipe.take(ANSWER_BYTES).read_to_end(&mut stdout).await;
    }
    let mut stderr = Vec::new();
    if let Some(words) = &mut child.words {
        let _ = words.take(ANSWER_BYTES).read_to_end(&mut stderr).await;
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(stdout), text(stderr))
}

impl Said {
    /// Every attack has to have been tried, and to have failed.
    pub(super) fn judge(
        &self,
        attacks: impl IntoIterator<Item = (&'static str, &'static str)>,
        modules: &[String],
    ) -> Result<Vec<Attack>, String> {
        if let Some(fault) = self.faults.first() {
            return Err(format!(
                "found that what programs need does not work: {fault}"
            ));
        }
        let has_ctypes = modules.iter().any(|module| module == "_ctypes");
        attacks
            .into_iter()
            .filter(|(name, _)| has_ctypes || !NEED_CTYPES.contains(name))
            .map(|(name, by)| match self.results.get(name) {
                Some(Some(how)) => Ok(Attack {
                    name,
                    stopped: true,
                    by,
                    how: match how.as_str() {
                        "Held" => "nothing to find".to_owned(),
                        how => how.to_owned(),
                    },
                }),
                Some(None) => Err(format!(
                    "found a hole: \"{name}\" succeeded inside the sandbox. Please report this"
                )),
                None => Err(format!("did not get as far as \"{name}\"")),
            })
            .collect()
    }
}

/// What a bait's folder is called.
const PREFIX: &str = "ptc-mcp-selftest-";

/// What the script must not reach, as the host sees it.
pub(super) struct Bait {
    folder: TempDir,
    /// Shared, on the folder; however this process ends, the kernel releases it.
    _lock: File,
    secret: PathBuf,
    text: String,
    before: (u32, i64),
    marker: String,
    /// Where there is a loopback interface.
    tcp: Option<TcpListener>,
    /// Where the folder's name is short enough for one.
    local: Option<UnixListener>,
}

impl Bait {
    fn lay() -> std::io::Result<Self> {
        let (folder, lock) = Self::folder()?;
        let secret = folder.path().join(random());
        let text = random();
        std::fs::write(&secret, &text)?;
        let local = UnixListener::bind(folder.path().join("socket")).ok();
        if let Some(local) = &local {
            local.set_nonblocking(true)?;
        }
        let tcp = TcpListener::bind(("127.0.0.1", 0)).ok();
        if let Some(tcp) = &tcp {
            tcp.set_nonblocking(true)?;
        }
        let before = look(&secret)?;
        Ok(Self {
            folder,
            _lock: lock,
            secret,
            text,
            before,
            marker: random(),
            tcp,
            local,
        })
    }

    /// In the first place on the host that can be written to.
    fn folder() -> std::io::Result<(TempDir, File)> {
        Self::folder_in(&std::env::temp_dir()).or_else(|error| {
            let others = ["/dev/shm", "/var/tmp", "."].map(Path::new);
            let found = others.into_iter().find_map(|at| Self::folder_in(at).ok());
            found.ok_or(error)
        })
    }

    fn folder_in(place: &Path) -> std::io::Result<(TempDir, File)> {
        sweep(place);
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
            let lock = File::open(folder.path())?;
            lock.lock_shared()?;
            // Another server's sweep may have come first, before it was locked.
            if folder.path().exists() {
                return Ok((folder, lock));
            }
        }
    }

    fn port(&self) -> Option<u16> {
        Some(self.tcp.as_ref()?.local_addr().ok()?.port())
    }

    pub(super) fn untouched(&self) -> Result<(), String> {
        let touched = if std::fs::read_to_string(&self.secret).ok().as_ref() != Some(&self.text)
            || look(&self.secret).ok() != Some(self.before)
        {
            Some("a file of the host was changed")
        } else if [
            self.folder.path(),
            "/tmp".as_ref(),
            "/var/tmp".as_ref(),
            "/".as_ref(),
        ]
        .iter()
        .any(|folder| folder.join(&self.marker).symlink_metadata().is_ok())
        {
            Some("a file was written outside the scratch directory")
        } else if self.tcp.as_ref().is_some_and(|tcp| tcp.accept().is_ok()) {
            Some("a TCP connection arrived")
        } else if self
            .local
            .as_ref()
            .is_some_and(|local| local.accept().is_ok())
        {
            Some("a connection to a local socket arrived")
        } else {
            None
        };
        touched.map_or(Ok(()), |touched| {
            Err(format!(
                "found a hole: {touched} from inside the sandbox. Please report this"
            ))
        })
    }
}

/// Removes what servers left that were killed in the middle of their self-test. Only folders of this
/// user's that nobody holds the lock of.
fn sweep(place: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Of the entry itself, not of what a link leads to.
        let own = |entry: &std::fs::DirEntry| {
            let found = entry.metadata();
            found.is_ok_and(|found| found.is_dir() && found.uid() == user)
        };
        if named
            && own(&entry)
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn random() -> String {
    std::iter::repeat_with(fastrand::alphanumeric)
        .take(20)
        .collect()
}

/// Mode and time of the last change.
fn look(path: &std::path::Path) -> std::io::Result<(u32, i64)> {
    let found = path.metadata()?;
    Ok((found.mode(), found.ctime()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTACKS: [(&str, &str); 3] = [
        ("read", "wall"),
        ("trace a process", "wall"),
        ("fork", "wall"),
    ];

    fn said(change: impl FnOnce(&mut Said)) -> Said {
        let results = ATTACKS.map(|(name, _)| (name.to_owned(), Some("EPERM".to_owned())));
        let mut said = Said {
            results: results.into_iter().collect(),
            faults: Vec::new(),
        };
        change(&mut said);
        said
    }

    // contract: B5
    #[test]
    fn any_surprise_is_a_refusal() {
        let modules = ["_ctypes".to_owned()];
        let stopped = |said: &Said, modules: &[String]| {
            said.judge(ATTACKS, modules).map(|attacks| attacks.len())
        };
        assert_eq!(stopped(&said(|_| {}), &modules), Ok(3));
        let without = said(|said| drop(said.results.remove("trace a process")));
        assert_eq!(stopped(&without, &[]), Ok(2));
        let cases = [
            (without, "did not get as far as \"trace a process\""),
            (
                said(|said| said.results.values_mut().for_each(|how| *how = None)),
                "found a hole: \"read\" succeeded",
            ),
            (
                said(|said| said.faults.push("writing: no".to_owned())),
                "does not work: writing: no",
            ),
        ];
        for (said, expected) in cases {
            let error = stopped(&said, &modules).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_bait_that_was_left_is_swept_and_one_in_use_is_not() {
        let place = tempfile::tempdir().unwrap();
        let names = || {
            let entries = std::fs::read_dir(place.path()).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.path()).collect();
            names.sort();
            names
        };
        let (used, lock) = Bait::folder_in(place.path()).unwrap();
        let (left, killed) = Bait::folder_in(place.path()).unwrap();
        std::fs::write(left.path().join("secret"), "x").unwrap();
        drop(killed);
        let left = left.keep();
        std::fs::create_dir(place.path().join("ptc-mcp-another")).unwrap();
        std::os::unix::fs::symlink(used.path(), place.path().join("ptc-mcp-selftest-link"))
            .unwrap();
        let before = names();
        let (new, _lock) = Bait::folder_in(place.path()).unwrap();
        assert!(!left.exists());
        let kept: Vec<_> = before.into_iter().filter(|path| *path != left).collect();
        let mut expected = [kept, vec![new.path().to_owned()]].concat();
        expected.sort();
        assert_eq!(names(), expected);
        drop(lock);
    }

    #[test]
    fn the_bait_tells_when_it_was_touched() {
        type Touch = fn(&Bait);
        let touches: [(&str, Touch); 4] = [
            ("changed", |bait| std::fs::write(&bait.secret, "x").unwrap()),
            ("written", |bait| {
                std::fs::write(bait.folder.path().join(&bait.marker), "").unwrap()
            }),
            ("TCP", |bait| {
                std::net::TcpStream::connect(("127.0.0.1", bait.port().unwrap())).unwrap();
            }),
            ("local socket", |bait| {
                std::os::unix::net::UnixStream::connect(bait.folder.path().join("socket")).unwrap();
            }),
        ];
        for (expected, touch) in touches {
            let bait = Bait::lay().unwrap();
            assert_eq!(bait.untouched(), Ok(()));
            touch(&bait);
            assert!(
                bait.untouched().unwrap_err().contains(expected),
                "{expected}"
            );
        }
    }
}
