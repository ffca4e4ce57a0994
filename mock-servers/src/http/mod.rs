//! A scenario over HTTP: the listener, its connections, and what both HTTP transports share.
//!
//! HTTP/1.1 by hand, as much of it as MCP clients use.

mod legacy;
mod request;
mod response;
mod streamable;
mod tls;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::fault::{Crash, Fault, TlsAnswer};
use crate::journal::{Entry, Event, HttpEntry};
use crate::perform::end_process;
use crate::play::{Player, Step};
use crate::scenario::Transport;

use request::Request;
use response::{Connection, Piece};

/// A listening server.
pub(crate) struct Server {
    player: Arc<Player>,
    transport: Transport,
    port: u16,
    /// A thread of somebody's test, whose process must survive a crash.
    in_process: bool,
    /// What is answered to TLS, where it should be spoken and is not.
    tls: Option<TlsAnswer>,
    /// The accepting thread holds the listener.
    listening: AtomicBool,
    memory: Mutex<Memory>,
    next: AtomicU64,
}

#[derive(Default)]
struct Memory {
    /// Sessions of streamable HTTP.
    sessions: Vec<String>,
    /// Event streams of HTTP+SSE by session.
    streams: HashMap<String, Sender<Piece>>,
    /// Streams that were cut and can be resumed: the frames, and whether they are all there.
    cut: HashMap<String, Arc<Mutex<CutOff>>>,
    connections: HashMap<u64, TcpStream>,
}

/// The rest of an event stream that was cut.
#[derive(Default)]
struct CutOff {
    frames: Vec<Vec<u8>>,
    complete: bool,
}

impl Server {
    /// Binds to loopback only.
    pub(crate) fn bind(port: u16) -> io::Result<TcpListener> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port))
    }

    /// Serves on a thread of its own, which ends with [`Server::stop`].
    pub(crate) fn start(
        listener: TcpListener,
        player: Player,
        transport: Transport,
        in_process: bool,
    ) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let tls = player
            .scenario()
            .start_faults(player.recorder().start())
            .find_map(|fault| match fault {
                Fault::TlsAbsent(absent) => Some(absent.answer),
                _ => None,
            });
        let server = Arc::new(Self {
            player: Arc::new(player),
            transport,
            port: listener.local_addr()?.port(),
            in_process,
            tls,
            listening: AtomicBool::new(false),
            memory: Mutex::default(),
            next: AtomicU64::new(1),
        });
        let mut deaf = false;
        for step in server.player.at_start() {
            match step {
                Step::Crash(crash) => server.crash(&crash),
                Step::Hang { .. } => deaf = true,
                Step::Stderr(bytes) => io::Write::write_all(&mut io::stderr(), &bytes)?,
                _ => {}
            }
        }
        let accepting = Arc::clone(&server);
        server.listening.store(true, Ordering::SeqCst);
        let thread = std::thread::spawn(move || {
            accepting.accept(&listener, deaf);
            // A process that is just being forked may hold a copy: closing alone would not end it.
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
            drop(listener);
            accepting.listening.store(false, Ordering::SeqCst);
        });
        Ok((server, thread))
    }

    pub(crate) fn url(&self) -> String {
        let path = match self.transport {
            Transport::Sse => "/sse",
            _ => "/mcp",
        };
        let scheme = self.player.scenario().scheme();
        format!("{scheme}://127.0.0.1:{}{path}", self.port)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener, deaf: bool) {
        let mut unheard = Vec::new();
        for stream in listener.incoming() {
            if self.player.is_stopped() {
                return;
            }
            let Ok(stream) = stream else { continue };
            if deaf {
                unheard.push(stream);
                continue;
            }
            let server = Arc::clone(self);
            std::thread::spawn(move || server.converse(stream));
        }
    }

    fn converse(self: &Arc<Self>, stream: TcpStream) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let _ = stream.set_nodelay(true);
        let Ok(copy) = stream.try_clone() else { return };
        self.memory().connections.insert(number, copy);
        if self.player.is_stopped() {
            // What was there before has been ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        let opens_with_tls = self.tls.is_some() && tls::opens_with_it(&stream);
        let mut connection = Connection::new(stream);
        if let Some(answer) = self.tls.filter(|_| opens_with_tls) {
            let recorder = self.player.recorder();
            recorder.note(Event::Unreadable, "the opening of TLS");
            // Whether the client still hears it is its own affair.
            let _ = tls::disappoint(answer, &mut connection, &|| self.player.is_stopped());
            connection.spend();
        }
        while !connection.is_spent()
            && let Ok(Some(request)) = Request::read(&mut connection)
        {
            let done = match self.transport {
                Transport::Sse => self.legacy(&request, &mut connection),
                _ => self.streamable(&request, &mut connection),
            };
            if done.is_err() || connection.is_spent() || self.player.is_stopped() {
                break;
            }
        }
        // The copy is the last descriptor: the client sees the end when it goes.
        self.memory().connections.remove(&number);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self, what: &str) -> String {
        let start = self.player.recorder().start();
        format!(
            "{what}-{start}-{}",
            self.next.fetch_add(1, Ordering::Relaxed)
        )
    }

    /// Ends everything, abruptly: no answer is completed.
    pub(crate) fn stop(&self) {
        self.player.stop();
        // The listener goes first: a client that sees its connection end cannot come back to it.
        // The accepting thread looks up only when somebody comes.
        if self.listening.load(Ordering::SeqCst) {
            let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        }
        while self.listening.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        for (_, connection) in self.memory().connections.drain() {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    fn crash(&self, crash: &Crash) {
        if !self.in_process {
            end_process(crash);
        }
        self.stop();
    }

    /// Notes a request that carries no message, or one that is turned away.
    fn note(&self, request: &Request, method: Option<String>, note: &str) {
        let recorder = self.player.recorder();
        recorder.write(Entry {
            http: Some(entry(request)),
            method,
            note: (!note.is_empty()).then(|| note.to_owned()),
            ..recorder.entry(Event::Http)
        });
    }

    /// Turns away a request that lacks a required header.
    fn refuse_unauthorized(
        &self,
        request: &Request,
        connection: &mut Connection,
    ) -> io::Result<bool> {
        let required = &self.player.scenario().http.require_headers;
        let missing = required
            .iter()
            .find(|(name, value)| request.header(name) != Some(value.as_str()));
        let Some((name, _)) = missing else {
            return Ok(false);
        };
        self.note(
            request,
            None,
            &format!("without the required header {name}"),
        );
        let challenge = BTreeMap::from([("WWW-Authenticate".to_owned(), "Bearer".to_owned())]);
        connection.respond(401, &challenge, "text/plain", b"unauthorized")?;
        Ok(true)
    }
}

fn entry(request: &Request) -> HttpEntry {
    HttpEntry {
        method: request.method.clone(),
        path: request.path.clone(),
        headers: request.headers.iter().cloned().collect(),
    }
}
