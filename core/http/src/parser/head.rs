//! The head of a request: request line and header fields (RFC 9112 sections 3 and 5).
//!
//! `httparse` finds the parts. This file checks what it accepts and a strict server must not.

use std::mem::MaybeUninit;

use memchr::memchr;

use crate::grammar::{content_length, elements, is_authority, is_tchar, is_token};
use crate::limits::Limits;
use crate::parser::target;
use crate::parser::types::{Field, Framing, Head, Parsed, Span};
use crate::parser::version::{self, Version};
use crate::protocol::Dialect;
use crate::reject::Reject;

/// Parses the head at the start of `bytes` into `head`, whose field list is reused.
///
/// Limits are checked in the order of the bytes, so the result does not depend on how they arrive.
pub(crate) fn parse(bytes: &[u8], limits: &Limits, head: &mut Head) -> Parsed {
    let bytes = &bytes[..bytes.len().min(limits.head + 1)];
    let mut room = [const { MaybeUninit::uninit() }; Limits::MAX_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_request_with_uninit_headers(&mut request, bytes, &mut room);
    let reject = match parsed {
        Ok(httparse::Status::Complete(length)) if length <= limits.head => {
            return check(bytes, &request, length, limits, head).into();
        }
        Ok(_) => incomplete(bytes, limits),
        Err(httparse::Error::Version) if let Some(spoken) = version::with_spoken(bytes) => {
            return parse(&spoken, limits, head);
        }
        Err(error) => malformed(bytes, limits, error),
    };
    reject.map_or(Parsed::Partial, Parsed::Rejected)
}

pub(crate) const BARE_LINE_FEED: Reject = Reject::bad("a line feed without a carriage return");

/// The first line without its line end; `None` if it is incomplete.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    memchr(b'\n', bytes).map(|end| bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]))
}

fn incomplete(bytes: &[u8], limits: &Limits) -> Option<Reject> {
    if bytes.len() > Limits::MAX_METHOD && bytes[..=Limits::MAX_METHOD].iter().all(|&byte| is_tchar(byte)) {
        return Some(Reject::METHOD_TOO_LONG);
    }
    match first_line(bytes) {
        Some(line) if line.len() > limits.request_line => Some(Reject::LINE_TOO_LONG),
        None if bytes.len() > limits.request_line + 1 => Some(Reject::LINE_TOO_LONG),
        _ if bytes.len() > limits.head => Some(Reject::HEAD_TOO_LONG),
        _ => None,
    }
}

/// The reason to refuse a head that `httparse` refuses. `None`: more bytes are needed to decide.
fn malformed(bytes: &[u8], limits: &Limits, error: httparse::Error) -> Option<Reject> {
    match incomplete(bytes, limits) {
        Some(Reject::METHOD_TOO_LONG) => return Some(Reject::METHOD_TOO_LONG),
        Some(Reject::LINE_TOO_LONG) => {
            // In small pieces, a fault before the limit would be found first; name the same fault here.
            let within = &bytes[..bytes.len().min(limits.request_line + 1)];
            let found = httparse::Request::new(&mut []).parse(within).err();
            return found.and_then(|error| fault(within, error)).or(Some(Reject::LINE_TOO_LONG));
        }
        _ => {}
    }
    fault(bytes, error)
}

/// The reason to refuse it, whatever the limits. `None`: more bytes are needed to decide.
fn fault(bytes: &[u8], error: httparse::Error) -> Option<Reject> {
    Some(match error {
        httparse::Error::TooManyHeaders => Reject::TOO_MANY_FIELDS,
        httparse::Error::HeaderName => Reject::bad("a malformed header field name"),
        httparse::Error::HeaderValue => Reject::bad("a control character in a header field value"),
        httparse::Error::NewLine if version::is_overrun(bytes) => version::MALFORMED,
        httparse::Error::NewLine => Reject::bad("a carriage return without a line feed"),
        httparse::Error::Token => Reject::bad("a malformed request line"),
        httparse::Error::Version => return version::fault(bytes),
        httparse::Error::Status => Reject::bad("a malformed request"),
    })
}

/// Refuses heads that `httparse` accepts and a strict server must not.
fn check(
    bytes: &[u8],
    request: &httparse::Request,
    length: usize,
    limits: &Limits,
    head: &mut Head,
) -> Result<(), Reject> {
    let bytes = &bytes[..length];
    let position = |part: &[u8]| part.as_ptr() as usize - bytes.as_ptr() as usize;
    let (Some(method), Some(path), Some(version)) = (request.method, request.path, request.version) else {
        return Err(Reject::bad("a malformed request line"));
    };
    let (method, path) = (method.as_bytes(), path.as_bytes());
    if method.len() > Limits::MAX_METHOD {
        return Err(Reject::METHOD_TOO_LONG);
    }
    let line_end = position(path) + path.len() + version::LENGTH;
    if line_end > limits.request_line {
        return Err(Reject::LINE_TOO_LONG);
    }
    if bytes.get(line_end..line_end + 2) != Some(b"\r\n") || !bytes.ends_with(b"\r\n\r\n") {
        return Err(BARE_LINE_FEED);
    }
    (head.dialect, head.gateway) = (Dialect::default(), None);
    head.length = length;
    head.method = Span::new(position(method), method.len());
    head.target = Span::new(position(path), path.len());
    head.version = if version == 0 { Version::Http10 } else { Version::Http11 };
    head.parts = match method {
        b"CONNECT" => return Err(Reject::with(501, "CONNECT: this server is not a tunnel")),
        b"TRACE" => return Err(Reject::with(501, "TRACE is refused")),
        _ => target::parse(method, path, position(path))?,
    };
    check_fields(bytes, request, limits, head)
}

fn check_fields(bytes: &[u8], request: &httparse::Request, limits: &Limits, head: &mut Head) -> Result<(), Reject> {
    if request.headers.len() > limits.fields {
        return Err(Reject::TOO_MANY_FIELDS);
    }
    let position = |part: &[u8]| part.as_ptr() as usize - bytes.as_ptr() as usize;
    let mut checks = FieldChecks::default();
    head.fields.clear();
    head.expects_continue = false;
    for field in request.headers.iter() {
        let (name, value) = (field.name.as_bytes(), field.value);
        let start = position(name);
        if !bytes[..start].ends_with(b"\r\n") {
            return Err(BARE_LINE_FEED);
        }
        if name.len() + value.len() > limits.field_line {
            return Err(Reject::FIELD_TOO_LONG);
        }
        // `httparse` returns an arbitrary pointer for an empty value.
        let value_at = if value.is_empty() { start + name.len() } else { position(value) };
        head.fields.push(Field { name: Span::new(start, name.len()), value: Span::new(value_at, value.len()) });
        checks.take(name, value, head)?;
    }
    checks.finish(limits, head, |codings| framing_by_list(request, codings))
}

/// The fields that say how a message is framed and whether it may be served, as far as they have come; the same in all versions of
/// HTTP.
#[derive(Default)]
pub(crate) struct FieldChecks<'a> {
    length: Option<&'a [u8]>,
    content_type: Option<&'a [u8]>,
    coding: Option<&'a [u8]>,
    codings: usize,
    host: Option<&'a [u8]>,
    closes: bool,
    keeps_alive: bool,
    upgrades: bool,
}

impl<'a> FieldChecks<'a> {
    /// Takes the next field.
    // A match guard that assigns a variable would be harder to read than an `if` inside.
    #[allow(clippy::collapsible_match)]
    #[inline(always)]
    pub(crate) fn take(&mut self, name: &'a [u8], value: &'a [u8], head: &mut Head) -> Result<(), Reject> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                if self.host.replace(value).is_some() {
                    return Err(Reject::bad("more than one Host"));
                }
            }
            6 if name.eq_ignore_ascii_case(b"expect") => {
                for expectation in elements(value) {
                    if !expectation.eq_ignore_ascii_case(b"100-continue") {
                        return Err(Reject::with(417, "an expectation other than 100-continue"));
                    }
                    head.expects_continue = head.version != Version::Http10;
                }
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for option in elements(value) {
                    self.closes |= option.eq_ignore_ascii_case(b"close");
                    self.keeps_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                    self.upgrades |= option.eq_ignore_ascii_case(b"upgrade");
                }
            }
            12 if name.eq_ignore_ascii_case(b"content-type") => {
                if self.content_type.replace(value).is_some_and(|other| other != value) {
                    return Err(Reject::bad("two different Content-Types"));
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                if self.length.replace(value).is_some() {
                    return Err(Reject::bad("more than one Content-Length"));
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.coding = Some(value);
                self.codings += 1;
            }
            14 | 17 if is_disguised(name) => return Err(Reject::bad("a framing field with an underscore in its name")),
            _ => {}
        }
        Ok(())
    }

    /// Sets what follows from all fields. `framing_by_list` reads a Transfer-Encoding that is not simply `chunked`, given so often.
    #[inline(always)]
    pub(crate) fn finish(
        self,
        limits: &Limits,
        head: &mut Head,
        framing_by_list: impl FnOnce(usize) -> Result<Framing, Reject>,
    ) -> Result<(), Reject> {
        match self.host {
            Some(value) if !is_authority(value) => return Err(Reject::bad("a malformed Host")),
            None if head.version != Version::Http10 => return Err(Reject::bad("no Host")),
            _ => {}
        }
        head.framing = match (self.length, self.coding) {
            (None, None) => Framing::Absent,
            (Some(value), None) => match content_length(value) {
                None => return Err(Reject::bad("a malformed Content-Length")),
                Some(value) if value > limits.body => return Err(Reject::BODY_TOO_LARGE),
                Some(value) => Framing::Length(value),
            },
            (None, Some(value)) if head.version != Version::Http10 => match self.codings {
                1 if value.eq_ignore_ascii_case(b"chunked") => Framing::Chunked,
                _ => framing_by_list(self.codings)?,
            },
            (Some(_), Some(_)) => return Err(Reject::bad("both Content-Length and Transfer-Encoding")),
            (None, Some(_)) => return Err(Reject::bad("Transfer-Encoding in HTTP/1.0")),
        };
        head.keep_alive = !self.closes && (self.keeps_alive || head.version != Version::Http10);
        head.asks_upgrade = self.upgrades;
        Ok(())
    }
}

/// Whether a name equals a framing field but for an underscore: CGI has one variable for both (RFC 3875 section
/// 4.1.18).
fn is_disguised(name: &[u8]) -> bool {
    let alike = |(&byte, &other): (&u8, &u8)| byte.eq_ignore_ascii_case(&other) || byte == b'_' && other == b'-';
    let resembles = |field: &[u8]| name.len() == field.len() && name.iter().zip(field).all(alike);
    resembles(b"content-length") || resembles(b"transfer-encoding")
}

/// Framing by a Transfer-Encoding that is not simply `chunked` (RFC 9112 section 6.3), given in `lines` field lines.
/// Anything ambiguous is refused.
#[cold]
fn framing_by_list(request: &httparse::Request, lines: usize) -> Result<Framing, Reject> {
    let is_named = |field: &&httparse::Header| field.name.eq_ignore_ascii_case("transfer-encoding");
    let codings = || request.headers.iter().filter(is_named).flat_map(|field| elements(field.value));
    let is_chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
    match (codings().filter(is_chunked).count(), codings().count()) {
        (_, 0) => Err(Reject::bad("a malformed Transfer-Encoding")),
        _ if !codings().all(is_token) => Err(Reject::bad("a malformed Transfer-Encoding")),
        (1, 1) if lines == 1 => Ok(Framing::Chunked),
        // With an additional empty line, some parsers take the first line, others the last.
        (1, 1) => Err(Reject::bad("more than one Transfer-Encoding")),
        (1, _) if codings().last().as_ref().is_some_and(is_chunked) => {
            Err(Reject::with(501, "a transfer coding other than chunked"))
        }
        // The end of such a body cannot be found.
        (0 | 1, _) => Err(Reject::bad("a transfer coding that does not end with chunked")),
        _ => Err(Reject::bad("chunked more than once")),
    }
}
