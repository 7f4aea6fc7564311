//! Who waits for something to happen, and what is done about it.
//!
//! One thread at a time waits for the poller ([`crate::event_loop::leader_followers`] says which); the others work, or wait for their turn.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use rustix::io::Errno;

use crate::connection::send_queue::Flushed;
use crate::connection::shared_socket::SharedSocket;
use crate::event_loop::expire::DiskChores;
use crate::event_loop::reactor::{Core, Reactor};
use crate::event_loop::{accept, expire, handoff, logging, shutdown};
use crate::sys::clock;
use crate::sys::poller::{BATCH, Event, Source};

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
    sockets: Vec<Arc<SharedSocket>>,
}

/// Asks the poller for events and acts on them. `Ok(true)`: somebody has called [`Reactor::wake`].
pub(crate) fn poll(reactor: &Arc<Reactor>, block: bool) -> Result<bool, Errno> {
    if block
        && let Some(log) = &reactor.options.access_log
        && log.is_watched()
    {
        logging::flush_log(reactor);
    }
    reactor.look.fetch_add(1, Ordering::Relaxed);
    let mut errands = Errands::default();
    let mut core: Option<MutexGuard<'_, Core>> = None;
    let begun = if reactor.is_timing() { clock::precise_us() } else { 0 };
    let pending = Cell::new(false);
    let lock = || {
        let mut core = reactor.lock();
        // A thread that blocks has handled everything; what is ready by now was put back in the meantime.
        pending.set(!block && !core.ready.is_empty());
        if begun != 0 {
            // Where somebody else's loop waits, it tells when that was so.
            core.looks.note(begun);
        }
        core
    };
    let is_late = reactor.queue_time.is_late(reactor.options.watched_from_outside);
    let mut note = |event| core.get_or_insert_with(lock).note(event, &mut errands);
    // If events may have waited, those that are there already are told from those that come.
    let (mut waits, mut were_there) = (block && !is_late, None);
    let waited = loop {
        let waited = reactor.poller.wait(waits, &mut note);
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
    reactor.queue_time.polled(were_there, is_single, pending.get(), !core.accepting.is_paused());
    if waited == Ok(BATCH) {
        reactor.queue_time.leave();
    }
    let accepts = !errands.listeners.is_empty();
    if block && !accepts {
        core.crew.stop_polling();
    }
    core.turns = 0;
    if errands.woken {
        // Before we look for what the wake-up was about: what is said later wakes us again.
        errands.woken = reactor.poller.calm();
    }
    let unhandled_stop = core.stopped < reactor.shutdown.stage();
    let chores = match errands.alarm || unhandled_stop {
        true => expire::run_alarm(reactor, &mut core),
        false => DiskChores::default(),
    };
    errands.sockets.append(&mut core.paused);
    drop(core);
    // First of all what the main process has said: perhaps that others are to accept.
    if errands.channel {
        shutdown::hear(reactor);
    }
    if errands.bequest
        && let Some(bequest) = &reactor.options.bequest
    {
        handoff::inherit(reactor, bequest);
    }
    if accepts {
        // Still the only one that polls: another thread would take those that wait in the backlog for new ones.
        for number in errands.listeners {
            accept::accept(reactor, number);
        }
        if block {
            reactor.lock().crew.stop_polling();
        }
    }
    if chores.flush_log {
        logging::flush_log(reactor);
    }
    if chores.tidy_files {
        expire::tidy_files(reactor);
    }
    for socket in errands.sockets {
        if socket.flush() == Flushed::Paused {
            expire::go_on_sending(reactor, &mut reactor.lock(), &socket);
        }
    }
    waited.map(|_| errands.woken)
}

/// What [`Reactor::rested`] does.
pub(crate) fn rested(reactor: &Reactor, begun: u64) {
    reactor.lock().looks.rest(begun);
}

/// Sees what has come while a request took long. Otherwise what its client asks next, which comes at once, might have been
/// there all the time.
#[cold]
pub(crate) fn look_around(reactor: &Arc<Reactor>) {
    if reactor.lock().crew.is_polling() {
        return;
    }
    if !matches!(poll(reactor, false), Ok(false)) || reactor.options.watched_from_outside {
        // That was for somebody else to hear.
        reactor.wake();
    }
}

/// A connection has had so long a turn that the poller should be asked before many others have theirs.
#[cold]
pub(crate) fn note_long_turn(reactor: &Reactor) {
    const AS_MANY: u32 = 64;
    let mut core = reactor.lock();
    core.turns = core.turns.saturating_add(AS_MANY);
}

impl Core {
    /// Notes an event.
    #[inline]
    fn note(&mut self, event: Event, errands: &mut Errands) {
        match event.source {
            Source::Connection { index, generation } => {
                let Some(slot) = self.slots.get(index, generation) else { return };
                slot.readiness.readable |= event.readable;
                slot.readiness.writable |= event.writable;
                slot.readiness.hangup |= event.hangup;
                match (&mut slot.connection, &slot.socket) {
                    (Some(connection), _) => {
                        if event.readable {
                            self.looks.tell(connection);
                        }
                        let due = event.readable || event.hangup || connection.has_send_queue;
                        if due && !slot.queued {
                            slot.queued = true;
                            self.ready.push_back(index);
                        }
                    }
                    (None, Some(socket)) if event.writable && socket.is_waiting() => {
                        errands.sockets.push(Arc::clone(socket))
                    }
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
