//! Trusted proxies, and the header fields in which they report the client.
//!
//! ```text
//! trusted.rs          trusted addresses and fields
//! forwarded.rs        `Forwarded` and `X-Forwarded-` fields
//! ```

pub(crate) mod forwarded;
pub(crate) mod trusted;
