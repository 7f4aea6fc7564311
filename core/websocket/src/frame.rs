//! Frame headers, the mask, Close frames (RFC 6455 section 5).

use crate::failure::{Failure, code};

/// Bytes of the longest header of a client: with a length of eight bytes and a mask.
pub(crate) const LONGEST_HEADER: usize = 14;
/// Bytes of the longest payload of a control frame.
pub(crate) const LONGEST_CONTROL: usize = 125;

const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const OTHER_RSV: u8 = 0x30;
const MASKED: u8 = 0x80;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Another part of a message.
    Continuation = 0,
    /// A text, or its first part.
    Text = 1,
    /// Bytes, or their first part.
    Binary = 2,
    /// The end of what one side sends.
    Close = 8,
    /// A question whether the other side is there.
    Ping = 9,
    /// The answer.
    Pong = 10,
}

impl Opcode {
    fn of(number: u8) -> Option<Opcode> {
        Some(match number {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    pub(crate) fn is_control(self) -> bool {
        self as u8 >= 8
    }
}

/// The header of a received frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) is_last: bool,
    pub(crate) is_compressed: bool,
    pub(crate) opcode: Opcode,
    pub(crate) length: u64,
    pub(crate) mask: [u8; 4],
}

impl Header {
    /// Decodes the header at the beginning of `bytes`, and returns its length, too. `None`: more bytes are needed.
    pub(crate) fn decode(bytes: &[u8], may_compress: bool) -> Result<Option<(Header, usize)>, Failure> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        if first & OTHER_RSV != 0 || (first & RSV1 != 0 && !may_compress) {
            return Err(Failure::protocol("reserved bits are set"));
        }
        let Some(opcode) = Opcode::of(first & 0xf) else { return Err(Failure::protocol("unknown opcode")) };
        let (is_last, is_compressed) = (first & FIN != 0, first & RSV1 != 0);
        if is_compressed && !matches!(opcode, Opcode::Text | Opcode::Binary) {
            return Err(Failure::protocol("only the first frame of a message may be marked as compressed"));
        }
        if second & MASKED == 0 {
            return Err(Failure::protocol("frame without a mask"));
        }
        let short = second & !MASKED;
        if opcode.is_control() && (!is_last || usize::from(short) > LONGEST_CONTROL) {
            return Err(Failure::protocol("control frame in parts or too long"));
        }
        let (length, rest, used) = match short {
            126 => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest, 4),
                None => return Ok(None),
            },
            127 => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from_be_bytes(*length), rest, 10),
                None => return Ok(None),
            },
            short => (u64::from(short), rest, 2),
        };
        let least = [(126, 126), (127, 1 << 16)].iter().find(|(kind, _)| *kind == short).map_or(0, |(_, least)| *least);
        if length < least || length > i64::MAX as u64 {
            return Err(Failure::protocol("malformed length"));
        }
        let Some(mask) = rest.first_chunk() else { return Ok(None) };
        Ok(Some((Header { is_last, is_compressed, opcode, length, mask: *mask }, used + 4)))
    }
}

/// Removes the mask of a payload, or of a part of one whose bytes are masked from the first of `mask` on.
pub(crate) fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let wide = u128::from_ne_bytes([mask; 4].concat().try_into().unwrap_or_default());
    let (chunks, rest) = payload.as_chunks_mut();
    for chunk in chunks {
        *chunk = (u128::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    rest.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}

/// The header of a frame to send, which is a whole message or a control frame: `header[..length]`.
pub fn frame_header(opcode: Opcode, payload: usize, is_compressed: bool) -> ([u8; 10], usize) {
    let mut header = [0; 10];
    header[0] = FIN | if is_compressed { RSV1 } else { 0 } | opcode as u8;
    let length = match (u8::try_from(payload), u16::try_from(payload)) {
        (Ok(short @ ..126), _) => {
            header[1] = short;
            2
        }
        (_, Ok(medium)) => {
            header[1] = 126;
            header[2..4].copy_from_slice(&medium.to_be_bytes());
            4
        }
        _ => {
            header[1] = 127;
            header[2..].copy_from_slice(&(payload as u64).to_be_bytes());
            10
        }
    };
    (header, length)
}

/// The payload of a Close frame; a reason that is too long is cut between two characters.
pub fn close_payload(close_code: u16, reason: &str) -> Vec<u8> {
    if close_code == code::NO_STATUS {
        return Vec::new();
    }
    let mut end = reason.len().min(LONGEST_CONTROL - 2);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    [&close_code.to_be_bytes(), &reason.as_bytes()[..end]].concat()
}

/// Code and reason of a received Close frame.
pub(crate) fn decode_close(payload: &[u8]) -> Result<(u16, &str), Failure> {
    let Some((number, reason)) = payload.split_first_chunk() else {
        return match payload {
            [] => Ok((code::NO_STATUS, "")),
            _ => Err(Failure::protocol("malformed Close frame")),
        };
    };
    let number = u16::from_be_bytes(*number);
    if !code::may_be_sent(number) {
        return Err(Failure::protocol("invalid close code"));
    }
    std::str::from_utf8(reason).map(|reason| (number, reason)).map_err(|_| Failure::NOT_UTF8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_to_send_are_as_short_as_they_can_be() {
        for (length, expected) in [
            (0, &b"\x81\0"[..]),
            (125, b"\x81\x7d"),
            (126, b"\x81\x7e\0\x7e"),
            (65_535, b"\x81\x7e\xff\xff"),
            (65_536, b"\x81\x7f\0\0\0\0\0\x01\0\0"),
        ] {
            let (header, used) = frame_header(Opcode::Text, length, false);
            assert_eq!(&header[..used], expected, "{length}");
        }
        assert_eq!(frame_header(Opcode::Binary, 1, true).0[0], 0xc2);
    }

    #[test]
    fn lengths_are_minimal() {
        let decode =
            |bytes: &[u8]| Header::decode(bytes, false).map(|found| found.map(|(header, used)| (header.length, used)));
        assert_eq!(decode(b"\x81\xfe\0\x7emask"), Ok(Some((126, 8))));
        assert!(decode(b"\x81\xfe\0\x7dmask").is_err());
        assert_eq!(decode(b"\x81\xff\0\0\0\0\0\x01\0\0mask"), Ok(Some((65_536, 14))));
        assert!(decode(b"\x81\xff\0\0\0\0\0\0\xff\xffmask").is_err());
        assert!(decode(b"\x81\xff\x80\0\0\0\0\x01\0\0mask").is_err());
        assert!(decode(b"\x81\x00").is_err(), "no mask");
    }

    #[test]
    fn a_mask_is_removed_at_any_length() {
        for length in 0..70 {
            let mut bytes: Vec<u8> = (0..length).map(|at| at as u8 ^ b"mask"[at % 4]).collect();
            unmask(&mut bytes, *b"mask");
            assert!(bytes.iter().enumerate().all(|(at, byte)| at as u8 == *byte), "{length}");
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        assert_eq!(close_payload(1000, &"ü".repeat(100)).len(), 2 + 122);
        assert_eq!(close_payload(1005, "x"), b"");
    }
}
