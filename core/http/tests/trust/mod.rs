//! Reader of the cases of trusted proxies in `tests/cases/trust`, and a minimal server for them.
//!
//! Tests of other crates include it by `#[path = "…/http/tests/trust/mod.rs"] mod trust;`.

// Each test uses a part.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use poorhttp_http::{Client, Event, Limits, Origin, ReadBuffer, RequestParser, Scheme, Source, TrustedProxies};

use crate::case::{Block, blocks, encode_latin1};

const FILES: [(&str, &str); 2] = [
    ("forwarded.txt", include_str!("../../../../tests/cases/trust/forwarded.txt")),
    ("preamble.txt", include_str!("../../../../tests/cases/trust/preamble.txt")),
];

/// The variables to compare: those that a case does not name have their values without proxies.
pub(crate) const WATCHED: [&str; 9] = [
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "wsgi.url_scheme",
    "HTTPS",
    "HTTP_HOST",
    "SERVER_NAME",
    "SERVER_PORT",
    "SCRIPT_NAME",
    "PATH_INFO",
];

const HEADERS: &str =
    "forwarded x-forwarded-for x-forwarded-proto x-forwarded-host x-forwarded-port x-forwarded-prefix";

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// Words of `trusted_proxies` and `forwarded_headers`.
    pub(crate) networks: String,
    pub(crate) headers: String,
    pub(crate) proxied: bool,
    /// An address, or `unix`.
    pub(crate) peer: String,
    pub(crate) preamble: Vec<u8>,
    /// A hyphen means no Host field, and HTTP/1.0.
    pub(crate) host: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<String>,
    /// Status and reason.
    pub(crate) refusal: Option<String>,
    /// `None`: the variable is absent.
    pub(crate) environ: BTreeMap<String, Option<String>>,
}

impl Case {
    /// Changes the environ of a plain request to the expected one.
    pub(crate) fn expect(&self, environ: &mut BTreeMap<String, String>) {
        if self.environ.contains_key("REMOTE_ADDR") {
            environ.insert("REMOTE_PORT".into(), String::new());
        }
        if let Some(path) = self.target.strip_prefix('/').filter(|path| !path.is_empty()) {
            environ.insert("PATH_INFO".into(), format!("/{path}"));
        }
        if let Some((_, rest)) = self.target.split_once("://") {
            environ.insert("HTTP_HOST".into(), rest.trim_end_matches('/').into());
        }
        for (key, value) in &self.environ {
            match value {
                Some(value) => environ.insert(key.clone(), value.clone()),
                None => environ.remove(key),
            };
        }
    }

    /// The bytes of the request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.preamble.clone();
        let version = if self.host == "-" { "1.0" } else { "1.1" };
        bytes.extend_from_slice(format!("GET {} HTTP/{version}\r\n", self.target).as_bytes());
        if self.host != "-" {
            bytes.extend_from_slice(format!("Host: {}\r\n", self.host).as_bytes());
        }
        bytes.extend(self.field_lines());
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// The bytes of its fields.
    pub(crate) fn field_lines(&self) -> Vec<u8> {
        self.fields.iter().flat_map(|field| [&encode_latin1(field).unwrap()[..], b"\r\n"].concat()).collect()
    }
}

pub(crate) fn cases() -> Vec<Case> {
    // Miri is a thousand times slower: it reads some of the cases.
    let step = if cfg!(miri) { 20 } else { 1 };
    read().into_iter().step_by(step).collect()
}

fn read() -> Vec<Case> {
    let mut cases = Vec::new();
    let (mut networks, mut headers, mut proxied) = (String::new(), HEADERS.to_owned(), false);
    for block in blocks(FILES, &["trust", "forwarded"], usize::MAX) {
        if block.kind == "trust" {
            networks = block.words("trust").join(" ");
            headers = match block.get_text("hears").as_deref() {
                None => HEADERS.into(),
                Some("off") => String::new(),
                Some(words) => words.into(),
            };
            proxied = block.has("proxied");
            continue;
        }
        cases.push(case(&block, &networks, &headers, proxied));
    }
    cases
}

fn case(block: &Block, networks: &str, headers: &str, proxied: bool) -> Case {
    Case {
        name: block.text("name"),
        networks: networks.into(),
        headers: headers.into(),
        proxied,
        peer: block.get_text("from").unwrap_or("127.0.0.1".into()),
        preamble: [block.bytes("preamble"), block.bytes("hex")].concat(),
        host: block.get_text("host").unwrap_or("a".into()),
        target: block.get_text("target").unwrap_or("/".into()),
        fields: block.lines("field"),
        refusal: Some(block.text("expect")).filter(|expect| expect != "200"),
        environ: block.pairs("environ").into_iter().collect(),
    }
}

/// The result of a case.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Request(BTreeMap<String, String>),
    Refused(u16, &'static str),
}

/// Handles the request of a case, received `piece` bytes at a time.
pub(crate) fn handle(case: &Case, piece: usize) -> Outcome {
    let networks: Vec<&str> = case.networks.split_whitespace().collect();
    let headers: Vec<&str> = case.headers.split_whitespace().collect();
    let trust = (!networks.is_empty()).then(|| TrustedProxies::new(networks, headers).unwrap());
    let mut peer: Option<SocketAddr> = match case.peer.as_str() {
        "unix" => None,
        address => Some(SocketAddr::new(address.parse().unwrap(), 50_000)),
    };
    let mut trusted = trust.as_ref().is_some_and(|trust| trust.contains_peer(peer));
    let mut awaits_preamble = case.proxied && trusted;
    let mut secure = false;
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    let bytes = case.bytes();
    for part in bytes.chunks(piece) {
        let mut rest = part;
        while !rest.is_empty() {
            let room = buffer.room(0);
            let taken = room.len().min(rest.len());
            room[..taken].copy_from_slice(&rest[..taken]);
            buffer.received(taken);
            rest = &rest[taken..];
        }
        if awaits_preamble {
            let preamble = match buffer.take_proxy_header() {
                Ok(Some(preamble)) => preamble,
                Ok(None) => continue,
                Err(reject) => return Outcome::Refused(reject.status, reject.reason),
            };
            awaits_preamble = false;
            secure = preamble.secure;
            let trust = trust.as_ref().unwrap();
            (peer, trusted) = match preamble.source {
                Source::Proxy => (peer, trusted),
                Source::Unknown => (None, false),
                Source::Unix => (None, trust.contains_unix()),
                Source::Address(address) => (Some(address), trust.contains(address.ip())),
            };
        }
        match parser.poll(&mut buffer, &Limits::default()) {
            Event::NeedMore => {}
            Event::Head => {
                let origin =
                    trust.as_ref().map(|trust| trust.origin(&buffer.head, buffer.head_bytes(), trusted, secure));
                let origin = origin.transpose().map(Option::flatten);
                return match origin.and_then(|origin| buffer.head.check_scheme(origin.as_ref()).map(|()| origin)) {
                    Ok(origin) => Outcome::Request(environ(&buffer, peer, trust.as_ref(), trusted, origin.as_ref())),
                    Err(reject) => Outcome::Refused(reject.status, reject.reason),
                };
            }
            Event::Rejected(reject) => return Outcome::Refused(reject.status, reject.reason),
            event => panic!("{}: {event:?}", case.name),
        }
    }
    panic!("{}: it is not complete", case.name)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Makes the environ as `core/python` does.
fn environ(
    buffer: &ReadBuffer,
    peer: Option<SocketAddr>,
    trust: Option<&TrustedProxies>,
    trusted: bool,
    origin: Option<&Origin>,
) -> BTreeMap<String, String> {
    let (head, bytes) = (&buffer.head, buffer.head_bytes());
    let mut environ = BTreeMap::new();
    let mut set = |key: &str, value: String| _ = environ.insert(key.to_owned(), value);
    for (key, value) in [("wsgi.url_scheme", "http"), ("SERVER_NAME", "here"), ("SERVER_PORT", "8080")] {
        set(key, value.into());
    }
    for key in ["REMOTE_ADDR", "REMOTE_PORT", "SCRIPT_NAME"] {
        set(key, String::new());
    }
    let path = head.decoded_path(bytes);
    set("PATH_INFO", if path.is_empty() { "/".into() } else { latin1(&path) });
    let mut names = Vec::new();
    for field in &head.fields {
        let name = field.name.of(bytes);
        if name.contains(&b'_') || trust.is_some_and(|trust| trust.withholds(name, trusted)) {
            continue;
        }
        let key = format!("HTTP_{}", latin1(name).to_uppercase().replace('-', "_"));
        let value = latin1(field.value.of(bytes));
        names.push((key, value));
    }
    for (key, value) in &names {
        let all: Vec<&str> = names.iter().filter(|(other, _)| other == key).map(|(_, value)| value.as_str()).collect();
        set(key, if all.len() > 1 { all.join(", ") } else { value.clone() });
    }
    if !head.authority().is_empty() {
        set("HTTP_HOST", latin1(head.authority().of(bytes)));
    }
    let client = origin.map_or(Client::Peer, |origin| origin.client);
    let address = match client {
        Client::Peer => peer.map(|peer| (peer.ip(), Some(peer.port()))),
        Client::Unknown => None,
        Client::Address(address, port) => Some((address, port)),
    };
    if let Some((address, port)) = address {
        set("REMOTE_ADDR", address.to_canonical().to_string());
        set("REMOTE_PORT", port.filter(|&port| port != 0).map_or(String::new(), |port| port.to_string()));
    }
    let Some(origin) = origin else { return environ };
    if let Some(scheme) = origin.scheme {
        set("wsgi.url_scheme", scheme.name().into());
        if scheme == Scheme::Https {
            set("HTTPS", "on".into());
        }
    }
    if !origin.authority.is_empty() {
        set("HTTP_HOST", latin1(&origin.authority));
    }
    if let Some(host) = origin.host() {
        set("SERVER_NAME", latin1(host));
    }
    if let Some(port) = origin.port {
        set("SERVER_PORT", port.to_string());
    }
    set("SCRIPT_NAME", latin1(&origin.prefix));
    environ
}
