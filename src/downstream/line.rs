//! A stream into lines, of which none is stored beyond the limit.
//!
//! Pure. What is thrown away is counted, and its ends are kept: enough to tell whose answer it was.

use bytes::BufMut;
use bytes::buf::Limit;

use super::scan;
use super::wire::{self, Incoming};
use super::words::{EXCERPT, Words};
use crate::json;

/// What is kept of each end of a line that is too long, to find its id there.
const ENDS: usize = 4096;

/// A line that is as long as this, and has no end yet, is likely to become much longer.
const LONG: usize = 64 * 1024;

/// How much of a long line is read at a time.
const LONG_READ: usize = 1024 * 1024;

/// Splits a stream into lines without ever storing one that is longer than the limit.
#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    line: Vec<u8>,
    /// Set while the rest of a too long line is being thrown away.
    discarding: Option<Discarded>,
}

/// What is left of a line that was too long.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Discarded {
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: u64,
}

/// A line without its line break.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    TooLong(Discarded),
}

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            discarding: None,
        }
    }

    /// Takes the next bytes of the stream and gives the lines that they complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.append(&bytes[..end]);
            lines.extend(self.finish());
            bytes = &bytes[end + 1..];
        }
        self.append(bytes);
        lines
    }

    /// Where the stream may be read on into while a long line is being read, so that it is not
    /// copied once more. What came is made known by [`Self::grown`].
    pub(super) fn rest(&mut self) -> Option<Limit<&mut Vec<u8>>> {
        let room = LONG_READ.min(self.limit.saturating_sub(self.line.len()));
        if self.line.len() < LONG || room == 0 {
            return None;
        }
        json::reserve(&mut self.line, room);
        Some((&mut self.line).limit(room))
    }

    /// Gives the lines that the last bytes of a long line complete, of which there were `length`.
    pub(super) fn grown(&mut self, length: usize) -> Vec<Line> {
        let before = self.line.len() - length;
        let Some(end) = memchr::memchr(b'\n', &self.line[before..]) else {
            return Vec::new();
        };
        let next = self.line.split_off(before + end + 1);
        self.line.pop();
        let mut lines = Vec::from_iter(self.finish());
        lines.extend(self.feed(&next));
        lines
    }

    /// The line that the end of the stream leaves unfinished, if any.
    pub(super) fn finish(&mut self) -> Option<Line> {
        if let Some(discarded) = self.discarding.take() {
            return Some(Line::TooLong(discarded));
        }
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(Line::Whole(line))
    }

    /// Bytes held back because their line is not complete.
    #[cfg(any(test, fuzzing))]
    pub(super) fn buffered(&self) -> usize {
        let kept = |discarded: &Discarded| discarded.head.len() + discarded.tail.len();
        self.line.len() + self.discarding.as_ref().map_or(0, kept)
    }

    fn append(&mut self, bytes: &[u8]) {
        if let Some(discarded) = &mut self.discarding {
            discarded.append(bytes);
        } else if self.line.len() + bytes.len() > self.limit {
            let mut discarded = Discarded::new(&std::mem::take(&mut self.line));
            discarded.append(bytes);
            self.discarding = Some(discarded);
        } else {
            json::reserve(&mut self.line, bytes.len());
            self.line.extend_from_slice(bytes);
        }
    }
}

impl Discarded {
    pub(super) fn new(start: &[u8]) -> Self {
        let mut discarded = Self {
            head: Vec::with_capacity(ENDS),
            tail: Vec::with_capacity(2 * ENDS),
            bytes: 0,
        };
        discarded.append(start);
        discarded
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = ENDS - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let last = &bytes[bytes.len().saturating_sub(ENDS)..];
        self.tail.extend_from_slice(last);
        if self.tail.len() > ENDS {
            self.tail.drain(..self.tail.len() - ENDS);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// How many bytes came behind the head.
    pub(super) fn gone(&self) -> u64 {
        self.bytes - self.head.len() as u64
    }

    /// What it was: a response that is owed an error, or something nobody waits for.
    pub(super) fn into_incoming(self) -> Incoming {
        let text = String::from_utf8_lossy(&self.head);
        let noise = || Incoming::Noise(Words::first(EXCERPT, &text, self.gone()));
        let Some(start) = wire::next_start(&text) else {
            return noise();
        };
        let head = &text.as_bytes()[start..];
        if !scan::is_response(head) || !scan::looks_like_a_message(head) {
            return noise();
        }
        Incoming::Oversized {
            id: scan::id_from_head(head).or_else(|| scan::id_from_tail(&self.tail)),
            bytes: self.bytes,
        }
    }
}

impl Line {
    pub(super) fn into_incoming(self) -> Vec<Incoming> {
        match self {
            Self::Whole(bytes) => wire::decode(bytes),
            Self::TooLong(discarded) => vec![discarded.into_incoming()],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::RequestId;

    use super::*;

    fn too_long(line: &str, limit: usize) -> Incoming {
        let mut lines = Lines::new(limit);
        let found = lines.feed(format!("{line}\n").as_bytes());
        assert!(lines.line.is_empty());
        match &found[..] {
            [line @ Line::TooLong(_)] => line.clone().into_incoming().remove(0),
            other => panic!("{other:?}"),
        }
    }

    // contract: R10
    #[test]
    fn a_line_over_the_limit_is_still_owed_to_its_request() {
        let big = "x".repeat(50_000);
        let nested = r#"{\"id\":5}\\"#.repeat(5_000);
        for (line, id) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{big}"}}"#),
                Some(1),
            ),
            (
                format!(r#"{{"result":"{big}","id":1,"jsonrpc":"2.0"}}"#),
                Some(1),
            ),
            (
                format!(r#"{{"result":"{nested}","jsonrpc":"2.0", "id" : 1 }}  "#),
                Some(1),
            ),
            (
                format!(r#"{{"result":{{"a":[{{"id":5,"b":"{big}"}}]}},"id":1}}"#),
                Some(1),
            ),
            (
                format!(r#"{{"result":["{big}",{{"id":5}}],"jsonrpc":"2.0"}}"#),
                None,
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","result":{{"id":5,"b":"{big}"}}}}"#),
                None,
            ),
            (
                format!(r#"log: {{"jsonrpc":"2.0","id":1,"result":"{big}"}}"#),
                Some(1),
            ),
        ] {
            let id = id.map(RequestId::Number);
            let bytes = line.len() as u64;
            let expected = Incoming::Oversized { id, bytes };
            assert_eq!(too_long(&line, 10_000), expected, "{}", &line[..60]);
        }
        for line in [
            big.clone(),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":"{big}"}}"#),
            format!(r#"{{"level":"{big}"}}"#),
        ] {
            assert!(
                matches!(too_long(&line, 10_000), Incoming::Noise(_)),
                "{}",
                &line[..60]
            );
        }
    }

    #[test]
    fn the_limit_is_exact() {
        let mut lines = Lines::new(3);
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(
            lines.feed(b"abc\r\n"),
            [Line::TooLong(Discarded::new(b"abc\r"))]
        );
        assert_eq!(
            lines.feed(b"abc\nab\r\n\nabcd\na"),
            [
                whole("abc"),
                whole("ab"),
                whole(""),
                Line::TooLong(Discarded::new(b"abcd")),
            ]
        );
        assert_eq!(lines.finish(), Some(whole("a")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn any_cut_of_the_bytes_gives_the_same_lines(
            pieces in proptest::collection::vec("[a{\"\\\\:,1\r\n]{0,12}|[xy]{4000,9000}", 0..8),
            cuts in proptest::collection::vec(1usize..6000, 1..40),
        ) {
            let bytes = pieces.concat().into_bytes();
            let mut whole = Lines::new(5000);
            let mut expected = whole.feed(&bytes);
            expected.extend(whole.finish());
            let mut lines = Lines::new(5000);
            let (mut found, mut rest) = (Vec::new(), &bytes[..]);
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at(rest.len().min(*cut));
                found.extend(lines.feed(now));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            found.extend(lines.finish());
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_long_line_is_the_same_when_it_is_read_in_place(
            pieces in proptest::collection::vec("[a\r\n]{0,3}|[xy]{200,300}", 0..8),
            cuts in proptest::collection::vec(1usize..400_000, 1..40),
            limit in 60_000usize..800_000,
        ) {
            let bytes = pieces
                .iter()
                .map(|piece| if piece.len() > 3 { piece.repeat(700) } else { piece.clone() })
                .collect::<String>()
                .into_bytes();
            let mut whole = Lines::new(limit);
            let mut expected = whole.feed(&bytes);
            expected.extend(whole.finish());
            let mut lines = Lines::new(limit);
            let (mut found, mut rest) = (Vec::new(), &bytes[..]);
            for cut in cuts.iter().cycle() {
                let (mut now, mut later) = rest.split_at(rest.len().min(*cut));
                let in_place = lines.rest().map(|mut room| {
                    let length = now.len().min(room.remaining_mut());
                    (now, later) = rest.split_at(length);
                    room.put_slice(now);
                    length
                });
                found.extend(match in_place {
                    Some(length) => lines.grown(length),
                    None => lines.feed(now),
                });
                prop_assert!(lines.buffered() <= limit.max(2 * ENDS));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            found.extend(lines.finish());
            prop_assert_eq!(found, expected);
        }

        // contract: R11
        #[test]
        fn what_is_left_of_any_bytes_is_something(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            Discarded::new(&bytes).into_incoming();
        }

        #[test]
        fn what_is_left_of_almost_json_is_something(text in "(\\{\"jsonrpc\":\"2.0\",|\"id\":1|\"result\":|[{}\\[\\]:,\"\\\\]|é|NaN){0,30}") {
            Discarded::new(text.as_bytes()).into_incoming();
        }
    }
}
