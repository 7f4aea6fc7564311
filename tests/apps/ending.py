"""An application with work at the end of its process, logged as lines in `$ENDING`.

Each is a word and the process that has written it. A request is a word too, `request`, that is held
back by a buffering logging handler, and a span of OpenTelemetry, `span`, if $SPANS is set.
"""

from __future__ import annotations

import atexit
import logging
import logging.handlers
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import IO

from tests.apps.basics import Environ, Pieces, StartResponse

#: Long enough that nothing is exported but at the end.
NEVER = 3_600_000


def note(word: str, times: int = 1) -> None:
    """Write a line, so often, in one piece."""
    line = f"{word} {os.getpid()}\n".encode()
    fd = os.open(os.environ["ENDING"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line * times)
    os.close(fd)


class Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


logger = logging.getLogger("ending")
logger.setLevel(logging.INFO)
logger.addHandler(
    logging.handlers.MemoryHandler(100_000, flushLevel=logging.CRITICAL, target=Handler())
)


def tracing() -> Callable[[], AbstractContextManager[object]]:
    """What begins a span, which is noted when it is exported."""
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Exporter(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            note("span", len(spans))
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(
        BatchSpanProcessor(Exporter(), max_queue_size=10_000, schedule_delay_millis=NEVER)
    )
    return partial(provider.get_tracer("ending").start_as_current_span, "request")


#: Its library takes longer to be imported than all the rest.
span = tracing() if "SPANS" in os.environ else nullcontext
atexit.register(note, "atexit")
if "HANGS" in os.environ:
    atexit.register(time.sleep, NEVER)

ends = threading.Event()
#: Runs when threads are about to be joined.
threading._register_atexit(ends.set)  # type: ignore[attr-defined]
begun: dict[int, tuple[ThreadPoolExecutor, IO[str]]] = {}


def begin() -> None:
    """Leave something to be done that takes a thread, and something in a buffer."""
    pool = ThreadPoolExecutor(1)
    pool.submit(wait)
    # Nobody closes it.
    file = open(os.environ["ENDING"], "a")  # noqa: SIM115
    file.write(f"buffer {os.getpid()}\n")
    begun[os.getpid()] = pool, file


def wait() -> None:
    """Be a thread that ends late."""
    ends.wait()
    note("thread")


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer with the process; what stands for `/fork/exit` is done by a fork."""
    path = environ["PATH_INFO"]
    if path.startswith("/fork/"):
        pid = os.fork()
        if pid == 0:
            fork(path.rpartition("/")[2])
        os.waitpid(pid, 0)
    elif path == "/multiprocessing":
        import multiprocessing

        child = multiprocessing.get_context("fork").Process(target=note, args=("child",))
        child.start()
        child.join()
    elif path == "/leave":
        os.kill(os.getpid(), signal.SIGTERM)
    if os.getpid() not in begun:
        begin()
    with span():
        logger.info("request")
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]


def fork(how: str) -> None:
    """End a process that a request has forked."""
    note("child")
    if how == "exit":
        sys.exit()
    elif how == "raise":
        raise ValueError("in a fork")
