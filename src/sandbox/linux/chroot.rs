//! The smaller wall for root in a container that allows no namespaces: a copy of the interpreter's
//! files, a change of root, and a user that no other program has.
//!
//! The copy is made once and kept, since it depends on nothing but the interpreter. It is a copy
//! and no set of hard links: its owner and modes are ours, and the host's files stay untouched.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::plan::{BYTECODE, Failure, Layout, Named, SCRATCH};
use crate::scratch::{self, Scratch};

/// The users that programs may get, which systemd sets apart for services without a user of their
/// own. All below 65536, so that a container's own map has them.
const USERS: std::ops::RangeInclusive<u32> = 61184..=65519;

/// Where the copy may lie, in order.
const PLACES: [&str; 2] = ["/var/cache/ptc-mcp", "/var/tmp/ptc-mcp"];

/// Folders of a standard library that no program needs, and that make up half of it.
const NOT_COPIED: [&str; 8] = [
    "site-packages",
    "dist-packages",
    "test",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
];

/// Changes the root of this process. Comes back with the scratch directory's name inside.
pub(super) fn enter(root: &Path, scratch: &Path) -> Result<String, Failure> {
    let inside = scratch.strip_prefix(root).ok().and_then(Path::to_str);
    let inside = inside
        .ok_or(rustix::io::Errno::INVAL)
        .step_on("scratch directory", scratch)?;
    rustix::process::chroot(root).step_on("chroot", root)?;
    rustix::process::chdir("/").step("enter the root")?;
    Ok(format!("/{inside}"))
}

/// A root with everything that a layout names, locked against removal as long as it is held.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) root: PathBuf,
    _lock: File,
}

impl Copy {
    /// Makes it now, or finds it as it was made before.
    pub(super) fn of(layout: &Layout) -> Result<Self, Failure> {
        let name = format!("root-{:016x}", layout.fingerprint());
        let [first, second] = PLACES.map(Path::new);
        Self::in_place(first, &name, layout)
            .or_else(|_| Self::in_place(second, &name, layout))
            .step_on("copy the interpreter to", second)
    }

    fn in_place(place: &Path, name: &str, layout: &Layout) -> io::Result<Self> {
        super::bytecode::own_folder(place)?;
        let root = place.join(name);
        if !root.is_dir() {
            let building = tempfile::Builder::new().prefix("new-").tempdir_in(place)?;
            std::fs::set_permissions(building.path(), PermissionsExt::from_mode(0o755))?;
            build(building.path(), layout)?;
            // Should another server have been faster, ours is removed.
            if std::fs::rename(building.path(), &root).is_ok() {
                let _ = building.keep();
            }
        }
        let lock = File::open(&root)?;
        lock.lock_shared()?;
        lock.set_modified(SystemTime::now())?;
        sweep(&root);
        remove_old(place);
        Ok(Self { root, _lock: lock })
    }
}

/// Removes what nobody has used for a month and nobody uses now.
fn remove_old(place: &Path) {
    const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let used = entry.metadata().and_then(|found| found.modified());
        let is_old = used.is_ok_and(|used| used.elapsed().is_ok_and(|since| since > MONTH));
        // Locked until it is gone: another server may just be about to use it.
        if is_old
            && let Ok(root) = File::open(entry.path())
            && root.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Between being made and being locked, a scratch directory looks like one that was left behind.
const NEW: Duration = Duration::from_secs(60);

/// Removes scratch directories whose server and launcher were both killed.
fn sweep(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root.join("scratch")) else {
        return;
    };
    for entry in entries.flatten() {
        let changed = entry.metadata().and_then(|found| found.modified());
        if changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|since| since > NEW))
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            let _ = scratch::remove(&entry.path());
        }
    }
}

/// A scratch directory for one program, and its owner.
pub(super) fn scratch(root: &Path) -> io::Result<(Scratch, u32)> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(u32::MAX);
    let users = USERS.end() - USERS.start() + 1;
    let start = fastrand::u32(..users);
    let _ = NEXT.compare_exchange(u32::MAX, start, Ordering::Relaxed, Ordering::Relaxed);
    let id = USERS.start() + NEXT.fetch_add(1, Ordering::Relaxed) % users;
    let scratch = tempfile::tempdir_in(root.join("scratch"))?;
    chown(scratch.path(), Some(id), Some(id))?;
    Ok((Scratch::new(scratch)?, id))
}

fn build(root: &Path, layout: &Layout) -> io::Result<()> {
    let inside = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    for folder in &layout.folders {
        copy_folder(folder, &inside(folder))?;
    }
    for file in &layout.files {
        let target = inside(file);
        make_parent(&target)?;
        copy_file(file, &target)?;
    }
    for (link, text) in &layout.links {
        let link = inside(link);
        make_parent(&link)?;
        symlink(text, link)?;
    }
    if let Some(bytecode) = &layout.bytecode {
        copy_folder(bytecode, &inside(Path::new(BYTECODE)))?;
    }
    make_folder(&inside(Path::new("/dev")))?;
    for (path, minor) in [("/dev/null", 3), ("/dev/random", 8), ("/dev/urandom", 9)] {
        let path = inside(Path::new(path));
        mknodat(
            CWD,
            &path,
            FileType::CharacterDevice,
            Mode::empty(),
            makedev(1, minor),
        )?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666))?;
    }
    // Each program's own folder lies in here, under a name that cannot be listed.
    let scratch = inside(Path::new(SCRATCH));
    make_folder(&scratch)?;
    std::fs::set_permissions(&scratch, PermissionsExt::from_mode(0o711))
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), make_folder)
}

fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    make_parent(path)?;
    std::fs::create_dir(path)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755))
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let executable = from.metadata()?.mode() & 0o111 != 0;
    std::fs::copy(from, to)?;
    let mode = if executable { 0o555 } else { 0o444 };
    std::fs::set_permissions(to, PermissionsExt::from_mode(mode))?;
    // Bytecode is good only for the time of its source.
    let modified = from.metadata()?.modified()?;
    File::open(to)?.set_modified(modified)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    make_folder(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let target = to.join(&name);
        if kind.is_dir() {
            if NOT_COPIED.iter().any(|left_out| name == *left_out) {
                continue;
            }
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            symlink(std::fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            copy_file(&entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_neither_new_nor_in_use_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let past = SystemTime::now() - Duration::from_secs(40 * 24 * 3600);
        let make = |name: &str, modified| {
            std::fs::create_dir(place.path().join(name)).unwrap();
            let folder = File::open(place.path().join(name)).unwrap();
            folder.set_modified(modified).unwrap();
            folder
        };
        make("new", SystemTime::now());
        make("old", past);
        let used = make("used", past);
        used.lock_shared().unwrap();
        remove_old(place.path());
        let left = ["new", "old", "used"].map(|name| place.path().join(name).exists());
        assert_eq!(left, [true, false, true]);
    }

    #[test]
    fn a_copy_keeps_times_and_leaves_packages_out() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("lib");
        std::fs::create_dir_all(from.join("site-packages/pip")).unwrap();
        std::fs::create_dir_all(from.join("json")).unwrap();
        std::fs::write(from.join("json/decoder.py"), "x").unwrap();
        std::fs::set_permissions(from.join("json"), PermissionsExt::from_mode(0o700)).unwrap();
        symlink("json", from.join("link")).unwrap();
        let to = folder.path().join("root/lib");
        copy_folder(&from, &to).unwrap();
        assert!(!to.join("site-packages").exists());
        let mode = |path: &str| to.join(path).symlink_metadata().unwrap().mode() & 0o777;
        assert_eq!((mode("json"), mode("json/decoder.py")), (0o755, 0o444));
        assert_eq!(
            std::fs::read_link(to.join("link")).unwrap(),
            Path::new("json")
        );
        let time = |path: &Path| path.join("json/decoder.py").metadata().unwrap().mtime();
        assert_eq!(time(&from), time(&to));
    }
}
