//! Agreement with HTTP/1.1: the cases of requests that both have, and responses that are written as text.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../http/tests/case/mod.rs"]
mod case;
#[path = "../../http/tests/receiver/mod.rs"]
mod receiver;
mod session;

use std::collections::BTreeMap;
use std::sync::Arc;

use poorhttp_http::{Response, ServerFields};
use poorhttp_http2::{Connection, Event, Options, PREFACE, Unsent};
use receiver::receive;
use session::{DATA, HEADERS, Session, client, frame, literals};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A request as a client of HTTP/2 would send it; `None`: what the case is about does not exist in HTTP/2.
fn translated(bytes: &[u8]) -> Option<(Fields, Vec<u8>)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let (head, body) = (&bytes[..end], &bytes[end + 4..]);
    // Line ends other than those of the protocol do not exist in HTTP/2.
    let text = head.iter().map(|&byte| char::from(byte)).collect::<String>();
    let lines: Vec<Vec<u8>> = text.split("\r\n").map(|line| line.chars().map(|each| each as u8).collect()).collect();
    if lines.concat().iter().any(|byte| b"\r\n".contains(byte)) {
        return None;
    }
    let mut lines = lines.iter();
    let parts: Vec<&[u8]> = lines.next()?.split(|&byte| byte == b' ').collect();
    let &[method, target, version] = &parts[..] else { return None };
    if version != b"HTTP/1.1" || !matches!(target, [b'/', ..] | b"*") || head.contains(&b'\0') {
        return None;
    }
    let mut fields: Fields = Vec::new();
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = line[..colon].to_ascii_lowercase();
        match &name[..] {
            _ if name.iter().any(|byte| byte.is_ascii_whitespace()) => return None,
            b"connection" => {}
            // What frames a message or asks for another protocol is not the same.
            b"transfer-encoding" | b"transfer_encoding" | b"upgrade" | b"te" | b"keep-alive" | b"trailer" => {
                return None;
            }
            _ => fields.push((name, poorhttp_http::trim(&line[colon + 1..]).to_vec())),
        }
    }
    let pseudo = [(&b":method"[..], method), (b":scheme", b"http"), (b":path", target)];
    let pseudo = pseudo.map(|(name, value)| (name.to_vec(), value.to_vec()));
    Some((pseudo.into_iter().chain(fields).collect(), body.to_vec()))
}

/// Of a field that may come more than once, all values.
fn sorted(fields: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut sorted: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (name, value) in fields.filter(|(name, _)| name != b"connection") {
        sorted.entry(name).or_default().push(value);
    }
    sorted
}

/// Every case of a request that has a meaning in HTTP/2 has the same result there.
#[test]
fn requests_have_the_result_that_they_have_in_http1() {
    let (mut compared, mut refused) = (0, 0);
    for case in case::requests() {
        let Some((fields, body)) = translated(&case.send) else { continue };
        let one = receive([&case.send[..]]);
        let mut connection = Connection::new(Arc::new(Options::default()));
        let block = literals(fields.iter().map(|(name, value)| (&name[..], &value[..])));
        let mut bytes = [&PREFACE[..], &client("SETTINGS")].concat();
        let parts: Vec<&[u8]> = block.chunks(16_384).collect();
        let announced = fields.iter().find(|(name, _)| name == b"content-length");
        let length = announced.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
        let content = &body[..body.len().min(length.unwrap_or(0))];
        for (number, part) in parts.iter().enumerate() {
            let (kind, end) = if number == 0 { (HEADERS, u8::from(content.is_empty())) } else { (9, 0) };
            bytes.extend(frame(kind, end | if number + 1 == parts.len() { 4 } else { 0 }, 1, part));
        }
        if !content.is_empty() {
            bytes.extend(frame(DATA, 1, 1, content));
        }
        let mut rest = &bytes[..];
        let name = &case.name;
        match connection.receive(&mut rest) {
            Event::Request(request) => {
                let first = one.messages.first().or(one.unfinished.as_ref());
                let first = first.unwrap_or_else(|| panic!("{name}: HTTP/1.1 has refused it: {:?}", one.rejected));
                let of = |span: poorhttp_http::Span| span.of(&request.text).to_vec();
                assert_eq!(
                    (of(request.head.method), of(request.head.target)),
                    (first.method().into(), first.target().into()),
                    "{name}"
                );
                assert_eq!(of(request.head.path()), first.head.path().of(&first.bytes), "{name}");
                assert_eq!(of(request.head.query()), first.head.query().of(&first.bytes), "{name}");
                assert_eq!(request.head.expects_continue, first.head.expects_continue, "{name}");
                assert_eq!(request.head.body_length(), first.head.body_length(), "{name}");
                let joined = |(field, values): (Vec<u8>, Vec<Vec<u8>>)| match &field[..] {
                    b"cookie" => (field, vec![values.join(&b"; "[..])]),
                    _ => (field, values),
                };
                let here = request.head.fields.iter().map(|field| (of(field.name), of(field.value)));
                let there = first.fields().map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec()));
                let there: BTreeMap<_, _> = sorted(there).into_iter().map(joined).collect();
                assert_eq!(sorted(here), there, "{name}");
                if let Event::Content { bytes, .. } = connection.receive(&mut rest) {
                    assert!(bytes == first.body, "{name}");
                }
                compared += 1;
            }
            Event::Refused { reject, .. } if reject == poorhttp_http::Reject::OTHER_LENGTH => {
                // HTTP/1.1 waits for the rest of the content.
                assert!(one.unfinished.is_some(), "{name}");
            }
            Event::Refused { reject, .. } => {
                let reason = match (reject.reason, one.rejected) {
                    // A line has no parts to name if it is malformed.
                    (_, Some((400, line @ "a malformed request line"))) => line,
                    // The first limit that is exceeded is another one if the head comes field by field.
                    (_, Some((431, other))) => other,
                    (reason, _) => reason,
                };
                let both = ((reject.status, reason), one.rejected);
                assert_eq!(Some(both.0), both.1, "{name}");
                refused += 1;
            }
            event => panic!("{name}: {event:?}"),
        }
    }
    assert!(compared > 90 && refused > 150, "{compared} and {refused}");
}

/// Sends a head that the response writer has written.
fn send_written(connection: &mut Connection, stream: u32, text: &[u8]) {
    let end = text.iter().position(|&byte| byte == b'\n').unwrap();
    let status = std::str::from_utf8(&text[9..12]).unwrap().parse().unwrap();
    connection.send_lines(stream, status, &text[end + 1..], false).unwrap();
}

/// The response writer of HTTP/1.1, for a request of HTTP/2: its text has no fields about the connection.
#[test]
fn responses_are_written_as_text() {
    let server_fields = ServerFields { date: b"Date: now\r\n", server: b"Server: us\r\n", closing: true };
    for (known, ends) in [(Some(5), "DATA 1 5 end"), (None, "DATA 1 5 end")] {
        let mut session = Session::new(Options::default(), usize::MAX);
        session.begin();
        let mut bytes = &client("HEADERS 1 end -- get")[..];
        let Event::Request(request) = session.connection.receive(&mut bytes) else { panic!() };
        let (mut response, mut out) = (Response::new(&request.head, &request.text, 0), Vec::new());
        assert_eq!(&*request.head.request_line(&request.text), b"GET / HTTP/2.0");
        response.start(&mut out, "200 OK").unwrap();
        assert!(response.takes_interim());
        let mut interim = Vec::new();
        response.early_hints(&mut interim, |field| field("Link", "</a>")).unwrap();
        send_written(&mut session.connection, 1, &interim);
        response.field(&mut out, "X-Answer", "yes").unwrap();
        response.commit(&mut out, known, &server_fields).unwrap();
        assert!(!response.ends_with_connection());
        send_written(&mut session.connection, 1, &out);
        out.clear();
        let admitted = response.admit(5);
        response.open_chunk(&mut out, admitted);
        out.extend_from_slice(b"hello");
        out.extend_from_slice(response.end_of_chunk(admitted));
        let ending = response.end(&mut out);
        assert_eq!((&out[..], ending.missing, ending.excess), (&b"hello"[..], 0, 0));
        assert_eq!(session.connection.send_data(1, &out, true), Ok(5));
        session.receive(b"");
        session.receive(&client("PING 0000000000000000"));
        let length = known.map_or(String::new(), |known: u64| format!(" ; content-length: {known}"));
        assert_eq!(
            session.sent.iter().map(String::as_str).collect::<Vec<_>>(),
            [
                "HEADERS 1 -- :status: 103 ; link: </a>",
                &format!("HEADERS 1 -- :status: 200 ; x-answer: yes{length} ; date: now ; server: us"),
                ends,
                "PING 0000000000000000 ack"
            ]
        );
    }
}

/// Lines that are no fields are not sent.
#[test]
fn lines_that_are_no_fields() {
    for lines in ["no field\r\n", ": a\r\n", "a b: c\r\n", "a: b\rc\r\n", "a: b\r\n c: d\r\n"] {
        let mut session = Session::new(Options::default(), usize::MAX);
        session.begin();
        session.receive(&client("HEADERS 1 end -- get"));
        assert_eq!(session.connection.send_lines(1, 200, lines.as_bytes(), false), Err(Unsent::Invalid), "{lines:?}");
    }
}
