"""A receiver of OpenTelemetry's protocol (OTLP over HTTP), as a collector is one."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.testkit.client import HANG
from tests.testkit.server import wait_for

if TYPE_CHECKING:
    from typing_extensions import Self


class Receiver:
    """Receives traces and metrics on a port of this machine.

    Attributes:
        env: variables of the environment by which the SDK sends here.
        spans: all spans so far, with the attributes of what has sent them.
        metrics: the last metrics, by their names.
        resource: the attributes of what has sent metrics.
        refuses: answer 503.
    """

    def __init__(self) -> None:
        self.spans: list[tuple[Any, dict[str, Any]]] = []
        self.metrics: dict[str, Any] = {}
        self.exports: list[dict[str, Any]] = []
        self.resource: dict[str, Any] = {}
        self.refuses = False
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if not receiver.refuses:
                    {"/v1/traces": receiver.on_traces, "/v1/metrics": receiver.on_metrics}[
                        self.path
                    ](body)
                self.send_response(503 if receiver.refuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        url = f"http://127.0.0.1:{self._server.server_port}"
        self.env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_BSP_SCHEDULE_DELAY": "20",
            "OTEL_METRIC_EXPORT_INTERVAL": "100",
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(HANG)
        self._server.server_close()

    def on_traces(self, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            resource = attributes(group.resource)
            self.spans += [(span, resource) for scope in group.scope_spans for span in scope.spans]

    def on_metrics(self, body: bytes) -> None:
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

        request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
        (group,) = request.resource_metrics
        self.resource = attributes(group.resource)
        self.metrics = {each.name: each for scope in group.scope_metrics for each in scope.metrics}
        self.exports.append(self.metrics)

    def wait_spans(self, number: int) -> list[Any]:
        """Wait until there are so many spans; return them, the first to begin first."""
        wait_for(lambda: len(self.spans) >= number, f"{number} spans")
        found = [span for span, _ in self.spans]
        return sorted(found, key=lambda span: int(span.start_time_unix_nano))

    def wait_metrics(self, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Wait for metrics of which something holds; return them."""
        found: dict[str, Any] = {}

        def came() -> bool:
            metrics = self.metrics
            if metrics and holds(metrics):
                found.update(metrics)
            return bool(found)

        wait_for(came, "metrics")
        return found


def attributes(thing: Any) -> dict[str, Any]:
    """The attributes of a span, a point or a resource."""
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in thing.attributes
    }
