//! Coalesces small pieces of a response, or responses on the streams of a connection: what is there waits at most a millisecond for
//! the next, then a thread sends it.
//!
//! Many pieces that an application makes quickly are sent by one system call. PEP 3333 allows the delay if another thread
//! goes on sending while the application makes the next piece. A piece that is made slowly is sent at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use poorhttp_compress::StreamEncoder;
use poorhttp_http::Response;
use poorhttp_interface::codings::Flush;

use crate::sys::Errno;
use crate::sys::process::forks;
use crate::sys::socket::Transport;

/// Pieces wait no longer than this.
const TICK: Duration = Duration::from_millis(1);
/// Microseconds after which a piece is not coalesced any more.
pub(crate) const COALESCED_FOR: u64 = 1_000;
/// Microseconds within which a response of any connection must have come, for the next to be expected soon.
const FOLLOWS: u64 = 250;
/// Ticks without a piece after which the thread sleeps until there is one.
const IDLE_TICKS: u32 = 20;
/// For how long it sleeps before it ends.
const IDLE: Duration = Duration::from_secs(5);
/// Longest pause before a socket that is full is tried again.
const LONGEST: Duration = Duration::from_millis(50);
/// Bytes of its stack; encoders need more than sending does.
const STACK: usize = 256 << 10;

/// Codes the pieces of a compressed response. Those that are coalesced are coded together, when they are sent.
#[derive(Debug)]
pub(crate) struct Coder {
    encoder: StreamEncoder,
    /// The response with its framing.
    framing: Response,
    /// Pieces that are not coded yet.
    pending: Vec<u8>,
    /// Bytes of coded content that the response does not count yet.
    made: u64,
    has_failed: bool,
}

/// A coder that the owner of the connection shares with the thread.
pub(crate) type SharedCoder = Arc<Mutex<Coder>>;

impl Coder {
    /// For a response of which the head is complete.
    pub(crate) fn new(encoder: StreamEncoder, framing: Response) -> SharedCoder {
        Arc::new(Mutex::new(Coder { encoder, framing, pending: Vec::new(), made: 0, has_failed: false }))
    }

    pub(crate) fn lock(coder: &SharedCoder) -> MutexGuard<'_, Coder> {
        coder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Codes a piece, and appends what is ready to `out`, with its framing. `None`: it has failed, now or before.
    pub(crate) fn encode(&mut self, piece: &[u8], then: Flush, out: &mut Vec<u8>) -> Option<()> {
        let mut coded = Vec::new();
        self.has_failed |= self.encoder.encode(piece, then, &mut coded).is_err();
        if self.has_failed {
            return None;
        }
        self.made += coded.len() as u64;
        for chunk in coded.chunks(self.framing.largest_chunk()) {
            self.framing.open_chunk(out, chunk.len());
            out.extend_from_slice(chunk);
            out.extend_from_slice(self.framing.end_of_chunk(chunk.len()));
        }
        Some(())
    }

    /// Codes what is pending, so that the client can decode it.
    fn flush(&mut self, out: &mut Vec<u8>) {
        let mut pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() && self.encode(&pending, Flush::Sync, out).is_some() {
            pending.clear();
            self.pending = pending;
        }
    }

    /// Bytes of coded content since the last call.
    pub(crate) fn take_made(&mut self) -> usize {
        std::mem::take(&mut self.made) as usize
    }
}

/// What waits on one connection.
#[derive(Debug, Default)]
pub(crate) struct Coalesced {
    pub(crate) bytes: Vec<u8>,
    /// What waits behind the bytes is pending there.
    coder: Option<SharedCoder>,
    /// Bytes that the thread has sent since the owner of the connection took the rest.
    pub(crate) sent: u64,
    /// The thread will look at it.
    listed: bool,
}

impl Coalesced {
    /// Adds a piece that is to be coded.
    pub(crate) fn add_pending(&mut self, coder: &SharedCoder, piece: &[u8]) {
        Coder::lock(coder).pending.extend_from_slice(piece);
        self.coder.get_or_insert_with(|| Arc::clone(coder));
    }

    /// Codes what is to be coded.
    pub(crate) fn encode_pending(&mut self) {
        if let Some(coder) = self.coder.take() {
            Coder::lock(&coder).flush(&mut self.bytes);
        }
    }

    /// Sends what waits. `false`: the socket takes no more for now.
    pub(crate) fn send(&mut self, transport: &impl Transport) -> bool {
        self.encode_pending();
        let sent = if self.bytes.is_empty() { Ok(0) } else { transport.send(&self.bytes, false) };
        if let Ok(taken) = sent {
            self.sent += taken as u64;
            self.bytes.drain(..taken);
        }
        // If the client has gone, the owner of the connection finds that, too.
        self.listed = !self.bytes.is_empty() && matches!(sent, Ok(_) | Err(Errno::AGAIN));
        !self.listed
    }
}

/// Output that waits for more.
pub(crate) trait SendsLater: Send + Sync {
    /// Sends what waits. `false`: the socket takes no more for now, and is to be tried again.
    fn send_waiting(&self) -> bool;
}

poorhttp_interface::debug_by_name!(SendsLater);

#[derive(Debug, Default)]
struct Queue {
    sockets: Vec<Weak<dyn SendsLater>>,
    running: bool,
    /// It waits for longer than a tick, and is to be woken by a piece.
    asleep: bool,
}

/// The thread, which starts with the first piece that is coalesced.
#[derive(Debug)]
pub(crate) struct CoalescedSender {
    queue: Mutex<Queue>,
    more: Condvar,
    /// When a response of any connection last came, behind which others were to follow; in microseconds of
    /// [`crate::sys::clock::precise_us`].
    last: AtomicU64,
    forks: u64,
}

impl CoalescedSender {
    pub(crate) fn new() -> Self {
        CoalescedSender { queue: Mutex::default(), more: Condvar::new(), last: AtomicU64::new(0), forks: forks() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a response that comes now follows another one closely.
    pub(crate) fn follows(&self, now: u64) -> bool {
        now < self.last.swap(now, Ordering::Relaxed) + FOLLOWS
    }

    /// Has what waits on a connection sent within a millisecond. `false`: there is no thread for it.
    #[inline]
    pub(crate) fn watch(self: &Arc<Self>, socket: &Arc<impl SendsLater + 'static>, coalesced: &mut Coalesced) -> bool {
        if !coalesced.listed {
            coalesced.listed = self.push(Arc::downgrade(socket) as Weak<dyn SendsLater>);
        }
        coalesced.listed
    }

    /// Has what waits there sent within a millisecond. `false`: there is no thread for it.
    pub(crate) fn push(self: &Arc<Self>, socket: Weak<dyn SendsLater>) -> bool {
        // In a fork, the lock may be held by a thread that exists only in the parent.
        if self.forks != forks() {
            return false;
        }
        let mut queue = self.lock();
        if !queue.running {
            let (sender, thread) = (Arc::clone(self), thread::Builder::new().name("poorhttp-pieces".to_owned()));
            if thread.stack_size(STACK).spawn(move || sender.run()).is_err() {
                return false;
            }
            queue.running = true;
        }
        queue.sockets.push(socket);
        if std::mem::take(&mut queue.asleep) {
            drop(queue);
            self.more.notify_one();
        }
        true
    }

    fn run(&self) {
        let (mut idle, mut pause, mut queue) = (0, TICK, self.lock());
        loop {
            queue.asleep = pause > TICK;
            queue = self.more.wait_timeout(queue, pause).unwrap_or_else(PoisonError::into_inner).0;
            if pause > TICK && !std::mem::take(&mut queue.asleep) {
                // There is a new piece, which waits for its millisecond.
                (idle, pause) = (0, TICK);
            } else if !queue.sockets.is_empty() {
                let mut sockets = std::mem::take(&mut queue.sockets);
                drop(queue);
                sockets.retain(|socket| socket.upgrade().is_some_and(|socket| !socket.send_waiting()));
                // Those that are left are full.
                (idle, pause) = (0, if sockets.is_empty() { TICK } else { (2 * pause).min(LONGEST) });
                queue = self.lock();
                if !queue.sockets.is_empty() {
                    // What has come meanwhile waits for its millisecond.
                    pause = TICK;
                }
                queue.sockets.append(&mut sockets);
            } else if pause == IDLE {
                queue.running = false;
                return;
            } else {
                idle += 1;
                pause = if idle > IDLE_TICKS { IDLE } else { TICK };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::connection::shared_socket::SharedSocket;

    #[test]
    fn what_nothing_follows_is_sent_by_the_thread() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let socket = Arc::new(SharedSocket::new(OwnedFd::from(ours), Arc::default()));
        let sender = Arc::new(CoalescedSender::new());
        let mut received = [0; 5];
        for _ in 0..3 {
            let mut coalesced = socket.coalesced();
            coalesced.bytes.extend_from_slice(b"piece");
            assert!(sender.watch(&socket, &mut coalesced));
            drop(coalesced);
            theirs.read_exact(&mut received).unwrap();
            assert_eq!(&received, b"piece");
            // It sleeps then, and is woken by the next piece.
            while !sender.lock().asleep {
                thread::yield_now();
            }
        }
        assert_eq!(socket.coalesced().sent, 15);
    }

    #[test]
    fn a_response_follows_one_that_came_shortly_before() {
        let sender = CoalescedSender::new();
        let follows = [1_000, 1_001, 1_000 + FOLLOWS, 1_100 + 2 * FOLLOWS, 1_099 + 3 * FOLLOWS];
        assert_eq!(follows.map(|now| sender.follows(now)), [false, true, true, false, true]);
    }

    #[test]
    fn a_client_that_has_gone_is_not_tried_again() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let socket = SharedSocket::new(OwnedFd::from(ours), Arc::default());
        drop(theirs);
        let mut coalesced = socket.coalesced();
        coalesced.bytes.extend_from_slice(b"piece");
        assert!(coalesced.send(&socket.transport) && coalesced.bytes == b"piece");
    }

    #[test]
    fn a_socket_that_is_full_is_tried_again() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let socket = Arc::new(SharedSocket::new(OwnedFd::from(ours), Arc::default()));
        let mut filled = 0;
        while let Ok(taken) = socket.transport.send(&[b'-'; 4096], false) {
            filled += taken;
        }
        let sender = Arc::new(CoalescedSender::new());
        let mut coalesced = socket.coalesced();
        coalesced.bytes.extend_from_slice(b"piece");
        sender.watch(&socket, &mut coalesced);
        drop(coalesced);
        let mut received = vec![0; filled + 5];
        theirs.read_exact(&mut received).unwrap();
        assert!(received.ends_with(b"-piece"));
    }
}
