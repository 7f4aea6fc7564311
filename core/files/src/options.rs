//! Options of a published folder.

use std::path::PathBuf;

use crate::live_reload::LiveReload;

/// How a folder is published; what each means stands in `docs/options.md`, under `static_…`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder.
    pub folder: PathBuf,
    /// File that stands for its folder; empty: none.
    pub index: String,
    /// Folders without an index are listed.
    pub listing: bool,
    /// File that is sent with 404; empty: none.
    pub not_found: String,
    /// Prefix of the path (as a client writes it, decoded), name and value of fields to add.
    pub fields: Vec<(String, String, String)>,
    /// Extension in lower case without its dot, and media type.
    pub types: Vec<(String, String)>,
    /// Of text; empty: none is named.
    pub charset: String,
    /// `FILE.br`, `FILE.zst`, `FILE.gz` stand in for `FILE`.
    pub precompressed: bool,
    /// Names that begin with a dot are served.
    pub hidden: bool,
    /// Pages reload themselves.
    pub live: Option<LiveReload>,
}
