//! A request parser with its receive buffer, as a server uses them, for tests.
//!
//! Tests of other crates include it by `#[path = "…/http/tests/receiver/mod.rs"] mod receiver;`.

// Each test uses a part, and one re-exports it.
#![allow(dead_code, missing_docs, unreachable_pub)]

use poorhttp_http::{Event, Head, Limits, ReadBuffer, Reject, RequestParser};

/// A request, complete or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub head: Head,
    /// The bytes of its head.
    pub bytes: Vec<u8>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn method(&self) -> &[u8] {
        self.head.method.of(&self.bytes)
    }

    pub fn target(&self) -> &[u8] {
        self.head.target.of(&self.bytes)
    }

    /// Names and values of its fields.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.fields.iter().map(|field| (field.name.of(&self.bytes), field.value.of(&self.bytes)))
    }
}

/// The result of some received bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The complete requests.
    pub messages: Vec<Message>,
    /// The request with a complete head and an incomplete body.
    pub unfinished: Option<Message>,
    /// Status and reason of the refusal.
    pub rejected: Option<(u16, &'static str)>,
    /// Whether bytes are left that belong to no complete message.
    pub rest: bool,
    /// Management replies to send.
    pub replies: Vec<u8>,
}

#[derive(Default)]
pub struct Receiver {
    pub parser: RequestParser,
    pub buffer: ReadBuffer,
    pub limits: Limits,
    pub outcome: Outcome,
    /// No more bytes are read.
    pub closed: bool,
    /// Remembers every head it can.
    pub remembers: bool,
    /// Bytes received.
    pub received: usize,
    /// `received` at the end of each message: its position, if the bytes came one by one.
    pub ends: Vec<usize>,
}

impl Receiver {
    /// Receives bytes, as many at once as the buffer has room for.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.closed {
            let room = self.buffer.room(bytes.len() as u64);
            let taken = room.len().min(bytes.len());
            assert!(taken > 0, "the buffer has no room");
            room[..taken].copy_from_slice(&bytes[..taken]);
            self.buffer.received(taken);
            self.received += taken;
            bytes = &bytes[taken..];
            // Bounded by the limits: a head and a line after it, twice because the buffer doubles.
            let line = self.limits.chunk_line.max(self.limits.trailers);
            let most = 2 * (self.limits.head + line + ReadBuffer::MAX_ROOM);
            assert!(self.buffer.capacity() <= most, "{} bytes are held", self.buffer.capacity());
            self.poll();
        }
    }

    fn poll(&mut self) {
        // As if an application received the body, sometimes in small pieces.
        let most = if self.received.is_multiple_of(3) { 1 + self.received % 7 } else { usize::MAX };
        // Of a head that has just come: whether its body has come with it.
        let mut has_whole_body = None;
        loop {
            match self.parser.poll_up_to(&mut self.buffer, &self.limits, most) {
                Event::NeedMore => {
                    assert_ne!(has_whole_body, Some(true), "the body is not complete");
                    return;
                }
                Event::Head => {
                    has_whole_body = Some(self.parser.has_whole_body(&self.buffer, &self.limits));
                    let (head, bytes) = (self.buffer.head.clone(), self.buffer.head_bytes().to_vec());
                    // The connection has no TLS.
                    if let Err(reject) = head.check_scheme(None) {
                        return self.refuse(reject);
                    }
                    self.outcome.unfinished = Some(Message { head, bytes, body: Vec::new() });
                }
                Event::Content(content) => {
                    assert!(!content.is_empty() && content.len() <= most, "{} bytes of content", content.len());
                    let message = self.outcome.unfinished.as_mut().expect("content belongs to a head");
                    message.body.extend_from_slice(content);
                }
                Event::ManagementReply(answer) => self.outcome.replies.extend_from_slice(&answer),
                Event::Complete => {
                    assert!(has_whole_body.take().unwrap_or(true), "the body was complete");
                    let message = self.outcome.unfinished.take().expect("a complete message has a head");
                    // Neither moving the buffer nor reading the body touches the head.
                    assert_eq!(self.buffer.head_bytes(), message.bytes);
                    assert_eq!(self.buffer.head, message.head);
                    self.outcome.messages.push(message);
                    self.ends.push(self.received);
                    if self.remembers && !self.buffer.repeated {
                        self.parser.remember(&self.buffer);
                    }
                    self.closed = !self.buffer.head.keep_alive;
                    if self.closed {
                        return;
                    }
                    self.parser.next_message(&mut self.buffer);
                }
                Event::Rejected(reject) => {
                    assert!(has_whole_body.unwrap_or(true), "the body was refused");
                    return self.refuse(reject);
                }
            }
        }
    }

    fn refuse(&mut self, reject: Reject) {
        self.outcome.rejected = Some((reject.status, reject.reason));
        self.outcome.unfinished = None;
        self.closed = true;
    }

    /// The result of everything received.
    pub fn outcome(mut self) -> Outcome {
        self.outcome.rest = !self.closed && !self.buffer.is_drained();
        self.outcome
    }
}

/// Receives bytes that arrive in these parts.
pub fn receive<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    receive_within(&Limits::default(), parts)
}

/// Receives bytes under other limits.
pub fn receive_within<'a>(limits: &Limits, parts: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut receiver = Receiver { limits: limits.clone(), ..Receiver::default() };
    parts.into_iter().for_each(|part| receiver.feed(part));
    receiver.outcome()
}
