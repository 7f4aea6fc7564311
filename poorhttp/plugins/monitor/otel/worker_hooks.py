"""OpenTelemetry in workers: a trace of each request (`otel`)."""

from __future__ import annotations

from poorhttp.config.address import is_raw_tcp
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.monitor.options import Monitoring
from poorhttp.plugins.monitor.otel import sdk
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.plugins.monitor.otel.tracing import TracedAsgi


class TraceHooks(WorkerHooks):
    """Checks what `otel` needs, and traces requests unless it sends only metrics."""

    modules = ("plugins.monitor.otel",)

    def __init__(self) -> None:
        self._asgi: list[TracedAsgi] = []

    def check(self, settings: Settings) -> None:
        """Check that the SDK and its exporters are there."""
        sends = settings.of(Monitoring).otel
        if not settings.supervisor and sends in ("on", "metrics"):
            raise ConfigError(
                f"{settings.origin('supervisor')}: without a supervisor one process serves, which "
                f"is at odds with otel = {sends}: only traces are sent without one"
            )
        sdk.check(settings)

    def before_loading(self, settings: Settings) -> None:
        """Forget the ASGI applications of a former load."""
        self._asgi.clear()

    def wrap_target(
        self, application: WSGIApplication, target: str, settings: Settings
    ) -> WSGIApplication:
        """Have an ASGI application traced, from `serve` on."""
        mounted: Any = application
        if _is_traced(settings) and getattr(mounted, "is_asgi", False):
            from poorhttp.plugins.monitor.otel.tracing import TracedAsgi

            mounted.application = TracedAsgi(mounted.application, mounted.environ_of)
            self._asgi.append(mounted.application)
        return application

    def wrap(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Import the SDK: all processes that are forked from this one share its memory."""
        if _is_traced(settings):
            import poorhttp.plugins.monitor.otel.tracing  # noqa: F401
        return application

    def serve(self, application: WSGIApplication, settings: Settings) -> WSGIApplication:
        """Return the application with a span around each request."""
        if not _is_traced(settings):
            return application
        from poorhttp.plugins.monitor.otel import tracing

        traced = tracing.traced(application, has_ids=settings.request_id)
        for each in self._asgi:
            each.traced = traced if isinstance(traced, tracing.Traced) else None
        return traced


HOOKS = TraceHooks()


def _is_traced(settings: Settings) -> bool:
    """Tell whether each request becomes a trace."""
    sends = settings.of(Monitoring).otel
    return sends in ("on", "traces") and not is_raw_tcp(settings.target)
