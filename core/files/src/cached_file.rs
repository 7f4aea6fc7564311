//! An open file, or one loaded into memory, with its representations: what the cache of static files keeps.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use poorhttp_compress::varying;
use poorhttp_http::{ConditionalFields, ContentCoding};
use rustix::fs::fstat;
use rustix::io::{Errno, pread};

use crate::compressed::{Compressed, Form};
use crate::fields::Fields;
use crate::file_context::FileContext;
use crate::file_id::FileId;
use crate::folder::Folder;
use crate::precompressed::Precompressed;
use crate::reply::{Content, Reply};
use crate::representation::{Representation, is_gzip};
use crate::{error_reply, live_reload};

/// Attempts to read a file that is being written to.
const MOST_RETRIES: usize = 3;

/// A file and its representations.
#[derive(Debug)]
pub(crate) struct CachedFile {
    /// Relative to the folder.
    name: CString,
    id: FileId,
    precompressed: Option<Precompressed>,
    /// Whether all compressed copies could be opened.
    complete: bool,
    /// Without a content coding.
    pub(crate) plain: Representation,
    /// Fields of the page with the live-reload script, if it is one.
    page: Option<Fields>,
    codings: Vec<ContentCoding>,
    /// The compressed copies, in the order of `codings`.
    coded: Vec<Representation>,
    /// Its content in other codings, if there are no such copies.
    compressed: Option<Compressed>,
    /// Number of the last poll in which it was compared with the file system.
    compared: AtomicU64,
    /// Used since the cache last looked for unused entries.
    used: AtomicBool,
}

impl CachedFile {
    /// Opens a file, and reads it if it is small.
    pub(crate) fn open(name: CString, folder: &Folder, context: &FileContext<'_>) -> Result<Self, Errno> {
        // A copy of a file that is compressed already would be compressed twice.
        let takes_copies = context.precompressed && !is_gzip(&name, context.options);
        let precompressed = takes_copies.then(|| Precompressed::of(&name, folder, context.now));
        let (id, content) = open(&name, folder, context)?;
        let (mut copies, mut complete) = (Vec::new(), true);
        for copy in precompressed.iter().flat_map(|precompressed| precompressed.of_file(&id)) {
            match open(&copy.name, folder, context) {
                Ok((id, content)) if copy.id == Some(id) => copies.push((copy.coding, id, content)),
                // Replaced since the search.
                Ok(_) => complete = false,
                // A copy outside of the root or an unreadable one is ignored; after a temporary error the entry is not cached.
                Err(error) => complete &= !error_reply::is_temporary(error),
            }
        }
        let varies = !copies.is_empty();
        let mut plain = Representation::of_file(&name, None, &id, content, varies, context);
        let page = context.live.then(|| live_reload::fields_of_page(&plain.fields, &context.options.charset)).flatten();
        let codings = copies.iter().map(|(coding, ..)| *coding).collect();
        let coded = copies.into_iter().map(|(coding, id, content)| {
            // Its media type is that of the original file's name.
            Representation::of_file(&name, Some(coding), &id, content, varies, context)
        });
        let coded = coded.collect();
        let compression = context.options.compression.as_ref().filter(|_| !varies);
        let compressed = compression.and_then(|compression| Compressed::new(compression, &plain));
        if compressed.is_some() {
            plain.fields = plain.fields.changed(|block| Some(varying(block)));
        }
        let compared = AtomicU64::new(context.poll);
        Ok(CachedFile {
            name,
            id,
            precompressed,
            complete,
            plain,
            page,
            codings,
            coded,
            compressed,
            compared,
            used: AtomicBool::new(false),
        })
    }

    /// Whether the file was compared in this poll, or a later one.
    #[inline]
    pub(crate) fn was_compared(&self, poll: u64) -> bool {
        self.compared.load(Ordering::Acquire) >= poll
    }

    /// Compares it with the file system.
    pub(crate) fn is_current(&self, folder: &Folder, poll: u64, now: u64) -> bool {
        let current = folder.stat(&self.name).is_ok_and(|id| id == self.id)
            && self.precompressed.as_ref().is_none_or(|precompressed| precompressed.are_current(folder, now));
        if current {
            self.compared.fetch_max(poll, Ordering::Release);
        }
        current
    }

    /// Whether it can be cached: no file of it may change without a new identity.
    pub(crate) fn is_settled(&self, now: u64) -> bool {
        self.complete
            && !self.id.is_recent(now)
            && !self.precompressed.as_ref().is_some_and(|precompressed| precompressed.are_recent(now))
    }

    /// The representation that the client prefers. `None`: it has to be made, and `may_wait` is not set.
    #[inline]
    pub(crate) fn select(&self, conditional: &ConditionalFields<'_>, may_wait: bool) -> Option<&Representation> {
        if let Some(compressed) = &self.compressed {
            return match compressed.select(&self.plain, conditional, may_wait) {
                Form::Plain => Some(&self.plain),
                Form::Compressed(representation) => Some(representation),
                Form::NotReady => None,
            };
        }
        if self.codings.is_empty() {
            return Some(&self.plain);
        }
        let chosen = conditional.coding(&self.codings);
        let at = self.codings.iter().position(|&coding| Some(coding) == chosen);
        Some(at.and_then(|at| self.coded.get(at)).unwrap_or(&self.plain))
    }

    /// The reply with fields for a page that gets the live-reload script.
    pub(crate) fn page(&self) -> Option<Reply> {
        let fields = Arc::clone(&self.page.as_ref()?.whole);
        Some(Reply { fields, ..self.plain.whole() })
    }

    /// Marks it as used.
    #[inline]
    pub(crate) fn set_used(&self) {
        // It is mostly set, and a read is cheaper than a write.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was used since the last call.
    pub(crate) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    fn representations(&self) -> impl Iterator<Item = &Representation> {
        std::iter::once(&self.plain).chain(&self.coded)
    }

    /// Bytes in memory.
    pub(crate) fn weight(&self) -> usize {
        let forms = self.compressed.as_ref().map_or(0, |_| Compressed::weight(self.plain.length));
        self.representations().map(Representation::weight).sum::<usize>() + forms
    }

    /// Open files.
    pub(crate) fn descriptors(&self) -> usize {
        self.representations().filter(|representation| representation.content.is_on_disk()).count()
    }
}

fn open(name: &CString, folder: &Folder, context: &FileContext<'_>) -> Result<(FileId, Content), Errno> {
    for retries in (0..MOST_RETRIES).rev() {
        let (file, id) = folder.file(name)?;
        if id.size > context.small {
            return Ok((id, Content::File { file: Arc::new(file), at: 0 }));
        }
        // A file written to meanwhile must not get the identity of its earlier version; the last attempt is accepted.
        if let Some(content) = read(&file, id.size as usize)?
            && (retries == 0 || FileId::of(&fstat(&file)?) == id)
        {
            return Ok((id, Content::Memory(Arc::from(content))));
        }
    }
    Err(Errno::AGAIN)
}

/// Reads `length` bytes of a file. `None`: it was truncated.
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
