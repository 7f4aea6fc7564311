//! The public methods of the reactor for `core/python`, besides [`Reactor::wait_next`].

use std::sync::Arc;

use crate::event_loop::reactor::Reactor;
use crate::event_loop::{logging, poll, shutdown};
use crate::log::sink::Sink;
use crate::sys::clock;

impl Reactor {
    /// Writes the waiting lines of the access log.
    pub fn flush_log(&self) {
        logging::flush_log(self);
    }

    /// Writes the waiting lines of the access log for the last time.
    pub fn close_log(&self) {
        logging::close_log(self);
    }

    /// Continues the access log in `sink`; waiting lines go to the old place.
    pub fn reopen_log(&self, sink: Sink) {
        logging::reopen_log(self, sink);
    }

    /// Notes that an outside event loop has waited since `begun`, in microseconds of [`Reactor::time`].
    pub fn waited_since(&self, begun: u64) {
        poll::waited_since(self, begun);
    }

    /// The time, for [`Reactor::waited_since`].
    pub fn time(&self) -> u64 {
        clock::precise_us()
    }

    /// Stops accepting, and ends when every request in flight is answered. If `graceful`, requests of which a part has arrived
    /// are received and answered, too, and idle clients may send another one for the time of [`crate::Timeouts::drain`].
    ///
    /// `last`: no other process listens on the same sockets, so all connections in their backlogs are accepted.
    pub fn stop(self: &Arc<Self>, graceful: bool, last: bool) {
        shutdown::stop(self, graceful, last);
    }

    /// Does what the main process wants.
    #[cold]
    pub fn receive_commands(self: &Arc<Self>) {
        shutdown::receive_commands(self);
    }

    /// Whether the reactor was stopped and every connection has ended.
    pub fn is_finished(&self) -> bool {
        shutdown::is_finished(self)
    }

    /// Reports the server as not ready from now on, while it still accepts and serves: it will stop soon.
    pub fn drain(&self) {
        shutdown::drain(self);
    }

    /// Completes all long polls.
    pub fn end_long_polls(&self) {
        shutdown::end_long_polls(self);
    }
}
