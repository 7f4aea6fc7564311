"""Flask views for all kinds of forms and responses: files, streams."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Flask, Response, jsonify, request, stream_with_context

application = Flask(__name__)


@application.post("/form")
def form() -> Response:
    """The fields of a form and the files sent with it."""
    files = {
        name: [file.filename, file.mimetype, file.read().decode("latin-1")]
        for name, file in request.files.items()
    }
    return jsonify(fields=request.form.to_dict(flat=False), files=files)


@application.get("/stream")
def stream() -> Response:
    def pieces() -> Iterator[str]:
        for number in range(1_000):
            yield f"{number} {request.path}\n"

    return Response(stream_with_context(pieces()), mimetype="text/plain")


@application.get("/url")
def url() -> Response:
    """The address that the framework puts together from the environ."""
    return jsonify(url=request.url, remote=request.remote_addr)
