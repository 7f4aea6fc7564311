//! WebSocket without I/O, the server's side: bytes in, messages out; messages in, bytes out (RFC 6455, RFC 7692).
//!
//! A [`Receiver`] turns received bytes into [`Event`]s; a frame to send is a header ([`frame_header`]) before its payload. No type
//! reads a clock, a socket or a file; a receiver keeps at most a message and 139 bytes.
//!
//! ```text
//! failure.rs    why a WebSocket is failed: close code and reason
//! frame.rs      frame headers, the mask, Close frames
//! handshake.rs  check of an opening handshake, and its answer
//! extension.rs  negotiation of permessage-deflate
//! deflate.rs    compression and decompression of messages
//! receiver.rs   state machine: frames to messages
//! sha1.rs       SHA-1, which the opening handshake needs
//! ```

#![forbid(unsafe_code)]

mod deflate;
mod extension;
mod failure;
mod frame;
mod handshake;
mod receiver;
mod sha1;

pub use deflate::Compressor;
pub use extension::Compression;
pub use failure::{Failure, code};
pub use frame::{Opcode, close_payload, frame_header};
pub use handshake::{Handshake, Refusal};
pub use receiver::{Event, Receiver};
