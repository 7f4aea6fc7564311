"""The study `content`: its client, servers, tables, and a small run of each kind."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadtests.clients.native import fetch
from loadtests.measure.process_tree import ProcessTree
from loadtests.reporting import markdown
from loadtests.servers.fixtures import Fixtures
from loadtests.studies import content
from tests.lab.studies.small_run import lab, stored
from tests.testkit.client import HANG

BODY = b"x" * 300_000
SOUND = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + BODY
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1A;a=b\r\n" + BODY[:26]
CHUNKED += b"\r\n493E0\r\n" + BODY + b"\r\n0\r\nX: y\r\n\r\n"


@contextmanager
def saying(answer: bytes, *, at_once: int = 1 << 20, keep: bool = True) -> Iterator[int]:
    """A server that gives this answer to everything, in pieces; yields its port."""
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.settimeout(HANG)
        with connection:
            while not over.is_set() and connection.recv(65536):
                for start in range(0, len(answer), at_once):
                    connection.sendall(answer[start : start + at_once])
                if not keep:
                    return

    def accept() -> None:
        while not over.is_set():
            connection = listener.accept()[0]
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield port
        over.set()
        socket.create_connection(("127.0.0.1", port)).close()
        thread.join(HANG)


class TestFetch:
    @pytest.mark.parametrize(
        ("answer", "at_once"),
        [
            (SOUND, 1 << 20),
            (CHUNKED, 1 << 20),
            (SOUND.replace(b"300000", b"3000").replace(BODY, BODY[:3000]), 7),
            (CHUNKED.replace(b"493E0", b"BB8").replace(BODY, BODY[:3000]), 7),
        ],
        ids=["length", "chunks", "length-in-pieces", "chunks-in-pieces"],
    )
    def test_where_an_answer_ends(self, answer: bytes, at_once: int) -> None:
        with saying(answer, at_once=at_once) as port:
            load = fetch.drive(port, HANG, 2, [["/", "/"]], requests=6)
        assert (load.requests, load.errors, load.octets) == (6, {}, 6 * len(answer))

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "status"),
            (SOUND[:-1], "read"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nyes", "read"),
            (CHUNKED[:-2], "read"),
            (CHUNKED + b"!", "read"),
            (b"HTTP/1.1 200 OK\r\n\r\nno length", "read"),
            (b"X" * 20_000, "read"),
        ],
        ids=["status", "short", "long", "cut-chunk", "behind-chunks", "no-length", "no-answer"],
    )
    def test_what_is_wrong_is_counted(self, answer: bytes, kind: str) -> None:
        with saying(answer, keep=False) as port:
            load = fetch.drive(port, 0.3, 1, [["/"]])
        assert load.requests == 0
        assert load.errors[kind] > 0


class TestProcessTree:
    def test_a_process_with_a_session_of_its_own(self) -> None:
        """Also when its parent has gone, once it was seen."""
        program = (
            "import subprocess, sys, time\n"
            "sleeper = [sys.executable, '-c', 'import time; print(flush=True); time.sleep(600)']\n"
            "subprocess.Popen(sleeper, start_new_session=True)\n"
            "time.sleep(600)\n"
        )
        with ProcessTree([sys.executable, "-c", program], stdout=subprocess.PIPE) as tree:
            parent = tree.popen
            assert parent.stdout
            assert parent.stdout.readline() == b"\n"
            found = tree.processes()
            parent.kill()
            parent.wait(HANG)
            (child,) = tree.processes()
            assert set(found) == {parent.pid, child}
        assert tree.processes() == []


def test_files_and_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the real server; counts and plausibility, not speed."""
    # So few that there are whole files soon.
    monkeypatch.setattr(content, "DOWNLOADS", 3)
    with Fixtures() as made, lab(tmp_path, 0.3) as small:
        for name in ("site", "file", "cgi"):
            # One of each; for programs the first is the one without others at once.
            assert content.steps(small, made, name, {"poorhttp single"})[0].action()
    results = stored(small)
    for sample in results.samples:
        assert sample["requests"] > 0
        assert sample["errors"] == {}
        assert sample["cpu_us"] > 0
        assert 0 < sample["pss"] <= sample["rss"]
    site, file, cgi = results.samples
    assert site["octets"] / site["requests"] > 8600
    assert file["octets"] >= file["requests"] * 10 * 2**20
    assert file["cpu_ms_per_gb"] > 0
    # No order: other processes that begin meanwhile share pages, so each has a smaller part.
    assert file["pss_highest"] > 0 < file["pss_before"]
    assert (cgi["scenario"], cgi["requests"]) == ("cgi-shell-1", 100)
    # A shell was started for each of them.
    assert cgi["cpu_us"] > 100
    assert "| server " in (told := markdown.tables(content.STUDY.report(results)))
    assert "| 1 at once: requests/s |" in told
