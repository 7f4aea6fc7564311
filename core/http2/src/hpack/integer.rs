//! Integers of HPACK, with a prefix of some bits in their first byte (RFC 7541 section 5.1).

/// The largest integer that is taken. Indexes, lengths and sizes beyond it cannot be valid.
const MOST: usize = (1 << 28) - 1;

/// A part of a header block that may be incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partly<T> {
    /// More bytes are needed.
    NeedMore,
    /// The part, and its length in bytes.
    Whole(T, usize),
}

/// The integer at the front, whose first byte has a prefix of `bits` bits; `None`: it is too large.
pub(crate) fn decode(bytes: &[u8], bits: u32) -> Option<Partly<usize>> {
    let Some((first, rest)) = bytes.split_first() else { return Some(Partly::NeedMore) };
    let most = (1 << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value < most {
        return Some(Partly::Whole(value, 1));
    }
    // Four more bytes hold 28 bits; leading zeros make an integer longer, not larger, and are refused beyond them.
    for (at, byte) in rest.iter().enumerate().take(4) {
        value += usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return (value <= MOST).then_some(Partly::Whole(value, at + 2));
        }
    }
    if rest.len() < 4 { Some(Partly::NeedMore) } else { None }
}

/// Appends an integer; `first` has the bits before the prefix.
pub(crate) fn encode(out: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 appendix C.1, and every prefix.
    #[test]
    fn integers_come_back() {
        let mut out = Vec::new();
        encode(&mut out, 0, 5, 10);
        encode(&mut out, 0, 5, 1337);
        encode(&mut out, 0, 8, 42);
        assert_eq!(out, [0b0_1010, 0b1_1111, 0b1001_1010, 0b1010, 42]);
        for bits in 1..=8 {
            for value in [0, 1, 14, 15, 16, 126, 127, 128, 254, 255, 256, 16_384, 1 << 20, MOST] {
                let mut out = Vec::new();
                encode(&mut out, 0, bits, value);
                assert_eq!(decode(&out, bits), Some(Partly::Whole(value, out.len())));
                for end in 0..out.len() {
                    assert_eq!(decode(&out[..end], bits), Some(Partly::NeedMore));
                }
            }
        }
    }

    #[test]
    fn integers_do_not_overflow() {
        assert_eq!(decode(b"\x7f\xff\xff\xff\x7f", 7), None);
        assert_eq!(decode(b"\x7f\xff\xff\xff\xff\x00", 7), None);
        assert_eq!(decode(b"\x7f\x80\x80\x80\x80\x00", 7), None);
        assert_eq!(decode(b"\x7f\x80\x80\x80\x00", 7), Some(Partly::Whole(127, 5)));
    }
}
