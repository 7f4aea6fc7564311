//! HTTP/1.x, and the semantics of HTTP/2, without I/O: bytes in, requests out; responses in, bytes out.
//!
//! [`RequestParser`] turns received bytes into [`Event`]s. [`Response`] checks status, fields and body of one exchange
//! against its state and writes them into a buffer. [`ConditionalFields`] are the request fields that select or
//! condition the response. [`TrustedProxies`] are the proxies whose header fields and [`ProxyHeader`]s are used; an
//! [`Origin`] is their content. No type reads a clock, a socket or a file, or allocates beyond [`Limits`].
//!
//! ```text
//! parser/                bytes to requests
//! proxy/                 proxies in front of the server
//! grammar.rs             character classes and small productions of the RFCs
//! conditional.rs         conditional requests; ranges.rs range requests; content_coding.rs the choice of a content coding
//! conditional_fields.rs  request fields that select or condition the response, and what they ask for
//! response/              response writer: status, fields and body to bytes
//! upgrade/               another protocol on the same connection
//! origin.rs              client, scheme and host from proxies; address.rs addresses as text
//! status.rs              reason phrases of statuses
//! trace_context.rs       `traceparent` (W3C Trace Context)
//! protocol.rs            protocols of a connection; reject.rs refusals, and invalid values; limits.rs every limit
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
mod status;
mod trace_context;
mod upgrade;

pub use address::AddressText;
pub use conditional::{Precondition, Validators, http_date};
pub use conditional_fields::ConditionalFields;
pub use content_coding::ContentCoding;
pub use grammar::{elements, encode_latin1, is_field_value, is_token, percent_decoded, split_authority, trim};
pub use limits::Limits;
pub use origin::{Client, Origin, Scheme};
pub use parser::head_builder::{HeadBuilder, Trailers};
pub use parser::proxy_protocol::{ProxyHeader, Source};
pub use parser::request_parser::{Event, ReadBuffer, RequestParser};
pub use parser::target::split_target;
pub use parser::types::{Field, Gateway, Head, Span};
pub use parser::version::Version;
pub use protocol::{Dialect, Protocol};
pub use proxy::trusted::TrustedProxies;
pub use ranges::Ranges;
pub use reject::{Invalid, Reject};
pub use response::{Ending, Response, ServerFields};
pub use status::{REASON_PHRASES, reason_phrase};
pub use trace_context::TraceContext;
pub use upgrade::sent::SentBytes;
