//! Heads: limits, framing, keep-alive, and what is found where.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use poorhttp_http::{Event, Head, Inbound, Intake, Limits, Version};

/// The first head of `octets`, with its octets, or the status it is refused with.
fn head_within(octets: &[u8], limits: &Limits) -> Result<Option<(Head, Vec<u8>)>, u16> {
    let (mut inbound, mut intake) = (Inbound::default(), Intake::default());
    let mut rest = octets;
    loop {
        match inbound.poll(&mut intake, limits) {
            Event::Head => return Ok(Some((intake.head.clone(), intake.head_bytes().to_vec()))),
            Event::Rejected(reject) => return Err(reject.status),
            Event::NeedMore if rest.is_empty() => return Ok(None),
            Event::NeedMore => {}
            event => panic!("{event:?}"),
        }
        let room = intake.room(0);
        let taken = room.len().min(rest.len());
        room[..taken].copy_from_slice(&rest[..taken]);
        intake.received(taken);
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
fn parts_are_found_where_they_stand() {
    let (head, bytes) = parse("GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\nEmpty:\r\nX-A: \t b c \t\r\n\r\nmore").unwrap();
    assert_eq!(head.method.of(&bytes), b"GET");
    assert_eq!(head.target.of(&bytes), b"/a%20b?c=d");
    assert_eq!((head.path().of(&bytes), head.query().of(&bytes)), (&b"/a%20b"[..], &b"c=d"[..]));
    assert!(head.authority().is_empty());
    let fields: Vec<_> = head.fields.iter().map(|field| (field.name.of(&bytes), field.value.of(&bytes))).collect();
    assert_eq!(fields, [(&b"Host"[..], &b"x"[..]), (b"Empty", b""), (b"X-A", b"b c")]);
    assert!(bytes.ends_with(b"\r\n\r\n"));
    assert_eq!(&*head.decoded_path(&bytes), b"/a b");
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
    // Without its end, one octet more may be the carriage return.
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
    let most = Limits { fields: Limits::MOST_FIELDS, ..Limits::default() };
    assert_eq!(status_within(&fields(Limits::MOST_FIELDS), &most), 200);
    assert_eq!(status_within(&fields(Limits::MOST_FIELDS + 1), &most), 431);
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
    // As much as positions can say, and one octet more.
    let most = Limits { field_line: usize::MAX, ..Limits::default() };
    let (found, bytes) = head_within(head(Limits::MOST_HEAD).as_bytes(), &most).unwrap().unwrap();
    assert_eq!((found.length, bytes.len()), (Limits::MOST_HEAD, Limits::MOST_HEAD));
    assert_eq!(found.fields[0].value.of(&bytes).len(), Limits::MOST_HEAD - 25);
    assert_eq!(status_within(&head(Limits::MOST_HEAD + 1), &most), 431);
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
fn only_who_knows_100_waits_for_it() {
    let expects = |version| {
        let text = format!("POST / HTTP/{version}\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n");
        parse(&text).unwrap().0.expects_continue
    };
    assert!(expects("1.1") && !expects("1.0"));
}

#[test]
fn nothing_of_the_last_head_is_left_in_the_next() {
    const FIRST: &[u8] = b"POST /one HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\nX: y\r\n\r\nab";
    const SECOND: &[u8] = b"GET /two HTTP/1.1\r\nHost: a\r\n\r\n";
    let limits = Limits::default();
    let (mut inbound, mut intake) = (Inbound::default(), Intake::default());
    for octets in [FIRST, SECOND] {
        intake.room(0)[..octets.len()].copy_from_slice(octets);
        intake.received(octets.len());
    }
    assert_eq!(inbound.poll(&mut intake, &limits), Event::Head);
    assert_eq!(inbound.poll(&mut intake, &limits), Event::Content(b"ab"));
    for _ in 0..3 {
        assert_eq!(inbound.poll(&mut intake, &limits), Event::Complete);
    }
    inbound.next_message(&mut intake);
    assert!(inbound.is_mid_message(Some(&intake)));
    assert_eq!(inbound.poll(&mut intake, &limits), Event::Head);
    let (fresh, bytes) = head_within(SECOND, &limits).unwrap().unwrap();
    assert_eq!(intake.head_bytes(), bytes);
    assert_eq!(intake.head.version, fresh.version);
    assert_eq!(intake.head.body_length(), Some(0));
    let names = |head: &Head| head.fields.iter().map(|field| field.name.of(&bytes).to_vec()).collect::<Vec<_>>();
    assert_eq!(names(&intake.head), names(&fresh));
    assert_eq!(inbound.poll(&mut intake, &limits), Event::Complete);
    inbound.next_message(&mut intake);
    assert_eq!(inbound.poll(&mut intake, &limits), Event::NeedMore);
    assert!(intake.is_drained() && intake.head_bytes().is_empty());
    assert!(!inbound.is_mid_message(Some(&intake)));
}
