"""Flask views for all kinds of forms and responses: files, streams, sessions."""

from __future__ import annotations

import io
from collections.abc import Iterator

from flask import Flask, Response, jsonify, request, send_file, session, stream_with_context

application = Flask(__name__)
application.secret_key = "only for tests"


@application.post("/form")
def form() -> Response:
    """The fields of a form and the files sent with it."""
    files = {
        name: [file.filename, file.mimetype, file.read().decode("latin-1")]
        for name, file in request.files.items()
    }
    return jsonify(fields=request.form.to_dict(flat=False), files=files)


@application.get("/download/<int:size>")
def download(size: int) -> Response:
    """A file, with everything HTTP has for files: ranges and conditions."""
    return send_file(
        io.BytesIO(b"0123456789" * (size // 10)),
        download_name="digits.txt",
        etag="digits",
        conditional=True,
    )


@application.get("/itself")
def itself() -> Response:
    """This file, from disk."""
    return send_file(__file__)


@application.get("/stream")
def stream() -> Response:
    """Pieces, made while they are sent."""

    def pieces() -> Iterator[str]:
        for number in range(1_000):
            yield f"{number} {request.path}\n"

    return Response(stream_with_context(pieces()), mimetype="text/plain")


@application.get("/visits")
def visits() -> Response:
    """A session in a cookie."""
    session["visits"] = session.get("visits", 0) + 1
    return jsonify(session["visits"])


@application.get("/url")
def url() -> Response:
    """The address that the framework puts together from the environ."""
    return jsonify(url=request.url, remote=request.remote_addr)
