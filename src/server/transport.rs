//! The client's end of the wire: lines in, lines out, and the moments at which either ends.
//!
//! Knows the handshake as far as rmcp needs protecting during it; knows no tools.

use std::collections::HashSet;
use std::future::Future;
use std::io;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta, JsonRpcError, JsonRpcMessage,
    JsonRpcResponse, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::wire::{self, Decoded, Line, Lines};

/// How much is read at a time.
const READ: usize = 64 * 1024;

pub(crate) type Arrives = Box<dyn Fn(&mut ClientRequest) + Send + Sync>;

/// Newline-delimited JSON-RPC over a pair of streams, for rmcp's service loop.
pub(crate) struct LineTransport<R> {
    input: R,
    lines: Lines,
    input_ended: bool,
    /// The requests that the service has and will answer.
    unanswered: HashSet<RequestId>,
    /// True until rmcp has committed to a protocol era; see [`commits`].
    opening: bool,
    output: Output,
    /// Sees each request in the order of arrival, which the tasks that rmcp makes of them lose.
    arrives: Arrives,
    /// Cancelled by us at the end of input, by others to end the input.
    stop: CancellationToken,
}

impl<R: AsyncRead + Unpin + Send> LineTransport<R> {
    pub(crate) fn new<W>(input: R, output: W, stop: CancellationToken, arrives: Arrives) -> Self
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        Self {
            input,
            lines: Lines::new(wire::MAX_LINE),
            input_ended: false,
            unanswered: HashSet::new(),
            opening: true,
            output: Output::start(output, stop.clone()),
            arrives,
            stop,
        }
    }

    /// What a line means for the service, once the line's own errors are answered.
    fn accept(&mut self, line: Line) -> Option<ClientJsonRpcMessage> {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong { id } => {
                tracing::warn!("a message over {} bytes was not read", wire::MAX_LINE);
                self.output.reply(wire::too_long_reply(id.as_deref()));
                return None;
            }
        };
        let mut message = match wire::decode(&bytes) {
            Decoded::Message(message) => *message,
            Decoded::Reply(reply) => {
                tracing::debug!("answered without the service: {reply}");
                self.output.reply(reply);
                return None;
            }
            Decoded::Ignored(reason) => {
                tracing::debug!("ignored: {reason}");
                return None;
            }
        };
        if self.opening {
            // rmcp ends the whole service when anything but a request comes before the handshake,
            // and clients do send notifications there.
            let JsonRpcMessage::Request(request) = &message else {
                tracing::debug!("ignored before the handshake: {message:?}");
                return None;
            };
            self.opening = !commits(&request.request);
        }
        match &mut message {
            JsonRpcMessage::Request(request) => {
                self.unanswered.insert(request.id.clone());
                (self.arrives)(&mut request.request);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.unanswered.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }
}

/// Whether rmcp takes this request, read before the handshake, as the start of a session. It keeps
/// waiting after a ping, a `server/discover`, and whatever it refuses; this says the same.
fn commits(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28)
                .is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}

impl<R: AsyncRead + Unpin + Send + 'static> Transport<RoleServer> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let JsonRpcMessage::Response(JsonRpcResponse { id, .. })
        | JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) = &message
        {
            self.unanswered.remove(id);
        }
        // Queued here and not in the future: rmcp spawns each future by itself, and a progress
        // notification must not overtake the result it belongs to.
        let written = serde_json::to_string(&message)
            .map(|line| self.output.queue(line))
            .map_err(io::Error::other);
        async move {
            written?.await.unwrap_or_else(|_| {
                Err(io::Error::new(
                    io::ErrorKind::BrokenPipe,
                    "the client is gone",
                ))
            })
        }
    }

    /// Cancel-safe, as rmcp asks: every byte read is in `self.lines` before the next await.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            while let Some(line) = self.lines.next_line() {
                if let Some(message) = self.accept(line) {
                    return Some(message);
                }
            }
            if self.input_ended {
                let last = self.lines.last_line();
                if let Some(message) = last.and_then(|line| self.accept(line)) {
                    return Some(message);
                }
                self.stop.cancel();
            }
            if self.stop.is_cancelled() {
                if self.unanswered.is_empty() {
                    return None;
                }
                // With the end reported now, rmcp would leave its loop while handlers may still be
                // waiting for that loop to send something. Every handler is ending by itself, and
                // rmcp asks again after each answer.
                return std::future::pending().await;
            }
            self.lines.buffer().reserve(READ);
            let read = tokio::select! {
                biased;
                () = self.stop.cancelled() => continue,
                read = self.input.read_buf(self.lines.buffer()) => read,
            };
            match read {
                Ok(0) => self.input_ended = true,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!("cannot read from the client any more: {error}");
                    self.input_ended = true;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.finish().await;
        Ok(())
    }
}

type Written = oneshot::Sender<io::Result<()>>;

/// The only writer of the output: whole lines, in the order in which they were queued.
struct Output {
    queue: Option<mpsc::UnboundedSender<(String, Written)>>,
    writer: Option<JoinHandle<()>>,
}

impl Output {
    fn start<W>(output: W, stop: CancellationToken) -> Self
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (queue, queued) = mpsc::unbounded_channel();
        Self {
            queue: Some(queue),
            writer: Some(tokio::spawn(write_lines(output, queued, stop))),
        }
    }

    /// Unbounded on purpose: what waits here is bounded by the requests that are in flight, and
    /// the order must be settled without waiting.
    fn queue(&self, line: String) -> oneshot::Receiver<io::Result<()>> {
        let (written, wait) = oneshot::channel();
        if let Some(queue) = &self.queue {
            // The writer is gone only when the client is; the dropped `written` says so.
            let _ = queue.send((line, written));
        }
        wait
    }

    fn reply(&self, line: String) {
        drop(self.queue(line));
    }

    async fn finish(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            // It fails only by a panic, which the runtime has reported.
            let _ = writer.await;
        }
    }
}

async fn write_lines<W: AsyncWrite + Unpin>(
    mut output: W,
    mut queued: mpsc::UnboundedReceiver<(String, Written)>,
    stop: CancellationToken,
) {
    while let Some((mut line, written)) = queued.recv().await {
        line.push('\n');
        let result = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        }
        .await;
        let failed = result.as_ref().err().map(ToString::to_string);
        // Whoever queued it may not care.
        let _ = written.send(result);
        if let Some(error) = failed {
            tracing::warn!("cannot write to the client any more: {error}");
            stop.cancel();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use rmcp::model::{EmptyResult, JsonRpcRequest, ServerResult};

    use super::*;

    // contract: S8
    #[test]
    fn what_opens_a_session_is_what_rmcp_takes_for_it() {
        let modern = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
        let future = modern.replace("2026-07-28", "2099-01-01");
        let initialize = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}"#;
        let cases = [
            ("initialize", initialize, true),
            ("tools/list", modern, true),
            ("tools/list", &future, false),
            ("tools/list", "{}", false),
            ("server/discover", modern, false),
            ("ping", "{}", false),
        ];
        for (method, params, expected) in cases {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let JsonRpcMessage::Request(JsonRpcRequest { request, .. }) =
                serde_json::from_str::<ClientJsonRpcMessage>(&line).unwrap()
            else {
                panic!("{line} is a request");
            };
            assert_eq!(commits(&request), expected, "{method} {params}");
        }
    }

    // contract: S8
    #[tokio::test]
    async fn noise_is_answered_or_dropped_and_service_goes_on() {
        let input = concat!(
            r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
            "\nnonsense\n",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        );
        let (output, mut seen) = tokio::io::duplex(4096);
        let stop = CancellationToken::new();
        let mut transport =
            LineTransport::new(input.as_bytes(), output, stop.clone(), Box::new(|_| ()));
        for id in [1, 2] {
            let Some(JsonRpcMessage::Request(request)) = transport.receive().await else {
                panic!("ping {id} gets through");
            };
            assert_eq!(request.id, RequestId::Number(id));
        }
        assert!(!stop.is_cancelled());
        assert!(
            transport.receive().now_or_never().is_none(),
            "two answers are owed"
        );
        for id in [1, 2] {
            let pong = ServerResult::EmptyResult(EmptyResult {});
            let message = ServerJsonRpcMessage::response(pong, RequestId::Number(id));
            transport.send(message).await.unwrap();
        }
        assert!(transport.receive().await.is_none());
        assert!(stop.is_cancelled(), "the end of input stops everything");
        transport.close().await.unwrap();
        let mut text = String::new();
        seen.read_to_string(&mut text).await.unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains("-32700"), "{text}");
    }
}
