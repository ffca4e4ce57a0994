//! Scenario files: what is refused, and that the builder and the file say the same.

use mock_servers::fault::{Crash, FAULTS, When};
use mock_servers::{At, Compute, Fault, Reply, Rule, Scenario, Tool};
use serde_json::json;

#[test]
fn yaml_json_and_the_builder_say_the_same() {
    let yaml = r#"
tools:
  - name: get_rows
    output_schema: { type: object, required: [rows] }
    replies:
      - structured: { rows: [1, 2] }
        text: ["EMPTY RESULT for 2024"]
      - fault: crash
      - fault: { crash: { when: half, exit_code: 3 } }
      - compute: echo
faults:
  - { at: tools_list, nth: 2, fault: hang }
on_restart: healthy
"#;
    let tool = Tool::new("get_rows")
        .output_schema(json!({ "type": "object", "required": ["rows"] }))
        .replies([
            Reply::structured(json!({ "rows": [1, 2] })).and_text("EMPTY RESULT for 2024"),
            Reply::fault(Fault::crash()),
            Reply::fault(Fault::Crash(Crash {
                when: When::Half,
                exit_code: Some(3),
                ..Crash::default()
            })),
            Reply::compute(Compute::Echo(Default::default())),
        ]);
    let built = Scenario::new()
        .tool(tool)
        .fault(Rule::new(At::ToolsList, Fault::hang()).nth(2))
        .healthy_on_restart();
    assert_eq!(Scenario::parse(yaml).expect("a scenario"), built);
    assert_eq!(
        Scenario::parse(&built.to_json()).expect("a scenario"),
        built
    );
}

#[test]
fn what_could_never_strike_is_refused() {
    for (text, reason) in [
        ("tool: []", "unknown field `tool`"),
        ("tools: [{ name: a, replys: [] }]", "unknown field `replys`"),
        (
            "tools: [{ name: a, replies: [{ fault: crush }] }]",
            "unknown variant `crush`",
        ),
        (
            "tools: [{ name: a, replies: [{ fault: { crash: { wen: half } } }] }]",
            "unknown field `wen`",
        ),
        (
            "tools: [{ name: a }, { name: a }]",
            "tool 'a' is defined twice",
        ),
        (
            "faults: [{ at: start, fault: duplicate_names }]",
            "`duplicate_names` cannot strike at `start`",
        ),
        (
            "faults: [{ at: call, tool: b, fault: crash }]",
            "the tool 'b', which is not defined",
        ),
        (
            "faults: [{ at: call, every: 0, fault: crash }]",
            "count from 1",
        ),
        (
            "tools: [{ name: a, replies: [{ fault: ignore_sigterm }] }]",
            "cannot be a reply's",
        ),
        (
            "faults: [{ at: call, from: 5, until: 3, fault: crash }]",
            "`crash` at `call` never strikes",
        ),
        (
            "faults: [{ at: call, nth: 3, every: 2, fault: crash }]",
            "never strikes",
        ),
        (
            "faults: [{ at: call, every: 4, until: 3, fault: crash }]",
            "never strikes",
        ),
        (
            "faults: [{ at: call, fault: { garbage: { kind: literal } } }]",
            "`literal` needs its `text`",
        ),
        (
            "tools: [{ name: a, replies: [{ fault: { garbage: { kind: literal } } }] }]",
            "`literal` needs its `text`",
        ),
        (
            "tools: [{ name: a, replies: [{ raw: '{}', fault: schema_violation }] }]",
            "nothing of a `raw` reply",
        ),
        (
            "tools: [{ name: a, replies: [{ raw: '{}' }] }]\nfaults: [{ at: call, fault: schema_violation }]",
            "nothing of a `raw` reply",
        ),
    ] {
        let error = Scenario::parse(text).expect_err(text);
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn every_fault_has_its_bare_name() {
    for name in FAULTS {
        let at = ["start", "call", "tools_list"].into_iter().find(|at| {
            Scenario::parse(&format!("faults: [{{ at: {at}, fault: {name} }}]")).is_ok()
        });
        let at = at.unwrap_or_else(|| panic!("`{name}` fits nowhere"));
        let scenario = Scenario::parse(&format!("faults: [{{ at: {at}, fault: {name} }}]"));
        assert_eq!(scenario.expect("a scenario").faults[0].fault.name(), *name);
    }
}

#[test]
fn the_schema_names_every_fault_in_both_spellings() {
    let schema = Scenario::schema().to_string();
    for name in FAULTS {
        assert!(
            schema.contains(&format!(r#""required":["{name}"]"#)),
            "{name}"
        );
    }
    assert!(schema.contains(r#""enum":["crash","hang","#));
}
