//! Leaves a response open when the application has finished: a long poll.

use crate::exchange::{Exchange, SendError};

impl Exchange {
    /// Leaves the response open: the request is over, but its connection is kept until [`crate::Reactor::end_long_polls`]
    /// sends `final_chunk`, the server stops, or the client disconnects. If `end_long_polls` was called in the last `missed`
    /// milliseconds, that counts. A response without a body simply ends.
    pub fn hold_open(&mut self, final_chunk: &[u8], missed: u64) -> Result<(), SendError> {
        if self.answered_elsewhere {
            return Err(SendError::Over);
        }
        // The end is unknown: a client with another request must not wait for it on this connection.
        self.response.close();
        if !self.response.is_committed() {
            self.commit(None)?;
        }
        if self.lost || !self.response.has_body() {
            self.answered_elsewhere = true;
            return self.conclude();
        }
        let Some(stream) = self.stream.take() else { return Err(SendError::Over) };
        self.end_timeout();
        self.answered_elsewhere = true;
        self.reactor.counters.answered(self.status());
        if self.lost {
            stream.close(&self.reactor);
        } else {
            let coder = self.compressor.take().map(|compressor| compressor.coder);
            stream.hold_open(&self.reactor, self.response.clone(), coder, final_chunk, missed);
        }
        Ok(())
    }
}
