"""Notifies systemd of a server without a main process (`supervisor = off`)."""

from __future__ import annotations

from poorhttp.plugins.systemd.notifier import Notifier
from poorhttp.worker.plugin_hooks import WorkerHooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings
    from poorhttp.worker.service import Service
    from poorhttp.worker.stop_signals import StopSignals


class NotifyingHooks(WorkerHooks):
    """Not used in workers: the component in the main process has taken the variables."""

    _notifier: Notifier | None = None

    def opened(self, service: Service) -> None:
        """Take the variables out of the environment."""
        self._notifier = Notifier()

    def start(self, settings: Settings, signals: StopSignals) -> None:
        """Notify systemd when the server stops."""
        if self._notifier is not None:
            signals.before_stop = self._notifier.stopping

    def ready(self) -> None:
        """Notify systemd that the server is ready."""
        if self._notifier is not None:
            self._notifier.ready()

    def stop(self, settings: Settings) -> None:
        """Stop notifying."""
        if self._notifier is not None:
            self._notifier.close()


HOOKS = NotifyingHooks()
