"""The server's own files are removed or replaced while it serves (an upgrade by pip)."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.forked_command import run_command
from tests.testkit.client import Connection
from tests.testkit.process import workers
from tests.testkit.server import ROOT, Server, wait_for

pytestmark = pytest.mark.each_mode

APPLICATION = """\
import time
from poorhttp import dispatch

def application(environ, start_response):
    if environ["QUERY_STRING"] == "slow":
        while True:
            time.sleep(0.01)
    if environ["QUERY_STRING"] == "fail":
        raise ValueError("expected")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"answered"]

def hook(info):
    print("a worker has ended", flush=True)
"""

OPTIONS = (
    *("--request-timeout", "0.3", "--access-log", "access.log", "--error-log", "error.log"),
    *("--hook-worker-exit", "app:hook", "--admin", "unix:admin"),
)


def remove(package: Path) -> None:
    package.rename(package.with_name("moved"))


def replace(package: Path) -> None:
    """By another version: none of its modules can be imported."""
    remove(package)
    package.mkdir()
    for path in package.with_name("moved").rglob("*.py"):
        copy = package / path.relative_to(package.with_name("moved"))
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("raise RuntimeError('another version')\n")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package."""
    package = tmp_path / "library/poorhttp"
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(ROOT / "poorhttp", package, ignore=ignored))


def is_replaced(server: Server, before: list[int]) -> bool:
    """Whether there are as many workers as before, without the first of them."""
    now = workers(server.process.pid)
    return len(now) >= len(before) and before[0] not in now


@pytest.mark.parametrize(("mode", "change"), [("gevent", remove), ("threading", replace)])
def test_the_server_goes_on_and_stops(
    mode: str, change: Callable[[Path], None], package: Path, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(APPLICATION)
    env = {"PYTHONPATH": str(package.parent)}
    with Server("app.py", mode, *OPTIONS, cwd=tmp_path, env=env, tracebacks=True) as server:
        log, access = tmp_path / "error.log", tmp_path / "access.log"
        assert server.get("/").status == 200
        change(package)
        assert server.get("/?fail").status == 500
        before = workers(server.process.pid)
        os.kill(before[0], signal.SIGKILL)
        wait_for(lambda: f"worker {before[0]} was killed" in log.read_text(), "the message")
        wait_for(lambda: is_replaced(server, before), "another worker")
        wait_for(lambda: "a worker has ended" in server.output(), "the hook")
        # Of all workers, the replaced one too.
        for _ in range(3):
            assert server.get("/?slow").status == 504
        assert "cannot be interrupted" not in log.read_text()
        access.rename(tmp_path / "old.log")
        server.process.send_signal(signal.SIGUSR1)
        wait_for(access.exists, "the new file")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "not reloaded; the previous version keeps" in log.read_text(), "a refusal")
        server.process.send_signal(signal.SIGUSR2)
        refusal = "have been removed\n" if change is remove else "the new main process ended with"
        wait_for(lambda: refusal in log.read_text(), "a refusal")
        assert server.get("/").status == 200
        for path in ("/-/ready", "/-/metrics", "/-/status", "/", "/-/page.css"):
            with Connection(str(tmp_path / "admin")) as connection:
                connection.host = "localhost"
                assert connection.request("GET", path).status == 200, path
        done = run_command("ctl", "--admin", f"unix:{tmp_path}/admin", "status")
        assert done.returncode == 0, done.stderr


WEBSOCKET = """\
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            await send({"type": (await receive())["type"] + ".complete"})
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
    else:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"answered"})
"""

HANDSHAKE = (
    *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


@pytest.mark.parametrize("change", [remove, replace])
def test_the_first_websocket(change: Callable[[Path], None], package: Path, tmp_path: Path) -> None:
    """Its extension module is loaded, also in a worker that is forked later."""
    (tmp_path / "app.py").write_text(WEBSOCKET)
    env = {"PYTHONPATH": str(package.parent)}
    options = ("--workers", "1", "--http2", "on")
    with Server("app.py", "asyncio", *options, cwd=tmp_path, env=env) as server:
        change(package)
        for _ in range(2):
            assert server.get("/").body == b"answered"
            with server.connect() as connection:
                connection.send_request("GET", "/", *HANDSHAKE)
                assert connection.interim() == 101
            before = workers(server.process.pid)
            os.kill(before[0], signal.SIGKILL)
            wait_for(partial(is_replaced, server, before), "another worker")
