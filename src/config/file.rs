//! The configuration as it is written: every key once, with its help and its default.
//!
//! The help becomes the description in the JSON Schema, the default is what an absent key means.
//! This module does not know what any key does, nor how keys bear on one another.

use super::read::{Entries, Found, choice, section};
use super::rules::Pattern;
use super::value::{Expandable, FilePath, Seconds, Whole};

section! {
    /// ptc-mcp's configuration.
    #[schemars(title = "ptc-mcp configuration")]
    File {
        /// The MCP servers whose tools programs may call.
        servers: Option<Vec<Found<Server>>>,
        /// Which tools may be called, how often, and with whose consent.
        tools: Option<Tools>,
        /// How programs run, and the limits they run within.
        execution: Option<Execution>,
        /// Whose rules hold besides the ones in this file.
        permissions: Option<Permissions>,
        /// The log of what programs did.
        audit: Option<Audit>,
    }
}

section! {
    /// One MCP server. `${VAR}` and `${VAR:-default}` are expanded in command, args, env, cwd, url
    /// and headers, from ptc-mcp's own environment; `$$` is a literal dollar.
    #[schemars(transform = what_a_server_needs)]
    Server {
        /// The server's part of its tools' names, `mcp__<name>__<tool>`.
        name: String,
        /// How to reach it: a program on stdin and stdout, streamable HTTP, or the older HTTP+SSE.
        #[schemars(extend("default" = TransportName::Stdio))]
        transport: TransportName,
        /// The program to start. Only for stdio, and needed there.
        command: Expandable,
        /// Its arguments. Only for stdio.
        args: Option<Vec<Found<Expandable>>>,
        /// Variables added to the minimal environment it gets. Only for stdio.
        env: Option<Entries<Expandable>>,
        /// The directory it starts in; ptc-mcp's own if absent. Only for stdio.
        cwd: Expandable,
        /// Where to reach it. Only for http and sse, and needed there.
        url: Expandable,
        /// Headers sent with every request. Only for http and sse.
        headers: Option<Entries<Expandable>>,
        /// Whether to use the server at all.
        enabled: bool = true,
        /// How long connecting may take, in seconds.
        connect_timeout_seconds: Seconds = 30_u64,
    }
}

fn what_a_server_needs(schema: &mut schemars::Schema) {
    let needs = serde_json::json!({
        "required": ["name"],
        "if": { "properties": { "transport": { "enum": ["http", "sse"] } }, "required": ["transport"] },
        "then": { "required": ["url"] },
        "else": { "required": ["command"] },
    });
    if let serde_json::Value::Object(needs) = needs {
        needs
            .into_iter()
            .for_each(|(word, value)| drop(schema.insert(word, value)));
    }
}

choice! {
    /// How a server is reached.
    pub(super) TransportName {
        /// A program that ptc-mcp starts and speaks with over stdin and stdout.
        Stdio = "stdio",
        /// Streamable HTTP.
        Http = "http",
        /// The HTTP+SSE transport of protocol version 2024-11-05.
        Sse = "sse",
    }
}

section! {
    /// Rules about tools. Patterns are globs over whole names, `mcp__<server>__<tool>`.
    #[schemars(extend("not" = { "required": ["allow", "block"] }))]
    Tools {
        /// Only tools that match may be called; an empty list allows none. Excludes block.
        allow: Vec<Found<Pattern>>,
        /// Tools that match may not be called. Excludes allow.
        block: Vec<Found<Pattern>>,
        /// Calls of tools that match are put to the person first.
        confirm: Vec<Found<Pattern>>,
        /// How many calls of the tools that match one program may make.
        limits: Entries<Whole<0>>,
    }
}

section! {
    /// How programs run.
    Execution {
        /// Wall-clock limit of a program, in seconds.
        timeout_seconds: Seconds = 120_u64,
        /// How much a program may print, and how much it may emit, in bytes of UTF-8.
        max_output_bytes: Whole<1> = 65_536_u64,
        /// What confines a program. `auto` is the platform's own; when it is not available,
        /// programs refuse to run.
        sandbox: SandboxMode = SandboxMode::Auto,
        /// How many tool calls a program may make.
        max_tool_calls: Whole<1> = 100_u64,
        /// How many of them may run at once; the others wait.
        max_concurrent_calls: Whole<1> = 8_u64,
        /// How long one tool call may take, in seconds.
        tool_call_timeout_seconds: Seconds = 60_u64,
        /// Whether a result ends with a line on the calls that were made.
        trace: Trace = Trace::Summary,
        /// The largest result of one tool call, in bytes of JSON.
        max_tool_result_bytes: Whole<1> = 16_777_216_u64,
        /// The memory a program may use, in bytes.
        max_memory_bytes: Whole<1> = 536_870_912_u64,
        /// What a program may write to its scratch directory, in bytes.
        max_scratch_bytes: Whole<1> = 67_108_864_u64,
        /// Interpreters kept ready, so that programs start sooner; 0 keeps none.
        pool: Whole<0> = 1_u64,
        /// How many programs may run at once; the others wait.
        max_programs: Whole<1> = 8_u64,
        /// The Python interpreter, 3.9 or newer; found by itself if absent.
        python: FilePath,
        /// Whether results carry structuredContent beside the text.
        structured_content: StructuredContent = StructuredContent::Auto,
    }
}

choice! {
    /// What confines a program.
    pub SandboxMode {
        /// The platform's own: seatbelt on macOS, namespaces (or chroot) on Linux.
        Auto = "auto",
        /// sandbox-exec with a deny-by-default profile; macOS.
        Seatbelt = "seatbelt",
        /// Kernel namespaces; Linux.
        Namespaces = "namespaces",
        /// A changed root, for containers in which ptc-mcp is root; Linux.
        Chroot = "chroot",
        /// No sandbox of the operating system.
        None = "none",
    }
}

choice! {
    /// What a result says about the calls that were made.
    pub Trace {
        /// How many calls, how many failed and how, and the time taken.
        Summary = "summary",
        /// Nothing.
        Off = "off",
    }
}

choice! {
    /// Whether results carry structuredContent.
    pub StructuredContent {
        /// Not for clients known to show it to the model in place of the text.
        Auto = "auto",
        /// For every client.
        Always = "always",
        /// For no client.
        Never = "never",
    }
}

section! {
    /// Whose rules hold besides the ones in this file.
    Permissions {
        /// Whether Claude Code's own permission rules hold inside programs it sends.
        claude_code: ClaudeCodeRules = ClaudeCodeRules::Honor,
    }
}

choice! {
    /// Whether Claude Code's permission rules hold inside programs.
    pub ClaudeCodeRules {
        /// They hold.
        Honor = "honor",
        /// They are not looked at.
        Ignore = "ignore",
    }
}

section! {
    /// The log of what programs did.
    Audit {
        /// Where to append one JSON line for each program and call; no log if absent.
        path: FilePath,
        /// How much of a call's arguments the log keeps.
        arguments: AuditArguments = AuditArguments::Hash,
    }
}

choice! {
    /// How much of a call's arguments the audit log keeps.
    pub AuditArguments {
        /// All of them.
        Full = "full",
        /// Their hash.
        Hash = "hash",
        /// Nothing.
        None = "none",
    }
}
