"""The WSGI applications that servers are measured with, and the answers expected from them."""

from __future__ import annotations

import functools
import runpy
from dataclasses import dataclass
from pathlib import Path

from loadtests.clients.connection import Answer
from loadtests.errors import LabError
from loadtests.programs import ROOT


@dataclass(frozen=True)
class Application:
    """A callable in a single file. `folder` is relative to the project; servers run inside it.

    The body of a `dated` one changes with the clock, but not in length. The right answers to what
    is no callable are those of `view`, an application: to the same target, or always to `at`.
    """

    folder: str
    module: str = ""
    name: str = "application"
    dated: bool = False
    view: Application | None = None
    at: str = ""

    @property
    def path(self) -> Path:
        return ROOT / self.folder

    def answer(self, target: str, body: bytes) -> Answer:
        """The right answer to a GET of `target`, or to a POST of `body` if there is one."""
        return expected(self.view or self, self.at or target, body)

    def accepts(self, answer: Answer, right: Answer) -> bool:
        """Whether an answer is as good as the right one."""
        return (
            answer.status == right.status
            and len(answer.body) == len(right.body)
            and (self.dated or answer.body == right.body)
        )

    def __str__(self) -> str:
        return f"{self.folder}/{self.module}.py:{self.name}"


@dataclass(frozen=True)
class Own(Application):
    """An application of which nothing is known but that it is to answer."""

    folder: str = "."
    wrong_from: int = 500

    @property
    def path(self) -> Path:
        return Path.cwd()

    def answer(self, target: str, body: bytes) -> Answer:
        return Answer(0, "", b"")

    def accepts(self, answer: Answer, right: Answer) -> bool:
        """Whether its status is below `wrong_from`."""
        return answer.status < self.wrong_from


OWN = Own(wrong_from=201)
"""What clients count: an answer of 200."""


@functools.cache
def expected(application: Application, target: str, body: bytes) -> Answer:
    """The answer of `application` to a GET of `target`, or to a POST of `body` if there is one.

    The application is called in this process, so it must not sleep or compute for long.
    Raises LabError if its file is missing or has no such callable.
    """
    # Only now: it is slow to load.
    from werkzeug.test import create_environ, run_wsgi_app

    file = application.path / f"{application.module}.py"
    if not file.is_file():
        raise LabError(f"the application {application} does not exist")
    try:
        found = runpy.run_path(str(file)).get(application.name)
    except ModuleNotFoundError as error:
        package = "poorhttpd" if error.name == "poorhttp" else error.name
        raise LabError(f"the application {application} needs {package} (pip install)") from None
    if found is None:
        raise LabError(f"{application}: the file defines no {application.name!r}")
    method = "POST" if body else "GET"
    environ = create_environ(target, "http://127.0.0.1", method=method, data=body or None)
    content, status, headers = run_wsgi_app(found, environ)
    return Answer(int(status[:3]), headers.get("Content-Type", ""), b"".join(content))
