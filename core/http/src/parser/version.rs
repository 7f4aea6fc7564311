//! The version in a request line (RFC 9112 section 2.3).

use memchr::{memchr, memchr_iter};

use crate::reject::Reject;

/// The supported versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1, also for any later HTTP/1.x.
    #[default]
    Http11,
    /// HTTP/2, on a connection that carries many requests at once.
    Http2,
}

/// Length of a version and the space before it.
pub(crate) const LENGTH: usize = b" HTTP/1.1".len();

pub(crate) const MALFORMED: Reject = Reject::bad("a malformed HTTP version");

/// Position of the version: after the second space of the line. `None` if the line is malformed before it.
fn position(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(b"\r") {
        return None;
    }
    let line = &bytes[..memchr(b'\n', bytes).unwrap_or(bytes.len())];
    memchr_iter(b' ', line).nth(1).map(|space| space + 1)
}

/// Whether more than a version follows the second space: such a head is always refused.
pub(crate) fn is_overrun(bytes: &[u8]) -> bool {
    let behind = position(bytes).and_then(|at| bytes.get(at - 1 + LENGTH..));
    behind.is_some_and(|behind| !matches!(behind, [] | [b'\r' | b'\n', ..]))
}

/// Rewrites a head of HTTP/1.2 or later as HTTP/1.1, the highest supported version (RFC 9110 section 6.2).
#[cold]
pub(crate) fn with_spoken(bytes: &[u8]) -> Option<Vec<u8>> {
    let at = position(bytes)?;
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9', ..] = bytes[at..] else { return None };
    let mut spoken = bytes.to_vec();
    spoken[at + b"HTTP/1.".len()] = b'1';
    Some(spoken)
}

/// The reason to refuse an unsupported version. `None`: more bytes are needed to decide.
#[cold]
pub(crate) fn fault(bytes: &[u8]) -> Option<Reject> {
    match &bytes[position(bytes)?..] {
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9', behind @ ..] => match behind {
            [] | [b'\r'] => None,
            [b'\r', b'\n', ..] | [b'\n', ..] => Some(Reject::with(505, "a major version of HTTP other than 1")),
            _ => Some(MALFORMED),
        },
        word => (memchr(b'\n', word).is_some() || is_overrun(bytes)).then_some(MALFORMED),
    }
}
