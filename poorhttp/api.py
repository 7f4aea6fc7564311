"""The server as a library: `poorhttp.serve` for programs, `poorhttp.Server` for tests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from poorhttp import logs, supervisor
from poorhttp.config.address import Address
from poorhttp.config.options.hooks import IN_OWN_PROCESS
from poorhttp.config.options.option import IN_PROCESSES, ON_COMMAND_LINE
from poorhttp.config.registry import MOVED
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import ConfigError
from poorhttp.net import sockets, transport
from poorhttp.process.standard_streams import open_standard_streams
from poorhttp.process.unpatched import allocate_lock, get_ident
from poorhttp.targets.routes import Routes
from poorhttp.targets.wsgi import refuse_asgi
from poorhttp.worker import plugin_hooks, stop_signals
from poorhttp.worker.worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Thread
    from typing import Any

    from _typeshed.wsgi import WSGIApplication

    from poorhttp._core import Reactor
    from poorhttp.process.threads import NativeThread


#: Options of processes, which a Server in threads of its program does not have.
PROCESS_OPTIONS = frozenset(
    (
        *("chdir", "pythonpath", "env", "workers", "after_fork", "max_requests"),
        *("max_requests_jitter", "max_rss", "max_lifetime", "user", "group", "umask", "pidfile"),
        *("drain_timeout", "drain_delay", "proc_name", "hook_worker_start", *IN_OWN_PROCESS),
        *(option.name for option in OPTIONS.values() if option.available == IN_PROCESSES),
    )
)

#: Seconds that requests in flight have when a Server closes, unless `graceful_timeout` is set:
#: tests close many servers, and an open stream of a browser is no reason to wait for long.
SERVER_GRACEFUL_TIMEOUT = 5.0


def serve(
    app: WSGIApplication | str | None = None,
    bind: str | Address | Sequence[str | Address] = "127.0.0.1:8080",
    mode: str = "threading",
    **options: object,
) -> None:
    """Serve an application until TERM or INT.

    Args:
        app: the WSGI application, or a target, such as `"package.module:callable"` or
            `"static:FOLDER"`; None if the options `static` or `mount` say what is served.
        bind: one address or several, written as for `--bind`.
        mode: `"single"`, `"forking"`, `"threading"` or `"gevent"`; for gevent the program has to
            patch the standard library before its other imports.
        options: any other option (docs/reference/options.md), such as `threads=8`.

    Raises:
        poorhttp.errors.Failure: an option is wrong, or the address cannot be used.
    """
    serve_settings(*_read_options(app, bind=bind, mode=mode, **options))


def serve_settings(settings: Settings, application: WSGIApplication | None) -> None:
    """Serve what `settings` say until TERM or INT; errors as of `serve`.

    `application`: if it is loaded already.
    """
    for hooks in plugin_hooks.used(settings):
        hooks.complete([settings])
    code = supervisor.run([settings], application=application)
    if code:
        raise SystemExit(code)


class Server:
    """A server in threads of this process, for tests and notebooks.

        with poorhttp.Server(application) as server:
            urllib.request.urlopen(server.url)

    Attributes:
        url: its address; by default a free port of 127.0.0.1.
    """

    def __init__(
        self,
        app: WSGIApplication | str | None = None,
        bind: str = "127.0.0.1:0",
        mode: str = "threading",
        **options: object,
    ) -> None:
        """Start the server; arguments as for `poorhttp.serve`, except `PROCESS_OPTIONS`.

        `graceful_timeout` is 5 s by default.

        Raises:
            poorhttp.errors.ConfigError: an option is wrong or for processes only, or the mode is
                neither single nor threading.
            poorhttp.errors.ApplicationError: a target cannot be loaded.
            poorhttp.errors.BindError: the address cannot be used.
        """
        options.setdefault("graceful_timeout", SERVER_GRACEFUL_TIMEOUT)
        self._settings, given = _read_options(app, bind=bind, mode=mode, **options)
        if mode not in ("single", "threading"):
            raise ConfigError(
                "a Server runs in threads of your program: mode must be single or threading, "
                f"not {mode}"
            )
        refused = [
            name
            for name in self._settings.changed()
            if name in PROCESS_OPTIONS or OPTIONS[name].available == IN_PROCESSES
        ]
        if self._settings.workers == 1:
            refused.remove("workers")
        refused += filter(self._settings.is_enabled, ("threads=auto", "workers=auto"))
        if refused:
            raise ConfigError(
                f"{', '.join(refused)}: not available in a Server, which runs in threads "
                "of your program; poorhttp.serve and the command take all options"
            )
        threads = self._settings.threads if mode == "threading" else 1
        self._hooks = plugin_hooks.used(self._settings)
        for hooks in self._hooks:
            hooks.complete([self._settings])
            hooks.check(self._settings)
        routes = Routes(self._settings, given)
        application = plugin_hooks.load_application(self._hooks, self._settings, routes)
        carrier = transport.load(self._settings)
        self._listeners = sockets.open_listeners(
            self._settings, approve=plugin_hooks.approver(self._hooks)
        )
        logs.error_log.open(self._settings)
        logs.begin_process(self._settings, "", configure=False)
        application, arguments = plugin_hooks.serving(
            self._hooks, self._settings, application, carrier, self._listeners
        )
        worker = Worker(
            application,
            self._settings,
            self._listeners,
            routes=routes.table(),
            streamed_bodies=routes.streamed_bodies,
            arguments=arguments,
        )
        self._reactor: Reactor | None = worker.reactor(multithread=threads > 1)
        self._worker = worker
        if threads > 1:
            worker.replace_thread = self._replace_thread
        self.url = self._listeners[0].url

        #: Held by the thread that closes the server, which is `_closer`.
        self._closing = allocate_lock()
        self._closer = 0
        self._threads: list[Thread | NativeThread] = []
        for number in range(1, threads + 1):
            self._start_thread(f"poorhttp-{number}")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop: answer requests in flight, and close the listening socket.

        After `graceful_timeout` the connections are cut, and a warning in the error log names the
        requests. An application that neither sends nor returns keeps its thread, which ends with
        the program. If another thread closes the server already, wait for that.
        """
        reactor = self._reactor
        if reactor is None:
            return
        is_foreign = reactor.foreign
        # The reactor has descriptors of the listening sockets too.
        del reactor
        own = get_ident()
        # A process that was forked from this one has none of the threads, and a request in flight
        # that closes its own server cannot wait for itself.
        is_request = own in [each.ident for each in self._threads]
        if is_foreign:
            self._close(waits=False)
        # Neither does a signal handler wait for the call of `close` that it has interrupted.
        elif self._closing.acquire(blocking=not is_request and own != self._closer):
            try:
                self._closer = own
                self._close(waits=not is_request)
            finally:
                self._closer = 0
                self._closing.release()

    def _start_thread(self, name: str) -> None:
        from poorhttp.process import threads

        arguments = self._worker.application, self._reactor
        thread = threads.create(self._worker.serve, name, arguments, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _replace_thread(self, thread_id: int = 0) -> bool:
        """Start another thread: see `Worker.replace_thread`."""
        reactor = self._reactor
        if reactor is None:
            return False
        for thread in [each for each in self._threads if not each.is_alive()]:
            with suppress(ValueError):
                self._threads.remove(thread)
        try:
            self._start_thread("poorhttp-replacement")
        except RuntimeError:
            return False
        if not thread_id:
            reactor.leave()
        return True

    def _close(self, *, waits: bool) -> None:
        """Do what `close` does; `waits`: until the threads have ended."""
        reactor = self._reactor
        if reactor is None:
            # Another thread has closed it meanwhile.
            return
        reactor.stop(graceful=False)
        if waits and not self._join(self._settings.graceful_timeout):
            names = stop_signals.requests_in_flight(reactor)
            reactor.give_up()
            ended = self._join(stop_signals.GRACE)
            kept = "" if ended else "; the application does not end, and keeps its thread"
            logs.write(
                "warning",
                f"graceful_timeout ({self._settings.graceful_timeout:g} s) is over; cut off: "
                f"{names}{kept}",
            )
        self._reactor = self._worker.replace_thread = None
        del reactor
        self._threads.clear()
        for hooks in self._hooks:
            hooks.stop(self._settings)
        logs.close()
        for listener in self._listeners:
            listener.close()

    def _join(self, timeout: float) -> bool:
        """Wait until the threads have ended, at most `timeout` seconds; `False` if one has not."""
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)


def _read_options(
    app: WSGIApplication | str | None, **options: object
) -> tuple[Settings, WSGIApplication | None]:
    """Return the settings, and the application unless it is the text of a target."""
    open_standard_streams()
    if isinstance(app, str):
        options["target"] = app
    settings = Settings(**options)
    for name in settings.changed():
        if OPTIONS[name].available == ON_COMMAND_LINE:
            raise ConfigError(f"{name}: {OPTIONS[name].instead}")
    if app is None and not settings.serves:
        raise ConfigError(
            "there is nothing to serve; name an application, or say static= or mount="
        )
    if app is None or isinstance(app, str):
        return settings, None
    refuse_asgi(app, "the application", settings.mode)
    return settings, app


def __getattr__(name: str) -> Any:
    # Other programs know it by its name here.
    if name in MOVED:
        return MOVED[name].load()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
