//! The real binary over real pipes. One module a section of the contract; each test names its
//! clauses in a comment `contract: S1`.

#![allow(
    unreachable_pub,
    reason = "the harness's own interface; a test binary exports nothing"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "the rule about who spawns processes is the product's"
)]
#![allow(clippy::print_stdout, reason = "what a test measured")]

mod audit;
mod budgets;
mod chaos;
mod child_half;
mod client_rules;
mod command_line;
mod configuration;
mod differential;
mod faults;
mod habits;
mod isolation;
mod limits;
mod mistakes;
mod model;
mod outcome;
mod peer;
mod person;
mod pool;
mod processes;
mod program;
mod report;
mod results;
mod shutdown;
mod soak;
mod supervision;
mod support;
mod surface;
mod tidy;
mod transports;
mod watchdog;
mod web;
