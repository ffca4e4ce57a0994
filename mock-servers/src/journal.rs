//! The journal: every message that reached a mock, as JSON lines, and how a test reads them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// One line of a journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Milliseconds since the epoch.
    pub time_ms: u64,
    pub pid: u32,
    /// The how-many-th start of this server wrote it, from 1.
    pub start: u32,
    pub event: Event,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The id as the client wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
    /// Of a client's answer: its result or error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpEntry>,
    /// The fault that struck, the text that could not be read, the pid of a grandchild.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The server started.
    Start,
    /// A request came.
    Request,
    /// A notification came.
    Notification,
    /// An answer to one of the server's own requests came.
    Answer,
    /// Something came that is no message.
    Unreadable,
    /// An HTTP request that carries no message: GET, DELETE, or one that was turned away.
    Http,
    /// A fault strikes.
    Fault,
    /// An answer was written in full.
    Answered,
    /// The client went away before its answer was written.
    Disconnected,
    /// stdin ended.
    StdinEnd,
    /// A grandchild was started; `note` is its pid.
    Grandchild,
}

/// The HTTP request that carried a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpEntry {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
}

impl Entry {
    /// The params as a value; null when there were none.
    pub fn params(&self) -> Value {
        value_of(self.params.as_deref())
    }

    /// Of a `tools/call`: the tool's name.
    pub fn tool(&self) -> Option<String> {
        (self.method.as_deref() == Some("tools/call"))
            .then(|| {
                self.params()
                    .get("name")
                    .and_then(|name| name.as_str().map(str::to_owned))
            })
            .flatten()
    }

    /// Of a `tools/call`: the arguments.
    pub fn arguments(&self) -> Value {
        self.params()
            .get("arguments")
            .cloned()
            .unwrap_or(Value::Null)
    }

    /// Of a client's answer: the result or error.
    pub fn answer(&self) -> Value {
        value_of(self.answer.as_deref())
    }

    /// The id's text.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref().map(RawValue::get)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.http
            .as_ref()?
            .headers
            .get(&name.to_ascii_lowercase())
            .map(String::as_str)
    }
}

fn value_of(text: Option<&RawValue>) -> Value {
    // What nests too deep for a value is still there as text.
    text.map_or(Value::Null, |text| {
        serde_json::from_str(text.get()).unwrap_or_else(|_| Value::from(text.get()))
    })
}

/// Reads the journal of a mock, in its file or in memory.
#[derive(Clone, Debug)]
pub struct Journal(Source);

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Memory(Arc<Mutex<Vec<Entry>>>),
}

impl Journal {
    /// A journal file; it need not be there yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    pub(crate) fn in_memory() -> Self {
        Self(Source::Memory(Arc::default()))
    }

    /// Everything that has been written so far, over all starts.
    pub fn entries(&self) -> Vec<Entry> {
        match &self.0 {
            Source::Memory(entries) => entries
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            Source::File(path) => {
                let text = match std::fs::read(path) {
                    Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                    Err(error) => panic!("cannot read the journal {}: {error}", path.display()),
                };
                // A line without its end is still being written.
                let whole = text.rfind('\n').map_or("", |end| &text[..end]);
                whole
                    .lines()
                    .map(|line| {
                        serde_json::from_str(line).unwrap_or_else(|error| {
                            panic!(
                                "{} holds a line that is no entry: {error}: {line}",
                                path.display()
                            )
                        })
                    })
                    .collect()
            }
        }
    }

    pub fn of(&self, event: Event) -> Vec<Entry> {
        self.entries()
            .into_iter()
            .filter(|entry| entry.event == event)
            .collect()
    }

    /// The requests and notifications of this method.
    pub fn method(&self, method: &str) -> Vec<Entry> {
        let mut entries = self.entries();
        entries.retain(|entry| entry.method.as_deref() == Some(method));
        entries.retain(|entry| matches!(entry.event, Event::Request | Event::Notification));
        entries
    }

    /// The calls of this tool.
    pub fn calls(&self, tool: &str) -> Vec<Entry> {
        let mut calls = self.method("tools/call");
        calls.retain(|entry| entry.tool().as_deref() == Some(tool));
        calls
    }

    /// The ids of cancelled requests, as text, in order.
    pub fn cancelled(&self) -> Vec<String> {
        self.method("notifications/cancelled")
            .iter()
            .map(|entry| {
                entry
                    .params()
                    .get("requestId")
                    .map_or_else(String::new, Value::to_string)
            })
            .collect()
    }

    /// How often the server started.
    pub fn starts(&self) -> usize {
        self.of(Event::Start).len()
    }

    /// The names of the faults that struck, in order.
    pub fn faults(&self) -> Vec<String> {
        self.of(Event::Fault)
            .into_iter()
            .filter_map(|entry| entry.note)
            .collect()
    }

    /// Waits until the journal satisfies the condition.
    ///
    /// # Panics
    /// When it does not before the deadline; the panic shows the journal.
    #[track_caller]
    pub fn wait_until(&self, condition: impl Fn(&Journal) -> bool, deadline: Duration) {
        let end = Instant::now() + deadline;
        while !condition(self) {
            assert!(
                Instant::now() < end,
                "the journal did not get there within {deadline:?}: {:#?}",
                self.entries()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Writes a mock's own journal.
pub(crate) struct Recorder {
    sink: Sink,
    start: u32,
}

enum Sink {
    None,
    File(Mutex<File>),
    Memory(Arc<Mutex<Vec<Entry>>>),
}

impl Recorder {
    pub(crate) fn none() -> Self {
        Self {
            sink: Sink::None,
            start: 1,
        }
    }

    /// Continues the journal it finds.
    pub(crate) fn to_file(path: &Path) -> std::io::Result<Self> {
        let starts = Journal::at(path).starts();
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let start = u32::try_from(starts).unwrap_or(u32::MAX).saturating_add(1);
        Ok(Self {
            sink: Sink::File(Mutex::new(file)),
            start,
        })
    }

    pub(crate) fn to_memory(journal: &Journal, start: u32) -> Self {
        let sink = match &journal.0 {
            Source::Memory(entries) => Sink::Memory(Arc::clone(entries)),
            Source::File(_) => Sink::None,
        };
        Self { sink, start }
    }

    pub(crate) fn start(&self) -> u32 {
        self.start
    }

    pub(crate) fn entry(&self, event: Event) -> Entry {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Entry {
            time_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            pid: std::process::id(),
            start: self.start,
            event,
            method: None,
            id: None,
            params: None,
            answer: None,
            http: None,
            note: None,
        }
    }

    pub(crate) fn write(&self, entry: Entry) {
        match &self.sink {
            Sink::None => {}
            Sink::Memory(entries) => {
                entries
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(entry);
            }
            Sink::File(file) => {
                let mut line = serde_json::to_string(&entry).expect("an entry is plain data");
                line.push('\n');
                // One write a line: starts of the same server may overlap.
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(line.as_bytes())
                    .expect("the journal can be written");
            }
        }
    }

    pub(crate) fn note(&self, event: Event, note: &str) {
        self.write(Entry {
            note: Some(note.to_owned()),
            ..self.entry(event)
        });
    }
}
