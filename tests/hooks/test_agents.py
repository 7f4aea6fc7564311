"""Agents that wrap the command: elasticapm-run, opentelemetry-instrument, ddtrace-run.

They start in the main process before any worker is forked. What they send is received here: each
request of each worker, whatever ends it. An agent that is not installed is skipped.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.hooks.collector import Collector
from tests.hooks.events import Hooked
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


@pytest.mark.full
@pytest.mark.parametrize("agent", AGENTS)
def test_each_request_arrives(agent: str, mode: str, tmp_path: Path) -> None:
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
    options = (
        *("--workers", "2", "--max-requests", "5", "--drain-timeout", "0.1"),
        *("--hook-worker-start", "tests.apps.hooked:worker_start"),
        *("--hook-worker-exit", "tests.apps.hooked:worker_exit"),
    )
    with Collector() as collector:
        url = f"http://127.0.0.1:{collector.server_port}"
        env = {name: text.format(url=url) for name, text in variables.items()}
        env["PYTHONPATH"] = f"{ROOT}:{installed}"
        more = {"app": "shop:app", "cwd": tmp_path, "launcher": (sys.executable, "-c", code)}
        with Hooked(tmp_path, mode, *options, env=env, **more) as server:
            server.ask(12, "/item/{}")
            server.wait_events("worker_exit")
            server.ask(3, "/item/{}")
            server.reload()
            server.ask(3, "/item/{}")
    numbers = re.findall(rb"/item/(\d+)", b"\n".join(collector.bodies))
    assert {*map(int, numbers)} == set(range(1, server.asked + 1))
    assert {*server.values("worker_exit", "reason")} == {"recycled", "reloaded", "stopped"}
