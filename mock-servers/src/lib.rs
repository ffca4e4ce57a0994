//! Scriptable MCP servers for testing MCP clients.
//!
//! One [`Scenario`] (a YAML or JSON file, or built in a test) drives a server over stdio,
//! streamable HTTP or HTTP+SSE. It depends on no MCP library and **writes the wire by hand, so that
//! it can misspeak**: every [`Fault`] is one way in which real servers break.
//!
//! ```
//! use mock_servers::{Fault, Mock, Reply, Scenario, Tool};
//!
//! let tool = Tool::new("get_rows").replies([Reply::text("[1, 2]"), Reply::fault(Fault::crash())]);
//! let mut mock = Mock::http(Scenario::new().tool(tool).healthy_on_restart());
//! // … a client connects to mock.url() and calls the tool …
//! assert!(mock.journal().calls("get_rows").is_empty());
//! mock.start(); // again, after a crash, on the same port
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `scenario`, `fault`, `rule` | what a scenario can say |
//! | `build` | how a test says it |
//! | `play` | scenario + message → steps of an answer; no I/O |
//! | `compute`, `garble`, `message` | the text and the bytes of answers |
//! | `perform` | steps → a wire |
//! | `stdio`, `http` | the wires |
//! | `journal` | what reached the server |
//! | `mock` | starting servers from tests |

mod build;
mod compute;
pub mod fault;
mod garble;
mod http;
pub mod journal;
mod message;
mod mock;
mod name_or_map;
mod perform;
mod play;
mod rule;
pub mod run;
pub mod scenario;
mod stdio;

pub use fault::Fault;
pub use journal::{Entry, Event, Journal};
pub use mock::{Mock, StdioMock, mock_server_binary};
pub use rule::{At, Rule};
pub use scenario::{Before, Compute, Reply, Scenario, Tool, Transport};
