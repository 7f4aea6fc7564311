//! TLS on a socket: steps of the handshake, why it failed, version and cipher, records in both directions.
//!
//! - Content that is reported as sent is in records that the kernel has taken. What it has not taken waits here, at most
//!   [`ENCRYPTED_AT_ONCE`] bytes; the caller keeps that content, and gives it again with the next call.
//! - Content that was decrypted and not received waits here, at most what one call of the kernel has returned.
//! - An idle connection has no buffers: those of the thread are used.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use poorhttp_interface::tls::{LARGEST_REST, OVERHEAD, RECORD, REFUSAL, Session, Variables};

use crate::connection::transport::outgoing::{Content, ENCRYPTED_AT_ONCE, Outgoing};
use crate::sys::socket::{PeerState, PlainSocket, Transport};
use crate::sys::{AsFd, BorrowedFd, Errno, OwnedFd, kernel_tls};

/// Bytes that are received at once.
const RECEIVED_AT_ONCE: usize = 64 << 10;

/// From so many bytes of a file on, it is worth the system calls to have the kernel encrypt what follows on a connection.
const OFFLOADED_FROM: usize = 128 << 10;

/// Records after which AES-GCM needs another key (256 GiB of a file), which not all kernels can be given.
const MOST_RECORDS: u64 = 1 << 24;

/// Buffers of a thread.
struct Buffers {
    /// What is received, behind what waits for its rest; or content that is read from a file.
    input: Box<[u8]>,
    records: Box<[u8]>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        input: vec![0; LARGEST_REST + RECEIVED_AT_ONCE].into_boxed_slice(),
        records: vec![0; ENCRYPTED_AT_ONCE + (ENCRYPTED_AT_ONCE / RECORD + 1) * OVERHEAD].into_boxed_slice(),
    });
}

/// Outcome of a step of the handshake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// It is complete.
    Done,
    /// The client must send something, or take something.
    Wait,
    /// The client does not speak TLS, but HTTP; the socket is plain from now on.
    Plain,
    /// It has failed for this reason; the client was told.
    Failed(String),
    /// The client has left.
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Bytes go through as they are: a PROXY protocol header comes first, or the client does not speak TLS.
    Clear,
    Handshake,
    Open,
    /// The kernel makes the records of what is sent.
    Offloaded,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    session: Box<dyn Session>,
    outgoing: Outgoing,
    /// Decrypted content that was not received, from `taken` on.
    content: Vec<u8>,
    taken: usize,
    /// Records that the kernel has made, at least.
    records: u64,
    /// The alert that ends our side was made.
    is_finished: bool,
}

impl State {
    /// Decrypted content that was not received.
    fn pending(&self) -> &[u8] {
        &self.content[self.taken..]
    }

    /// Moves such content to `room`.
    fn take(&mut self, room: &mut [u8]) -> usize {
        let pending = self.pending();
        let length = pending.len().min(room.len());
        room[..length].copy_from_slice(&pending[..length]);
        self.taken += length;
        if self.taken == self.content.len() {
            (self.content, self.taken) = (Vec::new(), 0);
        }
        length
    }
}

/// A socket with TLS.
#[derive(Debug)]
pub(crate) struct TlsSocket {
    socket: PlainSocket,
    state: Mutex<State>,
    /// Something may be there to be received: in the kernel, or decrypted.
    more: AtomicBool,
    /// The environ's variables of the session, made once.
    variables: OnceLock<Variables>,
}

/// The error of a session that has failed.
const FAILED: Errno = Errno::PROTO;

impl TlsSocket {
    /// TLS begins with [`TlsSocket::handshake`]; until then, bytes go through as they are.
    pub(crate) fn new(socket: OwnedFd, session: Box<dyn Session>) -> Self {
        let state = State {
            stage: Stage::Clear,
            session,
            outgoing: Outgoing::default(),
            content: Vec::new(),
            taken: 0,
            records: 0,
            is_finished: false,
        };
        TlsSocket {
            socket: socket.into(),
            state: Mutex::new(state),
            more: AtomicBool::new(true),
            variables: OnceLock::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with the handshake: receives once, unless `received` came behind a PROXY protocol header, and sends the answer.
    pub(crate) fn handshake(&self, received: Option<&[u8]>) -> Handshake {
        let state = &mut *self.state();
        state.stage = Stage::Handshake;
        if !state.outgoing.is_empty() && state.outgoing.flush(&self.socket).is_err() {
            return Handshake::Left;
        }
        if let Some(received @ [_, ..]) = received {
            self.more.store(true, Ordering::Relaxed);
            return self.process_handshake(state, &mut received.to_vec());
        }
        BUFFERS.with_borrow_mut(|buffers| {
            let begun = state.session.begin(&mut buffers.input);
            let room = &mut buffers.input[begun..begun + RECEIVED_AT_ONCE];
            let received = match self.socket.receive(room) {
                Ok(bytes @ 1..) => bytes,
                Err(Errno::AGAIN) => {
                    self.more.store(false, Ordering::Relaxed);
                    return Handshake::Wait;
                }
                Ok(0) | Err(_) => return Handshake::Left,
            };
            self.more.store(received == RECEIVED_AT_ONCE, Ordering::Relaxed);
            self.process_handshake(state, &mut buffers.input[..begun + received])
        })
    }

    fn process_handshake(&self, state: &mut State, input: &mut [u8]) -> Handshake {
        // A record of a handshake begins with 22; a method, with a letter.
        if state.session.is_untouched() && input.first().is_some_and(u8::is_ascii_uppercase) {
            state.stage = Stage::Clear;
            return Handshake::Plain;
        }
        let content = &mut state.content;
        let outcome = state.session.receive(input, &mut |bytes| content.extend_from_slice(bytes));
        state.outgoing.add(&state.session.take_control());
        let is_done = outcome.is_ok() && !state.session.is_handshaking();
        if is_done {
            state.stage = Stage::Open;
            if !state.content.is_empty() {
                // The first request has come with the end of the handshake. Tickets are sent with its response.
                self.more.store(true, Ordering::Relaxed);
                return Handshake::Done;
            }
        }
        let is_lost = state.outgoing.flush(&self.socket).is_err();
        match outcome {
            Err(error) => {
                // What the client still sends is dropped, so that the alert is not lost.
                state.stage = Stage::Clear;
                Handshake::Failed(error)
            }
            Ok(()) if is_lost => Handshake::Left,
            Ok(()) if is_done => Handshake::Done,
            Ok(()) => Handshake::Wait,
        }
    }

    /// Whether the handshake has agreed upon a protocol with streams.
    pub(crate) fn has_streams(&self) -> bool {
        self.state().session.has_streams()
    }

    /// Whether the session has failed, and the alert for the client was made.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().session.has_failed()
    }

    /// Tells a client without a handshake that it is not served.
    #[cold]
    pub(crate) fn refuse(&self) {
        // Input that nobody reads would have the kernel reset the connection, and the alert be lost.
        // Bounded, so that one fast sender cannot occupy the thread.
        for _ in 0..64 {
            if !matches!(self.socket.receive(&mut [0; 4096]), Ok(1..)) {
                break;
            }
        }
        let _ = self.socket.send(&REFUSAL, false);
        self.socket.finish();
    }

    /// Whether records wait for the kernel although no content does: an event that the socket is writable is needed.
    pub(crate) fn owes_records(&self) -> bool {
        !self.state().outgoing.is_empty()
    }

    /// Whether what is sent is encrypted: the handshake is complete.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.state().stage, Stage::Open | Stage::Offloaded)
    }

    /// The variables of the session for the environ.
    pub(crate) fn variables(&self) -> &[(Cow<'static, str>, String)] {
        self.variables.get_or_init(|| {
            let state = self.state();
            if state.stage == Stage::Open { state.session.variables() } else { Vec::new() }
        })
    }

    /// Sends what goes to the socket as it is, if that is so.
    fn send_as_is(&self, send: impl FnOnce() -> Result<usize, Errno>) -> Option<Result<usize, Errno>> {
        let mut state = self.state();
        match state.stage {
            Stage::Clear => Some(send()),
            Stage::Offloaded if state.records > MOST_RECORDS => Some(Err(FAILED)),
            Stage::Offloaded => Some(send().inspect(|bytes| state.records += (bytes / RECORD + 1) as u64)),
            Stage::Handshake | Stage::Open => None,
        }
    }

    /// Has the kernel make the records from now on, if it can, and if nothing waits.
    fn offload(&self) -> Result<(), Errno> {
        // They need the session.
        self.variables();
        let state = &mut *self.state();
        if state.stage != Stage::Open || !state.outgoing.is_empty() || state.outgoing.is_under_way() {
            return Ok(());
        }
        if let Some(records) = state.session.can_offload()
            && kernel_tls::prepare(&self.socket, records)
        {
            let keys = state.session.offload().map_err(|_| FAILED)?;
            kernel_tls::begin(&self.socket, &keys)?;
            state.stage = Stage::Offloaded;
        }
        Ok(())
    }

    /// Encrypts and sends content, and says how much of it the kernel has taken.
    fn send_content(&self, content: &Content<'_>, total: usize, more: bool) -> Result<usize, Errno> {
        let state = &mut *self.state();
        let (session, outgoing) = (&mut state.session, &mut state.outgoing);
        if state.stage != Stage::Open {
            return Err(Errno::NOTCONN);
        }
        let mut done = 0;
        if outgoing.is_under_way() {
            outgoing.flush(&self.socket)?;
            done += outgoing.report(total);
        }
        while done < total && !outgoing.is_under_way() {
            let outcome = BUFFERS.with_borrow_mut(|Buffers { input, records }| {
                let piece = content.piece(done, total - done, input)?;
                if piece.is_empty() {
                    return Ok(0);
                }
                let length = session.encrypt(piece, records).map_err(|_| FAILED)?;
                // Records of the session come first, and leave in the same call.
                let mut all = std::mem::take(&mut outgoing.records);
                all.extend_from_slice(&session.take_control());
                let all = match all.is_empty() {
                    true => Cow::Borrowed(&records[..length]),
                    false => Cow::Owned([&all, &records[..length]].concat()),
                };
                let sent = match self.socket.send(&all, more || done + piece.len() < total) {
                    Ok(bytes) => bytes,
                    Err(Errno::AGAIN) => 0,
                    Err(error) => return Err(error),
                };
                if sent == all.len() {
                    return Ok(piece.len());
                }
                *outgoing = Outgoing { records: all.into_owned(), sent, content: piece.len(), reported: 0 };
                Ok(outgoing.report(piece.len()))
            });
            match outcome {
                Ok(0) if !outgoing.is_under_way() => return Ok(done),
                Ok(bytes) => done += bytes,
                // The next call will find it.
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if done == 0 && total > 0 { Err(Errno::AGAIN) } else { Ok(done) }
    }
}

impl AsFd for TlsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

// Out of line, so that the way of plain connections stays as short as it is without TLS.
impl Transport for TlsSocket {
    #[inline(never)]
    fn receive(&self, room: &mut [u8]) -> Result<usize, Errno> {
        let state = &mut *self.state();
        if state.stage == Stage::Clear {
            let received = self.socket.receive(room)?;
            self.more.store(self.socket.may_have_more(received, room.len()), Ordering::Relaxed);
            return Ok(received);
        }
        loop {
            if let taken @ 1.. = state.take(room) {
                let more = self.more.load(Ordering::Relaxed) || !state.pending().is_empty();
                self.more.store(more, Ordering::Relaxed);
                return Ok(taken);
            }
            if state.session.is_closed() {
                return Ok(0);
            }
            if state.session.has_failed() {
                // What the client still sends is dropped, so that the alert is not lost.
                return if state.is_finished { self.socket.receive(room) } else { Err(FAILED) };
            }
            let outcome = BUFFERS.with_borrow_mut(|Buffers { input, .. }| {
                let begun = state.session.begin(input);
                let received = match self.socket.receive(&mut input[begun..begun + RECEIVED_AT_ONCE]) {
                    // Without the alert that ends it, the peer may have sent more, which somebody has cut off.
                    Ok(0) => Err(Errno::CONNRESET),
                    other => other,
                }?;
                self.more.store(received == RECEIVED_AT_ONCE, Ordering::Relaxed);
                let (content, mut filled) = (&mut state.content, 0);
                let outcome = state.session.receive(&mut input[..begun + received], &mut |bytes| {
                    let taken = if content.is_empty() { bytes.len().min(room.len() - filled) } else { 0 };
                    room[filled..filled + taken].copy_from_slice(&bytes[..taken]);
                    filled += taken;
                    content.extend_from_slice(&bytes[taken..]);
                });
                if state.session.has_control() {
                    state.outgoing.add(&state.session.take_control());
                    // Otherwise it leaves with the next content.
                    let _ = state.outgoing.flush(&self.socket);
                }
                if !content.is_empty() || state.session.is_closed() || state.session.has_failed() {
                    self.more.store(true, Ordering::Relaxed);
                }
                match outcome {
                    Err(_) if filled == 0 => Err(FAILED),
                    _ => Ok(filled),
                }
            });
            match outcome {
                Err(Errno::AGAIN) => {
                    self.more.store(false, Ordering::Relaxed);
                    return Err(Errno::AGAIN);
                }
                Ok(0) if !self.more.load(Ordering::Relaxed) => return Err(Errno::AGAIN),
                Ok(0) => {}
                other => return other,
            }
        }
    }

    #[inline(never)]
    fn may_have_more(&self, _: usize, _: usize) -> bool {
        self.more.load(Ordering::Relaxed)
    }

    /// Only what has been decrypted already can be seen.
    #[inline(never)]
    fn peek(&self, room: &mut [u8]) -> Result<usize, Errno> {
        let state = self.state();
        if state.stage == Stage::Clear {
            return self.socket.peek(room);
        }
        let pending = state.pending();
        if pending.is_empty() {
            return match self.socket.peek(&mut [0]) {
                Ok(1..) => Err(Errno::AGAIN),
                other => other,
            };
        }
        let length = pending.len().min(room.len());
        room[..length].copy_from_slice(&pending[..length]);
        Ok(length)
    }

    /// It may be an alert only.
    #[inline(never)]
    fn has_input(&self) -> bool {
        !self.state().pending().is_empty() || self.socket.has_input()
    }

    #[inline(never)]
    fn send(&self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        if let Some(sent) = self.send_as_is(|| self.socket.send(bytes, more)) {
            return sent;
        }
        self.send_content(&Content::Memory(&[bytes]), bytes.len(), more)
    }

    #[inline(never)]
    fn send_vectored(&self, first: &[u8], rest: &[&[u8]]) -> Result<usize, Errno> {
        if let Some(sent) = self.send_as_is(|| self.socket.send_vectored(first, rest)) {
            return sent;
        }
        const MOST: usize = 4;
        let mut parts = [&[][..]; MOST];
        let mut used = 0;
        for part in [first].iter().chain(rest).filter(|part| !part.is_empty()).take(MOST) {
            parts[used] = part;
            used += 1;
        }
        let total = parts.iter().map(|part| part.len()).sum();
        self.send_content(&Content::Memory(&parts[..used]), total, false)
    }

    #[inline(never)]
    fn send_file(&self, file: BorrowedFd<'_>, at: &mut u64, most: usize) -> Result<usize, Errno> {
        if most >= OFFLOADED_FROM {
            self.offload()?;
        }
        if let Some(sent) = self.send_as_is(|| self.socket.send_file(file, at, most)) {
            return sent;
        }
        let sent = self.send_content(&Content::File(file, *at), most, false)?;
        *at += sent as u64;
        Ok(sent)
    }

    #[inline(never)]
    fn finish(&self) -> bool {
        let state = &mut *self.state();
        if state.stage == Stage::Offloaded && !state.is_finished {
            match kernel_tls::send_close_notify(&self.socket) {
                Err(Errno::AGAIN) => return false,
                _ => state.is_finished = true,
            }
        }
        if state.stage == Stage::Open && !state.is_finished {
            state.is_finished = true;
            state.session.close();
            let alert = state.session.take_control();
            state.outgoing.add(&alert);
        }
        match state.outgoing.flush(&self.socket) {
            Ok(()) if !state.outgoing.is_empty() => false,
            _ => self.socket.finish(),
        }
    }

    fn shut_down(&self) -> bool {
        self.socket.shut_down()
    }

    fn reset(&self) {
        if self.state().stage == Stage::Offloaded {
            // Kernels differ in what they do with such a socket that is disconnected.
            self.socket.reset_on_close();
            self.socket.shut_down();
            return;
        }
        self.socket.reset();
    }

    fn reset_on_close(&self) {
        self.socket.reset_on_close();
    }

    #[inline(never)]
    fn peer_state(&self) -> PeerState {
        let state = self.socket.peer_state();
        PeerState { has_finished: state.has_finished || self.state().session.is_closed(), ..state }
    }
}
