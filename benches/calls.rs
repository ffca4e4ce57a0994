//! What a tool call costs through ptc-mcp, as a ratio to the thinnest possible relay.
//!
//! Both sides make the same sequential calls of the same `echo` server. The relay is a process that
//! only rewraps JSON, between that server and a CPython child that uses asyncio. Rounds alternate,
//! and each side is asked for the right answer before it is timed.
//!
//! `cargo bench --bench calls`; `CALLS` and `ROUNDS` in the environment change the size of a run.

#![allow(clippy::disallowed_methods, reason = "a bench starts what it measures")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// How far above the relay a call may be.
const BAR: f64 = 2.0;

fn main() {
    if std::env::args().any(|argument| argument == "--echo-server") {
        echo_server();
        return;
    }
    let number = |name: &str, default: usize| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (calls, rounds) = (number("CALLS", 2000), number("ROUNDS", 5));
    let mut ours = Vec::new();
    let mut relayed = Vec::new();
    for _ in 0..rounds {
        ours.push(through_ptc(calls));
        relayed.push(through_relay(calls));
    }
    let ratios: Vec<f64> = ours.iter().zip(&relayed).map(|(a, b)| a / b).collect();
    let ratio = median(&ratios);
    report("ptc-mcp", &ours, calls);
    report("thinnest relay", &relayed, calls);
    print_line(&format!(
        "ratio, pair by pair: median {ratio:.2} (bar: {BAR:.1})"
    ));
    if ratio > BAR {
        std::process::exit(1);
    }
}

#[expect(clippy::print_stdout, reason = "a bench's own output")]
fn print_line(line: &str) {
    println!("{line}");
}

fn report(side: &str, seconds: &[f64], calls: usize) {
    let micros: Vec<f64> = seconds.iter().map(|s| s / calls as f64 * 1e6).collect();
    let least = micros.iter().copied().fold(f64::INFINITY, f64::min);
    print_line(&format!(
        "{side}: {:.0} µs a call (median; least {least:.0})",
        median(&micros)
    ));
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The seconds that the program itself measured around its loop.
fn through_ptc(calls: usize) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let echo = std::env::current_exe().expect("our own path");
    let config = json!({
        "servers": [{"name": "s", "command": echo, "args": ["--echo-server"]}],
        "execution": {"sandbox": "none", "max_tool_calls": calls + 1},
    });
    let (config_file, program) = (
        folder.path().join("config.yaml"),
        folder.path().join("p.py"),
    );
    std::fs::write(&config_file, config.to_string()).expect("the config is written");
    let code = format!(
        "import asyncio, time\n\
         assert await mcp__s__echo(n=-1) == {{'n': -1}}\n\
         started = time.perf_counter()\n\
         for i in range({calls}):\n\
         \x20   value = await mcp__s__echo(n=i)\n\
         seconds = time.perf_counter() - started\n\
         assert value == {{'n': {calls} - 1}}, value\n\
         print(seconds)\n"
    );
    std::fs::write(&program, code).expect("the program is written");
    let output = Command::new(env!("CARGO_BIN_EXE_ptc-mcp"))
        .arg("--config")
        .arg(&config_file)
        .arg("run")
        .arg(&program)
        .stderr(Stdio::inherit())
        .output()
        .expect("ptc-mcp runs");
    assert!(output.status.success(), "the program failed");
    let text = String::from_utf8(output.stdout).expect("text");
    text.trim().parse().expect("the program prints its seconds")
}

/// The child of the relay: asyncio, one JSON line a request.
const RELAY_CHILD: &str = r#"
import asyncio, json, os, sys, time
calls = int(sys.argv[1])
async def main():
    loop = asyncio.get_running_loop()
    reader = os.fdopen(0, "rb", 65536)
    waiting = None
    def ready():
        waiting.set_result(json.loads(reader.readline()))
    loop.add_reader(0, ready)
    async def echo(**arguments):
        nonlocal waiting
        waiting = loop.create_future()
        os.write(1, json.dumps({"tool": "echo", "arguments": arguments}).encode() + b"\n")
        return await waiting
    assert await echo(n=-1) == {"n": -1}
    started = time.perf_counter()
    for i in range(calls):
        value = await echo(n=i)
    seconds = time.perf_counter() - started
    assert value == {"n": calls - 1}, value
    os.write(1, json.dumps({"seconds": seconds}).encode() + b"\n")
asyncio.run(main())
"#;

fn through_relay(calls: usize) -> f64 {
    let mut server = Piped::start(
        Command::new(std::env::current_exe().expect("our own path")).arg("--echo-server"),
    );
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "relay", "version": "1"}}});
    server.write(&initialize);
    server.read();
    server.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));

    let mut child = Piped::start(Command::new(python()).args([
        "-I",
        "-S",
        "-c",
        RELAY_CHILD,
        &calls.to_string(),
    ]));
    for id in 1.. {
        let said = child.read();
        if let Some(seconds) = said["seconds"].as_f64() {
            return seconds;
        }
        server.write(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": said["tool"], "arguments": said["arguments"]}}));
        let answer = server.read();
        assert_eq!(answer["id"], id, "the answer to our request");
        child.write(&answer["result"]["structuredContent"]);
    }
    unreachable!("a program ends before the numbers do")
}

/// The base interpreter, as ptc-mcp would find it: a shim costs a tenth of a second.
fn python() -> String {
    let probe =
        "import os, sys; print(os.path.realpath(getattr(sys, '_base_executable', sys.executable)))";
    let output = Command::new("python3")
        .args(["-I", "-S", "-c", probe])
        .output();
    let output = output.expect("python3 on PATH");
    String::from_utf8(output.stdout)
        .expect("a path")
        .trim()
        .to_owned()
}

struct Piped {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Piped {
    fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the process starts");
        let input = process.stdin.take().expect("piped");
        let output = BufReader::with_capacity(65536, process.stdout.take().expect("piped"));
        Self {
            process,
            input,
            output,
        }
    }

    fn write(&mut self, message: &Value) {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .expect("the other end reads");
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .expect("the other end writes");
        serde_json::from_str(&line).expect("JSON lines")
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An MCP server of one tool, as little as there can be.
fn echo_server() {
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let message: Value = serde_json::from_str(&line.expect("text")).expect("JSON lines");
        let Some(id) = message.get("id") else {
            continue;
        };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            }),
            Some("tools/list") => {
                json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
            }
            Some("tools/call") => {
                json!({"content": [], "structuredContent": message["params"]["arguments"]})
            }
            _ => json!({}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        output
            .write_all(format!("{answer}\n").as_bytes())
            .expect("the client reads");
        output.flush().expect("the client reads");
    }
}
