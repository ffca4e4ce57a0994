//! The log of what programs did: one JSON line a call and a program (contract A5).
//!
//! Knows what is written and that it is written; what a call or a program is, it is told.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::config::{self, AuditArguments, Mask, ServerConfig};

/// Values from the configuration's variables are taken out of the log from this length on.
const SHORTEST_SECRET: usize = 4;

/// Lines kept that could not be written, until they can.
const MAX_UNWRITTEN: usize = 10_000;

/// The log, which programs share.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    arguments: AuditArguments,
    secrets: Mask,
    backlog: Mutex<Backlog>,
}

#[derive(Debug, Default)]
struct Backlog {
    /// Lines that could not be written. No program starts before they are.
    unwritten: VecDeque<String>,
    /// The file ends in the beginning of a line, behind which there was no room.
    is_torn: bool,
}

/// The log cannot be written, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be written: {reason}", .path.display())]
pub struct AuditError {
    path: PathBuf,
    reason: String,
}

impl Audit {
    /// `None` when no log is wanted.
    pub fn new(config: &config::Audit, servers: &[ServerConfig]) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            path: config.path.clone()?,
            arguments: config.arguments,
            secrets: Mask::of(servers, SHORTEST_SECRET),
            backlog: Mutex::default(),
        }))
    }

    /// Starts on a program, if the log can be written.
    pub fn begin(self: &Arc<Self>, code: &str, client: &str) -> Result<Run, AuditError> {
        let failed = |error: io::Error| AuditError {
            path: self.path.clone(),
            reason: error.to_string(),
        };
        // Opened for each program, so that a log which was moved away is begun anew.
        let mut file = open(&self.path).map_err(failed)?;
        let mut backlog = lock(&self.backlog);
        let Backlog { unwritten, is_torn } = &mut *backlog;
        // Somebody else may have torn it, or an earlier start.
        *is_torn = ends_torn(&self.path).unwrap_or(*is_torn);
        while let Some(line) = unwritten.front() {
            write(&mut file, line, is_torn).map_err(failed)?;
            unwritten.pop_front();
        }
        drop(backlog);
        Ok(Run {
            audit: self.clone(),
            common: Map::from_iter([
                ("program".to_owned(), hash(code).into()),
                (
                    "run".to_owned(),
                    format!("{:016x}", fastrand::u64(..)).into(),
                ),
                ("client".to_owned(), self.masked(client.into())),
            ]),
            started: now(),
            code_bytes: code.len(),
            state: Mutex::new(State {
                file,
                failure: None,
                ended: false,
            }),
        })
    }

    /// A value without the configuration's secrets. Keys and numbers may hold one too.
    fn masked(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.secrets.apply(&text).into(),
            Value::Number(number) => {
                let text = number.to_string();
                match self.secrets.apply(&text) {
                    masked if masked == text => Value::Number(number),
                    masked => masked.into(),
                }
            }
            Value::Array(items) => items.into_iter().map(|item| self.masked(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(key, value)| (self.secrets.apply(&key).into_owned(), self.masked(value)))
                .collect(),
            value => value,
        }
    }

    /// What the log keeps of a call's arguments.
    fn kept(&self, arguments: &str) -> Option<Value> {
        match self.arguments {
            AuditArguments::None => None,
            AuditArguments::Hash => Some(hash(arguments).into()),
            // What is nested too deep to be looked through is not written as it is.
            AuditArguments::Full => {
                let arguments = serde_json::from_str(arguments).map_or_else(
                    |_| hash(arguments).into(),
                    |arguments| self.masked(arguments),
                );
                Some(arguments)
            }
        }
    }
}

/// One program's part of the log.
#[derive(Debug)]
pub struct Run {
    audit: Arc<Audit>,
    /// What every line of it says.
    common: Map<String, Value>,
    started: String,
    code_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// The first line that could not be written, and why.
    failure: Option<AuditError>,
    ended: bool,
}

/// A call, as it was when it was made.
#[derive(Debug)]
pub struct Call {
    time: String,
    tool: String,
    arguments: Option<Value>,
    arguments_bytes: usize,
}

/// How something ended.
#[derive(Debug)]
pub struct End {
    /// `ok`, `failed`, `refused`, …
    pub outcome: &'static str,
    pub error: Option<String>,
    pub duration: Duration,
    /// What came out, in bytes.
    pub bytes: usize,
}

impl Run {
    pub fn heard(&self, tool: &str, arguments: &str) -> Call {
        Call {
            time: now(),
            tool: self.audit.secrets.apply(tool).into_owned(),
            arguments: self.audit.kept(arguments),
            arguments_bytes: arguments.len(),
        }
    }

    /// A call came to its end.
    pub fn call(&self, call: Call, end: End) {
        let mut line = self.line("call", call.time, &end);
        line.insert("tool".to_owned(), call.tool.into());
        line.extend(
            call.arguments
                .map(|arguments| ("arguments".to_owned(), arguments)),
        );
        line.insert("arguments_bytes".to_owned(), call.arguments_bytes.into());
        line.insert("result_bytes".to_owned(), end.bytes.into());
        self.append(line);
    }

    /// The program came to its end. Says what of this run could not be written.
    pub fn end(&self, calls: usize, end: &End) -> Option<AuditError> {
        self.program(calls, end);
        lock(&self.state).failure.clone()
    }

    /// Why this run's log is not complete.
    pub fn failure(&self) -> Option<AuditError> {
        lock(&self.state).failure.clone()
    }

    fn program(&self, calls: usize, end: &End) {
        lock(&self.state).ended = true;
        let mut line = self.line("program", self.started.clone(), end);
        line.insert("calls".to_owned(), calls.into());
        line.insert("code_bytes".to_owned(), self.code_bytes.into());
        line.insert("output_bytes".to_owned(), end.bytes.into());
        self.append(line);
    }

    fn line(&self, kind: &str, time: String, end: &End) -> Map<String, Value> {
        let mut line = Map::from_iter([
            ("time".to_owned(), time.into()),
            ("kind".to_owned(), kind.into()),
        ]);
        line.extend(self.common.clone());
        line.insert("outcome".to_owned(), end.outcome.into());
        if let Some(error) = &end.error {
            let error = self.audit.secrets.apply(error).into();
            line.insert("error".to_owned(), error);
        }
        let millis = (end.duration.as_secs_f64() * 1e4).round() / 10.0;
        line.insert("duration_ms".to_owned(), json!(millis));
        line
    }

    fn append(&self, line: Map<String, Value>) {
        let line = format!("{}\n", Value::from(line));
        let mut state = lock(&self.state);
        let mut backlog = lock(&self.audit.backlog);
        if let Err(error) = write(&mut state.file, &line, &mut backlog.is_torn) {
            tracing::error!("the audit log cannot be written: {error}");
            state.failure.get_or_insert(AuditError {
                path: self.audit.path.clone(),
                reason: error.to_string(),
            });
            if backlog.unwritten.len() < MAX_UNWRITTEN {
                backlog.unwritten.push_back(line);
            }
        }
    }
}

/// A run that was dropped half-way was ended with its process; the log says that it was there.
impl Drop for Run {
    fn drop(&mut self) {
        if !lock(&self.state).ended {
            let end = End {
                outcome: "killed",
                error: None,
                duration: Duration::ZERO,
                bytes: 0,
            };
            self.program(0, &end);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// Whether a file's last line has no end; nothing of what cannot be read, or is no file.
fn ends_torn(path: &Path) -> Option<bool> {
    // A pipe would wait for its other end.
    let length = path
        .metadata()
        .ok()
        .filter(std::fs::Metadata::is_file)?
        .len();
    let mut last = [b'\n'];
    if length > 0 {
        let file = File::open(path).ok()?;
        file.read_exact_at(&mut last, length - 1).ok()?;
    }
    Some(last != [b'\n'])
}

/// In one piece, so that the lines of two processes do not mix; behind a torn line, on a new one.
fn write(file: &mut impl Write, line: &str, is_torn: &mut bool) -> io::Result<()> {
    let line = if *is_torn {
        Cow::Owned(format!("\n{line}"))
    } else {
        Cow::Borrowed(line)
    };
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        *is_torn = !rest.is_empty();
    }
    file.flush()
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it is held")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::config::Config;

    fn audit(folder: &Path, arguments: &str) -> Arc<Audit> {
        let text = format!(
            r#"
servers:
  - name: crm
    command: server
    env: {{ TOKEN: "${{TOKEN}}", PIN: "${{PIN}}" }}
audit: {{ path: {}/audit.jsonl, arguments: {arguments} }}
"#,
            folder.display()
        );
        let env = |name: &str| match name {
            "TOKEN" => Some("tok\"en".to_owned()),
            "PIN" => Some("471147114711".to_owned()),
            _ => None,
        };
        let config = Config::parse(&text, Path::new("config.yaml"), &env).unwrap();
        Audit::new(&config.audit, &config.servers).unwrap()
    }

    fn lines(folder: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(folder.join("audit.jsonl")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn end(outcome: &'static str, error: Option<&str>) -> End {
        End {
            outcome,
            error: error.map(str::to_owned),
            duration: Duration::from_micros(12_340),
            bytes: 7,
        }
    }

    // contract: A5
    #[test]
    fn a_line_says_all_that_the_contract_names() {
        let folder = tempfile::tempdir().unwrap();
        let run = audit(folder.path(), "full")
            .begin("print(1)", "a-client")
            .unwrap();
        let call = run.heard("mcp__crm__get", r#"{"id":1}"#);
        run.call(call, end("failed", Some("no such row")));
        assert_eq!(run.end(1, &end("ok", None)), None);
        let lines = lines(folder.path());
        for line in &lines {
            let time = line["time"].as_str().unwrap();
            assert!(chrono::DateTime::parse_from_rfc3339(time).is_ok(), "{time}");
            assert_eq!(line["client"], "a-client");
            assert_eq!(line["program"], hash("print(1)"));
            assert_eq!(line["run"], lines[0]["run"]);
            assert_eq!(line["duration_ms"], json!(12.3));
        }
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["kind"], "call");
        assert_eq!(lines[0]["tool"], "mcp__crm__get");
        assert_eq!(lines[0]["arguments"], json!({"id": 1}));
        assert_eq!(lines[0]["arguments_bytes"], 8);
        assert_eq!(lines[0]["result_bytes"], 7);
        assert_eq!(lines[0]["outcome"], "failed");
        assert_eq!(lines[0]["error"], "no such row");
        assert_eq!(lines[1]["kind"], "program");
        assert_eq!(lines[1]["outcome"], "ok");
        assert_eq!(lines[1]["calls"], 1);
        assert_eq!(lines[1]["code_bytes"], 8);
        let mode = std::fs::metadata(folder.path().join("audit.jsonl")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_hash_is_sha256_in_hex() {
        assert_eq!(
            hash("abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    // contract: A5
    #[test]
    fn arguments_are_kept_as_the_configuration_says() {
        let cases = [
            ("full", json!({"id": 1})),
            ("hash", json!(hash(r#"{"id":1}"#))),
            ("none", Value::Null),
        ];
        for (kept, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let run = audit(folder.path(), kept).begin("x", "c").unwrap();
            run.call(run.heard("t", r#"{"id":1}"#), end("ok", None));
            assert_eq!(lines(folder.path())[0]["arguments"], expected, "{kept}");
        }
    }

    // contract: A5 C3
    #[test]
    fn secrets_of_the_configuration_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let run = audit(folder.path(), "full").begin("x", "c").unwrap();
        let arguments =
            r#"{"a": "x tok\"en", "tok\u0022en": [{"pin": 471147114711}], "b": "tok\u0022en"}"#;
        run.call(
            run.heard("t", arguments),
            end("failed", Some("bad tok\"en")),
        );
        let deep = format!("{}\"471147114711\"{}", "[".repeat(400), "]".repeat(400));
        run.call(run.heard("t", &deep), end("ok", None));
        run.end(1, &end("failed", Some("471147114711")));
        let text = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
        assert!(
            !text.contains("tok") && !text.contains("471147114711"),
            "{text}"
        );
        let lines = lines(folder.path());
        assert_eq!(lines[0]["error"], "bad [secret]");
        assert_eq!(
            lines[0]["arguments"]["[secret]"],
            json!([{"pin": "[secret]"}])
        );
    }

    /// A disk with so much room.
    struct Disk {
        room: usize,
        text: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let length = text.len().min(self.room);
            self.text.extend_from_slice(&text[..length]);
            self.room -= length;
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    // contract: A5
    #[test]
    fn a_line_that_did_not_fit_spoils_no_other() {
        for (room, expected) in [
            (4, "one\ntwo\n"),
            (5, "one\nt\ntwo\n"),
            (7, "one\ntwo\ntwo\n"),
        ] {
            let text = Vec::new();
            let (mut disk, mut is_torn) = (Disk { room, text }, false);
            write(&mut disk, "one\n", &mut is_torn).unwrap();
            for _ in 0..2 {
                assert!(write(&mut disk, "two\n", &mut is_torn).is_err());
            }
            disk.room = 100;
            write(&mut disk, "two\n", &mut is_torn).unwrap();
            assert_eq!(String::from_utf8(disk.text).unwrap(), expected);
            assert!(!is_torn);
        }
    }

    // contract: A5
    #[test]
    fn a_line_that_an_earlier_start_has_torn_spoils_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert_eq!(ends_torn(&path), None);
        for (text, torn) in [("", false), ("one\n", false), ("one\ntw", true)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(ends_torn(&path), Some(torn), "{text:?}");
        }
        assert_eq!(ends_torn(Path::new("/dev/null")), None);
        let audit = audit(folder.path(), "hash");
        std::fs::write(folder.path().join("audit.jsonl"), "{\"torn").unwrap();
        let run = audit.begin("print(1)", "test").unwrap();
        assert_eq!(run.end(0, &end("ok", None)), None);
        let text = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
        let (torn, whole) = text.split_once('\n').unwrap();
        assert_eq!(torn, "{\"torn");
        assert!(serde_json::from_str::<Value>(whole).is_ok(), "{text}");
    }

    // contract: A5
    #[test]
    fn what_cannot_be_written_is_said_and_holds_up_the_next_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = audit(folder.path(), "hash");
        let run = audit.begin("x", "c").unwrap();
        // A file handle that was opened for reading stands in for a disk that is full.
        lock(&run.state).file = File::open(&path).unwrap();
        let failure = run.end(0, &end("ok", None)).unwrap().to_string();
        assert!(
            failure.contains("audit.jsonl cannot be written: "),
            "{failure}"
        );
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let refused = audit.begin("y", "c").unwrap_err().to_string();
        assert!(refused.contains("cannot be written"), "{refused}");
        std::fs::remove_dir(&path).unwrap();
        drop(audit.begin("z", "c").unwrap());
        let lines = lines(folder.path());
        assert_eq!(lines.len(), 2, "what was held back comes first: {lines:?}");
        assert_eq!(lines[0]["outcome"], "ok");
        assert_eq!(lines[1]["outcome"], "killed");
    }
}
