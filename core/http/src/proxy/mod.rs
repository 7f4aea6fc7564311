//! Proxies in front of the server: which are trusted, and what they say of a client.
//!
//! ```text
//! trusted.rs          trusted addresses and fields
//! proxy_protocol.rs   PROXY protocol header, versions 1 and 2
//! forwarded.rs        `Forwarded` and `X-Forwarded-` fields
//! ```

pub(crate) mod forwarded;
pub(crate) mod proxy_protocol;
pub(crate) mod trusted;
