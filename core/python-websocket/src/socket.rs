//! The class of a WebSocket on a descriptor that an event loop watches: one call receives what has come, one sends a message.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use poorhttp_websocket::{
    Compression, Compressor, Event, Failure, Opcode, Receiver, close_payload, code, frame_header,
};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBrokenPipeError, PyConnectionResetError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::output::Output;

/// Bytes that are received at once: a message of 64 KiB with its header, and some more.
const RECEIVED_AT_ONCE: usize = 128 << 10;

/// Messages that wait for the application, and their bytes, from which on nothing is received. One message may be larger.
const MOST_QUEUED: usize = 32;
const MOST_BYTES: usize = 64 << 10;

thread_local! {
    /// Memory into which all WebSockets receive, one after the other.
    static MEMORY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Seconds that an application has to answer the messages before a Close frame or a violation of the protocol.
const LAST_ANSWERS: f64 = 1.0;

/// What has come, without borrowed memory.
enum Received {
    Message(Py<PyDict>, usize),
    Ping(Vec<u8>),
    Pong,
    Last(Last),
}

/// What ends a WebSocket.
enum Last {
    Close(u16, String),
    Violation(Failure),
}

/// A WebSocket.
#[pyclass(module = "poorhttp.plugins.asgi._websocket")]
pub(crate) struct WebSocket {
    /// `None`: ended.
    fd: Option<OwnedFd>,
    receiver: Receiver,
    compressor: Option<Compressor>,
    /// Messages that the application has not taken, with their bytes.
    queue: VecDeque<(Py<PyDict>, usize)>,
    queued: usize,
    /// Received bytes that are not looked at while too many messages wait, from `unread_at` on.
    unread: Vec<u8>,
    unread_at: usize,
    /// The event loop is about to call `read` for them.
    is_called: bool,
    output: Output,
    /// The answer to the last ping that has come while something waited to be sent.
    pong: Option<Vec<u8>>,
    /// What the client has ended the WebSocket with, while messages before it wait for the application.
    last: Option<Last>,
    /// It is to be answered after a time.
    is_timed: bool,
    /// Nothing is received any more.
    is_input_over: bool,
    /// Code and reason of the Close frame that was sent.
    sent_close: Option<(u16, String)>,
    /// Code and reason that the application gets when it has taken all messages.
    end: Option<(u16, String)>,
    /// Something has come, or was taken by the client, since the last ping.
    heard: bool,
    /// Futures of tasks that wait.
    waiters: Vec<Py<PyAny>>,
    /// The event loop, which watches the descriptor, and the connection, to which is reported what is sent; `None`: ended.
    owners: Option<(Py<PyAny>, Py<PyAny>)>,
    /// What the descriptor is watched for: input, and room for output.
    watched: (bool, bool),
    /// Bytes of the answer to the handshake.
    head: usize,
}

impl WebSocket {
    pub(crate) fn new(
        fd: OwnedFd,
        head: &[u8],
        most: usize,
        compression: Option<&Compression>,
        owners: (Py<PyAny>, Py<PyAny>),
    ) -> Self {
        let mut output = Output::default();
        output.send(&fd, head, &[]);
        WebSocket {
            fd: Some(fd),
            receiver: Receiver::new(most, compression),
            compressor: compression.map(Compressor::new),
            queue: VecDeque::new(),
            queued: 0,
            unread: Vec::new(),
            unread_at: 0,
            is_called: false,
            output,
            pong: None,
            last: None,
            is_timed: false,
            is_input_over: false,
            sent_close: None,
            end: None,
            heard: true,
            waiters: Vec::new(),
            owners: Some(owners),
            watched: (false, false),
            head: head.len(),
        }
    }

    fn wants_input(&self) -> bool {
        !self.is_input_over && self.unread.is_empty() && !self.is_full()
    }

    fn is_full(&self) -> bool {
        self.queue.len() >= MOST_QUEUED || (self.queued >= MOST_BYTES && self.queue.len() > 1)
    }

    fn is_closing(&self) -> bool {
        self.sent_close.is_some() || self.end.is_some() || self.output.is_broken
    }

    /// Takes messages from what was received before, or receives what is there.
    fn receive(&mut self, py: Python<'_>) -> PyResult<()> {
        self.is_called = false;
        if !self.unread.is_empty() {
            if self.queue.is_empty() {
                let mut unread = mem::take(&mut self.unread);
                self.unread_at += self.take_bytes(py, &mut unread[self.unread_at..])?;
                if self.is_input_over || self.unread_at == unread.len() {
                    self.unread_at = 0;
                } else {
                    self.unread = unread;
                }
            }
            return Ok(());
        }
        let Some(fd) = self.fd.as_ref().filter(|_| self.wants_input()) else { return Ok(()) };
        let mut memory = MEMORY.take();
        memory.resize(RECEIVED_AT_ONCE, 0);
        match recv(fd, &mut memory[..], RecvFlags::DONTWAIT) {
            Ok((_, 0)) => self.lose(),
            Ok((_, length)) => {
                self.heard = true;
                let taken = self.take_bytes(py, &mut memory[..length])?;
                if !self.is_input_over {
                    self.unread.extend_from_slice(&memory[taken..length]);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.lose(),
        }
        MEMORY.set(memory);
        Ok(())
    }

    /// Takes messages and control frames from received bytes, until too many wait; returns how many bytes were taken.
    fn take_bytes(&mut self, py: Python<'_>, input: &mut [u8]) -> PyResult<usize> {
        let (mut at, mut pongs) = (0, Vec::new());
        while !self.is_input_over && !self.is_full() {
            let received = match self.receiver.receive(&mut input[at..]) {
                Err(failure) => Received::Last(Last::Violation(failure)),
                Ok((used, event)) => {
                    at += used;
                    match event {
                        None => break,
                        Some(Event::Text(text)) => Received::Message(
                            message(py, intern!(py, "text"), PyString::new(py, text).into_any())?,
                            text.len(),
                        ),
                        Some(Event::Binary(bytes)) => {
                            let made = PyBytes::new(py, bytes).into_any();
                            Received::Message(message(py, intern!(py, "bytes"), made)?, bytes.len())
                        }
                        Some(Event::Ping(payload)) => Received::Ping(payload.to_vec()),
                        Some(Event::Pong(_)) => Received::Pong,
                        Some(Event::Close(code, reason)) => Received::Last(Last::Close(code, reason.to_owned())),
                    }
                }
            };
            match received {
                Received::Message(message, length) => {
                    self.queued += length;
                    self.queue.push_back((message, length));
                }
                Received::Ping(payload) if self.output.has_waiting() => self.pong = Some(payload),
                Received::Ping(payload) => {
                    let (header, length) = frame_header(Opcode::Pong, payload.len(), false);
                    pongs.extend_from_slice(&header[..length]);
                    pongs.extend_from_slice(&payload);
                }
                Received::Pong => {}
                Received::Last(last) => {
                    self.send_raw(&mem::take(&mut pongs));
                    self.last = Some(last);
                    self.is_input_over = true;
                    if self.queue.is_empty() {
                        self.settle_last();
                    }
                }
            }
        }
        self.receiver.release();
        self.send_raw(&pongs);
        Ok(at)
    }

    /// Answers what the client has ended the WebSocket with.
    fn settle_last(&mut self) {
        let (code, reason) = match self.last.take() {
            None => return,
            Some(Last::Close(code, reason)) => {
                if self.sent_close.is_none() {
                    self.send_close(code, "");
                    self.end.get_or_insert((code, reason));
                }
                self.sent_close.clone().unwrap_or_default()
            }
            Some(Last::Violation(failure)) => {
                self.send_close(failure.code, failure.reason);
                (failure.code, failure.reason.to_owned())
            }
        };
        self.end.get_or_insert((code, reason));
        self.finish();
    }

    /// The connection is lost, or the client has ended it without a Close frame.
    fn lose(&mut self) {
        self.output.lose();
        self.is_input_over = true;
        let end = self.sent_close.clone().unwrap_or((code::ABNORMAL, String::new()));
        self.end.get_or_insert(end);
    }

    /// Nothing is received any more, and nothing sent behind what waits.
    fn finish(&mut self) {
        self.is_input_over = true;
        self.unread = Vec::new();
        if let Some(fd) = &self.fd {
            self.output.finish(fd);
        }
    }

    fn send_raw(&mut self, frames: &[u8]) {
        if let Some(fd) = self.fd.as_ref().filter(|_| !frames.is_empty() && self.sent_close.is_none()) {
            self.output.send(fd, frames, &[]);
        }
    }

    fn send_close(&mut self, code: u16, reason: &str) {
        if self.sent_close.is_none() {
            let payload = close_payload(code, reason);
            let (header, length) = frame_header(Opcode::Close, payload.len(), false);
            self.send_raw(&[&header[..length], &payload].concat());
            self.sent_close = Some((code, reason.to_owned()));
        }
    }

    /// Has the descriptor watched for what is awaited now, and wakes all tasks that wait.
    pub(crate) fn conclude(slf: &Bound<'_, Self>, wakes: bool) -> PyResult<()> {
        let py = slf.py();
        let mut this = slf.try_borrow_mut()?;
        let waiters = if wakes { mem::take(&mut this.waiters) } else { Vec::new() };
        let wanted = (this.wants_input(), this.output.has_waiting());
        let before = mem::replace(&mut this.watched, wanted);
        if before != wanted
            && let (Some(fd), Some((owner, connection))) = (&this.fd, &this.owners)
        {
            let (fd, owner, connection) = (fd.as_raw_fd(), owner.clone_ref(py), connection.clone_ref(py));
            let is_between_frames = !wanted.1 && !this.is_closing();
            drop(this);
            watch(slf, &owner, fd, (before, wanted))?;
            // Where the server may add a Close frame, if it is stopped without patience.
            let reported = match is_between_frames {
                true => connection.call_method1(py, intern!(py, "end"), (PyBytes::new(py, b""), 0)),
                false => connection.call_method0(py, intern!(py, "begin")),
            };
            if let Err(error) = reported
                && !error.is_instance_of::<PyBrokenPipeError>(py)
            {
                return Err(error);
            }
            this = slf.try_borrow_mut()?;
        }
        let owner = this.owners.as_ref().filter(|_| this.last.is_some() && !this.is_timed);
        let owner = owner.map(|(owner, _)| owner.clone_ref(py));
        this.is_timed |= owner.is_some();
        drop(this);
        if let Some(owner) = owner {
            owner.call_method1(py, intern!(py, "call_later"), (LAST_ANSWERS, slf.getattr(intern!(py, "settle"))?))?;
        }
        for waiter in waiters {
            if !waiter.call_method0(py, intern!(py, "done"))?.is_truthy(py)? {
                waiter.call_method1(py, intern!(py, "set_result"), (py.None(),))?;
            }
        }
        Ok(())
    }
}

/// Has the event loop watch the descriptor for input and for room, instead of what it was watched for before.
fn watch(
    slf: &Bound<'_, WebSocket>,
    owner: &Py<PyAny>,
    fd: RawFd,
    (before, wanted): ((bool, bool), (bool, bool)),
) -> PyResult<()> {
    let py = slf.py();
    match (before.0, wanted.0) {
        (false, true) => {
            drop(owner.call_method1(py, intern!(py, "add_reader"), (fd, slf.getattr(intern!(py, "read"))?))?)
        }
        (true, false) => drop(owner.call_method1(py, intern!(py, "remove_reader"), (fd,))?),
        _ => {}
    }
    match (before.1, wanted.1) {
        (false, true) => {
            drop(owner.call_method1(py, intern!(py, "add_writer"), (fd, slf.getattr(intern!(py, "flush"))?))?)
        }
        (true, false) => drop(owner.call_method1(py, intern!(py, "remove_writer"), (fd,))?),
        _ => {}
    }
    Ok(())
}

/// `{"type": "websocket.receive", key: value}`
fn message(py: Python<'_>, key: &Bound<'_, PyString>, value: Bound<'_, PyAny>) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "type"), intern!(py, "websocket.receive"))?;
    dict.set_item(key, value)?;
    Ok(dict.unbind())
}

#[pymethods]
impl WebSocket {
    /// Receives what has come; the event loop calls it.
    fn read(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        slf.try_borrow_mut()?.receive(py)?;
        let has_news = slf.try_borrow().map(|this| !this.queue.is_empty() || this.end.is_some())?;
        Self::conclude(slf, has_news)
    }

    /// Answers a Close frame whose messages before it the application has not taken.
    fn settle(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.try_borrow_mut()?.settle_last();
        Self::conclude(slf, true)
    }

    /// Sends what waits; the event loop calls it when there is room.
    fn flush(slf: &Bound<'_, Self>) -> PyResult<()> {
        let mut this = slf.try_borrow_mut()?;
        let WebSocket { fd: Some(fd), output, pong, heard, .. } = &mut *this else { return Ok(()) };
        let before = output.total;
        output.flush(fd);
        *heard |= output.total > before;
        let mut has_waiting = output.has_waiting();
        if !has_waiting && let Some(payload) = pong.take() {
            let (header, length) = frame_header(Opcode::Pong, payload.len(), false);
            this.send_raw(&[&header[..length], &payload].concat());
            has_waiting = this.output.has_waiting();
        }
        drop(this);
        Self::conclude(slf, !has_waiting)
    }

    /// The next message for the application. `None`: none has come.
    fn take(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyDict>>> {
        let py = slf.py();
        let mut this = slf.try_borrow_mut()?;
        let Some((message, length)) = this.queue.pop_front() else {
            if this.last.is_some() {
                this.settle_last();
                drop(this);
                Self::conclude(slf, true)?;
                this = slf.try_borrow_mut()?;
            }
            let Some((code, reason)) = &this.end else {
                let is_more = !this.unread.is_empty() && !mem::replace(&mut this.is_called, true);
                let owner = this.owners.as_ref().filter(|_| is_more).map(|(owner, _)| owner.clone_ref(py));
                drop(this);
                if let Some(owner) = owner {
                    // Others have their turn before the next messages.
                    owner.call_method1(py, intern!(py, "call_soon"), (slf.getattr(intern!(py, "read"))?,))?;
                }
                return Ok(None);
            };
            let dict = PyDict::new(py);
            dict.set_item(intern!(py, "type"), intern!(py, "websocket.disconnect"))?;
            dict.set_item(intern!(py, "code"), code)?;
            dict.set_item(intern!(py, "reason"), reason)?;
            return Ok(Some(dict.unbind()));
        };
        this.queued -= length;
        drop(this);
        Self::conclude(slf, false)?;
        Ok(Some(message))
    }

    /// Has a future done when something has changed.
    fn wait(&mut self, future: Py<PyAny>) {
        self.waiters.push(future);
    }

    /// Sends a message. `False`: some of it waits until the client reads.
    fn send(slf: &Bound<'_, Self>, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(text) = data.cast::<PyString>() {
            return Self::send_message(slf, Opcode::Text, text.to_str()?.as_bytes());
        }
        if let Ok(bytes) = data.cast::<PyBytes>() {
            return Self::send_message(slf, Opcode::Binary, bytes.as_bytes());
        }
        let Ok(buffer) = PyBuffer::<u8>::get(data) else {
            let name = data.get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!("a message of type {name} cannot be sent, only str and bytes")));
        };
        Self::send_message(slf, Opcode::Binary, &buffer.to_vec(slf.py())?)
    }

    /// Asks the client whether it is there.
    fn ping(slf: &Bound<'_, Self>) -> PyResult<()> {
        let mut this = slf.try_borrow_mut()?;
        this.heard = false;
        if !this.output.has_waiting() {
            let (header, length) = frame_header(Opcode::Ping, 0, false);
            this.send_raw(&header[..length]);
        }
        drop(this);
        Self::conclude(slf, false)
    }

    /// Sends a Close frame, if none was sent. If `waits`, messages are received until the client answers.
    #[pyo3(signature = (code, reason = "", *, waits = false))]
    fn close(slf: &Bound<'_, Self>, code: u16, reason: &str, waits: bool) -> PyResult<()> {
        if !code::may_be_sent(code) {
            return Err(PyValueError::new_err(format!("{code} is no close code that may be sent")));
        }
        let mut this = slf.try_borrow_mut()?;
        this.send_close(code, reason);
        if !waits {
            let end = this.sent_close.clone().unwrap_or((code, reason.to_owned()));
            this.end.get_or_insert(end);
            this.finish();
            this.queue.clear();
            this.queued = 0;
        }
        drop(this);
        Self::conclude(slf, true)
    }

    /// Closes the descriptor. `false`: something was not sent.
    fn end(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let py = slf.py();
        let mut this = slf.try_borrow_mut()?;
        let is_all_sent = !this.output.has_waiting();
        let before = mem::take(&mut this.watched);
        let (sent, fd, owners) = (this.output.total, this.fd.take(), this.owners.take());
        let frames = sent.saturating_sub(this.head as u64);
        this.lose();
        drop(this);
        if let (Some(fd), Some((owner, connection))) = (fd, owners) {
            watch(slf, &owner, fd.as_raw_fd(), (before, (false, false)))?;
            connection.call_method1(py, intern!(py, "note_sent"), (frames,))?;
        }
        // Other tasks of the application may wait for room.
        Self::conclude(slf, true)?;
        Ok(is_all_sent)
    }

    /// Whether something waits until the client reads.
    #[getter]
    fn has_waiting(&self) -> bool {
        self.output.has_waiting()
    }

    /// Whether something has come, or was taken by the client, since the last ping, or nothing is received now because the
    /// application takes no messages.
    #[getter]
    fn heard(&self) -> bool {
        self.heard || !(self.wants_input() || self.is_input_over)
    }

    /// Whether no message can be sent any more.
    #[getter]
    fn closing(&self) -> bool {
        self.is_closing()
    }
}

impl WebSocket {
    fn send_message(slf: &Bound<'_, Self>, opcode: Opcode, payload: &[u8]) -> PyResult<bool> {
        let mut guard = slf.try_borrow_mut()?;
        let this = &mut *guard;
        let Some(fd) = this.fd.as_ref().filter(|_| !this.is_closing()) else {
            return Err(PyConnectionResetError::new_err("this WebSocket is closed"));
        };
        let compressed = this.compressor.as_mut().and_then(|compressor| compressor.compress(payload));
        let payload = compressed.as_deref().unwrap_or(payload);
        let (header, length) = frame_header(opcode, payload.len(), compressed.is_some());
        this.output.send(fd, &header[..length], payload);
        if this.output.is_broken {
            return Err(PyConnectionResetError::new_err("the client has left"));
        }
        if !this.output.has_waiting() {
            return Ok(true);
        }
        drop(guard);
        Self::conclude(slf, false)?;
        Ok(false)
    }
}
