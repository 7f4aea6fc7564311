//! A client of HTTP/2 with its own account of windows, streams and fields, which learns of the server's steps when it reads.

use std::collections::BTreeMap;

use poorhttp_http2::{Decoder, Encoder};

use super::embedding::Embedding;
use super::{Fields, content};
use crate::session::{self, frame, literals};

/// A window never exceeds this.
const MOST: i64 = (1 << 31) - 1;

/// A request and its response.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// The fields that the server gets; `None`: the request is not the model's.
    pub(super) fields: Fields,
    /// Content-Length.
    announced: Option<usize>,
    /// Bytes of content sent, and those that the server still takes.
    pub(super) sent: usize,
    send_window: i64,
    /// The client has ended its side, or left.
    pub(super) has_ended: bool,
    pub(super) was_reset: bool,
    /// Bytes that the client has allowed, and content that has come.
    granted: i64,
    arrived: usize,
    pub(super) status: Option<u16>,
    /// The response is complete, or the server has reset the stream.
    pub(super) is_complete: bool,
    pub(super) reset: Option<u32>,
}

impl Exchange {
    /// Whether frames may be sent on it.
    fn is_open(&self) -> bool {
        !self.has_ended && self.is_awaited()
    }

    /// Whether the client still expects something.
    fn is_awaited(&self) -> bool {
        !self.was_reset && self.reset.is_none() && !(self.is_complete && self.has_ended)
    }
}

pub(super) struct Client {
    /// Bytes on the way to the server, and those of an incomplete frame from it.
    pub(super) upstream: Vec<u8>,
    downstream: Vec<u8>,
    encoder: Encoder,
    decoder: Decoder,
    pub(super) streams: BTreeMap<u32, Exchange>,
    send_window: i64,
    granted: i64,
    /// What a stream begins with: by the server's settings, and by the client's.
    initial_window: i64,
    initial_grant: i64,
    most_streams: usize,
    /// Frames sent and their acknowledgements.
    pub(super) settings: usize,
    pub(super) acks: usize,
    pub(super) pings: usize,
    pub(super) pongs: usize,
    /// No stream may begin after GOAWAY; the last one that the server takes.
    leaves: bool,
    last_taken: u32,
    /// The error that has ended the connection.
    pub(super) failed: Option<u32>,
    /// A step was against the rules.
    pub(super) breaks_rules: bool,
}

impl Default for Client {
    fn default() -> Self {
        Client {
            upstream: Vec::new(),
            downstream: Vec::new(),
            encoder: Encoder::new(4096),
            decoder: Decoder::new(4096),
            streams: BTreeMap::new(),
            send_window: 65_535,
            granted: 65_535,
            initial_window: 65_535,
            initial_grant: 65_535,
            most_streams: usize::MAX,
            settings: 0,
            acks: 0,
            pings: 0,
            pongs: 0,
            leaves: false,
            last_taken: u32::MAX,
            failed: None,
            breaks_rules: false,
        }
    }
}

impl Client {
    /// One of the last streams.
    pub(super) fn choose(&self, choice: usize) -> u32 {
        self.streams.keys().rev().nth(choice % 8).or(self.streams.keys().next()).copied().unwrap_or(1)
    }

    /// The number of the next stream.
    pub(super) fn next_number(&self) -> u32 {
        self.streams.keys().next_back().map_or(1, |last| last + 2)
    }

    /// Begins a request: GET or HEAD, or POST with content. `number` says which fields it has and how its frames are made.
    pub(super) fn begin(&mut self, has_content: bool, choice: usize, number: usize) {
        let open = self.streams.values().filter(|exchange| exchange.is_awaited()).count();
        if self.leaves || open >= self.most_streams || self.streams.len() >= 200 {
            return;
        }
        let stream = self.next_number() + 2 * (choice as u32 & 1);
        let method = match (has_content, number & 1) {
            (true, _) => "POST",
            (false, 0) => "GET",
            (false, _) => "HEAD",
        };
        let announced = (has_content && number & 2 != 0).then_some(number >> 8);
        let mut own: Vec<(&str, String)> = vec![];
        own.extend(announced.map(|length| ("content-length", length.to_string())));
        if number & 4 != 0 {
            let incremental = if choice & 8 != 0 { ", i" } else { "" };
            own.push(("priority", format!("u={}{incremental}", choice % 8)));
        }
        own.push((["x-a", "x-b", "accept", "user-agent"][choice % 4], "v".repeat(number >> 9)));
        let cookies =
            if number & 8 != 0 { vec![("cookie", "a=1".to_owned()), ("cookie", "b".to_owned())] } else { vec![] };
        let pseudo = [(":method", method), (":scheme", "http"), (":path", "/a"), (":authority", "a")]
            .map(|(n, v)| (n, v.to_owned()));
        let bytes = |(name, value): &(&str, String)| (name.as_bytes().to_vec(), value.clone().into_bytes());
        let list: Fields = pseudo.iter().chain(&cookies).chain(&own).map(bytes).collect();
        let list = list.iter().map(|(name, value)| (&name[..], &value[..]));
        let block = if number & 16 != 0 { literals(list) } else { self.encoder.encode_block(list) };
        let mut fields: Fields = [("host", "a".to_owned())].iter().chain(&own).map(bytes).collect();
        if !cookies.is_empty() {
            fields.push((b"cookie".to_vec(), b"a=1; b".to_vec()));
        }
        self.push_block(stream, &block, !has_content, number >> 5);
        self.streams.insert(
            stream,
            Exchange {
                fields,
                announced,
                send_window: self.initial_window,
                has_ended: !has_content,
                granted: self.initial_grant,
                ..Exchange::default()
            },
        );
    }

    /// Sends a header block: with padding, a priority of RFC 7540, or in several frames.
    fn push_block(&mut self, stream: u32, block: &[u8], ends: bool, how: usize) {
        let mut flags = u8::from(ends);
        let mut first = vec![];
        if how & 1 != 0 {
            flags |= 8;
            first.push(3);
        }
        if how & 2 != 0 {
            flags |= 0x20;
            first.extend_from_slice(&[0, 0, 0, 0, 15]);
        }
        let cut = if how & 4 != 0 { block.len() / 2 } else { block.len() };
        let padding: &[u8] = if how & 1 != 0 { &[0; 3] } else { &[] };
        let whole = if how & 4 != 0 { 0 } else { 4 };
        let payload = [&first[..], &block[..cut], padding].concat();
        self.upstream.extend(frame(session::HEADERS, flags | whole, stream, &payload));
        if how & 4 != 0 {
            self.upstream.extend(frame(session::CONTINUATION, 0, stream, b""));
            self.upstream.extend(frame(session::CONTINUATION, 4, stream, &block[cut..]));
        }
    }

    /// Sends content, as much as the windows and Content-Length allow.
    pub(super) fn send(&mut self, stream: u32, number: usize, is_padded: bool, ends: bool) {
        let Some(exchange) = self.streams.get_mut(&stream).filter(|exchange| exchange.is_open()) else { return };
        let padding = if is_padded { 1 + number % 256 } else { 0 };
        let room = exchange.send_window.min(self.send_window).min(16_384) - padding as i64;
        if room < 0 {
            return;
        }
        let left = exchange.announced.map(|announced| announced - exchange.sent);
        let length = number.min(room as usize).min(left.unwrap_or(usize::MAX));
        let ends = ends && left.is_none_or(|left| left == length);
        exchange.has_ended = ends;
        let total = (length + padding) as i64;
        exchange.send_window -= total;
        self.send_window -= total;
        let mut payload = content(stream, exchange.sent, length);
        exchange.sent += length;
        if is_padded {
            payload.insert(0, (padding - 1) as u8);
            payload.resize(length + padding, 0);
        }
        let flags = u8::from(ends) | if is_padded { 8 } else { 0 };
        self.upstream.extend(frame(session::DATA, flags, stream, &payload));
    }

    /// Ends a request with trailers, if its content is complete.
    pub(super) fn send_trailers(&mut self, stream: u32, number: usize) {
        let Some(exchange) = self.streams.get_mut(&stream).filter(|exchange| exchange.is_open()) else { return };
        if exchange.announced.is_some_and(|announced| announced != exchange.sent) {
            return;
        }
        exchange.has_ended = true;
        let block = self.encoder.encode_block([(&b"x-trailer"[..], &b"t"[..])]);
        self.push_block(stream, &block, true, number);
    }

    pub(super) fn reset(&mut self, stream: u32) {
        if let Some(exchange) = self.streams.get_mut(&stream).filter(|exchange| exchange.is_awaited()) {
            exchange.was_reset = true;
            self.upstream.extend(frame(session::RST_STREAM, 0, stream, &[0, 0, 0, 8]));
        }
    }

    /// Allows the server more: on a stream, or on the connection.
    pub(super) fn open_window(&mut self, stream: u32, number: usize) {
        let grant = match self.streams.get_mut(&stream) {
            Some(exchange) if exchange.is_awaited() => &mut exchange.granted,
            None if stream == 0 => &mut self.granted,
            _ => return,
        };
        let increment = number as i64;
        if increment > 0 && *grant + increment <= MOST {
            *grant += increment;
            self.upstream.extend(frame(session::WINDOW_UPDATE, 0, stream, &(increment as u32).to_be_bytes()));
        }
    }

    pub(super) fn settings(&mut self, settings: &[(u16, u32)]) {
        let payload =
            settings.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        self.settings += 1;
        self.upstream.extend(frame(session::SETTINGS, 0, 0, &payload.collect::<Vec<_>>()));
    }

    pub(super) fn change_settings(&mut self, choice: usize, number: usize) {
        let change = number as i64 - self.initial_grant;
        let may_change = self.streams.values().all(|exchange| exchange.granted + change <= MOST);
        match choice % 4 {
            0 if may_change => {
                self.initial_grant += change;
                self.streams.values_mut().for_each(|exchange| exchange.granted += change);
                self.settings(&[(4, number as u32)]);
            }
            1 => self.settings(&[(1, number as u32 % 4097)]),
            2 => self.settings(&[(5, 16_384 + number as u32), (1, 100), (1, number as u32 % 4097)]),
            _ => self.settings(&[(99, number as u32), (6, 65_536), (9, 1), (2, 0), (3, 100)]),
        }
    }

    /// Frames that change no state.
    pub(super) fn send_other(&mut self, choice: usize, stream: u32, number: usize) {
        let bytes = match choice % 3 {
            0 => {
                let value = format!("u={}{}", number % 8, if number & 8 != 0 { ", i" } else { "" });
                frame(16, 0, 0, &[&stream.to_be_bytes()[..], value.as_bytes()].concat())
            }
            1 => frame(2, 0, stream, &[0, 0, 0, 0, 15]),
            _ => frame(200, number as u8, stream, &vec![0; number % 300]),
        };
        self.upstream.extend(bytes);
    }

    pub(super) fn ping(&mut self, number: usize) {
        self.pings += 1;
        self.upstream.extend(frame(session::PING, 0, 0, &(number as u64).to_be_bytes()));
    }

    pub(super) fn leave(&mut self) {
        self.leaves = true;
        self.upstream.extend(frame(session::GOAWAY, 0, 0, &[0; 8]));
    }

    /// Opens all windows; whether any was not open.
    pub(super) fn open_windows(&mut self, keeps_rules: bool) -> bool {
        let most = 1 << 22;
        let closed: Vec<u32> = self
            .streams
            .iter()
            .filter(|(_, exchange)| exchange.is_awaited() && exchange.granted < most)
            .map(|(stream, _)| *stream)
            .chain((self.granted < most).then_some(0))
            .collect();
        if keeps_rules {
            closed.iter().for_each(|stream| self.open_window(*stream, 2 * most as usize));
        }
        keeps_rules && !closed.is_empty()
    }

    /// Bytes that the client may send on the connection, and on a stream.
    pub(super) fn windows(&self, stream: u32) -> [i64; 2] {
        [self.send_window, self.streams[&stream].send_window]
    }

    /// Sends the rest of all requests, or leaves their streams.
    pub(super) fn finish(&mut self) {
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            while self.streams[&stream].is_open() {
                let before = self.streams[&stream].sent;
                self.send(stream, 10_000, false, true);
                if self.streams[&stream].sent == before {
                    break;
                }
            }
        }
    }

    /// The client reads bytes of the server.
    pub(super) fn receive(&mut self, bytes: &[u8], embedding: &mut Embedding) {
        self.downstream.extend_from_slice(bytes);
        let whole = std::mem::take(&mut self.downstream);
        let (frames, rest) = session::split(&whole);
        self.downstream = rest.to_vec();
        for frame in frames {
            self.note(&frame, embedding);
        }
    }

    fn note(&mut self, received: &session::Frame, embedding: &mut Embedding) {
        let session::Frame { kind, flags, stream, payload } = received;
        let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four bytes"));
        let ends = flags & 1 != 0;
        match *kind {
            session::SETTINGS if ends => self.acks += 1,
            session::SETTINGS => {
                for at in (0..payload.len()).step_by(6) {
                    let value = number(at + 2);
                    match payload[at + 1] {
                        3 => self.most_streams = value as usize,
                        4 => {
                            let change = i64::from(value) - self.initial_window;
                            self.initial_window += change;
                            self.streams.values_mut().for_each(|exchange| exchange.send_window += change);
                        }
                        _ => {}
                    }
                }
                self.upstream.extend(frame(session::SETTINGS, 1, 0, b""));
            }
            session::PING if ends => self.pongs += 1,
            session::PING => self.upstream.extend(frame(session::PING, 1, 0, payload)),
            session::WINDOW_UPDATE if *stream == 0 => self.send_window += i64::from(number(0)),
            session::GOAWAY => {
                assert!(number(0) <= self.last_taken, "a GOAWAY with a later stream");
                self.last_taken = number(0);
                self.leaves = true;
                self.failed = Some(number(4)).filter(|code| *code != 0);
            }
            _ => self.note_on_stream(received, embedding),
        }
    }

    fn note_on_stream(&mut self, received: &session::Frame, embedding: &mut Embedding) {
        let session::Frame { kind, flags, stream, payload } = received;
        let mut fields: Fields = Vec::new();
        if *kind == session::HEADERS {
            let field = |name: &[u8], value: &[u8]| fields.push((name.to_vec(), value.to_vec()));
            self.decoder.decode(payload, true, field).expect("a header block");
        }
        // The request may be one that the input has made.
        if self.breaks_rules {
            self.streams.entry(*stream).or_default();
        }
        let exchange = self.streams.get_mut(stream).expect("a stream of the client");
        let is_over = exchange.is_complete || exchange.reset.is_some();
        let ends = flags & 1 != 0;
        match *kind {
            session::HEADERS => {
                assert!(!is_over, "HEADERS after the end of {stream}");
                assert_eq!(embedding.next_head(*stream), fields);
                if let Some(status) = fields[0].0.starts_with(b":").then(|| &fields[0].1) {
                    let status = std::str::from_utf8(status).expect("digits").parse().expect("a status");
                    assert!(exchange.status.is_none() && (status >= 200 || !ends));
                    exchange.status = Some(status).filter(|status| *status >= 200);
                } else {
                    assert!(exchange.status.is_some() && ends);
                }
            }
            session::DATA => {
                assert!(!is_over && exchange.status.is_some(), "DATA after the end of {stream}");
                assert!(*payload == content(*stream, exchange.arrived, payload.len()), "other content on {stream}");
                exchange.arrived += payload.len();
                exchange.granted -= payload.len() as i64;
                self.granted -= payload.len() as i64;
            }
            session::RST_STREAM => {
                exchange.reset.get_or_insert(u32::from_be_bytes(payload[..].try_into().expect("four bytes")));
                return;
            }
            _ => {
                let increment = u32::from_be_bytes(payload[..].try_into().expect("four bytes"));
                assert!(!is_over, "a window of a stream that is over");
                exchange.send_window += i64::from(increment);
                assert!(self.breaks_rules || exchange.send_window <= embedding.most_window(*stream) as i64);
                return;
            }
        }
        exchange.is_complete |= ends;
        if exchange.is_complete {
            embedding.check_complete(*stream, exchange.arrived);
        }
    }

    /// Each request has come to an end, but those that the server has said that it does not take.
    pub(super) fn check_ends(&self) {
        for (stream, exchange) in &self.streams {
            let is_over = exchange.is_complete || exchange.reset.is_some() || exchange.was_reset;
            assert!(is_over || *stream > self.last_taken, "{stream}: {exchange:?}");
        }
    }
}
