//! Sends on a connection: to the socket at once, the rest to the send queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::connection::Connection;
use crate::connection::coalesced::{CoalescedSender, SharedCoder};
use crate::connection::send_queue::{Flushed, Lost, SendQueue};
use crate::limits::MOST_COALESCED;
use crate::sys::Errno;
use crate::sys::socket::Transport;
use poorhttp_files::Part;

impl Connection {
    /// Sends the output and then `more`. What the socket does not take goes to the send queue.
    #[inline]
    pub(crate) fn transmit(&mut self, more: &[&[u8]]) -> Result<(), Lost> {
        self.transmit_with(false, more)
    }

    /// Sends the output before the connection is closed at once: the last packet carries the FIN.
    #[inline]
    pub(crate) fn transmit_last(&mut self) -> Result<(), Lost> {
        self.transmit_with(true, &[])
    }

    /// Whether so many bytes more may wait for those that follow.
    pub(crate) fn may_coalesce(&self, bytes: usize) -> bool {
        let is_empty = self.request.buffers.as_ref().is_none_or(|buffers| buffers.out.is_empty());
        is_empty && self.coalesced + bytes as u64 <= MOST_COALESCED
    }

    /// Has bytes, which `add` writes behind those that wait already, sent within a millisecond, or with the next. `false`: they
    /// must be sent now.
    pub(crate) fn coalesce(&mut self, sender: &Arc<CoalescedSender>, add: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut coalesced = self.socket.coalesced();
        if let Some(buffers) = &mut self.request.buffers
            && coalesced.bytes.capacity() == 0
        {
            // The output is empty: its memory has held earlier pieces.
            std::mem::swap(&mut coalesced.bytes, &mut buffers.out);
        }
        let before = coalesced.bytes.len();
        add(&mut coalesced.bytes);
        self.coalesced += (coalesced.bytes.len() - before) as u64;
        sender.watch(&self.socket, &mut coalesced)
    }

    /// The same for a piece that is coded then.
    #[cold]
    pub(crate) fn coalesce_coded(&mut self, sender: &Arc<CoalescedSender>, coder: &SharedCoder, piece: &[u8]) -> bool {
        let mut coalesced = self.socket.coalesced();
        coalesced.add_pending(coder, piece);
        // Their number is known when they are coded, which is before the end of the response.
        self.coalesced += piece.len() as u64;
        sender.watch(&self.socket, &mut coalesced)
    }

    /// Takes back what was coalesced and not sent: before all other output.
    #[inline]
    pub(crate) fn reclaim_coalesced(&mut self) {
        if self.coalesced > 0 {
            self.take_coalesced();
        }
    }

    #[cold]
    fn take_coalesced(&mut self) {
        let mut coalesced = self.socket.coalesced();
        coalesced.encode_pending();
        self.coalesced = 0;
        self.taken += std::mem::take(&mut coalesced.sent);
        let out = &mut self.request.buffers.get_or_insert_default().out;
        // The socket keeps no buffer: it may be idle for long.
        let mut waiting = std::mem::take(&mut coalesced.bytes);
        waiting.append(out);
        *out = waiting;
    }

    #[inline]
    fn transmit_with(&mut self, end_follows: bool, more: &[&[u8]]) -> Result<(), Lost> {
        self.reclaim_coalesced();
        let Some(buffers) = &mut self.request.buffers else { return Ok(()) };
        if !self.has_send_queue {
            let total = buffers.out.len() + more.iter().map(|part| part.len()).sum::<usize>();
            if total == 0 {
                return Ok(());
            }
            let sent = match more {
                [] => self.socket.transport.send(&buffers.out, end_follows),
                _ => self.socket.transport.send_vectored(&buffers.out, more),
            };
            let sent = match sent {
                Ok(bytes) => bytes,
                Err(Errno::AGAIN) => 0,
                Err(_) => {
                    self.dropped += (total - buffers.out.len()) as u64;
                    return Err(Lost::ClientGone);
                }
            };
            self.taken += sent as u64;
            if sent == total {
                buffers.out.clear();
                return Ok(());
            }
            return self.queue(more, sent);
        }
        self.queue(more, 0)
    }

    /// Queues the output and `more` without the first `sent` bytes, and flushes the queue.
    #[cold]
    fn queue(&mut self, more: &[&[u8]], mut sent: usize) -> Result<(), Lost> {
        self.fill(|connection, out| {
            for part in [out].iter().chain(more) {
                let skipped = sent.min(part.len());
                sent -= skipped;
                connection.store(&part[skipped..]);
            }
        })
    }

    /// Sends the output and then parts of files and of memory.
    pub(crate) fn transmit_parts(&mut self, parts: impl Iterator<Item = Part>) -> Result<(), Lost> {
        self.fill(|connection, out| {
            connection.store(out);
            for part in parts {
                match part {
                    Part::Memory(bytes, range) => connection.store(bytes.get(range).unwrap_or_default()),
                    Part::File { file, at, length } => {
                        connection
                            .socket
                            .send_queue()
                            .get_or_insert_with(|| connection.socket.new_queue())
                            .push_file(file, at, length);
                    }
                }
            }
        })
    }

    /// Calls `store` to queue the output and what follows it, and flushes the queue.
    fn fill(&mut self, store: impl FnOnce(&Self, &[u8])) -> Result<(), Lost> {
        self.reclaim_coalesced();
        let mut out = std::mem::take(&mut self.request.buffers().out);
        self.socket.send_queue().get_or_insert_with(|| self.socket.new_queue());
        self.socket.waiting.store(true, Ordering::Release);
        self.has_send_queue = true;
        store(self, &out);
        out.clear();
        self.request.buffers().out = out;
        // Even if the socket was full a moment ago: the event that it is writable again may have come before there was a
        // queue to flush.
        match self.flush() {
            Flushed::Everything | Flushed::Blocked | Flushed::Paused => Ok(()),
            Flushed::Broken => Err(self.fault()),
        }
    }

    /// Queues bytes. The disk is written without the lock of the queue, for which the polling thread may have to wait.
    fn store(&self, bytes: &[u8]) {
        let mut guard = self.socket.send_queue();
        let send_queue = guard.get_or_insert_with(|| self.socket.new_queue());
        if send_queue.has_room(bytes.len()) {
            return send_queue.push(bytes);
        }
        let (last, waiting) = (send_queue.last_file(), send_queue.spilled());
        drop(guard);
        let written = self.socket.spool.write(last, bytes, waiting);
        let mut guard = self.socket.send_queue();
        let send_queue = guard.get_or_insert_with(|| self.socket.new_queue());
        match written {
            Some((file, at)) => send_queue.push_spilled(file, at, bytes.len() as u64),
            None => send_queue.push(bytes),
        }
    }

    /// Whether the send queue is in use.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.has_send_queue
    }

    /// Whether the socket may take more of the send queue, and no event will report that. To be asked once.
    #[inline]
    pub(crate) fn take_paused(&mut self) -> bool {
        std::mem::take(&mut self.paused)
    }

    /// Whether so much waits for the client that the application should wait as well.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.has_send_queue && self.socket.send_queue().as_ref().is_some_and(SendQueue::is_full)
    }

    /// Why nothing can be sent any more.
    pub(crate) fn fault(&self) -> Lost {
        self.socket.send_queue().as_ref().map_or(Lost::ClientGone, SendQueue::fault)
    }

    /// Flushes the send queue, and drops it if it is empty then.
    pub(crate) fn flush(&mut self) -> Flushed {
        let mut guard = self.socket.send_queue();
        let flushed = match &mut *guard {
            Some(send_queue) => self.socket.flush_queue(send_queue),
            None => Flushed::Everything,
        };
        self.paused = flushed == Flushed::Paused;
        if flushed == Flushed::Everything {
            self.taken += guard.take().map_or(0, |send_queue| send_queue.sent());
            self.socket.waiting.store(false, Ordering::Release);
            self.has_send_queue = false;
        }
        flushed
    }
}
