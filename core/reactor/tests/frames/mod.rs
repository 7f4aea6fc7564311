//! A protocol with streams for tests, and its client: frames of a kind, a stream, a length and a payload.
//!
//! ```text
//! client: H head without content   h head with content   D content   E end   R reset   W room for content (a number)
//! server: H head                   D content   E end   R reset   W room for content   G goes away
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use poorhttp_http::{Event, Limits, ReadBuffer, RequestParser, Version};
use poorhttp_reactor::{Multiplexing, StreamEvent, StreamProtocol, StreamRequest};

use crate::timeouts::HANG;

/// Bytes that each side may send on a stream before the other has made room.
pub(crate) const WINDOW: usize = 64 << 10;
/// Bytes of output that may wait.
const OUTPUT: usize = 128 << 10;
const HEADER: usize = 9;

fn push(out: &mut Vec<u8>, kind: u8, stream: u32, payload: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    out.extend_from_slice(payload);
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().unwrap())
}

/// The server's side.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    limits: Limits,
    input: Vec<u8>,
    /// Content that is still to come of a frame, and its stream.
    content: (u32, usize),
    output: Vec<u8>,
    /// Room of each stream that has not ended its response.
    rooms: BTreeMap<u32, usize>,
    /// Streams of which not all content was taken.
    blocked: VecDeque<u32>,
    goes_away: bool,
}

pub(crate) fn multiplexing() -> Multiplexing {
    let make = |limits: &Limits| Box::new(Frames { limits: limits.clone(), ..Frames::default() }) as Box<_>;
    Multiplexing { make: Arc::new(make), preface: b"H", limit_unsent: |_, _| {} }
}

impl Frames {
    fn request<'a>(&mut self, stream: u32, text: &[u8], has_content: bool) -> StreamEvent<'a> {
        self.rooms.insert(stream, WINDOW);
        let mut buffer = ReadBuffer::default();
        buffer.room(text.len() as u64)[..text.len()].copy_from_slice(text);
        buffer.received(text.len());
        match RequestParser::default().poll(&mut buffer, &self.limits) {
            Event::Head => {
                let mut head = buffer.head.clone();
                head.version = Version::Http2;
                let text = buffer.head_bytes().to_vec();
                StreamEvent::Request(Box::new(StreamRequest { stream, head, text, has_content }))
            }
            Event::Rejected(reject) => {
                StreamEvent::Refused { stream, reject, line: buffer.first_line(usize::MAX).to_vec() }
            }
            other => panic!("{other:?}"),
        }
    }
}

impl StreamProtocol for Frames {
    fn receive<'a>(&mut self, bytes: &mut &'a [u8]) -> StreamEvent<'a> {
        loop {
            let (stream, left) = self.content;
            if left > 0 {
                let (content, rest) = bytes.split_at(bytes.len().min(left));
                *bytes = rest;
                self.content.1 -= content.len();
                match content {
                    [] => return StreamEvent::NeedMore,
                    bytes => return StreamEvent::Content { stream, bytes },
                }
            }
            let is_content = self.input.first() == Some(&b'D');
            let wanted = match self.input.get(5..) {
                Some(length) if length.len() >= 4 && !is_content => HEADER + number(length) as usize,
                _ => HEADER,
            };
            let (more, rest) = bytes.split_at(bytes.len().min(wanted.saturating_sub(self.input.len())));
            self.input.extend_from_slice(more);
            *bytes = rest;
            if self.input.len() < wanted {
                return StreamEvent::NeedMore;
            }
            if !is_content && self.input[0] != b'D' && wanted == HEADER && number(&self.input[5..]) > 0 {
                continue;
            }
            let frame = std::mem::take(&mut self.input);
            let (kind, stream, payload) = (frame[0], number(&frame[1..]), &frame[HEADER..]);
            match kind {
                b'H' | b'h' => return self.request(stream, payload, kind == b'h'),
                b'D' => self.content = (stream, number(&frame[5..]) as usize),
                b'E' => return StreamEvent::Ended { stream },
                b'R' => {
                    self.rooms.remove(&stream);
                    return StreamEvent::Reset { stream };
                }
                b'W' => {
                    if let Some(room) = self.rooms.get_mut(&stream) {
                        *room += number(payload) as usize;
                    }
                }
                _ => {
                    push(&mut self.output, b'G', 0, b"unknown");
                    return StreamEvent::Failed("an unknown frame".into());
                }
            }
        }
    }

    fn wants_input(&self) -> bool {
        self.output.len() < 2 * OUTPUT
    }

    fn consumed(&mut self, stream: u32, bytes: u32) {
        push(&mut self.output, b'W', stream, &bytes.to_be_bytes());
    }

    fn widen(&mut self, _stream: u32) {}

    fn send_head(&mut self, stream: u32, status: u16, fields: &[u8], ends: bool) -> bool {
        let head = [format!("{status}\r\n").as_bytes(), fields].concat();
        push(&mut self.output, b'H', stream, &head);
        let is_open = self.rooms.contains_key(&stream);
        if ends {
            self.send_data(stream, b"", true);
        }
        is_open
    }

    fn send_data(&mut self, stream: u32, content: &[u8], ends: bool) -> Option<usize> {
        let room = self.rooms.get_mut(&stream)?;
        let taken = content.len().min(*room).min(OUTPUT.saturating_sub(self.output.len()));
        *room -= taken;
        if taken > 0 {
            push(&mut self.output, b'D', stream, &content[..taken]);
        }
        if taken < content.len() && !self.blocked.contains(&stream) {
            self.blocked.push_back(stream);
        } else if ends && taken == content.len() {
            push(&mut self.output, b'E', stream, b"");
            self.rooms.remove(&stream);
        }
        Some(taken)
    }

    fn send_trailers(&mut self, stream: u32, _: &[u8]) -> bool {
        self.send_data(stream, b"", true).is_some()
    }

    fn begin_data(&mut self, stream: u32, most: usize) -> usize {
        let length = self.room(stream).min(most);
        if length > 0 {
            push(&mut self.output, b'D', stream, &[]);
            let at = self.output.len() - 4;
            self.output[at..].copy_from_slice(&(length as u32).to_be_bytes());
            *self.rooms.entry(stream).or_default() -= length;
        }
        length
    }

    fn push_content(&mut self, content: &[u8]) {
        self.output.extend_from_slice(content);
    }

    fn room(&self, stream: u32) -> usize {
        let room = self.rooms.get(&stream).copied().unwrap_or_default();
        room.min(OUTPUT.saturating_sub(self.output.len()))
    }

    fn next_writable(&mut self) -> Option<u32> {
        let has_room = self.output.len() < OUTPUT;
        let next =
            self.blocked.iter().position(|stream| has_room && self.rooms.get(stream).is_none_or(|room| *room > 0));
        next.and_then(|next| self.blocked.remove(next))
    }

    fn take_turn(&mut self, _stream: u32) -> bool {
        false
    }

    fn end_input(&mut self) {}

    fn end_turn(&mut self, stream: u32, has_more: bool) {
        if has_more {
            self.blocked.push_back(stream);
        }
    }

    fn has_writable(&self) -> bool {
        let may_send = |stream| self.rooms.get(stream).is_none_or(|room| *room > 0);
        self.output.len() < OUTPUT && self.blocked.iter().any(may_send)
    }

    fn close(&mut self, stream: u32) {
        if self.rooms.remove(&stream).is_some() {
            push(&mut self.output, b'R', stream, b"");
        }
    }

    fn waits_for_turn(&self, stream: u32) -> bool {
        self.rooms.get(&stream).is_some_and(|room| *room > 0)
    }

    fn cancel(&mut self, stream: u32) {
        self.close(stream);
    }

    fn pass(&mut self, _seconds: u32) {}

    fn take_resets(&mut self) -> [u32; 2] {
        [0; 2]
    }

    fn is_mid_frame(&self) -> bool {
        !self.input.is_empty() || self.content.1 > 0
    }

    fn output(&self) -> &[u8] {
        &self.output
    }

    fn sent(&mut self, bytes: usize) {
        self.output.drain(..bytes);
    }

    fn begin_shutdown(&mut self) {
        if !std::mem::replace(&mut self.goes_away, true) {
            push(&mut self.output, b'G', 0, b"");
        }
    }

    fn finish_shutdown(&mut self) {}

    fn is_finished(&self) -> bool {
        false
    }
}

/// A frame that a client has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: char,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// A client.
pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(stream)
    }

    pub(crate) fn send(&mut self, kind: char, stream: u32, payload: &[u8]) {
        let mut frame = Vec::new();
        push(&mut frame, kind as u8, stream, payload);
        self.0.write_all(&frame).unwrap();
    }

    pub(crate) fn get(&mut self, stream: u32, path: &str) {
        self.send('H', stream, format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    }

    pub(crate) fn post(&mut self, stream: u32, path: &str) {
        self.send('h', stream, format!("POST {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    }

    pub(crate) fn make_room(&mut self, stream: u32, bytes: usize) {
        self.send('W', stream, &(bytes as u32).to_be_bytes());
    }

    /// The next frame; none at the end of the connection.
    pub(crate) fn frame(&mut self) -> Option<Frame> {
        let mut header = [0; HEADER];
        match self.0.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return None,
            Err(error) => panic!("a frame has to come: {error}"),
        }
        let mut payload = vec![0; number(&header[5..]) as usize];
        self.0.read_exact(&mut payload).unwrap();
        Some(Frame { kind: char::from(header[0]), stream: number(&header[1..]), payload })
    }

    /// The next frame that is not about room.
    pub(crate) fn next(&mut self) -> Frame {
        loop {
            let frame = self.frame().expect("the connection has ended");
            if frame.kind != 'W' {
                return frame;
            }
        }
    }

    /// Status and content of the response on this stream, of which nothing has come; what comes for others is not expected.
    pub(crate) fn response(&mut self, stream: u32) -> (u16, Vec<u8>) {
        let head = self.next();
        assert_eq!((head.kind, head.stream), ('H', stream), "{head:?}");
        let status = std::str::from_utf8(&head.payload[..3]).unwrap().parse().unwrap();
        (status, self.content(stream))
    }

    /// The rest of the content on this stream. Makes room as it comes.
    pub(crate) fn content(&mut self, stream: u32) -> Vec<u8> {
        let mut content = Vec::new();
        loop {
            let frame = self.next();
            assert_eq!(frame.stream, stream, "{}", frame.kind);
            match frame.kind {
                'D' => content.extend_from_slice(&frame.payload),
                'E' => return content,
                other => panic!("{other} instead of content"),
            }
            self.make_room(stream, frame.payload.len());
        }
    }
}
