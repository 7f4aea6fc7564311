"""An application that returns user, folder, umask and environment of its process as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    umask = os.umask(0)
    os.umask(umask)
    start_response("200 OK", [("Content-Type", "application/json")])
    found = {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "uid": os.getuid(),
        "gid": os.getgid(),
        "umask": umask,
        "environ": dict(os.environ),
    }
    return [json.dumps(found).encode()]
