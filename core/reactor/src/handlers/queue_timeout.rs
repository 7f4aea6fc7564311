//! Requests that have waited too long for a thread are answered with 503 and `Retry-After`.

use std::sync::Arc;

use crate::connection::Connection;
use crate::event_loop::reactor::Reactor;
use crate::exchange::Exchange;
use crate::exchange::response::text_reply;
use crate::log::error::Level;
use crate::sys::{AsFd, clock};

/// Answers a request that has waited too long, or returns its connection.
#[cold]
pub(crate) fn refuse_if_late(reactor: &Arc<Reactor>, connection: Box<Connection>) -> Option<Box<Connection>> {
    let Some(since_input) = reactor.options.since_input else { return Some(connection) };
    let Some(waited) = since_input(connection.socket.transport.as_fd()) else { return Some(connection) };
    let now = clock::now();
    // Waiting for earlier requests of the same connection does not count.
    let waited = waited.min(now.saturating_sub(connection.last_request_end));
    let Some(limit) = reactor.queue_timeout.exceeded(waited, now) else { return Some(connection) };
    let number = reactor.next_number();
    let mut exchange = Exchange::new(Arc::clone(reactor), connection, number, false);
    if reactor.queue_timeout.warned.is_due() {
        let message = format!(
            "more requests than can be answered: those that have waited for more than {limit} ms get 503 \
             (queue_timeout); this one has for {waited} ms"
        );
        exchange.log_message(Level::Warning, &message);
    }
    // An error means that the client is gone.
    let _ = exchange.reply(text_reply("503 Service Unavailable", "too many requests wait", "Retry-After: 1\r\n"));
    None
}
