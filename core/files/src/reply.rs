//! A reply: status, fields, and where the content is.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::{pread, retry_on_intr};

/// A response. The sender adds `Date`, `Server`, `Connection` and `Content-Length`.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Such as `200 OK`.
    pub status: Cow<'static, str>,
    /// Field lines, each with its CRLF.
    pub fields: Arc<[u8]>,
    /// Bytes of the content, even if it is not sent (HEAD).
    pub length: u64,
    /// The content for a GET; nothing for 304.
    pub content: Content,
}

/// The content of a response.
#[derive(Clone, Debug)]
pub enum Content {
    /// No content.
    Nothing,
    /// All of it in memory.
    Memory(Arc<[u8]>),
    /// From `at` in a file.
    File {
        /// Open for reading.
        file: Arc<OwnedFd>,
        /// Offset in bytes.
        at: u64,
    },
    /// Parts to send one after the other: `multipart/byteranges`, or one range of bytes in memory.
    Parts(Vec<Part>),
}

/// A part of the content.
#[derive(Clone, Debug)]
pub enum Part {
    /// Bytes in memory.
    Memory(Arc<[u8]>, std::ops::Range<usize>),
    /// A part of a file.
    File {
        /// Open for reading.
        file: Arc<OwnedFd>,
        /// Offset in bytes.
        at: u64,
        /// Length in bytes.
        length: u64,
    },
}

impl Reply {
    /// The reply with the content of another one.
    pub(crate) fn with_content_of(self, other: Reply) -> Reply {
        Reply { length: other.length, content: other.content, ..self }
    }

    /// The reply with `more` appended to its content.
    pub(crate) fn followed_by(self, more: Vec<u8>) -> Reply {
        let added = more.len();
        let more = Part::Memory(Arc::from(more), 0..added);
        let parts = match self.content {
            Content::Nothing => vec![more],
            Content::Memory(bytes) => {
                let all = 0..bytes.len();
                vec![Part::Memory(bytes, all), more]
            }
            Content::File { file, at } => vec![Part::File { file, at, length: self.length }, more],
            Content::Parts(parts) => parts.into_iter().chain([more]).collect(),
        };
        Reply { length: self.length + added as u64, content: Content::Parts(parts), ..self }
    }
}

impl Part {
    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Part::Memory(_, range) => range.len() as u64,
            Part::File { length, .. } => *length,
        }
    }

    /// `length` bytes of it, from an offset.
    pub fn piece(&self, from: u64, length: u64) -> Part {
        match self {
            Part::Memory(bytes, range) => {
                let start = range.start + from as usize;
                Part::Memory(Arc::clone(bytes), start..start + length as usize)
            }
            Part::File { file, at, .. } => Part::File { file: Arc::clone(file), at: at + from, length },
        }
    }
}

impl Content {
    /// All of it in memory, `length` bytes. `None`: a file is shorter, or cannot be read.
    pub fn read(&self, length: u64) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(usize::try_from(length).ok()?);
        match self {
            Content::Nothing => {}
            Content::Memory(bytes) => out.extend_from_slice(bytes),
            Content::File { file, at } => read(file, *at, length, &mut out)?,
            Content::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Memory(bytes, range) => out.extend_from_slice(&bytes[range.clone()]),
                        Part::File { file, at, length } => read(file, *at, *length, &mut out)?,
                    }
                }
            }
        }
        (out.len() as u64 == length).then_some(out)
    }

    /// Whether any of it is in a file.
    pub fn is_on_disk(&self) -> bool {
        match self {
            Content::Nothing | Content::Memory(_) => false,
            Content::File { .. } => true,
            Content::Parts(parts) => parts.iter().any(|part| matches!(part, Part::File { .. })),
        }
    }
}

/// Appends `length` bytes of a file from an offset.
fn read(file: &OwnedFd, mut at: u64, length: u64, out: &mut Vec<u8>) -> Option<()> {
    let end = out.len() + usize::try_from(length).ok()?;
    while out.len() < end {
        let start = out.len();
        out.resize(end, 0);
        let taken = retry_on_intr(|| pread(file, &mut out[start..], at)).unwrap_or(0);
        out.truncate(start + taken);
        at += taken as u64;
        if taken == 0 {
            return None;
        }
    }
    Some(())
}
