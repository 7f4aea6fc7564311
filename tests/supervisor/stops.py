"""A stop under test: the closed port, and the end of the server."""

from __future__ import annotations

from tests.testkit.client import Connection
from tests.testkit.server import Server, wait_for


def wait_refusing(server: Server) -> None:
    """Wait until nobody listens at its port any more."""
    wait_for(lambda: _is_refusing(server), "nobody to listen any more")


def _is_refusing(server: Server) -> bool:
    try:
        Connection(("127.0.0.1", server.port)).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        # It was about to be accepted when the port was closed.
        pass
    return False


def wait_end(server: Server) -> None:
    """Wait until it has ended by itself, and check that it went well."""
    assert server.wait() == 0, server.log()
    server.ended()
