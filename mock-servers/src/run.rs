//! The command line's work: one scenario, one transport, until it ends.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
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
        None if scenario.counts_starts() => {
            return Err(format!(
                "{}: the scenario tells one start from another, which takes a --journal: earlier starts \
                 are counted by it",
                scenario_file.display()
            ));
        }
        None => Recorder::none(),
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
