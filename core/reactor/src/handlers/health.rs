//! Health checks of load balancers: `PREFIX/live` and `PREFIX/ready`, answered without the application.
//!
//! Such requests are neither counted nor logged, and do not count towards recycling of the worker.

use std::sync::Arc;

use poorhttp_http::{Head, Reject};

use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::exchange::reply::text_reply;
use crate::exchange::writer::UNCOUNTED;
use crate::handlers::static_files::path_of;
use crate::options::Handling;
use crate::scheduler::state::State;

/// The kinds of health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Whether the server responds.
    Live,
    /// Whether the server should get more requests.
    Ready,
}

impl Question {
    fn of(prefix: &str, head: &Head, bytes: &[u8]) -> Option<Self> {
        match path_of(head, bytes)?.strip_prefix(prefix.as_bytes())? {
            b"/live" => Some(Question::Live),
            b"/ready" => Some(Question::Ready),
            _ => None,
        }
    }
}

/// Answers a request if it is a health check, or returns its connection.
#[inline]
pub(crate) fn answer(state: &Arc<State>, connection: Box<Connection>, prefix: &str) -> Option<Box<Connection>> {
    let asked = connection.request.head().and_then(|(head, bytes)| Question::of(prefix, head, bytes));
    let Some(question) = asked else { return Some(connection) };
    answer_question(state, connection, question);
    None
}

#[cold]
fn answer_question(state: &Arc<State>, connection: Box<Connection>, question: Question) {
    let mut exchange = Exchange::new(Arc::clone(state), connection, UNCOUNTED, false);
    let is_read = exchange.head().is_some_and(|(head, bytes)| matches!(head.method.of(bytes), b"GET" | b"HEAD"));
    let (status, line) = match question {
        _ if !is_read => ("405 Method Not Allowed", "health can be read only"),
        Question::Live => ("200 OK", "live"),
        Question::Ready if state.shutdown.is_unready() => {
            ("503 Service Unavailable", "not ready: the server was told to stop")
        }
        Question::Ready => ("200 OK", "ready"),
    };
    let allow = if is_read { "" } else { "Allow: GET, HEAD\r\n" };
    let reply = text_reply(status, line, &format!("Cache-Control: no-store\r\n{allow}"));
    // An error means that the client is gone.
    let _ = exchange.reply(reply);
}

/// Rejects a health check with a body before the body is received.
pub(crate) fn refuses_body_of_question(handling: &Handling, head: &Head, bytes: &[u8]) -> Option<Reject> {
    Question::of(handling.health.as_ref()?, head, bytes)?;
    Some(Reject { status: 405, reason: "a body for a health check" })
}
