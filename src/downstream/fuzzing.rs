//! The laws of what servers send over a stream: lines, events and the messages in them.

use rmcp::model::RequestId;
use serde::de::IgnoredAny;

use super::event::{Data, Event, Events};
use super::line::{Line, Lines};
use super::wire::Incoming;
use crate::fuzzing::cuts;
use crate::json;

/// A small limit, which inputs reach, and one that they do not.
const LIMITS: [usize; 2] = [48, 1 << 20];

/// What a stream may hold beyond its limit: the ends of what it threw away.
const ENDS: usize = 2 * 4096;

/// Takes the stdout of a server. The same bytes are the same messages in any cut, nothing is kept
/// beyond the limit, a line spoils only itself, and a spoiled response is owed to its request.
// contract: D4, R10, R11
pub(crate) fn wire(bytes: &[u8]) {
    for limit in LIMITS {
        let whole = lines(limit, &[bytes]);
        for pieces in cuts(bytes) {
            assert_eq!(lines(limit, &pieces), whole);
        }
        whole
            .into_iter()
            .flat_map(Line::into_incoming)
            .for_each(|incoming| is_usable(&incoming));
    }
    a_line_spoils_only_itself(bytes);
    a_spoiled_response_is_owed(bytes);
}

fn lines(limit: usize, pieces: &[&[u8]]) -> Vec<Line> {
    let mut lines = Lines::new(limit);
    let mut found = Vec::new();
    for piece in pieces {
        found.extend(lines.feed(piece));
        assert!(lines.buffered() <= limit.max(ENDS));
    }
    found.extend(lines.finish());
    for line in &found {
        match line {
            Line::Whole(line) => assert!(line.len() <= limit),
            Line::TooLong(discarded) => assert!(discarded.bytes() > limit as u64),
        }
    }
    found
}

fn is_usable(incoming: &Incoming) {
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    match incoming {
        Incoming::Result { result, .. } => {
            let result = result.get();
            assert!(is_json(result), "{result}");
            assert!(json::depth(result).is_some_and(|depth| depth <= crate::result::MAX_DEPTH));
        }
        Incoming::Call { message, .. } => assert!(is_json(message), "{message}"),
        Incoming::Error { message, .. } => assert!(message.len() < 17 * 1024),
        Incoming::Broken { why: text, .. } | Incoming::Noise(text) => {
            assert!(text.len() < 400, "{text}");
        }
        Incoming::Oversized { .. } => {}
    }
}

fn a_line_spoils_only_itself(bytes: &[u8]) {
    let response = br#"{"jsonrpc":"2.0","id":"next","result":{"a":1}}"#;
    let stream = [bytes, b"\n", response, b"\n"].concat();
    let last = Lines::new(1 << 20)
        .feed(&stream)
        .into_iter()
        .flat_map(Line::into_incoming)
        .last();
    let expected = Incoming::Result {
        id: RequestId::String("next".into()),
        result: r#"{"a":1}"#.to_owned().into(),
    };
    assert_eq!(last, Some(expected));
}

/// Whatever stands where a result should: the request that waits for it hears of it.
fn a_spoiled_response_is_owed(bytes: &[u8]) {
    let says = |word: &str| {
        bytes
            .windows(word.len())
            .any(|found| found == word.as_bytes())
    };
    if bytes.contains(&b'\n') || says(r#""id""#) || says(r#""method""#) {
        return;
    }
    let line = [br#"{"jsonrpc":"2.0","id":7,"result":"#, bytes, b"}\n"].concat();
    for limit in [line.len(), 8] {
        let found = Lines::new(limit).feed(&line).remove(0).into_incoming();
        match &found[0] {
            Incoming::Result { id, .. }
            | Incoming::Error { id: Some(id), .. }
            | Incoming::Broken { id: Some(id), .. }
            | Incoming::Oversized { id: Some(id), .. } => assert_eq!(*id, RequestId::Number(7)),
            other => panic!("{other:?}"),
        }
    }
}

/// Takes the body of a `text/event-stream`. The same bytes are the same events in any cut, nothing
/// is kept beyond the limit, an event leaves nothing behind, and data come out as they were put in.
// contract: R10, R11
pub(crate) fn sse_stream(bytes: &[u8]) {
    for limit in LIMITS {
        let whole = events(limit, &[bytes]);
        for pieces in cuts(bytes) {
            assert_eq!(events(limit, &pieces), whole);
        }
        for event in whole {
            assert_ne!(event, Event::default());
            if let Data::Whole(data) = &event.data {
                // An only line may be as long as a line may be.
                assert!(data.len() <= limit + super::event::FIELD);
            }
            event.data.into_incoming().iter().for_each(is_usable);
        }
    }
    an_event_leaves_nothing_behind(bytes);
    data_come_out_as_they_were_put_in(bytes);
}

fn events(limit: usize, pieces: &[&[u8]]) -> Vec<Event> {
    let mut events = Events::new(limit);
    pieces.iter().flat_map(|piece| events.feed(piece)).collect()
}

fn an_event_leaves_nothing_behind(bytes: &[u8]) {
    let stream = [bytes, b"\n\ndata: next\n\n"].concat();
    let expected = Event {
        data: Data::Whole(b"next".to_vec()),
        ..Event::default()
    };
    assert_eq!(events(1 << 20, &[&stream]).last(), Some(&expected));
}

fn data_come_out_as_they_were_put_in(bytes: &[u8]) {
    if bytes.contains(&b'\r') {
        return;
    }
    let mut stream = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        stream.extend_from_slice(b"data: ");
        stream.extend_from_slice(line);
        stream.push(b'\n');
    }
    stream.push(b'\n');
    let expected = Event {
        data: Data::Whole(bytes.to_vec()),
        ..Event::default()
    };
    assert_eq!(events(1 << 20, &[&stream]), [expected]);
}
