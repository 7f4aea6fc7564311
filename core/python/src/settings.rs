//! Options of a service, read from its Python settings.

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
        Some(seconds) if seconds > 0.0 => QueueLimit::Fixed((seconds * 1_000.0) as u64),
        Some(_) => QueueLimit::None,
    })
}

/// Reads an option given in seconds.
pub(crate) fn milliseconds(settings: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let seconds: f64 = option(settings, name)?;
    Ok((seconds.max(0.0) * 1_000.0) as u64)
}
