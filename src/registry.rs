//! What is callable now: a read-only view over the states that the supervisors publish.
//!
//! It holds no state of its own and never reaches up to ask for a reconnect.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::supervisor::{Live, ServerState};
use crate::tool::{NAMESPACE, ServerName, ToolName};

/// How long from the start requests wait for first connection attempts to end (contract S10).
const FIRST_ATTEMPTS: Duration = Duration::from_secs(30);

/// Near misses that an error names.
const HINTS: usize = 3;

/// A longer name is nobody's slip, and comparing it would cost the product of the lengths.
const LONGEST_SLIP: usize = 200;

#[derive(Debug)]
pub struct Registry {
    servers: Vec<Server>,
    started: Instant,
}

#[derive(Debug)]
struct Server {
    name: ServerName,
    prefix: String,
    state: watch::Receiver<ServerState>,
}

/// Where a call of a tool goes. Holds the server's state as it was when it was resolved.
#[derive(Debug, Clone)]
pub struct Route {
    pub server: ServerName,
    pub live: Arc<Live>,
}

/// Why a name leads nowhere.
#[derive(Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// It belongs to a configured server that is not connected.
    Down { server: ServerName, reason: String },
    /// No connected server offers it; the closest names that one does.
    Unknown { closest: Vec<ToolName> },
}

/// Which servers a request has to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs<'a> {
    All,
    /// Those that this name belongs to.
    Tool(&'a str),
    /// Those that this program's text speaks of.
    Program(&'a str),
}

impl Registry {
    pub fn new(servers: Vec<(ServerName, watch::Receiver<ServerState>)>) -> Self {
        let servers = servers
            .into_iter()
            .map(|(name, state)| Server {
                prefix: name.prefix(),
                name,
                state,
            })
            .collect();
        Self {
            servers,
            started: Instant::now(),
        }
    }

    /// Waits until the first connection attempt of every server needed has ended, or the time for
    /// such attempts is over: nobody waits twice for the same server.
    pub async fn settled(&self, needs: Needs<'_>) {
        let waits = self
            .servers
            .iter()
            .filter(|server| server.is_needed(needs))
            .map(|server| {
                let mut state = server.state.clone();
                async move {
                    let ended = state
                        .wait_for(|state| !matches!(state, ServerState::Connecting))
                        .await;
                    drop(ended);
                }
            });
        let until = self.started + FIRST_ATTEMPTS;
        let _ = tokio::time::timeout_at(until, futures::future::join_all(waits)).await;
    }

    /// The names of all callable tools, sorted.
    pub fn names(&self) -> Vec<ToolName> {
        let mut names: Vec<ToolName> = self
            .live()
            .flat_map(|(_, live)| live.catalogue.names().cloned().collect::<Vec<_>>())
            .collect();
        names.sort();
        names
    }

    /// Every connected server.
    pub fn live(&self) -> impl Iterator<Item = (&ServerName, Arc<Live>)> {
        self.servers
            .iter()
            .filter_map(|server| match server.state() {
                ServerState::Up(live) => Some((&server.name, live)),
                _ => None,
            })
    }

    /// Every server, in the configuration's order, with its state as it is now.
    pub fn states(&self) -> impl Iterator<Item = (&ServerName, ServerState)> {
        self.servers
            .iter()
            .map(|server| (&server.name, server.state()))
    }

    /// Every server that is not connected, with the reason.
    pub fn down(&self) -> Vec<(ServerName, String)> {
        self.states()
            .filter_map(|(name, state)| Some((name.clone(), state.why_not()?)))
            .collect()
    }

    pub fn resolve(&self, tool: &str) -> Result<Route, NoRoute> {
        let Some(server) = self.servers.iter().find(|server| server.owns(tool)) else {
            return Err(NoRoute::Unknown {
                closest: self.closest(tool),
            });
        };
        match server.state() {
            ServerState::Up(live) if live.catalogue.get(tool).is_some() => Ok(Route {
                server: server.name.clone(),
                live,
            }),
            ServerState::Up(_) => Err(NoRoute::Unknown {
                closest: self.closest(tool),
            }),
            state => Err(NoRoute::Down {
                server: server.name.clone(),
                reason: state.why_not().unwrap_or_default(),
            }),
        }
    }

    /// The callable names that are most like a wrong one.
    pub fn closest(&self, wrong: &str) -> Vec<ToolName> {
        closest(wrong, self.names())
    }
}

fn closest(wrong: &str, names: Vec<ToolName>) -> Vec<ToolName> {
    let is_short = |name: &str| name.len() <= LONGEST_SLIP;
    if !is_short(wrong) {
        return Vec::new();
    }
    let mut scored: Vec<(f64, ToolName)> = names
        .into_iter()
        .filter(|name| is_short(name.as_str()))
        .map(|name| (likeness(wrong, name.as_str()), name))
        .filter(|(score, _)| *score > 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    scored
        .into_iter()
        // Beside a very near miss a distant one only distracts.
        .filter(|(score, _)| *score > best - 0.15)
        .take(HINTS)
        .map(|(_, name)| name)
        .collect()
}

impl Server {
    /// The state as it is now. A loss counts from its first moment, although its supervisor may
    /// not have heard of it yet: what is not sent any more must not pass for a call in doubt.
    fn state(&self) -> ServerState {
        let state = self.state.borrow().clone();
        match &state {
            ServerState::Up(live) => match live.connection.loss() {
                Some(reason) => ServerState::Down { reason },
                None => state,
            },
            _ => state,
        }
    }

    fn owns(&self, tool: &str) -> bool {
        tool.starts_with(&self.prefix)
    }

    fn is_needed(&self, needs: Needs<'_>) -> bool {
        match needs {
            Needs::All => true,
            Needs::Tool(name) => self.owns(name),
            Needs::Program(code) => speaks_of(code, &self.prefix) || builds_names(code),
        }
    }
}

impl ServerState {
    /// Why this server is not connected, or `None` when it is.
    pub fn why_not(&self) -> Option<String> {
        match self {
            Self::Up(_) => None,
            Self::Connecting => Some("still connecting".to_owned()),
            Self::Down { reason } => Some(reason.clone()),
        }
    }
}

/// How alike two names are, from 0 to 1. The namespace that all share says nothing, and a tool's
/// own name without any is a common mistake.
fn likeness(wrong: &str, name: &str) -> f64 {
    let bare = |name: &str| name.strip_prefix(NAMESPACE).unwrap_or(name).to_owned();
    let (wrong, name) = (bare(wrong), bare(name));
    let tool = name.split_once("__").map_or("", |(_, tool)| tool);
    let wrong_tool = wrong
        .split_once("__")
        .map_or(wrong.as_str(), |(_, tool)| tool);
    let whole = strsim::jaro_winkler(&wrong, &name);
    // Half a name, as of a tool called `get-rows` that a program subtracted from.
    let part = match wrong_tool.len() >= 3 && tool.starts_with(wrong_tool) {
        true => 0.95,
        false => strsim::jaro_winkler(wrong_tool, tool),
    };
    whole.max(part)
}

/// Every Python identifier of the namespace that stands anywhere in a text, strings and comments
/// included: to find one too many costs nothing.
pub fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(NAMESPACE))
}

fn speaks_of(code: &str, prefix: &str) -> bool {
    identifiers(code).any(|name| name.starts_with(prefix))
}

/// Whether a program may reach tools that its text does not name.
pub fn builds_names(code: &str) -> bool {
    const REACHES: [&str; 16] = [
        "list_callable_tools",
        "inspect_tool",
        "server_status",
        "globals",
        "locals",
        "vars",
        "getattr",
        "eval",
        "exec",
        "__main__",
        "__dict__",
        "__globals__",
        "f_globals",
        "_getframe",
        "dir",
        "inspect",
    ];
    let by_word = code
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .any(|word| REACHES.contains(&word));
    // A piece of a name, as in f"mcp__{server}__list".
    by_word || identifiers(code).any(|name| !name[NAMESPACE.len()..].contains("__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(states: &[(&str, ServerState)]) -> Registry {
        let servers = states
            .iter()
            .map(|(name, state)| {
                // A receiver keeps its last value when the sender is gone.
                let (_, receiver) = watch::channel(state.clone());
                (ServerName::new(name), receiver)
            })
            .collect();
        Registry::new(servers)
    }

    fn down(reason: &str) -> ServerState {
        ServerState::Down {
            reason: reason.to_owned(),
        }
    }

    // contract: S10
    #[test]
    fn a_program_waits_for_the_servers_it_speaks_of() {
        let registry = registry(&[
            ("git-hub", ServerState::Connecting),
            ("hr", ServerState::Connecting),
        ]);
        for (code, needed) in [
            ("print(1)", &[][..]),
            ("await mcp__git_hub__list()", &["git-hub"]),
            (
                "await mcp__hr__a(); await mcp__git_hub__b()",
                &["git-hub", "hr"],
            ),
            ("await mcp__hr_x__a()", &[]),
            ("globals()[f'mcp__{server}__list']", &["git-hub", "hr"]),
            (
                "for t in await list_callable_tools(): print(t)",
                &["git-hub", "hr"],
            ),
            ("name = 'mcp__' + server", &["git-hub", "hr"]),
            ("print('evaluate the executive')", &[]),
        ] {
            let found: Vec<&str> = registry
                .servers
                .iter()
                .filter(|server| server.is_needed(Needs::Program(code)))
                .map(|server| server.name.as_str())
                .collect();
            assert_eq!(found, needed, "{code}");
        }
    }

    // contract: S4
    #[test]
    fn only_names_of_a_reasonable_length_are_compared() {
        let name = |length: usize| ToolName::new(&"x".repeat(length));
        let wrong = "x".repeat(LONGEST_SLIP - 1);
        let names = vec![name(LONGEST_SLIP), name(LONGEST_SLIP + 1)];
        assert_eq!(closest(&wrong, names.clone()), [name(LONGEST_SLIP)]);
        assert!(closest(&"x".repeat(LONGEST_SLIP + 1), names).is_empty());
    }

    // contract: S4 P3
    #[test]
    fn a_name_of_a_server_that_is_down_is_told_from_an_unknown_one() {
        let registry = registry(&[
            ("hr", down("exit status 1")),
            ("crm", ServerState::Connecting),
        ]);
        for (name, expected) in [
            (
                "mcp__hr__list",
                NoRoute::Down {
                    server: ServerName::new("hr"),
                    reason: "exit status 1".into(),
                },
            ),
            (
                "mcp__crm__x",
                NoRoute::Down {
                    server: ServerName::new("crm"),
                    reason: "still connecting".into(),
                },
            ),
            ("mcp__other__x", NoRoute::Unknown { closest: vec![] }),
            ("list", NoRoute::Unknown { closest: vec![] }),
        ] {
            assert_eq!(registry.resolve(name).unwrap_err(), expected, "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_first_attempts_ends_after_thirty_seconds() {
        let (_sender, receiver) = watch::channel(ServerState::Connecting);
        let registry = Registry::new(vec![(ServerName::new("slow"), receiver)]);
        let started = tokio::time::Instant::now();
        registry.settled(Needs::Tool("mcp__fast__x")).await;
        assert_eq!(started.elapsed(), Duration::ZERO);
        for _ in 0..2 {
            registry.settled(Needs::All).await;
            assert_eq!(started.elapsed(), FIRST_ATTEMPTS);
        }
    }

    #[test]
    fn likeness_sees_through_the_namespace() {
        for (wrong, name) in [
            ("mcp__github__list_issue", "mcp__github__list_issues"),
            ("list_issues", "mcp__github__list_issues"),
            ("mcp__git__list_issues", "mcp__github__list_issues"),
            ("github__list_issues", "mcp__github__list_issues"),
        ] {
            assert!(likeness(wrong, name) > 0.75, "{wrong} {name}");
        }
        assert!(likeness("mcp__github__list_issues", "mcp__hr__refund") < 0.75);
    }
}
