"""sentry_sdk: events of requests arrive, also those of a worker that ends."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import brotli
import pytest

from tests.hooks.events import IN_FULL, Hooked, recipe, serving
from tests.testkit.client import HANG
from tests.testkit.server import wait_for

APP = """
import sentry_sdk
from sentry_sdk.integrations.wsgi import SentryWsgiMiddleware

def answer(environ, start_response):
    if environ["PATH_INFO"] == "/fails":
        raise LookupError(environ["QUERY_STRING"])
    for number in range(10):
        sentry_sdk.capture_message(f"{environ['QUERY_STRING']} {number}")
    start_response("200 OK", [])
    return [b"done"]

application = SentryWsgiMiddleware(answer)
"""


class Sentry:
    """Receives events on a port of this machine, as Sentry does."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        events = self.events

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                coding = self.headers.get("Content-Encoding", "")
                body = {"gzip": gzip.decompress, "br": brotli.decompress}.get(coding, bytes)(body)
                for line in body.split(b"\n"):
                    item = json.loads(line) if line.startswith(b"{") else {}
                    if "level" in item:
                        events.append(item)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.dsn = f"http://key@127.0.0.1:{self.server.server_port}/1"

    def messages(self) -> Counter[str]:
        """How often each message, or text of an exception, has arrived."""
        return Counter(
            event["exception"]["values"][-1]["value"] if "exception" in event else event["message"]
            for event in self.events
        )


@pytest.fixture
def sentry() -> Iterator[Sentry]:
    found = Sentry()
    with serving(found.server):
        yield found


@pytest.mark.parametrize("mode", IN_FULL)
def test_events(mode: str, sentry: Sentry, tmp_path: Path) -> None:
    recipe("shop_sentry", tmp_path)
    module = tmp_path / "shop_sentry.py"
    # It imports each framework that is installed, which takes a second in each worker.
    # A worker that ends waits for its last events longer than the usual 2 s on a busy machine.
    quick = f"init(auto_enabling_integrations=False, shutdown_timeout={HANG})"
    quick = module.read_text().replace("init()", quick)
    module.write_text(quick)
    (tmp_path / "shop.py").write_text(APP)
    options = (
        *("--workers", "2", "--max-requests", "3", "--drain-timeout", "0.1"),
        *("--hook-worker-start", "shop_sentry:start"),
        *("--hook-worker-start", "tests.apps.hooked:worker_start"),
        *("--hook-worker-exit", "tests.apps.hooked:worker_exit"),
    )
    expected: Counter[str] = Counter()
    with Hooked(
        *(tmp_path, mode, *options),
        app="shop",
        cwd=tmp_path,
        env={"SENTRY_DSN": sentry.dsn},
        tracebacks=True,
    ) as server:

        def ask(times: int, path: str = "/") -> None:
            for _ in range(times):
                number = len(expected)
                status = server.get(f"{path}?{number}").status
                assert status == (500 if path == "/fails" else 200)
                names = [str(number)] if path == "/fails" else [f"{number} {n}" for n in range(10)]
                expected.update(names)

        ask(1, "/fails")
        wait_for(lambda: sentry.messages() == expected, "the exception")
        (event,) = sentry.events
        assert event["exception"]["values"][-1]["type"] == "LookupError"
        assert event["tags"]["worker"] in (1, 2, "1", "2")
        assert event["request"]["url"].endswith("/fails")
        # Workers are recycled as soon as they have answered.
        ask(7)
        server.wait_events("worker_exit")
        ask(2)
        server.reload()
        ask(2)
        wait_for(lambda: sentry.messages() == expected, "all events so far")
        # Workers of the version before may take their time to end.
        wait_for(lambda: len(server.pids()) == 2, "the workers of the new version alone")
        # Lost is only what waits when it is killed.
        for pid in server.pids():
            os.kill(pid, signal.SIGKILL)
        wait_for(
            lambda: sum(each["signal"] == 9 for each in server.events("worker_exit")) == 2,
            "both ends",
        )
        wait_for(lambda: len(server.pids()) == 2, "two workers")
        ask(2)
        server.stop(signal.SIGTERM)
    assert sentry.messages() == expected
