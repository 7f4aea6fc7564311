//! Backpressure: waits for a slow client, and detects a client that is gone.

use std::sync::Arc;

use crate::connection::notice::Interest;
use crate::connection::send_queue::Lost;
use crate::connection::shared_socket::SharedSocket;
use crate::exchange::send_error::SendError;
use crate::exchange::stream::Stream;
use crate::exchange::writer::ResponseWriter;
use crate::log::error::Level;
use crate::scheduler::state::State;
use crate::scheduler::streams;
use crate::status::CLIENT_ABORT;
use crate::sys::socket::{self, Transport};
use crate::sys::{AsFd, clock};

/// Waits for the client of an exchange, without the exchange. The socket stays open while this exists.
#[derive(Debug)]
pub struct Waiter {
    state: Arc<State>,
    socket: Arc<SharedSocket>,
}

impl Waiter {
    /// Blocks this thread until what is awaited may have come, a signal has arrived, or the time is over.
    pub fn wait(&self, interest: Interest, milliseconds: u64) {
        let Waiter { state, socket } = self;
        match socket.transport.stream() {
            Some(stream) => streams::wait(state, socket, stream, interest, milliseconds),
            None => socket::wait(socket.transport.as_fd(), interest.data, interest.room, milliseconds),
        }
    }
}

/// Adds the parts of a body without the first `taken` bytes by `add`, until the send queue is full.
pub(crate) fn add_rest(
    parts: &[&[u8]],
    taken: usize,
    mut add: impl FnMut(&[u8]) -> Result<(), SendError>,
) -> Result<(), SendError> {
    let mut before = 0;
    for part in parts {
        let begun = taken.saturating_sub(before).min(part.len());
        match add(&part[begun..]) {
            Err(SendError::Full(more)) => return Err(SendError::Full(before + begun + more)),
            added => added?,
        }
        before += part.len();
    }
    Ok(())
}

impl ResponseWriter {
    /// Checks the client while the application has nothing to send.
    #[cold]
    pub(crate) fn check_client(&mut self) -> Result<(), SendError> {
        if self.is_foreign() {
            return Ok(());
        }
        self.check_lost()?;
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        if stream.is_behind() {
            stream.flush();
        }
        self.check_send_queue()?;
        let peer = self.stream.as_ref().ok_or(SendError::Over)?.socket().transport.peer_state();
        // A FIN alone is ambiguous: the client may have finished sending and still wait for its response, or it may be
        // gone. So it counts as gone if it is still half-closed when the application has had nothing to send for a second.
        const HALF_CLOSED_LIMIT: u64 = 1_000;
        let now = clock::now();
        if !peer.has_finished {
            self.half_closed_since = 0;
        } else if self.half_closed_since == 0 {
            self.half_closed_since = now;
        }
        if peer.is_gone {
            self.note_client_abort();
        }
        if peer.is_gone || (self.half_closed_since != 0 && now >= self.half_closed_since + HALF_CLOSED_LIMIT) {
            self.lost = true;
            return Err(SendError::Disconnected);
        }
        Ok(())
    }

    /// Checks the send queue after an attempt to send, and its deadline: while the application goes on, no other thread may
    /// be there to do so.
    #[inline]
    pub(crate) fn check_send_queue(&mut self) -> Result<(), SendError> {
        if let Some(stream) = &mut self.stream {
            stream.log_sent(&self.state);
        }
        self.watch_send_queue()?;
        if self.is_behind() && self.send_timeout_left() == 0 {
            self.cut();
            return Err(self.note_disconnect());
        }
        Ok(())
    }

    /// Fails if nothing more can be sent, or the request timeout has ended the request.
    #[inline]
    pub(crate) fn check_lost(&mut self) -> Result<(), SendError> {
        if self.lost || self.has_timed_out() {
            self.lost = true;
            return Err(SendError::Disconnected);
        }
        Ok(())
    }

    /// Notes that nothing more can be sent, and logs it if a file could not be read, or the server has ended the connection.
    #[cold]
    fn note_disconnect(&mut self) -> SendError {
        self.lost = true;
        if let Some(Lost::Failed(reason)) = self.stream.as_ref().map(Stream::fault) {
            self.note_fault(&reason);
        }
        if let Some(stream) = &self.stream
            && !self.cut
            && stream.socket().is_disconnected()
        {
            self.cut = true;
            // Who has stopped the server has logged that.
            if !stream.socket().is_cut_off() {
                self.log_message(Level::Info, "the client does not read its response");
            }
        }
        self.note_client_abort();
        SendError::Disconnected
    }

    /// The client is gone: if nothing of the response has come there, the request is counted and logged as one whose client has
    /// left before.
    #[cold]
    fn note_client_abort(&mut self) {
        let has_reason = self.cut || self.state.receiving.raw_tcp || self.is_hijacked || self.has_timed_out();
        if let Some(stream) = &self.stream
            && !has_reason
            && stream.has_lost_all(&self.state.telemetry, self.log_entry.start())
        {
            self.response.count_as(CLIENT_ABORT);
        }
    }

    /// Whether the client has left while the application was running, as [`crate::Options::abort_on_close`] defines that, and has
    /// nothing of the response.
    #[cold]
    pub(crate) fn has_left_meanwhile(&self, stream: &Stream) -> bool {
        let has_reason = self.lost || self.state.receiving.raw_tcp || self.is_hijacked || self.timeout.has_outcome();
        if has_reason || !stream.has_sent_nothing(&self.state.telemetry, self.log_entry.start()) {
            return false;
        }
        let peer = stream.socket().transport.peer_state();
        peer.is_gone || (peer.has_finished && self.state.handling.abort_on_close && stream.ends_with_input())
    }

    /// Whether the client has left: nothing can be sent to it any more, or it has ended its input and most likely closed the
    /// connection, as [`crate::Options::abort_on_close`] defines that. After the response: whether it had left then.
    #[cold]
    pub(crate) fn has_client_left(&self) -> bool {
        let Some(stream) = &self.stream else { return self.lost };
        if self.is_foreign() || self.is_hijacked || self.lost || self.has_timed_out() {
            return self.lost || self.has_timed_out();
        }
        let peer = stream.socket().transport.peer_state();
        let has_ended = peer.has_finished && self.state.handling.abort_on_close && stream.ends_with_input();
        peer.is_gone || has_ended || stream.socket().is_disconnected()
    }

    /// The same, with the reason if a file could not be read.
    #[cold]
    pub(crate) fn disconnected(&mut self, lost: Lost) -> SendError {
        if let Lost::Failed(reason) = lost {
            self.note_fault(&reason);
        }
        self.note_disconnect()
    }

    /// Logs what has happened to a file, once: the client is not at fault.
    fn note_fault(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.cut, true) {
            self.log_message(Level::Error, &format!("the response is cut short: {reason}"));
        }
    }

    /// Prepares another thread to take over, because the application is about to wait for something, unless there is no
    /// other connection.
    #[cold]
    pub(crate) fn expect_wait(&self) {
        if self.is_foreign() {
            return;
        }
        let mut shared = self.state.lock();
        if shared.connections.live() > 1 {
            shared.threads.expect_stall();
        }
    }

    /// Milliseconds until a slow client is given up; 0: now.
    pub(crate) fn send_timeout_left(&self) -> u64 {
        let Some(stream) = &self.stream else { return 0 };
        let until = stream.socket().slow_reader_deadline(self.state.timeouts.response_rate());
        until.map_or(0, |until| until.saturating_sub(clock::now()).max(1))
    }

    /// Ends a response of which a piece was sent in part and will not be sent as a whole.
    #[cold]
    pub(crate) fn break_off(&mut self) {
        if let Some(stream) = &self.stream {
            stream.socket().transport.reset_on_close();
            stream.socket().transport.shut_down();
        }
        (self.lost, self.cut) = (true, true);
    }

    /// Whether the server has ended the connection before the response was complete, and logged why.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut || self.stream.as_ref().is_some_and(|stream| stream.socket().is_cut_off())
    }

    /// Whether the application should wait for the client.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.stream.as_ref().is_some_and(Stream::is_full)
    }

    /// Whether a part of the response is queued, so that more of it may have to be written to a disk.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.stream.as_ref().is_some_and(Stream::is_behind)
    }

    /// Disconnects a client that is too slow.
    pub(crate) fn cut(&self) {
        if let Some(stream) = &self.stream {
            stream.socket().disconnect();
        }
    }

    /// Has the send queue flushed and its deadline watched while the application goes on.
    #[inline]
    fn watch_send_queue(&mut self) -> Result<(), SendError> {
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.is_behind())
            && !stream.watch_send_queue(&self.state)
        {
            return Err(self.note_disconnect());
        }
        Ok(())
    }

    /// After [`SendError::Full`]: flushes the send queue; still [`SendError::Full`] if there is no room.
    pub(crate) fn send_queued(&mut self) -> Result<(), SendError> {
        self.stream.as_mut().ok_or(SendError::Over)?.flush();
        self.watch_send_queue()?;
        if self.is_full() { Err(SendError::Full(0)) } else { Ok(()) }
    }

    /// The same as long as anything is queued.
    #[cold]
    pub(crate) fn send_all_queued(&mut self) -> Result<(), SendError> {
        self.send_queued()?;
        if self.is_behind() { Err(SendError::Full(0)) } else { Ok(()) }
    }

    /// What a thread waits by; none when the request is over.
    pub(crate) fn waiter(&self) -> Option<Waiter> {
        let stream = self.stream.as_ref()?;
        Some(Waiter { state: Arc::clone(&self.state), socket: Arc::clone(stream.socket()) })
    }

    /// Has `function` called once when what the application waits for has come; at once if the request is over.
    #[cold]
    pub(crate) fn notify(&mut self, interest: Interest, function: impl FnOnce() + Send + 'static) {
        match &mut self.stream {
            Some(stream) if !self.state.is_foreign() => stream.notify(&self.state, interest, function),
            _ => function(),
        }
    }
}
