//! The bytes of a `text/event-stream` into events, of which none is stored beyond the limit.
//!
//! Pure, and ignorant of what the events carry.

use std::time::Duration;

use super::line::{Discarded, Line, Lines};
use super::wire::{self, Incoming};

/// Room for the field's name on a data line.
pub(super) const FIELD: usize = 16;

/// A dispatched event.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Event {
    /// Empty stands for `message`.
    pub(super) name: String,
    /// Where a cut stream can be resumed.
    pub(super) id: Option<String>,
    pub(super) retry: Option<Duration>,
    pub(super) data: Data,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Data {
    #[default]
    Absent,
    Whole(Vec<u8>),
    TooLong(Discarded),
}

impl Data {
    pub(super) fn into_incoming(self) -> Vec<Incoming> {
        match self {
            Self::Absent => Vec::new(),
            Self::Whole(bytes) => wire::decode(bytes),
            Self::TooLong(discarded) => vec![discarded.into_incoming()],
        }
    }
}

#[derive(Debug)]
pub(super) struct Events {
    lines: Lines,
    limit: usize,
    event: Event,
}

impl Events {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            lines: Lines::new(limit.saturating_add(FIELD)),
            limit,
            event: Event::default(),
        }
    }

    /// Takes the next bytes of the stream and gives the events that they complete. What the end of
    /// the stream leaves unfinished is no event.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for line in self.lines.feed(bytes) {
            match line {
                Line::Whole(line) if line.is_empty() => {
                    let event = std::mem::take(&mut self.event);
                    if event != Event::default() {
                        events.push(event);
                    }
                }
                Line::Whole(line) => self.field(line),
                Line::TooLong(discarded) => {
                    if discarded.head().starts_with(b"data") {
                        self.event.data = Data::TooLong(discarded);
                    }
                }
            }
        }
        events
    }

    fn field(&mut self, mut line: Vec<u8>) {
        let colon = line.iter().position(|byte| *byte == b':');
        let name_end = colon.unwrap_or(line.len());
        let mut value_start = colon.map_or(line.len(), |colon| colon + 1);
        if line.get(value_start) == Some(&b' ') {
            value_start += 1;
        }
        let name = line[..name_end]
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&line[..name_end]);
        if name == b"data" {
            // The usual single line is moved, not copied: it may be huge.
            line.drain(..value_start);
            self.data(line);
            return;
        }
        let Ok(value) = std::str::from_utf8(&line[value_start..]) else {
            return;
        };
        match name {
            b"event" => self.event.name = value.to_owned(),
            b"id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            b"retry" => self.event.retry = value.parse().ok().map(Duration::from_millis),
            _ => {}
        }
    }

    fn data(&mut self, line: Vec<u8>) {
        match &mut self.event.data {
            data @ Data::Absent => *data = Data::Whole(line),
            Data::Whole(data) if data.len() + 1 + line.len() <= self.limit => {
                data.push(b'\n');
                data.extend(line);
            }
            data @ Data::Whole(_) => {
                if let Data::Whole(start) = std::mem::take(data) {
                    let mut discarded = Discarded::new(&start);
                    discarded.append(b"\n");
                    discarded.append(&line);
                    *data = Data::TooLong(discarded);
                }
            }
            Data::TooLong(discarded) => {
                discarded.append(b"\n");
                discarded.append(&line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, id: Option<&str>, data: &str) -> Event {
        Event {
            name: name.to_owned(),
            id: id.map(str::to_owned),
            retry: None,
            data: Data::Whole(data.into()),
        }
    }

    #[test]
    fn events_are_read_whatever_the_cut() {
        let stream = "\u{feff}event: endpoint\r\ndata: /messages?x=1\r\n\r\n: comment\n\n\
            id: 7\ndata:{\"a\":\ndata: 1}\n\nid: 8\nretry: 1500\ndata\n\nunknown: x\n\ndata: cut";
        let polling = Event {
            retry: Some(Duration::from_millis(1500)),
            ..event("", Some("8"), "")
        };
        let expected = [
            event("endpoint", None, "/messages?x=1"),
            event("", Some("7"), "{\"a\":\n1}"),
            polling,
        ];
        for size in 1..stream.len() {
            let mut events = Events::new(1000);
            let found: Vec<Event> = stream
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| events.feed(chunk))
                .collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    // contract: R10
    #[test]
    fn an_event_over_the_limit_is_still_owed_to_its_request() {
        let big = "x".repeat(600);
        let one = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{big}{big}\"}}\n\n");
        let lines = format!(
            "data: {{\"result\":\ndata: [\"{big}\",\ndata: \"{big}\"],\ndata: \"jsonrpc\":\"2.0\",\"id\":1}}\n\n"
        );
        for stream in [one, lines] {
            let mut events = Events::new(1000);
            let mut found = events.feed(stream.as_bytes());
            let incoming = found.remove(0).data.into_incoming().remove(0);
            match incoming {
                Incoming::Oversized { id, bytes } => {
                    assert_eq!(id, Some(rmcp::model::RequestId::Number(1)));
                    assert!(bytes > 1200);
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(events.feed(b"data: ok\n\n"), [event("", None, "ok")]);
        }
    }
}
