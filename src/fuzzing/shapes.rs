//! Inputs that are put together rather than mutated. A byte string is read as a row of choices, so
//! that a fuzzer which knows bytes only comes to results whose texts repeat their values, and to
//! names that collide.

use arbitrary::{Result, Unstructured};
use serde_json::{Value, json};

/// How deep values are built; what is nested deeper is left to the seeds.
const DEPTH: usize = 4;

/// Words that mean something to one rule or another.
const WORDS: &[&str] = &[
    "",
    "a",
    "result",
    "_notes",
    "data",
    "text",
    "null",
    "true",
    "1",
    "1.0",
    "1.10",
    "{}",
    "[]",
    "[1]",
    "{\"a\":1}",
    "\"a\"",
    " ",
    "\n",
    "é",
    "\u{1f980}",
    "\\",
    "\"",
    "[image: image/png, 3 bytes]",
];

const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "1.10",
    "1e2",
    "1E400",
    "-1.5e-7",
    "9007199254740993",
    "123456789012345678901234567890",
];

/// A `CallToolResult` whose texts tell its value, or nearly do.
pub(super) fn result(bytes: &[u8]) -> Option<String> {
    let mut choices = Unstructured::new(bytes);
    call_tool_result(&mut choices).ok()
}

fn call_tool_result(u: &mut Unstructured<'_>) -> Result<String> {
    let structured = match u.int_in_range(0..=3)? {
        0 => None,
        1 => Some(format!(r#"{{"result":{}}}"#, value(u, DEPTH)?)),
        _ => Some(value(u, DEPTH)?),
    };
    let mut blocks = Vec::new();
    for _ in 0..u.int_in_range(0..=5)? {
        blocks.push(block(u, structured.as_deref())?);
    }
    let mut members = vec![format!(r#""content":[{}]"#, blocks.join(","))];
    members.extend(structured.map(|value| format!(r#""structuredContent":{value}"#)));
    match u.int_in_range(0..=15)? {
        0 => members.push(r#""isError":true"#.to_owned()),
        1 => members.push(r#""_meta":{"a":[1]}"#.to_owned()),
        2 => members.reverse(),
        _ => {}
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn block(u: &mut Unstructured<'_>, structured: Option<&str>) -> Result<String> {
    let text = |text: &str| json!({"type": "text", "text": text}).to_string();
    Ok(match u.int_in_range(0..=11)? {
        0 => r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#.to_owned(),
        1 => r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#.to_owned(),
        2 => r#"{"type":"resource_link","uri":"file:///a","name":"a"}"#.to_owned(),
        3 => r#"{"type":"resource","resource":{"uri":"x:a","text":"1"}}"#.to_owned(),
        4 => r#"{"type":"resource","resource":{"uri":"x:a","blob":"AAAA"}}"#.to_owned(),
        5 => text(u.choose(WORDS)?),
        6 => text(&value(u, 2)?),
        _ => match structured {
            Some(structured) => text(&rendering(u, structured)?),
            None => text(&value(u, DEPTH)?),
        },
    })
}

/// A text that tells the value as servers do: whole or in part, compact or indented, in another
/// spelling, or not quite.
fn rendering(u: &mut Unstructured<'_>, structured: &str) -> Result<String> {
    let Ok(mut told) = serde_json::from_str::<Value>(structured) else {
        return Ok(structured.to_owned());
    };
    for _ in 0..u.int_in_range(0..=2)? {
        let part = match &told {
            Value::Object(members) if !members.is_empty() => {
                let at = u.choose_index(members.len())?;
                members.values().nth(at).cloned()
            }
            Value::Array(items) if !items.is_empty() => Some(u.choose(items)?.clone()),
            _ => None,
        };
        told = part.unwrap_or(told);
    }
    Ok(match (u.int_in_range(0..=5)?, &told) {
        (0, _) => serde_json::to_string_pretty(&told).expect("it is JSON"),
        (1, _) => format!(" {told}\n"),
        (2, _) => format!("{told}{}", u.choose(WORDS)?),
        (3, Value::String(text)) => text.clone(),
        (4, _) => structured.to_owned(),
        _ => told.to_string(),
    })
}

/// A JSON text.
fn value(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    let kinds = if depth == 0 { 5 } else { 9 };
    Ok(match u.int_in_range(0..=kinds)? {
        0 => "null".to_owned(),
        1 => if u.arbitrary()? { "true" } else { "false" }.to_owned(),
        2 | 3 => (*u.choose(NUMBERS)?).to_owned(),
        4 | 5 => Value::from(*u.choose(WORDS)?).to_string(),
        6 => {
            // What is JSON, inside of a string.
            Value::from(value(u, depth - 1)?).to_string()
        }
        7 => {
            let mut items = Vec::new();
            for _ in 0..u.int_in_range(0..=3)? {
                items.push(value(u, depth - 1)?);
            }
            format!("[{}]", items.join(u.choose(&[",", ", "])?))
        }
        _ => {
            let mut members = Vec::new();
            for _ in 0..u.int_in_range(0..=3)? {
                let key = Value::from(*u.choose(WORDS)?);
                members.push(format!("{key}:{}", value(u, depth - 1)?));
            }
            format!("{{{}}}", members.join(","))
        }
    })
}

/// What a child says to a live engine: frames that mostly keep to the protocol, with few ids, so that
/// they are used again.
pub(super) fn conversation(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut choices = Unstructured::new(bytes);
    let mut conversation = || -> Result<Vec<u8>> {
        let mut stream = Vec::new();
        for _ in 0..choices.int_in_range(0..=24)? {
            stream.extend(said(&mut choices)?);
        }
        Ok(stream)
    };
    conversation().ok()
}

fn said(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    const TOOLS: &[&str] = &[
        "mcp__s__echo",
        "mcp__s__few",
        "mcp__s__silent",
        "mcp__s__wrong",
        "mcp__s__large",
        "mcp__s__hidden",
        "mcp__s__asked",
        "mcp__s__told",
        "mcp__s__refuses",
        "mcp__s__garbled",
        "mcp__s__lost",
        "mcp__s__typed",
        "mcp__s__marked",
        "mcp__s__ecko",
        "mcp__gone__echo",
        "print",
        "",
    ];
    let id = u.int_in_range(0..=7)?;
    let body = match u.int_in_range(0..=23)? {
        0 => r#"{"type":"ready","version":1,"python":"3.13"}"#.to_owned(),
        1 | 2 => json!({"type": "output", "text": u.choose(WORDS)?.repeat(id * 200)}).to_string(),
        3 | 4 => format!(r#"{{"type":"cancel","id":{id}}}"#),
        5 | 6 => format!(r#"{{"type":"emit","value":{}}}"#, value(u, DEPTH)?),
        7 | 8 => {
            let name = Value::from(*u.choose(&crate::helpers::NAMES)?);
            let arguments = value(u, 2)?;
            format!(r#"{{"type":"help","id":{id},"name":{name},"arguments":{arguments}}}"#)
        }
        9 => r#"{"type":"done"}"#.to_owned(),
        10 => json!({"type": "done", "error": u.choose(WORDS)?}).to_string(),
        11 => value(u, DEPTH)?,
        12 => return Ok(u32::MAX.to_be_bytes().to_vec()),
        _ => {
            let tool = Value::from(*u.choose(TOOLS)?);
            let arguments = match u.int_in_range(0..=4)? {
                0 => value(u, DEPTH)?,
                1 => "{}".to_owned(),
                _ => format!(r#"{{"a":{}}}"#, value(u, DEPTH)?),
            };
            format!(r#"{{"type":"call","id":{id},"tool":{tool},"arguments":{arguments}}}"#)
        }
    };
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    Ok([&length.to_be_bytes(), body.as_bytes()].concat())
}

/// Names out of few pieces, so that many are the same once they are identifiers.
pub(super) fn names(bytes: &[u8]) -> Option<Vec<String>> {
    const PIECES: &[&str] = &["a", "A", "-", "_", ".", "é", "2", "3", "__", " "];
    let mut choices = Unstructured::new(bytes);
    let mut names = || -> Result<Vec<String>> {
        let mut names = Vec::new();
        for _ in 0..choices.int_in_range(0..=12)? {
            let mut name = String::new();
            for _ in 0..choices.int_in_range(0..=4)? {
                name += choices.choose(PIECES)?;
            }
            names.push(name);
        }
        Ok(names)
    };
    names().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_reaches_what_bytes_rarely_do() {
        let mut random = fastrand::Rng::with_seed(4);
        let (mut told, mut colliding) = (0, 0);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..200).map(|_| random.u8(..)).collect();
            let built = result(&bytes).expect("choices never run out");
            let read: Value = serde_json::from_str(&built).expect(&built);
            let text = &read["content"][0]["text"];
            let structured = &read["structuredContent"];
            let rendered = structured.to_string();
            told += usize::from(structured.is_object() && text == rendered.as_str());
            let names = names(&bytes).expect("choices never run out");
            let mut plain: Vec<String> = names.iter().map(|n| crate::tool::sanitize(n)).collect();
            plain.sort();
            plain.dedup();
            colliding += usize::from(plain.len() < names.len());
        }
        assert!(told > 20, "{told} results render their value");
        assert!(colliding > 200, "{colliding} sets of names collide");
    }
}
