//! Queue for Python's GIL: requests that wait while other threads compute, and the switch interval of the interpreter.
//!
//! Python gives the GIL to any waiting thread, not to the first one. So a thread that has waited for the GIL with a request
//! runs the request that has waited longest instead; a thread that has answered a request does the same before it releases
//! the GIL.
//!
//! - **Short requests beside long ones.** A thread that computes releases the lock after the switch interval (5 ms), and the
//!   lock changes hands many times until a certain thread has it. If a request had to wait for far longer than it needed,
//!   because others compute for long, the interval is 1 ms for the next second. Where all compute for as long, it stays:
//!   each switch costs processor time.
//! - **Overload.** If more is asked for than can be answered, fewer threads may run requests ([`Concurrency`]).

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use poorhttp_reactor::{Concurrency, Exchange, Metrics, Reactor, STEP};
use pyo3::prelude::*;
use rustix::time::{ClockId, clock_gettime};

use crate::lock;

/// Python's switch interval. Another one was set by the application, which keeps it.
const USUAL: Duration = Duration::from_millis(5);
/// The switch interval while short requests wait for long ones.
const SHORT: Duration = Duration::from_millis(1);
/// For how long it is short after the last request that has waited too long.
const LASTS: Duration = Duration::from_secs(1);
/// A request has waited too long if so many times the requests answered meanwhile, had they been as short, would have
/// taken less time.
const FAR: u32 = 8;

struct Waiting {
    exchange: Exchange,
    since: Instant,
    /// [`State::answered`] at that time.
    answered: u32,
}

/// The present request of a thread, which had to wait.
#[derive(Clone, Copy)]
struct Delayed {
    waited: Duration,
    /// Requests answered meanwhile, and itself.
    shared_by: u32,
    started: Instant,
}

thread_local! {
    /// This thread counts in [`State::running`].
    static RUNS: Cell<bool> = const { Cell::new(false) };
    static DELAYED: Cell<Option<Delayed>> = const { Cell::new(None) };
    /// Processor time of this thread when it began to run its request, in an overload.
    static BEGUN: Cell<Option<Duration>> = const { Cell::new(None) };
}

#[derive(Default)]
struct State {
    /// Complete requests, the oldest first.
    waiting: VecDeque<Waiting>,
    /// Threads that run a request, or wait for the interpreter to run one.
    running: usize,
    /// Requests answered so far.
    answered: u32,
    concurrency: Concurrency,
    /// Until when the switch interval is short, if it is.
    short_until: Option<Instant>,
}

impl State {
    fn update_concurrency(&mut self, reactor: &Reactor) {
        let used = || processor_time(ClockId::ProcessCPUTime);
        self.concurrency.update(reactor.is_overloaded(), self.running, Instant::now(), used);
    }
}

pub(crate) struct GilQueue {
    state: Mutex<State>,
    /// Of the requests that wait, and for how long.
    metrics: &'static Metrics,
    /// Threads that may not run a request now. They look again after a step.
    barred: Condvar,
}

impl GilQueue {
    /// Publishes what waits in `metrics`.
    pub(crate) fn new(metrics: &'static Metrics) -> Self {
        GilQueue { state: Mutex::default(), metrics, barred: Condvar::new() }
    }

    /// The next request that waits, for a thread that has answered one and has the interpreter. `None`: none waits.
    #[inline]
    pub(crate) fn next(&self, py: Python<'_>, reactor: &Reactor) -> Option<Exchange> {
        if !RUNS.get() {
            return None;
        }
        let delayed = DELAYED.take();
        let computed = BEGUN.take().map(|begun| processor_time(ClockId::ThreadCPUTime) - begun);
        let mut state = lock(&self.state);
        state.concurrency.add(computed.unwrap_or_default());
        state.answered = state.answered.wrapping_add(1);
        let interval = delayed.and_then(|delayed| judge(&mut state, delayed));
        let others = state.running.saturating_sub(1);
        if !state.concurrency.has_room(others) {
            state.running = others;
            drop(state);
            py.detach(|| self.wait_for_room(lock(&self.state), reactor));
            state = lock(&self.state);
        }
        let next = self.take(&mut state);
        drop(state);
        if let Some((from, to)) = interval {
            // No error: both functions are part of `sys`.
            let _ = set_switch_interval(py, from, to);
        }
        next
    }

    /// The request that has waited longest, for a thread that has waited for the interpreter.
    pub(crate) fn first(&self) -> Option<Exchange> {
        self.take(&mut lock(&self.state))
    }

    /// A thread begins to run a request.
    #[inline]
    pub(crate) fn note_run(&self, reactor: &Reactor) {
        if !RUNS.replace(true) {
            lock(&self.state).running += 1;
        }
        if reactor.is_overloaded() {
            BEGUN.set(Some(processor_time(ClockId::ThreadCPUTime)));
        }
    }

    /// A thread has no request any more. The request that it must take nevertheless, if one has come.
    pub(crate) fn leave(&self) -> Option<Exchange> {
        if !RUNS.get() {
            return None;
        }
        let mut state = lock(&self.state);
        let next = self.take(&mut state);
        if next.is_none() {
            RUNS.set(false);
            // An exception may have ended the loop in which this thread served another reactor.
            state.running = state.running.saturating_sub(1);
        }
        next
    }

    /// A thread goes on with its request, but does not count any more.
    pub(crate) fn note_left(&self) {
        if RUNS.replace(false) {
            let mut state = lock(&self.state);
            state.running = state.running.saturating_sub(1);
        }
    }

    /// The same for another thread, which ends with its request.
    pub(crate) fn note_replaced(&self) {
        let mut state = lock(&self.state);
        state.running = state.running.saturating_sub(1);
    }

    /// This thread was replaced, and ends.
    pub(crate) fn end_replaced(&self) {
        RUNS.set(false);
        BEGUN.set(None);
        DELAYED.set(None);
    }

    /// Whether a thread that does not have the interpreter may run its request at once, because no other runs one. It counts then.
    #[inline]
    pub(crate) fn begins_at_once(&self) -> bool {
        let mut state = lock(&self.state);
        let is_free = state.running == 0;
        if is_free {
            RUNS.set(true);
            state.running = 1;
        }
        is_free
    }

    /// Adds the request of a thread that does not have the interpreter, and waits until that thread may run one.
    pub(crate) fn add(&self, reactor: &Reactor, exchange: Exchange) {
        let mut state = lock(&self.state);
        RUNS.set(true);
        let answered = state.answered;
        state.waiting.push_back(Waiting { exchange, since: Instant::now(), answered });
        self.metrics.set_waiting_for_interpreter(state.waiting.len());
        self.wait_for_room(state, reactor);
    }

    fn take(&self, state: &mut State) -> Option<Exchange> {
        let Waiting { exchange, since, answered } = state.waiting.pop_front()?;
        let started = Instant::now();
        let waited = started - since;
        if waited >= SHORT {
            let shared_by = state.answered.wrapping_sub(answered) + 1;
            DELAYED.set(Some(Delayed { waited, shared_by, started }));
        }
        self.metrics.set_waiting_for_interpreter(state.waiting.len());
        self.metrics.add_interpreter_wait(waited.as_micros() as u64);
        Some(exchange)
    }

    /// Waits until this thread may run a request, and counts it.
    fn wait_for_room(&self, mut state: MutexGuard<'_, State>, reactor: &Reactor) {
        state.update_concurrency(reactor);
        while !state.concurrency.has_room(state.running) {
            state = self.barred.wait_timeout(state, STEP).unwrap_or_else(PoisonError::into_inner).0;
            state.update_concurrency(reactor);
        }
        state.running += 1;
    }
}

fn processor_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The change of the switch interval for which a request is the reason that had to wait.
fn judge(state: &mut State, delayed: Delayed) -> Option<(Duration, Duration)> {
    let now = Instant::now();
    let is_far = (now - delayed.started).saturating_mul(delayed.shared_by.saturating_mul(FAR)) < delayed.waited;
    match state.short_until {
        None if is_far && delayed.waited >= USUAL => {
            state.short_until = Some(now + LASTS);
            Some((USUAL, SHORT))
        }
        Some(_) if is_far => {
            state.short_until = Some(now + LASTS);
            None
        }
        Some(until) if now > until => {
            state.short_until = None;
            Some((SHORT, USUAL))
        }
        _ => None,
    }
}

/// Changes the switch interval, unless the application has changed it.
fn set_switch_interval(py: Python<'_>, from: Duration, to: Duration) -> PyResult<()> {
    let sys = py.import("sys")?;
    let current = sys.call_method0("getswitchinterval")?.extract::<f64>()?;
    if (current - from.as_secs_f64()).abs() < 1e-6 {
        sys.call_method1("setswitchinterval", (to.as_secs_f64(),))?;
    }
    Ok(())
}
