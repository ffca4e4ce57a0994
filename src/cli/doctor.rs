//! `ptc-mcp doctor`: whether programs would run here, behind what, and what was tried to make sure.

use std::fmt::Write;

use serde_json::{Value, json};

use super::Exit;
use super::render::{self, Probe, Style, plain};
use super::{commands, terminal};
use crate::config::Config;
use crate::sandbox::{Examination, Sandbox};

/// Exit status 1 when programs would be refused; a server that is down does not stop them.
pub(super) async fn doctor(config: &Config, origin: &str, json: bool) -> Exit {
    let sandbox = Sandbox::new(config.execution.clone());
    let probes = commands::or_interrupted(async {
        tokio::join!(sandbox.examine(), commands::probe_all(config))
    });
    let Some((examination, probes)) = probes.await else {
        return Exit::Interrupted;
    };
    if json {
        terminal::print(&format!("{:#}\n", as_json(&examination, origin, &probes)));
    } else {
        let style = commands::stdout_style();
        terminal::print(&as_text(&examination, origin, &probes, style));
    }
    if examination.ready() {
        Exit::Success
    } else {
        Exit::Failed
    }
}

fn as_json(examination: &Examination, origin: &str, probes: &[Probe]) -> Value {
    let mut value = json!(examination);
    value["ready"] = examination.ready().into();
    value["version"] = env!("CARGO_PKG_VERSION").into();
    value["config"] = origin.into();
    value["servers"] = probes.iter().map(render::probe_json).collect();
    value
}

fn as_text(examination: &Examination, origin: &str, probes: &[Probe], style: Style) -> String {
    let Examination {
        platform,
        kernel,
        interpreter,
        mode,
        backend,
        why,
        ..
    } = examination;
    let mut text = String::new();
    let mut line = |line: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    };
    line(format!(
        "ptc-mcp   {} on {platform}, {kernel}",
        env!("CARGO_PKG_VERSION")
    ));
    line(match interpreter {
        Some(found) => {
            format!(
                "python    {}  {}",
                found.version(),
                plain(&found.executable.to_string_lossy())
            )
        }
        None => format!("python    {}", style.bad("none that can be used")),
    });
    line(match backend {
        Some("none") => format!(
            "sandbox   {}",
            style.bad("none: programs run without a wall")
        ),
        Some(backend) if backend == mode => format!("sandbox   {backend}"),
        Some(backend) => format!("sandbox   {backend} (configured: {mode})"),
        None => format!(
            "sandbox   {} (configured: {mode})",
            style.bad("none that can be had")
        ),
    });
    if let Some(why) = why {
        line(format!("          {why}"));
    }
    if !examination.layers.is_empty() {
        line(format!("\n{}", style.title("Layers")));
    }
    let width = widest(examination.layers.iter().map(|layer| layer.name));
    for layer in &examination.layers {
        let state = if layer.enforced {
            style.good("on ")
        } else {
            style.bad("off")
        };
        line(format!("  {state}  {:width$}  {}", layer.name, layer.what));
    }
    if !examination.attacks.is_empty() {
        line(format!(
            "\n{}",
            style.title("Attacks, tried from inside just now")
        ));
    }
    let width = widest(examination.attacks.iter().map(|attack| attack.name));
    for attack in &examination.attacks {
        let state = if attack.stopped {
            style.good("stopped")
        } else {
            style.bad("OPEN   ")
        };
        let by = style.faint(&format!("{} ({})", attack.by, attack.how));
        line(format!("  {state}  {:width$}  {by}", attack.name));
    }
    line(format!("\n{}", style.title(&format!("Servers ({origin})"))));
    if probes.is_empty() {
        line("  none are configured and enabled".to_owned());
    }
    let width = widest(probes.iter().map(|probe| probe.server.as_str()));
    for probe in probes {
        line(format!("  {}", render::check_server(probe, width, style)));
    }
    line(String::new());
    line(match &examination.refusal {
        None => style.good("Programs run."),
        Some(refusal) => format!("{} {refusal}", style.bad("Programs are refused:")),
    });
    text
}

fn widest<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Attack, Layer};

    const PLAIN: Style = Style { colours: false };

    fn examination() -> Examination {
        Examination {
            platform: "linux x86_64".to_owned(),
            kernel: "Linux 6.1.0".to_owned(),
            interpreter: None,
            mode: "auto",
            backend: Some("namespaces"),
            why: None,
            layers: vec![
                Layer {
                    name: "mount namespace",
                    enforced: true,
                    what: "a root".to_owned(),
                },
                Layer {
                    name: "Landlock",
                    enforced: false,
                    what: "not offered".to_owned(),
                },
            ],
            attacks: vec![Attack {
                name: "start a process",
                stopped: true,
                by: "system-call filter",
                how: "EPERM".to_owned(),
            }],
            refusal: None,
        }
    }

    #[test]
    fn a_person_reads_it_at_a_glance() {
        let probes = [Probe {
            server: "hr".to_owned(),
            outcome: Err("no\nanswer".to_owned()),
        }];
        let text = as_text(&examination(), "config.yaml", &probes, PLAIN);
        let expected = format!(
            "ptc-mcp   {} on linux x86_64, Linux 6.1.0\n\
             python    none that can be used\n\
             sandbox   namespaces (configured: auto)\n\
             \n\
             Layers\n\
             \x20 on   mount namespace  a root\n\
             \x20 off  Landlock         not offered\n\
             \n\
             Attacks, tried from inside just now\n\
             \x20 stopped  start a process  system-call filter (EPERM)\n\
             \n\
             Servers (config.yaml)\n\
             \x20 failed  hr  no answer\n\
             \n\
             Programs run.\n",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn a_refusal_comes_last_and_whole() {
        let refused = Examination {
            backend: None,
            layers: vec![],
            attacks: vec![],
            refusal: Some("sandbox 'namespaces' is not available here.\n  fix: x".to_owned()),
            ..examination()
        };
        let text = as_text(&refused, "none", &[], PLAIN);
        assert!(
            text.contains("sandbox   none that can be had (configured: auto)\n"),
            "{text}"
        );
        assert!(!text.contains("Layers"));
        assert!(text.ends_with(
            "\nPrograms are refused: sandbox 'namespaces' is not available here.\n  fix: x\n"
        ));
        let json = as_json(&refused, "none", &[]);
        assert_eq!(
            (&json["ready"], &json["servers"]),
            (&json!(false), &json!([]))
        );
    }
}
