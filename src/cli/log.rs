//! The log of a serving process, written by a thread of its own.
//!
//! A client may hold our stderr without reading it: a write would then block the runtime's one
//! thread. What does not fit in the queue is left out, and how much that was is said.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How much may wait for a reader.
const QUEUE: usize = 1024 * 1024;

/// How long the end waits for the last lines to be written.
const FAREWELL: Duration = Duration::from_millis(500);

/// Where the log goes; each write is a whole line.
#[derive(Default)]
pub(crate) struct Log {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    text: Vec<u8>,
    left_out: u64,
    is_writing: bool,
}

/// When it goes, the log is written to its end, if anybody reads it.
pub(crate) struct Flush(Arc<Log>);

impl Log {
    pub(crate) fn to(stream: impl Write + Send + 'static) -> io::Result<(Arc<Self>, Flush)> {
        let log = Arc::new(Self::default());
        let writing = log.clone();
        std::thread::Builder::new()
            .name("ptc-mcp-log".into())
            .spawn(move || writing.write_to(stream))?;
        Ok((log.clone(), Flush(log)))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_to(&self, mut stream: impl Write) {
        loop {
            let mut queue = self
                .changed
                .wait_while(self.queue(), |queue| queue.text.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            let mut text = std::mem::take(&mut queue.text);
            let left_out = std::mem::take(&mut queue.left_out);
            queue.is_writing = true;
            drop(queue);
            if left_out > 0 {
                let note = format!(
                    "... {left_out} lines of the log were left out: they were not read in time\n"
                );
                text.extend(note.into_bytes());
            }
            // A reader that has gone away is no error of ours, and there is nobody to tell.
            let _ = stream.write_all(&text).and_then(|()| stream.flush());
            self.queue().is_writing = false;
            self.changed.notify_all();
        }
    }
}

impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut queue = self.queue();
        if queue.text.len() + line.len() <= QUEUE {
            queue.text.extend_from_slice(line);
            self.changed.notify_all();
        } else {
            queue.left_out += 1;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        let is_unwritten = |queue: &mut Queue| queue.is_writing || !queue.text.is_empty();
        let _ = self
            .0
            .changed
            .wait_timeout_while(self.0.queue(), FAREWELL, is_unwritten);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A stream that takes what it is given only when it is let.
    struct Gate {
        taken: Sender<Vec<u8>>,
        let_in: Receiver<()>,
    }

    impl Write for Gate {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.taken.send(text.to_vec()).map_err(io::Error::other)?;
            self.let_in.recv().map_err(io::Error::other)?;
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    // contract: S1
    #[test]
    fn a_stream_that_nobody_reads_holds_nobody_up_and_is_told_what_it_missed() {
        let (taken, takes) = channel();
        let (open, let_in) = channel();
        let (log, flush) = Log::to(Gate { taken, let_in }).unwrap();
        (&*log).write_all(b"first\n").unwrap();
        assert_eq!(takes.recv().unwrap(), b"first\n");
        let line = vec![b'x'; QUEUE / 4];
        for _ in 0..7 {
            (&*log).write_all(&line).unwrap();
        }
        open.send(()).unwrap();
        let rest = takes.recv().unwrap();
        let note = "... 3 lines of the log were left out: they were not read in time\n";
        assert_eq!(rest.len(), QUEUE + note.len());
        assert!(rest.ends_with(note.as_bytes()));
        open.send(()).unwrap();
        (&*log).write_all(b"last\n").unwrap();
        // Nobody lets this one in, and the end comes all the same.
        drop(flush);
        assert_eq!(takes.recv().unwrap(), b"last\n");
    }
}
