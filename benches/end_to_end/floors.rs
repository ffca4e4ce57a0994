//! What the parts cost when ptc-mcp does not stand between them. Each floor is one of the
//! definitions of `benches/README.md`.

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use serde_json::{Value, json};

use crate::client::Piped;
use crate::server;

/// The base interpreter, as ptc-mcp finds it: a shim on PATH costs a tenth of a second.
fn python() -> Command {
    static FOUND: OnceLock<String> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let probe = "import os, sys; print(os.path.realpath(getattr(sys, '_base_executable', sys.executable)))";
        let output = Command::new("python3")
            .args(["-I", "-S", "-c", probe])
            .output();
        let output = output.expect("python3 is on PATH");
        String::from_utf8(output.stdout)
            .expect("a path")
            .trim()
            .to_owned()
    });
    let mut command = Command::new(found);
    command.args(["-I", "-S", "-c"]);
    command
}

fn echo_server() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command.args([server::ECHO, "3"]);
    command
}

/// A bare server from its start to its answer to `tools/list`.
pub(crate) fn start() -> f64 {
    let started = Instant::now();
    let mut server = Piped::start(&mut echo_server());
    server.initialize();
    assert_eq!(server.list(), 3);
    started.elapsed().as_secs_f64()
}

/// An interpreter from its start to its end.
pub(crate) fn interpreter(code: &str) -> f64 {
    let started = Instant::now();
    let status = python().arg(code).status().expect("python runs");
    assert!(status.success());
    started.elapsed().as_secs_f64()
}

/// What an interpreter prints that runs this code.
pub(crate) fn printed(code: &str) -> f64 {
    let output = python().arg(code).output().expect("python runs");
    let text = String::from_utf8(output.stdout).expect("text");
    text.trim().parse().expect("seconds")
}

/// An interpreter that waits for one program, as a ready child does.
pub(crate) struct Waiting(Piped);

const WAITING: &str = r#"
import io, os, sys
os.write(1, b"ready\n")
code = os.read(0, 65536).decode()
sys.stdout = io.StringIO()
exec(compile(code, "<program>", "exec"), {})
os.write(1, sys.stdout.getvalue().encode())
os._exit(0)
"#;

impl Waiting {
    pub(crate) fn start() -> Self {
        let mut pipes = Piped::start(python().arg(WAITING));
        assert_eq!(pipes.line(), "ready\n");
        Self(pipes)
    }

    /// From the program in the pipe to its output out of the other.
    pub(crate) fn run(mut self) -> f64 {
        let started = Instant::now();
        self.0.write(b"print(1)");
        assert_eq!(self.0.line(), "1\n");
        started.elapsed().as_secs_f64()
    }
}

/// The child of a relay that goes through asyncio: its loop and its streams.
pub(crate) const WITH_ASYNCIO: &str = r#"
import asyncio, json, os, sys, time
calls = int(sys.argv[1])
async def main():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", 0))
    pipe, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(1, "wb", 0))
    writer = asyncio.StreamWriter(pipe, protocol, reader, loop)
    async def echo(**arguments):
        writer.write(json.dumps({"tool": "echo", "arguments": arguments}).encode() + b"\n")
        await writer.drain()
        return json.loads(await reader.readline())
    assert await echo(n=-1) == {"n": -1}
    started = time.perf_counter()
    for i in range(calls):
        value = await echo(n=i)
    seconds = time.perf_counter() - started
    assert value == {"n": calls - 1}, value
    os.write(1, json.dumps({"seconds": seconds}).encode() + b"\n")
    os._exit(0)
asyncio.run(main())
"#;

/// The child of a relay that blocks for its answers.
pub(crate) const WITHOUT_ASYNCIO: &str = r#"
import json, os, sys, time
calls = int(sys.argv[1])
reader = os.fdopen(0, "rb", 65536)
def echo(**arguments):
    os.write(1, json.dumps({"tool": "echo", "arguments": arguments}).encode() + b"\n")
    return json.loads(reader.readline())
assert echo(n=-1) == {"n": -1}
started = time.perf_counter()
for i in range(calls):
    value = echo(n=i)
seconds = time.perf_counter() - started
assert value == {"n": calls - 1}, value
os.write(1, json.dumps({"seconds": seconds}).encode() + b"\n")
"#;

/// Seconds for so many calls through the thinnest relay: this process, which only rewraps JSON
/// between the echo server and an interpreter.
pub(crate) fn relayed(child: &str, calls: usize) -> f64 {
    let mut server = Piped::start(&mut echo_server());
    server.initialize();
    let mut child = Piped::start(python().arg(child).arg(calls.to_string()));
    for id in 1.. {
        let said = child.hear();
        if let Some(seconds) = said["seconds"].as_f64() {
            return seconds;
        }
        server.tell(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": said["tool"], "arguments": said["arguments"]}}));
        let answer = server.hear();
        assert_eq!(answer["id"], id, "the answer to our request");
        child.tell(&answer["result"]["structuredContent"]);
    }
    unreachable!("a program ends before the numbers do")
}

/// What a child that is wired to a server begins with.
const HANDSHAKE: &str = r#"
import json, os, sys, time
def tell(message):
    data = memoryview(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    while data:
        data = data[os.write(1, data):]
reader = os.fdopen(0, "rb", 65536)
tell({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {},
    "clientInfo": {"name": "wired", "version": "1"}}})
reader.readline()
tell({"method": "notifications/initialized"})
def say(seconds):
    os.write(2, json.dumps({"seconds": seconds}).encode() + b"\n")
"#;

/// Many calls at once, the answers in an event loop.
pub(crate) const AT_ONCE: &str = r#"
import asyncio
calls, pause = int(sys.argv[1]), int(sys.argv[2])
async def main():
    loop = asyncio.get_running_loop()
    waiting = {}
    numbers = iter(range(1, 1_000_000))
    rest = b""
    def ready():
        nonlocal rest
        *lines, rest = (rest + os.read(0, 65536)).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            waiting.pop(answer["id"]).set_result(answer["result"]["structuredContent"])
    loop.add_reader(0, ready)
    async def sleep(**arguments):
        number = next(numbers)
        waiting[number] = loop.create_future()
        tell({"id": number, "method": "tools/call", "params": {"name": "sleep", "arguments": arguments}})
        return await waiting[number]
    assert await sleep(ms=0) == {"slept": True}
    started = time.perf_counter()
    values = await asyncio.gather(*(sleep(ms=pause) for _ in range(calls)))
    seconds = time.perf_counter() - started
    assert values == [{"slept": True}] * calls
    say(seconds)
asyncio.run(main())
"#;

/// One large result, whose text is JSON: the second of two, since the server makes it for the first.
pub(crate) const LARGE: &str = r#"
import gc
size = int(sys.argv[1])
gc.disable()
def rows(number):
    tell({"id": number, "method": "tools/call", "params": {"name": "rows", "arguments": {"bytes": size}}})
    answer = json.loads(reader.readline())
    assert answer["id"] == number
    return json.loads(answer["result"]["content"][0]["text"])
value = rows(1)
del value
started = time.perf_counter()
value = rows(2)
seconds = time.perf_counter() - started
assert value[-1]["id"] == len(value) - 1 and value[-1]["tags"] == ["a", "b", None, True]
say(seconds)
"#;

/// The seconds that an interpreter measures which speaks with the server itself, each at the other's
/// end of two pipes.
pub(crate) fn wired(child: &str, arguments: &[usize]) -> f64 {
    let mut server = echo_server()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let to_server = server.stdin.take().expect("it is piped");
    let from_server = server.stdout.take().expect("it is piped");
    let output = python()
        .arg(format!("{HANDSHAKE}{child}"))
        .args(arguments.iter().map(ToString::to_string))
        .stdin(from_server)
        .stdout(to_server)
        .stderr(Stdio::piped())
        .output()
        .expect("python runs");
    server.wait().expect("it is our child");
    let said: Value = serde_json::from_slice(&output.stderr)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    said["seconds"].as_f64().expect("seconds")
}
