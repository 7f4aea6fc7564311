//! Requests that are answered without the application.
//!
//! ```text
//! health.rs         `PREFIX/live` and `PREFIX/ready`
//! static_files.rs   static files
//! client_abort.rs   drops queued requests whose client has disconnected
//! ```

pub(crate) mod client_abort;
pub(crate) mod health;
pub(crate) mod static_files;
