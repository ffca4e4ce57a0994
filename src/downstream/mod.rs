//! One connection to one downstream server: how it is made, listed, called and closed.
//!
//! rmcp's service layer speaks the protocol; what carries the messages is ours, since the stock
//! transports turn an unreadable answer into a call that never ends. A result stays the text that
//! the server wrote, from the wire to the caller. This module knows no filters, budgets, deadlines
//! or backoff, and it never repeats a call.

mod direct;
mod event;
mod exchange;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod headers;
mod http;
mod line;
mod origin;
mod replies;
mod scan;
mod sse;
mod stdio;
#[cfg(test)]
mod tests;
mod tools;
mod wire;
mod words;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Once};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, ClientCapabilities,
    ClientJsonRpcMessage, ClientRequest, ErrorCode, Implementation, InitializeRequestParams,
    ListToolsRequest, PaginatedRequestParams, ProtocolVersion, RequestId, ServerJsonRpcMessage,
    ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, PeerRequestOptions,
    RunningService, ServiceError,
};
use rmcp::{Peer, RoleClient};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::config::{ServerConfig, Transport};
use crate::json::Json;
use exchange::Exchange;
pub use tools::DownstreamTool;

/// How long an answer that was read before a loss may take to reach its call.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// How long an orderly shutdown may take before everything is cut off.
const SHUTDOWN: Duration = Duration::from_secs(3);

/// What a server is told of a request that was given up.
const GIVEN_UP: &str = "nobody waits for it any more";

/// How long after a lost subscription the next one is asked for.
const RESUBSCRIBE: Duration = Duration::from_secs(5);

/// Why a call gave no result, by culprit: the server said no, it spoke nonsense, or it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CallFailure {
    /// A JSON-RPC error.
    #[error("{message} (code {code})")]
    Rejected { code: i64, message: String },
    #[error("HTTP status {status}{}{reason}", if reason.is_empty() { "" } else { ": " })]
    HttpStatus { status: u16, reason: String },
    #[error("the answer has {bytes} bytes, more than max_tool_result_bytes={limit} allows")]
    TooLarge { bytes: u64, limit: u64 },
    /// An answer came, but it is no result.
    #[error("{0}")]
    Unreadable(String),
    #[error("the server asked for further input, which nobody can give inside a program")]
    NeedsInput,
    /// The connection ended; the call may have had its effect.
    #[error("{0}")]
    Lost(String),
}

/// Why no connection came about, in one line for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(String);

/// A live connection. Dropping the last handle kills the server process or drops the session.
#[derive(Clone)]
pub struct Connection(Arc<Live>);

struct Live {
    service: RunningService<RoleClient, InitializeRequestParams>,
    exchange: Arc<Exchange>,
    link: Arc<Link>,
    version: String,
    info: String,
    has_tools: bool,
    /// Whether a call needs nothing of rmcp: in the 2026 era it adds to each request who we are.
    calls_directly: bool,
    _replying: AbortOnDropHandle<()>,
    _subscription: Option<AbortOnDropHandle<()>>,
}

/// What carries the messages.
enum Link {
    Stdio(stdio::Process),
    Http(http::Endpoint),
    Sse(Box<sse::Stream>),
    #[cfg(any(test, fuzzing))]
    Memory(fuzzing::Stub),
}

impl Link {
    fn send(self: &Arc<Self>, message: ClientJsonRpcMessage) -> BoxFuture<'static, ()> {
        if let Self::Stdio(process) = &**self {
            return process.send(&message).boxed();
        }
        let link = self.clone();
        async move {
            match &*link {
                Self::Stdio(_) => {}
                Self::Http(endpoint) => endpoint.send(message).await,
                Self::Sse(stream) => stream.send(&message).await,
                #[cfg(any(test, fuzzing))]
                Self::Memory(stub) => stub.send(&message),
            }
        }
        .boxed()
    }

    async fn shutdown(&self) {
        match self {
            Self::Stdio(process) => process.shutdown().await,
            Self::Http(endpoint) => endpoint.shutdown().await,
            Self::Sse(stream) => stream.abandon(),
            #[cfg(any(test, fuzzing))]
            Self::Memory(_) => {}
        }
    }

    /// Ends at once and without waiting.
    fn abandon(&self) {
        match self {
            Self::Stdio(process) => process.abandon(),
            Self::Http(endpoint) => endpoint.abandon(),
            Self::Sse(stream) => stream.abandon(),
            #[cfg(any(test, fuzzing))]
            Self::Memory(_) => {}
        }
    }
}

/// The link and its book, as rmcp wants them. Sending never fails for rmcp: what becomes of a
/// request, a failure to send it included, is told through the book.
struct Carrier {
    exchange: Arc<Exchange>,
    link: Arc<Link>,
}

impl rmcp::transport::Transport<RoleClient> for Carrier {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.exchange.sending(&message);
        self.link.send(message).map(Ok)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.exchange.next().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        // The link outlives a refused handshake, and `Connection` closes it.
        Ok(())
    }
}

/// Chooses the TLS provider, which must happen before the first HTTP client is built.
pub fn install_crypto() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Fails only if the process has one already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Starts or reaches a server and performs the handshake. The caller bounds the time: cancelling
/// `give_up` closes what was begun in order and ends the attempt; dropping it, at once.
pub async fn connect(
    server: &ServerConfig,
    max_result_bytes: usize,
    give_up: &CancellationToken,
) -> Result<Connection, ConnectError> {
    let exchange = Arc::new(Exchange::new(server, max_result_bytes));
    let link = match &server.transport {
        Transport::Stdio {
            command,
            args,
            env,
            cwd,
            ..
        } => {
            let spawned = stdio::spawn(command, args, env, cwd.as_deref(), &exchange).await;
            let masked = |ConnectError(why): ConnectError| {
                ConnectError(exchange.secrets().apply(&why).into_owned())
            };
            Link::Stdio(spawned.map_err(masked)?)
        }
        Transport::Http { url, headers } => {
            install_crypto();
            Link::Http(http::Endpoint::new(url, headers, &exchange)?)
        }
        Transport::Sse { url, headers } => {
            install_crypto();
            let opened = sse::open(url, headers, &exchange);
            let opened = give_up.run_until_cancelled(opened).await;
            Link::Sse(Box::new(opened.unwrap_or_else(|| Err(given_up()))?))
        }
    };
    establish(exchange, link, give_up).await
}

async fn establish(
    exchange: Arc<Exchange>,
    link: Link,
    give_up: &CancellationToken,
) -> Result<Connection, ConnectError> {
    let link = Arc::new(link);
    let replying = tokio::spawn(replies::send(exchange.clone(), link.clone()));
    let replying = AbortOnDropHandle::new(replying);
    let service = tokio::select! {
        service = handshake(&exchange, &link) => service.inspect_err(|_| link.abandon())?,
        () = give_up.cancelled() => {
            close(&link).await;
            return Err(given_up());
        }
    };
    let peer = service.peer().clone();
    let Some(server_info) = peer.peer_info() else {
        return Err(ConnectError("the server did not introduce itself".into()));
    };
    let version = &server_info.protocol_version;
    if !ProtocolVersion::KNOWN_VERSIONS.contains(version) {
        return Err(unknown_version(&exchange, version));
    }
    let info = match &server_info.server_info {
        Some(info) => format!("{} {}", info.name, info.version),
        None => String::from("unnamed"),
    };
    let tools = server_info.capabilities.tools.as_ref();
    let announces = tools.is_some_and(|tools| tools.list_changed == Some(true));
    let subscription = (announces && !version.has_initialize())
        .then(|| AbortOnDropHandle::new(tokio::spawn(subscribe(peer, exchange.clone()))));
    Ok(Connection(Arc::new(Live {
        version: version.as_str().to_owned(),
        info,
        has_tools: tools.is_some(),
        calls_directly: version.has_initialize(),
        service,
        exchange,
        link,
        _replying: replying,
        _subscription: subscription,
    })))
}

/// `initialize` first: every server of the 2025 era needs it, and one that does not know
/// `server/discover` may die of the question.
async fn handshake(
    exchange: &Arc<Exchange>,
    link: &Arc<Link>,
) -> Result<RunningService<RoleClient, InitializeRequestParams>, ConnectError> {
    let carrier = || Carrier {
        exchange: exchange.clone(),
        link: link.clone(),
    };
    let client = InitializeRequestParams::new(
        ClientCapabilities::default(),
        Implementation::new("ptc-mcp", env!("CARGO_PKG_VERSION")),
    )
    .with_protocol_version(ProtocolVersion::V_2025_11_25);
    let mode = ClientLifecycleMode::Initialize;
    let refusal = match client.clone().serve_with_lifecycle(carrier(), mode).await {
        Ok(service) => return Ok(service),
        Err(error) => error,
    };
    let refused = match handshake_error(exchange, refusal).await {
        Ok(refused) => refused,
        Err(error) => return Err(error),
    };
    let mode = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    match client.serve_with_lifecycle(carrier(), mode).await {
        Ok(service) => Ok(service),
        Err(error) => Err(match handshake_error(exchange, error).await {
            // The first refusal says more than that of a method which older servers do not know.
            Ok(_) => ConnectError(format!("the server refused to initialize: {refused}")),
            Err(error) => error,
        }),
    }
}

/// The server's refusal, or why the handshake failed otherwise.
async fn handshake_error(
    exchange: &Exchange,
    error: ClientInitializeError,
) -> Result<String, ConnectError> {
    if let Some(failure) = exchange.take_handshake_failure() {
        return Err(ConnectError(failure.to_string()));
    }
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            let code = error.code.0;
            Ok(format!("{} (code {code})", error.message))
        }
        ClientInitializeError::ConnectionClosed(_) => Err(ConnectError(exchange.lost().await)),
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => Err(match server_supported.first() {
            Some(version) => unknown_version(exchange, version),
            None => ConnectError("the server names no protocol version that it supports".into()),
        }),
        error => Err(ConnectError(exchange.excerpt(&error.to_string()))),
    }
}

fn unknown_version(exchange: &Exchange, version: &ProtocolVersion) -> ConnectError {
    let known: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .map(ProtocolVersion::as_str)
        .collect();
    ConnectError(format!(
        "the server speaks protocol version '{}', which is none of {}",
        exchange.excerpt(version.as_str()),
        known.join(", ")
    ))
}

/// Keeps a 2026-era server telling us about its tools; what it tells goes through the book.
async fn subscribe(peer: Peer<RoleClient>, exchange: Arc<Exchange>) {
    while exchange.loss().is_none() {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(mut subscription) => {
                // The list was fetched before anybody listened.
                exchange.suspect_change();
                while let Ok(Some(_)) = subscription.next().await {}
            }
            Err(error) => {
                tracing::debug!(server = %exchange.server(), "no subscription: {error}");
            }
        }
        tokio::time::sleep(RESUBSCRIBE).await;
    }
}

impl Connection {
    pub fn protocol_version(&self) -> &str {
        &self.0.version
    }

    /// The server's own name and version, for people.
    pub fn server_info(&self) -> String {
        self.0.info.clone()
    }

    /// Every tool on every page, but for those that cannot be understood and those beyond the caps.
    /// Dropping the future tells the server that the list is cancelled.
    pub async fn list_tools(&self) -> Result<Vec<DownstreamTool>, CallFailure> {
        let exchange = &self.0.exchange;
        let mut listing =
            tools::Listing::new(exchange.server().clone(), exchange.secrets().clone());
        loop {
            let request = ListToolsRequest {
                method: Default::default(),
                params: Some(
                    PaginatedRequestParams::default().with_cursor(listing.cursor().cloned()),
                ),
                extensions: Default::default(),
            };
            let request = ClientRequest::ListToolsRequest(request);
            let answer = self.settled(asked(self.0.service.peer(), request));
            let page = match answer.await {
                Ok(ServerResult::CallToolResult(parcel)) => exchange::unpack(parcel),
                Ok(_) => Err(unexpected()),
                Err(failure) => Err(failure),
            };
            match page {
                Ok(page) => {
                    // Thousands of schemas take a while, in which the client would not be heard.
                    let read = tokio::task::spawn_blocking(move || {
                        let more = listing.add(page.get());
                        (listing, more)
                    });
                    let more;
                    (listing, more) = read.await.expect("reading a list does not panic");
                    if !more? {
                        let tools = listing.finish();
                        if let Link::Http(endpoint) = &*self.0.link {
                            endpoint.learn(&tools);
                        }
                        return Ok(tools);
                    }
                }
                // A server that never claimed to have tools may well not know the method.
                Err(CallFailure::Rejected { code, .. })
                    if !self.0.has_tools && code == i64::from(ErrorCode::METHOD_NOT_FOUND.0) =>
                {
                    return Ok(Vec::new());
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// The raw `result`. Dropping the future tells the server that the call is cancelled.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Json, CallFailure> {
        let result = match &*self.0.link {
            Link::Stdio(process) if self.0.calls_directly => {
                direct::call(process, &self.0.exchange, tool, &arguments).await?
            }
            _ => {
                let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
                let answer = self.settled(self.0.service.peer().call_tool_once(params));
                let CallToolResponse::Complete(parcel) = answer.await? else {
                    return Err(unexpected());
                };
                exchange::unpack(parcel)?
            }
        };
        match result_type(result.get()).as_deref() {
            None | Some("complete") => Ok(result),
            Some("input_required") => Err(CallFailure::NeedsInput),
            Some(other) => Err(CallFailure::Unreadable(format!(
                "a result of type '{}'",
                self.0.exchange.excerpt(other)
            ))),
        }
    }

    /// The outcome of a request, or the reason if the connection is lost first.
    async fn settled<T>(
        &self,
        request: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, CallFailure> {
        tokio::pin!(request);
        let outcome = tokio::select! {
            biased;
            outcome = &mut request => outcome,
            reason = self.closed() => {
                // An answer that came before the loss may still be on its way through rmcp's loop,
                // which ends what is left by itself when it has taken all that there is.
                match tokio::time::timeout(LAST_ANSWERS, request).await {
                    Ok(Ok(answer)) => Ok(answer),
                    _ => return Err(CallFailure::Lost(reason)),
                }
            }
        };
        match outcome {
            Ok(answer) => Ok(answer),
            Err(ServiceError::UnexpectedResponse) => Err(unexpected()),
            Err(ServiceError::McpError(error)) => Err(CallFailure::Rejected {
                code: i64::from(error.code.0),
                message: error.message.into_owned(),
            }),
            Err(error) => {
                // rmcp's loop has ended: normally because the connection was lost before.
                self.0
                    .exchange
                    .lose(format!("the connection is closed: {error}"));
                Err(CallFailure::Lost(self.0.exchange.lost().await))
            }
        }
    }

    /// Resolves when the server says that its tools changed; at once if it did since the last call.
    pub async fn tools_changed(&self) {
        self.0.exchange.tools_changed().await;
    }

    /// Resolves when the connection is lost, with the reason.
    pub async fn closed(&self) -> String {
        self.0.exchange.lost().await
    }

    /// Why it is lost, if it is.
    pub fn loss(&self) -> Option<String> {
        self.0.exchange.loss()
    }

    /// Ends the connection in order, within three seconds.
    pub async fn shutdown(&self) {
        self.0.exchange.lose("it was shut down");
        close(&self.0.link).await;
    }
}

/// A request's answer. Dropping the future tells the server that nobody waits for it.
async fn asked(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
) -> Result<ServerResult, ServiceError> {
    let options = PeerRequestOptions::no_options();
    let handle = peer.send_cancellable_request(request, options).await?;
    let mut waiting = Waiting {
        peer,
        id: Some(handle.id.clone()),
    };
    let answer = handle.await_response().await;
    waiting.id = None;
    answer
}

/// Cancels what is dropped unanswered, as rmcp does for its own calls.
struct Waiting<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        let cancelled = CancelledNotificationParam::new(Some(id), Some(GIVEN_UP.into()));
        let peer = self.peer.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { peer.notify_cancelled(cancelled).await });
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", self.0.exchange.server())
            .field("version", &self.0.version)
            .finish_non_exhaustive()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.link.abandon();
        self.exchange.lose("it was dropped");
    }
}

async fn close(link: &Link) {
    if tokio::time::timeout(SHUTDOWN, link.shutdown())
        .await
        .is_err()
    {
        link.abandon();
    }
}

fn given_up() -> ConnectError {
    ConnectError("the attempt was given up".into())
}

fn unexpected() -> CallFailure {
    CallFailure::Unreadable(String::from("an answer of another kind"))
}

/// The 2026-07-28 discriminator of a result, which is nearly always absent or `complete`.
fn result_type(result: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Tagged<'a> {
        #[serde(borrow, default, rename = "resultType")]
        result_type: Option<&'a RawValue>,
    }
    memchr::memmem::find(result.as_bytes(), b"\"resultType\"")?;
    let Tagged { result_type } = serde_json::from_str(result).ok()?;
    serde_json::from_str(result_type?.get()).ok()
}

/// How many messages there are in what a server wrote, as a pipe cut it. For the benches: no part of
/// the product.
#[doc(hidden)]
pub fn messages_in<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> usize {
    let mut lines = line::Lines::new(limit);
    pieces
        .into_iter()
        .flat_map(|piece| lines.feed(piece))
        .flat_map(line::Line::into_incoming)
        .count()
}
