//! The one place that writes to stdout and stderr for people.
//!
//! A reader that has gone away (`ptc-mcp tools | head -1`) is no error: what it did not want to
//! read is not written.

use std::io::{self, IsTerminal, Write};

/// Whether colours are wanted on a stream; `NO_COLOR` counts when it is not empty.
pub(crate) fn colours(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A command's answer, as it is.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    // Nobody is left to tell: see the top of this file.
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Something for the person beside the answer: an error, a trace.
pub(crate) fn complain(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{}", text.trim_end());
}

/// Whether a person can be asked something, and can answer.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Puts a question about a call, and gives the choice that the person typed.
pub(crate) async fn ask(question: &str) -> Option<String> {
    complain(&format!(
        "\n{question}\nAllow this call? once (o), for this program (p), or no (n):"
    ));
    // Cannot be cancelled; the runtime does not wait for it at the end.
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = read.await.ok()?.ok()?;
    choice(&line).map(str::to_owned)
}

/// The choice that a line stands for.
fn choice(line: &str) -> Option<&'static str> {
    match line.trim().to_ascii_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => Some("once"),
        "p" | "for this program" => Some("for this program"),
        _ => None,
    }
}

/// A line on stderr that is rewritten while something goes on. Only on a terminal; gone when
/// dropped.
pub(crate) struct LiveLine {
    shown: bool,
    enabled: bool,
}

const ERASE: &str = "\r\x1b[K";

impl LiveLine {
    pub(crate) fn new() -> Self {
        Self {
            shown: false,
            enabled: io::stderr().is_terminal(),
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    pub(crate) fn show(&mut self, text: &str) {
        if self.enabled {
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "{ERASE}{text}").and_then(|()| stderr.flush());
            self.shown = true;
        }
    }
}

impl LiveLine {
    /// Takes the line away until it is shown again.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr().lock(), "{ERASE}");
        }
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: A2
    #[test]
    fn what_is_typed_is_a_yes_only_when_it_was_offered() {
        let cases = [
            ("o\n", Some("once")),
            (" Yes\n", Some("once")),
            ("p", Some("for this program")),
            ("n\n", None),
            ("\n", None),
            ("", None),
            ("sure", None),
        ];
        for (line, expected) in cases {
            assert_eq!(choice(line), expected, "{line:?}");
        }
    }
}
