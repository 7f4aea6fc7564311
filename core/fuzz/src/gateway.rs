//! Fuzz target `gateway`: requests that web servers pass on by FastCGI and SCGI.

use poorhttp_http::{Event, Limits, Protocol, RequestParser};

use crate::packet::{Pair, pack};
use crate::receiver::{Message, Receiver};
use crate::requests::{limits, pieces};

/// Variables that are consumed or dropped.
const OURS: [&[u8]; 14] = [
    b"CONTENT_LENGTH",
    b"CONTENT_TYPE",
    b"GATEWAY_INTERFACE",
    b"HTTPS",
    b"PATH_INFO",
    b"QUERY_STRING",
    b"RAW_URI",
    b"REMOTE_ADDR",
    b"REMOTE_PORT",
    b"REQUEST_METHOD",
    b"REQUEST_URI",
    b"SCGI",
    b"SCRIPT_NAME",
    b"SERVER_SOFTWARE",
];

/// Parses requests of web servers. The first byte selects a protocol; the next four are the sizes of the pieces. After
/// a lower-case letter the rest are the received bytes; after an upper-case one it is variables, `NAME=value`, each
/// ended by a byte 0xff, then an empty one and the content.
pub fn gateway(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let Some((sizes, bytes)) = bytes.split_first_chunk::<4>() else { return };
    let protocol = match kind.to_ascii_lowercase() {
        b'u' => Protocol::Uwsgi,
        b's' => Protocol::Scgi,
        b'f' => Protocol::Fastcgi,
        _ => return,
    };
    if kind.is_ascii_lowercase() {
        return receive(protocol, sizes, bytes);
    }
    let (variables, content) = variables(bytes);
    let packed = pack(protocol, &variables, content);
    receive(protocol, sizes, &packed);
    // Packer and parser agree on the packet.
    let names_end = variables.iter().all(|(name, value)| !name.contains(&0) && !value.contains(&0));
    if protocol != Protocol::Scgi || names_end && variables.iter().any(|(name, _)| name == b"CONTENT_LENGTH") {
        let (mut unpacked, mut packed) = (unpacked(protocol, &packed), variables);
        unpacked.sort();
        packed.sort();
        assert_eq!(unpacked, packed);
    }
}

/// The variables of an input, and the content after them.
fn variables(mut bytes: &[u8]) -> (Vec<Pair>, &[u8]) {
    let mut variables = Vec::new();
    while let Some(end) = bytes.iter().position(|&byte| byte == 0xff) {
        let (variable, rest) = (&bytes[..end], &bytes[end + 1..]);
        bytes = rest;
        if variable.is_empty() {
            return (variables, bytes);
        }
        let middle = variable.iter().position(|&byte| byte == b'=').unwrap_or(end);
        let value = variable.get(middle + 1..).unwrap_or_default();
        variables.push((variable[..middle].to_vec(), value.to_vec()));
    }
    (variables, b"")
}

fn receive(protocol: Protocol, sizes: &[u8; 4], bytes: &[u8]) {
    for limits in limits() {
        let receiver =
            || Receiver { parser: RequestParser::of(protocol), limits: limits.clone(), ..Receiver::default() };
        let receive = |parts: &mut dyn Iterator<Item = &[u8]>| {
            let mut receiver = receiver();
            parts.for_each(|part| receiver.feed(part));
            receiver
        };
        // The result does not depend on how the bytes are split.
        let mut one_by_one = receive(&mut bytes.chunks(1));
        let ends = std::mem::take(&mut one_by_one.ends);
        let outcome = one_by_one.outcome();
        assert_eq!(receive(&mut pieces(bytes, sizes)).outcome(), outcome);
        assert_eq!(receive(&mut [bytes].into_iter()).outcome(), outcome);
        if outcome.rejected.is_some() {
            refused(receive(&mut [bytes].into_iter()));
        }
        // Each request alone has the same result as among the others; without its last byte it is incomplete.
        let mut start = 0;
        for (message, &end) in outcome.messages.iter().zip(&ends) {
            let whole = receive(&mut [&bytes[start..end]].into_iter()).outcome();
            assert_eq!(whole.messages[..], *std::slice::from_ref(message));
            let short = receive(&mut [&bytes[start..end - 1]].into_iter()).outcome();
            assert!(short.messages.is_empty() && short.rejected.is_none());
            understood(protocol, &limits, message, &bytes[start..end], true);
            start = end;
        }
        // Only FastCGI allows several requests.
        assert!(protocol == Protocol::Fastcgi || ends.len() <= 1);
        if let Some(message) = &outcome.unfinished {
            understood(protocol, &limits, message, &bytes[start..], false);
        }
        check_replies(&outcome.replies);
    }
}

/// Management replies are whole records with eight bytes of content, or values.
fn check_replies(mut replies: &[u8]) {
    while let [1, kind, _, _, 0, length, 0, 0, rest @ ..] = replies {
        assert!(matches!((*kind, *length), (3 | 11, 8) | (10, 0 | 18)));
        replies = &rest[usize::from(*length)..];
    }
    assert!(replies.is_empty());
}

/// A refusal is final, whatever is called or received.
fn refused(mut receiver: Receiver) {
    for byte in *b"\x000:" {
        receiver.parser.next_message(&mut receiver.buffer);
        receiver.buffer.room(0)[0] = byte;
        receiver.buffer.received(1);
        let event = receiver.parser.poll(&mut receiver.buffer, &receiver.limits);
        let Event::Rejected(reject) = event else { panic!("no longer refused: {event:?}") };
        assert_eq!(Some((reject.status, reject.reason)), receiver.outcome.rejected);
    }
}

/// The request has the meaning of its variables.
fn understood(protocol: Protocol, limits: &Limits, message: &Message, bytes: &[u8], is_complete: bool) {
    let (head, said) = (&message.head, unpacked(protocol, bytes));
    let gateway = head.gateway.as_ref().expect("a request of a web server");
    let last = |name: &[u8]| said.iter().rfind(|pair| pair.0 == name).map(|pair| &pair.1[..]);
    assert_eq!(message.bytes.len(), head.length);
    if protocol != Protocol::Fastcgi {
        // Only names of header fields are rewritten.
        assert!(head.length <= limits.head);
        assert_eq!(in_capitals(&message.bytes), in_capitals(&bytes[..head.length]));
    }
    // Every field and every variable is from the input, in its order; none controls uWSGI or this server.
    assert_eq!(
        message.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect::<Vec<_>>(),
        fields(&said)
    );
    let variables: Vec<_> = gateway.variables.iter().map(|field| (field.name, field.value)).collect();
    let variables = variables.iter().map(|(name, value)| (name.of(&message.bytes), value.of(&message.bytes)));
    let passed = said.iter().filter(|(name, value)| is_passed(name, value));
    let (script, others): (Vec<_>, Vec<_>) = variables.partition(|(name, _)| *name == b"SCRIPT_NAME");
    assert_eq!(others, passed.map(|(name, value)| (&name[..], &value[..])).collect::<Vec<_>>());
    // The trailing slash of SCRIPT_NAME belongs to the path.
    let mount = last(b"SCRIPT_NAME").map(|name| name.strip_suffix(b"/").unwrap_or(name));
    assert!(script.len() <= 1 && script.iter().all(|(_, value)| mount == Some(value)));
    // No value has a control character.
    let values = message.fields().chain(others).chain(script.iter().copied()).map(|(_, value)| value);
    assert!(values.flatten().all(|&byte| byte == b'\t' || byte >= b' ' && byte != 0x7f));
    assert!(message.fields().count() <= limits.fields);
    // Host, length and method occur once.
    for name in [&b"HOST"[..], b"CONTENT-LENGTH"] {
        assert!(message.fields().filter(|(other, _)| *other == name).count() <= 1);
    }
    assert_eq!(Some(message.method()), last(b"REQUEST_METHOD"));
    // The target is one line of visible characters, or a decoded path.
    let uri = last(b"REQUEST_URI").filter(|uri| !uri.is_empty());
    assert_eq!(Some(message.target()), uri.or(last(b"PATH_INFO")));
    assert!(uri.is_none_or(|uri| uri.iter().all(u8::is_ascii_graphic) && uri.len() <= limits.request_line));
    // The path has no line end and no NUL.
    let path = head.decoded_path(&message.bytes);
    assert!(path.is_empty() || path.starts_with(b"/") || *path == *b"*" && message.method() == b"OPTIONS");
    assert!(!path.iter().any(|byte| b"\0\r\n".contains(byte)));
    // A decoded path may have had a backslash from the start.
    let is_of_target = last(b"PATH_INFO").is_none() && uri.is_some();
    assert!(is_of_target || !path.contains(&b'\\'));
    // Without PATH_INFO, SCRIPT_NAME and path together are the requested path, or SCRIPT_NAME is all of it.
    if let (None, Some(said)) = (last(b"PATH_INFO"), last(b"SCRIPT_NAME")) {
        let script = script.first().map(|(_, value)| *value).unwrap_or_default();
        assert!(said == script || said.is_empty() || said == &*path && script.is_empty());
    }
    if let Some(said) = last(b"PATH_INFO") {
        let is_slash = said.is_empty() && last(b"SCRIPT_NAME").is_some_and(|name| name.ends_with(b"/"));
        assert_eq!(&*path, if is_slash { b"/" } else { said });
        assert_eq!(head.query().of(&message.bytes), last(b"QUERY_STRING").unwrap_or_default());
    }
    // The content has the announced length.
    let length = said.iter().find(|(name, value)| name == b"CONTENT_LENGTH" && !value.is_empty());
    let length = length.map(|(_, value)| String::from_utf8_lossy(value).parse::<usize>().expect("a number"));
    assert!(length.is_none_or(|length| length as u64 <= limits.body));
    let content = match protocol {
        Protocol::Fastcgi => stream(bytes, STDIN),
        _ => bytes[head.length..].iter().copied().take(length.unwrap_or(0)).collect(),
    };
    // A part of an incomplete record is already content.
    assert!(content.starts_with(&message.body) || message.body.starts_with(&content));
    assert!(!is_complete || message.body == content && length.is_none_or(|length| length == content.len()));
    assert!(message.body.len() as u64 <= limits.body);
    // The client has the address of REMOTE_ADDR, or none.
    let client = last(b"REMOTE_ADDR").map(String::from_utf8_lossy).and_then(|address| address.parse().ok());
    assert_eq!(gateway.client.map(|client| client.ip()), client);
}

fn in_capitals(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if *byte == b'_' { b'-' } else { byte.to_ascii_uppercase() }).collect()
}

/// The header fields among variables, as the application sees them.
fn fields(said: &[Pair]) -> Vec<Pair> {
    let field = |(name, value): &Pair| {
        let name = match name.strip_prefix(b"HTTP_").map(in_capitals) {
            Some(name) if name == b"CONTENT-TYPE" || name == b"CONTENT-LENGTH" => return None,
            Some(name) if name == b"HOST" && value.is_empty() => return None,
            Some(name) => name,
            None if (name == b"CONTENT_TYPE" || name == b"CONTENT_LENGTH") && !value.is_empty() => in_capitals(name),
            None => return None,
        };
        Some((name, value.clone()))
    };
    said.iter().filter_map(field).collect()
}

/// Whether a variable is passed to the application.
fn is_passed(name: &[u8], value: &[u8]) -> bool {
    let of_server = matches!(name, b"SERVER_NAME" | b"SERVER_PORT") && value.is_empty();
    !(OURS.contains(&name) || of_server || name.starts_with(b"UWSGI_") || name.starts_with(b"HTTP_"))
}

const BEGIN: u8 = 1;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;

/// A stream of the first FastCGI request for a responder, as far as it is received.
fn stream(bytes: &[u8], wanted: u8) -> Vec<u8> {
    let mut stream = Vec::new();
    let (mut at, mut request) = (0, None);
    while let Some(&[_, kind, high, low, length, rest, padding, _]) = bytes.get(at..at + 8) {
        let (number, length) = ((high, low), 256 * usize::from(length) + usize::from(rest));
        let Some(content) = bytes.get(at + 8..at + 8 + length) else { break };
        at += 8 + length + usize::from(padding);
        if kind == BEGIN && request.is_none() && number != (0, 0) && content.starts_with(&[0, 1]) {
            request = Some(number);
        } else if kind == wanted && Some(number) == request {
            if content.is_empty() {
                break;
            }
            stream.extend_from_slice(content);
        }
    }
    stream
}

/// The variables of a well-formed packet.
fn unpacked(protocol: Protocol, bytes: &[u8]) -> Vec<Pair> {
    if protocol == Protocol::Fastcgi {
        let stream = stream(bytes, PARAMS);
        let mut rest = &stream[..];
        let mut pairs = Vec::new();
        while !rest.is_empty() {
            let mut length = || {
                let bytes = if rest[0] < 128 { 1 } else { 4 };
                let (length, behind) = rest.split_at(bytes);
                rest = behind;
                length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)) & 0x7fff_ffff
            };
            let (name, value) = (length(), length());
            pairs.push((rest[..name].to_vec(), rest[name..name + value].to_vec()));
            rest = &rest[name + value..];
        }
        return pairs;
    }
    let strings: Vec<Vec<u8>> = if protocol == Protocol::Scgi {
        let colon = bytes.iter().position(|&byte| byte == b':').expect("a colon");
        let length: usize = String::from_utf8_lossy(&bytes[..colon]).parse().expect("a length");
        let text = bytes[colon + 1..colon + 1 + length].strip_suffix(b"\0").expect("a NUL at the end");
        text.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
    } else {
        let size = |bytes: &[u8]| usize::from(bytes[0]) + 256 * usize::from(bytes[1]);
        let mut strings = Vec::new();
        let mut rest = &bytes[4..4 + size(&bytes[1..])];
        while !rest.is_empty() {
            let (string, behind) = rest[2..].split_at(size(rest));
            strings.push(string.to_vec());
            rest = behind;
        }
        strings
    };
    strings.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}
