//! Protocol cases about requests, with their bytes split in different ways.

use crate::case::{self, End, requests};
use crate::receiver::{Receiver, receive};
use poorhttp_http::{Event, Limits, ReadBuffer};

/// Positions to cut bytes in two: all of them, but only a few in the middle of long input.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    const NEAR: usize = 300;
    let limits = Limits::default();
    let edges = [0, length, limits.request_line, limits.field_line, limits.head, ReadBuffer::ROOM];
    (0..=length).filter(move |&cut| {
        length <= 4 * NEAR || cut % 997 == 0 || edges.iter().any(|&edge| cut.abs_diff(edge) < NEAR / 4)
    })
}

#[test]
fn every_case_has_its_expected_result() {
    for case in requests() {
        let outcome = receive([&case.send[..]]);
        let name = &case.name;
        let mut statuses: Vec<u16> = Vec::new();
        for message in &outcome.messages {
            statuses.push(if message.target() == b"*" { 204 } else { 200 });
        }
        statuses.extend(outcome.rejected.map(|(status, _)| status));
        assert_eq!(statuses, case.statuses, "{name}");
        let keeps = outcome.rejected.is_none() && outcome.messages.iter().all(|message| message.head.keep_alive);
        assert_eq!(keeps, case.end == End::Keep, "{name}");
        assert!(outcome.unfinished.is_none() && !outcome.rest, "{name}: a part of it is left over");
        if let Some(body) = &case.body {
            assert_eq!(outcome.messages.last().unwrap().body, *body, "{name}");
        }
    }
}

#[test]
fn byte_by_byte_the_result_is_the_same() {
    for case in requests() {
        assert_eq!(receive(case.send.chunks(1)), receive([&case.send[..]]), "{}", case.name);
    }
}

#[test]
fn in_two_parts_the_result_is_the_same() {
    for case in requests() {
        let whole = receive([&case.send[..]]);
        for cut in cuts(case.send.len()) {
            let (one, two) = case.send.split_at(cut);
            assert_eq!(receive([one, two]), whole, "{} cut at {cut}", case.name);
        }
    }
}

#[test]
fn no_byte_after_a_rejected_message_is_read() {
    const NEXT: &[u8] = b"GET /never HTTP/1.1\r\nHost: a\r\n\r\n";
    for case in requests().into_iter().filter(case::Case::is_refused) {
        let whole = receive([&case.send[..]]);
        assert_eq!(receive([&case.send[..], NEXT]), whole, "{}", case.name);
        if case.statuses.last() == Some(&421) {
            // The parser accepts this case.
            continue;
        }
        // A refusal is final, whatever is called or received.
        let mut receiver = Receiver::default();
        receiver.feed(&case.send);
        for _ in 0..3 {
            receiver.parser.next_message(&mut receiver.buffer);
            receiver.buffer.room(0)[0] = b'G';
            receiver.buffer.received(1);
            let event = receiver.parser.poll(&mut receiver.buffer, &receiver.limits);
            let Event::Rejected(reject) = event else { panic!("{}: {event:?}", case.name) };
            assert_eq!(Some((reject.status, reject.reason)), whole.rejected);
        }
        assert!(!receiver.parser.is_mid_message(Some(&receiver.buffer)));
    }
}

/// The reason to refuse a head with a fault and over a limit does not depend on how it arrives.
#[test]
fn the_first_of_two_faults_counts() {
    let long = "a".repeat(9_000);
    let huge = format!("X: {}\r\n", "b".repeat(10_000)).repeat(8);
    let faults = [
        (format!("GET /\x01{long} HTTP/1.1\r\n\r\n"), 400),
        (format!("GET /{long}\x01 HTTP/1.1\r\n\r\n"), 414),
        (format!("GET /{}\x01{long}", "a".repeat(8_187)), 400),
        (format!("GET /{}\x01{long}", "a".repeat(8_188)), 414),
        (format!("G(T /{long} HTTP/1.1\r\n\r\n"), 400),
        (format!("{long} / HTTP/1.1\r\n\r\n"), 501),
        (format!("{} /{long} HTTP/1.1\r\n\r\n", "A".repeat(33)), 501),
        (format!("{} /{long} HTTP/1.1\r\n\r\n", "A".repeat(32)), 414),
        (format!("{}( / HTTP/9.9\r\n\r\n", "A".repeat(40)), 501),
        (format!("G(T{} / HTTP/1.1\r\n\r\n", "A".repeat(40)), 400),
        (format!("GET / HTTP/1.1{long}\r\n\r\n"), 400),
        ("\r\0 GET / HTTP/1.1x\r\nHost: aaaaaaaaaaaaaaaaaaaaa\r\n\r\n".into(), 400),
        ("\rGET / HTT(\rGET / HTTP/1.1\r\nHost: aaaaaaaaaaa\r\n\r\n".into(), 400),
        (format!("GET / HTTP/1.2{long}\r\n\r\n"), 400),
        (format!("GET / HTTP/2.0{long}\r\n\r\n"), 400),
        (format!("GET /{long} HTTP/2.0x\r\n\r\n"), 414),
        (format!("GET /{} HTTP/1.2\r\n\r\n", "a".repeat(8_178)), 400),
        (format!("GET /{} HTTP/1.2\r\n\r\n", "a".repeat(8_179)), 414),
        (format!("GET /{} HTTP/2.0\r\n\r\n", "a".repeat(8_178)), 505),
        (format!("GET /{} HTTP/2.0\r\n\r\n", "a".repeat(8_179)), 414),
        (format!("GET / HTTP/1.1\rx{long}\r\n\r\n"), 400),
        (format!("GET /{long} HTTP/1.1\r\nX : b\r\n\r\n"), 414),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n{huge}\r\n"), 400),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{huge}X : b\r\n\r\n"), 431),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{}X : b\r\n\r\n", "Y: b\r\n".repeat(256)), 431),
    ];
    for (text, status) in faults {
        let bytes = text.as_bytes();
        let whole = receive([bytes]);
        let name = text.get(..40).unwrap();
        assert_eq!(whole.rejected.unwrap().0, status, "{name:?}");
        assert_eq!(receive(bytes.chunks(1)), whole, "{name:?}");
        for cut in cuts(bytes.len()) {
            let (one, two) = bytes.split_at(cut);
            assert_eq!(receive([one, two]), whole, "{name:?} cut at {cut}");
        }
    }
}

/// Every case comes several times on one connection, after a remembered head.
#[test]
fn a_remembered_head_has_the_same_result() {
    const PLAIN: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for case in requests().into_iter().filter(|case| case.send.len() < 20_000) {
        let bytes = [PLAIN, PLAIN, &case.send, &case.send, PLAIN, PLAIN, &case.send].concat();
        let expected = receive([&bytes[..]]);
        for piece in [1, 5, 31, 64, usize::MAX] {
            let mut receiver = Receiver { remembers: true, ..Receiver::default() };
            bytes.chunks(piece).for_each(|part| receiver.feed(part));
            assert_eq!(receiver.outcome(), expected, "{}, {piece} bytes at once", case.name);
        }
    }
}

/// Bytes after a version are refused as soon as they arrive, as a malformed version.
#[test]
fn bytes_after_a_version_are_refused_at_once() {
    for version in
        ["HTTP/1.1x", "HTTP/1.0 ", "HTTP/1.2\t", "HTTP/2.0.", "HTTP/1.10", "http/1.1 ", "HTTP/1.1\0", "HTTPS/1.1"]
    {
        let text = format!("GET / {version}");
        for cut in 1..text.len() {
            let (one, two) = text.as_bytes().split_at(cut);
            let expected = Some((400, "a malformed HTTP version"));
            assert_eq!(receive([one, two]).rejected, expected, "{version:?} cut at {cut}");
        }
    }
}

/// No byte after a limit is needed to refuse a request.
#[test]
fn the_first_byte_beyond_a_limit_is_refused() {
    let limits = Limits::default();
    // Only a carriage return could follow the last byte of the line.
    let endless = format!("GET /{}", "a".repeat(20_000));
    let fields = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "a".repeat(100_000));
    for (text, most) in [(endless, limits.request_line + 2), (fields, limits.head + 1)] {
        let mut receiver = Receiver::default();
        let taken = text.as_bytes().chunks(1).take_while(|byte| {
            receiver.feed(byte);
            !receiver.closed
        });
        assert_eq!(taken.count() + 1, most);
    }
}

/// Malformed case files and their error messages.
#[test]
fn malformed_blocks_are_reported_with_their_position() {
    const CASE: &str = "# A comment.\n\nname: a\nrfc: b\nwhy: c\nexpect: 200 keep\nsend:\n    2 * \\x41\n    \\e\n";
    let read = |text: &str| case::blocks([("x.txt", text)], &["exchange"], usize::MAX);
    assert_eq!(read(CASE)[0].bytes("send"), b"AA");
    for (old, new, fault) in [
        ("name:", "title:", "x.txt:3: of which kind is it?"),
        ("rfc: b\n", "", "x.txt:3: without rfc"),
        ("why: c", "why:", "x.txt:3: nothing behind why"),
        ("why: c", "why: c\nwhy: d", "x.txt:6: \"why: d\" a second time"),
        ("why: c", "why: c\nwhom: d", "x.txt:3: unknown key whom"),
        ("\\x41", "\\q", "x.txt:3: send: unknown escape"),
        ("\\x41", "\u{e9}", "x.txt:8: \"    2 * \u{e9}\": not ASCII"),
        ("\\x41", "\\u20ac", "x.txt:3: send: not Latin-1"),
        ("name: a", "name: a\nenviron:\n    b", "x.txt:3: environ: neither"),
    ] {
        let refused = std::panic::catch_unwind(|| read(&CASE.replace(old, new)));
        let said = refused.err().expect(fault).downcast::<String>().unwrap();
        assert!(said.starts_with(fault), "{said}");
    }
    let twice = std::panic::catch_unwind(|| read(&format!("{CASE}\n{CASE}")));
    assert_eq!(*twice.err().unwrap().downcast::<String>().unwrap(), "x.txt:13: a a second time");
}
