//! Produces requests for the workers' threads: reads ready connections until a request is complete. Uses all other packages.
//!
//! ```text
//! next.rs              waits for the next request, and decides which thread polls
//! advance.rs           takes a connection as far as it goes: receives, parses, dispatches
//! handshake.rs         goes on with the TLS handshake of a new connection
//! streamed_bodies.rs   requests whose body the application receives
//! ```

pub(crate) mod advance;
mod handshake;
pub(crate) mod next;
mod streamed_bodies;
