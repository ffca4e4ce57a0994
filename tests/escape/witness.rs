//! The verdict on one attack: it runs it, and asks the host what came of it.
//!
//! A script's own words count in two cases only: when they hold something that it cannot have known,
//! and when they differ between two worlds that it should not have been able to tell apart.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::corpus::{
    Answered, Attack, Bound, Evidence, Expectation, Mode, Planted, ProcessSign, Reached, Secret,
    Thing,
};
use crate::desk::{Desk, Record};
use crate::processes::{self, Seen};
use crate::session::{Answer, Session};
use crate::world::{Site, World};

/// The limits that every session of the corpus is configured with.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub timeout: Duration,
    pub tool_calls: usize,
    pub concurrent_calls: usize,
    pub memory: u64,
    pub scratch: u64,
    pub output: usize,
}

const MIB: u64 = 1 << 20;

/// What the server may take beside a program's limit, and what a measurement may be off.
const SLACK: u64 = 64 * MIB;

/// What the server's own memory may grow by, whatever a program sends it: two of the longest frames
/// and their parsed form.
const SERVER_GROWTH: u64 = 96 * MIB;

/// What the refused calls may add to an answer: a thousand (contract B1), in the structured content
/// and in the metadata (S6, S7), each with its name, its arguments and its error cut.
const MAX_RECORD: u64 = 1000 * 2 * 1024;

const MAX_FILES: usize = 4200;
const MAX_THREADS: usize = 64;
const MAX_DESCRIPTORS: usize = 256;

/// Beyond the time limit: killing, reaping and removing on a machine with other work.
const LATENESS: Duration = Duration::from_secs(5);

/// How long a killed process may still be in the table.
const DYING: Duration = Duration::from_secs(2);

/// In how many pairs of worlds an expected difference is looked for. One is hidden in about every
/// seventh, while other programs start and end.
const WORLDS: usize = 10;

/// How long a call may be on its way to the desk when nobody is left who could make another one.
const UNDER_WAY: Duration = Duration::from_millis(500);

/// The channel: one pipe for each direction, in every mode.
const OWN_PIPES: usize = 2;
const OWN_DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// What only this session's host knows, by kind.
pub type Facts = BTreeMap<Secret, Vec<String>>;

pub struct Court<'a> {
    pub session: &'a Session,
    pub desk: &'a Desk,
    pub site: &'a Site,
    pub facts: &'a Facts,
    pub limits: Limits,
    pub mode: Mode,
}

/// What the host found.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With what the program came to, for whoever wonders why.
    Contained(String),
    Escaped(String),
    /// This host has no such secret, or shows no such thing.
    NoWitness(String),
    /// Not an answer to the attack's question: the server broke a promise of its own.
    Fault(String),
}

impl Court<'_> {
    /// A difference can be hidden by what else happens on the host: one process more here, one less
    /// there. So one that is expected and not seen is looked for in further worlds. The other way
    /// round there is no second try: two runs that differ in nothing but what must not be seen have
    /// no right to a single different word, and a hole that lets through now and then is a hole.
    pub fn try_attack(&self, attack: &Attack) -> Verdict {
        let one = || self.trial(attack).unwrap_or_else(Verdict::Fault);
        let hidden = |verdict: &Verdict| {
            matches!(attack.header.evidence, Evidence::Difference(_))
                && attack.header.expect[&self.mode] == Expectation::Escapes
                && matches!(verdict, Verdict::Contained(_))
        };
        let mut verdict = one();
        for _ in 1..WORLDS {
            if !hidden(&verdict) {
                break;
            }
            verdict = one();
        }
        verdict
    }

    fn trial(&self, attack: &Attack) -> Result<Verdict, String> {
        let evidence = &attack.header.evidence;
        let needs_table = matches!(
            evidence,
            Evidence::Process(_)
                | Evidence::Object(_)
                | Evidence::State(_)
                | Evidence::Bound(Bound::ScratchBytes | Bound::ScratchFiles)
                | Evidence::Bound(Bound::Threads | Bound::Descriptors)
        );
        if needs_table && !processes::VISIBLE {
            return Ok(Verdict::NoWitness(
                "this platform shows no process from outside".to_owned(),
            ));
        }
        let mut world = World::plant(self.site, &attack.code);
        let code = world.fill(&attack.code);
        let verdict = match evidence {
            Evidence::Difference(thing) => self.compare(&mut world, &code, *thing)?,
            Evidence::Bound(Bound::Memory | Bound::ServerMemory) => self.measure(attack, &code)?,
            evidence => {
                let answer = self.session.execute(&code)?;
                if *evidence == Evidence::Reached(Reached::AfterTheEnd) {
                    remaining(&world, |_| ());
                    std::thread::sleep(UNDER_WAY);
                }
                let record = self.desk.record(&world.marker);
                self.judge(evidence, &mut world, &answer, &record)
            }
        };
        self.after(evidence, &world, verdict)
    }

    fn judge(
        &self,
        evidence: &Evidence,
        world: &mut World,
        answer: &Answer,
        record: &Record,
    ) -> Verdict {
        let mut seen = record.looks.iter().flatten();
        let found = match evidence {
            Evidence::Secret(secret) => return self.secret(*secret, world, answer),
            Evidence::Change(planted) => match planted {
                Planted::Files => world.changed_files(),
                Planted::Interpreter => world.changed_stdlib(),
                Planted::Devices => world.changed_devices(),
                Planted::Ipc => world.ipc_objects(),
                Planted::Keys => world.keys(),
                Planted::Cgroups => world.cgroup(),
                Planted::Victim => world.changed_victim(),
            },
            Evidence::Contact => world.contact().map(str::to_owned),
            Evidence::Process(ProcessSign::Second) => record
                .looks
                .iter()
                .find(|look| look.len() > 1)
                .map(|look| format!("{} processes held the marker at once", look.len())),
            Evidence::Process(ProcessSign::Image) => seen
                .find(|process| process.command.contains(&world.image))
                .map(|process| format!("another image ran: {}", short(&process.command))),
            Evidence::Process(ProcessSign::Survivor) => {
                // The answer does not wait until the program itself is reaped.
                let left = remaining(world, |_| ());
                left.iter().for_each(|process| processes::kill(process.pid));
                left.first()
                    .map(|process| format!("process {} outlived the answer", process.pid))
            }
            Evidence::Object(prefix) => seen
                .find_map(|process| object(&process.descriptors, prefix, &world.marker))
                .map(|link| format!("the program held {link}")),
            Evidence::State(key) if key == "scratch/devices" => seen
                .find(|process| process.scratch.devices > 0)
                .map(|_| "a device node lies in the scratch directory".to_owned()),
            Evidence::State(key) => {
                let values: Vec<&str> = seen
                    .map(|process| process.state.get(key).map_or("nothing", String::as_str))
                    .collect();
                let changed = values.windows(2).find(|pair| pair[0] != pair[1]);
                changed.map(|pair| {
                    format!(
                        "{key} changed from {} to {}",
                        short(pair[0]),
                        short(pair[1])
                    )
                })
            }
            Evidence::Reached(reached) => self.reached(*reached, record),
            Evidence::Answered(Answered::Success) => {
                (!answer.is_error).then(|| "the run counts as successful".to_owned())
            }
            Evidence::Answered(Answered::Failure) => answer
                .is_error
                .then(|| format!("the run counts as failed: {}", short(&answer.text))),
            Evidence::Answered(Answered::Word) => answer
                .whole
                .contains(&world.forbidden)
                .then(|| format!("it answered: {}", short(&answer.text))),
            Evidence::Bound(bound) => self.exceeded(*bound, answer, record),
            Evidence::Works => {
                let worked = !answer.is_error && answer.text.contains(&world.forbidden);
                return if worked {
                    Verdict::Escaped("works".to_owned())
                } else {
                    Verdict::Fault(format!(
                        "it does not work: {}",
                        answer.text.chars().take(1500).collect::<String>()
                    ))
                };
            }
            Evidence::Difference(_) => unreachable!("compared in two worlds"),
        };
        found.map_or_else(|| Verdict::Contained(short(&answer.text)), Verdict::Escaped)
    }

    fn secret(&self, secret: Secret, world: &World, answer: &Answer) -> Verdict {
        let own = |word: &String| vec![word.clone()];
        let needles = match secret {
            Secret::Canary => own(&world.secret),
            Secret::Name => own(&world.name_secret),
            Secret::Victim => own(&world.victim_secret),
            secret => match self.facts.get(&secret) {
                Some(needles) if !needles.is_empty() => needles.clone(),
                _ => {
                    return Verdict::NoWitness(format!(
                        "this host has nothing to tell for {secret:?}"
                    ));
                }
            },
        };
        // A name as short as "vm" stands in many a text: such facts must be a line of their own.
        let whole_line = matches!(
            secret,
            Secret::HostName
                | Secret::UserId
                | Secret::Interface
                | Secret::RootNames
                | Secret::Address
        );
        let found = needles.iter().find(|needle| match whole_line {
            true => answer
                .text
                .lines()
                .any(|line| line.trim() == needle.as_str()),
            false => answer.whole.contains(needle.as_str()),
        });
        match found {
            Some(needle) => Verdict::Escaped(format!("it told {secret:?}: {needle}")),
            None => Verdict::Contained(short(&answer.text)),
        }
    }

    fn reached(&self, reached: Reached, record: &Record) -> Option<String> {
        let calls = &record.calls;
        match reached {
            Reached::Budget => (calls.len() > self.limits.tool_calls).then(|| {
                format!(
                    "{} calls reached the server, {} are allowed",
                    calls.len(),
                    self.limits.tool_calls
                )
            }),
            Reached::Concurrency => {
                let at_once = |moment: Instant| {
                    calls
                        .iter()
                        .filter(|c| c.from <= moment && moment < c.to)
                        .count()
                };
                let most = calls
                    .iter()
                    .map(|call| at_once(call.from))
                    .max()
                    .unwrap_or(0);
                (most > self.limits.concurrent_calls)
                    .then(|| format!("{most} calls were under way at once"))
            }
            Reached::Blocked => calls
                .iter()
                .any(|call| call.tool == "hidden")
                .then(|| "a blocked tool was called".to_owned()),
            // Such a program calls nothing before its end.
            Reached::AfterTheEnd => {
                (!calls.is_empty()).then(|| "a call came from beyond the end".to_owned())
            }
        }
    }

    fn exceeded(&self, bound: Bound, answer: &Answer, record: &Record) -> Option<String> {
        let seen = || record.looks.iter().flatten();
        let (what, most, limit) = match bound {
            Bound::ScratchBytes => {
                let most = seen()
                    .map(|process| process.scratch.bytes)
                    .max()
                    .unwrap_or(0);
                (
                    "bytes in the scratch directory",
                    most,
                    self.limits.scratch + MIB,
                )
            }
            Bound::ScratchFiles => {
                let most = seen()
                    .map(|process| process.scratch.files)
                    .max()
                    .unwrap_or(0);
                (
                    "files in the scratch directory",
                    most as u64,
                    MAX_FILES as u64,
                )
            }
            Bound::Threads => (
                "threads",
                seen().map(|process| process.threads).max().unwrap_or(0) as u64,
                MAX_THREADS as u64,
            ),
            Bound::Descriptors => {
                let most = seen()
                    .map(|process| process.descriptors.len())
                    .max()
                    .unwrap_or(0);
                ("open files", most as u64, MAX_DESCRIPTORS as u64)
            }
            Bound::Output => (
                "bytes of answer",
                answer.whole.len() as u64,
                8 * self.limits.output as u64,
            ),
            Bound::Record => (
                "bytes of answer",
                answer.whole.len() as u64,
                8 * self.limits.output as u64 + MAX_RECORD,
            ),
            Bound::Time => {
                let limit = self.limits.timeout + LATENESS;
                (
                    "milliseconds",
                    answer.elapsed.as_millis() as u64,
                    limit.as_millis() as u64,
                )
            }
            Bound::Memory | Bound::ServerMemory => unreachable!("measured while it runs"),
        };
        (most > limit).then(|| format!("{most} {what}, {limit} are the most"))
    }

    /// Runs the same text while the thing is there and while it is not.
    fn compare(&self, world: &mut World, code: &str, thing: Thing) -> Result<Verdict, String> {
        world.arrange(thing, true);
        let with = self.session.execute(code)?;
        world.arrange(thing, false);
        let without = self.session.execute(code)?;
        let told = (with.is_error, &with.text) != (without.is_error, &without.text);
        Ok(if told {
            let (there, gone) = (short(&with.text), short(&without.text));
            Verdict::Escaped(format!("it said {there:?} with it and {gone:?} without"))
        } else {
            Verdict::Contained(short(&without.text))
        })
    }

    /// Watches the host's memory while the program runs. Something else on the host can be what made
    /// its kernel hold more, so what nobody expected counts if two more runs confirm it.
    fn measure(&self, attack: &Attack, code: &str) -> Result<Verdict, String> {
        let mut found = None;
        for _ in 0..3 {
            let (growth, taken) = self.peaks(code)?;
            let (what, most, limit) = match attack.header.evidence {
                // The tool server's memory is the host's too; it is not what such an attack is about.
                Evidence::Bound(Bound::ServerMemory) => {
                    ("the server's memory grew by", growth, SERVER_GROWTH)
                }
                _ => (
                    "the program, and the kernel for it, held",
                    taken,
                    self.limits.memory + SLACK,
                ),
            };
            found = (most > limit)
                .then(|| format!("{what} {} MiB, {} are the most", most / MIB, limit / MIB));
            if found.is_some() == (attack.header.expect[&self.mode] == Expectation::Escapes) {
                break;
            }
        }
        Ok(found.map_or_else(|| Verdict::Contained(String::new()), Verdict::Escaped))
    }

    fn peaks(&self, code: &str) -> Result<(u64, u64), String> {
        let server = self.session.pid;
        let (resident, below) = (
            processes::resident(server),
            processes::resident_below(server),
        );
        let before = processes::held_by_kernel();
        let (growth, taken, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    growth.fetch_max(
                        processes::resident(server).saturating_sub(resident),
                        Ordering::Relaxed,
                    );
                    let own = processes::resident_below(server).saturating_sub(below);
                    let kernels = before.zip(processes::held_by_kernel());
                    let kernels = kernels.map_or(0, |(before, now)| now.saturating_sub(before));
                    taken.fetch_max(own + kernels, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let answer = self.session.execute(code);
            over.store(true, Ordering::Relaxed);
            answer
        })?;
        Ok((growth.into_inner(), taken.into_inner()))
    }

    /// What must be true after every run, whatever the attack was about.
    fn after(
        &self,
        evidence: &Evidence,
        world: &World,
        verdict: Verdict,
    ) -> Result<Verdict, String> {
        let left = remaining(world, |process| {
            // Unconfined, a process that detached itself is out of the server's reach (contract B6).
            if self.mode == Mode::None {
                processes::kill(process.pid);
            }
        });
        if let Some(process) = left.first() {
            return Err(format!(
                "left in the process table: {}",
                short(&process.command)
            ));
        }
        if matches!(evidence, Evidence::Bound(_)) {
            let next = self.session.execute("print('served')")?;
            if !next.text.contains("served") {
                return Err(format!(
                    "the next program did not run: {}",
                    short(&next.text)
                ));
            }
        }
        Ok(verdict)
    }
}

/// Who still holds the marker when a killed process has had time to leave the table.
fn remaining(world: &World, meanwhile: impl Fn(&Seen)) -> Vec<Seen> {
    let deadline = Instant::now() + DYING;
    loop {
        let left = processes::holding(&world.marker);
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        left.iter().for_each(&meanwhile);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn object<'a>(links: &'a [String], prefix: &str, marker: &str) -> Option<&'a String> {
    let mut pipes = 0;
    links.iter().find(|link| match prefix {
        "foreign" => {
            pipes += usize::from(link.starts_with("pipe:"));
            // From outside, a root of its own is part of the link.
            let own = link.ends_with("/dev/null") || link.contains(marker);
            !own && (!link.starts_with("pipe:") || pipes > OWN_PIPES)
        }
        "device" => {
            link.starts_with("/dev/")
                && !OWN_DEVICES.contains(&link.as_str())
                && !link.starts_with("/dev/shm/")
        }
        prefix => link.starts_with(&prefix.replace("@TOKEN@", marker)),
    })
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(160).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
