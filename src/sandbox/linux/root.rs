//! A root file system of its own for the namespaces' child: what the layout names, read-only, and a
//! private scratch directory. Nothing else of the host has a name in it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};

use super::plan::{BYTECODE, Failure, Layout, Named, SCRATCH};
use super::sys::add_mount_attributes;

/// Bounds of the skeleton: folders, links and mount points, no contents.
const SKELETON_BYTES: u64 = 1 << 20;
const SKELETON_ENTRIES: u64 = 4000;

/// Files and folders in the scratch directory at most; each costs kernel memory.
pub(super) const SCRATCH_ENTRIES: u64 = 4096;

/// What is shown instead of a hidden folder.
const EMPTY: &str = "/empty";

const READ_ONLY: u64 = 0x1;
const NO_SUID: u64 = 0x2;
const NO_DEVICES: u64 = 0x4;
const NO_EXEC: u64 = 0x8;

/// A mount that is not attached yet, and where it is to be.
pub(super) struct Source {
    mount: OwnedFd,
    target: PathBuf,
    folder: bool,
}

/// Takes hold of everything on the host that the layout names. Changes nothing on the host: these
/// are copies of mounts, attached nowhere.
pub(super) fn open_sources(layout: &Layout) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in &layout.folders {
        // With what is mounted below: a part of a locked tree cannot be taken alone.
        let mount = open_tree(path, OpenTreeFlags::AT_RECURSIVE)?;
        set(&mount, READ_ONLY | NO_SUID | NO_DEVICES, true)?;
        sources.push(Source {
            mount,
            target: path.clone(),
            folder: true,
        });
    }
    for path in &layout.files {
        let mount = open_tree(path, OpenTreeFlags::empty())?;
        set(&mount, READ_ONLY | NO_SUID | NO_DEVICES, false)?;
        sources.push(Source {
            mount,
            target: path.clone(),
            folder: false,
        });
    }
    if let Some(path) = &layout.bytecode {
        let mount = open_tree(path, OpenTreeFlags::empty())?;
        set(&mount, READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC, false)?;
        sources.push(Source {
            mount,
            target: BYTECODE.into(),
            folder: true,
        });
    }
    for path in super::DEVICES.map(Path::new) {
        let mount = open_tree(path, OpenTreeFlags::empty())?;
        // The device can be written to all the same, and its file's times cannot be changed.
        set(&mount, READ_ONLY | NO_SUID | NO_EXEC, false)?;
        sources.push(Source {
            mount,
            target: path.to_owned(),
            folder: false,
        });
    }
    Ok(sources)
}

fn open_tree(path: &Path, more: OpenTreeFlags) -> Result<OwnedFd, Failure> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | more;
    rustix::mount::open_tree(CWD, path, flags).step_on("open_tree", path)
}

fn set(mount: &OwnedFd, attributes: u64, recursive: bool) -> Result<(), Failure> {
    add_mount_attributes(mount.as_fd(), attributes, recursive).step("mount_setattr")
}

/// Builds the root, makes it the only one, and gives up the host's. Only in a mount namespace of
/// one's own.
pub(super) fn enter(
    layout: &Layout,
    sources: Vec<Source>,
    scratch_bytes: u64,
) -> Result<(), Failure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).step("make mounts private")?;
    let root = tmpfs(
        SKELETON_BYTES,
        SKELETON_ENTRIES,
        "0755",
        MountAttrFlags::MOUNT_ATTR_NOSUID,
    )?;
    // Somewhere it has to be attached for others to be attached to it; over the old root will do,
    // since nothing is looked up by path until it is the new one.
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(&root, "", CWD, "/", flags).step("mount the root")?;

    let skeleton = Skeleton { root: root.as_fd() };
    for folder in [SCRATCH, EMPTY, "/proc/self"].map(Path::new) {
        skeleton.folder(folder)?;
    }
    for source in &sources {
        if source.folder {
            skeleton.folder(&source.target)?;
        } else {
            skeleton.file(&source.target)?;
        }
    }
    for (link, text) in &layout.links {
        skeleton.link(link, text)?;
    }
    for source in &sources {
        attach(source.mount.as_fd(), root.as_fd(), &source.target, "mount")?;
    }
    for hidden in &layout.hidden {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let empty = rustix::mount::open_tree(&root, relative(Path::new(EMPTY)), flags)
            .step("open_tree of an empty folder")?;
        set(&empty, READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC, false)?;
        attach(empty.as_fd(), root.as_fd(), hidden, "hide")?;
    }
    let guarded = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let scratch = tmpfs(scratch_bytes, SCRATCH_ENTRIES, "0700", guarded)?;
    attach(scratch.as_fd(), root.as_fd(), Path::new(SCRATCH), "mount")?;
    set(&root, READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC, false)?;

    rustix::process::fchdir(&root).step("enter the root")?;
    rustix::process::pivot_root(".", ".").step("pivot_root")?;
    // The old root now lies on top of the new one.
    rustix::mount::unmount(".", UnmountFlags::DETACH).step("unmount the old root")?;
    rustix::process::chdir("/").step("enter the root")
}

fn tmpfs(
    bytes: u64,
    entries: u64,
    mode: &str,
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Failure> {
    let make = || {
        let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let context = context.as_fd();
        // 0 would be no bound.
        rustix::mount::fsconfig_set_string(context, "size", bytes.max(1).to_string())?;
        rustix::mount::fsconfig_set_string(context, "nr_inodes", entries.to_string())?;
        rustix::mount::fsconfig_set_string(context, "mode", mode)?;
        rustix::mount::fsconfig_create(context)?;
        rustix::mount::fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    make().step("mount a tmpfs")
}

fn attach(
    mount: BorrowedFd<'_>,
    root: BorrowedFd<'_>,
    target: &Path,
    step: &str,
) -> Result<(), Failure> {
    rustix::mount::move_mount(
        mount,
        "",
        root,
        relative(target),
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .step_on(step, target)
}

/// As seen from the root's descriptor.
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Folders, links and mount points in the new root.
struct Skeleton<'a> {
    root: BorrowedFd<'a>,
}

impl Skeleton<'_> {
    fn folder(&self, path: &Path) -> Result<(), Failure> {
        let mode = Mode::from_bits_retain(0o755);
        self.make("mkdir", path, |root, path| {
            match rustix::fs::mkdirat(root, path, mode) {
                Err(Errno::EXIST) => Ok(()),
                made => made,
            }
        })
    }

    fn file(&self, path: &Path) -> Result<(), Failure> {
        let mode = Mode::from_bits_retain(0o444);
        self.make("create", path, |root, path| {
            rustix::fs::mknodat(root, path, FileType::RegularFile, mode, 0)
        })
    }

    fn link(&self, path: &Path, text: &Path) -> Result<(), Failure> {
        self.make("symlink", path, |root, path| {
            rustix::fs::symlinkat(text, root, path)
        })
    }

    /// Makes something, and its parents only if they are missing: most are there already.
    fn make(
        &self,
        step: &str,
        path: &Path,
        make: impl Fn(BorrowedFd<'_>, &Path) -> Result<(), Errno>,
    ) -> Result<(), Failure> {
        match (make(self.root, relative(path)), path.parent()) {
            (Err(Errno::NOENT), Some(parent)) => {
                self.folder(parent)?;
                make(self.root, relative(path)).step_on(step, path)
            }
            (made, _) => made.step_on(step, path),
        }
    }
}
