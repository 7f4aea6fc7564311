//! The protocol cases of the Autobahn test suite: bytes of a client, and what must come of them.
//!
//! Each is received at once, byte by byte, and in pieces of another length.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod autobahn;

use autobahn::{Case, Events, cases};
use poorhttp_websocket::{Event, Receiver, code};

/// Messages larger than this are received in one way only.
const LARGE: usize = 1 << 17;

/// What comes of the bytes: events, and a close code with whether the client has sent it.
fn outcome(case: &Case, piece: usize) -> (Events, Option<(u16, bool)>) {
    let mut receiver = Receiver::new(16 << 20, None);
    let mut events = Events::new();
    for frame in &case.sent {
        if !frame.is_sent() {
            if frame.kind == "pause" {
                events.push(("pause".to_owned(), Vec::new()));
            }
            continue;
        }
        for part in frame.encoded().chunks_mut(piece) {
            let mut at = 0;
            loop {
                let (used, event) = match receiver.receive(&mut part[at..]) {
                    Ok(received) => received,
                    Err(failure) => return (events, Some((failure.code, false))),
                };
                at += used;
                match event {
                    Some(Event::Text(text)) => events.push(("text".to_owned(), text.into())),
                    Some(Event::Binary(bytes)) => events.push(("binary".to_owned(), bytes.to_vec())),
                    Some(Event::Ping(payload)) => events.push(("pong".to_owned(), payload.to_vec())),
                    Some(Event::Pong(_)) => {}
                    Some(Event::Close(code, _)) => return (events, Some((code, true))),
                    None => break,
                }
            }
            assert_eq!(at, part.len(), "{}: all is taken", case.number);
        }
    }
    (events, None)
}

#[test]
fn all_cases() {
    let cases = cases();
    assert!(cases.len() > 290, "only {}", cases.len());
    for case in cases {
        let size: usize = case.sent.iter().map(|frame| frame.payload.len()).sum();
        let pieces = if size > LARGE { &[4_093][..] } else { &[usize::MAX, 1, 17] };
        for &piece in pieces {
            let (events, end) = outcome(&case, piece);
            if case.end == "any" {
                continue;
            }
            let names: Vec<_> = events.iter().map(|(kind, payload)| (kind, payload.len())).collect();
            assert!(events == case.right, "{} in pieces of {piece}: {names:?}", case.number);
            match (&case.end[..], end) {
                ("close", None) => {}
                ("closed", Some((code, true))) if case.codes.contains(&code) => {}
                ("cut" | "fail" | "refuse", Some((code, false))) if case.codes.contains(&code) => {}
                (wanted, found) => panic!("{} in pieces of {piece}: {wanted}, but {found:?}", case.number),
            }
        }
    }
    assert!(code::may_be_sent(4999) && !code::may_be_sent(5000));
}
