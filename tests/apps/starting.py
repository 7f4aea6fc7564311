"""An application that starts a program, which lists its inherited descriptors."""

from __future__ import annotations

import os
import subprocess

from tests.apps.basics import Environ, Pieces, StartResponse


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer with the process, and with what the program says."""
    program = ["ls", "-l", "/proc/self/fd"]
    done = subprocess.run(program, close_fds=False, stdout=subprocess.PIPE, check=True)
    start_response("200 OK", [])
    return [f"{os.getpid()}\n".encode(), done.stdout]
