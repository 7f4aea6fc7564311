//! A file with all that is sent of it.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use poorhttp_http::{ConditionalFields, ContentCoding};
use rustix::fs::fstat;
use rustix::io::{Errno, pread};

use crate::fields::{self, Fields};
use crate::file_id::FileId;
use crate::folder::Folder;
use crate::options::Options;
use crate::precompressed::Precompressed;
use crate::reply::{Content, Reply};
use crate::representation::Representation;
use crate::{error_reply, live_reload, media_types};

/// How often a file that is written to is read again before its client is told to come later.
const MOST_RETRIES: usize = 3;

/// How the answers with a file are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryContext<'a> {
    pub(crate) options: &'a Options,
    /// The path that additional fields depend on.
    pub(crate) path: &'a [u8],
    /// Compressed copies stand in for it.
    pub(crate) precompressed: bool,
    /// It may change at any moment, and who has it is told.
    pub(crate) live: bool,
    /// Files up to this length are read, larger ones held open.
    pub(crate) small: u64,
    /// Seconds since 1970.
    pub(crate) now: u64,
    /// The look in which it is made.
    pub(crate) poll: u64,
}

/// A file with all that is sent of it.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Below the folder.
    name: CString,
    id: FileId,
    precompressed: Option<Precompressed>,
    /// All of its copies could be opened that should have been.
    complete: bool,
    /// As it is.
    plain: Representation,
    /// The fields that it has as a page to which something is added, if it is one.
    page: Option<Fields>,
    codings: Vec<ContentCoding>,
    /// Its compressed copies, in the order of `codings`.
    coded: Vec<Representation>,
    /// The last look in which it was compared with the file system.
    compared: AtomicU64,
    /// It was asked for once more since the cache last looked for what nobody asks for.
    used: AtomicBool,
}

impl Entry {
    /// Opens a file, and reads it if it is small.
    pub(crate) fn open(name: CString, folder: &Folder, context: &EntryContext<'_>) -> Result<Self, Errno> {
        let precompressed = context.precompressed.then(|| Precompressed::of(&name, folder, context.now));
        let (id, content) = open(&name, folder, context)?;
        let (mut copies, mut complete) = (Vec::new(), true);
        for copy in precompressed.iter().flat_map(|precompressed| precompressed.of_file(&id)) {
            match open(&copy.name, folder, context) {
                Ok((id, content)) if copy.is(&id) => copies.push((copy.coding, id, content)),
                // It has just been replaced.
                Ok(_) => complete = false,
                // One that leads outside, or cannot be read, is none; one that cannot be opened now is one later.
                Err(error) => complete &= !error_reply::is_temporary(error),
            }
        }
        let varies = !copies.is_empty();
        let plain = representation(&name, None, &id, content, varies, context);
        let page = context.live.then(|| live_reload::fields_of_page(&plain.fields, &context.options.charset)).flatten();
        let codings = copies.iter().map(|(coding, ..)| *coding).collect();
        let coded = copies.into_iter().map(|(coding, id, content)| {
            // What it is depends on the name of the file that it stands in for.
            representation(&name, Some(coding), &id, content, varies, context)
        });
        let coded = coded.collect();
        let compared = AtomicU64::new(context.poll);
        Ok(Entry {
            name,
            id,
            precompressed,
            complete,
            plain,
            page,
            codings,
            coded,
            compared,
            used: AtomicBool::new(false),
        })
    }

    /// Whether the file has been compared in this look, or a later one.
    #[inline]
    pub(crate) fn was_compared(&self, poll: u64) -> bool {
        self.compared.load(Ordering::Acquire) >= poll
    }

    /// Compares it with the file system: whether it is still what would be found.
    pub(crate) fn is_current(&self, folder: &Folder, poll: u64, now: u64) -> bool {
        let current = folder.stat(&self.name).is_ok_and(|id| id == self.id)
            && self.precompressed.as_ref().is_none_or(|precompressed| precompressed.are_current(folder, now));
        if current {
            self.compared.fetch_max(poll, Ordering::Release);
        }
        current
    }

    /// Whether it can be kept: no part of it may change without a sign of it.
    pub(crate) fn is_settled(&self, now: u64) -> bool {
        self.complete
            && !self.id.is_recent(now)
            && !self.precompressed.as_ref().is_some_and(|precompressed| precompressed.are_recent(now))
    }

    /// The form in which a client would rather have it.
    #[inline]
    pub(crate) fn select(&self, conditional: &ConditionalFields<'_>) -> &Representation {
        if self.codings.is_empty() {
            return &self.plain;
        }
        let chosen = conditional.coding(&self.codings);
        let at = self.codings.iter().position(|&coding| Some(coding) == chosen);
        at.and_then(|at| self.coded.get(at)).unwrap_or(&self.plain)
    }

    /// As it is.
    pub(crate) fn plain(&self) -> &Representation {
        &self.plain
    }

    /// The answer to somebody who will show it as a page, to which something is to be added.
    pub(crate) fn page(&self) -> Option<Reply> {
        let fields = Arc::clone(&self.page.as_ref()?.whole);
        Some(Reply { fields, ..self.plain.whole() })
    }

    /// Notes that somebody has asked for it.
    #[inline]
    pub(crate) fn set_used(&self) {
        // Most of the time it is set, and a look costs less than a write.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether somebody has asked for it since this was last asked.
    pub(crate) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    fn representations(&self) -> impl Iterator<Item = &Representation> {
        std::iter::once(&self.plain).chain(&self.coded)
    }

    /// Octets in memory.
    pub(crate) fn weight(&self) -> usize {
        self.representations().map(Representation::weight).sum()
    }

    /// Open files.
    pub(crate) fn descriptors(&self) -> usize {
        self.representations().filter(|representation| representation.content.is_on_disk()).count()
    }
}

fn open(name: &CString, folder: &Folder, context: &EntryContext<'_>) -> Result<(FileId, Content), Errno> {
    for retries in (0..MOST_RETRIES).rev() {
        let (file, id) = folder.file(name)?;
        if id.size > context.small {
            return Ok((id, Content::File { file: Arc::new(file), at: 0 }));
        }
        // What was written to meanwhile must not go by the name of what it was. If it never rests, it is as good as it gets.
        if let Some(content) = read(&file, id.size as usize)?
            && (retries == 0 || FileId::of(&fstat(&file)?) == id)
        {
            return Ok((id, Content::Memory(Arc::from(content))));
        }
    }
    Err(Errno::AGAIN)
}

/// Reads a file as far as its length was when it was opened. `None`: it has been cut short.
fn read(file: &OwnedFd, length: usize) -> Result<Option<Vec<u8>>, Errno> {
    let mut content = vec![0; length];
    let mut read = 0;
    while read < length {
        match pread(file, &mut content[read..], read as u64) {
            Ok(0) => return Ok(None),
            Ok(more) => read += more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(content))
}

fn representation(
    name: &CString,
    coding: Option<ContentCoding>,
    id: &FileId,
    content: Content,
    varies: bool,
    context: &EntryContext<'_>,
) -> Representation {
    let media_type = media_types::media_type(name.to_bytes(), &context.options.types);
    let charset = &context.options.charset;
    let media_type = match !charset.is_empty() && media_types::takes_charset(media_type) {
        true => format!("{media_type}; charset={charset}"),
        false => media_type.to_owned(),
    };
    let etag = etag(id, coding);
    let modified = id.last_modified();
    // A file that comes from the future is said to be of now (RFC 9110 section 8.8.2.1).
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(modified.min(context.now)));
    let mut ours = vec![
        ("Content-Type", media_type.as_str()),
        ("Last-Modified", date.as_str()),
        ("ETag", etag.as_str()),
        ("Accept-Ranges", "bytes"),
    ];
    if let Some(coding) = coding {
        ours.push(("Content-Encoding", coding.token()));
    }
    if varies {
        ours.push(("Vary", "Accept-Encoding"));
    }
    let mut additions = fields::for_path(&context.options.fields, context.path);
    if context.live {
        // A browser that guesses how long it may keep a style sheet would go on showing the old one.
        additions.retain(|(name, _)| !name.eq_ignore_ascii_case("Cache-Control"));
        additions.push(("Cache-Control", "no-cache"));
    }
    Representation { fields: Fields::new(&ours, &additions), etag, modified, length: id.size, content }
}

/// A strong entity tag (RFC 9110 section 8.8.3). The nanoseconds tell apart what is changed twice in a second. Copies in other
/// codings are something else, so their tags differ even if they are as old and as long.
fn etag(id: &FileId, coding: Option<ContentCoding>) -> String {
    let (seconds, nanoseconds) = id.modified;
    let modified = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    match coding {
        None => format!("\"{modified:x}-{:x}\"", id.size),
        Some(coding) => format!("\"{modified:x}-{:x}-{}\"", id.size, coding.extension()),
    }
}
