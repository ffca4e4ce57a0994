//! A configuration written out again, every key of it. No part of the product: it is compiled for
//! tests and fuzzing, which hold that what is written out is read as the same.
//!
//! What variables held stands in the text, since a configuration does not know them any more.

use std::collections::BTreeMap;
use std::time::Duration;

use super::expand::Secret;
use super::rules::Pattern;
use super::{Config, ServerConfig, ToolRules, Transport};

/// The configuration as a file that reads back as the same without any variables.
pub(crate) fn print(config: &Config) -> String {
    let execution = &config.execution;
    let mut keys = vec![
        ("timeout_seconds", seconds(execution.timeout)),
        ("max_output_bytes", execution.max_output_bytes.to_string()),
        ("sandbox", quoted(execution.sandbox.as_str())),
        ("max_tool_calls", execution.max_tool_calls.to_string()),
        (
            "max_concurrent_calls",
            execution.max_concurrent_calls.to_string(),
        ),
        (
            "tool_call_timeout_seconds",
            seconds(execution.tool_call_timeout),
        ),
        ("trace", quoted(execution.trace.as_str())),
        (
            "max_tool_result_bytes",
            execution.max_tool_result_bytes.to_string(),
        ),
        ("max_memory_bytes", execution.max_memory_bytes.to_string()),
        ("max_scratch_bytes", execution.max_scratch_bytes.to_string()),
        ("pool", execution.pool.to_string()),
        ("max_programs", execution.max_programs.to_string()),
        (
            "structured_content",
            quoted(execution.structured_content.as_str()),
        ),
    ];
    keys.extend(path("python", execution.python.as_deref()));
    let mut audit = vec![("arguments", quoted(config.audit.arguments.as_str()))];
    audit.extend(path("path", config.audit.path.as_deref()));
    let rules = quoted(config.permissions.claude_code.as_str());
    mapping([
        ("servers", list(config.servers.iter().map(server))),
        ("tools", tools(&config.tools)),
        ("execution", mapping(keys)),
        ("permissions", mapping([("claude_code", rules)])),
        ("audit", mapping(audit)),
    ]) + "\n"
}

fn server(server: &ServerConfig) -> String {
    let mut keys = vec![
        ("name", quoted(server.name.as_str())),
        ("connect_timeout_seconds", seconds(server.connect_timeout)),
    ];
    match &server.transport {
        Transport::Stdio {
            command,
            args,
            env,
            cwd,
            paths: _,
        } => {
            keys.push(("transport", quoted("stdio")));
            keys.push(("command", literal(command)));
            let args = args.iter().map(|arg| literal(arg.expose()));
            keys.push(("args", list(args)));
            keys.push(("env", entries(env)));
            let cwd = cwd.as_deref().and_then(std::path::Path::to_str);
            keys.extend(cwd.map(|cwd| ("cwd", literal(cwd))));
        }
        Transport::Http { url, headers } | Transport::Sse { url, headers } => {
            let name = match &server.transport {
                Transport::Sse { .. } => "sse",
                _ => "http",
            };
            keys.push(("transport", quoted(name)));
            keys.push(("url", literal(url.expose())));
            keys.push(("headers", entries(headers)));
        }
    }
    mapping(keys)
}

fn tools(rules: &ToolRules) -> String {
    let patterns = |patterns: &[Pattern]| list(patterns.iter().map(|one| quoted(one.text())));
    let limits = rules
        .limits
        .iter()
        .map(|limit| (limit.pattern(), limit.max.to_string()));
    let mut keys = vec![
        ("confirm", patterns(&rules.confirm)),
        ("limits", mapping(limits)),
    ];
    keys.extend(
        rules
            .allow
            .as_deref()
            .map(|allow| ("allow", patterns(allow))),
    );
    // Empty, it is as good as absent, and beside allow it must be.
    if !rules.block.is_empty() {
        keys.push(("block", patterns(&rules.block)));
    }
    mapping(keys)
}

fn path<'k>(key: &'k str, path: Option<&std::path::Path>) -> Option<(&'k str, String)> {
    let path = path?.to_str().expect("it was read from a text");
    Some((key, quoted(path)))
}

fn entries(entries: &BTreeMap<String, Secret>) -> String {
    mapping(
        entries
            .iter()
            .map(|(name, value)| (&**name, literal(value.expose()))),
    )
}

fn mapping<'k>(keys: impl IntoIterator<Item = (&'k str, String)>) -> String {
    let keys: Vec<_> = keys
        .into_iter()
        .map(|(key, value)| format!("{}: {value}", quoted(key)))
        .collect();
    format!("{{{}}}", keys.join(", "))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn seconds(duration: Duration) -> String {
    format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos())
}

/// For a key in which variables are expanded.
fn literal(text: &str) -> String {
    quoted(&text.replace('$', "$$"))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            _ => quoted += &format!("\\U{:08x}", u32::from(character)),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(text: &str) -> Config {
        let env = |name: &str| (name == "SET").then(|| "${NOT_AGAIN} $$\n\u{85}".to_owned());
        Config::parse(text, Path::new("printed.yaml"), &env)
            .unwrap_or_else(|report| panic!("{report}\n{text}"))
    }

    // contract: C1, C3
    #[test]
    fn what_is_written_out_is_read_as_the_same() {
        let example = include_str!("../../config.example.yaml");
        for text in [
            "",
            example,
            "servers: [{name: 'a b', command: $$x, args: [1.10, true, \"\\0e\"], env: {A: '${SET}'}, cwd: /é}]"
                .replace("\\0e", "\\u2028 \\uFEFF \\t")
                .as_str(),
            "servers: [{name: s, transport: sse, url: 'http://h/?a=$${b}', headers: {X-a: '${UNSET:-$$}'}}]",
            "tools: {allow: [], confirm: ['{a,b}*', 'null', '5'], limits: {'*': 0, 'a\"b': 9007199254740991}}",
            "tools: {block: ['~', 'a: b', '# c']}",
            "execution: {timeout_seconds: 31535999.99999999, tool_call_timeout_seconds: 1e-9, trace: off, python: 'a\\b'}",
            "audit: {path: ' $x ', arguments: none}",
        ] {
            let config = read(text);
            let printed = print(&config);
            let again = Config::parse(&printed, Path::new("printed.yaml"), &|_| None);
            let again = again.unwrap_or_else(|report| panic!("{report}\n{printed}"));
            assert!(again == config, "{text}\n{printed}");
            assert_eq!(print(&again), printed);
        }
    }

    #[test]
    fn another_value_is_another_configuration() {
        let one = "servers: [{name: s, command: c, args: [a], env: {A: a}}]\ntools: {block: [x]}";
        for (from, to) in [
            ("name: s", "name: t"),
            ("command: c", "command: d"),
            ("[a]", "[b]"),
            ("A: a", "A: b"),
            ("[x]", "[y]"),
        ] {
            assert!(read(one) != read(&one.replace(from, to)), "{to}");
        }
    }
}
