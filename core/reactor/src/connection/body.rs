//! The body of a request: its buffer while it is received, and the complete body.

use std::io;
use std::sync::Arc;

use crate::connection::body_spool::{BodyFile, BodySpool, Job, Pending, Written};
use crate::limits::SPOOLED_AT_ONCE;
use crate::sys::Errno;
use crate::sys::socket::Transport;

/// A complete body.
#[derive(Debug, Default)]
pub enum Body {
    /// There is none.
    #[default]
    Empty,
    /// In memory.
    Memory(Vec<u8>),
    /// In an unlinked file, from its beginning, and the length.
    File(BodyFile, u64),
}

impl Body {
    /// Bytes in it.
    pub fn length(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Memory(bytes) => bytes.len() as u64,
            Body::File(_, length) => *length,
        }
    }
}

/// Bytes of each body that may be in memory even beyond [`crate::Options::body_memory`]: about as many as are received with
/// the head.
pub(crate) const ALWAYS: usize = 16 << 10;
/// Bytes of content from which on they are received directly, without the buffer for heads and framing.
pub(crate) const DIRECT: usize = 8 << 10;

/// A part of a body in memory. Its bytes beyond [`ALWAYS`] count for the limit of all bodies together.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Content; its spare capacity is filled next.
    bytes: Vec<u8>,
    charged: usize,
    spool: Arc<BodySpool>,
}

impl Buffer {
    fn new(spool: Arc<BodySpool>) -> Self {
        Buffer { bytes: Vec::new(), charged: 0, spool }
    }

    pub(crate) fn content(&self) -> &[u8] {
        &self.bytes
    }

    fn spare(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    /// Grows to `size` bytes if the limit of all bodies and the system have memory for them.
    fn grow(&mut self, size: usize) {
        let charge = size.saturating_sub(ALWAYS).saturating_sub(self.charged);
        if size > self.bytes.capacity() && self.spool.try_charge(charge) {
            self.charged += charge;
            // Exactly: what is received into it must not exceed the body.
            _ = self.bytes.try_reserve_exact(size - self.bytes.len());
        }
    }

    fn append(&mut self, content: &[u8]) -> io::Result<()> {
        self.bytes.try_reserve(content.len()).map_err(|_| Errno::NOMEM)?;
        self.bytes.extend_from_slice(content);
        // The bytes are here already, so they count even beyond the limit.
        let charge = self.bytes.capacity().saturating_sub(ALWAYS).saturating_sub(self.charged);
        self.spool.charge(charge);
        self.charged += charge;
        Ok(())
    }

    fn give_back(&mut self) {
        self.bytes = Vec::new();
        self.spool.discharge(std::mem::take(&mut self.charged));
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.spool.discharge(self.charged);
    }
}

/// A body that is being received: small ones in memory, larger ones in an unlinked temporary file, written in large pieces
/// by [`crate::connection::body_spool`].
#[derive(Debug)]
pub(crate) struct IncomingBody {
    /// Content that is not in the file yet.
    buffer: Buffer,
    file: Option<BodyFile>,
    /// Bytes in the file.
    written: u64,
    /// Bytes received.
    received: u64,
    /// A part is being written.
    pending: Option<Arc<Pending>>,
    /// The part was written only because all bodies together need too much memory.
    early: bool,
}

impl IncomingBody {
    pub(crate) fn new(spool: &Arc<BodySpool>) -> Self {
        IncomingBody {
            buffer: Buffer::new(Arc::clone(spool)),
            file: None,
            written: 0,
            received: 0,
            pending: None,
            early: false,
        }
    }

    /// Bytes received.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Whether a part was written only because all bodies together need too much memory.
    pub(crate) fn is_early(&self) -> bool {
        self.early
    }

    /// Adds received content.
    pub(crate) fn append(&mut self, content: &[u8]) -> io::Result<()> {
        self.received += content.len() as u64;
        self.buffer.append(content)
    }

    /// Bytes that can be received directly, if there is room and nothing but the next `expected` bytes of content would fill
    /// it; else 0.
    pub(crate) fn room(&self, expected: u64) -> usize {
        let spare = self.buffer.spare();
        if spare as u64 <= expected { spare } else { 0 }
    }

    /// Receives into the room. 0: the peer will send nothing more.
    pub(crate) fn receive(&mut self, transport: &impl Transport) -> Result<usize, Errno> {
        let bytes = transport.receive_behind(&mut self.buffer.bytes)?;
        self.received += bytes as u64;
        Ok(bytes)
    }

    /// Bytes that are gathered before they are written: pieces of a body of which it is certain that it goes to the file.
    fn most(&self, expected: u64) -> usize {
        let is_large =
            self.file.is_some() || self.received.saturating_add(expected) > self.buffer.spool.most_of_one() as u64;
        if is_large { SPOOLED_AT_ONCE } else { self.buffer.spool.most_of_one() }
    }

    /// Whether the buffer must be written to the file before more is received. If not, there is room. The next `expected`
    /// bytes follow without framing between them.
    pub(crate) fn must_be_written(&mut self, expected: u64) -> bool {
        let most = self.most(expected);
        let buffer = &mut self.buffer;
        let filled = buffer.bytes.len();
        let wanted = usize::try_from(expected).unwrap_or(usize::MAX);
        let is_direct = wanted >= DIRECT;
        if filled > most - DIRECT && (is_direct || filled >= most) {
            self.early = false;
            return true;
        }
        self.early = if is_direct {
            // Memory grows with what has arrived, not with what was announced.
            let likely = usize::try_from(self.received).unwrap_or(usize::MAX).saturating_mul(3).max(ALWAYS);
            buffer.grow((filled + wanted.min(likely)).min(most));
            buffer.grow(ALWAYS.min(filled + wanted.min(ALWAYS)));
            buffer.spare() < DIRECT && filled > 0
        } else {
            filled > ALWAYS && buffer.spool.is_exceeded()
        };
        self.early
    }

    /// Whether the rest of a complete body must be written to the file.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.buffer.bytes.len() > if self.file.is_some() { 0 } else { self.buffer.spool.most_of_one() }
    }

    /// Frees an empty buffer while nothing arrives.
    pub(crate) fn rest(&mut self) {
        if self.buffer.bytes.is_empty() {
            self.buffer.give_back();
        }
    }

    /// The job that writes the buffer, for the connection in this slot. Its outcome is returned by
    /// [`IncomingBody::take_written`].
    pub(crate) fn write(&mut self, index: u32, generation: u32) -> Job {
        let pending = Arc::new(Pending::new());
        let empty = Buffer::new(Arc::clone(&self.buffer.spool));
        let buffer = std::mem::replace(&mut self.buffer, empty);
        let (file, at) = (self.file.take(), self.written);
        self.pending = Some(Arc::clone(&pending));
        Job::Write { buffer, file, at, pending, index, generation }
    }

    /// Outcome of [`IncomingBody::write`], with the milliseconds for which nothing could be received. `None`: not written
    /// yet.
    pub(crate) fn take_written(&mut self) -> Option<io::Result<u64>> {
        let (outcome, lasted) = self.pending.as_ref()?.take()?;
        self.pending = None;
        Some(outcome.map(|Written { mut buffer, file }| {
            self.written += buffer.bytes.len() as u64;
            self.file = Some(file);
            buffer.bytes.clear();
            if buffer.spool.is_exceeded() {
                buffer.give_back();
            }
            self.buffer = buffer;
            lasted
        }))
    }

    /// The complete body.
    pub(crate) fn take(mut self) -> Body {
        match self.file {
            Some(file) => Body::File(file, self.written),
            None if self.buffer.bytes.is_empty() => Body::Empty,
            None => Body::Memory(std::mem::take(&mut self.buffer.bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::connection::body_spool::BodyMemory;
    use crate::sys::socket::PlainSocket;

    const ONE: usize = 1 << 20;

    fn spool(all: usize) -> Arc<BodySpool> {
        Arc::new(BodySpool::new(BodyMemory { one: ONE, all }))
    }

    /// Receives until the body must be written, or `rest` bytes; returns the number of reads.
    fn read(body: &mut IncomingBody, mut rest: u64) -> usize {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let transport = PlainSocket::from(OwnedFd::from(ours));
        let mut reads = 0;
        while rest > 0 && !body.must_be_written(rest) {
            let mut room = body.room(rest);
            assert!(room > 0);
            reads += 1;
            while room > 0 {
                let sent = std::io::Write::write(&mut &theirs, &vec![b'v'; room]).unwrap();
                let mut waiting = sent;
                while waiting > 0 {
                    let received = body.receive(&transport).unwrap();
                    (waiting, room, rest) = (waiting - received, room - received, rest - received as u64);
                }
            }
        }
        reads
    }

    #[test]
    fn a_body_is_read_in_large_pieces_and_needs_memory_as_it_arrives() {
        let spool = spool(64 << 20);
        let mut body = IncomingBody::new(&spool);
        assert!(!body.must_be_written(ONE as u64) && body.room(ONE as u64) == ALWAYS);
        assert!(read(&mut body, ONE as u64) <= 5 && body.received() == ONE as u64 && !body.is_unwritten());
        assert!(spool.try_charge((64 << 20) - (ONE - ALWAYS)), "it counts once");
        assert!(!spool.try_charge(1));
    }

    #[test]
    fn a_body_that_is_too_large_for_memory_is_written_in_pieces() {
        let mut body = IncomingBody::new(&spool(64 << 20));
        assert!(read(&mut body, ONE as u64 + 1) <= 4 && !body.is_early());
        assert_eq!(body.received(), SPOOLED_AT_ONCE as u64);
        // Of chunks it is not known in advance.
        let mut chunked = IncomingBody::new(&spool(64 << 20));
        while !chunked.must_be_written(0) {
            chunked.append(&[0; ALWAYS]).unwrap();
        }
        assert_eq!(chunked.received(), ONE as u64);
    }

    #[test]
    fn a_body_beyond_the_memory_limit_is_written_early() {
        let spool = spool(0);
        let mut body = IncomingBody::new(&spool);
        assert_eq!((read(&mut body, 100_000), body.received()), (1, ALWAYS as u64));
        assert!(body.is_early());
        let (mut small, mut chunked) = (IncomingBody::new(&spool), IncomingBody::new(&spool));
        assert!(read(&mut small, 10_000) == 1 && !small.is_unwritten());
        chunked.append(&[0; 2 * ALWAYS]).unwrap();
        assert!(spool.is_exceeded() && chunked.must_be_written(0));
        drop(chunked);
        assert!(!spool.is_exceeded());
    }
}
