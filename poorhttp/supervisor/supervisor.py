"""The main process: opens the sockets, forks workers, and handles signals.

It loads no application and serves no requests, so that no fault of an application can hit it.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType

from poorhttp import logs
from poorhttp._core import set_process_title, trim_memory
from poorhttp.config import loader
from poorhttp.config.command_line import title_words
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, Failure, printable
from poorhttp.net.systemd import Notifier
from poorhttp.plugins.dev.options import is_on
from poorhttp.plugins.monitor.admin.control import AdminControl
from poorhttp.process import fork, signals, terminal_modes
from poorhttp.process.exit_status import MOST, changed_children
from poorhttp.process.own_files import FOLDER, own_files
from poorhttp.process.privileges import apply_umask
from poorhttp.process.signals import SIGNALS, STOP_SIGNALS, signal
from poorhttp.supervisor import upgrade
from poorhttp.supervisor.generations import Generations
from poorhttp.supervisor.saturation import Saturation
from poorhttp.supervisor.tasks import attempt
from poorhttp.supervisor.upgrade import Takeover, Upgrade
from poorhttp.supervisor.watchdog import Watchdog
from poorhttp.worker import development
from poorhttp.worker.stop_signals import StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from poorhttp.plugins.dev.console import Console
    from poorhttp.plugins.dev.reload.reloader import Reloader
    from poorhttp.plugins.dev.terminal import Terminal
    from poorhttp.process.pidfile import PidFile
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Reads the configuration again.
ReadSettings = Callable[[], list[Settings]]

#: Seconds to wait after an unexpected error of the main process.
PAUSE = 1.0


class Supervisor:
    """Keeps workers serving on the same sockets, across crashes, reloads and upgrades."""

    def __init__(
        self,
        services: Sequence[Settings],
        read_settings: ReadSettings | None,
        application: WSGIApplication | None,
        folder: str,
        file: str | None,
    ) -> None:
        """Open the sockets.

        Args:
            services: see `launcher.run`, also for `read_settings`, `application` and `file`.
            folder: the folder in which the command was started.
        """
        self.read_settings = read_settings
        self.start_folder = folder
        self.takeover: Takeover | None = upgrade.takeover()
        self.notifier = Notifier()
        self.watchdog = Watchdog(self.notifier)
        self.saturation = Saturation()
        self.upgrade: Upgrade | None = None
        #: Signals that have not been handled.
        self.pending_signals: list[int] = []
        #: Signals that wait until the start, reload or upgrade under way has ended.
        self.deferred_signals: list[int] = []
        #: All workers serve, and the ready line has been printed.
        self.started = False
        #: It goes on serving until then, after TERM (`drain_delay`) or by an operator (infinite).
        self.drain_until = 0.0
        #: The signal by which the server stops; 0: it does not.
        self.stop_signal = 0
        #: A new main process has taken over.
        self.replaced = False
        self.exit_code = 0
        #: Changes of children that were left for the next time.
        self._may_be_more = False
        apply_umask(services[0])
        self.pidfile: PidFile | None = None
        if services[0].pidfile:
            from poorhttp.process.pidfile import PidFile  # takes memory

            self.pidfile = PidFile(services[0].pidfile, services[0].origin("pidfile"))
            if self.takeover is None:
                self.pidfile.check()
        have = self.takeover.listeners if self.takeover else []
        #: When the first main process began, before upgrades, in seconds since 1970.
        self.born = (self.takeover.born if self.takeover else 0.0) or time.time()
        self.admin = AdminControl(services, have, self)
        have = [listener for listener in have if listener not in self.admin.listeners]
        self.console: Console | None = None
        self._check_console(services)
        self.reloader: Reloader | None = None
        if services[0].autoreload != "off":
            self.reloader = development.server().reloader(
                uses_fork_server=services[0].autoreload == "on", file=file, say=self._say
            )
        try:
            self.generations = Generations(services, have, application, self.reloader)
            if self.takeover is not None:
                self.generations.inherit(self.takeover.memory)
            if self.reloader is not None:
                self.reloader.generations = self.generations
        except BaseException:
            self.admin.stop()
            self._close_console()
            raise

    def run(self, early: StopSignals) -> int:
        """Supervise until a signal to stop, also one noted by `early`; return the exit code."""
        logs.begin_main(self.generations.serving[0].totals.ended)
        if name := self.generations.serving[0].settings.proc_name:
            # Here, as long as there are no other threads.
            set_process_title(" ".join([f"{name}: main", *title_words(sys.argv[1:])]), name)
        wakeups, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        wakeup_fd = signals.set_wakeup_fd(write)
        # Code of the application could fill it and make it block: in the next handler of a signal.
        only_here = [wakeups, write]

        def close_after_fork() -> None:
            while only_here:
                os.close(only_here.pop())

        fork.after_fork_in_child.append(close_after_fork)

        def note(number: int, frame: FrameType | None) -> None:
            self.pending_signals.append(number)

        # Without a handler, the end of a child would not be written to the pipe.
        before = {signal.SIGCHLD: signals.install(signal.SIGCHLD, lambda number, frame: None)}
        before |= {number: signals.install(number, note) for number in SIGNALS}
        # Keep the garbage collector from writing to pages that are shared with the workers.
        gc.collect()
        gc.freeze()
        trim_memory()
        if self.takeover is None:
            # Otherwise the previous main process answers until the workers serve.
            self.admin.start()
        if early.stopped_early:
            # The exception of its handler may have been lost.
            self.pending_signals.append(signal.SIGTERM)
        try:
            while not self._is_over():
                if not (self._tick() and attempt("the wait for events", self._wait, wakeups)):
                    # Something may be due that would fail again at once; signals are not late.
                    self._pause(wakeups)
            if self.upgrade is not None and self.replaced and os.getpid() == 1:
                return upgrade.wait_for_successor(self.upgrade.pid, self.pending_signals, wakeups)
            return self.exit_code
        finally:
            signals.set_wakeup_fd(wakeup_fd)
            for number, handler in before.items():
                signals.install(number, handler)
            fork.after_fork_in_child.remove(close_after_fork)
            close_after_fork()
            self.generations.close()
            if self.reloader is not None:
                self.reloader.close()
            self.admin.stop()
            self._close_console()
            if self.pidfile is not None:
                self.pidfile.remove()
            self.notifier.close()

    def _tick(self) -> bool:
        """Handle signals, ended children and timers; go on with a start, reload or upgrade.

        Each task runs, also if others fail. Returns whether none has failed.
        """
        # Signals first: workers that have ended by a signal to stop are not replaced.
        self._handle_signals()
        reaped = attempt("the handling of ended processes", self._reap)
        now = time.monotonic()
        tasks: dict[str, Callable[[], object]] = {
            "the admin process": lambda: self.admin.tick(now),
            "the care for workers": lambda: self.generations.tick(now),
            "the end of the drain": lambda: self._check_drain(now),
            "the development server": lambda: self._check_reloader(now),
            "the start": self._check_start,
            "the reload": self._check_reload,
            "the upgrade": self._check_upgrade,
            "the handling of deferred signals": self._check_deferred,
            "the watchdog": lambda: self.watchdog.tick(self.generations.serving, now),
            "the saturation check": lambda: self.saturation.tick(self.generations.serving, now),
            "the history": lambda: self.admin.tick_history(now),
            "the readiness": self._check_readiness,
            "the terminal": self._serve_terminal,
        }
        return all([reaped, *(attempt(what, task) for what, task in tasks.items())])

    def _check_drain(self, now: float) -> None:
        if self.drain_until and self.drain_until <= now and not self.stop_signal:
            self._stop(signal.SIGTERM)

    def _check_readiness(self) -> None:
        if self.started and not (self.drain_until or self.stop_signal):
            # The start and the stop have lines of their own.
            self.admin.log_readiness()

    def _serve_terminal(self) -> None:
        if self._terminal is not None:
            self._terminal.serve()

    def _pause(self, wakeups: int) -> None:
        """Wait for a signal, at most for `PAUSE` seconds."""
        if not self.pending_signals:
            poller = select.poll()
            poller.register(wakeups, select.POLLIN)
            if poller.poll(PAUSE * 1000):
                os.read(wakeups, 4096)

    def _is_over(self) -> bool:
        if self.replaced and not self.stop_signal:
            return self.generations.ended and all(pool.ended for pool in self.admin.pools)
        return bool(self.stop_signal) and self.generations.ended

    def _wait(self, wakeups: int) -> None:
        """Wait for a signal, for a message of a child, or until something is due."""
        if self.pending_signals or self._may_be_more or self._is_over():
            return
        is_changed = self.reloader is not None and self.reloader.configuration_changed
        if is_changed and self.started and not self.stop_signal:
            # It was saved during the start, which has ended in this round.
            return
        poller = select.poll()
        fds = [wakeups, *self.admin.filenos(), *self.generations.filenos()]
        timed = (self.admin, self.watchdog, self.saturation, self.generations)
        times = [each.due() for each in timed]
        for pool in self._pools:
            fds += [channel.fileno() for channel in pool.channels()]
            times.append(pool.due())
        if self.upgrade is not None and not self.replaced:
            fds.append(self.upgrade.fd)
        if self._terminal is not None:
            self._terminal.register(poller)
            times.append(self._terminal.due())
        if self.drain_until and not self.stop_signal:
            times.append(self.drain_until)
        if self.reloader is not None and not self.stop_signal:
            fds += self.reloader.filenos()
            times.append(self.reloader.due())
        for fd in fds:
            poller.register(fd, select.POLLIN)
        rest = max(0.0, min(times) - time.monotonic())
        for fd, _ in poller.poll(rest * 1000 + 1 if rest < 86400 else None):
            if fd == wakeups:
                os.read(wakeups, 4096)

    def _reap(self) -> None:
        """Handle the ends of children, including adopted ones."""
        handled = 0
        for pid, code, stopped_by in changed_children(self._admit):
            handled += 1
            attempt(f"the handling of process {pid}", self._on_child, pid, code, stopped_by)
        self._may_be_more = handled >= MOST

    def _on_child(self, pid: int, code: int, stopped_by: int | None) -> None:
        """Handle that a process has ended, or that a signal has stopped or continued it."""
        if stopped_by is not None:
            for pool in self._pools:
                pool.on_stopped(pid, stopped_by)
        elif self.upgrade is not None and self.upgrade.pid == pid:
            self._upgrade_failed(code)
        elif any(each.reap(pid, code) for each in (self.reloader, self.generations.hooks) if each):
            return
        elif any(pool.reap(pid, code) for pool in self._pools):
            if code != 0 and self.reloader is not None:
                # It may have been killed at the prompt of a debugger.
                terminal_modes.restore()
        else:
            logs.write("debug", f"process {pid}, which the server did not start, has ended")

    def _admit(self) -> None:
        """Learn the process IDs of workers that others have forked, before one can be reaped."""
        now = time.monotonic()
        for pool in self._pools:
            pool.admit(now)

    @property
    def _pools(self) -> list[WorkerPool]:
        return [*self.admin.pools, *self.generations]

    # Signals

    def _handle_signals(self) -> None:
        while self.pending_signals:
            number = self.pending_signals.pop(0)
            attempt(f"the handling of {signals.name(number)}", self._handle_signal, number)

    def _handle_signal(self, number: int) -> None:
        if self.replaced and self.upgrade is not None and os.getpid() == 1:
            # A container sends signals to its first process only.
            signals.send(self.upgrade.pid, number)
        if number in STOP_SIGNALS:
            delay = self.generations.serving[0].settings.drain_delay
            ends = self.drain_until or self.stop_signal or self.replaced
            if number == signal.SIGTERM and delay and self.started and not ends:
                self._drain(number, delay)
            else:
                self._stop(number)
        elif number == signal.SIGUSR1:
            self._reopen_logs()
        elif self.stop_signal or self.drain_until or self.replaced:
            self._drop(number)
        elif number == signal.SIGHUP:
            if self.reloader is not None and self.reloader.ends_with_terminal:
                self._stop(signal.SIGINT)
            else:
                self._reload()
        elif number == signal.SIGUSR2:
            self._begin_upgrade()
        elif number in (signal.SIGTTIN, signal.SIGTTOU):
            self.resize(1 if number == signal.SIGTTIN else -1, self.generations.serving)

    def _drop(self, number: int) -> None:
        """Log that a signal has no effect, because the server stops or is replaced."""
        why = "another main process has taken over" if self.replaced else "the server stops"
        if not (self.replaced or self.stop_signal):
            why = "the server is drained, and stops soon"
            if self.drain_until == float("inf"):
                why = "the server is drained, until an operator undoes that"
        logs.write("warning", f"{signals.name(number)} has no effect: {why}")

    def resize(self, step: int, pools: Sequence[WorkerPool]) -> None:
        """Add `step` workers to each of these pools."""
        self.generations.resize(step, pools)
        self.notifier.status(self._status())

    def _drain(self, number: int, delay: float) -> None:
        """Report that the server is not ready, and go on serving for `delay` seconds."""
        self.drain_until = time.monotonic() + delay
        logs.write("info", f"not ready any more, and the stop begins in {delay:g} s (TERM)")
        self.notifier.stopping(f"not ready; the stop begins in {delay:g} s")
        self._abandon_reload()
        self.generations.drain()
        self._stop_upgrade(number)

    def _stop(self, number: int) -> None:
        """Pass a signal to stop on, with a timeout; the second signal has none."""
        until = time.monotonic()
        if not self.stop_signal:
            until += self.generations.stop_timeout
        self.stop_signal = number
        if self.reloader is not None and number != signal.SIGTERM:
            # Ctrl-C in development does not wait for requests of the developer.
            until = min(until, time.monotonic() + PAUSE)
        attempt("the notice to systemd", self.notifier.stopping)
        if self.reloader is not None:
            attempt("the stop of the development server", self.reloader.stop_helpers)
        self.generations.stop(number, until)
        self._stop_upgrade(number)

    def _stop_upgrade(self, number: int) -> None:
        if self.upgrade is not None and not self.replaced:
            signals.send(self.upgrade.pid, number)

    def _reopen_logs(self) -> None:
        self.generations.reopen_logs()
        for pool in self.admin.pools:
            pool.reopen_logs()

    def _defer(self, number: int, what: str) -> None:
        """Handle a signal after the start that is under way has succeeded or failed."""
        if number not in self.deferred_signals:
            logs.write("info", f"{what} has to wait for the start that is under way")
            self.deferred_signals.append(number)

    def _check_deferred(self) -> None:
        if self.drain_until or not self.started:
            return
        if self.upgrade is None and not self.generations.starting:
            self.pending_signals += self.deferred_signals
            self.deferred_signals = []

    # The start

    def _check_start(self) -> None:
        if self.started or self.stop_signal:
            return
        failed = max(self.generations.serving, key=lambda pool: pool.failed)
        if failed.failed:
            self.exit_code = failed.failed
            if self.takeover is not None:
                self.takeover.fail(f"{failed.name}{failed.cause}")
            self._stop(signal.SIGTERM)
        elif all(pool.complete for pool in self.generations.serving):
            try:
                if self.pidfile is not None:
                    write = self.pidfile.write if self.takeover is None else self.pidfile.replace
                    write()
            except ConfigError as failure:
                logs.start_failure(failure)
                print(f"poorhttp: {printable(str(failure))}", file=sys.stderr)
                self.exit_code = failure.exit_code
                self._stop(signal.SIGTERM)
                return
            self.started = True
            self.generations.on_ready()
            if self.console is not None:
                urls = [url for pool in self.generations.serving for url in pool.service.urls]
                # After an upgrade, the browser is open already.
                opens = self.generations.serving[0].settings.open and self.takeover is None
                self.console.show(urls, opens=opens)
            if self.takeover is not None:
                self.takeover.done()
                self.admin.start()
                self.admin.tick(time.monotonic())
            self.notifier.ready(self._status())

    def _status(self) -> str:
        """What `systemctl status` shows."""
        return ", ".join(f"{pool.name}{pool.count} workers" for pool in self.generations.serving)

    # Reload

    def _reload(self, saved: str = "") -> None:
        """Start the workers of a new configuration beside those that serve.

        `saved`: the files for which the development server does so.
        """
        if self.upgrade is not None or not self.started:
            self._defer(signal.SIGHUP, "a reload")
            return
        if self.generations.starting:
            self._say("the version that was being loaded is abandoned for a newer one", "warning")
        self._cancel_reload()
        self.admin.begin("reload")
        self._say(f"reloading: {saved}" if saved else "reloading", "info")
        self.notifier.reloading()
        try:
            if change := own_files.change:
                raise ConfigError(
                    f"the files of the server ({FOLDER}) {change} since it was started; restart it"
                )
            # If this fails, workers of the present configuration change to their own folder.
            loader.return_to(self.start_folder)
            serving = [pool.settings for pool in self.generations.serving]
            services = self.read_settings() if self.read_settings else serving
            if not services[0].supervisor:
                raise ConfigError("supervisor = off needs a restart, not a reload")
            loader.change_folder(services[0])
            self._check_console(services)
            self.admin.prepare(services)
            self.generations.begin_reload(services)
        except Exception as error:
            self.admin.cancel()
            if not isinstance(error, (Failure, OSError)):
                logs.exception("a reload failed", error)
            self._not_reloaded(str(error))

    def _check_reload(self) -> None:
        starting = self.generations.starting
        if not starting or self.stop_signal:
            return
        if failed := next((pool for pool in starting if pool.failed), None):
            self._cancel_reload()
            self._not_reloaded(f"{failed.name}{failed.cause}")
        elif all(pool.complete for pool in starting):
            self.generations.end_reload()
            logs.adopt_settings(starting[0].settings, starting[0].service.privileges.owner)
            self.admin.replace()
            self._end_reload("reloaded: the new version serves", succeeded=True)
            self.notifier.ready(self._status())

    def _abandon_reload(self) -> None:
        """Stop the version that is being loaded, because the server is to stop."""
        if self.generations.starting:
            self._say("the version that was being loaded is abandoned", "warning")
        self._cancel_reload()

    def _cancel_reload(self) -> None:
        self.generations.cancel_reload()
        self.admin.cancel()

    def _not_reloaded(self, why: str) -> None:
        message = f"not reloaded; the previous version keeps serving: {why}"
        self._end_reload(message, succeeded=False)
        self.notifier.ready(f"{self._status()}; {message}")

    def _end_reload(self, message: str, *, succeeded: bool) -> None:
        self.admin.end("reload", message, succeeded=succeeded)
        self._say(message, "good" if succeeded else "bad")
        self.generations.on_reloaded(message, succeeded=succeeded)

    def _say(self, text: str, style: str) -> None:
        """Print on the terminal of a developer, or else log."""
        if self._terminal is not None:
            self._terminal.say(text, style)
        else:
            logs.write({"bad": "error", "warning": "warning"}.get(style, "info"), text)

    @property
    def _terminal(self) -> Terminal | None:
        return self.console.terminal if self.console is not None else None

    def _check_console(self, services: Sequence[Settings]) -> None:
        """Show requests on the terminal, with development options: before workers are forked."""
        if self.console is None and any(is_on(settings) for settings in services):
            self.console = development.server().console()
        if self.console is not None:
            self.console.follow(services)

    def _close_console(self) -> None:
        if self.console is not None:
            self.console.close()

    def _check_reloader(self, now: float) -> None:
        """Let a new version serve if the project has changed."""
        reloader = self.reloader
        if reloader is None or self.stop_signal:
            return
        reloader.tick(now)
        if reloader.configuration_changed and self.started:
            saved, reloader.configuration_changed = reloader.configuration_changed, ""
            self._reload(saved)
        # Fork its workers at once.
        self.generations.tick(now)

    # Upgrade

    def _begin_upgrade(self) -> None:
        """Start a new main process beside this one."""
        if self.reloader is None and (
            self.upgrade is not None or self.generations.starting or not self.started
        ):
            self._defer(signal.SIGUSR2, "a new main process")
            return
        self.admin.begin("restart")
        if self.reloader is not None:
            # The shell would see the command end, and Ctrl-C would reach no process.
            why = "with autoreload the main process cannot be replaced: stop it and start it again"
            self._not_upgraded(why, "warning")
            return
        if own_files.change == "have been removed":
            self._not_upgraded(f"the files of the server ({FOLDER}) have been removed")
            return
        logs.write("info", "a new main process is started")
        try:
            listeners = [*self.generations.listeners, *self.admin.listeners]
            memory = [*self.generations.memory(), *self.admin.memory()]
            folder, environ = self.start_folder, self.notifier.environ
            self.upgrade = upgrade.Upgrade(listeners, memory, folder, environ, self.born)
        except OSError as error:
            self._not_upgraded(f"a new main process cannot be started: {error}")
        finally:
            self.admin.close_memory()

    def _not_upgraded(self, message: str, level: str = "error") -> None:
        self.admin.end("restart", message, succeeded=False)
        logs.write(level, message)

    def _check_upgrade(self) -> None:
        if self.upgrade is None or self.replaced or not self.upgrade.serves():
            return
        logs.write("info", f"process {self.upgrade.pid} has taken over")
        self.admin.end("restart", f"process {self.upgrade.pid} has taken over", succeeded=True)
        self.replaced = True
        self.notifier.main_pid(self.upgrade.pid)
        self.generations.detach()
        self.admin.detach()

    def _upgrade_failed(self, code: int) -> None:
        assert self.upgrade is not None
        # It may have reported why, just before.
        self.upgrade.serves()
        why = f": {self.upgrade.reason}" if self.upgrade.reason else ""
        self.upgrade.close()
        self.upgrade = None
        if not (self.stop_signal or self.drain_until or self.replaced):
            self._not_upgraded(
                f"the new main process ended with {code}; this one keeps serving{why}"
            )
