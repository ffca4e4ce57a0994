//! Rules about the repository itself: which module may import which, and which clauses of the
//! contract no test names yet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The contract's sections, and how many clauses each has.
const SECTIONS: [(&str, u32); 9] = [
    ("S", 12),
    ("C", 7),
    ("P", 11),
    ("R", 11),
    ("D", 6),
    ("B", 7),
    ("T", 1),
    ("M", 5),
    ("A", 5),
];

/// Clauses that are not built yet. One that a test names must leave this list.
const OPEN: [&str; 0] = [];

/// Arrows only go down: what each module may import. A module that is not here may import nothing.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "config",
            "consent",
            "downstream",
            "gate",
            "helpers",
            "ptc",
            "registry",
            "report",
            "sandbox",
            "server",
            "supervisor",
            "tool",
            "watchdog",
        ],
    ),
    (
        "server",
        &[
            "config",
            "consent",
            "gate",
            "helpers",
            "permissions",
            "ptc",
            "registry",
            "report",
            "supervisor",
            "tool",
        ],
    ),
    (
        "ptc",
        &[
            "config",
            "engine",
            "gate",
            "registry",
            "report",
            "sandbox",
            "supervisor",
            "watchdog",
        ],
    ),
    (
        "engine",
        &[
            "audit",
            "channel",
            "config",
            "consent",
            "gate",
            "helpers",
            "offer",
            "permissions",
            "registry",
            "report",
            "result",
            "sandbox",
            "tool",
        ],
    ),
    (
        "report",
        &["audit", "channel", "config", "gate", "result", "sandbox"],
    ),
    ("helpers", &["registry", "search", "supervisor", "tool"]),
    ("offer", &["channel", "registry", "supervisor", "tool"]),
    (
        "gate",
        &[
            "audit",
            "catalogue",
            "config",
            "consent",
            "downstream",
            "permissions",
            "registry",
            "result",
            "tool",
        ],
    ),
    ("audit", &["config"]),
    ("consent", &["tool"]),
    ("permissions", &["tool"]),
    ("registry", &["supervisor", "tool"]),
    ("supervisor", &["catalogue", "config", "downstream"]),
    (
        "catalogue",
        &["config", "downstream", "result", "signature", "tool"],
    ),
    ("downstream", &["config", "result", "tool", "watchdog"]),
    ("sandbox", &["channel", "config", "scratch", "watchdog"]),
    ("channel", &[]),
    ("search", &[]),
    ("signature", &[]),
    ("result", &["tool"]),
    ("config", &["tool"]),
    ("watchdog", &["scratch"]),
    ("scratch", &[]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Every file with one of these endings below a folder.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(listing) = std::fs::read_dir(folder) else {
        return found;
    };
    for entry in listing.flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            found.extend(files(&path, endings));
        } else if endings
            .iter()
            .any(|ending| path.to_string_lossy().ends_with(ending))
        {
            found.push(path);
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
}

#[test]
fn arrows_only_go_down() {
    let src = root().join("src");
    let mut wrong = Vec::new();
    for file in files(&src, &[".rs"]) {
        let place = file.strip_prefix(&src).unwrap();
        let module = place
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_str()
            .unwrap();
        let module = module.trim_end_matches(".rs");
        // The laws that fuzzing asserts reach everywhere, and are in no product.
        if matches!(module, "main" | "lib" | "fuzzing") || place.ends_with("fuzzing.rs") {
            continue;
        }
        let allowed = LAYERS
            .iter()
            .find(|(name, _)| *name == module)
            .map_or(&[][..], |(_, may)| may);
        let text = std::fs::read_to_string(&file).unwrap();
        // Tests may reach further: they build what they need.
        let code = text.split("#[cfg(test)]").next().unwrap();

        for line in code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
        {
            for used in line.split("crate::").skip(1) {
                let names: Vec<&str> = match used.strip_prefix('{') {
                    Some(list) => list
                        .split(',')
                        .filter_map(|item| words(item).next())
                        .collect(),
                    None => words(used).next().into_iter().collect(),
                };
                for used in names {
                    let used = match used {
                        "Ptc" => "ptc",
                        "Program" | "Turn" => "engine",
                        "Progress" => "gate",
                        used => used,
                    };
                    let known = LAYERS.iter().any(|(name, _)| *name == used);
                    let through_root = matches!((module, used), ("cli" | "server", "engine"));
                    if known && used != module && !allowed.contains(&used) && !through_root {
                        wrong.push(format!(
                            "{}: {module} may not import {used}",
                            place.display()
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "the list is for the one who runs the test"
)]
fn every_clause_is_named_by_a_test() {
    let mut named: BTreeSet<String> = BTreeSet::new();
    for folder in [
        "src",
        "tests",
        "mock-servers",
        "escape-corpus",
        "fuzz",
        "benches",
    ] {
        for file in files(&root().join(folder), &[".rs", ".py", ".sh"]) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            for line in text.lines() {
                if let Some((_, clauses)) = line.split_once("contract: ") {
                    named.extend(words(clauses).map(str::to_owned));
                }
            }
        }
    }
    let mut missing: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (section, count) in SECTIONS {
        for clause in (1..=count).map(|n| format!("{section}{n}")) {
            let open = OPEN.contains(&clause.as_str());
            assert!(
                !(open && named.contains(&clause)),
                "{clause} is tested: take it out of OPEN"
            );
            if !named.contains(&clause) {
                missing.entry(section).or_default().push(clause);
            }
        }
    }
    for (section, clauses) in &missing {
        println!("no test names, of section {section}: {}", clauses.join(" "));
    }
    let unexpected: Vec<&String> = missing
        .values()
        .flatten()
        .filter(|clause| !OPEN.contains(&clause.as_str()))
        .collect();
    assert!(
        unexpected.is_empty(),
        "clauses that no test names: {unexpected:?}"
    );
}

// contract: B7
#[test]
fn a_backend_is_known_to_the_sandbox_and_the_configuration_only() {
    let src = root().join("src");
    for file in files(&src, &[".rs"]) {
        let place = file.strip_prefix(&src).unwrap();
        if place.starts_with("sandbox") || place.starts_with("config") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for name in ["SandboxMode", "seatbelt", "namespaces", "chroot"] {
            // The architecture's own text may speak of them.
            let code = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let found = code.into_iter().find(|line| line.contains(name));
            assert_eq!(found, None, "{} names a backend: {name}", place.display());
        }
    }
}

#[test]
fn the_readme_and_the_example_configuration_agree_on_limits() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let example = std::fs::read_to_string(root().join("config.example.yaml")).unwrap();
    let section = readme
        .split("\n## Limits\n")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let mut rows = 0;
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (key, default) = (cells[1].trim_matches('`'), cells[2]);
        let line = example
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{key}:")))
            .unwrap_or_else(|| panic!("{key} stands in config.example.yaml"));
        let value = line
            .split(':')
            .nth(1)
            .unwrap()
            .split('#')
            .next()
            .unwrap()
            .trim();
        assert_eq!(value, default, "{key}");
        rows += 1;
    }
    assert_eq!(rows, 10);
}
