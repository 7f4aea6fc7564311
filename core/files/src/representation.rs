//! One of the forms that a file is sent in: as it is, or compressed.

use std::ops::Range;
use std::sync::Arc;

use poorhttp_http::{ConditionalFields, Precondition, Ranges, Validators};

use crate::error_reply;
use crate::fields::Fields;
use crate::multipart::multipart;
use crate::reply::{Content, Part, Reply};

/// One of the forms that a file is sent in.
#[derive(Debug)]
pub(crate) struct Representation {
    pub(crate) fields: Fields,
    /// As it is sent.
    pub(crate) etag: String,
    /// Seconds since 1970.
    pub(crate) modified: u64,
    pub(crate) length: u64,
    pub(crate) content: Content,
}

impl Representation {
    /// The answer to a request that wants nothing in particular.
    #[inline]
    pub(crate) fn whole(&self) -> Reply {
        let fields = Arc::clone(&self.fields.whole);
        Reply { status: "200 OK".into(), fields, length: self.length, content: self.content.clone() }
    }

    /// The answer with another status, to somebody who asked for something else.
    pub(crate) fn instead(&self, status: &'static str) -> Reply {
        Reply { status: status.into(), fields: Arc::from(self.fields.media_type()), ..self.whole() }
    }

    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators { etag: &self.etag, modified: self.modified }
    }

    /// What the preconditions of a request come to, if its not that the file is to be sent.
    pub(crate) fn conditional_reply(&self, conditional: &ConditionalFields<'_>, now: u64) -> Option<Reply> {
        match conditional.precondition(&self.validators(), now) {
            Precondition::Holds => None,
            Precondition::Failed => Some(error_reply::precondition_failed()),
            Precondition::NotModified => Some(Reply {
                status: "304 Not Modified".into(),
                fields: Arc::clone(&self.fields.unchanged),
                length: self.length,
                content: Content::Nothing,
            }),
        }
    }

    /// The content, or the ranges of it that are asked for; of several, each tells its type if it is known.
    pub(crate) fn ranges(&self, ranges: Ranges, type_is_known: bool) -> Reply {
        match ranges {
            Ranges::Whole => self.whole(),
            Ranges::Unsatisfiable => error_reply::unsatisfiable(self.length),
            Ranges::One(range) => self.range(range),
            Ranges::Several(ranges) => multipart(self, &ranges, type_is_known),
        }
    }

    fn range(&self, range: Range<u64>) -> Reply {
        let length = range.end - range.start;
        let mut fields = self.fields.whole.to_vec();
        fields.extend_from_slice(self.content_range(&range).as_bytes());
        let content = match self.part(range) {
            Some(Part::File { file, at, .. }) => Content::File { file, at },
            Some(part) => Content::Parts(vec![part]),
            None => Content::Nothing,
        };
        Reply { status: "206 Partial Content".into(), fields: Arc::from(fields), length, content }
    }

    /// The line that tells which part it is.
    pub(crate) fn content_range(&self, range: &Range<u64>) -> String {
        format!("Content-Range: bytes {}-{}/{}\r\n", range.start, range.end.saturating_sub(1), self.length)
    }

    /// A part of the content.
    pub(crate) fn part(&self, range: Range<u64>) -> Option<Part> {
        match &self.content {
            Content::Memory(content) => {
                Some(Part::Memory(Arc::clone(content), range.start as usize..range.end as usize))
            }
            Content::File { file, at } => {
                let (at, length) = (at + range.start, range.end - range.start);
                Some(Part::File { file: Arc::clone(file), at, length })
            }
            Content::Nothing | Content::Parts(_) => None,
        }
    }

    /// Octets in memory.
    pub(crate) fn weight(&self) -> usize {
        let content = match &self.content {
            Content::Memory(content) => content.len(),
            _ => 0,
        };
        content + self.fields.weight() + self.etag.len()
    }
}
