"""Answers exceptions of an ASGI application with an error page.

Frameworks answer with status 500 and raise the exception again, and handlers log one and answer
with a server error. So the beginning of such a response is held back until the application has
returned, or sends a body in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from poorhttp import logs
from poorhttp.plugins.dev import template_errors
from poorhttp.plugins.dev.debug import handled_errors, responses
from poorhttp.plugins.dev.debug.handled_errors import HandledError
from poorhttp.plugins.dev.frames import format_traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.config.settings import Settings

    Message = dict[str, Any]


def add_error_pages(mounted: Any, settings: Settings) -> None:
    """Have exceptions of the application of a `poorhttp.plugins.asgi` target answered by pages."""
    mounted.application = AsgiErrorPages(mounted.application, mounted.environ_of, settings)


class AsgiErrorPages:
    """Wraps an ASGI application and answers its exceptions with a page."""

    def __init__(
        self, application: Any, environ_of: Callable[[Any], Any], settings: Settings
    ) -> None:
        self.application = application
        self.settings = settings
        self._environ_of = environ_of

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; other scopes are the application's alone."""
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        if responses.MARK.encode() in scope["query_string"]:
            debugger = responses.debugger_of(self)
            if debugger is not None:
                environ = self._environ_of(scope)
                await answer(send, lambda start: debugger(environ, start))
                return
        handled = handled_errors.begin_task()
        response = HeldResponse(send, handled)
        try:
            await self.application(scope, receive, response.send)
        except Exception as error:
            if response.is_sent:
                raise
            environ = self._environ_of(scope)
            self._log(error, environ)
            await self._fail(error, environ, send)
        else:
            cause = handled.cause
            if cause is None:
                await response.flush()
                return
            environ = self._environ_of(scope)
            if not handled.in_log or self.settings.error_log != "-":
                self._log(cause, environ)
            if not response.is_sent and (
                responses.wants_html(environ) or not handled.is_structured
            ):
                await self._fail(cause, environ, send, handled.status)
            else:
                await response.flush()
        finally:
            handled_errors.end()

    def _log(self, error: BaseException, environ: Any) -> None:
        line = f"{environ['REQUEST_METHOD']} {environ['RAW_URI']}"
        logs.exception(
            f"{line if line.isprintable() else ascii(line)}: the application failed", error
        )

    async def _fail(
        self, error: BaseException, environ: Any, send: Any, status: str = responses.STATUS
    ) -> None:
        """Answer with the page of an exception."""
        debugger = responses.debugger_of(self) if responses.wants_html(environ) else None
        template = template_errors.excerpt(error)
        if debugger is not None:
            page = debugger.page(error, environ, [], template.html if template else "")
        else:
            page = format_traceback(error) + (template.text if template else "")
        html = debugger is not None

        def respond(start: Any) -> Iterable[bytes]:
            return responses.send(environ, start, page, html=html, status=status)

        await answer(send, respond)


class HeldResponse:
    """A response of which a server error is sent when it is known that no exception follows.

    Attributes:
        is_sent: it has begun to be sent.
    """

    def __init__(self, send: Any, handled: HandledError) -> None:
        self.is_sent = False
        self._send = send
        self._handled = handled
        self._held: list[Message] = []

    async def send(self, message: Message) -> None:
        """Send a message, or hold it back."""
        kind = message["type"]
        begins = kind == "http.response.start" and message["status"] >= 500 and not self.is_sent
        ends = kind == "http.response.body" and not message.get("more_body")
        if begins:
            fields = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in message.get("headers", ())
            ]
            self._handled.note_response(str(message["status"]), fields)
        if begins or (ends and self._held):
            self._held.append(message)
        else:
            self.is_sent |= kind != "http.response.early_hint"
            await self.flush()
            await self._send(message)

    async def flush(self) -> None:
        """Send what was held back."""
        held, self._held = self._held, []
        for message in held:
            self.is_sent = True
            await self._send(message)


async def answer(send: Any, respond: Callable[[Any], Iterable[bytes]]) -> None:
    """Send the response of a WSGI application, which gets a `start_response`."""
    started: list[Message] = []

    def start(status: str, headers: list[tuple[str, str]], *exc_info: object) -> None:
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        started[:] = [{"type": "http.response.start", "status": int(status[:3]), "headers": fields}]

    body = b"".join(respond(start))
    await send(started[0])
    await send({"type": "http.response.body", "body": body})
