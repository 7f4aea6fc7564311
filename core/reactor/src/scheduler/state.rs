//! The state of a reactor: options, listeners, and what threads share under its lock.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::channel;
use crate::connection::Connection;
use crate::connection::body::spool::BodySpool;
use crate::connection::coalesced::CoalescedSender;
use crate::connection::listener::{Listener, Listeners};
use crate::connection::long_polls::LongPolls;
use crate::connection::shared_socket::SharedSocket;
use crate::connection::stream_watch::StreamWatch;
use crate::log::access::DELAY;
use crate::log::error::{Level, Message};
use crate::log::request_id::RequestName;
use crate::log::sink::Sink;
use crate::options::{Handling, Options, Receiving, Responding, Running, Timeouts};
use crate::overload::accept_balance::{AcceptState, max_by_descriptors};
use crate::overload::queue_time::{PollTimes, QueueTime};
use crate::overload::queue_timeout::QueueTimeout;
use crate::overload::streaming::Streaming;
use crate::request_timeout::{RequestTimeouts, Server};
use crate::scheduler::connections::Connections;
use crate::scheduler::evict::IdleEviction;
use crate::scheduler::leader_followers::{LeaderFollowers, Waiters};
use crate::scheduler::thread_watch;
use crate::scheduler::timers::Timers;
use crate::shutdown::{ShutdownState, Stage, Stopping};
use crate::status::counters::Counters;
use crate::sys::clock::NEVER;
use crate::sys::poller::{Poller, Source};
use crate::sys::process::forks;
use crate::sys::{Errno, clock};
use crate::telemetry::{Telemetry, logging};
use crate::websocket::limits::Upgrades;
use crate::websocket::relay::Relays;

/// Milliseconds between checks for files and memory that are not needed any more.
const TIDY_INTERVAL: u64 = 10_000;

/// The state that threads share under the lock. Each part guards its own invariants.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) connections: Connections,
    pub(crate) timers: Timers,
    pub(crate) threads: LeaderFollowers,
    pub(crate) eviction: IdleEviction,
    /// Connections whose request is being answered, and whose socket may take more although no edge will say so.
    pub(crate) paused: Vec<Arc<SharedSocket>>,
    /// When events were asked for.
    pub(crate) poll_times: PollTimes,
    pub(crate) accepting: AcceptState,
    pub(crate) stopping: Stopping,
}

/// What the rooms of a reactor share. It is made in the process that uses it.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) timeouts: Timeouts,
    pub(crate) receiving: Receiving,
    pub(crate) responding: Responding,
    pub(crate) handling: Handling,
    pub(crate) running: Running,
    /// Logs, and times of requests.
    pub(crate) telemetry: Telemetry,
    pub(crate) poller: Poller,
    pub(crate) listeners: Listeners,
    shared: Mutex<Shared>,
    pub(crate) waiters: Waiters,
    pub(crate) counters: &'static Counters,
    /// Counts polls and responses of applications: results of a file system call are reused while it stays the same.
    pub(crate) poll_number: AtomicU64,
    /// [`crate::Reactor::wake`] was called, and [`crate::Next::Interrupted`] is still to be returned.
    interrupted: AtomicBool,
    /// Connections that may be open at the same time.
    pub(crate) max_connections: usize,
    /// Connections whose last head is remembered.
    pub(crate) cached_heads: Arc<AtomicUsize>,
    /// [`forks`] when it was made.
    forks: u64,
    /// The requested stage of a shutdown.
    pub(crate) shutdown: ShutdownState,
    /// What is meant for all long polls.
    pub(crate) long_polls: LongPolls,
    /// Closing unused files and freeing unused memory is scheduled.
    pub(crate) tidying: AtomicBool,
    /// For how long requests have waited for others.
    pub(crate) queue_time: QueueTime,
    /// Refuses requests that have waited too long.
    pub(crate) queue_timeout: QueueTimeout,
    /// Enforces `request_timeout`, if it is set.
    pub(crate) request_timeouts: Option<RequestTimeouts>,
    /// Writes bodies to disk.
    pub(crate) body_spool: Arc<BodySpool>,
    /// Connections that applications have got.
    pub(crate) upgrades: Arc<Upgrades>,
    /// Responses that stream, if their threads are those of a pool.
    pub(crate) streaming: Option<Arc<Streaming>>,
    /// Sends pieces of responses that nothing follows.
    pub(crate) coalesced_sender: Arc<CoalescedSender>,
    /// Connections with streams, for the thread that reads them while all others run requests.
    pub(crate) stream_watch: StreamWatch,
    /// Copies between connections and the sockets that applications have instead of theirs.
    pub(crate) relays: Relays,
}

impl Drop for State {
    fn drop(&mut self) {
        self.body_spool.end();
        self.waiters.alarm.iter().for_each(|alarm| alarm.end());
        if !self.is_foreign() {
            self.stream_watch.end();
        }
    }
}

impl State {
    /// Serves the connections of `listeners`, non-blocking listening sockets.
    pub(crate) fn new(listeners: Vec<Listener>, options: Options) -> Result<Arc<Self>, Errno> {
        let Options {
            limits,
            timeouts,
            body_memory,
            max_connections,
            server_line,
            accept_balance,
            channel,
            fd_handoff,
            recycle_after,
            counters,
            records,
            health,
            https_redirect,
            hsts,
            temp_dir,
            spool,
            routes,
            streamed_bodies,
            early_hints,
            files,
            sendfile_roots,
            compression,
            trust,
            multiplexing,
            abort_on_close,
            queue_limit,
            since_input,
            unacknowledged,
            max_upgraded,
            max_streaming,
            thread_pool,
            auto_threads,
            has_one_thread,
            raw_tcp,
            external_loop,
            reopen_logs,
            note_stop,
            on_main_process_end,
            timeout_handler,
            slow_request,
            request_ids,
            access_log,
            error_log,
        } = options;
        let poller = Poller::new()?;
        let max_connections = match max_connections {
            // The handler of each has another one.
            0 if raw_tcp => max_by_descriptors() / 2,
            0 => max_by_descriptors(),
            most => most,
        };
        let listeners = Listeners::new(listeners);
        listeners.watch(&poller, false)?;
        if let Some(channel) = &channel {
            poller.add(channel.fd(), Source::Channel)?;
        }
        if let Some(fd_handoff) = &fd_handoff {
            poller.add(fd_handoff.fd(), Source::Handoff)?;
        }
        // A few bytes leaked for each reactor without a supervisor, of which a process has few.
        let counters = counters.unwrap_or_else(|| Box::leak(Box::default()));
        let telemetry =
            Telemetry::new(access_log, error_log, request_ids, counters, records, slow_request, unacknowledged);
        let request_timeouts = match (timeout_handler, timeouts.request) {
            (Some(handler), limit @ 1..) => {
                let server = Server {
                    server_line: server_line.clone(),
                    hsts: hsts.clone(),
                    error_log: Arc::clone(&telemetry.error_log),
                    access_log: telemetry.access_log.clone(),
                    counters,
                    recorder: telemetry.recorder.clone(),
                    channel: channel.clone(),
                };
                Some(RequestTimeouts::start(limit, server, handler)?)
            }
            _ => None,
        };
        let state = Arc::new(State {
            timeouts,
            receiving: Receiving { limits, trust, raw_tcp, multiplexing },
            responding: Responding { server_line, hsts, compression, sendfile_roots, early_hints },
            handling: Handling { health, https_redirect, routes, streamed_bodies, abort_on_close, since_input },
            running: Running {
                external_loop,
                has_one_thread,
                accept_balance,
                fd_handoff,
                channel,
                recycle_after,
                reopen_logs,
                note_stop,
                on_main_process_end,
                temp_dir,
                spool,
                files,
            },
            telemetry,
            poller,
            listeners,
            shared: Mutex::default(),
            waiters: Waiters::new(auto_threads.is_some()),
            counters,
            poll_number: AtomicU64::new(0),
            interrupted: AtomicBool::new(false),
            max_connections,
            cached_heads: Arc::default(),
            forks: forks(),
            shutdown: ShutdownState::default(),
            long_polls: LongPolls::default(),
            tidying: AtomicBool::new(false),
            queue_time: QueueTime::default(),
            queue_timeout: QueueTimeout::new(queue_limit),
            request_timeouts,
            body_spool: Arc::new(BodySpool::new(body_memory, &counters.metrics.spooled)),
            upgrades: Arc::new(Upgrades::new(max_upgraded)),
            streaming: thread_pool.clone().map(|pool| Arc::new(Streaming::new(max_streaming, pool, counters))),
            coalesced_sender: Arc::new(CoalescedSender::new()),
            stream_watch: StreamWatch::default(),
            relays: Relays::new(),
        });
        let weak = Arc::downgrade(&state);
        state.body_spool.serve(weak);
        if let Some((bounds, pool)) = auto_threads.zip(thread_pool) {
            thread_watch::start(&state, pool, bounds)?;
        }
        Ok(state)
    }

    /// Whether this process is a fork of the one that made this reactor. It must not touch the connections, and not
    /// ask the poller either: the answer would be missing in the parent.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.forks != forks()
    }

    /// Makes [`crate::Reactor::wait_next`] return [`crate::Next::Interrupted`] in the thread that polls.
    pub(crate) fn wake(&self) {
        self.poller.wake();
    }

    pub(crate) fn next_number(&self) -> u64 {
        let number = self.counters.next_request_number();
        if number == self.running.recycle_after {
            self.send(channel::RECYCLE);
        }
        if self.counters.takes_request() {
            self.send(channel::ACTIVE);
        }
        number
    }

    /// Sends a message to the main process, if there is one.
    #[cold]
    pub(crate) fn send(&self, byte: u8) {
        if let Some(channel) = &self.running.channel
            && !self.is_foreign()
        {
            channel.send(byte);
        }
    }

    /// Ask the main process to check now and then whether all slots are taken, as they are now.
    #[cold]
    pub(crate) fn send_full(&self) {
        if self.counters.is_full() && self.counters.set_watched(true) {
            self.send(channel::FULL);
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a message to the error log.
    pub(crate) fn log(&self, level: Level, message: &str) {
        self.telemetry.error_log.write(level, message);
    }

    /// Writes a message about a request to the error log.
    #[cold]
    pub(crate) fn log_about(&self, level: Level, request: &RequestName, message: &str) {
        self.telemetry.error_log.write_about(level, request, message);
    }

    /// Whether the reactor was stopped and every connection has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.lock().is_finished()
    }

    /// Notes that an outside event loop has waited since `begun`, in microseconds of [`crate::Reactor::time`].
    pub(crate) fn waited_since(&self, begun: u64) {
        self.lock().poll_times.note_wait(begun);
    }

    /// Writes the waiting lines of the access log.
    pub(crate) fn flush_log(&self) {
        let Some(log) = &self.telemetry.access_log else { return };
        let waits = log.flush();
        let report = |problems: &str| {
            self.telemetry.error_log.try_write(&Message { level: Level::Error, text: problems, ..Message::default() })
        };
        if log.report_problems(report) || waits {
            self.flush_log_soon();
        }
    }

    /// Logs the responses of a connection that were sent, and copies the data for the others.
    #[inline]
    pub(crate) fn log_sent(&self, connection: &mut Connection) {
        if logging::log_sent(&self.telemetry, connection) {
            self.flush_log_soon();
        }
    }

    #[cold]
    pub(crate) fn flush_log_soon(&self) {
        let mut shared = self.lock();
        if shared.timers.flush_log_at(clock::now() + DELAY) {
            self.set_timer(&mut shared);
        }
    }

    /// A file is open, or memory is kept, that may not be needed again.
    #[inline]
    pub(crate) fn tidy_soon(&self) {
        if !self.tidying.load(Ordering::Relaxed) {
            self.schedule_tidy();
        }
    }

    #[cold]
    fn schedule_tidy(&self) {
        let mut shared = self.lock();
        self.tidying.store(true, Ordering::Relaxed);
        shared.timers.tidy_at(clock::now() + TIDY_INTERVAL);
        self.set_timer(&mut shared);
    }

    /// Writes the waiting lines of the access log for the last time.
    pub(crate) fn close_log(&self) {
        if let Some(log) = &self.telemetry.access_log
            && !self.is_foreign()
        {
            log.close();
            log.report_problems(|problems| {
                self.log(Level::Error, problems);
                Ok(())
            });
        }
    }

    /// Continues the access log in `sink`; waiting lines go to the old place.
    pub(crate) fn reopen_log(&self, sink: Sink) {
        if let Some(log) = &self.telemetry.access_log {
            log.reopen(sink);
            self.flush_log();
        }
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown.stage() != Stage::Running
    }

    /// Whether requests are refused because more is asked for than can be answered, and the server goes on.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.queue_timeout.is_overload() && !self.is_stopping()
    }

    /// Whether the time to stop gracefully is over.
    pub(crate) fn is_overdue(&self) -> bool {
        self.lock().stopping.is_overdue(clock::now())
    }

    /// Whether times are taken: for metrics, or for the slow log.
    #[inline]
    pub(crate) fn takes_times(&self) -> bool {
        self.telemetry.takes_times()
    }

    /// [`crate::Reactor::wake`] was called, and the caller cannot return [`crate::Next::Interrupted`].
    pub(crate) fn put_off_interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
    }

    /// Whether an interrupt was put off; it no longer is then.
    #[inline]
    pub(crate) fn take_interrupt(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) && self.interrupted.swap(false, Ordering::Acquire)
    }

    /// Has the poller's timer set to the next thing that is due: now if a thread may be waiting for it, else before one does.
    #[inline]
    pub(crate) fn set_timer(&self, shared: &mut Shared) {
        if shared.threads.is_polling() || self.running.external_loop {
            self.set_timer_now(shared);
        }
    }

    /// Sets the timer of the poller to the next thing that is due, under the lock under which a thread begins to poll. Most
    /// connections have been read by then, and have a later deadline than that of their head, or none.
    #[inline]
    pub(crate) fn set_timer_now(&self, shared: &mut Shared) {
        let stop_check = if shared.connections.live() == 0 { NEVER } else { shared.stopping.next_check() };
        let Shared { timers, connections, accepting, .. } = shared;
        if let Some(due) = timers.arm(connections, accepting.resume_at().min(stop_check)) {
            self.poller.set_timer(due.saturating_sub(clock::now()));
        }
    }

    /// The number of the current poll.
    pub(crate) fn poll_number(&self) -> u64 {
        self.poll_number.load(Ordering::Relaxed)
    }

    /// An application has run: files that it has written must be found, also before the next poll.
    #[inline]
    pub(crate) fn advance_poll_number(&self) {
        if self.handling.routes.is_some() || !self.responding.sendfile_roots.is_empty() {
            self.poll_number.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn publish_connections(&self, shared: &Shared) {
        self.counters.set_connections(shared.connections.live());
        // This thread takes one of them.
        self.counters.metrics.set_ready(shared.connections.ready().saturating_sub(1));
    }
}

impl Shared {
    /// Moves the deadline of a connection. `true`: the poller's timer may have to be set earlier.
    #[inline]
    pub(crate) fn set_deadline(&mut self, index: u32, generation: u32, at: u64) -> bool {
        self.timers.set(&mut self.connections.of(index).deadline, at, index, generation)
    }

    /// Acts upon the stage that was requested.
    #[cold]
    pub(crate) fn enter_stage(&mut self, stage: Stage, timeouts: &Timeouts) {
        let timeout = if stage == Stage::Graceful { timeouts.graceful } else { 0 };
        self.stopping.enter(stage, clock::now() + timeout);
        // Bytes that have arrived by now are still read.
        self.connections.mark_all_readable(|_| true);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.stopping.stage() != Stage::Running && (self.connections.live() == 0 || self.stopping.has_given_up())
    }
}
