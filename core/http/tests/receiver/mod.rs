//! The receiving side of a connection, as a server has it. For every test that wants it:
//! `#[path = "…/http/tests/receiver/mod.rs"] mod receiver;` in another crate.

// Each of them uses a part, and one passes it on.
#![allow(dead_code, unreachable_pub)]

use poorhttp_http::{Event, Head, Limits, ReadBuffer, Reject, RequestParser};

/// A request, or what there is of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// What its head says.
    pub head: Head,
    /// The octets of its head.
    pub octets: Vec<u8>,
    /// Its content.
    pub body: Vec<u8>,
}

impl Message {
    /// Its method.
    pub fn method(&self) -> &[u8] {
        self.head.method.of(&self.octets)
    }

    /// Its target.
    pub fn target(&self) -> &[u8] {
        self.head.target.of(&self.octets)
    }

    /// Names and values of its fields.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.fields.iter().map(|field| (field.name.of(&self.octets), field.value.of(&self.octets)))
    }
}

/// What a server would make of some octets.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The requests that are complete.
    pub messages: Vec<Message>,
    /// The one whose head is complete, but not its body.
    pub unfinished: Option<Message>,
    /// Status and reason of the refusal.
    pub rejected: Option<(u16, &'static str)>,
    /// Octets are left over that belong to no complete message.
    pub rest: bool,
    /// What is to be sent beside the answers.
    pub asides: Vec<u8>,
}

/// The receiving side of a connection.
#[derive(Default)]
pub struct Receiver {
    /// The state machine.
    pub parser: RequestParser,
    /// Its buffer.
    pub buffer: ReadBuffer,
    /// What it is held to.
    pub limits: Limits,
    /// What came out so far.
    pub outcome: Outcome,
    /// Nothing more is read.
    pub closed: bool,
    /// Remembers every head it can.
    pub remembers: bool,
    /// Octets received.
    pub received: usize,
    /// How many octets had been received when each message was complete: where it ends, if they came one by one.
    pub ends: Vec<usize>,
}

impl Receiver {
    /// Receives octets, as many at once as there is room for.
    pub fn feed(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() && !self.closed {
            let room = self.buffer.room(octets.len() as u64);
            let taken = room.len().min(octets.len());
            assert!(taken > 0, "no room was made");
            room[..taken].copy_from_slice(&octets[..taken]);
            self.buffer.received(taken);
            self.received += taken;
            octets = &octets[taken..];
            // Never more than the limits: a head and a line behind it, twice because the buffer doubles.
            let line = self.limits.chunk_line.max(self.limits.trailers);
            let most = 2 * (self.limits.head + line + ReadBuffer::MOST_ROOM);
            assert!(self.buffer.capacity() <= most, "{} octets are held", self.buffer.capacity());
            self.poll();
        }
    }

    fn poll(&mut self) {
        loop {
            match self.parser.poll(&mut self.buffer, &self.limits) {
                Event::NeedMore => return,
                Event::Head => {
                    let (head, octets) = (self.buffer.head.clone(), self.buffer.head_bytes().to_vec());
                    // Nobody speaks TLS for this connection.
                    if let Err(reject) = head.check_scheme(None) {
                        return self.refuse(reject);
                    }
                    self.outcome.unfinished = Some(Message { head, octets, body: Vec::new() });
                }
                Event::Content(content) => {
                    assert!(!content.is_empty(), "content that is nothing");
                    let message = self.outcome.unfinished.as_mut().expect("content belongs to a head");
                    message.body.extend_from_slice(content);
                }
                Event::ManagementReply(answer) => self.outcome.asides.extend_from_slice(&answer),
                Event::Complete => {
                    let message = self.outcome.unfinished.take().expect("a complete message has a head");
                    // Neither moving the buffer nor reading the body touches the head.
                    assert_eq!(self.buffer.head_bytes(), message.octets);
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
                Event::Rejected(reject) => return self.refuse(reject),
            }
        }
    }

    fn refuse(&mut self, reject: Reject) {
        self.outcome.rejected = Some((reject.status, reject.reason));
        self.outcome.unfinished = None;
        self.closed = true;
    }

    /// What was made of everything received.
    pub fn outcome(mut self) -> Outcome {
        self.outcome.rest = !self.closed && !self.buffer.is_drained();
        self.outcome
    }
}

/// What a server makes of octets that arrive in these parts.
pub fn receive<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    receive_within(&Limits::default(), parts)
}

/// The same under other limits.
pub fn receive_within<'a>(limits: &Limits, parts: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut receiver = Receiver { limits: limits.clone(), ..Receiver::default() };
    parts.into_iter().for_each(|part| receiver.feed(part));
    receiver.outcome()
}
