//! Heads: limits, framing, keep-alive, and the positions of their parts.

use poorhttp_http::{Event, Head, Limits, Protocol, ReadBuffer, RequestParser, Version, split_target};

/// The first head of `bytes` with its bytes, or the status of its refusal.
fn head_within(bytes: &[u8], limits: &Limits) -> Result<Option<(Head, Vec<u8>)>, u16> {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    let mut rest = bytes;
    loop {
        match parser.poll(&mut buffer, limits) {
            Event::Head => return Ok(Some((buffer.head.clone(), buffer.head_bytes().to_vec()))),
            Event::Rejected(reject) => return Err(reject.status),
            Event::NeedMore if rest.is_empty() => return Ok(None),
            Event::NeedMore => {}
            event => panic!("{event:?}"),
        }
        let room = buffer.room(0);
        let taken = room.len().min(rest.len());
        room[..taken].copy_from_slice(&rest[..taken]);
        buffer.received(taken);
        rest = &rest[taken..];
    }
}

fn parse(text: &str) -> Result<(Head, Vec<u8>), u16> {
    head_within(text.as_bytes(), &Limits::default()).map(|found| found.unwrap())
}

fn status_within(text: &str, limits: &Limits) -> u16 {
    match head_within(text.as_bytes(), limits) {
        Ok(Some(_)) => 200,
        Ok(None) => 100,
        Err(status) => status,
    }
}

#[test]
fn positions_of_the_parts() {
    let (head, bytes) = parse("GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\nEmpty:\r\nX-A: \t b c \t\r\n\r\nmore").unwrap();
    assert_eq!(head.method.of(&bytes), b"GET");
    assert_eq!(head.target.of(&bytes), b"/a%20b?c=d");
    assert_eq!((head.path().of(&bytes), head.query().of(&bytes)), (&b"/a%20b"[..], &b"c=d"[..]));
    assert!(head.authority().is_empty());
    let fields: Vec<_> = head.fields.iter().map(|field| (field.name.of(&bytes), field.value.of(&bytes))).collect();
    assert_eq!(fields, [(&b"Host"[..], &b"x"[..]), (b"Empty", b""), (b"X-A", b"b c")]);
    assert!(bytes.ends_with(b"\r\n\r\n"));
    assert_eq!(&*head.decoded_path(&bytes), b"/a b");
    let (head, bytes) = parse("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!((head.path().of(&bytes), head.query().of(&bytes)), (&b"*"[..], &b""[..]));
}

#[test]
fn an_absolute_target_names_the_authority() {
    let (head, bytes) = parse("GET HTTP://a.b:80/x?y HTTP/1.1\r\nHost: c\r\n\r\n").unwrap();
    assert_eq!(head.authority().of(&bytes), b"a.b:80");
    assert_eq!((head.path().of(&bytes), head.query().of(&bytes)), (&b"/x"[..], &b"y"[..]));
    let (head, bytes) = parse("GET https://a?y HTTP/1.1\r\nHost: c\r\n\r\n").unwrap();
    assert_eq!((head.path().of(&bytes), head.query().of(&bytes)), (&b""[..], &b"y"[..]));
}

#[test]
fn the_limit_of_the_request_line() {
    let limits = Limits { request_line: 30, ..Limits::default() };
    let line = |length: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(length - 14));
    assert_eq!(line(30).find("\r\n"), Some(30));
    assert_eq!(status_within(&line(30), &limits), 200);
    assert_eq!(status_within(&line(31), &limits), 414);
    // Without its end, one more byte may be the carriage return.
    let endless = "GET /".to_owned() + &"a".repeat(40);
    assert_eq!(status_within(&endless[..31], &limits), 100);
    assert_eq!(status_within(&endless[..32], &limits), 414);
}

#[test]
fn the_limit_of_fields() {
    let limits = Limits { fields: 5, ..Limits::default() };
    let fields = |count: usize| format!("GET / HTTP/1.0\r\n{}\r\n", "X: y\r\n".repeat(count));
    assert_eq!(status_within(&fields(0), &limits), 200);
    assert_eq!(status_within(&fields(5), &limits), 200);
    assert_eq!(status_within(&fields(6), &limits), 431);
    let most = Limits { fields: Limits::MAX_FIELDS, ..Limits::default() };
    assert_eq!(status_within(&fields(Limits::MAX_FIELDS), &most), 200);
    assert_eq!(status_within(&fields(Limits::MAX_FIELDS + 1), &most), 431);
}

#[test]
fn the_limit_of_a_field() {
    let limits = Limits { field_line: 20, ..Limits::default() };
    let field = |length: usize| format!("GET / HTTP/1.0\r\nX-A: {}\r\n\r\n", "b".repeat(length - 3));
    assert_eq!(status_within(&field(20), &limits), 200);
    assert_eq!(status_within(&field(21), &limits), 431);
}

#[test]
fn the_limit_of_a_head() {
    let limits = Limits { head: 100, ..Limits::default() };
    let head = |length: usize| format!("GET / HTTP/1.0\r\nX-A: {}\r\n\r\n", "b".repeat(length - 25));
    assert_eq!(head(100).len(), 100);
    assert_eq!(status_within(&head(100), &limits), 200);
    assert_eq!(status_within(&head(101), &limits), 431);
    assert_eq!(status_within(&head(101)[..100], &limits), 100);
    assert_eq!(status_within(&head(105)[..101], &limits), 431);
    // The largest head that can be allowed, and one byte more.
    let most = Limits { head: Limits::MAX_HEAD, field_line: usize::MAX, ..Limits::default() };
    let (found, bytes) = head_within(head(Limits::MAX_HEAD).as_bytes(), &most).unwrap().unwrap();
    assert_eq!((found.length, bytes.len()), (Limits::MAX_HEAD, Limits::MAX_HEAD));
    assert_eq!(found.fields[0].value.of(&bytes).len(), Limits::MAX_HEAD - 25);
    assert_eq!(status_within(&head(Limits::MAX_HEAD + 1), &most), 431);
}

/// A copy of a very long head is not kept for its repetitions.
#[test]
fn long_heads_are_not_remembered() {
    let limits = Limits { head: Limits::MAX_HEAD, field_line: usize::MAX, ..Limits::default() };
    for (length, remembers) in [(60_000, true), (70_000, false)] {
        let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
        let head = format!("GET / HTTP/1.0\r\nX-A: {}\r\n\r\n", "b".repeat(length));
        let mut rest = head.as_bytes();
        while parser.poll(&mut buffer, &limits) == Event::NeedMore {
            let room = buffer.room(0);
            let taken = room.len().min(rest.len());
            room[..taken].copy_from_slice(&rest[..taken]);
            buffer.received(taken);
            rest = &rest[taken..];
        }
        assert_eq!(buffer.head.length, head.len());
        assert_eq!(parser.remember(&buffer), remembers, "{length}");
    }
}

#[test]
fn a_refusal_for_a_limit_names_it() {
    let limits = Limits { request_line: 30, fields: 2, field_line: 20, head: 100, body: 9, ..Limits::default() };
    for (text, expected) in [
        (
            "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n\r\n",
            "a request line over the limit: 30 bytes, max_request_line",
        ),
        ("GET / HTTP/1.0\r\nA: b\r\nA: b\r\nA: b\r\n\r\n", "too many header fields: more than 2, max_headers"),
        (
            "GET / HTTP/1.0\r\nA: bbbbbbbbbbbbbbbbbbbb\r\n\r\n",
            "a header field over the limit: 20 bytes, max_header_size",
        ),
        ("POST / HTTP/1.0\r\nContent-Length: 10\r\n\r\n", "a body over the limit: 9 bytes, max_body"),
        ("GET / HTTP/1.0\r\nA: b", "a header section over the limit: 100 bytes, max_request_header_size"),
        ("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "a method over the limit: 32 bytes"),
        ("GET / HTTP/1.1\r\n\r\n", "no Host"),
    ] {
        let text = if text.ends_with(": b") { format!("{text}{}", "b".repeat(100)) } else { text.to_owned() };
        let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
        buffer.room(0)[..text.len()].copy_from_slice(text.as_bytes());
        buffer.received(text.len());
        let event = parser.poll(&mut buffer, &limits);
        let Event::Rejected(reject) = event else { panic!("{text}: {event:?}") };
        assert_eq!(limits.explain(reject), expected);
    }
}

#[test]
fn the_limit_of_an_announced_body() {
    let limits = Limits { body: 10, ..Limits::default() };
    let post = |length: &str| format!("POST / HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
    assert_eq!(status_within(&post("10"), &limits), 200);
    assert_eq!(status_within(&post("11"), &limits), 413);
    assert_eq!(status_within(&post("9223372036854775807"), &limits), 413);
    assert_eq!(status_within(&post("9223372036854775808"), &limits), 400);
}

#[test]
fn the_length_of_the_body() {
    let length = |fields: &str| {
        let (head, _) = parse(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).unwrap();
        (head.body_length(), head.is_chunked())
    };
    assert_eq!(length(""), (Some(0), false));
    assert_eq!(length("Content-Length: 7\r\n"), (Some(7), false));
    assert_eq!(length("content-length:\t7 \r\n"), (Some(7), false));
    assert_eq!(length("Transfer-Encoding: Chunked\r\n"), (None, true));
}

#[test]
fn connections_persist_as_the_client_wants() {
    for (version, connection, persists) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: CLOSE\r\n", false),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Connection: x ,\tclose\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.1", "Connection:\r\n", true),
        ("1.1", "User-Agent: close\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: a\r\nConnection: keep-alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
        ("1.0", "Connection: keep-alive-not\r\n", false),
    ] {
        let (head, _) = parse(&format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n")).unwrap();
        assert_eq!(head.keep_alive, persists, "{version} {connection:?}");
        assert_eq!(head.version, if version == "1.0" { Version::Http10 } else { Version::Http11 });
    }
}

#[test]
fn only_http_1_1_expects_100_continue() {
    let expects = |version| {
        let text = format!("POST / HTTP/{version}\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n");
        parse(&text).unwrap().0.expects_continue
    };
    assert!(expects("1.1") && !expects("1.0"));
}

#[test]
fn heads_do_not_leak_into_the_next() {
    const FIRST: &[u8] = b"POST /one HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\nX: y\r\n\r\nab";
    const SECOND: &[u8] = b"GET /two HTTP/1.1\r\nHost: a\r\n\r\n";
    let limits = Limits::default();
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    for bytes in [FIRST, SECOND] {
        buffer.room(0)[..bytes.len()].copy_from_slice(bytes);
        buffer.received(bytes.len());
    }
    assert_eq!(parser.poll(&mut buffer, &limits), Event::Head);
    assert_eq!(parser.poll(&mut buffer, &limits), Event::Content(b"ab"));
    for _ in 0..3 {
        assert_eq!(parser.poll(&mut buffer, &limits), Event::Complete);
    }
    parser.next_message(&mut buffer);
    assert!(parser.is_mid_message(Some(&buffer)));
    assert_eq!(parser.poll(&mut buffer, &limits), Event::Head);
    let (fresh, bytes) = head_within(SECOND, &limits).unwrap().unwrap();
    assert_eq!(buffer.head_bytes(), bytes);
    assert_eq!(buffer.head.version, fresh.version);
    assert_eq!(buffer.head.body_length(), Some(0));
    let names = |head: &Head| head.fields.iter().map(|field| field.name.of(&bytes).to_vec()).collect::<Vec<_>>();
    assert_eq!(names(&buffer.head), names(&fresh));
    assert_eq!(parser.poll(&mut buffer, &limits), Event::Complete);
    parser.next_message(&mut buffer);
    assert_eq!(parser.poll(&mut buffer, &limits), Event::NeedMore);
    assert!(buffer.is_drained() && buffer.head_bytes().is_empty());
    assert!(!parser.is_mid_message(Some(&buffer)));
}

#[test]
fn the_request_line_is_as_it_was_sent() {
    for line in ["GET /a%20b?c=d HTTP/1.1", "OPTIONS * HTTP/1.0", "GET http://a/b HTTP/1.2"] {
        let (head, bytes) = parse(&format!("{line}\r\nHost: a\r\n\r\n")).unwrap();
        // A later HTTP/1.x is read as HTTP/1.1, and its bytes stay.
        assert_eq!(std::str::from_utf8(&head.request_line(&bytes)).unwrap(), line);
    }
}

/// A path given by a program is checked like a request target.
#[test]
fn a_target_is_split() {
    for (target, path, query) in [
        ("/", &b"/"[..], ""),
        ("/a%20b%2F%2f?c=%20&d?e", b"/a b//", "c=%20&d?e"),
        ("/a?", b"/a", ""),
        ("http://a/b?c", b"/b", "c"),
        ("/%c3%A9%fF", b"/\xc3\xa9\xff", ""),
    ] {
        let (found, asked) = split_target(target.as_bytes()).unwrap();
        assert_eq!((&*found, asked), (path, query.as_bytes()), "{target}");
    }
    for (target, reason) in [
        ("a", "a request target that is neither a path nor an http URI"),
        ("*", "a request target that is neither a path nor an http URI"),
        ("", "a request target that is neither a path nor an http URI"),
        ("/a b", "a character that a request target must not hold"),
        ("/\x7f", "a character that a request target must not hold"),
        ("/#", "a character that a request target must not hold"),
        ("/\\", "a backslash in the path"),
        ("/%00", "a NUL in the path"),
        ("/%0A", "a line end in the path"),
        ("/%zz", "a percent sign without two hexadecimal digits in the path"),
    ] {
        assert_eq!(split_target(target.as_bytes()).unwrap_err().reason, reason, "{target}");
    }
}

/// The limit of a field line counts name and value together.
#[test]
fn the_limit_of_a_field_is_that_of_both_its_parts() {
    let limits = Limits { field_line: 20, ..Limits::default() };
    let field =
        |name: usize, value: usize| format!("GET / HTTP/1.0\r\n{}: {}\r\n\r\n", "X".repeat(name), "b".repeat(value));
    for (name, value, status) in [(10, 10, 200), (10, 11, 431), (11, 10, 431), (20, 0, 200), (21, 0, 431)] {
        assert_eq!(status_within(&field(name, value), &limits), status, "{name} {value}");
    }
}

/// Only an underscore is equal to a hyphen, and only at the position of one.
#[test]
fn names_that_resemble_framing_fields() {
    for (name, status) in [
        ("Content_Length", 400),
        ("transfer_ENCODING", 400),
        ("Content.Length", 200),
        ("ContentxLength", 200),
        ("C_ntent-Length", 200),
        ("Transfer.Encoding", 200),
        ("Tr_nsfer-Encoding", 200),
        // Other names of the same length may be repeated.
        ("X-Content-Leng", 200),
        ("X-Transfer-Encodi", 200),
        ("X-Content-Ty", 200),
        ("X-Expe", 200),
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: 5\r\n{name}: 6\r\n\r\n");
        assert_eq!(status_within(&text, &Limits::default()), status, "{name}");
    }
}

/// The next head with the same bytes is not parsed again.
#[test]
fn a_head_without_a_body_is_remembered() {
    let scgi = "48:CONTENT_LENGTH\x000\0REQUEST_METHOD\0GET\0PATH_INFO\0/\0,";
    for (protocol, text, remembered) in [
        (Protocol::Http, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", true),
        (Protocol::Http, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", false),
        (Protocol::Http, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false),
        (Protocol::Scgi, scgi, false),
    ] {
        let (mut parser, mut buffer) = (RequestParser::of(protocol), ReadBuffer::default());
        for is_repeated in [false, remembered] {
            buffer.room(0)[..text.len()].copy_from_slice(text.as_bytes());
            buffer.received(text.len());
            assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Head);
            assert_eq!(buffer.repeated, is_repeated, "{text:?}");
            assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Complete);
            assert_eq!(parser.remember(&buffer), remembered, "{text:?}");
            parser.next_message(&mut buffer);
        }
    }
}

/// The authority of the target, or else the Host field, wherever it is.
#[test]
fn the_requested_authority() {
    for (text, asked) in [
        ("GET / HTTP/1.1\r\nDate: b\r\nX-Host: c\r\nhOST: a:1\r\n", "a:1"),
        ("GET http://d/ HTTP/1.1\r\nHost: a\r\n", "d"),
        ("GET / HTTP/1.0\r\nDate: b\r\n", ""),
    ] {
        let (head, bytes) = parse(&format!("{text}\r\n")).unwrap();
        assert_eq!(std::str::from_utf8(head.requested_authority(&bytes)).unwrap(), asked, "{text:?}");
    }
}

/// The reason of the refusal.
fn reason(text: &str) -> &'static str {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    buffer.room(0)[..text.len()].copy_from_slice(text.as_bytes());
    buffer.received(text.len());
    let event = parser.poll(&mut buffer, &Limits::default());
    if let Event::Rejected(reject) = event { reject.reason } else { panic!("{text:?}: {event:?}") }
}

/// The log has the fault of a Transfer-Encoding.
#[test]
fn reasons_to_refuse_transfer_codings() {
    for (fields, expected) in [
        ("gzip", "a transfer coding that does not end with chunked"),
        ("chunked, gzip", "a transfer coding that does not end with chunked"),
        ("gzip, chunked", "a transfer coding other than chunked"),
        ("chunked, chunked", "chunked more than once"),
        ("chunked\r\nTransfer-Encoding: chunked", "chunked more than once"),
        ("chunked\r\nTransfer-Encoding:", "more than one Transfer-Encoding"),
        ("", "a malformed Transfer-Encoding"),
        ("gzip;q=1, chunked", "a malformed Transfer-Encoding"),
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {fields}\r\n\r\n");
        assert_eq!(reason(&text), expected, "{fields:?}");
    }
}

/// A fault in the version is reported as another one than a fault after it.
#[test]
fn reasons_to_refuse_line_ends() {
    assert_eq!(reason("GET / HTTP/1.1x"), "a malformed HTTP version");
    assert_eq!(reason("GET / HTTP/1.1\r\nHost: a\r\n\rx"), "a carriage return without a line feed");
    assert_eq!(reason("GET / HTTP/1.1\r\nX: a\rb\r\n\r\n"), "a control character in a header field value");
}

#[test]
fn protocols_have_names() {
    let names = [
        ("http", Protocol::Http),
        ("uwsgi", Protocol::Uwsgi),
        ("scgi", Protocol::Scgi),
        ("fastcgi", Protocol::Fastcgi),
    ];
    for (name, protocol) in names {
        assert_eq!(Protocol::named(name), Some(protocol));
    }
    assert_eq!((Protocol::named("HTTP"), Protocol::named("")), (None, None));
}
