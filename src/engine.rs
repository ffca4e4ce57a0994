//! One program, from its text to its [`Report`]: a child that stands, one event loop, the end.
//!
//! How a child is confined, and how a tool is reached, are not known here.

mod clock;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod pipes;
mod pool;
mod run;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};

use self::pool::{Lent, Pool, Standing};
use self::run::Run;
use crate::audit::{self, Audit};
use crate::config::{ClaudeCodeRules, Config, Execution, ToolRules};
use crate::consent::{Asker, Consent, Session};
use crate::gate::{Gate, Policy, Progress};
use crate::permissions::{self, Places};
use crate::registry::{Needs, Registry};
use crate::report::{Output, ProgramError, Report};
use crate::sandbox::Sandbox;

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
    sandbox: Arc<Sandbox>,
    pool: Pool,
    /// Fair: further programs wait in order (contract B1).
    programs: Arc<Semaphore>,
}

/// A program's place in the line of those that want to run.
#[must_use]
pub struct Turn(BoxFuture<'static, Result<OwnedSemaphorePermit, AcquireError>>);

impl Engine {
    /// Inside a runtime: the pool of children is a task of its own.
    pub fn new(config: &Config, registry: Arc<Registry>, sandbox: Sandbox) -> Self {
        let places = config.execution.max_programs.min(Semaphore::MAX_PERMITS);
        let programs = Arc::new(Semaphore::new(places));
        let sandbox = Arc::new(sandbox);
        let size = config.execution.pool;
        Self {
            pool: Pool::start(sandbox.clone(), size, programs.clone()),
            programs,
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

    /// Finds and proves the sandbox, and makes children ready, before the first program comes.
    pub fn warm_up(&self) {
        self.pool.fill();
    }

    /// Ends the children that are ready, and waits for those that are ending. No program may come
    /// after it.
    pub async fn close(&self) {
        self.pool.close().await;
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
        let mut lent = match prepared {
            Ok(lent) => lent,
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
        let Standing { child, channel } = lent.standing();
        let run = Run::new(&self.execution, &self.registry, &gate);
        let mut report = run.finish(program.code, child, channel, cancelled).await;
        report.warnings = warnings;
        lent.end().await;
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
    async fn prepare(&self, code: &str, turn: Turn) -> Result<Lent, ProgramError> {
        let turn = turn.0.await.expect("the programs are never closed");
        let servers = self.registry.settled(Needs::Program(code));
        let (lent, ()) = tokio::join!(self.pool.take(turn), servers);
        lent
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
