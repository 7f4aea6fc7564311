//! Parser of `Forwarded` (RFC 7239) and the `X-Forwarded-` fields; has the enum of these header fields.
//!
//! Every proxy appends to the right of a list, so it is read from the right: the last element is from the peer, and as
//! long as an element is from a trusted proxy, it names the sender of the element to its left. Elements further left
//! can be forged by anybody and are ignored.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use crate::grammar::{
    has_whole_escapes, is_authority, is_tchar, percent_decoded, port, split_authority, trim, trim_start,
};
use crate::origin::{Client, Origin, Scheme};
use crate::parser::types::Head;
use crate::proxy::trusted::TrustedProxies;
use crate::reject::Reject;

/// The header fields of proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Forwarded,
    For,
    Proto,
    Host,
    Port,
    Prefix,
}

impl Header {
    const COUNT: usize = 6;
    /// The bits of all headers.
    pub(crate) const ALL: u8 = (1 << Self::COUNT) - 1;

    /// The header with this name. Its first letter and its length rule out almost all other names.
    #[inline]
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        if !matches!(name.first(), Some(b'F' | b'f' | b'X' | b'x')) {
            return None;
        }
        let (header, known): (_, &[u8]) = match (name.len(), name.last()) {
            (9, _) => (Header::Forwarded, b"forwarded"),
            (15, _) => (Header::For, b"x-forwarded-for"),
            (16, Some(b't' | b'T')) if name[13] | 0x20 == b'o' && name[14] | 0x20 == b's' => {
                (Header::Host, b"x-forwarded-host")
            }
            (16, _) => (Header::Port, b"x-forwarded-port"),
            (17, _) => (Header::Proto, b"x-forwarded-proto"),
            (18, _) => (Header::Prefix, b"x-forwarded-prefix"),
            _ => return None,
        };
        name.eq_ignore_ascii_case(known).then_some(header)
    }

    pub(crate) fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The fields of a head that are trusted.
struct Fields<'a> {
    head: &'a Head,
    bytes: &'a [u8],
    /// Positions of the first and the last field of each header.
    ranges: [Option<(usize, usize)>; Header::COUNT],
}

impl<'a> Fields<'a> {
    /// `None`: no field is present.
    #[inline]
    fn of(head: &'a Head, bytes: &'a [u8], trust: &TrustedProxies) -> Option<Self> {
        let mut ranges = [None; Header::COUNT];
        let mut any = false;
        for (at, field) in head.fields.iter().enumerate() {
            let Some(header) = Header::of(field.name.of(bytes)) else { continue };
            if trust.trusts_header(header) {
                ranges[header as usize].get_or_insert((at, at)).1 = at;
                any = true;
            }
        }
        any.then_some(Fields { head, bytes, ranges })
    }

    /// The values of a field, in order.
    fn values(&self, header: Header) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a> {
        let fields = match self.ranges[header as usize] {
            Some((first, last)) => self.head.fields.get(first..=last).unwrap_or_default(),
            None => &[],
        };
        let bytes = self.bytes;
        let is_alone = fields.len() == 1;
        let named = move |name: &[u8]| is_alone || Header::of(name) == Some(header);
        fields.iter().filter(move |field| named(field.name.of(bytes))).map(move |field| field.value.of(bytes))
    }

    /// The elements of a list in reverse order, except empty ones (RFC 9110 section 5.6.1.2).
    fn backwards(&self, header: Header) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let elements = |value: &'a [u8]| value.rsplit(|&byte| byte == b',');
        self.values(header).rev().flat_map(elements).map(trim).filter(|element| !element.is_empty())
    }

    /// The element of the outermost of `hops` proxies in a list, also if the inner ones pass it on unchanged.
    fn outermost(&self, header: Header, hops: usize) -> Option<&'a [u8]> {
        self.backwards(header).take(hops).last()
    }
}

/// The client named by a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Unknown,
    Unix,
    Address(IpAddr, Option<u16>),
}

impl Node {
    fn is_proxy(self, trust: &TrustedProxies) -> bool {
        match self {
            Node::Unknown => false,
            Node::Unix => trust.contains_unix(),
            Node::Address(address, _) => trust.contains(address),
        }
    }

    fn client(self) -> Client {
        match self {
            Node::Unknown | Node::Unix => Client::Unknown,
            Node::Address(address, port) => Client::Address(address.to_canonical(), port),
        }
    }
}

/// Content of one kind of field.
#[derive(Default)]
struct Reported<'a> {
    client: Option<Client>,
    scheme: Option<Scheme>,
    host: Option<Cow<'a, [u8]>>,
}

impl TrustedProxies {
    /// The origin from a head in `bytes`. Its fields are used if its sender is `trusted`; `secure`: a PROXY protocol
    /// header reports TLS. `None`: no proxy reports an origin.
    #[inline]
    pub fn origin(&self, head: &Head, bytes: &[u8], trusted: bool, secure: bool) -> Result<Option<Origin>, Reject> {
        match if trusted { Fields::of(head, bytes, self) } else { None } {
            Some(fields) => fields.origin(self, secure).map(Some),
            None => Ok(secure.then(|| {
                let reported = Reported { scheme: Some(Scheme::Https), ..Reported::default() };
                reported.origin(head, bytes, None, Vec::new())
            })),
        }
    }
}

impl<'a> Fields<'a> {
    fn origin(&self, trust: &TrustedProxies, secure: bool) -> Result<Origin, Reject> {
        let (mut reported, hops) = self.read_x_forwarded(trust)?;
        if self.has(Header::Forwarded) {
            reported = reported.merge(self.read_forwarded(trust)?)?;
        }
        reported.scheme = reported.scheme.or(secure.then_some(Scheme::Https));
        let port = match self.outermost(Header::Port, hops) {
            Some(value) => Some(given_port(value).ok_or(Reject::bad("a malformed X-Forwarded-Port"))?),
            None => None,
        };
        Ok(reported.origin(self.head, self.bytes, port, self.prefix(hops)?))
    }

    /// Reads the X-Forwarded fields. Returns their content and the number of trusted proxies in them.
    fn read_x_forwarded(&self, trust: &TrustedProxies) -> Result<(Reported<'a>, usize), Reject> {
        let mut reported = Reported::default();
        let mut hops = 0;
        for element in self.backwards(Header::For) {
            let node = address_of(element).ok_or(Reject::bad("a malformed X-Forwarded-For"))?;
            reported.client = Some(node.client());
            hops += 1;
            if !node.is_proxy(trust) {
                break;
            }
        }
        let hops = hops.max(1);
        if let Some(value) = self.outermost(Header::Proto, hops) {
            reported.scheme = Some(scheme(value).ok_or(Reject::bad("a malformed X-Forwarded-Proto"))?);
        }
        if let Some(value) = self.outermost(Header::Host, hops) {
            let host = Some(value).filter(|value| is_authority(value));
            reported.host = Some(host.ok_or(Reject::bad("a malformed X-Forwarded-Host"))?.into());
        }
        Ok((reported, hops))
    }

    /// Reads Forwarded.
    #[cold]
    fn read_forwarded(&self, trust: &TrustedProxies) -> Result<Reported<'a>, Reject> {
        let mut elements = Vec::new();
        for value in self.values(Header::Forwarded) {
            read_elements(value, &mut elements).ok_or(MALFORMED)?;
        }
        let mut reported = Reported::default();
        for element in elements.iter().rev() {
            // The value of the outermost proxy that sends one wins.
            if let Some(value) = &element.proto {
                reported.scheme = Some(scheme(value).ok_or(MALFORMED)?);
            }
            if let Some(value) = &element.host {
                reported.host = Some(value.clone()).filter(|value| is_authority(value));
                reported.host.as_ref().ok_or(MALFORMED)?;
            }
            // A proxy without `for` does not vouch for the elements to its left.
            let Some(value) = &element.client else { break };
            let node = node_of(value).ok_or(MALFORMED)?;
            reported.client = Some(node.client());
            if !node.is_proxy(trust) {
                break;
            }
        }
        Ok(reported)
    }

    /// The stripped prefixes of the proxies, joined.
    #[inline]
    fn prefix(&self, hops: usize) -> Result<Vec<u8>, Reject> {
        if !self.has(Header::Prefix) {
            return Ok(Vec::new());
        }
        let mut prefix = Vec::new();
        let values: Vec<_> = self.backwards(Header::Prefix).take(hops).collect();
        for value in values.iter().rev() {
            append_prefix(value, &mut prefix).ok_or(Reject::bad("a malformed X-Forwarded-Prefix"))?;
        }
        Ok(prefix)
    }

    fn has(&self, header: Header) -> bool {
        self.ranges[header as usize].is_some()
    }
}

impl<'a> Reported<'a> {
    /// Merges what `Forwarded` and the `X-Forwarded-` fields report; refuses a contradiction. A proxy that sets only one kind
    /// and passes on the other lets clients forge the other kind.
    fn merge(self, other: Reported<'a>) -> Result<Self, Reject> {
        let client = match (self.client, other.client) {
            (Some(Client::Address(one, port)), Some(Client::Address(same, another))) if one == same => {
                Some(Client::Address(one, another.or(port)))
            }
            (Some(one), Some(another)) if one != another => {
                return Err(Reject::bad("Forwarded and X-Forwarded-For disagree"));
            }
            (one, another) => another.or(one),
        };
        if matches!((self.scheme, other.scheme), (Some(one), Some(another)) if one != another) {
            return Err(Reject::bad("Forwarded and X-Forwarded-Proto disagree"));
        }
        if matches!((&self.host, &other.host), (Some(one), Some(another)) if !one.eq_ignore_ascii_case(another)) {
            return Err(Reject::bad("Forwarded and X-Forwarded-Host disagree"));
        }
        Ok(Reported { client, scheme: other.scheme.or(self.scheme), host: other.host.or(self.host) })
    }

    #[inline]
    fn origin(self, head: &Head, bytes: &[u8], port: Option<u16>, prefix: Vec<u8>) -> Origin {
        let mut origin = Origin {
            client: self.client.unwrap_or_default(),
            scheme: self.scheme,
            is_renamed: self.host.is_some(),
            prefix,
            ..Origin::default()
        };
        if self.host.is_some() || self.scheme.is_some() || port.is_some() {
            let default = self.scheme.unwrap_or(Scheme::Http).default_port();
            let asked = self.host.as_deref().unwrap_or_else(|| head.requested_authority(bytes));
            let (host, asked_port) = split_authority(asked);
            if self.host.is_some() || (port.is_some() && !host.is_empty()) {
                origin.authority = if port.is_some() { host } else { asked }.to_vec();
            }
            if let Some(port) = port.filter(|&port| port != default && !origin.authority.is_empty()) {
                origin.authority.extend_from_slice(format!(":{port}").as_bytes());
            }
            origin.port =
                port.or(asked_port).or(Some(default).filter(|_| self.host.is_some() || self.scheme.is_some()));
        }
        origin
    }
}

const MALFORMED: Reject = Reject::bad("a malformed Forwarded");

/// Most elements of Forwarded. No request passes so many proxies; the limit bounds memory.
const MAX_ELEMENTS: usize = 64;
/// Most parameters of an element. Four are registered.
const MAX_PARAMETERS: usize = 16;

/// The used parameters of one element of Forwarded, without quotes.
#[derive(Default)]
struct Element<'a> {
    client: Option<Cow<'a, [u8]>>,
    proto: Option<Cow<'a, [u8]>>,
    host: Option<Cow<'a, [u8]>>,
}

/// Parses `1#forwarded-element` (RFC 7239 section 4), with white space around semicolons as in its example. Commas may
/// be quoted, so it is read from the left to its end.
fn read_elements<'a>(value: &'a [u8], elements: &mut Vec<Element<'a>>) -> Option<()> {
    let mut rest = trim(value);
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix(b",") {
            // An empty element of the list.
            rest = trim_start(behind);
            continue;
        }
        let mut element = Element::default();
        let mut names: [&[u8]; MAX_PARAMETERS] = [b""; MAX_PARAMETERS];
        let mut count = 0;
        loop {
            if !matches!(rest, [] | [b',' | b';', ..]) {
                let length = rest.iter().take_while(|&&byte| is_tchar(byte)).count();
                let (name, behind) = rest.split_at(length);
                let (value, behind) = read_value(behind.strip_prefix(b"=")?)?;
                if name.is_empty() || names[..count].iter().any(|other| other.eq_ignore_ascii_case(name)) {
                    return None;
                }
                *names.get_mut(count)? = name;
                count += 1;
                match name.len() {
                    3 if name.eq_ignore_ascii_case(b"for") => element.client = Some(value),
                    4 if name.eq_ignore_ascii_case(b"host") => element.host = Some(value),
                    5 if name.eq_ignore_ascii_case(b"proto") => element.proto = Some(value),
                    _ => {}
                }
                rest = trim_start(behind);
            }
            rest = match rest {
                [b';', behind @ ..] => trim_start(behind),
                [b',', behind @ ..] => {
                    rest = trim_start(behind);
                    break;
                }
                [] => break,
                _ => return None,
            };
        }
        if elements.len() == MAX_ELEMENTS {
            return None;
        }
        elements.push(element);
    }
    Some(())
}

/// Parses `token / quoted-string` (RFC 9110 section 5.6). Returns the value and the bytes after it.
fn read_value(bytes: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let Some(inside) = bytes.strip_prefix(b"\"") else {
        let length = bytes.iter().take_while(|&&byte| is_tchar(byte)).count();
        let (value, behind) = bytes.split_at(length);
        return (length > 0).then_some((value.into(), behind));
    };
    let length = memchr::memchr2(b'"', b'\\', inside)?;
    if inside[length] == b'"' {
        return Some((inside[..length].into(), &inside[length + 1..]));
    }
    let mut value = inside[..length].to_vec();
    let mut rest = &inside[length..];
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return Some((value.into(), behind)),
            [b'\\', byte, behind @ ..] | [byte, behind @ ..] => {
                value.push(*byte);
                behind
            }
            [] => return None,
        }
    }
}

/// `node` (RFC 7239 section 6): an address, IPv6 in brackets, `unknown`, or a name that begins with an underscore;
/// perhaps with a port, which may be such a name too.
fn node_of(bytes: &[u8]) -> Option<Node> {
    let (name, behind) = bytes.split_at(match bytes.first()? {
        b'[' => memchr::memchr(b']', bytes)? + 1,
        _ => memchr::memchr(b':', bytes).unwrap_or(bytes.len()),
    });
    let port = match behind {
        [] => None,
        [b':', name @ ..] if is_obfuscated(name) => None,
        [b':', digits @ ..] => Some(given_port(digits)?),
        _ => return None,
    };
    match name {
        [b'[', inside @ .., b']'] => Some(Node::Address(v6(inside)?, port)),
        _ if name.eq_ignore_ascii_case(b"unknown") || is_obfuscated(name) => Some(Node::Unknown),
        _ => Some(Node::Address(v4(name)?, port)),
    }
}

/// `"_" 1*( ALPHA / DIGIT / "." / "_" / "-" )`
fn is_obfuscated(name: &[u8]) -> bool {
    let allowed = |&byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    matches!(name, [b'_', rest @ ..] if !rest.is_empty() && rest.iter().all(allowed))
}

/// An element of X-Forwarded-For, which has no grammar: an address, IPv6 with or without brackets, perhaps with a port,
/// `unknown`, or nginx's name for a client of a Unix socket.
#[inline]
fn address_of(bytes: &[u8]) -> Option<Node> {
    if let Some(address) = v4(bytes) {
        return Some(Node::Address(address, None));
    }
    match bytes {
        b"unix:" => Some(Node::Unix),
        [b'_', ..] => None,
        _ => v6(bytes).map(|address| Node::Address(address, None)).or_else(|| node_of(bytes)),
    }
}

#[inline]
fn v4(bytes: &[u8]) -> Option<IpAddr> {
    // IPv4 by hand: the parser of the standard library takes several times as long.
    let mut address = 0_u32;
    let mut numbers = 0;
    for number in bytes.split(|&byte| byte == b'.') {
        let value = match *number {
            [a @ b'0'..=b'9'] => u32::from(a - b'0'),
            [a @ b'1'..=b'9', b @ b'0'..=b'9'] => u32::from(a - b'0') * 10 + u32::from(b - b'0'),
            [a @ b'1'..=b'2', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                u32::from(a - b'0') * 100 + u32::from(b - b'0') * 10 + u32::from(c - b'0')
            }
            _ => return None,
        };
        numbers += 1;
        if value > 255 || numbers > 4 {
            return None;
        }
        address = address << 8 | value;
    }
    (numbers == 4).then(|| IpAddr::from(address.to_be_bytes()))
}

fn v6(bytes: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(bytes).ok()?.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// 1 to 65535, without leading zeros.
fn given_port(digits: &[u8]) -> Option<u16> {
    port(digits).filter(|&port| port > 0)
}

/// Parses a scheme. `ws` and `wss` of WebSocket proxies mean `http` and `https` (RFC 6455 section 3).
#[inline]
fn scheme(value: &[u8]) -> Option<Scheme> {
    let is = |name: &[u8]| value.eq_ignore_ascii_case(name);
    match value.len() {
        5 if is(b"https") => Some(Scheme::Https),
        4 if is(b"http") => Some(Scheme::Http),
        3 if is(b"wss") => Some(Scheme::Https),
        2 if is(b"ws") => Some(Scheme::Http),
        _ => None,
    }
}

/// Appends a prefix: an absolute path that no other program can read as another path or another host.
fn append_prefix(value: &[u8], prefix: &mut Vec<u8>) -> Option<()> {
    if !value.iter().all(u8::is_ascii_graphic) || !has_whole_escapes(value) {
        return None;
    }
    let decoded = percent_decoded(value);
    let path = decoded.strip_suffix(b"/").unwrap_or(&decoded);
    let is_segment = |segment: &[u8]| !matches!(segment, b"" | b"." | b"..");
    let is_path = match path {
        [] => *decoded == *b"/",
        [b'/', segments @ ..] => segments.split(|&byte| byte == b'/').all(is_segment),
        _ => false,
    };
    if !is_path || path.iter().any(|byte| byte.is_ascii_control() || matches!(byte, b'?' | b'#' | b'\\')) {
        return None;
    }
    prefix.extend_from_slice(path);
    Some(())
}
