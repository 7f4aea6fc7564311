"""Serves in the process that was started, without a main process (`supervisor = off`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from poorhttp import logs
from poorhttp._core import set_process_title
from poorhttp.config.command_line import title_words
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import ApplicationError, ConfigError
from poorhttp.logs.sink import sink_of
from poorhttp.process.privileges import apply_umask
from poorhttp.worker.service import Service
from poorhttp.worker.stop_signals import StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.process.pidfile import PidFile


def check(services: Sequence[Settings]) -> None:
    """Raise a ConfigError if an option needs a main process."""
    settings = services[0]
    sink = sink_of(settings, "access_log")
    conflicts = [
        name for name, option in OPTIONS.items() if option.needs_main and settings.is_enabled(name)
    ]
    if len(services) > 1:
        conflicts = ["several services"]
    elif settings.worker_count > 1:
        conflicts = [f"{settings.worker_count} workers"]
    elif sink is not None and sink.needs_main:
        conflicts.append(f"access_log = {settings.access_log}")
    if conflicts:
        raise ConfigError(
            f"{settings.origin('supervisor')}: without a supervisor one process serves, which "
            f"is at odds with {conflicts[0]}"
        )


def run(
    services: Sequence[Settings], signals: StopSignals, application: WSGIApplication | None
) -> int:
    """Serve in this process until a stop signal; return the exit code.

    Raises:
        poorhttp.errors.Failure: an option needs a main process, or the application or an address
            cannot be used.
    """
    settings = services[0]
    check(services)
    apply_umask(settings)
    pidfile: PidFile | None = None
    if settings.pidfile:
        from poorhttp.process.pidfile import PidFile  # takes memory

        pidfile = PidFile(settings.pidfile, settings.origin("pidfile"))
        pidfile.check()
    service = Service(settings, application)

    def call_hooks(option: str, **values: object) -> None:
        """Call the functions of an option here: there is no other process for them."""
        if not getattr(settings, option):
            return
        from poorhttp.worker.hooks import functions  # takes memory
        from poorhttp.worker.hooks.arguments import argument

        told = argument(option, {"pid": os.getpid(), **values})
        for number in range(len(getattr(settings, option))):
            try:
                functions.call_one(settings, option, number, told)
            except ApplicationError as failure:
                if option == "hook_worker_start":
                    raise
                logs.exception(str(failure.args[0]), failure.__cause__ or failure)

    def ready() -> None:
        service.announce(1)
        for each in service.hooks:
            each.ready()
        call_hooks("hook_server_ready", urls=service.urls, workers=1)

    try:
        if pidfile is not None:
            # Before privileges are dropped: later the process may not be allowed to.
            pidfile.write()
        service.privileges.drop()
        logs.begin_process(settings, "")
        if name := settings.proc_name:
            set_process_title(" ".join([f"{name}: standalone", *title_words(sys.argv[1:])]), name)
        if service.transport is not None:
            service.transport.renew_in_thread()
        service.begin(signals)
        service.load()
        worker = {"number": 1, "service": settings.service}
        call_hooks("hook_worker_start", **worker)
        service.serve(ready, signals)
        # Not in a process that dies.
        call_hooks("hook_worker_exit", **worker, reason="stopped", exit_code=0)
    finally:
        service.close()
        if pidfile is not None:
            pidfile.remove()
        logs.close()
    return 0
