//! The event loop of one program, over any pipes: what its child says, and what it is told.
//!
//! It selects over one closed set of `Event`s, so that every way a program can end is visible in one
//! match.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use super::clock::Clock;
use super::pipes::{Channel, Incoming, write_frames};
use crate::channel::{ChannelError, ChildMessage, HostMessage, MAX_CHILD_FRAME};
use crate::config::Execution;
use crate::gate::{Gate, MAX_ARGUMENT_VALUES, seconds};
use crate::helpers;
use crate::offer;
use crate::registry::Registry;
use crate::report::{Output, ProgramError, Report};
use crate::result;
use crate::sandbox::{Child, Exit};

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

/// What each value of its arguments costs, roughly.
const VALUE_COST: usize = 100;

// However large the arguments of one call, the child's next words are read: it may give the call up.
const _: () =
    assert!(MAX_CHILD_FRAME + REQUEST_COST + VALUE_COST * MAX_ARGUMENT_VALUES <= MAX_PENDING);

/// The longest arguments of a helper: names, words and numbers.
const MAX_HELPERS_ARGUMENTS: usize = 64 * 1024;

/// The longest error that is kept. The child's half cuts its own at 65,536 characters.
const MAX_ERROR: usize = 4 * 65_536 + 1024;

/// Helpers answered at a time for one program.
const MAX_HELPERS: usize = 8;

/// What a run asks of a process beside its pipes.
pub(super) trait Process: Send {
    /// Comes back when the process is gone.
    fn exit(&mut self) -> impl Future<Output = Exit> + Send;

    /// Comes back when the process has to go. To be asked for once.
    fn exceeded(&mut self) -> BoxFuture<'static, String>;
}

impl Process for Child {
    fn exit(&mut self) -> impl Future<Output = Exit> + Send {
        Child::exit(self)
    }

    fn exceeded(&mut self) -> BoxFuture<'static, String> {
        Child::exceeded(self).boxed()
    }
}

/// Everything that can happen while a program runs.
enum Event {
    /// The child said something; `None` when it will say nothing more.
    Said(Option<Result<ChildMessage, ChannelError>>),
    /// A call or a helper came to its end.
    Answered(Answered),
    Exited(Exit),
    /// It uses more than it may, in words.
    Exceeded(String),
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

/// One run, from start to end.
pub(super) struct Run<'a> {
    execution: &'a Execution,
    registry: &'a Arc<Registry>,
    gate: &'a Gate,
    output: Output,
    /// Bytes that the child sent as output, kept or not.
    printed: usize,
    emitted: Option<Box<RawValue>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        execution: &'a Execution,
        registry: &'a Arc<Registry>,
        gate: &'a Gate,
    ) -> Self {
        Self {
            execution,
            registry,
            gate,
            output: Output::new(execution.max_output_bytes),
            printed: 0,
            emitted: None,
        }
    }

    /// To the program's end, by whichever side. What is left of the process is the caller's to end.
    pub(super) async fn finish<R, W>(
        mut self,
        code: String,
        child: &mut impl Process,
        channel: &mut Channel<R, W>,
        mut cancelled: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Report
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let started = Instant::now();
        let outcome = self.run(code, child, channel, cancelled.as_mut()).await;
        Report {
            outcome,
            output: self.output.finish(),
            emitted: self.emitted,
            calls: self.gate.records(),
            elapsed: started.elapsed(),
            trace: self.execution.trace,
            warnings: Vec::new(),
        }
    }

    async fn run<R, W>(
        &mut self,
        code: String,
        child: &mut impl Process,
        channel: &mut Channel<R, W>,
        mut cancelled: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<(), ProgramError>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let Channel { incoming, outgoing } = channel;
        let (answers, queue) = mpsc::unbounded_channel();
        let start = self.start(code);
        let writer = write_frames(outgoing, start, queue);
        tokio::pin!(writer);
        let mut writing = true;

        let limit = self.execution.timeout;
        let mut clock = Clock::new(limit);
        let mut exceeded = child.exceeded();
        let mut question_open = self.gate.question_open();
        let helping = Arc::new(Semaphore::new(MAX_HELPERS));
        let mut calls: FuturesUnordered<BoxFuture<'_, Answered>> = FuturesUnordered::new();
        let mut handles: HashMap<u64, AbortHandle> = HashMap::new();
        let mut pending = 0usize;

        loop {
            let event = tokio::select! {
                biased;
                () = &mut cancelled => Event::Cancelled,
                Ok(()) = question_open.changed() => Event::Asking(*question_open.borrow_and_update()),
                () = clock.runs_out() => Event::Deadline,
                () = &mut writer, if writing => { writing = false; continue }
                Some(answered) = calls.next() => Event::Answered(answered),
                // Before what it says: a child that never stops talking has limits as well.
                limit = &mut exceeded => Event::Exceeded(limit),
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
                        let weight = weight(&tool, &arguments);
                        pending += weight;
                        let ticket = self.gate.open(&tool, &arguments);
                        let gate = self.gate;
                        let call = async move {
                            let answer = gate.call(ticket, &tool, &arguments).await;
                            let message = match answer.outcome {
                                Ok(value) => HostMessage::Return { id, value },
                                Err(error) => HostMessage::Raise {
                                    id,
                                    message: error.to_string(),
                                },
                            };
                            Answered {
                                id,
                                weight,
                                message,
                                slot: answer.slot,
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
                        let weight = weight(&name, &arguments);
                        pending += weight;
                        let (registry, helping) = (self.registry.clone(), helping.clone());
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
                Event::Exited(exit) => {
                    let until = Instant::now() + DRAIN_LIMIT;
                    return self.drain(incoming, until, died(exit, limit)).await;
                }
                Event::Exceeded(limit) => {
                    let error = ProgramError::Exceeded(limit);
                    return self.drain(incoming, Instant::now(), error).await;
                }
                Event::Asking(true) => clock.stop(),
                Event::Asking(false) => clock.go_on(),
                Event::Deadline => {
                    let seconds = seconds(limit);
                    let error = ProgramError::TimedOut { seconds };
                    return self.drain(incoming, Instant::now(), error).await;
                }
                Event::Cancelled => return Err(ProgramError::Cancelled),
            }
        }
    }

    fn start(&self, code: String) -> HostMessage {
        let offer = offer::to_program(self.registry, &code);
        HostMessage::Start {
            code,
            offer,
            helpers: helpers::NAMES.to_vec(),
            max_output_bytes: self.execution.max_output_bytes,
        }
    }

    /// Output and emitted values: what a message leaves behind without an answer.
    fn take(&mut self, message: ChildMessage) -> Result<(), ChannelError> {
        let limit = self.execution.max_output_bytes;
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

    /// What a child had still said: a program may have come to its end before we looked. Waits for
    /// more `until` then, and takes what never ceases for `DRAIN_LIMIT` at most.
    async fn drain(
        &mut self,
        incoming: &mut Incoming<impl AsyncRead + Unpin>,
        until: Instant,
        error: ProgramError,
    ) -> Result<(), ProgramError> {
        let last = Instant::now() + DRAIN_LIMIT;
        loop {
            let next = tokio::task::unconstrained(incoming.next());
            let Ok(Some(said)) = tokio::time::timeout_at(until, next).await else {
                return Err(error);
            };
            match said {
                Ok(ChildMessage::Done { error }) => return ended(error),
                Ok(message) => self.take(message)?,
                Err(error) => return Err(error.into()),
            }
            if Instant::now() > last {
                return Err(error);
            }
        }
    }
}

fn ended(error: Option<String>) -> Result<(), ProgramError> {
    error.map_or(Ok(()), |mut error| {
        error.truncate(error.floor_char_boundary(MAX_ERROR));
        Err(ProgramError::Script(error))
    })
}

/// What a request holds of our memory while it is in flight.
fn weight(name: &str, arguments: &RawValue) -> usize {
    let arguments = arguments.get();
    REQUEST_COST + name.len() + arguments.len() + VALUE_COST * result::values(arguments)
}

async fn help(registry: &Registry, id: u64, name: &str, arguments: &RawValue) -> HostMessage {
    let length = arguments.get().len();
    let answer = if length > MAX_HELPERS_ARGUMENTS {
        Err(format!(
            "{name}(): its arguments are {length} bytes long, more than {MAX_HELPERS_ARGUMENTS}"
        ))
    } else {
        match serde_json::from_str::<Map<String, Value>>(arguments.get()) {
            Ok(arguments) => helpers::call(registry, name, &arguments).await,
            Err(error) => Err(format!("{name}(): its arguments cannot be read: {error}")),
        }
    };
    match answer.map(|value| serde_json::value::to_raw_value(&value)) {
        Ok(Ok(value)) => HostMessage::Return {
            id,
            value: value.into(),
        },
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
