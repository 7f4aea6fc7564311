"""Applications that replace the handlers of the server's signals: it stops and reopens its logs."""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.each_value import DIFFERENT, each_value
from tests.testkit.process import children
from tests.testkit.server import Program, Server, command, wait_for

pytestmark = pytest.mark.each_mode

APPLICATION = """\
import faulthandler, os, signal, sys, time

def replace(*numbers):
    for number in numbers:
        exec(os.environ["WAY"])

if "reach" not in os.environ:
    replace(signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1)
if "hang" in os.environ:
    sys.stderr.write("hangs\\n")
    while True:
        time.sleep(0.01)

def application(environ, start_response):
    path = environ["QUERY_STRING"]
    if path == "late":
        replace(signal.SIGRTMAX)
    elif path == "slow":
        until = time.monotonic() + 60
        while time.monotonic() < until:
            pass
    print("said", file=environ["wsgi.errors"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"answered"]
"""

#: What applications do to a signal.
WAYS = {
    "handle": "signal.signal(number, lambda number, frame: None)",
    "register": "faulthandler.register(number, open('dump', 'w'))",
    "ignore": "signal.signal(number, signal.SIG_IGN)",
    "block": "signal.pthread_sigmask(signal.SIG_BLOCK, [number])",
}


def serve(mode: str, tmp_path: Path, what: str, *options: str, **env: str) -> Server:
    (tmp_path / "app.py").write_text(APPLICATION)
    return Server("app.py", mode, *options, cwd=tmp_path, env={"WAY": WAYS[what], **env})


@pytest.mark.parametrize(("mode", "what"), each_value(DIFFERENT, WAYS), indirect=["mode"])
def test_the_server_reopens_its_logs_and_stops(mode: str, what: str, tmp_path: Path) -> None:
    """The worker is the same in between; a stop that is lost would take 600 seconds."""
    access, errors = tmp_path / "access.log", tmp_path / "error.log"
    options = ("--access-log", "access.log", "--error-log", "error.log")
    with serve(mode, tmp_path, what, *options) as server:
        before = children(server.process.pid)
        assert server.get("/").status == 200
        for log in (access, errors):
            wait_for(log.read_text, "a line before")
            log.rename(f"{log}.1")
        server.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: access.exists() and errors.exists(), "the main process's files")

        def is_written() -> bool:
            assert server.get("/").status == 200
            return "said" in errors.read_text() and bool(access.read_text())

        wait_for(is_written, "lines in the new files")
        assert what != "register" or not (tmp_path / "dump").read_text(), "it was asked for none"
        assert children(server.process.pid) == before


LOOP = """\
import asyncio, signal

async def application(scope, receive, send):
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGUSR1):
                loop.add_signal_handler(number, print, "got", number)
        await send({"type": message["type"] + ".complete"})
"""


def test_an_event_loop_that_handles_signals(tmp_path: Path) -> None:
    """It has a wake-up descriptor of its own, and is closed before the worker ends."""
    (tmp_path / "app.py").write_text(LOOP)
    options = ("--asgi-loop", "asyncio", "--error-log", "error.log")
    with Server("app.py", "asyncio", *options, cwd=tmp_path) as server:
        (tmp_path / "error.log").rename(tmp_path / "old.log")
        server.process.send_signal(signal.SIGUSR1)
        wait_for((tmp_path / "error.log").exists, "the new file")
    said = (tmp_path / "old.log").read_text() + (tmp_path / "error.log").read_text()
    assert re.fullmatch(r".* info: the server stops \(SIGTERM\)\n", said)


def test_the_preloader_stops_and_reopens(tmp_path: Path) -> None:
    """It stays for workers that are recycled."""
    options = ("--preload", "--workers", "2", "--max-requests", "1000", "--error-log", "error.log")
    with serve("forking", tmp_path, "handle", *options) as server:
        assert len(children(server.process.pid)) == 3
        (tmp_path / "error.log").rename(tmp_path / "old.log")
        server.process.send_signal(signal.SIGUSR1)
        old = os.stat(tmp_path / "old.log").st_ino

        def has_old(pid: int) -> bool:
            folder = f"/proc/{pid}/fd"
            found = set()
            for fd in os.listdir(folder):
                # It may have been closed since.
                with suppress(FileNotFoundError):
                    found.add(os.stat(f"{folder}/{fd}").st_ino)
            return old in found

        pids = [server.process.pid, *children(server.process.pid)]
        wait_for(lambda: not any(map(has_old, pids)), "no process with the old file")


@pytest.mark.parametrize(
    ("what", "cause"),
    [
        ("handle", "the application has replaced the handler"),
        ("block", "the application blocks SIGTERM"),
    ],
)
def test_a_worker_that_still_loads_is_killed_with_the_cause(
    what: str, cause: str, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(APPLICATION)
    env = {"WAY": WAYS[what], "hang": "1", "POORHTTP_GRACEFUL_TIMEOUT": "0.1"}
    words = command("serve", "app.py", "--bind", "127.0.0.1:0")
    with Program(*words, cwd=tmp_path, env=env) as program:
        program.wait_log("hangs")
        program.process.terminate()
        program.wait()
        assert cause in program.log()
        assert "still loading the application" in program.log()


def test_a_request_is_interrupted_without_the_signal(mode: str, tmp_path: Path) -> None:
    """In the main thread by another way than the signal, whose default action ends the process."""
    options = ("--request-timeout", "0.3", "--workers", "1")
    with serve(mode, tmp_path, "handle", *options, reach="late") as server:
        server.tracebacks = True
        before = children(server.process.pid)
        if mode != "threading":
            # Only the main thread can install handlers.
            assert server.get("/?late").status == 200
        assert server.get("/?slow").status == 504
        assert children(server.process.pid) == before


#: A module with a handler that raises.
RAISING = """
import re
import signal

def handle(number, frame):
    raise ValueError("the handler fails")

signal.signal(signal.SIGWINCH, handle)

def application(environ, start_response):
    start_response("200 OK", [])
    return []
"""


#: Sends the signal in the first lines of gevent's hub.
IN_THE_HUB = """
import os
from gevent.hub import Hub

begin = Hub.start_periodic_monitoring_thread

def send_and_begin(hub):
    os.kill(os.getpid(), signal.SIGWINCH)
    return begin(hub)

Hub.start_periodic_monitoring_thread = send_and_begin
"""


@pytest.mark.parametrize(
    ("mode", "hub"), [*((mode, "") for mode in DIFFERENT), ("gevent", IN_THE_HUB)]
)
def test_an_exception_of_a_handler_is_logged(mode: str, hub: str, tmp_path: Path) -> None:
    """While gevent's hub begins it would end the hub for good, and no request would be answered."""
    (tmp_path / "app.py").write_text(RAISING + hub)
    with Server("app.py", mode, "--workers", "1", cwd=tmp_path) as server:
        server.tracebacks = True
        workers = children(server.process.pid)
        if not hub:
            os.kill(workers[0], signal.SIGWINCH)
        server.wait_log("ValueError: the handler fails")
        assert server.get("/").status == 200
        assert not hub or server.log().count("Traceback") == 1
        assert children(server.process.pid) == workers


def test_a_process_without_supervisor_says_that_it_will_not_stop(tmp_path: Path) -> None:
    with serve("single", tmp_path, "register", "--supervisor", "off") as server:
        server.wait_log("the application has replaced the handler of SIGTERM, SIGINT, SIGQUIT")
        server.kill()
