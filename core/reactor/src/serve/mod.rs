//! Produces requests: reads connections that are ready until a request is complete. The top package of the crate.
//!
//! ```text
//! next.rs      waits for the next request, and decides which thread polls
//! advance.rs   takes a connection as far as it goes: receives, parses, dispatches
//! ```

pub(crate) mod advance;
pub(crate) mod next;
