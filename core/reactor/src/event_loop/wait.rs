//! Who waits for something to happen, and what is done about it.
//!
//! One thread at a time waits for the poller ([`crate::event_loop::leader_followers`] says which); the others work, or wait for their turn.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::connection::send_queue::Flushed;
use crate::connection::shared_socket::Link;
use crate::connection::state::Driven;
use crate::event_loop::expire::DiskChores;
use crate::event_loop::leader_followers::{TICK, Thread, Wake, Watch};
use crate::exchange::Exchange;
use crate::reactor::{Core, Reactor};
use crate::sys::clock;
use crate::sys::clock::NEVER;
use crate::sys::poller::{BATCH, Event, Source};

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

/// What one look at the poller asks for, beyond connections that are ready.
#[derive(Default)]
struct Errands {
    woken: bool,
    alarm: bool,
    listeners: Vec<u32>,
    /// The main process has said something.
    channel: bool,
    /// A predecessor has given us connections.
    bequest: bool,
    /// Connections whose request is being answered, and whose socket takes more.
    links: Vec<Arc<Link>>,
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
    #[inline]
    pub(crate) fn is_stalling(&self) -> bool {
        self.stalling.load(Ordering::Relaxed)
    }

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
                if !matches!(self.poll(false), Ok(false)) {
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
            match self.drive(connection, arrived, may_wait) {
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
        let _ = self.poll(false);
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
                self.close_log();
                return Next::Finished;
            }
            if !core.ready.is_empty() && core.crew.may_work(me) {
                continue;
            }
            if core.crew.may_lead(me) {
                core.crew.start_polling(me);
                drop(core);
                match self.poll(true) {
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

    /// Asks the poller for events and acts on them. `Ok(true)`: somebody has called [`Reactor::wake`].
    pub(crate) fn poll(self: &Arc<Self>, block: bool) -> Result<bool, Errno> {
        if block
            && let Some(log) = &self.options.access_log
            && log.is_watched()
        {
            self.flush_log();
        }
        self.look.fetch_add(1, Ordering::Relaxed);
        let mut errands = Errands::default();
        let mut core: Option<MutexGuard<'_, Core>> = None;
        let begun = if self.is_timing() { clock::precise_us() } else { 0 };
        let pending = Cell::new(false);
        let lock = || {
            let mut core = self.lock();
            // A thread that blocks has handled everything; what is ready by now was put back in the meantime.
            pending.set(!block && !core.ready.is_empty());
            if begun != 0 {
                // Where somebody else's loop waits, it tells when that was so.
                core.looks.note(begun);
            }
            core
        };
        let is_late = self.queue_time.is_late(self.options.watched_from_outside);
        let mut note = |event| core.get_or_insert_with(lock).note(event, &mut errands);
        // If events may have waited, those that are there already are told from those that come.
        let (mut waits, mut were_there) = (block && !is_late, None);
        let waited = loop {
            let waited = self.poller.wait(waits, &mut note);
            if is_late && were_there.is_none() {
                were_there = waited.ok().map(|events| events > 0);
                waits = block && were_there == Some(false);
                if waits {
                    continue;
                }
            }
            break waited;
        };
        let mut core = core.unwrap_or_else(lock);
        let is_single = core.ready.len() < 2 && errands.listeners.is_empty();
        self.queue_time.polled(were_there, is_single, pending.get(), core.resume_accepting == NEVER);
        if waited == Ok(BATCH) {
            self.queue_time.leave();
        }
        let accepts = !errands.listeners.is_empty();
        if block && !accepts {
            core.crew.stop_polling();
        }
        core.turns = 0;
        if errands.woken {
            // Before we look for what the wake-up was about: what is said later wakes us again.
            errands.woken = self.poller.calm();
        }
        let unhandled_stop = core.stopped < self.stopping.load(Ordering::Acquire);
        let chores = match errands.alarm || unhandled_stop {
            true => self.run_alarm(&mut core),
            false => DiskChores::default(),
        };
        errands.links.append(&mut core.paused);
        drop(core);
        // First of all what the main process has said: perhaps that others are to accept.
        if errands.channel {
            self.hear();
        }
        if errands.bequest
            && let Some(bequest) = &self.options.bequest
        {
            self.inherit(bequest);
        }
        if accepts {
            // Still the only one that polls: another thread would take those that wait in the backlog for new ones.
            for number in errands.listeners {
                self.accept(number);
            }
            if block {
                self.lock().crew.stop_polling();
            }
        }
        if chores.flush_log {
            self.flush_log();
        }
        if chores.tidy_files {
            self.tidy_files();
        }
        for link in errands.links {
            if link.flush() == Flushed::Paused {
                self.go_on_sending(&mut self.lock(), &link);
            }
        }
        waited.map(|_| errands.woken)
    }
}

impl Core {
    /// Notes an event.
    #[inline]
    fn note(&mut self, event: Event, errands: &mut Errands) {
        match event.source {
            Source::Connection { index, generation } => {
                let Some(slot) = self.slots.get(index, generation) else { return };
                slot.signs.readable |= event.readable;
                slot.signs.writable |= event.writable;
                slot.signs.hangup |= event.hangup;
                match (&mut slot.connection, &slot.link) {
                    (Some(connection), _) => {
                        if event.readable {
                            self.looks.tell(connection);
                        }
                        let due = event.readable || event.hangup || connection.has_outlet;
                        if due && !slot.queued {
                            slot.queued = true;
                            self.ready.push_back(index);
                        }
                    }
                    (None, Some(link)) if event.writable && link.is_waiting() => errands.links.push(Arc::clone(link)),
                    _ => {}
                }
            }
            Source::Wake => errands.woken = true,
            Source::Alarm => errands.alarm = true,
            Source::Listener(number) => errands.listeners.push(number),
            Source::Channel => errands.channel = true,
            Source::Bequest => errands.bequest = true,
        }
    }
}
