"""Inside Locust: records the outcome of each request, and ends the run.

The plan, JSON in the environment, says the `folder` for the reports, the number of `workers` (0:
one process) and how many `seconds` to measure once all users are there; 0 is until as many users
as workers have called `finish`, who were told to `begin` at the same moment.
"""

from __future__ import annotations

import json
import os
import time
from array import array
from pathlib import Path
from typing import Any

import gevent
import gevent.event
from locust import events
from locust.runners import MasterRunner, WorkerRunner

from loadtests.clients.load import KINDS

PLAN = json.loads(os.environ["LOADTESTS_LOCUST"])
FOLDER = Path(PLAN["folder"])
HEAD_START = 0.2
"""Seconds from the message to the beginning."""
REPORT_SECONDS = 20.0

begin: gevent.event.AsyncResult[float] = gevent.event.AsyncResult()
"""When to begin, by time.time()."""

_ends, _times, _octets, _kinds = array("d"), array("d"), array("Q"), array("B")


class State:
    """The runner of this process, its processor time when all users were there, and how many
    messages it waits for."""

    runner: Any = None
    cpu = 0.0
    waited_for = 0
    all_came = gevent.event.Event()

    @classmethod
    def ask(cls, workers: int, message: str, data: object, seconds: float | None) -> None:
        """Sends all of them a message, and waits until each has sent one."""
        cls.waited_for = workers
        cls.all_came.clear()
        cls.runner.send_message(message, data)
        cls.all_came.wait(seconds)


def _kind(exception: BaseException, response: object) -> str:
    if getattr(response, "status_code", 0):
        return "status"
    if isinstance(exception, TimeoutError) or "Timeout" in type(exception).__name__:
        return "timeout"
    return "connect" if isinstance(exception, ConnectionRefusedError) else "read"


def _keep(
    response_time: float,
    response_length: int,
    exception: BaseException | None = None,
    start_time: float | None = None,
    response: object = None,
    **_others: object,
) -> None:
    _ends.append(time.time() if start_time is None else start_time + response_time / 1000)
    _times.append(response_time)
    _octets.append(response_length or 0)
    _kinds.append(KINDS.index(_kind(exception, response)) if exception else 0)


def _write(name: str, **values: object) -> None:
    unfinished = FOLDER / f"{name}.unfinished"
    unfinished.write_text(json.dumps(values), encoding="ascii")
    unfinished.rename(FOLDER / f"{name}.json")


def _report(name: str) -> None:
    _write(
        name,
        cpu=time.process_time() - State.cpu,
        ends=list(_ends),
        times=list(_times),
        octets=list(_octets),
        kinds=list(_kinds),
    )


def finish() -> None:
    """A user has nothing more to do."""
    State.runner.send_message("finished")


def _count(**_others: object) -> None:
    State.waited_for -= 1
    if State.waited_for <= 0:
        State.all_came.set()


def _conduct() -> None:
    """The run, once all users are there."""
    cpu, begun = time.process_time(), time.time()
    workers, seconds = PLAN["workers"], PLAN["seconds"]
    if seconds:
        gevent.sleep(seconds)
    else:
        begun += HEAD_START
        State.ask(workers, "begin", {"at": begun}, None)
    ended = time.time()
    if workers:
        State.ask(workers, "report", None, REPORT_SECONDS)
    else:
        _report("0")
    _write("master", begun=begun, ended=ended, cpu=time.process_time() - cpu if workers else 0.0)
    State.runner.quit()


def _spawned(**_others: object) -> None:
    State.cpu = time.process_time()
    # A shape has its users come more than once; the first time counts.
    events.spawning_complete.remove_listener(_spawned)
    if not isinstance(State.runner, WorkerRunner):
        gevent.spawn(_conduct)


def _told_to_begin(msg: Any, **_others: object) -> None:
    begin.set(msg.data["at"])


def _told_to_report(**_others: object) -> None:
    _report(str(State.runner.worker_index))
    State.runner.send_message("reported")


def _started(runner: Any, **_others: object) -> None:
    State.runner = runner
    if isinstance(runner, MasterRunner):
        runner.register_message("finished", _count)
        runner.register_message("reported", _count)
    elif isinstance(runner, WorkerRunner):
        runner.register_message("begin", _told_to_begin)
        runner.register_message("report", _told_to_report)


events.init.add_listener(_started)
events.request.add_listener(_keep)
events.spawning_complete.add_listener(_spawned)
