//! Temporary files for what does not fit into memory.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// The folder of the temporary files.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Files are created in `folder`, an absolute path.
    pub fn new(folder: PathBuf) -> Self {
        TempDir(folder)
    }

    /// Creates a file without a name.
    pub(crate) fn create(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.0)
    }
}

impl Default for TempDir {
    fn default() -> Self {
        TempDir(std::env::temp_dir())
    }
}
