//! Protocol cases about responses: what a client reads, and that no byte belongs to another response.

use crate::case::{Answer, Case, End, answers};
use poorhttp_http::{Event, Invalid, Limits, ReadBuffer, RequestParser, Response, ServerFields};

const AMBIENT: ServerFields<'_> = ServerFields { date: b"Date: now\r\n", server: b"Server: us\r\n", closing: false };

/// Writes a response as the reactor does. Returns whether the connection persists.
fn perform(response: &mut Response, out: &mut Vec<u8>, answer: &Answer, way: &str) -> Result<bool, Invalid> {
    response.start(out, &answer.status)?;
    for (name, value) in &answer.fields {
        response.field(out, name, value)?;
    }
    let total = answer.pieces.iter().map(|piece| piece.len() as u64).sum();
    response.commit(out, (way == "list" || total == 0).then_some(total), &AMBIENT)?;
    for piece in &answer.pieces {
        let admitted = response.admit(piece.len());
        response.open_chunk(out, admitted);
        out.extend_from_slice(&piece[..admitted]);
        out.extend_from_slice(response.end_of_chunk(admitted));
    }
    Ok(response.end(out).persists)
}

/// The bytes sent for a case, and whether the connection persists.
fn answer(case: &Case, way: &str) -> (Vec<u8>, bool) {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    buffer.room(0)[..case.send.len()].copy_from_slice(&case.send);
    buffer.received(case.send.len());
    assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Head, "{}", case.name);
    let mut out = Vec::new();
    let mut response = Response::new(&buffer.head, buffer.head_bytes(), 0);
    let performed = perform(&mut response, &mut out, case.answer.as_ref().unwrap(), way);
    let persists = performed.unwrap_or_else(|_| {
        response.restart(&mut out);
        assert!(out.is_empty(), "{}: something of the mistake is left", case.name);
        let sorry = Answer { status: "500 Sorry".into(), fields: vec![], pieces: vec![], ways: vec![] };
        perform(&mut response, &mut out, &sorry, "list").unwrap()
    });
    (out, persists)
}

/// A response as a client reads it (RFC 9112 section 6.3).
struct Reading {
    status: u16,
    body: Vec<u8>,
    /// Bytes of the body that are missing.
    missing: usize,
    /// The response announces that the connection closes.
    says_close: bool,
    /// The bytes after the response.
    rest: Vec<u8>,
}

fn read(bytes: &[u8], to_head: bool) -> Reading {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let head: String = bytes[..end - 2].iter().copied().map(char::from).collect();
    assert!(!head.replace("\r\n", "").contains(['\r', '\n', '\0']), "{head:?}");
    let mut lines = head.split_terminator("\r\n");
    let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
    let fields: Vec<(String, &str)> =
        lines.map(|line| line.split_once(": ").unwrap()).map(|(name, value)| (name.to_lowercase(), value)).collect();
    let get = |wanted: &str| {
        let values: Vec<&str> = fields.iter().filter(|(name, _)| name == wanted).map(|(_, value)| *value).collect();
        assert!(values.len() < 2, "{head}");
        values.first().copied()
    };
    let (length, coding) = (get("content-length"), get("transfer-encoding"));
    assert!(length.is_none() || coding.is_none(), "{head}");
    assert!(status != 204 || length.or(coding).is_none(), "{head}");
    let mut rest = &bytes[end..];
    let mut body = Vec::new();
    let mut missing = 0;
    let mut take = |length: usize| {
        let (content, behind) = rest.split_at(length.min(rest.len()));
        missing += length - content.len();
        rest = behind;
        content
    };
    match (length, coding) {
        _ if to_head || matches!(status, 204 | 304) => {}
        (Some(length), _) => body.extend_from_slice(take(length.parse().unwrap())),
        (None, Some("chunked")) => loop {
            let mut line = String::new();
            while !line.ends_with("\r\n") {
                line.push(char::from(*take(1).first().unwrap()));
            }
            let size = usize::from_str_radix(line.trim_end(), 16).unwrap();
            body.extend_from_slice(take(size));
            assert_eq!(take(2), b"\r\n");
            if size == 0 {
                break;
            }
        },
        (None, coding) => {
            assert_eq!((coding, get("connection")), (None, Some("close")));
            body.extend_from_slice(take(bytes.len() - end));
        }
    }
    Reading { status, body, missing, says_close: get("connection") == Some("close"), rest: rest.to_vec() }
}

#[test]
fn responses_are_read_as_expected() {
    for case in answers() {
        for way in &case.answer.as_ref().unwrap().ways {
            let name = format!("{} by {way}", case.name);
            let (bytes, persists) = answer(&case, way);
            let reading = read(&bytes, case.send.starts_with(b"HEAD "));
            assert_eq!([reading.status], case.statuses[..], "{name}");
            assert_eq!(persists, case.end == End::Keep, "{name}");
            assert_eq!(reading.says_close, case.end == End::Close, "{name}");
            assert_eq!(reading.missing > 0, case.end == End::Cut, "{name}");
            assert!(reading.rest.is_empty(), "{name}: {:?} is left over", reading.rest);
            if let Some(body) = &case.body {
                assert_eq!(reading.body, *body, "{name}");
            }
        }
    }
}
