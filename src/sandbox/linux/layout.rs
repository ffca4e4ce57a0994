//! Which of the host's files an interpreter needs: asked of the interpreter and of the loader that
//! loaded it, not of a list of distributions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::plan::Layout;

/// Run by the interpreter with `-I -S`: loads everything that the standard library could load, and
/// prints where it came from.
pub(in crate::sandbox) const QUESTION: &str = include_str!("layout.py");

/// What an interpreter says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(in crate::sandbox) struct Answer {
    /// `sys.path`.
    pub(in crate::sandbox) path: Vec<PathBuf>,
    /// The objects that the loader opened, by the names it opened them by.
    pub(in crate::sandbox) objects: Vec<PathBuf>,
    /// Folders with time zones.
    pub(in crate::sandbox) zones: Vec<PathBuf>,
    /// Extension modules that can be imported.
    pub(in crate::sandbox) modules: Vec<String>,
    /// Where the bytecode of `os` would be, if it is a file with bytecode beside it.
    pub(in crate::sandbox) bytecode: Option<PathBuf>,
}

/// Folders inside the standard library that hold other people's code, or none that runs.
const HIDDEN: [&str; 3] = ["site-packages", "dist-packages", "test"];

/// Where loaders look without being told.
const DEFAULT_FOLDERS: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// More links in one path than any kernel follows.
const MAX_LINKS: usize = 40;

impl Layout {
    pub(in crate::sandbox) fn of(executable: &Path, answer: &Answer) -> io::Result<Self> {
        let mut names = Names::default();
        names.add(executable)?;
        for path in answer.path.iter().chain(&answer.zones) {
            if path.is_absolute() && path.exists() {
                names.add(path)?;
            }
        }
        for object in &answer.objects {
            // The kernel's own object has a name and no file.
            if object.is_absolute() && object.exists() {
                names.add(object)?;
            }
        }
        let mut layout = names.into_layout();
        for object in &answer.objects {
            layout.make_findable(object);
        }
        // There is no procfs; this one name is how some loaders resolve `$ORIGIN`.
        layout
            .links
            .push(("/proc/self/exe".into(), executable.to_owned()));
        layout.hidden = layout
            .folders
            .iter()
            .flat_map(|folder| HIDDEN.map(|name| folder.join(name)))
            .filter(|folder| folder.symlink_metadata().is_ok_and(|found| found.is_dir()))
            .collect();
        Ok(layout)
    }

    /// Another value once any of it was replaced.
    pub(in crate::sandbox) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        (&self.folders, &self.files, &self.links, &self.hidden).hash(&mut hasher);
        for path in self.folders.iter().chain(&self.files) {
            if let Ok(found) = path.metadata() {
                let times = (found.mtime(), found.mtime_nsec());
                (found.dev(), found.ino(), found.len(), times).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Whether a folder of the layout holds `path`.
    fn holds(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| path.starts_with(folder))
    }

    /// A library that the loader found through its cache alone gets a link where it looks anyway:
    /// the cache lists every library of the host and stays outside.
    fn make_findable(&mut self, object: &Path) {
        let (Some(folder), Some(name)) = (object.parent(), object.file_name()) else {
            return;
        };
        let by_default = DEFAULT_FOLDERS.iter().any(|default| {
            folder == Path::new(default) || folder.parent() == Some(Path::new(default))
        });
        if by_default || self.holds(object) || !object.is_absolute() {
            return;
        }
        for default in ["/usr/lib", "/usr/lib64"] {
            let link = Path::new(default).join(name);
            let taken = self.links.iter().any(|(path, _)| *path == link)
                || self.files.contains(&link)
                || self.holds(&link);
            if !taken {
                self.links.push((link, object.to_owned()));
            }
        }
        for (short, long) in [("/lib", "usr/lib"), ("/lib64", "usr/lib64")] {
            let short = Path::new(short);
            let exists = self.links.iter().any(|(path, _)| path.starts_with(short))
                || self.files.iter().any(|path| path.starts_with(short))
                || self.folders.iter().any(|path| path.starts_with(short));
            if !exists {
                self.links.push((short.to_owned(), long.into()));
            }
        }
    }
}

/// Paths on their way into a layout.
#[derive(Debug, Default)]
struct Names {
    links: BTreeMap<PathBuf, PathBuf>,
    folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Names {
    /// Walks a path component by component, keeps each link that is met, and the real end.
    fn add(&mut self, path: &Path) -> io::Result<()> {
        let mut rest: VecDeque<OsString> = components(path);
        let mut walked = PathBuf::from("/");
        let mut followed = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                walked.pop();
                continue;
            }
            walked.push(name);
            if !walked.symlink_metadata()?.is_symlink() {
                continue;
            }
            followed += 1;
            if followed > MAX_LINKS {
                return Err(io::Error::other(format!(
                    "too many links in {}",
                    path.display()
                )));
            }
            let text = std::fs::read_link(&walked)?;
            self.links.insert(walked.clone(), text.clone());
            if text.is_absolute() {
                walked = PathBuf::from("/");
            } else {
                walked.pop();
            }
            for component in components(&text).into_iter().rev() {
                rest.push_front(component);
            }
        }
        if walked.is_dir() {
            self.folders.insert(walked);
        } else {
            self.files.insert(walked);
        }
        Ok(())
    }

    fn into_layout(self) -> Layout {
        // In order, a folder comes before what it holds.
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in self.folders {
            if !folders.iter().any(|outer| folder.starts_with(outer)) {
                folders.push(folder);
            }
        }
        let outside = |path: &Path| !folders.iter().any(|folder| path.starts_with(folder));
        Layout {
            files: self
                .files
                .into_iter()
                .filter(|path| outside(path))
                .collect(),
            links: self
                .links
                .into_iter()
                .filter(|(path, _)| outside(path))
                .collect(),
            hidden: Vec::new(),
            bytecode: None,
            folders,
        }
    }
}

fn components(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_kept_as_they_are_and_only_what_is_real_is_bound() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let at = |name: &str| base.join(name);
        std::fs::create_dir_all(at("opt/py 3/ünï/lib/python3.11/site-packages")).unwrap();
        std::fs::create_dir_all(at("opt/py 3/ünï/bin")).unwrap();
        std::fs::write(at("opt/py 3/ünï/bin/python3.11"), "").unwrap();
        std::fs::create_dir(at("lib")).unwrap();
        std::fs::write(at("lib/libz.so.1.2"), "").unwrap();
        symlink("libz.so.1.2", at("lib/libz.so.1")).unwrap();
        symlink(at("opt/py 3"), at("current")).unwrap();
        symlink("../lib", at("opt/sys")).unwrap();
        let answer = Answer {
            path: vec![
                at("opt/py 3/ünï/lib/python311.zip"),
                at("current/ünï/lib/python3.11"),
                at("opt/py 3/ünï/lib/python3.11/lib-dynload"),
            ],
            objects: vec![at("opt/sys/libz.so.1"), PathBuf::from("linux-vdso.so.1")],
            zones: vec![at("nowhere")],
            modules: vec![],
            bytecode: None,
        };
        let layout = Layout::of(&at("opt/py 3/ünï/bin/python3.11"), &answer).unwrap();
        assert_eq!(layout.folders, [at("opt/py 3/ünï/lib/python3.11")]);
        assert_eq!(
            layout.files,
            [at("lib/libz.so.1.2"), at("opt/py 3/ünï/bin/python3.11")]
        );
        assert_eq!(
            layout.hidden,
            [at("opt/py 3/ünï/lib/python3.11/site-packages")]
        );
        let expected = [
            (at("current"), at("opt/py 3")),
            (at("lib/libz.so.1"), "libz.so.1.2".into()),
            (at("opt/sys"), "../lib".into()),
        ];
        assert_eq!(layout.links[..3], expected);
        assert!(
            layout
                .links
                .contains(&("/usr/lib/libz.so.1".into(), at("opt/sys/libz.so.1")))
        );
        let exe = ("/proc/self/exe".into(), at("opt/py 3/ünï/bin/python3.11"));
        assert_eq!(layout.links.last(), Some(&exe));
    }

    #[test]
    fn a_circle_of_links_is_an_error_and_not_a_hang() {
        let folder = tempfile::tempdir().unwrap();
        symlink("b", folder.path().join("a")).unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        assert!(Names::default().add(&folder.path().join("a")).is_err());
    }

    #[test]
    fn a_library_is_findable_without_the_loaders_cache() {
        let mut layout = Layout::default();
        for object in [
            "/lib/x86_64-linux-gnu/libz.so.1",
            "/usr/lib64/libm.so.6",
            "relative.so",
            "/usr/local/lib/libpython3.11.so.1.0",
        ] {
            layout.make_findable(Path::new(object));
        }
        let python = || PathBuf::from("/usr/local/lib/libpython3.11.so.1.0");
        let expected = [
            ("/usr/lib/libpython3.11.so.1.0".into(), python()),
            ("/usr/lib64/libpython3.11.so.1.0".into(), python()),
            ("/lib".into(), "usr/lib".into()),
            ("/lib64".into(), "usr/lib64".into()),
        ];
        assert_eq!(layout.links, expected);
    }
}
