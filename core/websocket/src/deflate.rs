//! Compression and decompression of messages (RFC 7692 section 7.2).

use crate::extension::Compression;
use crate::failure::Failure;
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Inflate, InflateFlush, Status};

/// What a compressed message ends with, and is sent without.
const TAIL: &[u8] = b"\0\0\xff\xff";

/// Bytes from which a message is compressed: a smaller one is a packet anyway.
const LEAST: usize = 128;

/// Bytes of the first room for what is made, and of any other.
const ROOM: usize = 4 << 10;
const MOST_ROOM: usize = 64 << 10;

/// Compresses messages that are sent. Its state of about 30 KB is allocated with the first of them.
pub struct Compressor {
    deflate: Option<Deflate>,
    window: u8,
    forgets: bool,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Compressor({})", self.window)
    }
}

impl Compressor {
    /// A compressor as it was agreed on.
    pub fn new(agreed: &Compression) -> Self {
        Compressor { deflate: None, window: agreed.server_window, forgets: agreed.server_forgets }
    }

    /// Compresses a message. `None`: it is sent as it is.
    pub fn compress(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        if message.len() < LEAST {
            return None;
        }
        let deflate = self.deflate.get_or_insert_with(|| {
            Deflate::new_with_config(DeflateConfig {
                level: 6,
                window_bits: -i32::from(self.window),
                mem_level: 5,
                ..DeflateConfig::default()
            })
        });
        let (begin, mut made) = (deflate.total_in(), Vec::new());
        loop {
            let (taken, before) = ((deflate.total_in() - begin) as usize, made.len());
            made.resize(before + (message.len() / 2).clamp(ROOM, MOST_ROOM), 0);
            let out = deflate.total_out();
            let is_good = deflate.compress(&message[taken..], &mut made[before..], DeflateFlush::SyncFlush);
            let (grown, room) = ((deflate.total_out() - out) as usize, made.len() - before);
            made.truncate(before + grown);
            if is_good.is_err() {
                // The other side does not know of this message, so the state begins anew, without what is before it.
                self.deflate = None;
                return None;
            }
            if grown < room {
                break;
            }
        }
        if self.forgets {
            deflate.reset();
        }
        if made.ends_with(TAIL) {
            made.truncate(made.len() - TAIL.len());
        }
        Some(made)
    }
}

/// Decompresses messages that were received. Its state is allocated with the first of them.
pub(crate) struct Decompressor {
    inflate: Option<Inflate>,
    window: u8,
    forgets: bool,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Decompressor({})", self.window)
    }
}

impl Decompressor {
    pub(crate) fn new(agreed: &Compression) -> Self {
        // zlib compresses with a window of 2^9 if 2^8 was agreed on.
        Decompressor {
            inflate: None,
            window: agreed.client_window.unwrap_or(15).max(9),
            forgets: agreed.client_forgets,
        }
    }

    /// Appends what a part of a message expands to; at most `most` bytes may be there then.
    pub(crate) fn add(&mut self, mut part: &[u8], message: &mut Vec<u8>, most: usize) -> Result<(), Failure> {
        const BROKEN: Failure = Failure::payload("compressed data is malformed");
        let inflate = self.inflate.get_or_insert_with(|| Inflate::new(false, self.window));
        loop {
            let before = message.len();
            // A byte more than may be: so it is seen that there is more.
            let room = (part.len() * 4).clamp(ROOM, MOST_ROOM).min(most.saturating_sub(before) + 1);
            message.resize(before + room, 0);
            let (took, made) = (inflate.total_in(), inflate.total_out());
            let status = inflate.decompress(part, &mut message[before..], InflateFlush::SyncFlush);
            let (took, made) = ((inflate.total_in() - took) as usize, (inflate.total_out() - made) as usize);
            message.truncate(before + made);
            part = &part[took..];
            if message.len() > most {
                return Err(Failure::TOO_BIG);
            }
            match status {
                // The last block of a stream; another one may follow (section 7.2.3.5).
                Ok(Status::StreamEnd) => inflate.reset(false),
                Ok(_) if made < room && part.is_empty() => return Ok(()),
                Ok(Status::Ok) if took > 0 || made > 0 => {}
                Ok(_) | Err(_) => return Err(BROKEN),
            }
            if part.is_empty() && made < room {
                return Ok(());
            }
        }
    }

    /// Ends a message.
    pub(crate) fn end(&mut self, message: &mut Vec<u8>, most: usize) -> Result<(), Failure> {
        self.add(TAIL, message, most)?;
        if self.forgets
            && let Some(inflate) = &mut self.inflate
        {
            inflate.reset(false);
        }
        Ok(())
    }
}
