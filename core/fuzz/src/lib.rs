//! What the protocol crate promises, asserted for whatever it is given.
//!
//! Each target is a function of some octets, and the sentence above each of its assertions is a promise. libFuzzer
//! looks for octets that break one (`make fuzz`, `fuzz_targets/`); what it found interesting is kept in `corpus/` and
//! goes through the same functions in every `cargo test`, as do the protocol cases of `tests/cases`.
//!
//! All of them hold two promises more: nothing panics, and no single allocation exceeds a megabyte (`make fuzz`).

#![forbid(unsafe_code)]

#[path = "../../http/tests/case/mod.rs"]
mod case;
mod conditional_fields;
pub mod corpus;
mod forwarded;
mod gateway;
#[path = "../../http/tests/packet/mod.rs"]
mod packet;
#[path = "../../http/tests/receiver/mod.rs"]
mod receiver;
mod requests;
mod response;
#[path = "../../http/tests/trust/mod.rs"]
mod said;

pub use conditional_fields::conditional_fields;
pub use forwarded::{forwarded, proxy_protocol};
pub use gateway::gateway;
pub use receiver::{Message, Outcome, Receiver, receive, receive_within};
pub use requests::{POST, body, connection, head};
pub use response::response;

/// A function that some octets are given to.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 8] = [
    ("head", head),
    ("body", body),
    ("connection", connection),
    ("response", response),
    ("conditional_fields", conditional_fields),
    ("forwarded", forwarded),
    ("proxy_protocol", proxy_protocol),
    ("gateway", gateway),
];
