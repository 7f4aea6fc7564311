"""Forwards both logs of the core to the loggers `poorhttp.error` and `poorhttp.access`.

The core logs while it holds locks and without the GIL, so it must not call Python. It writes
messages to a datagram socket and lines of requests to a pipe, without waiting long; a thread reads
both.
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import socket
import sys
import threading
from contextlib import suppress

from poorhttp._core import Sink
from poorhttp.errors import printable
from poorhttp.plugins.log_config import configuration
from poorhttp.plugins.log_config.configuration import ERRORS, REQUESTS, ServerLogger
from poorhttp.process.threads import create
from poorhttp.process.unpatched import poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.process.threads import NativeThread

#: Size of the pipe, if the system allows it: lines of some ten thousand requests.
PIPE_SIZE = 1 << 20

#: Seconds that handlers may take for pending records when the process exits.
CLOSE_TIMEOUT = 5.0

#: Between the parts of a message; and what is missing in one that was cut off.
SEPARATOR = "\x1e"
EMPTY = ("",) * 7

#: Levels of `logging` by those of syslog.
LEVELS = {b"7": logging.DEBUG, b"6": logging.INFO, b"4": logging.WARNING, b"3": logging.ERROR}


class Relay:
    """Reads the output of the core and creates records, in a thread after `start`.

    Each process needs its own: threads do not survive a fork.
    """

    def __init__(self, worker: str) -> None:
        """Take the name of this process, for the attribute `worker` of each record."""
        self.worker = worker
        receiver, sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._messages = receiver.detach()
        self._sender = sender.detach()
        os.set_blocking(self._messages, False)
        # Sockets that gevent has patched are non-blocking.
        os.set_blocking(self._sender, True)
        self._lines: int | None = None
        self._line = b""
        self._thread: threading.Thread | NativeThread | None = None
        #: It runs only while the greenlet that logs waits.
        self._is_greenlet = False
        self._ending = False

    def sink(self) -> Sink:
        """Return the destination of the error log."""
        return Sink.records(self._sender)

    def access_sink(self) -> Sink:
        """Return the destination of the access log."""
        self._lines, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        try:
            return Sink.lines(write)
        finally:
            os.close(write)
            self._wake()

    def start(self, *, in_greenlet: bool) -> None:
        """Start the thread; `in_greenlet`: gevent, whose hub runs, makes it a greenlet."""
        if self._thread is None:
            self._is_greenlet = in_greenlet
            name = "poorhttp-logging"
            self._thread = (
                threading.Thread(target=self._run, name=name, daemon=True)
                if in_greenlet
                else create(self._run, name, daemon=True)
            )
            self._thread.start()

    def forward(self) -> None:
        """Forward pending messages unless a thread of its own does.

        A socket holds some 300 of them (`net.core.wmem_default`).
        """
        if self._thread is None or self._is_greenlet:
            self._drain_messages()

    def _wake(self) -> None:
        """Wake the thread with an empty datagram, which is no message."""
        with suppress(OSError):
            os.write(self._sender, b"")

    def reopen(self) -> None:
        """Make handlers that write to files reopen them."""
        configuration.reopen()

    def close(self) -> None:
        """Wait until all output is forwarded, at most `CLOSE_TIMEOUT` seconds."""
        if self._thread is not None:
            self._ending = True
            self._wake()
            try:
                self._thread.join(CLOSE_TIMEOUT)
            except Exception:
                # Under gevent the thread is a greenlet, for which a handler in the hub cannot wait.
                self._drain()
            if not self._thread.is_alive():
                self._thread = None

    def close_inherited(self) -> None:
        """Close the descriptors that were inherited from the parent process."""
        for fd in (self._messages, self._sender):
            os.close(fd)

    def _run(self) -> None:
        while not self._ending:
            poller = select.poll() if self._is_greenlet else poll()
            for fd in (self._messages, self._lines):
                if fd is not None:
                    poller.register(fd, select.POLLIN)
            poller.poll()
            self._drain()

    def _drain_messages(self) -> None:
        with suppress(BlockingIOError):
            while True:
                self._report(os.read(self._messages, PIPE_SIZE))

    def _drain(self) -> None:
        self._drain_messages()
        if self._lines is not None:
            with suppress(BlockingIOError):
                while data := os.read(self._lines, 1 << 16):
                    self._log(data)
                # The reactor has closed its end.
                os.close(self._lines)
                self._lines = None

    def _report(self, message: bytes) -> None:
        if message:
            parts = message[1:].decode("utf-8", "replace").split(SEPARATOR)
            source, number, request_id, trace_id, span_id, text, traceback = (*parts, *EMPTY)[:7]
            level = LEVELS.get(message[:1], logging.ERROR)
            extra: dict[str, object] = {
                "worker": self.worker,
                "request": int(number) if number else None,
                "request_id": request_id or None,
                "trace_id": trace_id or None,
                "span_id": span_id or None,
                "source": source or ERRORS.logger.name,
            }
            self._emit(ERRORS, level, text, extra, traceback)

    def _log(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            extra: dict[str, object] = {"worker": self.worker, "request": None}
            self._emit(REQUESTS, logging.INFO, line.decode("utf-8", "replace"), extra)

    def _emit(
        self,
        ours: ServerLogger,
        level: int,
        text: str,
        extra: dict[str, object],
        traceback: str = "",
    ) -> None:
        if not ours.is_enabled(level):
            return
        logger = ours.logger
        try:
            record = logger.makeRecord(logger.name, level, "", 0, text, (), None, extra=extra)
            # Formatters append it.
            record.exc_text = traceback or None
            ours.handle(record)
        except Exception as error:
            # From a filter, for example. Later records are still handled.
            text = printable(f"{logger.name}: {type(error).__name__}: {error}")
            print(f"poorhttp: {text}", file=sys.stderr)
