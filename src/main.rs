//! The process entry: what must not wait for an argument parser, a runtime or a log.

use std::ffi::OsStr;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The two re-executions of ourselves come first: a launcher has to stay single-threaded for the
    // kernel to give it namespaces, and a watchdog should weigh nothing.
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some("__launch") => ptc_mcp::sandbox::launcher::main(arguments.collect()),
        #[cfg(target_os = "linux")]
        Some(ptc_mcp::sandbox::linux::ARGUMENT) => {
            ptc_mcp::sandbox::linux::main(arguments.collect())
        }
        Some("__watchdog") => ptc_mcp::watchdog::main(),
        _ => ptc_mcp::cli::main(),
    }
}
