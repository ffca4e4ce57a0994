//! Waiting, cancellation, and announcements: what one answer learns while it is under way.

use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Listener, Player, State};

/// How long the server waits for a client's answer before it goes on without.
const ASK_PATIENCE: Duration = Duration::from_secs(10);

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

impl Player {
    pub(crate) fn cancel(&self, peer: &str, id: &str) {
        self.state()
            .cancelled
            .insert((peer.to_owned(), id.to_owned()));
        self.changed.notify_all();
    }

    pub(crate) fn is_cancelled(&self, peer: &str, id: Option<&str>) -> bool {
        id.is_some_and(|id| {
            self.state()
                .cancelled
                .contains(&(peer.to_owned(), id.to_owned()))
        })
    }

    pub(crate) fn is_initialized(&self, peer: &str) -> bool {
        self.state().initialized.contains(peer)
    }

    pub(crate) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Waits for the time to pass, or for `until` to hold, or for the server's end.
    fn wait(&self, time: Duration, until: impl Fn(&State) -> bool, gone: &mut dyn FnMut() -> bool) {
        let end = Instant::now().checked_add(time);
        let mut state = self.state();
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if until(&state) || state.stopped || left.is_some_and(|left| left.is_zero()) {
                return;
            }
            // Short turns, since a connection's end rings no bell.
            let turn = left.unwrap_or(Duration::MAX).min(Duration::from_millis(10));
            let woken = self.changed.wait_timeout(state, turn);
            drop(woken.unwrap_or_else(PoisonError::into_inner).0);
            if gone() {
                return;
            }
            state = self.state();
        }
    }

    /// Waits, or until this request is cancelled.
    pub(crate) fn pause(
        &self,
        peer: &str,
        id: Option<&str>,
        time: Duration,
        gone: &mut dyn FnMut() -> bool,
    ) {
        let key = id.map(|id| (peer.to_owned(), id.to_owned()));
        self.wait(
            time,
            |state| {
                key.as_ref()
                    .is_some_and(|key| state.cancelled.contains(key))
            },
            gone,
        );
    }

    /// Waits for the client's answer to a request of the server's.
    pub(crate) fn await_answer(&self, ask: &str, gone: &mut dyn FnMut() -> bool) {
        self.wait(ASK_PATIENCE, |state| state.answers.contains(ask), gone);
    }

    /// Registers a listener for announcements.
    pub(crate) fn listen(&self, subscription: Option<String>) -> Receiver<Vec<u8>> {
        let (sender, receiver) = channel();
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.push(Listener {
            subscription,
            sender,
        });
        receiver
    }

    /// Hands a notification to every listener that is still there.
    pub(crate) fn announce(&self, message: &[u8]) {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| {
            let message = match &listener.subscription {
                None => message.to_vec(),
                Some(id) => with_subscription(message, id),
            };
            listener.sender.send(message).is_ok()
        });
    }
}

pub(super) fn with_subscription(message: &[u8], id: &str) -> Vec<u8> {
    let (Ok(mut message), Ok(id)) = (
        serde_json::from_slice::<Value>(message),
        serde_json::from_str::<Value>(id),
    ) else {
        return message.to_vec();
    };
    message["params"]["_meta"][SUBSCRIPTION_ID] = id;
    message.to_string().into_bytes()
}
