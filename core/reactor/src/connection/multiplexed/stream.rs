//! One stream of a connection: receives its request, sends its response, resets it.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::connection::multiplexed::Multiplexed;
use crate::connection::multiplexed::streams::{InputEnd, Lent, Ready, State, StreamState};
use crate::connection::multiplexed::turns::ROOM;
use crate::sys::process::forks;
use crate::sys::{BorrowedFd, Errno, clock, file};

/// Bytes of a response head, at most: what the largest of other servers is.
const MOST_OF_HEAD: usize = 1 << 20;

/// Streams for which an idle connection keeps memory.
const KEPT_STREAMS: usize = 16;

/// Milliseconds for which an upload that does not go on may hold up others of its connection.
pub(crate) const HELD_FOR: u64 = 50;

/// Bytes of a file that are read instead: the last ones, whose frame ends the stream, and all of a small one, which costs fewer system
/// calls.
const LAST_OF_FILE: u64 = 64 << 10;

impl Multiplexed {
    /// Receives content. 0: it has ended, see [`Multiplexed::input_end`].
    pub(crate) fn receive(&self, stream: u32, room: &mut [u8]) -> Result<usize, Errno> {
        self.receive_up_to(stream, room.len(), |content| {
            room[..content.len()].copy_from_slice(content);
            Ok(())
        })
    }

    /// Passes content to `take`, at most so many bytes, and returns how many. 0: it has ended, see [`Multiplexed::input_end`].
    pub(crate) fn receive_up_to(
        &self,
        stream: u32,
        most: usize,
        take: impl FnOnce(&[u8]) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(of_stream) = state.streams.get_mut(&stream) else { return Err(Errno::CONNRESET) };
        if of_stream.end == Some(InputEnd::Reset) {
            return Err(Errno::CONNRESET);
        }
        of_stream.end_loan();
        if !of_stream.has_input() {
            return match of_stream.end {
                Some(_) => Ok(0),
                None if state.has_ended || state.is_failed => Err(Errno::CONNRESET),
                None => Err(Errno::AGAIN),
            };
        }
        let bytes = most.min(of_stream.input.len() - of_stream.taken);
        take(&of_stream.input[of_stream.taken..of_stream.taken + bytes])?;
        of_stream.taken += bytes;
        if !of_stream.has_input() {
            // An idle stream keeps no buffer.
            let mut input = mem::take(&mut of_stream.input);
            of_stream.taken = 0;
            if input.capacity() <= 2 * ROOM {
                input.clear();
                state.spare = input;
            }
        }
        state.protocol.consumed(stream, bytes as u32);
        self.flush(state);
        Ok(bytes)
    }

    /// Lends room for content that comes. It is returned if none will come, or some has come before.
    pub(crate) fn lend(&self, stream: u32, lent: Lent) -> Option<Lent> {
        let mut state = self.lock();
        match state.streams.get_mut(&stream) {
            Some(of_stream) if of_stream.end.is_none() && !of_stream.has_input() => {
                of_stream.lent = Some(Box::new(lent));
                None
            }
            _ => Some(lent),
        }
    }

    /// Lets the client send more at once: what comes is taken as it comes.
    pub(crate) fn widen(&self, stream: u32) {
        let mut state = self.lock();
        state.protocol.widen(stream);
        self.flush(&mut state);
    }

    /// The application waits for content.
    pub(crate) fn await_content(&self, stream: u32) {
        let mut state = self.lock();
        state.protocol.await_content(stream);
        self.flush(&mut state);
    }

    /// Bytes of content that may come before more is allowed, and those that nobody has received.
    pub(crate) fn allowed(&self, stream: u32) -> u64 {
        self.lock().protocol.allowed(stream)
    }

    /// Whether the client may send no more of the content while that of another stream is received.
    pub(crate) fn is_held(&self, stream: u32) -> bool {
        self.lock().protocol.is_held(stream)
    }

    /// The same, every [`HELD_FOR`] milliseconds: not if little content has come in them.
    pub(crate) fn check_hold(&self, stream: u32) -> bool {
        let mut state = self.lock();
        let is_held = state.protocol.check_hold(stream);
        self.flush(&mut state);
        is_held
    }

    /// Takes back the room that was lent, with the content that has come.
    pub(crate) fn take_back(&self, stream: u32) -> Option<Lent> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let lent = state.streams.get_mut(&stream)?.lent.take()?;
        if lent.filled > lent.begin {
            state.protocol.consumed(stream, (lent.filled - lent.begin) as u32);
            state.protocol.widen(stream);
            self.flush(state);
        }
        Some(*lent)
    }

    /// Copies the next bytes of content without taking them.
    pub(crate) fn peek(&self, stream: u32, room: &mut [u8]) -> Result<usize, Errno> {
        let mut state = self.lock();
        let Some(of_stream) = state.streams.get_mut(&stream) else { return Err(Errno::CONNRESET) };
        of_stream.end_loan();
        let waiting = &of_stream.input[of_stream.taken..];
        let bytes = room.len().min(waiting.len());
        room[..bytes].copy_from_slice(&waiting[..bytes]);
        match of_stream.end {
            None if bytes == 0 => Err(Errno::AGAIN),
            _ => Ok(bytes),
        }
    }

    /// Whether receiving would not be in vain, or the stream is answered: by the thread of the request timeout, for example.
    pub(crate) fn may_receive(&self, stream: u32) -> bool {
        let state = self.lock();
        let is_over = |stream: &StreamState| stream.has_input() || stream.end.is_some() || stream.has_ended;
        state.has_ended || state.is_failed || state.streams.get(&stream).is_none_or(is_over)
    }

    /// How the client has ended its side of the stream, behind the content that is left; `None`: it has not.
    pub(crate) fn input_end(&self, stream: u32) -> Option<InputEnd> {
        let state = self.lock();
        match state.streams.get(&stream) {
            Some(stream) if stream.has_input() => None,
            Some(stream) => stream.end,
            None => Some(InputEnd::Reset),
        }
    }

    /// Whether the client has left the stream, or the connection is lost.
    pub(crate) fn is_gone(&self, stream: u32) -> bool {
        let state = self.lock();
        let is_reset = |stream: &StreamState| stream.end == Some(InputEnd::Reset);
        state.is_lost || state.is_failed || state.streams.get(&stream).is_none_or(is_reset)
    }

    /// Whether what a stream still has to send waits for other streams.
    pub(crate) fn waits_for_turn(&self, stream: u32) -> bool {
        let state = self.lock();
        !state.is_lost && state.protocol.waits_for_turn(stream)
    }

    /// Bytes of content that a stream may send now; if there are none, it waits for room, or for its turn.
    pub(crate) fn room(&self, stream: u32) -> Result<usize, Errno> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.protocol.room(stream) == 0 && !state.is_sending {
            self.flush(state);
        }
        match state.protocol.room(stream) {
            // There is no room for this byte, so it is none of the response.
            0 => self.send_locked(state, stream, b"\0", false),
            bytes => Ok(bytes),
        }
    }

    /// Sends bytes of a response: its head as text of HTTP/1.1, perhaps behind interim ones, and then its content without framing.
    /// `more` follows at once.
    pub(crate) fn send(&self, stream: u32, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        let mut state = self.lock();
        let sent = self.send_locked(&mut state, stream, bytes, more);
        // If the socket has taken the output, no event follows by which it is the turn of those that wait.
        let others_wait = !state.is_sending && state.protocol.has_writable();
        drop(state);
        if others_wait {
            self.tell(&[Ready { slot: self.slot, readable: true, writable: false, hangup: false }]);
        }
        sent
    }

    /// Has streams that are less urgent wait while this one sends what waits on it, until [`Multiplexed::end_turn`]. `false`: none has
    /// to, or it has the turn already.
    pub(crate) fn take_turn(&self, stream: u32) -> bool {
        self.lock().protocol.take_turn(stream)
    }

    /// Ends that turn. `has_more`: the stream goes on before others that are less urgent.
    pub(crate) fn end_turn(&self, stream: u32, has_more: bool) {
        let mut state = self.lock();
        state.protocol.end_turn(stream, has_more);
        let others_wait = !has_more && !state.is_sending && state.protocol.has_writable();
        drop(state);
        if others_wait {
            self.tell(&[Ready { slot: self.slot, readable: true, writable: false, hangup: false }]);
        }
    }

    fn send_locked(&self, state: &mut State, stream: u32, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        let is_over = state.is_lost || state.is_failed;
        let Some(of_stream) = state.streams.get_mut(&stream).filter(|_| !is_over) else { return Err(Errno::PIPE) };
        if of_stream.has_ended || of_stream.end == Some(InputEnd::Reset) {
            return Err(Errno::PIPE);
        }
        let mut rest = bytes;
        while !of_stream.has_head && !rest.is_empty() {
            let (before, from) = (of_stream.head.len(), of_stream.head.len().saturating_sub(3));
            of_stream.head.extend_from_slice(rest);
            let Some(end) = of_stream.head[from..].windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
                return if of_stream.head.len() > MOST_OF_HEAD { Err(Errno::PIPE) } else { Ok(bytes.len()) };
            };
            let end = from + end + 4;
            rest = &rest[end - before..];
            let head = mem::take(&mut of_stream.head);
            let (status, fields) = parts_of_head(&head[..end]);
            let is_last = status >= 200;
            of_stream.left = length_of_content(status, fields, of_stream.is_head).filter(|_| is_last);
            let ends = of_stream.left == Some(0) && of_stream.may_complete();
            if !state.protocol.send_head(stream, status, fields, ends) {
                return Err(Errno::PIPE);
            }
            (of_stream.has_head, of_stream.is_complete) = (is_last, ends);
        }
        loop {
            let before = rest.len();
            if !rest.is_empty() {
                let Some(of_stream) = state.streams.get_mut(&stream) else { return Err(Errno::PIPE) };
                let ends = of_stream.left == Some(rest.len() as u64) && of_stream.may_complete();
                let Some(taken) = state.protocol.send_data(stream, rest, ends) else { return Err(Errno::PIPE) };
                rest = &rest[taken..];
                self.queued.note_sent(taken);
                of_stream.left = of_stream.left.map(|left| left.saturating_sub(taken as u64));
                of_stream.is_complete = ends && rest.is_empty();
            }
            if more && rest.is_empty() {
                return Ok(bytes.len());
            }
            // Who has the streams send in turn flushes when the output is full.
            if rest.is_empty() || !state.is_sending {
                self.flush(state);
            }
            if let Some(of_stream) = state.streams.get_mut(&stream) {
                of_stream.is_blocked = !rest.is_empty();
            }
            if rest.is_empty() || rest.len() == before || state.is_lost {
                break;
            }
        }
        match bytes.len() - rest.len() {
            0 if !bytes.is_empty() => Err(Errno::AGAIN),
            taken => Ok(taken),
        }
    }

    /// Sends at most so much content from a file, without a copy, and moves `at`. 0: the file ends there. `None`: it is to be read, and
    /// sent by [`Multiplexed::send`].
    pub(crate) fn send_file(
        &self,
        stream: u32,
        file: BorrowedFd<'_>,
        at: &mut u64,
        most: usize,
    ) -> Option<Result<usize, Errno>> {
        if !self.carrier.sends_files() {
            return None;
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        let left = state.streams.get(&stream)?.left.unwrap_or(u64::MAX).saturating_sub(LAST_OF_FILE);
        let (begin, end) = (*at, *at + left.min(most as u64));
        let mut failed = None;
        while *at < end && failed.is_none() && self.takes_file(state, stream) {
            let length = state.protocol.begin_data(stream, (end - *at) as usize);
            if length == 0 {
                break;
            }
            self.queued.note_sent(length);
            if let Some(left) = state.streams.get_mut(&stream).and_then(|stream| stream.left.as_mut()) {
                *left = left.saturating_sub(length as u64);
            }
            failed = self.send_frame_of_file(state, file, at, length);
        }
        self.note_waiting(state);
        let others_wait = !state.is_sending && state.protocol.has_writable();
        drop(guard);
        if others_wait {
            self.tell(&[Ready { slot: self.slot, readable: true, writable: false, hangup: false }]);
        }
        failed.or_else(|| (*at > begin).then_some(Ok((*at - begin) as usize)))
    }

    /// Whether the socket takes content of this stream at once.
    fn takes_file(&self, state: &mut State, stream: u32) -> bool {
        self.flush(state);
        // As there: before the socket is full.
        self.is_waiting.store(!state.is_lost, Ordering::Release);
        let may_send =
            |stream: &StreamState| stream.has_head && !stream.has_ended && stream.end != Some(InputEnd::Reset);
        !state.is_lost
            && !state.is_failed
            && state.protocol.output().is_empty()
            && state.streams.get(&stream).is_some_and(may_send)
    }

    /// Sends the frame that was begun, with so much of a file. What the socket does not take is added to the output. Returns what reading
    /// the file has ended with, if it is too short: the frame is filled up, and the stream is to be reset.
    fn send_frame_of_file(
        &self,
        state: &mut State,
        file: BorrowedFd<'_>,
        at: &mut u64,
        length: usize,
    ) -> Option<Result<usize, Errno>> {
        let end = *at + length as u64;
        if let Ok(bytes) = self.carrier.send(state.protocol.output(), true) {
            state.protocol.sent(bytes);
        }
        while *at < end && state.protocol.output().is_empty() {
            match self.carrier.send_file(file, at, (end - *at) as usize) {
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
        }
        let (mut rest, mut filled, mut failed) = (vec![0; (end - *at) as usize], 0, None);
        while filled < rest.len() && failed.is_none() {
            match file::read_at(file, &mut rest[filled..], *at) {
                Ok(bytes @ 1..) => (filled, *at) = (filled + bytes, *at + bytes as u64),
                ended => failed = Some(ended),
            }
        }
        state.protocol.push_content(&rest);
        failed
    }

    /// Ends the response. One without a head is none: the stream is reset.
    pub(crate) fn finish(self: &Arc<Self>, stream: u32) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(of_stream) = state.streams.get_mut(&stream).filter(|stream| !stream.has_ended) else { return };
        of_stream.has_ended = true;
        if !of_stream.has_head {
            state.protocol.close(stream);
        } else if !of_stream.is_complete {
            match mem::take(&mut of_stream.trailers) {
                lines if lines.is_empty() => _ = state.protocol.send_data(stream, b"", true),
                lines => _ = state.protocol.send_trailers(stream, &lines),
            }
        }
        self.flush_soon(state);
        self.note_change(state);
    }

    /// Has the response end with trailer fields.
    #[cold]
    pub(crate) fn set_trailers(&self, stream: u32, lines: &[u8]) {
        if let Some(of_stream) = self.lock().streams.get_mut(&stream) {
            of_stream.trailers = lines.to_vec();
        }
    }

    /// Resets a stream, as failed or because its client `is_slow`. `false`: the client had left before.
    pub(crate) fn reset(&self, stream: u32, is_slow: bool) -> bool {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(of_stream) = state.streams.get_mut(&stream) else { return false };
        let was_there = of_stream.end != Some(InputEnd::Reset);
        of_stream.has_ended = true;
        of_stream.leave();
        match is_slow {
            true => state.protocol.cancel(stream),
            false => state.protocol.close(stream),
        }
        self.flush(state);
        self.note_change(state);
        was_there
    }

    /// Forgets a stream, which nobody uses any more.
    pub(crate) fn forget(self: &Arc<Self>, stream: u32) {
        if self.forks != forks() {
            // The connection is the parent's, and the lock may be held by a thread that exists only there.
            return;
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.streams.remove(&stream).is_some() {
            self.metrics.http2_streams.fetch_sub(1, Ordering::Relaxed);
        }
        state.protocol.close(stream);
        if state.streams.is_empty() {
            state.idle_since = clock::now();
            state.spare = Vec::new();
            if state.streams.capacity() > KEPT_STREAMS {
                state.streams = HashMap::default();
            }
            state.note_partial();
        }
        self.flush_soon(state);
        let ends = state.stopping_since.is_some() || state.has_ended || state.is_failed || state.is_lost;
        let is_last = state.streams.is_empty() && (ends || state.protocol.is_finished());
        drop(guard);
        if is_last {
            self.tell(&[Ready { slot: self.slot, readable: true, writable: false, hangup: false }]);
        }
    }
}

/// Bytes of content behind this head, as far as it says.
fn length_of_content(status: u16, fields: &[u8], to_head: bool) -> Option<u64> {
    const NAME: &[u8] = b"content-length:";
    if to_head || matches!(status, 204 | 304) {
        return Some(0);
    }
    let mut lines = fields.split(|&byte| byte == b'\n');
    let line = lines.find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)))?;
    std::str::from_utf8(line[NAME.len()..].trim_ascii()).ok()?.parse().ok()
}

/// Status, and the lines of the fields.
fn parts_of_head(head: &[u8]) -> (u16, &[u8]) {
    let line = head.iter().position(|&byte| byte == b'\n').map_or(head.len(), |at| at + 1);
    let (status, fields) = head.split_at(line);
    let code = status.split(|&byte| byte == b' ').nth(1).and_then(|code| code.get(..3));
    let code = code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok()).unwrap_or(500);
    (code, fields.strip_suffix(b"\r\n").unwrap_or(fields))
}
