//! The loop: returns the next complete request, and polls for events if none is ready.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use crate::event_loop::advance::{self, Advanced};
use crate::exchange::Exchange;
use crate::scheduler::leader_followers::{StandbyStep, ThreadNumber};
use crate::scheduler::poll;
use crate::scheduler::state::{Shared, State};

/// Connections advanced before the poller is asked again, so that busy ones cannot starve the others.
const TURNS: u32 = 256;

/// Outcome of [`crate::Reactor::wait_next`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved on at once; a box would be an allocation for each request")]
pub enum Next {
    /// A complete request.
    Request(Exchange),
    /// A signal or [`crate::Reactor::wake`] wants attention; wait again afterwards.
    Interrupted,
    /// The reactor was stopped, and every connection has ended.
    Finished,
}

fn this_thread() -> ThreadNumber {
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

/// The next request that can be had without waiting. Static files are sent from here only if the caller `may_wait` for
/// the file system; otherwise [`crate::Reactor::wait_next`] sends them. There may be a request even if this returns `None`: a
/// turn is short, so that signals and an outside event loop are not kept waiting.
#[inline]
pub(crate) fn try_next(state: &Arc<State>, may_wait: bool) -> Option<Exchange> {
    if !may_wait && state.is_overloaded() {
        // Those that are refused before the next shall not keep the interpreter from others.
        return None;
    }
    let me = this_thread();
    loop {
        let mut shared = state.lock();
        if !shared.threads.may_take(me) {
            return None;
        }
        if shared.connections.turns() >= TURNS && shared.connections.ready() > 0 {
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
        let arrived = state.queue_time.arrived();
        state.waiters.wake(shared.threads.dispatch(me));
        if state.waiters.is_stalling() && !shared.threads.is_eager() {
            state.waiters.set_stalling(false);
        }
        drop(shared);
        match advance::advance(state, connection, arrived, may_wait) {
            Advanced::Request(exchange) => return Some(exchange),
            Advanced::Nothing => {}
            Advanced::NeedsBlockingIo => return None,
        }
    }
}

/// The next request, for an external event loop, which has its turn again after `None`. See [`crate::Reactor::try_next`].
#[inline]
pub(crate) fn next_in_turn(state: &Arc<State>, poll: impl FnOnce() -> Option<Exchange>) -> Option<Exchange> {
    let next = try_next(state, false).or_else(poll);
    state.queue_time.set_in_turn(next.is_some());
    next
}

/// The next request, for an outside event loop: asks the poller without waiting.
pub(crate) fn poll_next(state: &Arc<State>) -> Option<Exchange> {
    if state.is_foreign() {
        return None;
    }
    if let Some(exchange) = try_next(state, true) {
        return Some(exchange);
    }
    let is_long = state.lock().connections.turns() >= TURNS;
    let _ = poll::poll(state, false);
    if is_long {
        // The outside loop has other work; it is woken again.
        state.wake();
        return None;
    }
    let next = try_next(state, true);
    if next.is_none() {
        let mut shared = state.lock();
        state.set_timer_now(&mut shared);
        let has_more = shared.connections.turns() >= TURNS && shared.connections.ready() > 0;
        drop(shared);
        if has_more {
            // A few steps of handshakes are as long.
            state.wake();
        }
    }
    next
}

/// This thread works on its request for long, and does not take another one: others lead.
#[cold]
pub(crate) fn leave(state: &State) {
    if state.is_foreign() {
        return;
    }
    let mut shared = state.lock();
    state.waiters.wake(shared.threads.hand_on(this_thread()));
}

/// Waits for the next request.
pub(crate) fn wait_next(state: &Arc<State>) -> Next {
    let me = this_thread();
    loop {
        if state.take_interrupt() {
            return Next::Interrupted;
        }
        if let Some(exchange) = try_next(state, true) {
            return Next::Request(exchange);
        }
        let mut shared = state.lock();
        if shared.is_finished() {
            drop(shared);
            state.waiters.wake_all();
            state.close_log();
            return Next::Finished;
        }
        if shared.connections.ready() > 0 && shared.threads.may_take(me) {
            continue;
        }
        if shared.threads.may_poll(me) {
            shared.threads.start_polling(me);
            state.set_timer_now(&mut shared);
            drop(shared);
            match poll::poll(state, true) {
                Ok(false) => {}
                Ok(true) | Err(_) => return Next::Interrupted,
            }
        } else if shared.threads.park() {
            stand_by(state, shared, me);
        } else {
            let mut shared = state.waiters.follow(shared);
            shared.threads.unpark();
        }
    }
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
