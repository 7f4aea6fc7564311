"""Runbooks of docs/guides (`PAGES`): servers in trouble, and the figures that show it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from poorhttp.config.settings import OPTIONS
from tests.support.forked_command import run_command
from tests.support.status_reader import Admin
from tests.testkit.server import ROOT, Server, patched

APP = "tests/apps/misbehaving.py"

#: The pages about what is wrong.
PAGES = ("slow", "hangs", "memory-grows", "bad-gateway", "overload", "alerts", "choose-a-mode")


def test_threads_compute(folder: Path) -> None:
    admin = Admin(folder)
    options = ("--workers", "1", "--threads", "4", *admin.options)
    with Server(APP, "threading", *options) as server:
        computing = [server.connect() for _ in range(4)]
        for connection in computing:
            connection.send_request("GET", "/compute?0.1")
        assert {each.response().status for each in computing} == {200}
        admin.wait(lambda each: each["workers"][0]["cpu"] >= 0.4, "CPU time")
        admin.wait(lambda each: each["figures"]["interpreter_wait"] > 0, "the waits")
        admin.wait(lambda each: sum(each["figures"]["application"]["counts"]) == 4, "all requests")
        # Each had the interpreter for a quarter of the time.
        assert admin.figures()["application"]["sum"] > 0.6


def test_memory_grows(folder: Path) -> None:
    admin = Admin(folder)

    def heap() -> str:
        return run_command("ctl", *admin.options, "heap").stdout

    def memory() -> int:
        return admin.service()["workers"][0]["pss"]

    launcher = patched("poorhttp.plugins.monitor.admin.status", PSS_INTERVAL=0.0)
    options = ("--workers", "1", "--tracemalloc", "1", *admin.options)
    with Server(APP, "threading", *options, launcher=launcher) as server:
        server.get("/sleep?0")
        assert heap()
        before = memory()
        server.get("/grow?60000000")
        assert memory() > before + 50_000_000
        assert "misbehaving.py:" in heap()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_metrics_and_options_that_exist(name: str) -> None:
    page = (ROOT / f"docs/guides/{name}.md").read_text(encoding="utf-8")
    names = (ROOT / "tests/cases/prometheus/metric_names.txt").read_text()
    known = {line.split()[0].removeprefix("poorhttp_") for line in names.splitlines()}
    known |= {each.removesuffix("_total") for each in known}
    # Two are settings of nginx and Prometheus.
    known |= {*OPTIONS, "proxy_read_timeout", "rule_files"}
    for found in re.findall(r"`([a-z]+(?:_[a-z]+)+)(?:\{[^}]*\})?`", page):
        assert found.removeprefix("poorhttp_") in known, f"{name}.md: {found}"
