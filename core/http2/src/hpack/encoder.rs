//! Encoder of HPACK: fields to header block (RFC 7541 section 6).

use crate::hpack::dynamic_table::DynamicTable;
use crate::hpack::static_table::{self, STATIC_TABLE};
use crate::hpack::{huffman, integer};
use crate::options::Options;

/// Index of `:status: 200` in the static table, and the statuses from there on.
const STATUS: usize = 8;
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// Most bytes of a value that is kept in the table.
const MOST_KEPT: usize = 128;

/// Encodes the header blocks of a connection, in their order.
///
/// Its table holds the fields that come with every response (`Server`, `Content-Type`, the `Date` of a second). The names that
/// [`is_kept`] excludes have another value each time, or one that nobody may guess by trial (section 7.1).
#[derive(Clone, Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// The size that this side wants.
    wanted: usize,
    /// The smallest size since the last block, if it has changed, to be written at the beginning of the next block.
    shrunk: Option<usize>,
}

impl Encoder {
    /// An encoder with a table of at most so many bytes.
    pub fn new(table: usize) -> Self {
        // Both sides begin with 4,096; another size is announced in the first block.
        let shrunk = (table != Options::DEFAULT_TABLE).then_some(table.min(Options::DEFAULT_TABLE));
        Encoder { table: DynamicTable::new(table.min(Options::DEFAULT_TABLE)), wanted: table, shrunk }
    }

    /// Takes the size that the other side offers (SETTINGS_HEADER_TABLE_SIZE).
    pub fn offer(&mut self, size: usize) {
        let size = size.min(self.wanted);
        if size != self.table.most() {
            self.shrunk = Some(self.shrunk.map_or(size, |other| other.min(size)));
            self.table.resize(size);
        }
    }

    /// Begins a block: writes a change of the table's size (section 4.2).
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(smallest) = self.shrunk.take() {
            integer::encode(out, 0x20, 5, smallest);
            if smallest != self.table.most() {
                integer::encode(out, 0x20, 5, self.table.most());
            }
        }
    }

    /// Writes the pseudo-header field `:status`.
    pub(crate) fn status(&mut self, out: &mut Vec<u8>, status: u16) {
        match STATUSES.iter().position(|known| *known == status) {
            Some(position) => integer::encode(out, 0x80, 7, STATUS + position),
            None => {
                integer::encode(out, 0, 4, STATUS);
                let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
                string(out, &digits);
            }
        }
    }

    /// Writes a field. The name has no capitals.
    pub(crate) fn field(&mut self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        let known = static_table::index_of(name);
        if let Some(index) = known {
            let is_same = |at: &usize| STATIC_TABLE[at - 1] == (name, value);
            if let Some(index) = (index..=STATIC_TABLE.len()).take(2).find(is_same) {
                return integer::encode(out, 0x80, 7, index);
            }
        }
        if is_secret(name) {
            return literal(out, 0x10, 4, known, name, value);
        }
        if !is_kept(name) || value.len() > MOST_KEPT {
            return literal(out, 0, 4, known, name, value);
        }
        match self.table.find(name, value) {
            Some((position, true)) => integer::encode(out, 0x80, 7, STATIC_TABLE.len() + 1 + position),
            found => {
                let index = known.or(found.map(|(position, _)| STATIC_TABLE.len() + 1 + position));
                literal(out, 0x40, 6, index, name, value);
                self.table.insert(name, value);
            }
        }
    }

    /// Encodes a whole block, for tests and other programs. Names have no capitals.
    pub fn encode_block<'a>(&mut self, fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
        let mut out = Vec::new();
        self.begin(&mut out);
        fields.into_iter().for_each(|(name, value)| self.field(&mut out, name, value));
        out
    }
}

/// Whether intermediaries must not keep a field in a table either: its value is a secret, and short enough to be guessed.
fn is_secret(name: &[u8]) -> bool {
    matches!(name, b"set-cookie" | b"authorization" | b"proxy-authorization" | b"cookie")
}

/// Whether a field is worth a place in the table: it has the same value in many responses.
fn is_kept(name: &[u8]) -> bool {
    !matches!(
        name,
        b"content-length"
            | b"etag"
            | b"last-modified"
            | b"location"
            | b"content-range"
            | b"content-location"
            | b"expires"
            | b"age"
            | b"link"
            | b"x-request-id"
            | b"traceparent"
    )
}

fn literal(out: &mut Vec<u8>, first: u8, bits: u32, index: Option<usize>, name: &[u8], value: &[u8]) {
    integer::encode(out, first, bits, index.unwrap_or(0));
    if index.is_none() {
        string(out, name);
    }
    string(out, value);
}

/// Writes a string, in Huffman code if that is shorter.
fn string(out: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::encoded_length(text);
    if coded < text.len() {
        integer::encode(out, 0x80, 7, coded);
        huffman::encode(text, out);
    } else {
        integer::encode(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpack::decoder::Decoder;

    const RESPONSE: [(&[u8], &[u8]); 4] = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", b"1234"),
        (b"server", b"poorhttp"),
        (b"date", b"Sun, 29 Nov 2026 00:00:00 GMT"),
    ];

    #[test]
    fn what_repeats_itself_is_short() {
        let mut encoder = Encoder::new(1024);
        let mut decoder = Decoder::new(4096);
        let lengths = [0; 3].map(|_| {
            let block = encoder.encode_block(RESPONSE);
            let mut fields = Vec::new();
            decoder.decode(&block, true, |name, value| fields.push((name.to_vec(), value.to_vec()))).unwrap();
            assert_eq!(fields, RESPONSE.map(|(name, value)| (name.to_vec(), value.to_vec())));
            block.len()
        });
        // The size of the table; then one byte for each field but the length.
        assert_eq!(lengths, [61, 9, 9]);
    }

    /// Both sides agree after any changes of the size (section 4.2).
    #[test]
    fn sizes_of_the_table() {
        for sizes in [&[0][..], &[0, 4096], &[100, 0, 512], &[4096, 1 << 20], &[64], &[1024, 4096]] {
            let mut encoder = Encoder::new(1024);
            let mut decoder = Decoder::new(4096);
            let mut exchange = |encoder: &mut Encoder| {
                let block = encoder.encode_block(RESPONSE);
                let mut count = 0;
                decoder.decode(&block, true, |_, _| count += 1).unwrap();
                assert_eq!(count, RESPONSE.len());
                block
            };
            exchange(&mut encoder);
            sizes.iter().for_each(|size| encoder.offer(*size));
            exchange(&mut encoder);
            let last = exchange(&mut encoder);
            assert!(last[0] & 0xe0 != 0x20, "the size is written once");
        }
    }

    #[test]
    fn secrets_are_never_indexed() {
        let mut encoder = Encoder::new(4096);
        let block = encoder.encode_block([(&b"set-cookie"[..], &b"a=b"[..]), (b"set-cookie", b"a=b")]);
        assert_eq!(block[0], 0x1f);
        assert_eq!(block[..block.len() / 2], block[block.len() / 2..]);
    }

    #[test]
    fn statuses() {
        let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096));
        for status in [100, 103, 200, 204, 206, 304, 400, 404, 500, 418, 999] {
            let mut block = Vec::new();
            encoder.status(&mut block, status);
            let mut read = Vec::new();
            decoder.decode(&block, true, |name, value| read.push((name.to_vec(), value.to_vec()))).unwrap();
            assert_eq!(read, [(b":status".to_vec(), status.to_string().into_bytes())]);
        }
    }
}
