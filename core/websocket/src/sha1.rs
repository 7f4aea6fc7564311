//! SHA-1 (RFC 3174) of the key of an opening handshake. It proves that the server speaks WebSocket, and protects nothing.

/// The digest of a message.
pub(crate) fn sha1(message: &[u8]) -> [u8; 20] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((message.len() + 9).next_multiple_of(64) - 8, 0);
    padded.extend_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded.as_chunks::<64>().0 {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.iter().enumerate() {
            let (function, constant) = match at / 20 {
                0 => (b & c | !b & d, 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let sum = [function, e, constant, *word].iter().fold(a.rotate_left(5), |sum, term| sum.wrapping_add(*term));
            (a, b, c, d, e) = (sum, a, b.rotate_left(30), c, d);
        }
        for (sum, term) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(term);
        }
    }
    let mut digest = [0; 20];
    for (to, word) in digest.as_chunks_mut().0.iter_mut().zip(state) {
        *to = word.to_be_bytes();
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests() {
        for (message, expected) in [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (&"a".repeat(1_000), "291e9a6c66994949b57ba5e650361e98fc36b1ba"),
        ] {
            let digest: String = sha1(message.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, expected);
        }
    }
}
