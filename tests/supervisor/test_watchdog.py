"""systemd's watchdog: notified as long as workers answer."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.reloads import reload
from tests.supervisor.service_manager import ServiceManager
from tests.support.services import Tree
from tests.testkit.client import HANG
from tests.testkit.process import children
from tests.testkit.server import patched, wait_for
from tests.testkit.versions import APP, Versions, told


@pytest.fixture
def manager(folder: Path) -> Iterator[ServiceManager]:
    with ServiceManager(folder / "notify") as manager:
        yield manager


def test_it_hears_from_us_while_workers_answer(
    mode: str, manager: ServiceManager, versions: Versions
) -> None:
    with versions.serve(mode, "--workers", "2", env=manager.env) as server:
        for _ in range(3):
            manager.until("WATCHDOG")
        one, other = children(server.process.pid)
        # One that answers is enough.
        os.kill(one, signal.SIGSTOP)
        manager.forget()
        for _ in range(8):
            manager.until("WATCHDOG")
        os.kill(other, signal.SIGSTOP)
        server.wait_log("no worker answers")
        manager.forget()
        os.kill(other, signal.SIGCONT)
        manager.until("WATCHDOG")
        os.kill(one, signal.SIGCONT)
        assert told(server)["version"] == "1"
        reload(server)
        manager.until("WATCHDOG")


HANDLER = """
def handler(sock, address):
    sock.sendall(b"begins")
    while sock.recv(100):
        pass
"""


def test_a_service_of_raw_tcp_beside_another(manager: ServiceManager, tmp_path: Path) -> None:
    """Its threads may be in handlers for ever: it is left alone, and does not speak for others."""
    (tmp_path / "handler.py").write_text(HANDLER)
    text = (
        "[http]\nmode = single\nbind = 127.0.0.1:0\n"
        f"[service:web]\ntarget = {APP}\n"
        f"[service:lines]\ntarget = tcp:{tmp_path}/handler.py:handler\n"
    )
    with Tree(tmp_path, text, **manager.env) as tree:
        with socket.create_connection(("127.0.0.1", tree.ports["lines"]), HANG) as busy:
            assert busy.recv(100) == b"begins"
            manager.forget()
            for _ in range(8):
                manager.until("WATCHDOG")
            web = json.loads(tree.get("web"))["pid"]
            os.kill(web, signal.SIGSTOP)
            tree.wait_log("service web: no worker answers")
            os.kill(web, signal.SIGCONT)
            manager.forget()
            manager.until("WATCHDOG")
        tree.process.terminate()
        assert tree.wait() == 0


def waiting(seconds: float) -> tuple[str, ...]:
    """Start the server as it would be if a process might be stopped for so long."""
    return patched("poorhttp.supervisor.worker_handle", STOPPED=seconds)


def test_a_worker_that_is_stopped_is_replaced(mode: str, versions: Versions) -> None:
    with versions.serve(mode, "--workers", "1", launcher=waiting(0.2)) as server:
        pid = told(server)["pid"]
        os.kill(pid, signal.SIGSTOP)
        server.wait_log(f"worker {pid} was stopped by SIGSTOP: it serves no requests")
        server.wait_log(f"worker {pid} is still stopped (SIGSTOP), and is killed")
        server.wait_log(f"worker {pid} was killed by SIGKILL and is replaced")
        assert told(server)["pid"] != pid


@pytest.mark.parametrize("verb", ["serve", "dev"])
def test_a_worker_that_goes_on_is_left_alone(verb: str, versions: Versions) -> None:
    seconds = 3600 if verb == "serve" else 0
    with versions.serve("threading", verb=verb, launcher=waiting(seconds)) as server:
        pid = told(server)["pid"]
        os.kill(pid, signal.SIGSTOP)
        server.wait_log(f"worker {pid} was stopped by SIGSTOP: it serves no requests until")
        if verb == "serve":
            server.wait_log("and is killed")
        os.kill(pid, signal.SIGCONT)
        server.wait_log(f"worker {pid} continues")
        assert told(server)["pid"] == pid
        assert ("and is killed" in server.log()) == (verb == "serve")


def test_a_preloader_that_is_stopped_is_replaced(versions: Versions) -> None:
    """The main process does not wait for it."""
    options = ("--workers", "1", "--preload", "--max-lifetime", "86400")
    with versions.serve("single", *options, launcher=waiting(0.2)) as server:
        worker = told(server)["pid"]
        (preloader,) = set(children(server.process.pid)) - {worker}
        os.kill(preloader, signal.SIGSTOP)
        server.wait_log("the process that has loaded the application is still stopped (SIGSTOP)")
        server.wait_log("the process that has loaded the application was killed by SIGKILL")
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: told(server)["pid"] != worker, "another worker")
