//! Graceful and quick shutdown, drain, and the handoff of idle connections to a successor.
//!
//! Where the next request must be answered by a new version of the application, and none may be lost, idle connections are
//! not closed, because their clients may be sending at this very moment. The socket itself goes to the successor, with
//! everything unread that has arrived on it.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use crate::channel::Command;
use crate::connection::Connection;
use crate::connection::state::Phase;
use crate::log::error::Level;
use crate::scheduler::leader_followers::Wake;
use crate::scheduler::state::State;
use crate::scheduler::{accept, put_back, release};
use crate::shutdown::{Stage, log_cut_off};
use crate::sys::clock;
use crate::sys::fd_handoff::{FdHandoff, PassedConnection};
use crate::sys::socket::Transport;
use crate::sys::{AsFd, net};
use crate::websocket::limits;

/// Stops accepting, and ends when every request in flight is answered. If `graceful`, requests of which a part has arrived
/// are received and answered, too, and idle clients may send another one for the time of [`crate::Timeouts::drain`].
///
/// `last`: no other process listens on the same sockets, so all connections in their backlogs are accepted.
pub(crate) fn stop(state: &Arc<State>, graceful: bool, last: bool) {
    if state.is_foreign() {
        return;
    }
    if last {
        drain(state);
    }
    let before = state.shutdown.request(if graceful { Stage::Graceful } else { Stage::Quick });
    if before == Stage::Running
        && let Some(accept_balance) = &state.running.accept_balance
    {
        // Under the lock under which others publish if they do not see that we stop; only now, since another worker may
        // have our place later.
        let _shared = state.lock();
        accept_balance.withdraw();
    }
    // At once, not at the next poll: all threads may be busy, and no client shall connect to a server that does not
    // answer any more.
    accept::stop_accepting(state, last);
    if state.receiving.raw_tcp && (before == Stage::Running || !graceful) {
        stop_raw_tcp(state, graceful);
    }
    if before == Stage::Running || !graceful {
        stop_upgraded(state, graceful);
    }
    state.wake();
}

/// Cuts all connections of a reactor that was stopped, and ends although requests are in flight: the next call of each of
/// their applications fails.
#[cold]
pub(crate) fn give_up(state: &State) {
    if state.is_foreign() {
        return;
    }
    let mut shared = state.lock();
    shared.stopping.give_up();
    let open: Vec<_> = shared.connections.occupied().filter_map(|(_, slot)| slot.socket.clone()).collect();
    drop(shared);
    // Without the lock, as a thread that sends may hold a socket and wait for the lock.
    open.iter().for_each(|socket| socket.cut_off());
    state.waiters.wake_all();
    state.wake();
}

/// Stops, and passes idle connections to the successor, which listens on the same sockets.
#[cold]
fn detach(state: &Arc<State>) {
    state.shutdown.request_handoff(state.running.fd_handoff.is_some());
    stop(state, true, false);
}

/// Receives and executes the commands of the main process.
#[cold]
pub(crate) fn receive_commands(state: &Arc<State>) {
    let Some(received) = state.running.channel.as_ref().map(|channel| channel.receive()) else { return };
    // A person may have set the number of threads.
    state.waiters.wake(Wake::Watcher);
    if received.end_long_polls {
        end_long_polls(state);
    }
    if let Some(fd) = received.renewed
        && let Err(error) = state.listeners.replace_certificates(&fd)
    {
        state.log(Level::Error, &format!("new certificates are not used; the old ones stay: {error}"));
    }
    if let Some(drain) = received.drain {
        state.shutdown.set_ready(!drain);
    }
    match received.command {
        Command::None => {}
        Command::Retire => stop(state, true, false),
        Command::Promote => {
            state.shutdown.promote();
            stop(state, true, false);
        }
        Command::Detach => detach(state),
        Command::End => {
            if let Some(on_end) = state.running.on_main_process_end
                && !state.is_foreign()
            {
                on_end();
            }
            stop(state, true, true);
        }
    }
    if received.reopen_logs
        && let Some(reopen_logs) = &state.running.reopen_logs
    {
        reopen_logs.call();
    }
    if let Some(graceful) = received.stop {
        if let Some(note_stop) = &state.running.note_stop {
            note_stop.call();
        }
        stop(state, graceful, true);
    }
}

/// Reports the server as not ready from now on, while it still accepts and serves: it will stop soon.
pub(crate) fn drain(state: &State) {
    if !state.is_foreign() {
        state.shutdown.set_ready(false);
    }
}

/// Completes all long polls.
pub(crate) fn end_long_polls(state: &State) {
    if !state.is_foreign() {
        state.long_polls.end(clock::precise_us());
        continue_long_polls(state);
    }
}

/// Sends a chunk to all long polls that are not behind; the others get the last one as soon as they can. Returns how
/// many connections may be long polls.
pub(crate) fn push_to_long_polls(state: &State, chunk: &[u8]) -> usize {
    if state.is_foreign() {
        return 0;
    }
    state.long_polls.push(chunk);
    continue_long_polls(state)
}

fn continue_long_polls(state: &State) -> usize {
    // A connection that a thread has may be about to become a long poll.
    let marked = state
        .lock()
        .connections
        .mark_all_readable(|connection| connection.is_none_or(|connection| connection.phase() == Phase::LongPoll));
    state.wake();
    marked
}

/// Tells applications that have got connections that the server stops.
pub(crate) fn stop_upgraded(state: &State, graceful: bool) {
    let timeout = if graceful { state.timeouts.graceful } else { 0 };
    limits::stop(&state.upgrades, timeout, &state.telemetry.error_log);
}

/// Shuts down the connections of handlers when the time to stop is over, as all threads may be waiting for clients.
fn stop_raw_tcp(state: &Arc<State>, graceful: bool) {
    let timeout = if graceful { state.timeouts.graceful } else { 0 };
    if timeout == 0 {
        return cut_off(state);
    }
    let weak = Arc::downgrade(state);
    let cut_off_later = move || {
        thread::sleep(Duration::from_millis(timeout));
        if let Some(state) = Weak::upgrade(&weak) {
            cut_off(&state);
        }
    };
    if thread::Builder::new().name("poorhttp-stop".to_owned()).spawn(cut_off_later).is_err() {
        let message = "connections will not be shut down when graceful_timeout is over: no thread can be started";
        state.log(Level::Error, message);
    }
}

/// Shuts down every connection. What was sent on it is still delivered.
fn cut_off(state: &State) {
    let mut shared = state.lock();
    let open = shared.connections.occupied().filter_map(|(_, slot)| slot.socket.as_ref());
    let shut = open.filter(|socket| socket.transport.shut_down()).count();
    drop(shared);
    log_cut_off(&state.telemetry.error_log, shut);
}

/// Connections taken before others have their turn.
const TAKEN_AT_ONCE: usize = 64;

/// Passes a connection to the successor if nothing has been read of its next request. `None`: it was passed.
#[cold]
pub(crate) fn pass_on(
    state: &State,
    mut connection: Box<Connection>,
    fd_handoff: &FdHandoff,
) -> Option<Box<Connection>> {
    if connection.is_stream() {
        return Some(connection);
    }
    if connection.socket.transport.tls().is_some() {
        return end_session(state, connection);
    }
    let socket = connection.socket.transport.as_fd();
    if !connection.is_untouched() || !fd_handoff.send(connection.request.listener(), connection.request.served, socket)
    {
        return Some(connection);
    }
    // The socket stays open elsewhere, so the poller would go on reporting it.
    connection.unregister(&state.poller);
    put_back::close(state, connection);
    None
}

/// Closes a connection whose TLS session cannot be passed on, if it waits for another request: its client connects again, and is
/// answered by the successor. `Some`: a request is under way.
fn end_session(state: &State, connection: Box<Connection>) -> Option<Box<Connection>> {
    let request = &connection.request;
    let is_busy = connection.phase() != Phase::Serving
        || connection.is_behind()
        || request.served == 0
        || request.is_mid_message()
        || request.has_unread()
        || connection.socket.transport.has_input();
    if is_busy {
        return Some(connection);
    }
    release::close_gracefully(state, connection);
    None
}

/// Adds the connections that a predecessor has passed.
#[cold]
pub(crate) fn receive_passed(state: &Arc<State>, fd_handoff: &FdHandoff) {
    for _ in 0..TAKEN_AT_ONCE {
        if state.is_stopping() {
            // The connections are for the next successor.
            return;
        }
        let Some(PassedConnection { generation, listener: number, served, socket }) = fd_handoff.receive() else {
            return;
        };
        if generation >= fd_handoff.generation {
            // Another worker has learned before this one that there is a successor, which is to get the connection.
            let _ = fd_handoff.send(number, served, socket.as_fd());
            return detach(state);
        }
        let Some(listener) = state.listeners.get(number) else {
            // Another thread has just stopped listening.
            let _ = fd_handoff.send(number, served, socket.as_fd());
            return;
        };
        let peer = net::peer(&socket);
        accept::add_connection(state, number, &listener, socket, peer, served);
    }
}
