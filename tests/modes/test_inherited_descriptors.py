"""Programs started by an application inherit none of the server's descriptors."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.support.binary_upgrade import end, upgrade
from tests.testkit.server import Server, wait_for

pytestmark = pytest.mark.each_mode

APP = "tests.apps.starting:application"


def inherited(server: Server) -> tuple[str, list[str]]:
    """The worker that has answered, and what a program of it has beside the standard streams."""
    pid, _, listing = server.get("/").body.decode().partition("\n")
    found = re.findall(r" (\d+) -> (.*)", listing)
    assert len(found) > 3
    # The program itself has opened the folder.
    own = re.compile(r"/proc/\d+/fd")
    return pid, [where for fd, where in found if int(fd) > 2 and not own.fullmatch(where)]


@pytest.mark.parametrize(("mode", "preload"), [("threading", "on"), ("gevent", "off")])
def test_nothing_is_inherited(mode: str, preload: str, tmp_path: Path, folder: Path) -> None:
    options = (
        *("--preload", preload, "--pidfile", str(tmp_path / "pid")),
        *("--access-log", str(tmp_path / "access"), "--error-log", str(tmp_path / "error")),
        *("--request-timeout", "600", "--slow-request", "600", "--admin", f"unix:{folder}/admin"),
        *("--static", f"/files={tmp_path}"),
    )
    with Server(APP, mode, *options) as server:
        first, found = inherited(server)
        assert found == []
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: inherited(server)[0] != first, "a worker of the new version")
        assert inherited(server)[1] == []
        log = tmp_path / "error"
        wait_for(lambda: "reloaded: the new version serves" in log.read_text(), "the reload")
        server.wait_log = lambda text, times=1: wait_for(  # type: ignore[method-assign]
            lambda: log.read_text().count(text) >= times, text
        )
        pid = upgrade(server, tmp_path / "pid")
        assert inherited(server)[1] == []
        end(server, pid)
