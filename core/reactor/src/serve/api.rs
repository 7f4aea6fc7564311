//! What the embedding calls, beside [`Reactor::wait_next`].

use std::sync::Arc;

use crate::event_loop::reactor::Reactor;
use crate::event_loop::{logging, poll, shutdown};
use crate::log::sink::Sink;
use crate::sys::clock;

impl Reactor {
    /// Writes the lines of the access log that wait.
    pub fn flush_log(&self) {
        logging::flush_log(self);
    }

    /// Writes the lines of the access log that wait for the last time.
    pub fn close_log(&self) {
        logging::close_log(self);
    }

    /// Goes on with the access log in `sink`; the lines that wait go to where it is now.
    pub fn reopen_log(&self, sink: Sink) {
        logging::reopen_log(self, sink);
    }

    /// Somebody else's event loop has waited since `begun`, in microseconds of [`Reactor::time`].
    pub fn waited_since(&self, begun: u64) {
        poll::waited_since(self, begun);
    }

    /// The time, for [`Reactor::waited_since`].
    pub fn time(&self) -> u64 {
        clock::precise_us()
    }

    /// Stops accepting, and ends when every request in hand is answered. If `graceful`, what clients have begun to send is
    /// heard out too, and those who are silent for a moment still have the time of [`crate::Timeouts::drain`] to ask.
    ///
    /// `last`: nobody else listens on the same sockets, so all who wait in their queues are let in.
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

    /// Nobody new should come to this server from now on, although it still accepts and serves: it will stop soon.
    pub fn drain(&self) {
        shutdown::drain(self);
    }

    /// Has all parked answers say their farewell and end.
    pub fn end_long_polls(&self) {
        shutdown::end_long_polls(self);
    }
}
