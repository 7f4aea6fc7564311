"""The admin address: health checks and metrics from a process of their own."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
from pathlib import Path

import pytest

from tests.supervisor.reloads import refused_reload, reload
from tests.supervisor.stops import wait_end
from tests.support import status_reader
from tests.support.forked_command import run_command
from tests.support.health_probe import ask, wait_status
from tests.support.nobody import IS_ROOT, Nobody
from tests.support.services import Tree
from tests.testkit.client import BadResponse, Closed, Connection
from tests.testkit.process import answers_at_admin, children, lives, workers
from tests.testkit.server import Program, Server, command, patched, wait_for
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


class Admin(status_reader.Admin):
    """The admin address of a server, and the metrics there."""

    def metrics(self) -> dict[str, float]:
        """The samples, by name and labels."""
        status, text = ask(self.path, "/-/metrics")
        assert status == 200
        return read(text + "\n")[1]

    def wait_metric(self, name: str, value: float) -> None:
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
        admin.wait_metric("poorhttp_workers_answering", 1)
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
        admin.wait_metric("poorhttp_workers_answering", 2)


def test_each_service_must_answer(admin: Admin, folder: Path) -> None:
    text = (
        f"[http]\ntarget = {GATE}\nadmin = unix:{admin.path}\n"
        "[service:shop]\nbind = 127.0.0.1:0\nmode = single\n"
        "[service:chat]\nbind = 127.0.0.1:0\nthreads = 3\n"
    )
    with Tree(folder, text) as tree:
        wait_status(admin.path, 200)
        samples = admin.metrics()
        assert samples['poorhttp_capacity{service="shop"}'] == 1
        assert samples['poorhttp_capacity{service="chat"}'] == 3
        assert samples["poorhttp_ready"] == 1
        stopped = workers(tree.process.pid)[0]
        os.kill(stopped, signal.SIGSTOP)
        assert wait_status(admin.path, 503) == "not ready: service shop: no worker answers"
        os.kill(stopped, signal.SIGCONT)
        wait_status(admin.path, 200)
        tree.process.terminate()
        assert tree.wait() == 0


def answers(path: str, status: int = 200) -> bool:
    """Whether somebody answers with this status, if at all."""
    try:
        return ask(path)[0] == status
    except (OSError, Closed, BadResponse):
        return False


def test_not_ready_while_starting(versions: Versions, admin: Admin) -> None:
    fifo = versions.stall()
    words = command("serve", APP, "--bind", "127.0.0.1:0", *admin.options)
    with Program(*words, env={"VERSION_FILE": str(versions.path)}) as program:
        wait_for(lambda: answers(admin.path, 503), "the admin address")
        assert ask(admin.path) == (503, "not ready: the server is starting")
        assert ask(admin.path, "/-/live") == (200, "live")
        fifo.write_text("1")
        wait_status(admin.path, 200)
        program.wait_line()
        program.process.terminate()
        assert program.wait() == 0


def test_not_ready_while_draining(mode: str, admin: Admin, tmp_path: Path) -> None:
    """It tells until the end."""
    options = ("--workers", "2", "--drain-delay", NEVER)
    with Server(GATE, mode, *admin.options, *options) as server:
        assert ask(admin.path) == (200, "ready")
        busy = server.enter(gate := tmp_path / "gate")
        server.process.send_signal(signal.SIGTERM)
        assert wait_status(admin.path, 503) == "not ready: the server was told to stop"
        assert admin.metrics()["poorhttp_ready"] == 0
        assert server.get("/process").status == 200
        server.process.send_signal(signal.SIGTERM)
        assert ask(admin.path)[0] == 503
        admin.wait_metric("poorhttp_requests_in_flight", 1)
        gate.touch()
        assert busy.response().status == 200
        wait_end(server)
    assert not os.path.exists(admin.path)


# What stays as it is


def test_the_address_follows_a_reload(admin: Admin, folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "poorhttp.ini"

    def configure(where: str) -> None:
        config.write_text(f"[http]\nadmin = {where}\n")

    other = Admin(tmp_path)
    configure(f"unix:{admin.path}")
    with Server(GATE, "threading", "-c", str(config)) as server:
        with Connection(admin.path) as kept:
            assert kept.request("GET", "/-/ready").status == 200
            configure(f"unix:{other.path}")
            reload(server)
            assert ask(other.path) == (200, "ready")
            assert not os.path.exists(admin.path)
            # Whoever was there may ask once more.
            assert kept.request("GET", "/-/ready").status == 200
        configure("127.0.0.1:1:1")
        refused_reload(server)
        configure("192.0.2.1:80")
        assert "serving: cannot listen on 192.0.2.1:80" in refused_reload(server)
        assert ask(other.path) == (200, "ready")
        configure("off")
        reload(server)
        assert not os.path.exists(other.path)
        configure("127.0.0.1:0")
        reload(server)
        (port,) = re.findall(r"the status page is at http://127.0.0.1:(\d+)", server.log())
        # A reload that fails after the address was opened gives it up again.
        (tmp_path / "broken.py").write_text("import nothing_of_that_name")
        config.write_text(
            f"[http]\nadmin = unix:{admin.path}\nmount = /x={tmp_path}/broken.py:application\n"
        )
        assert f"keeps serving: {config}:3: mount: " in refused_reload(server)
        assert not os.path.exists(admin.path)
        assert ask(("127.0.0.1", int(port))) == (200, "ready")
        server.tracebacks = True


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
        busy = server.enter(gate)
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
    env = {**nobody.env, "TMPDIR": "/tmp"}
    with Server(f"static:{folder}", "single", *admin.options, *user, env=env) as server:
        wait_status(admin.path, 200)
        status = Path(f"/proc/{answerer(server)}/status").read_text()
        found = re.findall(r"^(?:Uid|Gid):((?:\t\d+){4})$", status, re.MULTILINE)
        who = pwd.getpwnam("nobody") if IS_ROOT else pwd.getpwuid(os.getuid())
        assert [set(numbers.split()) for numbers in found] == [{str(who.pw_uid)}, {str(who.pw_gid)}]
        assert "CapEff:\t0000000000000000\n" in status
        assert len(workers(server.process.pid)) == 1


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
        admin.wait_metric("poorhttp_connections", 0)
        busy = server.enter(gate)
        admin.wait_metric("poorhttp_requests_in_flight", 1)
        admin.wait_metric("poorhttp_connections", 1)
        admin.wait_metric("poorhttp_requests_total", 7)
        admin.wait_metric('poorhttp_responses_total{code="2xx"}', 5)
        admin.wait_metric('poorhttp_responses_total{code="4xx"}', 1)
        samples = admin.metrics()
        capacity = {"threading": 6, "gevent": None}.get(mode, 2)
        assert samples.get("poorhttp_capacity") == capacity
        if capacity is not None:
            assert samples["poorhttp_utilization"] == pytest.approx(1 / capacity)
        gate.touch()
        assert busy.response().status == 200
        admin.wait_metric("poorhttp_requests_in_flight", 0)
        admin.wait_metric('poorhttp_responses_total{code="2xx"}', 6)


def test_reforks_are_counted(versions: Versions, admin: Admin) -> None:
    options = ("--workers", "2", "--preload", "--refork-after", "5", "--drain-timeout", "0.1")
    with versions.serve("single", *admin.options, *options) as server:
        assert admin.metrics()["poorhttp_reforks_total"] == 0

        def reforked() -> bool:
            told(server)
            return admin.metrics()["poorhttp_reforks_total"] == 1

        wait_for(reforked, "a refork")


def test_workers_that_end_leave_their_figures(mode: str, versions: Versions, admin: Admin) -> None:
    """But requests that die with their worker are in nobody's hand."""
    options = ("--workers", "1", "--max-requests", "10")
    with versions.serve(mode, *admin.options, *options) as server:
        for _ in range(10):
            told(server)
        admin.wait_metric('poorhttp_worker_restarts_total{reason="worn"}', 1)
        wait_for(lambda: len(workers(server.process.pid)) == 1, "the end of the first worker")
        # A request is in hand until the application is through, a moment longer than for clients.
        admin.wait_metric("poorhttp_requests_in_flight", 0)
        server.connect().send_request("GET", "/600000")
        admin.wait_metric("poorhttp_requests_in_flight", 1)
        os.kill(workers(server.process.pid)[0], signal.SIGKILL)
        admin.wait_metric('poorhttp_worker_restarts_total{reason="died"}', 1)
        admin.wait_metric("poorhttp_workers_alive", 1)
        admin.wait_metric("poorhttp_requests_in_flight", 0)
        assert told(server)["version"] == "1"
        admin.wait_metric("poorhttp_requests_total", 12)
        admin.wait_metric("poorhttp_requests_in_flight", 0)


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
        said = f"unix:{admin.path} was not opened: a server of poorhttp listens there"
        assert said in done.stdout
        assert ask(admin.path) == (200, "ready")
