//! Which files an application may name instead of sending them, by `X-Sendfile` and `X-Accel-Redirect`.

use std::borrow::Cow;

use poorhttp_http::{decoded_path, encode_latin1};

use crate::static_root::StaticRoot;

/// From where files may be delivered.
#[derive(Debug, Default)]
pub struct SendfileRoots {
    /// Absolute paths of folders without a slash at their end, for `X-Sendfile`.
    folders: Vec<(String, StaticRoot)>,
    /// Prefixes without a slash at their end, for `X-Accel-Redirect`.
    locations: Vec<(String, StaticRoot)>,
}

/// What an application has named.
#[derive(Debug)]
pub enum SendfileTarget {
    /// A path in the file system.
    File(String),
    /// A path of ours, as it would stand in a URL.
    Location(String),
}

impl SendfileRoots {
    /// Nothing is delivered.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.locations.is_empty()
    }

    /// Lets the files of a folder be named by their paths; `folder` is absolute.
    pub fn add_folder(&mut self, folder: &str, root: StaticRoot) {
        insert(&mut self.folders, folder.trim_end_matches('/'), root);
    }

    /// Lets the files of a folder be named below a prefix.
    pub fn add_location(&mut self, prefix: &str, root: StaticRoot) {
        insert(&mut self.locations, prefix.trim_end_matches('/'), root);
    }

    /// What a field of an answer names, if it is one of those that we understand.
    #[inline]
    pub fn understand(&self, name: &str, value: &str) -> Option<SendfileTarget> {
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

    /// The folder in which it is, its path, and where in it the name below the folder begins.
    pub fn find<'a>(&self, named: &'a SendfileTarget) -> Option<(&StaticRoot, Cow<'a, [u8]>, usize)> {
        let (table, path) = match named {
            SendfileTarget::File(path) => (&self.folders, bytes(path)),
            SendfileTarget::Location(location) => {
                let path = location.split('?').next().unwrap_or_default();
                (&self.locations, decoded_path(&bytes(path)).into_owned().into())
            }
        };
        let (folder, root) = table
            .iter()
            .find(|(folder, _)| path.starts_with(folder.as_bytes()) && path.get(folder.len()) == Some(&b'/'))?;
        Some((root, path, folder.len()))
    }
}

/// The longest first.
fn insert(table: &mut Vec<(String, StaticRoot)>, name: &str, root: StaticRoot) {
    let at = table.partition_point(|(known, _)| known.len() > name.len());
    table.insert(at, (name.into(), root));
}

/// The bytes of a field value, beyond Latin-1 in UTF-8.
fn bytes(text: &str) -> Cow<'_, [u8]> {
    encode_latin1(text).unwrap_or(Cow::Borrowed(text.as_bytes()))
}
