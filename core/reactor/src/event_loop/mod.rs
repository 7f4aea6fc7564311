//! The event loop: takes ready connections, reads their requests, and hands these to handlers or to the workers' threads.
//!
//! ```text
//! loop.rs              the loop: the next request, or a poll for events if no connection is ready
//! advance.rs           takes a connection as far as it goes: receives, parses, dispatches
//! handshake.rs         goes on with the TLS handshake of a new connection
//! streamed_bodies.rs   requests whose body the application receives
//! ```

pub(crate) mod advance;
mod handshake;
pub(crate) mod r#loop;
mod streamed_bodies;
