//! Parser of the bytes that an application sends after a protocol upgrade: response status, WebSocket frames.
//!
//! The server must know where a frame ends, to be able to add a Close frame (RFC 6455 section 5.5.1) when it stops.

/// Bytes after which a head that has not ended is none.
const LONGEST_HEAD: u64 = 64 << 10;
/// Bytes of the longest header of a frame.
const LONGEST_HEADER: usize = 14;
const OPCODE_CLOSE: u8 = 8;

/// Position in what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// In the head of the answer; so many bytes of CRLF CRLF have come.
    Head { matched: u8 },
    /// In the header of a frame, of which so many bytes have come; 0: between two frames.
    Header { bytes: [u8; LONGEST_HEADER], length: u8 },
    /// In the payload of a frame, of which so much is to come.
    Payload { left: u64 },
    /// Behind a Close frame.
    Closed,
    /// The protocol is not known, or some of it was not seen.
    Unknown,
}

const BETWEEN: Position = Position::Header { bytes: [0; LONGEST_HEADER], length: 0 };

/// The bytes of one connection, as far as they have been sent.
#[derive(Debug)]
pub struct SentBytes {
    position: Position,
    is_websocket: bool,
    /// The first bytes, up to the status.
    line: [u8; 12],
    head: u64,
    total: u64,
}

impl SentBytes {
    /// Nothing was sent yet. `is_websocket`: the client has asked for that.
    pub fn new(is_websocket: bool) -> Self {
        SentBytes { position: Position::Head { matched: 0 }, is_websocket, line: [0; 12], head: 0, total: 0 }
    }

    /// Bytes that were sent.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of the head of the answer.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The status of the answer, if it has one.
    pub fn status(&self) -> Option<u16> {
        let digits =
            self.line.strip_prefix(b"HTTP/1.")?.strip_prefix(b"1 ").or(self.line.strip_prefix(b"HTTP/1.0 "))?;
        digits.iter().try_fold(0, |status, digit| digit.is_ascii_digit().then(|| status * 10 + u16::from(digit - b'0')))
    }

    /// Whether a frame may be added here.
    pub fn may_add_frame(&self) -> bool {
        self.position == BETWEEN
    }

    /// Whether a frame can be added later: a handshake is still to come, or a frame is not complete.
    pub fn will_have_frames(&self) -> bool {
        match self.position {
            Position::Head { .. } => self.is_websocket,
            Position::Header { .. } | Position::Payload { .. } => true,
            Position::Closed | Position::Unknown => false,
        }
    }

    /// Whether a Close frame was sent.
    pub fn is_closed(&self) -> bool {
        self.position == Position::Closed
    }

    /// More may have been sent than was seen.
    pub fn lose_track(&mut self) {
        self.position = Position::Unknown;
    }

    /// Counts bytes of whole frames, which need not be seen.
    pub fn add_frames(&mut self, bytes: u64) {
        self.total += bytes;
    }

    /// Adds bytes that were sent.
    pub fn add(&mut self, mut bytes: &[u8]) {
        let begun = usize::try_from(self.total).unwrap_or(usize::MAX);
        if let Some(room) = self.line.get_mut(begun..) {
            room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        }
        self.total += bytes.len() as u64;
        while !bytes.is_empty() {
            let taken = self.take(bytes);
            bytes = &bytes[taken..];
        }
    }

    /// Takes some of the bytes; returns how many.
    fn take(&mut self, bytes: &[u8]) -> usize {
        match &mut self.position {
            Position::Head { matched } => {
                let mut taken = 0;
                for &byte in bytes {
                    taken += 1;
                    *matched = match (byte, *matched) {
                        (b'\r', 2) => 3,
                        (b'\r', _) => 1,
                        (b'\n', before @ (1 | 3)) => before + 1,
                        _ => 0,
                    };
                    if *matched == 4 {
                        break;
                    }
                }
                self.head += taken as u64;
                if *matched == 4 {
                    let has_frames = self.is_websocket && self.status() == Some(101);
                    self.position = if has_frames { BETWEEN } else { Position::Unknown };
                } else if self.head > LONGEST_HEAD {
                    self.position = Position::Unknown;
                }
                taken
            }
            Position::Header { bytes: header, length } => {
                header[usize::from(*length)] = bytes[0];
                *length += 1;
                let header = &header[..usize::from(*length)];
                if let Some(left) = payload(header) {
                    self.position = match left {
                        _ if header[0] & 0xf == OPCODE_CLOSE => Position::Closed,
                        0 => BETWEEN,
                        left => Position::Payload { left },
                    };
                }
                1
            }
            Position::Payload { left } => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                if *left == 0 {
                    self.position = BETWEEN;
                }
                taken
            }
            Position::Closed | Position::Unknown => bytes.len(),
        }
    }
}

/// The length of the payload (RFC 6455 section 5.2); none if the header is not complete.
fn payload(header: &[u8]) -> Option<u64> {
    let second = *header.get(1)?;
    let (extended, mask) = (header.get(2..)?, usize::from(second >> 7) * 4);
    let (length, extra) = match second & 0x7f {
        126 => (extended.first_chunk().map(|bytes| u16::from_be_bytes(*bytes).into()), 2),
        127 => (extended.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)), 8),
        short => (Some(short.into()), 0),
    };
    length.filter(|_| extended.len() == extra + mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDSHAKE: &[u8] = b"HTTP/1.1 101 \r\nUpgrade: websocket\r\n\r\n";

    /// All ways to split it in two give the same end.
    fn sent(is_websocket: bool, bytes: &[u8]) -> SentBytes {
        let mut whole = SentBytes::new(is_websocket);
        whole.add(bytes);
        for at in 0..=bytes.len() {
            let mut parts = SentBytes::new(is_websocket);
            parts.add(&bytes[..at]);
            parts.add(&bytes[at..]);
            let of = |sent: &SentBytes| (sent.position, sent.status(), sent.head, sent.total);
            assert_eq!(of(&parts), of(&whole), "{at}");
        }
        whole
    }

    fn behind(frames: &[u8]) -> SentBytes {
        sent(true, &[HANDSHAKE, frames].concat())
    }

    #[test]
    fn a_frame_fits_between_two() {
        let accepted = behind(b"");
        assert_eq!((accepted.status(), accepted.head() as usize), (Some(101), HANDSHAKE.len()));
        assert!(accepted.may_add_frame());
        for frame in [
            &b"\x81\x00"[..],
            b"\x81\x05hello",
            b"\x89\x00\x01\x02no",
            &[&b"\x82\x7e\x01\x00"[..], &[7; 256]].concat(),
            &[&b"\x82\x7f\0\0\0\0\0\x01\0\0"[..], &[7; 65_536]].concat(),
            b"\x81\x82abcdhi",
        ] {
            let (complete, cut) = (behind(frame), behind(&frame[..frame.len() - 1]));
            assert!(complete.may_add_frame(), "{:?}", &frame[..2]);
            assert!(!cut.may_add_frame() && cut.will_have_frames(), "{:?}", &frame[..2]);
        }
    }

    #[test]
    fn nothing_follows_a_close_frame() {
        let closed = behind(b"\x88\x02\x03\xe8");
        assert!(closed.is_closed() && !closed.may_add_frame() && !closed.will_have_frames());
    }

    #[test]
    fn other_protocols_have_no_frames() {
        for (is_websocket, bytes, status) in [
            (false, HANDSHAKE, Some(101)),
            (true, b"HTTP/1.1 400 Bad Request\r\n\r\n", Some(400)),
            (true, b"HTTP/1.0 200 OK\r\n\r\n\x81\x00", Some(200)),
            (true, b"220 smtp\r\n\r\n", None),
            (true, b"HTTP/1.1 x01 \r\n\r\n", None),
        ] {
            let other = sent(is_websocket, bytes);
            assert!(!other.may_add_frame() && !other.will_have_frames(), "{status:?}");
            assert_eq!(other.status(), status);
        }
        assert_eq!(SentBytes::new(true).status(), None);
        assert!(SentBytes::new(true).will_have_frames() && !SentBytes::new(false).will_have_frames());
    }

    #[test]
    fn what_was_not_seen_is_not_guessed() {
        let mut sent = behind(b"");
        sent.lose_track();
        sent.add(b"\x81\x00");
        assert!(!sent.may_add_frame() && !sent.will_have_frames());
    }
}
