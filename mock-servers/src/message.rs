//! JSON-RPC as text: reads what a client sends, writes what a server answers.
//!
//! Ids, arguments and results stay text throughout, so that numbers and odd nesting go out exactly
//! as they came in or as the scenario wrote them.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// One message from the client.
#[derive(Deserialize)]
pub(crate) struct Incoming {
    #[serde(default)]
    pub(crate) id: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) params: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) result: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) error: Option<Box<RawValue>>,
}

/// What the mock looks at in a message's params; everything else it ignores.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Params {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) arguments: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
    #[serde(default)]
    pub(crate) protocol_version: Option<String>,
    #[serde(default)]
    pub(crate) request_id: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) input_responses: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) notifications: Option<Box<RawValue>>,
    #[serde(default, rename = "_meta")]
    pub(crate) meta: Meta,
}

#[derive(Default, Deserialize)]
pub(crate) struct Meta {
    #[serde(default, rename = "progressToken")]
    pub(crate) progress_token: Option<Box<RawValue>>,
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) protocol_version: Option<String>,
    #[serde(default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) client_capabilities: Option<Box<RawValue>>,
}

impl Params {
    pub(crate) fn read(params: Option<&RawValue>) -> Result<Self, serde_json::Error> {
        params.map_or_else(
            || Ok(Self::default()),
            |params| serde_json::from_str(params.get()),
        )
    }
}

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const HEADER_MISMATCH: i64 = -32020;
pub(crate) const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// The body of an answer: the text of its `result` or `error` member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    Result(String),
    Error(String),
}

impl Body {
    pub(crate) fn error(code: i64, message: &str) -> Self {
        Body::Error(json!({ "code": code, "message": message }).to_string())
    }

    pub(crate) fn unsupported_version(requested: Option<&str>, supported: &[String]) -> Self {
        let error = json!({
            "code": UNSUPPORTED_PROTOCOL_VERSION,
            "message": "Unsupported protocol version",
            "data": { "requested": requested, "supported": supported },
        });
        Body::Error(error.to_string())
    }

    pub(crate) fn answer(&self, id: &str) -> Vec<u8> {
        match self {
            Body::Result(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            Body::Error(error) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
        }
        .into_bytes()
    }
}

pub(crate) fn notification(method: &str, params: Option<&Value>) -> Vec<u8> {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if let Some(params) = params {
        message["params"] = params.clone();
    }
    message.to_string().into_bytes()
}

pub(crate) fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        .to_string()
        .into_bytes()
}

pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";
