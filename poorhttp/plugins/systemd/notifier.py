"""Sends the state of the server to systemd: sd_notify(3)."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from poorhttp.process.c_socket import socket


class Notifier:
    """Sends the state of the server to systemd, if that asks for it. Never waits, never fails.

    Attributes:
        watchdog_seconds: systemd kills the server after so long without `watchdog()`; 0: never.
        environ: variables that a new main process needs to go on notifying. They are removed from
            the environment, so that programs of the application cannot notify systemd.
    """

    def __init__(self) -> None:
        """Take the variables out of the environment."""
        names = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
        self.environ = {name: os.environ.pop(name) for name in names if name in os.environ}
        microseconds = self.environ.get("WATCHDOG_USEC", "")
        # A new main process, which has another process ID, gets no WATCHDOG_PID.
        pid = self.environ.pop("WATCHDOG_PID", "") or str(os.getpid())
        meant = pid == str(os.getpid()) and microseconds.isascii() and microseconds.isdigit()
        self._to = _address(self.environ.get("NOTIFY_SOCKET", ""))
        self.watchdog_seconds = int(microseconds) / 1e6 if meant and self._to else 0.0
        if not meant:
            self.environ.pop("WATCHDOG_USEC", None)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if self._to else None

    def ready(self, status: str = "") -> None:
        """Send that all workers serve, after the start or a reload."""
        self._send("READY=1", status)

    def reloading(self) -> None:
        """Send that a reload begins; `ready` ends it."""
        microseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={microseconds}")

    def stopping(self, status: str = "") -> None:
        """Send that the shutdown has begun."""
        self._send("STOPPING=1", status)

    def status(self, text: str) -> None:
        """Send a line for `systemctl status`."""
        self._send("", text)

    def main_pid(self, pid: int) -> None:
        """Send the process ID of a new main process."""
        self._send(f"MAINPID={pid}")

    def watchdog(self) -> None:
        """Send a keep-alive ping of the watchdog."""
        self._send("WATCHDOG=1")

    def close(self) -> None:
        """Stop notifying."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, message: str, status: str = "") -> None:
        if self._socket is None:
            return
        if status:
            message += "\nSTATUS=" + " ".join(status.split())
        # Addressed each time, because systemd may have been restarted; dropped if it does not read.
        with suppress(OSError):
            data = message.strip().encode(errors="replace")
            self._socket.sendto(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL, self._to)


def _address(text: str) -> bytes:
    """Return the address of a Unix socket; empty for none, and for a virtual machine's AF_VSOCK."""
    if text.startswith("@"):
        return b"\0" + os.fsencode(text[1:])
    return os.fsencode(text) if text.startswith("/") else b""
