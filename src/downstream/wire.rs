//! A line of a server into JSON-RPC messages, or into the error owed to the request that it spoils.
//!
//! Pure: bytes in, values out. It knows neither where the bytes came from nor which requests are
//! in flight. A result is never typed here: it stays the text that the server wrote, so numbers,
//! key order and escapes survive, and a server whose content rmcp would not understand is still
//! understood by us.

use std::ops::Range;

use rmcp::model::RequestId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::scan;
use super::words::Words;
use crate::json::{self, Json, Scanner};

/// How deep an answer may nest; the same bound holds everywhere in ptc-mcp.
const MAX_DEPTH: usize = 512;

/// How many `{` of a line that is no JSON are tried as the start of a message glued to log text.
const GLUE_ATTEMPTS: usize = 64;

/// How many bytes may be looked at again for that, unless it is once: what fails at the end of a long
/// line does so over and over.
const GLUE_BYTES: usize = 256 * 1024;

/// How many pieces of noise of one line are worth a word in the log.
const NOISE_NOTED: usize = 4;

/// How much of a JSON-RPC error's message is kept: it ends up in front of a model.
const MAX_ERROR_MESSAGE: usize = 16 * 1024;

/// One thing that a server said.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    /// The `result` of a response, as written.
    Result { id: RequestId, result: Json },
    /// A JSON-RPC error. Without an id when the server could not read ours.
    Error {
        id: Option<RequestId>,
        code: i64,
        message: Words,
    },
    /// A request of the server.
    Request { id: RequestId, method: String },
    /// A notification of the server, whole.
    Notification { method: String, message: String },
    /// A response that cannot be used. Without an id when that, too, was lost.
    Broken { id: Option<RequestId>, why: Words },
    /// A response that was longer than the limit and was not stored.
    Oversized { id: Option<RequestId>, bytes: u64 },
    /// Not JSON-RPC at all: log output, usually. An excerpt for our log.
    Noise(Words),
}

/// Reads one line, event or body: a message, several of them, a batch, or none.
pub(super) fn decode(bytes: Vec<u8>) -> Vec<Incoming> {
    // Invalid UTF-8 inside a string spoils that string at most, so it is replaced, not refused.
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let found = classify(&text);
    // The usual case is one response a line, and it may be huge: its text is moved, not copied.
    if let [Found::Result { id, range }] = &found[..] {
        let (id, range) = (id.clone(), range.clone());
        let result = Json::part(text, range);
        return vec![Incoming::Result { id, result }];
    }
    found
        .into_iter()
        .map(|found| match found {
            Found::Result { id, range } => Incoming::Result {
                id,
                result: text[range].to_owned().into(),
            },
            Found::Other(incoming) => incoming,
        })
        .collect()
}

/// As [`Incoming`], with a result by its place in the text.
enum Found {
    Result { id: RequestId, range: Range<usize> },
    Other(Incoming),
}

fn classify(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut noise = 0;
    let mut note = |found: &mut Vec<Found>, text: &str| {
        // The brackets and commas are those of a batch, as 2025-03-26 allowed.
        let filler = |c: char| c.is_whitespace() || "[,]\u{feff}\0".contains(c);
        if noise < NOISE_NOTED && !text.chars().all(filler) {
            noise += 1;
            found.push(Found::Other(Incoming::Noise(Words::excerpt(text.trim()))));
        }
    };
    let (mut noise_start, mut at, mut attempts, mut again) = (0, 0, 0, 0);
    while attempts < GLUE_ATTEMPTS
        && again <= GLUE_BYTES.max(text.len())
        && let Some(offset) = next_start(&text[at..])
    {
        let start = at + offset;
        let rest = &text[start..];
        if let Some((envelope, length)) = Envelope::prefix(rest) {
            at = start + length;
            if let Some(message) = envelope.read(&text[start..at], start) {
                note(&mut found, &text[noise_start..start]);
                found.push(message);
                noise_start = at;
            }
        } else if rest.contains("\"jsonrpc\"") && scan::looks_like_a_message(rest.as_bytes()) {
            // Broken JSON has no end that could be trusted: it takes the rest of the line with it.
            if scan::is_response(rest.as_bytes()) {
                note(&mut found, &text[noise_start..start]);
                found.push(Found::Other(Incoming::Broken {
                    id: scan::id_from_head(rest.as_bytes()),
                    why: Words::excerpt(&broken_json(rest)),
                }));
                return found;
            }
            break;
        } else {
            at = start + 1;
            attempts += 1;
            again += rest.len();
        }
    }
    note(&mut found, &text[noise_start..]);
    found
}

/// Where a message could begin.
pub(super) fn next_start(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len())
        .find(|&i| bytes[i] == b'{' && bytes[i + 1..].trim_ascii_start().first() == Some(&b'"'))
}

fn read_error(id: Option<RequestId>, raw: &str) -> Incoming {
    #[derive(Deserialize)]
    struct ErrorObject<'a> {
        #[serde(borrow, default)]
        code: Option<&'a RawValue>,
        #[serde(borrow, default)]
        message: Option<&'a RawValue>,
    }
    let malformed = || Incoming::Broken {
        id: id.clone(),
        why: Words::excerpt(&format!("a malformed error object: {raw}")),
    };
    let Ok(ErrorObject { code, message }) = serde_json::from_str(raw) else {
        return malformed();
    };
    if code.is_none() && message.is_none() {
        return malformed();
    }
    let code = code.and_then(|raw| raw.get().trim_matches('"').parse().ok());
    let message = match message {
        Some(text) => serde_json::from_str(text.get()).unwrap_or_else(|_| text.get().to_owned()),
        None => String::from("no message"),
    };
    Incoming::Error {
        id,
        code: code.unwrap_or(0),
        message: Words::first(MAX_ERROR_MESSAGE, &message, 0),
    }
}

/// A request id as our side writes them: a string or an integer.
pub(super) fn read_id(raw: &str) -> Option<RequestId> {
    if raw.starts_with('"') {
        let text: String = serde_json::from_str(raw).ok()?;
        return Some(RequestId::String(text.into()));
    }
    if let Ok(number) = raw.parse() {
        return Some(RequestId::Number(number));
    }
    // `1.0` is what some JSON libraries make of 1.
    let number: f64 = raw.parse().ok()?;
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(RequestId::Number(number as i64))
}

fn broken_json(text: &str) -> String {
    match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) => format!("it is not valid JSON: {error}"),
        Ok(_) => String::from("it is not valid JSON"),
    }
}

/// The members of a JSON-RPC message that say what it is. A repeated key counts by its last
/// value, as it does for Python.
#[derive(Default)]
struct Envelope<'a> {
    versioned: bool,
    id: Option<&'a str>,
    method: Option<&'a str>,
    result: Option<&'a str>,
    /// How many levels the result has.
    depth: usize,
    error: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    /// The object at the start of the text, and its length.
    fn prefix(text: &'a str) -> Option<(Self, usize)> {
        let mut envelope = Self::default();
        let mut scanner = Scanner::new(text);
        scanner.object(|key, value, depth| match key {
            "\"jsonrpc\"" => envelope.versioned = true,
            "\"id\"" => envelope.id = Some(value),
            "\"method\"" => envelope.method = Some(value),
            "\"result\"" => (envelope.result, envelope.depth) = (Some(value), depth),
            "\"error\"" => envelope.error = Some(value),
            _ => {}
        })?;
        Some((envelope, scanner.position()))
    }

    /// The message that this object is, or `None` if it is some other object.
    fn read(&self, object: &str, start: usize) -> Option<Found> {
        let broken = |id, why: &str| {
            let why = Words::excerpt(why);
            Some(Found::Other(Incoming::Broken { id, why }))
        };
        let id = self.id.and_then(read_id);
        if let Some(method) = self.method {
            // An object with a method but no version is somebody's log record.
            let method = serde_json::from_str(method).ok()?;
            let said = match id {
                Some(id) => Incoming::Request { id, method },
                None => Incoming::Notification {
                    method,
                    message: object.to_owned(),
                },
            };
            return self.versioned.then_some(Found::Other(said));
        }
        let error = self.error.filter(|raw| *raw != "null");
        match (self.result, error, id) {
            (None | Some("null"), Some(error), id) => (self.versioned || error.starts_with('{'))
                .then(|| Found::Other(read_error(id, error))),
            (Some(result), None, Some(id)) => {
                if self.depth > MAX_DEPTH {
                    let why = format!("it is nested more than {MAX_DEPTH} levels deep");
                    return broken(Some(id), &why);
                }
                let range = json::place(object, result);
                let range = start + range.start..start + range.end;
                Some(Found::Result { id, range })
            }
            (Some(_), Some(_), id) => broken(id, "it has both a result and an error"),
            _ if !self.versioned => None,
            (Some(_), None, None) => broken(None, "it has no id"),
            (None, None, id) => broken(id, "it has neither a result nor an error"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn result(id: i64, result: &str) -> Incoming {
        let (id, result) = (RequestId::Number(id), result.to_owned().into());
        Incoming::Result { id, result }
    }

    fn error(id: i64, code: i64, message: &str) -> Incoming {
        Incoming::Error {
            id: Some(RequestId::Number(id)),
            code,
            message: Words::excerpt(message),
        }
    }

    fn noise(text: &str) -> Incoming {
        Incoming::Noise(Words::excerpt(text))
    }

    fn notification(method: &str, message: &str) -> Incoming {
        let (method, message) = (method.to_owned(), message.to_owned());
        Incoming::Notification { method, message }
    }

    /// A reason is compared by a word of it.
    fn broken(id: Option<i64>, word: &str) -> Incoming {
        Incoming::Broken {
            id: id.map(RequestId::Number),
            why: Words::excerpt(word),
        }
    }

    #[track_caller]
    fn check(line: impl AsRef<[u8]>, mut expected: Vec<Incoming>) {
        let line = line.as_ref();
        let found = decode(line.to_vec());
        for (found, expected) in found.iter().zip(&mut expected) {
            if let (Incoming::Broken { why, .. }, Incoming::Broken { why: word, .. }) =
                (found, expected)
                && why.says(word)
            {
                word.clone_from(why);
            }
        }
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(line));
    }

    // contract: R8, R11
    #[test]
    fn results_come_through_as_written() {
        let whole = |raw: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{raw}}}"#);
            check(line, vec![result(7, raw)]);
        };
        whole("{}");
        whole("null");
        whole(r#"{"b":1,"a":123456789012345678901234567890,"c":0.1000,"d":1e999}"#);
        whole(r#"{"a":1,"a":2}"#);
        whole(r#"{"text":"\ud800 lone, \u00e9 é, {\"id\":9}"}"#);
        whole("{ \"spaced\" :\t[ ] }");
        whole(&format!("{}1{}", "[".repeat(512), "]".repeat(512)));
    }

    // contract: D4, R11
    #[test]
    fn lines() {
        let ok = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#;
        let one = || result(1, r#"{"a":1}"#);
        // Envelopes, proper and nearly so.
        check(r#"{"result":{"a":1},"id":1,"jsonrpc":"2.0"}"#, vec![one()]);
        check(r#"{"id":1,"result":{"a":1}}"#, vec![one()]);
        check(
            r#"{"jsonrpc":"2.0","id":1.0,"result":{"a":1},"error":null}"#,
            vec![one()],
        );
        check(
            r#"{"jsonrpc":"2.0","id":9,"id":1,"result":{"a":1}}"#,
            vec![one()],
        );
        // Nobody's id, least of all that of request 1.
        check(
            r#"{"jsonrpc":"2.0","id":1.5,"result":{"a":1}}"#,
            vec![broken(None, "it has no id")],
        );
        check(format!("\u{feff}{ok}\0\r"), vec![one()]);
        check(
            r#"{"jsonrpc":"2.0","id":"x","result":3}"#,
            vec![Incoming::Result {
                id: RequestId::String("x".into()),
                result: "3".to_owned().into(),
            }],
        );
        // Errors.
        check(
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#,
            vec![error(1, -32602, "no")],
        );
        check(
            r#"{"id":1,"result":null,"error":{"code":99999999999,"message":"no","data":[]}}"#,
            vec![error(1, 99_999_999_999, "no")],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}"#,
            vec![error(1, 0, "no")],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"-5"}}"#,
            vec![error(1, -5, "no message")],
        );
        check(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
            vec![Incoming::Error {
                id: None,
                code: -32700,
                message: Words::excerpt("?"),
            }],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
            vec![broken(Some(1), "malformed")],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
            vec![broken(Some(1), "malformed")],
        );
        // What the server says by itself.
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
        check(changed, vec![notification("notifications/x", changed)]);
        check(
            r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
            vec![Incoming::Request {
                id: RequestId::Number(3),
                method: "ping".into(),
            }],
        );
        // Broken responses, each owed to a request.
        check(
            r#"{"jsonrpc":"2.0","id":1}"#,
            vec![broken(Some(1), "neither")],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1}}"#,
            vec![broken(Some(1), "both")],
        );
        check(
            r#"{"jsonrpc":"2.0","result":1}"#,
            vec![broken(None, "no id")],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":NaN}"#,
            vec![broken(Some(1), "not valid JSON")],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":"#,
            vec![broken(Some(1), "not valid")],
        );
        check(
            r#"{"jsonrpc":"2.0","result":[-Infinity],"id":"1"}"#,
            vec![Incoming::Broken {
                id: Some(RequestId::String("1".into())),
                why: Words::excerpt("not valid"),
            }],
        );
        check(
            r#"{"jsonrpc":"2.0","result":{"id":5,"x":NaN}}"#,
            vec![broken(None, "not valid")],
        );
        let deep = format!("{}{}", "[".repeat(513), "]".repeat(513));
        check(
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#),
            vec![broken(Some(1), "512 levels")],
        );
        // Text that is no UTF-8 spoils itself only.
        check(
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}",
            vec![result(1, "\"\u{fffd}\"")],
        );
        // Noise, and messages among it.
        check("", vec![]);
        check("  \r", vec![]);
        check("starting up", vec![noise("starting up")]);
        check(
            r#"{"level":"info","msg":"hi"}"#,
            vec![noise(r#"{"level":"info","msg":"hi"}"#)],
        );
        check(
            r#"{"id":3,"error":"disk full"}"#,
            vec![noise(r#"{"id":3,"error":"disk full"}"#)],
        );
        check(
            r#"{"method":"GET","id":3}"#,
            vec![noise(r#"{"method":"GET","id":3}"#)],
        );
        check("{not json}", vec![noise("{not json}")]);
        check(r#"set {"a"} {"b" "#, vec![noise(r#"set {"a"} {"b""#)]);
        check("[1,2]", vec![noise("[1,2]")]);
        check(format!("INFO done{ok}"), vec![noise("INFO done"), one()]);
        check(
            format!(r#"{{"a"}} {{"level":1}}{ok} bye"#),
            vec![noise(r#"{"a"} {"level":1}"#), one(), noise("bye")],
        );
        check(
            r#"log: {"jsonrpc":"2.0","id":1,"result":NaN}"#,
            vec![noise("log:"), broken(Some(1), "not valid")],
        );
        // Several on a line, and a batch.
        check(
            format!("{ok}{changed}{ok}"),
            vec![one(), notification("notifications/x", changed), one()],
        );
        check(
            format!("[{ok}, {changed}]"),
            vec![one(), notification("notifications/x", changed)],
        );
    }

    // contract: D4, R11
    #[test]
    fn a_long_line_is_looked_at_twice_at_most() {
        let ok = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;
        let found = |starts: usize, rest: usize| {
            let glue = r#"{"x":["#.repeat(starts);
            let line = format!("{glue}{ok}{}", "y".repeat(rest));
            let found = decode(line.into_bytes());
            found.contains(&result(1, "1"))
        };
        assert!(found(GLUE_ATTEMPTS - 1, 1000));
        assert!(found(1, 2 * GLUE_BYTES));
        assert!(!found(2, 2 * GLUE_BYTES));
    }

    #[test]
    fn noise_without_end_is_bounded() {
        assert!(decode(r#"{"a":1}"#.repeat(100_000).into_bytes()).len() <= 4);
        assert!(decode(r#"{"a "#.repeat(100_000).into_bytes()).len() <= 4);
    }

    proptest! {
        // contract: R11
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            decode(bytes);
        }

        #[test]
        fn no_almost_json_panics(text in "(\\{\"jsonrpc\":\"2.0\",|\"id\":1|\"result\":|[{}\\[\\]:,\"\\\\]|é|NaN){0,30}") {
            decode(text.into_bytes());
        }
    }
}
