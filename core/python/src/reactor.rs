//! The reactor, as a Python class.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use poorhttp_files::{Cache, LiveReload};
use poorhttp_http::{Protocol, TrustedProxies};
use poorhttp_reactor::{
    AcceptBalance, AccessLog, AutoThreads, Channel, Counters, Exchange, FdHandoff, Level, Listener, Negotiation, Next,
    Notice, Offer, Options, RequestId, RequestName, Routes, Selection, SendError, Spool, TempDir, ThreadPool,
    TimeoutHandler,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PySystemExit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::compression::compressions;
use crate::connection::Connection;
use crate::dispatched::Dispatched;
use crate::early_hints;
use crate::environ::{Environs, set_request_id};
use crate::error_log::has_unfinished_line;
use crate::errors::{os_error, value_error};
use crate::ffi::{arm_orphan_timer, duplicate, share_heaps, since_input, unacknowledged};
use crate::gil_queue::GilQueue;
use crate::http2::{self, Http2};
use crate::interrupter::{Interrupter, OverdueRequests};
use crate::options::{Callable, WorkerOptions};
use crate::request::{Request, Waits};
use crate::sink::Sink;
use crate::static_files::{open_routes, open_sendfile_roots};
use crate::thread_pool::PythonThreads;
use crate::tls::certificates;
use crate::worker_status::WorkerStatus;

/// Iterator over the requests of a process.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct Reactor {
    inner: poorhttp_reactor::Reactor,
    environs: Arc<Environs>,
    /// Environs are made when they are taken: requests have other forms of their heads, too.
    lazy_environ: bool,
    waits: Option<Arc<Waits>>,
    error_log: Arc<poorhttp_reactor::ErrorLog>,
    /// Read by the supervisor.
    worker_status: Option<Py<WorkerStatus>>,
    interrupter: Option<Arc<Interrupter>>,
    /// Times are taken, and the thread that gets a request runs it at once.
    notes_hand_out: bool,
    /// The request number at which a function is called, because this worker may be reforked. The function returns after how
    /// many more it is called again.
    refork: Option<(AtomicU64, Py<PyAny>)>,
    /// Called with environ and request, to offer the connection to the application.
    offer_upgrade: Option<Py<PyAny>>,
    /// Called when a thread has run a request and left a line without its end in `wsgi.errors`.
    end_line: Option<Py<PyAny>>,
    /// Requests that wait for the interpreter, if several threads share it.
    queue: Option<Arc<GilQueue>>,
}

impl Reactor {
    /// The Python object for an exchange. `None`: it could not be made, and the client got an error.
    #[inline]
    fn request(&self, py: Python<'_>, mut exchange: Exchange) -> Option<Py<PyAny>> {
        let number = exchange.number();
        if let Some((at, function)) = &self.refork
            && number >= at.load(Ordering::Relaxed)
            && at.swap(u64::MAX, Ordering::Relaxed) != u64::MAX
        {
            match function.call0(py).and_then(|more| more.extract(py)) {
                Ok(0) => {}
                Ok(more) => at.store(number.saturating_add(more), Ordering::Relaxed),
                Err(error) => error.write_unraisable(py, None),
            }
        }
        if exchange.is_raw_tcp() {
            let line = exchange.request_line();
            let entry =
                self.worker_status.as_ref().map(|status| WorkerStatus::enter(status, py, number, line.as_bytes(), b""));
            let dispatched = Dispatched::new(exchange, entry, self.interrupter.clone());
            return self.object(number, Py::new(py, Connection::new(dispatched)));
        }
        let offer = match exchange.asks_upgrade() {
            true => self.offer_upgrade(py, &mut exchange)?,
            false => None,
        };
        // The access log reads variables of it.
        let is_lazy = self.lazy_environ && exchange.logged_variables().is_empty();
        let mut built = if is_lazy { Ok(None) } else { self.environs.build(py, &mut exchange).map(Some) };
        if self.notes_hand_out && built.is_ok() {
            exchange.note_hand_out();
        }
        let id = exchange.request_id();
        if let Some(id) = &id
            && let Ok(Some(environ)) = &built
            && let Err(error) = set_request_id(environ, id)
        {
            built = Err(error);
        }
        match built {
            Ok(environ) => {
                let waits = self.waits.clone();
                let entry = self.worker_status.as_ref().and_then(|status| {
                    let (head, bytes) = exchange.head()?;
                    // The head begins with both, separated by a space.
                    let line = bytes.get(..head.method.of(bytes).len() + 1 + head.target.of(bytes).len())?;
                    let id = id.as_ref().map_or(&[][..], RequestId::as_bytes);
                    let entry = WorkerStatus::enter(status, py, number, line, id);
                    entry.begin(exchange.handed_out());
                    if status.get().inner().counters.is_full_unwatched() {
                        self.inner.send_full();
                    }
                    Some(entry)
                });
                let dispatch = |exchange| Dispatched::new(exchange, entry, self.interrupter.clone());
                let environ = environ.map(Bound::unbind);
                let environs = self.lazy_environ.then(|| Arc::clone(&self.environs));
                self.object(
                    number,
                    Py::new(py, Request::new(py, exchange, dispatch, (environ, environs), waits, offer)),
                )
            }
            Err(error) => {
                self.log_error(&exchange.request_name(), &error);
                let status = match error.is_instance_of::<PyMemoryError>(py) {
                    true => "503 Service Unavailable",
                    false => "500 Internal Server Error",
                };
                if exchange.start::<SendError>(status, |_| Ok(())).is_ok() {
                    let _ = exchange.finish(&[]);
                }
                None
            }
        }
    }

    /// The function that offers the connection, if the request may have it. `None`: the client got an error.
    #[cold]
    fn offer_upgrade(&self, py: Python<'_>, exchange: &mut Exchange) -> Option<Option<Py<PyAny>>> {
        let Some(offer) = &self.offer_upgrade else { return Some(None) };
        match exchange.offer_upgrade() {
            Offer::None => Some(None),
            Offer::Made => Some(Some(offer.clone_ref(py))),
            Offer::Refused => None,
        }
    }

    /// Waits for the next request. `None`: it waits for the interpreter, with others.
    fn wait_next(&self) -> Option<Next> {
        let Some(queue) = &self.queue else { return Some(self.inner.wait_next()) };
        if let Some(exchange) = queue.leave() {
            return Some(Next::Request(exchange));
        }
        match self.inner.wait_next() {
            Next::Request(exchange) if !queue.begins_at_once() => {
                queue.add(&self.inner, exchange);
                None
            }
            // Not taken apart: a request is several hundred bytes, which would be copied each time.
            other => Some(other),
        }
    }

    #[inline]
    fn object<T>(&self, number: u64, made: PyResult<Py<T>>) -> Option<Py<PyAny>> {
        let name = || RequestName { number, ..RequestName::default() };
        made.inspect_err(|error| self.log_error(&name(), error)).ok().map(Py::into_any)
    }

    #[cold]
    fn log_error(&self, request: &RequestName, error: &PyErr) {
        let message = format!("could not be passed to the application: {error}");
        self.error_log.write_about(Level::Error, request, &message);
    }

    /// Ends the line that the last request of this thread may have left without its end.
    #[cold]
    fn end_line(&self, py: Python<'_>) {
        if let Some(Err(error)) = self.end_line.as_ref().map(|function| function.call0(py)) {
            error.write_unraisable(py, None);
        }
    }

    /// Runs Python's signal handlers. Only SystemExit and KeyboardInterrupt stop the server.
    fn run_signal_handlers(&self, py: Python<'_>) {
        if let Err(error) = py.check_signals() {
            if error.is_instance_of::<PySystemExit>(py) || error.is_instance_of::<PyKeyboardInterrupt>(py) {
                self.inner.stop(true, true);
            } else {
                error.write_unraisable(py, None);
            }
        }
    }
}

/// A function of Python that the reactor calls.
fn notice(function: Callable) -> Notice {
    Notice::new(move || {
        let call = |py: Python<'_>| {
            if let Err(error) = function.0.call0(py) {
                error.write_unraisable(py, None);
            }
        };
        // None: Python is about to end.
        let _ = Python::try_attach(call);
    })
}

/// The trusted proxies, if there are any.
fn trust(proxies: &[String], headers: &[String]) -> PyResult<Option<TrustedProxies>> {
    if proxies.is_empty() {
        return Ok(None);
    }
    let trust = TrustedProxies::new(proxies.iter().map(String::as_str), headers.iter().map(String::as_str));
    trust.map(Some).map_err(value_error)
}

/// Name and port of the server in the environ of a listener.
fn server_of(base: &Bound<'_, PyDict>) -> (String, String) {
    let text = |key| base.get_item(key).ok().flatten().and_then(|value| value.extract().ok()).unwrap_or_default();
    (text("SERVER_NAME"), text("SERVER_PORT"))
}

/// Where the application receives bodies itself: host, path prefix, and whether it does. `None`: nowhere.
fn streamed_routes(rows: Vec<(String, String, bool)>) -> Option<Routes<()>> {
    let mut routes = Routes::default();
    let is_empty = rows.is_empty();
    for (host, prefix, is_streamed) in rows {
        routes.add(&host, &prefix, is_streamed.then_some(()));
    }
    (!is_empty).then_some(routes)
}

#[pymethods]
impl Reactor {
    #[new]
    fn new(
        py: Python<'_>,
        listeners: Vec<(RawFd, Py<PyDict>, String, bool)>,
        options: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let WorkerOptions { settings, given } = WorkerOptions::of(options)?;
        let base_options = settings.options();
        let request_ids = base_options.request_ids;
        let (http2, multiplexing) = match given.http2 {
            Some((way, streams, stream_window, connection_window)) => {
                let way = Http2::named(&way)
                    .ok_or_else(|| value_error(format_args!("http2: {way:?} is not off, tls, trusted or on")))?;
                let windows = (stream_window, connection_window);
                (way, Some(http2::multiplexing(&base_options.limits, streams, windows)))
            }
            None => (Http2::Off, None),
        };
        let error_log = Arc::clone(&given.error_log.get().inner);
        let access_log = match given.access_log {
            Some((sink, format)) => {
                let selection = Selection::new(settings.access_log_exclude, settings.access_log_sample);
                let log = AccessLog::new(sink.get().take()?, &format, error_log.label(), request_ids, selection);
                let mut log = log.map_err(|error| value_error(format_args!("access_log_format: {error}")))?;
                log.set_servers(listeners.iter().map(|(_, base, ..)| server_of(base.bind(py))).collect());
                Some(log)
            }
            None => None,
        };
        let interrupter = given
            .interrupter
            .map(|python| Interrupter::new(python.0.bind(py), Arc::clone(&error_log)).map(Arc::new))
            .transpose()?;
        let worker_status = given.worker_status;
        let status = worker_status.as_ref().map(|status| status.get().leak());
        let metrics = status.map(|status| &status.counters.metrics);
        let cache = Arc::new(Cache::new(settings.static_cache).counting(metrics.map(|metrics| &metrics.cache)));
        let compression = given.compression.as_ref().map(|arguments| arguments.0.extract(py)).transpose();
        let (compression_of_files, compression) =
            compressions(compression.map_err(|error: PyErr| value_error(format_args!("compression: {error}")))?)?;
        let tls = given.tls.map(|config| certificates(config.0.bind(py))).transpose();
        let tls = tls.map_err(|error| value_error(format_args!("tls: {error}")))?;
        let temp_dir = TempDir(given.temp_dir);
        let live_reload = given.live_reload.map(|(before, behind)| LiveReload { before, behind });
        let (multithread, external_loop) = (given.multithread, given.external_loop);
        // Not where a program of somebody else has a server in it: that handles no signals.
        if multithread && given.note_stop.is_some() {
            share_heaps();
        }
        // A few bytes leaked for each reactor without a supervisor, of which a process has few.
        let counters: &'static Counters = status.map_or_else(|| &*Box::leak(Box::default()), |status| &status.counters);
        let queue = multithread.then(|| Arc::new(GilQueue::new(&counters.metrics)));
        let thread_pool = given.replace_thread.zip(queue.as_ref()).map(|(replace, queue)| {
            let (queue, error_log) = (Arc::clone(queue), Arc::clone(&error_log));
            let worker_status = worker_status.as_ref().map(|status| status.clone_ref(py));
            Arc::new(PythonThreads { replace: replace.0, queue, worker_status, error_log }) as Arc<dyn ThreadPool>
        });
        let options = Options {
            accept_balance: given
                .accept_balance
                .and_then(|(memory, ours)| AcceptBalance::new(memory.get().leak_counters(), ours)),
            channel: given.channel.map(duplicate).transpose()?.map(Channel::new),
            fd_handoff: given
                .fd_handoff
                .map(|(give, take, version)| PyResult::Ok(FdHandoff::new(duplicate(give)?, duplicate(take)?, version)))
                .transpose()?,
            recycle_after: given.recycle_after,
            counters: Some(counters),
            records: status.filter(|_| given.takes_times),
            https_redirect: given.https_redirect.filter(|&port| port > 0),
            hsts: given.hsts.unwrap_or_default(),
            spool: Arc::new(
                Spool::new(temp_dir.clone(), settings.spool_limit, settings.spool_total, Arc::clone(&error_log))
                    .counting(metrics.map(|metrics| &metrics.spooled)),
            ),
            temp_dir,
            files: Arc::clone(&cache),
            routes: open_routes(given.routes, &cache, live_reload.as_ref(), compression_of_files.as_ref())?,
            streamed_bodies: streamed_routes(given.streamed_bodies),
            sendfile_roots: open_sendfile_roots(
                &settings.x_sendfile,
                &settings.x_accel_redirect,
                &given.static_files,
                &cache,
            )?,
            compression,
            trust: trust(&settings.trusted_proxies, &settings.forwarded_headers)?,
            since_input: Some(since_input),
            unacknowledged: Some(unacknowledged),
            max_upgraded: match settings.upgraded_threads {
                // Only a thread each costs so much that there is a limit of its own.
                1.. if !multithread || external_loop => usize::MAX,
                most => most,
            },
            thread_pool,
            auto_threads: given.auto_threads.map(|(least, most, processors, memory)| AutoThreads {
                least,
                most,
                processors,
                memory,
            }),
            has_one_thread: !multithread && !external_loop,
            multiplexing,
            raw_tcp: given.raw_tcp,
            external_loop,
            reopen_logs: given.reopen_logs.map(notice),
            note_stop: given.note_stop.map(notice),
            on_main_process_end: Some(arm_orphan_timer),
            timeout_handler: interrupter
                .as_ref()
                .map(|interrupter| Arc::new(OverdueRequests(Arc::clone(interrupter))) as Arc<dyn TimeoutHandler>),
            access_log: access_log.map(Arc::new),
            error_log: Arc::clone(&error_log),
            ..base_options
        };
        let (mut opened, mut bases) = (Vec::new(), Vec::new());
        for (fd, base, protocol, proxied) in listeners {
            let (protocol, tls) = match (Protocol::named(&protocol), &tls) {
                (Some(protocol), _) => (protocol, None),
                // That of a transport, which carries HTTP.
                (None, Some(config)) => (Protocol::Http, Some(Arc::clone(config))),
                (None, None) => return Err(value_error(format_args!("an unknown protocol, {protocol:?}"))),
            };
            let streams = match protocol {
                Protocol::Http => http2.negotiation(tls.is_some()),
                Protocol::Uwsgi | Protocol::Scgi | Protocol::Fastcgi => Negotiation::Never,
            };
            opened.push(Listener { socket: duplicate(fd)?.into(), protocol, proxied, tls, streams });
            bases.push(base);
        }
        let inner = poorhttp_reactor::Reactor::new(opened, options).map_err(os_error)?;
        let new_event = given.new_event.map(|function| function.0);
        let context = given.request_context.map(|context| context.0);
        Ok(Reactor {
            notes_hand_out: inner.takes_times() && interrupter.is_none() && new_event.is_none(),
            queue,
            inner,
            environs: Arc::new(Environs::new(py, bases, request_ids.is_some())?),
            lazy_environ: given.lazy_environ.unwrap_or_default(),
            waits: new_event.map(|new_event| Arc::new(Waits::new(new_event, context))),
            error_log,
            worker_status,
            interrupter,
            refork: given.refork.map(|(at, function)| (AtomicU64::new(at), function.0)),
            offer_upgrade: given.offer_upgrade.map(|function| function.0),
            end_line: given.end_line.map(|function| function.0),
        })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Waits for the next request with the interpreter released.
    fn __next__(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        if has_unfinished_line() {
            self.end_line(py);
        }
        if poorhttp_reactor::has_left(|wait| py.detach(wait)) {
            self.queue.iter().for_each(|queue| queue.end_replaced());
            self.inner.end_thread();
            early_hints::leave();
            return None;
        }
        let mut next = self.queue.as_ref().and_then(|queue| queue.next(py, &self.inner));
        loop {
            let exchange = match next.take().or_else(|| self.inner.try_next(false)) {
                Some(exchange) => exchange,
                None => match py.detach(|| self.wait_next()) {
                    Some(Next::Request(exchange)) => exchange,
                    Some(Next::Interrupted) => {
                        self.run_signal_handlers(py);
                        continue;
                    }
                    Some(Next::Finished) => {
                        early_hints::leave();
                        return None;
                    }
                    None => {
                        next = self.queue.as_ref().and_then(|queue| queue.first());
                        continue;
                    }
                },
            };
            if let Some(request) = self.request(py, exchange) {
                if let Some(queue) = &self.queue {
                    queue.note_run(&self.inner);
                }
                return Some(request);
            }
        }
    }

    /// The next request if one is ready, or `None`.
    fn poll(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        if self.inner.is_foreign() {
            return None;
        }
        loop {
            // Sending files may block on a disk.
            let exchange = self.inner.next_in_turn(|| py.detach(|| self.inner.poll_next()))?;
            if let Some(request) = self.request(py, exchange) {
                return Some(request);
            }
        }
    }

    /// This thread runs no requests from now on: its application has got a connection.
    fn leave(&self) {
        if let Some(queue) = &self.queue {
            queue.note_left();
        }
        self.inner.leave();
    }

    fn fileno(&self) -> RawFd {
        self.inner.fd().as_raw_fd()
    }

    #[getter]
    fn wakeup_fd(&self) -> RawFd {
        self.inner.wake_fd().as_raw_fd()
    }

    /// Whether the reactor belongs to the process that forked this one.
    #[getter]
    fn foreign(&self) -> bool {
        self.inner.is_foreign()
    }

    #[getter]
    fn finished(&self) -> bool {
        self.inner.is_finished()
    }

    /// Whether it was stopped, and perhaps waits for requests in flight.
    #[getter]
    fn stopping(&self) -> bool {
        self.inner.is_stopping()
    }

    #[getter]
    fn promoted(&self) -> bool {
        self.inner.is_promoted()
    }

    #[pyo3(signature = (graceful = true, *, last = true))]
    fn stop(&self, graceful: bool, last: bool) {
        // A command received earlier may say how this signal's stop is meant.
        self.inner.receive_commands();
        self.inner.stop(graceful, last);
    }

    /// Releases the interpreter, as the thread that polls may hold the lock of the connections and wait for it.
    fn give_up(&self, py: Python<'_>) {
        py.detach(|| self.inner.give_up());
    }

    fn drain(&self) {
        self.inner.drain();
    }

    fn end_long_polls(&self) {
        self.inner.end_long_polls();
    }

    /// Releases the interpreter, as the thread that polls may hold the lock of the connections and wait for it.
    fn push_to_long_polls(&self, py: Python<'_>, chunk: &[u8]) -> usize {
        py.detach(|| self.inner.push_to_long_polls(chunk))
    }

    fn take_timeout(&self, py: Python<'_>, runner: &Bound<'_, PyAny>) -> bool {
        self.interrupter.as_ref().is_some_and(|interrupter| interrupter.take_timeout(py, runner))
    }

    fn time(&self) -> u64 {
        self.inner.time()
    }

    fn waited_since(&self, begun: u64) {
        self.inner.waited_since(begun);
    }

    /// Releases the interpreter, as a reader of the log may need it.
    fn flush_log(&self, py: Python<'_>) {
        py.detach(|| self.inner.close_log());
    }

    /// Releases the interpreter, as the thread that holds the log's lock may wait for it.
    fn reopen_log(&self, py: Python<'_>, sink: &Bound<'_, Sink>) -> PyResult<()> {
        let sink = sink.get().take()?;
        py.detach(|| self.inner.reopen_log(sink));
        Ok(())
    }
}
