//! How a fault changes the steps that deliver an answer.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fault::{EndlessKind, Fault, OversizedShape, When};
use crate::garble;
use crate::message::{Body, notification};

use super::Step;

/// The steps that deliver the answer, as the fault has them.
pub(super) fn distort(id: &str, body: &Body, fault: Option<&Fault>) -> Vec<Step> {
    let answer = body.answer(id);
    let Some(fault) = fault else {
        return vec![Step::Answer(answer)];
    };
    match fault {
        Fault::Crash(crash) => match crash.when {
            When::Before => vec![Step::Crash(crash.clone())],
            When::Half => vec![Step::Half(answer), Step::Crash(crash.clone())],
            When::After => vec![Step::Answer(answer), Step::Crash(crash.clone())],
        },
        Fault::Hang(hang) => vec![Step::Hang { deaf: hang.deaf }],
        Fault::Slow(slow) => {
            let silence = Step::Wait(Duration::from_millis(slow.first_byte_ms));
            let send = match slow.bytes_per_second {
                Some(rate) => Step::Drip(answer, rate.max(1)),
                None => Step::Answer(answer),
            };
            vec![silence, send]
        }
        Fault::Oversized(oversized) if oversized.shape == OversizedShape::EndlessLine => {
            // Half of its double is the opening itself, in a frame that is never finished.
            let opening = answer[..answer.len() - 1].to_vec();
            vec![
                Step::Half([opening.clone(), opening].concat()),
                Step::Endless {
                    unit: vec![b'x'; 1 << 16],
                    framed: false,
                    pause: Duration::ZERO,
                },
            ]
        }
        Fault::Garbage(garbage) => garble::garbage(garbage, id, body),
        Fault::WrongId(wrong) => {
            let other = wrong
                .id
                .as_ref()
                .map_or_else(|| r#""nobody-asked-this""#.to_owned(), Value::to_string);
            let mut steps = vec![Step::Message(body.answer(&other))];
            if wrong.then_right {
                steps.push(Step::Answer(answer));
            }
            steps
        }
        Fault::Duplicate(duplicate) => {
            vec![Step::Answer(answer); usize::try_from(duplicate.times).unwrap_or(2)]
        }
        Fault::Late(late) => {
            let wait = match late.after_ms {
                Some(ms) => Step::Wait(Duration::from_millis(ms)),
                None => Step::AwaitCancel,
            };
            vec![wait, Step::AnswerRegardless(answer)]
        }
        Fault::Noise(noise) if noise.glued => {
            vec![Step::Answer([garble::noise(noise), answer].concat())]
        }
        Fault::Noise(noise) => vec![Step::Raw(garble::noise(noise)), Step::Answer(answer)],
        Fault::StderrFlood(flood) => {
            vec![Step::Stderr(garble::flood(flood)), Step::Answer(answer)]
        }
        Fault::CloseStdin(_) => vec![Step::CloseStdin, Step::Answer(answer)],
        Fault::CloseStdout(_) => vec![Step::CloseStdout, Step::Answer(answer)],
        Fault::EndlessStream(endless) => {
            let log = json!({ "level": "info", "data": "still here" });
            let (unit, framed, pause) = match endless.kind {
                EndlessKind::Comments => (b": still here\n\n".to_vec(), false, 100),
                EndlessKind::Notifications => {
                    (notification("notifications/message", Some(&log)), true, 100)
                }
                EndlessKind::OneEvent => (
                    format!("data: {}\n", "x".repeat(1 << 16)).into_bytes(),
                    false,
                    0,
                ),
            };
            vec![Step::Endless {
                unit,
                framed,
                pause: Duration::from_millis(pause),
            }]
        }
        _ => vec![Step::Answer(answer)],
    }
}
