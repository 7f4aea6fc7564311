//! Fuzz target `hpack`: compressed header fields.

use poorhttp_http2::{Decoder, Encoder};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// The size of the table that is offered.
const TABLE: usize = 4096;

/// Decodes header blocks of a connection, each behind its length in two bytes; then encodes their fields and decodes them again.
pub fn hpack(mut bytes: &[u8]) {
    let (mut whole, mut split) = (Decoder::new(TABLE), Decoder::new(TABLE));
    let (mut encoder, mut again) = (Encoder::new(TABLE / 4), Decoder::new(TABLE));
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let (block, behind) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        bytes = behind;
        let mut fields: Fields = Vec::new();
        let result = whole.decode(block, true, |name, value| fields.push((name.into(), value.into())));
        // The result does not depend on how a block is cut.
        let mut cut: Fields = Vec::new();
        let cut_result = byte_by_byte(&mut split, block, &mut cut);
        assert_eq!((cut, cut_result), (fields.clone(), result.map(drop)));
        // A byte of a block is not more than 8/5 bytes of a literal, or the reference to a field of the table.
        let longest = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len() <= TABLE + block.len() * 2;
        assert!(fields.len() <= block.len() && fields.iter().all(longest));
        if result.is_err() {
            return;
        }
        // What is encoded is decoded, whatever the table holds.
        encoder.offer(usize::from(length[1]) * 20);
        let lower: Fields = fields.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let encoded = encoder.encode_block(lower.iter().map(|(name, value)| (&name[..], &value[..])));
        let mut decoded: Fields = Vec::new();
        let result = again.decode(&encoded, true, |name, value| decoded.push((name.into(), value.into())));
        assert_eq!((decoded, result), (lower, Ok(encoded.len())));
    }
}

fn byte_by_byte(decoder: &mut Decoder, block: &[u8], fields: &mut Fields) -> Result<(), &'static str> {
    let mut tail = Vec::new();
    let mut take = |name: &[u8], value: &[u8]| fields.push((name.into(), value.into()));
    for byte in block {
        tail.push(*byte);
        let used = decoder.decode(&tail, false, &mut take)?;
        tail.drain(..used);
    }
    decoder.decode(&tail, true, &mut take).map(drop)
}
