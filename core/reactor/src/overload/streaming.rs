//! Finds running responses that only wait, and lets another thread serve beside theirs.
//!
//! A response streams when its first piece was sent more than a second ago, and its thread has waited since: for an event of
//! the application, or for its client. Such a thread needs no processor, so another one may serve in its place. A thread that
//! computes stays, however long that takes: more threads that compute would only slow down each other.
//!
//! This file knows the responses and decides; [`crate::scheduler::streaming`] asks it, from a thread of its own.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use crate::status::counters::Counters;
use crate::sys::process::{forks, thread_id};

/// Microseconds from the first piece of a response until it may count as one that streams.
pub(crate) const LONG: u64 = 1_000_000;

/// Microseconds over which a thread is watched at least, to tell whether it waits.
const WINDOW: u64 = 500_000;

/// Microseconds between two log lines about the bound.
const LOG_INTERVAL: u64 = 60_000_000;

/// Makes threads that serve.
pub trait ThreadPool: Send + Sync + std::fmt::Debug {
    /// Has another thread serve in the place of one whose response streams. `number`: of the request; `thread`: the native ID of
    /// its thread. `false`: none can be started.
    fn replace(&self, number: u64, thread: u32) -> bool;

    /// Starts one more. `false`: it cannot be started.
    fn add(&self) -> bool;

    /// How long a thread has to wait for the interpreter now. None: it is about to end.
    fn interpreter_wait(&self) -> Option<Duration>;
}

/// What a thread has done up to a moment, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The moment, of [`crate::sys::clock::precise_us`].
    pub(crate) at: u64,
    /// Time in which the thread ran, or waited for a processor. None: that cannot be had, and the thread counts as waiting.
    pub(crate) wanted: Option<u64>,
    /// Processor time of the whole process.
    pub(crate) process: u64,
}

/// Whether a thread has waited between two moments, beside `running` threads that run requests.
///
/// Its sleep alone does not tell: it may have slept because others held the interpreter's lock. Of that lock a thread that
/// computes has about the same share as all others that do.
fn has_waited(before: Usage, now: Usage, running: usize) -> bool {
    let (Some(begun), Some(wanted)) = (before.wanted, now.wanted) else { return true };
    let (elapsed, wanted) = (now.at.saturating_sub(before.at), wanted.saturating_sub(begun));
    let is_quiet = now.process.saturating_sub(before.process) < elapsed / 4;
    wanted < elapsed / 4 / running.max(1) as u64 || (is_quiet && wanted < elapsed / 4)
}

/// What has become of the thread of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// It counts among `threads`.
    #[default]
    Pool,
    /// Another thread serves in its place.
    Left,
    /// The thread runs the response no more.
    Ended,
}

/// A response of which a piece was sent, and its thread.
#[derive(Debug)]
pub(crate) struct Response {
    number: u64,
    /// Its thread as [`crate::scheduler::leader_followers`] numbers threads, and its native ID.
    pub(crate) thread: u64,
    pub(crate) thread_id: u32,
    /// When the first piece was sent, in microseconds of [`crate::sys::clock::precise_us`].
    begun: u64,
    /// Locked while its thread is replaced, which needs the interpreter: to be locked without it, or tried.
    place: Mutex<Place>,
    watched: Mutex<Watched>,
}

/// What is known of a response.
#[derive(Debug, Default)]
struct Watched {
    /// The last moment at which its thread was looked at.
    before: Option<Usage>,
    /// It counts as one that streams.
    streams: bool,
}

/// A response until its end.
#[derive(Debug)]
pub(crate) struct Streamed {
    response: Arc<Response>,
    streaming: Arc<Streaming>,
}

impl Drop for Streamed {
    fn drop(&mut self) {
        self.streaming.end(&self.response);
    }
}

#[derive(Debug, Default)]
struct Registry {
    /// By the numbers of their requests.
    responses: BTreeMap<u64, Arc<Response>>,
    /// A thread watches them.
    has_watcher: bool,
    /// Responses whose threads have left the count, and have not ended.
    left: usize,
    /// When it was logged that there may be no more, in microseconds of [`crate::sys::clock::precise_us`].
    logged: Option<u64>,
}

/// All responses of which a piece was sent.
#[derive(Debug)]
pub(crate) struct Streaming {
    registry: Mutex<Registry>,
    /// The most that leave the count of threads.
    pub(crate) most: usize,
    pool: Arc<dyn ThreadPool>,
    counters: &'static Counters,
    /// [`forks`] when it was made: in a fork its locks may be held by threads that exist only in the parent.
    forks: u64,
}

thread_local! {
    /// This thread has sent a piece of a response that did not consist of one, since it was asked by [`has_left`].
    static HAS_SENT: Cell<bool> = const { Cell::new(false) };
    /// That response.
    static LAST: RefCell<Option<(Arc<Response>, Arc<Streaming>)>> = const { RefCell::new(None) };
}

/// Whether another thread serves in the place of this one, which has run its request to the end. `wait`: calls what may wait for
/// a thread that needs the interpreter.
#[inline]
pub fn has_left(wait: impl FnOnce(&mut (dyn FnMut() + Send))) -> bool {
    HAS_SENT.get() && end_last(wait)
}

#[cold]
fn end_last(wait: impl FnOnce(&mut (dyn FnMut() + Send))) -> bool {
    // None: it has been told that, and is to serve no more.
    let Some((response, streaming)) = LAST.take() else { return true };
    let end = || std::mem::replace(&mut *lock(&response.place), Place::Ended);
    let mut place = Place::Pool;
    match response.place.try_lock() {
        _ if streaming.is_foreign() => {}
        Err(TryLockError::WouldBlock) => wait(&mut || place = end()),
        Ok(mut known) => place = std::mem::replace(&mut *known, Place::Ended),
        Err(TryLockError::Poisoned(_)) => place = end(),
    }
    HAS_SENT.set(place == Place::Left);
    if place == Place::Left {
        streaming.lock().left -= 1;
        streaming.counters.remove_left();
    }
    place == Place::Left
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Streaming {
    /// No response yet. At most `most` leave the count of threads of this pool.
    pub(crate) fn new(most: usize, pool: Arc<dyn ThreadPool>, counters: &'static Counters) -> Self {
        Streaming { registry: Mutex::default(), most, pool, counters, forks: forks() }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    fn is_foreign(&self) -> bool {
        self.forks != forks()
    }

    /// This thread has sent the first piece of the response to a request. `true`: nobody watches the responses yet.
    pub(crate) fn begin(self: &Arc<Self>, number: u64, thread: u64, begun: u64) -> (Streamed, bool) {
        let (place, watched) = (Mutex::default(), Mutex::default());
        let response = Arc::new(Response { number, thread, thread_id: thread_id(), begun, place, watched });
        HAS_SENT.set(true);
        LAST.set(Some((Arc::clone(&response), Arc::clone(self))));
        let mut registry = self.lock();
        registry.responses.insert(number, Arc::clone(&response));
        let is_first = !std::mem::replace(&mut registry.has_watcher, true);
        drop(registry);
        (Streamed { response, streaming: Arc::clone(self) }, is_first)
    }

    /// The response is over.
    fn end(&self, response: &Response) {
        if self.is_foreign() {
            return;
        }
        let mut registry = self.lock();
        registry.responses.remove(&response.number);
        if std::mem::take(&mut lock(&response.watched).streams) {
            self.counters.remove_streaming();
        }
    }

    /// Responses are watched no more.
    pub(crate) fn end_watch(&self) {
        self.lock().has_watcher = false;
    }

    /// The same if there are none. `false`: there are.
    pub(crate) fn end_watch_if_empty(&self) -> bool {
        let mut registry = self.lock();
        if registry.responses.is_empty() {
            registry.has_watcher = false;
        }
        !registry.has_watcher
    }

    /// The responses of which a piece was sent.
    pub(crate) fn responses(&self) -> Vec<Arc<Response>> {
        self.lock().responses.values().map(Arc::clone).collect()
    }

    /// Whether the thread of a response may leave the count: the response streams, and there is room. It looks at the thread by
    /// `usage`, if that is necessary; `running`: threads that run requests.
    pub(crate) fn may_leave(&self, response: &Response, running: usize, usage: impl FnOnce() -> Usage) -> MayLeave {
        let registry = self.lock();
        if !registry.responses.contains_key(&response.number) {
            return MayLeave::No;
        }
        let has_room = registry.left < self.most;
        let mut watched = lock(&response.watched);
        if !watched.streams {
            let usage = usage();
            match watched.before {
                Some(before) if usage.at < before.at + WINDOW || usage.at < response.begun + LONG => {
                    return MayLeave::No;
                }
                Some(before) if has_waited(before, usage, running) => watched.streams = true,
                _ => {
                    watched.before = Some(usage);
                    return MayLeave::No;
                }
            }
            self.counters.add_streaming();
        }
        match has_room {
            true => MayLeave::Yes,
            false => MayLeave::TooMany,
        }
    }

    /// Has another thread serve in the place of that of a response, unless this has happened or the thread has ended the
    /// request. `None`: no thread can be started.
    pub(crate) fn leave(&self, response: &Response) -> Option<bool> {
        let mut place = lock(&response.place);
        if *place != Place::Pool {
            return Some(false);
        }
        if !self.pool.replace(response.number, response.thread_id) {
            return None;
        }
        *place = Place::Left;
        self.counters.add_left();
        self.lock().left += 1;
        Some(true)
    }

    /// Whether it is time to log that a response has to stay, as so many have left, or no thread can be started.
    pub(crate) fn takes_message(&self, now: u64) -> bool {
        let mut registry = self.lock();
        let is_due = registry.logged.is_none_or(|logged| now >= logged + LOG_INTERVAL);
        if is_due {
            registry.logged = Some(now);
        }
        is_due
    }
}

impl Response {
    /// Whether its thread counts among `threads`.
    pub(crate) fn is_in_pool(&self) -> bool {
        // While it is locked, its thread is being replaced.
        self.place.try_lock().is_ok_and(|place| *place == Place::Pool)
    }
}

/// Answer of [`Streaming::may_leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayLeave {
    Yes,
    /// It does not stream, or not yet.
    No,
    /// It streams, but as many have left as may.
    TooMany,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Threads(AtomicUsize);

    impl ThreadPool for Threads {
        fn replace(&self, _: u64, _: u32) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed) < 2
        }

        fn add(&self) -> bool {
            false
        }

        fn interpreter_wait(&self) -> Option<Duration> {
            None
        }
    }

    const NEVER_WAITS: fn(&mut (dyn FnMut() + Send)) = |_| panic!("nobody holds the lock");

    fn usage(at: u64, wanted: u64, process: u64) -> Usage {
        Usage { at, wanted: Some(wanted), process }
    }

    fn streaming(most: usize) -> Arc<Streaming> {
        Arc::new(Streaming::new(most, Arc::new(Threads::default()), Box::leak(Box::default())))
    }

    /// The number of responses that stream, and of those that have left.
    fn counted(streaming: &Streaming) -> (u64, u64) {
        let counts = streaming.counters.counts();
        (counts.streaming, counts.left)
    }

    #[test]
    fn who_waits_and_who_computes() {
        let begun = usage(0, 0, 0);
        let waited = |wanted, process, running| has_waited(begun, usage(1_000_000, wanted, process), running);
        assert!(waited(1_000, 2_000, 1), "an idle server");
        assert!(waited(1_000, 990_000, 8), "others compute");
        assert!(waited(50_000, 100_000, 8), "an event each 20 ms; nobody else computes");
        assert!(!waited(990_000, 990_000, 1), "it computes alone");
        assert!(!waited(120_000, 990_000, 8), "with seven others");
        assert!(!waited(500_000, 100_000, 2), "it waits for a processor");
        assert!(has_waited(begun, Usage { wanted: None, ..usage(1_000_000, 0, 0) }, 1));
    }

    #[test]
    fn a_response_leaves_after_a_second() {
        let streaming = streaming(1);
        let (first, begins_watch) = streaming.begin(7, 1, 1_000);
        assert!(begins_watch && !streaming.end_watch_if_empty());
        let [response] = &streaming.responses()[..] else { panic!("not one") };
        let ask = |at, wanted| streaming.may_leave(response, 1, || usage(at, wanted, wanted));
        assert_eq!(ask(250_000, 0), MayLeave::No);
        assert_eq!(ask(LONG, 0), MayLeave::No, "not yet for a second");
        assert_eq!(ask(LONG + 1_000, 800_000), MayLeave::No, "it has computed");
        assert_eq!(ask(LONG + 2_000, 800_000), MayLeave::No, "not watched for long enough since");
        assert_eq!(counted(&streaming), (0, 0));
        assert_eq!(ask(2 * LONG + 1_000, 801_000), MayLeave::Yes);
        assert!(response.is_in_pool());
        assert_eq!((streaming.leave(response), streaming.leave(response)), (Some(true), Some(false)));
        assert!(!response.is_in_pool());
        assert_eq!(counted(&streaming), (1, 1));
        drop(first);
        assert_eq!(counted(&streaming), (0, 1));
        assert!(has_left(NEVER_WAITS) && has_left(NEVER_WAITS));
        assert_eq!(counted(&streaming), (0, 0));
        assert!(streaming.end_watch_if_empty());
    }

    #[test]
    fn as_many_leave_as_may() {
        let streaming = streaming(1);
        // Each in a thread of its own.
        let (first, second) = (streaming.begin(1, 1, 0).0, streaming.begin(2, 2, 0).0);
        let ask = |streamed: &Streamed, at| streaming.may_leave(&streamed.response, 1, || usage(at, 0, 0));
        for streamed in [&first, &second] {
            assert_eq!((ask(streamed, 1), ask(streamed, LONG + 1)), (MayLeave::No, MayLeave::Yes));
        }
        assert_eq!(streaming.leave(&first.response), Some(true));
        assert_eq!(ask(&second, LONG + 2), MayLeave::TooMany);
        assert_eq!(counted(&streaming), (2, 1));
        assert!(streaming.takes_message(LONG) && !streaming.takes_message(LONG + LOG_INTERVAL - 1));
        assert!(streaming.takes_message(LONG + LOG_INTERVAL));
    }

    #[test]
    fn a_response_that_ends_at_once_does_not_leave() {
        let streaming = streaming(9);
        let streamed = streaming.begin(1, 1, 0).0;
        let response = Arc::clone(&streamed.response);
        drop(streamed);
        assert_eq!(streaming.may_leave(&response, 1, || panic!("it is over")), MayLeave::No);
        assert!(!has_left(NEVER_WAITS), "the thread goes on");
        assert_eq!(streaming.leave(&response), Some(false), "its thread runs another request");
        assert_eq!(counted(&streaming), (0, 0));
    }

    #[test]
    fn no_thread_can_be_started() {
        let streaming = streaming(9);
        let all: Vec<_> = (1..4).map(|number| streaming.begin(number, number, 0).0).collect();
        let left: Vec<_> = all.iter().map(|streamed| streaming.leave(&streamed.response)).collect();
        assert_eq!(left, [Some(true), Some(true), None]);
        assert!(all[2].response.is_in_pool());
    }
}
