"""Finds the address `admin` of a server: by option, by its file, by its pidfile, by its processes.

A server has memory that it shares with its admin process, and whose name, in /proc/PID/fd, has the
address (`supervisor/admin/questions.py`). So a pidfile leads to the address, also if the system has
chosen the port.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

from poorhttp.config import address, loader
from poorhttp.config.address import Address
from poorhttp.errors import ConfigError, UsageError
from poorhttp.supervisor.admin.protection import read_token
from poorhttp.supervisor.admin.questions import MEMORY_NAME
from poorhttp.supervisor.ctl.tables import safe

#: Beginning and end of the link in /proc/PID/fd.
LINK = f"/memfd:{MEMORY_NAME} "
DELETED = " (deleted)"

WAYS = "name it with --admin ADDRESS, -c FILE or --pidfile FILE"


class Place:
    """Where a server answers.

    Attributes:
        address: it can be connected to.
        token: empty without one.
    """

    def __init__(self, address: Address, token: bytes = b"") -> None:
        self.address = address
        self.token = token


def find(options: Mapping[str, str], environ: Mapping[str, str]) -> Place:
    """Return where the server answers that options of `ctl` name, or else the only one.

    Raises:
        UsageError: an option is wrong.
        ConfigError: a file is wrong, or no server is found by it.
    """
    token = b""
    file = options.get("--token-file") or environ.get("POORHTTP_ADMIN_TOKEN_FILE", "off")
    if file != "off":
        token = read_token(file, "--token-file")
    if "--config" in options:
        return _by_file(options["--config"], environ, token)
    if "--pidfile" in options:
        return Place(_by_pidfile(options["--pidfile"]), token)
    text = options.get("--admin") or environ.get("POORHTTP_ADMIN", "off")
    if text != "off":
        return Place(_connectable(_parse(text, "--admin")), token)
    return Place(_only_one(), token)


def _by_file(file: str, environ: Mapping[str, str], token: bytes) -> Place:
    settings = loader.load({}, environ, file)[0]
    admin = settings.admin
    if admin is None:
        raise ConfigError(
            f"{file}: admin is not set; set admin = 127.0.0.1:9090, or unix:/run/poorhttp.admin, "
            f"in [{loader.SECTION}], and reload the server"
        )
    loader.change_folder(settings)
    if not token and settings.admin_token_file is not None:
        token = read_token(settings.admin_token_file, settings.origin("admin_token_file"))
    if admin.kind == "fd" or (admin.kind == "tcp" and admin.port == 0):
        if settings.pidfile is None:
            raise ConfigError(
                f"{settings.origin('admin')}: {admin} does not say where the server listens; its "
                "log does: name that with --admin"
            )
        return Place(_by_pidfile(settings.pidfile), token)
    return Place(_connectable(admin), token)


def _by_pidfile(path: str) -> Address:
    try:
        with open(path, "rb") as file:
            text = file.read(64).strip()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; is the server running?") from error
    if not text.isdigit():
        raise ConfigError(f"{path} does not hold a process ID")
    pid = int(text)
    try:
        found = next(_addresses(pid), None)
    except FileNotFoundError:
        raise ConfigError(f"{path}: process {pid} has ended") from None
    except PermissionError:
        raise ConfigError(
            f"{path}: process {pid} belongs to another user; name its address with --admin"
        ) from None
    if found is None:
        raise ConfigError(
            f"{path}: process {pid} has no admin address; is it the server, and is its option "
            "admin set?"
        )
    return found


def _only_one() -> Address:
    """Return the address of the only server of this user."""
    found: dict[str, Address] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                # Root takes no address from another user, who could answer there.
                if os.stat(f"/proc/{name}").st_uid == os.geteuid():
                    for each in _addresses(int(name)):
                        found[str(each)] = each
    if len(found) > 1:
        texts = map(safe, sorted(found))
        raise UsageError(
            f"several servers are running; name one: --admin {', or --admin '.join(texts)}"
        )
    if not found:
        raise UsageError(f"found no running server with an admin address (option admin); {WAYS}")
    return next(iter(found.values()))


def _addresses(pid: int) -> Iterator[Address]:
    """Yield the addresses of the memory that a process has open.

    Raises:
        OSError: the process has ended, or may not be inspected.
    """
    folder = f"/proc/{pid}/fd"
    for fd in os.listdir(folder):
        link = ""
        with suppress(FileNotFoundError):
            link = os.readlink(f"{folder}/{fd}")
        text = link.removeprefix(LINK).removesuffix(DELETED)
        if text != link and text:
            if not text.startswith("unix:"):
                text = text.split()[0].removeprefix("http://")
            with suppress(ValueError):
                yield _connectable(address.parse(text))


def _parse(text: str, place: str) -> Address:
    try:
        found = address.parse(text.removeprefix("http://").rstrip("/"))
    except ValueError as error:
        raise UsageError(f"{place}: {error}") from None
    if found.protocol != "http" or found.kind == "fd" or (found.kind == "tcp" and not found.port):
        raise UsageError(f'{place}: "{text}" cannot be connected to; write HOST:PORT or unix:PATH')
    return found


def _connectable(found: Address) -> Address:
    """Return an address of this machine for one that stands for all of its addresses."""
    if found.kind == "tcp" and found.host in ("0.0.0.0", "::", ""):
        return Address("tcp", host="127.0.0.1" if found.host != "::" else "::1", port=found.port)
    if found.kind == "unix" and not found.abstract:
        return Address("unix", path=os.path.abspath(found.path))
    return found
