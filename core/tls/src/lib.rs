//! TLS without sockets: certificates with their keys, certificates of clients, tickets of sessions.
//!
//! ```text
//! config.rs          a service's certificates, replaced while it runs
//! settings.rs        contents of the files, and how they get to another process
//! certificates.rs    certificates and keys are read, mistakes explained
//! ocsp.rs            an OCSP response is checked before clients get it
//! session.rs         one session: bytes in, content out; content in, records out
//! offload.rs         what remains of a session whose records the kernel makes
//! resolver.rs        the certificate for the host that a client names
//! client_verifier.rs certificates of clients are verified
//! tickets.rs         tickets that all workers of a server decrypt
//! clock.rs           the time of day
//! variables.rs       environ variables of a session, as mod_ssl names them
//! self_signed.rs     a certificate for localhost
//! provider.rs        which implementation of cryptography
//! ```

#![forbid(unsafe_code)]

mod certificates;
mod client_verifier;
mod clock;
mod config;
mod ocsp;
mod offload;
mod provider;
mod resolver;
mod self_signed;
pub mod session;
mod settings;
mod tickets;
mod variables;

pub use certificates::Info;
pub use config::TlsConfig;
pub use rustls;
pub use self_signed::{SelfSigned, self_signed};
pub use settings::{Certificate, Pem, Settings, Version};
pub use variables::{SessionInfo, variables};

/// Wipes keys of tickets whose time is over. It happens with each ticket too.
pub fn advance_tickets() {
    tickets::advance();
}
