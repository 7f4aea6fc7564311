"""Runbooks of docs/guides (`PAGES`): servers in trouble, and the figures that show it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from poorhttp.config.settings import OPTIONS
from tests.support.forked_command import run_command
from tests.support.health_probe import ask
from tests.testkit.server import ROOT, Server, patched, wait_for

APP = "tests/apps/misbehaving.py"

#: The pages about what is wrong.
PAGES = ("slow", "hangs", "memory-grows", "bad-gateway", "overload", "alerts", "choose-a-mode")


def page(name: str) -> str:
    """The text of a page."""
    return (ROOT / f"docs/guides/{name}.md").read_text(encoding="utf-8")


class Watched(Server):
    """A server, and what its admin address shows of it."""

    def __init__(
        self, folder: Path, *options: str, mode: str = "threading", **more: object
    ) -> None:
        self.admin = str(folder / "admin")
        words = ("--admin", f"unix:{self.admin}", "--workers", "1", *options)
        super().__init__(APP, mode, *words, **more)  # type: ignore[arg-type]

    def value(self, name: str, **labels: str) -> float:
        """The value of a metric."""
        known = ",".join(f'{label}="{text}"' for label, text in labels.items())
        key = re.escape(f"poorhttp_{name}{{{known}}}" if known else f"poorhttp_{name}")
        text = ask(self.admin, "/metrics")[1]
        found = re.search(f"^{key} (\\S+)$", text, re.MULTILINE)
        assert found, f"no {key} in {text}"
        return float(found[1])

    def ctl(self, *words: str) -> str:
        """What a command prints."""
        done = run_command("ctl", "--admin", f"unix:{self.admin}", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout


def test_threads_compute(folder: Path) -> None:
    with Watched(folder, "--threads", "4") as server:
        computing = [server.connect() for _ in range(4)]
        for connection in computing:
            connection.send_request("GET", "/compute?0.1")
        assert {each.response().status for each in computing} == {200}
        wait_for(lambda: server.value("worker_cpu_seconds_total", worker="1") >= 0.4, "CPU time")
        wait_for(lambda: server.value("interpreter_wait_seconds_total") > 0, "the waits")
        wait_for(lambda: server.value("request_application_seconds_count") == 4, "all requests")
        # Each had the interpreter for a quarter of the time.
        assert server.value("request_application_seconds_sum") > 0.6


def test_memory_grows(folder: Path) -> None:
    launcher = patched("poorhttp.plugins.monitor.admin.status", PSS_INTERVAL=0.0)
    with Watched(folder, "--tracemalloc", "1", launcher=launcher) as server:
        server.get("/sleep?0")
        server.ctl("heap")
        before = server.value("worker_proportional_memory_bytes", worker="1")
        server.get("/grow?60000000")
        after = server.value("worker_proportional_memory_bytes", worker="1")
        assert after > before + 50_000_000
        assert server.value("proportional_memory_bytes") == pytest.approx(after, rel=0.05)
        assert "misbehaving.py:" in server.ctl("heap")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_metrics_and_options_that_exist(name: str) -> None:
    names = (ROOT / "tests/cases/prometheus/metric_names.txt").read_text()
    known = {line.split()[0].removeprefix("poorhttp_") for line in names.splitlines()}
    known |= {each.removesuffix("_total") for each in known}
    known |= {*OPTIONS, *OF_OTHERS}
    for found in re.findall(r"`([a-z]+(?:_[a-z]+)+)(?:\{[^}]*\})?`", page(name)):
        assert found.removeprefix("poorhttp_") in known, f"{name}.md: {found}"


#: Settings of nginx and Prometheus.
OF_OTHERS = ("proxy_read_timeout", "rule_files")
