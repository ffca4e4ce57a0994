//! A program between its start and its report, over all the requests that it takes.
//!
//! In the 2026-07-28 era a question to the person ends a request: the program is parked, alive, and
//! the client calls again with its answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use rmcp::RoleServer;
use rmcp::model::InputRequiredResult;
use rmcp::service::RequestContext;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::asking::{self, Era};
use super::progress;
use crate::consent::{Answer, Question};
use crate::report::Report;
use crate::{Program, Progress, Ptc, Turn};

/// Programs that may wait for a client to call again.
const MAX_PARKED: usize = 8;

/// How long the client may take to hear that a question needs no answer any more.
const WITHDRAWAL: Duration = Duration::from_secs(1);

/// A program that was started; dropped with everything that it did not finish.
pub(super) struct Running {
    report: AbortOnDropHandle<Report>,
    questions: mpsc::Receiver<Question>,
    progress: watch::Receiver<Progress>,
    cancel: CancellationToken,
}

/// What ends a request.
pub(super) enum End {
    Ended(Box<Report>),
    /// The person must be asked by the result.
    Asks(Question),
}

impl Running {
    pub(super) fn start(
        ptc: Arc<Ptc>,
        program: Program,
        turn: Turn,
        questions: mpsc::Receiver<Question>,
        cancel: CancellationToken,
    ) -> Self {
        let (watched, progress) = watch::channel(Progress::default());
        let cancelled = cancel.clone();
        let report =
            tokio::spawn(async move { ptc.execute(program, turn, cancelled, Some(watched)).await });
        Self {
            report: AbortOnDropHandle::new(report),
            questions,
            progress,
            cancel,
        }
    }

    /// Stays with the program, for one request, until it ends or the request must.
    pub(super) async fn attend(&mut self, context: &RequestContext<RoleServer>) -> End {
        let relay = async {
            if let Some(token) = context.meta.get_progress_token() {
                progress::relay(context.peer.clone(), token, self.progress.clone()).await;
            }
            std::future::pending::<Infallible>().await
        };
        let mut relay = std::pin::pin!(relay);
        let era = Era::of(context);
        // The questions of a program come one at a time.
        let mut asking = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                report = &mut self.report => match report {
                    Ok(report) => {
                        // A form that is still shown is taken back.
                        let withdrawn = asking.for_each(|()| async {});
                        let _ = tokio::time::timeout(WITHDRAWAL, withdrawn).await;
                        return End::Ended(Box::new(report));
                    }
                    Err(defect) => std::panic::resume_unwind(defect.into_panic()),
                },
                () = context.ct.cancelled(), if !self.cancel.is_cancelled() => self.cancel.cancel(),
                Some(question) = self.questions.recv() => match era {
                    Era::Requests => asking.push(asking::put(context.peer.clone(), question)),
                    Era::Results if asking::shows_forms(context) => return End::Asks(question),
                    Era::Results => question.answer(Answer::No(asking::CANNOT_ASK.to_owned())),
                },
                Some(()) = asking.next() => {}
                // Polled beside the program and dropped with it: no notification follows the result.
                never = &mut relay => match never {},
            }
        }
    }
}

/// The programs whose question is on its way to a person, by the state that the client brings back.
pub(super) struct Parking {
    parked: Mutex<VecDeque<Parked>>,
    room: usize,
}

struct Parked {
    state: String,
    running: Running,
    question: Question,
}

impl Parking {
    /// One place in the line of programs is kept free of them, so that others go on.
    pub(super) fn new(max_programs: usize) -> Self {
        Self {
            parked: Mutex::default(),
            room: max_programs.saturating_sub(1).clamp(1, MAX_PARKED),
        }
    }

    /// Keeps the program until its client calls again, and gives the result that makes it do so.
    /// When there is no room the program is handed back, its question answered.
    pub(super) fn park(
        &self,
        running: Running,
        question: Question,
    ) -> Result<InputRequiredResult, Running> {
        let mut parked = self.parked();
        if parked.len() >= self.room {
            // Whoever was not answered in time has gone on without. Its client did not come back, and
            // makes room.
            let stale = parked
                .iter()
                .position(|parked| parked.question.is_withdrawn());
            if stale.and_then(|at| parked.remove(at)).is_none() {
                let (room, programs) = match self.room {
                    1 => (1, "program is"),
                    room => (room, "programs are"),
                };
                question.answer(Answer::No(format!(
                    "{room} {programs} already waiting for an answer"
                )));
                return Err(running);
            }
        }
        let state = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        let result = asking::input_required(&question, state.clone());
        parked.push_back(Parked {
            state,
            running,
            question,
        });
        Ok(result)
    }

    /// The program that waits under this state, and its question.
    pub(super) fn take(&self, state: &str) -> Option<(Running, Question)> {
        let mut parked = self.parked();
        let at = parked.iter().position(|parked| parked.state == state)?;
        let found = parked.remove(at)?;
        Some((found.running, found.question))
    }

    fn parked(&self) -> std::sync::MutexGuard<'_, VecDeque<Parked>> {
        self.parked.lock().expect("nothing panics while it is held")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::consent::{Asker, Call, Consent, Session};
    use crate::tool::{ServerName, ToolName};

    /// A program that never ends, with a question; the question is withdrawn with the task.
    async fn asking() -> (Running, Question, AbortOnDropHandle<Result<(), String>>) {
        let (asker, mut questions) = Asker::person();
        let call = tokio::spawn(async move {
            let call = Call {
                server: &ServerName::new("crm"),
                original: "refund",
                name: &ToolName::new("mcp__crm__refund"),
                arguments: &Map::new(),
                because: "tools.confirm",
            };
            Consent::new(asker, Session::default()).to(call).await
        });
        let question = questions.recv().await.expect("a question");
        let running = Running {
            report: AbortOnDropHandle::new(tokio::spawn(std::future::pending())),
            questions,
            progress: watch::channel(Progress::default()).1,
            cancel: CancellationToken::new(),
        };
        (running, question, AbortOnDropHandle::new(call))
    }

    // contract: A2
    #[tokio::test]
    async fn the_ninth_is_told_no_until_one_of_eight_has_gone_on() {
        let parking = Parking::new(100);
        let mut calls = Vec::new();
        for _ in 0..MAX_PARKED {
            let (running, question, call) = asking().await;
            assert!(parking.park(running, question).is_ok());
            calls.push(call);
        }
        let (running, question, call) = asking().await;
        assert!(parking.park(running, question).is_err());
        let told = call.await.unwrap().unwrap_err();
        assert_eq!(told, "8 programs are already waiting for an answer");

        // The fourth was not answered in time.
        let oldest = parking.parked()[3].state.clone();
        let gone = calls.remove(3);
        gone.abort();
        let _ = gone.await;
        let (running, question, _call) = asking().await;
        let Ok(result) = parking.park(running, question) else {
            panic!("there is room");
        };
        assert!(parking.take(&oldest).is_none());
        let state = result.request_state.expect("a state to call again with");
        let (_running, question) = parking.take(&state).expect("the newest");
        assert!(!question.is_withdrawn());
        assert!(parking.take(&state).is_none(), "a state is good for once");
    }

    // contract: A2 B1
    #[test]
    fn a_program_more_can_run_than_may_wait_for_a_person() {
        let room = |max_programs| Parking::new(max_programs).room;
        assert_eq!([1, 2, 8, 9, 1000].map(room), [1, 1, 7, 8, 8]);
    }
}
