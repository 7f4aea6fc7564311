//! Requests that are answered without the application, and responses that are not sent by it.
//!
//! ```text
//! health.rs         `PREFIX/live` and `PREFIX/ready`
//! routes.rs         host and path prefix to static folder
//! static_files.rs   static files
//! x_sendfile.rs     files that the application names: `X-Sendfile`, `X-Accel-Redirect`
//! long_poll.rs      responses that stay open without a thread
//! raw_tcp.rs        connections handed out unread, for other protocols than HTTP
//! ```

pub(crate) mod health;
pub(crate) mod long_poll;
pub(crate) mod raw_tcp;
pub(crate) mod routes;
pub(crate) mod static_files;
pub(crate) mod x_sendfile;
