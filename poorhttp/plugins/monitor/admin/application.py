"""The WSGI application of the admin process: checks requests, and asks the main process.

| path | |
|---|---|
| `/-/live`, `/-/ready` | text; everybody may ask |
| `/metrics`, `/-/metrics` | for Prometheus |
| `/` | the status page; `/-/events` keeps it up to date, and it has style, script and icon |
| `/-/status` | the status document (`model.py`); a browser is led to the page |
| `/-/control/COMMAND` | POST: executes a command; its arguments are a JSON object |
| `/-/control/jobs/NAME` | the result of a command that takes long |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from poorhttp.plugins.monitor.admin.protection import UNAUTHORIZED, Protection
from poorhttp.plugins.monitor.admin.questions import COMMAND, JOB, READY, STATUS, Questions, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp._core import Reactor
    from poorhttp.plugins.monitor.admin.model import Status

    #: Answers a request for a view of the status document, which its first argument returns.
    View = Callable[[Callable[[], Status], WSGIEnvironment, StartResponse], Iterable[bytes]]

PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"

OK = "200 OK"
SEE_OTHER = "303 See Other"
NOT_FOUND = "404 Not Found"
UNAVAILABLE = "503 Service Unavailable"

#: Reasons of the statuses with which commands are answered.
REASONS = {200: "OK", 202: "Accepted", 400: "Bad Request", 404: "Not Found", 409: "Conflict"}

HEALTH = ("/-/live", "/-/ready")
METRICS = ("/metrics", "/-/metrics")
STATUS_PATH = "/-/status"
#: The page, relative to that: a proxy may have a prefix in front of both.
PAGE_FROM_STATUS = "../"
EVENTS = "/-/events"
PAGE = ("/", EVENTS, "/-/page.css", "/-/page.js", "/-/icon.svg")
CONTROL = "/-/control/"
JOBS = "/-/control/jobs/"

#: Characters of a command, an argument or a job, besides letters and digits.
PUNCTUATION = "-_."

#: Characters of one of these, at most.
LONGEST_WORD = 100


class Refused(Exception):
    """A request that is answered with an error: a status line, and a sentence."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


class Application:
    """Answers the requests at the address `admin`.

    Attributes:
        reactor: returns the reactor of the process.
    """

    def __init__(self, questions: Questions, protection: Protection) -> None:
        self._questions = questions
        self._protection = protection
        self.reactor: Callable[[], Reactor | None] = lambda: None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request (PEP 3333)."""
        path = environ["PATH_INFO"]
        try:
            view = self._checked_view(path, environ)
            if view is not None:
                if path == EVENTS:
                    environ["poorhttp.reactor"] = self.reactor()
                return view(self.status, environ, start_response)
            status, content_type, text = self._respond(path, environ)
        except Refused as refused:
            status, content_type, text = refused.status, PLAIN, f"{refused}\n"
            if path.startswith(CONTROL) or path == STATUS_PATH:
                content_type = JSON
                text = to_json({"ok": False, "message": str(refused)})
        except OSError:
            status, content_type = UNAVAILABLE, PLAIN
            text = "not ready: the main process does not answer\n"
        fields = [("Content-Type", content_type), ("Cache-Control", "no-store")]
        if path == STATUS_PATH:
            fields.append(("Vary", "Accept"))
        if status == SEE_OTHER:
            fields.append(("Location", PAGE_FROM_STATUS))
        fields.append(("X-Content-Type-Options", "nosniff"))
        if status.startswith("405"):
            fields.append(("Allow", "POST" if _is_command(path) else "GET, HEAD"))
        if status == UNAUTHORIZED:
            # Of Basic, which browsers ask for, the password is the token.
            fields.append(("WWW-Authenticate", 'Bearer realm="poorhttp"'))
            fields.append(("WWW-Authenticate", 'Basic realm="poorhttp", charset="UTF-8"'))
        body = text.encode("utf-8", "backslashreplace")
        start_response(status, fields)
        return [body]

    def status(self) -> Status:
        """Return the status document.

        Raises:
            OSError: the main process does not answer.
        """
        from json import loads

        document: Status = loads(self._questions.ask(STATUS))
        return document

    def _checked_view(self, path: str, environ: WSGIEnvironment) -> View | None:
        """Check that the request may be answered; return the view that does, if it is one.

        Raises:
            Refused: it may not.
        """
        method = environ["REQUEST_METHOD"]
        view = _view(path)
        known = view is not None or path in (*HEALTH, *METRICS, STATUS_PATH)
        is_command = _is_command(path)
        if not (known or is_command or path.startswith(JOBS)):
            raise Refused(
                NOT_FOUND, "there are /, /-/live, /-/ready, /-/metrics, /-/status and /-/control/"
            )
        if method not in (("POST",) if is_command else ("GET", "HEAD")):
            why = "send commands with POST" if is_command else "this is read-only: use GET"
            raise Refused("405 Method Not Allowed", why)
        if path in HEALTH:
            return None
        refusal = self._protection.refusal(environ)
        if refusal is None and is_command:
            refusal = self._protection.refusal_of_command(environ)
        elif refusal is None and path not in METRICS:
            refusal = self._protection.refusal_of_host(environ)
        if refusal is not None:
            raise Refused(*refusal)
        return view

    def _respond(self, path: str, environ: WSGIEnvironment) -> tuple[str, str, str]:
        """Return status, content type and text of the answer."""
        if path in HEALTH:
            why_not = self._questions.ask(READY).decode()
            if path == "/-/live":
                return OK, PLAIN, "live\n"
            if why_not:
                return UNAVAILABLE, PLAIN, f"not ready: {why_not}\n"
            return OK, PLAIN, "ready\n"
        if path in METRICS:
            from poorhttp.plugins.monitor import metrics  # not in the main process

            return OK, *metrics.render(self.status(), environ.get("HTTP_ACCEPT", ""))
        if path == STATUS_PATH:
            # With a query, as in /-/status?json, a browser shows the document too.
            if _prefers_html(environ.get("HTTP_ACCEPT", "")) and not environ["QUERY_STRING"]:
                return SEE_OTHER, PLAIN, "the status page is at /, this document at ?json\n"
            return OK, JSON, self._questions.ask(STATUS).decode()
        if path.startswith(JOBS):
            answer = self._questions.ask(JOB, _word(path.removeprefix(JOBS)))
        else:
            words = [_word(path.removeprefix(CONTROL)), *_arguments(environ)]
            answer = self._questions.ask(COMMAND, " ".join(words))
        status, _, text = answer.decode().partition("\n")
        return f"{status} {REASONS[int(status)]}", JSON, text


def _prefers_html(accept: str) -> bool:
    """Tell whether a client would rather have HTML than JSON (RFC 9110, 12.5.1): a browser.

    Not if it takes either, as curl and programs do (`*/*`, or no `Accept`).
    """
    best: dict[str, tuple[int, float]] = {}
    for part in accept.lower().split(","):
        media, *parameters = (word.strip() for word in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    weight = min(1.0, max(0.0, float(value)))
                except ValueError:
                    weight = 0.0
        for wanted in ("text/html", "application/json"):
            # The most specific range that matches counts.
            ranges = ("*/*", f"{wanted.partition('/')[0]}/*", wanted)
            if media in ranges:
                best[wanted] = max(best.get(wanted, (-1, 0.0)), (ranges.index(media), weight))
    weights = {wanted: weight for wanted, (_, weight) in best.items()}
    return weights.get("text/html", 0.0) > weights.get("application/json", 0.0)


def _view(path: str) -> View | None:
    """Return what answers requests for a path from the status document."""
    if path not in PAGE:
        return None
    from poorhttp.plugins.monitor import page

    return {"/": page.page, EVENTS: page.events}.get(path, page.file)


def _is_command(path: str) -> bool:
    return path.startswith(CONTROL) and not path.startswith(JOBS)


def _arguments(environ: WSGIEnvironment) -> list[str]:
    """Return the members of the JSON object in the body as words for the main process.

    Raises:
        Refused: the body is something else.
    """
    from json import loads

    body = environ["wsgi.input"].read()
    try:
        members: Any = loads(body.decode()) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Refused("400 Bad Request", f"the body is not JSON: {error}") from None
    if not isinstance(members, dict):
        raise Refused("400 Bad Request", "the body has to be a JSON object, as {}")
    words = []
    for name, value in members.items():
        if value is None or value is False:
            continue
        text = "1" if value is True else str(value) if isinstance(value, (str, int)) else ""
        words.append(f"{_word(name)}={_word(text)}")
    return words


def _word(text: str) -> str:
    """Return a word for the main process.

    Raises:
        Refused: it is none.
    """
    if not 0 < len(text) <= LONGEST_WORD or not all(
        letter.isalnum() or letter in PUNCTUATION for letter in text
    ):
        raise Refused(
            "400 Bad Request",
            f'names and values consist of letters, digits and any of "{PUNCTUATION}"',
        )
    return text
