"""A FUSE file system with one file, served by this process, that can be blocked."""

from __future__ import annotations

import errno
import os
import select
import struct
import subprocess
import threading
from pathlib import Path

from tests.testkit.client import HANG
from tests.testkit.server import join

ROOT_NODE, FILE_NODE = 1, 2
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, WRITE, RELEASE, INIT = 1, 2, 3, 4, 14, 16, 18, 26
CREATE, INTERRUPT, DESTROY, BATCH_FORGET, ACCESS, FSYNC = 35, 36, 38, 42, 34, 20

#: What a process needs to be allowed to mount one.
USABLE = os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


class StallingFolder:
    """A folder in which one file can be created and written.

    Attributes:
        content: what has been written to the file.
        going: cleared, nothing is answered until it is set again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.content = bytearray()
        self.going = threading.Event()
        self.going.set()
        self._exists = False
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other"
        self._thread = threading.Thread(target=self._answer_all, daemon=True)
        self._thread.start()
        subprocess.run(
            ["mount", "-i", "-t", "fuse", "-o", options, "stalling", folder],
            pass_fds=[self._device],
            check=True,
            timeout=HANG,
        )

    def is_asked(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(select.select([self._device], [], [], 0)[0])

    def __enter__(self) -> StallingFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.going.set()
        subprocess.run(["umount", "-l", self.folder], check=True, timeout=HANG)
        join(self._thread)
        os.close(self._device)

    def _answer_all(self) -> None:
        while True:
            # What has not been read yet can be killed while it waits.
            select.select([self._device], [], [])
            if not self.going.is_set():
                self.going.wait(HANG)
                continue
            try:
                request = os.read(self._device, 1 << 18)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                continue
            opcode, unique, node = struct.unpack_from("<4xIQQ", request)
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            result = self._answer(opcode, node, request[40:])
            code, data = (0, result) if isinstance(result, bytes) else (-result, b"")
            try:
                os.write(self._device, struct.pack("<IiQ", 16 + len(data), code, unique) + data)
            except OSError:
                # Whoever has asked is gone.
                continue

    def _answer(self, opcode: int, node: int, body: bytes) -> bytes | int:
        if opcode == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 16, 0, 16, 12, 1 << 17, 1, 32, 0, 0)
        if opcode == LOOKUP:
            return self._entry() if self._exists else errno.ENOENT
        if opcode in (GETATTR, SETATTR):
            return struct.pack("<QII", 0, 0, 0) + self._attributes(node)
        if opcode == OPEN:
            return struct.pack("<QII", 1, 1, 0)
        if opcode == CREATE:
            self._exists = True
            return self._entry() + struct.pack("<QII", 1, 1, 0)
        if opcode == WRITE:
            size = struct.unpack_from("<16xI", body)[0]
            self.content += body[40 : 40 + size]
            return struct.pack("<II", size, 0)
        if opcode in (RELEASE, FSYNC, ACCESS, DESTROY):
            return b""
        # Also to FLUSH, which is not asked again then: for that the kernel lets no process end.
        return errno.ENOSYS

    def _entry(self) -> bytes:
        return struct.pack("<QQQQII", FILE_NODE, 0, 0, 0, 0, 0) + self._attributes(FILE_NODE)

    def _attributes(self, node: int) -> bytes:
        mode, size = (0o40777, 0) if node == ROOT_NODE else (0o100666, len(self.content))
        return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
