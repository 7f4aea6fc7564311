//! An exchange: one request and its response, as Python gets it.
//!
//! ```text
//! send_error.rs     why something was not sent
//! stream.rs         what an exchange has of its connection
//! log_entry.rs      what the access log needs of a response
//! timeout.rs        whether the request timeout has answered
//! writer.rs         status, fields and body of the response, sent as they are
//! backpressure.rs   waits for a slow client, and detects a client that is gone
//! compression.rs    compression of a response while it is sent
//! reply.rs          responses that the server completes itself
//! x_sendfile.rs     a file that the application names instead of a body
//! body.rs           a body that the application receives while it runs
//! long_poll.rs      responses that stay open without a thread
//! upgrade.rs        another protocol on the connection, which the application gets
//! mod.rs            all of this for the application: who makes the response decides what is done
//! ```

pub(crate) mod backpressure;
pub(crate) mod body;
pub(crate) mod compression;
pub(crate) mod log_entry;
pub(crate) mod long_poll;
pub(crate) mod reply;
pub(crate) mod send_error;
pub(crate) mod stream;
pub(crate) mod timeout;
pub(crate) mod upgrade;
pub(crate) mod writer;
pub(crate) mod x_sendfile;

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

use crate::connection::Connection;
use crate::connection::body::incoming::Body;
use crate::connection::notice::Interest;
use crate::connection::request::Request;
use crate::exchange::backpressure::Waiter;
use crate::exchange::body::{BodyError, BodyPart};
use crate::exchange::compression::Coded;
use crate::exchange::send_error::SendError;
use crate::exchange::upgrade::{NotHijacked, Offer};
use crate::exchange::writer::ResponseWriter;
use crate::log::entry::Unsent;
use crate::log::request_id::{RequestId, RequestName};
use crate::request_timeout::{InFlight, Kind};
use crate::scheduler::state::State;
use crate::scheduler::stop;
use crate::sys::socket::Transport;
use crate::sys::{Errno, OwnedFd, net};
use crate::websocket::offered::Offered;
use crate::websocket::upgraded::Upgraded;
use poorhttp_files::{Part, Reply, SendfileRoots, SendfileTarget};
use poorhttp_http::{Head, Invalid, Response, TrustedProxies};

/// Who makes the response.
#[derive(Debug)]
enum MadeBy {
    /// The application.
    Application,
    /// A file, which the application has named: it is sent instead of the application's body.
    Named(SendfileTarget),
    /// A static file, or the response is a long poll, or the connection is hijacked: what the application still returns is
    /// discarded.
    Other,
}

/// A complete request that waits for its response. It owns its stream until then; if it is dropped without a response, the
/// connection is closed.
#[derive(Debug)]
pub struct Exchange {
    pub(crate) writer: ResponseWriter,
    /// Codes the body, if it is sent compressed and in pieces.
    coded: Coded,
    /// The head has just been cached, and waits for [`Exchange::cache`].
    caches_head: bool,
    made_by: MadeBy,
    /// The application may change the protocol of the connection, or has done so.
    offered: Option<Box<Offered>>,
}

/// Writes the header fields of a response that [`Exchange::start`] begins.
#[derive(Debug)]
pub struct FieldWriter<'a> {
    response: &'a mut Response,
    out: &'a mut Vec<u8>,
    sendfile_roots: &'a SendfileRoots,
    made_by: &'a mut MadeBy,
}

impl FieldWriter<'_> {
    /// Writes a field, unless it names a file that is sent.
    #[inline(always)]
    pub fn field(&mut self, name: &str, value: &str) -> Result<(), SendError> {
        if !self.sendfile_roots.is_empty()
            && let Some(file) = self.sendfile_roots.target_of(name, value)
        {
            if !matches!(self.made_by, MadeBy::Other) {
                *self.made_by = MadeBy::Named(file);
            }
            return Ok(());
        }
        Ok(self.response.field(self.out, name, value)?)
    }
}

impl Exchange {
    #[inline(always)]
    pub(crate) fn new(state: Arc<State>, connection: Box<Connection>, number: u64, caches_head: bool) -> Self {
        Exchange {
            writer: ResponseWriter::new(state, connection, number),
            coded: None,
            caches_head,
            made_by: MadeBy::Application,
            offered: None,
        }
    }
}

/// The request.
impl Exchange {
    /// Starts the request timeout: the application gets the request now. It runs until the returned value is dropped.
    pub fn hand_out(&mut self) -> Option<InFlight> {
        if self.writer.state.takes_times() {
            self.note_hand_out();
        }
        let watch = self.writer.state.request_timeouts.as_ref()?;
        let stream = self.writer.stream.as_ref()?;
        let to_head = self.head().is_some_and(|(head, bytes)| head.method.of(bytes) == b"HEAD");
        let (request, socket) = (stream.request(), Arc::clone(stream.socket()));
        let kind = Kind { to_head, dialect: request.parser.dialect(), raw_tcp: self.is_raw_tcp() };
        let waited = self.writer.handed_out.saturating_sub(request.since);
        let log_entry = self.writer.state.telemetry.access_log.as_ref().map(|log| {
            let mut answer = self.writer.log_entry.of_timeout(log, stream, self.writer.number);
            answer.has_no_head = self.is_raw_tcp();
            Unsent { answer, head: self.head().map(|(head, bytes)| (head.clone(), bytes.to_vec())) }
        });
        let in_flight = watch.enter(self.request_name(), kind, waited, socket, log_entry);
        self.writer.timeout.begin(in_flight.request());
        Some(in_flight)
    }

    /// Notes that the application gets the request now, where times are taken.
    #[inline]
    pub fn note_hand_out(&mut self) {
        self.writer.note_hand_out();
    }

    /// Whether [`Exchange::hand_out`] is to be called.
    #[inline]
    pub fn is_timed(&self) -> bool {
        let state = &self.writer.state;
        state.request_timeouts.is_some() || (state.takes_times() && self.writer.handed_out == 0)
    }

    /// When the application got the request, in microseconds of the monotonic clock; 0: that was not noted.
    #[inline]
    pub fn handed_out(&self) -> u64 {
        self.writer.handed_out
    }

    /// The request; none when it is over.
    #[inline]
    pub fn request(&self) -> Option<&Request> {
        self.writer.request()
    }

    /// The head of the request and the bytes its positions refer to.
    #[inline]
    pub fn head(&self) -> Option<(&Head, &[u8])> {
        self.writer.head()
    }

    /// Method and target for a log, escaped so that they cannot forge a line or control a terminal. Empty when the request
    /// is over.
    pub fn request_line(&self) -> String {
        self.request().map_or_else(String::new, Request::line)
    }

    /// The request as messages name it; without method and target when it is over.
    pub fn request_name(&self) -> RequestName {
        self.writer.request_name()
    }

    /// The id of the request with the option `request_id`; none without, and when the request is over.
    #[inline]
    pub fn request_id(&self) -> Option<RequestId<'_>> {
        let ids = self.writer.state.telemetry.request_ids.as_ref()?;
        Some(self.request()?.id(ids, self.writer.number))
    }

    /// The keys of the environ that the access log asks for, which are to be given to [`Exchange::note_variables`].
    #[inline]
    pub fn logged_variables(&self) -> &[String] {
        if !self.writer.log_entry.collects() {
            return &[];
        }
        self.writer.state.telemetry.access_log.as_ref().map_or(&[], |log| log.variables())
    }

    /// Notes the values of [`Exchange::logged_variables`] before the response ends, as Latin-1.
    pub fn note_variables(&mut self, values: Vec<Vec<u8>>) {
        self.writer.log_entry.note_variables(values);
    }

    /// The running number of the request in this reactor.
    pub fn number(&self) -> u64 {
        self.writer.number
    }

    /// Takes the body of the request.
    pub fn take_body(&mut self) -> Body {
        let body = self.writer.stream.as_mut().map_or(Body::Empty, |stream| stream.request_mut().take_body());
        if !matches!(body, Body::Empty) && self.writer.state.telemetry.access_log.is_some() {
            self.writer.log_entry.note_body(body.length());
        }
        body
    }

    /// Whether the application receives the body while it runs.
    #[inline]
    pub fn is_streamed(&self) -> bool {
        self.request().is_some_and(|request| request.is_streamed())
    }

    /// Receives a part of the body into `room`, which is not empty. Does not wait.
    pub fn receive_body(&mut self, room: &mut [u8]) -> Result<BodyPart, BodyError> {
        body::receive(&mut self.writer, room)
    }

    /// Whether this process is a fork of the server's: only the parent may answer.
    pub fn is_foreign(&self) -> bool {
        self.writer.is_foreign()
    }

    /// Whether the server stops, and waits for requests like this one for some time.
    pub fn is_stopping(&self) -> bool {
        // If all threads are busy with requests, no other one reads the control channel.
        stop::receive_commands(&self.writer.state);
        self.writer.state.is_stopping()
    }

    /// Whether the client disconnected before it was answered.
    pub fn is_lost(&self) -> bool {
        self.writer.lost
    }

    /// Whether the client has left: nothing can be sent to it any more, or it has ended its input and most likely closed the
    /// connection.
    #[cold]
    pub fn has_client_left(&self) -> bool {
        self.writer.has_client_left()
    }

    /// What [`Exchange::cache`] has kept for this head, if the head is cached.
    #[inline]
    pub fn cached<T: 'static>(&self) -> Option<&T> {
        self.request()?.cached()?.downcast_ref()
    }

    /// Keeps what `make` returns for repetitions of this head, if the head is cached; it is dropped with the connection. It
    /// may depend on the head, the peer, what proxies report by them, and the listener, and on nothing else.
    #[inline]
    pub fn cache<T: Send + Sync + 'static>(&mut self, make: impl FnOnce() -> Option<T>) {
        if self.caches_head
            && let Some(stream) = &mut self.writer.stream
        {
            stream.request_mut().cache(make);
        }
    }

    /// The configuration that withholds fields from the application, and whether the peer is trusted; none if no fields are
    /// withheld.
    #[inline]
    pub fn field_filter(&self) -> Option<(&TrustedProxies, bool)> {
        let trusted = self.request()?.is_from_trusted_proxy();
        let trust = self.writer.state.receiving.trust.as_ref().filter(|trust| trust.is_selective(trusted));
        trust.map(|trust| (trust, trusted))
    }

    /// Whether the request timeout has ended the request.
    pub fn has_timed_out(&self) -> bool {
        self.writer.has_timed_out()
    }

    /// Whether this is a raw TCP connection, which was not read.
    #[inline]
    pub fn is_raw_tcp(&self) -> bool {
        self.writer.state.receiving.raw_tcp
    }

    /// The variables of the connection's TLS for the environ, as mod_ssl names them; none without TLS.
    #[inline]
    pub fn tls_variables(&self) -> &[(Cow<'static, str>, String)] {
        self.writer.stream.as_ref().map_or(&[], |stream| stream.socket().transport.tls_variables())
    }

    /// A blocking duplicate of the socket of a raw TCP connection.
    pub fn duplicate(&self) -> Result<OwnedFd, Errno> {
        let stream = self.writer.stream.as_ref().ok_or(Errno::BADF)?;
        net::blocking_duplicate(&stream.socket().transport)
    }

    /// Whether the client of a raw TCP connection is gone: by a reset, or because both sides have finished.
    pub fn is_client_gone(&self) -> bool {
        self.writer.stream.as_ref().is_none_or(|stream| stream.socket().transport.peer_state().is_gone)
    }
}

/// The response.
impl Exchange {
    /// The response so far.
    pub fn response(&self) -> &Response {
        &self.writer.response
    }

    /// Whether more of the application's body may be sent.
    #[inline]
    pub fn wants_more(&self) -> bool {
        self.writer.response.wants_more()
            && !self.names_file()
            && self.coded.as_deref().is_none_or(|compressor| compression::excess(compressor) == 0)
    }

    /// Bytes of content that the application has given beyond its Content-Length.
    pub fn excess(&self) -> u64 {
        self.coded.as_deref().map_or(self.writer.response.excess(), compression::excess)
    }

    /// Whether all of the content that the application has announced is sent.
    fn has_whole_body(&self) -> bool {
        self.coded.as_deref().map_or(self.writer.response.has_whole_body(), compression::has_whole_body)
    }

    /// Whether the request has been answered or given up.
    pub fn is_over(&self) -> bool {
        self.writer.stream.is_none()
    }

    /// Whether responses are compressed at all.
    #[inline]
    pub fn may_compress(&self) -> bool {
        self.writer.state.responding.compression.is_some()
    }

    /// Whether a file of this length is compressed if it is sent as the body of this response.
    pub fn compresses_file(&self, length: u64) -> bool {
        !self.names_file() && compression::compresses_file(&self.writer, length)
    }

    /// Whether what the application still returns is discarded.
    #[inline]
    fn is_made_elsewhere(&self) -> bool {
        matches!(self.made_by, MadeBy::Other)
    }

    /// Whether a file is to be sent instead of the application's body.
    #[inline]
    pub fn names_file(&self) -> bool {
        matches!(self.made_by, MadeBy::Named(_))
    }

    /// Sends a response 103 with the header fields that `fields` writes by the function it is given. Does nothing if the client
    /// cannot take it, it is switched off, or the final response has begun to be sent. On an error nothing is sent.
    #[cold]
    pub fn early_hints<E: From<SendError> + From<Invalid>>(
        &mut self,
        fields: impl FnOnce(&mut dyn FnMut(&str, &str) -> Result<(), Invalid>) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_wanted = self.writer.state.responding.early_hints && self.writer.response.takes_interim();
        if self.is_over() || self.is_made_elsewhere() || !is_wanted || self.is_foreign() {
            return Ok(());
        }
        let mut interim = Vec::new();
        self.writer.response.early_hints(&mut interim, fields)?;
        Ok(self.writer.send_interim(&interim)?)
    }

    /// Starts the response: writes the status line, and calls `fields`, which writes the header fields. On an error nothing is
    /// written.
    #[inline]
    pub fn start<E: From<SendError>>(
        &mut self,
        status: &str,
        fields: impl FnOnce(&mut FieldWriter<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let ResponseWriter { state, stream, response, .. } = &mut self.writer;
        let out = stream.as_mut().ok_or(SendError::Over)?.output();
        let (sendfile_roots, made_by) = (&state.responding.sendfile_roots, &mut self.made_by);
        response.start(out, status).map_err(SendError::from)?;
        let mut writer = FieldWriter { response, out, sendfile_roots, made_by };
        let result = fields(&mut writer);
        let FieldWriter { response, out, made_by, .. } = writer;
        if result.is_err() {
            response.restart(out);
            if matches!(made_by, MadeBy::Named(_)) {
                *made_by = MadeBy::Application;
            }
        }
        result
    }

    /// Takes back what [`Exchange::start`] has written. `false`: it may have been sent already.
    pub fn restart(&mut self) -> bool {
        if self.names_file() && !self.is_over() {
            self.made_by = MadeBy::Application;
        }
        self.writer.restart()
    }

    /// Sends a whole body; head and body leave in one system call. The request is over.
    #[inline]
    pub fn finish(&mut self, parts: &[&[u8]]) -> Result<(), SendError> {
        self.finish_from(parts, 0)
    }

    /// The same, when the first `taken` bytes of the body have been taken already.
    #[inline]
    pub fn finish_from(&mut self, parts: &[&[u8]], taken: usize) -> Result<(), SendError> {
        if self.is_made_elsewhere() {
            return if self.is_upgraded() { Err(SendError::Upgraded) } else { Ok(()) };
        }
        if self.names_file() {
            return self.send_named();
        }
        if self.may_compress() && compression::finish(&mut self.writer, &mut self.coded, parts, taken)? {
            return self.end();
        }
        self.forgo_upgrade();
        self.writer.finish_plain(parts, taken)
    }

    /// Sends a piece of the body: at once, or within a millisecond if the last one was sent no longer ago.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), SendError> {
        if piece.is_empty() || self.names_file() {
            return self.writer.check_client();
        }
        if self.may_compress() {
            compression::write(&mut self.writer, &mut self.coded, piece)?;
        } else {
            self.write_plain(piece)?;
        }
        self.writer.note_piece();
        Ok(())
    }

    /// Sends the head before there is a piece of the body. A body that may be compressed has its head sent with its first piece.
    pub fn send_head(&mut self) -> Result<(), SendError> {
        if !self.may_compress() && !self.names_file() && !self.is_made_elsewhere() {
            self.writer.send_head()?;
        }
        self.writer.check_client()
    }

    #[inline]
    fn write_plain(&mut self, piece: &[u8]) -> Result<(), SendError> {
        if !self.writer.response.is_committed() {
            self.writer.commit(None)?;
        }
        self.writer.send_piece(piece, false)
    }

    /// Sends a part of a file as the body; after [`Exchange::start`]. The request is over.
    pub fn send_file(&mut self, file: OwnedFd, at: u64, length: u64) -> Result<(), SendError> {
        if self.names_file() {
            return self.send_named();
        }
        if self.may_compress() {
            compression::set_fields_of_plain_file(&mut self.writer, length);
        }
        // The length is known, so it is sent without chunks.
        let length = self.writer.response.declared_length().map_or(length, |declared| declared.min(length));
        self.writer.commit(Some(length))?;
        if let admitted @ 1.. = self.writer.admit(length) {
            self.writer.transmit_parts([Part::File { file: Arc::new(file), at, length: admitted }])?;
        }
        self.end()
    }

    /// Sends the file that the application has named. The request is over.
    #[cold]
    fn send_named(&mut self) -> Result<(), SendError> {
        self.forgo_upgrade();
        match mem::replace(&mut self.made_by, MadeBy::Application) {
            MadeBy::Named(named) => x_sendfile::send(&mut self.writer, &named),
            MadeBy::Application | MadeBy::Other => Err(SendError::Over),
        }
    }

    /// Sends a whole response. The request is over.
    #[inline]
    pub(crate) fn reply(&mut self, reply: Reply) -> Result<(), SendError> {
        self.forgo_upgrade();
        reply::send(&mut self.writer, reply)
    }

    /// Leaves the response open: the request is over, but its connection is kept until [`crate::Reactor::end_long_polls`]
    /// sends `final_chunk`, the server stops, or the client disconnects. If `end_long_polls` was called in the last `missed`
    /// milliseconds, that counts. A response without a body simply ends.
    pub fn hold_open(&mut self, final_chunk: &[u8], missed: u64) -> Result<(), SendError> {
        if self.is_made_elsewhere() {
            return Err(SendError::Over);
        }
        // The end is unknown: a client with another request must not wait for it on this connection.
        self.writer.response.close();
        if !self.writer.response.is_committed() {
            self.writer.commit(None)?;
        }
        if self.writer.lost || !self.writer.response.has_body() {
            self.made_by = MadeBy::Other;
            return self.conclude();
        }
        let writer = &mut self.writer;
        let Some(stream) = writer.stream.take() else { return Err(SendError::Over) };
        writer.end_timeout();
        writer.end_pieces();
        self.made_by = MadeBy::Other;
        writer.state.counters.answered(writer.status());
        if writer.lost {
            stream.close(&writer.state);
        } else {
            let coder = self.coded.take().map(|compressor| compressor.coder);
            stream.hold_open(&writer.state, writer.response.clone(), coder, final_chunk, missed);
        }
        Ok(())
    }

    /// Ends the response. The request is over.
    #[inline]
    pub fn end(&mut self) -> Result<(), SendError> {
        if self.is_foreign() {
            return Err(SendError::Over);
        }
        if self.is_made_elsewhere() {
            return if self.is_upgraded() { Err(SendError::Upgraded) } else { Ok(()) };
        }
        if self.names_file() {
            return self.send_named();
        }
        self.writer.state.advance_poll_number();
        self.conclude()
    }

    /// The same with trailer fields behind the body: lines of [`poorhttp_http::Response::trailer`].
    #[cold]
    pub fn end_with_trailers(&mut self, lines: &[u8]) -> Result<(), SendError> {
        if !self.is_foreign() && !self.is_made_elsewhere() && !self.names_file() {
            if self.coded.is_some() && !compression::end(&mut self.writer, &mut self.coded)? {
                return Ok(());
            }
            self.writer.add_trailers(lines)?;
        }
        self.end()
    }

    fn conclude(&mut self) -> Result<(), SendError> {
        self.forgo_upgrade();
        if self.coded.is_some() && !compression::end(&mut self.writer, &mut self.coded)? {
            return Ok(());
        }
        self.writer.conclude()
    }

    /// Aborts the response: the connection is closed, so that the client knows the response is incomplete. A response of which all
    /// announced bytes are sent ends as usual.
    pub fn abort(&mut self) {
        if self.is_upgraded() {
            return self.end_upgraded(false);
        }
        if self.has_whole_body() && !self.writer.lost && !self.is_foreign() && !self.has_timed_out() {
            // The application has failed behind its response: the client has all of it, and the next request may follow.
            let _ = self.conclude();
            return;
        }
        self.writer.abort();
    }

    /// Ends a response of which a piece was sent in part and will not be sent as a whole.
    #[cold]
    pub fn break_off(&mut self) {
        self.writer.break_off();
    }

    /// The application makes the response no more: it was answered from a static file.
    pub(crate) fn note_answered_elsewhere(&mut self) {
        self.made_by = MadeBy::Other;
    }

    /// Ends a raw TCP connection; by a reset if it is not `complete`.
    pub fn end_raw_tcp(&mut self, complete: bool) {
        let writer = &mut self.writer;
        let complete = complete && !writer.lost;
        let Some(stream) = writer.take_stream(complete) else { return };
        if complete && !writer.lost {
            return stream.close_after_client(&writer.state);
        }
        stream.socket().reset();
        stream.close(&writer.state);
    }
}

/// Clients that are slow, or gone.
impl Exchange {
    /// Prepares another thread to take over, because the application is about to wait for something, unless there is no
    /// other connection.
    #[cold]
    pub fn expect_wait(&self) {
        self.writer.expect_wait();
    }

    /// Milliseconds until a slow client is given up; 0: now.
    pub fn send_timeout_left(&self) -> u64 {
        self.writer.send_timeout_left()
    }

    /// Whether the server has ended the connection before the response was complete, and logged why.
    pub fn is_cut(&self) -> bool {
        self.writer.is_cut()
    }

    /// Whether a part of the response is queued, so that more of it may have to be written to a disk.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.writer.is_behind()
    }

    /// Disconnects a client that is too slow.
    pub fn cut(&self) {
        self.writer.cut();
    }

    /// After [`SendError::Full`]: flushes the send queue; still [`SendError::Full`] if there is no room.
    pub fn send_queued(&mut self) -> Result<(), SendError> {
        self.writer.send_queued()
    }

    /// The same as long as anything is queued.
    #[cold]
    pub fn send_all_queued(&mut self) -> Result<(), SendError> {
        self.writer.send_all_queued()
    }

    /// What a thread waits by, until it can receive or send; none when the request is over.
    pub fn waiter(&self) -> Option<Waiter> {
        self.writer.waiter()
    }

    /// Has `function` called once, when what the application waits for may have come, or its client has ended its side: at once if
    /// it is there or the request is over. It is called by any thread (with [`crate::Options::external_loop`]: by one that polls),
    /// must not wait, and takes the place of an earlier one.
    #[cold]
    pub fn notify(&mut self, interest: Interest, function: impl FnOnce() + Send + 'static) {
        self.writer.notify(interest, function);
    }
}

/// Another protocol.
impl Exchange {
    /// Whether the client proposes another protocol; then the application should get an offer.
    #[inline]
    pub fn asks_upgrade(&self) -> bool {
        self.head().is_some_and(|(head, _)| head.asks_upgrade)
    }

    /// Whether the application has an offer to take the connection for a WebSocket.
    pub fn offers_websocket(&self) -> bool {
        self.offered.is_some() && self.head().is_some_and(|(head, bytes)| head.asks_websocket(bytes))
    }

    /// Reserves an upgrade, if this request may have one.
    #[cold]
    pub fn offer_upgrade(&mut self) -> Offer {
        upgrade::offer(&mut self.writer, &mut self.offered)
    }

    /// Gives the reservation back, if there is one: the response is complete, or about to be sent as a whole.
    #[inline]
    fn forgo_upgrade(&mut self) {
        if self.offered.is_some() && !self.is_over() {
            self.offered = None;
        }
    }

    /// Whether the application has got the connection.
    #[inline]
    pub fn is_upgraded(&self) -> bool {
        self.offered.as_ref().is_some_and(|offered| offered.hijacked.is_some())
    }

    /// Gives the connection to the application: a blocking duplicate of its socket. The response is discarded from now on,
    /// the request timeout ends, and [`Exchange::end_upgraded`] is to be called.
    pub fn take_over(&mut self) -> Result<(OwnedFd, Arc<Upgraded>), NotHijacked> {
        if self.is_upgraded() {
            return Err(NotHijacked::Hijacked);
        }
        let Some(offered) = &mut self.offered else { return Err(NotHijacked::Answered) };
        if self.writer.is_foreign() || self.writer.response.is_committed() {
            return Err(NotHijacked::Answered);
        }
        if matches!(self.made_by, MadeBy::Named(_)) {
            self.made_by = MadeBy::Application;
        }
        let (socket, hijacked) = upgrade::hijack(&mut self.writer)?;
        let upgraded = Arc::clone(&hijacked.upgraded);
        (offered.hijacked, self.made_by) = (Some(hijacked), MadeBy::Other);
        upgrade::announce(&self.writer, &upgraded);
        Ok((socket, upgraded))
    }

    /// The application has finished with the connection that it has got. A client that speaks WebSocket gets a Close frame,
    /// unless the application has sent one. If that has failed (not `complete`), any other client gets a reset.
    pub fn end_upgraded(&mut self, complete: bool) {
        let Some(hijacked) = self.offered.as_mut().and_then(|offered| offered.hijacked.take()) else { return };
        upgrade::end(&mut self.writer, hijacked, &mut self.offered, complete);
    }
}

impl Drop for Exchange {
    #[inline]
    fn drop(&mut self) {
        if !self.is_over() {
            self.abort();
        }
    }
}
