//! The state machine of a connection: its phases, and which follows which.
//!
//! ```text
//!                ┌──▶ Refused ─────▶┐    an error is to be sent before anything is read
//!                ├──▶ Handshake ───▶┤    of TLS, before the first request
//!                ├──▶ WritingBody ─▶┤    until a part of the request body is on disk
//! ──▶ Serving ───┼──▶ Sending ─────▶┼──▶ Serving, or close
//!                ├──▶ LongPoll ────▶┘
//!                ├──▶ Multiplexed ──┐    streams carry its requests, each with a state of its own
//!                └──▶ Lingering ◀───┴─▶ close
//! ```

use poorhttp_http::Reject;

/// What follows when the send queue is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request is read.
    Next,
    /// The connection is closed; the client has nothing more to send.
    Close,
    /// The connection is closed a moment later: the client may still be sending, and a reset would destroy the response on
    /// its way (RFC 9112 section 9.6).
    Linger,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Accepted only to be answered with an error: there is no room for it, or its peer may not use the listener.
    Refused(Reject),
    /// TLS is being agreed upon.
    Handshake,
    /// A request is awaited, received or answered.
    Serving,
    /// A part of a request body is being written to disk; nothing is received meanwhile.
    WritingBody,
    /// The send queue waits for a slow client.
    Sending(After),
    /// Input is read and dropped until the client closes or a short time is over.
    Lingering,
    /// A response stays open, and no thread works on it.
    LongPoll,
    /// It carries many requests, each on a stream of its own.
    Multiplexed,
}

/// What changes the phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseEvent {
    /// It is accepted only to be answered with an error.
    Refuse(Reject),
    /// That error is about to be sent.
    AnswerRefusal,
    /// It begins with TLS.
    BeginHandshake,
    /// The handshake is complete, or the client does not speak TLS.
    EndHandshake,
    /// A part of a request body was given to the thread that writes it.
    WriteBody,
    /// That part was written, or cannot be.
    BodyWritten,
    /// The socket did not take all output.
    QueueFull(After),
    /// The send queue is empty.
    AllSent,
    /// The last byte was sent, and the client may still be sending.
    Linger,
    /// The application leaves its response open.
    HoldOpen,
    /// An open response is about to be completed.
    EndLongPoll,
    /// Its protocol has streams.
    BeginStreams,
}

impl Phase {
    /// The phase that follows; none if `event` cannot happen in this phase.
    pub(crate) fn next(self, event: PhaseEvent) -> Option<Phase> {
        use Phase as P;
        use PhaseEvent as E;
        match (self, event) {
            // A connection may be refused for a second reason before the first was sent.
            (P::Serving | P::Refused(_), E::Refuse(reject)) => Some(P::Refused(reject)),
            (P::Serving, E::BeginHandshake) => Some(P::Handshake),
            (P::Serving, E::WriteBody) => Some(P::WritingBody),
            (P::Serving, E::QueueFull(after)) => Some(P::Sending(after)),
            (P::Serving | P::Multiplexed, E::Linger) => Some(P::Lingering),
            (P::Serving, E::BeginStreams) => Some(P::Multiplexed),
            (P::Serving, E::HoldOpen) => Some(P::LongPoll),
            (P::Refused(_), E::AnswerRefusal)
            | (P::Handshake, E::EndHandshake)
            | (P::WritingBody, E::BodyWritten)
            | (P::Sending(_), E::AllSent)
            | (P::LongPoll, E::EndLongPoll) => Some(P::Serving),
            (
                P::Serving | P::Lingering | P::Multiplexed,
                E::AnswerRefusal | E::EndHandshake | E::BodyWritten | E::AllSent | E::EndLongPoll,
            )
            | (P::Refused(_), E::EndHandshake | E::BodyWritten | E::AllSent | E::EndLongPoll)
            | (P::Handshake, E::AnswerRefusal | E::BodyWritten | E::AllSent | E::EndLongPoll)
            | (P::WritingBody, E::AnswerRefusal | E::EndHandshake | E::AllSent | E::EndLongPoll)
            | (P::Sending(_), E::AnswerRefusal | E::EndHandshake | E::BodyWritten | E::EndLongPoll)
            | (P::LongPoll, E::AnswerRefusal | E::EndHandshake | E::BodyWritten | E::AllSent)
            | (
                P::Handshake | P::WritingBody | P::Sending(_) | P::Lingering | P::LongPoll | P::Multiplexed,
                E::Refuse(_),
            )
            | (
                P::Refused(_) | P::Handshake | P::WritingBody | P::Sending(_) | P::Lingering | P::LongPoll,
                E::BeginHandshake | E::WriteBody | E::QueueFull(_) | E::Linger | E::HoldOpen | E::BeginStreams,
            )
            | (P::Multiplexed, E::BeginHandshake | E::WriteBody | E::QueueFull(_) | E::HoldOpen | E::BeginStreams) => {
                None
            }
        }
    }
}
