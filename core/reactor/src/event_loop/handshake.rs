//! Advances a connection that has begun with TLS: to its first request, or to its end; counts and logs failed handshakes.
//!
//! A turn is one step: what has arrived is processed, and the answer is sent. Other connections have their turn between.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::connection::Connection;
use crate::connection::peer_trust::client_suffix;
use crate::connection::state::PhaseEvent;
use crate::connection::stream_protocol::Negotiation;
use crate::connection::transport::tls::Handshake;
use crate::event_loop::advance::{Step, receive_proxy_header};
use crate::log::error::Level;
use crate::scheduler::state::State;
use crate::scheduler::{put_back, release, streams};
use poorhttp_http::Reject;

const PLAIN: Reject = Reject { status: 400, reason: "plain HTTP was sent to an HTTPS port" };

/// Goes on with a handshake. `Some`: it is complete. `expired`: its time is over.
#[cold]
pub(super) fn advance(state: &Arc<State>, mut connection: Box<Connection>, expired: bool) -> Option<Box<Connection>> {
    let metrics = &state.counters.metrics;
    if expired {
        metrics.tls_failures.fetch_add(1, Ordering::Relaxed);
        let reason = if state.is_stopping() { "the server stops" } else { "it was not complete in time" };
        give_up(state, connection, Level::Info, reason);
        return None;
    }
    let received = if connection.request.awaits_proxy_header() {
        if let Some(step) = receive_proxy_header(state, &mut connection) {
            match step {
                Step::Refuse(reject) => {
                    connection.transition(PhaseEvent::EndHandshake);
                    release::refuse(state, connection, reject);
                }
                Step::Wait => release::wait_for_more(state, connection),
                _ => put_back::close(state, connection),
            }
            return None;
        }
        // It begins with TLS; nothing of a request has come.
        connection.request.buffers.take().map(|buffers| buffers.read_buffer.unread().to_vec())
    } else {
        None
    };
    let socket = Arc::clone(&connection.socket);
    let Some(tls) = socket.transport.tls() else { return Some(connection) };
    let outcome = tls.handshake(received.as_deref());
    connection.note_records(tls);
    match outcome {
        Handshake::Done => {
            metrics.tls_handshakes.fetch_add(1, Ordering::Relaxed);
            connection.transition(PhaseEvent::EndHandshake);
            connection.time_limit = 0;
            let has_streams = match connection.negotiation {
                Negotiation::Always => true,
                Negotiation::Tls => tls.has_streams(),
                _ => false,
            };
            if has_streams {
                connection.transition(PhaseEvent::BeginStreams);
                streams::advance(state, connection);
                return None;
            }
            return Some(connection);
        }
        Handshake::Wait => release::wait_for_more(state, connection),
        Handshake::Plain => {
            metrics.tls_failures.fetch_add(1, Ordering::Relaxed);
            connection.transition(PhaseEvent::EndHandshake);
            release::refuse(state, connection, PLAIN);
        }
        Handshake::Failed(reason) => {
            metrics.tls_failures.fetch_add(1, Ordering::Relaxed);
            log_failure(state, &connection, Level::Info, &reason);
            connection.transition(PhaseEvent::EndHandshake);
            release::linger(state, connection);
        }
        Handshake::Left => give_up(state, connection, Level::Debug, "the client has left"),
    }
    None
}

fn log_failure(state: &State, connection: &Connection, level: Level, reason: &str) {
    let client = client_suffix(connection.request.client());
    state.log(level, &format!("a TLS handshake{client} has failed: {reason}"));
}

/// Closes a connection whose handshake is not going to be complete.
fn give_up(state: &State, connection: Box<Connection>, level: Level, reason: &str) {
    log_failure(state, &connection, level, reason);
    release::close_gracefully(state, connection);
}
