"""What each client of `make interop` does, and the table of what it saw."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from tests.support.browser import Browser, chromium, tab
from tests.support.certificate import certificate
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, Server, wait_for

CHECKS = ("get", "post", "trailers", "parallel", "hints", "events", "cancel", "download")
HERE = Path(__file__).parent / "clients"

#: Where Go is, if it is not on the path.
FOLDERS = ("/usr/local/go/bin",)

#: 1 MB, and what the server says of it.
BODY = b"0123456789" * 100_000
DIGEST = f"{len(BODY)} {hashlib.sha256(BODY).hexdigest()}\n"


@dataclass(frozen=True)
class Place:
    """The server under test as one client sees it.

    Attributes:
        client: the name of the client, which makes paths that are its own.
        url: where the server is, without a slash at the end.
        folder: has `authority.pem`, and `body`.
    """

    client: str
    url: str
    folder: Path

    @property
    def authority(self) -> str:
        """The file with the certificate of the authority."""
        return str(self.folder / "authority.pem")

    @property
    def is_secure(self) -> bool:
        return self.url.startswith("https:")

    def ask(self, path: str) -> str:
        """What the server answers to another client, in HTTP/1.1."""
        context = certificate().client_context()
        handler = urllib.request.HTTPSHandler(context=context)
        opener = urllib.request.build_opener(handler, urllib.request.ProxyHandler({}))
        with opener.open(self.path(path), timeout=HANG) as response:
            return str(response.read().decode())

    def path(self, path: str) -> str:
        """The URL of a path with the name of the client."""
        return f"{self.url}{path}?{self.client}"


#: What a client saw, for each check: `ok`, or what is wrong.
Seen = Mapping[str, str]
#: Raises an AssertionError if something is wrong.
Check = Callable[[], None]


@dataclass(frozen=True)
class Client:
    """One client.

    Attributes:
        program: what has to be installed.
        package: the package of Debian, or of Python.
        run: does all checks.
        needs_tls: it does not speak HTTP/2 without.
        without_tls: what it speaks then.
    """

    program: str
    package: str
    run: Callable[[Place], Seen]
    needs_tls: bool = False
    without_tls: str = "h2c"

    def is_installed(self) -> bool:
        return bool(find_spec("httpx") if self.program == "httpx" else found(self.program))


def found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path=":".join(FOLDERS))


def output(*words: str) -> str:
    """What a command prints; an AssertionError with what it complains of, if it fails."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG, check=False, cwd=ROOT
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr.decode()[-300:]}"
    return done.stdout.decode()


def source(*words: str) -> Callable[[Place], Seen]:
    """A client of `clients/`, which prints a line for each check."""

    def run(place: Place) -> Seen:
        program = sys.executable if words[0] == "httpx" else str(found(words[0]))
        command = [program, *words[1:-1], str(HERE / words[-1]), place.url, place.authority]
        lines = output(*command).splitlines()
        return dict((line + " ").split(" ", 1) for line in lines)

    return run


def each(checks: Mapping[str, Check]) -> Seen:
    """What becomes of functions that raise an AssertionError if something is wrong."""
    seen = {}
    for name, check in checks.items():
        try:
            check()
            seen[name] = "ok"
        except (AssertionError, subprocess.TimeoutExpired) as error:
            seen[name] = str(error).splitlines()[0]
    return seen


def same(found: object, expected: object) -> None:
    assert found == expected, f"{found!r:.80}"


def prints(expected: str, *words: str) -> Check:
    """A check of all that a command prints."""
    return lambda: same(output(*words), expected)


@contextmanager
def streaming(*words: str) -> Iterator[IO[bytes]]:
    """What a command prints, read while it runs; it is killed at the end."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        try:
            yield running.stdout
        finally:
            running.kill()


def while_it_comes(place: Place, *words: str) -> dict[str, Check]:
    """Checks of a program that prints a response while it comes."""

    def events() -> None:
        with streaming(*words, place.path("/events")) as printed:
            same(printed.read(9), b"data: 1\n\n")
            place.ask("/next")
            same(printed.read(), b"data: 2\n\n")

    def cancel() -> None:
        with streaming(*words, place.path("/endless")) as printed:
            same(len(printed.read(30_000)), 30_000)
        wait_for(lambda: place.ask("/left") == "yes\n", "the end of the response")

    return {"events": events, "cancel": cancel}


def curl(place: Place) -> Seen:
    version = "--http2" if place.is_secure else "--http2-prior-knowledge"
    words = ["curl", "-sSN", "--noproxy", "*", "--cacert", place.authority, version]
    post = ("--data-binary", f"@{place.folder}/body", f"{place.url}/digest")
    many = ("-Z", "--parallel-max", "100", f"{place.url}/hello?[1-100]")

    def hints() -> None:
        head = output(*words, "-i", f"{place.url}/hints")
        assert head.startswith("HTTP/2 103"), head

    def download() -> None:
        target = place.folder / f"curl{place.is_secure}"
        output(*words, "--limit-rate", "10M", "-o", str(target), f"{place.url}/large")
        same(target.stat().st_size, 10_000_000)

    checks = {
        "get": prints("hello\n2", *words, "-w", "%{http_version}", f"{place.url}/hello"),
        "post": prints(DIGEST, *words, *post),
        "hints": hints,
        "download": download,
        **while_it_comes(place, *words),
    }
    # Without TLS, curl 7.88 fails (16) in each transfer that waits for the first, with nginx too.
    if place.is_secure:
        checks["parallel"] = prints("hello\n" * 100, *words, *many)
    return each(checks)


def nghttp(place: Place) -> Seen:
    post = ("-d", f"{place.folder}/body", f"{place.url}/digest")

    def hints() -> None:
        assert ":status: 103" in output("nghttp", "-nv", f"{place.url}/hints"), "no 103"

    def download() -> None:
        # Windows of 64 KiB: the server waits for each of them.
        with streaming("nghttp", "-w", "16", "-W", "16", f"{place.url}/large") as printed:
            same(len(printed.read()), 10_000_000)

    return each(
        {
            "get": prints("hello\n", "nghttp", f"{place.url}/hello"),
            "post": prints(DIGEST, "nghttp", *post),
            "trailers": prints(DIGEST, "nghttp", "--trailer", "x-sum: 1", *post),
            "parallel": prints("hello\n" * 100, "nghttp", "-m", "100", f"{place.url}/hello"),
            "hints": hints,
            "download": download,
            **while_it_comes(place, "stdbuf", "-o0", "nghttp"),
        }
    )


def h2load(place: Place) -> Seen:
    def load(requests: str, *words: str) -> Check:
        def run() -> None:
            report = output("h2load", "-n", requests, *words)
            assert f"status codes: {requests} 2xx" in report, report[-400:]

        return run

    return each(
        {
            "get": load("10", f"{place.url}/hello"),
            "post": load("4", "-d", f"{place.folder}/body", f"{place.url}/digest"),
            "parallel": load("1000", "-c", "4", "-m", "100", f"{place.url}/hello"),
            "download": load("4", "-m", "4", "-w", "14", f"{place.url}/large"),
        }
    )


#: JavaScript for each check in a browser, which is on a page of the server; its value is true.
IN_BROWSER = {
    "get": "await text('/hello') === 'hello\\n' && protocol('/hello') === 'h2'",
    "post": "await text('/digest', {method: 'POST', body: '0123456789'.repeat(100000)})"
    f" === {DIGEST!r}",
    "parallel": "(await Promise.all(Array.from({length: 100}, (_, i) => text('/hello?' + i))))"
    ".every(each => each === 'hello\\n')",
    "events": "await new Promise((done, fail) => { const found = [];"
    " const source = new EventSource('/events?browser');"
    " source.onerror = () => fail('error after ' + found);"
    " source.onmessage = event => { found.push(event.data); text('/next?browser');"
    " if (found.length === 2) { source.close(); done(found.join() === '1,2') } } })",
    "cancel": "await (async () => { const leaving = new AbortController();"
    " const response = await fetch('/endless?browser', {signal: leaving.signal});"
    " await response.body.getReader().read(); leaving.abort();"
    " for (let round = 0; round < 1000; round++) {"
    " if (await text('/left?browser') === 'yes\\n') return true; await sleep(50) } })()",
    "download": "await (async () => { const reader = (await fetch('/large')).body.getReader();"
    " let size = 0; for (;;) { const {done, value} = await reader.read();"
    " if (done) return size === 10000000; size += value.length; await sleep(1) } })()",
}
SCRIPT = """(async () => {
    const sleep = time => new Promise(done => setTimeout(done, time))
    const text = async (path, options) => (await fetch(path, options)).text()
    const protocol = path => performance.getEntriesByName(location.origin + path)[0].nextHopProtocol
    return %s
})()"""


def browser(place: Place) -> Seen:
    def run(script: str, shown: Browser) -> Check:
        return lambda: same(shown.run(SCRIPT % script), True)

    with chromium() as driver, tab(driver) as shown:
        shown.open(f"{place.url}/hello")
        return each({name: run(script, shown) for name, script in IN_BROWSER.items()})


CLIENTS = {
    "curl": Client("curl", "curl", curl),
    "nghttp": Client("nghttp", "nghttp2-client", nghttp),
    "h2load": Client("h2load", "nghttp2-client", h2load),
    "httpx": Client("httpx", "pip install httpx[http2]", source("httpx", "client_httpx.py")),
    "node": Client("node", "nodejs", source("node", "client.mjs")),
    "go": Client("go", "golang-go, 1.25 or newer", source("go", "run", "client.go")),
    "java": Client(
        "java", "default-jdk-headless", source("java", "Client.java"), without_tls="HTTP/1.1"
    ),
    "chromium": Client("chromium", "chromium chromium-driver", browser, needs_tls=True),
}


@contextmanager
def served(mode: str = "threading") -> Iterator[tuple[Server, Path]]:
    """The server at two ports, with the folder of a `Place`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate().write(folder / "site.pem")
        certificate().authority.cert_pem.write_to_path(str(folder / "authority.pem"))
        (folder / "body").write_bytes(BODY)
        options = ("--http2=on", "--early-hints=on", "--tls-certificate", str(folder / "site.pem"))
        bind = ("127.0.0.1:0", "https://127.0.0.1:0")
        with Server("tests/interop/served.py", mode, *options, bind=bind) as server:
            yield server, folder


def visit(name: str, scheme: str, server: Server, folder: Path) -> Seen:
    """What a client sees of a server."""
    url = f"{scheme}://127.0.0.1:{server.port_of(scheme)}"
    try:
        return CLIENTS[name].run(Place(f"{name}{scheme}", url, folder))
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return dict.fromkeys(CHECKS, str(error))
