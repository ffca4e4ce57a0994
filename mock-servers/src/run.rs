//! The command line's work: one scenario, one transport, until it ends.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::Fault;
use crate::http::Server;
use crate::journal::Recorder;
use crate::play::Player;
use crate::scenario::{Scenario, Transport};
use crate::stdio;

/// Set in the copy of the process in which SIGTERM is already ignored.
const IGNORING: &str = "MOCK_SERVER_IGNORES_SIGTERM";

/// Serves until stdin ends (stdio), or for ever (HTTP).
pub fn run(
    scenario_file: &Path,
    transport: Transport,
    journal: Option<&Path>,
    port: u16,
) -> Result<(), String> {
    let scenario = Scenario::load(scenario_file)?;
    scenario.check_transport(transport)?;
    let recorder = match journal {
        Some(journal) => Recorder::to_file(journal)
            .map_err(|error| format!("cannot write the journal {}: {error}", journal.display()))?,
        None => Recorder::none(count_start(&scenario, scenario_file)?),
    };
    let ignores = scenario
        .start_faults(recorder.start())
        .any(|fault| matches!(fault, Fault::IgnoreSigterm(_)));
    if ignores && std::env::var_os(IGNORING).is_none() {
        return Err(ignore_sigterm());
    }
    let player = Player::new(scenario, recorder);
    match transport {
        Transport::Stdio => stdio::serve(player).map_err(|error| error.to_string()),
        Transport::Http | Transport::Sse => {
            let serve = || -> io::Result<()> {
                let listener = Server::bind(port)?;
                let (server, thread) = Server::start(listener, player, transport, false)?;
                writeln!(io::stderr(), "listening on {}", server.url())?;
                let _ = thread.join();
                Ok(())
            };
            serve().map_err(|error| format!("cannot serve on 127.0.0.1:{port}: {error}"))
        }
    }
}

/// Without a journal a file beside the scenario counts the starts, if they make a difference.
fn count_start(scenario: &Scenario, scenario_file: &Path) -> Result<u32, String> {
    if !scenario.counts_starts() {
        return Ok(1);
    }
    let mut counter = PathBuf::from(scenario_file).into_os_string();
    counter.push(".starts");
    let before = std::fs::read_to_string(&counter).unwrap_or_default();
    let start = before.trim().parse::<u32>().unwrap_or(0) + 1;
    std::fs::write(&counter, format!("{start}\n"))
        .map_err(|error| format!("cannot write {}: {error}", Path::new(&counter).display()))?;
    Ok(start)
}

/// An ignored signal stays ignored across exec, and a shell can ignore one without unsafe code.
/// Returns only when that fails.
fn ignore_sigterm() -> String {
    let error = std::env::current_exe().map(|program| {
        Command::new("/bin/sh")
            .arg("-c")
            .arg(r#"trap "" TERM; exec "$0" "$@""#)
            .arg(program)
            .args(std::env::args_os().skip(1))
            .env(IGNORING, "1")
            .exec()
    });
    match error {
        Ok(error) | Err(error) => format!("cannot ignore SIGTERM: {error}"),
    }
}
