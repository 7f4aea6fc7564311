"""Parses addresses to listen on, such as `127.0.0.1:8080` or `unix:PATH`.

Written as `HOST:PORT`, `:PORT`, `[::1]:PORT`, `unix:PATH`, `unix:@NAME`, `fd:N`, `fd:NAME`, and
with another protocol in front `https://HOST:PORT`, `uwsgi+unix:PATH`, `https+fd:N`.
"""

from __future__ import annotations

import os

from poorhttp.config.options.option import all_parse
from poorhttp.config.registry import registry

#: Gateway protocols, which web servers speak instead of HTTP.
GATEWAYS = ("uwsgi", "scgi", "fastcgi")

#: `sun_path` of Linux has 108 bytes, of which one is NUL: the last of a path, the first of an
#: abstract name (unix(7)).
UNIX_PATH_MAX = 107

#: A descriptor is an `int` of C.
FD_MAX = 2**31 - 1


class Address:
    """One address, immutable. Only the attributes of its `kind` are set.

    Attributes:
        kind: `"tcp"` (has `host` and `port`), `"unix"` (has `path`) or `"fd"` (has `fd` or `name`).
        host: a name, an IPv4 address, or an IPv6 address without its brackets.
        port: 0 to 65535; 0 lets the system choose.
        path: path of a Unix socket; with `@` in front, an abstract name.
        fd: descriptor of an inherited listening socket.
        name: name that systemd gives to such a socket, instead of `fd`.
        protocol: `"http"`, one of `GATEWAYS`, or that of a transport (`poorhttp.net.transport`).
    """

    def __init__(
        self,
        kind: str,
        *,
        host: str = "",
        port: int = 0,
        path: str = "",
        fd: int = -1,
        name: str = "",
        protocol: str = "http",
    ) -> None:
        self.kind = kind
        self.host = host
        self.port = port
        self.path = path
        self.fd = fd
        self.name = name
        self.protocol = protocol

    def __str__(self) -> str:
        """Return the text of the address, which `parse` reads."""
        gateway = "" if self.protocol == "http" else self.protocol
        if self.kind != "tcp":
            where = f"unix:{self.path}" if self.kind == "unix" else f"fd:{self.name or self.fd}"
            return f"{gateway}+{where}" if gateway else where
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{gateway}://{host}:{self.port}" if gateway else f"{host}:{self.port}"

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Address) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def abstract(self) -> bool:
        """Whether it is an abstract Unix socket, without a file."""
        return self.kind == "unix" and self.path.startswith("@")

    @property
    def url(self) -> str:
        """`http://HOST:PORT` for HTTP over TCP, else the text of the address."""
        return f"http://{self}" if self.kind == "tcp" and self.protocol == "http" else str(self)


def protocols() -> tuple[str, ...]:
    """Return the protocols that an address may begin with; without any, it is HTTP."""
    return (*GATEWAYS, *registry.entries["transports"])


def parse(text: str) -> Address:
    """Read one address; a ValueError names the mistake and a correction."""
    protocol, mark, where = text.partition("://")
    known = protocols()
    if protocol not in known:
        # A path after the plus may contain `://`.
        protocol, mark, where = text.partition("+")
    if mark and protocol in known:
        found = parse(where.rstrip("/") if mark == "://" else where)
        if (found.kind == "tcp") != (mark == "://") or found.protocol != "http":
            port = 3031 if protocol in GATEWAYS else 8443
            raise ValueError(
                f'"{text}" is not an address; write it as {protocol}://127.0.0.1:{port} or '
                f"{protocol}+unix:/run/poorhttp.sock"
            )
        found.protocol = protocol
        return found
    if text.startswith("unix:"):
        return _unix(text[len("unix:") :])
    if text.startswith("fd:"):
        # gunicorn has fd://3.
        return _fd(text[len("fd:") :].removeprefix("//"), text)
    if text.startswith("http://"):
        inside = text.split("://", 1)[1].rstrip("/")
        raise ValueError(f'"{text}" is a URL; write the address alone: {inside}')
    return _tcp(text)


def protocol_of(text: str) -> str:
    """Return the protocol of an address that `parse` can read."""
    return next((name for name in protocols() if text.startswith((f"{name}:", f"{name}+"))), "http")


def _fd(which: str, text: str) -> Address:
    if _is_number(which) and int(which) <= FD_MAX:
        return Address("fd", fd=int(which))
    if which.isascii() and which.isdigit():
        raise ValueError(
            f'"{which}" in "{text}" is not a descriptor; it is a number from 0 to {FD_MAX}'
        )
    # The names that systemd allows (systemd.socket(5), FileDescriptorName), except those with a
    # leading hyphen: fd:-1 is a mistake.
    if (
        not which
        or not (which.isascii() and which.isprintable())
        or ":" in which
        or which[0] == "-"
    ):
        raise ValueError(
            f'"{text}" has neither the number of a descriptor nor the name that systemd gave it; '
            "write it as fd:3 or fd:web"
        )
    return Address("fd", name=which)


def _unix(path: str) -> Address:
    if path in ("", "@"):
        raise ValueError(
            f'"unix:{path}" has no {"name" if path else "path"}; write it as '
            f"unix:{path or '/run/'}poorhttp{'' if path else '.sock'}"
        )
    if "\0" in path:
        raise ValueError("the path of a unix socket cannot hold a NUL character")
    others = path.replace(",", " ").split()[1:]
    if others and all_parse(parse, others):
        raise ValueError(f'"unix:{path}" is several addresses; write each by itself')
    size = len(os.fsencode(path))
    if size > UNIX_PATH_MAX:
        raise ValueError(
            f'"unix:{path}" is too long: the system allows {UNIX_PATH_MAX} bytes for the path, '
            f"this has {size}"
        )
    return Address("unix", path=path)


def _tcp(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon:
        if text.isascii() and text.isdigit():
            raise ValueError(
                f'"{text}" has no host; write 127.0.0.1:{text}, or 0.0.0.0:{text} for every '
                "interface"
            )
        raise ValueError(f'"{text}" has no port; write it as HOST:PORT, for example 127.0.0.1:8080')
    if not (_is_number(port) and int(port) <= 65535):
        raise ValueError(f'"{port}" in "{text}" is not a port; it is a number from 0 to 65535')
    if not host:
        # As for gunicorn, uWSGI and others; nobody writes the colon by accident.
        return Address("tcp", host="0.0.0.0", port=int(port))
    if host.startswith("[") and host.endswith("]"):
        return Address("tcp", host=_ipv6(host[1:-1], text), port=int(port))
    if ":" in host:
        raise ValueError(
            f'"{text}" has more than one colon; an IPv6 address stands in brackets: [::1]:8080'
        )
    if not all(letter.isalnum() or letter in ".-_" for letter in host):
        raise ValueError(
            f'"{host}" in "{text}" is not a host name or an IP address; write it as HOST:PORT'
        )
    return Address("tcp", host=host, port=int(port))


def _ipv6(host: str, text: str) -> str:
    import socket

    address, _, _zone = host.partition("%")
    try:
        socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):
        raise ValueError(
            f'"{host}" in "{text}" is not an IPv6 address; write it as [::1]:8080'
        ) from None
    return host


def _is_number(text: str) -> bool:
    # int() fails with more than 4,300 digits.
    return text.isascii() and text.isdigit() and len(text) < 20


def is_raw_tcp(target: str) -> bool:
    """Tell whether a target serves raw TCP connections rather than HTTP."""
    return target.startswith("tcp:")


def url(target: str, address: str) -> str:
    """Return the URL of an address: `tcp://` if the target is raw TCP."""
    return address.replace("http://", "tcp://", 1) if is_raw_tcp(target) else address
