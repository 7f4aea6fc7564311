//! The connections that applications have got: their number is limited, and they end when the server stops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::log::error::ErrorLog;
use crate::shutdown::log_cut_off;
use crate::websocket::upgraded::{GOING_AWAY, Upgraded};

/// Milliseconds that clients have to answer a Close frame; then the input of applications ends.
const CLOSE_TIMEOUT: u64 = 1_000;

/// Upgraded connections that are told at once, and the pause until the next: thousands of threads that end at the same time
/// hinder each other, and their clients connect again.
const TOLD_AT_ONCE: usize = 64;
const PAUSE: Duration = Duration::from_millis(40);

/// A request whose application may take over the connection, or has done so. It counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved(Arc<AtomicUsize>);

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All connections that applications have got.
#[derive(Debug)]
pub(crate) struct Upgrades {
    /// The most at the same time.
    most: usize,
    reserved: Arc<AtomicUsize>,
    /// By the numbers of their requests.
    open: Mutex<BTreeMap<u64, Arc<Upgraded>>>,
    /// A thread ends those that are left when the time to stop is over.
    has_ender: AtomicBool,
    /// A thread receives commands while the only one that runs requests cannot.
    pub(crate) has_receiver: AtomicBool,
}

impl Upgrades {
    pub(crate) fn new(most: usize) -> Self {
        Upgrades {
            most,
            reserved: Arc::default(),
            open: Mutex::default(),
            has_ender: AtomicBool::new(false),
            has_receiver: AtomicBool::new(false),
        }
    }

    /// Whether applications never get a connection.
    pub(crate) fn is_off(&self) -> bool {
        self.most == 0
    }

    /// Room for one more; none if there are as many as may be.
    pub(crate) fn reserve(&self) -> Option<Reserved> {
        let reserved = Reserved(Arc::clone(&self.reserved));
        (self.reserved.fetch_add(1, Ordering::Relaxed) < self.most).then_some(reserved)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Upgraded>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, number: u64, upgraded: Arc<Upgraded>) {
        self.lock().insert(number, upgraded);
    }

    pub(crate) fn remove(&self, number: u64) {
        self.lock().remove(&number);
    }

    /// Those that are open.
    fn open(&self) -> Vec<Arc<Upgraded>> {
        self.lock().values().map(Arc::clone).collect()
    }

    /// Ends all that are left; returns how many.
    fn shut_down(&self) -> usize {
        self.lock().values().filter(|upgraded| upgraded.shut_down()).count()
    }
}

/// Tells applications that have got connections that the server stops, and ends what is left after so many milliseconds; 0: now.
pub(crate) fn stop(upgrades: &Arc<Upgrades>, timeout: u64, error_log: &Arc<ErrorLog>) {
    let open = upgrades.open();
    if timeout == 0 {
        open.iter().for_each(|upgraded| upgraded.ask_to_close(GOING_AWAY));
        return log_cut_off(error_log, upgrades.shut_down());
    }
    let tell = move |open: &[Arc<Upgraded>]| open.iter().for_each(|upgraded| upgraded.tell(GOING_AWAY));
    // The first of them now.
    let (now, later) = open.split_at(open.len().min(TOLD_AT_ONCE));
    tell(now);
    if open.is_empty() || upgrades.has_ender.swap(true, Ordering::AcqRel) {
        return;
    }
    let later = later.to_vec();
    let until = Instant::now() + Duration::from_millis(timeout);
    let patience = Duration::from_millis(CLOSE_TIMEOUT.min(timeout / 2));
    let (weak, error_log) = (Arc::downgrade(upgrades), Arc::clone(error_log));
    let end_later = move || {
        in_turns(&later, until, tell);
        drop(later);
        thread::sleep(patience);
        let left = Weak::upgrade(&weak).map(|upgrades| upgrades.open());
        in_turns(&left.unwrap_or_default(), until, |open| open.iter().for_each(|upgraded| upgraded.end_input()));
        thread::sleep(until.saturating_duration_since(Instant::now()));
        if let Some(upgrades) = Weak::upgrade(&weak) {
            log_cut_off(&error_log, upgrades.shut_down());
        }
    };
    if thread::Builder::new().name("poorhttp-stop".to_owned()).spawn(end_later).is_err() {
        open.iter().for_each(|upgraded| upgraded.end_input());
    }
}

/// Does something with all of them, some at a time, in half of the time that is left at most.
fn in_turns(all: &[Arc<Upgraded>], until: Instant, work: impl Fn(&[Arc<Upgraded>])) {
    let turns = all.len().div_ceil(TOLD_AT_ONCE).max(1) as u32;
    let pause = PAUSE.min(until.saturating_duration_since(Instant::now()) / 2 / turns);
    for some in all.chunks(TOLD_AT_ONCE) {
        thread::sleep(pause);
        work(some);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_may_be_open() {
        let upgrades = Upgrades::new(2);
        let first = upgrades.reserve().unwrap();
        let _second = upgrades.reserve().unwrap();
        assert!(upgrades.reserve().is_none() && upgrades.reserve().is_none());
        drop(first);
        assert!(upgrades.reserve().is_some());
        assert!(Upgrades::new(0).reserve().is_none() && Upgrades::new(0).is_off());
    }
}
