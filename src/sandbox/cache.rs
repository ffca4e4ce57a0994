//! What was found out about an interpreter, kept from one start of the server to the next.
//!
//! The folder is the user's own and private; what is read from it was written by this user's
//! ptc-mcp. A convenience: whatever fails, things are found out again.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// What nobody has written again for this long is about files that are no more.
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

/// One file as it was seen: replaced or changed, it is another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Seen {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Seen {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        Some(Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }
}

/// What an entry holds for: this binary, this kernel, this user, and what the entry adds.
#[derive(Debug, Serialize)]
struct Key<'a, K> {
    binary: Seen,
    kernel: String,
    user: u32,
    about: &'a K,
}

fn key(about: &impl Serialize) -> Option<String> {
    let system = rustix::system::uname();
    let key = Key {
        binary: Seen::of(&std::env::current_exe().ok()?)?,
        kernel: system.release().to_string_lossy().into_owned(),
        user: rustix::process::geteuid().as_raw(),
        about,
    };
    serde_json::to_string(&key).ok()
}

/// What was kept under this name about `about`.
pub(super) fn read<T: DeserializeOwned>(name: &str, about: &impl Serialize) -> Option<T> {
    let key = key(about)?;
    let kept = std::fs::read(path(&folder().ok()?, name, &key)).ok()?;
    let (of, value): (String, T) = serde_json::from_slice(&kept).ok()?;
    (of == key).then_some(value)
}

pub(super) fn write(name: &str, about: &impl Serialize, value: &impl Serialize) {
    let written = key(about).ok_or_else(|| io::Error::other("no key"));
    let written = written.and_then(|key| write_to(&folder()?, name, &key, value));
    if let Err(error) = written {
        tracing::debug!("nothing can be kept for the next start: {error}");
    }
}

fn write_to(folder: &Path, name: &str, key: &str, value: &impl Serialize) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(&(key, value))?)?;
    file.persist(path(folder, name, key))?;
    for entry in std::fs::read_dir(folder)?.flatten() {
        let written = entry.metadata().and_then(|found| found.modified());
        let is_old = written.is_ok_and(|then| then.elapsed().is_ok_and(|since| since > MONTH));
        if is_old && entry.path().extension().is_some_and(|kind| kind == "json") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

pub(super) fn forget(name: &str, about: &impl Serialize) {
    if let (Some(key), Ok(folder)) = (key(about), folder()) {
        let _ = std::fs::remove_file(path(&folder, name, &key));
    }
}

fn path(folder: &Path, name: &str, key: &str) -> PathBuf {
    let hash = Sha256::digest(key);
    let hash: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("{name}-{hash}.json"))
}

/// `$XDG_CACHE_HOME/ptc-mcp`, `~/.cache/ptc-mcp`, on macOS `~/Library/Caches/ptc-mcp`: made if need
/// be, this user's, and closed to everybody else.
pub(super) fn folder() -> io::Result<PathBuf> {
    let below_home = if cfg!(target_os = "macos") {
        "Library/Caches"
    } else {
        ".cache"
    };
    let folder = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|cache| cache.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(below_home)))
        .filter(|cache| cache.is_absolute())
        .ok_or_else(|| io::Error::other("neither XDG_CACHE_HOME nor HOME names a folder"))?
        .join("ptc-mcp");
    private(&folder)?;
    Ok(folder)
}

fn private(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let found = folder.symlink_metadata()?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("'{}' is not a folder of this user's", folder.display()),
        ));
    }
    if found.mode() & 0o022 != 0 {
        // Who knows what they have put there.
        let text = format!("'{}' can be changed by others", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    if found.mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_see_is_closed_and_one_that_they_can_change_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/ptc-mcp");
        private(&folder).unwrap();
        let mode = || folder.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(), 0o700);
        let set = |mode| std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        set(0o755);
        private(&folder).unwrap();
        assert_eq!(mode(), 0o700);
        for open in [0o720, 0o702] {
            set(open);
            let refused = private(&folder).unwrap_err().to_string();
            assert!(refused.contains("can be changed by others"), "{refused}");
        }
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let refused = private(&link).unwrap_err().to_string();
        assert!(
            refused.contains("is not a folder of this user's"),
            "{refused}"
        );
    }

    #[test]
    fn a_file_that_was_changed_is_another() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let before = Seen::of(file.path());
        assert!(before.is_some());
        assert_eq!(Seen::of(file.path()), before);
        std::fs::write(file.path(), "x").unwrap();
        assert_ne!(Seen::of(file.path()), before);
    }

    #[test]
    fn an_entry_is_good_for_its_own_key_only() {
        let folder = tempfile::tempdir().unwrap();
        write_to(folder.path(), "proof", "one", &7).unwrap();
        let kept = std::fs::read(path(folder.path(), "proof", "one")).unwrap();
        assert_eq!(kept, br#"["one",7]"#);
        assert_ne!(
            path(folder.path(), "proof", "one"),
            path(folder.path(), "proof", "other")
        );
    }
}
