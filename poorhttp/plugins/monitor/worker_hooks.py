"""Monitoring in workers: they answer questions about themselves, and measure requests."""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.monitor.options import Monitoring
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.net.listener import Listener
    from poorhttp.worker.plugin_hooks import IsOurs
    from poorhttp.worker.service import Service
    from poorhttp.worker.stop_signals import StopSignals


class MonitoringHooks(WorkerHooks):
    """What the options of monitoring ask of each service and its workers."""

    modules = (
        *("plugins.monitor.accept_queue", "plugins.monitor.admin", "plugins.monitor.derived"),
        *("plugins.monitor.inspection", "plugins.monitor.metrics", "plugins.monitor.page"),
    )

    def complete(self, services: Sequence[Settings]) -> None:
        """Check that `admin` has an address of its own."""
        admin = services[0].of(Monitoring).admin
        if admin and any(admin in settings.bind for settings in services) and admin.port != 0:
            raise ConfigError(
                f"{services[0].origin('admin')}: {admin} is where the server listens (bind); give "
                "admin an address of its own"
            )

    def try_open(self, services: Sequence[Settings], is_ours: IsOurs) -> Sequence[Listener]:
        """Open the address `admin`, and read the token."""
        if services[0].of(Monitoring).admin is None:
            return ()
        from poorhttp.plugins.monitor.admin import endpoint

        return endpoint.check(services[0], is_ours)

    def opened(self, service: Service) -> None:
        """Have workers measure requests, if somebody sees that."""
        options = service.settings.of(Monitoring)
        if options.admin is not None or options.sends_metrics:
            service.takes_times = True

    def start(self, settings: Settings, signals: StopSignals) -> None:
        """Have the worker answer questions, with `admin`."""
        if settings.of(Monitoring).admin is not None:
            from poorhttp.plugins.monitor.inspection.worker import handler

            handler.install(signals)

    def before_loading(self, settings: Settings) -> None:
        """Trace what allocates memory, with `tracemalloc`."""
        if frames := settings.of(Monitoring).tracemalloc:
            import _tracemalloc

            _tracemalloc.start(frames)


HOOKS = MonitoringHooks()
