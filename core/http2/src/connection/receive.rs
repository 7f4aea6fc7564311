//! Frames of the client to events (RFC 9113 sections 4 to 6).

use poorhttp_http::{Head, HeadBuilder, Reject, Trailers};

use crate::connection::{Connection, Event, Request, SHUTDOWN_PING, Shutdown};
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{self, FrameHeader, HEADER, MOST, PREFACE};
use crate::options::Options;
use crate::priority::Priority;
use crate::stream::{Closed, Hold, Receiving, Sending, Stream};

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The rest of the preface, of which so many bytes have come.
    Preface(usize),
    /// The first frame, which must be SETTINGS.
    FirstFrame,
    /// A frame.
    Frame,
    /// The payload of a DATA frame.
    Content(Content),
}

/// The rest of the payload of a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    stream: u32,
    /// Bytes of content.
    content: usize,
    /// Bytes to ignore after it.
    padding: usize,
    /// The content goes to the embedding.
    is_wanted: bool,
    /// The stream ends after it.
    ends: bool,
}

/// The meaning of a header block.
#[derive(Clone, Debug)]
// Nearly all blocks are heads.
#[allow(clippy::large_enum_variant)]
enum Meaning {
    /// The head of a request.
    Head(HeadBuilder),
    /// The trailers of a request, and what is wrong with them.
    Trailers(Trailers, Option<Reject>),
    /// It is decoded only to keep the table.
    Nothing,
    /// The same, and the stream is in error.
    Fault(StreamError),
}

/// An error that ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StreamError {
    code: ErrorCode,
    reason: &'static str,
}

/// A header block under way: HEADERS without END_HEADERS, then CONTINUATION.
#[derive(Clone, Debug)]
pub(super) struct Block {
    stream: u32,
    ends_stream: bool,
    meaning: Meaning,
    /// Frames and bytes so far.
    frames: u32,
    bytes: usize,
    /// Bytes of an incomplete field.
    tail: Vec<u8>,
}

/// A header block, and the head that it means as long as the table of fields is the same: clients often repeat a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    block: Vec<u8>,
    changes: u64,
    has_content: bool,
    /// The head, from the second time on.
    head: Option<(Head, Vec<u8>)>,
}

/// What a frame comes to: an event, or nothing yet.
type Outcome = Result<Option<Event<'static>>, ConnectionError>;

impl Connection {
    /// Takes bytes from the front of `bytes` up to the next event. [`Event::NeedMore`] means that all are taken.
    pub fn receive<'a>(&mut self, bytes: &mut &'a [u8]) -> Event<'a> {
        loop {
            if let Some(error) = self.failed {
                *bytes = &[];
                return Event::Failed(error);
            }
            let result = match self.place {
                Place::Content(content) => match self.content(content, bytes) {
                    Some(event) => return event,
                    None => Ok(None),
                },
                Place::Preface(matched) => self.preface(matched, bytes),
                Place::FirstFrame | Place::Frame => self.next_frame(bytes),
            };
            match result {
                Ok(Some(event)) => return event,
                Ok(None) if self.control > Options::CONTROL_OUTPUT => self.fail(unread(Options::CONTROL_OUTPUT)),
                Ok(None) if self.output().len() > Options::UNSENT => self.fail(unread(Options::UNSENT)),
                Ok(None) if bytes.is_empty() && !self.is_due() => return Event::NeedMore,
                Ok(None) => {}
                Err(error) => self.fail(error),
            }
        }
    }

    /// Whether an event follows without more bytes: a DATA frame is complete.
    fn is_due(&self) -> bool {
        matches!(self.place, Place::Content(Content { content: 0, padding: 0, .. }))
    }

    fn preface(&mut self, matched: usize, bytes: &mut &[u8]) -> Outcome {
        let taken = bytes.len().min(PREFACE.len() - matched);
        let (part, rest) = bytes.split_at(taken);
        *bytes = rest;
        if part != &PREFACE[matched..matched + taken] {
            return Err(ConnectionError::protocol("no preface of HTTP/2"));
        }
        let matched = matched + taken;
        self.place = if matched == PREFACE.len() { Place::FirstFrame } else { Place::Preface(matched) };
        Ok(None)
    }

    /// Takes bytes up to the end of the next frame; of DATA only up to its content.
    fn next_frame(&mut self, bytes: &mut &[u8]) -> Outcome {
        if self.input.is_empty()
            && let Some((header, needed)) = self.frame_length(bytes)?
            && let Some(frame) = bytes.get(..needed)
        {
            *bytes = &bytes[needed..];
            return self.frame(header, &frame[HEADER..]);
        }
        let mut input = std::mem::take(&mut self.input);
        let outcome = loop {
            let needed = match self.frame_length(&input) {
                Ok(Some((header, needed))) if input.len() == needed => break self.frame(header, &input[HEADER..]),
                Ok(Some((_, needed))) => needed,
                Ok(None) => HEADER,
                Err(error) => break Err(error),
            };
            if bytes.is_empty() {
                self.input = input;
                return Ok(None);
            }
            let (part, rest) = bytes.split_at(bytes.len().min(needed - input.len()));
            input.extend_from_slice(part);
            *bytes = rest;
        };
        // A small buffer is used again.
        if input.capacity() <= 256 && self.failed.is_none() {
            input.clear();
            self.input = input;
        }
        outcome
    }

    /// The header of the frame at the front, and the bytes that are needed to handle it; `None`: the header is incomplete.
    fn frame_length(&self, bytes: &[u8]) -> Result<Option<(FrameHeader, usize)>, ConnectionError> {
        let Some(header) = FrameHeader::parse(bytes) else { return Ok(None) };
        if self.place == Place::FirstFrame && (header.kind != frame::SETTINGS || header.has(frame::ACK)) {
            return Err(ConnectionError::protocol("a connection that does not begin with SETTINGS"));
        }
        if header.length > Options::FRAME {
            return Err(ConnectionError::frame_size("a frame over 16384 bytes"));
        }
        if let Some(block) = &self.block
            && (header.kind != frame::CONTINUATION || header.stream != block.stream)
        {
            return Err(ConnectionError::protocol("another frame within a header block"));
        }
        let payload = match header.kind {
            frame::DATA => header.length.min(usize::from(header.has(frame::PADDED))),
            _ => header.length,
        };
        Ok(Some((header, HEADER + payload)))
    }

    fn frame(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        self.place = Place::Frame;
        match header.kind {
            frame::DATA => self.data(header, payload),
            frame::HEADERS => self.headers(header, payload),
            frame::PRIORITY => self.rfc7540_priority(header, payload),
            frame::RST_STREAM => self.reset_by_client(header, payload),
            frame::SETTINGS => self.settings(header, payload),
            frame::PUSH_PROMISE => Err(ConnectionError::protocol("PUSH_PROMISE from a client")),
            frame::PING => self.ping(header, payload),
            frame::GOAWAY => self.goaway(header, payload),
            frame::WINDOW_UPDATE => self.window_update(header, payload),
            frame::CONTINUATION => self.continuation(header, payload),
            frame::PRIORITY_UPDATE => self.priority_update(header, payload),
            _ => {
                self.budget.frames(1, "too many frames of unknown kinds")?;
                Ok(None)
            }
        }
    }

    /// The bytes of a DATA frame's payload.
    fn content<'a>(&mut self, mut rest: Content, bytes: &mut &'a [u8]) -> Option<Event<'a>> {
        // The embedding may have reset the stream since the frame began; what it had not consumed was allowed again.
        rest.is_wanted &= self.streams.peek(rest.stream).is_some();
        let (part, behind) = bytes.split_at(bytes.len().min(rest.content));
        let padding = if part.len() == rest.content { behind.len().min(rest.padding) } else { 0 };
        *bytes = &behind[padding..];
        rest.content -= part.len();
        rest.padding -= padding;
        let is_complete = rest.content == 0 && rest.padding == 0;
        let stream = rest.stream;
        if rest.is_wanted && !part.is_empty() {
            // The end is an event of its own.
            self.place = if is_complete && !rest.ends { Place::Frame } else { Place::Content(rest) };
            return Some(Event::Content { stream, bytes: part });
        }
        self.place = if is_complete { Place::Frame } else { Place::Content(rest) };
        (is_complete && rest.ends && rest.is_wanted).then_some(())?;
        self.end_receiving(stream).then_some(Event::Ended { stream })
    }

    /// The client ends its side of a stream; `false`: the stream is no longer open.
    fn end_receiving(&mut self, stream: u32) -> bool {
        let is_open = self.streams.get(stream).map(|state| state.receiving = Receiving::Ended).is_some();
        self.end_upload(stream);
        is_open
    }

    /// Section 6.1.
    fn data(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        const PADDING: ConnectionError = ConnectionError::protocol("padding longer than its frame");
        let FrameHeader { length, stream, .. } = header;
        if stream == 0 {
            return Err(ConnectionError::protocol("DATA on no stream"));
        }
        let padding = match (header.has(frame::PADDED), payload) {
            (false, _) => 0,
            (true, []) => return Err(PADDING),
            (true, [padding, ..]) => usize::from(*padding),
        };
        let content = length.checked_sub(payload.len() + padding).ok_or(PADDING)?;
        self.check_not_idle(stream)?;
        if length as i64 > self.receive_window {
            return Err(ConnectionError::flow_control("more content than the window of the connection allows"));
        }
        self.receive_window -= length as i64;
        let ends = header.has(frame::END_STREAM);
        if content == 0 && !ends {
            self.budget.frames(1, "too many DATA frames without content")?;
        }
        let mut rest = Content { stream, content, padding, is_wanted: false, ends };
        if self.streams.peek(stream).is_none() && self.streams.closed(stream) == Some(Closed::Complete) {
            return Err(ConnectionError::new(ErrorCode::StreamClosed, "DATA on a closed stream"));
        }
        let event = match self.take_content(&mut rest, length) {
            Ok(event) => event,
            Err(error) => self.stream_error(stream, error)?,
        };
        self.place = Place::Content(rest);
        match rest.is_wanted {
            true => self.lend(),
            false => self.allow(length as u32),
        }
        match event {
            Some(Event::Refused { reject, .. }) if !self.budget.refuse(reject.status == 400)? => {
                Ok(Some(self.reset_refused(stream, reject)))
            }
            event => Ok(event),
        }
    }

    /// Counts the content of a DATA frame of `length` bytes, and says whether the embedding gets it.
    fn take_content(&mut self, rest: &mut Content, length: usize) -> Result<Option<Event<'static>>, StreamError> {
        let stream = rest.stream;
        let most = self.options.limits.body;
        let Some(state) = self.streams.get(stream) else {
            return match self.streams.closed(stream) {
                // The frame was under way when the stream was reset.
                Some(Closed::ByServer) => Ok(None),
                Some(Closed::ByClient | Closed::Complete) | None => {
                    Err(StreamError { code: ErrorCode::StreamClosed, reason: "DATA on a closed stream" })
                }
            };
        };
        if length as i64 > state.receive_window && state.receiving == Receiving::Content {
            let reason = "more content than the window of the stream allows";
            return Err(StreamError { code: ErrorCode::FlowControlError, reason });
        }
        match state.receiving {
            Receiving::Ended => {
                return Err(StreamError { code: ErrorCode::StreamClosed, reason: "DATA after the end of the stream" });
            }
            Receiving::Discarded => {
                if rest.ends {
                    state.receiving = Receiving::Ended;
                }
                return Ok(None);
            }
            Receiving::Content => {}
        }
        state.receive_window -= length as i64;
        state.received += rest.content as u64;
        state.is_awaited &= rest.content == 0;
        if self.upload == Some(stream) {
            self.uploaded += rest.content as u64;
        }
        let is_other = |announced: u64| state.received > announced || rest.ends && state.received < announced;
        let reject = match state.announced {
            Some(announced) if is_other(announced) => Reject::OTHER_LENGTH,
            _ if state.received > most => Reject::BODY_TOO_LARGE,
            _ => {
                rest.is_wanted = true;
                state.unconsumed += length as u32;
                // Padding needs no memory.
                let padding = (length - rest.content) as u32;
                if padding > 0 {
                    self.credit(stream, padding);
                }
                return Ok(None);
            }
        };
        Ok(Some(self.refuse(stream, reject, rest.ends, Vec::new())))
    }

    /// Refuses a request: it is answered, and nothing more of it is taken.
    fn refuse(&mut self, stream: u32, reject: Reject, ended: bool, line: Vec<u8>) -> Event<'static> {
        if let Some(state) = self.streams.get(stream) {
            state.receiving = if ended { Receiving::Ended } else { Receiving::Discarded };
            // Malformed (RFC 9113 section 8.1.1): an answer may come before the error.
            state.fault = (reject.status == 400).then_some(ErrorCode::ProtocolError);
        }
        self.end_upload(stream);
        Event::Refused { stream, reject, line }
    }

    /// Resets the stream of a malformed request, which gets no answer.
    fn reset_refused(&mut self, stream: u32, reject: Reject) -> Event<'static> {
        let code = ErrorCode::ProtocolError;
        self.push_reset(stream, code);
        self.control += HEADER + 4;
        self.forget_content(stream);
        self.streams.reset(stream, Closed::ByServer);
        Event::Reset { stream, code, reason: Some(reject.reason) }
    }

    /// Refuses frames on a stream that has not begun.
    fn check_not_idle(&self, stream: u32) -> Result<(), ConnectionError> {
        match stream > self.streams.last || stream.is_multiple_of(2) {
            true => Err(ConnectionError::protocol("a frame on a stream that has not begun")),
            false => Ok(()),
        }
    }

    /// Ends a stream in error (section 5.4.2). It counts like a stream that the client resets, because the client has provoked it.
    fn stream_error(&mut self, stream: u32, error: StreamError) -> Outcome {
        let StreamError { code, reason } = error;
        self.push_reset(stream, code);
        self.control += HEADER + 4;
        let was_open = self.streams.get(stream).is_some();
        if was_open {
            self.forget_content(stream);
            self.streams.reset(stream, Closed::ByServer);
        } else if self.streams.closed(stream).is_none() {
            self.streams.remember(stream, Closed::ByServer);
        }
        self.budget.reset("too many streams that were reset")?;
        Ok(was_open.then_some(Event::Reset { stream, code, reason: Some(reason) }))
    }

    /// Section 6.2.
    fn headers(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        const PADDING: ConnectionError = ConnectionError::protocol("padding longer than its frame");
        const SHORT: ConnectionError = ConnectionError::frame_size("HEADERS too short for their flags");
        let FrameHeader { stream, .. } = header;
        if stream.is_multiple_of(2) {
            return Err(ConnectionError::protocol("HEADERS on a stream that no client begins"));
        }
        let mut fragment = payload;
        if header.has(frame::PADDED) {
            let (padding, rest) = fragment.split_first().ok_or(SHORT)?;
            let length = rest.len().checked_sub(usize::from(*padding)).ok_or(PADDING)?;
            fragment = &rest[..length];
        }
        let mut depends_on_itself = false;
        if header.has(frame::HAS_PRIORITY) {
            let (priority, rest) = fragment.split_first_chunk::<5>().ok_or(SHORT)?;
            depends_on_itself = dependency(priority) == stream;
            fragment = rest;
        }
        let ends_stream = header.has(frame::END_STREAM);
        let mut meaning = self.meaning(stream, ends_stream)?;
        if depends_on_itself && !matches!(meaning, Meaning::Nothing) {
            meaning = Meaning::Fault(DEPENDS_ON_ITSELF);
        }
        let is_repeatable = header.has(frame::END_HEADERS) && fragment.len() <= Options::REMEMBERED_BLOCK;
        if is_repeatable && matches!(meaning, Meaning::Head(_)) {
            return self.repeatable_head(stream, ends_stream, fragment);
        }
        let block = Block { stream, ends_stream, meaning, frames: 0, bytes: 0, tail: Vec::new() };
        self.fragment(block, fragment, header.has(frame::END_HEADERS))
    }

    /// What a header block on a stream means.
    fn meaning(&mut self, stream: u32, ends_stream: bool) -> Result<Meaning, ConnectionError> {
        let fault = |code, reason| Ok(Meaning::Fault(StreamError { code, reason }));
        if stream > self.streams.last {
            self.streams.last = stream;
            return match self.shutdown {
                // The client knows from GOAWAY that it may send the request again.
                Shutdown::Final(last) if stream > last => {
                    self.budget.frames(1, "too many requests after GOAWAY")?;
                    self.streams.remember(stream, Closed::ByServer);
                    Ok(Meaning::Nothing)
                }
                _ if self.streams.len() >= self.options.streams as usize => {
                    fault(ErrorCode::RefusedStream, "more streams at the same time than are allowed")
                }
                _ => Ok(Meaning::Head(HeadBuilder::default())),
            };
        }
        if let Some(state) = self.streams.get(stream) {
            return match state.receiving {
                Receiving::Ended => fault(ErrorCode::StreamClosed, "HEADERS after the end of the stream"),
                _ if !ends_stream => fault(ErrorCode::ProtocolError, "trailers that do not end the stream"),
                Receiving::Content => Ok(Meaning::Trailers(Trailers::default(), None)),
                Receiving::Discarded => {
                    state.receiving = Receiving::Ended;
                    Ok(Meaning::Nothing)
                }
            };
        }
        match self.streams.closed(stream) {
            Some(Closed::ByServer) => {
                self.budget.frames(1, "too many HEADERS on closed streams")?;
                Ok(Meaning::Nothing)
            }
            Some(Closed::ByClient) => fault(ErrorCode::StreamClosed, "HEADERS on a stream that the client has reset"),
            Some(Closed::Complete) => Err(ConnectionError::new(ErrorCode::StreamClosed, "HEADERS on a closed stream")),
            None => Err(ConnectionError::protocol("a stream with a smaller number than one before it")),
        }
    }

    /// Section 6.10.
    fn continuation(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        match self.block.take() {
            Some(block) => self.fragment(*block, payload, header.has(frame::END_HEADERS)),
            None => Err(ConnectionError::protocol("CONTINUATION without HEADERS before it")),
        }
    }

    /// Decodes a part of a header block. Fields are checked as they come, so a block takes no more memory than the head that it
    /// becomes, and one incomplete field.
    fn fragment(&mut self, mut block: Block, fragment: &[u8], is_end: bool) -> Outcome {
        block.frames += 1;
        block.bytes += fragment.len();
        if block.bytes > self.options.block() {
            return Err(ConnectionError::calm("a header block over the limit", self.options.block()));
        }
        if block.frames > Options::BLOCK_FRAMES {
            return Err(ConnectionError::calm("a header block of too many frames", Options::BLOCK_FRAMES as usize));
        }
        let limits = &self.options.limits;
        let field = |name: &[u8], value: &[u8]| match &mut block.meaning {
            Meaning::Head(head) => head.field(name, value, limits),
            Meaning::Trailers(trailers, reject @ None) => *reject = trailers.field(name, value, limits).err(),
            Meaning::Trailers(_, Some(_)) | Meaning::Nothing | Meaning::Fault(_) => {}
        };
        let malformed = |reason| ConnectionError::new(ErrorCode::CompressionError, reason);
        let mut tail = std::mem::take(&mut block.tail);
        if tail.is_empty() {
            let decoded = self.decoder.decode(fragment, is_end, field).map_err(malformed)?;
            tail.extend_from_slice(&fragment[decoded..]);
        } else {
            tail.extend_from_slice(fragment);
            let decoded = self.decoder.decode(&tail, is_end, field).map_err(malformed)?;
            tail.drain(..decoded);
        }
        block.tail = tail;
        if is_end {
            return self.end_block(block);
        }
        self.block = Some(Box::new(block));
        Ok(None)
    }

    fn end_block(&mut self, block: Block) -> Outcome {
        let Block { stream, ends_stream, meaning, bytes, .. } = block;
        match meaning {
            Meaning::Nothing => Ok(None),
            Meaning::Fault(error) => self.stream_error(stream, error),
            Meaning::Trailers(_, reject) => {
                let reject = reject.or_else(|| self.announces_more(stream).then_some(Reject::OTHER_LENGTH));
                match reject {
                    // The embedding has reset the stream since the block began.
                    _ if self.streams.peek(stream).is_none() => Ok(None),
                    Some(reject) => Ok(Some(match self.budget.refuse(reject.status == 400)? {
                        true => self.refuse(stream, reject, true, Vec::new()),
                        false => self.reset_refused(stream, reject),
                    })),
                    None => Ok(self.end_receiving(stream).then_some(Event::Ended { stream })),
                }
            }
            Meaning::Head(head) => {
                self.check_growth(head.size(), bytes)?;
                let (head, text, result) = head.finish(!ends_stream, &self.options.limits);
                self.begin(stream, head, text, result, ends_stream)
            }
        }
    }

    /// Refuses a header block of `received` bytes whose head has `size`, because it refers to the same fields again and again.
    fn check_growth(&self, size: usize, received: usize) -> Result<(), ConnectionError> {
        let most = self.options.growth();
        match size.saturating_sub(4 * received) > most {
            true => Err(ConnectionError::calm("a head that is much longer than its header block", most)),
            false => Ok(()),
        }
    }

    /// Whether less content has come than was announced.
    fn announces_more(&self, stream: u32) -> bool {
        self.streams
            .peek(stream)
            .is_some_and(|state| state.announced.is_some_and(|announced| announced > state.received))
    }

    /// Takes a short header block, which is not decoded again if it is the last one once more.
    fn repeatable_head(&mut self, stream: u32, ends_stream: bool, block: &[u8]) -> Outcome {
        let changes = self.decoder.changes();
        let mut remembered = self.remembered.take().unwrap_or_default();
        let Remembered { block: last, changes: then, has_content, head } = &mut *remembered;
        let is_repeated = (*then, *has_content) == (changes, !ends_stream) && last == block;
        if let Some((head, text)) = head.as_ref().filter(|_| is_repeated) {
            let (head, text) = (head.clone(), text.clone());
            self.remembered = Some(remembered);
            return self.begin(stream, head, text, Ok(()), ends_stream);
        }
        let limits = &self.options.limits;
        let mut builder = HeadBuilder::default();
        let decoded = self.decoder.decode(block, true, |name, value| builder.field(name, value, limits));
        decoded.map_err(|reason| ConnectionError::new(ErrorCode::CompressionError, reason))?;
        self.check_growth(builder.size(), block.len())?;
        let (found, text, result) = builder.finish(!ends_stream, limits);
        // Only what comes a second time is worth a copy.
        let is_kept = is_repeated && result.is_ok() && text.len() <= Options::REMEMBERED_HEAD;
        *head = is_kept.then(|| (found.clone(), text.clone()));
        if !is_repeated {
            last.clear();
            last.extend_from_slice(block);
            *has_content = !ends_stream;
        }
        *then = self.decoder.changes();
        self.remembered = Some(remembered);
        self.begin(stream, found, text, result, ends_stream)
    }

    /// A request begins, or is refused.
    fn begin(
        &mut self,
        stream: u32,
        head: Head,
        text: Vec<u8>,
        result: Result<(), Reject>,
        ends_stream: bool,
    ) -> Outcome {
        let mut given: Option<Priority> = None;
        for field in head.fields.iter().filter(|field| field.name.of(&text) == b"priority") {
            // A field says all: what is missing in it has its default value.
            given.get_or_insert_default().update(field.value.of(&text));
        }
        let mut priority = given.unwrap_or(Priority::UNKNOWN);
        // What comes in a frame replaces the field (RFC 9218 section 7).
        if let Some(at) = self.early_priorities.iter().position(|(early, _)| *early == stream) {
            priority = self.early_priorities.remove(at).map_or(priority, |(_, early)| early);
        }
        let state = Stream {
            receiving: if ends_stream { Receiving::Ended } else { Receiving::Content },
            sending: Sending::Head,
            closed: None,
            send_window: self.initial_send_window,
            window: self.first_window,
            receive_window: i64::from(self.first_window),
            unconsumed: 0,
            credit: 0,
            is_awaited: false,
            hold: Hold::No,
            announced: if head.is_chunked() { None } else { head.body_length() },
            received: 0,
            priority,
            turn: None,
            is_granted: false,
            fault: None,
        };
        self.streams.add(stream, state);
        Ok(Some(match result {
            Ok(()) => {
                self.budget.request();
                Event::Request(Box::new(Request { stream, head, text, has_content: !ends_stream, priority }))
            }
            Err(reject) if self.budget.refuse(reject.status == 400)? => self.refuse(stream, reject, ends_stream, text),
            Err(_) => {
                self.reset(stream, ErrorCode::ProtocolError);
                self.control += HEADER + 4;
                return Ok(None);
            }
        }))
    }

    /// Section 6.3: priorities of RFC 7540 are deprecated, and ignored.
    fn rfc7540_priority(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        self.budget.frames(1, "too many PRIORITY frames")?;
        if header.stream == 0 {
            return Err(ConnectionError::protocol("PRIORITY on no stream"));
        }
        let error = match payload.first_chunk::<5>() {
            Some(priority) if payload.len() == 5 => match dependency(priority) == header.stream {
                true => DEPENDS_ON_ITSELF,
                false => return Ok(None),
            },
            _ => StreamError { code: ErrorCode::FrameSizeError, reason: "PRIORITY of another length than 5" },
        };
        match header.stream > self.streams.last {
            // A stream that has not begun cannot be reset, and one that has ended needs not be.
            true => Err(ConnectionError::new(error.code, error.reason)),
            false if self.streams.peek(header.stream).is_none() => Ok(None),
            false => self.stream_error(header.stream, error),
        }
    }

    /// RFC 9218 section 7.1.
    fn priority_update(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        self.budget.frames(1, "too many PRIORITY_UPDATE frames")?;
        if header.stream != 0 {
            return Err(ConnectionError::protocol("PRIORITY_UPDATE on a stream"));
        }
        let Some((stream, value)) = payload.split_first_chunk::<4>() else {
            return Err(ConnectionError::frame_size("PRIORITY_UPDATE without a stream"));
        };
        let stream = u32::from_be_bytes(*stream) & MOST;
        if stream.is_multiple_of(2) {
            return Err(ConnectionError::protocol("PRIORITY_UPDATE of a stream that no client begins"));
        }
        let priority = Priority::of(value);
        let is_open = self.streams.prioritize(stream, |other| *other = priority);
        if !is_open && stream > self.streams.last {
            self.early_priorities.retain(|(early, _)| *early != stream);
            if self.early_priorities.len() >= Options::EARLY_PRIORITIES {
                self.early_priorities.pop_front();
            }
            self.early_priorities.push_back((stream, priority));
        }
        Ok(None)
    }

    /// Section 6.4.
    fn reset_by_client(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        let stream = header.stream;
        let Some(code) = payload.first_chunk::<4>().filter(|_| payload.len() == 4) else {
            return Err(ConnectionError::frame_size("RST_STREAM of another length than 4"));
        };
        self.check_not_idle(stream)?;
        if self.streams.get(stream).is_none() {
            self.budget.frames(1, "too many RST_STREAM on closed streams")?;
            return Ok(None);
        }
        self.forget_content(stream);
        self.streams.reset(stream, Closed::ByClient);
        self.resets[0] += 1;
        self.budget.reset("too many streams that were reset")?;
        Ok(Some(Event::Reset { stream, code: ErrorCode::of(u32::from_be_bytes(*code)), reason: None }))
    }

    /// Section 6.5.
    fn settings(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("SETTINGS on a stream"));
        }
        // Each setting takes time, and one frame can hold 2,730; another window changes those of all streams.
        self.budget.frames(1 + payload.len() as u32 / 60 + self.streams.len() as u32 / 25, "too many SETTINGS")?;
        if header.has(frame::ACK) {
            if !payload.is_empty() {
                return Err(ConnectionError::frame_size("an acknowledgement of SETTINGS that is not empty"));
            }
            self.acknowledged();
            return Ok(None);
        }
        if !payload.len().is_multiple_of(6) {
            return Err(ConnectionError::frame_size("SETTINGS of a length that is no multiple of 6"));
        }
        let mut window = None;
        for setting in payload.chunks_exact(6) {
            let &[high, low, a, b, c, d] = setting else { break };
            let value = u32::from_be_bytes([a, b, c, d]);
            match u16::from_be_bytes([high, low]) {
                frame::HEADER_TABLE_SIZE => self.encoder.offer(value as usize),
                frame::ENABLE_PUSH if value > 1 => {
                    return Err(ConnectionError::protocol("a SETTINGS_ENABLE_PUSH other than 0 and 1"));
                }
                frame::INITIAL_WINDOW_SIZE if value > MOST => {
                    return Err(ConnectionError::flow_control("a SETTINGS_INITIAL_WINDOW_SIZE over 2147483647"));
                }
                frame::INITIAL_WINDOW_SIZE => window = Some(value),
                frame::MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                    return Err(ConnectionError::protocol("a SETTINGS_MAX_FRAME_SIZE outside of its bounds"));
                }
                frame::NO_RFC7540_PRIORITIES if value > 1 => {
                    return Err(ConnectionError::protocol("a SETTINGS_NO_RFC7540_PRIORITIES other than 0 and 1"));
                }
                // Frames larger than 16 KiB are not sent; nothing is pushed; the size of a header list is advice.
                _ => {}
            }
        }
        if let Some(window) = window {
            self.change_windows(i64::from(window))?;
        }
        frame::push_settings_ack(&mut self.output);
        self.control += HEADER;
        Ok(None)
    }

    /// Changes the windows of all streams, which may become negative (section 6.9.2).
    fn change_windows(&mut self, window: i64) -> Result<(), ConnectionError> {
        let change = window - self.initial_send_window;
        self.initial_send_window = window;
        match self.streams.change_windows(change) > i64::from(MOST) {
            true => Err(ConnectionError::flow_control("a window over 2147483647")),
            false => Ok(()),
        }
    }

    /// Section 6.7.
    fn ping(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("PING on a stream"));
        }
        let Some(payload) = payload.first_chunk::<8>().filter(|_| payload.len() == 8) else {
            return Err(ConnectionError::frame_size("PING of another length than 8"));
        };
        self.budget.frames(1, "too many PING")?;
        if !header.has(frame::ACK) {
            frame::push_ping(&mut self.output, true, payload);
            self.control += HEADER + 8;
        } else if *payload == SHUTDOWN_PING && self.shutdown == Shutdown::Announced {
            self.finish_shutdown();
        }
        Ok(None)
    }

    /// Section 6.8.
    fn goaway(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        if header.stream != 0 {
            return Err(ConnectionError::protocol("GOAWAY on a stream"));
        }
        if payload.len() < 8 {
            return Err(ConnectionError::frame_size("GOAWAY shorter than 8"));
        }
        self.budget.frames(1, "too many GOAWAY")?;
        self.client_leaves = true;
        Ok(None)
    }

    /// Section 6.9.
    fn window_update(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        let Some(increment) = payload.first_chunk::<4>().filter(|_| payload.len() == 4) else {
            return Err(ConnectionError::frame_size("WINDOW_UPDATE of another length than 4"));
        };
        self.budget.frames(1, "too many WINDOW_UPDATE")?;
        let increment = i64::from(u32::from_be_bytes(*increment) & MOST);
        let stream = header.stream;
        if stream == 0 {
            if increment == 0 {
                return Err(ConnectionError::protocol("a WINDOW_UPDATE of 0"));
            }
            self.send_window += increment;
            return match self.send_window > i64::from(MOST) {
                true => Err(ConnectionError::flow_control("a window over 2147483647")),
                false => Ok(None),
            };
        }
        self.check_not_idle(stream)?;
        if increment == 0 && self.streams.peek(stream).is_some() {
            let error = StreamError { code: ErrorCode::ProtocolError, reason: "a WINDOW_UPDATE of 0" };
            return self.stream_error(stream, error);
        }
        if self.streams.change_window(stream, increment).is_some_and(|window| window > i64::from(MOST)) {
            let error = StreamError { code: ErrorCode::FlowControlError, reason: "a window over 2147483647" };
            return self.stream_error(stream, error);
        }
        Ok(None)
    }
}

/// The error of a client that does not read its answers.
fn unread(limit: usize) -> ConnectionError {
    ConnectionError::calm("a client that does not read what it asks for", limit)
}

const DEPENDS_ON_ITSELF: StreamError =
    StreamError { code: ErrorCode::ProtocolError, reason: "a stream that depends on itself" };

/// The stream on which another depends, in a priority of RFC 7540.
fn dependency(priority: &[u8; 5]) -> u32 {
    let [a, b, c, d, _] = *priority;
    u32::from_be_bytes([a, b, c, d]) & MOST
}
