"""`preload`: workers are forked from a process that has loaded the application."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nobody import IS_ROOT, Nobody
from tests.testkit.process import children, lives
from tests.testkit.server import Server, run, wait_for

#: A module that forges, once, what the preloader reports when it is told to fork.
FORGING = """
import os, socket, time
from poorhttp.plugins.preload import preloader

VICTIM, FORGERY, DONE = os.environ["VICTIM"], os.environ["FORGERY"], os.environ["DONE"]
receive = preloader.receive

def forge(channel, size):
    message, fds = receive(channel, size)
    if message and not os.path.exists(DONE):
        open(DONE, "w").close()
        if FORGERY == "a number":
            channel.send(f"{VICTIM}\\n".encode())
        elif FORGERY == "no message":
            os.write(fds[0], b"-1\\n")
        else:
            read, write = os.pipe()
            if os.fork() == 0:
                # No child of the main process, as long as its parent lives.
                if os.fork() == 0:
                    os.write(fds[0], b"h")
                    os.write(write, b"done")
                time.sleep(600)
            os.read(read, 4)
    return message, fds

preloader.receive = forge

def application(environ, start_response):
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""

#: A module that has its own way with children.
CHILDREN = """
import os, signal, subprocess, threading, time
WAY = os.environ["WAY"]

def handle(number, frame):
    # Without children this raises.
    os.waitpid(-1, 0)

def wait():
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.0005)

if WAY == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
elif WAY == "handled":
    signal.signal(signal.SIGCHLD, handle)
else:
    threading.Thread(target=wait, daemon=True).start()

def application(environ, start_response):
    start_response("200 OK", [])
    way = signal.getsignal(signal.SIGCHLD)
    return [getattr(way, "__name__", getattr(way, "name", "")).encode()]
"""


@pytest.fixture
def victim() -> Iterator[int]:
    """A process that has nothing to do with the server, which runs as root."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


@pytest.mark.parametrize(
    ("forgery", "said"),
    [
        ("a number", ""),
        ("no message", "ended before it"),
        ("a process that is no child", "a worker was reported by process"),
    ],
)
def test_the_application_cannot_name_the_process_of_a_worker(
    forgery: str, said: str, victim: int, folder: Path, nobody: Nobody
) -> None:
    """As root, the application has the rights of nobody, and the victim those of root."""
    folder.chmod(0o777)
    app = folder / "forging.py"
    app.write_text(FORGING)
    env = {"VICTIM": str(victim), "FORGERY": forgery, "DONE": str(folder / "done"), **nobody.env}
    user = ("--user", "nobody") if IS_ROOT else ()
    options = ["--preload", "--workers", "2", "--max-requests", "100000", *user]
    with Server(f"{app}:application", "threading", *options, env=env) as server:
        pids = {int(server.get("/").body) for _ in range(20)}
        assert pids < set(children(server.process.pid))
        server.wait_log(said)
        server.stop(signal.SIGQUIT)
        assert not any(lives(pid) for pid in pids)
    assert lives(victim)


@pytest.mark.parametrize(
    ("way", "seen"), [("ignored", "SIG_IGN"), ("handled", "handle"), ("waited for", "SIG_DFL")]
)
def test_an_application_that_waits_for_children_itself(way: str, seen: str, tmp_path: Path) -> None:
    app = tmp_path / "reaping.py"
    app.write_text(CHILDREN)
    options = ("--preload", "--workers", "2", "--max-requests", "5", "--drain-timeout", "0")
    with Server(f"{app}:application", "threading", *options, env={"WAY": way}) as server:
        before = children(server.process.pid)
        for _ in range(20):
            assert server.get("/").body.decode() == seen
        wait_for(lambda: children(server.process.pid) != before, "workers that are replaced")
        assert "cannot be forked" not in server.log()


def test_signals_go_to_children_only(victim: int) -> None:
    """Whatever number there is: the kernel knows whose child it is, until somebody waits for it."""
    program = """
import os, signal, sys
from poorhttp.process import signals
child = os.posix_spawn("/bin/true", ["true"], {})
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
assert signals.is_child(child)
os.waitpid(child, 0)
for pid in (child, int(sys.argv[1]), 0, -1, os.getpid()):
    assert not signals.is_child(pid)
    signals.send(pid, signal.SIGKILL)
"""
    done = run(sys.executable, "-c", program, str(victim))
    assert done.returncode == 0, done.stderr
    assert lives(victim)
