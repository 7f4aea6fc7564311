"""Makes pages in the browser reload themselves after a save.

HTML responses get a script, which opens a stream of server-sent events. The stream names the
generation of the application that answers, and is then kept open without a thread
(`Request.long_poll`) until that generation ends. The browser reconnects, waits for the next
generation, and reloads the page because its name differs. For a changed static file, the core sends
a reload event to the open streams (`Reactor.end_long_polls`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from poorhttp import logs
from poorhttp.plugins.dev.options import PREFIX
from poorhttp.worker import wsgi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

#: Paths of the script and of the stream of events.
SCRIPT_PATH = f"{PREFIX}/live.js"
EVENTS_PATH = f"{PREFIX}/live"

#: Sends `version` and `age`, the milliseconds since its page was requested, so that a reload event
#: from before its connection is not missed. A hidden page closes its stream, since a browser makes
#: only a few connections to a server.
SCRIPT_SOURCE = b"""\
"use strict";
(() => {
    const SOON = 50, LATER = 1000;
    const ours = "poorhttp-live";
    try {
        // A frame is reloaded with its page.
        if (window[ours] || (window !== top && top[ours])) return;
    } catch { }
    window[ours] = true;

    const url = new URL(document.currentScript.src);
    const version = url.search.slice(1);
    url.pathname = url.pathname.replace(/\\.js$/, "");
    let events, timer, pause = SOON;

    function listen() {
        stop();
        const age = Math.ceil(performance.now());
        url.search = new URLSearchParams({version, age});
        events = new EventSource(url);
        events.addEventListener("version", event => {
            pause = SOON;
            if (event.data !== version) reload();
        });
        events.addEventListener("reload", reload);
        events.addEventListener("error", () => {
            stop();
            timer = setTimeout(listen, pause);
            pause = Math.min(2 * pause, LATER);
        });
    }

    function stop() {
        clearTimeout(timer);
        events?.close();
    }

    function reload() {
        stop();
        document.removeEventListener("visibilitychange", see);
        location.reload();
    }

    function see() {
        if (document.visibilityState === "visible") listen(); else stop();
    }

    document.addEventListener("visibilitychange", see);
    addEventListener("pageshow", event => event.persisted && see());
    see();
})();
"""

#: Event that has a page reload.
RELOAD_EVENT = b"event: reload\ndata:\n\n"

#: Values of `Sec-Fetch-Dest` of requests for pages.
PAGE_DESTINATIONS = ("document", "iframe", "frame", "embed", "object")

#: Header fields of requests by scripts. They count if there is no `Sec-Fetch-Dest`, which older
#: browsers do not send, nor any browser without TLS to another machine.
FETCH_HEADERS = ("HTTP_X_REQUESTED_WITH", "HTTP_HX_REQUEST")

#: Conditional header fields, which are removed: a cached page has no script or that of an earlier
#: generation.
CONDITIONAL_HEADERS = (
    "HTTP_IF_NONE_MATCH",
    "HTTP_IF_MODIFIED_SINCE",
    "HTTP_IF_RANGE",
    "HTTP_RANGE",
)

#: Response header fields with which the body is incomplete or is replaced.
REPLACED_BODY = ("content-range", "x-sendfile", "x-accel-redirect")

#: Response header fields that are wrong after the script was added.
DROPPED_HEADERS = (
    *("etag", "last-modified", "accept-ranges", "cache-control"),
    *("content-md5", "digest", "content-digest", "repr-digest"),
)

#: Statuses of responses without content, or with a part of it.
NO_PAGE_STATUSES = ("204", "205", "206", "304")


def script(version: str) -> tuple[str, str]:
    """Return the script element in two parts, between which SCRIPT_NAME belongs."""
    return '<script src="', f'{SCRIPT_PATH}?{version}" async></script>'


class LiveReload:
    """Wraps an application, outside all other wrappers, to make its pages reload themselves."""

    def __init__(
        self, application: WSGIApplication, version: str, *, adds_script: bool = True
    ) -> None:
        """Take an application.

        Args:
            application: the application.
            version: unique name of its generation; letters, digits, `-._~`.
            adds_script: add the script to pages; the stream of events is there in any case.
        """
        self._application = application
        self._adds_script = adds_script
        self._version = version
        self._warnings: set[str] = set()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        path = environ.get("PATH_INFO", "")
        if path == SCRIPT_PATH:
            return _send_script(start_response)
        if path == EVENTS_PATH:
            return self._send_events(environ, start_response)
        if not self._adds_script or environ["REQUEST_METHOD"] != "GET":
            return self._application(environ, start_response)
        answer = _PageResponse(self, environ, start_response)
        if not answer.is_for_page:
            return self._application(environ, answer)
        for name in CONDITIONAL_HEADERS:
            environ.pop(name, None)
        # Nothing can be added to a compressed body.
        environ["HTTP_ACCEPT_ENCODING"] = "identity"
        return answer.with_script(self._application(environ, answer))

    def script(self, root: str, nonce: str) -> bytes:
        """Return the element to be added to a page; `root` is its SCRIPT_NAME."""
        before, behind = script(self._version)
        if nonce:
            behind = behind.replace(" async", f' nonce="{nonce}" async')
        if root:
            from urllib.parse import quote  # large, and needed only below a prefix

            root = quote(root.encode("latin-1"))
        return f"{before}{root}{behind}".encode()

    def warn_once(self, what: str, request: str) -> None:
        """Log once why a page does not reload itself."""
        if what not in self._warnings:
            self._warnings.add(what)
            logs.write("warning", f"live: {request}: the page will not reload itself: {what}")

    def _send_events(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        parts = environ.get("QUERY_STRING", "").split("&")
        query = dict(part.split("=", 1) for part in parts if "=" in part)
        headers = [
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-store"),
            # Has nginx pass events on at once.
            ("X-Accel-Buffering", "no"),
            ("Connection", "close"),
        ]
        write = start_response("200 OK", headers)
        event = f"retry: 50\nevent: version\ndata: {self._version}\n\n".encode()
        long_poll = getattr(start_response, "long_poll", None)
        if long_poll is None or query.get("version", self._version) != self._version:
            return [event]
        write(event)
        age = query.get("age", "")
        long_poll(RELOAD_EVENT, missed=int(age) if age.isdecimal() and len(age) < 16 else 0)
        return []


def _send_script(start_response: StartResponse) -> Iterable[bytes]:
    headers = [
        ("Content-Type", "text/javascript; charset=utf-8"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ]
    start_response("200 OK", headers)
    return [SCRIPT_SOURCE]


def _is_for_page(environ: WSGIEnvironment) -> bool:
    """Whether a GET request is for a page. The answer to a POST must not reload itself."""
    destination = environ.get("HTTP_SEC_FETCH_DEST")
    if destination is None:
        return not any(name in environ for name in FETCH_HEADERS)
    # A prefetched document may be shown as a page.
    return destination in PAGE_DESTINATIONS or "prefetch" in environ.get("HTTP_SEC_PURPOSE", "")


class _PageResponse:
    """`start_response` of a request that may be for a page, and the script for its response.

    Attributes:
        is_for_page: the response will be shown as a page.
    """

    def __init__(
        self, live: LiveReload, environ: WSGIEnvironment, start_response: StartResponse
    ) -> None:
        self._live = live
        # The application may change its environ.
        self._root: str = environ.get("SCRIPT_NAME", "")
        self._request = f"GET {environ.get('REQUEST_URI', '')}"
        self._start_response = start_response
        self._is_started = False
        self.is_for_page = _is_for_page(environ)
        #: Script element to be added to the body.
        self.script = b""

    def __call__(self, status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
        """Start the response (PEP 3333)."""
        script = self._script_for(status, headers)
        if script:
            headers = _updated_headers(headers, len(script))
        elif not self._has_lifetime(headers):
            # Otherwise a browser may show an old style sheet in the reloaded page.
            headers = [*headers, ("Cache-Control", "no-cache")]
        # May raise: then the state is unchanged.
        write = self._start_response(status, headers, *more)
        self.script = script
        self._is_started = True
        return write

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped `start_response`."""
        return getattr(self._start_response, name)

    def with_script(self, body: Iterable[bytes]) -> Iterable[bytes]:
        """Return the application's body, with the script at its end if it needs one."""
        is_list = isinstance(body, (list, tuple))
        if self._is_started or is_list:
            if not self.script:
                return body
            if is_list:
                return [*body, self.script]
        return _BodyWithScript(body, self)

    def _script_for(self, status: Any, headers: Any) -> bytes:
        """Return the element to be added; empty if it is no page or must not be changed."""
        if not self.is_for_page or not isinstance(headers, list):
            return b""
        try:
            code = status[:3]
            fields = [(name.lower(), value) for name, value in headers]
            kinds = [value for name, value in fields if name == "content-type"]
            kind, *parameters = kinds[-1].lower().replace(" ", "").split(";") if kinds else [""]
            if kind != "text/html" or code in NO_PAGE_STATUSES or not "200" <= code <= "599":
                return b""
            if any(name in REPLACED_BODY for name, _ in fields):
                return b""
            if any(
                name == "content-disposition" and value.strip().lower().startswith("attachment")
                for name, value in fields
            ):
                return b""
            if any(name == "content-encoding" and value != "identity" for name, value in fields):
                return self._warn(
                    "the answer is compressed, although the request did not ask for it"
                )
            if any(
                parameter.startswith(("charset=utf-16", 'charset="utf-16'))
                for parameter in parameters
            ):
                return self._warn("its charset is UTF-16; use UTF-8")
            policies = [value for name, value in fields if name == "content-security-policy"]
        except (AttributeError, TypeError, ValueError):
            # The server reports the error to the application.
            return b""
        nonce = _nonce(policies)
        if nonce is None:
            return self._warn(
                "its Content-Security-Policy forbids that; it needs script-src 'self' (or a nonce) "
                "and connect-src 'self'"
            )
        return self._live.script(self._root, nonce)

    def _has_lifetime(self, headers: Any) -> bool:
        """Whether a response limits its caching; also if its header is wrong."""
        try:
            names = [name.lower() for name, _ in headers]
            return "cache-control" in names or "expires" in names or not isinstance(headers, list)
        except (AttributeError, TypeError, ValueError):
            return True

    def _warn(self, what: str) -> bytes:
        self._live.warn_once(what, self._request)
        return b""


class _BodyWithScript:
    """A body with the script at its end."""

    def __init__(self, body: Any, answer: _PageResponse) -> None:
        self._body = body
        self._answer = answer
        if hasattr(body, "close"):
            self.close = body.close

    def __iter__(self) -> Iterator[bytes]:
        yield from wsgi.iterate_body(self._body)
        # A generator may have called start_response only now.
        if self._answer.script:
            yield self._answer.script


def _updated_headers(headers: list[tuple[str, str]], more: int) -> list[tuple[str, str]]:
    """Return the headers of a response that is longer by `more` bytes and must not be cached."""
    kept = []
    caching = "no-cache"
    for header in headers:
        name, value = header
        match name.lower():
            case "content-length" if value.isascii() and value.isdecimal():
                kept.append((name, str(int(value) + more)))
            case "cache-control" if "no-store" in value.lower():
                caching = "no-store"
            case other if other not in DROPPED_HEADERS:
                kept.append(header)
    return [*kept, ("Cache-Control", caching)]


def _nonce(policies: list[str]) -> str | None:
    """Return the nonce that the script needs, or empty; `None` if it would not be run.

    Args:
        policies: values of Content-Security-Policy, all of which apply.
    """
    nonce = ""
    own = {"'self'", "*", "http:"}
    for policy in ",".join(policies).split(","):
        directives: dict[str, list[str]] = {}
        for directive in policy.split(";"):
            name, *sources = directive.split() or [""]
            directives.setdefault(name.lower(), sources)
        everything = directives.get("default-src")
        connections = directives.get("connect-src", everything)
        scripts = directives.get("script-src-elem", directives.get("script-src", everything))
        if connections is not None and own.isdisjoint(_folded(connections)):
            return None
        if "sandbox" in directives and "allow-scripts" not in _folded(directives["sandbox"]):
            return None
        if scripts is None:
            continue
        words = _folded(scripts)
        if "'strict-dynamic'" not in words and not own.isdisjoint(words):
            continue
        nonces = [source[7:-1] for source in scripts if source.lower().startswith("'nonce-")]
        if nonce in nonces:
            continue
        if nonce or not nonces or not _is_base64(nonces[0]):
            return None
        nonce = nonces[0]
    return nonce


def _folded(sources: list[str]) -> set[str]:
    return {source.lower() for source in sources}


def _is_base64(text: str) -> bool:
    return text.isascii() and all(letter.isalnum() or letter in "+/-_=" for letter in text)
