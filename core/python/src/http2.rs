//! HTTP/2 for the reactor: its interface to protocols with streams, on the state machine of `poorhttp-http2`.
//!
//! The two crates do not know each other: the reactor serves any protocol of its interface, and the state machine any embedding.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use poorhttp_http::Limits;
use poorhttp_http2::{Connection, ErrorCode, Event, Options, PREFACE, Request};
use poorhttp_reactor::{Multiplexing, Negotiation, StreamEvent, StreamProtocol, StreamRequest};

use crate::ffi;

/// Bytes of the preface that look like the request line of HTTP/1; the state machine checks the others.
const LINE: usize = b"PRI * HTTP/2.0\r\n".len();

/// The option `http2`: how clients come to HTTP/2. Each includes those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http2 {
    Off,
    Tls,
    Trusted,
    On,
}

impl Http2 {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "off" => Some(Http2::Off),
            "tls" => Some(Http2::Tls),
            "trusted" => Some(Http2::Trusted),
            "on" => Some(Http2::On),
            _ => None,
        }
    }

    /// Which connections of a listener of HTTP speak it.
    pub(crate) fn negotiation(self, has_tls: bool) -> Negotiation {
        match self {
            Http2::Off => Negotiation::Never,
            _ if has_tls => Negotiation::Tls,
            Http2::Tls => Negotiation::Never,
            Http2::Trusted => Negotiation::TrustedPreface,
            Http2::On => Negotiation::Preface,
        }
    }
}

/// The protocol with these limits: so many streams of a connection, and bytes that the client may send on a stream and on the
/// connection before they are consumed.
pub(crate) fn multiplexing(limits: &Limits, streams: u32, windows: (u32, u32)) -> Multiplexing {
    let (stream_window, connection_window) = windows;
    let limits = limits.clone();
    let options = Arc::new(Options { limits, streams, stream_window, connection_window, ..Options::default() });
    let make = move |_: &Limits| Box::new(Server(Connection::new(Arc::clone(&options)))) as Box<dyn StreamProtocol>;
    Multiplexing { make: Arc::new(make), preface: &PREFACE[..LINE], limit_unsent }
}

/// Has a TCP socket take no more while so many bytes are not sent. One of another kind keeps few.
fn limit_unsent(socket: BorrowedFd<'_>, bytes: u32) {
    let _ = ffi::set_option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &bytes.to_ne_bytes());
}

/// The server's side of a connection.
#[derive(Debug)]
struct Server(Connection);

impl StreamProtocol for Server {
    fn receive<'a>(&mut self, bytes: &mut &'a [u8]) -> StreamEvent<'a> {
        match self.0.receive(bytes) {
            Event::NeedMore => StreamEvent::NeedMore,
            Event::Request(request) => {
                let Request { stream, head, text, has_content, .. } = *request;
                StreamEvent::Request(Box::new(StreamRequest { stream, head, text, has_content }))
            }
            Event::Content { stream, bytes } => StreamEvent::Content { stream, bytes },
            Event::Ended { stream } => StreamEvent::Ended { stream },
            Event::Refused { stream, reject, line } => StreamEvent::Refused { stream, reject, line },
            Event::Reset { stream, .. } => StreamEvent::Reset { stream },
            Event::Failed(error) => StreamEvent::Failed(error.to_string()),
        }
    }

    fn wants_input(&self) -> bool {
        self.0.wants_input()
    }

    fn consumed(&mut self, stream: u32, bytes: u32) {
        self.0.consumed(stream, bytes);
    }

    fn widen(&mut self, stream: u32) {
        self.0.widen(stream);
    }

    fn await_content(&mut self, stream: u32) {
        self.0.await_content(stream);
    }

    fn allowed(&self, stream: u32) -> u64 {
        self.0.allowed(stream)
    }

    fn is_held(&self, stream: u32) -> bool {
        self.0.is_held(stream)
    }

    fn check_hold(&mut self, stream: u32) -> bool {
        self.0.check_hold(stream)
    }

    fn send_head(&mut self, stream: u32, status: u16, fields: &[u8], ends: bool) -> bool {
        self.0.send_lines(stream, status, fields, ends).is_ok()
    }

    fn send_data(&mut self, stream: u32, content: &[u8], ends: bool) -> Option<usize> {
        self.0.send_data(stream, content, ends).ok()
    }

    fn send_trailers(&mut self, stream: u32, lines: &[u8]) -> bool {
        self.0.send_trailer_lines(stream, lines).is_ok()
    }

    fn begin_data(&mut self, stream: u32, most: usize) -> usize {
        self.0.begin_data(stream, most)
    }

    fn push_content(&mut self, content: &[u8]) {
        self.0.push_content(content);
    }

    fn room(&self, stream: u32) -> usize {
        self.0.room(stream)
    }

    fn next_writable(&mut self) -> Option<u32> {
        self.0.next_writable().inspect(|stream| self.0.begin_turn(*stream))
    }

    fn take_turn(&mut self, stream: u32) -> bool {
        self.0.take_turn(stream)
    }

    fn end_turn(&mut self, stream: u32, has_more: bool) {
        self.0.end_turn(stream, has_more);
    }

    fn has_writable(&self) -> bool {
        self.0.has_writable()
    }

    fn waits_for_turn(&self, stream: u32) -> bool {
        self.0.waits_for_turn(stream)
    }

    fn end_input(&mut self) {
        self.0.end_input();
    }

    fn close(&mut self, stream: u32) {
        self.0.close(stream);
    }

    fn cancel(&mut self, stream: u32) {
        self.0.reset(stream, ErrorCode::Cancel);
        // One that was reset before.
        self.0.close(stream);
    }

    fn output(&self) -> &[u8] {
        self.0.output()
    }

    fn sent(&mut self, bytes: usize) {
        self.0.sent(bytes);
    }

    fn pass(&mut self, seconds: u32) {
        self.0.pass(seconds);
    }

    fn take_resets(&mut self) -> [u32; 2] {
        self.0.take_resets()
    }

    fn is_mid_frame(&self) -> bool {
        self.0.is_mid_frame()
    }

    fn begin_shutdown(&mut self) {
        self.0.begin_shutdown();
    }

    fn finish_shutdown(&mut self) {
        self.0.finish_shutdown();
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}
