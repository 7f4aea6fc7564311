//! Waits for the next request: one thread polls, the others work or wait for their turn.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use crate::event_loop::leader_followers::{TICK, Thread, Wake, Watch};
use crate::event_loop::reactor::{Core, Reactor};
use crate::event_loop::{logging, poll};
use crate::exchange::Exchange;
use crate::serve::advance;
use crate::serve::advance::Driven;

/// Connections looked at before events are asked for again, so that busy ones cannot starve the rest.
const TURNS: u32 = 256;

/// What [`Reactor::wait_next`] came back with.
#[derive(Debug)]
pub enum Next {
    /// A complete request.
    Request(Exchange),
    /// A signal or [`Reactor::wake`] wants attention; wait again afterwards.
    Interrupted,
    /// The reactor was stopped, and every connection has ended.
    Finished,
}

fn this_thread() -> Thread {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<Thread> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(COUNT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

impl Reactor {
    /// The next request that can be had without waiting. Files are only sent from here if the embedding `may_wait` for the
    /// file system; if not, it is asked for them again by [`Reactor::wait_next`]. There may be one nonetheless if there is
    /// none: what is answered here is never so much that a signal or somebody else's event loop would not be heard.
    #[inline]
    pub fn try_next(self: &Arc<Self>, may_wait: bool) -> Option<Exchange> {
        let me = this_thread();
        loop {
            let mut core = self.lock();
            if !core.crew.may_work(me) {
                return None;
            }
            if core.turns >= TURNS && !core.ready.is_empty() {
                if self.options.watched_from_outside {
                    return None;
                }
                drop(core);
                if !matches!(poll::poll(self, false), Ok(false)) {
                    self.interrupted.store(true, Ordering::Release);
                    return None;
                }
                core = self.lock();
            }
            let connection = core.take_ready()?;
            let arrived = self.queue_time.arrived();
            match core.crew.dispatch(me) {
                Wake::Nobody => {}
                Wake::Follower => self.followers.notify_one(),
                Wake::Standby => self.standby.notify_one(),
            }
            if self.is_stalling() && !core.crew.is_eager() {
                self.stalling.store(false, Ordering::Relaxed);
            }
            drop(core);
            match advance::drive(self, connection, arrived, may_wait) {
                Driven::Request(exchange) => return Some(exchange),
                Driven::Nowhere => {}
                Driven::Later => return None,
            }
        }
    }

    /// The next request, for somebody else's event loop: looks at the poller, never waits.
    pub fn poll_next(self: &Arc<Self>) -> Option<Exchange> {
        if self.is_foreign() {
            return None;
        }
        if let Some(exchange) = self.try_next(true) {
            return Some(exchange);
        }
        let is_long = self.lock().turns >= TURNS;
        let _ = poll::poll(self, false);
        if is_long {
            // The loop has others to look after. It comes again.
            self.wake();
            return None;
        }
        self.try_next(true)
    }

    /// Waits for the next request.
    pub fn wait_next(self: &Arc<Self>) -> Next {
        let me = this_thread();
        loop {
            if self.interrupted.load(Ordering::Relaxed) && self.interrupted.swap(false, Ordering::Acquire) {
                return Next::Interrupted;
            }
            if let Some(exchange) = self.try_next(true) {
                return Next::Request(exchange);
            }
            let mut core = self.lock();
            if core.is_finished() {
                drop(core);
                self.followers.notify_all();
                self.standby.notify_all();
                logging::close_log(self);
                return Next::Finished;
            }
            if !core.ready.is_empty() && core.crew.may_work(me) {
                continue;
            }
            if core.crew.may_lead(me) {
                core.crew.start_polling(me);
                drop(core);
                match poll::poll(self, true) {
                    Ok(false) => {}
                    Ok(true) | Err(_) => return Next::Interrupted,
                }
            } else if core.crew.park() {
                self.stand_by(core, me);
            } else {
                let mut core = self.followers.wait(core).unwrap_or_else(PoisonError::into_inner);
                core.crew.unpark();
            }
        }
    }

    fn stand_by(&self, mut core: MutexGuard<'_, Core>, me: Thread) {
        loop {
            core = match core.crew.watch_or_sleep() {
                true => self.standby.wait_timeout(core, TICK).unwrap_or_else(PoisonError::into_inner).0,
                false => self.standby.wait(core).unwrap_or_else(PoisonError::into_inner),
            };
            let finished = core.is_finished();
            if core.crew.watch(me, finished) == Watch::Work {
                self.stalling.store(core.crew.is_eager(), Ordering::Relaxed);
                return;
            }
        }
    }
}
