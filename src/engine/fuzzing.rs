//! One run over pipes that a law holds both ends of.

use std::pin::pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::pipes::Channel;
use super::run::{Process, Run};
use crate::config::Execution;
use crate::gate::Gate;
use crate::registry::Registry;
use crate::report::Report;
use crate::sandbox::Exit;

/// A child that is gone once the token says so, and how.
pub(crate) struct Gone(pub(crate) CancellationToken, pub(crate) Exit);

impl Process for Gone {
    async fn exit(&mut self) -> Exit {
        self.0.cancelled().await;
        self.1.clone()
    }
}

pub(crate) async fn run<R, W>(
    execution: &Execution,
    registry: &Arc<Registry>,
    gate: &Gate,
    (from_child, to_child): (R, W),
    mut child: Gone,
    cancelled: CancellationToken,
) -> Report
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let channel = Channel::new(from_child, to_child);
    let cancelled = pin!(cancelled.cancelled());
    Run::new(execution, registry, gate)
        .finish(String::new(), &mut child, channel, cancelled)
        .await
}
