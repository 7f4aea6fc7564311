//! Fuzz targets `forwarded` and `proxy_protocol`: header fields and PROXY protocol headers of proxies.

use std::net::SocketAddr;

use poorhttp_http::{Client, Origin, Reject, Source, TrustedProxies};

use crate::receiver::{Message, Outcome, Receiver, receive};
use crate::requests::pieces;

const PROXIES: [&str; 4] = ["10.0.0.0/8", "127.0.0.1", "fd00::/8", "unix"];
const HEADERS: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-forwarded-prefix"];
/// An address that is not in [`PROXIES`].
const STRANGER: &str = "198.51.100.77";

fn proxies() -> TrustedProxies {
    TrustedProxies::new(PROXIES, HEADERS).expect("the networks and headers are valid")
}

fn origin_of(message: &Message, trusted: bool, secure: bool) -> Result<Option<Origin>, Reject> {
    proxies().origin(&message.head, &message.bytes, trusted, secure)
}

/// A request with these fields; `None`: they are not valid in a request.
fn request(host: &[u8], fields: &[u8]) -> Option<Message> {
    let bytes = [b"GET / HTTP/1.1\r\nHost: ", host, b"\r\n", fields, b"\r\n\r\n"].concat();
    receive([&bytes[..]]).messages.into_iter().next()
}

/// Handles the header fields of a request from a proxy.
pub fn forwarded(fields: &[u8]) {
    let Some(message) = request(b"a:81", fields) else { return };
    // Fields from an untrusted peer are ignored.
    assert_eq!(origin_of(&message, false, false), Ok(None));
    let origin = match origin_of(&message, true, false) {
        Ok(Some(origin)) => origin,
        Ok(None) => return,
        Err(reject) => return assert_eq!(reject.status, 400),
    };
    // TLS of the connection is the scheme if no field names one, and changes nothing else.
    let secured = origin_of(&message, true, true).expect("as before").expect("as before");
    assert_eq!((&secured.prefix, secured.client), (&origin.prefix, origin.client));
    assert!(secured.scheme.is_some() && (origin.scheme.is_none() || secured == origin));
    // The authority is a valid Host.
    assert!(origin.authority.is_empty() || request(&origin.authority, b"X: y").is_some(), "{origin:?}");
    assert!(origin.host().is_none_or(|host| origin.authority.starts_with(host)));
    assert!(origin.scheme.is_none() || origin.port.is_some());
    // A prefix is a path without another meaning.
    if let Some(path) = origin.prefix.strip_prefix(b"/") {
        for segment in path.split(|&byte| byte == b'/') {
            assert!(!matches!(segment, b"" | b"." | b".."), "{origin:?}");
            assert!(!segment.iter().any(|byte| byte.is_ascii_control() || b"?#\\".contains(byte)), "{origin:?}");
        }
    } else {
        assert!(origin.prefix.is_empty(), "{origin:?}");
    }
    // An element to the left of an untrusted address changes nothing; elsewhere that address is the client.
    let forged = format!("X-Forwarded-For: unix:, 10.0.0.1, {STRANGER}\r\nForwarded: for={STRANGER};by=_x\r\n");
    if let Some(longer) = request(b"a:81", &[forged.as_bytes(), fields].concat())
        && let Ok(Some(again)) = origin_of(&longer, true, false)
    {
        let is_stranger = |client: Client| match client {
            Client::Address(address, _) => !proxies().contains(address),
            Client::Unknown => true,
            Client::Peer => false,
        };
        assert!(is_stranger(again.client), "{again:?}");
        let is_ours = again.client == Client::Address(STRANGER.parse().expect("an address"), None);
        assert!(is_ours || again.client == origin.client, "{again:?} instead of {origin:?}");
    }
    // Fields with one name are one list.
    if let Some(joined) = request(b"a:81", &joined(&message)) {
        assert_eq!(origin_of(&joined, true, false), Ok(Some(origin)));
    }
}

/// Joins fields with the same name.
fn joined(message: &Message) -> Vec<u8> {
    let mut lines = Vec::new();
    for header in HEADERS {
        let named = message.fields().filter(|(name, _)| name.eq_ignore_ascii_case(header.as_bytes()));
        let values: Vec<&[u8]> = named.map(|(_, value)| value).collect();
        if !values.is_empty() {
            lines.push([header.as_bytes(), b": ", &values.join(&b", "[..])].concat());
        }
    }
    lines.join(&b"\r\n"[..])
}

/// Parses the beginning of a connection with the PROXY protocol. The first four bytes are the sizes of the pieces.
pub fn proxy_protocol(bytes: &[u8]) {
    let Some((sizes, bytes)) = bytes.split_first_chunk::<4>() else { return };
    const NEXT: &[u8] = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    let bytes = [bytes, NEXT].concat();
    let whole = begin([&bytes[..]]);
    // The result does not depend on how the bytes are split.
    assert_eq!(begin(bytes.chunks(1)), whole);
    assert_eq!(begin(pieces(&bytes, sizes)), whole);
    if let Some(Ok((Source::Address(address), ..))) = whole {
        // The parsed header, written again, has the same meaning.
        let SocketAddr::V4(_) = address else { return };
        let line = format!("PROXY TCP4 {} 127.0.0.1 {} 1\r\n", address.ip(), address.port());
        let again = begin([line.as_bytes(), NEXT]);
        assert!(matches!(again, Some(Ok((Source::Address(same), ..))) if same == address));
    }
}

/// The client, whether it speaks TLS, and the outcome of the bytes after the header. `None`: the header is incomplete.
#[allow(clippy::type_complexity)]
fn begin<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Option<Result<(Source, bool, Outcome), Reject>> {
    let mut receiver = Receiver::default();
    let mut found = None;
    for part in parts {
        if found.is_some() {
            receiver.feed(part);
            continue;
        }
        let mut rest = part;
        while !rest.is_empty() {
            let room = receiver.buffer.room(0);
            let taken = room.len().min(rest.len());
            room[..taken].copy_from_slice(&rest[..taken]);
            receiver.buffer.received(taken);
            rest = &rest[taken..];
        }
        match receiver.buffer.take_proxy_header() {
            Ok(Some(header)) => found = Some(header),
            Ok(None) => {}
            Err(reject) => return Some(Err(reject)),
        }
    }
    let header = found?;
    // Bytes received with the header are parsed now.
    receiver.feed(b"\r\n");
    Some(Ok((header.source, header.secure, receiver.outcome())))
}
