"""The interface through which the development server extends workers; unset in production.

Only the command line and the library import `poorhttp.plugins.dev`, if an option asks for it, so
that a production server loads nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from poorhttp.config.settings import Settings
from poorhttp.net.listener import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.dev.server import DevServer

#: The development server; None in production.
installed: DevServer | None = None


def listener_check(
    settings: Settings,
) -> Callable[[Settings, Sequence[Listener]], object] | None:
    """Return the function that may refuse listening sockets of a service; None in production."""
    return server().check_listeners if settings.debug != "off" else None


def server() -> DevServer:
    """Return the development server, which must be installed."""
    assert installed is not None, "poorhttp.plugins.dev.install was not called"
    return installed
