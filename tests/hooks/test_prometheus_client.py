"""prometheus_client in several processes: exact over reloads, recycling, kills and the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hooks.events import Hooked, recipe
from tests.testkit.client import HANG
from tests.testkit.server import wait_for

APP = """
import os
from prometheus_client import Counter, Gauge

REQUESTS = Counter("shop_requests", "Requests.")
WORKERS = Gauge("shop_workers", "Workers.", multiprocess_mode="livesum")

def start(worker):
    WORKERS.set(1)

def application(environ, start_response):
    REQUESTS.inc()
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""

OPTIONS = (
    *("--workers", "2", "--max-requests", "20", "--drain-timeout", "0.1"),
    *("--mount", "/metrics=shop_metrics:metrics", "--hook-worker-exit", "shop_metrics:forget"),
    *("--hook-worker-start", "shop:start", "--hook-worker-start", "tests.apps.hooked:worker_start"),
    *("--hook-worker-exit", "tests.apps.hooked:worker_exit"),
)

#: Prints what is left when the server has ended.
READ = """
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


def value(text: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize(
    "mode", ["forking", *(pytest.param(m, marks=pytest.mark.full) for m in ("threading", "gevent"))]
)
def test_values(mode: str, tmp_path: Path) -> None:
    """No count is lost, and no value of a process remains that has ended."""
    recipe("shop_metrics", tmp_path)
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "values").mkdir()
    env = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "values")}
    asked = 0
    with Hooked(
        tmp_path,
        mode,
        *OPTIONS,
        app="shop:application",
        cwd=tmp_path,
        env=env,
        tracebacks=True,
    ) as server:

        def ask(times: int) -> None:
            nonlocal asked
            for _ in range(times):
                assert server.get("/").status == 200
            asked += times

        def live() -> float:
            # The library fails for a moment if a process has just created its file.
            answer = server.get("/metrics")
            return value(answer.body.decode(), "shop_workers") if answer.status == 200 else -1

        ask(45)
        server.wait_events("worker_exit")
        for number in range(1, 6):
            ask(25)
            server.reload(number)
        ask(25)
        wait_for(lambda: len(server.pids()) == 2, "two workers")
        server.kill_worker(1)
        wait_for(
            lambda: any(each["signal"] == 9 for each in server.events("worker_exit")),
            "the end of the worker that was killed",
        )
        ask(5)
        wait_for(lambda: live() == 2, "the gauges of two live workers")
        assert value(server.get("/metrics").body.decode(), "shop_requests_total") == asked
    reasons = {each["reason"] for each in server.events("worker_exit")}
    assert reasons == {"recycled", "reloaded", "killed", "stopped"}
    done = subprocess.run(
        [sys.executable, "-c", READ],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    assert value(done.stdout, "shop_requests_total") == asked
    assert list((tmp_path / "values").glob("gauge_live*")) == []
