//! Inputs of the fuzz targets: earlier findings, and the protocol cases of `tests/cases`.

use std::fs;
use std::path::{Path, PathBuf};

use poorhttp_http::Protocol;

use crate::case::{Block, Case, answers, blocks, bytes, encode_latin1, requests};
use crate::requests::{SIZES, behind_head};
use crate::{packet, trust};

/// The corpus file of a target: one input on each line, escaped.
pub fn file(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target).with_extension("txt")
}

/// The earlier findings for a target.
pub fn found(target: &str) -> Vec<Vec<u8>> {
    fs::read_to_string(file(target)).unwrap().lines().map(bytes).collect()
}

/// The protocol cases as inputs of a target.
pub fn cases(target: &str) -> Vec<Vec<u8>> {
    let cases = requests().into_iter().map(|case| case.send);
    match target {
        "head" => cases.collect(),
        "body" => cases.filter_map(|bytes| behind_head(&bytes)).collect(),
        "connection" => cases.map(|bytes| [&SIZES[..], &bytes].concat()).collect(),
        "response" => answers().iter().filter_map(script).collect(),
        "forwarded" => trust::cases().into_iter().map(|case| case.field_lines()).collect(),
        "proxy_protocol" => trust::cases().into_iter().filter_map(beginning).collect(),
        "gateway" => packet::cases().iter().flat_map(packets).collect(),
        "conditional_fields" => blocks(STATIC, &["options", "static"], usize::MAX).iter().filter_map(fields).collect(),
        "tls" => sessions().collect(),
        _ => Vec::new(),
    }
}

/// Clients of both versions whose bytes come one by one, in pieces, or with a change; and beginnings of records.
fn sessions() -> impl Iterator<Item = Vec<u8>> {
    const RECORDS: [&[u8]; 6] = [
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
        b"\x16\x03\x01\xff\xff",
        b"\x15\x03\x03\x00\x02\x02\x00",
        b"\x17\x03\x03\x00\x00",
        b"\x14\x03\x03\x00\x01\x01",
        b"GET / HTTP/1.1\r\n",
    ];
    (0..=1).flat_map(|version| {
        let changes = [0, 1, 2, 5, 6, 12, 60, 100, 150, 200, 240, 260, 280, 300, 340, 400].into_iter();
        changes.zip(RECORDS.iter().cycle()).flat_map(move |(change, record): (u16, _)| {
            let [high, low] = change.to_be_bytes();
            [[1; 4], *SIZES].map(|sizes| [&[version, high, low], &sizes[..], record].concat())
        })
    })
}

/// Cases of conditional requests, ranges and content codings.
const STATIC: [(&str, &str); 3] = [
    ("conditions.txt", include_str!("../../../tests/cases/static/conditions.txt")),
    ("ranges.txt", include_str!("../../../tests/cases/static/ranges.txt")),
    ("codings.txt", include_str!("../../../tests/cases/static/codings.txt")),
];

/// A gateway case as inputs of [`crate::gateway()`]: its bytes and its variables.
fn packets(case: &packet::Case) -> Vec<Vec<u8>> {
    let kind = match case.protocol {
        Protocol::Scgi => b's',
        Protocol::Fastcgi => b'f',
        _ => b'u',
    };
    let variables = case.variables.iter().flat_map(|(name, value)| [name, &b"="[..], value, b"\xff"].concat());
    let variables: Vec<u8> = variables.chain(*b"\xff").chain(case.content.iter().copied()).collect();
    let input = |kind: u8, bytes: &[u8]| [&[kind], &SIZES[..], bytes].concat();
    let mut inputs = vec![input(kind, &case.bytes)];
    if !case.variables.is_empty() {
        inputs.push(input(kind.to_ascii_uppercase(), &variables));
    }
    inputs
}

/// The fields of such a case as an input of [`crate::conditional_fields()`].
fn fields(block: &Block) -> Option<Vec<u8>> {
    Some(encode_latin1(&block.get_lines("field")?.join("\r\n").replace("{etag}", "\"a\"")).unwrap())
}

/// A PROXY protocol case as an input of [`crate::proxy_protocol`].
fn beginning(case: trust::Case) -> Option<Vec<u8>> {
    (!case.preamble.is_empty()).then(|| [&SIZES[..], &case.preamble].concat())
}

/// A response case as an input of [`crate::response`].
fn script(case: &Case) -> Option<Vec<u8>> {
    let answer = case.answer.as_ref()?;
    let line = case.send.split(|&byte| byte == b'\r').next()?;
    let total: usize = answer.pieces.iter().map(Vec::len).sum();
    let mut calls = vec![line.to_vec(), format!("s{}", answer.status).into_bytes()];
    calls.extend(answer.fields.iter().map(|(name, value)| format!("f{name}:{value}").into_bytes()));
    calls.push(if answer.ways.iter().any(|way| way == "list") { format!("c{total}").into() } else { b"c".to_vec() });
    calls.extend(answer.pieces.iter().map(|piece| [b"w", &piece[..]].concat()));
    calls.push(b"e".to_vec());
    Some(calls.join(&0xff))
}

/// Escapes bytes as text.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_reversible() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(&escape(&all)), all);
    }
}
