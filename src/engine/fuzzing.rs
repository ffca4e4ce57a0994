//! One run over pipes that a law holds both ends of.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::pipes::Channel;
use super::run::{Process, Run};
use crate::config::Execution;
use crate::gate::Gate;
use crate::registry::Registry;
use crate::report::Report;
use crate::sandbox::Exit;

/// A child that is gone once the token says so, and how, or has to go, and why.
pub(crate) struct Gone(
    pub(crate) CancellationToken,
    pub(crate) Result<Exit, String>,
);

impl Process for Gone {
    async fn exit(&mut self) -> Exit {
        match &self.1 {
            Ok(exit) => {
                self.0.cancelled().await;
                exit.clone()
            }
            Err(_) => pending().await,
        }
    }

    fn exceeded(&mut self) -> BoxFuture<'static, String> {
        match &self.1 {
            Ok(_) => pending().boxed(),
            Err(limit) => {
                let (token, limit) = (self.0.clone(), limit.clone());
                async move {
                    token.cancelled().await;
                    // As a timer, it comes only to those that are polled before their turn is over.
                    tokio::task::consume_budget().await;
                    limit
                }
                .boxed()
            }
        }
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
    let mut channel = Channel::new(from_child, to_child);
    let cancelled = pin!(cancelled.cancelled());
    Run::new(execution, registry, gate)
        .finish(String::new(), &mut child, &mut channel, cancelled)
        .await
}
