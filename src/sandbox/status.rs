//! What an examination of the sandbox finds: plain data, for `ptc-mcp doctor` and for the log.

use serde::Serialize;

use super::interpreter::Interpreter;
use crate::config::SandboxMode;

/// Everything about the sandbox on this machine, under this configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Examination {
    pub platform: String,
    pub kernel: String,
    pub interpreter: Option<Interpreter>,
    /// As configured: `auto` says nothing about what it became.
    pub mode: &'static str,
    /// What programs run behind.
    pub backend: Option<&'static str>,
    /// What a person should know about that choice.
    pub why: Option<String>,
    pub layers: Vec<Layer>,
    pub attacks: Vec<Attack>,
    /// Why programs do not run.
    pub refusal: Option<String>,
}

/// One thing that holds a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layer {
    pub name: &'static str,
    pub enforced: bool,
    /// What it enforces, or why it does not.
    pub what: String,
}

/// One attempt of the self-test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attack {
    pub name: &'static str,
    pub stopped: bool,
    /// The layer that stopped it.
    pub by: &'static str,
    /// What the attempt ended with.
    pub how: String,
}

impl Examination {
    pub(super) fn of(mode: SandboxMode) -> Self {
        let system = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Self {
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            kernel: format!("{} {}", text(system.sysname()), text(system.release())),
            interpreter: None,
            mode: mode.as_str(),
            backend: None,
            why: None,
            layers: Vec::new(),
            attacks: Vec::new(),
            refusal: None,
        }
    }

    /// Whether programs run.
    pub fn ready(&self) -> bool {
        self.refusal.is_none()
    }
}

/// The layers of `sandbox: none`.
pub(super) fn without_a_wall() -> Vec<Layer> {
    vec![
        Layer {
            name: "operating system",
            enforced: false,
            what: "nothing: a program may do whatever this user may (execution.sandbox: none)"
                .to_owned(),
        },
        Layer {
            name: "limits",
            enforced: true,
            what: "CPU time, memory, file size, open files, scratch size, wall clock".to_owned(),
        },
        Layer {
            name: "environment",
            enforced: true,
            what: "empty: no variable of the server's".to_owned(),
        },
    ]
}
