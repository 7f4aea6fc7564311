"""What systemd passes to its services, and what it likes to hear: sockets, and their state.

The protocols are those of sd_listen_fds(3) and sd_notify(3), without its library.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from poorhttp.process.c_socket import socket

#: The first descriptor that is passed.
LISTEN_FDS_START = 3


class Passed:
    """A listening socket that was passed: its descriptor and its name."""

    def __init__(self, fd: int, name: str) -> None:
        self.fd = fd
        self.name = name


#: The names of the variables, of which the second and third say what is passed.
VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")

_passed: list[Passed] = []


def passed() -> list[Passed]:
    """Return the sockets that were passed to this process.

    The variables are read once and taken out of the environment: what we start must not believe
    that they are meant for it. The descriptors stay open as long as we live.
    """
    if any(name in os.environ for name in VARIABLES):
        _passed[:] = _take()
    return _passed


def _take() -> list[Passed]:
    pid, number, fd_names, _ = (os.environ.pop(name, "") for name in VARIABLES)
    if pid != str(os.getpid()) or not (number.isascii() and number.isdigit()):
        return []
    called = fd_names.split(":")
    found = []
    for index in range(int(number)):
        fd = LISTEN_FDS_START + index
        with suppress(OSError):
            os.set_inheritable(fd, False)
        found.append(Passed(fd, called[index] if index < len(called) else ""))
    return found


class Notifier:
    """Tells systemd how we are; to nobody, if nobody wants to know. Never waits, never fails.

    Attributes:
        watchdog_seconds: systemd kills us if it does not hear `watchdog()` for so long; 0 does not.
        environ: variables that a new main process needs to go on notifying. They are taken out of
            our own environment: what the application starts must not speak for us.
    """

    def __init__(self) -> None:
        """Take what the environment says."""
        names = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
        self.environ = {name: os.environ.pop(name) for name in names if name in os.environ}
        microseconds = self.environ.get("WATCHDOG_USEC", "")
        # It is about one process; its successor, who has another number, is not told which.
        pid = self.environ.pop("WATCHDOG_PID", "") or str(os.getpid())
        meant = pid == str(os.getpid()) and microseconds.isascii() and microseconds.isdigit()
        self._to = _address(self.environ.get("NOTIFY_SOCKET", ""))
        self.watchdog_seconds = int(microseconds) / 1e6 if meant and self._to else 0.0
        if not meant:
            self.environ.pop("WATCHDOG_USEC", None)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if self._to else None

    def ready(self, status: str = "") -> None:
        """Everything accepts: after the start, and again after a reload."""
        self._send("READY=1", status)

    def reloading(self, status: str = "") -> None:
        """A reload begins; `ready` ends it."""
        microseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={microseconds}", status)

    def stopping(self, status: str = "") -> None:
        """The end has begun."""
        self._send("STOPPING=1", status)

    def status(self, text: str) -> None:
        """Show a line in `systemctl status`."""
        self._send("", text)

    def main_pid(self, pid: int) -> None:
        """Another process is the main one from now on."""
        self._send(f"MAINPID={pid}")

    def watchdog(self) -> None:
        """We are well."""
        self._send("WATCHDOG=1")

    def close(self) -> None:
        """Say nothing any more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, message: str, status: str = "") -> None:
        if self._socket is None:
            return
        if status:
            message += "\nSTATUS=" + " ".join(status.split())
        # Addressed each time: systemd may have been started anew. Who does not read misses it.
        with suppress(OSError):
            data = message.strip().encode(errors="replace")
            self._socket.sendto(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL, self._to)


def _address(text: str) -> bytes:
    """Return what to send to; empty for nothing, and for kinds that only virtual machines have."""
    if text.startswith("@"):
        return b"\0" + os.fsencode(text[1:])
    return os.fsencode(text) if text.startswith("/") else b""
