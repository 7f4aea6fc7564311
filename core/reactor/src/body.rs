//! The whole body of a request, before the application sees it.

use std::fs::File;
use std::io::{self, Seek, Write};

use crate::options::BODY_IN_MEMORY;
use crate::spool::TempDir;

/// A received body: small ones in memory, larger ones in an unlinked temporary file.
#[derive(Debug, Default)]
pub enum Body {
    /// There is none.
    #[default]
    Empty,
    /// In memory.
    Memory(Vec<u8>),
    /// In a file without a name, and its length.
    File(File, u64),
}

impl Body {
    /// Makes room for a body of this announced length. More than a little is only believed when it comes.
    pub(crate) fn expect(&mut self, length: u64) {
        const BELIEVED: u64 = 16 << 10;
        if length > 0 {
            *self = Body::Memory(Vec::with_capacity(length.min(BELIEVED) as usize));
        }
    }

    /// Adds received content.
    pub(crate) fn append(&mut self, content: &[u8], temp_dir: &TempDir) -> io::Result<()> {
        match self {
            Body::Empty => *self = Body::Memory(content.to_vec()),
            Body::Memory(bytes) if bytes.len() + content.len() <= BODY_IN_MEMORY => bytes.extend_from_slice(content),
            Body::Memory(bytes) => {
                let mut file = temp_dir.create()?;
                file.write_all(bytes)?;
                file.write_all(content)?;
                *self = Body::File(file, (bytes.len() + content.len()) as u64);
            }
            Body::File(file, length) => {
                file.write_all(content)?;
                *length += content.len() as u64;
            }
        }
        Ok(())
    }

    /// Octets received.
    pub fn length(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Memory(bytes) => bytes.len() as u64,
            Body::File(_, length) => *length,
        }
    }

    /// Hands the body over, to be read from its beginning.
    pub(crate) fn take(&mut self) -> io::Result<Body> {
        let mut body = std::mem::take(self);
        if let Body::File(file, _) = &mut body {
            file.rewind()?;
        }
        Ok(body)
    }
}
