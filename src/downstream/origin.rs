//! Requests to one web origin, which never leave it.
//!
//! What both HTTP transports share: the configured headers on every request, redirects within the
//! origin only, and the difference between a refusal, nonsense and a lost connection. URLs and
//! header values may hold secrets, so no reason quotes any of them.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode, Url};

use super::exchange::Exchange;
use super::line::Discarded;
use super::wire::{self, Incoming};
use super::words;
use super::{CallFailure, ConnectError};
use crate::config::Secret;

const MAX_REDIRECTS: usize = 5;

/// How much of the body of a refusal is looked at for a JSON-RPC error.
const MAX_REFUSAL: usize = 64 * 1024;

/// Servers close idle connections after five seconds or more. A request on one that is just being
/// closed would be lost without need, and it must not be repeated.
const IDLE: Duration = Duration::from_secs(2);

/// How long a message that has no answer may take to be accepted.
pub(super) const POST: Duration = Duration::from_secs(10);

const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) struct Origin {
    client: Client,
    url: Url,
    headers: HeaderMap,
    exchange: Arc<Exchange>,
}

/// Why a request has no good response.
#[derive(Debug)]
pub(super) struct Refusal {
    /// `None` if the connection failed.
    pub(super) status: Option<StatusCode>,
    pub(super) failure: CallFailure,
}

/// What a response says it carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Json,
    Events,
}

impl Origin {
    pub(super) fn new(
        url: &Secret,
        headers: &BTreeMap<String, Secret>,
        exchange: &Arc<Exchange>,
    ) -> Result<Self, ConnectError> {
        let url = Url::parse(url.expose())
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| ConnectError("its url is not a valid http or https URL".into()))?;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let bad =
                |what: &str| ConnectError(format!("its header '{name}' has an invalid {what}"));
            let key = HeaderName::try_from(name).map_err(|_| bad("name"))?;
            let mut value = HeaderValue::try_from(value.expose()).map_err(|_| bad("value"))?;
            value.set_sensitive(true);
            map.insert(key, value);
        }
        let client = Client::builder()
            .user_agent(concat!("ptc-mcp/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(|error| ConnectError(format!("no HTTP client: {}", cause(error))))?;
        Ok(Self {
            client,
            url,
            headers: map,
            exchange: exchange.clone(),
        })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// A reference that the server gave, if it stays within the origin.
    pub(super) fn join(&self, reference: &str) -> Option<Url> {
        let url = self.url.join(reference.trim()).ok()?;
        (url.origin() == self.url.origin()).then_some(url)
    }

    /// Sends one request, once but for redirects. A response is a good one (2xx).
    pub(super) async fn send(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, Refusal> {
        if body.is_some() {
            headers.insert(header::CONTENT_TYPE, JSON);
        }
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.client.request(method.clone(), url.clone());
            if let Some(body) = &body {
                request = request.body(body.clone());
            }
            // The protocol's own headers come last and win.
            request = request
                .headers(self.headers.clone())
                .headers(headers.clone());
            let response = request.send().await.map_err(|error| Refusal {
                status: None,
                failure: CallFailure::Lost(unreachable_because(error)),
            })?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            // A redirected request was not served, so it may be sent to where it belongs. 303 asks
            // for another request, which would be no answer to this one.
            if !status.is_redirection() || status == StatusCode::SEE_OTHER {
                return Err(self.refusal(response).await);
            }
            let location = response.headers().get(header::LOCATION);
            let target = location.and_then(|location| url.join(location.to_str().ok()?).ok());
            match target {
                Some(target) if target.origin() == self.url.origin() => url = target,
                Some(_) => {
                    return Err(Refusal::status(
                        status,
                        "a redirect to another origin is not followed; if that is where the server \
                         lives now, set its url to the new address",
                    ));
                }
                None => return Err(Refusal::status(status, "a redirect to nowhere")),
            }
        }
        Err(Refusal::status(
            StatusCode::LOOP_DETECTED,
            "too many redirects",
        ))
    }

    /// Why a response is no use that is neither JSON nor a stream of events.
    pub(super) fn strange(&self, response: &Response) -> CallFailure {
        let content_type = response.headers().get(header::CONTENT_TYPE);
        CallFailure::Unreadable(match content_type.map(HeaderValue::to_str) {
            Some(Ok(name)) => format!(
                "the server answered with content of type '{}' instead of JSON or an event stream",
                self.exchange.excerpt(name)
            ),
            _ => String::from("the server answered without a readable content type"),
        })
    }

    async fn refusal(&self, response: Response) -> Refusal {
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Refusal::status(status, &self.unauthorized(&response));
        }
        let is_json = kind(&response) == Some(Kind::Json);
        let retry_after = response
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .map(|value| format!("; retry after {}", self.exchange.excerpt(value)));
        if is_json
            && let Ok(Body::Whole(body)) = collect(response, MAX_REFUSAL).await
            && let Some(failure) = wire::decode(body)
                .into_iter()
                .find_map(|incoming| self.rejection(incoming))
        {
            let status = Some(status);
            return Refusal { status, failure };
        }
        let reason = status.canonical_reason().unwrap_or_default();
        Refusal::status(
            status,
            &format!("{reason}{}", retry_after.unwrap_or_default()),
        )
    }

    fn rejection(&self, incoming: Incoming) -> Option<CallFailure> {
        let Incoming::Error { code, message, .. } = incoming else {
            return None;
        };
        let message = message.masked(self.exchange.secrets());
        Some(CallFailure::Rejected { code, message })
    }

    // contract: D6
    fn unauthorized(&self, response: &Response) -> String {
        let server = self.exchange.server();
        let scheme = response
            .headers()
            .get(header::WWW_AUTHENTICATE)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_whitespace().next())
            .map(|scheme| format!(" of the scheme {}", self.exchange.excerpt(scheme)));
        let scheme = scheme.unwrap_or_default();
        if self.headers.contains_key(header::AUTHORIZATION) {
            format!(
                "the server does not accept the Authorization{scheme} that is set under headers of \
                 server '{server}'; check that it is right and not expired"
            )
        } else {
            format!(
                "the server wants an authorization{scheme}; set Authorization under headers of \
                 server '{server}'"
            )
        }
    }
}

impl Refusal {
    fn status(status: StatusCode, reason: &str) -> Self {
        let (code, reason) = (status.as_u16(), reason.to_owned());
        Self {
            status: Some(status),
            failure: CallFailure::HttpStatus {
                status: code,
                reason,
            },
        }
    }
}

/// What a response carries, as far as we can read it.
pub(super) fn kind(response: &Response) -> Option<Kind> {
    let content_type = response
        .headers()
        .get(header::CONTENT_TYPE)?
        .to_str()
        .ok()?;
    let essence = content_type.split(';').next()?.trim();
    match essence.to_ascii_lowercase().as_str() {
        "text/event-stream" => Some(Kind::Events),
        essence if essence.contains("json") => Some(Kind::Json),
        _ => None,
    }
}

/// A whole body, or what is left of one that was too long.
pub(super) enum Body {
    Whole(Vec<u8>),
    TooLong(Discarded),
}

/// Reads a body to its end, storing at most the limit.
pub(super) async fn collect(mut response: Response, limit: usize) -> Result<Body, CallFailure> {
    let mut body = Body::Whole(Vec::new());
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => match &mut body {
                Body::Whole(bytes) if bytes.len() + chunk.len() <= limit => bytes.extend(chunk),
                Body::Whole(bytes) => {
                    let mut discarded = Discarded::new(bytes);
                    discarded.append(&chunk);
                    body = Body::TooLong(discarded);
                }
                Body::TooLong(discarded) => discarded.append(&chunk),
            },
            Ok(None) => return Ok(body),
            Err(error) => {
                let why = cause(error);
                return Err(CallFailure::Lost(format!(
                    "the connection ended in the middle of the answer: {why}"
                )));
            }
        }
    }
}

fn unreachable_because(error: reqwest::Error) -> String {
    let what = if error.is_connect() {
        "the server cannot be reached"
    } else {
        "the connection ended before the answer"
    };
    let hint = if error.is_connect() && meets_no_tls(&error) {
        "; its url begins with https, and no TLS is spoken there: begin it with http if that is what \
         the server speaks"
    } else {
        ""
    };
    format!("{what}: {}{hint}", cause(error))
}

/// Whether what answers a TLS handshake is none: neither a refusal in TLS's own words nor a
/// certificate.
fn meets_no_tls(error: &reqwest::Error) -> bool {
    std::iter::successors(error.source(), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(is_no_tls)
}

fn is_no_tls(error: &io::Error) -> bool {
    let Some(inner) = error.get_ref() else {
        return false;
    };
    if let Some(inner) = inner.downcast_ref::<io::Error>() {
        return is_no_tls(inner);
    }
    match inner.downcast_ref() {
        Some(tls) => matches!(tls, rustls::Error::InvalidMessage(_)),
        // There is no type for it.
        None => inner.to_string() == "tls handshake eof",
    }
}

/// The innermost reason, which is the one that says something; the outer ones quote the URL.
pub(super) fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    words::excerpt(&innermost.to_string())
}
