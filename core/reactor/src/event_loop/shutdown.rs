//! How a reactor ends: what is in hand is answered, and nobody who has asked is left without an answer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};

use crate::connection::{Connection, Phase};
use crate::control::channel::Wish;
use crate::event_loop::reactor::{Core, Reactor};
use crate::log::error::Level;
use crate::sys::clock;

pub(crate) const RUNNING: u8 = 0;
const GRACEFUL: u8 = 1;
const QUICK: u8 = 2;

impl Reactor {
    /// Stops accepting, and ends when every request in hand is answered. If `graceful`, what clients have begun to send is
    /// heard out too, and those who are silent for a moment still have the time of [`crate::Timeouts::drain`] to ask.
    ///
    /// `last`: nobody else listens on the same sockets, so all who wait in their queues are let in.
    pub fn stop(self: &Arc<Self>, graceful: bool, last: bool) {
        if self.is_foreign() {
            return;
        }
        if last {
            self.drain();
        }
        let before = self.stopping.fetch_max(if graceful { GRACEFUL } else { QUICK }, Ordering::AcqRel);
        if before == RUNNING
            && let Some(shares) = &self.options.shares
        {
            // Under the lock, under which others publish, if they do not see that we stop. Only now: somebody else may have
            // our place later.
            let _core = self.lock();
            shares.withdraw();
        }
        // At once, and not when a poller comes by: all threads may be busy, and nobody shall connect to a server that
        // does not answer any more.
        self.stop_accepting(last);
        if self.options.plain && (before == RUNNING || !graceful) {
            self.stop_plain(graceful);
        }
        self.wake();
    }

    /// Stops as one whose successor listens on the same sockets, and gets the connections that are idle.
    #[cold]
    pub(crate) fn hand_over(self: &Arc<Self>) {
        self.hands_over.store(self.options.bequest.is_some(), Ordering::Release);
        self.stop(true, false);
    }

    /// Does what the main process wants.
    #[cold]
    pub fn hear(self: &Arc<Self>) {
        let Some(heard) = self.options.channel.as_ref().map(|channel| channel.hear()) else { return };
        if heard.farewell {
            self.bid_farewell();
        }
        match heard.wish {
            Wish::Nothing => {}
            Wish::Drain => self.drain(),
            Wish::Retire => self.stop(true, false),
            Wish::HandOver => self.hand_over(),
            Wish::End => self.stop(true, true),
        }
    }

    /// Whether the reactor was stopped and every connection has ended.
    pub fn is_finished(&self) -> bool {
        self.lock().is_finished()
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire) != RUNNING
    }

    /// Whether the time to stop gracefully is over.
    pub(crate) fn is_late(&self) -> bool {
        self.lock().give_up <= clock::now()
    }

    /// Whether the answer that begins now, while we stop, is the last one on its connection. If another request has come
    /// behind this one it is answered as well.
    #[cold]
    pub(crate) fn is_last_of(&self, connection: &Connection) -> bool {
        let hands_over = self.hands_over.load(Ordering::Acquire);
        self.stopping.load(Ordering::Acquire) == QUICK || self.is_late() || !(hands_over || connection.is_followed())
    }

    #[cold]
    pub(crate) fn begin_to_stop(&self, core: &mut Core, stopping: u8) {
        core.stopped = stopping;
        let patience = if stopping == GRACEFUL { self.options.timeouts.graceful } else { 0 };
        core.give_up = core.give_up.min(clock::now() + patience);
        // What has arrived by now is still read.
        let indices: Vec<u32> = core.slots.occupied().map(|(index, _)| index).collect();
        indices.into_iter().for_each(|index| core.look_at(index));
    }

    /// Lets handlers end when the time to stop is over, even if all threads wait for clients: those will say nothing more.
    pub(crate) fn stop_plain(self: &Arc<Self>, graceful: bool) {
        let patience = if graceful { self.options.timeouts.graceful } else { 0 };
        if patience == 0 {
            return self.cut_off();
        }
        let reactor = Arc::downgrade(self);
        let cut_off_then = move || {
            thread::sleep(Duration::from_millis(patience));
            if let Some(reactor) = Weak::upgrade(&reactor) {
                reactor.cut_off();
            }
        };
        if thread::Builder::new().name("poorhttp-stop".to_owned()).spawn(cut_off_then).is_err() {
            let message = "connections are not shut down when graceful_timeout is over: no thread can be had for it";
            self.options.journal.write(Level::Error, message);
        }
    }

    /// Shuts down every connection. What was sent on it is still delivered.
    fn cut_off(&self) {
        let mut core = self.lock();
        let open = core.slots.occupied().filter_map(|(_, slot)| slot.link.as_ref());
        let shut = open.filter(|link| shutdown(&link.socket, Shutdown::Both).is_ok()).count();
        drop(core);
        if shut > 0 {
            let plural = if shut == 1 { "connection was" } else { "connections were" };
            let message = format!("the time to stop is over, and {shut} {plural} shut down");
            self.options.journal.write(Level::Info, &message);
        }
    }

    /// Nobody new should come to this server from now on, although it still accepts and serves: it will stop soon.
    pub fn drain(&self) {
        if !self.is_foreign() {
            self.unready.store(true, Ordering::Relaxed);
        }
    }

    /// Has all parked answers say their farewell and end.
    pub fn bid_farewell(&self) {
        if self.is_foreign() {
            return;
        }
        self.farewell.store(clock::precise_us(), Ordering::Release);
        let mut core = self.lock();
        // Those that somebody has may be about to be parked.
        let is_meant = |connection: &Connection| connection.phase == Phase::Parked;
        let indices: Vec<u32> = core
            .slots
            .occupied()
            .filter(|(_, slot)| slot.connection.as_ref().is_none_or(|connection| is_meant(connection)))
            .map(|(index, _)| index)
            .collect();
        indices.into_iter().for_each(|index| core.look_at(index));
        drop(core);
        self.wake();
    }
}

impl Core {
    pub(crate) fn is_finished(&self) -> bool {
        self.stopped != RUNNING && self.slots.live() == 0
    }
}
