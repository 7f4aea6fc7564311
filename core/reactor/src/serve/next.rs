//! The methods of the reactor that return the next complete request, and poll for events if none is ready.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use crate::event_loop::leader_followers::{StandbyStep, ThreadNumber};
use crate::event_loop::poll;
use crate::event_loop::reactor::{Reactor, Shared};
use crate::exchange::Exchange;
use crate::serve::advance::{self, Advanced};

/// Connections advanced before the poller is asked again, so that busy ones cannot starve the others.
const TURNS: u32 = 256;

/// Outcome of [`Reactor::wait_next`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "moved on at once; a box would be an allocation for each request")]
pub enum Next {
    /// A complete request.
    Request(Exchange),
    /// A signal or [`Reactor::wake`] wants attention; wait again afterwards.
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

impl Reactor {
    /// The next request that can be had without waiting. Static files are sent from here only if the caller `may_wait` for
    /// the file system; otherwise [`Reactor::wait_next`] sends them. There may be a request even if this returns `None`: a
    /// turn is short, so that signals and an outside event loop are not kept waiting.
    #[inline]
    pub fn try_next(self: &Arc<Self>, may_wait: bool) -> Option<Exchange> {
        if !may_wait && self.is_overloaded() {
            // Those that are refused before the next shall not keep the interpreter from others.
            return None;
        }
        let me = this_thread();
        loop {
            let mut shared = self.lock();
            if !shared.threads.may_take(me) {
                return None;
            }
            if shared.connections.turns() >= TURNS && shared.connections.ready() > 0 {
                if self.options.external_loop {
                    return None;
                }
                self.set_timer_now(&mut shared);
                drop(shared);
                if !matches!(poll::poll(self, false), Ok(false)) {
                    self.put_off_interrupt();
                    return None;
                }
                shared = self.lock();
            }
            let connection = shared.connections.take_ready()?;
            let arrived = self.queue_time.arrived();
            self.waiters.wake(shared.threads.dispatch(me));
            if self.waiters.is_stalling() && !shared.threads.is_eager() {
                self.waiters.set_stalling(false);
            }
            drop(shared);
            match advance::advance(self, connection, arrived, may_wait) {
                Advanced::Request(exchange) => return Some(exchange),
                Advanced::Nothing => {}
                Advanced::NeedsBlockingIo => return None,
            }
        }
    }

    /// The next request, for an external event loop, which has its turn again after `None`. See [`Reactor::try_next`].
    #[inline]
    pub fn next_in_turn(self: &Arc<Self>, poll: impl FnOnce() -> Option<Exchange>) -> Option<Exchange> {
        let next = self.try_next(false).or_else(poll);
        self.queue_time.set_in_turn(next.is_some());
        next
    }

    /// The next request, for an outside event loop: asks the poller without waiting.
    pub fn poll_next(self: &Arc<Self>) -> Option<Exchange> {
        if self.is_foreign() {
            return None;
        }
        if let Some(exchange) = self.try_next(true) {
            return Some(exchange);
        }
        let is_long = self.lock().connections.turns() >= TURNS;
        let _ = poll::poll(self, false);
        if is_long {
            // The outside loop has other work; it is woken again.
            self.wake();
            return None;
        }
        let next = self.try_next(true);
        if next.is_none() {
            let mut shared = self.lock();
            self.set_timer_now(&mut shared);
            let has_more = shared.connections.turns() >= TURNS && shared.connections.ready() > 0;
            drop(shared);
            if has_more {
                // A few steps of handshakes are as long.
                self.wake();
            }
        }
        next
    }

    /// This thread works on its request for long, and does not take another one: others lead.
    #[cold]
    pub fn leave(&self) {
        if self.is_foreign() {
            return;
        }
        let mut shared = self.lock();
        self.waiters.wake(shared.threads.hand_on(this_thread()));
    }

    /// Waits for the next request.
    pub fn wait_next(self: &Arc<Self>) -> Next {
        let me = this_thread();
        loop {
            if self.take_interrupt() {
                return Next::Interrupted;
            }
            if let Some(exchange) = self.try_next(true) {
                return Next::Request(exchange);
            }
            let mut shared = self.lock();
            if shared.is_finished() {
                drop(shared);
                self.waiters.wake_all();
                self.close_log();
                return Next::Finished;
            }
            if shared.connections.ready() > 0 && shared.threads.may_take(me) {
                continue;
            }
            if shared.threads.may_poll(me) {
                shared.threads.start_polling(me);
                self.set_timer_now(&mut shared);
                drop(shared);
                match poll::poll(self, true) {
                    Ok(false) => {}
                    Ok(true) | Err(_) => return Next::Interrupted,
                }
            } else if shared.threads.park() {
                self.stand_by(shared, me);
            } else {
                let mut shared = self.waiters.follow(shared);
                shared.threads.unpark();
            }
        }
    }

    fn stand_by(&self, mut shared: MutexGuard<'_, Shared>, me: ThreadNumber) {
        loop {
            let is_ticking = shared.threads.is_ticking();
            shared = self.waiters.stand_by(shared, is_ticking);
            let finished = shared.is_finished();
            if shared.threads.standby_step(me, finished) == StandbyStep::Work {
                self.waiters.set_stalling(shared.threads.is_eager());
                return;
            }
        }
    }
}
