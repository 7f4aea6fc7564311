//! `poorhttp.plugins.asgi._websocket`: WebSockets of mode `asyncio`, on descriptors that an event loop watches.
//!
//! ```text
//! handshake.rs  the class of an opening handshake
//! socket.rs     the class of a WebSocket: receives and sends messages
//! output.rs     what is sent, and waits until the socket takes it
//! ffi.rs        takes a descriptor of Python
//! ```

mod ffi;
mod handshake;
mod output;
mod socket;

/// WebSockets of mode `asyncio`.
#[pyo3::pymodule(gil_used = true)]
mod _websocket {
    #[pymodule_export]
    use super::handshake::Handshake;
    #[pymodule_export]
    use super::socket::WebSocket;
}
