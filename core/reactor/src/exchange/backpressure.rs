//! The client of an exchange, while it is answered: whether it is still there, and takes what is sent.

use std::sync::Arc;

use crate::connection::send::Lost;
use crate::connection::shared_socket::SharedSocket;
use crate::exchange::stream::Stream;
use crate::exchange::{Exchange, SendError};
use crate::log::error::Level;
use crate::sys::socket::Transport;
use crate::sys::{AsFd, BorrowedFd, clock};

/// A socket to wait for. It stays open as long as somebody does.
#[derive(Debug)]
pub struct Socket(Arc<SharedSocket>);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.transport.as_fd()
    }
}

impl Exchange {
    /// The application has nothing to send for now: is there still somebody to send it to?
    #[cold]
    pub(crate) fn check_client(&mut self) -> Result<(), SendError> {
        if self.is_foreign() {
            return Ok(());
        }
        if self.lost || self.has_timed_out() {
            self.lost = true;
            return Err(SendError::Disconnected);
        }
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        if stream.is_behind() {
            stream.flush();
        }
        self.check_send_queue()?;
        let peer = self.stream.as_ref().ok_or(SendError::Over)?.peer_state();
        // An end alone does not say much: a client may have finished sending and still wait for its answer, or it may
        // have gone. One that has gone is not answered for ever, one that waits is not cut off by the first pause.
        const HALF_CLOSED_LIMIT: u64 = 1_000;
        let now = clock::now();
        if !peer.has_finished {
            self.half_closed_since = 0;
        } else if self.half_closed_since == 0 {
            self.half_closed_since = now;
        }
        if peer.is_gone || (self.half_closed_since != 0 && now >= self.half_closed_since + HALF_CLOSED_LIMIT) {
            self.lost = true;
            return Err(SendError::Disconnected);
        }
        Ok(())
    }

    /// Sees to what the socket did not take, now that this has been tried; and to the deadline of that: as long as the
    /// application goes on, there may be no other thread to do so.
    #[inline]
    pub(crate) fn check_send_queue(&mut self) -> Result<(), SendError> {
        if let Some(stream) = &mut self.stream {
            stream.log_sent(&self.reactor);
        }
        self.watch_send_queue()?;
        if self.is_behind() && self.send_timeout_left() == 0 {
            self.cut();
            self.note_disconnect();
            return Err(SendError::Disconnected);
        }
        Ok(())
    }

    /// Nothing more can be sent; says so if that is our doing.
    #[cold]
    fn note_disconnect(&mut self) {
        self.lost = true;
        if !self.cut && self.stream.as_ref().is_some_and(|stream| stream.socket().is_disconnected()) {
            self.cut = true;
            let message =
                format!("request {} {}: the client does not take its answer", self.number, self.request_line());
            self.reactor.options.error_log.write(Level::Info, &message);
        }
    }

    /// Nothing more can be sent.
    #[cold]
    pub(crate) fn disconnected(&mut self, lost: &Lost) -> SendError {
        self.note_disconnect();
        if let Lost::Failed(error) = lost {
            self.cut = true;
            let message = format!("request {} {}: the answer is cut short: {error}", self.number, self.request_line());
            self.reactor.options.error_log.write(Level::Error, &message);
        }
        SendError::Disconnected
    }

    /// The application is about to wait for something: from now on others are ready to go on before it does, if there is
    /// anybody else to be served.
    #[cold]
    pub fn expect_wait(&self) {
        if self.is_foreign() {
            return;
        }
        let mut shared = self.reactor.lock();
        if shared.slots.live() > 1 {
            shared.threads.expect_stall();
        }
    }

    /// Milliseconds for which a client that takes little is still waited for; 0: no longer.
    pub fn send_timeout_left(&self) -> u64 {
        let Some(stream) = &self.stream else { return 0 };
        let until = stream.socket().slow_reader_deadline(self.reactor.options.timeouts.response_rate());
        until.map_or(0, |until| until.saturating_sub(clock::now()).max(1))
    }

    /// A piece that was given in part will never be given as a whole: the answer cannot go on.
    #[cold]
    pub fn break_off(&mut self) {
        if let Some(stream) = &self.stream {
            stream.socket().transport.reset_on_close();
            stream.socket().transport.shut_down();
        }
        (self.lost, self.cut) = (true, true);
    }

    /// Whether we have ended the connection before the answer was complete, and said why.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether so much waits for the client that the application should wait as well.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.stream.as_ref().is_some_and(Stream::is_full)
    }

    /// Whether something of the answer waits for the client, so that more of it may have to be written to a disk.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.stream.as_ref().is_some_and(Stream::is_behind)
    }

    /// Gives up a client that takes nothing.
    pub fn cut(&self) {
        if let Some(stream) = &self.stream {
            stream.socket().disconnect();
        }
    }

    /// Sees to what the socket did not take.
    #[inline]
    fn watch_send_queue(&mut self) -> Result<(), SendError> {
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.is_behind())
            && !stream.watch_send_queue(&self.reactor)
        {
            self.note_disconnect();
            return Err(SendError::Disconnected);
        }
        Ok(())
    }

    /// After [`SendError::Full`]: sends on what waits, and says whether there is room again.
    pub fn send_queued(&mut self) -> Result<(), SendError> {
        self.stream.as_mut().ok_or(SendError::Over)?.flush();
        self.watch_send_queue()?;
        if self.is_full() { Err(SendError::Full(0)) } else { Ok(()) }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> Option<Socket> {
        self.stream.as_ref().map(|stream| Socket(Arc::clone(stream.socket())))
    }
}
