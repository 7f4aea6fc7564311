"""The class `Worker`: what a mode uses to create the reactor and run its serve loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from poorhttp import logs
from poorhttp._core import Reactor, Request, RequestName
from poorhttp._core import client_disconnected as of_thread
from poorhttp.config.address import is_raw_tcp
from poorhttp.config.registry import UPGRADER, registry
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.net.listener import Listener
from poorhttp.process.control_channel import GREENLETS
from poorhttp.process.signals import STOP_SIGNALS, signal
from poorhttp.process.worker_context import WorkerContext
from poorhttp.worker import temp_dir, wsgi
from poorhttp.worker.options import worker_options
from poorhttp.worker.stop_signals import StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import WSGIApplication
    from gevent.hub import Hub

    from poorhttp._core import Event

#: Signals for which an application may have handlers.
OTHER_SIGNALS = signal.valid_signals().difference(STOP_SIGNALS)

#: No further arguments of the reactor.
NONE: Mapping[str, Any] = {}


class Worker:
    """The argument of a mode: everything that it needs to serve.

    Attributes:
        application: called for each request.
        settings: of this service.
        ready: called when requests can be served.
        signals: stops the reactor; `None` for a `poorhttp.Server`, which the program stops.
    """

    #: Calls the application for each request of the reactor.
    serve: Callable[[Any, Any], None] = staticmethod(wsgi.serve)
    promoted = False  # it has stopped serving, because the main process promotes it
    #: Starts a thread in the place of one that goes on with its request and then ends: the present
    #: one, if the application has got its connection, or one whose response streams, by its native
    #: ID; or one more (0). Returns whether it could. `None`: the mode has no pool of threads.
    replace_thread: Callable[..., bool] | None = None
    _offers_upgrades = True

    def __init__(
        self,
        application: WSGIApplication,
        settings: Settings,
        listeners: Sequence[Listener],
        context: WorkerContext | None = None,
        *,
        routes: Sequence[tuple[str, str, str | None, Settings]] = (),
        streamed_bodies: Sequence[tuple[str, str, bool]] = (),
        appended: tuple[str, str] | None = None,
        takes_times: bool = False,
        arguments: Mapping[str, Any] = NONE,
        ready: Callable[[], object] = lambda: None,
        signals: StopSignals | None = None,
    ) -> None:
        """Take the application, its listeners, and what the main process gives, if there is one.

        `arguments` are those of the reactor that plug-ins give.
        """
        self.application = application
        self.settings = settings
        self.ready = ready
        self.signals = signals
        self._listeners = listeners
        self._context = context
        self._routes = routes
        self._streamed_bodies = streamed_bodies
        self._appended = appended
        self._takes_times = takes_times
        self._arguments = arguments
        self._raw_tcp = is_raw_tcp(settings.target)
        if self._raw_tcp:
            # It imports all of `socket`, which HTTP workers do not need.
            from poorhttp.worker import tcp

            self.serve = tcp.serve

    def reactor(
        self,
        *,
        multithread: bool = False,
        new_event: Callable[[], Event] | None = None,
        external_loop: bool = False,
        hub: Hub | None = None,
        client_disconnected: Callable[[], bool] | None = None,
        new_interrupter: Callable[[StopSignals | None], Any] | None = None,
    ) -> Reactor:
        """Create the reactor of this process; see `poorhttp._core.Reactor`.

        Args:
            multithread: the application may be called several times at once.
            new_event, external_loop: see there.
            hub: the hub of gevent, if requests run in greenlets.
            client_disconnected: `poorhttp.client_disconnected` of an external loop; others have
                that of threads.
            new_interrupter: makes what ends late applications in place of `ThreadInterrupter`.

        Raises:
            ConfigError: a log file cannot be opened, or no temporary file created; or a plug-in
                gives the reactor a field that it does not have, or of another type.
        """
        temp_dir.check(self.settings)
        carried = registry.entries["transports"]
        bases = [
            (
                listener.fileno(),
                wsgi.base_environ(
                    listener.server,
                    multithread=multithread,
                    multiprocess=self.settings.worker_count > 1,
                    secure=listener.protocol in carried,
                    client_disconnected=client_disconnected if external_loop else of_thread,
                ),
                listener.protocol,
                listener.proxy_protocol,
            )
            for listener in self._listeners
        ]
        context = self._context
        if context and context.status is not None and not self._raw_tcp:
            # An event loop counts as one slot, however many requests it runs.
            context.status.set_slots(self.settings.threads if multithread and hub is None else 1)
        accept_balance = None
        if context and context.siblings is not None:
            accept_balance = (context.siblings, context.slot)
        interrupter: Any = None
        if self.settings.request_timeout:
            from poorhttp.worker.timeouts import GreenletInterrupter, ThreadInterrupter

            new = new_interrupter or ThreadInterrupter
            # Not `hub or`: a hub that has not started yet is false.
            interrupter = (
                new(self.signals) if hub is None else GreenletInterrupter(self.signals, hub)
            )
        request_context = None
        if hub is not None and self.settings.request_id:
            # Greenlets share their thread.
            from contextvars import ContextVar

            request_context = ContextVar[RequestName | None]("poorhttp.request", default=None)
            logs.current_request = request_context.get
        access_log = logs.open_access_log(self.settings)
        try:
            options = worker_options(
                self.settings,
                self._routes,
                self._arguments,
                error_log=logs.error_log.opened,
                access_log=access_log,
                temp_dir=temp_dir.folder(self.settings),
                accept_balance=accept_balance,
                worker_status=context.status if context else None,
                takes_times=self._takes_times,
                channel=context.channel if context else None,
                fd_handoff=context.handoff if context else None,
                streamed_bodies=self._streamed_bodies,
                live_reload=self._appended,
                recycle_after=context.recycle_after if context else 0,
                new_event=new_event,
                external_loop=external_loop,
                multithread=multithread and hub is None,
                raw_tcp=self._raw_tcp,
                interrupter=interrupter,
                offer_upgrade=None if self._raw_tcp else self._offer_upgrade,
                replace_thread=self._replace_thread,
                reopen_logs=self.signals.reopen if self.signals is not None else None,
                note_stop=self.signals.note_replaced if self.signals is not None else None,
                end_line=logs.end_line,
                request_context=request_context,
                refork=context.on_requests if context else None,
            )
            reactor = Reactor(bases, options)
            if interrupter is not None:
                interrupter.reactor = reactor
            if self.signals is not None:
                if context is not None:
                    self.signals.channel = context.channel
                self.signals.attach(reactor)
            return reactor
        except TypeError as error:
            raise ConfigError(f"the reactor cannot be made: {error}") from error
        finally:
            # The reactor has duplicated the descriptors, and closes its own when it stops. If these
            # stayed open, clients would connect to a server that never answers.
            for listener in self._listeners:
                listener.release()

    def note_greenlets(self, package: str) -> None:
        """Have it logged once, however many workers there are, that threads are greenlets."""
        if self._context is None:
            log_greenlets(package)
        else:
            with suppress(OSError):
                os.write(self._context.channel, GREENLETS.get(package, GREENLETS[""]))
        if package == "gevent":
            from gevent import get_hub

            # It imports modules for the first hub, by locks that it has replaced: threads that make
            # their hubs at the same time would wait for each other for ever.
            get_hub()

    def _offer_upgrade(self, environ: dict[str, Any], request: Request) -> None:
        if not self._offers_upgrades:
            return
        try:
            hooks: Any = registry.entries["worker_hooks"][UPGRADER].load()
        except ConfigError as error:
            self._offers_upgrades = False
            logs.write("warning", f"applications get no connections (WebSocket): {error}")
            return
        wsgi.end_upgraded = hooks.end_upgraded
        hooks.offer_upgrade(environ, request, self.application, self.replace_thread)

    def _replace_thread(self, thread_id: int) -> bool:
        return self.replace_thread is not None and self.replace_thread(thread_id)

    def run(self, serve: Callable[[], object], reactor: Reactor) -> None:
        """Report that requests can be served, and call `serve` in the main thread.

        An exception of the application's signal handlers is logged, and `serve` is called again;
        `SystemExit` and `KeyboardInterrupt` stop the reactor.
        """
        # As soon as readiness is reported, signals may arrive.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, OTHER_SIGNALS)
        try:
            # Before connections are accepted: a worker that is no longer wanted exits here.
            self.ready()
        except BaseException:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            raise
        raised: BaseException | None = None
        while True:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                if isinstance(raised, (SystemExit, KeyboardInterrupt)):
                    reactor.stop()
                elif raised is not None:
                    logs.exception("a signal handler of the application failed", raised)
                raised = None
                serve()
                self.promoted = reactor.promoted
                return
            except BaseException as error:
                # Nothing more: the next signal's handler may raise at once, which must not escape.
                raised = error


def log_greenlets(package: str, service: str = "") -> None:
    logs.write(
        "warning",
        f"{service}the application replaces threads by greenlets ({package or 'unknown package'}): "
        "requests run in threads nevertheless; mode = gevent runs them in greenlets of gevent",
    )
