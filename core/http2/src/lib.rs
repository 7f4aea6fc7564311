//! HTTP/2 without I/O, the server's side: bytes in, events out; calls in, bytes out (RFC 9113, RFC 7541, RFC 9218).
//!
//! A [`Connection`] turns received bytes into [`Event`]s. A request is a [`poorhttp_http::Head`] with its text, as one of HTTP/1.1 is,
//! checked by the same code and within the same limits. Responses are written stream by stream; [`Connection::next_writable`] says
//! whose turn it is. No type reads a clock, a socket or a file, or allocates beyond [`Options`].
//!
//! ```text
//! error.rs       error codes, and errors of a connection
//! options.rs     limits of a connection, and what is announced to the client
//! budget.rs      how much of what costs a server more than its client is borne
//! frame.rs       frame headers, and the frames that a server sends
//! priority.rs    priorities of streams (RFC 9218)
//! hpack/         compression of header fields
//! stream.rs      state of a stream; the streams of a connection
//! connection/    state machine: frames to events, responses to frames
//! ```

#![forbid(unsafe_code)]

mod budget;
mod connection;
mod error;
mod frame;
mod hpack;
mod options;
mod priority;
mod stream;

pub use connection::{Connection, Event, Request, Unsent};
pub use error::{ConnectionError, ErrorCode};
pub use frame::PREFACE;
pub use hpack::decoder::Decoder;
pub use hpack::encoder::Encoder;
pub use options::Options;
pub use priority::Priority;
pub use stream::Wait;
