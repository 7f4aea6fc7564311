"""A page with a table of 50 rows, as a Flask view."""

from __future__ import annotations

import time
from pathlib import Path

from flask import Flask, render_template, request

# Its folder is told, because a file that is run has no package to find it by.
application = Flask("table", root_path=str(Path(__file__).resolve().parent))
application.jinja_env.keep_trailing_newline = True


@application.get("/table")
def table() -> str:
    """Numbers and their squares."""
    made = time.strftime("%H:%M:%S", time.gmtime())
    return render_template("table.html", name=request.args.get("name", "nobody"), time=made)
