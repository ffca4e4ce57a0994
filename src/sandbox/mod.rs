//! A confined process for one program: choosing the backend, refusing when it is not to be had,
//! starting the child, holding its limits, and leaving nothing behind.
//!
//! Channel messages, tools and MCP are not known here. A backend is one file with a `Wall`, one
//! variant of [`SandboxMode`] and one line in `Sandbox::prove`; what it cannot have the kernel
//! hold, the watch in `watch.rs` looks after.

#![expect(clippy::disallowed_methods, reason = "children are started in here")]

mod cache;
pub mod interpreter;
pub mod launcher;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(target_os = "linux")]
mod prove;
mod refusal;
mod seatbelt;
mod selftest;
mod status;
mod watch;

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use crate::channel::LOADER;
use crate::config::{Execution, SandboxMode};
use crate::scratch::Scratch;
use crate::watchdog::{self, Guarded};
use cache::Seen;
use interpreter::{Answers, Interpreter};
use launcher::Limits;

pub use status::{Attack, Examination, Layer};

/// Enough for the standard library's needs, small enough that a leak ends early.
const OPEN_FILES: u64 = 256;

/// How much of what a child says on stderr before its half stands is kept for the error.
const STDERR_KEPT: u64 = 4096;

const LAST_WORDS: Duration = Duration::from_millis(200);

/// Where children do not stand even on what was proved anew, it is not proved for each of them.
const AS_GOOD_AS_NEW: Duration = Duration::from_secs(30);

/// A launcher whose lifeline is cut kills its child and ends within a few milliseconds.
const LAUNCHER_LIMIT: Duration = Duration::from_secs(2);

/// Why no program can run. The text is complete on its own: it is all that the model sees.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    #[error("{0}")]
    Unavailable(String),
    #[error(
        "programs need CPython 3.9 or newer, and {reason}. Install one (Debian and Ubuntu: \
         `apt install python3`; macOS: `brew install python`) or name it in execution.python"
    )]
    Interpreter { reason: String },
    #[error("the child process could not be started: {reason}")]
    Start { reason: String },
}

/// Starts children under one configuration.
#[derive(Debug)]
pub struct Sandbox {
    execution: Execution,
    /// Found at the first program, and kept; a failure is not kept, since it can be mended while
    /// the server runs.
    ground: Mutex<Option<Arc<Ground>>>,
    /// Whether the last one was given up for a child that did not stand.
    doubted: AtomicBool,
}

/// What children are started on: an interpreter, and a wall around it that has proved itself.
#[derive(Debug)]
struct Ground {
    interpreter: Interpreter,
    /// An upgrade under a running server is a new interpreter.
    seen: Option<Seen>,
    wall: Box<dyn Wall>,
    /// What the wall's loader reads first.
    half: Vec<u8>,
    /// When it took the place of one that was doubted.
    renewed: Option<Instant>,
}

/// A wall that has proved itself, and what was seen of that.
struct Proof {
    wall: Box<dyn Wall>,
    interpreter: Interpreter,
    examination: Examination,
}

/// The name of what the cache keeps about a wall.
const PROOF: &str = "proof";

/// What stands around the programs of one interpreter, ready for children.
trait Wall: std::fmt::Debug + Send + Sync {
    fn mode(&self) -> SandboxMode;

    /// What starts one child with these arguments to the interpreter. `testing`, for the self-test,
    /// lifts limits that programs may be given too little of.
    fn launch(
        &self,
        sandbox: &Sandbox,
        interpreter: &Interpreter,
        arguments: &[&str],
        testing: bool,
    ) -> Result<Launch, SandboxError>;

    /// What it takes to build it again without a proof; nothing if that is not to be relied on.
    fn keep(&self) -> Option<serde_json::Value>;
}

/// A child that was not started yet.
#[derive(Debug)]
struct Launch {
    command: Command,
    /// The scratch directory, where that is not the launcher's.
    scratch: Option<Scratch>,
    /// Whether what is started stays as a launcher, and kills its child when its lifeline is cut.
    stays: bool,
    /// Whether the kernel bounds the scratch directory.
    bounded: bool,
}

/// `sandbox: none`. Limits, an empty environment and the channel; no wall of the operating system's.
#[derive(Debug)]
struct NoWall;

impl Wall for NoWall {
    fn mode(&self) -> SandboxMode {
        SandboxMode::None
    }

    fn launch(
        &self,
        sandbox: &Sandbox,
        interpreter: &Interpreter,
        arguments: &[&str],
        _: bool,
    ) -> Result<Launch, SandboxError> {
        let mut launch = Launch::on_disk(&sandbox.limits())?;
        launch.command.arg(&interpreter.executable).args(arguments);
        Ok(launch)
    }

    fn keep(&self) -> Option<serde_json::Value> {
        None
    }
}

impl Launch {
    /// Our launcher in a scratch directory on disk; what it is to become is still to be added.
    fn on_disk(limits: &Limits) -> Result<Self, SandboxError> {
        let scratch = tempfile::Builder::new()
            .prefix("ptc-mcp-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir()
            .and_then(Scratch::new)
            .map_err(|error| failed("no scratch directory", error))?;
        // As the kernel names it: a system's folder for temporary files may be behind a link.
        let path = scratch.path().canonicalize();
        let path = path.map_err(|error| failed("no scratch directory", error))?;
        let own = watchdog::own_executable().map_err(|error| failed("own executable", error))?;
        let mut command = Command::new(own);
        command
            .env_clear()
            .env("HOME", &path)
            .env("TMPDIR", &path)
            .current_dir(&path)
            .arg(launcher::ARGUMENT)
            .args(limits.to_arguments());
        Ok(Self {
            command,
            scratch: Some(scratch),
            stays: false,
            bounded: false,
        })
    }
}

impl Sandbox {
    pub fn new(execution: Execution) -> Self {
        Self {
            execution,
            ground: Mutex::new(None),
            doubted: AtomicBool::new(false),
        }
    }

    /// What is found, enforced and tried now, or why programs are refused.
    pub async fn examine(&self) -> Examination {
        let mut examination = Examination::of(self.execution.sandbox);
        let python = self.execution.python.as_deref();
        let refusal = match interpreter::find(python, Answers::Fresh).await {
            Ok(interpreter) => {
                examination.interpreter = Some(interpreter.clone());
                match self.prove(interpreter).await {
                    Ok(proof) => return proof.examination,
                    Err(refusal) => refusal,
                }
            }
            Err(refusal) => refusal,
        };
        examination.refusal = Some(refusal.to_string());
        examination
    }

    /// Starts a child that is to run the channel's half, given to it as [`Child::preamble`], and
    /// nothing else yet.
    pub async fn spawn(&self) -> Result<Child, SandboxError> {
        let ground = self.ground().await?;
        let mut child = self.start(&*ground.wall, &ground.interpreter, &["-c", LOADER], false)?;
        child.ground = Some(ground);
        Ok(child)
    }

    /// Whether the child was started on the interpreter that is there today.
    pub fn is_current(&self, child: &Child) -> bool {
        let ground = child.ground.as_ref();
        ground.is_some_and(|ground| ground.seen == Seen::of(&ground.interpreter.executable))
    }

    /// For a child that did not stand: what it was started on, kept from an earlier start or proved a
    /// while ago, does not count any more. A library may have been replaced meanwhile, or what we had
    /// made for the interpreter removed. Whether that leaves anything to be tried.
    pub async fn doubt(&self, child: &Child) -> bool {
        let Some(ground) = &child.ground else {
            return false;
        };
        let mut known = self.ground.lock().await;
        let is_known = |known: &Arc<Ground>| Arc::ptr_eq(known, ground);
        // Another child's failure may have led to it before.
        if known.as_ref().is_some_and(is_known) {
            if ground
                .renewed
                .is_some_and(|then| then.elapsed() < AS_GOOD_AS_NEW)
            {
                return false;
            }
            cache::forget(PROOF, &(&ground.seen, self.execution.sandbox.as_str()));
            cache::forget(interpreter::HALF_COMPILED, &ground.seen);
            self.doubted.store(true, Ordering::Relaxed);
            *known = None;
        }
        true
    }

    /// Found, proved and logged at most once at a time.
    async fn ground(&self) -> Result<Arc<Ground>, SandboxError> {
        let mut known = self.ground.lock().await;
        if let Some(ground) = &*known
            && ground.seen == Seen::of(&ground.interpreter.executable)
        {
            return Ok(ground.clone());
        }
        let interpreter =
            interpreter::find(self.execution.python.as_deref(), Answers::Kept).await?;
        let seen = Seen::of(&interpreter.executable);
        let about = (&seen, self.execution.sandbox.as_str());
        let (wall, interpreter, kept) = match self.proved_earlier(&interpreter, &about) {
            Some(wall) => (wall, interpreter, true),
            None => {
                let proof = self.prove(interpreter).await?;
                if let Some(kept) = proof.wall.keep() {
                    cache::write(PROOF, &about, &kept);
                }
                let Examination { backend, why, .. } = &proof.examination;
                if let Some(why) = why {
                    tracing::warn!("sandbox '{}': {why}", backend.unwrap_or_default());
                }
                (proof.wall, proof.interpreter, false)
            }
        };
        tracing::info!(
            python = %interpreter.executable.display(),
            version = interpreter.version(),
            sandbox = wall.mode().as_str(),
            proved = if kept { "at an earlier start" } else { "now" },
            "programs can run"
        );
        let ground = Arc::new(Ground {
            half: interpreter::compiled_half(&interpreter).await?,
            seen: Seen::of(&interpreter.executable),
            interpreter,
            wall,
            renewed: self
                .doubted
                .swap(false, Ordering::Relaxed)
                .then(Instant::now),
        });
        Ok(known.insert(ground).clone())
    }

    /// The wall that an earlier start has proved, if all that it was proved on is as it was.
    fn proved_earlier(
        &self,
        interpreter: &Interpreter,
        about: &impl serde::Serialize,
    ) -> Option<Box<dyn Wall>> {
        let mode = self.execution.sandbox;
        if mode == SandboxMode::None {
            return None;
        }
        let kept: serde_json::Value = cache::read(PROOF, about)?;
        if let Some(tool) = seatbelt::chosen_by(mode) {
            return seatbelt::again(interpreter, tool, kept);
        }
        #[cfg(target_os = "linux")]
        return prove::again(kept);
        #[cfg(not(target_os = "linux"))]
        None
    }

    async fn prove(&self, interpreter: Interpreter) -> Result<Proof, SandboxError> {
        let mode = self.execution.sandbox;
        let seatbelt = seatbelt::chosen_by(mode);
        if seatbelt.is_none()
            && let Some(platform) = platform_of(mode)
            && platform != std::env::consts::OS
        {
            return Err(SandboxError::Unavailable(refusal::elsewhere(
                mode, platform,
            )));
        }
        if mode == SandboxMode::None {
            let mut examination = Examination::of(mode);
            examination.backend = Some(mode.as_str());
            examination.layers = status::without_a_wall();
            examination.interpreter = Some(interpreter.clone());
            return Ok(Proof {
                wall: Box::new(NoWall),
                interpreter,
                examination,
            });
        }
        if let Some(tool) = seatbelt {
            return seatbelt::prove(self, interpreter, tool).await;
        }
        #[cfg(target_os = "linux")]
        return self.prove_linux(interpreter).await;
        #[cfg(not(target_os = "linux"))]
        Err(SandboxError::Unavailable(refusal::not_built(mode)))
    }

    /// Starts one child.
    fn start(
        &self,
        wall: &dyn Wall,
        interpreter: &Interpreter,
        arguments: &[&str],
        testing: bool,
    ) -> Result<Child, SandboxError> {
        // UTF-8 everywhere: without a locale, files would be ASCII.
        let arguments = [&["-I", "-S", "-B", "-X", "utf8"], arguments].concat();
        let Launch {
            mut command,
            scratch,
            stays: confined,
            bounded,
        } = wall.launch(self, interpreter, &arguments, testing)?;
        let (words, theirs) = std::os::unix::net::UnixStream::pair()
            .and_then(|(ours, theirs)| {
                ours.set_nonblocking(true)?;
                Ok((tokio::net::UnixStream::from_std(ours)?, theirs))
            })
            .map_err(|error| failed("a socket", error))?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .process_group(0)
            // A launcher that watches the other end of `words` kills its child itself, reaps it,
            // and leaves no orphan to an init that may not be one.
            .kill_on_drop(!confined);
        let mut process = command
            .spawn()
            .map_err(|error| failed("the launcher", error))?;
        let group = process.id().and_then(|pid| i32::try_from(pid).ok());
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let unbounded = scratch.as_ref().filter(|_| !bounded).map(Scratch::path);
        let watch = Some(watch::Watch::new(&self.execution, unbounded, group));
        Ok(Child {
            stdin,
            stdout,
            process,
            group,
            words: Some(words),
            confined,
            watch,
            guarded: group.filter(|_| !confined).map(watchdog::guard_group),
            _guarded_scratch: scratch
                .as_ref()
                .filter(|_| !confined)
                .and_then(|scratch| watchdog::guard_directory(scratch.path())),
            scratch,
            ground: None,
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            parent: std::process::id(),
            cpu_seconds: self.cpu_seconds(),
            data_bytes: self.execution.max_memory_bytes,
            file_bytes: self.execution.max_scratch_bytes,
            open_files: OPEN_FILES,
        }
    }

    /// The wall clock ends a run; CPU time is the backstop should the server be stopped.
    fn cpu_seconds(&self) -> u64 {
        self.execution.timeout.as_secs().saturating_add(2)
    }
}

/// The only platform that a mode exists on.
fn platform_of(mode: SandboxMode) -> Option<&'static str> {
    match mode {
        SandboxMode::Seatbelt => Some("macos"),
        SandboxMode::Namespaces | SandboxMode::Chroot => Some("linux"),
        SandboxMode::Auto | SandboxMode::None => None,
    }
}

fn failed(what: &str, error: std::io::Error) -> SandboxError {
    SandboxError::Start {
        reason: format!("{what}: {error}"),
    }
}

/// How a child ended when nobody asked it to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// A running child: its pipes, its process group and its scratch directory. Dropping it kills it
/// with all that belongs to it and removes the directory.
#[derive(Debug)]
pub struct Child {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    process: tokio::process::Child,
    /// `None` once the process has been reaped: the number may then be another's.
    group: Option<i32>,
    /// The child's stderr. To a launcher that stays, our end is the lifeline.
    words: Option<tokio::net::UnixStream>,
    /// Whether `process` is such a launcher, and the child its child.
    confined: bool,
    /// The limits that the kernel does not hold, if any.
    watch: Option<watch::Watch>,
    /// Gone once the process has been reaped.
    guarded: Option<Guarded>,
    scratch: Option<Scratch>,
    /// Dropped after the directory. A launcher looks after it by itself.
    _guarded_scratch: Option<Guarded>,
    /// What it was started on; nothing for a self-test.
    ground: Option<Arc<Ground>>,
}

impl Child {
    /// What the interpreter reads before the channel begins.
    pub fn preamble(&self) -> &[u8] {
        self.ground.as_ref().map_or(&[], |ground| &ground.half)
    }

    /// Waits for the process to end, whatever it uses meanwhile.
    pub async fn gone(&mut self) {
        let _ = self.process.wait().await;
    }

    /// Waits for the process to end.
    pub async fn exit(&mut self) -> Exit {
        exit_of(self.process.wait().await)
    }

    /// Waits for the process to exceed a limit that the kernel does not hold, and comes back with the
    /// words for it. To be called once.
    pub fn exceeded(&mut self) -> impl Future<Output = String> + Send + 'static {
        let watch = self.watch.take();
        async {
            match watch {
                Some(watch) => watch.exceeded().await,
                None => std::future::pending().await,
            }
        }
    }

    /// What a child that never got to its half said on stderr.
    pub async fn last_words(&mut self) -> String {
        let Some(words) = &mut self.words else {
            return String::new();
        };
        let mut said = Vec::new();
        let mut words = words.take(STDERR_KEPT);
        // A process that the child left behind may hold the socket open.
        let _ = tokio::time::timeout(LAST_WORDS, words.read_to_end(&mut said)).await;
        let said = String::from_utf8_lossy(&said);
        #[cfg(target_os = "linux")]
        let said = linux::plan::readable(&said);
        said.trim().to_owned()
    }

    /// The channel's half has taken its descriptors: nothing more comes on stderr.
    pub fn forget_stderr(&mut self) {
        if !self.confined {
            self.words = None;
        }
    }

    /// Kills the child with all that belongs to it, reaps it and removes its directory.
    pub async fn end(mut self) {
        self.kill();
        if tokio::time::timeout(LAUNCHER_LIMIT, self.process.wait())
            .await
            .is_err()
        {
            // A launcher that somebody has stopped.
            self.kill_group();
            let _ = self.process.wait().await;
        }
        self.release();
        if let Some(scratch) = self.scratch.take() {
            scratch.close().await;
        }
    }

    /// Whether its scratch directory is a folder of the host's.
    pub fn leaves_files(&self) -> bool {
        self.scratch.is_some()
    }

    /// Has the child and all that belongs to it be killed. It may take a moment to be gone.
    pub fn kill(&mut self) {
        if self.confined {
            self.words = None;
        } else {
            self.kill_group();
        }
    }

    fn kill_group(&self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        if let Some(group) = self.group.and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn release(&mut self) {
        self.group = None;
        self.guarded = None;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        self.release();
    }
}

fn exit_of(status: std::io::Result<std::process::ExitStatus>) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Code(-1),
        },
        Err(_) => Exit::Code(-1),
    }
}
