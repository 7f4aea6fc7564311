//! Inputs of the fuzz targets: earlier findings, and the protocol cases of `tests/cases`.

use std::fs;
use std::path::{Path, PathBuf};

use poorhttp_http::Protocol;

use crate::case::{Block, Case, answers, blocks, bytes, encode_latin1, requests};
use crate::requests::{SIZES, behind_head};
use crate::tls_session::client_hello;
use crate::{autobahn, packet, session, trust};

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
        "compressed_fields" => answers().iter().filter_map(response_fields).collect(),
        "conditional_fields" => blocks(STATIC, &["options", "static"], usize::MAX).iter().filter_map(fields).collect(),
        "streamed" => cases.map(|bytes| streamed(b'h', &bytes)).chain(packet_bytes()).collect(),
        "compress" => compressed(),
        "tls_session" => steps_of_sessions(),
        "hpack" => header_blocks(),
        "http2" => sessions().into_iter().map(|bytes| [&SIZES[..], &bytes].concat()).collect(),
        "http2_calls" => calls(),
        "http2_session" => whole_sessions(),
        "upgrade" => cases.map(|bytes| [b"h", &SIZES[..], &bytes].concat()).chain(upgrades()).collect(),
        "websocket" => websockets(),
        _ => Vec::new(),
    }
}

/// Cases of conditional requests, ranges and content codings.
const STATIC: [(&str, &str); 3] = [
    ("conditions.txt", include_str!("../../../tests/cases/static/conditions.txt")),
    ("ranges.txt", include_str!("../../../tests/cases/static/ranges.txt")),
    ("codings.txt", include_str!("../../../tests/cases/static/codings.txt")),
];

/// Cases of sessions of HTTP/2.
const SESSIONS: [(&str, &str); 6] = [
    ("attacks.txt", include_str!("../../http2/tests/cases/attacks.txt")),
    ("frames.txt", include_str!("../../http2/tests/cases/frames.txt")),
    ("requests.txt", include_str!("../../http2/tests/cases/requests.txt")),
    ("responses.txt", include_str!("../../http2/tests/cases/responses.txt")),
    ("streams.txt", include_str!("../../http2/tests/cases/streams.txt")),
    ("windows.txt", include_str!("../../http2/tests/cases/windows.txt")),
];

/// The bytes of the clients of these cases, after the preface.
fn sessions() -> Vec<Vec<u8>> {
    let sent = |block: &Block| {
        let steps = block.get_lines("steps").unwrap_or_default();
        let sent = steps.iter().filter_map(|step| step.strip_prefix("> ")).map(session::client);
        [session::client("SETTINGS"), sent.collect::<Vec<_>>().concat()].concat()
    };
    let settled = blocks(SESSIONS, &["session"], usize::MAX);
    settled.iter().filter(|block| block.get_text("preface").is_none()).map(sent).collect()
}

/// The examples of RFC 7541 as inputs of [`crate::hpack()`], and the header blocks of the sessions.
fn header_blocks() -> Vec<Vec<u8>> {
    let block = |block: &[u8]| [&(block.len() as u16).to_be_bytes()[..], block].concat();
    let examples = include_str!("../../http2/tests/cases/hpack.txt").split("\n\n").map(|example| {
        let blocks = example.lines().filter_map(|line| line.strip_prefix("block: "));
        blocks.flat_map(|digits| block(&session::hex(digits))).collect()
    });
    let of_sessions = sessions().into_iter().map(|bytes| {
        let frames = session::split(&bytes).0.into_iter().filter(|frame| frame.kind == session::HEADERS);
        frames.flat_map(|frame| block(&frame.payload)).collect()
    });
    examples.chain(of_sessions).collect()
}

/// Inputs of [`crate::http2_calls()`]: requests with content and responses in several orders, with small and large windows.
fn calls() -> Vec<Vec<u8>> {
    let step = |operation: u8, stream: u8, number: u16| [&[operation, stream][..], &number.to_be_bytes()].concat();
    let mut inputs = Vec::new();
    for window in [0, 1, 100, 20_000, 65_535] {
        for streams in [1_u8, 3, 8] {
            for priority in [0, 3, 8, 11] {
                let each = |operation: u8, number: u16| (0..streams).flat_map(move |at| step(operation, at, number));
                let begin: Vec<u8> = step(7, 0, window).into_iter().chain(each(0, priority)).collect();
                let content = [each(2, 9_000).collect::<Vec<_>>(), each(10, 5_000).collect(), each(3, 7).collect()];
                let response = [each(8, 0).collect::<Vec<_>>(), each(9, 60_000).collect(), step(12, 0, 0)];
                let update =
                    [each(6, 30_000).collect::<Vec<_>>(), step(5, 0, 50_000), step(12, 0, 0), each(13, 0).collect()];
                inputs.push(
                    [&begin[..], &content.concat(), &response.concat(), &update.concat(), &update.concat()].concat(),
                );
                inputs
                    .push([&begin[..], &response.concat(), &step(4, 0, 1), &step(11, 1, 1), &update.concat()].concat());
            }
        }
    }
    inputs
}

/// Inputs of [`crate::http2_session()`]: requests of all forms, whose frames are delivered whole and in parts, and responses that wait
/// for windows; then a shutdown, and steps that break the rules.
fn whole_sessions() -> Vec<Vec<u8>> {
    let step = |operation: u8, choice: u8, number: u16| [&[operation, choice][..], &number.to_be_bytes()].concat();
    let steps = |list: &[(u8, u8, u16)]| list.iter().flat_map(|(a, b, c)| step(*a, *b, *c)).collect::<Vec<u8>>();
    let all = (26, 0, 0);
    let mut inputs = Vec::new();
    for kind in [0, 1] {
        for form in 0..32 {
            let fields = form << 4 | 0x0804;
            let begin = steps(&[all, (0, 1, fields), (1, 2, fields), (1, 0, fields | 2), all]);
            let upload = steps(&[(2, 0x81, 300), (21, 0, 100), (3, 0, 8), (4, 1, form), all, (16, 0, 200)]);
            let windows = steps(&[(8, 0, 50 * form), (6, 0, 500), (7, 0, 9_000), (8, 1, 99), all]);
            let answer =
                steps(&[(12, 0, 2 * form), (20, 2, 2), (12, 4, 7 << 6), (13, 0, 30_000), (14, 4, 60_000), all]);
            let rest = steps(&[(18, 0, 4_000), all, (15, 0, 0), (5, 1, 0), (17, 4, form), (24, 0, 999), (10, 0, 1)]);
            let last = steps(&[(19, 0, 0), (0, 0, 0), (21, 0, 12), all, (19, 1, 0), (9, form as u8, form), all]);
            let parts = [begin, upload, windows, answer, rest, last];
            inputs.push([&[kind][..], &parts.concat()].concat());
            let broken = [(27, form as u8, 4), (29, 1 << (form % 8), 5), (30, 1, 3), (31, 1, 9_000), (28, 0, 9)];
            let broken = steps(&broken[usize::from(form) % 5..][..1]);
            inputs
                .push([&[kind], &parts[..3].concat()[..], &broken, b"\x82\x86\x84\x41", &parts[3..].concat()].concat());
        }
    }
    // Uploads that fill windows while others are awaited.
    let begin = steps(&[(1, 0, 0), (1, 0, 0), (1, 0, 0), (35, 0, 0), (34, 0, 0), (32, 2, 0), (32, 4, 0)]);
    let fill = steps(&[(2, 1, 16_000), (2, 2, 16_000), (35, 0, 0)]).repeat(5);
    let take = steps(&[(16, 2, 60_000), (33, 2, 0), (34, 2, 0), (16, 4, 9_000), (33, 4, 0), (35, 0, 0)]);
    for kind in 0..8 {
        let parts = [20, 24, 28].map(|bytes| [&[kind][..], &begin[..bytes], &fill, &take, &fill].concat());
        inputs.extend(parts);
    }
    inputs
}

/// Received bytes as an input of [`crate::streamed()`].
fn streamed(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind], &SIZES[..], &[3, 64, 1, 200], bytes].concat()
}

/// The bytes of gateway cases as inputs of [`crate::streamed()`].
fn packet_bytes() -> impl Iterator<Item = Vec<u8>> {
    packet::cases().into_iter().map(|case| streamed(kind(case.protocol), &case.bytes))
}

/// Bodies in each coding, as inputs of [`crate::compress()`].
fn compressed() -> Vec<Vec<u8>> {
    let text = b"\x01\x00\x0d{\"id\": 12345}\x00\xff\x05ab\r\n\0\x01\x03\x20\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x00\x00\x00";
    let starts =
        (0..3).flat_map(|coding| (0..3).flat_map(move |kind| [0, 4, 8, 11].map(|level| [coding, level, kind, 2])));
    starts.map(|start| [&start[..], text].concat()).collect()
}

/// Sessions of TLS as inputs of [`crate::tls_session()`]: whole, cut at every byte, in single bytes, with a change at every byte,
/// and without a handshake.
fn steps_of_sessions() -> Vec<Vec<u8>> {
    const ALL: usize = 0xffff;
    const RECORDS: [&[u8]; 6] = [
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
        b"\x16\x03\x01\xff\xff",
        b"\x15\x03\x03\x00\x02\x02\x00",
        b"\x17\x03\x03\x00\x00",
        b"\x14\x03\x03\x00\x01\x01",
        b"GET / HTTP/1.1\r\n",
    ];
    let step = |what: u8, number: usize| [&[what][..], &(number as u16).to_le_bytes()].concat();
    let settled = step(11, 0);
    let mut inputs = Vec::new();
    for kind in 0..4 {
        let input = |steps: &[Vec<u8>]| [&[kind][..], &steps.concat()].concat();
        let exchange = [step(0, 30_000), step(1, 39_000), step(10, 0), step(0, 100), step(1, 1)].concat();
        inputs.push(input(&[settled.clone(), exchange.clone(), settled.clone(), step(8, 0), step(9, 0)]));
        inputs.push(input(&[step(0, 50), step(8, 0)]));
        inputs.push(input(&[settled.clone(), exchange.clone(), step(6, 40), settled.clone(), exchange.clone()]));
        // The flights of the client: ClientHello; the end of its handshake with a request.
        let begins = [vec![], vec![step(0, 60), step(2, ALL), step(3, ALL)]];
        for begin in begins {
            for at in 1..400 {
                inputs.push(input(&[begin.concat(), step(2, at), settled.clone(), exchange.clone()]));
                if kind < 2 {
                    inputs.push(input(&[begin.concat(), step(4, at), settled.clone()]));
                }
            }
        }
        let single_bytes = step(2, 1).repeat(1_000);
        inputs.push(input(&[
            single_bytes.clone(),
            step(3, ALL),
            step(0, 60),
            single_bytes,
            settled.clone(),
            step(9, 0),
        ]));
        let hello = client_hello(usize::from(kind & 1));
        for made_up in RECORDS.into_iter().chain([&hello[..]]) {
            let made_up = [&step(5, made_up.len())[..], made_up].concat();
            inputs.push(input(&[step(6, ALL), made_up.clone()]));
            inputs.push(input(&[step(6, ALL), made_up.clone(), step(2, 1), settled.clone(), made_up]));
        }
    }
    inputs
}

/// Requests for another protocol, and what is sent in it, as inputs of [`crate::upgrade()`].
fn upgrades() -> impl Iterator<Item = Vec<u8>> {
    const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n";
    const ACCEPTED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
    const FRAMES: [&[u8]; 6] = [
        b"\x81\x00",
        b"\x82\x05hello",
        b"\x89\x82abcdhi",
        b"\x82\x7e\x00\x02no",
        b"\x82\x7f\0\0\0\0\0\0\0\x01a",
        b"\x88\x02\x03\xe8",
    ];
    let fields = ["Connection: upgrade", "Connection: keep-alive, Upgrade", "Connection: close, upgrade"];
    let others = ["websocket", "h2c", "h2c, websocket", "TLS/1.0", "a/b, c", "a b", "", "websocket\r\nUpgrade: x"];
    let behind: [&[u8]; 3] = [b"", b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n", b"\x81\x85abcdhello"];
    let heads = fields.into_iter().flat_map(move |field| {
        others.into_iter().flat_map(move |other| {
            let lines = format!("{field}\r\nUpgrade: {other}\r\n\r\n");
            behind.map(|bytes| [b"h", &SIZES[..], HEAD, lines.as_bytes(), bytes].concat())
        })
    });
    let sent =
        FRAMES.into_iter().flat_map(|first| FRAMES.map(|second| [b"w", &SIZES[..], ACCEPTED, first, second].concat()));
    heads.chain(sent)
}

/// Inputs of [`crate::websocket()`]: the cases of the Autobahn test suite that are not long, with and without an extension;
/// messages to compress; handshakes.
fn websockets() -> Vec<Vec<u8>> {
    const KEY: &str = "sec-websocket-version:13\nsec-websocket-key:dGhlIHNhbXBsZSBub25jZQ==\n";
    const FIELDS: [&str; 4] = [
        "",
        "sec-websocket-protocol:chat, other\n",
        "sec-websocket-extensions:permessage-deflate; client_max_window_bits\n",
        "sec-websocket-extensions:x-a, permessage-deflate; server_max_window_bits=10; server_no_context_takeover\n",
    ];
    const ANSWERS: [&str; 4] = ["", "x-a:b\n", "upgrade:x\n", "x:a\rb\nsec-websocket-protocol:other\n"];
    let cases = autobahn::cases().into_iter().filter_map(|case| {
        let frames: Vec<u8> = case.sent.iter().filter(|frame| frame.is_sent()).flat_map(|it| it.encoded()).collect();
        (frames.len() < 1 << 12).then_some(frames)
    });
    let frames = cases.flat_map(|frames| [b"p", b"c"].map(|kind| [&kind[..], &SIZES[..], &frames].concat()));
    let texts =
        [&b"m\x00\x80\x01a\xff\x03abc"[..], b"m\x01\x40\x02ab\x00\x05hello\x40\x02ab", b"m\x02\xff\xff\xff\xfe"];
    let handshakes = FIELDS.into_iter().flat_map(|asked| {
        ANSWERS.map(|answer| [KEY.as_bytes(), asked.as_bytes(), b"\xff", answer.as_bytes()].concat())
    });
    frames.chain(texts.map(<[u8]>::to_vec)).chain(handshakes.map(|fields| [b"h", &fields[..]].concat())).collect()
}

/// The byte that selects a protocol.
fn kind(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Scgi => b's',
        Protocol::Fastcgi => b'f',
        _ => b'u',
    }
}

/// A gateway case as inputs of [`crate::gateway()`]: its bytes and its variables.
fn packets(case: &packet::Case) -> Vec<Vec<u8>> {
    let kind = kind(case.protocol);
    let variables = case.variables.iter().flat_map(|(name, value)| [name, &b"="[..], value, b"\xff"].concat());
    let variables: Vec<u8> = variables.chain(*b"\xff").chain(case.content.iter().copied()).collect();
    let input = |kind: u8, bytes: &[u8]| [&[kind], &SIZES[..], bytes].concat();
    let mut inputs = vec![input(kind, &case.bytes)];
    if !case.variables.is_empty() {
        inputs.push(input(kind.to_ascii_uppercase(), &variables));
    }
    inputs
}

/// The fields of a response case as an input of [`crate::compressed_fields()`].
fn response_fields(case: &Case) -> Option<Vec<u8>> {
    let lines = case.answer.as_ref()?.fields.iter().map(|(name, value)| format!("{name}:{value}\n"));
    Some(lines.collect::<String>().into_bytes())
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
