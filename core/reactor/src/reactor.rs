//! The reactor: all connections of a process, and who looks after them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::accepting::{Complaint, most_by_descriptors};
use crate::access_log::{self, AccessLog};
use crate::channel;
use crate::clock;
use crate::connection::{Connection, Link, Work};
use crate::crew::{Crew, TICK, Thread, Wake, Watch};
use crate::crowd::Crowd;
use crate::deadlines::{Deadlines, NEVER};
use crate::exchange::Exchange;
use crate::journal::Level;
use crate::listener::Listeners;
use crate::log_format::Entry;
use crate::options::Options;
use crate::outlet::Flushed;
use crate::poller::{Event, Poller, Source};
use crate::sink::Sink;
use crate::slots::Slots;
use crate::slow::Looks;
use crate::stopping::RUNNING;
use crate::watch::Watch as RequestWatch;

/// Connections looked at before events are asked for again, so that busy ones cannot starve the rest.
const TURNS: u32 = 256;
/// Idle buffers that are kept.
const SPARE: usize = 64;
/// Milliseconds between looks at what is left when the time to stop is over.
const AFTERWARDS: u64 = 100;

/// Milliseconds after which it is asked again for something that another thread is busy with.
const BUSY: u64 = 100;

/// How often this process is a fork of one that had reactors.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Tells that this process is a fresh fork: reactors made before it belong to the parent, whose connections they share.
pub fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// How often this has happened, in this process and those it comes from.
#[inline]
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

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

/// Whether a connection that is put back is looked at without anything happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    No,
    /// Before all others.
    AtOnce,
    /// Behind all others.
    InTurn,
}

/// What threads share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) slots: Slots,
    /// Connections to be looked at.
    pub(crate) ready: VecDeque<u32>,
    pub(crate) deadlines: Deadlines,
    /// When the alarm will go off.
    pub(crate) alarm: u64,
    // Boxed, because they move between here and the connections all the time.
    #[allow(clippy::vec_box)]
    pub(crate) spare: Vec<Box<Work>>,
    pub(crate) crew: Crew,
    pub(crate) crowd: Crowd,
    /// Connections whose request is being answered, and whose socket may take more although no edge will say so.
    paused: Vec<Arc<Link>>,
    /// When events were asked for.
    pub(crate) looks: Looks,
    /// Connections looked at since events were last asked for.
    pub(crate) turns: u32,
    /// When the access log wants to be flushed.
    pub(crate) flush_log: u64,
    /// When listeners that were set aside are taken up again.
    pub(crate) resume_accepting: u64,
    /// We have let others accept last time.
    pub(crate) has_yielded: bool,
    /// How often in a row that was in vain.
    pub(crate) vain: u32,
    /// Until when we do not.
    pub(crate) unyielding: u64,
    /// When the last connection must have ended.
    pub(crate) give_up: u64,
    /// Descriptors have run out.
    pub(crate) exhausted: Complaint,
    /// There are as many connections as there may be.
    pub(crate) crowded: Complaint,
    /// The wish to stop that has been acted upon.
    pub(crate) stopped: u8,
}

/// The reactor. It may be used by many threads at once, and is made in the process that uses it.
#[derive(Debug)]
pub struct Reactor {
    pub(crate) options: Options,
    pub(crate) poller: Poller,
    pub(crate) listeners: Listeners,
    core: Mutex<Core>,
    followers: Condvar,
    standby: Condvar,
    number: AtomicU64,
    /// Connections that may be open at the same time.
    pub(crate) most_connections: usize,
    /// Connections whose last head is remembered.
    pub(crate) memories: Arc<AtomicUsize>,
    /// [`FORKS`] when it was made.
    forks: u64,
    /// How it shall stop.
    pub(crate) stopping: AtomicU8,
    /// Requests have kept the lead waiting lately.
    stalling: AtomicBool,
    /// Of the time that the application takes.
    pub(crate) watch: Option<RequestWatch>,
}

/// What one look at the poller asks for, beyond connections that are ready.
#[derive(Default)]
struct Errands {
    woken: bool,
    alarm: bool,
    listeners: Vec<u32>,
    /// The main process has said something.
    channel: bool,
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
    /// Serves what comes in at `listeners`, non-blocking listening sockets.
    pub fn new(listeners: Vec<OwnedFd>, options: Options) -> Result<Arc<Self>, Errno> {
        let poller = Poller::new()?;
        let most_connections = match options.most_connections {
            0 => most_by_descriptors(),
            most => most,
        };
        let listeners = Listeners::new(listeners);
        listeners.watch(&poller)?;
        if let Some(channel) = &options.channel {
            poller.add_channel(channel.fd())?;
        }
        let core = Core {
            slots: Slots::default(),
            ready: VecDeque::new(),
            deadlines: Deadlines::default(),
            alarm: NEVER,
            spare: Vec::new(),
            crew: Crew::default(),
            crowd: Crowd::default(),
            paused: Vec::new(),
            looks: Looks::default(),
            turns: 0,
            flush_log: NEVER,
            resume_accepting: NEVER,
            has_yielded: false,
            vain: 0,
            unyielding: 0,
            exhausted: Complaint::default(),
            crowded: Complaint::default(),
            give_up: NEVER,
            stopped: RUNNING,
        };
        let watch = match (&options.alarm, options.timeouts.request) {
            (None, _) | (_, 0) => None,
            (Some(alarm), limit) => Some((RequestWatch::new(limit), Arc::clone(alarm))),
        };
        let (watch, alarm) = watch.unzip();
        let reactor = Arc::new(Reactor {
            options,
            poller,
            listeners,
            core: Mutex::new(core),
            followers: Condvar::new(),
            standby: Condvar::new(),
            number: AtomicU64::new(0),
            most_connections,
            memories: Arc::default(),
            forks: forks(),
            stopping: AtomicU8::new(RUNNING),
            stalling: AtomicBool::new(false),
            watch,
        });
        if let (Some(watch), Some(alarm)) = (&reactor.watch, alarm) {
            watch.start(Arc::downgrade(&reactor), alarm)?;
        }
        Ok(reactor)
    }

    /// Whether this process is a fork of the one that made this reactor. It must not touch the connections, and not
    /// ask the poller either: the answer would be missing in the parent.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        self.forks != forks()
    }

    /// Readable when there is something to do: for somebody else's event loop.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.poller.fd()
    }

    /// Any octet written here makes [`Reactor::wait_next`] return [`Next::Interrupted`].
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.poller.wake_fd()
    }

    /// Makes [`Reactor::wait_next`] return [`Next::Interrupted`] in the thread that polls.
    pub fn wake(&self) {
        self.poller.wake();
    }

    #[inline]
    pub(crate) fn is_stalling(&self) -> bool {
        self.stalling.load(Ordering::Relaxed)
    }

    pub(crate) fn next_number(&self) -> u64 {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        if number == self.options.recycle_after {
            self.tell(channel::MADE_FOR);
        }
        number
    }

    /// Tells the main process something, if there is one.
    #[cold]
    pub fn tell(&self, octet: u8) {
        if let Some(channel) = &self.options.channel
            && !self.is_foreign()
        {
            channel.tell(&[octet]);
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next request that can be had without waiting and without a system call but `recv`.
    #[inline]
    pub fn try_next(self: &Arc<Self>) -> Option<Exchange> {
        let me = this_thread();
        loop {
            let mut core = self.lock();
            if !core.crew.may_work(me) {
                return None;
            }
            if core.turns >= TURNS && !core.ready.is_empty() {
                drop(core);
                let _ = self.poll(false);
                core = self.lock();
            }
            let connection = core.take_ready()?;
            match core.crew.dispatch(me) {
                Wake::Nobody => {}
                Wake::Follower => self.followers.notify_one(),
                Wake::Standby => self.standby.notify_one(),
            }
            if self.is_stalling() && !core.crew.is_eager() {
                self.stalling.store(false, Ordering::Relaxed);
            }
            drop(core);
            if let Some(exchange) = self.drive(connection) {
                return Some(exchange);
            }
        }
    }

    /// The next request, for somebody else's event loop: looks at the poller, never waits.
    pub fn poll_next(self: &Arc<Self>) -> Option<Exchange> {
        if self.is_foreign() {
            return None;
        }
        if let Some(exchange) = self.try_next() {
            return Some(exchange);
        }
        let _ = self.poll(false);
        self.try_next()
    }

    /// Whether the reactor was stopped and every connection has ended.
    pub fn is_finished(&self) -> bool {
        self.lock().is_finished()
    }

    /// Waits for the next request.
    pub fn wait_next(self: &Arc<Self>) -> Next {
        let me = this_thread();
        loop {
            if let Some(exchange) = self.try_next() {
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
    fn poll(&self, block: bool) -> Result<bool, Errno> {
        if block
            && let Some(log) = &self.options.access_log
            && log.is_watched()
        {
            self.flush_log();
        }
        let mut errands = Errands::default();
        let mut core: Option<MutexGuard<'_, Core>> = None;
        let begun = if self.is_timing() { clock::precise_us() } else { 0 };
        let lock = || {
            let mut core = self.lock();
            if begun != 0 {
                // Where somebody else's loop waits, it tells when that was so.
                core.looks.note(begun);
            }
            core
        };
        let waited = self.poller.wait(block, |event| core.get_or_insert_with(lock).note(event, &mut errands));
        let mut core = core.unwrap_or_else(lock);
        if block {
            core.crew.stop_polling();
        }
        core.turns = 0;
        if errands.woken {
            // Before we look for what the wake-up was about: what is said later wakes us again.
            self.poller.calm();
        }
        let unhandled_stop = core.stopped < self.stopping.load(Ordering::Acquire);
        if errands.alarm || unhandled_stop {
            self.run_alarm(&mut core);
        }
        errands.links.append(&mut core.paused);
        drop(core);
        for link in errands.links {
            if link.flush() == Flushed::Paused {
                self.go_on_sending(&mut self.lock(), &link);
            }
        }
        if errands.channel {
            self.hear();
        }
        for number in errands.listeners {
            self.accept(number);
        }
        waited.map(|()| errands.woken)
    }

    /// Does what is due.
    #[cold]
    fn run_alarm(&self, core: &mut Core) {
        // The coarse clock may still be before the moment for which the alarm was set.
        let now = clock::precise_us() / 1_000;
        let stopping = self.stopping.load(Ordering::Acquire);
        if core.stopped < stopping {
            self.begin_to_stop(core, stopping);
        }
        if core.flush_log <= now {
            core.flush_log = if self.try_to_flush_log() { now + access_log::DELAY } else { NEVER };
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
    }

    /// A request is being answered, and its client takes nothing: whoever answers it shall learn of it.
    fn check_outlet(
        &self,
        deadlines: &mut Deadlines,
        deadline: &mut crate::deadlines::Deadline,
        link: &Link,
        index: u32,
        generation: u32,
    ) {
        match link.patience_without_waiting(self.options.timeouts.of_answer(), clock::now() + BUSY) {
            None => link.cut(),
            Some(until) => _ = deadlines.set(deadline, until, index, generation),
        }
    }

    /// Sets the alarm to the next thing that is due.
    #[inline]
    pub(crate) fn set_alarm(&self, core: &mut Core) {
        let due = core.deadlines.next().min(core.flush_log).min(core.resume_accepting).min(match core.slots.live() {
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

    pub(crate) fn publish_share(&self, core: &Core) {
        if let Some(shares) = &self.options.shares
            && !self.is_stopping()
        {
            shares.publish(core.slots.live());
        }
    }

    /// Puts a connection back until something happens or its deadline passes; [`NEVER`] leaves the deadline as it is.
    #[inline]
    pub(crate) fn put_back(&self, mut connection: Box<Connection>, deadline: u64, mut again: Again) {
        if std::mem::take(&mut connection.paused) {
            again = Again::InTurn;
        }
        if self.is_timing() {
            // What has come while it was busy could not be looked at before.
            connection.since = clock::precise_us();
            if !connection.has_outlet {
                self.note_sent(&mut connection);
            }
        }
        let mut core = self.lock();
        let (index, generation) = (connection.index, connection.generation);
        if again != Again::AtOnce
            && let Some(work) = connection.work.take_if(|work| work.is_idle())
            && core.spare.len() < SPARE
            && !work.is_bulky()
        {
            core.spare.push(work);
        }
        let Core { slots, deadlines, ready, .. } = &mut *core;
        let slot = slots.of(index);
        let earlier = deadline != NEVER && deadlines.set(&mut slot.deadline, deadline, index, generation);
        let waiting = connection.has_outlet;
        slot.connection = Some(connection);
        let signs = slot.signs;
        let due = again != Again::No || signs.readable || signs.hangup || signs.expired || (signs.writable && waiting);
        if due && !slot.queued {
            slot.queued = true;
            match again {
                Again::AtOnce => ready.push_front(index),
                Again::No | Again::InTurn => ready.push_back(index),
            }
        }
        if earlier {
            self.set_alarm(&mut core);
        }
        if due && self.options.watched_from_outside {
            self.wake();
        }
    }

    /// Whether it matters where the time goes.
    #[inline]
    pub(crate) fn is_timing(&self) -> bool {
        self.options.slow_request != 0
    }

    /// Somebody else's event loop has waited since `begun`, in microseconds of [`Reactor::time`].
    pub fn rested(&self, begun: u64) {
        self.lock().looks.rest(begun);
    }

    /// The time, for [`Reactor::rested`].
    pub fn time(&self) -> u64 {
        clock::precise_us()
    }

    /// Sees what has come while a request took long. Otherwise what its client asks next, which comes at once, might have been
    /// there all the time.
    #[cold]
    pub(crate) fn look_around(&self) {
        if self.lock().crew.is_polling() {
            return;
        }
        if !matches!(self.poll(false), Ok(false)) || self.options.watched_from_outside {
            // That was for somebody else to hear.
            self.wake();
        }
    }

    /// All of an answer was sent, or it is given up.
    #[inline]
    pub(crate) fn note_sent(&self, connection: &mut Connection) {
        if let Some(answered) = connection.answered.take() {
            answered.report(self.options.slow_request, &self.options.journal);
        }
    }

    /// Closes a connection.
    #[allow(clippy::boxed_local)]
    pub(crate) fn close(&self, mut connection: Box<Connection>) {
        self.note_sent(&mut connection);
        let mut core = self.lock();
        if let Some(mut work) = connection.work.take()
            && core.spare.len() < SPARE
            && !work.is_bulky()
        {
            *work = Work { out: std::mem::take(&mut work.out), ..Work::default() };
            work.out.clear();
            core.spare.push(work);
        }
        core.slots.vacate(connection.index);
        self.publish_share(&core);
        let finished = core.is_finished();
        if core.resume_accepting != NEVER && !core.has_yielded {
            core.resume_accepting = 0;
            self.set_alarm(&mut core);
        }
        drop(core);
        if finished {
            self.wake();
        }
    }

    /// An answer waits for a slow reader while it is still being made: it is looked at when `deadline` passes, and sent on
    /// in the meantime.
    #[cold]
    pub(crate) fn watch_outlet(&self, connection: &mut Connection, deadline: u64) {
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
    fn go_on_sending(&self, core: &mut Core, link: &Arc<Link>) {
        core.paused.push(Arc::clone(link));
        self.wake();
    }

    /// Adds a line to the access log, and sees to it that none waits for ever.
    #[inline]
    pub(crate) fn add_to_log(&self, log: &AccessLog, entry: &Entry<'_>) {
        if log.add(entry) {
            self.flush_log_soon();
        }
    }

    #[cold]
    fn flush_log_soon(&self) {
        let mut core = self.lock();
        if core.flush_log == NEVER {
            core.flush_log = clock::now() + access_log::DELAY;
            self.set_alarm(&mut core);
        }
    }

    /// Writes the lines of the access log that wait.
    pub fn flush_log(&self) {
        if self.try_to_flush_log() {
            self.flush_log_soon();
        }
    }

    /// The same, where the core is locked. `true`: some still wait.
    fn try_to_flush_log(&self) -> bool {
        let Some(log) = &self.options.access_log else { return false };
        let waits = log.flush();
        if let Some(news) = log.news() {
            self.options.journal.write(Level::Error, &news);
        }
        waits
    }

    /// Writes the lines of the access log that wait for the last time.
    pub fn close_log(&self) {
        if let Some(log) = &self.options.access_log
            && let Some(news) = log.close()
        {
            self.options.journal.write(Level::Error, &news);
        }
    }

    /// Goes on with the access log in `sink`; the lines that wait go to where it is now.
    pub fn reopen_log(&self, sink: Sink) {
        let Some(log) = &self.options.access_log else { return };
        log.reopen(sink);
        self.flush_log();
    }
}

impl Core {
    /// Takes the next connection to be looked at.
    #[inline]
    fn take_ready(&mut self) -> Option<Box<Connection>> {
        loop {
            let index = self.ready.pop_front()?;
            self.turns += 1;
            let slot = self.slots.of(index);
            slot.queued = false;
            let Some(mut connection) = slot.connection.take() else { continue };
            let signs = std::mem::take(&mut slot.signs);
            connection.readable |= signs.readable;
            connection.hangup |= signs.hangup;
            connection.expired |= signs.expired;
            if connection.work.is_none() {
                connection.work = self.spare.pop();
            }
            return Some(connection);
        }
    }

    /// Has a connection looked at as if something had come; by whoever has it now, when he puts it back.
    pub(crate) fn look_at(&mut self, index: u32) {
        self.slots.of(index).signs.readable = true;
        self.enqueue(index);
    }

    pub(crate) fn enqueue(&mut self, index: u32) {
        let slot = self.slots.of(index);
        if slot.connection.is_some() && !slot.queued {
            slot.queued = true;
            self.ready.push_back(index);
        }
    }

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
        }
    }

    fn is_finished(&self) -> bool {
        self.stopped != RUNNING && self.slots.live() == 0
    }
}
