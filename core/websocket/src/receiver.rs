//! State machine of what a client sends: frames to messages (RFC 6455 sections 5 and 8.1).

use std::mem;
use std::ops::Range;

use crate::deflate::Decompressor;
use crate::extension::Compression;
use crate::failure::Failure;
use crate::frame::{Header, LONGEST_HEADER, Opcode, decode_close, unmask};

/// Bytes of memory that a message keeps for the next one.
const KEPT: usize = 4 << 10;

/// Bytes for which there is room before they have come.
const RESERVED: u64 = 128 << 10;

/// Something that a client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A message.
    Text(&'a str),
    /// A message.
    Binary(&'a [u8]),
    /// To be answered by a pong with the same payload.
    Ping(&'a [u8]),
    /// The answer to a ping.
    Pong(&'a [u8]),
    /// Code and reason of a Close frame. Nothing follows.
    Close(u16, &'a str),
}

/// A message of which not all frames have come.
#[derive(Clone, Copy, Debug)]
struct Message {
    is_text: bool,
    is_compressed: bool,
}

/// Where a payload that is complete lies.
enum Place {
    Input(Range<usize>),
    Kept,
}

/// Memory of which the caller has got a slice, and which is not needed any more.
#[derive(Debug, Default)]
enum Returned {
    #[default]
    Nothing,
    Content,
    Control,
}

/// What has become complete.
enum Complete {
    Control(Opcode, Place),
    Message(bool, Place),
}

/// A receiver of one WebSocket. After a failure or a Close frame, nothing more is given to it.
#[derive(Debug)]
pub struct Receiver {
    /// Bytes of the largest message, decompressed.
    most: usize,
    decompressor: Option<Decompressor>,
    /// Bytes of a header that is not complete.
    partial: [u8; LONGEST_HEADER],
    partial_length: usize,
    /// The frame whose payload comes, and how much of that is still to come.
    frame: Option<(Header, u64)>,
    /// The message that it belongs to, or that its next frame belongs to.
    message: Option<Message>,
    /// What has come of the message.
    content: Vec<u8>,
    /// How much of it is known to be UTF-8.
    checked: usize,
    /// What has come of the payload of a control frame.
    control: Vec<u8>,
    returned: Returned,
}

impl Receiver {
    /// Takes messages of up to `most` bytes.
    pub fn new(most: usize, compression: Option<&Compression>) -> Self {
        Receiver {
            most,
            decompressor: compression.map(Decompressor::new),
            partial: [0; LONGEST_HEADER],
            partial_length: 0,
            frame: None,
            message: None,
            content: Vec::new(),
            checked: 0,
            control: Vec::new(),
            returned: Returned::Nothing,
        }
    }

    /// Takes bytes up to the end of the next message or control frame, and returns how many; masks are removed from them. `None`:
    /// all were taken, and more are needed.
    pub fn receive<'a>(&'a mut self, input: &'a mut [u8]) -> Result<(usize, Option<Event<'a>>), Failure> {
        self.release();
        let (used, complete) = self.advance(input)?;
        let Some(complete) = complete else { return Ok((used, None)) };
        self.returned = match complete {
            Complete::Message(_, Place::Kept) => Returned::Content,
            Complete::Control(_, Place::Kept) => Returned::Control,
            Complete::Message(..) | Complete::Control(..) => Returned::Nothing,
        };
        let event = match complete {
            Complete::Message(is_text, place) => {
                let content = match place {
                    Place::Input(range) => &input[range],
                    Place::Kept => &self.content[..],
                };
                match is_text {
                    true => Event::Text(std::str::from_utf8(content).map_err(|_| Failure::NOT_UTF8)?),
                    false => Event::Binary(content),
                }
            }
            Complete::Control(opcode, place) => {
                let payload = match place {
                    Place::Input(range) => &input[range],
                    Place::Kept => &self.control[..],
                };
                match opcode {
                    Opcode::Ping => Event::Ping(payload),
                    Opcode::Pong => Event::Pong(payload),
                    _ => decode_close(payload).map(|(code, reason)| Event::Close(code, reason))?,
                }
            }
        };
        Ok((used, Some(event)))
    }

    /// Releases the memory of the message that was returned last; the next call of `receive` does, too.
    pub fn release(&mut self) {
        match mem::take(&mut self.returned) {
            Returned::Nothing => {}
            Returned::Control => self.control.clear(),
            Returned::Content => {
                self.content.clear();
                self.content.shrink_to(KEPT);
            }
        }
    }

    fn advance(&mut self, input: &mut [u8]) -> Result<(usize, Option<Complete>), Failure> {
        let mut at = 0;
        loop {
            let (header, left) = match self.frame {
                Some(frame) => frame,
                None => {
                    let (used, header) = self.take_header(&input[at..])?;
                    at += used;
                    let Some(header) = header else { return Ok((at, None)) };
                    self.begin(&header)?;
                    (header, header.length)
                }
            };
            let room = input.len() - at;
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(room);
            let range = at..at + length;
            at += length;
            unmask(&mut input[range.clone()], header.mask);
            let left = left - length as u64;
            self.frame = None;
            if left > 0 {
                let mut header = header;
                header.mask.rotate_left(length % 4);
                self.frame = Some((header, left));
            }
            let is_complete = left == 0;
            if header.opcode.is_control() {
                if is_complete && self.control.is_empty() {
                    return Ok((at, Some(Complete::Control(header.opcode, Place::Input(range)))));
                }
                self.control.extend_from_slice(&input[range]);
                if is_complete {
                    return Ok((at, Some(Complete::Control(header.opcode, Place::Kept))));
                }
                return Ok((at, None));
            }
            let Some(message) = self.message else { return Err(Failure::protocol("no message was begun")) };
            let is_end = is_complete && header.is_last;
            if is_end {
                self.message = None;
            }
            if is_end && self.content.is_empty() && !message.is_compressed {
                return Ok((at, Some(Complete::Message(message.is_text, Place::Input(range)))));
            }
            self.add(message, &input[range], left, is_end)?;
            if is_end {
                self.checked = 0;
                return Ok((at, Some(Complete::Message(message.is_text, Place::Kept))));
            }
            if !is_complete {
                return Ok((at, None));
            }
        }
    }

    /// Takes the bytes of a header; returns how many. `None`: it is not complete.
    fn take_header(&mut self, input: &[u8]) -> Result<(usize, Option<Header>), Failure> {
        let may_compress = self.decompressor.is_some();
        let before = self.partial_length;
        if before == 0
            && let Some((header, used)) = Header::decode(input, may_compress)?
        {
            return Ok((used, Some(header)));
        }
        let taken = input.len().min(LONGEST_HEADER - before);
        self.partial[before..before + taken].copy_from_slice(&input[..taken]);
        match Header::decode(&self.partial[..before + taken], may_compress)? {
            Some((header, used)) => {
                self.partial_length = 0;
                Ok((used - before, Some(header)))
            }
            None => {
                self.partial_length = before + taken;
                Ok((taken, None))
            }
        }
    }

    /// Checks a frame against those before it.
    fn begin(&mut self, header: &Header) -> Result<(), Failure> {
        let is_compressed = match (header.opcode, &self.message) {
            (Opcode::Close | Opcode::Ping | Opcode::Pong, _) => return Ok(()),
            (Opcode::Continuation, None) => return Err(Failure::protocol("no message was begun")),
            (Opcode::Continuation, Some(message)) => message.is_compressed,
            (Opcode::Text | Opcode::Binary, Some(_)) => {
                return Err(Failure::protocol("a message begins within another one"));
            }
            (opcode, None) => {
                let is_text = opcode == Opcode::Text;
                self.message = Some(Message { is_text, is_compressed: header.is_compressed });
                header.is_compressed
            }
        };
        if !is_compressed && header.length > (self.most - self.content.len()) as u64 {
            return Err(Failure::TOO_BIG);
        }
        Ok(())
    }

    /// Adds a part of a message, of whose frame so many bytes are still to come.
    fn add(&mut self, message: Message, part: &[u8], left: u64, is_end: bool) -> Result<(), Failure> {
        match &mut self.decompressor {
            Some(decompressor) if message.is_compressed => {
                decompressor.add(part, &mut self.content, self.most)?;
                if is_end {
                    decompressor.end(&mut self.content, self.most)?;
                }
            }
            _ => {
                self.content.reserve(part.len() + left.min(RESERVED) as usize);
                self.content.extend_from_slice(part);
            }
        }
        // At the end all of it is looked at.
        if message.is_text && !is_end {
            match std::str::from_utf8(&self.content[self.checked..]) {
                Ok(_) => self.checked = self.content.len(),
                Err(error) if error.error_len().is_none() => self.checked += error.valid_up_to(),
                Err(_) => return Err(Failure::NOT_UTF8),
            }
        }
        Ok(())
    }
}
