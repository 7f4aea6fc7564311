//! Connections with many streams: sends and receives for all of them, hands out new ones, and has threads wait for one.
//!
//! The connection stays in its slot and registered with the poller. Each stream has a slot of its own, in which it waits as a
//! connection of HTTP/1 does: for its turn, for data, for room and for its deadline. What comes for a stream is an event of its slot.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use poorhttp_http::{Head, ReadBuffer, RequestParser};

use crate::connection::Connection;
use crate::connection::multiplexed::streams::{Begun, Ready, Turn};
use crate::connection::multiplexed::{Multiplexed, StreamOwner, Waiting};
use crate::connection::notice::Interest;
use crate::connection::peer_trust::client_suffix;
use crate::connection::request::Request;
use crate::connection::shared_socket::SharedSocket;
use crate::connection::state::PhaseEvent;
use crate::connection::transport::Socket;
use crate::connection::transport::stream_socket::StreamSocket;
use crate::limits::{LAST_CHANCE, SENT_AT_ONCE};
use crate::log::error::Level;
use crate::options::Timeouts;
use crate::scheduler::connections::Again;
use crate::scheduler::state::State;
use crate::scheduler::{poll, put_back, release, stream_reader};
use crate::sys::{AsFd, clock};
use crate::telemetry::timing;

impl StreamOwner for State {
    fn tell(&self, events: &[Ready]) {
        poll::deliver(self, events);
    }
}

/// The turn of a connection in [`crate::connection::state::Phase::Multiplexed`].
#[cold]
pub(crate) fn advance(state: &Arc<State>, mut connection: Box<Connection>) {
    let Some(streams) = connection.streams.clone().or_else(|| begin(state, &mut connection)) else {
        return put_back::close(state, connection);
    };
    if state.is_stopping() {
        streams.begin_shutdown();
    }
    let began = clock::precise_us();
    let turn = streams.turn(connection.has_hung_up());
    let has_more = act(state, &streams, turn);
    poll::note_time(state, clock::precise_us().saturating_sub(began));
    if streams.is_over() {
        return match streams.has_ended() {
            true => release::close_gracefully(state, connection),
            // What the client still sends, such as room for content, must not destroy what is on its way to it.
            false => release::linger(state, connection),
        };
    }
    let now = clock::now();
    let mut deadline = deadline(&state.timeouts, &streams, now);
    if deadline <= now || (state.is_stopping() && state.is_overdue()) {
        streams.finish_shutdown();
        let unsent_until = unsent_until(&state.timeouts, &streams);
        let is_given_up = unsent_until.is_some_and(|until| until <= now || state.is_overdue());
        if streams.idle_since().is_some() || is_given_up {
            if streams.partial_since().is_some() && !state.is_stopping() {
                let reason = "no error, but the rest of what it has begun has not come in time (header_timeout)";
                log_end(state, &streams, reason);
            }
            // What the client still sends must not destroy the last word.
            return release::linger(state, connection);
        }
        deadline = unsent_until.unwrap_or(now + state.timeouts.keepalive);
    }
    put_back::put_back(state, connection, deadline, if has_more { Again::InTurn } else { Again::No });
}

/// Until when a connection may go on as it does.
fn deadline(timeouts: &Timeouts, streams: &Multiplexed, now: u64) -> u64 {
    let is_new = streams.served() == 0;
    if let Some(since) = streams.stopping_since() {
        // Requests may be under way.
        return since + if is_new { timeouts.drain.max(LAST_CHANCE) } else { timeouts.drain };
    }
    let Some(idle_since) = streams.idle_since() else {
        return unsent_until(timeouts, streams).unwrap_or(now + timeouts.keepalive);
    };
    let until = idle_since + if is_new { timeouts.header } else { timeouts.keepalive };
    streams.partial_since().map_or(until, |since| until.min(since + timeouts.header))
}

/// Until when a client without streams has time to take the end of its responses. `None`: nothing waits, or there is a stream.
fn unsent_until(timeouts: &Timeouts, streams: &Multiplexed) -> Option<u64> {
    streams.unsent_since().map(|since| since + timeouts.write)
}

/// Begins with the protocol of the streams. `None`: the server speaks none.
fn begin(state: &Arc<State>, connection: &mut Connection) -> Option<Arc<Multiplexed>> {
    let multiplexing = state.receiving.multiplexing.as_ref()?;
    let protocol = (multiplexing.make)(&state.receiving.limits);
    let origin = connection.request.origin_of_streams(connection.socket.transport.tls_variables().to_vec());
    let weak: Weak<State> = Arc::downgrade(state);
    let carrier: Arc<SharedSocket> = Arc::clone(&connection.socket);
    // Else the kernel takes megabytes of one response, behind which a more urgent one would have to wait.
    (multiplexing.limit_unsent)(connection.socket.transport.as_fd(), SENT_AT_ONCE as u32);
    let (sender, metrics) = (Arc::clone(&state.coalesced_sender), &state.counters.metrics);
    let streams = Arc::new(Multiplexed::new(carrier, weak, sender, connection.slot(), origin, protocol, metrics));
    // The TLS handshake, or the preface of which a part had come.
    timing::end_wait(&state.telemetry, connection);
    if let Some(buffers) = connection.request.buffers.take() {
        act(state, &streams, streams.take_received(buffers.read_buffer.unread()));
    }
    stream_reader::watch(state, &streams);
    connection.streams = Some(Arc::clone(&streams));
    Some(streams)
}

/// Logs why a connection ends, and counts it.
#[cold]
fn log_end(state: &State, streams: &Multiplexed, reason: &str) {
    state.counters.metrics.http2_failures.fetch_add(1, Ordering::Relaxed);
    let client = client_suffix(streams.origin.peer.map(|peer| (peer.ip(), Some(peer.port()))));
    state.log(Level::Info, &format!("a connection{client} is closed: {reason}"));
}

/// A turn of a connection whose socket has something to do, by a thread that runs no requests.
pub(crate) fn advance_unattended(state: &State, streams: &Arc<Multiplexed>) {
    while act(state, streams, streams.turn(true)) {}
    streams.note_reader();
    // The poller reports no input that was received here, and only the pool ends the connection or sets its deadline.
    poll::deliver(state, &[Ready { slot: streams.slot(), readable: true, writable: false, hangup: false }]);
}

/// Acts on what a turn has brought, and has streams send what waits on them. `true`: another turn is due.
fn act(state: &State, streams: &Arc<Multiplexed>, turn: Turn) -> bool {
    state.counters.metrics.http2_streams.fetch_add(turn.begun.len() as u64, Ordering::Relaxed);
    if let Some(reason) = turn.failed {
        log_end(state, streams, &reason);
    }
    for begun in turn.begun {
        add(state, streams, begun);
    }
    let (sent, has_more) = streams.send_streams();
    if has_more {
        poll::note_long_turn(state);
    }
    let ready = [turn.ready, sent].concat();
    if !ready.is_empty() {
        poll::deliver(state, &ready);
        streams.wake_waiters();
    }
    turn.has_more || has_more
}

/// Adds a stream, which is ready at once.
fn add(state: &State, streams: &Arc<Multiplexed>, begun: Begun) {
    let (stream, buffer, parser, reject) = match begun {
        Begun::Request(request) => {
            // The stream carries no other request, and no other protocol.
            let mut head = request.head;
            (head.keep_alive, head.asks_upgrade) = (false, false);
            let buffer = ReadBuffer::with_head(head, request.text);
            (request.stream, buffer, RequestParser::of_stream(request.has_content), None)
        }
        Begun::Refused { stream, reject, line } => {
            (stream, ReadBuffer::with_head(Head::default(), line), RequestParser::of_stream(false), Some(reject))
        }
    };
    let socket = Socket::Stream(Box::new(StreamSocket::new(Arc::clone(streams), stream)));
    let socket = Arc::new(SharedSocket::new(socket, Arc::clone(&state.running.spool)));
    let served = streams.served().saturating_sub(1);
    let request = Request::of_stream(&streams.origin, served, buffer, parser);
    let mut shared = state.lock();
    let (index, generation) = shared.connections.occupy_stream(Arc::clone(&socket), streams.slot().0);
    // Before it is ready: what comes from now on is told to its slot.
    let weak: Weak<SharedSocket> = Arc::downgrade(&socket);
    streams.set_slot(stream, (index, generation), weak);
    let mut connection = Connection::of_stream(index, generation, socket, request);
    // Content may have come with the same bytes, or its client may have left it.
    connection.note(streams.may_receive(stream), streams.is_gone(stream), false);
    if let Some(reject) = reject {
        connection.transition(PhaseEvent::Refuse(reject));
    }
    shared.poll_times.note_accepted(&mut connection);
    shared.connections.of(index).connection = Some(Box::new(connection));
    shared.connections.enqueue(index);
    let sleeps = shared.threads.is_polling() || state.running.external_loop;
    drop(shared);
    if sleeps {
        state.poller.nudge();
    }
}

/// Blocks this thread until what is awaited of a stream may have come, a signal has arrived, or the time is over. Reads the connection
/// if no other waiting thread does: in mode `single` there is no other.
#[cold]
pub(crate) fn wait(
    state: &Arc<State>,
    socket: &SharedSocket,
    stream: &StreamSocket,
    interest: Interest,
    milliseconds: u64,
) {
    if wait_in_turns(state, socket, stream, interest, milliseconds) {
        // What has come is not kept waiting until the other streams have sent everything.
        let slot = stream.connection().slot();
        poll::deliver(state, &[Ready { slot, readable: true, writable: false, hangup: false }]);
    }
}

/// `true`: another turn of the connection is due.
fn wait_in_turns(
    state: &Arc<State>,
    socket: &SharedSocket,
    stream: &StreamSocket,
    interest: Interest,
    milliseconds: u64,
) -> bool {
    let (streams, number) = (stream.connection(), stream.number());
    let until = clock::now().saturating_add(milliseconds);
    let turns = streams.turns_of(number);
    let mut has_more = false;
    loop {
        let seen = streams.changes();
        let is_blocked = !socket.has_room() || !(streams.may_send(number) || streams.turns_of(number) != turns);
        let has_come = (interest.data && streams.may_receive(number)) || (interest.room && !is_blocked);
        let left = until.saturating_sub(clock::now());
        if has_come || left == 0 || streams.is_gone(number) || socket.is_disconnected() {
            return has_more;
        }
        if has_more {
            has_more = act(state, streams, streams.turn(true));
        } else if let Waiting::Reads { reads, writes, wakeup } = streams.wait(seen, left) {
            let is_interrupted = streams.wait_for_socket(&wakeup, reads, writes, left);
            has_more = act(state, streams, streams.turn(true));
            if is_interrupted {
                return has_more;
            }
        }
    }
}
