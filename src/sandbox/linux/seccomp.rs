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
    /// Where the part of the address space begins that only the main thread's stack lies in.
    pub(super) stack: u64,
}

/// How far below the end of the address space a main thread's stack may begin, by chance.
const fn scattered(architecture: Architecture) -> u64 {
    match architecture {
        Architecture::X86_64 => 16 << 30,
        Architecture::Aarch64 => 1 << 30,
    }
}

/// Between where stacks may end and where mappings may begin the kernel leaves 1 MiB at least.
const GAP: u64 = 1 << 20;

/// Where stacks begin, found by an address on one and one that was mapped. Stacks lie at the end of the
/// address space, whose size is a power of two, and the kernel keeps what is mapped without an address
/// below them. Without chance (a debugger's doing, or a setting of the host's) both lie closer to the
/// end, and so does that mapping.
pub(super) fn stack_from(
    architecture: Architecture,
    on_a_stack: u64,
    mapped: u64,
    stack_bytes: u64,
) -> u64 {
    let end = on_a_stack.checked_next_power_of_two().unwrap_or(u64::MAX);
    let lowest = end - stack_bytes - GAP / 2;
    let by_chance = lowest - scattered(architecture);
    if mapped < by_chance {
        by_chance
    } else {
        lowest
    }
}

const KILL_PROCESS: u32 = 0x8000_0000;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
/// The call is not made, and comes back as if it had succeeded.
const FEIGN: u32 = ERRNO;
const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

// Opcodes: load a word at an offset, a constant, or what was stored; and, add, jumps, return. `X` is
// the second register.
const LOAD: u16 = 0x20;
const LOAD_CONSTANT: u16 = 0x00;
const LOAD_STORED: u16 = 0x60;
const STORE: u16 = 0x02;
const TO_X: u16 = 0x07;
const AND: u16 = 0x54;
const ADD_X: u16 = 0x0c;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ABOVE: u16 = 0x25;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_AT_LEAST_X: u16 = 0x3d;
const RETURN: u16 = 0x06;

/// Stands in a jump for "the check fails" until it is known how far that is.
const FAILS: u8 = u8::MAX;

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
            Self::Rule(Rule::Answer(errno)) => Some(ERRNO | errno),
            Self::Rule(Rule::If(_) | Rule::Ways { .. }) => None,
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
            (None, Outcome::Rule(Rule::If(ways))) => judge(&[], ways, &[], values),
            (
                None,
                Outcome::Rule(Rule::Ways {
                    always,
                    allowed,
                    feigned,
                }),
            ) => judge(always, allowed, feigned, values),
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
            plain(JUMP, lower.len() as u32),
        ],
    };
    program.extend(lower);
    program.extend(upper);
    program
}

/// Allows or feigns the call if what must always hold does, and all checks of any one way.
fn judge(
    always: &[Check],
    allowed: &[&[Check]],
    feigned: &[&[Check]],
    values: Values,
) -> Vec<Instruction> {
    let all = |checks: &[Check]| -> Vec<Instruction> {
        let each = checks.iter().map(|check| steps(check, values));
        each.flatten().collect()
    };
    let mut program = Vec::new();
    let allowed = allowed.iter().map(|way| (way, ALLOW));
    let feigned = feigned.iter().map(|way| (way, FEIGN));
    for (way, outcome) in allowed.chain(feigned) {
        let mut checks = all(way);
        checks.push(end(outcome));
        // A check that fails goes on behind this way.
        settle(&mut checks, 0);
        program.extend(checks);
    }
    let mut first = all(always);
    // There it goes to what stands behind all ways.
    settle(&mut first, program.len());
    first.extend(program);
    first.push(end(ERRNO | EPERM));
    first
}

/// Has failing checks go `further` than behind these ones.
fn settle(checks: &mut [Instruction], further: usize) {
    let length = checks.len();
    for (index, step) in checks.iter_mut().enumerate() {
        let behind =
            u8::try_from(length - index - 1 + further).expect("a jump reaches over every rule");
        for over in [&mut step.jump_true, &mut step.jump_false] {
            if *over == FAILS {
                *over = behind;
            }
        }
    }
}

/// The instructions of one check: it holds if they run to their end.
fn steps(check: &Check, values: Values) -> Vec<Instruction> {
    let low = |argument: u8| load(ARGUMENTS + 8 * u32::from(argument));
    let high = |argument: u8| load(ARGUMENTS + 8 * u32::from(argument) + 4);
    let equal = |value| jump(JUMP_EQUAL, value, 0, FAILS);
    match *check {
        Check::Is(argument, value) => vec![low(argument), equal(value)],
        Check::Bits(argument, mask, value) => {
            vec![low(argument), plain(AND, mask), equal(value)]
        }
        Check::Null(argument) => vec![low(argument), equal(0), high(argument), equal(0)],
        Check::OwnPid(argument) => vec![low(argument), equal(values.own_pid)],
        Check::Executable(argument) => vec![low(argument), equal(values.executable)],
        Check::BelowStack(address, length) => {
            let (limit_low, limit_high) = (values.stack as u32, (values.stack >> 32) as u32);
            // A 64-bit sum out of 32-bit ones. That of the upper halves can overflow only where the
            // kernel refuses the address or the length itself.
            vec![
                low(length),
                plain(TO_X, 0),
                low(address),
                plain(ADD_X, 0),
                plain(STORE, 0),
                // The carry.
                jump(JUMP_AT_LEAST_X, 0, 2, 0),
                plain(LOAD_CONSTANT, 1),
                plain(JUMP, 1),
                plain(LOAD_CONSTANT, 0),
                plain(TO_X, 0),
                high(length),
                plain(ADD_X, 0),
                plain(TO_X, 0),
                high(address),
                plain(ADD_X, 0),
                jump(JUMP_ABOVE, limit_high, FAILS, 0),
                jump(JUMP_EQUAL, limit_high, 0, 2),
                plain(LOAD_STORED, 0),
                jump(JUMP_ABOVE, limit_low, FAILS, 0),
            ]
        }
    }
}

fn load(offset: u32) -> Instruction {
    plain(LOAD, offset)
}

fn plain(code: u16, k: u32) -> Instruction {
    jump(code, k, 0, 0)
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
    plain(RETURN, value)
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
