//! A representation of a file, plain or compressed: its media type, `ETag` and other fields, its replies to preconditions and ranges.

use std::ffi::CString;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use poorhttp_http::{ConditionalFields, ContentCoding, Precondition, Ranges, Validators};

use crate::fields::{self, Fields};
use crate::file_context::FileContext;
use crate::file_id::FileId;
use crate::multipart::multipart;
use crate::options::Options;
use crate::reply::{Content, Part, Reply};
use crate::{error_reply, media_types};

/// Bytes up to which a file without a date is read for its entity tag.
const LARGEST_HASHED: u64 = 1 << 20;

/// `Cache-Control` of a file that never changes under its name: a year, without conditional requests (RFC 8246).
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

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
    /// Of an opened file, under this name.
    pub(crate) fn of_file(
        name: &CString,
        coding: Option<ContentCoding>,
        id: &FileId,
        content: Content,
        varies: bool,
        context: &FileContext<'_>,
    ) -> Self {
        let media_type = media_types::media_type(name.to_bytes(), &context.options.types);
        let charset = &context.options.charset;
        let media_type = match !charset.is_empty() && media_types::takes_charset(media_type) {
            true => format!("{media_type}; charset={charset}"),
            false => media_type.to_owned(),
        };
        let etag = version(id, &content).map_or(String::new(), |version| etag(&version, id.size, coding));
        // Browsers guess from an early date that the file will not change for years, so a constant is not sent.
        let modified = id.is_dated().then(|| id.modified_since_1970());
        // A date in the future becomes the current one (RFC 9110 section 8.8.2.1).
        let date = |modified: u64| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(modified.min(context.now)));
        let date = modified.map_or(String::new(), date);
        let coding = if is_gzip(name, context.options) { Some(ContentCoding::Gzip) } else { coding };
        let ours = [
            ("Content-Type", media_type.as_str()),
            ("Last-Modified", date.as_str()),
            ("ETag", etag.as_str()),
            ("Accept-Ranges", "bytes"),
            ("Content-Encoding", coding.map_or("", |coding| coding.token())),
        ];
        let mut ours: Vec<_> = ours.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        if varies {
            ours.push(("Vary", "Accept-Encoding"));
        }
        let mut additions = fields::for_path(&context.options.fields, context.path);
        let own = match context.live {
            // A browser that guesses how long it may keep a style sheet would go on showing the old one.
            true => Some("no-cache"),
            false => context.is_immutable().then_some(IMMUTABLE),
        };
        if let Some(value) = own {
            additions.retain(|(name, _)| !name.eq_ignore_ascii_case("Cache-Control"));
            additions.push(("Cache-Control", value));
        }
        Representation { fields: Fields::new(&ours, &additions), etag, modified, length: id.size, content }
    }

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

/// Whether the file itself is the gzip coding of its media type, for every client.
pub(crate) fn is_gzip(name: &CString, options: &Options) -> bool {
    let name = name.to_bytes();
    media_types::is_gzip_of_type(name, media_types::media_type(name, &options.types))
}

/// What changes with the content of a file: its time, whose nanoseconds tell apart what is changed twice in a second. If that
/// is a constant: a hash of the content, which is the same on all hosts, or for larger files the time of the last change.
/// `None`: nothing is known to change.
fn version(id: &FileId, content: &Content) -> Option<String> {
    if id.is_dated() {
        return Some(format!("{:x}", id.modified_nanoseconds()));
    }
    let content = if id.size <= LARGEST_HASHED { content.read(id.size) } else { None };
    if let Some(content) = content {
        // Its keys are constants, unlike those of hash tables, so it is the same in all workers.
        let mut hasher = DefaultHasher::new();
        hasher.write(&content);
        return Some(format!("{:016x}", hasher.finish()));
    }
    id.change().map(|(changed, inode)| format!("{changed:x}.{inode:x}"))
}

/// A strong entity tag (RFC 9110 section 8.8.3). Copies in other codings are something else, so their tags differ even if they
/// are as old and as long.
fn etag(version: &str, size: u64, coding: Option<ContentCoding>) -> String {
    let suffix = coding.map_or(String::new(), |coding| format!("-{}", coding.extension()));
    format!("\"{version}-{size:x}{suffix}\"")
}
