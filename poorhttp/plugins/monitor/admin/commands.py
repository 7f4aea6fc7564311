"""Commands of operators (`poorhttp ctl`), as the main process executes them.

A command arrives as words: its name, and `name=value` for each argument. It is answered at once, by
a status of HTTP and a message. Of one that takes long the answer names a job, whose result is asked
for later, so that nobody waits for the main process.
"""

from __future__ import annotations

import os

from poorhttp import logs
from poorhttp.config.parsers import Automatic
from poorhttp.plugins.monitor.admin.questions import to_json
from poorhttp.plugins.monitor.log_level import set_level
from poorhttp.process.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.inspection import Inspection
    from poorhttp.supervisor.component import Main
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

    #: Status of HTTP, and the members of the JSON object.
    Answer = tuple[int, dict[str, object]]

#: The arguments of each command.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "reload": (),
    "stop": ("quick",),
    "restart": ("pid",),
    "add": ("service",),
    "remove": ("service",),
    "threads": ("threads", "service"),
    "log-level": ("level",),
    "drain": ("off",),
    "stacks": ("pid",),
    "profile": ("seconds", "pid", "form"),
    "heap": ("pid",),
}

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("svg", "collapsed", "speedscope")

#: Seconds of a profile, at most.
LONGEST_PROFILE = 300

#: Jobs whose results are kept, at most; the oldest are forgotten.
MOST_JOBS = 32

#: `Main.drain_until` after `drain`: until the server is told to stop.
FOREVER = float("inf")


class Refused(Exception):
    """A command is not executed: a status of HTTP, and a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Job:
    """A command that takes long.

    Attributes:
        name: its number, with the process ID of the main process, which a restart changes.
        kind: name of the command.
        begun: the main process has begun it; before, it waits for a start under way.
        text: the answer, as `Commands.run` returns it; empty until it has ended.
    """

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self.begun = False
        self.text = ""


class Commands:
    """Executes commands, and keeps the results of jobs."""

    def __init__(self, main: Main) -> None:
        self._main = main
        #: By their names, the oldest first.
        self._jobs: dict[str, Job] = {}
        self._number = 0
        #: What looks at workers, of which there is one at a time.
        self._inspection: Inspection | None = None
        #: The command that it is for.
        self._inspected = ""

    def run(self, text: str) -> str:
        """Execute a command; return the status and a JSON object, below each other."""
        try:
            return _text(*self._run(*text.split(" ")))
        except Refused as refused:
            return _text(refused.status, {"ok": False, "message": str(refused)})

    def result(self, name: str) -> str:
        """Return the result of a job, as `run` does."""
        job = self._jobs.get(name)
        if job is None:
            why = f"process {os.getpid()} has no job of this name"
            return _text(404, {"ok": False, "message": why})
        if not job.text and self._is_stopping:
            self._end(job, "the server was told to stop", succeeded=False)
        elif not (job.text or job.begun) and self._main.drain_until:
            self._end(job, "the server was drained before", succeeded=False)
        return job.text or _text(*_under_way(job))

    def begin(self, kind: str) -> None:
        """Note that jobs of this kind have begun, which have waited until now."""
        for job in self._open(kind):
            job.begun = True

    def end(self, kind: str, message: str, *, succeeded: bool) -> None:
        """Note the end of the jobs of this kind that have begun."""
        for job in self._open(kind):
            if job.begun:
                self._end(job, message, succeeded=succeeded)

    def filenos(self) -> list[int]:
        """Return the descriptors that are readable when `tick` has to be called."""
        return [self._inspection.fd] if self._inspection is not None else []

    def due(self) -> float:
        """Return when `tick` has to be called in any case."""
        return self._inspection.deadline if self._inspection is not None else FOREVER

    def tick(self, now: float) -> None:
        """Go on with an inspection of workers."""
        if self._inspection is None or (result := self._inspection.tick(now)) is None:
            return
        self.close()
        for job in self._open(self._inspected):
            text = result.decode("utf-8", "replace")
            ok = "false" if text.startswith('{"error"') else "true"
            job.text = f'200\n{{"ok":{ok},"message":"","result":{text}}}'

    def close(self) -> None:
        """End what is under way."""
        if self._inspection is not None:
            self._inspection.close()
            self._inspection = None

    def _open(self, kind: str) -> list[Job]:
        return [job for job in self._jobs.values() if job.kind == kind and not job.text]

    def _end(self, job: Job, message: str, *, succeeded: bool) -> None:
        job.text = _text(200, {"ok": succeeded, "message": message})

    @property
    def _is_stopping(self) -> bool:
        drains = bool(self._main.drain_until) and self._main.drain_until != FOREVER
        return drains or bool(self._main.stop_signal)

    def _run(self, name: str, *words: str) -> Answer:
        if name not in ARGUMENTS:
            raise Refused(
                404, f"there is no command of this name; there are {', '.join(ARGUMENTS)}"
            )
        arguments: dict[str, str] = {}
        for word in words:
            key, _, value = word.partition("=")
            if key not in ARGUMENTS[name]:
                raise Refused(400, f"{name} has no argument {ascii(key)[1:-1]}")
            arguments[key] = value
        if name != "stop" and self._is_stopping:
            raise Refused(409, "the server was told to stop")
        answer: Answer = getattr(self, f"_{name.replace('-', '_')}")(**arguments)
        return answer

    def _start(self, kind: str) -> Answer:
        """Make a job."""
        self._number += 1
        job = Job(f"{os.getpid()}-{self._number}", kind)
        self._jobs[job.name] = job
        while len(self._jobs) > MOST_JOBS:
            del self._jobs[next(iter(self._jobs))]
        return _under_way(job)

    # The commands, each by its name

    def _reload(self) -> Answer:
        self._refuse_if_drained()
        self._main.reload()
        return self._start("reload")

    def _restart(self, pid: str = "") -> Answer:
        if pid:
            return self._recycle(pid)
        self._refuse_if_drained()
        self._main.restart()
        return self._start("restart")

    def _stop(self, quick: str = "") -> Answer:
        if quick:
            self._main.stop(signal.SIGQUIT)
        elif not self._is_stopping:
            # A second TERM would cut requests off.
            self._main.stop(signal.SIGTERM)
        _log("stop, quickly" if quick else "stop")
        return 202, {"ok": True, "message": "the server stops"}

    def _add(self, service: str = "") -> Answer:
        return self._resize(1, service)

    def _remove(self, service: str = "") -> Answer:
        return self._resize(-1, service)

    def _threads(self, threads: str = "", service: str = "") -> Answer:
        pools = self._pools(service)
        for pool in pools:
            if not isinstance(pool.settings.threads, Automatic):
                raise Refused(409, f"{pool.name}threads is fixed; set it to auto, or reload")
            least, most = (pool.settings.value(name) for name in ("min_threads", "max_threads"))
            if not (threads.isdecimal() and least <= int(threads[:9]) <= most):
                raise Refused(400, f"{pool.name}threads have to be from {least} to {most}")
        for pool in pools:
            pool.scaling["threads_by_hand"] = int(threads)
            for status in pool.statuses():
                status.want_threads(int(threads), hold=True)
            # Any message has the worker look.
            pool.ping()
        text = f"{threads} threads in each worker until the next reload"
        _log(text)
        return 200, {"ok": True, "message": text}

    def _log_level(self, level: str = "") -> Answer:
        if level not in LEVELS:
            raise Refused(400, f"level has to be one of {', '.join(LEVELS)}")
        set_level(level)
        # Above every level, so that the line is there whatever it is now.
        _log(
            f"log-level {level}, until the next reload", "error" if level == "error" else "warning"
        )
        return 200, {"ok": True, "message": f"log_level is {level} until the next reload"}

    def _drain(self, off: str = "") -> Answer:
        main = self._main
        if main.changing:
            raise Refused(409, "a start is under way; try again when it has ended")
        if off and main.drain_until:
            main.undrain()
            _log("drain --off")
        elif not off and not main.drain_until:
            main.drain()
            _log("drain: not ready any more, until drain --off or a stop")
        ready = "ready again" if off else "not ready, and goes on serving"
        return 200, {"ok": True, "message": f"the server is {ready}"}

    def _stacks(self, pid: str = "") -> Answer:
        return self._inspect("stacks", pid, {})

    def _profile(self, seconds: str = "", pid: str = "", form: str = "svg") -> Answer:
        if not (seconds.isdecimal() and 0 < int(seconds[:9]) <= LONGEST_PROFILE):
            raise Refused(400, f"seconds have to be a number from 1 to {LONGEST_PROFILE}")
        if form not in FORMATS:
            raise Refused(400, f"form has to be one of {', '.join(FORMATS)}")
        return self._inspect("profile", pid, {"seconds": int(seconds), "format": form})

    def _heap(self, pid: str = "") -> Answer:
        return self._inspect("heap", pid, {})

    # Parts of commands

    def _inspect(self, kind: str, pid: str, arguments: dict[str, object]) -> Answer:
        """Begin to look at one worker, or at all."""
        from poorhttp.plugins.monitor import inspection  # takes memory

        if self._inspection is not None:
            raise Refused(409, "workers are being inspected already; try again")
        pools = self._main.generations
        every = [(pool, worker) for pool in pools for worker in pool.workers.values()]
        targets = [self._worker(pid)] if pid else every
        try:
            self._inspection = inspection.begin(kind, targets, arguments)
        except ValueError as error:
            raise Refused(400, str(error)) from None
        except (inspection.Busy, OSError) as why:
            raise Refused(409, str(why)) from None
        self._inspected = kind
        answer = self._start(kind)
        self.begin(kind)
        return answer

    def _refuse_if_drained(self) -> None:
        if self._main.drain_until:
            raise Refused(409, "the server is drained; drain --off ends that")

    def _recycle(self, pid: str) -> Answer:
        pool, worker = self._worker(pid)
        if worker.kill_at or worker.recycle_reason:
            raise Refused(409, f"worker {worker.pid} is being replaced already")
        if pool not in self._main.generations.serving:
            raise Refused(409, f"worker {worker.pid} belongs to a version that no longer serves")
        self._main.recycle(worker)
        message = f"worker {worker.pid} is replaced as soon as its successor serves"
        return 202, {"ok": True, "message": message}

    def _worker(self, pid: str) -> tuple[WorkerPool, WorkerHandle]:
        """Return the worker of this process ID, and its pool."""
        for pool in self._main.generations:
            for worker in pool.workers.values():
                if str(worker.pid) == pid:
                    return pool, worker
        raise Refused(404, f"no worker is process {ascii(pid)[1:-1]}")

    def _pools(self, service: str) -> list[WorkerPool]:
        """Return the pool of a service, or of all."""
        pools = self._main.generations.serving
        names = [pool.settings.service for pool in pools]
        if service and service not in names:
            known = ", ".join(filter(None, names)) or "only one, without a name"
            raise Refused(404, f"there is no service of this name; there are: {known}")
        return [pool for pool in pools if service in ("", pool.settings.service)]

    def _resize(self, step: int, service: str) -> Answer:
        pools = self._pools(service)
        for pool in pools:
            if pool.settings.reuse_port:
                raise Refused(409, f"{pool.name}with reuse_port, change workers and reload")
            if pool.count + step < 1:
                raise Refused(409, f"{pool.name}the last worker stays")
        self._main.resize(step, pools)
        counts = ", ".join(f"{pool.name}{pool.count} workers" for pool in pools)
        return 200, {"ok": True, "message": counts}


def _under_way(job: Job) -> Answer:
    return 202, {"ok": True, "message": f"{job.kind} is under way", "job": job.name}


def _text(status: int, answer: dict[str, object]) -> str:
    return f"{status}\n{to_json(answer)}"


def _log(what: str, level: str = "info") -> None:
    logs.write(level, f"by an operator: {what}")
