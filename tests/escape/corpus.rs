//! The corpus as data: headers, what they may say, and the one place that reads them.
//!
//! How an attack is run or judged is not known here.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// One script.
#[derive(Debug)]
pub struct Attack {
    /// Its path below `escape-corpus/`, without `.py`.
    pub name: String,
    pub code: String,
    pub header: Header,
}

/// The `[tool.ptc-mcp.escape]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Header {
    /// What the attacker wants, as the end of "it tries to …".
    pub goal: String,
    pub evidence: Evidence,
    /// What the positive control needs of the host; confined, the attack runs in any case.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// Why a confined mode lets it through.
    pub gap: Option<String>,
    /// Why it fails even without a sandbox.
    pub stopped_everywhere: Option<String>,
    pub expect: BTreeMap<Mode, Expectation>,
}

/// Which witness on the host decides. What each one looks at is said in `witness.rs`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Something that only the host knows stands in what came back.
    Secret(Secret),
    /// The same program says something else when something on the host is there than when it is not.
    Difference(Thing),
    /// Something planted on the host is no longer as it was.
    Change(Planted),
    /// A listener on the host was touched.
    Contact,
    /// The host's process table.
    Process(ProcessSign),
    /// The program's descriptor table, seen from the host, holds a link that begins like this.
    Object(String),
    /// This file of the program's `/proc` folder changed while the program ran.
    State(String),
    /// What reached the tool server.
    Reached(Reached),
    /// What the server answered to its client.
    Answered(Answered),
    /// What the host measured.
    Bound(Bound),
    /// Of controls: the program came to its end and said so.
    Works,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Secret {
    /// The content of a planted file.
    Canary,
    /// The name of a planted file.
    Name,
    /// The name of a folder beside the scratch directories.
    Neighbour,
    /// A variable of the server's environment.
    Environment,
    /// An argument of the server.
    CommandLine,
    /// The folder in which the server runs.
    WorkingDirectory,
    /// A variable of another process.
    Victim,
    /// A line that root wrote to the kernel's log.
    KernelLog,
    HostName,
    UserId,
    /// A line of `/etc/passwd`.
    Passwd,
    BootId,
    /// A line of the host's mount table.
    Mounts,
    /// The host's own address in its network.
    Address,
    /// A network interface other than the loopback.
    Interface,
    /// A folder directly below `/` that no interpreter needs.
    RootNames,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Thing {
    File,
    Folder,
    Symlink,
    Socket,
    Process,
    /// The program itself, run for the first time and once more.
    EarlierRun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Planted {
    /// A folder with files, and everywhere that a file with the marker's name could appear.
    Files,
    /// The standard library's own files.
    Interpreter,
    /// The files of devices that every program can open.
    Devices,
    /// System V and POSIX objects with the marker's name or key.
    Ipc,
    Keys,
    Cgroups,
    /// A process of the same user.
    Victim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessSign {
    /// Two processes hold the program's marker at once.
    Second,
    /// The marker is held by another image, started with the word that only that one gets.
    Image,
    /// The marker is still held after the answer was given.
    Survivor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reached {
    /// More calls than `max_tool_calls`.
    Budget,
    /// More calls at once than `max_concurrent_calls`.
    Concurrency,
    /// A tool that the configuration blocks.
    Blocked,
    /// Any call at all: the program makes none before it has told its end.
    AfterTheEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answered {
    /// The run counts as successful.
    Success,
    /// The run counts as failed, though the program came to its end in good time.
    Failure,
    /// The forbidden word stands in what came back.
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    Memory,
    ServerMemory,
    ScratchBytes,
    ScratchFiles,
    Threads,
    Descriptors,
    Output,
    /// The answer, with a record of all calls that may be refused.
    Record,
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    Root,
    Linux,
    #[serde(rename = "x86_64")]
    X86_64,
    /// A root in a container, or in some machines, has no say over limits.
    #[serde(rename = "cap_sys_resource")]
    CapSysResource,
}

impl Need {
    pub fn is_met(self) -> bool {
        match self {
            Self::Root => rustix::process::getuid().is_root(),
            Self::Linux => cfg!(target_os = "linux"),
            Self::X86_64 => cfg!(target_arch = "x86_64"),
            Self::CapSysResource => rustix::process::getuid().is_root() && has_cap_sys_resource(),
        }
    }
}

fn has_cap_sys_resource() -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> CAP_SYS_RESOURCE & 1 == 1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    Namespaces,
    Chroot,
    Seatbelt,
    None,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::Namespaces, Self::Chroot, Self::Seatbelt, Self::None];

    /// As the configuration spells it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Chroot => "chroot",
            Self::Seatbelt => "seatbelt",
            Self::None => "none",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    Contained,
    Escapes,
    /// Of controls.
    Works,
}

/// A PEP 723 block holds TOML; only our table of it matters, and Python's floor.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Block {
    requires_python: String,
    tool: Tool,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(rename = "ptc-mcp")]
    ptc_mcp: Ours,
}

#[derive(Deserialize)]
struct Ours {
    escape: Header,
}

/// Reads every script below a folder. All that is wrong is told at once.
pub fn read(folder: &Path) -> Result<Vec<Attack>, Vec<String>> {
    let (mut attacks, mut mistakes) = (Vec::new(), Vec::new());
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in std::fs::read_dir(&current)
            .expect("the corpus is there")
            .flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "py") {
                let name = path.strip_prefix(folder).unwrap().with_extension("");
                let name = name.to_str().expect("an ASCII name").to_owned();
                let code = std::fs::read_to_string(&path).expect("a readable script");
                match parse(&name, &code) {
                    Ok(header) => attacks.push(Attack { name, code, header }),
                    Err(mistake) => mistakes.push(format!("{name}.py: {mistake}")),
                }
            }
        }
    }
    attacks.sort_by(|a, b| a.name.cmp(&b.name));
    mistakes.sort();
    if mistakes.is_empty() {
        Ok(attacks)
    } else {
        Err(mistakes)
    }
}

fn parse(name: &str, code: &str) -> Result<Header, String> {
    let block = block_of(code).ok_or("no '# /// script' block")?;
    let block: Block = toml::from_str(&block).map_err(|error| error.to_string())?;
    if block.requires_python != ">=3.9" {
        return Err("requires-python is \">=3.9\", the oldest that programs run on".to_owned());
    }
    let header = block.tool.ptc_mcp.escape;
    let missing: Vec<&str> = Mode::ALL
        .iter()
        .filter(|mode| !header.expect.contains_key(mode))
        .map(|mode| mode.key())
        .collect();
    if !missing.is_empty() {
        return Err(format!("no expectation for: {}", missing.join(", ")));
    }
    let is_control = name.starts_with("controls/");
    if is_control != (header.evidence == Evidence::Works)
        || header
            .expect
            .values()
            .any(|e| (*e == Expectation::Works) != is_control)
    {
        return Err("controls, and they alone, are expected to work".to_owned());
    }
    let gapped = header
        .expect
        .iter()
        .any(|(mode, expect)| *mode != Mode::None && *expect == Expectation::Escapes);
    if gapped != header.gap.is_some() {
        return Err(
            "'gap' says why a confined mode is escaped, and stands there only then".to_owned(),
        );
    }
    let stopped = header.expect[&Mode::None] == Expectation::Contained;
    if stopped != header.stopped_everywhere.is_some() {
        return Err(
            "'stopped-everywhere' says why 'none' contains it, and stands there only then"
                .to_owned(),
        );
    }
    Ok(header)
}

/// The text of the metadata block, its comment marks taken off.
fn block_of(code: &str) -> Option<String> {
    let mut lines = code
        .lines()
        .skip_while(|line| *line != "# /// script")
        .skip(1);
    let mut text = String::new();
    for line in lines.by_ref() {
        if line == "# ///" {
            return Some(text);
        }
        text.push_str(line.strip_prefix("# ").or_else(|| line.strip_prefix('#'))?);
        text.push('\n');
    }
    None
}

/// Whether a header that must not pass is refused: a reader of headers that took everything would
/// make every attack look contained.
pub fn check_reader() -> Result<(), String> {
    let header = |table: &str, expect: &str| {
        format!(
            "# /// script\n# requires-python = \">=3.9\"\n# [tool.ptc-mcp.escape]\n# goal = \"x\"\n{table}\n\
             # [tool.ptc-mcp.escape.expect]\n{expect}\n# ///\n"
        )
    };
    let expect = |none: &str, others: &str| {
        let modes = [
            ("namespaces", others),
            ("chroot", "contained"),
            ("seatbelt", "contained"),
            ("none", none),
        ];
        modes
            .map(|(mode, expected)| format!("# {mode} = \"{expected}\""))
            .join("\n")
    };
    let sound = "# evidence = \"contact\"";
    parse("network/x", &header(sound, &expect("escapes", "contained")))?;
    let refused = [
        (
            "network/x",
            header(sound, "# none = \"escapes\""),
            "no expectation for: namespaces, chroot, seatbelt",
        ),
        (
            "network/x",
            header(sound, &expect("contained", "contained")),
            "'stopped-everywhere' says why",
        ),
        (
            "network/x",
            header(sound, &expect("escapes", "escapes")),
            "'gap' says why",
        ),
        (
            "network/x",
            header("# evidence = \"works\"", &expect("escapes", "contained")),
            "controls, and they alone",
        ),
        (
            "controls/x",
            header(sound, &expect("escapes", "contained")),
            "controls, and they alone",
        ),
        (
            "network/x",
            header("# evidence = \"says so\"", &expect("escapes", "contained")),
            "unknown variant",
        ),
        (
            "network/x",
            header(
                "# evidence = \"contact\"\n# skip = true",
                &expect("escapes", "contained"),
            ),
            "unknown field",
        ),
        ("network/x", "print()".to_owned(), "no '# /// script' block"),
    ];
    for (name, code, expected) in refused {
        match parse(name, &code) {
            Err(mistake) if mistake.contains(expected) => {}
            other => {
                return Err(format!(
                    "expected {expected:?} and got {other:?} for:\n{code}"
                ));
            }
        }
    }
    Ok(())
}
