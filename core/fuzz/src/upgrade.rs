//! Fuzz target `upgrade`: parses requests for a protocol upgrade, and the bytes that an application sends after one.

use poorhttp_http::{SentBytes, Version};

use crate::receiver::{Message, Receiver};
use crate::requests::{limits, pieces};

/// Other versions of HTTP, and TLS.
const OURS: [&str; 5] = ["http", "h2c", "h2", "h3", "tls"];

/// After `h`, parses requests, of which some ask for another protocol; after `s`, follows the bytes of an application, after `w`
/// those of one whose client asks for WebSocket. Four bytes are the sizes of the pieces.
pub fn upgrade(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let Some((sizes, bytes)) = bytes.split_first_chunk::<4>() else { return };
    match kind {
        b'h' => requests(sizes, bytes),
        b's' | b'w' => sent(*kind == b'w', sizes, bytes),
        _ => {}
    }
}

fn requests(sizes: &[u8; 4], bytes: &[u8]) {
    for limits in limits() {
        for remembers in [false, true] {
            let mut receiver = Receiver { limits: limits.clone(), remembers, ..Receiver::default() };
            pieces(bytes, sizes).for_each(|piece| receiver.feed(piece));
            let outcome = receiver.outcome();
            for message in outcome.messages.iter().chain(&outcome.unfinished) {
                let may_upgrade = message.head.may_upgrade(&message.bytes);
                // What is given away is what RFC 9110 lets be given away, and no request that others may understand otherwise.
                assert_eq!(may_upgrade, may_be_upgraded(message), "{:?}", String::from_utf8_lossy(&message.bytes));
                // Nothing of it belongs to its body, so all bytes behind the head belong to whoever gets the connection.
                assert!(!may_upgrade || message.body.is_empty());
                let only = protocols(message);
                assert_eq!(message.head.asks_websocket(&message.bytes), only == ["websocket"]);
            }
        }
    }
}

/// Elements of all fields of a name, in lower case.
fn elements(message: &Message, name: &str) -> Vec<String> {
    let fields = message.fields().filter(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
    let values = fields.map(|(_, value)| value.iter().map(|&byte| char::from(byte)).collect::<String>());
    let elements = values.flat_map(|value| {
        value.split(',').map(|part| part.trim_matches([' ', '\t']).to_ascii_lowercase()).collect::<Vec<_>>()
    });
    elements.filter(|element| !element.is_empty()).collect()
}

fn protocols(message: &Message) -> Vec<String> {
    elements(message, "upgrade")
}

fn may_be_upgraded(message: &Message) -> bool {
    let (options, protocols) = (elements(message, "connection"), protocols(message));
    let has = |name: &str| message.fields().any(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
    let length = elements(message, "content-length");
    let is_token = |part: &str| {
        !part.is_empty() && part.chars().all(|it| it.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(it))
    };
    let is_protocol =
        |text: &String| text.split_once('/').map_or(is_token(text), |(name, rest)| is_token(name) && is_token(rest));
    let is_other = |text: &String| !OURS.contains(&text.split('/').next().expect("a part"));
    message.method() == b"GET"
        && message.head.version == Version::Http11
        && options.iter().any(|option| option == "upgrade")
        && !has("transfer-encoding")
        && length.iter().all(|length| length.bytes().all(|digit| digit == b'0'))
        && !has("expect")
        && protocols.iter().all(is_protocol)
        && protocols.iter().any(is_other)
}

fn sent(is_websocket: bool, sizes: &[u8; 4], bytes: &[u8]) {
    let mut whole = SentBytes::new(is_websocket);
    whole.add(bytes);
    let mut parts = SentBytes::new(is_websocket);
    let mut done = 0;
    for piece in pieces(bytes, sizes) {
        parts.add(piece);
        done += piece.len();
        // A frame may be added exactly where one may begin.
        assert_eq!(parts.may_add_frame(), place(is_websocket, &bytes[..done]) == Place::Between);
    }
    let of = |sent: &SentBytes| {
        (sent.may_add_frame(), sent.will_have_frames(), sent.is_closed(), sent.status(), sent.head(), sent.total())
    };
    // The result does not depend on how the bytes are split.
    assert_eq!(of(&parts), of(&whole));
    let place = place(is_websocket, bytes);
    assert_eq!(whole.is_closed(), place == Place::Closed);
    assert_eq!(
        whole.will_have_frames(),
        matches!(place, Place::Between | Place::Within) || place == Place::Head && is_websocket
    );
    assert_eq!(whole.total(), bytes.len() as u64);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    assert_eq!(whole.head(), end as u64);
}

/// Where the bytes end.
#[derive(Debug, PartialEq)]
enum Place {
    Head,
    Between,
    Within,
    Closed,
    Other,
}

fn place(is_websocket: bool, bytes: &[u8]) -> Place {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Place::Head };
    if !is_websocket || !bytes.starts_with(b"HTTP/1.1 101") && !bytes.starts_with(b"HTTP/1.0 101") {
        return Place::Other;
    }
    let mut frames = &bytes[end + 4..];
    while let [first, second, rest @ ..] = frames {
        let (length, rest) = match (second & 0x7f, rest) {
            (126, [a, b, rest @ ..]) => (u64::from(u16::from_be_bytes([*a, *b])), rest),
            (127, [a, b, c, d, e, f, g, h, rest @ ..]) => (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), rest),
            (126 | 127, _) => return Place::Within,
            (short, rest) => (short.into(), rest),
        };
        let mask = usize::from(second >> 7) * 4;
        let Some(rest) = rest.get(mask..) else { return Place::Within };
        if first & 15 == 8 {
            return Place::Closed;
        }
        let Some(rest) = usize::try_from(length).ok().and_then(|length| rest.get(length..)) else {
            return Place::Within;
        };
        frames = rest;
    }
    if frames.is_empty() { Place::Between } else { Place::Within }
}
