//! What ptc-mcp costs, row by row, as ratios to floors that are measured in the same run.
//!
//! `cargo bench --bench end_to_end`; names of rows after `--` choose among them, `growth` among
//! them, and `ROUNDS` in the environment changes the size of a run. Exit status 1 when a row is over
//! its bar. Without `--bench`, which only `cargo bench` gives, every row runs once and small: its
//! answers are checked and no time is judged. `benches/README.md` defines rows and floors.

#![allow(clippy::disallowed_methods, reason = "a bench starts what it measures")]

mod client;
mod floors;
mod growth;
#[cfg(target_os = "linux")]
mod memory;
mod rows;
mod server;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use rows::{Bar, ROWS, Sample};

fn main() -> ExitCode {
    if server::served() {
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let size = if arguments.iter().any(|argument| argument == "--bench") {
        Size::Whole
    } else {
        Size::Smoke
    };
    let names: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let chosen = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));
    let cache = tempfile::tempdir().expect("a folder");
    CACHE.set(cache.path().to_owned()).expect("it is set once");
    // What a first start ever finds out is known from here on.
    client::Session::warm(&client::config(3, serde_json::json!({})));

    let rounds = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok());
    let rounds = size.of(1, rounds.unwrap_or(5));
    let chosen_rows: Vec<_> = ROWS.iter().filter(|row| chosen(row.name)).collect();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); chosen_rows.len()];
    for _ in 0..rounds {
        for (row, samples) in chosen_rows.iter().zip(&mut samples) {
            samples.push((row.measure)(size));
        }
    }
    let mut over = false;
    if !chosen_rows.is_empty() {
        say(&format!(
            "{:<52} {:>10} {:>10} {:>7} {:>10}",
            "row", "ours", "floor", "ratio", "bar"
        ));
    }
    for (row, samples) in chosen_rows.iter().zip(&samples) {
        over |= report(row, samples, size);
    }
    if chosen("growth") {
        growth::measure(size);
    }
    match (over, size) {
        (true, Size::Whole) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// How much is measured.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    Smoke,
    Whole,
}

impl Size {
    fn of(self, smoke: usize, whole: usize) -> usize {
        match self {
            Self::Smoke => smoke,
            Self::Whole => whole,
        }
    }
}

/// Prints a row, and tells whether it is over its bar.
fn report(row: &rows::Row, samples: &[Sample], size: Size) -> bool {
    let ours = median(samples.iter().map(|sample| sample.ours));
    let floor = median(samples.iter().filter_map(|sample| sample.floor));
    // Round by round: what else the machine does is the same for both sides of a round.
    let ratio = median(
        samples
            .iter()
            .filter_map(|sample| Some(sample.ours / sample.floor?)),
    );
    let (over, bar) = match row.bar {
        Bar::Ratio(most) => (ratio > most, format!("{most} x")),
        Bar::Most(most) => (ours > most, row.unit.show(most)),
        Bar::More(most) => (ours - floor > most, format!("+{}", row.unit.show(most))),
    };
    let shown = |value: f64| {
        if value.is_nan() {
            "-".to_owned()
        } else {
            row.unit.show(value)
        }
    };
    let verdict = match (size, over) {
        (Size::Smoke, _) => "not judged",
        (Size::Whole, true) => "OVER",
        (Size::Whole, false) => "ok",
    };
    let ratio = if ratio.is_nan() {
        "-".to_owned()
    } else {
        format!("{ratio:.2}")
    };
    say(&format!(
        "{:<52} {:>10} {:>10} {ratio:>7} {bar:>10}  {verdict}",
        row.name,
        shown(ours),
        shown(floor),
    ));
    over
}

/// NaN of nothing.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        None => f64::NAN,
        Some(upper) if sorted.len() % 2 == 1 => *upper,
        Some(upper) => (sorted[middle - 1] + upper) / 2.0,
    }
}

#[expect(clippy::print_stdout, reason = "a bench's own output")]
fn say(line: &str) {
    println!("{line}");
}

/// A cache of this run's own, so that it is as warm as the run has made it.
static CACHE: OnceLock<PathBuf> = OnceLock::new();

fn cache() -> &'static Path {
    CACHE.get().expect("it is set before anything is started")
}
