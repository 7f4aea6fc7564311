"""The admin address: health checks and metrics from a process of their own."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.binary_upgrade import upgrade, wait_for_end
from tests.support.forked_command import run_command
from tests.support.health_probe import Probe, ask, wait_status
from tests.support.load import Load
from tests.support.nobody import IS_ROOT, Nobody
from tests.testkit.client import HANG, BadResponse, Closed, Connection
from tests.testkit.process import answers_at_admin, children, lives, opened, workers
from tests.testkit.server import READY, Server, command, environment, patched, wait_for
from tests.testkit.versions import APP, Versions, told

GATE = "tests/apps/gate.py"
NEVER = "600"

#: Method, target, status, and the beginning of the text.
QUESTIONS = [
    ("GET", "/-/live", 200, "live\n"),
    ("GET", "/-/ready", 200, "ready\n"),
    ("GET", "/-/ready?of=me", 200, "ready\n"),
    ("GET", "/-/metrics", 200, "# HELP poorhttp_info "),
    ("HEAD", "/-/live", 200, ""),
    ("HEAD", "/-/ready", 200, ""),
    ("HEAD", "/-/metrics", 200, ""),
    ("GET", "/metrics", 200, "# HELP poorhttp_info "),
    ("POST", "/-/ready", 405, "this is read-only: use GET\n"),
    ("PUT", "/-/metrics", 405, "this is read-only: use GET\n"),
    ("GET", "/-/control/stop", 405, '{"ok":false,"message":"send commands with POST"}'),
    ("GET", "/-/", 404, "there are /, /-/live, /-/ready, /-/metrics"),
    ("POST", "/-/stop", 404, "there are"),
]

SAMPLE = re.compile(r'([a-z2_]+)(?:\{([a-z_]+="[^"\\\n]*"(?:,[a-z_]+="[^"\\\n]*")*)\})? (\S+)')


def read(text: str) -> tuple[dict[str, str], dict[str, float]]:
    """Types and samples of the text format of Prometheus, which is read strictly."""
    types: dict[str, str] = {}
    samples: dict[str, float] = {}
    described = ""
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            described = line.split()[2]
            assert described not in types
            assert len(line.split()) > 3
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name == described
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            assert name.removeprefix(described) in ("", "_bucket", "_sum", "_count")
            key = f"{name}{{{labels}}}" if labels else name
            assert key not in samples
            samples[key] = float(value)
    return types, samples


class Admin:
    """The admin address of a server: a Unix socket in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "admin")
        self.options = ("--admin", f"unix:{self.path}")

    def metrics(self) -> dict[str, float]:
        """The samples, by name and labels."""
        status, text = ask(self.path, "/-/metrics")
        assert status == 200
        return read(text + "\n")[1]

    def wait(self, name: str, value: float) -> None:
        """Wait until a metric has a value."""
        wait_for(lambda: self.metrics()[name] == value, f"{name} {value}")


@pytest.fixture
def admin(folder: Path) -> Admin:
    return Admin(folder)


def test_questions(mode: str, admin: Admin) -> None:
    with Server(GATE, mode, *admin.options) as server:
        with Connection(admin.path) as kept:
            for method, target, status, text in QUESTIONS:
                for connection in (kept, Connection(admin.path)):
                    response = connection.request(method, target)
                    assert response.status == status
                    assert response.body.decode().startswith(text)
                    assert response.get("Cache-Control") == "no-store"
                    if connection is not kept:
                        connection.close()
            response = kept.request("GET", "/-/metrics")
            assert response.get("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
        server.wait_log("the status page is at unix:")
        # The ordinary address knows nothing of it.
        assert server.get("/-/live").status == 500
        server.tracebacks = True
    assert not os.path.exists(admin.path)


# Whether it is ready


def test_not_ready_when_nobody_answers(mode: str, admin: Admin) -> None:
    """One that is stopped does not answer, and no question is needed to know that."""
    launcher = patched("poorhttp.plugins.monitor.answers", SILENCE=3600)
    with Server(GATE, mode, *admin.options, "--workers", "2", launcher=launcher) as server:
        one, other = workers(server.process.pid)
        os.kill(one, signal.SIGSTOP)
        admin.wait("poorhttp_workers_answering", 1)
        # One that answers is enough.
        assert ask(admin.path) == (200, "ready")
        os.kill(other, signal.SIGSTOP)
        assert wait_status(admin.path, 503) == "not ready: no worker answers"
        assert admin.metrics()["poorhttp_ready"] == 0
        assert admin.metrics()["poorhttp_workers_answering"] == 0
        assert admin.metrics()["poorhttp_workers_alive"] == 2
        assert ask(admin.path, "/-/live") == (200, "live")
        for pid in (one, other):
            os.kill(pid, signal.SIGCONT)
        wait_status(admin.path, 200)
        admin.wait("poorhttp_workers_answering", 2)


def test_each_service_must_answer(admin: Admin, folder: Path) -> None:
    config = folder / "poorhttp.ini"
    config.write_text(
        f"[http]\ntarget = {GATE}\nadmin = unix:{admin.path}\n"
        "[service:shop]\nbind = 127.0.0.1:0\nmode = single\n"
        "[service:chat]\nbind = 127.0.0.1:0\nthreads = 3\n"
    )
    text = [*command("serve", "-c", str(config))]
    process = subprocess.Popen(text, env=environment(), stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: is_listening(admin.path), "the admin address")
        wait_status(admin.path, 200)
        samples = admin.metrics()
        assert samples['poorhttp_capacity{service="shop"}'] == 1
        assert samples['poorhttp_capacity{service="chat"}'] == 3
        assert samples["poorhttp_ready"] == 1
        stopped = workers(process.pid)[0]
        os.kill(stopped, signal.SIGSTOP)
        assert wait_status(admin.path, 503) == "not ready: service shop: no worker answers"
        os.kill(stopped, signal.SIGCONT)
        wait_status(admin.path, 200)
    finally:
        process.terminate()
        assert process.wait(HANG) == 0


def is_listening(path: str) -> bool:
    """Whether somebody can connect: the file is there a moment earlier."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


def test_not_ready_while_starting(versions: Versions, admin: Admin) -> None:
    fifo = versions.stall()
    with subprocess.Popen(
        command("serve", APP, "--bind", "127.0.0.1:0", *admin.options),
        env=environment({"VERSION_FILE": str(versions.path)}),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        wait_for(lambda: is_listening(admin.path), "the admin address")
        assert wait_status(admin.path, 503) == "not ready: the server is starting"
        assert ask(admin.path, "/-/live") == (200, "live")
        fifo.write_text("1")
        wait_status(admin.path, 200)
        process.terminate()
        assert READY.search(process.stderr.read())
    assert process.returncode == 0


def test_not_ready_while_draining(mode: str, admin: Admin, tmp_path: Path) -> None:
    """It tells until the end."""
    with Server(GATE, mode, *admin.options, "--drain-delay", NEVER) as server:
        assert ask(admin.path) == (200, "ready")
        busy = server.enter(gate := tmp_path / "gate")
        server.process.send_signal(signal.SIGTERM)
        assert wait_status(admin.path, 503) == "not ready: the server was told to stop"
        assert admin.metrics()["poorhttp_ready"] == 0
        assert server.get("/process").status == 200
        server.process.send_signal(signal.SIGTERM)
        assert ask(admin.path)[0] == 503
        admin.wait("poorhttp_requests_in_flight", 1)
        gate.touch()
        assert busy.response().status == 200
        assert server.wait() == 0
        server.ended()
    assert not os.path.exists(admin.path)


# What stays as it is


def test_reloads_do_not_disturb_it(mode: str, versions: Versions, admin: Admin) -> None:
    options = (*admin.options, "--workers", "2", "--preload", "on", "--max-requests", "50")
    with versions.serve(mode, *options) as server:
        with Probe(admin.path) as probe, Load(server.port) as load:
            for version in ("2", "3"):
                versions.set(version)
                server.process.send_signal(signal.SIGHUP)
                server.wait_log("reloaded", int(version) - 1)
                load.wait_version(version)
            versions.set("broken")
            server.process.send_signal(signal.SIGHUP)
            server.wait_log("not reloaded")
            probe.wait_more()
            versions.set("4")
        load.check()
        assert set(probe.told) == {(200, "ready")}
        # What was counted before a reload counts.
        assert admin.metrics()["poorhttp_requests_total"] >= load.answers.total()
        server.tracebacks = True


def test_upgrades_do_not_disturb_it(mode: str, versions: Versions, admin: Admin) -> None:
    pidfile = Path(admin.path).with_name("pid")
    with versions.serve(mode, *admin.options, "--pidfile", str(pidfile)) as server:
        with Probe(admin.path) as probe, Load(server.port) as load:
            for version in ("2", "3"):
                versions.set(version)
                pid = upgrade(server, pidfile, int(version) - 1)
                load.wait_version(version)
            probe.wait_more()
        load.check()
        assert set(probe.told) == {(200, "ready")}
        os.kill(pid, signal.SIGTERM)
        wait_for_end(pid, server)
        server.ended()
    assert not os.path.exists(admin.path)


def test_the_address_follows_a_reload(admin: Admin, folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "poorhttp.ini"

    def configure(where: str) -> None:
        config.write_text(f"[http]\nadmin = {where}\n")

    def reload(said: str) -> None:
        times = server.log().count(said)
        server.process.send_signal(signal.SIGHUP)
        server.wait_log(said, times + 1)

    other = Admin(tmp_path)
    configure(f"unix:{admin.path}")
    with Server(GATE, "threading", "-c", str(config)) as server:
        with Connection(admin.path) as kept:
            assert kept.request("GET", "/-/ready").status == 200
            configure(f"unix:{other.path}")
            reload("reloaded: the new version serves")
            assert ask(other.path) == (200, "ready")
            assert not os.path.exists(admin.path)
            # Whoever was there may ask once more.
            assert kept.request("GET", "/-/ready").status == 200
        configure("127.0.0.1:1:1")
        reload("not reloaded")
        configure("192.0.2.1:80")
        reload("not reloaded; the previous version keeps serving: cannot listen on 192.0.2.1:80")
        assert ask(other.path) == (200, "ready")
        configure("off")
        reload("reloaded: the new version serves")
        assert not os.path.exists(other.path)
        configure("127.0.0.1:0")
        reload("reloaded: the new version serves")
        (port,) = re.findall(r"the status page is at http://127.0.0.1:(\d+)", server.log())
        # A reload that fails after the address was opened gives it up again.
        (tmp_path / "broken.py").write_text("import nothing_of_that_name")
        config.write_text(
            f"[http]\nadmin = unix:{admin.path}\nmount = /x={tmp_path}/broken.py:application\n"
        )
        reload(f"not reloaded; the previous version keeps serving: {config}:3: mount: ")
        assert not os.path.exists(admin.path)
        assert ask(("127.0.0.1", int(port))) == (200, "ready")
        server.tracebacks = True


def test_workers_have_nothing_of_it(mode: str, versions: Versions, admin: Admin) -> None:
    """Neither the socket nor the connections: their ends would not be seen."""
    with versions.serve(mode, *admin.options, "--workers", "1") as server:
        with Connection(admin.path) as connection:
            assert connection.request("GET", "/-/ready").status == 200
            # Now the main process has a connection, and forks.
            server.process.send_signal(signal.SIGHUP)
            server.wait_log("reloaded: the new version serves")
            (worker,) = [pid for pid in workers(server.process.pid) if pid == told(server)["pid"]]
            assert not sockets(worker) & sockets(server.process.pid)
        wait_status(admin.path, 200)


def sockets(pid: int) -> set[str]:
    """The Unix sockets with a name in the file system that a process has open."""
    named = {
        line.split()[6]: line.split()[7]
        for line in Path("/proc/net/unix").read_text().splitlines()
        if len(line.split()) == 8
    }
    return {link for link in opened(pid) if link.removeprefix("socket:[").rstrip("]") in named}


# The process that answers


def answerer(server: Server) -> int:
    found: list[int] = []

    def is_there() -> bool:
        found[:] = [pid for pid in children(server.process.pid) if answers_at_admin(pid)]
        return len(found) == 1

    wait_for(is_there, "the process that answers at admin")
    return found[0]


def test_a_fault_there_ends_nothing(mode: str, admin: Admin) -> None:
    launcher = patched("poorhttp.supervisor.backoff", LONGEST_PAUSE=0.1)
    with Server(GATE, mode, *admin.options, launcher=launcher) as server:
        wait_status(admin.path, 200)
        before = set(workers(server.process.pid))
        for number in (signal.SIGSEGV, signal.SIGKILL):
            pid = answerer(server)
            with Connection(admin.path) as connection:
                assert connection.request("GET", "/-/live").status == 200
                os.kill(pid, number)
                assert connection.at_end()
            server.wait_log(f"at admin, {pid} was killed by {number.name} and is replaced")
            wait_for(lambda: answers(admin.path), "an answer of another one")
            assert answerer(server) != pid
        assert set(workers(server.process.pid)) == before
        assert admin.metrics()['poorhttp_worker_restarts_total{reason="died"}'] == 0
        # The crash leaves its traceback in the log.
        server.tracebacks = True


def test_signals_for_everybody_do_not_end_it(admin: Admin, tmp_path: Path) -> None:
    """Ctrl-C and KillMode=control-group of systemd tell all processes; it answers until the end."""
    gate = tmp_path / "gate"
    with Server(GATE, "single", *admin.options) as server:
        busy = server.connect()
        busy.send_request("GET", f"/wait?{gate}")
        server.wait_log(f"entered {gate}")
        wait_status(admin.path, 200)
        os.killpg(server.process.pid, signal.SIGTERM)
        assert wait_status(admin.path, 503) == "not ready: the server was told to stop"
        gate.touch()
        assert busy.response().status == 200
        assert server.wait() == 0
        assert "was killed" not in server.log()
        server.ended()


def test_a_main_process_that_does_not_answer_or_ends(admin: Admin) -> None:
    launcher = patched("poorhttp.plugins.monitor.admin.questions", TIMEOUT=0.3)
    with Server(GATE, "single", *admin.options, launcher=launcher) as server:
        wait_status(admin.path, 200)
        server.process.send_signal(signal.SIGSTOP)
        for path in ("/-/live", "/-/ready", "/-/metrics"):
            status, text = ask(admin.path, path)
            assert (status, text) == (503, "not ready: the main process does not answer")
        server.process.send_signal(signal.SIGCONT)
        wait_status(admin.path, 200)
        pid = answerer(server)
        server.process.kill()
        wait_for(lambda: not lives(pid), "its end")
        server.kill()


def test_it_has_given_up_the_rights_of_root(nobody: Nobody, folder: Path) -> None:
    """The main process keeps them, and the workers have none either."""
    folder.chmod(0o755)
    admin = Admin(folder)
    user = ("--user", "nobody") if IS_ROOT else ()
    with Server(
        f"static:{folder}", "single", *admin.options, *user, env={**nobody.env, "TMPDIR": "/tmp"}
    ) as server:
        wait_status(admin.path, 200)
        status = Path(f"/proc/{answerer(server)}/status").read_text()
        found = re.findall(r"^(?:Uid|Gid):((?:\t\d+){4})$", status, re.MULTILINE)
        who = pwd.getpwnam("nobody") if IS_ROOT else pwd.getpwuid(os.getuid())
        assert [set(numbers.split()) for numbers in found] == [{str(who.pw_uid)}, {str(who.pw_gid)}]
        assert "CapEff:\t0000000000000000\n" in status
        assert len(workers(server.process.pid)) == 1


# Who would hold it up


def answers(path: str) -> bool:
    try:
        return ask(path)[0] == 200
    except (OSError, Closed, BadResponse):
        return False


# Figures


@pytest.mark.each_mode
def test_metrics_are_complete(mode: str, admin: Admin, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    options = ("--workers", "2", "--threads", "3")
    with Server(GATE, mode, *admin.options, *options) as server:
        types, _ = read(ask(admin.path, "/-/metrics")[1] + "\n")
        lines = Path("tests/cases/prometheus/metric_names.txt").read_text().splitlines()
        missing = {line.split()[0] for line in lines} - types.keys()
        wanted = {"poorhttp_tls_certificate_expiry_seconds"}
        wanted |= {"poorhttp_last_reload_successful", "poorhttp_last_reload_timestamp_seconds"}
        # Of `workers = auto`.
        wanted |= {"poorhttp_workers_look", "poorhttp_workers_changes_total"}
        if mode == "gevent":
            # Nobody knows how many greenlets there may be.
            wanted |= {"poorhttp_capacity", "poorhttp_utilization"}
        # Reading the PSS may take more time than there is.
        assert missing - {"poorhttp_proportional_memory_bytes"} == wanted
        for _ in range(5):
            assert server.get("/process").status == 200
        with server.connect() as connection:
            connection.send(b"nonsense\r\n\r\n")
            assert connection.response().status == 400
        admin.wait("poorhttp_connections", 0)
        busy = server.connect()
        busy.send_request("GET", f"/wait?{gate}")
        server.wait_log(f"entered {gate}")
        admin.wait("poorhttp_requests_in_flight", 1)
        admin.wait("poorhttp_connections", 1)
        admin.wait("poorhttp_requests_total", 7)
        admin.wait('poorhttp_responses_total{code="2xx"}', 5)
        admin.wait('poorhttp_responses_total{code="4xx"}', 1)
        samples = admin.metrics()
        capacity = {"threading": 6, "gevent": None}.get(mode, 2)
        assert samples.get("poorhttp_capacity") == capacity
        if capacity is not None:
            assert samples["poorhttp_utilization"] == pytest.approx(1 / capacity)
        gate.touch()
        assert busy.response().status == 200
        admin.wait("poorhttp_requests_in_flight", 0)
        admin.wait('poorhttp_responses_total{code="2xx"}', 6)


def test_reforks_are_counted(versions: Versions, admin: Admin) -> None:
    options = ("--workers", "2", "--preload", "--refork-after", "5", "--drain-timeout", "0.1")
    with versions.serve("single", *admin.options, *options) as server:
        assert admin.metrics()["poorhttp_reforks_total"] == 0

        def reforked() -> bool:
            told(server)
            return admin.metrics()["poorhttp_reforks_total"] == 1

        wait_for(reforked, "a refork")


def test_workers_that_end_leave_their_figures(mode: str, versions: Versions, admin: Admin) -> None:
    options = ("--workers", "1", "--max-requests", "10")
    with versions.serve(mode, *admin.options, *options) as server:
        for _ in range(10):
            told(server)
        admin.wait('poorhttp_worker_restarts_total{reason="worn"}', 1)
        wait_for(lambda: len(workers(server.process.pid)) == 1, "the end of the first worker")
        os.kill(told(server)["pid"], signal.SIGKILL)
        admin.wait('poorhttp_worker_restarts_total{reason="died"}', 1)
        admin.wait("poorhttp_workers_alive", 1)
        assert told(server)["version"] == "1"
        admin.wait("poorhttp_requests_total", 12)
        # A request is in hand until the application is through, a moment longer than for clients.
        admin.wait("poorhttp_requests_in_flight", 0)


def test_requests_that_die_with_their_worker_are_in_nobodys_hand(
    mode: str, admin: Admin, tmp_path: Path
) -> None:
    with Server(GATE, mode, *admin.options, "--workers", "1") as server:
        (worker,) = workers(server.process.pid)
        busy = server.connect()
        busy.send_request("GET", f"/wait?{tmp_path}/gate")
        server.wait_log("entered")
        admin.wait("poorhttp_requests_in_flight", 1)
        os.kill(worker, signal.SIGKILL)
        admin.wait('poorhttp_worker_restarts_total{reason="died"}', 1)
        admin.wait("poorhttp_workers_alive", 1)
        admin.wait("poorhttp_requests_in_flight", 0)


def test_what_cannot_be(folder: Path) -> None:
    """`check` says the same as `serve`."""
    token = folder / "token"
    token.write_text("short")
    token.chmod(0o600)
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    with_token = ("--admin", f"unix:{folder}/x", "--admin-token-file")
    cases = [
        (("--admin", f"127.0.0.1:{port}"), 5, "another program listens there"),
        (("--admin", "0.0.0.0:0"), 3, "can be reached from other machines: set admin_token_file"),
        ((*with_token, str(token)), 3, "has to hold one token of 16 to 4096"),
        ((*with_token, f"{folder}/none"), 3, "No such file"),
        (("--supervisor", "off", "--admin", "127.0.0.1:0"), 3, "which is at odds with admin"),
        (("--admin", "127.0.0.1:8089", "--bind", "127.0.0.1:8089"), 3, "an address of its own"),
        (("--admin", f"uwsgi+unix:{folder}/x"), 2, "HTTP is spoken there"),
        (("--admin", "8080"), 2, "has no host"),
        (("--admin", f"unix:{folder}/none/x"), 5, "cannot listen on unix:"),
    ]
    for options, code, text in cases:
        for verb in ("serve", "check"):
            done = run_command(verb, GATE, "--bind", "127.0.0.1:0", *options)
            assert (done.returncode, text in done.stderr) == (code, True), done.stderr
    taken.close()
    assert os.listdir(folder) == ["token"], "what was opened is closed again"


def test_check_beside_a_server(admin: Admin) -> None:
    """It leaves the address alone, which is for those who may connect."""
    with Server(GATE, "threading", *admin.options, "--socket-mode", "600") as server:
        assert os.stat(admin.path).st_mode & 0o777 == 0o600
        bind = ("--bind", f"127.0.0.1:{server.port}")
        done = run_command("check", GATE, *bind, *admin.options)
        assert done.returncode == 0, done.stderr
        assert (
            f"unix:{admin.path} was not opened: a server of poorhttp listens there" in done.stdout
        )
        assert ask(admin.path) == (200, "ready")
