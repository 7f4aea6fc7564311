"""The signal handlers by which the main process asks a worker about itself (`admin`)."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType

from poorhttp import logs
from poorhttp.plugins.monitor.inspection.worker.area import area
from poorhttp.plugins.native import set_thread_name
from poorhttp.process import signals as process_signals
from poorhttp.process.signals import signal
from poorhttp.worker.stop_signals import StopSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Has a worker answer the question in the area, as soon as it runs Python.
ASK_SIGNAL = signal.SIGRTMAX - 1

#: Has `faulthandler` write the stacks of all threads, while Python does not come to run.
DUMP_SIGNAL = signal.SIGRTMAX - 2


def ignore() -> None:
    """Do nothing on both in the main process, and in workers without handlers."""
    for number in (ASK_SIGNAL, DUMP_SIGNAL):
        process_signals.install_ignored(number)


def install(signals: StopSignals) -> None:
    """Install the handlers of a worker, which `signals` removes; without `admin`, none."""
    if area.answers < 0:
        return
    import faulthandler

    signals.add_handler(ASK_SIGNAL, on_question)
    faulthandler.register(DUMP_SIGNAL, area.dump, all_threads=True, chain=False)
    signals.cleanups.append(lambda: faulthandler.unregister(DUMP_SIGNAL))


def on_question(number: int, frame: FrameType | None) -> None:
    """Answer the question in the area, if it is to this process; exceptions are logged."""
    try:
        question = area.question()
        if question is not None:
            _answer(question, frame)
    except Exception as error:
        # Not BaseException: a request timeout may be raised here, and is meant for the request.
        logs.exception("the worker could not be inspected", error)


def _answer(question: dict[str, Any], frame: FrameType | None) -> None:
    kind = question["kind"]
    if kind == "stacks":
        # Here: this thread runs the application in most modes, and stands still meanwhile.
        from poorhttp.plugins.monitor.inspection.worker import stacks

        area.write_answer(question, {"stacks": stacks.collect(frame)})
    elif kind == "profile":
        from poorhttp.plugins.monitor.inspection.worker.sampler import Sampler

        _in_thread(question, Sampler(question["until"], question["interval"]).run)
    elif kind == "heap":
        from poorhttp.plugins.monitor.inspection.worker.heap import heap

        _in_thread(question, heap.collect)


def _in_thread(question: dict[str, Any], collect: Callable[[], dict[str, Any]]) -> None:
    """Collect the answer in a thread, beside which the application goes on."""
    from poorhttp.plugins.monitor.inspection.worker.stacks import unpatched

    def run() -> None:
        # As one of the server, so that a refork does not take it for another.
        set_thread_name("poorhttp-ask")
        try:
            answer = collect()
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        area.write_answer(question, answer)

    area.begin_answer(question)
    # Not by `threading`, which would count a thread of the application.
    unpatched("_thread", "start_new_thread")(run, ())
