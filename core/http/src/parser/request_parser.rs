//! The request parser and its receive buffer: bytes in, events out.

use crate::limits::Limits;
use crate::parser::body::{Body, Decoder};
use crate::parser::gateway;
use crate::parser::gateway::fastcgi::{Opened, Opening, Stream};
use crate::parser::head;
use crate::parser::proxy_protocol::{self, ProxyHeader};
use crate::parser::types::{Framing, Head, Parsed, Part};
use crate::parser::version;
use crate::protocol::{Dialect, Protocol};
use crate::reject::Reject;

/// A step of the parser.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// More bytes are needed.
    NeedMore,
    /// A head is complete: [`ReadBuffer::head`] and [`ReadBuffer::head_bytes`] describe it.
    Head,
    /// Bytes of the body, without framing.
    Content(&'a [u8]),
    /// The reply to a FastCGI management record, to be sent before any other output.
    ManagementReply(Vec<u8>),
    /// The message is complete. [`RequestParser::next_message`] proceeds to the one after it.
    Complete,
    /// The message is refused, and nothing after it is read.
    Rejected(Reject),
}

/// Received bytes that are still needed, and the head found among them. A connection needs a buffer only while a
/// message is in flight, so a few buffers serve many idle connections.
///
/// `bytes[base..base + head.length]` is the head of the current message; `bytes[read..end]` is not parsed yet.
#[derive(Clone, Debug, Default)]
pub struct ReadBuffer {
    bytes: Vec<u8>,
    base: usize,
    read: usize,
    end: usize,
    /// The head of the current message.
    pub head: Head,
    /// The head equals, byte for byte, the one given to [`RequestParser::remember`].
    pub repeated: bool,
}

/// A parsed head, reused when the next head has the same bytes.
#[derive(Clone, Debug)]
struct Remembered {
    bytes: Box<[u8]>,
    head: Head,
}

impl ReadBuffer {
    /// Initial capacity: most requests fit into it and need only one `recv`.
    pub const ROOM: usize = 8 << 10;
    /// Capacity while a large body is read.
    pub const MAX_ROOM: usize = 64 << 10;

    /// A buffer with a head that was received elsewhere: its text, and positions in that; or with a request line that is refused.
    pub fn with_head(head: Head, text: Vec<u8>) -> Self {
        let length = text.len();
        ReadBuffer { bytes: text, base: 0, read: length, end: length, head: Head { length, ..head }, repeated: false }
    }

    /// The bytes of the head of the current message.
    pub fn head_bytes(&self) -> &[u8] {
        self.bytes.get(self.base..self.base + self.head.length).unwrap_or_default()
    }

    /// Whether all received bytes are parsed.
    pub fn is_drained(&self) -> bool {
        self.read == self.end
    }

    /// Whether the buffer is still needed: for unparsed bytes, or for the head of a message whose body is to come.
    pub fn is_in_use(&self) -> bool {
        !self.is_drained() || self.head.length > 0
    }

    /// Whether the current request is about the server, not about a resource: `OPTIONS *` (RFC 9110 section 9.3.7).
    #[inline]
    pub fn asks_server(&self) -> bool {
        // The length comes first: other methods cost no look at the bytes.
        self.head.method.length() == b"OPTIONS".len() && self.head.path().of(self.head_bytes()) == b"*"
    }

    /// Whether the current message, even a refused one, is a HEAD request: its response has no content.
    pub fn is_head_request(&self) -> bool {
        self.bytes[self.base..self.end].starts_with(b"HEAD ")
    }

    /// The first line of the current message as far as it has come, even of a refused one, without its end; at most so many bytes.
    pub fn first_line(&self, most: usize) -> &[u8] {
        let message = &self.bytes[self.base..self.end];
        let message = &message[..message.len().min(most)];
        let end = message.iter().position(|byte| b"\r\n".contains(byte));
        &message[..end.unwrap_or(message.len())]
    }

    /// Bytes allocated.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Free space to receive into; empty only if memory is exhausted. [`ReadBuffer::received`] reports how much was
    /// filled. The buffer grows to `wanted` bytes if it is full, or was filled by the last read.
    #[inline]
    pub fn room(&mut self, wanted: u64) -> &mut [u8] {
        if self.end == self.bytes.len() {
            self.make_room(wanted);
        } else {
            self.forget_content();
        }
        &mut self.bytes[self.end..]
    }

    /// Allocates the buffer, or enlarges it after a read that has filled it.
    #[cold]
    fn make_room(&mut self, wanted: u64) {
        let wanted = usize::try_from(wanted).unwrap_or(Self::MAX_ROOM).clamp(Self::ROOM, Self::MAX_ROOM);
        self.forget_content();
        if self.end == self.bytes.len() {
            self.compact();
        }
        if self.end == self.bytes.len() || self.bytes.len() < wanted {
            let grown = (self.bytes.len() * 2).max(self.end + wanted);
            if self.bytes.try_reserve_exact(grown - self.bytes.len()).is_ok() {
                self.bytes.resize(grown, 0);
            }
        }
    }

    /// Reuses the space of parsed content if nothing follows it.
    #[inline]
    fn forget_content(&mut self) {
        let kept = self.base + self.head.length;
        if self.read == self.end && self.read > kept {
            (self.read, self.end) = (kept, kept);
        }
    }

    /// Frees the space allocated for a body if all received bytes are parsed.
    pub fn shrink(&mut self) {
        if self.bytes.len() > 2 * Self::ROOM && self.is_drained() {
            let kept = self.base + self.head.length;
            (self.read, self.end) = (kept, kept);
            self.bytes.truncate(kept.max(Self::ROOM));
            self.bytes.shrink_to_fit();
        }
    }

    /// Counts bytes written into [`ReadBuffer::room`].
    pub fn received(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// Moves the bytes still needed to the front. Positions in the head are relative to `base` and stay valid.
    fn compact(&mut self) {
        let kept = self.head.length;
        if self.base > 0 {
            self.bytes.copy_within(self.base..self.base + kept, 0);
        }
        if self.read > kept {
            self.bytes.copy_within(self.read..self.end, kept);
            self.end -= self.read - kept;
            self.read = kept;
        }
        self.base = 0;
    }

    /// Removes all bytes and keeps the allocation.
    pub fn clear(&mut self) {
        (self.read, self.end) = (0, 0);
        self.forget_message();
    }

    /// Takes unparsed bytes.
    fn take(&mut self, count: usize) -> &[u8] {
        let start = self.read;
        self.read += count;
        &self.bytes[start..self.read]
    }

    /// Received bytes that are not parsed yet.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.read..self.end]
    }

    /// Takes the PROXY protocol header before the first message. `None`: it is incomplete.
    pub fn take_proxy_header(&mut self) -> Result<Option<ProxyHeader>, Reject> {
        let Some((header, length)) = proxy_protocol::parse(self.unread())? else { return Ok(None) };
        self.read += length;
        self.base = self.read;
        Ok(Some(header))
    }

    /// Removes the current message and keeps the bytes received after it.
    fn forget_message(&mut self) {
        self.head.length = 0;
        self.repeated = false;
        if self.read == self.end {
            (self.read, self.end) = (0, 0);
        }
        self.base = self.read;
    }
}

/// Empty lines accepted before a request. Old clients sent one after a body; many are an attempt to keep a connection
/// open without ever sending a request.
const MAX_EMPTY_LINES: u8 = 8;

/// The part of a message that is parsed next.
#[derive(Clone, Debug, Default)]
enum State {
    /// Before or in a head.
    #[default]
    Head,
    /// The head was received elsewhere, and is in the buffer; content follows or not.
    Given {
        has_content: bool,
    },
    Body(Body),
    Complete,
    Rejected(Reject),
}

/// The state machine. It borrows its [`ReadBuffer`] for each step, so an idle connection has only this.
#[derive(Clone, Debug, Default)]
pub struct RequestParser {
    protocol: Protocol,
    /// The FastCGI request whose variables are still incomplete.
    opening: Opening,
    state: State,
    /// Unparsed bytes when the head was last found incomplete. The head is parsed again only after twice as many bytes
    /// or an empty line, so that a head sent byte by byte is not parsed for each byte.
    seen: usize,
    /// Empty lines skipped before this head.
    skipped: u8,
    remembered: Option<Box<Remembered>>,
}

impl RequestParser {
    /// The parser of a new connection with this protocol.
    pub fn of(protocol: Protocol) -> Self {
        RequestParser { protocol, ..Self::default() }
    }

    /// The parser of one stream of a connection that carries many: its head is in the buffer ([`ReadBuffer::with_head`]), and content
    /// follows without framing, or none.
    pub fn of_stream(has_content: bool) -> Self {
        RequestParser { state: State::Given { has_content }, ..Self::default() }
    }

    /// The stream has ended, and so has content without framing. `false`: there is none that may end.
    pub fn end_content(&mut self) -> bool {
        let ends = matches!(self.state, State::Body(Body::Unframed(..)));
        if ends {
            self.state = State::Complete;
        }
        ends
    }

    /// The next event. Call it until it returns [`Event::NeedMore`], [`Event::Complete`] or [`Event::Rejected`], which
    /// repeat until the state changes.
    #[inline]
    pub fn poll<'a>(&mut self, buffer: &'a mut ReadBuffer, limits: &Limits) -> Event<'a> {
        self.poll_up_to(buffer, limits, usize::MAX)
    }

    /// The same with at most so many bytes of content in one event, at least 1; the others stay in the buffer.
    // Each request polls three times: three calls would cost 1 % of its instructions.
    #[inline(always)]
    pub fn poll_up_to<'a>(&mut self, buffer: &'a mut ReadBuffer, limits: &Limits, most: usize) -> Event<'a> {
        loop {
            match &mut self.state {
                State::Head => return self.poll_head(buffer, limits),
                State::Given { has_content } => {
                    self.state = match has_content {
                        true => State::Body(Body::Unframed(
                            0,
                            Some(buffer.head.body_length().unwrap_or(0)).filter(|&length| length > 0),
                        )),
                        false => State::Complete,
                    };
                    return Event::Head;
                }
                State::Body(body) => match body.next_up_to(buffer.unread(), limits, most) {
                    Part::NeedMore => return Event::NeedMore,
                    Part::Framing(count) => buffer.read += count,
                    Part::Content(count) => return Event::Content(buffer.take(count)),
                    Part::ManagementReply(count, answer) => {
                        buffer.read += count;
                        return Event::ManagementReply(answer);
                    }
                    Part::Complete => self.state = State::Complete,
                    Part::Rejected(reject) => self.state = State::Rejected(reject),
                },
                State::Complete => return Event::Complete,
                State::Rejected(reject) => return Event::Rejected(*reject),
            }
        }
    }

    /// Whether empty lines came before this head.
    pub fn has_skipped_lines(&self) -> bool {
        self.skipped > 0
    }

    fn poll_head<'a>(&mut self, buffer: &mut ReadBuffer, limits: &Limits) -> Event<'a> {
        if self.protocol != Protocol::Http {
            return self.poll_packet(buffer, limits);
        }
        // Empty lines before a request line are skipped (RFC 9112 section 2.2).
        while buffer.unread().starts_with(b"\r\n") && self.seen == 0 {
            self.skipped += 1;
            if self.skipped > MAX_EMPTY_LINES {
                return self.reject(Reject::bad("empty lines instead of a request"));
            }
            buffer.read += 2;
            buffer.base = buffer.read;
        }
        let unread = buffer.unread();
        if unread.is_empty() || unread == b"\r" {
            return Event::NeedMore;
        }
        if unread.starts_with(b"\n") {
            return self.reject(head::BARE_LINE_FEED);
        }
        if let Some(remembered) = &self.remembered
            && unread.starts_with(&remembered.bytes)
        {
            self.seen = 0;
            buffer.head.copy_from(&remembered.head);
            buffer.repeated = true;
            buffer.base = buffer.read;
            buffer.read += buffer.head.length;
            self.state = State::Complete;
            return Event::Head;
        }
        if self.seen > 0 && !self.worth_parsing(unread, limits) {
            return Event::NeedMore;
        }
        let bytes = &buffer.bytes[buffer.read..buffer.end];
        let seen = bytes.len();
        let parsed = head::parse(bytes, limits, &mut buffer.head);
        self.found(parsed, seen, buffer, limits)
    }

    fn poll_packet<'a>(&mut self, buffer: &mut ReadBuffer, limits: &Limits) -> Event<'a> {
        let bytes = &mut buffer.bytes[buffer.read..buffer.end];
        let seen = bytes.len();
        let parsed = match self.protocol {
            Protocol::Fastcgi => match self.opening.poll(bytes, limits) {
                Ok(Opened::NeedMore) => Parsed::Partial,
                Ok(Opened::ManagementReply(answer)) => return Event::ManagementReply(answer),
                Ok(Opened::Complete(packet)) => {
                    gateway::parse_opened(&self.opening, &packet, bytes, limits, &mut buffer.head)
                }
                Err(reject) => Parsed::Rejected(reject),
            },
            protocol => gateway::parse(protocol, bytes, limits, &mut buffer.head),
        };
        self.found(parsed, seen, buffer, limits)
    }

    fn found<'a>(&mut self, parsed: Parsed, seen: usize, buffer: &mut ReadBuffer, limits: &Limits) -> Event<'a> {
        match parsed {
            Parsed::Partial => {
                self.seen = seen;
                Event::NeedMore
            }
            Parsed::Complete => {
                self.seen = 0;
                buffer.base = buffer.read;
                buffer.read += buffer.head.length;
                self.state = match buffer.head.framing {
                    Framing::Absent | Framing::Length(0) => State::Complete,
                    Framing::Records(length) => State::Body(Body::Recorded(Stream::new(self.opening.request, length))),
                    framing => State::Body(Body::Framed(Decoder::new(framing, limits))),
                };
                Event::Head
            }
            Parsed::Rejected(reject) => self.reject(reject),
        }
    }

    /// Remembers the head of the current message if it has no body: the next head with the same bytes is not parsed
    /// again, because clients often repeat a request. `false`: the message has a body or is very long, and no head is remembered.
    pub fn remember(&mut self, buffer: &ReadBuffer) -> bool {
        self.remembered = match buffer.head.framing {
            // Names of gateway variables are rewritten in the buffer, so it does not hold what the web server sends.
            Framing::Absent if self.protocol == Protocol::Http && buffer.head.length <= Limits::REMEMBERED => {
                let bytes = buffer.head_bytes().into();
                Some(Box::new(Remembered { bytes, head: buffer.head.clone() }))
            }
            Framing::Absent | Framing::Length(_) | Framing::Chunked | Framing::Records(_) => None,
        };
        self.remembered.is_some()
    }

    fn reject<'a>(&mut self, reject: Reject) -> Event<'a> {
        self.state = State::Rejected(reject);
        Event::Rejected(reject)
    }

    /// Whether the bytes since the last parse can change its result: a CR, an LF, or enough bytes for a limit.
    fn worth_parsing(&self, unread: &[u8], limits: &Limits) -> bool {
        let fresh = &unread[self.seen.min(unread.len())..];
        // The last byte of the previous parse may be a carriage return whose line feed comes first now.
        let lines = &unread[self.seen.min(unread.len()).saturating_sub(1)..];
        memchr::memchr(b'\n', fresh).is_some()
            || memchr::memchr(b'\r', lines).is_some_and(|at| at + 1 < lines.len())
            || (unread.len() > limits.request_line && self.seen <= limits.request_line + 1)
            || unread.len() > limits.head
            || version::is_overrun(unread)
            || unread.len() >= self.seen * 2
    }

    /// Proceeds to the message after a complete one.
    pub fn next_message(&mut self, buffer: &mut ReadBuffer) {
        if matches!(self.state, State::Complete) {
            buffer.forget_message();
            self.opening = Opening::default();
            self.state = State::Head;
            self.skipped = 0;
        }
    }

    /// Whether a message has begun and is not complete.
    pub fn is_mid_message(&self, buffer: Option<&ReadBuffer>) -> bool {
        match self.state {
            State::Head => buffer.is_some_and(|buffer| !buffer.is_drained()),
            State::Body(_) => true,
            State::Given { .. } | State::Complete | State::Rejected(_) => false,
        }
    }

    /// Whether a record after a complete message may still abort it (FastCGI).
    pub fn is_abortable(&self) -> bool {
        self.protocol == Protocol::Fastcgi
    }

    /// Whether `bytes`, which follow the current message, begin with a record that aborts it.
    pub fn is_aborted_by(&self, bytes: &[u8]) -> bool {
        self.is_abortable() && gateway::fastcgi::is_abort(bytes, self.opening.request)
    }

    /// How the current message is answered, even a refused one.
    pub fn dialect(&self) -> Dialect {
        Dialect { protocol: self.protocol, request: self.opening.request }
    }

    /// Whether the missing bytes belong to a body.
    pub fn is_in_body(&self) -> bool {
        matches!(self.state, State::Body(_))
    }

    /// Whether the message is complete.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// Whether the buffer holds all that is missing of the body, or something for which it is refused.
    pub fn has_whole_body(&self, buffer: &ReadBuffer, limits: &Limits) -> bool {
        match &self.state {
            State::Body(body) => body.ends_in(buffer.unread(), limits),
            _ => true,
        }
    }

    /// Bytes of content that follow without framing between them. If the [`ReadBuffer`] is drained, they may be
    /// received elsewhere and reported with [`RequestParser::take_content`].
    pub fn expected(&self) -> u64 {
        match &self.state {
            State::Body(body) => body.expected(),
            _ => 0,
        }
    }

    /// Counts bytes of content received elsewhere, at most [`RequestParser::expected`].
    pub fn take_content(&mut self, bytes: u64) {
        if let State::Body(body) = &mut self.state {
            body.take(bytes);
        }
    }
}
