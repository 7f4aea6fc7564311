"""A provider of OpenTelemetry's SDK, made in `worker_start`: no span is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hooks.events import IN_FULL, Hooked, recipe
from tests.support.otlp_receiver import Receiver

APP = """
from opentelemetry import trace

tracer = trace.get_tracer("shop")

def application(environ, start_response):
    with tracer.start_as_current_span(environ["QUERY_STRING"]):
        start_response("200 OK", [])
        return [b"done"]
"""


@pytest.mark.parametrize("mode", IN_FULL)
def test_spans(mode: str, tmp_path: Path) -> None:
    """Each request has one span, whatever ends its worker."""
    recipe("shop_traces", tmp_path)
    (tmp_path / "shop.py").write_text(APP)
    options = (
        *("--workers", "2", "--max-requests", "5", "--drain-timeout", "0.1"),
        *("--hook-worker-start", "shop_traces:start"),
        *("--hook-worker-exit", "tests.apps.hooked:worker_exit"),
    )
    asked: list[str] = []
    with Receiver() as receiver:
        # It sends only at the end of a worker.
        env = {**receiver.env, "OTEL_BSP_SCHEDULE_DELAY": "600000"}
        with Hooked(tmp_path, mode, *options, app="shop", cwd=tmp_path, env=env) as server:

            def ask(times: int) -> None:
                for _ in range(times):
                    asked.append(str(len(asked)))
                    assert server.get(f"/?{asked[-1]}").status == 200

            ask(12)
            server.wait_events("worker_exit")
            for number in (1, 2):
                ask(3)
                server.reload(number)
            ask(4)
        assert sorted(span.name for span, _ in receiver.spans) == sorted(asked)
    assert {"recycled", "reloaded", "stopped"} == {
        each["reason"] for each in server.events("worker_exit")
    }
