//! From the servers as written to the servers as meant: names that cannot be confused, the keys
//! that each transport takes, variables expanded, and what came out checked.
//!
//! What came out may be a secret, so no mistake found here shows it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use crate::tool::{ServerName, sanitize};

use super::expand::{Secret, Unexpanded, expand};
use super::file::{self, TransportName};
use super::mistake::{Mistakes, Place, quoted};
use super::read::{Entries, Found, Given};
use super::value::Expandable;

/// A server to connect to. Those that are switched off are not among them.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    pub name: ServerName,
    pub transport: Transport,
    pub connect_timeout: Duration,
}

/// How a server is reached, with every variable expanded.
#[derive(Clone, PartialEq)]
pub enum Transport {
    Stdio {
        command: String,
        args: Vec<Secret>,
        env: BTreeMap<String, Secret>,
        cwd: Option<PathBuf>,
        /// Command and directory as they were expanded, so that what variables put there is kept out
        /// of texts.
        paths: Vec<Secret>,
    },
    Http {
        url: Secret,
        headers: BTreeMap<String, Secret>,
    },
    Sse {
        url: Secret,
        headers: BTreeMap<String, Secret>,
    },
}

/// The kind alone: whatever was expanded may be a secret, a command no less than a header.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio { .. } => "Stdio",
            Self::Http { .. } => "Http",
            Self::Sse { .. } => "Sse",
        })
    }
}

/// Headers that the transports set themselves, request by request.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

pub(super) fn servers(
    written: Vec<Found<file::Server>>,
    env: &dyn Fn(&str) -> Option<String>,
    mistakes: &mut Mistakes,
) -> Vec<ServerConfig> {
    let mut names = Names::default();
    let mut servers = Vec::new();
    for Found {
        place,
        value: server,
    } in written
    {
        let name = names.add(&place, &server.name, mistakes);
        let mut entry = Entry {
            place,
            enabled: server.enabled,
            env,
            mistakes,
        };
        let connect_timeout = server.connect_timeout_seconds.get();
        let transport = entry.transport(server);
        if let (true, Some(name), Some(transport)) = (entry.enabled, name, transport) {
            servers.push(ServerConfig {
                name,
                transport,
                connect_timeout,
            });
        }
    }
    servers
}

/// The names of the servers so far.
#[derive(Default)]
struct Names(Vec<Found<String>>);

impl Names {
    fn add(
        &mut self,
        server: &Place,
        name: &Given<String>,
        mistakes: &mut Mistakes,
    ) -> Option<ServerName> {
        let Found { place, value: name } = match name {
            Given::Found(found) => found,
            Given::Unusable(_) => return None,
            Given::Absent => {
                mistakes.add(
                    &server.missing("name"),
                    "the server has no name.",
                    "Write `name: <name>`; its tools are then called mcp__<name>__<tool>.",
                );
                return None;
            }
        };
        let sanitized = sanitize(name);
        let becomes = if sanitized == *name {
            String::new()
        } else {
            format!(" (every character outside A-Z, a-z, 0-9 and _ counts as _: {sanitized})")
        };
        if let Some(why) = ambiguity(&sanitized) {
            mistakes.add(
                place,
                format!("{} {why}{becomes}.", quoted(name)),
                "Choose a name of letters and digits, with single underscores or hyphens inside: two servers could otherwise mean one tool name.",
            );
        }
        if let Some(earlier) = self
            .0
            .iter()
            .find(|earlier| sanitize(&earlier.value) == sanitized)
        {
            let line = earlier.place.value.line;
            let fact = if earlier.value == *name {
                format!(
                    "{} is the name of the server on line {line} as well.",
                    quoted(name)
                )
            } else {
                format!(
                    "{} and {} on line {line} are the same name in tools: mcp__{sanitized}__<tool>.",
                    quoted(name),
                    quoted(&earlier.value),
                )
            };
            mistakes.add(place, fact, "Give each server a name of its own.");
        }
        self.0.push(Found {
            place: place.clone(),
            value: name.clone(),
        });
        Some(ServerName::new(name))
    }
}

/// Why `mcp__<name>__<tool>` could be read in two ways.
fn ambiguity(sanitized: &str) -> Option<&'static str> {
    if sanitized.is_empty() {
        Some("is empty")
    } else if sanitized.starts_with('_') {
        Some("begins with an underscore")
    } else if sanitized.ends_with('_') {
        Some("ends with an underscore")
    } else if sanitized.contains("__") {
        Some("contains two underscores in a row")
    } else {
        None
    }
}

/// One server of the file while it is being turned into what it means.
struct Entry<'a> {
    place: Place,
    enabled: bool,
    env: &'a dyn Fn(&str) -> Option<String>,
    mistakes: &'a mut Mistakes,
}

impl Entry<'_> {
    fn transport(&mut self, server: file::Server) -> Option<Transport> {
        let kind = self.kind(&server);
        // Everything is expanded whatever the transport, so that no mistake hides behind another.
        let command = self.text(server.command, program);
        let args = self.list(server.args);
        let env = self.entries(server.env, variable_name, no_nul);
        let cwd = self.text(server.cwd, directory);
        let url = self.text(server.url, address);
        let headers = self.entries(server.headers, header_name, header_value);
        match kind? {
            TransportName::Stdio => Some(Transport::Stdio {
                args: args?,
                env: env?,
                cwd: cwd.clone()?.map(|cwd| cwd.expose().into()),
                command: command.clone()??.expose().to_owned(),
                paths: [command?, cwd?].into_iter().flatten().collect(),
            }),
            TransportName::Http => Some(Transport::Http {
                url: url??,
                headers: headers?,
            }),
            TransportName::Sse => Some(Transport::Sse {
                url: url??,
                headers: headers?,
            }),
        }
    }

    /// The transport, once it is known that it goes with the keys beside it.
    fn kind(&mut self, server: &file::Server) -> Option<TransportName> {
        let (kind, shown) = match &server.transport {
            Given::Absent => (TransportName::Stdio, "stdio, the default"),
            Given::Found(found) => (found.value, found.value.as_str()),
            Given::Unusable(_) => return None,
        };
        match kind {
            TransportName::Stdio => {
                let remedy =
                    "Remove it, or write `transport: http` (`sse` for a server of the older kind).";
                for (key, place) in [
                    ("url", server.url.place()),
                    ("headers", server.headers.place()),
                ] {
                    self.misplaced(key, place, "http or sse", shown, remedy);
                }
                // With a url and no command it is the transport that was forgotten, as was just said.
                let forgotten = server.transport.is_absent() && !server.url.is_absent();
                if server.command.is_absent() && !forgotten {
                    self.mistakes.add(
                        &self.place.missing("command"),
                        "a stdio server needs a command, and there is none.",
                        "Write `command: <program>`; for a server that is reached over HTTP, `transport: http` and `url: <address>`.",
                    );
                }
            }
            TransportName::Http | TransportName::Sse => {
                for (key, place) in [
                    ("command", server.command.place()),
                    ("args", server.args.place()),
                    ("env", server.env.place()),
                    ("cwd", server.cwd.place()),
                ] {
                    self.misplaced(
                        key,
                        place,
                        "stdio",
                        shown,
                        "Remove it, or write `transport: stdio`.",
                    );
                }
                if server.url.is_absent() {
                    self.mistakes.add(
                        &self.place.missing("url"),
                        "a server reached over HTTP needs a url, and there is none.",
                        "Write `url: https://...`.",
                    );
                }
            }
        }
        Some(kind)
    }

    fn misplaced(
        &mut self,
        key: &str,
        place: Option<&Place>,
        theirs: &str,
        this: &str,
        remedy: &str,
    ) {
        if let Some(place) = place {
            let fact = format!("{key} belongs to transport {theirs}, and this server's is {this}.");
            self.mistakes.add(&place.at_key(), fact, remedy);
        }
    }

    /// `None` if there is no using it, `Some(None)` if it is absent.
    fn text(&mut self, given: Given<Expandable>, check: Check) -> Option<Option<Secret>> {
        match given {
            Given::Absent => Some(None),
            Given::Unusable(_) => None,
            Given::Found(found) => self.expanded(&found, check).map(Some),
        }
    }

    fn list(&mut self, given: Given<Option<Vec<Found<Expandable>>>>) -> Option<Vec<Secret>> {
        let items = given.or_default();
        // All are looked at before the first that fails decides.
        let items: Vec<_> = items
            .iter()
            .map(|item| self.expanded(item, no_nul))
            .collect();
        items.into_iter().collect()
    }

    /// The names are checked as they are written, the values as they are expanded.
    fn entries(
        &mut self,
        given: Given<Option<Entries<Expandable>>>,
        check_name: fn(&str) -> Result<String, String>,
        check: Check,
    ) -> Option<BTreeMap<String, Secret>> {
        let mut values = BTreeMap::new();
        let mut lines = BTreeMap::new();
        let mut complete = true;
        for (name, found) in given.or_default().0 {
            let at_key = found.place.at_key();
            let fact = match check_name(&name) {
                Err(fact) => Some(fact),
                Ok(same) => lines
                    .insert(same, at_key.key.line)
                    .map(|line| format!("this is the same name as on line {line}.")),
            };
            if let Some(fact) = fact {
                self.mistakes
                    .add(&at_key, fact, "Correct the name, or remove the entry.");
            }
            match self.expanded(&found, check) {
                Some(value) => drop(values.insert(name, value)),
                None => complete = false,
            }
        }
        complete.then_some(values)
    }

    /// The text with its variables in place, checked; `None` if that is not to be had.
    fn expanded(
        &mut self,
        Found { place, value }: &Found<Expandable>,
        check: Check,
    ) -> Option<Secret> {
        let variables = RefCell::new(Vec::new());
        let lookup = |name: &str| {
            let value = (self.env)(name);
            variables.borrow_mut().extend(value.clone());
            value
        };
        let text = match expand(&value.0, &lookup) {
            Ok(text) => text,
            Err(failures) => {
                for failure in failures {
                    // A server that is switched off may do without its variables.
                    if self.enabled || !matches!(failure, Unexpanded::Unset(_)) {
                        self.mistakes
                            .add(place, failure.to_string(), failure.remedy());
                    }
                }
                return None;
            }
        };
        if let Err(fact) = check(&text) {
            let from = if text == value.0 {
                ""
            } else {
                " That is after expanding its variables."
            };
            self.mistakes.add(
                place,
                format!("{fact}{from}"),
                "Correct the value; it is not shown here, since it may be a secret.",
            );
            return None;
        }
        Some(Secret::expanded(text, variables.into_inner()))
    }
}

impl Unexpanded {
    fn remedy(&self) -> String {
        match self {
            Self::Unset(name) => {
                format!(
                    "Set {name} in ptc-mcp's environment, or give a default: ${{{name}:-default}}."
                )
            }
            Self::Unterminated | Self::Malformed => {
                "Write ${VAR} or ${VAR:-default}; for a literal dollar before a brace, `$$`."
                    .to_owned()
            }
            Self::Nested(_) => {
                "Write the default as plain text; for a literal dollar, `$$`.".to_owned()
            }
        }
    }
}

/// What an expanded text is checked for. The fact must not show the text, hence no `String`.
type Check = fn(&str) -> Result<(), &'static str>;

fn no_nul(text: &str) -> Result<(), &'static str> {
    if text.contains('\0') {
        Err("it holds a NUL character.")
    } else {
        Ok(())
    }
}

fn program(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        Err("the command is empty.")
    } else {
        no_nul(text)
    }
}

fn directory(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        Err("the directory is empty.")
    } else {
        no_nul(text)
    }
}

fn address(text: &str) -> Result<(), &'static str> {
    // The parser would silently drop these.
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("it holds a space or a line break.");
    }
    // The transports' own parser decides, so that what passes here is what they will use.
    match reqwest::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(()),
        Ok(_) => Err("its scheme is neither http nor https."),
        Err(_) => Err("it is not a whole address such as https://example.com/mcp."),
    }
}

fn header_value(text: &str) -> Result<(), &'static str> {
    match HeaderValue::from_str(text) {
        Ok(value) if value.to_str().is_ok() => Ok(()),
        _ => Err("a header holds only visible ASCII, spaces and tabs: no line break, no accent."),
    }
}

/// The name by which two variables are the same.
fn variable_name(name: &str) -> Result<String, String> {
    if name.is_empty() {
        Err("a variable needs a name.".to_owned())
    } else if name.contains(['=', '\0']) {
        Err(format!(
            "{} is no name for a variable: it holds `=` or NUL.",
            quoted(name)
        ))
    } else {
        Ok(name.to_owned())
    }
}

/// The name by which two headers are the same.
fn header_name(name: &str) -> Result<String, String> {
    let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
        return Err(format!("{} is no name for a header.", quoted(name)));
    };
    if OWN_HEADERS.contains(&header.as_str()) {
        return Err(format!("{name} is set by ptc-mcp itself."));
    }
    Ok(header.as_str().to_owned())
}
