//! Inside a program: what is in scope and what works (P1–P5, M4). What models make of it is in
//! `habits.rs`, what comes out of it in `outcome.rs`, how it is ended and kept apart in `isolation.rs`.

use mock_servers::{At, Fault, Reply, Scenario, Tool};
use serde_json::{Value, json};

use crate::support::Ptc;

pub fn echo() -> Scenario {
    Scenario::new().tool(Tool::echo("echo"))
}

/// Programs against `mcp__s__echo`, each with what it prints.
pub fn prints(cases: &[(&str, &str)]) {
    let mut session = Ptc::new().stdio("s", echo()).start();
    for (code, expected) in cases {
        assert_eq!(session.execute(code).output(), *expected, "{code}");
    }
    session.close();
}

/// Programs against `mcp__s__echo` that fail, each with words of its error.
pub fn fails(cases: &[(&str, &str)]) {
    let mut session = Ptc::new().stdio("s", echo()).start();
    for (code, expected) in cases {
        let error = session.execute(code).error();
        assert!(error.contains(expected), "{code}\n{error}");
    }
    session.close();
}

// ---- P1: where a program runs -------------------------------------------------------------------

// contract: P1 P2
#[test]
fn tools_are_global_async_functions() {
    let result = Ptc::new()
        .stdio("my-server", echo())
        .execute("print(__name__, await mcp__my_server__echo(a=1, b='x'))");
    assert_eq!(result.output(), "__main__ {'a': 1, 'b': 'x'}");
}

// contract: P1
#[test]
fn a_program_is_the_main_module_with_top_level_await() {
    prints(&[
        (
            "import asyncio\nprint(await asyncio.sleep(0, 'slept'))",
            "slept",
        ),
        (
            "import __main__\nx = 1\nprint(__main__.x, __main__.emit is emit)",
            "1 True",
        ),
        (
            "import sys\nprint(sys.modules['__main__'].__dict__ is globals())",
            "True",
        ),
        (
            "async def f(): return await mcp__s__echo(a=1)\nprint((await f())['a'])",
            "1",
        ),
        (
            "print([(await mcp__s__echo(i=i))['i'] for i in range(3)])",
            "[0, 1, 2]",
        ),
        (
            "import dataclasses, pickle\n@dataclasses.dataclass\nclass A:\n    x: int\nprint(pickle.loads(pickle.dumps(A(1))))",
            "A(x=1)",
        ),
    ]);
}

// contract: P1
#[test]
fn the_interpreter_is_isolated_and_has_the_standard_library_only() {
    prints(&[
        (
            "import sys\nf = sys.flags\nprint(f.isolated, f.no_site, f.dont_write_bytecode, f.ignore_environment)",
            "1 1 1 1",
        ),
        (
            "import sys\nprint([p for p in sys.path if 'packages' in p or not p])",
            "[]",
        ),
        (
            "import sys\nprint(sys.prefix == sys.base_prefix, sys.version_info >= (3, 9), sys.implementation.name)",
            "True True cpython",
        ),
        (
            "import json, re, math, decimal, statistics, csv, sqlite3 as _\nprint('stdlib')",
            "stdlib",
        ),
    ]);
    fails(&[("import pip", "ModuleNotFoundError: No module named 'pip'")]);
}

// contract: P1
#[test]
fn a_virtual_environment_leads_to_its_base_interpreter() {
    let ptc = Ptc::new();
    let venv = ptc.folder().join("venv");
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(&venv)
        .status();
    assert!(made.expect("a python3 on PATH").success());
    let python = venv.join("bin/python").to_str().unwrap().to_owned();
    let result = ptc
        .execution("python", python)
        .execute("import sys\nprint(sys.prefix == sys.base_prefix, 'venv' in sys.executable)");
    assert_eq!(result.output(), "True False");
}

// contract: P1
#[test]
fn nothing_of_an_earlier_program_is_visible() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    let first = session.execute(
        "
        import builtins, os, sys, json
        x = 1
        builtins.leak = sys.leak = json.leak = 1
        os.environ['LEAK'] = '1'
        open('leak', 'w').close()
        print(os.getpid())
        ",
    );
    let second = session.execute(
        "
        import builtins, os, sys, json
        print('x' in globals(), hasattr(builtins, 'leak'), hasattr(sys, 'leak'), hasattr(json, 'leak'))
        print('LEAK' in os.environ, os.listdir())
        print(os.getpid())
        ",
    );
    let second = second.output();
    let (visible, pid) = second.rsplit_once('\n').unwrap();
    assert_eq!(visible, "False False False False\nFalse []");
    assert_ne!(pid, first.output());
    session.close();
}

// ---- P2: tools as functions ---------------------------------------------------------------------

// contract: P2 C7
#[test]
fn a_tool_looks_like_the_async_function_it_is() {
    prints(&[
        (
            "import inspect\nprint(inspect.iscoroutinefunction(mcp__s__echo))",
            "True",
        ),
        (
            "import asyncio\nprint(asyncio.iscoroutinefunction(mcp__s__echo))",
            "True",
        ),
        (
            "print(mcp__s__echo.__name__, callable(mcp__s__echo))",
            "mcp__s__echo True",
        ),
        ("print('mcp__s__echo' in globals())", "True"),
        (
            "f = globals()['mcp__s__' + 'echo']\nprint(await f(a=1))",
            "{'a': 1}",
        ),
    ]);
}

// contract: P2 M4
#[test]
fn a_positional_argument_is_a_type_error_that_says_so() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    for call in ["1", "'x', b=2", "{'a': 1}", "*[1, 2]"] {
        let code = format!(
            "
        f = mcp__s__echo
        try:
            await f({call})
        except TypeError as error:
            print(error)
        "
        );
        let said = session.execute(&code).output();
        assert!(
            said.starts_with("mcp__s__echo() takes keyword arguments only, e.g. mcp__s__echo("),
            "{said}"
        );
    }
    assert_eq!(
        session.journal("s").calls("echo").len(),
        0,
        "nothing is sent"
    );
    session.close();
}

// contract: P2
#[test]
fn arguments_that_are_not_json_are_type_errors_and_nothing_is_sent() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    for (argument, reason) in [
        ("{1, 2}", "set"),
        ("b'x'", "bytes"),
        ("object()", "object"),
        ("1j", "complex"),
        ("{1: 2}", "JSON keys are strings"),
        ("{None: 2}", "JSON keys are strings"),
        ("[[{'k': (1, {2})}]]", "set"),
        ("datetime.date(2026, 1, 1)", "isoformat"),
        ("decimal.Decimal('1.5')", "Decimal"),
        ("float('nan')", "nan"),
        ("float('inf')", "inf"),
        ("[1.0, {'k': float('-inf')}]", "-inf"),
        ("(n for n in [1])", "generator"),
        ("'\\ud800'", "surrogate"),
        ("loop", "contains itself"),
        ("deep", "nested"),
        ("print", "builtin_function_or_method"),
        ("mcp__s__echo(a=1)", "await"),
    ] {
        let code = format!(
            "
        import datetime, decimal
        loop = []
        loop.append(loop)
        deep = []
        for _ in range(5000): deep = [deep]
        try:
            await mcp__s__echo(a={argument})
        except TypeError as error:
            print(error)
        "
        );
        let result = session.execute(&code);
        let said = result.text();
        assert!(said.contains("mcp__s__echo"), "{argument}: {said}");
        assert!(said.contains(reason), "{argument}: {said}");
        assert!(!said.contains("'a': "), "{argument}: {said}");
    }
    assert_eq!(
        session.journal("s").calls("echo").len(),
        0,
        "nothing is sent"
    );
    session.close();
}

// contract: P2 R8
#[test]
fn json_arguments_arrive_as_they_are() {
    prints(&[
        (
            "print(await mcp__s__echo(n=None, t=True, f=False))",
            "{'n': None, 't': True, 'f': False}",
        ),
        (
            "print(await mcp__s__echo(i=123456789012345678901234567890, x=0.1, y=1e300, z=-0.0))",
            "{'i': 123456789012345678901234567890, 'x': 0.1, 'y': 1e+300, 'z': -0.0}",
        ),
        (
            "print(await mcp__s__echo(s='ä\\u0000\\U0001f600\"\\\\'))",
            "{'s': 'ä\\x00😀\"\\\\'}",
        ),
        (
            "print(await mcp__s__echo(t=(1, 2), d={'': {}}, l=[]))",
            "{'t': [1, 2], 'd': {'': {}}, 'l': []}",
        ),
        (
            "import enum\nclass E(str, enum.Enum):\n    A = 'a'\nprint(await mcp__s__echo(e=E.A))",
            "{'e': 'a'}",
        ),
        (
            "print(await mcp__s__echo(self=1, name=2, tool=3, id=4))",
            "{'self': 1, 'name': 2, 'tool': 3, 'id': 4}",
        ),
        ("print(await mcp__s__echo())", "{}"),
        (
            "print(await mcp__s__echo(**{'a-b': 1, 'c d': 2}))",
            "{'a-b': 1, 'c d': 2}",
        ),
    ]);
}

// contract: P11 P2
#[test]
fn a_parameter_named_like_a_keyword_takes_a_trailing_underscore() {
    prints(&[
        (
            "print(await mcp__s__echo(from_=1, class_=2, in_=3, None_=4))",
            "{'from': 1, 'class': 2, 'in': 3, 'None': 4}",
        ),
        ("print(await mcp__s__echo(**{'from': 1}))", "{'from': 1}"),
        (
            "print(await mcp__s__echo(name_=1, type_=2, from__=3))",
            "{'name_': 1, 'type_': 2, 'from__': 3}",
        ),
    ]);
    fails(&[(
        "f = mcp__s__echo\nawait f(from_=1, **{'from': 2})",
        "TypeError: mcp__s__echo() got both 'from' and 'from_'",
    )]);
}

/// A server whose command does not exist, and one that never answers its handshake.
fn with_broken_servers() -> Ptc {
    let silent = echo().always(At::Handshake, Fault::Hang(Default::default()));
    Ptc::new()
        .server(json!({"name": "down", "command": "/nonexistent/server"}))
        .stdio_with("silent", silent, json!({"connect_timeout_seconds": 0.3}))
        .stdio("s", echo())
}

// contract: P2 P3 M4
#[test]
fn names_of_servers_that_are_down_raise_tool_error_at_the_call() {
    let mut session = with_broken_servers().start();
    for name in ["mcp__down__anything", "mcp__silent__echo"] {
        let code = format!(
            "
        f = {name}
        try:
            await f(a=1)
        except ToolError as error:
            print(error)
        "
        );
        let said = session.execute(&code).output();
        let server = name.split("__").nth(1).unwrap();
        assert!(
            said.starts_with(&format!(
                "'{name}' is unavailable: server '{server}' is not connected ("
            )),
            "{said}"
        );
        assert!(
            said.ends_with("it is being reconnected, retry shortly"),
            "{said}"
        );
    }
    session.close();
}

// contract: P2
#[test]
fn a_name_of_no_configured_server_is_a_name_error() {
    let result = Ptc::new()
        .stdio("s", echo())
        .execute("f = mcp__nobody__x if len('a') else 0");
    assert!(
        result.error().contains("mcp__nobody__x"),
        "{}",
        result.error()
    );
    assert!(
        result.error().contains("NameError") || result.error().contains("mcp__s__echo"),
        "{}",
        result.error()
    );
}

// ---- P3: ToolError ------------------------------------------------------------------------------

// contract: P3
#[test]
fn tool_error_is_a_builtin_exception() {
    prints(&[
        (
            "import builtins\nprint(builtins.ToolError is ToolError, issubclass(ToolError, Exception), repr(ToolError))",
            "True True <class 'ToolError'>",
        ),
        (
            "def f():\n    try: raise ToolError('mine')\n    except ToolError as error: return error\nprint(f())",
            "mine",
        ),
    ]);
}

// contract: P3 R1 R9 R10
#[test]
fn every_failed_call_raises_a_tool_error_that_names_the_tool() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let scenario = Scenario::new()
        .tool(Tool::new("says_no").reply(Reply::tool_error("no such row")))
        .tool(Tool::new("rejects").reply(Reply::rpc_error(-32602, "bad cursor")))
        .tool(
            Tool::new("off_schema")
                .output_schema(schema)
                .reply(Reply::structured(json!({"n": "x"}))),
        )
        .tool(Tool::new("huge").reply(Reply::text(&"x".repeat(5000))))
        .tool(Tool::new("dies").reply(Reply::fault(Fault::Crash(Default::default()))));
    let mut session = Ptc::new()
        .stdio("s", scenario)
        .execution("max_tool_result_bytes", 1000)
        .start();
    for (tool, said) in [
        (
            "says_no",
            "'mcp__s__says_no' returned an error: no such row",
        ),
        ("rejects", "bad cursor"),
        (
            "off_schema",
            "'mcp__s__off_schema' returned a value that does not match its declared output schema: ",
        ),
        ("huge", "max_tool_result_bytes=1000"),
        ("dies", "lost its connection to server 's'"),
    ] {
        let code = format!(
            "try:\n    await mcp__s__{tool}()\nexcept ToolError as error:\n    print(error)"
        );
        let error = session.execute(&code).output();
        assert!(error.starts_with(&format!("'mcp__s__{tool}' ")), "{error}");
        assert!(error.contains(said), "{error}");
        if tool == "dies" {
            assert!(
                error.ends_with("The server is being reconnected: retry shortly"),
                "{error}"
            );
        }
    }
    session.close();
}

// contract: P3 D4
#[test]
fn a_tool_that_is_no_longer_there_raises_tool_error() {
    let scenario = echo().tool(Tool::echo("fleeting").vanishes_after(1));
    let result = Ptc::new().stdio("s", scenario).execute(
        "
        await mcp__s__echo()
        # The list is refreshed behind the program's back.
        while 'mcp__s__fleeting' in await list_callable_tools(): pass
        try:
            await mcp__s__fleeting()
        except ToolError as error:
            print(error)
        ",
    );
    let said = result.output();
    assert!(
        said.starts_with("'mcp__s__fleeting' is not a callable tool"),
        "{said}"
    );
}

// ---- P4: emit -----------------------------------------------------------------------------------

// contract: P4 S6
#[test]
fn the_last_emitted_value_is_the_result() {
    let mut session = Ptc::new().start();
    for (code, expected) in [
        (
            "emit(1); emit({'a': [None, 'ä', 1.5]})",
            json!({"a": [null, "ä", 1.5]}),
        ),
        ("emit(None)", Value::Null),
        ("emit((1, 2))", json!([1, 2])),
        (
            "emit('x')\ntry: emit({1})\nexcept TypeError: pass",
            json!("x"),
        ),
        ("def f(): emit(2)\nf()", json!(2)),
        ("await emit(3)", json!(3)),
    ] {
        let result = session.execute(code);
        assert_eq!(result.emitted(), expected, "{code}");
        assert_eq!(result.structured()["result"], expected, "{code}");
    }
    session.close();
}

// contract: P4
#[test]
fn a_value_that_cannot_be_emitted_is_refused_at_the_call() {
    let mut session = Ptc::new().execution("max_output_bytes", 100).start();
    for (code, error) in [
        ("emit({1})", "TypeError: emit(): a set is not JSON"),
        (
            "emit(float('nan'))",
            "TypeError: emit(): nan is not a JSON number",
        ),
        (
            "emit({1: 2})",
            "TypeError: emit(): the key 1 is an int, and JSON keys are strings",
        ),
        (
            "emit('x' * 99)",
            "ValueError: emit(): the value is 101 bytes of JSON; the limit is 100 (execution.max_output_bytes)",
        ),
        (
            "emit('ä' * 50)",
            "ValueError: emit(): the value is 102 bytes of JSON; the limit is 100",
        ),
        ("emit()", "TypeError: emit()"),
    ] {
        let said = session.execute(code).error();
        assert!(
            said.lines().last().unwrap().starts_with(error),
            "{code}: {said}"
        );
    }
    assert_eq!(
        session.execute("emit('ä' * 49)").emitted(),
        "ä".repeat(49),
        "exactly the limit"
    );
    session.close();
}

// ---- P5: helpers --------------------------------------------------------------------------------

// contract: P5
#[test]
fn helpers_say_what_there_is() {
    prints(&[
        ("print(await list_callable_tools())", "['mcp__s__echo']"),
        (
            "tool = await inspect_tool(tool_name='mcp__s__echo')\nprint(type(tool).__name__, tool['name'], tool['inputSchema'])",
            "dict mcp__s__echo {'type': 'object'}",
        ),
        (
            "print((await inspect_tool('mcp__s__echo'))['name'])",
            "mcp__s__echo",
        ),
        (
            "print((await inspect_tool(tool_name='mcp__s__ecko'))[:31])",
            "[Tool not found] 'mcp__s__ecko'",
        ),
        (
            "print(await server_status())",
            "{'s': {'connected': True, 'tools': 1, 'error': None}}",
        ),
        (
            "import asyncio\nprint([len(x) for x in await asyncio.gather(list_callable_tools(), server_status())])",
            "[1, 1]",
        ),
    ]);
}

// contract: P5
#[test]
fn the_status_of_a_server_that_is_down_has_the_same_shape() {
    let result = with_broken_servers().execute("emit(await server_status())");
    let status = result.emitted();
    let names: Vec<&String> = status.as_object().unwrap().keys().collect();
    assert_eq!(names, ["down", "silent", "s"]);
    assert_eq!(
        status["s"],
        json!({"connected": true, "tools": 1, "error": null})
    );
    for server in ["down", "silent"] {
        let status = &status[server];
        assert_eq!(
            (&status["connected"], &status["tools"]),
            (&json!(false), &json!(0))
        );
        assert!(
            status["error"]
                .as_str()
                .is_some_and(|error| !error.is_empty()),
            "{status}"
        );
        assert_eq!(status.as_object().unwrap().len(), 3);
    }
}

// contract: P5 S6 B1
#[test]
fn helpers_count_for_nothing() {
    let result = Ptc::new()
        .stdio("s", echo())
        .execution("max_tool_calls", 1)
        .execute(
            "
        for _ in range(20):
            await list_callable_tools()
            await inspect_tool(tool_name='mcp__s__echo')
            await server_status()
        print(await mcp__s__echo(a=1))
        ",
        );
    assert_eq!(result.output(), "{'a': 1}");
    assert_eq!(result.calls().len(), 1);
    assert!(
        result.text().contains("[tool calls: 1; "),
        "{}",
        result.text()
    );
}
