//! The child's half on its own, driven over pipes by a host written in Python. Its tests are
//! Python too, and run with nothing installed; `PTC_MCP_TEST_PYTHONS` names further interpreters.

use std::process::Command;

fn run(script: &str) {
    let script = format!("{}/tests/bootstrap/{script}", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("python3")
        .arg(script)
        .output()
        .expect("python3 on PATH");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\nOK"), "tests ran: {said}");
}

// contract: P1 P2 P4 P6 P7 P9 P11
#[test]
fn the_bootstrap_keeps_its_side_of_the_channel() {
    run("test_bootstrap.py");
}

// contract: M3
#[test]
fn the_check_finds_mistakes_and_refuses_no_valid_program() {
    run("test_check.py");
}
