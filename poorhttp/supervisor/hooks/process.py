"""A process that calls the functions of hooks: as the main process sees it, and its loop.

The main process loads no code of the application, so it forks this one, with the user, folder and
path of the workers. An event is a line of JSON over the control channel; the process answers with
`BEGUN` when the function is about to be called, and `DONE` when it has returned or failed. It ends
when the main process closes the channel.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from poorhttp import logs
from poorhttp.config.options.hooks import IN_OWN_PROCESS
from poorhttp.errors import ApplicationError, Stopped
from poorhttp.net.listener import close_others
from poorhttp.process import signals
from poorhttp.process.c_socket import socket
from poorhttp.process.signals import STOP_SIGNALS, signal
from poorhttp.worker import start
from poorhttp.worker.hooks import functions
from poorhttp.worker.hooks.arguments import argument
from poorhttp.worker.service import Service
from poorhttp.worker.stop_signals import StopSignals

BEGUN = b"b"
DONE = b"d"


class HookProcess:
    """The process, as the main process sees it.

    Attributes:
        pid: process ID.
        channel: the control channel.
        kill_at: when it is killed, because it was told to end; 0: it was not.
    """

    def __init__(self, service: Service) -> None:
        """Fork it; an OSError if that fails."""
        self.kill_at = 0.0
        run = lambda fd, signals: _run(service, fd, signals)  # noqa: E731
        self.pid, self.channel = start.fork_child(run, "hooks", service)

    def end(self, kill_at: float) -> None:
        """Have it end when it has called what was sent to it; it is killed at `kill_at`."""
        self.channel.close()
        self.kill_at = kill_at

    def kill(self) -> None:
        signals.send(self.pid, signal.SIGKILL)


def _run(service: Service, channel_fd: int, signals: StopSignals) -> None:
    """Call functions until the main process closes the channel."""
    for stop_signal in STOP_SIGNALS:
        # A terminal, or systemd, sends them to all processes; the last events come after that.
        signals.add_handler(stop_signal, lambda number, frame: None)
    # A socket listens as long as any process has it open.
    close_others(())
    settings, own = service.settings, os.getpid()
    functions.prepare(settings)
    for option, number in functions.named(settings):
        if option in IN_OWN_PROCESS:
            try:
                functions.find(settings, option, number)
            except ApplicationError as failure:
                logs.write("error", f"a hook cannot be called: {failure}")
    import json

    channel = socket.socket(fileno=channel_fd)
    channel.setblocking(True)
    for line in _lines(channel):
        option, number, values = json.loads(line)
        channel.send(BEGUN)
        try:
            functions.call_one(settings, option, number, argument(option, values))
        except ApplicationError as failure:
            logs.exception(f"a hook failed: {failure}", failure.__cause__ or failure)
        except Stopped:
            pass
        if os.getpid() != own:
            # A process that the function has forked, and that returned here.
            return
        channel.send(DONE)


def _lines(channel: socket.socket) -> Iterator[bytes]:
    rest = b""
    while data := channel.recv(1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
