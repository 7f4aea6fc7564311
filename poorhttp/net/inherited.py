"""Listening sockets opened by another process: the previous main process, systemd, a parent."""

from __future__ import annotations

import os
from collections.abc import Iterable

from poorhttp.config.address import Address
from poorhttp.errors import BindError
from poorhttp.net.listener import Listener, checked, explaining
from poorhttp.process.c_socket import socket

#: All sockets that systemd has passed; the default where no address is set.
EVERYTHING = "fd:*"


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
    from poorhttp.net.systemd import passed_sockets

    every = passed_sockets()
    found = [fd for fd, name in every if address.name in ("*", name)]
    if not found:
        names = ", ".join(dict.fromkeys(f"fd:{name}" for _, name in every if name))
        hint = f"it passed {names}" if names else "it passed none; is the socket unit started?"
        raise BindError(
            f"cannot listen on {address}: systemd passed no socket of that name; {hint}"
        )
    return found
