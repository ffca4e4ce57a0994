//! What a program is told of the tools when it starts: every name that it can call, and for those
//! that its text names what the check before the run needs (contract M3).
//!
//! From one look at each server's state, so that no name falls between two of them.

use std::collections::BTreeSet;

use crate::channel::{Named, Offer};
use crate::registry::{self, Registry, identifiers};
use crate::supervisor::ServerState;
use crate::tool::ToolName;

/// Unknown names for which the nearest ones are looked up; each is compared with every tool.
const MAX_UNKNOWN: usize = 50;
/// A longer one is no slip of the pen, and comparing it would take its length times all others'.
const MAX_NAME: usize = 200;

pub fn to_program(registry: &Registry, code: &str) -> Offer {
    let named: BTreeSet<&str> = identifiers(code).collect();
    let mut offer = Offer::default();
    for (server, state) in registry.states() {
        let ServerState::Up(live) = state else {
            offer.down.push(server.prefix());
            continue;
        };
        for entry in live.catalogue.entries() {
            let name = entry.name.to_string();
            if !entry.underscored.is_empty() {
                let underscored = entry.underscored.clone();
                offer.underscored.insert(name.clone(), underscored);
            }
            if named.contains(name.as_str()) {
                let parameters = entry.parameters();
                let known = Named {
                    required: parameters.required,
                    allowed: parameters.allowed,
                    signature: entry.signature(),
                };
                offer.named.insert(name.clone(), known);
            }
            offer.tools.push(name);
        }
    }
    offer.tools.sort();
    // Callable, and failing as such a call does (contract P2).
    let is_down = |name: &str| {
        let of = |prefix: &String| name.len() > prefix.len() && name.starts_with(prefix);
        offer.down.iter().any(of)
    };
    let (unreachable, others): (Vec<&str>, Vec<&str>) =
        named.into_iter().partition(|name| is_down(name));
    let unknown: Vec<&str> = others
        .into_iter()
        .filter(|name| name.len() <= MAX_NAME && !offer.named.contains_key(*name))
        .take(MAX_UNKNOWN)
        .collect();
    for name in unknown {
        let closest = registry.closest(name);
        let closest = closest.iter().map(ToolName::to_string).collect();
        offer.closest.insert(name.to_owned(), closest);
    }
    let unreachable = || unreachable.iter().map(|name| (*name).to_owned());
    offer.tools.extend(unreachable());
    if !may_reach_every_tool(code) {
        let scope = offer.named.keys().cloned().chain(unreachable());
        offer.scope = Some(scope.collect());
    }
    offer
}

/// Whether a program may come by a tool's function without the tool's name in its text. Letters
/// beyond ASCII may mean others in a name (Python's NFKC).
fn may_reach_every_tool(code: &str) -> bool {
    registry::builds_names(code) || !code.is_ascii()
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;
    use crate::tool::ServerName;

    // contract: P2 M3
    #[test]
    fn names_of_servers_that_are_down_are_taken_from_the_text() {
        let down = ServerState::Down {
            reason: "exited".to_owned(),
        };
        let states = [("hr", down), ("crm", ServerState::Connecting)].map(|(name, state)| {
            // A receiver keeps its last value when the sender is gone.
            let (_, receiver) = watch::channel(state);
            (ServerName::new(name), receiver)
        });
        let registry = Registry::new(states.into());
        let enormous = format!("mcp__{}", "x".repeat(1_000_000));
        assert!(to_program(&registry, &enormous).closest.is_empty());
        let code = "x = await mcp__hr__list(a=1)\ny = mcp__crm__get; mcp__other__z; mcp__hr__; mcp__hr__list";
        let offer = to_program(&registry, code);
        assert_eq!(offer.tools, ["mcp__crm__get", "mcp__hr__list"]);
        let scope = offer.scope.as_deref();
        assert_eq!(
            scope,
            Some(&["mcp__crm__get", "mcp__hr__list"].map(str::to_owned)[..])
        );
        for reaches in [
            "globals()",
            "import inspect",
            "print('é')",
            "f'mcp__{server}__x'",
        ] {
            assert_eq!(to_program(&registry, reaches).scope, None, "{reaches}");
        }
        assert_eq!(offer.down, ["mcp__hr__", "mcp__crm__"]);
        let unknown: Vec<&String> = offer.closest.keys().collect();
        assert_eq!(unknown, ["mcp__hr__", "mcp__other__z"]);
    }
}
