//! Responses to frames, in the order of priorities (RFC 9113 section 8.1, RFC 9218 section 10).

use poorhttp_http::{is_field_value, is_token};

use crate::connection::{Connection, Unsent};
use crate::error::ErrorCode;
use crate::frame::{self, HEADER};
use crate::options::Options;
use crate::stream::{Closed, Receiving, Sending, Wait};

/// Content of a DATA frame that is copied to the output: with its header it fills a record of TLS (16,384 bytes), and four of them fill the output.
const CONTENT: usize = Options::FRAME - HEADER;

/// Names of fields are made lower-case on the stack up to this length.
const SHORT_NAME: usize = 64;

impl Connection {
    /// Sends the head of a response, or of an interim one (100, 103). `ends`: no content follows.
    ///
    /// Names may have capitals. Fields about the connection are left out (section 8.2.2).
    pub fn send_head<'a>(
        &mut self,
        stream: u32,
        status: u16,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8]), IntoIter: Clone>,
        ends: bool,
    ) -> Result<(), Unsent> {
        let is_interim = (100..200).contains(&status);
        // 101 does not exist in HTTP/2 (section 8.6).
        if !(100..1000).contains(&status) || status == 101 || is_interim && ends {
            return Err(Unsent::Invalid);
        }
        self.check(stream, Sending::Head)?;
        let fields = fields.into_iter();
        let mut priority = None;
        for (name, value) in fields.clone() {
            if !is_valid((name, value)) {
                return Err(Unsent::Invalid);
            }
            if name.eq_ignore_ascii_case(b"priority") {
                priority = Some(value);
            }
        }
        // The response may change the priority that the client has given (RFC 9218 section 8).
        if let Some(value) = priority {
            self.streams.prioritize(stream, |priority| priority.update(value));
        }
        if let Some(state) = self.streams.get(stream).filter(|_| !is_interim) {
            state.sending = Sending::Content;
        }
        self.push_block(stream, Some(status), fields, ends);
        if ends {
            self.end(stream);
        }
        Ok(())
    }

    /// The same for fields as the lines of HTTP/1.1 that [`poorhttp_http::Response`] writes.
    pub fn send_lines(&mut self, stream: u32, status: u16, lines: &[u8], ends: bool) -> Result<(), Unsent> {
        self.send_head(stream, status, fields_of(lines), ends)
    }

    /// Sends content: as much as the windows, the output and the turns of other streams allow. Returns how much that was. If it is not
    /// all, [`Connection::next_writable`] says when the stream may go on. `ends`: the content ends with these bytes.
    pub fn send_data(&mut self, stream: u32, content: &[u8], ends: bool) -> Result<usize, Unsent> {
        self.check(stream, Sending::Content)?;
        if content.is_empty() {
            if ends {
                let last = self.last_data.and_then(|at| self.output.get_mut(at..));
                if !last.is_some_and(|frame| frame::end_with(frame, stream)) {
                    frame::push_data(&mut self.output, stream, b"", true);
                }
                self.end(stream);
            }
            return Ok(0);
        }
        if self.is_input_over && matches!(self.wait(stream), Some(Wait::StreamWindow | Wait::ConnectionWindow)) {
            return Err(Unsent::Gone);
        }
        let taken = self.room(stream).min(content.len());
        let is_whole = taken == content.len();
        let mut rest = &content[..taken];
        self.output.reserve(taken + HEADER * (1 + taken / CONTENT));
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(CONTENT));
            self.last_data = Some(self.output.len());
            frame::push_data(&mut self.output, stream, part, is_whole && ends && behind.is_empty());
            rest = behind;
        }
        self.count_content(stream, taken, is_whole);
        if !is_whole {
            self.streams.queue(stream);
        } else if ends {
            self.end(stream);
        }
        Ok(taken)
    }

    /// Begins a DATA frame of at most so many bytes. The embedding sends its content itself, right behind the output, or adds it by
    /// [`Connection::push_content`]. Returns its length; 0: the stream cannot send now.
    pub fn begin_data(&mut self, stream: u32, most: usize) -> usize {
        if self.check(stream, Sending::Content).is_err() {
            return 0;
        }
        let length = self.room_in_frames(stream, Options::FRAME).min(most).min(Options::FRAME);
        if length > 0 {
            frame::begin_data(&mut self.output, stream, length);
            self.last_data = None;
            self.count_content(stream, length, false);
        }
        length
    }

    /// Adds content of the frame that [`Connection::begin_data`] has begun.
    pub fn push_content(&mut self, content: &[u8]) {
        self.output.extend_from_slice(content);
    }

    /// Counts content of a stream, whose turn is over. `is_whole`: it is all that the embedding had.
    fn count_content(&mut self, stream: u32, bytes: usize, is_whole: bool) {
        self.send_window -= bytes as i64;
        self.streams.leave_queue(stream);
        self.streams.change_window(stream, -(bytes as i64));
        if let Some(state) = self.streams.get(stream) {
            state.is_granted = false;
        }
        if bytes > 0 {
            self.budget.sent(bytes, is_whole);
        }
    }

    /// Sends trailers, which end the response.
    pub fn send_trailers<'a>(
        &mut self,
        stream: u32,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8]), IntoIter: Clone>,
    ) -> Result<(), Unsent> {
        self.check(stream, Sending::Content)?;
        let fields = fields.into_iter();
        if !fields.clone().all(is_valid) {
            return Err(Unsent::Invalid);
        }
        self.push_block(stream, None, fields, true);
        self.end(stream);
        Ok(())
    }

    /// The same for fields as lines of HTTP/1.1.
    pub fn send_trailer_lines(&mut self, stream: u32, lines: &[u8]) -> Result<(), Unsent> {
        self.send_trailers(stream, fields_of(lines))
    }

    /// The next stream that may go on with [`Connection::send_data`], which has not taken all; the most urgent first. To be called
    /// when the output is sent and when bytes were received; `None`: nobody may.
    pub fn next_writable(&mut self) -> Option<u32> {
        self.has_writable().then(|| self.streams.grant())?
    }

    /// Keeps other streams that are not more urgent from sending, until [`Connection::end_turn`]: the embedding sends what waits on
    /// this one, because [`Connection::next_writable`] has said so.
    pub fn begin_turn(&mut self, stream: u32) {
        self.streams.holder = Some(stream);
    }

    /// The same for a stream that sends of itself, if its priority keeps others waiting and none that is as urgent has the turn. `false`: it sends what
    /// it can beside them.
    pub fn take_turn(&mut self, stream: u32) -> bool {
        let takes = self.streams.may_hold(stream) && self.streams.keeps_others(stream);
        if takes {
            self.begin_turn(stream);
        }
        takes
    }

    /// Ends a turn. `has_more`: the stream waits for another one.
    pub fn end_turn(&mut self, stream: u32, has_more: bool) {
        self.streams.holder.take_if(|holder| *holder == stream);
        if let Some(state) = self.streams.get(stream) {
            state.is_granted = false;
            if has_more {
                self.streams.queue(stream);
            }
        }
    }

    /// Whether [`Connection::next_writable`] would return a stream.
    pub fn has_writable(&self) -> bool {
        self.send_window > 0 && self.has_room() && self.failed.is_none() && self.streams.may_grant()
    }

    /// Why a stream cannot send now; `None`: it can, or it is gone.
    ///
    /// A client that opens no window holds up memory and a request; the embedding limits how long.
    pub fn wait(&self, stream: u32) -> Option<Wait> {
        let state = self.streams.peek(stream)?;
        if state.send_window <= 0 {
            Some(Wait::StreamWindow)
        } else if self.send_window <= 0 {
            Some(Wait::ConnectionWindow)
        } else if !self.has_room() {
            Some(Wait::Output)
        } else {
            self.streams.is_preceded(stream).then_some(Wait::Turn)
        }
    }

    /// Whether a stream whose window is open waits for others.
    pub fn waits_for_turn(&self, stream: u32) -> bool {
        self.streams.peek(stream).is_some_and(|state| state.send_window > 0) && self.streams.is_preceded(stream)
    }

    fn has_room(&self) -> bool {
        self.output.len() - self.gone < Options::OUTPUT
    }

    /// Bytes of content that [`Connection::send_data`] takes of a stream now.
    pub fn room(&self, stream: u32) -> usize {
        self.room_in_frames(stream, CONTENT)
    }

    /// The same if a frame holds so much.
    fn room_in_frames(&self, stream: u32, frame: usize) -> usize {
        let Some(state) = self.streams.peek(stream) else { return 0 };
        if !self.has_room() || self.streams.is_preceded(stream) {
            return 0;
        }
        let window = state.send_window.min(self.send_window).max(0) as usize;
        let turn = match self.streams.shares_turns(stream) {
            true => frame,
            false => Options::OUTPUT - (self.output.len() - self.gone),
        };
        window.min(turn)
    }

    fn check(&self, stream: u32, expected: Sending) -> Result<(), Unsent> {
        match self.streams.peek(stream).map(|state| state.sending) {
            _ if self.failed.is_some() => Err(Unsent::Gone),
            Some(sending) if sending == expected => Ok(()),
            Some(Sending::Head | Sending::Content) => Err(Unsent::State),
            Some(Sending::Reset) | None => Err(Unsent::Gone),
        }
    }

    /// Writes a header block with its frames.
    fn push_block<'a>(
        &mut self,
        stream: u32,
        status: Option<u16>,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        ends: bool,
    ) {
        let start = self.output.len();
        let out = &mut self.output;
        out.extend_from_slice(&[0; HEADER]);
        self.encoder.begin(out);
        if let Some(status) = status {
            self.encoder.status(out, status);
        }
        for (name, value) in fields {
            let mut short = [0; SHORT_NAME];
            let long;
            let name = match short.get_mut(..name.len()) {
                Some(short) => {
                    short.copy_from_slice(name);
                    short.make_ascii_lowercase();
                    &*short
                }
                None => {
                    long = name.to_ascii_lowercase();
                    &long
                }
            };
            if !is_about_connection(name) {
                self.encoder.field(out, name, value.trim_ascii());
            }
        }
        frame::wrap_block(out, start, stream, ends, Options::FRAME);
    }

    /// The response is complete. What the client still sends is not needed (section 8.1).
    fn end(&mut self, stream: u32) {
        let Some(state) = self.streams.get(stream) else { return };
        let (fault, has_all) = (state.fault, state.receiving == Receiving::Ended);
        self.forget_content(stream);
        if fault.is_none() {
            self.budget.response();
        }
        match (fault, has_all) {
            (None, true) => self.streams.remove(stream, Closed::Complete),
            (fault, _) => {
                self.push_reset(stream, fault.unwrap_or(ErrorCode::NoError));
                self.streams.remove(stream, Closed::ByServer);
            }
        }
    }
}

/// The fields of lines of HTTP/1.1. A line without a colon has no name, and is refused.
fn fields_of(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    let lines = lines.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty()).map(|line| {
        let (name, rest) = line.split_at(line.iter().position(|&byte| byte == b':').unwrap_or(0));
        (name, rest.get(1..).unwrap_or_default())
    })
}

/// Whether a field can be sent: an intermediary may write it as HTTP/1.1.
fn is_valid((name, value): (&[u8], &[u8])) -> bool {
    is_token(name) && is_field_value(value)
}

/// Fields that describe a connection of HTTP/1.1.
fn is_about_connection(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade")
}
