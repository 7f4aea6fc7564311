"""Calls components of plug-ins in the main process; others' that keep failing are switched off.

A method of ours that raises is logged, and called again. A component of others that goes on failing
is switched off, and one whose method does not return is named and ended by `Hangs`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice

from poorhttp import logs
from poorhttp.config.registry import registry
from poorhttp.errors import ConfigError, Failure, Stopped
from poorhttp.net.listener import Listener
from poorhttp.supervisor import tasks
from poorhttp.supervisor.worker_pool import WorkerPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.config.registry import Entry
    from poorhttp.config.settings import Settings
    from poorhttp.supervisor.binary_upgrade import Memory
    from poorhttp.supervisor.component import Main
    from poorhttp.supervisor.hangs import Hangs
    from poorhttp.supervisor.metric import Metric
    from poorhttp.supervisor.spawner import Spawner
    from poorhttp.worker.service import Service

#: Seconds of a method of others that are named in the log: when it has returned, and when not.
SLOW, HANGING = 0.1, 1.0

#: Seconds after which one that does not return is interrupted, as long as there are no workers.
START_TIMEOUT = 5.0

#: Failures after which a component of others is switched off, and the seconds without one after
#: which a method that succeeds makes earlier ones forgotten.
MOST_FAILURES = 3
FORGOTTEN = 60.0

#: A component of others keeps the main process from waiting if it wakes it so often in a second, or
#: each time while it waits for less than a tenth of that second. After so many of these seconds in
#: a row, the component is switched off.
MOST_WAKES = 200
MOST_BUSY = 3

#: What a method of others may return: so many items, which may be made without an end.
MOST_ITEMS = 10_000

#: No descriptor has this number: an `int` of C ends there.
MOST_DESCRIPTORS = 1 << 31


class Interrupted(BaseException):
    """Raised in a method that does not return: the server is to stop, or to start."""


class Member:
    """A component that is used.

    Attributes:
        entry: names it.
        slow: methods of which it was logged that they are slow.
        due_at: what `due` has returned, monotonic.
        wakes: how often it has woken the main process in this second (`Components.on_wait`).
        busy: seconds in a row in which it has kept the main process from waiting.
    """

    component: Any = None  # the object, when it has been made; it may be a metric, too
    failures = 0  # how often its methods have raised
    failed_at = 0.0  # when that was last, monotonic
    is_off = False  # none of its methods is called any more

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.slow: set[str] = set()
        self.due_at = float("inf")
        self.wakes = 0
        self.busy = 0


class Call:
    """A call of code of others: its method, with the name of the plug-in.

    `refusable`: what it is for fails if it is interrupted, and the server goes on as before.
    """

    def __init__(self, method: str, *, refusable: bool = False) -> None:
        self.method = method
        self.refusable = refusable
        self.began = time.monotonic()

    @property
    def hangs(self) -> bool:
        """Whether it counts as one that does not return."""
        return time.monotonic() - self.began >= HANGING

    @property
    def holds_up(self) -> bool:
        """Whether it is to be interrupted, if there are no workers yet, or if it is `refusable`."""
        return time.monotonic() - self.began >= START_TIMEOUT


class Components:
    """The components that the settings use, in the order of the registry.

    Attributes:
        restore: undoes what a method has done to signals of the main process; returns what it was.
        check_descriptors: ends the server if a method, which it gets, has closed what is not its.
    """

    runs = False  # the handlers of signals are those of the main process
    current: Call | None = None  # of a method of others, that is under way
    hangs: Hangs | None = None  # notices methods that do not return; `None`: all are ours
    _prepares = False  # `prepare` was called, and neither `commit` nor `cancel` yet

    def __init__(self, main: Main) -> None:
        self._main = main
        self._pid = os.getpid()
        self.restore: Callable[[], str] = str
        self.check_descriptors: Callable[[str], object] = str
        self._members: list[Member] = []
        #: Those that a reload under way begins to use.
        self._fresh: list[Member] = []
        #: Metrics of others, by their names.
        self._metrics: dict[str, Member] = {}
        #: Which components wait for these descriptors, by which method.
        self._waiting: dict[int, tuple[Member, str]] = {}
        #: When the second began for which `on_wait` counts, its waits, and their seconds.
        self._second, self._waits, self._waited = time.monotonic(), 0, 0.0

    def __bool__(self) -> bool:
        return bool(self._members)

    # Their life

    def open(
        self, services: Sequence[Settings], have: Sequence[Listener], watch: Callable[[], Hangs]
    ) -> None:
        """Make the components that the settings use, and open them.

        `have` are sockets that are open already; `watch` begins to notice methods of others that do
        not return.

        Raises:
            Failure: a plug-in cannot be loaded, or the settings cannot be used.
        """
        self._watch = watch
        registry.calling = self._calling
        for entry in self._used(services):
            self._open(entry, services, have, self._members)

    def stop(self, *, others: bool = False) -> None:
        """End all, or only the components of others; cancel a reload under way."""
        self.cancel()
        for member in [*self._members, *self._fresh]:
            if member.entry.plugin or not others:
                self._call(member, "stop", None)
                member.is_off = True

    def end(self) -> None:
        """End what notices methods that do not return."""
        registry.calling = nullcontext
        if self.hangs is not None:
            self.hangs.end()

    def each(self, method: str, *arguments: object, **named: Any) -> bool:
        """Call a method of all, such as an event; return whether none of ours has failed."""
        ours = {member for member in self._members if not member.entry.plugin}
        return ours <= {member for member, _ in self._results(method, None, *arguments, **named)}

    # The loop of the main process

    def filenos(self) -> Sequence[int]:
        self._waiting.clear()
        return self._descriptors("filenos")

    def filenos_to_write(self) -> Sequence[int]:
        """Return the descriptors that are writable when `tick` is to be called; after `filenos`."""
        return self._descriptors("filenos_to_write")

    def _descriptors(self, method: str) -> list[int]:
        results = self._results(method, _fds)
        found = {fd: (member, method) for member, fds in results for fd in fds}
        self._waiting |= found
        return list(found)

    def on_closed(self, fd: int) -> None:
        """Handle that a descriptor to wait for is not open: no wait would last from now on."""
        member, method = self._waiting.get(fd, (None, ""))
        if member is not None and member.entry.plugin:
            self._on_failure(member, method, OSError(f"descriptor {fd} is not open"))

    def on_wait(self, began: float, ready: Sequence[int]) -> None:
        """Notice components of others for which the main process never waits.

        Args:
            began: when the wait for events began that has ended now, monotonic.
            ready: the descriptors that have ended it.
        """
        now = time.monotonic()
        self._waits += 1
        self._waited += now - began
        woken = {
            member: f"descriptor {fd} of `{method}` is ready"
            for fd in ready
            for member, method in [self._waiting.get(fd, (None, ""))]
            if member is not None
        }
        woken |= {
            member: "what `due` returned has passed"
            for member in self._members
            if member.due_at <= now
        }
        for member in woken:
            member.wakes += 1
        if now - self._second < 1.0:
            return
        always = self._waits if self._waited < 0.1 else MOST_WAKES
        for member in list(self._members):
            if member.wakes < min(MOST_WAKES, max(always, 3)) or not member.entry.plugin:
                member.busy = 0
            elif member in woken and not member.is_off:
                self._on_busy(member, f"{woken[member]}, each of {member.wakes} times in a second")
            member.wakes = 0
        self._second, self._waits, self._waited = now, 0, 0.0

    def _on_busy(self, member: Member, why: str) -> None:
        """Name a component of others that wakes the main process too often, or switch it off."""
        member.busy += 1
        why = f"keeps the main process from waiting: {why}"
        if member.busy == 1:
            logs.write("error", f"{member.entry} {why}")
        elif member.busy >= MOST_BUSY:
            self._switch_off(member, f"it {why}")

    def due(self) -> float:
        for member in list(self._members):
            member.due_at = self._call(member, "due", float("inf"), convert=_time)
        return min((member.due_at for member in self._members), default=float("inf"))

    def pools(self) -> list[WorkerPool]:
        return [pool for pools in self._values("pools", _list_of(WorkerPool)) for pool in pools]

    def reap(self, pid: int, code: int) -> bool:
        return any(self._values("reap", bool, pid, code))

    # A reload

    def prepare(self, services: Sequence[Settings]) -> None:
        """Have all prepare for new settings, also those that are used from now on.

        Errors as of `open`.
        """
        self._prepares = True
        known = [member.entry for member in self._members]
        for member in self._members:
            self._call(member, "prepare", None, services, fails=True)
        for entry in self._used(services):
            if entry not in known:
                self._open(entry, services, (), self._fresh)

    def commit(self) -> None:
        self._prepares = False
        self.each("commit")
        fresh, self._fresh = self._fresh, []
        self._members += fresh
        for member in fresh:
            self._call(member, "start", None)

    def cancel(self) -> None:
        if not self._prepares:
            return
        self._prepares = False
        self.each("cancel")
        fresh, self._fresh = self._fresh, []
        for member in fresh:
            self._call(member, "stop", None)

    # What the main process asks them, see `Component`

    def listeners(self) -> list[Listener]:
        return [each for some in self._values("listeners", _list_of(Listener)) for each in some]

    def memory(self) -> list[Memory]:
        return [each for some in self._values("memory", _memory) for each in some]

    def environ(self) -> dict[str, str]:
        return {name: text for some in self._values("environ", _texts) for name, text in some}

    def spawners(self, services: Sequence[Service]) -> Sequence[Spawner] | None:
        for member in [*self._members, *self._fresh]:
            found: Sequence[Spawner] | None = self._call(
                member, "spawners", None, services, fails=not member.entry.plugin
            )
            if found is not None:
                return found
        return None

    def grace(self, number: int) -> float:
        return min(self._values("grace", _time, number), default=float("inf"))

    def refuses_restart(self) -> str:
        return next(filter(None, self._values("refuses_restart", str)), "")

    def handles(self, number: int) -> bool:
        return any(self._values("handles", bool, number))

    def say(self, text: str, style: str) -> bool:
        return any(self._values("say", bool, text, style))

    def metrics(self, convert: Callable[[Any], object]) -> list[tuple[Entry, Metric, Any]]:
        """Return the metrics of plug-ins of others, with what they read, as `convert` returns it.

        `convert` may raise what the plug-in has to answer for.
        """
        found = []
        for entry in registry.entries["metrics"].values():
            member = self._metrics.setdefault(entry.name, Member(entry))
            self._watch_for(entry)
            if member.component is None and not member.is_off:
                member.component = self._call(member, "import", None, made=entry.load)
                if member.component is None:
                    self._switch_off(member, "it cannot be loaded")
            read = self._call(member, "read", None, self._main, convert=convert)
            if read is not None:
                found.append((entry, member.component, read))
        return found

    # Calls

    def interrupt(self, why: str) -> None:
        """Raise `Interrupted` in a method that does not return; only in the main thread."""
        if self.current is not None and self.current.hangs:
            raise Interrupted(why)

    @contextmanager
    def _calling(self, method: str) -> Iterator[None]:
        """Notice code of others that is no method of a component, and does not return."""
        if os.getpid() != self._pid:
            # A worker calls its hooks, too.
            yield
            return
        if self.hangs is None:
            self.hangs = self._watch()
        before, self.current = self.current, Call(method, refusable=self.runs)
        call = self.current
        try:
            yield
        finally:
            self.current = before
            if os.getpid() != self._pid:
                self._end_fork(call)
            if self._main.started:
                self._name_slow(call)
            if self.runs:
                self.check_descriptors(method)
                if changed := self.restore():
                    logs.write("error", f"{method}: {changed}")

    @staticmethod
    def _used(services: Sequence[Settings]) -> list[Entry]:
        return registry.used("components", lambda name: any(s.is_enabled(name) for s in services))

    def _open(
        self,
        entry: Entry,
        services: Sequence[Settings],
        have: Sequence[Listener],
        members: list[Member],
    ) -> None:
        self._watch_for(entry)
        member = Member(entry)
        make = lambda: entry.load()(self._main)  # noqa: E731
        member.component = self._call(member, "__init__", None, made=make)
        if member.component is None:
            # As a member, so that no reload tries again.
            self._members.append(member)
            self._switch_off(member, "it could not be made")
            return
        members.append(member)
        failed = object()
        if self._call(member, "open", failed, services, have) is failed:
            self._switch_off(member, "it could not be opened")

    def _watch_for(self, entry: Entry) -> None:
        """Begin to notice methods that do not return, if this plug-in is one of others."""
        if entry.plugin and self.hangs is None:
            self.hangs = self._watch()

    def _values(
        self, method: str, convert: Callable[[Any], Any], *arguments: object
    ) -> Iterator[Any]:
        return (found for _, found in self._results(method, convert, *arguments))

    def _results(
        self, method: str, convert: Callable[[Any], Any] | None, *arguments: object, **named: Any
    ) -> Iterator[tuple[Member, Any]]:
        """Yield each component in which a method does not fail, and what the method returns."""
        failed = object()
        for member in list(self._members):
            found = self._call(member, method, failed, *arguments, convert=convert, **named)
            if found is not failed:
                yield member, found

    def _call(
        self,
        member: Member,
        method: str,
        default: Any,
        *arguments: object,
        convert: Callable[[Any], Any] | None = None,
        fails: bool = False,
        made: Callable[[], Any] | None = None,
        **named: Any,
    ) -> Any:
        """Call a method; return `default` if it raises, which is logged, or if it is switched off.

        Args:
            convert: checks what the method returns.
            fails: any exception makes a reload or the start fail.
            made: makes the object, in place of a method.

        Raises:
            Failure: the method refuses new settings; or any other exception if it `fails`.
        """
        if member.is_off:
            return default
        before = self.current
        call = Call(f"{member.entry}: {method}") if member.entry.plugin else None
        try:
            try:
                self.current = call
                if made is not None:
                    found = made()
                else:
                    found = getattr(member.component, method)(*arguments, **named)
                if convert is not None:
                    found = convert(found)
            finally:
                self.current = before
                if call is not None and os.getpid() != self._pid:
                    self._end_fork(call)
                if call is not None and self.runs:
                    self.check_descriptors(call.method)
        except BaseException as error:
            if isinstance(error, Stopped) and (call is None or not self.runs):
                raise
            needed = fails or method in ("open", "__init__")
            if needed and (call is None or isinstance(error, Failure)):
                raise
            if call is None:
                if not isinstance(error, Exception):
                    raise
                tasks.log_failure(f"{member.entry}: {method}", error)
                return default
            self._on_failure(member, method, error)
            if fails:
                raise ConfigError(
                    f"{member.entry}: {method} failed: {type(error).__name__}: {error}"
                ) from error
            return default
        if call is not None:
            self._on_success(member, method, call)
            if self.runs and (changed := self.restore()):
                self._on_failure(member, method, RuntimeError(changed))
        return found

    @staticmethod
    def _end_fork(call: Call) -> None:
        """End a process that a method has forked, and that would go on as a main process."""
        error = sys.exc_info()[1]
        if not isinstance(error, SystemExit):
            text = f"{call.method} has forked a process that did not end itself; it is ended"
            logs.write("error", text)
        os._exit(error.code if isinstance(error, SystemExit) and type(error.code) is int else 1)

    def _on_success(self, member: Member, method: str, call: Call) -> None:
        now = time.monotonic()
        if member.failures and now - member.failed_at >= FORGOTTEN:
            member.failures = 0
        if method not in member.slow and self._name_slow(call):
            member.slow.add(method)

    @staticmethod
    def _name_slow(call: Call) -> bool:
        """Log a call that took long; return whether it did."""
        if (took := time.monotonic() - call.began) <= SLOW:
            return False
        logs.write(
            "warning",
            f"{call.method} took {took:.2f} s; the main process did nothing else meanwhile",
        )
        return True

    def _on_failure(self, member: Member, method: str, error: BaseException) -> None:
        """Name a method of others that has raised, and switch the component off if it repeats."""
        member.failures += 1
        member.failed_at = time.monotonic()
        if isinstance(error, Interrupted):
            self._switch_off(member, f"{method} was interrupted, because {error}", stops=False)
            return
        logs.exception(f"{member.entry}: {method} failed; the main process goes on", error)
        if member.failures >= MOST_FAILURES:
            self._switch_off(member, f"it has failed {member.failures} times")

    def _switch_off(self, member: Member, why: str, *, stops: bool = True) -> None:
        """Call no method of a component any more, but `stop` if it `stops`: that may hang, too."""
        if member.is_off:
            return
        member.failures = 0
        member.entry.failure = f"is switched off until the next start of the server: {why}"
        logs.write("error", f"{member.entry} {member.entry.failure}")
        if stops and hasattr(member.component, "stop"):
            # It may have processes and sockets.
            self._call(member, "stop", None)
        member.is_off = True


def _bounded(found: Iterable[Any]) -> list[Any]:
    """Return the items of what a method of others has returned."""
    items = list(islice(found, MOST_ITEMS + 1))
    if len(items) > MOST_ITEMS:
        raise ValueError(f"more than {MOST_ITEMS} items")
    return items


def _fds(found: Sequence[int]) -> list[int]:
    fds = [fd.__index__() for fd in _bounded(found)]
    for fd in fds:
        if not 0 <= fd < MOST_DESCRIPTORS:
            raise ValueError(f"no descriptor: {fd}")
    return fds


def _time(found: float) -> float:
    seconds = float(found)
    # `math` is a library of its own, which takes memory.
    if repr(seconds) == "nan":
        raise ValueError("no time: nan")
    return seconds


def _list_of(kind: type[Any]) -> Callable[[Sequence[Any]], list[Any]]:
    def check(found: Sequence[Any]) -> list[Any]:
        items = _bounded(found)
        for each in items:
            if not isinstance(each, kind):
                raise TypeError(f"no {kind.__name__}: {each!r}")
        return items

    return check


def _texts(found: Mapping[str, str]) -> list[tuple[str, str]]:
    for each in (texts := [*found.keys(), *found.values()]):
        if not isinstance(each, str) or "\0" in each:
            raise TypeError(f"no variable of the environment: {each!r} of {texts}")
    return list(found.items())


def _memory(found: Sequence[Memory]) -> list[Memory]:
    return [
        (str(kind), str(service), int(pid), int(fd)) for kind, service, pid, fd in _bounded(found)
    ]
