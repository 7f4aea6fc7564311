//! Requests that took long, and where their time went.
//!
//! A request is there when its last octet is, and from then on its time is ours: what a client takes to send it is not
//! counted. The kernel does not say when something has come, so it is the moment in which the poller, waiting, was told of
//! it. If the poller is asked only when something is there already, it may have been there since the last look: what is
//! then said to have been spent waiting is the most that it can have been.

use std::sync::Arc;

use crate::connection::Connection;
use crate::exchange::{Exchange, line_of};
use crate::log::error::{Journal, Level};
use crate::reactor::Reactor;
use crate::sys::clock;

/// Microseconds in which the poller answers if it does not have to wait.
const AT_ONCE: u64 = 100;

/// When the poller was looked at. All times are in microseconds of [`clock::precise_us`].
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Looks so far; 0 for ever if nobody wants to know.
    count: u64,
    /// When nothing was there that had not been told.
    last: u64,
    /// Since when that may be there of which the present look tells.
    since: u64,
    /// The present look had to wait for something.
    waited: bool,
}

impl Looks {
    /// The poller has answered, which it was asked to at `begun`; 0: nobody wants to know.
    #[inline]
    pub(crate) fn note(&mut self, begun: u64) {
        if begun != 0 {
            self.waited = self.rest(begun);
            self.since = self.last;
            self.last = clock::precise_us();
            self.count += 1;
        }
    }

    /// Since `begun` somebody has waited for events, if there were none already. Says whether that was so.
    pub(crate) fn rest(&mut self, begun: u64) -> bool {
        let now = clock::precise_us();
        let waited = self.last == 0 || now - begun > AT_ONCE;
        if waited {
            self.last = now;
        }
        waited
    }

    /// A connection was let in.
    pub(crate) fn let_in(&self, connection: &mut Connection) {
        (connection.came_in, connection.since) = (self.count, self.since);
    }

    /// Something has come on a connection.
    #[inline]
    pub(crate) fn tell(&self, connection: &mut Connection) {
        // On one that was let in by the last look, it may have been there as long as the connection itself.
        if self.count != 0 && (self.waited || connection.came_in + 1 != self.count) {
            connection.since = self.since;
        }
    }
}

/// A request that was answered, but perhaps not sent yet.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) number: u64,
    pub(crate) line: String,
    pub(crate) status: u16,
    /// When it was there.
    pub(crate) since: u64,
    /// When the application got it.
    pub(crate) handed_out: u64,
    /// When the application had nothing more to say.
    pub(crate) ended: u64,
}

impl Answered {
    /// Logs it if it has taken at least `limit`, now that its last octet was sent, or given up. Of a gathered answer, that is
    /// when it was gathered.
    pub(crate) fn report(&self, limit: u64, journal: &Journal) {
        let sent = clock::precise_us();
        if sent - self.since < limit {
            return;
        }
        let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
        let Answered { number, line, status, .. } = self;
        let status = if *status == 0 { String::new() } else { format!(" {status},") };
        let message = format!(
            "request {number} {line}:{status} {:.3} s: {:.3} waiting for a thread, {:.3} in the application, {:.3} sending",
            seconds(self.since, sent),
            seconds(self.since, self.handed_out),
            seconds(self.handed_out, self.ended),
            seconds(self.ended, sent),
        );
        journal.write(Level::Warning, &message);
    }
}

impl Reactor {
    /// Whether it matters where the time goes.
    #[inline]
    pub(crate) fn is_timing(&self) -> bool {
        self.options.slow_request != 0
    }

    /// Somebody else's event loop has waited since `begun`, in microseconds of [`Reactor::time`].
    pub fn rested(&self, begun: u64) {
        self.lock().looks.rest(begun);
    }

    /// The time, for [`Reactor::rested`].
    pub fn time(&self) -> u64 {
        clock::precise_us()
    }

    /// Sees what has come while a request took long. Otherwise what its client asks next, which comes at once, might have been
    /// there all the time.
    #[cold]
    pub(crate) fn look_around(self: &Arc<Self>) {
        if self.lock().crew.is_polling() {
            return;
        }
        if !matches!(self.poll(false), Ok(false)) || self.options.watched_from_outside {
            // That was for somebody else to hear.
            self.wake();
        }
    }

    /// All of an answer was sent, or it is given up.
    #[inline]
    pub(crate) fn note_sent(&self, connection: &mut Connection) {
        if let Some(answered) = connection.answered.take() {
            answered.report(self.options.slow_request, &self.options.journal);
        }
    }
}

impl Exchange {
    #[cold]
    pub(crate) fn timed(&self, connection: &Connection) -> Answered {
        let ended = clock::precise_us();
        let handed_out = if self.handed_out == 0 { ended } else { self.handed_out };
        if ended - handed_out >= self.reactor.options.slow_request / 4 {
            // What is found has waited for this request.
            self.reactor.queue_time.end(clock::now());
            self.reactor.look_around();
        }
        let (number, line, status) = (self.number, line_of(connection), self.status());
        Answered { number, line, status, since: connection.since.min(handed_out), handed_out, ended }
    }
}
