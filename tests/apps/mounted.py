"""Applications that return as JSON which mount was called, with SCRIPT_NAME and PATH_INFO."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from poorhttp.plugins.apps.cgi.local_redirect import LOCAL_REDIRECT, mount
from poorhttp.targets.mounts import Mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def named(name: str) -> WSGIApplication:
    """Make one."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        keys = ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "REQUEST_URI")
        told = {key: environ.get(key) for key in keys}
        told["length"] = str(len(environ["wsgi.input"].read(-1)))
        return [json.dumps({"name": name, "pid": os.getpid(), **told}).encode()]

    return application


one, two, three = named("one"), named("two"), named("three")


def program(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer by the name of what the query says, as a CGI program may."""
    everything: WSGIApplication = environ[LOCAL_REDIRECT]
    location = environ["QUERY_STRING"]
    path, _, query = location.partition("?")
    asked = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "REQUEST_URI": location,
    }
    return everything({**environ, **asked}, start_response)


def _whole(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    return programs(environ, start_response)


#: A program beside another application.
programs = Mounts({"": {"/program": mount(program, "/program", _whole), "": one}})
