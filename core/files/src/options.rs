//! Options of a published folder, the same fields as `StaticOptions` in `poorhttp/worker/options.py`.

use std::path::PathBuf;
use std::sync::Arc;

use poorhttp_compress::Compression;

use crate::live_reload::LiveReload;

/// Gives the macro `$then` each option of a published folder that the configuration has: field, name in the configuration, type.
/// The class `StaticOptions` of Python (`poorhttp/worker/options.py`) has the same fields, under these names.
#[macro_export]
macro_rules! with_static_options {
    ($then:ident) => {
        $then! {
            /// File sent for its folder; empty: none.
            index static_index: String,
            /// Whether folders without an index are listed.
            listing static_listing: bool,
            /// File sent to requests for a page that does not exist; empty: none.
            fallback static_fallback: String,
            /// File sent with 404; empty: none.
            not_found static_not_found: String,
            /// Fields to add: prefix of the decoded request path, name and value.
            fields static_header: Vec<(String, String, String)>,
            /// Prefixes of decoded request paths below which files with hashed names never change.
            immutable static_immutable: Vec<String>,
            /// Extensions in lower case without the dot, and their media types.
            types static_type: Vec<(String, String)>,
            /// Charset of text; empty: none is sent.
            charset static_charset: String,
            /// Whether `FILE.br`, `FILE.zst`, `FILE.gz` are sent instead of `FILE`.
            precompressed static_precompressed: bool,
            /// Whether names that begin with a dot are served.
            hidden static_hidden: bool,
            /// Whether requests for which there is no file go to the application.
            falls_through static_fallthrough: bool,
        }
    };
}

macro_rules! declare_options {
    ($($(#[$text:meta])* $field:ident $name:ident: $type:ty,)*) => {
        /// How a folder is published; `docs/reference/options.md` explains the options under `static_…`.
        #[derive(Clone, Debug, Default)]
        pub struct Options {
            /// Path of the folder.
            pub folder: PathBuf,
            $($(#[$text])* pub $field: $type,)*
            /// Compresses files that have no precompressed copy, if files are compressed.
            pub compression: Option<Arc<Compression>>,
            /// The live-reload script, if pages get one.
            pub live: Option<LiveReload>,
        }
    };
}

with_static_options!(declare_options);
