"""The web archive pywb: replay, an index, and recording of a live site.

It starts servers in greenlets when it is imported, which it asks for each page. They run in the
hub of the main thread, so not beside the threads of the mode `threading`, nor of gunicorn's
`gthread`.
"""

from __future__ import annotations

import hashlib
import io
import re
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.programs.running.application import Application, Steps

CONFIGURATION = """
collections_root: collections
recorder: live
collections:
  live: $live
"""

PAGE = (
    '<html><head><title>Käse</title><script src="/a.js"></script></head>'
    '<body><a href="/two?x=1">two</a><img src="http://site.example/i.png"></body></html>'
)

#: What is archived: type and content by address.
ARCHIVED = {
    "/": ("text/html; charset=utf-8", PAGE.encode()),
    "/a.js": ("text/javascript", b"window.location.href;\n" * 2_000),
    "/two?x=1": ("text/plain", b"two"),
    "/i.png": ("image/png", bytes(range(256)) * 4_000),
}

#: Fields that the server sends, and those of the archived response.
KEPT = ("Content-Type", "Content-Range", "Location", "Link", "Memento-Datetime", "Set-Cookie")


class Pywb(Application):
    requirements = ("pywb==2.10.0", "requests==2.34.2", "packaging==26.4")
    target = "pywb.apps.wayback:application"
    gunicorn_options = ("--worker-class", "gevent")
    modes = ("forking", "gevent")
    path = "/static/default_banner.css"

    def prepare(self) -> None:
        from warcio.statusandheaders import StatusAndHeaders
        from warcio.warcwriter import WARCWriter

        Path("config.yaml").write_text(CONFIGURATION)
        with open("site.warc.gz", "wb") as file:
            writer = WARCWriter(file, gzip=True)

            def archive(path: str, status: str, fields: list[tuple[str, str]], body: bytes) -> None:
                record = writer.create_warc_record(
                    f"http://site.example{path}",
                    "response",
                    payload=io.BytesIO(body),
                    http_headers=StatusAndHeaders(status, fields, protocol="HTTP/1.1"),
                    warc_headers_dict={"WARC-Date": "2020-05-05T05:05:05Z"},
                )
                writer.write_record(record)

            for path, (kind, body) in ARCHIVED.items():
                # Fields of one connection are archived too, and must not be sent to another.
                fields = [("Content-Type", kind), ("Content-Length", str(len(body)))]
                fields += [("Connection", "keep-alive"), ("Set-Cookie", "a=b; path=/")]
                archive(path, "200 OK", fields, body)
            archive("/old", "302 Found", [("Location", "/two?x=1")], b"")
        self.run("wb-manager", "init", "site")
        self.run("wb-manager", "add", "site", "site.warc.gz")

    def drive(self) -> Steps:
        import requests

        browser = requests.Session()

        def get(path: str, **fields: str) -> list[object]:
            """Status, fields and content of a response."""
            headers = {name.replace("_", "-"): value for name, value in fields.items()}
            answer = browser.get(self.url + path, headers=headers, allow_redirects=False)
            kept = {name: answer.headers[name] for name in KEPT if name in answer.headers}
            digest = hashlib.sha256(answer.content).hexdigest()
            return [answer.status_code, kept, len(answer.content), digest]

        yield "home", get("/")
        yield "collections", browser.get(f"{self.url}/collinfo.json").json()
        yield "collection", get("/site/")
        yield "static file", get("/static/wombat.js")
        index = browser.get(f"{self.url}/site/cdx?url=http://site.example/*&output=json")
        yield (
            "index",
            [re.sub(r'"(?:offset|length)": "\d+"', "", each) for each in index.text.splitlines()],
        )
        yield "frame", get("/site/2020/http://site.example/")
        yield "page", get("/site/20200505050505mp_/http://site.example/")
        yield "page with a query", get("/site/20200505050505mp_/http://site.example/two?x=1")
        yield "redirect", get("/site/20200505050505mp_/http://site.example/old")
        yield "script", get("/site/20200505050505js_/http://site.example/a.js")
        yield "picture", get("/site/20200505050505id_/http://site.example/i.png")
        yield "part", get("/site/20200505050505id_/http://site.example/i.png", Range="bytes=10-19")
        yield "not archived", get("/site/mp_/http://site.example/none")
        yield "no collection", get("/nothing/")
        picture = f"{self.url}/site/20200505050505id_/http://site.example/i.png"
        with ThreadPoolExecutor(8) as clients:
            answers = clients.map(lambda _: requests.get(picture), range(40))
            yield "many at once", sorted({len(each.content) for each in answers})
        yield from self.record()

    def record(self) -> Steps:
        """Open a site through the archive, which records it; then open what is recorded."""
        import requests

        with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
            Thread(target=site.serve_forever).start()
            origin = f"http://127.0.0.1:{site.server_port}"
            for path in ARCHIVED:
                answer = requests.get(f"{self.url}/site/record/id_/{origin}{path}")
                yield f"recorded {path}", [answer.status_code, len(answer.content)]
            site.shutdown()
        self.run("wb-manager", "reindex", "site")
        for path in ARCHIVED:
            answer = requests.get(f"{self.url}/site/id_/{origin}{path}")
            yield f"replayed {path}", [answer.status_code, len(answer.content)]


class Site(BaseHTTPRequestHandler):
    """A site on this machine, which is recorded."""

    def do_GET(self) -> None:
        kind, body = ARCHIVED[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
