//! Requests that have waited too long for a thread are answered with 503 and `Retry-After`.

use std::sync::Arc;

use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::exchange::reply::text_reply;
use crate::log::error::Level;
use crate::scheduler::state::State;
use crate::sys::{AsFd, clock};
use poorhttp_http::Reject;

const TOO_LATE: Reject = Reject { status: 503, reason: "too many requests wait" };

/// Answers a request that has waited too long, or returns its connection. `arrived`: earliest time at which its events can
/// have arrived.
#[cold]
pub(crate) fn refuse_if_late(state: &Arc<State>, connection: Box<Connection>, arrived: u64) -> Option<Box<Connection>> {
    let now = clock::now();
    let exactly = match connection.socket.transport.stream() {
        Some(stream) => Some(now.saturating_sub(stream.begun())),
        None => state.handling.since_input.and_then(|since| since(connection.socket.transport.as_fd())),
    };
    let waited = match exactly {
        Some(waited) => waited,
        // A Unix socket does not tell. In an overload the poller is asked so often that the difference does not matter.
        None if state.queue_timeout.is_adaptive() => now.saturating_sub(arrived),
        None => return Some(connection),
    };
    // Waiting for earlier requests of the same connection does not count.
    let waited = waited.min(now.saturating_sub(connection.last_request_end));
    let client = connection.request.client().map(|(address, _)| address);
    let Some(limit) = state.queue_timeout.exceeded(client, waited, now) else { return Some(connection) };
    let number = state.next_number();
    let mut exchange = Exchange::new(Arc::clone(state), connection, number, false);
    exchange.writer.count_refusal(TOO_LATE);
    if state.queue_timeout.warned.is_due() {
        let message = format!(
            "more requests than can be answered: those that have waited for more than {limit} ms get 503 \
             (queue_timeout); this one has for {waited} ms"
        );
        exchange.writer.log_message(Level::Warning, &message);
    }
    // An error means that the client is gone.
    let _ = exchange.reply(text_reply("503 Service Unavailable", TOO_LATE.reason, "Retry-After: 1\r\n"));
    None
}
