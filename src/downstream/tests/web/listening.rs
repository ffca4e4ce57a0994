//! The stream on which a streamable HTTP server speaks unasked: what it tells, and what becomes of it.

use super::*;

// contract: D4, D1
#[tokio::test]
async fn the_listening_stream_tells_of_tools_and_of_the_end() {
    let (said, unasked) = mpsc::unbounded_channel();
    let unasked = Mutex::new(Some(unasked));
    let connection = http(move |request| match request.method.as_str() {
        "GET" => match unasked.lock().unwrap().take() {
            Some(unasked) => Reply::Stream(EVENTS.into(), unasked),
            None => status("404 Not Found", ""),
        },
        _ => session(&request, |request| as_json(&result(request, "{}"))),
    })
    .await;
    said.send(
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n".into(),
    )
    .unwrap();
    soon(connection.tools_changed()).await;
    drop(said);
    assert_eq!(
        soon(connection.closed()).await,
        "the server ended the session (HTTP status 404)"
    );
}

// contract: D4
#[tokio::test]
async fn a_listening_stream_that_is_resumed_leaves_nothing_unknown() {
    let (connection, mut opened) = listening(|nth, request| {
        let resumed = request.headers.contains_key("last-event-id");
        assert_eq!(resumed, nth > 1);
        as_events("retry: 1\nid: e1\ndata:\n\n")
    })
    .await;
    soon(opened.wait_for(|opened| *opened > 3)).await.unwrap();
    assert_eq!(connection.tools_changed().now_or_never(), None);

    let (connection, _) = listening(|_, _| as_events("retry: 1\ndata:\n\n")).await;
    soon(connection.tools_changed()).await;
}

// contract: D4
#[tokio::test]
async fn a_stream_that_is_resumed_in_silence_is_opened_anew() {
    // As servers do that number events and keep none.
    let (connection, mut opened) = listening(|nth, request| {
        let resumed = request.headers.contains_key("last-event-id");
        assert_eq!(resumed, nth == 2);
        match nth {
            1 => as_events("retry: 1\nid: e1\ndata:\n\n"),
            2 => as_events(""),
            _ => as_events("data:\n\n"),
        }
    })
    .await;
    soon(connection.tools_changed()).await;
    soon(opened.wait_for(|opened| *opened > 2)).await.unwrap();
}

/// The connection to a server whose listening stream, opened for the n-th time, is answered so, and
/// a count of the openings.
async fn listening(
    open: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
) -> (Connection, watch::Receiver<usize>) {
    let (openings, opened) = watch::channel(0);
    let connection = http(move |request| match request.method.as_str() {
        "GET" => {
            let nth = *openings.borrow() + 1;
            openings.send_replace(nth);
            open(nth, &request)
        }
        _ => session(&request, |request| as_json(&result(request, "{}"))),
    })
    .await;
    (connection, opened)
}

const CHANGED: &str =
    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";

// contract: D2, D6
#[tokio::test]
async fn a_server_may_have_no_listening_stream() {
    for refusal in ["404 Not Found", "405 Method Not Allowed", "400 Bad Request"] {
        let (connection, mut opened) = listening(move |_, _| status(refusal, "")).await;
        soon(opened.wait_for(|opened| *opened > 0)).await.unwrap();
        // What the refusal led to is known by the time when these are answered.
        for _ in 0..3 {
            assert!(call(&connection, "fine", json!({})).await.is_ok());
        }
        assert_eq!(connection.0.exchange.loss(), None, "{refusal}");
        assert_eq!(*opened.borrow(), 1, "{refusal}");
    }
}

// contract: D1, D6
#[tokio::test]
async fn a_listening_stream_that_stood_and_is_refused_is_a_session_that_ended() {
    for refusal in [400, 404, 410] {
        let (connection, _) = listening(move |nth, _| match nth {
            1 => as_events("retry: 1\n\n"),
            _ => status(&format!("{refusal} No"), ""),
        })
        .await;
        let reason = format!("the server ended the session (HTTP status {refusal})");
        assert_eq!(soon(connection.closed()).await, reason);
    }
}

// contract: D2, D4
#[tokio::test]
async fn a_listening_stream_comes_back_after_a_refusal_that_says_nothing_of_the_session() {
    for refusal in [
        "409 Conflict",
        "429 Too Many Requests",
        "503 Service Unavailable",
    ] {
        let (connection, _) = listening(move |nth, _| match nth {
            1 => as_events("retry: 1\nid: e1\ndata:\n\n"),
            2 => status(refusal, ""),
            _ => as_events(CHANGED),
        })
        .await;
        soon(connection.tools_changed()).await;
    }
    // Nor does one that no longer has the events.
    let (connection, _) = listening(|nth, request| match nth {
        1 => as_events("retry: 1\nid: e1\ndata:\n\n"),
        _ if request.headers.contains_key("last-event-id") => status("400 Bad Request", ""),
        _ => as_events(CHANGED),
    })
    .await;
    soon(connection.tools_changed()).await;
}
