//! Programs as models write them: wrong ones, which must end in what is right, and unusual ones that
//! are right and must not be refused.

use mock_servers::{Reply, Scenario, Tool};
use serde_json::json;

use crate::support::{Ptc, Session};

fn hr() -> Scenario {
    let text = json!({"type": "string"});
    Scenario::new()
        .tool(Tool::echo("get_expenses").input_schema(json!({
            "type": "object",
            "properties": {"employee_id": text, "from": text, "to": text},
            "required": ["employee_id", "from"],
        })))
        .tool(Tool::echo("list_engineers").input_schema(json!({
            "type": "object", "properties": {"team": text, "in": {}}, "additionalProperties": false,
        })))
        .tool(Tool::new("pay").reply(Reply::tool_error("insufficient funds")))
        .tool(Tool::new("rows").reply(Reply::structured(
            json!({"rows": [{"id": 1, "name": "Ada"}]}),
        )))
        .tool(Tool::new("page").reply(Reply::text("a text\nof two lines")))
}

fn session() -> Session {
    Ptc::new()
        .stdio("hr", hr())
        .server(json!({"name": "gone", "command": "/nowhere/at-all"}))
        .execution("timeout_seconds", 3)
        .execution("max_tool_calls", 5)
        .execution("max_output_bytes", 2000)
        .start()
}

/// Nothing was sent to any tool.
const BEFORE: bool = true;
/// It cannot be known before the program runs.
const DURING: bool = false;

const WRONG: &[(&str, bool, &str)] = &[
    (
        "await mcp__hr__get_expense(employee_id='E1')",
        BEFORE,
        "closest: mcp__hr__get_expenses",
    ),
    (
        "await mcp__payroll__run()",
        BEFORE,
        "await list_callable_tools() gives the names",
    ),
    (
        "await mcp__hr__get-expenses(employee_id='E1')",
        BEFORE,
        "closest: mcp__hr__get_expenses",
    ),
    (
        "await get_expenses(employee_id='E1', from_='a')",
        BEFORE,
        "e.g. await mcp__hr__get_expenses(...)",
    ),
    (
        "await hr.get_expenses(employee_id='E1')",
        BEFORE,
        "tools are called by their whole names",
    ),
    (
        "await mcp.hr.get_expenses(employee_id='E1')",
        BEFORE,
        "await mcp__<server>__<tool>(...)",
    ),
    (
        "await tools.get_expenses(employee_id='E1')",
        BEFORE,
        "await mcp__<server>__<tool>(...)",
    ),
    (
        "await call_tool('mcp__hr__get_expenses', {})",
        BEFORE,
        "await mcp__<server>__<tool>(...)",
    ),
    ("import mcp", BEFORE, "nothing has to be imported"),
    (
        "import mcp__hr__get_expenses",
        BEFORE,
        "nothing has to be imported",
    ),
    (
        "from tools import get_expenses",
        BEFORE,
        "nothing has to be imported",
    ),
    (
        "import requests\nprint(requests.get('https://example.com').text)",
        BEFORE,
        "no packages here",
    ),
    (
        "await mcp__hr__get_expenses('E1', 'a')",
        BEFORE,
        "e.g. mcp__hr__get_expenses(employee_id=..., from_=...)",
    ),
    (
        "await mcp__hr__rows({'id': 1})",
        BEFORE,
        "e.g. mcp__hr__rows(id=...)",
    ),
    (
        "mcp__hr__rows()",
        BEFORE,
        "write \"await mcp__hr__rows(...)\"",
    ),
    (
        "async def main():\n    mcp__hr__rows()\nawait main()",
        BEFORE,
        "write \"await mcp__hr__rows(...)\"",
    ),
    (
        "inspect_tool(tool_name='mcp__hr__rows')",
        BEFORE,
        "write \"await inspect_tool(...)\"",
    ),
    (
        "await mcp__hr__get_expenses(from_='a')",
        BEFORE,
        "requires employee_id=...",
    ),
    (
        "await mcp__hr__list_engineers(teams='x')",
        BEFORE,
        "did you mean team=...?",
    ),
    (
        "await mcp__hr__get_expenses(employee_id='E1', from='a')",
        BEFORE,
        "trailing underscore: from_=...",
    ),
    ("print('a'", BEFORE, "SyntaxError: '(' was never closed"),
    ("if True:\nprint(1)", BEFORE, "expected an indented block"),
    (
        "def f():\n    return await mcp__hr__rows()\nf()",
        BEFORE,
        "is an \"async def\"",
    ),
    (
        "x = await mcp__hr__rows()\nreturn x",
        BEFORE,
        "print(...) or emit(...) gives the result",
    ),
    (
        "print(mcp__hr__rows()['rows'])",
        BEFORE,
        "Write: await mcp__hr__rows(...)",
    ),
    (
        "for row in mcp__hr__rows(): print(row)",
        BEFORE,
        "is iterated over before it was awaited",
    ),
    (
        "print(f'{mcp__hr__rows()}')",
        BEFORE,
        "is used as text before it was awaited",
    ),
    (
        "print(len(mcp__hr__rows()))",
        BEFORE,
        "is measured before it was awaited",
    ),
    (
        "print(mcp__hr__rows().get('rows'))",
        BEFORE,
        "was asked for .get before it was awaited",
    ),
    (
        "rows = mcp__hr__rows()",
        BEFORE,
        "write \"await mcp__hr__rows(...)\"",
    ),
    (
        "print(list_callable_tools())",
        BEFORE,
        "did you forget \"await\"?",
    ),
    ("await mcp__hr__rows", BEFORE, "a tool has to be called"),
    (
        "call = mcp__hr__rows()\nawait call\nawait call",
        DURING,
        "keep its result in a variable",
    ),
    (
        "import datetime\nawait mcp__hr__rows(day=datetime.date.today())",
        BEFORE,
        "use .isoformat()",
    ),
    (
        "await mcp__hr__rows(ids={1, 2})",
        BEFORE,
        "use sorted(...) or list(...)",
    ),
    (
        "await mcp__hr__rows(x=float('nan'))",
        BEFORE,
        "nan at ['x'] is not a JSON number",
    ),
    ("emit({1, 2})", BEFORE, "use sorted(...) or list(...)"),
    (
        "emit('x' * 9999)",
        BEFORE,
        "the limit is 2000 (execution.max_output_bytes)",
    ),
    (
        "import json\nrows = json.loads(await mcp__hr__rows())",
        DURING,
        "leave json.loads out",
    ),
    (
        "r = await mcp__hr__rows()\nprint(r['content'][0]['text'])",
        DURING,
        "without content blocks",
    ),
    (
        "r = await mcp__hr__rows()\nprint(r.rows)",
        DURING,
        "write [\"rows\"]",
    ),
    (
        "await mcp__hr__pay(amount=3)",
        DURING,
        "'mcp__hr__pay' returned an error: insufficient funds",
    ),
    (
        "for n in range(9): await mcp__hr__rows()",
        DURING,
        "exhausted (max_tool_calls=5)",
    ),
    (
        "await mcp__gone__x()",
        BEFORE,
        "it is being reconnected, retry shortly",
    ),
    ("name = input()", BEFORE, "there is no input here"),
    (
        "await inspect_tool(name='mcp__hr__rows')",
        BEFORE,
        "it takes tool_name=...",
    ),
    (
        "while True: pass",
        BEFORE,
        "execution.timeout_seconds is the limit",
    ),
];

// contract: M3 M4 P11
#[test]
fn every_mistake_that_models_make_ends_in_what_is_right() {
    assert!(WRONG.len() >= 40);
    let mut session = session();
    session.wait_for_tools("up", |names| !names.is_empty());
    let mut wrong = Vec::new();
    for (program, when, expected) in WRONG {
        let sent = session.journal("hr").method("tools/call").len();
        let result = session.execute(program);
        if !result.is_error || !result.text().contains(expected) {
            wrong.push(format!(
                "{program}\n  wants {expected}\n  says {}",
                result.text()
            ));
        }
        let now = session.journal("hr").method("tools/call").len();
        if *when == BEFORE && now > sent {
            wrong.push(format!("{program}\n  sent {} calls", now - sent));
        }
    }
    session.close();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Unusual, and right: each ends by itself, without an error.
const RIGHT: &str = include_str!("right.txt");

// contract: M3 P11
#[test]
fn unusual_programs_that_are_right_run() {
    let programs: Vec<&str> = RIGHT.trim().split("\n---\n").collect();
    assert!(programs.len() >= 60, "{}", programs.len());
    let mut session = session();
    session.wait_for_tools("up", |names| !names.is_empty());
    let mut wrong = Vec::new();
    for program in programs {
        let result = session.execute(program);
        if result.is_error {
            wrong.push(format!("{program}\n  {}", result.text()));
        }
    }
    session.close();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
