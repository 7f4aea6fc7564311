//! One representation of a file (plain or compressed), and its replies to preconditions and ranges.

use std::ops::Range;
use std::sync::Arc;

use poorhttp_http::{ConditionalFields, Precondition, Ranges, Validators};

use crate::error_reply;
use crate::fields::Fields;
use crate::multipart::multipart;
use crate::reply::{Content, Part, Reply};

/// A representation of a file (RFC 9110 section 3.2).
#[derive(Debug)]
pub(crate) struct Representation {
    pub(crate) fields: Fields,
    /// With its quotes; empty: none.
    pub(crate) etag: String,
    /// Seconds since 1970. `None`: not known.
    pub(crate) modified: Option<u64>,
    pub(crate) length: u64,
    pub(crate) content: Content,
}

impl Representation {
    /// 200 with the whole content.
    #[inline]
    pub(crate) fn whole(&self) -> Reply {
        let fields = Arc::clone(&self.fields.whole);
        Reply { status: "200 OK".into(), fields, length: self.length, content: self.content.clone() }
    }

    /// The whole content with another status.
    pub(crate) fn instead(&self, status: &'static str) -> Reply {
        Reply { status: status.into(), fields: Arc::from(self.fields.media_type()), ..self.whole() }
    }

    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators { etag: &self.etag, modified: self.modified }
    }

    /// 304 or 412, if a precondition of the request does not hold.
    pub(crate) fn conditional_reply(&self, conditional: &ConditionalFields<'_>, now: u64) -> Option<Reply> {
        self.conditional_reply_by(conditional, &self.validators(), now)
    }

    /// The same with other validators, which the client gets instead.
    pub(crate) fn conditional_reply_by(
        &self,
        conditional: &ConditionalFields<'_>,
        validators: &Validators<'_>,
        now: u64,
    ) -> Option<Reply> {
        match conditional.precondition(validators, now) {
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

    /// The requested ranges, or the whole content. Each of several ranges has a Content-Type if it is known.
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

    /// The line of Content-Range.
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

    /// Bytes in memory.
    pub(crate) fn weight(&self) -> usize {
        let content = match &self.content {
            Content::Memory(content) => content.len(),
            _ => 0,
        };
        content + self.fields.weight() + self.etag.len()
    }
}
