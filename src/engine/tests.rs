//! Runs whose child and whose moment a test holds in its hands.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fuzzing::{Gone, run};
use crate::config::Config;
use crate::consent::{Asker, Consent, Session};
use crate::gate::{Gate, Policy};
use crate::permissions;
use crate::registry::Registry;
use crate::report::{ProgramError, Report};
use crate::sandbox::Exit;

const LIMIT: Duration = Duration::from_secs(7);

/// A run over a pipe, and the other end of the pipe.
fn start(child: Gone) -> (JoinHandle<Report>, DuplexStream) {
    let config = "execution: {timeout_seconds: 7}";
    let config = Config::parse(config, Path::new("test.yaml"), &|_| None).unwrap();
    let registry = Arc::new(Registry::new(vec![]));
    let policy = Policy {
        tools: config.tools,
        client: permissions::Rules::default(),
        consent: Consent::new(
            Asker::Nobody("nobody is there".to_owned()),
            Session::default(),
        ),
        log: None,
    };
    let gate = Gate::new(registry.clone(), policy, config.execution.clone(), None);
    let (child_end, host) = tokio::io::duplex(1 << 16);
    let running = tokio::spawn(async move {
        let pipes = tokio::io::split(host);
        let never = CancellationToken::new();
        run(&config.execution, &registry, &gate, pipes, child, never).await
    });
    (running, child_end)
}

fn frame(body: &str) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    [&length.to_be_bytes(), body.as_bytes()].concat()
}

// contract: P6 P8
#[tokio::test(start_paused = true)]
async fn what_was_said_in_time_counts_however_late_it_is_heard() {
    for (last, succeeds) in [(r#"{"type":"done","error":null}"#, true), ("", false)] {
        let alive = Gone(CancellationToken::new(), Ok(Exit::Code(0)));
        let (running, mut child) = start(alive);
        tokio::task::yield_now().await;
        let said = frame(r#"{"type":"output","text":"finished"}"#);
        // Many more than a task may take in one turn.
        child.write_all(&said.repeat(500)).await.unwrap();
        if !last.is_empty() {
            child.write_all(&frame(last)).await.unwrap();
        }
        // The deadline passes before anybody has had a turn.
        tokio::time::advance(LIMIT).await;
        let report = running.await.unwrap();
        assert!(
            report.output == "finished".repeat(500),
            "{}",
            report.output.len()
        );
        match report.outcome {
            Ok(()) => assert!(succeeds),
            Err(ProgramError::TimedOut { .. }) => assert!(!succeeds),
            Err(error) => panic!("{error:?}"),
        }
    }
}

// contract: B6
#[tokio::test]
async fn a_child_that_never_stops_talking_is_held_to_its_limits() {
    let token = CancellationToken::new();
    let greedy = Gone(token.clone(), Err("it used too much".to_owned()));
    let (running, mut child) = start(greedy);
    let talking = tokio::spawn(async move {
        let said = frame(r#"{"type":"cancel","id":1}"#).repeat(1000);
        while child.write_all(&said).await.is_ok() {}
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    token.cancel();
    let report = running.await.unwrap();
    assert!(
        matches!(&report.outcome, Err(ProgramError::Exceeded(text)) if text == "it used too much"),
        "{:?}",
        report.outcome
    );
    talking.await.unwrap();
}
