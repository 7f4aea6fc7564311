//! Frame headers, and the frames that a server sends (RFC 9113 sections 4.1 and 6).

use crate::error::ErrorCode;

/// What a client sends first (section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of a frame header.
pub(crate) const HEADER: usize = 9;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
/// RFC 9218 section 7.1.
pub(crate) const PRIORITY_UPDATE: u8 = 16;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
/// HEADERS begin with a priority of RFC 7540.
pub(crate) const HAS_PRIORITY: u8 = 0x20;

/// Settings (section 6.5.2, RFC 9218 section 2.1).
pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const ENABLE_PUSH: u16 = 2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
pub(crate) const NO_RFC7540_PRIORITIES: u16 = 9;

/// The largest window, and the largest stream identifier.
pub(crate) const MOST: u32 = (1 << 31) - 1;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Bytes after the header.
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl FrameHeader {
    /// The header at the front; `None`: it is incomplete.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let [high, middle, low, kind, flags, a, b, c, d, ..] = *bytes else { return None };
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        Some(FrameHeader { length, kind, flags, stream: u32::from_be_bytes([a, b, c, d]) & MOST })
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The nine bytes.
    pub(crate) fn bytes(self) -> [u8; HEADER] {
        let [_, high, middle, low] = (self.length as u32).to_be_bytes();
        let [a, b, c, d] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, a, b, c, d]
    }
}

fn push(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&FrameHeader { length: payload.len(), kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

pub(crate) fn push_data(out: &mut Vec<u8>, stream: u32, content: &[u8], ends: bool) {
    push(out, DATA, if ends { END_STREAM } else { 0 }, stream, content);
}

/// The header of a DATA frame, whose content follows.
pub(crate) fn begin_data(out: &mut Vec<u8>, stream: u32, length: usize) {
    out.extend_from_slice(&FrameHeader { length, kind: DATA, flags: 0, stream }.bytes());
}

/// Has a DATA frame of this stream end it. `false`: it is of another, or something follows it.
pub(crate) fn end_with(frame: &mut [u8], stream: u32) -> bool {
    let is_last = FrameHeader::parse(frame)
        .is_some_and(|header| header.stream == stream && header.length + HEADER == frame.len());
    if is_last {
        frame[4] |= END_STREAM;
    }
    is_last
}

/// Puts frame headers around the header block that begins at `start` of the output, behind room for one header. `most` is the
/// largest payload that the client takes.
pub(crate) fn wrap_block(out: &mut Vec<u8>, start: usize, stream: u32, ends: bool, most: usize) {
    let length = out.len() - start - HEADER;
    let end_stream = if ends { END_STREAM } else { 0 };
    if length <= most {
        let header = FrameHeader { length, kind: HEADERS, flags: END_HEADERS | end_stream, stream };
        return out[start..start + HEADER].copy_from_slice(&header.bytes());
    }
    let block = out.split_off(start + HEADER);
    out.truncate(start);
    let parts = block.len().div_ceil(most);
    for (number, part) in block.chunks(most).enumerate() {
        let (kind, first) = if number == 0 { (HEADERS, end_stream) } else { (CONTINUATION, 0) };
        push(out, kind, first | if number + 1 == parts { END_HEADERS } else { 0 }, stream, part);
    }
}

pub(crate) fn push_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let header = FrameHeader { length: 6 * settings.len(), kind: SETTINGS, flags: 0, stream: 0 };
    out.extend_from_slice(&header.bytes());
    for (setting, value) in settings {
        out.extend_from_slice(&setting.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(crate) fn push_settings_ack(out: &mut Vec<u8>) {
    push(out, SETTINGS, ACK, 0, b"");
}

pub(crate) fn push_ping(out: &mut Vec<u8>, is_ack: bool, payload: &[u8; 8]) {
    push(out, PING, if is_ack { ACK } else { 0 }, 0, payload);
}

pub(crate) fn push_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    push(out, WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
}

pub(crate) fn push_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    push(out, RST_STREAM, 0, stream, &code.number().to_be_bytes());
}

/// `reason` goes along for whoever reads the client's log.
pub(crate) fn push_goaway(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode, reason: &str) {
    let payload = [&last_stream.to_be_bytes()[..], &code.number().to_be_bytes(), reason.as_bytes()].concat();
    push(out, GOAWAY, 0, 0, &payload);
}
