//! A connection that an application has got: what it has sent there, and how both sides are asked to close it.
//!
//! An application that speaks WebSocket gets a Close frame (RFC 6455 section 5.5.1), between two of its own frames and while
//! it is not sending; its client answers with another one, which the application reads. For anything else the input ends.
//! A mode that makes the frames itself also sends the Close frame when the server stops.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::connection::shared_socket::SharedSocket;
use crate::sys::socket::Transport;
use crate::sys::{AsFd, BorrowedFd, OwnedFd, net};
use poorhttp_http::SentBytes;

/// "An endpoint is going away" (RFC 6455 section 7.4.1).
pub(crate) const GOING_AWAY: u16 = 1001;

/// The first byte of a Close frame: the last frame of a message, and its opcode.
const CLOSE: u8 = 0x88;

#[derive(Debug)]
struct Sending {
    sent: SentBytes,
    /// The application is sending, so it is not known what was sent.
    is_busy: bool,
    /// The code of a Close frame that is to be added.
    wanted: Option<u16>,
    /// It was added.
    is_told: bool,
    /// The mode makes the frames, and closes the WebSocket when the server stops.
    frames_itself: bool,
}

/// A connection that an application has got.
#[derive(Debug)]
pub struct Upgraded {
    socket: Arc<SharedSocket>,
    /// The application's end of a relay, if it has that instead of the socket.
    pair: Option<Mutex<Option<OwnedFd>>>,
    sending: Mutex<Sending>,
    /// The application has taken the descriptor for itself: the connection outlives its request.
    is_detached: AtomicBool,
}

impl Upgraded {
    /// `pair`: the end of a relay that the application has.
    pub(crate) fn new(socket: Arc<SharedSocket>, pair: Option<OwnedFd>, is_websocket: bool) -> Self {
        let pair = pair.map(|pair| Mutex::new(Some(pair)));
        let sending = Sending {
            sent: SentBytes::new(is_websocket),
            is_busy: false,
            wanted: None,
            is_told: false,
            frames_itself: false,
        };
        Upgraded { socket, pair, sending: Mutex::new(sending), is_detached: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The application is about to send. `false`: the server has ended its side, so nothing more may be sent.
    pub fn begin_send(&self) -> bool {
        let mut sending = self.lock();
        sending.is_busy = !sending.is_told;
        sending.is_busy
    }

    /// The application has sent these bytes; `None`: it is not known which.
    pub fn end_send(&self, bytes: Option<&[u8]>) {
        let mut sending = self.lock();
        match bytes {
            Some(bytes) => sending.sent.add(bytes),
            None => sending.sent.lose_track(),
        }
        sending.is_busy = false;
        if sending.wanted.is_some() {
            self.close_if_possible(&mut sending);
        }
    }

    /// The application sends, or lets send, in a way that is not seen.
    pub fn lose_track(&self) {
        self.lock().sent.lose_track();
    }

    /// The mode makes the frames behind `head`, which accepts the WebSocket. It reports when it begins to send one that the socket
    /// does not take at once, and when that is sent.
    pub fn frames_itself(&self, head: &[u8]) {
        let mut sending = self.lock();
        sending.sent.add(head);
        (sending.wanted, sending.frames_itself) = (None, true);
    }

    /// So many bytes of frames were sent behind the head.
    pub fn note_frames(&self, bytes: u64) {
        self.lock().sent.add_frames(bytes);
    }

    /// The application has taken the descriptor for itself.
    pub fn detach(&self) {
        self.lose_track();
        self.is_detached.store(true, Ordering::Release);
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.is_detached.load(Ordering::Acquire)
    }

    /// Tells both sides that the connection is to end, as soon as that is possible.
    pub(crate) fn ask_to_close(&self, code: u16) {
        let mut sending = self.lock();
        if !self.is_detached() && sending.wanted.is_none() {
            sending.wanted = Some(code);
            self.close_if_possible(&mut sending);
        }
    }

    /// The same at a graceful stop, which a mode that makes the frames tells both sides itself.
    pub(crate) fn tell(&self, code: u16) {
        if !self.lock().frames_itself {
            self.ask_to_close(code);
        }
    }

    fn close_if_possible(&self, sending: &mut Sending) {
        if sending.is_busy || sending.is_told {
            return;
        }
        if let Some(code) = sending.wanted.filter(|_| sending.sent.may_add_frame()) {
            let [high, low] = code.to_be_bytes();
            let frame = [CLOSE, 2, high, low];
            sending.is_told = true;
            match self.with_socket(|socket| net::send_now(socket, &frame)) {
                Some(Ok(length)) if length == frame.len() => sending.sent.add(&frame),
                // The client takes nothing, or is gone.
                _ => self.end_input(),
            }
        } else if !sending.sent.will_have_frames() {
            self.end_input();
        }
    }

    /// The application receives the end of the input.
    pub(crate) fn end_input(&self) {
        self.with_socket(net::end_input);
    }

    /// Does something with the socket that the application has; `None`: it has none any more.
    fn with_socket<T>(&self, work: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
        match &self.pair {
            None => Some(work(self.socket.transport.as_fd())),
            Some(pair) => {
                let pair = pair.lock().unwrap_or_else(PoisonError::into_inner);
                pair.as_ref().map(|pair| work(pair.as_fd()))
            }
        }
    }

    /// Ends a relay when it has copied everything; if the application is `detached`, when that has closed its end.
    pub(crate) fn end_relay(&self, detached: bool) {
        if !detached {
            self.with_socket(net::end);
        }
        if let Some(pair) = &self.pair {
            *pair.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Ends the connection. `false`: it had ended already.
    pub(crate) fn shut_down(&self) -> bool {
        if self.pair.is_some() {
            self.with_socket(net::end);
        }
        self.socket.transport.shut_down()
    }

    /// The application has finished: adds a Close frame, unless it has sent one. `false`: it cannot be added.
    pub(crate) fn close_with(&self, code: u16) -> bool {
        let mut sending = self.lock();
        if sending.frames_itself {
            return true;
        }
        sending.wanted.get_or_insert(code);
        if sending.sent.may_add_frame() {
            self.close_if_possible(&mut sending);
        }
        sending.is_told || sending.sent.is_closed()
    }

    /// Status, bytes of the head, and all bytes that the application has sent.
    pub(crate) fn sent(&self) -> (Option<u16>, u64, u64) {
        let sent = &self.lock().sent;
        (sent.status(), sent.head(), sent.total())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    const HANDSHAKE: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\n\r\n";

    fn pair(is_websocket: bool) -> (Upgraded, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let upgraded =
            Upgraded::new(Arc::new(SharedSocket::new(OwnedFd::from(ours), Arc::default())), None, is_websocket);
        theirs.set_nonblocking(true).unwrap();
        (upgraded, theirs)
    }

    fn received(client: &mut UnixStream) -> Vec<u8> {
        let mut bytes = [0; 64];
        client.read(&mut bytes).map_or(Vec::new(), |length| bytes[..length].to_vec())
    }

    fn sends(upgraded: &Upgraded, bytes: &[u8]) {
        assert!(upgraded.begin_send());
        upgraded.end_send(Some(bytes));
    }

    #[test]
    fn a_close_frame_comes_between_two_frames_only() {
        let (upgraded, mut client) = pair(true);
        sends(&upgraded, HANDSHAKE);
        sends(&upgraded, b"\x81\x02h");
        upgraded.ask_to_close(GOING_AWAY);
        assert_eq!(received(&mut client), b"");
        assert!(upgraded.begin_send());
        upgraded.ask_to_close(GOING_AWAY);
        assert_eq!(received(&mut client), b"");
        upgraded.end_send(Some(b"i"));
        assert_eq!(received(&mut client), b"\x88\x02\x03\xe9");
        assert!(!upgraded.begin_send(), "nothing follows");
    }

    #[test]
    fn a_handshake_is_waited_for() {
        let (upgraded, mut client) = pair(true);
        upgraded.ask_to_close(GOING_AWAY);
        sends(&upgraded, HANDSHAKE);
        assert_eq!(received(&mut client), b"\x88\x02\x03\xe9");
    }

    #[test]
    fn a_mode_that_makes_the_frames_is_not_told_by_one() {
        let (upgraded, mut client) = pair(true);
        upgraded.frames_itself(HANDSHAKE);
        upgraded.tell(GOING_AWAY);
        assert_eq!(received(&mut client), b"");
        upgraded.note_frames(7);
        assert_eq!(upgraded.sent(), (Some(101), HANDSHAKE.len() as u64, HANDSHAKE.len() as u64 + 7));
        // A quick stop cuts the connection right behind this frame.
        upgraded.begin_send();
        upgraded.ask_to_close(GOING_AWAY);
        assert_eq!(received(&mut client), b"");
        upgraded.end_send(Some(&[]));
        assert_eq!(received(&mut client), b"\x88\x02\x03\xe9");
    }

    #[test]
    fn the_input_of_other_protocols_ends() {
        for is_websocket in [false, true] {
            let (upgraded, mut client) = pair(is_websocket);
            sends(&upgraded, if is_websocket { b"HTTP/1.1 400 \r\n\r\n" } else { HANDSHAKE });
            upgraded.ask_to_close(GOING_AWAY);
            assert_eq!(received(&mut client), b"");
            assert!(upgraded.begin_send());
            assert_eq!(upgraded.socket.transport.receive(&mut [1]), Ok(0));
        }
    }
}
