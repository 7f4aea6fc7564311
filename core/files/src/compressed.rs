//! The content of a file in the codings that were asked for: made once, and kept with the file.

use std::sync::{Arc, OnceLock};

use poorhttp_compress::{Choice, Compression};
use poorhttp_http::{ConditionalFields, ContentCoding};

use crate::reply::Content;
use crate::representation::Representation;

/// Bytes up to which a file is compressed: the first request waits for it. Larger files are sent as they are.
const LARGEST: u64 = 1 << 20;

/// The compressed forms of a file.
#[derive(Debug)]
pub(crate) struct Compressed {
    compression: Arc<Compression>,
    /// By coding; `None` inside: it would not be smaller, or could not be made.
    made: [OnceLock<Option<Representation>>; 3],
}

/// The form of a file that a client gets.
pub(crate) enum Form<'a> {
    /// The plain one.
    Plain,
    /// A compressed one.
    Compressed(&'a Representation),
    /// A compressed one that is not made yet, and must not be made now.
    NotReady,
}

impl Compressed {
    /// `None`: this file is compressed for nobody.
    pub(crate) fn new(compression: &Arc<Compression>, plain: &Representation) -> Option<Self> {
        let made = [const { OnceLock::new() }; 3];
        let is_eligible = plain.length <= LARGEST && compression.is_eligible(&plain.fields.whole, plain.length);
        is_eligible.then(|| Compressed { compression: Arc::clone(compression), made })
    }

    /// The form for this request.
    pub(crate) fn select(&self, plain: &Representation, request: &ConditionalFields<'_>, may_wait: bool) -> Form<'_> {
        // Ranges are those of the plain file: a range of compressed bytes would be of no use with other encoders.
        let choice = match request.has_range() {
            true => None,
            false => self.compression.choose(200, &plain.fields.whole, Some(plain.length), request),
        };
        let Some((choice, coding)) = choice.and_then(|choice| Some((choice, choice.coding?))) else {
            return Form::Plain;
        };
        let made = &self.made[coding as usize];
        let made = match made.get() {
            None if !may_wait => return Form::NotReady,
            None => made.get_or_init(|| self.make(plain, choice, coding)),
            Some(made) => made,
        };
        made.as_ref().map_or(Form::Plain, Form::Compressed)
    }

    fn make(&self, plain: &Representation, choice: Choice, coding: ContentCoding) -> Option<Representation> {
        let content = plain.content.read(plain.length)?;
        let coded = self.compression.whole(coding, &[&content]).filter(|coded| coded.len() < content.len())?;
        Some(Representation {
            fields: plain.fields.changed(|block| self.compression.fields(block, Some(choice))),
            // Another version of the server may make other bytes.
            etag: if plain.etag.is_empty() { String::new() } else { format!("W/{}", plain.etag) },
            modified: plain.modified,
            length: coded.len() as u64,
            content: Content::Memory(coded.into()),
        })
    }

    /// Bytes in memory that all forms of a file of this length may need.
    pub(crate) fn weight(length: u64) -> usize {
        usize::try_from(length).unwrap_or(usize::MAX)
    }
}
