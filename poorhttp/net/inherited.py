"""Listening sockets opened by another process: the previous main process, systemd, a parent."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from poorhttp.config.address import Address
from poorhttp.errors import BindError
from poorhttp.net.listener import Listener, checked, explaining
from poorhttp.process.c_socket import socket

#: All sockets that systemd has passed; the default where no address is set.
EVERYTHING = "fd:*"

#: The first descriptor that is passed.
LISTEN_FDS_START = 3

#: The environment variables of socket activation (sd_listen_fds(3)).
VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")

_passed: list[tuple[int, str]] = []


def listeners_to_json(listeners: Iterable[Listener]) -> str:
    """Describe listeners for a new main process, which inherits their descriptors."""
    import json

    return json.dumps(
        [
            {"fd": each.fileno(), "key": each.key, "path": each.path, "file": each.file}
            for each in listeners
        ]
    )


def listeners_from_json(text: str) -> list[Listener]:
    """Return the listeners that the previous main process has described.

    They are not `owned` as long as that process may have to go on.

    Raises:
        BindError: a descriptor was not inherited, or is no listening socket.
    """
    import json

    listeners = []
    for found in json.loads(text):
        address, which, number, worker_index = found["key"]
        with explaining(address):
            os.set_inheritable(found["fd"], False)
            sock = checked(socket.socket(fileno=found["fd"]))
        key = (address, which, number, worker_index)
        file = tuple(found["file"]) if found["file"] else None
        listeners.append(Listener(sock, key, path=found["path"], file=file, owned=False))
    return listeners


def descriptors_of(address: Address) -> list[int]:
    """Return the inherited descriptors of an address `fd:...`."""
    if not address.name:
        return [address.fd]
    every = passed_sockets()
    found = [fd for fd, name in every if address.name in ("*", name)]
    if not found:
        names = ", ".join(dict.fromkeys(f"fd:{name}" for _, name in every if name))
        hint = f"it passed {names}" if names else "it passed none; is the socket unit started?"
        raise BindError(
            f"cannot listen on {address}: systemd passed no socket of that name; {hint}"
        )
    return found


def passed_sockets() -> list[tuple[int, str]]:
    """Return descriptors and names of the sockets that systemd has passed to this process.

    The variables are read once and removed from the environment, so that programs that this process
    starts do not take them for theirs. The descriptors are never closed.
    """
    if any(name in os.environ for name in VARIABLES):
        _passed[:] = _take()
    return _passed


def _take() -> list[tuple[int, str]]:
    pid, number, fd_names, _ = (os.environ.pop(name, "") for name in VARIABLES)
    if pid != str(os.getpid()) or not (number.isascii() and number.isdigit()):
        return []
    called = fd_names.split(":")
    found = []
    for index in range(int(number)):
        fd = LISTEN_FDS_START + index
        with suppress(OSError):
            os.set_inheritable(fd, False)
        found.append((fd, called[index] if index < len(called) else ""))
    return found
