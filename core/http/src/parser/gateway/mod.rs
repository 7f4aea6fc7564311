//! Requests that a web server passes on: variables (RFC 3875 section 4.1) instead of a head.
//!
//! Each protocol packs the variables in its own way; their meaning is the same in all. They stay in the receive buffer
//! and become a [`Head`]: names of header fields are rewritten there, `HTTP_USER_AGENT` to `USER-AGENT`.
//!
//! ```text
//! packet.rs    a packet of variables, and how one is unpacked
//! uwsgi.rs     uwsgi: 16-bit lengths before names and values
//! scgi.rs      SCGI: a netstring of names and values
//! fastcgi.rs   FastCGI: records, also of the body and of the response
//! ```

pub(crate) mod fastcgi;
mod packet;
mod scgi;
mod uwsgi;

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use crate::grammar::{
    self, content_length, hex, is_authority, is_field_value, is_token, is_variable_name, scan_target,
};
use crate::limits::Limits;
use crate::parser::gateway::packet::{MALFORMED, Packet, Unpack};
use crate::parser::target;
use crate::parser::types::{Field, Framing, Gateway, Head, Parsed, Span, Target};
use crate::parser::version::Version;
use crate::protocol::{Dialect, Protocol};
use crate::reject::Reject;

/// Limit of variables that are not header fields. nginx sends 15.
const MAX_VARIABLES: usize = 256;
const TOO_MANY_VARIABLES: Reject = Reject::with(431, "a packet of variables over the limit of their number");

/// Parses the packet at the start of `bytes` into `head`, whose lists are reused. A complete packet must not be parsed
/// again, because its names are rewritten.
pub(crate) fn parse(protocol: Protocol, bytes: &mut [u8], limits: &Limits, head: &mut Head) -> Parsed {
    let (found, unpack): (_, Unpack) = match protocol {
        Protocol::Scgi => (scgi::find(bytes, limits), scgi::unpack),
        _ => (uwsgi::find(bytes, limits), uwsgi::unpack),
    };
    let outcome = match found {
        Ok(None) => return Parsed::Partial,
        Ok(Some(packet)) => Assembly::new(head, limits).run(&mut bytes[..packet.length], &packet, unpack),
        Err(reject) => Err(reject),
    };
    head.dialect = Dialect { protocol, request: 0 };
    outcome.into()
}

/// Parses the variables of a FastCGI request.
pub(crate) fn parse_opened(
    opening: &fastcgi::Opening,
    packet: &Packet,
    bytes: &mut [u8],
    limits: &Limits,
    head: &mut Head,
) -> Parsed {
    let outcome = Assembly::new(head, limits).run(&mut bytes[..packet.length], packet, fastcgi::unpack);
    head.dialect = Dialect { protocol: Protocol::Fastcgi, request: opening.request };
    (head.keep_alive, head.asks_upgrade) = (opening.persists, false);
    // A request without CONTENT_LENGTH may still have a body.
    head.framing = Framing::Records(head.gateway.as_ref().and_then(|gateway| gateway.length));
    outcome.into()
}

/// A head under construction from variables.
struct Assembly<'a> {
    head: &'a mut Head,
    limits: &'a Limits,
    gateway: Box<Gateway>,
    uri: Option<Span>,
    path: Option<Span>,
    script: Option<Field>,
    address: Span,
    port: Span,
    has_host: bool,
}

impl<'a> Assembly<'a> {
    fn new(head: &'a mut Head, limits: &'a Limits) -> Self {
        let (mut fields, mut gateway) = (std::mem::take(&mut head.fields), head.gateway.take().unwrap_or_default());
        fields.clear();
        let mut variables = std::mem::take(&mut gateway.variables);
        variables.clear();
        *gateway = Gateway { variables, ..Gateway::default() };
        *head = Head { fields, version: Version::Http11, ..Head::default() };
        Assembly {
            head,
            limits,
            gateway,
            uri: None,
            path: None,
            script: None,
            address: Span::default(),
            port: Span::default(),
            has_host: false,
        }
    }

    fn run(mut self, bytes: &mut [u8], packet: &Packet, unpack: Unpack) -> Result<(), Reject> {
        let mut at = packet.variables.start;
        let end = packet.variables.end;
        while at < end {
            let (name, value, next) = unpack(&bytes[..end], at).ok_or(MALFORMED)?;
            self.take(bytes, name, value)?;
            at = next;
        }
        self.head.length = packet.length;
        self.finish(bytes)
    }

    /// Adds one variable.
    #[inline]
    fn take(&mut self, bytes: &mut [u8], name: Range<usize>, value: Range<usize>) -> Result<(), Reject> {
        let text = &bytes[value.clone()];
        if bytes[name.clone()].starts_with(b"HTTP_") {
            return self.take_field(bytes, name.start + "HTTP_".len()..name.end, value);
        }
        let field = field(&name, &value);
        match &bytes[name.clone()] {
            // PATH_INFO is decoded, so it may hold bytes that are invalid in a field.
            b"PATH_INFO" => self.path = Some(field.value),
            _ if !is_field_value(text) => {
                return Err(Reject::bad("a control character in a variable"));
            }
            b"REQUEST_METHOD" => self.head.method = field.value,
            b"REQUEST_URI" => self.uri = Some(field.value),
            b"QUERY_STRING" => self.head.parts.query = field.value,
            b"CONTENT_TYPE" if !text.is_empty() => return self.take_field(bytes, name, value),
            b"CONTENT_LENGTH" if !text.is_empty() => {
                let length = content_length(text).ok_or(Reject::bad("a malformed CONTENT_LENGTH"))?;
                if self.gateway.length.replace(length).is_some() {
                    return Err(Reject::bad("more than one CONTENT_LENGTH"));
                }
                return self.take_field(bytes, name, value);
            }
            b"CONTENT_TYPE" | b"CONTENT_LENGTH" => {}
            b"REMOTE_ADDR" => self.address = field.value,
            b"REMOTE_PORT" => self.port = field.value,
            b"HTTPS" => self.gateway.secure = matches!(text, b"on" | b"1" | b"ON" | b"On"),
            b"SCRIPT_NAME" => self.script = Some(field),
            // The server sets these itself.
            b"SERVER_SOFTWARE" | b"GATEWAY_INTERFACE" | b"RAW_URI" | b"SCGI" => {}
            // nginx sends an empty SERVER_NAME for a server without a name; PEP 3333 requires one: the listener's.
            b"SERVER_NAME" | b"SERVER_PORT" if text.is_empty() => {}
            // Variables that control uWSGI load files and run code.
            name if name.starts_with(b"UWSGI_") => {}
            other => {
                if !is_variable_name(other) {
                    return Err(Reject::bad("a malformed variable name"));
                }
                match other {
                    b"SERVER_PROTOCOL" => self.gateway.version = field.value,
                    b"REQUEST_SCHEME" if text == b"https" => self.gateway.secure = true,
                    _ => {}
                }
                self.variable(field)?;
            }
        }
        Ok(())
    }

    fn variable(&mut self, field: Field) -> Result<(), Reject> {
        if self.gateway.variables.len() >= MAX_VARIABLES {
            return Err(TOO_MANY_VARIABLES);
        }
        self.gateway.variables.push(field);
        Ok(())
    }

    /// Adds a header field and rewrites its name to its form in HTTP.
    fn take_field(&mut self, bytes: &mut [u8], name: Range<usize>, value: Range<usize>) -> Result<(), Reject> {
        if self.head.fields.len() >= self.limits.fields {
            return Err(Reject::TOO_MANY_FIELDS);
        }
        if name.len() + value.len() > self.limits.field_line {
            return Err(Reject::FIELD_TOO_LONG);
        }
        for byte in &mut bytes[name.clone()] {
            *byte = if *byte == b'_' { b'-' } else { byte.to_ascii_uppercase() };
        }
        let (written, text) = (&bytes[name.clone()], &bytes[value.clone()]);
        if !is_token(written) {
            return Err(Reject::bad("a malformed header field name"));
        }
        if !is_field_value(text) {
            return Err(Reject::bad("a control character in a header field value"));
        }
        match written {
            // CONTENT_TYPE and CONTENT_LENGTH are variables of their own; nginx sends both forms.
            b"CONTENT-TYPE" | b"CONTENT-LENGTH" if bytes[..name.start].ends_with(b"HTTP_") => return Ok(()),
            b"HOST" if text.is_empty() => return Ok(()),
            b"HOST" => {
                if std::mem::replace(&mut self.has_host, true) {
                    return Err(Reject::bad("more than one Host"));
                }
                if !is_authority(text) {
                    return Err(Reject::bad("a malformed Host"));
                }
            }
            _ => {}
        }
        self.head.fields.push(field(&name, &value));
        Ok(())
    }

    /// Checks that every required variable was sent, once.
    fn finish(mut self, bytes: &[u8]) -> Result<(), Reject> {
        match self.head.method.of(bytes) {
            method if !is_token(method) => return Err(Reject::bad("a malformed REQUEST_METHOD")),
            method if method.len() > Limits::MAX_METHOD => return Err(Reject::METHOD_TOO_LONG),
            b"CONNECT" => return Err(Reject::with(501, "CONNECT: this server is not a tunnel")),
            b"TRACE" => return Err(Reject::with(501, "TRACE is refused")),
            _ => {}
        }
        self.place(bytes)?;
        self.gateway.client = client(self.address.of(bytes), self.port.of(bytes))?;
        let length = self.gateway.length.unwrap_or(0);
        if length > self.limits.body {
            return Err(Reject::BODY_TOO_LARGE);
        }
        self.head.framing = if length == 0 { Framing::Absent } else { Framing::Length(length) };
        self.head.gateway = Some(self.gateway);
        Ok(())
    }

    /// Sets target, path and SCRIPT_NAME.
    fn place(&mut self, bytes: &[u8]) -> Result<(), Reject> {
        const MALFORMED: Reject = Reject::bad("a malformed REQUEST_URI");
        let query = self.head.parts.query;
        if let Some(uri) = self.uri.filter(|uri| !uri.is_empty()) {
            let text = uri.of(bytes);
            if text.len() > self.limits.request_line {
                return Err(Reject::LINE_TOO_LONG);
            }
            self.head.target = uri;
            let method = self.head.method.of(bytes);
            self.head.parts = match self.path {
                // The decoded path comes from the web server, so the target is only checked for its characters.
                Some(_) if scan_target(text).is_none() => return Err(MALFORMED),
                Some(_) => Target::default(),
                None => target::parse(method, text, uri.start())?,
            };
        }
        // A web server that rewrites the request has another QUERY_STRING; the target is still the client's.
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
        let (text, path) = (script.value.of(bytes), self.head.parts.path);
        if !text.starts_with(b"/") {
            return Err(Reject::bad("a malformed SCRIPT_NAME"));
        }
        let start = script.value.start();
        match (self.path, text) {
            // In PEP 3333 the slash belongs to the path.
            (Some(_), [name @ .., b'/']) => {
                if path.is_empty() {
                    self.head.parts.path = Span::new(start + name.len(), 1);
                }
                script.value = Span::new(start, name.len());
            }
            (Some(_), _) => {}
            (None, [.., b'/']) => return self.place_file(script.value, bytes),
            (None, _) => match encoded_length(path.of(bytes), text) {
                // The application is mounted at SCRIPT_NAME.
                Some(length) => self.head.parts.path = Span::new(path.start() + length, path.length() - length),
                None => return self.place_file(script.value, bytes),
            },
        }
        self.gateway.script = script.value;
        if script.value.is_empty() { Ok(()) } else { self.variable(script) }
    }

    /// The path of a server that only serves files: it sends all of it, decoded, as SCRIPT_NAME.
    fn place_file(&mut self, script: Span, bytes: &[u8]) -> Result<(), Reject> {
        check_decoded(self.head.method.of(bytes), script.of(bytes))?;
        self.head.parts.path = script;
        self.gateway.is_decoded = true;
        Ok(())
    }
}

fn field(name: &Range<usize>, value: &Range<usize>) -> Field {
    let span = |range: &Range<usize>| Span::new(range.start, range.len());
    Field { name: span(name), value: span(value) }
}

/// Checks a decoded path as a percent-encoded one is checked.
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

/// Length of the prefix of `path`, whose escapes are valid, that decodes to `decoded`; `None` unless a slash follows.
fn encoded_length(path: &[u8], decoded: &[u8]) -> Option<usize> {
    let mut rest = path;
    for expected in decoded {
        let byte;
        (byte, rest) = match rest {
            [b'%', high, low, rest @ ..] => (hex(*high)? << 4 | hex(*low)?, rest),
            [plain, rest @ ..] => (*plain, rest),
            [] => return None,
        };
        if byte != *expected {
            return None;
        }
    }
    rest.starts_with(b"/").then(|| path.len() - rest.len())
}

/// The client of REMOTE_ADDR and REMOTE_PORT.
fn client(address: &[u8], port: &[u8]) -> Result<Option<SocketAddr>, Reject> {
    // nginx sends `unix:` for a client of a Unix socket.
    if matches!(address, b"" | b"unix:" | b"unix") {
        return Ok(None);
    }
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let address = text(address).and_then(|address| address.parse::<IpAddr>().ok());
    let port = if port.is_empty() { Some(0) } else { grammar::port(port) };
    match (address, port) {
        (Some(address), Some(port)) => Ok(Some(SocketAddr::new(address, port))),
        (None, _) => Err(Reject::bad("a malformed REMOTE_ADDR")),
        (_, None) => Err(Reject::bad("a malformed REMOTE_PORT")),
    }
}
