//! Declared output schemas: compiled once, offline, and checked against what a server sends.
//!
//! The server writes the schema as well as the value, so neither may cost more than its size
//! warrants. What a check can cost is computed from the schema before anything is compiled
//! ([`cost`]), since a validator cannot be stopped halfway. A schema that is too dear is not
//! enforced at all, and one that is too dear for a certain value is not enforced for that one.
//! The module knows no content blocks and no tool.

mod cost;
mod instance;

use std::io;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use self::cost::Cost;
use self::instance::{Instance, TreeJson};
use super::MAX_DEPTH;
use super::compare::Tree;

const MAX_SCHEMA_BYTES: usize = 512 * 1024;
/// How many subschema checks any one place of a value may take.
const MAX_CHECKS_AT_A_PLACE: u64 = 100_000;
/// How many subschema checks one value may cost: seconds, not minutes.
const MAX_CHECKS: u64 = 200_000_000;
/// How many checks may go into saying where a value is wrong: their errors are all in memory at once.
const MAX_CHECKS_IN_DETAIL: u64 = 100_000;
/// How many checks may be nested in each other: in a debug build they fit 2 MiB of stack.
const MAX_NESTED_CHECKS: usize = 1600;
/// For the patterns that need backtracking; all others match in linear time.
const MAX_BACKTRACKS: usize = 10_000;
/// How large one compiled pattern may be, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// The longest value that a violation quotes, in bytes of JSON.
const MAX_QUOTED: usize = 200;
/// The longest violation, in bytes.
const MAX_VIOLATION: usize = 1000;

/// A tool's declared output schema, ready to be enforced.
#[derive(Debug)]
pub struct OutputSchema {
    validator: Validator<TreeJson>,
    cost: Cost,
}

impl OutputSchema {
    /// The error says why this schema is not enforced. Nothing is ever fetched.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        if depth(schema) > MAX_DEPTH {
            return Err(format!("it nests more than {MAX_DEPTH} levels deep"));
        }
        if json_is_longer(schema, MAX_SCHEMA_BYTES) {
            return Err(format!("it is longer than {MAX_SCHEMA_BYTES} bytes"));
        }
        let cost = Cost::of(schema)?;
        if cost.checks > MAX_CHECKS_AT_A_PLACE {
            return Err("its branches and references multiply to too many checks".to_owned());
        }
        let validator = jsonschema::options_for::<TreeJson>()
            .offline()
            .with_pattern_options(
                PatternOptions::fancy_regex()
                    .backtrack_limit(MAX_BACKTRACKS)
                    .size_limit(MAX_PATTERN_BYTES),
            )
            .build(schema)
            .map_err(|error| describe(&error))?;
        Ok(Self { validator, cost })
    }

    /// The first violation and its path; `None` when there is none, or when finding out would
    /// cost too much.
    pub fn violation(&self, value: &Value) -> Option<String> {
        if depth(value) > MAX_DEPTH {
            return None;
        }
        self.violation_in(&value.to_string())
    }

    /// [`Self::violation`] for JSON text that nests at most [`MAX_DEPTH`] levels.
    pub(super) fn violation_in(&self, json: &str) -> Option<String> {
        let value = Tree::read(json);
        let (nodes, depth) = value.size();
        let checks = nodes.saturating_mul(self.cost.checks);
        let nested = (depth + 1).saturating_mul(self.cost.nesting);
        if checks > MAX_CHECKS || nested > MAX_NESTED_CHECKS {
            return None;
        }
        let instance = Instance::Tree(&value);
        if self.validator.is_valid(instance) {
            return None;
        }
        if self.cost.in_detail(nodes, depth) > MAX_CHECKS_IN_DETAIL {
            return Some("the value does not match at a place too costly to find".to_owned());
        }
        match self.validator.validate(instance).err()? {
            // Whether it matches is not known.
            error
                if matches!(
                    error.kind(),
                    ValidationErrorKind::BacktrackLimitExceeded { .. }
                ) =>
            {
                None
            }
            error => Some(describe(&error)),
        }
    }
}

fn describe(error: &ValidationError<'_>) -> String {
    let mut message = if json_is_longer(error.instance(), MAX_QUOTED) {
        error.masked().to_string()
    } else {
        error.to_string()
    };
    shorten(&mut message);
    let mut path = error.instance_path().to_string();
    shorten(&mut path);
    if path.is_empty() {
        format!("{message} at the top level")
    } else {
        format!("{message} at {path}")
    }
}

fn shorten(text: &mut String) {
    if text.len() > MAX_VIOLATION / 2 {
        text.truncate(text.floor_char_boundary(MAX_VIOLATION / 2));
        text.push_str("...");
    }
}

/// How many levels of arrays and objects a value nests.
fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        let within: &mut dyn Iterator<Item = &Value> = match value {
            Value::Array(elements) => &mut elements.iter(),
            Value::Object(members) => &mut members.values(),
            _ => continue,
        };
        deepest = deepest.max(depth);
        open.extend(within.map(|value| (value, depth + 1)));
    }
    deepest
}

/// Whether a value's JSON has more than `limit` bytes, found out without writing more than those.
fn json_is_longer(value: &Value, limit: usize) -> bool {
    struct Remaining(usize);

    impl io::Write for Remaining {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    serde_json::to_writer(Remaining(limit), value).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    fn violation(schema: &Value, value: &str) -> Option<String> {
        OutputSchema::compile(schema).unwrap().violation_in(value)
    }

    #[test]
    #[rustfmt::skip]
    fn the_first_violation_is_told_with_its_path() {
        // contract: R9
        let row = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]});
        let rows = json!({"properties": {"rows": {"items": row}}});
        let cases = [
            (&json!(true), "1", None),
            (&json!(false), "1", Some("False schema does not allow 1 at the top level")),
            (&rows, r#"{"rows":[{"n":1},{"n":2.0}]}"#, None),
            (&rows, r#"{"rows":[{"n":1},{"n":"x"}]}"#, Some("\"x\" is not of type \"integer\" at /rows/1/n")),
            (&rows, r#"{"rows":[{"n":1},{"m":1}]}"#, Some("\"n\" is a required property at /rows/1")),
            (&rows, r#"{"rows":[{"n":-1e400}]}"#, Some("-1e+400 is less than the minimum of 1 at /rows/0/n")),
            (&rows, r#"{"rows":[{"n":123456789012345678901234567890}]}"#, None),
            // Of duplicate keys the last counts, as in Python.
            (&rows, r#"{"rows":1,"rows":[{"n":"x","n":1}]}"#, None),
            (&json!({"type": "string", "maxLength": 1}), r#""\ud800""#, None),
            (&json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]}), "[1]", Some("1 is not of type \"null\" at /0")),
            (&json!({"type": "string", "format": "email"}), "\"x\"", None),
        ];
        for (schema, value, expected) in cases {
            assert_eq!(
                violation(schema, value).as_deref(),
                expected,
                "{schema} {value}"
            );
        }
    }

    #[test]
    #[rustfmt::skip]
    fn a_violation_stays_short() {
        // contract: R9
        let long = "x".repeat(100_000);
        let cases = [
            (json!({"type": "integer"}), json!(long)),
            (json!({"additionalProperties": {"type": "integer"}}), json!({long.as_str(): "y"})),
            (json!({"additionalProperties": false}), json!({long.as_str(): 1, "y": 2})),
            (json!({"enum": [long]}), json!(1)),
            (json!({"required": [long]}), json!({})),
            (json!({"maxItems": 1}), json!([long, long])),
        ];
        for (schema, value) in cases {
            let told = violation(&schema, &value.to_string()).unwrap();
            assert!(told.len() <= MAX_VIOLATION + 20, "{}", told.len());
        }
    }

    #[test]
    #[rustfmt::skip]
    fn a_schema_that_cannot_be_enforced_says_why() {
        // contract: R9
        let long = "x".repeat(MAX_SCHEMA_BYTES);
        let cases = [
            (json!({"type": "strin"}), "\"strin\" is not valid under any of the schemas"),
            (json!([]), "[] is not of types"),
            (json!({"$schema": "http://h/unknown"}), "Unknown meta-schema: 'http://h/unknown'"),
            (json!({"$ref": "file:///etc/passwd"}), "it refers to 'file:///etc/passwd'"),
            (json!({"items": {"$ref": "http://h/x#/y"}}), "it refers to 'http://h/x#/y'"),
            (json!({"pattern": "("}), "\"(\" is not a \"regex\""),
            (json!({"pattern": "(a{1000}){1000}"}), "\"(a{1000}){1000}\" is not a \"regex\""),
            (json!({"description": long}), "it is longer than 524288 bytes"),
            (doubling("anyOf", 26), "its branches and references multiply to too many checks"),
            (doubling("allOf", 64), "its branches and references multiply to too many checks"),
        ];
        for (schema, reason) in cases {
            let told = OutputSchema::compile(&schema).unwrap_err();
            assert!(told.starts_with(reason), "{told}");
        }
    }

    /// Each definition refers twice to the one before.
    fn doubling(keyword: &str, levels: usize) -> Value {
        let mut definitions = Map::from_iter([("0".to_owned(), json!({"type": "string"}))]);
        for level in 0..levels {
            let below = json!({"$ref": format!("#/$defs/{level}")});
            definitions.insert((level + 1).to_string(), json!({keyword: [below, below]}));
        }
        json!({"$ref": format!("#/$defs/{levels}"), "$defs": definitions})
    }

    #[test]
    fn doubling_that_is_enforced_is_told_within_bounds() {
        // contract: R11
        let told = violation(&doubling("anyOf", 10), "1").unwrap();
        assert!(
            told.starts_with("1 is not valid under any of the schemas"),
            "{told}"
        );
        // One million places, a few thousand checks each: not for this value.
        let rows = json!({"items": doubling("allOf", 10), "$defs": doubling("allOf", 10)["$defs"]});
        let many = Value::from(vec![1; 1_000_000]).to_string();
        assert_eq!(violation(&rows, &many), None);
    }

    #[test]
    fn recursion_is_checked_to_the_deepest_level_on_a_worker_threads_stack() {
        // contract: R11
        let recurse = || json!({"properties": {"a": {"$ref": "#"}}, "required": ["a"]});
        let schemas = [
            recurse(),
            json!({"allOf": [recurse(), recurse()]}),
            json!({"anyOf": [recurse(), recurse()]}),
            json!({"oneOf": [recurse(), recurse()]}),
            json!({"if": recurse(), "then": recurse(), "else": false}),
            json!({"not": {"not": recurse()}}),
            json!({"unevaluatedProperties": {"$ref": "#"}, "required": ["a"]}),
            json!({"$dynamicAnchor": "x", "properties": {"a": {"$dynamicRef": "#x"}}, "required": ["a"]}),
        ];
        let check = move || {
            for schema in schemas {
                let compiled = OutputSchema::compile(&schema).unwrap();
                for levels in [1, 3, 20, MAX_DEPTH] {
                    let value = r#"{"a":"#.repeat(levels - 1) + "{}" + &"}".repeat(levels - 1);
                    assert!(compiled.violation_in(&value).is_some(), "{schema} {levels}");
                }
            }
            let chained = |levels: usize, link: &dyn Fn(Value) -> Value| {
                let link = |n: usize| {
                    let next = json!({"$ref": format!("#/$defs/{}", n + 1)});
                    (n.to_string(), link(next))
                };
                let mut chain: Map<_, _> = (0..levels).map(link).collect();
                chain.insert(levels.to_string(), json!({"type": "string"}));
                json!({"$ref": "#/$defs/0", "$defs": chain})
            };
            let direct = chained(398, &|next| next);
            assert!(violation(&direct, "1").is_some());
            let deeper = chained(
                132,
                &|next| json!({"items": {"anyOf": [next, {"type": "null"}]}}),
            );
            assert_eq!(violation(&deeper, "[1]"), None);
            assert!(violation(&deeper, &("[".repeat(132) + "1" + &"]".repeat(132))).is_some());
            // Too many checks in each other at 512 levels, but not at 50.
            let chain = (0..9).fold(recurse(), |inner, _| json!({"allOf": [inner]}));
            let compiled = OutputSchema::compile(&chain).unwrap();
            for (levels, enforced) in [(50, true), (MAX_DEPTH, false)] {
                let value = r#"{"a":"#.repeat(levels - 1) + "{}" + &"}".repeat(levels - 1);
                assert_eq!(compiled.violation_in(&value).is_some(), enforced);
            }
        };
        std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(check)
            .unwrap()
            .join()
            .unwrap();
    }

    #[test]
    fn telling_a_violation_cannot_run_away_either() {
        // contract: R11
        let recurse = || json!({"properties": {"a": {"$ref": "#/$defs/n"}}});
        let schema = |n: Value| json!({"allOf": [{"$ref": "#/$defs/n"}, {"required": ["z"]}], "$defs": {"n": n}});
        let once = schema(recurse());
        let twice = schema(json!({"allOf": [recurse(), recurse()]}));
        let unevaluated =
            schema(json!({"allOf": [recurse()], "unevaluatedProperties": {"$ref": "#/$defs/n"}}));
        let nested = |levels: usize| r#"{"a":"#.repeat(levels - 1) + "{}" + &"}".repeat(levels - 1);
        let told = Some("\"z\" is a required property at the top level".to_owned());
        let untold = Some("the value does not match at a place too costly to find".to_owned());
        assert_eq!(violation(&once, &nested(400)), told);
        assert_eq!(violation(&twice, &nested(5)), told);
        assert_eq!(violation(&twice, &nested(400)), untold);
        assert_eq!(violation(&unevaluated, &nested(400)), untold);
        // Optional fields are unions, but nothing is below them.
        let optional = json!({"items": {"properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}});
        let mut rows = vec![json!({"n": 1}); 100_000];
        rows.push(json!({"n": "x"}));
        let told = violation(&optional, &Value::from(rows).to_string()).unwrap();
        assert!(told.ends_with("'anyOf' keyword at /100000/n"), "{told}");
    }

    #[test]
    fn patterns_cannot_run_away() {
        // contract: R11
        let nested = json!({"items": {"pattern": "^(a+)+$"}});
        let value = json!(vec!["a".repeat(50) + "b"; 100]).to_string();
        assert!(
            violation(&nested, &value)
                .unwrap()
                .contains("does not match")
        );
        // Undecided within the limit, so not held against the server.
        let backreference = json!({"pattern": r"^(?=(a|aa)+$)((a|aa)+)\1$"});
        let value = json!("a".repeat(60) + "b").to_string();
        assert_eq!(violation(&backreference, &value), None);
        let lookahead = json!({"pattern": r"^(?!\.)[a-z.]+$"});
        assert!(violation(&lookahead, "\".x\"").is_some());
        assert_eq!(violation(&lookahead, "\"x\""), None);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let numbers = [
            "0",
            "1",
            "2",
            "-1",
            "1.0",
            "2.5",
            "1e2",
            "123456789012345678901",
            "1E-1",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            prop::sample::select(numbers.to_vec())
                .prop_map(|number| serde_json::from_str(number).unwrap()),
            "[ab\u{e9}\"]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[abcx]", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Validating slices of text and validating serde_json's tree are the same.
        #[test]
        #[rustfmt::skip]
        fn the_text_is_judged_as_its_value_is(value in any_value()) {
            // contract: R9
            let schemas = [
                json!({"type": ["integer", "object", "array"]}),
                json!({"minimum": 1, "multipleOf": 0.5, "maxLength": 2, "maxItems": 2, "maxProperties": 1}),
                json!({"enum": [1, "a", [1, "a"], {"a": null, "b": [true]}, 2.5, null]}),
                json!({"const": {"a": 1}}),
                json!({"uniqueItems": true, "contains": {"type": "number"}}),
                json!({"properties": {"a": {"$ref": "#"}, "b": {"type": "string"}}, "additionalProperties": false}),
                json!({"patternProperties": {"^[ab]$": {"type": "number"}}, "required": ["a"]}),
                json!({"propertyNames": {"enum": ["a", "b"]}, "dependentRequired": {"a": ["b"]}}),
                json!({"prefixItems": [{"type": "integer"}, {"pattern": "a"}], "items": {"$ref": "#"}}),
                json!({"anyOf": [{"items": {"$ref": "#"}, "type": "array"}, {"type": ["number", "string"]}]}),
                json!({"if": {"required": ["a"]}, "then": {"properties": {"a": {"const": 1}}}, "else": {"not": {"type": "object"}}}),
                json!({"properties": {"a": true}, "unevaluatedProperties": {"type": "boolean"}}),
            ];
            for schema in schemas {
                let expected = jsonschema::validator_for(&schema).unwrap().is_valid(&value);
                let found = violation(&schema, &value.to_string());
                prop_assert_eq!(found.is_none(), expected, "{} {} {:?}", schema, value, found);
            }
        }
    }
}
