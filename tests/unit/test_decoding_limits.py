"""Limits of decoding: content codings, JSON, part headers, in dispatch tables and pages."""

from __future__ import annotations

import encodings.aliases
import json
from collections.abc import Iterator

import pytest

from poorhttp.errors import ApplicationError
from tests.support.template_pages import write
from tests.testkit.client import Response
from tests.testkit.server import Server
from tests.unit.test_dispatch_api import FORM, multipart, table

TABLE = """
import encodings
import json
from poorhttp import dispatch as http

max_memory = 1000

def form(req):
    before = set(encodings._cache)
    text = req.form.getfirst("a", "")
    return json.dumps([len(text), ascii(text[:20]), sorted(set(encodings._cache) - before)])

def large(req):
    req.max_memory = 3000
    return str(len(req.body))

handlers = {
    "/form": (http.METHOD_POST, form),
    "/json": (http.METHOD_POST, lambda req: json.dumps(req.json)),
    "/body": (http.METHOD_POST, lambda req: str(len(req.body))),
    "/large": (http.METHOD_POST, large),
}
"""

#: Names and aliases of all codecs of Python, some that only Python has, and none of any.
CODECS = sorted(
    {*encodings.aliases.aliases, *encodings.aliases.aliases.values()}
    | {"punycode", "unicode_escape", "raw_unicode_escape", "utf_8_sig"}
    | {"zlib", "klingon", "__init__"}
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("table")
    (folder / "dispatch_table.py").write_text(TABLE)
    with Server(f"dispatch:{folder}") as server:
        yield server


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("pages")
    write(
        folder,
        {
            "form.html": '${len(form.getfirst("a"))}',
            "json.html": "${type(request.json).__name__}",
            "large.html": "<% request.max_memory = 10 %>${len(request.body)}",
        },
    )
    with Server(f"pages:{folder}") as server:
        yield server


def post_form(server: Server, charset: str, content: bytes) -> Response:
    head = f'name="a"\r\nContent-Type: text/plain; charset="{charset}"'
    return post_parts(server, (head, content))


def post_parts(server: Server, *parts: tuple[str, bytes]) -> Response:
    body, headers = multipart(*parts)
    return server.request("POST", "/form", *map(": ".join, headers.items()), body=body)


def test_no_codec_but_four_decodes_a_field(server: Server) -> None:
    content = "ž-".encode() * 60_000
    for name in CODECS:
        if name.replace("_", "-") in ("idna", "undefined"):
            continue
        answer = post_form(server, name, content)
        assert answer.status == 200, name
        length, _, codecs = answer.json()
        single_byte = length == len(content)
        assert length in (len(content), len(content.decode())), name
        assert not single_byte or set(codecs) <= {"ascii", "latin_1", "cp1252"}, name
        assert single_byte or codecs == [], name


@pytest.mark.parametrize(
    "name", ["ascii", "US-ASCII", "ISO-8859-1", "Latin1", "windows-1252", "CP1252"]
)
def test_a_field_in_one_of_the_four_charsets(server: Server, name: str) -> None:
    content = b"\x80\xe9 \xc5\xbe"
    answer = post_form(server, name, content)
    assert answer.json()[1] == ascii(content.decode(name, "replace"))


@pytest.mark.parametrize("name", ["idna", "IDNA", "undefined", "utf\0-8", "utf-8\x7f"])
def test_a_charset_that_is_none_is_a_bad_request(server: Server, pages: Server, name: str) -> None:
    for answer in (post_form(server, name, b"x"), post_form(pages, name, b"x")):
        assert answer.status == 400
        assert b"The form names an unknown charset" in answer.body


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 20_000, b"1" * 100_000, b"\xff", b""])
def test_json_that_cannot_be_read_is_a_bad_request(pages: Server, body: bytes) -> None:
    answer = pages.request("POST", "/json", body=body)
    assert answer.status == 400
    assert b"is not valid JSON" in answer.body


def test_a_body_beyond_the_tables_limit_is_too_large(server: Server) -> None:
    for path, largest in (("/body", 1000), ("/json", 1000), ("/large", 3000)):
        body = json.dumps("x" * (largest - 2)).encode()
        assert server.request("POST", path, body=body).status == 200
        refused = [server.request("POST", path, body=body + b" ")]
        with server.connect() as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.send(head.encode() + b"%x\r\n%b \r\n0\r\n\r\n" % (largest + 1, body))
            refused.append(connection.response())
        for answer in refused:
            assert answer.status == 413
            assert f"The body is larger than {largest} bytes".encode() in answer.body


def test_a_body_of_a_page_has_a_limit(pages: Server) -> None:
    assert pages.request("POST", "/large", body=b"1" * 10).status == 200
    assert pages.request("POST", "/large", body=b"1" * 11).status == 413
    assert pages.request("POST", "/json", body=b" " * (8 * 1024**2) + b"1").status == 413


@pytest.mark.parametrize("limit", ["8M", -1, None])
def test_a_limit_that_is_none_is_refused(limit: object) -> None:
    with pytest.raises(ApplicationError, match=r"max_memory is .*, it should be a number of bytes"):
        table(max_memory=limit)


def test_continuation_lines_of_a_part_are_limited(server: Server) -> None:
    head = 'name="a";{}\r\n z=z'
    assert post_parts(server, *[(head.format("\r\n x=y;" * 7), b"1")] * 3).json()[0] == 1
    refused = post_parts(server, (head.format("\r\n x=y;" * 8), b"1"))
    assert refused.status == 413
    assert b"continuation lines" in refused.body


def test_a_form_may_have_any_charset_in_its_type(server: Server) -> None:
    headers = f"Content-Type: {FORM['Content-Type']}; charset=punycode"
    assert server.request("POST", "/form", headers, body=b"a=%C5%BE").json()[0] == 1
