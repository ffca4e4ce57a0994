//! Performs the steps of an answer on whatever wire there is.

use std::io;
use std::time::Duration;

use crate::fault::Crash;
use crate::journal::{Entry, Event};
use crate::play::{Plan, Player, Step};

/// One direction of a connection.
pub(crate) trait Wire {
    /// The message as this transport frames it.
    fn frame(&self, message: &[u8]) -> Vec<u8>;

    /// Writes at once, and flushes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Writes slowly, and lets nobody in between.
    fn drip(&mut self, bytes: &[u8], per_second: u64) -> io::Result<()> {
        drip(bytes, per_second, |piece| self.write(piece))
    }

    /// Whether the other end has gone; asked while there is nothing to write.
    fn gone(&mut self) -> bool {
        false
    }

    /// Lets go of the output for good.
    fn close(&mut self) {}

    /// Ends the server, abruptly. Returns only where the server is a thread of a test.
    fn crash(&mut self, crash: &Crash);

    /// Reads nothing more.
    fn deafen(&mut self) {}
}

/// Writes ten pieces a second.
pub(crate) fn drip(
    bytes: &[u8],
    per_second: u64,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let piece = usize::try_from(per_second / 10)
        .unwrap_or(usize::MAX)
        .max(1);
    let pause = Duration::from_secs_f64(
        f64::from(u32::try_from(piece).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(per_second).unwrap_or(u32::MAX)),
    );
    for piece in bytes.chunks(piece) {
        write(piece)?;
        std::thread::sleep(pause);
    }
    Ok(())
}

/// Performs a plan for this peer. An error means that the other end is gone.
pub(crate) fn perform(
    player: &Player,
    peer: &str,
    plan: &Plan,
    wire: &mut dyn Wire,
) -> io::Result<()> {
    let id = plan.id.as_deref();
    let mut answered = false;
    let done = steps(player, peer, id, &plan.steps, wire, &mut answered);
    // A client that leaves as soon as it has its answer has not given up on it.
    if !answered && id.is_some() && (done.is_err() || wire.gone()) {
        let recorder = player.recorder();
        recorder.write(Entry {
            method: plan.method.clone(),
            id: id.and_then(raw_id),
            ..recorder.entry(Event::Disconnected)
        });
    }
    done
}

fn raw_id(id: &str) -> Option<Box<serde_json::value::RawValue>> {
    serde_json::value::RawValue::from_string(id.to_owned()).ok()
}

fn steps(
    player: &Player,
    peer: &str,
    id: Option<&str>,
    steps: &[Step],
    wire: &mut dyn Wire,
    answered: &mut bool,
) -> io::Result<()> {
    for step in steps {
        if player.is_stopped() {
            return Ok(());
        }
        match step {
            Step::Message(message) => {
                let bytes = wire.frame(message);
                wire.write(&bytes)?;
            }
            Step::Answer(_) if player.is_cancelled(peer, id) => {}
            Step::Answer(message) | Step::AnswerRegardless(message) => {
                let bytes = wire.frame(message);
                wire.write(&bytes)?;
                *answered = true;
                let recorder = player.recorder();
                recorder.write(Entry {
                    id: id.and_then(raw_id),
                    ..recorder.entry(Event::Answered)
                });
            }
            Step::Raw(bytes) => wire.write(bytes)?,
            Step::Half(message) => {
                let bytes = wire.frame(message);
                wire.write(&bytes[..bytes.len() / 2])?;
            }
            Step::Drip(message, per_second) => {
                let bytes = wire.frame(message);
                wire.drip(&bytes, *per_second)?;
            }
            Step::Wait(time) => {
                player.pause(peer, id, *time, &mut || wire.gone());
                if wire.gone() {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            }
            Step::AwaitCancel => {
                player.pause(peer, id, Duration::from_secs(600), &mut || wire.gone());
            }
            Step::Ask { id: ask, message } => {
                let bytes = wire.frame(message);
                wire.write(&bytes)?;
                player.await_answer(ask, &mut || wire.gone());
            }
            Step::Announce(message) => player.announce(message),
            Step::Subscribe(acknowledgement) => {
                let announcements = player.listen(id.map(str::to_owned));
                let bytes = wire.frame(acknowledgement);
                wire.write(&bytes)?;
                while !player.is_cancelled(peer, id) && !player.is_stopped() && !wire.gone() {
                    if let Ok(message) = announcements.recv_timeout(Duration::from_millis(10)) {
                        let bytes = wire.frame(&message);
                        wire.write(&bytes)?;
                    }
                }
            }
            Step::Endless {
                unit,
                framed,
                pause,
            } => {
                let bytes = if *framed {
                    wire.frame(unit)
                } else {
                    unit.clone()
                };
                while !player.is_stopped() {
                    wire.write(&bytes)?;
                    std::thread::sleep(*pause);
                }
            }
            Step::Stderr(bytes) => {
                // Whoever does not read stderr blocks a real server, too.
                io::Write::write_all(&mut io::stderr(), bytes)?;
            }
            Step::CloseStdout => wire.close(),
            Step::CloseStdin => {}
            Step::Crash(crash) => {
                for line in &crash.stderr {
                    io::Write::write_all(&mut io::stderr(), format!("{line}\n").as_bytes())?;
                }
                wire.crash(crash);
                return Ok(());
            }
            Step::Hang { deaf } => {
                if *deaf {
                    wire.deafen();
                }
                // The answer never comes, cancelled or not; the connection stays while it can.
                while !player.is_stopped() && !wire.gone() && !player.is_cancelled(peer, id) {
                    player.pause(peer, id, Duration::from_secs(600), &mut || wire.gone());
                }
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Ends this process as the crash says.
pub(crate) fn end_process(crash: &Crash) -> ! {
    use crate::fault::CrashSignal;
    use rustix::process::{Signal, getpid, kill_process};

    if let Some(signal) = crash.signal {
        let signal = match signal {
            CrashSignal::Kill => Signal::KILL,
            CrashSignal::Segv => Signal::SEGV,
            CrashSignal::Abrt => Signal::ABORT,
            CrashSignal::Term => Signal::TERM,
        };
        let _ = kill_process(getpid(), signal);
        // The signal may take a moment to arrive.
        std::thread::sleep(Duration::from_secs(5));
    }
    std::process::exit(crash.exit_code.unwrap_or(1));
}
