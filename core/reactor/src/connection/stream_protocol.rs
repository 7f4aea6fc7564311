//! Interface to a protocol that carries several requests on one connection at the same time, each on a stream.

use std::fmt;

use poorhttp_http::{Head, Limits, Reject};

/// A request whose head is complete.
#[derive(Debug)]
pub struct StreamRequest {
    /// The stream.
    pub stream: u32,
    /// The head, with positions in `text`.
    pub head: Head,
    /// The head as text of HTTP/1.1.
    pub text: Vec<u8>,
    /// Content follows, up to [`StreamEvent::Ended`].
    pub has_content: bool,
}

/// What has been received.
#[derive(Debug)]
pub enum StreamEvent<'a> {
    /// More bytes are needed.
    NeedMore,
    /// A request.
    Request(Box<StreamRequest>),
    /// Content of a request.
    Content {
        /// The stream.
        stream: u32,
        /// The next bytes, to be reported by [`StreamProtocol::consumed`].
        bytes: &'a [u8],
    },
    /// The content of a request is complete.
    Ended {
        /// The stream.
        stream: u32,
    },
    /// A request is refused, perhaps after [`StreamEvent::Request`]. No content follows.
    Refused {
        /// The stream.
        stream: u32,
        /// Status and reason.
        reject: Reject,
        /// The request line as far as it has come; empty after [`StreamEvent::Request`].
        line: Vec<u8>,
    },
    /// A stream is reset, by the client or because of what it has sent. Nothing can be sent on it.
    Reset {
        /// The stream.
        stream: u32,
    },
    /// The connection has failed, for this reason, and nothing more is read. The output that is left tells the client.
    Failed(&'static str),
}

/// The server's side of such a protocol, without input and output: bytes in, events out; calls in, bytes out. No call waits.
pub trait StreamProtocol: Send {
    /// Takes bytes of the client from the front of `bytes`, up to the next event.
    fn receive<'a>(&mut self, bytes: &mut &'a [u8]) -> StreamEvent<'a>;

    /// Whether more bytes of the client should be read.
    fn wants_input(&self) -> bool;

    /// Content of a stream takes no more memory, so the client may send as much again.
    fn consumed(&mut self, stream: u32, bytes: u32);

    /// Sends the head of a response, or of an interim one: status, and header fields as lines. Those about the connection are left
    /// out. `false`: nothing can be sent on this stream.
    fn send_head(&mut self, stream: u32, status: u16, fields: &[u8]) -> bool;

    /// Sends content, as much as windows and other streams allow; returns its length. `ends`: the content ends with these bytes, if
    /// all are taken. `None`: nothing can be sent on this stream.
    fn send_data(&mut self, stream: u32, content: &[u8], ends: bool) -> Option<usize>;

    /// The next stream that may go on, after content that was not taken as a whole. `None`: none may.
    fn next_writable(&mut self) -> Option<u32>;

    /// Lets go of a stream: it is reset, unless it has ended.
    fn close(&mut self, stream: u32);

    /// Bytes for the client.
    fn output(&self) -> &[u8];

    /// So many bytes of the output are sent.
    fn sent(&mut self, bytes: usize);

    /// Announces that no more requests are taken.
    fn begin_shutdown(&mut self);

    /// Takes no more requests from now on.
    fn finish_shutdown(&mut self);

    /// Whether the connection can close when its output is sent and its streams have ended.
    fn is_finished(&self) -> bool;
}

// By hand, so that the table of functions of each implementation does not hold the derived `Debug` of all that it owns.
impl fmt::Debug for dyn StreamProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamProtocol")
    }
}

/// Makes the protocol of a new connection.
pub type MakeStreamProtocol = fn(&Limits) -> Box<dyn StreamProtocol>;
