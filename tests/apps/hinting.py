"""Sends early hints (RFC 8297) in the way that the path names."""

from __future__ import annotations

from tests.apps.basics import TEXT, Environ, Pieces, StartResponse, wait_for_file

LINK = ("Link", "</style.css>; rel=preload; as=style")
OTHER = ("Link", "</page.js>; rel=preload; as=script")

#: Fields that are refused, and a word of the reason.
REFUSED = {
    "split": ("Link", "a\r\nSet-Cookie: b"),
    "name": ("Li nk", "a"),
    "length": ("Content-Length", "1"),
    "hop": ("Transfer-Encoding", "chunked"),
    "latin": ("Link", "\u20ac"),
}


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Send hints, and then `done`."""
    hint, log = environ["wsgi.early_hints"], environ["wsgi.errors"]
    name, query = environ["PATH_INFO"][1:], environ["QUERY_STRING"]
    fields = [TEXT, ("Content-Length", "4")]
    if name == "gate":
        hint([LINK])
        hint([OTHER, ("X-Other", "1")])
        wait_for_file(query)
    elif name == "started":
        start_response("200 OK", [*fields, ("X-Final", "yes")])
        hint([LINK])
        return [b"done"]
    elif name == "late":
        write = start_response("200 OK", fields)
        write(b"do")
        hint([LINK])
        return [b"ne"]
    elif name == "refused":
        for word, field in REFUSED.items():
            try:
                hint([LINK, field])
            except ValueError as error:
                log.write(f"refused {word}: {error}\n")
    elif name == "types":
        for wrong in ([("Link", b"a")], [["Link", "a"]], [("Link",)]):
            try:
                hint(wrong)
            except TypeError as error:
                log.write(f"wrong: {error}\n")
    elif name == "interim":
        try:
            start_response(query, fields)
        except ValueError as error:
            log.write(f"refused {query}: {error}\n")
    elif name == "passed":
        found = environ.get("HTTP_TRACEPARENT", "")
        fields += [("Server-Timing", "db;dur=53, app;dur=47.2"), ("traceparent", found)]
    elif name != "none":
        hint([LINK])
    start_response("200 OK", fields)
    return [b"done"]
