//! The client's first root, where nothing else says which project it is working in (contract A1).
//!
//! The protocol is giving roots up; clients that still have them are asked.

#![expect(deprecated, reason = "rmcp marks what the protocol is giving up")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, InputRequest, InputRequiredResult, InputResponses, ListRootsRequest,
    ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions};

/// The state of a call that comes back with the roots.
pub(super) const STATE: &str = "roots";

/// The key of the request in an `input_required` result.
const ROOTS: &str = "roots";

/// How long the client may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The first root, by a request to the client.
pub(super) async fn ask(peer: &Peer<RoleServer>) -> Option<PathBuf> {
    let request = ServerRequest::ListRootsRequest(ListRootsRequest::default());
    let options = PeerRequestOptions::with_timeout(LIMIT);
    let answer = async {
        let handle = peer.send_cancellable_request(request, options).await?;
        handle.await_response().await
    };
    match answer.await {
        Ok(ClientResult::ListRootsResult(result)) => folder(&result.roots.first()?.uri),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!("the client does not name its roots: {error}");
            None
        }
    }
}

/// A result that asks for the roots, for a client that then calls again.
pub(super) fn required() -> InputRequiredResult {
    let request = InputRequest::ListRoots(ListRootsRequest::default());
    let requests = BTreeMap::from([(ROOTS.to_owned(), request)]);
    InputRequiredResult::new(Some(requests), Some(STATE.to_owned()))
}

/// The first root, of a client that calls again because of that.
pub(super) fn given(responses: Option<&InputResponses>) -> Option<PathBuf> {
    let uri = responses?.get(ROOTS)?.pointer("/roots/0/uri")?;
    folder(uri.as_str()?)
}

fn folder(uri: &str) -> Option<PathBuf> {
    reqwest::Url::parse(uri).ok()?.to_file_path().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    // contract: A1
    #[test]
    fn the_first_root_is_a_folder() {
        let answered = |response: Value| {
            let responses = BTreeMap::from([(ROOTS.to_owned(), response)]);
            given(Some(&responses))
        };
        let roots = json!({"roots": [{"uri": "file:///a%20b"}, {"uri": "file:///c"}]});
        assert_eq!(answered(roots), Some("/a b".into()));
        let none = [
            json!({"roots": []}),
            json!({}),
            json!({"roots": [{"uri": "https://x/y"}]}),
        ];
        for none in none {
            assert_eq!(answered(none), None);
        }
        assert_eq!(given(None), None);
    }
}
