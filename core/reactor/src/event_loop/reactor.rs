//! The reactor: all connections of a process, and what the threads that look after them share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::connection::Buffers;
use crate::connection::body_spool::BodySpool;
use crate::connection::listener::{Listener, Listeners};
use crate::connection::shared_socket::SharedSocket;
use crate::control::channel;
use crate::control::counters::Counters;
use crate::control::request_timeout::{RequestTimeouts, Server};
use crate::control::shutdown::{ShutdownState, Stage};
use crate::event_loop::accept::{AcceptState, max_by_descriptors};
use crate::event_loop::connections::Slots;
use crate::event_loop::evict::IdleEviction;
use crate::event_loop::leader_followers::LeaderFollowers;
use crate::event_loop::queue_time::PollTimes;
use crate::event_loop::queue_time::QueueTime;
use crate::event_loop::timers::Timers;
use crate::log::error::ErrorLog;
use crate::options::Options;
use crate::sys::clock::NEVER;
use crate::sys::poller::Poller;
use crate::sys::process::forks;
use crate::sys::{BorrowedFd, Errno, clock};

/// Milliseconds between looks at what is left when the time to stop is over.
const FORCED_CLOSE_INTERVAL: u64 = 100;

/// What threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) slots: Slots,
    /// Connections to be looked at.
    pub(crate) ready: VecDeque<u32>,
    pub(crate) timers: Timers,
    /// When the alarm will go off.
    pub(crate) timer_at: u64,
    // Boxed, because they move between here and the connections all the time.
    #[allow(clippy::vec_box)]
    pub(crate) spare: Vec<Box<Buffers>>,
    pub(crate) threads: LeaderFollowers,
    pub(crate) eviction: IdleEviction,
    /// Connections whose request is being answered, and whose socket may take more although no edge will say so.
    pub(crate) paused: Vec<Arc<SharedSocket>>,
    /// When events were asked for.
    pub(crate) poll_times: PollTimes,
    /// Connections looked at since events were last asked for.
    pub(crate) turns: u32,
    /// When the access log wants to be flushed.
    pub(crate) flush_log: u64,
    /// When files that nobody asks for any more are to be closed.
    pub(crate) tidy_files: u64,
    pub(crate) accepting: AcceptState,
    /// When the last connection must have ended.
    pub(crate) force_close_at: u64,
    /// The wish to stop that has been acted upon.
    pub(crate) stage: Stage,
}

/// The reactor. It may be used by many threads at once, and is made in the process that uses it.
#[derive(Debug)]
pub struct Reactor {
    pub(crate) options: Options,
    pub(crate) poller: Poller,
    pub(crate) listeners: Listeners,
    shared: Mutex<Shared>,
    pub(crate) followers: Condvar,
    pub(crate) standby: Condvar,
    pub(crate) counters: &'static Counters,
    /// How often the poller has been asked for events, or an application has answered.
    pub(crate) poll_number: AtomicU64,
    /// [`Reactor::wake`] was called, and whoever noticed it had no time to say so.
    pub(crate) interrupted: AtomicBool,
    /// Connections that may be open at the same time.
    pub(crate) max_connections: usize,
    /// Connections whose last head is remembered.
    pub(crate) cached_heads: Arc<AtomicUsize>,
    /// [`forks`] when it was made.
    forks: u64,
    /// Whether it was told to stop.
    pub(crate) shutdown: ShutdownState,
    /// When all who wait in parked answers were last told that what they wait for has happened.
    pub(crate) long_polls_ended: AtomicU64,
    /// That is known to be due some day.
    pub(crate) tidying: AtomicBool,
    /// Requests have kept the lead waiting lately.
    pub(crate) stalling: AtomicBool,
    /// For how long requests have waited for others.
    pub(crate) queue_time: QueueTime,
    /// Of the time that the application takes.
    pub(crate) request_timeouts: Option<RequestTimeouts>,
    /// Writes bodies to disk.
    pub(crate) body_spool: Arc<BodySpool>,
}

impl Drop for Reactor {
    fn drop(&mut self) {
        self.body_spool.end();
    }
}

impl Reactor {
    /// Serves what comes in at `listeners`, non-blocking listening sockets.
    pub fn new<L: Into<Listener>>(listeners: Vec<L>, options: Options) -> Result<Arc<Self>, Errno> {
        let poller = Poller::new()?;
        let max_connections = match options.max_connections {
            // The handler of each has another one.
            0 if options.raw_tcp => max_by_descriptors() / 2,
            0 => max_by_descriptors(),
            most => most,
        };
        let listeners = Listeners::new(listeners.into_iter().map(Into::into).collect());
        listeners.watch(&poller)?;
        if let Some(channel) = &options.channel {
            poller.add_channel(channel.fd())?;
        }
        if let Some(fd_handoff) = &options.fd_handoff {
            poller.add_handoff(fd_handoff.fd())?;
        }
        let shared = Shared {
            slots: Slots::default(),
            ready: VecDeque::new(),
            timers: Timers::default(),
            timer_at: NEVER,
            spare: Vec::new(),
            threads: LeaderFollowers::default(),
            eviction: IdleEviction::default(),
            paused: Vec::new(),
            poll_times: PollTimes::default(),
            turns: 0,
            flush_log: NEVER,
            tidy_files: NEVER,
            accepting: AcceptState::default(),
            force_close_at: NEVER,
            stage: Stage::Running,
        };
        let request_timeouts = match (&options.timeout_handler, options.timeouts.request) {
            (None, _) | (_, 0) => None,
            (Some(handler), limit) => Some((RequestTimeouts::new(limit), Arc::clone(handler))),
        };
        let (request_timeouts, handler) = request_timeouts.unzip();
        // Some octets for each reactor that nobody watches over, of which a process has few.
        let counters = options.counters.unwrap_or_else(|| Box::leak(Box::default()));
        let body_spool = Arc::new(BodySpool::new(options.body_memory.0));
        let reactor = Arc::new(Reactor {
            options,
            poller,
            listeners,
            shared: Mutex::new(shared),
            followers: Condvar::new(),
            standby: Condvar::new(),
            counters,
            poll_number: AtomicU64::new(0),
            interrupted: AtomicBool::new(false),
            max_connections,
            cached_heads: Arc::default(),
            forks: forks(),
            shutdown: ShutdownState::default(),
            long_polls_ended: AtomicU64::new(0),
            tidying: AtomicBool::new(false),
            stalling: AtomicBool::new(false),
            queue_time: QueueTime::default(),
            request_timeouts,
            body_spool,
        });
        let weak = Arc::downgrade(&reactor);
        reactor.body_spool.serve(weak);
        if let (Some(timeouts), Some(handler)) = (&reactor.request_timeouts, handler) {
            timeouts.start(Arc::downgrade(&reactor), handler)?;
        }
        Ok(reactor)
    }

    /// Whether this process is a fork of the one that made this reactor. It must not touch the connections, and not
    /// ask the poller either: the answer would be missing in the parent.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        self.forks != forks()
    }

    /// Readable when there is something to do: for somebody else's event loop.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.poller.fd()
    }

    /// Any octet written here makes [`Reactor::wait_next`] return [`crate::Next::Interrupted`].
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.poller.wake_fd()
    }

    /// Makes [`Reactor::wait_next`] return [`crate::Next::Interrupted`] in the thread that polls.
    pub fn wake(&self) {
        self.poller.wake();
    }

    pub(crate) fn next_number(&self) -> u64 {
        let number = self.counters.next_request_number();
        if number == self.options.recycle_after {
            self.send(channel::RECYCLE);
        }
        number
    }

    /// Tells the main process something, if there is one.
    #[cold]
    pub fn send(&self, byte: u8) {
        if let Some(channel) = &self.options.channel
            && !self.is_foreign()
        {
            channel.send(&[byte]);
        }
    }

    /// Ask the main process to check now and then whether all slots are taken, as they are now.
    #[cold]
    pub fn send_full(&self) {
        if self.counters.is_full() && self.counters.set_watched(true) {
            self.send(channel::FULL);
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown.stage() != Stage::Running
    }

    /// Whether the time to stop gracefully is over.
    pub(crate) fn is_overdue(&self) -> bool {
        self.lock().force_close_at <= clock::now()
    }

    /// Whether it matters where the time goes.
    #[inline]
    pub(crate) fn logs_slow_requests(&self) -> bool {
        self.options.slow_request != 0
    }

    #[inline]
    pub(crate) fn is_stalling(&self) -> bool {
        self.stalling.load(Ordering::Relaxed)
    }

    /// Sets the alarm to the next thing that is due.
    #[inline]
    pub(crate) fn set_timer(&self, shared: &mut Shared) {
        let due = [shared.flush_log, shared.tidy_files, shared.accepting.resume_at()]
            .into_iter()
            .fold(shared.timers.next(), u64::min)
            .min(match shared.slots.live() {
                0 => NEVER,
                _ if shared.force_close_at == NEVER => NEVER,
                // When that is over, what is still in hand is looked after now and then.
                _ => match clock::now() {
                    now if shared.force_close_at <= now => now + FORCED_CLOSE_INTERVAL,
                    _ => shared.force_close_at,
                },
            });
        if due < shared.timer_at {
            shared.timer_at = due;
            self.poller.set_timer(due.saturating_sub(clock::now()));
        }
    }

    /// The number of the present look at the poller.
    pub(crate) fn poll_number(&self) -> u64 {
        self.poll_number.load(Ordering::Relaxed)
    }

    /// An application has run: what it has written shall be seen, also by who asked before the poller is looked at again.
    #[inline]
    pub(crate) fn advance_poll_number(&self) {
        if self.options.routes.is_some() || !self.options.sendfile_roots.is_empty() {
            self.poll_number.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn publish_connections(&self, shared: &Shared) {
        self.counters.set_connections(shared.slots.live());
        if let Some(accept_balance) = &self.options.accept_balance
            && !self.is_stopping()
        {
            accept_balance.publish(shared.slots.live());
        }
    }
}

impl Server for Reactor {
    fn server_line(&self) -> &[u8] {
        &self.options.server_line
    }

    fn error_log(&self) -> &ErrorLog {
        &self.options.error_log
    }

    fn has_main_process(&self) -> bool {
        self.options.channel.is_some()
    }

    fn send(&self, byte: u8) {
        Reactor::send(self, byte);
    }
}

impl Shared {
    pub(crate) fn is_finished(&self) -> bool {
        self.stage != Stage::Running && self.slots.live() == 0
    }
}
