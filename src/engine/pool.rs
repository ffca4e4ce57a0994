//! Children that stand: started ahead of their programs, handed out once, ended behind their backs.
//!
//! One task owns them. A program that comes takes a child that is ready, or the next one that will
//! be; when a program has ended, the next child is started. A ready child has run our half of the
//! channel and nothing else, and no two programs see the same one.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::pipes::Channel;
use crate::channel::{self, ChannelError, ChildMessage};
use crate::pipe;
use crate::report::ProgramError;
use crate::sandbox::{Child, Sandbox, SandboxError};

/// How long a fresh interpreter may take to stand, on a machine that is busy with other things.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Between a program's end and the start of the next child: its result is to be written first.
const QUIET: Duration = Duration::from_millis(2);

/// Between the server's start and that of the first child: the client's first questions come first.
const HANDSHAKE: Duration = Duration::from_millis(5);

/// Without programs for this long, no more children are kept than configured.
const IDLE: Duration = Duration::from_secs(10);

/// How many times `execution.pool` a burst of programs may grow it to.
const BURST: usize = 4;

/// A child whose half of the channel is there, waiting for its program.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) child: Child,
    pub(super) channel: Channel<ChildStdout, ChildStdin>,
}

/// A child in the hands of its program. However it is let go, it comes back to be ended.
#[derive(Debug)]
pub(super) struct Lent {
    standing: Option<Standing>,
    /// The program's place, which is given back when the child is gone.
    turn: Option<OwnedSemaphorePermit>,
    orders: mpsc::UnboundedSender<Order>,
}

impl Lent {
    pub(super) fn standing(&mut self) -> &mut Standing {
        let standing = self.standing.as_mut();
        standing.expect("it is taken out only to be ended")
    }

    /// Has what is left of the child killed and ended. That is waited for if the child leaves files
    /// behind; where nothing is left to be seen, it happens in the background.
    pub(super) async fn end(mut self) {
        let (gone, wait) = oneshot::channel();
        let leaves_files = self.standing().child.leaves_files();
        self.give_back(Some(gone));
        if leaves_files {
            let _ = wait.await;
        }
    }

    fn give_back(&mut self, gone: Option<oneshot::Sender<()>>) {
        if let Some(mut standing) = self.standing.take() {
            standing.child.kill();
            let turn = self.turn.take();
            let child = Box::new(standing.child);
            let _ = self.orders.send(Order::Ended { child, turn, gone });
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.give_back(None);
    }
}

type Taker = oneshot::Sender<Result<Lent, SandboxError>>;

#[derive(Debug)]
enum Order {
    Take(Taker),
    /// A program has ended, or never began.
    Ended {
        child: Box<Child>,
        turn: Option<OwnedSemaphorePermit>,
        /// Who waits for the child to be gone.
        gone: Option<oneshot::Sender<()>>,
    },
    Fill,
    Close(oneshot::Sender<()>),
}

/// The way to the task that keeps the children, which ends with it.
#[derive(Debug)]
pub(super) struct Pool {
    orders: mpsc::UnboundedSender<Order>,
}

impl Pool {
    /// Keeps `size` children ready. `programs` has a permit for each that may run at a time.
    pub(super) fn start(sandbox: Arc<Sandbox>, size: usize, programs: Arc<Semaphore>) -> Self {
        let (orders, received) = mpsc::unbounded_channel();
        let places = programs.available_permits();
        let keeper = Keeper {
            orders: orders.downgrade(),
            sandbox,
            size,
            most: size.saturating_mul(BURST).min(places).max(size),
            programs,
            places,
            wanted: size,
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            starting: FuturesUnordered::new(),
            ending: FuturesUnordered::new(),
            fill_at: None,
            shrink_at: None,
        };
        tokio::spawn(keeper.run(received));
        Self { orders }
    }

    /// A child for the program whose turn it is.
    pub(super) async fn take(&self, turn: OwnedSemaphorePermit) -> Result<Lent, ProgramError> {
        let (taker, taken) = oneshot::channel();
        self.order(Order::Take(taker));
        match taken.await {
            Ok(lent) => {
                let mut lent = lent?;
                lent.turn = Some(turn);
                tracing::debug!("a child is handed out");
                Ok(lent)
            }
            Err(_) => Err(ProgramError::Cancelled),
        }
    }

    /// Starts the first children before the first program.
    pub(super) fn fill(&self) {
        self.order(Order::Fill);
    }

    /// Ends every child and waits until they are gone.
    pub(super) async fn close(&self) {
        let (closed, wait) = oneshot::channel();
        self.order(Order::Close(closed));
        let _ = wait.await;
    }

    fn order(&self, order: Order) {
        // After the close, a taker that is dropped says so, and a child that is dropped is killed.
        let _ = self.orders.send(order);
    }
}

struct Keeper {
    /// For those who bring children back. Not one that would keep this task alive.
    orders: mpsc::WeakUnboundedSender<Order>,
    sandbox: Arc<Sandbox>,
    size: usize,
    most: usize,
    programs: Arc<Semaphore>,
    places: usize,
    /// How many are to be ready: as many as ran at once lately.
    wanted: usize,
    /// The one that has waited longest, and has loaded most, first.
    ready: VecDeque<Standing>,
    waiting: VecDeque<Taker>,
    starting: FuturesUnordered<BoxFuture<'static, Result<Standing, SandboxError>>>,
    ending: FuturesUnordered<BoxFuture<'static, ()>>,
    fill_at: Option<Instant>,
    shrink_at: Option<Instant>,
}

impl Keeper {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Order::Take(taker)) => self.take(taker),
                    Some(Order::Ended { child, turn, gone }) => self.ended(*child, turn, gone),
                    Some(Order::Fill) => self.fill_at = Some(Instant::now() + HANDSHAKE),
                    Some(Order::Close(closed)) => {
                        self.close().await;
                        let _ = closed.send(());
                        return;
                    }
                    None => return,
                },
                Some(started) = self.starting.next() => self.started(started),
                Some(()) = self.ending.next() => {}
                gone = first_gone(&mut self.ready) => {
                    // Not replaced before the next program: whatever killed it may kill the next.
                    tracing::debug!("a child ended while it waited for a program");
                    if let Some(standing) = self.ready.remove(gone) {
                        self.discard(standing);
                    }
                }
                () = at(self.fill_at) => self.fill(),
                () = at(self.shrink_at) => self.shrink(),
            }
        }
    }

    fn take(&mut self, taker: Taker) {
        self.shrink_at = None;
        let running = self.places - self.programs.available_permits();
        self.wanted = self.wanted.max(running.min(self.most));
        while let Some(standing) = self.ready.pop_front() {
            if !self.is_fit(&standing) {
                self.discard(standing);
                continue;
            }
            // One that comes back unsent is as ready as before: its program was cancelled.
            let unsent = self.lend(taker, standing);
            self.ready.extend(unsent);
            return;
        }
        self.waiting.retain(|taker| !taker.is_closed());
        self.waiting.push_back(taker);
        if self.starting.len() < self.waiting.len() {
            self.start();
        }
    }

    /// Hands a child out, or comes back with it if its program wants it no more.
    fn lend(&self, taker: Taker, standing: Standing) -> Option<Standing> {
        let Some(orders) = self.orders.upgrade() else {
            return Some(standing);
        };
        let lent = Lent {
            standing: Some(standing),
            turn: None,
            orders,
        };
        match taker.send(Ok(lent)) {
            Ok(()) | Err(Err(_)) => None,
            Err(Ok(mut lent)) => lent.standing.take(),
        }
    }

    fn start(&mut self) {
        let sandbox = self.sandbox.clone();
        self.starting
            .push(async move { stand(&sandbox).await }.boxed());
    }

    fn started(&mut self, started: Result<Standing, SandboxError>) {
        let mut standing = match started {
            Ok(standing) => standing,
            Err(error) => return self.failed(error),
        };
        if !self.sandbox.is_current(&standing.child) {
            // The interpreter was replaced meanwhile.
            self.discard(standing);
            return self.start();
        }
        while let Some(taker) = self.waiting.pop_front() {
            match self.lend(taker, standing) {
                None => return,
                Some(unsent) => standing = unsent,
            }
        }
        if self.ready.len() < self.wanted {
            self.ready.push_back(standing);
            self.fill();
        } else {
            self.discard(standing);
        }
    }

    /// Tells the one who waits. Without one, it is not tried again before the next program.
    fn failed(&mut self, mut error: SandboxError) {
        while let Some(taker) = self.waiting.pop_front() {
            match taker.send(Err(error)) {
                Err(Err(unsent)) => error = unsent,
                _ => return,
            }
        }
        tracing::debug!("no child could be made ready: {error}");
    }

    /// Starts the next child that is wanted: one at a time, so that programs find a processor free.
    fn fill(&mut self) {
        self.fill_at = None;
        if self.starting.is_empty() && self.ready.len() < self.wanted {
            self.start();
        }
    }

    fn ended(
        &mut self,
        child: Child,
        turn: Option<OwnedSemaphorePermit>,
        gone: Option<oneshot::Sender<()>>,
    ) {
        let ending = async move {
            child.end().await;
            drop(turn);
            // Most do not wait for it.
            let _ = gone.map(|gone| gone.send(()));
        };
        self.ending.push(ending.boxed());
        if self.wanted > 0 {
            self.fill_at = Some(Instant::now() + QUIET);
        }
        self.shrink_at = (self.wanted > self.size).then(|| Instant::now() + IDLE);
    }

    fn shrink(&mut self) {
        self.shrink_at = None;
        self.wanted = self.size;
        while self.ready.len() > self.size {
            if let Some(standing) = self.ready.pop_back() {
                self.discard(standing);
            }
        }
    }

    /// Whether a program may have it: alive, silent, and started on what is there today.
    fn is_fit(&self, standing: &Standing) -> bool {
        self.sandbox.is_current(&standing.child) && is_silent(&standing.channel.incoming.pipe)
    }

    fn discard(&mut self, standing: Standing) {
        self.ending.push(standing.child.end().boxed());
    }

    async fn close(mut self) {
        self.starting.clear();
        while let Some(standing) = self.ready.pop_front() {
            self.discard(standing);
        }
        while self.ending.next().await.is_some() {}
    }
}

/// Comes back with the place of a child that is gone.
async fn first_gone(ready: &mut VecDeque<Standing>) -> usize {
    poll_fn(|context| {
        for (place, standing) in ready.iter_mut().enumerate() {
            if pin!(standing.child.gone()).poll(context).is_ready() {
                return Poll::Ready(place);
            }
        }
        Poll::Pending
    })
    .await
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// A child that waits says nothing. One that has just died may not be known to be gone yet, but its
/// pipe is.
fn is_silent(pipe: &ChildStdout) -> bool {
    let mut said = [PollFd::new(pipe, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut said, Some(&now)).is_ok_and(|ready| ready == 0)
}

/// Starts a child and waits until its half stands; a second one if the first was started on what may
/// not be there any more.
async fn stand(sandbox: &Sandbox) -> Result<Standing, SandboxError> {
    match try_to_stand(sandbox).await? {
        Ok(standing) => Ok(standing),
        Err(not) if not.failed && sandbox.doubt(&not.child).await => {
            not.child.end().await;
            match try_to_stand(sandbox).await? {
                Ok(standing) => Ok(standing),
                Err(not) => Err(not.end().await),
            }
        }
        Err(not) => Err(not.end().await),
    }
}

struct NotStanding {
    child: Child,
    reason: String,
    /// That it was slow says nothing of what it was started on.
    failed: bool,
}

impl NotStanding {
    async fn end(self) -> SandboxError {
        self.child.end().await;
        let reason = self.reason;
        SandboxError::Start { reason }
    }
}

async fn try_to_stand(sandbox: &Sandbox) -> Result<Result<Standing, NotStanding>, SandboxError> {
    let mut child = sandbox.spawn().await?;
    let (Some(from_child), Some(to_child)) = (child.stdout.take(), child.stdin.take()) else {
        let reason = "its pipes are gone".to_owned();
        return Err(SandboxError::Start { reason });
    };
    pipe::widen(&to_child);
    let mut channel = Channel::new(from_child, to_child);
    let first = async {
        // Should it end before it has read, what follows says so.
        let _ = channel.outgoing.write_all(child.preamble()).await;
        channel.incoming.next().await
    };
    let first = tokio::time::timeout(START_LIMIT, first).await;
    let failed = first.is_ok();
    let reason = match first {
        Ok(Some(Ok(ChildMessage::Ready {
            version: channel::VERSION,
            python,
        }))) => {
            tracing::debug!(python, "a child stands");
            child.forget_stderr();
            return Ok(Ok(Standing { child, channel }));
        }
        Ok(Some(Ok(ChildMessage::Ready { version, .. }))) => {
            ChannelError::Version { found: version }.to_string()
        }
        Ok(Some(Ok(_))) => ChannelError::OutOfTurn("first").to_string(),
        Ok(Some(Err(error))) => error.to_string(),
        Ok(None) => {
            let words = child.last_words().await;
            let last = words.lines().last().unwrap_or("it said nothing").to_owned();
            format!("it ended before it was ready: {last}")
        }
        Err(_) => format!("it was not ready within {} s", START_LIMIT.as_secs()),
    };
    Ok(Err(NotStanding {
        child,
        reason,
        failed,
    }))
}
