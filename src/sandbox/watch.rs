//! The limits that the kernel does not hold for a backend: looked at every 100 ms from outside.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};

use crate::config::Execution;

const EVERY: Duration = Duration::from_millis(100);

/// More entries than this in a scratch directory are as good as too many bytes: each costs the file
/// system space that its length does not show, and the look itself must stay short.
const ENTRIES: usize = 4096;

/// What a process may have beyond its limit before it is ended: its stack, and the tables of the
/// memory that it does have.
const SLACK: u64 = if cfg!(target_os = "linux") {
    32 << 20
} else {
    0
};

#[derive(Debug)]
pub(super) struct Watch {
    /// Where the kernel does not bound it.
    scratch: Option<PathBuf>,
    max_scratch_bytes: u64,
    max_memory_bytes: u64,
    pid: Option<i32>,
}

impl Watch {
    pub(super) fn new(execution: &Execution, scratch: Option<&Path>, pid: Option<i32>) -> Self {
        Self {
            scratch: scratch.map(Path::to_owned),
            max_scratch_bytes: execution.max_scratch_bytes,
            max_memory_bytes: execution.max_memory_bytes,
            pid,
        }
    }

    /// Comes back when a limit is exceeded, with the words for it; dropped otherwise.
    pub(super) async fn exceeded(self) -> String {
        let mut looks = tokio::time::interval_at(Instant::now() + EVERY, EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if let Some(bytes) = self.memory().await
                && bytes > self.max_memory_bytes.saturating_add(SLACK)
            {
                return format!(
                    "the program uses {bytes} bytes of memory, more than execution.max_memory_bytes={}",
                    self.max_memory_bytes
                );
            }
            // After memory, since a program can make this look take long.
            if let Some(exceeded) = self.scratch().await {
                return exceeded;
            }
        }
    }

    async fn scratch(&self) -> Option<String> {
        let (scratch, limit, pid) = (self.scratch.clone()?, self.max_scratch_bytes, self.pid);
        let used = tokio::task::spawn_blocking(move || match usage(&scratch, limit) {
            Usage::Bytes(bytes) => Usage::Bytes(bytes.saturating_add(nameless(pid))),
            too_many => too_many,
        });
        match used.await {
            Ok(Usage::Bytes(bytes)) if bytes > limit => Some(format!(
                "the program's files take {bytes} bytes, more than execution.max_scratch_bytes={limit}"
            )),
            Ok(Usage::TooManyEntries) => Some(format!(
                "the scratch directory holds more than {ENTRIES} files"
            )),
            Ok(Usage::Hidden) => Some(
                "the scratch directory holds a folder that cannot be looked into (no permission, or a \
                 path that is too long), so that execution.max_scratch_bytes cannot be held"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// The kernel holds this limit for private memory (`RLIMIT_DATA`), but not for shared mappings,
    /// nor for the tables that it keeps of mappings strewn over the whole address space. Where the
    /// scratch directory is bounded, so is what of it is mapped, and it is not memory.
    #[cfg(target_os = "linux")]
    async fn memory(&self) -> Option<u64> {
        let shared = self.scratch.is_some();
        let processes = itself_and_its_child(self.pid?).into_iter();
        Some(processes.map(|pid| held_by(pid, shared)).sum())
    }

    #[cfg(not(target_os = "linux"))]
    async fn memory(&self) -> Option<u64> {
        resident(self.pid?).await
    }
}

/// The resident set of a process, by the one tool that every Unix has.
#[cfg(any(test, not(target_os = "linux")))]
async fn resident(pid: i32) -> Option<u64> {
    let output = tokio::process::Command::new("/bin/ps")
        .args(["-o", "rss=", "-p", &pid.to_string()])
        .kill_on_drop(true)
        .output()
        .await
        .ok()?;
    let kibibytes: u64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(target_os = "linux")]
fn held_by(pid: i32, shared: bool) -> u64 {
    let of = |folder: &Path| {
        let status = std::fs::read_to_string(folder.join("status"));
        status.map_or(0, |status| held(&status, shared))
    };
    let process = PathBuf::from(format!("/proc/{pid}"));
    match of(&process) {
        // Nothing is told of a first thread that has ended, whatever the others hold.
        0 => {
            let threads = std::fs::read_dir(process.join("task"));
            let threads = threads.into_iter().flatten().flatten();
            threads.map(|thread| of(&thread.path())).max().unwrap_or(0)
        }
        bytes => bytes,
    }
}

/// What a process takes, out of its `status`: memory of its own, swapped out or not, and its tables;
/// files of the scratch directory that it has mapped only if they count.
#[cfg(target_os = "linux")]
fn held(status: &str, shared: bool) -> u64 {
    let own = ["RssAnon:", "VmSwap:", "VmPTE:"];
    let counted = own.iter().chain(shared.then_some(&"RssShmem:"));
    let kibibytes = counted.filter_map(|name| {
        let size = status.lines().find_map(|line| line.strip_prefix(name))?;
        size.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    kibibytes.sum::<u64>().saturating_mul(1024)
}

/// Bytes of the files that a child holds open or has mapped and that have no name any more (deleted, or
/// never named): no look into the folder finds them.
#[cfg(target_os = "linux")]
fn nameless(pid: Option<i32>) -> u64 {
    let Some(pid) = pid else { return 0 };
    let (mut files, mut mapped) = (std::collections::HashMap::new(), 0u64);
    for pid in itself_and_its_child(pid) {
        for folder in ["fd", "map_files"] {
            let entries = std::fs::read_dir(format!("/proc/{pid}/{folder}"));
            let entries = entries.into_iter().flatten().flatten();
            // Shared memory is a file as well, and counted as what it is.
            let of_disk = |entry: &std::fs::DirEntry| {
                folder == "fd"
                    || std::fs::read_link(entry.path()).is_ok_and(|link| !is_memory(&link))
            };
            let entries = entries.filter(of_disk);
            let found = entries.filter_map(|entry| std::fs::metadata(entry.path()).ok());
            let found = found.filter(|file| file.is_file() && file.nlink() == 0);
            files.extend(found.map(|file| ((file.dev(), file.ino()), file.blocks())));
        }
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"));
        mapped = mapped.saturating_add(maps.map_or(0, |maps| deleted(&maps)));
    }
    // What is mapped is shown by its blocks to root alone; to others by its length. One file can be in
    // both, so that the larger sum is the one to go by.
    mapped.max(files.values().sum::<u64>().saturating_mul(512))
}

/// Whether what the kernel names like this is shared memory.
#[cfg(target_os = "linux")]
fn is_memory(link: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let link = link.as_os_str().as_bytes();
    let names: [&[u8]; 4] = [b"/dev/zero", b"/memfd:", b"/SYSV", b"/dev/shm/"];
    names.iter().any(|name| link.starts_with(name))
}

/// The length of all mappings of files that were deleted, out of a process's `maps`. What only looks
/// like a file is memory.
#[cfg(target_os = "linux")]
fn deleted(maps: &str) -> u64 {
    let lengths = maps.lines().filter_map(|line| {
        let path = &line[line.find('/')?..];
        if !path.ends_with(" (deleted)") || is_memory(Path::new(path)) {
            return None;
        }
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).ok();
        address(to)?.checked_sub(address(from)?)
    });
    lengths.fold(0, u64::saturating_add)
}

/// A process and those that it started: behind a wall, the interpreter is a launcher's child.
#[cfg(target_os = "linux")]
fn itself_and_its_child(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    std::iter::once(pid).chain(children).collect()
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: Option<i32>) -> u64 {
    0
}

#[derive(Debug, PartialEq, Eq)]
enum Usage {
    Bytes(u64),
    TooManyEntries,
    /// There is a folder whose content cannot be counted.
    Hidden,
}

/// Blocks held below a folder, symlinks not followed. Stops as soon as the answer is known.
fn usage(folder: &Path, limit: u64) -> Usage {
    let (mut bytes, mut entries) = (0u64, 0usize);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let listing = match std::fs::read_dir(&folder) {
            Ok(listing) => listing,
            Err(error) if is_hidden(&error) => return Usage::Hidden,
            // What the program removes while we look is not there any more.
            Err(_) => continue,
        };
        for entry in listing.flatten() {
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if is_hidden(&error) => return Usage::Hidden,
                Err(_) => continue,
            };
            entries += 1;
            bytes = bytes.saturating_add(metadata.blocks().saturating_mul(512));
            if entries > ENTRIES {
                return Usage::TooManyEntries;
            }
            if bytes > limit {
                return Usage::Bytes(bytes);
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Usage::Bytes(bytes)
}

fn is_hidden(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidFilename, PermissionDenied};
    matches!(error.kind(), PermissionDenied | InvalidFilename)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_counts_blocks_below_and_does_not_follow_links() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("data"), vec![1u8; 300_000]).unwrap();
        std::os::unix::fs::symlink("/", inner.join("root")).unwrap();
        let Usage::Bytes(bytes) = usage(folder.path(), u64::MAX) else {
            panic!("few entries")
        };
        assert!((300_000..400_000).contains(&bytes), "{bytes}");
        assert!(matches!(usage(folder.path(), 1000), Usage::Bytes(bytes) if bytes > 1000));
    }

    // contract: B6
    #[test]
    fn what_cannot_be_looked_into_is_not_taken_for_empty() {
        let folder = tempfile::tempdir().unwrap();
        let top = rustix::fs::open(
            folder.path(),
            rustix::fs::OFlags::DIRECTORY,
            rustix::fs::Mode::empty(),
        );
        let mut inner = top.unwrap();
        let long = "n".repeat(200);
        // Longer in all than a path may be.
        for _ in 0..30 {
            rustix::fs::mkdirat(&inner, &*long, rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY;
            inner = rustix::fs::openat(&inner, &*long, flags, rustix::fs::Mode::empty()).unwrap();
        }
        assert_eq!(usage(folder.path(), u64::MAX), Usage::Hidden);
        crate::scratch::remove(folder.path()).unwrap();
        assert!(!folder.path().exists());

        for error in [rustix::io::Errno::ACCESS, rustix::io::Errno::NAMETOOLONG] {
            assert!(is_hidden(&error.into()), "{error}");
        }
        assert!(!is_hidden(&rustix::io::Errno::NOENT.into()));
    }

    #[test]
    fn very_many_files_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..=ENTRIES {
            std::fs::File::create(folder.path().join(i.to_string())).unwrap();
        }
        assert_eq!(usage(folder.path(), u64::MAX), Usage::TooManyEntries);
    }

    // contract: B6
    #[cfg(target_os = "linux")]
    #[test]
    fn tables_and_shared_memory_count_and_mapped_files_do_not() {
        let status = "VmRSS:\t  900 kB\nRssAnon:\t     100 kB\nRssFile:\t 780 kB\n\
                      RssShmem:\t      20 kB\nVmPTE:\t 4 kB\nVmSwap:\t 1 kB\n";
        assert_eq!(held(status, true), 125 * 1024);
        assert_eq!(held(status, false), 105 * 1024);
        assert_eq!(held("RssAnon: many\n", true), 0);
    }

    // contract: B6
    #[cfg(target_os = "linux")]
    #[test]
    fn deleted_files_that_are_held_open_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, vec![1u8; 4_000_000]).unwrap();
        let held = std::fs::File::open(&path).unwrap();
        let again = held.try_clone().unwrap();
        let me = i32::try_from(std::process::id()).ok();
        let named = nameless(me);
        std::fs::remove_file(&path).unwrap();
        let deleted = nameless(me);
        drop((held, again));
        // Other tests of this process may hold small files of their own.
        assert!(
            (3_500_000..5_000_000).contains(&deleted.abs_diff(named)),
            "{named} {deleted}"
        );
    }

    // contract: B6
    #[cfg(target_os = "linux")]
    #[test]
    fn shared_memory_is_no_file() {
        for (link, memory) in [
            ("/dev/zero (deleted)", true),
            ("/SYSV00000000 (deleted)", true),
            ("/memfd:x (deleted)", true),
            ("/tmp/ptc-mcp-x/f (deleted)", false),
        ] {
            assert_eq!(is_memory(Path::new(link)), memory, "{link}");
        }
    }

    // contract: B6
    #[cfg(target_os = "linux")]
    #[test]
    fn mappings_of_deleted_files_are_told_from_memory() {
        let maps = "55d0-55d8 r-xp 0 08:01 7    /usr/bin/python3\n\
                    7f00-7f10 rw-s 0 08:01 9    /tmp/ptc mcp/f (deleted)\n\
                    7f10-7f13 rw-s 0 08:01 10   /tmp/g (deleted)\n\
                    8f00-9f00 rw-s 0 00:01 1    /dev/zero (deleted)\n\
                    af00-bf00 rw-s 0 00:01 2    /memfd:x (deleted)\n\
                    7ffd-7fff rw-p 0 00:00 0    [stack]\n";
        assert_eq!(deleted(maps), 0x13);
    }

    // contract: B6
    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_whose_first_thread_has_ended_is_still_looked_at() {
        use std::io::Read;
        // The first thread ends by itself alone; the second one waits for the end of the input.
        let program = "import ctypes, os, sys, threading\n\
                       kept = bytearray(32 << 20)\n\
                       def second():\n    os.write(1, b'x')\n    os.read(0, 1)\n    os._exit(0)\n\
                       threading.Thread(target=second).start()\n\
                       number = {'x86_64': 60, 'aarch64': 93}[os.uname().machine]\n\
                       ctypes.CDLL(None).syscall(number, 0)\n";
        let mut child = std::process::Command::new("python3")
            .args(["-I", "-S", "-c", program])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let has_ended = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.rsplit(')')
                .next()
                .unwrap()
                .trim_start()
                .starts_with('Z')
        };
        while !has_ended() {
            std::thread::yield_now();
        }
        assert!(held_by(pid, false) > 32 << 20);
        drop(child.stdin.take());
        assert!(child.wait().is_ok());
    }

    #[tokio::test]
    async fn the_resident_set_of_this_process_is_some_megabytes() {
        let bytes = resident(std::process::id() as i32)
            .await
            .expect("ps answers");
        assert!((1 << 20..1 << 34).contains(&bytes), "{bytes}");
    }
}
