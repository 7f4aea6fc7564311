"""Agents that wrap the command: elasticapm-run, opentelemetry-instrument, ddtrace-run.

They start in the main process before any worker is forked. What they send is received here: each
request of each worker, whatever ends it. An agent that is not installed is skipped.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.hooks.events import IN_FULL, Hooked, serving
from tests.testkit.server import ROOT

APP = """
from flask import Flask

app = Flask(__name__)

@app.route("/item/<number>")
def item(number):
    return "here"
"""

#: The module of each agent, the code of its command, and what it is told by the environment.
AGENTS = {
    "elasticapm": (
        "from elasticapm.instrumentation.wrapper import setup; setup()",
        {
            "ELASTIC_APM_SERVER_URL": "{url}",
            "ELASTIC_APM_SERVICE_NAME": "shop",
            "ELASTIC_APM_CLOUD_PROVIDER": "none",
            "ELASTIC_APM_CENTRAL_CONFIG": "false",
        },
    ),
    "opentelemetry.instrumentation": (
        "from opentelemetry.instrumentation.auto_instrumentation import run; run()",
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "{url}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
        },
    ),
    "ddtrace": (
        "from ddtrace.commands.ddtrace_run import main; main()",
        {
            "DD_TRACE_AGENT_URL": "{url}",
            "DD_SERVICE": "shop",
            "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
            "DD_REMOTE_CONFIGURATION_ENABLED": "false",
            "DD_CRASHTRACKING_ENABLED": "false",
        },
    ),
}


class Collector:
    """Receives what agents send, on a port of this machine."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = b""
                if self.headers.get("Transfer-Encoding") == "chunked":
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                coding = self.headers.get("Content-Encoding", "")
                if coding == "gzip":
                    body = gzip.decompress(body)
                elif coding == "deflate":
                    body = zlib.decompress(body)
                bodies.append(body)
                self.send_response(202 if "intake" in self.path else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_PUT = do_GET = do_POST  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def items(self) -> set[int]:
        """The numbers of the requests that have arrived."""
        text = b"\n".join(self.bodies)
        return {int(number) for number in re.findall(rb"/item/(\d+)", text)}


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    with serving(found.server):
        yield found


@pytest.mark.full
@pytest.mark.parametrize("mode", IN_FULL)
@pytest.mark.parametrize("agent", AGENTS)
def test_each_request_arrives(agent: str, mode: str, collector: Collector, tmp_path: Path) -> None:
    try:
        spec = find_spec(agent)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{agent} is not installed")
    # Where it is installed, if that is another folder than Python's own.
    installed = Path(next(iter(spec.submodule_search_locations)))
    for _ in agent.split("."):
        installed = installed.parent
    if agent.startswith("opentelemetry") and mode == "gevent":
        pytest.skip("its threads begin before gevent patches them: docs/guides/hooks.md")
    code, variables = AGENTS[agent]
    (tmp_path / "shop.py").write_text(APP)
    env = {name: text.format(url=collector.url) for name, text in variables.items()}
    options = (
        *("--workers", "2", "--max-requests", "5", "--drain-timeout", "0.1"),
        *("--hook-worker-start", "tests.apps.hooked:worker_start"),
        *("--hook-worker-exit", "tests.apps.hooked:worker_exit"),
    )
    with Hooked(
        tmp_path,
        mode,
        *options,
        app="shop:app",
        cwd=tmp_path,
        env={**env, "PYTHONPATH": f"{ROOT}:{installed}"},
        launcher=(sys.executable, "-c", code),
    ) as server:
        asked = 0

        def ask(times: int) -> None:
            nonlocal asked
            for _ in range(times):
                assert server.get(f"/item/{asked}").status == 200
                asked += 1

        ask(12)
        server.wait_events("worker_exit")
        ask(3)
        server.reload()
        ask(3)
    assert collector.items() == set(range(asked))
    assert {"recycled", "reloaded", "stopped"} == {
        each["reason"] for each in server.events("worker_exit")
    }
