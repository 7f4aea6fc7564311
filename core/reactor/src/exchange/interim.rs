//! Interim responses (RFC 9110 section 15.2), before the final one.

use crate::exchange::{Exchange, SendError};
use poorhttp_http::Invalid;

impl Exchange {
    /// Sends a response 103 with the header fields that `fields` writes by the function it is given. Does nothing if the client
    /// cannot take it, it is switched off, or the final response has begun to be sent. On an error nothing is sent.
    #[cold]
    pub fn early_hints<E: From<SendError> + From<Invalid>>(
        &mut self,
        fields: impl FnOnce(&mut dyn FnMut(&str, &str) -> Result<(), Invalid>) -> Result<(), E>,
    ) -> Result<(), E> {
        let is_wanted = self.reactor.options.early_hints && self.response.takes_interim();
        if self.stream.is_none() || self.answered_elsewhere || !is_wanted || self.is_foreign() {
            return Ok(());
        }
        let mut interim = Vec::new();
        self.response.early_hints(&mut interim, fields)?;
        Ok(self.send_interim(&interim)?)
    }

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
