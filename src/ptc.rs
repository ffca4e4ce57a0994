//! The running whole: supervisors, registry and engine, started together and stopped in order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::engine::{Engine, Program, Turn};
use crate::gate::Progress;
use crate::registry::Registry;
use crate::report::Report;
use crate::sandbox::Sandbox;
use crate::supervisor::{ServerState, supervise};
use crate::watchdog;

/// The whole exit takes at most 5 s (contract S12), the last lines of the log included; what has not
/// stopped by then is killed by dropping it.
const STOP_LIMIT: Duration = Duration::from_millis(4000);

#[derive(Debug)]
pub struct Ptc {
    config: Config,
    registry: Arc<Registry>,
    engine: Engine,
    /// Cancels every running program.
    programs: CancellationToken,
    running: tokio::sync::RwLock<()>,
    stop_servers: CancellationToken,
    supervisors: Mutex<JoinSet<()>>,
}

impl Ptc {
    /// Starts connecting to every configured server and returns at once.
    pub fn start(config: Config) -> Arc<Self> {
        watchdog::start();
        let stop_servers = CancellationToken::new();
        let mut supervisors = JoinSet::new();
        let mut states = Vec::new();
        for server in &config.servers {
            let (sender, receiver) = watch::channel(ServerState::Connecting);
            states.push((server.name.clone(), receiver));
            supervisors.spawn(supervise(
                server.clone(),
                config.tools.clone(),
                config.execution.max_tool_result_bytes,
                sender,
                stop_servers.clone(),
            ));
        }
        let registry = Arc::new(Registry::new(states));
        let sandbox = Sandbox::new(config.execution.clone());
        Arc::new(Self {
            engine: Engine::new(&config, registry.clone(), sandbox),
            config,
            registry,
            programs: CancellationToken::new(),
            running: tokio::sync::RwLock::new(()),
            stop_servers,
            supervisors: Mutex::new(supervisors),
        })
    }

    /// Makes ready for programs in the background, where some are to be expected.
    pub fn warm_up(&self) {
        self.engine.warm_up();
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn sandbox(&self) -> &Sandbox {
        self.engine.sandbox()
    }

    /// A place in the line for a program that has arrived: programs run in the order of their
    /// places, whatever order their tasks come to [`Ptc::execute`] in.
    pub fn line_up(&self) -> Turn {
        self.engine.line_up()
    }

    /// Runs one program. `cancel` kills it, and so does [`Ptc::shutdown`].
    pub async fn execute(
        &self,
        program: Program,
        turn: Turn,
        cancel: CancellationToken,
        progress: Option<watch::Sender<Progress>>,
    ) -> Report {
        let _running = self.running.read().await;
        let cancelled = async {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = self.programs.cancelled() => {}
            }
        };
        self.engine.run(program, turn, cancelled, progress).await
    }

    /// Kills running programs, closes servers in good order, and leaves nothing behind.
    pub async fn shutdown(&self) {
        self.programs.cancel();
        self.stop_servers.cancel();
        let mut supervisors = std::mem::take(
            &mut *self
                .supervisors
                .lock()
                .expect("nothing panics while it is held"),
        );
        let stopped = async {
            let _programs_ended = self.running.write().await;
            self.engine.close().await;
            while supervisors.join_next().await.is_some() {}
        };
        if tokio::time::timeout(STOP_LIMIT, stopped).await.is_err() {
            tracing::warn!("not everything stopped in time; the rest is killed");
        }
        supervisors.abort_all();
    }
}
