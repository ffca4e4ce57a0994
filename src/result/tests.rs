//! The contract's clauses on results, one case a line, and the laws that hold for every result.

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;

const NOTHING_EXPECTED: Expectation<'static> = Expectation {
    tool: "t",
    schema: None,
    declares_schema: false,
    wrap: Wrap::Unmarked,
    limit: 1 << 30,
};

fn parse(result: &str, expect: &Expectation<'_>) -> Result<Parsed, ToolError> {
    let raw: &RawValue = serde_json::from_str(result).unwrap();
    value_of(raw.into(), expect)
}

/// The value's JSON, or the error's text.
fn outcome(result: &str, expect: &Expectation<'_>) -> String {
    match parse(result, expect) {
        Ok(parsed) => parsed.value.get().to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A result with the given texts and, unless it is empty, structured content.
fn result(structured: &str, texts: &[&str]) -> String {
    let blocks: Vec<_> = texts
        .iter()
        .map(|text| json!({"type": "text", "text": text}))
        .collect();
    let content = Value::from(blocks);
    if structured.is_empty() {
        format!(r#"{{"content":{content}}}"#)
    } else {
        format!(r#"{{"content":{content},"structuredContent":{structured}}}"#)
    }
}

#[track_caller]
fn assert_cases(cases: &[(&str, &[&str], &str)], expect: &Expectation<'_>) {
    for (structured, texts, expected) in cases {
        let result = result(structured, texts);
        assert_eq!(outcome(&result, expect), *expected, "{result}");
    }
}

#[test]
#[rustfmt::skip]
fn errors_say_what_the_server_said() {
    // contract: R1
    let cases = [
        (r#"[]"#, "'t' returned an error: no details"),
        (r#"[{"type":"text","text":" \n"}]"#, "'t' returned an error: no details"),
        (r#"[{"type":"text","text":" a\n"},{"type":"text","text":""},{"type":"text","text":"b c "}]"#, "'t' returned an error: a b c"),
        (r#"[{"type":"image","mimeType":"image/png","data":""},{"type":"text","text":"x"}]"#, "'t' returned an error: x"),
        (r#"[{"type":"resource","resource":{"uri":"u","text":"in a file"}}]"#, "'t' returned an error: in a file"),
        (r#"[{"type":"text","text":"bad \ud800"}]"#, "'t' returned an error: bad \u{fffd}"),
    ];
    for (content, expected) in cases {
        let result = format!(r#"{{"isError":true,"content":{content}}}"#);
        assert_eq!(outcome(&result, &NOTHING_EXPECTED), expected, "{result}");
    }
    // An error is not measured by the schema, and not longer than a result may be.
    let strict = OutputSchema::compile(&json!({"type": "object"})).unwrap();
    let expect = Expectation {
        schema: Some(&strict),
        declares_schema: true,
        limit: 9,
        ..NOTHING_EXPECTED
    };
    let result =
        r#"{"isError":true,"content":[{"type":"text","text":"ääääääää"}],"structuredContent":[1]}"#;
    assert_eq!(
        outcome(result, &expect),
        "'t' returned an error: ääää... (truncated)"
    );
}

#[test]
#[rustfmt::skip]
fn an_object_is_the_value_and_what_it_does_not_say_is_a_note() {
    // contract: R2, R6, R8
    assert_cases(
        &[
            (r#"{"a":1}"#, &[], r#"{"a":1}"#),
            (r#"{"a": 1.50, "a" :2}"#, &[], r#"{"a": 1.50, "a" :2}"#),
            (r#"{"a":1,"b":2}"#, &["{\n \"b\": 2.0,\n \"a\": 1}"], r#"{"a":1,"b":2}"#),
            (r#"{"a":1}"#, &["EMPTY RESULT"], r#"{"a":1,"_notes":["EMPTY RESULT"]}"#),
            (r#"{"a":1}"#, &[r#"{"a":true}"#, "x"], r#"{"a":1,"_notes":["{\"a\":true}","x"]}"#),
            (r#"{"a":1}"#, &[""], r#"{"a":1,"_notes":[""]}"#),
            (r#"{}"#, &["none"], r#"{"_notes":["none"]}"#),
            (r#"{ }"#, &["none"], r#"{ "_notes":["none"]}"#),
            (r#"{"result":1,"more":2}"#, &["1"], r#"{"result":1,"more":2,"_notes":["1"]}"#),
            (r#"{"_notes":1}"#, &["x"], r#"{"data":{"_notes":1},"_notes":["x"]}"#),
            (r#"{"\u005fnotes":1}"#, &["x"], r#"{"data":{"\u005fnotes":1},"_notes":["x"]}"#),
            (r#"{"a":{"_notes":1}}"#, &["x"], r#"{"a":{"_notes":1},"_notes":["x"]}"#),
            (r#"{"_notes":1}"#, &[], r#"{"_notes":1}"#),
            (r#"{"n":123456789012345678901234567890,"f":1e-7}"#, &[], r#"{"n":123456789012345678901234567890,"f":1e-7}"#),
            (r#"{"n":12345678901234567890}"#, &[r#"{"n":12345678901234567891}"#], r#"{"n":12345678901234567890,"_notes":["{\"n\":12345678901234567891}"]}"#),
        ],
        &NOTHING_EXPECTED,
    );
}

#[test]
fn structured_content_of_other_kinds_is_the_value() {
    // contract: R2, R6 for the 2026-07-28 protocol, whose structured content is any JSON
    assert_cases(
        &[
            ("[1,2]", &["[1, 2]"], "[1,2]"),
            ("[1,2]", &["1", "2"], "[1,2]"),
            ("[1,2]", &["1"], r#"{"data":[1,2],"_notes":["1"]}"#),
            (r#""abc""#, &["abc"], r#""abc""#),
            (r#""abc""#, &["abd"], r#"{"data":"abc","_notes":["abd"]}"#),
            // Only what is unwrapped is decoded.
            (r#""[1]""#, &[], r#""[1]""#),
            ("5", &["5.0", "five"], r#"{"data":5,"_notes":["five"]}"#),
            ("false", &[], "false"),
        ],
        &NOTHING_EXPECTED,
    );
}

#[test]
fn null_is_no_structured_content() {
    // contract: R5
    assert_cases(
        &[
            ("null", &[], "null"),
            ("null", &[r#"{"a":1}"#], r#"{"a":1}"#),
        ],
        &NOTHING_EXPECTED,
    );
    let nullable = OutputSchema::compile(&json!({"type": ["null", "object"]})).unwrap();
    let expect = Expectation {
        schema: Some(&nullable),
        declares_schema: true,
        ..NOTHING_EXPECTED
    };
    assert_cases(
        &[("null", &["x"], r#"{"data":null,"_notes":["x"]}"#)],
        &expect,
    );
}

#[test]
#[rustfmt::skip]
fn a_result_object_that_a_text_renders_is_genuine() {
    // contract: R3
    assert_cases(
        &[
            (r#"{"result":1}"#, &[r#"{"result": 1.0}"#], r#"{"result":1}"#),
            (r#"{"result":1}"#, &[r#"{"result":1}"#, "done"], r#"{"result":1,"_notes":["done"]}"#),
            (r#"{"result":"[1]"}"#, &[r#"{"result":"[1]"}"#], r#"{"result":"[1]"}"#),
        ],
        &NOTHING_EXPECTED,
    );
}

#[test]
#[rustfmt::skip]
fn a_wrapped_result_is_unwrapped() {
    // contract: R4
    let cases: &[(&str, &[&str], &str)] = &[
        (r#"{"result":5}"#, &["5"], "5"),
        (r#"{"result":5}"#, &[], "5"),
        (r#"{"result":5}"#, &["five"], r#"{"data":5,"_notes":["five"]}"#),
        (r#"{"result":true}"#, &["1"], r#"{"data":true,"_notes":["1"]}"#),
        (r#"{"result":null}"#, &[], "null"),
        (r#"{"result":"abc"}"#, &["abc"], r#""abc""#),
        (r#"{"result":"abc"}"#, &["\"abc\""], r#""abc""#),
        (r#"{"result":"a\ud800"}"#, &[], r#""a\ud800""#),
        (r#"{"result":"{\"a\": 1}"}"#, &[r#"{"a": 1}"#], r#"{"a": 1}"#),
        (r#"{"result":"{\"a\": 1}"}"#, &[r#"{"a":1.0}"#, "x"], r#"{"a": 1,"_notes":["x"]}"#),
        (r#"{"result":" 7 "}"#, &[], "7"),
        (r#"{"result":"NaN"}"#, &["NaN"], r#""NaN""#),
        (r#"{"result":"\"x\""}"#, &[], r#""x""#),
        (r#"{"result":{"a":1}}"#, &[r#"{"a":1}"#, "warning"], r#"{"a":1,"_notes":["warning"]}"#),
        (r#"{"result":{"result":1}}"#, &[], r#"{"result":1}"#),
        (r#"{"\u0072esult":5}"#, &[], "5"),
        (r#"{"result":4,"result":5}"#, &["5"], "5"),
        // The list rule: all elements, in order, each once.
        (r#"{"result":[1,"a",{"b":2}]}"#, &["1", "a", "{\n  \"b\": 2\n}"], r#"[1,"a",{"b":2}]"#),
        (r#"{"result":[1,2]}"#, &["[1,2]"], "[1,2]"),
        (r#"{"result":[1,2]}"#, &["note", "1", "and", "2"], r#"{"data":[1,2],"_notes":["note","and"]}"#),
        (r#"{"result":[1,2]}"#, &["2", "1"], r#"{"data":[1,2],"_notes":["2","1"]}"#),
        (r#"{"result":[1,1]}"#, &["1"], r#"{"data":[1,1],"_notes":["1"]}"#),
        (r#"{"result":[1,2]}"#, &["1", "1", "2"], r#"{"data":[1,2],"_notes":["1"]}"#),
        (r#"{"result":[]}"#, &["no rows"], r#"{"data":[],"_notes":["no rows"]}"#),
        (r#"{"result":[]}"#, &[], "[]"),
        (r#"{"result":[true]}"#, &["1"], r#"{"data":[true],"_notes":["1"]}"#),
        (r#"{"result":[[1,2],[],[3,[4]]]}"#, &["1", "2", "3", "4", "n"], r#"{"data":[[1,2],[],[3,[4]]],"_notes":["n"]}"#),
        (r#"{"result":[[1],[2]]}"#, &["[1]", "[2]"], "[[1],[2]]"),
        (r#"{"result":[1,null,2]}"#, &["1", "2"], "[1,null,2]"),
        (r#"{"result":[1,null]}"#, &["1", "null"], "[1,null]"),
        (r#"{"result":["x\ny"]}"#, &["x\ny"], r#"["x\ny"]"#),
    ];
    assert_cases(cases, &NOTHING_EXPECTED);
    // Where the schema marks the tool, the same holds.
    let marked = Expectation {
        wrap: Wrap::Marked,
        ..NOTHING_EXPECTED
    };
    assert_cases(cases, &marked);
}

#[test]
#[rustfmt::skip]
fn a_mark_decides_whatever_the_texts_are() {
    // contract: R4
    let in_schema = Expectation {
        wrap: Wrap::Marked,
        ..NOTHING_EXPECTED
    };
    assert_cases(
        &[
            (r#"{"result":{"a":1}}"#, &[r#"{"a":1}"#], r#"{"a":1}"#),
            (r#"{"result":5}"#, &[r#"{"result":5}"#], r#"{"data":5,"_notes":["{\"result\":5}"]}"#),
            (r#"{"result":5,"x":1}"#, &[], r#"{"result":5,"x":1}"#),
        ],
        &in_schema,
    );
    let elsewhere = Expectation {
        wrap: Wrap::MarksSome,
        ..NOTHING_EXPECTED
    };
    assert_cases(
        &[
            (r#"{"result":5}"#, &["done"], r#"{"result":5,"_notes":["done"]}"#),
            (r#"{"result":5}"#, &[], r#"{"result":5}"#),
        ],
        &elsewhere,
    );
    let marks = [
        (r#"{"fastmcp":{"wrap_result":true}}"#, true, "5"),
        (r#"{"fastmcp":{"wrap_result":false}}"#, false, r#"{"result":5}"#),
        (r#"{"fastmcp":true}"#, false, r#"{"result":5}"#),
        (r#"null"#, false, r#"{"result":5}"#),
        (r#"{"fastmcp":{"wrap_result":"true"}}"#, false, r#"{"result":5}"#),
    ];
    for (meta, marked, expected) in marks {
        let result =
            format!(r#"{{"structuredContent":{{"result":5}},"content":[],"_meta":{meta}}}"#);
        let parsed = parse(&result, &elsewhere).unwrap();
        assert_eq!(
            (parsed.marked, parsed.value.get()),
            (marked, expected),
            "{result}"
        );
    }
}

#[test]
#[rustfmt::skip]
fn texts_alone_are_the_value() {
    // contract: R5
    assert_cases(
        &[
            ("", &[], "null"),
            ("", &["hello"], r#""hello""#),
            ("", &[""], r#""""#),
            ("", &[" {\"a\": 1e400}\n"], r#"{"a": 1e400}"#),
            ("", &["5"], "5"),
            ("", &["NaN"], r#""NaN""#),
            ("", &["\u{feff}{}"], "\"\u{feff}{}\""),
            ("", &[r#"{"result":5}"#], r#"{"result":5}"#),
            ("", &["rows:", "[1, 2]", "(partial)"], r#"{"data":[1, 2],"_notes":["rows:","(partial)"]}"#),
            ("", &["note", r#"{"a":1}"#], r#"{"a":1,"_notes":["note"]}"#),
            ("", &["a", "b\"", "\"c"], r#""a\nb\"\n\"c""#),
            ("", &["1", "2"], r#""1\n2""#),
            ("", &["{\"a\":", "1}"], "{\"a\":\n1}"),
            ("", &["", ""], r#""\n""#),
        ],
        &NOTHING_EXPECTED,
    );
    assert_eq!(outcome("{}", &NOTHING_EXPECTED), "null");
    assert_eq!(outcome(r#"{"content":null}"#, &NOTHING_EXPECTED), "null");
}

#[test]
#[rustfmt::skip]
fn what_is_no_text_leaves_a_note() {
    // contract: R7
    let long = "x".repeat(600);
    let cut = format!("[non-text content omitted: {}...]", &long[..512]);
    let cases: &[(&str, &str)] = &[
        (r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#, "[non-text content omitted: image (image/png)]"),
        (r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#, "[non-text content omitted: audio (audio/wav)]"),
        (r#"{"type":"resource","resource":{"uri":"file:///a","blob":"AA=="}}"#, "[non-text content omitted: resource (file:///a)]"),
        (r#"{"type":"resource_link","uri":"file:///b","name":"b"}"#, "[non-text content omitted: resource_link (file:///b)]"),
        (r#"{"type":"image"}"#, "[non-text content omitted: image]"),
        (r#"{"type":"image","mimeType":7}"#, "[non-text content omitted: image]"),
        (r#"{"type":"resource","resource":"r"}"#, "[non-text content omitted: resource]"),
        (r#"{"type":"hologram","text":"?"}"#, "[non-text content omitted: hologram]"),
        (&format!(r#"{{"type":"{long}"}}"#), &cut),
    ];
    for (block, note) in cases {
        let alone = format!(r#"{{"content":[{block}]}}"#);
        let expected = json!({"data": null, "_notes": [note]}).to_string();
        assert_eq!(outcome(&alone, &NOTHING_EXPECTED), expected);
        let beside = format!(
            r#"{{"content":[{{"type":"text","text":"hm"}},{block}],"structuredContent":{{"a":1}}}}"#
        );
        let expected = json!({"a": 1, "_notes": ["hm", note]}).to_string();
        assert_eq!(outcome(&beside, &NOTHING_EXPECTED), expected);
        let told = format!(r#"{{"content":[{block},{{"type":"text","text":"hm"}}]}}"#);
        let expected = json!({"data": "hm", "_notes": [note]}).to_string();
        assert_eq!(outcome(&told, &NOTHING_EXPECTED), expected);
    }
    let embedded = r#"{"content":[{"type":"resource","resource":{"uri":"u","text":"[1]"}}]}"#;
    assert_eq!(outcome(embedded, &NOTHING_EXPECTED), "[1]");
}

#[test]
#[rustfmt::skip]
fn what_is_no_result_is_unreadable() {
    // contract: R11
    let cases = [
        ("7", "the result is a number, not an object"),
        (r#"{"content":"x"}"#, "its content is a string, not a list"),
        (r#"{"content":[1]}"#, "content[0] is a number, not an object"),
        (r#"{"content":[{"type":"text","text":"x"},{"text":"x"}]}"#, "content[1].type is not a string"),
        (r#"{"content":[{"type":"text"}]}"#, "content[0].text is missing"),
        (r#"{"content":[{"type":"text","text":[]}]}"#, "content[0].text is an array, not a string"),
        (r#"{"isError":"yes","content":[]}"#, "isError is a string, not a boolean"),
    ];
    for (result, reason) in cases {
        let expected = format!("'t' returned something that is not a valid result: {reason}");
        assert_eq!(outcome(result, &NOTHING_EXPECTED), expected, "{result}");
    }
}

#[test]
#[rustfmt::skip]
fn a_declared_schema_holds_for_what_was_sent() {
    // contract: R9
    let schema = OutputSchema::compile(&json!({
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"type": "integer"}}},
        "required": ["result"],
    }))
    .unwrap();
    let expect = Expectation {
        schema: Some(&schema),
        declares_schema: true,
        ..NOTHING_EXPECTED
    };
    let refused = "'t' returned a value that does not match its declared output schema: ";
    let cases: &[(&str, &[&str], &str)] = &[
        // Validated as sent, then unwrapped.
        (r#"{"result":[1,2.0]}"#, &["1", "2"], "[1,2.0]"),
        (r#"{"result":[1,"x"]}"#, &[], &format!("{refused}\"x\" is not of type \"integer\" at /result/1")),
        (r#"{"rows":[]}"#, &[], &format!("{refused}\"result\" is a required property at the top level")),
        ("", &["[1]"], &format!("{refused}structuredContent is missing")),
        ("null", &["[1]"], &format!("{refused}structuredContent is missing")),
    ];
    assert_cases(cases, &expect);
    let unenforced = Expectation {
        schema: None,
        ..expect
    };
    assert_cases(
        &[
            (r#"{"rows":[]}"#, &[], r#"{"rows":[]}"#),
            ("", &["[1]"], &format!("{refused}structuredContent is missing")),
        ],
        &unenforced,
    );
}

#[test]
#[rustfmt::skip]
fn a_result_is_measured_as_it_would_be_passed_in() {
    // contract: R10
    let limited = Expectation {
        limit: 12,
        ..NOTHING_EXPECTED
    };
    let too_large = |bytes: usize| {
        ToolError::TooLarge {
            tool: "t".to_owned(),
            bytes: bytes as u64,
            limit: 12,
        }
        .to_string()
    };
    assert_cases(
        &[
            (r#"{"a":123456}"#, &[], r#"{"a":123456}"#),
            (r#"{"a":1234567}"#, &[], &too_large(13)),
            (r#"{"a":1}"#, &["n"], &too_large(r#"{"a":1,"_notes":["n"]}"#.len())),
            ("", &["0123456789"], r#""0123456789""#),
            ("", &["ääääää"], &too_large(14)),
        ],
        &limited,
    );
}

#[test]
fn a_schema_is_shared_between_calls() {
    fn assert_shareable<T: Send + Sync>() {}
    assert_shareable::<OutputSchema>();
}

fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

/// Runs on the stack of a worker thread.
fn on_a_workers_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(test)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn nesting_is_bounded_and_the_bound_is_safe() {
    // contract: R11
    on_a_workers_stack(|| {
        let deepest = nested(MAX_DEPTH);
        let respelt = deepest.replace("[]", "[ ]");
        let object =
            r#"{"a":"#.repeat(MAX_DEPTH - 1) + r#"{"x":1,"y":2}"# + &"}".repeat(MAX_DEPTH - 1);
        let reordered = object.replace(r#""x":1,"y":2"#, r#""y":2,"x":1"#);
        let schema = OutputSchema::compile(&json!({
            "anyOf": [
                {"type": "array", "items": {"$ref": "#"}},
                {"type": "object", "additionalProperties": {"$ref": "#"}},
                {"type": "integer"},
            ],
        }))
        .unwrap();
        let expect = Expectation {
            schema: Some(&schema),
            declares_schema: true,
            ..NOTHING_EXPECTED
        };
        for (value, text) in [(&deepest, &respelt), (&object, &reordered)] {
            assert_eq!(outcome(&result(value, &[text]), &expect), *value);
            assert_eq!(outcome(&result("", &[value]), &NOTHING_EXPECTED), *value);
        }
        let too_deep = nested(MAX_DEPTH + 1);
        let said = "nests arrays and objects more than 512 levels deep";
        for result in [
            result(&too_deep, &[]),
            result("", &[&too_deep]),
            result(
                &format!(r#"{{"result":{}}}"#, Value::from(too_deep.clone())),
                &[],
            ),
            result(&nested(1_000_000), &[]),
            result("", &[&nested(1_000_000)]),
        ] {
            assert!(outcome(&result, &NOTHING_EXPECTED).contains(said));
        }
        // Where it is not the value, it is a note.
        let beside = outcome(
            &result(r#"{"a":1}"#, &[&nested(100_000)]),
            &NOTHING_EXPECTED,
        );
        assert!(beside.starts_with(r#"{"a":1,"_notes":["[[["#));
    });
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        "[a1\\[\\]{}\" ]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("(a|result|_notes)", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[derive(Debug, Clone)]
enum Sent {
    Text(String),
    Image,
}

fn any_content() -> impl Strategy<Value = Vec<Sent>> {
    let sent = prop_oneof![
        4 => any_json().prop_map(|json| Sent::Text(json.to_string())),
        2 => "[a-c1\\[\\]\" \u{e9}]{0,5}".prop_map(Sent::Text),
        1 => Just(Sent::Image),
    ];
    prop::collection::vec(sent, 0..5)
}

fn any_wrap() -> impl Strategy<Value = Wrap> {
    prop_oneof![
        Just(Wrap::Unmarked),
        Just(Wrap::MarksSome),
        Just(Wrap::Marked)
    ]
}

fn write_out(structured: &Option<Value>, content: &[Sent]) -> String {
    let blocks: Vec<_> = content
        .iter()
        .map(|sent| match sent {
            Sent::Text(text) => json!({"type": "text", "text": text}),
            Sent::Image => json!({"type": "image", "data": "", "mimeType": "image/png"}),
        })
        .collect();
    match structured {
        Some(structured) => json!({"content": blocks, "structuredContent": structured}),
        None => json!({"content": blocks}),
    }
    .to_string()
}

/// The value and its notes, told apart again.
fn taken_apart(delivered: &Value, structured: &Option<Value>) -> (Value, Vec<String>) {
    let notes = |notes: &Value| -> Option<Vec<String>> {
        notes
            .as_array()?
            .iter()
            .map(|note| note.as_str().map(str::to_owned))
            .collect()
    };
    if Some(delivered) != structured.as_ref()
        && let Value::Object(members) = delivered
        && let Some(notes) = members.get("_notes").and_then(notes)
    {
        let mut rest = members.clone();
        rest.shift_remove("_notes");
        return match rest.get("data") {
            Some(data) if rest.len() == 1 => (data.clone(), notes),
            _ => (Value::Object(rest), notes),
        };
    }
    (delivered.clone(), Vec::new())
}

proptest! {
    #[test]
    fn no_text_is_lost(
        structured in prop::option::of(any_json()),
        content in any_content(),
        wrap in any_wrap(),
    ) {
        // contract: R2, R4, R5, R7
        let result = write_out(&structured, &content);
        let expect = Expectation { wrap, ..NOTHING_EXPECTED };
        let whole = outcome(&result, &expect);
        let delivered: Value = serde_json::from_str(&whole).unwrap();
        let (value, notes) = taken_apart(&delivered, &structured);
        let json = value.to_string();
        let told = Reference::new(&json);
        let texts: Vec<_> = content
            .iter()
            .filter_map(|sent| match sent {
                Sent::Text(text) => Some(text.as_str()),
                Sent::Image => None,
            })
            .collect();
        let joined = texts.join("\n");
        for text in &texts {
            let is_noted = notes.iter().any(|note| note == text);
            let is_element = elements(&json)
                .chain(leaves(&json))
                .any(|element| Reference::new(element).is_told_by(text));
            let is_wrapped_string = structured.as_ref().is_some_and(|structured| {
                Reference::new(&structured["result"].to_string()).is_told_by(text)
            });
            let is_joined = structured.as_ref().is_none_or(Value::is_null) && told.is_told_by(&joined);
            // An object that came with notes of its own, which were taken for ours.
            let is_whole = Reference::new(&whole).is_told_by(text);
            prop_assert!(
                is_noted || told.is_told_by(text) || is_element || is_wrapped_string || is_joined || is_whole,
                "{text:?} of {result} is not in {delivered}"
            );
        }
        let images = content.iter().filter(|sent| matches!(sent, Sent::Image)).count();
        let noted = delivered.to_string().matches("[non-text content omitted: image (image/png)]").count();
        prop_assert_eq!(noted, images, "{} of {}", delivered, result);
    }

    #[test]
    fn only_an_object_with_the_sole_key_result_is_unwrapped(structured in any_json(), wrap in any_wrap()) {
        // contract: R2, R4
        let result = write_out(&Some(structured.clone()), &[]);
        let delivered = outcome(&result, &Expectation { wrap, ..NOTHING_EXPECTED });
        let is_wrapper = structured.as_object().is_some_and(|o| o.len() == 1 && o.contains_key("result"));
        if !is_wrapper || wrap == Wrap::MarksSome {
            prop_assert_eq!(delivered, structured.to_string());
        } else {
            let inner = &structured["result"];
            let decoded = inner.as_str().filter(|text| is_json(text)).map(|text| trim(text).to_owned());
            prop_assert_eq!(delivered, decoded.unwrap_or_else(|| inner.to_string()));
        }
    }

    #[test]
    fn a_value_fits_the_limit(
        structured in prop::option::of(any_json()),
        content in any_content(),
        limit in 0..60usize,
    ) {
        // contract: R10
        let result = write_out(&structured, &content);
        let whole = outcome(&result, &NOTHING_EXPECTED);
        match parse(&result, &Expectation { limit, ..NOTHING_EXPECTED }) {
            Ok(parsed) => prop_assert!(parsed.value.get() == whole && whole.len() <= limit),
            Err(ToolError::TooLarge { bytes, .. }) => {
                prop_assert!(bytes == whole.len() as u64 && whole.len() > limit);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn any_json_gives_a_value_or_an_error(
        content in any_json(),
        block in any_json(),
        structured in any_json(),
        other in any_json(),
    ) {
        // contract: R11
        for result in [
            json!({"content": content, "structuredContent": structured, "_meta": other}),
            json!({"content": [block, {"type": "text", "text": content}], "isError": other}),
            json!({"content": [{"type": "resource", "resource": block}, {"type": content}]}),
            other,
        ] {
            if let Ok(parsed) = parse(&result.to_string(), &NOTHING_EXPECTED) {
                prop_assert!(is_json(parsed.value.get()));
            }
        }
    }

    #[test]
    fn any_bytes_that_are_json_give_a_value_or_an_error(
        bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\u0d8 1e-.tfn".as_slice()), 0..40),
    ) {
        // contract: R11
        if let Ok(raw) = serde_json::from_slice::<&RawValue>(&bytes) {
            let _ = value_of(raw.into(), &NOTHING_EXPECTED);
            let inside = format!(r#"{{"structuredContent":{raw},"content":[{{"type":"text","text":{}}}]}}"#, Value::from(raw.get()));
            prop_assert_eq!(outcome(&inside, &NOTHING_EXPECTED).is_empty(), false);
        }
    }
}
