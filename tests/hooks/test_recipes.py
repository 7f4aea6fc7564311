"""Recipes of docs/guides/hooks.md: prometheus_client, sentry_sdk and OpenTelemetry's SDK."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.hooks.collector import Collector
from tests.hooks.events import Hooked
from tests.support.otlp_receiver import Receiver
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, run, wait_for

TRACED = """
from opentelemetry import trace

tracer = trace.get_tracer("shop")

def application(environ, start_response):
    with tracer.start_as_current_span(environ["QUERY_STRING"]):
        start_response("200 OK", [])
        return [b"done"]
"""

COUNTED = """
from prometheus_client import Counter, Gauge

REQUESTS = Counter("shop_requests", "Requests.")
WORKERS = Gauge("shop_workers", "Workers.", multiprocess_mode="livesum")

def start(worker):
    WORKERS.set(1)

def application(environ, start_response):
    REQUESTS.inc()
    start_response("200 OK", [])
    return [b"done"]
"""

#: Prints what is left when the server has ended.
READ = """
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""

WATCHED = """
import sentry_sdk
from sentry_sdk.integrations.wsgi import SentryWsgiMiddleware

def answer(environ, start_response):
    if environ["PATH_INFO"] == "/fails":
        raise LookupError("it fails")
    sentry_sdk.capture_message("the last")
    start_response("200 OK", [])
    return [b"done"]

application = SentryWsgiMiddleware(answer)
"""


def write(folder: Path, module: str, app: str, *changes: tuple[str, str]) -> None:
    """Write a module of the guide, perhaps with changes, and `shop.py` into a folder."""
    text = (ROOT / "docs/guides/hooks.md").read_text(encoding="utf-8")
    code = text.split(f"```python\n# {module}.py\n")[1].split("```")[0]
    for old, new in changes:
        code = code.replace(old, new)
    (folder / f"{module}.py").write_text(code)
    (folder / "shop.py").write_text(app)


def value(text: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_prometheus_client(mode: str, tmp_path: Path) -> None:
    """No count is lost, and no value of a process remains that has ended."""
    write(tmp_path, "shop_metrics", COUNTED)
    (tmp_path / "values").mkdir()
    env = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "values")}
    options = (
        *("--workers", "2", "--max-requests", "20", "--drain-timeout", "0.1"),
        *("--mount", "/metrics=shop_metrics:metrics", "--hook-worker-start", "shop:start"),
        *("--hook-worker-start", "tests.apps.hooked:worker_start", "--hook-worker-exit"),
        *("shop_metrics:forget", "--hook-worker-exit", "tests.apps.hooked:worker_exit"),
    )
    with Hooked(
        tmp_path, mode, *options, app="shop", cwd=tmp_path, env=env, tracebacks=True
    ) as server:

        def live() -> float:
            # The library fails for a moment if a process has just created its file.
            answer = server.get("/metrics")
            return value(answer.body.decode(), "shop_workers") if answer.status == 200 else -1

        server.ask(45)
        server.wait_events("worker_exit")
        for _ in range(5):
            server.ask(25)
            server.reload()
        server.ask(25)
        server.wait_workers()
        server.wait_ends(server.kill_worker())
        server.ask(5)
        wait_for(lambda: live() == 2, "the gauges of two live workers")
        text = server.get("/metrics").body.decode()
        assert value(text, "shop_requests_total") == server.asked
    reasons = {*server.values("worker_exit", "reason")}
    assert reasons == {"recycled", "reloaded", "killed", "stopped"}
    done = run(sys.executable, "-c", READ, env=env)
    assert value(done.stdout, "shop_requests_total") == server.asked, done.stderr
    assert list((tmp_path / "values").glob("gauge_live*")) == []


def test_spans(mode: str, tmp_path: Path) -> None:
    """Each request has one span of a provider of OpenTelemetry, whatever ends its worker."""
    write(tmp_path, "shop_traces", TRACED)
    options = (
        *("--workers", "2", "--max-requests", "5", "--drain-timeout", "0.1"),
        *("--hook-worker-start", "shop_traces:start"),
        *("--hook-worker-exit", "tests.apps.hooked:worker_exit"),
    )
    with Receiver() as receiver:
        # It sends only at the end of a worker.
        env = {**receiver.env, "OTEL_BSP_SCHEDULE_DELAY": "600000"}
        with Hooked(tmp_path, mode, *options, app="shop", cwd=tmp_path, env=env) as server:
            server.ask(12, "/?{}")
            server.wait_events("worker_exit")
            for _ in range(2):
                server.ask(3, "/?{}")
                server.reload()
            server.ask(4, "/?{}")
        spans = sorted(int(span.name) for span, _ in receiver.spans)
        assert spans == list(range(1, server.asked + 1))
    assert {*server.values("worker_exit", "reason")} == {"recycled", "reloaded", "stopped"}


def test_sentry_sdk(tmp_path: Path) -> None:
    """Events of requests arrive, also those of a worker that ends."""
    # It imports each framework that is installed, which takes a second.
    # A worker that ends waits for its last events longer than the usual 2 s on a busy machine.
    quick = f"init(auto_enabling_integrations=False, shutdown_timeout={HANG})"
    write(tmp_path, "shop_sentry", WATCHED, ("init()", quick))
    options = ("--workers", "1", "--hook-worker-start", "shop_sentry:start")
    with Collector() as collector:

        def events() -> list[dict[str, Any]]:
            lines = b"\n".join(collector.bodies).split(b"\n")
            found = [json.loads(line) for line in lines if line.startswith(b"{")]
            return [each for each in found if "level" in each]

        env = {"SENTRY_DSN": f"http://key@127.0.0.1:{collector.server_port}/1"}
        with Hooked(
            *(tmp_path, "threading", *options), app="shop", cwd=tmp_path, env=env, tracebacks=True
        ) as server:
            assert server.get("/fails").status == 500
            wait_for(events, "the exception")
            (event,) = events()
            assert event["exception"]["values"][-1]["value"] == "it fails"
            assert event["request"]["url"].endswith("/fails")
            assert str(event["tags"]["worker"]) == "1"
            assert server.get("/").status == 200
            server.stop()
            assert events()[-1]["message"] == "the last"
