//! Opens files by name, below one folder only.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, fstat, open, openat2, statat};
use rustix::io::Errno;

use crate::file_id::FileId;
use crate::walk::walk;

/// How names are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// By openat2(2), or like `Walk` where that is refused.
    Kernel,
    /// Segment by segment ([`walk`]).
    Walk,
}

/// Attempts to resolve a name while folders are being moved.
const MOST_RETRIES: usize = 16;

/// A folder that opens no file outside of itself: `..` and symbolic links above its top, and absolute links, are refused
/// (openat2(2), `RESOLVE_BENEATH`).
#[derive(Debug)]
pub(crate) struct Folder {
    top: OwnedFd,
    id: FileId,
    pub(crate) resolver: Resolver,
}

impl Folder {
    pub(crate) fn open(path: &Path, resolver: Resolver) -> Result<Self, Errno> {
        let top = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let id = FileId::of(&fstat(&top)?);
        Ok(Folder { top, id, resolver })
    }

    /// Whether `path` still names this folder.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        statat(CWD, path, AtFlags::empty()).is_ok_and(|stat| self.id.is_same_file(&FileId::of(&stat)))
    }

    /// Stats a name, even if links lead outside: only to compare it, or to see that it does not exist. It is not opened, as
    /// opening a device may have effects.
    pub(crate) fn stat(&self, name: &CStr) -> Result<FileId, Errno> {
        statat(&self.top, name, AtFlags::NO_AUTOMOUNT).map(|stat| FileId::of(&stat))
    }

    /// Opens a regular file. The error for a folder is EISDIR, for other kinds ENOENT.
    pub(crate) fn file(&self, name: &CStr) -> Result<(OwnedFd, FileId), Errno> {
        let id = self.stat(name)?;
        if !id.is_file() {
            return Err(if id.is_folder() { Errno::ISDIR } else { Errno::NOENT });
        }
        // Another file may have replaced it: do not block on a FIFO, do not acquire a controlling terminal.
        let file = self.resolve(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let id = FileId::of(&fstat(&file)?);
        if id.is_file() { Ok((file, id)) } else { Err(Errno::NOENT) }
    }

    /// Opens a folder to read its names.
    pub(crate) fn folder(&self, name: &CStr) -> Result<OwnedFd, Errno> {
        self.resolve(name, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Stats a name that must be below the folder.
    pub(crate) fn stat_beneath(&self, name: &CStr) -> Result<FileId, Errno> {
        fstat(self.resolve(name, OFlags::PATH)?).map(|stat| FileId::of(&stat))
    }

    fn resolve(&self, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        if self.resolver == Resolver::Walk {
            return walk(&self.top, name, flags);
        }
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..MOST_RETRIES {
            match openat2(&self.top, name, flags, Mode::empty(), how) {
                // A folder was moved while `..` was resolved.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // An old kernel, or a seccomp filter.
                Err(Errno::NOSYS | Errno::PERM) => return walk(&self.top, name, flags),
                found => return found,
            }
        }
        Err(Errno::AGAIN)
    }
}
