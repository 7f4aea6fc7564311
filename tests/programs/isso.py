"""Isso, comments for web pages: the API as its script in the browser uses it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from tests.programs.running.application import Application, Steps

CONFIGURATION = """
[general]
dbpath = comments.db
host = http://site.example/
gravatar = true
latest-enabled = true
[guard]
enabled = false
[rss]
base = http://site.example
"""

#: The page with the comments: the browser sends its origin.
SITE = "http://site.example"


class Isso(Application):
    requirements = ("isso==0.14.0", "requests==2.34.2")
    target = "isso.run:application"
    environ = ("ISSO_SETTINGS=isso.cfg",)

    def prepare(self) -> None:
        Path("isso.cfg").write_text(CONFIGURATION)

    def drive(self) -> Steps:
        import requests

        browser = requests.Session()
        browser.headers.update({"Origin": SITE, "Referer": f"{SITE}/post/"})

        def ask(method: str, path: str, data: object = None) -> list[object]:
            """What the script reads of a response; it keeps the cookie of a field of its own."""
            body: dict[str, Any] = {} if data is None else {"json": data}
            headers = {"Content-Type": "application/json"}
            answer = browser.request(method, self.url + path, headers=headers, **body)
            assert "Date" in answer.headers
            cookie = answer.headers.get("X-Set-Cookie", "")
            if cookie:
                name, _, value = cookie.partition("=")
                browser.cookies.set(name, value.partition(";")[0], domain="127.0.0.1")
            cors = {
                name: value
                for name, value in answer.headers.items()
                if name.startswith("Access-Control-")
            }
            read = answer.json() if "json" in answer.headers["Content-Type"] else answer.text
            return [answer.status_code, cors, cookie.partition("=")[0], without_times(read)]

        script = browser.get(f"{self.url}/js/embed.min.js")
        kind, digest = script.headers["Content-Type"], hashlib.sha256(script.content)
        yield "script", [script.status_code, kind, digest.hexdigest()]
        unchanged = {"If-None-Match": script.headers["ETag"]}
        yield "script unchanged", browser.get(script.url, headers=unchanged).status_code
        preflight = {"Access-Control-Request-Method": "PUT"}
        allowed = browser.options(f"{self.url}/id/1", headers=preflight)
        yield "preflight", [allowed.status_code, allowed.headers["Access-Control-Allow-Methods"]]
        yield "configuration", ask("GET", "/config")
        yield "no comments", ask("GET", "/?uri=%2Fpost%2F&nested_limit=5")
        comment = {"author": "Änne", "email": "a@site.example", "website": None, "title": "Post"}
        first = {**comment, "text": "Hello **you** ✓", "parent": None, "notification": 0}
        yield "comment", ask("POST", "/new?uri=%2Fpost%2F", first)
        yield (
            "reply",
            ask("POST", "/new?uri=%2Fpost%2F", {**first, "parent": 1, "text": "a " * 9000}),
        )
        yield "both", ask("GET", "/?uri=%2Fpost%2F&nested_limit=5")
        yield "change", ask("PUT", "/id/1", {"text": "*Changed*", "author": "A", "website": None})
        feed = browser.get(f"{self.url}/feed?uri=%2Fpost%2F")
        yield "feed", [feed.status_code, feed.headers["Content-Type"], len(feed.text.splitlines())]
        yield "removal of a reply", ask("DELETE", "/id/2")
        yield "missing", ask("GET", "/nothing/here")


def without_times(read: object) -> object:
    """The same without the times at which comments were written and changed."""
    if isinstance(read, dict):
        times = ("created", "modified")
        return {key: key in times or without_times(value) for key, value in read.items()}
    if isinstance(read, list):
        return [without_times(each) for each in read]
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.Z+]+", "TIME", read) if isinstance(read, str) else read
