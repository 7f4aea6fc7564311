"""Opening listening sockets, and keeping what is open over a reload."""

from __future__ import annotations

import errno
import os
import stat

from poorhttp.config.address import Address, is_raw_tcp, parse
from poorhttp.errors import BindError, ConfigError
from poorhttp.net.inherited import EVERYTHING, descriptors_of
from poorhttp.net.listener import Listener, checked, explaining, file_of
from poorhttp.process.c_socket import socket
from poorhttp.process.safe_open import parent_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from poorhttp.config.settings import Settings
    from poorhttp.net.listener import Key


def open_listeners(
    settings: Settings,
    have: Sequence[Listener] = (),
    is_ours: Callable[[Address], bool] = lambda address: False,
    approve: Callable[[Settings, Sequence[Listener]], object] | None = None,
) -> list[Listener]:
    """Open the listening sockets that the settings ask for.

    Without `bind`, those that systemd passed are taken, if it passed any. With `reuse_port`, each
    TCP address has one for each worker; the main process keeps them all, so that what waits in the
    queue of a worker that is replaced waits for its successor.

    Args:
        settings: of the service.
        have: those that are open already. Where one of them is wanted it is taken as it is; what
            becomes of the others is up to the caller.
        is_ours: asked about an address that is in use; if so it is left out.
        approve: is shown all of them, and may raise an error.

    Raises:
        BindError: an address cannot be used; what was opened is closed again.
        ConfigError: there is no such owner of Unix sockets, or `proxy_protocol` cannot be had, or
            nobody may speak the protocol of an address, or `approve` does not.
    """
    opening = _Opening(settings, have)
    addresses = _addresses(settings, have)
    among = _proxied(settings, addresses)
    for address in addresses:
        if address.protocol != "http":
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
                listener.proxy_protocol = str(address) in among
        for listener in opening.kept:
            opening.refresh(listener)
        if approve is not None:
            approve(settings, opening.listeners)
    except BaseException:
        for listener in opening.opened:
            listener.close()
        raise
    return opening.listeners


def listeners_of(listeners: Iterable[Listener], worker_index: int) -> list[Listener]:
    """Return those that a worker accepts from."""
    return [listener for listener in listeners if listener.worker_index in (None, worker_index)]


class _Opening:
    """Opening what is wanted and not there.

    Attributes:
        listeners: what is wanted, as far as it is there.
        kept: those that were there.
        opened: those that were not.
    """

    def __init__(self, settings: Settings, have: Sequence[Listener]) -> None:
        self.settings = settings
        # The first of each key: the caller may have others that are about to go.
        self.have = {each.key: each for each in reversed(have) if each.fileno() >= 0}
        self.listeners: list[Listener] = []
        self.kept: list[Listener] = []
        self.opened: list[Listener] = []
        self.owner = _owner(settings)
        indexes = range(settings.worker_count)
        self.worker_indexes: Sequence[int | None] = indexes if settings.reuse_port else (None,)
        self._times: dict[str, int] = {}

    def open(self, address: Address) -> None:
        """Open one address, or keep what is open there."""
        path = ""
        text = str(address)
        if address.kind == "unix" and not address.abstract:
            path = os.path.abspath(address.path)
            text = str(Address("unix", path=path, protocol=address.protocol))
        elif address.kind == "tcp" and not address.port:
            # Whichever port that is, it belongs to this service.
            text += f" {self.settings.service}".rstrip()
        which = self._times.get(text, 0)
        self._times[text] = which + 1
        have = [listener for listener in self.have.values() if listener.key[:2] == (text, which)]
        with explaining(str(address), path):
            if address.kind == "tcp":
                self._open_tcp(address, text, which, have)
            elif have:
                self._keep(have)
            elif address.kind == "unix":
                self._open_unix(address, path, (text, which, 0, None))
            else:
                for number, fd in enumerate(descriptors_of(address)):
                    # A duplicate: it is passed once, and may be wanted again after a reload.
                    sock = checked(socket.socket(fileno=os.dup(fd)))
                    self._add(Listener(sock, (text, which, number, None)))

    def refresh(self, listener: Listener) -> None:
        """Bring one that is kept up to the settings. What was passed to us stays as it is."""
        address = listener.key[0]
        if parse(address.split()[0]).kind != "fd":
            with explaining(address, listener.path):
                listener.socket.listen(self.settings.backlog)
                if listener.path and listener.file == file_of(listener.path):
                    self._grant(listener.path)

    def _keep(self, have: Iterable[Listener]) -> None:
        self.kept += have
        self.listeners += have

    def _add(self, listener: Listener) -> Listener:
        self.opened.append(listener)
        self.listeners.append(listener)
        return listener

    # TCP

    def _open_tcp(self, address: Address, text: str, which: int, have: Sequence[Listener]) -> None:
        numbers = sorted({listener.key[2] for listener in have})
        if not numbers:
            self._open_names(address, text, which)
        for number in numbers:
            there = {each.worker_index: each for each in have if each.key[2] == number}
            # Any of them knows what it is bound to.
            model = next(iter(there.values()))
            for worker_index in self.worker_indexes:
                if worker_index in there:
                    self._keep([there[worker_index]])
                elif (worker_index is None and 0 in there) or (worker_index == 0 and None in there):
                    # The option was switched: what waits there is not lost.
                    old = there[0 if worker_index is None else None]
                    sock = socket.socket(fileno=os.dup(old.fileno()))
                    self._add(Listener(self._finished(sock), (text, which, number, worker_index)))
                else:
                    model.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                    self._open_for_worker(model, (text, which, number, worker_index))

    def _open_names(self, address: Address, text: str, which: int) -> None:
        """Listen on every address of a name."""
        # As bytes, a name that is ASCII anyway does not load the tables of international names.
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
            # With port 0 all addresses of the name get the port that the first one was given.
            port = sock.getsockname()[1]
            first = Listener(self._finished(sock), (text, which, number, self.worker_indexes[0]))
            self._add(first)
            for worker_index in self.worker_indexes[1:]:
                self._open_for_worker(first, (text, which, number, worker_index))
            number += 1

    def _open_for_worker(self, model: Listener, key: Key) -> None:
        """Listen where another one does."""
        sock = _bound(model.socket.family, model.socket.getsockname(), shared=True)
        self._add(Listener(self._finished(sock), key))

    def _finished(self, sock: socket.socket) -> socket.socket:
        try:
            if self.settings.reuse_port:
                # Not before it is bound: the first one must not join a stranger.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.listen(self.settings.backlog)
            return checked(sock)
        except OSError:
            sock.close()
            raise

    # Unix

    def _open_unix(self, address: Address, path: str, key: Key) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if not path:
                sock.bind(b"\0" + os.fsencode(address.path[1:]))
            else:
                self._bind_path(sock, path)
        except BaseException:
            sock.close()
            raise
        listener = Listener(sock, key, path=path, file=file_of(path) if path else None)
        self._add(listener)
        if path:
            self._grant(path)
        # Not before it is known who may connect.
        sock.listen(self.settings.backlog)
        sock.setblocking(False)

    def _bind_path(self, sock: socket.socket, path: str) -> None:
        with parent_folder(path, follow=False) as (folder, name):
            if _is_stale(path):
                os.unlink(name, dir_fd=folder)
        if self.settings.socket_mode is not None:
            # The file is made with these permissions, less what the umask withholds: never more.
            os.fchmod(sock.fileno(), self.settings.socket_mode)
        sock.bind(path)

    def _grant(self, path: str) -> None:
        """Give a socket the owner and the permissions that are wanted, without following a link."""
        if self.settings.socket_mode is None and self.owner == (-1, -1):
            return
        with parent_folder(path, follow=False) as (folder, name):
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            found = os.fstat(fd)
            # With a second link it may be the socket of another program.
            if not stat.S_ISSOCK(found.st_mode) or found.st_nlink > 1:
                raise FileNotFoundError(errno.ENOENT, "it was replaced by something else")
            itself = f"/proc/self/fd/{fd}"
            if self.owner != (-1, -1):
                self._give(itself)
            if self.settings.socket_mode is not None:
                os.chmod(itself, self.settings.socket_mode)
        finally:
            os.close(fd)

    def _give(self, path: str) -> None:
        try:
            os.chown(path, *self.owner)
        except PermissionError:
            raise ConfigError(
                f"{self.settings.origin('socket_owner')}: only root may give a socket to "
                f'"{self.settings.socket_owner}"; start the server as root, or leave it out'
            ) from None


def _addresses(settings: Settings, have: Iterable[Listener]) -> Sequence[Address]:
    # In any case: it takes the variables out of the environment.
    from poorhttp.net.systemd import passed

    activated = bool(passed()) or any(listener.key[0] == EVERYTHING for listener in have)
    return settings.bind if settings.is_set("bind") or not activated else (parse(EVERYTHING),)


def _proxied(settings: Settings, addresses: Sequence[Address]) -> set[str]:
    if not settings.proxy_protocol:
        return set()
    from poorhttp.net.proxy_protocol import proxy_protocol_addresses  # only for those who want it

    return proxy_protocol_addresses(settings, addresses)


def _check_gateway(settings: Settings, address: Address) -> None:
    """See to it that somebody may speak there: whoever does can name any client, and any user."""
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
            f"{place}: {settings.target} reads its connections itself, so {address} cannot be "
            f"had; write the address without {address.protocol}"
        )


def _owner(settings: Settings) -> tuple[int, int]:
    if not settings.socket_owner:
        return (-1, -1)
    # Asks for the databases of users and groups.
    from poorhttp.process.privileges import owner_ids

    return owner_ids(settings.socket_owner, settings.origin("socket_owner"))


def _bound(family: int, where: tuple[object, ...], *, shared: bool = False) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(where)
        return sock
    except OSError:
        sock.close()
        raise


def _is_stale(path: str) -> bool:
    """Whether a socket of that name is left over from a server that is gone."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
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
