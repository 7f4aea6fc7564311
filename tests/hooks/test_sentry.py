"""sentry_sdk: events of requests arrive, also those of a worker that ends."""

from __future__ import annotations

import gzip
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import brotli

from tests.hooks.events import recipe, serving
from tests.testkit.client import HANG
from tests.testkit.server import Server, wait_for

APP = """
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


class Sentry(ThreadingHTTPServer):
    """Receives events on a port of this machine, as Sentry does."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        events = self.events

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                coding = self.headers.get("Content-Encoding", "")
                body = {"gzip": gzip.decompress, "br": brotli.decompress}.get(coding, bytes)(body)
                lines = [json.loads(line) for line in body.split(b"\n") if line.startswith(b"{")]
                events.extend(item for item in lines if "level" in item)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        super().__init__(("127.0.0.1", 0), Handler)


def test_events(tmp_path: Path) -> None:
    recipe("shop_sentry", tmp_path)
    module = tmp_path / "shop_sentry.py"
    # It imports each framework that is installed, which takes a second.
    # A worker that ends waits for its last events longer than the usual 2 s on a busy machine.
    quick = f"init(auto_enabling_integrations=False, shutdown_timeout={HANG})"
    module.write_text(module.read_text().replace("init()", quick))
    (tmp_path / "shop.py").write_text(APP)
    sentry = Sentry()
    env = {"SENTRY_DSN": f"http://key@127.0.0.1:{sentry.server_port}/1"}
    options = ("--workers", "1", "--hook-worker-start", "shop_sentry:start")
    with (
        serving(sentry),
        Server("shop", "threading", *options, cwd=tmp_path, env=env, tracebacks=True) as server,
    ):
        assert server.get("/fails").status == 500
        wait_for(lambda: sentry.events, "the exception")
        (event,) = sentry.events
        assert event["exception"]["values"][-1]["value"] == "it fails"
        assert event["request"]["url"].endswith("/fails")
        assert str(event["tags"]["worker"]) == "1"
        assert server.get("/").status == 200
        server.stop()
        assert sentry.events[-1]["message"] == "the last"
