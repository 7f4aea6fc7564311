//! Decides what follows when a connection has been served: the ready queue, waiting for its next event, or its end.

use std::io;

use crate::connection::Connection;
use crate::connection::body::spool::{Pending, SpoolOwner, Written};
use crate::connection::body::temp_file::TempDir;
use crate::log::error::Level;
use crate::scheduler::connections::Again;
use crate::scheduler::state::State;
use crate::sys::clock::{self, NEVER};
use crate::sys::{AsFd, net};
use crate::telemetry::{logging, timing};

/// Puts a connection back until something happens or its deadline passes; [`NEVER`] leaves the deadline as it is.
#[inline]
pub(crate) fn put_back(state: &State, mut connection: Box<Connection>, deadline: u64, mut again: Again) {
    if connection.take_paused() {
        again = Again::InTurn;
    }
    connection.end_notice();
    let measured = state.takes_times().then(|| {
        let now = timing::time_of_end(&state.telemetry, &connection);
        // Bytes that arrived while it was busy could not be read before.
        connection.request.since = now;
        (now, timing::finished(&state.telemetry, &mut connection, now, false))
    });
    let mut shared = state.lock();
    if let Some((now, finished)) = measured {
        timing::count(&state.telemetry, shared.connections.ready(), &mut connection, now, false, finished);
    }
    let (index, generation) = connection.slot();
    if again != Again::AtOnce
        && let Some(buffers) = connection.request.buffers.take_if(|buffers| buffers.is_idle())
    {
        shared.connections.keep_spare(buffers);
    }
    if !connection.is_registered() && again == Again::No && !watch(state, &mut connection) {
        drop(shared);
        return close(state, connection);
    }
    let is_earlier = deadline != NEVER && shared.set_deadline(index, generation, deadline);
    let is_ready = shared.connections.put_back(connection, again);
    if is_earlier {
        state.set_timer(&mut shared);
    }
    if is_ready && state.running.external_loop {
        state.wake();
    }
}

/// Registers a connection with the poller. `false`: it failed.
#[cold]
pub(crate) fn watch(state: &State, connection: &mut Connection) -> bool {
    match connection.register(&state.poller) {
        Ok(()) => true,
        Err(error) => {
            state.log(Level::Error, &format!("a connection cannot be watched: {error}"));
            false
        }
    }
}

/// Removes the connection from the poller and frees its buffers, because the application has got the socket.
#[cold]
pub(crate) fn let_go(state: &State, connection: &mut Connection) {
    connection.unregister(&state.poller);
    if let Some(mut buffers) = connection.request.buffers.take() {
        buffers.clear();
        state.lock().connections.keep_spare(buffers);
    }
}

/// Closes a connection.
#[allow(clippy::boxed_local)]
pub(crate) fn close(state: &State, mut connection: Box<Connection>) {
    state.queue_time.end(clock::now());
    connection.end_notice();
    let measured = state.takes_times().then(|| {
        timing::end_wait(&state.telemetry, &mut connection);
        let now = timing::time_of_end(&state.telemetry, &connection);
        (now, timing::finished(&state.telemetry, &mut connection, now, true))
    });
    if logging::log_rest(&state.telemetry, &mut connection) {
        state.flush_log_soon();
    }
    if connection.was_upgraded {
        // A thread of the application may wait for input.
        net::end(connection.socket.transport.as_fd());
    }
    if let Some(buffers) = &mut connection.request.buffers {
        // Its file may be large, so it goes without the lock.
        buffers.body = None;
    }
    let mut shared = state.lock();
    if let Some((now, finished)) = measured {
        timing::count(&state.telemetry, shared.connections.ready(), &mut connection, now, true, finished);
    }
    if let Some(mut buffers) = connection.request.buffers.take() {
        buffers.clear();
        shared.connections.keep_spare(buffers);
    }
    shared.connections.vacate(connection.slot().0);
    state.publish_connections(&shared);
    let finished = shared.is_finished();
    if shared.accepting.on_close() {
        state.set_timer(&mut shared);
    }
    drop(shared);
    if finished {
        state.wake();
    }
}

impl SpoolOwner for State {
    fn temp_dir(&self) -> &TempDir {
        &self.running.temp_dir
    }

    /// Sets the outcome of writing a part of a body and enqueues its connection, both under one lock, so that the connection
    /// is not advanced a second time for an outcome that it has seen.
    fn tell_written(&self, index: u32, generation: u32, pending: &Pending, outcome: io::Result<Written>) {
        let mut shared = self.lock();
        let Some(slot) = shared.connections.get(index, generation) else {
            drop(shared);
            // The client has disconnected. The file of its body is closed without the lock.
            return drop(outcome);
        };
        pending.set(outcome);
        slot.readiness.expired = true;
        shared.connections.enqueue(index);
        let sleeps = shared.threads.is_polling() || self.running.external_loop;
        drop(shared);
        if sleeps {
            self.poller.nudge();
        }
    }

    fn note_spare(&self) {
        self.tidy_soon();
    }
}
