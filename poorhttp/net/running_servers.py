"""Finds what listens on an address, or has its port, in /proc (proc(5))."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress

from poorhttp.config.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

#: Part of a file name in /proc/PID/maps of every server of poorhttp.
_CORE = b"/poorhttp/_core"

#: Parts of titles of processes that have listening sockets (`proc_name`).
_TITLES = (b": main", b": standalone", b": worker ")

#: State of a listening TCP socket in /proc/net/tcp, which lists those first.
LISTENS = "0A"

#: First and last of the ports from which the kernel chooses those of connections (ip(7)).
LOCAL_PORTS = "/proc/sys/net/ipv4/ip_local_port_range"


def server_on(address: Address) -> int:
    """Return the first process of the poorhttp server that listens on an address.

    Returns:
        0 if there is none that this process may inspect.
    """
    wanted = {f"socket:[{inode}]" for inode in _inodes(address)}
    if not wanted:
        return 0
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):
            folder = f"/proc/{pid}/fd"
            if any(_target(folder, fd) in wanted for fd in os.listdir(folder)) and is_server(pid):
                return pid
    return 0


def why_in_use(address: str) -> str:
    """Return the end of a message that a port is in use: what has it, and what to do.

    A connection that a program has opened has a local port too, which the kernel has chosen, and
    keeps servers from that port until it has ended.

    Args:
        address: HOST:PORT, on which the server cannot listen.
    """
    host, _, text = address.rpartition(":")
    port = int(text)
    version = 6 if host.startswith("[") else 4
    # Without the tables, what is the case nearly always.
    listener = "; another program listens there: stop it or choose another port"
    with suppress(OSError, ValueError):
        with open(LOCAL_PORTS, encoding="ascii") as file:
            first, last = file.read().split()
        if not port:
            return f"; no port from {first} to {last} is free: choose one outside of these"
        users = [
            row
            for table in ("tcp", "tcp6")
            for row in rows(table)
            if port_of(row[1]) == port and (host == "[::]" or _takes(ip_address(row[1]), version))
        ]
        if any(row[3] == LISTENS for row in users):
            return listener
        if not users:
            return "; no program listens there, but one has reserved it (bind): choose another port"
        other, peer_port = ip_address(users[0][2]), port_of(users[0][2])
        peer = f"[{other}]:{peer_port}" if other.version == 6 else f"{other}:{peer_port}"
        return (
            f"; no program listens there: it is the local port of a connection to {peer}. Wait "
            f"until that has ended, or choose a port below {first} or above {last}, which the "
            "kernel gives to no connection"
        )
    return listener


def port_of(text: str) -> int:
    """Return the port of an address in a table of /proc/net, `0100007F:1F90`."""
    return int(text.rpartition(":")[2], 16)


def ip_address(text: str) -> IPv4Address | IPv6Address:
    """Return the IP address of an address in a table of /proc/net."""
    import ipaddress

    # Words of four bytes, in the order of the machine.
    raw = bytes.fromhex(text.rpartition(":")[0])
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    found = ipaddress.ip_address(raw)
    return getattr(found, "ipv4_mapped", None) or found


def is_server(pid: int) -> bool:
    """Whether a process is a running server; `False` if this process may not inspect it."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as line:
        words = line.read().split(b"\0")
        is_title = words[1:] == [b""] and any(title in words[0] for title in _TITLES)
        if is_title or any(os.path.basename(word) == b"poorhttp" for word in words):
            with open(f"/proc/{pid}/maps", "rb") as maps:
                return _CORE in maps.read()
    return False


def _inodes(address: Address) -> Iterator[str]:
    if address.kind == "unix":
        path = address.path if address.abstract else os.path.abspath(address.path)
        for words in rows("unix"):
            if words[7:] and " ".join(words[7:]) == path:
                yield words[6]
    for table in ("tcp", "tcp6") if address.kind == "tcp" else ():
        for words in rows(table):
            if words[3] != LISTENS:
                break
            if port_of(words[1]) == address.port:
                yield words[9]


def rows(table: str) -> Iterator[list[str]]:
    """Yield the words of each line of a table of /proc/net, but not those of its heading."""
    with suppress(OSError), open(f"/proc/net/{table}", errors="surrogateescape") as lines:
        next(lines)
        for line in lines:
            yield line.split()


def _target(folder: str, fd: str) -> str:
    try:
        return os.readlink(f"{folder}/{fd}")
    except OSError:
        return ""


def _takes(local: IPv4Address | IPv6Address, version: int) -> bool:
    """Whether a socket with this local address takes its port from a version of IP."""
    return local.version == version or (local.version == 6 and local.is_unspecified)
