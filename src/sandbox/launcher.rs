//! The life of a child between our own binary, executed again, and Python.
//!
//! A fresh process with one thread can prepare itself with ordinary safe code before it becomes
//! the interpreter: limits hold before Python's first instruction, and the threaded server never
//! runs code between fork and exec. No Tokio, no configuration file and no logging in here.

#![expect(
    clippy::disallowed_methods,
    reason = "one of the places where processes are spawned"
)]

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, setrlimit};

/// The first argument by which `main` recognises a launcher.
pub const ARGUMENT: &str = "__launch";

/// What the launcher is asked to hold, passed as arguments: its environment is the program's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The server; when it is no longer the parent, the child has no reason to start.
    pub parent: u32,
    pub cpu_seconds: u64,
    pub data_bytes: u64,
    pub file_bytes: u64,
    pub open_files: u64,
}

impl Limits {
    pub fn to_arguments(&self) -> Vec<OsString> {
        [
            u64::from(self.parent),
            self.cpu_seconds,
            self.data_bytes,
            self.file_bytes,
            self.open_files,
        ]
        .iter()
        .map(|number| number.to_string().into())
        .collect()
    }

    fn parse(arguments: &[OsString]) -> Option<(Self, &[OsString])> {
        let (numbers, command) = arguments.split_at_checked(5)?;
        let mut numbers = numbers
            .iter()
            .map(|number| number.to_str()?.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let limits = Self {
            parent: next()?.try_into().ok()?,
            cpu_seconds: next()?,
            data_bytes: next()?,
            file_bytes: next()?,
            open_files: next()?,
        };
        (!command.is_empty()).then_some((limits, command))
    }
}

/// Prepares this process and becomes the command. Comes back only on failure, told on stderr, which
/// the server reads until the child's half stands.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let Some((limits, command)) = Limits::parse(&arguments) else {
        return fail(&format!("'{ARGUMENT}' is for ptc-mcp's own use"));
    };
    if let Err((step, error)) = hold(&limits) {
        return fail(&format!("{step}: {error}"));
    }
    let (program, arguments) = command.split_first().expect("parse leaves a command");
    // The environment is already the child's own: the server gave this process nothing else.
    let error = Command::new(program).args(arguments).exec();
    fail(&format!("exec {}: {error}", program.display()))
}

fn hold(limits: &Limits) -> Result<(), (&'static str, rustix::io::Errno)> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        super::linux::close_inherited();
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|e| ("parent-death signal", e))?;
        // The server may have died before the signal was asked for.
        if getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()) != Some(limits.parent) {
            return Err(("parent", rustix::io::Errno::SRCH));
        }
    }
    #[cfg(not(target_os = "linux"))]
    super::seatbelt::close_inherited().map_err(|e| ("close inherited descriptors", e))?;
    let set = |resource, value: u64| {
        setrlimit(
            resource,
            Rlimit {
                current: Some(value),
                maximum: Some(value),
            },
        )
    };
    set(Resource::Core, 0).map_err(|e| ("limit of core files", e))?;
    set(Resource::Cpu, limits.cpu_seconds).map_err(|e| ("limit of CPU time", e))?;
    set(Resource::Fsize, limits.file_bytes).map_err(|e| ("limit of file size", e))?;
    set(Resource::Nofile, limits.open_files).map_err(|e| ("limit of open files", e))?;
    // Elsewhere the kernel accepts this limit and does not hold it; the server looks instead.
    #[cfg(target_os = "linux")]
    set(Resource::Data, limits.data_bytes).map_err(|e| ("limit of memory", e))?;
    Ok(())
}

fn fail(reason: &str) -> ExitCode {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "launcher: {reason}");
    ExitCode::from(127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_survive_the_way_through_arguments() {
        let limits = Limits {
            parent: 12,
            cpu_seconds: 121,
            data_bytes: 1 << 29,
            file_bytes: 1 << 26,
            open_files: 256,
        };
        let mut arguments = limits.to_arguments();
        arguments.push("python".into());
        arguments.push("-I".into());
        let (parsed, command) = Limits::parse(&arguments).unwrap();
        assert_eq!(parsed, limits);
        assert_eq!(command, ["python", "-I"]);
    }

    #[test]
    fn a_call_by_hand_is_refused() {
        for arguments in [
            &[][..],
            &["1", "2"],
            &["1", "2", "3", "4", "5"],
            &["a", "2", "3", "4", "5", "x"],
        ] {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(Limits::parse(&arguments), None, "{arguments:?}");
        }
    }
}
