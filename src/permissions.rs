//! Claude Code's own permission rules for MCP tools, and what they say of one tool.
//!
//! The client sees only that `execute_program` is called; what the person denied it must not happen
//! inside a program either (contract A1). Reading and matching live here; what follows from a
//! verdict does not, and neither does how a person is asked.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::tool::{NAMESPACE, ServerName, ToolName};

/// Where a machine's administrator keeps settings.
#[cfg(target_os = "macos")]
const MANAGED: &str = "/Library/Application Support/ClaudeCode";
#[cfg(not(target_os = "macos"))]
const MANAGED: &str = "/etc/claude-code";

/// No settings file is larger.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Whether a client is the one whose rules these are, by `clientInfo.name`.
pub fn is_claude_code(client: &str) -> bool {
    client.starts_with("claude-code")
}

/// The folders that may hold settings.
#[derive(Debug, Clone)]
pub struct Places {
    managed: PathBuf,
    /// Usually `~/.claude`.
    user: Option<PathBuf>,
    project: Option<PathBuf>,
}

impl Places {
    /// `root` is the client's first root; the working directory stands in for one that is not known.
    pub fn new(env: &dyn Fn(&str) -> Option<OsString>, root: Option<PathBuf>) -> Self {
        let folder = |name: &str| {
            env(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        Self {
            managed: MANAGED.into(),
            user: folder("CLAUDE_CONFIG_DIR")
                .or_else(|| folder("HOME").map(|home| home.join(".claude"))),
            project: folder("CLAUDE_PROJECT_DIR")
                .or(root)
                .or_else(|| std::env::current_dir().ok()),
        }
    }

    /// Every file that may hold rules, or the folder that cannot be listed.
    fn files(&self) -> (Vec<PathBuf>, Option<Broken>) {
        let mut files = vec![self.managed.join("managed-settings.json")];
        let drop_ins = self.managed.join("managed-settings.d");
        let mut broken = None;
        match list(&drop_ins) {
            Ok(found) => files.extend(found),
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                broken = Some(Broken::new(&drop_ins, format!("cannot be listed: {error}")))
            }
        }
        files.extend(self.user.iter().map(|user| user.join("settings.json")));
        if let Some(project) = &self.project {
            let folder = project.join(".claude");
            files.push(folder.join("settings.json"));
            files.push(folder.join("settings.local.json"));
        }
        (files, broken)
    }
}

/// The drop-ins of a folder, in the order of their names.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = Path::new(&name);
        let hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
        if !hidden && name.extension().is_some_and(|ending| ending == "json") {
            found.push(folder.join(name));
        }
    }
    found.sort();
    Ok(found)
}

/// The rules of every settings file, as they are on disk at one moment.
#[derive(Debug, Default)]
pub struct Rules {
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
    broken: Vec<Broken>,
    /// Rules that do nothing, although somebody meant them to.
    idle: Vec<Rule>,
}

/// One rule, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    list: &'static str,
    file: Arc<Path>,
    pattern: Pattern,
}

/// The rule "mcp__crm" in permissions.deny of /home/me/.claude/settings.json
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, list, file) = (&self.text, self.list, self.file.display());
        write!(f, "the rule {text:?} in permissions.{list} of {file}")
    }
}

/// A file whose rules are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    file: PathBuf,
    reason: String,
}

impl Broken {
    fn new(file: &Path, reason: String) -> Self {
        let file = file.to_owned();
        Self { file, reason }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file.display(), self.reason)
    }
}

/// What the rules say of a tool.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    Deny(&'a Rule),
    Ask(&'a Rule),
    /// A file could not be read. It may deny the tool, or have it asked for, and either would come
    /// before any file that allows it.
    Unsure(&'a Broken),
    Allow(&'a Rule),
    /// No rule is about this tool.
    Silent,
}

/// A tool under every name that a rule may have for it.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    pub server: &'a ServerName,
    /// What the server calls it.
    pub original: &'a str,
    /// What programs call it, with and without a collision's suffix.
    pub name: &'a ToolName,
    pub unsuffixed: &'a ToolName,
}

impl Names<'_> {
    /// The client keeps `-` where we write `_`; a rule that was written for the server itself must
    /// hold here as well.
    fn servers(&self) -> [String; 2] {
        [self.server.sanitized(), clients_form(self.server.as_str())]
    }

    fn whole(&self) -> [String; 4] {
        let client = clients_form(self.server.as_str());
        let tool = clients_form(self.original);
        [
            self.name.to_string(),
            self.unsuffixed.to_string(),
            format!("{NAMESPACE}{client}__{tool}"),
            format!("{NAMESPACE}{client}__{}", self.original),
        ]
    }
}

/// Replaces what the client replaces in names.
fn clients_form(name: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars()
        .map(|c| if kept(c) { c } else { '_' })
        .collect()
}

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// `mcp__crm`: every tool of the server.
    Server(String),
    /// A whole name, with `*` for any characters.
    Name(String),
}

/// What becomes of a rule's text.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    Pattern(Pattern),
    /// It is about another kind of tool.
    Other,
    /// It names MCP tools in a way that the client does not honour.
    Idle,
}

impl Meaning {
    fn of(text: &str, allows: bool) -> Self {
        let ours = text.strip_prefix(NAMESPACE);
        if text.contains('(') {
            return if ours.is_some() {
                Self::Idle
            } else {
                Self::Other
            };
        }
        if let Some((before, _)) = text.split_once('*') {
            // To allow, a glob must say whose tools: `mcp__crm__*`.
            let anchored = before
                .strip_prefix(NAMESPACE)
                .and_then(|rest| rest.split_once("__"))
                .is_some_and(|(server, _)| !server.is_empty());
            return match (allows && !anchored, ours) {
                (false, _) => Self::Pattern(Pattern::Name(text.to_owned())),
                (true, Some(_)) => Self::Idle,
                (true, None) => Self::Other,
            };
        }
        match ours {
            None => Self::Other,
            Some(rest) if rest.contains("__") => Self::Pattern(Pattern::Name(text.to_owned())),
            Some(server) => Self::Pattern(Pattern::Server(server.to_owned())),
        }
    }
}

impl Pattern {
    fn matches(&self, names: &Names<'_>) -> bool {
        match self {
            Self::Server(server) => names.servers().contains(server),
            Self::Name(glob) => names.whole().iter().any(|name| is_match(glob, name)),
        }
    }
}

/// Whether a text matches a glob whose only special character is `*`.
fn is_match(glob: &str, text: &str) -> bool {
    let mut pieces = glob.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    // The leftmost place for each piece leaves the most room for those after it.
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

impl Rules {
    /// Reads every file anew. A file that is absent has no rules.
    pub fn read(places: &Places) -> Self {
        let (files, broken) = places.files();
        let mut rules = Self::default();
        rules.broken.extend(broken);
        for file in files {
            match text_of(&file)
                .and_then(|text| text.map_or(Ok(()), |text| rules.add(&file, &text)))
            {
                Ok(()) => {}
                Err(reason) => rules.broken.push(Broken::new(&file, reason)),
            }
        }
        for rule in &rules.idle {
            tracing::warn!("{rule} does nothing: Claude Code skips MCP rules of this form");
        }
        rules
    }

    /// Adds the rules of one file's text, all of them or none.
    fn add(&mut self, file: &Path, text: &str) -> Result<(), String> {
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Ok(());
        }
        let settings: Value =
            serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
        let settings = settings.as_object().ok_or("does not hold a JSON object")?;
        let permissions = match settings.get("permissions") {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Object(permissions)) => permissions,
            Some(_) => return Err("has permissions that are no object".to_owned()),
        };
        let file: Arc<Path> = file.into();
        let mut found = [Vec::new(), Vec::new(), Vec::new()];
        let mut idle = Vec::new();
        for (list, rules) in ["deny", "ask", "allow"].into_iter().zip(&mut found) {
            let texts = match permissions.get(list) {
                None | Some(Value::Null) => continue,
                Some(Value::Array(texts)) => texts,
                Some(_) => return Err(format!("has a permissions.{list} that is no list")),
            };
            for text in texts {
                let text = text
                    .as_str()
                    .ok_or_else(|| format!("has an entry in permissions.{list} that is no text"))?
                    .trim();
                let rule = |pattern| Rule {
                    text: text.to_owned(),
                    list,
                    file: file.clone(),
                    pattern,
                };
                match Meaning::of(text, list == "allow") {
                    Meaning::Pattern(pattern) => rules.push(rule(pattern)),
                    // What allows nothing is on the safe side, and no reason to speak up.
                    Meaning::Idle if list != "allow" => {
                        idle.push(rule(Pattern::Name(text.to_owned())));
                    }
                    Meaning::Idle | Meaning::Other => {}
                }
            }
        }
        let [deny, ask, allow] = found;
        self.deny.extend(deny);
        self.ask.extend(ask);
        self.allow.extend(allow);
        self.idle.extend(idle);
        Ok(())
    }

    /// Deny, then ask, then allow: the first rule that matches decides, however special another is.
    pub fn verdict(&self, names: &Names<'_>) -> Verdict<'_> {
        let first = |rules: &'_ [Rule]| rules.iter().position(|rule| rule.pattern.matches(names));
        if let Some(i) = first(&self.deny) {
            Verdict::Deny(&self.deny[i])
        } else if let Some(i) = first(&self.ask) {
            Verdict::Ask(&self.ask[i])
        } else if let Some(broken) = self.broken.first() {
            Verdict::Unsure(broken)
        } else if let Some(i) = first(&self.allow) {
            Verdict::Allow(&self.allow[i])
        } else {
            Verdict::Silent
        }
    }

    /// The files whose rules are not known.
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }
}

/// A file's text; `None` when there is no such file.
fn text_of(path: &Path) -> Result<Option<String>, String> {
    let read = || {
        // Asked first, since opening a pipe would wait for somebody to write to it.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let mut text = String::new();
        let mut file = std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1);
        file.read_to_string(&mut text)?;
        if file.limit() == 0 {
            return Err(io::Error::other("it is too large"));
        }
        Ok(text)
    };
    match read() {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::sanitize;

    const FILE: &str = "/x/settings.json";

    fn rules(settings: &str) -> Rules {
        let mut rules = Rules::default();
        rules.add(Path::new(FILE), settings).unwrap();
        rules
    }

    /// What the rules say of a tool: the list that decided.
    fn verdict(rules: &Rules, server: &str, tool: &str) -> &'static str {
        let name = ToolName::new(&format!("mcp__{}__{}", sanitize(server), sanitize(tool)));
        let names = Names {
            server: &ServerName::new(server),
            original: tool,
            name: &name,
            unsuffixed: &name,
        };
        match rules.verdict(&names) {
            Verdict::Deny(_) => "deny",
            Verdict::Ask(_) => "ask",
            Verdict::Unsure(_) => "unsure",
            Verdict::Allow(_) => "allow",
            Verdict::Silent => "silent",
        }
    }

    // contract: A1
    #[test]
    fn rules_match_as_the_client_matches_them() {
        // One rule in each list; the tool is `get_issue` of server `github`.
        let cases = [
            ("mcp__github", "deny", "ask", "allow"),
            ("mcp__github__*", "deny", "ask", "allow"),
            ("mcp__github__get_issue", "deny", "ask", "allow"),
            ("mcp__github__get_*", "deny", "ask", "allow"),
            ("mcp__github__*_issue", "deny", "ask", "allow"),
            ("mcp__github__g*t_*ue", "deny", "ask", "allow"),
            (" mcp__github ", "deny", "ask", "allow"),
            // Globs without a server: in deny and ask only.
            ("mcp__*", "deny", "ask", "silent"),
            ("*", "deny", "ask", "silent"),
            ("mcp__git*", "deny", "ask", "silent"),
            ("mcp__*__get_*", "deny", "ask", "silent"),
            ("*get_issue", "deny", "ask", "silent"),
            // About other tools.
            ("mcp__git", "silent", "silent", "silent"),
            ("mcp__github__get", "silent", "silent", "silent"),
            ("mcp__github__get_issue_", "silent", "silent", "silent"),
            ("mcp__github__set_*", "silent", "silent", "silent"),
            ("mcp__GitHub", "silent", "silent", "silent"),
            ("mcp__github__get_issu?", "silent", "silent", "silent"),
            ("mcp__githubx", "silent", "silent", "silent"),
            ("github", "silent", "silent", "silent"),
            ("get_issue", "silent", "silent", "silent"),
            ("Bash", "silent", "silent", "silent"),
            ("", "silent", "silent", "silent"),
            // Parentheses: skipped.
            ("mcp__github(get_issue)", "silent", "silent", "silent"),
            ("mcp__github__*(x:*)", "silent", "silent", "silent"),
            ("Bash(mcp__github:*)", "silent", "silent", "silent"),
        ];
        for (rule, deny, ask, allow) in cases {
            for (list, expected) in [("deny", deny), ("ask", ask), ("allow", allow)] {
                let settings = serde_json::json!({"permissions": {list: [rule]}});
                let rules = rules(&settings.to_string());
                assert_eq!(
                    verdict(&rules, "github", "get_issue"),
                    expected,
                    "{list} {rule}"
                );
            }
        }
    }

    // contract: A1
    #[test]
    fn deny_comes_before_ask_and_ask_before_allow() {
        let special = r#"{"permissions": {"deny": ["mcp__*"], "ask": ["mcp__a__*"], "allow": ["mcp__a__b"]}}"#;
        assert_eq!(verdict(&rules(special), "a", "b"), "deny");
        let special = r#"{"permissions": {"ask": ["mcp__a"], "allow": ["mcp__a__b"]}}"#;
        assert_eq!(verdict(&rules(special), "a", "b"), "ask");
        let mut merged = rules(r#"{"permissions": {"allow": ["mcp__a__b"]}}"#);
        let other = r#"{"permissions": {"deny": ["mcp__a__b"]}}"#;
        merged.add(Path::new("/y/settings.json"), other).unwrap();
        assert_eq!(verdict(&merged, "a", "b"), "deny");
        assert_eq!(
            merged.deny[0].to_string(),
            r#"the rule "mcp__a__b" in permissions.deny of /y/settings.json"#
        );
    }

    // contract: A1 C7
    #[test]
    fn both_forms_of_a_name_are_meant() {
        let cases = [
            ("mcp__my-server__get-item", true),
            ("mcp__my_server__get_item", true),
            ("mcp__my-server__get-*", true),
            ("mcp__my_server__get_*", true),
            ("mcp__my-server", true),
            ("mcp__my_server", true),
            ("mcp__my.server", false),
        ];
        for (rule, denied) in cases {
            let settings = serde_json::json!({"permissions": {"deny": [rule]}});
            let rules = rules(&settings.to_string());
            let expected = if denied { "deny" } else { "silent" };
            assert_eq!(verdict(&rules, "my-server", "get-item"), expected, "{rule}");
        }
        let dotted = rules(r#"{"permissions": {"deny": ["mcp__a_b__c.d", "mcp__x__y_2"]}}"#);
        assert_eq!(verdict(&dotted, "a b", "c.d"), "deny");
        // A collision's suffix, and the name without it.
        let (server, base) = (ServerName::new("x"), ToolName::new("mcp__x__y"));
        let suffixed = Names {
            server: &server,
            original: "y.",
            name: &ToolName::new("mcp__x__y_2"),
            unsuffixed: &base,
        };
        assert!(matches!(dotted.verdict(&suffixed), Verdict::Deny(_)));
        let plain = rules(r#"{"permissions": {"deny": ["mcp__x__y"]}}"#);
        assert!(matches!(plain.verdict(&suffixed), Verdict::Deny(_)));
    }

    // contract: A1
    #[test]
    fn what_cannot_be_understood_is_said() {
        let cases = [
            ("{", "is not JSON: "),
            ("[]", "does not hold a JSON object"),
            (
                r#"{"permissions": []}"#,
                "has permissions that are no object",
            ),
            (
                r#"{"permissions": {"deny": "mcp__a"}}"#,
                "has a permissions.deny that is no list",
            ),
            (
                r#"{"permissions": {"ask": [1]}}"#,
                "has an entry in permissions.ask that is no text",
            ),
        ];
        for (text, expected) in cases {
            let mut rules = Rules::default();
            let reason = rules.add(Path::new(FILE), text).unwrap_err();
            assert!(reason.starts_with(expected), "{text}: {reason}");
        }
        for text in [
            "",
            " \n",
            "{}",
            r#"{"permissions": null, "model": "x"}"#,
            "\u{feff}{}",
        ] {
            assert_eq!(verdict(&rules(text), "a", "b"), "silent", "{text}");
        }
    }

    /// A machine in a folder: managed settings, a home and a project.
    fn machine() -> (tempfile::TempDir, Places) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let places = Places {
            managed: at("managed"),
            user: Some(at("home/.claude")),
            project: Some(at("project")),
        };
        (folder, places)
    }

    // contract: A1
    #[test]
    fn every_scope_counts_and_is_read_anew() {
        let (folder, places) = machine();
        assert_eq!(verdict(&Rules::read(&places), "a", "b"), "silent");
        let files = [
            "managed/managed-settings.json",
            "managed/managed-settings.d/10-team.json",
            "home/.claude/settings.json",
            "project/.claude/settings.json",
            "project/.claude/settings.local.json",
        ];
        for file in files {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, r#"{"permissions": {"deny": ["mcp__a"]}}"#).unwrap();
            let rules = Rules::read(&places);
            assert_eq!(rules.deny.len(), 1, "{}", file.display());
            assert_eq!(&*rules.deny[0].file, file);
            std::fs::remove_file(&file).unwrap();
        }
        for ignored in [
            "managed/managed-settings.d/.hidden.json",
            "managed/managed-settings.d/notes.txt",
        ] {
            std::fs::write(folder.path().join(ignored), "{").unwrap();
        }
        assert_eq!(verdict(&Rules::read(&places), "a", "b"), "silent");
    }

    // contract: A1
    #[test]
    fn a_file_that_cannot_be_read_makes_everything_unsure_that_is_not_denied() {
        let (folder, places) = machine();
        let user = folder.path().join("home/.claude/settings.json");
        let project = folder.path().join("project/.claude/settings.json");
        for file in [&user, &project] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        }
        std::fs::write(
            &user,
            r#"{"permissions": {"deny": ["mcp__a"], "ask": ["mcp__b"], "allow": ["mcp__c"]}}"#,
        )
        .unwrap();
        for broken in ["{\"permissions\": {\"allow\": [", "\u{0}"] {
            std::fs::write(&project, broken).unwrap();
            let rules = Rules::read(&places);
            assert_eq!(verdict(&rules, "a", "x"), "deny");
            assert_eq!(verdict(&rules, "b", "x"), "ask");
            assert_eq!(verdict(&rules, "c", "x"), "unsure");
            assert_eq!(verdict(&rules, "d", "x"), "unsure");
            let said = rules.broken()[0].to_string();
            assert!(said.starts_with(project.to_str().unwrap()), "{said}");
            assert!(said.contains(" is not JSON: "), "{said}");
        }
        std::fs::write(&project, b"\xff\xfe").unwrap();
        assert!(Rules::read(&places).broken()[0].reason.contains("UTF-8"));
        std::fs::remove_file(&project).unwrap();
        std::fs::create_dir(&project).unwrap();
        assert!(Rules::read(&places).broken()[0].reason.contains("no file"));
    }

    // contract: A1
    #[test]
    fn places_come_from_the_clients_environment() {
        let places = |given: &[(&str, &str)], root: Option<&str>| {
            let env = |name: &str| {
                let found = given.iter().find(|(given, _)| *given == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let places = Places::new(&env, root.map(PathBuf::from));
            (places.user, places.project)
        };
        let path = |path: &str| Some(PathBuf::from(path));
        let here = std::env::current_dir().ok();
        assert_eq!(places(&[], None), (None, here.clone()));
        assert_eq!(places(&[("HOME", "/h")], None), (path("/h/.claude"), here));
        let moved = [
            ("HOME", "/h"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CLAUDE_PROJECT_DIR", ""),
        ];
        assert_eq!(places(&moved, Some("/r")), (path("/c"), path("/r")));
        let project = [("CLAUDE_PROJECT_DIR", "/p")];
        assert_eq!(places(&project, Some("/r")), (None, path("/p")));
    }
}
