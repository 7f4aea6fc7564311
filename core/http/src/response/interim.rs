//! Interim responses (RFC 9110 section 15.2).

use crate::parser::version::Version;
use crate::protocol::Protocol;
use crate::reject::Invalid;
use crate::response::{Response, State};

impl Response {
    /// Whether an interim response may come before this one: the client speaks HTTP/1.1 with us, and the head is not complete.
    pub fn takes_interim(&self) -> bool {
        self.version != Version::Http10 && self.dialect.protocol == Protocol::Http && !self.is_committed()
    }

    /// Writes a response 103 (RFC 8297), with the header fields that `fields` writes by the function it is given. They are
    /// checked as those of a final response.
    pub fn early_hints<E: From<Invalid>>(
        &self,
        out: &mut Vec<u8>,
        fields: impl FnOnce(&mut dyn FnMut(&str, &str) -> Result<(), Invalid>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut interim = Response { state: State::Started, length: None, ..self.clone() };
        out.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\n");
        fields(&mut |name, value| interim.field(out, name, value))?;
        if interim.length.is_some() {
            // RFC 9110 section 8.6.
            return Err(Invalid("header Content-Length: an interim response has no content".into()).into());
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}
