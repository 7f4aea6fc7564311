//! Targets `head`, `body` and `connection`: HTTP requests.

use poorhttp_http::{Limits, Version};

use crate::receiver::{Message, Outcome, Receiver, receive_within};

/// The head before the input of the target [`body`].
pub const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
/// A request after others.
const NEXT: &[u8] = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
/// The sizes of the pieces in which protocol cases arrive, as inputs of [`connection`].
pub(crate) const SIZES: &[u8; 4] = &[1, 7, 40, 255];

/// The default limits, and limits that a short input reaches.
pub(crate) fn limits() -> [Limits; 2] {
    let narrow =
        Limits { request_line: 60, fields: 4, field_line: 40, head: 200, body: 100, chunk_line: 12, trailers: 30 };
    [Limits::default(), narrow]
}

/// The bytes after the first head.
pub(crate) fn behind_head(bytes: &[u8]) -> Option<Vec<u8>> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| bytes[at + 4..].to_vec())
}

/// Adds a line end to the bytes. A fault in an incomplete line may be noticed at once or at its end, depending on how
/// it arrives; its reason must not depend on that.
fn line_ended(bytes: &[u8]) -> Vec<u8> {
    [bytes, b"\r\n"].concat()
}

/// The result for bytes that arrive one by one, and the end of each message. Any other split has the same result.
fn same_however_split(bytes: &[u8], limits: &Limits) -> (Outcome, Vec<usize>) {
    let mut receiver = Receiver { limits: limits.clone(), ..Receiver::default() };
    bytes.chunks(1).for_each(|byte| receiver.feed(byte));
    let ends = std::mem::take(&mut receiver.ends);
    let outcome = receiver.outcome();
    for piece in [7, usize::MAX] {
        assert_eq!(receive_within(limits, bytes.chunks(piece)), outcome, "{piece} bytes at once");
    }
    (outcome, ends)
}

/// Parses a request line, header fields and any bytes after them.
pub fn head(bytes: &[u8]) {
    let bytes = line_ended(bytes);
    for limits in limits() {
        let (outcome, _) = same_however_split(&bytes, &limits);
        let Some(message) = outcome.messages.first().or(outcome.unfinished.as_ref()) else { continue };
        // Every byte of a head belongs to exactly one of its parts, and none is a control character.
        assert_eq!(rebuilt(message), message.bytes);
        assert!(message.fields().flat_map(|(_, value)| value).all(|&byte| byte == b'\t' || byte >= b' '));
        if message.head.may_upgrade(&message.bytes) {
            // What follows the head is not a part of the request.
            assert_eq!((message.method(), message.head.body_length()), (&b"GET"[..], Some(0)));
            assert!(message.fields().any(|(name, _)| name.eq_ignore_ascii_case(b"upgrade")));
        }
        // Bytes after a head do not change it.
        let behind = receive_within(&limits, [&message.bytes[..], b"\0\n: x"]);
        let again = behind.messages.first().or(behind.unfinished.as_ref());
        assert!(again.is_none_or(|again| again.head == message.head));
        // Without its last byte a head is incomplete.
        let (_, short) = message.bytes.split_last().expect("a head is not empty");
        assert_eq!(receive_within(&limits, [short]), Outcome { rest: true, ..Outcome::default() });
    }
}

/// The head rebuilt from its parts; only white space around values is taken from the input.
fn rebuilt(message: &Message) -> Vec<u8> {
    let mut text = [message.method(), b" ", message.target(), b" HTTP/1."].concat();
    // Every minor version but 0 is read as 1.
    let minor = message.bytes[text.len()];
    assert!(minor.is_ascii_digit() && (minor == b'0') == (message.head.version == Version::Http10));
    text.extend([minor, b'\r', b'\n']);
    let space = |text: &mut Vec<u8>| {
        let rest = message.bytes.get(text.len()..).unwrap_or_default();
        text.extend(rest.iter().take_while(|&&byte| byte == b' ' || byte == b'\t'));
    };
    for (name, value) in message.fields() {
        text.extend_from_slice(name);
        text.push(b':');
        space(&mut text);
        text.extend_from_slice(value);
        space(&mut text);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

/// Parses chunks and trailers after a head that announces them.
pub fn body(bytes: &[u8]) {
    let bytes = line_ended(&[POST, bytes].concat());
    for limits in limits() {
        let (outcome, ends) = same_however_split(&bytes, &limits);
        let (Some(message), Some(&end)) = (outcome.messages.first(), ends.first()) else { continue };
        // Framing and content account for every byte of a body once.
        let (content, length) = unchunked(&bytes[POST.len()..]);
        assert_eq!((&message.body, end), (&content, POST.len() + length));
        assert!(content.len() as u64 <= limits.body);
        // Bytes after a body are not read as a part of it.
        let next = receive_within(&limits, [&bytes[..end], NEXT]);
        assert_eq!((&next.messages[0], next.messages[1].target()), (message, &b"/next"[..]));
        // Without its last byte a body is incomplete.
        let short = receive_within(&limits, [&bytes[..end - 1]]);
        assert!(short.messages.is_empty() && short.rejected.is_none());
    }
}

/// The content of a well-formed chunked body, and its length including framing.
fn unchunked(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut content = Vec::new();
    let mut at = 0;
    let line = |at: usize| bytes[at..].windows(2).position(|end| end == b"\r\n").expect("a line ends");
    loop {
        let text = &bytes[at..at + line(at)];
        let size = text
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .fold(0, |size, &digit| size * 16 + char::from(digit).to_digit(16).expect("a digit") as usize);
        at += text.len() + 2;
        if size == 0 {
            break;
        }
        content.extend_from_slice(&bytes[at..at + size]);
        at += size + 2;
    }
    while line(at) > 0 {
        at += line(at) + 2;
    }
    (content, at + 2)
}

/// Parses everything received on one connection. The first four bytes are the sizes of the pieces.
pub fn connection(bytes: &[u8]) {
    let Some((sizes, bytes)) = bytes.split_first_chunk::<4>() else { return };
    let bytes = &line_ended(bytes)[..];
    for limits in limits() {
        let (outcome, ends) = same_however_split(bytes, &limits);
        // The result does not depend on how the bytes are split, or on remembered heads.
        for remembers in [false, true] {
            let mut receiver = Receiver { limits: limits.clone(), remembers, ..Receiver::default() };
            pieces(bytes, sizes).for_each(|piece| receiver.feed(piece));
            assert_eq!(receiver.outcome(), outcome, "remembers: {remembers}");
        }
        // No byte is read as part of another message: each alone has the same result as among the others.
        let mut start = 0;
        for (message, &end) in outcome.messages.iter().zip(&ends) {
            let alone = receive_within(&limits, [&bytes[start..end]]);
            assert_eq!(alone, Outcome { messages: vec![message.clone()], ..Outcome::default() });
            start = end;
        }
        // So has a refused or incomplete message.
        let last = receive_within(&limits, [&bytes[start..]]);
        let closed = outcome.messages.last().is_some_and(|message| !message.head.keep_alive);
        if !closed {
            assert_eq!(last, Outcome { messages: Vec::new(), ..outcome });
        }
        // No byte after a refusal is read.
        if last.rejected.is_some() && !closed {
            assert_eq!(receive_within(&limits, [&bytes[start..], NEXT]), last);
        }
    }
}

/// Bytes in pieces, whose sizes repeat until none is left.
pub(crate) fn pieces<'a>(bytes: &'a [u8], sizes: &[u8; 4]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    sizes.iter().cycle().map_while(move |&size| {
        let (piece, behind) = rest.split_at(rest.len().min(usize::from(size.max(1))));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}
