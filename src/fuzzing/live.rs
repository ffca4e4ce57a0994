//! A live engine on an in-memory pipe: whatever a child sends, the run ends, and nothing gets past
//! the gate.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::catalogue::Catalogue;
use crate::channel::frame::Decoder;
use crate::channel::{ChildMessage, MAX_CHILD_FRAME};
use crate::config::Config;
use crate::consent::{Asker, Consent, Session};
use crate::downstream::fuzzing::{Calls, connect_in_memory};
use crate::engine;
use crate::engine::fuzzing::Gone;
use crate::gate::{Gate, Policy, Progress};
use crate::permissions;
use crate::registry::Registry;
use crate::report::Report;
use crate::sandbox::Exit;
use crate::supervisor::{Live, ServerState};

/// Small limits, which a few messages reach. `hidden` may not be called, and nobody says yes to
/// `asked`.
const CONFIG: &str = "
servers: [{name: s, command: none}, {name: gone, command: none}]
tools: {block: [mcp__s__hidden], confirm: [mcp__s__asked], limits: {mcp__s__few: 2}}
execution: {max_tool_calls: 6, max_concurrent_calls: 2, max_output_bytes: 2000,
  max_tool_result_bytes: 5000, timeout_seconds: 20, tool_call_timeout_seconds: 20}
";

const TOOLS: [&str; 13] = [
    "echo", "few", "silent", "wrong", "told", "refuses", "garbled", "large", "lost", "typed",
    "marked", "hidden", "asked",
];

/// What the cut output may hold beyond its limit: the note that it was cut.
const NOTE: usize = 200;

/// No run on which nobody waits takes this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the engine gets to move between two pieces, and once the child has said everything.
const TURNS: usize = 4;
const LAST_TURNS: usize = 60;

/// Into how many pieces a child's bytes are cut.
const PIECES: usize = 16;

static SETTING: LazyLock<Config> = LazyLock::new(|| {
    Config::parse(CONFIG, Path::new("live.yaml"), &|_| None).expect("it is well written")
});

thread_local! {
    static RUNTIME: Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
}

/// How a run ends of which the child does not say so itself. The number of its bytes decides.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The pipe is closed, and then the child is gone.
    Closed,
    /// The child is gone, and somebody else holds its pipe for a moment.
    Gone,
    Cancelled,
}

fn end(said: &[u8]) -> (End, Result<Exit, String>) {
    match said.len() % 8 {
        0 => (End::Cancelled, Ok(Exit::Code(0))),
        1 => (End::Gone, Ok(Exit::Code(1))),
        2 => (End::Gone, Ok(Exit::Signal(9))),
        3 => (End::Gone, Ok(Exit::Signal(11))),
        4 => (End::Closed, Ok(Exit::Signal(24))),
        5 => (End::Closed, Ok(Exit::Signal(6))),
        6 => (End::Gone, Err("it used too much".to_owned())),
        _ => (End::Closed, Ok(Exit::Code(0))),
    }
}

/// Lets a child say these bytes, and then be gone.
pub(super) fn engine(said: &[u8]) {
    RUNTIME.with(|runtime| {
        let (report, told, calls) = runtime.block_on(run(said));
        let asked = messages(said);
        nothing_gets_past_the_gate(&calls, &report);
        each_answer_is_to_its_own_request(&asked, &told);
        what_is_kept_is_bounded(&asked, &report);
    });
}

async fn run(said: &[u8]) -> (Report, Vec<u8>, Calls) {
    let limit = SETTING.execution.max_tool_result_bytes;
    let [server, other] = &SETTING.servers[..] else {
        panic!("two servers");
    };
    let (connection, heard) = connect_in_memory(server, limit, TOOLS.to_vec()).await;
    let tools = connection.list_tools().await.expect("they are listed");
    let live = Arc::new(Live {
        catalogue: Catalogue::new(&server.name, tools, &SETTING.tools),
        connection,
        connected_in: Duration::ZERO,
        marks_results: Arc::default(),
    });
    let down = ServerState::Down {
        reason: "it never came up".to_owned(),
    };
    // A receiver keeps its last value when the sender is gone.
    let registry = Arc::new(Registry::new(vec![
        (server.name.clone(), watch::channel(ServerState::Up(live)).1),
        (other.name.clone(), watch::channel(down).1),
    ]));
    let nobody = Asker::Nobody("nobody is there".to_owned());
    let policy = Policy {
        tools: SETTING.tools.clone(),
        client: permissions::Rules::default(),
        consent: Consent::new(nobody, Session::default()),
        log: None,
    };
    let (progress, watched) = watch::channel(Progress::default());
    let execution = &SETTING.execution;
    let gate = Gate::new(registry.clone(), policy, execution.clone(), Some(progress));

    let (child, host) = tokio::io::duplex(1024);
    let (from_child, to_child) = tokio::io::split(host);
    let (gone, cancelled) = (CancellationToken::new(), CancellationToken::new());
    let (end, exit) = end(said);
    let ends = match end {
        End::Cancelled => cancelled.clone(),
        End::Gone | End::Closed => gone.clone(),
    };
    let child = tokio::spawn(talk(child, said.to_vec(), end, ends));
    let pipes = (from_child, to_child);
    let run = engine::fuzzing::run(
        execution,
        &registry,
        &gate,
        pipes,
        Gone(gone, exit),
        cancelled,
    );
    let report = tokio::time::timeout(PATIENCE, run).await;
    let report = report.expect("the run ends");
    let told = child.await.expect("the child does not panic");
    assert_eq!(watched.borrow().calls, report.calls.len() as u64);
    (report, told, heard.calls())
}

/// The child: says its bytes piece by piece, hears what it is told meanwhile, and goes.
async fn talk(pipe: DuplexStream, said: Vec<u8>, end: End, ends: CancellationToken) -> Vec<u8> {
    let (mut hears, mut says) = tokio::io::split(pipe);
    let hearing = tokio::spawn(async move {
        let mut told = Vec::new();
        // However the pipe ends.
        let _ = hears.read_to_end(&mut told).await;
        told
    });
    for piece in said.chunks(said.len().div_ceil(PIECES).max(1)) {
        if says.write_all(piece).await.is_err() {
            break;
        }
        turns(TURNS).await;
    }
    turns(LAST_TURNS).await;
    if end != End::Closed {
        ends.cancel();
        turns(TURNS).await;
    }
    // The engine may have hung up before.
    let _ = says.shutdown().await;
    ends.cancel();
    hearing.await.expect("hearing does not panic")
}

async fn turns(turns: usize) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

/// What the child said, as far as it kept to the protocol.
fn messages(said: &[u8]) -> Vec<ChildMessage> {
    let mut decoder = Decoder::new(MAX_CHILD_FRAME);
    let mut bytes = said;
    let mut messages = Vec::new();
    while let Ok(Some(body)) = decoder.decode(&mut bytes)
        && let Ok(message) = ChildMessage::parse(&body)
    {
        messages.push(message);
    }
    messages
}

fn nothing_gets_past_the_gate(calls: &Calls, report: &Report) {
    let execution = &SETTING.execution;
    let sent = calls.all.len();
    assert!(sent as u64 <= execution.max_tool_calls, "{sent} calls");
    assert!(calls.most <= execution.max_concurrent_calls);
    for (tool, arguments) in &calls.all {
        assert!(!matches!(tool.as_str(), "hidden" | "asked"), "{tool}");
        assert!(TOOLS.contains(&tool.as_str()), "{tool}");
        assert!(arguments.is_object(), "{arguments}");
    }
    let few = calls.all.iter().filter(|(tool, _)| tool == "few").count();
    assert!(few <= 2, "{few} calls of few");
    // Of each call that reached the server the record says so, or that nobody knows.
    let known = report
        .calls
        .iter()
        .filter(|call| call.answered() || call.in_doubt());
    assert!(sent <= known.count(), "{sent} calls were sent");
    let answered = report.calls.iter().filter(|call| call.answered()).count();
    assert!(answered <= sent, "{answered} answers to {sent} calls");
}

/// No request is answered twice, and each value is the one that its own call asked for.
fn each_answer_is_to_its_own_request(asked: &[ChildMessage], told: &[u8]) {
    let mut requests: BTreeMap<u64, Vec<Option<&RawValue>>> = BTreeMap::new();
    for message in asked {
        match message {
            ChildMessage::Call { id, arguments, .. } => {
                requests.entry(*id).or_default().push(Some(arguments));
            }
            ChildMessage::Help { id, .. } => requests.entry(*id).or_default().push(None),
            _ => {}
        }
    }
    let mut decoder = Decoder::new(1 << 24);
    let mut bytes = told;
    let mut frames = Vec::new();
    while let Ok(Some(body)) = decoder.decode(&mut bytes) {
        frames.push(serde_json::from_slice::<Value>(&body).expect("the host speaks JSON"));
    }
    let mut answers: BTreeMap<u64, usize> = BTreeMap::new();
    for frame in frames {
        let kind = frame["type"].as_str().expect("a type");
        if kind == "start" {
            continue;
        }
        let id = frame["id"].as_u64().expect("an id");
        let answered = answers.entry(id).or_default();
        *answered += 1;
        let requests = requests.get(&id).map_or(&[][..], Vec::as_slice);
        assert!(*answered <= requests.len(), "{id} is answered twice");
        let said = &frame["value"]["said"];
        if kind == "return" && !said.is_null() {
            let own = requests.iter().any(|arguments| match arguments {
                Some(arguments) => {
                    serde_json::from_str::<Value>(arguments.get()).ok().as_ref() == Some(said)
                }
                None => true,
            });
            assert!(own, "{id} got {said}");
        }
    }
}

fn what_is_kept_is_bounded(asked: &[ChildMessage], report: &Report) {
    let limit = SETTING.execution.max_output_bytes;
    assert!(report.output.len() <= limit + NOTE);
    let emitted = report.emitted.as_ref().map_or(0, |value| value.get().len());
    assert!(emitted <= limit, "{emitted} bytes emitted");
    let is_call = |message: &&ChildMessage| matches!(message, ChildMessage::Call { .. });
    assert!(report.calls.len() <= asked.iter().filter(is_call).count());
    for call in &report.calls {
        assert!(call.tool.len() < 1000 && call.arguments.chars().count() <= 200);
        assert_eq!(call.ok(), call.error().is_none());
    }
    assert!(report.error().is_none_or(|error| error.len() < 300_000));
}
