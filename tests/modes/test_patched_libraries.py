"""Applications that replace threads and locks of the standard library, as gevent does."""

from __future__ import annotations

import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.each_value import each_value
from tests.testkit.process import wait_for_end, workers
from tests.testkit.server import ROOT, Server, run

REPLACING = str(ROOT / "tests/apps/replacing.py")


@pytest.mark.parametrize(
    ("mode", "replaced", "options"),
    [
        pytest.param("forking", "gevent", (), marks=pytest.mark.full),
        ("forking", "all", ("--preload",)),
        ("threading", "gevent", ("--preload",)),
        pytest.param("threading", "all", (), marks=pytest.mark.full),
    ],
)
def test_it_serves_reloads_and_stops(mode: str, replaced: str, options: tuple[str, ...]) -> None:
    options = (*options, "--request-timeout", "60", "--workers", "1")
    with Server(REPLACING, mode, *options, env={"REPLACED": replaced}) as server:
        assert server.get("/").status == 200
        server.wait_log("said /")
        assert server.log().count("the application replaces threads") == (mode == "threading")
        before = workers(server.process.pid)
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded")
        for pid in before:
            wait_for_end(pid)
        assert server.get("/").status == 200
        # Those of the reload say what is known.
        assert server.log().count("the application replaces threads") == (mode == "threading")


@pytest.mark.parametrize(
    ("mode", "replaced"), each_value(["threading", "asyncio"], ["gevent", "half", "all"])
)
def test_requests_run_in_threads_beside_each_other(mode: str, replaced: str) -> None:
    # uvloop makes a lock when it is imported, which would be refused.
    options = ("--asgi-loop", "asyncio") if mode == "asyncio" else ()
    with Server(REPLACING, mode, *options, env={"REPLACED": replaced}) as server:
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(server.get, ("/meet/0", "/meet/1")))
        names = {answer.body for answer in answers}
        assert names == {b""} if replaced == "all" else len(names) == 2
        assert all(name.startswith(b"poorhttp") for name in names if name)
        said = server.log().count("the application replaces threads")
        assert said == (replaced != "half")


def test_records_of_requests_are_made_by_a_thread(tmp_path: Path) -> None:
    config = {"version": 1, "root": {"level": "INFO", "handlers": ["stderr"]}}
    config["handlers"] = {"stderr": {"class": "logging.StreamHandler"}}
    file = tmp_path / "logging.json"
    file.write_text(json.dumps(config))
    options = ("--log-config", str(file), "--access-log", "-")
    with Server(REPLACING, "threading", *options, env={"REPLACED": "gevent"}) as server:
        server.get("/recorded")
        server.wait_log('"GET /recorded HTTP/1.1" 200')


def test_a_server_in_a_program_that_has_replaced_them() -> None:
    program = """
from gevent import monkey
monkey.patch_all()
import poorhttp, urllib.request
def application(environ, start_response):
    start_response("200 OK", [])
    return [b"served"]
with poorhttp.Server(application) as server:
    print(urllib.request.urlopen(server.url, timeout=60).read())
"""
    done = run(sys.executable, "-c", program)
    assert (done.stdout, done.stderr) == ("b'served'\n", "")
