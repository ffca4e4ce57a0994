//! From a scenario and a message to the steps of an answer. No I/O but the journal.

mod distort;
mod listen;
mod request;

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::fault::{Crash, Fault};
use crate::garble;
use crate::journal::{Entry, Event, HttpEntry, Recorder};
use crate::message::{Body, INVALID_PARAMS, Incoming, PARSE_ERROR, Params};
use crate::rule::At;
use crate::scenario::{OnRestart, Scenario};

/// What a transport does, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// One message in a frame of the transport's.
    Message(Vec<u8>),
    /// The answer, framed. Left out when the request was cancelled.
    Answer(Vec<u8>),
    /// The answer, framed, cancelled or not.
    AnswerRegardless(Vec<u8>),
    /// Bytes outside any frame.
    Raw(Vec<u8>),
    /// The first half of the framed message.
    Half(Vec<u8>),
    /// The framed message, so many bytes a second.
    Drip(Vec<u8>, u64),
    /// Silence; ends early when the request is cancelled.
    Wait(Duration),
    /// Silence until the request is cancelled.
    AwaitCancel,
    /// A request to the client, whose answer is awaited.
    Ask {
        id: String,
        message: Vec<u8>,
    },
    /// A notification to whoever listens.
    Announce(Vec<u8>),
    /// The acknowledgement, then notifications as they come, until the request is cancelled.
    Subscribe(Vec<u8>),
    /// The same bytes for ever, with a pause in between.
    Endless {
        unit: Vec<u8>,
        framed: bool,
        pause: Duration,
    },
    Stderr(Vec<u8>),
    CloseStdout,
    /// Performed by whoever reads stdin.
    CloseStdin,
    Crash(Crash),
    Hang {
        deaf: bool,
    },
}

/// An answer: its steps, and the fault that only an HTTP transport can apply to them.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) http: Option<Fault>,
    /// The request's id, for cancellation.
    pub(crate) id: Option<String>,
    pub(crate) method: Option<String>,
    /// `initialize` was accepted: HTTP hands out a session.
    pub(crate) opens_session: bool,
    /// The answer is a JSON-RPC error with which HTTP pairs this status.
    pub(crate) status: Option<u16>,
}

impl Plan {
    /// What becomes of a server that a fault strikes while it owes no answer.
    pub(crate) fn struck(fault: &Fault) -> Self {
        let steps = match fault {
            Fault::Crash(crash) => vec![Step::Crash(crash.clone())],
            Fault::Hang(hang) => vec![Step::Hang { deaf: hang.deaf }],
            _ => Vec::new(),
        };
        Self {
            steps,
            ..Self::default()
        }
    }

    fn answer(id: &str, body: &Body) -> Self {
        Self {
            steps: vec![Step::Answer(body.answer(id))],
            ..Self::default()
        }
    }

    /// Whether anything comes before the answer or after it, or instead.
    pub(crate) fn is_single_answer(&self) -> bool {
        self.steps
            .iter()
            .filter(|step| !matches!(step, Step::Wait(_) | Step::AwaitCancel | Step::Stderr(_)))
            .count()
            <= 1
            && !self
                .steps
                .iter()
                .any(|step| matches!(step, Step::Subscribe(_)))
    }

    /// Whether the bytes must go out as they arise, so that no length can be announced.
    pub(crate) fn streams(&self) -> bool {
        self.steps.iter().any(|step| {
            matches!(
                step,
                Step::Half(_) | Step::Drip(..) | Step::Endless { .. } | Step::Hang { .. }
            )
        })
    }
}

/// What a message calls for.
pub(crate) enum Received {
    Plan(Plan),
    /// A notification or an answer: nothing is sent back.
    Noted,
    /// A notification that a fault strikes.
    Struck(Fault),
}

/// Someone who gets announcements.
struct Listener {
    /// The id of the `subscriptions/listen` request, which is repeated in every notification.
    subscription: Option<String>,
    sender: Sender<Vec<u8>>,
}

#[derive(Default)]
struct State {
    /// Peers (sessions; "" for the one on stdio) that have completed `initialize`.
    initialized: HashSet<String>,
    /// Occasions of each rule so far.
    occasions: Vec<u64>,
    calls: HashMap<String, u64>,
    calls_in_all: u64,
    counter: u64,
    pages: u64,
    cancelled: HashSet<(String, String)>,
    answers: HashSet<String>,
    asked: u64,
    stopped: bool,
}

/// One running server's memory.
pub(crate) struct Player {
    scenario: Scenario,
    recorder: Recorder,
    state: Mutex<State>,
    changed: Condvar,
    listeners: Mutex<Vec<Listener>>,
}

impl Player {
    pub(crate) fn new(scenario: Scenario, recorder: Recorder) -> Self {
        let occasions = vec![0; scenario.faults.len()];
        recorder.write(recorder.entry(Event::Start));
        Self {
            scenario,
            recorder,
            state: Mutex::new(State {
                occasions,
                ..State::default()
            }),
            changed: Condvar::new(),
            listeners: Mutex::default(),
        }
    }

    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn healthy_now(&self) -> bool {
        self.scenario.on_restart == OnRestart::Healthy && self.recorder.start() > 1
    }

    /// The steps that precede everything else.
    pub(crate) fn at_start(&self) -> Vec<Step> {
        let faults: Vec<Fault> = self
            .scenario
            .start_faults(self.recorder.start())
            .cloned()
            .collect();
        faults
            .iter()
            .flat_map(|fault| {
                self.recorder.note(Event::Fault, fault.name());
                match fault {
                    Fault::Crash(crash) => vec![Step::Crash(crash.clone())],
                    Fault::Hang(hang) => vec![Step::Hang { deaf: hang.deaf }],
                    Fault::Noise(noise) => vec![Step::Raw(garble::noise(noise))],
                    Fault::StderrFlood(flood) => vec![Step::Stderr(garble::flood(flood))],
                    Fault::CloseStdout(_) => vec![Step::CloseStdout],
                    _ => Vec::new(),
                }
            })
            .collect()
    }

    /// The fault of this occasion, if one strikes. Every matching rule counts the occasion.
    pub(crate) fn fault_at(&self, at: At, tool: Option<&str>) -> Option<Fault> {
        let mut state = self.state();
        let mut struck = None;
        let start = self.recorder.start();
        let rules = self.scenario.faults.iter().zip(&mut state.occasions);
        for (number, (rule, occasions)) in rules.enumerate() {
            if rule.at != at || (rule.tool.is_some() && rule.tool.as_deref() != tool) {
                continue;
            }
            *occasions += 1;
            let lot = self.scenario.lot(number, *occasions, start);
            if struck.is_none() && rule.strikes(*occasions, start, lot) {
                struck = Some(rule.fault.clone());
            }
        }
        drop(state);
        let struck = struck.filter(|_| !self.healthy_now());
        if let Some(fault) = &struck {
            self.recorder.note(Event::Fault, fault.name());
        }
        struck
    }

    /// Takes one message of the client's.
    pub(crate) fn receive(&self, bytes: &[u8], peer: &str, http: Option<HttpEntry>) -> Received {
        let entry = |event| Entry {
            http: http.clone(),
            ..self.recorder.entry(event)
        };
        let incoming = std::str::from_utf8(bytes)
            .map_err(|error| error.to_string())
            .and_then(|text| serde_json::from_str::<Incoming>(text).map_err(|e| e.to_string()));
        let incoming = match incoming {
            Ok(incoming) => incoming,
            Err(error) => {
                let note = Some(String::from_utf8_lossy(bytes).into_owned());
                self.recorder.write(Entry {
                    note,
                    ..entry(Event::Unreadable)
                });
                let plan = Plan::answer("null", &Body::error(PARSE_ERROR, &error));
                return Received::Plan(Plan {
                    status: Some(400),
                    ..plan
                });
            }
        };
        let id = incoming.id.as_ref().map(|id| id.get().to_owned());
        let Some(method) = incoming.method else {
            let answer = incoming.result.or(incoming.error);
            self.recorder.write(Entry {
                id: incoming.id,
                answer,
                ..entry(Event::Answer)
            });
            if let Some(id) = id {
                self.state().answers.insert(id);
                self.changed.notify_all();
            }
            return Received::Noted;
        };
        let event = if id.is_some() {
            Event::Request
        } else {
            Event::Notification
        };
        let params = Params::read(incoming.params.as_deref());
        self.recorder.write(Entry {
            method: Some(method.clone()),
            id: incoming.id,
            params: incoming.params,
            ..entry(event)
        });
        let Some(id) = id else {
            if method == "notifications/cancelled"
                && let Ok(Params {
                    request_id: Some(request),
                    ..
                }) = params
            {
                self.cancel(peer, request.get());
            }
            return match self.fault_at(At::Notification, None) {
                Some(fault) => Received::Struck(fault),
                None => Received::Noted,
            };
        };
        // Whoever reuses an id, after a reconnection say, means a new request.
        self.state()
            .cancelled
            .remove(&(peer.to_owned(), id.clone()));
        let mut plan = match params {
            Ok(params) => self.request(peer, &id, &method, &params),
            Err(error) => Plan::answer(&id, &Body::error(INVALID_PARAMS, &error.to_string())),
        };
        plan.id = Some(id);
        plan.method = Some(method);
        Received::Plan(plan)
    }
}
