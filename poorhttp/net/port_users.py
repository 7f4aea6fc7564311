"""Finds out from /proc/net (proc(5)) why a TCP port is in use, for an error message.

A connection that a program has opened has a local port too, which the kernel has chosen, and keeps
servers from that port until it has ended.
"""

from __future__ import annotations

from contextlib import suppress

from poorhttp.net.running_servers import LISTENS, ip_address, port_of, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

#: First and last of the ports from which the kernel chooses those of connections (ip(7)).
LOCAL_PORTS = "/proc/sys/net/ipv4/ip_local_port_range"


def advice(address: str) -> str:
    """Return the end of a message that a port is in use: what has it, and what to do.

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


def _takes(local: IPv4Address | IPv6Address, version: int) -> bool:
    """Whether a socket with this local address takes its port from a version of IP."""
    return local.version == version or (local.version == 6 and local.is_unspecified)
