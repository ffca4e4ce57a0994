//! What each command does: start, ask, say, shut down.

use std::collections::HashMap;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::{FuturesOrdered, FuturesUnordered};
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Exit;
use super::render::{self, Probe, Reached, Server, Style};
use super::stats;
use super::terminal::{self, LiveLine};
use crate::config::{Config, ServerConfig};
use crate::consent::{Answer, Asker};
use crate::helpers::{self, Selection, ToolList};
use crate::{Program, Progress, Ptc, downstream, server, watchdog};

/// How often a live line is rewritten.
const TICK: Duration = Duration::from_millis(100);

/// What a program is told that needs a person's yes where there is no terminal.
const CANNOT_ASK: &str = "nobody can be asked here: ptc-mcp run asks only on a terminal. Run it \
     there, or take the tool out of tools.confirm";

/// `ptc-mcp serve`
pub(crate) async fn serve(config: Config) -> Exit {
    let stop = CancellationToken::new();
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            terminal::complain(&format!("cannot listen for signals: {error}"));
            return Exit::Failed;
        }
    };
    let stopped = stop.clone();
    tokio::spawn(async move {
        let name = signals.next().await;
        stopped.cancel();
        tracing::info!("{name}: shutting down");
    });
    if std::io::stdin().is_terminal() {
        terminal::complain(
            "serving MCP on stdin and stdout, which a client should hold; see ptc-mcp --help",
        );
    }
    tracing::info!(
        "ptc-mcp {} serves {} configured servers",
        env!("CARGO_PKG_VERSION"),
        config.servers.len()
    );
    // On Linux these do not block a thread while a client is silent.
    let (input, output) = rmcp::transport::stdio_pipes();
    let ptc = Ptc::start(config);
    ptc.warm_up();
    server::serve(ptc, input, output, stop).await;
    Exit::Success
}

/// `ptc-mcp run`
pub(crate) async fn run(mut config: Config, file: &Path, json: bool, stats: bool) -> Exit {
    let code = match read_program(file) {
        Ok(code) => code,
        Err(error) => {
            terminal::complain(&format!("cannot read {}: {error}", file.display()));
            return Exit::Usage;
        }
    };
    let cancel = CancellationToken::new();
    let (person, mut questions) = Asker::person();
    let asker = if terminal::can_ask() {
        person
    } else {
        Asker::Nobody(CANNOT_ASK.to_owned())
    };
    let (progress, watching) = watch::channel(Progress::default());
    let program = Program {
        code: code.clone(),
        client: "ptc-mcp run".to_owned(),
        root: None,
        asker,
    };
    // No second program follows.
    config.execution.pool = 0;
    let started = Instant::now();
    let ptc = Ptc::start(config);
    // A task of its own: the first one of a runtime is woken at a higher price.
    let (its, turn, cancelled) = (ptc.clone(), ptc.line_up(), cancel.clone());
    let running = async move { its.execute(program, turn, cancelled, Some(progress)).await };
    let mut running = AbortOnDropHandle::new(tokio::spawn(running));
    let mut interrupted = false;
    let report = {
        let mut live = LiveLine::new();
        let mut tick = tokio::time::interval(TICK);
        let mut signals = Signals::new();
        let mut asking = FuturesUnordered::new();
        loop {
            tokio::select! {
                report = &mut running => break report.expect("a program's task does not panic"),
                Some(question) = questions.recv() => {
                    live.clear();
                    asking.push(async move {
                        let choice = terminal::ask(question.text()).await;
                        question.answer(choice.as_deref().map_or_else(Answer::no, Answer::of));
                    });
                }
                Some(()) = asking.next() => {}
                () = next_signal(&mut signals), if !interrupted => {
                    interrupted = true;
                    cancel.cancel();
                }
                _ = tick.tick(), if live.is_enabled() && asking.is_empty() => {
                    let mut now = watching.borrow().clone();
                    now.elapsed = started.elapsed();
                    live.show(&server::progress_message(&now));
                }
            }
        }
    };
    ptc.shutdown().await;
    if json {
        terminal::print(&format!("{}\n", report.structured()));
    } else {
        let emitted = report.emitted.as_ref().map(|value| value.get());
        terminal::print(&render::run_output(&report.output, emitted));
        let notes = render::run_notes(
            report.error().as_deref(),
            report.ledger().as_deref(),
            report.trace().as_deref(),
            stderr_style(),
        );
        if !notes.is_empty() {
            terminal::complain(&notes);
        }
    }
    for warning in &report.warnings {
        terminal::complain(warning);
    }
    if stats {
        terminal::complain(&stats::stats(&code, &report));
    }
    match (interrupted, report.ok()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Success,
        (false, false) => Exit::Failed,
    }
}

/// `ptc-mcp tools`
pub(crate) async fn tools(config: Config, json: bool) -> Exit {
    let ptc = Ptc::start(config);
    let servers = or_interrupted(async {
        let list = list_with_live_line(&ptc).await;
        servers_of(&ptc, list).await
    })
    .await;
    ptc.shutdown().await;
    let Some(servers) = servers else {
        return Exit::Interrupted;
    };
    if json {
        terminal::print(&format!("{:#}\n", render::tools_json(&servers)));
    } else {
        terminal::print(&render::tools(&servers, stdout_style()));
    }
    Exit::Success
}

/// `ptc-mcp inspect`
pub(crate) async fn inspect(config: Config, name: &str) -> Exit {
    let ptc = Ptc::start(config);
    let tool = or_interrupted(helpers::inspect_tool(ptc.registry(), name)).await;
    ptc.shutdown().await;
    match tool {
        Some(Ok(tool)) => {
            terminal::print(&format!("{tool:#}\n"));
            Exit::Success
        }
        Some(Err(not_found)) => {
            terminal::complain(&not_found);
            Exit::Failed
        }
        None => Exit::Interrupted,
    }
}

/// `ptc-mcp check`
pub(crate) async fn check(config: &Config, origin: &str) -> Exit {
    watchdog::start();
    let style = stdout_style();
    terminal::print(&render::check_config(origin, config.servers.len(), style));
    let width = config
        .servers
        .iter()
        .map(|server| server.name.as_str().chars().count())
        .max()
        .unwrap_or(0);
    let limit = config.execution.max_tool_result_bytes;
    // All at once, shown in the order of the file.
    let mut probes: FuturesOrdered<_> = config
        .servers
        .iter()
        .map(|server| probe(server, limit))
        .collect();
    let outcome = or_interrupted(async {
        let mut exit = Exit::Success;
        while let Some(probe) = probes.next().await {
            if probe.outcome.is_err() {
                exit = Exit::Failed;
            }
            terminal::print(&render::check_server(&probe, width, style));
        }
        exit
    })
    .await;
    outcome.unwrap_or(Exit::Interrupted)
}

/// What connecting to each server shows, in the order of the file.
pub(super) async fn probe_all(config: &Config) -> Vec<Probe> {
    let limit = config.execution.max_tool_result_bytes;
    let probes = config.servers.iter().map(|server| probe(server, limit));
    futures::future::join_all(probes).await
}

async fn probe(server: &ServerConfig, max_result_bytes: usize) -> Probe {
    let started = Instant::now();
    let reach = async {
        let connection = downstream::connect(server, max_result_bytes, &CancellationToken::new())
            .await
            .map_err(|error| error.to_string())?;
        let elapsed = started.elapsed();
        let listed = connection.list_tools().await;
        let reached = listed
            .map(|tools| Reached {
                elapsed,
                protocol: connection.protocol_version().to_owned(),
                tools: tools.len(),
            })
            .map_err(|error| format!("connected, but its tools cannot be listed: {error}"));
        Ok((reached, connection))
    };
    let outcome = match timeout(server.connect_timeout, reach).await {
        Ok(Ok((reached, connection))) => {
            connection.shutdown().await;
            reached
        }
        Ok(Err(reason)) => Err(reason),
        Err(_) => Err(format!(
            "no answer within {}",
            render::seconds(server.connect_timeout)
        )),
    };
    Probe {
        server: server.name.to_string(),
        outcome,
    }
}

async fn list_with_live_line(ptc: &Ptc) -> ToolList {
    let mut live = LiveLine::new();
    let everything = Selection::default();
    let list = helpers::list_callable_tools(ptc.registry(), &everything);
    let mut list = std::pin::pin!(list);
    let mut tick = tokio::time::interval(TICK);
    let mut ticks = 0;
    loop {
        tokio::select! {
            biased;
            list = &mut list => return list.expect("no server was named"),
            _ = tick.tick(), if live.is_enabled() => {
                let status = helpers::server_status(ptc.registry());
                live.show(&render::connecting(&status, ticks));
                ticks += 1;
            }
        }
    }
}

/// Sorts the flat list by server, and adds what each tool says of itself.
async fn servers_of(ptc: &Ptc, list: ToolList) -> Vec<Server> {
    let down: HashMap<&str, &String> = list
        .down
        .iter()
        .map(|(server, reason)| (server.as_str(), reason))
        .collect();
    let mut servers = Vec::new();
    for server in &ptc.config().servers {
        let name = server.name.to_string();
        let tools = match down.get(server.name.as_str()) {
            Some(reason) => Err((*reason).clone()),
            None => {
                let prefix = server.name.prefix();
                let mut tools = Vec::new();
                for tool in &list.names {
                    if tool.as_str().starts_with(&prefix) {
                        let shown = helpers::inspect_tool(ptc.registry(), tool.as_str()).await;
                        let description = shown.ok().as_ref().and_then(description);
                        tools.push((tool.to_string(), description.unwrap_or_default()));
                    }
                }
                Ok(tools)
            }
        };
        servers.push(Server { name, tools });
    }
    servers
}

fn description(tool: &Value) -> Option<String> {
    tool.get("description")?.as_str().map(ToOwned::to_owned)
}

fn read_program(file: &Path) -> std::io::Result<String> {
    if file == Path::new("-") {
        let mut code = String::new();
        std::io::stdin().lock().read_to_string(&mut code)?;
        Ok(code)
    } else {
        std::fs::read_to_string(file)
    }
}

/// `None` if a signal came first; the work is dropped then, and what it started with it.
pub(super) async fn or_interrupted<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut signals = Signals::new();
    tokio::select! {
        done = work => Some(done),
        () = next_signal(&mut signals) => None,
    }
}

/// Never, where signals cannot be had: then the default applies, and they end the process.
async fn next_signal(signals: &mut std::io::Result<Signals>) {
    match signals {
        Ok(signals) => {
            signals.next().await;
        }
        Err(_) => std::future::pending().await,
    }
}

/// The signals that ask for an orderly end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

pub(super) fn stdout_style() -> Style {
    Style {
        colours: terminal::colours(std::io::stdout().is_terminal()),
    }
}

fn stderr_style() -> Style {
    Style {
        colours: terminal::colours(std::io::stderr().is_terminal()),
    }
}
