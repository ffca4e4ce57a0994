//! ptc-mcp as a client drives it: over its pipes, by hand-written messages.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server;

/// A configuration: one server of so many tools, and what `execution` is to say beyond that.
pub(crate) fn config(tools: usize, execution: Value) -> Value {
    let echo = std::env::current_exe().expect("our own path");
    json!({
        "servers": [{"name": "s", "command": echo, "args": [server::ECHO, tools.to_string()]}],
        "execution": execution,
    })
}

/// The other end of some process's pipes.
pub(crate) struct Piped {
    pub(crate) process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Piped {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the process starts");
        let input = process.stdin.take();
        let output = process.stdout.take().expect("it is piped");
        Self {
            process,
            input,
            output: BufReader::with_capacity(65536, output),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).expect("the other end reads");
    }

    pub(crate) fn tell(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .expect("the other end writes text");
        line
    }

    pub(crate) fn hear(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("the other end writes JSON lines, and not {line:?}"))
    }

    /// As a client begins with any MCP server.
    pub(crate) fn initialize(&mut self) {
        self.tell(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"}}}),
        );
        assert_eq!(self.hear()["result"]["protocolVersion"], "2025-11-25");
        self.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// The number of tools that it lists.
    pub(crate) fn list(&mut self) -> usize {
        self.tell(&json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}));
        let answer = self.hear();
        let tools = answer["result"]["tools"].as_array();
        tools.expect("a list of tools").len()
    }

    /// Ends the process by the end of its input, and waits for it.
    pub(crate) fn end(&mut self) {
        self.input = None;
        self.process.wait().expect("it is our child");
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.end();
    }
}

/// A ptc-mcp that serves.
pub(crate) struct Session {
    pub(crate) pipes: Piped,
    next: u64,
    _folder: tempfile::TempDir,
}

impl Session {
    /// Starts the process; the session is not opened.
    pub(crate) fn start(config: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, config.to_string()).expect("the config is written");
        Self {
            pipes: Piped::start(ptc(&file).stderr(Stdio::null())),
            next: 0,
            _folder: folder,
        }
    }

    /// A session whose first program has run: nothing happens for the first time any more.
    pub(crate) fn warm(config: &Value) -> Self {
        let mut session = Self::start(config);
        session.pipes.initialize();
        session.assert_prints("print(await mcp__s__echo(n=7))", "{'n': 7}");
        session
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> u32 {
        self.pipes.process.id()
    }

    pub(crate) fn send(&mut self, code: &str) -> u64 {
        self.next += 1;
        let params = json!({"name": "execute_program", "arguments": {"code": code}});
        self.pipes.tell(
            &json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": params}),
        );
        self.next
    }

    /// The next program to end: its request, and what it printed.
    pub(crate) fn receive(&mut self) -> (u64, String) {
        let answer = self.pipes.hear();
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let succeeded = result["isError"] != true && !text.is_empty();
        assert!(succeeded, "a program failed: {answer}");
        // What stands around the output are lines in square brackets.
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('[')).collect();
        let id = answer["id"].as_u64().expect("our own id");
        (id, lines.join("\n"))
    }

    /// Runs a program to its end: what it printed, and how long that took.
    pub(crate) fn run(&mut self, code: &str) -> (String, Duration) {
        let started = Instant::now();
        self.send(code);
        let (_, printed) = self.receive();
        (printed, started.elapsed())
    }

    pub(crate) fn assert_prints(&mut self, code: &str, expected: &str) -> Duration {
        let (printed, elapsed) = self.run(code);
        assert_eq!(printed, expected, "{code}");
        elapsed
    }

    /// The seconds that a program measured itself.
    pub(crate) fn measured(&mut self, code: &str) -> f64 {
        let (printed, _) = self.run(code);
        printed
            .parse()
            .unwrap_or_else(|_| panic!("the program prints its seconds, and not {printed:?}"))
    }
}

/// ptc-mcp with a configuration, and with the caches that this run has warmed.
pub(crate) fn ptc(config: &Path) -> Command {
    let built = env!("CARGO_BIN_EXE_ptc-mcp").into();
    let mut command = Command::new(std::env::var_os("PTC_MCP").unwrap_or(built));
    command
        .arg("--config")
        .arg(config)
        .env("XDG_CACHE_HOME", crate::cache());
    command
}
