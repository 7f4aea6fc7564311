//! Requests that a web server passes on: variables (RFC 3875 section 4.1) instead of a head.
//!
//! How the variables are packed is each protocol's own; what they mean is the same in all. They stay where they were
//! received, and become a [`Head`]: the names of header fields are written there as they stand in HTTP, `HTTP_USER_AGENT`
//! as `USER-AGENT`.
//!
//! ```text
//! uwsgi.rs     uwsgi: 16-bit lengths before names and values
//! scgi.rs      SCGI: a netstring of names and values
//! fastcgi.rs   FastCGI: records, also of the body and of the response
//! ```

pub(crate) mod fastcgi;
mod scgi;
mod uwsgi;

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use crate::grammar::{content_length, hex, is_authority, is_field_content, is_token, survey_target};
use crate::limits::Limits;
use crate::parser::head::{Field, Framing, Head, Parsed, Span};
use crate::parser::target;
use crate::parser::version::Version;
use crate::protocol::{Dialect, Protocol};
use crate::reject::Reject;

/// What a web server says of a request, beside what stands in its head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateway {
    /// What is for the application as it is: SERVER_NAME, DOCUMENT_ROOT, REMOTE_USER, and whatever the server was told to
    /// add.
    pub variables: Vec<Field>,
    /// The client, unless it has no address.
    pub client: Option<SocketAddr>,
    /// The client speaks TLS with the web server.
    pub secure: bool,
    /// Of the request line: the version that the client speaks.
    pub version: Span,
    /// Where we are mounted. It stands among the variables too.
    pub(crate) script: Span,
    /// The path was said decoded.
    pub(crate) is_decoded: bool,
    /// Of the body, if it was said.
    pub(crate) length: Option<u64>,
}

/// A packet of variables that has arrived whole.
pub(crate) struct Packet {
    /// Where in it the variables stand.
    variables: Range<usize>,
    /// Octets with all its framing.
    length: usize,
}

/// One variable: its name, its value, and where the next one begins.
type Variable = (Range<usize>, Range<usize>, usize);

/// Finds the variable at a position of the octets of a packet; `None`: it is malformed.
type Unpack = fn(&[u8], usize) -> Option<Variable>;

const MALFORMED: Reject = Reject::bad("a malformed packet of variables");
const TOO_LARGE: Reject = Reject::with(431, "a packet of variables over the limit");
/// Variables that are no header fields. nginx sends 15.
const MOST_VARIABLES: usize = 256;

/// Parses the packet at the start of `bytes` into `head`, whose lists are reused. Once it is complete it is not to be
/// parsed again: names have been rewritten.
pub(crate) fn parse(protocol: Protocol, bytes: &mut [u8], limits: &Limits, head: &mut Head) -> Parsed {
    let (found, unpack): (_, Unpack) = match protocol {
        Protocol::Scgi => (scgi::find(bytes, limits), scgi::unpack),
        _ => (uwsgi::find(bytes, limits), uwsgi::unpack),
    };
    let outcome = match found {
        Ok(None) => return Parsed::Partial,
        Ok(Some(packet)) => Assembly::new(head).run(&mut bytes[..packet.length], &packet, unpack, limits),
        Err(reject) => Err(reject),
    };
    head.dialect = Dialect { protocol, request: 0 };
    outcome.err().map_or(Parsed::Complete, Parsed::Rejected)
}

/// The same of the variables that a FastCGI request has opened with.
pub(crate) fn parse_opened(
    opening: &fastcgi::Opening,
    packet: &Packet,
    bytes: &mut [u8],
    limits: &Limits,
    head: &mut Head,
) -> Parsed {
    let outcome = Assembly::new(head).run(&mut bytes[..packet.length], packet, fastcgi::unpack, limits);
    head.dialect = Dialect { protocol: Protocol::Fastcgi, request: opening.request };
    head.keep_alive = opening.persists;
    // A server that says nothing of the length may still send a body.
    head.framing = Framing::Records(head.gateway.as_ref().and_then(|gateway| gateway.length));
    outcome.err().map_or(Parsed::Complete, Parsed::Rejected)
}

/// A head that is made of variables.
struct Assembly<'a> {
    head: &'a mut Head,
    gateway: Box<Gateway>,
    uri: Option<Span>,
    path: Option<Span>,
    script: Option<Field>,
    address: Span,
    port: Span,
    has_host: bool,
}

impl<'a> Assembly<'a> {
    fn new(head: &'a mut Head) -> Self {
        let (mut fields, mut gateway) = (std::mem::take(&mut head.fields), head.gateway.take().unwrap_or_default());
        fields.clear();
        let mut variables = std::mem::take(&mut gateway.variables);
        variables.clear();
        *gateway = Gateway { variables, ..Gateway::default() };
        *head = Head { fields, version: Version::Http11, ..Head::default() };
        Assembly {
            head,
            gateway,
            uri: None,
            path: None,
            script: None,
            address: Span::default(),
            port: Span::default(),
            has_host: false,
        }
    }

    fn run(mut self, bytes: &mut [u8], packet: &Packet, unpack: Unpack, limits: &Limits) -> Result<(), Reject> {
        let mut at = packet.variables.start;
        let end = packet.variables.end;
        while at < end {
            let (name, value, next) = unpack(&bytes[..end], at).ok_or(MALFORMED)?;
            self.take(bytes, name, value, limits)?;
            at = next;
        }
        self.head.length = packet.length;
        self.finish(bytes, limits)
    }

    /// Takes one variable.
    #[inline]
    fn take(
        &mut self,
        bytes: &mut [u8],
        name: Range<usize>,
        value: Range<usize>,
        limits: &Limits,
    ) -> Result<(), Reject> {
        let span = |range: &Range<usize>| Span::new(range.start, range.len());
        let said = &bytes[value.clone()];
        if bytes[name.clone()].starts_with(b"HTTP_") {
            return self.take_field(bytes, name.start + "HTTP_".len()..name.end, value, limits);
        }
        let field = Field { name: span(&name), value: span(&value) };
        match &bytes[name.clone()] {
            // Decoded, so that it may hold octets that no field may.
            b"PATH_INFO" => self.path = Some(field.value),
            _ if !said.iter().all(|&byte| is_field_content(byte)) => {
                return Err(Reject::bad("a control character in a variable"));
            }
            b"REQUEST_METHOD" => self.head.method = field.value,
            b"REQUEST_URI" => self.uri = Some(field.value),
            b"QUERY_STRING" => self.head.parts.query = field.value,
            b"CONTENT_TYPE" if !said.is_empty() => return self.take_field(bytes, name, value, limits),
            b"CONTENT_LENGTH" if !said.is_empty() => {
                let length = content_length(said).ok_or(Reject::bad("a malformed CONTENT_LENGTH"))?;
                if self.gateway.length.replace(length).is_some() {
                    return Err(Reject::bad("more than one CONTENT_LENGTH"));
                }
                return self.take_field(bytes, name, value, limits);
            }
            b"CONTENT_TYPE" | b"CONTENT_LENGTH" => {}
            b"REMOTE_ADDR" => self.address = field.value,
            b"REMOTE_PORT" => self.port = field.value,
            b"HTTPS" => self.gateway.secure = matches!(said, b"on" | b"1" | b"ON" | b"On"),
            b"SCRIPT_NAME" => self.script = Some(field),
            // These are ours to say; and what would control uWSGI is nobody's: it loads files and runs code.
            b"SERVER_SOFTWARE" | b"GATEWAY_INTERFACE" | b"RAW_URI" | b"SCGI" => {}
            // nginx has no name for a server that was given none; PEP 3333 wants one, and a listener has one.
            b"SERVER_NAME" | b"SERVER_PORT" if said.is_empty() => {}
            name if name.starts_with(b"UWSGI_") => {}
            other => {
                if other.is_empty() || !other.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    return Err(Reject::bad("a malformed name of a variable"));
                }
                match other {
                    b"SERVER_PROTOCOL" => self.gateway.version = field.value,
                    b"REQUEST_SCHEME" if said == b"https" => self.gateway.secure = true,
                    _ => {}
                }
                self.variable(field)?;
            }
        }
        Ok(())
    }

    fn variable(&mut self, field: Field) -> Result<(), Reject> {
        if self.gateway.variables.len() >= MOST_VARIABLES {
            return Err(TOO_LARGE);
        }
        self.gateway.variables.push(field);
        Ok(())
    }

    /// Takes a header field, and writes its name as it stands in HTTP.
    fn take_field(
        &mut self,
        bytes: &mut [u8],
        name: Range<usize>,
        value: Range<usize>,
        limits: &Limits,
    ) -> Result<(), Reject> {
        if self.head.fields.len() >= limits.fields {
            return Err(Reject::with(431, "too many header fields"));
        }
        if name.len() + value.len() > limits.field_line {
            return Err(Reject::with(431, "a header field over the limit"));
        }
        for byte in &mut bytes[name.clone()] {
            *byte = if *byte == b'_' { b'-' } else { byte.to_ascii_uppercase() };
        }
        let (written, said) = (&bytes[name.clone()], &bytes[value.clone()]);
        if !is_token(written) {
            return Err(Reject::bad("a malformed header field name"));
        }
        if !said.iter().all(|&byte| is_field_content(byte)) {
            return Err(Reject::bad("a control character in a header field value"));
        }
        match written {
            // Said as variables of their own: nginx sends both.
            b"CONTENT-TYPE" | b"CONTENT-LENGTH" if bytes[..name.start].ends_with(b"HTTP_") => return Ok(()),
            b"HOST" if said.is_empty() => return Ok(()),
            b"HOST" => {
                if std::mem::replace(&mut self.has_host, true) {
                    return Err(Reject::bad("more than one Host"));
                }
                if !is_authority(said) {
                    return Err(Reject::bad("a malformed Host"));
                }
            }
            _ => {}
        }
        let span = |range: Range<usize>| Span::new(range.start, range.len());
        self.head.fields.push(Field { name: span(name), value: span(value) });
        Ok(())
    }

    /// Sees to it that everything is said, once.
    fn finish(mut self, bytes: &[u8], limits: &Limits) -> Result<(), Reject> {
        match self.head.method.of(bytes) {
            method if !is_token(method) => return Err(Reject::bad("a malformed REQUEST_METHOD")),
            method if method.len() > Limits::MOST_METHOD => return Err(Reject::bad("a method over the limit")),
            b"CONNECT" => return Err(Reject::with(501, "CONNECT: this server is no tunnel")),
            b"TRACE" => return Err(Reject::with(501, "TRACE is refused")),
            _ => {}
        }
        self.place(bytes, limits)?;
        self.gateway.client = client(self.address.of(bytes), self.port.of(bytes))?;
        let length = self.gateway.length.unwrap_or(0);
        if length > limits.body {
            return Err(Reject::with(413, "a body over the limit"));
        }
        self.head.framing = if length == 0 { Framing::Absent } else { Framing::Length(length) };
        self.head.gateway = Some(self.gateway);
        Ok(())
    }

    /// Target, path and SCRIPT_NAME.
    fn place(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), Reject> {
        const MALFORMED: Reject = Reject::bad("a malformed REQUEST_URI");
        let query = self.head.parts.query;
        if let Some(uri) = self.uri.filter(|uri| !uri.is_empty()) {
            let said = uri.of(bytes);
            if said.len() > limits.request_line {
                return Err(Reject::with(414, "a request line over the limit"));
            }
            self.head.target = uri;
            let method = self.head.method.of(bytes);
            self.head.parts = match self.path {
                // What it is decoded to is said, by whom we trust.
                Some(_) if survey_target(said).is_none() => return Err(MALFORMED),
                Some(_) => target::Target::default(),
                None => target::parse(method, said, uri.start())?,
            };
        }
        // A server that rewrites a request says the query that it means; the target is still the client's.
        if !query.is_empty() || self.path.is_some() {
            self.head.parts.query = query;
        }
        match self.path {
            Some(path) => {
                check_decoded(self.head.method.of(bytes), path.of(bytes))?;
                self.head.parts.path = path;
                self.gateway.is_decoded = true;
                if self.head.target.is_empty() {
                    self.head.target = path;
                }
            }
            None if self.head.target.is_empty() => return Err(Reject::bad("neither PATH_INFO nor REQUEST_URI")),
            None => {}
        }
        self.place_script(bytes)
    }

    fn place_script(&mut self, bytes: &[u8]) -> Result<(), Reject> {
        let Some(mut script) = self.script.filter(|script| !script.value.is_empty()) else { return Ok(()) };
        let (said, path) = (script.value.of(bytes), self.head.parts.path);
        if !said.starts_with(b"/") {
            return Err(Reject::bad("a malformed SCRIPT_NAME"));
        }
        let start = script.value.start();
        match (self.path, said) {
            // To PEP 3333 the slash belongs to the path.
            (Some(_), [name @ .., b'/']) => {
                if path.is_empty() {
                    self.head.parts.path = Span::new(start + name.len(), 1);
                }
                script.value = Span::new(start, name.len());
            }
            (Some(_), _) => {}
            (None, [.., b'/']) => return self.place_file(script.value, bytes),
            (None, _) => match encoded_length(path.of(bytes), said) {
                // The application is mounted there.
                Some(length) => self.head.parts.path = Span::new(path.start() + length, path.length() - length),
                None => return self.place_file(script.value, bytes),
            },
        }
        self.gateway.script = script.value;
        if script.value.is_empty() { Ok(()) } else { self.variable(script) }
    }

    /// Servers that know only files say the whole path as SCRIPT_NAME, as they have understood it.
    fn place_file(&mut self, script: Span, bytes: &[u8]) -> Result<(), Reject> {
        check_decoded(self.head.method.of(bytes), script.of(bytes))?;
        self.head.parts.path = script;
        self.gateway.is_decoded = true;
        Ok(())
    }
}

/// What is refused in a path that is percent-encoded as well.
fn check_decoded(method: &[u8], path: &[u8]) -> Result<(), Reject> {
    if !matches!(path, [] | [b'/', ..]) && (method, path) != (b"OPTIONS", b"*") {
        return Err(Reject::bad("a malformed PATH_INFO"));
    }
    match path.iter().find(|byte| matches!(byte, 0 | b'\r' | b'\n' | b'\\')) {
        Some(0) => Err(Reject::bad("a NUL in the path")),
        Some(b'\\') => Err(Reject::bad("a backslash in the path")),
        Some(_) => Err(Reject::bad("a line end in the path")),
        None => Ok(()),
    }
}

/// How many octets of a path, whose encoding has been checked, decode to this, if a slash is behind them.
fn encoded_length(path: &[u8], decoded: &[u8]) -> Option<usize> {
    let mut rest = path;
    for expected in decoded {
        let octet;
        (octet, rest) = match rest {
            [b'%', high, low, rest @ ..] => (hex(*high)? << 4 | hex(*low)?, rest),
            [plain, rest @ ..] => (*plain, rest),
            [] => return None,
        };
        if octet != *expected {
            return None;
        }
    }
    rest.starts_with(b"/").then(|| path.len() - rest.len())
}

/// The client that REMOTE_ADDR and REMOTE_PORT name.
fn client(address: &[u8], port: &[u8]) -> Result<Option<SocketAddr>, Reject> {
    // nginx says `unix:` of a client that came by such a socket.
    if matches!(address, b"" | b"unix:" | b"unix") {
        return Ok(None);
    }
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let address = text(address).and_then(|address| address.parse::<IpAddr>().ok());
    let port = if port.is_empty() { Some(0) } else { content_length(port).and_then(|port| u16::try_from(port).ok()) };
    match (address, port) {
        (Some(address), Some(port)) => Ok(Some(SocketAddr::new(address, port))),
        (None, _) => Err(Reject::bad("a malformed REMOTE_ADDR")),
        (_, None) => Err(Reject::bad("a malformed REMOTE_PORT")),
    }
}
