//! The response writer: sends status, fields and body of a response on its stream, as they are; knows the times of its request.
//!
//! Compression, files that the application names, and another protocol are layers above it.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use poorhttp_http::{Ending, Head, Reject, Response, ServerFields};

use crate::connection::Connection;
use crate::connection::coalesced::COALESCED_FOR;
use crate::connection::request::Request;
use crate::exchange::backpressure::add_rest;
use crate::exchange::log_entry::LogEntry;
use crate::exchange::send_error::SendError;
use crate::exchange::stream::Stream;
use crate::exchange::timeout::Timeout;
use crate::limits::{COPIED, PIECE};
use crate::log::entry::Answer;
use crate::log::error::Level;
use crate::log::request_id::{FIELD_NAME, RequestName};
use crate::log::slow::Answered;
use crate::overload::streaming::{LONG as LONG_STREAM, Streamed};
use crate::scheduler::state::State;
use crate::scheduler::{poll, streaming};
use crate::status::CLIENT_ABORT;
use crate::sys::clock;
use crate::telemetry::timing;
use poorhttp_files::Part;

/// Microseconds in an application for which the next requests may have waited noticeably.
const LONG: u64 = 10_000;

/// Microseconds in an application for which its client may have lost patience: that is worth a system call then.
const MAY_HAVE_LEFT: u64 = 100_000;

/// Number of a request that is neither counted nor logged.
pub(crate) const UNCOUNTED: u64 = 0;

/// A request and its response, which is written to the stream that it owns until it is complete.
#[derive(Debug)]
pub(crate) struct ResponseWriter {
    pub(crate) state: Arc<State>,
    /// None when the request is over.
    pub(crate) stream: Option<Stream>,
    pub(crate) response: Response,
    pub(crate) number: u64,
    pub(crate) log_entry: LogEntry,
    pub(crate) timeout: Timeout,
    /// Nothing more can be sent.
    pub(crate) lost: bool,
    /// The server has ended the connection before the response was complete, and logged why.
    pub(crate) cut: bool,
    /// The application has got the connection.
    pub(crate) is_hijacked: bool,
    /// When a piece of the body was last sent, in microseconds of [`clock::precise_us`]. 0: none was.
    pub(crate) piece_sent: u64,
    /// Since when the client is half-closed while the application has nothing to send, in milliseconds of
    /// [`clock::now`]. 0: it is not.
    pub(crate) half_closed_since: u64,
    /// When the application got the request, in microseconds of [`clock::precise_us`]; 0: times are not taken, or it
    /// has not.
    pub(crate) handed_out: u64,
    /// The response is sent in pieces. In a box, as the responses that are not are moved with it.
    pieces: Option<Box<Pieces>>,
}

/// A response that is sent in pieces.
#[derive(Debug)]
enum Pieces {
    /// It is watched, because another thread may serve in the place of its own.
    Watched(#[expect(dead_code, reason = "ends when it is dropped")] Streamed),
    /// Since when, in microseconds of [`clock::precise_us`], where no other thread can serve.
    Since(u64),
    /// It counts as one that streams.
    Counted,
}

impl ResponseWriter {
    /// Of a request that is complete.
    // A copy of it for each step costs a request 1 % of its instructions.
    #[inline(always)]
    pub(crate) fn new(state: Arc<State>, connection: Box<Connection>, number: u64) -> Self {
        let mut stream = Stream::new(connection, number);
        // The request timeout answers without this buffer, so output of earlier requests must leave first.
        let lost = state.request_timeouts.is_some() && stream.send(&[]).is_err();
        let log_entry = LogEntry::begin(state.telemetry.access_log.as_ref(), &stream);
        let response = stream.request().response();
        ResponseWriter {
            state,
            stream: Some(stream),
            response,
            number,
            log_entry,
            timeout: Timeout::default(),
            lost,
            cut: false,
            is_hijacked: false,
            piece_sent: 0,
            half_closed_since: 0,
            handed_out: 0,
            pieces: None,
        }
    }

    /// The request; none when it is over.
    #[inline]
    pub(crate) fn request(&self) -> Option<&Request> {
        self.stream.as_ref().map(Stream::request)
    }

    /// The head of the request and the bytes its positions refer to.
    #[inline]
    pub(crate) fn head(&self) -> Option<(&Head, &[u8])> {
        self.request()?.head()
    }

    /// The request as messages name it; without method and target when it is over.
    pub(crate) fn request_name(&self) -> RequestName {
        match self.request() {
            Some(request) => request.name(self.state.telemetry.request_ids, self.number, request.line()),
            None => RequestName { number: self.number, ..RequestName::default() },
        }
    }

    /// Writes a message about the request to the error log.
    #[cold]
    pub(crate) fn log_message(&self, level: Level, message: &str) {
        self.state.log_about(level, &self.request_name(), message);
    }

    /// Counts this request as one that the server itself refuses.
    #[cold]
    pub(crate) fn count_refusal(&self, reject: Reject) {
        if let Some(request) = self.request() {
            let reason = self.state.receiving.limits.explain(reject);
            timing::count_refusal(&self.state.telemetry, request, &self.request_name(), reject, &reason, None);
        }
    }

    /// Whether this process is a fork of the server's: only the parent may answer.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.state.is_foreign()
    }

    /// Whether the request timeout has ended the request.
    #[inline]
    pub(crate) fn has_timed_out(&self) -> bool {
        self.timeout.has_ended_request()
    }

    /// Ends the request timeout.
    #[inline]
    pub(crate) fn end_timeout(&mut self) {
        self.lost |= self.timeout.end(self.response.status(), self.state.counters);
    }

    /// Counts bytes of content that are compressed, for the access log.
    pub(crate) fn note_uncoded(&mut self, bytes: u64) {
        if self.state.telemetry.access_log.is_some() {
            self.log_entry.note_uncoded(bytes);
        }
    }

    /// Takes back status and fields. `false`: they may have been sent already.
    pub(crate) fn restart(&mut self) -> bool {
        if let Some(stream) = &mut self.stream {
            self.response.restart(stream.output());
        }
        !self.response.is_committed() && !self.has_timed_out()
    }

    #[inline]
    pub(crate) fn commit(&mut self, body: Option<u64>) -> Result<(), SendError> {
        if self.is_foreign() {
            return Err(SendError::Over);
        }
        if self.state.telemetry.request_ids.is_some() {
            self.add_request_id();
        }
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        if !self.timeout.commit() {
            self.lost = true;
            return Err(SendError::Disconnected);
        }
        let state = &self.state;
        let closing = !stream.has_ended_body(&state.receiving.limits, body.is_some())
            || (state.is_stopping() && stream.is_last(state));
        if !state.responding.hsts.is_empty() && stream.request().over_tls {
            self.response.default_field(stream.output(), "Strict-Transport-Security", &state.responding.hsts);
        }
        let (response, out) = (&mut self.response, stream.output());
        clock::with_time_of_day(|time| {
            let server_fields = ServerFields { date: &time.date_line, server: &state.responding.server_line, closing };
            response.commit(out, body, &server_fields)
        })?;
        if let Some(log) = &state.telemetry.access_log {
            self.log_entry.end_head(log, stream.end_of_output(), self.response.written(stream.out()));
        }
        Ok(())
    }

    /// Sends the head, if that was not sent before.
    pub(crate) fn send_head(&mut self) -> Result<(), SendError> {
        if !self.response.is_committed() {
            self.commit(None)?;
        }
        let sent = self.stream.as_mut().ok_or(SendError::Over)?.send(&[]);
        sent.map_err(|lost| self.disconnected(lost))
    }

    /// Adds `X-Request-ID`, unless the application has given it.
    #[inline]
    fn add_request_id(&mut self) {
        let (Some(stream), Some(ids)) = (&mut self.stream, &self.state.telemetry.request_ids) else { return };
        if self.number == UNCOUNTED {
            return;
        }
        if !self.response.lacks_request_id() {
            return;
        }
        if !stream.request().is_trusted {
            return stream.output().extend_from_slice(&ids.make_field(self.number));
        }
        // The id may be a part of the request, which has the output as well.
        let mut out = mem::take(stream.output());
        out.extend_from_slice(FIELD_NAME);
        out.extend_from_slice(stream.request().id(ids, self.number).as_bytes());
        out.extend_from_slice(b"\r\n");
        *stream.output() = out;
    }

    /// Sends a whole body without the first `taken` bytes, which have been taken already; head and body leave in one system
    /// call. The request is over.
    #[inline(always)]
    pub(crate) fn finish_plain(&mut self, parts: &[&[u8]], taken: usize) -> Result<(), SendError> {
        if !self.response.is_committed() {
            let total = parts.iter().map(|part| part.len() as u64).sum();
            self.commit(Some(total))?;
        }
        match parts {
            [part] if taken == 0 && part.len() <= PIECE && !self.is_behind() => self.add(part)?,
            _ => add_rest(parts, taken, |part| self.add_unless_full(part))?,
        }
        if self.is_foreign() {
            return Err(SendError::Over);
        }
        self.state.advance_poll_number();
        self.conclude()
    }

    /// Sends a piece of the body. `is_coded`: it cannot be made again, so it is taken even if the send queue is full.
    #[inline]
    pub(crate) fn send_piece(&mut self, piece: &[u8], is_coded: bool) -> Result<(), SendError> {
        let now = clock::precise_us();
        if now < self.piece_sent + COALESCED_FOR && self.coalesce(piece)? {
            return Ok(());
        }
        self.piece_sent = now;
        let added = if is_coded { self.add(piece) } else { self.add_unless_full(piece) };
        added?;
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        if let Err(lost) = stream.send(&[]) {
            return Err(self.disconnected(lost));
        }
        if !self.response.wants_more() {
            // The response has no body, so sending does not detect a client that is gone.
            return self.check_client();
        }
        self.half_closed_since = 0;
        if self.state.takes_times()
            && let Some(stream) = &mut self.stream
        {
            stream.count_bytes(&self.state);
        }
        self.check_send_queue()
    }

    /// Notes that a piece was sent. Where no other thread can serve, a response counts as one that streams when it has sent pieces
    /// for a second; whether it waits between them is not looked at.
    #[inline]
    pub(crate) fn note_piece(&mut self) {
        match self.pieces.as_deref_mut() {
            None => self.begin_pieces(),
            Some(pieces) => {
                if let Pieces::Since(begun) = *pieces
                    && self.piece_sent >= begun + LONG_STREAM
                {
                    *pieces = Pieces::Counted;
                    self.state.counters.add_streaming();
                }
            }
        }
    }

    #[inline(never)]
    fn begin_pieces(&mut self) {
        if self.number == UNCOUNTED || self.state.receiving.raw_tcp {
            return;
        }
        let begun = clock::precise_us();
        self.pieces = Some(Box::new(match &self.state.streaming {
            Some(streaming) => Pieces::Watched(streaming::begin(&self.state, streaming, self.number, begun)),
            None => Pieces::Since(begun),
        }));
    }

    /// The response is over, or made elsewhere.
    #[inline]
    pub(crate) fn end_pieces(&mut self) {
        if let Some(pieces) = self.pieces.take() {
            self.drop_pieces(*pieces);
        }
    }

    #[inline(never)]
    fn drop_pieces(&self, pieces: Pieces) {
        if matches!(pieces, Pieces::Counted) && !self.is_foreign() {
            self.state.counters.remove_streaming();
        }
    }

    /// Has a piece of the body sent within a millisecond, or with those that follow. `false`: it must be sent now.
    fn coalesce(&mut self, piece: &[u8]) -> Result<bool, SendError> {
        self.check_lost()?;
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        if !stream.may_coalesce(piece.len()) || !self.response.wants_more() || self.state.is_foreign() {
            return Ok(false);
        }
        let response = &mut self.response;
        let admitted = response.admit(piece.len());
        let has_thread = stream.coalesce(&self.state.coalesced_sender, |out| {
            for piece in piece[..admitted].chunks(response.largest_chunk()) {
                response.open_chunk(out, piece.len());
                out.extend_from_slice(piece);
                out.extend_from_slice(response.end_of_chunk(piece.len()));
            }
        });
        if !has_thread && let Err(lost) = stream.send(&[]) {
            return Err(self.disconnected(lost));
        }
        Ok(true)
    }

    /// Adds a piece of the body, unless the send queue is full; sends it if it is large.
    fn add_unless_full(&mut self, piece: &[u8]) -> Result<(), SendError> {
        let mut taken = 0;
        loop {
            if self.is_full() {
                return Err(SendError::Full(taken));
            }
            let until = piece.len().min(taken + PIECE);
            self.add(&piece[taken..until])?;
            taken = until;
            if taken == piece.len() {
                return Ok(());
            }
        }
    }

    /// Adds a piece of the body; sends it if it is large.
    #[inline]
    pub(crate) fn add(&mut self, piece: &[u8]) -> Result<(), SendError> {
        self.check_lost()?;
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        if self.state.is_foreign() {
            return Err(SendError::Over);
        }
        let admitted = self.response.admit(piece.len());
        if admitted == 0 {
            return Ok(());
        }
        for piece in piece[..admitted].chunks(self.response.largest_chunk()) {
            let out = stream.output();
            self.response.open_chunk(out, piece.len());
            let end = self.response.end_of_chunk(piece.len());
            if out.len() + piece.len() <= COPIED {
                out.extend_from_slice(piece);
                out.extend_from_slice(end);
            } else if let Err(lost) = stream.send(&[piece, end]) {
                return Err(self.disconnected(lost));
            }
        }
        Ok(())
    }

    /// Adds trailer fields, whole lines, behind the body; responses whose framing has no place for them go without.
    #[cold]
    pub(crate) fn add_trailers(&mut self, lines: &[u8]) -> Result<(), SendError> {
        if !self.response.is_committed() {
            self.commit(None)?;
        }
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        if !self.response.end_chunks(stream.output(), lines)
            && let Some(socket) = stream.socket().transport.stream()
        {
            socket.set_trailers(lines);
        }
        Ok(())
    }

    /// Ends the response. The request is over.
    #[inline]
    pub(crate) fn conclude(&mut self) -> Result<(), SendError> {
        if self.stream.is_some() && !self.response.is_committed() {
            self.commit(Some(0))?;
        }
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        let ending = self.response.end(stream.output());
        if ending.missing > 0 || ending.excess > 0 {
            self.log_wrong_length(ending);
        }
        let Some(mut stream) = self.stream.take() else { return Err(SendError::Over) };
        self.end_timeout();
        self.end_pieces();
        self.log(&mut stream, ending.missing == 0 && !self.lost, ending.persists);
        if self.lost {
            stream.close(&self.state);
            return Ok(());
        }
        if ending.missing > 0 && (self.response.is_recorded() || stream.is_shared()) {
            // An orderly end would leave a web server waiting for the rest, or make a stream look complete.
            let _ = stream.send(&[]);
            stream.close_by_reset(&self.state);
            return Ok(());
        }
        stream.complete(&self.state, ending.persists);
        Ok(())
    }

    /// Gives the response up: the connection is closed, so that the client knows it is incomplete.
    pub(crate) fn abort(&mut self) {
        let Some(mut stream) = self.take_stream(false) else { return };
        if self.timeout.has_answered() {
            self.response.restart(stream.output());
            return stream.linger(&self.state);
        }
        if self.lost {
            stream.socket().disconnect();
            return stream.close(&self.state);
        }
        if self.response.ends_with_connection() || (stream.is_shared() && self.response.is_committed()) {
            // An orderly end would make the response look complete.
            return stream.close_by_reset(&self.state);
        }
        // Responses to earlier, pipelined requests are complete, and may still wait before the output of this one.
        self.response.restart(stream.output());
        stream.end(&self.state);
    }

    /// Logs the request and takes its stream, to end it; none if the request is over, or in a fork.
    pub(crate) fn take_stream(&mut self, is_whole: bool) -> Option<Stream> {
        let mut stream = self.stream.take()?;
        if self.is_foreign() {
            // The parent uses the same socket, and locks may be held by threads that exist only there.
            std::mem::forget(stream);
            return None;
        }
        self.end_timeout();
        self.end_pieces();
        let is_whole = is_whole || self.timeout.has_answered();
        self.log(&mut stream, is_whole, false);
        Some(stream)
    }

    /// Counts the response, and notes its log entry, which is written when the response has been sent.
    #[inline]
    pub(crate) fn log(&mut self, stream: &mut Stream, is_whole: bool, persists: bool) {
        if self.number == UNCOUNTED {
            return;
        }
        if self.state.takes_times() {
            stream.end_wait(&self.state.telemetry);
            let answered = self.answered(stream);
            if answered.status == CLIENT_ABORT {
                self.state.counters.metrics.client_aborts.fetch_add(1, Ordering::Relaxed);
            }
            stream.set_times(answered);
        }
        if self.timeout.has_answered() {
            // The thread of the timeout has counted and logged its answer.
            return;
        }
        self.state.counters.answered(self.status());
        if let Some(log) = &self.state.telemetry.access_log {
            let answer = self.log_entry.end(log, stream, self.number, self.status());
            let (has_no_head, size) = (self.state.receiving.raw_tcp, self.response.sent());
            stream.set_log_entry(Answer { has_no_head, size, is_whole, persists, ..answer });
        }
    }

    /// The status that is logged and counted.
    #[inline]
    pub(crate) fn status(&self) -> u16 {
        match self.response.status() {
            _ if self.timeout.has_answered() => 504,
            // The client has left before there was a response.
            0 if self.lost => CLIENT_ABORT,
            status => status,
        }
    }

    #[cold]
    pub(crate) fn log_wrong_length(&self, ending: Ending) {
        let (what, bytes) = match ending.missing {
            0 => ("more than its Content-Length; they were not sent", ending.excess),
            missing => ("less than its Content-Length; the connection was closed", missing),
        };
        self.log_message(Level::Error, &format!("the application produced {bytes} bytes {what}"));
    }

    /// The times of the response, which is complete now; and what else is needed if it may be one of the slowest.
    #[inline]
    pub(crate) fn answered(&mut self, stream: &Stream) -> Answered {
        let (ended, slow_request) = (clock::precise_us(), self.state.telemetry.slow_request);
        let ResponseWriter { number, handed_out, .. } = *self;
        let limit = if slow_request == 0 { LONG } else { slow_request / 4 };
        if handed_out != 0 && ended - handed_out >= limit {
            self.note_long_run();
            if ended - handed_out >= MAY_HAVE_LEFT && self.has_left_meanwhile(stream) {
                self.response.count_as(CLIENT_ABORT);
            }
        }
        let (status, since) = (self.status(), stream.request().since);
        let since = if handed_out == 0 { since.min(ended) } else { since.min(handed_out) };
        // A response that is sent at once ends now. That of a slow client gets its name later.
        let is_needed = status >= 500
            || self.state.telemetry.slow_request != 0
            || stream.is_behind()
            || self.state.telemetry.recorder.as_ref().is_some_and(|recorder| recorder.is_slow(ended - since, ended));
        let name = is_needed.then(|| {
            let request = stream.request();
            Box::new(request.name(self.state.telemetry.request_ids, number, request.line()))
        });
        let is_noted = self.timeout.has_answered();
        Answered { number, name, status, since, handed_out, ended, is_noted }
    }

    /// The application has taken long: events that are found now have waited for this request.
    #[cold]
    fn note_long_run(&self) {
        self.state.queue_time.end(clock::now());
        poll::poll_again(&self.state);
    }

    /// The application gets the request now.
    #[inline]
    pub(crate) fn note_hand_out(&mut self) {
        self.handed_out = clock::precise_us();
        if let Some(stream) = &mut self.stream {
            stream.end_wait(&self.state.telemetry);
        }
    }

    /// Sends an interim response (RFC 9110 section 15.2) at once: before status and fields of the final response, if these are
    /// given already.
    #[cold]
    pub(crate) fn send_interim(&mut self, interim: &[u8]) -> Result<(), SendError> {
        self.check_lost()?;
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        let out = stream.output();
        let waiting = self.response.set_aside(out);
        out.extend_from_slice(interim);
        let sent = stream.send(&[]);
        self.response.put_back(stream.output(), &waiting);
        if !self.response.is_committed() {
            self.log_entry.move_to(stream.end_of_output() - waiting.len() as u64);
        }
        sent.map_err(|lost| self.disconnected(lost))
    }

    /// How many of `length` bytes of the body are to be sent.
    pub(crate) fn admit(&mut self, length: u64) -> u64 {
        self.response.admit(usize::try_from(length).unwrap_or(usize::MAX)) as u64
    }

    /// Sends parts of files and of memory, which have been admitted.
    pub(crate) fn transmit_parts(&mut self, parts: impl IntoIterator<Item = Part>) -> Result<(), SendError> {
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        let response = &self.response;
        let largest = response.largest_chunk() as u64;
        let pieces = parts.into_iter().flat_map(|part| {
            let total = part.length();
            (0..total.div_ceil(largest)).flat_map(move |number| {
                let length = largest.min(total - number * largest);
                let head =
                    response.record(length as usize).map(|head| Part::Memory(Arc::from(&head[..]), 0..head.len()));
                head.into_iter().chain([part.piece(number * largest, length)])
            })
        });
        let sent = stream.send_parts(pieces);
        sent.map_err(|lost| self.disconnected(lost))
    }
}
