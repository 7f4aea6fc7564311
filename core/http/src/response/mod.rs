//! Response writer: status, fields and body to bytes (RFC 9112 sections 4 to 7, PEP 3333).
//!
//! All calls are checked against the state before a byte is written, so an application's mistake raises in the
//! application and never reaches the wire.
//!
//! ```text
//! fields.rs    checks and writes the header fields of an application
//! interim.rs   writes interim responses
//! ```

mod fields;
mod interim;

use std::io::Write as _;

use crate::parser::gateway::fastcgi;
use crate::parser::types::Head;
use crate::parser::version::Version;
use crate::protocol::{Dialect, Protocol};
use crate::reject::{Invalid, Reject};
use crate::response::fields::push_latin1;

/// The fields that the server adds to a head.
#[derive(Clone, Copy, Debug)]
pub struct ServerFields<'a> {
    /// `Date: …` with CRLF (RFC 9110 section 6.6.1).
    pub date: &'a [u8],
    /// `Server: …` with CRLF, or nothing.
    pub server: &'a [u8],
    /// The server is shutting down: no connection persists.
    pub closing: bool,
}

/// The end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The connection may carry another request.
    pub persists: bool,
    /// Bytes the application promised in Content-Length and did not produce.
    pub missing: u64,
    /// Bytes the application produced beyond its Content-Length; they were not sent.
    pub excess: u64,
}

/// Body framing (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// HEAD, 204, 304: there is no body, whatever the application produces.
    Nothing,
    /// Bytes still to come.
    Length(u64),
    Chunked,
    /// FastCGI without a known length: the last record ends the body.
    Records,
    /// HTTP/2 without a known length: the end of the stream ends the body.
    Stream,
    /// HTTP/1.0 without a known length: the end of the connection ends the body.
    UntilClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// `start_response` has not been called.
    Unstarted,
    /// Status and fields are in the buffer and may still be replaced.
    Started,
    /// The head is complete.
    Streaming(Framing),
    Ended,
}

/// The response of one exchange.
#[derive(Clone, Debug)]
pub struct Response {
    state: State,
    /// Position of the head in the buffer, after responses to earlier, pipelined requests.
    mark: usize,
    status: u16,
    to_head: bool,
    version: Version,
    dialect: Dialect,
    persists: bool,
    length: Option<u64>,
    has_date: bool,
    has_server: bool,
    has_request_id: bool,
    /// Bytes of content sent: the size in an access log.
    sent: u64,
    excess: u64,
}

impl Response {
    /// The response to the request with this head, appended to a buffer of `mark` bytes.
    #[inline]
    pub fn new(head: &Head, head_bytes: &[u8], mark: usize) -> Self {
        Response {
            state: State::Unstarted,
            mark,
            status: 0,
            to_head: head.method.of(head_bytes) == b"HEAD",
            version: head.version,
            dialect: head.dialect,
            persists: head.keep_alive,
            length: None,
            has_date: false,
            has_server: false,
            has_request_id: false,
            sent: 0,
            excess: 0,
        }
    }

    /// The last response of a connection, to a request with an invalid head; `to_head`: it is known to be a HEAD
    /// request.
    pub fn to_refused(dialect: Dialect, to_head: bool, mark: usize) -> Self {
        Response { dialect, to_head, ..Self::new(&Head::default(), b"", mark) }
    }

    /// Writes a complete response for a refusal, with these field lines besides its own. Returns the length of its content.
    pub fn refuse(mut self, out: &mut Vec<u8>, reject: Reject, lines: &[u8], server_fields: &ServerFields<'_>) -> u64 {
        self.persists = false;
        let status = format!("{} {}", reject.status, reject.phrase());
        let text = format!("{status}: {}\n", reject.reason);
        let written = self
            .start(out, &status)
            .and_then(|()| self.field(out, "Content-Type", "text/plain; charset=utf-8"))
            .and_then(|()| match reject.status {
                // In seconds (RFC 9110 section 10.2.3); 503 means a lack of resources, which soon are free again.
                503 => self.field(out, "Retry-After", "1"),
                // RFC 9110 section 15.5.6; only static files refuse methods here.
                405 => self.field(out, "Allow", "GET, HEAD"),
                _ => Ok(()),
            })
            .and_then(|()| {
                out.extend_from_slice(lines);
                self.commit(out, Some(text.len() as u64), server_fields)
            });
        if written.is_ok() {
            let length = self.admit(text.len());
            self.open_chunk(out, length);
            out.extend_from_slice(&text.as_bytes()[..length]);
            out.extend_from_slice(self.end_of_chunk(length));
            self.end(out);
        }
        self.sent
    }

    /// The status code, 0 before [`Response::start`].
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Bytes of content sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Has [`Response::status`] return another status from now on, for logs and metrics; what was written stays.
    #[cold]
    pub fn count_as(&mut self, status: u16) {
        self.status = status;
    }

    /// Whether status and fields are given.
    pub fn is_started(&self) -> bool {
        self.state != State::Unstarted
    }

    /// Whether the head is complete and can no longer be replaced.
    pub fn is_committed(&self) -> bool {
        matches!(self.state, State::Streaming(_) | State::Ended)
    }

    /// Whether the end of the connection can replace the end of the response. nginx does not wait for the last record
    /// of FastCGI unless the connection persists.
    pub fn ends_with_connection(&self) -> bool {
        matches!(self.state, State::Streaming(Framing::UntilClose | Framing::Records))
    }

    /// The length that the application declared.
    pub fn declared_length(&self) -> Option<u64> {
        self.length
    }

    /// Whether content is sent: not to HEAD, and not with 204 and 304.
    pub fn has_body(&self) -> bool {
        !self.to_head && !matches!(self.status, 204 | 304)
    }

    /// Whether to read on from the application: not if no content is sent, and not beyond the declared length. A body
    /// that has reached this length may still end properly.
    #[inline]
    pub fn wants_more(&self) -> bool {
        self.state != State::Streaming(Framing::Nothing) && self.excess == 0
    }

    /// Bytes of content beyond the declared length; they were not sent.
    #[inline]
    pub fn excess(&self) -> u64 {
        self.excess
    }

    /// Whether all content of the announced length is sent, and the response has not ended.
    #[inline]
    pub fn has_whole_body(&self) -> bool {
        self.state == State::Streaming(Framing::Length(0))
    }

    /// Closes the connection after this response.
    pub fn close(&mut self) {
        self.persists = false;
    }

    /// Removes status and fields for another start; only before [`Response::commit`].
    pub fn restart(&mut self, out: &mut Vec<u8>) {
        if self.state == State::Started {
            out.truncate(self.mark);
            self.state = State::Unstarted;
            self.length = None;
            (self.has_date, self.has_server, self.has_request_id) = (false, false, false);
        }
    }

    /// Removes status line and fields from the buffer and returns them, to be replaced. Empty if they are committed.
    pub fn take_back(&mut self, out: &mut Vec<u8>) -> Vec<u8> {
        let lines = match self.state {
            State::Started => out.split_off(self.mark.min(out.len())),
            _ => Vec::new(),
        };
        self.restart(out);
        lines
    }

    /// Removes status line and fields from the buffer and returns them, to be put back behind other output; empty if the head is
    /// complete or has not begun.
    pub fn set_aside(&mut self, out: &mut Vec<u8>) -> Vec<u8> {
        match self.state {
            State::Started => out.split_off(self.mark.min(out.len())),
            _ => Vec::new(),
        }
    }

    /// Puts back what [`Response::set_aside`] has removed.
    pub fn put_back(&mut self, out: &mut Vec<u8>, aside: &[u8]) {
        if !self.is_committed() {
            self.mark = out.len();
            out.extend_from_slice(aside);
        }
    }

    /// Status line and fields that were written so far, before [`Response::commit`].
    pub fn written<'a>(&self, out: &'a [u8]) -> &'a [u8] {
        &out[self.mark.min(out.len())..]
    }

    /// Replaces status line and fields, none of them about framing or the connection; only before [`Response::commit`].
    pub fn replace(&mut self, out: &mut Vec<u8>, lines: &[u8]) {
        if self.state == State::Started {
            out.truncate(self.mark);
            out.extend_from_slice(lines);
        }
    }

    /// Forgets the length that the application declared: its body is coded.
    pub fn forget_length(&mut self) {
        self.length = None;
    }

    /// Writes the status line. `status` is a WSGI status such as `404 Not Found`.
    #[inline]
    pub fn start(&mut self, out: &mut Vec<u8>, status: &str) -> Result<(), Invalid> {
        if self.state != State::Unstarted {
            return Err(Invalid("the response has already been started".into()));
        }
        let code = match status.as_bytes() {
            [a @ b'2'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', rest @ ..] if rest.is_empty() || rest[0] == b' ' => {
                u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0')
            }
            [b'1', b'0'..=b'9', b'0'..=b'9', ..] => {
                return Err(Invalid(format!("status {status:?}: interim responses (1xx) belong to the server")));
            }
            _ => {
                return Err(Invalid(format!(
                    "status {status:?}: expected three digits, a space and a reason, such as '200 OK'"
                )));
            }
        };
        out.extend_from_slice(match self.dialect.protocol {
            Protocol::Http | Protocol::Uwsgi => b"HTTP/1.1 ",
            // RFC 3875 section 6.3.3.
            Protocol::Scgi | Protocol::Fastcgi => b"Status: ",
        });
        if let Err(culprit) = push_latin1(out, status) {
            out.truncate(self.mark);
            return Err(Invalid(format!("status {status:?}: {culprit}")));
        }
        out.extend_from_slice(if status.len() == 3 { b" \r\n" } else { b"\r\n" });
        self.status = code;
        self.state = State::Started;
        Ok(())
    }

    /// Notes that the lines for [`Response::start_prepared`] contain Date, Server or X-Request-ID, so that they are not added.
    pub fn brings(&mut self, date: bool, server: bool, request_id: bool) {
        (self.has_date, self.has_server, self.has_request_id) = (date, server, request_id);
    }

    /// Writes status line and fields unchecked: `fields` holds whole, valid lines, none about framing or the
    /// connection.
    #[inline]
    pub fn start_prepared(&mut self, out: &mut Vec<u8>, status: &str, fields: &[u8]) -> Result<(), Invalid> {
        self.start(out, status)?;
        out.extend_from_slice(fields);
        Ok(())
    }

    /// Adds a field unless the application has given it. Only after [`Response::start`]; `value` is not checked.
    #[cold]
    pub fn default_field(&self, out: &mut Vec<u8>, name: &str, value: &str) {
        let head = out.get(self.mark..).unwrap_or_default();
        let is_there = head.split(|&byte| byte == b'\n').any(|line| {
            line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
                && line.get(name.len()) == Some(&b':')
        });
        if self.state == State::Started && !is_there {
            out.extend([name, ": ", value, "\r\n"].concat().bytes());
        }
    }

    /// Whether `X-Request-ID` is to be added: the application has not given it.
    #[inline]
    pub fn lacks_request_id(&self) -> bool {
        self.state == State::Started && !self.has_request_id
    }

    /// Completes the head. `body` is the length of the whole body, if it is known.
    #[inline]
    pub fn commit(
        &mut self,
        out: &mut Vec<u8>,
        body: Option<u64>,
        server_fields: &ServerFields<'_>,
    ) -> Result<(), Invalid> {
        match self.state {
            State::Started => {}
            State::Unstarted => {
                return Err(Invalid("the application did not call start_response before it gave content".into()));
            }
            State::Streaming(_) | State::Ended => return Err(Invalid("the response has already been sent".into())),
        }
        let framing = match (self.length, body) {
            _ if matches!(self.status, 204 | 304) => Framing::Nothing,
            (None, Some(length)) if !self.to_head || length > 0 => {
                push_length(out, length);
                if self.to_head { Framing::Nothing } else { Framing::Length(length) }
            }
            _ if self.to_head => Framing::Nothing,
            (Some(length), _) => Framing::Length(length),
            (None, _) if self.version == Version::Http11 && self.dialect.protocol == Protocol::Http => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
                Framing::Chunked
            }
            _ if self.is_recorded() => Framing::Records,
            _ if self.version == Version::Http2 => Framing::Stream,
            _ => Framing::UntilClose,
        };
        if !self.has_date {
            out.extend_from_slice(server_fields.date);
        }
        if !self.has_server {
            out.extend_from_slice(server_fields.server);
        }
        self.persists &= !server_fields.closing && framing != Framing::UntilClose;
        match (self.persists, self.version) {
            // Gateway protocols have no connection header field: the web server handles the client's connection.
            _ if self.dialect.protocol != Protocol::Http => {}
            // Connection-specific fields do not exist in HTTP/2 (RFC 9113 section 8.2.2).
            (false, Version::Http10 | Version::Http11) => out.extend_from_slice(b"Connection: close\r\n"),
            (false, Version::Http2) => {}
            (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (true, Version::Http11 | Version::Http2) => {}
        }
        out.extend_from_slice(b"\r\n");
        if self.is_recorded() {
            self.record_head(out)?;
        }
        self.state = State::Streaming(framing);
        Ok(())
    }

    /// Number of the next `length` bytes of content that may be sent; the rest is excess.
    #[inline]
    pub fn admit(&mut self, length: usize) -> usize {
        let admitted = match &mut self.state {
            State::Streaming(Framing::Length(rest)) => {
                let admitted = (*rest).min(length as u64);
                *rest -= admitted;
                self.excess += length as u64 - admitted;
                admitted
            }
            State::Streaming(Framing::Chunked | Framing::Records | Framing::Stream | Framing::UntilClose) => {
                length as u64
            }
            _ => 0,
        };
        self.sent += admitted;
        admitted as usize
    }

    /// Whether the response is written in records (FastCGI).
    #[inline]
    pub fn is_recorded(&self) -> bool {
        self.dialect.protocol == Protocol::Fastcgi
    }

    /// Wraps a complete head in a record.
    #[cold]
    fn record_head(&self, out: &mut Vec<u8>) -> Result<(), Invalid> {
        let length = out.len() - self.mark;
        if length > fastcgi::LARGEST {
            return Err(Invalid(format!("the head of an answer is {length} bytes long; FastCGI has room for 65528")));
        }
        out.splice(self.mark..self.mark, fastcgi::output(self.dialect.request, length));
        Ok(())
    }

    /// Most bytes of content in one chunk.
    #[inline]
    pub fn largest_chunk(&self) -> usize {
        if self.is_recorded() { fastcgi::LARGEST } else { usize::MAX }
    }

    /// The FastCGI record header before `length` bytes of content, at most [`Response::largest_chunk`].
    pub fn record(&self, length: usize) -> Option<[u8; fastcgi::HEADER]> {
        (self.is_recorded() && length > 0).then(|| fastcgi::output(self.dialect.request, length))
    }

    /// Writes the framing before an admitted chunk of this length (RFC 9112 section 7.1).
    #[inline]
    pub fn open_chunk(&self, out: &mut Vec<u8>, length: usize) {
        if self.state == State::Streaming(Framing::Chunked) && length > 0 {
            // Writing to a vector cannot fail.
            let _ = write!(out, "{length:x}\r\n");
        } else if let Some(head) = self.record(length) {
            out.extend_from_slice(&head);
        }
    }

    /// The framing after an admitted chunk of this length.
    #[inline]
    pub fn end_of_chunk(&self, length: usize) -> &'static [u8] {
        if self.state == State::Streaming(Framing::Chunked) && length > 0 { b"\r\n" } else { b"" }
    }

    /// Ends a chunked body with trailer fields, whole lines of [`Response::trailer`] (RFC 9112 section 7.1.2). `false`: the framing of this
    /// response has no place for them.
    #[cold]
    pub fn end_chunks(&mut self, out: &mut Vec<u8>, lines: &[u8]) -> bool {
        let is_chunked = self.state == State::Streaming(Framing::Chunked);
        if is_chunked {
            out.extend([b"0\r\n", lines, b"\r\n"].concat());
            self.state = State::Streaming(Framing::Nothing);
        }
        is_chunked
    }

    /// Marks the end of the body. If the application did not keep its Content-Length the connection closes, so that the
    /// next response is not read as part of this one.
    #[inline]
    pub fn end(&mut self, out: &mut Vec<u8>) -> Ending {
        let missing = match self.state {
            State::Streaming(Framing::Length(rest)) => rest,
            State::Streaming(Framing::Chunked) => {
                out.extend_from_slice(b"0\r\n\r\n");
                0
            }
            State::Streaming(Framing::Nothing | Framing::Records | Framing::Stream | Framing::UntilClose) => 0,
            State::Unstarted | State::Started | State::Ended => {
                self.persists = false;
                0
            }
        };
        if self.is_recorded() && self.is_committed() && missing == 0 {
            fastcgi::push_end(out, self.dialect.request);
        }
        self.state = State::Ended;
        self.persists &= missing == 0;
        Ending { persists: self.persists, missing, excess: self.excess }
    }
}

#[inline]
fn push_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}
