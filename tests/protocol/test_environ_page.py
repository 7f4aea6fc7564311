"""docs/reference/environ.md, compared with the environ of a request."""

from __future__ import annotations

import re

from tests.conftest import Serve
from tests.testkit.server import ROOT

ALONE = True

PAGE = (ROOT / "docs/reference/environ.md").read_text(encoding="utf-8")
#: Each key of the page with its example.
KEYS = dict(re.findall(r"^\| `([^`]+)` \| (.*?) \| ", PAGE, re.M))
#: Keys of requests over TLS, and of those that ask for another protocol.
OTHERS = {"HTTPS", "SSL_PROTOCOL", "poorhttp.upgrade"}
#: Keys whose values differ from run to run.
CHANGING = {"SERVER_PORT", "REMOTE_PORT", "SERVER_SOFTWARE", "HTTP_HOST"}
CHANGING |= {"HTTP_X_REQUEST_ID"}
#: Header fields that every client may send.
FIELDS = ("X-Two: a", "X-Two: b", "Content-Type: text/plain")


def test_the_page_has_each_key(serve: Serve) -> None:
    app = "tests/apps/environ_texts.py"
    server = serve(app, "--request-id", "--mount", f"/shop={app}")
    with server.connect() as connection:
        path = "/shop/c%C3%A4rt?x=1"
        told = connection.request("POST", path, *FIELDS, body=b"hello").json()
    assert set(told) == set(KEYS) - OTHERS
    assert told["SERVER_PORT"] == f"'{server.port}'"
    assert told["SERVER_SOFTWARE"] == f"'poorhttp/{server.version}'"
    assert told["HTTP_HOST"] == "'test'"
    for key, example in KEYS.items():
        if key in told and key not in CHANGING and example.startswith("`"):
            assert f"`{told[key]}`" == example, key
