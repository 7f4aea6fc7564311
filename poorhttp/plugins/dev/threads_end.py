"""Ends a worker whose application has threads that do not end."""

from __future__ import annotations

import faulthandler
import sys
from contextlib import suppress
from types import FrameType

from poorhttp.process import threads
from poorhttp.process.signals import install, signal
from poorhttp.worker.start import run_exit_functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Seconds that threads have to end: nobody waits for an old version that has answered everything.
WAIT = 1.0

#: Seconds after which a worker is ended in any case, with all stacks on standard error.
LONGEST = WAIT + 1.5


class _ThreadsRemain(BaseException):
    """Raised when threads have not ended in time."""


def wait_for_threads(code: int) -> None:
    """Wait until threads have ended for which Python's shutdown waits, or end the process.

    In that case, too, handlers of `atexit` run: they remove PID files and sockets.
    """
    # Notebooks replace standard error, and another limit holds already.
    with suppress(Exception):
        faulthandler.dump_traceback_later(LONGEST, exit=True)
    threading: Any = sys.modules.get("threading")
    has_greenlets = threads.are_replaced()
    if threading is None or (has_greenlets and threads.replaced_by() != "gevent"):
        return
    main = threading.main_thread()
    if not any(thread is not main and not thread.daemon for thread in threading.enumerate()):
        return
    remain = False

    def stop_waiting(number: int, frame: FrameType | None) -> None:
        nonlocal remain
        remain = True
        # Some versions of Python print an exception in `_shutdown`, and return.
        sys.unraisablehook = lambda _: None
        raise _ThreadsRemain

    try:
        if has_greenlets:
            # The hub handles signals, and would not raise what a handler raises in this greenlet.
            from gevent import Timeout

            Timeout.start_new(WAIT, _ThreadsRemain)
        else:
            install(signal.SIGALRM, stop_waiting)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGALRM,))
            signal.setitimer(signal.ITIMER_REAL, WAIT)
        # The threads of executors end here.
        threading._shutdown()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except _ThreadsRemain:
        remain = True
    if remain:
        run_exit_functions(code)
