//! The alarm of the poller: what is due, and when to look again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use crate::connection::Connection;
use crate::connection::shared_socket::Link;
use crate::event_loop::reactor::{Core, Reactor};
use crate::event_loop::shutdown::RUNNING;
use crate::event_loop::timers::{Deadline, Deadlines};
use crate::sys::clock::{self, NEVER};

/// Milliseconds between looks at what is left when the time to stop is over.
const AFTERWARDS: u64 = 100;

/// Milliseconds after which it is asked again for something that another thread is busy with.
const BUSY: u64 = 100;

/// Milliseconds between looks for files that need not be open any more.
const TIDIED: u64 = 10_000;

/// What is due and may wait for a disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskChores {
    pub(crate) flush_log: bool,
    pub(crate) tidy_files: bool,
}

impl Reactor {
    /// Does what is due. Returns what is left to be done without the lock, because it may wait for a disk.
    #[cold]
    pub(crate) fn run_alarm(&self, core: &mut Core) -> DiskChores {
        // The coarse clock may still be before the moment for which the alarm was set.
        let now = clock::precise_us() / 1_000;
        let stopping = self.stopping.load(Ordering::Acquire);
        if core.stopped < stopping {
            self.begin_to_stop(core, stopping);
        }
        let chores = DiskChores { flush_log: core.flush_log <= now, tidy_files: core.tidy_files <= now };
        if chores.flush_log {
            core.flush_log = NEVER;
        }
        if chores.tidy_files {
            core.tidy_files = NEVER;
        }
        if core.resume_accepting <= now {
            core.resume_accepting = NEVER;
            if core.stopped == RUNNING {
                let _ = self.listeners.watch(&self.poller);
            }
        }
        while let Some(entry) = core.deadlines.pop(now) {
            let (_, index, generation) = entry;
            let Some(slot) = core.slots.get(index, generation) else { continue };
            if !core.deadlines.has_passed(&mut slot.deadline, now, entry) {
                continue;
            }
            slot.signs.expired = true;
            match (&slot.connection, &slot.link) {
                (Some(_), _) => core.enqueue(index),
                (None, Some(link)) => {
                    slot.signs.expired = false;
                    self.check_outlet(&mut core.deadlines, &mut slot.deadline, link, index, generation);
                    core.paused.push(Arc::clone(link));
                }
                (None, None) => {}
            }
        }
        if core.give_up <= now {
            let indices: Vec<u32> =
                core.slots.occupied().map(|(index, slot)| (index, slot.signs.expired = true).0).collect();
            indices.into_iter().for_each(|index| core.enqueue(index));
        }
        core.alarm = NEVER;
        self.set_alarm(core);
        chores
    }

    /// Sets the alarm to the next thing that is due.
    #[inline]
    pub(crate) fn set_alarm(&self, core: &mut Core) {
        let due = [core.flush_log, core.tidy_files, core.resume_accepting]
            .into_iter()
            .fold(core.deadlines.next(), u64::min)
            .min(match core.slots.live() {
                0 => NEVER,
                _ if core.give_up == NEVER => NEVER,
                // When that is over, what is still in hand is looked after now and then.
                _ => match clock::now() {
                    now if core.give_up <= now => now + AFTERWARDS,
                    _ => core.give_up,
                },
            });
        if due < core.alarm {
            core.alarm = due;
            self.poller.set_alarm(due.saturating_sub(clock::now()));
        }
    }

    /// An answer waits for a slow reader while it is still being made: it is looked at when `deadline` passes, and sent on
    /// in the meantime.
    #[cold]
    pub(crate) fn watch_outlet(&self, connection: &mut Connection, deadline: u64) {
        if !connection.watched {
            self.watch(connection);
        }
        let mut core = self.lock();
        let Core { slots, deadlines, .. } = &mut *core;
        deadlines.set(&mut slots.of(connection.index).deadline, deadline, connection.index, connection.generation);
        self.set_alarm(&mut core);
        if std::mem::take(&mut connection.paused) {
            self.go_on_sending(&mut core, &connection.link);
        }
    }

    /// The socket may take more, and no edge will say so.
    #[cold]
    pub(crate) fn go_on_sending(&self, core: &mut Core, link: &Arc<Link>) {
        core.paused.push(Arc::clone(link));
        self.wake();
    }

    /// A request is being answered, and its client takes nothing: whoever answers it shall learn of it.
    pub(crate) fn check_outlet(
        &self,
        deadlines: &mut Deadlines,
        deadline: &mut Deadline,
        link: &Link,
        index: u32,
        generation: u32,
    ) {
        match link.patience_without_waiting(self.options.timeouts.of_answer(), clock::now() + BUSY) {
            None => link.cut(),
            Some(until) => _ = deadlines.set(deadline, until, index, generation),
        }
    }

    /// A file is open, and nobody knows whether it will be asked for again.
    #[cold]
    pub(crate) fn tidy_files_some_day(&self) {
        let mut core = self.lock();
        self.tidying.store(true, Ordering::Relaxed);
        core.tidy_files = clock::now() + TIDIED;
        self.set_alarm(&mut core);
    }

    /// Closes the files that nobody has asked for lately: one that was removed needs room on the disk until then. A thread does
    /// it, because to close a file may take as long as to write to it.
    #[cold]
    pub(crate) fn tidy_files(self: &Arc<Self>) {
        let (files, reactor) = (Arc::clone(&self.options.files), Arc::downgrade(self));
        let tidy = move || {
            let some_are_left = files.tidy(clock::today());
            if let Some(reactor) = reactor.upgrade() {
                reactor.tidying.store(some_are_left, Ordering::Relaxed);
                if some_are_left {
                    reactor.tidy_files_some_day();
                }
            }
        };
        if thread::Builder::new().name("poorhttp-tidy".to_owned()).spawn(tidy).is_err() {
            self.tidy_files_some_day();
        }
    }

    /// The number of the present look at the poller.
    pub(crate) fn look(&self) -> u64 {
        self.look.load(Ordering::Relaxed)
    }

    /// An application has run: what it has written shall be seen, also by who asked before the poller is looked at again.
    #[inline]
    pub(crate) fn look_again(&self) {
        if self.options.routes.is_some() || !self.options.deliveries.is_empty() {
            self.look.fetch_add(1, Ordering::Relaxed);
        }
    }
}
