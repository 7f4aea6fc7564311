//! What is reached of a connection while somebody else has it: its socket, and what waits for a slow reader.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::connection::send_queue::{Flushed, SendQueue};
use crate::connection::temp_file::Spool;
use crate::connection::throughput::MinimumRate;
use crate::sys::OwnedFd;
use crate::sys::clock::NEVER;
use crate::sys::socket::{PlainSocket, Transport};

/// What two threads may touch at once: the owner of the connection, and whoever finds the socket writable.
#[derive(Debug)]
pub(crate) struct SharedSocket {
    pub(crate) transport: PlainSocket,
    send_queue: Mutex<Option<SendQueue>>,
    /// Something waits in the outlet; read without its lock.
    pub(crate) waiting: AtomicBool,
    /// We have ended the connection, because its client took too little.
    disconnected: AtomicBool,
    pub(crate) spool: Arc<Spool>,
}

impl SharedSocket {
    pub(crate) fn new(socket: OwnedFd, spool: Arc<Spool>) -> Self {
        SharedSocket {
            transport: socket.into(),
            send_queue: Mutex::new(None),
            waiting: AtomicBool::new(false),
            disconnected: AtomicBool::new(false),
            spool,
        }
    }

    pub(crate) fn send_queue(&self) -> MutexGuard<'_, Option<SendQueue>> {
        self.send_queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Sends what waits, as far as the socket takes it and others do not have to wait.
    pub(crate) fn flush(&self) -> Flushed {
        match &mut *self.send_queue() {
            Some(send_queue) => send_queue.flush(&self.transport),
            None => Flushed::Everything,
        }
    }

    /// When to ask for its [`SharedSocket::slow_reader_deadline`].
    pub(crate) fn deadline(&self, minimum: MinimumRate) -> u64 {
        self.send_queue().as_ref().map_or(NEVER, |send_queue| send_queue.deadline(minimum))
    }

    /// Until when a reader for whom something waits may go on as it does; `None`: it has been too slow. To be asked once
    /// for each deadline: the next answer is about the time from here on.
    pub(crate) fn slow_reader_deadline(&self, minimum: MinimumRate) -> Option<u64> {
        slow_reader_deadline(&mut self.send_queue(), minimum)
    }

    /// The same for those who hold a lock that others need: whoever has the outlet may be writing to a slow disk, and then
    /// it is asked again after `later`.
    pub(crate) fn try_slow_reader_deadline(&self, minimum: MinimumRate, later: u64) -> Option<u64> {
        match self.send_queue.try_lock() {
            Ok(mut send_queue) => slow_reader_deadline(&mut send_queue, minimum),
            Err(TryLockError::Poisoned(send_queue)) => slow_reader_deadline(&mut send_queue.into_inner(), minimum),
            Err(TryLockError::WouldBlock) => Some(later),
        }
    }

    /// Cuts the connection off: whoever owns it learns of it with its next call. Does not wait for a thread that is sending:
    /// that one fails, and gives up what is left.
    pub(crate) fn disconnect(&self) {
        self.disconnected.store(true, Ordering::Release);
        if let Ok(mut guard) = self.send_queue.try_lock()
            && let Some(send_queue) = &mut *guard
        {
            send_queue.give_up();
        }
        self.transport.reset_on_close();
        self.transport.shut_down();
    }

    /// Whether [`SharedSocket::disconnect`] has ended the connection.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.disconnected.load(Ordering::Acquire)
    }

    /// Sends the last octets of this connection, from outside: behind what waits, or at once. There is room for them, because
    /// either nothing has been sent for the request that they answer, or they wait as well.
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

    /// Ends the connection so that nobody takes what was sent for a whole answer.
    #[cold]
    pub(crate) fn reset(&self) {
        if let Some(send_queue) = &mut *self.send_queue() {
            send_queue.give_up();
        }
        self.transport.reset();
    }
}

fn slow_reader_deadline(send_queue: &mut Option<SendQueue>, minimum: MinimumRate) -> Option<u64> {
    match send_queue {
        Some(send_queue) => (!send_queue.is_too_slow(minimum)).then(|| send_queue.deadline(minimum)),
        None => Some(NEVER),
    }
}
