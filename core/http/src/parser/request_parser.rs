//! The receiving half of a connection.

use crate::limits::Limits;
use crate::parser::body::{Body, Decoder, Part};
use crate::parser::gateway;
use crate::parser::gateway::fastcgi::{Opened, Opening, Stream};
use crate::parser::head::{self, Framing, Head, Parsed};
use crate::parser::proxy_protocol::{self, ProxyHeader};
use crate::parser::version;
use crate::protocol::{Dialect, Protocol};
use crate::reject::Reject;

/// What the received bytes mean.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Nothing more can be said before more bytes arrive.
    NeedMore,
    /// A head is complete: [`ReadBuffer::head`] and [`ReadBuffer::head_bytes`] describe it.
    Head,
    /// Some octets of the body, without framing.
    Content(&'a [u8]),
    /// Something else was asked, and this is the answer: to be sent before any other.
    ManagementReply(Vec<u8>),
    /// The message is complete. [`RequestParser::next_message`] goes on to the one behind it.
    Complete,
    /// The message is refused. Nothing behind it will be read.
    Rejected(Reject),
}

/// Received bytes that are still needed, and the head found among them. A connection needs one only while a
/// message is in hand, so a few can serve many idle connections.
///
/// `bytes[base..base + head.length]` is the head of the message in hand, `bytes[read..end]` is not yet looked at.
#[derive(Clone, Debug, Default)]
pub struct ReadBuffer {
    bytes: Vec<u8>,
    base: usize,
    read: usize,
    end: usize,
    /// The head of the message in hand.
    pub head: Head,
    /// That head is, octet for octet, the one that [`RequestParser::remember`] was told to remember.
    pub repeated: bool,
}

/// A head whose octets meant something once, and mean the same again.
#[derive(Clone, Debug)]
struct Remembered {
    octets: Box<[u8]>,
    head: Head,
}

impl ReadBuffer {
    /// Octets of room that are made at first: most requests fit, none of them needs a second `recv`.
    pub const ROOM: usize = 8 << 10;
    /// Octets of room while a large body is read.
    pub const MOST_ROOM: usize = 64 << 10;

    /// The octets of the head of the message in hand.
    pub fn head_bytes(&self) -> &[u8] {
        self.bytes.get(self.base..self.base + self.head.length).unwrap_or_default()
    }

    /// Whether every received octet was used.
    pub fn is_drained(&self) -> bool {
        self.read == self.end
    }

    /// Whether something in it is still needed: octets to be looked at, or the head of a message whose body is to come.
    pub fn is_in_use(&self) -> bool {
        !self.is_drained() || self.head.length > 0
    }

    /// Whether the message in hand, even one that is refused, is a HEAD request: the answer to it has no content.
    pub fn is_head_request(&self) -> bool {
        self.bytes[self.base..self.end].starts_with(b"HEAD ")
    }

    /// Octets held.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Room to receive into; empty only if there is no memory for it. What was received is said by [`ReadBuffer::received`].
    /// `wanted` bytes are made if it is full, or was filled by the last read.
    #[inline]
    pub fn room(&mut self, wanted: u64) -> &mut [u8] {
        if self.end == self.bytes.len() {
            self.make_room(wanted);
        } else {
            self.forget_content();
        }
        &mut self.bytes[self.end..]
    }

    /// Makes room where the last read has filled it, or none was made yet.
    #[cold]
    fn make_room(&mut self, wanted: u64) {
        let wanted = usize::try_from(wanted).unwrap_or(Self::MOST_ROOM).clamp(Self::ROOM, Self::MOST_ROOM);
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

    /// Writes over content that was looked at, if nothing stands behind it.
    #[inline]
    fn forget_content(&mut self) {
        let kept = self.base + self.head.length;
        if self.read == self.end && self.read > kept {
            (self.read, self.end) = (kept, kept);
        }
    }

    /// Gives back the room that was made for a body, if all that was received has been looked at.
    pub fn shrink(&mut self) {
        if self.bytes.len() > 2 * Self::ROOM && self.is_drained() {
            let kept = self.base + self.head.length;
            (self.read, self.end) = (kept, kept);
            self.bytes.truncate(kept.max(Self::ROOM));
            self.bytes.shrink_to_fit();
        }
    }

    /// Says how much of the [`ReadBuffer::room`] was filled.
    pub fn received(&mut self, octets: usize) {
        self.end = (self.end + octets).min(self.bytes.len());
    }

    /// Moves what is needed to the front. Positions in the head are relative to it, so they stay right.
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

    /// Forgets everything but its memory.
    pub fn clear(&mut self) {
        (self.read, self.end) = (0, 0);
        self.forget_message();
    }

    /// Takes so many octets that were not looked at.
    fn take(&mut self, octets: usize) -> &[u8] {
        let start = self.read;
        self.read += octets;
        &self.bytes[start..self.read]
    }

    /// Received bytes that were not looked at.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.read..self.end]
    }

    /// Takes what a proxy has put before the first message. `None`: more of it must come.
    pub fn take_proxy_header(&mut self) -> Result<Option<ProxyHeader>, Reject> {
        let Some((header, length)) = proxy_protocol::parse(self.unread())? else { return Ok(None) };
        self.read += length;
        self.base = self.read;
        Ok(Some(header))
    }

    /// Forgets the message in hand and keeps what was received behind it.
    fn forget_message(&mut self) {
        self.head.length = 0;
        self.repeated = false;
        if self.read == self.end {
            (self.read, self.end) = (0, 0);
        }
        self.base = self.read;
    }
}

/// Empty lines that may stand before a request. One is what old clients sent behind a body; many are an attempt to
/// keep a connection without ever asking for anything.
const MOST_EMPTY_LINES: u8 = 8;

/// Where in a message the connection is.
#[derive(Clone, Debug)]
enum State {
    /// Before or in a head.
    Head,
    Body(Body),
    Complete,
    Rejected(Reject),
}

/// The state machine. It borrows its [`ReadBuffer`] for each step, so that an idle connection is only this.
#[derive(Clone, Debug)]
pub struct RequestParser {
    protocol: Protocol,
    /// What is known of a FastCGI request whose variables are still coming.
    opening: Opening,
    state: State,
    /// Unread octets when the head was last found incomplete. Before twice as many or an empty line have come there is
    /// nothing to gain from looking again: a head that arrives octet by octet is not parsed for each of them.
    seen: usize,
    /// Empty lines skipped before this head.
    skipped: u8,
    remembered: Option<Box<Remembered>>,
}

impl Default for RequestParser {
    fn default() -> Self {
        Self::of(Protocol::Http)
    }
}

impl RequestParser {
    /// The beginning of a connection on which this is spoken.
    pub fn of(protocol: Protocol) -> Self {
        RequestParser {
            protocol,
            opening: Opening::default(),
            state: State::Head,
            seen: 0,
            skipped: 0,
            remembered: None,
        }
    }

    /// The next event. Asked again and again until it is [`Event::NeedMore`], [`Event::Complete`] or
    /// [`Event::Rejected`], which repeat until the state is changed.
    #[inline]
    pub fn poll<'a>(&mut self, buffer: &'a mut ReadBuffer, limits: &Limits) -> Event<'a> {
        loop {
            match &mut self.state {
                State::Head => return self.poll_head(buffer, limits),
                State::Body(body) => match body.next(buffer.unread(), limits) {
                    Part::NeedMore => return Event::NeedMore,
                    Part::Framing(octets) => buffer.read += octets,
                    Part::Content(octets) => return Event::Content(buffer.take(octets)),
                    Part::ManagementReply(octets, answer) => {
                        buffer.read += octets;
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

    fn poll_head<'a>(&mut self, buffer: &mut ReadBuffer, limits: &Limits) -> Event<'a> {
        if self.protocol != Protocol::Http {
            return self.poll_packet(buffer, limits);
        }
        // Empty lines before a request line are skipped (RFC 9112 section 2.2).
        while buffer.unread().starts_with(b"\r\n") && self.seen == 0 {
            self.skipped += 1;
            if self.skipped > MOST_EMPTY_LINES {
                self.state = State::Rejected(Reject::bad("empty lines instead of a request"));
                return self.rejected();
            }
            buffer.read += 2;
            buffer.base = buffer.read;
        }
        let unread = buffer.unread();
        if unread.is_empty() || unread == b"\r" {
            return Event::NeedMore;
        }
        if unread.starts_with(b"\n") {
            self.state = State::Rejected(Reject::bad("a line feed without a carriage return"));
            return self.rejected();
        }
        if let Some(remembered) = &self.remembered
            && unread.starts_with(&remembered.octets)
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
                    Framing::Records(said) => State::Body(Body::Recorded(Stream::new(self.opening.request, said))),
                    framing => State::Body(Body::Framed(Decoder::new(framing, limits))),
                };
                Event::Head
            }
            Parsed::Rejected(reject) => {
                self.state = State::Rejected(reject);
                self.rejected()
            }
        }
    }

    /// Remembers the head of the message in hand, if it has no body: the next one with the same octets is not parsed
    /// again. Clients that ask for the same thing over and over are many, and a head that ends with an empty line
    /// means the same whatever stands behind it. `false`: it has a body, and nothing is remembered now.
    pub fn remember(&mut self, buffer: &ReadBuffer) -> bool {
        self.remembered = match buffer.head.framing {
            // What a web server has sent is not what is in the buffer by now.
            Framing::Absent if self.protocol == Protocol::Http => {
                let octets = buffer.head_bytes().into();
                Some(Box::new(Remembered { octets, head: buffer.head.clone() }))
            }
            Framing::Absent | Framing::Length(_) | Framing::Chunked | Framing::Records(_) => None,
        };
        self.remembered.is_some()
    }

    fn rejected<'a>(&self) -> Event<'a> {
        match self.state {
            State::Rejected(reject) => Event::Rejected(reject),
            _ => Event::NeedMore,
        }
    }

    /// Whether bytes came since the last look that can change its outcome: a line end, what is meant to be one, or enough
    /// for a limit.
    fn worth_parsing(&self, unread: &[u8], limits: &Limits) -> bool {
        let fresh = &unread[self.seen.min(unread.len())..];
        // The last octet that was seen may be a carriage return, whose line feed would have to come now.
        let lines = &unread[self.seen.min(unread.len()).saturating_sub(1)..];
        memchr::memchr(b'\n', fresh).is_some()
            || memchr::memchr(b'\r', lines).is_some_and(|at| at + 1 < lines.len())
            || (unread.len() > limits.request_line && self.seen <= limits.request_line + 1)
            || unread.len() > limits.head
            || version::is_overrun(unread)
            || unread.len() >= self.seen * 2
    }

    /// Goes on to the message behind the one that is [`Event::Complete`].
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
            State::Complete | State::Rejected(_) => false,
        }
    }

    /// Whether a message that is complete may still be aborted by a record behind it.
    pub fn is_abortable(&self) -> bool {
        self.protocol == Protocol::Fastcgi
    }

    /// Whether `bytes`, which follow the message in hand, begin with a record that aborts it.
    pub fn is_aborted_by(&self, bytes: &[u8]) -> bool {
        self.is_abortable() && gateway::fastcgi::is_abort(bytes, self.opening.request)
    }

    /// How the message in hand is answered, even one that is refused.
    pub fn dialect(&self) -> Dialect {
        Dialect { protocol: self.protocol, request: self.opening.request }
    }

    /// Whether the octets that are missing belong to a body.
    pub fn is_in_body(&self) -> bool {
        matches!(self.state, State::Body(_))
    }

    /// Bytes of content that follow with nothing between them. If the [`ReadBuffer`] is drained, they may be received elsewhere
    /// and told by [`RequestParser::take_content`].
    pub fn expected(&self) -> u64 {
        match &self.state {
            State::Body(body) => body.expected(),
            _ => 0,
        }
    }

    /// Tells that so many bytes of content were received elsewhere, no more than [`RequestParser::expected`].
    pub fn take_content(&mut self, bytes: u64) {
        if let State::Body(body) = &mut self.state {
            body.take(bytes);
        }
    }
}
