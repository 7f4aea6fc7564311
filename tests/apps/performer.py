"""An application that gives the response of a protocol case (tests/testkit/cases/exchanges.py).

Other paths are answered with themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.apps.basics import Environ, Pieces, StartResponse
from tests.testkit.cases.exchanges import Answer, read_all

ANSWERS = {f"/{case.name}": case.answer for case in read_all() if case.answer}


def answer_to(environ: Environ) -> Answer:
    """The answer that the case of this request is about."""
    path = environ["PATH_INFO"]
    environ["wsgi.errors"].write(f"ran {path}\n")
    return ANSWERS.get(path) or Answer("200 OK", (), (path.encode("latin-1"),), ())


def by_list(environ: Environ, start_response: StartResponse) -> Pieces:
    answer = answer_to(environ)
    start_response(answer.status, list(answer.fields))
    return list(answer.pieces)


def by_generator(environ: Environ, start_response: StartResponse) -> Iterator[bytes]:
    yield from by_list(environ, start_response)


def by_write(environ: Environ, start_response: StartResponse) -> Pieces:
    answer = answer_to(environ)
    write = start_response(answer.status, list(answer.fields))
    for piece in answer.pieces:
        write(piece)
    return []
