"""Servers of tests/apps/hooked.py, whose hooks write down what they get."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseServer
from typing import Any

import pytest

from tests.testkit.client import HANG
from tests.testkit.process import workers
from tests.testkit.server import ROOT, Server, wait_for

APP = "tests.apps.hooked:application"

#: The options that name a function of that application for each hook.
ALL = tuple(
    word
    for name in ("server_ready", "worker_start", "worker_exit", "worker_timeout", "reload")
    for word in (f"--hook-{name.replace('_', '-')}", f"tests.apps.hooked:{name}")
)

#: Modes of a test that takes long: only one of them is in the quick level.
IN_FULL = (
    *("threading", pytest.param("forking", marks=pytest.mark.full)),
    pytest.param("gevent", marks=pytest.mark.full),
)

Event = dict[str, Any]


class Hooked(Server):
    """A server, and the events that its hooks have written down."""

    def __init__(self, folder: Path, mode: str, *options: str, **more: Any) -> None:
        self.path = folder / "events"
        env = {"HOOKS_LOG": str(self.path), **more.pop("env", {})}
        # Events tell whether their process has imported gevent, which one that forks has.
        self.forks = mode != "gevent"
        super().__init__(more.pop("app", APP), mode, *options, env=env, **more)

    def events(self, hook: str = "") -> list[Event]:
        """All events so far, or those of one hook."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found: list[Event] = [json.loads(line) for line in lines]
        return [each for each in found if not hook or each["hook"] == hook]

    def wait_events(self, hook: str, times: int = 1) -> list[Event]:
        """Wait until a hook was called `times` times; its events."""
        wait_for(lambda: len(self.events(hook)) >= times, f"{times} events of {hook}")
        return self.events(hook)

    def pids(self) -> list[int]:
        """The workers, in the order of their numbers."""
        alive = workers(self.process.pid)
        starts = {each["pid"]: each["number"] for each in self.events("worker_start")}
        return sorted((pid for pid in alive if pid in starts), key=lambda pid: starts[pid])

    def kill_worker(self, number: int = 1) -> int:
        """Kill a worker; its process."""
        pid = self.pids()[number - 1]
        os.kill(pid, signal.SIGKILL)
        return pid

    def reload(self, times: int = 1) -> None:
        """Have it reload, the so manyeth time."""
        self.process.send_signal(signal.SIGHUP)
        self.wait_log("reloaded: the new version serves", times)


@contextmanager
def hooked(folder: Path, mode: str, *options: str, **more: Any) -> Iterator[Hooked]:
    """A server with two workers and all hooks."""
    every = ("--workers", "2", "--drain-timeout", "0.1", *ALL, *options)
    with Hooked(folder, mode, *every, **more) as server:
        server.wait_events("server_ready")
        yield server


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """Have a server of what hooks and agents send answer in a thread."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join(HANG)
        server.server_close()


def recipe(module: str, folder: Path) -> None:
    """Write a module of docs/guides/hooks.md into a folder."""
    text = (ROOT / "docs/guides/hooks.md").read_text(encoding="utf-8")
    code = text.split(f"```python\n# {module}.py\n")[1].split("```")[0]
    (folder / f"{module}.py").write_text(code)
