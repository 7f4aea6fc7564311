"""A collector of what agents and SDKs send over HTTP, on a port of this machine."""

from __future__ import annotations

import gzip
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import brotli
from typing_extensions import Self

from tests.testkit.client import HANG

DECODED = {"gzip": gzip.decompress, "deflate": zlib.decompress, "br": brotli.decompress}


class Collector(ThreadingHTTPServer):
    """Keeps the decoded bodies of all requests."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = b""
                if self.headers.get("Transfer-Encoding") == "chunked":
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                bodies.append(DECODED.get(self.headers.get("Content-Encoding", ""), bytes)(body))
                self.send_response(202 if "intake" in self.path else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_PUT = do_GET = do_POST  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join(HANG)
        self.server_close()
