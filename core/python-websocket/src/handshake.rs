//! The class of an opening handshake: what is wrong with it, its answer, and the WebSocket that it opens.

use std::os::fd::RawFd;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::ffi::adopt;
use crate::socket::WebSocket;

type Fields = Vec<(PyBackedBytes, PyBackedBytes)>;

/// The opening handshake of a client.
#[pyclass(frozen, module = "poorhttp.plugins.asgi._websocket")]
pub(crate) struct Handshake(Result<poorhttp_websocket::Handshake, poorhttp_websocket::Refusal>);

impl Handshake {
    fn valid(&self) -> PyResult<&poorhttp_websocket::Handshake> {
        self.0.as_ref().map_err(|refusal| PyValueError::new_err(refusal.reason))
    }
}

#[pymethods]
impl Handshake {
    /// Checks header fields, whose names are in lower case.
    #[new]
    fn new(headers: Fields, compress: bool) -> Self {
        let fields = headers.iter().map(|(name, value)| (&name[..], &value[..]));
        Handshake(poorhttp_websocket::Handshake::of(fields, compress))
    }

    /// Status and reason of the answer, if the handshake is not valid.
    #[getter]
    fn refusal(&self) -> Option<(u16, &'static str)> {
        self.0.as_ref().err().map(|refusal| (refusal.status, refusal.reason))
    }

    /// The subprotocols that the client speaks.
    #[getter]
    fn subprotocols(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(|_| Vec::new(), |handshake| handshake.subprotocols.clone())
    }

    /// The head of the answer that accepts.
    fn head<'py>(&self, py: Python<'py>, subprotocol: Option<&str>, headers: Fields) -> PyResult<Bound<'py, PyBytes>> {
        let fields = headers.iter().map(|(name, value)| (&name[..], &value[..]));
        let head = self.valid()?.head(subprotocol, fields).map_err(PyValueError::new_err)?;
        Ok(PyBytes::new(py, &head))
    }

    /// The WebSocket on a connection, whose descriptor it takes over and has watched by the event loop; sends the head of the answer.
    fn open<'py>(
        &self,
        py: Python<'py>,
        head: &[u8],
        connection: (RawFd, Py<PyAny>),
        r#loop: Py<PyAny>,
        max_message: usize,
    ) -> PyResult<Bound<'py, WebSocket>> {
        let (fd, connection) = (adopt(connection.0)?, connection.1);
        connection.call_method1(py, intern!(py, "frames_itself"), (head,))?;
        let compression = self.valid()?.compression.as_ref();
        let made = WebSocket::new(fd, head, max_message, compression, (r#loop, connection));
        let made = Bound::new(py, made)?;
        WebSocket::conclude(&made, false)?;
        Ok(made)
    }
}
