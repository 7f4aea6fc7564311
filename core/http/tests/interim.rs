//! Interim responses (1xx): their bytes, and that the final response is the same with them and without.

use poorhttp_http::{Event, Invalid, Limits, Protocol, ReadBuffer, RequestParser, Response, ServerFields};

/// A response to an earlier, pipelined request.
const EARLIER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// The response to a request with this head, after another response.
fn answer_to(head: &str) -> (Response, Vec<u8>) {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    buffer.room(0)[..head.len()].copy_from_slice(head.as_bytes());
    buffer.received(head.len());
    assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Head);
    (Response::new(&buffer.head, buffer.head_bytes(), EARLIER.len()), EARLIER.to_vec())
}

fn hints(response: &Response, fields: &[(&str, &str)]) -> Result<String, String> {
    let mut out = Vec::new();
    let written = response
        .early_hints::<Invalid>(&mut out, |write| fields.iter().try_for_each(|(name, value)| write(name, value)));
    written.map(|()| String::from_utf8(out).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn early_hints_are_written_and_checked() {
    let (response, _) = answer_to("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let link = ("Link", "</a>; rel=preload");
    let expected = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nDate: now\r\n\r\n";
    assert_eq!(hints(&response, &[link, ("Date", "now")]).unwrap(), expected);
    assert_eq!(hints(&response, &[]).unwrap(), "HTTP/1.1 103 Early Hints\r\n\r\n");
    for (name, value, reason) in [
        ("Link", "a\r\nb", "control character"),
        ("Li nk", "a", "not allowed in a name"),
        ("Content-Length", "0", "no content"),
        ("content-length", "0", "no content"),
        ("Transfer-Encoding", "chunked", "hop-by-hop"),
    ] {
        let error = hints(&response, &[link, (name, value)]).unwrap_err();
        assert!(error.contains(reason), "{name}: {error}");
    }
}

#[test]
fn only_clients_of_http_1_1_take_interim_responses() {
    let server = ServerFields { date: b"", server: b"", closing: false };
    let (mut response, mut out) = answer_to("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(response.takes_interim());
    response.start(&mut out, "200 OK").unwrap();
    assert!(response.takes_interim());
    response.commit(&mut out, None, &server).unwrap();
    assert!(!response.takes_interim(), "it has begun");
    assert!(!answer_to("GET / HTTP/1.0\r\n\r\n").0.takes_interim());
    for protocol in [Protocol::Uwsgi, Protocol::Scgi, Protocol::Fastcgi] {
        let dialect = RequestParser::of(protocol).dialect();
        assert!(!Response::to_refused(dialect, false, 0).takes_interim());
    }
}

#[test]
fn a_head_is_put_back_behind_an_interim_response() {
    let (mut response, mut out) = answer_to("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(response.set_aside(&mut out).is_empty() && out == EARLIER);
    response.put_back(&mut out, &[]);
    response.start(&mut out, "200 OK").unwrap();
    response.field(&mut out, "X", "y").unwrap();
    for _ in 0..2 {
        let aside = response.set_aside(&mut out);
        assert_eq!((&aside[..], &out[..]), (&b"HTTP/1.1 200 OK\r\nX: y\r\n"[..], EARLIER));
        // The output was sent.
        out.clear();
        out.extend_from_slice(b"more");
        response.put_back(&mut out, &aside);
        assert_eq!(out, b"moreHTTP/1.1 200 OK\r\nX: y\r\n");
        out.splice(..4, EARLIER.iter().copied());
        response.put_back(&mut EARLIER.to_vec(), &[]);
    }
    response.restart(&mut out);
    assert_eq!(out, EARLIER, "it begins where it was put back");
    response.start(&mut out, "404 Not Found").unwrap();
    let server = ServerFields { date: b"", server: b"", closing: false };
    response.commit(&mut out, Some(0), &server).unwrap();
    let end = out.len();
    assert!(response.set_aside(&mut out).is_empty() && out.len() == end, "a complete head stays");
    response.put_back(&mut out, &[]);
    assert_eq!(out.len(), end);
}
