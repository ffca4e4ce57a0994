//! Both directions of a child's channel, over any pair of pipes.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::channel::frame::Decoder;
use crate::channel::{ChannelError, ChildMessage, HostMessage, MAX_CHILD_FRAME};

/// Both directions of one child's channel.
#[derive(Debug)]
pub(super) struct Channel<R, W> {
    pub(super) incoming: Incoming<R>,
    pub(super) outgoing: W,
}

impl<R, W> Channel<R, W> {
    pub(super) fn new(from_child: R, to_child: W) -> Self {
        Self {
            incoming: Incoming {
                pipe: from_child,
                decoder: Decoder::new(MAX_CHILD_FRAME),
                buffer: vec![0; 64 * 1024].into_boxed_slice(),
                unread: 0..0,
            },
            outgoing: to_child,
        }
    }
}

/// The child's frames as messages.
#[derive(Debug)]
pub(super) struct Incoming<R> {
    pub(super) pipe: R,
    decoder: Decoder,
    buffer: Box<[u8]>,
    unread: std::ops::Range<usize>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// The next message; `None` at the end of the pipe. Safe to drop and call again: what was read
    /// is kept.
    pub(super) async fn next(&mut self) -> Option<Result<ChildMessage, ChannelError>> {
        loop {
            // A buffer holds thousands of small frames, and others have to have their turn.
            tokio::task::consume_budget().await;
            let mut bytes = &self.buffer[self.unread.clone()];
            let decoded = self.decoder.decode(&mut bytes);
            self.unread.start = self.unread.end - bytes.len();
            match decoded {
                Ok(Some(body)) => return Some(ChildMessage::parse(&body)),
                Ok(None) => {}
                Err(error) => return Some(Err(error.into())),
            }
            match self.pipe.read(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.unread = 0..n,
            }
        }
    }
}

pub(super) type Outgoing = (HostMessage, Option<OwnedSemaphorePermit>);

/// Writes frames in order, giving each answer's slot back once it is in the pipe. Ends when the
/// child no longer reads.
pub(super) async fn write_frames(
    mut pipe: impl AsyncWrite + Unpin,
    start: HostMessage,
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
) {
    let mut next = Some((start, None));
    while let Some((message, slot)) = next {
        let Ok(pieces) = message.into_frame() else {
            return;
        };
        for piece in pieces {
            if pipe.write_all(&piece).await.is_err() {
                return;
            }
        }
        drop(slot);
        next = queue.recv().await;
    }
}
