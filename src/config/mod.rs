//! The configuration as it is meant: validated, defaults filled in, variables expanded, patterns
//! compiled.
//!
//! After [`Config::load`] nobody asks whether a key was there or made sense. The module reads one
//! file and the environment it is handed; it prints nothing and starts nothing.

mod expand;
mod file;
mod mask;
mod mistake;
#[cfg(any(test, fuzzing))]
mod print;
mod read;
mod rules;
mod servers;
mod tree;
mod value;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::mistake::{Mistakes, Place};
use self::read::Read as _;

pub use self::expand::{Secret, Unexpanded, expand};
pub use self::file::{AuditArguments, ClaudeCodeRules, SandboxMode, StructuredContent, Trace};
pub use self::mask::Mask;
pub use self::mistake::ConfigError;
#[cfg(any(test, fuzzing))]
pub(crate) use self::print::print;
pub use self::rules::{Limit, ToolRules};
pub use self::servers::{ServerConfig, Transport};

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "config.yaml";

/// No configuration is larger. What is (a device, the wrong file) is not read to its end.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Everything that the person decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub servers: Vec<ServerConfig>,
    pub tools: ToolRules,
    pub execution: Execution,
    pub permissions: Permissions,
    pub audit: Audit,
}

/// How programs run; each field is the key of its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    pub timeout: Duration,
    pub max_output_bytes: usize,
    pub sandbox: SandboxMode,
    pub max_tool_calls: u64,
    pub max_concurrent_calls: usize,
    pub tool_call_timeout: Duration,
    pub trace: Trace,
    pub max_tool_result_bytes: usize,
    pub max_memory_bytes: u64,
    pub max_scratch_bytes: u64,
    pub pool: usize,
    pub max_programs: usize,
    pub python: Option<PathBuf>,
    pub structured_content: StructuredContent,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Permissions {
    pub claude_code: ClaudeCodeRules,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    pub path: Option<PathBuf>,
    pub arguments: AuditArguments,
}

impl Default for Config {
    fn default() -> Self {
        Self::meant(file::File::default(), &|_| None, &mut Mistakes::default())
    }
}

impl Config {
    /// Reads the file that was named, or `config.yaml` in the working directory, which may be
    /// absent.
    pub fn load(
        named: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        Self::load_or(named, Path::new(DEFAULT_FILE), env)
    }

    fn load_or(
        named: Option<&Path>,
        default: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let path = named.unwrap_or(default);
        match text_of(path) {
            Ok(text) => Self::parse(&text, path, env),
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            Err(error) => {
                let fact = format!("the configuration cannot be read: {error}.");
                let remedy = match error.kind() {
                    io::ErrorKind::NotFound => {
                        "Correct the path given by --config or PTC_MCP_CONFIG; without either, config.yaml in the working directory is read if it is there."
                    }
                    io::ErrorKind::InvalidData => "Save the file as UTF-8.",
                    _ => {
                        "Make it a file that ptc-mcp may read, or name another by --config or PTC_MCP_CONFIG."
                    }
                };
                Err(ConfigError::whole_file(path, fact, remedy))
            }
        }
    }

    /// Reads a configuration from its text; `origin` is what the report calls the file.
    pub fn parse(
        text: &str,
        origin: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut mistakes = Mistakes::default();
        let written = match tree::parse(text) {
            Ok(node) => {
                let root = read::root(&node);
                Option::<file::File>::read(&node, &root, &mut mistakes).flatten()
            }
            Err(tree::NotYaml { at, reason }) => {
                let place = Place {
                    value: at,
                    ..Place::default()
                };
                mistakes.add(
                    &place,
                    format!("this is not YAML: {reason}."),
                    "Correct it first; what else may be wrong shows after that.",
                );
                None
            }
        };
        let config = Self::meant(written.unwrap_or_default(), env, &mut mistakes);
        mistakes.or(config, origin)
    }

    /// The JSON Schema of the file.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(file::File).to_value()
    }

    fn meant(
        written: file::File,
        env: &dyn Fn(&str) -> Option<String>,
        mistakes: &mut Mistakes,
    ) -> Self {
        let execution = written.execution.or_default();
        let permissions = written.permissions.or_default();
        let audit = written.audit.or_default();
        Self {
            servers: servers::servers(written.servers.or_default(), env, mistakes),
            tools: ToolRules::new(written.tools.or_default(), mistakes),
            execution: Execution {
                timeout: execution.timeout_seconds.get(),
                max_output_bytes: execution.max_output_bytes.size(),
                sandbox: execution.sandbox,
                max_tool_calls: execution.max_tool_calls.get(),
                max_concurrent_calls: execution.max_concurrent_calls.size(),
                tool_call_timeout: execution.tool_call_timeout_seconds.get(),
                trace: execution.trace,
                max_tool_result_bytes: execution.max_tool_result_bytes.size(),
                max_memory_bytes: execution.max_memory_bytes.get(),
                max_scratch_bytes: execution.max_scratch_bytes.get(),
                pool: execution.pool.size(),
                max_programs: execution.max_programs.size(),
                python: execution.python.value().map(|path| path.0),
                structured_content: execution.structured_content,
            },
            permissions: Permissions {
                claude_code: permissions.claude_code,
            },
            audit: Audit {
                path: audit.path.value().map(|path| path.0),
                arguments: audit.arguments,
            },
        }
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1);
    file.read_to_string(&mut text)?;
    if file.limit() == 0 {
        let reason = format!("it is larger than {MAX_FILE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
