//! The client's own permission rules hold inside programs (section A: Claude Code's settings files).

use std::path::Path;

use serde_json::{Value, json};

use crate::person::{
    THREE_REFUNDS, call_again, choice, converse, crm, next_request, question_of, reply,
};
use crate::support::{LEGACY, MODERN, Ptc, ToolResult};

pub fn settings(ptc: &Ptc, settings: &Value) {
    write(
        &ptc.folder().join("project/.claude/settings.json"),
        &settings.to_string(),
    );
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// Claude Code in that project.
pub fn claude(era: &'static str) -> Ptc {
    let ptc = Ptc::new()
        .stdio("crm", crm())
        .client("claude-code")
        .capabilities(json!({"elicitation": {"form": {}}}))
        .era(era);
    let project = ptc.folder().join("project");
    let project = project.to_str().unwrap().to_owned();
    ptc.env("CLAUDE_PROJECT_DIR", &project)
}

// contract: A1
#[test]
fn a_denied_tool_is_not_callable_and_the_error_names_rule_and_file() {
    for era in [LEGACY, MODERN] {
        let ptc = claude(era);
        settings(
            &ptc,
            &json!({"permissions": {"deny": ["mcp__crm__re*"], "allow": ["mcp__crm"]}}),
        );
        let mut session = ptc.start();
        let file = session.folder().join("project/.claude/settings.json");
        let error = session.execute("await mcp__crm__refund(amount=1)").error();
        let expected = format!(
            "'mcp__crm__refund' was refused: the rule \"mcp__crm__re*\" in permissions.deny of {} forbids it",
            file.display()
        );
        assert!(error.contains(&expected), "{error}");
        assert_eq!(
            session.execute("print(await mcp__crm__get(a=1))").output(),
            "{'a': 1}"
        );
        // Read anew for each program.
        write(&file, "{}");
        assert_eq!(
            session
                .execute("print(await mcp__crm__refund(a=1))")
                .output(),
            "{'a': 1}"
        );
        assert_eq!(session.journal("crm").calls("refund").len(), 1);
    }
}

// contract: A1
#[test]
fn every_settings_file_of_the_client_counts() {
    let deny = json!({"permissions": {"deny": ["mcp__crm"]}}).to_string();
    let places = [
        (".claude/settings.json", None),
        ("moved/settings.json", Some("moved")),
        ("project/.claude/settings.json", None),
        ("project/.claude/settings.local.json", None),
    ];
    for (place, moved) in places {
        let mut ptc = claude(LEGACY);
        write(&ptc.folder().join(place), &deny);
        if let Some(moved) = moved {
            let folder = ptc.folder().join(moved);
            ptc = ptc.env("CLAUDE_CONFIG_DIR", folder.to_str().unwrap());
        }
        let error = ptc.execute("await mcp__crm__get()").error();
        assert!(
            error.contains(place) && error.contains("permissions.deny"),
            "{error}"
        );
    }
}

// contract: A1
#[test]
fn the_rules_hold_for_claude_code_unless_they_are_to_be_ignored() {
    let cases = [
        ("claude-code", "honor", true),
        ("claude-code/2.1.332", "honor", true),
        ("claude-code", "ignore", false),
        ("codex-mcp-client", "honor", false),
    ];
    for (client, setting, denied) in cases {
        let ptc = claude(LEGACY)
            .client(client)
            .set("permissions", "claude_code", setting);
        settings(&ptc, &json!({"permissions": {"deny": ["mcp__crm"]}}));
        let result = ptc.execute("print(await mcp__crm__get())");
        assert_eq!(
            result.is_error,
            denied,
            "{client} {setting}: {}",
            result.text()
        );
    }
}

// contract: A1 A2
#[test]
fn a_rule_that_asks_puts_the_call_to_the_person() {
    for era in [LEGACY, MODERN] {
        let ptc = claude(era);
        settings(&ptc, &json!({"permissions": {"ask": ["mcp__crm__refund"]}}));
        let mut session = ptc.start();
        let answers = [choice("once"), choice("no"), choice("once")];
        let (result, asked) = converse(&mut session, era, THREE_REFUNDS, &answers);
        assert!(result.output().starts_with("ok 1\n"), "{}", result.text());
        assert!(
            asked[0].contains("the rule \"mcp__crm__refund\" in permissions.ask of "),
            "{}",
            asked[0]
        );
    }
}

// contract: A1 S5 T1
#[test]
fn a_settings_file_that_cannot_be_read_is_named_and_nothing_is_assumed() {
    for era in [LEGACY, MODERN] {
        let ptc = claude(era);
        let file = ptc.folder().join("project/.claude/settings.local.json");
        write(&file, "{\"permissions\": {\"allow\": [\"mcp__crm\"]");
        settings(
            &ptc,
            &json!({"permissions": {"deny": ["mcp__crm__close"], "allow": ["mcp__crm"]}}),
        );
        let mut session = ptc.start();
        let code = "print(await mcp__crm__get(a=1))";
        let (result, asked) = converse(&mut session, era, code, &[choice("once")]);
        assert!(
            asked[0].contains("settings.local.json is not JSON"),
            "{}",
            asked[0]
        );
        let lines: Vec<&str> = result.text().lines().collect();
        assert_eq!(lines[1], "{'a': 1}");
        assert!(
            lines[2].starts_with("[tool calls: 1; "),
            "the text ends as ever"
        );
        assert_eq!(lines.len(), 3);
        let warning = &result.texts[1];
        assert!(warning.contains(file.to_str().unwrap()), "{warning}");
        assert!(warning.contains("is not JSON: "), "{warning}");
        let denied = session.execute("await mcp__crm__close()");
        assert!(denied.error().contains("permissions.deny"));
        assert_eq!(
            denied.texts.len(),
            2,
            "the warning comes with a failure too"
        );
    }
}

// contract: A1
#[test]
fn without_a_project_folder_the_first_root_of_the_client_is_asked_for() {
    let with_roots = |era| {
        let ptc = Ptc::new()
            .stdio("crm", crm())
            .client("claude-code")
            .capabilities(json!({"roots": {}}))
            .era(era);
        settings(
            &ptc,
            &json!({"permissions": {"deny": ["mcp__crm__refund"]}}),
        );
        let root = format!("file://{}/project", ptc.folder().display());
        let roots = json!({"roots": [{"uri": root, "name": "p"}, {"uri": "file:///elsewhere"}]});
        (ptc.start(), roots)
    };
    let code = "await mcp__crm__refund(amount=1)";
    let (mut session, roots) = with_roots(LEGACY);
    let id = session.send_tool_call("execute_program", json!({"code": code}));
    let request = next_request(&mut session, "roots/list");
    reply(&mut session, &request, &roots);
    let error = ToolResult::of(session.answer(id)).error();
    assert!(error.contains("permissions.deny"), "{error}");

    let (mut session, roots) = with_roots(MODERN);
    let id = session.send_tool_call("execute_program", json!({"code": code}));
    let (requests, state) = question_of(&session.answer(id)).expect("asks for the roots");
    assert_eq!(requests["roots"]["method"], "roots/list");
    let answer = call_again(&mut session, code, &state, json!({"roots": roots}));
    let error = ToolResult::of(answer).error();
    assert!(error.contains("permissions.deny"), "{error}");
    assert!(session.journal("crm").calls("refund").is_empty());
}

// contract: A1
#[test]
fn without_roots_the_working_directory_is_the_project() {
    let ptc = Ptc::new().stdio("crm", crm()).client("claude-code");
    let rule = json!({"permissions": {"deny": ["mcp__crm__refund"]}});
    // The harness runs the server in its folder, which is its home as well: the local settings
    // belong to a project only.
    write(
        &ptc.folder().join(".claude/settings.local.json"),
        &rule.to_string(),
    );
    let error = ptc.execute("await mcp__crm__refund()").error();
    assert!(error.contains("settings.local.json"), "{error}");
}
