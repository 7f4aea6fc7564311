//! Temporary files of request bodies, and of responses to slow clients.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::log::error::{ErrorLog, Level, RateLimit};

/// Bytes that are appended to one file. A file frees its space when all of it has been sent.
const MOST_IN_A_FILE: u64 = 64 << 20;

/// The folder of the temporary files: an absolute path.
#[derive(Clone, Debug)]
pub struct TempDir(pub PathBuf);

impl TempDir {
    /// Creates an unlinked file.
    pub(crate) fn create(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.0)
    }
}

impl Default for TempDir {
    fn default() -> Self {
        TempDir(std::env::temp_dir())
    }
}

/// The temporary files of all responses of a reactor.
#[derive(Debug)]
pub struct Spool {
    folder: TempDir,
    limit: u64,
    total: u64,
    error_log: Arc<ErrorLog>,
    /// Bytes that are in files now.
    used: AtomicU64,
    /// Responses cannot be spooled.
    full: RateLimit,
    /// Bytes that were ever written, in memory that other processes may read.
    written: Option<&'static AtomicU64>,
}

impl Default for Spool {
    fn default() -> Self {
        Spool::new(TempDir::default(), 1 << 30, 1 << 30, Arc::default())
    }
}

impl Spool {
    /// Files are created in `folder`, for at most `limit` bytes of a connection and `total` bytes of all.
    pub fn new(folder: TempDir, limit: u64, total: u64, error_log: Arc<ErrorLog>) -> Self {
        let (used, full) = (AtomicU64::new(0), RateLimit::default());
        Spool { folder, limit, total, error_log, used, full, written: None }
    }

    /// The same, and it counts there what it writes.
    pub fn counting(self, written: Option<&'static AtomicU64>) -> Self {
        Spool { written, ..self }
    }

    /// Writes `bytes` to `last`, a file and its length, or to a new file. `waiting` bytes of the same connection are in
    /// files already. Returns the file and the position; none if there is no room.
    pub(crate) fn write(
        self: &Arc<Self>,
        last: Option<(Arc<SpoolFile>, u64)>,
        bytes: &[u8],
        waiting: u64,
    ) -> Option<(Arc<SpoolFile>, u64)> {
        let length = bytes.len() as u64;
        if waiting + length > self.limit {
            return None;
        }
        let reserve = |used: u64| Some(used + length).filter(|&used| used <= self.total);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve).is_err() {
            self.log_limited(&format!("spool_total ({} bytes) is used up", self.total));
            return None;
        }
        let write = || {
            let (file, at) = match last {
                Some((file, end)) if end < MOST_IN_A_FILE => (file, end),
                _ => {
                    let (file, spool) = (self.folder.create()?, Arc::clone(self));
                    (Arc::new(SpoolFile { file, length: AtomicU64::new(0), spool }), 0)
                }
            };
            file.file.write_all_at(bytes, at)?;
            file.length.fetch_add(length, Ordering::Relaxed);
            if let Some(written) = self.written {
                written.fetch_add(length, Ordering::Relaxed);
            }
            Ok((file, at))
        };
        write()
            .inspect_err(|error: &io::Error| {
                self.used.fetch_sub(length, Ordering::Relaxed);
                self.log_limited(&format!("{} (temp_dir): {error}", self.folder.0.display()));
            })
            .ok()
    }

    #[cold]
    fn log_limited(&self, reason: &str) {
        if self.full.is_due() {
            let message =
                format!("a response cannot be spooled: {reason}; its application waits for the client instead");
            self.error_log.write(Level::Warning, &message);
        }
    }
}

/// An unlinked temporary file that holds a part of a response.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    pub(crate) file: File,
    length: AtomicU64,
    spool: Arc<Spool>,
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        self.spool.used.fetch_sub(*self.length.get_mut(), Ordering::Relaxed);
    }
}
