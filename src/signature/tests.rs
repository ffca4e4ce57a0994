use serde_json::json;

use super::*;

fn input(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

// contract: M2
#[test]
fn one_parameter_of_each_kind() {
    for (schema, expected) in [
        (json!({"type": "string"}), "str"),
        (json!({"type": "integer"}), "int"),
        (json!({"type": "number"}), "float"),
        (json!({"type": "boolean"}), "bool"),
        (json!({"type": "null"}), "None"),
        (json!({"type": ["string", "null"]}), "str | None"),
        (json!({"type": "string", "nullable": true}), "str | None"),
        (
            json!({"enum": ["a", "b\"c", null]}),
            r#"Literal["a", "b\"c"] | None"#,
        ),
        (json!({"type": "integer", "enum": [1, 2]}), "Literal[1, 2]"),
        (json!({"enum": [1.5, 2]}), "float | int"),
        (json!({"const": "x"}), r#"Literal["x"]"#),
        (
            json!({"enum": (0..99).map(|n| format!("v{n}")).collect::<Vec<_>>()}),
            "str",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            "list[str]",
        ),
        (json!({"type": "array"}), "list[Any]"),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}),
            "list[str | int]",
        ),
        (json!({"type": "object"}), "dict[str, Any]"),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            "dict[str, int]",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            "dict[str, Any]",
        ),
        (
            json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
            "str | None",
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
            "str | list[str]",
        ),
        (json!({"allOf": [{"type": "string"}]}), "str"),
        (
            json!({"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "x"}]}),
            "str",
        ),
        (json!({}), "Any"),
        (json!(true), "Any"),
        (json!(false), "Any"),
        (json!("nonsense"), "Any"),
        (json!({"type": 7}), "Any"),
        (json!({"$ref": "https://example.com/schema.json"}), "Any"),
        (json!({"$ref": "#/nowhere"}), "Any"),
        (json!({"$ref": "#/properties/p"}), "Any"),
    ] {
        let schema = input(json!({"p": schema}), &["p"]);
        assert_eq!(
            line("f", &schema, Returns::Undeclared),
            format!("async def f(*, p: {expected}) -> Any: ..."),
            "{schema}"
        );
    }
}

// contract: M2 P11
#[test]
fn names_defaults_and_order_of_parameters() {
    for (schema, expected) in [
        (
            input(
                json!({"to": {"type": "string"}, "from": {"type": "string"}}),
                &["from"],
            ),
            "async def f(*, from_: str, to: str = ...) -> Any: ...",
        ),
        (
            input(
                json!({"limit": {"type": "integer", "default": 10}, "q": {"type": "string"}}),
                &["limit", "q"],
            ),
            "async def f(*, q: str, limit: int = 10) -> Any: ...",
        ),
        (
            input(
                json!({"o": {"default": {"a": [true, null]}}, "s": {"default": "x\ny"}}),
                &[],
            ),
            r#"async def f(*, o: Any = {"a": [True, None]}, s: Any = "x\ny") -> Any: ..."#,
        ),
        (
            input(
                json!({"d": {"type": "string", "default": "x".repeat(500)}}),
                &[],
            ),
            "async def f(*, d: str = ...) -> Any: ...",
        ),
        (
            input(json!({"a-b": {"type": "integer"}, "ok": {}}), &["a-b"]),
            r#"async def f(*, ok: Any = ..., **others: Any) -> Any: ...  # pass as **{"name": value}, being no Python names: "a-b": int (required)"#,
        ),
        (
            input(json!({"from": {}, "from_": {}, "é": {}}), &[]),
            r#"async def f(*, from_: Any = ..., **others: Any) -> Any: ...  # pass as **{"name": value}, being no Python names: "from": Any (optional), "é": Any (optional)"#,
        ),
        (input(json!({}), &[]), "async def f() -> Any: ..."),
        (
            json!({}),
            "async def f(**arguments: Any) -> Any: ...  # the schema names no parameters",
        ),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"$ref": "#/$defs/b"}],
                   "$defs": {"b": {"properties": {"b": {"type": "integer"}}}}}),
            "async def f(*, a: str, b: int = ...) -> Any: ...",
        ),
        (
            json!({"oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}),
            "async def f(*, a: Any = ..., b: Any = ...) -> Any: ...",
        ),
    ] {
        assert_eq!(
            line("f", &schema, Returns::Undeclared),
            expected,
            "{schema}"
        );
    }
}

// contract: M2
#[test]
fn results_come_with_the_classes_they_need() {
    let expense = json!({
        "type": "object",
        "properties": {
            "date": {"type": "string"},
            "amount": {"type": "number"},
            "by": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "note": {"type": "string"},
        },
        "required": ["date", "amount", "by"],
    });
    let returns = json!({
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/Expense"}}},
        "required": ["result"],
        "$defs": {"Expense": expense},
    });
    let schema = input(json!({"employee_id": {"type": "string"}}), &["employee_id"]);
    assert_eq!(
        stub(
            "mcp__hr__get_expenses",
            &schema,
            Returns::Unwrapped(&returns)
        ),
        "\
class By(TypedDict):
    name: str

class Expense(TypedDict):
    date: str
    amount: float
    by: By
    note: NotRequired[str]

async def mcp__hr__get_expenses(*, employee_id: str) -> list[Expense]: ..."
    );
    assert_eq!(
        line("f", &schema, Returns::PerhapsUnwrapped(&returns)),
        "async def f(*, employee_id: str) -> list[dict[str, Any]]: ...  \
         # perhaps {\"result\": ...} around it: print one value first"
    );
    let odd = json!({"type": "object", "title": "from here", "properties": {"a-b": {"type": "string"}, "class": {}}});
    assert_eq!(
        stub("f", &json!({"properties": {}}), Returns::Value(&odd)),
        "FromHere = TypedDict(\"FromHere\", {\"a-b\": NotRequired[str], \"class\": NotRequired[Any]})\n\n\
         async def f() -> FromHere: ..."
    );
}

// contract: M2
#[test]
fn schemas_that_never_end_give_a_short_stub() {
    let node = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {
            "value": {"type": "string"},
            "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        }, "required": ["value"]}},
    });
    assert_eq!(
        stub("f", &json!({"properties": {}}), Returns::Value(&node)),
        "\
class Node(TypedDict):
    value: str
    next: NotRequired[\"Node | None\"]
    children: NotRequired[list[\"Node\"]]

async def f() -> Node: ..."
    );
    let mut deep = json!({"type": "string"});
    for _ in 0..400 {
        deep = json!({"type": "object", "properties": {"inner": deep.clone()}, "items": deep});
        if deep.to_string().len() > 1_000_000 {
            break;
        }
    }
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    let twice: Value = (0..60).fold(json!({"d0": {"type": "string"}}), |mut defs, n| {
        let inner = json!({"$ref": format!("#/$defs/d{n}")});
        defs[format!("d{}", n + 1)] = json!({"properties": {"a": inner, "b": inner}});
        defs
    });
    let doubling = json!({"$ref": "#/$defs/d60", "$defs": twice});
    let wide: Map<String, Value> = (0..5_000)
        .map(|n| (format!("column_{n}"), json!({"type": "string"})))
        .collect();
    let wide = json!({"type": "object", "properties": wide});
    for schema in [&deep, &circle, &doubling, &wide] {
        for returns in [Returns::Undeclared, Returns::Value(schema)] {
            let started = std::time::Instant::now();
            let stub = stub("mcp__s__t", schema, returns);
            assert!(stub.len() <= MAX_STUB, "{} bytes", stub.len());
            assert!(line("mcp__s__t", schema, returns).len() <= MAX_LINE);
            assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
        }
    }
}

// contract: M3
#[test]
fn only_what_is_forbidden_for_certain_is_held_against_a_call() {
    for (schema, required, allowed) in [
        (json!({}), &[][..], None),
        (json!({"required": ["a"]}), &["a"], None),
        (
            json!({"properties": {"a": {"default": 1}, "b": {}}, "required": ["a", "b"]}),
            &["b"],
            None,
        ),
        (
            json!({"properties": {"a": {}, "b": {}}, "additionalProperties": false}),
            &[],
            Some(vec!["a", "b"]),
        ),
        (
            json!({"properties": {"a": {}}, "additionalProperties": {}}),
            &[],
            None,
        ),
        (
            json!({"properties": {"a": {}}, "additionalProperties": false, "patternProperties": {"^x": {}}}),
            &[],
            None,
        ),
        (
            json!({"properties": {"a": {}}, "additionalProperties": false, "allOf": [{"properties": {"b": {}}}]}),
            &[],
            None,
        ),
        (json!({"required": "a", "properties": 7}), &[], None),
    ] {
        let expected = Parameters {
            required: required.iter().map(|name| (*name).to_owned()).collect(),
            allowed: allowed.map(|names: Vec<&str>| names.into_iter().map(str::to_owned).collect()),
        };
        assert_eq!(parameters(&schema), expected, "{schema}");
    }
}

// contract: P11
#[test]
fn names_that_really_end_in_an_underscore_are_known() {
    let schema = json!({"properties": {"from_": {}, "to_": {}, "in": {}, "class_": {}}});
    assert_eq!(underscored(&schema), ["from_", "class_"]);
    assert!(underscored(&json!({})).is_empty());
}
