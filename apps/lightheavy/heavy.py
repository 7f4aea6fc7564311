"""The heavy page: matches fifteen addresses with a pattern, computes digests, shows versions."""

from __future__ import annotations

import os
import sys
from hashlib import md5, sha1
from time import strftime

from poorhttp import dispatch as http
from poorhttp.dispatch.pages import escape

ADDRESSES = (
    "anna@example.org",
    "anna_marie@example.org",
    "anna.marie@example.org",
    "anna-marie@example.org",
    "anna7@mail.example.org",
    "a@b",
    "anna marie@example.org",
    "anna.example.org",
    "anna-at-example-org",
    "anna&marie@example.org",
    "anna$@example.org",
    "anna(home)@example.org",
    "anna@example,org",
    "anna@example#org",
    "[anna@example.org]",
)


def heavy(req: http.Request) -> int:
    """Write the page. Expects the compiled pattern as `req.address`, from the table's hook."""
    now = strftime("%H:%M:%S")
    req.content_type = "text/html"
    req.write('<!DOCTYPE html>\n<html lang="en">\n  <head>\n    <meta charset="utf-8">\n')
    req.write("    <title>The heavy page</title>\n  </head>\n  <body>\n")
    req.write("    <h1>The heavy page</h1>\n")
    req.write("    <p>Good day. Some work goes into this page, unlike into the\n")
    req.write('      <a href="/light">light one</a>. It is\n')
    req.write(
        f"      <code>{strftime('%Y-%m-%d')}</code>, the clock says <code>{now}</code>.</p>\n"
    )
    req.write("    <h2>Is it an address?</h2>\n    <ul>\n")
    for text in ADDRESSES:
        verdict = "yes" if req.address.match(text) else "no"
        req.write(f"      <li><code>{escape(text)}</code>: {verdict}</li>\n")
    req.write("    </ul>\n    <h2>Digests of the time</h2>\n")
    time = now.encode()
    req.write(f"    <p>MD5 <code>{md5(time, usedforsecurity=False).hexdigest()}</code>,\n")
    req.write(f"      SHA-1 <code>{sha1(time, usedforsecurity=False).hexdigest()}</code></p>\n")
    req.write("    <h2>Made with</h2>\n")
    req.write(f"    <p>Python {escape(sys.version)} on {os.name}</p>\n")
    req.write(f"    <pre>{escape(sys.copyright)}</pre>\n")
    req.write("    <p>Thank you for the visit.</p>\n  </body>\n</html>\n")
    return http.DONE
