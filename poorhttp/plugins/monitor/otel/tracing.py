"""A span of OpenTelemetry for each request that the application gets.

A wrapper of our own rather than opentelemetry-instrumentation-wsgi: that turns each body into a
generator, so that lists would be sent piece by piece and files through Python instead of by
sendfile(2), and it is marked as a beta. The names of attributes are those of the stable semantic
conventions for HTTP (1.23 and later).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from opentelemetry import context, propagate, trace
from opentelemetry.propagators.textmap import Getter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from poorhttp.config.version import VERSION
from poorhttp.errors import NoResponse
from poorhttp.plugins.monitor.otel import sdk
from poorhttp.worker.wsgi import FileWrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from opentelemetry.context import Context

#: Methods that are a name of a span; any other is `HTTP`, as it may be anything.
METHODS = frozenset(
    ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
)

#: Parameters of a query whose values the conventions withhold.
SECRETS = frozenset(("awsaccesskeyid", "signature", "sig", "x-goog-signature"))

#: Attributes that are in the environ as they are.
COPIED = {
    "url.scheme": "wsgi.url_scheme",
    "server.address": "SERVER_NAME",
    "client.address": "REMOTE_ADDR",
    "user_agent.original": "HTTP_USER_AGENT",
}


def traced(application: WSGIApplication, *, has_ids: bool) -> WSGIApplication:
    """Return the application with a span around each request; `has_ids`: `request_id` is on.

    Called in each worker after the fork: the thread that sends spans belongs to it.

    Raises:
        ConfigError: an exporter that the environment names is not there.
    """
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):
        # Otherwise the application has its own, which gets our spans too.
        exporters = sdk.exporters("traces")
        if not exporters:
            return application
        ours = TracerProvider(resource=sdk.resource())
        for exporter in exporters:
            ours.add_span_processor(BatchSpanProcessor(exporter))
        trace.set_tracer_provider(ours)
        provider = ours
    return Traced(application, provider.get_tracer("poorhttp", VERSION), has_ids=has_ids)


class _Environ(Getter["WSGIEnvironment"]):
    """Reads headers of a request by the names that propagators know."""

    def get(self, carrier: WSGIEnvironment, key: str) -> list[str] | None:
        """Return the values of a header."""
        value = carrier.get(f"HTTP_{key.upper().replace('-', '_')}")
        return None if value is None else [value]

    def keys(self, carrier: WSGIEnvironment) -> list[str]:
        """Return the names of all headers."""
        return [key[5:].lower().replace("_", "-") for key in carrier if key.startswith("HTTP_")]


class _Started:
    """`start_response` of a request that is traced: notes the status.

    Everything else of the request is still there.
    """

    __slots__ = ("request", "span")

    def __init__(self, request: StartResponse, span: Span) -> None:
        self.request = request
        self.span = span

    def __call__(self, status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
        write = self.request(status, headers, *exc_info)
        note_status(self.span, int(status[:3]))
        return write

    def __getattr__(self, name: str) -> Any:
        return getattr(self.request, name)


class Traced:
    """An application with a span around each request."""

    def __init__(self, application: WSGIApplication, tracer: Tracer, *, has_ids: bool) -> None:
        self._has_ids = has_ids
        self._application = application
        self._tracer = tracer
        self._environ = _Environ()

    def span(self, environ: WSGIEnvironment) -> tuple[Span, Context]:
        """Begin the span of a request; return it, and the context within it."""
        method = environ["REQUEST_METHOD"]
        parent = propagate.extract(environ, getter=self._environ)
        span = self._tracer.start_span(
            method if method in METHODS else "HTTP",
            parent,
            SpanKind.SERVER,
            attributes(environ, has_id=self._has_ids),
        )
        return span, trace.set_span_in_context(span, parent)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Call the application, within its span."""
        span, within = self.span(environ)
        body = None
        token = context.attach(within)
        try:
            body = self._application(environ, _Started(start_response, span))
        except BaseException as error:
            note_error(span, error)
            raise
        finally:
            context.detach(token)
            if body is None:
                span.end()
        if isinstance(body, (list, tuple, FileWrapper)):
            # The server sends it without the application.
            span.end()
            return body
        return _Body(body, span, within)


class TracedAsgi:
    """An ASGI application with a span around each request.

    Attributes:
        traced: begins spans; `None` before the worker serves.
    """

    traced: Traced | None = None

    def __init__(self, application: Any, environ_of: Callable[[Any], WSGIEnvironment]) -> None:
        self._application = application
        self._environ_of = environ_of

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Call the application, within a span if it is a request."""
        if self.traced is None or scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        span, within = self.traced.span(self._environ_of(scope))

        async def noting(message: Any) -> None:
            if message["type"] == "http.response.start":
                note_status(span, message["status"])
            await send(message)

        token = context.attach(within)
        try:
            await self._application(scope, receive, noting)
        except BaseException as error:
            note_error(span, error)
            raise
        finally:
            context.detach(token)
            span.end()


class _Body:
    """A body that is still made while it is sent; its span ends when it is closed."""

    def __init__(self, body: Iterable[bytes], span: Span, within: Context) -> None:
        self._body = body
        self._span = span
        self._within = within

    def __iter__(self) -> Iterator[bytes]:
        pieces = iter(self._body)
        while True:
            token: Token[Context] = context.attach(self._within)
            try:
                piece = next(pieces)
            except StopIteration:
                return
            except BaseException as error:
                note_error(self._span, error)
                raise
            finally:
                context.detach(token)
            yield piece

    def close(self) -> None:
        """Close the body, and end the span."""
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._span.end()


def attributes(environ: WSGIEnvironment, *, has_id: bool) -> Mapping[str, str | int]:
    """Return the attributes of the span of a request (OpenTelemetry semantic conventions)."""
    method = environ["REQUEST_METHOD"]
    path, _, query = environ["REQUEST_URI"].partition("?")
    found: dict[str, str | int] = {
        "http.request.method": method if method in METHODS else "_OTHER",
        "url.path": path,
        "network.protocol.version": environ["SERVER_PROTOCOL"].removeprefix("HTTP/"),
    }
    if method not in METHODS:
        found["http.request.method_original"] = method
    if query:
        found["url.query"] = redacted(query)
    if environ["SERVER_PORT"].isdigit():
        found["server.port"] = int(environ["SERVER_PORT"])
    for name, key in COPIED.items():
        if value := environ.get(key):
            found[name] = value
    if has_id:
        found["poorhttp.request_id"] = environ["HTTP_X_REQUEST_ID"]
    return found


def redacted(query: str) -> str:
    """Return a query with the values of parameters that are secrets replaced."""
    parameters = []
    for parameter in query.split("&"):
        name, equals, _ = parameter.partition("=")
        is_secret = equals and name.lower() in SECRETS
        parameters.append(f"{name}=REDACTED" if is_secret else parameter)
    return "&".join(parameters)


def note_status(span: Span, status: int) -> None:
    """Note the status of the response; from 500 on it is an error."""
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        span.set_attribute("error.type", str(status))
        span.set_status(Status(StatusCode.ERROR))


def note_error(span: Span, error: BaseException) -> None:
    """Note an exception that the server answers."""
    status = error.status if isinstance(error, NoResponse) else "500 Internal Server Error"
    note_status(span, int(status[:3]))
    span.set_attribute("error.type", type(error).__qualname__)
    span.record_exception(error)
