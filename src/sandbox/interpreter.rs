//! Finding the Python that programs run on: the base interpreter behind venvs, version-manager
//! shims and symlinks, asked once. Backends are not known here.

#![expect(
    clippy::disallowed_methods,
    reason = "one of the places where processes are spawned"
)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;

use super::SandboxError;
use super::cache::{self, Seen};
use crate::channel::{HALF, frame};

/// The oldest Python that the child's half runs on.
pub const OLDEST: (u32, u32) = (3, 9);

/// A cold shim of a version manager takes a tenth of a second; a network home directory, more.
const PROBE_LIMIT: Duration = Duration::from_secs(15);

/// Prints what we need to know as one JSON object. Works on every Python that could be found, so
/// that one that is too old is named as such.
const PROBE: &str = r#"
import json, os, sys
base = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": list(sys.version_info[:3]),
    "executable": os.path.realpath(base),
}))
"#;

/// A base interpreter that was asked and answered.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct Interpreter {
    /// The real file, with every symlink resolved.
    pub executable: PathBuf,
    pub version: (u32, u32, u32),
}

impl Interpreter {
    pub fn version(&self) -> String {
        let (major, minor, micro) = self.version;
        format!("{major}.{minor}.{micro}")
    }
}

#[derive(Deserialize)]
struct Answer {
    implementation: String,
    version: (u32, u32, u32),
    executable: PathBuf,
}

/// Whether what an interpreter answered at an earlier start is as good as asking it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    Kept,
    Fresh,
}

/// The interpreter that the configuration names, else the first usable one on `PATH`.
pub async fn find(
    configured: Option<&Path>,
    answers: Answers,
) -> Result<Interpreter, SandboxError> {
    if let Some(path) = configured {
        return probe(path, answers)
            .await
            .map_err(|reason| SandboxError::Interpreter {
                reason: format!(
                    "execution.python names '{}', which {reason}",
                    path.display()
                ),
            });
    }
    let mut rejected = Vec::new();
    for candidate in candidates(&std::env::var_os("PATH").unwrap_or_default()) {
        match probe(&candidate, answers).await {
            Ok(interpreter) => return Ok(interpreter),
            Err(reason) => rejected.push(format!("'{}' {reason}", candidate.display())),
        }
    }
    let reason = if rejected.is_empty() {
        "there is no Python on PATH".to_owned()
    } else {
        rejected.truncate(4);
        format!("no Python on PATH can be used ({})", rejected.join("; "))
    };
    Err(SandboxError::Interpreter { reason })
}

/// Everything on `path` that is called like a Python 3, folder by folder.
fn candidates(path: &std::ffi::OsStr) -> Vec<PathBuf> {
    let names: Vec<String> = std::iter::once("python3".to_owned())
        .chain(
            (OLDEST.1..=20)
                .rev()
                .map(|minor| format!("python3.{minor}")),
        )
        .chain(std::iter::once("python".to_owned()))
        .collect();
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| {
            names
                .iter()
                .map(move |name| folder.join(name))
                .collect::<Vec<_>>()
        })
        .filter(|candidate| candidate.is_file())
        .collect()
}

/// The name of what the cache keeps of that.
pub(super) const HALF_COMPILED: &str = "half";

/// Says the code of `SOURCE`, marshalled.
const COMPILE: &str = "
import base64, json, marshal
code = compile(SOURCE, '<string>', 'exec', optimize=2)
print(json.dumps(base64.b64encode(marshal.dumps(code)).decode()))
";

/// Our half of the channel as this interpreter compiles it, in the frame that `loader.py` reads.
/// Compiling it again for each child would take as long as the interpreter's own start.
pub(super) async fn compiled_half(interpreter: &Interpreter) -> Result<Vec<u8>, SandboxError> {
    use base64::Engine as _;
    let decode = |text: &String| base64::engine::general_purpose::STANDARD.decode(text);
    let about = Seen::of(&interpreter.executable);
    let kept: Option<String> = cache::read(HALF_COMPILED, &about);
    if let Some(code) = kept.and_then(|text| decode(&text).ok()) {
        return framed(interpreter, &code);
    }
    let mut command = Command::new(&interpreter.executable);
    command.env_clear().current_dir("/");
    // A JSON string without escapes beyond Python's own is a Python string.
    let source = serde_json::Value::from(HALF);
    let text: String = ask(command, &format!("SOURCE = {source}\n{COMPILE}"))
        .await
        .map_err(|reason| no_half(interpreter, &reason))?;
    let code = decode(&text).map_err(|error| no_half(interpreter, &error.to_string()))?;
    cache::write(HALF_COMPILED, &about, &text);
    framed(interpreter, &code)
}

fn framed(interpreter: &Interpreter, code: &[u8]) -> Result<Vec<u8>, SandboxError> {
    let header = frame::header(code.len()).ok_or_else(|| no_half(interpreter, "it is empty"))?;
    Ok([&header[..], code].concat())
}

fn no_half(interpreter: &Interpreter, reason: &str) -> SandboxError {
    SandboxError::Interpreter {
        reason: format!(
            "'{}' cannot compile ptc-mcp's own code ({reason})",
            interpreter.executable.display()
        ),
    }
}

/// Asks one interpreter. A failure reads on after "'<path>' ".
async fn probe(path: &Path, answers: Answers) -> Result<Interpreter, String> {
    const NAME: &str = "interpreter";
    let about = what_decides(path).filter(|_| answers == Answers::Kept);
    let holds = |answer: &Interpreter| {
        let of_itself = about
            .as_ref()
            .is_some_and(|about| about.variables.is_empty());
        // A file that answers for another one is a shim, and may choose anew each time.
        !of_itself
            || path
                .canonicalize()
                .is_ok_and(|real| real == answer.executable)
    };
    if let Some(about) = &about
        && let Some(known) = cache::read::<Interpreter>(NAME, about)
        && known.executable.is_file()
        && holds(&known)
    {
        return Ok(known);
    }
    let interpreter = ask_who(path).await?;
    if let Some(about) = about.as_ref().filter(|_| holds(&interpreter)) {
        cache::write(NAME, about, &interpreter);
    }
    Ok(interpreter)
}

/// What decides what a file on `PATH` stands for.
#[derive(serde::Serialize)]
struct Decisive {
    files: Vec<Seen>,
    /// None where the file speaks for itself.
    variables: Vec<Option<OsString>>,
}

/// All of it, if that is known. Of an interpreter that is the file. Of a script it is anything; but
/// for pyenv's, whose rules are documented: a variable, the nearest `.python-version`, and the
/// version for all.
fn what_decides(path: &Path) -> Option<Decisive> {
    let file = Seen::of(path)?;
    let start = beginning(path)?;
    if !start.starts_with(b"#!") {
        return Some(Decisive {
            files: vec![file],
            variables: Vec::new(),
        });
    }
    let is_pyenvs = std::str::from_utf8(&start).is_ok_and(|text| text.contains("pyenv\" exec"));
    if !is_pyenvs {
        return None;
    }
    // `$PYENV_ROOT/shims/python3`
    let root = path.parent()?.parent()?;
    let variables = ["PYENV_VERSION", "PYENV_DIR"].map(std::env::var_os);
    let here = std::env::current_dir().ok()?;
    let folder = variables[1]
        .as_ref()
        .map_or_else(|| here.clone(), |folder| here.join(folder));
    let versions = folder
        .ancestors()
        .map(|folder| folder.join(".python-version"))
        .chain([root.join("version")]);
    let files = std::iter::once(file).chain(versions.filter_map(|file| Seen::of(&file)));
    Some(Decisive {
        files: files.collect(),
        variables: variables.into(),
    })
}

/// The first bytes of a file; pyenv's scripts are shorter.
fn beginning(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut start = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(1024).read_to_end(&mut start).ok()?;
    Some(start)
}

async fn ask_who(path: &Path) -> Result<Interpreter, String> {
    // The server's own environment: a shim needs it to find what it stands for. `-I` keeps Python
    // itself from listening to it.
    let answer: Answer = ask(Command::new(path), PROBE).await?;
    if answer.implementation != "cpython" {
        return Err(format!(
            "is {}, where CPython is needed",
            answer.implementation
        ));
    }
    let (major, minor, micro) = answer.version;
    if (major, minor) < OLDEST {
        let (oldest_major, oldest_minor) = OLDEST;
        return Err(format!(
            "is Python {major}.{minor}.{micro}, where {oldest_major}.{oldest_minor} or newer is needed"
        ));
    }
    Ok(Interpreter {
        executable: answer.executable,
        version: answer.version,
    })
}

/// Has an interpreter print one JSON value. A failure reads on after "'<path>' ".
pub(super) async fn ask<T: serde::de::DeserializeOwned>(
    mut command: Command,
    question: &str,
) -> Result<T, String> {
    command.arg("-B");
    ask_and_write(command, question).await
}

/// The same, with bytecode written where the command says.
pub(super) async fn ask_and_write<T: serde::de::DeserializeOwned>(
    mut command: Command,
    question: &str,
) -> Result<T, String> {
    command
        .args(["-I", "-S", "-X", "utf8", "-c", question])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PROBE_LIMIT, command.output())
        .await
        .map_err(|_| format!("did not answer within {} s", PROBE_LIMIT.as_secs()))?
        .map_err(|error| format!("cannot be started: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("no message");
        let last: String = last.chars().take(200).collect();
        return Err(format!("ended with {}: {last}", output.status));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|_| "does not answer as a Python would".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn an_earlier_folder_wins_and_python3_comes_before_numbered_ones() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (folder, name) in [
            (&second, "python3"),
            (&first, "python3.9"),
            (&first, "python3"),
        ] {
            script(folder.path(), name, "");
        }
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        let expected = [
            first.path().join("python3"),
            first.path().join("python3.9"),
            second.path().join("python3"),
        ];
        assert_eq!(candidates(&path), expected);
    }

    #[tokio::test]
    async fn what_cannot_be_used_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let answer = |implementation: &str, minor: u32| {
            format!(
                "#!/bin/sh\necho '{{\"implementation\":\"{implementation}\",\"version\":[3,{minor},1],\"executable\":\"/x\"}}'\n"
            )
        };
        for (text, expected) in [
            (
                answer("cpython", 8),
                "is Python 3.8.1, where 3.9 or newer is needed",
            ),
            (answer("pypy", 11), "is pypy, where CPython is needed"),
            (
                "#!/bin/sh\necho hello\n".to_owned(),
                "does not answer as a Python would",
            ),
            (
                "#!/bin/sh\necho 'pyenv: python3: command not found' >&2; exit 127\n".to_owned(),
                "ended with exit status: 127: pyenv: python3: command not found",
            ),
        ] {
            let path = script(folder.path(), "python3", &text);
            assert_eq!(probe(&path, Answers::Kept).await.unwrap_err(), expected);
        }
        let missing = probe(&folder.path().join("nothing"), Answers::Kept)
            .await
            .unwrap_err();
        assert!(missing.starts_with("cannot be started: "), "{missing}");
    }

    #[tokio::test]
    async fn a_shim_and_a_symlink_lead_to_the_base_interpreter() {
        let found = find(None, Answers::Fresh)
            .await
            .expect("a Python 3 on PATH");
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("python3");
        std::os::unix::fs::symlink(&found.executable, &link).unwrap();
        assert_eq!(find(Some(&link), Answers::Kept).await.unwrap(), found);
        let shim = format!("#!/bin/sh\nexec {} \"$@\"\n", found.executable.display());
        let shim = script(folder.path(), "shim", &shim);
        assert_eq!(find(Some(&shim), Answers::Kept).await.unwrap(), found);
    }
}
