//! The alarm of the poller: what is due, and when to look again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use crate::connection::Connection;
use crate::connection::shared_socket::SharedSocket;
use crate::control::shutdown::Stage;
use crate::event_loop::reactor::{Reactor, Shared};
use crate::event_loop::timers::{Deadline, Timers};
use crate::event_loop::{ready_queue, shutdown};
use crate::sys::clock::{self, NEVER};

/// Milliseconds after which it is asked again for something that another thread is busy with.
const RETRY: u64 = 100;

/// Milliseconds between looks for files that need not be open any more.
const TIDY_INTERVAL: u64 = 10_000;

/// What is due and may wait for a disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskWork {
    pub(crate) flush_log: bool,
    pub(crate) tidy_files: bool,
}

/// Does what is due. Returns what is left to be done without the lock, because it may wait for a disk.
#[cold]
pub(crate) fn run_timers(reactor: &Reactor, shared: &mut Shared) -> DiskWork {
    // The coarse clock may still be before the moment for which the alarm was set.
    let now = clock::precise_us() / 1_000;
    let stopping = reactor.shutdown.stage();
    if shared.stage < stopping {
        shutdown::enter_stage(reactor, shared, stopping);
    }
    let disk_work = DiskWork { flush_log: shared.flush_log <= now, tidy_files: shared.tidy_files <= now };
    if disk_work.flush_log {
        shared.flush_log = NEVER;
    }
    if disk_work.tidy_files {
        shared.tidy_files = NEVER;
    }
    if shared.accepting.resume(now) && shared.stage == Stage::Running {
        let _ = reactor.listeners.watch(&reactor.poller);
    }
    while let Some(entry) = shared.timers.pop(now) {
        let (_, index, generation) = entry;
        let Some(slot) = shared.slots.get(index, generation) else { continue };
        if !shared.timers.has_passed(&mut slot.deadline, now, entry) {
            continue;
        }
        slot.readiness.expired = true;
        match (&slot.connection, &slot.socket) {
            (Some(_), _) => shared.enqueue(index),
            (None, Some(socket)) => {
                slot.readiness.expired = false;
                check_send_queue(reactor, &mut shared.timers, &mut slot.deadline, socket, index, generation);
                shared.paused.push(Arc::clone(socket));
            }
            (None, None) => {}
        }
    }
    if shared.force_close_at <= now {
        let indices: Vec<u32> =
            shared.slots.occupied().map(|(index, slot)| (index, slot.readiness.expired = true).0).collect();
        indices.into_iter().for_each(|index| shared.enqueue(index));
    }
    shared.timer_at = NEVER;
    reactor.set_timer(shared);
    disk_work
}

/// An answer waits for a slow reader while it is still being made: it is looked at when `deadline` passes, and sent on
/// in the meantime.
#[cold]
pub(crate) fn watch_send_queue(reactor: &Reactor, connection: &mut Connection, deadline: u64) {
    if !connection.watched {
        ready_queue::watch(reactor, connection);
    }
    let mut shared = reactor.lock();
    let Shared { slots, timers, .. } = &mut *shared;
    timers.set(&mut slots.of(connection.index).deadline, deadline, connection.index, connection.generation);
    reactor.set_timer(&mut shared);
    if std::mem::take(&mut connection.paused) {
        go_on_sending(reactor, &mut shared, &connection.socket);
    }
}

/// The socket may take more, and no edge will say so.
#[cold]
pub(crate) fn go_on_sending(reactor: &Reactor, shared: &mut Shared, socket: &Arc<SharedSocket>) {
    shared.paused.push(Arc::clone(socket));
    reactor.wake();
}

/// A request is being answered, and its client takes nothing: whoever answers it shall learn of it.
pub(crate) fn check_send_queue(
    reactor: &Reactor,
    timers: &mut Timers,
    deadline: &mut Deadline,
    socket: &SharedSocket,
    index: u32,
    generation: u32,
) {
    match socket.try_slow_reader_deadline(reactor.options.timeouts.of_answer(), clock::now() + RETRY) {
        None => socket.disconnect(),
        Some(until) => _ = timers.set(deadline, until, index, generation),
    }
}

/// A file is open, and nobody knows whether it will be asked for again.
#[cold]
pub(crate) fn schedule_tidy(reactor: &Reactor) {
    let mut shared = reactor.lock();
    reactor.tidying.store(true, Ordering::Relaxed);
    shared.tidy_files = clock::now() + TIDY_INTERVAL;
    reactor.set_timer(&mut shared);
}

/// Closes the files that nobody has asked for lately: one that was removed needs room on the disk until then. A thread does
/// it, because to close a file may take as long as to write to it.
#[cold]
pub(crate) fn tidy_files(reactor: &Arc<Reactor>) {
    let (files, weak) = (Arc::clone(&reactor.options.files), Arc::downgrade(reactor));
    let tidy = move || {
        let some_are_left = files.tidy(clock::unix_time());
        if let Some(reactor) = weak.upgrade() {
            reactor.tidying.store(some_are_left, Ordering::Relaxed);
            if some_are_left {
                schedule_tidy(&reactor);
            }
        }
    };
    if thread::Builder::new().name("poorhttp-tidy".to_owned()).spawn(tidy).is_err() {
        schedule_tidy(reactor);
    }
}
