"""Opens the listening sockets of a configuration, and keeps open ones over a reload."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence

from poorhttp.config.address import GATEWAYS, Address, is_raw_tcp, parse
from poorhttp.config.settings import PLATFORM_PORT, Settings
from poorhttp.errors import BindError, ConfigError
from poorhttp.net.inherited import EVERYTHING, descriptors_of, passed_sockets
from poorhttp.net.listener import Key, Listener, checked, closed_on_error, explaining, file_of
from poorhttp.process.c_socket import socket
from poorhttp.process.safe_open import parent_folder


def open_listeners(
    settings: Settings,
    have: Sequence[Listener] = (),
    is_ours: Callable[[Address], bool] = lambda address: False,
    approve: Callable[[Settings, Sequence[Listener]], object] | None = None,
) -> list[Listener]:
    """Open the listening sockets of a service.

    Without `bind`, the sockets that systemd has passed are taken, if any. With `reuse_port`, each
    TCP address has one socket for each worker; the main process keeps them all open, so that the
    accept queue of a worker that is replaced goes to its successor.

    Args:
        settings: of the service.
        have: open listeners; those of a wanted address are kept, the caller closes the others.
        is_ours: whether an address that is in use is left out instead of being an error.
        approve: is called with all listeners, and may raise an error.

    Raises:
        BindError: an address cannot be used; the sockets opened so far are closed again.
        ConfigError: the owner of Unix sockets does not exist, `proxy_protocol` or the protocol of
            an address cannot be used, or `approve` raises it.
    """
    opening = _Opening(settings, have)
    addresses = _addresses(settings, have)
    with_header: set[str] = set()
    if settings.proxy_protocol:
        from poorhttp.net.proxy_protocol import proxy_protocol_addresses

        with_header = proxy_protocol_addresses(settings, addresses)
    for address in addresses:
        if address.protocol in GATEWAYS:
            _check_gateway(settings, address)
    try:
        for address in addresses:
            before = len(opening.listeners)
            try:
                opening.open(address)
            except BindError as error:
                taken = getattr(error.__cause__, "errno", None) == errno.EADDRINUSE
                if not (taken and is_ours(address)):
                    raise
            for listener in opening.listeners[before:]:
                listener.proxy_protocol = str(address) in with_header
        for listener in opening.listeners:
            if listener in have:
                opening.refresh(listener)
        if approve is not None:
            approve(settings, opening.listeners)
    except BaseException:
        for listener in opening.listeners:
            if listener not in have:
                listener.close()
        raise
    return opening.listeners


def listeners_of(listeners: Iterable[Listener], worker_index: int) -> list[Listener]:
    """Return the listeners from which a worker accepts."""
    return [listener for listener in listeners if listener.worker_index in (None, worker_index)]


class _Opening:
    """The listeners of a configuration, while they are being opened; `listeners` are all so far."""

    def __init__(self, settings: Settings, have: Sequence[Listener]) -> None:
        self.settings = settings
        # The first of each key: the caller may have others that are about to be closed.
        self.have = {each.key: each for each in reversed(have) if each.fileno() >= 0}
        self.listeners: list[Listener] = []
        self.owner = (-1, -1)
        if settings.socket_owner:
            from poorhttp.process.privileges import owner_ids

            self.owner = owner_ids(settings.socket_owner, settings.origin("socket_owner"))
        indexes = range(settings.worker_count)
        self.worker_indexes: Sequence[int | None] = indexes if settings.reuse_port else (None,)
        self._times: dict[str, int] = {}

    def open(self, address: Address) -> None:
        """Open one address, or keep its open listeners."""
        path = ""
        text = str(address)
        if address.kind == "unix" and not address.abstract:
            path = os.path.abspath(address.path)
            text = str(Address("unix", path=path, protocol=address.protocol))
        elif address.kind == "tcp" and not address.port:
            # The port that the kernel chooses belongs to this service alone.
            text += f" {self.settings.service}".rstrip()
        which = self._times.get(text, 0)
        self._times[text] = which + 1
        have = [listener for listener in self.have.values() if listener.key[:2] == (text, which)]
        with explaining(str(address), path):
            if address.kind == "tcp":
                self._open_tcp(address, text, which, have)
            elif have:
                self.listeners += have
            elif address.kind == "unix":
                self._open_unix(address, path, (text, which, 0, None))
            else:
                for number, fd in enumerate(descriptors_of(address)):
                    # A duplicate: a later reload may need the original, which is passed only once.
                    sock = checked(socket.socket(fileno=os.dup(fd)))
                    self.listeners.append(Listener(sock, (text, which, number, None)))

    def refresh(self, listener: Listener) -> None:
        """Apply backlog, owner and mode to a kept listener, unless its descriptor was inherited."""
        address = listener.key[0]
        if parse(address.split()[0]).kind != "fd":
            with explaining(address, listener.path):
                listener.socket.listen(self.settings.backlog)
                if listener.path and listener.file == file_of(listener.path):
                    self._grant(listener.path)

    def _listen(self, sock: socket.socket, key: Key) -> Listener:
        """Add a listener for a TCP socket that is bound."""
        with closed_on_error(sock):
            if self.settings.reuse_port:
                # After bind: the first socket must not share the port with another program.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.listen(self.settings.backlog)
        self.listeners.append(Listener(checked(sock), key))
        return self.listeners[-1]

    # TCP

    def _open_tcp(self, address: Address, text: str, which: int, have: Sequence[Listener]) -> None:
        numbers = sorted({listener.key[2] for listener in have})
        if not numbers:
            self._open_names(address, text, which)
        for number in numbers:
            there = {each.worker_index: each for each in have if each.key[2] == number}
            # All of them are bound to the same address.
            model = next(iter(there.values()))
            for worker_index in self.worker_indexes:
                key = (text, which, number, worker_index)
                if worker_index in there:
                    self.listeners.append(there[worker_index])
                elif (worker_index is None and 0 in there) or (worker_index == 0 and None in there):
                    # `reuse_port` was switched: connections in the accept queue are not lost.
                    old = there[0 if worker_index is None else None]
                    self._listen(socket.socket(fileno=os.dup(old.fileno())), key)
                else:
                    model.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                    self._open_for_worker(model, key)

    def _open_names(self, address: Address, text: str, which: int) -> None:
        """Listen on every address of a name."""
        # An ASCII name as bytes does not load the tables of international names.
        name = address.host.encode() if address.host.isascii() else address.host
        flags = socket.AI_PASSIVE | socket.AI_NUMERICSERV
        found = socket.getaddrinfo(name, address.port, type=socket.SOCK_STREAM, flags=flags)
        port = address.port
        number = 0
        for family, _, _, _, where in dict.fromkeys(found):
            try:
                sock = _bound(family, (where[0], port, *where[2:]))
            except OSError as error:
                # A machine without IPv6 can still serve "localhost".
                missing = family == socket.AF_INET6 and error.errno == errno.EADDRNOTAVAIL
                if missing and len(found) > 1:
                    continue
                raise
            # With port 0, all addresses of the name get the port of the first one.
            port = sock.getsockname()[1]
            first = self._listen(sock, (text, which, number, self.worker_indexes[0]))
            for worker_index in self.worker_indexes[1:]:
                self._open_for_worker(first, (text, which, number, worker_index))
            number += 1

    def _open_for_worker(self, model: Listener, key: Key) -> None:
        """Open another socket on the address of `model`."""
        self._listen(_bound(model.socket.family, model.socket.getsockname(), shared=True), key)

    # Unix

    def _open_unix(self, address: Address, path: str, key: Key) -> None:
        with closed_on_error(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as sock:
            if not path:
                sock.bind(b"\0" + os.fsencode(address.path[1:]))
            else:
                self._bind_path(sock, path)
        file = file_of(path) if path else None
        self.listeners.append(Listener(sock, key, path=path, file=file))
        if path:
            self._grant(path)
        # After owner and mode are set.
        sock.listen(self.settings.backlog)
        sock.setblocking(False)

    def _bind_path(self, sock: socket.socket, path: str) -> None:
        with parent_folder(path, follow=False) as (folder, name):
            if _is_stale(path):
                os.unlink(name, dir_fd=folder)
        if self.settings.socket_mode is not None:
            # bind(2) creates the file with these permissions, minus the umask.
            os.fchmod(sock.fileno(), self.settings.socket_mode)
        sock.bind(path)

    def _grant(self, path: str) -> None:
        """Set owner and mode of a Unix socket, without following a link."""
        if self.settings.socket_mode is None and self.owner == (-1, -1):
            return
        with parent_folder(path, follow=False) as (folder, name):
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            found = os.fstat(fd)
            # With a second hard link it may be the socket of another program.
            if not stat.S_ISSOCK(found.st_mode) or found.st_nlink > 1:
                raise FileNotFoundError(errno.ENOENT, "it was replaced by something else")
            itself = f"/proc/self/fd/{fd}"
            try:
                if self.owner != (-1, -1):
                    os.chown(itself, *self.owner)
            except PermissionError:
                raise ConfigError(
                    f"{self.settings.origin('socket_owner')}: only root may give a socket to "
                    f'"{self.settings.socket_owner}"; start the server as root, or leave it out'
                ) from None
            if self.settings.socket_mode is not None:
                os.chmod(itself, self.settings.socket_mode)
        finally:
            os.close(fd)


def _addresses(settings: Settings, have: Iterable[Listener]) -> Sequence[Address]:
    # In any case, because it removes the variables from the environment.
    activated = bool(passed_sockets()) or any(listener.key[0] == EVERYTHING for listener in have)
    # Passed sockets are meant for this server, the variable of a platform for any.
    is_chosen = settings.is_set("bind") and settings.origin("bind") != PLATFORM_PORT
    return settings.bind if is_chosen or not activated else (parse(EVERYTHING),)


def _check_gateway(settings: Settings, address: Address) -> None:
    """Check that a trusted proxy can reach the address: only such peers may name the client."""
    place = settings.origin("bind")
    networks = [network for network in settings.trusted_proxies if network != "unix"]
    example = ""
    if address.kind == "unix" and "unix" not in settings.trusted_proxies:
        example = "unix"
    elif address.kind == "tcp" and not networks:
        example = "127.0.0.1"
    elif not settings.trusted_proxies:
        example = "unix, or 127.0.0.1"
    if example:
        raise ConfigError(
            f"{place}: only trusted_proxies may speak {address.protocol}, and none can reach "
            f"{address}; name the web server, for example trusted_proxies = {example}"
        )
    if is_raw_tcp(settings.target):
        raise ConfigError(
            f"{place}: {settings.target} reads its connections itself, so it cannot be served at "
            f"{address}; write the address without {address.protocol}"
        )


def _bound(family: int, where: tuple[object, ...], *, shared: bool = False) -> socket.socket:
    with closed_on_error(socket.socket(family, socket.SOCK_STREAM)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(where)
    return sock


def _is_stale(path: str) -> bool:
    """Whether the file is the socket of a server that has ended."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
    except FileNotFoundError:
        return False
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A server with a full backlog, which gives EAGAIN, has not ended.
        probe.setblocking(False)
        return probe.connect_ex(path) == errno.ECONNREFUSED
    finally:
        probe.close()
