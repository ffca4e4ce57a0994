//! Streamable HTTP: one endpoint for POST, GET and DELETE.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;

use crate::fault::Fault;
use crate::message::{Body, HEADER_MISMATCH, INVALID_REQUEST, Incoming, Params};
use crate::perform::perform;
use crate::play::{Plan, Received};
use crate::rule::At;
use crate::scenario::{Answer, STATELESS_VERSION};

use super::request::Request;
use super::response::{BodyWire, Connection, StreamWire, event};
use super::{CutOff, Server, entry};

const SESSION: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

impl Server {
    pub(super) fn streamable(
        &self,
        request: &Request,
        connection: &mut Connection,
    ) -> io::Result<()> {
        if request.path != "/mcp" {
            self.note(request, None, "no such path");
            return connection.empty(404);
        }
        if self.refuse_unauthorized(request, connection)? {
            return Ok(());
        }
        match request.method.as_str() {
            "POST" => self.post(request, connection),
            "GET" => self.get(request, connection),
            "DELETE" => {
                self.note(request, None, "");
                let mut memory = self.memory();
                let known = memory.sessions.len();
                memory
                    .sessions
                    .retain(|session| request.header(SESSION) != Some(session));
                let status = if memory.sessions.len() < known {
                    200
                } else {
                    404
                };
                drop(memory);
                let fault = self.player.fault_at(At::SessionEnd, None);
                self.acknowledge(fault.as_ref(), status, connection)
            }
            _ => connection.empty(405),
        }
    }

    fn post(&self, request: &Request, connection: &mut Connection) -> io::Result<()> {
        let incoming = serde_json::from_slice::<Incoming>(&request.body).ok();
        let method = incoming
            .as_ref()
            .and_then(|incoming| incoming.method.clone());
        let stateless = request
            .header("mcp-protocol-version")
            .is_some_and(|version| {
                version >= STATELESS_VERSION
                    && !self.player.scenario().protocol.stateless().is_empty()
            });
        let sessions = self.player.scenario().http.sessions;
        let opening = method.as_deref() == Some("initialize");
        let peer = if stateless || !sessions {
            String::new()
        } else if opening {
            self.fresh("session")
        } else {
            let named = request.header(SESSION);
            match named {
                Some(session) if self.memory().sessions.iter().any(|s| s == session) => {
                    session.to_owned()
                }
                _ => {
                    let (status, reason) = match named {
                        Some(_) => (404, "unknown session"),
                        None => (400, "no session: initialize first"),
                    };
                    self.note(request, method, reason);
                    let body = Body::error(INVALID_REQUEST, reason).answer("null");
                    return connection.respond(status, &BTreeMap::new(), JSON, &body);
                }
            }
        };
        if stateless
            && let Some(incoming) = &incoming
            && let Some(reason) = header_mismatch(request, incoming)
        {
            self.note(request, method, &reason);
            let id = incoming.id.as_ref().map_or("null", |id| id.get());
            let body = Body::error(HEADER_MISMATCH, &reason).answer(id);
            return connection.respond(400, &BTreeMap::new(), JSON, &body);
        }
        match self
            .player
            .receive(&request.body, &peer, Some(entry(request)))
        {
            Received::Noted => connection.empty(202),
            Received::Struck(fault) => self.acknowledge(Some(&fault), 202, connection),
            Received::Plan(plan) => self.answer(&peer, &plan, connection),
        }
    }

    fn answer(&self, peer: &str, plan: &Plan, connection: &mut Connection) -> io::Result<()> {
        let mut headers = BTreeMap::new();
        if plan.opens_session && !peer.is_empty() {
            self.memory().sessions.push(peer.to_owned());
            headers.insert("Mcp-Session-Id".to_owned(), peer.to_owned());
        }
        let mut events =
            self.player.scenario().http.answer == Answer::Sse || !plan.is_single_answer();
        let mut content_type = None;
        let (mut cut, mut chunked) = (false, plan.streams());
        match &plan.http {
            Some(Fault::Status(_) | Fault::Reset(_) | Fault::LoseSession(_)) => {
                return self.fail(plan.http.as_ref(), connection);
            }
            Some(Fault::SlowHeaders(slow)) => {
                connection.slow_head(Duration::from_millis(slow.ms));
            }
            Some(Fault::ContentType(wrong)) => content_type = Some(wrong.value.clone()),
            Some(Fault::CutBody(fault)) => {
                cut = true;
                chunked |= fault.chunked;
            }
            Some(Fault::CutStream(cut)) => {
                connection.head(200, &headers, EVENTS, None)?;
                return self.cut_stream(peer, plan, cut.resumable, cut.orderly, connection);
            }
            Some(Fault::EndlessStream(_)) => events = true,
            _ => {}
        }
        if events && plan.status.is_none() {
            connection.head(
                200,
                &headers,
                content_type.as_deref().unwrap_or(EVENTS),
                None,
            )?;
            let mut wire = StreamWire {
                server: self,
                connection: Some(connection),
                kept: None,
                ids: None,
                cut_half: cut,
            };
            perform(&self.player, peer, plan, &mut wire)?;
            return wire.finish();
        }
        let mut wire = BodyWire {
            server: self,
            connection,
            status: plan.status.unwrap_or(200),
            headers,
            content_type: content_type.unwrap_or_else(|| JSON.to_owned()),
            streams: chunked,
            cut,
            body: Vec::new(),
            begun: false,
        };
        perform(&self.player, peer, plan, &mut wire)?;
        wire.finish()
    }

    /// The faults that leave no answer at all.
    pub(super) fn fail(
        &self,
        fault: Option<&Fault>,
        connection: &mut Connection,
    ) -> io::Result<()> {
        match fault {
            Some(Fault::Status(status)) => {
                let content_type = if status.body.starts_with('{') {
                    JSON
                } else {
                    "text/plain"
                };
                let mut headers = status.headers.clone();
                let named = headers
                    .keys()
                    .find(|name| name.eq_ignore_ascii_case("content-type"));
                let named = named.cloned().and_then(|name| headers.remove(&name));
                let content_type = named.as_deref().unwrap_or(content_type);
                connection.respond(status.code, &headers, content_type, status.body.as_bytes())
            }
            Some(Fault::LoseSession(_)) => {
                self.memory().sessions.clear();
                let body = Body::error(INVALID_REQUEST, "unknown session").answer("null");
                connection.respond(404, &BTreeMap::new(), JSON, &body)
            }
            _ => {
                connection.reset();
                Ok(())
            }
        }
    }

    /// The response to what asks for no answer, as the fault has it.
    pub(super) fn acknowledge(
        &self,
        fault: Option<&Fault>,
        status: u16,
        connection: &mut Connection,
    ) -> io::Result<()> {
        match fault {
            Some(Fault::Status(_) | Fault::Reset(_) | Fault::LoseSession(_)) => {
                return self.fail(fault, connection);
            }
            Some(Fault::ContentType(wrong)) => {
                return connection.respond(status, &BTreeMap::new(), &wrong.value, b"accepted");
            }
            Some(Fault::SlowHeaders(slow)) => connection.slow_head(Duration::from_millis(slow.ms)),
            Some(Fault::Hang(_)) => {
                connection.wait_for_end(&|| self.player.is_stopped());
                return Ok(());
            }
            Some(Fault::Crash(crash)) => {
                self.crash(crash);
                return Ok(());
            }
            _ => {}
        }
        connection.empty(status)
    }

    /// Begins a stream, ends it before the answer, and keeps the answer for a resumption.
    fn cut_stream(
        &self,
        peer: &str,
        plan: &Plan,
        resumable: bool,
        orderly: bool,
        connection: &mut Connection,
    ) -> io::Result<()> {
        let stream = self.fresh("stream");
        let kept = Arc::new(Mutex::new(CutOff::default()));
        if resumable {
            self.memory().cut.insert(stream.clone(), Arc::clone(&kept));
            // An event without a message gives the client something to resume from.
            let first = format!("id: {stream}.0\nretry: 10\ndata: \n\n");
            connection.chunk(first.as_bytes())?;
        } else {
            connection.chunk(b": this stream ends early\n\n")?;
        }
        if orderly {
            connection.last_chunk()?;
        } else {
            connection.end();
        }
        let mut wire = StreamWire {
            server: self,
            connection: None,
            kept: Some(kept),
            ids: Some(stream),
            cut_half: false,
        };
        perform(&self.player, peer, plan, &mut wire)?;
        wire.finish()
    }

    fn get(&self, request: &Request, connection: &mut Connection) -> io::Result<()> {
        // Before it is noted: a test that has seen the GET may count on hearing what is said next.
        let announcements = self.player.listen(None);
        self.note(request, None, "");
        let http = &self.player.scenario().http;
        let session = request.header(SESSION).map(str::to_owned);
        let known = |session: &Option<String>| {
            session
                .as_ref()
                .is_some_and(|s| self.memory().sessions.contains(s))
        };
        if http.sessions && !known(&session) {
            return connection.empty(if session.is_some() { 404 } else { 400 });
        }
        if let Some(last) = request.header("last-event-id")
            && let Some((stream, number)) = last.rsplit_once('.')
            && let Some(kept) = self.memory().cut.get(stream).cloned()
        {
            let number = number.parse().unwrap_or(0);
            return self.resume(&kept, number, connection);
        }
        if !http.stream {
            return connection.empty(405);
        }
        let fault = self.player.fault_at(At::Stream, None);
        match &fault {
            Some(Fault::Status(_) | Fault::Reset(_) | Fault::LoseSession(_)) => {
                return self.fail(fault.as_ref(), connection);
            }
            Some(Fault::SlowHeaders(slow)) => connection.slow_head(Duration::from_millis(slow.ms)),
            _ => {}
        }
        let content_type = match &fault {
            Some(Fault::ContentType(wrong)) => &wrong.value,
            _ => EVENTS,
        };
        connection.head(200, &BTreeMap::new(), content_type, None)?;
        if let Some(Fault::CutStream(cut)) = fault {
            if cut.orderly {
                return connection.last_chunk();
            }
            connection.end();
            return Ok(());
        }
        let endless = matches!(fault, Some(Fault::EndlessStream(_)));
        while !self.player.is_stopped() && !connection.gone() {
            if http.sessions && !known(&session) {
                return connection.last_chunk();
            }
            if endless {
                connection.chunk(b": still here\n\n")?;
            }
            if let Ok(message) = announcements.recv_timeout(Duration::from_millis(10)) {
                connection.chunk(&event(None, None, &message))?;
            }
        }
        connection.spend();
        Ok(())
    }

    /// The rest of a stream that was cut, as it comes.
    fn resume(
        &self,
        kept: &Mutex<CutOff>,
        mut number: usize,
        connection: &mut Connection,
    ) -> io::Result<()> {
        connection.head(200, &BTreeMap::new(), EVENTS, None)?;
        while !self.player.is_stopped() && !connection.gone() {
            let (frames, complete) = {
                let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                (
                    kept.frames.get(number..).unwrap_or_default().to_vec(),
                    kept.complete,
                )
            };
            number += frames.len();
            for frame in frames {
                connection.chunk(&frame)?;
            }
            if complete {
                return connection.last_chunk();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        connection.spend();
        Ok(())
    }
}

/// What the headers of a stateless request must repeat from its body.
fn header_mismatch(request: &Request, incoming: &Incoming) -> Option<String> {
    let params = Params::read(incoming.params.as_deref()).unwrap_or_default();
    let named = incoming.method.as_deref() == Some("tools/call");
    [
        ("mcp-protocol-version", params.meta.protocol_version.clone()),
        ("mcp-method", incoming.method.clone()),
        ("mcp-name", params.name.filter(|_| named)),
    ]
    .into_iter()
    .filter(|_| incoming.id.is_some())
    .find_map(|(header, expected)| {
        let sent = request.header(header);
        (expected.is_some() && sent != expected.as_deref())
            .then(|| json!({ "header": header, "sent": sent, "expected": expected }).to_string())
    })
}
