//! Queue of unsent bytes and files of one connection or stream, with the clock of how fast its client takes them.
//!
//! Output that the socket does not take at once waits here: first in memory, beyond a high-water mark in an unlinked
//! temporary file. The thread that finds the socket writable again sends it, usually while the application is busy with
//! another request.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::connection::body::temp_file::SpoolFile;
use crate::connection::body::throughput::{MinimumRate, Throughput};
use crate::limits::{HIGH_WATER, HIGH_WATER_OF_STREAMS, SENT_AT_ONCE};
use crate::sys::socket::Transport;
use crate::sys::{AsFd, Errno, OwnedFd, clock, file};

#[derive(Debug)]
enum Segment {
    /// Bytes in memory, and how many of them were sent.
    Memory { bytes: Vec<u8>, sent: usize },
    /// Bytes in a temporary file.
    Spilled { file: Arc<SpoolFile>, at: u64, end: u64 },
    /// A part of a static file or of a file of the application.
    File { file: Arc<OwnedFd>, at: u64, end: u64 },
}

impl Segment {
    /// The fault of a file, of which no more could be sent, with the error of sendfile(2); none without one: the file has ended
    /// too early. `None`: it is no fault of a file, but the client has left.
    #[cold]
    fn fault(&self, error: Option<Errno>) -> Option<Arc<str>> {
        let (fd, at) = match self {
            Segment::Memory { .. } => return None,
            Segment::Spilled { file, at, .. } => (file.file.as_fd(), *at),
            Segment::File { file, at, .. } => (file.as_fd(), *at),
        };
        let name = match self {
            Segment::Spilled { .. } => "its temporary file".to_owned(),
            _ => file::path_of(fd).map_or_else(|| "a file".to_owned(), |path| format!("{path:?}")),
        };
        match error {
            None => Some(format!("{name} became shorter while it was sent").into()),
            Some(error) => {
                let error = file::read_error(fd, at, error)?;
                Some(format!("{name} cannot be read: {}", io::Error::from(error)).into())
            }
        }
    }
}

/// Why nothing can be sent any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The client has disconnected.
    ClientGone,
    /// A file could not be read, or became shorter: the reason.
    Failed(Arc<str>),
}

/// Outcome of [`SendQueue::flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Everything was sent.
    Everything,
    /// The socket takes no more for now.
    Blocked,
    /// The socket may take more, but other connections have their turn.
    Paused,
    /// The connection is lost.
    Broken,
}

/// Bytes that the queues of all streams of a connection hold, and content that the connection has sent.
#[derive(Debug, Default)]
pub(crate) struct Queued {
    in_memory: AtomicUsize,
    spilled: AtomicU64,
    sent: AtomicU64,
}

impl Queued {
    /// Content of a stream is on its way.
    pub(crate) fn note_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Content that the connection has sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// The queue of one connection, or of one stream.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// Of all streams of its connection, if it is that of one.
    of_connection: Option<Arc<Queued>>,
    queue: VecDeque<Segment>,
    in_memory: usize,
    spilled: u64,
    /// All bytes that were ever queued, including those dropped because the connection is lost.
    queued: u64,
    /// How fast the socket takes the queued bytes.
    throughput: Throughput,
    /// What the connection had sent of all streams when that was last measured anew.
    sent_before: u64,
    broken: bool,
    /// What has happened to a file while it was sent: the declared length could not be kept.
    fault: Option<Arc<str>>,
}

impl SendQueue {
    /// `of_connection`: what all streams of the connection hold, if the queue is that of one.
    pub(crate) fn new(of_connection: Option<Arc<Queued>>) -> Self {
        SendQueue {
            sent_before: sent_of_connection(of_connection.as_deref()),
            of_connection,
            queue: VecDeque::new(),
            in_memory: 0,
            spilled: 0,
            queued: 0,
            throughput: Throughput::begin(clock::now()),
            broken: false,
            fault: None,
        }
    }

    /// When to flush and to call [`SendQueue::is_too_slow`] again. The kernel reports a writable socket only when a third of
    /// its buffer is free, so the progress of a slow client is found by flushing.
    pub(crate) fn deadline(&self, minimum: MinimumRate) -> u64 {
        self.throughput.deadline(minimum)
    }

    /// Whether the client receives more slowly than required.
    pub(crate) fn is_too_slow(&mut self, minimum: MinimumRate) -> bool {
        self.throughput.is_too_slow(clock::now(), minimum)
    }

    /// The client is not to blame for what has passed: its time begins now.
    pub(crate) fn measure_again(&mut self) {
        self.throughput.begin_again(clock::now());
        self.sent_before = sent_of_connection(self.of_connection.as_deref());
    }

    /// Whether the streams of the connection have sent since then what its client must read between two measurements.
    pub(crate) fn have_others_moved(&self, minimum: MinimumRate) -> bool {
        let sent = sent_of_connection(self.of_connection.as_deref());
        sent.saturating_sub(self.sent_before) > minimum.bytes_of_part()
    }

    /// Whether the application should wait: memory is full, and the rest could not be written to a file.
    pub(crate) fn is_full(&self) -> bool {
        self.in_memory > HIGH_WATER || (self.in_memory > 0 && self.in_memory_of_connection() > HIGH_WATER_OF_STREAMS)
    }

    /// Bytes in memory of all streams of the connection; 0 if it has none.
    fn in_memory_of_connection(&self) -> usize {
        self.of_connection.as_ref().map_or(0, |all| all.in_memory.load(Ordering::Relaxed))
    }

    fn add_in_memory(&mut self, bytes: usize) {
        self.in_memory += bytes;
        if let Some(all) = &self.of_connection {
            all.in_memory.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Counts bytes that are gone.
    fn remove(&mut self, in_memory: usize, spilled: u64) {
        self.in_memory -= in_memory;
        self.spilled -= spilled;
        if let Some(all) = &self.of_connection {
            all.in_memory.fetch_sub(in_memory, Ordering::Relaxed);
            all.spilled.fetch_sub(spilled, Ordering::Relaxed);
        }
    }

    /// Why nothing can be sent any more.
    pub(crate) fn fault(&self) -> Lost {
        self.fault.clone().map_or(Lost::ClientGone, Lost::Failed)
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Drops everything: nothing more will be sent.
    pub(crate) fn give_up(&mut self) {
        self.broken = true;
        self.queue.clear();
        self.remove(self.in_memory, self.spilled);
    }

    /// All bytes that were ever queued.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Queued bytes that the kernel has taken.
    pub(crate) fn sent(&self) -> u64 {
        self.throughput.bytes()
    }

    /// Bytes of the connection that wait in temporary files.
    pub(crate) fn spilled(&self) -> u64 {
        self.of_connection.as_ref().map_or(self.spilled, |all| all.spilled.load(Ordering::Relaxed))
    }

    /// Whether `length` bytes more go to memory, and not to a file.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        let spilling = matches!(self.queue.back(), Some(Segment::Spilled { .. }));
        let fits =
            self.in_memory + length <= HIGH_WATER && self.in_memory_of_connection() + length <= HIGH_WATER_OF_STREAMS;
        self.broken || length == 0 || (!spilling && fits)
    }

    /// The temporary file at the end of the queue, and its length.
    pub(crate) fn last_file(&self) -> Option<(Arc<SpoolFile>, u64)> {
        match self.queue.back() {
            Some(Segment::Spilled { file, end, .. }) => Some((Arc::clone(file), *end)),
            _ => None,
        }
    }

    /// Queues bytes in memory.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.queued += bytes.len() as u64;
        if self.broken || bytes.is_empty() {
            return;
        }
        self.add_in_memory(bytes.len());
        const JOINED: usize = 64 << 10;
        match self.queue.back_mut() {
            Some(Segment::Memory { bytes: last, .. }) if last.len() + bytes.len() <= JOINED => {
                last.extend_from_slice(bytes)
            }
            _ => self.queue.push_back(Segment::Memory { bytes: bytes.to_vec(), sent: 0 }),
        }
    }

    /// Queues bytes that have been written to a temporary file.
    pub(crate) fn push_spilled(&mut self, file: Arc<SpoolFile>, at: u64, length: u64) {
        self.queued += length;
        if self.broken {
            return;
        }
        self.spilled += length;
        if let Some(all) = &self.of_connection {
            all.spilled.fetch_add(length, Ordering::Relaxed);
        }
        match self.queue.back_mut() {
            Some(Segment::Spilled { file: last, end, .. }) if Arc::ptr_eq(last, &file) && *end == at => *end += length,
            _ => self.queue.push_back(Segment::Spilled { file, at, end: at + length }),
        }
    }

    /// Queues a part of a file.
    pub(crate) fn push_file(&mut self, file: Arc<OwnedFd>, at: u64, length: u64) {
        self.queued += length;
        if !self.broken && length > 0 {
            self.queue.push_back(Segment::File { file, at, end: at + length });
        }
    }

    /// Sends what the socket takes, up to a limit.
    pub(crate) fn flush(&mut self, transport: &impl Transport) -> Flushed {
        let mut total = 0;
        loop {
            // Bytes before a file leave in one packet with its beginning.
            let more = matches!(self.queue.get(1), Some(Segment::File { .. }));
            let Some(segment) = self.queue.front_mut() else { break };
            if total >= SENT_AT_ONCE {
                return Flushed::Paused;
            }
            let (mut in_memory, mut spilled) = (0, 0);
            let sent = match segment {
                Segment::Memory { bytes, sent } => transport.send(&bytes[*sent..], more).inspect(|taken| {
                    *sent += taken;
                    in_memory += taken;
                }),
                Segment::Spilled { file, at, end } => send_file(transport, &file.file, at, *end, SENT_AT_ONCE - total)
                    .inspect(|taken| spilled += *taken as u64),
                Segment::File { file, at, end } => send_file(transport, &*file, at, *end, SENT_AT_ONCE - total),
            };
            match sent {
                Ok(bytes @ 1..) => {
                    total += bytes;
                    self.throughput.note(self.throughput.bytes() + bytes as u64, clock::now());
                    self.remove(in_memory, spilled);
                }
                Err(Errno::AGAIN) => return Flushed::Blocked,
                Ok(0) | Err(_) => {
                    self.fault = segment.fault(sent.err());
                    self.give_up();
                    return Flushed::Broken;
                }
            }
            let done = match self.queue.front() {
                Some(Segment::Memory { bytes, sent }) => *sent == bytes.len(),
                Some(Segment::Spilled { at, end, .. } | Segment::File { at, end, .. }) => at == end,
                None => false,
            };
            if done {
                self.queue.pop_front();
            }
        }
        if self.broken { Flushed::Broken } else { Flushed::Everything }
    }
}

/// Content that a connection has sent of all its streams.
fn sent_of_connection(queued: Option<&Queued>) -> u64 {
    queued.map_or(0, Queued::sent)
}

impl Drop for SendQueue {
    fn drop(&mut self) {
        self.remove(self.in_memory, self.spilled);
    }
}

fn send_file(transport: &impl Transport, file: impl AsFd, at: &mut u64, end: u64, most: usize) -> Result<usize, Errno> {
    transport.send_file(file.as_fd(), at, (end - *at).min(most as u64) as usize)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::connection::body::temp_file::Spool;
    use crate::sys::socket::PlainSocket;

    #[test]
    fn a_slow_reader_gets_all_bytes_in_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let ours = PlainSocket::from(OwnedFd::from(ours));
        let mut send_queue = SendQueue::new(None);
        let piece: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"..tail..").unwrap();
        let spool = Arc::new(Spool::default());
        for _ in 0..8 {
            if send_queue.has_room(piece.len()) {
                send_queue.push(&piece);
            } else {
                let (file, at) = spool.write(send_queue.last_file(), &piece, send_queue.spilled()).unwrap();
                send_queue.push_spilled(file, at, piece.len() as u64);
            }
        }
        assert!(send_queue.in_memory <= HIGH_WATER && send_queue.spilled > 0);
        send_queue.push_file(Arc::new(file.into()), 2, 4);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).unwrap();
            all
        });
        loop {
            match send_queue.flush(&ours) {
                Flushed::Everything => break,
                Flushed::Blocked | Flushed::Paused => std::thread::yield_now(),
                Flushed::Broken => unreachable!("the reader reads"),
            }
        }
        drop(ours);
        let mut expected = piece.repeat(8);
        expected.extend_from_slice(b"tail");
        assert!(reader.join().unwrap() == expected);
        assert_eq!((send_queue.in_memory, send_queue.spilled), (0, 0));
    }

    #[test]
    fn a_file_that_shrinks_ends_the_connection() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let ours = PlainSocket::from(OwnedFd::from(ours));
        let mut send_queue = SendQueue::new(None);
        send_queue.push_file(Arc::new(tempfile::tempfile().unwrap().into()), 0, 10);
        assert_eq!(send_queue.flush(&ours), Flushed::Broken);
    }
}
