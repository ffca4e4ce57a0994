//! Cost against size, as the table of `benches/README.md`.

use std::thread::sleep;
use std::time::Instant;

use serde_json::json;

use crate::client::{Session, config};
use crate::{Size, median, rows, say};

pub(crate) fn measure(size: Size) {
    say("");
    say("| growth | smallest | | | largest |");
    say("| --- | --- | --- | --- | --- |");
    let times = size.of(1, 3);
    let table = |what: &str, steps: [usize; 4], cost: &dyn Fn(usize, usize) -> f64, per: &Per| {
        let steps = if size == Size::Smoke {
            &steps[..1]
        } else {
            &steps[..]
        };
        let cells: Vec<String> = steps
            .iter()
            .map(|&step| per.show(step, cost(step, times)))
            .collect();
        say(&format!("| {what} | {} |", cells.join(" | ")));
    };
    let tools = [10, 100, 1_000, 10_000];
    table(
        "tools: start to the first program's end",
        tools,
        &first_program,
        &Per::Whole,
    );
    table(
        "tools: a program without calls",
        tools,
        &trivial,
        &Per::Whole,
    );
    table("tools: a call", tools, &call, &Per::Whole);
    table(
        "calls in one program",
        [10, 100, 1_000, 10_000],
        &calls,
        &Per::One,
    );
    table(
        "calls at once in one program",
        [10, 100, 1_000, 10_000],
        &at_once,
        &Per::One,
    );
    table(
        "a result's bytes",
        [1_000, 32_000, 1_000_000, 16_000_000],
        &result,
        &Per::Kilobyte,
    );
    table("programs at once", [1, 4, 16, 32], &programs, &Per::One);
}

/// What a cost is divided by.
enum Per {
    Whole,
    One,
    Kilobyte,
}

impl Per {
    fn show(&self, step: usize, seconds: f64) -> String {
        let whole = rows::Unit::Seconds.show(seconds);
        let each = |parts: f64| rows::Unit::Seconds.show(seconds / parts);
        match self {
            Self::Whole => format!("{step}: {whole}"),
            Self::One => format!("{step}: {whole}, each {}", each(step as f64)),
            Self::Kilobyte => format!("{step}: {whole}, a KB {}", each(step as f64 / 1000.0)),
        }
    }
}

/// The median of so many runs.
fn usual(times: usize, mut run: impl FnMut() -> f64) -> f64 {
    median((0..times).map(|_| run()))
}

fn first_program(tools: usize, times: usize) -> f64 {
    let config = config(tools, json!({}));
    usual(times, || {
        let started = Instant::now();
        let mut session = Session::start(&config);
        session.pipes.initialize();
        session.assert_prints("print(await mcp__s__echo(n=1))", "{'n': 1}");
        started.elapsed().as_secs_f64()
    })
}

fn trivial(tools: usize, times: usize) -> f64 {
    let mut session = Session::warm(&config(tools, json!({"pool": 1})));
    usual(times, || {
        sleep(rows::PAUSE);
        session.assert_prints("print(1)", "1").as_secs_f64()
    })
}

fn call(tools: usize, times: usize) -> f64 {
    let mut session = Session::warm(&config(tools, json!({"max_tool_calls": 1001})));
    usual(times, || rows::calls(&mut session, "", 1000))
}

fn calls(calls: usize, times: usize) -> f64 {
    let mut session = Session::warm(&config(6, json!({"max_tool_calls": calls + 1})));
    usual(times, || {
        rows::calls(&mut session, "", calls) * calls as f64
    })
}

fn at_once(calls: usize, times: usize) -> f64 {
    let limits = json!({"max_tool_calls": calls + 1, "max_concurrent_calls": 200});
    let mut session = Session::warm(&config(6, limits));
    let code = format!(
        "import asyncio, time\n\
         await mcp__s__echo(n=0)\n\
         started = time.perf_counter()\n\
         values = await asyncio.gather(*(mcp__s__echo(n=i) for i in range({calls})))\n\
         seconds = time.perf_counter() - started\n\
         assert [value['n'] for value in values] == list(range({calls}))\n\
         print(seconds)\n"
    );
    usual(times, || session.measured(&code))
}

fn result(bytes: usize, times: usize) -> f64 {
    let limit = json!({"max_tool_result_bytes": 2 * bytes + 1000});
    let mut session = Session::warm(&config(6, limit));
    usual(times, || session.measured(&rows::rows(bytes)))
}

fn programs(at_once: usize, times: usize) -> f64 {
    let limits = json!({"max_programs": at_once});
    let mut session = Session::warm(&config(6, limits));
    usual(times, || {
        sleep(rows::PAUSE);
        let started = Instant::now();
        let sent: Vec<u64> = (0..at_once)
            .map(|n| session.send(&format!("print(await mcp__s__echo(n={n}))")))
            .collect();
        for _ in 0..at_once {
            let (id, printed) = session.receive();
            let n = sent.iter().position(|&sent| sent == id);
            assert_eq!(printed, format!("{{'n': {}}}", n.expect("it was sent")));
        }
        started.elapsed().as_secs_f64()
    })
}
