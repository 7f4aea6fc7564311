//! Error codes (RFC 9113 section 7), and errors of a connection.

use std::fmt;

/// The reason why a stream or a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// No error.
    NoError,
    /// The protocol is violated, and no other code says how.
    ProtocolError,
    /// This side has failed.
    InternalError,
    /// More content than the window allows.
    FlowControlError,
    /// SETTINGS were not acknowledged.
    SettingsTimeout,
    /// A frame on a stream whose sender had ended it.
    StreamClosed,
    /// A frame of a length that it must not have.
    FrameSizeError,
    /// The request was not processed and may be sent again.
    RefusedStream,
    /// The stream is not needed any more.
    Cancel,
    /// The tables of compressed fields no longer agree.
    CompressionError,
    /// The connection of a CONNECT request has failed.
    ConnectError,
    /// The other side makes too much work.
    EnhanceYourCalm,
    /// TLS is not good enough.
    InadequateSecurity,
    /// HTTP/1.1 is required.
    Http11Required,
    /// A code that is not registered.
    Other(u32),
}

/// The codes in the order of their numbers, with their names.
const CODES: [(ErrorCode, &str); 14] = [
    (ErrorCode::NoError, "NO_ERROR"),
    (ErrorCode::ProtocolError, "PROTOCOL_ERROR"),
    (ErrorCode::InternalError, "INTERNAL_ERROR"),
    (ErrorCode::FlowControlError, "FLOW_CONTROL_ERROR"),
    (ErrorCode::SettingsTimeout, "SETTINGS_TIMEOUT"),
    (ErrorCode::StreamClosed, "STREAM_CLOSED"),
    (ErrorCode::FrameSizeError, "FRAME_SIZE_ERROR"),
    (ErrorCode::RefusedStream, "REFUSED_STREAM"),
    (ErrorCode::Cancel, "CANCEL"),
    (ErrorCode::CompressionError, "COMPRESSION_ERROR"),
    (ErrorCode::ConnectError, "CONNECT_ERROR"),
    (ErrorCode::EnhanceYourCalm, "ENHANCE_YOUR_CALM"),
    (ErrorCode::InadequateSecurity, "INADEQUATE_SECURITY"),
    (ErrorCode::Http11Required, "HTTP_1_1_REQUIRED"),
];

impl ErrorCode {
    /// The code with this number.
    pub fn of(number: u32) -> Self {
        CODES.get(number as usize).map_or(ErrorCode::Other(number), |(code, _)| *code)
    }

    /// The number of this code.
    pub fn number(self) -> u32 {
        match self {
            ErrorCode::Other(number) => number,
            code => CODES.iter().position(|(other, _)| *other == code).unwrap_or_default() as u32,
        }
    }

    /// The name of this code in RFC 9113.
    pub fn name(self) -> &'static str {
        CODES.get(self.number() as usize).map_or("an unknown error code", |(_, name)| name)
    }
}

/// An error that ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// The code that the client gets.
    pub code: ErrorCode,
    /// The reason for the log; it never contains bytes from the client.
    pub reason: &'static str,
    /// The limit that the client has exceeded, for the log.
    pub limit: Option<usize>,
}

impl ConnectionError {
    pub(crate) const fn new(code: ErrorCode, reason: &'static str) -> Self {
        ConnectionError { code, reason, limit: None }
    }

    pub(crate) const fn protocol(reason: &'static str) -> Self {
        Self::new(ErrorCode::ProtocolError, reason)
    }

    pub(crate) const fn frame_size(reason: &'static str) -> Self {
        Self::new(ErrorCode::FrameSizeError, reason)
    }

    pub(crate) const fn flow_control(reason: &'static str) -> Self {
        Self::new(ErrorCode::FlowControlError, reason)
    }

    pub(crate) const fn calm(reason: &'static str, limit: usize) -> Self {
        ConnectionError { code: ErrorCode::EnhanceYourCalm, reason, limit: Some(limit) }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}", self.code.name(), self.reason)?;
        self.limit.map_or(Ok(()), |limit| write!(formatter, " (limit: {limit})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_numbers() {
        assert_eq!((ErrorCode::Http11Required.number(), ErrorCode::EnhanceYourCalm.number()), (0xd, 0xb));
        for number in 0..20 {
            assert_eq!(ErrorCode::of(number).number(), number);
        }
        assert_eq!((ErrorCode::of(8).name(), ErrorCode::of(99).name()), ("CANCEL", "an unknown error code"));
    }
}
