"""Process that inspects workers, and sends the result to the main process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence

from poorhttp import logs
from poorhttp._core import set_process_title
from poorhttp.net.listener import close_others
from poorhttp.plugins.monitor.inspection import TIMEOUT, flame_graph, speedscope
from poorhttp.plugins.monitor.inspection.fault_dump import Dumps
from poorhttp.plugins.monitor.inspection.py_spy import PySpy
from poorhttp.plugins.monitor.inspection.signalling import Target, ask, wait
from poorhttp.plugins.monitor.inspection.stack_lists import (
    attach_requests,
    collapsed,
    keep_requests,
    why_silent,
)
from poorhttp.plugins.monitor.inspection.worker.area import area
from poorhttp.process.fork import set_parent_death_signal
from poorhttp.process.signals import SIGNALS, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Seconds for an answer of a worker whose Python runs: the interpreter may be very busy.
ANSWER = 1.0

#: The same for its objects, of which there may be millions.
HEAP_ANSWER = 30.0

#: Seconds between two samples of a profile, and between two by `faulthandler`.
INTERVAL = 0.01
DUMP_INTERVAL = 0.1


def run(
    kind: str,
    targets: Sequence[tuple[WorkerPool, WorkerHandle]],
    seconds: float,
    form: str,
    to: int,
) -> None:
    """Write the result to the pipe `to`; the process ends when this returns."""
    parent = os.getppid()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(seconds + TIMEOUT) + 1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    set_parent_death_signal(parent)
    # Otherwise an address could not be opened again as long as this takes.
    close_others(())
    logs.error_log.opened.set_label("inspection")
    if name := targets[0][0].settings.proc_name:
        set_process_title(f"{name}: inspection", "inspection")
    workers = [Target(pool, worker) for pool, worker in targets]
    result: dict[str, Any]
    try:
        if kind == "stacks":
            result = {"workers": stacks(workers)}
        elif kind == "heap":
            result = {"workers": heap(workers)}
        else:
            result = profile(workers, seconds, form)
    except (OSError, ValueError) as error:
        result = {"error": str(error)}
    except Exception as error:
        logs.exception(f"{kind}: the workers could not be inspected", error)
        result = {"error": "the inspection has failed: the error log says why"}
    area.clear()
    os.set_blocking(to, True)
    rest = memoryview(json.dumps(result).encode())
    while rest:
        rest = rest[os.write(to, rest) :]
    # The end of this function is the end of the process, with code 1.
    os._exit(0)


def stacks(workers: list[Target]) -> list[dict[str, Any]]:
    """Return the stacks of all threads, greenlets and tasks, with their requests."""
    question = ask("stacks", workers)
    answers = wait(question, workers, ANSWER)
    results = []
    py_spy = PySpy()
    for worker in workers:
        answer = answers.get(worker.pid)
        note = ""
        if answer is not None and "stacks" in answer:
            how, found, note = "python", *_stacks(answer["stacks"])
        else:
            how, found, note = _from_outside(worker, py_spy)
            if answer is not None:
                note = f"it has failed to answer: {answer.get('error')}"
        results.append(
            {
                **worker.names(),
                "how": how,
                "note": note,
                "stacks": found,
                "requests": attach_requests(worker, found),
            }
        )
    return results


def _stacks(answer: Any) -> tuple[list[dict[str, Any]], str]:
    """Return the stacks of a worker's answer, which code of the application may have written."""
    try:
        return [_stack(each) for each in answer], ""
    except (TypeError, ValueError, KeyError, OverflowError):
        return [], "its answer cannot be read"


def _stack(each: dict[str, Any]) -> dict[str, Any]:
    """Return a stack of a worker's answer, with its frames named."""
    frames = [
        {"file": str(file), "line": int(line), "function": str(function)}
        for file, line, function in each["frames"]
    ]
    return {
        "name": str(each["name"]),
        "kind": each["kind"] if each["kind"] in ("greenlet", "task") else "thread",
        "thread": int(each["thread"]),
        "idle": bool(each["idle"]),
        "request": {"number": int(each["request"])} if each["request"] else None,
        "frames": frames,
    }


def _from_outside(worker: Target, py_spy: PySpy) -> tuple[str, list[dict[str, Any]], str]:
    """Return how stacks were taken of a worker that does not answer, the stacks, and a note."""
    why = why_silent(worker)
    found = py_spy.dump(worker.pid)
    if found:
        holds = next((each["name"] for each in found if each.pop("holds", False)), "")
        if holds:
            why += f"; thread {holds} holds the interpreter, so no other can run"
        return "py-spy", found, why
    dumped = Dumps().stacks(worker)
    why = f"{why} ({py_spy.problem})"
    return ("faulthandler" if dumped else ""), dumped, why


def heap(workers: list[Target]) -> list[dict[str, Any]]:
    """Return what has grown in each worker."""
    question = ask("heap", workers)
    answers = wait(question, workers, ANSWER, HEAP_ANSWER)
    results = []
    for worker in workers:
        answer = answers.get(worker.pid) or {}
        note = ""
        if "rows" not in answer:
            note = str(answer.get("error") or why_silent(worker))
        elif answer.get("how") == "gc":
            note = (
                "containers by type, without text and numbers: tracemalloc = 1 (or "
                "PYTHONTRACEMALLOC=1) tells the lines that allocate"
            )
        results.append(
            {
                **worker.names(),
                "how": answer.get("how", ""),
                "note": note,
                "since": answer.get("since"),
                "rss": worker.rss(),
                "pss": worker.pss(),
                "rows": answer.get("rows", []),
            }
        )
    return results


def profile(workers: list[Target], seconds: float, form: str) -> dict[str, Any]:
    """Return a profile of all the workers together."""
    begin = time.monotonic()
    question = ask("profile", workers, until=begin + seconds, interval=INTERVAL)
    begun = wait(question, workers, min(ANSWER, seconds / 2), begins=True)
    silent = [worker for worker in workers if worker.pid not in begun]
    # Both go on beside each other.
    py_spy, dumps = PySpy(), Dumps()
    rest = max(0.1, begin + seconds - time.monotonic())
    recordings = {worker.pid: py_spy.record(worker.pid, rest) for worker in silent}
    by_dumps = [worker for worker in silent if recordings[worker.pid] is None]
    while by_dumps and time.monotonic() < begin + seconds:
        for worker in by_dumps:
            dumps.sample(worker, DUMP_INTERVAL * 1000)
        time.sleep(DUMP_INTERVAL)
    time.sleep(max(0.0, begin + seconds - time.monotonic()))
    answers = wait(question, workers, ANSWER, HEAP_ANSWER)
    total: dict[str, int] = {}
    samples, notes = 0, []
    for worker in workers:
        found: dict[str, int] = {}
        recording = recordings.get(worker.pid)
        if recording is not None:
            found = keep_requests(py_spy.recorded(recording))
            notes.append(f"worker {worker.pid}: by py-spy, as {why_silent(worker)}")
        elif worker.pid in dumps.sampled:
            found = keep_requests(dumps.sampled[worker.pid])
            notes.append(
                f"worker {worker.pid}: by faulthandler, as {why_silent(worker)} ({py_spy.problem})"
            )
        elif (answer := answers.get(worker.pid)) is not None and "stacks" in answer:
            try:
                found = {str(stack): int(took) for stack, took in answer["stacks"].items()}
                samples += int(answer["samples"])
            except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
                notes.append(f"worker {worker.pid}: its answer cannot be read")
        else:
            notes.append(f"worker {worker.pid}: {why_silent(worker)} ({py_spy.problem})")
        for stack, took in found.items():
            total[stack] = total.get(stack, 0) + took
    py_spy.close()
    title = f"{seconds:g} s of {', '.join(f'worker {worker.name}' for worker in workers)}"
    text, kind = collapsed(total), "text/plain; charset=utf-8"
    if form == "svg":
        text, kind = flame_graph.svg(total, title), "image/svg+xml"
    elif form == "speedscope":
        text, kind = speedscope.text(total, title), "application/json"
    return {
        "format": form,
        "content_type": kind,
        "text": text,
        "seconds": seconds,
        "samples": samples,
        "workers": [worker.pid for worker in workers],
        "notes": notes,
    }
