//! How a program is ended and kept apart: by the clock, and from its own leftovers, the channel and
//! other programs' files (P8, P9, P10). What it may take is in `limits`.

use mock_servers::{Fault, Reply, Scenario, Tool};
use serde_json::json;

use crate::support::{Ptc, Session};

pub fn echo() -> Scenario {
    Scenario::new().tool(Tool::echo("echo"))
}

fn hang() -> Tool {
    Tool::new("hang").reply(Reply::fault(Fault::Hang(Default::default())))
}

#[track_caller]
pub fn assert_usable(session: &mut Session, after: &str) {
    let next = session.execute("print(await mcp__s__echo(next=1))");
    assert_eq!(next.output(), "{'next': 1}", "after {after}");
}

// ---- P8: the clock ------------------------------------------------------------------------------

/// Each of these never ends by itself.
fn endless(cases: &[&str]) {
    let mut session = Ptc::new()
        .stdio("s", echo().tool(hang()))
        .execution("timeout_seconds", 1.5)
        .start();
    for code in cases {
        let result = session.execute(code);
        assert_eq!(
            result.error(),
            "TimeoutError: Execution exceeded 1.5s limit",
            "{code}"
        );
        assert_usable(&mut session, code);
    }
    session.close();
}

// contract: P8
#[test]
fn busy_loops_are_killed_at_the_limit() {
    endless(&[
        "while True: pass",
        "import re\nre.match('(a+)+$', 'a' * 64 + 'b')",
        "10 ** 10 ** 10",
        "sum(iter(int, 1))",
        "import asyncio\nwhile True: await asyncio.sleep(0)",
        "import threading\nthreading.Thread(target=lambda: sum(iter(int, 1))).start()\nwhile True: pass",
    ]);
}

// contract: P8
#[test]
fn blocked_programs_are_killed_at_the_limit() {
    endless(&[
        "import time\ntime.sleep(1000)",
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        "import threading\nt = threading.Thread(target=threading.Event().wait)\nt.start()\nt.join()",
        "import asyncio\nawait asyncio.sleep(1000)",
        "import asyncio\nawait asyncio.to_thread(__import__('time').sleep, 1000)",
        "await mcp__s__hang()",
        "import os\nos.read(os.pipe()[0], 1)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import subprocess\nsubprocess.run(['sleep', '1000'])",
    ]);
}

// contract: P8
#[test]
fn programs_that_refuse_to_die_are_killed_at_the_limit() {
    endless(&[
        "import signal\nfor s in signal.valid_signals():\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import os\nif os.fork() == 0:\n    while True: pass\nwhile True: pass",
        "import os\nwhile True:\n    if os.fork() == 0: os._exit(0)\n    os.wait()",
        "class Sticky:\n    def __del__(self):\n        while True: pass\nSticky()",
    ]);
}

// contract: P8
#[test]
fn the_limit_is_named_as_it_was_configured() {
    for (limit, said) in [
        (json!(1), "TimeoutError: Execution exceeded 1s limit"),
        (json!(0.25), "TimeoutError: Execution exceeded 0.25s limit"),
    ] {
        let result = Ptc::new()
            .execution("timeout_seconds", limit)
            .execute("while True: pass");
        assert_eq!(result.error(), said);
    }
}

// contract: P8
#[test]
fn another_program_runs_while_one_spins() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    let spinning = session.send_program("await mcp__s__echo(spins=1)\nwhile True: pass");
    session.journal("s").wait_until(
        |journal| journal.calls("echo").len() == 1,
        crate::support::PATIENCE,
    );
    assert_usable(&mut session, "nothing yet");
    session.notify("notifications/cancelled", json!({"requestId": spinning}));
    assert_usable(&mut session, "the cancellation");
    session.close();
}

// ---- P9: descriptors and leftovers --------------------------------------------------------------

// contract: P9
#[test]
fn raw_writes_to_the_standard_descriptors_go_nowhere() {
    let mut session = Ptc::new().start();
    for code in [
        "import os\nfor fd in (0, 1, 2): os.write(fd, b'raw')",
        "import os\nassert os.read(0, 10) == b''",
        "import subprocess, sys\nsubprocess.run(['echo', 'child'], check=True)\nsubprocess.run(['cat'], check=True)",
        "import os\nos.system('echo shell; echo shell >&2')",
        "import ctypes\nctypes.CDLL(None).puts(b'libc'); ctypes.CDLL(None).fflush(None)",
        "open(1, 'w', closefd=False).write('opened')",
        "import os\nos.close(0); os.close(1); os.close(2)",
    ] {
        let result = session.execute(&format!("{code}\nprint('kept')"));
        assert_eq!(result.output(), "kept", "{code}");
    }
    session.close();
}

// contract: P9
#[test]
fn what_goes_on_after_the_end_neither_delays_nor_prints() {
    let mut session = Ptc::new().stdio("s", echo().tool(hang())).start();
    for code in [
        "import atexit\natexit.register(print, 'atexit')",
        "import atexit, time\natexit.register(time.sleep, 1000)",
        "import threading\ndef forever():\n    while True: pass\nthreading.Thread(target=forever).start()",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()",
        "import threading\nend = threading.Event()\ndef late():\n    threading.main_thread().join()\n    print('late')\nthreading.Thread(target=late).start()",
        "import concurrent.futures as c, time\npool = c.ThreadPoolExecutor()\npool.submit(time.sleep, 1000)",
        "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalised')",
        "class A:\n    def __del__(self): print('deleted')\na = A()",
        "class A:\n    def __del__(self):\n        while True: pass\na = A()",
        "import asyncio\nasync def later():\n    await asyncio.sleep(0.01)\n    print('later')\ntask = asyncio.create_task(later())\nawait asyncio.sleep(0)",
        "import asyncio\nasync def stubborn():\n    while True:\n        try: await asyncio.sleep(1000)\n        except asyncio.CancelledError: print('no')\ntask = asyncio.create_task(stubborn())\nawait asyncio.sleep(0)",
        "import asyncio\ntask = asyncio.create_task(mcp__s__hang())\nawait asyncio.sleep(0)",
        "async def gen():\n    try: yield 1\n    finally: print('closed')\ng = gen()\nawait g.__anext__()",
        "import sys\nsys.exitfunc = sys.excepthook = sys.unraisablehook = lambda *_: print('hook')",
        "import os\nif os.fork() == 0:\n    while True: pass",
        "import os\nif os.fork() == 0:\n    print('forked')\n    os._exit(0)\nos.wait()",
        "import subprocess\nsubprocess.Popen(['sleep', '1000'])",
        "import multiprocessing as m\np = m.get_context('fork').Process(target=print, args=('other',))\np.start(); p.join()",
        "import signal\nsignal.signal(signal.SIGALRM, lambda *_: print('alarm'))\nsignal.setitimer(signal.ITIMER_REAL, 1000)",
    ] {
        let result = session.execute(&format!("{code}\nprint('end')"));
        assert_eq!(result.output(), "end", "{code}");
    }
    session.close();
}

// contract: P9
#[test]
fn threads_that_print_for_ever_do_not_outlive_the_run() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    let result = session.execute(
        "
        import threading
        def chatter():
            while True: print('chatter')
        for _ in range(4): threading.Thread(target=chatter).start()
        emit('ended')
        ",
    );
    assert_eq!(result.emitted(), "ended");
    assert!(
        result.structured()["output"]
            .as_str()
            .unwrap()
            .lines()
            .all(|line| line.starts_with("chat") || line.is_empty() || line.starts_with("...")),
        "whole lines only"
    );
    assert_usable(&mut session, "the chatter");
    session.close();
}

// contract: P9
#[test]
fn a_failed_program_leaves_nothing_running_either() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    for end in [
        "1 / 0",
        "raise SystemExit(1)",
        "os._exit(1)",
        "os.kill(os.getpid(), 9)",
    ] {
        let code = format!(
            "import os, subprocess\nsubprocess.Popen(['sleep', '1000'])\nif os.fork() == 0:\n    while True: pass\n{end}"
        );
        assert!(session.execute(&code).is_error, "{end}");
        assert_usable(&mut session, end);
    }
    session.close();
}

// contract: P9
#[test]
fn writing_to_the_channel_at_worst_fails_the_programs_own_run() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    for (write, said) in [
        ("os.write(4, b'garbage that is no frame')", "ChannelError: "),
        ("os.write(4, b'\\xff\\xff\\xff\\xff')", "ChannelError: "),
        ("os.write(4, b'\\x00\\x00\\x00\\x00')", "ChannelError: "),
        ("frame(b'\\xff')", "ChannelError: "),
        ("frame(b'[]')", "ChannelError: "),
        ("frame(b'null')", "ChannelError: "),
        ("frame(b'{}')", "ChannelError: "),
        ("frame(b'{\"type\":1}')", "ChannelError: "),
        ("frame(b'{\"type\":\"start\"}')", "ChannelError: "),
        (
            "frame(b'{\"type\":\"ready\",\"version\":1,\"python\":\"3\"}')",
            "ChannelError: ",
        ),
        ("frame(b'{\"type\":\"output\"}')", "ChannelError: "),
        (
            "frame(b'{\"type\":\"output\",\"text\":1}')",
            "ChannelError: ",
        ),
        (
            "frame(b'{\"type\":\"output\",\"text\":\"\\\\ud800\"}')",
            "ChannelError: ",
        ),
        (
            "frame(b'{\"type\":\"call\",\"id\":-1,\"tool\":\"x\",\"arguments\":{}}')",
            "ChannelError: ",
        ),
        (
            "frame(b'{\"type\":\"call\",\"id\":1e99,\"tool\":\"x\",\"arguments\":{}}')",
            "ChannelError: ",
        ),
        (
            "frame(b'{\"type\":\"call\",\"id\":1,\"tool\":\"x\"}')",
            "ChannelError: ",
        ),
        ("frame(b'{\"type\":\"cancel\"}')", "ChannelError: "),
        (
            "frame(b'{\"type\":\"emit\",\"value\":' + b'[' * 100_000 + b']' * 100_000 + b'}')",
            "ChannelError: ",
        ),
        (
            "frame(b'{\"type\":\"emit\",\"value\":\"' + b'x' * 100_000 + b'\"}')",
            "ChannelError: ",
        ),
        (
            "frame(b'{\"type\":\"done\",\"error\":\"forged\"}')",
            "forged",
        ),
        (
            "for _ in range(2): frame(b'{\"type\":\"done\",\"error\":\"twice\"}')",
            "twice",
        ),
        (
            "while True: frame(b'{\"type\":\"output\",\"text\":\"' + b'x' * 60_000 + b'\"}')",
            "ChannelError: ",
        ),
        (
            "while True: frame(b'{\"type\":\"call\",\"id\":1,\"tool\":\"x\",\"arguments\":{}}')",
            "the program was ended after 1000 refused tool calls",
        ),
        (
            "while True: frame(b'{\"type\":\"call\",\"id\":1,\"tool\":\"' + b'x' * 60_000 + b'\",\"arguments\":{}}')",
            "the program was ended after 1000 refused tool calls",
        ),
        ("os.close(4)", "ChannelError: "),
        ("os.close(3); os.close(4)", "ChannelError: "),
        (
            "os.dup2(1, 4); import time; time.sleep(1000)",
            "ChannelError: ",
        ),
    ] {
        let code = format!(
            "
        import os, time
        def frame(body):
            rest = len(body).to_bytes(4, 'big') + body
            while rest: rest = rest[os.write(4, rest):]
        {write}
        time.sleep(1000)
        "
        );
        let error = session.execute(&code).error();
        assert!(error.starts_with(said), "{write}: {error}");
        assert_usable(&mut session, write);
    }
    session.close();
}

// contract: P9
#[test]
fn forged_frames_cannot_make_an_answer_that_the_client_cannot_read() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    for body in [
        r#"{"type":"emit","value":"\ud800"}"#,
        r#"{"type":"emit","value":{"a":1,"a":2}}"#,
        r#"{"type":"emit","value":1e999999}"#,
        r#"{"type":"emit","value":-0}"#,
        r#"{"type":"emit"}"#,
        r#"{"type":"output","text":"\u0000\u2028\u001b[31m"}"#,
        r#"{"type":"call","id":1,"tool":"\u0000\n","arguments":"no object"}"#,
        r#"{"type":"call","id":1,"tool":"mcp__s__echo","arguments":[1]}"#,
        r#"{"type":"call","id":1,"tool":"mcp__s__echo","arguments":{"a":"\ud800"}}"#,
        r#"{"type":"call","id":1,"tool":"mcp__s__echo","arguments":{"a":1,"a":2}}"#,
        r#"{"type":"help","id":1,"name":"inspect_tool","arguments":[]}"#,
        r#"{"type":"help","id":1,"name":"nothing","arguments":{}}"#,
        r#"{"type":"cancel","id":77}"#,
    ] {
        let code = format!(
            "
        import os
        body = {body:?}.encode()
        os.write(4, len(body).to_bytes(4, 'big') + body)
        "
        );
        // Parsing the answer is the test; whether the run counts as failed is the program's affair.
        session.execute(&code);
        assert_usable(&mut session, body);
    }
    session.close();
}

// contract: P9
#[test]
fn a_forged_error_is_cut() {
    let result = Ptc::new().execute(
        "
        import os, time
        rest = b'{\"type\":\"done\",\"error\":\"' + b'x' * 10_000_000 + b'\"}'
        rest = len(rest).to_bytes(4, 'big') + rest
        while rest: rest = rest[os.write(4, rest):]
        time.sleep(1000)
        ",
    );
    assert!(result.error().starts_with("xxx"));
    assert!(result.structured()["error"].as_str().unwrap().len() < 300_000);
}

/// The most memory that a process ever had, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024
}

// contract: P9
#[cfg(target_os = "linux")]
#[test]
fn a_flood_of_requests_that_nobody_collects_does_not_fill_the_server() {
    let mut session = Ptc::new().execution("timeout_seconds", 4).start();
    for body in [
        r#"{"type":"help","id":1,"name":"list_callable_tools","arguments":{}}"#,
        r#"{"type":"help","id":1,"name":"","arguments":{}}"#,
        r#"{"type":"cancel","id":1}"#,
        r#"{"type":"emit","value":[]}"#,
        r#"{"type":"output","text":""}"#,
    ] {
        let code = format!(
            "
        import os
        body = {body:?}.encode()
        frames = (len(body).to_bytes(4, 'big') + body) * 1000
        while True:
            rest = frames
            while rest: rest = rest[os.write(4, rest):]
        "
        );
        assert!(session.execute(&code).is_error, "{body}");
        let peak = peak_memory(session.pid());
        assert!(peak < 200_000_000, "{body}: {peak}");
    }
    session.close();
}

// contract: P9
#[test]
fn an_enormous_name_delays_nobody() {
    let many = (0..300).fold(echo(), |scenario, n| {
        scenario.tool(Tool::echo(&format!("tool_number_{n}")))
    });
    let mut session = Ptc::new().stdio("s", many).start();
    let spinning = session.send_program(
        "
        body = b'{\"type\":\"call\",\"id\":1,\"tool\":\"mcp__s__' + b'x' * 5_000_000 + b'\",\"arguments\":{}}'
        import os
        while True:
            rest = len(body).to_bytes(4, 'big') + body
            while rest: rest = rest[os.write(4, rest):]
        ",
    );
    let found =
        session.execute("print((await inspect_tool(tool_name='mcp__s__' + 'y' * 60_000))[:16])");
    assert_eq!(found.output(), "[Tool not found]");
    session.notify("notifications/cancelled", json!({"requestId": spinning}));
    session.close();
}

// contract: P9
#[test]
fn half_a_frame_before_the_end_fails_the_run_only() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    for code in [
        "import os\nos.write(4, b'\\x00\\x00\\x01\\x00{')",
        "import os\nos.write(4, b'\\x00\\x00')",
        "import os\nos.write(4, b'\\x00\\x00\\x01\\x00{')\nos._exit(0)",
    ] {
        assert!(session.execute(code).is_error, "{code}");
        assert_usable(&mut session, code);
    }
    session.close();
}

// contract: P9
#[test]
fn taking_the_hosts_answers_away_harms_no_other_program() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("timeout_seconds", 2)
        .start();
    for code in [
        "import os\nos.close(3)\nawait mcp__s__echo(a=1)",
        "import os, threading\nthreading.Thread(target=os.read, args=(3, 100)).start()\nawait mcp__s__echo(a=1)",
        "import os\nos.read(3, 100)",
        "import os\nos.dup2(0, 3)\nawait mcp__s__echo(a=1)",
        "import os\nos.set_blocking(3, False)\nos.set_blocking(4, False)\nfor i in range(50): await mcp__s__echo(a='x' * 100_000)\n1 / 0",
    ] {
        session.execute(code);
        assert_usable(&mut session, code);
    }
    session.close();
}

// contract: P9 B1
#[test]
fn a_forged_call_goes_through_the_same_gate() {
    let ptc = Ptc::new()
        .stdio("s", echo().tool(Tool::echo("secret")))
        .set("tools", "block", json!(["*__secret"]))
        .execution("max_tool_calls", 2);
    let mut session = ptc.start();
    let result = session.execute(
        "
        import os
        def forge(number, tool):
            body = b'{\"type\":\"call\",\"id\":%d,\"tool\":\"%s\",\"arguments\":{}}' % (number, tool)
            os.write(4, len(body).to_bytes(4, 'big') + body)
        forge(99, b'mcp__s__secret')
        forge(100, b'mcp__s__echo')
        # The server answers in order, so the forged call is with it by then.
        await mcp__s__echo()
        forge(101, b'mcp__s__echo')
        try:
            await mcp__s__echo()
        except ToolError as error:
            print(error)
        ",
    );
    assert_eq!(
        result.output(),
        "tool-call budget exhausted (max_tool_calls=2)"
    );
    assert_eq!(session.journal("s").calls("secret").len(), 0);
    assert_eq!(session.journal("s").calls("echo").len(), 2);
    let tools: Vec<_> = result
        .calls()
        .iter()
        .map(|call| call["tool"].clone())
        .collect();
    assert_eq!(
        tools,
        [
            "mcp__s__secret",
            "mcp__s__echo",
            "mcp__s__echo",
            "mcp__s__echo",
            "mcp__s__echo"
        ]
    );
    session.close();
}

// ---- P10: the scratch directory -----------------------------------------------------------------

// contract: P10
#[test]
fn the_scratch_directory_is_private_empty_and_everything_at_once() {
    let result = Ptc::new().execute(
        "
        import os, tempfile
        cwd = os.getcwd()
        print(os.listdir(), os.stat('.').st_mode & 0o777 == 0o700)
        print(os.environ['HOME'] == os.environ['TMPDIR'] == cwd == tempfile.gettempdir() == os.path.expanduser('~'))
        open('file', 'w').write('x')
        print(open('file').read(), tempfile.mkdtemp().startswith(cwd))
        ",
    );
    assert_eq!(result.output(), "[] True\nTrue\nx True");
}

// contract: P10
#[test]
fn the_environment_holds_nothing_of_the_servers() {
    let result = Ptc::new()
        .env("SECRET_TOKEN", "hunter2")
        .env("LANG", "de_DE.UTF-8")
        .env("PYTHONPATH", "/nonexistent")
        .execute("import os\n# Python itself sets LC_CTYPE where there is no locale.\nprint(sorted({*os.environ} - {'LC_CTYPE'}), 'hunter2' in str(dict(os.environ)))");
    assert_eq!(result.output(), "['HOME', 'TMPDIR'] False");
}

// contract: P10
#[test]
fn every_run_has_a_directory_of_its_own_that_is_gone_afterwards() {
    let mut session = Ptc::new().start();
    let mut seen = Vec::new();
    for end in [
        "",
        "1 / 0",
        "os._exit(1)",
        "os.kill(os.getpid(), 9)",
        "os.makedirs('a/b/c'); open('a/b/c/d', 'w'); os.chmod('a/b', 0); os.chmod('a', 0o500)",
        "os.chmod('.', 0)",
        "os.symlink('/', 'root')",
        "os.mkfifo('pipe')",
        "for i in range(3000): open(str(i), 'w').close()",
        "os.makedirs('/'.join(['d' * 50] * 60))",
        "os.rmdir(os.getcwd())",
        "os.mkdir(b'\\xff\\xfe')",
    ] {
        let result = session.execute(&format!("import os\nprint(os.getcwd())\n{end}"));
        let printed = result.structured()["output"]
            .as_str()
            .unwrap()
            .trim_end()
            .to_owned();
        assert!(printed.starts_with('/'), "{end}: {}", result.text());
        assert!(!std::path::Path::new(&printed).exists(), "{end}: {printed}");
        assert!(!seen.contains(&printed), "{end}: {printed}");
        seen.push(printed);
    }
    session.close();
}

// contract: P10
#[test]
fn what_the_scratch_directory_points_to_is_left_alone() {
    let ptc = Ptc::new();
    let outside = ptc.folder().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), "x").unwrap();
    let code = format!(
        "import os\ncwd, outside = os.getcwd(), {:?}\nos.symlink(outside, 'link')\nos.symlink(outside + '/precious', 'file')\nos.chmod('.', 0)",
        outside.to_str().unwrap()
    );
    let mut session = ptc.start();
    session.execute(&code).output();
    let code = format!(
        "import os\ncwd = os.getcwd()\nos.rmdir(cwd)\nos.symlink({:?}, cwd)",
        outside.to_str().unwrap()
    );
    session.execute(&code).output();
    assert_eq!(
        std::fs::read_to_string(outside.join("precious")).unwrap(),
        "x"
    );
    session.close();
}
