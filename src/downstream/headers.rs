//! The headers by which a request of the 2026 era repeats what it is, so that a gateway need not
//! read bodies: method, name, and the arguments that a tool's schema marks with `x-mcp-header`.

use std::collections::HashMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::{ClientRequest, JsonObject};
use serde_json::Value;

use super::DownstreamTool;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAMETER: &str = "mcp-param-";
const MARK: &str = "x-mcp-header";

/// The marked parameters of each tool that has some.
#[derive(Debug, Default)]
pub(super) struct Marked(HashMap<String, Vec<Parameter>>);

#[derive(Debug, PartialEq)]
struct Parameter {
    /// Keys from the arguments down to the value.
    path: Vec<String>,
    header: HeaderName,
}

impl Marked {
    pub(super) fn of(tools: &[DownstreamTool]) -> Self {
        let marked = tools.iter().filter_map(|tool| {
            let mut parameters = Vec::new();
            find(&tool.input_schema, &mut Vec::new(), &mut parameters);
            (!parameters.is_empty()).then(|| (tool.name.clone(), parameters))
        });
        Self(marked.collect())
    }

    pub(super) fn headers(&self, request: &ClientRequest) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.extend(encode(request.method()).map(|method| (METHOD, method)));
        if let ClientRequest::CallToolRequest(call) = request {
            let name = &*call.params.name;
            headers.extend(encode(name).map(|name| (NAME, name)));
            if let (Some(marked), Some(arguments)) = (self.0.get(name), &call.params.arguments) {
                headers.extend(marked.iter().filter_map(|parameter| {
                    let value = encode(&parameter.text(arguments)?)?;
                    Some((parameter.header.clone(), value))
                }));
            }
        }
        headers
    }
}

impl Parameter {
    fn text(&self, arguments: &JsonObject) -> Option<String> {
        let (first, rest) = self.path.split_first()?;
        let value = rest
            .iter()
            .try_fold(arguments.get(first)?, |value, key| value.get(key))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// Marks count on properties that are reached through properties alone. The schema was read with
/// bounded depth.
fn find(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Parameter>) {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return;
    };
    for (name, property) in properties {
        path.push(name.clone());
        let mark = property.get(MARK).and_then(Value::as_str);
        let header = mark.and_then(|mark| format!("{PARAMETER}{mark}").parse().ok());
        found.extend(header.map(|header| Parameter {
            path: path.clone(),
            header,
        }));
        find(property, path, found);
        path.pop();
    }
}

/// A header's value, in base64 where it could not travel as it is.
fn encode(text: &str) -> Option<HeaderValue> {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_matches(' ') == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text))).ok()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequest, CallToolRequestParams};
    use serde_json::json;

    use super::*;

    #[test]
    fn values_travel_as_they_are_or_in_base64() {
        for (text, expected) in [
            ("plain text", "plain text"),
            ("", ""),
            (" led", "=?base64?IGxlZA==?="),
            ("naïve", "=?base64?bmHDr3Zl?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(encode(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn marked_arguments_become_headers() {
        let tool = DownstreamTool {
            name: "t".into(),
            title: None,
            description: None,
            input_schema: json!({"properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
                "absent": {"type": "string", "x-mcp-header": "Absent"},
                "bad": {"type": "string", "x-mcp-header": "not a token"},
                "plain": {"type": "string"}
            }}),
            output_schema: None,
            annotations: None,
            meta: None,
        };
        let arguments = json!({"region": "eu", "deep": {"n": 7}, "bad": "x", "plain": "y"});
        let params =
            CallToolRequestParams::new("t").with_arguments(arguments.as_object().unwrap().clone());
        let call = CallToolRequest::new(params);
        let headers = Marked::of(&[tool]).headers(&ClientRequest::CallToolRequest(call));
        let found: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        let expected = [
            ("mcp-method", "tools/call"),
            ("mcp-name", "t"),
            ("mcp-param-region", "eu"),
            ("mcp-param-n", "7"),
        ];
        assert_eq!(found, expected);
    }
}
