//! Options of a published folder.

use std::path::PathBuf;
use std::sync::Arc;

use poorhttp_compress::Compression;

use crate::live_reload::LiveReload;

/// How a folder is published; `docs/reference/options.md` explains the options under `static_…`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Path of the folder.
    pub folder: PathBuf,
    /// File sent for its folder; empty: none.
    pub index: String,
    /// Whether folders without an index are listed.
    pub listing: bool,
    /// File sent to requests for a page that does not exist; empty: none.
    pub fallback: String,
    /// File sent with 404; empty: none.
    pub not_found: String,
    /// Fields to add: prefix of the decoded request path, name and value.
    pub fields: Vec<(String, String, String)>,
    /// Prefixes of decoded request paths below which files with hashed names never change.
    pub immutable: Vec<String>,
    /// Extensions in lower case without the dot, and their media types.
    pub types: Vec<(String, String)>,
    /// Charset of text; empty: none is sent.
    pub charset: String,
    /// Whether `FILE.br`, `FILE.zst`, `FILE.gz` are sent instead of `FILE`.
    pub precompressed: bool,
    /// Compresses files that have no precompressed copy, if files are compressed.
    pub compression: Option<Arc<Compression>>,
    /// Whether names that begin with a dot are served.
    pub hidden: bool,
    /// The live-reload script, if pages get one.
    pub live: Option<LiveReload>,
}
