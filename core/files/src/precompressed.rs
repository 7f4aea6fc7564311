//! Compressed copies of a file beside it: `FILE.br`, `FILE.zst`, `FILE.gz`.

use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};

use poorhttp_http::ContentCoding;

use crate::file_id::FileId;
use crate::file_name::{c_string, parent};
use crate::folder::Folder;

/// The possible compressed copies of a file.
#[derive(Debug)]
pub(crate) struct Precompressed {
    folder: CString,
    /// Identity of the folder when it was searched, which changes with the names in it. `None`: too recent to show a further
    /// change.
    id: Mutex<Option<FileId>>,
    known: Vec<CompressedCopy>,
}

/// A possible compressed copy.
#[derive(Debug)]
pub(crate) struct CompressedCopy {
    pub(crate) coding: ContentCoding,
    pub(crate) name: CString,
    pub(crate) id: Option<FileId>,
}

impl Precompressed {
    /// Looks for the copies of a file.
    pub(crate) fn of(name: &CStr, folder: &Folder, now: u64) -> Self {
        let parent = parent(name);
        // Read before the search, so that a copy that appears meanwhile shows as a change.
        let id = settled(&parent, folder, now);
        let known = ContentCoding::ALL.map(|coding| {
            let name = c_string(&[name.to_bytes(), b".", coding.extension().as_bytes()]);
            let id = folder.stat(&name).ok();
            CompressedCopy { coding, name, id }
        });
        Precompressed { folder: parent, id: Mutex::new(id), known: known.into() }
    }

    /// The copies that may be sent instead of a file: those not older than it.
    pub(crate) fn of_file(&self, file: &FileId) -> impl Iterator<Item = &CompressedCopy> {
        let stands_in = |id: &FileId| id.is_file() && id.modified >= file.modified;
        self.known.iter().filter(move |copy| copy.id.as_ref().is_some_and(stands_in))
    }

    /// Whether no copy has appeared, changed or gone.
    pub(crate) fn are_current(&self, folder: &Folder, now: u64) -> bool {
        let is_current = |copy: &CompressedCopy| folder.stat(&copy.name).ok() == copy.id;
        let id = settled(&self.folder, folder, now);
        let mut known = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if id.is_some() && id == *known {
            // No copy has appeared; an existing one may have been written to.
            return self.known.iter().filter(|copy| copy.id.is_some()).all(is_current);
        }
        *known = None;
        let current = self.known.iter().all(is_current);
        if current {
            *known = id;
        }
        current
    }

    /// Whether a copy may still change without a new [`FileId`].
    pub(crate) fn are_recent(&self, now: u64) -> bool {
        self.known.iter().any(|copy| copy.id.is_some_and(|id| id.is_recent(now)))
    }
}

/// Identity of a folder, unless it is too recent.
fn settled(name: &CStr, folder: &Folder, now: u64) -> Option<FileId> {
    folder.stat(name).ok().filter(|id| !id.is_recent(now))
}
