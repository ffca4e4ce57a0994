//! `execution.pool`: children that stand before their programs come. That a ready child keeps every
//! other promise is shown by the rest of this folder and by `escape-corpus/`, which run on them.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mock_servers::{At, Fault, Scenario};
use serde_json::json;

use crate::support::{PATIENCE, Ptc, Session, copy_executable};

const WHO: &str = "import os\nprint(os.getpid())";

/// The ready children's process ids; without a wall each is a process of the host's.
fn ready(session: &Session) -> Vec<String> {
    let programs = session.programs();
    let ids = programs.iter().filter_map(|line| line.split(' ').next());
    ids.map(str::to_owned).collect()
}

fn start(ptc: Ptc) -> Session {
    ptc.env("PTC_MCP_LOG", "debug").start()
}

/// Waits until so many children are there, and `stood` have come to stand since the start.
fn wait_for_ready(session: &Session, count: usize, stood: usize) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ready = ready(session);
        if ready.len() == count && session.log().matches("a child stands").count() >= stood {
            return ready;
        }
        assert!(
            Instant::now() < deadline,
            "{count} ready children are expected: {ready:?}\n{}",
            session.log()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(pid: &str) {
    let killed = Command::new("kill").args(["-9", pid]).status().unwrap();
    assert!(killed.success());
}

// contract: C5 B6 P10
#[test]
fn each_program_gets_a_child_of_its_own_that_stood_before_it_came() {
    let mut session = start(Ptc::new());
    let mut seen = Vec::new();
    for turn in 1..4 {
        let ready = wait_for_ready(&session, 1, turn);
        assert_eq!(session.execute(WHO).output(), ready[0]);
        assert!(!seen.contains(&ready[0]), "{seen:?}");
        seen.extend(ready);
    }
    session.close();
}

// contract: C5
#[test]
fn without_a_pool_nothing_waits() {
    let mut session = Ptc::new().execution("pool", 0).start();
    assert_eq!(session.execute("print(1)").output(), "1");
    session.wait_for_no_program();
    session.close();
}

// contract: C5
#[test]
fn a_program_that_is_cancelled_before_it_begins_leaves_the_pool_as_it_was() {
    let silent = Scenario::new().always(At::Handshake, Fault::hang());
    let mut session = start(Ptc::new().stdio("silent", silent));
    let before = wait_for_ready(&session, 1, 1);
    let waits = session.send_program("await mcp__silent__x()");
    session.wait_for_log("a child is handed out");
    session.notify("notifications/cancelled", json!({"requestId": waits}));
    let after = wait_for_ready(&session, 1, 2);
    assert_ne!(before, after);
    session.close();
}

// contract: C5 B6
#[test]
fn a_child_that_died_while_it_waited_is_neither_handed_out_nor_replaced_at_once() {
    let mut session = start(Ptc::new());
    let dead = wait_for_ready(&session, 1, 1);
    kill(&dead[0]);
    session.wait_for_log("a child ended while it waited for a program");
    wait_for_ready(&session, 0, 1);
    for _ in 0..50 {
        session.request("ping", json!({}));
    }
    assert_eq!(ready(&session), Vec::<String>::new(), "started by itself");
    assert_ne!(session.execute(WHO).output(), dead[0]);
    // And one whose death nobody may have heard of yet.
    let dying = wait_for_ready(&session, 1, 3);
    kill(&dying[0]);
    wait_for_ready(&session, 0, 3);
    assert_ne!(session.execute(WHO).output(), dying[0]);
    session.close();
}

/// A prefix with a copy of the interpreter, whose time of change is ours to set.
fn copied_interpreter(folder: &Path) -> PathBuf {
    let asked = "import os, sys; print(os.path.realpath(sys._base_executable)); print(os.path.dirname(os.__file__))";
    let output = Command::new("python3")
        .args(["-I", "-S", "-c", asked])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (executable, library) = text.trim().split_once('\n').unwrap();
    let (executable, library) = (Path::new(executable), Path::new(library));
    for part in ["bin", "lib"] {
        std::fs::create_dir(folder.join(part)).unwrap();
    }
    let copy = folder.join("bin").join(executable.file_name().unwrap());
    copy_executable(executable, &copy);
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
    symlink(
        library,
        folder.join("lib").join(library.file_name().unwrap()),
    )
    .unwrap();
    copy
}

// contract: C5 B6
#[test]
fn a_child_of_an_interpreter_that_was_replaced_is_not_handed_out() {
    let prefix = tempfile::tempdir().unwrap();
    let python = copied_interpreter(prefix.path());
    let mut session = start(Ptc::new().execution("python", python.to_str().unwrap()));
    let stale = wait_for_ready(&session, 1, 1);
    let replaced = python.with_extension("new");
    copy_executable(&python, &replaced);
    std::fs::rename(&replaced, &python).unwrap();
    assert_ne!(session.execute(WHO).output(), stale[0]);
    let fresh = wait_for_ready(&session, 1, 3);
    assert_eq!(session.execute(WHO).output(), fresh[0]);
    session.close();
}

// contract: C5 B1
#[test]
fn a_burst_of_programs_leaves_more_of_them_ready_for_the_next_up_to_a_bound() {
    let mut session = start(Ptc::new().execution("max_programs", 8));
    wait_for_ready(&session, 1, 1);
    // All of them run at once: each waits until the others have left their mark.
    let marks = session.folder().join("marks");
    std::fs::create_dir(&marks).unwrap();
    let code = format!(
        "import os, time\nopen({:?} + '/' + str(os.getpid()), 'w').close()\nwhile len(os.listdir({:?})) < 6: time.sleep(0.001)",
        marks.to_str().unwrap(),
        marks.to_str().unwrap()
    );
    let sent: Vec<u64> = (0..6).map(|_| session.send_program(&code)).collect();
    for id in sent {
        session.answer(id);
    }
    let four = wait_for_ready(&session, 4, 10);
    assert!(four.contains(&session.execute(WHO).output()));
    // And, once there is nothing to do, no more than were asked for, now and after the next program.
    wait_for_ready(&session, 1, 0);
    let stood = |session: &Session| session.log().matches("a child stands").count();
    let before = stood(&session);
    session.execute("print(1)").output();
    let deadline = Instant::now() + PATIENCE;
    while stood(&session) == before {
        assert!(Instant::now() < deadline, "no further child");
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..50 {
        session.request("ping", json!({}));
    }
    assert_eq!(ready(&session).len(), 1);
    session.close();
}

// contract: S12
#[test]
fn ready_children_end_with_the_server() {
    let session = start(Ptc::new().execution("pool", 3));
    wait_for_ready(&session, 3, 3);
    session.close();

    let mut session = start(Ptc::new());
    wait_for_ready(&session, 1, 1);
    session.signal("KILL");
    session.abandoned();
}

// contract: B5 S12
#[test]
fn what_an_earlier_start_has_kept_is_made_again_when_it_does_not_work() {
    let cache = tempfile::tempdir().unwrap();
    let kept = || -> Vec<PathBuf> {
        let files = std::fs::read_dir(cache.path().join("ptc-mcp")).unwrap();
        let files = files.map(|entry| entry.unwrap().path());
        files
            .filter(|file| {
                file.file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with("half-")
            })
            .collect()
    };
    let run = || {
        let ptc = Ptc::new().env("XDG_CACHE_HOME", cache.path().to_str().unwrap());
        let mut session = ptc.start();
        assert_eq!(session.execute("print(1)").output(), "1");
        session.close();
    };
    run();
    let whole = std::fs::read_to_string(&kept()[0]).unwrap();
    let (key, _) = serde_json::from_str::<(String, String)>(&whole).unwrap();
    // Code that is none, what is no code, and what is no entry.
    for spoilt in [
        json!([key, "AAAA"]).to_string(),
        json!([key, "?"]).to_string(),
        "x".to_owned(),
    ] {
        std::fs::write(&kept()[0], &spoilt).unwrap();
        run();
        assert_eq!(
            std::fs::read_to_string(&kept()[0]).unwrap(),
            whole,
            "{spoilt}"
        );
    }
}
