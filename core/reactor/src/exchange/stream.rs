//! Handle of one request on its connection, by which an exchange receives the body and sends the response (HTTP/1 or HTTP/2).
//!
//! In HTTP/1 and in the gateway protocols a connection carries one stream at a time, so a stream owns its connection and
//! gives it back at its end. An [`crate::exchange::Exchange`] and its handlers get the request and these functions, and
//! nothing else of a connection: a protocol with several streams on a connection (HTTP/2) is another variant of this type.

use std::sync::Arc;

use poorhttp_files::Part;
use poorhttp_http::{Limits, Reject, Response};

use crate::connection::Connection;
use crate::connection::body::receive::{self, Streamed};
use crate::connection::coalesced::{CoalescedSender, SharedCoder};
use crate::connection::long_polls::LongPoll;
use crate::connection::notice::Interest;
use crate::connection::request::Request;
use crate::connection::send_queue::Lost;
use crate::connection::shared_socket::SharedSocket;
use crate::connection::state::After;
use crate::exchange::long_poll;
use crate::log::entry::{Answer, Unsent};
use crate::log::slow::Answered;
use crate::scheduler::state::State;
use crate::scheduler::{notices, poll, put_back, release};
use crate::shutdown::Stage;
use crate::sys::socket::{self, Transport};
use crate::sys::{AsFd, Errno, clock};
use crate::telemetry::{Telemetry, logging, timing};
use crate::websocket::relay::RelayEnd;

/// A request on a connection and the way back for its response.
#[derive(Debug)]
pub(crate) struct Stream(Box<Connection>);

impl Stream {
    /// The stream of the request that has come on this connection.
    #[inline]
    pub(crate) fn new(mut connection: Box<Connection>, number: u64) -> Self {
        connection.request.number = number;
        Stream(connection)
    }

    /// The stream of a request that has been handed out before.
    pub(crate) fn of(connection: Box<Connection>) -> Self {
        Stream(connection)
    }

    /// The connection, in which the end of the stream waits for that of a relay.
    pub(crate) fn into_connection(self) -> Box<Connection> {
        self.0
    }

    /// Whether it is one of the streams of a connection that carries many.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.0.is_stream()
    }

    /// The connection, which is about to carry another protocol.
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.0
    }

    #[inline]
    pub(crate) fn request(&self) -> &Request {
        &self.0.request
    }

    #[inline]
    pub(crate) fn request_mut(&mut self) -> &mut Request {
        &mut self.0.request
    }
}

/// The body of the request, if the application receives it.
impl Stream {
    /// Receives a part of the body; see [`receive::receive_streamed`].
    pub(crate) fn receive_body(&mut self, state: &State, room: &mut [u8]) -> Streamed {
        if self.0.take_awaited() {
            notices::take_events(state, &mut self.0);
        }
        receive::receive_streamed(&mut self.0, &state.receiving.limits, room)
    }

    /// The application waits for its client: until when it may; `None`: the client is too slow.
    pub(crate) fn await_body(&mut self, state: &State) -> Option<u64> {
        if !self.0.is_behind() && !state.running.external_loop {
            // Each piece would wake the thread that polls for nothing.
            self.0.unregister(&state.poller);
        }
        receive::streamed_deadline(&mut self.0, state.timeouts.body_rate())
    }

    /// Has `function` called once when what the application waits for has come, or the client has ended its side.
    pub(crate) fn notify(&mut self, state: &State, interest: Interest, function: impl FnOnce() + Send + 'static) {
        notices::set(state, &mut self.0, interest, function);
    }

    /// Notes why the rest of the body is refused. `true`: it had not been refused before.
    pub(crate) fn refuse_body(&mut self, reject: Reject) -> bool {
        match &mut self.0.request.buffers().streamed {
            Some(streamed) => streamed.refused.replace(reject).is_none(),
            None => false,
        }
    }

    /// Whether the response may leave the connection open: only if the body is complete, or the rest of it has come. `is_over`: the
    /// application reads no more of it, so the rest is dropped if that takes no time.
    #[inline]
    pub(crate) fn has_ended_body(&mut self, limits: &Limits, is_over: bool) -> bool {
        !self.0.request.is_unfinished() || receive::has_rest(&mut self.0, limits, is_over)
    }

    /// The final response has begun, so no interim one may follow.
    pub(crate) fn drop_continue(&mut self) {
        receive::drop_continue(&mut self.0);
    }
}

/// The response.
impl Stream {
    /// Bytes of the response that are not sent yet, to add to.
    #[inline]
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.0.request.buffers().out
    }

    /// The same, to read.
    pub(crate) fn out(&self) -> &[u8] {
        self.0.request.buffers.as_ref().map_or(&[], |buffers| &buffers.out)
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

    /// Whether so many bytes more may wait for those that follow: only behind what was sent.
    pub(crate) fn may_coalesce(&self, bytes: usize) -> bool {
        !self.0.is_behind() && self.0.may_coalesce(bytes)
    }

    /// Has what `add` writes sent within a millisecond. `false`: it must be sent now.
    pub(crate) fn coalesce(&mut self, sender: &Arc<CoalescedSender>, add: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.0.coalesce(sender, add)
    }

    /// The same for a piece that is coded then.
    pub(crate) fn coalesce_coded(&mut self, sender: &Arc<CoalescedSender>, coder: &SharedCoder, piece: &[u8]) -> bool {
        self.0.coalesce_coded(sender, coder, piece)
    }

    /// Takes back what was coalesced and not sent, coded.
    pub(crate) fn reclaim_coalesced(&mut self) {
        self.0.reclaim_coalesced();
    }

    /// Sends the output and then parts of files and of what is in memory.
    pub(crate) fn send_parts(&mut self, parts: impl Iterator<Item = Part>) -> Result<(), Lost> {
        self.0.transmit_parts(parts)
    }

    /// Where the response begins among all bytes of the connection. `start`: the same, if there is an access log.
    fn begin(&self, telemetry: &Telemetry, start: u64) -> u64 {
        let begun = self.0.timing.as_ref().map_or(0, |measured| measured.begun);
        if telemetry.access_log.is_some() { start } else { begun }
    }

    /// Whether nothing of the response was sent yet.
    pub(crate) fn has_sent_nothing(&self, telemetry: &Telemetry, start: u64) -> bool {
        self.0.bytes_sent() <= self.begin(telemetry, start)
    }

    /// Whether nothing of the response has reached the client, which is gone.
    pub(crate) fn has_lost_all(&self, telemetry: &Telemetry, start: u64) -> bool {
        self.0.has_lost_all_since(self.begin(telemetry, start), telemetry.unacknowledged)
    }

    /// Whether a client that has ended its input has most likely left: a Unix socket reports only a closed half this way, and a
    /// client that pipelines may have sent its last request.
    pub(crate) fn ends_with_input(&self) -> bool {
        let has_content = || {
            let transport = &self.0.socket.transport;
            match transport.peek(&mut [0]) {
                Ok(1..) => true,
                // A session has not decrypted it: an alert only ends the session.
                Err(Errno::AGAIN) => socket::has_record(transport.as_fd()),
                _ => false,
            }
        };
        self.0.request.peer().is_some() && !self.0.pipelines && !self.0.request.has_unread() && !has_content()
    }

    /// Whether something of the response waits for the client.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.0.is_behind()
    }

    /// Whether so much waits that the application should, too.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// Why nothing can be sent any more.
    pub(crate) fn fault(&self) -> Lost {
        self.0.fault()
    }

    /// Sends what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self) {
        self.0.flush();
    }

    /// Has what waits sent while the application goes on, and its deadline watched. `false`: it cannot be sent any more.
    pub(crate) fn watch_send_queue(&mut self, state: &State) -> bool {
        let (is_broken, deadline) = match &*self.0.socket.send_queue() {
            Some(queue) => (queue.is_broken(), queue.deadline(state.timeouts.response_rate())),
            None => return true,
        };
        poll::watch_send_queue(state, &mut self.0, deadline);
        !is_broken
    }

    /// The side of the connection that other threads may use at the same time.
    #[inline]
    pub(crate) fn socket(&self) -> &Arc<SharedSocket> {
        &self.0.socket
    }

    /// Whether a response that begins while the server stops is the last one of its connection. A pipelined request that has
    /// arrived behind it is answered as well, before the connection closes.
    #[cold]
    pub(crate) fn is_last(&self, state: &State) -> bool {
        state.shutdown.stage() == Stage::Quick
            || state.is_overdue()
            || !(state.shutdown.passes_connections() || self.0.is_followed())
    }

    /// What is to be logged when the response has been sent.
    #[inline]
    pub(crate) fn set_log_entry(&mut self, answer: Answer) {
        self.0.request.buffers().answer = Some(answer);
    }

    /// The times of the response that is complete.
    #[inline]
    pub(crate) fn set_times(&mut self, answered: Answered) {
        let measured = self.0.timing.get_or_insert_default();
        (measured.answered, measured.is_pending) = (answered, true);
    }

    /// The connection does not wait for its client any more.
    #[inline]
    pub(crate) fn end_wait(&mut self, telemetry: &Telemetry) {
        timing::end_wait(telemetry, &mut self.0);
    }

    /// Counts the bytes of a response that is still being made.
    pub(crate) fn count_bytes(&mut self, state: &State) {
        // First: it waits for a thread that sends on this connection, and no other is to wait for that.
        let all_sent = self.0.bytes_sent();
        let _shared = state.lock();
        timing::count_bytes(&state.telemetry, &mut self.0, all_sent);
    }

    /// Logs responses to earlier requests that have been sent by now.
    #[inline]
    pub(crate) fn log_sent(&mut self, state: &State) {
        if !self.0.unsent.is_empty() && logging::log_unsent(&state.telemetry, &mut self.0, false) {
            state.flush_log_soon();
        }
    }
}

/// The end.
impl Stream {
    /// The response is complete. `persists`: its connection may carry another request.
    #[inline]
    pub(crate) fn complete(mut self, state: &State, persists: bool) {
        self.0.request.served = self.0.request.served.saturating_add(1);
        if persists && self.has_ended_body(&state.receiving.limits, true) {
            return release::response_done(state, self.0, After::Next);
        }
        self.end(state);
    }

    /// Sends the output, and closes the connection in an orderly way.
    pub(crate) fn end(self, state: &State) {
        let after = if self.0.may_be_sending() { After::Linger } else { After::Close };
        release::response_done(state, self.0, after);
    }

    /// The same for a client that was answered from outside.
    pub(crate) fn linger(self, state: &State) {
        release::response_done(state, self.0, After::Linger);
    }

    /// Sends the output and leaves the response open; see [`crate::exchange::Exchange::hold_open`].
    pub(crate) fn hold_open(
        mut self,
        state: &State,
        response: Response,
        coder: Option<SharedCoder>,
        final_chunk: &[u8],
        missed: u64,
    ) {
        if self.0.transmit(&[]).is_err() {
            return self.close(state);
        }
        let since = clock::precise_us().saturating_sub(missed.saturating_mul(1_000));
        self.0.hold_open(LongPoll {
            response,
            coder,
            final_chunk: final_chunk.into(),
            since,
            seen: state.long_polls.last(),
        });
        long_poll::continue_long_poll(state, self.0);
    }

    /// Closes a connection that the application has used itself (raw TCP, another protocol), when its client has finished, too,
    /// or has had a moment to do so: input after the close would be answered by a reset, which could destroy what was sent.
    pub(crate) fn close_after_client(mut self, state: &State) {
        let may_send = matches!(self.0.socket.transport.peek(&mut [0]), Ok(1..) | Err(Errno::AGAIN));
        let waits_for_client = may_send && put_back::watch(state, &mut self.0);
        release::response_done(state, self.0, if waits_for_client { After::Linger } else { After::Close });
    }

    /// Closes the connection; what was not sent is dropped.
    pub(crate) fn close(self, state: &State) {
        put_back::close(state, self.0);
    }

    /// Closes the connection by a reset: an orderly end would make the response look complete.
    pub(crate) fn close_by_reset(self, state: &State) {
        self.0.socket.transport.reset_on_close();
        self.close(state);
    }
}

/// A connection that the application has got.
impl Stream {
    /// The application gets the socket.
    pub(crate) fn let_go(&mut self, state: &State) {
        self.0.was_upgraded = true;
        put_back::let_go(state, &mut self.0);
    }

    /// Notes a log entry of so many bytes, which the application has sent itself.
    pub(crate) fn log_sent_elsewhere(&mut self, bytes: u64, unsent: Unsent) {
        self.0.add_taken(bytes);
        self.0.unsent.push(unsent);
    }

    /// Ends a connection whose relay has ended, too.
    pub(crate) fn end_relayed(self, state: &State, end: RelayEnd) {
        match end {
            RelayEnd::ConnectionLost => self.close(state),
            RelayEnd::Application | RelayEnd::Both => self.close_after_client(state),
        }
    }

    /// Leaves the socket to the application, which has a descriptor of its own.
    pub(crate) fn leave(mut self, state: &State) {
        self.0.was_upgraded = false;
        put_back::close(state, self.0);
    }
}
