//! `sandbox: seatbelt` without a Mac: the real binary with a `sandbox-exec` of the test's, which
//! checks its arguments and confines nothing. What is proved here is everything but the kernel's
//! part: that the profile is used, and that programs run behind it or are refused in the right words.
//! On a Mac, `escape-corpus/` proves the rest.
//!
//! Only a debug build for another system takes such a stand-in.
#![cfg(all(debug_assertions, target_os = "linux"))]
#![expect(clippy::disallowed_methods, reason = "the binary is run from here")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a configuration, a stand-in that behaves in one way, and room for temporary files.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(behaviour: &str) -> Self {
        Self::with(behaviour, json!({}))
    }

    fn with(behaviour: &str, mut execution: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { folder };
        execution["sandbox"] = json!("seatbelt");
        let config = json!({ "execution": execution });
        std::fs::write(place.path("config.yaml"), config.to_string()).unwrap();
        std::fs::create_dir(place.path("tmp")).unwrap();
        let python = Command::new("python3")
            .args(["-I", "-c", "import sys; print(sys.executable)"])
            .output()
            .unwrap();
        let python = String::from_utf8(python.stdout).unwrap();
        let text = format!(
            "#!{}\nBEHAVIOUR = {behaviour:?}\n{}",
            python.trim(),
            include_str!("sandbox_exec.py")
        );
        std::fs::write(place.tool(), text).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.tool(), mode).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tool(&self) -> PathBuf {
        self.path("sandbox-exec")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptc-mcp"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("PTC_MCP_CONFIG")
            .env("PTC_MCP_TEST_SANDBOX_EXEC", self.tool())
            .env("TMPDIR", self.path("tmp"))
            .env("SECRET_OF_THE_SERVER", "1")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str) -> Value {
        std::fs::write(self.path("program.py"), program).unwrap();
        read(
            &self
                .command(&["run", "--json", "program.py"])
                .output()
                .unwrap(),
        )
    }

    fn output(&self, program: &str) -> String {
        let ran = self.run(program);
        assert_eq!(ran["error"], Value::Null, "{ran:#}");
        ran["output"].as_str().unwrap().to_owned()
    }

    fn error(&self, program: &str) -> String {
        let ran = self.run(program);
        ran["error"].as_str().expect("a failed run").to_owned()
    }

    fn doctor(&self) -> (Value, Output) {
        let output = self.command(&["doctor", "--json"]).output().unwrap();
        (read(&output), output)
    }

    fn left(&self) -> Vec<PathBuf> {
        let left = std::fs::read_dir(self.path("tmp")).unwrap();
        left.map(|entry| entry.unwrap().path()).collect()
    }
}

fn read(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

// contract: B2, P10
#[test]
fn programs_run_behind_it_in_a_directory_of_their_own() {
    let place = Place::new("holds");
    let output = place.output(
        "import os, tempfile\n\
         here = os.path.realpath('.')\n\
         print(os.environ['HOME'] == os.environ['TMPDIR'] == os.getcwd() == here, os.listdir())\n\
         print(sorted(set(os.environ) - {'HOME', 'TMPDIR', 'LC_CTYPE'}))\n\
         with tempfile.NamedTemporaryFile('w+') as file:\n    print(file.write('x'))\n\
         try:\n    os.fstat(77)\nexcept OSError:\n    print('closed')\n",
    );
    assert_eq!(output.trim_end(), "True []\n[]\n1\nclosed");
    assert_eq!(place.left(), Vec::<PathBuf>::new());
}

// contract: P8, B6
#[test]
fn limits_hold_as_without_a_wall() {
    let place = Place::with(
        "holds",
        json!({"timeout_seconds": 1, "max_scratch_bytes": 1_000_000}),
    );
    let error = place
        .error("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass");
    assert_eq!(error, "TimeoutError: Execution exceeded 1s limit");
    let error = place.error(
        "import time\nfor n in range(9):\n    open(str(n), 'wb').write(bytes(500_000))\ntime.sleep(60)",
    );
    assert!(
        error.contains("execution.max_scratch_bytes=1000000"),
        "{error}"
    );
    let error = place.error("import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))\nopen('x', 'wb').write(bytes(2_000_000))");
    assert!(error.contains("File too large"), "{error}");
    assert_eq!(place.left(), Vec::<PathBuf>::new());
}

#[test]
fn doctor_shows_layers_and_attacks() {
    let place = Place::new("holds");
    let (found, output) = place.doctor();
    assert!(output.status.success(), "{found:#}");
    assert_eq!(
        (&found["ready"], &found["backend"]),
        (&json!(true), &json!("seatbelt"))
    );
    let attacks = found["attacks"].as_array().unwrap();
    assert!(attacks.len() >= 15, "{found:#}");
    assert!(attacks.iter().all(|attack| attack["stopped"] == true));
    assert_eq!(found["layers"][0]["name"], "profile");
}

// contract: B5
#[test]
fn whatever_is_wrong_is_a_refusal_that_says_what_and_each_way_out() {
    for (behaviour, expected) in [
        (
            "nested",
            "not available here (sandbox-exec: sandbox_apply: Operation not permitted).\n  cause: \
             ptc-mcp itself runs in a sandbox",
        ),
        (
            "unknown rule",
            "unbound variable: file-map-executable).\n  cause: this macOS does not know a rule",
        ),
        (
            "aborts",
            "does not start inside the sandbox (it said nothing)",
        ),
        (
            "hole",
            "found a hole: \"start a process\" succeeded inside the sandbox",
        ),
        ("touches", "found a hole: a file of the host was changed"),
        (
            "breaks",
            "what programs need does not work: the standard library: cannot import _ssl",
        ),
        // Nothing is confined, and the self-test is really run.
        ("open", "the self-test "),
    ] {
        let place = Place::new(behaviour);
        let error = place.error("print('ran')");
        assert!(
            error.starts_with("SandboxError: sandbox 'seatbelt' is not available here"),
            "{behaviour}: {error}"
        );
        assert!(error.contains(expected), "{behaviour}: {error}");
        assert!(
            error.contains("execution.sandbox: none"),
            "{behaviour}: {error}"
        );
        let (found, output) = place.doctor();
        assert_eq!(output.status.code(), Some(1), "{behaviour}");
        assert_eq!(found["ready"], json!(false), "{behaviour}");
        let listed = place.command(&["tools"]).output().unwrap();
        assert!(listed.status.success(), "{behaviour}");
        assert_eq!(place.left(), Vec::<PathBuf>::new(), "{behaviour}");
    }
}

// contract: B5
#[test]
fn without_sandbox_exec_there_is_no_sandbox() {
    let place = Place::new("holds");
    std::fs::remove_file(place.tool()).unwrap();
    let error = place.error("print('ran')");
    assert!(
        error.contains("sandbox-exec, which is part of every macOS, is not where it belongs"),
        "{error}"
    );
}
