//! Refusals that do not depend on the platform's own walls.

use crate::config::SandboxMode;

/// Ends every refusal.
pub(super) const STILL: &str =
    "Programs do not run until then; listing and inspecting tools still work.";

/// The way that is always there, and what it costs.
pub(super) const NONE: &str = "execution.sandbox: none runs programs without a wall: for programs \
                               that you would run yourself";

/// The sandbox was built, and is not to be trusted or does not work.
pub(super) fn broken(mode: SandboxMode, what: &str) -> String {
    let mode = mode.as_str();
    format!("sandbox '{mode}' is not available here: the self-test {what}.\n  or: {NONE}\n{STILL}")
}

/// A backend of another platform.
pub(super) fn elsewhere(mode: SandboxMode, platform: &str) -> String {
    let platform = if platform == "macos" {
        "macOS"
    } else {
        "Linux"
    };
    format!(
        "execution.sandbox: {} needs {platform}.\n  fix: leave the key out, or write 'auto': this \
         platform's own\n  or: 'none' runs programs with their limits but without a wall, for \
         programs that you trust as your own\n{STILL}",
        mode.as_str()
    )
}

#[cfg(not(target_os = "linux"))]
pub(super) fn not_built(mode: SandboxMode) -> String {
    format!(
        "sandbox '{}' is not available on this platform. {STILL}",
        mode.as_str()
    )
}
