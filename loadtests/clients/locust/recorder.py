"""Inside Locust: records the outcome of each request, and ends the run.

The plan, JSON in the environment, says the `folder` for the reports, the number of `workers` (0:
one process), how many of the processes have `askers`, users, and how many `seconds` to measure once
all users are there and each of these processes has had its first answer; 0 seconds is until as many
users as workers have called `finish`, who were told to `begin` at the same moment.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from array import array
from pathlib import Path
from typing import Any

import gevent
import gevent.event
import gevent.queue
from locust import events
from locust.runners import MasterRunner, WorkerRunner

from loadtests.clients.load import KINDS
from loadtests.measure.waiting import patience

PLAN = json.loads(os.environ["LOADTESTS_LOCUST"])
FOLDER = Path(PLAN["folder"])
HEAD_START = 0.2
"""Seconds from the message to the beginning."""
REPORT_SECONDS = patience(20.0)
FIRST_SECONDS = patience(5.0)
"""For the first answers: users may do something else first, or ask for nothing at all."""

begin: gevent.event.AsyncResult[float] = gevent.event.AsyncResult()
"""When to begin, by time.time()."""
_answers: gevent.queue.Queue[None] = gevent.queue.Queue()
_first_answers: gevent.queue.Queue[None] = gevent.queue.Queue()

_ends, _times, _octets, _kinds = array("d"), array("d"), array("Q"), array("B")


class State:
    """The runner of this process, and its processor time when all users were there."""

    runner: Any = None
    cpu = 0.0


def _ask(message: str, data: object, seconds: float | None) -> None:
    """Sends all workers a message, and waits until each has sent one."""
    State.runner.send_message(message, data)
    _await(_answers, PLAN["workers"], seconds)


def _await(answers: gevent.queue.Queue[None], number: int, seconds: float | None) -> None:
    with contextlib.suppress(gevent.Timeout), gevent.Timeout(seconds):
        for _ in range(number):
            answers.get()


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
    if not _ends and PLAN["seconds"]:
        # A process that is starved for a while is not measured before it asks.
        State.cpu = time.process_time()
        if isinstance(State.runner, WorkerRunner):
            State.runner.send_message("asked")
        else:
            _first_answers.put(None)
    _ends.append(time.time() if start_time is None else start_time + response_time / 1000)
    _times.append(response_time)
    _octets.append(response_length or 0)
    _kinds.append(KINDS.index(_kind(exception, response)) if exception else 0)


def _write(name: str, **values: object) -> None:
    unfinished = FOLDER / f"{name}.unfinished"
    unfinished.write_text(json.dumps(values), encoding="ascii")
    unfinished.rename(FOLDER / f"{name}.json")


def _report(name: str) -> None:
    cpu = time.process_time() - State.cpu
    ends, times, octets, kinds = list(_ends), list(_times), list(_octets), list(_kinds)
    _write(name, cpu=cpu, ends=ends, times=times, octets=octets, kinds=kinds)


def finish() -> None:
    """A user has nothing more to do."""
    State.runner.send_message("finished")


def _conduct() -> None:
    """The run, once all users are there."""
    if PLAN["seconds"]:
        _await(_first_answers, PLAN["askers"], FIRST_SECONDS)
    cpu, begun = time.process_time(), time.time()
    if PLAN["seconds"]:
        gevent.sleep(PLAN["seconds"])
    else:
        begun += HEAD_START
        _ask("begin", {"at": begun}, None)
    ended = time.time()
    if PLAN["workers"]:
        _ask("report", None, REPORT_SECONDS)
    else:
        _report("0")
    cpu = time.process_time() - cpu if PLAN["workers"] else 0.0
    _write("master", begun=begun, ended=ended, cpu=cpu)
    State.runner.quit()


def _spawned(**_others: object) -> None:
    State.cpu = time.process_time()
    # A shape has its users come more than once; the first time counts.
    events.spawning_complete.remove_listener(_spawned)
    if not isinstance(State.runner, WorkerRunner):
        gevent.spawn(_conduct)


def _told_to_report(**_others: object) -> None:
    _report(str(State.runner.worker_index))
    State.runner.send_message("reported")


def _started(runner: Any, **_others: object) -> None:
    State.runner = runner
    if isinstance(runner, MasterRunner):
        for message in ("finished", "reported"):
            runner.register_message(message, lambda **_others: _answers.put(None))
        runner.register_message("asked", lambda **_others: _first_answers.put(None))
    elif isinstance(runner, WorkerRunner):
        runner.register_message("begin", lambda msg, **_others: begin.set(msg.data["at"]))
        runner.register_message("report", _told_to_report)


events.init.add_listener(_started)
events.request.add_listener(_keep)
events.spawning_complete.add_listener(_spawned)
