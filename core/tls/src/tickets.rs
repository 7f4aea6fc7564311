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
/// Bytes before the encrypted session: the number of the step, which is authenticated, and the nonce.
const STEP_LENGTH: usize = 8;

type Secret = Zeroizing<[u8; 32]>;

/// The secret of this hour, and those of the keys of earlier hours that may still be needed.
struct Chain {
    begun: Instant,
    step: u64,
    secret: Secret,
    /// From which the keys of a step follow: that of `step` is the last.
    keys: VecDeque<Secret>,
    /// How many steps a key is kept beyond its own.
    kept: usize,
}

static CHAIN: OnceLock<Option<Mutex<Chain>>> = OnceLock::new();

fn chain(now: impl FnOnce(&Chain) -> u64) -> Option<MutexGuard<'static, Chain>> {
    let chain = CHAIN.get_or_init(|| {
        let mut secret = Secret::default();
        SystemRandom::new().fill(&mut secret[..]).ok()?;
        Some(Mutex::new(Chain::new(secret)))
    });
    let mut chain = chain.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
    let step = now(&chain);
    chain.advance(step);
    Some(chain)
}

/// The chain of this process, at the present hour. `None`: the system has no random numbers.
fn present() -> Option<MutexGuard<'static, Chain>> {
    chain(|chain| chain.begun.elapsed().as_secs() / STEP)
}

/// Replaces secrets whose time is over, in a process that may not use any for long.
pub(crate) fn advance() {
    drop(present());
}

impl Chain {
    fn new(secret: Secret) -> Self {
        let keys = VecDeque::from([derive(&secret, b"keys")]);
        Chain { begun: Instant::now(), step: 0, secret, keys, kept: 0 }
    }

    fn advance(&mut self, step: u64) {
        while self.step < step {
            self.step += 1;
            self.secret = derive(&self.secret, b"next");
            self.keys.push_back(derive(&self.secret, b"keys"));
            while self.keys.len() > self.kept + 1 {
                self.keys.pop_front();
            }
        }
    }

    /// The secret of a step from which keys follow, if it is kept.
    fn keys_of(&self, step: u64) -> Option<&Secret> {
        let back = usize::try_from(self.step.checked_sub(step)?).ok()?;
        self.keys.get(self.keys.len().checked_sub(back + 1)?)
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

    fn key(&self, chain: &Chain, step: u64) -> Option<LessSafeKey> {
        if chain.step.saturating_sub(step) > u64::from(self.lifetime).div_ceil(STEP) {
            return None;
        }
        let key = derive(chain.keys_of(step)?, &self.context);
        UnboundKey::new(&aead::AES_256_GCM, &key[..]).ok().map(LessSafeKey::new)
    }

    fn seal(&self, chain: &Chain, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.key(chain, chain.step)?;
        let mut nonce = [0; aead::NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let step = chain.step.to_be_bytes();
        let mut out = Vec::with_capacity(STEP_LENGTH + nonce.len() + plain.len() + aead::AES_256_GCM.tag_len());
        out.extend(step);
        out.extend(nonce);
        out.extend(plain);
        let sealed = &mut out[STEP_LENGTH + nonce.len()..];
        let tag = key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(step), sealed).ok()?;
        out.extend(tag.as_ref());
        Some(out)
    }

    fn open(&self, chain: &Chain, ticket: &[u8]) -> Option<Vec<u8>> {
        let (step, rest) = ticket.split_first_chunk::<STEP_LENGTH>()?;
        let (nonce, sealed) = rest.split_first_chunk::<{ aead::NONCE_LEN }>()?;
        let key = self.key(chain, u64::from_be_bytes(*step))?;
        let mut out = sealed.to_vec();
        let length = key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(*step), &mut out).ok()?.len();
        out.truncate(length);
        Some(out)
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
        self.seal(&chain, plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let chain = present()?;
        self.open(&chain, ticket)
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
        one.advance(5);
        let ticket = tickets.seal(&one, b"session").unwrap();
        other.advance(1);
        assert_eq!(tickets.open(&other, &ticket), None);
        for (hour, open) in [(5, true), (6, true), (7, true), (8, false)] {
            other.advance(hour);
            assert_eq!(tickets.open(&other, &ticket).is_some(), open, "{hour}");
        }
        // The clock went back: nothing changes.
        other.advance(0);
        assert_eq!(other.step, 8);
    }

    #[test]
    fn a_ticket_is_only_for_its_own_configuration_and_unchanged() {
        let chain = chain(2);
        let ticket = tickets(3600, b"a").seal(&chain, b"session").unwrap();
        assert_eq!(tickets(3600, b"a").open(&chain, &ticket).unwrap(), b"session");
        assert_eq!(tickets(3600, b"b").open(&chain, &ticket), None);
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(tickets(3600, b"a").open(&chain, &changed), None, "{at}");
            assert_eq!(tickets(3600, b"a").open(&chain, &ticket[..at]), None, "{at}");
        }
    }

    #[test]
    fn no_two_tickets_are_equal() {
        let (chain, tickets) = (chain(0), tickets(60, b""));
        assert_ne!(tickets.seal(&chain, b"x"), tickets.seal(&chain, b"x"));
    }

    #[test]
    fn keys_of_hours_that_are_over_are_dropped() {
        let mut chain = chain(2);
        chain.advance(100);
        assert_eq!(chain.keys.len(), 3);
        assert!(chain.keys_of(98).is_some() && chain.keys_of(97).is_none() && chain.keys_of(101).is_none());
    }
}
