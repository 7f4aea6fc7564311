//! Folders whose files an application may have sent by `X-Sendfile` and `X-Accel-Redirect`.

use std::borrow::Cow;

use poorhttp_http::{encode_latin1, percent_decoded};

use crate::static_root::StaticRoot;

/// Folders from which files may be sent; by default none.
#[derive(Debug, Default)]
pub struct SendfileRoots {
    /// By absolute path without a trailing slash, for `X-Sendfile`.
    folders: Vec<(String, StaticRoot)>,
    /// By URL prefix without a trailing slash, for `X-Accel-Redirect`.
    locations: Vec<(String, StaticRoot)>,
}

/// A file that an application has named.
#[derive(Debug)]
pub enum SendfileTarget {
    /// A path in the file system.
    File(String),
    /// A URL path.
    Location(String),
}

impl SendfileRoots {
    /// Whether there are no folders.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.locations.is_empty()
    }

    /// Allows files of a folder by their absolute paths.
    pub fn add_folder(&mut self, folder: &str, root: StaticRoot) {
        insert(&mut self.folders, folder.trim_end_matches('/'), root);
    }

    /// Allows files of a folder below a URL prefix.
    pub fn add_location(&mut self, prefix: &str, root: StaticRoot) {
        insert(&mut self.locations, prefix.trim_end_matches('/'), root);
    }

    /// The file that a response field names, if it is an enabled one of the two.
    #[inline]
    pub fn target_of(&self, name: &str, value: &str) -> Option<SendfileTarget> {
        match name.len() {
            10 if name.eq_ignore_ascii_case("X-Sendfile") && !self.folders.is_empty() => {
                Some(SendfileTarget::File(value.trim().into()))
            }
            16 if name.eq_ignore_ascii_case("X-Accel-Redirect") && !self.locations.is_empty() => {
                Some(SendfileTarget::Location(value.trim().into()))
            }
            _ => None,
        }
    }

    /// The folder of a file, the file's path, and the offset of the name below the folder in it.
    pub fn find<'a>(&self, named: &'a SendfileTarget) -> Option<(&StaticRoot, Cow<'a, [u8]>, usize)> {
        let (table, path) = match named {
            SendfileTarget::File(path) => (&self.folders, bytes(path)),
            SendfileTarget::Location(location) => {
                let path = location.split('?').next().unwrap_or_default();
                (&self.locations, percent_decoded(&bytes(path)).into_owned().into())
            }
        };
        let (folder, root) = table
            .iter()
            .find(|(folder, _)| path.starts_with(folder.as_bytes()) && path.get(folder.len()) == Some(&b'/'))?;
        Some((root, path, folder.len()))
    }
}

/// Inserts a folder; the longest name is first.
fn insert(table: &mut Vec<(String, StaticRoot)>, name: &str, root: StaticRoot) {
    let at = table.partition_point(|(known, _)| known.len() > name.len());
    table.insert(at, (name.into(), root));
}

/// The bytes of a field value: Latin-1 if possible, otherwise UTF-8.
fn bytes(text: &str) -> Cow<'_, [u8]> {
    encode_latin1(text).unwrap_or(Cow::Borrowed(text.as_bytes()))
}
