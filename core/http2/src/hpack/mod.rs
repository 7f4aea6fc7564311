//! HPACK: compression of header fields (RFC 7541).
//!
//! ```text
//! integer.rs        integers with a prefix
//! huffman.rs        Huffman code of strings
//! static_table.rs   fields that both sides know from the start
//! dynamic_table.rs  fields that have been sent on this connection
//! decoder.rs        header block to fields
//! encoder.rs        fields to header block
//! ```

pub(crate) mod decoder;
mod dynamic_table;
pub(crate) mod encoder;
mod huffman;
mod integer;
mod static_table;
