"""Fixtures and the two levels: modes, servers that a module shares, what runs when and where.

The quick level (`make test`) runs every test once, and what a mode touches, marked `each_mode`, in
all modes that differ. The full level (`make test-full`, `pytest --full`) runs each test in each
mode, and the tests marked `full`.
"""

from __future__ import annotations

import gc
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

# Where tests and other programs share the cores, what the lab starts takes its time. The lab reads
# this when it is imported, in processes that tests start too.
os.environ.setdefault("LAB_PATIENCE", "10")

from tests.__main__ import OUTCOMES
from tests.support.browser import Browser, chromium, tab
from tests.support.each_value import DIFFERENT
from tests.support.nobody import Nobody
from tests.testkit.server import MODES, Server, alone, stop_all
from tests.testkit.versions import Versions

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

# `nohup make test` ignores it, and so would all servers.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

pytest_plugins = ["tests.support.hangs", "tests.support.scheduling", "tests.support.durations"]

#: The groups that take longest begin first: all wait for the last one.
LONGEST = {
    "browser",
    "guides 0",
    "guides 1",
    "guides 2",
    "images",
    "lab-installation",
    "plugins",
    "tests/commands/test_init_deployed.py",
    "tests/commands/test_migrate_hostile.py",
    "tests/dev/test_django_command.py",
    "tests/dev/test_flask_command.py",
    "tests/dev/test_reload.py",
    "tests/dev/test_terminal_end.py",
    "tests/lab/test_advise.py",
    "tests/lab/test_reporting.py",
    "tests/monitoring/test_commands.py",
    "tests/supervisor/test_components.py",
    "wheels",
}

#: Returns a running server for an application, in the mode of the test: the same one as long as
#: the application and its options are the same.
Serve = Callable[..., Server]

# Properties are tried with the same examples in each run, so that none fails by chance. How long an
# example takes says nothing: tests run beside each other. `HYPOTHESIS_PROFILE=long` looks for new
# examples, best with `--timeout 0`.
settings.register_profile(
    "quick",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long", settings.get_profile("quick"), derandomize=False, max_examples=5_000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="every test in every mode it has")
    parser.addoption("--outcomes", help="a file for the numbers of tests by outcome, as JSON")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that uses `mode`, or `serve`, in its modes."""
    if "mode" in metafunc.fixturenames and not mentions_mode(metafunc.definition):
        modes = list(MODES)
        if not metafunc.config.getoption("--full"):
            touched = metafunc.definition.get_closest_marker("each_mode")
            modes = [*DIFFERENT, *touched.args] if touched else ["threading"]
        metafunc.parametrize("mode", modes, indirect=True, scope="session")


def mentions_mode(definition: pytest.Item) -> bool:
    """Whether a test names its modes itself."""
    for mark in definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        if "mode" in (names.replace(",", " ").split() if isinstance(names, str) else names):
            return True
    return False


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long value by its length: the environment of processes has the name of a test."""
    if isinstance(val, str | bytes) and len(val) > 200:
        return f"{argname}-of-{len(val)}"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is only in the full level, and keep together what shares servers."""
    if not config.getoption("--full"):
        left_out = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    groups = {item: group(item) for item in items}
    for item in items:
        item.add_marker(pytest.mark.xdist_group(groups[item]))
    # Groups without a mode are longer, those of gevent take more time: last come the short ones.
    order: list[str | None] = [None, *reversed([*MODES])]
    items.sort(key=lambda item: (groups[item] not in LONGEST, order.index(mode_of(item))))


def mode_of(item: pytest.Item) -> str | None:
    """The mode that a test runs in, if it has one."""
    callspec = getattr(item, "callspec", None)
    mode = callspec.params.get("mode") if callspec else None
    return mode if isinstance(mode, str) and mode in MODES else None


def group(item: pytest.Item) -> str:
    """The tests that have to run in one process: those of a module in one mode."""
    if own := item.get_closest_marker("xdist_group"):
        return str(own.args[0])
    if "browser" in getattr(item, "fixturenames", ()):
        return "browser"
    module = item.nodeid.partition("::")[0]
    mode = mode_of(item)
    return f"{module} {mode}" if mode else module


def pytest_configure() -> None:
    """Collect no garbage while tests are collected: there is none."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Have the garbage collector look at no tests: all 8,000 stay until the end."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Write down how many tests had which outcome."""
    if file := config.getoption("--outcomes"):
        counts = {name: len(of) for name, of in terminalreporter.stats.items() if name in OUTCOMES}
        Path(file).write_text(json.dumps(counts))


@pytest.fixture(scope="session")
def mode(request: pytest.FixtureRequest) -> str:
    """The mode of this run of the test: `pytest_generate_tests` gives it."""
    return str(request.param)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder for a Unix socket, whose path may have some hundred octets only."""
    with TemporaryDirectory() as name:
        yield Path(name).resolve()


@pytest.fixture(scope="module")
def nobody() -> Iterator[Nobody]:
    """What can be run by the user nobody."""
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield Nobody(folder)


@pytest.fixture(scope="session")
def driver() -> Iterator[Chrome]:
    """The browser of all tests that use one; they run in one process."""
    with chromium() as driver:
        yield driver


@pytest.fixture
def browser(driver: Chrome) -> Iterator[Browser]:
    """A tab of that browser."""
    with tab(driver) as browser:
        yield browser


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    """An application of which there are versions."""
    return Versions(tmp_path)


@pytest.fixture(scope="module")
def serve(mode: str, request: pytest.FixtureRequest) -> Iterator[Serve]:
    """Servers shared by the tests of a module in one mode; stopped and checked at its end.

    A module in which `ALONE` is true has no test of main process and workers: the servers are one
    process each, where they can, which takes half of the time.
    """
    running: dict[tuple[object, ...], Server] = {}
    more = alone(mode) if getattr(request.module, "ALONE", False) is True else ()

    def start(
        app: str, *options: str, tracebacks: bool = False, bind: tuple[str, ...] = ("127.0.0.1:0",)
    ) -> Server:
        key = (app, options, tracebacks, bind)
        if key not in running:
            words = options if "--workers" in options else (*options, *more)
            running[key] = Server(app, mode, *words, tracebacks=tracebacks, bind=bind)
        return running[key]

    yield start
    stop_all(running.values())
