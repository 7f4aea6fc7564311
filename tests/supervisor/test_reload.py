"""Reload by HUP: a new version replaces the old one, and no request is lost."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.supervisor.reloads import refused_reload, reload
from tests.support.development import answering, write
from tests.support.each_value import DIFFERENT, each_value
from tests.support.health_probe import Probe, ask
from tests.support.library_program import LibraryProgram
from tests.support.load import Load
from tests.testkit.client import HANG, Connection
from tests.testkit.process import children, descriptors
from tests.testkit.server import Server, wait_for
from tests.testkit.versions import Versions, told


@pytest.mark.parametrize(
    ("mode", "preload"), each_value(DIFFERENT, ["off", "on"]), indirect=["mode"]
)
def test_nothing_is_lost_by_reloads(
    mode: str, preload: str, versions: Versions, folder: Path
) -> None:
    """Nor does the address `admin` notice them; what was counted before them, counts."""
    admin = str(folder / "admin")
    # The preloader goes on to fork those that replace workers.
    options = ("--preload", "on", "--max-requests", "50") if preload == "on" else ()
    with versions.serve(mode, "--admin", f"unix:{admin}", *options) as server:
        with Probe(admin) as probe, Load(server.port) as load:
            for version in ("2", "3"):
                versions.set(version)
                reload(server)
                load.wait_version(version)
            versions.set("broken")
            refused_reload(server)
            probe.wait_more()
            versions.set("3")
        load.check()
        assert set(probe.told) == {(200, "ready")}
        _, metrics = ask(admin, "/-/metrics")
        (total,) = re.findall(r"^poorhttp_requests_total (\S+)$", metrics, re.MULTILINE)
        assert float(total) >= load.answers.total()
        assert told(server)["version"] == "3"
        assert told(server)["gevent"] == (mode == "gevent")
        server.tracebacks = True


@pytest.mark.parametrize("options", [(), ("--preload",), ("--admin", "127.0.0.1:0")])
def test_the_main_process_keeps_no_descriptors(
    options: tuple[str, ...], versions: Versions
) -> None:
    """The memory of workers that have ended is a descriptor, which later workers would inherit."""
    with versions.serve("forking", *options) as server:
        main = server.process.pid
        reload(server)
        # The preloader ends a little later, if not sooner than the first workers; the process
        # that answers at admin stays.
        most = server.workers + 1
        wait_for(lambda: len(children(main)) <= most, "the end of the first workers")
        before = descriptors(main)
        for _ in range(4):
            reload(server)
        wait_for(lambda: descriptors(main) <= before, "the end of the workers before")


@pytest.mark.parametrize("preload", ["off", "on"])
def test_a_version_that_cannot_be_loaded(preload: str, versions: Versions) -> None:
    reasons = {"broken": "this version is broken", "mortal": "was killed by SIGKILL"}
    with versions.serve("forking", "--preload", preload) as server:
        with Load(server.port) as load:
            for version, why in reasons.items():
                start = server.log_size()
                versions.set(version)
                refused_reload(server)
                wait_for(lambda: why in server.log(start), why)  # noqa: B023
            versions.set("3")
            reload(server)
            load.wait_version("3")
        load.check()


def test_a_configuration_that_is_wrong(versions: Versions, tmp_path: Path) -> None:
    file, pipe = tmp_path / "server.ini", tmp_path / "pipe.json"
    file.write_text("[http]\nthreads = 3\n")
    os.mkfifo(pipe)
    mistakes = {
        "thread = 3": 'server.ini:2: unknown option "thread"',
        "threads = many": 'server.ini:2: threads: "many" is not',
        "supervisor = off": "needs a restart, not a reload",
        "chdir = none": 'server.ini:2: chdir: "none"',
        f"log_config = {pipe}": "it is not a regular file",
    }
    with versions.serve("threading", "-c", str(file)) as server:
        with Load(server.port) as load:
            pid = told(server)["pid"]
            for mistake, why in mistakes.items():
                start = server.log_size()
                file.write_text(f"[http]\n{mistake}\n")
                refused_reload(server)
                assert why in server.log(start)
            file.unlink()
            assert "server.ini: cannot be read" in refused_reload(server)
            # The main process would wait for ever for somebody to write to it.
            os.mkfifo(file)
            assert "it is not a regular file" in refused_reload(server)
            assert told(server)["pid"] == pid
        load.check()


def version_at(path: Path) -> str:
    """The version that answers at a Unix socket."""
    with Connection(str(path)) as connection:
        return str(connection.request("GET", "/").json()["version"])


def test_the_configuration_is_read_again(tmp_path: Path, versions: Versions) -> None:
    """Another number of workers, another address; the one that stays is never closed."""
    one, other = tmp_path / "one.sock", tmp_path / "other.sock"
    file = tmp_path / "server.ini"
    file.write_text(f"[http]\nbind =\n  127.0.0.1:0\n  unix:{one}\nworkers = 1\n")
    with versions.serve("single", "-c", str(file), bind=()) as server:
        assert version_at(one) == "1"
        with Load(server.port) as load:
            file.write_text(f"[http]\nbind =\n  127.0.0.1:0\n  unix:{other}\nworkers = 3\n")
            versions.set("2")
            reload(server)
            assert version_at(other) == "2"
            assert not one.exists()
            load.wait_version("2")
            # Three workers make it likely that two of them answer soon.
            wait_for(lambda: len({told(server)["pid"] for _ in range(10)}) > 1, "two workers")
        load.check()
    assert not other.exists()


def test_the_logs_of_the_new_configuration(tmp_path: Path, versions: Versions) -> None:
    old, new = tmp_path / "old.log", tmp_path / "new.log"
    file = tmp_path / "server.ini"
    file.write_text(f"[http]\nerror_log = {old}\n")
    with versions.serve("forking", "-c", str(file)) as server:
        file.write_text(f"[http]\nerror_log = {new}\n")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: new.exists() and "reloaded" in new.read_text(), "the new log")
        assert "reloading" in old.read_text()
        os.kill(told(server)["pid"], signal.SIGKILL)
        wait_for(lambda: "was killed by SIGKILL" in new.read_text(), "a line of the main process")
        assert "was killed" not in old.read_text()


def test_a_reload_replaces_one_that_is_under_way(versions: Versions) -> None:
    """A version that never gets ready does not stand in the way of the next."""
    with versions.serve("single") as server:
        versions.stall()
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloading")
        assert told(server)["version"] == "1"
        versions.path.unlink()
        versions.set("3")
        reload(server)
        assert told(server)["version"] == "3"


def test_it_can_be_stopped_in_the_middle(versions: Versions) -> None:
    with versions.serve("forking") as server:
        versions.stall()
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloading")


def test_the_program_that_uses_the_library(versions: Versions) -> None:
    """What it has loaded stays loaded; its workers are new all the same."""
    text = (
        f"import os; os.environ['VERSION_FILE'] = {str(versions.path)!r}\n"
        "import poorhttp, tests.apps.versioned as app\n"
        "poorhttp.serve(app.application, '127.0.0.1:0', workers=2)\n"
    )
    with LibraryProgram(text) as program:

        def pids() -> set[int]:
            return {json.load(urlopen(program.url, timeout=HANG))["pid"] for _ in range(20)}

        before = pids()
        reload(program)
        assert not before & pids()
        program.terminate()


def test_each_version_has_its_folder(tmp_path: Path) -> None:
    """A worker of the old one that is replaced while the new one begins is of the old one."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waits = f"open({str(fifo)!r}).read()\n"
    files = {"old/app.py": answering("b'old'"), "new/app.py": answering("b'new'", waits)}
    write(tmp_path, files)
    ini = tmp_path / "server.ini"
    ini.write_text("[http]\nchdir = old\n")
    with Server("app:application", "single", "-c", str(ini), cwd=tmp_path) as server:
        (worker,) = children(server.process.pid)
        ini.write_text("[http]\nchdir = new\n")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(children(server.process.pid)) == 2, "a worker of the new version")
        os.kill(worker, signal.SIGKILL)
        assert server.get("/").body == b"old"
        fifo.write_text("")
        server.wait_log("reloaded: the new version serves")
        assert server.get("/").body == b"new"


def test_a_link_that_leads_elsewhere(tmp_path: Path) -> None:
    """A reload follows the name of the folder in which the server was started."""
    write(tmp_path, {f"{name}/app.py": answering(f"b'{name}'") for name in ("one", "two")})
    link = tmp_path / "current"
    link.symlink_to("one")
    with Server("app.py", "single", cwd=link, env={"PWD": str(link)}) as server:
        assert server.get("/").body == b"one"
        link.unlink()
        link.symlink_to("two")
        reload(server)
        assert server.get("/").body == b"two"
