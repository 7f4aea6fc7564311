//! An exchange: one request and its response, as Python gets it.
//!
//! ```text
//! mod.rs            the request: head, peer, body, trust, request timeout
//! stream.rs         what an exchange has of its connection
//! body.rs           a body that the application receives while it runs
//! interim.rs        interim responses (1xx)
//! response.rs       status, fields and body of the response
//! reply.rs          responses that the server completes itself: those of handlers here, files, long polls
//! compression.rs    compression of a response while it is sent
//! x_sendfile.rs     a file that the application names instead of a body
//! backpressure.rs   waits for a slow client, and detects a client that is gone
//! long_poll.rs      responses that stay open without a thread
//! taken.rs          what is kept of an upgrade
//! upgrade.rs        another protocol on the connection, which the application gets
//! ```

pub(crate) mod backpressure;
pub(crate) mod body;
pub(crate) mod compression;
mod interim;
pub(crate) mod long_poll;
pub(crate) mod reply;
pub(crate) mod response;
pub(crate) mod stream;
pub(crate) mod taken;
pub(crate) mod upgrade;
pub(crate) mod x_sendfile;

use std::borrow::Cow;
use std::sync::Arc;

use crate::connection::Connection;
use crate::connection::body::incoming::Body;
use crate::connection::request::Request;
use crate::control::request_timeout::{InFlight, Kind, Progress, TimedRequest};
use crate::event_loop::measuring;
use crate::event_loop::reactor::Reactor;
use crate::exchange::compression::Compressor;
use crate::exchange::stream::Stream;
use crate::exchange::taken::Upgrade;
use crate::log::entry::{Answer, Collected, Unsent};
use crate::log::error::Level;
use crate::log::request_id::{RequestId, RequestName};
use crate::sys::socket::Transport;
use crate::sys::{Errno, OwnedFd, clock, net};
use poorhttp_files::SendfileTarget;
use poorhttp_http::{Head, Invalid, Reject, Response, TrustedProxies};

/// Number of a request that is neither counted nor logged.
pub(crate) const UNCOUNTED: u64 = 0;

/// Why something was not sent.
#[derive(Debug)]
pub enum SendError {
    /// The application has given something invalid; none of it was sent.
    Invalid(Invalid),
    /// The client is gone, or too slow.
    Disconnected,
    /// The request has been answered.
    Over,
    /// The application has got the connection, and its response is discarded.
    Upgraded,
    /// The client is slow, and only so many bytes were taken. The application should wait until [`Exchange::socket`] is
    /// writable, call [`Exchange::send_queued`], and give the rest when that succeeds.
    Full(usize),
}

impl From<Invalid> for SendError {
    fn from(invalid: Invalid) -> Self {
        SendError::Invalid(invalid)
    }
}

/// A complete request that waits for its response. It owns its stream until then; if it is dropped without a response, the
/// connection is closed.
#[derive(Debug)]
pub struct Exchange {
    pub(crate) reactor: Arc<Reactor>,
    /// None when the request is over.
    pub(crate) stream: Option<Stream>,
    pub(crate) response: Response,
    /// Codes the body, if it is sent compressed and in pieces.
    pub(crate) compressor: Option<Box<Compressor>>,
    pub(crate) number: u64,
    /// Of [`crate::log::access::AccessLog::start`].
    pub(crate) started: u64,
    /// Positions in the output of the connection where the response begins, and where its content begins once the head is
    /// complete. Only for the access log.
    pub(crate) start: u64,
    pub(crate) body: u64,
    pub(crate) lost: bool,
    /// When a piece of the body was last sent, in microseconds of [`crate::sys::clock::precise_us`]. 0: none was.
    pub(crate) piece_sent: u64,
    /// The server has ended the connection before the response was complete, and logged why.
    pub(crate) cut: bool,
    /// Since when the client is half-closed while the application has nothing to send, in milliseconds of
    /// [`crate::sys::clock::now`]. 0: it is not.
    pub(crate) half_closed_since: u64,
    /// The head has just been cached, and waits for [`Exchange::cache`].
    pub(crate) caches_head: bool,
    /// The file that is to be sent instead of the application's body.
    pub(crate) named: Option<SendfileTarget>,
    /// The response comes from a static file or is a long poll; the application still returns its own.
    pub(crate) answered_elsewhere: bool,
    /// Entry of the request timeout, since [`Exchange::hand_out`].
    pub(crate) timed_request: Option<Arc<TimedRequest>>,
    /// How the request timeout has ended the request, if it did.
    pub(crate) timeout_outcome: Option<Progress>,
    /// The application may change the protocol of the connection, or has done so.
    pub(crate) upgrade: Option<Box<Upgrade>>,
    /// What the access log needs of a request that is not like most.
    pub(crate) collected: Option<Box<Collected>>,
    /// When the application got the request, in microseconds of [`crate::sys::clock::precise_us`]; 0: times are not taken, or it
    /// has not.
    pub(crate) handed_out: u64,
}

impl Exchange {
    #[inline]
    pub(crate) fn new(reactor: Arc<Reactor>, connection: Box<Connection>, number: u64, caches_head: bool) -> Self {
        let mut stream = Stream::new(connection, number);
        // The request timeout answers without this buffer, so output of earlier requests must leave first.
        let lost = reactor.request_timeouts.is_some() && stream.send(&[]).is_err();
        let log = reactor.options.access_log.as_ref();
        let (started, start) = log.map_or((0, 0), |log| (log.start(), stream.end_of_output()));
        let collected = log.and_then(|log| log.wanted()).map(|_| Box::default());
        let response = stream.request().response();
        Exchange {
            reactor,
            stream: Some(stream),
            response,
            compressor: None,
            number,
            started,
            start,
            body: start,
            lost,
            piece_sent: 0,
            cut: false,
            half_closed_since: 0,
            caches_head,
            named: None,
            answered_elsewhere: false,
            timed_request: None,
            timeout_outcome: None,
            upgrade: None,
            collected,
            handed_out: 0,
        }
    }

    /// Starts the request timeout: the application gets the request now. It runs until the returned value is dropped.
    pub fn hand_out(&mut self) -> Option<InFlight> {
        if self.reactor.takes_times() {
            self.note_hand_out();
        }
        let watch = self.reactor.request_timeouts.as_ref()?;
        let stream = self.stream.as_ref()?;
        let to_head = self.head().is_some_and(|(head, bytes)| head.method.of(bytes) == b"HEAD");
        let (request, socket) = (stream.request(), Arc::clone(stream.socket()));
        let kind = Kind { to_head, dialect: request.parser.dialect(), raw_tcp: self.is_raw_tcp() };
        let waited = self.handed_out.saturating_sub(request.since);
        let in_flight = watch.enter(self.request_name(), kind, waited, socket, self.timeout_log_entry(stream));
        self.timed_request = Some(Arc::clone(in_flight.request()));
        Some(in_flight)
    }

    /// The line of the access log for a 504 that the thread of the timeout sends; where the answer ends is added then.
    fn timeout_log_entry(&self, stream: &Stream) -> Option<Unsent> {
        let log = self.reactor.options.access_log.as_ref()?;
        let request = stream.request();
        let server = log.wanted().map(|_| request.server(log));
        let answer = Answer {
            client: request.client().map(|(address, _)| address),
            has_no_head: self.is_raw_tcp(),
            status: 504,
            size: 0,
            start: 0,
            body: 0,
            end: 0,
            is_whole: true,
            persists: false,
            started: self.started,
            number: self.number,
            kept: request.served,
            received: request.received(),
            is_trusted: request.is_from_trusted_proxy(),
            collected: server.map(|server| Box::new(Collected { server, ..Collected::default() })),
        };
        Some(Unsent { answer, head: self.head().map(|(head, bytes)| (head.clone(), bytes.to_vec())) })
    }

    /// Notes when the application gets the request; in place of [`Exchange::hand_out`] if there is no request timeout.
    #[inline]
    pub fn note_hand_out(&mut self) {
        self.handed_out = clock::precise_us();
        if let Some(stream) = &mut self.stream {
            stream.end_wait(&self.reactor);
        }
    }

    /// Whether [`Exchange::hand_out`] is to be called.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.reactor.request_timeouts.is_some() || (self.reactor.takes_times() && self.handed_out == 0)
    }

    /// When the application got the request, in microseconds of the monotonic clock; 0: that was not noted.
    #[inline]
    pub fn handed_out(&self) -> u64 {
        self.handed_out
    }

    /// The request; none when it is over.
    #[inline]
    pub fn request(&self) -> Option<&Request> {
        self.stream.as_ref().map(Stream::request)
    }

    /// The head of the request and the bytes its positions refer to.
    #[inline]
    pub fn head(&self) -> Option<(&Head, &[u8])> {
        self.request()?.head()
    }

    /// Method and target for a log, escaped so that they cannot forge a line or control a terminal. Empty when the request
    /// is over.
    pub fn request_line(&self) -> String {
        self.request().map_or_else(String::new, Request::line)
    }

    /// The request as messages name it; without method and target when it is over.
    pub fn request_name(&self) -> RequestName {
        match self.request() {
            Some(request) => request.name(self.reactor.options.request_ids, self.number, request.line()),
            None => RequestName { number: self.number, ..RequestName::default() },
        }
    }

    /// The id of the request with the option `request_id`; none without, and when the request is over.
    #[inline]
    pub fn request_id(&self) -> Option<RequestId<'_>> {
        let ids = self.reactor.options.request_ids.as_ref()?;
        Some(self.request()?.id(ids, self.number))
    }

    /// The keys of the environ that the access log asks for, which are to be given to [`Exchange::note_variables`].
    #[inline]
    pub fn logged_variables(&self) -> &[String] {
        if self.collected.is_none() {
            return &[];
        }
        self.reactor.options.access_log.as_ref().map_or(&[], |log| log.variables())
    }

    /// Notes the values of [`Exchange::logged_variables`] before the response ends, as Latin-1.
    pub fn note_variables(&mut self, values: Vec<Vec<u8>>) {
        if let Some(collected) = &mut self.collected {
            collected.variables = values;
        }
    }

    /// The running number of the request in this reactor.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Takes the body of the request.
    pub fn take_body(&mut self) -> Body {
        let body = self.stream.as_mut().map_or(Body::Empty, |stream| stream.request_mut().take_body());
        if !matches!(body, Body::Empty) {
            self.note_body(body.length());
        }
        body
    }

    /// Notes the length of the body for the access log.
    #[cold]
    fn note_body(&mut self, length: u64) {
        if self.reactor.options.access_log.is_some() {
            self.collected.get_or_insert_default().body = length;
        }
    }

    /// Counts bytes of content that are compressed, for the access log.
    pub(crate) fn note_uncoded(&mut self, bytes: u64) {
        if self.reactor.options.access_log.is_some() {
            self.collected.get_or_insert_default().uncoded += bytes;
        }
    }

    /// Whether this process is a fork of the server's: only the parent may answer.
    pub fn is_foreign(&self) -> bool {
        self.reactor.is_foreign()
    }

    /// Whether the server stops, and waits for requests like this one for some time.
    pub fn is_stopping(&self) -> bool {
        // If all threads are busy with requests, no other one reads the control channel.
        self.reactor.receive_commands();
        self.reactor.is_stopping()
    }

    /// Whether the client disconnected before it was answered.
    pub fn is_lost(&self) -> bool {
        self.lost
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
            && let Some(stream) = &mut self.stream
        {
            stream.request_mut().cache(make);
        }
    }

    /// The configuration that withholds fields from the application, and whether the peer is trusted; none if no fields are
    /// withheld.
    #[inline]
    pub fn field_filter(&self) -> Option<(&TrustedProxies, bool)> {
        let trusted = self.request()?.is_from_trusted_proxy();
        self.reactor.options.trust.as_ref().filter(|trust| trust.is_selective(trusted)).map(|trust| (trust, trusted))
    }

    /// Whether the request timeout has ended the request.
    pub fn has_timed_out(&self) -> bool {
        self.timeout_outcome.is_some() || self.timed_request.as_ref().is_some_and(|request| request.has_timed_out())
    }

    /// Writes a message about the request to the error log.
    #[cold]
    pub(crate) fn log_message(&self, level: Level, message: &str) {
        self.reactor.log_about(level, &self.request_name(), message);
    }

    /// Counts this request as one that the server itself refuses.
    #[cold]
    pub(crate) fn count_refusal(&self, reject: Reject) {
        if let Some(request) = self.request() {
            measuring::count_refusal(&self.reactor, request, &self.request_name(), reject, None);
        }
    }

    /// Ends the request timeout.
    #[inline]
    pub(crate) fn end_timeout(&mut self) {
        if let Some(request) = self.timed_request.take() {
            self.timeout_outcome = request.close();
            self.lost |= self.timeout_outcome == Some(Progress::CutShort);
            if self.timeout_outcome.is_some() || (request.is_overdue() && self.response.status() == 504) {
                request.count(self.reactor.counters);
            }
        }
    }

    /// Whether this is a raw TCP connection, which was not read.
    #[inline]
    pub fn is_raw_tcp(&self) -> bool {
        self.reactor.options.raw_tcp
    }

    /// The variables of the connection's TLS for the environ, as mod_ssl names them; none without TLS.
    #[inline]
    pub fn tls_variables(&self) -> &[(Cow<'static, str>, String)] {
        let tls = self.stream.as_ref().and_then(|stream| stream.socket().transport.tls());
        tls.map_or(&[], |tls| tls.variables())
    }

    /// A blocking duplicate of the socket of a raw TCP connection.
    pub fn duplicate(&self) -> Result<OwnedFd, Errno> {
        let stream = self.stream.as_ref().ok_or(Errno::BADF)?;
        net::blocking_duplicate(&stream.socket().transport)
    }

    /// Whether the client of a raw TCP connection is gone: by a reset, or because both sides have finished.
    pub fn is_client_gone(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.socket().transport.peer_state().is_gone)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.abort();
    }
}
