"""Refuses to show error pages on addresses that other machines can reach."""

from __future__ import annotations

from collections.abc import Iterable

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.net.listener import Listener
from poorhttp.plugins.dev.options import Development
from poorhttp.process.c_socket import socket


def check(settings: Settings, listeners: Iterable[Listener]) -> None:
    """Check that only this machine reaches the error pages, unless `debug` is `forced`.

    The addresses that the sockets are bound to count: a host name or an inherited socket may stand
    for any address.

    Raises:
        ConfigError: other machines reach them.
    """
    if settings.of(Development).debug != "on":
        return
    for listener in listeners:
        if listener.socket.family == socket.AF_UNIX or is_loopback(listener.server[0]):
            continue
        written = listener.key[0].split()[0]
        where = listener.url if written in listener.url else f"{listener.url} ({written})"
        raise ConfigError(
            f"{settings.origin('debug')}: refused on {where}, which other machines can reach: an "
            "error page shows source and values, and its console runs whatever is typed into it; "
            "listen on 127.0.0.1, or write debug = forced (--debug forced) if everybody who "
            "can reach it may do that"
        )


def is_loopback(host: str) -> bool:
    """Whether an IP address is a loopback address."""
    packed = packed_address(host)
    if len(packed) == 16 and packed[:12] == bytes(10) + b"\xff\xff":
        packed = packed[12:]
    return packed[:1] == b"\x7f" if len(packed) == 4 else packed == bytes(15) + b"\x01"


def packed_address(host: str) -> bytes:
    """Return the bytes of an IP address; empty for a host name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return socket.inet_pton(family, host.partition("%")[0])
        except (OSError, ValueError):
            pass
    return b""
