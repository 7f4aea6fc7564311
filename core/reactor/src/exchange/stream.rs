//! A stream: the part of a connection that one exchange may use (in HTTP/1, all of it).
//!
//! In HTTP/1 and in the gateway protocols a connection carries one stream at a time, so a stream owns its connection and
//! gives it back at its end. An [`crate::exchange::Exchange`] does nothing to a connection but by these methods: a protocol
//! with several streams on a connection (HTTP/2) is another variant of this type.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use poorhttp_files::Part;
use poorhttp_http::{Dialect, Head, Origin, Response};

use crate::connection::body::Body;
use crate::connection::head_cache::CachedHead;
use crate::connection::peer_trust::PeerTrust;
use crate::connection::send::Lost;
use crate::connection::shared_socket::SharedSocket;
use crate::connection::state::After;
use crate::connection::{Connection, line_of};
use crate::event_loop::reactor::Reactor;
use crate::event_loop::{finish, logging, poll, ready_queue, shutdown};
use crate::log::entry::Answer;
use crate::log::slow::Answered;
use crate::sys::socket::{PeerState, Transport};

/// A request on a connection and the way back for its response.
#[derive(Debug)]
pub(crate) struct Stream(Box<Connection>);

impl Stream {
    /// The stream of the request that has come on this connection.
    #[inline]
    pub(crate) fn new(mut connection: Box<Connection>, number: u64) -> Self {
        connection.number = number;
        Stream(connection)
    }

    /// The connection, for a protocol that has it for itself from now on.
    pub(crate) fn into_connection(self) -> Box<Connection> {
        self.0
    }

    /// The connection, to look at.
    #[inline]
    pub(crate) fn connection(&self) -> &Connection {
        &self.0
    }

    /// The head of the request and the bytes its positions refer to.
    #[inline]
    pub(crate) fn head(&self) -> Option<(&Head, &[u8])> {
        let buffer = &self.0.buffers.as_ref()?.read_buffer;
        Some((&buffer.head, buffer.head_bytes()))
    }

    /// The response to the request, of which nothing is said yet.
    #[inline]
    pub(crate) fn response(&self) -> Response {
        match &self.0.buffers {
            Some(buffers) => {
                Response::new(&buffers.read_buffer.head, buffers.read_buffer.head_bytes(), buffers.out.len())
            }
            None => Response::to_refused(self.dialect(), false, 0),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.0.parser.dialect()
    }

    /// Method and target for a log.
    pub(crate) fn request_line(&self) -> String {
        line_of(&self.0)
    }

    pub(crate) fn take_body(&mut self) -> Body {
        self.0.buffers().body.take().map_or(Body::Empty, |body| body.take())
    }

    #[inline]
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.0.peer
    }

    #[inline]
    pub(crate) fn client(&self) -> Option<(IpAddr, Option<u16>)> {
        self.0.client()
    }

    #[inline]
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.0.origin()
    }

    #[inline]
    pub(crate) fn is_from_trusted_proxy(&self) -> bool {
        self.0.peer_trust == PeerTrust::Trusted
    }

    #[inline]
    pub(crate) fn listener(&self) -> u32 {
        self.0.listener
    }

    /// Whether the head is the one that was cached.
    #[inline]
    pub(crate) fn is_repeated(&self) -> bool {
        self.0.buffers.as_ref().is_some_and(|buffers| buffers.read_buffer.repeated)
    }

    /// The cache for what is made of the head.
    #[inline]
    pub(crate) fn cached_head(&self) -> Option<&CachedHead> {
        self.0.cached_head.as_ref()
    }

    #[inline]
    pub(crate) fn cached_head_mut(&mut self) -> Option<&mut CachedHead> {
        self.0.cached_head.as_mut()
    }
}

/// The response.
impl Stream {
    /// Bytes of the response that are not sent yet, to add to.
    #[inline]
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.0.buffers().out
    }

    /// Bytes that have been made so far on the connection, sent or not.
    #[inline]
    pub(crate) fn end_of_output(&self) -> u64 {
        self.0.end_of_output()
    }

    /// Sends the output and then `more`.
    #[inline]
    pub(crate) fn send(&mut self, more: &[&[u8]]) -> Result<(), Lost> {
        self.0.transmit(more)
    }

    /// Sends the output and then parts of files and of what is in memory.
    pub(crate) fn send_parts(&mut self, parts: impl Iterator<Item = Part>) -> Result<(), Lost> {
        self.0.transmit_parts(parts)
    }

    /// Whether something of the response waits for the client.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.0.has_send_queue
    }

    /// Whether so much waits that the application should, too.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// Sends what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self) {
        self.0.flush();
    }

    /// Has what waits sent while the application goes on, and its deadline watched. `false`: it cannot be sent any more.
    pub(crate) fn watch_send_queue(&mut self, reactor: &Reactor) -> bool {
        let (is_broken, deadline) = match &*self.0.socket.send_queue() {
            Some(queue) => (queue.is_broken(), queue.deadline(reactor.options.timeouts.response_rate())),
            None => return true,
        };
        poll::watch_send_queue(reactor, &mut self.0, deadline);
        !is_broken
    }

    /// The side of the connection that other threads may use at the same time.
    #[inline]
    pub(crate) fn socket(&self) -> &Arc<SharedSocket> {
        &self.0.socket
    }

    pub(crate) fn peer_state(&self) -> PeerState {
        self.0.socket.transport.peer_state()
    }

    /// Whether this response, which begins while the server stops, is the last one of its connection.
    #[cold]
    pub(crate) fn is_last(&self, reactor: &Reactor) -> bool {
        shutdown::is_last_of(reactor, &self.0)
    }

    /// Requests that were answered on the connection before this one.
    pub(crate) fn served(&self) -> u32 {
        self.0.served
    }

    /// Since when the request is there, in microseconds of [`crate::sys::clock::precise_us`].
    pub(crate) fn since(&self) -> u64 {
        self.0.since
    }

    /// What is to be logged when the response has been sent.
    #[inline]
    pub(crate) fn set_log_entry(&mut self, answer: Answer) {
        self.0.buffers().answer = Some(answer);
    }

    /// The same for the slow log.
    pub(crate) fn set_timing(&mut self, answered: Answered) {
        self.0.answered = Some(Box::new(answered));
    }

    /// Logs responses to earlier requests that have been sent by now.
    #[inline]
    pub(crate) fn log_sent(&mut self, reactor: &Reactor) {
        if !self.0.unsent.is_empty() {
            logging::log_unsent(reactor, &mut self.0, false);
        }
    }
}

/// The end.
impl Stream {
    /// The response is complete. `persists`: its connection may carry another request.
    #[inline]
    pub(crate) fn complete(mut self, reactor: &Reactor, persists: bool) {
        self.0.served = self.0.served.saturating_add(1);
        if persists {
            return finish::response_done(reactor, self.0, After::Next);
        }
        self.end(reactor);
    }

    /// Sends the output, and closes the connection in an orderly way.
    pub(crate) fn end(self, reactor: &Reactor) {
        let after = if self.0.may_be_sending() { After::Linger } else { After::Close };
        finish::response_done(reactor, self.0, after);
    }

    /// The same for a client that was answered from outside.
    pub(crate) fn linger(self, reactor: &Reactor) {
        finish::response_done(reactor, self.0, After::Linger);
    }

    /// Closes the connection; what was not sent is dropped.
    pub(crate) fn close(self, reactor: &Reactor) {
        ready_queue::close(reactor, self.0);
    }

    /// Closes the connection by a reset: an orderly end would make the response look complete.
    pub(crate) fn close_by_reset(self, reactor: &Reactor) {
        self.0.socket.transport.reset_on_close();
        self.close(reactor);
    }
}
