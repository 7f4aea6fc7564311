//! Send buffer of a TLS connection: encrypted records that the kernel has not taken yet.

use poorhttp_interface::tls::RECORD;

use crate::sys::socket::{PlainSocket, Transport};
use crate::sys::{BorrowedFd, Errno, file};

/// Bytes of content that are encrypted before they are sent, at most: four of the largest records, and headers of frames. So much may
/// wait for a slow reader.
pub(crate) const ENCRYPTED_AT_ONCE: usize = 4 * RECORD + 512;

/// Records on their way to the kernel.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) records: Vec<u8>,
    /// Bytes of them that the kernel has taken.
    pub(crate) sent: usize,
    /// Bytes of content in them.
    pub(crate) content: usize,
    /// Bytes of content that were reported as sent.
    pub(crate) reported: usize,
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.records.len()
    }

    /// Whether records with content, or a part of others, are on their way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.content > 0 || self.sent > 0
    }

    /// Content that the kernel has taken and that was not reported: in proportion, and the last byte only with the last record.
    fn unreported(&self) -> usize {
        let taken = match self.is_empty() {
            true => self.content,
            false => (self.content * self.sent / self.records.len()).min(self.content.saturating_sub(1)),
        };
        taken - self.reported.min(taken)
    }

    /// Reports at most so many bytes.
    pub(crate) fn report(&mut self, most: usize) -> usize {
        let bytes = self.unreported().min(most);
        self.reported += bytes;
        if self.is_empty() && self.reported == self.content {
            *self = Outgoing::default();
        }
        bytes
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self, socket: &PlainSocket) -> Result<(), Errno> {
        while !self.is_empty() {
            match socket.send(&self.records[self.sent..], false) {
                Ok(bytes) => self.sent += bytes,
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.content == self.reported {
            *self = Outgoing::default();
        }
        Ok(())
    }

    /// Adds records without content.
    pub(crate) fn add(&mut self, control: &[u8]) {
        self.records.extend_from_slice(control);
    }
}

/// Content to be sent.
pub(crate) enum Content<'a> {
    Memory(&'a [&'a [u8]]),
    File(BorrowedFd<'a>, u64),
}

impl Content<'_> {
    /// The next piece after so many bytes: at most as much as `room` holds, which is used if it is not in memory at one place.
    pub(crate) fn piece<'b>(&'b self, offset: usize, most: usize, room: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        // If more follows, the records are full.
        let most = if most > ENCRYPTED_AT_ONCE { 4 * RECORD } else { most };
        match self {
            Content::File(file, at) => {
                let bytes = file::read_at(file, &mut room[..most], at + offset as u64)?;
                Ok(&room[..bytes])
            }
            Content::Memory(parts) => {
                let (mut offset, mut filled) = (offset, 0);
                for part in *parts {
                    let Some(rest) = part.get(offset..).filter(|rest| !rest.is_empty()) else {
                        offset -= part.len();
                        continue;
                    };
                    offset = 0;
                    if filled == 0 && (rest.len() >= most || rest.len() >= RECORD) {
                        let whole = if rest.len() >= most { most } else { rest.len() / RECORD * RECORD };
                        return Ok(&rest[..whole]);
                    }
                    let taken = rest.len().min(most - filled);
                    room[filled..filled + taken].copy_from_slice(&rest[..taken]);
                    filled += taken;
                }
                Ok(&room[..filled])
            }
        }
    }
}
