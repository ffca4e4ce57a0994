//! A program's wall clock. Knows nothing of what makes it stand.

use std::time::Duration;

use tokio::time::Instant;

/// A program's wall clock, which stands still while a person is asked (contract A2).
#[derive(Debug)]
pub(super) struct Clock {
    left: Duration,
    /// Since when it has been running, unless it stands.
    since: Option<Instant>,
}

impl Clock {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            left: limit,
            since: Some(Instant::now()),
        }
    }

    pub(super) fn stop(&mut self) {
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
    }

    pub(super) fn go_on(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    pub(super) async fn runs_out(&self) {
        match self.since {
            // A limit beyond what the clock can count is none.
            Some(since) => match since.checked_add(self.left) {
                Some(end) => {
                    // In ticks of a second: while a timer is due this soon, the deadlines of calls, which come
                    // later, are set without waking the runtime's driver for each.
                    while Instant::now() < end {
                        let next = Duration::from_secs(since.elapsed().as_secs() + 1);
                        tokio::time::sleep_until(end.min(since + next)).await;
                    }
                }
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: A2 P8
    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_still_while_a_person_is_asked() {
        let started = Instant::now();
        let mut clock = Clock::new(Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(4)).await;
        clock.stop();
        clock.stop();
        tokio::time::advance(Duration::from_secs(300)).await;
        let still = tokio::time::timeout(Duration::from_secs(300), clock.runs_out()).await;
        assert!(still.is_err());
        clock.go_on();
        clock.go_on();
        clock.runs_out().await;
        assert_eq!(started.elapsed(), Duration::from_secs(610));
        tokio::time::timeout(Duration::from_secs(1), Clock::new(Duration::MAX).runs_out())
            .await
            .unwrap_err();
    }
}
