//! Mock servers in tests: over HTTP on a thread of the test, over stdio as a command line.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::http::Server;
use crate::journal::{Journal, Recorder};
use crate::play::Player;
use crate::scenario::{Scenario, Transport};

/// A server on a thread of this process. Dropped, it stops.
pub struct Mock {
    scenario: Scenario,
    transport: Transport,
    journal: Journal,
    port: u16,
    start: u32,
    running: Option<(Arc<Server>, JoinHandle<()>)>,
}

impl Mock {
    /// Streamable HTTP.
    pub fn http(scenario: Scenario) -> Self {
        Self::new(scenario, Transport::Http)
    }

    /// HTTP+SSE of 2024-11-05.
    pub fn sse(scenario: Scenario) -> Self {
        Self::new(scenario, Transport::Sse)
    }

    /// # Panics
    /// When the scenario is not one for this transport.
    fn new(scenario: Scenario, transport: Transport) -> Self {
        let scenario = checked(&scenario, transport);
        let journal = Journal::in_memory();
        let mut mock = Self {
            scenario,
            transport,
            journal,
            port: 0,
            start: 0,
            running: None,
        };
        mock.start();
        mock
    }

    /// Starts it again after [`Mock::stop`] or a crash, on the same port, its sessions forgotten.
    ///
    /// # Panics
    /// When somebody else has taken the port.
    pub fn start(&mut self) {
        self.stop();
        self.start += 1;
        let listener = self.bind();
        self.port = listener
            .local_addr()
            .expect("a bound listener has an address")
            .port();
        let recorder = Recorder::to_memory(&self.journal, self.start);
        let player = Player::new(self.scenario.clone(), recorder);
        let running = Server::start(listener, player, self.transport, true);
        self.running = Some(running.expect("a thread can be started"));
    }

    /// On the same port as before; its last owner may need a moment to let go of it.
    fn bind(&self) -> TcpListener {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            match Server::bind(self.port) {
                Ok(listener) => return listener,
                Err(error) if Instant::now() > end => {
                    panic!("port {} is not free again: {error}", self.port)
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Starts it again with another scenario.
    ///
    /// # Panics
    /// When the scenario is not one for this transport.
    pub fn restart_with(&mut self, scenario: &Scenario) {
        self.scenario = checked(scenario, self.transport);
        self.start();
    }

    /// Ends it abruptly: the listener and every connection are gone.
    pub fn stop(&mut self) {
        if let Some((server, thread)) = self.running.take() {
            server.stop();
            let _ = thread.join();
        }
    }

    pub fn url(&self) -> String {
        let path = match self.transport {
            Transport::Sse => "/sse",
            _ => "/mcp",
        };
        format!("{}://127.0.0.1:{}{path}", self.scenario.scheme(), self.port)
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.stop();
    }
}

fn checked(scenario: &Scenario, transport: Transport) -> Scenario {
    let scenario = Scenario::parse(&scenario.to_json()).expect("a scenario that holds together");
    scenario
        .check_transport(transport)
        .expect("a scenario for this transport");
    scenario
}

/// A server that a client starts by its command line.
pub struct StdioMock {
    program: PathBuf,
    scenario: PathBuf,
    journal: PathBuf,
}

impl StdioMock {
    /// Writes `<name>.json` into the directory; the journal will be `<name>.journal` beside it.
    ///
    /// # Panics
    /// When the binary has not been built, or the scenario is not one for stdio.
    pub fn new(directory: &Path, name: &str, scenario: &Scenario) -> Self {
        let file = directory.join(format!("{name}.json"));
        let mock = Self {
            program: mock_server_binary(),
            scenario: file,
            journal: directory.join(format!("{name}.journal")),
        };
        mock.rewrite(scenario);
        mock
    }

    /// Replaces the scenario; it holds from the next start on.
    pub fn rewrite(&self, scenario: &Scenario) {
        let text = checked(scenario, Transport::Stdio).to_json();
        std::fs::write(&self.scenario, text).expect("the scenario can be written");
    }

    /// The program to start.
    pub fn command(&self) -> &Path {
        &self.program
    }

    /// Its arguments.
    pub fn args(&self) -> Vec<String> {
        let path = |path: &Path| path.to_str().expect("a path that is UTF-8").to_owned();
        vec![
            "--transport".to_owned(),
            "stdio".to_owned(),
            "--scenario".to_owned(),
            path(&self.scenario),
            "--journal".to_owned(),
            path(&self.journal),
        ]
    }

    pub fn journal(&self) -> Journal {
        Journal::at(&self.journal)
    }
}

/// `target/<profile>/mock-server`, found from where the running test's executable lies.
///
/// # Panics
/// When it is not there.
pub fn mock_server_binary() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let name = format!("mock-server{}", std::env::consts::EXE_SUFFIX);
    // target/<profile>/deps/<test> or, for examples and benches, a sibling of deps.
    test.ancestors()
        .skip(1)
        .take(3)
        .map(|directory| directory.join(&name))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| {
            panic!(
                "no mock-server near {}: run `cargo build -p mock-servers` first",
                test.display()
            )
        })
}
