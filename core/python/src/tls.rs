//! Takes the certificates of the extension module `_tls` from Python, and turns on kernel TLS (tls(7)).

use std::sync::Arc;

use poorhttp_interface::tls::Certificates;
use poorhttp_reactor::KernelTls;
use pyo3::prelude::*;

use crate::ffi;

/// The certificates of an object with an attribute `shared`, a capsule: a `TlsConfig` of `poorhttp.plugins.tls._tls`.
pub(crate) fn certificates(config: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Certificates>> {
    let shared = config.getattr("shared")?;
    Ok(Arc::new(ffi::ForeignCertificates::of(&shared)?))
}

/// Has the kernel encrypt what connections of this process send, where it can; the module of the kernel is loaded for that, if
/// this process may. Returns the versions and ciphers.
#[pyfunction]
pub(crate) fn use_kernel_tls() -> Vec<String> {
    let calls = KernelTls { set_option: ffi::set_option, send_record: ffi::send_record };
    calls.enable().map(|records| records.to_string()).collect()
}
