//! From a reply and the call's arguments to the text of a `CallToolResult`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fault::Violation;
use crate::message::Body;
use crate::scenario::{Compute, Echo, EchoShape, Reply};

/// What a tool without replies does.
pub(crate) fn echo() -> Compute {
    Compute::Echo(Echo::default())
}

/// How long the reply takes.
pub(crate) fn pause(reply: &Reply, arguments: &str) -> Option<Duration> {
    let Some(Compute::Sleep(sleep)) = &reply.compute else {
        return None;
    };
    Some(Duration::from_millis(
        number(arguments, "ms").unwrap_or(sleep.ms),
    ))
}

/// The reply as an answer's body.
pub(crate) fn body(
    reply: &Reply,
    arguments: &str,
    count: u64,
    violation: Option<Violation>,
    stateless: bool,
) -> Body {
    if let Some(error) = &reply.error {
        return Body::Error(serde_json::to_string(error).expect("an error is plain data"));
    }
    if let Some(raw) = &reply.raw {
        return Body::Result(raw.clone());
    }
    let mut text = reply.text.clone();
    let structured = match &reply.compute {
        None => reply.structured.as_ref().map(Value::to_string),
        Some(Compute::Echo(Echo {
            shape: EchoShape::Text,
        })) => {
            text.push(arguments.to_owned());
            None
        }
        Some(compute) => {
            let value = match compute {
                Compute::Echo(_) => arguments.to_owned(),
                Compute::Sleep(sleep) => {
                    json!({ "slept_ms": number(arguments, "ms").unwrap_or(sleep.ms) }).to_string()
                }
                Compute::Counter(_) => json!({ "count": count }).to_string(),
                Compute::Rows(rows) => self::rows(
                    number(arguments, "count").unwrap_or(rows.count),
                    number(arguments, "seed").unwrap_or(rows.seed),
                ),
            };
            text.push(value.clone());
            Some(value)
        }
    };
    let structured = match (violation, structured) {
        (None, structured) => structured,
        (Some(Violation::MissingStructured), _) => None,
        (Some(Violation::ExtraNesting), structured) => Some(format!(
            r#"{{"data":{}}}"#,
            structured.as_deref().unwrap_or("null")
        )),
        (Some(Violation::WrongType), structured) => {
            let value = structured.and_then(|text| serde_json::from_str(&text).ok());
            Some(wrong_types(value.unwrap_or(Value::Null)).to_string())
        }
    };
    Body::Result(result(reply, &text, structured.as_deref(), stateless))
}

fn result(reply: &Reply, text: &[String], structured: Option<&str>, stateless: bool) -> String {
    let blocks = text
        .iter()
        .map(|text| json!({ "type": "text", "text": text }));
    let content: Vec<Value> = blocks.chain(reply.content.iter().cloned()).collect();
    let mut members = vec![format!(r#""content":{}"#, Value::from(content))];
    if let Some(structured) = structured {
        members.push(format!(r#""structuredContent":{structured}"#));
    }
    if reply.is_error {
        members.push(r#""isError":true"#.to_owned());
    }
    if let Some(meta) = &reply.meta {
        members.push(format!(r#""_meta":{meta}"#));
    }
    if stateless {
        members.push(r#""resultType":"complete""#.to_owned());
    }
    format!("{{{}}}", members.join(","))
}

fn number(arguments: &str, key: &str) -> Option<u64> {
    serde_json::from_str::<Value>(arguments)
        .ok()?
        .get(key)?
        .as_u64()
}

/// Every property has another JSON type than before.
fn wrong_types(value: Value) -> Value {
    match value {
        Value::Object(members) if !members.is_empty() => members
            .into_iter()
            .map(|(key, member)| (key, wrong_type(&member)))
            .collect(),
        other => json!({ "unexpected": wrong_type(&other) }),
    }
}

fn wrong_type(value: &Value) -> Value {
    match value {
        Value::Null => json!([]),
        Value::Bool(_) => json!("yes"),
        Value::Number(_) => json!("not a number"),
        Value::String(_) => json!(17),
        Value::Array(_) => json!({}),
        Value::Object(_) => json!([]),
    }
}

/// Rows that look like somebody's sales, the same for the same seed on every platform.
fn rows(count: u64, seed: u64) -> String {
    const REGIONS: [&str; 4] = ["north", "east", "south", "west"];
    let mut random = SplitMix(seed);
    let rows: Vec<Value> = (1..=count)
        .map(|id| {
            let region = REGIONS[usize::from(random.next().to_le_bytes()[0] % 4)];
            let cents = random.next() % 1_000_000;
            json!({ "id": id, "region": region, "cents": cents, "returned": random.next().is_multiple_of(10) })
        })
        .collect();
    json!({ "rows": rows }).to_string()
}

/// A number that looks random, the same for the same seed and occasion.
pub(crate) fn lot(seed: u64, occasion: [u64; 3]) -> u64 {
    let first = SplitMix(seed).next();
    occasion
        .into_iter()
        .fold(first, |mixed, part| SplitMix(mixed ^ part).next())
}

struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Rows;

    fn text(reply: &Reply, arguments: &str) -> String {
        match body(reply, arguments, 3, None, false) {
            Body::Result(text) | Body::Error(text) => text,
        }
    }

    #[test]
    fn echoes_arguments_byte_for_byte() {
        let arguments = r#"{"n": 123456789012345678901234567890, "f":1.10}"#;
        let result = text(&Reply::compute(echo()), arguments);
        assert!(
            result.contains(&format!(r#""structuredContent":{arguments}"#)),
            "{result}"
        );
    }

    #[test]
    fn raw_results_go_out_as_written() {
        let raw = r#"{"content":[],"structuredContent":{"x":1e400,"x":NaN}}"#;
        assert_eq!(text(&Reply::raw(raw), "{}"), raw);
    }

    #[test]
    fn rows_depend_on_the_seed_only() {
        let reply = Reply::compute(Compute::Rows(Rows { count: 2, seed: 1 }));
        assert_eq!(text(&reply, "{}"), text(&reply, r#"{"count":2}"#));
        assert_ne!(text(&reply, "{}"), text(&reply, r#"{"seed":2}"#));
    }

    #[test]
    fn violations_change_every_type() {
        let reply = Reply::structured(json!({ "rows": [1], "n": 1, "s": "a" }));
        let Body::Result(result) = body(&reply, "{}", 0, Some(Violation::WrongType), false) else {
            panic!("a result");
        };
        assert!(
            result.contains(r#"{"rows":{},"n":"not a number","s":17}"#),
            "{result}"
        );
    }
}
