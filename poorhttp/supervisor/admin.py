"""The main process tells how the server is: `/-/live`, `/-/ready`, `/-/metrics` at `admin`.

Imported only where that is set. What is spoken there is our own protocol, by a reactor that the
main process looks at when its descriptor is readable; nobody who asks can keep it waiting.
"""

from __future__ import annotations

import time

from poorhttp import __version__, birth, log, sockets, wsgi
from poorhttp._core import Reactor
from poorhttp.options import Settings
from poorhttp.supervisor import metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp.listener import Listener
    from poorhttp.supervisor.fleet import Fleet

#: Who asks has a question of one line, and takes an answer of some kilobytes at once.
LIMITS: dict[str, object] = {
    "max_connections": 64,
    "backlog": 64,
    "max_request_line": 1024,
    "max_header_size": 4096,
    "max_body": 1024,
    "header_timeout": 5,
    "body_timeout": 5,
    "write_timeout": 5,
    "keepalive_timeout": 75,
    "drain_timeout": 1,
    "graceful_timeout": 5,
    "static_cache": 0,
}

#: Answers before the main process looks after its workers again.
AT_ONCE = 16

#: Stands where services have their names, of which none begins so.
NAME = "/admin"


class Admin:
    """The address, and what is answered there.

    Attributes:
        listeners: its listening sockets.
    """

    def __init__(self, service: Settings, have: Sequence[Listener] = ()) -> None:
        """Open the address that `service` names, unless it is among those that are open.

        Raises:
            BindError: it cannot be used.
        """
        assert service.admin is not None
        self._settings = Settings(bind=service.admin, **LIMITS)
        for name in ("socket_mode", "socket_owner", "server_header"):
            self._settings.take(name, service)
        self._settings.service = NAME
        self.listeners = sockets.open_listeners(self._settings, have)
        #: The one that lets clients in, and those that finish.
        self._reactors: list[Reactor] = []
        self._more = False
        birth.abandoned.append(self._abandon)

    def begin(self, fleet: Fleet, why_not: Callable[[], str], before: Admin | None = None) -> None:
        """Let clients in.

        Args:
            fleet: about what to tell.
            why_not: returns why the server is not ready; nothing if it is.
            before: whose place we take; those whom it has let in are heard for a moment.
        """
        if before is not None:
            before.retire()
            self._reactors += before._reactors
        self._fleet = fleet
        self._why_not = why_not
        software = f"poorhttp/{__version__}"
        bases = [
            (
                listener.fileno(),
                wsgi.base_environ(
                    listener.server, multithread=False, multiprocess=False, software=software
                ),
                listener.protocol,
                listener.proxied,
            )
            for listener in self.listeners
        ]
        reactor = Reactor(bases, self._settings, log.error_log.opened, watched=True)
        self._reactors.append(reactor)
        if before is None or before.listeners != self.listeners:
            where = ", ".join(listener.url for listener in self.listeners)
            log.write("info", f"/-/live, /-/ready and /-/metrics are at {where}")

    def retire(self) -> None:
        """Let nobody in any more; who is there may still ask for a moment."""
        for reactor in self._reactors:
            reactor.stop(last=False)

    @property
    def is_heard(self) -> bool:
        """Whether somebody may still ask."""
        return bool(self._reactors)

    def filenos(self) -> Iterator[int]:
        """Return what is readable when somebody asks."""
        return (reactor.fileno() for reactor in self._reactors)

    def due(self) -> float:
        """Return when there is something to do although nothing is readable."""
        return 0.0 if self._more else float("inf")

    def serve(self) -> None:
        """Answer who asks; not so many that others would have to wait."""
        self._more = False
        for reactor in list(self._reactors):
            for _ in range(AT_ONCE):
                request = reactor.poll()
                if request is None:
                    break
                wsgi.serve(self.application, (request,))
            else:
                self._more = True
            if reactor.finished:
                self._reactors.remove(reactor)

    def application(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Be the application of this address (PEP 3333)."""
        status, content_type, text = self._answer(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        fields = [("Content-Type", content_type), ("Cache-Control", "no-store")]
        if status.startswith("405"):
            fields.append(("Allow", "GET, HEAD"))
        start_response(status, fields)
        return [text.encode()]

    def _answer(self, method: str, path: str) -> tuple[str, str, str]:
        plain = "text/plain; charset=utf-8"
        if path not in ("/-/live", "/-/ready", "/-/metrics"):
            return "404 Not Found", plain, "there are /-/live, /-/ready and /-/metrics\n"
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", plain, "health can be read only\n"
        why_not = self._why_not()
        if path == "/-/metrics":
            text = metrics.text(self._fleet, ready=not why_not, now=time.monotonic())
            return "200 OK", metrics.CONTENT_TYPE, text
        if path == "/-/live":
            return "200 OK", plain, "live\n"
        if why_not:
            return "503 Service Unavailable", plain, f"not ready: {why_not}\n"
        return "200 OK", plain, "ready\n"

    def close(self, keep: Iterable[Listener] = ()) -> None:
        """Close everything but the listeners in `keep`."""
        self._abandon()
        birth.abandoned.remove(self._abandon)
        for listener in set(self.listeners).difference(keep):
            listener.close()

    def _abandon(self) -> None:
        """Forget all connections: in a child they are the parent's, who closes them for all."""
        self._reactors.clear()
