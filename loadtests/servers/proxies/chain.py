"""A proxy and its servers as one: started together, sampled separately, stopped together."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import replace
from typing import NamedTuple

from loadtests.measure import resources
from loadtests.servers.application import Application
from loadtests.servers.proxies.setups import Setup
from loadtests.servers.running import Running


class Mute(Running):
    """A server that speaks with a proxy only: ready when it listens."""

    @property
    def address(self) -> str:
        """The address that the server listens at, as nginx writes it."""
        if "{folder}/socket" in self.server.command:
            return f"unix:{self.folder}/socket"
        return f"127.0.0.1:{self.port}"

    def is_ready(self) -> bool:
        """Whether it listens. What it answers is looked at through the proxy."""
        path = self.address.removeprefix("unix:")
        unix = path != self.address
        with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as probe:
            return probe.connect_ex(path if unix else ("127.0.0.1", self.port)) == 0


class Spent(NamedTuple):
    """Seconds of CPU time."""

    servers: float
    proxy: float


class Chain:
    """A setup that runs, as a context manager: all of it on `core`, asked at `port`.

    Entering waits for the right answer to a GET of `target`, given by all servers and by the proxy;
    of mute servers by the proxy.
    """

    def __init__(
        self, setup: Setup, application: Application, target: str, core: int | None
    ) -> None:
        self.setup = setup
        self._application, self._target, self._core = application, target, core
        self._running = contextlib.ExitStack()
        self.servers: list[Running] = []
        self.proxy: Running | None = None

    def __enter__(self) -> Chain:
        with contextlib.ExitStack() as starting:
            kind = Mute if self.setup.mute else Running
            for server in self.setup.servers:
                one = kind(server, self._application, target=self._target, core=self._core)
                self.servers.append(starting.enter_context(one))
            if self.setup.proxy:
                proxy = replace(
                    self.setup.proxy,
                    files=tuple(
                        (name, self._filled(text)) for name, text in self.setup.proxy.files
                    ),
                )
                self.proxy = starting.enter_context(
                    Running(proxy, self._application, target=self._target, core=self._core)
                )
            self._running = starting.pop_all()
        return self

    def _filled(self, text: str) -> str:
        """A file of the proxy with the places of the servers."""
        first = self.servers[0]
        if isinstance(first, Mute):
            return text.replace("ADDRESS", first.address)
        for name, server in zip(("FIRST", "SECOND"), self.servers, strict=False):
            text = text.replace(name, str(server.port))
        return text

    def __exit__(self, *_: object) -> None:
        self._running.close()

    @property
    def front(self) -> Running:
        """The server that clients connect to: the proxy if there is one."""
        return self.proxy or self.servers[0]

    def processes(self) -> list[int]:
        """All of it. Raises ServerFailure if a part of it has died."""
        parts = [*self.servers, *([self.proxy] if self.proxy else [])]
        return [process for part in parts for process in part.processes()]

    def spent(self) -> Spent:
        """CPU time so far. Raises ServerFailure if a part of it has died."""
        servers = sum(resources.cpu_seconds(server.processes()) for server in self.servers)
        return Spent(servers, resources.cpu_seconds(self.proxy.processes()) if self.proxy else 0.0)
