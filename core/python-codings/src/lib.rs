//! `poorhttp.plugins.compression._codings`: encoders of content codings, for the reactor of `poorhttp._core`.
//!
//! ```text
//! ffi.rs   the table of C functions
//! ```

mod ffi;

/// Encoders of gzip, Brotli and zstd, for the reactor.
#[pyo3::pymodule(gil_used = true)]
mod _codings {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("encoders", super::ffi::capsule(module.py())?)
    }
}
