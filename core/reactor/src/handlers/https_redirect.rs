//! Redirects requests that come without TLS to `https`.

use std::io::Write as _;
use std::sync::Arc;

use poorhttp_http::{Head, Protocol, split_authority};

use crate::connection::Connection;
use crate::event_loop::reactor::Reactor;
use crate::exchange::Exchange;
use crate::exchange::response::text_reply;

/// Redirects a request to the same host at `port`, or returns its connection. A proxy has its own rules, and says with each
/// request how its client came.
#[inline]
pub(crate) fn answer(reactor: &Arc<Reactor>, connection: Box<Connection>, port: u16) -> Option<Box<Connection>> {
    let request = &connection.request;
    if request.over_tls
        || request.is_from_trusted_proxy()
        || request.peer().is_none()
        || request.parser.dialect().protocol != Protocol::Http
    {
        return Some(connection);
    }
    redirect(reactor, connection, port)
}

#[cold]
fn redirect(reactor: &Arc<Reactor>, connection: Box<Connection>, port: u16) -> Option<Box<Connection>> {
    let location = connection.request.head().and_then(|(head, bytes)| location(head, bytes, port));
    let mut exchange = match &location {
        // OPTIONS *
        None if connection.request.head().is_some_and(|(head, bytes)| head.path().of(bytes) == b"*") => {
            return Some(connection);
        }
        _ => Exchange::new(Arc::clone(reactor), connection, reactor.next_number(), false),
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
    if host.is_empty() || host == b"*" {
        return None;
    }
    let mut out = b"https://".to_vec();
    push_ascii(&mut out, host);
    if port != 443 {
        let _ = write!(out, ":{port}");
    }
    let path = head.path().of(bytes);
    if path == b"*" {
        return None;
    }
    push_ascii(&mut out, if path.is_empty() { b"/" } else { path });
    let query = head.query();
    if !query.is_empty() {
        out.push(b'?');
        push_ascii(&mut out, query.of(bytes));
    }
    String::from_utf8(out).ok()
}

/// Adds a part of an address, with what is not ASCII encoded.
fn push_ascii(out: &mut Vec<u8>, part: &[u8]) {
    for &byte in part {
        match byte {
            0x21..0x7f => out.push(byte),
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
}
