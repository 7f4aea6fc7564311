"""A Flask application that sends files of the folder FILES by X-Sendfile."""

from __future__ import annotations

import os

from flask import Flask, Response, send_from_directory

application = Flask(__name__)
application.config["USE_X_SENDFILE"] = True


@application.get("/<path:name>")
def send(name: str) -> Response:
    return send_from_directory(os.environ["FILES"], name)
