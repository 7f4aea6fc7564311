"""Static files over real connections, in every mode (RFC 9110 sections 12 to 15)."""

from __future__ import annotations

import email.policy
import functools
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from email.parser import BytesParser
from email.utils import parsedate_to_datetime

import pytest

from tests.support.check_each import KeptConnection, by_file, check_each
from tests.support.http2_as_http1 import StreamConnection
from tests.support.nobody import IS_ROOT
from tests.testkit.cases.static_files import Case, Site, read_cases
from tests.testkit.client import Connection, Response
from tests.testkit.server import Server, alone, stop_all, wait_for

CASES = by_file(read_cases())
#: Who is root may read everything, unless that is taken away.
LAUNCHER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if IS_ROOT else ()
#: Files whose time is a constant.
UNDATED = (b"old.txt", b"ancient.txt", b"zipped.txt")
#: What stands in every file outside of the folder.
CANARY = b"SECRET"
ETAG = re.compile(r"\{etag ?(\S*?)\}")

Publish = Callable[[tuple[str, ...]], Server]
Connect = Callable[[], Connection]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("static").resolve())


@pytest.fixture(scope="module")
def publish(mode: str, site: Site) -> Iterator[Publish]:
    """Servers of the folder, one for all cases with the same options."""
    running: dict[tuple[str, ...], Server] = {}

    def start(options: tuple[str, ...]) -> Server:
        if options not in running:
            words = ("--http2=on", *alone(mode), *options)
            server = Server(f"static:{site.folder}", mode, *words, launcher=LAUNCHER)
            running[options] = server
            # What has changed just now could change again unnoticed: until then tags are weak.
            wait_for(
                lambda: str(server.get("/hello.txt").get("ETag")).startswith('"'), "strong tags"
            )
        return running[options]

    yield start
    stop_all(running.values())


def ask(connection: Connection, method: str, target: bytes, fields: list[str]) -> Response:
    """Send a request whose target is whatever octets it is, and read the answer."""
    lines = [method.encode() + b" " + target + b" HTTP/1.1", b"Host: test"]
    connection.send(b"\r\n".join([*lines, *(line.encode("latin-1") for line in fields), b"", b""]))
    return connection.response(method)


def fields_of(case: Case, connections: KeptConnection) -> list[str]:
    """The fields of a case, with the tags that they name."""
    coding = [field for field in case.fields if field.startswith("Accept-Encoding:")]

    def tag(match: re.Match[str]) -> str:
        target = match[1].encode() or case.target
        with connections.use() as connection:
            found = ask(connection, "GET", target, [] if match[1] else coding)
        return found.get("ETag") or "none"

    return [ETAG.sub(tag, field) for field in case.fields]


def check_fields(case: Case, response: Response, tag: str) -> None:
    """Compare the fields of an answer with what is expected."""
    for name, value in case.answer:
        expected = ETAG.sub(lambda _: tag, value)
        found = response.get(name)
        assert found is not None, f"no {name}: {response.headers}"
        begin, dots, end = expected.partition("...")
        if dots:
            assert found.startswith(begin), f"{name}: {found}"
            assert found.endswith(end), f"{name}: {found}"
        else:
            assert found == expected, name
    for name in case.absent:
        assert response.get(name) is None, f"{name}: {response.get(name)}"


def check_always(case: Case, response: Response) -> None:
    """What holds for every answer."""
    assert CANARY not in response.body
    date = response.get("Date")
    assert date, response.headers
    if (modified := response.get("Last-Modified")) is not None:
        assert parsedate_to_datetime(modified) <= parsedate_to_datetime(date)
    if response.status == 405:
        assert response.get("Allow")
    if response.status in (200, 206) and response.get("ETag"):
        assert response.get("Accept-Ranges") == "bytes"
        assert response.get("Last-Modified") or case.of in UNDATED


def check_parts(case: Case, response: Response, content: bytes) -> None:
    """Compare one range, or several, with the octets of the file."""
    expected = [
        (f"bytes {first}-{last}/{len(content)}", content[first : last + 1])
        for first, last in case.parts
    ]
    if len(expected) == 1:
        assert [(response.get("Content-Range"), response.body)] == expected
        return
    head = f"Content-Type: {response.get('Content-Type')}\r\n\r\n".encode()
    message = BytesParser(policy=email.policy.HTTP).parsebytes(head + response.body)
    assert not message.defects
    found = [
        (str(part["Content-Range"]), part.get_payload(decode=True)) for part in message.iter_parts()
    ]
    assert found == expected


def check_case(site: Site, case: Case, connect: Connect, kept: KeptConnection) -> None:
    fields = fields_of(case, kept)
    plain = None
    if "{etag}" in str(case.answer):
        coding = [field for field in fields if field.startswith("Accept-Encoding:")]
        with connect() as connection:
            plain = ask(connection, "GET", case.target, coding)
    connections = KeptConnection(connect) if case.close else kept
    with connections.use(keep=not case.close) as connection:
        response = ask(connection, case.method, case.target, fields)
        assert response.status == case.status, (response.headers, response.body[:200])
        check_always(case, response)
        check_fields(case, response, str(plain and plain.get("ETag")))
        if case.method == "HEAD":
            assert response.body == b""
        elif case.of is not None and case.parts:
            check_parts(case, response, site.files[case.of])
        elif case.of is not None:
            assert response.body == site.files[case.of]
        if case.body is not None:
            assert response.body == case.body
        for text in case.holds:
            assert text in response.body, response.body
        for text in case.lacks:
            assert text not in response.body, response.body
        if case.close:
            assert connection.at_end(), "the connection stays open"
        else:
            # Whatever was sent too much or too little, this would not be read right.
            assert ask(connection, "GET", b"/hello.txt", []).body == site.files[b"hello.txt"]


def check_cases(
    publish: Publish,
    cases: list[Case],
    check: Callable[[Case, Connect, KeptConnection], None],
    connected: Callable[[Connection], Connection] = lambda connection: connection,
) -> None:
    """Check cases with the server of their options and a kept connection to it."""
    kept: dict[Server, KeptConnection] = {}

    def check_one(case: Case) -> None:
        server = publish(case.options)

        def connect() -> Connection:
            return connected(server.connect())

        if server not in kept:
            kept[server] = stack.enter_context(KeptConnection(connect))
        check(case, connect, kept[server])

    with ExitStack() as stack:
        check_each(cases, check_one)


@pytest.mark.parametrize("file", CASES)
def test_cases(publish: Publish, site: Site, file: str) -> None:
    check_cases(publish, CASES[file], functools.partial(check_case, site))


@pytest.mark.parametrize("file", CASES)
def test_cases_over_http2(publish: Publish, site: Site, file: str) -> None:
    cases = [case for case in CASES[file] if "Transfer-Encoding: chunked" not in case.fields]
    check_cases(publish, cases, functools.partial(check_case, site), StreamConnection)


def lasting(response: Response) -> list[tuple[str, str]]:
    """The fields of an answer but for the time, in any order."""
    return sorted(field for field in response.headers if field[0] != "Date")


def check_head(case: Case, _: Connect, kept: KeptConnection) -> None:
    """RFC 9110 section 9.3.2; ranges are of GET only (section 14.2)."""
    ranges = ("range:", "if-range:")
    all_fields = fields_of(case, kept)
    fields = [field for field in all_fields if not field.lower().startswith(ranges)]
    with kept.use() as connection:
        get = ask(connection, "GET", case.target, fields)
        head = ask(connection, "HEAD", case.target, all_fields)
        assert (head.status, head.body) == (get.status, b"")
        assert lasting(head) == lasting(get)
        assert ask(connection, "GET", b"/hello.txt", []).status == 200


@pytest.mark.parametrize("file", CASES)
def test_head_is_get_without_content(publish: Publish, file: str) -> None:
    """No mode has a part in this: the core answers for files alone."""
    read = [case for case in CASES[file] if case.method == "GET" and not case.close]
    check_cases(publish, read, check_head)


def test_there_are_enough() -> None:
    assert sum(map(len, CASES.values())) > 500
