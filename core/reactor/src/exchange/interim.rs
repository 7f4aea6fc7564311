//! Interim responses (RFC 9110 section 15.2), before the final one.

use crate::exchange::{Exchange, SendError};

impl Exchange {
    /// Sends an interim response at once: before status and fields of the final response, if these are given already.
    #[cold]
    pub(crate) fn send_interim(&mut self, interim: &[u8]) -> Result<(), SendError> {
        self.check_lost()?;
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        let out = stream.output();
        let waiting = self.response.set_aside(out);
        out.extend_from_slice(interim);
        let sent = stream.send(&[]);
        self.response.put_back(stream.output(), &waiting);
        if !self.response.is_committed() {
            self.start = stream.end_of_output() - waiting.len() as u64;
            self.body = self.start;
        }
        sent.map_err(|lost| self.disconnected(lost))
    }
}
