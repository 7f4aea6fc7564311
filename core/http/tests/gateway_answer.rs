//! Responses in the gateway protocols: status line, FastCGI records, and their end.

use poorhttp_http::{Dialect, Protocol, Reject, Response, ServerFields};

const AMBIENT: ServerFields<'_> = ServerFields { date: b"Date: now\r\n", server: b"", closing: false };
/// FastCGI's limit for the content of one record, rounded down to a multiple of eight.
const LARGEST: usize = 65_528;
const END_OF_5: &[u8] = b"\x01\x06\0\x05\0\0\0\0\x01\x03\0\x05\0\x08\0\0\0\0\0\0\0\0\0\0";

fn answer(protocol: Protocol) -> Response {
    Response::to_refused(Dialect { protocol, request: 5 }, false, 0)
}

/// A record of output for request 5.
fn output(content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, 6, 0, 5, high, low, 0, 0], content].concat()
}

#[test]
fn a_refusal_is_a_whole_answer() {
    let body = "400 Bad Request: why\n";
    let fields =
        format!("Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nDate: now\r\n\r\n", body.len());
    let refuse = |protocol| {
        let mut out = Vec::new();
        answer(protocol).refuse(&mut out, Reject { status: 400, reason: "why" }, b"", &AMBIENT);
        out
    };
    assert_eq!(refuse(Protocol::Uwsgi), format!("HTTP/1.1 400 Bad Request\r\n{fields}{body}").as_bytes());
    let head = format!("Status: 400 Bad Request\r\n{fields}");
    assert_eq!(refuse(Protocol::Scgi), format!("{head}{body}").as_bytes());
    let records = [&output(head.as_bytes()), &output(body.as_bytes()), END_OF_5].concat();
    assert_eq!(refuse(Protocol::Fastcgi), records);
}

/// Gateway responses are not chunked: they end with the connection, in FastCGI with the last record.
#[test]
fn an_answer_without_a_length() {
    for protocol in [Protocol::Uwsgi, Protocol::Scgi, Protocol::Fastcgi] {
        let is_recorded = protocol == Protocol::Fastcgi;
        let (mut response, mut out) = (answer(protocol), Vec::new());
        response.start(&mut out, "200 OK").unwrap();
        response.commit(&mut out, None, &AMBIENT).unwrap();
        assert!(response.ends_with_connection());
        assert_eq!(response.largest_chunk(), if is_recorded { LARGEST } else { usize::MAX });
        out.clear();
        for piece in ["ab", "", "c"] {
            assert_eq!(response.admit(piece.len()), piece.len());
            assert_eq!(response.record(piece.len()).is_some(), is_recorded && !piece.is_empty());
            response.open_chunk(&mut out, piece.len());
            out.extend_from_slice(piece.as_bytes());
            assert_eq!(response.end_of_chunk(piece.len()), b"");
        }
        response.end(&mut out);
        let expected = if is_recorded { [&output(b"ab"), &output(b"c"), END_OF_5].concat() } else { b"abc".to_vec() };
        assert_eq!(out, expected);
    }
}

/// Without the last record, the web server knows that a response is incomplete.
#[test]
fn an_answer_that_is_cut_short_has_no_end() {
    for (length, ends) in [("2", true), ("3", false)] {
        let (mut response, mut out) = (answer(Protocol::Fastcgi), Vec::new());
        response.start(&mut out, "200 OK").unwrap();
        response.field(&mut out, "Content-Length", length).unwrap();
        response.commit(&mut out, None, &AMBIENT).unwrap();
        response.admit(2);
        out.clear();
        response.end(&mut out);
        assert_eq!(out, if ends { END_OF_5 } else { b"" });
    }
    let mut out = Vec::new();
    answer(Protocol::Fastcgi).end(&mut out);
    assert_eq!(out, b"");
}

#[test]
fn a_head_is_one_record() {
    let fixed = "Status: 200 OK\r\nX: \r\nContent-Length: 0\r\nDate: now\r\n\r\n".len();
    for (length, fits) in [(LARGEST, true), (LARGEST + 1, false)] {
        // The buffer already holds a management reply.
        let (mark, mut out) = (3, b"abc".to_vec());
        let mut response = Response::to_refused(Dialect { protocol: Protocol::Fastcgi, request: 5 }, false, mark);
        response.start(&mut out, "200 OK").unwrap();
        response.field(&mut out, "X", &"v".repeat(length - fixed)).unwrap();
        let committed = response.commit(&mut out, Some(0), &AMBIENT);
        assert_eq!(committed.is_ok(), fits);
        assert_eq!(response.is_committed(), fits);
        if fits {
            assert_eq!(out[..mark + 8], *b"abc\x01\x06\0\x05\xff\xf8\0\0");
            assert_eq!(out.len(), mark + 8 + LARGEST);
        } else {
            let error = committed.unwrap_err().to_string();
            assert_eq!(error, "the head of an answer is 65529 bytes long; FastCGI has room for 65528");
        }
    }
}
