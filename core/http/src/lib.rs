//! HTTP/1.x without sockets: bytes in, requests out; responses in, bytes out.
//!
//! [`Inbound`] is the receiving half of a connection: it is given bytes and says what they mean, one
//! [`Event`] at a time. [`Response`] is the sending half of one exchange: it is told status, fields and
//! body, checks them against its state and writes what belongs on the wire into a buffer. [`Wishes`] are the
//! fields that select or condition what is sent. [`Trust`] says which proxies are believed, and an [`Origin`] is what they
//! say, by header fields or by a [`Preamble`]. None of them reads a clock, a socket or a file, or allocates
//! beyond [`Limits`].

#![forbid(unsafe_code)]

mod address;
mod body;
mod codings;
mod forwarded;
mod gateway;
mod grammar;
mod head;
mod inbound;
mod limits;
mod origin;
mod preamble;
mod preconditions;
mod protocol;
mod ranges;
mod reject;
mod response;
mod target;
mod trust;
mod version;
mod wishes;

pub use address::AddressText;
pub use codings::Coding;
pub use gateway::Gateway;
pub use head::{Field, Head, Span};
pub use inbound::{Event, Inbound, Intake};
pub use limits::Limits;
pub use origin::{Client, Origin, Scheme};
pub use preamble::{Preamble, Source};
pub use preconditions::{Precondition, Validators};
pub use protocol::{Dialect, Protocol};
pub use ranges::Ranges;
pub use reject::Reject;
pub use response::{Ambient, Ending, Invalid, Response};
pub use target::{decoded as decoded_path, split_target};
pub use trust::{Misunderstood, Trust};
pub use version::Version;
pub use wishes::Wishes;
