//! What a connection of HTTP/2 knows from the frames that it has received, and what its output may be.

use std::collections::BTreeMap;

use poorhttp_http2::Options;

use crate::session;

/// The window of a connection and of each stream before any setting.
const WINDOW: i64 = 65_535;

pub(super) struct Wire {
    /// Bytes of an incomplete frame, and those of DATA that are still to come.
    input: Vec<u8>,
    rest_of_data: usize,
    preface: usize,
    /// Bytes that the server may send: on the connection, and by stream.
    send_window: i64,
    initial_window: i64,
    streams: BTreeMap<u32, i64>,
    last: u32,
    /// Bytes that the client may send.
    pub(super) receive_window: i64,
    /// The table of fields of the server: its size, and the smallest that was offered since the last block.
    table: usize,
    smallest: Option<usize>,
    offered: usize,
    /// Bytes of the output that are checked.
    checked: usize,
    is_over: bool,
}

impl Wire {
    pub(super) fn new() -> Self {
        Wire {
            input: Vec::new(),
            rest_of_data: 0,
            preface: 24,
            send_window: WINDOW,
            initial_window: WINDOW,
            streams: BTreeMap::new(),
            last: 0,
            receive_window: WINDOW,
            table: 4096,
            smallest: None,
            offered: 4096,
            checked: 0,
            is_over: false,
        }
    }

    /// The server has received these bytes.
    pub(super) fn received(&mut self, mut bytes: &[u8]) {
        let preface = self.preface.min(bytes.len());
        self.preface -= preface;
        bytes = &bytes[preface..];
        while !bytes.is_empty() {
            let skipped = self.rest_of_data.min(bytes.len());
            self.rest_of_data -= skipped;
            bytes = &bytes[skipped..];
            if let Some((byte, rest)) = bytes.split_first() {
                self.input.push(*byte);
                bytes = rest;
            }
            let [a, b, c, kind, flags, ..] = self.input[..] else { continue };
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if kind == session::DATA {
                // Content counts from its header and the length of its padding on.
                let before = length.min(usize::from(flags & 8 != 0));
                if self.input.len() == 9 + before {
                    self.receive_window -= length as i64;
                    self.rest_of_data = length - before;
                    self.input.clear();
                }
            } else if self.input.len() == 9 + length {
                for frame in session::frames(&std::mem::take(&mut self.input)) {
                    self.note(&frame);
                }
            }
        }
    }

    fn note(&mut self, frame: &session::Frame) {
        let stream = frame.stream & 0x7fff_ffff;
        let number = |at: usize| u32::from_be_bytes(frame.payload[at..at + 4].try_into().expect("four bytes"));
        match frame.kind {
            session::HEADERS if stream > self.last => {
                self.last = stream;
                self.streams.insert(stream, self.initial_window);
            }
            session::WINDOW_UPDATE if frame.payload.len() == 4 => {
                let window = if stream == 0 { Some(&mut self.send_window) } else { self.streams.get_mut(&stream) };
                if let Some(window) = window {
                    *window += i64::from(number(0) & 0x7fff_ffff);
                }
            }
            session::SETTINGS if frame.flags & 1 == 0 && frame.payload.len().is_multiple_of(6) => {
                for at in (0..frame.payload.len()).step_by(6) {
                    let value = number(at + 2);
                    match u16::from_be_bytes([frame.payload[at], frame.payload[at + 1]]) {
                        1 => {
                            self.offered = value as usize;
                            self.smallest = Some(self.smallest.map_or(self.offered, |size| size.min(self.offered)));
                        }
                        4 => {
                            let change = i64::from(value) - self.initial_window;
                            self.initial_window += change;
                            self.streams.values_mut().for_each(|window| *window += change);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// So many bytes of the output are gone.
    pub(super) fn gone(&mut self, bytes: usize) {
        self.checked -= bytes;
    }

    /// Checks what is new in the output.
    pub(super) fn check_output(&mut self, output: &[u8]) {
        let new = &output[self.checked..];
        self.checked = output.len();
        for frame in session::frames(new) {
            let session::Frame { kind, flags, stream, ref payload } = frame;
            // Nothing follows the end of the connection.
            assert!(!self.is_over && payload.len() <= Options::FRAME, "{frame:?}");
            match kind {
                session::DATA => {
                    let window = self.streams.get_mut(&stream).expect("a stream of the client");
                    *window -= payload.len() as i64;
                    self.send_window -= payload.len() as i64;
                    let is_within = *window >= 0 && self.send_window >= 0;
                    assert!(payload.is_empty() || is_within, "over a window");
                }
                session::HEADERS => {
                    assert!(flags & 4 != 0 && self.streams.contains_key(&stream), "{frame:?}");
                    self.check_table(payload);
                }
                session::RST_STREAM => assert!(stream <= self.last && stream % 2 == 1 && payload.len() == 4),
                session::WINDOW_UPDATE => {
                    let increment = u32::from_be_bytes(payload[..].try_into().expect("four bytes"));
                    assert!(increment > 0 && increment < 1 << 31);
                    if stream == 0 {
                        self.receive_window += i64::from(increment);
                    }
                }
                session::GOAWAY => self.is_over = payload[4..8] != [0; 4],
                session::SETTINGS | session::PING => assert_eq!(stream, 0),
                _ => panic!("{frame:?}"),
            }
        }
    }

    /// A header block begins with the size of its table if the client has offered less (RFC 7541 section 4.2).
    fn check_table(&mut self, block: &[u8]) {
        let mut at = 0;
        let mut sizes = Vec::new();
        while let Some(first @ 0x20..0x40) = block.get(at) {
            let mut size = usize::from(first & 0x1f);
            at += 1;
            let mut shift = 0;
            while size >= 31 {
                let byte = block[at];
                at += 1;
                size += usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            sizes.push(size);
        }
        if let Some(smallest) = self.smallest.take()
            && smallest < self.table
        {
            assert!(sizes.first().is_some_and(|size| *size <= smallest), "{sizes:?}: a table over {smallest}");
        }
        self.table = *sizes.last().unwrap_or(&self.table);
        assert!(sizes.len() <= 2 && self.table <= self.offered);
    }

    /// At the end the client may send at least half of what the connection allows.
    pub(super) fn check_window(&self, options: &Options) {
        let most = i64::from(options.connection_window);
        assert!(self.rest_of_data > 0 || self.receive_window > most / 2, "{} of {most}", self.receive_window);
    }
}
