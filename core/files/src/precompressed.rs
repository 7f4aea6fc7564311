//! The compressed copies of a file that may lie beside it.

use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};

use poorhttp_http::ContentCoding;

use crate::file_id::FileId;
use crate::file_name::{c_string, parent};
use crate::folder::Folder;

/// The compressed copies of a file: which of them there are, and which may come.
#[derive(Debug)]
pub(crate) struct Precompressed {
    folder: CString,
    /// Of the folder when it was looked through; it changes when a name appears or disappears. `None`: it had just been
    /// changed, so that it cannot be told from one that changes again.
    id: Mutex<Option<FileId>>,
    known: Vec<CompressedCopy>,
}

/// One of them, which there may not be.
#[derive(Debug)]
pub(crate) struct CompressedCopy {
    pub(crate) coding: ContentCoding,
    pub(crate) name: CString,
    id: Option<FileId>,
}

impl Precompressed {
    /// Looks for those of a file.
    pub(crate) fn of(name: &CStr, folder: &Folder, now: u64) -> Self {
        let parent = parent(name);
        // Before the files are looked for: what appears between the two is not missed then.
        let id = settled(&parent, folder, now);
        let known = ContentCoding::ALL.map(|coding| {
            let name = c_string(&[name.to_bytes(), b".", coding.extension().as_bytes()]);
            let id = folder.stat(&name).ok();
            CompressedCopy { coding, name, id }
        });
        Precompressed { folder: parent, id: Mutex::new(id), known: known.into() }
    }

    /// Those that may stand in for a file: files that are not older than it.
    pub(crate) fn of_file(&self, file: &FileId) -> impl Iterator<Item = &CompressedCopy> {
        let stands_in = |id: &FileId| id.is_file() && id.modified >= file.modified;
        self.known.iter().filter(move |copy| copy.id.as_ref().is_some_and(stands_in))
    }

    /// Whether they are still what they were.
    pub(crate) fn are_current(&self, folder: &Folder, now: u64) -> bool {
        let is_current = |copy: &CompressedCopy| folder.stat(&copy.name).ok() == copy.id;
        let id = settled(&self.folder, folder, now);
        let mut known = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if id.is_some() && id == *known {
            // None has come. One that is there may have been written to.
            return self.known.iter().filter(|copy| copy.id.is_some()).all(is_current);
        }
        *known = None;
        let current = self.known.iter().all(is_current);
        if current {
            *known = id;
        }
        current
    }

    /// Whether one of them may still change unnoticed.
    pub(crate) fn are_recent(&self, now: u64) -> bool {
        self.known.iter().any(|copy| copy.id.is_some_and(|id| id.is_recent(now)))
    }
}

impl CompressedCopy {
    /// Whether a file that was opened is the one that was looked at.
    pub(crate) fn is(&self, id: &FileId) -> bool {
        self.id.as_ref() == Some(id)
    }
}

/// What a folder is told from its later self by, if it can be.
fn settled(name: &CStr, folder: &Folder, now: u64) -> Option<FileId> {
    folder.stat(name).ok().filter(|id| !id.is_recent(now))
}
