//! Drives mock servers over raw pipes and sockets, as no MCP library would.
//!
//! - `scenarios`: what a scenario file can say
//! - `named`: the scenarios that ship, each showing what the README says of it
//! - `stdio`: the healthy server over pipes
//! - `faults`: the faults that pipes can show
//! - `http`: streamable HTTP and its faults
//! - `sse`: HTTP+SSE and its faults

mod client;
mod faults;
mod http;
mod named;
mod scenarios;
mod sse;
mod stdio;
