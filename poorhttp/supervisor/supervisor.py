"""The main process: opens the sockets, has workers serve, and acts on signals.

It loads no application and serves nobody, so it has nothing to lose.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import time

from poorhttp import logs
from poorhttp.config import loader
from poorhttp.config.options.development import is_on
from poorhttp.errors import ConfigError, Failure
from poorhttp.net.systemd import Notifier
from poorhttp.process.exit_status import changed_children
from poorhttp.process.pidfile import PidFile
from poorhttp.process.privileges import apply_umask
from poorhttp.process.signals import SIGNALS, STOP_SIGNALS, signal
from poorhttp.supervisor import upgrade
from poorhttp.supervisor.admin.control import AdminControl
from poorhttp.supervisor.generations import Generations
from poorhttp.supervisor.saturation import Saturation
from poorhttp.supervisor.watchdog import Watchdog
from poorhttp.worker import development
from poorhttp.worker.stop_signals import StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings
    from poorhttp.dev.console import Console
    from poorhttp.dev.reload.reloader import Reloader
    from poorhttp.supervisor.upgrade import Takeover, Upgrade

    #: Reads the configuration again.
    Again = Callable[[], list[Settings]]


#: Seconds to wait after a fault of our own.
PAUSE = 1.0


class Supervisor:
    """Forks workers over the same sockets, and replaces them when they die or are outdated."""

    def __init__(
        self,
        services: Sequence[Settings],
        again: Again | None,
        application: WSGIApplication | None,
        folder: str,
        file: str | None,
    ) -> None:
        """Open the sockets.

        Args:
            services: see `run`, as for `again` and `application`.
            folder: where we were started.
            file: see `run`.
        """
        self.again = again
        self.folder = folder
        self.takeover: Takeover | None = upgrade.takeover()
        self.notifier = Notifier()
        self.watchdog = Watchdog(self.notifier)
        self.saturation = Saturation()
        self.upgrade: Upgrade | None = None
        #: Signals that have not been acted upon.
        self.signals: list[int] = []
        #: Those that have to wait until nothing else is under way.
        self.deferred: list[int] = []
        #: The ready line has been printed.
        self.announced = False
        #: Told to stop by TERM, we go on serving until then (`drain_delay`); 0: we were not told.
        self.draining = 0.0
        #: The signal by which we stop.
        self.stopping = 0
        #: A new main process has taken over.
        self.replaced = False
        #: What to end with.
        self.code = 0
        apply_umask(services[0])
        self.pidfile = PidFile.of(services[0])
        if self.pidfile is not None and self.takeover is None:
            self.pidfile.check()
        have = self.takeover.listeners if self.takeover else []
        self.admin = AdminControl(services, have, self._why_not_ready, self.watchdog)
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
            if self.reloader is not None:
                self.reloader.generations = self.generations
        except BaseException:
            self.admin.close()
            self._close_console()
            raise

    # Life

    def run(self, early: StopSignals) -> int:
        """Supervise until told to stop, `early` included; return the exit code."""
        logs.error_log.opened.set_label("main")
        wakeups, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        wakeup_fd = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        # By default nothing would be written for the end of a child.
        before = {signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda number, frame: None)}
        before |= {number: signal.signal(number, self._note) for number in SIGNALS}
        # What exists by now is shared with the workers; the collector shall not write to it.
        gc.collect()
        gc.freeze()
        if self.takeover is None:
            # Otherwise our predecessor tells, until we serve.
            self.admin.begin(self.generations)
        if early.stopped_early:
            # What was raised then may have been lost.
            self.signals.append(signal.SIGTERM)
        try:
            while not self._is_over():
                try:
                    self._tick()
                    self._wait(wakeups)
                except Exception as error:
                    # Descriptors may have run out, or memory. Whoever watches over others goes on.
                    logs.exception("the main process could not do what was due, and goes on", error)
                    time.sleep(PAUSE)
            if self.upgrade is not None and self.replaced and os.getpid() == 1:
                return upgrade.accompany(self.upgrade.pid, self.signals, wakeups)
            return self.code
        finally:
            signal.set_wakeup_fd(wakeup_fd)
            for number, handler in before.items():
                signal.signal(number, handler)
            for fd in (wakeups, write):
                os.close(fd)
            self.generations.close()
            if self.reloader is not None:
                self.reloader.close()
            self.admin.end()
            self._close_console()
            if self.pidfile is not None:
                self.pidfile.remove()
            self.notifier.close()

    def _tick(self) -> None:
        """Do what is due."""
        # First what we are told: who dies after that is not replaced.
        self._act_on_signals()
        self._reap()
        now = time.monotonic()
        self.admin.tick(now)
        self.generations.tick(now)
        if self.draining and self.draining <= now and not self.stopping:
            self._stop(signal.SIGTERM)
        if self.reloader is not None and not self.stopping:
            self._check_reloader(self.reloader, now)
        self._check_start()
        self._check_reload()
        self._check_upgrade()
        self._check_deferred()
        self.watchdog.look(self.generations.serving, now)
        self.saturation.look(self.generations.serving, now)
        if self.announced and not (self.draining or self.stopping):
            # The start and the stop have lines of their own.
            self.admin.log_readiness()
        if self.console is not None:
            self.console.serve()

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Be told something by a signal; it is acted upon when its turn comes."""
        self.signals.append(number)

    def _is_over(self) -> bool:
        if self.replaced and not self.stopping and self.admin.is_heard:
            return False
        return bool(self.stopping or self.replaced) and self.generations.over

    def _wait(self, wakeups: int) -> None:
        """Wait for a signal, for a word from a child, or until something is due."""
        if self.signals or self._is_over():
            return
        poller = select.poll()
        poller.register(wakeups, select.POLLIN)
        for pool in self.generations:
            for channel in pool.channels():
                poller.register(channel.fileno(), select.POLLIN)
        if self.upgrade is not None and not self.replaced:
            poller.register(self.upgrade.fd, select.POLLIN)
        for fd in self.admin.filenos():
            poller.register(fd, select.POLLIN)
        timed = (self.generations, self.watchdog, self.saturation, self.admin)
        due = min(each.due() for each in timed)
        if self.console is not None:
            self.console.register(poller)
            due = min(due, self.console.due())
        if self.draining and not self.stopping:
            due = min(due, self.draining)
        if self.reloader is not None and not self.stopping:
            for fd in self.reloader.filenos():
                poller.register(fd, select.POLLIN)
            due = min(due, self.reloader.due())
        rest = max(0.0, due - time.monotonic())
        for fd, _ in poller.poll(rest * 1000 + 1 if rest < 86400 else None):
            if fd == wakeups:
                os.read(wakeups, 4096)

    def _reap(self) -> None:
        """See to children that have died, also to those that we have adopted."""
        for pid, code, stopped_by in changed_children():
            if stopped_by is not None:
                self.generations.on_stopped(pid, stopped_by)
                self.admin.on_stopped(pid, stopped_by)
            elif self.upgrade is not None and self.upgrade.pid == pid:
                self._upgrade_failed(code)
            elif not any(each.reap(pid, code) for each in self._parents):
                logs.write("debug", f"process {pid}, which was none of ours, has ended")

    @property
    def _parents(self) -> Iterator[Reloader | AdminControl | Generations]:
        """Those who have children."""
        return (each for each in (self.reloader, self.admin, self.generations) if each is not None)

    # Signals

    def _act_on_signals(self) -> None:
        while self.signals:
            number = self.signals.pop(0)
            if self.replaced and self.upgrade is not None and os.getpid() == 1:
                # Who has started a container knows no other process.
                os.kill(self.upgrade.pid, number)
            if number in STOP_SIGNALS:
                if number == signal.SIGTERM and self._may_drain:
                    self._drain(number)
                else:
                    self._stop(number)
            elif number == signal.SIGUSR1:
                self._reopen_logs()
            elif self.stopping or self.draining or self.replaced:
                continue
            elif number == signal.SIGHUP:
                if self.reloader is not None and self.reloader.is_terminal_closed:
                    self._stop(signal.SIGINT)
                else:
                    self._reload()
            elif number == signal.SIGUSR2:
                self._begin_upgrade()
            elif number in (signal.SIGTTIN, signal.SIGTTOU):
                self.generations.resize(1 if number == signal.SIGTTIN else -1)
                self.notifier.status(self._status())

    @property
    def _drain_delay(self) -> float:
        return self.generations.serving[0].settings.drain_delay

    @property
    def _may_drain(self) -> bool:
        """Whether a wish to stop is the first, and somebody may be on the way to us."""
        told = self.draining or self.stopping
        return bool(self._drain_delay and self.announced) and not (told or self.replaced)

    def _drain(self, number: int) -> None:
        """Say everywhere that nobody new should come, and go on serving for some time."""
        self.draining = time.monotonic() + self._drain_delay
        delay = f"{self._drain_delay:g} s"
        logs.write("info", f"not ready any more, and the stop begins in {delay} (TERM)")
        self.notifier.stopping(f"not ready; the stop begins in {delay}")
        self._drop_reload()
        self.generations.drain()
        self._stop_upgrade(number)

    def _stop(self, number: int) -> None:
        """Pass the wish to stop on, with a timeout; the second time without."""
        until = time.monotonic()
        if not self.stopping:
            until += self.generations.stop_timeout
        self.stopping = number
        self.notifier.stopping()
        if self.reloader is not None:
            self.reloader.stop_helpers()
            if number != signal.SIGTERM:
                # Who presses Ctrl-C does not wait for what he has written himself.
                until = min(until, time.monotonic() + PAUSE)
        self.generations.stop(number, until)
        self._stop_upgrade(number)

    def _stop_upgrade(self, number: int) -> None:
        if self.upgrade is not None and not self.replaced:
            os.kill(self.upgrade.pid, number)

    def _reopen_logs(self) -> None:
        """Go on in new files. Ours first: then they are there, and belong to the workers' user."""
        for pool in self.generations:
            logs.reopen(pool.settings, None, pool.service.privileges.owner)
        for pool in self.generations:
            pool.signal(signal.SIGUSR1)
        self.admin.signal(signal.SIGUSR1)

    def _defer(self, number: int, what: str) -> None:
        """Keep a signal until the start that is under way has succeeded or failed."""
        if number not in self.deferred:
            logs.write("info", f"{what} has to wait for the start that is under way")
            self.deferred.append(number)

    def _check_deferred(self) -> None:
        if self.draining or not self.announced:
            return
        if self.upgrade is None and not self.generations.starting:
            self.signals += self.deferred
            self.deferred = []

    # The start

    def _check_start(self) -> None:
        if self.announced or self.stopping:
            return
        failed = max(pool.failed for pool in self.generations.serving)
        if failed:
            self.code = failed
            self._stop(signal.SIGTERM)
        elif all(pool.complete for pool in self.generations.serving):
            try:
                self._write_pidfile()
            except ConfigError as failure:
                logs.start_failure(failure)
                print(f"poorhttp: {failure}", file=sys.stderr)
                self.code = failure.exit_code
                self._stop(signal.SIGTERM)
                return
            self.announced = True
            for pool in self.generations.serving:
                pool.service.serving = True
                pool.service.announce(pool.count)
            if self.console is not None:
                urls = [url for pool in self.generations.serving for url in pool.service.urls]
                # A successor is not somebody new.
                opens = self.generations.serving[0].settings.open and self.takeover is None
                self.console.show(urls, opens=opens)
            if self.takeover is not None:
                self.takeover.done()
                self.admin.begin(self.generations)
            self.notifier.ready(self._status())

    def _write_pidfile(self) -> None:
        if self.pidfile is not None:
            if self.takeover is not None:
                self.pidfile.replace()
            else:
                self.pidfile.write()

    def _status(self) -> str:
        """What `systemctl status` shows."""
        return ", ".join(f"{pool.name}{pool.count} workers" for pool in self.generations.serving)

    # Reload

    def _reload(self) -> None:
        """Have the new version begin beside the old one."""
        if self.upgrade is not None or not self.announced:
            self._defer(signal.SIGHUP, "a reload")
            return
        self._drop_reload()
        self._say("reloading", "info")
        self.notifier.reloading()
        try:
            # Wherever this ends, workers of the present version go to their own folder.
            loader.return_to(self.folder)
            serving = [pool.settings for pool in self.generations.serving]
            services = self.again() if self.again else serving
            if not services[0].supervisor:
                raise ConfigError("supervisor = off needs a new start")
            loader.change_folder(services[0])
            self._check_console(services)
            self.admin.prepare(services)
            self.generations.begin_reload(services)
        except Exception as error:
            self.admin.drop()
            if not isinstance(error, (Failure, OSError)):
                logs.exception("a reload failed", error)
            self._not_reloaded(str(error))

    def _check_reload(self) -> None:
        starting = self.generations.starting
        if not starting or self.stopping:
            return
        if any(pool.failed for pool in starting):
            self._drop_reload()
            self._not_reloaded("the new one has failed")
        elif all(pool.complete for pool in starting):
            self.generations.end_reload()
            logs.adopt_settings(starting[0].settings, starting[0].service.privileges.owner)
            self.admin.replace(self.generations)
            self._say("reloaded: the new version serves", "good")
            self.notifier.ready(self._status())

    def _drop_reload(self) -> None:
        self.generations.drop_reload()
        self.admin.drop()

    def _not_reloaded(self, why: str) -> None:
        message = f"not reloaded, the previous version goes on: {why}"
        self._say(message, "bad")
        self.notifier.ready(f"{self._status()}; {message}")

    # The person at the terminal

    def _say(self, text: str, style: str) -> None:
        """Tell the person who works on what is served."""
        if self.console is None or not self.console.say(text, style):
            logs.write({"bad": "error", "warning": "warning"}.get(style, "info"), text)

    def _check_console(self, services: Sequence[Settings]) -> None:
        """Have what workers serve shown to a person: before they are forked."""
        if self.console is None and any(is_on(settings) for settings in services):
            self.console = development.server().console()
        if self.console is not None:
            self.console.follow(services)

    def _close_console(self) -> None:
        if self.console is not None:
            self.console.close()

    def _why_not_ready(self) -> str:
        """Say why `/-/ready` of `admin` is 503; nothing if it is 200."""
        if self.draining or self.stopping:
            return "the server was told to stop"
        if not self.announced:
            return "the server is starting"
        if self.replaced:
            # Others serve: whoever still asks here means the server.
            return ""
        now = time.monotonic()
        silent = next((pool for pool in self.generations.serving if not pool.answering(now)), None)
        return f"{silent.name}no worker answers" if silent is not None else ""

    # Versions

    def _check_reloader(self, reloader: Reloader, now: float) -> None:
        """Have a new version serve if the project has changed."""
        reloader.tick(now)
        if reloader.configuration_changed and self.announced:
            reloader.configuration_changed = False
            self._reload()
        # Its workers begin at once.
        self.generations.tick(now)

    # Upgrade

    def _begin_upgrade(self) -> None:
        """Start a new main process beside this one."""
        if self.reloader is not None:
            # The terminal would be told that we have ended, and Ctrl-C would reach nobody.
            logs.write("warning", "with autoreload there is no new main process: start it again")
            return
        if self.upgrade is not None or self.generations.starting or not self.announced:
            self._defer(signal.SIGUSR2, "a new main process")
            return
        logs.write("info", "a new main process is started")
        try:
            listeners = [*self.generations.listeners, *self.admin.listeners]
            self.upgrade = upgrade.Upgrade(listeners, self.folder, self.notifier.environ)
        except OSError as error:
            logs.write("error", f"a new main process cannot be started: {error}")

    def _check_upgrade(self) -> None:
        if self.upgrade is None or self.replaced or not self.upgrade.serves():
            return
        logs.write("info", f"process {self.upgrade.pid} has taken over")
        self.replaced = True
        self.notifier.main_pid(self.upgrade.pid)
        self.generations.detach()
        self.admin.detach()

    def _upgrade_failed(self, code: int) -> None:
        assert self.upgrade is not None
        self.upgrade.close()
        self.upgrade = None
        if not (self.stopping or self.draining or self.replaced):
            logs.write("error", f"the new main process ended with {code}; this one goes on")
