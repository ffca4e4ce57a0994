//! A server as a child process: its environment, its group, its pipes, and its end.
//!
//! The only place of this module that spawns processes. It does not know what the messages say.

#![expect(
    clippy::disallowed_methods,
    reason = "one of the places where processes are spawned"
)]

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::ConnectError;
use super::exchange::{Exchange, lock};
use super::line::{Line, Lines};
use super::wire::Incoming;
use super::words::{self, Words};
use crate::config::Secret;
use crate::pipe;
use crate::watchdog;

/// What the official SDKs pass on to a server; everything else may hold secrets.
const INHERITED: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// Where commands are looked for when there is no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How many messages may wait for a server that does not read.
const OUTBOX: usize = 64;

const CHUNK: usize = 64 * 1024;

/// How many of the last lines of stderr explain a death, and how much of each line is looked at.
const LAST_WORDS: usize = 10;
const STDERR_LINE: usize = 2_000;

/// How many lines of a server's stderr are logged a minute: a chatty one would drown the others.
const STDERR_LOGGED: u32 = 100;
const MINUTE: Duration = Duration::from_secs(60);

/// How long answers that are still in the pipe are read after the process is gone: a grandchild
/// may hold the other end for ever.
const DRAIN: Duration = Duration::from_millis(500);

/// How long a server may take to end after its stdin was closed, and then after SIGTERM.
const GRACE: Duration = Duration::from_millis(1_200);

/// A running server.
pub(super) struct Process {
    outbox: mpsc::Sender<Vec<u8>>,
    /// Asks for an orderly end.
    stop: CancellationToken,
    /// Becomes true when the process is reaped and its group killed.
    ended: watch::Receiver<bool>,
    group: Arc<Group>,
    _tasks: [AbortOnDropHandle<()>; 4],
}

/// Starts the server. Its tasks report to the exchange.
pub(super) async fn spawn(
    command: &str,
    args: &[Secret],
    env: &BTreeMap<String, Secret>,
    cwd: Option<&Path>,
    exchange: &Arc<Exchange>,
) -> Result<Process, ConnectError> {
    let environment = environment(env, |name| std::env::var_os(name));
    let program = resolve(command, &environment, cwd)?;
    let mut process = Command::new(&program);
    process
        .args(args.iter().map(Secret::expose))
        .env_clear()
        .envs(&environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(cwd) = cwd {
        if !cwd.is_dir() {
            return Err(ConnectError(format!(
                "its working directory '{}' does not exist or is no directory",
                cwd.display()
            )));
        }
        process.current_dir(cwd);
    }
    let failed = |why: String| ConnectError(format!("cannot start '{}': {why}", program.display()));
    // Starting a process blocks until it executes its program, and others are served meanwhile.
    let spawning = tokio::task::spawn_blocking(move || {
        watchdog::stand_by();
        let child = process.spawn()?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = pid.and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("it has no process id"))?;
        Ok::<_, io::Error>((child, Arc::new(Group::new(pid))))
    });
    let spawned = spawning.await.map_err(io::Error::other);
    let (mut child, group) = spawned
        .and_then(|spawned| spawned)
        .map_err(|error| failed(error.to_string()))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(failed("it has no pipes".into()));
    };

    let (outbox, messages) = mpsc::channel(OUTBOX);
    let (ended_tx, ended) = watch::channel(false);
    let stop = CancellationToken::new();
    // Cancelled by the task that sees its pipe closed.
    let deaf = CancellationToken::new();
    let mute = CancellationToken::new();
    let last_words = LastWords::default();
    let tasks = [
        tokio::spawn(write(stdin, messages, stop.clone(), deaf.clone())),
        tokio::spawn(read(stdout, exchange.clone(), mute.clone())),
        tokio::spawn(listen(stderr, exchange.clone(), last_words.clone())),
        tokio::spawn(
            Life {
                child,
                group: group.clone(),
                exchange: exchange.clone(),
                last_words,
                stop: stop.clone(),
                deaf,
                mute,
                ended: ended_tx,
            }
            .run(),
        ),
    ];
    Ok(Process {
        outbox,
        stop,
        ended,
        group,
        _tasks: tasks.map(AbortOnDropHandle::new),
    })
}

impl Process {
    /// Queues a message at once, so that what is sent later also arrives later; waits only for a
    /// server that does not read.
    pub(super) fn send(
        &self,
        message: &impl Serialize,
    ) -> impl Future<Output = ()> + Send + 'static {
        let unqueued = serde_json::to_vec(message).ok().and_then(|mut line| {
            line.push(b'\n');
            match self.outbox.try_send(line) {
                Err(TrySendError::Full(line)) => Some((self.outbox.clone(), line)),
                // A closed queue means that the process is gone, which its life reports.
                Ok(()) | Err(TrySendError::Closed(_)) => None,
            }
        });
        async move {
            if let Some((outbox, line)) = unqueued {
                let _ = outbox.send(line).await;
            }
        }
    }

    pub(super) async fn shutdown(&self) {
        self.stop.cancel();
        let mut ended = self.ended.clone();
        let _ = ended.wait_for(|ended| *ended).await;
    }

    pub(super) fn abandon(&self) {
        self.group.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// A server's process group. Killing is idempotent, and stops once the group is known to be gone,
/// since its id may then belong to somebody else.
struct Group {
    id: Pid,
    guarded: Mutex<Option<watchdog::Guarded>>,
}

impl Group {
    fn new(id: Pid) -> Self {
        Self {
            id,
            guarded: Mutex::new(Some(watchdog::guard_group(id.as_raw_nonzero().get()))),
        }
    }

    fn signal(&self, signal: Signal) {
        let guarded = lock(&self.guarded);
        if guarded.is_some() {
            let _ = kill_process_group(self.id, signal);
        }
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// To be called right after the leader was reaped: kills what it left behind.
    fn end(&self) {
        self.kill();
        lock(&self.guarded).take();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The process from its start to its reaping.
struct Life {
    child: Child,
    group: Arc<Group>,
    exchange: Arc<Exchange>,
    last_words: LastWords,
    stop: CancellationToken,
    deaf: CancellationToken,
    mute: CancellationToken,
    ended: watch::Sender<bool>,
}

impl Life {
    async fn run(mut self) {
        let reason = tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                self.stop_in_order().await;
                String::from("it was shut down")
            }
            status = self.child.wait() => {
                self.group.end();
                // Its last answers may still be in the pipe.
                let _ = tokio::time::timeout(DRAIN, self.mute.cancelled()).await;
                self.last_words.explain(status.ok()).await
            }
            () = self.mute.cancelled() => self.cut_off("closed its standard output").await,
            () = self.deaf.cancelled() => self.cut_off("closed its standard input").await,
        };
        self.group.kill();
        let _ = self.child.wait().await;
        self.group.end();
        self.exchange.lose(reason);
        self.ended.send_replace(true);
    }

    /// A pipe is closed: usually because the process is about to be gone, and its status says more.
    async fn cut_off(&mut self, what: &str) -> String {
        match tokio::time::timeout(DRAIN, self.child.wait()).await {
            Ok(status) => {
                self.group.end();
                self.last_words.explain(status.ok()).await
            }
            Err(_) => format!("the server {what}{}", self.last_words.quote()),
        }
    }

    /// The writer has closed stdin on the same signal.
    async fn stop_in_order(&mut self) {
        for signal in [Some(Signal::TERM), None] {
            if tokio::time::timeout(GRACE, self.child.wait()).await.is_ok() {
                return;
            }
            if let Some(signal) = signal {
                self.group.signal(signal);
            }
        }
    }
}

async fn write(
    mut stdin: ChildStdin,
    mut messages: mpsc::Receiver<Vec<u8>>,
    stop: CancellationToken,
    deaf: CancellationToken,
) {
    let writing = async {
        while let Some(line) = messages.recv().await {
            if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
                deaf.cancel();
                return;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = stop.cancelled() => {}
    }
}

async fn read(mut stdout: ChildStdout, exchange: Arc<Exchange>, mute: CancellationToken) {
    let mut lines = Lines::new(exchange.message_limit());
    let mut chunk = vec![0; CHUNK];
    let mut is_wide = false;
    loop {
        let found = if let Some(mut rest) = lines.rest() {
            if !is_wide {
                pipe::widen(&stdout);
                is_wide = true;
            }
            let Ok(length @ 1..) = stdout.read_buf(&mut rest).await else {
                break;
            };
            lines.grown(length)
        } else {
            let Ok(length @ 1..) = stdout.read(&mut chunk).await else {
                break;
            };
            lines.feed(&chunk[..length])
        };
        for line in found {
            for incoming in line.into_incoming() {
                exchange.receive(incoming).await;
            }
        }
    }
    // Some servers do not end their last line. What is cut off there is lost, not unreadable.
    for incoming in lines.finish().into_iter().flat_map(Line::into_incoming) {
        if !matches!(
            incoming,
            Incoming::Broken { .. } | Incoming::Oversized { .. }
        ) {
            exchange.receive(incoming).await;
        }
    }
    mute.cancel();
}

async fn listen(
    mut stderr: impl AsyncRead + Unpin,
    exchange: Arc<Exchange>,
    last_words: LastWords,
) {
    let mut lines = Lines::new(STDERR_LINE);
    let mut chunk = vec![0; CHUNK];
    let secrets = exchange.secrets();
    let server = exchange.server();
    let mut allowance = Allowance::new();
    let mut say = |line: Line| {
        // Servers like to print their settings when they do not start.
        let words = match line {
            Line::Whole(bytes) => Words::printable(STDERR_LINE, &bytes, 0),
            Line::TooLong(cut) => Words::printable(STDERR_LINE, cut.head(), cut.gone()),
        };
        let text = words.masked(secrets);
        if text.is_empty() {
            return;
        }
        match allowance.spend() {
            Some(left_out) => {
                if left_out > 0 {
                    tracing::info!(%server, "stderr: {left_out} lines were left out");
                }
                tracing::info!(%server, "stderr: {text}");
                if allowance.left == 0 {
                    tracing::info!(%server, "stderr: what follows within a minute is logged as debug");
                }
            }
            None => tracing::debug!(%server, "stderr: {text}"),
        }
        last_words.push(text);
    };
    while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
        lines.feed(&chunk[..length]).into_iter().for_each(&mut say);
    }
    lines.finish().into_iter().for_each(say);
    if allowance.left_out > 0 {
        tracing::info!(%server, "stderr: {} lines were left out", allowance.left_out);
    }
    last_words.spoken.cancel();
}

/// How much more of a server's stderr is logged in this minute.
struct Allowance {
    since: Instant,
    left: u32,
    left_out: u64,
}

impl Allowance {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            left: STDERR_LOGGED,
            left_out: 0,
        }
    }

    /// For one line: how many before it were left out, or `None` if it is, too.
    fn spend(&mut self) -> Option<u64> {
        if self.since.elapsed() >= MINUTE {
            (self.since, self.left) = (Instant::now(), STDERR_LOGGED);
        }
        if self.left == 0 {
            self.left_out += 1;
            return None;
        }
        self.left -= 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// The last lines of a server's stderr.
#[derive(Clone, Default)]
struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// Cancelled when stderr has ended.
    spoken: CancellationToken,
}

impl LastWords {
    fn push(&self, line: String) {
        let mut lines = lock(&self.lines);
        if lines.len() == LAST_WORDS {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    async fn explain(&self, status: Option<ExitStatus>) -> String {
        let _ = tokio::time::timeout(DRAIN, self.spoken.cancelled()).await;
        let how = match status {
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exited with status {code}"),
                (None, Some(signal)) => format!("was killed by signal {signal}"),
                (None, None) => String::from("ended"),
            },
            None => String::from("ended"),
        };
        format!("the server {how}{}", self.quote())
    }

    fn quote(&self) -> String {
        let lines = lock(&self.lines);
        if lines.is_empty() {
            return String::new();
        }
        let lines: Vec<String> = lines.iter().map(|line| words::excerpt(line)).collect();
        format!("; its last words: {}", lines.join(" | "))
    }
}

/// The environment of a server: the inherited few, then what is configured.
fn environment(
    configured: &BTreeMap<String, Secret>,
    own: impl Fn(&str) -> Option<OsString>,
) -> BTreeMap<String, OsString> {
    let inherited = INHERITED.iter().filter_map(|name| {
        let value = own(name)?;
        // An exported shell function, which the SDKs leave out as well.
        let is_function = value.as_encoded_bytes().starts_with(b"()");
        (!is_function).then(|| ((*name).to_owned(), value))
    });
    let configured = configured
        .iter()
        .map(|(name, value)| (name.clone(), value.expose().into()));
    inherited.chain(configured).collect()
}

/// The file that a command means in the environment and the directory that the server will have.
fn resolve(
    command: &str,
    environment: &BTreeMap<String, OsString>,
    cwd: Option<&Path>,
) -> Result<PathBuf, ConnectError> {
    let base = match cwd {
        Some(cwd) => cwd.to_owned(),
        None => std::env::current_dir().unwrap_or_default(),
    };
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if command.contains('/') {
        let path = base.join(command);
        return match (runs(&path), path.is_file()) {
            (true, _) => Ok(path),
            (false, true) => Err(ConnectError(format!(
                "its command '{}' is not executable",
                path.display()
            ))),
            (false, false) => Err(ConnectError(format!(
                "its command '{}' does not exist",
                path.display()
            ))),
        };
    }
    let path = environment.get("PATH");
    let path = path.cloned().unwrap_or_else(|| DEFAULT_PATH.into());
    let mut places = std::env::split_paths(&path).map(|place| base.join(place).join(command));
    places.find(|place| runs(place)).ok_or_else(|| {
        ConnectError(format!(
            "its command '{command}' was not found in PATH; give the full path, or set PATH in the \
             server's env"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: D5
    #[test]
    fn the_environment_is_what_the_sdks_pass_on() {
        let own = |name: &str| match name {
            "SHELL" => Some("() { :; }".into()),
            "USER" => None,
            _ => Some(OsString::from("own")),
        };
        let names: Vec<String> = environment(&BTreeMap::new(), own).into_keys().collect();
        assert_eq!(names, ["HOME", "LOGNAME", "PATH", "TERM"]);
    }

    // contract: D4
    #[tokio::test(start_paused = true)]
    async fn so_many_lines_a_minute_are_logged_and_the_others_counted() {
        let mut allowance = Allowance::new();
        for first in [Some(0), Some(2)] {
            assert_eq!(allowance.spend(), first);
            for _ in 1..STDERR_LOGGED {
                assert_eq!(allowance.spend(), Some(0));
            }
            assert_eq!([allowance.spend(), allowance.spend()], [None, None]);
            tokio::time::advance(MINUTE).await;
        }
    }

    #[test]
    fn commands_are_found_where_the_server_would_look() {
        let environment = |path: &str| BTreeMap::from([("PATH".to_owned(), OsString::from(path))]);
        let find = |command: &str, path: &str, cwd: &str| {
            resolve(command, &environment(path), Some(Path::new(cwd))).map_err(|e| e.to_string())
        };
        let sh = Path::new("/bin/sh").to_owned();
        assert_eq!(find("sh", "/nowhere:/bin", "/tmp"), Ok(sh.clone()));
        assert_eq!(find("sh", "bin", "/"), Ok(sh.clone()));
        assert_eq!(find("/bin/sh", "", "/tmp"), Ok(sh.clone()));
        assert_eq!(find("bin/sh", "", "/"), Ok(sh));
        assert!(
            find("/etc/passwd", "", "/")
                .unwrap_err()
                .contains("not executable")
        );
        assert!(
            find("sh", "/nowhere", "/")
                .unwrap_err()
                .contains("not found in PATH")
        );
    }
}
