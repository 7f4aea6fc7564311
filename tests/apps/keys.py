"""Measures interning and caching of the keys of the environ."""

from __future__ import annotations

import sys

from tests.apps.basics import Environ, Pieces, StartResponse, tell

#: The key object of `X-Known` in the last request that had one.
last: list[str] = []


def is_interned(key: str) -> bool:
    """Whether somebody has interned a string that equals `key`; from now on it is interned."""
    copy = "".join(list(key))
    return sys.intern(copy) is not copy


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer with what is found out about the keys of this request."""
    known = [key for key in environ if key == "HTTP_X_KNOWN"]
    junk = [key for key in environ if key.startswith("HTTP_JUNK")]
    told = {
        "junk": len(junk),
        "interned": sum(map(is_interned, junk)) if environ["PATH_INFO"] == "/interned" else None,
        "same": any(key is other for key in known for other in last),
    }
    last[:] = known or last
    return tell(start_response, told)
