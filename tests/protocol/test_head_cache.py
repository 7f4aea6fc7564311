"""The head cache: a repeated head is not parsed again, and shares nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Serve
from tests.testkit.client import Response

ALONE = True


#: What requests are put together of: method, target, two fields, and the body with its length.
PARTS = [
    st.sampled_from([b"GET", b"PUT", b"POST"]),
    st.sampled_from([b"/", b"/a", b"/b", b"/aa", b"/?", b"/?a", b"/a?b", b"/%61"]),
    st.sampled_from([b"", b"Cookie: secret=1\r\n", b"Cookie: secret=2\r\n", b"X: 1\r\n"]),
    st.sampled_from([b"", b"X: 1\r\n", b"X: 2\r\n", b"x: 1\r\n", b"Y: 1\r\n", b"X:1\r\n"]),
    st.sampled_from(
        [
            *(b"\r\n", b"\r\n", b"Content-Length: 0\r\n\r\n"),
            *(b"Content-Length: 1\r\n\r\na", b"Content-Length: 1\r\n\r\nb"),
            b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        ]
    ),
]


@st.composite
def similar(draw: st.DrawFn) -> list[bytes]:
    """Requests of which all but the first differ from it in one part."""
    first = [draw(part) for part in PARTS]
    requests = [first]
    for number in draw(st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=3)):
        requests.append([*first])
        requests[-1][number] = draw(PARTS[number])
    return [b"%s %s HTTP/1.1\r\nHost: a\r\n%s%s%s" % tuple(parts) for parts in requests]


#: Few requests, and in which order they come: what is one item of the list is sent at once.
CONVERSATIONS = similar().flatmap(
    lambda requests: st.lists(
        st.lists(st.sampled_from(requests), min_size=1, max_size=6), min_size=1, max_size=12
    )
)


@pytest.fixture(scope="module")
def alone(mode: str) -> dict[bytes, object]:
    """How requests are answered that have a connection of their own, as far as that is known."""
    return {}


@settings(max_examples=settings().max_examples // 2)
@given(CONVERSATIONS)
def test_requests_in_any_order(
    serve: Serve, alone: dict[bytes, object], conversation: list[list[bytes]]
) -> None:
    """Each answer is that of the same request on a connection of its own."""
    server = serve("tests/apps/echo.py")
    with server.connect() as connection:
        for requests in conversation:
            connection.send(b"".join(requests))
            for request in requests:
                if request not in alone:
                    with server.connect() as own:
                        own.send(request)
                        alone[request] = described(own.response())
                assert described(connection.response()) == alone[request]


def test_an_environ_that_was_changed(serve: Serve) -> None:
    """Frameworks write into the environ: the next request must not see it."""
    server = serve("tests/apps/scribbler.py")
    with server.connect() as connection:
        for _ in range(6):
            assert connection.request("GET", "/").body == b"clean"


def described(response: Response) -> object:
    """What must be the same: status and, from our application, all of the environ but the port."""
    told = response.json()
    del told["environ"]["REMOTE_PORT"]
    return response.status, told
