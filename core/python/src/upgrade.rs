//! Python class of a connection that was handed to the application (WebSocket): counts its octets for the access log.

use std::sync::Arc;

use poorhttp_reactor::{NotHijacked, Upgraded};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBrokenPipeError, PyConnectionResetError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::io::Errno;

use crate::errors::os_error;

/// A connection that the application has got.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct UpgradedConnection(pub(crate) Arc<Upgraded>);

#[pymethods]
impl UpgradedConnection {
    /// The application is about to send. BrokenPipeError: the server stops, and has ended its side.
    fn begin(&self) -> PyResult<()> {
        match self.0.begin_send() {
            true => Ok(()),
            false => {
                let errno = Errno::PIPE.raw_os_error();
                Err(PyBrokenPipeError::new_err((errno, "the server stops, and has sent a Close frame")))
            }
        }
    }

    /// So many bytes of `data` were sent; -1: it is not known how many.
    fn end(&self, data: &Bound<'_, PyAny>, sent: isize) {
        let Ok(sent) = usize::try_from(sent) else { return self.0.end_send(None) };
        match data.cast::<PyBytes>() {
            Ok(bytes) => self.0.end_send(bytes.as_bytes().get(..sent)),
            Err(_) => {
                let bytes = PyBuffer::<u8>::get(data).and_then(|buffer| buffer.to_vec(data.py()));
                self.0.end_send(bytes.ok().as_deref().and_then(|bytes| bytes.get(..sent)));
            }
        }
    }

    /// Something is sent that is not seen here.
    fn lose_track(&self) {
        self.0.lose_track();
    }

    /// The mode makes the frames behind this head, and closes the WebSocket when the server stops.
    fn frames_itself(&self, head: &[u8]) {
        self.0.frames_itself(head);
    }

    /// So many bytes of frames were sent behind the head.
    fn note_sent(&self, length: u64) {
        self.0.note_frames(length);
    }

    /// The application keeps the descriptor when its request ends.
    fn detach(&self) {
        self.0.detach();
    }
}

/// The exception for a connection that the application does not get.
pub(crate) fn not_hijacked(error: NotHijacked) -> PyErr {
    match error {
        NotHijacked::Answered => PyOSError::new_err("this request has been answered, or its response has begun"),
        NotHijacked::Hijacked => PyOSError::new_err("this connection has been taken over already"),
        NotHijacked::Full => PyConnectionResetError::new_err("the client reads nothing"),
        NotHijacked::Disconnected => PyConnectionResetError::new_err("the client has left"),
        NotHijacked::Failed(error) => os_error(error),
    }
}
