//! The response: status line, fields, body, end; collects the fields of its line in the access log.

use std::mem;
use std::sync::atomic::Ordering;

use poorhttp_http::{Ending, Response, ServerFields};

use crate::connection::postponed::POSTPONED_FOR;
use crate::control::request_timeout::Progress;
use crate::control::status::DEPARTED;
use crate::event_loop::poll;
use crate::exchange::backpressure::add_rest;
use crate::exchange::compression;
use crate::exchange::stream::Stream;
use crate::exchange::{Exchange, SendError, UNCOUNTED, x_sendfile};
use crate::limits::{COPIED, PIECE};
use crate::log::entry::{Answer, Collected};
use crate::log::error::Level;
use crate::log::request_id::FIELD_NAME;
use crate::log::slow::Answered;
use crate::sys::clock;

/// Microseconds in an application for which the next requests may have waited noticeably.
const LONG: u64 = 10_000;

/// Microseconds in an application for which its client may have lost patience: that is worth a system call then.
const MAY_HAVE_LEFT: u64 = 100_000;

impl Exchange {
    /// The response so far.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Whether more of the application's body may be sent.
    #[inline]
    pub fn wants_more(&self) -> bool {
        self.response.wants_more()
            && !self.names_file()
            && self.compressor.as_deref().is_none_or(|compressor| compression::excess(compressor) == 0)
    }

    /// Bytes of content that the application has given beyond its Content-Length.
    pub fn excess(&self) -> u64 {
        self.compressor.as_deref().map_or(self.response.excess(), compression::excess)
    }

    /// Whether all of the content that the application has announced is sent.
    fn has_whole_body(&self) -> bool {
        self.compressor.as_deref().map_or(self.response.has_whole_body(), compression::has_whole_body)
    }

    /// Whether the request has been answered or given up.
    pub fn is_over(&self) -> bool {
        self.stream.is_none()
    }

    /// Starts the response: writes the status line, and calls `fields`, which writes the header fields by the function it is
    /// given. On an error nothing is written.
    pub fn start<E: From<SendError>>(
        &mut self,
        status: &str,
        fields: impl FnOnce(&mut dyn FnMut(&str, &str) -> Result<(), SendError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        let (response, out) = (&mut self.response, stream.output());
        let (sendfile_roots, named) = (&self.reactor.options.sendfile_roots, &mut self.named);
        response.start(out, status).map_err(SendError::from)?;
        let result = fields(&mut |name, value| {
            if !sendfile_roots.is_empty()
                && let Some(file) = sendfile_roots.target_of(name, value)
            {
                *named = Some(file);
                return Ok(());
            }
            Ok(response.field(out, name, value)?)
        });
        if result.is_err() {
            response.restart(out);
            self.named = None;
        }
        result
    }

    /// Takes back what [`Exchange::start`] has written. `false`: it may have been sent already.
    pub fn restart(&mut self) -> bool {
        if let Some(stream) = &mut self.stream {
            self.response.restart(stream.output());
            self.named = None;
        }
        !self.response.is_committed() && !self.has_timed_out()
    }

    #[inline]
    pub(crate) fn commit(&mut self, body: Option<u64>) -> Result<(), SendError> {
        if self.is_foreign() {
            return Err(SendError::Over);
        }
        if self.reactor.options.request_ids.is_some() {
            self.add_request_id();
        }
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        if self.timed_request.as_ref().is_some_and(|watched| !watched.commit()) {
            self.lost = true;
            return Err(SendError::Disconnected);
        }
        let reactor = &self.reactor;
        let closing =
            !stream.has_ended_body(reactor, body.is_some()) || (reactor.is_stopping() && stream.is_last(reactor));
        if !reactor.options.hsts.is_empty() && stream.request().over_tls {
            self.response.default_field(stream.output(), "Strict-Transport-Security", &reactor.options.hsts);
        }
        let (response, out) = (&mut self.response, stream.output());
        clock::with_time_of_day(|time| {
            let server_fields = ServerFields { date: &time.date_line, server: &reactor.options.server_line, closing };
            response.commit(out, body, &server_fields)
        })?;
        if let Some(log) = &reactor.options.access_log {
            self.body = stream.end_of_output();
            if let (Some(wanted), Some(collected)) = (log.wanted(), &mut self.collected) {
                collected.take_fields(&wanted.fields, self.response.written(stream.out()));
            }
        }
        Ok(())
    }

    /// Adds `X-Request-ID`, unless the application has given it.
    #[inline]
    fn add_request_id(&mut self) {
        let (Some(stream), Some(ids)) = (&mut self.stream, &self.reactor.options.request_ids) else { return };
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

    /// Sends a whole body; head and body leave in one system call. The request is over.
    #[inline]
    pub fn finish(&mut self, parts: &[&[u8]]) -> Result<(), SendError> {
        self.finish_from(parts, 0)
    }

    /// The same, when the first `taken` bytes of the body have been taken already.
    #[inline]
    pub fn finish_from(&mut self, parts: &[&[u8]], taken: usize) -> Result<(), SendError> {
        if self.answered_elsewhere {
            return if self.is_upgraded() { Err(SendError::Upgraded) } else { Ok(()) };
        }
        if self.names_file() {
            return x_sendfile::send(self);
        }
        if self.may_compress() {
            return compression::finish(self, parts, taken);
        }
        self.finish_plain(parts, taken)
    }

    /// The same for a body that is not compressed.
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
        self.end()
    }

    /// Sends a piece of the body: at once, or within a millisecond if the last one was sent no longer ago.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), SendError> {
        if piece.is_empty() || self.names_file() {
            return self.check_client();
        }
        if self.may_compress() {
            return compression::write(self, piece);
        }
        if !self.response.is_committed() {
            self.commit(None)?;
        }
        self.send_piece(piece, false)
    }

    /// Sends a piece of the body. `is_coded`: it cannot be made again, so it is taken even if the send queue is full.
    #[inline]
    pub(crate) fn send_piece(&mut self, piece: &[u8], is_coded: bool) -> Result<(), SendError> {
        let now = clock::precise_us();
        if now < self.piece_sent + POSTPONED_FOR && self.postpone(piece)? {
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
        if self.reactor.takes_times()
            && let Some(stream) = &mut self.stream
        {
            stream.count_bytes(&self.reactor);
        }
        self.check_send_queue()
    }

    /// Has a piece of the body sent within a millisecond, or with those that follow. `false`: it must be sent now.
    fn postpone(&mut self, piece: &[u8]) -> Result<bool, SendError> {
        self.check_lost()?;
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        if !stream.may_postpone(piece.len()) || !self.response.wants_more() || self.reactor.is_foreign() {
            return Ok(false);
        }
        let response = &mut self.response;
        let admitted = response.admit(piece.len());
        let has_thread = stream.postpone(&self.reactor, |out| {
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
        if self.reactor.is_foreign() {
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

    /// Ends the response. The request is over.
    #[inline]
    pub fn end(&mut self) -> Result<(), SendError> {
        if self.is_foreign() {
            return Err(SendError::Over);
        }
        if self.answered_elsewhere {
            return if self.is_upgraded() { Err(SendError::Upgraded) } else { Ok(()) };
        }
        if self.names_file() {
            return x_sendfile::send(self);
        }
        self.reactor.advance_poll_number();
        self.conclude()
    }

    /// The same for responses of the application and of handlers here.
    #[inline]
    pub(crate) fn conclude(&mut self) -> Result<(), SendError> {
        if self.stream.is_some() && !self.response.is_committed() {
            self.commit(Some(0))?;
        }
        if self.compressor.is_some() && !compression::end(self)? {
            return Ok(());
        }
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        let ending = self.response.end(stream.output());
        if ending.missing > 0 || ending.excess > 0 {
            self.log_wrong_length(ending);
        }
        let Some(mut stream) = self.stream.take() else { return Err(SendError::Over) };
        self.end_timeout();
        if self.upgrade.is_some() {
            self.forgo_upgrade();
        }
        self.log(&mut stream, ending.missing == 0 && !self.lost, ending.persists);
        if self.lost {
            stream.close(&self.reactor);
            return Ok(());
        }
        if ending.missing > 0 && self.response.is_recorded() {
            // An orderly end would leave a web server waiting for the rest.
            let _ = stream.send(&[]);
            stream.close_by_reset(&self.reactor);
            return Ok(());
        }
        stream.complete(&self.reactor, ending.persists);
        Ok(())
    }

    /// Aborts the response: the connection is closed, so that the client knows the response is incomplete. A response of which all
    /// announced bytes are sent ends as usual.
    pub fn abort(&mut self) {
        if self.is_upgraded() {
            return self.end_upgraded(false);
        }
        if self.has_whole_body() && !self.lost && !self.is_foreign() && !self.has_timed_out() {
            // The application has failed behind its response: the client has all of it, and the next request may follow.
            let _ = self.conclude();
            return;
        }
        let Some(mut stream) = self.take_stream(false) else { return };
        if self.timeout_outcome == Some(Progress::Replaced) {
            self.response.restart(stream.output());
            return stream.linger(&self.reactor);
        }
        if self.lost {
            stream.socket().disconnect();
            return stream.close(&self.reactor);
        }
        if self.response.ends_with_connection() {
            // An orderly end would make the response look complete.
            return stream.close_by_reset(&self.reactor);
        }
        // Responses to earlier, pipelined requests are complete, and may still wait before the output of this one.
        self.response.restart(stream.output());
        stream.end(&self.reactor);
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
        let is_whole = is_whole || self.timeout_outcome == Some(Progress::Replaced);
        self.log(&mut stream, is_whole, false);
        Some(stream)
    }

    /// Counts the response, and notes its log entry, which is written when the response has been sent.
    #[inline]
    pub(crate) fn log(&mut self, stream: &mut Stream, is_whole: bool, persists: bool) {
        if self.number == UNCOUNTED {
            return;
        }
        if self.reactor.takes_times() {
            stream.end_wait(&self.reactor);
            let answered = self.answered(stream);
            if answered.status == DEPARTED {
                self.reactor.counters.figures.departed.fetch_add(1, Ordering::Relaxed);
            }
            stream.set_times(answered);
        }
        if self.timeout_outcome == Some(Progress::Replaced) {
            // The thread of the timeout has counted and logged its answer.
            return;
        }
        self.reactor.counters.answered(self.status());
        if self.reactor.options.access_log.is_some() {
            let collected = self.take_collected(stream);
            let received = stream.request().received() + collected.as_ref().map_or(0, |collected| collected.body);
            let is_trusted = stream.request().is_from_trusted_proxy();
            stream.set_log_entry(Answer {
                client: stream.request().client().map(|(address, _)| address),
                has_no_head: self.is_raw_tcp(),
                status: self.status(),
                size: self.response.sent(),
                start: self.start,
                body: self.body,
                end: stream.end_of_output(),
                is_whole,
                persists,
                started: self.started,
                number: self.number,
                kept: stream.request().served,
                received,
                is_trusted,
                collected,
            });
        }
    }

    /// What the access log asks for besides, complete.
    #[inline]
    pub(crate) fn take_collected(&mut self, stream: &Stream) -> Option<Box<Collected>> {
        let mut collected = self.collected.take()?;
        let log = self.reactor.options.access_log.as_ref()?;
        if log.wanted().is_some() {
            collected.server = stream.request().server(log);
        }
        Some(collected)
    }

    #[inline]
    pub(crate) fn status(&self) -> u16 {
        match self.response.status() {
            _ if self.timeout_outcome == Some(Progress::Replaced) => 504,
            // The client has left before there was a response.
            0 if self.lost => DEPARTED,
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
        let (ended, slow_request) = (clock::precise_us(), self.reactor.options.slow_request);
        let Exchange { number, handed_out, .. } = *self;
        let limit = if slow_request == 0 { LONG } else { slow_request / 4 };
        if handed_out != 0 && ended - handed_out >= limit {
            self.note_long_run();
            if ended - handed_out >= MAY_HAVE_LEFT && self.has_left_meanwhile(stream) {
                self.response.count_as(DEPARTED);
            }
        }
        let options = &self.reactor.options;
        let (status, since) = (self.status(), stream.request().since);
        let since = if handed_out == 0 { since.min(ended) } else { since.min(handed_out) };
        // A response that is sent at once ends now. That of a slow client gets its name later.
        let is_needed = status >= 500
            || options.slow_request != 0
            || stream.is_behind()
            || self.reactor.recorder.as_ref().is_some_and(|recorder| recorder.is_slow(ended - since, ended));
        let name = is_needed.then(|| {
            let request = stream.request();
            Box::new(request.name(options.request_ids, number, request.line()))
        });
        let is_noted = self.timeout_outcome == Some(Progress::Replaced);
        Answered { number, name, status, since, handed_out, ended, is_noted }
    }

    /// The application has taken long: events that are found now have waited for this request.
    #[cold]
    fn note_long_run(&self) {
        self.reactor.queue_time.end(clock::now());
        poll::poll_again(&self.reactor);
    }

    /// Whether a file is to be sent instead of the application's body.
    #[inline]
    pub fn names_file(&self) -> bool {
        self.named.is_some()
    }

    /// Ends a raw TCP connection; by a reset if it is not `complete`.
    pub fn end_raw_tcp(&mut self, complete: bool) {
        let complete = complete && !self.lost;
        let Some(stream) = self.take_stream(complete) else { return };
        if complete && !self.lost {
            return stream.close_after_client(&self.reactor);
        }
        stream.socket().reset();
        stream.close(&self.reactor);
    }
}
