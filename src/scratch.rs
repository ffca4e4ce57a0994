//! A program's scratch directory, and removing what is left in it, even if the program does not want
//! that.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat};
use tempfile::TempDir;

/// How deep a directory may be for us to remove it: that takes a descriptor a level, and many systems
/// give a process 256.
const LEVELS: usize = 64;

/// A scratch directory. It is locked for as long as it is in use, so that one whose server was killed
/// can be told from others.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    pub fn new(folder: TempDir) -> io::Result<Self> {
        let lock = File::open(folder.path())?;
        lock.lock_shared()?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes it, off the runtime's threads: a program can fill it with many files.
    pub async fn close(self) {
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(self.path()) {
            tracing::warn!("a scratch directory could not be removed: {error}");
        }
    }
}

/// Removes it with all that is in it. That it is gone already is no error: a launcher removes its
/// child's directory as well, since the server may have been killed.
pub fn remove(folder: &Path) -> io::Result<()> {
    // First, and not when it has failed: that would take all the descriptors that there are, and a
    // frame of the stack for each, while others need some.
    let _ = make_removable(folder);
    let removed = std::fs::remove_dir_all(folder);
    #[cfg(target_os = "macos")]
    let removed = removed.or_else(|_| {
        make_changeable(folder);
        let _ = make_removable(folder);
        std::fs::remove_dir_all(folder)
    });
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Gives the owner back the right to list and change every folder below, and brings those that lie
/// deep up to the top. Links are not followed.
fn make_removable(folder: &Path) -> io::Result<()> {
    let top = open(CWD, &CString::new(folder.as_os_str().as_encoded_bytes())?)?;
    let mut deep = Deep {
        top: top.as_fd(),
        moved: Vec::new(),
        number: 0,
    };
    deep.walk(top.as_fd(), 0)?;
    while let Some(name) = deep.moved.pop() {
        let folder = open(top.as_fd(), &name)?;
        deep.walk(folder.as_fd(), 1)?;
    }
    Ok(())
}

/// Opens a folder, whatever its owner may do with it.
fn open(parent: impl AsFd, name: &CString) -> io::Result<OwnedFd> {
    let parent = parent.as_fd();
    let _ = chmodat(parent, name, Mode::RWXU, AtFlags::empty());
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

struct Deep<'a> {
    top: BorrowedFd<'a>,
    /// What was brought up and is still to be walked through.
    moved: Vec<CString>,
    number: usize,
}

impl Deep<'_> {
    fn walk(&mut self, folder: BorrowedFd<'_>, level: usize) -> io::Result<()> {
        let mut folders = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type() == FileType::Directory && name != c"." && name != c".." {
                folders.push(name.to_owned());
            }
        }
        for name in folders {
            if level < LEVELS {
                let inner = open(folder, &name)?;
                self.walk(inner.as_fd(), level + 1)?;
            } else {
                // Its parent entry changes with its place, for which it must be open to us.
                let _ = chmodat(folder, &name, Mode::RWXU, AtFlags::empty());
                let new = self.unused_name();
                renameat(folder, &name, self.top, &new)?;
                self.moved.push(new);
            }
        }
        Ok(())
    }

    fn unused_name(&mut self) -> CString {
        loop {
            self.number += 1;
            let name = format!("deep-{}", self.number);
            let name = CString::new(name).expect("no NUL in it");
            if rustix::fs::statat(self.top, &name, AtFlags::SYMLINK_NOFOLLOW).is_err() {
                return name;
            }
        }
    }
}

/// A program may have made its own files immutable, by flags that nothing in std or rustix changes.
#[cfg(target_os = "macos")]
#[expect(
    clippy::disallowed_methods,
    reason = "the system's own tool, which ends at once"
)]
fn make_changeable(folder: &Path) {
    let _ = std::process::Command::new("/usr/bin/chflags")
        .args(["-R", "-P", "nouchg,nouappnd"])
        .arg(folder)
        .env_clear()
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: P10
    #[test]
    fn a_directory_is_removed_however_deep_it_is() {
        let host = tempfile::tempdir().unwrap();
        let scratch = host.path().join("scratch");
        std::fs::create_dir_all(scratch.join("deep-1")).unwrap();
        let mut inner = open(CWD, &CString::new(scratch.to_str().unwrap()).unwrap()).unwrap();
        // More than one process may have descriptors.
        for _ in 0..5000 {
            rustix::fs::mkdirat(&inner, "d", Mode::RWXU).unwrap();
            inner = open(&inner, &c"d".to_owned()).unwrap();
        }
        drop(inner);
        make_removable(&scratch).unwrap();
        assert!(depth(&scratch) <= LEVELS + 1);
        remove(&scratch).unwrap();
        assert!(!scratch.exists());
    }

    fn depth(folder: &Path) -> usize {
        let inner = std::fs::read_dir(folder).unwrap().flatten();
        inner
            .map(|entry| 1 + depth(&entry.path()))
            .max()
            .unwrap_or(0)
    }

    // contract: P10
    #[test]
    fn a_directory_is_removed_whatever_was_made_of_it_and_links_are_not_followed() {
        let host = tempfile::tempdir().unwrap();
        let kept = host.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        let scratch = host.path().join("scratch");
        std::fs::create_dir_all(scratch.join("a/b")).unwrap();
        std::fs::write(scratch.join("a/b/data"), "x").unwrap();
        std::os::unix::fs::symlink(&kept, scratch.join("a/link")).unwrap();
        for closed in ["a/b", "a", ""] {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o000);
            std::fs::set_permissions(scratch.join(closed), permissions).unwrap();
        }
        remove(&scratch).unwrap();
        assert!(!scratch.exists());
        assert!(kept.exists());
        remove(&scratch).unwrap();
    }
}
