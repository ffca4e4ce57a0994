//! The MCP surface: three tools over stdio, for clients of both protocol eras, from the first byte
//! to an orderly end.
//!
//! rmcp's server side begins and ends here. Does not know how a program runs or how servers are
//! reached: it hands a program to [`Ptc`] and turns the [`Report`] into a result.

mod arguments;
mod asking;
mod clients;
mod descriptions;
mod progress;
mod roots;
mod running;
mod transport;
mod wire;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, ContentBlock,
    Implementation, JsonObject, ListToolsResult, MetaObject, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::asking::Era;
use self::running::{End, Parking, Running};
use self::transport::{Arrives, LineTransport};
use crate::config::ClaudeCodeRules;
use crate::consent::Asker;
use crate::helpers::{self, ToolList};
use crate::permissions;
use crate::report::{ProgramError, Report};
use crate::{Program, Ptc, Turn};

pub(crate) use self::progress::message as progress_message;

/// Where every result of a program carries its full list of calls, out of the model's sight.
const TOOL_CALLS: &str = "ptc-mcp/tool_calls";

/// How long the answers of programs that were just killed may take to reach the client.
const DRAIN: Duration = Duration::from_secs(2);

/// Serves one client over `input` and `output` until its input ends or `stop` is cancelled, then
/// kills the running programs and closes everything.
pub async fn serve<R, W>(ptc: Arc<Ptc>, input: R, output: W, stop: CancellationToken)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let transport = LineTransport::new(input, output, stop.clone(), lines_up(&ptc));
    let handler = Handler {
        ptc: Arc::clone(&ptc),
        stop: stop.clone(),
        parking: Parking::new(ptc.config().execution.max_programs),
    };
    let session = tokio::spawn(async move {
        match rmcp::serve_server(handler, transport).await {
            Ok(service) => {
                // It fails only by a panic, which the runtime has reported.
                let _ = service.waiting().await;
            }
            // Nothing is lost when a client leaves before it has said anything.
            Err(error) => tracing::debug!("no session: {error}"),
        }
    });
    let mut session = std::pin::pin!(session);
    let ended = tokio::select! {
        () = stop.cancelled() => false,
        _ = &mut session => true,
    };
    // The same token cancels every program, so that nothing here waits for one.
    stop.cancel();
    let (drained, ()) = tokio::join!(
        async { ended || timeout(DRAIN, session).await.is_ok() },
        ptc.shutdown(),
    );
    if !drained {
        tracing::debug!("the client did not take its last answers");
    }
}

/// A program's place in the line, on its way through rmcp with the request.
type Place = Arc<Mutex<Option<Turn>>>;

/// Gives each program its place as it arrives (contract B1).
fn lines_up(ptc: &Arc<Ptc>) -> Arrives {
    let ptc = Arc::clone(ptc);
    Box::new(move |request| {
        if let ClientRequest::CallToolRequest(call) = request
            && call.params.name == descriptions::EXECUTE
            // One that was parked has its place.
            && matches!(call.params.request_state.as_deref(), None | Some(roots::STATE))
        {
            let place: Place = Arc::new(Mutex::new(Some(ptc.line_up())));
            call.extensions.insert(place);
        }
    })
}

struct Handler {
    ptc: Arc<Ptc>,
    /// Cancelled once, at the end of everything.
    stop: CancellationToken,
    parking: Parking,
}

impl Handler {
    fn wants_structure(&self, context: &RequestContext<RoleServer>) -> bool {
        let client = context.client_info();
        clients::wants_structure(
            self.ptc.config().execution.structured_content,
            client.as_ref().map(|client| client.name.as_str()),
        )
    }

    /// Answers with a program's report, or with its next question to the person.
    async fn execute(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let mut running = match self.running(request, context).await {
            Ok(running) => running,
            Err(answer) => return *answer,
        };
        loop {
            running = match running.attend(context).await {
                End::Ended(report) => {
                    if report.outcome == Err(ProgramError::Cancelled) {
                        // A cancelled request gets no answer, so what had already happened goes here.
                        let ledger = report
                            .ledger()
                            .unwrap_or_else(|| "No tool was called.".to_owned());
                        tracing::info!("a program was cancelled. {}", ledger.replace('\n', " "));
                    }
                    return result_of(&report, self.wants_structure(context)).into();
                }
                End::Asks(question) => match self.parking.park(running, question) {
                    Ok(asks) => return asks.into(),
                    Err(running) => running,
                },
            }
        }
    }

    /// The program that waited for this call, or a new one; else what the call is answered with.
    async fn running(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Running, Box<CallToolResponse>> {
        let responses = request.input_responses.as_ref();
        let first_root = match request.request_state.as_deref() {
            None => None,
            Some(roots::STATE) => Some(roots::given(responses)),
            Some(state) => {
                let (running, question) = self
                    .parking
                    .take(state)
                    .ok_or_else(|| Box::new(failed(NOT_WAITING.to_owned()).into()))?;
                question.answer(asking::answer(responses));
                return Ok(running);
            }
        };
        let code = arguments::code(request.arguments.as_ref()).map_err(|mistake| {
            let none = tool_calls(Value::Array(Vec::new()));
            Box::new(failed(mistake).with_meta(Some(none)).into())
        })?;
        let root = match (first_root, self.wants_root(context)) {
            (Some(root), _) => root,
            (None, None) => None,
            (None, Some(Era::Requests)) => roots::ask(&context.peer).await,
            (None, Some(Era::Results)) => return Err(Box::new(roots::required().into())),
        };
        Ok(self.start(code, root, context))
    }

    fn start(
        &self,
        code: String,
        root: Option<PathBuf>,
        context: &RequestContext<RoleServer>,
    ) -> Running {
        let (person, questions) = Asker::person();
        let program = Program {
            code,
            client: client_name(context),
            root,
            asker: if asking::shows_forms(context) {
                person
            } else {
                Asker::Nobody(asking::CANNOT_ASK.to_owned())
            },
        };
        let turn = context
            .extensions
            .get::<Place>()
            .and_then(|place| {
                place
                    .lock()
                    .expect("nothing panics while it is held")
                    .take()
            })
            .unwrap_or_else(|| self.ptc.line_up());
        let cancel = self.stop.child_token();
        Running::start(self.ptc.clone(), program, turn, questions, cancel)
    }

    /// How the client is to be asked for its roots, if the project's rules hold and only it knows
    /// where they are.
    fn wants_root(&self, context: &RequestContext<RoleServer>) -> Option<Era> {
        let holds = self.ptc.config().permissions.claude_code == ClaudeCodeRules::Honor
            && permissions::is_claude_code(&client_name(context));
        let named = std::env::var_os("CLAUDE_PROJECT_DIR").is_some_and(|folder| !folder.is_empty());
        let has_roots = context
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.roots.is_some());
        (holds && !named && has_roots).then(|| Era::of(context))
    }

    async fn inspect(&self, arguments: Option<&JsonObject>) -> CallToolResult {
        let names = match arguments::tool_names(arguments) {
            Ok(names) => names,
            Err(mistake) => return failed(mistake),
        };
        match helpers::inspect_tools(self.ptc.registry(), &names).await {
            Ok(tool) => CallToolResult::success(vec![ContentBlock::text(tool.to_string())]),
            Err(not_found) => failed(not_found),
        }
    }

    async fn list(&self, arguments: Option<&JsonObject>) -> CallToolResult {
        let selection = match arguments::selection(arguments) {
            Ok(selection) => selection,
            Err(mistake) => return failed(mistake),
        };
        match helpers::list_callable_tools(self.ptc.registry(), &selection).await {
            Ok(list) => {
                let texts = list_texts(&list);
                CallToolResult::success(texts.into_iter().map(ContentBlock::text).collect())
            }
            Err(no_server) => failed(no_server),
        }
    }

    async fn dispatch(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if &*request.name == descriptions::EXECUTE {
            // Ends by itself when it is cancelled, and has a report to give.
            return Ok(self.execute(request, context).await);
        }
        let arguments = request.arguments.as_ref();
        let answer = async {
            match &*request.name {
                descriptions::INSPECT => Ok(self.inspect(arguments).await),
                descriptions::LIST => Ok(self.list(arguments).await),
                unknown => Err(ErrorData::invalid_params(unknown_tool(unknown), None)),
            }
        };
        tokio::select! {
            biased;
            answer = answer => answer.map(CallToolResponse::Complete),
            () = context.ct.cancelled() => Ok(failed("the request was cancelled".to_owned()).into()),
            () = self.stop.cancelled() => Ok(failed("ptc-mcp is shutting down".to_owned()).into()),
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        // No listChanged: the three tools are always there, and always the same.
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("ptc-mcp", env!("CARGO_PKG_VERSION"))
                    .with_title("Programmatic tool calling"),
            )
            .with_instructions(descriptions::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = descriptions::tools(self.ptc.config(), self.wants_structure(&context));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // rmcp would lose the answer of a handler that panics, and the client would wait for ever.
        AssertUnwindSafe(self.dispatch(&request, &context))
            .catch_unwind()
            .await
            .unwrap_or_else(|_| {
                Err(ErrorData::internal_error(
                    "ptc-mcp has a defect that this request ran into; its log has the details",
                    None,
                ))
            })
    }

    /// A subscription is granted, and to nothing: what we offer does not change.
    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::default())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        tokio::select! {
            () = context.cancelled() => {}
            () = self.stop.cancelled() => {}
        }
        Ok(())
    }
}

/// The answer to a call that brings back the state of no program that waits.
const NOT_WAITING: &str = "This program does not wait for an answer any more: it was ended, or \
     ptc-mcp was restarted meanwhile. Nothing was run again; check what it had done before running \
     it anew.";

fn client_name(context: &RequestContext<RoleServer>) -> String {
    context
        .client_info()
        .map_or_else(|| "unknown".to_owned(), |client| client.name)
}

fn result_of(report: &Report, structured: bool) -> CallToolResult {
    let mut text = vec![ContentBlock::text(report.text())];
    if !report.warnings.is_empty() {
        // Beside the text, whose form is fixed to its last line.
        text.push(ContentBlock::text(report.warnings.join("\n")));
    }
    let mut result = if report.ok() {
        CallToolResult::success(text)
    } else {
        CallToolResult::error(text)
    };
    if structured {
        result.structured_content = Some(report.structured());
    }
    result.with_meta(Some(tool_calls(report.tool_calls())))
}

fn tool_calls(calls: Value) -> MetaObject {
    MetaObject(JsonObject::from_iter([(TOOL_CALLS.to_owned(), calls)]))
}

fn failed(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The tools alone in the first text, so that it is exactly an array; what is missing beside it.
fn list_texts(list: &ToolList) -> Vec<String> {
    let mut texts = vec![Value::from(list.shown.clone()).to_string()];
    texts.extend(list.left_out.clone());
    texts.extend(list.missing());
    texts
}

fn unknown_tool(name: &str) -> String {
    let tools = format!(
        "the tools are {}, {} and {}",
        descriptions::EXECUTE,
        descriptions::INSPECT,
        descriptions::LIST
    );
    let quoted = wire::quoted(name);
    if name.starts_with(crate::tool::NAMESPACE) {
        format!(
            "Unknown tool: {quoted} can be called only inside a program of {}; {tools}",
            descriptions::EXECUTE
        )
    } else {
        format!("Unknown tool: {quoted}; {tools}")
    }
}

#[cfg(test)]
mod tests;
