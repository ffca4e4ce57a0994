//! One program, from its text to its [`Report`]: spawn, start, one event loop, end.
//!
//! The loop selects over one closed set of `Event`s, so that every way a program can end is
//! visible in one match. How a child is confined, and how a tool is reached, are not known here.

mod clock;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use self::clock::Clock;
use crate::audit::{self, Audit};
use crate::channel::frame::Decoder;
use crate::channel::{self, ChannelError, ChildMessage, HostMessage, MAX_CHILD_FRAME};
use crate::config::{ClaudeCodeRules, Config, Execution, ToolRules};
use crate::consent::{Asker, Consent, Session};
use crate::gate::{Gate, Policy, Progress, seconds};
use crate::helpers;
use crate::offer;
use crate::permissions::{self, Places};
use crate::registry::{Needs, Registry};
use crate::report::{Output, ProgramError, Report};
use crate::result;
use crate::sandbox::{Child, Exit, Sandbox, SandboxError};
use crate::tool::ToolError;

/// How long a fresh interpreter may take to stand, on a machine that is busy with other things.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long is read on after a child's death: what it had written is in the pipe already, but a
/// process that it left behind may hold the pipe open for ever.
const DRAIN_LIMIT: Duration = Duration::from_millis(250);

/// How long a child may take to be gone after it has closed its end of the channel.
const GONE_LIMIT: Duration = Duration::from_secs(2);

/// What a program prints past its limit before it is cut off. The child's half stops by itself
/// soon after the limit; more comes only from a program that writes to the channel.
const OUTPUT_SLACK: usize = 1024 * 1024;

/// Requests in flight, in bytes. Past it the child's frames are left in the pipe.
const MAX_PENDING: usize = 2 * MAX_CHILD_FRAME;

/// What a request in flight costs us beside its own bytes, roughly.
const REQUEST_COST: usize = 1024;

/// The longest error that is kept. The child's half cuts its own at 65,536 characters.
const MAX_ERROR: usize = 4 * 65_536 + 1024;

/// Helpers answered at a time for one program.
const MAX_HELPERS: usize = 8;

/// A program as it was sent.
#[derive(Debug, Clone)]
pub struct Program {
    pub code: String,
    /// Who sent it, as that client names itself.
    pub client: String,
    /// The client's first root, where it was asked for one.
    pub root: Option<PathBuf>,
    /// Who answers when a call needs a person's yes.
    pub asker: Asker,
}

/// Runs programs under one configuration.
#[derive(Debug)]
pub struct Engine {
    execution: Execution,
    rules: ToolRules,
    /// Whether the rules of Claude Code hold for its programs.
    honours_client: bool,
    /// What was granted for as long as this process lives.
    session: Session,
    audit: Option<Arc<Audit>>,
    registry: Arc<Registry>,
    sandbox: Sandbox,
    /// Fair: further programs wait in order (contract B1).
    programs: Arc<Semaphore>,
}

/// A program's place in the line of those that want to run.
#[must_use]
pub struct Turn(BoxFuture<'static, Result<OwnedSemaphorePermit, AcquireError>>);

/// Everything that can happen while a program runs.
enum Event {
    /// The child said something; `None` when it will say nothing more.
    Said(Option<Result<ChildMessage, ChannelError>>),
    /// A call or a helper came to its end.
    Answered(Answered),
    Exited(Exit),
    /// A question to the person was put, or is settled.
    Asking(bool),
    Deadline,
    Cancelled,
}

struct Answered {
    id: u64,
    /// Bytes that are no longer pending.
    weight: usize,
    message: HostMessage,
    slot: Option<OwnedSemaphorePermit>,
}

impl Engine {
    pub fn new(config: &Config, registry: Arc<Registry>, sandbox: Sandbox) -> Self {
        Self {
            programs: Arc::new(Semaphore::new(
                config.execution.max_programs.min(Semaphore::MAX_PERMITS),
            )),
            execution: config.execution.clone(),
            rules: config.tools.clone(),
            honours_client: config.permissions.claude_code == ClaudeCodeRules::Honor,
            session: Session::default(),
            audit: Audit::new(&config.audit, &config.servers),
            registry,
            sandbox,
        }
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Joins the line. Dropping the place leaves it.
    pub fn line_up(&self) -> Turn {
        let mut turn = self.programs.clone().acquire_owned().boxed();
        // A semaphore knows who waits from the first step on.
        match (&mut turn).now_or_never() {
            Some(now) => Turn(futures::future::ready(now).boxed()),
            None => Turn(turn),
        }
    }

    /// Runs one program to its end. Dropping the future kills it.
    pub async fn run(
        &self,
        program: Program,
        turn: Turn,
        cancelled: impl Future<Output = ()> + Send,
        progress: Option<watch::Sender<Progress>>,
    ) -> Report {
        let log = match &self.audit {
            None => None,
            Some(audit) => match audit.begin(&program.code, &program.client) {
                Ok(run) => Some(Arc::new(run)),
                Err(error) => return self.report_of(Err(error.into())),
            },
        };
        let mut report = self
            .run_logged(program, turn, cancelled, progress, log.clone())
            .await;
        if let Some(failure) = log.and_then(|log| log.end(report.calls.len(), &end_of(&report))) {
            let lost = format!("The audit log {failure}. What this program did is not all in it.");
            report.warnings.push(lost);
        }
        report
    }

    async fn run_logged(
        &self,
        program: Program,
        turn: Turn,
        cancelled: impl Future<Output = ()> + Send,
        progress: Option<watch::Sender<Progress>>,
        log: Option<Arc<audit::Run>>,
    ) -> Report {
        tokio::pin!(cancelled);
        let prepared = tokio::select! {
            prepared = self.prepare(&program.code, turn) => prepared,
            () = &mut cancelled => return self.report_of(Err(ProgramError::Cancelled)),
        };
        let (_turn, child, channel) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return self.report_of(Err(error)),
        };
        let client = self.client_rules(&program).await;
        let warnings = client.broken().iter().map(unknown_rules).collect();
        let policy = Policy {
            tools: self.rules.clone(),
            client,
            consent: Consent::new(program.asker, self.session.clone()),
            log,
        };
        let gate = Gate::new(
            self.registry.clone(),
            policy,
            self.execution.clone(),
            progress,
        );
        let run = Run {
            engine: self,
            gate: &gate,
            output: Output::new(self.execution.max_output_bytes),
            printed: 0,
            emitted: None,
        };
        let mut report = run.finish(program.code, child, channel, cancelled).await;
        report.warnings = warnings;
        report
    }

    /// The rules of the client's own that hold for this program, as they are on disk now.
    async fn client_rules(&self, program: &Program) -> permissions::Rules {
        if !self.honours_client || !permissions::is_claude_code(&program.client) {
            return permissions::Rules::default();
        }
        let places = Places::new(&|name| std::env::var_os(name), program.root.clone());
        tokio::task::spawn_blocking(move || permissions::Rules::read(&places))
            .await
            .expect("reading rules does not panic")
    }

    /// Waits for the program's turn, for a child that stands, and for the servers it speaks of.
    async fn prepare(
        &self,
        code: &str,
        turn: Turn,
    ) -> Result<(OwnedSemaphorePermit, Child, Channel), ProgramError> {
        let turn = turn.0.await.expect("the programs are never closed");
        let servers = self.registry.settled(Needs::Program(code));
        let (stands, ()) = tokio::join!(self.standing_child(), servers);
        let (child, channel) = stands?;
        Ok((turn, child, channel))
    }

    async fn standing_child(&self) -> Result<(Child, Channel), ProgramError> {
        let mut child = self.sandbox.spawn().await?;
        let mut channel = Channel::new(&mut child);
        let broken = match tokio::time::timeout(START_LIMIT, channel.incoming.next()).await {
            Ok(Some(Ok(ChildMessage::Ready {
                version: channel::VERSION,
                python,
            }))) => {
                tracing::debug!(python, "a child stands");
                child.forget_stderr();
                return Ok((child, channel));
            }
            Ok(Some(Ok(ChildMessage::Ready { version, .. }))) => {
                ChannelError::Version { found: version }.to_string()
            }
            Ok(Some(Ok(_))) => ChannelError::OutOfTurn("first").to_string(),
            Ok(Some(Err(error))) => error.to_string(),
            Ok(None) => {
                let words = child.last_words().await;
                let last = words.lines().last().unwrap_or("it said nothing").to_owned();
                format!("it ended before it was ready: {last}")
            }
            Err(_) => format!("it was not ready within {} s", START_LIMIT.as_secs()),
        };
        child.end().await;
        Err(SandboxError::Start { reason: broken }.into())
    }

    fn report_of(&self, outcome: Result<(), ProgramError>) -> Report {
        Report {
            outcome,
            output: Output::new(self.execution.max_output_bytes).finish(),
            emitted: None,
            calls: Vec::new(),
            elapsed: Duration::ZERO,
            trace: self.execution.trace,
            warnings: Vec::new(),
        }
    }
}

/// One run, from start to end.
struct Run<'a> {
    engine: &'a Engine,
    gate: &'a Gate,
    output: Output,
    /// Bytes that the child sent as output, kept or not.
    printed: usize,
    emitted: Option<Box<RawValue>>,
}

impl Run<'_> {
    async fn finish(
        mut self,
        code: String,
        mut child: Child,
        channel: Channel,
        mut cancelled: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Report {
        let started = Instant::now();
        let outcome = self
            .run(code, &mut child, channel, cancelled.as_mut())
            .await;
        let elapsed = started.elapsed();
        child.end().await;
        Report {
            outcome,
            output: self.output.finish(),
            emitted: self.emitted,
            calls: self.gate.records(),
            elapsed,
            trace: self.engine.execution.trace,
            warnings: Vec::new(),
        }
    }

    async fn run(
        &mut self,
        code: String,
        child: &mut Child,
        channel: Channel,
        mut cancelled: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<(), ProgramError> {
        let Channel {
            mut incoming,
            outgoing,
        } = channel;
        let (answers, queue) = mpsc::unbounded_channel();
        let start = self.start(code);
        let writer = write_frames(outgoing, start, queue);
        tokio::pin!(writer);
        let mut writing = true;

        let limit = self.engine.execution.timeout;
        let mut clock = Clock::new(limit);
        let mut question_open = self.gate.question_open();
        let helping = Arc::new(Semaphore::new(MAX_HELPERS));
        let mut calls: FuturesUnordered<BoxFuture<'_, Answered>> = FuturesUnordered::new();
        let mut handles: std::collections::HashMap<u64, futures::future::AbortHandle> =
            Default::default();
        let mut pending = 0usize;

        loop {
            let event = tokio::select! {
                biased;
                () = &mut cancelled => Event::Cancelled,
                Ok(()) = question_open.changed() => Event::Asking(*question_open.borrow_and_update()),
                () = clock.runs_out() => Event::Deadline,
                () = &mut writer, if writing => { writing = false; continue }
                Some(answered) = calls.next() => Event::Answered(answered),
                said = incoming.next(), if pending <= MAX_PENDING => Event::Said(said),
                exit = child.exit() => Event::Exited(exit),
            };
            match event {
                Event::Said(Some(Ok(message))) => match message {
                    ChildMessage::Ready { .. } => {
                        return Err(ChannelError::OutOfTurn("ready").into());
                    }
                    ChildMessage::Done { error } => return ended(error),
                    ChildMessage::Call {
                        id,
                        tool,
                        arguments,
                    } => {
                        if handles.contains_key(&id) {
                            return Err(ChannelError::Excess("it used an id twice").into());
                        }
                        let weight = REQUEST_COST + tool.len() + arguments.get().len();
                        pending += weight;
                        let ticket = self.gate.open(&tool, &arguments);
                        let gate = self.gate;
                        let call = async move {
                            let answer = gate.call(ticket, &tool, &arguments).await;
                            let (message, slot) = match answer {
                                Ok(answer) => (
                                    HostMessage::Return {
                                        id,
                                        value: answer.value,
                                    },
                                    Some(answer.slot),
                                ),
                                Err(error) => (raise(id, &error), None),
                            };
                            Answered {
                                id,
                                weight,
                                message,
                                slot,
                            }
                        };
                        let (call, handle) = futures::future::abortable(call);
                        handles.insert(id, handle);
                        // A call that the program gave up is dropped, and so cancelled downstream.
                        calls.push(Box::pin(async move {
                            call.await.unwrap_or_else(|_| Answered {
                                id,
                                weight,
                                message: HostMessage::Raise {
                                    id,
                                    message: "abandoned".to_owned(),
                                },
                                slot: None,
                            })
                        }));
                    }
                    ChildMessage::Cancel { id } => {
                        if let Some(handle) = handles.get(&id) {
                            handle.abort();
                        }
                    }
                    ChildMessage::Help {
                        id,
                        name,
                        arguments,
                    } => {
                        let weight = REQUEST_COST + name.len() + arguments.get().len();
                        pending += weight;
                        let (registry, helping) = (self.engine.registry.clone(), helping.clone());
                        calls.push(Box::pin(async move {
                            let slot = helping.acquire_owned().await.ok();
                            let message = help(&registry, id, &name, &arguments).await;
                            Answered {
                                id,
                                weight,
                                message,
                                slot,
                            }
                        }));
                    }
                    message => self.take(message)?,
                },
                Event::Said(Some(Err(error))) => return Err(error.into()),
                // The pipe is closed: the process is about to end, or has let go of its channel.
                Event::Said(None) => {
                    return match tokio::time::timeout(GONE_LIMIT, child.exit()).await {
                        Ok(exit) => Err(died(exit, limit)),
                        Err(_) => Err(ChannelError::Excess("it closed it").into()),
                    };
                }
                Event::Answered(Answered {
                    id,
                    weight,
                    message,
                    slot,
                }) => {
                    pending -= weight;
                    handles.remove(&id);
                    if self.gate.exhausted_patience() {
                        let last = match message {
                            HostMessage::Raise { message, .. } => message,
                            _ => String::new(),
                        };
                        return Err(ProgramError::Refused { last });
                    }
                    // The writer is gone only when the child is, which the next event tells.
                    let _ = answers.send((message, slot));
                }
                Event::Exited(exit) => return self.drain(&mut incoming, died(exit, limit)).await,
                Event::Asking(true) => clock.stop(),
                Event::Asking(false) => clock.go_on(),
                Event::Deadline => {
                    return Err(ProgramError::TimedOut {
                        seconds: seconds(limit),
                    });
                }
                Event::Cancelled => return Err(ProgramError::Cancelled),
            }
        }
    }

    fn start(&self, code: String) -> HostMessage {
        let offer = offer::to_program(&self.engine.registry, &code);
        HostMessage::Start {
            code,
            offer,
            helpers: helpers::NAMES.to_vec(),
            max_output_bytes: self.engine.execution.max_output_bytes,
        }
    }

    /// Output and emitted values: what a message leaves behind without an answer.
    fn take(&mut self, message: ChildMessage) -> Result<(), ChannelError> {
        let limit = self.engine.execution.max_output_bytes;
        match message {
            ChildMessage::Output { text } => {
                self.printed = self.printed.saturating_add(text.len());
                self.output.push(&text);
                if self.printed > limit.saturating_add(OUTPUT_SLACK) {
                    return Err(ChannelError::Excess("it sent output far beyond its limit"));
                }
            }
            ChildMessage::Emit { value } => {
                if value.get().len() > limit {
                    return Err(ChannelError::Excess(
                        "it emitted a value beyond max_output_bytes",
                    ));
                }
                if result::tree(value.get()).is_none() {
                    return Err(ChannelError::Excess(
                        "it emitted a value that cannot be read",
                    ));
                }
                self.emitted = Some(value);
            }
            _ => {}
        }
        Ok(())
    }

    /// What a dead child had still said: a program may have come to its end, and its process have
    /// gone, before we looked.
    async fn drain(
        &mut self,
        incoming: &mut Incoming,
        died: ProgramError,
    ) -> Result<(), ProgramError> {
        let until = Instant::now() + DRAIN_LIMIT;
        while let Ok(Some(said)) = tokio::time::timeout_at(until, incoming.next()).await {
            match said {
                Ok(ChildMessage::Done { error }) => return ended(error),
                Ok(message) => self.take(message)?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(died)
    }
}

fn unknown_rules(file: &permissions::Broken) -> String {
    format!(
        "Claude Code's settings file {file}. What it rules is not known, so every call that is not \
         denied needs the person's yes until the file is corrected."
    )
}

/// What the audit log says of a program.
fn end_of(report: &Report) -> audit::End {
    audit::End {
        outcome: match &report.outcome {
            Ok(()) => "ok",
            Err(ProgramError::Cancelled) => "cancelled",
            Err(ProgramError::TimedOut { .. }) => "timed out",
            Err(_) => "failed",
        },
        error: report.error(),
        duration: report.elapsed,
        bytes: report.output.len(),
    }
}

fn ended(error: Option<String>) -> Result<(), ProgramError> {
    error.map_or(Ok(()), |mut error| {
        error.truncate(error.floor_char_boundary(MAX_ERROR));
        Err(ProgramError::Script(error))
    })
}

fn raise(id: u64, error: &ToolError) -> HostMessage {
    HostMessage::Raise {
        id,
        message: error.to_string(),
    }
}

async fn help(registry: &Registry, id: u64, name: &str, arguments: &RawValue) -> HostMessage {
    let answer = match serde_json::from_str::<Map<String, Value>>(arguments.get()) {
        Ok(arguments) => helpers::call(registry, name, &arguments).await,
        Err(error) => Err(format!("{name}(): its arguments cannot be read: {error}")),
    };
    match answer.map(|value| serde_json::value::to_raw_value(&value)) {
        Ok(Ok(value)) => HostMessage::Return { id, value },
        Ok(Err(error)) => HostMessage::Raise {
            id,
            message: error.to_string(),
        },
        Err(message) => HostMessage::Raise { id, message },
    }
}

fn died(exit: Exit, timeout: Duration) -> ProgramError {
    const SIGKILL: i32 = 9;
    const SIGSEGV: i32 = 11;
    const SIGXCPU: i32 = 24;
    let text = match exit {
        Exit::Exceeded(text) => return ProgramError::Exceeded(text),
        Exit::Code(code) => format!(
            "the interpreter ended with exit code {code} before the program came to its end (os._exit, or a fatal error of the interpreter)"
        ),
        Exit::Signal(SIGKILL) => format!(
            "the interpreter was killed (SIGKILL): it used more than its CPU time of {}s, or the machine ran out of memory",
            seconds(timeout)
        ),
        Exit::Signal(SIGXCPU) => {
            format!(
                "the interpreter used more than its CPU time of {}s (SIGXCPU)",
                seconds(timeout)
            )
        }
        Exit::Signal(SIGSEGV) => {
            "the interpreter crashed (SIGSEGV): endless recursion in C code, or ctypes".to_owned()
        }
        Exit::Signal(signal) => format!("the interpreter was ended by signal {signal}"),
    };
    ProgramError::Died(format!("RuntimeError: {text}"))
}

/// Both directions of one child's channel.
struct Channel {
    incoming: Incoming,
    outgoing: ChildStdin,
}

impl Channel {
    fn new(child: &mut Child) -> Self {
        Self {
            incoming: Incoming {
                stdout: child.stdout.take().expect("a fresh child has its pipes"),
                decoder: Decoder::new(MAX_CHILD_FRAME),
                buffer: vec![0; 64 * 1024].into_boxed_slice(),
                unread: 0..0,
            },
            outgoing: child.stdin.take().expect("a fresh child has its pipes"),
        }
    }
}

/// The child's frames as messages.
struct Incoming {
    stdout: ChildStdout,
    decoder: Decoder,
    buffer: Box<[u8]>,
    unread: std::ops::Range<usize>,
}

impl Incoming {
    /// The next message; `None` at the end of the pipe. Safe to drop and call again: what was read
    /// is kept.
    async fn next(&mut self) -> Option<Result<ChildMessage, ChannelError>> {
        loop {
            let mut bytes = &self.buffer[self.unread.clone()];
            let decoded = self.decoder.decode(&mut bytes);
            self.unread.start = self.unread.end - bytes.len();
            match decoded {
                Ok(Some(body)) => return Some(ChildMessage::parse(&body)),
                Ok(None) => {}
                Err(error) => return Some(Err(error.into())),
            }
            match self.stdout.read(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.unread = 0..n,
            }
        }
    }
}

type Outgoing = (HostMessage, Option<OwnedSemaphorePermit>);

/// Writes frames in order, giving each answer's slot back once it is in the pipe. Ends when the
/// child no longer reads.
async fn write_frames(
    mut pipe: ChildStdin,
    start: HostMessage,
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
) {
    let mut next = Some((start, None));
    while let Some((message, slot)) = next {
        let Ok(pieces) = message.into_frame() else {
            return;
        };
        for piece in pieces {
            if pipe.write_all(&piece).await.is_err() {
                return;
            }
        }
        drop(slot);
        next = queue.recv().await;
    }
}
