"""The place where the development server enters a service: only `poorhttp.dev` fills it.

So nothing of `poorhttp.dev` is imported where nobody develops, and no other package imports it but
for the command line and the library, which read the options.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from poorhttp.config.settings import Settings
    from poorhttp.dev.server import DevServer
    from poorhttp.net.listener import Listener

#: The development server, if an option asks for any of it.
installed: DevServer | None = None


def listener_check(
    settings: Settings,
) -> Callable[[Settings, Sequence[Listener]], object] | None:
    """Return what has to approve of the listening sockets of a service; mostly nothing."""
    return server().check_listeners if settings.debug != "off" else None


def server() -> DevServer:
    """Return the development server, which an option has asked for."""
    assert installed is not None, "poorhttp.dev.install was not called"
    return installed
