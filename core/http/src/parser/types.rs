//! The shapes that the parsers of all protocols fill: spans, fields, head, framing of a body.

use std::borrow::Cow;
use std::net::SocketAddr;

use crate::grammar::percent_decoded;
use crate::origin::{Origin, Scheme};
use crate::parser::version::{self, Version};
use crate::protocol::Dialect;
use crate::reject::Reject;

/// A range of bytes inside a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    length: u32,
}

impl Span {
    /// Positions fit 32 bits because [`crate::limits::Limits::MAX_HEAD`] does.
    pub(crate) fn new(start: usize, length: usize) -> Self {
        Span { start: start as u32, length: length as u32 }
    }

    /// The bytes of this span in the head it belongs to.
    pub fn of(self, head: &[u8]) -> &[u8] {
        let start = self.start();
        head.get(start..start + self.length()).unwrap_or_default()
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    #[inline]
    pub(crate) fn length(self) -> usize {
        self.length as usize
    }

    /// Whether the span has no bytes.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// One header field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name as it was sent.
    pub name: Span,
    /// The value without surrounding white space.
    pub value: Span,
}

/// How the length of a request body is known (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No Content-Length and no Transfer-Encoding.
    #[default]
    Absent,
    Length(u64),
    Chunked,
    /// FastCGI records; the length if CONTENT_LENGTH gives one.
    Records(Option<u64>),
}

/// Positions of the parts of a request target in the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) path: Span,
    pub(crate) query: Span,
    /// From an absolute-form target; it replaces the Host field (RFC 9112 section 3.2.2).
    pub(crate) authority: Span,
    /// The target is an https URI.
    pub(crate) is_https: bool,
}

/// The variables of a request that have no place in its head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateway {
    /// Variables that are passed to the application unchanged: SERVER_NAME, DOCUMENT_ROOT, REMOTE_USER and all that the
    /// web server is configured to add.
    pub variables: Vec<Field>,
    /// The address of the client, if it has one.
    pub client: Option<SocketAddr>,
    /// The client speaks TLS with the web server.
    pub secure: bool,
    /// SERVER_PROTOCOL: the version that the client speaks.
    pub version: Span,
    /// SCRIPT_NAME: the mount point. It is among the variables too.
    pub(crate) script: Span,
    /// The path is decoded: it comes from PATH_INFO or SCRIPT_NAME.
    pub(crate) is_decoded: bool,
    /// CONTENT_LENGTH, if it was sent.
    pub(crate) length: Option<u64>,
}

/// A parsed head. Its bytes stay in the receive buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Bytes from the request line to the empty line, both included.
    pub length: usize,
    /// The method, case-sensitive.
    pub method: Span,
    /// The request target as it was sent.
    pub target: Span,
    pub(crate) parts: Target,
    /// The version of the request line.
    pub version: Version,
    /// The header fields in the order they were sent.
    pub fields: Vec<Field>,
    pub(crate) framing: Framing,
    /// The client wants the connection to persist (RFC 9112 section 9.3).
    pub keep_alive: bool,
    /// The client proposes another protocol (RFC 9110 section 7.8); see [`Head::may_upgrade`].
    pub asks_upgrade: bool,
    /// The client waits for `100 Continue` before it sends the body (RFC 9110 section 10.1.1).
    pub expects_continue: bool,
    /// The protocol of the response.
    pub dialect: Dialect,
    /// The variables of a web server, if the request came in a gateway protocol.
    pub gateway: Option<Box<Gateway>>,
}

impl Head {
    /// Copies `other`, reusing the memory of the field list.
    pub(crate) fn copy_from(&mut self, other: &Head) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        fields.extend_from_slice(&other.fields);
        // Only heads received as HTTP are remembered, so there is no gateway to copy.
        *self = Head { fields, gateway: None, ..*other };
    }

    /// The path of the target as it was sent, percent-encoded; `*` for `OPTIONS *`, empty for `http://host`.
    pub fn path(&self) -> Span {
        self.parts.path
    }

    /// The query of the target without its question mark.
    pub fn query(&self) -> Span {
        self.parts.query
    }

    /// Refuses an https target unless the client speaks TLS with a trusted proxy (RFC 9110 section 7.4).
    #[inline]
    pub fn check_scheme(&self, origin: Option<&Origin>) -> Result<(), Reject> {
        let is_secured = || {
            origin.is_some_and(|origin| origin.scheme == Some(Scheme::Https))
                || self.gateway.as_ref().is_some_and(|gateway| gateway.secure)
        };
        match self.parts.is_https && !is_secured() {
            true => Err(Reject::with(421, "an https target on a connection without TLS")),
            false => Ok(()),
        }
    }

    /// The authority of an absolute-form target; it replaces the Host field.
    pub fn authority(&self) -> Span {
        self.parts.authority
    }

    /// The requested host, perhaps with a port: the authority of the target, or else Host; may be empty in HTTP/1.0.
    pub fn requested_authority<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        if !self.authority().is_empty() {
            return self.authority().of(head);
        }
        let is_host = |field: &&Field| field.name.length() == 4 && field.name.of(head).eq_ignore_ascii_case(b"host");
        self.fields.iter().find(is_host).map_or(b"", |field| field.value.of(head))
    }

    /// The request line as it was sent, without its CRLF; rebuilt if a web server sent variables instead.
    pub fn request_line<'a>(&self, head: &'a [u8]) -> Cow<'a, [u8]> {
        match &self.gateway {
            None => {
                let end = self.target.start() + self.target.length() + version::LENGTH;
                Cow::Borrowed(head.get(..end).unwrap_or_default())
            }
            Some(gateway) => {
                let parts = [self.method, self.target, gateway.version].map(|part| part.of(head));
                Cow::Owned(parts.join(&b' '))
            }
        }
    }

    /// SCRIPT_NAME of a web server: the mount point, decoded and without a trailing slash.
    pub fn script<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        self.gateway.as_ref().map_or(b"", |gateway| gateway.script.of(head))
    }

    /// The path with its percent-encoding removed.
    #[inline]
    pub fn decoded_path<'a>(&self, head: &'a [u8]) -> Cow<'a, [u8]> {
        let path = self.path().of(head);
        match &self.gateway {
            Some(gateway) if gateway.is_decoded => Cow::Borrowed(path),
            _ => percent_decoded(path),
        }
    }

    /// Whether the length of the body is unknown until it is read.
    pub fn is_chunked(&self) -> bool {
        matches!(self.framing, Framing::Chunked | Framing::Records(None))
    }

    /// The announced length of the body, `None` for a chunked one.
    pub fn body_length(&self) -> Option<u64> {
        match self.framing {
            Framing::Absent => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Records(length) => length,
            Framing::Chunked => None,
        }
    }
}

/// The result of parsing a head, or variables in place of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Partial,
    Complete,
    Rejected(Reject),
}

impl From<Result<(), Reject>> for Parsed {
    fn from(result: Result<(), Reject>) -> Self {
        result.map_or_else(Parsed::Rejected, |()| Parsed::Complete)
    }
}

/// The meaning of the bytes at the front of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// More bytes are needed.
    NeedMore,
    /// Bytes of framing, which the caller drops.
    Framing(usize),
    /// Bytes of content.
    Content(usize),
    /// Bytes of a FastCGI management record, which the caller drops, and the reply to send.
    ManagementReply(usize, Vec<u8>),
    /// The body is complete; the bytes after it belong to the next message.
    Complete,
    Rejected(Reject),
}
