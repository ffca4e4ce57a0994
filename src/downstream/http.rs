//! Streamable HTTP: a POST for each message, answered by JSON or by a stream of events, and one
//! GET for what the server says unasked.
//!
//! rmcp's worker would never say that a server is gone, would start a new session behind our back
//! and send a call twice. Here a lost connection is reported, and a call is sent once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta, ProtocolVersion, RequestId,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::event::Events;
use super::exchange::{Exchange, Ticket, lock};
use super::headers::Marked;
use super::origin::{self, Body, Kind, Origin, POST, Refusal, cause};
use super::wire::{self, Incoming};
use super::{CallFailure, ConnectError, DownstreamTool};
use crate::config::Secret;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// How long to wait before a stream is opened again, unless the server says otherwise; doubled
/// while nothing comes of it.
const RETRY: Duration = Duration::from_millis(250);
const MIN_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(30);

/// How many times in a row a stream is opened again in vain before the connection is lost.
const ATTEMPTS: u32 = 4;

/// How long the end of an answered stream is waited for, so that its connection can be used again.
const TAIL: Duration = Duration::from_millis(50);

/// What refuses the listening stream and says nothing of the session.
const NOT_OFFERED: [StatusCode; 3] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::METHOD_NOT_ALLOWED,
];

pub(super) struct Endpoint {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

struct Shared {
    origin: Origin,
    exchange: Arc<Exchange>,
    session: Mutex<Option<HeaderValue>>,
    marked: Mutex<Marked>,
}

/// What a request is for, as far as its failure matters.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Purpose {
    Initialize,
    Subscription,
    Other,
}

impl Purpose {
    fn of(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::InitializeRequest(_) => Self::Initialize,
            ClientRequest::SubscriptionsListenRequest(_) => Self::Subscription,
            _ => Self::Other,
        }
    }
}

/// Where a stream of events stands.
#[derive(Default)]
struct Position {
    last_event: Option<HeaderValue>,
    retry: Option<Duration>,
    /// How often it was opened without any event since.
    idle: u32,
    /// Whether this opening has brought an event.
    heard: bool,
    /// It carried an answer that nobody waits for.
    stray: bool,
}

impl Position {
    fn delay(&self) -> Duration {
        let first = self.retry.unwrap_or(RETRY).max(MIN_RETRY);
        first.saturating_mul(1 << self.idle.min(6)).min(MAX_RETRY)
    }
}

impl Endpoint {
    pub(super) fn new(
        url: &Secret,
        headers: &BTreeMap<String, Secret>,
        exchange: &Arc<Exchange>,
    ) -> Result<Self, ConnectError> {
        Ok(Self {
            shared: Arc::new(Shared {
                origin: Origin::new(url, headers, exchange)?,
                exchange: exchange.clone(),
                session: Mutex::default(),
                marked: Mutex::default(),
            }),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    pub(super) async fn send(&self, message: ClientJsonRpcMessage) {
        let Ok(body) = serde_json::to_vec(&message).map(Bytes::from) else {
            return;
        };
        let shared = self.shared.clone();
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let headers = shared.request_headers(&request.request);
                let purpose = Purpose::of(&request.request);
                let ticket = shared.exchange.ticket(request.id);
                self.spawn(async move {
                    shared.request(ticket, purpose, headers, body).await;
                });
            }
            ClientJsonRpcMessage::Notification(notification) => {
                let notification = notification.notification;
                let is_cancellation =
                    matches!(notification, ClientNotification::CancelledNotification(_));
                // In the 2026 era, the closed response stream is the cancellation.
                if is_cancellation && shared.is_modern() {
                    return;
                }
                self.post_unanswered(body).await;
                let is_start =
                    matches!(notification, ClientNotification::InitializedNotification(_));
                if is_start && !shared.is_modern() {
                    self.spawn(async move { shared.listen().await });
                }
            }
            _ => self.post_unanswered(body).await,
        }
    }

    /// A notification or a reply, waited for so that what is sent next arrives later.
    async fn post_unanswered(&self, body: Bytes) {
        let headers = self.shared.session_headers();
        let post = self.shared.post(headers, body);
        let sent = tokio::select! {
            sent = tokio::time::timeout(POST, post) => sent,
            () = self.stop.cancelled() => return,
        };
        let server = self.shared.exchange.server();
        match sent {
            Ok(Ok(_)) => {}
            Ok(Err(refusal)) => {
                tracing::warn!(%server, "a message was not accepted: {}", refusal.failure);
                self.shared.note_loss(&refusal);
            }
            Err(_) => tracing::warn!(%server, "a message was not accepted in time"),
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Which arguments of which tools are to be repeated in headers.
    pub(super) fn learn(&self, tools: &[DownstreamTool]) {
        *lock(&self.shared.marked) = Marked::of(tools);
    }

    pub(super) async fn shutdown(&self) {
        self.stop.cancel();
        let headers = self.shared.session_headers();
        if headers.contains_key(SESSION) {
            // A server may not support it (405), and one that is gone has no session either.
            let url = self.shared.origin.url();
            let _ = self
                .shared
                .origin
                .send(Method::DELETE, url, headers, None)
                .await;
        }
    }

    pub(super) fn abandon(&self) {
        self.stop.cancel();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Shared {
    fn is_modern(&self) -> bool {
        let version = self.exchange.protocol_version();
        version.is_some_and(|version| !version.has_initialize())
    }

    fn session(&self) -> Option<HeaderValue> {
        lock(&self.session).clone()
    }

    /// What every message but the first carries.
    fn session_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.extend(self.session().map(|session| (SESSION, session)));
        let version = self.exchange.protocol_version();
        headers.extend(version.as_ref().and_then(version_header));
        headers
    }

    fn request_headers(&self, request: &ClientRequest) -> HeaderMap {
        if matches!(request, ClientRequest::InitializeRequest(_)) {
            return HeaderMap::new();
        }
        let mut headers = self.session_headers();
        // In the 2026 era each request names its version, and the headers repeat what it is.
        if let Some(version) = request.get_meta().protocol_version() {
            headers.extend(version_header(&version));
            headers.extend(lock(&self.marked).headers(request));
        }
        headers
    }

    async fn post(&self, mut headers: HeaderMap, body: Bytes) -> Result<Response, Refusal> {
        headers.insert(header::ACCEPT, BOTH);
        let url = self.origin.url();
        self.origin
            .send(Method::POST, url, headers, Some(body))
            .await
    }

    /// One request from its POST to its answer, whichever way that comes.
    async fn request(&self, ticket: Ticket, purpose: Purpose, headers: HeaderMap, body: Bytes) {
        let exchange = async {
            let response = self.post(headers, body).await.map_err(|refusal| {
                self.note_loss(&refusal);
                self.explain(refusal, purpose)
            })?;
            if purpose == Purpose::Initialize {
                let session = response.headers().get(SESSION).cloned();
                *lock(&self.session) = session;
            }
            match origin::kind(&response) {
                Some(Kind::Json) => self.answer_in_body(&ticket, response).await.map(|()| None),
                Some(Kind::Events) => Ok(Some(response)),
                // The answer may come over the listening stream.
                None if response.status() == StatusCode::ACCEPTED => {
                    std::future::pending::<Result<_, CallFailure>>().await
                }
                None => Err(self.origin.strange(&response)),
            }
        };
        let outcome = tokio::select! {
            biased;
            outcome = exchange => outcome,
            () = ticket.over() => return,
        };
        let outcome = match outcome {
            Ok(None) => Ok(()),
            Ok(Some(mut response)) => {
                let outcome = tokio::select! {
                    biased;
                    () = ticket.over() => Ok(()),
                    failure = self.answer_in_stream(ticket.id(), &mut response) => Err(failure),
                };
                let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
                let _ = tokio::time::timeout(TAIL, rest).await;
                outcome
            }
            Err(failure) => Err(failure),
        };
        // A stream that ends behind its answer is no loss.
        if let Err(failure) = outcome
            && self.exchange.waits(&ticket)
        {
            // A subscription may end any time, and is simply taken out again.
            if let CallFailure::Lost(reason) = &failure
                && purpose != Purpose::Subscription
            {
                self.exchange.lose(reason);
            }
            self.exchange.fail(&ticket, failure).await;
        }
    }

    async fn answer_in_body(&self, ticket: &Ticket, response: Response) -> Result<(), CallFailure> {
        let id = ticket.id();
        let found = match origin::collect(response, self.exchange.message_limit()).await? {
            Body::Whole(body) => wire::decode(body),
            Body::TooLong(rest) => {
                let (id, bytes) = (Some(id.clone()), rest.bytes());
                vec![Incoming::Oversized { id, bytes }]
            }
        };
        for incoming in found {
            self.exchange.receive(owed_to(id, incoming)).await;
        }
        let failure = CallFailure::Unreadable("the body holds no answer to the request".into());
        self.exchange.fail(ticket, failure).await;
        Ok(())
    }

    /// Reads the stream until the request is over, resuming it where that is possible. Ends only
    /// with a failure.
    async fn answer_in_stream(&self, id: &RequestId, response: &mut Response) -> CallFailure {
        let mut position = Position::default();
        loop {
            let broken = self.read(response, Some(id), &mut position).await;
            loop {
                if position.last_event.is_none() || position.idle >= ATTEMPTS {
                    // The server said what it had to say: nonsense, and no loss (D2).
                    if position.stray && broken.is_none() {
                        return CallFailure::Unreadable(
                            "the event stream holds the answer to another request".into(),
                        );
                    }
                    let why = broken.as_deref().unwrap_or("the server closed it");
                    return CallFailure::Lost(format!(
                        "the event stream ended before the answer ({why})"
                    ));
                }
                tokio::time::sleep(position.delay()).await;
                position.idle += 1;
                match self.open(&position).await {
                    Ok(next) if origin::kind(&next) == Some(Kind::Events) => {
                        *response = next;
                        break;
                    }
                    Ok(other) => return self.origin.strange(&other),
                    Err(Refusal { status: None, .. }) => {}
                    Err(refusal) => {
                        self.note_loss(&refusal);
                        return CallFailure::Lost(format!(
                            "the event stream ended before the answer and was not resumed: {}",
                            refusal.failure
                        ));
                    }
                }
            }
        }
    }

    /// What the server says unasked, for as long as it wants to say it this way.
    async fn listen(&self) {
        let mut position = Position::default();
        let mut unreachable = 0;
        let mut refused = 0;
        let mut listened = false;
        loop {
            match self.open(&position).await {
                Ok(mut response) if origin::kind(&response) == Some(Kind::Events) => {
                    (unreachable, refused) = (0, 0);
                    // What was said while nobody listened is unknown, unless it is said now.
                    if std::mem::replace(&mut listened, true) && position.last_event.is_none() {
                        self.exchange.suspect_change();
                    }
                    position.heard = false;
                    self.read(&mut response, None, &mut position).await;
                    if !position.heard {
                        // Not every server that numbers its events keeps them.
                        position.last_event = None;
                    }
                }
                Err(Refusal {
                    status: None,
                    failure,
                }) => {
                    unreachable += 1;
                    if unreachable == ATTEMPTS {
                        return self.exchange.lose(failure.to_string());
                    }
                }
                Ok(_) => return,
                Err(Refusal {
                    status: Some(status),
                    ..
                }) => match status {
                    status if status.is_server_error() => {}
                    // 409 is what some say until they see that the stream before it is gone.
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::CONFLICT => {}
                    // The server does not offer this stream: usually 405, and 404 where nothing
                    // but POST has a route.
                    _ if !listened || !status.is_client_error() => return,
                    _ if NOT_OFFERED.contains(&status) => return,
                    // Events that it no longer has are as good a reason as a session.
                    _ if position.last_event.take().is_some() => {}
                    _ if self.session().is_none() => return,
                    StatusCode::NOT_FOUND | StatusCode::GONE => {
                        return self.exchange.lose(expired(status));
                    }
                    // Some say 400 of a session that they have forgotten, and some of a stream
                    // whose predecessor they still hold.
                    _ => {
                        refused += 1;
                        if refused == ATTEMPTS {
                            return self.exchange.lose(expired(status));
                        }
                    }
                },
            }
            tokio::time::sleep(position.delay()).await;
            position.idle += 1;
        }
    }

    async fn open(&self, position: &Position) -> Result<Response, Refusal> {
        let mut headers = self.session_headers();
        headers.insert(header::ACCEPT, EVENTS);
        let last_event = position.last_event.clone();
        headers.extend(last_event.map(|id| (LAST_EVENT_ID, id)));
        let url = self.origin.url();
        self.origin.send(Method::GET, url, headers, None).await
    }

    /// Reads a stream to its end; why it broke, if it did not end in good order.
    async fn read(
        &self,
        response: &mut Response,
        request: Option<&RequestId>,
        position: &mut Position,
    ) -> Option<String> {
        let mut events = Events::new(self.exchange.message_limit());
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return None,
                Err(error) => return Some(cause(error)),
            };
            for event in events.feed(&chunk) {
                (position.idle, position.heard) = (0, true);
                position.retry = event.retry.or(position.retry);
                if let Some(id) = event.id {
                    position.last_event =
                        HeaderValue::from_str(&id).ok().filter(|id| !id.is_empty());
                }
                for incoming in event.data.into_incoming() {
                    let incoming = match request {
                        Some(id) => owed_to(id, incoming),
                        None => incoming,
                    };
                    // Of the answer that is awaited, nobody here hears: it ends the reading.
                    position.stray |= !matches!(
                        incoming,
                        Incoming::Request { .. }
                            | Incoming::Notification { .. }
                            | Incoming::Noise(_)
                    );
                    self.exchange.receive(incoming).await;
                }
            }
        }
    }

    // contract: D6
    fn note_loss(&self, refusal: &Refusal) {
        match (refusal.status, &refusal.failure) {
            (Some(status @ StatusCode::NOT_FOUND), _) if self.session().is_some() => {
                self.exchange.lose(expired(status));
            }
            (None, CallFailure::Lost(reason)) => self.exchange.lose(reason),
            _ => {}
        }
    }

    fn explain(&self, refusal: Refusal, purpose: Purpose) -> CallFailure {
        match (refusal.status, refusal.failure) {
            (Some(status @ StatusCode::NOT_FOUND), _)
                if purpose != Purpose::Initialize && self.session().is_some() =>
            {
                CallFailure::Lost(expired(status))
            }
            (Some(StatusCode::METHOD_NOT_ALLOWED), CallFailure::HttpStatus { status, reason })
                if purpose == Purpose::Initialize =>
            {
                let hint = "a server of the older HTTP+SSE transport needs transport: sse";
                let reason = format!("{reason}; {hint}");
                CallFailure::HttpStatus { status, reason }
            }
            (_, failure) => failure,
        }
    }
}

fn expired(status: StatusCode) -> String {
    format!(
        "the server ended the session (HTTP status {})",
        status.as_u16()
    )
}

fn version_header(version: &ProtocolVersion) -> Option<(HeaderName, HeaderValue)> {
    let value = HeaderValue::from_str(version.as_str()).ok()?;
    Some((VERSION, value))
}

/// An answer without an id, in the response to a request, belongs to that request.
fn owed_to(request: &RequestId, mut incoming: Incoming) -> Incoming {
    if let Incoming::Error { id, .. } | Incoming::Broken { id, .. } | Incoming::Oversized { id, .. } =
        &mut incoming
        && id.is_none()
    {
        *id = Some(request.clone());
    }
    incoming
}
