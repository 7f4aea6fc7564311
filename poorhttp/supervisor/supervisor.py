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
from poorhttp.process import fork, signals
from poorhttp.process.exit_status import MOST, changed_children
from poorhttp.process.own_files import FOLDER, own_files
from poorhttp.process.privileges import apply_umask
from poorhttp.process.signals import SIGNALS, STOP_SIGNALS, signal
from poorhttp.process.unpatched import sleep
from poorhttp.supervisor import binary_upgrade
from poorhttp.supervisor.binary_upgrade import Takeover, Upgrade
from poorhttp.supervisor.components import Components
from poorhttp.supervisor.generations import Generations
from poorhttp.supervisor.tasks import attempt
from poorhttp.supervisor.worker_handle import ASKED
from poorhttp.worker.stop_signals import StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.registry import Entry
    from poorhttp.process.pidfile import PidFile
    from poorhttp.supervisor.component import Reloads
    from poorhttp.supervisor.hangs import Hangs
    from poorhttp.supervisor.metric import Metric
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Reads the configuration again.
ReadSettings = Callable[[], list[Settings]]

#: Seconds to wait after an unexpected error of the main process.
PAUSE = 1.0

#: Seconds between two looks at workers that end while the main thread does not return.
POLL_INTERVAL = 0.05

#: Seconds that programs get to end that components of others have left running.
LEFT_TIMEOUT = 2.0


class Supervisor:
    """Keeps workers serving on the same sockets, across crashes, reloads and upgrades.

    To components of plug-ins, it is their `Main`.
    """

    def __init__(
        self,
        services: Sequence[Settings],
        read_settings: ReadSettings | None,
        application: WSGIApplication | None,
        folder: str,
        file: str | None,
    ) -> None:
        """Open the sockets; see `launcher.run`. The command was started in `folder`."""
        self.read_settings = read_settings
        self.start_folder = folder
        self.file = file
        self.has_application = application is not None
        self.takeover: Takeover | None = binary_upgrade.takeover()
        self.upgrade: Upgrade | None = None
        #: Signals that have not been handled.
        self.pending_signals: list[int] = []
        #: Signals in place of which a component has asked for something, and the files for which.
        self._asked: list[tuple[int, str]] = []
        #: Signals that wait until the start, reload or upgrade under way has ended.
        self.deferred_signals: list[int] = []
        # `component.Main` describes these.
        self.started = self.replaced = False
        self.drain_until = 0.0
        self.stop_signal = 0
        self.successor = 0
        self.reloads: Reloads = {"succeeded": 0, "failed": 0, "last": None}
        self.exit_code = 0
        #: The loop has begun, and it has ended.
        self._loops = self._closing = False
        #: Handlers before those of this class.
        self._handlers: dict[int, Any] = {}
        #: Readable when a signal has arrived; -1 before `run`.
        self._wakeups = -1
        #: Children from before components of others were called; `None`: there are no such.
        self._inherited: set[int] | None = None
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
        self.born = (self.takeover.born if self.takeover else 0.0) or time.time()
        self.components = Components(self)
        try:
            self.components.open(services, have, self._watch_others)
            taken = self.components.listeners()
            have = [listener for listener in have if listener not in taken]
            self.generations = Generations(
                services, have, application, self.components.spawners, self.components.each
            )
            if self.takeover is not None:
                self.generations.inherit(self.takeover.memory)
        except BaseException:
            self.components.stop()
            self.components.end()
            self._restore_handlers()
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
        for fd in (wakeups, write):
            fork.keep_from_children(fd)

        def note(number: int, frame: FrameType | None) -> None:
            self.pending_signals.append(number)
            if number in STOP_SIGNALS:
                self.components.interrupt("the server stops")

        # Without a handler, the end of a child would not be written to the pipe.
        self._install(signal.SIGCHLD, self._on_child_signal)
        for number in SIGNALS:
            self._install(number, note)
        # Keep the garbage collector from writing to pages that are shared with the workers.
        gc.collect()
        gc.freeze()
        trim_memory()
        self._wakeups = wakeups

        def restore() -> str:
            changed = [signals.name(each) for each in SIGNALS if signal.getsignal(each) is not note]
            for number in SIGNALS if changed else ():
                signals.install(number, note)
            if signal.getsignal(signal.SIGCHLD) != self._on_child_signal:
                signals.install(signal.SIGCHLD, self._on_child_signal)
                changed.append("SIGCHLD")
            if signals.set_wakeup_fd(write) != write:
                changed.append("the wakeup descriptor")
            if changed:
                changed = [f"it has replaced handlers of the server: {', '.join(changed)}"]
            return "; ".join([*changed, *signals.undo_blocks(), *signals.end_timers()])

        def check_descriptors(method: str) -> None:
            if self.replaced or self._closing:
                return
            channels = [each.fileno() for pool in self.generations for each in pool.channels()]
            sockets = [each.fileno() for each in self.generations.listeners]
            if closed := fork.closed_descriptors([wakeups, write, *channels, *sockets]):
                numbers = ", ".join(map(str, closed))
                logs.write_last(f"{method} has closed descriptors of the server: {numbers}")
                self._stop_at_once(signal.SIGTERM, "the server stops, because it cannot go on")

        self.components.check_descriptors = check_descriptors
        self.components.restore, self.components.runs = restore, True
        if self.components.hangs is not None:
            self.components.hangs.wakeups = wakeups
        if self.takeover is None:
            # Otherwise the previous main process answers until the workers serve.
            self.components.each("start")
        self._loops = True
        if early.stopped_early:
            # The exception of its handler may have been lost.
            self.pending_signals.append(signal.SIGTERM)
        try:
            while not self._is_over():
                if not (self._tick() and attempt("the wait for events", self._wait, wakeups)):
                    # Something may be due that would fail again at once; signals are not late.
                    self._pause(wakeups)
            if self.upgrade is not None and self.replaced and os.getpid() == 1:
                return binary_upgrade.wait_for_successor(self.upgrade.pid, self.pending_signals)
            return self.exit_code
        finally:
            self._closing = True
            # As long as signals interrupt them.
            self.components.stop(others=True)
            self.components.end()
            self.components.runs = False
            signals.set_wakeup_fd(wakeup_fd)
            for fd in (wakeups, write):
                fork.close_own(fd)
            self.generations.close()
            self.components.stop()
            attempt("the end of programs of plug-ins", self._end_left_programs)
            if self.pidfile is not None:
                self.pidfile.remove()
            if self.read_settings is not None:
                # A signal that comes late would kill the command, which has nothing left to do.
                signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            self._restore_handlers()

    def _tick(self) -> bool:
        """Handle signals, ended children and timers; go on with a start, reload or upgrade.

        Each task runs, also if others fail. Returns whether none has failed.
        """
        # Signals first: workers that have ended by a signal to stop are not replaced.
        self._handle_signals()
        reaped = attempt("the handling of ended processes", self._reap)
        now = time.monotonic()
        done = [attempt("the care for workers", self.generations.tick, now)]
        if 0 < self.drain_until <= now and not self.stop_signal:
            done.append(attempt("the end of the drain", self._stop, signal.SIGTERM))
        # Before a start or reload is judged: a component may replace workers that have failed.
        done.append(self._tick_components(now))
        before = self.started, self.generations.serving, self.replaced
        tasks: dict[str, Callable[[], object]] = {
            "the start": self._check_start,
            "the reload": self._check_reload,
            "the upgrade": self._check_upgrade,
            "the handling of deferred signals": self._check_deferred,
        }
        done += [attempt(what, task) for what, task in tasks.items()]
        if before != (self.started, self.generations.serving, self.replaced):
            # Processes of components that have just begun are forked at once.
            done.append(self._tick_components(now))
        return all([reaped, *done])

    def _tick_components(self, now: float) -> bool:
        """Have components do what is due, and fork at once the workers for which they ask."""
        if not self.components:
            return True
        done = self.components.each("tick", now)
        return attempt("the care for workers", self.generations.tick, now) and done

    def _pause(self, wakeups: int) -> None:
        """Wait for a signal, at most for `PAUSE` seconds."""
        if not self.pending_signals:
            poller = select.poll()
            poller.register(wakeups, select.POLLIN)
            if poller.poll(PAUSE * 1000):
                os.read(wakeups, 4096)

    def _install(self, number: int, handler: Any) -> None:
        self._handlers.setdefault(number, signals.install(number, handler))

    def _restore_handlers(self) -> None:
        for number, handler in self._handlers.items():
            signals.install(number, handler)

    def _is_over(self) -> bool:
        if self.replaced and not self.stop_signal:
            return self.generations.ended and all(pool.ended for pool in self.components.pools())
        return bool(self.stop_signal) and self.generations.ended

    def _wait(self, wakeups: int) -> None:
        if self.pending_signals or self._asked or self._may_be_more or self._is_over():
            return
        poller = select.poll()
        fds = [wakeups, *self.components.filenos(), *self.generations.filenos()]
        times = [self.components.due(), self.generations.due()]
        for pool in self._pools:
            fds += [channel.fileno() for channel in pool.channels()]
            times.append(pool.due())
        if self.upgrade is not None and not self.replaced:
            fds.append(self.upgrade.fd)
        if self.drain_until and not self.stop_signal:
            times.append(self.drain_until)
        for fd in self.components.filenos_to_write():
            poller.register(fd, select.POLLOUT)
        for fd in fds:
            poller.register(fd, select.POLLIN)
        began = time.monotonic()
        rest = max(0.0, min(times) - began)
        events = poller.poll(rest * 1000 + 1 if rest < 86400 else None)
        if self.components.hangs is not None:
            self.components.on_wait(began, [fd for fd, _ in events])
        for fd, event in events:
            if fd == wakeups:
                os.read(wakeups, 4096)
            elif event & select.POLLNVAL:
                self.components.on_closed(fd)

    def _reap(self) -> None:
        """Handle the ends of children, including adopted ones."""
        handled = 0
        for pid, code, stopped_by in changed_children(self._admit):
            handled += 1
            attempt(f"the handling of process {pid}", self._on_child, pid, code, stopped_by)
        self._may_be_more = handled >= MOST
        if self.components.hangs is not None:
            # A plug-in of others may have waited for children that are not its own.
            for pid in [each for each in fork.children if not signals.is_child(each)]:
                fork.children.discard(pid)
                logs.write(
                    "error", f"a plug-in has waited for process {pid}, a child of the server"
                )
                attempt(f"the handling of process {pid}", self._on_child, pid, 1, None)

    def _on_child(self, pid: int, code: int, stopped_by: int | None) -> None:
        """Handle that a process has ended, or that a signal has stopped or continued it."""
        if stopped_by is not None:
            for pool in self._pools:
                pool.on_stopped(pid, stopped_by)
        elif self.upgrade is not None and self.upgrade.pid == pid:
            self._upgrade_failed(code)
        elif self.components.reap(pid, code) or (
            self.generations.hooks is not None and self.generations.hooks.reap(pid, code)
        ):
            return
        elif not any(pool.reap(pid, code) for pool in self._pools):
            logs.write("debug", f"process {pid}, which the server did not start, has ended")

    def _admit(self) -> None:
        """Learn the process IDs of workers that others have forked, before one can be reaped."""
        now = time.monotonic()
        for pool in self._pools:
            pool.admit(now)

    @property
    def _pools(self) -> list[WorkerPool]:
        return [*self.components.pools(), *self.generations]

    # What components may ask for and read, as `component.Main` describes it

    @property
    def changing(self) -> bool:
        return not self.started or bool(self.generations.starting) or self.upgrade is not None

    def reload(self, saved: str = "") -> None:
        self._asked.append((signal.SIGHUP, saved))

    def restart(self) -> None:
        self._asked.append((signal.SIGUSR2, ""))

    def stop(self, number: int) -> None:
        self._asked.append((number, ""))

    def drain(self) -> None:
        self.drain_until = float("inf")
        self.generations.drain()
        self.components.each("draining")

    def undrain(self) -> None:
        self.drain_until = 0.0
        self.generations.drain(on=False)

    def resize(self, step: int, pools: Sequence[WorkerPool]) -> None:
        self.generations.resize(step, pools)

    def recycle(self, worker: WorkerHandle) -> None:
        worker.recycle_reason = ASKED

    def say(self, text: str, style: str) -> None:
        if not self.components.say(text, style):
            logs.write({"bad": "error", "warning": "warning"}.get(style, "info"), text)

    def metrics(self, convert: Callable[[Any], object]) -> list[tuple[Entry, Metric, Any]]:
        return self.components.metrics(convert)

    # Plug-ins of others whose methods do not return

    def _watch_others(self) -> Hangs:
        from poorhttp.supervisor.hangs import Hangs  # takes memory

        self._inherited = fork.other_children()
        self._install(signal.SIGCHLD, self._on_child_signal)
        why = "the server stops without the main thread, which does not return"
        hangs = Hangs(
            self.components,
            self._is_stopping,
            lambda: not self._loops,
            lambda number: self._stop_at_once(number, why),
        )
        hangs.wakeups = self._wakeups
        return hangs

    def _left_programs(self) -> set[int]:
        """Return the programs that components of others have started, and that run.

        Not if this process becomes the parent of orphans: a child may be one of an application.
        """
        if self._inherited is None or self.generations.adopts or os.getpid() == 1:
            return set()
        return set(filter(signals.is_running, fork.other_children() - self._inherited))

    def _end_left_programs(self) -> None:
        """Name and end programs that components of others have left running."""
        # One that a component has asked to end needs a moment.
        if not self._wait_for_programs(LEFT_TIMEOUT / 4):
            left = self._left_programs()
            names = ", ".join(f"{pid} ({fork.program(pid)})" for pid in sorted(left))
            logs.write("error", f"plug-ins have left programs running, which are ended: {names}")
            for pid in left:
                signals.send(pid, signal.SIGTERM)
            self._wait_for_programs(LEFT_TIMEOUT)
            for pid in self._left_programs():
                signals.send(pid, signal.SIGKILL)

    def _wait_for_programs(self, timeout: float) -> bool:
        """Wait until no program of a component runs; return whether there is none."""
        until = time.monotonic() + timeout
        while left := self._left_programs():
            if time.monotonic() >= until:
                break
            sleep(POLL_INTERVAL)
        return not left

    def _on_child_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGCHLD, which `Hangs` sends too."""
        if self._is_stopping():
            self.components.interrupt("the server stops")
        elif (call := self.components.current) and call.holds_up:
            if not self._loops:
                self.components.interrupt("there would be no workers")
            elif call.refusable:
                self.components.interrupt("it would hold up the main process for ever")

    def _is_stopping(self) -> bool:
        asked = any(number in STOP_SIGNALS for number in self.pending_signals)
        return asked or self._closing or bool(self.stop_signal)

    def _stop_at_once(self, number: int, why: str) -> None:
        """Stop the workers and end this process, without the loop."""
        logs.write_last(why)
        until = time.monotonic() + self.generations.stop_timeout
        attempt("the stop", self.generations.stop, number, until)
        new = {self.upgrade.pid} if self.upgrade is not None and self.replaced else set()
        workers = {pid for pool in self.generations for pid in pool.workers}
        while any(map(signals.is_running, workers)) and time.monotonic() < until:
            sleep(POLL_INTERVAL)
        for pid in (fork.children | self._left_programs()) - new:
            signals.send(pid, signal.SIGKILL)
        if self.pidfile is not None and not self.replaced:
            attempt("the removal of the pidfile", self.pidfile.remove)
        os._exit(self.exit_code or 1)

    # Signals

    def _handle_signals(self) -> None:
        while self.pending_signals or self._asked:
            number, saved = (
                (self.pending_signals.pop(0), None) if self.pending_signals else self._asked.pop(0)
            )
            attempt(f"the handling of {signals.name(number)}", self._handle_signal, number, saved)

    def _handle_signal(self, number: int, saved: str | None) -> None:
        """Handle a signal, or what a component has asked for: `saved` is none for a signal."""
        if self.replaced and self.upgrade is not None and os.getpid() == 1:
            # A container sends signals to its first process only.
            signals.send(self.upgrade.pid, number)
        if number in STOP_SIGNALS:
            delay = self.generations.serving[0].settings.drain_delay
            ends = self.drain_until or self.stop_signal or self.replaced
            if number == signal.SIGTERM and delay and self.started and not ends:
                self._drain(number, delay)
            else:
                if self.started and not (self.stop_signal or self.replaced):
                    logs.write("info", f"the server stops ({signals.name(number)})")
                self._stop(number)
        elif number == signal.SIGUSR1:
            self.generations.reopen_logs()
            for pool in self.components.pools():
                pool.reopen_logs()
        elif self.stop_signal or self.drain_until or self.replaced:
            self._drop(number)
        elif saved is None and self.components.handles(number):
            return
        elif number == signal.SIGHUP:
            self._reload(saved or "")
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

    def _drain(self, number: int, delay: float) -> None:
        """Report that the server is not ready, and go on serving for `delay` seconds."""
        self.drain_until = time.monotonic() + delay
        logs.write("info", f"not ready any more, and the stop begins in {delay:g} s (TERM)")
        if self.generations.starting:
            self.say("the version that was being loaded is abandoned", "warning")
        self._cancel_reload()
        self.generations.drain()
        self.components.each("draining")
        self._stop_upgrade(number)

    def _stop(self, number: int) -> None:
        """Pass a signal to stop on, with a timeout; the second signal has none."""
        until = time.monotonic()
        if not self.stop_signal:
            until += self.generations.stop_timeout
        self.stop_signal = number
        until = min(until, time.monotonic() + self.components.grace(number))
        self.components.each("stopping", number)
        self.generations.stop(number, until)
        self._stop_upgrade(number)

    def _stop_upgrade(self, number: int) -> None:
        if self.upgrade is not None and not self.replaced:
            signals.send(self.upgrade.pid, number)

    def _defer(self, number: int, what: str) -> None:
        if number not in self.deferred_signals:
            logs.write("info", f"{what} has to wait for the start that is under way")
            self.deferred_signals.append(number)

    def _check_deferred(self) -> None:
        if not (self.drain_until or self.changing):
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
            urls = [url for pool in self.generations.serving for url in pool.service.urls]
            self.components.each("ready", urls)
            if self.takeover is not None:
                self.takeover.done()
                self.components.each("start")

    # Reload

    def _reload(self, saved: str = "") -> None:
        """Start the workers of a new configuration beside those that serve.

        `saved`: the files for which the development server does so.
        """
        if self.upgrade is not None or not self.started:
            self._defer(signal.SIGHUP, "a reload")
            return
        if self.generations.starting:
            self.say("the version that was being loaded is abandoned for a newer one", "warning")
        self._cancel_reload()
        self.components.each("begun", "reload")
        self.say(f"reloading: {saved}" if saved else "reloading", "info")
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
            self.components.prepare(services)
            self.generations.begin_reload(services)
        except BaseException as error:
            # Options of plug-ins may raise anything.
            self.components.cancel()
            if not isinstance(error, (Failure, OSError)):
                logs.exception("a reload failed", error)
            named = "" if isinstance(error, Exception) else f"{type(error).__name__}: "
            self._not_reloaded(f"{named}{error}")

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
            self.components.commit()
            self._end_reload("reloaded: the new version serves", succeeded=True)

    def _cancel_reload(self) -> None:
        self.generations.cancel_reload()
        self.components.cancel()

    def _not_reloaded(self, why: str) -> None:
        message = f"not reloaded; the previous version keeps serving: {why}"
        self._end_reload(message, succeeded=False)

    def _end_reload(self, message: str, *, succeeded: bool) -> None:
        self.reloads["succeeded" if succeeded else "failed"] += 1
        self.reloads["last"] = {"when": time.time(), "result": message}
        self.components.each("ended", "reload", message, succeeded=succeeded)
        self.say(message, "good" if succeeded else "bad")
        self.generations.on_reloaded(message, succeeded=succeeded)

    # Upgrade

    def _begin_upgrade(self) -> None:
        refusal = self.components.refuses_restart()
        if self.changing and not refusal:
            self._defer(signal.SIGUSR2, "a new main process")
            return
        self.components.each("begun", "restart")
        if refusal:
            self._not_upgraded(refusal, "warning")
            return
        if own_files.change == "have been removed":
            self._not_upgraded(f"the files of the server ({FOLDER}) have been removed")
            return
        logs.write("info", "a new main process is started")
        try:
            listeners = [*self.generations.listeners, *self.components.listeners()]
            memory = [*self.generations.memory(), *self.components.memory()]
            folder, environ = self.start_folder, self.components.environ()
            self.upgrade = binary_upgrade.Upgrade(listeners, memory, folder, environ, self.born)
        except OSError as error:
            self._not_upgraded(f"a new main process cannot be started: {error}")
        finally:
            self.components.each("close_memory")

    def _not_upgraded(self, message: str, level: str = "error") -> None:
        self.components.each("ended", "restart", message, succeeded=False)
        logs.write(level, message)

    def _check_upgrade(self) -> None:
        if self.upgrade is None or self.replaced or not self.upgrade.serves():
            return
        self.successor = self.upgrade.pid
        message = f"process {self.upgrade.pid} has taken over"
        logs.write("info", message)
        self.components.each("ended", "restart", message, succeeded=True)
        self.replaced = True
        self.generations.detach()
        self.components.each("detach")

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
