"""The server of a load: started by a command, or found by the port of a URL; and what it uses."""

from __future__ import annotations

import argparse
import contextlib
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from loadtests.advise.workload import Workload, from_paths
from loadtests.clients.native.replay import Request
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import disturbance, resources
from loadtests.measure.cpu_affinity import cores
from loadtests.measure.listeners import Listeners
from loadtests.network.port import LOOPBACK
from loadtests.servers.application import Own
from loadtests.servers.registry import given
from loadtests.servers.running import Running


class Place(NamedTuple):
    """A server: IPv4 address, port, what it is called in Host; the core of the client; TLS."""

    address: str
    port: int
    host: str
    core: int | None
    tls: bool = False

    @property
    def is_here(self) -> bool:
        return self.address.startswith("127.")


Processes = Running | Listeners
"""What knows the processes of a server."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Adds the options that say which server is loaded."""
    which = command.add_mutually_exclusive_group(required=True)
    told = "the server: http://HOST:PORT, or https: its certificate is not checked"
    which.add_argument("place", nargs="?", type=_url, metavar="URL", help=told)
    which.add_argument("--url", type=_url, metavar="URL", help="the same")
    told = "start this server: {port} is where it has to listen, on {host}"
    which.add_argument("--command", type=given.command, metavar="CMD", help=told)


def _url(text: str) -> str:
    """Reads the address of a server."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        missing = ": http:// is missing" if "://" not in text else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not written http://HOST:PORT/PATH{missing}")
    return text


def url(options: argparse.Namespace) -> str:
    """The address that was given, or nothing."""
    return str(options.url or options.place or "")


def name(options: argparse.Namespace) -> str:
    """The name of the command, or the URL without its path."""
    parts = urlsplit(url(options))
    return options.command.name if options.command else f"{parts.scheme}://{parts.netloc}"


def _path(options: argparse.Namespace) -> str:
    """That of the URL, or nothing."""
    parts = urlsplit(url(options))
    return parts.path + (f"?{parts.query}" if parts.query else "")


def asked(options: argparse.Namespace) -> Workload:
    """What is asked for: the paths that were given, or that of the URL. Raises LabError."""
    own = _path(options)
    return from_paths([given.target(own, one) for one in options.paths or [None]], "--path")


def check_no_path(options: argparse.Namespace, file: Path) -> None:
    """Raises LabError if a path was given: this file says what is asked for."""
    if own := " ".join(getattr(options, "paths", None) or [_path(options).strip("/")]):
        raise LabError(f"{own!r} is not asked for: {file} has the paths; leave out one of them")


@contextlib.contextmanager
def running(options: argparse.Namespace, target: str) -> Iterator[tuple[Place, Processes | None]]:
    """The server, and its processes, if they are of this machine and this user may look at them.

    A command is started and has to answer `target`. Raises LabError if there is no server.
    """
    _, core = cores()
    with contextlib.ExitStack() as stack:
        if options.command:
            try:
                one = Running(replace(options.command, target=target))
                one.application = Own()
                one.request = Request(target).headed(options.headers).octets()
                stack.enter_context(one)
            except ServerFailure as failure:
                raise LabError(f"{options.command.name}: {failure}") from None
            yield Place(LOOPBACK, one.port, f"{LOOPBACK}:{one.port}", core), one
            return
        place, found = _place(url(options), core), None
        if place.is_here:
            with contextlib.suppress(ServerFailure):
                found = Listeners(place.port, None).__enter__()
        yield place, found


def _place(url: str, core: int | None) -> Place:
    """Where a URL leads. Raises LabError if nothing listens there."""
    parts = urlsplit(url)
    try:
        tls = parts.scheme == "https"
        place = str(parts.hostname), parts.port or (443 if tls else 80)
        address = str(socket.getaddrinfo(*place, socket.AF_INET)[0][4][0])
        socket.create_connection((address, place[1]), timeout=10).close()
    except (OSError, ValueError) as error:
        raise LabError(f"{url}: {error}") from None
    return Place(address, place[1], parts.netloc, core, tls)


class Usage:
    """What a server uses, and what others take of the machine, while the block lasts: `record`.

    Nothing is known of a server of another user, and of one elsewhere only what others take here.
    """

    def __init__(self, server: Processes | None, *, elsewhere: bool) -> None:
        self._server, self._elsewhere = server, elsewhere
        self.record: dict[str, Any] = {}

    def _seconds(self) -> float:
        """CPU time so far, with that of processes that have come and gone."""
        if self._server is None:
            return 0.0
        known = self._server.processes()
        return resources.cpu_seconds(known) + resources.reaped_seconds(known)

    @staticmethod
    def _has_ended(server: Processes) -> bool:
        """Whether it is gone; a worker that is replaced while it is looked at is none."""
        try:
            return not server.processes()
        except ServerFailure:
            return True

    def __enter__(self) -> Usage:
        self._before, self._began = disturbance.read(), self._seconds()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind:
            return
        cpu = 0.0
        if self._server:
            try:
                cpu = self._seconds() - self._began
                used = resources.memory(self._server.processes())
            except ServerFailure as failure:
                self.record["server_failed"] = str(failure)
                self.record["server_ended"] = self._has_ended(self._server)
                return
            self.record |= {"server_cpu": cpu, "pss": used.pss, "processes": used.processes}
        if self._server or self._elsewhere:
            self.record["machine"] = disturbance.since(self._before, cpu).record()
