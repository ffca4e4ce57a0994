//! Raw clients: one on pipes, one on sockets. Both fail rather than wait for ever.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use mock_servers::{Journal, Scenario};
use serde_json::{Value, json};

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A directory that is gone when dropped.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("mock-servers-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn initialize(version: &str) -> String {
    let client = json!({ "name": "raw", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    request(0, "initialize", &params)
}

pub(crate) fn request(id: u32, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub(crate) fn call(id: u32, tool: &str, arguments: &Value) -> String {
    request(
        id,
        "tools/call",
        &json!({ "name": tool, "arguments": arguments }),
    )
}

pub(crate) fn cancel(id: u32) -> String {
    let params = json!({ "requestId": id });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string()
}

/// The `_meta` of a stateless request.
pub(crate) fn stateless(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

/// A server process and the pipes to it.
pub(crate) struct Pipes {
    directory: Directory,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
}

impl Pipes {
    pub(crate) fn open(scenario: &Scenario) -> Self {
        let directory = Directory::new();
        std::fs::write(directory.0.join("scenario.json"), scenario.to_json()).expect("written");
        Self::start(directory)
    }

    fn start(directory: Directory) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mock-server"))
            .arg("--scenario")
            .arg(directory.0.join("scenario.json"))
            .arg("--journal")
            .arg(directory.0.join("journal"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let stdin = child.stdin.take();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match out.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) if sender.send(line).is_err() => return,
                    Ok(_) => {}
                }
            }
        });
        Self {
            directory,
            child,
            stdin,
            lines,
        }
    }

    /// The same server again, after its end.
    pub(crate) fn restart(mut self) -> Self {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let directory = std::mem::replace(&mut self.directory, Directory::new());
        Self::start(directory)
    }

    pub(crate) fn handshake(scenario: &Scenario) -> Self {
        let mut pipes = Self::open(scenario);
        pipes.shake_hands();
        pipes
    }

    pub(crate) fn shake_hands(&mut self) {
        self.send(&initialize("2025-11-25"));
        assert_eq!(self.message()["id"], 0);
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::at(self.directory.0.join("journal"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        // A server that is gone shows in what it answers.
        let _ = stdin.write_all(format!("{line}\n").as_bytes());
    }

    /// Sends, and says whether somebody still holds the other end.
    pub(crate) fn accepts(&mut self, line: &str) -> bool {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{line}\n").as_bytes()).is_ok()
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The next line with its end, or `None` when the output has ended.
    pub(crate) fn line(&self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line within {DEADLINE:?}"),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.line().expect("a line")).into_owned()
    }

    pub(crate) fn message(&self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) fn call(&mut self, id: u32, tool: &str, arguments: &Value) -> Value {
        self.send(&call(id, tool, arguments));
        self.message()
    }

    pub(crate) fn exit(mut self) -> ExitStatus {
        self.wait_for_exit()
    }

    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status;
            }
            assert!(Instant::now() < end, "the server did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("the child can be waited for")
            .is_none()
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One HTTP exchange, as far as it came.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The body ended where it had announced to end.
    pub(crate) complete: bool,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
    }

    /// The body as JSON, or the messages of its events.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if self.header("content-type") == Some("application/json") {
            return vec![serde_json::from_slice(&self.body).expect("JSON")];
        }
        self.text()
            .split("\n\n")
            .filter_map(|event| {
                let data: Vec<&str> = event
                    .lines()
                    .filter_map(|line| line.strip_prefix("data: "))
                    .collect();
                serde_json::from_str(&data.join("\n")).ok()
            })
            .collect()
    }
}

/// A request on a connection of its own, up to its head.
pub(crate) struct Exchange {
    reader: BufReader<TcpStream>,
}

impl Exchange {
    pub(crate) fn open(url: &str, method: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let rest = url.strip_prefix("http://").expect("an http URL");
        let (host, path) = rest.split_once('/').expect("a path");
        let mut stream = TcpStream::connect(host).expect("the server listens");
        stream
            .set_read_timeout(Some(DEADLINE))
            .expect("a timeout can be set");
        let mut head = format!("{method} /{path} HTTP/1.1\r\nHost: {host}\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream
            .write_all(head.as_bytes())
            .expect("the request can be sent");
        Self {
            reader: BufReader::new(stream),
        }
    }

    pub(crate) fn head(&mut self) -> std::io::Result<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(head)
    }

    /// The next chunk's text; empty for the last.
    pub(crate) fn chunk(&mut self) -> std::io::Result<String> {
        let mut size = String::new();
        self.reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16)
            .map_err(|_| std::io::Error::from(std::io::ErrorKind::UnexpectedEof))?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok(String::from_utf8_lossy(&chunk).into_owned())
    }

    pub(crate) fn response(mut self) -> std::io::Result<Response> {
        let head = self.head()?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|s| s.parse().ok())
            .expect("a status");
        let mut response = Response {
            status,
            head,
            body: Vec::new(),
            complete: true,
        };
        let length = response
            .header("content-length")
            .and_then(|length| length.parse().ok());
        if let Some(length) = length {
            response.body = vec![0; length];
            let mut read = 0;
            while read < length {
                match self.reader.read(&mut response.body[read..])? {
                    0 => break,
                    more => read += more,
                }
            }
            response.body.truncate(read);
            response.complete = read == length;
            return Ok(response);
        }
        loop {
            match self.chunk() {
                Ok(chunk) if chunk.is_empty() => return Ok(response),
                Ok(chunk) => response.body.extend(chunk.into_bytes()),
                Err(_) => {
                    response.complete = false;
                    return Ok(response);
                }
            }
        }
    }
}

/// A client of streamable HTTP.
pub(crate) struct Http {
    pub(crate) url: String,
    pub(crate) session: Option<String>,
}

impl Http {
    pub(crate) fn handshake(url: &str) -> Self {
        let response = post(url, &[], &initialize("2025-11-25"));
        assert_eq!(response.status, 200, "{response:?}");
        let session = response.header("mcp-session-id").map(str::to_owned);
        Self {
            url: url.to_owned(),
            session,
        }
    }

    pub(crate) fn open(&self, body: &str) -> Exchange {
        let headers: Vec<(&str, &str)> = self
            .session
            .iter()
            .map(|session| ("Mcp-Session-Id", session.as_str()))
            .collect();
        Exchange::open(&self.url, "POST", &headers, body)
    }

    pub(crate) fn post(&self, body: &str) -> Response {
        self.open(body).response().expect("a response")
    }

    pub(crate) fn get(&self, headers: &[(&str, &str)]) -> Exchange {
        let mut headers = headers.to_vec();
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id", session));
        }
        Exchange::open(&self.url, "GET", &headers, "")
    }
}

pub(crate) fn post(url: &str, headers: &[(&str, &str)], body: &str) -> Response {
    Exchange::open(url, "POST", headers, body)
        .response()
        .expect("a response")
}
