//! Responses that the server completes itself: those of handlers here, files as bodies, long polls.

use std::sync::Arc;

use poorhttp_files::{Content, Part, Reply};

use crate::exchange::{Exchange, SendError, compression, x_sendfile};
use crate::sys::OwnedFd;

/// A line of text as a whole response, with more header fields.
pub(crate) fn text_reply(status: &'static str, line: &str, fields: &str) -> Reply {
    let text = format!("{line}\n").into_bytes();
    Reply {
        status: status.into(),
        fields: format!("Content-Type: text/plain; charset=utf-8\r\n{fields}").into_bytes().into(),
        length: text.len() as u64,
        content: Content::Memory(text.into()),
    }
}

impl Exchange {
    /// Sends a whole response. The request is over.
    pub(crate) fn reply(&mut self, reply: Reply) -> Result<(), SendError> {
        let (reply, length) = match &self.reactor.options.compression {
            Some(compression) => {
                let whole = reply.length;
                let (reply, length) = compression::reply(self, compression, reply);
                if length.is_some_and(|length| length < whole) {
                    self.note_uncoded(whole);
                }
                (reply, length)
            }
            None => {
                let length = reply.length;
                (reply, Some(length))
            }
        };
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        self.response.start_prepared(stream.output(), &reply.status, &reply.fields)?;
        if reply.length == 0 && !matches!(self.response.status(), 204 | 304) {
            // For HEAD as well: the file is known to be empty.
            self.response.field(stream.output(), "Content-Length", "0")?;
        }
        self.commit(length)?;
        if reply.content.is_on_disk() {
            self.reactor.tidy_soon();
        }
        match reply.content {
            Content::Nothing => {}
            Content::Memory(bytes) => self.add(&bytes)?,
            Content::File { file, at } => {
                if let length @ 1.. = self.admit(reply.length) {
                    self.transmit_parts([Part::File { file, at, length }])?;
                }
            }
            Content::Parts(parts) => {
                if self.admit(reply.length) > 0 {
                    self.transmit_parts(parts)?;
                }
            }
        }
        self.conclude()
    }

    /// Sends a part of a file as the body; after [`Exchange::start`]. The request is over.
    pub fn send_file(&mut self, file: OwnedFd, at: u64, length: u64) -> Result<(), SendError> {
        if self.names_file() {
            return x_sendfile::send(self);
        }
        if self.may_compress() {
            self.set_fields_of_plain_file(length);
        }
        // The length is known, so it is sent without chunks.
        let length = self.response.declared_length().map_or(length, |declared| declared.min(length));
        self.commit(Some(length))?;
        if let admitted @ 1.. = self.admit(length) {
            self.transmit_parts([Part::File { file: Arc::new(file), at, length: admitted }])?;
        }
        self.end()
    }

    /// Sends parts of files and of memory, which have been admitted.
    pub(crate) fn transmit_parts(&mut self, parts: impl IntoIterator<Item = Part>) -> Result<(), SendError> {
        let stream = self.stream.as_mut().ok_or(SendError::Over)?;
        let response = &self.response;
        let largest = response.largest_chunk() as u64;
        let pieces = parts.into_iter().flat_map(|part| {
            let total = part.length();
            (0..total.div_ceil(largest)).flat_map(move |number| {
                let length = largest.min(total - number * largest);
                let head =
                    response.record(length as usize).map(|head| Part::Memory(Arc::from(&head[..]), 0..head.len()));
                head.into_iter().chain([part.piece(number * largest, length)])
            })
        });
        let sent = stream.send_parts(pieces);
        sent.map_err(|lost| self.disconnected(lost))
    }

    /// How many of `length` bytes of the body are to be sent.
    pub(crate) fn admit(&mut self, length: u64) -> u64 {
        self.response.admit(usize::try_from(length).unwrap_or(usize::MAX)) as u64
    }

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
