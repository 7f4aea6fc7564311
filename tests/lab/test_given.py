"""Servers of the lab that the command line names: by a command, or by the URL of one that runs."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadtests import store
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import listeners
from loadtests.network.port import free_port
from loadtests.servers import running
from loadtests.servers.registry import given
from loadtests.servers.registry.given import Given
from loadtests.servers.running import Running
from tests.testkit.server import wait_for

SERVE = "{python} -m http.server {port} --bind {host}"
FORKING = """\
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
if os.fork() == 0:
    os.setsid()
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n")
    connection.close()
"""


def chosen(*commands: str, path: str = "/", **more: Any) -> list[Given]:
    """Servers of these commands, as the command line gives them."""
    parser = argparse.ArgumentParser()
    given.add_arguments(parser)
    words = [word for command in commands for word in ("--command", command)]
    return list(given.chosen(parser.parse_args([*words, "--path", path]), **more))


class TestNames:
    def test_first_word_or_given(self) -> None:
        names = [one.name for one in chosen("sh -c a=b", "mine=sh x", "/bin/sh y", taken=["mine"])]
        assert names == ["sh", "mine 2", "sh 2"]

    @pytest.mark.parametrize("text", ["no-such-program -x", "a=", "sh 'open"])
    def test_refused_commands(self, text: str) -> None:
        with pytest.raises(argparse.ArgumentTypeError):
            given.command(text)

    def test_urls(self) -> None:
        assert given.url("http://127.0.0.1:9000/x?y").target == "/x?y"
        assert given.url("mine=http://localhost:9000").listens == 9000
        for text in ("https://127.0.0.1/", "http://192.0.2.1/", "http://127.0.0.1:x/"):
            with pytest.raises(argparse.ArgumentTypeError):
                given.url(text)

    def test_paths_that_differ(self) -> None:
        for own, asked, wanted in (("/", "/a", "/a"), ("/a", None, "/a"), ("", None, "/")):
            assert given.target(own, asked) == wanted
        with pytest.raises(LabError, match="the URL has the path /a, and --path says /b"):
            given.target("/a", "/b")

    def test_words_of_the_command(self) -> None:
        one = given.command("""sh -c '{"a": 1}' {port} {host}""")
        assert one.argv({"port": 5}, "127.0.0.1") == ["sh", "-c", '{"a": 1}', "5", "127.0.0.1"]

    def test_whose_application(self) -> None:
        assert given.command(SERVE.replace("{python}", "sh")).own
        assert not given.command("sh -b {host}:{port} {module}:{callable}").own


@pytest.fixture
def forking(tmp_path: Path) -> str:
    """The command of a server of two processes, but for its port."""
    (tmp_path / "forking.py").write_text(FORKING)
    return f"{sys.executable} {tmp_path}/forking.py"


class TestCommand:
    def test_all_processes(self, forking: str) -> None:
        [server] = chosen(f"{forking} {{port}}")
        with Running(server) as one:
            assert len(one.processes()) == 2
        assert one.left() == []

    def test_a_port_that_it_chooses(self, forking: str) -> None:
        port = free_port()
        [server] = chosen(f"{forking} {port}")
        with Running(server) as one:
            assert one.port == port

    def test_it_ends(self) -> None:
        [server] = chosen("sh -c 'for n in 1 2 3; do echo line $n; done; exit 7'")
        with pytest.raises(ServerFailure, match=r"exit code 7: it said:\n  line 1\n.*\n  line 3"):
            Running(server).__enter__()

    def test_it_listens_elsewhere(self, forking: str, monkeypatch: pytest.MonkeyPatch) -> None:
        port = free_port()
        [server] = chosen(f"{forking} {port} {{port}}")
        one = Running(server)

        def not_ready() -> bool:
            wait_for(lambda: port in listeners.ports(one.left()), "it listens")
            return False

        monkeypatch.setattr(one, "is_ready", not_ready)
        monkeypatch.setattr(running, "START_SECONDS", 0)
        with pytest.raises(ServerFailure, match=rf"nothing listens at port .* it does at {port}"):
            one.__enter__()

    def test_it_accepts_and_does_not_answer(self) -> None:
        code = "print('no module', flush=True); s.accept()[0].close(); time.sleep(60)"
        start = (
            "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1])))"
        )
        [server] = chosen(f'{sys.executable} -c "{start}; {code}" {{port}}')
        with pytest.raises(ServerFailure, match=r"closed .* answering; it said: no module"):
            Running(server).__enter__()

    def test_a_wrong_status(self) -> None:
        [server] = chosen(SERVE, path="/missing")
        said = r"GET /missing \(Host: 127.0.0.1\) is answered 404, not 200: Error response; --path"
        with pytest.raises(ServerFailure, match=said):
            Running(server).__enter__()

    def test_a_refused_host(self, tmp_path: Path) -> None:
        """The body says what is wrong; the path is not."""
        wrong = FORKING.replace("200 OK", "400 Bad").replace("Length: 0", "Length: 17")
        (tmp_path / "picky.py").write_text(
            wrong.replace("close\\r\\n\\r\\n", "close\\r\\n\\r\\n\\n<p>Unknown host\\n")
        )
        [server] = chosen(f"{{python}} {tmp_path}/picky.py {{port}}")
        with pytest.raises(ServerFailure, match=r"answered 400, not 200: Unknown host$"):
            Running(server).__enter__()


class TestUrl:
    @pytest.fixture
    def there(self, forking: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
        """A server that somebody else has started, with a child."""
        port = free_port()
        with subprocess.Popen([*forking.split(), str(port)]) as process:
            wait_for(lambda: len(listeners.listening(port)) == 2, "both processes listen")
            yield port, process
            for one in listeners.listening(port):
                os.kill(one, 9)

    def test_found_pinned_and_left_alone(self, there: tuple[int, subprocess.Popen[bytes]]) -> None:
        port, process = there
        core = min(os.sched_getaffinity(process.pid))
        before = os.sched_getaffinity(process.pid)
        with Running(given.url(f"http://127.0.0.1:{port}"), core=core) as one:
            assert one.main == process.pid
            assert one.processes() == listeners.listening(port)
            assert os.sched_getaffinity(process.pid) == {core}
        assert process.poll() is None
        assert os.sched_getaffinity(process.pid) == before

    def test_nobody_listens(self) -> None:
        with pytest.raises(ServerFailure, match=r"no process .* listens at port"):
            Running(given.url(f"http://127.0.0.1:{free_port()}")).__enter__()


class TestStudy:
    @pytest.mark.full
    def test_measured_beside_another(
        self, tmp_path: Path, lab: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "results.jsonl"
        words = ("serial", "--tiny", "--output", str(path), "--command", f"mine={SERVE}")
        assert lab(*words, "--servers", "poorhttp single") == 0
        samples = [one for one in store.load([path]) if one["record"] == "sample"]
        assert {one["server"] for one in samples} == {"mine", "poorhttp single"}
        steps = [one["machine"] for one in store.load([path]) if one["record"] == "done"]
        assert len(steps) == 2
        assert all(0 <= one["others"] <= 1 and one["stolen"] >= 0 for one in steps)
        assert "mine answers GET / of its own application" in capsys.readouterr().out

    def test_one_that_ends(
        self, tmp_path: Path, lab: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ("serial", "--tiny", "--output", str(tmp_path / "results.jsonl"))
        assert lab(*words, "--command", "mine=sh -c 'echo why; exit 3'") == 1
        assert "mine: it ended with exit code 3: it said: why" in capsys.readouterr().err

    def test_a_study_that_takes_none(self, lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
        assert lab("webbench", "--tiny", "--command", SERVE) == 1
        assert "webbench has servers of its own only" in capsys.readouterr().err
