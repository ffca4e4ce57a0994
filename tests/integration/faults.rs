//! Every way to misbehave that the mock servers know is met by a test that says what ptc-mcp does
//! about it.

use std::path::Path;

use mock_servers::fault::FAULTS;

/// Files that place faults without asserting what each of them does.
const NO_WITNESSES: [&str; 2] = ["faults.rs", "chaos.rs"];

fn camel_case(name: &str) -> String {
    name.split('_')
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect()
}

/// Whether a test says this fault: `Fault::CutBody(…)`, `Fault::hang()`, `Fault::status_with(…)`.
fn is_said(name: &str, sources: &str) -> bool {
    let by_hand = format!("Fault::{}(", camel_case(name));
    let built = [format!("Fault::{name}("), format!("Fault::{name}_")];
    sources.contains(&by_hand) || built.iter().any(|call| sources.contains(call))
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "the list is for the one who runs the test"
)]
fn every_fault_kind_is_met_by_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration");
    let sources: String = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter(|file| !NO_WITNESSES.iter().any(|name| file.file_name() == *name))
        .map(|file| std::fs::read_to_string(file.path()).unwrap_or_default())
        .collect();
    let (used, unused): (Vec<&str>, Vec<&str>) =
        FAULTS.iter().partition(|name| is_said(name, &sources));
    println!("met by a test: {}", used.join(" "));
    println!("unused: {}", unused.join(" "));
    assert_eq!(unused, [""; 0], "faults that no test shows ptc-mcp");
}
