"""Builds the status document (`model.py`), with how many requests a worker of each mode can run."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator

from poorhttp.config.parsers import Automatic
from poorhttp.config.resources import usable_cpus
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.config.version import VERSION
from poorhttp.plugins.monitor.accept_queue import accept_queues
from poorhttp.plugins.monitor.admin.figures import figures, statuses
from poorhttp.plugins.monitor.admin.finished import finished
from poorhttp.plugins.monitor.admin.model import no_figures
from poorhttp.plugins.monitor.answers import answering, answers, full
from poorhttp.plugins.monitor.metrics.samples import samples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.net.listener import Listener
    from poorhttp.plugins.monitor.admin.model import Service, Status, Value, Worker
    from poorhttp.plugins.monitor.component import Monitor
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Modes in which a worker runs one request at a time.
ONE_AT_A_TIME = ("single", "forking")

#: Options that are shown even if they are not set.
ALWAYS_SHOWN = ("target", "bind", "mode", "workers", "threads")

#: Seconds after which the PSS of a worker is read again: the kernel walks all its pages for that.
PSS_INTERVAL = 10.0

#: Seconds for reading the PSS of workers, for one document.
PSS_TIME = 0.01


class StatusDocument:
    """Builds the document; knows what is too expensive to be read each time."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        #: When the PSS of a worker was read, and bytes, by process ID.
        self._pss: dict[int, tuple[float, int]] = {}
        self._cpus = usable_cpus()

    def build(self, now: float) -> Status:
        """Return the document; `now` is the time of the monotonic clock."""
        main = self._monitor.main
        generations = main.generations
        why_not = self._monitor.why_not_ready()
        self._read_pss((worker for pool in generations for worker in pool.workers.values()), now)
        return {
            "version": VERSION,
            "python": sys.version.partition(" ")[0],
            "pid": os.getpid(),
            "started": main.born,
            "now": time.time(),
            "ready": not why_not,
            "why_not_ready": why_not,
            "cpus": self._cpus,
            "host_name": os.uname().nodename,
            "services": [self._service(pool, now) for pool in generations.serving],
            "reloads": self._monitor.reloads,
            "log_lines_lost": sum(
                status.lines_lost()
                for service in generations.totals
                for status in statuses(generations, service)
            ),
            "metrics": [
                {
                    "name": entry.name,
                    "kind": metric.kind,
                    "description": metric.description,
                    "samples": read,
                }
                for entry, metric, read in main.metrics(samples)
            ],
            "configuration": list(_configuration([pool.settings for pool in generations.serving])),
        }

    def _service(self, serving: WorkerPool, now: float) -> Service:
        settings, totals = serving.settings, serving.totals
        generations = self._monitor.main.generations
        pools = [pool for pool in generations if pool.settings.service == settings.service]
        slowest, errors, refusals = finished(statuses(generations, settings.service))
        transport = serving.service.transport
        expiries = transport.expiries() if transport is not None else ()
        history = self._monitor.history
        present = figures(generations, settings.service)
        is_full = any(pool.is_full(each) for pool in pools for each in pool.workers.values())
        return {
            "name": settings.service,
            "mode": settings.mode,
            "urls": [listener.url for listener in serving.service.listeners],
            "target": settings.target,
            "threads": settings.threads,
            "threads_follow_load": isinstance(settings.threads, Automatic),
            "workers_follow_load": isinstance(settings.workers, Automatic),
            "scaling": serving.scaling,
            "wanted": serving.count,
            "alive": serving.serving,
            "answering": answering(serving, now),
            "full": full(serving, now),
            "capacity": capacity(serving),
            "figures": present,
            "workers": [
                self._worker(pool, worker, now)
                for pool in pools
                for worker in sorted(pool.workers.values(), key=lambda worker: worker.index)
            ],
            "accept_queues": accept_queues(serving.service.listeners),
            "unread": _unread(serving.service.listeners) if is_full else 0,
            "restarts": totals.restarts,
            "reforks": totals.reforks,
            "slowest": slowest,
            "errors": errors,
            "refusals": refusals,
            "certificates": [{"file": file, "expires": end} for file, end in expiries],
            "history": history.slots(settings.service, present, totals.restarts["died"])
            if history is not None
            else [],
        }

    def _worker(self, pool: WorkerPool, worker: WorkerHandle, now: float) -> Worker:
        status = pool.scoreboard.status(worker.slot)
        found = status.figures() if status is not None else no_figures()
        cpu, rss = worker.usage()
        return {
            "pid": worker.pid,
            "index": worker.index,
            "state": state(worker),
            "age": now - worker.started,
            "answers": answers(worker, now),
            "full": pool.is_full(worker),
            "requests": found["requests"],
            "connections": sum(found["connections"].values()),
            "in_flight": found["in_flight"],
            "cpu": cpu,
            "rss": rss,
            "pss": self._pss.get(worker.pid, (0.0, 0))[1],
            "working_on": status.requests() if status is not None else [],
            "figures": found,
        }

    def _read_pss(self, workers: Iterable[WorkerHandle], now: float) -> None:
        """Read the PSS of workers for which that is due, the oldest first, within `PSS_TIME`."""
        known = {worker.pid: worker for worker in workers}
        self._pss = {pid: self._pss.get(pid, (float("-inf"), 0)) for pid in known}
        until = time.monotonic() + PSS_TIME
        for pid, (read, _) in sorted(self._pss.items(), key=lambda item: item[1][0]):
            if now - read < PSS_INTERVAL or time.monotonic() > until:
                return
            self._pss[pid] = now, known[pid].pss()


def capacity(pool: WorkerPool) -> int | None:
    """Return how many requests the workers can run at the same time; `None`: unlimited."""
    mode = pool.settings.mode
    if mode in ONE_AT_A_TIME:
        return pool.count
    if mode != "threading":
        return None
    threads = pool.settings.threads
    if isinstance(threads, Automatic):
        threads = int(pool.scaling.get("threads_by_hand") or pool.settings.value("max_threads"))
    return pool.count * threads


def state(worker: WorkerHandle) -> str:
    """Return one of `model.WORKER_STATES`."""
    if worker.kill_stopped_at:
        return "stopped"
    if worker.kill_at:
        return "retiring"
    if not worker.serves:
        return "starting"
    return "broken" if worker.broken else "serving"


def _unread(listeners: Iterable[Listener]) -> int:
    from poorhttp.plugins.monitor.unread import unread  # takes memory

    return unread(listeners)


def _configuration(services: list[Settings]) -> Iterator[Value]:
    """Yield the options that are set; those that are alike in all services once.

    Behind them, those of virtual hosts that differ from their service.
    """
    for name in OPTIONS:
        shown = [each for each in services if name in ALWAYS_SHOWN or each.is_set(name)]
        values = [_value(each, name) for each in shown]
        if len(values) == len(services) and all(value == values[0] for value in values):
            yield {"service": "", "option": name, "value": values[0][0], "origin": values[0][1]}
            continue
        for each, (value, origin) in zip(shown, values, strict=True):
            yield {"service": each.service, "option": name, "value": value, "origin": origin}
    for each in services:
        for host, hosted in each.hosts.items():
            for name in OPTIONS:
                if (found := _value(hosted, name)) != _value(each, name):
                    of = f"{each.service} host {host}".strip()
                    yield {"service": of, "option": name, "value": found[0], "origin": found[1]}


def _value(settings: Settings, name: str) -> tuple[str, str]:
    """Return the text of an option, and where it was set."""
    if not settings.is_set(name):
        return ", ".join(OPTIONS[name].default_texts), "default"
    texts = settings.written(name)
    if OPTIONS[name].secret:
        texts = [_masked(text) for text in texts]
    return ", ".join(texts), settings.origin(name)


def _masked(text: str) -> str:
    name, equals, _ = text.partition("=")
    return f"{name}=***" if equals else name
