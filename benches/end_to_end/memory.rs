//! What processes hold of memory, as Linux tells it.

use std::fs;

/// One process or several, in bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Held {
    /// Pages that are there, those shared with others as well.
    pub(crate) resident: u64,
    /// The same, of shared pages its share.
    pub(crate) proportional: u64,
}

/// A process and all that descend from it, but for those that `left_out` names.
pub(crate) fn tree(root: u32, left_out: &dyn Fn(&str) -> bool) -> Vec<u32> {
    let processes: Vec<u32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(&parent) = tree.get(at) {
        let children = processes.iter().filter(|&&process| {
            status(process, "PPid") == Some(parent.into()) && !left_out(&command(process))
        });
        tree.extend(children);
        at += 1;
    }
    tree
}

pub(crate) fn held(processes: &[u32]) -> Held {
    processes
        .iter()
        .fold(Held::default(), |held, &process| Held {
            resident: held.resident + resident(process),
            proportional: held.proportional + proportional(process),
        })
}

pub(crate) fn resident(process: u32) -> u64 {
    status(process, "VmRSS").unwrap_or(0) * 1024
}

/// The most that was resident since [`forget_peak`].
pub(crate) fn peak(process: u32) -> u64 {
    status(process, "VmHWM").unwrap_or(0) * 1024
}

pub(crate) fn forget_peak(process: u32) {
    fs::write(format!("/proc/{process}/clear_refs"), "5").expect("the process is ours");
}

/// Whether the process is an interpreter.
pub(crate) fn is_python(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.starts_with("python"))
}

fn command(process: u32) -> String {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

fn status(process: u32, field: &str) -> Option<u64> {
    number_after(
        &fs::read_to_string(format!("/proc/{process}/status")).ok()?,
        field,
    )
}

fn proportional(process: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    number_after(&rollup, "Pss").unwrap_or(0) * 1024
}

fn number_after(text: &str, field: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}
