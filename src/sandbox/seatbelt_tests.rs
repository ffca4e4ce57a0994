//! The parameters for every kind of interpreter, as golden files, and the rules that the profile's
//! text has to keep.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::*;

/// A Mac's file system, as far as it matters.
#[derive(Default)]
struct Mac {
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Mac {
    fn new(links: &[(&str, &str)]) -> Self {
        let everywhere = [
            ("/usr/share/zoneinfo", "/var/db/timezone/zoneinfo"),
            ("/var", "private/var"),
            ("/tmp", "private/tmp"),
            ("/private/var/db/timezone/zoneinfo", "tz/2026b.1.0/zoneinfo"),
        ];
        let links = everywhere.iter().chain(links);
        Self {
            links: links.map(|(link, to)| (link.into(), to.into())).collect(),
        }
    }
}

impl Disk for Mac {
    fn link(&self, path: &Path) -> Option<PathBuf> {
        self.links.get(path).cloned()
    }

    fn is_folder(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| {
            name == "lib-dynload"
                || name == "zoneinfo" && path.starts_with("/private/var/db/timezone/tz")
                || name.starts_with("python3.")
        })
    }

    /// The system's libraries are in the loader's cache only.
    fn exists(&self, path: &Path) -> bool {
        !SYSTEM.iter().any(|folder| path.starts_with(folder))
    }
}

fn answer(executable: &str, library: &str, images: &[&str]) -> Answer {
    let (lib, name) = library.rsplit_once('/').unwrap();
    let images = images.iter().chain(&[
        "/usr/lib/libSystem.B.dylib",
        "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation",
    ]);
    Answer {
        executable: executable.into(),
        path: vec![
            format!("{lib}/{}.zip", name.replace('.', "")).into(),
            library.into(),
            format!("{library}/lib-dynload").into(),
        ],
        images: images.map(PathBuf::from).collect(),
        zones: [
            "/usr/share/zoneinfo",
            "/usr/lib/zoneinfo",
            "/usr/share/lib/zoneinfo",
            "/etc/zoneinfo",
        ]
        .map(PathBuf::from)
        .to_vec(),
        modules: Vec::new(),
    }
}

const SCRATCH: &str = "/private/var/folders/zz/abc123/T/ptc-mcp-Xy7";

/// A line for each; what repeats the one before is summed up.
fn golden(answer: &Answer, disk: &Mac) -> String {
    let needs = Needs::of(answer, disk).unwrap();
    let parameters = needs.parameters(Path::new(SCRATCH), disk).unwrap();
    let (mut golden, mut before, mut again) = (String::new(), None, 0);
    for (name, value) in parameters
        .iter()
        .map(Some)
        .chain([None])
        .map(|next| next.map_or(("", ""), |(name, value)| (name.as_str(), value.as_str())))
    {
        if before == Some(value) {
            again += 1;
            continue;
        }
        if again > 0 {
            writeln!(golden, "  and {again} more").unwrap();
            again = 0;
        }
        if !name.is_empty() {
            writeln!(golden, "{name}={value}").unwrap();
        }
        before = Some(value);
    }
    golden
}

const HOMEBREW: [(&str, &str); 4] = [
    ("/opt/homebrew/opt/openssl@3", "../Cellar/openssl@3/3.4.0"),
    ("/opt/homebrew/opt/readline", "../Cellar/readline/8.2.13"),
    ("/opt/homebrew/opt/xz", "../Cellar/xz/5.6.3"),
    (
        "/opt/homebrew/opt/python@3.13",
        "../Cellar/python@3.13/3.13.1",
    ),
];

const HOMEBREW_LIBRARIES: [&str; 4] = [
    "/opt/homebrew/opt/openssl@3/lib/libcrypto.3.dylib",
    "/opt/homebrew/opt/openssl@3/lib/libssl.3.dylib",
    "/opt/homebrew/opt/readline/lib/libreadline.8.dylib",
    "/opt/homebrew/opt/xz/lib/liblzma.5.dylib",
];

#[test]
fn homebrew() {
    let framework = "/opt/homebrew/opt/python@3.13/Frameworks/Python.framework/Versions/3.13";
    let python = format!("{framework}/Python");
    let mut images = HOMEBREW_LIBRARIES.to_vec();
    images.push(&python);
    let answer = answer(
        "/opt/homebrew/Cellar/python@3.13/3.13.1/Frameworks/Python.framework/Versions/3.13/Resources/Python.app/Contents/MacOS/Python",
        &format!("{framework}/lib/python3.13"),
        &images,
    );
    insta::assert_snapshot!(golden(&answer, &Mac::new(&HOMEBREW)));
}

#[test]
fn python_org_framework() {
    let framework = "/Library/Frameworks/Python.framework/Versions/3.13";
    let answer = answer(
        &format!("{framework}/Resources/Python.app/Contents/MacOS/Python"),
        &format!("{framework}/lib/python3.13"),
        &[
            &format!("{framework}/Python"),
            &format!("{framework}/lib/libssl.3.dylib"),
            &format!("{framework}/lib/libcrypto.3.dylib"),
        ],
    );
    insta::assert_snapshot!(golden(&answer, &Mac::new(&[])));
}

#[test]
fn system_framework() {
    let framework =
        "/Library/Developer/CommandLineTools/Library/Frameworks/Python3.framework/Versions/3.9";
    let answer = answer(
        &format!("{framework}/Resources/Python.app/Contents/MacOS/Python"),
        &format!("{framework}/lib/python3.9"),
        &[&format!("{framework}/Python3")],
    );
    insta::assert_snapshot!(golden(&answer, &Mac::new(&[])));
}

#[test]
fn pyenv() {
    let prefix = "/Users/me/.pyenv/versions/3.12.8";
    let answer = answer(
        &format!("{prefix}/bin/python3.12"),
        &format!("{prefix}/lib/python3.12"),
        &HOMEBREW_LIBRARIES,
    );
    insta::assert_snapshot!(golden(&answer, &Mac::new(&HOMEBREW)));
}

#[test]
fn uv() {
    let prefix = "/Users/Zoë (work)/.local/share/uv/python/cpython-3.13.1-macos-aarch64-none";
    let answer = answer(
        &format!("{prefix}/bin/python3.13"),
        &format!("{prefix}/lib/python3.13"),
        &[&format!("{prefix}/lib/libpython3.13.dylib")],
    );
    insta::assert_snapshot!(golden(&answer, &Mac::new(&[])));
}

#[test]
fn what_a_profile_cannot_name_is_said() {
    use std::os::unix::ffi::OsStrExt;
    let mac = Mac::new(&[("/a", "b"), ("/b", "a")]);
    let looped = answer("/a/python3", "/lib/python3.12", &[]);
    let error = Needs::of(&looped, &mac).unwrap_err();
    assert!(error.contains("too many links"), "{error}");

    let images: Vec<String> = (0..=FILES).map(|n| format!("/l/{n}.dylib")).collect();
    let images: Vec<&str> = images.iter().map(String::as_str).collect();
    let many = answer("/bin/python3", "/lib/python3.12", &images);
    let error = Needs::of(&many, &mac).unwrap_err();
    assert!(error.contains("more than the 48"), "{error}");

    let plain = answer("/bin/python3", "/lib/python3.12", &[]);
    let needs = Needs::of(&plain, &mac).unwrap();
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
    let error = needs.parameters(odd, &mac).unwrap_err();
    assert!(error.contains("not UTF-8"), "{error}");
}

#[test]
fn a_path_is_never_more_than_a_value() {
    let nasty = "/Users/a\")(allow default)\n;/x=y";
    let parameters = [("SCRATCH".to_owned(), nasty.to_owned())];
    let arguments = arguments_of(Path::new("/usr/bin/sandbox-exec"), &parameters);
    let expected = [
        "/usr/bin/sandbox-exec",
        "-p",
        PROFILE,
        "-D",
        &format!("SCRATCH={nasty}"),
    ];
    assert_eq!(arguments, expected);
}

#[test]
fn no_release_and_no_mac_takes_another_tool() {
    for mode in [
        SandboxMode::Namespaces,
        SandboxMode::Chroot,
        SandboxMode::None,
    ] {
        assert_eq!(chosen_by(mode), None, "{mode:?}");
    }
    if !cfg!(target_os = "macos") {
        assert_eq!(chosen_by(SandboxMode::Auto), None);
    }
}

// contract: B5
#[test]
fn what_the_tool_says_is_explained() {
    let interpreter = Interpreter {
        executable: "/opt/python".into(),
        version: (3, 13, 1),
    };
    let cases = [
        (
            "sandbox-exec: sandbox_apply: Operation not permitted\n",
            "ptc-mcp itself runs in a sandbox",
        ),
        (
            "sandbox-exec: <input string>:3:1: unbound variable: import\n",
            "does not know a rule",
        ),
        (
            "sandbox-exec: execvp() of '/opt/python' failed: Operation not permitted\n",
            "'/opt/python' does not start inside the sandbox",
        ),
        (
            "dyld[7]: Library not loaded: @rpath/libfoo.dylib\n",
            "does not start inside the sandbox (dyld[7]: Library not loaded",
        ),
        ("", "(it said nothing)"),
    ];
    for (stderr, expected) in cases {
        let text = explain(&interpreter, stderr);
        assert!(text.contains(expected), "{text}");
        assert!(text.ends_with(refusal::STILL), "{text}");
    }
}

#[test]
fn inherited_descriptors_are_closed_to_the_program() {
    use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
    let file = std::fs::File::open("/dev/null").unwrap();
    fcntl_setfd(&file, FdFlags::empty()).unwrap();
    close_on_exec("/dev/fd").unwrap();
    assert_eq!(fcntl_getfd(&file).unwrap(), FdFlags::CLOEXEC);
    assert!(close_on_exec("/nonexistent").is_err());
}

/// Of the profile's text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Word(String),
    Text(String),
    List(Vec<Form>),
}

impl Form {
    fn list(&self) -> &[Form] {
        match self {
            Form::List(forms) => forms,
            _ => &[],
        }
    }

    fn word(&self) -> &str {
        match self {
            Form::Word(word) => word,
            _ => "",
        }
    }
}

fn parse(text: &str) -> Result<Vec<Form>, String> {
    let mut open: Vec<Vec<Form>> = vec![Vec::new()];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let form = match c {
            ';' => {
                while rest.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            c if c.is_whitespace() => continue,
            '(' => {
                open.push(Vec::new());
                continue;
            }
            ')' => Form::List(
                open.pop()
                    .filter(|_| !open.is_empty())
                    .ok_or("one ) too many")?,
            ),
            '"' => {
                let mut text = String::new();
                while let Some(c) = rest.next_if(|c| *c != '"') {
                    text.push(c);
                }
                rest.next().ok_or("a text without an end")?;
                if text.contains('\\') {
                    return Err(format!("an escape in \"{text}\""));
                }
                Form::Text(text)
            }
            c if c.is_ascii_alphanumeric() => {
                let mut word = String::from(c);
                while let Some(c) =
                    rest.next_if(|c| c.is_ascii_alphanumeric() || "-*_".contains(*c))
                {
                    word.push(c);
                }
                Form::Word(word)
            }
            other => return Err(format!("'{other}' has no place in a profile")),
        };
        open.last_mut().ok_or("one ) too many")?.push(form);
    }
    match (open.pop(), open.is_empty()) {
        (Some(forms), true) => Ok(forms),
        _ => Err("a ( without an end".to_owned()),
    }
}

/// Paths that the text may name itself: the same on every Mac, and nobody's.
const FIXED: [&str; 15] = [
    "/",
    "/usr",
    "/usr/lib",
    "/System",
    "/System/Library",
    "/System/Library/dyld",
    "/System/Library/Frameworks",
    "/System/Library/PrivateFrameworks",
    "/System/Library/CoreServices",
    "/System/Library/CoreServices/SystemVersion.plist",
    "/dev",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "dyld-support.sb",
];

/// One rule: whether it allows, its operations, its filters.
struct Rule<'a> {
    allows: bool,
    operations: Vec<&'a str>,
    filters: Vec<(&'a str, String)>,
}

fn rules(forms: &[Form]) -> Result<Vec<Rule<'_>>, String> {
    let mut rules = Vec::new();
    for form in forms {
        let [kind, rest @ ..] = form.list() else {
            return Err(format!("not a rule: {form:?}"));
        };
        let allows = match kind.word() {
            "allow" => true,
            "deny" => false,
            "version" | "import" => continue,
            other => return Err(format!("'{other}' is no rule")),
        };
        let operations: Vec<&str> = rest
            .iter()
            .map(Form::word)
            .take_while(|word| !word.is_empty())
            .collect();
        let filters = rest[operations.len()..]
            .iter()
            .map(|filter| match filter.list() {
                [kind, Form::Text(text)] => Ok((kind.word(), text.clone())),
                [kind, Form::Word(word)] => Ok((kind.word(), word.clone())),
                [kind, Form::List(param)] => match param.as_slice() {
                    [Form::Word(word), Form::Text(name)] if word == "param" => {
                        Ok((kind.word(), format!("${name}")))
                    }
                    _ => Err(format!("a filter that is computed: {filter:?}")),
                },
                _ => Err(format!("a filter of an unknown shape: {filter:?}")),
            });
        rules.push(Rule {
            allows,
            filters: filters.collect::<Result<_, String>>()?,
            operations,
        });
    }
    Ok(rules)
}

/// What is wrong with a profile.
fn lint(text: &str) -> Vec<String> {
    let forms = match parse(text) {
        Ok(forms) => forms,
        Err(error) => return vec![error],
    };
    let rules = match rules(&forms) {
        Ok(rules) => rules,
        Err(error) => return vec![error],
    };
    let mut wrong = Vec::new();
    if parse("(version 1) (deny default)").unwrap() != forms[..forms.len().min(2)] {
        wrong.push("it does not begin with (version 1) (deny default)".to_owned());
    }
    let import = forms
        .iter()
        .position(|form| form.list().first().map(Form::word) == Some("import"));
    let before =
        &forms[2.min(forms.len())..import.unwrap_or(2).clamp(2.min(forms.len()), forms.len())];
    let denies = |form: &Form| form.list().first().map(Form::word) == Some("deny");
    if !before.iter().all(denies) || text.matches("(import").count() > 1 {
        wrong.push("something is imported after a rule that allows".to_owned());
    }
    // What comes after takes back from the import as well.
    let taken_back: Vec<&str> = forms[import.map_or(forms.len(), |at| at + 1)..]
        .iter()
        .filter(|form| {
            denies(form)
                && form
                    .list()
                    .iter()
                    .all(|form| form.list().is_empty() && !form.word().is_empty())
        })
        .flat_map(|form| form.list().iter().skip(1).map(Form::word))
        .collect();
    if taken_back
        .iter()
        .any(|operation| operation.starts_with("file-") && *operation != "file-link")
    {
        wrong.push("what the loader was given is taken back".to_owned());
    }
    for rule in rules.iter().filter(|rule| rule.allows) {
        if rule.filters.is_empty() {
            wrong.push(format!("allowed without a filter: {:?}", rule.operations));
        }
        for operation in &rule.operations {
            let filters = &rule.filters;
            let only = |allowed: &[(&str, &str)]| {
                filters.iter().all(|(kind, value)| {
                    allowed.iter().any(|(k, v)| {
                        kind == k
                            && (value == v
                                || value.starts_with('$')
                                    && v.ends_with('*')
                                    && value.starts_with(&v[..v.len() - 1]))
                    })
                })
            };
            let right = match *operation {
                "file-read*" | "file-test-existence" | "file-read-data" => true,
                "file-map-executable" => filters.iter().all(|(_, value)| value != "$SCRATCH"),
                "file-read-metadata" => filters.iter().all(|(kind, _)| *kind == "literal"),
                "file-write*" => only(&[("subpath", "$SCRATCH")]),
                "file-write-data" => only(&[("literal", "/dev/null")]),
                "process-exec" => only(&[("literal", "$EXECUTABLE")]) && filters.len() == 1,
                "process-info*" | "signal" => only(&[("target", "self")]),
                "system-socket" => only(&[("socket-domain", "AF_UNIX")]),
                "sysctl-read" => filters.iter().all(|(kind, value)| {
                    kind.starts_with("sysctl-name")
                        && !value.starts_with("kern.proc")
                        && value != "kern.hostname"
                        && (*kind == "sysctl-name" || value.starts_with("hw."))
                }),
                _ => false,
            };
            if !right {
                wrong.push(format!("{operation} may not be allowed so: {filters:?}"));
            }
            if operation.starts_with("file-read-data")
                && filters
                    .iter()
                    .any(|(kind, value)| *kind == "subpath" && value == "/")
            {
                wrong.push("everything is readable".to_owned());
            }
        }
    }
    for (kind, value) in rules.iter().flat_map(|rule| &rule.filters) {
        if matches!(*kind, "subpath" | "literal")
            && !value.starts_with('$')
            && !FIXED.contains(&value.as_str())
        {
            wrong.push(format!(
                "a path that is neither a parameter nor known: {value}"
            ));
        }
        if *kind == "subpath"
            && matches!(
                value.as_str(),
                "/" | "/usr" | "/System" | "/System/Library" | "/dev"
            )
        {
            wrong.push(format!("too much: everything below {value}"));
        }
    }
    // The last rule that matches wins: these come after whatever they take from.
    let last_allow = |operations: &[&str], value: &str| {
        rules.iter().rposition(|rule| {
            rule.allows
                && rule
                    .operations
                    .iter()
                    .any(|operation| operations.contains(operation))
                && rule
                    .filters
                    .iter()
                    .any(|(_, found)| found.starts_with(value))
        })
    };
    let denied_after = |after: Option<usize>, operation: &str, value: &str| {
        rules[after.map_or(0, |at| at + 1)..].iter().any(|rule| {
            !rule.allows
                && rule.operations.contains(&operation)
                && if value.is_empty() {
                    rule.filters.is_empty()
                } else {
                    rule.filters
                        .iter()
                        .any(|(_, found)| found.starts_with(value))
                }
        })
    };
    for operation in [
        "process-fork",
        "network*",
        "mach-lookup",
        "mach-register",
        "file-link",
    ] {
        if !denied_after(Some(0), operation, "") {
            wrong.push(format!("{operation} is not denied"));
        }
    }
    for number in ["SYS_statfs", "SYS_statfs64", "SYS_pathconf"] {
        if !denied_after(None, "syscall-unix", number) {
            wrong.push(format!("{number} is not denied"));
        }
    }
    let scratch = last_allow(&["file-read*", "file-map-executable"], "$");
    for operation in ["file-map-executable", "process-exec", "file-write-setugid"] {
        if !denied_after(scratch, operation, "$SCRATCH") {
            wrong.push(format!(
                "{operation} is not denied in the scratch directory"
            ));
        }
    }
    let library = last_allow(&["file-read*", "file-map-executable"], "$F");
    for operation in ["file-read*", "file-test-existence", "file-map-executable"] {
        if !denied_after(library, operation, "$HIDDEN") {
            wrong.push(format!(
                "{operation} is not denied for what others put into the library"
            ));
        }
    }
    wrong
}

// contract: B2
#[test]
fn the_profile_keeps_the_rules() {
    assert_eq!(lint(PROFILE), [""; 0]);
}

#[test]
fn every_parameter_is_used_and_given() {
    let mac = Mac::new(&[]);
    let answer = answer("/bin/python3", "/lib/python3.12", &[]);
    let needs = Needs::of(&answer, &mac).unwrap();
    let given = needs.parameters(Path::new(SCRATCH), &mac).unwrap();
    let names: BTreeSet<&str> = given.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), given.len(), "one is given twice");
    let forms = parse(PROFILE).unwrap();
    let rules = rules(&forms).unwrap();
    let used = rules.iter().flat_map(|rule| &rule.filters);
    let used: BTreeSet<&str> = used
        .filter_map(|(_, value)| value.strip_prefix('$'))
        .collect();
    assert_eq!(names, used);
}

/// The linter is worth something only if it finds what it is for.
#[test]
fn a_weaker_profile_is_noticed() {
    let changes: [(&str, &str, &str); 18] = [
        (
            "(deny file-link)",
            "(deny file-link file-test-existence)",
            "the loader was given",
        ),
        (
            "(deny nvram*)",
            "(allow signal (target self))",
            "imported after",
        ),
        ("(deny default)", "(allow default)", "does not begin"),
        ("(deny process-fork)", "", "process-fork is not denied"),
        (
            "(deny mach-lookup)",
            "(allow mach-lookup)",
            "allowed without a filter",
        ),
        (
            "(deny mach-lookup)",
            "(allow mach-lookup (global-name \"com.apple.x\"))",
            "mach-lookup may not",
        ),
        (
            "(deny network*)",
            "(allow network-outbound (remote ip))",
            "network-outbound may not",
        ),
        ("(deny file-link)", "", "file-link is not denied"),
        (
            "(syscall-number SYS_statfs64)",
            "",
            "SYS_statfs64 is not denied",
        ),
        (
            "(literal \"/dev\")",
            "(subpath \"/dev\")",
            "file-read-metadata may not",
        ),
        (
            "(literal \"/dev\")",
            "(literal \"/etc\")",
            "neither a parameter nor known: /etc",
        ),
        ("(subpath \"/usr/lib\")", "(subpath \"/usr\")", "too much"),
        (
            "(allow signal (target self))",
            "(allow signal)",
            "without a filter",
        ),
        (
            "(literal (param \"EXECUTABLE\")))\n(allow file",
            "(literal \"/bin/sh\"))\n(allow file",
            "process-exec may not",
        ),
        (
            "(deny file-map-executable process-exec file-write",
            "(deny process-exec file-write",
            "file-map-executable is not denied in the scratch",
        ),
        (
            "(sysctl-name \"kern.version\")",
            "(sysctl-name \"kern.hostname\")",
            "sysctl-read may not",
        ),
        (
            "(subpath (param \"SCRATCH\"))",
            "(subpath (param \"FOLDER_00\"))",
            "file-write* may not",
        ),
        ("(version 1)", "(version 1))", "too many"),
    ];
    for (from, to, expected) in changes {
        assert!(PROFILE.contains(from), "{from}");
        let found = lint(&PROFILE.replacen(from, to, 1)).join("; ");
        assert!(found.contains(expected), "{from} -> {to}: {found}");
    }
}
