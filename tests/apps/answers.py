"""An application with responses of every shape, one by path."""

from __future__ import annotations

from collections.abc import Iterator

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse

#: Answers that are returned: status, headers, pieces.
RETURNED: dict[str, tuple[str, list[tuple[str, str]], Pieces]] = {
    # No length.
    "/one": ("200 OK", [TEXT], [b"hello"]),
    "/several": ("200 OK", [TEXT], [b"one ", b"", b"two ", b"three"]),
    "/pair": ("200 OK", [TEXT], (b"one ", b"two")),
    "/empty": ("200 OK", [TEXT], []),
    "/nothing_generated": ("200 OK", [TEXT], iter(())),
    # More than any buffer on the way.
    "/large": ("200 OK", [TEXT], [b"0123456789" * 500_000]),
    # More than one system call takes.
    "/many_pieces": ("200 OK", [TEXT], [b"0123456789"] * 5_000),
    "/no_content": ("204 No Content", [], []),
    "/not_modified": ("304 Not Modified", [("ETag", '"1"')], []),
    # Its own fields stand.
    "/dated": (
        "200 OK",
        [TEXT, ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"), ("Server", "mine")],
        [b"then"],
    ),
    # One name more than once; the order matters.
    "/cookies": ("200 OK", [TEXT, ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")], [b""]),
    # Octets above ASCII in a header and in the reason.
    "/latin": ("200 Tr\xe8s bien", [TEXT, ("X-Word", "caf\xe9")], [b""]),
    # Nobody has registered it, and it has no reason.
    "/odd_status": ("299 ", [TEXT], [b"odd"]),
}

#: Answers whose pieces come one by one, and are begun with the first: headers, pieces.
GENERATED = {
    "/generated": ([TEXT], [b"one ", b"", b"two ", b"three"]),
    "/generated_length": ([TEXT, ("Content-Length", "7")], [b"one ", b"two"]),
    "/large_generated": ([TEXT], [b"0123456789" * 100] * 5_000),
}


def generated(path: str, start_response: StartResponse) -> Iterator[bytes]:
    headers, pieces = GENERATED[path]
    start_response("200 OK", [*headers])
    yield from pieces


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    path = environ["PATH_INFO"]
    if path in GENERATED:
        return generated(path, start_response)
    status, headers, pieces = RETURNED[path]
    start_response(status, [*headers])
    return pieces
