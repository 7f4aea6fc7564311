//! Compression of responses while they are sent. Bytes to bytes: no sockets, no files and no Python.
//!
//! [`Compression`] has the options, decides from the header fields of a response whether it is compressed and in which
//! coding, and lends an encoder for its body, which the crate `codings` has.
//!
//! ```text
//! compression.rs   options, the decision, and the encoders that are kept for the next response
//! fields.rs        header fields: what they say about compression, and how compression changes them
//! media_types.rs   media types that are compressed
//! ```

#![forbid(unsafe_code)]

mod compression;
mod fields;
mod media_types;

pub use compression::{Choice, Compression, Levels, StreamEncoder};
pub use fields::varying;
pub use media_types::MediaTypes;
