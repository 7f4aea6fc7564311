//! State machine of a connection: frames to events, responses to frames.
//!
//! ```text
//! receive.rs   frames of the client to events
//! send.rs      responses to frames, in the order of priorities
//! ```
//!
//! The embedding feeds what it receives to [`Connection::receive`] and acts on the events; it sends [`Connection::output`] and
//! reports with [`Connection::sent`] how much of it is gone. Each stream of an [`Event::Request`] or [`Event::Refused`] is the
//! embedding's until its response has ended or [`Connection::close`] is called.

mod receive;
mod send;

use std::collections::VecDeque;
use std::sync::Arc;

use poorhttp_http::{Head, Reject};

use crate::budget::Budget;
use crate::connection::receive::{Block, Place, Remembered};
use crate::error::{ConnectionError, ErrorCode};
use crate::frame;
use crate::hpack::decoder::Decoder;
use crate::hpack::encoder::Encoder;
use crate::options::Options;
use crate::priority::Priority;
use crate::stream::{Closed, Hold, Receiving, Stream, Streams};

/// The payload of the PING that follows the announcement of a shutdown.
const SHUTDOWN_PING: [u8; 8] = *b"shutdown";

/// A request whose head is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The stream.
    pub stream: u32,
    /// The head, with positions in `text`.
    pub head: Head,
    /// The head as text of HTTP/1.1; its version is `HTTP/2.0`.
    pub text: Vec<u8>,
    /// Content follows; it ends with [`Event::Ended`].
    pub has_content: bool,
    /// The priority that the client has given.
    pub priority: Priority,
}

/// A step of the connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// More bytes are needed.
    NeedMore,
    /// A request. Its content follows.
    Request(Box<Request>),
    /// Content of a request, to be reported by [`Connection::consumed`] when it takes no more memory.
    Content {
        /// The stream.
        stream: u32,
        /// The next bytes.
        bytes: &'a [u8],
    },
    /// The content of a request is complete, and so are its trailers, which are dropped.
    Ended {
        /// The stream.
        stream: u32,
    },
    /// A request is refused, perhaps after [`Event::Request`]: it is answered with this status, or reset if a response has begun. No
    /// content follows.
    Refused {
        /// The stream.
        stream: u32,
        /// Status and reason.
        reject: Reject,
        /// The request line as far as it has come, which may hold any bytes; empty after [`Event::Request`].
        line: Vec<u8>,
    },
    /// A stream is reset. Nothing can be sent on it; [`Connection::close`] makes room for another one.
    Reset {
        /// The stream.
        stream: u32,
        /// The error code.
        code: ErrorCode,
        /// The reason for the log; `None`: the client has reset it.
        reason: Option<&'static str>,
    },
    /// The connection has failed, and nothing more is read. The output that is left tells the client.
    Failed(ConnectionError),
}

/// Why something is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The stream was reset, or has ended, or the connection has failed; or the window is closed of a client that sends nothing more.
    Gone,
    /// The response already has a head, or does not have one yet.
    State,
    /// A field that would split the response in HTTP/1.1, behind an intermediary; or a status that is none.
    Invalid,
}

/// How far a shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shutdown {
    None,
    /// The client has been told to begin no more requests; those under way are taken.
    Announced,
    /// Streams after this one are not processed.
    Final(u32),
}

/// A connection of HTTP/2, the server's side.
#[derive(Clone, Debug)]
pub struct Connection {
    options: Arc<Options>,
    place: Place,
    /// Bytes of an incomplete frame.
    input: Vec<u8>,
    /// The header block that is being received.
    block: Option<Box<Block>>,
    decoder: Decoder,
    encoder: Encoder,
    /// The last head, if it may come again.
    remembered: Option<Box<Remembered>>,
    streams: Streams,
    /// Priorities of streams that are yet to come.
    early_priorities: VecDeque<(u32, Priority)>,
    budget: Budget,
    /// Bytes that the client allows on the connection, and at first on a stream.
    send_window: i64,
    initial_send_window: i64,
    /// Bytes that the client may send, and those consumed that it does not know of yet.
    receive_window: i64,
    credit: u32,
    /// Bytes of these that the client may send, or has sent, although others are not consumed.
    lent: u32,
    /// The stream whose window is wide while those of others are held, and how much content has come of all such.
    upload: Option<u32>,
    uploaded: u64,
    /// Bytes that the client may send on a new stream.
    first_window: u32,
    /// What they are to be; and settings that the client has yet to acknowledge.
    next_first_window: u32,
    unacknowledged: u32,
    output: Vec<u8>,
    /// Bytes of the output that are sent.
    gone: usize,
    /// Where in the output the last DATA frame begins, if nothing was sent since.
    last_data: Option<usize>,
    /// Bytes of control frames since the output was last empty.
    control: usize,
    /// Streams that were reset since [`Connection::take_resets`]: by the client, and by this side.
    resets: [u32; 2],
    shutdown: Shutdown,
    /// The client begins no more streams.
    client_leaves: bool,
    /// Nothing more comes of the client.
    is_input_over: bool,
    failed: Option<ConnectionError>,
}

impl Connection {
    /// A connection that begins; its output has the settings.
    pub fn new(options: Arc<Options>) -> Self {
        const DEFAULT_WINDOW: u32 = Options::DEFAULT_WINDOW;
        let receive_window = options.connection_window();
        let mut output = Vec::new();
        frame::push_settings(
            &mut output,
            &[
                (frame::HEADER_TABLE_SIZE, options.header_table()),
                (frame::MAX_CONCURRENT_STREAMS, options.streams),
                (frame::INITIAL_WINDOW_SIZE, options.stream_window()),
                (frame::MAX_HEADER_LIST_SIZE, options.header_list()),
                (frame::NO_RFC7540_PRIORITIES, 1),
            ],
        );
        if receive_window > DEFAULT_WINDOW {
            frame::push_window_update(&mut output, 0, receive_window - DEFAULT_WINDOW);
        }
        Connection {
            place: Place::Preface(0),
            input: Vec::new(),
            block: None,
            decoder: Decoder::new(options.header_table() as usize),
            remembered: None,
            encoder: Encoder::new(options.response_table as usize),
            streams: Streams::default(),
            early_priorities: VecDeque::new(),
            budget: Budget::new(&options),
            send_window: i64::from(DEFAULT_WINDOW),
            initial_send_window: i64::from(DEFAULT_WINDOW),
            receive_window: i64::from(receive_window),
            credit: 0,
            lent: 0,
            upload: None,
            uploaded: 0,
            first_window: options.stream_window(),
            next_first_window: options.stream_window(),
            unacknowledged: 1,
            output,
            gone: 0,
            last_data: None,
            control: 0,
            resets: [0; 2],
            shutdown: Shutdown::None,
            client_leaves: false,
            is_input_over: false,
            failed: None,
            options,
        }
    }

    /// Bytes to send.
    pub fn output(&self) -> &[u8] {
        &self.output[self.gone..]
    }

    /// So many bytes of the output are sent.
    pub fn sent(&mut self, bytes: usize) {
        self.last_data = None;
        self.gone = (self.gone + bytes).min(self.output.len());
        self.control = self.control.saturating_sub(bytes);
        if self.gone > self.output.len() / 2 && self.gone < self.output.len() {
            self.output.drain(..std::mem::take(&mut self.gone));
        }
        if self.gone == self.output.len() {
            (self.gone, self.control) = (0, 0);
            // An idle connection keeps no more than a small response needs.
            if self.output.capacity() > Options::IDLE_OUTPUT && self.streams.is_empty() {
                self.output = Vec::new();
            }
            self.output.clear();
        }
    }

    /// Whether more bytes of the client should be read. A client that sends requests and does not read their responses is not read
    /// either, as in HTTP/1.1.
    pub fn wants_input(&self) -> bool {
        self.output().len() < 2 * Options::OUTPUT && self.failed.is_none()
    }

    /// Takes the whole output.
    pub fn take_output(&mut self) -> Vec<u8> {
        let mut output = std::mem::take(&mut self.output);
        self.last_data = None;
        output.drain(..std::mem::take(&mut self.gone));
        self.control = 0;
        output
    }

    /// Streams that are open, or reset and not closed yet.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether no request is under way, and no part of one has come.
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty() && !self.is_mid_frame()
    }

    /// Whether a part of a frame or of a header block has come, whose rest a client owes.
    pub fn is_mid_frame(&self) -> bool {
        self.block.is_some() || !self.input.is_empty() || !matches!(self.place, Place::Frame)
    }

    /// Whether the connection can close when its output is sent: it has failed, or no more requests come and all are answered.
    pub fn is_finished(&self) -> bool {
        let ends = self.client_leaves || matches!(self.shutdown, Shutdown::Final(_));
        self.failed.is_some() || ends && self.streams.is_empty()
    }

    /// The client has ended its side of the connection. It cannot open a window any more, so what waits for one is never sent.
    pub fn end_input(&mut self) {
        self.is_input_over = true;
    }

    /// Seconds have passed since this was last called; what the client has used up of [`Options::resets`] and [`Options::frames`]
    /// comes back.
    pub fn pass(&mut self, seconds: u32) {
        self.budget.pass(seconds);
    }

    /// How many streams were reset since this was last called: by the client, and by this side other than behind a complete response.
    pub fn take_resets(&mut self) -> [u32; 2] {
        std::mem::take(&mut self.resets)
    }

    /// Announces that no more requests are taken (RFC 9113 section 6.8). Those that are under way are taken until the client has
    /// answered, or until [`Connection::finish_shutdown`]; so none is lost.
    pub fn begin_shutdown(&mut self) {
        if self.shutdown == Shutdown::None && self.failed.is_none() {
            self.shutdown = Shutdown::Announced;
            frame::push_goaway(&mut self.output, frame::MOST, ErrorCode::NoError, "shutdown");
            frame::push_ping(&mut self.output, false, &SHUTDOWN_PING);
        }
    }

    /// Takes no more requests from now on: later ones may be sent again elsewhere.
    pub fn finish_shutdown(&mut self) {
        if !matches!(self.shutdown, Shutdown::Final(_)) && self.failed.is_none() {
            let last = self.streams.last;
            self.shutdown = Shutdown::Final(last);
            frame::push_goaway(&mut self.output, last, ErrorCode::NoError, "shutdown");
        }
    }

    /// Fails the connection, such as after a timeout. The client is told why.
    pub fn fail(&mut self, error: ConnectionError) {
        if self.failed.is_none() {
            let last = match self.shutdown {
                Shutdown::Final(last) => last,
                _ => self.streams.last,
            };
            frame::push_goaway(&mut self.output, last, error.code, error.reason);
            self.failed = Some(error);
            (self.input, self.block) = (Vec::new(), None);
        }
    }

    /// Content of this stream takes no more memory of the embedding, so the client may send as much again.
    pub fn consumed(&mut self, stream: u32, bytes: u32) {
        if !self.is_held(stream) {
            self.grow(stream, self.options.stream_window());
        }
        self.credit(stream, bytes);
    }

    /// The client may send so many bytes again, but not yet on a stream whose window is held.
    fn credit(&mut self, stream: u32, bytes: u32) {
        let Some(state) = self.streams.get(stream).filter(|_| self.failed.is_none()) else { return };
        let bytes = bytes.min(state.unconsumed);
        state.unconsumed -= bytes;
        state.credit += bytes;
        self.allow_on_stream(stream);
        self.allow(bytes);
    }

    /// The embedding takes the content of this stream as it comes, so that its window may be half of that of the connection.
    ///
    /// Of several uploads whose lengths are known only one has such a window, the oldest; those of the others are held until it is
    /// complete. A client sends by turns on all streams whose windows are open: each would need memory until the last of them ends.
    /// An upload that does not go on must not hold up others for long: see [`Connection::check_hold`].
    pub fn widen(&mut self, stream: u32) {
        let is_receiving = |state: &Stream| state.receiving == Receiving::Content;
        let other = self.upload.filter(|other| *other != stream && self.streams.peek(*other).is_some_and(is_receiving));
        let Some(state) = self.streams.get(stream).filter(|state| is_receiving(state)) else { return };
        if state.announced.is_some() && state.hold != Hold::Over {
            if other.is_some() {
                if state.hold == Hold::No && !state.allows_rest() {
                    state.hold = Hold::Held(self.uploaded);
                    self.narrow(Options::DEFAULT_WINDOW);
                }
                return;
            }
            self.upload = Some(stream);
        }
        self.grow(stream, self.options.connection_window() / 2);
    }

    /// This client sends several uploads at once: from now on, no more than `window` bytes of each come before it is its turn.
    fn narrow(&mut self, window: u32) {
        if window < self.next_first_window {
            self.next_first_window = window;
            frame::push_settings(&mut self.output, &[(frame::INITIAL_WINDOW_SIZE, window)]);
            self.unacknowledged += 1;
        }
    }

    /// The client has acknowledged settings: what it has sent before was sent by former ones (RFC 9113 section 6.5.3).
    fn acknowledged(&mut self) {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
        if self.unacknowledged == 0 && self.next_first_window < self.first_window {
            let before = std::mem::replace(&mut self.first_window, self.next_first_window);
            let consumed = self.streams.narrow(before - self.first_window);
            // The client may be able to send nothing on these, so no content follows with which they would grow.
            consumed.into_iter().for_each(|stream| self.grow(stream, self.options.stream_window()));
            self.lend();
        }
    }

    /// The embedding waits for content of this stream. See [`Connection::lend`].
    pub fn await_content(&mut self, stream: u32) {
        if let Some(state) = self.streams.get(stream) {
            state.is_awaited = true;
            self.streams.may_be_awaited = true;
            self.lend();
        }
    }

    /// Lets the client send more when content that nobody consumes has filled the window of the connection, and the embedding waits for
    /// that of another stream. The threads that wait may be those which the other requests wait for.
    ///
    /// The client could send that on any stream, so first the windows of all become one frame where nobody consumes: what waits exceeds
    /// the window of the connection by a frame for each stream at most.
    fn lend(&mut self) {
        let least = Options::FRAME as u32;
        if self.receive_window >= i64::from(least) || self.failed.is_some() {
            return;
        }
        // No less than a frame: with every byte that somebody takes, another one may be lent.
        let left = least.saturating_mul(self.options.streams).saturating_sub(self.lent);
        let may_lend = self.first_window <= least && left >= least;
        let may_open = self.credit >= least || may_lend || self.next_first_window > least;
        if !may_open || !self.streams.is_any_awaited() {
            return;
        }
        if self.credit < least {
            self.narrow(least);
            if !may_lend {
                return;
            }
            let more = left.min(self.options.stream_window());
            self.lent += more;
            self.credit += more;
        }
        self.allow_credit();
    }

    /// Whether the window of this stream is held.
    pub fn is_held(&self, stream: u32) -> bool {
        self.streams.peek(stream).is_some_and(Stream::is_held)
    }

    /// To be called again and again while the window of this stream is held: if less than [`Options::GOES_ON`] has come of the upload
    /// for which it is held since then, or since the last call, no window is held any more. Returns whether it is.
    pub fn check_hold(&mut self, stream: u32) -> bool {
        let uploaded = self.uploaded;
        let Some(state) = self.streams.get(stream) else { return false };
        let Hold::Held(before) = state.hold else { return false };
        if uploaded - before >= Options::GOES_ON {
            state.hold = Hold::Held(uploaded);
            return true;
        }
        // That upload holds up no others again.
        if let Some(state) = self.upload.take().and_then(|upload| self.streams.get(upload)) {
            state.hold = Hold::Over;
        }
        let held: Vec<_> = self.streams.held().map(|(id, _)| id).collect();
        held.into_iter().for_each(|stream| self.release(stream, self.options.stream_window()));
        false
    }

    /// Bytes of content that may come on a stream before more is allowed, and those that are not consumed.
    pub fn allowed(&self, stream: u32) -> u64 {
        let allowed = |state: &Stream| u64::try_from(state.receive_window).unwrap_or(0) + u64::from(state.unconsumed);
        self.streams.peek(stream).map_or(0, allowed)
    }

    /// Nothing more comes on a stream. If its window was wide, that of the oldest one that is held is widened.
    fn end_upload(&mut self, stream: u32) {
        if self.upload == Some(stream) {
            self.upload = self.streams.held().next().map(|(id, _)| id);
            if let Some(next) = self.upload {
                self.release(next, self.options.connection_window() / 2);
            }
        }
    }

    /// Holds the window of a stream no longer, which may be so large.
    fn release(&mut self, stream: u32, window: u32) {
        if let Some(state) = self.streams.get(stream) {
            state.hold = Hold::Over;
            self.grow(stream, window);
        }
    }

    /// Makes the window of a stream so large, unless the client may send all that is missing anyway, and allows what it may send.
    fn grow(&mut self, stream: u32, window: u32) {
        let Some(state) = self.streams.get(stream).filter(|_| self.failed.is_none()) else { return };
        if state.window < window && !state.allows_rest() {
            state.credit += window - std::mem::replace(&mut state.window, window);
        }
        self.allow_on_stream(stream);
    }

    /// Allows the client to send again on a stream, if that is much and it is not through.
    fn allow_on_stream(&mut self, stream: u32) {
        let least = self.options.stream_window();
        let may_come = |state: &&mut Stream| state.receiving == Receiving::Content && !state.is_held();
        let Some(state) = self.streams.get(stream).filter(may_come) else { return };
        if state.credit >= state.window / 2 && !(state.window > least && state.allows_rest()) {
            let credit = std::mem::take(&mut state.credit);
            state.receive_window += i64::from(credit);
            frame::push_window_update(&mut self.output, stream, credit);
        }
    }

    /// Allows the client to send so many bytes again on the connection, unless they were lent, or more to who waits.
    fn allow(&mut self, bytes: u32) {
        let returned = bytes.min(self.lent);
        self.lent -= returned;
        self.credit += bytes - returned;
        if self.credit >= self.options.connection_window() / 2 && self.failed.is_none() {
            self.allow_credit();
        }
        self.lend();
    }

    fn allow_credit(&mut self) {
        let credit = std::mem::take(&mut self.credit);
        self.receive_window += i64::from(credit);
        frame::push_window_update(&mut self.output, 0, credit);
    }

    /// The embedding lets go of a stream: one that was reset makes room for another, any other is reset, as an internal error unless
    /// its request was refused. Nothing happens to one that has ended.
    pub fn close(&mut self, stream: u32) {
        if self.streams.is_reset(stream) {
            self.streams.remove(stream, Closed::ByServer);
        } else {
            let fault = self.streams.peek(stream).and_then(|state| state.fault);
            self.reset(stream, fault.unwrap_or(ErrorCode::InternalError));
        }
    }

    /// Resets a stream and lets go of it.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        if self.streams.get(stream).is_some() {
            self.push_reset(stream, code);
            self.forget_content(stream);
            self.streams.remove(stream, Closed::ByServer);
        }
    }

    fn push_reset(&mut self, stream: u32, code: ErrorCode) {
        if self.failed.is_none() {
            frame::push_reset(&mut self.output, stream, code);
            self.resets[1] += u32::from(code != ErrorCode::NoError);
        }
    }

    /// Allows the client to send again what is not consumed of a stream that ends.
    fn forget_content(&mut self, stream: u32) {
        self.end_upload(stream);
        let unconsumed = self.streams.get(stream).map_or(0, |state| std::mem::take(&mut state.unconsumed));
        if unconsumed > 0 {
            self.allow(unconsumed);
        }
    }
}
