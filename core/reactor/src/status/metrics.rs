//! The table of metrics that workers count, and the shared memory in which they count them.
//!
//! A row of the table says how a metric is counted, and how it is called in the status document and outside; the status
//! document, the text formats, StatsD, OpenTelemetry and `docs/reference/metrics.md` have all rows from here.

use std::sync::atomic::{AtomicU64, Ordering};

use poorhttp_files::CacheCounts;

use super::counters::{Counters, Counts};
use super::histogram::{Histogram, add_alone};

/// Statuses with which the server itself refuses a request. The status document has the same.
const REFUSED: [u16; 13] = [400, 403, 405, 408, 413, 414, 417, 421, 431, 501, 503, 505, 507];

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

/// What a thread has found that looked whether another one could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It could.
    Free,
    /// The interpreter is held.
    Held,
    /// The interpreter is free, but threads wait for a processor.
    NoProcessor,
}

/// What kind of metric a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// What is there at the moment.
    Gauge,
    /// Durations.
    Histogram,
}

/// What a worker, or the sum of several, has counted.
#[derive(Debug)]
pub struct Reading<'a> {
    counters: &'a Counters,
    counts: Counts,
    oldest: u64,
}

impl<'a> Reading<'a> {
    /// Reads counters. `oldest`: microseconds since the oldest request in flight began.
    pub fn new(counters: &'a Counters, oldest: u64) -> Self {
        Reading { counters, counts: counters.counts(), oldest }
    }
}

/// The value of a metric.
#[derive(Debug)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// A duration in microseconds, which is shown in seconds.
    Microseconds(u64),
    /// A number for each value of the label.
    Labelled(Vec<(String, u64)>),
    /// Durations.
    Durations(&'a Histogram),
}

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// Its type.
    pub kind: Kind,
    /// Its name in the status document.
    pub key: &'static str,
    /// Its name outside, without the `poorhttp_` and the `_total` of Prometheus; `_seconds` or `_bytes` at its end is its unit.
    pub name: &'static str,
    /// The name of its label; empty if it has none.
    pub label: &'static str,
    /// The values of the label that are shown outside; empty: all.
    pub shown: &'static [&'static str],
    /// A sentence for those who read a dashboard.
    pub help: &'static str,
    /// Returns its value.
    pub read: for<'a> fn(&'a Reading<'a>) -> Value<'a>,
}

/// Something in shared memory that is counted.
trait Counted {
    /// The numbers of which it consists.
    fn numbers(&self) -> Vec<&AtomicU64>;

    /// Its value, where the row has no function that reads it.
    fn value(&self) -> Value<'_> {
        Value::Number(self.numbers().iter().fold(0, |sum, number| sum.saturating_add(number.load(Ordering::Relaxed))))
    }
}

impl Counted for AtomicU64 {
    fn numbers(&self) -> Vec<&AtomicU64> {
        vec![self]
    }
}

impl<const N: usize> Counted for [AtomicU64; N] {
    fn numbers(&self) -> Vec<&AtomicU64> {
        self.iter().collect()
    }
}

impl Counted for CacheCounts {
    fn numbers(&self) -> Vec<&AtomicU64> {
        vec![&self.hits, &self.misses]
    }
}

impl Counted for Histogram {
    fn numbers(&self) -> Vec<&AtomicU64> {
        Histogram::numbers(self).collect()
    }

    fn value(&self) -> Value<'_> {
        Value::Durations(self)
    }
}

/// Microseconds.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Microseconds(AtomicU64);

impl Counted for Microseconds {
    fn numbers(&self) -> Vec<&AtomicU64> {
        vec![&self.0]
    }

    fn value(&self) -> Value<'_> {
        Value::Microseconds(self.0.load(Ordering::Relaxed))
    }
}

/// Makes the table, and the struct of what is counted in shared memory. A row: the field of the struct, if it has one of its own;
/// its kind, its name in the status document, its name outside, its label and the values of it that are shown, its help text;
/// and a function that reads it, unless it is the value of the field.
macro_rules! metrics {
    ($([$($field:ident: $type:ty)?] $kind:ident $key:literal $name:literal $(by $label:literal [$($shown:literal)*])?
       $help:literal $(=> $read:expr)?;)*) => {
        /// Metrics of one reactor, in shared memory. Bytes, the states of connections and durations are only counted where times
        /// are taken ([`crate::Options::records`]).
        #[repr(C)]
        #[derive(Debug, Default)]
        pub struct Metrics {
            /// Lines of the logs that are lost; a metric of the whole server.
            pub lines_lost: AtomicU64,
            $($(#[doc = $help] pub $field: $type,)?)*
        }

        impl Metrics {
            /// All numbers that only grow, in a fixed order.
            pub(crate) fn counters(&self) -> Vec<&AtomicU64> {
                let mut all = vec![&self.lines_lost];
                $($(if Kind::$kind != Kind::Gauge { all.extend(self.$field.numbers()); })?)*
                all
            }

            /// All others, in a fixed order.
            pub(crate) fn gauges(&self) -> Vec<&AtomicU64> {
                let mut all = Vec::new();
                $($(if Kind::$kind == Kind::Gauge { all.extend(self.$field.numbers()); })?)*
                all
            }
        }

        /// All metrics that workers count, in the order in which they are shown.
        pub static METRICS: &[Metric] = &[$(Metric {
            kind: Kind::$kind,
            key: $key,
            name: $name,
            label: concat!($($label)?),
            shown: &[$($($shown),*)?],
            help: $help,
            read: metrics!(@read [$($field)?] [$($read)?]),
        }),*];
    };
    (@read [$field:ident] []) => { |all| all.counters.metrics.$field.value() };
    (@read [$($field:ident)?] [$read:expr]) => { $read };
}

metrics! {
    [] Gauge "in_flight" "requests_in_flight"
        "Requests that the application is working on."
        => |all| Value::Number(all.counts.in_flight);
    [] Gauge "in_flight" "requests_in_hand"
        "Deprecated name of poorhttp_requests_in_flight."
        => |all| Value::Number(all.counts.in_flight);
    [] Gauge "streaming" "responses_streaming"
        "Responses that have been sent in pieces for more than a second, and wait between them."
        => |all| Value::Number(all.counts.streaming);
    [] Gauge "streaming_threads" "streaming_threads"
        "Threads of such responses that do not count among the threads of the pool (streaming_threads)."
        => |all| Value::Number(all.counts.left);
    [] Gauge "threads" "threads"
        "Threads that run requests: one in each worker of other modes than threading."
        => |all| Value::Number(all.counts.slots);
    [thread_waits: AtomicU64] Counter "thread_waits" "thread_waits"
        "How often requests have had to wait for a thread for 5 ms and more (threads = auto).";
    [thread_wait: Microseconds] Counter "thread_wait" "thread_wait_seconds"
        "Time in which requests waited for a thread, and none was free (threads = auto).";
    [thread_changes: [AtomicU64; 2]] Counter "thread_changes" "thread_changes" by "change" ["added" "ended"]
        "Threads that were added and ended because of the load (threads = auto)."
        => |all| Value::Labelled(labelled(["added", "ended"], &all.counters.metrics.thread_changes));
    // When it was asked for, while all threads had requests.
    [interpreter_looks: [AtomicU64; 3]] Counter "interpreter_looks" "interpreter_looks"
        by "found" ["free" "held" "no_processor"]
        "How often the Python interpreter was found free, held by another thread, and free while threads of the worker waited for \
         a processor (threads = auto)."
        => |all| Value::Labelled(labelled(["free", "held", "no_processor"], &all.counters.metrics.interpreter_looks));
    // Those that wait for a thread, and those that wait for the interpreter.
    [queued: [AtomicU64; 2]] Gauge "queued" "requests_queued"
        "Requests that wait for a thread or for the interpreter.";
    [] Gauge "oldest" "oldest_request_seconds"
        "Time since the oldest request in flight began; 0 if there is none."
        => |all| Value::Microseconds(all.oldest);
    // In each state of `Waiting`.
    [connections: [AtomicU64; 2]] Gauge "connections" "connections_by_state"
        by "state" ["reading" "active" "sending" "idle" "upgraded"]
        "Connections by their state: reading (a request), active (in the application), sending, idle, upgraded. Each stream of \
         HTTP/2 counts as a connection; the one that carries the streams is idle."
        => |all| Value::Labelled(connections_by_state(&all.counts, &all.counters.metrics));
    [] Counter "upgrades" "upgrades"
        "Connections that were upgraded to another protocol."
        => |all| Value::Number(all.counts.upgrades);
    [http2_connections: AtomicU64] Gauge "http2_connections" "http2_connections"
        "Connections that speak HTTP/2.";
    [http2_streams: AtomicU64] Gauge "http2_streams" "http2_streams"
        "Streams of HTTP/2 that are open.";
    // By the client, and by the server other than behind a complete response.
    [http2_resets: [AtomicU64; 2]] Counter "http2_resets" "http2_streams_reset" by "by" ["client" "server"]
        "Streams of HTTP/2 that were reset, by the client or by the server."
        => |all| Value::Labelled(labelled(["client", "server"], &all.counters.metrics.http2_resets));
    [http2_failures: AtomicU64] Counter "http2_failures" "http2_connections_failed"
        "Connections of HTTP/2 that the server has ended because their client broke the protocol, or a limit against attacks.";
    [accepted: AtomicU64] Counter "accepted" "connections_accepted"
        "Connections that were accepted.";
    [tls_handshakes: AtomicU64] Counter "tls_handshakes" "tls_handshakes"
        "TLS handshakes that were completed.";
    [tls_failures: AtomicU64] Counter "tls_failures" "tls_handshake_failures"
        "TLS handshakes that failed.";
    [] Counter "requests" "requests"
        "Requests that have begun."
        => |all| Value::Number(all.counts.requests);
    [] Counter "responses" "responses" by "code" ["2xx" "3xx" "4xx" "5xx"]
        "Responses, by the class of their status."
        => |all| Value::Labelled((1..).zip(all.counts.answers).map(|(class, number)| (format!("{class}xx"), number)).collect());
    [refused: [AtomicU64; REFUSED.len()]] Counter "refused" "requests_refused" by "code" []
        "Requests that the server itself refused, by status."
        => |all| Value::Labelled(REFUSED.map(|status| status.to_string()).into_iter().zip(all.counters.metrics.refused()).collect());
    [timed_out: AtomicU64] Counter "timed_out" "requests_timed_out"
        "Requests that request_timeout has ended (504).";
    [client_aborts: AtomicU64] Counter "departed" "requests_departed"
        "Requests whose client left before the response (499).";
    [waiting: Histogram] Histogram "waiting" "request_waiting_seconds"
        "Time from the complete head of a request to the call of the application.";
    [application: Histogram] Histogram "application" "request_application_seconds"
        "Time that the application takes for a request.";
    // 0 if it is sent at once.
    [sending: Histogram] Histogram "sending" "request_sending_seconds"
        "Time from the end of the application's work until the kernel has taken the last byte.";
    [interpreter_wait: Microseconds] Counter "interpreter_wait" "interpreter_wait_seconds"
        "Time that requests have waited for the Python interpreter before they began.";
    // Both without TLS.
    [bytes_received: AtomicU64] Counter "bytes_received" "received_bytes"
        "Bytes received from clients.";
    [bytes_sent: AtomicU64] Counter "bytes_sent" "sent_bytes"
        "Bytes sent to clients.";
    [spooled: AtomicU64] Counter "spooled_bytes" "spooled_bytes"
        "Bytes of bodies and responses put into temporary files.";
    [cache: CacheCounts] Counter "cache_hits" "static_cache_hits"
        "Static files that were sent from memory."
        => |all| all.counters.metrics.cache.hits.value();
    [] Counter "cache_misses" "static_cache_misses"
        "Static files that were not in memory."
        => |all| all.counters.metrics.cache.misses.value();
}

/// Numbers with the values of their label.
fn labelled<const N: usize>(labels: [&str; N], numbers: &[AtomicU64; N]) -> Vec<(String, u64)> {
    labels.map(String::from).into_iter().zip(numbers.each_ref().map(|number| number.load(Ordering::Relaxed))).collect()
}

/// The connections in each state.
fn connections_by_state(counts: &Counts, metrics: &Metrics) -> Vec<(String, u64)> {
    let [reading, sending] = metrics.connections.each_ref().map(|number| number.load(Ordering::Relaxed));
    // They are counted one after another, so the sum may be more than there are.
    let all = counts.connections.saturating_add(metrics.http2_streams.load(Ordering::Relaxed));
    let waiting = reading.saturating_add(sending).saturating_add(counts.upgraded);
    let active = (counts.in_flight + counts.left).min(all.saturating_sub(waiting));
    let idle = all.saturating_sub(waiting).saturating_sub(active);
    let states = ["reading", "active", "sending", "idle", "upgraded"].map(String::from);
    states.into_iter().zip([reading, active, sending, idle, counts.upgraded]).collect()
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
        self.queued[0].store(connections as u64, Ordering::Relaxed);
    }

    /// Requests that wait for the interpreter.
    pub fn set_waiting_for_interpreter(&self, requests: usize) {
        self.queued[1].store(requests as u64, Ordering::Relaxed);
    }

    /// A request has waited for the interpreter. One thread at a time.
    pub fn add_interpreter_wait(&self, microseconds: u64) {
        add_alone(&self.interpreter_wait.0, microseconds);
    }

    /// Requests have waited so many microseconds for a thread. `begins`: they do for long enough from now on.
    pub(crate) fn add_thread_wait(&self, begins: bool, microseconds: u64) {
        self.thread_waits.fetch_add(begins.into(), Ordering::Relaxed);
        self.thread_wait.0.fetch_add(microseconds, Ordering::Relaxed);
    }

    /// Threads were added and ended.
    pub(crate) fn add_thread_changes(&self, added: u64, ended: u64) {
        self.thread_changes
            .iter()
            .zip([added, ended])
            .for_each(|(sum, more)| _ = sum.fetch_add(more, Ordering::Relaxed));
    }

    /// A thread has looked whether another one could run.
    pub(crate) fn add_interpreter_look(&self, found: Found) {
        self.interpreter_looks[found as usize].fetch_add(1, Ordering::Relaxed);
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
}
