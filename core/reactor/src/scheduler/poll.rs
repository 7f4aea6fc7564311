//! Asks the poller for events and acts on them, and on expired timers.
//!
//! One thread at a time waits for the poller; [`crate::scheduler::leader_followers`] decides which.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::thread;

use crate::connection::Connection;
use crate::connection::multiplexed::streams::Ready;
use crate::connection::send_queue::Flushed;
use crate::connection::shared_socket::SharedSocket;
use crate::scheduler::state::{Shared, State};
use crate::scheduler::timers::DiskWork;
use crate::scheduler::{accept, notices, put_back, stop};
use crate::shutdown::Stage;
use crate::sys::poller::{BATCH, Event, Source};
use crate::sys::{Errno, clock};

/// The events of one poll that are not for connections.
#[derive(Default)]
struct OtherEvents {
    woken: bool,
    timer: bool,
    /// The main process has sent something.
    channel: bool,
    /// A predecessor has passed connections.
    handoff: bool,
    lists: Option<Box<Lists>>,
}

/// Those of which there may be several: most polls have none, and need no memory.
#[derive(Default)]
struct Lists {
    listeners: Vec<u32>,
    /// Connections whose request is being answered, if their socket takes more, or their stream waits for a notice.
    answered: Vec<Answered>,
}

impl OtherEvents {
    #[cold]
    fn lists(&mut self) -> &mut Lists {
        self.lists.get_or_insert_default()
    }

    #[inline]
    fn accepts(&self) -> bool {
        self.lists.as_ref().is_some_and(|lists| !lists.listeners.is_empty())
    }
}

/// What has come on a connection whose request is being answered.
struct Answered {
    socket: Arc<SharedSocket>,
    /// Something is to be received.
    data: bool,
    /// The client has ended its side.
    end: bool,
}

/// Asks the poller for events and acts on them. `Ok(true)`: [`crate::Reactor::wake`] was called.
pub(crate) fn poll(state: &Arc<State>, block: bool) -> Result<bool, Errno> {
    if block
        && let Some(log) = &state.telemetry.access_log
        && log.is_watched()
    {
        state.flush_log();
    }
    state.poll_number.fetch_add(1, Ordering::Relaxed);
    let mut others = OtherEvents::default();
    let mut shared: Option<MutexGuard<'_, Shared>> = None;
    let begun = if state.takes_times() { clock::precise_us() } else { 0 };
    let pending = Cell::new(false);
    let lock = || {
        let mut shared = state.lock();
        // A thread that blocks has handled everything; what is ready by now was put back in the meantime.
        pending.set(!block && shared.connections.ready() > 0);
        if begun != 0 {
            // With an external loop, `waited_since` notes the waits instead, for the slow log.
            shared.poll_times.note_poll(begun, state.running.external_loop && state.telemetry.slow_request == 0);
        }
        shared
    };
    let is_late = state.queue_time.is_late(state.running.external_loop);
    let mut note = |event| note_event(shared.get_or_insert_with(lock), event, &mut others);
    // If events may have waited, those that are pending are taken first, separately from those that arrive while it waits.
    let (mut waits, mut were_there) = (block && !is_late, None);
    let waited = loop {
        let waited = state.poller.wait(waits, &mut note);
        if is_late && were_there.is_none() {
            were_there = waited.ok().map(|events| events > 0);
            waits = block && were_there == Some(false);
            if waits {
                continue;
            }
        }
        break waited;
    };
    let mut shared = shared.unwrap_or_else(lock);
    let is_single = shared.connections.ready() < 2 && !others.accepts();
    if state.queue_time.polled(were_there, is_single, pending.get(), !shared.accepting.is_paused()) {
        // This thread takes one of them.
        state.counters.metrics.set_ready(shared.connections.ready().saturating_sub(1));
    }
    if waited == Ok(BATCH) {
        state.queue_time.note_rest();
    }
    let accepts = others.accepts();
    if block && !accepts {
        shared.threads.stop_polling();
    }
    shared.connections.start_round();
    if others.woken {
        // Before the reason of the wake-up is handled: a later one wakes the poller again.
        others.woken = state.poller.clear_wake();
    }
    let enters_stage = shared.stopping.stage() < state.shutdown.stage();
    let disk_work = match others.timer || enters_stage {
        true => run_timers(state, &mut shared),
        false => DiskWork::default(),
    };
    if !shared.paused.is_empty() {
        let paused = shared.paused.drain(..).map(|socket| Answered { socket, data: false, end: false });
        others.lists().answered.extend(paused);
    }
    drop(shared);
    // The main process first: perhaps other workers are to accept.
    if others.channel {
        stop::receive_commands(state);
    }
    if others.handoff
        && let Some(fd_handoff) = &state.running.fd_handoff
    {
        stop::receive_passed(state, fd_handoff);
    }
    if accepts {
        // Still the only one that polls: another thread would take those that wait in the backlog for new ones.
        let listeners = others.lists.iter().flat_map(|lists| &lists.listeners);
        listeners.for_each(|&number| accept::accept(state, number));
        if block {
            state.lock().threads.stop_polling();
        }
    }
    if disk_work.flush_log {
        state.flush_log();
    }
    if disk_work.tidy {
        tidy(state);
    }
    if let Some(lists) = others.lists {
        give(state, &lists.answered);
    }
    waited.map(|_| others.woken)
}

/// Acts on what has come on connections whose requests are being answered. Without the lock.
#[cold]
fn give(state: &State, answered: &[Answered]) {
    for Answered { socket, data, end } in answered {
        if socket.is_waiting() && socket.flush() == Flushed::Paused {
            go_on_sending(state, &mut state.lock(), socket);
        }
        notices::give(socket, *data, *end);
    }
}

/// Acts on what has come for streams, and for connections with streams, as on events of the poller.
pub(crate) fn deliver(state: &State, ready: &[Ready]) {
    if ready.is_empty() {
        return;
    }
    let (mut others, mut shared) = (OtherEvents::default(), state.lock());
    let before = shared.connections.ready();
    for Ready { slot: (index, generation), readable, writable, hangup } in ready.iter().copied() {
        let source = Source::Connection { index, generation };
        note_event(&mut shared, Event { source, readable, writable, hangup }, &mut others);
    }
    let is_more = shared.connections.ready() > before;
    let sleeps = is_more && (shared.threads.is_polling() || state.running.external_loop);
    drop(shared);
    if sleeps {
        state.poller.nudge();
    }
    if let Some(lists) = others.lists {
        give(state, &lists.answered);
    }
}

/// Takes the events that have arrived during a long request. Otherwise the next request of its client would seem to
/// have waited as long.
#[cold]
pub(crate) fn poll_again(state: &Arc<State>) {
    if state.lock().threads.is_polling() {
        return;
    }
    if !matches!(poll(state, false), Ok(false)) || state.running.external_loop {
        // The interrupt is for the thread that waits.
        state.wake();
    }
}

/// A connection has had so long a turn that the poller should be asked before many others have theirs.
#[cold]
pub(crate) fn note_long_turn(state: &State) {
    const AS_MANY: u32 = 64;
    state.lock().connections.add_turns(AS_MANY);
}

/// A turn has taken so many microseconds: each counts as a turn.
pub(crate) fn note_time(state: &State, microseconds: u64) {
    /// A turn of a connection with a few requests takes less, and is not worth the lock.
    const FEW: u64 = 50;
    if microseconds > FEW {
        state.lock().connections.add_turns(u32::try_from(microseconds).unwrap_or(u32::MAX));
    }
}

/// Notes an event.
// A call for each event costs a request 1 % of its instructions.
#[inline(always)]
fn note_event(shared: &mut Shared, event: Event, others: &mut OtherEvents) {
    match event.source {
        Source::Connection { index, generation } => {
            let Some(slot) = shared.connections.get(index, generation) else { return };
            slot.readiness.readable |= event.readable;
            slot.readiness.writable |= event.writable;
            slot.readiness.hangup |= event.hangup;
            match (&mut slot.connection, &slot.socket) {
                (Some(connection), _) => {
                    if event.readable {
                        shared.poll_times.note_event(connection);
                    }
                    if event.readable || event.hangup || connection.waits_to_send() {
                        shared.connections.enqueue(index);
                    }
                }
                (None, Some(socket)) if (event.writable && socket.is_waiting()) || socket.notice.is_set() => {
                    let socket = Arc::clone(socket);
                    others.lists().answered.push(Answered { socket, data: event.readable, end: event.hangup });
                }
                _ => {}
            }
        }
        Source::Wake => others.woken = true,
        Source::Timer => others.timer = true,
        Source::Listener(number) => others.lists().listeners.push(number),
        Source::Channel => others.channel = true,
        Source::Handoff => others.handoff = true,
    }
}

/// Milliseconds after which a queue that another thread is busy with is checked again.
const RETRY: u64 = 100;

/// Runs expired timers. Returns the work that must be done without the lock because it may wait for a disk.
#[cold]
fn run_timers(state: &State, shared: &mut Shared) -> DiskWork {
    // The coarse clock may still be before the moment for which the timer was set.
    let now = clock::precise_us() / 1_000;
    let stage = state.shutdown.stage();
    if shared.stopping.stage() < stage {
        shared.enter_stage(stage, &state.timeouts);
    }
    let disk_work = shared.timers.take_disk_work(now);
    if shared.accepting.resume(now) && shared.stopping.stage() == Stage::Running {
        accept::watch_listeners(state);
    }
    while let Some(entry) = shared.timers.pop(now) {
        let (_, index, generation) = entry;
        let Some(slot) = shared.connections.get(index, generation) else { continue };
        if !shared.timers.has_passed(&mut slot.deadline, now, entry) {
            continue;
        }
        slot.readiness.expired = true;
        match (&slot.connection, &slot.socket) {
            (Some(_), _) => shared.connections.enqueue(index),
            (None, Some(socket)) => {
                slot.readiness.expired = false;
                // Disconnects the client of a request in progress if it takes too little; the thread that answers notices
                // with its next call.
                match socket.try_slow_reader_deadline(state.timeouts.response_rate(), clock::now() + RETRY) {
                    None => socket.disconnect(),
                    Some(until) => _ = shared.timers.set(&mut slot.deadline, until, index, generation),
                }
                shared.paused.push(Arc::clone(socket));
            }
            (None, None) => {}
        }
    }
    if shared.stopping.is_overdue(now) {
        shared.connections.expire_all();
    }
    shared.timers.disarm();
    state.set_timer(shared);
    disk_work
}

/// An answer waits for a slow reader while it is still being made: it is looked at when `deadline` passes, and sent on
/// in the meantime.
#[cold]
pub(crate) fn watch_send_queue(state: &State, connection: &mut Connection, deadline: u64) {
    if !connection.is_registered() {
        put_back::watch(state, connection);
    }
    let mut shared = state.lock();
    let (index, generation) = connection.slot();
    shared.set_deadline(index, generation, deadline);
    state.set_timer(&mut shared);
    if connection.take_paused() {
        go_on_sending(state, &mut shared, &connection.socket);
    }
}

/// The socket may take more, and no edge will say so.
#[cold]
fn go_on_sending(state: &State, shared: &mut Shared, socket: &Arc<SharedSocket>) {
    shared.paused.push(Arc::clone(socket));
    state.wake();
}

/// Closes the files that no request has asked for lately, since a removed file needs room on the disk until then, and frees
/// memory that no request body has needed. A thread does it, because closing a file may take as long as writing to it.
#[cold]
fn tidy(state: &Arc<State>) {
    let (files, body_spool) = (Arc::clone(&state.running.files), Arc::clone(&state.body_spool));
    let weak = Arc::downgrade(state);
    let tidy = move || {
        let some_are_left = files.tidy(clock::unix_time()) | body_spool.tidy();
        if some_are_left && let Some(state) = weak.upgrade() {
            state.tidy_soon();
        }
    };
    // Before it looks: what comes later needs another look.
    state.tidying.store(false, Ordering::Relaxed);
    if thread::Builder::new().name("poorhttp-tidy".to_owned()).spawn(tidy).is_err() {
        state.tidy_soon();
    }
}
