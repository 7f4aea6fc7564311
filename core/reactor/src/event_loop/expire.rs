//! The alarm of the poller: what is due, and when to look again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::control::shutdown::RUNNING;
use crate::reactor::{Core, Reactor};
use crate::sys::clock;
use crate::sys::clock::NEVER;

/// Milliseconds between looks at what is left when the time to stop is over.
const AFTERWARDS: u64 = 100;

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
}
