//! A call over a pipe without rmcp between: the line goes to the server and its answer to the
//! caller, each without a stop on the way.
//!
//! For connections of the 2025 era, whose requests carry nothing but what they ask.

use serde::Serialize;
use serde_json::{Map, Value};

use super::exchange::{Call, Exchange};
use super::stdio::Process;
use super::{CallFailure, GIVEN_UP};
use crate::json::Json;

#[derive(Serialize)]
struct Message<'a, P> {
    jsonrpc: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    request_id: i64,
    reason: &'a str,
}

/// Makes the call. Dropping the future tells the server that it is cancelled.
pub(super) async fn call(
    process: &Process,
    exchange: &Exchange,
    tool: &str,
    arguments: &Map<String, Value>,
) -> Result<Json, CallFailure> {
    let call = exchange.call()?;
    let message = Message {
        jsonrpc: "2.0",
        id: Some(call.id()),
        method: "tools/call",
        params: ToolCall {
            name: tool,
            arguments,
        },
    };
    let sending = process.send(&message);
    let mut waiting = Waiting { process, call };
    sending.await;
    waiting.call.answer().await
}

/// A call that was sent. Dropped before its answer, it is cancelled.
struct Waiting<'a> {
    process: &'a Process,
    call: Call<'a>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.call.give_up() {
            return;
        }
        let message = Message {
            jsonrpc: "2.0",
            id: None,
            method: "notifications/cancelled",
            params: Cancelled {
                request_id: self.call.id(),
                reason: GIVEN_UP,
            },
        };
        let sending = self.process.send(&message);
        // It is queued already unless the server does not read; nobody is left here to wait for that.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(sending);
        }
    }
}
