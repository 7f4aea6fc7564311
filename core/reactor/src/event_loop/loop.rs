//! Returns the next complete request to a thread, and polls for events if no connection is ready.

use std::hint::black_box;
use std::sync::Arc;

use crate::event_loop::advance::{self, Advanced};
use crate::exchange::Exchange;
use crate::scheduler::state::State;
use crate::scheduler::threads::{self, Taken, Waited};

/// Outcome of [`crate::Reactor::wait_next`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved on at once; a box would be an allocation for each request")]
pub enum Next {
    /// A complete request.
    Request(Exchange),
    /// A signal or [`crate::Reactor::wake`] wants attention; wait again afterwards.
    Interrupted,
    /// The reactor was stopped, and every connection has ended; or this thread is to end.
    Finished,
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
    loop {
        // Or else the addresses of all that a turn may need are computed before the loop: 1 % of the instructions of a request.
        let state = black_box(state);
        let Taken { connection, arrived, is_undispatched } = threads::take(state)?;
        match advance::advance(state, connection, arrived, may_wait) {
            Advanced::Request(exchange) => {
                if is_undispatched {
                    threads::dispatch(state);
                }
                return Some(exchange);
            }
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
    if !threads::poll_in_turn(state) {
        // The outside loop has other work; it is woken again.
        state.wake();
        return None;
    }
    let next = try_next(state, true);
    if next.is_none() && threads::end_turn(state) {
        // A few steps of handshakes are as long.
        state.wake();
    }
    next
}

/// Waits for the next request. Whoever waits has most likely found none without waiting.
pub(crate) fn wait_next(state: &Arc<State>) -> Next {
    loop {
        if state.take_interrupt() {
            return Next::Interrupted;
        }
        match threads::wait(state) {
            Waited::Woken => {}
            Waited::Interrupted => return Next::Interrupted,
            Waited::Superfluous => return Next::Finished,
            Waited::Finished => {
                state.close_log();
                return Next::Finished;
            }
        }
        if let Some(exchange) = try_next(state, true) {
            return Next::Request(exchange);
        }
    }
}
