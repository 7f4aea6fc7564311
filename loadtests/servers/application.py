"""The WSGI applications that servers are measured with, and the answers expected from them."""

from __future__ import annotations

import functools
import io
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

from loadtests.clients.connection import Answer
from loadtests.errors import LabError
from loadtests.programs import ROOT


@dataclass(frozen=True)
class Application:
    """A callable in a single file. `folder` is relative to the project; servers run inside it.

    The body of a `dated` one changes with the clock, but not in length.
    """

    folder: str
    module: str
    name: str = "application"
    dated: bool = False

    @property
    def path(self) -> Path:
        """The folder as an absolute path."""
        return ROOT / self.folder

    def answer(self, target: str, body: bytes) -> Answer:
        """The right answer to a GET of `target`, or to a POST of `body` if there is one."""
        return expected(self, target, body)

    def accepts(self, answer: Answer, right: Answer) -> bool:
        """Whether an answer is as good as the right one."""
        return (
            answer.status == right.status
            and len(answer.body) == len(right.body)
            and (self.dated or answer.body == right.body)
        )

    def __str__(self) -> str:
        return f"{self.folder}/{self.module}.py:{self.name}"


@functools.cache
def expected(application: Application, target: str, body: bytes) -> Answer:
    """The answer of `application` to a GET of `target`, or to a POST of `body` if there is one.

    The application is called in this process, so it must not sleep or compute for long.
    Raises LabError if its file is missing or has no such callable.
    """
    file = application.path / f"{application.module}.py"
    if not file.is_file():
        raise LabError(f"the application {application} does not exist")
    try:
        found: Callable[..., Any] | None = runpy.run_path(str(file)).get(application.name)
    except ModuleNotFoundError as error:
        raise LabError(f"the application {application} needs {error.name}") from None
    if found is None:
        raise LabError(f"{application}: the file defines no {application.name!r}")
    path, _, query = target.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST" if body else "GET",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(body)) if body else "",
        "wsgi.input": io.BytesIO(body),
    }
    setup_testing_defaults(environ)
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], exc_info: object = None
    ) -> None:
        started.append((status, headers))

    content = b"".join(found(environ, start_response))
    status, headers = started[-1]
    types = [value for name, value in headers if name.lower() == "content-type"]
    return Answer(int(status[:3]), types[0] if types else "", content)
