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

/// A child in the hands of its program, to which the program's place belongs. Dropped, it ends all the
/// same.
#[derive(Debug)]
pub(super) struct Lent {
    lent: Option<(Standing, OwnedSemaphorePermit)>,
    orders: mpsc::UnboundedSender<Order>,
}

impl Lent {
    pub(super) fn standing(&mut self) -> &mut Standing {
        let lent = self.lent.as_mut();
        &mut lent.expect("it is taken out only to be ended").0
    }

    /// Kills what is left of the child, and gives its program's place back when it is gone. That, too,
    /// is waited for here if the child leaves files behind; where nothing is left to be seen, it
    /// happens in the background.
    pub(super) async fn end(mut self) {
        let leaves_files = self.standing().child.leaves_files();
        if leaves_files && let Some((mut standing, turn)) = self.lent.take() {
            standing.child.kill();
            standing.child.end().await;
            let _ = self.orders.send(Order::Ended(None, turn));
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some((mut standing, turn)) = self.lent.take() {
            standing.child.kill();
            let child = Box::new(standing.child);
            let _ = self.orders.send(Order::Ended(Some(child), turn));
        }
    }
}

type Taker = oneshot::Sender<Result<Standing, SandboxError>>;

#[derive(Debug)]
enum Order {
    Take(Taker),
    /// A program has ended; what is left of its child, if that was not ended with it.
    Ended(Option<Box<Child>>, OwnedSemaphorePermit),
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
            Ok(standing) => {
                let lent = Some((standing?, turn));
                tracing::debug!("a child is handed out");
                let orders = self.orders.clone();
                Ok(Lent { lent, orders })
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
                    Some(Order::Ended(child, turn)) => self.ended(child, turn),
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
            match taker.send(Ok(standing)) {
                Ok(()) => return,
                Err(unsent) => {
                    // The program was cancelled meanwhile.
                    self.ready.extend(unsent.ok());
                    return;
                }
            }
        }
        self.waiting.retain(|taker| !taker.is_closed());
        self.waiting.push_back(taker);
        if self.starting.len() < self.waiting.len() {
            self.start();
        }
    }

    fn start(&mut self) {
        let sandbox = self.sandbox.clone();
        self.starting
            .push(async move { stand(&sandbox).await }.boxed());
    }

    fn started(&mut self, mut started: Result<Standing, SandboxError>) {
        if let Ok(standing) = &started
            && !self.sandbox.is_current(&standing.child)
        {
            // The interpreter was replaced meanwhile.
            self.ending
                .extend(started.ok().map(|standing| standing.child.end().boxed()));
            return self.start();
        }
        while let Some(taker) = self.waiting.pop_front() {
            match taker.send(started) {
                Ok(()) => return,
                Err(unsent) => started = unsent,
            }
        }
        match started {
            Ok(standing) if self.ready.len() < self.wanted => {
                self.ready.push_back(standing);
                self.fill();
            }
            Ok(standing) => self.discard(standing),
            // Not tried again before the next program, which is told why.
            Err(error) => tracing::debug!("no child could be made ready: {error}"),
        }
    }

    /// Starts the next child that is wanted: one at a time, so that programs find a processor free.
    fn fill(&mut self) {
        self.fill_at = None;
        if self.starting.is_empty() && self.ready.len() < self.wanted {
            self.start();
        }
    }

    fn ended(&mut self, child: Option<Box<Child>>, turn: OwnedSemaphorePermit) {
        if let Some(child) = child {
            let ending = async move {
                child.end().await;
                drop(turn);
            };
            self.ending.push(ending.boxed());
        }
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

/// Starts a child and waits until its half stands; a second time on what is there by then, if the
/// first one did not.
async fn stand(sandbox: &Sandbox) -> Result<Standing, SandboxError> {
    match try_to_stand(sandbox, sandbox.spawn().await?).await {
        Ok(standing) => Ok(standing),
        Err(_) => try_to_stand(sandbox, sandbox.spawn().await?).await,
    }
}

async fn try_to_stand(sandbox: &Sandbox, mut child: Child) -> Result<Standing, SandboxError> {
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
    let broken = match tokio::time::timeout(START_LIMIT, first).await {
        Ok(Some(Ok(ChildMessage::Ready {
            version: channel::VERSION,
            python,
        }))) => {
            tracing::debug!(python, "a child stands");
            child.forget_stderr();
            return Ok(Standing { child, channel });
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
    sandbox.doubt(&child).await;
    child.end().await;
    Err(SandboxError::Start { reason: broken })
}
