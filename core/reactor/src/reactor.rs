//! The type `Reactor`: its public methods; each calls the module that does the work.

use std::sync::Arc;

use crate::connection::listener::Listener;
use crate::event_loop::r#loop::{self, Next};
use crate::exchange::Exchange;
use crate::log::sink::Sink;
use crate::options::Options;
use crate::scheduler::state::State;
use crate::scheduler::{stop, threads};
use crate::status::counters::Counters;
use crate::sys::{BorrowedFd, Errno, clock};

/// The reactor. It may be used by many threads at once, and is made in the process that uses it. A clone is the same reactor.
#[derive(Clone, Debug)]
pub struct Reactor {
    state: Arc<State>,
}

impl Reactor {
    /// Serves the connections of `listeners`, non-blocking listening sockets.
    pub fn new<L: Into<Listener>>(listeners: Vec<L>, options: Options) -> Result<Self, Errno> {
        let state = State::new(listeners.into_iter().map(Into::into).collect(), options)?;
        Ok(Reactor { state })
    }

    /// Whether this process is a fork of the one that made this reactor. It must not touch the connections, and not
    /// ask the poller either: the answer would be missing in the parent.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        self.state.is_foreign()
    }

    /// Readable when there are events: for the event loop of another library.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.state.poller.fd()
    }

    /// Any byte written here makes [`Reactor::wait_next`] return [`Next::Interrupted`].
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.state.poller.wake_fd()
    }

    /// Makes [`Reactor::wait_next`] return [`Next::Interrupted`] in the thread that polls.
    pub fn wake(&self) {
        self.state.wake();
    }

    /// The counters, in memory that other processes may read.
    pub fn counters(&self) -> &'static Counters {
        self.state.counters
    }

    /// Whether times are taken: for metrics, or for the slow log.
    #[inline]
    pub fn takes_times(&self) -> bool {
        self.state.takes_times()
    }

    /// The time, for [`Reactor::waited_since`].
    pub fn time(&self) -> u64 {
        clock::precise_us()
    }

    /// Notes that an outside event loop has waited since `begun`, in microseconds of [`Reactor::time`].
    pub fn waited_since(&self, begun: u64) {
        self.state.waited_since(begun);
    }

    /// Sends a message to the main process, if there is one.
    #[cold]
    pub fn send(&self, byte: u8) {
        self.state.send(byte);
    }

    /// Ask the main process to check now and then whether all slots are taken, as they are now.
    #[cold]
    pub fn send_full(&self) {
        self.state.send_full();
    }
}

/// Requests.
impl Reactor {
    /// The next request that can be had without waiting. Static files are sent from here only if the caller `may_wait` for
    /// the file system; otherwise [`Reactor::wait_next`] sends them. There may be a request even if this returns `None`: a
    /// turn is short, so that signals and an outside event loop are not kept waiting.
    #[inline]
    pub fn try_next(&self, may_wait: bool) -> Option<Exchange> {
        r#loop::try_next(&self.state, may_wait)
    }

    /// Waits for the next request.
    pub fn wait_next(&self) -> Next {
        r#loop::wait_next(&self.state)
    }

    /// The next request, for an external event loop, which has its turn again after `None`. See [`Reactor::try_next`].
    #[inline]
    pub fn next_in_turn(&self, poll: impl FnOnce() -> Option<Exchange>) -> Option<Exchange> {
        r#loop::next_in_turn(&self.state, poll)
    }

    /// The next request, for an outside event loop: asks the poller without waiting.
    pub fn poll_next(&self) -> Option<Exchange> {
        r#loop::poll_next(&self.state)
    }

    /// This thread works on its request for long, and does not take another one: others lead.
    #[cold]
    pub fn leave(&self) {
        threads::leave(&self.state);
    }

    /// This thread serves no more, because another one does in its place: see [`has_left`](crate::has_left).
    pub fn end_thread(&self) {
        threads::end(&self.state);
    }

    /// Whether requests are refused because more is asked for than can be answered, and the server goes on.
    pub fn is_overloaded(&self) -> bool {
        self.state.is_overloaded()
    }

    /// Completes all long polls.
    pub fn end_long_polls(&self) {
        stop::end_long_polls(&self.state);
    }

    /// Sends a chunk to all long polls that are not behind; the others get the last one as soon as they can. Returns how
    /// many connections may be long polls.
    pub fn push_to_long_polls(&self, chunk: &[u8]) -> usize {
        stop::push_to_long_polls(&self.state, chunk)
    }
}

/// Logs.
impl Reactor {
    /// Writes the waiting lines of the access log for the last time.
    pub fn close_log(&self) {
        self.state.close_log();
    }

    /// Continues the access log in `sink`; waiting lines go to the old place.
    pub fn reopen_log(&self, sink: Sink) {
        self.state.reopen_log(sink);
    }
}

/// The end.
impl Reactor {
    /// Stops accepting, and ends when every request in flight is answered. If `graceful`, requests of which a part has arrived
    /// are received and answered, too, and idle clients may send another one for the time of [`crate::Timeouts::drain`].
    ///
    /// `last`: no other process listens on the same sockets, so all connections in their backlogs are accepted.
    pub fn stop(&self, graceful: bool, last: bool) {
        stop::stop(&self.state, graceful, last);
    }

    /// Cuts all connections of a reactor that was stopped, and ends although requests are in flight: the next call of each of
    /// their applications fails.
    #[cold]
    pub fn give_up(&self) {
        stop::give_up(&self.state);
    }

    /// Receives and executes the commands of the main process.
    #[cold]
    pub fn receive_commands(&self) {
        stop::receive_commands(&self.state);
    }

    /// Reports the server as not ready from now on, while it still accepts and serves: it will stop soon.
    pub fn drain(&self) {
        stop::drain(&self.state);
    }

    /// Whether the reactor was stopped and every connection has ended.
    pub fn is_finished(&self) -> bool {
        self.state.is_finished()
    }

    /// Whether it was stopped; requests may still be in flight.
    pub fn is_stopping(&self) -> bool {
        self.state.is_stopping()
    }

    /// Whether the main process has stopped the reactor to make this process the preloader.
    pub fn is_promoted(&self) -> bool {
        self.state.shutdown.is_promoted()
    }
}
