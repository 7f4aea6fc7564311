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
                Some(SendfileTarget::File(value.trim_matches([' ', '\t']).into()))
            }
            16 if name.eq_ignore_ascii_case("X-Accel-Redirect") && !self.locations.is_empty() => {
                Some(SendfileTarget::Location(value.trim_matches([' ', '\t']).into()))
            }
            _ => None,
        }
    }

    /// The files that may be meant, the likeliest first: folder, path, and the offset of the name below the folder in it.
    ///
    /// The value of a header field is bytes in Latin-1 (PEP 3333), but many applications give the name as text: `é` then is one
    /// byte, which on the disk is two. nginx decodes percent-encoding in locations; lighttpd and mod_xsendfile in paths as well.
    pub fn find<'a>(&self, named: &'a SendfileTarget) -> impl Iterator<Item = (&StaticRoot, Cow<'a, [u8]>, usize)> {
        let table = match named {
            SendfileTarget::File(_) => &self.folders,
            SendfileTarget::Location(_) => &self.locations,
        };
        paths(named).into_iter().filter_map(|path| {
            let (folder, root) = table
                .iter()
                .find(|(folder, _)| path.starts_with(folder.as_bytes()) && path.get(folder.len()) == Some(&b'/'))?;
            Some((root, path, folder.len()))
        })
    }
}

/// Inserts a folder; the longest name is first.
fn insert(table: &mut Vec<(String, StaticRoot)>, name: &str, root: StaticRoot) {
    let at = table.partition_point(|(known, _)| known.len() > name.len());
    table.insert(at, (name.into(), root));
}

/// The paths that a field value may mean, without repetitions.
fn paths(named: &SendfileTarget) -> Vec<Cow<'_, [u8]>> {
    let (text, is_location) = match named {
        SendfileTarget::File(path) => (path.as_str(), false),
        SendfileTarget::Location(location) => (location.split('?').next().unwrap_or_default(), true),
    };
    let spellings = || encode_latin1(text).into_iter().chain([Cow::Borrowed(text.as_bytes())]);
    let decoded = spellings().map(|path| Cow::Owned(percent_decoded(&path).into_owned()));
    let mut paths: Vec<Cow<'_, [u8]>> = Vec::new();
    for path in spellings().filter(|_| !is_location).chain(decoded) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}
