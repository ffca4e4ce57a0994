//! The life of one downstream server: connect, list, serve, and when it is lost, wait and connect
//! again, for ever.
//!
//! The only caller of [`downstream::connect`]. It publishes what it knows and takes no orders but
//! to stop: nobody can ask for a reconnect, so only a lost connection makes one (contract D2).
//! Programs, budgets and results are not known here.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catalogue::Catalogue;
use crate::config::{ServerConfig, ToolRules};
use crate::downstream::{self, Connection, DownstreamTool};

const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// How far apart the lists of a server are that goes on announcing changes.
const SHORTEST_GAP: Duration = Duration::from_secs(1);
const LONGEST_GAP: Duration = Duration::from_secs(10);

/// A connection that held this long was a good one: the next loss starts from the first delay.
const HELD: Duration = Duration::from_secs(30);

/// What the rest of the server knows of one downstream server.
#[derive(Debug, Clone)]
pub enum ServerState {
    /// The first attempt has not ended yet.
    Connecting,
    Up(Arc<Live>),
    /// Not connected; the next attempt is on its way.
    Down {
        reason: String,
    },
}

/// A connected server.
#[derive(Debug)]
pub struct Live {
    pub connection: Connection,
    pub catalogue: Catalogue,
    /// From the start of the attempt to the listed tools.
    pub connected_in: Duration,
    /// Whether a result of this server was ever marked as wrapped: what it does not mark is then meant
    /// as it is (contract R4).
    pub marks_results: Arc<AtomicBool>,
}

/// Keeps one server connected until `stop`; then closes it in good order.
pub async fn supervise(
    server: ServerConfig,
    rules: ToolRules,
    max_result_bytes: usize,
    state: watch::Sender<ServerState>,
    stop: CancellationToken,
) {
    let mut backoff = Backoff::default();
    let marks_results = Arc::<AtomicBool>::default();
    loop {
        let started = Instant::now();
        let give_up = stop.child_token();
        let attempt = connect(&server, &rules, max_result_bytes, &give_up);
        tokio::pin!(attempt);
        let outcome = tokio::time::timeout(server.connect_timeout, &mut attempt).await;
        let reason = match outcome {
            Ok(Ok((connection, catalogue))) => {
                tracing::info!(server = %server.name, tools = catalogue.len(), "connected");
                let connected_in = started.elapsed();
                let publish = |catalogue| {
                    let live = Live {
                        connection: connection.clone(),
                        catalogue,
                        connected_in,
                        marks_results: marks_results.clone(),
                    };
                    state.send_replace(ServerState::Up(Arc::new(live)));
                };
                publish(catalogue);
                let since = Instant::now();
                let lost = serve(&server, &rules, &connection, publish, &stop).await;
                let Some(reason) = lost else {
                    connection.shutdown().await;
                    return;
                };
                // At once: to close what is left of it may take seconds.
                state.send_replace(ServerState::Down {
                    reason: reason.clone(),
                });
                // Its process group, its session.
                connection.shutdown().await;
                backoff.held_for(since.elapsed());
                reason
            }
            Ok(Err(_)) if stop.is_cancelled() => return,
            Ok(Err(reason)) => reason,
            Err(_) => {
                let limit = server.connect_timeout.as_secs_f64();
                let reason = format!("no connection within connect_timeout_seconds={limit}");
                // At once: to close what was begun may take seconds.
                state.send_replace(ServerState::Down {
                    reason: reason.clone(),
                });
                give_up.cancel();
                if let Ok((connection, _)) = attempt.await {
                    connection.shutdown().await;
                }
                reason
            }
        };
        let delay = backoff.next(fastrand::f64());
        tracing::warn!(
            server = %server.name,
            next_attempt_in = format!("{:.1}s", delay.as_secs_f64()),
            "not connected: {reason}"
        );
        state.send_replace(ServerState::Down { reason });
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn connect(
    server: &ServerConfig,
    rules: &ToolRules,
    max_result_bytes: usize,
    give_up: &CancellationToken,
) -> Result<(Connection, Catalogue), String> {
    let connection = downstream::connect(server, max_result_bytes, give_up)
        .await
        .map_err(|error| error.to_string())?;
    let listed = give_up.run_until_cancelled(connection.list_tools()).await;
    let failure = match listed {
        Some(Ok(tools)) => return Ok((connection, catalogue(server, rules, tools).await)),
        Some(Err(failure)) => failure.to_string(),
        None => "the attempt was given up".to_owned(),
    };
    connection.shutdown().await;
    Err(format!("tools/list: {failure}"))
}

/// Made on a thread of its own: a thousand schemas take tens of milliseconds, in which the client
/// would not be heard.
async fn catalogue(
    server: &ServerConfig,
    rules: &ToolRules,
    tools: Vec<DownstreamTool>,
) -> Catalogue {
    let (name, rules) = (server.name.clone(), rules.clone());
    let made = tokio::task::spawn_blocking(move || Catalogue::new(&name, tools, &rules));
    made.await.expect("making a catalogue does not panic")
}

/// Follows a live connection. The reason of its loss, or `None` when told to stop.
async fn serve(
    server: &ServerConfig,
    rules: &ToolRules,
    connection: &Connection,
    publish: impl Fn(Catalogue),
    stop: &CancellationToken,
) -> Option<String> {
    let closed = connection.closed();
    tokio::pin!(closed);
    let mut pace = Pace::default();
    loop {
        let change = async {
            connection.tools_changed().await;
            tokio::time::sleep_until(pace.next(Instant::now())).await;
            // The list that is about to be asked for holds what changed meanwhile as well.
            let _ = connection.tools_changed().now_or_never();
            tokio::time::timeout(server.connect_timeout, connection.list_tools()).await
        };
        let listed = tokio::select! {
            reason = &mut closed => return Some(reason),
            () = stop.cancelled() => return None,
            listed = change => listed,
        };
        match listed {
            Ok(Ok(tools)) => {
                let catalogue = catalogue(server, rules, tools).await;
                tracing::info!(server = %server.name, tools = catalogue.len(), "tools changed");
                publish(catalogue);
            }
            // A list that cannot be had from a live server is no loss (D2): the old one stands.
            Ok(Err(failure)) => {
                tracing::warn!(server = %server.name, "tools changed, but not listed: {failure}");
            }
            Err(_) => {
                tracing::warn!(server = %server.name, "tools changed, but the list did not come");
            }
        }
    }
}

/// When a list is asked for again: at once, unless the server says time and again that it changed,
/// perhaps because it was asked.
#[derive(Debug)]
struct Pace {
    gap: Duration,
    last: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            gap: SHORTEST_GAP,
            last: None,
        }
    }
}

impl Pace {
    /// When to ask, after a change that was heard of now.
    fn next(&mut self, now: Instant) -> Instant {
        let due = self.last.map_or(now, |last| last + self.gap);
        let is_quiet = self.last.is_none() || now >= due + self.gap;
        self.gap = if is_quiet {
            SHORTEST_GAP
        } else {
            (self.gap * 2).min(LONGEST_GAP)
        };
        let next = due.max(now);
        self.last = Some(next);
        next
    }
}

/// Capped exponential delays. Jitter keeps servers that were lost together from coming back
/// together; it only shortens, so that the cap is a cap.
#[derive(Debug)]
struct Backoff {
    ceiling: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            ceiling: FIRST_DELAY,
        }
    }
}

impl Backoff {
    /// A connection that held for long shows that the server is well: delays begin anew.
    fn held_for(&mut self, time: Duration) {
        if time >= HELD {
            *self = Self::default();
        }
    }

    /// The next delay, for a random number from 0 to 1.
    fn next(&mut self, random: f64) -> Duration {
        let ceiling = self.ceiling;
        self.ceiling = (ceiling * 2).min(LONGEST_DELAY);
        let jittered = ceiling.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
        jittered.max(FIRST_DELAY.min(ceiling))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: D1
    #[test]
    fn delays_begin_anew_after_a_connection_that_held() {
        let mut backoff = Backoff::default();
        for _ in 0..4 {
            backoff.next(1.0);
        }
        // A server that accepts and fails at once is no better than one that is not there.
        backoff.held_for(HELD - Duration::from_millis(1));
        assert_eq!(backoff.next(1.0), Duration::from_secs(16));
        backoff.held_for(HELD);
        assert_eq!(backoff.next(1.0), FIRST_DELAY);
    }

    // contract: D4
    #[test]
    fn a_changed_list_is_had_at_once_and_an_ever_changing_one_now_and_then() {
        let start = Instant::now();
        let mut pace = Pace::default();
        let mut next = |heard: u64| {
            let next = pace.next(start + Duration::from_secs(heard)) - start;
            next.as_secs()
        };
        // One that announces a change whenever it is asked.
        let mut asked = vec![next(0)];
        for _ in 0..6 {
            asked.push(next(*asked.last().unwrap()));
        }
        assert_eq!(asked, [0, 1, 3, 7, 15, 25, 35]);
        // A quiet one is asked at once, as the first time.
        assert_eq!(next(55), 55);
        assert_eq!(next(55), 56);
        assert_eq!(next(57), 58);
        assert_eq!(next(66), 66);
    }

    // contract: D1
    #[test]
    fn delays_grow_from_one_second_to_sixty_and_jitter_stays_below() {
        for (random, expected) in [
            (1.0, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]),
            (0.5, [1.0, 1.5, 3.0, 6.0, 12.0, 24.0, 45.0, 45.0]),
            (0.0, [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]),
        ] {
            let mut backoff = Backoff::default();
            let delays = expected.map(|_| backoff.next(random).as_secs_f64());
            assert_eq!(delays, expected, "random {random}");
        }
    }
}
