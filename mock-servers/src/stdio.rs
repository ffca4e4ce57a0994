//! A scenario on stdin and stdout, one message a line.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::fault::{Crash, Fault};
use crate::journal::Event;
use crate::perform::{Wire, drip, end_process, perform};
use crate::play::{Plan, Player, Received, Step};

/// What all answers share: one stdout, one stdin.
#[derive(Default)]
struct Pipes {
    /// One message at a time, however slowly it is written.
    out: Mutex<()>,
    deaf: AtomicBool,
    /// Requests whose answers are under way.
    answering: AtomicUsize,
}

/// How long answers may take after the end of stdin.
const LAST_WORDS: Duration = Duration::from_millis(200);

struct StdioWire(Arc<Pipes>);

impl Wire for StdioWire {
    fn frame(&self, message: &[u8]) -> Vec<u8> {
        [message, b"\n"].concat()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let _turn = self.0.out.lock().unwrap_or_else(PoisonError::into_inner);
        write_out(bytes)
    }

    fn drip(&mut self, bytes: &[u8], per_second: u64) -> io::Result<()> {
        let _turn = self.0.out.lock().unwrap_or_else(PoisonError::into_inner);
        drip(bytes, per_second, write_out)
    }

    fn close(&mut self) {
        // A pipe ends when its last descriptor does; stdout itself has to stay valid.
        if let Ok(null) = File::options().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(&null);
        }
    }

    fn crash(&mut self, crash: &Crash) {
        end_process(crash);
    }

    fn deafen(&mut self) {
        self.0.deaf.store(true, Ordering::SeqCst);
    }
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Serves until stdin ends.
pub(crate) fn serve(player: Player) -> io::Result<()> {
    let player = Arc::new(player);
    let pipes = Arc::new(Pipes::default());
    for fault in player.scenario().start_faults(player.recorder().start()) {
        if let Fault::Grandchild(grandchild) = fault {
            let child = Command::new("sleep")
                .arg(grandchild.seconds.to_string())
                .stdin(Stdio::inherit())
                .stdout(Stdio::inherit())
                .stderr(Stdio::inherit())
                .spawn()?;
            player
                .recorder()
                .note(Event::Grandchild, &child.id().to_string());
        }
    }
    let start = Plan {
        steps: player.at_start(),
        ..Plan::default()
    };
    perform(&player, "", &start, &mut StdioWire(Arc::clone(&pipes)))?;
    announce_to(&player, &pipes);

    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        if pipes.deaf.load(Ordering::SeqCst) {
            std::thread::park();
            continue;
        }
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let plan = match player.receive(line.trim_ascii(), "", None) {
            Received::Plan(plan) => plan,
            Received::Struck(fault) => Plan::struck(&fault),
            Received::Noted => continue,
        };
        let closing = plan.steps.contains(&Step::CloseStdin);
        let mut wire = StdioWire(Arc::clone(&pipes));
        let player = Arc::clone(&player);
        pipes.answering.fetch_add(1, Ordering::SeqCst);
        let answer = move || {
            // The client may be gone; the end of stdin says so, too.
            let _ = perform(&player, "", &plan, &mut wire);
            wire.0.answering.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::Builder::new().spawn(answer)?;
        if closing {
            rustix::stdio::dup2_stdin(&File::open("/dev/null")?)?;
            pipes.deaf.store(true, Ordering::SeqCst);
        }
    }
    player
        .recorder()
        .write(player.recorder().entry(Event::StdinEnd));
    let stays = player
        .scenario()
        .start_faults(player.recorder().start())
        .any(|fault| matches!(fault, Fault::IgnoreStdinEnd(_)));
    if stays {
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
    // Answers that are ready still go out.
    let end = Instant::now() + LAST_WORDS;
    while pipes.answering.load(Ordering::SeqCst) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Announcements go out as they come.
fn announce_to(player: &Arc<Player>, pipes: &Arc<Pipes>) {
    if player.scenario().protocol.newest_handshake().is_none() {
        return;
    }
    let announcements = player.listen(None);
    let mut wire = StdioWire(Arc::clone(pipes));
    let player = Arc::clone(player);
    std::thread::spawn(move || {
        for message in announcements {
            // A client of the stateless era hears only what it subscribed to.
            if !player.is_initialized("") {
                continue;
            }
            let bytes = wire.frame(&message);
            if wire.write(&bytes).is_err() {
                return;
            }
        }
    });
}
