"""An application that handles its exceptions itself and answers 500, for tests of error pages."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

from tests.apps.basics import Environ, Pieces, StartResponse

FAILED = "500 Failed"

shop = logging.getLogger("shop")


def fail() -> NoReturn:
    basket = {"apples": 41}
    raise KeyError(f"no pears in {len(basket)}")


def elsewhere() -> None:
    try:
        raise ValueError("of another thread")
    except ValueError:
        shop.exception("elsewhere")


def in_thread() -> None:
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer by the path, which says how the exception is handled."""
    path = environ["PATH_INFO"].strip("/")
    errors = environ["wsgi.errors"]
    handle: dict[str, Callable[[], object]] = {
        **dict.fromkeys(("logged", "json", "fine", "busy"), lambda: shop.exception("failed")),
        "printed": traceback.print_exc,
        "written": lambda: errors.write(traceback.format_exc()),
        "thread": in_thread,
    }
    headers = [("Content-Type", "application/json" if path == "json" else "text/html")]
    if path == "none":
        start_response(FAILED, headers)
        return [b"sorry"]
    try:
        fail()
    except KeyError:
        if path == "info":
            start_response("200 OK", headers)
            start_response(FAILED, headers, sys.exc_info())
            return [b"sorry"]
        if path == "late":
            start_response("200 OK", headers)(b"some")
        if path in handle:
            handle[path]()
    if path != "late":
        start_response({"fine": "200 OK", "busy": "503 Busy"}.get(path, FAILED), headers)
    return iter([b"sorry"]) if path == "busy" else [b"sorry"]
