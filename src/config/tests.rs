//! Whole files in, configurations or reports out.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::tool::ToolName;

const SECRET: &str = "hunter2-very-secret\n";

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("t0ken".to_owned()),
        "MULTILINE" => Some(SECRET.to_owned()),
        "EMPTY" => Some(String::new()),
        "NOT_A_URL" => Some(format!("not a url {SECRET}")),
        "FTP" => Some("ftp://user:hunter2@example.com".to_owned()),
        "PORT" => Some("8080".to_owned()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("config.yaml"), &environment)
}

fn config(text: &str) -> Config {
    parse(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn report(text: &str) -> String {
    match parse(text) {
        Ok(config) => panic!("no mistake in:\n{text}\n{config:?}"),
        Err(error) => error.to_string(),
    }
}

/// The one mistake of a file, without the file's name and the advice.
fn mistake(text: &str) -> String {
    let error = match parse(text) {
        Ok(config) => panic!("no mistake in:\n{text}\n{config:?}"),
        Err(error) => error,
    };
    assert_eq!(error.mistakes(), 1, "{text}\n{error}");
    let report = error.to_string();
    let (fact, _advice) = report.split_once("\n    ").unwrap();
    fact.strip_prefix("config.yaml:").unwrap().to_owned()
}

// contract: C6
#[test]
fn all_mistakes_of_a_file_are_in_one_report() {
    let report = report(
        r#"servers:
  - name: crm
    transprot: http
    url: https://example.com
  - name: my-files
    comand: npx
    args: [-y, {}]
  - name: my_files
    transport: htttp
    url: ${NOWHERE}
    env: [A=b]
  - transport: sse
    headers:
      "X Y": a
      Authorization: Bearer ${MULTILINE}
  - name: _odd__name
    command: run
    command: walk
    cwd: ${HOME
    enabled: yes
    connect_timeout_seconds: 0
tools:
  alow: []
  allow: ["mcp__[", ""]
  block:
  limits: { "mcp__a__*": -1, "{": 1 }
execution:
  timeout_seconds: "120"
  max_tool_calls: 10.0
  sandbox: namespace
  pool: 1_000
  trace: 5
permissions: honor
audit: { arguments: hashed }
loging: true
"#,
    );
    assert_snapshot!(report);
}

#[test]
fn a_syntax_error_stands_alone() {
    assert_snapshot!(report("servers: [\nname: x\n"), @r"
    config.yaml:1:10: this is not YAML: unclosed bracket '['.
        Correct it first; what else may be wrong shows after that.
    ");
}

#[test]
fn what_is_not_yaml_as_we_take_it_is_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let alias = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", [alias.as_str(); 8].join(", "));
    }
    let deep = "[".repeat(100_000);
    for text in [
        &bomb,
        &deep,
        "a: *nowhere",
        "a: !tag 1",
        "servers: []\n---\ntools: {}\n",
        "\0",
    ] {
        assert!(parse(text).is_err(), "{}", &text[..text.len().min(80)]);
    }
}

// contract: C6, C7, C2, C3, C4, C5
#[test]
#[rustfmt::skip] // One case a line.
fn each_mistake_is_told_where_and_what() {
    for (text, expected) in [
        // The file.
        ("[]", "1:1: found a list."),
        ("5", "1:1: found a number or a boolean."),
        ("server: []", "1:1: server: there is no such key. Did you mean `servers`?"),
        ("tools: {}\ntools: {}", "2:1: tools: this key is here a second time; the first is on line 1."),
        ("? [1]\n: 2", "1:3: found a list as a key."),
        ("servers: {a: {command: b}}", "1:10: servers: found a mapping."),
        ("tools: yes", "1:8: tools: found a text."),
        // Names.
        ("servers: [{command: a}]", "1:11: servers[0].name: the server has no name."),
        ("servers: [{name: '', command: a}]", r#"1:18: servers[0].name: "" is empty."#),
        ("servers: [{name: 5, command: a}]", "1:18: servers[0].name: found `5`."),
        ("servers: [{name: , command: a}]", "1:16: servers[0].name: found nothing."),
        ("servers: [{name: a__b, command: a}]", r#"1:18: servers[0].name: "a__b" contains two underscores in a row."#),
        ("servers: [{name: _a, command: a}]", r#"1:18: servers[0].name: "_a" begins with an underscore."#),
        ("servers: [{name: a., command: a}]", r#"1:18: servers[0].name: "a." ends with an underscore (every character outside A-Z, a-z, 0-9 and _ counts as _: a_)."#),
        ("servers: [{name: é, command: a}]", r#"1:18: servers[0].name: "é" begins with an underscore (every character outside A-Z, a-z, 0-9 and _ counts as _: _)."#),
        ("servers:\n- {name: a, command: b}\n- {name: a, command: b}", r#"3:10: servers[1].name: "a" is the name of the server on line 2 as well."#),
        ("servers:\n- {name: a, command: b}\n- {name: a, command: b, enabled: false}", r#"3:10: servers[1].name: "a" is the name of the server on line 2 as well."#),
        ("servers:\n- {name: a-b, command: b}\n- {name: a.b, command: b}", r#"3:10: servers[1].name: "a.b" and "a-b" on line 2 are the same name in tools: mcp__a_b__<tool>."#),
        // Transports and their keys.
        ("servers: [{name: a}]", "1:11: servers[0].command: a stdio server needs a command, and there is none."),
        ("servers: [{name: a, transport: http}]", "1:11: servers[0].url: a server reached over HTTP needs a url, and there is none."),
        ("servers: [{name: a, transport: SSE, url: 'http://a'}]", r#"1:32: servers[0].transport: found the text "SSE". Did you mean `sse`?"#),
        ("servers: [{name: a, transport: null, command: b}]", "1:32: servers[0].transport: found nothing."),
        ("servers: [{name: a, url: 'http://a'}]", "1:21: servers[0].url: url belongs to transport http or sse, and this server's is stdio, the default."),
        ("servers: [{name: a, command: b, headers: {}}]", "1:33: servers[0].headers: headers belongs to transport http or sse, and this server's is stdio, the default."),
        ("servers: [{name: a, transport: http, url: 'http://a', args: []}]", "1:55: servers[0].args: args belongs to transport stdio, and this server's is http."),
        ("servers: [{name: a, transport: sse, url: 'http://a', cwd: /}]", "1:54: servers[0].cwd: cwd belongs to transport stdio, and this server's is sse."),
        ("servers: [{name: a, command: ''}]", "1:30: servers[0].command: the command is empty."),
        ("servers: [{name: a, command: '${EMPTY}'}]", "1:30: servers[0].command: the command is empty. That is after expanding its variables."),
        (r#"servers: [{name: a, command: b, args: ["\0"]}]"#, "1:40: servers[0].args[0]: it holds a NUL character."),
        ("servers: [{name: a, command: b, args: [null]}]", "1:40: servers[0].args[0]: found nothing."),
        ("servers: [{name: a, command: b, args: -y}]", "1:39: servers[0].args: found a text."),
        ("servers: [{name: a, command: b, env: {A: }}]", "1:40: servers[0].env.A: found nothing."),
        ("servers: [{name: a, command: b, env: {'A=B': c}}]", r#"1:39: servers[0].env["A=B"]: "A=B" is no name for a variable: it holds `=` or NUL."#),
        ("servers: [{name: a, command: b, env: {'': c}}]", r#"1:39: servers[0].env[""]: a variable needs a name."#),
        ("servers: [{name: a, command: b, cwd: ''}]", "1:38: servers[0].cwd: the directory is empty."),
        ("servers: [{name: a, transport: http, url: /mcp}]", "1:43: servers[0].url: it is not a whole address such as https://example.com/mcp."),
        ("servers: [{name: a, transport: http, url: '${FTP}'}]", "1:43: servers[0].url: its scheme is neither http nor https. That is after expanding its variables."),
        ("servers: [{name: a, transport: http, url: 'http://a', headers: {Accept: b}}]", "1:65: servers[0].headers.Accept: Accept is set by ptc-mcp itself."),
        ("servers: [{name: a, transport: http, url: ' http://a'}]", "1:43: servers[0].url: it holds a space or a line break."),
        ("servers: [{name: a, transport: http, url: 'http://'}]", "1:43: servers[0].url: it is not a whole address such as https://example.com/mcp."),
        ("servers: [{name: a, transport: http, url: 'http://a', headers: {B: c, b: d}}]", "1:71: servers[0].headers.b: this is the same name as on line 1."),
        ("servers: [{name: a, transport: http, url: 'http://a', headers: {B: é}}]", "1:68: servers[0].headers.B: a header holds only visible ASCII, spaces and tabs: no line break, no accent."),
        ("servers: [{name: a, command: b, enabled: 1}]", "1:42: servers[0].enabled: found `1`."),
        ("servers: [{name: a, command: b, connect_timeout_seconds: .inf}]", r#"1:58: servers[0].connect_timeout_seconds: found the text ".inf"."#),
        // Variables.
        ("servers: [{name: a, command: '${NOWHERE}'}]", "1:30: servers[0].command: the variable NOWHERE is not set."),
        ("servers: [{name: a, command: b, env: {C: 'x ${NOWHERE} y'}}]", "1:42: servers[0].env.C: the variable NOWHERE is not set."),
        ("servers: [{name: a, command: b, cwd: '${', enabled: false}]", "1:38: servers[0].cwd: a `${` is not closed by a `}`."),
        ("servers: [{name: a, command: '${A-b}'}]", "1:30: servers[0].command: what stands between `${` and `}` is no variable."),
        ("servers: [{name: a, command: '${A:-${B}}'}]", "1:30: servers[0].command: the default of A holds another reference."),
        ("audit: {path: '${HOME}/log'}", "1:15: audit.path: `${...}` is not expanded in this key."),
        // Rules about tools.
        ("tools: {allow: [a], block: [b]}", "1:21: tools.block: stands beside tools.allow on line 1, and only one can hold."),
        ("tools: {allow: [], block: []}", "1:20: tools.block: stands beside tools.allow on line 1, and only one can hold."),
        ("tools: {allow: }", "1:14: tools.allow: found nothing."),
        ("tools: {block: a}", "1:16: tools.block: found a text."),
        ("tools: {block: ['a[']}", r#"1:17: tools.block[0]: "a[" is not a pattern: unclosed character class; missing ']'."#),
        ("tools: {confirm: ['']}", "1:19: tools.confirm[0]: an empty pattern matches no tool."),
        ("tools: {limits: {'a{': 1}}", r#"1:18: tools.limits["a{"]: "a{" is not a pattern: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)."#),
        ("tools: {limits: {a: 1.5}}", "1:21: tools.limits.a: found `1.5`."),
        ("tools: {limits: [a]}", "1:17: tools.limits: found a list."),
        // Numbers and choices.
        ("execution: {timeout_seconds: 0}", "1:30: execution.timeout_seconds: found `0`."),
        ("execution: {timeout_seconds: -1}", "1:30: execution.timeout_seconds: found `-1`."),
        ("execution: {timeout_seconds: 1e-20}", "1:30: execution.timeout_seconds: found `1e-20`."),
        ("execution: {timeout_seconds: 1e300}", "1:30: execution.timeout_seconds: found `1e300`."),
        ("execution: {timeout_seconds: .nan}", r#"1:30: execution.timeout_seconds: found the text ".nan"."#),
        ("execution: {timeout_seconds: true}", "1:30: execution.timeout_seconds: found `true`."),
        ("execution: {max_output_bytes: 0}", "1:31: execution.max_output_bytes: found `0`."),
        ("execution: {max_tool_calls: 100.0}", "1:29: execution.max_tool_calls: found `100.0`."),
        ("execution: {max_tool_calls: '100'}", r#"1:29: execution.max_tool_calls: found the text "100"."#),
        ("execution: {max_tool_calls: 0x10}", "1:29: execution.max_tool_calls: found `0x10`."),
        ("execution: {max_tool_calls: 010}", r#"1:29: execution.max_tool_calls: found the text "010"."#),
        ("execution: {max_memory_bytes: 99999999999999999999}", "1:31: execution.max_memory_bytes: found `99999999999999999999`."),
        ("execution: {max_memory_bytes: 512M}", r#"1:31: execution.max_memory_bytes: found the text "512M"."#),
        ("execution: {pool: -1}", "1:19: execution.pool: found `-1`."),
        ("execution: {pool: }", "1:17: execution.pool: found nothing."),
        ("execution: {sandbox: docker}", r#"1:22: execution.sandbox: found the text "docker"."#),
        ("execution: {trace: of}", r#"1:20: execution.trace: found the text "of". Did you mean `off`?"#),
        ("execution: {structured_content: false}", "1:33: execution.structured_content: found `false`."),
        ("execution: {python: ''}", r#"1:21: execution.python: found the text ""."#),
        ("permissions: {claude_code: honour}", r#"1:28: permissions.claude_code: found the text "honour". Did you mean `honor`?"#),
        ("audit: {arguments: all}", r#"1:20: audit.arguments: found the text "all"."#),
        ("audit: {path: []}", "1:15: audit.path: found a list."),
    ] {
        assert_eq!(mistake(text), expected, "{text}");
    }
}

// contract: C3, C6
#[test]
fn no_report_and_no_debug_output_shows_a_secret() {
    let good = config(
        "servers:
- {name: a, transport: http, url: 'https://hunter2.example/${TOKEN}', headers: {X: '${TOKEN}'}}
- {name: b, command: 'hunter2 ${TOKEN}', cwd: '/${TOKEN}', args: ['${TOKEN}', hunter2], env: {D: 'hunter2 ${TOKEN}'}}",
    );
    let bad = [
        "servers: [{name: a, transport: http, url: '${NOT_A_URL}'}]",
        "servers: [{name: a, transport: http, url: '${FTP}'}]",
        "servers: [{name: a, transport: http, url: 'https://a', headers: {X: '${MULTILINE}'}}]",
        "servers: [{name: a, transport: http, url: 'https://a', headers: 'hunter2'}]",
        "servers: [{name: a, transport: http, url: 'https://a', headers: {X: [hunter2]}}]",
        "servers: [{name: a, command: b, env: ['A=hunter2']}]",
        "servers: [{name: a, command: b, env: {A: '${hunter2!}'}}]",
        "servers: [{name: a, command: b, args: ['${A:-hunter2']}]",
        "servers: [{name: a, command: b, args: hunter2}]",
        "servers: [{name: a, command: b, env: {A: !hunter2 }}]",
        "servers: [{name: a, command: b, env: {A: !hunter2!x }}]",
        "servers: [{name: a, command: b, env: {A: *hunter2}}]",
        "servers: [{name: a, command: b, env: {A: %hunter2, B: @hunter2}}]",
        "servers: [{name: a, command: b, env: {A: {hunter2: b}}}]",
        "servers:\n- name: a\n  env:\n    A: \"hunter2\n",
        "servers:\n- name: a\n  env:\n    A: hunter2: x\n",
        "servers:\n- name: a\n  env:\n   A: hunter2\n  hunter2\n",
    ];
    let printed = bad
        .map(report)
        .into_iter()
        .chain([format!("{good:?} {good:#?}")]);
    for text in printed {
        assert!(
            !text.contains("hunter2") && !text.contains("t0ken"),
            "{text}"
        );
    }
}

// contract: C1, S9
#[test]
fn only_a_file_that_was_named_must_exist() {
    let folder = tempfile::tempdir().unwrap();
    let here = |name: &str| folder.path().join(name);
    std::fs::write(here("empty.yaml"), "").unwrap();
    std::fs::write(here("latin1.yaml"), b"audit: {path: \xe9}").unwrap();
    std::fs::write(here("huge.yaml"), "#".repeat(1 << 21)).unwrap();

    assert!(
        Config::load(Some(&here("empty.yaml")), &environment)
            .unwrap()
            .servers
            .is_empty()
    );
    for (name, reason) in [
        ("absent.yaml", "No such file or directory"),
        ("", "Is a directory"),
        ("latin1.yaml", "valid UTF-8"),
        ("huge.yaml", "larger than 1048576 bytes"),
    ] {
        let error = Config::load(Some(&here(name)), &environment).unwrap_err();
        assert_eq!(error.mistakes(), 1);
        let report = error.to_string();
        assert!(report.contains(reason), "{report}");
    }
    let unnamed = |name: &str| Config::load_or(None, &here(name), &environment);
    assert!(unnamed("absent.yaml").unwrap().servers.is_empty());
    assert!(unnamed("latin1.yaml").is_err());
}

// contract: S9, C5
#[test]
fn nothing_written_means_the_defaults() {
    for text in [
        "",
        "# only a comment\n",
        "---\n",
        "{}",
        "servers:",
        "servers: []",
        "servers:\ntools:\nexecution:\npermissions:\naudit:\n",
        "tools: {}\nexecution: {}\npermissions: {}\naudit: {}",
    ] {
        let config = config(text);
        assert!(config.servers.is_empty(), "{text}");
        let execution = Execution {
            timeout: Duration::from_secs(120),
            max_output_bytes: 65_536,
            sandbox: SandboxMode::Auto,
            max_tool_calls: 100,
            max_concurrent_calls: 8,
            tool_call_timeout: Duration::from_secs(60),
            trace: Trace::Summary,
            max_tool_result_bytes: 16_777_216,
            max_memory_bytes: 536_870_912,
            max_scratch_bytes: 67_108_864,
            pool: 1,
            max_programs: 8,
            python: None,
            structured_content: StructuredContent::Auto,
        };
        assert_eq!(config.execution, execution, "{text}");
        assert_eq!(config.permissions.claude_code, ClaudeCodeRules::Honor);
        assert_eq!(
            config.audit,
            Audit {
                path: None,
                arguments: AuditArguments::Hash
            }
        );
        assert!(permits(&config, "mcp__a__b"));
        assert!(config.tools.limits().is_empty());
    }
}

// contract: C5
#[test]
fn every_key_of_a_section_arrives() {
    let config = config(
        "execution: {timeout_seconds: 0.5, max_output_bytes: 2, sandbox: none, max_tool_calls: 3,
          max_concurrent_calls: 4, tool_call_timeout_seconds: 1.5, trace: off,
          max_tool_result_bytes: 5, max_memory_bytes: 6, max_scratch_bytes: 7, pool: 0,
          max_programs: 9, python: /usr/bin/python3.12, structured_content: never}
permissions: {claude_code: ignore}
audit: {path: audit.jsonl, arguments: full}",
    );
    let execution = Execution {
        timeout: Duration::from_millis(500),
        max_output_bytes: 2,
        sandbox: SandboxMode::None,
        max_tool_calls: 3,
        max_concurrent_calls: 4,
        tool_call_timeout: Duration::from_millis(1500),
        trace: Trace::Off,
        max_tool_result_bytes: 5,
        max_memory_bytes: 6,
        max_scratch_bytes: 7,
        pool: 0,
        max_programs: 9,
        python: Some("/usr/bin/python3.12".into()),
        structured_content: StructuredContent::Never,
    };
    assert_eq!(config.execution, execution);
    assert_eq!(config.permissions.claude_code, ClaudeCodeRules::Ignore);
    let path = Some("audit.jsonl".into());
    assert_eq!(
        config.audit,
        Audit {
            path,
            arguments: AuditArguments::Full
        }
    );
}

// contract: C2, C3
#[test]
fn servers_arrive_with_their_variables_expanded() {
    let config = config(
        "servers:
- name: one
  command: ${NOWHERE:-run}
  args: [--port, 8080, '${PORT}', 1.10, true, $5, $$x]
  env: {KEY: '${TOKEN}', EMPTY: '${EMPTY}', DEBUG: 1}
  cwd: /srv/${TOKEN}
- {name: two, transport: http, url: 'https://example.com:${PORT}/mcp', headers: {X: 'B ${TOKEN}'}}
- {name: three, transport: sse, url: 'http://localhost/sse', connect_timeout_seconds: 1.5}
- {name: four, command: '${NOWHERE}', enabled: false}
- {name: five, command: run, args: , env: }
",
    );
    let names: Vec<_> = config
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(names, ["one", "two", "three", "five"]);

    let Transport::Stdio {
        command,
        args,
        env,
        cwd,
        ..
    } = &config.servers[0].transport
    else {
        panic!("{:?}", config.servers[0]);
    };
    let args: Vec<_> = args.iter().map(Secret::expose).collect();
    let env: Vec<_> = env
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert_eq!(command, "run");
    assert_eq!(args, ["--port", "8080", "8080", "1.10", "true", "$5", "$x"]);
    assert_eq!(env, [("DEBUG", "1"), ("EMPTY", ""), ("KEY", "t0ken")]);
    assert_eq!(cwd.as_deref(), Some(Path::new("/srv/t0ken")));
    assert_eq!(config.servers[0].connect_timeout, Duration::from_secs(30));

    let Transport::Http { url, headers } = &config.servers[1].transport else {
        panic!("{:?}", config.servers[1]);
    };
    assert_eq!(url.expose(), "https://example.com:8080/mcp");
    assert_eq!(headers["X"].expose(), "B t0ken");

    let Transport::Sse { url, headers } = &config.servers[2].transport else {
        panic!("{:?}", config.servers[2]);
    };
    assert_eq!((url.expose(), headers.len()), ("http://localhost/sse", 0));
    assert_eq!(
        config.servers[2].connect_timeout,
        Duration::from_millis(1500)
    );
}

#[test]
fn anchors_and_merge_keys_work() {
    let config = config(
        "servers:
- &base {name: one, command: run, env: &env {A: 1}}
- {<<: *base, name: two}
- {name: three, command: walk, env: *env}
",
    );
    let names: Vec<_> = config
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(names, ["one", "two", "three"]);
}

fn permits(config: &Config, name: &str) -> bool {
    config
        .tools
        .permits(&ToolName::new(name), &ToolName::new(name))
}

// contract: C4, C7
#[test]
fn allow_and_block_decide_by_whole_names() {
    for (tools, name, permitted) in [
        ("{}", "mcp__a__b", true),
        ("{allow: []}", "mcp__a__b", false),
        ("{block: []}", "mcp__a__b", true),
        ("{allow: ['*']}", "mcp__a__b", true),
        ("{allow: ['mcp__a__*']}", "mcp__a__b", true),
        ("{allow: ['mcp__a__*']}", "mcp__ab__c", false),
        ("{allow: ['mcp__a']}", "mcp__a__b", false),
        ("{allow: ['MCP__A__B']}", "mcp__a__b", false),
        ("{allow: ['mcp__a__b', 'mcp__c__*']}", "mcp__c__d", true),
        ("{allow: ['mcp__?__b']}", "mcp__a__b", true),
        ("{allow: ['mcp__[!a]__b']}", "mcp__a__b", false),
        ("{allow: ['mcp__{a,b}__c']}", "mcp__b__c", true),
        ("{allow: ['**']}", "mcp__a__b", true),
        (r"{allow: ['mcp__a__\b']}", "mcp__a__b", true),
        ("{block: ['*delete*']}", "mcp__a__delete_all", false),
        ("{block: ['*delete*']}", "mcp__a__list", true),
        ("{block: [mcp__a__b]}", "mcp__a__b", false),
        ("{block: [mcp__a__b]}", "mcp__a__bc", true),
    ] {
        assert_eq!(
            permits(&config(&format!("tools: {tools}")), name),
            permitted,
            "{tools} {name}"
        );
    }
}

// contract: C7, A2, A3
#[test]
fn a_pattern_matches_with_or_without_the_suffix() {
    let (name, unsuffixed) = (ToolName::new("mcp__a__b_2"), ToolName::new("mcp__a__b"));
    for (pattern, matches) in [
        ("mcp__a__b", true),
        ("mcp__a__b_2", true),
        ("*_2", true),
        ("mcp__a__b_3", false),
    ] {
        let with = |key: &str| config(&format!("tools: {{{key}: [{pattern:?}]}}")).tools;
        assert_eq!(
            with("allow").permits(&name, &unsuffixed),
            matches,
            "{pattern}"
        );
        assert_eq!(
            with("block").permits(&name, &unsuffixed),
            !matches,
            "{pattern}"
        );
        assert_eq!(
            with("confirm").needs_confirmation(&name, &unsuffixed),
            matches,
            "{pattern}"
        );

        let rules = config(&format!("tools: {{limits: {{{pattern:?}: 3}}}}")).tools;
        let [limit] = rules.limits() else {
            panic!("{rules:?}")
        };
        assert_eq!((limit.pattern(), limit.max), (pattern, 3));
        assert_eq!(limit.matches(&name, &unsuffixed), matches, "{pattern}");
    }
    assert!(!config("").tools.needs_confirmation(&name, &unsuffixed));
}

const EXAMPLE: &str = include_str!("../../config.example.yaml");

/// Every key of the file with its schema.
fn keys(schema: &serde_json::Value) -> Vec<(&str, &serde_json::Value)> {
    let sections = schema["$defs"]
        .as_object()
        .unwrap()
        .values()
        .chain([schema]);
    sections
        .filter_map(|section| section.get("properties")?.as_object())
        .flatten()
        .map(|(key, schema)| (key.as_str(), schema))
        .collect()
}

#[test]
fn the_example_names_every_key_and_its_default() {
    let example = parse(EXAMPLE).unwrap_or_else(|error| panic!("{error}"));
    let default = Config::default();
    assert_eq!(example.execution, default.execution);
    assert_eq!(example.permissions, default.permissions);
    assert_eq!(example.audit, default.audit);
    assert!(example.servers.is_empty(), "the example starts nothing");
    assert!(permits(&example, "mcp__a__b"));

    let schema = Config::schema();
    let keys = keys(&schema);
    assert!(keys.len() > 30, "{keys:?}");
    for (key, schema) in keys {
        let lines = EXAMPLE
            .lines()
            .map(|line| line.trim_start_matches([' ', '#', '-']));
        let mut values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let value = values
            .next()
            .unwrap_or_else(|| panic!("the example has no {key}"));
        if let Some(default) = schema.get("default") {
            let default = default.to_string().replace('"', "");
            let shown = value.trim_start().starts_with(&default);
            assert!(
                shown || value.contains(&format!("default: {default}")),
                "{key}:{value}"
            );
        }
    }
}

#[test]
fn the_schema_takes_the_example_and_no_unknown_key() {
    let schema = Config::schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let valid = |text: &str| {
        let instance: serde_json::Value = serde_yaml::from_str(text).unwrap();
        validator.is_valid(&instance)
    };
    let example: serde_json::Value = serde_yaml::from_str(EXAMPLE).unwrap();
    if let Err(error) = validator.validate(&example) {
        panic!("{error} at {}", error.instance_path());
    }
    for (text, expected) in [
        ("{}", true),
        ("servers:\ntools:\n", true),
        (
            "servers: [{name: a, command: b, args: [1, c, true], env: {D: 5}}]",
            true,
        ),
        (
            "execution: {pool: 0, timeout_seconds: 0.5, sandbox: chroot}",
            true,
        ),
        ("tools: {limits: {'mcp__*': 0}}", true),
        ("loging: {}", false),
        ("servers: [{name: a, comand: b}]", false),
        ("servers: [{command: b}]", false),
        ("servers: [{name: a}]", false),
        (
            "servers: [{name: a, transport: stdio, url: 'http://a'}]",
            false,
        ),
        (
            "servers: [{name: a, transport: sse, url: 'http://a'}]",
            true,
        ),
        ("servers: [{name: a, transport: http, command: b}]", false),
        ("tools: {alow: []}", false),
        ("tools: {allow: [], block: []}", false),
        ("execution: {timeout_seconds: 0}", false),
        ("execution: {max_tool_calls: 0}", false),
        ("execution: {sandbox: docker}", false),
        ("audit: {arguments: all}", false),
    ] {
        assert_eq!(valid(text), expected, "{text}");
    }
}

#[test]
fn every_key_and_every_choice_has_help() {
    let schema = Config::schema();
    let choices = schema["$defs"].as_object().unwrap().values();
    let choices = choices
        .filter_map(|choice| choice.get("oneOf")?.as_array())
        .flatten();
    for schema in keys(&schema)
        .into_iter()
        .map(|(_, schema)| schema)
        .chain(choices)
    {
        let help = schema.get("description").and_then(|help| help.as_str());
        assert!(help.is_some_and(|help| help.ends_with('.')), "{schema}");
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        let _ = parse(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn any_values_are_answered(values in prop::collection::vec(value(), 8)) {
        let [name, command, args, env, limits, seconds, sandbox, path] = &values[..] else {
            unreachable!()
        };
        let text = format!(
            "servers:\n- {{name: {name}, command: {command}, args: {args}, env: {env}}}\n\
             tools: {{limits: {limits}}}\n\
             execution: {{timeout_seconds: {seconds}, sandbox: {sandbox}}}\n\
             audit: {{path: {path}}}\n"
        );
        let _ = parse(&text).map_err(|error| error.to_string());
    }
}

/// A value as YAML's flow style writes it, of any kind.
fn value() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just(String::new()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| format!("{text:?}")),
        r"[$A-Z{}:\-]{0,8}".prop_map(|text| format!("'{text}'")),
    ];
    scalar.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(("[a-z]{1,3}", inner), 0..4).prop_map(|entries| {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{key}: {value}"))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }),
        ]
    })
}
