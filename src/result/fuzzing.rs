//! The laws that hold for every result. They find what was delivered by reading it again, and know
//! the rules as the contract words them: a text is told by the value, or it is a note.

use std::sync::LazyLock;

use serde_json::value::RawValue;

use super::*;

const UNLIMITED: Expectation<'static> = Expectation {
    tool: "t",
    schema: None,
    declares_schema: false,
    wrap: Wrap::Unmarked,
    limit: usize::MAX,
};

/// What a tool may declare.
static SCHEMA: LazyLock<OutputSchema> = LazyLock::new(|| {
    let schema = serde_json::json!({"type": "object", "required": ["a"]});
    OutputSchema::compile(&schema).expect("it is a schema")
});

const WRAPS: [Wrap; 3] = [Wrap::Unmarked, Wrap::MarksSome, Wrap::Marked];

/// Takes a `CallToolResult`. No text is lost, every other block leaves one note, and the value fits
/// the limit or is refused with its size.
// contract: R1, R2, R4, R5, R6, R7, R8, R9, R10, R11
pub(crate) fn parse_result(bytes: &[u8]) {
    let Ok(raw) = serde_json::from_slice::<&RawValue>(bytes) else {
        return;
    };
    for wrap in WRAPS {
        let expect = Expectation { wrap, ..UNLIMITED };
        match value_of(raw.into(), &expect) {
            Ok(parsed) => {
                let delivered = parsed.value.get();
                assert!(is_json(delivered), "{delivered}");
                assert!(!is_deeper_than(delivered, MAX_DEPTH + 1));
                assert!(parsed.shown_bytes <= raw.get().len());
                no_text_is_lost(raw.get(), delivered);
                the_limit_is_exact(raw, &expect, delivered);
                a_declared_schema_asks_for_structured_content(raw, &expect);
                a_schema_holds_or_is_said_to_be_violated(raw, &expect, delivered);
            }
            Err(ToolError::Failed { details, .. }) => {
                the_words_are_the_servers(raw.get(), &details)
            }
            Err(ToolError::Unreadable { reason, .. }) => assert!(reason.len() < 500, "{reason}"),
            Err(other) => panic!("{other}"),
        }
    }
}

/// Takes lines: the first is a value, the others are texts beside it. A line that is no JSON is
/// the string of itself. Only `{"result": …}` is ever unwrapped, and when, the texts and the marks
/// decide.
// contract: R2, R3, R4
pub(crate) fn unwrap_result(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let value = lines.next().unwrap_or_default();
    let literal = |text: &str| Value::from(text).to_string();
    let value = if is_json(value) {
        trim(value).to_owned()
    } else {
        literal(value)
    };
    let texts: Vec<&str> = lines.collect();
    let deliver = |structured: &str, wrap| {
        let blocks: Vec<_> = texts
            .iter()
            .map(|text| format!(r#"{{"type":"text","text":{}}}"#, literal(text)))
            .collect();
        let raw = format!(
            r#"{{"content":[{}],"structuredContent":{structured}}}"#,
            blocks.join(",")
        );
        let raw = RawValue::from_string(raw).expect("its pieces are JSON");
        match value_of(raw.into(), &Expectation { wrap, ..UNLIMITED }) {
            Ok(parsed) => Some(parsed.value.get().to_owned()),
            Err(ToolError::Unreadable { .. }) => None,
            Err(other) => panic!("{other}"),
        }
    };
    for genuine in [
        format!(r#"{{"result":{value},"more":1}}"#),
        format!(r#"{{"other":{value}}}"#),
        format!("[{value}]"),
    ] {
        let Some(delivered) = deliver(&genuine, Wrap::Unmarked) else {
            assert!(is_deeper_than(&genuine, MAX_DEPTH));
            continue;
        };
        assert!(can_be_read_as(&delivered, &genuine), "{delivered}");
        for wrap in WRAPS {
            assert_eq!(deliver(&genuine, wrap).as_ref(), Some(&delivered));
        }
    }
    let wrapper = format!(r#"{{"result":{value}}}"#);
    let Some(kept) = deliver(&wrapper, Wrap::MarksSome) else {
        assert!(is_deeper_than(&wrapper, MAX_DEPTH));
        return;
    };
    assert!(can_be_read_as(&kept, &wrapper), "{kept}");
    let unwrapped = deliver(&wrapper, Wrap::Marked);
    if let Some(unwrapped) = &unwrapped {
        let decoded = (kind(&value) == Some(Kind::String))
            .then(|| decode(&value))
            .filter(|text| is_json(text));
        let inner = decoded.as_deref().map_or(value.as_str(), trim);
        assert!(can_be_read_as(unwrapped, inner), "{unwrapped}");
    }
    let whole = Reference::new(&wrapper);
    let is_rendered = texts.iter().any(|text| whole.is_rendered_by(text));
    assert_eq!(
        deliver(&wrapper, Wrap::Unmarked),
        if is_rendered { Some(kept) } else { unwrapped }
    );
}

fn can_be_read_as(delivered: &str, value: &str) -> bool {
    readings(delivered).iter().any(|(read, _)| read == value)
}

/// What a delivered JSON text may stand for: a value and the notes beside it. More than one reading
/// is possible, since a value may look like one that has notes.
fn readings(delivered: &str) -> Vec<(String, Vec<String>)> {
    let mut readings = vec![(delivered.to_owned(), Vec::new())];
    if kind(delivered) != Some(Kind::Object) {
        return readings;
    }
    let members: Vec<_> = members(delivered).collect();
    if let [before @ .., (r#""_notes""#, last)] = &members[..]
        && let Ok(notes) = serde_json::from_str::<Vec<String>>(last)
        && let Some(start) = delivered.strip_suffix(&format!(r#""_notes":{last}}}"#))
    {
        let object = start.strip_suffix(',').unwrap_or(start);
        readings.push((format!("{object}}}"), notes.clone()));
        if let [(r#""data""#, data)] = before {
            readings.push(((*data).to_owned(), notes));
        }
    }
    readings
}

fn blocks_of(result: &str) -> Result<Vec<Block<'_>>, String> {
    let content = member(result, "content").unwrap_or("null");
    blocks(&mut Cursor::new(content))
}

fn no_text_is_lost(result: &str, delivered: &str) {
    let blocks = blocks_of(result).expect("it has been read");
    let structured = member(result, "structuredContent").filter(|json| *json != "null");
    let holds = readings(delivered).iter().any(|(value, notes)| {
        let Some(told) = left_out(&blocks, notes) else {
            return false;
        };
        match structured {
            Some(structured) => is_of(value, structured) && tells_each(value, structured, &told),
            None => tells_all(value, &blocks, &told),
        }
    });
    assert!(holds, "{delivered} of {result}");
}

/// The texts that are no notes, if the notes are the other blocks, in order.
fn left_out<'b>(blocks: &'b [Block<'_>], notes: &[String]) -> Option<Vec<&'b str>> {
    let mut notes = notes.iter().peekable();
    let mut left_out = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let note = block.note();
        let is_needed_later = || {
            blocks[index + 1..]
                .iter()
                .any(|later| matches!(later, Block::Omitted(later) if *later == note))
        };
        match block {
            Block::Omitted(_) => _ = notes.next_if(|next| **next == note)?,
            // A text that reads like the note of a later block: it cannot be said whose it is.
            Block::Text(_) if is_needed_later() => _ = notes.next_if(|next| **next == note),
            Block::Text(text) => {
                if notes.next_if(|next| **next == note).is_none() {
                    left_out.push(&*text.text);
                }
            }
        }
    }
    notes.next().is_none().then_some(left_out)
}

/// Whether the value is byte for byte what the server wrote.
fn is_of(value: &str, structured: &str) -> bool {
    let inner = sole_result(structured);
    value == structured
        || inner == Some(value)
        || inner
            .is_some_and(|inner| kind(inner) == Some(Kind::String) && trim(&decode(inner)) == value)
}

fn tells_each(value: &str, structured: &str, texts: &[&str]) -> bool {
    let told = [Some(structured), sole_result(structured), Some(value)];
    let told: Vec<_> = told.into_iter().flatten().map(Reference::new).collect();
    let is_element = |text: &str| {
        kind(value) == Some(Kind::Array)
            && elements(value)
                .chain(leaves(value))
                .any(|element| Reference::new(element).is_told_by(text))
    };
    texts
        .iter()
        .all(|text| told.iter().any(|value| value.is_told_by(text)) || is_element(text))
}

/// R5.
fn tells_all(value: &str, blocks: &[Block<'_>], told: &[&str]) -> bool {
    let all: Vec<&str> = texts(blocks).map(|text| &*text.text).collect();
    let value = Reference::new(value);
    match (&all[..], told) {
        ([], []) => value.is_rendered_by("null"),
        ([_, _, ..], [sole]) => {
            is_json(sole)
                && all.iter().filter(|text| is_json(text)).count() == 1
                && value.is_rendered_by(sole)
        }
        _ => told.len() == all.len() && value.is_told_by(&all.join("\n")),
    }
}

fn the_limit_is_exact(raw: &RawValue, expect: &Expectation<'_>, delivered: &str) {
    let under = |limit| value_of(raw.into(), &Expectation { limit, ..*expect });
    let fits = under(delivered.len()).expect("it fits");
    assert_eq!(fits.value.get(), delivered);
    match under(delivered.len() - 1) {
        Err(ToolError::TooLarge { bytes, limit, .. }) => {
            assert_eq!(bytes, delivered.len() as u64);
            assert_eq!(limit, bytes - 1);
        }
        other => panic!("{other:?}"),
    }
}

fn a_declared_schema_asks_for_structured_content(raw: &RawValue, expect: &Expectation<'_>) {
    let declared = value_of(
        raw.into(),
        &Expectation {
            declares_schema: true,
            ..*expect
        },
    );
    let is_there = member(raw.get(), "structuredContent").is_some_and(|json| json != "null");
    match declared {
        Ok(_) => assert!(is_there),
        Err(ToolError::SchemaMismatch { .. }) => assert!(!is_there),
        Err(other) => panic!("{other}"),
    }
}

/// A schema decides whether there is a value, never which.
fn a_schema_holds_or_is_said_to_be_violated(
    raw: &RawValue,
    expect: &Expectation<'_>,
    delivered: &str,
) {
    let under = value_of(
        raw.into(),
        &Expectation {
            schema: Some(&SCHEMA),
            declares_schema: true,
            ..*expect
        },
    );
    let holds = member(raw.get(), "structuredContent")
        .is_some_and(|json| kind(json) == Some(Kind::Object) && member(json, "a").is_some());
    match under {
        Ok(parsed) => {
            assert!(holds, "{delivered}");
            assert_eq!(parsed.value.get(), delivered);
        }
        Err(ToolError::SchemaMismatch { violation, .. }) => {
            assert!(!holds, "{violation}");
            assert!(violation.len() < 2000, "{violation}");
        }
        Err(other) => panic!("{other}"),
    }
}

fn the_words_are_the_servers(result: &str, details: &str) {
    let blocks = blocks_of(result).expect("it has been read");
    let words: Vec<_> = texts(&blocks)
        .map(|text| text.text.trim())
        .filter(|text| !text.is_empty())
        .collect();
    let words = words.join(" ");
    assert_eq!(
        details,
        if words.is_empty() {
            "no details"
        } else {
            &words
        }
    );
}
