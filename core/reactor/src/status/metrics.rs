//! Metrics of one worker, TLS included: the table of counters, gauges and histograms in shared memory.

use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::{Histogram, add_alone};
use poorhttp_files::CacheCounts;

/// Statuses with which the server itself refuses a request. The status document has the same.
pub const REFUSED: [u16; 13] = [400, 403, 405, 408, 413, 414, 417, 421, 431, 501, 503, 505, 507];

/// The status of a request whose client has left before the response, in logs and metrics, as in those of nginx; it is never sent.
pub(crate) const CLIENT_ABORT: u16 = 499;

/// The state of a connection that waits for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For the rest of a request, or of a TLS handshake.
    Reading,
    /// For a client that takes its response slowly.
    Sending,
}

/// Metrics of one reactor, in shared memory. Bytes, the states of connections and durations are only counted where times are
/// taken ([`crate::Options::records`]).
#[repr(C)]
#[derive(Debug, Default)]
pub struct Metrics {
    /// Requests that were refused with each status of [`REFUSED`].
    refused: [AtomicU64; REFUSED.len()],
    /// Requests that the request timeout has ended.
    pub(crate) timed_out: AtomicU64,
    /// Requests whose client has left before there was a response.
    pub(crate) client_aborts: AtomicU64,
    /// Bytes of requests, without TLS.
    bytes_received: AtomicU64,
    /// Bytes of responses, without TLS.
    bytes_sent: AtomicU64,
    /// Connections that were accepted.
    pub(crate) accepted: AtomicU64,
    /// TLS handshakes that were completed.
    pub(crate) tls_handshakes: AtomicU64,
    /// Those that were not.
    pub(crate) tls_failures: AtomicU64,
    /// Bytes of bodies and responses that were written to temporary files.
    pub spooled: AtomicU64,
    /// Lines of the logs that are lost.
    pub lines_lost: AtomicU64,
    /// Microseconds for which requests have waited for the interpreter.
    interpreter_wait: AtomicU64,
    /// Connections that wait for a thread.
    ready: AtomicU64,
    /// Requests that wait for the interpreter.
    waiting_for_interpreter: AtomicU64,
    /// Connections in each state of [`Waiting`].
    connections: [AtomicU64; 2],
    /// Static files in the cache.
    pub cache: CacheCounts,
    /// From the complete request to the call of the application, in microseconds.
    pub waiting: Histogram,
    /// In the application.
    pub application: Histogram,
    /// From the complete response until the kernel has all of it; 0 if it is sent at once.
    pub sending: Histogram,
}

impl Metrics {
    /// A request was refused.
    #[cold]
    pub(crate) fn add_refused(&self, status: u16) {
        if let Some(place) = REFUSED.iter().position(|&refused| refused == status) {
            self.refused[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Bytes have been received and sent. One thread at a time.
    #[inline]
    pub(crate) fn add_bytes(&self, received: u64, sent: u64) {
        add_alone(&self.bytes_received, received);
        add_alone(&self.bytes_sent, sent);
    }

    /// A response was sent. `application`: `None` if the application had no part in it. One thread at a time.
    #[inline]
    pub(crate) fn add_times(&self, waited: u64, application: Option<u64>, sending: u64) {
        self.waiting.add(waited);
        if let Some(application) = application {
            self.application.add(application);
        }
        self.sending.add(sending);
    }

    /// Connections that wait for a thread.
    #[inline]
    pub(crate) fn set_ready(&self, connections: usize) {
        self.ready.store(connections as u64, Ordering::Relaxed);
    }

    /// Requests that wait for the interpreter.
    pub fn set_waiting_for_interpreter(&self, requests: usize) {
        self.waiting_for_interpreter.store(requests as u64, Ordering::Relaxed);
    }

    /// A request has waited for the interpreter. One thread at a time.
    pub fn add_interpreter_wait(&self, microseconds: u64) {
        add_alone(&self.interpreter_wait, microseconds);
    }

    /// A connection goes from one state to another.
    pub(crate) fn change(&self, from: Option<Waiting>, to: Option<Waiting>) {
        if let Some(from) = from {
            self.connections[from as usize].fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(to) = to {
            self.connections[to as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many requests were refused with each status of [`REFUSED`].
    pub fn refused(&self) -> [u64; REFUSED.len()] {
        self.refused.each_ref().map(|number| number.load(Ordering::Relaxed))
    }

    /// All that only grows, each with its name in the status document, besides refusals and histograms.
    pub fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("timed_out", &self.timed_out),
            ("departed", &self.client_aborts),
            ("bytes_received", &self.bytes_received),
            ("bytes_sent", &self.bytes_sent),
            ("accepted", &self.accepted),
            ("tls_handshakes", &self.tls_handshakes),
            ("tls_failures", &self.tls_failures),
            ("spooled_bytes", &self.spooled),
            ("cache_hits", &self.cache.hits),
            ("cache_misses", &self.cache.misses),
        ]
        .map(|(name, number)| (name, number.load(Ordering::Relaxed)))
    }

    /// Microseconds for which requests have waited for the interpreter.
    pub fn interpreter_wait(&self) -> u64 {
        self.interpreter_wait.load(Ordering::Relaxed)
    }

    /// Requests that wait: for a thread, or for the interpreter.
    pub fn queued(&self) -> u64 {
        self.ready.load(Ordering::Relaxed).saturating_add(self.waiting_for_interpreter.load(Ordering::Relaxed))
    }

    /// Connections that wait for the rest of a request, and for a client that takes its response slowly.
    pub fn connections(&self) -> [u64; 2] {
        self.connections.each_ref().map(|number| number.load(Ordering::Relaxed))
    }

    /// All numbers that only grow, in a fixed order.
    pub(crate) fn counters(&self) -> impl Iterator<Item = &AtomicU64> {
        let numbers = [
            &self.timed_out,
            &self.client_aborts,
            &self.bytes_received,
            &self.bytes_sent,
            &self.accepted,
            &self.tls_handshakes,
            &self.tls_failures,
            &self.spooled,
            &self.lines_lost,
            &self.interpreter_wait,
            &self.cache.hits,
            &self.cache.misses,
        ];
        let histograms = [&self.waiting, &self.application, &self.sending];
        numbers.into_iter().chain(&self.refused).chain(histograms.into_iter().flat_map(Histogram::numbers))
    }

    /// All others, in a fixed order.
    pub(crate) fn gauges(&self) -> impl Iterator<Item = &AtomicU64> {
        [&self.ready, &self.waiting_for_interpreter].into_iter().chain(&self.connections)
    }
}
