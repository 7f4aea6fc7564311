//! The alarm of the poller: what is due, and when to look again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use crate::connection::Connection;
use crate::connection::shared_socket::SharedSocket;
use crate::control::shutdown::Stage;
use crate::event_loop::reactor::{Core, Reactor};
use crate::event_loop::timers::{Deadline, Deadlines};
use crate::event_loop::{ready_queue, shutdown};
use crate::sys::clock::{self, NEVER};

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

/// Does what is due. Returns what is left to be done without the lock, because it may wait for a disk.
#[cold]
pub(crate) fn run_alarm(reactor: &Reactor, core: &mut Core) -> DiskChores {
    // The coarse clock may still be before the moment for which the alarm was set.
    let now = clock::precise_us() / 1_000;
    let stopping = reactor.shutdown.stage();
    if core.stopped < stopping {
        shutdown::begin_to_stop(reactor, core, stopping);
    }
    let chores = DiskChores { flush_log: core.flush_log <= now, tidy_files: core.tidy_files <= now };
    if chores.flush_log {
        core.flush_log = NEVER;
    }
    if chores.tidy_files {
        core.tidy_files = NEVER;
    }
    if core.accepting.resume(now) && core.stopped == Stage::Running {
        let _ = reactor.listeners.watch(&reactor.poller);
    }
    while let Some(entry) = core.deadlines.pop(now) {
        let (_, index, generation) = entry;
        let Some(slot) = core.slots.get(index, generation) else { continue };
        if !core.deadlines.has_passed(&mut slot.deadline, now, entry) {
            continue;
        }
        slot.readiness.expired = true;
        match (&slot.connection, &slot.socket) {
            (Some(_), _) => core.enqueue(index),
            (None, Some(socket)) => {
                slot.readiness.expired = false;
                check_send_queue(reactor, &mut core.deadlines, &mut slot.deadline, socket, index, generation);
                core.paused.push(Arc::clone(socket));
            }
            (None, None) => {}
        }
    }
    if core.give_up <= now {
        let indices: Vec<u32> =
            core.slots.occupied().map(|(index, slot)| (index, slot.readiness.expired = true).0).collect();
        indices.into_iter().for_each(|index| core.enqueue(index));
    }
    core.alarm = NEVER;
    reactor.set_alarm(core);
    chores
}

/// An answer waits for a slow reader while it is still being made: it is looked at when `deadline` passes, and sent on
/// in the meantime.
#[cold]
pub(crate) fn watch_send_queue(reactor: &Reactor, connection: &mut Connection, deadline: u64) {
    if !connection.watched {
        ready_queue::watch(reactor, connection);
    }
    let mut core = reactor.lock();
    let Core { slots, deadlines, .. } = &mut *core;
    deadlines.set(&mut slots.of(connection.index).deadline, deadline, connection.index, connection.generation);
    reactor.set_alarm(&mut core);
    if std::mem::take(&mut connection.paused) {
        go_on_sending(reactor, &mut core, &connection.socket);
    }
}

/// The socket may take more, and no edge will say so.
#[cold]
pub(crate) fn go_on_sending(reactor: &Reactor, core: &mut Core, socket: &Arc<SharedSocket>) {
    core.paused.push(Arc::clone(socket));
    reactor.wake();
}

/// A request is being answered, and its client takes nothing: whoever answers it shall learn of it.
pub(crate) fn check_send_queue(
    reactor: &Reactor,
    deadlines: &mut Deadlines,
    deadline: &mut Deadline,
    socket: &SharedSocket,
    index: u32,
    generation: u32,
) {
    match socket.try_slow_reader_deadline(reactor.options.timeouts.of_answer(), clock::now() + BUSY) {
        None => socket.disconnect(),
        Some(until) => _ = deadlines.set(deadline, until, index, generation),
    }
}

/// A file is open, and nobody knows whether it will be asked for again.
#[cold]
pub(crate) fn tidy_files_some_day(reactor: &Reactor) {
    let mut core = reactor.lock();
    reactor.tidying.store(true, Ordering::Relaxed);
    core.tidy_files = clock::now() + TIDIED;
    reactor.set_alarm(&mut core);
}

/// Closes the files that nobody has asked for lately: one that was removed needs room on the disk until then. A thread does
/// it, because to close a file may take as long as to write to it.
#[cold]
pub(crate) fn tidy_files(reactor: &Arc<Reactor>) {
    let (files, weak) = (Arc::clone(&reactor.options.files), Arc::downgrade(reactor));
    let tidy = move || {
        let some_are_left = files.tidy(clock::today());
        if let Some(reactor) = weak.upgrade() {
            reactor.tidying.store(some_are_left, Ordering::Relaxed);
            if some_are_left {
                tidy_files_some_day(&reactor);
            }
        }
    };
    if thread::Builder::new().name("poorhttp-tidy".to_owned()).spawn(tidy).is_err() {
        tidy_files_some_day(reactor);
    }
}
