"""Listening sockets."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from poorhttp.errors import BindError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from poorhttp.address import Address
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _socket as socket


def open_listeners(addresses: Iterable[Address], backlog: int) -> list[Listener]:
    """Open a listening socket for each address; several where a name has several addresses.

    Raises:
        BindError: an address cannot be used; those opened before are closed again.
    """
    listeners: list[Listener] = []
    try:
        for address in addresses:
            listeners += _open(address, backlog)
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners


class Listener:
    """A listening socket. It stays open as long as the server lives, whoever accepts from it.

    Attributes:
        socket: non-blocking; what it accepts has TCP_NODELAY (Linux hands that on).
        url: where to reach it, for people.
        server: SERVER_NAME and SERVER_PORT of its requests.
    """

    def __init__(self, sock: socket.socket, *, path: str = "") -> None:
        self.socket = sock
        self.path = path
        if sock.family == socket.AF_UNIX:
            name = sock.getsockname()
            self.url = f"unix:{os.fsdecode(name)}"
            # RFC 3875 wants a name and a port; a Unix socket has neither.
            self.server = ("localhost", "80")
        else:
            host, port = sock.getsockname()[:2]
            self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            self.server = (host, str(port))

    def fileno(self) -> int:
        """Return the descriptor."""
        return self.socket.fileno()

    def release(self) -> None:
        """Close the socket here; whoever has a duplicate goes on listening."""
        self.socket.close()

    def close(self) -> None:
        """Close the socket; a Unix socket's file goes with it."""
        self.release()
        if self.path:
            with suppress(FileNotFoundError):
                os.unlink(self.path)


def _open(address: Address, backlog: int) -> list[Listener]:
    try:
        if address.kind == "unix":
            return [_listen_unix(os.path.abspath(address.path), backlog)]
        if address.kind == "fd":
            return [_inherit(address.fd, backlog)]
        return _listen_tcp(address.host, address.port, backlog)
    except OSError as error:
        reason = error.strerror or str(error)
        advice = _advice_unix(error, address.path) if address.kind == "unix" else _advice(error)
        raise BindError(f"cannot listen on {address}: {reason}{advice}") from error


def _advice_unix(error: OSError, path: str) -> str:
    if error.errno != errno.EADDRINUSE:
        return ""
    if os.path.exists(path) and not stat.S_ISSOCK(os.stat(path).st_mode):
        return "; a file of that name exists that is no socket, and was left alone"
    return "; another program listens there: stop it or choose another name"


def _advice(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "; the host must be a name or address of this machine"
    return {
        errno.EADDRINUSE: "; another program listens there: stop it or choose another port",
        errno.EACCES: "; ports below 1024 are for root: choose a higher one",
        errno.EADDRNOTAVAIL: "; the host must be an address of this machine",
        errno.EBADF: "; no such descriptor was inherited",
    }.get(error.errno or 0, "")


def _listen_tcp(host: str, port: int, backlog: int) -> list[Listener]:
    # As bytes, a name that is ASCII anyway does not load the tables of international names.
    name = host.encode() if host.isascii() else host
    found = socket.getaddrinfo(
        name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
    )
    listeners: list[Listener] = []
    for family, kind, protocol, _, where in dict.fromkeys(found):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # With port 0 all addresses of the name get the port that the first one was given.
            actual = listeners[0].socket.getsockname()[1] if listeners and port == 0 else where[1]
            sock.bind((where[0], actual, *where[2:]))
            listeners.append(Listener(_ready(sock, backlog)))
        except OSError as error:
            sock.close()
            # A machine without IPv6 can still serve "localhost".
            if family == socket.AF_INET6 and len(found) > 1 and error.errno == errno.EADDRNOTAVAIL:
                continue
            for listener in listeners:
                listener.close()
            raise
    return listeners


def _listen_unix(path: str, backlog: int) -> Listener:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_stale(path):
            os.unlink(path)
        sock.bind(path)
        return Listener(_ready(sock, backlog), path=path)
    except OSError:
        sock.close()
        raise


def _is_stale(path: str) -> bool:
    """Whether a socket of that name is left over from a server that is gone."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return False
    except FileNotFoundError:
        return False
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Whoever has a full backlog is not gone.
        probe.setblocking(False)
        return probe.connect_ex(path) == errno.ECONNREFUSED
    finally:
        probe.close()


def _inherit(fd: int, backlog: int) -> Listener:
    # A duplicate: whoever passed the descriptor may pass it again after a restart.
    return Listener(_ready(socket.socket(fileno=os.dup(fd)), backlog))


def _ready(sock: socket.socket, backlog: int) -> socket.socket:
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.listen(backlog)
    sock.setblocking(False)
    return sock
