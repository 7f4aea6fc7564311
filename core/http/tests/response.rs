//! Responses: framing, refused calls, and the content of the buffer.

use poorhttp_http::{Dialect, Ending, Event, Limits, ReadBuffer, Reject, RequestParser, Response, ServerFields};

const AMBIENT: ServerFields<'_> = ServerFields { date: b"Date: now\r\n", server: b"Server: us\r\n", closing: false };
/// A response to an earlier, pipelined request.
const EARLIER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// The response to a request with this request line, after another response.
fn answer_to(line: &str) -> (Response, Vec<u8>) {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    let head = format!("{line}\r\nHost: a\r\n\r\n");
    buffer.room(0)[..head.len()].copy_from_slice(head.as_bytes());
    buffer.received(head.len());
    assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Head);
    (Response::new(&buffer.head, buffer.head_bytes(), EARLIER.len()), EARLIER.to_vec())
}

fn answer() -> (Response, Vec<u8>) {
    answer_to("GET / HTTP/1.1")
}

/// The bytes after the earlier response.
fn text(out: &[u8]) -> &str {
    std::str::from_utf8(out.strip_prefix(EARLIER).expect("the earlier answer is whole")).unwrap()
}

/// Sends a whole response as the reactor does.
fn send(
    line: &str,
    status: &str,
    fields: &[(&str, &str)],
    known: Option<u64>,
    pieces: &[&str],
    server_fields: &ServerFields<'_>,
) -> (String, Ending) {
    let (mut response, mut out) = answer_to(line);
    response.start(&mut out, status).unwrap();
    for (name, value) in fields {
        response.field(&mut out, name, value).unwrap();
    }
    assert!(!response.is_committed());
    response.commit(&mut out, known, server_fields).unwrap();
    assert!(response.is_committed());
    for piece in pieces {
        let admitted = response.admit(piece.len());
        response.open_chunk(&mut out, admitted);
        out.extend_from_slice(&piece.as_bytes()[..admitted]);
        out.extend_from_slice(response.end_of_chunk(admitted));
    }
    let ending = response.end(&mut out);
    (text(&out).to_owned(), ending)
}

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";
const KEEP: &str = "Connection: keep-alive\r\n";
const CLOSE: &str = "Connection: close\r\n";

/// All combinations of request, status and known or unknown length.
#[test]
fn framing() {
    let old = "GET / HTTP/1.0";
    let get = "GET / HTTP/1.1";
    let head = "HEAD / HTTP/1.1";
    let old_head = "HEAD / HTTP/1.0";
    let declared: &[_] = &[("content-length", "5")];
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], Option<u64>, &'a str, &'a str, bool);
    let cases: &[Case<'_>] = &[
        (get, "200 OK", &[], Some(5), "Content-Length: 5\r\n", "hello", true),
        (get, "200 OK", declared, Some(5), "content-length: 5\r\n", "hello", true),
        (get, "200 OK", declared, None, "content-length: 5\r\n", "hello", true),
        (get, "200 OK", &[], None, CHUNKED, "5\r\nhello\r\n0\r\n\r\n", true),
        (get, "204 No Content", &[], Some(5), "", "", true),
        (get, "204 No Content", &[], None, "", "", true),
        (get, "204 No Content", declared, None, "", "", true),
        (get, "304 Not Modified", &[], Some(5), "", "", true),
        (get, "304 Not Modified", &[], None, "", "", true),
        (get, "304 Not Modified", declared, None, "content-length: 5\r\n", "", true),
        (head, "200 OK", &[], Some(5), "Content-Length: 5\r\n", "", true),
        (head, "200 OK", &[], Some(0), "", "", true),
        (head, "200 OK", declared, Some(0), "content-length: 5\r\n", "", true),
        (head, "200 OK", declared, None, "content-length: 5\r\n", "", true),
        (head, "200 OK", &[], None, "", "", true),
        (head, "304 Not Modified", &[], Some(5), "", "", true),
        (old, "200 OK", &[], Some(5), "Content-Length: 5\r\n", "hello", false),
        (old, "200 OK", declared, None, "content-length: 5\r\n", "hello", false),
        (old, "200 OK", &[], None, "", "hello", false),
        (old, "304 Not Modified", &[], None, "", "", false),
        (old_head, "200 OK", &[], None, "", "", false),
    ];
    for &(line, status, fields, known, length, body, persists) in cases {
        let name = format!("{line}, {status}, {fields:?}, {known:?}");
        let (sent, ending) = send(line, status, fields, known, &["hello"], &AMBIENT);
        let connection = if persists { "" } else { CLOSE };
        let expected = format!("HTTP/1.1 {status}\r\n{length}Date: now\r\nServer: us\r\n{connection}\r\n{body}");
        assert_eq!(sent, expected, "{name}");
        assert_eq!(ending, Ending { persists, missing: 0, excess: 0 }, "{name}");
    }
}

#[test]
fn an_empty_body_is_known_to_be_empty() {
    let (sent, _) = send("GET / HTTP/1.1", "200 OK", &[], Some(0), &[], &AMBIENT);
    assert!(sent.contains("Content-Length: 0\r\n"), "{sent}");
    // An empty chunk would end a chunked body.
    let (sent, _) = send("GET / HTTP/1.1", "200 OK", &[], None, &["", "a", "", "b", ""], &AMBIENT);
    assert!(sent.ends_with("\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n"), "{sent}");
}

#[test]
fn http_1_0_gets_connection_keep_alive() {
    let keep = "GET / HTTP/1.0\r\nConnection: keep-alive";
    let (sent, ending) = send(keep, "200 OK", &[], Some(1), &["a"], &AMBIENT);
    assert!(sent.contains(KEEP) && ending.persists, "{sent}");
    let (sent, ending) = send(keep, "200 OK", &[], None, &["a"], &AMBIENT);
    assert!(sent.contains(CLOSE) && !sent.contains(KEEP) && !ending.persists, "{sent}");
}

#[test]
fn reasons_to_close_the_connection() {
    let (sent, ending) = send("GET / HTTP/1.1", "200 OK", &[("connection", "Close")], Some(0), &[], &AMBIENT);
    assert_eq!(sent.matches("onnection: close\r\n").count(), 1, "{sent}");
    assert!(!ending.persists);
    let stopping = ServerFields { closing: true, ..AMBIENT };
    let (sent, ending) = send("GET / HTTP/1.1", "200 OK", &[], Some(0), &[], &stopping);
    assert!(sent.contains(CLOSE) && !ending.persists);
    let (sent, ending) = send("GET / HTTP/1.1\r\nConnection: close", "200 OK", &[], Some(0), &[], &AMBIENT);
    assert!(sent.contains(CLOSE) && !ending.persists);
    let (sent, ending) = send("GET / HTTP/1.1", "200 OK", &[("Connection", "keep-alive")], Some(0), &[], &AMBIENT);
    assert!(!sent.contains("onnection") && ending.persists, "{sent}");
    let (mut response, mut out) = answer();
    response.close();
    response.start(&mut out, "200 OK").unwrap();
    response.commit(&mut out, Some(0), &AMBIENT).unwrap();
    assert!(!response.end(&mut out).persists && text(&out).contains(CLOSE));
}

#[test]
fn too_much_is_not_sent_and_too_little_ends_the_connection() {
    let fields = &[("Content-Length", "5")];
    let (sent, ending) = send("GET / HTTP/1.1", "200 OK", fields, None, &["hel", "lo wor", "ld"], &AMBIENT);
    assert!(sent.ends_with("\r\n\r\nhello"));
    assert_eq!(ending, Ending { persists: true, missing: 0, excess: 6 });
    let (sent, ending) = send("GET / HTTP/1.1", "200 OK", fields, None, &["hel"], &AMBIENT);
    assert!(sent.ends_with("\r\n\r\nhel"));
    assert_eq!(ending, Ending { persists: false, missing: 2, excess: 0 });
    // A response to HEAD misses no bytes.
    let (_, ending) = send("HEAD / HTTP/1.1", "200 OK", fields, None, &[], &AMBIENT);
    assert_eq!(ending, Ending { persists: true, missing: 0, excess: 0 });
}

#[test]
fn content_that_cannot_be_sent_is_not_wanted() {
    for (line, status, length, piece, wanted) in [
        ("GET / HTTP/1.1", "200 OK", None, 5, true),
        ("GET / HTTP/1.1", "200 OK", Some("5"), 4, true),
        ("GET / HTTP/1.1", "200 OK", Some("5"), 5, true),
        ("GET / HTTP/1.1", "200 OK", Some("5"), 6, false),
        ("GET / HTTP/1.1", "204 No Content", None, 5, false),
        ("GET / HTTP/1.1", "304 Not Modified", Some("5"), 5, false),
        ("HEAD / HTTP/1.1", "200 OK", Some("5"), 5, false),
        ("GET / HTTP/1.0", "200 OK", None, 5, true),
    ] {
        let (mut response, mut out) = answer_to(line);
        response.start(&mut out, status).unwrap();
        if let Some(length) = length {
            response.field(&mut out, "Content-Length", length).unwrap();
        }
        assert!(response.wants_more(), "the head may still be replaced");
        response.commit(&mut out, None, &AMBIENT).unwrap();
        response.admit(piece);
        assert_eq!(response.wants_more(), wanted, "{line} {status} {length:?} {piece}");
    }
}

#[test]
fn sent_content_is_counted() {
    let (mut response, mut out) = answer();
    response.start(&mut out, "200 OK").unwrap();
    response.field(&mut out, "Content-Length", "5").unwrap();
    assert_eq!((response.status(), response.declared_length(), response.has_body()), (200, Some(5), true));
    response.commit(&mut out, None, &AMBIENT).unwrap();
    assert_eq!((response.admit(3), response.admit(3), response.admit(3)), (3, 2, 0));
    assert_eq!(response.sent(), 5);
    let (mut response, mut out) = answer_to("HEAD / HTTP/1.1");
    response.start(&mut out, "200 OK").unwrap();
    response.commit(&mut out, None, &AMBIENT).unwrap();
    assert_eq!((response.admit(3), response.sent(), response.has_body()), (0, 0, false));
}

#[test]
fn a_bad_status_leaves_the_buffer_unchanged() {
    for bad in [
        "",
        "20",
        "2000",
        "20x OK",
        "200OK",
        "200\tOK",
        "200 O\r\nK",
        "200 \n",
        "200 \u{100}",
        "200 \0",
        "200 \x7f",
        "100 Continue",
        "101 Switching Protocols",
        "000 Zero",
        "-20 OK",
        " 200 OK",
        "200 a\u{e9}\n",
    ] {
        let (mut response, mut out) = answer();
        let error = response.start(&mut out, bad).unwrap_err().to_string();
        assert!(error.contains("status"), "{error}");
        assert_eq!(text(&out), "", "{bad:?}");
        assert!(!response.is_started());
        response.start(&mut out, "500 x").unwrap();
        assert_eq!(text(&out), "HTTP/1.1 500 x\r\n");
    }
    for good in ["200 OK", "404 ", "416 x", "599 \u{e9}", "999 x", "200"] {
        let (mut response, mut out) = answer();
        assert_eq!((response.status(), response.is_started()), (0, false));
        response.start(&mut out, good).unwrap();
        assert_eq!((response.status(), response.is_started()), (good[..3].parse().unwrap(), true));
        let reason: Vec<u8> = good.get(4..).unwrap_or("").chars().map(|character| character as u8).collect();
        let expected = [b"HTTP/1.1 ", &good.as_bytes()[..3], b" ", &reason[..], b"\r\n"].concat();
        assert_eq!(out[EARLIER.len()..], expected, "{good:?}");
    }
}

#[test]
fn a_bad_field_leaves_the_buffer_unchanged() {
    let names = ["", "X A", "X:A", "X\r\nA", "X\0", "X-\u{e9}", "(", "X-A\n"];
    let values = ["a\r\nSet-Cookie: b", "\r", "\n", "\0", "\x7f", "\u{100}", "\u{20ac}", "good\u{e9}\n"];
    let bad_names = names.map(|name| (name, "v"));
    let bad_values = values.iter().flat_map(|&value| ["X-A", "Content-Type", "Set-Cookie"].map(|name| (name, value)));
    let hop_by_hop = [
        "Keep-Alive",
        "proxy-authenticate",
        "Proxy-Authorization",
        "PROXY-CONNECTION",
        "te",
        "Trailer",
        "Transfer-Encoding",
        "upgrade",
    ];
    let hop_by_hop = hop_by_hop
        .map(|name| (name, "chunked"))
        .into_iter()
        .chain([("Connection", "upgrade"), ("connection", "close, te")]);
    let lengths = ["", "x", "-1", "+1", "1.5", "0x1", "5, 5", "9223372036854775808", " 5", "05", "5\r\n"]
        .map(|value| ("Content-Length", value));
    for (name, value) in bad_names.into_iter().chain(bad_values).chain(hop_by_hop).chain(lengths) {
        let (mut response, mut out) = answer();
        response.start(&mut out, "200 OK").unwrap();
        response.field(&mut out, "X-Good", "1").unwrap();
        let error = response.field(&mut out, name, value).unwrap_err().to_string();
        assert!(!error.contains(['\r', '\n', '\0']), "{error:?}");
        response.restart(&mut out);
        assert_eq!(text(&out), "", "{name:?}: {value:?}");
        assert!(!response.is_started());
        // A restart is like the first start.
        response.start(&mut out, "500 x").unwrap();
        response.commit(&mut out, Some(0), &AMBIENT).unwrap();
        assert!(text(&out).starts_with("HTTP/1.1 500 x\r\nContent-Length: 0\r\nDate: now\r\n"), "{:?}", text(&out));
    }
}

#[test]
fn lengths_that_contradict_each_other() {
    let (mut response, mut out) = answer();
    response.start(&mut out, "200 OK").unwrap();
    response.field(&mut out, "Content-Length", "5").unwrap();
    response.field(&mut out, "content-length", "5").unwrap();
    assert_eq!(text(&out).to_ascii_lowercase().matches("content-length").count(), 1);
    // A field whose name has the length of Content-Length.
    response.field(&mut out, "X-Content-Leng", "6").unwrap();
    let error = response.field(&mut out, "CONTENT-LENGTH", "6").unwrap_err().to_string();
    assert!(error.contains('5') && error.contains('6'), "{error}");
}

#[test]
fn text_is_latin_1() {
    let (mut response, mut out) = answer();
    response.start(&mut out, "200 \u{e9}").unwrap();
    response.field(&mut out, "X-A", "caf\u{e9}\t\u{ff}").unwrap();
    assert_eq!(out[EARLIER.len()..], *b"HTTP/1.1 200 \xe9\r\nX-A: caf\xe9\t\xff\r\n");
}

#[test]
fn fields_of_the_application_are_not_added_again() {
    let fields = &[("date", "then"), ("SERVER", "me")];
    let (sent, _) = send("GET / HTTP/1.1", "200 OK", fields, Some(0), &[], &AMBIENT);
    assert_eq!(sent, "HTTP/1.1 200 OK\r\ndate: then\r\nSERVER: me\r\nContent-Length: 0\r\n\r\n");
    // A restart without Date and Server adds them again.
    let (mut response, mut out) = answer();
    response.start(&mut out, "200 OK").unwrap();
    response.field(&mut out, "Date", "then").unwrap();
    response.field(&mut out, "Server", "me").unwrap();
    response.restart(&mut out);
    response.start(&mut out, "200 OK").unwrap();
    response.commit(&mut out, Some(0), &AMBIENT).unwrap();
    assert_eq!(text(&out), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: now\r\nServer: us\r\n\r\n");
}

#[test]
fn calls_in_the_wrong_order_are_refused() {
    let (mut response, mut out) = answer();
    response.field(&mut out, "X-A", "b").unwrap_err();
    response.commit(&mut out, None, &AMBIENT).unwrap_err();
    assert_eq!(response.admit(5), 0);
    assert_eq!(text(&out), "");
    response.start(&mut out, "200 OK").unwrap();
    response.start(&mut out, "200 OK").unwrap_err();
    response.commit(&mut out, None, &AMBIENT).unwrap();
    let sent = out.clone();
    response.commit(&mut out, None, &AMBIENT).unwrap_err();
    response.field(&mut out, "X-A", "b").unwrap_err();
    response.start(&mut out, "200 OK").unwrap_err();
    response.restart(&mut out);
    assert_eq!(out, sent, "a committed head stays");
    assert!(response.end(&mut out).persists);
    let sent = out.clone();
    assert!(!response.end(&mut out).persists, "a second end ends the connection");
    assert_eq!((response.admit(5), out), (0, sent));
}

#[test]
fn an_answer_without_a_head_ends_the_connection() {
    let (mut response, mut out) = answer();
    assert!(!response.end(&mut out).persists);
    let (mut response, mut out) = answer();
    response.start(&mut out, "200 OK").unwrap();
    assert!(!response.end(&mut out).persists);
}

#[test]
fn a_refusal_is_a_whole_answer() {
    let limits = Limits::default();
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    buffer.room(0)[..4].copy_from_slice(b"\x16\x03\x01\0");
    buffer.received(4);
    let Event::Rejected(reject) = parser.poll(&mut buffer, &limits) else { panic!("this is no request") };
    let mut out = EARLIER.to_vec();
    Response::to_refused(Dialect::default(), buffer.is_head_request(), out.len())
        .refuse(&mut out, reject, b"", &AMBIENT);
    let (head, body) = text(&out).split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain"), "{head}");
    assert!(
        head.contains(&format!("Content-Length: {}\r\n", body.len())) && head.ends_with("Connection: close"),
        "{head}"
    );
    assert_eq!(body, format!("400 Bad Request: {}\n", reject.reason));
    // A response to HEAD has no content, even if it is a refusal.
    for (method, is_head) in [("HEAD", true), ("HEADS", false), ("GET", false)] {
        let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
        let text = format!("{method} /\x01 ");
        buffer.room(0)[..text.len()].copy_from_slice(text.as_bytes());
        buffer.received(text.len());
        assert!(matches!(parser.poll(&mut buffer, &limits), Event::Rejected(_)));
        assert_eq!(buffer.is_head_request(), is_head, "{method}");
    }
}

/// An application may continue after its mistake.
#[test]
fn a_refused_field_is_removed() {
    let (mut response, mut out) = answer();
    response.start(&mut out, "200 OK").unwrap();
    response.field(&mut out, "Content-Length", "5").unwrap();
    let before = out.clone();
    for (name, value) in [
        ("X-A", "b\r\nX-B: c"),
        ("X A", "b"),
        ("X\n", "b\n"),
        ("Date", "\u{20ac}"),
        ("Content-Length", "6"),
        ("Connection", "close, x"),
    ] {
        response.field(&mut out, name, value).unwrap_err();
        assert_eq!(out, before, "{name}");
    }
    response.commit(&mut out, None, &AMBIENT).unwrap();
    assert_eq!(response.admit(6), 5);
    assert!(response.end(&mut out).persists);
    assert_eq!(text(&out), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: now\r\nServer: us\r\n\r\n");
}

/// The message names an invalid field name before an invalid value.
#[test]
fn the_message_names_the_mistake() {
    for (name, value, expected) in [
        ("", "v", "a header with an empty name"),
        ("X A", "v", "header name \"X A\": ' ' is not allowed in a name"),
        ("X\u{e9}", "v", "header name \"X\u{e9}\": '\u{e9}' is not allowed in a name"),
        ("X\u{141}", "v", "header name \"X\u{141}\": '\u{141}' is not allowed in a name"),
        ("X A", "\n", "header name \"X A\": ' ' is not allowed in a name"),
        ("X-A", "\n", "header X-A: a control character would split the response: \"\\n\""),
        ("X-A", "\u{141}", "header X-A: a character outside of Latin-1: \"\u{141}\""),
        ("Upgrade", "v", "header Upgrade: hop-by-hop fields belong to the server (PEP 3333)"),
    ] {
        let (mut response, mut out) = answer();
        response.start(&mut out, "200 OK").unwrap();
        assert_eq!(response.field(&mut out, name, value).unwrap_err().to_string(), expected);
    }
    let error = answer().0.start(&mut EARLIER.to_vec(), "101 Switching Protocols").unwrap_err().to_string();
    assert!(error.contains("interim responses (1xx) belong to the server"), "{error}");
}

/// The id of the request is missing unless the application, or the lines that it has prepared, bring one.
#[test]
fn whether_the_request_id_is_missing() {
    for (name, is_missing) in [("X-Request-ID", false), ("x-request-id", false), ("X-Request-IP", true)] {
        let (mut response, mut out) = answer();
        assert!(!response.lacks_request_id(), "before the head");
        response.start(&mut out, "200 OK").unwrap();
        response.field(&mut out, name, "a").unwrap();
        assert_eq!(response.lacks_request_id(), is_missing, "{name}");
        response.restart(&mut out);
        response.start(&mut out, "204 No Content").unwrap();
        assert!(response.lacks_request_id());
    }
    let (mut response, mut out) = answer();
    response.brings(false, false, true);
    response.start_prepared(&mut out, "200 OK", b"X-Request-ID: a\r\n").unwrap();
    assert!(!response.lacks_request_id());
}

/// Prepared fields are written unchanged, and missing server fields are added.
#[test]
fn prepared_fields_are_written_as_they_are() {
    for (date, server, added) in
        [(false, false, "Date: now\r\nServer: us\r\n"), (true, false, "Server: us\r\n"), (false, true, "Date: now\r\n")]
    {
        let (mut response, mut out) = answer();
        response.brings(date, server, false);
        response.start_prepared(&mut out, "200 OK", b"X-A: b\r\n").unwrap();
        response.commit(&mut out, Some(0), &AMBIENT).unwrap();
        assert_eq!(text(&out), format!("HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 0\r\n{added}\r\n"));
    }
    let (mut response, mut out) = answer();
    response.start(&mut out, "200 OK").unwrap();
    response.start_prepared(&mut out, "200 OK", b"X-A: b\r\n").unwrap_err();
    assert_eq!(text(&out), "HTTP/1.1 200 OK\r\n");
}

#[test]
fn a_head_can_be_taken_back_until_it_is_committed() {
    let (mut response, mut out) = answer();
    assert_eq!((response.take_back(&mut out), text(&out)), (vec![], ""));
    response.start(&mut out, "200 OK").unwrap();
    response.field(&mut out, "Content-Length", "5").unwrap();
    assert_eq!(response.take_back(&mut out), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n");
    assert_eq!((text(&out), response.is_started(), response.declared_length()), ("", false, None));
    response.start(&mut out, "404 Not Found").unwrap();
    response.commit(&mut out, Some(0), &AMBIENT).unwrap();
    let sent = out.clone();
    assert_eq!((response.take_back(&mut out), out), (vec![], sent));
}

#[test]
fn the_end_of_the_connection_is_that_of_an_answer_without_a_length() {
    for (line, length, ends) in [
        ("GET / HTTP/1.0", None, true),
        ("GET / HTTP/1.0", Some(5), false),
        ("HEAD / HTTP/1.0", None, false),
        ("GET / HTTP/1.1", None, false),
    ] {
        let (mut response, mut out) = answer_to(line);
        response.start(&mut out, "200 OK").unwrap();
        assert!(!response.ends_with_connection());
        response.commit(&mut out, length, &AMBIENT).unwrap();
        assert_eq!(response.ends_with_connection(), ends, "{line} {length:?}");
        response.end(&mut out);
        assert!(!response.ends_with_connection());
    }
}

/// Each status of a refusal has the phrase of RFC 9110 section 15 (507: RFC 4918) and its required fields.
#[test]
fn refusals_have_their_phrases_and_fields() {
    for (status, phrase, field) in [
        (400, "Bad Request", ""),
        (403, "Forbidden", ""),
        (405, "Method Not Allowed", "Allow: GET, HEAD\r\n"),
        (408, "Request Timeout", ""),
        (413, "Content Too Large", ""),
        (414, "URI Too Long", ""),
        (417, "Expectation Failed", ""),
        (421, "Misdirected Request", ""),
        (431, "Request Header Fields Too Large", ""),
        (500, "Internal Server Error", ""),
        (501, "Not Implemented", ""),
        (503, "Service Unavailable", "Retry-After: 1\r\n"),
        (504, "Gateway Timeout", ""),
        (505, "HTTP Version Not Supported", ""),
        (507, "Insufficient Storage", ""),
    ] {
        for to_head in [false, true] {
            let mut out = EARLIER.to_vec();
            let response = Response::to_refused(Dialect::default(), to_head, out.len());
            let sent = response.refuse(&mut out, Reject { status, reason: "why" }, b"", &AMBIENT);
            let body = format!("{status} {phrase}: why\n");
            let expected = format!(
                "HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n{field}Content-Length: {}\r\n\
                 Date: now\r\nServer: us\r\nConnection: close\r\n\r\n{}",
                body.len(),
                if to_head { "" } else { &body }
            );
            assert_eq!(text(&out), expected);
            assert_eq!(sent, if to_head { 0 } else { body.len() as u64 });
        }
    }
}
