//! What a server asks of us, and what it is told.
//!
//! It does not pass through rmcp, which takes on as many requests as come: a server that asks without
//! end and reads no answer would fill our memory. Here it is not read any further.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rmcp::model::{
    ClientJsonRpcMessage, ClientResult, CustomResult, ErrorCode, ErrorData, RequestId,
};
use serde_json::json;

use super::Link;
use super::exchange::Exchange;
use super::words;

/// How many replies may be on their way.
const AT_ONCE: usize = 32;

/// The answer to a request, from a client that announced no capability.
pub(super) fn reply(method: &str, id: RequestId) -> ClientJsonRpcMessage {
    let result = match method {
        "ping" => json!({}),
        "roots/list" => json!({"roots": []}),
        "elicitation/create" => json!({"action": "decline"}),
        _ => {
            // As long as they like, and this waits until they read.
            let method = words::excerpt(method);
            let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None);
            return ClientJsonRpcMessage::error(error, Some(id));
        }
    };
    ClientJsonRpcMessage::response(ClientResult::CustomResult(CustomResult::new(result)), id)
}

/// Sends them for as long as it is let.
pub(super) async fn send(exchange: Arc<Exchange>, link: Arc<Link>) {
    let mut sending = FuturesUnordered::new();
    loop {
        tokio::select! {
            reply = exchange.next_reply(), if sending.len() < AT_ONCE => {
                sending.push(link.send(reply));
            }
            Some(()) = sending.next() => {}
        }
    }
}
