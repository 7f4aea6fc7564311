//! Names into files, below a folder only.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, fstat, open, openat2, statat};
use rustix::io::Errno;

use crate::file_id::FileId;
use crate::walk::walk;

/// Who finds the way to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// The kernel, as long as it is willing.
    Kernel,
    /// We, segment by segment.
    Walk,
}

/// How often a name is looked up while folders are being moved below our feet.
const MOST_RETRIES: usize = 16;

/// A folder. Whatever name it is asked for, nothing outside of it is opened: `..` and symbolic links lead as far as its top
/// and no further, absolute ones nowhere (openat2(2), `RESOLVE_BENEATH`).
#[derive(Debug)]
pub(crate) struct Folder {
    top: OwnedFd,
    id: FileId,
    resolver: Resolver,
}

impl Folder {
    pub(crate) fn open(path: &Path, resolver: Resolver) -> Result<Self, Errno> {
        let top = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let id = FileId::of(&fstat(&top)?);
        Ok(Folder { top, id, resolver })
    }

    pub(crate) fn resolver(&self) -> Resolver {
        self.resolver
    }

    /// Whether this is still the folder of that name.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        statat(CWD, path, AtFlags::empty()).is_ok_and(|stat| self.id.is_same_file(&FileId::of(&stat)))
    }

    /// Looks at what has a name, wherever links may lead: enough to compare, or to see that there is nothing. Nothing is
    /// opened, so that no device notices.
    pub(crate) fn stat(&self, name: &CStr) -> Result<FileId, Errno> {
        statat(&self.top, name, AtFlags::NO_AUTOMOUNT).map(|stat| FileId::of(&stat))
    }

    /// Opens a regular file. Of anything else but a folder (EISDIR) it is said that it is not there.
    pub(crate) fn file(&self, name: &CStr) -> Result<(OwnedFd, FileId), Errno> {
        let id = self.stat(name)?;
        if !id.is_file() {
            return Err(if id.is_folder() { Errno::ISDIR } else { Errno::NOENT });
        }
        // Another file may have taken its place: a FIFO is not waited for, a terminal does not become ours.
        let file = self.resolve(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let id = FileId::of(&fstat(&file)?);
        if id.is_file() { Ok((file, id)) } else { Err(Errno::NOENT) }
    }

    /// Opens a folder to read its names.
    pub(crate) fn folder(&self, name: &CStr) -> Result<OwnedFd, Errno> {
        self.resolve(name, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// What has a name, if it is below the folder.
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
                // Something was moved while `..` of a link was looked up.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // An old kernel, or one that is not allowed to (seccomp).
                Err(Errno::NOSYS | Errno::PERM) => return walk(&self.top, name, flags),
                found => return found,
            }
        }
        Err(Errno::AGAIN)
    }
}
