//! A program's question to the person, as MCP elicitation: what is sent, how it travels in each
//! protocol era, and what an answer means.
//!
//! Knows nothing of programs: a [`Question`] comes in, and is answered.

use std::collections::BTreeMap;

use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, EnumSchema, InputRequest, InputRequiredResult, InputResponses,
    ProtocolVersion, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext};
use serde_json::Value;

use crate::consent::{Answer, CHOICES, NO, Question};

/// The form's only field, and the key of the only request of an `input_required` result.
const DECISION: &str = "decision";

/// How a client can be asked something while it waits for a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Until 2025-11-25: we send it a request.
    Requests,
    /// Since 2026-07-28: our result asks, and it calls again.
    Results,
}

impl Era {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        match context.protocol_version() {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => {
                Self::Results
            }
            _ => Self::Requests,
        }
    }
}

/// Whether the client shows forms to its person.
pub(super) fn shows_forms(context: &RequestContext<RoleServer>) -> bool {
    context
        .client_capabilities()
        .and_then(|capabilities| capabilities.elicitation)
        // Before there were other modes, none was named.
        .is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// What a program is told whose client cannot ask.
pub(super) const CANNOT_ASK: &str = "this client cannot ask: it does not support MCP elicitation. \
     The person can call the tool outside of a program, or take it out of the rule";

/// Puts a question to the person by a request to the client, and answers it.
pub(super) async fn put(peer: Peer<RoleServer>, mut question: Question) {
    let request = ServerRequest::ElicitRequest(form(&question));
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options());
    let mut handle = match sent.await {
        Ok(handle) => handle,
        Err(error) => {
            return question.answer(Answer::No(format!("the client cannot be asked: {error}")));
        }
    };
    let response = tokio::select! {
        response = &mut handle.rx => response,
        () = question.withdrawn() => {
            // The client may be gone, and then nobody sees the form.
            let _ = handle.cancel(Some("no longer needed".to_owned())).await;
            return;
        }
    };
    question.answer(match response {
        Ok(Ok(ClientResult::ElicitResult(result))) => meaning(&result),
        Ok(Ok(_)) => Answer::No("the client's answer was not understood".to_owned()),
        Ok(Err(error)) => Answer::No(format!("the client could not ask: {error}")),
        Err(_) => Answer::No("the client is gone".to_owned()),
    });
}

/// A result that puts the question, for a client that then calls again with this state.
pub(super) fn input_required(question: &Question, state: String) -> InputRequiredResult {
    let request = InputRequest::Elicitation(form(question));
    let requests = BTreeMap::from([(DECISION.to_owned(), request)]);
    InputRequiredResult::new(Some(requests), Some(state))
}

/// What a client that called again says to the question.
pub(super) fn answer(responses: Option<&InputResponses>) -> Answer {
    match responses.and_then(|responses| responses.get(DECISION)) {
        None => Answer::No("the client came back without an answer".to_owned()),
        Some(response) => match serde_json::from_value(response.clone()) {
            Ok(result) => meaning(&result),
            Err(_) => Answer::No("the client's answer was not understood".to_owned()),
        },
    }
}

fn form(question: &Question) -> ElicitRequest {
    // Plain values, since not every client shows titles.
    let choices = CHOICES.iter().map(|(word, _)| *word).chain([NO]);
    let decision = EnumSchema::builder(choices.map(str::to_owned).collect())
        .title("Allow this call?")
        .build();
    let schema = ElicitationSchema::builder()
        .required_enum_schema(DECISION, decision)
        .build()
        .expect("the required field is there");
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.text().to_owned(),
        requested_schema: schema,
    })
}

/// Only a choice that was offered is a yes: an accepted form without one is not.
fn meaning(result: &ElicitResult) -> Answer {
    match result.action {
        ElicitationAction::Accept => {
            let choice = result.content.as_ref().and_then(|form| form.get(DECISION));
            Answer::of(choice.and_then(Value::as_str).unwrap_or(NO))
        }
        ElicitationAction::Cancel => Answer::No("the person dismissed the question".to_owned()),
        _ => Answer::no(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // contract: A2
    #[test]
    fn only_a_choice_that_was_offered_is_a_yes() {
        let no = Answer::no;
        let cases = [
            (
                json!({"action": "accept", "content": {"decision": "once"}}),
                Answer::Once,
            ),
            (
                json!({"action": "accept", "content": {"decision": "for this program"}}),
                Answer::Program,
            ),
            (
                json!({"action": "accept", "content": {"decision": "for this session"}}),
                Answer::Session,
            ),
            (
                json!({"action": "accept", "content": {"decision": "no"}}),
                no(),
            ),
            (
                json!({"action": "accept", "content": {"decision": true}}),
                no(),
            ),
            (json!({"action": "accept", "content": {}}), no()),
            (json!({"action": "accept"}), no()),
            (
                json!({"action": "decline", "content": {"decision": "once"}}),
                no(),
            ),
            (
                json!({"action": "cancel"}),
                Answer::No("the person dismissed the question".to_owned()),
            ),
            (
                json!({"decision": "once"}),
                Answer::No("the client's answer was not understood".to_owned()),
            ),
        ];
        for (response, expected) in cases {
            let responses = BTreeMap::from([(DECISION.to_owned(), response.clone())]);
            assert_eq!(answer(Some(&responses)), expected, "{response}");
        }
        for responses in [None, Some(&BTreeMap::new())] {
            assert!(matches!(answer(responses), Answer::No(_)));
        }
    }
}
