//! The pages of a `tools/list` answer into tools.
//!
//! Pure. Each tool is read by itself, so that one which nobody can understand costs the others
//! nothing; and a server that pages for ever is cut off.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::CallFailure;
use super::words::Words;
use crate::config::Mask;
use crate::tool::ServerName;

const MAX_PAGES: usize = 1_000;
const MAX_TOOLS: usize = 10_000;
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The longest name of a tool, in bytes. The protocol knows 128.
const MAX_NAME: usize = 1_024;

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct DownstreamTool {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub annotations: Option<Value>,
    pub meta: Option<Value>,
}

/// The pages read so far.
pub(super) struct Listing {
    server: ServerName,
    secrets: Mask,
    tools: Vec<DownstreamTool>,
    names: HashSet<String>,
    cursors: HashSet<String>,
    cursor: Option<String>,
    pages: usize,
    bytes: usize,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(default, rename = "nextCursor")]
    next_cursor: Option<Value>,
}

impl Listing {
    pub(super) fn new(server: ServerName, secrets: Mask) -> Self {
        Self {
            server,
            secrets,
            tools: Vec::new(),
            names: HashSet::new(),
            cursors: HashSet::new(),
            cursor: None,
            pages: 0,
            bytes: 0,
        }
    }

    /// Where the next page begins; `None` for the first.
    pub(super) fn cursor(&self) -> Option<&String> {
        self.cursor.as_ref()
    }

    /// Takes a page. Whether there is another to ask for.
    pub(super) fn add(&mut self, page: &str) -> Result<bool, CallFailure> {
        let page_bytes = page.len();
        let page: Page<'_> = serde_json::from_str(page).map_err(|error| {
            let error = self.excerpt(&error.to_string());
            CallFailure::Unreadable(format!("its list of tools: {error}"))
        })?;
        self.pages += 1;
        self.bytes += page_bytes;
        for raw in page.tools {
            if self.tools.len() == MAX_TOOLS {
                return Ok(self.stop(&format!("it has more than {MAX_TOOLS} tools")));
            }
            match read_tool(raw.get()) {
                Ok(tool) if self.names.insert(tool.name.clone()) => self.tools.push(tool),
                Ok(tool) => self.dropped(&format!("'{}' is listed twice", tool.name)),
                Err(why) => self.dropped(&why),
            }
        }
        let Some(Value::String(cursor)) = page.next_cursor else {
            return Ok(false);
        };
        if self.pages == MAX_PAGES {
            return Ok(self.stop(&format!("it has more than {MAX_PAGES} pages")));
        }
        if self.bytes >= MAX_BYTES {
            return Ok(self.stop(&format!("it has more than {MAX_BYTES} bytes")));
        }
        if !self.cursors.insert(cursor.clone()) {
            return Ok(self.stop("a page cursor came twice"));
        }
        self.cursor = Some(cursor);
        Ok(true)
    }

    pub(super) fn finish(self) -> Vec<DownstreamTool> {
        self.tools
    }

    fn stop(&self, why: &str) -> bool {
        tracing::warn!(
            server = %self.server,
            tools = self.tools.len(),
            "the list of tools was not read to its end: {why}"
        );
        false
    }

    fn dropped(&self, why: &str) {
        let why = self.excerpt(why);
        tracing::warn!(server = %self.server, "left out a tool: {why}");
    }

    fn excerpt(&self, text: &str) -> String {
        Words::excerpt(text).masked(&self.secrets)
    }
}

fn read_tool(raw: &str) -> Result<DownstreamTool, String> {
    let mut tool: Map<String, Value> =
        serde_json::from_str(raw).map_err(|error| error.to_string())?;
    let mut text = |key: &str| match tool.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let name = text("name").filter(|name| !name.is_empty());
    let name = name.ok_or("it has no name")?;
    if name.len() > MAX_NAME {
        let bytes = name.len();
        return Err(format!("its name has {bytes} bytes, more than {MAX_NAME}"));
    }
    let (title, description) = (text("title"), text("description"));
    let mut object = |key: &str| tool.remove(key).filter(Value::is_object);
    Ok(DownstreamTool {
        // A missing schema, or `true`, forbids nothing; and arguments are always an object.
        input_schema: object("inputSchema").unwrap_or_else(|| json!({"type": "object"})),
        output_schema: object("outputSchema"),
        annotations: object("annotations"),
        meta: object("_meta"),
        name,
        title,
        description,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        Listing::new(ServerName::new("s"), Mask::default())
    }

    // contract: D1
    #[test]
    fn a_bad_tool_costs_the_others_nothing() {
        let mut listing = listing();
        let page = r#"{"tools": [
            {"name": "good", "inputSchema": {"type": "object", "x": 123456789012345678901}},
            {"name": "no_schema"}, {"name": "open", "inputSchema": true},
            {"name": 7}, "nonsense", {"inputSchema": {}}, {"name": ""}, {"name": "good"},
            {"name": "last", "title": 3, "description": "d", "outputSchema": true, "_meta": {"a": 1}}
        ], "nextCursor": null}"#;
        assert_eq!(listing.add(page), Ok(false));
        let tools = listing.finish();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good", "no_schema", "open", "last"]);
        assert_eq!(
            tools[0].input_schema["x"].to_string(),
            "123456789012345678901"
        );
        assert_eq!(tools[1].input_schema, json!({"type": "object"}));
        assert_eq!(tools[2].input_schema, json!({"type": "object"}));
        assert_eq!(tools[3].output_schema, None);
        assert_eq!(tools[3].title, None);
        assert_eq!(tools[3].meta, Some(json!({"a": 1})));
    }

    #[test]
    fn a_tool_whose_name_nobody_could_write_is_left_out() {
        let longest = "x".repeat(MAX_NAME);
        let page = json!({"tools": [{"name": longest}, {"name": longest.clone() + "x"}]});
        let mut listing = listing();
        listing.add(&page.to_string()).unwrap();
        let tools = listing.finish();
        assert_eq!(tools.len(), 1);
        assert_eq!(tools[0].name, longest);
    }

    #[test]
    fn pages_are_followed_until_a_cursor_repeats() {
        let mut listing = listing();
        let page = |name: &str, cursor: &str| {
            format!(r#"{{"tools": [{{"name": "{name}"}}], "nextCursor": "{cursor}"}}"#)
        };
        assert_eq!(listing.add(&page("a", "1")), Ok(true));
        assert_eq!(listing.cursor(), Some(&"1".to_owned()));
        assert_eq!(listing.add(&page("b", "2")), Ok(true));
        assert_eq!(listing.add(&page("c", "1")), Ok(false));
        assert_eq!(listing.finish().len(), 3);
    }

    #[test]
    fn an_endless_pager_is_cut_off() {
        let mut listing = listing();
        let mut pages = 0;
        loop {
            pages += 1;
            let page = format!(r#"{{"tools": [], "nextCursor": "{pages}"}}"#);
            if !listing.add(&page).unwrap() {
                break;
            }
        }
        assert_eq!(pages, MAX_PAGES);
    }

    #[test]
    fn too_many_tools_are_cut_off() {
        let tools: Vec<_> = (0..MAX_TOOLS + 5)
            .map(|i| json!({"name": i.to_string()}))
            .collect();
        let mut listing = listing();
        assert_eq!(listing.add(&json!({"tools": tools}).to_string()), Ok(false));
        assert_eq!(listing.finish().len(), MAX_TOOLS);
    }

    #[test]
    fn what_is_no_list_is_unreadable() {
        assert!(matches!(
            listing().add("{}"),
            Err(CallFailure::Unreadable(_))
        ));
    }
}
