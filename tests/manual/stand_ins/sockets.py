"""The sockets of socket units: opened before the service, which gets them when it starts."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
from pathlib import Path

from tests.manual.stand_ins.units import Unit


class Socket:
    """The sockets of a socket unit; starts the service on the first connection."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.sockets = [self._listen(text) for text in unit.all("ListenStream")]
        self.names = [unit.get("FileDescriptorName", unit.name)] * len(self.sockets)

    def _listen(self, text: str) -> socket.socket:
        if text.startswith("/"):
            Path(text).parent.mkdir(parents=True, exist_ok=True)
            Path(text).unlink(missing_ok=True)
            opened = socket.socket(socket.AF_UNIX)
            opened.bind(text)
            os.chmod(text, int(self.unit.get("SocketMode", "0666"), 8))
            user, group = self.unit.get("SocketUser", "root"), self.unit.get("SocketGroup", "root")
            subprocess.run(["chown", f"{user}:{group}", text], check=True, timeout=240)
        else:
            host, colon, port = text.rpartition(":")
            if colon and not host.startswith("["):
                opened = socket.socket(socket.AF_INET)
            else:
                opened = socket.socket(socket.AF_INET6)
                host = host.strip("[]") or "::"
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((host, int(port)))
        opened.listen(int(self.unit.get("Backlog", "4096")))
        return opened

    def watch(self) -> None:
        with selectors.DefaultSelector() as selector:
            for opened in self.sockets:
                selector.register(opened, selectors.EVENT_READ)
            selector.select()

    def close(self) -> None:
        """Close them, and remove those of files."""
        for opened in self.sockets:
            name = opened.getsockname()
            opened.close()
            if isinstance(name, str):
                Path(name).unlink(missing_ok=True)
