//! Answers that stay open without anybody at work on them: their clients wait for what will be said to all of them.
//!
//! A parked connection takes no thread and no time limit. It is ended when the server stops, when [`Reactor::bid_farewell`] is
//! called, or when its client leaves.

use std::sync::atomic::Ordering;

use crate::connection::send_queue::Flushed;
use crate::connection::{After, Connection, Parked, Phase};
use crate::event_loop::reactor::Reactor;
use crate::event_loop::ready_queue::Again;
use crate::exchange::Exchange;
use crate::exchange::response::Unsent;
use crate::sys::clock::{self, NEVER};

impl Exchange {
    /// Leaves the answer open as it is now: the request is over, but its connection is kept until all are bidden
    /// `farewell`, the server stops, or the client leaves. If others were bidden farewell in the last `missed` milliseconds,
    /// this one is at once. What has no body is simply ended.
    pub fn park(&mut self, farewell: &[u8], missed: u64) -> Result<(), Unsent> {
        if self.stood_in {
            return Err(Unsent::Over);
        }
        // There is no telling when it ends: who wants to ask for something else shall not wait for that.
        self.response.close();
        if !self.response.is_committed() {
            self.commit(None)?;
        }
        if self.lost || !self.response.has_body() {
            self.stood_in = true;
            return self.conclude();
        }
        let Some(mut connection) = self.connection.take() else { return Err(Unsent::Over) };
        connection.number = self.number;
        self.leave_watch();
        self.stood_in = true;
        self.reactor.tally.answered(self.status());
        if self.lost || connection.transmit(&[]).is_err() {
            self.reactor.close(connection);
            return Ok(());
        }
        connection.served = connection.served.saturating_add(1);
        let since = clock::precise_us().saturating_sub(missed.saturating_mul(1_000));
        connection.parked =
            Some(Box::new(Parked { response: self.response.clone(), farewell: farewell.into(), since }));
        connection.phase = Phase::Parked;
        connection.work = None;
        self.reactor.attend_parked(connection);
        Ok(())
    }
}

impl Reactor {
    /// Looks after a parked connection.
    #[cold]
    pub(crate) fn attend_parked(&self, mut connection: Box<Connection>) {
        // What a client still says is not answered.
        if connection.discard() || (connection.has_outlet && connection.flush() == Flushed::Broken) {
            return self.close(connection);
        }
        let is_bidden =
            connection.parked.as_ref().is_some_and(|parked| self.farewell.load(Ordering::Acquire) > parked.since);
        if is_bidden || self.is_stopping() {
            return self.end_parked(connection, is_bidden);
        }
        let again = if connection.readable { Again::InTurn } else { Again::No };
        self.put_back(connection, NEVER, again);
    }

    fn end_parked(&self, mut connection: Box<Connection>, is_bidden: bool) {
        if let Some(mut parked) = connection.parked.take() {
            let response = &mut parked.response;
            let out = &mut connection.work().out;
            let admitted = if is_bidden { response.admit(parked.farewell.len()) } else { 0 };
            for piece in parked.farewell[..admitted].chunks(response.largest_chunk()) {
                response.open_chunk(out, piece.len());
                out.extend_from_slice(piece);
                out.extend_from_slice(response.end_of_chunk(piece.len()));
            }
            response.end(out);
        }
        connection.phase = Phase::Serving;
        let after = if connection.may_be_sending() { After::Linger } else { After::Close };
        self.settle(connection, after);
    }
}
