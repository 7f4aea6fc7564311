"""Werkzeug's debugger, as our pages use it: imported when something has failed."""

from __future__ import annotations

import os
import reprlib
from time import monotonic

import werkzeug.debug
from markupsafe import escape
from werkzeug.debug import DebuggedApplication
from werkzeug.debug.tbtools import DebugFrameSummary, DebugTraceback
from werkzeug.wrappers import Request, Response

from poorhttp import log
from poorhttp.debug import pin
from poorhttp.debug.exposure import is_loopback, packed_address
from poorhttp.debug.frames import bare, members, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp.options import Settings

#: Frames that are kept for their consoles: those of the last few pages.
MOST_FRAMES = 2000

#: Seconds that may go into showing values: a `repr` may ask a database.
PATIENCE = 1.0

#: Frames whose values are shown; of those that call each other round in circles, the last ones.
MOST_SHOWN = 100

#: Names of a frame, and exceptions of a group, that are shown.
MOST_NAMES = 100
MOST_MEMBERS = 10

_STYLE = """<style>
div.debugger .values { margin: 0 0 10px 20px; font-size: 14px; }
div.debugger .values table { border-collapse: collapse; margin: 4px 0; }
div.debugger .values td { padding: 1px 12px 1px 0; vertical-align: top; font-family: monospace;
    white-space: pre-wrap; overflow-wrap: anywhere; }
div.debugger .note { background: #fff3cd; color: #222; padding: 8px 12px; margin: 0 0 12px 0; }
</style>"""


class Debugger(DebuggedApplication):
    """Makes pages of exceptions, and answers their consoles.

    What it keeps of Werkzeug's is the check of PIN and host, and all that its pages ask for.
    """

    def __init__(self, settings: Settings) -> None:
        # Theirs may start a process that watches over it.
        vars(werkzeug.debug)["Value"] = lambda _: pin.FAILURES
        super().__init__(_locked, evalex=_has_console(settings), console_path=None)  # type: ignore[arg-type]
        self.settings = settings
        self.secret = pin.SECRET
        self.pin_logging = False
        # Both: the one that is missing would be made, and the other with it.
        self._pin = pin.PIN or None
        self._pin_cookie = pin.COOKIE
        self.trusted_hosts += [
            address.host for address in settings.bind if address.kind == "tcp" and address.host
        ]
        if settings.debug == "forced":
            name = os.uname().nodename
            self.trusted_hosts += [name, f"{name}.local"]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer what a page of ours asks for."""
        arguments = Request(environ).args
        if "frm" in arguments and arguments.get("frm", type=int) not in self.frames:
            gone = Response(
                "This page was made by an earlier version of the application, "
                "and its frames are gone with it. Load it again.",
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
    ) -> str:
        """Return the page of an exception; `extra` is HTML that goes with it."""
        try:
            return self._html(bare(error), environ, contexts, extra)
        except Exception as another:
            # The exception may be as broken as what has raised it.
            log.exception("the page of an error cannot be made", another)
            return f"<!doctype html>\n<pre>{escape(text_of(error))}</pre>\n{extra}"

    def check_host_trust(self, environ: WSGIEnvironment) -> bool:
        """Tell whether a request names a host that only we can be.

        A page of somebody else's may have the browser believe that its own name means this machine.
        It cannot do that with an address.
        """
        if super().check_host_trust(environ):
            return True
        host = environ.get("HTTP_HOST", "")
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        return is_loopback(name) or (self.settings.debug == "forced" and bool(packed_address(name)))

    def log_pin_request(self, request: Request) -> Response:
        """Tell the PIN again, in the terminal: a page asks for it, and it was told long ago."""
        if self.check_host_trust(request.environ):
            log.write("info", pin.announcement())
        return super().log_pin_request(request)

    def _html(
        self, error: BaseException, environ: WSGIEnvironment, contexts: list[Any], extra: str
    ) -> str:
        trusted = self.check_host_trust(environ)
        console = self.evalex and trusted
        first = _traceback(error)
        # Werkzeug's page does not show what is in a group.
        others = [_traceback(each) for each in members(error)[:MOST_MEMBERS]]
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
        page = first.render_debugger_html(
            evalex=console,
            secret=self.secret,
            evalex_trusted=bool(self.check_pin_trust(environ)),
        )
        more = "".join(
            f"<h2>{number} of {len(members(error))}</h2>{each.render_traceback_html()}"
            for number, each in enumerate(others, 1)
        )
        note = "" if console else f'<p class="note">{escape(self._why_not(environ, trusted))}</p>'
        page = page.replace("</head>", f"{_STYLE}</head>", 1)
        page = page.replace('<div class="debugger">', f'<div class="debugger">{note}{extra}', 1)
        return page.replace('<div class="plain">', f'{more}<div class="plain">', 1)

    def _why_not(self, environ: WSGIEnvironment, trusted: bool) -> str:
        if not trusted:
            host = environ.get("HTTP_HOST", "")
            return (
                f'No values and no console: "{host}" is no name that this server is known by; '
                "open the page by an address of bind."
            )
        return (
            f"No console: {self.settings.worker_count} workers serve, and only one of them has "
            "these frames. With workers = 1 there is one."
        )


class Frame(DebugFrameSummary):
    """A frame that shows its values below its source."""

    #: As HTML.
    values = ""

    def render_html(self, mark_library: bool) -> str:
        """Return it as HTML."""
        html, end, rest = super().render_html(mark_library).rpartition("</div>")
        return f"{html}{self.values}{end}{rest}"


class Representation(reprlib.Repr):
    """A `repr` that is short, and comes to an end whatever it meets."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 12
        self.maxdeque = self.maxarray = 12
        self.maxstring = self.maxlong = 300
        self.maxother = 600

    def repr(self, value: object) -> str:
        """Return it."""
        try:
            return super().repr(value)
        except Exception as error:
            # Some even lie about their type.
            return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"

    def repr_instance(self, value: Any, level: int) -> str:
        """Return that of anything but the built-in types."""
        try:
            text = repr(value)
        except Exception as error:
            return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
        keep = self.maxother // 2
        return text if len(text) <= self.maxother else f"{text[:keep]} ... {text[-keep:]}"


def _has_console(settings: Settings) -> bool:
    """Tell whether a console's request reaches the process that has the frames."""
    return settings.worker_count == 1


def _locked(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer a request to a console that Werkzeug has refused, and would hand on."""
    response = Response("The console is locked: enter the PIN.", status=403, mimetype="text/html")
    return response(environ, start_response)


def _traceback(error: BaseException) -> DebugTraceback:
    """Return what shows an exception, with frames that may have values."""
    traceback = DebugTraceback(error)
    for _, each in traceback.all_tracebacks:
        each.stack[:] = [_frame(frame) for frame in each.stack]
    page = getattr(error, "file", None), getattr(error, "line", None)
    if type(error).__name__ == "PageError" and isinstance(page[0], str):
        # A template that is no page: there is no frame, but a line to show.
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
    """Have the frames show their values; those of the application's innermost at once."""
    end = monotonic() + PATIENCE
    representation = Representation()
    for traceback in tracebacks:
        frames: list[Any] = traceback.all_frames[-MOST_SHOWN:]
        inner = next((each for each in reversed(frames) if not each.is_library), None)
        # The one that is looked at first comes first.
        for frame in sorted(frames, key=lambda each: each is not inner):
            if monotonic() > end:
                frame.values = '<p class="values">Showing the values took too long.</p>'
            elif rows := _rows(frame, representation, end):
                shown = " open" if frame is inner else ""
                frame.values = (
                    f'<details class="values" onclick="event.stopPropagation()"{shown}>'
                    f"<summary>Values</summary><table>{rows}</table></details>"
                )


def _rows(frame: Frame, representation: Representation, end: float) -> str:
    # Those of a module are its globals: functions, classes and what it has imported.
    names = [
        name
        for name, value in list(frame.local_ns.items())
        if not (name.startswith("__") and name.endswith("__"))
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
