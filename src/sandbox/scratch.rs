//! Removing what a program leaves in its scratch directory, even if it does not want that.

use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

/// Removes a scratch directory off the runtime's threads: a program can fill it with many files.
pub(super) async fn close(scratch: TempDir) {
    let removed = tokio::task::spawn_blocking(move || remove(scratch.path())).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!("a scratch directory could not be removed: {error}");
    }
}

/// Removes it with all that is in it. That it is gone already is no error: a launcher removes its
/// child's directory as well, since the server may have been killed.
pub fn remove(folder: &Path) -> io::Result<()> {
    let removed = std::fs::remove_dir_all(folder).or_else(|_| {
        // A program can have taken its own permission to list them away.
        open_up(folder);
        std::fs::remove_dir_all(folder)
    });
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Gives the owner back the right to list and change every folder below.
fn open_up(folder: &Path) {
    #[cfg(target_os = "macos")]
    make_changeable(folder);
    let _ = std::fs::set_permissions(folder, Permissions::from_mode(0o700));
    let Ok(listing) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in listing.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// A program may have made its own files immutable, by flags that nothing in std or rustix changes.
#[cfg(target_os = "macos")]
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
    fn a_directory_is_removed_whatever_was_made_of_it_and_links_are_not_followed() {
        let host = tempfile::tempdir().unwrap();
        let kept = host.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        let scratch = host.path().join("scratch");
        std::fs::create_dir_all(scratch.join("a/b")).unwrap();
        std::fs::write(scratch.join("a/b/data"), "x").unwrap();
        std::os::unix::fs::symlink(&kept, scratch.join("a/link")).unwrap();
        for closed in ["a/b", "a", ""] {
            let permissions = Permissions::from_mode(0o000);
            std::fs::set_permissions(scratch.join(closed), permissions).unwrap();
        }
        remove(&scratch).unwrap();
        assert!(!scratch.exists());
        assert!(kept.exists());
        remove(&scratch).unwrap();
    }
}
