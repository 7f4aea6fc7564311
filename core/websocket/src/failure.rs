//! Why a WebSocket is failed: close code and reason (RFC 6455 sections 7.1.7 and 7.4).

/// Close codes (RFC 6455 section 7.4.1).
pub mod code {
    /// The purpose of the connection is fulfilled.
    pub const NORMAL: u16 = 1000;
    /// The server stops.
    pub const GOING_AWAY: u16 = 1001;
    /// The client has violated the protocol.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// A Close frame without a code; it is never sent.
    pub const NO_STATUS: u16 = 1005;
    /// The connection was lost without a Close frame; it is never sent.
    pub const ABNORMAL: u16 = 1006;
    /// A message is not what its type says, such as text that is not UTF-8.
    pub const INVALID_PAYLOAD: u16 = 1007;
    /// A message is too large.
    pub const TOO_BIG: u16 = 1009;
    /// The server has failed.
    pub const INTERNAL_ERROR: u16 = 1011;

    /// Whether a Close frame may have this code: those of RFC 6455 and of IANA's registry, and those of applications.
    pub fn may_be_sent(code: u16) -> bool {
        matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}

/// A violation by the client. A Close frame with this code is to be sent, and nothing received any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The close code.
    pub code: u16,
    /// What is wrong, for the client.
    pub reason: &'static str,
}

impl Failure {
    pub(crate) const fn protocol(reason: &'static str) -> Self {
        Failure { code: code::PROTOCOL_ERROR, reason }
    }

    pub(crate) const fn payload(reason: &'static str) -> Self {
        Failure { code: code::INVALID_PAYLOAD, reason }
    }

    pub(crate) const TOO_BIG: Failure = Failure { code: code::TOO_BIG, reason: "message too big" };
    pub(crate) const NOT_UTF8: Failure = Failure::payload("text is not UTF-8");
}
