//! `poorhttp.plugins.tls._tls`: certificates as Python classes, and TLS sessions for the reactor of `poorhttp._core`.
//! `_tls.pyi` documents it for Python.
//!
//! ```text
//! certificates.rs   the classes of certificates and of the contents of their files
//! errors.rs         errors as Python exceptions
//! ffi.rs            the table of C functions, and a descriptor of Python
//! ```

mod certificates;
mod errors;
mod ffi;

/// Certificates of a service, and TLS sessions for the reactor.
#[pyo3::pymodule(gil_used = true)]
mod _tls {
    #[pymodule_export]
    use super::certificates::{TlsConfig, TlsSettings, advance_tickets, self_signed};
}
