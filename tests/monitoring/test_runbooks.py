"""The runbooks of docs/guides (`PAGES`), each walked through on a server in that trouble.

Each test makes the trouble, and checks that the figures and commands show it that the page names.
"""

from __future__ import annotations

import html
import json
import os
import re
import socket
from pathlib import Path

import pytest

from poorhttp.config.settings import OPTIONS
from tests.packages import need
from tests.support.admin_address import Operator
from tests.support.forked_command import run_command
from tests.support.health_probe import ask
from tests.support.proxies import WebServer, reserve
from tests.testkit.client import Connection
from tests.testkit.process import workers
from tests.testkit.server import ROOT, Server, patched, wait_for

APP = "tests/apps/misbehaving.py"

#: The pages about what is wrong.
PAGES = ("slow", "hangs", "memory-grows", "bad-gateway", "overload", "alerts", "choose-a-mode")

NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/a;
    proxy_temp_path {folder}/b;
    fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d;
    scgi_temp_path {folder}/e;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://unix:{folder}/web;
            proxy_read_timeout {timeout}ms;
        }}
    }}
}}
"""


def page(name: str) -> str:
    """The text of a page."""
    return (ROOT / f"docs/guides/{name}.md").read_text(encoding="utf-8")


class Watched(Server):
    """A server, and what its admin address shows of it; `gate` ends the requests that hang."""

    def __init__(
        self, folder: Path, *options: str, mode: str = "threading", **more: object
    ) -> None:
        self.admin = str(folder / "admin")
        self.gate = folder / "gate"
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

    def page(self) -> str:
        """What the page at the address says."""
        with Operator(self.admin) as connection:
            text = connection.request("GET", "/").body.decode()
        return html.unescape(re.sub("<[^>]+>", " ", text))

    def hang(self) -> Connection:
        """A connection whose request hangs until there is the gate."""
        times = self.log().count("entered") + 1
        connection = self.connect()
        connection.send_request("GET", f"/hang?{self.gate}")
        self.wait_log("entered", times)
        return connection


# It is slow


def test_the_application_is_slow(folder: Path) -> None:
    with Watched(folder, "--slow-request", "0.1") as server:
        for _ in range(3):
            assert server.get("/sleep?0.2").status == 200
        wait_for(lambda: server.value("request_application_seconds_count") == 3, "three requests")
        assert server.value("request_application_seconds_sum") >= 0.6
        assert server.value("request_application_seconds_bucket", le="0.15") == 0
        slow = server.value("request_application_seconds_sum")
        assert server.value("request_waiting_seconds_sum") < slow
        assert server.value("request_sending_seconds_sum") < slow
        (only,) = json.loads(server.ctl("status", "--json"))["services"]
        assert only["slowest"][0]["line"] == "GET /sleep?0.2"
        assert only["slowest"][0]["application"] >= 0.2
        server.wait_log("GET /sleep?0.2", 3)


def test_there_are_too_few_threads(folder: Path) -> None:
    with Watched(folder, "--threads", "1") as server:
        first = server.hang()
        others = [server.connect() for _ in range(3)]
        for connection in others:
            connection.send_request("GET", "/sleep?0")
        wait_for(lambda: server.value("oldest_request_seconds") > 0.3, "a while")
        assert server.value("utilization") == 1
        server.gate.touch()
        assert {each.response().status for each in (first, *others)} == {200}
        wait_for(lambda: server.value("request_waiting_seconds_count") == 4, "all requests")
        assert server.value("request_waiting_seconds_bucket", le="0.1") <= 1
        assert server.value("request_waiting_seconds_sum") > 0.6


def test_threads_compute(folder: Path) -> None:
    with Watched(folder, "--threads", "4") as server:
        computing = [server.connect() for _ in range(4)]
        for connection in computing:
            connection.send_request("GET", "/compute?0.2")
        assert {each.response().status for each in computing} == {200}
        assert server.value("worker_cpu_seconds_total", worker="1") >= 0.8
        wait_for(lambda: server.value("interpreter_wait_seconds_total") > 0, "the waits")
        # Each had the interpreter for a quarter of the time.
        assert server.value("request_application_seconds_sum") > 1.2


def test_a_client_is_slow(folder: Path) -> None:
    with Watched(folder) as server:
        client = server.connect()
        client.send_request("GET", "/large?50000000")
        wait_for(lambda: server.value("connections_by_state", state="sending") == 1, "it sends")
        wait_for(lambda: server.value("requests_in_flight") == 0, "no thread waits")
        assert server.value("spooled_bytes_total") > 1_000_000
        assert len(client.response().body) == 50_000_000
        wait_for(lambda: server.value("request_sending_seconds_count") == 1, "its end")
        assert server.value("request_sending_seconds_sum") > 0
        assert server.value("sent_bytes_total") > 50_000_000


def test_there_are_too_many_connections(folder: Path) -> None:
    with Watched(folder, "--max-connections", "2") as server:
        hanging = [server.hang() for _ in range(2)]
        assert server.get("/sleep?0").status == 503
        assert server.value("requests_refused_total", code="503") == 1
        assert "too many connections" in server.page()
        server.gate.touch()
        assert {each.response().status for each in hanging} == {200}


# It hangs


def test_it_hangs(folder: Path) -> None:
    with Watched(folder, "--threads", "2") as server:
        hanging = [server.hang() for _ in range(2)]
        assert server.value("utilization") == 1
        # Those that have a thread do not wait for one.
        assert server.value("requests_queued") == 0
        wait_for(
            lambda: "all 2 threads that run requests are taken, for up to " in server.page(),
            "a notice",
        )
        before = server.value("oldest_request_seconds")
        wait_for(lambda: server.value("oldest_request_seconds") > before + 0.5, "it grows")
        wait_for(lambda: server.value("workers_answering") == 0, "a worker that is silent")
        assert server.value("workers_alive") == 1
        wait_for(lambda: server.value("ready") == 0, "it is not ready")
        assert f"GET /hang?{server.gate}" in server.ctl("requests")
        assert "wait_for_gate" in server.ctl("stacks")
        (worker,) = workers(server.process.pid)
        server.gate.touch()
        assert {each.response().status for each in hanging} == {200}
        server.ctl("restart", str(worker))
        wait_for(lambda: worker not in workers(server.process.pid), "the end of the worker")
        wait_for(lambda: server.value("ready") == 1, "it is ready")


def test_requests_time_out(folder: Path) -> None:
    with Watched(folder, "--request-timeout", "0.2") as server:
        server.tracebacks = True
        assert server.hang().response().status == 504
        wait_for(lambda: server.value("requests_timed_out_total") == 1, "one that timed out")
        assert "wait_for_gate" in server.log()


# Memory grows


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


def test_workers_that_have_grown_are_replaced(folder: Path) -> None:
    with Watched(folder, "--max-rss", "100M") as server:
        server.get("/grow?150000000")
        wait_for(lambda: server.value("worker_restarts_total", reason="worn") == 1, "a replacement")
        assert server.get("/sleep?0").status == 200


# 502 behind nginx


class Nginx(WebServer):
    """nginx before the socket `web` of a folder, which waits so many milliseconds for answers."""

    def __init__(self, folder: Path, timeout: int = 60_000) -> None:
        need("nginx")
        reserved = reserve()
        self.port: int = reserved.getsockname()[1]
        config = folder / "nginx.conf"
        config.write_text(NGINX.format(folder=folder, port=self.port, timeout=timeout))
        words = ("nginx", "-e", "stderr", "-p", str(folder), "-c", str(config))
        env = {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
        super().__init__(*words, reserved=[reserved], env=env)
        wait_for(self.is_listening, "nginx listening")

    def status(self, target: str) -> int:
        """The status of one answer."""
        with Connection(("127.0.0.1", self.port)) as connection:
            return connection.request("GET", target).status

    def says(self, reason: str) -> None:
        """Check that its log says so, and that the runbook knows these words."""
        self.wait_log(reason)
        assert reason in page("bad-gateway")


def test_a_worker_dies_behind_nginx(folder: Path) -> None:
    with Watched(folder, bind=(f"unix:{folder}/web",)) as server, Nginx(folder) as nginx:
        assert nginx.status("/die") == 502
        nginx.says("upstream prematurely closed connection")
        wait_for(lambda: server.value("worker_restarts_total", reason="died") == 1, "its death")
        server.wait_log("GET /die")
        assert "a worker has died in the last minutes" in server.page()
        assert nginx.status("/sleep?0") == 200


def test_nginx_gives_up(folder: Path) -> None:
    with (
        Watched(folder, bind=(f"unix:{folder}/web",)) as server,
        Nginx(folder, timeout=300) as nginx,
    ):
        assert nginx.status(f"/hang?{server.gate}") == 504
        nginx.says("upstream timed out")
        # A busy machine may have begun it late.
        wait_for(lambda: server.value("oldest_request_seconds") > 0.25, "a long request")
        server.gate.touch()
        wait_for(lambda: server.value("request_application_seconds_count") == 1, "its end")
        assert server.value("request_application_seconds_bucket", le="0.25") == 0


def test_nginx_finds_nobody(folder: Path) -> None:
    with Nginx(folder) as nginx:
        assert nginx.status("/sleep?0") == 502
        nginx.says("No such file or directory")
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(f"{folder}/web")
        assert nginx.status("/sleep?0") == 502
        nginx.says("Connection refused")


# The page


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
