//! One `ptc-mcp` process and the client's end of its pipes, for many programs at once.
//!
//! What the programs do, and what that means, is not known here.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longer than any run may take; who waits this long has met a fault of the server.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a program came to, as the client learns it.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Every text of the result.
    pub text: String,
    /// The result as it came, with everything in it.
    pub whole: String,
    pub is_error: bool,
    pub elapsed: Duration,
}

impl Answer {
    /// Why no program runs in this mode, if that is what the answer says.
    pub fn refusal(&self) -> Option<&str> {
        let error = self.text.strip_prefix("[Script execution failed]\n")?;
        error.starts_with("SandboxError: ").then_some(error)
    }
}

pub struct Session {
    process: Mutex<Child>,
    stdin: Mutex<Option<ChildStdin>>,
    waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>>,
    log: Arc<Mutex<String>>,
    next_id: AtomicU64,
    pub pid: u32,
}

impl Session {
    pub fn start(mut command: Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{:?} does not start: {error}", command.get_program()));
        let waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>> = Arc::default();
        let (lines, heard) = (
            BufReader::new(process.stdout.take().unwrap()),
            waiting.clone(),
        );
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("stdout is JSON-RPC only: {error}: {line}"));
                let waiter = message["id"]
                    .as_u64()
                    .and_then(|id| heard.lock().unwrap().remove(&id));
                if let Some(waiter) = waiter {
                    let _ = waiter.send(message);
                }
            }
            // Whoever still waits learns that nothing will come.
            heard.lock().unwrap().clear();
        });
        let log: Arc<Mutex<String>> = Arc::default();
        let (mut stderr, kept) = (process.stderr.take().unwrap(), log.clone());
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut chunk) {
                kept.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&chunk[..n]));
            }
        });
        let session = Self {
            pid: process.id(),
            stdin: Mutex::new(process.stdin.take()),
            process: Mutex::new(process),
            waiting,
            log,
            next_id: AtomicU64::new(1),
        };
        let client = json!({"name": "escape-corpus", "version": "1"});
        session
            .request(
                "initialize",
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
            )
            .unwrap_or_else(|error| panic!("no handshake: {error}"));
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    fn send(&self, message: &Value) {
        let mut stdin = self.stdin.lock().unwrap();
        // A server that is gone shows in the answer that does not come.
        let _ = stdin
            .as_mut()
            .map(|stdin| stdin.write_all(format!("{message}\n").as_bytes()));
    }

    fn request(&self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel();
        self.waiting.lock().unwrap().insert(id, sender);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver.recv_timeout(PATIENCE).map_err(|error| {
            format!(
                "the server gave no answer ({error}); its log: {}",
                self.log_end()
            )
        })
    }

    pub fn execute(&self, code: &str) -> Result<Answer, String> {
        let started = Instant::now();
        let params = json!({"name": "execute_program", "arguments": {"code": code}});
        let answer = self.request("tools/call", params)?;
        let elapsed = started.elapsed();
        let result = answer
            .get("result")
            .ok_or_else(|| format!("no result: {answer}"))?;
        let texts = result["content"].as_array().into_iter().flatten();
        let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
        Ok(Answer {
            text: texts.join("\n"),
            whole: result.to_string(),
            is_error: result["isError"].as_bool().unwrap_or(false),
            elapsed,
        })
    }

    fn log_end(&self) -> String {
        let log = self.log.lock().unwrap();
        log.chars()
            .rev()
            .take(2000)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect()
    }

    /// Ends the server as a client does, by closing its stdin.
    pub fn close(&self) -> Result<(), String> {
        drop(self.stdin.lock().unwrap().take());
        let mut process = self.process.lock().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let status: ExitStatus = loop {
            if let Some(status) = process.try_wait().expect("our own child") {
                break status;
            }
            if Instant::now() > deadline {
                let _ = process.kill();
                let _ = process.wait();
                return Err("the server did not end within 5 s of its stdin's end".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        if status.success() {
            Ok(())
        } else {
            Err(format!(
                "the server ended with {status}: {}",
                self.log_end()
            ))
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut process = self
            .process
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
    }
}
