//! Functions that read single options from Python settings: times, `queue_timeout`; and the arguments of
//! compression. `reactor.rs` calls them.

use std::sync::Arc;

use poorhttp_compress::{Compression, Levels, MediaTypes};
use poorhttp_http::ContentCoding;
use poorhttp_reactor::QueueLimit;
use pyo3::prelude::*;

use crate::errors::value_error;
use crate::ffi::ForeignEncoders;

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
