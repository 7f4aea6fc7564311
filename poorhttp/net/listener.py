"""A listening socket, its checks, and advice for the errors of bind(2) and listen(2)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from poorhttp._core import forget_fd, note_fd
from poorhttp.config.address import protocol_of
from poorhttp.errors import BindError
from poorhttp.process.c_socket import socket
from poorhttp.process.safe_open import parent_folder

#: Address as written (a path absolute), number among equal addresses, number among the sockets of
#: that address, and index of its worker.
Key = tuple[str, int, int, int | None]

#: Device, inode and modification time: file systems reuse the number of an inode at once.
File = tuple[int, int, int]

#: The listeners that are open in this process. A child closes those that it does not use: a socket
#: listens as long as any process has it open.
_opened: set[Listener] = set()


class Listener:
    """A listening socket, which the main process keeps open as long as the address is configured.

    Attributes:
        socket: non-blocking; accepted connections inherit its TCP_NODELAY.
        url: for log lines and messages.
        server: SERVER_NAME and SERVER_PORT of its requests.
        protocol: one of `poorhttp.config.address`.
        proxy_protocol: whether connections begin with a PROXY protocol header.
        key: identifies the address; a reload keeps the listener with the same key.
        path: of the file of a Unix socket that this server has made; empty for all others.
        file: identifies that file.
        owned: whether closing the listener removes that file and drains handshakes; not once
            another main process has taken over.
    """

    proxy_protocol = False

    def __init__(
        self,
        sock: socket.socket,
        key: Key,
        *,
        path: str = "",
        file: File | None = None,
        owned: bool = True,
    ) -> None:
        self.socket = sock
        self.key = key
        self.path = path
        self.owned = owned
        self.file = file
        self._pid = os.getpid()
        self.protocol = protocol_of(key[0])
        self._fd = sock.fileno()
        note_fd(self._fd)
        _opened.add(self)
        gateway = "" if self.protocol == "http" else f"{self.protocol}+"
        if sock.family == socket.AF_UNIX:
            name = os.fsdecode(sock.getsockname())
            self.url = gateway + (f"unix:@{name[1:]}" if name.startswith("\0") else f"unix:{name}")
            # RFC 3875 requires a name and a port; a Unix socket has neither.
            self.server = ("localhost", "80")
        else:
            host, port = sock.getsockname()[:2]
            where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            self.url = f"{self.protocol}://{where}"
            self.server = (host, str(port))

    @property
    def worker_index(self) -> int | None:
        """Index of the only worker that accepts from it; `None`: all workers do."""
        return self.key[3]

    def fileno(self) -> int:
        """Return the descriptor."""
        return self.socket.fileno()

    def reopen(self, fd: int) -> None:
        """Use a descriptor of the same socket, which was released in this process."""
        self.socket = socket.socket(fileno=fd)
        self._fd = fd
        note_fd(fd)
        _opened.add(self)

    def release(self) -> None:
        """Close the socket in this process; others that have it open go on listening."""
        forget_fd(self._fd)
        self._fd = -1
        self.socket.close()
        _opened.discard(self)

    def close(self) -> None:
        """Close the socket, and remove the file of a Unix socket that this process has made.

        A file that another process has put in its place stays.
        """
        self.release()
        if self.path and self.owned and self._pid == os.getpid():
            with suppress(OSError), parent_folder(self.path, follow=False) as (folder, name):
                if file_of(name, folder) == self.file:
                    os.unlink(name, dir_fd=folder)


def close_others(used: Iterable[Listener]) -> None:
    """Close all listeners but those that are used, in a child that has just been forked."""
    for listener in _opened.difference(used):
        listener.release()


@contextmanager
def closed_on_error(sock: socket.socket) -> Iterator[socket.socket]:
    """Close a socket if an exception is raised."""
    try:
        yield sock
    except BaseException:
        sock.close()
        raise


def checked(sock: socket.socket) -> socket.socket:
    """Check that a socket listens, and make it non-blocking; close it if it does not."""
    with closed_on_error(sock):
        if sock.family not in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
            raise OSError(errno.EAFNOSUPPORT, "it is neither a TCP nor a Unix socket")
        if sock.type != socket.SOCK_STREAM:
            raise OSError(
                errno.ESOCKTNOSUPPORT,
                "it is a socket for datagrams; HTTP needs a stream (systemd: ListenStream)",
            )
        if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise OSError(
                errno.EINVAL, "it does not listen; pass a listening socket (systemd: Accept=no)"
            )
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
    return sock


def file_of(path: str, folder: int | None = None) -> File | None:
    """Identify the file of a socket, below the descriptor `folder`; `None` if there is none."""
    try:
        found = os.lstat(path, dir_fd=folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


@contextmanager
def explaining(address: str, path: str = "") -> Iterator[None]:
    """Turn an OSError about an address into a BindError with advice."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        advice = _advice(error, address, path)
        raise BindError(f"cannot listen on {address}: {reason}{advice}") from error


def _advice(error: OSError, address: str, path: str) -> str:
    if "unix:" in address and error.errno in (errno.EADDRINUSE, errno.EACCES):
        if error.errno == errno.EACCES:
            return f"; {os.path.dirname(path)} or a folder above it is closed to the server's user"
        if os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
            return "; a file of that name exists, is not a socket, and was left alone"
        return "; another program listens there: stop it or choose another name"
    if isinstance(error, socket.gaierror):
        return "; the host must be a name or address of this machine"
    if error.errno == errno.EADDRINUSE:
        from poorhttp.net.running_servers import why_in_use  # needed only here

        return why_in_use(address)
    return {
        errno.EACCES: "; ports below 1024 are for root: choose a higher one",
        errno.EADDRNOTAVAIL: "; the host must be an address of this machine",
        errno.EBADF: "; no such descriptor was inherited",
        errno.ENOTSOCK: "; pass a listening socket",
    }.get(error.errno or 0, "")
