//! HTTP+SSE, the transport of 2024-11-05: one long GET brings everything the server says, and a
//! POST to the address that it names first brings everything to the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url};
use rmcp::model::ClientJsonRpcMessage;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::event::{Data, Event, Events};
use super::exchange::Exchange;
use super::origin::{self, Kind, Origin, POST, cause};
use super::{CallFailure, ConnectError};
use crate::config::Secret;

pub(super) struct Stream {
    origin: Origin,
    exchange: Arc<Exchange>,
    /// Where messages are posted.
    endpoint: Url,
    stop: CancellationToken,
    _reader: AbortOnDropHandle<()>,
}

/// Opens the stream and waits for the address.
pub(super) async fn open(
    url: &Secret,
    headers: &BTreeMap<String, Secret>,
    exchange: &Arc<Exchange>,
) -> Result<Stream, ConnectError> {
    let origin = Origin::new(url, headers, exchange)?;
    let mut accept = HeaderMap::new();
    accept.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/event-stream"),
    );
    let response = origin
        .send(Method::GET, origin.url(), accept, None)
        .await
        .map_err(|refusal| ConnectError(refusal.failure.to_string()))?;
    if origin::kind(&response) != Some(Kind::Events) {
        return Err(ConnectError(origin.strange(&response).to_string()));
    }
    let mut reader = Reader {
        response,
        events: Events::new(exchange.message_limit()),
        ready: Vec::new().into_iter(),
    };
    let address = loop {
        let event = reader.next().await.map_err(ConnectError)?;
        if let ("endpoint", Data::Whole(address)) = (event.name.as_str(), event.data) {
            break String::from_utf8_lossy(&address).into_owned();
        }
    };
    let endpoint = origin.join(&address).ok_or_else(|| {
        ConnectError(
            "the server names an address of another origin for messages, which is not followed"
                .into(),
        )
    })?;
    let stop = CancellationToken::new();
    let reading = read(reader, exchange.clone(), stop.clone());
    Ok(Stream {
        origin,
        exchange: exchange.clone(),
        endpoint,
        stop,
        _reader: AbortOnDropHandle::new(tokio::spawn(reading)),
    })
}

impl Stream {
    pub(super) async fn send(&self, message: &ClientJsonRpcMessage) {
        let Ok(body) = serde_json::to_vec(message).map(Bytes::from) else {
            return;
        };
        let ticket = match message {
            ClientJsonRpcMessage::Request(request) => {
                Some(self.exchange.ticket(request.id.clone()))
            }
            _ => None,
        };
        let over = async {
            match &ticket {
                // The answer may come before the response to the POST.
                Some(ticket) => ticket.over().await,
                None => {
                    tokio::time::sleep(POST).await;
                    let server = self.exchange.server();
                    tracing::warn!(%server, "a message was not accepted in time");
                }
            }
        };
        let post = self
            .origin
            .send(Method::POST, &self.endpoint, HeaderMap::new(), Some(body));
        let refusal = tokio::select! {
            sent = post => match sent {
                Ok(_) => return,
                Err(refusal) => refusal,
            },
            () = over => return,
            () = self.stop.cancelled() => return,
        };
        if let CallFailure::Lost(reason) = &refusal.failure {
            self.exchange.lose(reason);
        }
        match &ticket {
            Some(ticket) => self.exchange.fail(ticket, refusal.failure).await,
            None => {
                let server = self.exchange.server();
                tracing::warn!(%server, "a message was not accepted: {}", refusal.failure);
            }
        }
    }

    pub(super) fn abandon(&self) {
        self.stop.cancel();
    }
}

async fn read(mut reader: Reader, exchange: Arc<Exchange>, stop: CancellationToken) {
    let reading = async {
        loop {
            match reader.next().await {
                Ok(event) if matches!(event.name.as_str(), "" | "message") => {
                    for incoming in event.data.into_incoming() {
                        exchange.receive(incoming).await;
                    }
                }
                Ok(_) => {}
                Err(why) => return exchange.lose(why),
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = stop.cancelled() => {}
    }
}

struct Reader {
    response: Response,
    events: Events,
    ready: std::vec::IntoIter<Event>,
}

impl Reader {
    /// The next event, or why there will be none.
    async fn next(&mut self) -> Result<Event, String> {
        loop {
            if let Some(event) = self.ready.next() {
                return Ok(event);
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.ready = self.events.feed(&chunk).into_iter(),
                Ok(None) => return Err("the server closed its event stream".into()),
                Err(error) => return Err(format!("the event stream broke: {}", cause(error))),
            }
        }
    }
}
