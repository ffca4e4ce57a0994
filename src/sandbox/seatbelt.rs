//! macOS: `sandbox: seatbelt`, an ordinary process under a deny-by-default profile.
//!
//! Our launcher comes first and becomes `sandbox-exec`, which becomes the interpreter: one process
//! throughout, so that its group, its limits and its end are those of `sandbox: none`. The other
//! way round, the profile would have to let the launcher's own file, libraries and a second exec
//! in. The profile's text is constant (`seatbelt.sbpl`); paths travel as parameters, where no
//! character of theirs can mean anything.
//!
//! Everything here but the choice of the backend is the same on every system, and tested on each.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::process::Command;

use super::interpreter::{self, Interpreter};
use super::status::{Examination, Layer};
use super::{Attack, Launch, Proof, Sandbox, SandboxError, Wall, refusal, selftest};
use crate::config::SandboxMode;

const PROFILE: &str = include_str!("seatbelt.sbpl");
const QUESTION: &str = include_str!("seatbelt.py");

/// How many of each the profile has room for; `seatbelt.sbpl` names every one.
const FOLDERS: usize = 8;
const HIDDEN: usize = FOLDERS * NOT_LIBRARY.len();
const FILES: usize = 48;
const ANCESTORS: usize = 96;

/// Folders inside the standard library that hold other people's code, or none that runs.
const NOT_LIBRARY: [&str; 3] = ["site-packages", "dist-packages", "test"];

/// Where the system's own libraries are, which the profile lets in for everyone.
const SYSTEM: [&str; 2] = ["/usr/lib", "/System"];

/// More links in one path than any kernel follows.
const MAX_LINKS: usize = 40;

/// Attacks of the self-test, and what stops each.
const ATTACKS: &[(&str, &str)] = &[
    ("read a file of the host", "profile"),
    ("read it through a link", "profile"),
    ("ask whether a file exists", "profile"),
    (
        "ask a file system whether a file exists",
        "profile's system calls",
    ),
    ("write outside the scratch directory", "profile"),
    ("change the standard library", "profile"),
    ("give a library's file a second name", "profile"),
    ("change a file's mode", "profile"),
    ("map code out of the scratch directory", "profile"),
    ("connect over TCP", "profile"),
    ("connect to a local socket", "profile"),
    ("reach a service of the system", "profile"),
    ("start a process", "profile"),
    ("execute a program", "profile"),
    ("signal the server", "profile"),
    ("raise a limit", "hard limits"),
    ("change the host name", "profile"),
    ("read the host's name", "profile"),
];

/// Needs `ctypes`, as some of the attacks that other walls are tried with.
const NEEDS_CTYPES: &str = "reach a service of the system";

/// What applies the profile, where this mode is chosen and can exist.
pub(super) fn chosen_by(mode: SandboxMode) -> Option<PathBuf> {
    let default = cfg!(target_os = "macos") && mode == SandboxMode::Auto;
    (default || mode == SandboxMode::Seatbelt)
        .then(tool)
        .flatten()
}

/// Part of every macOS.
#[cfg(target_os = "macos")]
fn tool() -> Option<PathBuf> {
    Some("/usr/bin/sandbox-exec".into())
}

/// What another system's tests put in its place. Never on a Mac and in no release: there no
/// environment can take the wall away.
#[cfg(all(debug_assertions, not(target_os = "macos")))]
fn tool() -> Option<PathBuf> {
    std::env::var_os("PTC_MCP_TEST_SANDBOX_EXEC").map(PathBuf::from)
}

#[cfg(all(not(debug_assertions), not(target_os = "macos")))]
fn tool() -> Option<PathBuf> {
    None
}

/// The wall around one interpreter.
#[derive(Debug)]
struct Seatbelt {
    tool: PathBuf,
    needs: Needs,
}

/// Asks the interpreter, builds the wall and attacks it.
pub(super) async fn prove(
    sandbox: &Sandbox,
    mut interpreter: Interpreter,
    tool: PathBuf,
) -> Result<Proof, SandboxError> {
    let failed = |reason: String| SandboxError::Interpreter {
        reason: format!("'{}' {reason}", interpreter.executable.display()),
    };
    let mut command = Command::new(&interpreter.executable);
    command.env_clear().current_dir("/");
    let answer: Answer = interpreter::ask(command, QUESTION).await.map_err(failed)?;
    let modules = answer.modules.clone();
    let needs = tokio::task::spawn_blocking(move || Needs::of(&answer, &Real)).await;
    let needs = needs.map_err(|error| failed(format!("cannot be looked at: {error}")))?;
    let needs = needs.map_err(&failed)?;
    interpreter.executable.clone_from(&needs.executable);
    if let Err(error) = tool.metadata() {
        return Err(refuse(missing(&tool, &error)));
    }
    let wall = Seatbelt { tool, needs };
    let attacks = wall.prove(sandbox, &interpreter, &modules).await;
    let mut examination = Examination::of(sandbox.execution.sandbox);
    examination.attacks = attacks.map_err(refuse)?;
    examination.backend = Some(SandboxMode::Seatbelt.as_str());
    examination.layers = layers();
    examination.interpreter = Some(interpreter.clone());
    Ok(Proof {
        interpreter,
        wall: Box::new(wall),
        examination,
    })
}

/// The wall that an earlier start has proved.
pub(super) fn again(
    interpreter: &Interpreter,
    tool: PathBuf,
    kept: serde_json::Value,
) -> Option<Box<dyn Wall>> {
    let needs: Needs = serde_json::from_value(kept).ok()?;
    let is_as_it_was = needs.executable == interpreter.executable
        && needs.folders.iter().all(|folder| folder.is_dir())
        && needs.files.iter().all(|file| file.is_file())
        && tool.is_file();
    is_as_it_was.then(|| Box::new(Seatbelt { tool, needs }) as Box<dyn Wall>)
}

fn refuse(text: String) -> SandboxError {
    SandboxError::Unavailable(text)
}

impl Wall for Seatbelt {
    fn mode(&self) -> SandboxMode {
        SandboxMode::Seatbelt
    }

    fn keep(&self) -> Option<serde_json::Value> {
        serde_json::to_value(&self.needs).ok()
    }

    fn launch(
        &self,
        sandbox: &Sandbox,
        _: &Interpreter,
        arguments: &[&str],
        testing: bool,
    ) -> Result<Launch, SandboxError> {
        let mut limits = sandbox.limits();
        if testing {
            // The self-test loads more than most programs do.
            limits.cpu_seconds = limits.cpu_seconds.max(60);
            limits.file_bytes = limits.file_bytes.max(1 << 20);
        }
        let mut launch = Launch::on_disk(&limits)?;
        let scratch = launch.scratch.as_ref().map(|folder| folder.path());
        let scratch = scratch.and_then(|path| path.canonicalize().ok());
        let parameters = self.needs.parameters(&scratch.unwrap_or_default(), &Real);
        let parameters = parameters.map_err(|reason| SandboxError::Start { reason })?;
        launch
            .command
            .args(arguments_of(&self.tool, &parameters))
            .arg(&self.needs.executable)
            .args(arguments);
        Ok(launch)
    }
}

impl Seatbelt {
    /// The attacks that were stopped, or the whole refusal.
    async fn prove(
        &self,
        sandbox: &Sandbox,
        interpreter: &Interpreter,
        modules: &[String],
    ) -> Result<Vec<Attack>, String> {
        let given = json!({
            "roots": [],
            "modules": modules,
            "private": false,
            "seatbelt": true,
            "program": "/usr/bin/true",
            "host": rustix::system::uname().nodename().to_string_lossy(),
        });
        let heard = selftest::attack(sandbox, self, interpreter, given)
            .await
            .map_err(|what| broken(&what))?;
        let Some(said) = &heard.said else {
            return Err(explain(interpreter, &heard.stderr));
        };
        let has_ctypes = modules.iter().any(|module| module == "_ctypes");
        let tried = ATTACKS.iter().copied();
        let tried = tried.filter(|(name, _)| has_ctypes || *name != NEEDS_CTYPES);
        let attacks = said.judge(tried, modules).map_err(|what| broken(&what))?;
        heard.bait.untouched().map_err(|what| broken(&what))?;
        Ok(attacks)
    }
}

/// `sandbox-exec` and what it is told, up to the command that it becomes.
fn arguments_of(tool: &Path, parameters: &[(String, String)]) -> Vec<OsString> {
    let mut arguments = vec![tool.into(), "-p".into(), PROFILE.into()];
    for (name, value) in parameters {
        arguments.push("-D".into());
        arguments.push(format!("{name}={value}").into());
    }
    arguments
}

/// What an interpreter says of itself.
#[derive(Debug, Clone, Deserialize)]
struct Answer {
    executable: PathBuf,
    /// `sys.path`.
    path: Vec<PathBuf>,
    /// What the loader has loaded, by the names it was asked for.
    images: Vec<PathBuf>,
    /// Folders with time zones.
    zones: Vec<PathBuf>,
    /// Extension modules that can be imported.
    modules: Vec<String>,
}

/// What the profile has to let in for one interpreter: real paths, without links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Needs {
    executable: PathBuf,
    folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    /// Folders and links on the way to any of these.
    ancestors: BTreeSet<PathBuf>,
}

/// The file system, as far as it is asked here.
trait Disk {
    fn link(&self, path: &Path) -> Option<PathBuf>;
    fn is_folder(&self, path: &Path) -> bool;
    fn exists(&self, path: &Path) -> bool;
}

struct Real;

impl Disk for Real {
    fn link(&self, path: &Path) -> Option<PathBuf> {
        path.read_link().ok()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }
}

impl Needs {
    /// A failure reads on after "'<path>' ".
    fn of(answer: &Answer, disk: &dyn Disk) -> Result<Self, String> {
        let mut needs = Self::default();
        needs.executable = needs.walk(&answer.executable, disk)?;
        for path in &answer.path {
            let real = needs.walk(path, disk)?;
            if disk.is_folder(&real) {
                needs.folders.insert(real);
            } else {
                // A library in one archive, which most builds only ask for.
                needs.files.insert(real);
            }
        }
        for path in &answer.zones {
            let mut with = needs.clone();
            let real = with.walk(path, disk)?;
            // Where there is none, the way there stays unknown as well.
            if disk.is_folder(&real) {
                with.folders.insert(real);
                needs = with;
            }
        }
        // The start looks for these; an answer other than "there is none" might end it.
        let executable = needs.executable.clone();
        for (above, name) in [(1, "pyvenv.cfg"), (2, "pyvenv.cfg"), (1, "pybuilddir.txt")] {
            if let Some(folder) = executable.ancestors().nth(above) {
                needs.files.insert(folder.join(name));
            }
        }
        for image in &answer.images {
            // The system's libraries have names, but no files of their own.
            if image.is_absolute() && disk.exists(image) {
                let real = needs.walk(image, disk)?;
                needs.files.insert(real);
            }
        }
        needs.leave_out_what_is_covered();
        needs.bounded("folders", needs.folders.len(), FOLDERS)?;
        needs.bounded("files", needs.files.len(), FILES)?;
        Ok(needs)
    }

    fn leave_out_what_is_covered(&mut self) {
        let all = self.folders.clone();
        let below = |path: &Path, folder: &PathBuf| path != folder && path.starts_with(folder);
        self.folders
            .retain(|path| !all.iter().any(|folder| below(path, folder)));
        let (folders, executable) = (&self.folders, &self.executable);
        self.files.retain(|path| {
            path != executable
                && !folders.iter().any(|folder| path.starts_with(folder))
                && !SYSTEM.iter().any(|folder| path.starts_with(folder))
        });
    }

    fn bounded(&self, what: &str, count: usize, most: usize) -> Result<(), String> {
        if count > most {
            return Err(format!(
                "needs {count} {what}, more than the {most} that the sandbox has room for"
            ));
        }
        Ok(())
    }

    /// The real path, noting what has to be passed on the way.
    fn walk(&mut self, path: &Path, disk: &dyn Disk) -> Result<PathBuf, String> {
        let mut rest: VecDeque<OsString> = names(path).into();
        let mut at = PathBuf::from("/");
        let mut followed = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(name);
            if let Some(target) = disk.link(&next) {
                followed += 1;
                if followed > MAX_LINKS {
                    return Err(format!(
                        "has a file behind too many links: {}",
                        path.display()
                    ));
                }
                self.ancestors.insert(next);
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                for name in names(&target).into_iter().rev() {
                    rest.push_front(name);
                }
            } else {
                if !rest.is_empty() {
                    self.ancestors.insert(next.clone());
                }
                at = next;
            }
        }
        Ok(at)
    }

    /// Everything that the profile asks for, in order.
    fn parameters(&self, scratch: &Path, disk: &dyn Disk) -> Result<Vec<(String, String)>, String> {
        let mut all = self.clone();
        let scratch = all.walk(scratch, disk)?;
        all.bounded("folders on the way", all.ancestors.len(), ANCESTORS)?;
        let hidden: BTreeSet<PathBuf> = all
            .folders
            .iter()
            .flat_map(|folder| NOT_LIBRARY.map(|name| folder.join(name)))
            .collect();
        let mut parameters = vec![
            ("EXECUTABLE".to_owned(), text(&all.executable)?),
            ("SCRATCH".to_owned(), text(&scratch)?),
        ];
        // What is left over of a kind repeats the last; where there is none, the executable, which
        // is let in anyway. Something is always hidden: a library is at least one folder.
        for (kind, paths, room) in [
            ("FOLDER", &all.folders, FOLDERS),
            ("HIDDEN", &hidden, HIDDEN),
            ("FILE", &all.files, FILES),
            ("ANCESTOR", &all.ancestors, ANCESTORS),
        ] {
            let last = match paths.last() {
                Some(last) => last,
                None if kind == "FILE" => &all.executable,
                None => {
                    return Err(format!(
                        "has no {} that could be let in",
                        kind.to_lowercase()
                    ));
                }
            };
            let filled = paths.iter().chain(std::iter::repeat(last)).take(room);
            for (number, path) in filled.enumerate() {
                parameters.push((format!("{kind}_{number:02}"), text(path)?));
            }
        }
        Ok(parameters)
    }
}

fn names(path: &Path) -> Vec<OsString> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    named.collect()
}

fn text(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| {
        format!(
            "has a path that is not UTF-8, which a profile cannot name: {}",
            path.display()
        )
    })?;
    Ok(text.to_owned())
}

fn layers() -> Vec<Layer> {
    let on = |name, what: &str| Layer {
        name,
        enforced: true,
        what: what.to_owned(),
    };
    vec![
        on(
            "profile",
            "deny by default: the interpreter's files, the system's libraries and the scratch \
             directory; no network, no services, no fork, no other program",
        ),
        on(
            "profile's system calls",
            "no questions about file systems and mounts",
        ),
        Layer {
            name: "namespaces",
            enforced: false,
            what: "not on macOS: the user, real paths, the names directly in '/' and the \
                   system's process ids show"
                .to_owned(),
        },
        on(
            "limits",
            "CPU time, open files and file size by the kernel; memory, scratch size and wall \
             clock by the server",
        ),
    ]
}

fn refused(what: &str, cause: &str, fixes: &[&str]) -> String {
    let mut text =
        format!("sandbox 'seatbelt' is not available here ({what}).\n  cause: {cause}\n");
    for fix in fixes {
        text += &format!("  fix:   {fix}\n");
    }
    text + &format!("  or:    {}\n{}", refusal::NONE, refusal::STILL)
}

fn broken(what: &str) -> String {
    refusal::broken(SandboxMode::Seatbelt, what)
}

fn missing(tool: &Path, error: &std::io::Error) -> String {
    refused(
        &format!("{}: {error}", tool.display()),
        "sandbox-exec, which is part of every macOS, is not where it belongs",
        &["restore it by reinstalling macOS over itself"],
    )
}

/// Why nothing was heard of the self-test.
fn explain(interpreter: &Interpreter, stderr: &str) -> String {
    let last = stderr.lines().rfind(|line| !line.trim().is_empty());
    let tool = stderr
        .lines()
        .find_map(|line| line.strip_prefix("sandbox-exec: "));
    let Some(said) = tool else {
        return broken(&selftest::silent(interpreter, last));
    };
    let said: String = said.trim().chars().take(300).collect();
    let what = format!("sandbox-exec: {said}");
    if said.starts_with("sandbox_apply") && said.contains("not permitted") {
        return refused(
            &what,
            "ptc-mcp itself runs in a sandbox, and macOS does not put one into another",
            &["start ptc-mcp, or the client that starts it, outside that sandbox"],
        );
    }
    if said.starts_with("execvp") {
        return broken(&selftest::silent(interpreter, Some(&what)));
    }
    refused(
        &what,
        "this macOS does not know a rule of the profile; it is written for macOS 13 and newer",
        &["update macOS; if it is a newer one, please report this with the line above"],
    )
}

/// Keeps what our own client left open from a program. For a process with one thread.
#[cfg(not(target_os = "linux"))]
pub(super) fn close_inherited() -> Result<(), rustix::io::Errno> {
    close_on_exec("/dev/fd")
}

#[cfg(any(test, not(target_os = "linux")))]
#[expect(
    unsafe_code,
    reason = "a number that was inherited has no owner to borrow it from"
)]
fn close_on_exec(listing: &str) -> Result<(), rustix::io::Errno> {
    use std::os::fd::BorrowedFd;
    let found = std::fs::read_dir(listing);
    let found = found.map_err(|error| {
        rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
    })?;
    let numbers: Vec<i32> = found
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in numbers {
        // SAFETY: not -1, and used for this one call, which on a number that was closed since it
        // was listed (the listing's own) only answers that it is.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        match rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC) {
            Ok(()) | Err(rustix::io::Errno::BADF) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "seatbelt_tests.rs"]
mod tests;
