//! Bytes from the client: cut into lines, and each line into a message or the error it is owed.
//!
//! Pure: knows nothing of where bytes come from, of the handshake, or of tools. rmcp's own reader
//! drops what it cannot decode, which leaves the client waiting; here every request that can still
//! be told apart gets an answer.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ErrorCode, JsonRpcMessage,
    JsonRpcRequest,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// The longest line that is read. A program is a few kilobytes; this leaves room for one that
/// carries data, and bounds what a client can make us hold.
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;

/// What one line turned out to be.
#[derive(Debug)]
pub(crate) enum Decoded {
    Message(Box<ClientJsonRpcMessage>),
    /// Not for the service: this JSON-RPC error goes back as it is.
    Reply(String),
    /// Nothing that anybody waits for; the reason is for the log.
    Ignored(String),
}

/// One line off the stream, without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Bytes),
    /// Over the limit, and not kept; `id` is the JSON text of the request's id, where it had one.
    TooLong {
        id: Option<String>,
    },
}

/// Cuts a stream into lines, never holding more than the limit and one read.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    limit: usize,
    /// Set while the rest of an over-long line passes by.
    skipping: Option<IdScan>,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            skipping: None,
        }
    }

    /// Where the next read puts its bytes.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next line that is complete; `None` asks for more bytes.
    pub(crate) fn next_line(&mut self) -> Option<Line> {
        let end = self.buffer[self.searched..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|offset| self.searched + offset);
        let Some(end) = end else {
            self.searched = self.buffer.len();
            if self.skipping.is_some() || self.buffer.len() > self.limit {
                self.skip_buffered();
            }
            return None;
        };
        let mut line = self.buffer.split_to(end + 1).freeze();
        self.searched = 0;
        line.truncate(end);
        Some(self.finish_line(line))
    }

    /// What stands after the last line end once the stream has ended: a client that pipes one
    /// message may leave the line end out.
    pub(crate) fn last_line(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.searched = 0;
        (!rest.is_empty() || self.skipping.is_some()).then(|| self.finish_line(rest))
    }

    fn finish_line(&mut self, line: Bytes) -> Line {
        let scan = match self.skipping.take() {
            None if line.len() <= self.limit => return Line::Whole(line),
            skipping => skipping.unwrap_or_default(),
        };
        Line::TooLong {
            id: scan.feed(&line).id(),
        }
    }

    fn skip_buffered(&mut self) {
        let scan = self.skipping.take().unwrap_or_default();
        self.skipping = Some(scan.feed(&self.buffer));
        // A fresh buffer, so that the memory of the long line goes now and not with the stream.
        self.buffer = BytesMut::new();
        self.searched = 0;
    }
}

/// Finds a top-level `"id"` in an object that passes by in pieces. Clients put it first or last
/// (the TypeScript SDK: last), so neither end of the line alone will do.
#[derive(Debug, Default)]
struct IdScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The top-level string read last, while it may still turn out to be a key.
    string: Vec<u8>,
    /// Set from the colon after a top-level `"id"` to the end of its value.
    capturing: bool,
    value: Vec<u8>,
}

/// Longer ids exist nowhere, and what is kept of a hostile one must end somewhere.
const MAX_ID: usize = 256;

impl IdScan {
    fn feed(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.step(*byte);
        }
        self
    }

    fn step(&mut self, byte: u8) {
        let top = self.depth == 1;
        if self.in_string {
            self.keep(byte, top);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if !self.capturing {
                    self.string.clear();
                }
                self.keep(byte, top);
            }
            b':' if top => {
                self.capturing = self.string == b"\"id\"";
                if self.capturing {
                    self.value.clear();
                }
            }
            b',' if top => self.end_member(),
            b'{' | b'[' => {
                self.capturing = false;
                self.depth += 1;
            }
            b'}' | b']' => {
                if top {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            _ => self.keep(byte, top),
        }
    }

    fn keep(&mut self, byte: u8, top: bool) {
        let (kept, limit) = match (self.capturing, self.in_string) {
            (true, _) => (&mut self.value, MAX_ID),
            (false, true) if top => (&mut self.string, "\"id\"".len() + 1),
            _ => return,
        };
        if kept.len() < limit {
            kept.push(byte);
        }
    }

    fn end_member(&mut self) {
        self.capturing = false;
        self.string.clear();
    }

    /// The id's JSON text, if it is one that a reply may carry.
    fn id(self) -> Option<String> {
        let text = String::from_utf8(self.value).ok()?;
        echoable(text.trim())
    }
}

/// The members of a JSON-RPC message that say what it is, read without looking into any of them.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

/// Keeps `"id": null` apart from no id: the first is a bad request, the second a notification.
fn present<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(input).map(Some)
}

/// The requests that are served; every other method does not exist here.
const METHODS: [&str; 6] = [
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// Turns one line into a message, or into what it is owed instead.
pub(crate) fn decode(line: &[u8]) -> Decoded {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let line = line.trim_ascii();
    if line.is_empty() {
        return Decoded::Ignored("an empty line".to_owned());
    }
    let Ok(text) = std::str::from_utf8(line) else {
        // The envelope is ASCII, so the id can be read even where a string inside is broken.
        let lossy = String::from_utf8_lossy(line);
        let id = envelope(&lossy).and_then(|envelope| envelope.id.map(ToOwned::to_owned));
        return Decoded::Reply(error_reply(
            ErrorCode::PARSE_ERROR,
            "the message is not valid UTF-8",
            id.as_deref(),
        ));
    };
    let failure = match serde_json::from_str::<ClientJsonRpcMessage>(text) {
        Ok(JsonRpcMessage::Request(JsonRpcRequest {
            request: ClientRequest::CustomRequest(request),
            ..
        })) => return undispatched(text, &request.method),
        Ok(message) => return Decoded::Message(Box::new(message)),
        Err(error) => error,
    };
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Decoded::Reply(error_reply(
            ErrorCode::PARSE_ERROR,
            &format!("the line is not JSON: {error}"),
            None,
        ));
    }
    if text.starts_with('[') {
        return Decoded::Reply(error_reply(
            ErrorCode::INVALID_REQUEST,
            "batches are not supported: send each message on a line of its own",
            None,
        ));
    }
    let Some(envelope) = envelope(text) else {
        return Decoded::Reply(error_reply(
            ErrorCode::INVALID_REQUEST,
            "the line is not a JSON-RPC message",
            None,
        ));
    };
    match envelope {
        // Whoever answers us is not answered, and neither is a notification: errors about errors
        // would go back and forth for ever.
        Envelope { method: None, .. } if envelope.result.is_some() || envelope.error.is_some() => {
            Decoded::Ignored(format!("an answer that cannot be read: {failure}"))
        }
        Envelope { id: None, .. } if envelope.method.is_some() => {
            Decoded::Ignored(format!("a notification that cannot be read: {failure}"))
        }
        Envelope { id, .. } => Decoded::Reply(error_reply(
            ErrorCode::INVALID_REQUEST,
            &format!("the line is not a valid JSON-RPC 2.0 request: {failure}"),
            id,
        )),
    }
}

/// The answer to a line that was too long to keep.
pub(crate) fn too_long_reply(id: Option<&str>) -> String {
    let id = id.and_then(|id| serde_json::from_str::<&RawValue>(id).ok());
    error_reply(
        ErrorCode::INVALID_REQUEST,
        &format!("the message is longer than {MAX_LINE} bytes and was not read"),
        id,
    )
}

/// A request that no typed request matched: an unknown method, or a known one whose parameters
/// are not what the protocol says.
fn undispatched(text: &str, method: &str) -> Decoded {
    let envelope = envelope(text);
    let id = envelope.as_ref().and_then(|envelope| envelope.id);
    if !METHODS.contains(&method) {
        let message = format!("unknown method {}", quoted(method));
        return Decoded::Reply(error_reply(ErrorCode::METHOD_NOT_FOUND, &message, id));
    }
    let params = envelope.as_ref().and_then(|envelope| envelope.params);
    if method == "tools/call"
        && let Some(repaired) = unstring_arguments(text)
    {
        return repaired;
    }
    let detail = match (method, params) {
        ("tools/call", Some(params)) => serde_json::from_str::<CallToolRequestParams>(params.get())
            .err()
            .map(|error| format!(": {error}")),
        _ => None,
    };
    let message = format!(
        "the parameters of '{method}' are not as the protocol says{}",
        detail.unwrap_or_default()
    );
    Decoded::Reply(error_reply(ErrorCode::INVALID_PARAMS, &message, id))
}

/// Some clients send a call's whole `arguments` object as a string of JSON.
fn unstring_arguments(text: &str) -> Option<Decoded> {
    let mut message: Value = serde_json::from_str(text).ok()?;
    let arguments = message.pointer_mut("/params/arguments")?;
    let object: Value = serde_json::from_str(arguments.as_str()?).ok()?;
    if !object.is_object() {
        return None;
    }
    *arguments = object;
    let message: ClientJsonRpcMessage = serde_json::from_value(message).ok()?;
    match &message {
        JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::CallToolRequest(_)) =>
        {
            Some(Decoded::Message(Box::new(message)))
        }
        _ => None,
    }
}

fn envelope(text: &str) -> Option<Envelope<'_>> {
    serde_json::from_str(text).ok()
}

/// The client's own words as an answer may repeat them, however long they are.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 100;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("'{}…'", &text[..end]),
        None => format!("'{text}'"),
    }
}

/// An error reply with `"id": null` where there is no id, as JSON-RPC has it; rmcp's own type
/// would leave the member out.
fn error_reply(code: ErrorCode, message: &str, id: Option<&RawValue>) -> String {
    let id = id.and_then(|id| echoable(id.get()));
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{},"message":{}}}}}"#,
        id.as_deref().unwrap_or("null"),
        code.0,
        Value::from(message),
    )
}

/// The text of an id as a reply may repeat it: a string or a number, and nothing else.
fn echoable(id: &str) -> Option<String> {
    match serde_json::from_str::<Value>(id).ok()? {
        value @ (Value::String(_) | Value::Number(_)) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        for piece in pieces {
            lines.buffer().extend_from_slice(piece);
            while let Some(line) = lines.next_line() {
                found.push(line);
            }
            assert!(lines.buffer.len() <= limit + piece.len());
        }
        found.extend(lines.last_line());
        found
            .into_iter()
            .map(|line| match line {
                Line::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                Line::TooLong { id } => format!("too long, id {}", id.unwrap_or("-".into())),
            })
            .collect()
    }

    #[test]
    fn a_stream_is_cut_into_lines() {
        let cases: &[(&[&[u8]], &[&str])] = &[
            (&[b"a\nb\n"], &["a", "b"]),
            (&[b"a", b"b\nc", b"\n"], &["ab", "c"]),
            (&[b"a\n\nb"], &["a", "", "b"]),
            (&[b"a\r\n"], &["a\r"]),
            (&[], &[]),
            (&[b"1234567890"], &["1234567890"]),
            (&[b"12345678901\nok\n"], &["too long, id -", "ok"]),
            (&[b"123456789", b"01", b"23\nok"], &["too long, id -", "ok"]),
            (&[b"12345678901"], &["too long, id -"]),
        ];
        for (pieces, expected) in cases {
            assert_eq!(lines(10, pieces), *expected, "{pieces:?}");
        }
    }

    // contract: S8
    #[test]
    fn the_id_of_a_line_that_is_too_long_is_found_wherever_it_stands() {
        let cases: &[(&str, &str)] = &[
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":8}}"#,
                "7",
            ),
            (
                r#"{"method":"m","params":{"id":8},"jsonrpc":"2.0","id":7}"#,
                "7",
            ),
            (
                r#"{ "params" : [ {"id":1} ] , "id" : "a,\"b}" }"#,
                r#""a,\"b}""#,
            ),
            (r#"{"params":{"code":"{\"id\":3}"},"id":4}"#, "4"),
            (r#"{"params":"id","x":":","id":-5}"#, "-5"),
            (r#"{"params":{"id":8}}"#, "-"),
            (r#"{"x":"id","method":"notification here"}"#, "-"),
            (r#"{"id":{"a":1},"method":"no valid id"}"#, "-"),
            (r#"{"id":null,"method":"no valid id either"}"#, "-"),
            ("this is no JSON at all, id: 3", "-"),
        ];
        for (line, id) in cases {
            let expected = [format!("too long, id {id}"), "next".to_owned()];
            let text = format!("{line}\nnext\n");
            assert_eq!(lines(10, &[text.as_bytes()]), expected, "{line}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(lines(10, &bytes), expected, "{line}, byte by byte");
        }
    }

    fn summary(line: &[u8]) -> String {
        match decode(line) {
            Decoded::Message(message) => match *message {
                JsonRpcMessage::Request(request) => format!("request {}", request.request.method()),
                JsonRpcMessage::Notification(_) => "notification".to_owned(),
                JsonRpcMessage::Response(_) => "response".to_owned(),
                JsonRpcMessage::Error(_) => "error".to_owned(),
            },
            Decoded::Reply(reply) => {
                let reply: Value = serde_json::from_str(&reply).unwrap();
                assert_eq!(reply["jsonrpc"], "2.0");
                assert!(reply["error"]["message"].is_string());
                format!("reply {} {}", reply["id"], reply["error"]["code"])
            }
            Decoded::Ignored(_) => "ignored".to_owned(),
        }
    }

    // contract: S8
    #[test]
    fn a_line_is_a_message_or_gets_its_answer() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{}{}}}}}}}"#,
            "[".repeat(5000),
            "]".repeat(5000)
        );
        let cases: &[(&[u8], &str)] = &[
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request ping"),
            (br#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#, "request tools/list"),
            (b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r", "request ping"),
            (br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notification"),
            (br#"{"jsonrpc":"2.0","method":"notifications/whatever"}"#, "notification"),
            (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response"),
            (br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#, "error"),
            (b"", "ignored"),
            (b"  \r", "ignored"),
            // Not JSON.
            (b"hello", "reply null -32700"),
            (br#"{"jsonrpc":"2.0","id":1,"method""#, "reply null -32700"),
            (b"[1,", "reply null -32700"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}", "reply 1 -32700"),
            (b"\xff\xfe", "reply null -32700"),
            // JSON, but no message.
            (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "reply null -32600"),
            (b"[]", "reply null -32600"),
            (b"1", "reply null -32600"),
            (b"{}", "reply null -32600"),
            (br#"{"id":3,"method":"ping"}"#, "reply 3 -32600"),
            (br#"{"jsonrpc":"1.0","id":"x","method":"ping"}"#, r#"reply "x" -32600"#),
            (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "reply null -32600"),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "reply 1.5 -32600"),
            (br#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#, "reply 99999999999999999999 -32600"),
            (br#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, "reply null -32600"),
            (br#"{"jsonrpc":"2.0","id":1,"method":5}"#, "reply null -32600"),
            (br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{"code":"\ud800"}}}"#, "reply 2 -32600"),
            (deep.as_bytes(), "reply 1 -32600"),
            (br#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#, "ignored"),
            (br#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "ignored"),
            // A method or its parameters.
            (br#"{"jsonrpc":"2.0","id":4,"method":"no/such"}"#, "reply 4 -32601"),
            (br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}"#, "reply 5 -32602"),
            (br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":[1]}}"#, "reply 5 -32602"),
            (br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":"y"}}"#, "reply 5 -32602"),
            (br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":"{\"a\":1}"}}"#, "request tools/call"),
            (br#"{"jsonrpc":"2.0","id":6,"method":"initialize","params":{}}"#, "reply 6 -32602"),
        ];
        for (line, expected) in cases {
            let shown = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
            assert_eq!(summary(line), *expected, "{shown}");
        }
    }

    #[test]
    fn every_prefix_of_a_message_is_answered() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u00e9\ud83d\ude00","arguments":{"a":[1,2]}}}"#;
        for end in 1..line.len() {
            assert_eq!(summary(&line[..end]), "reply null -32700", "{end}");
        }
        assert_eq!(summary(line), "request tools/call");
    }
}
