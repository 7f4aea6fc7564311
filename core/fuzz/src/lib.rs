//! Fuzz targets of the crates that turn bytes into bytes: each asserts properties for arbitrary input.
//!
//! A target is a function of bytes, and the comment above each of its assertions is a property. libFuzzer searches for
//! bytes that break one (`make fuzz`, `fuzz_targets/`). Interesting inputs are kept in `corpus/`; every `cargo test`
//! replays them and the protocol cases of `tests/cases`.
//!
//! All targets check two more properties: no panic, and no single allocation above a megabyte (`make fuzz`).

#![forbid(unsafe_code)]

#[path = "../../websocket/tests/autobahn/mod.rs"]
mod autobahn;
#[path = "../../http/tests/case/mod.rs"]
mod case;
mod compress;
mod compressed_fields;
mod conditional_fields;
pub mod corpus;
#[path = "../../http2/tests/echo/mod.rs"]
mod echo;
mod forwarded;
mod gateway;
mod hpack;
mod http2;
mod http2_session;
#[path = "../../http/tests/packet/mod.rs"]
mod packet;
#[path = "../../http/tests/receiver/mod.rs"]
mod receiver;
mod requests;
mod response;
#[path = "../../http2/tests/session/mod.rs"]
mod session;
mod streamed;
mod tls_session;
#[path = "../../http/tests/trust/mod.rs"]
mod trust;
mod upgrade;
mod websocket;

pub use compress::compress;
pub use compressed_fields::compressed_fields;
pub use conditional_fields::conditional_fields;
pub use echo::Echo;
pub use forwarded::{forwarded, proxy_protocol};
pub use gateway::gateway;
pub use hpack::hpack;
pub use http2::{http2, http2_calls};
pub use http2_session::http2_session;
pub use receiver::{Message, Outcome, Receiver, receive, receive_within};
pub use requests::{POST, body, connection, head};
pub use response::response;
pub use streamed::streamed;
pub use tls_session::tls_session;
pub use upgrade::upgrade;
pub use websocket::websocket;

/// A target: a function of the input.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 18] = [
    ("head", head),
    ("body", body),
    ("connection", connection),
    ("response", response),
    ("conditional_fields", conditional_fields),
    ("forwarded", forwarded),
    ("proxy_protocol", proxy_protocol),
    ("gateway", gateway),
    ("tls_session", tls_session),
    ("streamed", streamed),
    ("upgrade", upgrade),
    ("websocket", websocket),
    ("compress", compress),
    ("compressed_fields", compressed_fields),
    ("hpack", hpack),
    ("http2", http2),
    ("http2_calls", http2_calls),
    ("http2_session", http2_session),
];
