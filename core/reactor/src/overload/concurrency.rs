//! Decides how many threads run applications in an overload.
//!
//! If applications compute all the time, and only one at a time can, more threads at once do not answer more requests: each
//! request only takes longer, and some very long. If they wait for something else, more threads answer more.

use std::ops::Range;
use std::time::{Duration, Instant};

/// Interval at which the number of threads is changed.
pub const STEP: Duration = Duration::from_millis(100);
/// The least number: one computes while another waits for something else.
const LEAST: usize = 2;
/// Share of the time from which on the process uses a processor all the time.
const BUSY: f64 = 0.95;
/// The share that applications have, with one at a time. More is computed outside the interpreter, by several at once.
const COMPUTING: Range<f64> = 0.75..1.05;

/// How many threads may run applications.
#[derive(Debug, Default)]
pub struct Concurrency {
    limit: Option<usize>,
    /// When the limit was last set, and the processor time of the process then.
    since: Option<(Instant, Duration)>,
    /// Processor time of applications since then.
    computed: Duration,
}

impl Concurrency {
    /// Whether one more may run an application beside so many.
    pub fn has_room(&self, running: usize) -> bool {
        self.limit.is_none_or(|limit| running < limit)
    }

    /// Adds the processor time of an application.
    pub fn add(&mut self, computed: Duration) {
        self.computed += computed;
    }

    /// Changes the limit, if it is time. `used`: processor time of the process.
    pub fn update(&mut self, is_overloaded: bool, running: usize, now: Instant, used: impl FnOnce() -> Duration) {
        if !is_overloaded {
            *self = Concurrency::default();
            return;
        }
        let elapsed = self.since.map_or(STEP, |(since, _)| now - since);
        if elapsed < STEP {
            return;
        }
        let used = used();
        if let Some((_, before)) = self.since {
            let share = |time: Duration| time.as_secs_f64() / elapsed.as_secs_f64();
            let is_computing = share(used - before) >= BUSY && COMPUTING.contains(&share(self.computed));
            let limit = self.limit.unwrap_or(running);
            self.limit = Some(if is_computing { (limit - 1).max(LEAST) } else { limit + 2 });
        }
        (self.since, self.computed) = (Some((now, used)), Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: usize = 8;

    /// How many of eight threads may run after two seconds, and on average in them. `share`: those of the process and of
    /// applications, by the number of threads.
    fn threads(share: impl Fn(usize) -> (f64, f64)) -> (usize, usize) {
        let (mut concurrency, mut now, mut used) = (Concurrency::default(), Instant::now(), Duration::ZERO);
        let mut counts = Vec::new();
        for _ in 0..20 {
            let running = (0..THREADS).take_while(|running| concurrency.has_room(*running)).count();
            counts.push(running);
            concurrency.update(true, running, now, || used);
            let (all, applications) = share(running);
            now += STEP;
            used += STEP.mul_f64(all);
            concurrency.add(STEP.mul_f64(applications));
        }
        (counts[19], counts.iter().sum::<usize>() / counts.len())
    }

    #[test]
    fn two_threads_compute() {
        assert_eq!(threads(|_| (1.0, 0.9)).0, LEAST);
    }

    #[test]
    fn all_threads_wait() {
        assert_eq!(threads(|_| (0.3, 0.1)), (8, 8), "nobody computes");
        assert_eq!(threads(|_| (1.0, 0.1)), (8, 8), "the server itself needs the processor");
        assert_eq!(threads(|_| (1.9, 1.8)), (8, 8), "they compute outside the interpreter");
    }

    #[test]
    fn as_many_as_are_needed_compute_and_wait() {
        // 5 ms each, and 20 ms of waiting: five use the processor all the time.
        let (_, mean) = threads(|running| ((running as f64 / 5.0).min(1.0), (running as f64 / 5.0).min(1.0)));
        assert!((5..=6).contains(&mean), "{mean}");
    }

    #[test]
    fn all_may_run_again_without_overload() {
        let mut concurrency = Concurrency { limit: Some(2), ..Concurrency::default() };
        assert!(!concurrency.has_room(2));
        concurrency.update(false, 2, Instant::now(), || Duration::ZERO);
        assert!(concurrency.has_room(1_000));
    }
}
