//! Redirects requests that come without TLS to `https`.

use std::io::Write as _;
use std::sync::Arc;

use poorhttp_http::{Head, Protocol, split_authority};

use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::exchange::reply::text_reply;
use crate::scheduler::state::State;

/// Redirects a request to the same host at `port`, or returns its connection. A proxy has its own rules, and says with each
/// request how its client came.
#[inline]
pub(crate) fn answer(state: &Arc<State>, connection: Box<Connection>, port: u16) -> Option<Box<Connection>> {
    let request = &connection.request;
    if request.over_tls
        || request.is_from_trusted_proxy()
        || request.peer().is_none()
        || request.parser.dialect().protocol != Protocol::Http
    {
        return Some(connection);
    }
    redirect(state, connection, port)
}

#[cold]
fn redirect(state: &Arc<State>, connection: Box<Connection>, port: u16) -> Option<Box<Connection>> {
    let location = connection.request.head().and_then(|(head, bytes)| location(head, bytes, port));
    let mut exchange = match &location {
        // OPTIONS *
        None if connection.request.asks_server() => return Some(connection),
        _ => Exchange::new(Arc::clone(state), connection, state.next_number(), false),
    };
    let reply = match location {
        Some(location) => text_reply("308 Permanent Redirect", "use https", &format!("Location: {location}\r\n")),
        None => text_reply("400 Bad Request", "use https; without Host there is no address to go to", ""),
    };
    // An error means that the client is gone.
    let _ = exchange.reply(reply);
    None
}

/// The address of the request over TLS; `None`: the client has not named a host.
fn location(head: &Head, bytes: &[u8], port: u16) -> Option<String> {
    let (host, _) = split_authority(head.requested_authority(bytes));
    let (path, query) = (head.path().of(bytes), head.query().of(bytes));
    if host.is_empty() || host == b"*" || path == b"*" {
        return None;
    }
    // The parser has refused everything but visible ASCII in Host and target, so nothing is to be encoded.
    let mut out = b"https://".to_vec();
    out.extend_from_slice(host);
    if port != 443 {
        let _ = write!(out, ":{port}");
    }
    out.extend_from_slice(if path.is_empty() { b"/" } else { path });
    if !query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    String::from_utf8(out).ok()
}
