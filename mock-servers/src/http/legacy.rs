//! HTTP+SSE of 2024-11-05: answers travel on a stream that the client opened before.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::fault::Fault;
use crate::perform::perform;
use crate::play::Received;
use crate::rule::At;

use super::request::Request;
use super::response::{Connection, Piece, SessionWire, event};
use super::{Server, entry};

impl Server {
    pub(super) fn legacy(
        self: &Arc<Self>,
        request: &Request,
        connection: &mut Connection,
    ) -> io::Result<()> {
        if self.refuse_unauthorized(request, connection)? {
            return Ok(());
        }
        match (request.method.as_str(), request.path.split('?').next()) {
            ("GET", Some("/sse")) => self.open_stream(request, connection),
            ("POST", Some("/messages")) => self.take(request, connection),
            (_, Some("/sse" | "/messages")) => connection.empty(405),
            _ => {
                self.note(request, None, "no such path");
                connection.empty(404)
            }
        }
    }

    fn open_stream(&self, request: &Request, connection: &mut Connection) -> io::Result<()> {
        self.note(request, None, "");
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
            _ => "text/event-stream",
        };
        let session = self.fresh("session");
        let (pieces, incoming) = channel();
        let announcements = self.player.listen(None);
        self.memory().streams.insert(session.clone(), pieces);
        connection.head(200, &BTreeMap::new(), content_type, None)?;
        let endpoint = match &self.player.scenario().http.endpoint {
            Some(endpoint) => endpoint.replace("$SESSION", &session),
            None => format!("/messages?sessionId={session}"),
        };
        let done = (|| {
            if let Some(Fault::CutStream(cut)) = &fault {
                return end(connection, cut.orderly);
            }
            let endless = matches!(fault, Some(Fault::EndlessStream(_)));
            if !endless {
                connection.chunk(&event(None, Some("endpoint"), endpoint.as_bytes()))?;
            }
            while !self.player.is_stopped() && !connection.gone() {
                if endless {
                    connection.chunk(b": still here\n\n")?;
                }
                while let Ok(message) = announcements.try_recv() {
                    connection.chunk(&event(None, Some("message"), &message))?;
                }
                match incoming.recv_timeout(Duration::from_millis(5)) {
                    Ok(Piece::Bytes(bytes)) => connection.chunk(&bytes)?,
                    Ok(Piece::End { orderly }) => return end(connection, orderly),
                    Ok(Piece::Mark(written)) => {
                        // Whoever asked may have stopped waiting.
                        let _ = written.send(());
                    }
                    Err(_) => {}
                }
            }
            Ok(())
        })();
        self.memory().streams.remove(&session);
        connection.spend();
        done
    }

    fn take(self: &Arc<Self>, request: &Request, connection: &mut Connection) -> io::Result<()> {
        let session = request
            .path
            .split_once("sessionId=")
            .map_or("", |(_, session)| session);
        let Some(pieces) = self.memory().streams.get(session).cloned() else {
            self.note(request, None, "unknown session");
            return connection.empty(404);
        };
        let plan = match self
            .player
            .receive(&request.body, session, Some(entry(request)))
        {
            Received::Noted => return connection.empty(202),
            Received::Struck(fault) => return self.acknowledge(Some(&fault), 202, connection),
            Received::Plan(plan) => plan,
        };
        match &plan.http {
            Some(Fault::Status(_) | Fault::Reset(_)) => {
                return self.fail(plan.http.as_ref(), connection);
            }
            Some(Fault::LoseSession(_)) => {
                self.memory().streams.clear();
                return connection.empty(404);
            }
            Some(Fault::SlowHeaders(slow)) => connection.slow_head(Duration::from_millis(slow.ms)),
            Some(Fault::ContentType(wrong)) => {
                return connection.respond(200, &BTreeMap::new(), &wrong.value, b"accepted");
            }
            _ => {}
        }
        connection.respond(202, &BTreeMap::new(), "text/plain", b"Accepted")?;
        let cut = match plan.http {
            Some(Fault::CutStream(ref cut)) => Some(cut.orderly),
            Some(Fault::CutBody(_)) => Some(false),
            _ => None,
        };
        if let Some(orderly) = cut {
            let _ = pieces.send(Piece::End { orderly });
            return Ok(());
        }
        let mut wire = SessionWire {
            server: Arc::clone(self),
            session: session.to_owned(),
            pieces,
        };
        let server = Arc::clone(self);
        std::thread::spawn(move || {
            // The session's end is noted there.
            let _ = perform(&server.player, &wire.session.clone(), &plan, &mut wire);
        });
        Ok(())
    }
}

fn end(connection: &mut Connection, orderly: bool) -> io::Result<()> {
    if orderly {
        return connection.last_chunk();
    }
    connection.end();
    Ok(())
}
