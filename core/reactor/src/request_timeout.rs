//! Enforces `request_timeout` from a thread of its own.
//!
//! The thread takes no lock that an application may hold for ever. When the time of a request is over, it asks the embedding
//! to interrupt the application. If the request is still in flight a second later, the thread answers the client itself and
//! reports to the main process that this worker must be replaced.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::channel::{self, Channel};
use crate::connection::shared_socket::SharedSocket;
use crate::log::access::AccessLog;
use crate::log::entry::{Answer, Unsent};
use crate::log::error::{ErrorLog, Level};
use crate::log::request_id::RequestName;
use crate::status::counters::Counters;
use crate::status::{Finished, Recorder};
use crate::sys::Errno;
use crate::sys::clock::{self, NEVER};
use crate::sys::process::{self, forks};
use poorhttp_http::{Dialect, Reject, Response, ServerFields};

/// Milliseconds that an application has to end once it was interrupted.
const LAST_CHANCE: u64 = 1_000;

/// Interrupts applications. Its methods are called by the thread of the request timeout; they must not wait, nor take a lock
/// that an application may hold.
pub trait TimeoutHandler: Send + Sync {
    /// The application has had its time.
    fn overdue(&self, request: Arc<TimedRequest>);

    /// It could not be interrupted.
    fn stuck(&self, request: &TimedRequest);
}

poorhttp_interface::debug_by_name!(TimeoutHandler);

/// Options of the reactor that the thread needs.
#[derive(Debug)]
pub(crate) struct Server {
    /// `Server: …` with CRLF, or nothing.
    pub(crate) server_line: Vec<u8>,
    /// Value of Strict-Transport-Security in responses over TLS; empty: it is not added.
    pub(crate) hsts: String,
    pub(crate) error_log: Arc<ErrorLog>,
    pub(crate) access_log: Option<Arc<AccessLog>>,
    pub(crate) counters: &'static Counters,
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// The main process, if there is one.
    pub(crate) channel: Option<Channel>,
}

/// Progress of a response. The application moves it from `Open` to `Committed` and `Over`; the thread of the timeout, if it is
/// faster, from `Open` to `Replaced` or from `Committed` to `CutShort`. So exactly one of them answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Progress {
    /// Nothing has been sent.
    Open,
    /// The application sends it.
    Committed,
    /// It is complete, or was given up: the connection carries something else now.
    Over,
    /// The thread of the timeout has answered instead.
    Replaced,
    /// The thread of the timeout has ended the connection.
    CutShort,
}

/// How a request is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Its method is HEAD.
    pub(crate) to_head: bool,
    pub(crate) dialect: Dialect,
    /// It is a connection that was not read.
    pub(crate) raw_tcp: bool,
}

/// A request with a time limit.
#[derive(Debug)]
pub struct TimedRequest {
    name: RequestName,
    kind: Kind,
    /// For how long it has waited before, in microseconds; 0 where times are not taken.
    waited: u64,
    /// When the application got it.
    since: u64,
    socket: Arc<SharedSocket>,
    progress: AtomicU8,
    reported: AtomicBool,
    overdue: AtomicBool,
    is_counted: AtomicBool,
    /// Its line in the access log if the thread of the timeout answers; none without an access log.
    log_entry: Option<Unsent>,
}

impl TimedRequest {
    /// The running number of the request in its reactor.
    pub fn number(&self) -> u64 {
        self.name.number
    }

    /// The request as messages name it.
    pub fn name(&self) -> &RequestName {
        &self.name
    }

    /// Method and target for a log.
    pub fn line(&self) -> &str {
        &self.name.line
    }

    /// Milliseconds for which the application has had it.
    pub fn age(&self) -> u64 {
        now().saturating_sub(self.since)
    }

    /// Notes that the position of the application was logged.
    pub fn note_reported(&self) {
        self.reported.store(true, Ordering::Release);
    }

    /// Whether the position of the application was logged.
    pub fn is_reported(&self) -> bool {
        self.reported.load(Ordering::Acquire)
    }

    /// Whether its time was over before it was answered.
    pub(crate) fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Relaxed)
    }

    fn goes(&self, from: Progress, to: Progress) -> bool {
        self.progress.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn is(&self, progress: Progress) -> bool {
        self.progress.load(Ordering::Acquire) == progress as u8
    }

    /// The application is about to send. `false`: it is too late for that.
    pub(crate) fn commit(&self) -> bool {
        self.goes(Progress::Open, Progress::Committed) || self.is(Progress::Committed)
    }

    /// The response is complete or given up. `Some`: the thread of the timeout has ended it before, in this way.
    pub(crate) fn close(&self) -> Option<Progress> {
        if self.goes(Progress::Committed, Progress::Over) || self.goes(Progress::Open, Progress::Over) {
            return None;
        }
        Some(if self.is(Progress::Replaced) { Progress::Replaced } else { Progress::CutShort })
    }

    /// Whether the thread of the timeout has ended it.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.is(Progress::Replaced) || self.is(Progress::CutShort)
    }

    /// The handler of a raw TCP connection was interrupted: resets the connection, so that a wait for its client ends as well.
    /// Does nothing for a request, which can still be answered.
    pub fn end_wait(&self) {
        if self.kind.raw_tcp && self.goes(Progress::Committed, Progress::CutShort) {
            self.socket.reset();
        }
    }

    /// Counts it as timed out, if that was not done before.
    pub(crate) fn count(&self, counters: &Counters) {
        if !self.is_counted.swap(true, Ordering::Relaxed) {
            counters.metrics.timed_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts, notes and logs the 504 that was sent in the application's place, which may never return.
    fn log_answer(&self, server: &Server, answer: &[u8]) {
        server.counters.answered(504);
        if let Some(recorder) = &server.recorder {
            recorder.note(&Finished {
                number: self.name.number,
                pid: process::id(),
                status: 504,
                ended: clock::precise_us(),
                waited: self.waited,
                application: self.age() * 1_000,
                sending: 0,
                sent: answer.len() as u64,
                id: self.name.id.clone().into_bytes(),
                line: self.name.line.clone().into_bytes(),
            });
        }
        let (Some(log), Some(Unsent { answer: entry, head })) = (&server.access_log, &self.log_entry) else { return };
        let head_end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        let (body, end) = (head_end as u64, answer.len() as u64);
        let entry = Answer { size: end - body, body, end, ..entry.clone() };
        log.add_answer(&entry, head.as_ref().map(|(head, bytes)| (head, &bytes[..])), end);
        log.flush();
    }

    /// Ends it in the application's place; returns the outcome for the client, for the log.
    fn end_natively(&self, server: &Server) -> &'static str {
        if self.goes(Progress::Open, Progress::Replaced) {
            let mut answer = Vec::new();
            clock::with_time_of_day(|time| {
                let lines = self.name.with_response_field(&server.server_line);
                let server_fields = ServerFields { date: &time.date_line, server: &lines, closing: true };
                let reject = Reject { status: 504, reason: "the application took too long" };
                let hsts = self.socket.transport.hsts_line(&server.hsts);
                let response = Response::to_refused(self.kind.dialect, self.kind.to_head, 0);
                response.refuse(&mut answer, reject, hsts.as_bytes(), &server_fields);
            });
            self.socket.send_final(&answer);
            self.count(server.counters);
            self.log_answer(server, &answer);
            "its client got 504"
        } else if self.goes(Progress::Committed, Progress::CutShort) {
            self.socket.reset();
            self.count(server.counters);
            "its response was cut short"
        } else if self.kind.raw_tcp && self.is(Progress::CutShort) {
            "its connection was reset"
        } else {
            "its client had been answered"
        }
    }
}

/// A request in flight, until this is dropped or [`InFlight::end`] is called.
#[derive(Debug)]
pub struct InFlight {
    request: Arc<TimedRequest>,
    registry: Arc<Registry>,
}

impl InFlight {
    /// The request.
    pub fn request(&self) -> &Arc<TimedRequest> {
        &self.request
    }

    /// The application has finished it.
    pub fn end(&self) {
        // In a fork, the lock may be held by a thread that exists only in the parent.
        if self.registry.forks == forks() {
            self.registry.lock().in_flight.remove(&self.request.number());
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Debug)]
struct Deadline {
    request: Arc<TimedRequest>,
    /// When something is to be done.
    due: u64,
    /// The embedding was asked to interrupt it.
    interrupted: bool,
}

#[derive(Debug, Default)]
struct State {
    in_flight: BTreeMap<u64, Deadline>,
    /// No request was in flight at the last check, so the thread waits to be woken.
    asleep: bool,
    ended: bool,
}

#[derive(Debug)]
struct Registry {
    state: Mutex<State>,
    changed: Condvar,
    /// Milliseconds that an application has.
    limit: u64,
    forks: u64,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The request timeout of a reactor, and its thread.
#[derive(Debug)]
pub(crate) struct RequestTimeouts {
    registry: Arc<Registry>,
}

fn now() -> u64 {
    clock::precise_us() / 1_000
}

impl RequestTimeouts {
    /// Starts a thread that gives applications `limit` milliseconds.
    pub(crate) fn start(limit: u64, server: Server, handler: Arc<dyn TimeoutHandler>) -> Result<Self, Errno> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let registry = Arc::new(Registry { state, changed, limit, forks: forks() });
        let timeouts = RequestTimeouts { registry: Arc::clone(&registry) };
        let thread = thread::Builder::new().name("poorhttp-watch".to_owned());
        match thread.spawn(move || registry.run(&server, &*handler)) {
            Ok(_) => Ok(timeouts),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)),
        }
    }

    /// The application gets a request, which has `waited` so many microseconds for it.
    pub(crate) fn enter(
        &self,
        name: RequestName,
        kind: Kind,
        waited: u64,
        socket: Arc<SharedSocket>,
        log_entry: Option<Unsent>,
    ) -> InFlight {
        // A raw TCP connection can only be ended, not answered in the place of its handler.
        let progress = if kind.raw_tcp { Progress::Committed } else { Progress::Open };
        let progress = AtomicU8::new(progress as u8);
        let (since, number) = (now(), name.number);
        let request = Arc::new(TimedRequest {
            name,
            kind,
            waited,
            since,
            socket,
            progress,
            reported: AtomicBool::new(false),
            overdue: AtomicBool::new(false),
            is_counted: AtomicBool::new(false),
            log_entry,
        });
        let mut state = self.registry.lock();
        let due = request.since + self.registry.limit;
        state.in_flight.insert(number, Deadline { request: Arc::clone(&request), due, interrupted: false });
        if std::mem::take(&mut state.asleep) {
            self.registry.changed.notify_one();
        }
        drop(state);
        InFlight { request, registry: Arc::clone(&self.registry) }
    }
}

impl Drop for RequestTimeouts {
    fn drop(&mut self) {
        if self.registry.forks == forks() {
            self.registry.lock().ended = true;
            self.registry.changed.notify_one();
        }
    }
}

impl Registry {
    fn run(&self, server: &Server, timeout_handler: &dyn TimeoutHandler) {
        let mut state = self.lock();
        while !state.ended {
            let now = now();
            // Requests that begin meanwhile are due later than that.
            let mut next = if state.in_flight.is_empty() { NEVER } else { now + self.limit };
            let (mut overdue, mut stuck) = (Vec::new(), Vec::new());
            for entry in state.in_flight.values_mut() {
                if entry.due <= now {
                    let due = if entry.interrupted { &mut stuck } else { &mut overdue };
                    entry.due = if entry.interrupted { NEVER } else { now + LAST_CHANCE };
                    entry.interrupted = true;
                    entry.request.overdue.store(true, Ordering::Relaxed);
                    due.push(Arc::clone(&entry.request));
                }
                next = next.min(entry.due);
            }
            if !stuck.is_empty() {
                // Under the lock: the application cannot end these requests before they have been ended here.
                let ends: Vec<_> = stuck.iter().map(|request| request.end_natively(server)).collect();
                drop(state);
                for (request, end) in stuck.iter().zip(ends) {
                    log_stuck(server, request, end);
                    timeout_handler.stuck(request);
                }
                if let Some(channel) = &server.channel {
                    channel.send(channel::STUCK);
                }
                state = self.lock();
            }
            if !overdue.is_empty() {
                drop(state);
                overdue.into_iter().for_each(|request| timeout_handler.overdue(request));
                state = self.lock();
                continue;
            }
            if state.ended {
                return;
            }
            state.asleep = next == NEVER;
            state = match next {
                NEVER => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                next => {
                    let time = Duration::from_millis(next.saturating_sub(now).max(1));
                    self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

fn log_stuck(server: &Server, request: &TimedRequest, end: &str) {
    let seconds = request.age() as f64 / 1_000.0;
    let remedy = if server.channel.is_some() { ", and this worker is to be replaced" } else { "" };
    let message = format!("after {seconds:.3} s the application cannot be interrupted: {end}{remedy}");
    server.error_log.write_about(Level::Error, &request.name, &message);
}
