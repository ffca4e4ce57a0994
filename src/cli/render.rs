//! What the commands say, as pure functions of what they found.
//!
//! Knows no servers and no streams. Text from servers is untrusted here: it never carries a control
//! character to the terminal.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) colours: bool,
}

impl Style {
    fn paint(self, code: u8, text: &str) -> String {
        if self.colours {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint(32, text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint(31, text)
    }

    pub(crate) fn title(self, text: &str) -> String {
        self.paint(1, text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.paint(2, text)
    }
}

/// One server and what it offers.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    /// Name and description of each tool, or why there are none.
    pub(crate) tools: Result<Vec<(String, String)>, String>,
}

/// The answer of `ptc-mcp tools`.
pub(crate) fn tools(servers: &[Server], style: Style) -> String {
    if servers.is_empty() {
        return "no servers are configured and enabled\n".to_owned();
    }
    let mut text = String::new();
    for (index, server) in servers.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let name = style.title(&plain(&server.name));
        match &server.tools {
            Ok(tools) => {
                line(
                    &mut text,
                    &format!("{name}  {}", count(tools.len(), "tool")),
                );
                let width = tools
                    .iter()
                    .map(|(name, _)| name.chars().count())
                    .max()
                    .unwrap_or(0);
                for (tool, description) in tools {
                    let summary = style.faint(&summary(description));
                    line(&mut text, format!("  {tool:width$}  {summary}").trim_end());
                }
            }
            Err(reason) => {
                let state = style.bad("not connected:");
                line(&mut text, &format!("{name}  {state} {}", plain(reason)));
            }
        }
    }
    text
}

/// The answer of `ptc-mcp tools --json`.
pub(crate) fn tools_json(servers: &[Server]) -> Value {
    let servers: Vec<Value> = servers
        .iter()
        .map(|server| {
            let tools: Vec<Value> = server
                .tools
                .iter()
                .flatten()
                .map(|(name, description)| json!({"name": name, "description": description}))
                .collect();
            json!({
                "name": server.name,
                "connected": server.tools.is_ok(),
                "error": server.tools.as_ref().err(),
                "tools": tools,
            })
        })
        .collect();
    json!({ "servers": servers })
}

/// The line that a person watches while servers connect; `status` is `server_status`'s value.
pub(crate) fn connecting(status: &Value, tick: usize) -> String {
    const SPINNER: [char; 4] = ['|', '/', '-', '\\'];
    let servers = status.as_object();
    let all = servers.map_or(0, serde_json::Map::len);
    let waiting: Vec<&str> = servers
        .into_iter()
        .flatten()
        .filter(|(_, server)| server["connected"] != true)
        .map(|(name, _)| name.as_str())
        .collect();
    let connected = all - waiting.len();
    let mut names: Vec<String> = waiting.iter().take(3).map(|name| plain(name)).collect();
    if waiting.len() > 3 {
        names.push("…".to_owned());
    }
    format!(
        "{} {connected} of {all} connected; waiting for {}",
        SPINNER[tick % SPINNER.len()],
        names.join(", ")
    )
}

/// What connecting to one server showed.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) server: String,
    pub(crate) outcome: Result<Reached, String>,
}

#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) elapsed: Duration,
    pub(crate) protocol: String,
    pub(crate) tools: usize,
}

/// One server's entry in `ptc-mcp doctor --json`.
pub(crate) fn probe_json(probe: &Probe) -> Value {
    let reached = probe.outcome.as_ref().ok();
    json!({
        "name": probe.server,
        "connected": reached.is_some(),
        "error": probe.outcome.as_ref().err(),
        "protocol": reached.map(|reached| &reached.protocol),
        "tools": reached.map(|reached| reached.tools),
    })
}

/// The first line of `ptc-mcp check`.
pub(crate) fn check_config(origin: &str, servers: usize, style: Style) -> String {
    format!(
        "{}  config: {origin}, {}\n",
        style.good("ok    "),
        count(servers, "server")
    )
}

/// A server's line of `ptc-mcp check`; `width` is the longest server name's.
pub(crate) fn check_server(probe: &Probe, width: usize, style: Style) -> String {
    let name = plain(&probe.server);
    match &probe.outcome {
        Ok(reached) => format!(
            "{}  {name:width$}  connected in {}, protocol {}, {}\n",
            style.good("ok    "),
            seconds(reached.elapsed),
            plain(&reached.protocol),
            count(reached.tools, "tool"),
        ),
        Err(reason) => format!(
            "{}  {name:width$}  {}\n",
            style.bad("failed"),
            plain(reason)
        ),
    }
}

/// What `ptc-mcp run` prints: the output and, under its mark, the emitted value.
pub(crate) fn run_output(output: &str, emitted: Option<&str>) -> String {
    let mut text = output.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(emitted) = emitted {
        line(&mut text, "--- result ---");
        line(&mut text, emitted);
    }
    text
}

/// What `ptc-mcp run` says beside the output: why the program failed, what had happened by then,
/// and what it called.
pub(crate) fn run_notes(
    error: Option<&str>,
    ledger: Option<&str>,
    trace: Option<&str>,
    style: Style,
) -> String {
    let mut text = String::new();
    if let Some(error) = error {
        line(&mut text, &style.bad("the program failed"));
        line(&mut text, error.trim_end());
    }
    for note in [ledger, trace].into_iter().flatten() {
        line(&mut text, &style.faint(note.trim_end()));
    }
    text
}

pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A description's first sentence, short enough for a line.
fn summary(description: &str) -> String {
    const LONGEST: usize = 80;
    let first_line = description.trim().lines().next().unwrap_or_default();
    let sentence = first_line
        .split_once(". ")
        .map_or(first_line, |(sentence, _)| sentence)
        .trim_end_matches('.');
    let sentence = plain(sentence);
    match sentence.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", sentence[..end].trim_end()),
        None => sentence,
    }
}

/// Text on one line, without control characters.
pub(crate) fn plain(text: &str) -> String {
    let text: String = text
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { colours: false };

    fn servers() -> Vec<Server> {
        let tool = |name: &str, description: &str| (name.to_owned(), description.to_owned());
        vec![
            Server {
                name: "hr".to_owned(),
                tools: Ok(vec![
                    tool(
                        "mcp__hr__get_expenses",
                        "Every expense. One page at a time.",
                    ),
                    tool("mcp__hr__list", "A\u{1b}[31m tool\nwith more lines"),
                    tool("mcp__hr__long", &"words and ".repeat(20)),
                    tool("mcp__hr__mute", ""),
                ]),
            },
            Server {
                name: "one".to_owned(),
                tools: Ok(vec![tool("mcp__one__x", "X.")]),
            },
            Server {
                name: "git-hub".to_owned(),
                tools: Err("command 'npx' was not found\non PATH".to_owned()),
            },
            Server {
                name: "none".to_owned(),
                tools: Ok(vec![]),
            },
        ]
    }

    #[test]
    fn tools_are_listed_for_people_and_for_programs() {
        insta::assert_snapshot!("tools", tools(&servers(), PLAIN));
        insta::assert_snapshot!("tools_json", format!("{:#}", tools_json(&servers())));
        assert_eq!(tools(&[], PLAIN), "no servers are configured and enabled\n");
        let coloured = tools(&servers(), Style { colours: true });
        assert!(coloured.contains("\u{1b}[31mnot connected:\u{1b}[0m"));
    }

    #[test]
    fn the_live_line_names_who_is_waited_for() {
        let status = json!({
            "a": {"connected": true}, "b": {"connected": false}, "c": {"connected": false},
            "d": {"connected": false}, "e": {"connected": false},
        });
        let cases = [
            (status, 0, "| 1 of 5 connected; waiting for b, c, d, …"),
            (
                json!({"a": {"connected": false}}),
                5,
                "/ 0 of 1 connected; waiting for a",
            ),
        ];
        for (status, tick, expected) in cases {
            assert_eq!(connecting(&status, tick), expected);
        }
    }

    #[test]
    fn a_check_says_how_each_server_answered() {
        let probes = [
            Probe {
                server: "hr".to_owned(),
                outcome: Ok(Reached {
                    elapsed: Duration::from_millis(438),
                    protocol: "2025-11-25".to_owned(),
                    tools: 1,
                }),
            },
            Probe {
                server: "github".to_owned(),
                outcome: Err("command 'npx' was not found on PATH".to_owned()),
            },
        ];
        let mut text = check_config("config.yaml", 2, PLAIN);
        for probe in &probes {
            text += &check_server(probe, 6, PLAIN);
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_run_keeps_output_and_notes_apart() {
        let cases = [
            (("", None), ""),
            (("a", None), "a\n"),
            (("a\n", Some("[1]")), "a\n--- result ---\n[1]\n"),
            (("", Some("null")), "--- result ---\nnull\n"),
        ];
        for ((output, emitted), expected) in cases {
            assert_eq!(run_output(output, emitted), expected);
        }
        insta::assert_snapshot!(run_notes(
            Some("Traceback (most recent call last):\n  File \"<program>\", line 1\nKeyError: 'a'"),
            Some("Tool calls before the error: 1 answered, 1 in doubt, 0 not sent."),
            Some("[tool calls: 2, 1 failed; 0.1s]\n  failed: mcp__a__b: no"),
            PLAIN
        ));
        assert_eq!(run_notes(None, None, None, PLAIN), "");
    }
}
