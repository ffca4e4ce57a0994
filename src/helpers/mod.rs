//! Introspection: what is callable, what a tool takes, how the servers are. One set of functions
//! serves programs and the MCP tools of the same names, so that the two cannot disagree. Budgets
//! are not known here: helpers are free.

mod selection;

use serde_json::{Map, Value, json};

pub(crate) use self::selection::kind;
pub use self::selection::{Detail, Selection, ToolNames};

use crate::registry::{Needs, NoRoute, Registry};
use crate::search::{self, Document};
use crate::supervisor::ServerState;
use crate::tool::{ServerName, ToolName};

/// The helpers that a program can call, by name (contract P5).
pub const NAMES: [&str; 3] = ["list_callable_tools", "inspect_tool", "server_status"];

/// The longest summary, in characters.
const MAX_SUMMARY: usize = 200;

/// The answer of `list_callable_tools`.
#[derive(Debug, PartialEq)]
pub struct ToolList {
    pub names: Vec<ToolName>,
    /// The same tools in the detail that was asked for.
    pub shown: Vec<Value>,
    /// How many there are, when not all are shown.
    pub left_out: Option<String>,
    /// Servers whose tools are missing from the list, each with the reason.
    pub down: Vec<(ServerName, String)>,
}

impl ToolList {
    /// What is said beside the list when a server is missing from it.
    pub fn missing(&self) -> Option<String> {
        if self.down.is_empty() {
            return None;
        }
        let lines: Vec<String> = self
            .down
            .iter()
            .map(|(server, reason)| {
                format!("Server '{server}' is not connected ({reason}); it is being reconnected.")
            })
            .collect();
        Some(format!(
            "{}\nThe tools of a server that is not connected are not in the list.",
            lines.join("\n")
        ))
    }
}

/// The callable tools that were asked for; without a query in the order of their names.
pub async fn list_callable_tools(
    registry: &Registry,
    selection: &Selection,
) -> Result<ToolList, String> {
    registry.settled(Needs::All).await;
    let wanted = |server: &ServerName| {
        let asked = selection.server.as_deref();
        asked.is_none_or(|asked| asked == server.as_str() || asked == server.sanitized())
    };
    let mut servers = registry.states().map(|(server, _)| server);
    if !servers.any(wanted) && selection.server.is_some() {
        return Err(no_server(registry, selection));
    }
    let live: Vec<_> = registry.live().collect();
    let total = live.iter().map(|(_, live)| live.catalogue.len()).sum();
    let mut entries: Vec<_> = live
        .iter()
        .filter(|(server, _)| wanted(server))
        .flat_map(|(_, live)| live.catalogue.entries())
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(query) = &selection.query {
        let parameters: Vec<String> = entries
            .iter()
            .map(|entry| parameter_names(&entry.input_schema))
            .collect();
        let documents: Vec<Document<'_>> = entries
            .iter()
            .zip(&parameters)
            .map(|(entry, parameters)| Document {
                texts: vec![
                    (entry.name.as_str(), 3.0),
                    (entry.title.as_deref().unwrap_or_default(), 2.0),
                    (entry.description.as_deref().unwrap_or_default(), 1.0),
                    (parameters, 1.0),
                ],
            })
            .collect();
        let ranked = search::rank(query, &documents);
        entries = ranked.into_iter().map(|at| entries[at]).collect();
    }
    let matching = entries.len();
    entries.truncate(selection.limit());
    let shown = entries
        .iter()
        .map(|entry| match selection.detail {
            Detail::Names => json!(entry.name.as_str()),
            Detail::Signature => json!(entry.signature()),
            Detail::Summary => {
                let text = entry.description.as_deref().or(entry.title.as_deref());
                json!({"name": entry.name.as_str(), "summary": first_sentence(text.unwrap_or_default())})
            }
        })
        .collect();
    Ok(ToolList {
        names: entries.iter().map(|entry| entry.name.clone()).collect(),
        shown,
        left_out: left_out(entries.len(), matching, total),
        down: registry
            .down()
            .into_iter()
            .filter(|(server, _)| wanted(server))
            .collect(),
    })
}

fn no_server(registry: &Registry, selection: &Selection) -> String {
    let names: Vec<String> = registry
        .states()
        .map(|(name, _)| name.to_string())
        .collect();
    let asked: String = selection
        .server
        .iter()
        .flat_map(|name| name.chars())
        .take(80)
        .collect();
    if names.is_empty() {
        return format!("[Server not found] '{asked}': no servers are configured");
    }
    format!(
        "[Server not found] '{asked}'. Servers: {}.",
        names.join(", ")
    )
}

fn left_out(shown: usize, matching: usize, total: usize) -> Option<String> {
    if shown == total {
        return None;
    }
    let mut text = format!("{shown} of {total} callable tools are shown");
    match matching {
        0 => text.push_str(": none matches. Use other words, or list without query and server"),
        _ if shown < matching && matching < total => {
            text.push_str(&format!("; {matching} match, a higher limit shows more"));
        }
        _ if shown < matching => text.push_str("; a higher limit shows more"),
        _ => text.push_str(": those that match"),
    }
    text.push('.');
    Some(text)
}

fn parameter_names(schema: &Value) -> String {
    let names: Vec<&str> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect();
    names.join(" ")
}

/// A description up to the end of its first sentence or paragraph, on one line.
fn first_sentence(text: &str) -> String {
    let text = text.trim();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let ends = ['.', '!', '?'];
    let end = line
        .match_indices(ends)
        .map(|(at, mark)| at + mark.len())
        .find(|&at| {
            let next = line[at..]
                .strip_prefix(' ')
                .and_then(|rest| rest.chars().next());
            // "e.g. this" goes on; "Docs. 3 kinds" does not.
            at == line.len() || next.is_some_and(|next| !next.is_lowercase())
        })
        .unwrap_or(line.len());
    let sentence = &line[..end];
    match sentence.char_indices().nth(MAX_SUMMARY) {
        Some((cut, _)) => format!("{}…", &sentence[..cut]),
        None => sentence.to_owned(),
    }
}

/// One tool as an object, or several in an array in which unknown ones say so in their place
/// (contract M2). The error is the text that says why a single one is not there.
pub async fn inspect_tools(registry: &Registry, names: &ToolNames) -> Result<Value, String> {
    match names {
        ToolNames::One(name) => inspect_tool(registry, name).await,
        ToolNames::Many(names) => {
            let tools = names.iter().map(|name| async move {
                let tool = inspect_tool(registry, name).await;
                tool.unwrap_or_else(|error| json!({"name": name, "error": error}))
            });
            Ok(futures::future::join_all(tools).await.into())
        }
    }
}

/// A tool as its server describes it, or the text that says why there is none.
pub async fn inspect_tool(registry: &Registry, name: &str) -> Result<Value, String> {
    registry.settled(Needs::Tool(name)).await;
    let route = match registry.resolve(name) {
        Ok(route) => route,
        Err(NoRoute::Down { server, reason }) => {
            return Err(format!(
                "[Tool not found] '{name}': server '{server}' is not connected ({reason}); it is being reconnected, retry shortly."
            ));
        }
        Err(NoRoute::Unknown { closest }) if closest.is_empty() => {
            return Err(format!(
                "[Tool not found] '{name}'. list_callable_tools gives the names that exist."
            ));
        }
        Err(NoRoute::Unknown { closest }) => {
            let closest: Vec<&str> = closest.iter().map(ToolName::as_str).collect();
            return Err(format!(
                "[Tool not found] '{name}'. Closest: {}.",
                closest.join(", ")
            ));
        }
    };
    let entry = route
        .live
        .catalogue
        .get(name)
        .expect("a route leads to a tool");
    let mut tool = Map::new();
    tool.insert("name".into(), json!(entry.name.as_str()));
    if entry.original != entry.name.as_str()[route.server.prefix().len()..] {
        tool.insert("original_name".into(), json!(entry.original));
    }
    tool.insert(
        "description".into(),
        json!(entry.description.as_deref().or(entry.title.as_deref())),
    );
    tool.insert("signature".into(), json!(entry.stub()));
    tool.insert("inputSchema".into(), entry.input_schema.clone());
    tool.insert("outputSchema".into(), json!(entry.output_schema));
    if entry.output_schema.is_none() {
        tool.insert(
            "note".into(),
            json!("The server declares no output schema: look at the value in a script, e.g. print one result, before relying on its shape."),
        );
    }
    Ok(Value::Object(tool))
}

/// Every configured server: `{name: {connected, tools, error}}` (contract P5).
pub fn server_status(registry: &Registry) -> Value {
    registry
        .states()
        .map(|(name, state)| {
            let tools = match &state {
                ServerState::Up(live) => live.catalogue.len(),
                _ => 0,
            };
            let error = state.why_not();
            let status = json!({"connected": error.is_none(), "tools": tools, "error": error});
            (name.to_string(), status)
        })
        .collect::<Map<_, _>>()
        .into()
}

/// A helper as a program calls it. The error is what the program's exception says.
pub async fn call(
    registry: &Registry,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<Value, String> {
    let allowed: &[&str] = match name {
        "inspect_tool" => &["tool_name"],
        "list_callable_tools" => &Selection::PARAMETERS,
        _ => &[],
    };
    if let Some(unknown) = arguments
        .keys()
        .find(|key| !allowed.contains(&key.as_str()))
    {
        let takes = match allowed {
            [] => "no arguments".to_owned(),
            names => names
                .iter()
                .map(|name| format!("{name}=..."))
                .collect::<Vec<_>>()
                .join(", "),
        };
        return Err(format!(
            "{name}() got an unexpected argument '{unknown}'; it takes {takes}"
        ));
    }
    match name {
        "list_callable_tools" => {
            let selection = Selection::read(arguments).map_err(|wrong| format!("{name}(): {wrong}"))?;
            list_callable_tools(registry, &selection)
                .await
                .map(|list| list.shown.into())
        }
        "inspect_tool" => match arguments.get("tool_name") {
            Some(given) => {
                let names = ToolNames::read(given)
                    .map_err(|wrong| format!("inspect_tool(tool_name=...): {wrong}"))?;
                // An unknown tool is an answer, not an error: the text says what is close (P5).
                Ok(inspect_tools(registry, &names).await.unwrap_or_else(Value::String))
            }
            None => Err("inspect_tool() needs tool_name=..., e.g. inspect_tool(tool_name='mcp__server__tool')".to_owned()),
        },
        "server_status" => Ok(server_status(registry)),
        other => Err(format!("'{}' is not a helper", other.chars().take(80).collect::<String>())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: M1
    #[test]
    fn a_summary_is_the_first_sentence() {
        for (text, expected) in [
            ("Lists issues. Slowly.", "Lists issues."),
            ("Lists\nissues\n\nArgs:\n x", "Lists issues"),
            ("Takes e.g. a date. And more.", "Takes e.g. a date."),
            ("Version 1.5 of it", "Version 1.5 of it"),
            ("  No end", "No end"),
            ("Really? Yes.", "Really?"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
        assert_eq!(
            first_sentence(&"ä".repeat(500)).chars().count(),
            MAX_SUMMARY + 1
        );
    }

    // contract: M1
    #[test]
    fn it_is_said_how_many_of_how_many_are_shown() {
        for (shown, matching, total, expected) in [
            (5, 5, 5, None),
            (0, 0, 0, None),
            (
                2,
                2,
                9,
                Some("2 of 9 callable tools are shown: those that match."),
            ),
            (
                2,
                4,
                9,
                Some("2 of 9 callable tools are shown; 4 match, a higher limit shows more."),
            ),
            (
                2,
                9,
                9,
                Some("2 of 9 callable tools are shown; a higher limit shows more."),
            ),
            (
                0,
                0,
                9,
                Some(
                    "0 of 9 callable tools are shown: none matches. Use other words, or list without query and server.",
                ),
            ),
        ] {
            assert_eq!(left_out(shown, matching, total).as_deref(), expected);
        }
    }
}
