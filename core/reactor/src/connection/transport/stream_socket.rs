//! The transport of one stream of a connection that carries many: its number, content in, responses out.
//!
//! What is sent is a response as text of HTTP/1.1, whose content has no framing; the protocol makes frames of it. A full window is a
//! full socket, so that the rest waits in the send queue.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use crate::connection::multiplexed::Multiplexed;
use crate::connection::multiplexed::streams::{InputEnd, Lent};
use crate::sys::socket::{PeerState, Transport};
use crate::sys::{AsFd, BorrowedFd, Errno, clock, file};

/// Bytes of a file that are read at once.
const PIECE: usize = 64 << 10;

thread_local! {
    /// Memory for content of a file on its way; empty while it is used: sending may have this thread send on another stream.
    static PIECE_OF_THREAD: Cell<Box<[u8]>> = Cell::default();
}

/// One stream.
#[derive(Debug)]
pub(crate) struct StreamSocket {
    connection: Arc<Multiplexed>,
    stream: u32,
    /// When its head had come, in milliseconds of [`clock::now`].
    begun: u64,
}

impl StreamSocket {
    pub(crate) fn new(connection: Arc<Multiplexed>, stream: u32) -> Self {
        StreamSocket { connection, stream, begun: clock::now() }
    }

    pub(crate) fn connection(&self) -> &Arc<Multiplexed> {
        &self.connection
    }

    /// Its number.
    pub(crate) fn number(&self) -> u32 {
        self.stream
    }

    /// When its head had come.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// How the client has ended its side.
    pub(crate) fn input_end(&self) -> Option<InputEnd> {
        self.connection.input_end(self.stream)
    }

    /// Passes content to `take`, at most so many bytes; see [`Multiplexed::receive_up_to`].
    pub(crate) fn receive_up_to(
        &self,
        most: usize,
        take: impl FnOnce(&[u8]) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        self.connection.receive_up_to(self.stream, most, take)
    }

    /// See [`Multiplexed::lend`].
    pub(crate) fn lend(&self, lent: Lent) -> Option<Lent> {
        self.connection.lend(self.stream, lent)
    }

    /// See [`Multiplexed::await_content`].
    pub(crate) fn await_content(&self) {
        self.connection.await_content(self.stream);
    }

    /// See [`Multiplexed::widen`].
    pub(crate) fn widen(&self) {
        self.connection.widen(self.stream);
    }

    /// See [`Multiplexed::allowed`].
    pub(crate) fn allowed(&self) -> u64 {
        self.connection.allowed(self.stream)
    }

    /// See [`Multiplexed::is_held`].
    pub(crate) fn is_held(&self) -> bool {
        self.connection.is_held(self.stream)
    }

    /// See [`Multiplexed::check_hold`].
    pub(crate) fn check_hold(&self) -> bool {
        self.connection.check_hold(self.stream)
    }

    /// See [`Multiplexed::take_back`].
    pub(crate) fn take_back(&self) -> Option<Lent> {
        self.connection.take_back(self.stream)
    }

    /// Whether what it has to send waits for other streams.
    pub(crate) fn waits_for_turn(&self) -> bool {
        self.connection.waits_for_turn(self.stream)
    }

    /// See [`Multiplexed::set_trailers`].
    pub(crate) fn set_trailers(&self, lines: &[u8]) {
        self.connection.set_trailers(self.stream, lines);
    }

    /// Whether TLS of its connection ends here.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.connection.origin.over_tls
    }

    /// The environ's variables of the connection's TLS.
    pub(crate) fn tls_variables(&self) -> &[(Cow<'static, str>, String)] {
        &self.connection.origin.tls_variables
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.fd()
    }
}

impl Transport for StreamSocket {
    fn receive(&self, room: &mut [u8]) -> Result<usize, Errno> {
        self.connection.receive(self.stream, room)
    }

    fn may_have_more(&self, _received: usize, _room: usize) -> bool {
        self.connection.may_receive(self.stream)
    }

    fn peek(&self, room: &mut [u8]) -> Result<usize, Errno> {
        self.connection.peek(self.stream, room)
    }

    fn send(&self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        self.connection.send(self.stream, bytes, more)
    }

    fn send_vectored(&self, first: &[u8], rest: &[&[u8]]) -> Result<usize, Errno> {
        let mut total = 0;
        for (number, part) in [first].iter().chain(rest).enumerate().filter(|(_, part)| !part.is_empty()) {
            match self.send(part, number < rest.len()) {
                Ok(taken) => {
                    total += taken;
                    if taken < part.len() {
                        break;
                    }
                }
                Err(_) if total > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }

    fn send_file(&self, file: BorrowedFd<'_>, at: &mut u64, most: usize) -> Result<usize, Errno> {
        if let Some(sent) = self.connection.send_file(self.stream, file, at, most) {
            return sent;
        }
        let length = self.connection.room(self.stream)?.min(PIECE).min(most);
        let mut piece = PIECE_OF_THREAD.take();
        if piece.is_empty() {
            piece = vec![0; PIECE].into();
        }
        let sent = match file::read_at(file, &mut piece[..length], *at) {
            Ok(read @ 1..) => self.send(&piece[..read], read < most),
            ended => ended,
        };
        PIECE_OF_THREAD.set(piece);
        *at += *sent.as_ref().unwrap_or(&0) as u64;
        sent
    }

    fn finish(&self) -> bool {
        self.connection.finish(self.stream);
        true
    }

    /// The client is too slow.
    fn shut_down(&self) -> bool {
        self.connection.reset(self.stream, true)
    }

    fn reset(&self) {
        self.connection.reset(self.stream, false);
    }

    /// A stream that was not finished ends by a reset in any case.
    fn reset_on_close(&self) {}

    fn peer_state(&self) -> PeerState {
        let is_gone = self.connection.is_gone(self.stream);
        PeerState { is_gone, has_finished: is_gone || self.connection.has_ended() }
    }
}

impl Drop for StreamSocket {
    fn drop(&mut self) {
        self.connection.forget(self.stream);
    }
}
