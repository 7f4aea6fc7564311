//! Limits and compression of messages, and frames that the Autobahn test suite does not have.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use poorhttp_websocket::{Compression, Compressor, Event, Failure, Opcode, Receiver, code, frame_header};

const MOST: usize = 100_000;

fn agreed(offer: &str) -> Compression {
    Compression::negotiate([offer.as_bytes()].into_iter()).unwrap()
}

/// A frame of a client; the mask is zero.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let (mut header, used) = frame_header(Opcode::Text, payload.len(), false);
    (header[0], header[1]) = (first, header[1] | 0x80);
    [&header[..used], &[0; 4], payload].concat()
}

/// The messages in some bytes; or the failure.
fn messages(receiver: &mut Receiver, mut bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure> {
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        let (used, event) = receiver.receive(&mut bytes[at..])?;
        at += used;
        match event {
            Some(Event::Text(text)) => found.push(text.as_bytes().to_vec()),
            Some(Event::Binary(bytes)) => found.push(bytes.to_vec()),
            Some(_) => {}
            None => return Ok(found),
        }
    }
}

fn failure(receiver: &mut Receiver, bytes: Vec<u8>) -> u16 {
    messages(receiver, bytes).expect_err("a failure").code
}

#[test]
fn a_message_has_so_many_bytes_at_most() {
    let plain = || Receiver::new(MOST, None);
    assert_eq!(messages(&mut plain(), frame(0x82, &vec![1; MOST])).unwrap()[0].len(), MOST);
    // The header says it: nothing of the content has come.
    let announced = frame(0x82, &vec![1; MOST + 1])[..14].to_vec();
    assert_eq!(failure(&mut plain(), announced), code::TOO_BIG);
    let huge = b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask".to_vec();
    assert_eq!(failure(&mut plain(), huge), code::TOO_BIG);
    let parts = [frame(0x02, &vec![1; MOST]), frame(0x00, b""), frame(0x80, b"1")].concat();
    assert_eq!(failure(&mut plain(), parts), code::TOO_BIG);
}

#[test]
fn a_control_frame_in_pieces_between_the_parts_of_a_message_loses_nothing() {
    let mut receiver = Receiver::new(MOST, None);
    let parts = [frame(0x01, b"ab"), frame(0x89, b"ping"), frame(0x8a, b"pong"), frame(0x80, b"cd")].concat();
    let mut found = Vec::new();
    for byte in parts {
        found.extend(messages(&mut receiver, vec![byte]).unwrap());
    }
    assert_eq!(found, [b"abcd"]);
}

#[test]
fn compressed_messages() {
    for offer in [
        "permessage-deflate",
        "permessage-deflate; server_max_window_bits=9; client_max_window_bits=9",
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    ] {
        let agreed = agreed(offer);
        let (mut compressor, mut receiver) = (Compressor::new(&agreed), Receiver::new(MOST, Some(&agreed)));
        assert_eq!(compressor.compress(b"short"), None);
        for round in 0..3_usize {
            for size in [128, 1_000, 4_096, 65_536, MOST] {
                let text: Vec<u8> = (0..size).map(|at| b'a' + (at * at / 7 + round) as u8 % 26).collect();
                let compressed = compressor.compress(&text).unwrap();
                assert!(!compressed.ends_with(b"\0\0\xff\xff"));
                // In one frame, and in two.
                let middle = compressed.len() / 2;
                let frames = match round {
                    0 => frame(0xc1, &compressed),
                    _ => [frame(0x41, &compressed[..middle]), frame(0x80, &compressed[middle..])].concat(),
                };
                assert!(messages(&mut receiver, frames).unwrap() == [text], "{offer}: {size}");
                // Others are sent as they are.
                assert_eq!(messages(&mut receiver, frame(0x81, b"plain")).unwrap(), [b"plain"]);
            }
        }
    }
}

#[test]
fn what_expands_too_far_or_is_malformed() {
    let agreed = agreed("permessage-deflate; server_no_context_takeover");
    let bomb = Compressor::new(&agreed).compress(&vec![0; 50 << 20]).unwrap();
    assert!(bomb.len() < MOST);
    let with = || Receiver::new(MOST, Some(&agreed));
    assert_eq!(failure(&mut with(), frame(0xc2, &bomb)), code::TOO_BIG);
    assert_eq!(failure(&mut with(), frame(0xc2, b"\xff\xff\xff")), code::INVALID_PAYLOAD);
    let not_utf8 = Compressor::new(&agreed).compress(&[0xff; 200]).unwrap();
    assert_eq!(failure(&mut with(), frame(0xc1, &not_utf8)), code::INVALID_PAYLOAD);
    assert_eq!(failure(&mut with(), frame(0xc9, b"")), code::PROTOCOL_ERROR);
    assert_eq!(failure(&mut with(), [frame(0x01, b""), frame(0xc0, b"")].concat()), code::PROTOCOL_ERROR);
    // A last block may end before the message does, and another one follow.
    let last = b"\x4b\x04\x00\x00";
    assert_eq!(messages(&mut with(), frame(0xc1, last)).unwrap(), [b"a"]);
}

#[test]
fn frames_without_a_mask() {
    assert_eq!(failure(&mut Receiver::new(MOST, None), b"\x81\x01a".to_vec()), code::PROTOCOL_ERROR);
}
