//! Decoder of HPACK: header block to fields (RFC 7541 sections 3, 6).

use crate::hpack::dynamic_table::DynamicTable;
use crate::hpack::huffman;
use crate::hpack::integer::{self, Partly};
use crate::hpack::static_table::STATIC_TABLE;
use crate::options::Options;

/// Why a header block cannot be decoded: the tables of both sides no longer agree, so the connection ends.
type Malformed = &'static str;

const INTEGER: Malformed = "a number in a header block over the limit";
const INDEX: Malformed = "an index in a header block that no field has";
const HUFFMAN: Malformed = "a malformed Huffman code in a header block";
const TABLE_SIZE: Malformed = "a size of the header table over the one offered";
const LATE_SIZE: Malformed = "a size of the header table within a header block";
const CUT: Malformed = "a header block that ends within a field";

/// Bytes of a string whose memory is kept for the next one.
const KEPT: usize = 256;

/// What a representation of a field is read as.
enum Literal {
    Indexed,
    NotIndexed,
}

/// A string: within the block, or decoded into a buffer of its own.
#[derive(Clone, Copy)]
enum Text<'a> {
    Plain(&'a [u8]),
    Coded(&'a [u8]),
}

/// Decodes the header blocks of a connection, in their order.
///
/// The memory it holds is that of its table and of the longest string, which is not longer than 8/5 of its code.
#[derive(Clone, Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The size offered to the other side.
    offered: usize,
    /// A field of the current block has been decoded.
    has_begun: bool,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// A decoder with a table of at most so many bytes.
    pub fn new(table: usize) -> Self {
        // The other side begins with the default size, and says so if it takes more.
        let begins = DynamicTable::new(table.min(Options::DEFAULT_TABLE));
        Decoder { table: begins, offered: table, has_begun: false, name: Vec::new(), value: Vec::new() }
    }

    /// Decodes the fields at the front of a block and passes each to `field`. Returns the number of bytes decoded; the rest is an
    /// incomplete field, to be given again with what follows. `is_end`: nothing follows.
    ///
    /// The result does not depend on how a block is cut. An error is the reason, for the log.
    pub fn decode(
        &mut self,
        block: &[u8],
        is_end: bool,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, &'static str> {
        let mut at = 0;
        while at < block.len() {
            match self.next(&block[at..], &mut field)? {
                Partly::Whole((), length) => at += length,
                Partly::NeedMore if is_end => return Err(CUT),
                Partly::NeedMore => return Ok(at),
            }
        }
        if is_end {
            self.has_begun = false;
            for buffer in [&mut self.name, &mut self.value] {
                if buffer.capacity() > KEPT {
                    *buffer = Vec::new();
                }
            }
        }
        Ok(at)
    }

    /// A number that is another one after each change of the table. With the same table, the same block has the same fields.
    pub(crate) fn changes(&self) -> u64 {
        self.table.changes()
    }

    fn next(&mut self, block: &[u8], field: &mut impl FnMut(&[u8], &[u8])) -> Result<Partly<()>, Malformed> {
        match block[0] {
            0x80.. => {
                let Partly::Whole(index, length) = number(block, 7)? else { return Ok(Partly::NeedMore) };
                let (name, value) = entry(&self.table, index)?;
                field(name, value);
                self.has_begun = true;
                Ok(Partly::Whole((), length))
            }
            0x40..0x80 => self.literal(block, 6, Literal::Indexed, field),
            0x20..0x40 => {
                let Partly::Whole(size, length) = number(block, 5)? else { return Ok(Partly::NeedMore) };
                if self.has_begun {
                    return Err(LATE_SIZE);
                }
                if size > self.offered {
                    return Err(TABLE_SIZE);
                }
                self.table.resize(size);
                Ok(Partly::Whole((), length))
            }
            0..0x20 => self.literal(block, 4, Literal::NotIndexed, field),
        }
    }

    fn literal(
        &mut self,
        block: &[u8],
        prefix: u32,
        kind: Literal,
        field: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<Partly<()>, Malformed> {
        let Partly::Whole(index, mut at) = number(block, prefix)? else { return Ok(Partly::NeedMore) };
        let name = match index {
            0 => {
                let Partly::Whole(text, length) = string(&block[at..])? else { return Ok(Partly::NeedMore) };
                at += length;
                Some(text)
            }
            // Refused before its value has come.
            _ => {
                entry(&self.table, index)?;
                None
            }
        };
        let Partly::Whole(value, length) = string(&block[at..])? else { return Ok(Partly::NeedMore) };
        let name = match name {
            Some(text) => decoded(text, &mut self.name)?,
            None => {
                // Copied, because inserting the field may evict the entry that has the name.
                self.name.clear();
                self.name.extend_from_slice(entry(&self.table, index)?.0);
                &self.name
            }
        };
        let value = decoded(value, &mut self.value)?;
        field(name, value);
        if matches!(kind, Literal::Indexed) {
            self.table.insert(name, value);
        }
        self.has_begun = true;
        Ok(Partly::Whole((), at + length))
    }
}

fn number(bytes: &[u8], bits: u32) -> Result<Partly<usize>, Malformed> {
    integer::decode(bytes, bits).ok_or(INTEGER)
}

/// The field with an index: of the static table, then of the dynamic one (section 2.3.3).
fn entry(table: &DynamicTable, index: usize) -> Result<(&[u8], &[u8]), Malformed> {
    match index.checked_sub(1) {
        Some(position) if position < STATIC_TABLE.len() => Ok(STATIC_TABLE[position]),
        Some(position) => table.get(position - STATIC_TABLE.len()).ok_or(INDEX),
        None => Err(INDEX),
    }
}

/// The string at the front (section 5.2).
fn string(bytes: &[u8]) -> Result<Partly<Text<'_>>, Malformed> {
    let Partly::Whole(length, start) = number(bytes, 7)? else { return Ok(Partly::NeedMore) };
    let Some(text) = bytes.get(start..start + length) else { return Ok(Partly::NeedMore) };
    let text = if bytes[0] & 0x80 == 0 { Text::Plain(text) } else { Text::Coded(text) };
    Ok(Partly::Whole(text, start + length))
}

fn decoded<'a>(text: Text<'a>, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Malformed> {
    match text {
        Text::Plain(text) => Ok(text),
        Text::Coded(text) => {
            buffer.clear();
            huffman::decode(text, buffer).ok_or(HUFFMAN)?;
            Ok(buffer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = Vec<(Vec<u8>, Vec<u8>)>;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    /// Blocks of one connection and their fields, from `tests/cases/hpack.txt`: the examples of RFC 7541 appendix C.
    #[test]
    fn examples_of_the_appendix() {
        let mut decoder = Decoder::new(4096);
        let mut blocks = 0;
        let (mut expected, mut decoded): (Fields, Fields) = (Vec::new(), Vec::new());
        for line in include_str!("../../tests/cases/hpack.txt").lines().filter(|line| !line.starts_with('#')) {
            match line.split_once(": ") {
                Some(("table", size)) => {
                    let size = size.parse().unwrap();
                    decoder = Decoder::new(size);
                }
                Some(("block", hex)) => {
                    assert_eq!(decoded, expected);
                    (expected, decoded) = (Vec::new(), Vec::new());
                    let block = bytes(hex);
                    // Cut at each byte, the result is the same.
                    for cut in 0..block.len() {
                        let (mut other, mut fields): (_, Fields) = (decoder.clone(), Vec::new());
                        let mut take = |name: &[u8], value: &[u8]| fields.push((name.into(), value.into()));
                        let used = other.decode(&block[..cut], false, &mut take).unwrap();
                        other.decode(&block[used..], true, &mut take).unwrap();
                        let mut whole: Fields = Vec::new();
                        decoder
                            .clone()
                            .decode(&block, true, |name, value| whole.push((name.into(), value.into())))
                            .unwrap();
                        assert_eq!(fields, whole);
                    }
                    decoder.decode(&block, true, |name, value| decoded.push((name.into(), value.into()))).unwrap();
                    blocks += 1;
                }
                Some(("size", size)) => assert_eq!(decoder.table.size(), size.parse().unwrap()),
                Some(("field", field)) => {
                    let (name, value) = field.split_once(" = ").unwrap();
                    expected.push((name.into(), value.into()));
                }
                _ => assert!(line.is_empty(), "{line}"),
            }
        }
        assert_eq!(decoded, expected);
        assert_eq!(blocks, 16);
    }

    #[test]
    fn malformed_blocks() {
        for (hex, malformed) in [
            ("80", INDEX),
            ("be", INDEX),
            ("7e 01 61", INDEX),
            ("ff ff ff ff 7f", INTEGER),
            ("00 7f ff ff ff ff ff", INTEGER),
            ("82 20", LATE_SIZE),
            ("3f e2 1f", TABLE_SIZE),
            ("00 01 61 81 00", HUFFMAN),
            ("00 01 61 84 ff ff ff ff", HUFFMAN),
            ("00 01 61", CUT),
            ("41", CUT),
            ("ff", CUT),
        ] {
            assert_eq!(Decoder::new(4096).decode(&bytes(hex), true, |_, _| {}), Err(malformed), "{hex}");
        }
        // Two sizes in a row, each within the one offered, as after two changes of the setting.
        assert_eq!(Decoder::new(4096).decode(&bytes("20 3f e1 1f 82"), true, |_, _| {}), Ok(5));
        // In another block a size may come again.
        let mut decoder = Decoder::new(4096);
        assert_eq!(
            (decoder.decode(&[0x82], true, |_, _| {}), decoder.decode(&[0x20], true, |_, _| {})),
            (Ok(1), Ok(1))
        );
    }

    /// An entry whose name is that of the entry it evicts.
    #[test]
    fn a_name_outlives_its_entry() {
        let mut decoder = Decoder::new(64);
        let mut fields: Fields = Vec::new();
        let block = bytes("40 04 61616161 04 62626262  7e 05 6363636363  be");
        decoder.decode(&block, true, |name, value| fields.push((name.into(), value.into()))).unwrap();
        assert_eq!(fields[1], (b"aaaa".to_vec(), b"ccccc".to_vec()));
        assert_eq!(fields[2], fields[1]);
        // A field larger than the table empties it.
        let large = [&b"\x40\x01a\x40"[..], &[b'x'; 64], b"\xbe"].concat();
        assert_eq!(decoder.decode(&large, true, |_, _| {}), Err(INDEX));
    }
}
