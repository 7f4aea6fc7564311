//! Timeouts for servers and clients of the tests: most are too long to expire during a test.

// Each test uses a part.
#![allow(dead_code)]

use std::time::Duration;

use poorhttp_reactor::Timeouts;

/// Ends a test that would never end.
pub(crate) const HANG: Duration = Duration::from_secs(30);
/// Milliseconds that do not pass during a test.
pub(crate) const NEVER: u64 = 3_600_000;
/// Milliseconds after which something that is waited for happens.
pub(crate) const SOON: u64 = 100;

/// Deadlines that do not pass during a test, except the one of idle connections at a stop.
pub(crate) fn patient() -> Timeouts {
    Timeouts {
        header: NEVER,
        body: NEVER,
        write: NEVER,
        keepalive: NEVER,
        graceful: NEVER,
        drain: SOON,
        request: 0,
        min_rate: 500,
    }
}
