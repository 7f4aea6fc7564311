"""Applications that return as JSON which mount was called, with SCRIPT_NAME and PATH_INFO."""

from __future__ import annotations

import os
from urllib.parse import unquote_to_bytes

from poorhttp.plugins.apps.cgi.local_redirect import LOCAL_REDIRECT, mount
from poorhttp.targets.mounts import Mounts
from tests.apps.basics import Environ, Pieces, StartResponse, WSGIApplication, tell

KEYS = ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "REQUEST_URI")


def named(name: str) -> WSGIApplication:
    def application(environ: Environ, start_response: StartResponse) -> Pieces:
        told = {key: environ.get(key) for key in KEYS}
        length = str(len(environ["wsgi.input"].read(-1)))
        return tell(start_response, {"name": name, "pid": os.getpid(), **told, "length": length})

    return application


one, two, three = named("one"), named("two"), named("three")


def program(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer by the name of what the query says, as a CGI program may."""
    everything: WSGIApplication = environ[LOCAL_REDIRECT]
    location = environ["QUERY_STRING"]
    path, _, query = location.partition("?")
    path = unquote_to_bytes(path).decode("latin-1")
    asked = dict(zip(KEYS, ("GET", "", path, query, location), strict=True))
    return everything({**environ, **asked}, start_response)


def _whole(environ: Environ, start_response: StartResponse) -> Pieces:
    return programs(environ, start_response)


#: A program beside another application.
programs = Mounts({"": {"/program": mount(program, "/program", _whole), "": one}})
