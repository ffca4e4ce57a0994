//! The healthy answer to each method, in both eras of the protocol.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::compute;
use crate::fault::{Fault, OversizedShape};
use crate::garble;
use crate::journal::Event;
use crate::message::{
    Body, INVALID_PARAMS, INVALID_REQUEST, LIST_CHANGED, METHOD_NOT_FOUND, Params, notification,
    request,
};
use crate::rule::At;
use crate::scenario::{Before, Compute, Reply, STATELESS_VERSION, Tool};

use super::listen::with_subscription;
use super::{Plan, Player, Step};

impl Player {
    pub(super) fn request(&self, peer: &str, id: &str, method: &str, params: &Params) -> Plan {
        let protocol = &self.scenario.protocol;
        let stateless = method == "server/discover"
            || params
                .meta
                .protocol_version
                .as_deref()
                .is_some_and(|v| v >= STATELESS_VERSION);
        let stateless = stateless && !protocol.stateless().is_empty();
        let at = match method {
            "initialize" | "server/discover" => At::Handshake,
            "tools/list" => At::ToolsList,
            "tools/call" => At::Call,
            _ => At::Other,
        };
        let mut fault = self.fault_at(at, params.name.as_deref());
        if stateless && let Some(refusal) = self.refuse_stateless(params) {
            return Plan {
                status: Some(400),
                ..Plan::answer(id, &refusal)
            };
        }
        let known = stateless || protocol.lenient || self.is_initialized(peer);
        let needs_handshake = matches!(method, "tools/list" | "tools/call" | "logging/setLevel");
        let mut steps = Vec::new();
        let mut after = Vec::new();
        let mut opens_session = false;
        let body = match method {
            "initialize" => {
                let body = self.initialize(params);
                opens_session = matches!(body, Body::Result(_));
                if opens_session {
                    self.state().initialized.insert(peer.to_owned());
                }
                body
            }
            "server/discover" if stateless => Body::Result(self.discovery()),
            "ping" => Body::Result("{}".to_owned()),
            _ if needs_handshake && !known => {
                Body::error(INVALID_REQUEST, &format!("{method} before initialize"))
            }
            "logging/setLevel" => Body::Result("{}".to_owned()),
            "tools/list" => self.list(params, fault.as_ref(), stateless),
            "subscriptions/listen" if stateless => {
                steps.push(Step::Subscribe(acknowledgement(id, params)));
                return Plan {
                    steps,
                    http: http_only(fault),
                    ..Plan::default()
                };
            }
            "tools/call" => {
                let called = self.call(params, &mut fault, stateless);
                steps = called.before;
                after = called.after;
                called.body
            }
            _ => Body::error(METHOD_NOT_FOUND, &format!("unknown method {method}")),
        };
        let body = match &fault {
            Some(Fault::Error(error)) => {
                Body::Error(serde_json::to_string(error).expect("an error is plain data"))
            }
            Some(Fault::Oversized(oversized)) if oversized.shape != OversizedShape::EndlessLine => {
                Body::Result(garble::oversized(oversized, at, stateless))
            }
            _ => body,
        };
        steps.extend(super::distort::distort(id, &body, fault.as_ref()));
        steps.extend(after);
        Plan {
            steps,
            opens_session,
            http: http_only(fault),
            ..Plan::default()
        }
    }

    /// What is wrong with a request of the stateless era, if anything.
    fn refuse_stateless(&self, params: &Params) -> Option<Body> {
        let Some(version) = &params.meta.protocol_version else {
            return Some(Body::error(
                INVALID_PARAMS,
                "the request's _meta has no protocolVersion",
            ));
        };
        if !self
            .scenario
            .protocol
            .stateless()
            .contains(&version.as_str())
        {
            let supported = &self.scenario.protocol.versions;
            return Some(Body::unsupported_version(Some(version), supported));
        }
        if params.meta.client_capabilities.is_none() {
            let reason = "the request's _meta has no clientCapabilities";
            return Some(Body::error(INVALID_PARAMS, reason));
        }
        None
    }

    fn capabilities(&self) -> Value {
        self.scenario
            .server
            .capabilities
            .clone()
            .unwrap_or_else(|| json!({ "tools": { "listChanged": true }, "logging": {} }))
    }

    fn initialize(&self, params: &Params) -> Body {
        let protocol = &self.scenario.protocol;
        let asked = params.protocol_version.as_deref();
        let Some(newest) = protocol.newest_handshake() else {
            return Body::unsupported_version(asked, &protocol.versions);
        };
        let agreed = asked.filter(|v| *v < STATELESS_VERSION && protocol.speaks(v));
        let server = &self.scenario.server;
        let mut result = json!({
            "protocolVersion": protocol.answer.as_deref().or(agreed).unwrap_or(newest),
            "capabilities": self.capabilities(),
            "serverInfo": { "name": server.name, "version": server.version },
        });
        if let Some(instructions) = &server.instructions {
            result["instructions"] = json!(instructions);
        }
        Body::Result(result.to_string())
    }

    fn discovery(&self) -> String {
        let server = &self.scenario.server;
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": self.scenario.protocol.versions,
            "capabilities": self.capabilities(),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": {
                "name": server.name, "version": server.version,
            } },
        });
        if let Some(instructions) = &server.instructions {
            result["instructions"] = json!(instructions);
        }
        result.to_string()
    }

    fn visible(&self, tool: &Tool, calls: u64) -> bool {
        tool.appears_after.is_none_or(|n| calls >= n)
            && tool.vanishes_after.is_none_or(|n| calls < n)
    }

    fn list(&self, params: &Params, fault: Option<&Fault>, stateless: bool) -> Body {
        let (calls, page_number) = {
            let mut state = self.state();
            state.pages += 1;
            (state.calls_in_all, state.pages)
        };
        let mut tools: Vec<Value> = self
            .scenario
            .tools
            .iter()
            .filter(|tool| self.visible(tool, calls))
            .map(tool_definition)
            .collect();
        match fault {
            Some(Fault::DuplicateNames(_)) => {
                tools = tools
                    .iter()
                    .flat_map(|tool| [tool.clone(), tool.clone()])
                    .collect();
            }
            Some(Fault::OddSchemas(odd)) => {
                let key = if odd.input {
                    "inputSchema"
                } else {
                    "outputSchema"
                };
                for tool in &mut tools {
                    tool[key] = garble::odd_schema(odd.kind);
                }
            }
            _ => {}
        }
        let (page, next) = match fault {
            Some(Fault::EndlessPages(endless)) => {
                let page = match (&params.cursor, endless.with_tools) {
                    (None, _) => tools,
                    (Some(_), true) => {
                        vec![tool_definition(&Tool::new(&format!("page_{page_number}")))]
                    }
                    (Some(_), false) => Vec::new(),
                };
                let cursor = if endless.same_cursor {
                    "again".to_owned()
                } else {
                    format!("page-{page_number}")
                };
                (page, Some(cursor))
            }
            _ => {
                let from = match params.cursor.as_deref().map(str::parse::<usize>) {
                    None => 0,
                    Some(Ok(from)) if from <= tools.len() => from,
                    Some(_) => return Body::error(INVALID_PARAMS, "unknown cursor"),
                };
                let size = self.scenario.page_size.unwrap_or(usize::MAX).max(1);
                let to = from.saturating_add(size).min(tools.len());
                let next = (to < tools.len()).then(|| to.to_string());
                (tools[from..to].to_vec(), next)
            }
        };
        let mut result = json!({ "tools": page });
        if let Some(next) = next {
            result["nextCursor"] = json!(next);
        }
        if stateless {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        Body::Result(result.to_string())
    }

    fn call(&self, params: &Params, fault: &mut Option<Fault>, stateless: bool) -> Called {
        let name = params.name.as_deref().unwrap_or_default();
        let echo = Reply::compute(compute::echo());
        let mut state = self.state();
        let before_calls = state.calls_in_all;
        let found = self.scenario.tools.iter().find(|tool| tool.name == name);
        let Some(tool) = found.filter(|tool| self.visible(tool, before_calls)) else {
            return Called::just(Body::error(
                INVALID_PARAMS,
                &format!("unknown tool '{name}'"),
            ));
        };
        let turn = state.calls.get(name).copied().unwrap_or(0);
        let turn = usize::try_from(turn)
            .unwrap_or(usize::MAX)
            .min(tool.replies.len().max(1) - 1);
        let reply = tool.replies.get(turn).unwrap_or(&echo);
        if stateless
            && params.input_responses.is_none()
            && let Some(body) = input_required(reply)
        {
            return Called::just(body);
        }
        *state.calls.entry(name.to_owned()).or_default() += 1;
        state.calls_in_all += 1;
        let after_calls = state.calls_in_all;
        state.counter += u64::from(matches!(reply.compute, Some(Compute::Counter(_))));
        let count = state.counter;
        drop(state);
        if fault.is_none() && !self.healthy_now() {
            fault.clone_from(&reply.fault);
            if let Some(fault) = fault {
                self.recorder.note(Event::Fault, fault.name());
            }
        }
        let mut before = self.before(params, reply, stateless);
        let arguments = params.arguments.as_deref().map_or("{}", RawValue::get);
        if let Some(pause) = compute::pause(reply, arguments) {
            before.push(Step::Wait(pause));
        }
        let changes = self
            .scenario
            .tools
            .iter()
            .any(|tool| self.visible(tool, before_calls) != self.visible(tool, after_calls));
        let after = changes.then(|| Step::Announce(notification(LIST_CHANGED, None)));
        let violation = match fault {
            Some(Fault::SchemaViolation(violation)) => Some(violation.kind),
            _ => None,
        };
        let body = compute::body(reply, arguments, count, violation, stateless);
        Called {
            before,
            body,
            after: after.into_iter().collect(),
        }
    }

    fn before(&self, params: &Params, reply: &Reply, stateless: bool) -> Vec<Step> {
        let ask = |method: &str, params: Value| {
            let mut state = self.state();
            state.asked += 1;
            let id = format!("mock-{}", state.asked);
            Step::Ask {
                message: request(&id, method, &params),
                id: json!(id).to_string(),
            }
        };
        let mut steps = Vec::new();
        for message in &reply.before {
            match message {
                Before::Progress(progress) => {
                    let Some(token) = &params.meta.progress_token else {
                        continue;
                    };
                    let mut fields = serde_json::to_value(progress).expect("plain data");
                    fields["progressToken"] =
                        serde_json::from_str(token.get()).expect("a token is JSON");
                    steps.push(Step::Message(notification(
                        "notifications/progress",
                        Some(&fields),
                    )));
                }
                Before::Log(log) => {
                    let fields = json!({ "level": log.level, "logger": "mock", "data": log.data });
                    steps.push(Step::Message(notification(
                        "notifications/message",
                        Some(&fields),
                    )));
                }
                // In the stateless era these were part of the first round's answer.
                Before::Elicit(_) | Before::Sample(_) | Before::Roots(_) if stateless => {}
                Before::Elicit(_) | Before::Sample(_) | Before::Roots(_) => {
                    let (method, params) = input_request(message).expect("it asks for input");
                    steps.push(ask(method, params));
                }
                Before::Ping(_) => steps.push(ask("ping", json!({}))),
                Before::ListChanged(_) => {
                    steps.push(Step::Announce(notification(LIST_CHANGED, None)));
                }
                Before::Notify(notify) => {
                    let message = notification(&notify.method, notify.params.as_ref());
                    steps.push(Step::Message(message));
                }
                Before::Wait(wait) => steps.push(Step::Wait(Duration::from_millis(wait.ms))),
            }
        }
        steps
    }
}

struct Called {
    before: Vec<Step>,
    body: Body,
    after: Vec<Step>,
}

impl Called {
    fn just(body: Body) -> Self {
        Self {
            before: Vec::new(),
            body,
            after: Vec::new(),
        }
    }
}

fn http_only(fault: Option<Fault>) -> Option<Fault> {
    fault.filter(Fault::needs_http)
}

fn tool_definition(tool: &Tool) -> Value {
    let mut definition = json!({ "name": tool.name });
    let schema = tool
        .input_schema
        .clone()
        .unwrap_or_else(|| json!({ "type": "object" }));
    for (key, value) in [
        ("title", tool.title.clone().map(Value::from)),
        ("description", tool.description.clone().map(Value::from)),
        ("inputSchema", Some(schema)),
        ("outputSchema", tool.output_schema.clone()),
        ("annotations", tool.annotations.clone()),
        ("_meta", tool.meta.clone()),
    ] {
        if let Some(value) = value {
            definition[key] = value;
        }
    }
    definition
}

fn input_request(message: &Before) -> Option<(&'static str, Value)> {
    match message {
        Before::Elicit(elicit) => Some((
            "elicitation/create",
            json!({ "mode": "form", "message": elicit.message, "requestedSchema": elicit.schema }),
        )),
        Before::Sample(sample) => {
            let content = json!({ "type": "text", "text": sample.prompt });
            let messages = json!([{ "role": "user", "content": content }]);
            let params = json!({ "messages": messages, "maxTokens": sample.max_tokens });
            Some(("sampling/createMessage", params))
        }
        Before::Roots(_) => Some(("roots/list", json!({}))),
        _ => None,
    }
}

/// The first round of a stateless call that needs the client's input.
fn input_required(reply: &Reply) -> Option<Body> {
    let requests: serde_json::Map<String, Value> = reply
        .before
        .iter()
        .filter_map(input_request)
        .enumerate()
        .map(|(n, (method, params))| {
            (
                format!("input-{}", n + 1),
                json!({ "method": method, "params": params }),
            )
        })
        .collect();
    (!requests.is_empty()).then(|| {
        let result = json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": "mock",
        });
        Body::Result(result.to_string())
    })
}

fn acknowledgement(id: &str, params: &Params) -> Vec<u8> {
    let notifications: Value = params
        .notifications
        .as_deref()
        .and_then(|filter| serde_json::from_str(filter.get()).ok())
        .unwrap_or_else(|| json!({}));
    let message = notification(
        "notifications/subscriptions/acknowledged",
        Some(&json!({ "notifications": notifications })),
    );
    with_subscription(&message, id)
}
