"""Watchdog thread: notices a plug-in that does not return; reads signals to stop meanwhile.

Only for plug-ins of others: the main process has no other thread. While the method runs, the main
process does nothing, and the workers serve. After a signal to stop, the method is interrupted by an
exception that a signal handler raises in it. If that has no effect, because the method catches all
exceptions or waits in C, this thread stops the workers and ends the process. A method that holds up
the start is interrupted too, so that there are workers, and what holds up a reload and is no method
of a component, such as the parser of an option: the reload is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from poorhttp import logs
from poorhttp.process.signals import STOP_SIGNALS, signal
from poorhttp.process.unpatched import get_ident, sleep, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.components import Call, Components

#: Seconds between two looks, and how many of them an interrupted method gets.
INTERVAL = 0.25
TRIES = 8


class Hangs:
    """The thread. It holds no lock, so that the main process can fork at any time."""

    wakeups = -1  # descriptor to which the numbers of signals are written
    _ended = False
    _signal = 0  # to stop, came while a method hangs; the handler of the signal may not run

    def __init__(
        self,
        components: Components,
        is_stopping: Callable[[], bool],
        is_starting: Callable[[], bool],
        force: Callable[[int], object],
    ) -> None:
        """Start it.

        Args:
            components: have the call that is under way.
            is_stopping: tells whether the server is to stop, as far as the main thread knows.
            is_starting: tells whether there are no workers yet.
            force: stops the workers by a signal and ends this process; called in the thread.
        """
        self._components = components
        self._is_stopping = is_stopping
        self._is_starting = is_starting
        self._force = force
        self._main_thread = get_ident()
        start_new_thread(self._run, ())

    def end(self) -> None:
        """End the thread soon."""
        self._ended = True

    def _run(self) -> None:
        named: Call | None = None
        tries = 0
        while not self._ended:
            sleep(INTERVAL)
            call = self._components.current
            if call is None or not call.hangs:
                continue
            if call is not named:
                named, tries = call, 0
                self._name(call)
            self._read_signal()
            if self._signal or self._is_stopping():
                tries += 1
                if tries > TRIES:
                    self._force(self._signal or signal.SIGTERM)
            elif not (call.holds_up and (call.refusable or self._is_starting())):
                continue
            # The handler of the server does nothing else with it.
            signal.pthread_kill(self._main_thread, signal.SIGCHLD)

    def _name(self, call: Call) -> None:
        frame = sys._current_frames().get(self._main_thread)
        where = ""
        if frame is not None:
            code = frame.f_code
            where = f" (in {code.co_name}, {code.co_filename}:{frame.f_lineno})"
        logs.write(
            "error",
            f"{call.method} does not return{where}: until it does, workers serve, but none is "
            "replaced, and only a signal to stop has an effect",
        )

    def _read_signal(self) -> None:
        """Read which signals have come: a method that waits in C keeps their handlers from running.

        The main thread reads nothing meanwhile, and needs no numbers.
        """
        if self.wakeups >= 0:
            with suppress(OSError):
                for number in os.read(self.wakeups, 4096):
                    if number in STOP_SIGNALS:
                        self._signal = number
