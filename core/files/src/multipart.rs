//! Several ranges in one response, as multipart/byteranges (RFC 9110 section 14.6).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use crate::reply::{Content, Part, Reply};
use crate::representation::Representation;

const CONTENT_TYPE: &[u8] = b"Content-Type: multipart/byteranges; boundary=";

pub(crate) fn is_multipart(reply: &Reply) -> bool {
    reply.fields.starts_with(CONTENT_TYPE)
}

/// The reply with several ranges, each with its own header, separated by a boundary.
pub(crate) fn multipart(representation: &Representation, ranges: &[Range<u64>], type_is_known: bool) -> Reply {
    let boundary = boundary();
    // All headers one after the other, and the end of each.
    let mut heads = Vec::new();
    let mut ends = Vec::with_capacity(ranges.len());
    for range in ranges {
        let line_end = if heads.is_empty() { "" } else { "\r\n" };
        heads.extend_from_slice(format!("{line_end}--{boundary}\r\n").as_bytes());
        if type_is_known {
            heads.extend_from_slice(representation.fields.media_type());
        }
        heads.extend_from_slice(representation.content_range(range).as_bytes());
        heads.extend_from_slice(b"\r\n");
        ends.push(heads.len());
    }
    heads.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    let heads: Arc<[u8]> = Arc::from(heads);
    let mut parts = Vec::with_capacity(2 * ranges.len() + 1);
    let mut start = 0;
    for (range, end) in ranges.iter().zip(ends) {
        parts.push(Part::Memory(Arc::clone(&heads), start..end));
        parts.extend(representation.part(range.clone()));
        start = end;
    }
    parts.push(Part::Memory(Arc::clone(&heads), start..heads.len()));
    let fields = [CONTENT_TYPE, boundary.as_bytes(), b"\r\n", representation.fields.others()].concat();
    Reply {
        status: "206 Partial Content".into(),
        fields: Arc::from(fields),
        length: parts.iter().map(Part::length).sum(),
        content: Content::Parts(parts),
    }
}

/// 128 random bits, which no file contains. The standard library takes the keys of hash tables from the system's random source.
fn boundary() -> String {
    let keys = RandomState::new();
    format!("{:016x}{:016x}", keys.hash_one(1), keys.hash_one(2))
}
