//! What a thread does next: it takes a ready connection, polls, or waits for work. `leader_followers.rs` decides which.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use crate::connection::Connection;
use crate::scheduler::leader_followers::{StandbyStep, ThreadNumber};
use crate::scheduler::poll;
use crate::scheduler::state::{Shared, State};

/// Connections advanced before the poller is asked again, so that busy ones cannot starve the others.
const TURNS: u32 = 256;

/// Outcome of [`wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// A connection may be ready.
    Woken,
    /// A signal or [`crate::Reactor::wake`] wants attention.
    Interrupted,
    /// The reactor was stopped, and every connection has ended.
    Finished,
    /// This thread is to end.
    Superfluous,
}

/// The number of this thread.
pub(crate) fn this_thread() -> ThreadNumber {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<ThreadNumber> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(COUNT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// A connection whose turn it is.
pub(crate) struct Taken {
    pub(crate) connection: Box<Connection>,
    /// The earliest time at which its events can have arrived.
    pub(crate) arrived: u64,
    /// If it comes to a request, [`dispatch`] is to be called before that is run.
    pub(crate) is_undispatched: bool,
}

/// Takes the next ready connection, if there is one and this thread may.
#[inline]
pub(crate) fn take(state: &Arc<State>) -> Option<Taken> {
    let me = this_thread();
    let mut shared = state.lock();
    if !shared.threads.may_take(me) {
        return None;
    }
    let is_long = shared.connections.turns() >= TURNS && shared.connections.ready() > 0;
    if is_long || shared.connections.may_pass_others() {
        if state.running.external_loop {
            return None;
        }
        state.set_timer_now(&mut shared);
        drop(shared);
        if !matches!(poll::poll(state, false), Ok(false)) {
            state.put_off_interrupt();
            return None;
        }
        shared = state.lock();
    }
    let connection = shared.connections.take_ready()?;
    let mut arrived = state.queue_time.arrived();
    if connection.is_stream()
        && let Some(stream) = connection.socket.transport.stream()
    {
        // It may have come since the last poll: another thread has read its connection.
        arrived = arrived.min(stream.begun());
    }
    // A large body comes in many turns, and to wake another thread for each costs more than the turn.
    let is_undispatched = connection.request.parser.is_in_body() || connection.streams.is_some();
    if is_undispatched {
        shared.threads.note_turn(me);
    } else {
        state.waiters.wake(shared.threads.dispatch(me));
        if state.waiters.is_stalling() && !shared.threads.is_eager() {
            state.waiters.set_stalling(false);
        }
    }
    Some(Taken { connection, arrived, is_undispatched })
}

/// This thread is about to run a request whose last part has come in this turn.
#[cold]
pub(crate) fn dispatch(state: &State) {
    let mut shared = state.lock();
    state.waiters.wake(shared.threads.dispatch_late(this_thread()));
}

/// Waits until a connection may be ready: for the poller, or for a thread that does.
pub(crate) fn wait(state: &Arc<State>) -> Waited {
    let me = this_thread();
    let mut shared = state.lock();
    if shared.is_finished() {
        drop(shared);
        state.waiters.wake_all();
        return Waited::Finished;
    }
    let is_ready = shared.connections.ready() > 0;
    if let Some(wake) = shared.threads.leave_for_good(me, is_ready) {
        state.waiters.wake(wake);
        return Waited::Superfluous;
    }
    if is_ready && shared.threads.may_take(me) {
        return Waited::Woken;
    }
    if shared.threads.may_poll(me) {
        shared.threads.start_polling(me);
        state.set_timer_now(&mut shared);
        drop(shared);
        return match poll::poll(state, true) {
            Ok(false) => Waited::Woken,
            Ok(true) | Err(_) => Waited::Interrupted,
        };
    }
    if shared.threads.park() {
        stand_by(state, shared, me);
    } else {
        let mut shared = state.waiters.follow(shared);
        shared.threads.unpark();
    }
    Waited::Woken
}

fn stand_by(state: &State, mut shared: MutexGuard<'_, Shared>, me: ThreadNumber) {
    loop {
        let is_ticking = shared.threads.is_ticking();
        shared = state.waiters.stand_by(shared, is_ticking);
        let finished = shared.is_finished();
        if shared.threads.standby_step(me, finished) == StandbyStep::Work {
            state.waiters.set_stalling(shared.threads.is_eager());
            return;
        }
    }
}

/// Asks the poller without waiting. `false`: that was due because of long turns, and an outside event loop has other work first.
pub(crate) fn poll_in_turn(state: &Arc<State>) -> bool {
    let is_long = state.lock().connections.turns() >= TURNS;
    let _ = poll::poll(state, false);
    !is_long
}

/// Has the poller of an outside event loop report when something is due. `true`: connections are ready for another turn.
pub(crate) fn end_turn(state: &State) -> bool {
    let mut shared = state.lock();
    state.set_timer_now(&mut shared);
    let connections = &shared.connections;
    // What has stopped `take`.
    connections.ready() > 0 && (connections.turns() >= TURNS || connections.may_pass_others())
}

/// This thread works on its request for long, and does not take another one: others lead.
#[cold]
pub(crate) fn leave(state: &State) {
    if state.is_foreign() {
        return;
    }
    hand_on(state, this_thread());
}

/// This thread serves no more. A connection that it has put back may be ready, which no other thread has seen.
#[cold]
pub(crate) fn end(state: &State) {
    if state.is_foreign() {
        return;
    }
    let mut shared = state.lock();
    if shared.connections.ready() == 0 {
        return;
    }
    match shared.threads.is_polling() {
        true => state.poller.nudge(),
        false => state.waiters.wake(shared.threads.hand_on(this_thread())),
    }
}

/// The same as [`leave`] for any thread.
#[cold]
pub(crate) fn hand_on(state: &State, thread: ThreadNumber) {
    let mut shared = state.lock();
    state.waiters.wake(shared.threads.hand_on(thread));
}
