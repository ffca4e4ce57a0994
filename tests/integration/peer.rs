//! A mock server on any transport: over stdio a process that ptc-mcp starts, over HTTP a thread of
//! the test. One test source then holds for all of them.

use std::path::PathBuf;

use mock_servers::{Journal, Mock, Scenario, StdioMock, Transport};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Ptc;

/// Instantiates each test for every transport.
macro_rules! over_every_transport {
    ($($(#[$attribute:meta])* fn $name:ident($transport:ident) $body:block)*) => {$(
        mod $name {
            use super::*;

            fn check($transport: Transport) $body

            $(#[$attribute])*
            #[test]
            fn stdio() {
                check(Transport::Stdio);
            }

            $(#[$attribute])*
            #[test]
            fn http() {
                check(Transport::Http);
            }

            $(#[$attribute])*
            #[test]
            fn sse() {
                check(Transport::Sse);
            }
        }
    )*};
}
pub(crate) use over_every_transport;

/// A server as the test sees it.
pub struct Peer {
    web: Option<Mock>,
    stdio: Option<StdioMock>,
    journal: Journal,
    /// While this file exists, a stdio server exits as soon as it is started.
    shut: PathBuf,
    /// Where a stdio server's journal outlives the session.
    _folder: TempDir,
}

impl Peer {
    /// Adds a server to the configuration.
    pub fn join(ptc: Ptc, transport: Transport, name: &str, scenario: Scenario) -> (Ptc, Self) {
        Self::join_with(ptc, transport, name, scenario, json!({}))
    }

    /// The same, with further keys of the server's entry.
    pub fn join_with(
        ptc: Ptc,
        transport: Transport,
        name: &str,
        scenario: Scenario,
        more: Value,
    ) -> (Ptc, Self) {
        let folder = tempfile::tempdir().expect("a folder");
        let shut = ptc.folder().join(format!("{name}.shut"));
        let mut stdio = None;
        let (mut entry, web, journal) = match transport {
            Transport::Stdio => {
                let mock = StdioMock::new(folder.path(), name, &scenario);
                let gate = format!(
                    "[ ! -e '{}' ] || {{ echo 'kept down by the test' >&2; exit 7; }}; exec \"$0\" \"$@\"",
                    shut.display()
                );
                let mut args = vec![json!("-c"), json!(gate), json!(mock.command())];
                args.extend(mock.args().into_iter().map(Value::from));
                let entry = json!({"name": name, "command": "sh", "args": args});
                let journal = mock.journal();
                stdio = Some(mock);
                (entry, None, journal)
            }
            Transport::Http => web(name, "http", Mock::http(scenario)),
            Transport::Sse => web(name, "sse", Mock::sse(scenario)),
        };
        let entry_keys = entry.as_object_mut().expect("an entry is an object");
        entry_keys.extend(more.as_object().expect("keys").clone());
        let peer = Self {
            web,
            stdio,
            journal,
            shut,
            _folder: folder,
        };
        (ptc.server(entry), peer)
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Once it has crashed, it cannot be started until [`Peer::revive`].
    pub fn keep_down(&self) {
        std::fs::write(&self.shut, "").expect("the folder is writable");
    }

    /// It is gone, and cannot be started until [`Peer::revive`].
    pub fn leave(&mut self) {
        self.keep_down();
        if let Some(mock) = &mut self.web {
            mock.stop();
        }
    }

    pub fn revive(&mut self) {
        if let Some(mock) = &mut self.web {
            mock.start();
        } else {
            let _ = std::fs::remove_file(&self.shut);
        }
    }

    /// Follows another scenario from its next start on, which over HTTP is now.
    pub fn change(&mut self, scenario: Scenario) {
        if let Some(mock) = &mut self.web {
            mock.restart_with(&scenario);
        } else if let Some(mock) = &self.stdio {
            mock.rewrite(&scenario);
        }
    }

    /// The handshakes that reached it, over all starts.
    pub fn handshakes(&self) -> usize {
        self.journal.method("initialize").len() + self.journal.method("server/discover").len()
    }
}

fn web(name: &str, transport: &str, mock: Mock) -> (Value, Option<Mock>, Journal) {
    let entry = json!({"name": name, "transport": transport, "url": mock.url()});
    let journal = mock.journal().clone();
    (entry, Some(mock), journal)
}

/// A program's text that prints the value of each of these calls, or its `ToolError`, a line each.
pub fn attempts<C: AsRef<str>>(calls: impl IntoIterator<Item = C>) -> String {
    let mut code = String::new();
    for call in calls {
        code += &format!(
            "try:\n    print(repr(await {}))\nexcept ToolError as error:\n    print('ToolError:', error)\n",
            call.as_ref()
        );
    }
    code
}
