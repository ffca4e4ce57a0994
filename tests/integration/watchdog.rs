//! The watchdog as the process that it is.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use ptc_mcp::watchdog;

fn sleeper() -> Child {
    Command::new("sleep")
        .arg("1000")
        .process_group(0)
        .spawn()
        .unwrap()
}

// contract: S12
#[test]
fn what_is_under_guard_dies_when_the_lifeline_breaks() {
    let (mut guarded, mut released) = (sleeper(), sleeper());
    let mut dog = Command::new(env!("CARGO_BIN_EXE_ptc-mcp"))
        .arg(watchdog::ARGUMENT)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lifeline = dog.stdin.take().unwrap();
    let (doomed, spared) = (guarded.id(), released.id());
    write!(lifeline, "+{doomed}\n+{spared}\n-{spared}\n").unwrap();
    drop(lifeline);
    assert!(dog.wait().unwrap().success());
    assert_eq!(guarded.wait().unwrap().signal(), Some(9));
    assert!(released.try_wait().unwrap().is_none());
    released.kill().unwrap();
    released.wait().unwrap();
}
