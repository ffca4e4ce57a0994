//! Linux: which wall it is to be, built and tested once before the first program.

use tokio::process::Command;

use super::interpreter::{self, Interpreter};
use super::linux::layout::{Answer, QUESTION};
use super::linux::plan::{Enforced, Failure, Layout, Limits, Named, Word};
use super::linux::refusal::{self, Facts};
use super::linux::{Site, bytecode};
use super::selftest;
use super::status::{Attack, Examination, Layer};
use super::{Launch, OPEN_FILES, Proof, Sandbox, SandboxError, Wall};
use crate::config::SandboxMode;

/// Why the sandbox is not to be used.
#[derive(Debug)]
enum Unfit {
    /// The kernel, or what stands between us and it, refused a step.
    Refused(Failure),
    /// It was built, and does not hold or does not work. A sentence's end: "the self-test …".
    Broken(String),
}

/// A wall that has proved itself.
struct Proved {
    site: Site,
    enforced: Enforced,
    attacks: Vec<Attack>,
}

impl Sandbox {
    pub(super) async fn prove_linux(
        &self,
        interpreter: Interpreter,
    ) -> Result<Proof, SandboxError> {
        let mode = self.execution.sandbox;
        let (layout, answer) = needs(&interpreter).await?;
        let refuse = |text: String| SandboxError::Unavailable(text);
        let (proved, backend, why) = if mode == SandboxMode::Chroot {
            let proved = self.prove_chroot(&interpreter, layout, &answer).await;
            let proved = proved.map_err(|unfit| refuse(explain(mode, &unfit)))?;
            (proved, SandboxMode::Chroot, None)
        } else {
            let site = Site::namespaces(layout.clone());
            match self.prove_site(&interpreter, site, &answer).await {
                Ok(proved) => (proved, SandboxMode::Namespaces, None),
                // Only the default falls back, only where the kernel refuses, and only to what
                // keeps every guarantee of the seatbelt mode (contract B3).
                Err(Unfit::Refused(failure))
                    if mode == SandboxMode::Auto
                        && failure.is_of_the_kernel()
                        && Facts::now().root =>
                {
                    let proved = self.prove_chroot(&interpreter, layout, &answer).await;
                    let proved = proved.map_err(|unfit| {
                        let first =
                            explain(SandboxMode::Namespaces, &Unfit::Refused(failure.clone()));
                        refuse(refusal::both(&first, &reason_of(&unfit)))
                    })?;
                    (
                        proved,
                        SandboxMode::Chroot,
                        Some(refusal::fell_back(&failure)),
                    )
                }
                Err(unfit) => return Err(refuse(explain(SandboxMode::Namespaces, &unfit))),
            }
        };
        let mut examination = Examination::of(mode);
        examination.backend = Some(backend.as_str());
        examination.why = why;
        examination.layers = layers(backend, &proved.enforced);
        examination.attacks = proved.attacks;
        examination.interpreter = Some(interpreter.clone());
        Ok(Proof {
            wall: Box::new(proved.site),
            interpreter,
            examination,
        })
    }

    async fn prove_chroot(
        &self,
        interpreter: &Interpreter,
        layout: Layout,
        answer: &Answer,
    ) -> Result<Proved, Unfit> {
        if !Facts::now().root {
            let failed = Err(rustix::io::Errno::PERM).step("chroot as an ordinary user");
            return failed.map_err(Unfit::Refused);
        }
        let copied = tokio::task::spawn_blocking(move || Site::chroot(layout)).await;
        let copied = copied.map_err(|error| Unfit::Broken(format!("failed: {error}")))?;
        self.prove_site(interpreter, copied.map_err(Unfit::Refused)?, answer)
            .await
    }

    async fn prove_site(
        &self,
        interpreter: &Interpreter,
        site: Site,
        answer: &Answer,
    ) -> Result<Proved, Unfit> {
        let given = serde_json::json!({
            "roots": roots(&site),
            "modules": answer.modules,
            "private": site.bounds_scratch(),
        });
        let heard = selftest::attack(self, &site, interpreter, given).await;
        let heard = heard.map_err(Unfit::Broken)?;
        let words = || heard.stderr.lines().filter_map(Word::parse);
        if let Some(Word::Failed(failure)) = words().find(|word| matches!(word, Word::Failed(_))) {
            return Err(Unfit::Refused(failure));
        }
        let enforced = words().find_map(|word| match word {
            Word::Enforced(enforced) => Some(enforced),
            Word::Failed(_) => None,
        });
        let (Some(enforced), Some(said)) = (enforced, &heard.said) else {
            let other = heard
                .stderr
                .lines()
                .rfind(|line| Word::parse(line).is_none());
            return Err(Unfit::Broken(selftest::silent(interpreter, other)));
        };
        let attacks: Vec<_> = if site.bounds_scratch() {
            selftest::on_namespaces().collect()
        } else {
            selftest::on_chroot().collect()
        };
        let landlock = enforced.landlock > 0;
        let attacks = attacks
            .into_iter()
            .map(|(name, by)| match by.strip_prefix("Landlock, ") {
                Some(others) if !landlock => (name, others),
                _ => (name, by),
            });
        let attacks = said.judge(attacks, &answer.modules);
        let attacks = attacks.map_err(Unfit::Broken)?;
        heard.bait.untouched().map_err(Unfit::Broken)?;
        Ok(Proved {
            site,
            enforced,
            attacks,
        })
    }

    /// The self-test loads more than most programs do: that tight limits would end it says nothing
    /// about the wall.
    fn linux_limits(&self, testing: bool) -> Limits {
        let at_least = |value: u64, least: u64| if testing { value.max(least) } else { value };
        Limits {
            cpu_seconds: at_least(self.cpu_seconds(), 60),
            memory_bytes: at_least(self.execution.max_memory_bytes, 512 << 20),
            scratch_bytes: at_least(self.execution.max_scratch_bytes, 1 << 20),
            open_files: OPEN_FILES,
        }
    }
}

/// The namespaces that an earlier start has proved, if the files that they show are still those.
pub(super) fn again(kept: serde_json::Value) -> Option<Box<dyn Wall>> {
    let (layout, fingerprint): (Layout, u64) = serde_json::from_value(kept).ok()?;
    let bytecode_is_there = layout
        .bytecode
        .as_ref()
        .is_none_or(|folder| folder.is_dir());
    let is_as_it_was = layout.fingerprint() == fingerprint && bytecode_is_there;
    is_as_it_was.then(|| Box::new(Site::namespaces(layout)) as Box<dyn Wall>)
}

impl Wall for Site {
    fn mode(&self) -> SandboxMode {
        if self.bounds_scratch() {
            SandboxMode::Namespaces
        } else {
            SandboxMode::Chroot
        }
    }

    /// A changed root is second best: the next start looks again for something better.
    fn keep(&self) -> Option<serde_json::Value> {
        let layout = self.layout();
        (self.mode() == SandboxMode::Namespaces)
            .then(|| serde_json::json!([layout, layout.fingerprint()]))
    }

    fn launch(
        &self,
        sandbox: &Sandbox,
        interpreter: &Interpreter,
        arguments: &[&str],
        testing: bool,
    ) -> Result<Launch, SandboxError> {
        let limits = sandbox.linux_limits(testing);
        let launcher = self.launcher(interpreter, arguments, limits, testing);
        let (command, scratch) = launcher.map_err(|failure| SandboxError::Start {
            reason: failure.to_string(),
        })?;
        Ok(Launch {
            command,
            scratch,
            stays: true,
            bounded: self.bounds_scratch(),
        })
    }
}

/// Asks the interpreter what it needs.
async fn needs(interpreter: &Interpreter) -> Result<(Layout, Answer), SandboxError> {
    let failed = |reason: String| SandboxError::Interpreter {
        reason: format!("'{}' {reason}", interpreter.executable.display()),
    };
    let mut command = Command::new(&interpreter.executable);
    command.env_clear().current_dir("/");
    let answer: Answer = interpreter::ask(command, QUESTION).await.map_err(failed)?;
    let executable = interpreter.executable.clone();
    let walked = tokio::task::spawn_blocking(move || {
        Layout::of(&executable, &answer).map(|layout| (layout, answer))
    });
    match walked.await {
        Ok(Ok((mut layout, answer))) => {
            layout.bytecode = bytecode::provide(&interpreter.executable, &layout, &answer).await;
            Ok((layout, answer))
        }
        Ok(Err(error)) => Err(failed(format!("has files that cannot be found: {error}"))),
        Err(error) => Err(failed(format!("cannot be looked at: {error}"))),
    }
}

/// The names that may stand in the root folder.
fn roots(site: &Site) -> Vec<String> {
    let layout = site.layout();
    let paths = layout.folders.iter().chain(&layout.files);
    let names = paths.chain(layout.links.iter().map(|(link, _)| link));
    let mut roots: Vec<String> = names
        .filter_map(|path| Some(path.components().nth(1)?.as_os_str().to_str()?.to_owned()))
        .chain(["scratch", "dev", "proc", "empty", "bytecode"].map(ToOwned::to_owned))
        .collect();
    roots.sort();
    roots.dedup();
    roots
}

fn explain(mode: SandboxMode, unfit: &Unfit) -> String {
    match unfit {
        Unfit::Refused(failure) => refusal::refused(mode.as_str(), failure, &Facts::now()),
        Unfit::Broken(what) => super::refusal::broken(mode, what),
    }
}

fn reason_of(unfit: &Unfit) -> String {
    match unfit {
        Unfit::Refused(failure) => failure.to_string(),
        Unfit::Broken(what) => format!("the self-test {what}"),
    }
}

fn layers(backend: SandboxMode, enforced: &Enforced) -> Vec<Layer> {
    let on = |name, what: String| Layer {
        name,
        enforced: true,
        what,
    };
    let mut layers = match backend {
        SandboxMode::Chroot => vec![
            on(
                "root folder",
                "a copy of the interpreter, nothing of the host; no procfs".to_owned(),
            ),
            on(
                "user",
                "a user of its own for each program; no capabilities".to_owned(),
            ),
            Layer {
                name: "namespaces",
                enforced: false,
                what: "not in this mode: the host name and the system's process ids show"
                    .to_owned(),
            },
        ],
        _ => vec![
            on(
                "mount namespace",
                "a read-only root with the interpreter alone; no procfs; scratch in memory"
                    .to_owned(),
            ),
            on(
                "user namespace",
                match enforced.outer_uid {
                    65534 => "nobody, to itself and to the host; no capabilities".to_owned(),
                    outer => format!("nobody to itself, user {outer} to the host; no capabilities"),
                },
            ),
            on(
                "pid, net, ipc, uts, cgroup namespaces",
                "no processes, no network, no host name but its own".to_owned(),
            ),
        ],
    };
    layers.push(match enforced.landlock {
        0 => Layer {
            name: "Landlock",
            enforced: false,
            what: "not offered by this kernel; the layers above do not need it".to_owned(),
        },
        version => on(
            "Landlock",
            format!("version {version}: files, TCP, signals once more"),
        ),
    });
    layers.push(on(
        "system-call filter",
        format!(
            "an allow list of {} instructions; no sockets, no processes, one exec",
            enforced.filter
        ),
    ));
    layers.push(on(
        "limits",
        "CPU time, memory, threads, open files, file size, scratch size, wall clock".to_owned(),
    ));
    layers
}
