//! The arguments of compression, which its plug-in gives. `reactor.rs` calls this.

use std::sync::Arc;

use poorhttp_compress::{Compression, Levels, MediaTypes};
use poorhttp_http::ContentCoding;
use pyo3::prelude::*;

use crate::errors::value_error;

/// Compression of static files and of all other responses. `None`: they are not compressed.
pub(crate) type Compressions = (Option<Arc<Compression>>, Option<Arc<Compression>>);

/// The codings in order of preference, perhaps with `static`; their levels; media types; the smallest length.
pub(crate) type CompressionArguments = (Vec<String>, Vec<(String, i32)>, Vec<String>, u64);

/// Reads what the plug-in of compression gives.
pub(crate) fn compressions(arguments: Option<CompressionArguments>) -> PyResult<Compressions> {
    let Some((mut names, given_levels, types, min_size)) = arguments else { return Ok((None, None)) };
    let all = names.len();
    names.retain(|name| name != "static");
    let only_files = names.len() < all;
    if names.is_empty() {
        return Ok((None, None));
    }
    let coding = |name: &String| {
        ContentCoding::named(name).ok_or_else(|| value_error(format_args!("an unknown content coding, {name:?}")))
    };
    let codings = names.iter().map(coding).collect::<PyResult<Vec<_>>>()?;
    let mut levels = Levels::default();
    for (name, level) in given_levels {
        levels.set(coding(&name)?, level);
    }
    let compression = Arc::new(Compression::new(codings, MediaTypes::new(types), min_size, levels));
    Ok((Some(Arc::clone(&compression)), (!only_files).then_some(compression)))
}
