//! Interface to a protocol that carries several requests on one connection at the same time, each on a stream.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

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
    Failed(String),
}

/// The server's side of such a protocol, without input and output: bytes in, events out; calls in, bytes out. No call waits.
pub trait StreamProtocol: Send {
    /// Takes bytes of the client from the front of `bytes`, up to the next event.
    fn receive<'a>(&mut self, bytes: &mut &'a [u8]) -> StreamEvent<'a>;

    /// Whether more bytes of the client should be read.
    fn wants_input(&self) -> bool;

    /// Content of a stream takes no more memory, so the client may send as much again.
    fn consumed(&mut self, stream: u32, bytes: u32);

    /// Content of a stream is taken as it comes, so the client may send more at once.
    fn widen(&mut self, stream: u32);

    /// The application waits for content of a stream: that of others, which nobody takes, must not keep it from coming.
    fn await_content(&mut self, _stream: u32) {}

    /// Bytes of content that may come on a stream before more is allowed, and those that are not consumed.
    fn allowed(&self, _stream: u32) -> u64 {
        u64::MAX
    }

    /// Whether a stream is allowed no more while another upload is received.
    fn is_held(&self, _stream: u32) -> bool {
        false
    }

    /// The same, to be called again and again while it is: if the other upload does not go on, no stream is held any more.
    fn check_hold(&mut self, _stream: u32) -> bool {
        false
    }

    /// Sends the head of a response, or of an interim one: status, and header fields as lines. Those about the connection are left
    /// out. `ends`: no content follows. `false`: nothing can be sent on this stream.
    fn send_head(&mut self, stream: u32, status: u16, fields: &[u8], ends: bool) -> bool;

    /// Sends content, as much as windows and other streams allow; returns its length. `ends`: the content ends with these bytes, if
    /// all are taken. `None`: nothing can be sent on this stream.
    fn send_data(&mut self, stream: u32, content: &[u8], ends: bool) -> Option<usize>;

    /// Sends trailer fields as lines, which end the response behind its content. `false`: nothing can be sent on this stream.
    fn send_trailers(&mut self, stream: u32, lines: &[u8]) -> bool;

    /// Begins a frame with at most so much content, which is sent right behind the output. Returns its length; 0: the stream cannot send
    /// now.
    fn begin_data(&mut self, stream: u32, most: usize) -> usize;

    /// Adds content of that frame to the output.
    fn push_content(&mut self, content: &[u8]);

    /// Bytes of content that a stream may send now, as far as windows, other streams and the output allow.
    fn room(&self, stream: u32) -> usize;

    /// The next stream that may go on, after content that was not taken as a whole. It has the turn until
    /// [`StreamProtocol::end_turn`]. `None`: none may.
    fn next_writable(&mut self) -> Option<u32>;

    /// Gives the turn to a stream that sends of itself, if its priority keeps others waiting. `false`: it sends beside them.
    fn take_turn(&mut self, stream: u32) -> bool;

    /// Ends the turn of a stream. `has_more`: it waits for another one.
    fn end_turn(&mut self, stream: u32, has_more: bool);

    /// Whether [`StreamProtocol::next_writable`] would return a stream.
    fn has_writable(&self) -> bool;

    /// Whether a stream for which its client has room waits for its turn among the streams.
    fn waits_for_turn(&self, stream: u32) -> bool;

    /// Nothing more comes of the client: a stream to which it allows no content can send none from now on.
    fn end_input(&mut self);

    /// Lets go of a stream: it is reset as failed, unless it has ended.
    fn close(&mut self, stream: u32);

    /// The same of a stream that the server gives up because its client is too slow.
    fn cancel(&mut self, stream: u32);

    /// Bytes for the client.
    fn output(&self) -> &[u8];

    /// So many bytes of the output are sent.
    fn sent(&mut self, bytes: usize);

    /// Seconds have passed since the last call, or since the connection has begun.
    fn pass(&mut self, seconds: u32);

    /// Streams that were reset since the last call: by the client, and by the server other than behind a complete response.
    fn take_resets(&mut self) -> [u32; 2];

    /// Whether the beginning of something has come, whose rest the client owes.
    fn is_mid_frame(&self) -> bool;

    /// Announces that no more requests are taken.
    fn begin_shutdown(&mut self);

    /// Takes no more requests from now on.
    fn finish_shutdown(&mut self);

    /// Whether the connection can close when its output is sent and its streams have ended.
    fn is_finished(&self) -> bool;
}

poorhttp_interface::debug_by_name!(StreamProtocol);

/// Makes the protocol of a new connection.
pub type MakeStreamProtocol = Arc<dyn Fn(&Limits) -> Box<dyn StreamProtocol> + Send + Sync>;

/// A protocol with streams.
#[derive(Clone)]
pub struct Multiplexing {
    /// Makes it.
    pub make: MakeStreamProtocol,
    /// The line with which a connection of it begins, and none of HTTP/1 that is accepted.
    pub preface: &'static [u8],
    /// Has the socket of a connection take no more while so many bytes wait in the kernel that are not sent. No crate offers the system
    /// call without `unsafe`, which is not for this one.
    pub limit_unsent: fn(BorrowedFd<'_>, u32),
}

impl fmt::Debug for Multiplexing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.preface.fmt(formatter)
    }
}

/// Which connections carry many requests at once, by the protocol of [`Multiplexing`]; the others speak HTTP/1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Negotiation {
    /// None.
    #[default]
    Never,
    /// All.
    Always,
    /// Those with TLS that agree upon it in their handshake (ALPN).
    Tls,
    /// Those that begin with [`Multiplexing::preface`].
    Preface,
    /// The same, if they come from trusted proxies or over a Unix socket.
    TrustedPreface,
}
