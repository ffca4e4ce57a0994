//! The rules on results against a second reading of contract section R, written in Python from its
//! words alone (`tests/differential/results.py`): thousands of generated results, one interpreter.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use fastrand::Rng;
use ptc_mcp::result::{Expectation, OutputSchema, Wrap, value_of};
use ptc_mcp::tool::ToolError;
use serde_json::json;
use serde_json::value::RawValue;

const CASES: usize = 6000;
const SEED: u64 = 4;

/// What may be anywhere in a value. The second half is written with more bytes than are needed, or
/// not as Python would write it again.
const SCALARS: [&str; 20] = [
    "1",
    "0",
    "true",
    "false",
    r#""""#,
    r#""a""#,
    r#""1""#,
    r#""{\"a\":1}""#,
    r#""no \"JSON\" é""#,
    "1.5",
    "1.0",
    "1.50",
    "-0",
    "1e2",
    "1e999",
    "123456789012345678901234567890",
    "0.1e-7",
    r#""\u0061""#,
    r#"" [1, 2] ""#,
    r#""NaN""#,
];
const COMPACT: usize = 10;

const PROSE: [&str; 9] = [
    "EMPTY RESULT",
    "3 rows",
    "",
    " padded\n",
    "a",
    "NaN",
    "[1,",
    "2]",
    "é \u{1f600}",
];

/// Writes results. What is compact is written as Python's `json` would write it, so that both sides
/// mean the same number of bytes.
struct Writer {
    random: Rng,
    compact: bool,
}

impl Writer {
    fn scalar(&mut self) -> String {
        let count = if self.compact { COMPACT } else { SCALARS.len() };
        SCALARS[self.random.usize(..count)].to_owned()
    }

    fn value(&mut self, depth: usize) -> String {
        let space = if self.compact || self.random.bool() {
            ""
        } else {
            " "
        };
        match self.random.usize(..6) {
            0 | 1 if depth > 0 => self.object(depth - 1, space),
            2 if depth > 0 => {
                let count = self.random.usize(..4);
                // Elements of elements are the SDKs' matter, of which the contract has no word.
                let elements: Vec<_> = (0..count)
                    .map(|_| match self.random.usize(..4) {
                        0 => self.object(0, space),
                        _ => self.scalar(),
                    })
                    .collect();
                format!("[{}]", elements.join(&format!(",{space}")))
            }
            _ => self.scalar(),
        }
    }

    fn object(&mut self, depth: usize, space: &str) -> String {
        let mut members = BTreeMap::new();
        for _ in 0..self.random.usize(..4) {
            let key = ["a", "b", "result", "_notes", "data"][self.random.usize(..5)];
            let value = self.value(depth);
            members.insert(key, value);
        }
        let members: Vec<_> = members
            .iter()
            .map(|(key, value)| format!(r#""{key}":{space}{value}"#))
            .collect();
        format!("{{{space}{}{space}}}", members.join(&format!(",{space}")))
    }

    fn structured(&mut self) -> String {
        if self.random.usize(..5) < 3 {
            format!(r#"{{"result":{}}}"#, self.value(2))
        } else {
            self.object(2, "")
        }
    }

    /// Another text for the same value, if this is a number; else the text with more space.
    fn rendered_otherwise(&mut self, json: &str) -> String {
        match json {
            _ if self.compact => json.to_owned(),
            "1" => "1.0".to_owned(),
            "1e2" => "100".to_owned(),
            "1.5" => "15e-1".to_owned(),
            _ => format!(" {json}\n"),
        }
    }

    /// Texts that have something to do with the value, and others.
    fn texts(&mut self, structured: Option<&str>) -> Vec<String> {
        let mut texts = Vec::new();
        if let Some(structured) = structured {
            let inner = structured
                .strip_prefix(r#"{"result":"#)
                .and_then(|rest| rest.strip_suffix('}'))
                .filter(|inner| serde_json::from_str::<&RawValue>(inner).is_ok());
            match (self.random.usize(..5), inner) {
                (0, _) => texts.push(self.rendered_otherwise(structured)),
                (1 | 2, Some(inner)) => texts.extend(self.telling(inner)),
                (3, Some(inner)) => {
                    for element in serde_json::from_str::<Vec<&RawValue>>(inner).unwrap_or_default()
                    {
                        texts.extend(self.telling(element.get()));
                    }
                    if self.random.usize(..6) == 0 {
                        texts.pop();
                    }
                    if self.random.usize(..6) == 0 {
                        self.random.shuffle(&mut texts);
                    }
                }
                _ => {}
            }
        }
        for _ in 0..[0, 0, 1, 1, 2, 3][self.random.usize(..6)] {
            let text = if self.random.bool() {
                PROSE[self.random.usize(..PROSE.len())].to_owned()
            } else {
                self.value(2)
            };
            let place = self.random.usize(..=texts.len());
            texts.insert(place, text);
        }
        texts
    }

    /// The value as a text: a string is itself or its literal, or the JSON in it.
    fn telling(&mut self, value: &str) -> Option<String> {
        let plain = serde_json::from_str::<String>(value).ok();
        if let Some(plain) = plain
            && self.random.bool()
        {
            let is_json = serde_json::from_str::<&RawValue>(&plain).is_ok();
            return Some(match self.random.bool() && is_json {
                true => self.rendered_otherwise(&plain),
                false => plain,
            });
        }
        Some(self.rendered_otherwise(value))
    }

    fn result(&mut self) -> String {
        let structured = (self.random.usize(..3) > 0).then(|| self.structured());
        let mut blocks: Vec<_> = self
            .texts(structured.as_deref())
            .into_iter()
            .map(|text| match self.random.usize(..12) {
                0 => json!({"type": "resource", "resource": {"uri": "file:///t", "text": text}}),
                _ => json!({"type": "text", "text": text}),
            })
            .collect();
        if self.random.usize(..4) == 0 {
            let other = match self.random.usize(..4) {
                0 => json!({"type": "image", "mimeType": "image/png", "data": "AA=="}),
                1 => json!({"type": "audio", "mimeType": "audio/wav", "data": "AA=="}),
                2 => json!({"type": "resource", "resource": {"uri": "file:///b", "blob": "AA=="}}),
                _ => json!({"type": "resource_link", "uri": "file:///c", "name": "c"}),
            };
            let place = self.random.usize(..=blocks.len());
            blocks.insert(place, other);
        }
        let mut members = vec![format!(r#""content":{}"#, json!(blocks))];
        members.extend(structured.map(|json| format!(r#""structuredContent":{json}"#)));
        if self.random.usize(..8) == 0 {
            members.push(r#""_meta":{"fastmcp":{"wrap_result":true}}"#.to_owned());
        }
        if self.random.usize(..12) == 0 {
            members.push(r#""isError":true"#.to_owned());
        }
        format!("{{{}}}", members.join(","))
    }
}

fn case(random: Rng) -> String {
    let compact = random.clone().usize(..3) == 0;
    let mut writer = Writer { random, compact };
    let result = writer.result();
    let random = &mut writer.random;
    let limit = compact.then(|| random.usize(..80));
    let (wrap, wrap_name) = [
        (Wrap::Unmarked, "unmarked"),
        (Wrap::Unmarked, "unmarked"),
        (Wrap::MarksSome, "some"),
        (Wrap::Marked, "marked"),
    ][random.usize(..4)];
    let declared = (random.usize(..6) == 0).then(|| ["object", "array"][random.usize(..2)]);
    let schema = declared.map(|kind| {
        OutputSchema::compile(&json!({"type": kind})).expect("a schema that can be enforced")
    });
    let expect = Expectation {
        tool: "mcp__srv__tool",
        schema: schema.as_ref(),
        declares_schema: schema.is_some(),
        wrap,
        // What an error says is cut at the limit as well, which is another matter.
        limit: limit
            .filter(|_| !result.contains("isError"))
            .unwrap_or(1 << 20),
    };
    let raw = RawValue::from_string(result.clone()).expect("what is written is JSON");
    let got = match value_of((&*raw).into(), &expect) {
        Ok(parsed) => json!({"value": parsed.value.get()}),
        Err(error) => {
            let kind = match &error {
                ToolError::Failed { .. } => "failed",
                ToolError::SchemaMismatch { .. } => "schema",
                ToolError::TooLarge { .. } => "too large",
                _ => "another",
            };
            json!({"error": kind, "text": error.to_string()})
        }
    };
    let rest = json!({"wrap": wrap_name, "declared": declared, "limit": limit, "got": got});
    let rest = rest.to_string();
    format!(r#"{{"result":{result},{}"#, &rest[1..])
}

// contract: R1 R2 R3 R4 R5 R6 R7 R8 R9 R10
#[test]
fn a_second_reading_of_the_contract_agrees_on_thousands_of_results() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/differential/results.py");
    let mut random = Rng::with_seed(SEED);
    let cases: String = (0..CASES).map(|_| case(random.fork()) + "\n").collect();
    let mut python = Command::new("python3")
        .args(["-I", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut stdin = python.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || stdin.write_all(cases.as_bytes()));
    let output = python.wait_with_output().expect("an end");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{said}");
    writing.join().expect("no panic").expect("all is read");
    let disagreements: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("DISAGREE"))
        .collect();
    assert!(
        disagreements.is_empty(),
        "{} of {CASES} (seed {SEED}):\n{}",
        disagreements.len(),
        disagreements[..disagreements.len().min(10)].join("\n")
    );
    let ways: BTreeMap<_, usize> = said
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(way, count)| (way, count.parse().expect("a number")))
        .collect();
    assert_eq!(ways.values().sum::<usize>(), CASES);
    for way in ["value", "failed", "schema", "too large"] {
        assert!(
            ways.get(way).is_some_and(|count| *count > CASES / 50),
            "{ways:?}"
        );
    }
}
