//! Reader of the protocol cases of the Autobahn test suite, as the lab has them; their file says how a case is written.
//!
//! The fuzz target of this crate includes it, too.

// Each of them uses a part.
#![allow(dead_code)]

use std::fs;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../loadtests/studies/websocket/cases.txt");
const MASK: [u8; 4] = [0x5a, 0x11, 0, 0xff];
const KINDS: [(&str, u8); 6] = [("more", 0), ("text", 1), ("binary", 2), ("close", 8), ("ping", 9), ("pong", 10)];

#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: String,
    pub(crate) payload: Vec<u8>,
    is_last: bool,
    reserved: u8,
}

impl Frame {
    /// Whether it is sent; the others are what a client does between its frames.
    pub(crate) fn is_sent(&self) -> bool {
        self.kind != "wait" && self.kind != "pause"
    }

    pub(crate) fn encoded(&self) -> Vec<u8> {
        if self.kind == "raw" {
            return self.payload.clone();
        }
        let known = KINDS.iter().find(|(name, _)| *name == self.kind).map(|(_, opcode)| *opcode);
        let opcode = known.unwrap_or_else(|| self.kind[2..].parse().unwrap());
        let mut bytes = vec![u8::from(self.is_last) << 7 | self.reserved << 4 | opcode];
        match self.payload.len() {
            short @ ..126 => bytes.push(0x80 | short as u8),
            medium @ ..65_536 => {
                bytes.push(0xfe);
                bytes.extend((medium as u16).to_be_bytes());
            }
            long => {
                bytes.push(0xff);
                bytes.extend((long as u64).to_be_bytes());
            }
        }
        bytes.extend(MASK);
        bytes.extend(self.payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }
}

pub(crate) type Events = Vec<(String, Vec<u8>)>;

pub(crate) struct Case {
    pub(crate) number: String,
    pub(crate) sent: Vec<Frame>,
    pub(crate) right: Events,
    pub(crate) end: String,
    pub(crate) codes: Vec<u16>,
}

/// Words that spaces separate, except those in quotes.
fn words(line: &str) -> Vec<String> {
    let (mut found, mut is_quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => found.push(String::new()),
            _ => found.last_mut().unwrap().push(letter),
        }
    }
    found.into_iter().filter(|word| !word.is_empty()).collect()
}

fn payload(kind: &str, text: &str) -> Vec<u8> {
    if kind == "close" && !text.is_empty() {
        let (number, reason) = text.split_once(',').unwrap_or((text, ""));
        return [&number.parse::<u16>().unwrap().to_be_bytes()[..], &payload("", reason)].concat();
    }
    let repeated = text.split_once('*').and_then(|(count, text)| Some((count.parse().ok()?, text)));
    let (count, text): (usize, _) = repeated.unwrap_or((1, text));
    let (mut plain, mut rest) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once("\\x") {
        plain.extend(before.bytes());
        plain.push(u8::from_str_radix(&behind[..2], 16).unwrap());
        rest = &behind[2..];
    }
    plain.extend(rest.bytes());
    plain.repeat(count)
}

fn frame(word: &str) -> Frame {
    let (head, text) = word.split_once(':').unwrap_or((word, ""));
    let (head, is_last) = head.strip_prefix('-').map_or((head, true), |head| (head, false));
    let (reserved, kind) = match head.strip_prefix("rsv") {
        Some(rest) => (rest[..1].parse().unwrap(), &rest[2..]),
        None => (0, head),
    };
    Frame { kind: kind.to_owned(), payload: payload(kind, text), is_last, reserved }
}

fn fragmented(frames: Vec<Frame>, size: usize) -> Vec<Frame> {
    let split = |frame: Frame| {
        let count = frame.payload.len().div_ceil(size);
        let part = move |(at, part): (usize, &[u8])| Frame {
            kind: if at == 0 { frame.kind.clone() } else { "more".to_owned() },
            payload: part.to_vec(),
            is_last: at + 1 == count,
            reserved: 0,
        };
        frame.payload.clone().chunks(size).enumerate().map(part).collect::<Vec<_>>()
    };
    frames.into_iter().flat_map(split).collect()
}

/// The events that an echo of these frames is.
fn echoed(frames: &[Frame]) -> Events {
    let (mut events, mut message) = (Events::new(), (String::new(), Vec::new()));
    for frame in frames {
        match &frame.kind[..] {
            "ping" => events.push(("pong".to_owned(), frame.payload.clone())),
            "text" | "binary" => message = (frame.kind.clone(), frame.payload.clone()),
            "more" => message.1.extend(&frame.payload),
            _ => {}
        }
        if frame.is_last && ["text", "binary", "more"].contains(&&frame.kind[..]) {
            events.push(message.clone());
        }
    }
    events
}

pub(crate) fn cases() -> Vec<Case> {
    let text = fs::read_to_string(FILE).unwrap();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let all = words(line);
        let (number, mut rest) = (all[0].clone(), &all[1..]);
        if rest[0] == "utf8" {
            for (count, digits) in rest[1..].iter().enumerate() {
                let payload: Vec<u8> =
                    (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..][..2], 16).unwrap()).collect();
                let is_good = std::str::from_utf8(&payload).is_ok();
                let sent = vec![Frame { kind: "text".to_owned(), payload, is_last: true, reserved: 0 }];
                let right = if is_good { echoed(&sent) } else { Events::new() };
                let (end, codes) = if is_good { ("close", vec![1000]) } else { ("refuse", vec![1007]) };
                found.push(Case { number: format!("{number}.{}", count + 1), sent, right, end: end.to_owned(), codes });
            }
            continue;
        }
        let mut fragments = 0;
        while rest[0] == "frames" || rest[0].contains('=') {
            if let Some(size) = rest[0].strip_prefix("fragments=") {
                fragments = size.parse().unwrap();
            }
            rest = &rest[1..];
        }
        let arrow = rest.iter().position(|word| word == "=>").unwrap();
        let semicolon = rest.iter().position(|word| word == ";").unwrap();
        let mut sent: Vec<Frame> = rest[..arrow].iter().map(|word| frame(word)).collect();
        let mut right = Events::new();
        // What stands behind `or` is not strict.
        for word in rest[arrow + 1..semicolon].iter().take_while(|word| *word != "or") {
            match &word[..] {
                "same" => right.extend(echoed(&sent)),
                "nothing" | "any" => {}
                word => {
                    let frame = frame(word);
                    right.push((frame.kind, frame.payload));
                }
            }
        }
        if fragments > 0 {
            sent = fragmented(sent, fragments);
        }
        let codes = rest[semicolon + 2..].iter().map(|code| code.parse().unwrap()).collect();
        found.push(Case { number, sent, right, end: rest[semicolon + 1].clone(), codes });
    }
    found
}
