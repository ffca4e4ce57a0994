//! What comes out of a program: its output, and how it failed (P6, P7).

use mock_servers::{Fault, Reply, Scenario, Tool};

use crate::program::{echo, prints};
use crate::support::{Ptc, ToolResult};

/// The error without the marks under its source lines, which differ between Python's versions.
fn without_marks(result: &ToolResult) -> String {
    let error = result.error();
    let lines = error.lines().filter(|line| {
        let only_marks = line.trim().chars().all(|c| matches!(c, '^' | '~'));
        line.trim().is_empty() || !only_marks
    });
    lines.collect::<Vec<_>>().join("\n")
}

// ---- P6: output ---------------------------------------------------------------------------------

// contract: P6
#[test]
fn output_is_what_is_printed_with_stderr_merged_in_order() {
    prints(&[
        (
            "import sys\nprint('a'); print('b', file=sys.stderr); sys.stdout.write('c'); sys.stderr.write('d\\n'); print('e')",
            "a\nb\ncd\ne",
        ),
        (
            "import sys\nsys.stdout.buffer.write(b'raw \\xc3'); sys.stdout.buffer.write(b'\\xa4'); print('!')",
            "raw ä!",
        ),
        (
            "import sys\nsys.stdout.buffer.write(b'\\xff'); print()",
            "\u{fffd}",
        ),
        ("print('\\ud800 \\x00 \\r')", "\\ud800 \0 \r"),
        (
            "import logging\nlogging.warning('careful')",
            "WARNING:root:careful",
        ),
        (
            "print('x', end=''); print(1, 2, sep='\\n', flush=True)",
            "x1\n2",
        ),
        (
            "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()): print('hidden')\nprint('shown')",
            "shown",
        ),
        (
            "import threading\nt = threading.Thread(target=print, args=('from a thread',)); t.start(); t.join()",
            "from a thread",
        ),
        (
            "import sys\nprint(sys.stdout.isatty(), sys.stdout.encoding, sys.stdin.read() == '')",
            "False utf-8 True",
        ),
        (
            "import pprint, traceback\ntry: 1 / 0\nexcept Exception: print(traceback.format_exc().splitlines()[-1])",
            "ZeroDivisionError: division by zero",
        ),
    ]);
}

// contract: P6
#[test]
fn output_is_cut_at_bytes_on_a_character_boundary_and_marked() {
    let mut session = Ptc::new().execution("max_output_bytes", 10).start();
    for (code, expected) in [
        ("print('0123456789', end='')", "0123456789"),
        ("print('0123456789')", "0123456789\n... (truncated)"),
        ("print('012345678')", "012345678\n"),
        ("print('012345678\\nx')", "012345678\n... (truncated)"),
        ("print('äöüäö', end='')", "äöüäö"),
        ("print('0äöüäö', end='')", "0äöüä\n... (truncated)"),
        ("print('0€€€€', end='')", "0€€€\n... (truncated)"),
        ("print('01😀😀😀', end='')", "01😀😀\n... (truncated)"),
        (
            "print('0123456789', end=''); print(end=''); print('', end='')",
            "0123456789",
        ),
        (
            "for c in '01234567890': print(c, end='')",
            "0123456789\n... (truncated)",
        ),
    ] {
        assert_eq!(
            session.execute(code).structured()["output"],
            expected,
            "{code}"
        );
    }
    session.close();
}

// contract: P6
#[test]
fn a_program_that_prints_without_end_goes_on_to_its_end() {
    let result = Ptc::new().execution("max_output_bytes", 1000).execute(
        "
        for _ in range(200): print('x' * 1_000_000)
        emit('done')
        ",
    );
    assert_eq!(
        result.structured()["output"],
        format!("{}\n... (truncated)", "x".repeat(1000))
    );
    assert_eq!(result.emitted(), "done");
}

// contract: P6
#[test]
fn what_was_printed_survives_every_way_to_die() {
    let mut session = Ptc::new().start();
    for (death, said) in [
        (
            "os._exit(0)",
            "RuntimeError: the interpreter ended with exit code 0 before the program came to its end",
        ),
        (
            "os._exit(7)",
            "RuntimeError: the interpreter ended with exit code 7 before the program came to its end",
        ),
        (
            "os.abort()",
            "RuntimeError: the interpreter was ended by signal 6",
        ),
        (
            "os.kill(os.getpid(), 9)",
            "RuntimeError: the interpreter was killed (SIGKILL)",
        ),
        (
            "os.kill(os.getpid(), 15)",
            "RuntimeError: the interpreter was ended by signal 15",
        ),
        (
            "import ctypes; ctypes.string_at(0)",
            "RuntimeError: the interpreter crashed (SIGSEGV)",
        ),
        (
            "import threading, time; threading.Thread(target=os._exit, args=(3,)).start(); time.sleep(1000)",
            "RuntimeError: the interpreter ended with exit code 3",
        ),
    ] {
        let result = session.execute(&format!(
            "import os\nprint('é' * 40_000)\nprint('last words', end='')\n{death}"
        ));
        assert!(
            result.error().starts_with(said),
            "{death}: {}",
            result.error()
        );
        let output = result.structured()["output"].as_str().unwrap();
        assert!(output.starts_with("éé"), "{death}");
        assert!(
            output.ends_with("(truncated)"),
            "{death}: {}",
            &output[output.len() - 40..]
        );
        let short = session.execute(&format!("import os\nprint('last words', end='')\n{death}"));
        assert_eq!(short.structured()["output"], "last words", "{death}");
    }
    session.close();
}

// contract: P6 P8
#[test]
fn what_was_printed_survives_the_time_limit() {
    let result = Ptc::new()
        .execution("timeout_seconds", 3)
        .execute("print('so far', end='')\nwhile True: pass");
    assert_eq!(result.error(), "TimeoutError: Execution exceeded 3s limit");
    assert_eq!(result.structured()["output"], "so far");
}

// contract: P6 S11
#[test]
fn what_was_printed_is_with_the_server_before_the_program_goes_on() {
    let scenario =
        echo().tool(Tool::new("hang").reply(Reply::fault(Fault::Hang(Default::default()))));
    let mut session = Ptc::new()
        .stdio("s", scenario)
        .execution("tool_call_timeout_seconds", 0.2)
        .start();
    let result = session.execute(
        "
        import os
        print('written', end='')
        try:
            await mcp__s__hang()
        except ToolError:
            os._exit(1)
        ",
    );
    assert_eq!(result.structured()["output"], "written");
    session.close();
}

// contract: P6
#[test]
fn overflowing_the_stack_is_survived() {
    let mut session = Ptc::new().start();
    let result = session.execute(
        "
        import sys
        print('before', flush=True)
        sys.setrecursionlimit(10 ** 8)
        def f(*_): return [*map(f, [1])]
        f()
        ",
    );
    assert!(result.is_error);
    assert_eq!(result.structured()["output"], "before\n");
    assert_eq!(session.execute("print('next')").output(), "next");
    session.close();
}

// ---- P7: failures -------------------------------------------------------------------------------

fn traceback(code: &str) -> String {
    let result = Ptc::new().stdio("s", echo()).execute(code);
    without_marks(&result)
}

// contract: P7
#[test]
fn a_traceback_shows_the_line_of_the_program() {
    insta::assert_snapshot!(traceback("x = 1\n\nx / 0"), @r#"
    Traceback (most recent call last):
      File "<program>", line 3, in <module>
        x / 0
    ZeroDivisionError: division by zero
    "#);
}

// contract: P7
#[test]
fn a_traceback_shows_the_programs_own_frames_only() {
    let code = "
        import json, functools
        def load(text):
            return json.loads(text)
        def outer():
            return functools.reduce(lambda a, b: load(b), ['1', '{'])
        outer()
        ";
    insta::assert_snapshot!(traceback(code), @r#"
    Traceback (most recent call last):
      File "<program>", line 6, in <module>
        outer()
      File "<program>", line 5, in outer
        return functools.reduce(lambda a, b: load(b), ['1', '{'])
      File "<program>", line 5, in <lambda>
        return functools.reduce(lambda a, b: load(b), ['1', '{'])
      File "<program>", line 3, in load
        return json.loads(text)
    json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
    "#);
}

// contract: P7
#[test]
fn a_traceback_through_gather_shows_the_programs_own_frames_only() {
    let code = "
        import asyncio
        async def one(i):
            await asyncio.sleep(0)
            return 1 // i
        await asyncio.gather(*(one(i) for i in (2, 1, 0)))
        ";
    insta::assert_snapshot!(traceback(code), @r#"
    Traceback (most recent call last):
      File "<program>", line 5, in <module>
        await asyncio.gather(*(one(i) for i in (2, 1, 0)))
      File "<program>", line 4, in one
        return 1 // i
    ZeroDivisionError: integer division or modulo by zero
    "#);
}

// contract: P7 P3
#[test]
fn an_uncaught_tool_error_shows_the_call() {
    let scenario = Scenario::new().tool(Tool::new("get").reply(Reply::tool_error("no such row")));
    let result = Ptc::new()
        .stdio("s", scenario)
        .execute("async def fetch():\n    return await mcp__s__get(id=7)\nrow = await fetch()");
    insta::assert_snapshot!(without_marks(&result), @r#"
    Traceback (most recent call last):
      File "<program>", line 3, in <module>
        row = await fetch()
      File "<program>", line 2, in fetch
        return await mcp__s__get(id=7)
    ToolError: 'mcp__s__get' returned an error: no such row
    "#);
}

// contract: P7
#[test]
fn chained_exceptions_show_their_own_frames_too() {
    let code = "
        import json
        try:
            try:
                json.loads('')
            except ValueError as error:
                raise KeyError('wrapped') from error
        except KeyError:
            None.x
        ";
    insta::assert_snapshot!(traceback(code), @r#"
    Traceback (most recent call last):
      File "<program>", line 4, in <module>
        json.loads('')
    json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)

    The above exception was the direct cause of the following exception:

    Traceback (most recent call last):
      File "<program>", line 6, in <module>
        raise KeyError('wrapped') from error
    KeyError: 'wrapped'

    During handling of the above exception, another exception occurred:

    Traceback (most recent call last):
      File "<program>", line 8, in <module>
        None.x
    AttributeError: 'NoneType' object has no attribute 'x'
    "#);
}

// contract: P7 P11
#[test]
fn a_failed_task_group_shows_every_failure_and_no_foreign_frame() {
    let code = "
        import asyncio
        if not hasattr(asyncio, 'TaskGroup'):
            raise SystemExit('no TaskGroup')
        async def fail(i):
            raise ValueError(i)
        async with asyncio.TaskGroup() as group:
            for i in range(2):
                group.create_task(fail(i))
        ";
    let error = traceback(code);
    if error.contains("no TaskGroup") {
        return;
    }
    assert!(
        error.contains("ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)"),
        "{error}"
    );
    assert!(
        error.contains("ValueError: 0") && error.contains("ValueError: 1"),
        "{error}"
    );
    assert!(error.contains("raise ValueError(i)"), "{error}");
    let foreign: Vec<&str> = error
        .lines()
        .filter(|line| line.contains("File \"") && !line.contains("File \"<program>\", line "))
        .collect();
    assert_eq!(foreign, [""; 0], "{error}");
}

// contract: P7
#[test]
fn no_traceback_of_whatever_kind_shows_a_foreign_frame() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    for code in [
        "import asyncio\nasync def f(): raise ValueError\nasyncio.run(f())",
        "import asyncio\nawait asyncio.wait_for(asyncio.sleep(1000), 0.01)",
        "import asyncio\nawait asyncio.to_thread(lambda: 1 / 0)",
        "import concurrent.futures as c\nwith c.ThreadPoolExecutor() as pool: pool.submit(lambda: 1 / 0).result()",
        "exec('def f(): 1 / 0\\nf()')",
        "import re\nre.compile('(')",
        "f = mcp__s__echo\nawait f(1)",
        "f = mcp__s__echo\nawait f(a={1})",
        "emit({1})",
        "mcp__s__echo(a=1)['a']",
        "async def f(): pass\nawait f",
        "from collections import namedtuple\nnamedtuple('A', 'x x')",
        "import dataclasses\n@dataclasses.dataclass\nclass A: x: list = []",
        "class A:\n    def __repr__(self): return 1 / 0\nprint([A()])",
        "def f(): f()\nf()",
        "raise KeyboardInterrupt",
        "raise BaseException('bare')",
        "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
        "import asyncio\nraise asyncio.CancelledError",
        "input('name? ')",
    ] {
        let error = session.execute(code).error();
        assert!(
            error.contains("File \"<program>\", line "),
            "{code}\n{error}"
        );
        for line in error
            .lines()
            .filter(|line| line.trim_start().starts_with("File \""))
        {
            assert!(
                line.contains("\"<program>\"") || line.contains("\"<string>\""),
                "{code}\n{error}"
            );
        }
    }
    session.close();
}

// contract: P7
#[test]
fn a_syntax_error_shows_line_and_caret() {
    let result = Ptc::new().execute("print(1)\nx = = 1\n");
    insta::assert_snapshot!(result.text(), @r#"
    [Script execution failed]
      File "<program>", line 2
        x = = 1
            ^
    SyntaxError: invalid syntax
    "#);
}

// contract: P7
#[test]
fn every_syntax_error_shows_its_line_and_nothing_runs() {
    let mut session = Ptc::new().start();
    for (code, error) in [
        (
            "print('ran')\nif True:\nx = 1",
            "IndentationError: expected an indented block",
        ),
        ("print('ran')\n\tx = 1\n    y = 2", "IndentationError: "),
        ("print('ran')\nx = (1,", "SyntaxError: "),
        (
            "print('ran')\nreturn 1",
            "SyntaxError: 'return' outside function",
        ),
        (
            "print('ran')\ndef f(): await g()",
            "SyntaxError: 'await' outside async function",
        ),
        ("print('ran')\nx = 'abc", "SyntaxError: "),
        (
            "print('ran')\nfrom __future__ import nonsense",
            "SyntaxError: ",
        ),
    ] {
        let result = session.execute(code);
        assert!(result.error().contains(error), "{code}\n{}", result.error());
        assert!(
            result.error().contains("File \"<program>\", line "),
            "{code}\n{}",
            result.error()
        );
        assert_eq!(result.structured()["output"], "", "{code}");
    }
    session.close();
}

// contract: P7
#[test]
fn system_exit_with_a_code_is_a_failed_run_that_says_so() {
    let mut session = Ptc::new().start();
    for (code, error) in [
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("import sys\nsys.exit('no rows')", "SystemExit: no rows"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("raise SystemExit('')", "SystemExit: "),
        ("raise SystemExit(-1)", "SystemExit: -1"),
        ("raise SystemExit(True)", "SystemExit: True"),
        ("raise SystemExit([])", "SystemExit: []"),
        ("raise SystemExit((1, 2))", "SystemExit: (1, 2)"),
        ("exit(2)", "SystemExit: 2"),
        (
            "import asyncio\nasync def main(): raise SystemExit(4)\nasyncio.run(main())",
            "SystemExit: 4",
        ),
        (
            "import asyncio\nasync def main(): raise SystemExit(5)\nawait asyncio.gather(main())",
            "SystemExit: 5",
        ),
        (
            "class Odd:\n    def __str__(self): return 1 / 0\nraise SystemExit(Odd())",
            "SystemExit: an Odd",
        ),
    ] {
        let result = session.execute(&format!("print('before')\n{code}\nprint('after')"));
        assert_eq!(result.error().trim_end(), error.trim_end(), "{code}");
        assert_eq!(result.structured()["output"], "before\n", "{code}");
    }
    session.close();
}

// contract: P7
#[test]
fn system_exit_without_a_code_ends_the_run_successfully() {
    let mut session = Ptc::new().start();
    for code in [
        "import sys\nsys.exit()",
        "import sys\nsys.exit(0)",
        "import sys\nsys.exit(None)",
        "raise SystemExit",
        "raise SystemExit(False)",
        "exit()",
        "quit(0)",
        "import asyncio\nasync def main(): raise SystemExit\nasyncio.run(main())",
        "import asyncio\nasync def main(): exit(0)\nawait main()",
    ] {
        let result = session.execute(&format!("print('before')\n{code}\nprint('after')"));
        assert_eq!(result.output(), "before", "{code}");
    }
    session.close();
}

// contract: P7
#[test]
fn a_program_that_breaks_what_reports_it_is_still_reported() {
    let mut session = Ptc::new().start();
    for code in [
        "import builtins\nfor name in ['len', 'print', 'str', 'isinstance', 'id', 'getattr', 'list', 'type']: delattr(builtins, name)\n1 / 0",
        "import sys\nsys.modules.clear()\n1 / 0",
        "import traceback\ntraceback.TracebackException = None\n1 / 0",
        "import sys, linecache\nlinecache.cache = None\n1 / 0",
        "import sys\nsys.stdout = sys.stderr = None\n1 / 0",
        "import sys\nsys.stdout.close(); sys.stderr.close()\n1 / 0",
        "import sys\nsys.settrace(lambda *_: 1 / 0)\n1 / 0",
        "import sys\nsys.excepthook = None\nsys.setrecursionlimit(30)\n1 / 0",
        "import gc\ngc.disable()\n1 / 0",
        "import os\nos.write = os._exit = None\n1 / 0",
        "globals().clear()\n1 / 0",
        "import signal, os\nsignal.signal(signal.SIGALRM, lambda *_: 1 / 0)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\nwhile True: pass",
    ] {
        let error = session.execute(code).error();
        assert!(error.contains("ZeroDivisionError"), "{code}\n{error}");
    }
    session.close();
}

// contract: P7
#[test]
fn a_mistake_that_the_compiler_finds_shows_its_line_too() {
    for (code, line, caret) in [
        ("x = 1\nreturn 5", "    return 5", "^^^^^^^^"),
        ("print(1)\nbreak", "    break", "^^^^^"),
    ] {
        let error = Ptc::new().execute(code).error();
        assert!(error.contains(line) && error.contains(caret), "{error}");
        assert!(error.contains("line 2"), "{error}");
    }
}

// contract: M4 P11
#[test]
fn an_error_that_can_be_mended_says_how() {
    for (code, hint) in [
        (
            "async def f(): return [1]\nprint(f()[0])",
            "did you forget \"await\"?",
        ),
        (
            "import asyncio\nasyncio.create_task(asyncio.sleep(0))",
            "no top-level await",
        ),
        ("x = bytearray(10**12)", "execution.max_memory_bytes"),
    ] {
        let error = Ptc::new().execute(code).error();
        assert!(error.contains(hint), "{code}: {error}");
    }
}
