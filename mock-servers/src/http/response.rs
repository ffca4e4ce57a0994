//! A connection, and the two shapes of an answer on it: one body, or a stream of events.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::fault::Crash;
use crate::perform::Wire;

use super::{CutOff, Server};

/// One TCP connection.
pub(super) struct Connection {
    stream: TcpStream,
    /// Read, but not yet used.
    pending: Vec<u8>,
    spent: bool,
    /// Spread the next head over this time.
    slow_head: Option<Duration>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            pending: Vec::new(),
            spent: false,
            slow_head: None,
        }
    }

    /// Everything up to and with the mark; `None` when the stream ends before its first byte.
    pub(super) fn read_past(&mut self, mark: &[u8]) -> io::Result<Option<Vec<u8>>> {
        loop {
            let found = self
                .pending
                .windows(mark.len())
                .position(|window| window == mark);
            if let Some(at) = found {
                let rest = self.pending.split_off(at + mark.len());
                return Ok(Some(std::mem::replace(&mut self.pending, rest)));
            }
            if !self.fill()? {
                return match self.pending.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    pub(super) fn read_exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.pending.len() < length {
            if !self.fill()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.pending.split_off(length);
        Ok(std::mem::replace(&mut self.pending, rest))
    }

    fn fill(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 1 << 14];
        let read = self.stream.read(&mut buffer)?;
        self.pending.extend_from_slice(&buffer[..read]);
        Ok(read > 0)
    }

    /// No further request can be answered on it.
    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }

    pub(super) fn spend(&mut self) {
        self.spent = true;
    }

    /// Ends the connection in the middle of whatever was being said.
    pub(super) fn end(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        self.spent = true;
    }

    pub(super) fn slow_head(&mut self, time: Duration) {
        self.slow_head = Some(time);
    }

    /// The client gets a reset instead of an end.
    pub(super) fn reset(&mut self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
        self.spent = true;
    }

    /// A whole response.
    pub(super) fn respond(
        &mut self,
        status: u16,
        headers: &BTreeMap<String, String>,
        content_type: &str,
        body: &[u8],
    ) -> io::Result<()> {
        self.head(status, headers, content_type, Some(body.len()))?;
        self.stream.write_all(body)
    }

    pub(super) fn empty(&mut self, status: u16) -> io::Result<()> {
        self.respond(status, &BTreeMap::new(), "", b"")
    }

    /// The head; a body without a length is chunked.
    pub(super) fn head(
        &mut self,
        status: u16,
        headers: &BTreeMap<String, String>,
        content_type: &str,
        length: Option<usize>,
    ) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        if !content_type.is_empty() {
            head += &format!("Content-Type: {content_type}\r\n");
        }
        match length {
            Some(length) => head += &format!("Content-Length: {length}\r\n"),
            None => head += "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n",
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let Some(time) = self.slow_head.take() else {
            return self.stream.write_all(head.as_bytes());
        };
        let pieces: Vec<&[u8]> = head.as_bytes().chunks(8).collect();
        let pause = time / u32::try_from(pieces.len()).unwrap_or(1);
        for piece in pieces {
            std::thread::sleep(pause);
            self.stream.write_all(piece)?;
        }
        Ok(())
    }

    pub(super) fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(super) fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            // An empty chunk would be the last.
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk)
    }

    pub(super) fn last_chunk(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    /// Says nothing more, for as long as the client waits.
    pub(super) fn wait_for_end(&mut self, stopped: &dyn Fn() -> bool) {
        while !stopped() && !self.gone() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.spent = true;
    }

    /// Whether the client has closed its end.
    pub(super) fn gone(&mut self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let gone = match self.stream.peek(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
        self.stream.set_nonblocking(false).is_err() || gone
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

/// A message as an event of an event stream.
pub(super) fn event(id: Option<&str>, name: Option<&str>, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + 64);
    if let Some(id) = id {
        bytes.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    if let Some(name) = name {
        bytes.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    for line in message.split(|byte| *byte == b'\n') {
        bytes.extend_from_slice(b"data: ");
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    bytes.push(b'\n');
    bytes
}

/// The answer is one body.
pub(super) struct BodyWire<'a> {
    pub(super) server: &'a Server,
    pub(super) connection: &'a mut Connection,
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) content_type: String,
    /// Chunked, byte by byte as it arises; otherwise collected under a length.
    pub(super) streams: bool,
    pub(super) cut: bool,
    pub(super) body: Vec<u8>,
    pub(super) begun: bool,
}

impl BodyWire<'_> {
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.server.player.is_stopped() {
            return Ok(());
        }
        if self.streams {
            if !self.begun {
                self.write(b"")?;
            }
            return self.connection.last_chunk();
        }
        let length = self.body.len();
        self.connection
            .head(self.status, &self.headers, &self.content_type, Some(length))?;
        let end = if self.cut { length / 2 } else { length };
        if self.cut {
            self.connection.spend();
        }
        self.connection.write_bytes(&self.body[..end])
    }
}

impl Wire for BodyWire<'_> {
    fn frame(&self, message: &[u8]) -> Vec<u8> {
        message.to_vec()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.streams {
            self.body.extend_from_slice(bytes);
            return Ok(());
        }
        if !self.begun {
            self.begun = true;
            self.connection
                .head(self.status, &self.headers, &self.content_type, None)?;
        }
        if self.cut {
            // The chunk announces all of it.
            let size = format!("{:x}\r\n", bytes.len()).into_bytes();
            self.connection
                .write_bytes(&[&size, &bytes[..bytes.len() / 2]].concat())?;
            self.connection.end();
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.connection.chunk(bytes)
    }

    fn gone(&mut self) -> bool {
        self.connection.gone()
    }

    fn crash(&mut self, crash: &Crash) {
        // What was answered before the crash has to be on its way.
        if !self.streams && !self.body.is_empty() {
            let body = std::mem::take(&mut self.body);
            let _ = self
                .connection
                .respond(self.status, &self.headers, &self.content_type, &body);
        }
        self.server.crash(crash);
    }
}

/// The answer is a stream of events.
pub(super) struct StreamWire<'a> {
    pub(super) server: &'a Server,
    /// None once the stream is cut: what follows is kept for whoever resumes it.
    pub(super) connection: Option<&'a mut Connection>,
    pub(super) kept: Option<Arc<Mutex<CutOff>>>,
    /// The stream's name within event ids, where it has them.
    pub(super) ids: Option<String>,
    pub(super) cut_half: bool,
}

impl StreamWire<'_> {
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if let Some(kept) = &self.kept {
            kept.lock().unwrap_or_else(PoisonError::into_inner).complete = true;
        }
        match &mut self.connection {
            Some(connection) if !self.server.player.is_stopped() => connection.last_chunk(),
            _ => Ok(()),
        }
    }
}

impl Wire for StreamWire<'_> {
    fn frame(&self, message: &[u8]) -> Vec<u8> {
        let id = self.ids.as_ref().map(|stream| {
            let number = self.kept.as_ref().map_or(0, |kept| {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .frames
                    .len()
            });
            format!("{stream}.{}", number + 1)
        });
        event(id.as_deref(), None, message)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(kept) = &self.kept {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .frames
                .push(bytes.to_vec());
        }
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        if self.cut_half {
            connection.chunk(&bytes[..bytes.len() / 2])?;
            connection.spend();
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        connection.chunk(bytes)
    }

    fn gone(&mut self) -> bool {
        self.connection
            .as_mut()
            .is_some_and(|connection| connection.gone())
    }

    fn crash(&mut self, crash: &Crash) {
        self.server.crash(crash);
    }
}

/// What goes to the thread that holds the event stream of HTTP+SSE.
pub(super) enum Piece {
    Bytes(Vec<u8>),
    /// Ends the stream; in good order or not.
    End {
        orderly: bool,
    },
    /// Tells when everything before it is written.
    Mark(Sender<()>),
}

/// The answer travels on the session's event stream.
pub(super) struct SessionWire {
    pub(super) server: Arc<Server>,
    pub(super) session: String,
    pub(super) pieces: Sender<Piece>,
}

impl Wire for SessionWire {
    fn frame(&self, message: &[u8]) -> Vec<u8> {
        event(None, Some("message"), message)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.pieces
            .send(Piece::Bytes(bytes.to_vec()))
            .map_err(|_| io::ErrorKind::ConnectionAborted.into())
    }

    fn gone(&mut self) -> bool {
        !self.server.memory().streams.contains_key(&self.session)
    }

    fn crash(&mut self, crash: &Crash) {
        // What was answered before the crash has to be on its way.
        let (written, mark) = channel();
        if self.pieces.send(Piece::Mark(written)).is_ok() {
            let _ = mark.recv_timeout(Duration::from_secs(1));
        }
        self.server.crash(crash);
    }
}
