//! The tool server of the corpus: a minimal MCP server over stdio that passes every call on to the
//! desk in the runner's own process, which keeps the journal and answers.
//!
//! `look` is the tool by which a program and the host meet: while the call waits, the program is
//! alive and does nothing, and the host looks at it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::processes::{self, Seen};

/// The first argument by which the runner's own binary becomes this server.
pub const ARGUMENT: &str = "__tools";

/// `hidden` is blocked by the configuration.
const TOOLS: [&str; 4] = ["look", "echo", "slow", "hidden"];

/// One call that reached the tool server.
#[derive(Debug, Clone)]
pub struct Call {
    pub tool: String,
    pub from: Instant,
    pub to: Instant,
}

/// What was seen of one program.
#[derive(Debug, Clone, Default)]
pub struct Record {
    pub calls: Vec<Call>,
    /// One entry for every `look`: all processes that hold the marker.
    pub looks: Vec<Vec<Seen>>,
}

/// The journal of all programs, by marker.
#[derive(Clone)]
pub struct Desk {
    records: Arc<Mutex<HashMap<String, Record>>>,
    pub socket: PathBuf,
}

impl Desk {
    pub fn open(socket: PathBuf) -> Self {
        let listener = UnixListener::bind(&socket).expect("a socket for the desk");
        let desk = Self {
            records: Arc::default(),
            socket,
        };
        let own = desk.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let desk = own.clone();
                std::thread::spawn(move || desk.serve(stream));
            }
        });
        desk
    }

    fn serve(&self, stream: UnixStream) {
        let mut line = String::new();
        if BufReader::new(&stream).read_line(&mut line).is_err() {
            return;
        }
        let Ok(call) = serde_json::from_str::<Value>(&line) else {
            return;
        };
        let from = Instant::now();
        let tool = call["name"].as_str().unwrap_or_default().to_owned();
        let marker = call["arguments"]["token"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let seen = (tool == "look" && !marker.is_empty()).then(|| processes::holding(&marker));
        if tool == "slow" {
            // Not waited for by anybody: it only makes calls overlap.
            std::thread::sleep(Duration::from_millis(50));
        }
        {
            let mut records = self.records.lock().unwrap();
            let record = records.entry(marker).or_default();
            record.looks.extend(seen);
            record.calls.push(Call {
                tool,
                from,
                to: Instant::now(),
            });
        }
        let _ = (&stream).write_all(b"seen\n");
    }

    pub fn record(&self, marker: &str) -> Record {
        self.records
            .lock()
            .unwrap()
            .get(marker)
            .cloned()
            .unwrap_or_default()
    }
}

/// The life of the server process.
pub fn main(socket: &Path) {
    let stdout = Arc::new(Mutex::new(std::io::stdout()));
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let Some(id) = message.get("id").cloned() else {
            continue;
        };
        let (stdout, socket) = (stdout.clone(), socket.to_owned());
        std::thread::spawn(move || {
            let result = answer(&message, &socket);
            let answer = match result {
                Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                None => {
                    let error = json!({"code": -32601, "message": "no such method"});
                    json!({"jsonrpc": "2.0", "id": id, "error": error})
                }
            };
            let _ = stdout
                .lock()
                .unwrap()
                .write_all(format!("{answer}\n").as_bytes());
        });
    }
}

fn answer(message: &Value, socket: &Path) -> Option<Value> {
    let params = &message["params"];
    Some(match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "desk", "version": "1"},
        }),
        "ping" => json!({}),
        "tools/list" => {
            let tools = TOOLS.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
            json!({"tools": tools})
        }
        "tools/call" => {
            let call = json!({"name": params["name"], "arguments": params["arguments"]});
            let mut stream = UnixStream::connect(socket).expect("the desk is open");
            stream
                .write_all(format!("{call}\n").as_bytes())
                .expect("the desk listens");
            let mut reply = String::new();
            let _ = BufReader::new(stream).read_line(&mut reply);
            json!({"content": [{"type": "text", "text": reply.trim()}]})
        }
        _ => return None,
    })
}
