//! The sandbox from outside: the real binary, as root and as an ordinary user, on this kernel.
//!
//! What a program may not do is the business of `escape-corpus/`; here is what has to work, what is
//! refused and how, what the limits hold, and what is left behind.
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the binary is run from here")]
#![expect(clippy::print_stdout, reason = "what cannot be tested here says why")]

mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{
    ORDINARY, Place, container, copy_executable, descendants, eventually, is_root, ordinary, users,
};

/// The system's Python if there is one, since it is readable by every user.
fn python() -> Value {
    let system = Path::new("/usr/bin/python3");
    if system.exists() {
        json!(system)
    } else {
        Value::Null
    }
}

fn place(sandbox: &str) -> Place {
    Place::new(&json!({"sandbox": sandbox, "python": python(), "timeout_seconds": 60}))
}

// contract: B3, P10
#[test]
fn a_program_sees_a_world_of_its_own() {
    let place = place("namespaces");
    for (who, user) in users() {
        let output = place.run(&user, include_str!("own_world.py")).ok();
        assert_eq!(output.trim(), "all as it should be", "as {who}");
        let left: Vec<_> = std::fs::read_dir(place.temporary()).unwrap().collect();
        assert!(left.is_empty(), "as {who}: {left:?}");
    }
}

// contract: B3
#[test]
fn what_programs_ordinarily_do_works() {
    for sandbox in ["namespaces", "chroot"] {
        if sandbox == "chroot" && !is_root() {
            println!("skipped: chroot needs root");
            continue;
        }
        let output = place(sandbox).run(&[], include_str!("ordinary.py")).ok();
        assert_eq!(output.trim(), "all works", "in {sandbox}");
    }
}

// contract: B3, B5
#[test]
fn doctor_shows_layers_and_attacks() {
    let place = place("auto");
    for (who, user) in users() {
        let (found, success) = place.doctor(&user);
        assert!(success, "as {who}: {found:#}");
        assert_eq!(
            (&found["ready"], &found["backend"]),
            (&json!(true), &json!("namespaces"))
        );
        let stopped = found["attacks"].as_array().unwrap();
        assert!(stopped.len() >= 12, "{found:#}");
        assert!(
            stopped.iter().all(|attack| attack["stopped"] == true),
            "{found:#}"
        );
        let layers = found["layers"].as_array().unwrap();
        assert!(
            layers
                .iter()
                .any(|layer| layer["name"] == "mount namespace"),
            "{found:#}"
        );
    }
}

// contract: B5
#[test]
fn a_backend_of_another_platform_is_a_refusal() {
    let place = place("seatbelt");
    let error = place.run(&[], "print(1)").failed();
    assert!(
        error.starts_with("SandboxError: execution.sandbox: seatbelt needs macOS"),
        "{error}"
    );
    let (found, success) = place.doctor(&[]);
    assert!(!success);
    assert_eq!(found["ready"], json!(false));
}

// contract: B3, B5
#[test]
fn in_a_container_root_gets_chroot_and_nobody_gets_it_unasked() {
    let at = place("auto");
    let Some(as_root) = container(&at, &[]) else {
        return;
    };
    let ran = at.run(
        &as_root,
        "import os; print(os.path.exists('/etc'), os.getuid() != 0)",
    );
    assert!(
        ran.log
            .contains("the kernel refuses namespaces here (clone with namespaces: EPERM)")
    );
    assert_eq!(ran.ok(), "False True\n");
    let (found, _) = at.doctor(&as_root);
    assert_eq!(found["backend"], json!("chroot"), "{found:#}");
    assert!(
        found["why"].as_str().unwrap().contains("the host name"),
        "{found:#}"
    );

    let (text, success) = at.doctor_text(&as_root);
    assert!(success, "{text}");
    for line in [
        "\nsandbox   chroot",
        "the kernel refuses namespaces here (clone with namespaces: EPERM)",
        "on   root folder",
        "off  namespaces",
        "\nPrograms run.",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }

    let as_user = container(&at, &ordinary()).unwrap();
    let (text, success) = at.doctor_text(&as_user);
    assert!(!success, "{text}");
    for line in [
        "\nsandbox   none that can be had",
        "\nPrograms are refused: sandbox 'namespaces' is not available here (clone with namespaces: EPERM)",
        "system-call filter",
        "seccomp=unconfined",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    let by_name = place("namespaces");
    let named = container(&by_name, &[]).unwrap();
    for (place, wrapper) in [(&at, as_user), (&by_name, named)] {
        let error = place.run(&wrapper, "print(1)").failed();
        assert!(
            error.starts_with(
                "SandboxError: sandbox 'namespaces' is not available here (clone with namespaces: EPERM)"
            ),
            "{error}"
        );
        assert!(error.contains("system-call filter"), "{error}");
    }
}

// contract: B6
#[test]
fn bombs_end_in_the_program_and_the_next_one_runs() {
    const MEMORY: u64 = 256 << 20;
    let execution = json!({
        "sandbox": "namespaces",
        "python": python(),
        "timeout_seconds": 60,
        "max_memory_bytes": MEMORY,
        "max_scratch_bytes": 32 << 20,
    });
    let place = Place::new(&execution);
    for (who, user) in users() {
        let mut peaks = Vec::new();
        let output = loop {
            let (ran, peak) = place.run_watched(&user, include_str!("bombs.py"));
            peaks.push((peak.program >> 20, peak.server >> 20));
            // The kernel is everybody's: what others made it hold meanwhile was not the program's.
            if peak.program.max(peak.server) < MEMORY + (64 << 20) {
                break ran.ok();
            }
            assert!(
                peaks.len() < 3,
                "as {who}, MiB of program and server: {peaks:?}"
            );
        };
        println!("as {who}, MiB of program and server: {peaks:?}");
        let output = output.lines().next().unwrap_or_default();
        let found: Value = serde_json::from_str(output).unwrap();
        let between = |name: &str, least: u64, most: u64| {
            let value = found[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {found:#}"));
            assert!(
                (least..=most).contains(&value),
                "as {who}, {name}: {found:#}"
            );
        };
        between("memory_mib", 100, 256);
        between("locked_mib", 100, 256);
        between("scratch_mib", 31, 32);
        between("files", 4000, 4096);
        between("threads", 16, 64);
        between("forks", 0, 0);
        between("descriptors", 100, 256);
        between("pipes_kib", 1, 64 << 10);
        between("sockets_kib", 1, 64 << 10);
        assert_eq!(found["sparse"], json!("EFBIG"));
        assert_eq!(found["uncounted"], json!([]));
        assert_eq!(found["cut"], json!([]));
        assert_eq!(place.run(&user, "print('next')").ok(), "next\n");
    }
}

// contract: B6, P8
#[test]
fn the_wall_clock_ends_what_ignores_everything() {
    let place = Place::new(&json!({"sandbox": "auto", "python": python(), "timeout_seconds": 1}));
    let program = "import os, signal\n\
                   for number in range(1, 64):\n    \
                   try: signal.signal(number, signal.SIG_IGN)\n    \
                   except (OSError, ValueError): pass\n\
                   os.closerange(0, 4096)\n\
                   while True: pass\n";
    // A closed channel may be noticed before the time is over.
    let error = place.run(&[], program).failed();
    assert!(!error.is_empty());
    let error = place.run(&[], "while True: pass").failed();
    assert_eq!(error, "TimeoutError: Execution exceeded 1s limit");
}

// contract: S12, B6
#[test]
fn nothing_outlives_the_server_the_launcher_or_the_child() {
    let mut sandboxes = vec!["namespaces"];
    if is_root() {
        sandboxes.push("chroot");
    }
    for sandbox in sandboxes {
        let place = place(sandbox);
        let program = place.write(
            "program.py",
            "import time\nprint('up', flush=True)\nwhile True: time.sleep(1)",
        );
        for victim in ["server", "launcher", "child"] {
            let mut server = place
                .command(&[], &["run", program.to_str().unwrap()])
                .env("PTC_MCP_LOG", "debug")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // A child that dies before its program has it is replaced by another one.
            let log = BufReader::new(server.stderr.take().unwrap());
            let mut log = log.lines().map(Result::unwrap);
            assert!(log.any(|line| line.contains("a child is handed out")));
            let mut running = Vec::new();
            eventually("a program's child", || {
                running = confined(server.id());
                running.len() == 2
            });
            match victim {
                "server" => server.kill().unwrap(),
                "launcher" => running[0].kill(),
                _ => running[1].kill(),
            }
            eventually("everything is gone", || {
                running.iter().all(|process| !process.is_alive())
            });
            server.wait().unwrap();
        }
        if let Ok(copies) = std::fs::read_dir("/var/cache/ptc-mcp")
            && sandbox == "chroot"
        {
            for copy in copies.flatten() {
                let scratch = copy.path().join("scratch");
                eventually("scratch directories are gone", || {
                    std::fs::read_dir(&scratch).is_ok_and(|mut left| left.next().is_none())
                });
            }
        }
    }
}

/// A program's launcher and its child, in this order; not the self-test's.
fn confined(server: u32) -> Vec<support::Process> {
    let loads = ptc_mcp::channel::LOADER.lines().next().unwrap();
    let mut found = descendants(server);
    found.retain(|process| {
        let command = std::fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(loads)
    });
    found
}

#[test]
fn a_launcher_called_by_hand_does_nothing() {
    for arguments in [
        &["__confine"][..],
        &["__confine", "{}"],
        &["__confine", "--help"],
    ] {
        let output = place("auto").command(&[], arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(127));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("for ptc-mcp's own use"), "{said}");
    }
}

#[test]
fn nothing_is_mounted_on_the_host() {
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    place("namespaces").run(&[], "print(1)").ok();
    assert_eq!(mounts(), before);
}

/// A debugger, or whoever started the server, can have switched chance off for all that it starts.
#[test]
fn programs_run_where_addresses_are_not_left_to_chance() {
    let place = place("namespaces");
    for (who, user) in users() {
        let mut wrapper = ["setarch", "-R"].map(str::to_owned).to_vec();
        wrapper.extend(user);
        let output = place.run(&wrapper, include_str!("bombs.py")).ok();
        let found: Value = serde_json::from_str(output.lines().next().unwrap()).unwrap();
        assert_eq!(found["cut"], json!([]), "as {who}");
    }
}

/// An interpreter in a prefix of its own, as python.org's builds are installed: under a home folder
/// that only its user may enter, in a path with a space and letters beyond ASCII; with its bytecode,
/// and, as images of containers often have it, stripped of it.
#[test]
fn an_interpreter_anywhere_will_do() {
    let Some((executable, library)) = relocatable() else {
        println!("skipped: the system's Python cannot be copied elsewhere");
        return;
    };
    for stripped in [false, true] {
        let home = Place::new(&json!({}));
        let prefix = home.path().join("my home/ünï çødé");
        install(&executable, &library, &prefix, stripped);
        if is_root() {
            own(home.path(), ORDINARY);
        }
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let execution = json!({"sandbox": "namespaces", "python": prefix.join("bin/python3")});
        let place = Place::new(&execution);
        for (who, user) in users() {
            let program = "import sys, asyncio, json, os\n\
                           print(sys.prefix, int(os.path.exists(json.__cached__)), sep='|')";
            let expected = format!("{}|{}", prefix.display(), u8::from(!stripped));
            assert_eq!(
                place.run(&user, program).ok().trim_end(),
                expected,
                "as {who}"
            );
        }
    }
}

/// Debian's, pyenv's, and what stands behind a virtual environment, as far as they are here.
#[test]
fn every_interpreter_of_this_machine_will_do() {
    let place = Place::new(&json!({}));
    let mut found = Vec::new();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let versions = home.map(|home| home.join(".pyenv/versions"));
    let versions = versions.and_then(|versions| std::fs::read_dir(versions).ok());
    let versions = versions.into_iter().flatten().flatten();
    found.extend(versions.map(|version| version.path().join("bin/python3")));
    found.push("/usr/bin/python3".into());
    found.retain(|python| {
        let recent = "import sys; sys.exit(sys.version_info < (3, 9))";
        let mut command = Command::new(python);
        command.args(["-I", "-S", "-c", recent]);
        command.status().is_ok_and(|status| status.success())
    });
    let base = found.first().expect("a Python on this machine");
    let environment = place.path().join("environment");
    let mut make = Command::new(base);
    make.args(["-I", "-m", "venv", "--without-pip"])
        .arg(&environment);
    if make.output().is_ok_and(|made| made.status.success()) {
        found.push(environment.join("bin/python"));
    } else {
        println!(
            "left out: '{}' cannot make a virtual environment",
            base.display()
        );
    }
    for python in found {
        let execution = json!({"sandbox": "namespaces", "python": python});
        let output = Place::new(&execution)
            .run(&[], include_str!("ordinary.py"))
            .ok();
        assert_eq!(output.trim(), "all works", "{}", python.display());
        println!("works: {}", python.display());
    }
}

/// The system's interpreter and its library, if it finds the library by where it lies itself.
fn relocatable() -> Option<(PathBuf, PathBuf)> {
    let question = "import os, sys; print(os.path.realpath(sys.executable)); print(os.path.dirname(os.__file__))";
    let answer = Command::new("/usr/bin/python3")
        .args(["-I", "-S", "-c", question])
        .output()
        .ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    let mut lines = answer.lines().map(PathBuf::from);
    let (executable, library) = (lines.next()?, lines.next()?);
    library
        .ends_with(Path::new("lib").join(library.file_name()?))
        .then_some((executable, library))
}

/// Puts an interpreter and its library under another prefix.
fn install(executable: &Path, library: &Path, prefix: &Path, stripped: bool) {
    let name = executable.file_name().unwrap();
    std::fs::create_dir_all(prefix.join("bin")).unwrap();
    std::fs::create_dir_all(prefix.join("lib")).unwrap();
    copy_executable(executable, &prefix.join("bin").join(name));
    symlink(name, prefix.join("bin/python3")).unwrap();
    let modules = prefix.join("lib").join(library.file_name().unwrap());
    copy_library(library, &modules, stripped);
}

fn copy_library(from: &Path, to: &Path, stripped: bool) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (kind, name) = (entry.file_type().unwrap(), entry.file_name());
        let left_out = ["test", "idlelib", "tkinter", "ensurepip", "dist-packages"];
        if kind.is_dir() && left_out.iter().all(|folder| name != *folder) {
            if !stripped || name != "__pycache__" {
                copy_library(&entry.path(), &to.join(name), stripped);
            }
        } else if kind.is_file() {
            let to = to.join(name);
            std::fs::copy(entry.path(), &to).unwrap();
            // Bytecode is good only for the time of its source.
            let modified = entry.metadata().unwrap().modified().unwrap();
            File::options()
                .write(true)
                .open(to)
                .unwrap()
                .set_modified(modified)
                .unwrap();
        }
    }
}

fn own(path: &Path, id: u32) {
    std::os::unix::fs::lchown(path, Some(id), Some(id)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            own(&entry.path(), id);
        }
    }
}

// contract: B3, B5
#[test]
fn what_was_proved_counts_until_something_about_it_changes() {
    let place = place("namespaces");
    let cache = place.path().join("cache");
    let file = place.write("program.py", "print('ran')");
    let run = || {
        let output = place
            .command(&[], &["run", file.to_str().unwrap()])
            .env("XDG_CACHE_HOME", &cache)
            .env("PTC_MCP_LOG", "info")
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ran");
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let earlier = log.contains("proved=\"at an earlier start\"");
        assert!(earlier || log.contains("proved=\"now\""), "{log}");
        earlier
    };
    assert_eq!([run(), run()], [false, true]);
    // The same file, and yet another binary than the one that it was proved with.
    let replaced = place.path().join("new");
    copy_executable(&place.binary(), &replaced);
    std::fs::rename(&replaced, place.binary()).unwrap();
    assert_eq!([run(), run()], [false, true]);
    // What others could have written is not believed, and doctor believes nothing that was kept.
    let folder = cache.join("ptc-mcp");
    let mut spoilt = 0;
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("interpreter-")
        {
            let kept = std::fs::read_to_string(entry.path()).unwrap();
            let other = kept.replace("[3,", "[33,");
            assert_ne!(kept, other);
            std::fs::write(entry.path(), other).unwrap();
            spoilt += 1;
        }
    }
    assert!(spoilt > 0);
    let mut doctor = place.command(&[], &["doctor"]);
    let doctor = doctor.env("XDG_CACHE_HOME", &cache).output().unwrap();
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(!text.contains("33.") && doctor.status.success(), "{text}");
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!([run(), run()], [false, false]);
}

// contract: B5
#[test]
fn what_was_made_for_an_interpreter_may_be_removed_while_the_server_runs() {
    let Some((executable, library)) = relocatable() else {
        println!("skipped: the system's Python cannot be copied elsewhere");
        return;
    };
    let home = Place::new(&json!({}));
    install(&executable, &library, home.path(), true);
    let python = home.path().join("bin/python3");
    let place = Place::new(&json!({"sandbox": "namespaces", "python": python}));
    let cache = place.path().join("cache");
    let mut server = place
        .command(&[], &[])
        .env("XDG_CACHE_HOME", &cache)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut request = |id: u64, method: &str, params: Value| -> Value {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{message}").unwrap();
        loop {
            let line = output.next().expect("an answer").unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return answer["result"].clone();
            }
        }
    };
    let client = json!({"name": "test", "version": "1"});
    request(
        1,
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
    );
    // The second one may have been given a child that stood before.
    for id in 2..6 {
        let code = format!("print({id})");
        let call = json!({"name": "execute_program", "arguments": {"code": code}});
        let result = request(id, "tools/call", call);
        assert_eq!(result["isError"], false, "{result:#}");
        if id == 2 {
            std::fs::remove_dir_all(cache.join("ptc-mcp")).unwrap();
        }
    }
    drop(input);
    assert!(server.wait().unwrap().success());
}
