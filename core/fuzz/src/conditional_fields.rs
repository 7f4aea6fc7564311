//! Target `conditional_fields`: Range, the preconditions and Accept-Encoding of a GET.

use poorhttp_http::{ConditionalFields, ContentCoding, Precondition, Ranges, Validators};

use crate::receiver::receive;

/// A tag and a date that inputs may name: Sun, 06 Nov 1994 08:49:37 GMT.
const VALIDATORS: Validators<'_> = Validators { etag: "\"a\"", modified: Some(784_111_777) };

/// Parses field lines of a GET.
pub fn conditional_fields(bytes: &[u8]) {
    let request = [b"GET / HTTP/1.1\r\nHost: a\r\n", bytes, b"\r\n\r\n"].concat();
    let outcome = receive([&request[..]]);
    let Some(message) = outcome.messages.first().or(outcome.unfinished.as_ref()) else { return };
    let conditional = ConditionalFields::of(&message.head, &message.bytes);
    // Only an available coding is chosen.
    for available in [&[][..], &[ContentCoding::Gzip], &[ContentCoding::Zstd, ContentCoding::Brotli]] {
        assert!(conditional.coding(available).is_none_or(|coding| available.contains(&coding)));
    }
    // Without conditions and ranges, the whole file is selected.
    let condition = conditional.precondition(&VALIDATORS, u64::MAX);
    assert!(!conditional.is_plain() || condition == Precondition::Holds);
    for length in [0, 1, 10, 1_000, u64::MAX] {
        let ranges = match conditional.ranges(length, &VALIDATORS, u64::MAX) {
            Ranges::Whole => continue,
            Ranges::Unsatisfiable => Vec::new(),
            Ranges::One(range) => vec![range],
            Ranges::Several(ranges) => {
                assert!(ranges.len() > 1);
                ranges
            }
        };
        assert!(!conditional.is_plain());
        // No byte is sent twice or beyond the end, and the number of parts is minimal.
        assert!(ranges.len() <= 32);
        for (at, range) in ranges.iter().enumerate() {
            assert!(range.start < range.end && range.end <= length);
            assert!(ranges[..at].iter().all(|other| other.end < range.start || range.end < other.start));
        }
    }
}
