//! The body of a request: its buffer while it is received, and the complete body.

use std::io;
use std::sync::Arc;

use crate::connection::body_spool::{BodyFile, BodySpool, Job, Pending, Written};
use crate::limits::BODY_IN_MEMORY;
use crate::sys::Errno;

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
const ALWAYS: usize = 16 << 10;
/// Bytes of content from which on they are received directly, without the buffer for heads and framing.
pub(crate) const DIRECT: usize = 8 << 10;

/// A part of a body in memory. Its bytes beyond [`ALWAYS`] count for the limit of all bodies together.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Content, and room behind it.
    bytes: Vec<u8>,
    /// Bytes of content.
    filled: usize,
    charged: usize,
    spool: Arc<BodySpool>,
}

impl Buffer {
    fn new(spool: Arc<BodySpool>) -> Self {
        Buffer { bytes: Vec::new(), filled: 0, charged: 0, spool }
    }

    pub(crate) fn content(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    fn spare(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Grows to `size` bytes if the limit of all bodies and the system have memory for them.
    fn grow(&mut self, size: usize) {
        let charge = size.saturating_sub(ALWAYS).saturating_sub(self.charged);
        if size > self.bytes.len() && self.spool.try_charge(charge) {
            self.charged += charge;
            if self.bytes.try_reserve_exact(size - self.bytes.len()).is_ok() {
                self.bytes.resize(size, 0);
            }
        }
    }

    fn append(&mut self, content: &[u8]) -> io::Result<()> {
        if content.len() <= self.spare() {
            self.bytes[self.filled..][..content.len()].copy_from_slice(content);
            self.filled += content.len();
            return Ok(());
        }
        self.bytes.truncate(self.filled);
        self.bytes.try_reserve(content.len()).map_err(|_| Errno::NOMEM)?;
        self.bytes.extend_from_slice(content);
        self.filled = self.bytes.len();
        // The bytes are here already, so they count even beyond the limit.
        let charge = self.bytes.capacity().saturating_sub(ALWAYS).saturating_sub(self.charged);
        self.spool.charge(charge);
        self.charged += charge;
        Ok(())
    }

    fn give_back(&mut self) {
        (self.bytes, self.filled) = (Vec::new(), 0);
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

    /// Room for the next `expected` bytes of content, which follow without framing between them.
    pub(crate) fn room(&mut self, expected: u64) -> &mut [u8] {
        let length = self.buffer.spare().min(usize::try_from(expected).unwrap_or(usize::MAX));
        &mut self.buffer.bytes[self.buffer.filled..][..length]
    }

    /// Notes how many bytes of [`IncomingBody::room`] were filled.
    pub(crate) fn fill(&mut self, bytes: usize) {
        self.received += bytes as u64;
        self.buffer.filled += bytes;
    }

    /// Whether the buffer must be written to the file before more is received. If not, there is room. The next `expected`
    /// bytes follow without framing between them.
    pub(crate) fn must_be_written(&mut self, expected: u64) -> bool {
        let buffer = &mut self.buffer;
        let wanted = usize::try_from(expected).unwrap_or(usize::MAX);
        let is_direct = wanted >= DIRECT;
        if buffer.filled > BODY_IN_MEMORY - DIRECT && (is_direct || buffer.filled >= BODY_IN_MEMORY) {
            self.early = false;
            return true;
        }
        self.early = if is_direct {
            // Memory grows with what has arrived, not with what was announced.
            let likely = usize::try_from(self.received).unwrap_or(usize::MAX).saturating_mul(3).max(ALWAYS);
            buffer.grow((buffer.filled + wanted.min(likely)).min(BODY_IN_MEMORY));
            buffer.grow(ALWAYS.min(buffer.filled + wanted.min(ALWAYS)));
            buffer.spare() < DIRECT && buffer.filled > 0
        } else {
            buffer.filled > ALWAYS && buffer.spool.is_exceeded()
        };
        self.early
    }

    /// Whether the rest of a complete body must be written to the file.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.buffer.filled > if self.file.is_some() { 0 } else { BODY_IN_MEMORY }
    }

    /// Frees an empty buffer while nothing arrives.
    pub(crate) fn rest(&mut self) {
        if self.buffer.filled == 0 {
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
            self.written += buffer.filled as u64;
            self.file = Some(file);
            buffer.filled = 0;
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
            None if self.buffer.filled == 0 => Body::Empty,
            None => {
                let mut bytes = std::mem::take(&mut self.buffer.bytes);
                bytes.truncate(self.buffer.filled);
                Body::Memory(bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives until the body must be written, or `rest` bytes; returns the number of reads.
    fn read(body: &mut IncomingBody, mut rest: u64) -> usize {
        let mut reads = 0;
        while rest > 0 && !body.must_be_written(rest) {
            let length = body.room(rest).len();
            assert!(length > 0);
            body.fill(length);
            rest -= length as u64;
            reads += 1;
        }
        reads
    }

    #[test]
    fn a_large_body_is_read_in_large_pieces_and_needs_memory_as_it_arrives() {
        let spool = Arc::new(BodySpool::new(64 << 20));
        let mut body = IncomingBody::new(&spool);
        assert!(!body.must_be_written(1 << 30) && body.room(1 << 30).len() == ALWAYS);
        assert!(read(&mut body, 1 << 30) <= 4 && body.received() == BODY_IN_MEMORY as u64);
        assert!(spool.try_charge((64 << 20) - BODY_IN_MEMORY), "it counts once");
    }

    #[test]
    fn a_body_beyond_the_memory_limit_is_written_early() {
        let spool = Arc::new(BodySpool::new(0));
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
