//! Tests [`ThreadCount`] over made-up loads: a worker with an interpreter that one thread at a time can have, a processor that
//! other programs may take from it, and clients.
//!
//! A request computes, and then waits for something else, perhaps for one of few connections to a database. `SIMULATION=FILE`
//! writes what has happened in each second, for plots.

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::*;

/// Microseconds of a step.
const STEP: u64 = 250;
/// Microseconds after which a thread gives the interpreter to one that waits for it.
const SWITCH: u64 = 5_000;
/// Microseconds between two looks.
const LOOK: u64 = 5_000;
const SECOND: u64 = 1_000_000;
/// Bounds of the number of threads in all cases.
const LEAST: usize = 4;
const MOST: usize = 64;
/// Microseconds for which the worker has the processor, and then each of the other programs.
const SLICE: u64 = 3_000;

/// What is asked of the worker.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Clients, each of which sends its next request when it has the response.
    clients: usize,
    /// Milliseconds for which a request computes, and for which it waits, on average.
    computes: f64,
    waits: f64,
    /// Connections of the pool for which it waits; 0: there is no pool.
    pool: usize,
    /// Other programs that compute, each of which gets as much of the processor as the worker.
    others: u64,
    /// The reactor says that more is asked for than can be answered.
    is_overload: bool,
}

const IDLE: Load = Load { clients: 0, computes: 0.0, waits: 0.0, pool: 0, others: 0, is_overload: false };
const WAITS_100: Load = Load { clients: 40, computes: 0.5, waits: 100.0, ..IDLE };
const WAITS_1000: Load = Load { clients: 60, computes: 0.5, waits: 1_000.0, ..IDLE };
const COMPUTES: Load = Load { clients: 60, computes: 5.0, ..IDLE };
const MIXED: Load = Load { clients: 60, computes: 5.0, waits: 60.0, ..IDLE };
const POOL_OF_5: Load = Load { clients: 40, computes: 0.5, waits: 20.0, pool: 5, ..IDLE };
const OTHERS: u64 = 4;
const FOR_EVER: f64 = 1e9;

/// What is expected at the end of a part of a case: the number of threads, and at least so much of the throughput of the best
/// fixed number.
struct Part {
    seconds: u64,
    load: Load,
    threads: std::ops::RangeInclusive<usize>,
}

const fn part(seconds: u64, load: Load, threads: std::ops::RangeInclusive<usize>) -> Part {
    Part { seconds, load, threads }
}

const CASES: &[(&str, &[Part])] = &[
    ("step", &[part(10, IDLE, 4..=4), part(10, WAITS_100, 40..=42), part(60, IDLE, 4..=4)]),
    ("waits 1 ms", &[part(20, Load { waits: 1.0, computes: 0.25, ..WAITS_100 }, 5..=12)]),
    ("waits 10 ms", &[part(20, Load { waits: 10.0, computes: 0.25, ..WAITS_100 }, 27..=41)]),
    ("waits 1,000 ms", &[part(10, WAITS_1000, 60..=62), part(60, IDLE, 4..=4)]),
    ("more clients than threads", &[part(10, Load { clients: 200, ..WAITS_1000 }, MOST..=MOST)]),
    ("computes 1 ms", &[part(20, Load { computes: 1.0, ..COMPUTES }, 4..=5)]),
    ("computes 5 ms", &[part(20, COMPUTES, 4..=4)]),
    ("computes 50 ms", &[part(20, Load { computes: 50.0, ..COMPUTES }, 4..=4)]),
    (
        "waits 10 ms beside other programs",
        &[part(20, Load { waits: 10.0, computes: 0.25, others: OTHERS, ..WAITS_100 }, 4..=16)],
    ),
    ("waits 100 ms beside other programs", &[part(20, Load { computes: 0.25, others: OTHERS, ..WAITS_100 }, 38..=42)]),
    ("computes 1 ms beside other programs", &[part(20, Load { computes: 1.0, others: OTHERS, ..COMPUTES }, 4..=5)]),
    (
        "a slow database, then other programs",
        &[
            part(15, WAITS_100, 40..=42),
            part(60, Load { waits: 10.0, computes: 0.25, others: OTHERS, ..WAITS_100 }, 4..=16),
        ],
    ),
    ("mixed", &[part(60, MIXED, 12..=24)]),
    ("slow database, then a fast one", &[part(15, WAITS_100, 40..=42), part(60, COMPUTES, 4..=4)]),
    ("fast database, then a slow one", &[part(15, COMPUTES, 4..=4), part(10, WAITS_100, 40..=42)]),
    ("pool of five", &[part(20, POOL_OF_5, 40..=42), part(60, Load { clients: 0, ..POOL_OF_5 }, 4..=4)]),
    ("deadlocked pool", &[part(20, Load { clients: 500, pool: 1, waits: FOR_EVER, ..WAITS_100 }, MOST..=MOST)]),
    ("overload", &[part(5, COMPUTES, 4..=4), part(20, Load { is_overload: true, ..WAITS_100 }, 4..=4)]),
    ("steady for ten minutes", &[part(60, MIXED, 8..=24), part(600, MIXED, 8..=24)]),
    (
        "bursts",
        &[
            part(4, WAITS_100, 40..=42),
            part(4, IDLE, 40..=42),
            part(4, WAITS_100, 40..=42),
            part(4, IDLE, 40..=42),
            part(4, WAITS_100, 40..=42),
        ],
    ),
];

struct Job {
    computes: u64,
    waits: u64,
}

/// A worker and its clients.
struct Worker {
    threads: usize,
    /// Threads that end after their requests.
    ending: usize,
    /// Requests that no thread has.
    queue: usize,
    /// Those that compute, or wait for the interpreter; the first has it, since so many microseconds.
    computing: VecDeque<Job>,
    had: u64,
    /// The worker has the processor, and microseconds of it that are its due.
    runs: bool,
    due: u64,
    waiting: Vec<Job>,
    /// Those that wait for a connection to the database.
    for_pool: VecDeque<Job>,
    answered: u64,
    random: u64,
}

impl Worker {
    fn new(threads: usize) -> Self {
        let (computing, waiting, for_pool) = (VecDeque::new(), Vec::new(), VecDeque::new());
        Worker {
            threads,
            ending: 0,
            queue: 0,
            computing,
            had: 0,
            runs: true,
            due: SLICE,
            waiting,
            for_pool,
            answered: 0,
            random: 7,
        }
    }

    /// Microseconds, half as many to one and a half times as many as on average.
    fn about(&mut self, milliseconds: f64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = (self.random >> 40) as f64 / f64::from(1 << 24);
        (milliseconds * 1_000.0 * (0.5 + share)) as u64
    }

    fn busy(&self) -> usize {
        self.computing.len() + self.waiting.len() + self.for_pool.len()
    }

    fn idle(&self) -> usize {
        self.threads.saturating_sub(self.busy())
    }

    /// Whether the worker has the processor in this step, which it gets when a whole slice is its due.
    fn has_processor(&mut self, others: u64) -> bool {
        self.due = (self.due + STEP / (others + 1)).min(SLICE);
        self.runs = !self.computing.is_empty() && self.due >= if self.runs { STEP } else { SLICE };
        if self.runs && others > 0 {
            self.due -= STEP;
        }
        self.runs
    }

    fn step(&mut self, load: &Load) {
        self.queue = load.clients.saturating_sub(self.busy());
        while self.ending > 0 && self.idle() > 0 {
            (self.threads, self.ending) = (self.threads - 1, self.ending - 1);
        }
        for _ in 0..self.queue.min(self.idle()) {
            self.queue -= 1;
            let job = Job { computes: self.about(load.computes), waits: self.about(load.waits) };
            self.computing.push_back(job);
        }
        if self.has_processor(load.others)
            && let Some(first) = self.computing.front_mut()
        {
            first.computes = first.computes.saturating_sub(STEP);
            self.had += STEP;
            if first.computes == 0 || self.had >= SWITCH {
                self.had = 0;
                match self.computing.pop_front() {
                    Some(first) if first.computes > 0 => self.computing.push_back(first),
                    Some(first) if load.pool > 0 => self.for_pool.push_back(first),
                    first => self.waiting.extend(first),
                }
            }
        }
        while load.pool > self.waiting.len()
            && let Some(next) = self.for_pool.pop_front()
        {
            self.waiting.push(next);
        }
        let before = self.waiting.len();
        self.waiting.iter_mut().for_each(|job| job.waits = job.waits.saturating_sub(STEP));
        self.waiting.retain(|job| job.waits > 0);
        self.answered += (before - self.waiting.len()) as u64;
    }
}

/// One second of a simulation.
struct Second {
    part: usize,
    threads: usize,
    answered: u64,
    queue: usize,
}

/// Runs the parts of a case, with a fixed number of threads if `fixed`.
fn run(parts: &[Part], fixed: Option<usize>) -> Vec<Second> {
    let mut worker = Worker::new(fixed.unwrap_or(LEAST));
    let mut count = ThreadCount::new(LEAST, MOST, 0);
    let (mut seconds, mut now, mut idle) = (Vec::new(), 0, usize::MAX);
    for (number, Part { seconds: length, load, .. }) in parts.iter().enumerate() {
        for _ in 0..*length {
            let before = worker.answered;
            for _ in 0..SECOND / STEP {
                worker.step(load);
                now += STEP;
                idle = idle.min(worker.idle());
                if fixed.is_none() && now % LOOK == 0 {
                    let is_full = worker.idle() == 0;
                    // Those that do not have the interpreter wait for it or for the processor.
                    let is_free = worker.computing.is_empty();
                    let look = Look {
                        now: now / 1_000,
                        threads: worker.threads - worker.ending,
                        idle: std::mem::replace(&mut idle, usize::MAX),
                        waits: is_full && worker.queue > 0,
                        could_run: is_full.then_some(is_free),
                        is_overloaded: load.is_overload,
                        has_memory: true,
                    };
                    match count.decide(&look) {
                        Change::None => {}
                        Change::Add => {
                            assert!(is_free && !load.is_overload, "a thread was made in vain: {look:?}");
                            match worker.ending {
                                0 => worker.threads += 1,
                                _ => worker.ending -= 1,
                            }
                        }
                        Change::End(threads) => worker.ending += threads,
                    }
                    assert!((LEAST..=MOST).contains(&(worker.threads - worker.ending)));
                }
            }
            let threads = worker.threads - worker.ending;
            seconds.push(Second { part: number, threads, answered: worker.answered - before, queue: worker.queue });
        }
    }
    seconds
}

/// Requests answered in each of the last three seconds of a part.
fn rate(seconds: &[Second], part: usize) -> f64 {
    let last: Vec<_> = seconds.iter().rev().filter(|second| second.part == part).take(3).collect();
    last.iter().map(|second| second.answered as f64).sum::<f64>() / last.len() as f64
}

/// The highest rate with any fixed number of threads.
fn best(load: Load) -> f64 {
    let parts = [part(8, load, 0..=0)];
    [1, 2, 4, 8, 16, 32, 64].map(|threads| rate(&run(&parts, Some(threads)), 0)).into_iter().fold(0.0, f64::max)
}

#[test]
fn follows_the_load() {
    let (mut table, mut wrong) = (String::from("case,second,part,threads,answered,queue\n"), String::new());
    for (name, parts) in CASES {
        let seconds = run(parts, None);
        for (number, expected) in parts.iter().enumerate() {
            let last = seconds.iter().rev().find(|second| second.part == number).map_or(0, |second| second.threads);
            if !expected.threads.contains(&last) {
                let _ = writeln!(wrong, "{name}, part {number}: {last} threads instead of {:?}", expected.threads);
            }
            let (rate, best) = (rate(&seconds, number), best(expected.load));
            if rate < 0.95 * best && !expected.load.is_overload {
                let _ = writeln!(wrong, "{name}, part {number}: {rate:.0} requests/s instead of {best:.0}");
            }
        }
        for (at, second) in seconds.iter().enumerate() {
            let Second { part, threads, answered, queue } = second;
            let _ = writeln!(table, "\"{name}\",{at},{part},{threads},{answered},{queue}");
        }
    }
    if let Some(file) = std::env::var_os("SIMULATION") {
        std::fs::write(&file, table).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn stays_in_a_steady_load() {
    let Some((_, parts)) = CASES.iter().find(|(name, _)| name.starts_with("steady")) else { panic!("no such case") };
    let threads: Vec<_> =
        run(parts, None).iter().filter(|second| second.part == 1).map(|second| second.threads).collect();
    let (least, most) = (threads.iter().min(), threads.iter().max());
    assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{least:?} to {most:?}");
}

/// A worker with 40 threads, none of which is idle, and requests that wait.
fn look(now: u64, is_free: bool) -> Look {
    Look { now, threads: 40, idle: 0, waits: true, could_run: Some(is_free), is_overloaded: false, has_memory: true }
}

#[test]
fn one_look_is_not_enough() {
    let mut count = ThreadCount::new(LEAST, MOST, 0);
    let looks = [look(0, true), look(5, false), look(10, true), look(15, true), look(20, true)];
    let changes = looks.map(|look| count.decide(&look));
    assert_eq!(changes, [Change::None, Change::None, Change::None, Change::Add, Change::Add]);
    let waits_anew = [Look { waits: false, ..look(25, true) }, look(30, true), look(35, true)];
    assert_eq!(waits_anew.map(|look| count.decide(&look)), [Change::None, Change::None, Change::Add]);
    assert_eq!(count.decide(&Look { has_memory: false, ..look(40, true) }), Change::None);
    assert_eq!((count.waited(40), count.decide(&Look { threads: MOST, ..look(45, true) })), (10, Change::None));
}

#[test]
fn one_look_is_enough_if_another_thread_could_often_run() {
    let mut count = ThreadCount::new(LEAST, MOST, 0);
    for now in (0..1_000).step_by(5) {
        assert_eq!(count.decide(&Look { waits: false, ..look(now, now % 20 == 0) }), Change::None);
    }
    assert_eq!(count.decide(&look(1_005, false)), Change::None);
    assert_eq!(count.decide(&look(1_010, true)), Change::Add);
}

#[test]
fn idle_threads_end_after_the_whole_window() {
    let mut count = ThreadCount::new(LEAST, MOST, 0);
    let mut idle = |now, idle| count.decide(&Look { waits: false, could_run: None, idle, ..look(now, true) });
    assert_eq!(idle(1, 30), Change::None, "it has just begun");
    assert_eq!(idle(HALF, 30), Change::None, "nothing is known of the time before");
    assert_eq!(idle(HALF + 1, 20), Change::None);
    assert_eq!(idle(2 * HALF, 30), Change::None, "some were needed just now");
    assert_eq!(idle(3 * HALF, 30), Change::End(19), "all but one of those that were not needed");
    assert_eq!(idle(4 * HALF, 2), Change::None, "so many may be idle");
}

/// How often threads are to end while the interpreter is held, in so many milliseconds.
fn ends(count: &mut ThreadCount, times: std::ops::Range<u64>) -> usize {
    times.step_by(20).filter(|now| matches!(count.decide(&look(*now, false)), Change::End(_))).count()
}

#[test]
fn threads_that_were_missed_are_kept() {
    let mut count = ThreadCount::new(LEAST, MOST, 0);
    assert!(ends(&mut count, 0..25_000) > 0);
    assert!((25_000..26_000).step_by(5).any(|now| count.decide(&look(now, true)) == Change::Add));
    assert_eq!(ends(&mut count, 26_000..25_000 + KEPT), 0);
    assert!(ends(&mut count, 26_000 + KEPT..60_000 + KEPT) > 0);
}

#[test]
fn threads_that_are_missed_are_back_soon() {
    let mut count = ThreadCount::new(LEAST, MOST, 0);
    let Some(ended) = (0..25_000).step_by(20).find(|now| count.decide(&look(*now, false)) != Change::None) else {
        panic!("no thread has ended")
    };
    let mut looks = (ended..ended + 30_000).step_by(5).skip(1);
    let added = looks.find(|now| count.decide(&look(*now, now % 7 == 0)) == Change::Add);
    assert!(added.is_some_and(|added| added < ended + 500), "{added:?} after {ended}");
}

#[test]
fn a_new_thread_is_kept_for_a_while() {
    let mut count = ThreadCount::new(LEAST, MOST, 0);
    let Some(made) = (0..100).step_by(5).find(|now| count.decide(&look(*now, true)) == Change::Add) else {
        panic!("no thread was made")
    };
    assert_eq!(ends(&mut count, made + 5..made + NEW), 0);
    assert!(ends(&mut count, made + NEW..made + NEW + 10_000) > 0);
}
