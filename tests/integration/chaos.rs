//! Random faults by seed, programs of every kind at once, and what must hold whatever happens.
//!
//! A short run is part of every test run. `PTC_MCP_SOAK_MINUTES=20` makes it a soak;
//! `PTC_MCP_SEED` replays the faults and programs of a run, whose seed is printed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mock_servers::fault::{
    ContentType, CutBody, CutStream, EndlessStream, Garbage, GarbageKind, LoseSession,
    OversizedShape, Reset, SlowHeaders, StderrFlood,
};
use mock_servers::scenario::STATELESS_VERSION;
use mock_servers::{At, Fault, Reply, Rule, Scenario, Tool, Transport};
use serde_json::json;

use crate::peer::Peer;
use crate::support::{Ptc, Session, ToolResult, mentioning};

const BOUNDED: Duration = Duration::from_secs(10);

/// Calls that reach a server, of one program.
const MAX_CALLS: usize = 12;

/// Calls of one server's tools, of one program: a limit of its own under `tools.limits`.
const FEW: (&str, usize) = ("old", 5);

/// Programs that run at once. Most of a program's time is waiting for a server that hangs or dawdles,
/// so the machine bears more of them than it has cores.
const AT_ONCE: usize = 12;

/// Rounds between two looks at everything that reached the servers. What is wrong there stays wrong,
/// and reading the journals takes longer from round to round.
const ROUNDS_BETWEEN: usize = 3;

/// The longest pause between attempts (D1), and time for the attempt itself on a busy machine.
const BACKOFF: Duration = Duration::from_secs(60 + 30);

/// What the process may hold more than at its start: what allocators keep.
const SLACK: u64 = 48 << 20;

/// Numbers that look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

// ---- servers ---------------------------------------------------------------------------------

const SERVERS: [(&str, Transport); 5] = [
    ("pipe", Transport::Stdio),
    ("new_pipe", Transport::Stdio),
    ("web", Transport::Http),
    ("new_web", Transport::Http),
    ("old", Transport::Sse),
];

fn healthy(name: &str) -> Scenario {
    let scenario = Scenario::new()
        .tool(Tool::echo("echo"))
        .tool(Tool::sleep("nap", 60_000))
        .tool(Tool::new("die").reply(Reply::text("as you wish")))
        .tool(Tool::echo("blocked"));
    match name {
        "new_pipe" | "new_web" => scenario.versions([STATELESS_VERSION]),
        _ => scenario,
    }
}

/// The same tools under every fault that the transport can show, each on one call in so many.
fn unwell(name: &str, transport: Transport, random: &mut Random) -> Scenario {
    let garbage = |kind| {
        Fault::Garbage(Garbage {
            kind,
            text: None,
            instead: true,
        })
    };
    let cut = |resumable, orderly| Fault::CutStream(CutStream { resumable, orderly });
    let mut faults = vec![
        (9, Fault::error(-32603, "out of luck")),
        (
            7,
            Fault::noise(&["DEBUG still alive", "{\"level\":\"info\"}"]),
        ),
        (11, Fault::duplicate()),
        (13, Fault::slow(40)),
        (17, garbage(GarbageKind::Truncated)),
        (19, garbage(GarbageKind::SeveralOnALine)),
        (23, garbage(GarbageKind::InvalidUtf8)),
        (29, garbage(GarbageKind::Nul)),
        (29, garbage(GarbageKind::WrongShape)),
        (31, Fault::oversized(200_000, OversizedShape::Text)),
        (37, Fault::oversized(200_000, OversizedShape::Rows)),
        (61, Fault::hang()),
        (67, Fault::late()),
        (71, Fault::wrong_id()),
    ];
    if transport == Transport::Stdio {
        faults.extend([
            (150, Fault::crash()),
            (300, Fault::crash_half_way()),
            (300, Fault::crash_after()),
            (
                47,
                Fault::StderrFlood(StderrFlood {
                    bytes: 200_000,
                    lines: true,
                }),
            ),
        ]);
    } else {
        faults.extend([
            (11, Fault::status(500)),
            (13, Fault::status_with(429, &[("Retry-After", "1")], "")),
            (17, Fault::SlowHeaders(SlowHeaders { ms: 30 })),
            (300, Fault::Reset(Reset {})),
            (300, cut(false, true)),
        ]);
    }
    if name == "web" {
        // Without a session there is nothing to resume.
        faults.extend([(7, cut(true, true)), (11, cut(true, false))]);
    }
    if transport == Transport::Http {
        faults.extend([
            (13, Fault::ContentType(ContentType::default())),
            (73, Fault::EndlessStream(EndlessStream::default())),
            (300, Fault::CutBody(CutBody::default())),
            (300, Fault::LoseSession(LoseSession {})),
        ]);
    }
    let mut scenario = healthy(name).seed(random.next());
    let die = Reply::fault(Fault::crash());
    for tool in &mut scenario.tools {
        if tool.name == "die" && transport == Transport::Stdio {
            tool.replies = vec![die.clone()];
        }
    }
    faults
        .into_iter()
        .fold(scenario, |scenario, (one_in, fault)| {
            scenario.fault(Rule::new(At::Call, fault).tool("echo").one_in(one_in))
        })
}

// ---- programs --------------------------------------------------------------------------------

const PREAMBLE: &str = "
import asyncio, os
async def ask(tool, **more):
    try:
        value = await tool(token=TOKEN, **more)
    except ToolError as error:
        return str(error)
    if value != {'token': TOKEN, **more}:
        print('MIXED UP:', value)
    return ''
print('BEGIN', TOKEN)
";

/// Bodies of programs, `@` standing for a tool of a random server each time.
const BODIES: [&str; 10] = [
    "for i in range(8): await ask(@, i=i)\nprint('END', TOKEN)",
    "tools = [@, @, @]\nawait asyncio.gather(*(ask(tools[i % 3], i=i) for i in range(11)))\nprint('END', TOKEN)",
    "said = [await ask(@, i=i) for i in range(20)]\nprint('END', TOKEN, sum('budget exhausted' in text for text in said))",
    "await ask(@, i=0)\nawait asyncio.gather(*(ask(@, i=i) for i in range(1, 5)), mcp__pipe__nap(token=TOKEN, i=99), return_exceptions=True)\nprint('END', TOKEN)",
    "await ask(@, i=0)\nos._exit(3)",
    "task = asyncio.create_task(ask(@, i=0))\nawait ask(@, i=1)\nasyncio.create_task(ask(@, i=2))\nprint('END', TOKEN)",
    "await ask(@, i=0)\nraise ValueError(TOKEN)",
    "await ask(@, i=0)\nwhile True: print(TOKEN * 50)",
    "emit({'token': TOKEN, 'said': [await ask(@, i=i) for i in range(3)]})\nprint('END', TOKEN)",
    "for name in ('mcp__pipe__blocked', 'mcp__web__blocked'):\n    try: await eval(name)(token=TOKEN, i=90)\n    except (NameError, ToolError): pass\nawait asyncio.gather(*(ask(mcp__old__echo, i=i) for i in range(50, 58)))\nprint('END', TOKEN)",
];

fn program(token: &str, random: &mut Random) -> String {
    // The one that must be killed takes three seconds of a core, more than all others of its round.
    let body = match random.below(300) {
        0 => BODIES[7],
        n => BODIES[[0, 1, 2, 3, 4, 5, 6, 8, 9][n % 9]],
    };
    let mut code = format!("TOKEN = '{token}'{PREAMBLE}");
    for (n, piece) in body.split('@').enumerate() {
        if n > 0 {
            code += &format!("mcp__{}__echo", random.pick(&SERVERS).0);
        }
        code += piece;
    }
    code
}

/// No text holds another program's token, and no program received another call's value.
fn assert_own(result: &ToolResult, token: &str) {
    let text = result.raw.to_string();
    assert!(!text.contains("MIXED UP"), "{token}: {text}");
    for (at, _) in text.match_indices("tok-") {
        let found: String = text[at..]
            .char_indices()
            .take_while(|(n, c)| *n < 4 || c.is_ascii_digit() || *c == '-')
            .map(|(_, c)| c)
            .collect();
        // Where output is cut, a token may be.
        assert!(token.starts_with(&found), "{token} was given {found}");
    }
}

// ---- what is counted -------------------------------------------------------------------------

/// What a process holds.
#[derive(Debug, Clone, PartialEq)]
struct Holdings {
    descriptors: usize,
    threads: usize,
    processes: usize,
    zombies: usize,
    scratch: usize,
}

impl Holdings {
    fn of(session: &Session) -> Self {
        let count = |path: &Path| std::fs::read_dir(path).map_or(0, Iterator::count);
        let process = Path::new("/proc").join(session.pid().to_string());
        Self {
            descriptors: count(&process.join("fd")),
            threads: count(&process.join("task")),
            processes: mentioning(session.folder()).len(),
            zombies: zombies(session.pid()),
            scratch: count(&session.folder().join("tmp")),
        }
    }

    fn is_within(&self, start: &Self) -> bool {
        self.descriptors <= start.descriptors
            && self.threads <= start.threads
            && self.processes <= start.processes
            && self.zombies <= start.zombies
            && self.scratch <= start.scratch
    }
}

fn zombies(parent: u32) -> usize {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return 0;
    };
    processes
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
            fields.starts_with(&format!("Z {parent} "))
        })
        .count()
}

fn memory(session: &Session) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", session.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.expect("Linux says so") * 1024
}

/// No program got more calls through than it may, or to a tool that it may not call, and no call was
/// sent twice.
fn assert_budgets(peers: &[Peer], tokens: &HashSet<String>) {
    let mut sent: HashMap<String, usize> = HashMap::new();
    let mut seen = HashSet::new();
    for (peer, (name, _)) in peers.iter().zip(SERVERS) {
        assert!(peer.journal().calls("blocked").is_empty(), "{name}");
        let mut few: HashMap<String, usize> = HashMap::new();
        for call in peer.journal().method("tools/call") {
            let arguments = call.arguments();
            if name == FEW.0
                && let Some(token) = arguments["token"].as_str()
            {
                *few.entry(token.to_owned()).or_default() += 1;
            }
            let Some(token) = arguments["token"].as_str() else {
                continue;
            };
            assert!(tokens.contains(token), "nobody sent {arguments}");
            *sent.entry(token.to_owned()).or_default() += 1;
            let once = seen.insert((token.to_owned(), arguments["i"].as_u64()));
            assert!(once, "sent twice: {arguments}");
        }
        for (token, calls) in few {
            assert!(calls <= FEW.1, "{token} made {calls} calls of {name}");
        }
    }
    for (token, calls) in sent {
        assert!(calls <= MAX_CALLS, "{token} made {calls} calls");
    }
}

// ---- the run ---------------------------------------------------------------------------------

fn seed() -> u64 {
    let given = std::env::var("PTC_MCP_SEED").ok();
    given.map_or_else(
        || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            now.as_micros() as u64
        },
        |seed| seed.parse().expect("PTC_MCP_SEED is a number"),
    )
}

fn duration() -> Duration {
    let minutes = std::env::var("PTC_MCP_SOAK_MINUTES").ok();
    minutes.map_or(BOUNDED, |minutes| {
        let minutes: f64 = minutes.parse().expect("PTC_MCP_SOAK_MINUTES is a number");
        Duration::from_secs_f64(minutes * 60.0)
    })
}

fn wait_until(
    what: &str,
    patience: Duration,
    session: &mut Session,
    mut done: impl FnMut(&mut Session) -> bool,
) {
    let deadline = Instant::now() + patience;
    while !done(session) {
        assert!(Instant::now() < deadline, "{what}; log:\n{}", session.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Programs at once, some of them cancelled; all are answered exactly once, or not at all.
fn round(
    session: &mut Session,
    number: usize,
    tokens: &mut HashSet<String>,
    cancelled: &mut BTreeSet<u64>,
    random: &mut Random,
) -> usize {
    // Many, since a round ends with its slowest program, for which all others have long been done.
    let programs = 6 * AT_ONCE + random.below(4 * AT_ONCE);
    let mut running = Vec::new();
    for n in 0..programs {
        let token = format!("tok-{number}-{n}-");
        let code = program(&token, random);
        let id = session.send_tool_call("execute_program", json!({"code": code}));
        tokens.insert(token.clone());
        if random.below(8) == 0 {
            session.notify("notifications/cancelled", json!({"requestId": id}));
            cancelled.insert(id);
        } else {
            running.push((id, token, random.below(8) == 0));
        }
    }
    let mut first = true;
    while !running.is_empty() {
        let (id, token, _) = running.swap_remove(random.below(running.len()));
        assert_own(&ToolResult::of(session.answer(id)), &token);
        // Those that are to be cancelled in the middle are so once another one has ended.
        if std::mem::take(&mut first) {
            running.retain(|(id, _, doomed)| {
                if *doomed {
                    session.notify("notifications/cancelled", json!({"requestId": id}));
                    cancelled.insert(*id);
                }
                !doomed
            });
        }
    }
    programs
}

// contract: D1 D2 D3 B1 S11 P8 P10
#[test]
#[expect(
    clippy::print_stdout,
    reason = "the seed is for the one who reads the failure"
)]
fn whatever_happens_every_request_is_answered_once_and_nothing_is_left() {
    let seed = seed();
    println!("PTC_MCP_SEED={seed}");
    let mut random = Random(seed);
    let mut ptc = Ptc::new()
        .execution("timeout_seconds", 3)
        .execution("max_output_bytes", 4096)
        .execution("max_tool_calls", MAX_CALLS)
        .execution("max_concurrent_calls", 3)
        .execution("max_programs", AT_ONCE)
        .set("tools", "block", json!(["*__blocked"]))
        .set(
            "tools",
            "limits",
            json!({format!("mcp__{}__echo", FEW.0): FEW.1}),
        )
        .execution("tool_call_timeout_seconds", 0.5)
        .execution("max_tool_result_bytes", 100_000);
    let mut peers = Vec::new();
    for (name, transport) in SERVERS {
        let (next, peer) = Peer::join(ptc, transport, name, unwell(name, transport, &mut random));
        ptc = next;
        peers.push(peer);
    }
    let everything = SERVERS.len() * 3;
    let mut session = ptc.start();
    session.wait_for_tools("connected", |names| names.len() == everything);
    session.execute("print(1)").output();
    session.wait_for_a_ready_child();
    let (start, memory_at_start) = (Holdings::of(&session), memory(&session));

    let end = Instant::now() + duration();
    let (mut programs, mut rounds) = (0, 0);
    let (mut tokens, mut cancelled) = (HashSet::new(), BTreeSet::new());
    while Instant::now() < end {
        programs += round(
            &mut session,
            rounds,
            &mut tokens,
            &mut cancelled,
            &mut random,
        );
        rounds += 1;
        let strays: Vec<u64> = session
            .unclaimed()
            .filter(|id| !cancelled.contains(id))
            .collect();
        assert!(strays.is_empty(), "answered twice: {strays:?}");
        wait_until(
            "a program's scratch directory is left",
            Duration::from_secs(60),
            &mut session,
            |session| Holdings::of(session).scratch <= start.scratch,
        );
        if rounds % ROUNDS_BETWEEN == 0 {
            assert_budgets(&peers, &tokens);
            // A web server goes away in the middle of things, and comes back.
            let away = 2 + random.below(3);
            peers[away].leave();
            programs += round(
                &mut session,
                rounds,
                &mut tokens,
                &mut cancelled,
                &mut random,
            );
            rounds += 1;
            peers[away].revive();
        }
    }

    // All are well again, and connected within the backoff.
    for (peer, (name, transport)) in peers.iter_mut().zip(SERVERS) {
        peer.change(healthy(name));
        if transport == Transport::Stdio {
            session.execute(&format!(
                "try: await mcp__{name}__die()\nexcept ToolError: pass"
            ));
        }
    }
    let code = SERVERS
        .map(|(name, _)| format!("assert await mcp__{name}__echo(n=1) == {{'n': 1}}"))
        .join("\n");
    wait_until(
        "not all are connected again",
        BACKOFF,
        &mut session,
        |session| session.callable().len() == everything && !session.execute(&code).is_error,
    );
    assert_budgets(&peers, &tokens);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let now = Holdings::of(&session);
        if now.is_within(&start) {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "at the start {start:?}, at the end {now:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let memory_at_end = memory(&session);
    assert!(
        memory_at_end < memory_at_start + SLACK,
        "{} MiB at the start, {} MiB at the end",
        memory_at_start >> 20,
        memory_at_end >> 20
    );
    // Whatever was still on its way has come by now.
    session.request("ping", json!({}));
    let strays: Vec<u64> = session
        .unclaimed()
        .filter(|id| !cancelled.contains(id))
        .collect();
    assert!(strays.is_empty(), "answered twice: {strays:?}");
    session.close();
    let faults: usize = peers.iter().map(|peer| peer.journal().faults().len()).sum();
    println!(
        "{programs} programs in {rounds} rounds, {} cancelled, {faults} faults",
        cancelled.len()
    );
    assert!(faults > 0);
}
