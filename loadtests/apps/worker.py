"""Answers with the ID of the process that serves the request."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """The process as ten digits."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "10")])
    return [b"%010d" % os.getpid()]
