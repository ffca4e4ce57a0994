//! What a server wrote, on its way into a log line or a reason: bounded, and without what the
//! server was given.

use crate::config::Mask;

/// How much of a server's words goes into a log line or a reason.
pub(super) const EXCERPT: usize = 200;

/// The beginning of a text. A secret may be in it, the last one only begun, so that there is no way
/// to show it but without them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Words {
    head: String,
    /// How many bytes of it are not there.
    left_off: u64,
}

impl Words {
    pub(super) fn excerpt(text: &str) -> Self {
        Self::first(EXCERPT, text, 0)
    }

    /// The first bytes of a text, of which so many more were thrown away before.
    pub(super) fn first(limit: usize, text: &str, gone: u64) -> Self {
        let end = text.floor_char_boundary(limit);
        Self {
            head: text[..end].to_owned(),
            left_off: (text.len() - end) as u64 + gone,
        }
    }

    /// The same for bytes of any kind, without line breaks and other controls.
    pub(super) fn printable(limit: usize, text: &[u8], gone: u64) -> Self {
        let text = String::from_utf8_lossy(text);
        let clean: String = text
            .trim_end()
            .chars()
            .map(|c| if c.is_control() && c != '\t' { ' ' } else { c })
            .collect();
        Self::first(limit, &clean, gone)
    }

    pub(super) fn masked(&self, secrets: &Mask) -> String {
        if self.left_off == 0 {
            return secrets.apply(&self.head).into_owned();
        }
        let bytes = self.head.len() as u64 + self.left_off;
        let head = secrets.apply_to_beginning(&self.head);
        format!("{head} ... ({bytes} bytes)")
    }
}

#[cfg(any(test, fuzzing))]
impl Words {
    pub(super) fn len(&self) -> usize {
        self.head.len()
    }

    #[cfg(test)]
    pub(super) fn says(&self, words: &Self) -> bool {
        self.head.contains(&words.head)
    }
}

/// The beginning of words that are already without secrets.
pub(super) fn excerpt(text: &str) -> String {
    Words::excerpt(text).masked(&Mask::default())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    // contract: C3
    #[test]
    fn a_secret_that_the_cut_goes_through_is_hidden_as_well() {
        let text =
            r#"{"servers": [{"name": "s", "command": "s", "env": {"KEY": "hunter2-hunter2"}}]}"#;
        let config = Config::parse(text, Path::new("config.yaml"), &|_| None).unwrap();
        let secrets = Mask::of(&config.servers, 8);
        let shown = |words: Words| words.masked(&secrets);
        for before in EXCERPT - 15..EXCERPT + 5 {
            let text = format!("{}hunter2-hunter2, and more", "x".repeat(before));
            let bytes = text.len();
            let expected = match EXCERPT.saturating_sub(before) {
                // Too little to give anything away.
                begun @ 0..4 => {
                    format!("{}{}", "x".repeat(before.min(EXCERPT)), &"hunter2"[..begun])
                }
                _ => format!("{}[secret]", "x".repeat(before)),
            };
            let expected = format!("{expected} ... ({bytes} bytes)");
            assert_eq!(shown(Words::excerpt(&text)), expected);
            assert_eq!(
                shown(Words::printable(EXCERPT, text.as_bytes(), 0)),
                expected
            );
            let (kept, thrown_away) = text.split_at(bytes.min(EXCERPT));
            let gone = thrown_away.len() as u64;
            assert_eq!(shown(Words::first(EXCERPT, kept, gone)), expected);
        }
        assert_eq!(shown(Words::excerpt("is hunter2-hunter2")), "is [secret]");
    }

    #[test]
    fn what_is_printable_is_one_line() {
        let shown = |bytes: &[u8]| Words::printable(9, bytes, 0).masked(&Mask::default());
        assert_eq!(shown(b"a\x1b[1m\tb\r\n"), "a [1m\tb");
        assert_eq!(
            shown(b"\xff\xff\xff\xff"),
            "\u{fffd}\u{fffd}\u{fffd} ... (12 bytes)"
        );
    }
}
