//! Compression options as Python gives them: codings, levels, media types; `reactor.rs` calls this.

use std::sync::Arc;

use poorhttp_compress::{Compression, Levels, MediaTypes};
use poorhttp_http::ContentCoding;
use pyo3::prelude::*;

use crate::errors::value_error;
use crate::ffi::ForeignEncoders;

/// Compression of static files and of all other responses. `None`: they are not compressed.
pub(crate) type Compressions = (Option<Arc<Compression>>, Option<Arc<Compression>>);

/// The codings in order of preference, perhaps with `static`; their levels; media types; the smallest length; the capsule of
/// `poorhttp.plugins.compression._codings`.
pub(crate) type CompressionArguments<'py> = (Vec<String>, Vec<(String, i32)>, Vec<String>, u64, Bound<'py, PyAny>);

/// Reads what the plug-in of compression gives.
pub(crate) fn compressions(arguments: Option<CompressionArguments<'_>>) -> PyResult<Compressions> {
    let Some((mut names, given_levels, types, min_size, encoders)) = arguments else { return Ok((None, None)) };
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
    let encoders = Arc::new(ForeignEncoders::of(&encoders)?);
    let compression = Arc::new(Compression::new(codings, MediaTypes::new(types), min_size, levels, encoders));
    Ok((Some(Arc::clone(&compression)), (!only_files).then_some(compression)))
}
