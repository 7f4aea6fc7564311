//! Request body framing: Content-Length, chunked or FastCGI records (RFC 9112 sections 6 and 7).

use memchr::memchr;

use crate::grammar::{hex, is_chunk_extension, is_field_content, is_token, trim_start};
use crate::limits::Limits;
use crate::parser::gateway::fastcgi::Stream;
use crate::parser::types::{Framing, Part};
use crate::reject::Reject;

/// The decoder of the body being received.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Content-Length or chunked.
    Framed(Decoder),
    /// FastCGI records.
    Recorded(Stream),
    /// Content without framing: bytes so far, and their number if it was announced. The end of its stream ends it.
    Unframed(u64, Option<u64>),
}

/// The name of a trailer field is no token, or its line has a byte that no line may have.
const MALFORMED: Reject = Reject::bad("a malformed trailer");

impl Body {
    /// Bytes of content that follow without framing between them.
    pub(crate) fn expected(&self) -> u64 {
        match self {
            Body::Framed(decoder) => decoder.expected(),
            Body::Recorded(stream) => stream.expected(),
            Body::Unframed(received, length) => length.map_or(0, |length| length.saturating_sub(*received)),
        }
    }

    /// Counts up to `most` of the [`Body::expected`] bytes as received.
    pub(crate) fn take(&mut self, most: u64) {
        match self {
            Body::Framed(decoder) => _ = decoder.take(most),
            Body::Recorded(stream) => _ = stream.take(most),
            Body::Unframed(received, _) => *received += most,
        }
    }

    /// Classifies the bytes at the front. The caller removes them, then calls again.
    pub(crate) fn next(&mut self, bytes: &[u8], limits: &Limits) -> Part {
        match self {
            Body::Framed(decoder) => decoder.next(bytes, limits),
            Body::Recorded(stream) => stream.next(bytes, limits),
            Body::Unframed(..) if bytes.is_empty() => Part::NeedMore,
            Body::Unframed(received, _) => {
                *received += bytes.len() as u64;
                if *received > limits.body {
                    Part::Rejected(Reject::BODY_TOO_LARGE)
                } else {
                    Part::Content(bytes.len())
                }
            }
        }
    }

    /// The same with at most so many bytes of content.
    #[inline]
    pub(crate) fn next_up_to(&mut self, bytes: &[u8], limits: &Limits, most: usize) -> Part {
        let is_content = most < bytes.len() && (self.expected() > 0 || matches!(self, Body::Unframed(..)));
        self.next(if is_content { &bytes[..most] } else { bytes }, limits)
    }

    /// Whether `bytes` hold all that is missing, or something for which the body is refused.
    pub(crate) fn ends_in(&self, mut bytes: &[u8], limits: &Limits) -> bool {
        let mut body = self.clone();
        loop {
            match body.next(bytes, limits) {
                Part::Framing(count) | Part::Content(count) | Part::ManagementReply(count, _) => {
                    bytes = &bytes[count..];
                }
                Part::NeedMore => return false,
                Part::Complete | Part::Rejected(_) => return true,
            }
        }
    }
}

/// Removes the framing of a body with a Content-Length or in chunks.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    state: State,
    /// Bytes of content that may still arrive before the limit.
    allowance: u64,
    /// Bytes of trailers so far.
    trailers: usize,
    trailer_lines: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Content of a known length.
    Length(u64),
    /// The line with the size of the next chunk.
    Size,
    /// Content of a chunk.
    Chunk(u64),
    /// The CRLF after a chunk.
    ChunkEnd,
    /// Trailer fields up to an empty line.
    Trailers,
    Complete,
}

impl Decoder {
    pub(crate) fn new(framing: Framing, limits: &Limits) -> Self {
        let state = match framing {
            Framing::Absent | Framing::Length(0) => State::Complete,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size,
            // FastCGI bodies are read by `Stream`.
            Framing::Records(_) => State::Complete,
        };
        Decoder { state, allowance: limits.body, trailers: 0, trailer_lines: 0 }
    }

    fn expected(&self) -> u64 {
        match self.state {
            State::Length(rest) | State::Chunk(rest) => rest,
            _ => 0,
        }
    }

    fn take(&mut self, most: u64) -> u64 {
        let taken = self.expected().min(most);
        self.state = match self.state {
            State::Length(rest) if rest == taken => State::Complete,
            State::Length(rest) => State::Length(rest - taken),
            State::Chunk(rest) if rest == taken => State::ChunkEnd,
            State::Chunk(rest) => State::Chunk(rest - taken),
            state => state,
        };
        taken
    }

    fn next(&mut self, bytes: &[u8], limits: &Limits) -> Part {
        match self.state {
            State::Complete => Part::Complete,
            _ if bytes.is_empty() => Part::NeedMore,
            State::Length(_) | State::Chunk(_) => Part::Content(self.take(bytes.len() as u64) as usize),
            State::ChunkEnd => match bytes {
                [b'\r', b'\n', ..] => {
                    self.state = State::Size;
                    Part::Framing(2)
                }
                [b'\r'] => Part::NeedMore,
                _ => Part::Rejected(Reject::bad("a chunk without CRLF behind its data")),
            },
            State::Size => self.size(bytes, limits).unwrap_or_else(Part::Rejected),
            State::Trailers => self.trailer(bytes, limits).unwrap_or_else(Part::Rejected),
        }
    }

    /// `chunk-size [ chunk-ext ] CRLF` (RFC 9112 section 7.1).
    fn size(&mut self, bytes: &[u8], limits: &Limits) -> Result<Part, Reject> {
        const MALFORMED: Reject = Reject::bad("a malformed chunk size");
        const MALFORMED_EXTENSION: Reject = Reject::bad("a malformed chunk extension");
        const TOO_LONG: Reject = Reject::bad("a chunk extension over the limit");
        let mut size: u64 = 0;
        let mut digits = 0;
        while let Some(digit) = bytes.get(digits).copied().and_then(hex) {
            if digits == 16 {
                return Err(MALFORMED);
            }
            size = size << 4 | u64::from(digit);
            digits += 1;
        }
        let rest = &bytes[digits..];
        let behind_space = trim_start(rest);
        match (rest, behind_space) {
            ([], _) => return Ok(Part::NeedMore),
            _ if digits == 0 => return Err(MALFORMED),
            _ if rest.len() - behind_space.len() > limits.chunk_line => return Err(TOO_LONG),
            ([b'\r', ..], _) | (_, [] | [b';', ..]) => {}
            _ => return Err(MALFORMED),
        }
        let Some(line) = line(rest, limits.chunk_line, MALFORMED_EXTENSION, TOO_LONG)? else {
            return Ok(Part::NeedMore);
        };
        if !is_chunk_extension(line) {
            return Err(MALFORMED_EXTENSION);
        }
        if size > self.allowance {
            return Err(Reject::BODY_TOO_LARGE);
        }
        self.allowance -= size;
        self.state = if size == 0 { State::Trailers } else { State::Chunk(size) };
        Ok(Part::Framing(digits + line.len() + 2))
    }

    /// One trailer field, or the empty line that ends the body (RFC 9112 section 7.1.2). Trailers are checked and
    /// dropped: WSGI has no place for them.
    fn trailer(&mut self, bytes: &[u8], limits: &Limits) -> Result<Part, Reject> {
        const TOO_LARGE: Reject = Reject::TRAILERS_TOO_LARGE;
        let left = limits.trailers - self.trailers;
        let Some(line) = line(bytes, left, MALFORMED, TOO_LARGE)? else { return Ok(Part::NeedMore) };
        if line.is_empty() {
            self.state = State::Complete;
            return Ok(Part::Framing(2));
        }
        self.trailers += line.len();
        self.trailer_lines += 1;
        if self.trailer_lines > limits.fields {
            return Err(TOO_LARGE);
        }
        check_trailer(&line[..memchr(b':', line).ok_or(MALFORMED)?])?;
        Ok(Part::Framing(line.len() + 2))
    }
}

/// Refuses a trailer field with this name unless it may stand behind a body.
pub(crate) fn check_trailer(name: &[u8]) -> Result<(), Reject> {
    match name {
        name if !is_token(name) => Err(MALFORMED),
        name if is_forbidden_trailer(name) => Err(Reject::bad("a trailer that only makes sense before the body")),
        _ => Ok(()),
    }
}

/// Fields for framing, routing, authentication or the meaning of the content: no trailers (RFC 9110 section 6.5.1).
fn is_forbidden_trailer(name: &[u8]) -> bool {
    const FORBIDDEN: &str = "transfer-encoding content-length trailer te connection keep-alive proxy-connection upgrade \
        host forwarded via max-forwards x-forwarded-for x-forwarded-host x-forwarded-proto expect \
        authorization proxy-authorization cookie cache-control content-encoding content-type content-range range \
        if-match if-none-match if-modified-since if-unmodified-since if-range";
    FORBIDDEN.split(' ').any(|forbidden| name.eq_ignore_ascii_case(forbidden.as_bytes()))
}

/// The bytes before the next CRLF; `None`: its end has not arrived. A faulty line is refused for the same reason whether
/// its end has arrived or not.
fn line(bytes: &[u8], limit: usize, malformed: Reject, too_long: Reject) -> Result<Option<&[u8]>, Reject> {
    let length = bytes.iter().position(|&byte| !is_field_content(byte)).unwrap_or(bytes.len());
    match bytes[length..] {
        _ if length > limit => Err(too_long),
        [] | [b'\r'] => Ok(None),
        [b'\r', b'\n', ..] => Ok(Some(&bytes[..length])),
        _ => Err(malformed),
    }
}
