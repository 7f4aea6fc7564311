//! Functions that read single options from Python settings: times, `queue_timeout`, compression. `reactor.rs` calls them.

use std::sync::Arc;

use poorhttp_compress::{Compression, Levels, MediaTypes};
use poorhttp_http::ContentCoding;
use poorhttp_reactor::QueueLimit;
use pyo3::prelude::*;

use crate::errors::value_error;

pub(crate) fn option<T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>>(
    settings: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<T> {
    let value = settings.getattr(name)?;
    value.extract::<T>().map_err(|error| value_error(format_args!("option {name}: {error}")))
}

/// Reads `queue_timeout`: a time, or `auto`, which is None in Python.
pub(crate) fn queue_limit(settings: &Bound<'_, PyAny>) -> PyResult<QueueLimit> {
    Ok(match option::<Option<f64>>(settings, "queue_timeout")? {
        None => QueueLimit::Adaptive,
        Some(seconds) if seconds > 0.0 => QueueLimit::Fixed(whole_milliseconds(seconds)),
        Some(_) => QueueLimit::None,
    })
}

/// Reads an option given in seconds.
pub(crate) fn milliseconds(settings: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    Ok(whole_milliseconds(option(settings, name)?))
}

/// Whole milliseconds, rounded up: 0 has another meaning than a short time.
fn whole_milliseconds(seconds: f64) -> u64 {
    // A product such as 70.00000000000001 is no part of a millisecond more.
    let milliseconds = (seconds.max(0.0) * 1_000.0 - 1e-6).ceil() as u64;
    milliseconds.max(u64::from(seconds > 0.0))
}

/// Reads an option given in seconds.
pub(crate) fn microseconds(settings: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let seconds: f64 = option(settings, name)?;
    Ok((seconds.max(0.0) * 1_000_000.0).ceil() as u64)
}

/// Compression of static files and of all other responses. `None`: they are not compressed.
pub(crate) type Compressions = (Option<Arc<Compression>>, Option<Arc<Compression>>);

/// Reads the options of compression.
pub(crate) fn compression(settings: &Bound<'_, PyAny>) -> PyResult<Compressions> {
    let mut names: Vec<String> = option(settings, "compress")?;
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
    for (name, level) in option::<Vec<(String, i32)>>(settings, "compress_level")? {
        levels.set(coding(&name)?, level);
    }
    let types = MediaTypes::new(option::<Vec<String>>(settings, "compress_types")?);
    let compression = Arc::new(Compression::new(codings, types, option(settings, "compress_min_size")?, levels));
    Ok((Some(Arc::clone(&compression)), (!only_files).then_some(compression)))
}
