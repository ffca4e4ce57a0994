//! How much a pipe holds.

use std::os::fd::AsFd;

/// Sixteen times what a pipe holds by default, and what Linux lets an ordinary user ask for.
#[cfg(target_os = "linux")]
const WIDE: usize = 1024 * 1024;

/// Lets a pipe hold more, where that can be asked for: megabytes then pass in a few steps, each of
/// which wakes somebody, and not in hundreds. It is as good a pipe without.
pub fn widen(pipe: impl AsFd) {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, WIDE);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}
