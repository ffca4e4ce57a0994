//! The one harness of the integration tests: the real binary over real pipes, configured by a
//! builder, driven as a client would, and looked after when the test ends.
//!
//! Every [`Session`] owns a folder that holds its configuration, its scenario files and, as its
//! `TMPDIR`, every scratch directory. When the session ends, no process that mentions the folder
//! may be left, and no scratch directory.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mock_servers::{Journal, Scenario, StdioMock};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::processes::{self, Process};

/// Nothing waits longer than this; a test that gets here has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const BINARY: &str = env!("CARGO_BIN_EXE_ptc-mcp");

/// The newest protocol version with a handshake.
pub const LEGACY: &str = "2025-11-25";
/// The first one without.
pub const MODERN: &str = "2026-07-28";

/// A server under construction.
pub struct Ptc {
    folder: TempDir,
    servers: Vec<Value>,
    sections: serde_json::Map<String, Value>,
    env: Vec<(String, String)>,
    client: Value,
    capabilities: Value,
    handshake: Option<&'static str>,
    /// Speaks 2026-07-28: no handshake, and `_meta` on every request.
    modern: bool,
    raw_config: Option<String>,
    config_named: bool,
    binary: PathBuf,
}

impl Ptc {
    /// No servers, and `sandbox: none`: what is tested here holds in every mode.
    pub fn new() -> Self {
        let sections = json!({"execution": {"sandbox": "none"}});
        Self {
            folder: tempfile::Builder::new()
                .prefix("ptc-test-")
                .tempdir()
                .unwrap(),
            servers: Vec::new(),
            sections: sections.as_object().unwrap().clone(),
            env: Vec::new(),
            client: json!({"name": "test-client", "version": "1"}),
            capabilities: json!({}),
            handshake: Some(LEGACY),
            modern: false,
            raw_config: None,
            config_named: true,
            binary: BINARY.into(),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sets one key of `execution`.
    pub fn execution(self, key: &str, value: impl Into<Value>) -> Self {
        self.set("execution", key, value)
    }

    pub fn set(mut self, section: &str, key: &str, value: impl Into<Value>) -> Self {
        let section = self.sections.entry(section).or_insert_with(|| json!({}));
        section[key] = value.into();
        self
    }

    /// The configuration file's whole text, instead of what the builder would write.
    pub fn config_text(mut self, text: &str) -> Self {
        self.raw_config = Some(text.to_owned());
        self
    }

    /// Another copy of the binary.
    #[cfg(target_os = "linux")]
    pub fn binary(mut self, path: &Path) -> Self {
        self.binary = path.to_owned();
        self
    }

    /// No configuration file is named, and none is written.
    pub fn without_config(mut self) -> Self {
        self.config_named = false;
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// `clientInfo.name`.
    pub fn client(mut self, name: &str) -> Self {
        self.client["name"] = name.into();
        self
    }

    /// What the client says that it can do.
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The `initialize` handshake of this version.
    pub fn version(mut self, version: &'static str) -> Self {
        self.handshake = Some(version);
        self
    }

    /// A session of the 2026-07-28 era.
    pub fn modern(mut self) -> Self {
        self.handshake = None;
        self.modern = true;
        self
    }

    /// A session of either era, by its version.
    pub fn era(self, version: &'static str) -> Self {
        if version == MODERN {
            self.modern()
        } else {
            self.version(version)
        }
    }

    /// Starts without any handshake: the test speaks every line itself.
    pub fn no_handshake(mut self) -> Self {
        self.handshake = None;
        self
    }

    /// A mock server of our own over stdio.
    pub fn stdio(self, name: &str, scenario: Scenario) -> Self {
        self.stdio_with(name, scenario, json!({}))
    }

    /// The same, with further keys of the server's entry.
    pub fn stdio_with(mut self, name: &str, scenario: Scenario, more: Value) -> Self {
        let mock = StdioMock::new(self.folder.path(), name, &scenario);
        let mut server = json!({"name": name, "command": mock.command(), "args": mock.args()});
        server
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.servers.push(server);
        self
    }

    /// Any server entry, as the file would have it.
    pub fn server(mut self, entry: Value) -> Self {
        self.servers.push(entry);
        self
    }

    pub fn http(self, name: &str, url: &str) -> Self {
        self.server(json!({"name": name, "transport": "http", "url": url}))
    }

    pub fn sse(self, name: &str, url: &str) -> Self {
        self.server(json!({"name": name, "transport": "sse", "url": url}))
    }

    /// Writes the configuration and returns its path.
    pub fn write_config(&self) -> PathBuf {
        let path = self.folder.path().join("config.yaml");
        let mut config = self.sections.clone();
        config.insert("servers".to_owned(), self.servers.clone().into());
        // JSON is YAML.
        let text = match &self.raw_config {
            Some(text) => text.clone(),
            None => serde_json::to_string_pretty(&config).unwrap(),
        };
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The binary, ready to run with this configuration and nothing of the test's environment that
    /// could matter.
    pub fn command(&self) -> Command {
        let scratch = self.folder.path().join("tmp");
        std::fs::create_dir_all(&scratch).unwrap();
        let mut command = Command::new(&self.binary);
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("TMPDIR", &scratch)
            // What one test has found out about the interpreter serves the next.
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        if self.config_named {
            command.env("PTC_MCP_CONFIG", self.write_config());
        }
        // A version manager's shim finds what it stands for through these.
        for name in ["PYENV_ROOT", "PYENV_VERSION"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    pub fn start(self) -> Session {
        self.start_with(|mut stderr, log| {
            std::thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(n @ 1..) = stderr.read(&mut chunk) {
                    log.lock()
                        .unwrap()
                        .push_str(&String::from_utf8_lossy(&chunk[..n]));
                }
            });
        })
    }

    /// The same, with the log's pipe in the test's hands.
    pub fn start_with(self, read: impl FnOnce(ChildStderr, Arc<Mutex<String>>)) -> Session {
        let mut process = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let (sender, lines) = channel();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let log = Arc::new(Mutex::new(String::new()));
        read(process.stderr.take().unwrap(), log.clone());
        let mut session = Session {
            stdin: process.stdin.take(),
            process: Some(process),
            lines,
            log,
            answers: HashMap::new(),
            heard: Vec::new(),
            next_id: 1,
            meta: self.modern.then(|| {
                json!({
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                    "io.modelcontextprotocol/clientInfo": self.client,
                })
            }),
            started: Vec::new(),
            folder: self.folder,
        };
        if self.modern {
            let answer = session.request("server/discover", json!({}));
            let versions = answer["result"]["supportedVersions"].as_array();
            let served = versions.is_some_and(|versions| versions.contains(&MODERN.into()));
            assert!(served, "{answer}");
        }
        if let Some(version) = self.handshake {
            let params = json!({
                "protocolVersion": version,
                "capabilities": self.capabilities,
                "clientInfo": self.client,
            });
            let answer = session.request("initialize", params);
            assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
            session.notify("notifications/initialized", json!({}));
        }
        session
    }

    /// Starts, runs one program, and ends.
    pub fn execute(self, code: &str) -> ToolResult {
        let mut session = self.start();
        let result = session.execute(code);
        session.close();
        result
    }
}

/// A running server and the client's end of its pipes.
pub struct Session {
    process: Option<Child>,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Arc<Mutex<String>>,
    answers: HashMap<u64, Value>,
    /// Everything else that was said: notifications, requests, answers without a known id.
    heard: Vec<Value>,
    next_id: u64,
    /// What a client of the 2026-07-28 era says with every request.
    meta: Option<Value>,
    /// Everything that the server had started by the time when it was asked to end. Some of it
    /// mentions no folder: the watchdog.
    started: Vec<Process>,
    folder: TempDir,
}

impl Session {
    /// Another `clientInfo.name` from here on, as only the 2026-07-28 era knows it.
    pub fn set_client(&mut self, name: &str) {
        let meta = self.meta.as_mut().expect("a session of the 2026-07-28 era");
        meta["io.modelcontextprotocol/clientInfo"]["name"] = name.into();
    }

    /// Whether a request has been answered, going by what was read so far.
    pub fn is_answered(&self, id: u64) -> bool {
        self.answers.contains_key(&id)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("a running server").id()
    }

    /// What the server logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log says this.
    pub fn wait_for_log(&self, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.log().contains(words) {
            assert!(
                Instant::now() < deadline,
                "never {words:?} in:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The processes of running programs.
    pub fn programs(&self) -> Vec<String> {
        mentioning(&self.scratch_directories())
    }

    /// Waits until a child stands ready, as one does soon after the start and after each program.
    /// Behind a wall its scratch directory is none of the host's, and nothing shows it.
    pub fn wait_for_a_ready_child(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.programs().is_empty() {
            assert!(Instant::now() < deadline, "no ready child");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// With `pool: 0`, since ready children are such processes.
    pub fn wait_for_no_program(&self) {
        assert_gone(&self.scratch_directories());
    }

    /// What every scratch directory's path begins with.
    fn scratch_directories(&self) -> PathBuf {
        self.folder.path().join("tmp/ptc-mcp-")
    }

    /// The journal of a stdio mock of this session.
    pub fn journal(&self, server: &str) -> Journal {
        Journal::at(self.folder.path().join(format!("{server}.journal")))
    }

    pub fn send_line(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin
            .write_all(bytes)
            .and_then(|()| stdin.flush())
            .expect("the server reads");
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id, without waiting for the answer.
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if let Some(Value::Object(meta)) = &self.meta {
            let mut all = meta.clone();
            if let Some(own) = params["_meta"].as_object() {
                all.extend(own.clone());
            }
            params["_meta"] = all.into();
        }
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(&request.to_string());
        id
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// The next message from the server, whatever it is.
    pub fn next_message(&mut self) -> Value {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("stdout is JSON-RPC only: {error}: {line}")),
            Err(RecvTimeoutError::Timeout) => panic!("no message; log:\n{}", self.log()),
            Err(RecvTimeoutError::Disconnected) => panic!("the server ended; log:\n{}", self.log()),
        }
    }

    /// The server says nothing for this long.
    pub fn assert_silent_for(&mut self, duration: Duration) {
        if let Ok(line) = self.lines.recv_timeout(duration) {
            panic!("the server said {line}");
        }
    }

    /// Waits for the answer to a request; other messages are kept.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            let message = self.next_message();
            match (message.get("method"), message["id"].as_u64()) {
                (None, Some(answered)) if message.get("id").is_some() => {
                    let twice = self.answers.insert(answered, message);
                    assert!(twice.is_none(), "request {answered} was answered twice");
                }
                _ => self.heard.push(message),
            }
        }
    }

    /// Requests whose answers came, but were not asked for.
    pub fn unclaimed(&self) -> impl Iterator<Item = u64> {
        self.answers.keys().copied()
    }

    /// Messages that were no answers, so far.
    pub fn heard(&self) -> &[Value] {
        &self.heard
    }

    pub fn send_tool_call(&mut self, name: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({"name": name, "arguments": arguments}))
    }

    pub fn call_tool(&mut self, name: &str, arguments: Value) -> ToolResult {
        let id = self.send_tool_call(name, arguments);
        ToolResult::of(self.answer(id))
    }

    pub fn execute(&mut self, code: &str) -> ToolResult {
        let id = self.send_program(code);
        ToolResult::of(self.answer(id))
    }

    /// Sends a program and returns the request's id. A text that begins with a line break is a block
    /// of the test's source: its common indentation goes.
    pub fn send_program(&mut self, code: &str) -> u64 {
        self.send_tool_call("execute_program", json!({"code": dedent(code)}))
    }

    /// The names that `list_callable_tools` gives.
    pub fn callable(&mut self) -> Vec<String> {
        let listed = self.call_tool("list_callable_tools", json!({}));
        serde_json::from_str(&listed.texts[0]).expect("the first block is a JSON array of names")
    }

    /// Asks again until the callable tools satisfy the condition.
    pub fn wait_for_tools(
        &mut self,
        what: &str,
        wanted: impl Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let names = self.callable();
            if wanted(&names) {
                return names;
            }
            assert!(
                Instant::now() < deadline,
                "never {what}: {names:?}\n{}",
                self.log()
            );
            std::thread::yield_now();
        }
    }

    /// Ends the server as a client does, by closing its stdin, and checks that nothing is left.
    pub fn close(mut self) -> ExitStatus {
        let status = self.end();
        assert!(status.success(), "exit {status}; log:\n{}", self.log());
        status
    }

    /// The same, and everything that was said and that nobody has asked for.
    pub fn finish(mut self) -> Vec<Value> {
        self.close_stdin();
        self.said_until_the_end()
    }

    /// The same for a server that was asked to end already.
    pub fn said_until_the_end(&mut self) -> Vec<Value> {
        let status = self.exit();
        self.assert_nothing_left();
        assert!(status.success(), "exit {status}; log:\n{}", self.log());
        let mut said: Vec<Value> = self.answers.drain().map(|(_, answer)| answer).collect();
        said.append(&mut self.heard);
        // The pipe is closed: whatever is still to come ends.
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            said.push(serde_json::from_str(&line).expect("stdout is JSON-RPC only"));
        }
        said
    }

    /// Closes stdin, as a client does that wants the server to end.
    pub fn close_stdin(&mut self) {
        self.started = processes::descendants(self.pid());
        drop(self.stdin.take());
    }

    /// Sends a signal to the server.
    pub fn signal(&mut self, signal: &str) {
        self.started = processes::descendants(self.pid());
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &self.pid().to_string()])
            .status();
        assert!(status.expect("kill runs").success());
    }

    /// Forgets a server that was killed and could not clean up after itself.
    pub fn abandoned(mut self) {
        let status = self.exit();
        assert!(!status.success());
        assert_gone(self.folder.path());
        assert_ended(&self.started);
    }

    fn end(&mut self) -> ExitStatus {
        self.close_stdin();
        let status = self.exit();
        self.assert_nothing_left();
        status
    }

    fn exit(&mut self) -> ExitStatus {
        let mut process = self.process.take().expect("a running server");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = process.try_wait().expect("our own child") {
                return status;
            }
            if Instant::now() > deadline {
                let _ = process.kill();
                panic!("the server does not end; log:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn assert_nothing_left(&self) {
        assert_gone(self.folder.path());
        assert_ended(&self.started);
        let scratch = self.folder.path().join("tmp");
        let left: Vec<_> = std::fs::read_dir(scratch)
            .unwrap()
            .flatten()
            .map(|e| e.path())
            .collect();
        assert!(left.is_empty(), "left in TMPDIR: {left:?}");
    }
}

impl Drop for Session {
    #[expect(clippy::print_stdout, reason = "for the one who reads the failure")]
    fn drop(&mut self) {
        if self.process.is_none() {
            return;
        }
        // A failing test must not leave its processes to the others.
        if std::thread::panicking() {
            let mut process = self.process.take().unwrap();
            let _ = process.kill();
            let _ = process.wait();
            // The test's captured output: a failure without the log is a riddle.
            let log = self.log.lock().map(|log| log.clone()).unwrap_or_default();
            println!("log of the server:\n{log}");
            return;
        }
        self.end();
    }
}

/// A block of Python in a test's source, without the block's own indentation.
fn dedent(code: &str) -> String {
    let Some(block) = code.strip_prefix('\n') else {
        return code.to_owned();
    };
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let written = block.lines().filter(|line| !line.trim().is_empty());
    let margin = written.map(indentation).min().unwrap_or(0);
    let lines = block.lines().map(|line| line.get(margin..).unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// Not by this process: a child that another test starts meanwhile would hold the copy open for
/// writing, and what is open for writing cannot be executed.
pub fn copy_executable(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status().unwrap();
    assert!(copied.success(), "{} to {}", from.display(), to.display());
}

/// No process mentions this folder, in its arguments or its environment. What was killed may take a
/// moment to be gone.
pub fn assert_gone(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let left = mentioning(folder);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "processes left: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// None of these processes is alive any more, or will be for long.
pub fn assert_ended(processes: &[Process]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while let Some(alive) = processes.iter().find(|process| process.is_alive()) {
        let command = alive.command();
        assert!(Instant::now() < deadline, "left: {alive:?} {command}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes that mention a folder, this one excepted.
pub fn mentioning(folder: &Path) -> Vec<String> {
    let needle = folder.to_str().unwrap().as_bytes().to_vec();
    let contains = |file: PathBuf| {
        std::fs::read(file)
            .is_ok_and(|bytes| bytes.windows(needle.len()).any(|window| window == needle))
    };
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
            pid.is_some_and(|pid| pid != std::process::id())
        })
        .filter(|entry| {
            contains(entry.path().join("cmdline")) || contains(entry.path().join("environ"))
        })
        .filter_map(|entry| {
            // A zombie has no command line and waits only to be reaped.
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let short: String = line.chars().take(200).collect();
            Some(format!("{} {short}", entry.file_name().display()))
        })
        .collect()
}

/// A `tools/call` answer, taken apart.
#[derive(Debug)]
pub struct ToolResult {
    pub texts: Vec<String>,
    pub structured: Option<Value>,
    pub is_error: bool,
    pub meta: Value,
    pub raw: Value,
}

impl ToolResult {
    pub fn of(answer: Value) -> Self {
        let result = answer
            .get("result")
            .unwrap_or_else(|| panic!("a result: {answer}"));
        let texts = result["content"]
            .as_array()
            .expect("content is a list")
            .iter()
            .map(|block| block["text"].as_str().expect("a text block").to_owned())
            .collect();
        Self {
            texts,
            structured: result.get("structuredContent").cloned(),
            is_error: result["isError"].as_bool().unwrap_or(false),
            meta: result["_meta"].clone(),
            raw: answer,
        }
    }

    pub fn text(&self) -> &str {
        &self.texts[0]
    }

    /// The text with the seconds of its trace set to 0.0.
    pub fn timeless(&self) -> String {
        let lines = self.text().lines().map(|line| {
            let trace = line
                .strip_prefix("[tool calls: ")
                .and_then(|rest| rest.split_once("; "));
            match trace {
                Some((counts, _)) => format!("[tool calls: {counts}; 0.0s]"),
                None => line.to_owned(),
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What a successful program printed, without status line and trace.
    pub fn output(&self) -> String {
        assert!(!self.is_error, "{}", self.text());
        self.body().trim_end_matches('\n').to_owned()
    }

    fn body(&self) -> String {
        let lines: Vec<&str> = self.text().lines().skip(1).collect();
        let end = lines
            .iter()
            .position(|line| line.starts_with("[tool calls: ") || *line == "--- result ---")
            .unwrap_or(lines.len());
        lines[..end].join("\n")
    }

    /// The error of a failed program, without status line, ledger, output and trace.
    pub fn error(&self) -> String {
        assert!(self.is_error, "{}", self.text());
        let text = self
            .text()
            .strip_prefix("[Script execution failed]\n")
            .expect("S5");
        let end = [
            "\n(execution.timeout_seconds is the limit",
            "\n\nTool calls before the error",
            "\n\n--- output before the error",
            "\n[tool calls: ",
        ]
        .iter()
        .filter_map(|mark| text.find(mark))
        .min()
        .unwrap_or(text.len());
        text[..end].to_owned()
    }

    /// The value that the program emitted.
    pub fn emitted(&self) -> Value {
        let (_, rest) = self
            .text()
            .split_once("--- result ---\n")
            .expect("an emitted value");
        serde_json::from_str(rest.lines().next().unwrap()).expect("compact JSON on one line")
    }

    /// `structuredContent`, which clients of the test's name get.
    pub fn structured(&self) -> &Value {
        self.structured.as_ref().expect("structuredContent")
    }

    /// Every call record, from `_meta`.
    pub fn calls(&self) -> Vec<Value> {
        self.meta["ptc-mcp/tool_calls"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }
}
