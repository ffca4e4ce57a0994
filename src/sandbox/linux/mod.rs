//! Linux's own walls: `namespaces`, and `chroot` where root cannot have those.
//!
//! The server makes a `plan::Plan` and executes its own binary as a launcher with it; everything
//! that follows happens in the launcher's two processes. A launcher per child rather than one
//! long-lived helper: it is started with nothing but its arguments and ends with its child, so
//! there is no protocol, no state and no second way to die; what its start costs, a pool of ready
//! children hides.

pub(in crate::sandbox) mod bytecode;
mod calls;
mod child;
mod chroot;
mod landlock;
mod launch;
pub(in crate::sandbox) mod layout;
pub(in crate::sandbox) mod plan;
pub(in crate::sandbox) mod refusal;
mod root;
mod seccomp;
mod sys;

use std::sync::Arc;

use crate::scratch::Scratch;
use tokio::process::Command;

use super::interpreter::Interpreter;
use chroot::Copy;
use plan::{BYTECODE, Failure, Layout, Limits, Named, Plan, Wall};

pub use launch::{ARGUMENT, main};

/// What programs open by habit. Not `/dev/zero`: mapped shared, it is memory that no limit counts.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/urandom", "/dev/random"];

/// Our own binary, also after it was replaced or removed on disk.
const OWN_BINARY: &str = "/proc/self/exe";

/// Keeps what our own client left open from a program.
pub(super) fn close_inherited() {
    // An old kernel cannot; there the walls refuse, and `none` promises nothing.
    let _ = sys::close_on_exec_from(3);
}

/// One of the two walls around one interpreter, ready for children.
#[derive(Debug, Clone)]
pub(super) struct Site {
    layout: Layout,
    /// The copy that a `chroot` child lives in; `None` for namespaces.
    copy: Option<Arc<Copy>>,
}

impl Site {
    pub(super) fn namespaces(layout: Layout) -> Self {
        Self { layout, copy: None }
    }

    /// Copies the interpreter, if that was not done before: not for a runtime's thread.
    pub(super) fn chroot(layout: Layout) -> Result<Self, Failure> {
        let copy = Some(Arc::new(Copy::of(&layout)?));
        Ok(Self { layout, copy })
    }

    /// The launcher of one child, and the scratch directory where that is not the launcher's.
    pub(super) fn launcher(
        &self,
        interpreter: &Interpreter,
        arguments: &[&str],
        limits: Limits,
        report: bool,
    ) -> Result<(Command, Option<Scratch>), Failure> {
        let (wall, scratch) = match &self.copy {
            None => (Wall::Namespaces, None),
            Some(copy) => {
                let root = &copy.root;
                let (scratch, id) = chroot::scratch(root).step_on("scratch directory in", root)?;
                let path = scratch.path().to_owned();
                (
                    Wall::Chroot {
                        root: root.clone(),
                        id,
                        scratch: path,
                    },
                    Some(scratch),
                )
            }
        };
        let executable = interpreter.executable.to_string_lossy().into_owned();
        let plan = Plan {
            wall,
            limits,
            layout: self.layout.clone(),
            command: self.command(executable, arguments),
            report,
        };
        let plan = serde_json::to_string(&plan)
            .map_err(std::io::Error::other)
            .step("plan")?;
        let mut command = Command::new(OWN_BINARY);
        command.env_clear().arg0("ptc-mcp").arg(ARGUMENT).arg(plan);
        Ok((command, scratch))
    }

    fn command(&self, executable: String, arguments: &[&str]) -> Vec<String> {
        let mut command = vec![executable];
        if self.layout.bytecode.is_some() {
            command.extend(["-X".to_owned(), format!("pycache_prefix={BYTECODE}")]);
        }
        command.extend(arguments.iter().map(ToString::to_string));
        command
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether the kernel bounds the scratch directory.
    pub(super) fn bounds_scratch(&self) -> bool {
        self.copy.is_none()
    }
}
