//! `mock-server`: one scenario on one transport.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use mock_servers::{Scenario, Transport};

/// A scriptable MCP server for testing MCP clients.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[arg(long, value_enum, default_value = "stdio")]
    transport: Wire,
    /// The scenario, YAML or JSON.
    #[arg(long, required_unless_present = "schema")]
    scenario: Option<PathBuf>,
    /// Appends every message received to this file, as JSON lines.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// The port on 127.0.0.1 (http, sse); 0 takes a free one and says which on stderr.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Prints the JSON Schema of a scenario.
    #[arg(long)]
    schema: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Wire {
    Stdio,
    Http,
    Sse,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.scenario {
        Some(scenario) if !arguments.schema => {
            let transport = match arguments.transport {
                Wire::Stdio => Transport::Stdio,
                Wire::Http => Transport::Http,
                Wire::Sse => Transport::Sse,
            };
            let journal = arguments.journal.as_deref();
            mock_servers::run::run(&scenario, transport, journal, arguments.port)
        }
        _ => writeln!(std::io::stdout(), "{:#}", Scenario::schema())
            .map_err(|error| error.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done when even stderr is gone.
            let _ = writeln!(std::io::stderr(), "mock-server: {error}");
            ExitCode::from(2)
        }
    }
}
