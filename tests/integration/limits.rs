//! The modes of the sandbox, as far as they need none, and what a program may take (B4, B5, B6).

use mock_servers::{Fault, Reply, Tool};
use serde_json::json;

use crate::isolation::{assert_usable, echo};
use crate::support::{PATIENCE, Ptc};

/// A file of the server's own, which a confined program must not read.
fn reads_outside(ptc: &Ptc) -> String {
    let secret = ptc.folder().join("secret");
    std::fs::write(&secret, "leaked").unwrap();
    format!("print(open({:?}).read())", secret.to_str().unwrap())
}

// contract: B4
#[test]
fn sandbox_none_is_no_wall() {
    let ptc = Ptc::new().execution("sandbox", "none");
    let code = reads_outside(&ptc);
    assert_eq!(ptc.execute(&code).output(), "leaked");
}

// contract: B4 B5
#[test]
fn no_other_mode_ever_becomes_none() {
    for mode in ["auto", "namespaces", "chroot", "seatbelt"] {
        let ptc = Ptc::new().execution("sandbox", mode);
        let code = reads_outside(&ptc);
        let result = ptc.execute(&code);
        assert!(result.is_error, "{mode}: {}", result.text());
        assert!(
            !result.text().contains("leaked"),
            "{mode}: {}",
            result.text()
        );
    }
}

/// A backend that cannot exist here.
const ELSEWHERE: &str = if cfg!(target_os = "macos") {
    "namespaces"
} else {
    "seatbelt"
};

// contract: B5 S3 S4
#[test]
fn a_sandbox_of_another_platform_refuses_programs_and_nothing_else() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("sandbox", ELSEWHERE)
        .start();
    let result = session.execute("print('ran')");
    let error = result.error();
    assert!(
        error.starts_with(&format!(
            "SandboxError: execution.sandbox: {ELSEWHERE} needs "
        )),
        "{error}"
    );
    assert!(error.contains("'auto'"), "the way out: {error}");
    assert_eq!(result.structured()["output"], "");
    assert_eq!(session.callable(), ["mcp__s__echo"]);
    let inspected = session.call_tool("inspect_tool", json!({"tool_name": "mcp__s__echo"}));
    assert!(!inspected.is_error, "{}", inspected.text());
    session.close();
}

// contract: B5
#[test]
fn the_refusal_is_complete_on_its_own() {
    if cfg!(target_os = "macos") {
        return;
    }
    let result = Ptc::new()
        .execution("sandbox", "seatbelt")
        .execute("print(1)");
    insta::assert_snapshot!(result.text(), @r"
    [Script execution failed]
    SandboxError: execution.sandbox: seatbelt needs macOS.
      fix: leave the key out, or write 'auto': this platform's own
      or: 'none' runs programs with their limits but without a wall, for programs that you trust as your own
    Programs do not run until then; listing and inspecting tools still work.
    ");
}

// contract: B5 P1
#[test]
fn an_interpreter_that_cannot_be_used_refuses_programs_and_says_what_to_install() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("python", "/nonexistent/python3")
        .start();
    let error = session.execute("print(1)").error();
    assert!(error.starts_with("SandboxError: programs need CPython 3.9 or newer, and execution.python names '/nonexistent/python3'"), "{error}");
    assert!(error.contains("Install one"), "{error}");
    assert_eq!(session.callable(), ["mcp__s__echo"]);
    session.close();
}

// contract: B6
#[test]
fn memory_is_limited() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("max_memory_bytes", 200_000_000)
        .start();
    for (code, said) in [
        ("x = bytearray(1_000_000_000)", "MemoryError"),
        (
            "x = []\nwhile True: x.append('x' * 1_000_000)",
            "MemoryError",
        ),
        ("x = 'x' * 10 ** 9", "MemoryError"),
        (
            "import mmap\nm = mmap.mmap(-1, 1 << 30)\nwhile True:\n    for i in range(0, 1 << 30, 4096): m[i] = 1",
            "max_memory_bytes=200000000",
        ),
    ] {
        let error = session.execute(code).error();
        assert!(error.contains(said), "{code}: {error}");
        assert_usable(&mut session, code);
    }
    assert_eq!(
        session
            .execute("try: bytearray(1_000_000_000)\nexcept MemoryError: print('caught')")
            .output(),
        "caught"
    );
    session.close();
}

// contract: B6
#[test]
fn the_scratch_directory_is_limited() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("max_scratch_bytes", 1_000_000)
        .start();
    for (code, said) in [
        (
            "for i in range(10): open(str(i), 'wb').write(b'x' * 500_000)\nimport time; time.sleep(1000)",
            "max_scratch_bytes=1000000",
        ),
        (
            "for i in range(100_000): open(str(i), 'wb').close()\nimport time; time.sleep(1000)",
            "files",
        ),
        (
            "import os, time\nfor i in range(10):\n    f = open('f', 'wb', 0); f.write(b'x' * 500_000); os.unlink('f'); globals()[f'f{i}'] = f\ntime.sleep(1000)",
            "max_scratch_bytes=1000000",
        ),
    ] {
        let error = session.execute(code).error();
        assert!(
            error.starts_with("ResourceError: ") && error.contains(said),
            "{code}: {error}"
        );
        assert_usable(&mut session, code);
    }
    session.close();
}

// contract: B6
#[test]
fn one_file_cannot_grow_beyond_the_limit() {
    let mut session = Ptc::new()
        .stdio("s", echo())
        .execution("max_scratch_bytes", 1_000_000)
        .start();
    for code in [
        "f = open('big', 'wb', 0)\nwhile True: f.write(b'x' * 100_000)",
        "open('big', 'wb').truncate(2_000_000)",
    ] {
        let error = session.execute(code).error();
        assert!(
            error.contains("OSError: [Errno 27]") || error.contains("max_scratch_bytes"),
            "{code}: {error}"
        );
        assert_usable(&mut session, code);
    }
    session.close();
}

// contract: B6
#[test]
fn open_files_are_limited() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    let error = session
        .execute("files = []\nwhile True: files.append(open('/dev/null'))")
        .error();
    assert!(
        error.contains("OSError: [Errno 24] Too many open files"),
        "{error}"
    );
    assert_usable(&mut session, "the flood of files");
    session.close();
}

// contract: B6
#[test]
fn cpu_time_is_limited_to_little_more_than_the_wall_clock() {
    let result = Ptc::new().execution("timeout_seconds", 40).execute(
        "
        import resource
        print(resource.getrlimit(resource.RLIMIT_CPU))
        print(resource.getrlimit(resource.RLIMIT_CORE))
        ",
    );
    assert_eq!(result.output(), "(42, 42)\n(0, 0)");
}

// contract: B6
#[test]
fn spent_cpu_time_ends_the_program_with_the_reason() {
    // Several processors' worth of time can be spent before the wall clock ends the run.
    let code = "
        import resource
        resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
        while True: pass
        ";
    let mut session = Ptc::new().stdio("s", echo()).start();
    let error = session.execute(code).error();
    assert!(error.contains("CPU time"), "{error}");
    assert_usable(&mut session, "the kill");
    session.close();
}

// contract: B6
#[test]
fn limits_cannot_be_raised_from_within() {
    let result = Ptc::new().execute(
        "
        import os, resource
        if os.getuid() == 0:
            print('as root the kernel allows it')
        else:
            for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
                try:
                    resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                    print('raised', limit)
                except ValueError:
                    pass
            print('as root the kernel allows it')
        ",
    );
    assert_eq!(result.output(), "as root the kernel allows it");
}

// contract: B6
#[test]
fn arguments_of_very_many_values_are_refused_and_harm_nothing() {
    let mut session = Ptc::new().stdio("s", echo()).start();
    let result = session.execute(
        "
        print(len((await mcp__s__echo(x=[0] * 100_000))['x']))
        try:
            await mcp__s__echo(x=[0] * 200_000)
        except ToolError as error:
            print(error)
        try:
            await inspect_tool('x' * 100_000)
        except Exception as error:
            print(error)
        ",
    );
    assert_eq!(
        result.output(),
        "100000\n\
         'mcp__s__echo' was refused: its arguments cannot be sent: they hold 200003 values, more \
         than 150000; send them in parts\n\
         inspect_tool(): its arguments are 100016 bytes long, more than 65536"
    );
    assert_usable(&mut session, "refusals");
    session.close();
}

// contract: B6 D4
#[test]
fn a_call_with_the_largest_arguments_can_be_given_up() {
    let hang = Tool::new("hang").reply(Reply::fault(Fault::Hang(Default::default())));
    let mut session = Ptc::new()
        .stdio("s", echo().tool(hang))
        .execution("timeout_seconds", 20)
        .start();
    let result = session.execute(
        "
        import asyncio
        large = [0] * 149_000 + ['x' * 10_000_000]
        try:
            await asyncio.wait_for(mcp__s__hang(x=large), 0.2)
        except asyncio.TimeoutError:
            print('gave up')
        ",
    );
    assert_eq!(result.output(), "gave up");
    session
        .journal("s")
        .wait_until(|journal| journal.cancelled().len() == 1, PATIENCE);
    session.close();
}

// contract: S6
#[test]
fn a_program_reads_a_tools_error_whole_and_its_record_keeps_the_beginning() {
    let told = "why ".repeat(25_000) + "not";
    let fails = Tool::new("fails").reply(Reply::tool_error(&told));
    let result = Ptc::new().stdio("s", echo().tool(fails)).execute(
        "
        for n in range(3):
            try: await mcp__s__fails()
            except ToolError as error: print(len(str(error)))
        ",
    );
    let length = "'mcp__s__fails' returned an error: ".len() + told.len();
    assert_eq!(result.output(), format!("{length}\n{length}\n{length}"));
    for call in result.calls() {
        let error = call["error"].as_str().unwrap();
        assert!(error.starts_with("'mcp__s__fails' returned an error: why why "));
        assert!(
            error.ends_with("...") && error.len() < 2100,
            "{}",
            error.len()
        );
    }
}
