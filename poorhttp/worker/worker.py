"""A process that serves: application, listeners, and how it is told to stop."""

from __future__ import annotations

from poorhttp import logs
from poorhttp._core import Reactor
from poorhttp.config.address import is_raw_tcp
from poorhttp.config.version import VERSION
from poorhttp.process.signals import STOP_SIGNALS
from poorhttp.worker import temp_dir, wsgi

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence
    from typing import Any

    from _typeshed.wsgi import WSGIApplication
    from gevent.hub import Hub

    from poorhttp.config.settings import Settings
    from poorhttp.net.listener import Listener
    from poorhttp.process.worker_context import WorkerContext
    from poorhttp.worker.stop_signals import StopSignals
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _signal as signal

#: An application may have handlers for these.
OTHER_SIGNALS = signal.valid_signals().difference(STOP_SIGNALS)


class Worker:
    """What a mode is given.

    Attributes:
        application: is called for each request.
        settings: of this service.
        ready: to be called when requests can be served.
        signals: stop the reactor that they are told to watch; `None` if others see to that.
        serve: passes what the reactor hands out to the application.
    """

    serve: Callable[[Any, Any], None] = staticmethod(wsgi.serve)

    def __init__(
        self,
        application: WSGIApplication,
        settings: Settings,
        listeners: Sequence[Listener],
        context: WorkerContext | None = None,
        *,
        routes: Sequence[tuple[str, str, str | None, Settings]] = (),
        live: tuple[str, str] | None = None,
        ready: Callable[[], None] = lambda: None,
        signals: StopSignals | None = None,
    ) -> None:
        """Take the application, its listeners, and what the main process gives, if there is one."""
        self.application = application
        self.settings = settings
        self.ready = ready
        self.signals = signals
        self._listeners = listeners
        self._context = context
        self._routes = routes
        self._live = live
        self._raw_tcp = is_raw_tcp(settings.target)
        if self._raw_tcp:
            # It takes the whole of `socket`, which others do without.
            from poorhttp.worker import tcp

            self.serve = tcp.serve

    def reactor(
        self,
        *,
        multithread: bool = False,
        wait_writable: Callable[[int], object] | None = None,
        external_loop: bool = False,
        hub: Hub | None = None,
    ) -> Reactor:
        """Make the reactor of this process; see `poorhttp._core.Reactor`.

        Args:
            multithread: the application may be called several times at once.
            wait_writable: see there.
            external_loop: see there.
            hub: of gevent, if requests are run in its greenlets.

        Raises:
            ConfigError: a log file cannot be opened, or no temporary file created.
        """
        temp_dir.check(self.settings)
        bases = [
            (
                listener.fileno(),
                wsgi.base_environ(
                    listener.server,
                    multithread=multithread,
                    multiprocess=self.settings.worker_count > 1,
                    software=f"poorhttp/{VERSION}",
                ),
                listener.protocol,
                listener.proxy_protocol,
            )
            for listener in self._listeners
        ]
        context = self._context
        if context and context.status is not None and not self._raw_tcp:
            # Of a loop of events there is one, whatever it has in hand.
            slots = self.settings.threads if multithread and hub is None else 1
            context.status.set_slots(slots)
        accept_balance = None
        if context and context.balance_fd is not None:
            accept_balance = (context.balance_fd, context.slot)
        interrupter = None
        if self.settings.request_timeout:
            # It is not small.
            from poorhttp.worker.timeouts import GreenletInterrupter, ThreadInterrupter

            # Not `hub or`: a hub that has not started yet is false.
            interrupter = (
                ThreadInterrupter(self.signals)
                if hub is None
                else GreenletInterrupter(self.signals, hub)
            )
        access_log = logs.open_access_log(self.settings)
        try:
            reactor = Reactor(
                bases,
                self.settings,
                logs.error_log.opened,
                access_log=access_log,
                temp_dir=temp_dir.folder(self.settings),
                accept_balance=accept_balance,
                worker_status=context.status if context else None,
                channel=context.channel if context else None,
                fd_handoff=context.handoff if context else None,
                routes=self._routes,
                live=self._live,
                recycle_after=context.recycle_after if context else 0,
                wait_writable=wait_writable,
                external_loop=external_loop,
                plain=self._raw_tcp,
                interrupter=interrupter,
            )
            if interrupter is not None:
                interrupter.reactor = reactor
            if self.signals is not None:
                self.signals.attach(reactor)
            return reactor
        finally:
            # The reactor has its own descriptors, and gives them up when it is stopped: then nobody
            # may go on listening, or clients would connect to a server that never answers.
            for listener in self._listeners:
                listener.release()

    def run(self, serve: Callable[[], object], reactor: Reactor) -> None:
        """Tell that requests can be served, and do what `serve` does in the main thread.

        What a signal handler of the application raises here is logged, and `serve` called again;
        `SystemExit` and `KeyboardInterrupt` stop the reactor.
        """
        # As soon as that is told, signals may come.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, OTHER_SIGNALS)
        try:
            # Before anybody is let in: who may not serve any more ends here.
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
                return
            except BaseException as error:
                # No more than this: the next signal may come at once, and what its handler raises
                # must not find a way out.
                raised = error
