//! The book of one connection: which requests are in flight, what became of each, and whether the
//! connection still stands.
//!
//! Every transport hands what it receives to this book, and rmcp's service layer takes it from
//! here. It does not know what carries the messages.
//!
//! A call over a pipe does not pass through rmcp at all ([`Exchange::call`]): the line goes to the
//! server and its answer to the caller, each without a stop. Over HTTP it does, where the protocol's
//! headers and streams are most of the work.
//!
//! The results of `tools/call` and `tools/list` never pass through rmcp's types, which guess a
//! result's kind from its shape and drop what they do not know. rmcp gets a parcel instead: a tool
//! result whose single text holds the raw result, at the place that its structured content tells,
//! or is the failure. [`unpack`] takes it out again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rmcp::model::{
    CallToolResult, ClientJsonRpcMessage, ClientNotification, ClientRequest, ContentBlock,
    ErrorCode, ErrorData, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::CallFailure;
use super::replies;
use super::wire::Incoming;
use super::words::Words;
use crate::config::{Mask, ServerConfig};
use crate::json::Json;
use crate::tool::ServerName;

/// Secrets of this length and more are taken out of what a server says: shorter ones are too often
/// ordinary words.
const SHORTEST_SECRET: usize = 8;

/// Messages that wait for rmcp's loop. It only dispatches, so a short queue is enough; a full one
/// holds the reader back, which bounds memory.
const INBOX: usize = 4;

/// How many lines of a connection that are no JSON-RPC are logged.
const NOISE_LOGGED: u64 = 100;

/// How servers refuse notifications: without an id, since there is none. Any other error without one
/// answers the request that is under way; some servers tell so of whatever went wrong.
const REFUSED_NOTIFICATION: i64 = ErrorCode::METHOD_NOT_FOUND.0 as i64;

/// A server's requests are answered under its own ids, up to this length.
const LONGEST_ID: usize = 1024;

/// Room in an answer for its envelope.
const ENVELOPE: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Exchange {
    server: ServerName,
    secrets: Mask,
    /// `max_tool_result_bytes`, as it is told when an answer is too large.
    limit: usize,
    in_flight: Mutex<HashMap<RequestId, InFlight>>,
    /// How many requests were sent.
    sent: AtomicU64,
    /// The negotiated protocol version, which HTTP repeats in a header.
    version: Mutex<Option<ProtocolVersion>>,
    inbox: mpsc::Sender<ServerJsonRpcMessage>,
    /// Taken by whichever rmcp service runs over this connection: a handshake that is refused is
    /// followed by another one over the same stream.
    outbox: tokio::sync::Mutex<mpsc::Receiver<ServerJsonRpcMessage>>,
    /// What is still to be said to a server that asked, and where that is taken.
    replies: mpsc::Sender<ClientJsonRpcMessage>,
    unsaid: tokio::sync::Mutex<mpsc::Receiver<ClientJsonRpcMessage>>,
    lost: watch::Sender<Option<String>>,
    tools_changed: Notify,
    noise: AtomicU64,
    /// Why a request of the handshake got no usable answer: rmcp would only keep the words.
    handshake_failure: Mutex<Option<CallFailure>>,
}

/// A request without its answer.
#[derive(Debug)]
enum InFlight {
    /// Whoever made it waits at the other end.
    Direct(oneshot::Sender<Answer>),
    Through(ThroughRmcp),
}

#[derive(Debug)]
struct ThroughRmcp {
    awaited: Awaited,
    serial: u64,
    /// Cancelled when the request is answered or given up.
    over: CancellationToken,
}

/// The raw result of a call, or why there is none.
type Answer = Result<Json, CallFailure>;

/// The ids of direct calls begin here: rmcp counts its own up from zero. They fit 32 bits with a
/// sign, since some servers' integers have no more.
const DIRECT: i64 = 1 << 30;

/// A direct call in flight.
#[derive(Debug)]
pub(super) struct Call<'a> {
    exchange: &'a Exchange,
    id: i64,
    answer: oneshot::Receiver<Answer>,
}

impl Call<'_> {
    pub(super) fn id(&self) -> i64 {
        self.id
    }

    pub(super) async fn answer(&mut self) -> Answer {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => Err(CallFailure::Lost(self.exchange.lost().await)),
        }
    }

    /// Stops waiting; says whether the answer was still to come.
    pub(super) fn give_up(&self) -> bool {
        let id = RequestId::Number(self.id);
        lock(&self.exchange.in_flight).remove(&id).is_some()
    }
}

/// One request, for whoever carries it. Its id alone would not do: the second handshake over a
/// connection begins again with the ids of the first.
#[derive(Debug)]
pub(super) struct Ticket {
    id: RequestId,
    serial: u64,
    over: CancellationToken,
}

impl Ticket {
    pub(super) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Resolves when the request is answered or given up; at once if it already is.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }
}

/// How the answer to a request reaches its caller.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Awaited {
    /// As a parcel.
    Parcel,
    Initialize,
    Discover,
    /// Typed by rmcp.
    Other,
}

impl Awaited {
    fn by(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_) => Self::Parcel,
            ClientRequest::InitializeRequest(_) => Self::Initialize,
            ClientRequest::DiscoverRequest(_) => Self::Discover,
            _ => Self::Other,
        }
    }
}

impl Exchange {
    pub(super) fn new(server: &ServerConfig, limit: usize) -> Self {
        let (inbox, outbox) = mpsc::channel(INBOX);
        let (replies, unsaid) = mpsc::channel(1);
        Self {
            server: server.name.clone(),
            secrets: Mask::of(std::slice::from_ref(server), SHORTEST_SECRET),
            limit,
            in_flight: Mutex::default(),
            sent: AtomicU64::new(0),
            version: Mutex::default(),
            inbox,
            outbox: tokio::sync::Mutex::new(outbox),
            replies,
            unsaid: tokio::sync::Mutex::new(unsaid),
            lost: watch::Sender::new(None),
            tools_changed: Notify::new(),
            noise: AtomicU64::new(0),
            handshake_failure: Mutex::default(),
        }
    }

    pub(super) fn server(&self) -> &ServerName {
        &self.server
    }

    /// Takes what the server was given out of what it says, before that is logged or shown.
    pub(super) fn secrets(&self) -> &Mask {
        &self.secrets
    }

    /// A server's words, as they may be logged or shown.
    pub(super) fn excerpt(&self, text: &str) -> String {
        Words::excerpt(text).masked(&self.secrets)
    }

    /// The longest message that is stored. A result of the permitted size may travel as structured
    /// content and again, escaped, as text.
    pub(super) fn message_limit(&self) -> usize {
        self.limit.saturating_mul(4).saturating_add(ENVELOPE)
    }

    /// Notes a call that is about to be sent as a line of ours. Fails on a lost connection.
    pub(super) fn call(&self) -> Result<Call<'_>, CallFailure> {
        let (sender, answer) = oneshot::channel();
        let serial = self.sent.fetch_add(1, Ordering::Relaxed);
        // The remainder is below 2^30, and so is the sum of the two below 2^31.
        let id = DIRECT + i64::try_from(serial % (1 << 30)).unwrap_or_default();
        lock(&self.in_flight).insert(RequestId::Number(id), InFlight::Direct(sender));
        // After the insertion: a loss that comes later finds it.
        if let Some(reason) = self.loss() {
            lock(&self.in_flight).remove(&RequestId::Number(id));
            return Err(CallFailure::Lost(reason));
        }
        Ok(Call {
            exchange: self,
            id,
            answer,
        })
    }

    /// Notes what is about to be sent, so that its answer is recognised.
    pub(super) fn sending(&self, message: &ClientJsonRpcMessage) {
        let mut in_flight = lock(&self.in_flight);
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let awaited = Awaited::by(&request.request);
                let request_in_flight = ThroughRmcp {
                    awaited,
                    serial: self.sent.fetch_add(1, Ordering::Relaxed),
                    over: CancellationToken::new(),
                };
                in_flight.insert(request.id.clone(), InFlight::Through(request_in_flight));
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                    && let Some(InFlight::Through(abandoned)) = in_flight.remove(id)
                {
                    abandoned.over.cancel();
                }
            }
            _ => {}
        }
    }

    /// The request in flight with this id; a spent ticket when there is none any more.
    pub(super) fn ticket(&self, id: RequestId) -> Ticket {
        let in_flight = lock(&self.in_flight);
        let (serial, over) = match in_flight.get(&id) {
            Some(InFlight::Through(waits)) => (waits.serial, waits.over.clone()),
            _ => (u64::MAX, CancellationToken::new()),
        };
        if serial == u64::MAX {
            over.cancel();
        }
        Ticket { id, serial, over }
    }

    pub(super) fn waits(&self, ticket: &Ticket) -> bool {
        let in_flight = lock(&self.in_flight);
        matches!(
            in_flight.get(&ticket.id),
            Some(InFlight::Through(waits)) if waits.serial == ticket.serial
        )
    }

    pub(super) fn protocol_version(&self) -> Option<ProtocolVersion> {
        lock(&self.version).clone()
    }

    /// Hands on what a server said.
    pub(super) async fn receive(&self, incoming: Incoming) {
        match incoming {
            Incoming::Result { id, result } => match self.take(Some(id)) {
                // Who gave up meanwhile does not need it.
                Some((_, InFlight::Direct(caller))) => drop(caller.send(Ok(result))),
                Some((id, InFlight::Through(request))) => {
                    let _over = request.over.drop_guard();
                    self.answer(id, request.awaited, result).await;
                }
                None => self.log_stray("a result"),
            },
            Incoming::Error { id, code, message } => {
                // Before the handshake's end no notification has been sent.
                let is_owed = id.is_some()
                    || code != REFUSED_NOTIFICATION
                    || self.protocol_version().is_none();
                let message = message.masked(&self.secrets);
                let failure = CallFailure::Rejected { code, message };
                if is_owed {
                    self.settle(id, failure).await;
                } else {
                    tracing::warn!(server = %self.server, "refused a notification: {failure}");
                }
            }
            Incoming::Broken { id, why } => {
                let why = why.masked(&self.secrets);
                tracing::warn!(server = %self.server, "an unreadable answer: {why}");
                self.settle(id, CallFailure::Unreadable(why)).await;
            }
            Incoming::Oversized { id, bytes } => {
                tracing::warn!(server = %self.server, bytes, "an answer over the limit was not read");
                self.settle(id, self.too_large(bytes)).await;
            }
            Incoming::Request {
                id: RequestId::String(id),
                ..
            } if id.len() > LONGEST_ID => {
                let length = id.len();
                tracing::warn!(server = %self.server, "no answer to a request with an id of {length} bytes");
            }
            // Waits for room, and the reader with it.
            Incoming::Request { id, method } => {
                let _ = self.replies.send(replies::reply(&method, id)).await;
            }
            Incoming::Notification { method, message } => self.notified(&method, &message).await,
            Incoming::Noise(text) => {
                let before = self.noise.fetch_add(1, Ordering::Relaxed);
                if before < NOISE_LOGGED {
                    let text = text.masked(&self.secrets);
                    tracing::info!(server = %self.server, "skipped what is no JSON-RPC: {text}");
                } else if before == NOISE_LOGGED {
                    tracing::info!(server = %self.server, "and so on: no more of this is logged");
                }
            }
        }
    }

    pub(super) fn too_large(&self, bytes: u64) -> CallFailure {
        CallFailure::TooLarge {
            bytes,
            limit: self.limit as u64,
        }
    }

    /// Ends one request with a failure, if it still waits.
    pub(super) async fn fail(&self, ticket: &Ticket, failure: CallFailure) {
        if self.waits(ticket) {
            self.settle(Some(ticket.id.clone()), failure).await;
        }
    }

    /// Ends the connection. The first reason stands.
    pub(super) fn lose(&self, reason: impl Into<String>) {
        let mut reason = Some(reason.into());
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            if first {
                *lost = reason.take();
            }
            first
        });
        let reason = self.loss().unwrap_or_default();
        let is_direct =
            |_: &RequestId, request: &mut InFlight| matches!(request, InFlight::Direct(_));
        let calls: Vec<InFlight> = lock(&self.in_flight)
            .extract_if(is_direct)
            .map(|(_, call)| call)
            .collect();
        for call in calls {
            if let InFlight::Direct(caller) = call {
                let _ = caller.send(Err(CallFailure::Lost(reason.clone())));
            }
        }
    }

    /// Resolves when the connection is lost.
    pub(super) async fn lost(&self) -> String {
        let mut lost = self.lost.subscribe();
        // The sender lives in `self`, so the wait ends only with a reason.
        match lost.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => String::from("the connection was dropped"),
        }
    }

    pub(super) fn loss(&self) -> Option<String> {
        self.lost.borrow().clone()
    }

    pub(super) async fn tools_changed(&self) {
        self.tools_changed.notified().await;
    }

    /// The tools may have changed without our hearing of it.
    pub(super) fn suspect_change(&self) {
        self.tools_changed.notify_one();
    }

    pub(super) fn take_handshake_failure(&self) -> Option<CallFailure> {
        lock(&self.handshake_failure).take()
    }

    /// The next message for rmcp; `None` once the connection is lost and everything was read.
    pub(super) async fn next(&self) -> Option<ServerJsonRpcMessage> {
        let mut outbox = self.outbox.lock().await;
        tokio::select! {
            biased;
            message = outbox.recv() => message,
            _ = self.lost() => None,
        }
    }

    /// The next message for the server that it asked for.
    pub(super) async fn next_reply(&self) -> ClientJsonRpcMessage {
        match self.unsaid.lock().await.recv().await {
            Some(reply) => reply,
            // The sender lives in `self`.
            None => std::future::pending().await,
        }
    }

    /// The request that an answer belongs to. One that lost its id belongs to the only request in
    /// flight, if there is only one. It is to be declared over after the answer was handed on, which
    /// may stop the very task that does so.
    fn take(&self, id: Option<RequestId>) -> Option<(RequestId, InFlight)> {
        let mut in_flight = lock(&self.in_flight);
        let id = match id {
            Some(id) if in_flight.contains_key(&id) => id,
            // Our ids are numbers; some servers give them back as strings.
            Some(RequestId::String(text)) => RequestId::Number(text.parse().ok()?),
            Some(_) => return None,
            None if in_flight.len() == 1 => in_flight.keys().next()?.clone(),
            None => return None,
        };
        in_flight.remove_entry(&id)
    }

    async fn settle(&self, id: Option<RequestId>, failure: CallFailure) {
        match self.take(id) {
            Some((_, InFlight::Direct(caller))) => drop(caller.send(Err(failure))),
            Some((id, InFlight::Through(request))) => {
                let _over = request.over.drop_guard();
                self.end(id, request.awaited, failure).await;
            }
            None => self.log_stray(&failure.to_string()),
        }
    }

    async fn end(&self, id: RequestId, awaited: Awaited, failure: CallFailure) {
        let message = match awaited {
            Awaited::Parcel => pack(id, Err(failure)),
            _ => {
                let message = failure.to_string();
                let code = match failure {
                    CallFailure::Rejected { code, .. } => i32::try_from(code).unwrap_or(0),
                    failure => {
                        *lock(&self.handshake_failure) = Some(failure);
                        ErrorCode::INTERNAL_ERROR.0
                    }
                };
                let error = ErrorData::new(ErrorCode(code), message, None);
                ServerJsonRpcMessage::error(error, Some(id))
            }
        };
        self.hand_on(message).await;
    }

    async fn answer(&self, id: RequestId, awaited: Awaited, result: Json) {
        let typed = match awaited {
            Awaited::Parcel => return self.hand_on(pack(id, Ok(result))).await,
            Awaited::Initialize => {
                serde_json::from_str(result.get()).map(ServerResult::InitializeResult)
            }
            Awaited::Discover => {
                serde_json::from_str(result.get()).map(ServerResult::DiscoverResult)
            }
            Awaited::Other => serde_json::from_str(result.get()),
        };
        match typed {
            Ok(result) => {
                let version = match &result {
                    ServerResult::InitializeResult(result) => Some(result.protocol_version.clone()),
                    ServerResult::DiscoverResult(_) => Some(ProtocolVersion::V_2026_07_28),
                    _ => None,
                };
                if version.is_some() {
                    *lock(&self.version) = version;
                }
                self.hand_on(ServerJsonRpcMessage::response(result, id))
                    .await;
            }
            Err(error) => {
                let error = self.excerpt(&error.to_string());
                let failure = CallFailure::Unreadable(format!("its answer: {error}"));
                self.end(id, awaited, failure).await;
            }
        }
    }

    async fn notified(&self, method: &str, message: &str) {
        match method {
            "notifications/tools/list_changed" => self.suspect_change(),
            "notifications/message" => {
                let message = self.excerpt(message);
                tracing::debug!(server = %self.server, "log message: {message}");
            }
            _ => match serde_json::from_str(message) {
                Ok(message) => self.hand_on(message).await,
                Err(error) => {
                    let error = self.excerpt(&error.to_string());
                    tracing::debug!(server = %self.server, "skipped a message: {error}");
                }
            },
        }
    }

    async fn hand_on(&self, message: ServerJsonRpcMessage) {
        // Fails only when the receiver is gone, and it lives in `self`.
        let _ = self.inbox.send(message).await;
    }

    fn log_stray(&self, what: &str) {
        tracing::debug!(server = %self.server, "nobody waits for this answer (any more): {what}");
    }
}

fn pack(id: RequestId, outcome: Result<Json, CallFailure>) -> ServerJsonRpcMessage {
    let mut parcel = CallToolResult::default();
    let text = match outcome {
        Ok(result) => {
            let (text, range) = result.into_text();
            parcel.structured_content = Some(Value::from(vec![range.start, range.end]));
            text
        }
        Err(failure) => serde_json::to_string(&failure).unwrap_or_default(),
    };
    parcel.content = vec![ContentBlock::text(text)];
    ServerJsonRpcMessage::response(ServerResult::CallToolResult(parcel), id)
}

/// Takes a raw result, or the failure, out of the parcel that rmcp carried.
pub(super) fn unpack(parcel: CallToolResult) -> Result<Json, CallFailure> {
    let Some(ContentBlock::Text(text)) = parcel.content.into_iter().next() else {
        return Err(CallFailure::Unreadable(String::from("no result")));
    };
    let Some(place) = parcel.structured_content else {
        return Err(serde_json::from_str(&text.text)
            .unwrap_or_else(|error| CallFailure::Unreadable(error.to_string())));
    };
    let end = |index: usize| {
        place[index]
            .as_u64()
            .and_then(|end| usize::try_from(end).ok())
    };
    match (end(0), end(1)) {
        (Some(start), Some(end)) => Ok(Json::part(text.text, start..end)),
        _ => Err(CallFailure::Unreadable(String::from(
            "no place of the result",
        ))),
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing panics while a lock is held; and if it did, the maps would still be whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
