"""Events for hooks: they wait in a queue, and are delivered one at a time in their order.

An event is delivered to the process of its service and version: the functions of `worker_exit` are
those of the configuration with which the worker was started, in the folder that it had. An event
that cannot be delivered is logged. A function that takes longer than `graceful_timeout` is killed
with its process, and the next event gets a new one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from poorhttp import logs
from poorhttp.process import signals
from poorhttp.process.exit_status import end_of
from poorhttp.supervisor.hooks.process import BEGUN, DONE, HookProcess
from poorhttp.worker.hooks.functions import place
from poorhttp.worker.service import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Events that wait at most; more are logged, and not delivered.
MOST = 1000

#: Attempts to deliver an event, if the process dies before it calls the function.
ATTEMPTS = 3

#: Seconds to wait after a process could not be forked.
PAUSE = 1.0

#: Seconds that the last events have at least after the last worker has ended, and seconds that a
#: function has at least.
LEAST = 2.0


class Event:
    """A function that is to be called, and its argument.

    Attributes:
        service: the service, in the version that the event is about.
        option: the option that names the function; `number`: which one of its functions.
        values: attributes of the argument.
    """

    attempts = 0  # how often it was sent to a process
    begun = False  # the process has called the function

    def __init__(self, service: Service, option: str, number: int, values: dict[str, Any]) -> None:
        self.service = service
        self.option = option
        self.number = number
        self.values = values

    def __str__(self) -> str:
        known = {name: value for name, value in self.values.items() if value not in ("", None)}
        about = ", ".join(f"{name} {value}" for name, value in known.items())
        return f"the hook {place(self.service.settings, self.option, self.number)} ({about})"


class HookQueue:
    """The events that wait, and the processes that call their functions."""

    _busy: HookProcess | None = None  # the first event was sent to it
    _limit_at = 0.0  # it is killed then
    _retry_at = 0.0  # when a process may be forked again
    _stop_until = 0.0  # the server was told to stop, and its workers are killed then
    ends_at = 0.0  # the last worker has ended; events not delivered by then are only logged

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._processes: dict[Service, HookProcess] = {}
        #: Processes that were told to end, or were killed.
        self._ending: list[HookProcess] = []
        #: Services whose process is to be forked, although it has no event yet.
        self._wanted: list[Service] = []

    # Events

    def server_ready(self, pools: Sequence[WorkerPool]) -> None:
        """Have the functions of `server_ready` called: the workers of these pools serve."""
        for pool in pools:
            self._start(pool.service)
        values = {
            "pid": os.getpid(),
            "urls": [url for pool in pools for url in pool.service.urls],
            "workers": sum(pool.count for pool in pools),
        }
        self._add(pools[0].service, "hook_server_ready", values)

    def reload(self, pools: Sequence[WorkerPool], message: str, *, succeeded: bool) -> None:
        """Have the functions of `reload` called: these pools serve from now on."""
        for pool in pools if succeeded else ():
            self._start(pool.service)
        values = {"succeeded": succeeded, "message": message, "pid": os.getpid()}
        self._add(pools[0].service, "hook_reload", values)

    def worker_exit(self, pool: WorkerPool, worker: WorkerHandle, code: int) -> None:
        self._add_exit(pool, _worker(pool, worker, _exit_reason(pool, worker, code)), code)

    def spawner_exit(self, pool: WorkerPool, pid: int, reason: str, code: int) -> None:
        """Have the functions of `worker_exit` called for the process that forks the workers."""
        reason = reason if code >= 0 else "killed"
        values = {"number": 0, "pid": pid, "service": pool.settings.service, "reason": reason}
        self._add_exit(pool, values, code)

    def worker_promoted(self, pool: WorkerPool, worker: WorkerHandle) -> None:
        """Have the functions of `worker_exit` called: its process forks the others now."""
        self._add(pool.service, "hook_worker_exit", _worker(pool, worker, "promoted"))

    def worker_timeout(self, pool: WorkerPool, worker: WorkerHandle) -> None:
        """Have the functions of `worker_timeout` called, once for each worker."""
        if not worker.timeout_reported:
            worker.timeout_reported = True
            self._add(pool.service, "hook_worker_timeout", _worker(pool, worker, worker.timeout))

    def _start(self, service: Service) -> None:
        """Have the process of a service ready, which loads the functions and logs mistakes."""
        if service.settings.has_hooks:
            self._wanted.append(service)

    def _add_exit(self, pool: WorkerPool, values: dict[str, Any], code: int) -> None:
        """Have the functions of `worker_exit` called for a process that has ended with a code."""
        values |= {"exit_code": code} if code >= 0 else {"signal": -code}
        self._add(pool.service, "hook_worker_exit", values)

    def _add(self, service: Service, option: str, values: dict[str, Any]) -> None:
        for number in range(len(getattr(service.settings, option))):
            event = Event(service, option, number, values)
            if len(self._events) < MOST:
                self._events.append(event)
            else:
                logs.write("error", f"{event} is not called: {MOST} events wait already")

    # The main loop

    def tick(self, now: float, services: Collection[Service], *, last: bool) -> None:
        """Deliver what waits.

        `services` have workers, or will again; `last`: no worker is left, and the server stops.
        """
        if last and not self.ends_at:
            self.ends_at = max(self._stop_until, now + LEAST)
        self._receive()
        if self._busy is not None and self._limit_at <= now:
            self._time_out()
        self._send(now)
        waiting = {event.service for event in self._events}
        for service in list(self._processes):
            if service not in waiting and (last or service not in services):
                process = self._processes.pop(service)
                process.end(self.ends_at or now + _limit(service))
                self._ending.append(process)
        for process in self._ending:
            if process.kill_at <= now:
                process.kill()
                process.kill_at = now + PAUSE
        if self.ends_at and self.ends_at <= now:
            self._give_up()

    def stop(self, until: float) -> None:
        """Prepare for the end of the server, whose workers are killed at `until`.

        A second time, when no worker is left, the events that wait are given up.
        """
        self._stop_until = until
        self.ends_at = min(self.ends_at, until)
        self._wanted.clear()

    def signal(self, number: int) -> None:
        for process in (*self._processes.values(), *self._ending):
            signals.send_if_handled(process.pid, number)

    def due(self) -> float:
        times = [process.kill_at for process in self._ending]
        if self.ends_at:
            times.append(self.ends_at)
        if self._busy is not None:
            times.append(self._limit_at)
        elif self._events or self._wanted:
            times.append(self._retry_at)
        return min(times, default=float("inf"))

    def filenos(self) -> list[int]:
        channels = (process.channel for process in self._processes.values())
        return [channel.fileno() for channel in channels if channel.is_readable]

    @property
    def ended(self) -> bool:
        return bool(self.ends_at) and not (self._events or self._processes or self._ending)

    def reap(self, pid: int, code: int) -> bool:
        for process in self._ending:
            if process.pid == pid:
                self._ending.remove(process)
                return True
        for service, process in self._processes.items():
            if process.pid == pid:
                self._receive()
                process.channel.close()
                del self._processes[service]
                self._on_death(process, code)
                return True
        return False

    def _receive(self) -> None:
        for process in self._processes.values():
            received = process.channel.receive()
            if process is self._busy:
                self._events[0].begun |= BEGUN in received
                if DONE in received:
                    self._events.pop(0)
                    self._busy = None

    def _send(self, now: float) -> None:
        """Send the first event, and fork the process that it needs."""
        if now < self._retry_at or self._busy is not None:
            return
        while self._wanted or self._events:
            event = None if self._wanted else self._events[0]
            service = self._wanted[0] if event is None else event.service
            if service not in self._processes:
                try:
                    self._processes[service] = HookProcess(service)
                except OSError as error:
                    logs.write("error", f"no process for hooks can be forked: {error.strerror}")
                    self._retry_at = now + PAUSE
                    return
            if event is not None:
                self._busy = self._processes[service]
                self._limit_at = now + _limit(service)
                event.attempts += 1
                import json  # takes memory

                line = json.dumps([event.option, event.number, event.values])
                self._busy.channel.send(f"{line}\n".encode())
                return
            self._wanted.pop(0)

    def _on_death(self, process: HookProcess, code: int) -> None:
        """Handle that a process has ended by itself, or was killed by somebody else."""
        how = end_of(code)
        if process is not self._busy:
            if code != 0:
                logs.write("error", f"the process for hooks {process.pid} {how}")
            return
        self._busy = None
        event = self._events[0]
        if event.begun or event.attempts >= ATTEMPTS:
            self._events.pop(0)
            what = "has not finished" if event.begun else "was not called"
            logs.write("error", f"{event} {what}: its process {process.pid} {how}")

    def _time_out(self) -> None:
        """Kill the process whose function takes too long."""
        process, event = self._busy, self._events.pop(0)
        assert process is not None
        self._busy = None
        logs.write("error", f"{event} takes longer than {_limit(event.service):g} s, and is killed")
        del self._processes[event.service]
        process.end(0.0)
        self._ending.append(process)

    def _give_up(self) -> None:
        """Log the events that are not delivered, because the server ends; kill the processes."""
        for event in self._events:
            what = "has not finished" if event.begun else "is not called"
            logs.write("error", f"{event} {what}: the server ends")
        for process in [*self._processes.values(), *self._ending]:
            process.kill()
            process.channel.close()
        self._events.clear()
        self._processes.clear()
        self._ending.clear()
        self._busy = None


def _limit(service: Service) -> float:
    return max(LEAST, service.settings.graceful_timeout)


def _worker(pool: WorkerPool, worker: WorkerHandle, reason: str) -> dict[str, Any]:
    """Return the attributes of a `WorkerInfo`."""
    return {
        "number": worker.index + 1,
        "pid": worker.pid,
        "service": pool.settings.service,
        "reason": reason,
        "in_flight": pool.scoreboard.in_flight(worker.slot),
    }


def _exit_reason(pool: WorkerPool, worker: WorkerHandle, code: int) -> str:
    """Return how a worker has ended, one word."""
    if worker.timeout:
        return "timeout"
    if code < 0 and (worker.serves or not pool.retiring):
        return "killed"
    if pool.retiring:
        return pool.end_reason
    if worker.kill_at:
        return "recycled" if worker.recycle_reason else "stopped"
    return "exited"
