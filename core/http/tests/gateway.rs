//! Requests of FastCGI, SCGI and uwsgi from case files, with their bytes cut anywhere.

use std::collections::BTreeMap;

use crate::packet::{Case, Expected, cases, pack};
use crate::receiver::{Message, Outcome, Receiver};
use poorhttp_http::{Event, Limits, Protocol, ReadBuffer, RequestParser, Response, ServerFields};

fn receive<'a>(protocol: Protocol, parts: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut receiver = Receiver { parser: RequestParser::of(protocol), ..Receiver::default() };
    parts.into_iter().for_each(|part| receiver.feed(part));
    receiver.outcome()
}

/// Positions to cut bytes in two: all of them, but only a few in the middle of long input.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    const NEAR: usize = 300;
    (0..=length).filter(move |&cut| cut < NEAR || length - cut < NEAR || cut % 997 == 0)
}

/// The environ of a request.
fn environ(message: &Message) -> BTreeMap<String, Vec<u8>> {
    let (head, bytes) = (&message.head, &message.bytes[..]);
    let gateway = head.gateway.as_ref().unwrap();
    let mut environ = BTreeMap::new();
    let mut set = |key: &str, value: &[u8]| environ.insert(key.to_owned(), value.to_vec());
    set("REQUEST_METHOD", message.method());
    set("REQUEST_URI", message.target());
    set("RAW_URI", message.target());
    set("PATH_INFO", &head.decoded_path(bytes));
    set("QUERY_STRING", head.query().of(bytes));
    set("SCRIPT_NAME", b"");
    set("wsgi.url_scheme", if gateway.secure { b"https" } else { b"http" });
    if gateway.secure {
        set("HTTPS", b"on");
    }
    let client = gateway.client.map(|client| (client.ip().to_canonical().to_string(), client.port().to_string()));
    let (address, port) = client.unwrap_or_default();
    set("REMOTE_ADDR", address.as_bytes());
    set("REMOTE_PORT", port.as_bytes());
    for variable in &gateway.variables {
        set(str::from_utf8(variable.name.of(bytes)).unwrap(), variable.value.of(bytes));
    }
    for (name, value) in message.fields() {
        let name = str::from_utf8(name).unwrap().replace('-', "_");
        let key = if name.starts_with("CONTENT_") { name } else { format!("HTTP_{name}") };
        // As `core/python/src/environ.rs` does.
        if !matches!(&key[..], "HTTP_PROXY" | "HTTP_TRANSFER_ENCODING") {
            let separator = if key == "HTTP_COOKIE" { "; " } else { ", " };
            environ
                .entry(key)
                .and_modify(|values| *values = [values, separator.as_bytes(), value].concat())
                .or_insert_with(|| value.to_vec());
        }
    }
    let authority = head.authority().of(bytes);
    if !authority.is_empty() {
        environ.insert("HTTP_HOST".to_owned(), authority.to_vec());
    }
    environ
}

fn check(case: &Case, outcome: &Outcome) {
    let name = &case.name;
    assert_eq!(outcome.replies, case.replies, "{name}");
    match &case.expected {
        Expected::Taken => {
            let [message] = &outcome.messages[..] else { panic!("{name}: {outcome:?}") };
            let environ = environ(message);
            for (key, value) in &case.environ {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (is, should) = (environ.get(key).map(|is| text(is)), value.as_ref().map(|value| text(value)));
                assert_eq!(is, should, "{name}: {key}");
            }
            assert!(case.body.as_ref().is_none_or(|body| message.body == *body), "{name}: its content");
            assert_eq!(message.head.dialect.protocol, case.protocol, "{name}");
            // No field and no variable occurs twice.
            let upper = |name: &[u8]| name.iter().all(|byte| !byte.is_ascii_lowercase());
            assert!(message.fields().all(|(name, _)| upper(name)), "{name}");
        }
        Expected::Refused(status, reason) => {
            assert!(outcome.messages.is_empty(), "{name} is taken");
            let (is, said) = outcome.rejected.unwrap_or_else(|| panic!("{name} is not refused: {outcome:?}"));
            assert_eq!(is, *status, "{name}: {said}");
            assert!(said.starts_with(reason), "{name}: {said}");
        }
        Expected::Nothing => {
            assert_eq!((&outcome.messages[..], outcome.rejected), (&[][..], None), "{name}");
            assert!(outcome.rest || outcome.unfinished.is_some(), "{name}");
        }
    }
}

#[test]
fn every_case_has_its_expected_result() {
    for case in cases() {
        check(&case, &receive(case.protocol, [&case.bytes[..]]));
    }
}

#[test]
fn byte_by_byte_the_result_is_the_same() {
    for case in cases() {
        let whole = receive(case.protocol, [&case.bytes[..]]);
        assert_eq!(receive(case.protocol, case.bytes.chunks(1)), whole, "{}", case.name);
    }
}

#[test]
fn in_two_parts_the_result_is_the_same() {
    for case in cases() {
        let whole = receive(case.protocol, [&case.bytes[..]]);
        for cut in cuts(case.bytes.len()) {
            let (one, two) = case.bytes.split_at(cut);
            assert_eq!(receive(case.protocol, [one, two]), whole, "{} cut at {cut}", case.name);
        }
    }
}

#[test]
fn a_refusal_is_final() {
    for case in cases().into_iter().filter(|case| matches!(case.expected, Expected::Refused(..))) {
        let whole = receive(case.protocol, [&case.bytes[..]]);
        let mut receiver = Receiver { parser: RequestParser::of(case.protocol), ..Receiver::default() };
        receiver.feed(&case.bytes);
        for byte in *b"\x000:" {
            receiver.parser.next_message(&mut receiver.buffer);
            receiver.buffer.room(0)[0] = byte;
            receiver.buffer.received(1);
            let event = receiver.parser.poll(&mut receiver.buffer, &receiver.limits);
            let Event::Rejected(reject) = event else { panic!("{}: {event:?}", case.name) };
            assert_eq!(Some((reject.status, reject.reason)), whole.rejected, "{}", case.name);
        }
    }
}

/// The lists of a reused connection are not empty.
#[test]
fn requests_do_not_leak_into_the_next() {
    let cases = cases();
    for pair in cases.windows(2) {
        let mut receiver = Receiver { parser: RequestParser::of(pair[0].protocol), ..Receiver::default() };
        receiver.feed(&pair[0].bytes);
        let mut buffer = receiver.buffer;
        buffer.clear();
        let mut receiver = Receiver { parser: RequestParser::of(pair[1].protocol), buffer, ..Receiver::default() };
        receiver.feed(&pair[1].bytes);
        let again = receiver.outcome();
        let fresh = receive(pair[1].protocol, [&pair[1].bytes[..]]);
        assert_eq!(again, fresh, "{} behind {}", pair[1].name, pair[0].name);
    }
}

/// QUERY_STRING of a server that rewrites requests is used; the request line is still the client's.
#[test]
fn query_string_replaces_the_query() {
    let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    for protocol in [Protocol::Uwsgi, Protocol::Scgi, Protocol::Fastcgi] {
        let variables = [
            pair("REQUEST_METHOD", "GET"),
            pair("REQUEST_URI", "/a%20b/c?c=d"),
            pair("QUERY_STRING", "e=f"),
            pair("SCRIPT_NAME", "/a b"),
            pair("SERVER_PROTOCOL", "HTTP/1.0"),
            pair("SERVER_NAME", ""),
            pair("SERVER_PORT", ""),
        ];
        for (variables, query) in
            [(&variables[..], &b"e=f"[..]), (&[&variables[..2], &variables[3..]].concat(), b"c=d")]
        {
            let outcome = receive(protocol, [&pack(protocol, variables, b"")[..]]);
            let [message] = &outcome.messages[..] else { panic!("{protocol:?}: {outcome:?}") };
            assert_eq!(message.head.query().of(&message.bytes), query, "{protocol:?}");
            assert_eq!(&*message.head.request_line(&message.bytes), b"GET /a%20b/c?c=d HTTP/1.0", "{protocol:?}");
            assert_eq!(message.head.script(&message.bytes), b"/a b", "{protocol:?}");
            let names =
                message.head.gateway.as_ref().unwrap().variables.iter().map(|field| field.name.of(&message.bytes));
            // Empty variables of these names are dropped.
            assert_eq!(names.collect::<Vec<_>>(), [&b"SERVER_PROTOCOL"[..], b"SCRIPT_NAME"], "{protocol:?}");
        }
    }
}

/// The beginning of FastCGI request 1 with a body, and the header of a record with `content` bytes of it.
fn opened(content: u8) -> Vec<u8> {
    let variables = [(b"REQUEST_METHOD".to_vec(), b"PUT".to_vec()), (b"PATH_INFO".to_vec(), b"/".to_vec())];
    let mut bytes = pack(Protocol::Fastcgi, &variables, b"");
    bytes.truncate(bytes.len() - 8);
    bytes.extend([1, 5, 0, 1, 0, content, 0, 0]);
    bytes
}

/// Content of a record that is received elsewhere is counted.
#[test]
fn content_of_a_record_may_be_received_elsewhere() {
    let mut receiver = Receiver { parser: RequestParser::of(Protocol::Fastcgi), ..Receiver::default() };
    receiver.feed(&opened(10));
    assert_eq!((receiver.parser.expected(), receiver.parser.is_in_body()), (10, true));
    receiver.feed(b"abc");
    assert_eq!(receiver.parser.expected(), 7);
    receiver.parser.take_content(6);
    assert_eq!(receiver.parser.expected(), 1);
    receiver.feed(b"k");
    assert_eq!(receiver.parser.expected(), 0);
    receiver.feed(&[1, 5, 0, 1, 0, 0, 0, 0]);
    assert_eq!(receiver.outcome().messages[0].body, b"abck");
}

/// A complete request may still be aborted by a record with its number.
#[test]
fn only_fastcgi_aborts() {
    let aborts = |protocol: Protocol, record: &[u8]| {
        let mut receiver = Receiver { parser: RequestParser::of(protocol), ..Receiver::default() };
        if protocol == Protocol::Fastcgi {
            receiver.feed(&opened(0));
        }
        assert_eq!(receiver.parser.is_abortable(), protocol == Protocol::Fastcgi);
        assert_eq!(receiver.parser.dialect().protocol, protocol);
        assert_eq!(receiver.parser.dialect().request, u16::from(protocol == Protocol::Fastcgi));
        receiver.parser.is_aborted_by(record)
    };
    const ABORT: [u8; 8] = [1, 2, 0, 1, 0, 0, 0, 0];
    assert!(aborts(Protocol::Fastcgi, &ABORT));
    assert!(!aborts(Protocol::Fastcgi, &ABORT[..7]));
    assert!(!aborts(Protocol::Fastcgi, &[1, 2, 0, 2, 0, 0, 0, 0]));
    assert!(!aborts(Protocol::Fastcgi, &[1, 3, 0, 1, 0, 0, 0, 0]));
    for other in [Protocol::Http, Protocol::Uwsgi, Protocol::Scgi] {
        assert!(!aborts(other, &ABORT));
    }
}

/// Limits of the body and of management records hold in FastCGI too.
#[test]
fn the_limits_of_records() {
    let ends = [1, 5, 0, 1, 0, 0, 0, 0];
    let record = |kind: u8, request: u8, content: usize| {
        [&[1, kind, 0, request, 0, content as u8, 0, 0], &b"v".repeat(content)[..]].concat()
    };
    let status = |records: &[&[u8]]| {
        let limits = Limits { body: 10, field_line: 20, ..Limits::default() };
        let mut receiver = Receiver { parser: RequestParser::of(Protocol::Fastcgi), limits, ..Receiver::default() };
        receiver.feed(&[&opened(4), &b"abcd"[..], &records.concat()].concat());
        let outcome = receiver.outcome();
        outcome.rejected.map_or(outcome.messages.len() as u16, |(status, _)| status)
    };
    assert_eq!(status(&[&record(5, 1, 6), &ends]), 1);
    assert_eq!(status(&[&record(5, 1, 7), &ends]), 413);
    assert_eq!(status(&[&record(5, 1, 100)]), 413);
    // Records of no request, or of another one.
    assert_eq!(status(&[&record(9, 0, 20), &ends]), 1);
    assert_eq!(status(&[&record(9, 0, 21), &ends]), 431);
    assert_eq!(status(&[&record(1, 2, 20), &ends]), 1);
    assert_eq!(status(&[&record(1, 2, 21), &ends]), 431);
}

#[test]
fn the_limit_of_an_announced_body() {
    for protocol in [Protocol::Uwsgi, Protocol::Scgi] {
        for (length, status) in [("10", None), ("11", Some(413))] {
            let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
            let variables = [pair("REQUEST_METHOD", "PUT"), pair("PATH_INFO", "/"), pair("CONTENT_LENGTH", length)];
            let limits = Limits { body: 10, ..Limits::default() };
            let mut receiver = Receiver { parser: RequestParser::of(protocol), limits, ..Receiver::default() };
            receiver.feed(&pack(protocol, &variables, b"0123456789"));
            let rejected = receiver.outcome().rejected;
            assert_eq!(rejected.map(|(status, _)| status), status, "{protocol:?} {length}");
        }
    }
}

/// The limit of bytes before the end of the variables includes records of other requests.
#[test]
fn the_limits_of_an_opening() {
    const BEGIN: [u8; 16] = [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let record = |request: u8, content: &[u8]| {
        let [high, low] = (content.len() as u16).to_be_bytes();
        [&[1, 4, 0, request, high, low, 0, 0], content].concat()
    };
    let status = |parts: &[&[u8]], head: usize| {
        let limits = Limits { head, ..Limits::default() };
        let (mut parser, mut buffer) = (RequestParser::of(Protocol::Fastcgi), ReadBuffer::default());
        let bytes = [&BEGIN[..], &parts.concat(), &record(1, b"")].concat();
        for part in bytes.chunks(64) {
            buffer.room(0)[..part.len()].copy_from_slice(part);
            buffer.received(part.len());
            match parser.poll(&mut buffer, &limits) {
                Event::NeedMore => {}
                Event::Head => return 200,
                event => return if let Event::Rejected(reject) = event { reject.status } else { 0 },
            }
        }
        100
    };
    let variables = b"\x0e\x03REQUEST_METHODGET\x09\x01PATH_INFO/";
    let (one, two) = variables.split_at(20);
    assert_eq!(status(&[&record(1, one), &record(1, two)], variables.len()), 200);
    assert_eq!(status(&[&record(1, one), &record(1, two)], variables.len() - 1), 431);
    assert_eq!(status(&[&record(1, variables)], variables.len() - 1), 431);
    // Records of a refused request.
    let others = 4 * Limits::MAX_HEAD - BEGIN.len() - 8 - variables.len();
    for (more, expected) in [(0, 200), (1, 431)] {
        let most = 65_000;
        let full = record(2, &vec![0; most - 8]);
        let last = record(2, &vec![0; others % most + more - 8]);
        let parts = [&full.repeat(others / most)[..], &last, &record(1, variables)];
        assert_eq!(status(&parts, Limits::MAX_HEAD), expected);
    }
}

/// FastCGI says whether the connection persists; it can, because a record ends the response.
#[test]
fn connections_of_fastcgi_persist_as_the_server_wants() {
    for (flags, persists) in [(0, false), (1, true), (2, false), (3, true)] {
        let mut bytes = opened(0);
        bytes[10] = flags;
        let outcome = receive(Protocol::Fastcgi, [&bytes[..]]);
        let message = &outcome.messages[0];
        assert_eq!(message.head.keep_alive, persists);
        let (mut response, mut out) = (Response::new(&message.head, &message.bytes, 0), Vec::new());
        response.start(&mut out, "200 OK").unwrap();
        response.commit(&mut out, None, &ServerFields { date: b"", server: b"", closing: false }).unwrap();
        assert_eq!(response.end(&mut out).persists, persists);
    }
}
