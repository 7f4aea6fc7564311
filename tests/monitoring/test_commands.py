"""Commands of operators in real servers, by `poorhttp ctl`."""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import os
import pty
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poorhttp.cli import main
from poorhttp.config.address import parse
from poorhttp.errors import UsageError
from poorhttp.plugins.monitor.admin import model
from poorhttp.plugins.monitor.ctl import client, commands, shape, tables
from poorhttp.plugins.monitor.ctl.arguments import SUBCOMMANDS, Arguments
from poorhttp.plugins.monitor.ctl.client import Client
from poorhttp.plugins.monitor.ctl.commands import SHOWN
from poorhttp.plugins.monitor.ctl.find import Place
from poorhttp.plugins.monitor.ctl.top_tables import TABLES
from poorhttp.plugins.monitor.derived.notices import notices
from poorhttp.plugins.monitor.derived.rates import Recent
from tests.support.binary_upgrade import wait_for_end
from tests.support.forked_command import run_command
from tests.support.health_probe import ask, wait_status
from tests.support.load import Load
from tests.support.nobody import IS_ROOT, Nobody
from tests.support.services import Tree
from tests.support.status_documents import DOCUMENTS
from tests.support.status_reader import Admin
from tests.testkit.client import HANG
from tests.testkit.process import lives, opened, stopped, workers
from tests.testkit.server import Program, Server, command, environment, join, patched, wait_for
from tests.testkit.versions import Versions, told

GATE = "tests/apps/gate.py"


class Control(Admin):
    """`poorhttp ctl` for a server whose address `admin` is a Unix socket in a folder."""

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_command("ctl", *self.options, *words)

    def says(self, *words: str) -> str:
        """What it prints, if it succeeds."""
        done = self.run(*words)
        assert (done.returncode, done.stderr) == (0, ""), (done, done.stderr)
        return done.stdout

    def fails(self, *words: str, code: int = 1) -> str:
        """What it complains of."""
        done = self.run(*words)
        assert (done.returncode, done.stdout) == (code, ""), done
        assert done.stderr.startswith("poorhttp: ")
        return done.stderr.removeprefix("poorhttp: ").strip()

    def pids(self) -> list[int]:
        """The workers that serve and go on."""
        found = json.loads(self.says("workers", "--json"))
        return [worker["pid"] for worker in found if worker["state"] == "serving"]


@pytest.fixture
def control(folder: Path) -> Control:
    return Control(folder)


def test_reload(versions: Versions, control: Control) -> None:
    with versions.serve("threading", *control.options) as server:
        with Load(server.port) as load:
            versions.set("2")
            assert control.says("reload") == "reloaded: the new version serves\n"
            assert told(server)["version"] == "2"
            versions.set("broken")
            assert re.fullmatch(
                r"not reloaded; the previous version keeps serving: tests\.apps\.versioned cannot "
                r"be imported: \w+: this version is broken \(/.*/versioned\.py, line \d+\)",
                control.fails("reload"),
            )
            versions.set("3")
            assert json.loads(control.says("--json", "reload"))["ok"] is True
            assert told(server)["version"] == "3"
        load.check()
        reloads = json.loads(control.says("status", "--json"))["reloads"]
        assert (reloads["succeeded"], reloads["failed"]) == (2, 1)
        assert reloads["last"]["result"] == "reloaded: the new version serves"
        server.tracebacks = True


def test_a_reload_that_another_one_overtakes(versions: Versions, control: Control) -> None:
    """The first is given up; both are told of the second."""
    with versions.serve("threading", *control.options) as server:
        fifo = versions.stall()
        words = command("ctl", *control.options, "reload")
        with Program(*words) as first:
            server.wait_log("reloading")
            with Program(*words) as second:
                server.wait_log("reloading", 2)
                # The worker of the first is told to end, and may have read it.
                with contextlib.suppress(OSError):
                    fifo.write_text("2")
                fifo.unlink()
                versions.path.unlink(missing_ok=True)
                versions.set("2")
                for program in (first, second):
                    assert program.wait() == 0
                    assert program.output() == "reloaded: the new version serves\n"


def test_workers_come_and_go(control: Control) -> None:
    # One alone would be replaced, because it has to share with the other.
    with Server(GATE, "threading", *control.options, "--workers", "2") as server:
        assert control.says("add") == "3 workers\n"
        wait_for(lambda: len(control.pids()) == 3, "another worker")
        before = control.pids()
        said = control.says("restart", str(before[0]))
        assert said == f"worker {before[0]} is replaced as soon as its successor serves\n"

        def replaced() -> bool:
            pids = control.pids()
            return len(pids) == 3 and before[0] not in pids

        wait_for(replaced, "the successor")
        server.wait_log(f"worker {before[0]} is replaced: an operator has asked for it")
        assert control.service()["restarts"]["asked"] == 1
        assert control.says("remove") == "2 workers\n"
        assert control.says("remove") == "1 workers\n"
        assert control.fails("remove") == "the last worker stays"
        wait_for(lambda: len(workers(server.process.pid)) == 1, "the end of a worker")
        assert control.fails("restart", "1") == "no worker is process 1"
        said = control.fails("add", "shop")
        assert said == "there is no service of this name; there are: only one, without a name"


def test_services(folder: Path) -> None:
    control = Control(folder)
    text = (
        f"[http]\ntarget = {GATE}\nadmin = unix:{control.path}\nmode = threading\nbind = "
        "127.0.0.1:0\nworkers = 1\ncgi_environment = PASSWORD=secret\n[service:shop]\n"
        "[service:chat]\nthreads = 3\nenv = TOKEN=secret\n[host:example.org]\ncgi_timeout = 7\n"
    )
    with Tree(folder, text) as server:
        assert control.says("add", "shop") == "service shop: 2 workers\n"
        assert control.says("add") == "service shop: 3 workers, service chat: 2 workers\n"
        said = control.fails("remove", "cart")
        assert said == "there is no service of this name; there are: shop, chat"
        wait_for(lambda: len(control.pids()) == 5, "all workers")
        lines = control.says("status").splitlines()
        assert re.fullmatch(r"shop +threading +3/3 +3 +0 +24 .*", lines[4]), lines
        assert re.fullmatch(r"chat +threading +2/2 +2 +0 +6 .*", lines[5]), lines
        shown = {
            (each["service"], each["option"]): (each["value"], each["origin"])
            for each in control.status()["configuration"]
        }
        file = f"{folder}/services.ini"
        assert shown["", "workers"] == ("1", f"{file}:6: workers")
        assert shown["chat", "threads"] == ("3", f"{file}:10: threads")
        assert shown["", "cgi_environment"][0] == "PASSWORD=***"
        assert shown["chat", "env"][0] == "TOKEN=***"
        found = {key: value for key, value in shown.items() if "host" in key[0]}
        origin = f"{file}:13: cgi_timeout"
        assert found == {
            (f"{service} host example.org", "cgi_timeout"): ("7", origin)
            for service in ("shop", "chat")
        }
        assert shown["shop", "threads"] == ("8", "default")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0


def test_log_level(control: Control) -> None:
    """In all processes at once: also in a worker, whose own lines are of the level `info`."""
    with Server(GATE, "threading", *control.options) as server:

        def malformed() -> None:
            with server.connect() as connection:
                connection.send(b"nonsense\r\n\r\n")
                assert connection.response().status == 400

        def lines() -> int:
            return server.log().count("refused with 400")

        malformed()
        server.wait_log("refused with 400")
        said = control.says("log-level", "error")
        assert said == "log_level is error until the next reload\n"
        malformed()
        control.says("add")
        assert lines() == 1
        assert "workers from now on" not in server.log()
        control.says("log-level", "debug")
        malformed()
        server.wait_log("refused with 400", 2)
        control.says("log-level", "warning")
        control.says("reload")
        # That of the settings, again.
        server.wait_log("/-/ready", 1)
        malformed()
        server.wait_log("refused with 400", 3)
        assert "level has to be one of debug, info" in control.fails("log-level", "verbose")


def test_drain(control: Control) -> None:
    with Server(GATE, "threading", *control.options, "--health", "/-") as server:
        at = ("127.0.0.1", server.port)
        assert control.says("drain") == "the server is not ready, and goes on serving\n"
        assert wait_status(control.path, 503) == "not ready: an operator has drained the server"
        wait_status(at, 503)
        assert server.get("/process").status == 200
        assert control.fails("reload") == "the server is drained; drain --off ends that"
        # Those that come later are not ready either.
        (worker,) = workers(server.process.pid)
        os.kill(worker, signal.SIGKILL)
        server.wait_log("is replaced")
        wait_for(lambda: len(control.pids()) == 1, "its successor")
        assert ask(at)[0] == 503
        assert control.says("drain", "--off") == "the server is ready again\n"
        assert ask(control.path) == (200, "ready")
        wait_status(at, 200)
        control.says("drain")
        assert control.says("stop") == "the server has stopped\n"
        assert server.wait() == 0
        server.ended()


@pytest.mark.parametrize("quick", [False, True])
def test_stop(quick: bool, control: Control, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Server(GATE, "threading", *control.options, "--drain-timeout", "600") as server:
        idle = server.connect()
        assert idle.request("GET", "/process").status == 200
        busy = server.enter(gate)
        words = ("stop", "--quick") if quick else ("stop",)
        stopping = Program(*command("ctl", *control.options, *words))
        with stopping:
            server.wait_log("by an operator: stop")
            if quick:
                # An idle connection is not waited for.
                assert idle.at_end()
            # Another one is no second signal, which would cut the request off.
            again = Program(*command("ctl", *control.options, "stop"))
            with again:
                server.wait_log("by an operator: stop", 2)
                assert control.fails("reload") == "the server was told to stop"
                gate.touch()
                assert busy.response().status == 200
                busy.close()
                idle.close()
                assert [program.wait() for program in (again, stopping)] == [0, 0]
            assert stopping.output() == "the server has stopped\n"
        assert server.wait() == 0
        server.ended()
    assert "no server answers at unix:" in control.fails("status", code=5)


def test_restart(versions: Versions, control: Control, tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    with versions.serve("threading", *control.options, "--pidfile", str(pidfile)) as server:
        before = control.status()
        with Load(server.port) as load:
            versions.set("2")
            said = control.says("restart")
            load.wait_version("2")
        load.check()
        after = control.status()
        assert said == f"process {after['pid']} has taken over\n"
        assert after["pid"] == int(pidfile.read_text()) != before["pid"]
        # It began with the first one.
        assert after["started"] == before["started"]
        wait_for_end(server.process.pid, server)
        versions.set("broken")
        said = control.fails("restart")
        begin = "the new main process ended with 4; this one keeps serving: "
        assert re.fullmatch(rf"{begin}.*d\.py, line \d+\)", said)
        assert lives(after["pid"])
        assert control.says("stop") == "the server has stopped\n"
        assert not lives(after["pid"])
        server.tracebacks = True
        server.ended()


def test_a_restart_with_a_configuration_that_is_wrong(control: Control, tmp_path: Path) -> None:
    ini = tmp_path / "server.ini"
    ini.write_text(f"[http]\nchdir = {Path.cwd()}\ntarget = {GATE}\n")
    with Server(GATE, "threading", *control.options, "-c", str(ini)):
        ini.write_text("[http]\nthreads = +x\n")
        why = f"{ini}:2: threads: "
        said = control.fails("restart")
        begin = "the new main process ended with 3; this one keeps serving: "
        assert said.startswith(f"{begin}{why}"), said
        begin = "not reloaded; the previous version keeps serving: "
        assert control.fails("reload").startswith(f"{begin}{why}")


def test_requests(control: Control, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Server(GATE, "threading", *control.options) as server:
        assert control.says("requests") == "no request is in flight\n"
        busy = server.connect()
        busy.send_request("GET", f"/wait?{gate}")
        server.wait_log("entered")
        (line,) = control.says("requests").splitlines()[1:]
        assert line.endswith(f"GET /wait?{gate}")
        (found,) = json.loads(control.says("--json", "requests"))
        assert found["pid"] in control.pids()
        assert (found["number"], found["line"]) == (1, f"GET /wait?{gate}")
        (stack,) = json.loads(control.says("stacks", "--json"))["workers"]
        frames = [frame["function"] for each in stack["stacks"] for frame in each["frames"]]
        assert "wait" in frames
        said = control.says("stacks", str(found["pid"]))
        assert f"GET /wait?{gate}" in said
        assert "no worker is process 1" in control.fails("stacks", "1")
        assert "RSS" in control.says("heap")
        image = tmp_path / "profile.svg"
        assert str(image) in control.says("profile", "1", "--output", str(image))
        assert image.read_text().startswith(("<svg", "<?xml"))
        assert "wait" in control.says("profile", "1", str(found["pid"]), "--format", "collapsed")
        assert "form has to be one of svg" in control.fails("profile", "1", "--format", "gif")
        assert "number from 1 to 300" in control.fails("profile", "301")
        gate.touch()
        assert busy.response().status == 200


def test_a_full_worker(control: Control, tmp_path: Path) -> None:
    """It is no dead one, and what waits in the kernel for it is counted."""
    gate = tmp_path / "gate"
    options = ("--workers", "1", "--threads", "1")
    with Server(GATE, "threading", *control.options, *options) as server:
        kept = server.connect()
        assert kept.request("GET", "/process").status == 200
        busy = server.enter(gate)
        kept.send_request("GET", "/process")
        new = server.connect()
        new.send_request("GET", "/process")

        def known(*names: str) -> list[Any]:
            service: dict[str, Any] = {**control.service()}
            return [service[name] for name in names]

        # One that was accepted, and one that was not.
        wait_for(lambda: known("unread", "full") == [1, 1], "a full worker")
        assert known("accept_queues")[0][0]["waiting"] == 1
        text = control.says("status")
        why = "all threads of the worker run requests, and no worker answers"
        assert f": not ready: {why}\n" in text
        row = next(line for line in text.splitlines() if line.startswith("threading"))
        assert row.split()[:9] == ["threading", "1/1", "0", "+", "1", "full", "1", "1", "2"]
        assert "1 of 1 workers are full: all their threads run requests" in text
        assert "1 requests on accepted connections wait to be read" in text
        (line,) = control.says("workers").splitlines()[1:]
        assert " full " in line
        assert wait_status(control.path, 503) == f"not ready: {why}"
        gate.touch()
        for each in (busy, kept, new):
            assert each.response().status == 200
        wait_for(lambda: control.status()["ready"], "an answer")
        assert known("unread", "full", "answering") == [0, 0, 1]
        # One that does not run at all is silent.
        (worker,) = workers(server.process.pid)
        with stopped(worker):
            wait_for(lambda: not control.status()["ready"], "a worker that was stopped")
            assert known("full", "answering") == [0, 0]


def test_upgraded_connections(mode: str, control: Control) -> None:
    """They are requests in flight for an operator, also where they take no thread."""
    with Server("tests/apps/protocol_upgrade.py", mode, *control.options) as server:
        connection = server.connect()
        connection.send_request("GET", "/echo", "Connection: upgrade", "Upgrade: chat")
        assert connection.interim() == 101
        (line,) = control.says("requests").splitlines()[1:]
        assert line.endswith("GET /echo (upgraded)")
        connection.close()
        wait_for(lambda: control.says("requests") == "no request is in flight\n", "the end of it")


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("show", [tables.status, tables.workers, tables.requests])
def test_tables_control_no_terminal(name: str, show: Any) -> None:
    text = show(DOCUMENTS[name]())
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.endswith("\n")


def test_profiles_control_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Names in it are the application's, or of whoever answers in place of the server."""
    commands._print_result("profile", {"text": "a\x1b[2J (b.py:1) 3\n", "notes": ["\x1b"]}, "")
    shown = capsys.readouterr()
    assert shown.out == "a\\x1b[2J (b.py:1) 3\n"
    assert "\x1b" not in shown.err


def test_periods() -> None:
    texts = [tables.period(number) for number in (0, 59.9, 61, 7200, 900_000)]
    assert texts == ["0 s", "59 s", "1 min 1 s", "2 h 0 min", "10 d 10 h"]


def test_on_a_terminal_without_unicode(control: Control) -> None:
    """What the terminal lacks is escaped."""
    folder = os.path.dirname(control.path) + "/Ünï"
    os.mkdir(folder)
    os.symlink(os.path.abspath("tests/apps/gate.py"), f"{folder}/gäte.py")
    with Server(f"{folder}/gäte.py", "threading", *control.options):
        ours, theirs = pty.openpty()
        words = command("ctl", *control.options, "status")
        env = environment({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
        done = subprocess.run(words, env=env, stdout=theirs, timeout=HANG, check=False)
        os.close(theirs)
        assert done.returncode == 0
        text = os.read(ours, 65536)
        os.close(ours)
        assert rb"/\xdcn\xef/g\xe4te.py" in text


# How it finds a server


def secret(path: Path, token: str = "a-token-of-this-test") -> Path:
    """A file with a token, which nobody else can read."""
    path.write_text(token)
    path.chmod(0o600)
    return path


def test_ways_to_a_server(folder: Path) -> None:
    config = folder / "server.ini"
    pidfile = folder / "pid"
    token = ("--token-file", str(secret(folder / "token")))

    def configure(options: str) -> None:
        config.write_text(f"[http]\nchdir = {folder}\npidfile = {pidfile}\n{options}\n")

    def ctl(*words: str, **env: str) -> tuple[int, str]:
        done = run_command("ctl", *words, env=env)
        return done.returncode, done.stdout + done.stderr

    configure("admin = 127.0.0.1:0\nadmin_token_file = token")
    app = str(Path(GATE).absolute())
    # The application is asked for the status document, which it does not have.
    with Server(app, "threading", "-c", str(config), tracebacks=True) as server:
        (where,) = re.findall(r"the status page is at http://(\S+)/ ", server.log())
        pid = f"process {server.process.pid},"
        # The system has chosen the port.
        assert pid in ctl("-c", str(config), "status")[1]
        assert pid in ctl("--pidfile", str(pidfile), "status", *token)[1]
        assert pid in ctl("status", f"--admin={where}", *token)[1]
        assert pid in ctl(f"--admin=http://{where}/", "status", *token)[1]
        at = {"POORHTTP_ADMIN": where, "POORHTTP_ADMIN_TOKEN_FILE": str(folder / "token")}
        assert pid in ctl("status", **at)[1]
        assert ctl("--admin", where, "status") == (
            3,
            f"poorhttp: {where}: it needs a token: --token-file FILE, its admin_token_file\n",
        )
        other = secret(folder / "other", "another-token-of-this")
        code, said = ctl("--admin", where, "status", "--token-file", str(other))
        assert (code, "it refuses this token" in said) == (3, True)
        code, said = ctl("--admin", f"127.0.0.1:{server.port}", "status")
        assert (code, "this is not the admin address of a poorhttp server" in said) == (5, True)
        # A path that counts from chdir.
        configure("admin = unix:admin")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded")
        wait_for((folder / "admin").exists, "the socket")

        def addresses() -> list[str]:
            """At which a command finds it, by the names of the memory."""
            names = [each.partition("poorhttp-admin ") for each in opened(server.process.pid)]
            return [address for _, found, address in names if found]

        wait_for(
            lambda: addresses() and not any(where in each for each in addresses()),
            "the process at the new address, and not at the former one",
        )
        for words in (("-c", str(config)), ("--pidfile", str(pidfile))):
            assert pid in ctl(*words, "status")[1]
        configure("admin = off")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded", 2)
        code, said = ctl("-c", str(config), "status")
        assert (code, "admin is not set; set admin = " in said) == (3, True)
        wait_for(
            lambda: "is its option admin set?" in ctl("--pidfile", str(pidfile), "status")[1],
            "the end of the previous address",
        )
        pidfile_text = pidfile.read_text()
    code, said = ctl("--pidfile", str(pidfile), "status")
    assert (code, "is the server running?" in said) == (3, True)
    ended = f"process {pidfile_text.strip()} has ended"
    for text, why in ((pidfile_text, ended), ("none", "does not hold a process ID")):
        pidfile.write_text(text)
        assert why in ctl("--pidfile", str(pidfile), "status")[1]


def answer(head: str, body: str = "", kind: str = "application/json", length: int = -1) -> bytes:
    """A response of a program that is no server of ours."""
    fields = f"Content-Type: {kind}\r\nContent-Length: {len(body) if length < 0 else length}\r\n"
    return f"HTTP/1.1 {head}\r\n{fields}\r\n{body}".encode()


#: What each document has, and then a member of this value.
IN_A_DOCUMENT = '{"version": "1", "pid": 1, "services": [{}], "ok": true, "message": "", "x": %s}'

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

#: What another program may answer at the address.
OTHER_PROGRAMS = {
    "JSON": answer("200 OK", '{"status": "ok"}'),
    "a list": answer("200 OK", "[]"),
    "a JSON error": answer("404 Not Found", '{"message": null}'),
    "nothing in words": answer("202 Accepted", '{"ok": false, "message": ""}'),
    "no words of a success": answer("202 Accepted", '{"ok": true, "message": ""}'),
    "a failure that is accepted": answer("202 Accepted", '{"ok": false, "message": "queued"}'),
    "HTML": answer("200 OK", "<html>", "text/html"),
    "a gateway": answer("503 Service Unavailable", "<html>", "text/html"),
    "a redirect": answer("302 Found\r\nLocation: https://localhost/"),
    "a login": answer('401 Unauthorized\r\nWWW-Authenticate: Basic realm="router"'),
    "a truth value for a number": answer("200 OK", '{"version": "1", "pid": true, "services": []}'),
    **{
        value[:9]: answer("200 OK", IN_A_DOCUMENT % value)
        for value in ("NaN", "-Infinity", "1e999", "9" * 21, "[" * 900 + "]" * 900)
    },
    "half a body": answer("200 OK", '{"ok":', length=100),
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "half a chunk": CHUNKED + b'ff\r\n{"ok"',
    "no chunk": CHUNKED + b"zz\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "TLS": b"\x15\x03\x03\x00\x02\x02\x32",
    "nothing": b"",
}


@contextlib.contextmanager
def answering(response: bytes) -> Iterator[str]:
    """An address at which each connection gets this response."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with listener.accept()[0] as client:
                        client.recv(65536)
                        client.sendall(response)
                        # A socket closed with bytes unread resets the connection.
                        client.shutdown(socket.SHUT_WR)
                        while client.recv(65536):
                            pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            join(thread)


@pytest.mark.parametrize("name", OTHER_PROGRAMS)
def test_another_program(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(OTHER_PROGRAMS[name]) as where:
        for word in (*SHOWN, "reload", "stop", "drain", "add", "stacks"):
            assert main(["ctl", "--admin", where, word]) == 5
            said = capsys.readouterr()
            begin = f"poorhttp: {where}: this is not the admin address of a poorhttp server"
            assert said.err.startswith(begin), (word, said)
            assert said.err.count("\n") == 1
            assert not said.out


def test_a_program_that_goes_on_sending(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes soon after the one before, and the answer is never complete."""
    monkeypatch.setattr(client, "LONGEST", 1.0)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as peer:
                peer.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not select.select([peer], [], [], 0.05)[0] or peer.recv(65536):
                    peer.sendall(b"a")

        thread = threading.Thread(target=serve)
        thread.start()
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        assert main(["ctl", "--admin", where, "status"]) == 5
        join(thread)
    assert capsys.readouterr().err.endswith("no complete answer in 1 s\n")


@pytest.mark.parametrize("job", ["../é", "\ud800", "x" * 100_000, "a b\r\nX: y", "", 5, None])
def test_a_job_with_a_name_of_no_server(job: object, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps({"ok": True, "message": "reload is under way", "job": job})
    with answering(answer("202 Accepted", text)) as where:
        assert main(["ctl", "--admin", where, "reload"]) == 5
    assert "this is not the admin address of a poorhttp server" in capsys.readouterr().err


def test_a_profile_that_would_control_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = dict.fromkeys(("text", "samples", "seconds"), "\x1b[2J")
    text = json.dumps({"ok": True, "message": "", "result": result})
    with answering(answer("200 OK", text)) as where:
        output = ("--output", str(tmp_path / "profile"))
        assert main(["ctl", "--admin", where, "profile", "1", *output]) == 0
    assert capsys.readouterr().out.startswith(r"\x1b[2J samples of \x1b[2J s are in ")


#: What may stand at each place of a document; `OTHER_PROGRAMS` has what is no number.
HOSTILE_VALUES: tuple[Any, ...] = (2**64, 1e300, -(2**63), True, None, "x\x1b[2J", [], {})


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container of a document with each of its keys, of lists the first."""
    for key in value if isinstance(value, dict) else [0][: len(value)]:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def test_a_document_with_hostile_values_is_refused_or_shown() -> None:
    document: Any = DOCUMENTS["troubled"]()
    del document["services"][1:]
    for many in ("history", "workers", "slowest", "errors", "refusals"):
        del document["services"][0][many][1:]
    document["metrics"] = document["configuration"] = []
    earlier = copy.deepcopy(document)
    shown = 0
    for container, key in list(places(document)):
        before = container[key]
        for value in HOSTILE_VALUES:
            container[key] = value
            found: Any = shape.read(json.dumps(document).encode())
            if found is None or shape.missing(found, shape.STATUS):
                continue
            shown += 1
            recent = Recent()
            recent.add(earlier)
            recent.add(found)
            texts = [show(found) for show in SHOWN.values()]
            for make in TABLES.values():
                table = make()
                texts += table.lines(table.rows(found, recent), 100, 0, 40)[1]
            notices(found, recent)
            for service in found["services"]:
                recent.rates(service)
            time.localtime(found["now"])
            assert "\x1b" not in "".join(texts), (key, value)
        container[key] = before
    assert shown > 250


def test_a_main_process_that_was_killed(
    control: Control, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pidfile = tmp_path / "pid"
    options = ("--pidfile", str(pidfile), "--graceful-timeout", "600")
    with Server(GATE, "threading", *control.options, *options) as server:
        busy = server.enter(tmp_path / "gate")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(HANG)
        for word in SUBCOMMANDS.keys() - {"top"}:
            arguments = {"log-level": "debug", "profile": "1", "threads": "4"}
            more = [arguments[word]] if word in arguments else []
            assert main(["ctl", *control.options, word, *more]) == 5, word
            said = capsys.readouterr().err
            # While its process that answers there ends, the main process is missing.
            assert re.match(
                rf"poorhttp: (no server answers at unix:{control.path}: |"
                rf"unix:{control.path}: the main process does not answer)",
                said,
            ), said
        assert main(["ctl", "--pidfile", str(pidfile), "status"]) == 3
        assert f"process {server.process.pid} has ended" in capsys.readouterr().err
        (tmp_path / "gate").touch()
        assert busy.response().status == 200
        server.kill()


def test_another_version(capsys: pytest.CaptureFixture[str]) -> None:
    document: Any = DOCUMENTS["in order"]()
    del document["services"][0]["unread"]
    document["version"] = "0.9\x1b[2J"
    with answering(answer("200 OK", json.dumps(document))) as where:
        assert main(["ctl", "--admin", where, "status"]) == 5
        said = capsys.readouterr().err
        # What is to be stopped or replaced may be older than this command.
        assert Client(Place(parse(where))).pid() == document["pid"]
        assert main(["ctl", "--admin", where, "status", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == document
    form = "whose status has another form (services[0].unread)"
    assert rf"this is poorhttp 0.9\x1b[2J, {form}" in said


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_shape_of_the_document(name: str) -> None:
    document: Any = DOCUMENTS[name]()
    assert shape.missing(document, shape.STATUS) == ""
    worker = document["services"][0]["workers"][0]
    place = "services[0].workers[0].figures.waiting.counts"
    wrong: tuple[Any, ...] = (None, "1", True, [])
    for value in wrong:
        worker["figures"]["waiting"]["counts"][3] = value
        assert shape.missing(document, shape.STATUS) == f"{place}[3]"
    del worker["figures"]["waiting"]["counts"][3]
    assert shape.missing(document, shape.STATUS) == place


def test_the_shape_is_that_of_the_model() -> None:
    classes = {
        node.name: [each.target.id for each in node.body if isinstance(each, ast.AnnAssign)]  # type: ignore[union-attr]
        for node in ast.walk(ast.parse(Path(model.__file__).read_text()))
        if isinstance(node, ast.ClassDef)
    }
    classes["Request"] = classes["InFlight"]
    names = ("Status", "Service", "Worker", "Figures", "Request", "Finished", "Refusal", "Slot")
    for name in names:
        found: Any = getattr(shape, name.upper())
        assert sorted(found) == sorted(classes[name]), name


MISTAKES = [
    ("statu", 'unknown command "ctl statu"; did you mean "status"?'),
    ("--admin", "--admin: needs a value: --admin ADDRESS"),
    ("--json", "no command; write poorhttp ctl status, or see poorhttp ctl --help"),
    ("--jsn status", 'unknown option "--jsn"; did you mean "--json"?'),
    ("--json=1 status", "--json takes no value"),
    ("--json --json status", "--json is given twice"),
    ("-c a --admin b status", "--admin and --config both name a server; choose one"),
    ("log-level", "log-level: LEVEL is missing; write poorhttp ctl log-level LEVEL"),
    ("reload now", "reload: now is one argument too many; write poorhttp ctl reload"),
    ("reload --quick", "reload has no option --quick; write poorhttp ctl reload"),
    ("restart 1 2", "restart: 2 is one argument too many; write poorhttp ctl restart [PID]"),
]


@pytest.mark.parametrize(("words", "complaint"), MISTAKES)
def test_mistakes(words: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(complaint)}$"):
        Arguments(words.split())


def test_options_before_and_behind_the_command() -> None:
    assert Arguments([]).command == ""
    for words in ("--admin a profile 3 7 -o x --json", "profile --json 3 -o=x 7 --admin=a"):
        found = Arguments(words.split())
        assert found.command == "profile"
        assert found.arguments == {"SECONDS": "3", "PID": "7"}
        assert found.options == {"--admin": "a", "--output": "x", "--json": ""}


def test_help() -> None:
    for words in (("ctl",), ("ctl", "--help"), ("ctl", "status", "-h")):
        done = run_command(*words)
        assert done.returncode == 0
        assert all(f"  {name}" in done.stdout for name in SUBCOMMANDS)
    assert "  ctl " in run_command("--help").stdout


def test_no_answer_of_the_main_process(control: Control) -> None:
    launcher = patched("poorhttp.plugins.monitor.admin.questions", TIMEOUT=1.0)
    with Server(GATE, "threading", *control.options, launcher=launcher) as server:
        with stopped(server.process.pid):
            said = control.fails("status", code=5)
        assert said == f"unix:{control.path}: the main process does not answer"
        document = control.status()
        assert document["pid"] == server.process.pid
        made = DOCUMENTS["in order"]()
        assert kinds(document, 1) == kinds(made, 1)
        (ours,), (other,) = document["services"], made["services"]
        assert ours.keys() == other.keys()
        assert kinds(ours["figures"]) == kinds(other["figures"])
        assert kinds(ours["workers"][0]) == kinds(other["workers"][0])


def kinds(value: Any, depth: int = 9) -> Any:
    """A value with types in place of all that is no object, to a depth."""
    if isinstance(value, dict):
        return {key: kinds(each, depth - 1) if depth > 1 else 0 for key, each in value.items()}
    return type(value) if not isinstance(value, (int, float)) else float


#: A process of nobody that looks like a server: memory of the name, and an address that answers.
IMPOSTOR = """
import os, pwd, socket, sys, ctypes
way, folder = sys.argv[1:]
nobody = pwd.getpwnam("nobody")
os.setgroups([])
os.setresgid(nobody.pw_gid, nobody.pw_gid, nobody.pw_gid)
os.setresuid(nobody.pw_uid, nobody.pw_uid, nobody.pw_uid)
if way == "unix":
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(f"{folder}/admin")
    os.chmod(f"{folder}/admin", 0o777)
    where = f"unix:{folder}/admin"
else:
    sock = socket.create_server(("127.0.0.1", 0))
    where = f"http://127.0.0.1:{sock.getsockname()[1]}"
sock.listen()
memory = os.memfd_create(f"poorhttp-admin {where}")
# Its folder in /proc belongs to root from now on.
ctypes.CDLL(None).prctl(4, 0)
with open(f"{folder}/pid", "w") as file:
    print(os.getpid(), file=file)
print(where.removeprefix("http://"), flush=True)
while True:
    client = sock.accept()[0]
    client.settimeout(1)
    try:
        print(client.recv(65536), flush=True)
    except OSError:
        pass
    client.close()
"""


@pytest.mark.skipif(not IS_ROOT, reason="nobody else can become another user")
@pytest.mark.parametrize("way", ["unix", "tcp"])
def test_the_token_goes_to_no_stranger(way: str, folder: Path, nobody: Nobody) -> None:
    """A process of another user has the place of the server, in each way to name one."""
    folder.chmod(0o1777)
    token = secret(folder / "token")
    words = (sys.executable, "-c", IMPOSTOR, way, str(folder))
    with Program(*words, env=nobody.env) as impostor:
        wait_for(impostor.output, "the address")
        where = impostor.output().strip()
        ini = folder / "poorhttp.ini"
        ini.write_text(f"[http]\nadmin = {where}\nadmin_token_file = {token}\n")
        given = ("--token-file", str(token))
        ways = [("--pidfile", str(folder / "pid")), ("--admin", where), ("-c", str(ini))]
        for named in ways:
            done = run_command("ctl", *named, "status", *given)
            assert (done.returncode, "user nobody" in done.stderr) == (3, True), done.stderr
            assert "it was not sent" in done.stderr
        # Nor is it found without options, among servers of other tests.
        done = run_command("ctl", "status")
        assert where not in done.stdout + done.stderr
        assert "a-token" not in impostor.output()
        # Who may read the token may be sent it.
        os.chown(token, pwd.getpwnam("nobody").pw_uid, -1)
        run_command("ctl", "--admin", where, "status", *given)
        assert "a-token" in impostor.output()
        # A file of nobody names no process of root.
        (folder / "pid").unlink()
        os.mkfifo(folder / "pid")
        done = run_command("ctl", "--pidfile", str(folder / "pid"), "status")
        assert done.stderr == f"poorhttp: {folder}/pid: it is not a regular file\n"
        (folder / "pid").unlink()
        with Server(GATE, "threading", "--admin", "127.0.0.1:0") as server:
            (folder / "pid").write_text(f"{server.process.pid}\n")
            os.chown(folder / "pid", pwd.getpwnam("nobody").pw_uid, -1)
            done = run_command("ctl", "--pidfile", str(folder / "pid"), "status")
            assert "belongs to user nobody, and names process" in done.stderr
            (folder / "pid").rename(folder / "there")
            (folder / "pid").symlink_to(folder / "there")
            os.lchown(folder / "pid", pwd.getpwnam("nobody").pw_uid, -1)
            done = run_command("ctl", "--pidfile", str(folder / "pid"), "status")
            assert "is a symbolic link of user nobody" in done.stderr


@pytest.mark.skipif(not IS_ROOT, reason="nobody else can give files away")
@pytest.mark.parametrize(
    ("owner", "group", "mode", "who"),
    [
        ("nobody", "root", 0o644, "user nobody, who may not read the token,"),
        ("root", "mail", 0o664, "user mail, who may not read the token,"),
        ("root", "root", 0o646, "everybody"),
    ],
)
def test_a_configuration_of_a_stranger_sends_no_token(
    owner: str, group: str, mode: int, who: str, folder: Path
) -> None:
    """The file names both the token and where it is sent, here to a service of the asking user."""
    token = secret(folder / "token")
    ini = folder / "poorhttp.ini"
    with socket.create_server(("127.0.0.1", 0)) as service:
        where = f"127.0.0.1:{service.getsockname()[1]}"
        ini.write_text(f"[http]\nadmin = {where}\nadmin_token_file = {token}\n")
        shutil.chown(ini, owner, group)
        ini.chmod(mode)
        done = run_command("ctl", "-c", str(ini), "status")
        assert (done.returncode, done.stderr) == (
            3,
            f"poorhttp: {ini}:3: admin_token_file: {who} may write {ini}: the token was not sent; "
            "name it with --token-file\n",
        )
        assert not select.select([service], [], [], 0)[0], "it connected"
