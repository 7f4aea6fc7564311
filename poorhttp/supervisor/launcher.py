"""Starts the server: a main process with workers, or standalone."""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp import _core, logs
from poorhttp.config import loader
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, Failure, Stopped
from poorhttp.process import terminal_modes
from poorhttp.process.own_files import own_files
from poorhttp.process.privileges import Privileges
from poorhttp.supervisor.supervisor import ReadSettings, Supervisor
from poorhttp.worker import plugin_hooks, standalone
from poorhttp.worker.stop_signals import StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

#: Whether the kernel merges pages.
KSM = "/sys/kernel/mm/ksm/run"


def run(
    services: Sequence[Settings],
    read_settings: ReadSettings | None = None,
    application: WSGIApplication | None = None,
    file: str | None = None,
) -> int:
    """Serve until a signal to stop.

    Args:
        services: settings of each service.
        read_settings: reads them again for a reload; by default they do not change.
        file: the configuration file from which they were read.
        application: if it is loaded already; by default the targets are loaded.

    Returns:
        The exit code: 0 after a signal to stop.

    Raises:
        poorhttp.errors.Failure: an application or an address cannot be used.
    """
    settings = services[0]
    folder = loader.folder()
    loader.change_folder(settings)
    terminal_modes.save()
    try:
        with StopSignals(settings) as signals:
            logs.error_log.open(settings, Privileges(settings).owner)
            with logs.error_log.tracing_crashes():
                try:
                    if settings.merge_memory:
                        _merge_memory(settings)
                    own_files.copy(services, plugin_hooks.modules(services))
                    if not settings.supervisor:
                        return standalone.run(services, signals, application)
                    return Supervisor(services, read_settings, application, folder, file).run(
                        signals
                    )
                except Failure as failure:
                    logs.start_failure(failure)
                    raise
    except Stopped:
        return 0
    finally:
        # All processes have ended that may have read from it.
        terminal_modes.restore()


def _merge_memory(settings: Settings) -> None:
    """Have equal pages of all processes merged; log a warning if the kernel does not do it now."""
    try:
        _core.merge_memory()
    except OSError as error:
        raise ConfigError(f"{settings.origin('merge_memory')}: {error.strerror}") from None
    try:
        with open(KSM, encoding="ascii") as file:
            runs = file.read().strip() == "1"
    except OSError:
        runs = False
    if not runs:
        logs.write("warning", f"merge_memory has no effect until 1 is written to {KSM}")
