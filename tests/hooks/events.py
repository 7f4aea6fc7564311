"""Servers of tests/apps/hooked.py, whose hooks write down what they get."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.testkit.process import workers
from tests.testkit.server import Server, wait_for

APP = "tests.apps.hooked:application"

#: The options that name a function of that application for each hook.
ALL = tuple(
    word
    for name in ("server_ready", "worker_start", "worker_exit", "worker_timeout", "reload")
    for word in (f"--hook-{name.replace('_', '-')}", f"tests.apps.hooked:{name}")
)

Event = dict[str, Any]


class Hooked(Server):
    """A server, and the events that its hooks have written down."""

    def __init__(self, folder: Path, mode: str, *options: str, **more: Any) -> None:
        self.path = folder / "events"
        self.asked = 0
        env = {"HOOKS_LOG": str(self.path), **more.pop("env", {})}
        # Events tell whether their process has imported gevent, which one that forks has.
        self.forks = mode != "gevent"
        super().__init__(more.pop("app", APP), mode, *options, env=env, **more)

    def ask(self, times: int, path: str = "/{}") -> None:
        """Send requests, each with its number in the path, and have them answered."""
        for _ in range(times):
            self.asked += 1
            assert self.get(path.format(self.asked)).status == 200

    def events(self, hook: str = "") -> list[Event]:
        """All events so far, or those of one hook."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found: list[Event] = [json.loads(line) for line in lines]
        return [each for each in found if not hook or each["hook"] == hook]

    def wait_events(self, hook: str, times: int = 1) -> list[Event]:
        """Wait until a hook was called `times` times; its events."""
        wait_for(lambda: len(self.events(hook)) >= times, f"{times} events of {hook}")
        return self.events(hook)

    def wait_ends(self, *pids: int) -> None:
        """Wait until the ends of these workers were told."""
        wait_for(lambda: {*pids} <= {*self.values("worker_exit", "pid")}, f"the ends of {pids}")

    def values(self, hook: str, name: str) -> list[Any]:
        """What the events of a hook have as `name`."""
        return [each[name] for each in self.events(hook)]

    def pids(self) -> list[int]:
        """The workers, in the order of their numbers."""
        alive = workers(self.process.pid)
        starts = {each["pid"]: each["number"] for each in self.events("worker_start")}
        return sorted((pid for pid in alive if pid in starts), key=lambda pid: starts[pid])

    def wait_workers(self) -> list[int]:
        """Wait until there are two workers, which have begun; their processes."""
        wait_for(lambda: len(self.pids()) == 2, "two workers")
        return self.pids()

    def kill_worker(self, number: int = 1) -> int:
        """Kill a worker; its process."""
        pid = self.pids()[number - 1]
        os.kill(pid, signal.SIGKILL)
        return pid

    def reload(self) -> None:
        """Have it reload."""
        said = "reloaded: the new version serves"
        times = self.log().count(said)
        self.process.send_signal(signal.SIGHUP)
        self.wait_log(said, times + 1)


@contextmanager
def hooked(folder: Path, mode: str, *options: str, **more: Any) -> Iterator[Hooked]:
    """A server with two workers and all hooks."""
    every = ("--workers", "2", "--drain-timeout", "0.1", *ALL, *options)
    with Hooked(folder, mode, *every, **more) as server:
        server.wait_events("server_ready")
        yield server
