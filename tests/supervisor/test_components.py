"""Components of plug-ins in the main process: faults of others, reloads, binary upgrades."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.supervisor.reloads import refused_reload, reload
from tests.support import plug_in
from tests.support.health_probe import ask
from tests.support.status_reader import Admin
from tests.testkit.process import children, wait_for_end
from tests.testkit.server import ROOT, Server, patched, wait_for

#: Components whose classes are named `FAULT_METHOD`: each does that wrong in that method.
FAULTY = """\
import ctypes, sys, time
from poorhttp.supervisor.component import Component

def raises():
    raise ValueError("expected")

def in_c():
    # The second lock waits for ever, whatever signals come.
    lock, libc = ctypes.create_string_buffer(64), ctypes.CDLL(None)
    libc.pthread_mutex_lock(lock)
    libc.pthread_mutex_lock(lock)

FAULTS = {
    "raise": raises,
    "exit": lambda: sys.exit(3),
    "sleep": lambda: time.sleep(3600),
    "c": in_c,
}

class Closed(Component):
    filenos = lambda self: [1000]

class Huge(Component):
    filenos = lambda self: [1 << 40]

class Wrong(Component):
    pools = lambda self: ["pool"]

class Ticking(Component):
    def due(self):
        return time.monotonic() + 0.02

def __getattr__(name):
    fault, _, method = name.partition("_")
    if fault not in FAULTS:
        raise AttributeError(name)

    def faulty(self, *arguments, **named):
        FAULTS[fault]()
        return getattr(Ticking, method)(self, *arguments, **named)

    return type(name, (Ticking,), {method: faulty})
"""

#: A component that writes down which of its methods are called, and refuses some settings.
NOTING = """\
import os, socket
from poorhttp.errors import ConfigError
from poorhttp.net.sockets import open_listeners
from poorhttp.supervisor.component import Component
from poorhttp.config.settings import Settings

class Noting(Component):
    name = "first"

    def note(self, what):
        with open(os.environ["NOTES"], "a") as file:
            file.write(f"{self.name} {what}\\n")

    def open(self, services, have):
        self.note("open")

    def prepare(self, services):
        self.note("prepare")
        if self.name in services[0].proc_name:
            raise ConfigError(f"the {self.name} refuses")

    def ready(self, urls):
        self.note(f"ready {len(urls)}")

    def begun(self, kind):
        self.note(f"begun {kind}")

    def ended(self, kind, message, *, succeeded):
        self.note(f"ended {kind} {succeeded}")

    def worker_started(self, pool, worker):
        self.note(f"worker_started {worker.pid}")

    def worker_ended(self, pool, worker, code):
        self.note(f"worker_ended {worker.pid} {code}")

    def stopping(self, number):
        self.note(f"stopping {number}")

for method in ("start", "commit", "cancel", "draining", "stop"):
    setattr(Noting, method, lambda self, method=method: self.note(method))

class Second(Noting):
    name = "second"

class Listening(Noting):
    \"\"\"Keeps a socket and a text, over binary upgrades too.\"\"\"

    def open(self, services, have):
        settings = Settings(bind=os.environ["LISTENS"])
        self.sockets = open_listeners(settings, have)
        self.left = -1
        self.text = "first"
        if self.main.takeover is not None:
            left = [fd for kind, _, _, fd in self.main.takeover.memory if kind == "noting"]
            self.text = os.pread(left[0], 100, 0).decode()
        self.note(f"{self.text} {self.sockets[0].url} {os.fstat(self.sockets[0].fileno()).st_ino}")

    def listeners(self):
        return self.sockets

    def memory(self):
        self.left = os.memfd_create("noting")
        os.write(self.left, f"after {self.text}".encode())
        return [("noting", "", os.getpid(), self.left)]

    def close_memory(self):
        os.close(self.left)

    def detach(self):
        for each in self.sockets:
            each.owned = False
        self.note("detach")
"""


#: Metrics: of these, one is right, one has labels, and the others are wrong in some way.
METRICS = """\
import time
from poorhttp.supervisor.metric import Metric

def read(found):
    return lambda main: found

right = Metric("counter", "What is right.", lambda main: main.reloads["succeeded"] + 7)
labelled = Metric("gauge", "Two\\nlines.", read([({"queue": "a"}, 1), ({"queue": "b"}, 2.5)]))
empty = Metric("gauge", "Nothing yet.", read([]))
label = Metric("gauge", "A wrong label.", read([({"a-b": "c"}, 1)]))
text = Metric("gauge", "No number.", read("seven"))
slow = Metric("gauge", "It is slow.", lambda main: time.sleep(0.2) or 1)
"""

#: The methods in which a component of others raises, in one server.
METHODS = (
    *("__init__", "open", "start", "filenos", "filenos_to_write", "due", "tick", "pools", "reap"),
    *("prepare", "commit", "cancel", "listeners", "memory", "close_memory", "detach", "ready"),
    *("begun", "ended", "draining", "stopping", "worker_started", "worker_ended", "spawners"),
    *("grace", "refuses_restart", "handles", "say", "stop"),
)


#: Installs a plug-in, and returns the environment of a server. Its arguments are the text of the
#: module, the group of its entry points, and what these name.
Install = Callable[..., dict[str, str]]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    def install(module: str, group: str = "components", **added: str) -> dict[str, str]:
        points = "\n".join(f"{name} = demo_plugin:{place}" for name, place in added.items())
        folder = tmp_path / "installed"
        folder.mkdir()
        plug_in.install(folder, "demo", {group: points}, {"demo_plugin": module})
        return {"PYTHONPATH": f"{folder}:{ROOT}", "NOTES": str(tmp_path / "notes")}

    return install


def notes(env: dict[str, str]) -> list[str]:
    return Path(env["NOTES"]).read_text().splitlines()


#: Starts a server that replaces workers at once, however early they end.
AT_ONCE = patched("poorhttp.supervisor.backoff", LONGEST_PAUSE=0.05)


def serve(env: dict[str, str], *options: str, launcher: tuple[str, ...] = AT_ONCE) -> Server:
    """Return a server that uses the plug-in."""
    words = ("tests/apps/gate.py", "threading", "--plugins", "demo", *options)
    return Server(*words, env=env, tracebacks=True, launcher=launcher)


def works(server: Server) -> bool:
    """Whether requests are answered."""
    return bool(server.get("/wait?/").json() == "waited")


def only_worker(server: Server) -> int:
    wait_for(lambda: len(children(server.process.pid)) == 1, "the only worker")
    return children(server.process.pid)[0]


def replace_worker(server: Server) -> None:
    before = only_worker(server)
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: children(server.process.pid) not in ([], [before]), "another worker")
    assert works(server)


def test_methods_that_raise_are_named(install: Install) -> None:
    """The main process goes on in all that it does, and the component is switched off."""
    faulty = {f"{method}_faulty": f"raise_{method}" for method in METHODS}
    env = install(FAULTY, exits="exit_tick", closed="Closed", huge="Huge", wrong="Wrong", **faulty)
    with serve(env, "--drain-delay", "0.1", launcher=()) as server:
        replace_worker(server)
        for _ in range(3):
            assert "plug-in prepare_faulty of demo" in refused_reload(server)
        reload(server)
        replace_worker(server)
        # A binary upgrade, and then the stop of the new main process.
        server.process.send_signal(signal.SIGUSR2)
        server.wait_log("has taken over")
        assert server.wait() == 0
        (successor,) = re.findall(r"process (\d+) has taken over", server.log())
        assert works(server)
        server.leave()
        os.kill(int(successor), signal.SIGTERM)
        wait_for_end(int(successor))
        log = server.log()
        for method in METHODS:
            assert (
                f"plug-in {method}_faulty of demo (poorhttp.components): {method} failed; the main "
                "process goes on: ValueError: expected" in log
            ), method
        assert "exits of demo (poorhttp.components): tick failed" in log
        assert "wrong of demo (poorhttp.components): pools failed" in log
        assert "descriptor 1000 is not open" in log
        for name in ("tick_faulty", "due_faulty", "exits", "closed", "huge", "wrong"):
            off = f"plug-in {name} of demo (poorhttp.components) is switched off until the next"
            # In each of the two main processes.
            assert log.count(off) == 2, name
        server.kill()


@pytest.mark.parametrize(("fault", "code"), [("sleep", 0), ("c", 1)])
def test_a_method_that_does_not_return(
    fault: str, code: int, install: Install, tmp_path: Path
) -> None:
    """It is named, workers serve, and a stop ends everything, after requests in flight."""
    with serve(install(FAULTY, hangs=f"{fault}_begun"), "--graceful-timeout", "60") as server:
        (worker,) = children(server.process.pid)
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("hangs of demo (poorhttp.components): begun does not return (in ")
        connection = server.enter(gate := tmp_path / "gate")
        server.process.terminate()
        server.wait_log("begun was interrupted" if code == 0 else "stops without the main thread")
        gate.touch()
        assert connection.response().json() == "waited"
        server.leave()
        assert server.wait() == code
        wait_for_end(worker)
        server.kill()


def test_a_stop_that_does_not_return(install: Install) -> None:
    with serve(install(FAULTY, first="sleep_stopping", last="sleep_stop")) as server:
        server.process.terminate()
        assert server.wait() == 0
        server.wait_log("stopping does not return")
        server.wait_log("stop does not return")
        server.kill()


def test_a_start_that_does_not_return(install: Install) -> None:
    launcher = patched("poorhttp.supervisor.components", START_TIMEOUT=0.5)
    env = install(FAULTY, first="sleep_open", last="sleep_start")
    with serve(env, launcher=launcher) as server:
        for method in ("open", "start"):
            server.wait_log(f"{method} was interrupted, because there would be no workers")
        replace_worker(server)


#: Hooks: a method does in a reload what the file $NOTES says, its name and one of `FAULTS`.
HOOKS_OF_RELOADS = """
import os
from poorhttp.worker.plugin_hooks import WorkerHooks

def quits():
    raise KeyboardInterrupt

FAULTS.update(quit=quits, generator=lambda: (_ for _ in ()).throw(GeneratorExit))
MAIN = os.getpid()

def faulty(method):
    def call(self, *arguments):
        if os.path.exists(os.environ["NOTES"]) and os.getpid() == MAIN:
            with open(os.environ["NOTES"]) as file:
                named, fault = file.read().split()
            if named == method:
                FAULTS[fault]()

    return call

names = ("complete", "check", "approve", "opened")
HOOKS = type("Hooks", (WorkerHooks,), {name: faulty(name) for name in names})()
"""


def test_hooks_in_a_reload(install: Install) -> None:
    """Whatever they raise, and if they do not return, the main process and the workers go on."""
    env = install(FAULTY + HOOKS_OF_RELOADS, "worker_hooks", hooks="HOOKS")
    with serve(env) as server:
        for case in ("complete exit", "check quit", "approve generator", "opened exit"):
            Path(env["NOTES"]).write_text(case)
            named = "not reloaded; the previous version keeps serving: plug-in hooks of demo"
            assert named in refused_reload(server), case
        replace_worker(server)
        Path(env["NOTES"]).write_text("check sleep")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("hooks of demo (poorhttp.worker_hooks): check does not return (in ")
        assert works(server)


def test_a_plug_in_whose_import_does_not_return_in_a_reload(
    install: Install, tmp_path: Path
) -> None:
    file = tmp_path / "poorhttp.ini"
    file.write_text("[http]\n")
    env = install("import time\ntime.sleep(3600)\n", "options", late="Late")
    options = ("-c", str(file))
    with Server("tests/apps/gate.py", "threading", *options, env=env, tracebacks=True) as server:
        file.write_text("[http]\nplugins = demo\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("late of demo (poorhttp.options): import does not return (in <module>, ")
        assert works(server)


#: Methods that change something of the main process, each once.
CHANGING = """\
import os, signal, socket, subprocess, threading, time
from poorhttp.supervisor.component import Component
from poorhttp.worker.plugin_hooks import WorkerHooks

def is_listener(fd):
    try:
        copy = socket.socket(fileno=os.dup(fd))
        return copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        return False

def close_listener():
    for fd in [fd for fd in map(int, os.listdir("/proc/self/fd")) if is_listener(fd)]:
        os.close(fd)

CHANGES = {
    "ignored": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "children": lambda: signal.signal(signal.SIGCHLD, signal.SIG_DFL),
    "wakeups": lambda: signal.set_wakeup_fd(-1),
    "fork": os.fork,
    "thread": lambda: threading.Thread(target=time.sleep, args=[3600], name="lasting").start(),
    "alarm": lambda: signal.alarm(1),
    "blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD]),
    "closed": lambda: os.closerange(3, 1 << 16),
    "listener": close_listener,
    "deaf": lambda: subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 3600; :"]),
}

MAIN = os.getpid()

def change(names):
    # Of these what the file $NOTES says, in the main process.
    if os.getpid() == MAIN and os.path.exists(os.environ["NOTES"]):
        with open(os.environ["NOTES"]) as file:
            name = file.read()
        if name in names:
            os.remove(os.environ["NOTES"])
            CHANGES[name]()

class Hooks(WorkerHooks):
    def check(self, settings):
        change(CHANGES)

HOOKS = Hooks()

# A component for each change: what one of them does is said once.
def __getattr__(name):
    def begun(self, kind):
        change([name])
    if name not in CHANGES:
        raise AttributeError(name)
    return type(name, (Component,), {"begun": begun})
"""

#: What is said of each change in the main process.
NAMED = {
    "ignored": "it has replaced handlers of the server: SIGTERM",
    "children": "it has replaced handlers of the server: SIGCHLD",
    "wakeups": "it has replaced handlers of the server: the wakeup descriptor",
    "fork": "begun has forked a process that did not end itself; it is ended",
    "alarm": "it has set a timer (setitimer or alarm), whose signal would end the main",
    "blocked": "it has blocked signals of the server: SIGTERM, SIGCHLD",
}


def test_what_is_changed_in_the_main_process(install: Install) -> None:
    """Its handlers of signals, and the number of its processes; it is restored and named."""
    env = install(CHANGING, **{change: change for change in NAMED})
    with serve(env) as server:
        for change, named in NAMED.items():
            before = server.log_size()
            Path(env["NOTES"]).write_text(change)
            reload(server)
            wait_for(lambda: named in server.log(before), f"{named} for {change}")  # noqa: B023
            server.wait_log(f"{change} of demo (poorhttp.components): begun")
            replace_worker(server)


@pytest.mark.parametrize(
    ("change", "group"), [("closed", "components"), ("listener", "worker_hooks")]
)
def test_descriptors_of_the_server_that_are_closed(
    change: str, group: str, install: Install, tmp_path: Path
) -> None:
    """The server cannot go on: the method is named, and requests in flight are finished."""
    env = install(CHANGING, group, changes="HOOKS" if group == "worker_hooks" else change)
    with serve(env) as server:
        (worker,) = children(server.process.pid)
        connection = server.enter(gate := tmp_path / "gate")
        Path(env["NOTES"]).write_text(change)
        server.process.send_signal(signal.SIGHUP)
        method = "begun" if group == "components" else "check"
        server.wait_log(f"demo (poorhttp.{group}): {method} has closed descriptors of the server: ")
        gate.touch()
        assert connection.response().json() == "waited"
        server.leave()
        assert server.wait() == 1
        wait_for_end(worker)
        server.kill()


def test_programs_and_threads_that_are_left_running(install: Install) -> None:
    """Python would wait for a thread at the end."""
    changes = ("deaf", "thread")
    env = install(CHANGING, **{change: change for change in changes})
    with serve(env) as server:
        for change in changes:
            Path(env["NOTES"]).write_text(change)
            reload(server)
        wait_for(lambda: len(children(server.process.pid)) == 2, "the worker and the program")
        names = {pid: Path(f"/proc/{pid}/comm").read_text() for pid in children(server.process.pid)}
        server.process.terminate()
        assert server.wait() == 0
        log = server.log()
        server.kill()
    (left,) = (pid for pid, name in names.items() if name in ("sleep\n", "sh\n"))
    assert f"plug-ins have left programs running, which are ended: {left} (" in log
    wait_for_end(left)
    assert "without threads of plug-ins, which have not ended: ['lasting']" in log


#: An option whose value names one of `FAULTS` for its parser.
ODD = """
from poorhttp.config.options.option import Option

def parse(text):
    return FAULTS[text]() if text in FAULTS else text

class Options:
    odd = Option(parse, "fine", "It.", metavar="X")
"""


def test_parsers_of_options_in_a_reload(install: Install, tmp_path: Path) -> None:
    """Whatever a parser of others raises, the previous version serves, and the option is named."""
    env = install(FAULTY + ODD, "options", odd="Options")
    file = tmp_path / "poorhttp.ini"
    file.write_text("[http]\n")
    with serve(env, "-c", str(file), launcher=()) as server:
        option = "plug-in odd of demo (poorhttp.options): option odd"
        for fault, error in (
            ("exit", "SystemExit: 3"),
            ("sleep", "Interrupted: it would hold up the main process for ever"),
        ):
            file.write_text(f"[http]\nodd = {fault}\n")
            assert f"poorhttp.ini:2: odd: {option}: {error}" in refused_reload(server)
        server.wait_log(f"{option} does not return (in ")
        replace_worker(server)


def test_events(install: Install) -> None:
    env = install(NOTING, first="Noting")
    with serve(env) as server:
        (worker,) = children(server.process.pid)
        replace_worker(server)
        other = only_worker(server)
        # The main process may hear that it serves after a client.
        wait_for(lambda: f"first worker_started {other}" in notes(env), "the event")
        reload(server)
        wait_for(lambda: children(server.process.pid) not in ([], [other]), "the new version")
        last = only_worker(server)
    assert notes(env) == [
        *("first open", "first start", f"first worker_started {worker}", "first ready 1"),
        *(f"first worker_ended {worker} -9", f"first worker_started {other}"),
        *("first begun reload", "first prepare", f"first worker_started {last}", "first commit"),
        *("first ended reload True", f"first worker_ended {other} 0"),
        *("first stopping 15", f"first worker_ended {last} 0", "first stop"),
    ]


def test_a_reload_is_a_transaction(install: Install, tmp_path: Path) -> None:
    """What one component refuses, the others do not begin to use."""
    file = tmp_path / "poorhttp.ini"
    file.write_text("[http]\n")
    env = install(NOTING, first="Noting", second="Second")
    with serve(env, "-c", str(file), launcher=()) as server:
        server.tracebacks = False
        file.write_text("[http]\nproc_name = second\n")
        assert "the second refuses" in refused_reload(server)
        file.write_text("[http]\n")
        reload(server)
    steps = ("prepare", "commit", "cancel")
    assert [each for each in notes(env) if each.split()[1] in steps] == [
        *("first prepare", "second prepare", "first cancel", "second cancel"),
        *("first prepare", "second prepare", "first commit", "second commit"),
    ]


def test_an_upgrade_hands_on_sockets_and_memory(install: Install, tmp_path: Path) -> None:
    env = install(NOTING, listening="Listening")
    with serve({**env, "LISTENS": f"unix:{tmp_path}/socket"}, launcher=()) as server:
        server.process.send_signal(signal.SIGUSR2)
        server.wait_log("has taken over")
        assert server.wait() == 0
        _, *before = notes(env)[0].split()
        _, *after = next(each for each in notes(env) if "after first" in each).split()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "socket"))
        # The text that was left, the address, and the inode of the socket.
        assert after == ["after", *before]
        server.kill()


def test_metrics(install: Install, tmp_path: Path) -> None:
    """One that is wrong is left out and named; the others are there."""
    names = ("right", "labelled", "empty", "label", "text", "slow")
    env = install(METRICS, "metrics", **{f"the-{name}": name for name in names}, missing="none")
    admin = Admin(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "statsd"))
        with serve(env, *admin.options, "--statsd", f"unix:{tmp_path}/statsd") as server:
            texts = [ask(admin.path, "/-/metrics")[1] for _ in range(4)]
            status = admin.status()
            log = server.log()
        sent = b""
        receiver.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                sent += receiver.recv(1 << 16) + b"\n"
    for text in texts:
        lines = [line for line in text.splitlines() if "_plugin_" in line]
        assert lines == [
            "# HELP poorhttp_plugin_the_right_total What is right.",
            "# TYPE poorhttp_plugin_the_right_total counter",
            "poorhttp_plugin_the_right_total 7",
            "# HELP poorhttp_plugin_the_labelled Two\ufffdlines.",
            "# TYPE poorhttp_plugin_the_labelled gauge",
            'poorhttp_plugin_the_labelled{queue="a"} 1',
            'poorhttp_plugin_the_labelled{queue="b"} 2.5',
            "# HELP poorhttp_plugin_the_slow It is slow.",
            "# TYPE poorhttp_plugin_the_slow gauge",
            "poorhttp_plugin_the_slow 1",
        ]
    assert [each["name"] for each in status["metrics"]] == [
        *("the-right", "the-labelled", "the-empty", "the-slow")
    ]
    assert b"poorhttp.plugin_the_right:7|c\n" in sent
    assert b"poorhttp.plugin_the_labelled.a:1|g\n" in sent
    for name in ("the-label", "the-text", "missing"):
        off = f"plug-in {name} of demo (poorhttp.metrics) is switched off until the next start"
        assert log.count(off) == 1, name
    assert log.count("plug-in the-slow of demo (poorhttp.metrics): read took ") == 1


#: Components for which the main process never waits.
WAKING = """\
import os
from poorhttp.supervisor.component import Component

class Past(Component):
    def due(self):
        return 0.0

class Readable(Component):
    def open(self, services, have):
        self.pipe = os.pipe()
        os.close(self.pipe[1])

    def filenos(self):
        return self.pipe[:1]

class Writable(Component):
    def open(self, services, have):
        self.pipe = os.pipe()

    def filenos_to_write(self):
        return self.pipe[1:]
"""


def test_components_that_keep_the_main_process_from_waiting(install: Install) -> None:
    """Each is named, and switched off if it goes on."""
    why = {
        "Past": "what `due` returned has passed",
        "Readable": "descriptor [0-9]+ of `filenos` is ready",
        "Writable": "descriptor [0-9]+ of `filenos_to_write` is ready",
    }
    with serve(install(WAKING, **{name: name for name in why})) as server:
        for name, text in why.items():
            waits = f"keeps the main process from waiting: {text}, each of [0-9]+ times in a second"
            named = rf"plug-in {name} of demo \(poorhttp.components\)"
            off = "is switched off until the next start of the server: it"
            line = re.compile(f"{named} {off} {waits}")
            wait_for(lambda: line.search(server.log()), line.pattern)  # noqa: B023
            assert len(re.findall(f"{named} {waits}", server.log())) == 1, name
            assert len(line.findall(server.log())) == 1, name
        replace_worker(server)
