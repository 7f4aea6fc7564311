//! The body of a request: its buffer while it is received, and the complete body.

use std::ops::Deref;
use std::sync::Arc;
use std::{io, mem};

use crate::connection::body::spool::{BodyFile, BodySpool, Job, Pending, Written};
use crate::connection::multiplexed::streams::Lent;
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
    Memory(BodyBytes),
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
/// Bytes of memory from which on it is kept for the next body.
pub(crate) const SPARE_FROM: usize = 64 << 10;

/// A body in memory, or a part of one. Its memory is kept for the next body if it is large.
#[derive(Debug)]
pub struct BodyBytes {
    /// Content, and behind it room, which is initialised as well: memory that is used again is not cleared.
    bytes: Vec<u8>,
    /// Bytes of content.
    filled: usize,
    /// Bytes that count for the limit of all bodies together: those beyond [`ALWAYS`], while the body is received.
    charged: usize,
    spool: Arc<BodySpool>,
}

impl Deref for BodyBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl BodyBytes {
    fn new(spool: Arc<BodySpool>) -> Self {
        BodyBytes { bytes: Vec::new(), filled: 0, charged: 0, spool }
    }

    /// Bytes that can be received behind the content.
    fn spare(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Counts so many bytes of memory, if the limit of all bodies allows it.
    fn charge(&mut self, size: usize) -> bool {
        let charge = size.saturating_sub(ALWAYS).saturating_sub(self.charged);
        let is_allowed = self.spool.try_charge(charge);
        if is_allowed {
            self.charged += charge;
        }
        is_allowed
    }

    /// Grows to `size` bytes if the limit of all bodies and the system have memory for them.
    fn grow(&mut self, size: usize) {
        if size > self.bytes.len() && self.charge(size) && self.bytes.try_reserve_exact(size - self.bytes.len()).is_ok()
        {
            self.bytes.resize(size, 0);
        }
    }

    /// Moves to the memory of an earlier body, if there is some: it costs no page faults.
    fn reuse(&mut self) {
        let Some(mut bytes) = self.spool.take_spare() else { return };
        if bytes.len() > self.bytes.len() && self.charge(bytes.len()) {
            bytes[..self.filled].copy_from_slice(self);
            self.bytes = bytes;
        } else {
            self.spool.keep_spare(bytes);
        }
    }

    fn append(&mut self, content: &[u8]) -> io::Result<()> {
        let filled = self.filled + content.len();
        if let Some(room) = self.bytes.get_mut(self.filled..filled) {
            room.copy_from_slice(content);
        } else {
            self.bytes.truncate(self.filled);
            self.bytes.try_reserve(content.len()).map_err(|_| Errno::NOMEM)?;
            self.bytes.extend_from_slice(content);
            // The bytes are here already, so they count even beyond the limit.
            let charge = self.bytes.capacity().saturating_sub(ALWAYS).saturating_sub(self.charged);
            self.spool.charge(charge);
            self.charged += charge;
        }
        self.filled = filled;
        Ok(())
    }

    /// Drops the content and keeps the memory.
    fn clear(&mut self) {
        self.filled = 0;
    }

    fn give_back(&mut self) {
        self.clear();
        self.spool.discharge(mem::take(&mut self.charged));
        self.spool.keep_spare(mem::take(&mut self.bytes));
    }
}

impl Drop for BodyBytes {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// A body that is being received: small ones in memory, larger ones in an unlinked temporary file, written in large pieces
/// by [`crate::connection::body::spool`].
#[derive(Debug)]
pub(crate) struct IncomingBody {
    /// Content that is not in the file yet.
    buffer: BodyBytes,
    file: Option<BodyFile>,
    /// Bytes in the file.
    written: u64,
    /// Bytes received.
    received: u64,
    /// The memory of the buffer is lent.
    is_lent: bool,
    /// A part is being written.
    pending: Option<Arc<Pending>>,
    /// The part was written only because all bodies together need too much memory.
    early: bool,
}

impl IncomingBody {
    pub(crate) fn new(spool: &Arc<BodySpool>) -> Self {
        IncomingBody {
            buffer: BodyBytes::new(Arc::clone(spool)),
            file: None,
            written: 0,
            received: 0,
            is_lent: false,
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

    /// How many of the next `expected` bytes, which follow without framing between them, can be received directly.
    pub(crate) fn room(&self, expected: u64) -> usize {
        let most = self.most(expected).saturating_sub(self.buffer.filled);
        self.buffer.spare().min(most).min(usize::try_from(expected).unwrap_or(usize::MAX))
    }

    /// Receives into so much room. 0: the peer will send nothing more.
    pub(crate) fn receive(&mut self, transport: &impl Transport, room: usize) -> Result<usize, Errno> {
        let filled = self.buffer.filled;
        let bytes = transport.receive(&mut self.buffer.bytes[filled..filled + room])?;
        self.buffer.filled += bytes;
        self.received += bytes as u64;
        Ok(bytes)
    }

    /// Lends the memory behind the content to the stream from which the next `expected` bytes come; `None`: there is little.
    pub(crate) fn lend(&mut self, expected: u64) -> Option<Lent> {
        let (begin, room) = (self.buffer.filled, self.room(expected));
        if self.is_lent || begin == 0 || room < DIRECT {
            return None;
        }
        (self.is_lent, self.buffer.filled) = (true, 0);
        Some(Lent { bytes: mem::take(&mut self.buffer.bytes), begin, filled: begin, end: begin + room })
    }

    /// Whether its memory is lent: it is to be taken back before anything else is done.
    pub(crate) fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Takes the memory back, and returns how much content has come. `None`: it is lost, with the stream.
    pub(crate) fn take_back(&mut self, lent: Option<Lent>) -> usize {
        self.is_lent = false;
        let Some(Lent { bytes, begin, filled, .. }) = lent else { return 0 };
        (self.buffer.bytes, self.buffer.filled) = (bytes, filled);
        self.received += (filled - begin) as u64;
        filled - begin
    }

    /// Bytes that are gathered before they are written: pieces of a body of which it is certain that it goes to the file.
    fn most(&self, expected: u64) -> usize {
        let is_large =
            self.file.is_some() || self.received.saturating_add(expected) > self.buffer.spool.most_of_one() as u64;
        if is_large { SPOOLED_AT_ONCE } else { self.buffer.spool.most_of_one() }
    }

    /// Whether the buffer must be written to the file before more is received. If not, there is room. The next `expected`
    /// bytes follow without framing between them, of which the client may send so many by now.
    pub(crate) fn must_be_written(&mut self, expected: u64, allowed: u64) -> bool {
        if self.is_lent {
            return false;
        }
        let most = self.most(expected);
        let buffer = &mut self.buffer;
        let filled = buffer.filled;
        let wanted = usize::try_from(expected).unwrap_or(usize::MAX);
        let is_direct = wanted >= DIRECT;
        if filled > most - if is_direct { DIRECT } else { 0 } {
            self.early = false;
            return true;
        }
        self.early = if is_direct {
            // Memory grows with what has arrived, not with what was announced.
            let likely = usize::try_from(self.received).unwrap_or(usize::MAX).saturating_mul(3).max(ALWAYS);
            let wanted = wanted.min(usize::try_from(allowed).unwrap_or(usize::MAX).max(DIRECT));
            if buffer.spare() < wanted && wanted >= SPARE_FROM {
                buffer.reuse();
            }
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
        self.buffer.filled > if self.file.is_some() { 0 } else { self.buffer.spool.most_of_one() }
    }

    /// Frees an empty buffer while nothing arrives.
    pub(crate) fn rest(&mut self) {
        if self.buffer.is_empty() && !self.is_lent {
            self.buffer.give_back();
        }
    }

    /// The job that writes the buffer, for the connection in this slot. Its outcome is returned by
    /// [`IncomingBody::take_written`].
    pub(crate) fn write(&mut self, index: u32, generation: u32) -> Job {
        let pending = Arc::new(Pending::new());
        let empty = BodyBytes::new(Arc::clone(&self.buffer.spool));
        let buffer = mem::replace(&mut self.buffer, empty);
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
            self.written += buffer.len() as u64;
            self.file = Some(file);
            buffer.clear();
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
            None if self.buffer.is_empty() => Body::Empty,
            None => {
                // It is the application's from now on.
                self.buffer.spool.discharge(mem::take(&mut self.buffer.charged));
                Body::Memory(self.buffer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::connection::body::spool::BodyMemory;
    use crate::sys::socket::PlainSocket;

    const ONE: usize = 1 << 20;

    fn spool(all: usize) -> Arc<BodySpool> {
        Arc::new(BodySpool::new(BodyMemory { one: ONE, all }, Box::leak(Box::default())))
    }

    /// Receives until the body must be written, or `rest` bytes; returns the number of reads.
    fn read(body: &mut IncomingBody, mut rest: u64) -> usize {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let transport = PlainSocket::from(OwnedFd::from(ours));
        let mut reads = 0;
        while rest > 0 && !body.must_be_written(rest, rest) {
            let mut room = body.room(rest);
            assert!(room > 0);
            reads += 1;
            while room > 0 {
                let sent = std::io::Write::write(&mut &theirs, &vec![b'v'; room]).unwrap();
                let mut waiting = sent;
                while waiting > 0 {
                    let received = body.receive(&transport, room).unwrap();
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
        assert!(!body.must_be_written(ONE as u64, ONE as u64) && body.room(ONE as u64) == ALWAYS);
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
        while !chunked.must_be_written(0, 0) {
            chunked.append(&[0; ALWAYS]).unwrap();
        }
        assert_eq!(chunked.received(), (ONE + ALWAYS) as u64, "one as large as the limit stays in memory");
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
        assert!(spool.is_exceeded() && chunked.must_be_written(0, 0));
        drop(chunked);
        assert!(!spool.is_exceeded());
    }

    #[test]
    fn the_memory_of_a_body_is_used_again_and_freed_if_no_body_needs_it() {
        let spool = spool(64 << 20);
        let mut first = IncomingBody::new(&spool);
        read(&mut first, ONE as u64);
        let Body::Memory(content) = first.take() else { panic!("not in memory") };
        assert!(content.len() == ONE && content.iter().all(|&byte| byte == b'v'));
        drop(content);
        let mut second = IncomingBody::new(&spool);
        second.append(b"begin").unwrap();
        assert!(!second.must_be_written(100_000, 100_000) && second.room(100_000) == 100_000, "no more than the body");
        assert_eq!(read(&mut second, 100_000), 1);
        assert!(spool.try_charge((64 << 20) - (ONE - ALWAYS)) && !spool.try_charge(1), "all of it counts");
        assert!(!spool.tidy());
        let Body::Memory(content) = second.take() else { panic!("not in memory") };
        assert!(content.starts_with(b"beginvvv") && content.len() == 100_005);
        spool.discharge((64 << 20) - (ONE - ALWAYS));
        drop(content);
        assert!(spool.tidy(), "it was needed");
        assert!(!spool.tidy() && spool.take_spare().is_none());
    }

    #[test]
    fn memory_is_kept_within_the_limit_only() {
        let spool = spool(ONE);
        spool.charge(ONE / 2);
        spool.keep_spare(vec![0; ONE]);
        assert!(spool.take_spare().is_none());
        spool.keep_spare(vec![0; SPARE_FROM]);
        assert!(spool.take_spare().is_some());
    }
}
