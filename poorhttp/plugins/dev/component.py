"""The development server in the main process: reloads on save, shows requests in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp.errors import ConfigError
from poorhttp.plugins.dev.console import Console
from poorhttp.plugins.dev.options import Development, is_on
from poorhttp.process import terminal_modes
from poorhttp.process.signals import signal
from poorhttp.supervisor.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings
    from poorhttp.net.listener import Listener
    from poorhttp.plugins.dev.reload.reloader import Reloader
    from poorhttp.plugins.dev.reload.spawner import VersionSpawner
    from poorhttp.supervisor.component import Main
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool
    from poorhttp.worker.service import Service

#: Seconds after Ctrl-C until workers are killed: requests are the developer's own. Threads of the
#: application have `threads_end.WAIT` of them, and handlers of `atexit` the rest.
GRACE = 1.5


class DevServer(Component):
    """The reloader and the console, each only if an option asks for it."""

    def __init__(self, main: Main) -> None:
        super().__init__(main)
        self._reloader: Reloader | None = None
        self._console: Console | None = None
        #: Opens the browser when all workers serve.
        self._opens = False

    def open(self, services: Sequence[Settings], have: Sequence[Listener]) -> None:
        """Show requests on the terminal from now on, and be ready to watch files."""
        options = services[0].of(Development)
        # After an upgrade, the browser is open already.
        self._opens = options.open and self.main.takeover is None
        if options.autoreload != "off" and self.main.has_application:
            raise ConfigError(
                f"{services[0].origin('autoreload')}: an application that is loaded already cannot "
                "be loaded again; name it as package.module:callable"
            )
        self.prepare(services)
        # A reload does not begin to watch files.
        if options.autoreload != "off" and not self.main.started:
            from poorhttp.plugins.dev.reload.reloader import Reloader  # takes memory

            self._reloader = Reloader(self.main, uses_fork_server=options.autoreload == "on")

    def prepare(self, services: Sequence[Settings]) -> None:
        """Show requests on the terminal, with development options: before workers are forked."""
        if self._console is None and any(map(is_on, services)):
            self._console = Console()
        if self._console is not None:
            self._console.follow(services)

    def stop(self) -> None:
        """End the helper processes; show the last requests."""
        if self._reloader is not None:
            self._reloader.close()
        if self._console is not None:
            self._console.close()

    def spawners(self, services: Sequence[Service]) -> Sequence[VersionSpawner] | None:
        """Return what forks the workers of each service, with `autoreload`."""
        return self._reloader.spawners(services) if self._reloader is not None else None

    # The loop

    def filenos(self) -> Sequence[int]:
        """Return the descriptors of the terminal and of helper processes."""
        terminal = self._console.terminal if self._console is not None else None
        fds = terminal.filenos() if terminal is not None else []
        if self._reloader is not None and not self.main.stop_signal:
            fds += self._reloader.filenos()
        return fds

    def filenos_to_write(self) -> Sequence[int]:
        """Return the descriptor of the terminal, if lines wait for it."""
        terminal = self._console.terminal if self._console is not None else None
        return terminal.filenos_to_write() if terminal is not None else []

    def due(self) -> float:
        """Return when requests are to be shown, or a version loads slowly."""
        times = [float("inf")]
        if self._console is not None and self._console.terminal is not None:
            times.append(self._console.terminal.due())
        if self._reloader is not None and not self.main.stop_signal:
            is_changed = self._reloader.configuration_changed and self.main.started
            # It was saved during the start, which has ended in this round.
            times.append(0.0 if is_changed else self._reloader.due())
        return min(times)

    def tick(self, now: float) -> None:
        """Let a new version serve if the project has changed, and show requests."""
        reloader = self._reloader
        if reloader is not None and not self.main.stop_signal:
            reloader.tick(now)
            if reloader.configuration_changed and self.main.started:
                saved, reloader.configuration_changed = reloader.configuration_changed, ""
                self.main.reload(saved)
        if self._console is not None and self._console.terminal is not None:
            self._console.terminal.serve()

    def reap(self, pid: int, code: int) -> bool:
        """Handle the end of the watcher or of the fork server."""
        return self._reloader is not None and self._reloader.reap(pid, code)

    # Signals and events

    def handles(self, number: int) -> bool:
        """Stop if the terminal is gone in which the server was started."""
        reloader = self._reloader
        if number != signal.SIGHUP or reloader is None or not reloader.ends_with_terminal:
            return False
        self.main.stop(signal.SIGINT)
        return True

    def refuses_restart(self) -> str:
        """Say that the shell would see the command end, and Ctrl-C would reach no process."""
        if self._reloader is None:
            return ""
        return "with autoreload the main process cannot be replaced: stop it and start it again"

    def grace(self, number: int) -> float:
        """Return the seconds for requests: Ctrl-C does not wait for those of the developer."""
        is_waited_for = self._reloader is None or number == signal.SIGTERM
        return float("inf") if is_waited_for else GRACE

    def begun(self, kind: str) -> None:
        """Note that the configuration is about to be read, for a reload."""
        if self._reloader is not None and kind == "reload":
            self._reloader.begin_reload()

    def stopping(self, number: int) -> None:
        """End the helper processes."""
        if self._reloader is not None:
            self._reloader.stop_helpers()

    def ready(self, urls: Sequence[str]) -> None:
        """Open the browser, if an option asks for it."""
        if self._console is not None:
            self._console.show(urls, opens=self._opens)

    def worker_ended(self, pool: WorkerPool, worker: WorkerHandle, code: int) -> None:
        """Restore the terminal: the worker may have been killed at the prompt of a debugger."""
        if code != 0 and self._reloader is not None:
            terminal_modes.restore()

    def say(self, text: str, style: str) -> bool:
        """Show a message on the terminal, below the requests before it."""
        if self._console is None or self._console.terminal is None:
            return False
        self._console.terminal.say(text, style)
        return True
