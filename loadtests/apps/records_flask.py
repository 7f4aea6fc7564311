"""The counterpart of `records.py` in Flask, compressed by Flask-Compress with its defaults."""

from __future__ import annotations

from flask import Flask, Response
from flask_compress import Compress

from loadtests.apps.records import content

application = Flask(__name__)
Compress(application)


@application.get("/")
@application.get("/<int:kilobytes>")
def records(kilobytes: int = 1) -> Response:
    return Response(content(kilobytes), mimetype="application/json")
