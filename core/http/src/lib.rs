//! HTTP/1.x without sockets: bytes in, requests out; responses in, bytes out.
//!
//! [`RequestParser`] is the receiving half of a connection: it is given bytes and says what they mean, one
//! [`Event`] at a time. [`Response`] is the sending half of one exchange: it is told status, fields and
//! body, checks them against its state and writes what belongs on the wire into a buffer. [`ConditionalFields`] are the
//! fields that select or condition what is sent. [`TrustedProxies`] says which proxies are believed, and an [`Origin`] is what they
//! say, by header fields or by a [`ProxyHeader`]. None of them reads a clock, a socket or a file, or allocates
//! beyond [`Limits`].
//!
//! ```text
//! parser/                bytes to requests
//! proxy/                 proxies in front of the server
//! grammar.rs             character classes and small productions of the RFCs
//! conditional_fields.rs  which fields select or condition what is sent
//! conditional.rs         conditional requests; ranges.rs range requests; content_coding.rs the choice of a content coding
//! response/              the sending half: status, fields and body to bytes
//! origin.rs              client, scheme and host as proxies tell them; address.rs addresses as text
//! protocol.rs            protocols of a connection; reject.rs status and reason of a refusal; limits.rs every limit
//! ```

#![forbid(unsafe_code)]

mod address;
mod conditional;
mod conditional_fields;
mod content_coding;
mod grammar;
mod limits;
mod origin;
mod parser;
mod protocol;
mod proxy;
mod ranges;
mod reject;
mod response;

pub use address::AddressText;
pub use conditional::{Precondition, Validators};
pub use conditional_fields::ConditionalFields;
pub use content_coding::ContentCoding;
pub use grammar::{encode_latin1, hex, is_token};
pub use limits::Limits;
pub use origin::{Client, Origin, Scheme};
pub use parser::gateway::Gateway;
pub use parser::head::{Field, Head, Span};
pub use parser::proxy_protocol::{ProxyHeader, Source};
pub use parser::request_parser::{Event, ReadBuffer, RequestParser};
pub use parser::target::{decoded as decoded_path, split_target};
pub use parser::version::Version;
pub use protocol::{Dialect, Protocol};
pub use proxy::trusted::{InvalidTrust, TrustedProxies};
pub use ranges::Ranges;
pub use reject::Reject;
pub use response::{Ending, Invalid, Response, ServerFields};
