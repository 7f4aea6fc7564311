//! Answers that need no application: health checks, redirects to https, static files, refusals of queued requests.
//!
//! ```text
//! health.rs         `PREFIX/live` and `PREFIX/ready`
//! https_redirect.rs requests without TLS
//! static_files.rs   static files
//! client_abort.rs   drops queued requests whose client has disconnected
//! queue_timeout.rs  refuses queued requests that have waited too long
//! ```

pub(crate) mod client_abort;
pub(crate) mod health;
pub(crate) mod https_redirect;
pub(crate) mod queue_timeout;
pub(crate) mod static_files;
