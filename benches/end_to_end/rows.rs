//! The rows of the table: what is done for one sample of each, on our side and on the floor's.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Session, config};
#[cfg(target_os = "linux")]
use crate::memory;
use crate::{Size, floors, median, server};

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) bar: Bar,
    /// One round: our side and the floor, right after one another.
    pub(crate) measure: fn(Size) -> Sample,
}

#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) ours: f64,
    pub(crate) floor: Option<f64>,
}

#[derive(Clone, Copy)]
pub(crate) enum Bar {
    /// Ours over the floor.
    Ratio(f64),
    /// Ours as it is.
    Most(f64),
    /// Ours less the floor.
    More(f64),
}

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Seconds,
    #[cfg(target_os = "linux")]
    Bytes,
}

impl Unit {
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 0.001 => format!("{:.1} µs", value * 1e6),
            Self::Seconds => format!("{:.2} ms", value * 1e3),
            #[cfg(target_os = "linux")]
            Self::Bytes => format!("{:.1} MiB", value / MIB),
        }
    }
}

#[cfg(target_os = "linux")]
const MIB: f64 = 1024.0 * 1024.0;
const MB: usize = 1_000_000;

/// What "as with six tools" and "as CPython" leave to chance.
const AS: f64 = 1.1;

pub(crate) const ROWS: &[Row] = &[
    row("start, tools/list answered", Bar::Ratio(6.0), start),
    row("start, first program done", Bar::Ratio(1.5), first_program),
    row("print(1), 0.3 s apart", Bar::Ratio(3.0), paced),
    row(
        "print(1), back to back, pool 1",
        Bar::Ratio(2.0),
        back_to_back,
    ),
    row(
        "print(1), 60 ms apart, pool 4",
        Bar::Most(0.002),
        pool_of_four,
    ),
    row(
        "a call, one processor, with asyncio",
        Bar::Ratio(1.5),
        call_with_asyncio,
    ),
    row(
        "a call, one processor, awaited alone",
        Bar::Ratio(2.4),
        call_awaited_alone,
    ),
    row("200 calls of 50 ms at once", Bar::Ratio(1.3), at_once),
    row("8 MB of JSON in a text", Bar::Ratio(1.15), large),
    row("start, 1,000 tools to 6", Bar::Ratio(AS), start_with_many),
    row(
        "print(1), 1,000 tools to 6",
        Bar::More(0.001),
        trivial_with_many,
    ),
    row("a call, 1,000 tools to 6", Bar::Ratio(AS), call_with_many),
    row("5 million additions to CPython", Bar::Ratio(AS), additions),
    #[cfg(target_os = "linux")]
    bytes("idle, whole tree with a ready child", 36.0 * MIB, idle_tree),
    #[cfg(target_os = "linux")]
    bytes("idle, the server alone", 14.0 * MIB, idle_server),
    #[cfg(target_os = "linux")]
    bytes("peak over idle while 8 MB pass", (3 * 8 * MB) as f64, peak),
    #[cfg(target_os = "linux")]
    bytes("left after ten results of 16 MB", 8.0 * MIB, left_behind),
];

const fn row(name: &'static str, bar: Bar, measure: fn(Size) -> Sample) -> Row {
    Row {
        name,
        unit: Unit::Seconds,
        bar,
        measure,
    }
}

#[cfg(target_os = "linux")]
const fn bytes(name: &'static str, most: f64, measure: fn(Size) -> Sample) -> Row {
    Row {
        name,
        unit: Unit::Bytes,
        bar: Bar::Most(most),
        measure,
    }
}

/// How long the machine is left alone between two measurements: after a program, the next child is
/// made ready, and what is measured then would pay for it.
pub(crate) const PAUSE: Duration = Duration::from_millis(300);

/// The medians of both sides, one after the other so many times.
fn in_turns(times: usize, ours: &mut dyn FnMut() -> f64, floor: &mut dyn FnMut() -> f64) -> Sample {
    every(2 * PAUSE, times, ours, floor)
}

/// The same, each side once in every period.
fn every(
    period: Duration,
    times: usize,
    ours: &mut dyn FnMut() -> f64,
    floor: &mut dyn FnMut() -> f64,
) -> Sample {
    let (mut all_ours, mut all_floor) = (Vec::new(), Vec::new());
    for _ in 0..times {
        sleep(period / 2);
        all_ours.push(ours());
        sleep(period / 2);
        all_floor.push(floor());
    }
    Sample {
        ours: median(all_ours),
        floor: Some(median(all_floor)),
    }
}

/// Until `tools/list` is answered.
fn started(config: &Value) -> f64 {
    let started = Instant::now();
    let mut session = Session::start(config);
    session.pipes.initialize();
    assert_eq!(session.pipes.list(), 3);
    started.elapsed().as_secs_f64()
}

fn start(size: Size) -> Sample {
    // One server that never answers: nothing may wait for it.
    let mut config = config(6, json!({}));
    let own = config["servers"][0]["command"].clone();
    let silent = json!({"name": "silent", "command": own, "args": [server::SILENT]});
    config["servers"]
        .as_array_mut()
        .expect("a list")
        .push(silent);
    in_turns(size.of(1, 7), &mut || started(&config), &mut floors::start)
}

fn first_program(size: Size) -> Sample {
    let config = config(6, json!({}));
    let mut ours = || {
        let started = Instant::now();
        let mut session = Session::start(&config);
        session.pipes.initialize();
        session.assert_prints("print(await mcp__s__echo(n=1))", "{'n': 1}");
        started.elapsed().as_secs_f64()
    };
    let mut floor = || floors::interpreter("import asyncio");
    in_turns(size.of(1, 5), &mut ours, &mut floor)
}

fn trivial(session: &mut Session) -> f64 {
    session.assert_prints("print(1)", "1").as_secs_f64()
}

fn paced(size: Size) -> Sample {
    trivial_every(Duration::from_millis(300), 1, size.of(1, 10))
}

fn pool_of_four(size: Size) -> Sample {
    trivial_every(Duration::from_millis(60), 4, size.of(1, 20))
}

fn trivial_every(period: Duration, pool: usize, times: usize) -> Sample {
    let mut session = Session::warm(&config(6, json!({"pool": pool})));
    let mut waiting = vec![floors::Waiting::start()];
    let mut floor = || {
        let seconds = waiting.pop().expect("one waits").run();
        waiting.push(floors::Waiting::start());
        seconds
    };
    sleep(PAUSE);
    every(period, times, &mut || trivial(&mut session), &mut floor)
}

fn back_to_back(size: Size) -> Sample {
    let times = size.of(2, 40);
    let mut session = Session::warm(&config(6, json!({"pool": 1})));
    sleep(PAUSE);
    let ours = median((0..times).map(|_| trivial(&mut session)));
    drop(session);
    sleep(PAUSE);
    let floor = median((0..times).map(|_| floors::interpreter("pass")));
    Sample {
        ours,
        floor: Some(floor),
    }
}

/// Sequential calls, timed by the program itself.
pub(crate) fn calls(session: &mut Session, imports: &str, calls: usize) -> f64 {
    let code = format!(
        "import time\n{imports}\n\
         assert await mcp__s__echo(n=-1) == {{'n': -1}}\n\
         started = time.perf_counter()\n\
         for i in range({calls}):\n\
         \x20   value = await mcp__s__echo(n=i)\n\
         seconds = time.perf_counter() - started\n\
         assert value == {{'n': {calls} - 1}}, value\n\
         print(seconds)\n"
    );
    session.measured(&code) / calls as f64
}

fn sequential(size: Size, imports: &str, child: &str) -> Sample {
    let (times, number) = (size.of(1, 3), size.of(20, 1000));
    let _pinned = Pinned::to_one_processor();
    let mut session = Session::warm(&config(6, json!({"max_tool_calls": number + 1})));
    in_turns(
        times,
        &mut || calls(&mut session, imports, number),
        &mut || floors::relayed(child, number) / number as f64,
    )
}

fn call_with_asyncio(size: Size) -> Sample {
    sequential(size, "import asyncio", floors::WITH_ASYNCIO)
}

fn call_awaited_alone(size: Size) -> Sample {
    sequential(size, "", floors::WITHOUT_ASYNCIO)
}

/// While it lives, what this thread starts runs on one processor.
struct Pinned {
    #[cfg(target_os = "linux")]
    before: rustix::thread::CpuSet,
}

impl Pinned {
    #[cfg(target_os = "linux")]
    fn to_one_processor() -> Self {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let before = sched_getaffinity(None).expect("a thread may ask");
        let last = (0..CpuSet::MAX_CPU).rfind(|&cpu| before.is_set(cpu));
        let mut one = CpuSet::new();
        one.set(last.expect("this thread runs somewhere"));
        sched_setaffinity(None, &one).expect("a subset is allowed");
        Self { before }
    }

    #[cfg(not(target_os = "linux"))]
    fn to_one_processor() -> Self {
        Self {}
    }
}

#[cfg(target_os = "linux")]
impl Drop for Pinned {
    fn drop(&mut self) {
        rustix::thread::sched_setaffinity(None, &self.before).expect("it was so before");
    }
}

fn at_once(size: Size) -> Sample {
    const MS: usize = 50;
    let number = size.of(10, 200);
    let limits = json!({"max_concurrent_calls": 200, "max_tool_calls": number + 1});
    let mut session = Session::warm(&config(6, limits));
    let code = format!(
        "import asyncio, time\n\
         await mcp__s__sleep(ms=0)\n\
         started = time.perf_counter()\n\
         values = await asyncio.gather(*(mcp__s__sleep(ms={MS}) for _ in range({number})))\n\
         seconds = time.perf_counter() - started\n\
         assert values == [{{'slept': True}}] * {number}\n\
         print(seconds)\n"
    );
    in_turns(size.of(1, 3), &mut || session.measured(&code), &mut || {
        floors::wired(floors::AT_ONCE, &[number, MS])
    })
}

/// The second of two large results: the server makes it for the first.
pub(crate) fn rows(bytes: usize) -> String {
    format!(
        "import time\n\
         value = await mcp__s__rows(bytes={bytes})\n\
         del value\n\
         started = time.perf_counter()\n\
         value = await mcp__s__rows(bytes={bytes})\n\
         seconds = time.perf_counter() - started\n\
         assert value[-1]['id'] == len(value) - 1 and value[-1]['tags'] == ['a', 'b', None, True]\n\
         print(seconds)\n"
    )
}

fn large(size: Size) -> Sample {
    let bytes = size.of(MB, 8 * MB);
    let mut session = Session::warm(&config(6, json!({})));
    let code = rows(bytes);
    in_turns(size.of(1, 3), &mut || session.measured(&code), &mut || {
        floors::wired(floors::LARGE, &[bytes])
    })
}

fn start_with_many(size: Size) -> Sample {
    let (many, six) = (config(1000, json!({})), config(6, json!({})));
    in_turns(size.of(1, 7), &mut || started(&many), &mut || started(&six))
}

fn trivial_with_many(size: Size) -> Sample {
    let mut many = Session::warm(&config(1000, json!({})));
    let mut six = Session::warm(&config(6, json!({})));
    in_turns(size.of(1, 7), &mut || trivial(&mut many), &mut || {
        trivial(&mut six)
    })
}

fn call_with_many(size: Size) -> Sample {
    let number = size.of(20, 1000);
    let limit = json!({"max_tool_calls": number + 1});
    let _pinned = Pinned::to_one_processor();
    let mut many = Session::warm(&config(1000, limit.clone()));
    let mut six = Session::warm(&config(6, limit));
    in_turns(
        size.of(1, 3),
        &mut || calls(&mut many, "", number),
        &mut || calls(&mut six, "", number),
    )
}

fn additions(size: Size) -> Sample {
    let number = size.of(5_000, 5_000_000);
    let code = format!(
        "import time\n\
         def add():\n\
         \x20   total = 0\n\
         \x20   for i in range({number}):\n\
         \x20       total += i\n\
         \x20   return total\n\
         started = time.perf_counter()\n\
         total = add()\n\
         seconds = time.perf_counter() - started\n\
         assert total == {number} * ({number} - 1) // 2\n\
         print(seconds)\n"
    );
    let mut session = Session::warm(&config(6, json!({})));
    in_turns(size.of(1, 3), &mut || session.measured(&code), &mut || {
        floors::printed(&code)
    })
}

/// A session in which a child stands ready, and its processes without the downstream server's.
#[cfg(target_os = "linux")]
fn idle() -> (Session, Vec<u32>) {
    let session = Session::warm(&config(6, json!({"pool": 1})));
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        // A child that stands still loads what programs need.
        sleep(Duration::from_millis(1500));
        let tree = memory::tree(session.pid(), &|command| command.contains(server::ECHO));
        if tree.iter().any(|&process| memory::is_python(process)) {
            return (session, tree);
        }
        assert!(Instant::now() < deadline, "no child stands ready");
    }
}

/// Shared pages count once, which is what the tree costs the machine.
#[cfg(target_os = "linux")]
fn idle_tree(_: Size) -> Sample {
    let (_session, tree) = idle();
    Sample {
        ours: memory::held(&tree).proportional as f64,
        floor: None,
    }
}

#[cfg(target_os = "linux")]
fn idle_server(_: Size) -> Sample {
    let (session, _) = idle();
    Sample {
        ours: memory::resident(session.pid()) as f64,
        floor: None,
    }
}

#[cfg(target_os = "linux")]
fn peak(size: Size) -> Sample {
    let bytes = size.of(MB, 8 * MB);
    let mut session = Session::warm(&config(6, json!({})));
    let before = memory::resident(session.pid());
    memory::forget_peak(session.pid());
    session.measured(&rows(bytes));
    Sample {
        ours: memory::peak(session.pid()).saturating_sub(before) as f64,
        floor: None,
    }
}

#[cfg(target_os = "linux")]
fn left_behind(size: Size) -> Sample {
    let bytes = size.of(MB, 16 * MB);
    let mut session = Session::warm(&config(6, json!({"max_tool_result_bytes": 2 * bytes})));
    let before = memory::resident(session.pid());
    for _ in 0..5 {
        session.measured(&rows(bytes));
    }
    sleep(Duration::from_millis(500));
    Sample {
        ours: memory::resident(session.pid()).saturating_sub(before) as f64,
        floor: None,
    }
}
