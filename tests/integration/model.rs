//! What the model reads (section M): the list and its search, stubs, the check before the run, and
//! errors that say how to do it right.

use mock_servers::{Reply, Scenario, Tool};
use proptest::strategy::{BoxedStrategy, Just, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use ptc_mcp::signature::{Returns, line, stub};

use crate::support::{Ptc, Session, ToolResult};

fn schema(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// A server whose tools take something, and which says so.
fn hr() -> Scenario {
    let expense = schema(
        json!({"amount": {"type": "number"}, "category": {"enum": ["travel", "meals"]}}),
        &["amount"],
    );
    let returns = json!({"type": "object", "properties": {"expenses": {"type": "array", "items": expense}}, "required": ["expenses"]});
    Scenario::new()
        .tool(
            Tool::new("get_expenses")
                .description("One employee's expense lines. Slow for long ranges.")
                .input_schema(schema(
                    json!({"employee_id": {"type": "string"}, "from": {"type": "string"}, "to": {"type": "string"}}),
                    &["employee_id", "from"],
                ))
                .output_schema(returns)
                .reply(Reply::structured(json!({"expenses": [{"amount": 1.5}]}))),
        )
        .tool(
            Tool::echo("list_engineers")
                .description("All engineers, with their travel budgets.")
                .input_schema(json!({"type": "object", "properties": {"team": {"type": "string"}, "from_": {}, "in": {}}, "additionalProperties": false})),
        )
        .tool(
            Tool::echo("raise_salary")
                .description("Raises a salary.")
                .input_schema(schema(json!({"employee_id": {"type": "string"}, "percent": {"type": "number"}}), &[])),
        )
}

fn list(session: &mut Session, arguments: Value) -> (Value, Vec<String>) {
    let result = session.call_tool("list_callable_tools", arguments);
    assert!(
        !result.is_error && result.structured.is_none(),
        "{result:?}"
    );
    let first = serde_json::from_str(&result.texts[0]).expect("the first block is JSON");
    (first, result.texts[1..].to_vec())
}

// contract: M1 S3
#[test]
fn tools_are_listed_searched_and_shown_in_three_details() {
    let other = Scenario::new().tool(Tool::echo("echo").description("Says it again."));
    let mut session = Ptc::new().stdio("hr", hr()).stdio("misc", other).start();
    let all = json!([
        "mcp__hr__get_expenses",
        "mcp__hr__list_engineers",
        "mcp__hr__raise_salary",
        "mcp__misc__echo"
    ]);
    assert_eq!(list(&mut session, json!({})), (all.clone(), vec![]));
    assert_eq!(
        list(&mut session, json!({"random_string": ""})),
        (all, vec![])
    );

    let (found, more) = list(&mut session, json!({"query": "expense lines"}));
    assert_eq!(found[0], "mcp__hr__get_expenses");
    assert_eq!(more, ["1 of 4 callable tools are shown: those that match."]);
    let (found, _) = list(&mut session, json!({"query": "percent"}));
    assert_eq!(
        found,
        json!(["mcp__hr__raise_salary"]),
        "parameter names are searched"
    );
    let (found, more) = list(&mut session, json!({"query": "zebra"}));
    assert_eq!(found, json!([]));
    assert!(
        more[0].starts_with("0 of 4 callable tools are shown: none matches"),
        "{more:?}"
    );

    let (found, more) = list(&mut session, json!({"detail": "summary", "limit": "1"}));
    assert_eq!(
        found,
        json!([{"name": "mcp__hr__get_expenses", "summary": "One employee's expense lines."}])
    );
    assert_eq!(
        more,
        ["1 of 4 callable tools are shown; a higher limit shows more."]
    );
    let (found, _) = list(
        &mut session,
        json!({"detail": "signature", "server": "hr", "query": "salary"}),
    );
    assert_eq!(
        found,
        json!([
            "async def mcp__hr__raise_salary(*, employee_id: str = ..., percent: float = ...) -> Any: ..."
        ])
    );
    let wrong = session.call_tool("list_callable_tools", json!({"server": "hrr"}));
    assert!(wrong.is_error);
    assert_eq!(wrong.text(), "[Server not found] 'hrr'. Servers: hr, misc.");

    let program = "print(await list_callable_tools(query='salary', limit=1))\n\
                   try: await list_callable_tools(serch='x')\n\
                   except ToolError as e: print(e)";
    assert_eq!(
        session.execute(program).output(),
        "['mcp__hr__raise_salary']\nlist_callable_tools() got an unexpected argument 'serch'; \
         it takes query=..., server=..., detail=..., limit=..."
    );
    session.close();
}

// contract: M2 S4
#[test]
fn a_tool_is_inspected_with_its_stub_and_several_at_once() {
    let mut session = Ptc::new().stdio("hr", hr()).start();
    let result = session.call_tool(
        "inspect_tool",
        json!({"tool_name": "mcp__hr__get_expenses"}),
    );
    assert!(result.structured.is_none());
    let tool: Value = serde_json::from_str(result.text()).unwrap();
    assert_eq!(
        tool["signature"].as_str().unwrap(),
        "\
class Expense(TypedDict):
    amount: float
    category: NotRequired[Literal[\"travel\", \"meals\"]]

class Result(TypedDict):
    expenses: list[Expense]

async def mcp__hr__get_expenses(*, employee_id: str, from_: str, to: str = ...) -> Result: ..."
    );
    let names = [
        "mcp__hr__raise_salary",
        "mcp__hr__get_expense",
        "mcp__hr__list_engineers",
    ];
    for several in [json!(names), json!(json!(names).to_string())] {
        let result = session.call_tool("inspect_tool", json!({"tool_name": several}));
        assert!(!result.is_error);
        let tools: Value = serde_json::from_str(result.text()).unwrap();
        assert_eq!(tools[0]["name"], names[0]);
        assert_eq!(
            tools[1],
            json!({"name": names[1], "error": "[Tool not found] 'mcp__hr__get_expense'. Closest: mcp__hr__get_expenses."})
        );
        assert_eq!(tools[2]["name"], names[2]);
        assert_eq!(tools.as_array().unwrap().len(), 3);
    }
    let program = "tools = await inspect_tool(tool_name=['mcp__hr__nope', 'mcp__hr__get_expenses'])\n\
                   print(list(tools[0]), tools[1]['name'])";
    assert_eq!(
        session.execute(program).output(),
        "['name', 'error'] mcp__hr__get_expenses"
    );
    session.close();
}

/// JSON Schemas of every shape that a server could come up with, the mistaken ones included.
fn schemas() -> BoxedStrategy<Value> {
    let name = proptest::sample::select(vec![
        "a",
        "from",
        "from_",
        "a-b",
        "class",
        "é",
        "self",
        "",
        "\"",
        "line\nbreak",
        "None",
        "__debug__",
        "x y",
    ]);
    let leaf = proptest::sample::select(vec![
        json!({}),
        json!(true),
        json!(false),
        json!(null),
        json!(7),
        json!({"type": "string"}),
        json!({"type": ["integer", "null"]}),
        json!({"type": 3}),
        json!({"type": "string", "default": "a\"\\\n\u{2028}"}),
        json!({"default": [1, {"a": null}]}),
        json!({"enum": ["a", 1, null, 1.5, [2]]}),
        json!({"enum": []}),
        json!({"enum": "x"}),
        json!({"const": true}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a"}),
        json!({"$ref": "#/$defs/b", "title": "None"}),
        json!({"$ref": "https://example.com"}),
        json!({"nullable": true, "type": "boolean"}),
    ]);
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let members = proptest::collection::vec((name.clone(), inner.clone()), 0..5);
        let list = proptest::collection::vec(inner.clone(), 0..4);
        let required = proptest::collection::vec(name.clone(), 0..3);
        proptest::prop_oneof![
            (members, required, inner.clone()).prop_map(|(members, required, more)| {
                let properties: serde_json::Map<String, Value> = members
                    .into_iter()
                    .map(|(name, schema)| (name.to_owned(), schema))
                    .collect();
                let mut schema =
                    json!({"type": "object", "properties": properties, "required": required});
                schema["additionalProperties"] = more;
                schema["$defs"] = schema["properties"].clone();
                schema
            }),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            inner
                .clone()
                .prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            (
                Just(["anyOf", "oneOf", "allOf", "prefixItems", "items"]),
                0..5usize,
                list
            )
                .prop_map(|(keys, at, list)| json!({keys[at]: list})),
        ]
    })
    .boxed()
}

// contract: M2
#[test]
fn every_stub_is_valid_python() {
    let strategy = (schemas(), schemas());
    let mut runner = TestRunner::deterministic();
    let mut stubs = Vec::new();
    for _ in 0..1_500 {
        let (input, output) = strategy.new_tree(&mut runner).unwrap().current();
        for returns in [
            Returns::Undeclared,
            Returns::Value(&output),
            Returns::Unwrapped(&output),
            Returns::PerhapsUnwrapped(&output),
        ] {
            stubs.push(stub("mcp__s__t", &input, returns));
            stubs.push(line("mcp__s__t", &input, returns));
        }
        assert!(!stubs[stubs.len() - 1].contains('\n'), "a line is one line");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stubs.json");
    std::fs::write(&file, serde_json::to_string(&stubs).unwrap()).unwrap();
    let program = "import ast, json, sys\n\
                   for stub in json.load(open(sys.argv[1])):\n\
                   \x20   try: last = ast.parse(stub).body[-1]\n\
                   \x20   except SyntaxError as e: sys.exit(f'{e}\\n{stub}')\n\
                   \x20   assert isinstance(last, ast.AsyncFunctionDef), stub\n";
    let output = std::process::Command::new("python3")
        .args(["-c", program])
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn refused(result: &ToolResult, expected: &[&str]) {
    let error = result.error();
    assert!(error.starts_with("CheckError: "), "{error}");
    for words in expected {
        assert!(error.contains(words), "{words}\n{error}");
    }
    assert!(result.calls().is_empty());
}

// contract: M3 M4
#[test]
fn a_program_with_mistakes_is_refused_before_any_of_it_runs() {
    let mut session = Ptc::new().stdio("hr", hr()).start();
    let program = "\
print('begun')
await mcp__hr__raise_salary(employee_id='E1', percent=3)
await mcp__hr__get_expense(employee_id='E1')
mcp__hr__raise_salary(employee_id='E1', percent=3)
await mcp__hr__get_expenses('E1')
await mcp__hr__get_expenses(employee_id='E1')
await mcp__hr__list_engineers(teams='apps')
";
    let result = session.execute(program);
    refused(
        &result,
        &[
            "5 mistakes found before the program started; nothing has run",
            "line 3\n    await mcp__hr__get_expense(employee_id='E1')\n  NameError: name 'mcp__hr__get_expense' is not defined: no server offers such a tool; closest: mcp__hr__get_expenses",
            "line 4\n    mcp__hr__raise_salary(employee_id='E1', percent=3)\n  RuntimeError: mcp__hr__raise_salary(...) is never awaited",
            "line 5\n    await mcp__hr__get_expenses('E1')\n  TypeError: mcp__hr__get_expenses() takes keyword arguments only, e.g. mcp__hr__get_expenses(employee_id=..., from_=...)",
            "line 6\n    await mcp__hr__get_expenses(employee_id='E1')\n  TypeError: mcp__hr__get_expenses() requires from_=...",
            "did you mean team=...?",
            "Signatures:\n",
            "async def mcp__hr__get_expenses(*, employee_id: str, from_: str, to: str = ...) -> dict[str, Any]: ...",
        ],
    );
    assert!(
        !result.text().contains("output before the error"),
        "{}",
        result.text()
    );
    assert_eq!(
        session.journal("hr").method("tools/call").len(),
        0,
        "nothing was sent"
    );
    refused(
        &session.execute("inspect_tool(tool_name='x')"),
        &["write \"await inspect_tool(...)\""],
    );
    session.close();
}

// contract: M3 P3
#[test]
fn names_of_a_server_that_is_down_are_no_finding() {
    let program = "\
for call in (mcp__gone__anything, mcp__gone__other):
    try:
        await call(a=1)
    except ToolError as e:
        print('not connected' in str(e))
await mcp__hr__list_engineers(team='apps')
";
    let result = Ptc::new()
        .stdio("hr", hr())
        .server(json!({"name": "gone", "command": "/nowhere/at-all"}))
        .execute(program);
    assert_eq!(result.output(), "True\nTrue");
}

// contract: M3
#[test]
fn the_check_finds_what_it_should_and_nothing_else() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bootstrap/test_check.py");
    let output = std::process::Command::new("python3")
        .arg(script)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

// contract: P11
#[test]
fn a_parameter_that_is_really_called_from_underscore_keeps_its_name() {
    let program = "\
print(await mcp__hr__list_engineers(from_=1, in_=2))
print(await globals()['mcp__hr__' + 'list_engineers'](from_=1))
";
    assert_eq!(
        Ptc::new().stdio("hr", hr()).execute(program).output(),
        "{'from_': 1, 'in': 2}\n{'from_': 1}"
    );
}

// contract: M4
#[test]
fn a_tool_that_refuses_its_arguments_is_shown_as_it_is_called() {
    let takes = schema(json!({"id": {"type": "integer"}}), &["id"]);
    let scenario = Scenario::new()
        .tool(
            Tool::new("strict")
                .input_schema(takes.clone())
                .reply(Reply::tool_error("bad id")),
        )
        .tool(
            Tool::new("words")
                .input_schema(schema(json!({"id": {}}), &[]))
                .reply(Reply::tool_error("1 validation error for call[words]")),
        )
        .tool(
            Tool::new("protocol")
                .input_schema(takes.clone())
                .reply(Reply::rpc_error(-32602, "no")),
        )
        .tool(
            Tool::new("fails")
                .input_schema(takes)
                .reply(Reply::tool_error("no such row")),
        );
    let program = "\
for call, arguments in [(mcp__s__strict, {'id': 'x'}), (mcp__s__words, {'id': 1}), (mcp__s__protocol, {'id': 1}), (mcp__s__fails, {'id': 1})]:
    try:
        await call(**arguments)
    except ToolError as e:
        print(e)
";
    let output = Ptc::new().stdio("s", scenario).execute(program).output();
    let blocks: Vec<&str> = output.split("'mcp__s__").skip(1).collect();
    assert!(
        blocks[0].contains("returned an error: bad id\nIts input schema says: "),
        "{output}"
    );
    for (block, name) in blocks.iter().zip(["strict", "words", "protocol"]) {
        assert!(
            block.contains(&format!("\nSignature: async def mcp__s__{name}(*, id: ")),
            "{output}"
        );
    }
    assert_eq!(blocks[3].trim(), "fails' returned an error: no such row");
}

// contract: M4 P11
#[test]
fn what_models_guess_ends_in_what_is_right() {
    let mut session = Ptc::new().stdio("hr", hr()).start();
    for (program, advice) in [
        (
            "from mcp import hr",
            "Hint: nothing has to be imported: every tool is a global async function",
        ),
        (
            "import mcp__hr__get_expenses",
            "Hint: nothing has to be imported",
        ),
        ("import requests", "Hint: there are no packages here"),
        (
            "await get_expenses(employee_id='E1')",
            "Hint: tools are called by their whole names, e.g. await mcp__hr__get_expenses(...)",
        ),
        (
            "await hr.get_expenses()",
            "e.g. await mcp__hr__get_expenses",
        ),
        (
            "await mcp.hr.get_expenses()",
            "await mcp__<server>__<tool>(...)",
        ),
        (
            "await mcp__hr__list_engineers",
            "Hint: a tool has to be called",
        ),
        (
            "name = 'mcp__hr__get_expense'\nfor _ in range(1): await globals()[name]()",
            "KeyError",
        ),
        (
            "exec('mcp__hr__get_expense()')",
            "e.g. await mcp__hr__get_expenses",
        ),
        ("print('x'", "SyntaxError"),
    ] {
        let error = session.execute(program).error();
        assert!(error.contains(advice), "{program}\n{error}");
    }
    let plain = session.execute("print(undefined_name)").error();
    assert!(
        plain.ends_with("NameError: name 'undefined_name' is not defined"),
        "{plain}"
    );
    session.close();
}
