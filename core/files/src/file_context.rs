//! Parameters with which a file is opened for a request: options of the folder, request path, size limit, time.

use crate::fields;
use crate::hashed_name::is_hashed;
use crate::options::Options;

/// The parameters of [`crate::cached_file::CachedFile::open`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileContext<'a> {
    pub(crate) options: &'a Options,
    /// Request path, which selects additional fields.
    pub(crate) path: &'a [u8],
    /// Whether clients ask for the file by its path, and not an application.
    pub(crate) published: bool,
    /// Whether compressed copies are used.
    pub(crate) precompressed: bool,
    /// Whether live reload is on.
    pub(crate) live: bool,
    /// Files up to this length are loaded, larger ones held open.
    pub(crate) small: u64,
    /// Seconds since 1970.
    pub(crate) now: u64,
    /// Number of the current poll.
    pub(crate) poll: u64,
}

impl FileContext<'_> {
    /// Whether the file never changes under its name.
    pub(crate) fn is_immutable(&self) -> bool {
        self.published
            && self.options.immutable.iter().any(|prefix| fields::is_below(prefix, self.path))
            && is_hashed(self.path)
    }
}
