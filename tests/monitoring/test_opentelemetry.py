"""Metrics and traces sent by OpenTelemetry's SDK to a real receiver."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from poorhttp.plugins.monitor.admin.model import BOUNDS
from poorhttp.plugins.monitor.metrics.families import collect
from poorhttp.plugins.monitor.otel.tracing import redacted
from tests.support.otlp_receiver import Receiver, attributes
from tests.support.status_documents import DOCUMENTS
from tests.testkit.client import BadResponse
from tests.testkit.server import Server, command, run, wait_for

TRACED = "tests/apps/traced.py"

#: Kinds and statuses of spans (opentelemetry/proto/trace/v1).
SERVER, UNSET, ERROR = 2, 0, 2
DELTA, CUMULATIVE = 1, 2

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


# Traces


#: A server that sends its traces, and who receives them.
Tracing = tuple[Server, Receiver]


@pytest.fixture(scope="module")
def shared(mode: str) -> Iterator[Tracing]:
    """One for all tests with the same options."""
    with Receiver() as receiver:
        env = {**receiver.env, "OTEL_SERVICE_NAME": "shop"}
        with Server(TRACED, mode, "--otel", "traces", env=env) as server:
            yield server, receiver


@pytest.fixture
def tracing(shared: Tracing) -> Tracing:
    """The same without a span of other tests: each of them waits for all of its own."""
    shared[1].spans.clear()
    return shared


@pytest.mark.each_mode
def test_a_span_for_each_request(tracing: Tracing) -> None:
    """With the attributes of the conventions, and those of the application within it."""
    server, receiver = tracing
    told = server.get("/work?a=1&sig=secret", "User-Agent: tests/1").json()
    inner, outer = receiver.wait_spans(2)[::-1]
    assert (inner.name, outer.name) == ("work", "GET")
    assert inner.parent_span_id == outer.span_id
    assert outer.trace_id.hex() == inner.trace_id.hex() == told["trace"]
    assert outer.parent_span_id == b""
    assert outer.kind == SERVER
    assert outer.status.code == UNSET
    assert outer.start_time_unix_nano <= inner.start_time_unix_nano
    assert inner.end_time_unix_nano <= outer.end_time_unix_nano
    assert attributes(outer) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "url.path": "/work",
        "url.query": "a=1&sig=REDACTED",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "server.address": "127.0.0.1",
        "server.port": server.port,
        "client.address": "127.0.0.1",
        "user_agent.original": "tests/1",
    }
    assert {resource["service.name"] for _, resource in receiver.spans} == {"shop"}


def test_a_span_lasts_until_the_body_is_closed(tracing: Tracing) -> None:
    server, receiver = tracing
    assert server.get("/pieces").body == b"piece\n" * 3
    outer, *inner = receiver.wait_spans(4)
    assert [span.name for span in inner] == ["piece 0", "piece 1", "piece 2"]
    assert {span.parent_span_id for span in inner} == {outer.span_id}
    assert outer.end_time_unix_nano >= max(span.end_time_unix_nano for span in inner)
    # What follows on the same thread is not part of it.
    receiver.spans.clear()
    assert server.get("/").status == 200
    first, second = receiver.wait_spans(2)
    assert (first.parent_span_id, second.parent_span_id) == (b"", first.span_id)


def test_a_thread_is_left_without_a_span() -> None:
    """After the application, between the pieces of a body, and at its end."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    from poorhttp.plugins.monitor.otel.tracing import Traced
    from tests.apps.traced import application

    def is_outside() -> bool:
        return not trace.get_current_span().get_span_context().is_valid

    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("test")
    traced = Traced(application, tracer, has_ids=False)
    environ = {"REQUEST_METHOD": "GET", "REQUEST_URI": "/", "SERVER_PROTOCOL": "HTTP/1.1"}
    environ |= {"SERVER_PORT": "80", "PATH_INFO": "/pieces"}
    body = traced(environ, lambda *_: lambda data: None)
    assert is_outside()
    assert [is_outside() for _ in body] == [True] * 3
    body.close()  # type: ignore[attr-defined]
    assert is_outside()


def test_bodies_are_sent_as_without(tracing: Tracing) -> None:
    """A list has a length, a file is sent by the server itself."""
    server, receiver = tracing
    assert server.get("/").get("Content-Length") is not None
    file = server.get("/file")
    assert b"Responses of each kind" in file.body
    assert file.get("Content-Length") is not None
    assert server.get("/written").body == b"written"
    receiver.wait_spans(4)


def test_asgi_applications(receiver: Receiver) -> None:
    options = ("--otel", "traces")
    with Server("tests/apps/asgi.py:app", "asyncio", *options, env=receiver.env) as server:
        server.tracebacks = True
        assert server.get("/scope?a=1", f"traceparent: {PARENT}").status == 200
        (span,) = receiver.wait_spans(1)
        assert span.trace_id.hex() == PARENT.split("-")[1]
        found = attributes(span)
        assert (found["url.path"], found["url.query"]) == ("/scope", "a=1")
        assert (found["http.response.status_code"], span.status.code) == (200, UNSET)
        receiver.spans.clear()
        assert server.get("/fail?early").status == 500
        (span,) = receiver.wait_spans(1)
        assert attributes(span)["error.type"] == "RuntimeError"
        assert span.status.code == ERROR


def test_errors(mode: str, receiver: Receiver) -> None:
    with Server(TRACED, mode, "--otel", "traces", env=receiver.env) as server:
        server.tracebacks = True
        assert server.get("/raises").status == 500
        assert server.get("/busy").status == 503
        with server.connect() as connection:
            connection.send_request("GET", "/breaks")
            with pytest.raises(BadResponse):
                connection.response()
        spans = [span for span in receiver.wait_spans(4) if span.kind == SERVER]
        names = ("url.path", "http.response.status_code", "error.type")
        assert {tuple(attributes(span)[name] for name in names) for span in spans} == {
            ("/raises", 500, "LookupError"),
            ("/busy", 503, "503"),
            ("/breaks", 500, "OSError"),
        }
        assert {span.status.code for span in spans} == {ERROR}
        (event,) = next(each.events for each in spans if attributes(each)["url.path"] == "/raises")
        assert attributes(event)["exception.message"] == "nothing here"


def test_the_trace_of_a_client_goes_on(tracing: Tracing) -> None:
    server, receiver = tracing
    told = server.get("/", f"traceparent: {PARENT}", "tracestate: a=1").json()
    assert told["trace"] == PARENT.split("-")[1]
    outer = receiver.wait_spans(2)[0]
    assert outer.parent_span_id.hex() == PARENT.split("-")[2]
    assert outer.trace_state == "a=1"
    receiver.spans.clear()
    # A malformed one is not one.
    told = server.get("/", "traceparent: 00-x-y-01").json()
    assert told["trace"] != PARENT.split("-")[1]
    assert receiver.wait_spans(2)[0].parent_span_id == b""
    # Not sampled there, not sampled here.
    receiver.spans.clear()
    server.get("/", f"traceparent: {PARENT[:-1]}0")
    server.get("/")
    assert len(receiver.wait_spans(2)) == 2


def test_methods_that_clients_invent(tracing: Tracing) -> None:
    """The names of spans are few."""
    server, receiver = tracing
    with server.connect() as connection:
        assert connection.request("BREW", "/").status == 200
    outer = receiver.wait_spans(2)[0]
    assert outer.name == "HTTP"
    assert attributes(outer)["http.request.method"] == "_OTHER"
    assert attributes(outer)["http.request.method_original"] == "BREW"


def test_spans_of_a_worker_that_ends_arrive(mode: str, receiver: Receiver) -> None:
    """Also of one that a preloader has forked."""
    env = {**receiver.env, "OTEL_BSP_SCHEDULE_DELAY": "600000"}
    with Server(TRACED, mode, "--otel", "traces", "--preload", env=env) as server:
        assert server.get("/").status == 200
        assert not receiver.spans
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        receiver.wait_spans(2)
        assert server.get("/").status == 200
    assert len(receiver.spans) == 4


def test_a_receiver_that_is_gone_delays_nobody(mode: str, receiver: Receiver) -> None:
    receiver.refuses = True
    options = ("--otel", "traces", "--graceful-timeout", "2")
    with Server(TRACED, mode, *options, env=receiver.env) as server:
        for _ in range(50):
            assert server.get("/").status == 200
        server.tracebacks = True


# Metrics


def test_metrics_arrive(mode: str, receiver: Receiver) -> None:
    env = {**receiver.env, "OTEL_RESOURCE_ATTRIBUTES": "service.name=shop,region=x"}
    with Server(TRACED, mode, "--otel", "metrics", "--workers", "1", env=env) as server:
        for _ in range(3):
            assert server.get("/").status == 200
        metrics = receiver.wait_metrics(lambda found: total(found["poorhttp.requests"]) == 3)
        requests = metrics["poorhttp.requests"]
        assert requests.unit == "1"
        assert requests.sum.is_monotonic
        assert requests.sum.aggregation_temporality == CUMULATIVE
        (point,) = requests.sum.data_points
        assert point.start_time_unix_nano < point.time_unix_nano
        responses = metrics["poorhttp.responses"].sum.data_points
        (right,) = (point for point in responses if attributes(point)["code"] == "2xx")
        assert (right.as_int or right.as_double) == 3
        assert metrics["poorhttp.oldest_request"].unit == "s"
        assert metrics["poorhttp.sent"].unit == "By"
        (worker,) = metrics["poorhttp.worker_requests"].sum.data_points
        assert attributes(worker) == {"worker": "1"}
        (durations,) = metrics["poorhttp.request_application"].histogram.data_points
        assert tuple(durations.explicit_bounds) == BOUNDS
        assert len(durations.bucket_counts) == len(BOUNDS) + 1
        assert not durations.HasField("min")
        assert {"poorhttp.info", "poorhttp.requests_in_hand"}.isdisjoint(metrics)
        assert receiver.resource["service.name"] == "shop"
        assert receiver.resource["region"] == "x"
        # They count from the start of the server, whoever sends them.
        begun = point.start_time_unix_nano
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        assert server.get("/").status == 200
        metrics = receiver.wait_metrics(lambda found: total(found["poorhttp.requests"]) == 4)
        assert metrics["poorhttp.requests"].sum.data_points[0].start_time_unix_nano == begun


def test_only_what_has_come_since(mode: str, receiver: Receiver) -> None:
    delta = {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta"}
    with Server(TRACED, mode, "--otel", "metrics", env={**receiver.env, **delta}) as server:

        def ask(times: int) -> None:
            for _ in range(times):
                assert server.get("/").status == 200

        def sent() -> float:
            return sum(total(each["poorhttp.requests"]) for each in receiver.exports)

        ask(3)
        wait_for(lambda: sent() == 3, "3 requests")
        ask(2)
        wait_for(lambda: sent() == 5, "5 requests")
        exports = [each["poorhttp.requests"].sum for each in receiver.exports]
        assert {each.aggregation_temporality for each in exports} == {DELTA}
        points = [each.data_points[0] for each in exports]
        for first, second in itertools.pairwise(points):
            assert second.start_time_unix_nano == first.time_unix_nano


def total(metric: Any) -> float:
    """The sum of all points of a counter."""
    return float(sum(point.as_int or point.as_double for point in metric.sum.data_points))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_becomes_metrics(name: str) -> None:
    """As the exporter encodes it."""
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
    from opentelemetry.sdk.resources import Resource

    from poorhttp.plugins.monitor.metrics import changes, otlp

    status = DOCUMENTS[name]()
    metrics = collect(status)
    for change in (None, (changes.growth(changes.numbers(metrics), {}), 1.0)):
        encoded = encode_metrics(otlp.data(metrics, Resource.get_empty(), status["now"], change))
        (scope,) = encoded.resource_metrics[0].scope_metrics
        sent = [one for one, _ in metrics if one.kind != "info" and not one.deprecated]
        assert len(scope.metrics) == len(sent)


def test_what_the_environment_says(receiver: Receiver) -> None:
    for name, value in (("OTEL_TRACES_EXPORTER", "none"), ("OTEL_SDK_DISABLED", "true")):
        env = {**receiver.env, name: value}
        with Server(TRACED, "single", "--otel", "traces", env=env) as server:
            assert server.get("/").json()["trace"] == "0" * 32
    assert not receiver.spans
    words = command("serve", TRACED, "--bind", "127.0.0.1:0", "--otel", "traces")
    for name in ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        done = run(*words, env={name: "morse"})
        text = f'{name}: OpenTelemetry has no exporter "morse"'
        assert (done.returncode, text in done.stderr) == (3, True), done.stderr


def test_without_the_package() -> None:
    hidden = (
        "import sys; sys.modules['opentelemetry'] = None; sys.argv = sys.argv[1:]; "
        "from poorhttp.cli import main; sys.exit(main())"
    )
    words = command("serve", TRACED, "--bind", "127.0.0.1:0", "--otel", "on")
    done = run(words[0], "-c", hidden, *words[4:])
    assert done.returncode == 3
    assert "otel: opentelemetry.sdk is not installed; pip install '.[otel]'" in done.stderr


def test_secrets_in_queries() -> None:
    assert redacted("a=1&X-Goog-Signature=x&b&sig") == "a=1&X-Goog-Signature=REDACTED&b&sig"
