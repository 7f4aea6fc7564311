//! Session tickets: every worker of a server decrypts the tickets of every other, without messages between them.
//!
//! The main process makes a secret, which workers inherit by fork. The keys of the tickets are derived from the secret. Each
//! hour, every process replaces the secret by its hash, from which the previous secret cannot be computed: a stolen key
//! decrypts no session older than `session_timeout`.
//!
//! A client that resumes a session gets new tickets. These keep the time of the first handshake, and the end of the
//! certificates that the client has shown then: nobody verifies them again. rustls does not tell the maker of a ticket which
//! session it is for, so the session gives its [`Origin`] to the thread while the thread works on it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use crate::clock;
use crate::provider::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use crate::provider::hmac;
use crate::provider::rand::{SecureRandom, SystemRandom};

/// Seconds after which the secret is replaced.
const STEP: u64 = 3600;
/// Bytes of the name of a key, which a ticket begins with.
const NAME: usize = 8;
/// Bytes of a time before the session.
const TIME: usize = 8;

/// Where a session comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Of the ticket that was decrypted for it.
    pub(crate) resumed: Option<Shown>,
    /// When the first of the certificates ends that the client has shown in its handshake; seconds since 1970.
    client_end: u64,
}

/// What a ticket says about the handshake in which its client has shown what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Seconds since the chain was made.
    begun: u64,
    /// When the first of the client's certificates ends; seconds since 1970.
    end: u64,
}

impl Default for Origin {
    fn default() -> Self {
        Origin { resumed: None, client_end: u64::MAX }
    }
}

impl Origin {
    /// What a ticket that is made `now` has to say.
    fn shown(&self, now: u64) -> Shown {
        match self.resumed {
            Some(first) => Shown { begun: first.begun, end: first.end.min(self.client_end) },
            None => Shown { begun: now, end: self.client_end },
        }
    }
}

thread_local! {
    /// Of the session that this thread is working on.
    static ORIGIN: Cell<Origin> = Cell::default();
}

/// Has this thread work on a session, and returns the origin of the one before.
pub(crate) fn exchange_origin(origin: Origin) -> Origin {
    ORIGIN.replace(origin)
}

/// Notes when the first of the certificates ends that the client of this thread's session has shown.
pub(crate) fn note_client_end(end: u64) {
    ORIGIN.set(Origin { client_end: end, ..ORIGIN.get() });
}

type Secret = Zeroizing<[u8; 32]>;

/// The secret of this hour, and those of the keys of earlier hours that may still be needed.
struct Chain {
    begun: Instant,
    step: u64,
    secret: Secret,
    /// That of `step` is the last.
    keys: VecDeque<StepKey>,
    /// How many steps a key is kept beyond its own.
    kept: usize,
}

/// From which the keys of a step follow.
struct StepKey {
    name: [u8; NAME],
    secret: Secret,
}

static CHAIN: OnceLock<Option<Mutex<Chain>>> = OnceLock::new();

/// The chain of this process, at the present hour. `None`: the system has no random numbers.
fn present() -> Option<MutexGuard<'static, Chain>> {
    let chain = CHAIN.get_or_init(|| {
        let mut secret = Secret::default();
        SystemRandom::new().fill(&mut secret[..]).ok()?;
        Some(Mutex::new(Chain::new(secret)))
    });
    let mut chain = chain.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
    let step = chain.now() / STEP;
    chain.advance(step);
    Some(chain)
}

/// Replaces secrets whose time is over, in a process that may not use any for long.
pub(crate) fn advance() {
    drop(present());
}

impl Chain {
    fn new(secret: Secret) -> Self {
        let keys = VecDeque::from([StepKey::of(&secret)]);
        Chain { begun: Instant::now(), step: 0, secret, keys, kept: 0 }
    }

    /// Seconds since it was made, the same in each process.
    fn now(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    fn advance(&mut self, step: u64) {
        while self.step < step {
            self.step += 1;
            self.secret = derive(&self.secret, b"next");
            self.keys.push_back(StepKey::of(&self.secret));
            while self.keys.len() > self.kept + 1 {
                self.keys.pop_front();
            }
        }
    }
}

impl StepKey {
    fn of(secret: &Secret) -> Self {
        let mut name = [0; NAME];
        name.copy_from_slice(&derive(secret, b"name")[..NAME]);
        StepKey { name, secret: derive(secret, b"keys") }
    }
}

fn derive(secret: &Secret, label: &[u8]) -> Secret {
    let mut out = Secret::default();
    out.copy_from_slice(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret[..]), label).as_ref());
    out
}

/// The tickets of one configuration.
pub(crate) struct Tickets {
    lifetime: u32,
    /// Names what a session of this configuration was allowed: another one must not resume it.
    context: Vec<u8>,
}

impl fmt::Debug for Tickets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "tickets of {} s", self.lifetime)
    }
}

impl Tickets {
    /// `None`: the system has no random numbers.
    pub(crate) fn new(lifetime: u32, context: Vec<u8>) -> Option<Self> {
        let kept = u64::from(lifetime).div_ceil(STEP) as usize;
        let mut chain = present()?;
        // Services may differ.
        chain.kept = chain.kept.max(kept);
        Some(Tickets { lifetime, context })
    }

    fn key(&self, step: &StepKey) -> Option<LessSafeKey> {
        let key = derive(&step.secret, &self.context);
        UnboundKey::new(&aead::AES_256_GCM, &key[..]).ok().map(LessSafeKey::new)
    }

    /// Seconds for which a session may be resumed yet.
    fn rest(&self, shown: Shown, times: Times) -> u64 {
        let since = times.chain.saturating_sub(shown.begun);
        // A certificate is valid in its last second, too.
        u64::from(self.lifetime).saturating_sub(since).min(shown.end.saturating_add(1).saturating_sub(times.clock))
    }

    /// A ticket: the name of the key, the nonce, and encrypted what the client has shown and the session.
    fn seal(&self, chain: &Chain, shown: Shown, session: &[u8]) -> Option<Vec<u8>> {
        let step = chain.keys.back()?;
        let mut nonce = [0; aead::NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let begin = NAME + nonce.len();
        let mut out = Vec::with_capacity(begin + 2 * TIME + session.len() + aead::AES_256_GCM.tag_len());
        out.extend(step.name);
        out.extend(nonce);
        out.extend(shown.begun.to_be_bytes());
        out.extend(shown.end.to_be_bytes());
        out.extend(session);
        let (nonce, name) = (Nonce::assume_unique_for_key(nonce), Aad::from(step.name));
        let tag = self.key(step)?.seal_in_place_separate_tag(nonce, name, &mut out[begin..]).ok()?;
        out.extend(tag.as_ref());
        Some(out)
    }

    /// What the client of a ticket has shown, and the session; none if it may not be resumed any more.
    fn open(&self, chain: &Chain, times: Times, ticket: &[u8]) -> Option<(Shown, Vec<u8>)> {
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<{ aead::NONCE_LEN }>()?;
        let step = chain.keys.iter().find(|step| step.name == *name)?;
        let mut out = sealed.to_vec();
        let (nonce, name) = (Nonce::assume_unique_for_key(*nonce), Aad::from(*name));
        let plain = self.key(step)?.open_in_place(nonce, name, &mut out).ok()?;
        let (begun, rest) = plain.split_first_chunk::<TIME>()?;
        let (end, session) = rest.split_first_chunk::<TIME>()?;
        let shown = Shown { begun: u64::from_be_bytes(*begun), end: u64::from_be_bytes(*end) };
        (self.rest(shown, times) > 0).then(|| (shown, session.to_vec()))
    }
}

/// The present, on two clocks.
#[derive(Clone, Copy)]
struct Times {
    /// Seconds since the chain was made.
    chain: u64,
    /// Seconds since 1970.
    clock: u64,
}

impl Times {
    fn of(chain: &Chain) -> Self {
        Times { chain: chain.now(), clock: clock::now() }
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.lifetime > 0
    }

    /// Of the session that this thread is working on.
    fn lifetime(&self) -> u32 {
        let Some(chain) = present() else { return 0 };
        let times = Times::of(&chain);
        self.rest(ORIGIN.get().shown(times.chain), times).try_into().unwrap_or(self.lifetime)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let chain = present()?;
        let times = Times::of(&chain);
        let shown = ORIGIN.get().shown(times.chain);
        if self.rest(shown, times) == 0 {
            return None;
        }
        self.seal(&chain, shown, plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let chain = present()?;
        let (shown, session) = self.open(&chain, Times::of(&chain), ticket)?;
        ORIGIN.set(Origin { resumed: Some(shown), ..ORIGIN.get() });
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tickets(lifetime: u32, context: &[u8]) -> Tickets {
        Tickets { lifetime, context: context.to_vec() }
    }

    fn at(chain: u64) -> Times {
        Times { chain, clock: 0 }
    }

    /// A handshake without certificate of the client.
    fn first(begun: u64) -> Shown {
        Shown { begun, end: u64::MAX }
    }

    fn chain(kept: usize) -> Chain {
        let mut chain = Chain::new(Zeroizing::new([7; 32]));
        chain.kept = kept;
        chain
    }

    #[test]
    fn processes_with_the_same_secret_agree_at_any_hour() {
        let tickets = tickets(7200, b"a");
        let (mut one, mut other) = (chain(2), chain(2));
        let made = 5 * STEP + STEP / 2;
        one.advance(5);
        let shown = first(made);
        let ticket = tickets.seal(&one, shown, b"session").unwrap();
        other.advance(1);
        assert_eq!(tickets.open(&other, at(made), &ticket), None);
        for hour in 5..8 {
            other.advance(hour);
            assert_eq!(tickets.open(&other, at(hour * STEP), &ticket).unwrap(), (shown, b"session".to_vec()), "{hour}");
        }
        assert!(tickets.open(&other, at(made + 7199), &ticket).is_some());
        assert!(tickets.open(&other, at(made + 7200), &ticket).is_none());
        other.advance(8);
        assert!(tickets.open(&other, at(made), &ticket).is_none());
        // An earlier hour changes nothing.
        other.advance(0);
        assert_eq!(other.step, 8);
    }

    #[test]
    fn a_ticket_is_only_for_its_own_configuration_and_unchanged() {
        let chain = chain(2);
        let ticket = tickets(3600, b"a").seal(&chain, first(0), b"session").unwrap();
        assert_eq!(tickets(3600, b"a").open(&chain, at(0), &ticket).unwrap().1, b"session");
        assert_eq!(tickets(3600, b"b").open(&chain, at(0), &ticket), None);
        for byte in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[byte] ^= 1;
            assert_eq!(tickets(3600, b"a").open(&chain, at(0), &changed), None, "{byte}");
            assert_eq!(tickets(3600, b"a").open(&chain, at(0), &ticket[..byte]), None, "{byte}");
        }
    }

    #[test]
    fn no_two_tickets_are_equal() {
        let (chain, tickets) = (chain(0), tickets(60, b""));
        assert_ne!(tickets.seal(&chain, first(0), b"x"), tickets.seal(&chain, first(0), b"x"));
    }

    #[test]
    fn what_was_shown_first_counts_however_often_a_session_is_resumed() {
        let (chain, tickets) = (chain(0), tickets(100, b""));
        // A certificate of the client that ends in the second 1000.
        let mut origin = Origin { resumed: None, client_end: 1000 };
        for (now, clock, rest) in [(0, 900, 100), (60, 960, 40), (99, 999, 1)] {
            let times = Times { chain: now, clock };
            assert_eq!(tickets.rest(origin.shown(now), times), rest);
            let ticket = tickets.seal(&chain, origin.shown(now), b"x").unwrap();
            origin = Origin { resumed: Some(tickets.open(&chain, times, &ticket).unwrap().0), ..Origin::default() };
            assert_eq!(origin.resumed, Some(Shown { begun: 0, end: 1000 }));
        }
        let ticket = tickets.seal(&chain, origin.shown(99), b"x").unwrap();
        assert!(tickets.open(&chain, Times { chain: 100, clock: 1000 }, &ticket).is_none());
        assert!(tickets.open(&chain, Times { chain: 99, clock: 1000 }, &ticket).is_some());
        assert!(tickets.open(&chain, Times { chain: 99, clock: 1001 }, &ticket).is_none());
        // A certificate that is shown later counts, too.
        let both = Origin { client_end: 500, ..origin };
        assert_eq!(both.shown(99), Shown { begun: 0, end: 500 });
    }

    #[test]
    fn keys_of_hours_that_are_over_are_dropped() {
        let mut chain = chain(2);
        let first = chain.keys[0].name;
        chain.advance(100);
        assert_eq!(chain.keys.len(), 3);
        assert!(chain.keys.iter().all(|key| key.name != first));
    }
}
