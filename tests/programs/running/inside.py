"""Prepares a third-party program, or runs its clients, in its own virtual environment.

The Python is the one of the program's environment. Without a server, the program is prepared in the
folder. With one, its clients do their steps; each is a line of JSON on standard output.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.programs.running.application import load


def main(name: str, folder: str, url: str, server: str = "") -> None:
    """Prepare the program, or visit it under a server."""
    # Clients print to standard output too: that goes to standard error.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as output:
        os.dup2(2, 1)
        application = load(name)(url, server)
        os.chdir(folder)
        if not server:
            if application.wsgi:
                Path("wsgi.py").write_text(application.wsgi)
            application.prepare()
            return
        for step, seen in application.drive():
            print(json.dumps([step, seen], sort_keys=True), file=output, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
