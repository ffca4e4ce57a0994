//! Runs `escape-corpus/` against the real binary, in every setting that this host can have, and
//! judges each attack by what the host saw of it. What is promised stands in
//! `escape-corpus/README.md`.
//!
//! ```text
//! cargo test --test escape                      everything
//! cargo test --test escape -- network/ fork     only scripts whose name holds one of these
//! cargo test --test escape -- --times           and which scripts took longest
//! PTC_MCP_ESCAPE_SETTINGS=none,chroot           only settings whose name begins so
//! PTC_MCP_ESCAPE_DEATHS=200                     kill each process this often, not twice, and do so even
//!                                               if only some scripts are run
//! PTC_MCP_ESCAPE_DEATHS_MS=100                  and fail if half of the times something is left for
//!                                               longer than this, or ever for longer than the second
//!                                               that contract S12 gives
//! PTC_MCP_ESCAPE_REQUIRE=namespaces             a setting that begins so must not be missing
//! ```
//!
//! | file | owns |
//! | --- | --- |
//! | `corpus.rs` | headers, and what they may say |
//! | `settings.rs` | the table of settings, and starting a server in one |
//! | `session.rs` | one server, many programs at once |
//! | `world.rs` | what is planted for one attack |
//! | `desk.rs` | the tool server and its journal |
//! | `processes.rs` | the process table |
//! | `deaths.rs` | what is left when a process is killed |
//! | `witness.rs` | the verdict |

#![allow(
    clippy::disallowed_methods,
    reason = "a test may start processes wherever it reads best"
)]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod corpus;
mod deaths;
mod desk;
mod processes;
mod session;
mod settings;
mod witness;
mod world;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use corpus::{Attack, Bound, Evidence, Expectation, Mode};
use settings::{Running, SETTINGS, Setting};
use witness::Verdict;

/// A process's end may take this long to reach all that depends on it (contract S12).
const LONGEST_DEATH: Duration = Duration::from_secs(1);

/// Programs at once: more than the processors of a small machine, since many of them wait.
const WORKERS: usize = 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(desk::ARGUMENT) => {
            desk::main(Path::new(&arguments[1]));
            return ExitCode::SUCCESS;
        }
        Some(world::VICTIM) => {
            world::victim();
            return ExitCode::SUCCESS;
        }
        // A test runner that looks for tests finds one, this whole.
        Some("--list") => {
            say("escape_corpus: test");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let wanted: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if let Err(mistake) = corpus::check_reader() {
        say(&format!(
            "headers are not read as they should be: {mistake}"
        ));
        return ExitCode::FAILURE;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("escape-corpus");
    let mut attacks = match corpus::read(&folder) {
        Ok(attacks) => attacks,
        Err(mistakes) => {
            say(&format!(
                "escape-corpus: {} scripts cannot be used\n  {}",
                mistakes.len(),
                mistakes.join("\n  ")
            ));
            return ExitCode::FAILURE;
        }
    };
    let all = attacks.len();
    attacks.retain(|attack| {
        wanted.is_empty()
            || wanted
                .iter()
                .any(|word| attack.name.contains(word.as_str()))
    });
    say(&format!(
        "escape-corpus: {} of {all} scripts",
        attacks.len()
    ));
    if attacks.is_empty() && std::env::var_os("PTC_MCP_ESCAPE_DEATHS").is_none() {
        say("no script has a name like that");
        return ExitCode::FAILURE;
    }
    let chosen = std::env::var("PTC_MCP_ESCAPE_SETTINGS").unwrap_or_default();
    let required = std::env::var("PTC_MCP_ESCAPE_REQUIRE").unwrap_or_default();
    let named = |list: &str, setting: &Setting| {
        list.split(',')
            .any(|name| !name.is_empty() && setting.name.starts_with(name))
    };
    let (mut failures, mut missing) = (0, Vec::new());
    for setting in SETTINGS
        .iter()
        .filter(|setting| chosen.is_empty() || named(&chosen, setting))
    {
        match Running::start(setting) {
            Ok(running) => failures += run(setting, &running, &attacks, all),
            Err(reason) => {
                failures += usize::from(named(&required, setting));
                missing.push(format!("{}: {reason}", setting.name));
            }
        }
    }
    if !missing.is_empty() {
        say(&format!(
            "settings that this host cannot have: {}\n  {}",
            missing.len(),
            missing.join("\n  ")
        ));
    }
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Every attack in one setting. Returns how many did not end as they should.
fn run<'a>(setting: &Setting, running: &Running, attacks: &'a [Attack], all: usize) -> usize {
    let started = Instant::now();
    let outcomes: Mutex<Vec<(&'a Attack, Verdict)>> = Mutex::default();
    let times: Mutex<Vec<(Duration, &'a String)>> = Mutex::default();
    let judge = |attack: &'a Attack| {
        let from = Instant::now();
        let verdict = running.court(&attack.header.evidence).try_attack(attack);
        outcomes.lock().unwrap().push((attack, verdict));
        times.lock().unwrap().push((from.elapsed(), &attack.name));
    };
    // Whose server's memory is measured has that server for itself, one after another; where the
    // host's memory is measured, nothing else runs.
    let of = |bound| {
        attacks
            .iter()
            .filter(move |attack| attack.header.evidence == Evidence::Bound(bound))
    };
    let measured = [Bound::ServerMemory, Bound::Memory].map(Evidence::Bound);
    let others: Vec<&Attack> = attacks
        .iter()
        .filter(|attack| !measured.contains(&attack.header.evidence))
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| of(Bound::ServerMemory).for_each(judge));
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(attack) = others.get(next.fetch_add(1, Ordering::Relaxed)) {
                    judge(attack);
                }
            });
        }
    });
    of(Bound::Memory).for_each(judge);
    if std::env::args().any(|argument| argument == "--times") {
        let mut times = times.into_inner().unwrap();
        times.sort();
        for (time, name) in times.iter().rev().take(40) {
            say(&format!("  {:6} ms  {name}", time.as_millis()));
        }
    }
    let mut outcomes = outcomes.into_inner().unwrap();
    outcomes.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    let mut tally = Tally::default();
    for (attack, verdict) in &outcomes {
        tally.count(setting, attack, verdict);
    }
    let asked = number("PTC_MCP_ESCAPE_DEATHS").is_some();
    if processes::VISIBLE && (asked || attacks.len() == all) {
        match deaths::rehearse(setting, running, rehearsals()) {
            Ok(times) => {
                if let Some(limit) = number("PTC_MCP_ESCAPE_DEATHS_MS").map(Duration::from_millis) {
                    for (killed, left) in &times {
                        let (median, longest) = middle_and_last(left);
                        if median > limit || longest > LONGEST_DEATH {
                            tally.failures.push(format!(
                                "after the death of the {killed:?} something was left for {} ms in the middle, {} ms at most",
                                median.as_millis(),
                                longest.as_millis()
                            ));
                        }
                    }
                }
                tally.rehearsed = Some(times);
            }
            Err(fault) => tally.failures.push(format!("a sudden death: {fault}")),
        }
    }
    if let Err(fault) = running.end() {
        tally.failures.push(format!("the server itself: {fault}"));
    }
    tally.tell(setting, started);
    tally.failures.len()
}

#[derive(Default)]
struct Tally {
    contained: usize,
    escaped: usize,
    works: usize,
    rehearsed: Option<deaths::Times>,
    unproven: Vec<String>,
    failures: Vec<String>,
}

impl Tally {
    fn count(&mut self, setting: &Setting, attack: &Attack, verdict: &Verdict) {
        let Attack { name, header, .. } = attack;
        let expected = header.expect[&setting.mode];
        match (verdict, expected) {
            (Verdict::Fault(fault), _) => self.failures.push(format!("{name}: {fault}")),
            (Verdict::NoWitness(reason), _) => self.unproven.push(format!("{name}: {reason}")),
            (Verdict::Contained(_), Expectation::Contained) => self.contained += 1,
            (Verdict::Escaped(_), Expectation::Escapes) => self.escaped += 1,
            (Verdict::Escaped(_), Expectation::Works) => self.works += 1,
            (Verdict::Escaped(how), Expectation::Contained) => {
                self.failures.push(format!(
                    "{name} ESCAPED: it tries to {}; {how}",
                    header.goal
                ));
            }
            // Unconfined, an attack that does not get through proves nothing of the walls.
            (Verdict::Contained(said), Expectation::Escapes) if setting.mode == Mode::None => {
                match header.needs.iter().find(|need| !need.is_met()) {
                    Some(need) => self
                        .unproven
                        .push(format!("{name}: its control needs {need:?}")),
                    None => self.failures.push(format!(
                        "{name} proves nothing: unconfined, it fails too; it said {said:?}"
                    )),
                }
            }
            (Verdict::Contained(_), Expectation::Escapes) => {
                self.failures.push(format!(
                    "{name} is contained now: take its gap out of the header"
                ));
            }
            (Verdict::Contained(_), Expectation::Works) => {
                unreachable!("controls work or are at fault")
            }
        }
    }

    fn tell(&self, setting: &Setting, started: Instant) {
        let Self {
            contained,
            escaped,
            works,
            rehearsed,
            unproven,
            failures,
        } = self;
        say(&format!(
            "{}: {contained} contained, {escaped} escaped as expected, {works} controls work, {} unproven here, {} FAILED ({:.1}s)",
            setting.name,
            unproven.len(),
            failures.len(),
            started.elapsed().as_secs_f32(),
        ));
        if let Some(times) = rehearsed {
            let each = times.iter().map(|(killed, left)| {
                let (median, longest) = middle_and_last(left);
                let (median, longest) = (median.as_millis(), longest.as_millis());
                format!("{killed:?} {median} ms ({longest} ms)")
            });
            say(&format!(
                "  sudden deaths ({} of each), all gone after, in the middle (at the latest): {}",
                rehearsals(),
                each.collect::<Vec<_>>().join(", ")
            ));
        }
        for line in unproven {
            say(&format!("  unproven  {line}"));
        }
        for line in failures {
            say(&format!("  FAILED    {line}"));
        }
    }
}

/// Of times in order, of which there is one at least.
fn middle_and_last(times: &[Duration]) -> (Duration, Duration) {
    (times[times.len() / 2], times[times.len() - 1])
}

/// How often each process is killed: a few times in every run, more often when somebody asks.
fn rehearsals() -> usize {
    let times = number("PTC_MCP_ESCAPE_DEATHS");
    times.and_then(|times| times.try_into().ok()).unwrap_or(2)
}

/// A variable that holds a number. One that holds anything else is a mistake, not a default.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is {text:?}, not a number")),
    )
}

fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}
