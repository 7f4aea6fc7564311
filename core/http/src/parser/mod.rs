//! Request parser: from received bytes to requests and their bodies.
//!
//! ```text
//! request_parser.rs   the receiving half of a connection: bytes in, events out
//! proxy_protocol.rs   PROXY protocol header, versions 1 and 2, before the first request
//! types.rs            spans, fields, head, framing: the shapes that all parsers fill
//! head.rs             request line and header fields
//! head_builder.rs     the head of a request of HTTP/2, from a list of fields
//! target.rs           request target
//! version.rs          version of the request line
//! body.rs             body by length, by chunks, or by the packets of a gateway protocol
//! gateway/            uwsgi, SCGI and FastCGI: variables of a web server instead of a head
//! ```

pub(crate) mod body;
pub(crate) mod gateway;
pub(crate) mod head;
pub(crate) mod head_builder;
pub(crate) mod proxy_protocol;
pub(crate) mod request_parser;
pub(crate) mod target;
pub(crate) mod types;
pub(crate) mod version;
