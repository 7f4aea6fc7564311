//! Transport and send queue of a connection, shared with threads that do not own it; when a client reads too slowly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::connection::body::temp_file::Spool;
use crate::connection::body::throughput::MinimumRate;
use crate::connection::coalesced::{Coalesced, SendsLater};
use crate::connection::multiplexed::Carrier;
use crate::connection::multiplexed::streams::ResponseQueue;
use crate::connection::notice::StreamNotice;
use crate::connection::send_queue::{Flushed, SendQueue};
use crate::connection::transport::Socket;
use crate::connection::transport::stream_socket::StreamSocket;
use crate::sys::clock::NEVER;
use crate::sys::socket::Transport;
use crate::sys::{AsFd, BorrowedFd, Errno};

/// The part of a connection that its owner and the polling thread may use at the same time.
#[derive(Debug)]
pub(crate) struct SharedSocket {
    pub(crate) transport: Socket,
    send_queue: Mutex<Option<SendQueue>>,
    /// Comes before the send queue, which is empty while this is not.
    coalesced: Mutex<Coalesced>,
    /// The send queue is not empty; read without its lock.
    pub(crate) waiting: AtomicBool,
    /// The server has ended the connection: because its client was too slow, unless it is `cut_off`.
    disconnected: AtomicBool,
    /// The server has ended the connection because it stops.
    cut_off: AtomicBool,
    pub(crate) spool: Arc<Spool>,
    /// What the stream of this socket waits for without a thread.
    pub(crate) notice: StreamNotice,
}

impl SharedSocket {
    pub(crate) fn new(socket: impl Into<Socket>, spool: Arc<Spool>) -> Self {
        SharedSocket {
            transport: socket.into(),
            send_queue: Mutex::new(None),
            coalesced: Mutex::default(),
            waiting: AtomicBool::new(false),
            disconnected: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            spool,
            notice: StreamNotice::default(),
        }
    }

    pub(crate) fn send_queue(&self) -> MutexGuard<'_, Option<SendQueue>> {
        self.send_queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A queue that is empty.
    pub(crate) fn new_queue(&self) -> SendQueue {
        let streams = self.transport.stream().map(StreamSocket::connection);
        SendQueue::new(streams.map(|streams| Arc::clone(&streams.queued)))
    }

    pub(crate) fn coalesced(&self) -> MutexGuard<'_, Coalesced> {
        self.coalesced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Flushes the send queue.
    pub(crate) fn flush(&self) -> Flushed {
        match &mut *self.send_queue() {
            Some(send_queue) => self.flush_queue(send_queue),
            None => Flushed::Everything,
        }
    }

    /// The same for the queue, which the caller has locked. A stream has the turn of its connection meanwhile.
    pub(crate) fn flush_queue(&self, send_queue: &mut SendQueue) -> Flushed {
        let turn = self.transport.stream().filter(|stream| stream.connection().take_turn(stream.number()));
        let flushed = send_queue.flush(&self.transport);
        if let Some(stream) = turn {
            stream.connection().end_turn(stream.number(), flushed == Flushed::Paused);
        }
        flushed
    }

    /// Whether the application may go on: there is room in the send queue, or nothing can be sent any more.
    pub(crate) fn has_room(&self) -> bool {
        self.send_queue().as_ref().is_none_or(|send_queue| send_queue.is_broken() || !send_queue.is_full())
    }

    /// When to call [`SharedSocket::slow_reader_deadline`].
    pub(crate) fn deadline(&self, minimum: MinimumRate) -> u64 {
        self.send_queue().as_ref().map_or(NEVER, |send_queue| send_queue.deadline(minimum))
    }

    /// Until when the client of a queue that is not empty may go on as slowly; `None`: it was too slow. To be called once at
    /// each deadline: the next answer is about the time from here on.
    pub(crate) fn slow_reader_deadline(&self, minimum: MinimumRate) -> Option<u64> {
        slow_reader_deadline(&mut self.send_queue(), &self.transport, minimum)
    }

    /// The same without waiting for the lock of the queue, whose holder may be writing to a slow disk: then it is `later`.
    pub(crate) fn try_slow_reader_deadline(&self, minimum: MinimumRate, later: u64) -> Option<u64> {
        match self.send_queue.try_lock() {
            Ok(mut send_queue) => slow_reader_deadline(&mut send_queue, &self.transport, minimum),
            Err(TryLockError::Poisoned(send_queue)) => {
                slow_reader_deadline(&mut send_queue.into_inner(), &self.transport, minimum)
            }
            Err(TryLockError::WouldBlock) => Some(later),
        }
    }

    /// Ends the connection; the next call of its owner fails. Does not wait for a thread that is sending: that one fails
    /// and drops the queue.
    pub(crate) fn disconnect(&self) {
        self.note_disconnected();
        self.transport.reset_on_close();
        self.transport.shut_down();
    }

    /// The same by a reset at once, because the server stops: its owner may never close the socket.
    pub(crate) fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Release);
        self.note_disconnected();
        self.transport.reset();
    }

    fn note_disconnected(&self) {
        self.disconnected.store(true, Ordering::Release);
        if let Ok(mut guard) = self.send_queue.try_lock()
            && let Some(send_queue) = &mut *guard
        {
            send_queue.give_up();
        }
    }

    /// Whether [`SharedSocket::disconnect`] or [`SharedSocket::cut_off`] has ended the connection.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.disconnected.load(Ordering::Acquire)
    }

    /// Whether that was [`SharedSocket::cut_off`].
    pub(crate) fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Acquire)
    }

    /// Sends the last bytes of the connection from another thread: behind the queue, or at once. The socket has room for
    /// them if there is no queue, because nothing was sent for the request that they answer.
    #[cold]
    pub(crate) fn send_final(&self, bytes: &[u8]) {
        let all_sent = match &mut *self.send_queue() {
            Some(send_queue) => {
                send_queue.push(bytes);
                send_queue.flush(&self.transport) == Flushed::Everything
            }
            None => {
                let _ = self.transport.send(bytes, false);
                true
            }
        };
        if all_sent {
            self.transport.finish();
        }
    }

    /// Ends the connection by a reset, so that the client does not take what was sent for a complete response.
    #[cold]
    pub(crate) fn reset(&self) {
        if let Some(send_queue) = &mut *self.send_queue() {
            send_queue.give_up();
        }
        self.transport.reset();
    }
}

impl SendsLater for SharedSocket {
    fn send_waiting(&self) -> bool {
        self.coalesced().send(&self.transport)
    }
}

impl Carrier for SharedSocket {
    fn receive(&self, room: &mut [u8]) -> Result<usize, Errno> {
        self.transport.receive(room)
    }

    fn may_have_more(&self, received: usize, room: usize) -> bool {
        self.transport.may_have_more(received, room)
    }

    fn send(&self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        self.transport.send(bytes, more)
    }

    fn sends_files(&self) -> bool {
        matches!(self.transport, Socket::Plain(_))
    }

    fn send_file(&self, file: BorrowedFd<'_>, at: &mut u64, most: usize) -> Result<usize, Errno> {
        self.transport.send_file(file, at, most)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}

impl ResponseQueue for SharedSocket {
    fn send_on(&self) -> Flushed {
        self.flush()
    }

    fn is_awaited(&self) -> bool {
        self.notice.is_set()
    }
}

fn slow_reader_deadline(send_queue: &mut Option<SendQueue>, transport: &Socket, minimum: MinimumRate) -> Option<u64> {
    match send_queue {
        Some(send_queue) if transport.stream().is_some_and(|stream| waits_for_others(send_queue, stream, minimum)) => {
            send_queue.measure_again();
            Some(send_queue.deadline(minimum))
        }
        Some(send_queue) => (!send_queue.is_too_slow(minimum)).then(|| send_queue.deadline(minimum)),
        None => Some(NEVER),
    }
}

/// Whether a stream is not to blame for what it has not sent: it waits for others, which send as fast as a client must read.
fn waits_for_others(send_queue: &SendQueue, stream: &StreamSocket, minimum: MinimumRate) -> bool {
    stream.waits_for_turn() && (!stream.connection().is_waiting() || send_queue.have_others_moved(minimum))
}
