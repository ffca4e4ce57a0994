//! The laws that hold for whatever bytes arrive, one function a fuzz target of the same name
//! (`fuzz/fuzz_targets/`). Each takes any bytes and panics where a law is broken; the tests here
//! replay `fuzz/corpus/`, and mutations of it, on stable. No part of the product: it is compiled for
//! tests and fuzzing.

mod live;
mod shapes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::json;

use crate::catalogue::Catalogue;
use crate::channel::frame::{self, Decoder, FrameError, HEADER};
use crate::channel::{ChannelError, ChildMessage, MAX_CHILD_FRAME};
use crate::config::{self, Config, ToolRules};
use crate::downstream::{self, DownstreamTool};
use crate::result;
use crate::tool::{ServerName, sanitize};

/// See [`result::fuzzing::parse_result`]. The bytes are a result, and once more the choices by which
/// one is put together.
pub fn parse_result(bytes: &[u8]) {
    result::fuzzing::parse_result(bytes);
    if let Some(built) = shapes::result(bytes) {
        result::fuzzing::parse_result(built.as_bytes());
    }
}

/// See [`result::fuzzing::unwrap_result`].
pub fn unwrap_result(bytes: &[u8]) {
    result::fuzzing::unwrap_result(bytes);
}

/// See [`downstream::fuzzing::wire`].
pub fn wire(bytes: &[u8]) {
    downstream::fuzzing::wire(bytes);
}

/// See [`downstream::fuzzing::sse_stream`].
pub fn sse_stream(bytes: &[u8]) {
    downstream::fuzzing::sse_stream(bytes);
}

/// Takes what a child writes. The same bytes are the same frames in any cut, nothing is kept beyond
/// the cap, a decoder that failed stays failed, and what is framed is what is read.
// contract: P9
pub fn channel_framing(bytes: &[u8]) {
    for cap in [12, MAX_CHILD_FRAME] {
        let whole = frames(cap, &[bytes]);
        for pieces in cuts(bytes) {
            assert_eq!(frames(cap, &pieces), whole);
        }
        for body in &whole.0 {
            assert!(!body.is_empty() && body.len() <= cap);
        }
    }
    let bodies: Vec<&[u8]> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|body| !body.is_empty())
        .collect();
    let mut stream = Vec::new();
    for body in &bodies {
        stream.extend(frame::header(body.len()).expect("it is not empty"));
        stream.extend_from_slice(body);
    }
    let (read, failed) = frames(bytes.len().max(1), &[&stream]);
    assert_eq!(read, bodies);
    assert_eq!(failed, None);
}

/// The frames of a stream, and what ended it early.
fn frames(cap: usize, pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Option<FrameError>) {
    let mut decoder = Decoder::new(cap);
    let mut frames = Vec::new();
    for mut piece in pieces.iter().copied() {
        loop {
            match decoder.decode(&mut piece) {
                Ok(Some(body)) => frames.push(body),
                Ok(None) => break,
                Err(error) => {
                    let mut more: &[u8] = b"\0\0\0\x01x";
                    assert_eq!(decoder.decode(&mut more), Err(error.clone()));
                    return (frames, Some(error));
                }
            }
        }
        assert!(piece.is_empty());
        assert!(decoder.buffered() < cap + HEADER);
    }
    (frames, None)
}

/// Takes what a child writes; once more the body of a single frame, and once more the choices by
/// which a conversation is put together. A message is understood as it would be if its members were
/// written out again, and an error is of bounded length. A live engine that hears it ends the run,
/// lets no call past the gate, answers each request once with what it asked for, and keeps no more
/// than the limits allow.
// contract: P9 B1 B2 B3
pub fn frame_from_child(bytes: &[u8]) {
    message(bytes);
    for body in frames(MAX_CHILD_FRAME, &[bytes]).0 {
        message(&body);
    }
    live::engine(bytes);
    live::engine(&framed(bytes));
    if let Some(built) = shapes::conversation(bytes) {
        live::engine(&built);
    }
}

/// Each line as the body of a frame.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    for body in bytes.split(|byte| *byte == b'\n') {
        if let Some(header) = frame::header(body.len()) {
            stream.extend(header);
            stream.extend_from_slice(body);
        }
    }
    stream
}

fn message(body: &[u8]) {
    match ChildMessage::parse(body) {
        Ok(message) => {
            let again = ChildMessage::parse(written_out(&message).as_bytes());
            let again = again.expect("it is written by the rules");
            assert_eq!(format!("{again:?}"), format!("{message:?}"));
        }
        Err(ChannelError::UnknownType(name)) => assert!(name.chars().count() <= 40),
        Err(error) => {
            let error = error.to_string();
            assert!(error.len() < 1000, "{error}");
        }
    }
}

fn written_out(message: &ChildMessage) -> String {
    match message {
        ChildMessage::Ready { version, python } => {
            json!({"type": "ready", "version": version, "python": python}).to_string()
        }
        ChildMessage::Output { text } => json!({"type": "output", "text": text}).to_string(),
        ChildMessage::Call {
            id,
            tool,
            arguments,
        } => {
            let tool = json!(tool);
            format!(r#"{{"type":"call","id":{id},"tool":{tool},"arguments":{arguments}}}"#)
        }
        ChildMessage::Help {
            id,
            name,
            arguments,
        } => {
            let name = json!(name);
            format!(r#"{{"arguments":{arguments},"id":{id},"name":{name},"type":"help"}}"#)
        }
        ChildMessage::Cancel { id } => json!({"type": "cancel", "id": id}).to_string(),
        ChildMessage::Emit { value } => format!(r#"{{"type":"emit","value":{value}}}"#),
        ChildMessage::Done { error } => json!({"type": "done", "error": error}).to_string(),
    }
}

/// What every variable holds while configurations are read.
const SECRET: &str = "s3cr3t hunter2";

/// Takes a configuration file. It is a configuration or a report that names the file; neither shows
/// what a variable holds, and the same text is read the same way twice. A configuration that is
/// written out is read as the same.
// contract: C3, C6
pub fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if text.contains("s3cr3t") {
        return;
    }
    let env = |name: &str| (!name.starts_with("UNSET")).then(|| SECRET.to_owned());
    let read = || Config::parse(&text, Path::new("fuzzed.yaml"), &env);
    match (read(), read()) {
        (Ok(config), Ok(again)) => {
            let shown = format!("{config:?}");
            assert!(!shown.contains("s3cr3t"), "{shown}");
            assert!(config == again);
            let printed = config::print(&config);
            match Config::parse(&printed, Path::new("printed.yaml"), &|_| None) {
                Ok(reread) => assert!(reread == config, "{printed}"),
                Err(report) => panic!("{report} of {printed}"),
            }
            let execution = &config.execution;
            assert!(!execution.timeout.is_zero() && !execution.tool_call_timeout.is_zero());
            assert!(execution.max_tool_calls > 0 && execution.max_programs > 0);
            let mut names = BTreeSet::new();
            for server in &config.servers {
                let name = server.name.sanitized();
                assert!(!name.is_empty() && !name.contains("__"), "{name}");
                assert!(names.insert(name), "two servers of one name");
            }
        }
        (Err(report), Err(again)) => {
            assert!(report.mistakes() > 0);
            let report = report.to_string();
            assert_eq!(report, again.to_string());
            assert!(report.starts_with("fuzzed.yaml"), "{report}");
            assert!(!report.contains("s3cr3t"), "{report}");
        }
        (first, second) => panic!("{first:?}, then {second:?}"),
    }
}

/// Takes a text with references. It expands as the contract's words say, whatever the variables
/// hold, and doubling every dollar gives any text back.
// contract: C3
pub fn expand(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    let env = |name: &str| match name {
        "EMPTY" => Some(String::new()),
        // What is expanded is never expanded again.
        "TRICKY" => Some("${A} $$ $ }".to_owned()),
        _ if name.starts_with('U') => None,
        _ => Some(name.to_lowercase()),
    };
    let expanded = config::expand(text, &env);
    assert_eq!(
        expanded.as_ref().ok(),
        expanded_by_words(text, &env).as_ref()
    );
    if let Err(failures) = &expanded {
        assert!(!failures.is_empty());
    }
    let doubled = config::expand(&text.replace('$', "$$"), &env);
    assert_eq!(doubled.as_deref(), Ok(text));
}

/// Clause C3, character by character; `None` where it is a mistake.
fn expanded_by_words(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut expanded = String::new();
    let mut at = 0;
    while at < characters.len() {
        match (characters[at], characters.get(at + 1)) {
            ('$', Some('$')) => {
                expanded.push('$');
                at += 2;
            }
            ('$', Some('{')) => {
                let length = characters[at + 2..].iter().position(|c| *c == '}')?;
                let inside: String = characters[at + 2..at + 2 + length].iter().collect();
                expanded.push_str(&variable_by_words(&inside, env)?);
                at += length + 3;
            }
            (other, _) => {
                expanded.push(other);
                at += 1;
            }
        }
    }
    Some(expanded)
}

fn variable_by_words(inside: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let name_end = inside
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(inside.len());
    let (name, rest) = inside.split_at(name_end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let set = env(name).filter(|value| !value.is_empty());
    if rest.is_empty() {
        return set.or_else(|| env(name));
    }
    // A default is plain text but for `$$`: a reference in it would end at the wrong brace.
    let mut default = String::new();
    let mut characters = rest.strip_prefix(":-")?.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '$' {
            match characters.peek() {
                Some('$') => _ = characters.next(),
                Some('{') => return None,
                _ => {}
            }
        }
        default.push(character);
    }
    Some(set.unwrap_or(default))
}

/// Takes lines: the names of a server's tools; and once more the choices by which names are put
/// together. Each stays callable under a name of its own, which is an identifier and does not depend
/// on the order of the list.
// contract: C7
pub fn tool_names(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    each_keeps_a_name(text.lines().collect());
    if let Some(built) = shapes::names(bytes) {
        each_keeps_a_name(built.iter().map(String::as_str).collect());
    }
}

fn each_keeps_a_name(mut names: Vec<&str>) {
    let given = catalogue(&names);
    let originals: BTreeSet<&str> = names.iter().copied().collect();
    let reached: BTreeSet<&str> = given.values().map(String::as_str).collect();
    assert_eq!(reached, originals);
    assert_eq!(given.len(), originals.len());
    let mut first_of = BTreeMap::new();
    for original in originals {
        first_of.entry(sanitize(original)).or_insert(original);
    }
    for (name, original) in &given {
        let own = name
            .strip_prefix("mcp__my_server__")
            .expect("its server's prefix");
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        let plain = sanitize(original);
        if first_of[&plain] == original {
            assert_eq!(own, plain, "the first of a collision keeps the name");
        } else {
            let suffix = own.strip_prefix(&format!("{plain}_"));
            let number: Option<u64> = suffix.and_then(|suffix| suffix.parse().ok());
            assert!(number >= Some(2), "{own}");
        }
    }
    names.reverse();
    assert_eq!(catalogue(&names), given);
    let middle = names.len() / 3;
    names.rotate_left(middle);
    assert_eq!(catalogue(&names), given);
}

/// The names by which programs call these tools, and what each stands for.
fn catalogue(names: &[&str]) -> BTreeMap<String, String> {
    let tool = |name: &&str| DownstreamTool {
        name: (*name).to_owned(),
        title: None,
        description: None,
        input_schema: json!({"type": "object"}),
        output_schema: match name.len() % 4 {
            0 => Some(json!({"type": "object", "properties": {"result": {"type": "integer"}}})),
            1 => Some(json!({"properties": {"result": {}}, "x-fastmcp-wrap-result": true})),
            2 => Some(json!({"type": "object"})),
            _ => None,
        },
        annotations: None,
        meta: None,
    };
    let tools = names.iter().map(tool).collect();
    let server = ServerName::new("my-server");
    let catalogue = Catalogue::new(&server, tools, &ToolRules::default());
    assert_eq!(catalogue.is_empty(), names.is_empty());
    catalogue
        .entries()
        .map(|entry| {
            // A model is shown each tool by the name under which it can be called.
            let called = format!("{}(", entry.name);
            assert!(entry.stub().contains(&called), "{}", entry.stub());
            assert!(entry.signature().contains(&called), "{}", entry.signature());
            (entry.name.to_string(), entry.original.clone())
        })
        .collect()
}

/// Some ways to cut a stream: into pieces of some sizes, and if it is short, once at every place.
pub(crate) fn cuts(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    // Byte by byte, a long stream takes milliseconds, and shows no more than its beginning does.
    let sizes = match bytes.len() {
        0..=2048 => &[1, 2, 3, 7, 64][..],
        _ => &[61, 1000],
    };
    let in_pieces = |size: &usize| bytes.chunks(*size).collect();
    let mut cuts: Vec<Vec<&[u8]>> = sizes.iter().map(in_pieces).collect();
    if bytes.len() <= 64 {
        let in_two = |at| {
            let (before, after) = bytes.split_at(at);
            vec![before, after]
        };
        cuts.extend((0..=bytes.len()).map(in_two));
    }
    cuts
}

#[cfg(test)]
mod tests {
    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz");

    /// How many mutations of the seeds are tried beside them; `PTC_MCP_MUTATIONS` sets another
    /// number.
    const MUTATIONS: usize = 1000;

    /// What the readers look for.
    const MARKS: &[u8] = b"{}[]\",:\\\n\r \0\xef\xff0-.eE1$_Nn";

    fn replay(target: &str, law: fn(&[u8])) {
        let folder = format!("{FOLDER}/corpus/{target}");
        let mut seeds = Vec::new();
        for seed in std::fs::read_dir(&folder).expect(&folder) {
            let seed = seed.expect("an entry").path();
            let bytes = std::fs::read(&seed).expect("a seed");
            let caught = std::panic::catch_unwind(|| law(&bytes));
            assert!(caught.is_ok(), "{} breaks a law", seed.display());
            seeds.push(bytes);
        }
        assert!(seeds.len() >= 5, "{folder} holds few seeds");
        seeds.sort();
        mutate(target, law, &seeds);
    }

    /// A little fuzzing without a fuzzer: seeds spliced, cut, doubled and overwritten.
    fn mutate(target: &str, law: fn(&[u8]), seeds: &[Vec<u8>]) {
        let mut random = fastrand::Rng::with_seed(4);
        let given = std::env::var("PTC_MCP_MUTATIONS").ok();
        let usual = match target {
            // Each is three runs of the engine.
            "frame_from_child" => MUTATIONS / 10,
            _ => MUTATIONS,
        };
        let mutations = given.map_or(usual, |number| number.parse().expect("a number"));
        for round in 0..mutations {
            let mut bytes = seeds[random.usize(..seeds.len())].clone();
            for _ in 0..random.usize(1..4) {
                let other = &seeds[random.usize(..seeds.len())];
                let from = random.usize(..=other.len());
                let to = random.usize(from..=other.len().min(from + 40));
                let at = random.usize(..=bytes.len());
                let end = random.usize(at..=bytes.len().min(at + 12));
                match random.usize(..4) {
                    0 => _ = bytes.splice(at..at, other[from..to].iter().copied()),
                    1 => _ = bytes.splice(at..end, other[from..to].iter().copied()),
                    2 => _ = bytes.drain(at..end),
                    _ => bytes.insert(at, MARKS[random.usize(..MARKS.len())]),
                }
            }
            let caught = std::panic::catch_unwind(|| law(&bytes));
            let shown = bytes.escape_ascii();
            assert!(caught.is_ok(), "mutation {round} breaks {target}: {shown}");
        }
    }

    macro_rules! targets {
        ($($target:ident)*) => {
            $(
                #[test]
                fn $target() {
                    replay(stringify!($target), super::$target);
                }
            )*

            #[test]
            fn every_target_is_replayed() {
                let mut targets: Vec<_> = std::fs::read_dir(format!("{FOLDER}/fuzz_targets"))
                    .expect("the targets")
                    .map(|file| file.expect("an entry").path())
                    .map(|path| path.file_stem().expect("a name").to_owned())
                    .collect();
                targets.sort();
                let mut replayed = [$(stringify!($target)),*];
                replayed.sort_unstable();
                assert_eq!(targets, replayed);
            }
        };
    }

    targets! {
        parse_result unwrap_result channel_framing wire sse_stream config expand tool_names
        frame_from_child
    }
}
