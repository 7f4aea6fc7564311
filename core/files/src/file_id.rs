//! Identity of one version of a file: device, inode, mode, size and times.

use rustix::fs::{FileType, Stat};

/// Resolution of a file system's times in seconds, at worst (FAT). A file that changed within it may change again with the
/// same times.
const TICK: u64 = 2;

/// 1990-01-01, in seconds since 1970. Earlier times are constants: 0 (OSTree, ko), 1 (Nix, Guix, Jib), 1980-01-01 in any time
/// zone (ZIP), 1985-10-26 (npm).
const CONSTANTS_END: i64 = 631_152_000;

/// Identity of one version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
    mode: u32,
    pub(crate) size: u64,
    /// Seconds and nanoseconds.
    pub(crate) modified: (i64, u64),
    changed: (i64, u64),
}

impl FileId {
    // The fields have other types on other platforms.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    pub(crate) fn of(stat: &Stat) -> Self {
        FileId {
            device: stat.st_dev.into(),
            inode: stat.st_ino.into(),
            mode: stat.st_mode.into(),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    pub(crate) fn is_folder(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }

    pub(crate) fn is_link(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Symlink
    }

    /// Whether both are the same file, changed or not.
    pub(crate) fn is_same_file(&self, other: &FileId) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether the file may still change without a new identity.
    pub(crate) fn is_recent(&self, now: u64) -> bool {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        // The modification time can be set; the change time is the file system's clock, which may be ahead of ours.
        self.changed.0 >= now.saturating_sub_unsigned(TICK) || self.modified.0.abs_diff(now) <= TICK
    }

    /// Seconds since 1970; before that, 0.
    pub(crate) fn modified_since_1970(&self) -> u64 {
        u64::try_from(self.modified.0).unwrap_or(0)
    }

    /// Whether the modification time is one: package managers set a constant one, so that archives do not depend on the clock.
    pub(crate) fn is_dated(&self) -> bool {
        self.modified.0 >= CONSTANTS_END
    }

    /// Time of the last change to the file or its names, in nanoseconds, and number of the file. `None`: that time is a constant
    /// too, as in images of read-only file systems.
    pub(crate) fn change(&self) -> Option<(i128, u64)> {
        (self.changed.0 >= CONSTANTS_END).then(|| (nanoseconds(self.changed), self.inode))
    }

    /// Modification time in nanoseconds.
    pub(crate) fn modified_nanoseconds(&self) -> i128 {
        nanoseconds(self.modified)
    }
}

fn nanoseconds((seconds, rest): (i64, u64)) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}
