//! Fuzz targets `http2` and `http2_calls`: connections of HTTP/2.

use std::collections::BTreeMap;
use std::sync::Arc;

use poorhttp_http2::{Connection, Decoder, ErrorCode, Event, Options, PREFACE};

use crate::requests::{limits, pieces};
use crate::session::{self, frame, frames};

/// Options that a short input reaches, and the default ones.
fn options() -> [Options; 2] {
    let [default, narrow] = limits();
    let narrow = Options { limits: narrow, streams: 3, resets: 4, frames: 20, ..Options::default() };
    [Options { limits: default, ..Options::default() }, narrow]
}

/// What has come of some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    events: Vec<String>,
    output: Vec<u8>,
}

/// Receives the bytes of a client after its preface. Four bytes before them are the sizes of the pieces.
pub fn http2(bytes: &[u8]) {
    let Some((sizes, bytes)) = bytes.split_first_chunk::<4>() else { return };
    for options in options() {
        let whole = receive(&options, [&PREFACE[..], bytes].into_iter());
        // The result does not depend on how the bytes are split.
        let one_by_one = receive(&options, PREFACE.chunks(1).chain(bytes.chunks(1)));
        assert_eq!(one_by_one, whole);
        assert_eq!(receive(&options, [&PREFACE[..]].into_iter().chain(pieces(bytes, sizes))), whole);
        check_output(&whole.output);
    }
}

/// Answers each request according to the number of its stream.
fn receive<'a>(options: &Options, parts: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let mut connection = Connection::new(Arc::new(options.clone()));
    let mut outcome = Outcome::default();
    let mut content: BTreeMap<u32, usize> = BTreeMap::new();
    let mut failed = false;
    for mut part in parts {
        loop {
            let event = connection.receive(&mut part);
            assert!(connection.streams() <= options.streams as usize);
            assert!(!failed || matches!(event, Event::Failed(_)), "an event after a failure: {event:?}");
            let answered = match &event {
                Event::NeedMore => break,
                Event::Request(request) => {
                    check_head(&request.text, options);
                    content.insert(request.stream, 0);
                    (request.stream % 3 == 0 || !request.has_content).then_some((request.stream, 200))
                }
                Event::Content { stream, bytes } => {
                    assert!(!bytes.is_empty());
                    let seen = content.get_mut(stream).expect("content of a request");
                    *seen += bytes.len();
                    assert!(*seen as u64 <= options.limits.body);
                    None
                }
                Event::Ended { stream } => {
                    content.remove(stream).expect("the end of a request");
                    Some((*stream, 200))
                }
                Event::Refused { stream, reject, .. } => {
                    content.remove(stream);
                    Some((*stream, reject.status))
                }
                Event::Reset { stream, .. } => {
                    content.remove(stream);
                    if stream % 4 == 1 {
                        connection.close(*stream);
                    }
                    None
                }
                Event::Failed(_) => None,
            };
            let is_failure = matches!(event, Event::Failed(_));
            // Content may come in several pieces.
            match (&event, outcome.events.last_mut()) {
                (Event::Content { stream, bytes }, last) => {
                    let before = last.and_then(|last| last.strip_prefix(&format!("content {stream} "))?.parse().ok());
                    if before.is_some() {
                        outcome.events.pop();
                    }
                    outcome.events.push(format!("content {stream} {}", before.unwrap_or(0) + bytes.len()));
                }
                (event, _) if !failed => outcome.events.push(session::described(event)),
                _ => {}
            }
            failed |= is_failure;
            if let Some((stream, status)) = answered {
                content.remove(&stream);
                let field = (&b"X-Answer"[..], &b"yes"[..]);
                if connection.send_head(stream, status, [field], stream % 5 == 0).is_ok() {
                    let sent = connection.send_data(stream, &[b'a'; 20][..stream as usize % 20], true);
                    if !matches!(sent, Ok(sent) if sent == stream as usize % 20) {
                        connection.reset(stream, ErrorCode::Cancel);
                    }
                }
                connection.close(stream);
            }
            if is_failure {
                break;
            }
        }
        outcome.output.extend(connection.take_output());
    }
    outcome
}

/// A head is text of HTTP/1.1: lines without control characters, within the limits.
fn check_head(text: &[u8], options: &Options) {
    assert!(text.len() <= options.limits.head && text.ends_with(b"\r\n\r\n"));
    let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    for line in &lines[..lines.len() - 1] {
        let line = line.strip_suffix(b"\r").expect("a line end");
        assert!(line.iter().all(|&byte| byte == b'\t' || byte >= b' ' && byte != 0x7f));
    }
    assert!(lines[0].ends_with(b" HTTP/2.0\r") && lines[0].iter().filter(|&&byte| byte == b' ').count() == 2);
}

/// The output is frames; nothing follows the end of a stream but its reset, and nothing the end of the connection.
fn check_output(output: &[u8]) {
    let mut decoder = Decoder::new(4096);
    let mut ended: Vec<u32> = Vec::new();
    let mut is_over = false;
    for frame in frames(output) {
        assert!(!is_over && frame.payload.len() <= 16_384, "{frame:?}");
        match frame.kind {
            session::HEADERS => {
                assert!(frame.flags & 4 != 0);
                let mut fields = Vec::new();
                decoder.decode(&frame.payload, true, |name, _| fields.push(name.to_vec())).expect("a header block");
                assert_eq!(fields[0], b":status");
            }
            session::GOAWAY => is_over = frame.payload[4..8] != [0; 4],
            _ => {}
        }
        if matches!(frame.kind, session::DATA | session::HEADERS) {
            assert!(!ended.contains(&frame.stream), "{frame:?}");
            if frame.flags & 1 != 0 {
                ended.push(frame.stream);
            }
        }
    }
}

/// A stream of the model.
#[derive(Debug, Default)]
struct Stream {
    /// Bytes that the server may send, and those that the client may.
    send_window: i64,
    receive_window: i64,
    /// Content of the response that is to be sent, and that has come.
    offered: usize,
    sent: usize,
    arrived: usize,
    unconsumed: usize,
    has_head: bool,
    /// The client has ended its side; the response has ended; the stream was reset.
    is_ended: bool,
    is_complete: bool,
    is_reset: bool,
}

/// A client that keeps the rules, and an embedding.
struct Model {
    connection: Connection,
    streams: BTreeMap<u32, Stream>,
    send_window: i64,
    receive_window: i64,
    initial_window: i64,
    last: u32,
}

/// Calls both sides of a connection in any order: each step is an operation, a stream and a number.
pub fn http2_calls(bytes: &[u8]) {
    let options = Options { resets: u32::MAX, frames: u32::MAX, stream_window: 65_535, ..Options::default() };
    let mut model = Model {
        connection: Connection::new(Arc::new(Options { connection_window: 65_535, ..options })),
        streams: BTreeMap::new(),
        send_window: 65_535,
        receive_window: 65_535,
        initial_window: 65_535,
        last: 0,
    };
    model.feed(&[&PREFACE[..], &frame(session::SETTINGS, 0, 0, b"")].concat());
    for step in bytes.chunks_exact(4) {
        let &[operation, stream, high, low] = step else { break };
        model.step(operation % 14, 1 + 2 * u32::from(stream % 8), u16::from_be_bytes([high, low]));
    }
    model.finish();
}

impl Model {
    /// One operation.
    fn step(&mut self, operation: u8, choice: u32, number: u16) {
        // One of the streams that exist.
        let stream = self.streams.keys().rev().nth(choice as usize / 2).copied().unwrap_or(1);
        let is_open = self.streams.get(&stream).is_some_and(|state| !state.is_reset && !state.is_complete);
        match operation {
            0 | 1 if self.streams.len() < 200 => {
                let stream = self.last + choice + (1 - choice % 2) + if self.last == 0 { 0 } else { 1 };
                self.last = stream;
                let priority = format!("u={}{}", number % 8, if number & 8 != 0 { ", i" } else { "" });
                let fields: [(&[u8], &[u8]); 5] = [
                    (b":method", b"POST"),
                    (b":scheme", b"http"),
                    (b":path", b"/"),
                    (b":authority", b"a"),
                    (b"priority", priority.as_bytes()),
                ];
                let state = Stream {
                    send_window: self.initial_window,
                    receive_window: 65_535,
                    is_ended: operation == 1,
                    ..Stream::default()
                };
                self.streams.insert(stream, state);
                self.feed(&frame(session::HEADERS, 4 | operation, stream, &session::literals(fields)));
            }
            2 | 3 if is_open => {
                let state = self.streams.get_mut(&stream).expect("open");
                let room = state.receive_window.min(self.receive_window).clamp(0, 16_384) as usize;
                let length = usize::from(number).min(room);
                if state.is_ended || length == 0 {
                    return;
                }
                state.receive_window -= length as i64;
                self.receive_window -= length as i64;
                state.unconsumed += length;
                state.is_ended = operation == 3;
                self.feed(&frame(session::DATA, operation - 2, stream, &vec![0; length]));
            }
            4 if is_open && number < 8_000 => {
                self.streams.get_mut(&stream).expect("open").is_reset = true;
                self.feed(&frame(session::RST_STREAM, 0, stream, &[0, 0, 0, 8]));
            }
            5 if number > 0 => {
                self.send_window += i64::from(number);
                self.feed(&frame(session::WINDOW_UPDATE, 0, 0, &u32::from(number).to_be_bytes()));
            }
            6 if is_open && number > 0 => {
                self.streams.get_mut(&stream).expect("open").send_window += i64::from(number);
                self.feed(&frame(session::WINDOW_UPDATE, 0, stream, &u32::from(number).to_be_bytes()));
            }
            7 => self.resize(number.into()),
            8 if is_open => {
                if self.connection.send_head(stream, 200, [], false).is_ok() {
                    self.streams.get_mut(&stream).expect("open").has_head = true;
                }
                self.collect();
            }
            9 if is_open => {
                let state = self.streams.get_mut(&stream).expect("open");
                // More content only after all that was offered before.
                if state.has_head && state.offered == state.sent {
                    state.offered += usize::from(number);
                    self.send(stream);
                }
            }
            10 => {
                let many = u32::from(number);
                if let Some(state) = self.streams.get_mut(&stream) {
                    state.unconsumed -= state.unconsumed.min(number.into());
                }
                self.connection.consumed(stream, many);
                self.collect();
            }
            11 if number < 8_000 => {
                if is_open {
                    self.streams.get_mut(&stream).expect("open").is_reset = true;
                }
                self.connection.close(stream);
                self.collect();
            }
            12 => self.go_on(),
            13 if is_open => {
                let state = &self.streams[&stream];
                if state.has_head && state.offered == state.sent {
                    self.connection.send_data(stream, b"", true).expect("the end");
                    self.collect();
                }
            }
            _ => {}
        }
    }

    fn resize(&mut self, window: i64) {
        let change = window - self.initial_window;
        self.initial_window = window;
        self.streams.values_mut().for_each(|state| state.send_window += change);
        let payload = [&[0, 4][..], &(window as u32).to_be_bytes()].concat();
        self.feed(&frame(session::SETTINGS, 0, 0, &payload));
    }

    /// Offers what is left of a response.
    fn send(&mut self, stream: u32) {
        let state = self.streams.get_mut(&stream).expect("a stream");
        let rest = state.offered - state.sent;
        match self.connection.send_data(stream, &vec![1; rest], false) {
            Ok(sent) => state.sent += sent,
            Err(unsent) => assert!(state.is_reset, "{unsent:?}"),
        }
        self.collect();
    }

    /// Whoever may sends on.
    fn go_on(&mut self) {
        while let Some(stream) = self.connection.next_writable() {
            let before = self.streams[&stream].sent;
            self.send(stream);
            // A stream whose turn it is gets further.
            assert!(self.streams[&stream].sent > before);
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            match self.connection.receive(&mut rest) {
                Event::NeedMore => break,
                // A client that keeps the rules makes no error.
                event @ (Event::Failed(_) | Event::Refused { .. } | Event::Reset { reason: Some(_), .. }) => {
                    panic!("{event:?}")
                }
                _ => {}
            }
        }
        self.collect();
    }

    /// Counts what has been sent: never more than the windows allow.
    fn collect(&mut self) {
        for frame in frames(&self.connection.take_output()) {
            let state = self.streams.get_mut(&frame.stream);
            match (frame.kind, state) {
                (session::DATA, Some(state)) => {
                    let length = frame.payload.len();
                    self.send_window -= length as i64;
                    state.send_window -= length as i64;
                    state.arrived += length;
                    assert!(length == 0 || state.send_window >= 0 && self.send_window >= 0, "over a window");
                    assert!(!state.is_complete);
                    state.is_complete = frame.flags & 1 != 0;
                }
                (session::WINDOW_UPDATE, state) => {
                    let many = i64::from(u32::from_be_bytes(frame.payload[..4].try_into().expect("four bytes")));
                    match state {
                        Some(state) => state.receive_window += many,
                        None if frame.stream == 0 => self.receive_window += many,
                        None => {}
                    }
                }
                _ => {}
            }
        }
    }

    /// With windows that are open, all that was offered is sent; with all content consumed, the client may send again.
    fn finish(&mut self) {
        self.resize(1 << 30);
        self.send_window += 1 << 29;
        self.feed(&frame(session::WINDOW_UPDATE, 0, 0, &(1_u32 << 29).to_be_bytes()));
        self.go_on();
        let streams: Vec<u32> = self.streams.keys().copied().collect();
        for stream in streams {
            self.connection.consumed(stream, u32::MAX);
            self.collect();
            let state = &self.streams[&stream];
            assert!(state.is_reset || state.arrived == state.offered, "{stream}: {state:?}");
            assert!(state.is_reset || state.is_complete || state.is_ended || state.receive_window >= 32_767);
            self.connection.close(stream);
        }
        self.collect();
        assert!(self.receive_window >= 32_767 && self.connection.streams() == 0);
    }
}
