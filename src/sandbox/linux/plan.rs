//! What the server asks of its launcher, and what the launcher says back: data on both sides of one
//! exec. Policy is decided by the server, and carried out by the launcher.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a program lives in the namespaces' root: its working directory, `HOME` and `TMPDIR`.
pub(in crate::sandbox) const SCRATCH: &str = "/scratch";

/// Where bytecode of ours lies in the new root.
pub(in crate::sandbox) const BYTECODE: &str = "/bytecode";

/// Begins each line on stderr that is the launcher's own.
const MARK: &str = "ptc-mcp: ";

/// Everything about one child, passed as one argument: the environment is the program's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct Plan {
    pub(in crate::sandbox) wall: Wall,
    pub(in crate::sandbox) limits: Limits,
    pub(in crate::sandbox) layout: Layout,
    /// The interpreter's path and its arguments.
    pub(in crate::sandbox) command: Vec<String>,
    /// Whether to say what was enforced, before the interpreter starts.
    pub(in crate::sandbox) report: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) enum Wall {
    Namespaces,
    Chroot {
        /// A folder with a copy of what the layout names.
        root: PathBuf,
        /// The user and group that no other program has at this time.
        id: u32,
        /// The scratch directory, below `root`.
        scratch: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct Limits {
    pub(in crate::sandbox) cpu_seconds: u64,
    pub(in crate::sandbox) memory_bytes: u64,
    pub(in crate::sandbox) scratch_bytes: u64,
    pub(in crate::sandbox) open_files: u64,
}

/// What of the host an interpreter needs, and by which names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct Layout {
    /// Real folders and files, none inside another.
    pub(in crate::sandbox) folders: Vec<PathBuf>,
    pub(in crate::sandbox) files: Vec<PathBuf>,
    /// Symbolic links and their texts.
    pub(in crate::sandbox) links: Vec<(PathBuf, PathBuf)>,
    /// Folders inside `folders` that are shown empty.
    pub(in crate::sandbox) hidden: Vec<PathBuf>,
    /// Bytecode of ours, for an interpreter that has none; shown at [`BYTECODE`].
    pub(in crate::sandbox) bytecode: Option<PathBuf>,
}

/// A step that failed while a child was prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct Failure {
    pub(in crate::sandbox) step: String,
    pub(in crate::sandbox) errno: i32,
}

impl Failure {
    /// Whether the kernel, or a rule on top of it, refused a part of the wall itself; anything else
    /// is about the interpreter or this machine's state, and no other wall would mend it.
    pub(in crate::sandbox) fn is_of_the_kernel(&self) -> bool {
        let about_interpreter = ["exec", "open /", "hide", "chdir", "limit", "descriptor"];
        !about_interpreter
            .iter()
            .any(|step| self.step.starts_with(step))
            && [
                libc::EPERM,
                libc::EACCES,
                libc::ENOSYS,
                libc::ENOSPC,
                libc::EUSERS,
                libc::EINVAL,
                libc::EOPNOTSUPP,
            ]
            .contains(&self.errno)
    }
}

/// What was enforced beyond what is always enforced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct Enforced {
    /// The version of Landlock's interface in use; 0 for none.
    pub(in crate::sandbox) landlock: i32,
    /// The user that the program is to the host.
    pub(in crate::sandbox) outer_uid: u32,
    /// Instructions of the system-call filter.
    pub(in crate::sandbox) filter: usize,
}

/// One line of the launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) enum Word {
    Failed(Failure),
    Enforced(Enforced),
}

impl Word {
    pub(in crate::sandbox) fn to_line(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{MARK}{json}\n")
    }

    pub(in crate::sandbox) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line.strip_prefix(MARK)?).ok()
    }
}

/// What a person is told of a child's stderr: the launcher's own lines in words.
pub(in crate::sandbox) fn readable(stderr: &str) -> String {
    let lines = stderr.lines().filter_map(|line| match Word::parse(line) {
        Some(Word::Failed(failure)) => Some(failure.to_string()),
        Some(Word::Enforced(_)) => None,
        None => Some(line.to_owned()),
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl std::fmt::Display for Failure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.step, errno_name(self.errno))
    }
}

/// As C spells it, for those that a kernel answers with when it refuses something.
pub(in crate::sandbox) fn errno_name(errno: i32) -> String {
    let name = match errno {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::ESRCH => "ESRCH",
        libc::EIO => "EIO",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EBUSY => "EBUSY",
        libc::EEXIST => "EEXIST",
        libc::EXDEV => "EXDEV",
        libc::ENODEV => "ENODEV",
        libc::ENOTDIR => "ENOTDIR",
        libc::EINVAL => "EINVAL",
        libc::EMFILE => "EMFILE",
        libc::ENOSPC => "ENOSPC",
        libc::EROFS => "EROFS",
        libc::ENOSYS => "ENOSYS",
        libc::ELOOP => "ELOOP",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::EUSERS => "EUSERS",
        _ => return format!("errno {errno}"),
    };
    name.to_owned()
}

/// `result` with the name of its step.
pub(in crate::sandbox) trait Named<T> {
    fn step(self, step: &str) -> Result<T, Failure>;
    fn step_on(self, step: &str, path: &Path) -> Result<T, Failure>;
}

impl<T> Named<T> for Result<T, rustix::io::Errno> {
    fn step(self, step: &str) -> Result<T, Failure> {
        self.map_err(|errno| Failure {
            step: step.to_owned(),
            errno: errno.raw_os_error(),
        })
    }

    fn step_on(self, step: &str, path: &Path) -> Result<T, Failure> {
        self.step(&format!("{step} {}", path.display()))
    }
}

impl<T> Named<T> for std::io::Result<T> {
    fn step(self, step: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            step: step.to_owned(),
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        })
    }

    fn step_on(self, step: &str, path: &Path) -> Result<T, Failure> {
        self.step(&format!("{step} {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: B3
    #[test]
    fn only_a_refusal_of_the_kernels_leads_to_another_wall() {
        for (step, errno, expected) in [
            ("clone with namespaces", libc::EPERM, true),
            ("clone with namespaces", libc::ENOSPC, true),
            ("write uid_map", libc::EPERM, true),
            ("make mounts private", libc::EACCES, true),
            ("open_tree /usr/lib/python3", libc::ENOSYS, true),
            ("open_tree /usr/lib/python3", libc::ENOENT, false),
            ("clone with namespaces", libc::ENOMEM, false),
            ("open /usr/bin/python3", libc::EACCES, false),
            ("exec the interpreter", libc::EACCES, false),
            ("hide /opt/lib/python3.12/test", libc::EACCES, false),
            ("limit of memory", libc::EPERM, false),
        ] {
            let failure = Failure {
                step: step.to_owned(),
                errno,
            };
            assert_eq!(failure.is_of_the_kernel(), expected, "{failure}");
        }
    }

    #[test]
    fn words_survive_the_way_over_stderr() {
        let words = [
            Word::Failed(Failure {
                step: "mount /a\nb".to_owned(),
                errno: 1,
            }),
            Word::Enforced(Enforced {
                landlock: 7,
                outer_uid: 65534,
                filter: 400,
            }),
        ];
        for word in words {
            let line = word.to_line();
            assert_eq!(line.lines().count(), 1);
            assert_eq!(Word::parse(line.trim_end()), Some(word));
        }
        for other in [
            "",
            "ptc-mcp: ",
            "ptc-mcp: {}",
            "Traceback (most recent call last):",
        ] {
            assert_eq!(Word::parse(other), None);
        }
    }
}
