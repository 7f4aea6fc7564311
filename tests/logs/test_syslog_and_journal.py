"""Logs to syslog and systemd's journal, received by sockets of the tests."""

from __future__ import annotations

import re
import signal
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.each_value import DIFFERENT, each_value
from tests.testkit.client import HANG
from tests.testkit.server import Server

TALKER = "tests/apps/talker.py"

SYSLOG = re.compile(
    r"<(\d+)>([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) poorhttp\[(\d+)\]: (.*)", re.DOTALL
)


class Daemon:
    """A datagram socket at a path, to the end of its block."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(HANG)
        self.socket.bind(str(path))

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def message(self) -> bytes:
        """The next message."""
        return self.socket.recv(1 << 20)

    def syslog(self) -> tuple[int, str, str]:
        """Priority, process and text of the next message."""
        message = self.message().decode()
        found = SYSLOG.fullmatch(message)
        assert found, message
        return int(found[1]), found[3], found[4]


def entry(message: bytes) -> dict[str, str]:
    """The fields of a message in the journal's own protocol."""
    fields = {}
    while message:
        line, _, message = message.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            size = int.from_bytes(message[:8], "little")
            value, end = message[8 : 8 + size], message[8 + size : 9 + size]
            assert end == b"\n"
            message = message[9 + size :]
        fields[name.decode()] = value.decode()
    return fields


def test_error_log_to_syslog(mode: str, folder: Path) -> None:
    with (
        Daemon(folder / "log") as daemon,
        Server(TALKER, mode, "--error-log", f"syslog:{folder}/log", "--workers", "1") as server,
    ):
        server.get("/raise?" + quote("one\ntwo"))
        priority, process, text = daemon.syslog()
        # Facility daemon, severity error; the traceback is part of the one message.
        assert priority == 3 * 8 + 3
        assert process != str(server.process.pid)
        assert re.match(r"\[worker 1\] error: request \d+ GET /raise", text)
        assert text.endswith("\nValueError: one\ntwo")
        with server.connect() as connection:
            connection.send(b"nonsense\r\n\r\n")
            assert connection.response().status == 400
        assert daemon.syslog()[0] == 3 * 8 + 6
        assert "ValueError" not in server.log()
        # The usual rotation does not disturb it.
        server.process.send_signal(signal.SIGUSR1)
        server.get("/say?x")
        assert daemon.syslog()[2].endswith("error: x")
        # A datagram has its limits; the beginning says most.
        server.get("/say-much")
        _, _, text = daemon.syslog()
        assert text.startswith("[worker 1] error: xxx")
        assert text.endswith("x …")
        assert 30_000 < len(text) < 40_000


@pytest.mark.parametrize(
    ("mode", "kind"), each_value(DIFFERENT, ["syslog", "journald"]), indirect=["mode"]
)
def test_text_stream_of_the_application(mode: str, folder: Path, kind: str) -> None:
    """`wsgi.errors` hands on complete lines; those that were written at once stay together."""
    with (
        Daemon(folder / "log") as daemon,
        Server(TALKER, mode, "--error-log", f"{kind}:{folder}/log") as server,
    ):
        for target, text in [
            ("/say?whole%0A", "whole"),
            ("/say?no%20end", "no end"),
            ("/say?one%0A%20two%0A", "one\n two"),
            ("/say-in-pieces?some%20letters%0A", "some letters"),
        ]:
            assert server.get(target).status == 200
            message = daemon.message()
            said = entry(message)["MESSAGE"] if kind == "journald" else message.decode()
            assert said.endswith(f"error: {text}"), said


def test_journald(mode: str, folder: Path) -> None:
    where = f"journald:{folder}/socket"
    options = ("--error-log", where, "--access-log", where, "--access-log-format", "%q")
    with Daemon(folder / "socket") as daemon, Server(TALKER, mode, *options) as server:
        server.get("/?first")
        assert entry(daemon.message()) == {
            "PRIORITY": "6", "SYSLOG_IDENTIFIER": "poorhttp", "MESSAGE": "?first",
        }  # fmt: skip
        server.get("/raise?" + quote("one\ntwo"))
        found = [entry(daemon.message()) for _ in range(2)]
        assert {fields["PRIORITY"] for fields in found} == {"3", "6"}
        text = next(fields["MESSAGE"] for fields in found if fields["PRIORITY"] == "3")
        assert re.match(r"\[worker \d\] error: request \d+ GET /raise", text)
        assert text.endswith("\nValueError: one\ntwo")


def test_daemon_that_is_restarted(mode: str, folder: Path) -> None:
    """Lines of the access log wait for it; messages meanwhile are lost, and it is told how many."""
    path = folder / "log"
    options = ("--access-log", f"syslog:{path}", "--access-log-format", "%q", "--workers", "1")
    with (
        Daemon(path) as daemon,
        Server(TALKER, mode, *options, "--error-log", f"syslog:{path}") as server,
    ):
        server.get("/?before")
        priority, _, text = daemon.syslog()
        # Facility local0, severity info.
        assert (priority, text) == (16 * 8 + 6, "?before")
        daemon.socket.close()
        path.unlink()
        for number in range(3):
            assert server.get(f"/?{number}").status == 200
            assert server.get("/say?lost").status == 200
        with Daemon(path) as successor:
            texts: list[str] = []
            server.get("/say?again")
            while sum("?say" in text or text.startswith("?") for text in texts) < 7:
                texts.append(successor.syslog()[2])
    lines = [text for text in texts if text.startswith("?")]
    assert lines == ["?0", "?lost", "?1", "?lost", "?2", "?lost", "?again"]
    counts = [re.search(r"(\d+) messages before this could not", text) for text in texts]
    # What is said of the access log itself is lost as well.
    assert [int(count[1]) >= 3 for count in counts if count] == [True]


def test_daemon_that_does_not_read(mode: str, folder: Path) -> None:
    """Requests are answered nonetheless; a queue has room for some, the rest is counted."""
    path = folder / "log"
    with (
        Daemon(path) as daemon,
        Server(TALKER, mode, "--error-log", f"syslog:{path}", "--workers", "1") as server,
    ):
        total = 2 * int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text()) + 50
        for number in range(total):
            assert server.get(f"/say?{number}").status == 200
        daemon.socket.setblocking(False)
        texts: list[str] = []
        with suppress(BlockingIOError):
            while True:
                texts.append(daemon.syslog()[2])
        daemon.socket.settimeout(HANG)
        server.get("/say?again")
        assert daemon.syslog()[2].endswith("error: again")
        count = re.search(r"(\d+) messages before this", daemon.syslog()[2])
    assert count
    assert len(texts) + int(count[1]) == total
