"""Binary upgrade (USR2): a new main process takes over the sockets, the old one drains."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.supervisor.reloads import refused_reload
from tests.support.binary_upgrade import end, upgrade
from tests.support.health_probe import Probe
from tests.support.load import Load
from tests.support.nobody import IS_ROOT
from tests.testkit.client import HANG
from tests.testkit.process import children
from tests.testkit.server import READY, Program, command, run, wait_for
from tests.testkit.versions import Versions, told


@pytest.mark.parametrize("preload", ["off", "on"])
def test_nothing_is_lost(mode: str, preload: str, versions: Versions, folder: Path) -> None:
    """Nor does the address `admin` notice the upgrades, and Unix sockets go along."""
    pidfile, admin, path = folder / "pid", str(folder / "admin"), folder / "socket"
    options = ("--preload", preload, "--pidfile", str(pidfile), "--admin", f"unix:{admin}")
    bind = ("127.0.0.1:0", f"unix:{path}")
    with versions.serve(mode, *options, bind=bind) as server:
        file = path.stat().st_ino
        assert int(pidfile.read_text()) == server.process.pid
        with Probe(admin) as probe, Load(server.port) as load:
            for version in ("2", "3"):
                versions.set(version)
                pid = upgrade(server, pidfile, int(version) - 1)
                assert path.stat().st_ino == file
                load.wait_version(version)
            probe.wait_more()
        load.check()
        assert set(probe.told) == {(200, "ready")}
        assert server.process.returncode == 0
        assert len(READY.findall(server.log())) == 3
        os.kill(pid, signal.SIGHUP)
        server.wait_log("reloaded")
        assert path.stat().st_ino == file
        end(server, pid)
    assert os.listdir(folder) == []


def test_if_the_new_one_fails_the_old_one_goes_on(versions: Versions, tmp_path: Path) -> None:
    with versions.serve("threading", "--pidfile", str(tmp_path / "pid")) as server:
        with Load(server.port) as load:
            versions.set("broken")
            server.process.send_signal(signal.SIGUSR2)
            server.wait_log("the new main process ended with 4; this one keeps serving")
            server.wait_log("this version is broken")
            versions.set("3")
            pid = upgrade(server, tmp_path / "pid")
            load.wait_version("3")
        load.check()
        end(server, pid)


def test_a_reload_waits_for_an_upgrade(versions: Versions, tmp_path: Path) -> None:
    """If the new main process fails, the old one does what it was told meanwhile."""
    with versions.serve("single", "--pidfile", str(tmp_path / "pid")) as server:
        fifo = versions.stall()
        server.process.send_signal(signal.SIGUSR2)
        server.wait_log("a new main process is started")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("a reload has to wait for the start that is under way")
        fifo.write_text("broken")
        server.wait_log("the new main process ended with 4; this one keeps serving")
        server.wait_log("reloading")
        fifo.write_text("2")
        server.wait_log("reloaded: the new version serves")
        assert told(server)["version"] == "2"


def wait_for_successor(init: int, before: list[int]) -> None:
    """Wait until none of the children from before are left, and there is one other."""
    wait_for(
        lambda: len(children(init)) == 1 and not set(children(init)) & set(before),
        "nothing but the new main process",
    )


#: At /orphan it forks a process that outlives its parent.
DOUBLE_FORK = """
import os, time
def application(environ, start_response):
    if environ["PATH_INFO"] == "/orphan":
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(0.1)
            os._exit(0)
        os.wait()
    start_response("200 OK", [])
    return [b""]
"""


def test_the_first_process_of_a_container(tmp_path: Path) -> None:
    """It reaps orphans. A container ends with it: after an upgrade it goes on as nothing but that.

    It knows its successors, whose titles have other names if the configuration has.
    """
    app, ini = tmp_path / "forker.py", tmp_path / "server.ini"
    app.write_text(DOUBLE_FORK)
    ini.write_text("[http]\nproc_name = first\n")
    first = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        first += ["--user", "--map-root-user"]
    options = ("-c", str(ini), "--bind", "127.0.0.1:0", "--pidfile", str(tmp_path / "pid"))
    words = command("serve", f"{app}:application", *options)
    with Program(*first, *words, env={"POORHTTP_LOG_LEVEL": "debug"}) as program:
        url = program.wait_line()[2]
        with urlopen(f"{url}/orphan", timeout=HANG) as answer:
            assert answer.status == 200
        program.wait_log("which the server did not start, has ended")
        (init,) = children(program.process.pid)
        workers = children(init)
        for name in ("second", "third"):
            ini.write_text(f"[http]\nproc_name = {name}\n")
            os.kill(init, signal.SIGUSR2)
            wait_for_successor(init, workers)
            workers = children(init)
        with urlopen(url, timeout=HANG) as answer:
            assert answer.status == 200
        os.kill(init, signal.SIGHUP)
        program.wait_log("reloaded: the new version serves")
        os.kill(init, signal.SIGTERM)
        assert program.wait() == 0


def test_signals_that_come_before_the_wait_are_passed_on() -> None:
    program = """
import os, signal
from poorhttp.supervisor import binary_upgrade
wanted = [signal.SIGHUP, signal.SIGTERM]
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
pid = os.fork()
if pid == 0:
    os._exit(7 if [signal.sigwait([each]) for each in wanted] == wanted else 1)
print(binary_upgrade.wait_for_successor(pid, wanted))
"""
    done = run(sys.executable, "-c", program)
    assert (done.stdout, done.stderr) == ("7\n", "")


@pytest.mark.skipif(not IS_ROOT, reason="nobody else can become another user")
def test_an_orphan_of_the_application_is_no_successor() -> None:
    """Its command line is that of the server, but its user is not."""
    program = """
import os, sys, time
from poorhttp.supervisor import binary_upgrade
def fork(uid):
    pid = os.fork()
    if pid == 0:
        os.setresuid(uid, uid, uid)
        os.write(write, b".")
        time.sleep(60)
    os.read(read, 1)
    return pid
read, write = os.pipe()
pids = fork(65534), fork(0)
found = list(binary_upgrade._children_of_same_command())
for pid in pids:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
assert found == [pids[1]], (found, pids)
"""
    done = run(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr


def test_the_old_one_is_killed_in_the_middle(
    versions: Versions, tmp_path: Path, folder: Path
) -> None:
    """The new one has the sockets, and goes on alone."""
    pidfile = tmp_path / "pid"
    bind = ("127.0.0.1:0", f"unix:{folder}/socket")
    with versions.serve("single", "--pidfile", str(pidfile), bind=bind) as server:
        old = server.process.pid
        before = set(children(old))
        fifo = versions.stall()
        os.kill(old, signal.SIGUSR2)
        wait_for(lambda: set(children(old)) - before, "the new main process")
        (new,) = set(children(old)) - before
        # Its worker waits for a version.
        wait_for(lambda: children(new), "a worker of the new main process")
        server.process.kill()
        server.wait()
        fifo.write_text("2")
        wait_for(lambda: pidfile.read_text() == f"{new}\n", "the number of the new main process")
        assert told(server)["version"] == "2"
        end(server, new)
        assert not (folder / "socket").exists()


def test_a_new_one_that_cannot_be_executed(versions: Versions, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with versions.serve("single", cwd=gone) as server:
        gone.rmdir()
        server.process.send_signal(signal.SIGUSR2)
        server.wait_log("; this one keeps serving")
        server.wait_log("the new main process cannot begin: [Errno 2] No such file")
        why = f"{gone}, the folder in which the server was started: No such file"
        assert why in refused_reload(server)
        assert told(server)["version"] == "1"
