//! Says in a test what a scenario file says: `Scenario::new().tool(Tool::new("t").reply(…))`.

use serde_json::Value;

use crate::fault::{
    Crash, Duplicate, Fault, Garbage, GarbageKind, Hang, Late, Noise, Oversized, OversizedShape,
    SchemaViolation, Slow, Status, Violation, When, WrongId,
};
use crate::rule::{At, Rule};
use crate::scenario::{
    Answer, Before, Compute, Echo, OnRestart, Reply, RpcError, Scenario, Sleep, Tool,
};

impl Scenario {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn name(mut self, name: &str) -> Self {
        self.server.name = name.to_owned();
        self
    }

    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    pub fn fault(mut self, rule: Rule) -> Self {
        self.faults.push(rule);
        self
    }

    /// A fault on every occasion.
    pub fn always(self, at: At, fault: Fault) -> Self {
        self.fault(Rule::new(at, fault))
    }

    pub fn versions<'a>(mut self, versions: impl IntoIterator<Item = &'a str>) -> Self {
        self.protocol.versions = versions.into_iter().map(str::to_owned).collect();
        self
    }

    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    pub fn page_size(mut self, tools: usize) -> Self {
        self.page_size = Some(tools);
        self
    }

    pub fn healthy_on_restart(mut self) -> Self {
        self.on_restart = OnRestart::Healthy;
        self
    }

    pub fn json_answers(mut self) -> Self {
        self.http.answer = Answer::Json;
        self
    }

    pub fn without_sessions(mut self) -> Self {
        self.http.sessions = false;
        self
    }

    pub fn require_header(mut self, name: &str, value: &str) -> Self {
        self.http
            .require_headers
            .insert(name.to_ascii_lowercase(), value.to_owned());
        self
    }
}

impl Tool {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// A tool that returns its arguments as structured content.
    pub fn echo(name: &str) -> Self {
        Self::new(name).reply(Reply::compute(Compute::Echo(Echo::default())))
    }

    /// A tool that sleeps for its argument `ms`, or this long.
    pub fn sleep(name: &str, ms: u64) -> Self {
        Self::new(name).reply(Reply::compute(Compute::Sleep(Sleep { ms })))
    }

    pub fn title(mut self, title: &str) -> Self {
        self.title = Some(title.to_owned());
        self
    }

    pub fn description(mut self, description: &str) -> Self {
        self.description = Some(description.to_owned());
        self
    }

    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    pub fn annotations(mut self, annotations: Value) -> Self {
        self.annotations = Some(annotations);
        self
    }

    pub fn meta(mut self, meta: Value) -> Self {
        self.meta = Some(meta);
        self
    }

    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }

    pub fn replies(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.replies.extend(replies);
        self
    }

    pub fn appears_after(mut self, calls: u64) -> Self {
        self.appears_after = Some(calls);
        self
    }

    pub fn vanishes_after(mut self, calls: u64) -> Self {
        self.vanishes_after = Some(calls);
        self
    }
}

impl Reply {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn structured(value: Value) -> Self {
        Self {
            structured: Some(value),
            ..Self::default()
        }
    }

    pub fn text(text: &str) -> Self {
        Self::new().and_text(text)
    }

    pub fn raw(result: &str) -> Self {
        Self {
            raw: Some(result.to_owned()),
            ..Self::default()
        }
    }

    pub fn tool_error(text: &str) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    pub fn rpc_error(code: i64, message: &str) -> Self {
        let error = RpcError {
            code,
            message: message.to_owned(),
            data: None,
        };
        Self {
            error: Some(error),
            ..Self::default()
        }
    }

    pub fn compute(compute: Compute) -> Self {
        Self {
            compute: Some(compute),
            ..Self::default()
        }
    }

    pub fn fault(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }

    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    pub fn and_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    pub fn and_text(mut self, text: &str) -> Self {
        self.text.push(text.to_owned());
        self
    }

    pub fn and_content(mut self, block: Value) -> Self {
        self.content.push(block);
        self
    }

    pub fn and_image(self, mime_type: &str, base64: &str) -> Self {
        self.and_content(
            serde_json::json!({ "type": "image", "data": base64, "mimeType": mime_type }),
        )
    }

    pub fn and_audio(self, mime_type: &str, base64: &str) -> Self {
        self.and_content(
            serde_json::json!({ "type": "audio", "data": base64, "mimeType": mime_type }),
        )
    }

    pub fn and_text_resource(self, uri: &str, text: &str) -> Self {
        self.and_content(
            serde_json::json!({ "type": "resource", "resource": { "uri": uri, "text": text } }),
        )
    }

    pub fn and_blob_resource(self, uri: &str, base64: &str) -> Self {
        self.and_content(
            serde_json::json!({ "type": "resource", "resource": { "uri": uri, "blob": base64 } }),
        )
    }

    pub fn and_resource_link(self, uri: &str, name: &str) -> Self {
        self.and_content(serde_json::json!({ "type": "resource_link", "uri": uri, "name": name }))
    }

    pub fn meta(mut self, meta: Value) -> Self {
        self.meta = Some(meta);
        self
    }

    pub fn before(mut self, message: Before) -> Self {
        self.before.push(message);
        self
    }
}

impl Rule {
    pub fn new(at: At, fault: Fault) -> Self {
        Self {
            at,
            fault,
            tool: None,
            nth: None,
            from: None,
            until: None,
            every: None,
            one_in: None,
            starts: Vec::new(),
        }
    }

    pub fn tool(mut self, name: &str) -> Self {
        self.tool = Some(name.to_owned());
        self
    }

    pub fn nth(mut self, n: u64) -> Self {
        self.nth = Some(n);
        self
    }

    pub fn from(mut self, n: u64) -> Self {
        self.from = Some(n);
        self
    }

    pub fn until(mut self, n: u64) -> Self {
        self.until = Some(n);
        self
    }

    pub fn every(mut self, k: u64) -> Self {
        self.every = Some(k);
        self
    }

    pub fn one_in(mut self, occasions: u64) -> Self {
        self.one_in = Some(occasions);
        self
    }

    pub fn starts(mut self, starts: impl IntoIterator<Item = u32>) -> Self {
        self.starts = starts.into_iter().collect();
        self
    }
}

impl Fault {
    pub fn crash() -> Self {
        Fault::Crash(Crash::default())
    }

    pub fn crash_half_way() -> Self {
        Fault::Crash(Crash {
            when: When::Half,
            ..Crash::default()
        })
    }

    pub fn crash_after() -> Self {
        Fault::Crash(Crash {
            when: When::After,
            ..Crash::default()
        })
    }

    pub fn hang() -> Self {
        Fault::Hang(Hang::default())
    }

    pub fn slow(first_byte_ms: u64) -> Self {
        Fault::Slow(Slow {
            first_byte_ms,
            bytes_per_second: None,
        })
    }

    pub fn oversized(bytes: u64, shape: OversizedShape) -> Self {
        Fault::Oversized(Oversized { bytes, shape })
    }

    pub fn schema_violation(kind: Violation) -> Self {
        Fault::SchemaViolation(SchemaViolation { kind })
    }

    pub fn garbage(kind: GarbageKind) -> Self {
        Fault::Garbage(Garbage {
            kind,
            ..Garbage::default()
        })
    }

    /// An exact line instead of the answer; `$ID` stands for the request's id.
    pub fn line(text: &str) -> Self {
        Fault::Garbage(Garbage {
            kind: GarbageKind::Literal,
            text: Some(text.to_owned()),
            instead: true,
        })
    }

    pub fn wrong_id() -> Self {
        Fault::WrongId(WrongId::default())
    }

    pub fn duplicate() -> Self {
        Fault::Duplicate(Duplicate::default())
    }

    pub fn late() -> Self {
        Fault::Late(Late::default())
    }

    pub fn noise(lines: &[&str]) -> Self {
        Fault::Noise(Noise {
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            ..Noise::default()
        })
    }

    pub fn error(code: i64, message: &str) -> Self {
        Fault::Error(RpcError {
            code,
            message: message.to_owned(),
            data: None,
        })
    }

    pub fn status(code: u16) -> Self {
        Fault::Status(Status {
            code,
            ..Status::default()
        })
    }

    pub fn status_with(code: u16, headers: &[(&str, &str)], body: &str) -> Self {
        Fault::Status(Status {
            code,
            headers: headers
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            body: body.to_owned(),
        })
    }
}
