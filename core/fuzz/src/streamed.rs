//! Fuzz target `streamed`: request bodies that an application receives while it runs.

use poorhttp_http::{Event, Limits, Protocol, ReadBuffer, RequestParser};

use crate::receiver::{Message, Outcome, Receiver};
use crate::requests::{limits, pieces};

/// Room from which content is received without a read buffer.
const DIRECT: usize = 16;

/// Receives everything on one connection as a server does that gives an application its body in reads of any size. The first
/// byte selects the protocol; then come four sizes of the pieces that arrive, and four of the reads.
pub fn streamed(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let Some((arriving, bytes)) = bytes.split_first_chunk::<4>() else { return };
    let Some((reads, bytes)) = bytes.split_first_chunk::<4>() else { return };
    let protocol = match kind {
        b'h' => Protocol::Http,
        b'u' => Protocol::Uwsgi,
        b's' => Protocol::Scgi,
        b'f' => Protocol::Fastcgi,
        _ => return,
    };
    for limits in limits() {
        let mut receiver =
            Receiver { parser: RequestParser::of(protocol), limits: limits.clone(), ..Receiver::default() };
        pieces(bytes, arriving).for_each(|piece| receiver.feed(piece));
        let application = Application {
            parser: RequestParser::of(protocol),
            buffer: ReadBuffer::default(),
            limits,
            kernel: pieces(bytes, arriving).collect(),
            next: 0,
            outcome: Outcome::default(),
        };
        // What the application reads is the body that it gets whole, with the same end and the same fault.
        assert_eq!(application.run(reads), receiver.outcome());
    }
}

/// A server whose application reads.
struct Application<'a> {
    parser: RequestParser,
    buffer: ReadBuffer,
    limits: Limits,
    /// The pieces that arrive.
    kernel: Vec<&'a [u8]>,
    next: usize,
    outcome: Outcome,
}

impl Application<'_> {
    fn run(mut self, reads: &[u8; 4]) -> Outcome {
        let mut reads = reads.iter().cycle().map(|&size| usize::from(size.max(1)));
        while self.receive_head() {
            let promises_end = self.parser.has_whole_body(&self.buffer, &self.limits);
            let before = self.next;
            while self.read(reads.next().expect("it repeats")) {}
            let has_ended = self.parser.is_complete() || self.outcome.rejected.is_some();
            // A body of which nothing is missing needs no more input, and no other.
            assert!(!promises_end || (has_ended && before == self.next));
            assert!(promises_end || !has_ended || before < self.next);
            if !self.parser.is_complete() || self.outcome.rejected.is_some() {
                break;
            }
            // Reading a body touches neither the head nor the bytes after the body.
            let message = self.outcome.unfinished.take().expect("a body belongs to a head");
            assert_eq!((self.buffer.head_bytes(), &self.buffer.head), (&message.bytes[..], &message.head));
            let persists = message.head.keep_alive;
            self.outcome.messages.push(message);
            if !persists {
                return self.outcome;
            }
            self.parser.next_message(&mut self.buffer);
        }
        self.outcome.rest = self.outcome.rejected.is_none() && !self.buffer.is_drained();
        self.outcome
    }

    /// Receives until a head is complete. `false`: no more comes.
    fn receive_head(&mut self) -> bool {
        loop {
            match self.parser.poll(&mut self.buffer, &self.limits) {
                Event::Head => {
                    let (head, bytes) = (self.buffer.head.clone(), self.buffer.head_bytes().to_vec());
                    if let Err(reject) = head.check_scheme(None) {
                        self.outcome.rejected = Some((reject.status, reject.reason));
                        return false;
                    }
                    self.outcome.unfinished = Some(Message { head, bytes, body: Vec::new() });
                    return true;
                }
                Event::NeedMore => {
                    if !self.receive() {
                        return false;
                    }
                }
                Event::ManagementReply(answer) => self.outcome.replies.extend_from_slice(&answer),
                Event::Rejected(reject) => {
                    self.outcome.rejected = Some((reject.status, reject.reason));
                    return false;
                }
                _ => return false,
            }
        }
    }

    /// The application reads at most `room` bytes. `false`: that was the last.
    fn read(&mut self, room: usize) -> bool {
        loop {
            match self.parser.poll_up_to(&mut self.buffer, &self.limits, room) {
                Event::Content(content) => {
                    assert!((1..=room).contains(&content.len()), "{} of {room} bytes", content.len());
                    let message = self.outcome.unfinished.as_mut().expect("content belongs to a head");
                    message.body.extend_from_slice(content);
                    return true;
                }
                Event::ManagementReply(answer) => self.outcome.replies.extend_from_slice(&answer),
                Event::Rejected(reject) => {
                    self.outcome.rejected = Some((reject.status, reject.reason));
                    self.outcome.unfinished = None;
                    return false;
                }
                Event::Complete | Event::Head => return false,
                Event::NeedMore => {
                    let most = room.min(usize::try_from(self.parser.expected()).unwrap_or(usize::MAX));
                    // Content goes past the buffer only if none is left in it.
                    assert!(most == 0 || self.buffer.is_drained());
                    if most >= DIRECT {
                        return self.receive_directly(most);
                    }
                    if !self.receive() {
                        return false;
                    }
                }
            }
        }
    }

    /// Receives into the buffer. `false`: no more comes.
    fn receive(&mut self) -> bool {
        let Some(piece) = self.kernel.get_mut(self.next) else { return false };
        let room = self.buffer.room(piece.len() as u64);
        let taken = room.len().min(piece.len());
        assert!(taken > 0, "the buffer has no room");
        room[..taken].copy_from_slice(&piece[..taken]);
        self.buffer.received(taken);
        *piece = &piece[taken..];
        self.next += usize::from(piece.is_empty());
        true
    }

    /// Receives content past the buffer. `false`: no more comes.
    fn receive_directly(&mut self, most: usize) -> bool {
        let Some(piece) = self.kernel.get_mut(self.next) else { return false };
        let (content, rest) = piece.split_at(most.min(piece.len()));
        self.parser.take_content(content.len() as u64);
        let message = self.outcome.unfinished.as_mut().expect("content belongs to a head");
        message.body.extend_from_slice(content);
        *piece = rest;
        self.next += usize::from(rest.is_empty());
        true
    }
}
