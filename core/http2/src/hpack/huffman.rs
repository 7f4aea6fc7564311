//! Huffman code of HPACK (RFC 7541 section 5.2 and appendix B).
//!
//! The code is canonical: lengths determine it. Codes and the automaton that decodes four bits at a time are made from them at
//! compile time.

/// Bits of the code of each byte, and of the end of a string (appendix B).
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];
const SYMBOLS: usize = 257;
/// The symbol that ends a string; it must never be sent.
const END_OF_STRING: usize = 256;
/// Bits of the longest code.
const LONGEST: u8 = 30;

/// The codes: in the order of their lengths, then of their symbols, each is the next number.
const CODES: [u32; SYMBOLS] = {
    let mut codes = [0; SYMBOLS];
    let (mut code, mut length) = (0, 1);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] == length {
                codes[symbol] = code;
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    codes
};

/// The inner nodes of the tree of codes, the root first: where a bit leads, an inner node or, from [`LEAF`] on, a symbol.
const TREE: [[u16; 2]; 256] = {
    let mut tree = [[0; 2]; 256];
    let mut nodes = 1;
    let mut symbol = 0;
    while symbol < SYMBOLS {
        let mut node = 0;
        let mut rest = LENGTHS[symbol];
        while rest > 0 {
            rest -= 1;
            let bit = (CODES[symbol] >> rest & 1) as usize;
            if rest == 0 {
                tree[node][bit] = LEAF + symbol as u16;
            } else {
                if tree[node][bit] == 0 {
                    tree[node][bit] = nodes;
                    nodes += 1;
                }
                node = tree[node][bit] as usize;
            }
        }
        symbol += 1;
    }
    tree
};
const LEAF: u16 = 256;

/// What four bits lead to from an inner node.
#[derive(Clone, Copy)]
struct Step {
    node: u8,
    symbol: u8,
    /// A symbol ends within the four bits. No code is shorter than five, so there is at most one.
    emits: bool,
    fails: bool,
}

const STEPS: [[Step; 16]; 256] = {
    let mut steps = [[Step { node: 0, symbol: 0, emits: false, fails: false }; 16]; 256];
    let mut node = 0;
    while node < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            let (mut at, mut step) = (node, steps[node][nibble]);
            let mut rest = 4;
            while rest > 0 {
                rest -= 1;
                let next = TREE[at][nibble >> rest & 1];
                if next == LEAF + END_OF_STRING as u16 {
                    step.fails = true;
                    at = 0;
                } else if next >= LEAF {
                    step.emits = true;
                    step.symbol = (next - LEAF) as u8;
                    at = 0;
                } else {
                    at = next as usize;
                }
            }
            step.node = at as u8;
            steps[node][nibble] = step;
            nibble += 1;
        }
        node += 1;
    }
    steps
};

/// Whether a string may end in a node: after fewer than eight bits of padding, all of them ones as at the beginning of the end of
/// a string.
const MAY_END: [bool; 256] = {
    let mut may_end = [false; 256];
    let (mut node, mut bits) = (0, 0);
    while bits < 8 {
        may_end[node] = true;
        node = TREE[node][1] as usize;
        bits += 1;
    }
    may_end
};

/// Appends the decoded bytes; `None`: the code is malformed.
pub(crate) fn decode(encoded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    // A code has at least five bits.
    out.reserve(encoded.len() * 8 / 5);
    let mut node = 0;
    for byte in encoded {
        for nibble in [byte >> 4, byte & 15] {
            let step = STEPS[usize::from(node)][usize::from(nibble)];
            if step.emits {
                out.push(step.symbol);
            }
            if step.fails {
                return None;
            }
            node = step.node;
        }
    }
    MAY_END[usize::from(node)].then_some(())
}

/// Length of the encoded bytes.
pub(crate) fn encoded_length(bytes: &[u8]) -> usize {
    let bits: usize = bytes.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoded bytes.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0);
    for &byte in bytes {
        bits = bits << LENGTHS[usize::from(byte)] | u64::from(CODES[usize::from(byte)]);
        count += LENGTHS[usize::from(byte)];
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        let padding = 8 - count;
        out.push((bits << padding) as u8 | (0xff >> count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_appendix() {
        for (symbol, code) in [(0, 0x1ff8), (b'0', 0x0), (b'a', 0x3), (b'~', 0x1ffd), (0xff, 0x3ff_ffee)] {
            assert_eq!(CODES[usize::from(symbol)], code);
        }
        assert_eq!(CODES[END_OF_STRING], 0x3fff_ffff);
    }

    #[test]
    fn every_pair_of_bytes_comes_back() {
        for pair in 0..=u16::MAX {
            let (bytes, mut encoded, mut decoded) = (pair.to_be_bytes(), Vec::new(), Vec::new());
            encode(&bytes, &mut encoded);
            assert_eq!(encoded.len(), encoded_length(&bytes));
            decode(&encoded, &mut decoded).unwrap();
            assert_eq!(decoded, bytes);
        }
    }

    #[test]
    fn padding_is_short_and_of_ones() {
        let is_good = |encoded: &[u8]| decode(encoded, &mut Vec::new()).is_some();
        assert!(is_good(b"") && is_good(b"\x07") && is_good(b"\x1f"));
        // Another bit than one; eight bits; the whole end of a string.
        for bad in [&b"\x06"[..], b"\x00\x00", b"\x07\xff", b"\xff", b"\xff\xff\xff\xfc", b"\xff\xff\xff\xff"] {
            assert!(!is_good(bad), "{bad:?}");
        }
    }
}
