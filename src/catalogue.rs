//! What one server offers, under the names that programs use. Pure: how the list was fetched, and
//! whether the server still lives, is not known here.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

use serde_json::Value;

use crate::config::ToolRules;
use crate::downstream::DownstreamTool;
use crate::result::{OutputSchema, Wrap};
use crate::signature::{self, Parameters, Returns};
use crate::tool::{ServerName, ToolName, sanitize};

/// One callable tool.
#[derive(Debug)]
pub struct Entry {
    pub name: ToolName,
    /// The name before a collision's suffix, by which rules match as well (contract C7).
    pub unsuffixed: ToolName,
    /// What the server calls it.
    pub original: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    /// The server says that calling it changes nothing.
    pub read_only: bool,
    pub wrap: Wrap,
    /// Parameters whose own names end in the underscore that otherwise stands for a keyword.
    pub underscored: Vec<String>,
    /// Compiled at the first call: most of a long list is never called.
    compiled: OnceLock<Option<OutputSchema>>,
}

impl Entry {
    /// The declared output schema, when it can be enforced.
    pub fn enforced_schema(&self) -> Option<&OutputSchema> {
        self.compiled
            .get_or_init(|| {
                let schema = self.output_schema.as_ref()?;
                OutputSchema::compile(schema)
                    .inspect_err(|reason| {
                        tracing::warn!(tool = %self.name, "output schema not enforced: {reason}");
                    })
                    .ok()
            })
            .as_ref()
    }

    /// The tool as a Python stub, with the classes it needs (contract M2).
    pub fn stub(&self) -> String {
        signature::stub(self.name.as_str(), &self.input_schema, self.returns())
    }

    /// The same on one line.
    pub fn signature(&self) -> String {
        signature::line(self.name.as_str(), &self.input_schema, self.returns())
    }

    pub fn parameters(&self) -> Parameters {
        signature::parameters(&self.input_schema)
    }

    /// What the declared input schema has against these arguments. Asked after a refusal only: the
    /// server decides what it takes.
    pub fn objection(&self, arguments: &Value) -> Option<String> {
        OutputSchema::compile(&self.input_schema)
            .ok()?
            .violation(arguments)
    }

    fn returns(&self) -> Returns<'_> {
        let Some(schema) = &self.output_schema else {
            return Returns::Undeclared;
        };
        let only_result = schema
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|properties| properties.len() == 1 && properties.contains_key("result"));
        match self.wrap {
            Wrap::Marked if only_result => Returns::Unwrapped(schema),
            Wrap::Unmarked if only_result => Returns::PerhapsUnwrapped(schema),
            _ => Returns::Value(schema),
        }
    }
}

/// The tools of one server that the rules permit, by name.
#[derive(Debug, Default)]
pub struct Catalogue {
    entries: BTreeMap<ToolName, Entry>,
}

impl Catalogue {
    pub fn new(server: &ServerName, mut tools: Vec<DownstreamTool>, rules: &ToolRules) -> Self {
        // The order of original names decides who keeps a name that two of them want, so that it
        // does not depend on the order in which the server happens to list them.
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|later, first| {
            let same = later.name == first.name;
            if same {
                tracing::warn!(%server, tool = first.name, "listed twice; the first one counts");
            }
            same
        });
        let prefix = server.prefix();
        let plain = |tool: &DownstreamTool| format!("{prefix}{}", sanitize(&tool.name));
        // A suffix never takes a name that a tool has of its own.
        let own: HashSet<String> = tools.iter().map(plain).collect();
        let mut taken: HashSet<String> = HashSet::new();
        // Those before it are taken: a server may have thousands of tools that collide.
        let mut next_suffix: HashMap<String, u64> = HashMap::new();
        let marks = tools
            .iter()
            .any(|tool| marks_wrapping(tool.output_schema.as_ref()));
        let mut entries = BTreeMap::new();
        for tool in tools {
            let unsuffixed = plain(&tool);
            let name = if taken.contains(&unsuffixed) {
                let next = next_suffix.entry(unsuffixed.clone()).or_insert(2);
                loop {
                    let name = format!("{unsuffixed}_{next}");
                    *next += 1;
                    if !taken.contains(&name) && !own.contains(&name) {
                        break name;
                    }
                }
            } else {
                unsuffixed.clone()
            };
            taken.insert(name.clone());
            let (name, unsuffixed) = (ToolName::new(&name), ToolName::new(&unsuffixed));
            if !rules.permits(&name, &unsuffixed) {
                continue;
            }
            let wrap = match (marks_wrapping(tool.output_schema.as_ref()), marks) {
                (true, _) => Wrap::Marked,
                (false, true) => Wrap::MarksSome,
                (false, false) => Wrap::Unmarked,
            };
            let read_only = tool
                .annotations
                .as_ref()
                .and_then(|annotations| annotations.get("readOnlyHint"))
                .and_then(Value::as_bool)
                .unwrap_or(false);
            let entry = Entry {
                underscored: signature::underscored(&tool.input_schema),
                name: name.clone(),
                unsuffixed,
                original: tool.name,
                title: tool.title,
                description: tool.description,
                input_schema: tool.input_schema,
                output_schema: tool.output_schema,
                read_only,
                wrap,
                compiled: OnceLock::new(),
            };
            entries.insert(name, entry);
        }
        Self { entries }
    }

    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(&ToolName::new(name))
    }

    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.entries.keys()
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// FastMCP's mark on the schema of a tool whose results it wraps (contract R4).
fn marks_wrapping(schema: Option<&Value>) -> bool {
    schema
        .and_then(|schema| schema.get("x-fastmcp-wrap-result"))
        .and_then(Value::as_bool)
        == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;

    fn tool(name: &str) -> DownstreamTool {
        DownstreamTool {
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: json!({"type": "object"}),
            output_schema: None,
            annotations: None,
            meta: None,
        }
    }

    fn rules(yaml: &str) -> ToolRules {
        crate::config::Config::parse(yaml, Path::new("test"), &|_| None)
            .unwrap()
            .tools
    }

    fn names(tools: &[&str], yaml: &str) -> Vec<(String, String)> {
        let tools = tools.iter().map(|name| tool(name)).collect();
        Catalogue::new(&ServerName::new("my-srv"), tools, &rules(yaml))
            .entries()
            .map(|entry| (entry.name.to_string(), entry.original.clone()))
            .collect()
    }

    // contract: C7
    #[test]
    fn colliding_tools_stay_callable_in_the_order_of_their_original_names() {
        for (tools, expected) in [
            (&["b", "a"][..], &[("a", "a"), ("b", "b")][..]),
            (
                &["get.x", "get-x"],
                &[("get_x", "get-x"), ("get_x_2", "get.x")],
            ),
            (
                &["get-x", "get.x", "get_x_2"],
                &[
                    ("get_x", "get-x"),
                    ("get_x_2", "get_x_2"),
                    ("get_x_3", "get.x"),
                ],
            ),
            (&["é", "ü", "_"], &[("_", "_"), ("__2", "é"), ("__3", "ü")]),
            (&["same", "same"], &[("same", "same")]),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, original)| (format!("mcp__my_srv__{name}"), (*original).to_owned()))
                .collect();
            assert_eq!(names(tools, ""), expected, "{tools:?}");
        }
    }

    // contract: C7
    #[test]
    fn thousands_of_tools_may_collide() {
        let tools: Vec<String> = (0x4e00..0x4e00 + 10_000)
            .filter_map(char::from_u32)
            .map(String::from)
            .chain(["__3".to_owned()])
            .collect();
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let found = names(&tools, "");
        assert_eq!(found.len(), tools.len());
        let last = found.iter().find(|(_, original)| original == tools[9_999]);
        // Two to ten thousand and one, since one of the names belongs to a tool.
        assert_eq!(last.unwrap().0, "mcp__my_srv____10001");
    }

    // contract: C4 C7
    #[test]
    fn rules_match_the_final_name_or_the_one_without_the_suffix() {
        let tools = ["get-x", "get.x", "put"];
        for (yaml, expected) in [
            (
                "tools: {allow: ['mcp__my_srv__get_x']}",
                &["get_x", "get_x_2"][..],
            ),
            ("tools: {allow: ['mcp__my_srv__get_x_2']}", &["get_x_2"]),
            ("tools: {block: ['mcp__my_srv__get_x']}", &["put"]),
            (
                "tools: {block: ['mcp__my_srv__get_x_*']}",
                &["get_x", "put"],
            ),
            ("tools: {allow: []}", &[]),
            ("tools: {}", &["get_x", "get_x_2", "put"]),
        ] {
            let found: Vec<_> = names(&tools, yaml)
                .into_iter()
                .map(|(name, _)| name)
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|name| format!("mcp__my_srv__{name}"))
                .collect();
            assert_eq!(found, expected, "{yaml}");
        }
    }

    // contract: R4
    #[test]
    fn a_server_that_marks_one_tool_is_known_to_mark() {
        let mut marked = tool("list");
        marked.output_schema = Some(json!({"type": "object", "x-fastmcp-wrap-result": true}));
        let catalogue =
            Catalogue::new(&ServerName::new("s"), vec![marked, tool("get")], &rules(""));
        assert_eq!(catalogue.get("mcp__s__list").unwrap().wrap, Wrap::Marked);
        assert_eq!(catalogue.get("mcp__s__get").unwrap().wrap, Wrap::MarksSome);
        let plain = Catalogue::new(&ServerName::new("s"), vec![tool("get")], &rules(""));
        assert_eq!(plain.get("mcp__s__get").unwrap().wrap, Wrap::Unmarked);
    }
}
