//! The bytes of misspeaking: garbage, noise, floods, oversized results, odd schemas.

use serde_json::{Value, json};

use crate::fault::{
    Garbage, GarbageKind, Noise, OddSchema, Oversized, OversizedShape, StderrFlood,
};
use crate::message::{Body, notification};
use crate::play::Step;
use crate::rule::At;

/// The steps of an answer with garbage before it, around it or instead of it.
pub(crate) fn garbage(garbage: &Garbage, id: &str, body: &Body) -> Vec<Step> {
    let answer = body.answer(id);
    let (member, value) = match body {
        Body::Result(result) => ("result", result.as_str()),
        Body::Error(error) => ("error", error.as_str()),
    };
    // A member put first into the result object, whatever else it holds.
    let with_member = |extra: &str| {
        let rest = value.trim_start().strip_prefix('{').unwrap_or("}");
        let comma = if rest.trim_start().starts_with('}') {
            ""
        } else {
            ","
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{{{extra}{comma}{rest}}}"#).into_bytes()
    };
    let garbled = match garbage.kind {
        GarbageKind::NotJson => {
            return before(b"this is not JSON {]".to_vec(), answer, garbage.instead);
        }
        GarbageKind::Literal => {
            let text = garbage
                .text
                .as_deref()
                .unwrap_or_default()
                .replace("$ID", id);
            return before(text.into_bytes(), answer, garbage.instead);
        }
        GarbageKind::EmptyLines => {
            return vec![Step::Raw(b"\n\r\n  \n".to_vec()), Step::Answer(answer)];
        }
        GarbageKind::Truncated => answer[..answer.len() - 1].to_vec(),
        GarbageKind::WrongShape => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"outcome":{value}}}"#).into_bytes()
        }
        GarbageKind::ResultNotObject => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"a string"}}"#).into_bytes()
        }
        GarbageKind::MissingJsonrpc => format!(r#"{{"id":{id},"{member}":{value}}}"#).into_bytes(),
        GarbageKind::InvalidUtf8 => {
            let mut bytes = with_member(r#""odd":"@""#);
            let at = bytes
                .iter()
                .position(|b| *b == b'@')
                .expect("the mark was just put there");
            bytes[at] = 0xff;
            bytes
        }
        GarbageKind::Bom => ["\u{feff}".as_bytes(), &answer].concat(),
        GarbageKind::Nul => [b"\0", &*answer, b"\0"].concat(),
        GarbageKind::Crlf => [&*answer, b"\r"].concat(),
        GarbageKind::SeveralOnALine => {
            let log = json!({ "level": "info", "data": "on the same line" });
            [notification("notifications/message", Some(&log)), answer].concat()
        }
        GarbageKind::OverSeveralLines => {
            // Line ends go between tokens only; the text is otherwise as it was.
            let text = String::from_utf8_lossy(&answer).into_owned();
            text.replacen("{\"jsonrpc\"", "{\n  \"jsonrpc\"", 1)
                .replacen(
                    &format!(",\"{member}\":"),
                    &format!(",\n  \"{member}\":"),
                    1,
                )
                .into_bytes()
        }
        GarbageKind::Batch => [b"[", &*answer, b"]"].concat(),
        GarbageKind::DeepNesting => with_member(&format!(
            r#""deep":{}1{}"#,
            "[".repeat(1000),
            "]".repeat(1000)
        )),
        GarbageKind::DuplicateKeys => with_member(r#""twice":1,"twice":2"#),
        GarbageKind::NanNumbers => with_member(r#""numbers":[NaN,Infinity,-Infinity]"#),
        GarbageKind::LoneSurrogate => with_member(r#""odd":"\ud800""#),
    };
    vec![Step::Answer(garbled)]
}

fn before(garbage: Vec<u8>, answer: Vec<u8>, instead: bool) -> Vec<Step> {
    let mut steps = vec![Step::Message(garbage)];
    if !instead {
        steps.push(Step::Answer(answer));
    }
    steps
}

pub(crate) fn noise(noise: &Noise) -> Vec<u8> {
    let times = usize::try_from(noise.times).unwrap_or(1);
    let mut text = noise
        .lines
        .iter()
        .map(|line| format!("{line}\n"))
        .collect::<String>()
        .repeat(times);
    if noise.glued {
        text.pop();
    }
    text.into_bytes()
}

pub(crate) fn flood(flood: &StderrFlood) -> Vec<u8> {
    let bytes = usize::try_from(flood.bytes).unwrap_or(usize::MAX);
    let line = b"stderr: something that nobody wants to read, over and over again\n";
    let mut text: Vec<u8> = line.iter().copied().cycle().take(bytes).collect();
    if !flood.lines {
        text.iter_mut()
            .filter(|byte| **byte == b'\n')
            .for_each(|byte| *byte = b' ');
    }
    text
}

/// A result of about so many bytes.
pub(crate) fn oversized(oversized: &Oversized, at: At, stateless: bool) -> String {
    let bytes = usize::try_from(oversized.bytes).unwrap_or(usize::MAX);
    let complete = if stateless {
        r#","resultType":"complete""#
    } else {
        ""
    };
    if at != At::Call {
        // Where no content belongs, the padding travels in `_meta`.
        return format!(
            r#"{{"tools":[],"_meta":{{"padding":"{}"}}{complete}}}"#,
            "x".repeat(bytes)
        );
    }
    match oversized.shape {
        OversizedShape::Text | OversizedShape::EndlessLine => format!(
            r#"{{"content":[{{"type":"text","text":"{}"}}]{complete}}}"#,
            "x".repeat(bytes)
        ),
        OversizedShape::Structured => format!(
            r#"{{"content":[],"structuredContent":{{"blob":"{}"}}{complete}}}"#,
            "x".repeat(bytes)
        ),
        OversizedShape::Rows => {
            let row = r#"{"id":1,"name":"a row"},"#;
            let mut rows = row.repeat(bytes / row.len() + 1);
            rows.pop();
            format!(r#"{{"content":[],"structuredContent":{{"rows":[{rows}]}}{complete}}}"#)
        }
    }
}

pub(crate) fn odd_schema(kind: OddSchema) -> Value {
    let draft = |uri: &str| json!({ "$schema": uri, "type": "object", "properties": { "n": { "type": "integer" } } });
    match kind {
        OddSchema::RemoteRef => {
            json!({ "type": "object", "properties": { "a": { "$ref": "http://127.0.0.1:9/remote.json#/definitions/a" } } })
        }
        OddSchema::Recursive => json!({
            "type": "object",
            "properties": { "child": { "$ref": "#" }, "rows": { "type": "array", "items": { "$ref": "#" } } },
        }),
        OddSchema::NotASchema => json!({ "type": 17 }),
        OddSchema::DanglingRef => json!({ "type": "object", "$ref": "#/$defs/nowhere" }),
        OddSchema::BadPattern => {
            json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "(" } } })
        }
        OddSchema::Draft4 => json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "properties": { "n": { "type": "number", "minimum": 0, "exclusiveMinimum": true } },
        }),
        OddSchema::Draft6 => draft("http://json-schema.org/draft-06/schema#"),
        OddSchema::Draft7 => draft("http://json-schema.org/draft-07/schema#"),
        OddSchema::Draft2019 => draft("https://json-schema.org/draft/2019-09/schema"),
        OddSchema::Draft2020 => draft("https://json-schema.org/draft/2020-12/schema"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: GarbageKind) -> Vec<u8> {
        let body = Body::Result(r#"{"content":[]}"#.to_owned());
        let garbage = super::garbage(
            &Garbage {
                kind,
                text: None,
                instead: true,
            },
            "7",
            &body,
        );
        match &garbage[0] {
            Step::Message(bytes) | Step::Answer(bytes) | Step::Raw(bytes) => bytes.clone(),
            other => panic!("{other:?} carries no bytes"),
        }
    }

    #[test]
    fn each_kind_is_garbage_in_its_own_way() {
        let text = |kind| String::from_utf8(bytes(kind)).expect("UTF-8");
        assert!(serde_json::from_str::<Value>(&text(GarbageKind::NotJson)).is_err());
        assert!(serde_json::from_str::<Value>(&text(GarbageKind::Truncated)).is_err());
        assert!(serde_json::from_str::<Value>(&text(GarbageKind::NanNumbers)).is_err());
        assert!(String::from_utf8(bytes(GarbageKind::InvalidUtf8)).is_err());
        assert!(bytes(GarbageKind::Bom).starts_with(&[0xef, 0xbb, 0xbf]));
        assert!(bytes(GarbageKind::Nul).starts_with(b"\0{"));
        assert_eq!(text(GarbageKind::OverSeveralLines).lines().count(), 3);
        for kind in [
            GarbageKind::OverSeveralLines,
            GarbageKind::WrongShape,
            GarbageKind::ResultNotObject,
            GarbageKind::MissingJsonrpc,
            GarbageKind::Batch,
            GarbageKind::Crlf,
            GarbageKind::DuplicateKeys,
        ] {
            assert!(
                serde_json::from_str::<Value>(&text(kind)).is_ok(),
                "{kind:?}: {}",
                text(kind)
            );
        }
    }

    #[test]
    fn glued_noise_has_no_line_end() {
        let glued = Noise {
            glued: true,
            ..Noise::default()
        };
        assert!(!noise(&glued).ends_with(b"\n"));
        assert!(noise(&Noise::default()).ends_with(b"\n"));
    }
}
