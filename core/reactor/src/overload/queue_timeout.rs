//! Decides which requests have waited too long for a thread.
//!
//! A server that gets more requests than it can answer, and answers them in turn, soon answers only those whose clients are
//! about to give up. So it refuses those that have waited too long: the rest are answered in time, and as many as before.
//! Who waits patiently is not refused: by default requests are refused only while *all* have to wait and many clients have
//! left in the meantime. What is too long follows from the rate at which requests are answered.
//!
//! The leaving of one client says nothing about the others. So a fifth of all requests must have lost their clients, and an
//! address counts for little more than the requests of it that were run: one that only leaves counts once. Addresses are told
//! apart by a keyed hash, so that nobody can choose some that count as several.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::log::error::RateLimit;

/// How long a request may wait for a thread before it is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// For any time.
    None,
    /// For so many milliseconds.
    Fixed(u64),
    /// As long as is usual, if all requests have had to wait for a while.
    #[default]
    Adaptive,
}

/// Milliseconds that a request may always wait.
const LEAST: u64 = 20;
/// So many requests may be answered while one waits, however long that takes.
const ANSWERED_MEANWHILE: u64 = 5;
/// Milliseconds for which all requests must have had to wait before any is refused.
const STANDING: u64 = 1_000;
/// Milliseconds after a refusal for which less suffices: a load that pauses for a moment is no other load.
const REMEMBERED: u64 = 10_000;
/// Milliseconds for which all requests must have had to wait then.
const STANDING_AGAIN: u64 = 100;
/// One client must have left for fewer requests that were run than these: at 1.5 times of what can be answered, it is one for two.
const RUN_FOR_EACH_LEFT: u64 = 4;
/// However few requests are run, so many clients must have left: a few addresses are no evidence.
const LEAST_LEFT: u64 = 8;
/// For each request of an address that was run, so many of its requests count that were left: at 5 times, it is four for one.
const LEFT_FOR_EACH_RUN: u32 = 5;
/// Groups of addresses that are counted separately.
const GROUPS: usize = 256;
/// After so many milliseconds, and so many requests, earlier ones count half.
const HALVED: u64 = 200;
const HALVED_REQUESTS: u64 = 32;

/// Requests of the addresses of a group, of late.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    run: u32,
    left: u32,
}

impl Group {
    /// How many of the requests that were left count.
    fn evidence(self) -> u64 {
        u64::from(self.left.min(self.run.saturating_mul(LEFT_FOR_EACH_RUN).max(1)))
    }
}

/// How many requests were run of late, and how many were left by their clients before.
#[derive(Debug, Default)]
struct Evidence {
    /// Empty until a client leaves, so that it costs no memory.
    groups: Vec<Group>,
    key: Option<RandomState>,
    run: u64,
    /// The sum of [`Group::evidence`].
    left: u64,
    /// What counts of it from before.
    left_before: u64,
    halved: u64,
}

impl Evidence {
    /// Counts a request, which was run or left.
    fn count(&mut self, client: Option<IpAddr>, is_left: bool, now: u64) {
        self.run += u64::from(!is_left);
        if is_left && self.groups.is_empty() {
            self.groups.resize(GROUPS, Group::default());
        }
        if !self.groups.is_empty() {
            self.count_for(client, is_left);
        }
        // Also before the first client leaves: requests of long ago would outweigh those that leave now.
        if now >= self.halved + HALVED && self.run + self.left >= HALVED_REQUESTS {
            self.halve(now);
        }
    }

    /// Counts a request of this address.
    fn count_for(&mut self, client: Option<IpAddr>, is_left: bool) {
        let address = match client {
            // The smallest network that a client has.
            Some(IpAddr::V6(address)) => Some(address.to_bits() >> 64),
            Some(IpAddr::V4(address)) => Some(u128::from(address.to_bits())),
            None => None,
        };
        let hash = self.key.get_or_insert_default().hash_one(address);
        let Some(group) = self.groups.get_mut(hash as usize % GROUPS) else { return };
        let before = group.evidence();
        match is_left {
            true => group.left = group.left.saturating_add(1),
            false => group.run = group.run.saturating_add(1),
        }
        self.left += group.evidence() - before;
    }

    fn halve(&mut self, now: u64) {
        self.halved = now;
        self.run /= 2;
        for group in &mut self.groups {
            (group.run, group.left) = (group.run / 2, 0);
        }
        // Not for each group: half of one is none.
        (self.left_before, self.left) = ((self.left_before + self.left) / 2, 0);
    }

    fn clear(&mut self, now: u64) {
        self.groups.fill(Group::default());
        (self.run, self.left, self.left_before, self.halved) = (0, 0, 0, now);
    }

    /// Whether so many clients leave that more is asked for than can be answered.
    fn is_overload(&self) -> bool {
        let left = self.left + self.left_before;
        left >= LEAST_LEFT && left * RUN_FOR_EACH_LEFT > self.run
    }
}

/// A time in which every request had to wait.
#[derive(Debug, Default)]
struct Standing {
    /// In milliseconds of [`crate::sys::clock::now`].
    since: u64,
    /// Requests run in it.
    run: u64,
    /// How many clients have left, of late.
    evidence: Evidence,
    /// When a request was last refused, in this time or earlier.
    refused: Option<u64>,
}

/// Whether requests are refused now.
#[derive(Debug, Default)]
pub(crate) struct QueueTimeout {
    limit: QueueLimit,
    /// The last request has waited.
    is_standing: AtomicBool,
    /// Requests are refused.
    is_overload: AtomicBool,
    standing: Mutex<Standing>,
    pub(crate) warned: RateLimit,
}

impl QueueTimeout {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        QueueTimeout { limit, ..Self::default() }
    }

    pub(crate) fn is_adaptive(&self) -> bool {
        self.limit == QueueLimit::Adaptive
    }

    /// A request has not had to wait.
    #[inline]
    pub(crate) fn note_prompt(&self) {
        if self.is_standing.load(Ordering::Relaxed) {
            self.is_standing.store(false, Ordering::Relaxed);
            self.is_overload.store(false, Ordering::Relaxed);
        }
    }

    /// By default, whether more is asked for than can be answered.
    #[inline]
    pub(crate) fn is_overload(&self) -> bool {
        self.is_overload.load(Ordering::Relaxed)
    }

    fn begin(&self, standing: &mut Standing, now: u64) {
        if !self.is_standing.swap(true, Ordering::Relaxed) {
            (standing.since, standing.run) = (now, 0);
            standing.evidence.clear(now);
        }
    }

    /// A client of this address has left before its request was run.
    pub(crate) fn note_left(&self, client: Option<IpAddr>, now: u64) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        self.begin(&mut standing, now);
        standing.evidence.count(client, true, now);
    }

    /// Counts a request of this address that has waited for so many milliseconds. The limit, if that is beyond it.
    pub(crate) fn exceeded(&self, client: Option<IpAddr>, waited: u64, now: u64) -> Option<u64> {
        let limit = match self.limit {
            QueueLimit::None => return None,
            QueueLimit::Fixed(limit) => limit,
            QueueLimit::Adaptive => {
                let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
                self.begin(&mut standing, now);
                let lasted = now.saturating_sub(standing.since);
                let is_again = standing.refused.is_some_and(|refused| now < refused + REMEMBERED);
                if (lasted >= STANDING && standing.evidence.is_overload()) || (lasted >= STANDING_AGAIN && is_again) {
                    self.is_overload.store(true, Ordering::Relaxed);
                }
                let limit = (ANSWERED_MEANWHILE * lasted / standing.run.max(1)).max(LEAST);
                let is_beyond = waited > limit && self.is_overload();
                match is_beyond {
                    true => standing.refused = Some(now),
                    false => {
                        standing.run += 1;
                        standing.evidence.count(client, false, now);
                    }
                }
                return is_beyond.then_some(limit);
            }
        };
        (waited > limit).then_some(limit)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::ops::Range;

    use super::*;

    /// Of a client: there are many.
    fn address(now: u64) -> Option<IpAddr> {
        Some(Ipv4Addr::from_bits((now as u32).wrapping_mul(2_654_435_761) >> 7).into())
    }

    /// The number of refused requests. A request is run at each of `times`, takes `service` milliseconds and has waited for
    /// `waited`; one in `leaving` clients has left (0: none).
    fn refused(timeout: &QueueTimeout, times: Range<u64>, service: usize, waited: u64, leaving: u64) -> usize {
        let is_refused = |now: &u64| {
            if leaving > 0 && now.is_multiple_of(leaving) {
                timeout.note_left(address(*now), *now);
            }
            timeout.exceeded(address(now + 1), waited, *now).is_some()
        };
        times.step_by(service).filter(is_refused).count()
    }

    #[test]
    fn who_always_waits_is_refused_if_clients_leave() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        assert_eq!(refused(&timeout, 0..1_000, 2, 500, 6), 0, "it has not lasted long");
        timeout.note_prompt();
        assert_eq!(refused(&timeout, 1_000..2_000, 2, 500, 6), 0, "one was prompt in between");
        assert_eq!(refused(&timeout, 2_000..3_000, 2, 500, 0), 500);
        assert_eq!(refused(&timeout, 3_000..4_000, 2, 20, 6), 0, "they have not waited long");
    }

    #[test]
    fn an_overload_with_pauses_goes_on() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        assert!(refused(&timeout, 0..3_000, 2, 500, 6) > 0);
        timeout.note_prompt();
        assert_eq!(refused(&timeout, 3_000..3_100, 2, 500, 0), 0, "all may have waited by chance");
        assert_eq!(refused(&timeout, 3_100..4_000, 2, 500, 0), 450);
        timeout.note_prompt();
        assert_eq!(refused(&timeout, 15_000..17_000, 2, 500, 0), 0, "that was long ago");
    }

    #[test]
    fn who_waits_patiently_is_not_refused() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        assert_eq!(refused(&timeout, 0..60_000, 2, 5_000, 0), 0);
        assert_eq!(refused(&timeout, 60_000..120_000, 2, 5_000, 100), 0, "a few leave always");
    }

    /// The number of refused requests, of 200 ms each, of patient clients at one address, while clients at `leavers` other
    /// addresses leave: one each second, in turn.
    fn refused_with_leavers(leavers: u32) -> usize {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        let patient = Some(Ipv4Addr::LOCALHOST.into());
        let is_refused = |now: &u64| {
            for leaver in 0..leavers {
                if now.is_multiple_of(1_000) {
                    timeout.note_left(Some(Ipv4Addr::from_bits(leaver).into()), *now);
                }
            }
            timeout.exceeded(patient, 5_000, *now).is_some()
        };
        (0..60_000).step_by(200).filter(is_refused).count()
    }

    #[test]
    fn one_address_that_leaves_is_no_evidence() {
        assert_eq!(refused_with_leavers(0), 0);
        assert_eq!(refused_with_leavers(1), 0);
        assert!(refused_with_leavers(100) > 0, "but many are");
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        let at = |now: u64| timeout.exceeded(Some(Ipv4Addr::LOCALHOST.into()), 5_000, now).is_some();
        // The same address floods: fifty leave for each request that is run.
        let flood = |now: u64| (0..50).for_each(|_| timeout.note_left(Some(Ipv4Addr::BROADCAST.into()), now));
        assert!(!(0..60_000).step_by(200).any(|now| {
            flood(now);
            at(now)
        }));
    }

    #[test]
    fn clients_behind_one_address_are_evidence_if_a_fifth_leaves() {
        for (leaving, expected) in [(1_000, false), (400, true), (40, true)] {
            let timeout = QueueTimeout::new(QueueLimit::Adaptive);
            let client = Some(Ipv4Addr::LOCALHOST.into());
            let is_refused = |now: u64| {
                if now.is_multiple_of(leaving) {
                    timeout.note_left(client, now);
                }
                now.is_multiple_of(200) && timeout.exceeded(client, 5_000, now).is_some()
            };
            let refused = (0..60_000).filter(|now| is_refused(*now)).count();
            assert_eq!(refused > 0, expected, "one leaves in {leaving} ms, and five are run in a second");
        }
    }

    /// At 1.5 times of what can be answered, a client leaves for two requests that are run.
    #[test]
    fn the_first_overload_is_known_as_soon_as_any() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        // Many requests wait for a while, and nobody leaves yet.
        assert_eq!(refused(&timeout, 0..20_000, 2, 500, 0), 0);
        assert_eq!(refused(&timeout, 20_000..20_050, 2, 1_000, 4), 0, "they may be few");
        assert!(refused(&timeout, 20_050..20_300, 2, 1_000, 4) > 0);
    }

    #[test]
    fn slow_requests_may_wait_longer() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        // One each second: four seconds are no long time.
        assert_eq!(refused(&timeout, 0..60_000, 1_000, 4_000, 1_000), 0);
        assert!(refused(&timeout, 60_000..120_000, 1_000, 30_000, 1_000) > 0);
    }

    #[test]
    fn a_limit_is_kept_at_once() {
        let timeout = QueueTimeout::new(QueueLimit::Fixed(50));
        assert_eq!((timeout.exceeded(None, 50, 1), timeout.exceeded(None, 51, 1)), (None, Some(50)));
        assert_eq!(QueueTimeout::new(QueueLimit::None).exceeded(None, 1_000_000, 1), None);
    }
}
