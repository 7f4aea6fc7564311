"""An application that gives the response of a protocol case (tests/testkit/cases/exchanges.py).

Other paths are answered with themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.testkit.cases.exchanges import Answer, read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ANSWERS = {f"/{case.name}": case.answer for case in read_all() if case.answer}


def answer_to(environ: WSGIEnvironment) -> Answer:
    """The answer that the case of this request is about."""
    path = environ["PATH_INFO"]
    environ["wsgi.errors"].write(f"ran {path}\n")
    return ANSWERS.get(path) or Answer("200 OK", (), (path.encode("latin-1"),), ())


def by_list(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Everything at once."""
    answer = answer_to(environ)
    start_response(answer.status, list(answer.fields))
    return list(answer.pieces)


def by_generator(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
    """One by one."""
    answer = answer_to(environ)
    start_response(answer.status, list(answer.fields))
    yield from answer.pieces


def by_write(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """By the callable that `start_response` returns."""
    answer = answer_to(environ)
    write = start_response(answer.status, list(answer.fields))
    for piece in answer.pieces:
        write(piece)
    return []
