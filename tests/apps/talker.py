"""An application that writes to stdout, stderr and logs as its query says."""

from __future__ import annotations

import faulthandler
import logging
from collections.abc import Iterable
from urllib.parse import unquote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

logger = logging.getLogger("talker")
logger.info("loaded")


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    text = unquote(environ["QUERY_STRING"])
    errors = environ["wsgi.errors"]
    match environ["PATH_INFO"]:
        case "/say":
            errors.write(text)
            errors.flush()
        case "/say-much":
            errors.write("x" * 10_000_000)
            errors.write("\n")
        case "/say-in-pieces":
            for piece in text:
                errors.write(piece)
        case "/logger":
            logger.warning("%s", text)
        case "/raise":
            raise ValueError(text)
        case "/trace":
            faulthandler.dump_traceback(errors, all_threads=False)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
