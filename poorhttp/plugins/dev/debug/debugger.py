"""Makes error pages with Werkzeug's debugger; imported with the first exception."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from time import monotonic

import werkzeug.debug
from markupsafe import escape
from werkzeug.debug import DebuggedApplication
from werkzeug.debug.tbtools import DebugFrameSummary, DebugTraceback
from werkzeug.wrappers import Request, Response

from poorhttp import logs
from poorhttp.plugins.dev.debug import pin
from poorhttp.plugins.dev.debug.access_control import is_loopback, packed_address
from poorhttp.plugins.dev.frames import (
    format_traceback,
    group_members,
    is_library,
    short_path,
    strip_frames,
)
from poorhttp.plugins.dev.options import Development

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp.config.settings import Settings

#: Frames that are kept for consoles: those of the last few pages.
MOST_FRAMES = 2000

#: Seconds that showing values may take: a `repr` may query a database.
VALUES_TIMEOUT = 1.0

#: Frames whose values are shown: the last ones, in an endless recursion.
MOST_SHOWN = 100

#: Names of a frame, and exceptions of an exception group, that are shown.
MOST_NAMES = 100
MOST_MEMBERS = 10

_STYLE = """<style>
div.debugger .values { margin: 0 0 10px 20px; font-size: 14px; }
div.debugger .values table { border-collapse: collapse; margin: 4px 0; }
div.debugger .values td { padding: 1px 12px 1px 0; vertical-align: top; font-family: monospace;
    white-space: pre-wrap; overflow-wrap: anywhere; }
div.debugger iframe.values { width: 100%; height: 80vh; margin: 0; border: 1px solid #ccc; }
div.debugger .note { background: #fff3cd; color: #222; padding: 8px 12px; margin: 0 0 12px 0; }
</style>"""

#: Shows parts of the page that need the PIN. The prompt of the console asks for it, and has the
#: server print it in the terminal. If another worker answers, which does not have the part, the
#: page is loaded again: with the cookie of the PIN, it contains all parts.
_SCRIPT = """<script>
function showPart(details) {
    const place = details.querySelector("[data-part]");
    if (!details.open || !place) return;
    if (!EVALEX_TRUSTED) {
        promptForPin();
        const timer = setInterval(() => {
            if (EVALEX_TRUSTED) { clearInterval(timer); showPart(details); }
        }, 100);
        return;
    }
    fetch(makeDebugURL({part: place.dataset.part})).then(async answer => {
        if (answer.headers.has("X-Gone") && RELOADS) return location.reload();
        place.innerHTML = await answer.text();
        if (answer.ok) place.removeAttribute("data-part");
    });
}
</script>"""

#: Page that only asks for the PIN. Loading it has the server print the PIN in the terminal.
_PROMPT = """<!doctype html>
<title>PIN</title>
<form><label>Enter the PIN that the terminal shows:
<input name="pin" size="16" autocomplete="off" autofocus></label> <button>Enter</button></form>
<p id="told">
<script>
const own = {__debugger__: "yes", s: "SECRET_"};
const ask = words => fetch("?" + new URLSearchParams({...own, ...words}));
ask({cmd: "printpin"});
document.querySelector("form").addEventListener("submit", async event => {
    event.preventDefault();
    const answer = await ask({cmd: "pinauth", pin: event.target.pin.value});
    const {auth, exhausted} = await answer.json();
    if (auth) return location.reload();
    document.querySelector("#told").textContent =
        exhausted ? "Too many wrong PINs: restart the server." : "Wrong PIN.";
});
</script>
"""


class Debugger(DebuggedApplication):
    """Makes pages of exceptions, and answers their consoles.

    Werkzeug checks PIN and host, and answers the requests of its pages. A page shows the traceback
    to everybody, and values only to those who have entered the PIN: behind a proxy on this machine,
    the host of a request is trusted whoever the client is.
    """

    def __init__(self, settings: Settings) -> None:
        # `multiprocessing.Value`, which this replaces, may start a process.
        vars(werkzeug.debug)["Value"] = lambda _: pin.FAILURES
        # Requests of a console must reach the process that has its frames.
        evalex = settings.worker_count == 1
        super().__init__(_locked_response, evalex=evalex, console_path=None)  # type: ignore[arg-type]
        self.settings = settings
        self.secret = pin.SECRET
        self.pin_logging = False
        #: Functions that make parts of pages that need the PIN, and their contexts; by number.
        self.parts: dict[int, tuple[Callable[[], str], list[Any]]] = {}
        # Werkzeug would choose both if one of them were missing.
        self._pin = pin.PIN or None
        self._pin_cookie = pin.COOKIE
        self.trusted_hosts += [
            address.host for address in settings.bind if address.kind == "tcp" and address.host
        ]
        if settings.of(Development).debug == "forced":
            name = os.uname().nodename
            self.trusted_hosts += [name, f"{name}.local"]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request of an error page (PEP 3333)."""
        arguments = Request(environ).args
        if "part" in arguments and arguments.get("s") == self.secret:
            number = arguments.get("part", type=int)
            return self._part(environ, number)(environ, start_response)
        if "frm" in arguments and arguments.get("frm", type=int) not in self.frames:
            gone = Response(
                "The application was reloaded, and the frames of this page are gone. "
                "Load the page again.",
                mimetype="text/html",
            )
            return gone(environ, start_response)
        return super().__call__(environ, start_response)

    def page(
        self,
        error: BaseException,
        environ: WSGIEnvironment,
        contexts: list[Any],
        extra: str = "",
        more: tuple[str, Callable[[], str]] | None = None,
    ) -> str:
        """Return the page of an exception.

        Args:
            error: the exception.
            environ: of the request that has raised it.
            contexts: context managers that a console enters.
            extra: HTML to be inserted.
            more: a title, and a function that makes HTML for those who have entered the PIN.
        """
        try:
            return self._html(strip_frames(error), environ, contexts, extra, more)
        except Exception as another:
            # The exception's own methods may raise.
            logs.exception("the page of an error cannot be made", another)
            return f"<!doctype html>\n<pre>{escape(format_traceback(error))}</pre>\n{extra}"

    def prompt(self, environ: WSGIEnvironment) -> str:
        """Return a page that asks for the PIN and then reloads."""
        if not self.check_host_trust(environ):
            return f"<!doctype html>\n<p>{escape(_unknown_host(environ))}"
        return _PROMPT.replace("SECRET_", self.secret)

    def is_trusted(self, environ: WSGIEnvironment) -> bool:
        """Whether the client of a request has entered the PIN."""
        return self.check_host_trust(environ) and bool(self.check_pin_trust(environ))

    def check_host_trust(self, environ: WSGIEnvironment) -> bool:
        """Whether a request names a trusted host: a known name, or a loopback address.

        A foreign page may have its own host name resolve to this machine (DNS rebinding). It cannot
        do so with an address.
        """
        if super().check_host_trust(environ):
            return True
        host = environ.get("HTTP_HOST", "")
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        return is_loopback(name) or (
            self.settings.of(Development).debug == "forced" and bool(packed_address(name))
        )

    def log_pin_request(self, request: Request) -> Response:
        """Print the PIN in the terminal again, since a page asks for it."""
        if self.check_host_trust(request.environ):
            logs.write("info", pin.announcement())
        return super().log_pin_request(request)

    def _part(self, environ: WSGIEnvironment, number: int | None) -> Response:
        """Answer with a part of a page that needs the PIN."""
        if not self.is_trusted(environ):
            words = "Values are locked: enter the PIN that the terminal shows."
            return Response(words, status=403, mimetype="text/html")
        part = self.parts.get(number) if number is not None else None
        if part is None:
            words = "These values are gone: the application was reloaded."
            return Response(words, mimetype="text/html", headers={"X-Gone": "yes"})
        make, contexts = part
        with ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context)
            return Response(make(), mimetype="text/html")

    def _html(
        self,
        error: BaseException,
        environ: WSGIEnvironment,
        contexts: list[Any],
        extra: str,
        more: tuple[str, Callable[[], str]] | None,
    ) -> str:
        host_trusted = self.check_host_trust(environ)
        trusted = self.is_trusted(environ)
        console = self.evalex and host_trusted
        first = _traceback(error)
        # Werkzeug's page does not show the members of an exception group.
        others = [_traceback(each) for each in group_members(error)[:MOST_MEMBERS]]
        for traceback in (first, *others):
            for frame in traceback.all_frames:
                self.frames[id(frame)] = frame
                self.frame_contexts[id(frame)] = contexts
        while len(self.frames) > MOST_FRAMES:
            oldest = next(iter(self.frames))
            del self.frames[oldest]
            self.frame_contexts.pop(oldest, None)
        if trusted:
            _add_values([first, *others])
        elif host_trusted:
            for traceback in (first, *others):
                frames: list[Any] = traceback.all_frames[-MOST_SHOWN:]
                for frame in frames:
                    place = self._deferred(partial(_values, frame), contexts)
                    frame.values = _details("Values", place)
        if more is not None and host_trusted:
            title, make = more
            extra += _details(title, make() if trusted else self._deferred(make, []))
        page = first.render_debugger_html(
            evalex=console,
            secret=self.secret,
            evalex_trusted=trusted,
        )
        if isinstance(error, SyntaxError):
            page = _without_repetition(page, error)
        below = "".join(
            f"<h2>{number} of {len(group_members(error))}</h2>{each.render_traceback_html()}"
            for number, each in enumerate(others, 1)
        )
        why = "" if console else escape(self._no_console_reason(environ, host_trusted))
        note = f'<p class="note">{why}</p>' if why else ""
        reloads = "true" if environ["REQUEST_METHOD"] == "GET" else "false"
        head = f"<script>const RELOADS = {reloads};</script>{_SCRIPT}{_STYLE}</head>"
        page = page.replace("</head>", head, 1)
        page = page.replace('<div class="debugger">', f'<div class="debugger">{note}{extra}', 1)
        return page.replace('<div class="plain">', f'{below}<div class="plain">', 1)

    def _deferred(self, make: Callable[[], str], contexts: list[Any]) -> str:
        """Keep a function that makes HTML until a client with the PIN asks; return its element."""
        self.parts[id(make)] = make, contexts
        while len(self.parts) > MOST_FRAMES:
            del self.parts[next(iter(self.parts))]
        return f'<div data-part="{id(make)}"></div>'

    def _no_console_reason(self, environ: WSGIEnvironment, trusted: bool) -> str:
        if not trusted:
            return f"No values and no console: {_unknown_host(environ)}"
        return (
            f"No console: {self.settings.worker_count} workers serve, and only one of them has "
            "these frames. Set workers = 1 for a console."
        )


def _unknown_host(environ: WSGIEnvironment) -> str:
    host = environ.get("HTTP_HOST", "")
    return f'"{host}" is not a name of this server; open the page at an address of bind.'


class Frame(DebugFrameSummary):
    """A frame that shows its values below its source."""

    #: HTML of the values.
    values = ""

    #: Not shown to everybody: `__traceback_info__` is one of the values.
    info = None

    @property
    def is_library(self) -> bool:
        """Whether the frame is not the application's."""
        return is_library(self.filename)

    def render_html(self, mark_library: bool) -> str:
        """Return the frame as HTML; files of libraries are named by their import path."""
        html = super().render_html(mark_library)
        if self.is_library:
            file = escape(self.filename)
            place, line, rest = html.partition(
                f',\n      line <em class="line">{self.lineno}</em>,'
            )
            cite = (
                f'<cite class="filename" title="{file}">{escape(short_path(self.filename))}</cite>'
            )
            place = place.replace(f'File <cite class="filename">"{file}"</cite>', cite, 1)
            html = f'{place}:<em class="line">{self.lineno}</em>{rest}' if line else html
        html, end, rest = html.rpartition("</div>")
        return f"{html}{self.values}{end}{rest}"


class Representation(reprlib.Repr):
    """A short `repr` that handles exceptions of objects' own `repr`."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 12
        self.maxdeque = self.maxarray = 12
        self.maxstring = self.maxlong = 300
        self.maxother = 600

    def repr(self, value: object) -> str:
        """Return the representation."""
        try:
            return super().repr(value)
        except Exception as error:
            # An object may fake its type.
            return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"

    def repr_instance(self, value: Any, level: int) -> str:
        """Return the representation of an object of no built-in type."""
        try:
            text = repr(value)
        except Exception as error:
            return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
        keep = self.maxother // 2
        return text if len(text) <= self.maxother else f"{text[:keep]} ... {text[-keep:]}"


def _locked_response(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer a request to a console that Werkzeug refuses and passes on."""
    response = Response("The console is locked: enter the PIN.", status=403, mimetype="text/html")
    return response(environ, start_response)


def _traceback(error: BaseException) -> DebugTraceback:
    """Return Werkzeug's traceback of an exception, with frames that may have values."""
    traceback = DebugTraceback(error)
    for _, each in traceback.all_tracebacks:
        each.stack[:] = [_frame(frame) for frame in each.stack]
    page = getattr(error, "file", None), getattr(error, "line", None)
    if type(error).__name__ == "PageError" and isinstance(page[0], str):
        # An error in a template page: there is no frame, but a line to show.
        place = DebugFrameSummary(
            filename=page[0], lineno=page[1], name="page", locals={}, globals={}
        )
        traceback.all_tracebacks[0][1].stack[:] = [_frame(place)]
    return traceback


def _frame(frame: Any) -> Frame:
    columns = {
        name: getattr(frame, name) for name in ("colno", "end_colno") if hasattr(frame, name)
    }
    return Frame(
        filename=frame.filename,
        lineno=frame.lineno,
        name=frame.name,
        locals=frame.local_ns,
        globals=frame.global_ns,
        **columns,
    )


def _add_values(tracebacks: list[DebugTraceback]) -> None:
    """Add values to frames; those of the application's innermost frame are unfolded."""
    end = monotonic() + VALUES_TIMEOUT
    representation = Representation()
    for traceback in tracebacks:
        frames: list[Any] = traceback.all_frames[-MOST_SHOWN:]
        inner = next((each for each in reversed(frames) if not each.is_library), None)
        # The unfolded frame first, before the time is up.
        for frame in sorted(frames, key=lambda each: each is not inner):
            if monotonic() > end:
                frame.values = '<p class="values">Showing the values took too long.</p>'
            elif rows := _rows(frame, representation, end):
                frame.values = _details("Values", _table(rows), is_open=frame is inner)


def _values(frame: Frame) -> str:
    """Return the values of a frame, as HTML."""
    rows = _rows(frame, Representation(), monotonic() + VALUES_TIMEOUT)
    return _table(rows) if rows else "There are none."


def _table(rows: str) -> str:
    return f"<table>{rows}</table>"


def _details(title: str, html: str, *, is_open: bool = False) -> str:
    """Return a foldable element. It stops clicks, which would otherwise fold the source."""
    shown = " open" if is_open else ""
    does = 'onclick="event.stopPropagation()" ontoggle="showPart(this)"'
    return (
        f'<details class="values" {does}{shown}><summary>{escape(title)}</summary>{html}</details>'
    )


def _without_repetition(page: str, error: SyntaxError) -> str:
    """Show file and line of a syntax error only in the traceback, its message only in the title."""
    import traceback

    *where, last = (escape(line) for line in traceback.format_exception_only(error))
    if not where:
        return page
    place, whole = escape("").join(where), escape("").join([*where, last])
    for before, after in (
        (f"<title>{where[0]}", f"<title>{last}"),
        (f'<p class="errormsg">{whole}', f'<p class="errormsg">{escape(error.msg)}'),
        # An IndentationError is shown as any other exception.
        (f"<pre class=syntaxerror>{whole}", f"<pre class=syntaxerror>{place}"),
        (f"<blockquote>{whole}", f"<blockquote>{place}"),
    ):
        page = page.replace(before, after, 1)
    return page


def _rows(frame: Frame, representation: Representation, end: float) -> str:
    # Values of a module's frame are its globals: functions, classes, imported names.
    names = [
        name
        for name, value in list(frame.local_ns.items())
        if not (name.startswith("__") and name.endswith("__")) or name == "__traceback_info__"
    ]
    rows = []
    for name in names[:MOST_NAMES]:
        if monotonic() > end:
            break
        value = representation.repr(frame.local_ns.get(name))
        rows.append(f"<tr><td>{escape(name)}<td>{escape(value)}</tr>")
    if len(names) > len(rows):
        rows.append(f"<tr><td>...<td>and {len(names) - len(rows)} more</tr>")
    return "".join(rows)
