//! Fuzz target `websocket`: frames of a client, messages that are compressed, opening handshakes.

use poorhttp_http::is_token;
use poorhttp_websocket::{Compression, Compressor, Event, Failure, Handshake, Opcode, Receiver, code, frame_header};

use crate::requests::pieces;

/// Bytes of the largest message.
const MOST: usize = 1_000;
/// Offers of permessage-deflate by which both sides compress in the same way.
const OFFERS: [&str; 3] = [
    "permessage-deflate",
    "permessage-deflate; server_max_window_bits=9; client_max_window_bits=9",
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
];

/// After `p`, receives frames without compression, after `c` with it; four bytes are the sizes of the pieces in which they arrive.
/// After `m`, compresses messages, each behind a byte with the number of its repetitions and one with its length. After `h`,
/// checks fields of a handshake and of its answer, on a line each.
pub fn websocket(bytes: &[u8]) {
    match bytes.split_first() {
        Some((kind @ (b'p' | b'c'), bytes)) => frames(*kind == b'c', bytes),
        Some((b'm', bytes)) => messages(bytes),
        Some((b'h', bytes)) => handshake(bytes),
        _ => {}
    }
}

/// An event with its content, as a frame has it.
type Found = (Opcode, Vec<u8>);

fn agreed(at: usize) -> Compression {
    Compression::negotiate([OFFERS[at % OFFERS.len()].as_bytes()].into_iter()).expect("a good offer")
}

fn frames(is_compressed: bool, bytes: &[u8]) {
    let Some((sizes, bytes)) = bytes.split_first_chunk::<4>() else { return };
    let agreed = is_compressed.then(|| agreed(sizes[0].into()));
    let whole = received(agreed.as_ref(), [bytes].into_iter());
    let parts = received(agreed.as_ref(), pieces(bytes, sizes));
    // What has come does not depend on how the bytes are split, and nor does why it is refused; in data that is compressed, which
    // of two faults is found first may.
    assert_eq!(parts.0, whole.0);
    match is_compressed {
        false => assert_eq!(parts.1, whole.1),
        true => assert_eq!(parts.1.is_some(), whole.1.is_some()),
    }
    if !is_compressed {
        let (events, refusal) = expected(bytes);
        // They are what RFC 6455 says.
        assert_eq!((whole.0, whole.1.map(|failure| failure.code)), (events, refusal));
    }
}

/// What comes of the pieces: events, and the failure.
fn received<'a>(agreed: Option<&Compression>, pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Found>, Option<Failure>) {
    let mut receiver = Receiver::new(MOST, agreed);
    let mut found = Vec::new();
    for piece in pieces {
        let (mut input, mut at) = (piece.to_vec(), 0);
        loop {
            let (used, event) = match receiver.receive(&mut input[at..]) {
                Ok(received) => received,
                Err(failure) => {
                    // It can be told to the client.
                    assert!(code::may_be_sent(failure.code));
                    return (found, Some(failure));
                }
            };
            at += used;
            match event {
                Some(Event::Text(text)) => found.push((Opcode::Text, text.into())),
                Some(Event::Binary(bytes)) => found.push((Opcode::Binary, bytes.to_vec())),
                Some(Event::Ping(payload)) => found.push((Opcode::Ping, payload.to_vec())),
                Some(Event::Pong(payload)) => found.push((Opcode::Pong, payload.to_vec())),
                Some(Event::Close(code, reason)) => {
                    found.push((Opcode::Close, [&code.to_be_bytes()[..], reason.as_bytes()].concat()));
                    return (found, None);
                }
                None => break,
            }
            assert!(found.last().is_none_or(|(_, content)| content.len() <= MOST));
        }
        assert_eq!(at, piece.len(), "all is taken");
    }
    (found, None)
}

/// The same by another reading of RFC 6455, section by section, of all bytes at once: events, and the code of the refusal.
fn expected(mut bytes: &[u8]) -> (Vec<Found>, Option<u16>) {
    let mut found: Vec<Found> = Vec::new();
    let mut message: Option<Found> = None;
    let is_text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // The rest of a character may follow.
        Err(error) => error.error_len().is_none(),
    };
    while let [first, second, rest @ ..] = bytes {
        let (is_last, number, short) = (first & 0x80 != 0, first & 0xf, second & 0x7f);
        let is_control = number >= 8;
        let is_wrong = first & 0x70 != 0
            || !matches!(number, 0..=2 | 8..=10)
            || second & 0x80 == 0
            || is_control && (!is_last || short > 125);
        if is_wrong {
            return (found, Some(code::PROTOCOL_ERROR));
        }
        let digits = [0, 2, 8][usize::from(short.saturating_sub(125))];
        let Some((digits, rest)) = rest.split_at_checked(digits) else { break };
        let length = match digits {
            [] => u64::from(short),
            digits => digits.iter().fold(0, |number, digit| number << 8 | u64::from(*digit)),
        };
        // The shortest form, and no negative number.
        if short == 126 && length < 126 || short == 127 && length >> 16 == 0 || length >> 63 == 1 {
            return (found, Some(code::PROTOCOL_ERROR));
        }
        let Some((mask, rest)) = rest.split_at_checked(4) else { break };
        let before = message.as_ref().map_or(0, |message| message.1.len());
        if !is_control && (number == 0) != message.is_some() {
            return (found, Some(code::PROTOCOL_ERROR));
        }
        if !is_control && length > (MOST - before) as u64 {
            return (found, Some(code::TOO_BIG));
        }
        let has_come = rest.len() as u64 >= length;
        let (payload, rest) = rest.split_at(rest.len().min(length as usize));
        bytes = rest;
        let payload: Vec<u8> = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        if !is_control {
            let opcode = if number == 2 { Opcode::Binary } else { Opcode::Text };
            let (opcode, mut content) = message.take().unwrap_or((opcode, Vec::new()));
            content.extend(payload);
            let is_whole = is_last && has_come;
            if opcode == Opcode::Text && !is_text(&content)
                || is_whole && opcode == Opcode::Text && std::str::from_utf8(&content).is_err()
            {
                return (found, Some(code::INVALID_PAYLOAD));
            }
            match is_whole {
                true => found.push((opcode, content)),
                false => message = Some((opcode, content)),
            }
        } else if has_come {
            match (number, &payload[..]) {
                (9, _) => found.push((Opcode::Ping, payload)),
                (10, _) => found.push((Opcode::Pong, payload)),
                (_, []) => found.push((Opcode::Close, code::NO_STATUS.to_be_bytes().to_vec())),
                (_, [_]) => return (found, Some(code::PROTOCOL_ERROR)),
                (_, [high, low, reason @ ..]) => {
                    if !matches!(u16::from_be_bytes([*high, *low]), 1000..=1003 | 1007..=1014 | 3000..=4999) {
                        return (found, Some(code::PROTOCOL_ERROR));
                    }
                    if std::str::from_utf8(reason).is_err() {
                        return (found, Some(code::INVALID_PAYLOAD));
                    }
                    found.push((Opcode::Close, payload));
                }
            }
            if number == 8 {
                break;
            }
        }
        if !has_come {
            break;
        }
    }
    (found, None)
}

fn messages(bytes: &[u8]) {
    let Some((&offer, mut script)) = bytes.split_first() else { return };
    let agreed = agreed(offer.into());
    let (mut compressor, mut receiver) = (Compressor::new(&agreed), Receiver::new(300 << 10, Some(&agreed)));
    while let Some((&[times, length], rest)) = script.split_first_chunk() {
        let (text, rest) = rest.split_at(rest.len().min(length.into()));
        script = rest;
        let message = text.repeat(usize::from(times) + 1);
        let compressed = compressor.compress(&message);
        let payload = compressed.as_ref().unwrap_or(&message);
        // What is compressed is hardly larger.
        assert!(payload.len() <= message.len() + message.len() / 100 + 32);
        let (mut header, used) = frame_header(Opcode::Binary, payload.len(), compressed.is_some());
        header[1] |= 0x80;
        let mut frame = [&header[..used], &[0; 4], payload].concat();
        let length = frame.len();
        // A client gets the same bytes.
        assert_eq!(receiver.receive(&mut frame), Ok((length, Some(Event::Binary(&message)))));
    }
}

fn handshake(bytes: &[u8]) {
    let halves = bytes.splitn(2, |&byte| byte == 0xff).collect::<Vec<_>>();
    let [asked, answered] = [halves[0], halves.get(1).copied().unwrap_or_default()].map(fields);
    let Ok(handshake) = Handshake::of(asked.iter().copied(), true) else { return };
    // What applications are told, they may choose.
    assert!(handshake.subprotocols.iter().all(|name| is_token(name.as_bytes())));
    let Ok(head) = handshake.head(handshake.subprotocols.first().map(String::as_str), answered.iter().copied()) else {
        return;
    };
    let head: String = head.into_iter().map(char::from).collect();
    let lines: Vec<&str> = head.strip_suffix("\r\n\r\n").expect("an empty line").split("\r\n").collect();
    // It has the fields that were given and those of the server, and nothing is smuggled into it.
    let has = [true, handshake.compression.is_some(), !handshake.subprotocols.is_empty()];
    assert_eq!(lines.len(), 3 + has.iter().filter(|has| **has).count() + answered.len());
    assert!(lines[1..].iter().all(|line| line.split_once(": ").is_some_and(|(name, _)| is_token(name.as_bytes()))));
    assert!(!head.contains(['\0', '\x7f']) && head.matches(['\r', '\n']).count() == 2 * (lines.len() + 1));
}

/// Lines of `name:value`.
fn fields(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let lines = bytes.split(|&byte| byte == b'\n').filter_map(|line| {
        let at = line.iter().position(|&byte| byte == b':')?;
        Some((&line[..at], &line[at + 1..]))
    });
    lines.collect()
}
