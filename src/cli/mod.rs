//! The command line: what can be asked for, and the way from the process's arguments to it.
//!
//! Owns arguments, logging, the runtime and exit statuses; what a command says is in `render`,
//! what it does in `commands`.

mod commands;
mod doctor;
mod log;
mod render;
mod stats;
mod terminal;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::config::Config;

/// Where the configuration is, unless `--config` says otherwise.
const CONFIG_VARIABLE: &str = "PTC_MCP_CONFIG";

/// Deep results and schemas are walked on these stacks.
const STACK: usize = 8 * 1024 * 1024;

/// An MCP server that runs a model's Python program against your other MCP servers' tools.
#[derive(Debug, Parser)]
#[command(name = "ptc-mcp", version, after_help = "Without a command it serves.")]
struct Arguments {
    /// The configuration file [default: $PTC_MCP_CONFIG, else ./config.yaml if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Say more on stderr; twice: everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve one MCP client over stdin and stdout
    Serve,
    /// Run a program as a model would
    #[command(after_help = "Exit status: 0 when the program succeeded, 1 when it failed.")]
    Run {
        /// A Python file, or - for stdin
        file: PathBuf,
        /// Print the structured result as JSON instead of the output
        #[arg(long)]
        json: bool,
        /// Say on stderr what a model reads and writes for it, and for the same calls made one by one
        #[arg(long)]
        stats: bool,
    },
    /// List every server and its tools
    Tools {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one tool as a model would see it
    Inspect {
        /// As `ptc-mcp tools` gives it: mcp__<server>__<tool>
        name: String,
    },
    /// Check the configuration, then connect to each server
    #[command(
        after_help = "Exit status: 0 when every server answered, 1 when one did not, \
                            2 when the configuration is wrong."
    )]
    Check,
    /// Show whether programs can run here, behind which sandbox, and prove it
    #[command(
        after_help = "Exit status: 0 when programs run, 1 when they would be refused, \
                            2 when the configuration is wrong."
    )]
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the configuration file
    Schema,
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
}

/// What a command ended with, as the process's exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Success = 0,
    Failed = 1,
    /// The arguments or the configuration are wrong; nothing was started.
    Usage = 2,
    /// As a shell reports SIGINT.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// The whole process, from its arguments to its exit status.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let serving = matches!(arguments.command, None | Some(Command::Serve));
    let _flush = start_logging(serving, arguments.verbose);
    // Fails only when a provider is already there, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match arguments.command {
        Some(Command::Schema) => {
            terminal::print(&format!("{:#}\n", Config::schema()));
            Exit::Success.into()
        }
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "ptc-mcp", &mut script);
            terminal::print(&String::from_utf8_lossy(&script));
            Exit::Success.into()
        }
        command => match load(arguments.config.as_deref()) {
            Ok((config, origin)) => in_runtime(command, config, &origin).into(),
            Err(report) => {
                terminal::complain(&report);
                Exit::Usage.into()
            }
        },
    }
}

/// The configuration, and what to call the place where it came from.
fn load(named: Option<&Path>) -> Result<(Config, String), String> {
    // An empty variable is how shells and client configurations spell "unset".
    let from_environment = std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty());
    let named = named
        .map(Path::to_owned)
        .or_else(|| from_environment.map(PathBuf::from));
    let origin = match &named {
        Some(path) => path.display().to_string(),
        None if Path::new("config.yaml").exists() => "config.yaml".to_owned(),
        None => "no config.yaml here".to_owned(),
    };
    Config::load(named.as_deref(), &|name| std::env::var(name).ok())
        .map(|config| (config, origin))
        .map_err(|error| error.to_string())
}

fn in_runtime(command: Option<Command>, config: Config, origin: &str) -> Exit {
    // One thread: a call passes through a dozen tasks, and each hop to another thread would cost it
    // more than its work. What takes long is handed to blocking threads.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .thread_name("ptc-mcp")
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::complain(&format!("cannot start: {error}"));
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(async {
        match command {
            None | Some(Command::Serve) => commands::serve(config).await,
            Some(Command::Run { file, json, stats }) => {
                commands::run(config, &file, json, stats).await
            }
            Some(Command::Tools { json }) => commands::tools(config, json).await,
            Some(Command::Inspect { name }) => commands::inspect(config, &name).await,
            Some(Command::Check) => commands::check(&config, origin).await,
            Some(Command::Doctor { json }) => doctor::doctor(&config, origin, json).await,
            Some(Command::Schema | Command::Completions { .. }) => Exit::Success,
        }
    });
    // A read of stdin may still block a thread, and cannot be cancelled; everything that has to be
    // in order is in order by now.
    runtime.shutdown_background();
    exit
}

/// Logs go to stderr: stdout is the protocol's when serving, and the command's answer otherwise.
fn start_logging(serving: bool, verbose: u8) -> Option<log::Flush> {
    let own = std::env::var("PTC_MCP_LOG").or_else(|_| std::env::var("RUST_LOG"));
    let filter = match own {
        Ok(filter) if !filter.is_empty() => filter,
        _ => default_filter(serving, verbose).to_owned(),
    };
    let (parsed, mistake) = match EnvFilter::try_new(&filter) {
        Ok(parsed) => (parsed, None),
        Err(error) => (
            EnvFilter::new(default_filter(serving, verbose)),
            Some(error),
        ),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        // They would be told on stderr, by what panics when nobody reads that.
        .log_internal_errors(false)
        .with_ansi(terminal::colours(std::io::stderr().is_terminal()))
        .with_target(verbose > 0);
    let mut flush = None;
    // Whoever reads a command's log is watching it.
    if !serving {
        log.without_time().init();
    } else if let Ok((queue, guard)) = log::Log::to(std::io::stderr()) {
        log.with_writer(queue).init();
        flush = Some(guard);
    } else {
        log.init();
    }
    if let Some(mistake) = mistake {
        tracing::warn!("the log filter '{filter}' is not understood: {mistake}");
    }
    flush
}

/// rmcp logs whole messages below `info`, arguments included, so it is raised last and only so far.
/// What the supervisor warns of, a command has in its own answer.
fn default_filter(serving: bool, verbose: u8) -> &'static str {
    match (serving, verbose) {
        (false, 0) => "ptc_mcp=warn,ptc_mcp::supervisor=error,rmcp=off",
        (true, 0) => "ptc_mcp=info,rmcp=error",
        (false, 1) => "ptc_mcp=info,rmcp=error",
        (true, 1) => "ptc_mcp=debug,rmcp=warn",
        (false, 2) => "ptc_mcp=debug,rmcp=warn",
        _ => "ptc_mcp=trace,rmcp=info",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_default_filter_is_understood() {
        for serving in [true, false] {
            for verbose in 0..4 {
                let filter = default_filter(serving, verbose);
                assert!(EnvFilter::try_new(filter).is_ok(), "{filter}");
            }
        }
    }
}
