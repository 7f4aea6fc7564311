//! Fuzz target `http2_session`: a whole session of HTTP/2, between a client and an embedding of a connection.
//!
//! ```text
//! client.rs      a client with its own account of windows, streams and fields
//! embedding.rs   a server that answers when the input says so
//! wire.rs        what the connection knows: windows, table of fields, frames in both directions
//! ```
//!
//! The input chooses what either side does next and how many bytes reach the other side. Most steps keep the rules. After a step that
//! breaks them, only what holds for any client is checked.

mod client;
mod embedding;
mod wire;

use std::sync::Arc;

use poorhttp_http2::{Connection, Event, Options, PREFACE};

use crate::requests::limits;
use crate::session::{self, frame};
use client::Client;
use embedding::Embedding;
use wire::Wire;

/// Names and values.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Bytes of output that no step exceeds if the connection is not read from [`Connection::wants_input`] on.
const MOST_OUTPUT: usize = 4 * Options::OUTPUT;

/// Bytes that the server has not read yet, from which on the client says nothing more.
const MOST_INPUT: usize = 256 * 1024;

/// The byte at a position of the content of a stream.
fn content(stream: u32, from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(|at| (at as u32 * 7 + stream) as u8).collect()
}

/// Runs the steps of an input, of four bytes each: an operation, a stream and a number. Then both sides end what they have begun.
pub fn http2_session(bytes: &[u8]) {
    let Some((kind, mut steps)) = bytes.split_first() else { return };
    let [default, narrow] = limits();
    let most = default.body;
    let mut options = Options { limits: default, ..Options::default() };
    if kind & 1 != 0 {
        options = Options { limits: narrow, streams: 3, resets: 4, frames: 20, ..options };
    }
    // Windows that a session fills.
    let windows = [None, Some((65_535, 65_535)), Some((100_000, 150_000)), Some((65_535, 300_000))];
    if let Some((stream_window, connection_window)) = windows[usize::from(kind >> 1 & 3)] {
        options = Options { stream_window, connection_window, ..options };
        options.limits.body = most;
    }
    let mut session = Session::new(options);
    while let Some((&[operation, stream, high, low], rest)) = steps.split_first_chunk::<4>() {
        let number = u16::from_be_bytes([high, low]);
        steps = session.step(operation % 36, stream.into(), number.into(), rest);
        session.check();
    }
    session.finish();
}

struct Session {
    options: Options,
    connection: Connection,
    client: Client,
    embedding: Embedding,
    wire: Wire,
}

impl Session {
    fn new(options: Options) -> Self {
        let mut client = Client::default();
        client.upstream.extend_from_slice(PREFACE);
        client.settings(&[]);
        Session {
            connection: Connection::new(Arc::new(options.clone())),
            client,
            embedding: Embedding::default(),
            wire: Wire::new(),
            options,
        }
    }

    /// Whether requests of the model are within all limits.
    fn is_wide(&self) -> bool {
        self.options.streams > 3
    }

    /// One operation. Returns the rest of the input: some operations take more of it.
    fn step<'a>(&mut self, operation: u8, choice: usize, number: usize, rest: &'a [u8]) -> &'a [u8] {
        let (client, connection) = (&mut self.client, &mut self.connection);
        let stream = client.choose(choice);
        if client.upstream.len() > MOST_INPUT && !(12..=26).contains(&operation) && operation < 32 {
            return rest;
        }
        match operation {
            0 | 1 => client.begin(operation == 1, choice, number),
            2 | 3 => client.send(stream, number, choice & 0x80 != 0, operation == 3),
            4 => client.send_trailers(stream, number),
            5 => client.reset(stream),
            6 => client.open_window(stream, number),
            7 => client.open_window(0, number),
            8 => client.change_settings(choice, number),
            9 => client.send_other(choice, stream, number),
            10 => client.ping(number),
            11 => client.leave(),
            12..=20 => self.embedding.step(connection, operation, choice, number, &self.options),
            21..=23 => self.deliver(number),
            24 | 25 => self.read(number),
            26 => {
                self.deliver(usize::MAX);
                self.read(usize::MAX);
            }
            // The rules are broken from here on.
            27 | 28 => {
                let (payload, rest) = rest.split_at((number % 64).min(rest.len()));
                client.breaks_rules = true;
                match operation {
                    27 => {
                        let [kind, flags] = [choice % 18, number >> 8];
                        client.upstream.extend(frame(kind as u8, flags as u8, stream, payload));
                    }
                    _ => client.upstream.extend_from_slice(payload),
                }
                return rest;
            }
            29 if !client.upstream.is_empty() => {
                client.breaks_rules = true;
                let at = number % client.upstream.len();
                client.upstream[at] ^= choice as u8;
            }
            30 => {
                let (block, rest) = rest.split_at((number % 128).min(rest.len()));
                client.breaks_rules = true;
                let next = client.next_number();
                client.upstream.extend(frame(session::HEADERS, 4 | choice as u8 & 1, next, block));
                return rest;
            }
            31 => {
                client.breaks_rules = true;
                client.upstream.extend(frame(session::DATA, choice as u8 & 1, stream, &vec![0; number % 16_385]));
            }
            32..=34 => self.embedding.step(connection, operation, choice, number, &self.options),
            35 => self.exchange(),
            _ => {}
        }
        rest
    }

    /// Bytes of the client reach the server, if it reads.
    fn deliver(&mut self, most: usize) {
        if !self.connection.wants_input() {
            return;
        }
        let piece: Vec<u8> = self.client.upstream.drain(..most.min(self.client.upstream.len())).collect();
        let mut bytes = &piece[..];
        loop {
            match self.connection.receive(&mut bytes) {
                Event::NeedMore => break,
                event => {
                    let has_failed = matches!(event, Event::Failed(_));
                    let is_wide = self.is_wide();
                    self.embedding.note(event, &self.client, is_wide, &self.options);
                    if has_failed {
                        break;
                    }
                }
            }
            assert!(self.connection.streams() <= self.options.streams as usize);
        }
        assert!(bytes.is_empty());
        self.wire.received(&piece);
        self.check();
        // More than a window allows is an error of the connection.
        assert!(self.wire.receive_window >= 0 || self.embedding.has_failed, "content over the window");
    }

    /// Bytes of the server reach the client.
    fn read(&mut self, most: usize) {
        let bytes = most.min(self.connection.output().len());
        self.check();
        self.client.receive(&self.connection.output()[..bytes], &mut self.embedding);
        self.connection.sent(bytes);
        self.wire.gone(bytes);
    }

    fn check(&mut self) {
        self.wire.check_output(self.connection.output());
        assert!(self.connection.output().len() <= MOST_OUTPUT, "{} bytes of output", self.connection.output().len());
        let may_come = self.wire.receive_window.max(0) as usize + self.embedding.unconsumed();
        let is_within = may_come <= self.embedding.most_unconsumed(&self.options);
        assert!(is_within || self.embedding.has_failed, "{may_come} bytes of content may come");
    }

    /// Everything is said and read.
    fn exchange(&mut self) {
        loop {
            self.read(usize::MAX);
            if self.client.upstream.is_empty() || self.embedding.has_failed {
                break;
            }
            self.deliver(usize::MAX);
        }
        if !self.client.breaks_rules && !self.embedding.has_failed {
            self.check_awaited();
        }
    }

    /// The client may send content that is awaited, unless as much waits as may.
    fn check_awaited(&self) {
        let is_full = self.embedding.unconsumed() + 2 * Options::FRAME > self.embedding.most_unconsumed(&self.options);
        for stream in self.embedding.awaited() {
            let [on_connection, on_stream] = self.client.windows(stream);
            assert!(is_full || on_connection > 0, "{stream} is awaited: {on_connection}");
            assert!(on_stream > 0 || self.connection.is_held(stream), "{stream} is awaited: {on_stream}");
        }
    }

    /// Both sides end what they have begun. Each stream that the server knows of ends.
    fn finish(mut self) {
        self.exchange();
        let keeps_rules = !self.client.breaks_rules;
        if keeps_rules {
            self.client.finish();
            self.exchange();
            self.embedding.consume(&mut self.connection);
            self.exchange();
            self.client.finish();
            self.exchange();
        }
        for _ in 0..2 {
            self.embedding.finish(&mut self.connection);
            loop {
                self.exchange();
                let windows_open = self.client.open_windows(keeps_rules);
                self.exchange();
                if !self.embedding.go_on(&mut self.connection, usize::MAX) && !windows_open {
                    break;
                }
            }
        }
        self.exchange();
        if self.embedding.has_failed {
            // The client is told why.
            assert!(self.client.failed.is_some() && self.connection.is_finished());
            return;
        }
        assert!(self.client.failed.is_none());
        if keeps_rules {
            self.client.check_ends();
            assert_eq!((self.client.acks, self.client.pongs), (self.client.settings, self.client.pings));
        }
        self.embedding.close_all(&mut self.connection, keeps_rules);
        self.exchange();
        self.embedding.check_ends(&self.client);
        assert_eq!(self.connection.streams(), 0);
        // No byte of the window is lost.
        self.wire.check_window(&self.options);
        self.connection.finish_shutdown();
        assert!(self.connection.is_finished());
    }
}
