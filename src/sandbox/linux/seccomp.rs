//! The system-call filter: from the policy in `calls.rs` to a classic BPF program.
//!
//! An allow list. A call that is known and not allowed gets EPERM, which reads well in Python; a
//! number that the table does not know gets ENOSYS, so that a C library falls back to an older
//! call. Pure: nothing here talks to the kernel.

use super::calls::{self, Call, Check, Rule};
use super::sys::Instruction;

/// A processor architecture with its own call numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    pub(super) const NATIVE: Option<Self> = if cfg!(target_arch = "x86_64") {
        Some(Self::X86_64)
    } else if cfg!(target_arch = "aarch64") {
        Some(Self::Aarch64)
    } else {
        None
    };

    /// `AUDIT_ARCH_*`: what the kernel tells a filter. A 32-bit call shows another value.
    fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }

    fn number(self, call: &Call) -> Option<u32> {
        match self {
            Self::X86_64 => call.x86_64,
            Self::Aarch64 => call.aarch64,
        }
    }

    /// The numbers that the table knows, as ranges of first and last.
    fn known(self) -> &'static [(u32, u32)] {
        match self {
            Self::X86_64 => &[(0, 334), (424, calls::NEWEST)],
            Self::Aarch64 => &[(0, 243), (260, 294), (424, calls::NEWEST)],
        }
    }
}

/// What is only known at run time and stands in the arguments of allowed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Values {
    /// The child's own process id, as itself sees it: the only one that it may signal.
    pub(super) own_pid: u32,
    /// The descriptor that may be executed. It lies above the limit of open files and is closed by
    /// the exec, so that it can never exist again.
    pub(super) executable: u32,
}

const KILL_PROCESS: u32 = 0x8000_0000;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

// Opcodes: load a word at an offset, and, jumps, return.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// What is done about the calls from `first` on, up to the next range.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: u32,
    outcome: Outcome,
}

#[derive(Debug, Clone, Copy)]
enum Outcome {
    Refuse(u32),
    Rule(&'static Rule),
}

impl Outcome {
    /// The value that ends the filter whatever the arguments are.
    fn constant(self) -> Option<u32> {
        match self {
            Self::Refuse(errno) => Some(ERRNO | errno),
            Self::Rule(Rule::Allow) => Some(ALLOW),
            Self::Rule(Rule::Fails(errno)) => Some(ERRNO | errno),
            Self::Rule(Rule::If(_)) => None,
        }
    }
}

/// The whole filter.
pub(super) fn program(architecture: Architecture, values: Values) -> Vec<Instruction> {
    let mut program = vec![
        load(ARCHITECTURE),
        jump(JUMP_EQUAL, architecture.audit(), 1, 0),
        end(KILL_PROCESS),
        load(NUMBER),
    ];
    program.extend(search(&ranges(architecture), values));
    program
}

/// Every number's outcome, neighbours with the same one merged.
fn ranges(architecture: Architecture) -> Vec<Range> {
    let mut rules: Vec<(u32, &'static Rule)> = calls::TABLE
        .iter()
        .filter_map(|call| Some((architecture.number(call)?, &call.rule)))
        .collect();
    rules.sort_by_key(|(number, _)| *number);
    let mut ranges: Vec<Range> = Vec::new();
    let mut add = |first, outcome: Outcome| {
        let same = ranges.last().is_some_and(|last: &Range| {
            last.outcome.constant().is_some() && last.outcome.constant() == outcome.constant()
        });
        if !same {
            ranges.push(Range { first, outcome });
        }
    };
    for &(first, last) in architecture.known() {
        for number in first..=last {
            let rule = rules.binary_search_by_key(&number, |(number, _)| *number);
            add(
                number,
                match rule {
                    Ok(index) => Outcome::Rule(rules[index].1),
                    Err(_) => Outcome::Refuse(EPERM),
                },
            );
        }
        add(last + 1, Outcome::Refuse(ENOSYS));
    }
    ranges
}

/// A binary search over the ranges; the number is in the accumulator.
fn search(ranges: &[Range], values: Values) -> Vec<Instruction> {
    if let [range] = ranges {
        return match (range.outcome.constant(), range.outcome) {
            (Some(value), _) => vec![end(value)],
            (None, Outcome::Rule(Rule::If(ways))) => judge(ways, values),
            (None, _) => vec![end(ERRNO | EPERM)],
        };
    }
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let Some(Range { first, .. }) = upper.first().copied() else {
        return Vec::new();
    };
    let (lower, upper) = (search(lower, values), search(upper, values));
    let mut program = match u8::try_from(lower.len()) {
        Ok(over) => vec![jump(JUMP_AT_LEAST, first, over, 0)],
        // A conditional jump reaches 255 instructions, an unconditional one everything.
        Err(_) => vec![
            jump(JUMP_AT_LEAST, first, 0, 1),
            Instruction {
                code: JUMP,
                jump_true: 0,
                jump_false: 0,
                k: lower.len() as u32,
            },
        ],
    };
    program.extend(lower);
    program.extend(upper);
    program
}

/// Allows the call if all checks of any one way hold.
fn judge(ways: &[&[Check]], values: Values) -> Vec<Instruction> {
    let mut program = Vec::new();
    for way in ways {
        let mut checks: Vec<Instruction> = Vec::new();
        for check in *way {
            checks.extend(steps(check, values));
        }
        checks.push(end(ALLOW));
        // A check that fails goes on behind this way.
        let length = checks.len();
        for (index, step) in checks.iter_mut().enumerate() {
            if step.code == JUMP_EQUAL {
                step.jump_false = (length - index - 1) as u8;
            }
        }
        program.extend(checks);
    }
    program.push(end(ERRNO | EPERM));
    program
}

/// The instructions of one check; each of its jumps goes on if it holds.
fn steps(check: &Check, values: Values) -> Vec<Instruction> {
    let low = |argument: u8| load(ARGUMENTS + 8 * u32::from(argument));
    let high = |argument: u8| load(ARGUMENTS + 8 * u32::from(argument) + 4);
    let equal = |value| jump(JUMP_EQUAL, value, 0, 0);
    match *check {
        Check::Is(argument, value) => vec![low(argument), equal(value)],
        Check::Bits(argument, mask, value) => vec![
            low(argument),
            Instruction {
                code: AND,
                jump_true: 0,
                jump_false: 0,
                k: mask,
            },
            equal(value),
        ],
        Check::Null(argument) => vec![low(argument), equal(0), high(argument), equal(0)],
        Check::OwnPid(argument) => vec![low(argument), equal(values.own_pid)],
        Check::Executable(argument) => vec![low(argument), equal(values.executable)],
    }
}

fn load(offset: u32) -> Instruction {
    Instruction {
        code: LOAD,
        jump_true: 0,
        jump_false: 0,
        k: offset,
    }
}

fn jump(code: u16, k: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction {
        code,
        jump_true,
        jump_false,
        k,
    }
}

fn end(value: u32) -> Instruction {
    Instruction {
        code: RETURN,
        jump_true: 0,
        jump_false: 0,
        k: value,
    }
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
