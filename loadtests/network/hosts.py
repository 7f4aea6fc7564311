"""Several hosts on one machine: network namespaces with addresses of their own, at a switch.

    with Network("client", "server") as network:
        with network["client"].inside():
            connection = Connection((network["server"].address, 8080))

Nothing of it can be seen from the machine's own interfaces. The namespaces have no names: they are
held by descriptors of this process, so they end with it however it ends.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadtests.measure.waiting import HANG

CLONE_NEWNET = 0x40000000
"""From linux/sched.h."""
ADDRESS = "192.0.2.{}"
"""The network of examples (RFC 5737), which is nobody's."""
BUCKET = 1_600
"""Octets that a slow cable takes at once: a frame."""
WAITING = 1 << 20
"""Octets that may wait for it."""

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """Network namespaces cannot be made here."""


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextmanager
def _kept() -> Iterator[None]:
    """The thread is back where it was afterwards."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        yield
    finally:
        _check(_libc.setns(before, CLONE_NEWNET))
        os.close(before)


def _namespace() -> int:
    """A descriptor of a new network namespace."""
    with _kept():
        _check(_libc.unshare(CLONE_NEWNET))
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def run(*words: str) -> None:
    """Runs a command that must succeed. RuntimeError with what it said, if it does not."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=HANG
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


class Host:
    """A network namespace with one interface.

    Attributes:
        address: its IPv4 address.
        launcher: put before a command, it is run on this host.
    """

    def __init__(self, network: Network, name: str, number: int) -> None:
        self.name = name
        self.address = ADDRESS.format(number)
        self.namespace = _namespace()
        self.path = f"/proc/{os.getpid()}/fd/{self.namespace}"
        self.launcher = ("nsenter", f"--net={self.path}", "--")
        self._network = network
        self._port = f"port{number}"
        self._wire: subprocess.Popen[bytes] | None = None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What this thread opens and starts meanwhile belongs to this host, and stays there."""
        with _kept():
            _check(_libc.setns(self.namespace, CLONE_NEWNET))
            yield

    def plug_in(self) -> None:
        """Connects it with the switch."""
        switch = self._network.switch
        switch.run(*f"ip link add {self._port} type veth peer name eth0 netns {self.path}".split())
        switch.run("ip", "link", "set", self._port, "master", "switch", "up")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")

    def run(self, *words: str) -> None:
        """Runs a command there that must succeed."""
        run(*self.launcher, *words)

    def disturb(self, delay: float = 0.0, loss: float = 0.0, rate: float = 0.0) -> None:
        """From now on its frames take `delay` seconds longer each way; a share of them is lost.

        With a `rate` no more than so many bits a second go either way.
        """
        netem = ["netem", "delay", f"{delay * 1000:g}ms", "loss", f"{loss * 100:g}%"]
        if self._queue(*netem, *(["rate", f"{rate:.0f}bit"] if rate else [])):
            return
        tbf = ["tbf", "rate", f"{rate:.0f}bit", "burst", str(BUCKET), "limit", str(WAITING)]
        slowed = self._queue(*tbf) if rate else self._queue("pfifo", "limit", "1000")
        if delay or loss or not slowed or self._wire is not None:
            self._lengthen(delay, loss, 0.0 if slowed else rate)

    def _queue(self, *discipline: str) -> bool:
        """How frames wait at both ends of its cable; False if the kernel does not know it."""
        replace = "tc", "qdisc", "replace", "dev"
        try:
            self._network.switch.run(*replace, self._port, "root", *discipline)
        except RuntimeError as error:
            if "kind is unknown" not in str(error):
                raise
            return False
        self.run(*replace, "eth0", "root", *discipline)
        return True

    def _lengthen(self, delay: float, loss: float, rate: float) -> None:
        """The same without the kernel's help: between host and switch there is a process."""
        switch = self._network.switch
        far = f"far{self._port}"
        if self._wire is None:
            switch.run(*f"ip link add {far} type veth peer name wire{self._port}".split())
            switch.run("ip", "link", "set", f"wire{self._port}", "up")
            switch.run("ip", "link", "set", self._port, "nomaster")
            switch.run("ip", "link", "set", far, "master", "switch", "up")
        else:
            self._unwire()
        program = str(Path(__file__).with_name("wire.py"))
        self._wire = subprocess.Popen(
            [
                *(*switch.launcher, sys.executable, program),
                *(self._port, f"wire{self._port}"),
                *(str(delay), str(loss), str(rate)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._wire.stdout is not None
        if self._wire.stdout.readline() != b"plugged in\n":
            raise RuntimeError(f"the wire of {self.name} has ended")

    def _unwire(self) -> None:
        if self._wire is not None:
            self._wire.communicate(timeout=HANG)
            self._wire = None

    def cut(self) -> None:
        """Cuts it off, as when its cable is pulled or its power fails: no end is sent to anybody.

        It is the switch's side that goes down. Were it the host's own, its kernel would know.
        """
        self._network.switch.run("ip", "link", "set", self._port, "down")

    def mend(self) -> None:
        """Undoes that."""
        self._network.switch.run("ip", "link", "set", self._port, "up")

    def close(self) -> None:
        """Lets go of it; it vanishes with the last process that is on it."""
        self._unwire()
        os.close(self.namespace)


class Network:
    """Hosts of these names. Raises Unavailable if namespaces cannot be made, with the reason."""

    def __init__(self, *names: str) -> None:
        self._hosts: dict[str, Host] = {}
        try:
            self.switch = self._hosts[""] = Host(self, "", 0)
        except OSError as error:
            raise Unavailable(
                f"network namespaces cannot be made ({error.strerror}): run it as root"
            ) from None
        try:
            self.switch.run("ip", "link", "add", "switch", "type", "bridge")
            self.switch.run("ip", "link", "set", "switch", "up")
            for number, name in enumerate(names, 1):
                self._hosts[name] = Host(self, name, number)
                self._hosts[name].run("ip", "link", "set", "lo", "up")
                self._hosts[name].plug_in()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> Host:
        return self._hosts[name]

    def close(self) -> None:
        for host in self._hosts.values():
            host.close()
