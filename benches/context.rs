//! What a task puts into a model's context, by direct calls and through ptc-mcp, in bytes.
//!
//! A meter without a model: each scenario is played twice over real pipes, once against its server
//! and once against ptc-mcp with a fixed program, and everything that a client would show is counted:
//! arguments and results, the tools that are inspected, the program, and what comes back. A result
//! counts as Claude Code shows it: the structured content, or else the texts. Definitions of tools
//! stand in columns of their own. Bytes and round trips are measured; seconds are modelled, at 200 ms
//! a call, the direct calls one after another.
//!
//! `cargo bench --bench context`; exit status 1 when a bar is missed.

#![allow(clippy::disallowed_methods, reason = "a bench starts what it measures")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// Results beyond this many characters Claude Code moves to a file, and shows their beginning.
const MOVED_TO_A_FILE: usize = 50_000;
/// The modelled time of one call.
const SECONDS: f64 = 0.2;
/// Calls that a program makes at once.
const AT_ONCE: usize = 8;

struct Scenario {
    name: &'static str,
    server: &'static str,
    /// What a model looks up before it writes the program.
    inspected: &'static [&'static str],
    /// The same without programs, with as few turns as the calls allow.
    direct: fn(&mut Session) -> Tally,
    program: &'static str,
    /// Calls that the program makes one after another; the others it makes at once.
    in_sequence: usize,
}

/// What one way of doing a task has cost.
#[derive(Default)]
struct Tally {
    bytes: usize,
    calls: usize,
    turns: usize,
    moved: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--serve") {
        serve(&arguments[at + 1]);
        return;
    }
    print_line(&format!(
        "{:<22} {:>8} {:>8} {:>9} {:>8} {:>7} {:>8} {:>9} {:>12}",
        "scenario",
        "direct",
        "to file",
        "ptc-mcp",
        "ratio",
        "calls",
        "turns",
        "seconds",
        "definitions"
    ));
    let mut missed = Vec::new();
    for scenario in &SCENARIOS {
        measure(scenario, &mut missed);
    }
    for bar in &missed {
        print_line(&format!("missed: {bar}"));
    }
    if !missed.is_empty() {
        std::process::exit(1);
    }
}

#[expect(clippy::print_stdout, reason = "a bench's own output")]
fn print_line(line: &str) {
    println!("{line}");
}

fn measure(scenario: &Scenario, missed: &mut Vec<String>) {
    let mut server = Session::start(
        Command::new(server(scenario.server)[0].clone()).args(&server(scenario.server)[1..]),
    );
    let their_definitions = server.definitions();
    let direct = (scenario.direct)(&mut server);

    let folder = tempfile::tempdir().expect("a folder");
    let command = server_entry(scenario.server);
    let config = json!({"servers": [command], "execution": {"sandbox": "none"}});
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, config.to_string()).expect("the config is written");
    let mut ptc = Session::start(
        Command::new(env!("CARGO_BIN_EXE_ptc-mcp"))
            .arg("--config")
            .arg(&file),
    );
    let our_definitions = ptc.definitions();
    let mut here = Tally::default();
    for tool in scenario.inspected {
        here.turn([("inspect_tool", json!({"tool_name": tool}))], &mut ptc);
    }
    let answers = here.turn(
        [("execute_program", json!({"code": scenario.program}))],
        &mut ptc,
    );
    let calls = answers[0]["_meta"]["ptc-mcp/tool_calls"]
        .as_array()
        .map_or(0, Vec::len);
    assert_eq!(
        calls, direct.calls,
        "{}: the same calls\n{}",
        scenario.name, answers[0]
    );

    let in_sequence = scenario.in_sequence.min(calls);
    let waves = in_sequence + (calls - in_sequence).div_ceil(AT_ONCE);
    // The command line counts the same for one program.
    let said = run_with_stats(&folder.path().join("program.py"), &file, scenario.program);
    let expected = format!("{calls} direct calls: {} bytes", direct.bytes);
    assert!(
        said.contains(&expected),
        "{}: {expected}\n{said}",
        scenario.name
    );
    let percent = here.bytes as f64 * 100.0 / direct.bytes as f64;
    print_line(&format!(
        "{:<22} {:>8} {:>8} {:>9} {:>6.1} % {:>7} {:>8} {:>9} {:>12}",
        scenario.name,
        direct.bytes,
        direct.moved,
        here.bytes,
        percent,
        calls,
        format!("{} > {}", direct.turns, here.turns),
        format!(
            "{:.1} > {:.1}",
            calls as f64 * SECONDS,
            waves as f64 * SECONDS
        ),
        format!("{their_definitions} > {our_definitions}"),
    ));
    let mut bar = |holds: bool, what: String| {
        if !holds {
            missed.push(format!("{}: {what}", scenario.name));
        }
    };
    match direct.bytes {
        100_000.. => bar(percent <= 3.0, format!("{percent:.1} % is more than 3 %")),
        50_000.. => bar(percent <= 6.0, format!("{percent:.1} % is more than 6 %")),
        _ if calls == 1 => {
            let more = here.bytes.saturating_sub(direct.bytes);
            bar(
                more <= 600,
                format!("{more} bytes more than direct, above 600"),
            );
        }
        _ => {}
    }
    bar(
        our_definitions <= 6_000,
        format!("our definitions are {our_definitions} bytes, above 6000"),
    );
}

/// What `ptc-mcp run --stats` says on stderr.
fn run_with_stats(program: &Path, config: &Path, code: &str) -> String {
    std::fs::write(program, code).expect("the program is written");
    let output = Command::new(env!("CARGO_BIN_EXE_ptc-mcp"))
        .arg("--config")
        .arg(config)
        .args(["run", "--stats"])
        .arg(program)
        .output()
        .expect("ptc-mcp runs");
    assert!(output.status.success(), "the program failed");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

impl Tally {
    /// One turn of the model: calls that it makes together.
    fn turn<const N: usize>(
        &mut self,
        calls: [(&str, Value); N],
        session: &mut Session,
    ) -> Vec<Value> {
        self.turns += 1;
        let answers = calls.map(|(tool, arguments)| self.call(tool, &arguments, session));
        answers.into()
    }

    fn call(&mut self, tool: &str, arguments: &Value, session: &mut Session) -> Value {
        let answer = session.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
        let shown = match &answer["structuredContent"] {
            Value::Null => {
                let blocks = answer["content"].as_array().expect("content is a list");
                blocks
                    .iter()
                    .filter_map(|block| block["text"].as_str())
                    .collect()
            }
            structured => structured.to_string(),
        };
        self.calls += 1;
        self.bytes += arguments.to_string().len() + shown.len();
        if shown.chars().count() > MOVED_TO_A_FILE {
            self.moved += shown.len();
        }
        answer
    }
}

const SCENARIOS: [Scenario; 8] = [
    Scenario {
        name: "3 statements of 50 KB",
        server: "filings",
        inspected: &["mcp__s__get_statement"],
        direct: |session| {
            let mut tally = Tally::default();
            tally.turn(["AMZN", "MSFT", "GOOG"].map(|ticker| ("get_statement", json!({"ticker": ticker}))), session);
            tally
        },
        program: "\
import asyncio
tickers = [\"AMZN\", \"MSFT\", \"GOOG\"]
for ticker, one in zip(tickers, await asyncio.gather(*(mcp__s__get_statement(ticker=t) for t in tickers))):
    print(ticker, sum(row[\"value\"] for row in one[\"rows\"] if row[\"item\"] == \"revenue\"))
",
        in_sequence: 0,
    },
    Scenario {
        name: "20 engineers' expenses",
        server: "hr",
        inspected: &["mcp__s__list_engineers", "mcp__s__get_expenses"],
        direct: |session| {
            let mut tally = Tally::default();
            let answers = tally.turn([("list_engineers", json!({}))], session);
            let engineers = answers[0]["structuredContent"]["result"].as_array().expect("a list").clone();
            tally.turns += 1;
            for engineer in engineers {
                let arguments = json!({"employee_id": engineer["id"], "from": "2025-01-01", "to": "2025-03-31"});
                tally.call("get_expenses", &arguments, session);
            }
            tally
        },
        program: "\
import asyncio
engineers = await mcp__s__list_engineers()
found = await asyncio.gather(*(
    mcp__s__get_expenses(employee_id=e[\"id\"], from_=\"2025-01-01\", to=\"2025-03-31\") for e in engineers))
for e, one in zip(engineers, found):
    spent = sum(x[\"amount\"] for x in one[\"expenses\"] if x[\"category\"] == \"travel\" and x[\"status\"] == \"approved\")
    if spent > e[\"travel_budget\"]:
        print(e[\"name\"], round(spent), e[\"travel_budget\"])
",
        in_sequence: 1,
    },
    Scenario {
        name: "issue triage, 60 KB",
        server: "issues",
        inspected: &["mcp__s__list_issues"],
        direct: |session| {
            let mut tally = Tally::default();
            tally.turn([("list_issues", json!({"state": "open"}))], session);
            tally
        },
        program: "\
issues = await mcp__s__list_issues(state=\"open\")
urgent = [i for i in issues if \"bug\" in i[\"labels\"] and i[\"comments\"] > 15]
for i in sorted(urgent, key=lambda i: -i[\"comments\"])[:8]:
    print(i[\"number\"], i[\"comments\"], i[\"title\"])
",
        in_sequence: usize::MAX,
    },
    Scenario {
        name: "page snapshot, 56 KB",
        server: "page",
        inspected: &["mcp__s__snapshot"],
        direct: |session| {
            let mut tally = Tally::default();
            tally.turn([("snapshot", json!({}))], session);
            tally
        },
        program: "\
page = await mcp__s__snapshot()
for line in page.splitlines():
    if \"checkout\" in line or \"Total\" in line:
        print(line.strip())
",
        in_sequence: usize::MAX,
    },
    Scenario {
        name: "table of 500 rows",
        server: "table",
        inspected: &["mcp__s__query"],
        direct: |session| {
            let mut tally = Tally::default();
            tally.turn([("query", json!({"sql": "select * from orders"}))], session);
            tally
        },
        program: "\
from collections import Counter
rows = (await mcp__s__query(sql=\"select * from orders\"))[\"rows\"]
total = Counter()
for row in rows:
    total[row[\"region\"]] += row[\"amount\"]
print({region: round(sum) for region, sum in total.most_common()})
",
        in_sequence: usize::MAX,
    },
    Scenario {
        name: "listing of 12 pages",
        server: "listing",
        inspected: &["mcp__s__list_files"],
        direct: |session| {
            let mut tally = Tally::default();
            let mut cursor = json!(0);
            while !cursor.is_null() {
                let answers = tally.turn([("list_files", json!({"cursor": cursor}))], session);
                cursor = answers[0]["structuredContent"]["next"].clone();
            }
            tally
        },
        program: "\
cursor, large = 0, []
while cursor is not None:
    page = await mcp__s__list_files(cursor=cursor)
    large += [f for f in page[\"files\"] if f[\"bytes\"] > 990_000]
    cursor = page[\"next\"]
print(len(large), [f[\"path\"] for f in large[:5]])
",
        in_sequence: usize::MAX,
    },
    Scenario {
        name: "one call",
        server: "weather",
        inspected: &["mcp__s__get_weather"],
        direct: |session| {
            let mut tally = Tally::default();
            tally.turn([("get_weather", json!({"city": "Oslo"}))], session);
            tally
        },
        program: "print(await mcp__s__get_weather(city=\"Oslo\"))",
        in_sequence: usize::MAX,
    },
    Scenario {
        name: "two small calls",
        server: "weather",
        inspected: &["mcp__s__get_weather"],
        direct: |session| {
            let mut tally = Tally::default();
            tally.turn(["Oslo", "Rome"].map(|city| ("get_weather", json!({"city": city}))), session);
            tally
        },
        program: "for city in (\"Oslo\", \"Rome\"):\n    print(await mcp__s__get_weather(city=city))",
        in_sequence: usize::MAX,
    },
];

/// A server's command line. `hr` is the example; the others are this very bench.
fn server(name: &str) -> Vec<String> {
    if name == "hr" {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/finance_server.py");
        return ["python3", example, "hr"].map(str::to_owned).into();
    }
    let own = std::env::current_exe().expect("our own path");
    vec![
        own.to_str().expect("a path in UTF-8").to_owned(),
        "--serve".to_owned(),
        name.to_owned(),
    ]
}

fn server_entry(name: &str) -> Value {
    let command = server(name);
    json!({"name": "s", "command": command[0], "args": command[1..]})
}

/// A tool's definition and its answer.
fn tool_of(name: &str, arguments: &Value) -> (Value, Value) {
    let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
    let (text, number) = (json!({"type": "string"}), json!({"type": "number"}));
    let structured = |value: Value| json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value});
    let words = [
        "alpha", "bravo", "carbon", "delta", "ember", "falcon", "granite", "harbour",
    ];
    let word = |n: usize| words[n % words.len()];
    match name {
        "filings" => {
            let row = object(
                json!({"item": text, "period": text, "segment": text, "value": number}),
                &["item", "period", "value"],
            );
            let tool = json!({"name": "get_statement", "description": "A company's income statement, line by line.",
                "inputSchema": object(json!({"ticker": text}), &["ticker"]),
                "outputSchema": object(json!({"ticker": text, "rows": {"type": "array", "items": row}}), &["ticker", "rows"])});
            let rows: Vec<Value> = (0..620)
                .map(|n| {
                    let item = ["revenue", "cost_of_revenue", "operating_expense", "tax"][n % 4];
                    json!({"item": item, "period": format!("20{:02}-Q{}", 10 + n / 40, n % 4 + 1),
                        "segment": format!("{} {}", word(n), word(n / 8)), "value": 1_000_000 + n * 7919})
                })
                .collect();
            (
                tool,
                structured(json!({"ticker": arguments["ticker"], "rows": rows})),
            )
        }
        "issues" => {
            let tool = json!({"name": "list_issues", "description": "Lists the issues of the repository.",
                "inputSchema": object(json!({"state": {"enum": ["open", "closed"]}}), &[])});
            let issues: Vec<Value> = (0..120)
                .map(|n| {
                    let body: Vec<&str> = (0..56).map(|m| word(n * 3 + m * m)).collect();
                    json!({"number": 1000 + n, "title": format!("{} fails when {} is {}", word(n), word(n + 3), word(n / 2)),
                        "labels": [(["bug", "question", "docs"][n % 3])], "comments": (n * 37) % 31,
                        "author": format!("user-{}", n % 17), "body": body.join(" ")})
                })
                .collect();
            // As many servers do it: a list, as text.
            (
                tool,
                json!({"content": [{"type": "text", "text": Value::from(issues).to_string()}]}),
            )
        }
        "page" => {
            let tool = json!({"name": "snapshot", "description": "The accessibility tree of the current page.",
                "inputSchema": object(json!({}), &[])});
            let lines: Vec<String> = (0..1_090)
                .map(|n| {
                    format!(
                        "    - listitem [ref=e{n}]: link \"{} {} {}\"",
                        word(n),
                        word(n / 3),
                        n
                    )
                })
                .chain([
                    "  - text: Total $ 1,204.00".to_owned(),
                    "  - button \"checkout\" [ref=e1091]".to_owned(),
                ])
                .collect();
            (
                tool,
                json!({"content": [{"type": "text", "text": lines.join("\n")}]}),
            )
        }
        "table" => {
            let row = object(
                json!({"id": number, "region": text, "customer": text, "day": text, "amount": number}),
                &["id", "region", "amount"],
            );
            let tool = json!({"name": "query", "description": "Runs a query on the orders database.",
                "inputSchema": object(json!({"sql": text}), &["sql"]),
                "outputSchema": object(json!({"rows": {"type": "array", "items": row}}), &["rows"])});
            let rows: Vec<Value> = (0..500)
                .map(|n| {
                    json!({"id": n, "region": (["north", "south", "east", "west"][n % 4]), "customer": format!("{} and {} ltd", word(n), word(n / 5)),
                        "day": format!("2025-{:02}-{:02}", n % 12 + 1, n % 28 + 1), "amount": (n * 7_919 % 100_000) as f64 / 100.0})
                })
                .collect();
            (tool, structured(json!({"rows": rows})))
        }
        "listing" => {
            let file = object(
                json!({"path": text, "bytes": number, "modified": text}),
                &["path", "bytes"],
            );
            let next = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
            let tool = json!({"name": "list_files", "description": "A page of the files in the bucket.",
                "inputSchema": object(json!({"cursor": {"type": "integer", "default": 0}}), &[]),
                "outputSchema": object(json!({"files": {"type": "array", "items": file}, "next": next}), &["files", "next"])});
            let page = arguments["cursor"].as_u64().unwrap_or(0) as usize;
            let files: Vec<Value> = (page * 100..page * 100 + 100)
                .map(|n| {
                    json!({"path": format!("{}/{}/{n:05}.parquet", word(n), word(n / 7)), "bytes": n * 104_729 % 1_000_000,
                        "modified": format!("2025-{:02}-{:02}T00:00:00Z", n % 12 + 1, n % 28 + 1)})
                })
                .collect();
            let next = (page < 11).then_some(page + 1);
            (tool, structured(json!({"files": files, "next": next})))
        }
        _ => {
            let tool = json!({"name": "get_weather", "description": "The weather in a city now.",
                "inputSchema": object(json!({"city": text}), &["city"])});
            let weather = json!({"city": arguments["city"], "celsius": 11.5, "sky": "cloudy", "wind_kmh": 14});
            (
                tool,
                json!({"content": [{"type": "text", "text": weather.to_string()}]}),
            )
        }
    }
}

/// An MCP server of one tool, over stdio.
fn serve(name: &str) {
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let message: Value = serde_json::from_str(&line.expect("text")).expect("JSON lines");
        let Some(id) = message.get("id") else {
            continue;
        };
        let params = &message["params"];
        let result = match message["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1"}})
            }
            Some("tools/list") => json!({"tools": [tool_of(name, &Value::Null).0]}),
            Some("tools/call") => tool_of(name, &params["arguments"]).1,
            _ => json!({}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        output
            .write_all(format!("{answer}\n").as_bytes())
            .expect("the client reads");
        output.flush().expect("the client reads");
    }
}

/// A client's end of a server's pipes.
struct Session {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Session {
    fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the process starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let mut session = Self {
            process,
            input,
            output,
            next: 0,
        };
        // As the client that shows a model the texts alone (contract S7).
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "claude-code", "version": "1"}});
        session.request("initialize", params);
        session.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    fn write(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("it is open");
        input
            .write_all(format!("{message}\n").as_bytes())
            .expect("the other end reads");
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            self.output
                .read_line(&mut line)
                .expect("the other end writes");
            let mut answer: Value = serde_json::from_str(&line).expect("JSON lines");
            if answer["id"] == id {
                return answer["result"].take();
            }
        }
    }

    /// The size of what the model is told of the tools.
    fn definitions(&mut self) -> usize {
        self.request("tools/list", json!({}))["tools"]
            .to_string()
            .len()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}
