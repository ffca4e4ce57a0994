//! Takes the configuration's secrets out of texts that others wrote: a server's stderr, an error, a
//! call's arguments.
//!
//! [`Secret`] keeps our own code from printing one; this is for texts in which a server or a
//! program repeats it.

use std::borrow::Cow;

use super::expand::Secret;
use super::servers::{ServerConfig, Transport};

/// What stands where a secret stood.
const MASK: &str = "[secret]";

/// A text that the file itself holds may be anything (`info`, `/srv`), and is hidden from this
/// length on. What came from a variable is more likely a secret.
const SHORTEST_LITERAL: usize = 8;

/// The texts to hide, the longest first: one may be part of another.
#[derive(Clone, Default)]
pub struct Mask(Vec<String>);

impl Mask {
    /// Hides what servers were given: values of variables from `shortest` characters on, and whole
    /// values of `env` and `headers`, with their words (`Bearer …`).
    pub fn of(servers: &[ServerConfig], shortest: usize) -> Self {
        let mut mask = Self::default();
        for server in servers {
            match &server.transport {
                Transport::Stdio {
                    args, env, paths, ..
                } => mask.add(args.iter().chain(paths), env.values(), shortest),
                Transport::Http { url, headers } | Transport::Sse { url, headers } => {
                    mask.add([url], headers.values(), shortest);
                }
            }
        }
        mask.0
            .sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        mask.0.dedup();
        mask
    }

    fn add<'a>(
        &mut self,
        texts: impl IntoIterator<Item = &'a Secret>,
        values: impl IntoIterator<Item = &'a Secret>,
        shortest: usize,
    ) {
        let mut hide = |text: &str, shortest: usize| {
            // A key of several lines is seen line by line.
            for line in text.lines().map(str::trim) {
                if line.chars().count() >= shortest {
                    self.0.push(line.to_owned());
                }
            }
        };
        for secret in texts {
            secret.variables().for_each(|value| hide(value, shortest));
        }
        for secret in values {
            secret.variables().for_each(|value| hide(value, shortest));
            hide(secret.expose(), SHORTEST_LITERAL);
            for word in secret.expose().split_whitespace() {
                hide(word, SHORTEST_LITERAL);
            }
        }
    }

    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.0 {
            if text.contains(secret) {
                text = Cow::Owned(text.replace(secret, MASK));
            }
        }
        text
    }

    /// The same for a text whose end was cut off, perhaps in the middle of a secret.
    pub fn apply_to_beginning(&self, text: &str) -> String {
        // Fewer characters than these give nothing away, and end many an ordinary line.
        let begun = |secret: &String| {
            let mut ends = (4..=secret.len()).rev();
            ends.find(|&end| secret.is_char_boundary(end) && text.ends_with(&secret[..end]))
        };
        match self.0.iter().filter_map(begun).max() {
            Some(length) => self.apply(&text[..text.len() - length]).into_owned() + MASK,
            None => self.apply(text).into_owned(),
        }
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask({} texts)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Config;
    use super::*;

    // contract: C3 A5 D4
    #[test]
    fn what_servers_were_given_is_hidden() {
        let env = |name: &str| match name {
            "SHORT" => Some("tok7".to_owned()),
            "TOKEN" => Some("tok7-and-more".to_owned()),
            "KEY" => Some("-----BEGIN\nline one of it\n-----END".to_owned()),
            "TINY" => Some("abc".to_owned()),
            _ => None,
        };
        let text = r#"
servers:
  - name: a
    command: server
    args: ["--key=${KEY}", "--level", "information-level"]
    env: { TOKEN: "${TOKEN}", LEVEL: info, TINY: "${TINY}", PASSWORD: "correct horse", TWICE: abcd-abcd }
  - name: b
    transport: http
    url: "https://example.com/${SHORT}/mcp"
    headers: { Authorization: "Bearer literal-token" }
"#;
        let config = Config::parse(text, Path::new("config.yaml"), &env).unwrap();
        let mask = Mask::of(&config.servers, 4);
        let cases = [
            ("got tok7-and-more, no tok7", "got [secret], no [secret]"),
            ("> line one of it <", "> [secret] <"),
            ("info abc information-level", "info abc information-level"),
            ("correct horse", "[secret]"),
            ("literal-token", "[secret]"),
            ("Bearer literal-token", "[secret]"),
            ("https://example.com/mcp", "https://example.com/mcp"),
        ];
        for (text, expected) in cases {
            assert_eq!(mask.apply(text), expected);
        }
        for (text, expected) in [
            ("got tok7-and-mo", "got [secret]"),
            ("correct horse and correct ho", "[secret] and [secret]"),
            // What ends it is the whole of one, not another that begins in its middle.
            ("key abcd-abcd", "key [secret]"),
            ("nothing here", "nothing here"),
        ] {
            assert_eq!(mask.apply_to_beginning(text), expected);
        }
        assert!(!format!("{mask:?}").contains("tok7"));
        let longer = Mask::of(&config.servers, 8);
        assert_eq!(longer.apply("tok7 tok7-and-more"), "tok7 [secret]");
    }
}
