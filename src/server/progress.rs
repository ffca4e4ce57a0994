//! What a person sees of a running program: `notifications/progress`, for those who asked.
//!
//! Knows the program only by what the watch channel shows of it.

use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::watch;

use crate::Progress;

/// Four a second at most.
const INTERVAL: Duration = Duration::from_millis(250);
/// A sign of life during one long call: clients give up on a request that shows none for long.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Sends notifications until the program's end drops the sender, or the client is gone.
pub(crate) async fn relay(
    peer: Peer<RoleServer>,
    token: ProgressToken,
    mut progress: watch::Receiver<Progress>,
) {
    let started = Instant::now();
    let mut counter = Counter::default();
    loop {
        match tokio::time::timeout(SIGN_OF_LIFE, progress.changed()).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(_)) => return,
        }
        let mut now = progress.borrow_and_update().clone();
        now.elapsed = now.elapsed.max(started.elapsed());
        let notification = ProgressNotificationParam::new(token.clone(), counter.next(now.calls))
            .with_message(message(&now));
        if peer.notify_progress(notification).await.is_err() {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// `7 calls · mcp__github__list_issues · 3.1 s · 1 failed`
pub(crate) fn message(progress: &Progress) -> String {
    let mut parts = vec![match progress.calls {
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    }];
    parts.extend(progress.last_tool.as_ref().map(ToString::to_string));
    parts.push(format!("{:.1} s", progress.elapsed.as_secs_f64()));
    if progress.failed > 0 {
        parts.push(format!("{} failed", progress.failed));
    }
    parts.join(" · ")
}

/// The protocol wants a number that grows with every notification, and calls do not: between two
/// calls a growing fraction is added that never reaches one.
#[derive(Default)]
struct Counter {
    calls: u64,
    repeats: u32,
    sent: bool,
}

impl Counter {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a program makes no 2^53 tool calls"
    )]
    fn next(&mut self, calls: u64) -> f64 {
        if calls > self.calls || !self.sent {
            self.calls = calls;
            self.repeats = 0;
            self.sent = true;
        } else {
            self.repeats += 1;
        }
        let repeats = f64::from(self.repeats);
        self.calls as f64 + repeats / (repeats + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolName;

    // contract: S11
    #[test]
    fn progress_always_grows_and_counts_calls() {
        let mut counter = Counter::default();
        let calls = [0, 0, 1, 1, 1, 1, 5, 5, 4, 6];
        let sent: Vec<f64> = calls.iter().map(|calls| counter.next(*calls)).collect();
        assert!(sent.windows(2).all(|pair| pair[0] < pair[1]), "{sent:?}");
        let whole: Vec<f64> = sent.iter().map(|value| value.floor()).collect();
        assert_eq!(whole, [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 6.0]);
        let long: Vec<f64> = (0..100_000).map(|_| counter.next(6)).collect();
        assert!(long.windows(2).all(|pair| pair[0] < pair[1]) && long[99_999] < 7.0);
    }

    // contract: S11
    #[test]
    fn the_message_says_what_a_person_wants_to_know() {
        let progress = |calls, failed, tool: Option<&str>, millis| Progress {
            calls,
            failed,
            last_tool: tool.map(ToolName::new),
            elapsed: Duration::from_millis(millis),
        };
        let tool = Some("mcp__github__list_issues");
        let cases = [
            (progress(0, 0, None, 40), "0 calls · 0.0 s"),
            (
                progress(1, 0, tool, 1250),
                "1 call · mcp__github__list_issues · 1.2 s",
            ),
            (
                progress(7, 1, tool, 3100),
                "7 calls · mcp__github__list_issues · 3.1 s · 1 failed",
            ),
        ];
        for (progress, expected) in cases {
            assert_eq!(message(&progress), expected);
        }
    }
}
