//! What is sent: status, fields, and where the content is.

use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// An answer. `Date`, `Server`, `Connection` and `Content-Length` are added by who sends it.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Such as `200 OK`.
    pub status: Cow<'static, str>,
    /// Field lines, each with its CRLF.
    pub fields: Arc<[u8]>,
    /// Octets of the content, whether it is sent or not (HEAD).
    pub length: u64,
    /// The content, as it is sent to a GET; nothing for 304.
    pub content: Content,
}

/// Where the content of an answer is.
#[derive(Clone, Debug)]
pub enum Content {
    /// Nowhere.
    Nothing,
    /// In memory, as a whole.
    Memory(Arc<[u8]>),
    /// In a file.
    File {
        /// Open for reading.
        file: Arc<OwnedFd>,
        /// Where it begins.
        at: u64,
    },
    /// In several places, to be sent one after the other: `multipart/byteranges`, or one range of what is in memory.
    Parts(Vec<Part>),
}

/// A part of the content.
#[derive(Clone, Debug)]
pub enum Part {
    /// Octets in memory.
    Memory(Arc<[u8]>, std::ops::Range<usize>),
    /// A part of a file.
    File {
        /// Open for reading.
        file: Arc<OwnedFd>,
        /// Where the part begins.
        at: u64,
        /// How long it is.
        length: u64,
    },
}

impl Reply {
    /// The reply with the content of another one.
    pub(crate) fn with_content_of(self, other: Reply) -> Reply {
        Reply { length: other.length, content: other.content, ..self }
    }

    /// The reply with more behind its content.
    pub(crate) fn followed_by(self, more: Vec<u8>) -> Reply {
        let octets = more.len();
        let more = Part::Memory(Arc::from(more), 0..octets);
        let parts = match self.content {
            Content::Nothing => vec![more],
            Content::Memory(bytes) => {
                let all = 0..bytes.len();
                vec![Part::Memory(bytes, all), more]
            }
            Content::File { file, at } => vec![Part::File { file, at, length: self.length }, more],
            Content::Parts(parts) => parts.into_iter().chain([more]).collect(),
        };
        Reply { length: self.length + octets as u64, content: Content::Parts(parts), ..self }
    }
}

impl Part {
    /// Octets of it.
    pub fn length(&self) -> u64 {
        match self {
            Part::Memory(_, range) => range.len() as u64,
            Part::File { length, .. } => *length,
        }
    }

    /// A piece of it.
    pub fn piece(&self, from: u64, octets: u64) -> Part {
        match self {
            Part::Memory(bytes, range) => {
                let start = range.start + from as usize;
                Part::Memory(Arc::clone(bytes), start..start + octets as usize)
            }
            Part::File { file, at, .. } => Part::File { file: Arc::clone(file), at: at + from, length: octets },
        }
    }
}

impl Content {
    /// Whether some of it has to be read from a file.
    pub fn is_on_disk(&self) -> bool {
        match self {
            Content::Nothing | Content::Memory(_) => false,
            Content::File { .. } => true,
            Content::Parts(parts) => parts.iter().any(|part| matches!(part, Part::File { .. })),
        }
    }
}
