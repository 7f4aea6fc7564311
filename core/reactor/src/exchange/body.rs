//! Hands parts of a request's body to the application that already runs (`stream_request_body`).

use crate::connection::NO_MEMORY;
use crate::connection::body::receive::Streamed;
use crate::exchange::{Exchange, SendError};
use crate::log::error::Level;
use crate::sys::clock;
use poorhttp_http::Reject;

const TOO_SLOW: Reject = Reject { status: 408, reason: "the body did not arrive in time" };

/// Outcome of [`Exchange::receive_body`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPart {
    /// So many bytes.
    Content(usize),
    /// The body is complete.
    End,
    /// Nothing has come. The application should wait until [`Exchange::socket`] is readable, at most so many milliseconds, and
    /// call again.
    NothingYet(u64),
}

/// Why nothing more of a body is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The client has left in the middle of it, or was answered by the request timeout.
    Disconnected,
    /// The request has been answered, or belongs to the process that forked this one.
    Over,
    /// It is too large or malformed, or comes too slowly: the answer that it gets if nothing was sent yet.
    Refused(Reject),
}

impl Exchange {
    /// Whether the application receives the body while it runs.
    #[inline]
    pub fn is_streamed(&self) -> bool {
        self.request().is_some_and(|request| request.is_streamed())
    }

    /// Receives a part of the body into `room`, which is not empty. Does not wait.
    pub fn receive_body(&mut self, room: &mut [u8]) -> Result<BodyPart, BodyError> {
        if self.is_foreign() {
            return Err(BodyError::Over);
        }
        loop {
            self.check_lost().map_err(|_| BodyError::Disconnected)?;
            let stream = self.stream.as_mut().ok_or(BodyError::Over)?;
            if self.response.is_committed() {
                stream.drop_continue();
            }
            match stream.receive_body(&self.reactor, room) {
                Streamed::Content(bytes) => return Ok(BodyPart::Content(bytes)),
                Streamed::Complete => return Ok(BodyPart::End),
                Streamed::Interim(interim) => match self.send_interim(&interim) {
                    Err(SendError::Over) => return Err(BodyError::Over),
                    Err(_) => return Err(BodyError::Disconnected),
                    Ok(()) => {}
                },
                Streamed::NothingYet => {
                    let Some(until) = stream.await_body(&self.reactor) else { return Err(self.refuse_body(TOO_SLOW)) };
                    self.expect_wait();
                    return Ok(BodyPart::NothingYet(until.saturating_sub(clock::now()).max(1)));
                }
                Streamed::Refused(reject) => return Err(self.refuse_body(reject)),
                Streamed::NoMemory => return Err(self.refuse_body(NO_MEMORY)),
                Streamed::End => {
                    self.lost = true;
                    return Err(BodyError::Disconnected);
                }
            }
        }
    }

    /// Refuses the rest of the body. That is logged once.
    #[cold]
    fn refuse_body(&mut self, reject: Reject) -> BodyError {
        if self.stream.as_mut().is_some_and(|stream| stream.refuse_body(reject)) {
            self.count_refusal(reject);
            let reason = self.reactor.options.limits.explain(reject);
            self.log_message(Level::Info, &format!("its body is refused with {} ({reason})", reject.status));
        }
        BodyError::Refused(reject)
    }
}
