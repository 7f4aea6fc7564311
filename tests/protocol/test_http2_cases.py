"""The protocol cases of HTTP/1 over HTTP/2, where they have a meaning there: the same outcomes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import Serve
from tests.support.check_each import by_file, check_each
from tests.support.http2_cases import REASONS, Meaningless, Request, translated
from tests.support.http2_client import Client, Stream, client
from tests.testkit.cases.exchanges import WAYS, Case, read_all
from tests.testkit.server import Server

ALONE = True

PERFORMER = "tests/apps/performer.py"
ON = "--http2=on"
INTERNAL_ERROR = 2

#: Keys of the environ that differ by nature: there is no absolute form of a target, for example.
OF_VERSION = {"SERVER_PROTOCOL", "HTTP_CONNECTION", "HTTP_TRANSFER_ENCODING"}
OF_VERSION |= {"RAW_URI", "REQUEST_URI"}


def meaningful() -> tuple[list[tuple[Case, list[Request]]], Counter[str]]:
    """The cases that have a meaning with their requests, and how many of each kind have none."""
    found, kinds = [], Counter[str]()
    for case in read_all():
        try:
            found.append((case, translated(case)))
        except Meaningless as kind:
            kinds[str(kind)] += 1
    return found, kinds


FOUND, KINDS = meaningful()
REQUESTS = {case.name: requests for case, requests in FOUND}
CASES = by_file(case for case, _ in FOUND if not case.answer)
ANSWERS = [case for case, _ in FOUND if case.answer]


def test_most_cases_have_a_meaning() -> None:
    assert len(FOUND) >= 500
    assert set(KINDS) == set(REASONS)


def ask(made: Client, request: Request, *, authority: bool) -> Stream:
    """The answer to a request, on a stream that its client ends if the request has an end."""
    ends = request.ended and not request.trailers
    fields = request.head(authority=authority)
    stream = made.begin_with(fields, ended=ends and not request.content)
    if request.content:
        made.send(stream, request.content, ended=ends)
    if request.trailers and not stream.is_over:
        made.h2.send_headers(stream.number, request.trailers, end_stream=True)
        made.flush()
    return made.whole(stream)


@contextmanager
def using(server: Server, kept: list[Client]) -> Iterator[Client]:
    """The connection that the last case has left; a new one, if that case has failed."""
    made = kept.pop() if kept else client(server, huffman=False)
    made.streams.clear()
    yield made
    kept.append(made)


def check_case(case: Case, made: Client, server: Server, *, authority: bool) -> None:
    before = server.log_size()
    streams = [ask(made, each, authority=authority) for each in REQUESTS[case.name]]
    assert tuple(stream.status for stream in streams) == case.statuses
    last = streams[-1]
    if case.body is not None:
        assert json.loads(last.body)["body"].encode("latin-1") == case.body
    for key, value in case.environ.items():
        if key not in OF_VERSION:
            assert json.loads(last.body)["environ"].get(key) == value, key
    if case.refused and len(streams) - 1 not in case.heads:
        assert last.body.startswith(b"%d " % last.status)
    # The connection goes on, whatever became of a stream.
    assert made.get("/after").status == 200
    ran = server.log(before).count("ran ")
    assert ran == 1 + sum(status == 200 for status in case.statuses)


@pytest.mark.parametrize("file", CASES)
def test_cases(serve: Serve, file: str) -> None:
    server = serve("tests/apps/echo.py", ON)

    def check(case: Case) -> None:
        for authority in (True, False):
            with using(server, kept) as made:
                check_case(case, made, server, authority=authority)

    kept: list[Client] = []
    check_each(CASES[file], check)
    kept[0].close()


@pytest.mark.parametrize("way", WAYS)
def test_cases_of_answers(serve: Serve, way: str) -> None:
    server = serve(f"{PERFORMER}:by_{way}", ON, tracebacks=True)

    def check(case: Case) -> None:
        with using(server, kept) as made:
            stream = [ask(made, each, authority=True) for each in REQUESTS[case.name]][-1]
            assert stream.status == case.statuses[-1]
            assert stream.reset == (INTERNAL_ERROR if case.end == "cut" else None)
            if case.body is not None:
                assert stream.body == case.body
            assert made.get("/after").body == b"/after"

    kept: list[Client] = []
    check_each([case for case in ANSWERS if case.answer and way in case.answer.ways], check)
    kept[0].close()
