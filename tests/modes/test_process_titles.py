"""Titles of processes, as `ps` shows them: which process it is, and a request of each worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Serve
from tests.support.nobody import Nobody
from tests.support.services import Tree
from tests.testkit.process import children
from tests.testkit.server import ROOT, Program, Server, run, wait_for

GATE = "tests/apps/gate.py"

#: Titles with queries, which hold the path of a gate.
QUERIES = ("--proc-name", "poorhttp query")


@pytest.fixture(autouse=True)
def executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork has the command line and the environment of its parent in `/proc`."""
    monkeypatch.setattr(Program, "forks", False)


def title(pid: int) -> str:
    return run("ps", "-ww", "-o", "args=", "-p", str(pid)).stdout.rstrip("\n")


def command_line(pid: int) -> bytes:
    """The same, as the kernel has it."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def name(pid: int) -> str:
    """The name of a process in lists that have room for a few characters."""
    return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")


def titles_of_workers(server: Server) -> list[str]:
    return sorted(map(title, children(server.process.pid)))


def test_each_process_has_one(tmp_path: Path) -> None:
    """And the environment, which may lie beside the arguments, stays as it is."""
    address = f"bind = 127.0.0.1:0\ntarget = {ROOT / GATE}\n"
    config = (
        f"[http]\nproc_name = site\nadmin = unix:{tmp_path}/admin\n"
        f"[service:shop]\n{address}workers = 2\n"
        f"[service:blog]\n{address}preload = on\nmax_requests = 9\n"
    )
    with Tree(tmp_path, config) as server:
        main = server.process.pid
        processes = {
            "site: admin": "admin",
            "site: worker 1 [shop]": "worker 1",
            "site: worker 2 [shop]": "worker 2",
            "site: worker 1 [blog]": "worker 1",
            "site: preloader [blog]": "preloader",
        }
        workers = children(main)
        wait_for(lambda: sorted(map(title, workers)) == sorted(processes), f"titles {processes}")
        assert {title(pid): name(pid) for pid in workers} == processes
        assert title(main) == f"site: main serve -c {server.file}"
        assert name(main) == "site"
        version = f"VERSION_FILE={tmp_path}/version".encode()
        for pid in (main, *children(main)):
            assert command_line(pid).count(b"\0") == 1
            assert version in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def test_no_rights_are_needed(nobody: Nobody) -> None:
    program = """
from poorhttp._core import set_process_title
set_process_title("name: \\x1b[2J" + "\xe4" * 3 + "x" * 5000, "a name")
print(ascii(open("/proc/self/cmdline").read()), open("/proc/self/comm").read(), sep="", end="")
"""
    done = nobody.run(program=program)
    assert done.stdout == f"'name: ?[2J??????{'x' * (4094 - 16)}\\x00'a name\n", done.stderr


@pytest.mark.each_mode
def test_a_request_is_shown(serve: Serve, mode: str, tmp_path: Path) -> None:
    """Until it ends; nothing in it controls a terminal."""
    server = serve(GATE, *QUERIES)
    plain = titles_of_workers(server)
    gate = tmp_path / "gate"
    connection = server.enter(gate)
    # 100 bytes of a request are shown.
    shown = "poorhttp: worker 1 " + f"GET /wait?{gate}"[:100]
    now = titles_of_workers(server)
    assert [each.replace("worker 2", "worker 1") for each in now if "GET" in each] == [shown]
    assert all(len(each) < 130 for each in now)
    gate.touch()
    assert connection.response().status == 200
    wait_for(lambda: titles_of_workers(server) == plain, "no request in a title")


@pytest.mark.parametrize("mode", ["threading"], indirect=True)
def test_of_several_requests_the_same_one_is_shown(serve: Serve, tmp_path: Path) -> None:
    """Until it ends, and then the oldest of the others."""
    server = serve(GATE, *QUERIES)
    (worker,) = children(server.process.pid)
    folder = tmp_path.parent
    gates = [folder / f"{number}-{tmp_path.name[-40:]}" for number in range(4)]
    connections = [server.enter(gate) for gate in gates]
    # Those that began later have not replaced it.
    assert f"?{gates[0]}"[:90] in title(worker)
    for first in (0, 2, 1, 3):
        gates[first].touch()
        assert connections[first].response().status == 200
        rest = [number for number, gate in enumerate(gates) if not gate.exists()]
        expected = f"?{gates[min(rest)]}"[:90] if rest else "worker 1"
        wait_for(lambda: expected in title(worker), f"{expected} in the title")  # noqa: B023


@pytest.mark.parametrize(
    ("options", "shown"), [((), " GET /wait"), (("--proc-name", "poorhttp none"), "")]
)
def test_what_is_shown(serve: Serve, tmp_path: Path, options: tuple[str, ...], shown: str) -> None:
    """No query, unless that is asked for: every user of the machine reads titles."""
    server = serve(GATE, "--workers", "1", *options)
    gate = tmp_path / "gate"
    connection = server.enter(gate)
    assert titles_of_workers(server) == [f"poorhttp: worker 1{shown}"]
    gate.touch()
    assert connection.response().status == 200


@pytest.mark.parametrize("process", ["main", "standalone"])
def test_arguments_without_values_of_variables(process: str) -> None:
    """They may be passwords."""
    options = ["--env", "A=secret", "--env=B=secret", "-eC=secret", "-e", "D=secret", "-e=E=secret"]
    options += ["--cgi-environment", "F=secret"]
    shown = "--env A=... --env=B=... -eC=... -e D=... -e=E=... --cgi-environment F=..."
    supervisor = "on" if process == "main" else "off"
    with Server(GATE, "threading", "--supervisor", supervisor, *options) as server:
        assert title(server.process.pid).startswith(f"poorhttp: {process} serve ")
        assert shown in title(server.process.pid)
        assert "secret" not in title(server.process.pid)


def test_off() -> None:
    with Server(GATE, "threading", "--proc-name", "off") as server:
        before = command_line(server.process.pid)
        assert before.split(b"\0")[1:5] == [b"-W", b"error::SyntaxWarning", b"-m", b"poorhttp"]
        assert [command_line(pid) for pid in children(server.process.pid)] == [before]
        assert server.get("/process").status == 200
