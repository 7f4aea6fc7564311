"""Which application answers a request, and whether it is an ASGI or a WSGI application.

Applications are loaded and mounted as WSGI applications. Each of them is wrapped in a
`Mounted`, which tells the mode that it answers a request: so the tables of hosts and prefixes need
not know ASGI. Hooks of other plug-ins get it in `wrap_target`, and may replace its `application`.
"""

from __future__ import annotations

from collections.abc import Iterable

from poorhttp.plugins.asgi.scope import environ_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from poorhttp.plugins.asgi.scope import RequestHead


class Mounted:
    """An application of a worker: for the whole service, or for a host or prefix.

    Attributes:
        application: of ASGI or WSGI.
        target: its name in messages.
        is_asgi: which of them.
        state: what the lifespan of an ASGI application has set; `None` without one.
        environ_of: makes the environ of a request from its scope.
    """

    state: dict[str, Any] | None = None
    environ_of = staticmethod(environ_of)

    def __init__(self, application: Any, target: str, *, is_asgi: bool) -> None:
        self.application = application
        self.target = target
        self.is_asgi = is_asgi

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a WSGI request; if `answering` asks, put itself into the environ."""
        if start_response is _asks:
            environ[FOUND] = self
            return ()
        answer: Iterable[bytes] = self.application(environ, start_response)
        return answer


def _asks(*_: object) -> Any:
    """Do nothing: stands for `start_response` where nobody answers."""


#: Key of the environ in which a `Mounted` that was asked puts itself.
FOUND = "poorhttp.mounted"


def answering(whole: WSGIApplication, head: RequestHead) -> tuple[Mounted | None, str]:
    """Return who answers a request, and the prefix below which it is mounted.

    `None`: nobody does, or the server itself (with 404, which is a WSGI application).
    """
    # As WSGI has it: bytes as Latin-1, below what proxies have stripped.
    path = head[3][len(head[6]) :].encode(errors="replace").decode("latin-1")
    environ: dict[str, Any] = {"PATH_INFO": path, "SCRIPT_NAME": ""}
    for name, value in head[7]:
        if name == b"host":
            environ["HTTP_HOST"] = value.decode("latin-1")
    whole(environ, _asks)
    prefix = environ["SCRIPT_NAME"].encode("latin-1").decode(errors="replace")
    return environ.get(FOUND), prefix
