//! The embedding of a connection of HTTP/2 for the fuzz target: its streams, what it has received on each and what it sends.

use std::collections::{BTreeMap, VecDeque};

use poorhttp_http2::{Connection, ErrorCode, Event, Options, Unsent};

use super::client::Client;
use super::{Fields, content};

/// A request that the server knows of, and its response.
#[derive(Debug, Default)]
struct Response {
    /// Bytes of content received, and those of them that still take memory.
    received: usize,
    unconsumed: usize,
    /// Bytes that may be unconsumed.
    window: usize,
    /// Content was awaited since the last came.
    is_awaited: bool,
    /// The request is complete, or nothing more of it comes.
    has_ended: bool,
    /// The client has left, or was in error.
    is_reset: bool,
    has_head: bool,
    /// Blocks of fields that the client has yet to read.
    heads: VecDeque<Fields>,
    /// Bytes of content that there are, and those that are sent.
    offered: usize,
    sent: usize,
    /// No more content is offered.
    ends: bool,
    /// The embedding has let go of the stream.
    is_over: bool,
}

impl Response {
    fn is_pending(&self) -> bool {
        !self.is_over && !self.is_reset && self.sent < self.offered
    }
}

/// The largest window of a stream whose content is not taken as it comes.
fn first_window(options: &Options) -> usize {
    options.stream_window.max(65_535) as usize
}

#[derive(Default)]
pub(super) struct Embedding {
    responses: BTreeMap<u32, Response>,
    pub(super) has_failed: bool,
    has_awaited: bool,
}

impl Embedding {
    /// Takes an event. A client that keeps the rules is never refused within the limits.
    pub(super) fn note(&mut self, event: Event<'_>, client: &Client, is_wide: bool, options: &Options) {
        // Nothing comes after a failure.
        assert!(!self.has_failed || matches!(event, Event::Failed(_)), "{event:?}");
        let is_exact = !client.breaks_rules;
        match event {
            Event::NeedMore => {}
            Event::Request(request) => {
                let stream = request.stream;
                let of = |span: poorhttp_http::Span| span.of(&request.text).to_vec();
                if is_exact {
                    let fields: Fields =
                        request.head.fields.iter().map(|field| (of(field.name), of(field.value))).collect();
                    assert_eq!(fields, client.streams[&stream].fields);
                }
                let response =
                    Response { has_ended: !request.has_content, window: first_window(options), ..Response::default() };
                assert!(self.responses.insert(stream, response).is_none(), "{stream} begins twice");
            }
            Event::Content { stream, bytes } => {
                let response = self.open(stream);
                assert!(!bytes.is_empty() && !response.is_over);
                assert!(!is_exact || bytes == content(stream, response.received, bytes.len()));
                response.received += bytes.len();
                response.unconsumed += bytes.len();
                response.is_awaited = false;
                assert!(response.unconsumed <= response.window, "{stream}: {response:?}");
                assert!(response.received as u64 <= options.limits.body);
            }
            Event::Ended { stream } => {
                let response = self.open(stream);
                response.has_ended = true;
                let received = response.received;
                assert!(
                    !is_exact || (received, true) == (client.streams[&stream].sent, client.streams[&stream].has_ended)
                );
            }
            Event::Refused { stream, reject, .. } => {
                assert!(!is_exact || !is_wide, "{stream}: {reject:?}");
                let refused = || Response { window: first_window(options), ..Response::default() };
                let response = self.responses.entry(stream).or_insert_with(refused);
                assert!(!response.has_ended && !response.is_over && !response.is_reset);
                response.has_ended = true;
            }
            Event::Reset { stream, reason, .. } => {
                assert!(!is_exact || !is_wide || reason.is_none() && client.streams[&stream].was_reset, "{reason:?}");
                let response = self.responses.get_mut(&stream).expect("a stream that has begun");
                assert!(!response.is_reset && !response.is_over);
                (response.is_reset, response.has_ended, response.unconsumed) = (true, true, 0);
            }
            Event::Failed(error) => {
                let is_calm = error.code == ErrorCode::EnhanceYourCalm;
                assert!(!is_exact || !is_wide && is_calm, "{error}");
                self.has_failed = true;
            }
        }
    }

    /// The stream of a request whose content comes.
    fn open(&mut self, stream: u32) -> &mut Response {
        let response = self.responses.get_mut(&stream).expect("a stream that has begun");
        assert!(!response.has_ended && !response.is_reset, "{response:?}");
        response
    }

    /// Bytes of content that are kept.
    pub(super) fn unconsumed(&self) -> usize {
        self.responses.values().map(|response| response.unconsumed).sum()
    }

    /// Bytes of content that may be kept: a frame for each stream more than the window of the connection, if content was awaited.
    pub(super) fn most_unconsumed(&self, options: &Options) -> usize {
        let lent = if self.has_awaited { options.streams as usize * Options::FRAME } else { 0 };
        options.connection_window as usize + lent
    }

    /// The streams whose content is awaited.
    pub(super) fn awaited(&self) -> impl Iterator<Item = u32> {
        let is_awaited = |response: &Response| response.is_awaited && !response.has_ended && !response.is_over;
        self.responses.iter().filter(move |(_, response)| is_awaited(response)).map(|(stream, _)| *stream)
    }

    /// Bytes that the client may ever send on a stream before any are consumed.
    pub(super) fn most_window(&self, stream: u32) -> usize {
        self.responses[&stream].window
    }

    /// One operation on one of the last streams.
    pub(super) fn step(
        &mut self,
        connection: &mut Connection,
        operation: u8,
        choice: usize,
        number: usize,
        options: &Options,
    ) {
        match operation {
            18 => _ = self.go_on(connection, 1 + number),
            19 if choice.is_multiple_of(2) => return connection.begin_shutdown(),
            19 => return connection.finish_shutdown(),
            20 if choice & 1 != 0 => return connection.pass(number as u32),
            _ => {}
        }
        let Some(stream) = self.responses.keys().rev().nth(choice / 2 % 8).copied() else { return };
        let Some(response) = self.responses.get_mut(&stream).filter(|response| !response.is_over) else { return };
        let is_idle = response.has_head && !response.ends && response.offered == response.sent;
        match operation {
            12 => self.send_head(connection, stream, [200, 404, 204, 503][number % 4], number),
            13 | 14 if is_idle => {
                response.offered += number;
                response.ends = operation == 14;
                self.send(connection, stream, usize::MAX);
            }
            15 if is_idle => {
                let trailers = [(&b"X-Trailer"[..], &b"t"[..])];
                if connection.send_trailers(stream, trailers).is_ok() {
                    response.heads.push_back(vec![(b"x-trailer".to_vec(), b"t".to_vec())]);
                    (response.ends, response.is_over, response.unconsumed) = (true, true, 0);
                }
            }
            16 => {
                // A part of a frame may have come: the rest of it cannot be consumed yet.
                let consumed = number.min(response.unconsumed);
                response.unconsumed -= consumed;
                connection.consumed(stream, consumed as u32);
            }
            17 => {
                match number % 2 {
                    0 => connection.close(stream),
                    _ => connection.reset(stream, ErrorCode::Cancel),
                }
                // A stream that was reset before is closed.
                connection.close(stream);
                (response.is_over, response.unconsumed) = (true, 0);
            }
            20 => self.send_head(connection, stream, 103, number & !1),
            32 => {
                response.window = response.window.max(options.connection_window as usize / 2);
                connection.widen(stream);
            }
            33 => _ = connection.check_hold(stream),
            34 if response.unconsumed == 0 => {
                (response.is_awaited, self.has_awaited) = (true, true);
                connection.await_content(stream);
            }
            _ => {}
        }
    }

    fn send_head(&mut self, connection: &mut Connection, stream: u32, status: u16, number: usize) {
        let Some(response) = self.responses.get_mut(&stream) else { return };
        let ends = number & 1 != 0;
        let long = "s".repeat(number >> 6);
        let all: [(&str, &str); 6] = [
            ("Server", "fuzz"),
            ("X-Long", &long),
            ("Connection", "close"),
            ("Set-Cookie", "a=b"),
            ("Priority", ["u=1", "u=7, i"][number / 16 % 2]),
            ("Content-Type", "text/plain"),
        ];
        let fields = all.into_iter().enumerate().filter(|(at, _)| number >> at & 2 != 0).map(|(_, field)| field);
        let as_bytes = fields.clone().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let sent = connection.send_head(stream, status, as_bytes, ends);
        match sent {
            Ok(()) => {
                assert!(!response.is_reset && !response.has_head && !self.has_failed);
                let status = (b":status".to_vec(), status.to_string().into_bytes());
                let others = fields.filter(|(name, _)| *name != "Connection");
                let others = others.map(|(name, value)| (name.to_ascii_lowercase().into_bytes(), value.into()));
                response.heads.push_back([status].into_iter().chain(others).collect());
                response.has_head = response.heads.back().is_some_and(|fields| fields[0].1 != b"103");
                (response.ends, response.is_over) = (ends, ends);
                response.unconsumed *= usize::from(!ends);
            }
            Err(Unsent::Gone) => assert!(response.is_reset || self.has_failed),
            Err(Unsent::State) => assert!(response.has_head),
            Err(Unsent::Invalid) => panic!("a good head"),
        }
    }

    /// Offers what is left of a response, at most so many bytes. `true`: it was taken.
    fn send(&mut self, connection: &mut Connection, stream: u32, most: usize) -> bool {
        let response = self.responses.get_mut(&stream).expect("a stream that has begun");
        let length = (response.offered - response.sent).min(most);
        let ends = response.ends && response.sent + length == response.offered;
        match connection.send_data(stream, &content(stream, response.sent, length), ends) {
            Ok(taken) => {
                assert!(taken <= length && !response.is_reset && !self.has_failed);
                response.sent += taken;
                if ends && taken == length {
                    (response.is_over, response.unconsumed) = (true, 0);
                }
                taken == length
            }
            Err(unsent) => {
                assert!(unsent == Unsent::Gone && (response.is_reset || self.has_failed));
                false
            }
        }
    }

    /// Sends what waits, in pieces and turns, as the connection says. `true`: something was sent.
    pub(super) fn go_on(&mut self, connection: &mut Connection, most: usize) -> bool {
        let mut has_sent = false;
        for _ in 0..100 {
            let Some(stream) = connection.next_writable() else { break };
            connection.begin_turn(stream);
            let before = self.responses[&stream].sent;
            assert!(self.responses[&stream].is_pending(), "the turn of a stream that has nothing to send");
            let mut is_taken = true;
            for _ in 0..3 {
                is_taken = is_taken && self.responses[&stream].is_pending() && self.send(connection, stream, most);
            }
            // A stream whose turn it is gets further.
            assert!(self.responses[&stream].sent > before);
            connection.end_turn(stream, is_taken && self.responses[&stream].is_pending());
            has_sent = true;
        }
        has_sent
    }

    /// All content takes no memory any more.
    pub(super) fn consume(&mut self, connection: &mut Connection) {
        for (stream, response) in &mut self.responses {
            connection.consumed(*stream, std::mem::take(&mut response.unconsumed) as u32);
        }
    }

    /// Completes all responses, as far as nothing waits to be sent.
    pub(super) fn finish(&mut self, connection: &mut Connection) {
        for stream in self.responses.keys().copied().collect::<Vec<_>>() {
            let response = &self.responses[&stream];
            if !response.is_over && !response.is_reset && !response.has_head {
                self.send_head(connection, stream, 200, 2);
            }
            let response = self.responses.get_mut(&stream).expect("a stream that has begun");
            if response.is_over || response.is_reset || response.is_pending() {
                response.ends = true;
                continue;
            }
            response.ends = true;
            self.send(connection, stream, 0);
        }
    }

    /// Lets go of all streams. With a client that keeps the rules, only those are left that it has reset.
    pub(super) fn close_all(&mut self, connection: &mut Connection, keeps_rules: bool) {
        for (stream, response) in self.responses.iter_mut().filter(|(_, response)| !response.is_over) {
            assert!(response.is_reset || !keeps_rules, "{stream}: {response:?}");
            connection.close(*stream);
            (response.is_over, response.unconsumed) = (true, 0);
        }
    }

    /// The next block of fields that the client reads on a stream.
    pub(super) fn next_head(&mut self, stream: u32) -> Fields {
        let response = self.responses.get_mut(&stream).expect("a stream that has begun");
        response.heads.pop_front().expect("a head that was sent")
    }

    /// A client has got the end of a response with so many bytes of content.
    pub(super) fn check_complete(&self, stream: u32, arrived: usize) {
        let response = &self.responses[&stream];
        assert!(response.ends && response.offered == arrived, "{stream}: {arrived} bytes of {response:?}");
    }

    /// The client knows of each stream that it has ended.
    pub(super) fn check_ends(&self, client: &Client) {
        for (stream, response) in &self.responses {
            let exchange = client.streams.get(stream);
            let is_told = exchange.is_some_and(|exchange| exchange.is_complete || exchange.reset.is_some());
            assert!(is_told || response.is_reset, "{stream}: {response:?}");
        }
    }
}
