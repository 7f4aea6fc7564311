//! Proxies in front of the server: which are trusted, and what they say of a client.
//!
//! ```text
//! trusted.rs          trusted addresses and fields
//! forwarded.rs        `Forwarded` and `X-Forwarded-` fields
//! ```

pub(crate) mod forwarded;
pub(crate) mod trusted;
