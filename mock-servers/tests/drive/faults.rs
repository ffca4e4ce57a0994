//! Every fault that pipes can show.

use std::time::{Duration, Instant};

use mock_servers::fault::{
    CloseStdin, Crash, CrashSignal, EndlessPages, Garbage, GarbageKind, Grandchild, Hang,
    IgnoreSigterm, IgnoreStdinEnd, Late, Noise, OddSchema, OddSchemas, Oversized, OversizedShape,
    Slow, StderrFlood, Violation, WrongId,
};
use mock_servers::{At, Event, Fault, Reply, Rule, Scenario, Tool};
use serde_json::{Value, json};

use crate::client::{DEADLINE, Pipes, call, cancel, initialize, request};

fn one(reply: Reply) -> Scenario {
    Scenario::new()
        .tool(Tool::new("t").reply(reply))
        .tool(Tool::new("echo"))
}

fn faulty(fault: Fault) -> Pipes {
    Pipes::handshake(&one(
        Reply::structured(json!({ "rows": [1] })).with_fault(fault)
    ))
}

#[test]
fn crashes_before_half_way_and_after() {
    let crash = |exit_code| {
        Fault::Crash(Crash {
            exit_code: Some(exit_code),
            ..Crash::default()
        })
    };
    let mut pipes = faulty(crash(7));
    pipes.send(&call(1, "t", &json!({})));
    assert_eq!(pipes.line(), None);
    assert_eq!(pipes.exit().code(), Some(7));

    let mut pipes = faulty(Fault::crash_half_way());
    pipes.send(&call(1, "t", &json!({})));
    let half = pipes.text();
    assert!(
        half.starts_with("{\"jsonrpc\"") && !half.ends_with('\n'),
        "{half}"
    );

    let mut pipes = faulty(Fault::crash_after());
    assert_eq!(pipes.call(1, "t", &json!({}))["id"], 1);
    assert_eq!(pipes.line(), None);
    assert_eq!(pipes.exit().code(), Some(1));
}

#[test]
fn crashes_or_goes_deaf_at_a_notification() {
    let at = |fault| Scenario::new().fault(Rule::new(At::Notification, fault).nth(2));
    let mut pipes = Pipes::handshake(&at(Fault::crash()));
    pipes.send(&cancel(1));
    pipes.send(&request(1, "ping", &json!({})));
    assert_eq!(pipes.message()["id"], 1);
    pipes.send(&cancel(2));
    assert_eq!(pipes.line(), None);
    assert_eq!(pipes.exit().code(), Some(1));

    let mut pipes = Pipes::handshake(&at(Fault::Hang(Hang { deaf: true })));
    pipes.send(&cancel(1));
    pipes.send(&cancel(2));
    let journal = pipes.journal();
    journal.wait_until(|journal| journal.faults() == ["hang"], DEADLINE);
    assert!(pipes.is_alive());
}

#[test]
fn dies_by_a_signal() {
    use std::os::unix::process::ExitStatusExt;
    let signal = Some(CrashSignal::Kill);
    let mut pipes = faulty(Fault::Crash(Crash {
        signal,
        ..Crash::default()
    }));
    pipes.send(&call(1, "t", &json!({})));
    assert_eq!(pipes.exit().signal(), Some(9));
}

#[test]
fn crashes_at_the_start_and_in_the_handshake() {
    let crash = || {
        Fault::Crash(Crash {
            exit_code: Some(3),
            ..Crash::default()
        })
    };
    assert_eq!(
        Pipes::open(&Scenario::new().always(At::Start, crash()))
            .exit()
            .code(),
        Some(3)
    );
    let mut pipes = Pipes::open(&Scenario::new().always(At::Handshake, crash()));
    pipes.send(&initialize("2025-11-25"));
    assert_eq!(pipes.exit().code(), Some(3));
}

#[test]
fn a_restarted_server_can_be_healthy() {
    let scenario = one(Reply::fault(Fault::crash())).healthy_on_restart();
    let mut pipes = Pipes::handshake(&scenario);
    pipes.send(&call(1, "t", &json!({})));
    assert_eq!(pipes.line(), None);
    let mut pipes = pipes.restart();
    pipes.shake_hands();
    assert_eq!(pipes.call(1, "t", &json!({}))["id"], 1);
    assert_eq!(pipes.journal().starts(), 2);
    assert_eq!(pipes.journal().faults(), ["crash"]);
}

#[test]
fn rules_strike_on_their_occasions() {
    let error = || Fault::error(-32000, "struck");
    for (rule, struck) in [
        (Rule::new(At::Call, error()), "xxxxxx"),
        (Rule::new(At::Call, error()).nth(2), ".x...."),
        (Rule::new(At::Call, error()).from(4), "...xxx"),
        (Rule::new(At::Call, error()).until(2), "xx...."),
        (Rule::new(At::Call, error()).every(3), "..x..x"),
        (Rule::new(At::Call, error()).from(3).every(2), "...x.x"),
        (Rule::new(At::Call, error()).tool("echo").nth(1), "......"),
        (Rule::new(At::Call, error()).starts([2]), "......"),
    ] {
        let mut pipes = Pipes::handshake(&one(Reply::text("ok")).fault(rule.clone()));
        let seen: String = (1..=6)
            .map(|id| {
                if pipes.call(id, "t", &json!({}))["error"].is_null() {
                    '.'
                } else {
                    'x'
                }
            })
            .collect();
        assert_eq!(seen, struck, "{rule:?}");
    }
}

#[test]
fn a_seed_decides_when_chance_strikes() {
    let seen = |seed| {
        let rule = Rule::new(At::Call, Fault::error(-32000, "struck")).one_in(3);
        let mut pipes = Pipes::handshake(&one(Reply::text("ok")).seed(seed).fault(rule));
        (1..=30)
            .map(|id| pipes.call(id, "t", &json!({}))["error"].is_null())
            .collect::<Vec<_>>()
    };
    let first = seen(1);
    assert!(first.contains(&true) && first.contains(&false));
    assert_eq!(first, seen(1));
    assert_ne!(first, seen(2));
}

#[test]
fn hangs_while_others_are_served() {
    let mut pipes = faulty(Fault::hang());
    pipes.send(&call(1, "t", &json!({})));
    assert_eq!(pipes.call(2, "echo", &json!({}))["id"], 2);
}

#[test]
fn a_deaf_server_reads_no_more() {
    let mut pipes = faulty(Fault::Hang(Hang { deaf: true }));
    pipes.send(&call(1, "t", &json!({})));
    let journal = pipes.journal();
    journal.wait_until(|journal| journal.faults() == ["hang"], DEADLINE);
    // One message may still be read before the reader notices.
    pipes.send(&request(2, "ping", &json!({})));
    pipes.send(&request(3, "ping", &json!({})));
    pipes.close_stdin();
    assert!(pipes.is_alive());
    assert!(journal.of(Event::StdinEnd).is_empty());
}

#[test]
fn is_slow_at_first_or_all_along() {
    let mut pipes = faulty(Fault::slow(50));
    let begin = Instant::now();
    pipes.call(1, "t", &json!({}));
    assert!(begin.elapsed() >= Duration::from_millis(50));

    let mut pipes = faulty(Fault::Slow(Slow {
        first_byte_ms: 0,
        bytes_per_second: Some(400),
    }));
    let begin = Instant::now();
    assert_eq!(pipes.call(1, "t", &json!({}))["id"], 1);
    assert!(begin.elapsed() >= Duration::from_millis(50));
}

#[test]
fn is_oversized_in_every_shape() {
    for shape in [
        OversizedShape::Text,
        OversizedShape::Structured,
        OversizedShape::Rows,
    ] {
        let mut pipes = faulty(Fault::oversized(1 << 20, shape));
        pipes.send(&call(1, "t", &json!({})));
        let line = pipes.text();
        assert!(line.len() > 1 << 20, "{shape:?}");
        assert!(serde_json::from_str::<Value>(&line).is_ok(), "{shape:?}");
    }
    let fault = Fault::oversized(1 << 20, OversizedShape::Text);
    let mut pipes = Pipes::handshake(&Scenario::new().always(At::ToolsList, fault));
    pipes.send(&request(1, "tools/list", &json!({})));
    assert!(pipes.text().len() > 1 << 20);
}

#[test]
fn a_line_never_ends() {
    let mut pipes = Pipes::open(&Scenario::new().always(
        At::Handshake,
        Fault::Oversized(Oversized {
            bytes: 0,
            shape: OversizedShape::EndlessLine,
        }),
    ));
    pipes.send(&initialize("2025-11-25"));
    // The client's reader holds it all; a moment's worth is enough.
    pipes
        .journal()
        .wait_until(|journal| journal.faults() == ["oversized"], DEADLINE);
    assert!(pipes.is_alive());
}

#[test]
fn violates_schemas() {
    for (kind, expected) in [
        (Violation::WrongType, json!({ "rows": {} })),
        (Violation::MissingStructured, Value::Null),
        (Violation::ExtraNesting, json!({ "data": { "rows": [1] } })),
    ] {
        let answer = faulty(Fault::schema_violation(kind)).call(1, "t", &json!({}));
        assert_eq!(answer["result"]["structuredContent"], expected, "{kind:?}");
    }
}

#[test]
fn garbage_is_what_it_says() {
    let answer =
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"rows":[1]}}}"#;
    for (kind, lines) in [
        (
            GarbageKind::NotJson,
            vec!["this is not JSON {]\n".to_owned(), format!("{answer}\n")],
        ),
        (GarbageKind::Bom, vec![format!("\u{feff}{answer}\n")]),
        (GarbageKind::Nul, vec![format!("\0{answer}\0\n")]),
        (GarbageKind::Crlf, vec![format!("{answer}\r\n")]),
        (GarbageKind::Batch, vec![format!("[{answer}]\n")]),
        (
            GarbageKind::Truncated,
            vec![format!("{}\n", &answer[..answer.len() - 1])],
        ),
        (
            GarbageKind::EmptyLines,
            vec![
                "\n".to_owned(),
                "\r\n".to_owned(),
                "  \n".to_owned(),
                format!("{answer}\n"),
            ],
        ),
    ] {
        let mut pipes = faulty(Fault::garbage(kind));
        pipes.send(&call(1, "t", &json!({})));
        for line in lines {
            assert_eq!(pipes.text(), line, "{kind:?}");
        }
    }
    let mut pipes = faulty(Fault::line("id $ID is\u{1} odd"));
    pipes.send(&call(1, "t", &json!({})));
    assert_eq!(pipes.text(), "id 1 is\u{1} odd\n");
    let instead = Garbage {
        instead: true,
        ..Garbage::default()
    };
    let mut pipes = faulty(Fault::Garbage(instead));
    pipes.send(&call(1, "t", &json!({})));
    pipes.text();
    assert_eq!(pipes.call(2, "echo", &json!({}))["id"], 2);
}

#[test]
fn answers_with_a_wrong_id_twice_or_late() {
    assert_eq!(
        faulty(Fault::wrong_id()).call(1, "t", &json!({}))["id"],
        "nobody-asked-this"
    );
    let wrong = WrongId {
        id: Some(json!(99)),
        then_right: true,
    };
    let mut pipes = faulty(Fault::WrongId(wrong));
    assert_eq!(pipes.call(1, "t", &json!({}))["id"], 99);
    assert_eq!(pipes.message()["id"], 1);

    let mut pipes = faulty(Fault::duplicate());
    assert_eq!(pipes.call(1, "t", &json!({})), pipes.message());

    let mut pipes = faulty(Fault::late());
    pipes.send(&call(1, "t", &json!({})));
    pipes.send(&cancel(1));
    assert_eq!(pipes.message()["id"], 1);

    let mut pipes = faulty(Fault::Late(Late { after_ms: Some(1) }));
    assert_eq!(pipes.call(1, "t", &json!({}))["id"], 1);
}

#[test]
fn makes_noise() {
    let mut pipes = faulty(Fault::noise(&["one", "two"]));
    pipes.send(&call(1, "t", &json!({})));
    assert_eq!([pipes.text(), pipes.text()], ["one\n", "two\n"]);
    assert_eq!(pipes.message()["id"], 1);

    let glued = Noise {
        lines: vec!["oops".to_owned()],
        times: 1,
        glued: true,
    };
    let mut pipes = faulty(Fault::Noise(glued));
    pipes.send(&call(1, "t", &json!({})));
    assert!(pipes.text().starts_with("oops{"));

    let mut pipes = Pipes::open(&Scenario::new().always(At::Start, Fault::noise(&["banner"])));
    pipes.send(&initialize("2025-11-25"));
    assert_eq!(pipes.text(), "banner\n");
}

#[test]
fn floods_stderr_and_answers() {
    let mut pipes = faulty(Fault::StderrFlood(StderrFlood {
        bytes: 1 << 20,
        lines: false,
    }));
    assert_eq!(pipes.call(1, "t", &json!({}))["id"], 1);
}

#[test]
fn errors_instead_of_answers() {
    let mut pipes = faulty(Fault::error(-32050, "no"));
    let error = pipes.call(1, "t", &json!({}))["error"].clone();
    assert_eq!(error, json!({ "code": -32050, "message": "no" }));
    let mut pipes = Pipes::handshake(&one(Reply::rpc_error(-32051, "never")));
    assert_eq!(pipes.call(1, "t", &json!({}))["error"]["code"], -32051);
    assert!(pipes.journal().faults().is_empty());
}

#[test]
fn lists_endlessly_twice_or_oddly() {
    let list = |fault: Fault| {
        let mut pipes = Pipes::handshake(&one(Reply::new()).always(At::ToolsList, fault));
        pipes.send(&request(1, "tools/list", &json!({})));
        let first = pipes.message()["result"].clone();
        pipes.send(&request(
            2,
            "tools/list",
            &json!({ "cursor": first["nextCursor"] }),
        ));
        (first, pipes.message()["result"].clone())
    };
    let (first, second) = list(Fault::EndlessPages(EndlessPages::default()));
    assert_ne!(first["nextCursor"], second["nextCursor"]);
    assert_eq!(second["tools"], json!([]));
    let same = EndlessPages {
        same_cursor: true,
        with_tools: true,
    };
    let (first, second) = list(Fault::EndlessPages(same));
    assert_eq!(first["nextCursor"], second["nextCursor"]);
    assert_eq!(second["tools"].as_array().map(Vec::len), Some(1));
    let (twice, _) = list(Fault::DuplicateNames(Default::default()));
    assert_eq!(twice["tools"][0], twice["tools"][1]);
    let odd = OddSchemas {
        kind: OddSchema::NotASchema,
        input: false,
    };
    let (odd, _) = list(Fault::OddSchemas(odd));
    assert_eq!(odd["tools"][0]["outputSchema"], json!({ "type": 17 }));
}

#[test]
fn closes_stdout_and_lives_on() {
    let mut pipes = faulty(Fault::CloseStdout(Default::default()));
    pipes.send(&call(1, "t", &json!({})));
    assert_eq!(pipes.line(), None);
    pipes.send(&request(2, "ping", &json!({})));
    pipes
        .journal()
        .wait_until(|journal| journal.method("ping").len() == 1, DEADLINE);
    assert!(pipes.is_alive());
}

#[test]
fn closes_stdin_and_lives_on() {
    let mut pipes = faulty(Fault::CloseStdin(CloseStdin {}));
    assert_eq!(pipes.call(1, "t", &json!({}))["id"], 1);
    let end = Instant::now() + DEADLINE;
    while pipes.accepts(&request(2, "ping", &json!({}))) {
        assert!(Instant::now() < end, "stdin stays open");
    }
    assert!(pipes.is_alive());
}

#[test]
fn ignores_sigterm() {
    let terminate = |pipes: &Pipes| {
        let kill = std::process::Command::new("kill")
            .arg(pipes.pid().to_string())
            .status();
        assert!(kill.expect("kill runs").success());
    };
    let fault = Fault::IgnoreSigterm(IgnoreSigterm {});
    let mut pipes = Pipes::handshake(&Scenario::new().always(At::Start, fault));
    terminate(&pipes);
    pipes.send(&request(1, "ping", &json!({})));
    assert_eq!(pipes.message()["id"], 1);

    let mut pipes = Pipes::handshake(&Scenario::new());
    terminate(&pipes);
    assert!(!pipes.wait_for_exit().success());
}

#[test]
fn ignores_the_end_of_stdin() {
    let fault = Fault::IgnoreStdinEnd(IgnoreStdinEnd {});
    let mut pipes = Pipes::handshake(&Scenario::new().always(At::Start, fault));
    pipes.close_stdin();
    pipes
        .journal()
        .wait_until(|journal| !journal.of(Event::StdinEnd).is_empty(), DEADLINE);
    assert!(pipes.is_alive());
}

#[test]
fn a_grandchild_holds_the_pipes() {
    let fault = Fault::Grandchild(Grandchild { seconds: 30 });
    let mut pipes = Pipes::handshake(&Scenario::new().always(At::Start, fault));
    pipes.close_stdin();
    pipes.wait_for_exit();
    let note = pipes.journal().of(Event::Grandchild)[0]
        .note
        .clone()
        .expect("its pid");
    let kill = |signal: &str| {
        std::process::Command::new("kill")
            .args([signal, &note])
            .status()
            .expect("kill runs")
    };
    assert!(kill("-0").success(), "the grandchild outlives the server");
    kill("-9");
    assert_eq!(
        pipes.line(),
        None,
        "with it the last end of the pipe is gone"
    );
}
