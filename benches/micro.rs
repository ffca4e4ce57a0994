//! The functions that every call passes through, alone: small inputs for what a call costs, large
//! ones for what a byte costs. Each checks its answer before it is timed.
//!
//! `cargo bench --bench micro`; a part of a name after `--` chooses among them.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ptc_mcp::channel::frame::Decoder;
use ptc_mcp::channel::{ChildMessage, HostMessage, MAX_CHILD_FRAME};
use ptc_mcp::downstream::messages_in;
use ptc_mcp::result::{Expectation, OutputSchema, Wrap, value_of};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn main() {
    divan::main();
}

const SMALL: usize = 1;
const LARGE: usize = 10_000;
/// How a pipe cuts what is larger than it.
const PIPE: usize = 64 * 1024;
const LIMIT: usize = 64 * 1024 * 1024;

fn rows(count: usize) -> Value {
    let row = |id| {
        json!({"id": id, "name": format!("row number {id}"), "amount": f64::from(id as u32) * 1.25,
            "tags": ["a", "b", null, true], "note": "said \"so\", on\ntwo lines"})
    };
    json!({"rows": (0..count).map(row).collect::<Vec<_>>()})
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("a value is JSON")
}

fn expectation<'a>(schema: Option<&'a OutputSchema>) -> Expectation<'a> {
    Expectation {
        tool: "mcp__s__rows",
        schema,
        declares_schema: schema.is_some(),
        wrap: Wrap::Unmarked,
        limit: LIMIT,
    }
}

/// Reads a result again and again that must become `expected`.
fn read(bencher: Bencher<'_, '_>, result: &Value, expected: &Value, schema: Option<&OutputSchema>) {
    let (result, expect) = (raw(result), expectation(schema));
    let parsed = value_of((&*result).into(), &expect).expect("it is sound");
    assert_eq!(
        &serde_json::from_str::<Value>(parsed.value.get()).expect("JSON"),
        expected
    );
    bencher
        .counter(BytesCount::new(result.get().len()))
        .with_inputs(|| (&*result).into())
        .bench_values(|result| value_of(black_box(result), &expect));
}

/// The texts of a `CallToolResult` become a value.
#[divan::bench(args = [SMALL, LARGE])]
fn parse_text(bencher: Bencher<'_, '_>, count: usize) {
    let rows = rows(count);
    let result = json!({"content": [{"type": "text", "text": rows.to_string()}]});
    read(bencher, &result, &rows, None);
}

/// Structured content, and its text rendering beside it.
#[divan::bench(args = [SMALL, LARGE])]
fn parse_structured(bencher: Bencher<'_, '_>, count: usize) {
    let rows = rows(count);
    let result =
        json!({"content": [{"type": "text", "text": rows.to_string()}], "structuredContent": rows});
    read(bencher, &result, &rows, None);
}

/// The same, where the text is spaced in another way: equal by value, not by bytes.
#[divan::bench(args = [SMALL, LARGE])]
fn parse_structured_spaced(bencher: Bencher<'_, '_>, count: usize) {
    let rows = rows(count);
    let text = serde_json::to_string_pretty(&rows).expect("a value is JSON");
    let result = json!({"content": [{"type": "text", "text": text}], "structuredContent": rows});
    read(bencher, &result, &rows, None);
}

/// `{"result": …}` as servers wrap what is no object, told by the text beside it.
#[divan::bench(args = [SMALL, LARGE])]
fn unwrap(bencher: Bencher<'_, '_>, count: usize) {
    let list = rows(count)["rows"].clone();
    let result = json!({"content": [{"type": "text", "text": list.to_string()}], "structuredContent": {"result": list}});
    read(bencher, &result, &list, None);
}

/// Structured content against a declared schema.
#[divan::bench(args = [SMALL, LARGE])]
fn schema(bencher: Bencher<'_, '_>, count: usize) {
    let row = json!({"type": "object", "required": ["id", "name"], "additionalProperties": false, "properties": {
        "id": {"type": "integer", "minimum": 0}, "name": {"type": "string", "maxLength": 40},
        "amount": {"type": "number"}, "tags": {"type": "array"}, "note": {"type": "string"}}});
    let schema = json!({"type": "object", "required": ["rows"], "properties": {"rows": {"type": "array", "items": row}}});
    let schema = OutputSchema::compile(&schema).expect("it is sound");
    let rows = rows(count);
    let wrong = raw(&json!({"content": [], "structuredContent": {"rows": [{"id": "1"}]}}));
    assert!(value_of((&*wrong).into(), &expectation(Some(&schema))).is_err());
    let result = json!({"content": [], "structuredContent": rows});
    read(bencher, &result, &rows, Some(&schema));
}

/// A value into the frame that the child reads.
#[divan::bench(args = [SMALL, LARGE])]
fn frame_encode(bencher: Bencher<'_, '_>, count: usize) {
    let value = raw(&rows(count));
    let length = value.get().len();
    let message = move || HostMessage::Return {
        id: 7,
        value: value.clone().into(),
    };
    let frame = message().into_frame().expect("it fits").concat();
    assert!(frame.ends_with(b"}") && frame.len() > length);
    bencher
        .counter(BytesCount::new(length))
        .with_inputs(message)
        .bench_values(HostMessage::into_frame);
}

/// A call of the child's, from the bytes in the pipe to the message.
#[divan::bench(args = [SMALL, LARGE])]
fn frame_decode(bencher: Bencher<'_, '_>, count: usize) {
    let body = format!(
        r#"{{"type":"call","id":7,"tool":"mcp__s__rows","arguments":{}}}"#,
        rows(count)
    );
    let length = u32::try_from(body.len()).expect("it fits");
    let stream = [&length.to_be_bytes(), body.as_bytes()].concat();
    let decode = || {
        let mut decoder = Decoder::new(MAX_CHILD_FRAME);
        let mut decoded = None;
        for mut piece in black_box(&stream).chunks(PIPE) {
            decoded = decoder.decode(&mut piece).expect("it is a frame");
        }
        ChildMessage::parse(&decoded.expect("it is whole"))
    };
    assert!(matches!(decode(), Ok(ChildMessage::Call { id: 7, .. })));
    bencher.counter(BytesCount::new(stream.len())).bench(decode);
}

/// What a server wrote to its stdout, as the pipe cuts it, into messages.
#[divan::bench(args = [SMALL, LARGE])]
fn wire(bencher: Bencher<'_, '_>, count: usize) {
    let result = json!({"content": [{"type": "text", "text": rows(count).to_string()}]});
    let line = json!({"jsonrpc": "2.0", "id": 7, "result": result}).to_string() + "\n";
    let read = || messages_in(black_box(line.as_bytes()).chunks(PIPE), LIMIT);
    assert_eq!(read(), 1);
    bencher.counter(BytesCount::new(line.len())).bench(read);
}
