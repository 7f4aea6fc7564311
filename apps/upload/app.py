"""A form that takes files and says what arrived: name, size and SHA-256. Nothing is kept."""

from __future__ import annotations

from hashlib import sha256

from poorhttp import dispatch as http
from poorhttp.dispatch.pages import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_TOP = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Upload</title>
<h1>Upload</h1>
<form method="post" enctype="multipart/form-data">
<p><input type="file" name="file" multiple> <input name="note" placeholder="note">
<button>Send</button></p>
</form>
"""


def show(req: http.Request) -> str:
    """The form."""
    return _TOP


def receive(req: http.Request) -> int:
    """The form again, and what was sent with it; as text to a client that asks for text."""
    files = [field for field in req.form.list if field.file is not None]
    lines = [f"{field.filename} {field.size} {_digest(field.file)}" for field in files]
    if "text/plain" in (req.headers_in.get("Accept") or ""):
        req.content_type = "text/plain"
        req.write("".join(f"{line}\n" for line in lines))
        return http.DONE
    req.write(_TOP)
    req.write("<ul>\n")
    for line in lines:
        req.write(f"<li><code>{escape(line)}</code></li>\n")
    req.write("</ul>\n")
    note = req.form.getfirst("note")
    if isinstance(note, str):
        req.write(f"<p>{escape(note)}</p>\n")
    return http.DONE


def _digest(file: BinaryIO | None) -> str:
    digest = sha256()
    while file and (piece := file.read(65536)):
        digest.update(piece)
    return digest.hexdigest()


application = http.Application({"/": {http.METHOD_GET: show, http.METHOD_POST: receive}})
