//! The compressed copies of a file that may lie beside it.

use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};

use poorhttp_http::ContentCoding;

use crate::file_id::Stamp;
use crate::file_name::{c_string, parent};
use crate::folder::Folder;

/// The compressed copies of a file: which of them there are, and which may come.
#[derive(Debug)]
pub(crate) struct Siblings {
    folder: CString,
    /// Of the folder when it was looked through; it changes when a name appears or disappears. `None`: it had just been
    /// changed, so that it cannot be told from one that changes again.
    stamp: Mutex<Option<Stamp>>,
    known: Vec<Sibling>,
}

/// One of them, which there may not be.
#[derive(Debug)]
pub(crate) struct Sibling {
    pub(crate) coding: ContentCoding,
    pub(crate) name: CString,
    stamp: Option<Stamp>,
}

impl Siblings {
    /// Looks for those of a file.
    pub(crate) fn of(name: &CStr, folder: &Folder, now: u64) -> Self {
        let parent = parent(name);
        // Before the files are looked for: what appears between the two is not missed then.
        let stamp = settled(&parent, folder, now);
        let known = ContentCoding::ALL.map(|coding| {
            let name = c_string(&[name.to_bytes(), b".", coding.extension().as_bytes()]);
            let stamp = folder.look(&name).ok();
            Sibling { coding, name, stamp }
        });
        Siblings { folder: parent, stamp: Mutex::new(stamp), known: known.into() }
    }

    /// Those that may stand in for a file: files that are not older than it.
    pub(crate) fn of_file(&self, file: &Stamp) -> impl Iterator<Item = &Sibling> {
        let stands_in = |stamp: &Stamp| stamp.is_file() && stamp.modified >= file.modified;
        self.known.iter().filter(move |sibling| sibling.stamp.as_ref().is_some_and(stands_in))
    }

    /// Whether they are still what they were.
    pub(crate) fn are_current(&self, folder: &Folder, now: u64) -> bool {
        let is_current = |sibling: &Sibling| folder.look(&sibling.name).ok() == sibling.stamp;
        let stamp = settled(&self.folder, folder, now);
        let mut known = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp.is_some() && stamp == *known {
            // None has come. One that is there may have been written to.
            return self.known.iter().filter(|sibling| sibling.stamp.is_some()).all(is_current);
        }
        *known = None;
        let current = self.known.iter().all(is_current);
        if current {
            *known = stamp;
        }
        current
    }

    /// Whether one of them may still change unnoticed.
    pub(crate) fn are_fresh(&self, now: u64) -> bool {
        self.known.iter().any(|sibling| sibling.stamp.is_some_and(|stamp| stamp.is_fresh(now)))
    }
}

impl Sibling {
    /// Whether a file that was opened is the one that was looked at.
    pub(crate) fn is(&self, stamp: &Stamp) -> bool {
        self.stamp.as_ref() == Some(stamp)
    }
}

/// What a folder is told from its later self by, if it can be.
fn settled(name: &CStr, folder: &Folder, now: u64) -> Option<Stamp> {
    folder.look(name).ok().filter(|stamp| !stamp.is_fresh(now))
}
