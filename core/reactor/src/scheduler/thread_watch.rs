//! Has threads made and ended, with `threads = auto`: looks at them, and does what [`ThreadCount`] decides.
//!
//! A thread of its own does that. It sleeps as long as there are as few threads as may be and one of them waits for work, so
//! requests of such a server do not wake it; while all threads have requests it looks every [`LOOK`].

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::log::error::{Level, RateLimit};
use crate::options::AutoThreads;
use crate::overload::streaming::ThreadPool;
use crate::overload::thread_count::{Change, Look, STANDING, ThreadCount};
use crate::scheduler::state::State;
use crate::status::metrics::Found;
use crate::sys::Errno;
use crate::sys::memory::MemoryLimits;
use crate::sys::runnable::other_runnable_threads;

/// Time between two looks while all threads have requests.
const LOOK: Duration = Duration::from_millis(5);
/// Time between two looks while one of them waits for work.
const REST: Duration = Duration::from_millis(250);
/// For how long none must have had to wait before the thread sleeps.
const AWAKE: Duration = Duration::from_secs(2);
/// A thread that gets the interpreter within this time has not waited for another one to give it up.
const AT_ONCE: Duration = Duration::from_micros(50);
/// Longest time between two looks that find that no other thread could run: each has the thread that holds the interpreter wait,
/// or takes some of a processor that others want.
const SELDOM: Duration = Duration::from_millis(20);
/// For how long the state of the memory is remembered, and that a thread could not be made.
const MEMORY: Duration = Duration::from_millis(100);
/// For how long it is remembered whether a processor is free, while no thread is to be made.
const PROCESSOR: Duration = Duration::from_millis(100);
const RETRY: Duration = Duration::from_secs(10);

/// Starts the thread that watches the others.
pub(crate) fn start(state: &Arc<State>, pool: Arc<dyn ThreadPool>, bounds: AutoThreads) -> Result<(), Errno> {
    let AutoThreads { least, most, processors, memory } = bounds;
    let (weak, alarm) = (Arc::downgrade(state), state.waiters.alarm.clone());
    let begun = Instant::now();
    let mut watch = Watch {
        pool,
        count: ThreadCount::new(least, most, 0),
        threads: least,
        begun,
        busy: begun,
        interpreter: (begun, LOOK),
        processors,
        processor: (begun, true),
        memory: (begun, true),
        limits: MemoryLimits(memory),
        looked: begun,
        has_counted: false,
        warned: RateLimit::default(),
    };
    let run = move || {
        let mut pause = REST;
        while alarm.as_ref().is_some_and(|alarm| alarm.wait(pause))
            && let Some(next) = watch.look(&weak)
        {
            pause = next;
        }
    };
    let spawned = thread::Builder::new().name("poorhttp-threads".to_owned()).spawn(run);
    spawned.map(drop).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
}

struct Watch {
    pool: Arc<dyn ThreadPool>,
    count: ThreadCount,
    /// Threads that serve, without those that are to end.
    threads: usize,
    begun: Instant,
    /// When all threads last had requests.
    busy: Instant,
    /// When the interpreter is looked at next, and how long after that again.
    interpreter: (Instant, Duration),
    /// Threads of this process that can run at the same time.
    processors: usize,
    /// Until when it is known whether fewer run or wait for a processor, and whether that is so.
    processor: (Instant, bool),
    /// Until when it is known whether there is memory for a thread, and whether there is.
    memory: (Instant, bool),
    limits: MemoryLimits,
    /// When the last look was.
    looked: Instant,
    /// Requests waited then, and that was counted.
    has_counted: bool,
    warned: RateLimit,
}

impl Watch {
    /// Looks at the threads, and does what is to be done. Returns how long to wait for the next look; None: there is none.
    fn look(&mut self, weak: &Weak<State>) -> Option<Duration> {
        let state = weak.upgrade()?;
        if state.is_stopping() {
            return None;
        }
        let now = Instant::now();
        let held = state.counters.held_threads() as usize;
        let wanted = (state.counters.take_wanted_threads() as usize).max(held).min(self.count.most());
        for _ in self.threads..wanted {
            self.add(&state, now);
        }
        if held > 0 && self.threads > held {
            self.end(&state, self.threads - held);
        }
        let mut shared = state.lock();
        let (is_busy, idle) = (shared.threads.are_all_busy(), shared.threads.take_least_idle());
        let is_ready = shared.connections.ready() > 0;
        drop(shared);
        let waits = is_busy && (is_ready || state.poller.has_events());
        if is_busy {
            self.busy = now;
        }
        let milliseconds = (now - self.begun).as_millis() as u64;
        let look = Look {
            now: milliseconds,
            threads: self.threads,
            idle,
            waits,
            could_run: self.look_whether_one_could_run(&state, now, is_busy, waits)?,
            is_overloaded: state.is_overloaded(),
            has_memory: !waits || self.has_memory(now),
        };
        match self.count.decide(&look) {
            Change::Add if held == 0 => self.add(&state, now),
            Change::End(threads) if held == 0 => self.end(&state, threads),
            _ => {}
        }
        let waited = self.count.waited(milliseconds);
        if waited >= STANDING {
            let longer = if self.has_counted { now - self.looked } else { Duration::from_millis(waited) };
            state.counters.metrics.add_thread_wait(!self.has_counted, longer.as_micros() as u64);
        }
        (self.looked, self.has_counted) = (now, waited >= STANDING);
        Some(self.pause(&state, now))
    }

    /// How long to wait for the next look.
    fn pause(&self, state: &State, now: Instant) -> Duration {
        match now - self.busy < AWAKE {
            true if now == self.busy => LOOK,
            true => LOOK * 2,
            false if self.threads > self.count.least() && state.counters.held_threads() == 0 => REST,
            false if state.lock().threads.let_watcher_sleep() => Duration::MAX,
            false => LOOK,
        }
    }

    /// Whether another thread could run, because the interpreter and a processor are free, if it is time to look. None: the
    /// interpreter is about to end.
    fn look_whether_one_could_run(
        &mut self,
        state: &State,
        now: Instant,
        is_busy: bool,
        waits: bool,
    ) -> Option<Option<bool>> {
        if !is_busy || now < self.interpreter.0 {
            return Some(None);
        }
        let is_free = self.pool.interpreter_wait()? <= AT_ONCE;
        let has_processor = is_free && self.has_processor(now, waits && self.threads < self.count.most());
        let pause = if has_processor { LOOK } else { (self.interpreter.1 * 2).min(SELDOM) };
        self.interpreter = (now + pause - LOOK / 2, pause);
        state.counters.metrics.add_interpreter_look(match (is_free, has_processor) {
            (false, _) => Found::Held,
            (true, false) => Found::NoProcessor,
            (true, true) => Found::Free,
        });
        Some(Some(has_processor))
    }

    /// Whether fewer threads run or wait for a processor than can run, without [`PROCESSOR`] if `anew`. Where other programs
    /// take the processors, that is not so: threads then do not hold the interpreter, and wait to run.
    fn has_processor(&mut self, now: Instant, anew: bool) -> bool {
        if anew || now >= self.processor.0 {
            let others = other_runnable_threads(self.processors);
            self.processor = (now + PROCESSOR, others.is_none_or(|others| others < self.processors));
        }
        self.processor.1
    }

    fn has_memory(&mut self, now: Instant) -> bool {
        if now >= self.memory.0 {
            self.memory = (now + MEMORY, self.limits.leave_room());
        }
        self.memory.1
    }

    fn add(&mut self, state: &State, now: Instant) {
        if !state.lock().threads.keep_one() && !self.pool.add() {
            self.memory = (now + RETRY, false);
            if self.warned.is_due() {
                state.log(Level::Warning, &format!("no thread can be made beside {} (threads = auto)", self.threads));
            }
            return;
        }
        state.counters.metrics.add_thread_changes(1, 0);
        self.set(state, self.threads + 1);
    }

    fn end(&mut self, state: &State, threads: usize) {
        state.lock().threads.end(threads);
        state.waiters.wake_followers(threads);
        state.counters.metrics.add_thread_changes(0, threads as u64);
        self.set(state, self.threads - threads);
    }

    fn set(&mut self, state: &State, threads: usize) {
        self.threads = threads;
        state.counters.set_slots(threads as u64);
    }
}
