//! ptc-mcp: an MCP server that starts one confined Python process for each program that a model
//! wrote, and answers that process's tool calls from the user's other MCP servers.
//!
//! # The map
//!
//! ```text
//! main ── cli ─────────┐
//!          │           │
//!        server ───────┤             the MCP surface (rmcp's server side ends here)
//!          │           │
//!         Ptc ─────────┘             start, run programs, stop in order
//!          │
//!        engine ── report            one program, from its text to its report
//!      ┌───┼──── offer ────┐
//!  sandbox channel  gate   helpers   confinement · wire to the child · admission · introspection
//!      │             └──┬────┘
//!   watchdog         registry        what is callable now
//!                       ▲ published states
//!                   supervisor       the life of one server
//!                    │      │
//!              downstream  catalogue (rmcp's client side begins in downstream)
//!
//! permissions, consent and audit (the client's rules, the person's word, the log) stand beside
//! registry, for gate and engine; result, signature, search, config, json, scratch and tool stand below all;
//! arrows only go down
//! ```
//!
//! # Invariants
//!
//! * **The child is hostile.** Every bound on time, calls, concurrency, bytes and names is held in
//!   this process; the child's half (`channel/bootstrap.py`) is convenience only.
//! * **Tools are the only door.** The child has an empty environment, no credential and no
//!   connection; what it can reach, it reaches through [`gate`].
//! * **One supervisor owns each server.** It alone connects and reconnects, and it learns of a loss
//!   from the connection itself: nothing on a call's path can ask for a reconnect.
//! * **JSON stays text.** What a server sent is what the child parses: numbers of any size, float
//!   texts and key order pass unchanged. Trees are built only to compare or to validate.
//! * **Hostile bytes become values in functions without I/O** ([`channel::frame`],
//!   `downstream::wire`, [`result`]), so that they can be table-tested and fuzzed.
//!
//! # One `execute_program` call, in a straight line
//!
//! | # | module | takes | hands on |
//! | --- | --- | --- | --- |
//! | 1 | [`server`] | `tools/call`, its cancellation | [`Program`] |
//! | 2 | [`engine`] | the program | waits for its turn, for the servers it names, for a child that stands: one of the pool's (`engine/pool.rs`), or the next to be ready |
//! | 3 | [`sandbox`] | limits | [`sandbox::Child`]: pipes, process group, scratch directory |
//! | 4 | [`offer`], [`channel`] | `start` with the callable names; the whole program is checked | frames to the child; messages from it |
//! | 5 | [`gate`] | `call` | one record, the person's word on it, one unit of budget, one slot, one deadline |
//! | 6 | [`registry`] | the tool's name | a route to a live connection, or why there is none |
//! | 7 | [`downstream`] | the server's own tool name, arguments | the result as the server wrote it, or what failed |
//! | 8 | [`result`] | that text, the declared schema, the limit | the value's JSON text, or a [`tool::ToolError`] |
//! | 9 | [`engine`] | the outcome | `return` or `raise` to the child |
//! | 10 | [`engine`] | `done`, exit, deadline, cancellation, a broken frame | kills the group, [`report::Report`]; the pool reaps |
//! | 11 | [`report`], [`server`] | the report | the text, the structured form, `isError` |
//!
//! [`supervisor`] is not on that line: only its last word is, in what [`registry`] reads.
//!
//! # What each module may not know
//!
//! * [`engine`]: rmcp, transports, how a child is confined.
//! * [`gate`]: the child and its channel.
//! * [`sandbox`]: channel messages, tools, MCP.
//! * [`permissions`], [`audit`]: what follows from what they say or write.
//! * [`consent`]: how a question reaches a person.
//! * [`registry`], [`catalogue`]: how a server is reached.
//! * [`supervisor`]: programs, budgets, results.
//! * [`downstream`]: filters, budgets, backoff.
//! * [`result`]: who called, how a result was fetched, async.
//! * [`signature`]: tools; it reads schemas. [`search`]: what it ranks. [`json`]: MCP.
//!   [`pipe`]: what passes through it. [`scratch`]: who filled it.
//! * [`report`]: where its text is sent.
//! * [`config`]: Tokio, rmcp.
//!
//! Processes are spawned in three files: `sandbox/`, `downstream/stdio.rs` and `watchdog.rs`.

pub mod audit;
pub mod catalogue;
pub mod channel;
pub mod cli;
pub mod config;
pub mod consent;
pub mod downstream;
pub mod engine;
/// The laws that fuzzing checks. No part of the product.
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod gate;
pub mod helpers;
pub mod json;
pub mod offer;
pub mod permissions;
pub mod pipe;
pub mod registry;
pub mod report;
pub mod result;
pub mod sandbox;
pub mod scratch;
pub mod search;
pub mod server;
pub mod signature;
pub mod supervisor;
pub mod tool;
pub mod watchdog;

mod ptc;

pub use engine::{Program, Turn};
pub use gate::Progress;
pub use ptc::Ptc;
