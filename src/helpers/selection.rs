//! The parameters of `list_callable_tools` and `inspect_tool`, read once and leniently: clients are
//! known to send numbers and lists as strings of JSON.

use serde_json::{Map, Value};

/// Matches shown unless a limit says otherwise.
const MATCHES: usize = 20;
/// Tools shown with more than their names unless a limit says otherwise.
const DETAILED: usize = 100;
/// Tools inspected by one call.
const INSPECTED: usize = 50;

/// What of the list is wanted (contract M1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    pub query: Option<String>,
    /// Its name as configured, or as it stands in tool names.
    pub server: Option<String>,
    pub detail: Detail,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detail {
    #[default]
    Names,
    Summary,
    Signature,
}

impl Selection {
    pub const PARAMETERS: [&'static str; 4] = ["query", "server", "detail", "limit"];

    /// The error says which parameter is wrong and what would be right.
    pub fn read(arguments: &Map<String, Value>) -> Result<Self, String> {
        let detail = match text(arguments, "detail")?
            .map(|detail| detail.to_ascii_lowercase())
            .as_deref()
        {
            None | Some("names" | "name") => Detail::Names,
            Some("summary" | "summaries") => Detail::Summary,
            Some("signature" | "signatures") => Detail::Signature,
            Some(_) => {
                return Err("'detail' is \"names\", \"summary\" or \"signature\"".to_owned());
            }
        };
        let limit = match arguments.get("limit") {
            None | Some(Value::Null) => None,
            Some(Value::Number(number)) => Some(number.as_f64()),
            Some(Value::String(text)) if text.trim().is_empty() => None,
            Some(Value::String(text)) => Some(text.trim().parse().ok()),
            Some(_) => Some(None),
        };
        let limit = match limit {
            None => None,
            Some(Some(number)) if number >= 1.0 => Some(number as usize),
            Some(_) => return Err("'limit' is a whole number, 1 or more".to_owned()),
        };
        Ok(Self {
            query: text(arguments, "query")?,
            server: text(arguments, "server")?,
            detail,
            limit,
        })
    }

    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(match (&self.query, self.detail) {
            (Some(_), _) => MATCHES,
            (None, Detail::Names) => usize::MAX,
            (None, _) => DETAILED,
        })
    }
}

/// A string parameter; absent, null and empty are one.
fn text(arguments: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let text = text.trim();
            Ok((!text.is_empty()).then(|| text.to_owned()))
        }
        Some(_) => Err(format!("'{name}' is a string")),
    }
}

/// The tools to inspect (contract M2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolNames {
    One(String),
    Many(Vec<String>),
}

impl ToolNames {
    pub fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(given) => {
                // No tool's name begins like JSON.
                if let Ok(inner @ (Value::String(_) | Value::Array(_))) =
                    serde_json::from_str(given)
                {
                    return match inner {
                        Value::String(name) => Self::one(&name),
                        list => Self::read(&list),
                    };
                }
                Self::one(given)
            }
            Value::Array(names) if names.is_empty() => Err("the list is empty".to_owned()),
            Value::Array(names) if names.len() > INSPECTED => Err(format!(
                "at most {INSPECTED} tools at once; got {}",
                names.len()
            )),
            Value::Array(names) => names
                .iter()
                .map(|name| match name {
                    Value::String(name) => Ok(name.trim().to_owned()),
                    other => Err(format!("the list holds {}", kind(other))),
                })
                .collect::<Result<_, _>>()
                .map(Self::Many),
            other => Err(format!("got {}", kind(other))),
        }
    }

    fn one(name: &str) -> Result<Self, String> {
        match name.trim() {
            "" => Err("it is empty".to_owned()),
            name => Ok(Self::One(name.to_owned())),
        }
    }
}

/// What a wrong value is, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // contract: M1
    #[test]
    fn a_selection_is_understood_or_the_mistake_is_named() {
        let read = |arguments: Value| {
            let read = Selection::read(arguments.as_object().unwrap());
            read.map(|s| (s.query.clone(), s.server.clone(), s.detail, s.limit()))
        };
        let some = |text: &str| Some(text.to_owned());
        for (arguments, expected) in [
            (json!({}), Ok((None, None, Detail::Names, usize::MAX))),
            (
                json!({"query": "", "server": null, "limit": null}),
                Ok((None, None, Detail::Names, usize::MAX)),
            ),
            (
                json!({"random_string": "x"}),
                Ok((None, None, Detail::Names, usize::MAX)),
            ),
            (
                json!({"query": " a "}),
                Ok((some("a"), None, Detail::Names, MATCHES)),
            ),
            (
                json!({"detail": "Signature", "server": "hr"}),
                Ok((None, some("hr"), Detail::Signature, DETAILED)),
            ),
            (json!({"limit": 3.0}), Ok((None, None, Detail::Names, 3))),
            (
                json!({"limit": "7", "detail": "summary"}),
                Ok((None, None, Detail::Summary, 7)),
            ),
            (
                json!({"limit": 0}),
                Err("'limit' is a whole number, 1 or more".to_owned()),
            ),
            (
                json!({"limit": "many"}),
                Err("'limit' is a whole number, 1 or more".to_owned()),
            ),
            (
                json!({"limit": []}),
                Err("'limit' is a whole number, 1 or more".to_owned()),
            ),
            (
                json!({"detail": "all"}),
                Err("'detail' is \"names\", \"summary\" or \"signature\"".to_owned()),
            ),
            (
                json!({"query": ["a"]}),
                Err("'query' is a string".to_owned()),
            ),
        ] {
            assert_eq!(read(arguments.clone()), expected, "{arguments}");
        }
    }

    // contract: M2
    #[test]
    fn one_name_or_several_are_understood_as_json_or_as_its_text() {
        let many = |names: &[&str]| {
            Ok(ToolNames::Many(
                names.iter().map(|n| (*n).to_owned()).collect(),
            ))
        };
        let one = |name: &str| Ok(ToolNames::One(name.to_owned()));
        for (given, expected) in [
            (json!("mcp__a__b"), one("mcp__a__b")),
            (json!("\"mcp__a__b\""), one("mcp__a__b")),
            (
                json!(["mcp__a__b", " mcp__a__c"]),
                many(&["mcp__a__b", "mcp__a__c"]),
            ),
            (json!("[\"mcp__a__b\"]"), many(&["mcp__a__b"])),
            (json!([]), Err("the list is empty".to_owned())),
            (json!("[]"), Err("the list is empty".to_owned())),
            (json!(["a", 1]), Err("the list holds a number".to_owned())),
            (json!({}), Err("got an object".to_owned())),
            (json!(" "), Err("it is empty".to_owned())),
        ] {
            assert_eq!(ToolNames::read(&given), expected, "{given}");
        }
        let too_many = Value::Array(vec![json!("a"); INSPECTED + 1]);
        assert_eq!(
            ToolNames::read(&too_many),
            Err("at most 50 tools at once; got 51".to_owned())
        );
    }
}
