"""A WSGI project that the study `develop` edits: answers with versions of its modules."""

import time

from words import greeting

VERSION = "000000"


def application(environ, start_response):
    if environ["PATH_INFO"] == "/slow":
        time.sleep(0.05)
    read = len(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
    body = greeting.text(VERSION, read)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
