//! Protocol upgrades (WebSocket and others): the application gets the socket of the connection.
//!
//! ```text
//! hijack.rs   hands the socket of a connection to the application
//! offered.rs  what is kept of an offer to take the connection, and of the request once it was taken
//! upgraded.rs a connection that an application has got: what was sent on it, and how it is asked to close
//! limits.rs   how many there are, and their end when the server stops
//! relay.rs    thread that copies between connections and the sockets that applications have instead
//! ```

pub(crate) mod hijack;
pub(crate) mod limits;
pub(crate) mod offered;
pub(crate) mod relay;
pub(crate) mod upgraded;
