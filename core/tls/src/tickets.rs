//! Session tickets: all workers of a server decrypt those of each other, without talking.
//!
//! The main process makes a secret, which its forks inherit. Each hour, each process replaces it by a hash of it, from which
//! the one before cannot be computed; the keys of the tickets follow from it. So a stolen key decrypts no older sessions
//! than those of `session_timeout`.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use crate::provider::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use crate::provider::hmac;
use crate::provider::rand::{SecureRandom, SystemRandom};

/// Seconds after which the secret is replaced.
const STEP: u64 = 3600;
/// Bytes of the name of a key, which a ticket begins with.
const NAME: usize = 8;
/// Bytes of the time at which a ticket was made, before the session.
const TIME: usize = 8;

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

    /// A ticket that is made `now`: the name of the key, the nonce, and encrypted the time and the session.
    fn seal(&self, chain: &Chain, now: u64, session: &[u8]) -> Option<Vec<u8>> {
        let step = chain.keys.back()?;
        let mut nonce = [0; aead::NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let begin = NAME + nonce.len();
        let mut out = Vec::with_capacity(begin + TIME + session.len() + aead::AES_256_GCM.tag_len());
        out.extend(step.name);
        out.extend(nonce);
        out.extend(now.to_be_bytes());
        out.extend(session);
        let (nonce, name) = (Nonce::assume_unique_for_key(nonce), Aad::from(step.name));
        let tag = self.key(step)?.seal_in_place_separate_tag(nonce, name, &mut out[begin..]).ok()?;
        out.extend(tag.as_ref());
        Some(out)
    }

    fn open(&self, chain: &Chain, now: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<{ aead::NONCE_LEN }>()?;
        let step = chain.keys.iter().find(|step| step.name == *name)?;
        let mut out = sealed.to_vec();
        let (nonce, name) = (Nonce::assume_unique_for_key(*nonce), Aad::from(*name));
        let plain = self.key(step)?.open_in_place(nonce, name, &mut out).ok()?;
        let (made, session) = plain.split_first_chunk::<TIME>()?;
        (now.saturating_sub(u64::from_be_bytes(*made)) <= u64::from(self.lifetime)).then(|| session.to_vec())
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.lifetime > 0
    }

    fn lifetime(&self) -> u32 {
        self.lifetime
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let chain = present()?;
        self.seal(&chain, chain.now(), plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let chain = present()?;
        self.open(&chain, chain.now(), ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tickets(lifetime: u32, context: &[u8]) -> Tickets {
        Tickets { lifetime, context: context.to_vec() }
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
        let ticket = tickets.seal(&one, made, b"session").unwrap();
        other.advance(1);
        assert_eq!(tickets.open(&other, made, &ticket), None);
        for hour in 5..8 {
            other.advance(hour);
            assert_eq!(tickets.open(&other, hour * STEP, &ticket).unwrap(), b"session", "{hour}");
        }
        assert!(tickets.open(&other, made + 7200, &ticket).is_some());
        assert!(tickets.open(&other, made + 7201, &ticket).is_none());
        other.advance(8);
        assert!(tickets.open(&other, made, &ticket).is_none());
        // An earlier hour changes nothing.
        other.advance(0);
        assert_eq!(other.step, 8);
    }

    #[test]
    fn a_ticket_is_only_for_its_own_configuration_and_unchanged() {
        let chain = chain(2);
        let ticket = tickets(3600, b"a").seal(&chain, 0, b"session").unwrap();
        assert_eq!(tickets(3600, b"a").open(&chain, 0, &ticket).unwrap(), b"session");
        assert_eq!(tickets(3600, b"b").open(&chain, 0, &ticket), None);
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(tickets(3600, b"a").open(&chain, 0, &changed), None, "{at}");
            assert_eq!(tickets(3600, b"a").open(&chain, 0, &ticket[..at]), None, "{at}");
        }
    }

    #[test]
    fn no_two_tickets_are_equal() {
        let (chain, tickets) = (chain(0), tickets(60, b""));
        assert_ne!(tickets.seal(&chain, 0, b"x"), tickets.seal(&chain, 0, b"x"));
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
