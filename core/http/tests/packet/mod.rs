//! Reader of the gateway cases in `tests/cases/gateway`, and encoder of gateway requests.
//!
//! Tests of other crates include it, beside `case`, by `#[path = "…/http/tests/packet/mod.rs"] mod packet;`.

// Each test uses a part.
#![allow(dead_code)]

use std::collections::BTreeMap;

use poorhttp_http::Protocol;

use crate::case::{Block, blocks, encode_latin1};

/// A name and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The request is accepted.
    Taken,
    /// The request is refused with this status, and a reason that begins with this text.
    Refused(u16, String),
    /// The request is incomplete.
    Nothing,
}

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) expected: Expected,
    /// Expected environ; `None`: the key must be absent.
    pub(crate) environ: BTreeMap<String, Option<Vec<u8>>>,
    pub(crate) body: Option<Vec<u8>>,
    /// Expected management replies.
    pub(crate) replies: Vec<u8>,
    /// The variables of the web server; empty if the packet is given literally.
    pub(crate) variables: Vec<Pair>,
    /// The bytes after the packet.
    pub(crate) content: Vec<u8>,
    /// All bytes to send.
    pub(crate) bytes: Vec<u8>,
}

const FILES: [(&str, &str); 4] = [
    ("request.txt", include_str!("../../../../tests/cases/gateway/request.txt")),
    ("uwsgi.txt", include_str!("../../../../tests/cases/gateway/uwsgi.txt")),
    ("scgi.txt", include_str!("../../../../tests/cases/gateway/scgi.txt")),
    ("fastcgi.txt", include_str!("../../../../tests/cases/gateway/fastcgi.txt")),
];

/// Every case, once for each protocol that it names.
pub(crate) fn cases() -> Vec<Case> {
    let cases: Vec<Case> = blocks(FILES, &["gateway"], usize::MAX).iter().flat_map(read).collect();
    assert!(cases.len() > 500, "only {} cases were found", cases.len());
    cases
}

fn read(block: &Block) -> Vec<Case> {
    let expect = block.text("expect");
    let expected = match expect.split_once(' ') {
        Some((status, reason)) => Expected::Refused(status.parse().unwrap(), reason.to_owned()),
        None if expect == "nothing" => Expected::Nothing,
        None => Expected::Taken,
    };
    let latin1 = |text: String| encode_latin1(&text).unwrap();
    let environ = block.pairs("environ").into_iter().map(|(key, value)| (key, value.map(latin1)));
    let environ: BTreeMap<_, _> = environ.collect();
    let sent = block.bytes("send");
    let variable = |(name, value): (String, Option<String>)| (latin1(name), latin1(value.unwrap()));
    let variables: Vec<Pair> = block.pairs("variables").into_iter().map(variable).collect();
    let case = |name: &String| {
        let protocol = Protocol::named(name).unwrap();
        let bytes = match block.get_bytes("packet") {
            None => pack(protocol, &variables, &sent),
            Some(packet) => [packet, sent.clone()].concat(),
        };
        Case {
            name: format!("{} ({name})", block.text("name")),
            protocol,
            expected: expected.clone(),
            environ: environ.clone(),
            body: block.get_bytes("body"),
            replies: block.bytes("aside"),
            variables: variables.clone(),
            content: sent.clone(),
            bytes,
        }
    };
    block.words("protocol").iter().map(case).collect()
}

/// Packs a request as a web server does. SCGI requires CONTENT_LENGTH.
pub(crate) fn pack(protocol: Protocol, variables: &[Pair], content: &[u8]) -> Vec<u8> {
    if protocol == Protocol::Fastcgi {
        let text: Vec<u8> = variables.iter().flat_map(|(name, value)| recorded(name, value)).collect();
        let stream = |kind: u8, bytes: &[u8]| {
            let parts = bytes.chunks(PART).chain([&[][..]]);
            parts.flat_map(|part| record(kind, part)).collect::<Vec<u8>>()
        };
        return [record(1, &[0, 1, 0, 0, 0, 0, 0, 0]), stream(4, &text), stream(5, content)].concat();
    }
    if protocol == Protocol::Scgi {
        let mut variables = variables.to_vec();
        let length = variables.iter().position(|(name, _)| name == b"CONTENT_LENGTH").map(|at| variables.remove(at));
        variables.insert(0, length.unwrap_or_else(|| (b"CONTENT_LENGTH".to_vec(), b"0".to_vec())));
        let text: Vec<u8> =
            variables.iter().flat_map(|(name, value)| [name, &b"\0"[..], value, b"\0"].concat()).collect();
        return [text.len().to_string().as_bytes(), b":", &text, b",", content].concat();
    }
    let sized = |bytes: &[u8]| [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat();
    let text: Vec<u8> = variables.iter().flat_map(|(name, value)| [sized(name), sized(value)].concat()).collect();
    [b"\0", &(text.len() as u16).to_le_bytes()[..], b"\0", &text, content].concat()
}

/// Length of the records: variables are split between them.
const PART: usize = 8_191;

/// A record of request 1, padded to a multiple of eight.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let padding = content.len().wrapping_neg() % 8;
    [&[1, kind, 0, 1, high, low, padding as u8, 0], content, &[0; 7][..padding]].concat()
}

/// A FastCGI variable: a length below 128 takes one byte, others four.
fn recorded(name: &[u8], value: &[u8]) -> Vec<u8> {
    let length = |bytes: &[u8]| match bytes.len() {
        short @ 0..128 => vec![short as u8],
        long => (long as u32 | 1 << 31).to_be_bytes().to_vec(),
    };
    [length(name), length(value), name.to_vec(), value.to_vec()].concat()
}
