"""Base class of a third-party program under test: installation, start, steps of its clients."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

#: What its clients see: the name of each step, and a value of JSON.
Steps = Iterator[tuple[str, object]]

#: The modes of our server that are compared with the reference.
MODES = ("forking", "threading", "gevent", "asyncio")

#: Seconds after which a command, or all that the clients do with one server, is ended.
LIMIT = 900


class Application:
    """Base class of a program; each file of `tests.programs` has one subclass.

    The current folder of its functions is a new one. `prepare` runs once, in a folder of which each
    server is given a copy at the same path. `prepare` and `drive` run under the Python of the
    program's own environment, so they import what `requirements` installs, in the function.
    """

    #: Distributions with exact versions, beside gunicorn and gevent.
    requirements: tuple[str, ...] = ()
    #: Source distributions with exact versions, unpacked and not installed: those with the tests of
    #: a library, for instance. `source` says where they are.
    sources: tuple[str, ...] = ()
    #: Programs and files of Debian packages, by their names in tests/packages.py.
    needs: tuple[str, ...] = ()
    #: The text of `wsgi.py`, which stands in the folder before `prepare` is called.
    wsgi = ""
    #: What servers load, written as for gunicorn. Without one, `drive` starts the server.
    target = "wsgi:application"
    #: Workers in the mode `forking`: 1 for a program that keeps its state in its memory.
    workers = 2
    #: More options of our server, and of gunicorn.
    options: tuple[str, ...] = ()
    gunicorn_options: tuple[str, ...] = ("--worker-class", "gthread", "--threads", "8")
    #: The server that ours is compared with.
    reference = "gunicorn"
    #: The modes of our server in which the program runs: those for WSGI; fewer if it chooses the
    #: server's mode.
    modes: tuple[str, ...] = MODES[:3]
    #: Environment variables of `prepare`, the servers and the clients, as `NAME=VALUE`.
    environ: tuple[str, ...] = ()
    #: The path that is asked until the server answers, with any status.
    path = "/"

    def __init__(self, url: str, server: str = "") -> None:
        """`url` begins all URLs of the program; `server` is the reference or a mode."""
        self.url = url
        self.server = server

    def prepare(self) -> None:
        """Write files and data into the current folder."""

    def command(self) -> list[str]:
        """The command that starts `server`; words of a reference that is not gunicorn differ."""
        bind = ("--bind", self.url.removeprefix("http://"))
        if self.server == "gunicorn":
            return ["python", "-m", "gunicorn", self.target, *bind, *self.gunicorn_options]
        workers = ("--workers", str(self.workers)) if self.server == "forking" else ()
        mode = ("--mode", self.server, *workers)
        return ["python", "-m", "poorhttp", "serve", self.target, *bind, *mode, *self.options]

    def drive(self) -> Steps:
        """Do what clients do; whatever they raise is a failure of the step after the last."""
        raise NotImplementedError

    def source(self, name: str) -> Path:
        """The folder of a source distribution."""
        return Path(sys.prefix, "sources", name)

    def report(self) -> Steps:
        """The outcome of each test in a report of pytest, a step for each."""
        for case in ElementTree.parse("report.xml").iter("testcase"):
            yield f"{case.get('classname')}.{case.get('name')}", [each.tag for each in case]

    def run(self, *words: str | Path, cwd: str | Path = ".", text: str = "") -> str:
        """The output of a command of the environment or the system, with `text` as its input."""
        done = subprocess.run(
            words, cwd=cwd, input=text, capture_output=True, text=True, timeout=LIMIT, check=False
        )
        if done.returncode:
            command = " ".join(map(str, words))
            raise AssertionError(
                f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout


def names() -> list[str]:
    files = Path(__file__).resolve().parent.parent.glob("*.py")
    return sorted(file.stem for file in files if not file.stem.startswith("__"))


def load(name: str) -> type[Application]:
    """The class of a program, which its file defines."""
    module = importlib.import_module(f"tests.programs.{name}")
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Application) and each is not Application
    ]
    assert len(found) == 1, f"tests/programs/{name}.py defines {len(found)} programs"
    return found[0]
