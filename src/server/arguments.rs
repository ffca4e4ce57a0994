//! The arguments of our own three tools, read as leniently as is safe.
//!
//! Pure. A mistake becomes a text for the model, which can repair its call, and no protocol error,
//! which most clients keep from it.

use serde_json::{Map, Value};

use super::wire::quoted;
use crate::helpers::{Selection, ToolNames, kind};

/// `execute_program`'s program.
pub(crate) fn code(arguments: Option<&Map<String, Value>>) -> Result<String, String> {
    let parameter = Parameter {
        tool: "execute_program",
        name: "code",
        form: "a string of Python source",
        example: r#"{"code": "print(await list_callable_tools())"}"#,
    };
    match parameter.find(arguments)? {
        Value::String(code) if code.trim().is_empty() => Err(parameter.wrong("it is empty")),
        Value::String(code) => Ok(code.clone()),
        other => Err(parameter.wrong(&format!("got {}", kind(other)))),
    }
}

/// `inspect_tool`'s tool, or tools.
pub(crate) fn tool_names(arguments: Option<&Map<String, Value>>) -> Result<ToolNames, String> {
    let parameter = Parameter {
        tool: "inspect_tool",
        name: "tool_name",
        form: "a string, a name as list_callable_tools gives it, or an array of them",
        example: r#"{"tool_name": "mcp__server__tool"}"#,
    };
    let value = parameter.find(arguments)?;
    ToolNames::read(value).map_err(|what| parameter.wrong(&what))
}

/// What `list_callable_tools` is to list. Unknown parameters are no mistake: some clients invent
/// one for a tool that needs none.
pub(crate) fn selection(arguments: Option<&Map<String, Value>>) -> Result<Selection, String> {
    let Some(arguments) = arguments else {
        return Ok(Selection::default());
    };
    Selection::read(arguments).map_err(|what| {
        format!("list_callable_tools: {what}. Example: {{\"query\": \"expenses\", \"detail\": \"signature\", \"limit\": 5}}")
    })
}

struct Parameter {
    tool: &'static str,
    name: &'static str,
    form: &'static str,
    example: &'static str,
}

impl Parameter {
    fn find<'a>(&self, arguments: Option<&'a Map<String, Value>>) -> Result<&'a Value, String> {
        let given = arguments.filter(|arguments| !arguments.is_empty());
        match given {
            Some(given) => given.get(self.name).ok_or_else(|| {
                let names: Vec<_> = given.keys().take(5).map(|key| quoted(key)).collect();
                self.wrong(&format!("it is missing; got {}", names.join(", ")))
            }),
            None => Err(self.wrong("it is missing; the call has no arguments")),
        }
    }

    fn wrong(&self, what: &str) -> String {
        let Self {
            tool,
            name,
            form,
            example,
        } = self;
        format!("{tool} needs the parameter '{name}', {form}: {what}. Example: {example}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Reader<T> = fn(Option<&Map<String, Value>>) -> Result<T, String>;

    fn read<T: std::fmt::Debug>(reader: Reader<T>, arguments: &Value) -> String {
        match reader(arguments.as_object()) {
            Ok(value) => format!("ok: {value:?}"),
            Err(error) => error,
        }
    }

    // contract: S4, S5
    #[test]
    fn arguments_are_understood_or_the_mistake_is_named() {
        let long = "k".repeat(1000);
        let cases = [
            read(code, &json!({"code": "print(1)"})),
            read(code, &json!({"code": "print(1)", "timeout": 5})),
            read(code, &json!(null)),
            read(code, &json!({})),
            read(code, &json!({"program": "print(1)", "lang": "py"})),
            read(code, &json!({ long: 1 })),
            read(code, &json!({"code": ["print(1)"]})),
            read(code, &json!({"code": "  \n"})),
            read(tool_names, &json!({"tool_name": "mcp__a__b"})),
            read(tool_names, &json!({"tool_name": "\"mcp__a__b\""})),
            read(tool_names, &json!({"tool_name": " mcp__a__b\n"})),
            read(tool_names, &json!({"name": "mcp__a__b"})),
            read(tool_names, &json!({"tool_name": null})),
            read(tool_names, &json!({"tool_name": ""})),
            read(
                tool_names,
                &json!({"tool_name": ["mcp__a__b", "mcp__a__c"]}),
            ),
            read(tool_names, &json!({"tool_name": "[\"mcp__a__b\"]"})),
            read(selection, &json!(null)),
            read(selection, &json!({"random_string": "x"})),
            read(selection, &json!({"limit": -1})),
        ];
        insta::assert_snapshot!(cases.join("\n"));
    }
}
