//! What the wall adds to the start of an interpreter.
//!
//! All sides run the same interpreter with the same arguments and the same compiled half of the channel,
//! and are timed from just before the spawn to the first byte of that half's first frame. The bare
//! side is the interpreter alone, with three pipes and an empty environment; the others go through
//! `Sandbox::spawn`, launcher and all, as a program does that finds no child ready. Whatever Python
//! itself takes is therefore on every side, and the difference is the launcher's and the wall's.
//! Rounds alternate; what a run costs after its first frame (killing and reaping) is not counted.
//!
//! The launcher is the bench's own binary, into which the whole product is linked, since executing a
//! large binary takes longer than a small one.
//!
//! `cargo bench --bench launch`; `ROUNDS` in the environment changes the size of a run. On a machine
//! with other work every wait for a processor counts as the wall's: `chrt --fifo 10 cargo bench …`
//! puts all sides before that work. Without `--bench`, which only `cargo bench` gives, a few rounds
//! run and no time is judged.

#![allow(clippy::disallowed_methods, reason = "a bench starts what it measures")]

use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use ptc_mcp::channel::LOADER;
use ptc_mcp::config::{Config, SandboxMode};
use ptc_mcp::sandbox::{Sandbox, launcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How much later than bare the first frame may come, in milliseconds.
const BAR: f64 = 5.0;

/// Thrown away: files come into the page cache.
const WARM_UP: usize = 3;

fn main() -> ExitCode {
    // The sandbox executes its own binary as the launcher, which is this one.
    let mut arguments = std::env::args_os().skip(1);
    match arguments
        .next()
        .as_deref()
        .and_then(std::ffi::OsStr::to_str)
    {
        Some(launcher::ARGUMENT) => return launcher::main(arguments.collect()),
        #[cfg(target_os = "linux")]
        Some(ptc_mcp::sandbox::linux::ARGUMENT) => {
            return ptc_mcp::sandbox::linux::main(arguments.collect());
        }
        Some("--product") => return ptc_mcp::cli::main(),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(measure())
}

async fn measure() -> ExitCode {
    let judged = std::env::args().any(|argument| argument == "--bench");
    let rounds = std::env::var("ROUNDS").ok();
    let rounds: Option<usize> = rounds.and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(if judged { 40 } else { 2 });
    let sandbox = |mode| {
        let mut execution = Config::default().execution;
        execution.sandbox = mode;
        Sandbox::new(execution)
    };
    let unconfined = sandbox(SandboxMode::None);
    let confined = sandbox(SandboxMode::Auto);
    let examination = confined.examine().await;
    let (Some(interpreter), Some(backend), None) = (
        examination.interpreter,
        examination.backend,
        examination.refusal,
    ) else {
        say("no sandbox on this host, and so nothing to measure");
        return ExitCode::FAILURE;
    };
    let child = unconfined.spawn().await.expect("a child starts");
    let half = child.preamble().to_vec();
    child.end().await;
    let (mut floor, mut launched, mut walled) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds + WARM_UP {
        let times = [
            bare(&interpreter.executable, &half).await,
            through(&unconfined).await,
            through(&confined).await,
        ];
        if round >= WARM_UP {
            for (side, time) in [&mut floor, &mut launched, &mut walled]
                .into_iter()
                .zip(times)
            {
                side.push(time.as_secs_f64() * 1e3);
            }
        }
    }
    report("bare interpreter", &floor, &floor);
    report("launcher, no wall", &launched, &floor);
    report(backend, &walled, &floor);
    let over = quantile(&walled, 0.5) - quantile(&floor, 0.5);
    say(&format!(
        "{backend} over bare: {over:+.2} ms (bar: {BAR:+.1})"
    ));
    if judged && over > BAR {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

async fn bare(executable: &std::path::Path, half: &[u8]) -> Duration {
    let from = Instant::now();
    let mut child = tokio::process::Command::new(executable)
        .args(["-I", "-S", "-B", "-X", "utf8", "-c", LOADER])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the interpreter starts");
    let stdin = child.stdin.as_mut().expect("it is piped");
    stdin.write_all(half).await.expect("it reads");
    let stdout = child.stdout.as_mut().expect("it is piped");
    stdout.read_u8().await.expect("a first frame");
    let took = from.elapsed();
    child.kill().await.expect("it is reaped");
    took
}

async fn through(sandbox: &Sandbox) -> Duration {
    let from = Instant::now();
    let mut child = sandbox.spawn().await.expect("a child starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let half = child.preamble();
    stdin.write_all(half).await.expect("it reads");
    let stdout = child.stdout.as_mut().expect("it is piped");
    stdout.read_u8().await.expect("a first frame");
    let took = from.elapsed();
    child.end().await;
    took
}

fn report(side: &str, times: &[f64], floor: &[f64]) {
    let line = |name, part| {
        let (time, floor) = (quantile(times, part), quantile(floor, part));
        format!("{name} {time:.2} ({:+.2})", time - floor)
    };
    say(&format!(
        "{side:18} ms to the first frame (over bare): {}, {}, {}",
        line("least", 0.0),
        line("p10", 0.1),
        line("median", 0.5)
    ));
}

fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(part * (sorted.len() - 1) as f64).round() as usize]
}

#[expect(clippy::print_stdout, reason = "a bench's own output")]
fn say(line: &str) {
    println!("{line}");
}
